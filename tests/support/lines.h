/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lines.h -- what the library has said to its host.
 *
 * Threads   lines_open: one.  The others, and who writes: any, at once.
 * Limits    The latest LINES_MOST lines are kept.
 */
#ifndef TESTS_SUPPORT_LINES_H
#define TESTS_SUPPORT_LINES_H

#include <pthread.h>
#include <stdbool.h>

#include <gale/gale.h>

#define LINES_MOST 64

struct lines {
	struct gale_log log; /* first: for a runtime's configuration */
	pthread_mutex_t lock;
	uint32_t count;             /* so far */
	char text[LINES_MOST][384]; /* level: source: line */
};

void lines_open(struct lines *lines);

/* Is it a part of any? */
bool lines_have(struct lines *lines, const char *what);
/* Waits for it: an answer may come before the line that says why. */
bool lines_will_have(struct lines *lines, const char *what);
/* The same, and asks again until then: who does not ask is not connected again, and a busy
 * machine may let a connection's second pass. */
bool lines_will_have_asking(struct lines *lines, const char *what,
                            void (*ask)(void *arg), void *arg);

/* To stderr, for a test that fails. */
void lines_show(struct lines *lines);

#endif
