/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* log.c -- gale's lines, each with the name of the program. */
#include "examples/server/log.h"

#include <stdio.h>
#include <string.h>

#include "examples/server/flags.h"

static void write_line(struct gale_log *self, enum gale_level level, const char *source,
                       const char *line)
{
	bool is_of_store = strncmp(source, "store ", strlen("store ")) == 0;

	(void)self;
	fprintf(stderr, "%s: %s: %s: %s%s\n", flags_program(), gale_level_name(level),
	        source, line,
	        is_of_store && level == GALE_LEVEL_ERROR
	            ? "; gale doctor URL says what to do"
	            : "");
}

struct gale_log log_to_stderr = { .write = write_line };
