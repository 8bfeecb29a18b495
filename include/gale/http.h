/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http.h -- turns answers into parts of an HTTP reply: the status, header lines, and the
 * body of a denial.
 *
 *	struct gale_answer answer = gale_ask(seat, limiter, key, key_len, 1, tag);
 *	struct gale_http_policy policy = { .name = "api", .answer = &answer };
 *	char lines[GALE_HTTP_HEADERS_ROOM(1)];
 *	size_t length;
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
 * Threads   Any thread may call these functions.  They use only their arguments, and
 *           allocate nothing.
 * Room      If a text does not fit into buf, the result is GALE_ERR_ROOM.  After any error
 *           the text in buf is empty.
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
 *           of the program or its configuration.  A denial in an outage is 503 also with
 *           GALE_ON_OUTAGE_SHARE: the fleet's limit may have units left
 *     0     GALE_PENDING: the answer is not known before the completion
 *
 * If a request has several answers, combine them with gale_combine first.
 */
GALE_API int gale_http_status(const struct gale_answer *answer);

/* What a limit counts. */
enum gale_http_unit {
	GALE_HTTP_REQUESTS, /* also for any unit that is not in this list */
	GALE_HTTP_CONTENT_BYTES,
	GALE_HTTP_CONCURRENT_REQUESTS, /* of a guard */
};

#define GALE_HTTP_NAME_MAX 64

/*
 * A limit that a request was checked against, as its client sees it.  Zero it before you
 * fill it.
 *
 * A refusal by a guard becomes an answer like this:
 *
 *	struct gale_answer refusal = { .verdict = entry.verdict, .why = entry.why,
 *	                               .limit = entry.limit };
 */
struct gale_http_policy {
	const char *name; /* 1 to GALE_HTTP_NAME_MAX bytes of printable ASCII */
	const struct gale_answer *answer;
	/* The time in which answer->limit units become available: the window; for GCRA and
	 * token buckets, burst * period / limit.  0, or less than a second: w is left out.
	 * Use 0 if the time varies, as with months. */
	uint64_t window_us;
	enum gale_http_unit unit;
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[4];
};

/* Zero it before you fill it. */
struct gale_http_options {
	/* Writes X-RateLimit-Limit, -Remaining and -Reset, too. */
	bool legacy;
	/* 0: X-RateLimit-Reset is how many seconds are left until the reset.  Else this is
	 * the time now, in seconds since 1970 UTC, and X-RateLimit-Reset is the time of the
	 * reset, in the same form. */
	uint64_t legacy_utc_s;
	/* gale adds this time to all times in the lines: t, Retry-After and
	 * X-RateLimit-Reset.  Give each reply another random time, so that clients do not
	 * all come back at once. */
	uint64_t later_us;
	/* A bound of the remaining units that a client learns: r (see gale_http_headers)
	 * is at most this number times t.  So clients cannot spend many units at the end of
	 * a long window.  0: no bound. */
	uint64_t remaining_per_second;
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[4];
};

/* A buffer of this many bytes is always large enough for count policies. */
#define GALE_HTTP_HEADERS_ROOM(count) ((size_t)(count)*384 + 192)
#define GALE_HTTP_PROBLEM_ROOM(count) ((size_t)(count)*132 + 224)

/*
 * Writes the header lines that fit the answers, each with its CRLF, as in
 * draft-ietf-httpapi-ratelimit-headers-11:
 *
 *     RateLimit-Policy: "name";q=100;w=60   limit and window, of each policy
 *     RateLimit: "name";r=99;t=42           units that remain, and seconds until reset;
 *                                           left out if the answer does not know them, as
 *                                           in an outage
 *     Retry-After: 42                       only if the call is denied, and may pass later
 *     X-RateLimit-Limit: 100                these three only with options->legacy, and of
 *     X-RateLimit-Remaining: 99             the one policy that decides (ret_binding of
 *     X-RateLimit-Reset: 42                 gale_combine)
 *
 * A policy whose answer is GALE_PENDING, or has the limit 0, is left out.  A number of
 * units above 999,999,999,999,999, the largest integer of a header, is written as that
 * integer.  r is at most q.  Times are in seconds; t and Retry-After are rounded up, and w
 * is rounded down.  If a denied call may pass later, t is at most the time until it may
 * pass.
 *
 * options may be NULL.  buf gets a final 0; *ret_length is the length without it.
 */
GALE_API enum gale_err gale_http_headers(const struct gale_http_policy *policies,
                                         size_t count,
                                         const struct gale_http_options *options,
                                         char *buf, size_t room, size_t *ret_length);

/*
 * Writes the body that fits a denial, as application/problem+json (RFC 9457).  Its type is
 * one of the draft's: quota-exceeded for 429, and temporary-reduced-capacity for 503 by an
 * outage or a guard.  A body of these two types lists the policies whose answers have that
 * status ("violated-policies").  For any other 503 the type is about:blank, without a list.
 * If gale_combine of the answers is no denial, the body is empty.
 */
GALE_API enum gale_err gale_http_problem(const struct gale_http_policy *policies,
                                         size_t count, char *buf, size_t room,
                                         size_t *ret_length);

#ifdef __cplusplus
}
#endif
#endif
