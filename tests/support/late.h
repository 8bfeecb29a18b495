/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * late.h -- an answer that no server gave in time, and one that a server gave.
 *
 * What was done at a server that was late is not known.  On a small machine with other things
 * to do that is nobody's fault; who counts what was admitted counts it, too.
 *
 * Threads   Any.
 */
#ifndef TESTS_SUPPORT_LATE_H
#define TESTS_SUPPORT_LATE_H

#include <stdbool.h>

#include <gale/gale.h>

static inline bool is_late(struct gale_answer answer)
{
	return answer.why == GALE_WHY_LATE || answer.why == GALE_WHY_DOWN;
}

/* A server that is new, or has forgotten, says that it grants nothing yet. */
static inline bool is_of_server(struct gale_answer answer)
{
	return answer.why == GALE_WHY_RULE || answer.why == GALE_WHY_QUARANTINE;
}

#endif
