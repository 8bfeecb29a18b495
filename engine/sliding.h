/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* sliding.h -- a window that slides in buckets. */
#ifndef ENGINE_SLIDING_H
#define ENGINE_SLIDING_H

#include "engine/rule.h"

struct sliding_state {
	uint64_t tick;     /* the newest bucket, counted from 1970 */
	uint64_t counts[]; /* buckets + 1 of them; bucket b is at b mod (buckets + 1) */
};

struct gale_answer sliding_step(const struct rule *rule, struct sliding_state *state,
                                uint64_t now, uint64_t cost);
struct gale_answer sliding_peek(const struct rule *rule,
                                const struct sliding_state *state, uint64_t now);
struct gale_outlook sliding_forecast(const struct rule *rule,
                                     const struct sliding_state *state, uint64_t now,
                                     uint64_t cost);
/* The counts of so many buckets over another period, in ours; *state has room for both. */
void sliding_convert(const struct rule *rule, struct sliding_state *state,
                     const struct sliding_state *former, uint64_t buckets,
                     uint64_t period, uint64_t now);
/* All of them count as if they had come at that instant. */
void sliding_lump(const struct rule *rule, struct sliding_state *state,
                  const struct sliding_state *former, uint64_t buckets, uint64_t now);
uint64_t sliding_expires(const struct rule *rule, const struct sliding_state *state);
bool sliding_valid(const struct rule *rule, const struct sliding_state *state);

#endif
