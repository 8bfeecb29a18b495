/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* command.c -- streams in memory. */
#define _GNU_SOURCE
#include "tests/support/command.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/support/must.h"

#define WORDS_MOST 16

char *command_out, *command_err;

void command_forget(void)
{
	free(command_out);
	free(command_err);
	command_out = command_err = NULL;
}

int command_run(int (*run)(int argc, char **argv, FILE *out, FILE *err),
                const char *const *words)
{
	char *argv[WORDS_MOST + 1] = { NULL };
	size_t sizes[2];
	FILE *out, *err;
	int argc = 0, status;

	for (; words[argc]; argc++) {
		must(argc < WORDS_MOST);
		argv[argc] = (char *)(uintptr_t)words[argc];
	}
	command_forget();
	out = open_memstream(&command_out, &sizes[0]);
	err = open_memstream(&command_err, &sizes[1]);
	must(out && err);
	status = run(argc, argv, out, err);
	fclose(out);
	fclose(err);
	return status;
}
