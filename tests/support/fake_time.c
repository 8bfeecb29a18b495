/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* fake_time.c -- a file that libfaketime reads whenever a server asks for the time. */
#define _GNU_SOURCE
#include "tests/support/fake_time.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/must.h"

static const char *const settings[][2] = {
	{ "FAKETIME_NO_CACHE", "1" },
	{ "FAKETIME_DONT_FAKE_MONOTONIC", "1" },
	{ "TZ", "UTC" },
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* Redis brings a malloc that asks for the time before libfaketime is ready to say it: the
 * one of libc stands before it. */
static void set_preload(void)
{
	char preload[256];
	glob_t found;

	must(glob("/usr/lib/*/faketime/libfaketime.so.1", 0, NULL, &found) == 0);
	snprintf(preload, sizeof(preload), "%s:libc.so.6", found.gl_pathv[0]);
	globfree(&found);
	must(setenv("LD_PRELOAD", preload, 1) == 0);
}

/* Whoever reads the file finds the one instant or the other.  A fraction is read as a
 * double and cut off: with half a microsecond more it is not the one before. */
void fake_time_set(struct fake_time *fake, uint64_t now_us)
{
	time_t then = (time_t)(now_us / 1000000);
	char next[64], text[32];
	struct tm parts;
	FILE *file;

	must(gmtime_r(&then, &parts) &&
	     strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts) > 0);
	snprintf(next, sizeof(next), "%s.next", fake->file);
	file = fopen(next, "w");
	must(file &&
	     fprintf(file, "%s.%06u5\n", text, (unsigned)(now_us % 1000000)) > 0 &&
	     fclose(file) == 0);
	must(rename(next, fake->file) == 0);
}

/* PostgreSQL runs as another user. */
void fake_time_begin(struct fake_time *fake, uint64_t now_us)
{
	strcpy(fake->folder, "/tmp/gale-time-XXXXXX");
	must(mkdtemp(fake->folder) && chmod(fake->folder, 0755) == 0);
	snprintf(fake->file, sizeof(fake->file), "%s/now", fake->folder);
	fake_time_set(fake, now_us);
	must(setenv("FAKETIME_TIMESTAMP_FILE", fake->file, 1) == 0);
	for (size_t i = 0; i < SETTINGS; i++)
		must(setenv(settings[i][0], settings[i][1], 1) == 0);
	set_preload();
}

void fake_time_end(void)
{
	unsetenv("LD_PRELOAD");
	unsetenv("FAKETIME_TIMESTAMP_FILE");
	for (size_t i = 0; i < SETTINGS; i++)
		unsetenv(settings[i][0]);
}

void fake_time_close(struct fake_time *fake)
{
	must(unlink(fake->file) == 0);
	must(rmdir(fake->folder) == 0);
}
