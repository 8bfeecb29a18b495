/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http.h -- answers as HTTP says them: a status, header lines, and a problem.
 *
 *	struct gale_answer answer = gale_ask(seat, limiter, key, key_len, 1, tag);
 *	struct gale_http_policy policy = { .name = "api", .answer = &answer };
 *	char lines[GALE_HTTP_HEADERS_ROOM(1)];
 *
 *	switch (gale_http_status(&answer)) {
 *	case 0:   wait for the completion;
 *	case 200: serve;
 *	case 429: the client has used up its limit;
 *	case 503: the client has done nothing wrong: the limiter could not decide;
 *	}
 *	gale_http_headers(&policy, 1, NULL, lines, sizeof(lines), &length);
 *
 * docs/http.md shows whole replies, and says what each line means.
 *
 * Threads   Any: plain functions of their arguments.  They allocate nothing.
 * Room      A text that does not fit into buf is GALE_ERR_ROOM.  After any error buf has
 *           an empty text, and never a part of one.
 */
#ifndef GALE_HTTP_H
#define GALE_HTTP_H

#include <gale/errors.h>
#include <gale/rule.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The status that fits an answer:
 *
 *     200   GALE_ALLOW, for whatever reason
 *     429   GALE_DENY by the rule: GALE_WHY_RULE, GALE_WHY_SPENT, GALE_WHY_TOO_MUCH
 *     503   GALE_DENY for any other reason: an outage, a guard, a closed handle, a mistake
 *           of the program or its configuration; and any GALE_DENY of
 *           GALE_ON_OUTAGE_SHARE, since the fleet's limit may have units left
 *     0     GALE_PENDING: the answer is not known before the completion
 *
 * The status of several answers is that of their gale_combine.
 */
GALE_API int gale_http_status(const struct gale_answer *answer);

/* The unit of a limit: what a client may have so many of. */
enum gale_http_unit {
	GALE_HTTP_REQUESTS, /* or a unit that has no name in the draft */
	GALE_HTTP_CONTENT_BYTES,
	GALE_HTTP_CONCURRENT_REQUESTS, /* of a guard */
};

#define GALE_HTTP_NAME_MAX 64

/*
 * A limit that a request was held to, as its client sees it.  Zero it before you fill it.
 *
 * A refusal by a guard becomes an answer like this:
 *
 *	struct gale_answer refusal = { .verdict = entry.verdict, .why = entry.why,
 *	                               .limit = entry.limit };
 */
struct gale_http_policy {
	const char *name; /* 1 to GALE_HTTP_NAME_MAX bytes of printable ASCII */
	const struct gale_answer *answer;
	/* The time in which answer->limit units come: the window; of GCRA and token
	 * buckets, burst * period / limit.  Below a second, or if it is not always the
	 * same, as with months: 0. */
	uint64_t window_us;
	enum gale_http_unit unit;
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[4];
};

/* Zero it before you fill it. */
struct gale_http_options {
	/* Writes X-RateLimit-Limit, -Remaining and -Reset, too. */
	bool legacy;
	/* The time of day, as seconds since 1970 UTC: X-RateLimit-Reset is then a time of
	 * day.  0: it is how many seconds are left. */
	uint64_t legacy_utc_s;
	/* Is added to t, to X-RateLimit-Reset and to Retry-After.  Give each reply another
	 * random time, so that not all clients come back at once. */
	uint64_t later_us;
	/* At most so many units for each second until t are told as remaining.  It keeps
	 * clients from spending a large rest at the end of a long window.  0: no bound. */
	uint64_t remaining_per_second;
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[4];
};

/* How much room always suffices for so many policies. */
#define GALE_HTTP_HEADERS_ROOM(count) ((size_t)(count)*384 + 192)
#define GALE_HTTP_PROBLEM_ROOM(count) ((size_t)(count)*132 + 224)

/*
 * Writes the header lines that fit the answers, each with its CRLF, as in
 * draft-ietf-httpapi-ratelimit-headers-11:
 *
 *     RateLimit-Policy: "name";q=100;w=60   limit and window, of each policy
 *     RateLimit: "name";r=99;t=42           units that remain, and seconds until reset;
 *                                           not of an answer that does not know them, as
 *                                           in an outage
 *     Retry-After: 42                       only for a denial that a wait can help
 *     X-RateLimit-Limit: 100                options->legacy: of the policy that decides
 *     X-RateLimit-Remaining: 99             (gale_combine)
 *     X-RateLimit-Reset: 42
 *
 * A policy whose answer is GALE_PENDING, or knows no limit, has no lines.  Units above
 * 999,999,999,999,999, the largest integer of a header, are written as that; r is at
 * most q.  Times are in seconds; t and Retry-After are rounded up, and w is rounded down.
 * The t of a denial that a wait can help is not after Retry-After.
 *
 * options may be NULL.  buf gets a final 0; *ret_length is the length without it.
 */
GALE_API enum gale_err gale_http_headers(const struct gale_http_policy *policies,
                                         size_t count,
                                         const struct gale_http_options *options,
                                         char *buf, size_t room, size_t *ret_length);

/*
 * Writes the body that fits a denial, as application/problem+json (RFC 9457), with the
 * types of the draft: quota-exceeded for 429, and temporary-reduced-capacity for 503 by an
 * outage or a guard.  Other reasons for 503 have no type.  "violated-policies" are the
 * policies whose answers have that status.  If gale_combine of the answers is no denial,
 * the body is empty.
 */
GALE_API enum gale_err gale_http_problem(const struct gale_http_policy *policies,
                                         size_t count, char *buf, size_t room,
                                         size_t *ret_length);

#ifdef __cplusplus
}
#endif
#endif
