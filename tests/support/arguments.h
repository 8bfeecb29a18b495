/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* arguments.h -- the numbers that a long test is called with: --name NUMBER ... */
#ifndef TESTS_SUPPORT_ARGUMENTS_H
#define TESTS_SUPPORT_ARGUMENTS_H

#include <stdint.h>

/* Ends with a NULL name. */
struct argument {
	const char *name; /* with its dashes */
	uint64_t *number; /* as it is if nothing is said */
};

/* Ends the program, and says how to call it, if it was called otherwise. */
void arguments_read(int argc, char **argv, const struct argument *arguments);

#endif
