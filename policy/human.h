/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * human.h -- numbers, times and rates as people write them.
 *
 *     count      1000, 250k, 2M         whole, with k for thousands and M for millions
 *     duration   250ms, 5 s, 1 minute   whole, with us, ms, s, min, h or d, or in words
 *     rate       100/s, 1000 per minute, 20k per 5 min
 *     part       90%, 92.5 %            with at most one decimal
 *     ppm        500 ppm
 *     decimal    20, 0.5                with at most six decimals
 *     offset     utc, +02:00, -05:30    from UTC
 *     instant    2026-01-31, 2026-01-31T12:00:00Z
 *
 * Each function returns NULL, or what is wrong and how to write it: the end of a sentence that
 * begins with the text.  Pure: it depends on no locale.
 */
#ifndef POLICY_HUMAN_H
#define POLICY_HUMAN_H

#include <stdint.h>

/* Units in a time; 0 us: there is no time in it. */
struct rate {
	uint64_t units;
	uint64_t per_us;
};

const char *human_count(const char *text, uint64_t *ret_count);
const char *human_duration(const char *text, uint64_t *ret_us);
const char *human_rate(const char *text, struct rate *ret_rate);
const char *human_permille(const char *text, uint32_t *ret_permille);
const char *human_ppm(const char *text, uint32_t *ret_ppm);
const char *human_decimal(const char *text, double *ret_number);
const char *human_offset(const char *text, int32_t *ret_minutes);
const char *human_instant(const char *text, uint64_t *ret_us);

#endif
