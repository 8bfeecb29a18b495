/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * key.h -- gale peek, reset, forecast and watch: one key of a limiter, at the store.
 *
 * The library's own calls, by a node that asks for nothing else; what is said here is what
 * gale_peek, gale_forecast and gale_reset say.
 *
 * Threads   One, beside those of the library; watch takes SIGINT while it runs.
 */
#ifndef TOOLS_KEY_H
#define TOOLS_KEY_H

#include <stdio.h>

#include "tools/key_flags.h"

/* How the commands exit. */
enum key_status {
	KEY_DONE = 0,
	KEY_BAD_USE = 2, /* a flag or the URL is wrong */
	KEY_FAILED = 3,  /* the store gave no answer, or refused */
};

/* argv as after the command. */
int key_run(enum key_command command, int argc, char **argv, FILE *out, FILE *err);

#endif
