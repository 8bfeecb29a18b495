/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_runtime_open.c -- start and end gale in a process, with its threads or in your loop
 *
 * Errors   RET MEMORY SYSTEM SHARDS PENDING ALLOCATOR CLOCK LOG NODE_KEYS POLL SIZE RUNTIMES
 *
 * Prints
 *	a loop has to watch descriptor: yes
 *	shards: must be at most 256
 */
#include <stdio.h>

#include <gale/gale.h>

static void write_line(struct gale_log *self, enum gale_level level, const char *source,
                       const char *line)
{
	(void)self;
	fprintf(stderr, "%s: %s: %s\n", gale_level_name(level), source, line);
}

static void on_panic(const char *what)
{
	fprintf(stderr, "gale: %s\n", what);
}

int main(void)
{
	static struct gale_log log = { .write = write_line };
	struct gale_config config = { .turns = true, .shards = 1, .log = &log };
	struct gale_runtime *runtime;
	enum gale_err err;

	gale_on_panic(on_panic);
	err = gale_runtime_open(&config, &runtime);
	if (err) {
		fprintf(stderr, "%s\n", gale_err_text(err));
		return 1;
	}
	printf("a loop has to watch descriptor: %s\n",
	       gale_turn_fd(runtime) >= 0 ? "yes" : "no");
	while (gale_turn(runtime) > 0) /* when it is readable, or when time is up: */
		;
	if (gale_turn_after_us(runtime) == 0)
		return 1;
	gale_runtime_close(runtime);

	config.shards = 257;
	puts(gale_err_text(gale_runtime_open(&config, &runtime)));
	return 0;
}
