/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* tls.c -- what gale says of a rediss:// store whose ca= is no file: TLS was found, or was not. */
#include <stdio.h>

#include <gale/gale.h>

static void write_line(struct gale_log *self, enum gale_level level, const char *source,
                       const char *line)
{
	(void)self;
	(void)level;
	(void)source;
	puts(line);
}

int main(void)
{
	struct gale_log log = { write_line };
	struct gale_config config = { .log = &log };
	struct gale_store_config store = { .url = "rediss://127.0.0.1?ca=/no/such" };
	struct gale_runtime *runtime;
	struct gale_store *opened;

	if (gale_runtime_open(&config, &runtime) != GALE_ERR_OK)
		return 1;
	if (gale_store_open(runtime, &store, &opened) != GALE_ERR_TLS)
		return 1;
	gale_runtime_close(runtime);
	return 0;
}
