/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* sleeps.c -- reads /proc. */
#define _POSIX_C_SOURCE 200809L
#include "tests/support/sleeps.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/must.h"

#define LINE_MOST 256

/* The rest of the line that begins with that, of a thread's file. */
static void read_line(const char *thread, const char *name, const char *begins,
                      char line[LINE_MOST])
{
	char path[300];
	size_t length = strlen(begins);
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", thread, name);
	file = fopen(path, "r");
	must(file);
	do
		must(fgets(line, LINE_MOST, file));
	while (strncmp(line, begins, length) != 0);
	must(fclose(file) == 0);
	memmove(line, line + length, strlen(line + length) + 1);
	line[strcspn(line, "\n")] = '\0';
}

uint64_t sleeps_of(pid_t thread)
{
	char number[16], line[LINE_MOST];

	snprintf(number, sizeof(number), "%d", (int)thread);
	read_line(number, "status", "voluntary_ctxt_switches:", line);
	return strtoull(line, NULL, 10);
}

pid_t thread_called(const char *name)
{
	char line[LINE_MOST];
	DIR *threads = opendir("/proc/self/task");
	struct dirent *thread;
	pid_t found = 0;

	must(threads);
	while (found == 0 && (thread = readdir(threads)) != NULL) {
		if (thread->d_name[0] == '.')
			continue;
		read_line(thread->d_name, "comm", "", line);
		if (strcmp(line, name) == 0)
			found = (pid_t)strtol(thread->d_name, NULL, 10);
	}
	closedir(threads);
	must(found != 0);
	return found;
}
