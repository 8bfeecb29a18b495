/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* last_line.c -- one line, under a lock. */
#include "tools/last_line.h"

#include <string.h>

static void hear(struct gale_log *self, enum gale_level level, const char *source,
                 const char *said)
{
	struct last_line *line = (struct last_line *)self;

	bool is_hearsay = strncmp(source, "limiter ", strlen("limiter ")) == 0;

	if (level == GALE_LEVEL_INFO)
		return;
	pthread_mutex_lock(&line->lock);
	if (!is_hearsay || line->latest.is[0] == '\0') /* a store says why */
		sentence_say(&line->latest, "%s", said);
	pthread_mutex_unlock(&line->lock);
}

void last_line_open(struct last_line *line)
{
	memset(line, 0, sizeof(*line));
	line->log.write = hear;
	pthread_mutex_init(&line->lock, NULL);
}

void last_line_close(struct last_line *line)
{
	pthread_mutex_destroy(&line->lock);
}

bool last_line_explain(struct last_line *line, const char *what,
                       struct sentence *ret_why)
{
	pthread_mutex_lock(&line->lock);
	sentence_say(ret_why, "%s%s%s", what, line->latest.is[0] ? ": " : "",
	             line->latest.is);
	pthread_mutex_unlock(&line->lock);
	return false;
}
