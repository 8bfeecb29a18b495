/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * last_line.h -- a log that keeps the latest line that tells of trouble: the reason of what fails.
 *
 * Threads   last_line_open, last_line_close: one, before and after all others.  The others: any, at once.
 */
#ifndef TOOLS_LAST_LINE_H
#define TOOLS_LAST_LINE_H

#include <pthread.h>

#include <gale/gale.h>

#include "tools/sentence.h"

struct last_line {
	struct gale_log log; /* first: for a runtime's configuration */
	pthread_mutex_t lock;
	struct sentence latest;
};

void last_line_open(struct last_line *line);
void last_line_close(struct last_line *line);

/* What has failed, and behind a colon the latest line, if there is one.  Returns false. */
bool last_line_explain(struct last_line *line, const char *what,
                       struct sentence *ret_why);

#endif
