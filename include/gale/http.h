/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http.h -- an answer as HTTP says it.
 *
 *	struct gale_answer answer = gale_ask(seat, limiter, key, key_len, 1, tag);
 *
 *	switch (gale_http_status(&answer)) {
 *	case 0:  wait for the completion;
 *	case 200: serve;
 *	case 429: the client has used up its limit;
 *	case 503: the client has done nothing wrong: the limiter could not decide;
 *	}
 *
 * Threads   Any: plain functions of an answer.
 */
#ifndef GALE_HTTP_H
#define GALE_HTTP_H

#include <gale/rule.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The status that fits an answer:
 *
 *     200   GALE_ALLOW, for whatever reason
 *     429   GALE_DENY by the rule: GALE_WHY_RULE, GALE_WHY_SPENT, GALE_WHY_TOO_MUCH
 *     503   GALE_DENY for any other reason: an outage or a quarantine, something closed, a mistake of the
 *           program or its configuration.  So is a denial by an outage's share
 *           (GALE_ON_OUTAGE_SHARE): the fleet's limit may not be used up
 *     0     GALE_PENDING: there is nothing to say before the completion comes
 */
GALE_API int gale_http_status(const struct gale_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
