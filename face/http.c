/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http.c -- an answer as HTTP says it.
 *
 * Threads   Any.
 */
#include <gale/http.h>

static bool is_by_rule(enum gale_why why)
{
	return why == GALE_WHY_RULE || why == GALE_WHY_SPENT ||
	       why == GALE_WHY_TOO_MUCH;
}

int gale_http_status(const struct gale_answer *answer)
{
	switch (answer->verdict) {
	case GALE_ALLOW:
		return 200;
	case GALE_PENDING:
		return 0;
	case GALE_DENY:
		break;
	}
	return is_by_rule(answer->why) ? 429 : 503;
}
