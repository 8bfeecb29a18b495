/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_err_text.c -- the errors of gale, and their texts
 *
 * Prints
 *	store: it is NULL, closed, or of another runtime; pass one that is open
 */
#include <stdio.h>

#include <gale/gale.h>

int main(void)
{
	struct gale_limiter_config config = { .name = "api" }; /* has no store */
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	enum gale_err err;

	config.rule = gale_fixed_window(10, GALE_SECONDS(1));
	if (gale_runtime_open(NULL, &runtime))
		return 1;
	err = gale_limiter_open(runtime, &config, &limiter);
	if (err)
		puts(gale_err_text(err));
	gale_runtime_close(runtime);
	return 0;
}
