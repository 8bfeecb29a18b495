/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* arguments.c -- pairs of a name and a number. */
#include "tests/support/arguments.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool number(const char *text, uint64_t *ret)
{
	char *end;

	*ret = strtoull(text, &end, 10);
	return *text != '\0' && *end == '\0';
}

static bool read_one(const struct argument *arguments, const char *name,
                     const char *value)
{
	for (; arguments->name; arguments++)
		if (strcmp(arguments->name, name) == 0)
			return number(value, arguments->number);
	return false;
}

static _Noreturn void say_how(const char *program, const struct argument *arguments)
{
	fprintf(stderr, "%s", program);
	for (; arguments->name; arguments++)
		fprintf(stderr, " [%s N]", arguments->name);
	fprintf(stderr, "\n");
	exit(2);
}

void arguments_read(int argc, char **argv, const struct argument *arguments)
{
	bool good = argc % 2 == 1;

	for (int i = 1; i + 1 < argc && good; i += 2)
		good = read_one(arguments, argv[i], argv[i + 1]);
	if (!good)
		say_how(argv[0], arguments);
}
