/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* opens.c URL -- what gale says of a store at URL: that it is open, or what the log says is missing. */
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

int main(int argc, char **argv)
{
	struct gale_log log = { write_line };
	struct gale_config config = { .log = &log };
	struct gale_store_config store = { .url = argv[1] };
	struct gale_runtime *runtime;
	struct gale_store *opened;

	if (argc != 2 || gale_runtime_open(&config, &runtime) != GALE_ERR_OK)
		return 1;
	if (gale_store_open(runtime, &store, &opened) == GALE_ERR_OK) {
		puts("open");
		gale_store_close(opened);
	}
	gale_runtime_close(runtime);
	return 0;
}
