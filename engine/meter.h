/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* meter.h -- GCRA and token buckets: one instant that tells how much has accrued. */
#ifndef ENGINE_METER_H
#define ENGINE_METER_H

#include "engine/rule.h"

struct meter_state {
	struct gale_slot tat; /* the theoretical arrival time: when all has accrued */
	uint64_t last_us;     /* token bucket: the latest instant that took from it */
	uint64_t
	    period_us; /* that limit units accrue in; the parts of tat are in 1/limit */
};

struct gale_answer meter_step(const struct rule *rule, struct meter_state *state,
                              uint64_t now, uint64_t cost);
struct gale_answer meter_peek(const struct rule *rule, const struct meter_state *state,
                              uint64_t now);
struct gale_outlook meter_forecast(const struct rule *rule,
                                   const struct meter_state *state, uint64_t now,
                                   uint64_t cost);
/* The units that were short of full are short of full here.  False: it is no state of a
 * meter that gains limit units a period. */
bool meter_convert(const struct rule *rule, struct meter_state *state, uint64_t limit,
                   uint64_t now);
/* Nothing has accrued yet. */
void meter_drain(const struct rule *rule, struct meter_state *state, uint64_t now);
uint64_t meter_expires(const struct rule *rule, const struct meter_state *state);
bool meter_valid(const struct rule *rule, const struct meter_state *state);

#endif
