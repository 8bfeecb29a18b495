/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* main.c -- opens and closes what a subproject has linked. */
#include <gale/gale.h>

int main(void)
{
	struct gale_runtime *runtime;

	if (gale_runtime_open(NULL, &runtime) != GALE_ERR_OK)
		return 1;
	gale_runtime_close(runtime);
	return 0;
}
