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
 *     503   GALE_DENY for any other reason: an outage, a closed handle, a mistake of the
 *           program or its configuration; and any GALE_DENY of GALE_ON_OUTAGE_SHARE,
 *           since the fleet's limit may have units left
 *     0     GALE_PENDING: the answer is not known before the completion
 */
GALE_API int gale_http_status(const struct gale_answer *answer);

/*
 * Writes the header lines that fit an answer, each with its CRLF, in the format of
 * draft-ietf-httpapi-ratelimit-headers-11:
 *
 *     RateLimit-Policy: "name";q=100;w=60   limit and window; no w if window_us is below
 *                                           a second
 *     RateLimit: "name";r=99;t=42           units that remain, and seconds until reset;
 *                                           not in an outage, when they are not known
 *     Retry-After: 42                       only for a denial that a wait can help
 *
 * For GALE_PENDING there are no lines.  Units above 999,999,999,999,999, the largest
 * integer of a header, are written as that; r is at most q.  Times are in seconds; t and
 * Retry-After are rounded up, and w is rounded down.
 *
 * Writes at most room bytes, a final 0 included.  Returns the length without that 0; if
 * it is not below room, buf has an empty text.  Returns -1 if the name is NULL or has a
 * byte that is not printable ASCII.
 */
GALE_API int gale_http_headers(const struct gale_answer *answer, const char *name,
                               uint64_t window_us, char *buf, size_t room);

#ifdef __cplusplus
}
#endif
#endif
