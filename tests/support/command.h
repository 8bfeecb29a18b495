/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * command.h -- a part of the gale command, run in this process: what it says, how it exits.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_COMMAND_H
#define TESTS_SUPPORT_COMMAND_H

#include <stdio.h>
#include <string.h>

/* Of the latest run, until the next one. */
extern char *command_out, *command_err;

/* words: what stands behind the command's name; NULL at the end.  Returns how it exits. */
int command_run(int (*run)(int argc, char **argv, FILE *out, FILE *err),
                const char *const *words);
void command_forget(void);

#define assert_says(text, part)                                                        \
	do {                                                                           \
		if (!strstr(text, part))                                               \
			print_error("it says: %s%s\nand not: %s\n", text, command_err, \
			            part);                                             \
		assert_non_null(strstr(text, part));                                   \
	} while (0)

#endif
