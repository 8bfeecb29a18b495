/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* lines.c -- kept under a lock, as shards write them. */
#include "tests/support/lines.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/must.h"

static void write_line(struct gale_log *self, enum gale_level level, const char *source,
                       const char *line)
{
	struct lines *lines = (struct lines *)self;

	pthread_mutex_lock(&lines->lock);
	snprintf(lines->text[lines->count++ % LINES_MOST], sizeof(lines->text[0]),
	         "%s: %s: %s", gale_level_name(level), source, line);
	pthread_mutex_unlock(&lines->lock);
}

void lines_open(struct lines *lines)
{
	memset(lines, 0, sizeof(*lines));
	lines->log.write = write_line;
	must(pthread_mutex_init(&lines->lock, NULL) == 0);
}

bool lines_have(struct lines *lines, const char *what)
{
	bool found = false;

	pthread_mutex_lock(&lines->lock);
	for (int i = 0; i < LINES_MOST; i++)
		found |= strstr(lines->text[i], what) != NULL;
	pthread_mutex_unlock(&lines->lock);
	return found;
}

struct saying {
	struct lines *lines;
	const char *what;
	void (*ask)(void *arg);
	void *arg;
};

static bool is_said(void *arg)
{
	const struct saying *saying = arg;

	if (saying->ask)
		saying->ask(saying->arg);
	return lines_have(saying->lines, saying->what);
}

bool lines_will_have_asking(struct lines *lines, const char *what,
                            void (*ask)(void *arg), void *arg)
{
	struct saying saying = { lines, what, ask, arg };

	return becomes_true(is_said, &saying);
}

bool lines_will_have(struct lines *lines, const char *what)
{
	return lines_will_have_asking(lines, what, NULL, NULL);
}

void lines_show(struct lines *lines)
{
	pthread_mutex_lock(&lines->lock);
	for (int i = 0; i < LINES_MOST; i++)
		if (lines->text[i][0] != '\0')
			fprintf(stderr, "%s\n", lines->text[i]);
	pthread_mutex_unlock(&lines->lock);
}
