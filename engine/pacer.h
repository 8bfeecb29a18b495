/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* pacer.h -- places in a queue that leaves at an even rate. */
#ifndef ENGINE_PACER_H
#define ENGINE_PACER_H

#include "engine/rule.h"

#define PACER_GAPS 4

/* A place that was given back.  Empty when from equals to. */
struct pacer_gap {
	struct gale_slot from;
	struct gale_slot to;
};

struct pacer_state {
	uint64_t water;      /* burst in use, in units ... */
	uint64_t water_part; /* ... and 1/(1000 * period) units */
	struct gale_slot
	    free; /* the end of the last place, or the last call when idle */
	struct pacer_gap gaps[PACER_GAPS];
	uint64_t period_us; /* that limit places leave in; parts are in 1/limit */
};

struct gale_answer pacer_step(const struct rule *rule, struct pacer_state *state,
                              uint64_t now, uint64_t cost);
struct gale_answer pacer_peek(const struct rule *rule, const struct pacer_state *state,
                              uint64_t now);
struct gale_outlook pacer_forecast(const struct rule *rule,
                                   const struct pacer_state *state, uint64_t now,
                                   uint64_t cost);
/* Units that could go at once now. */
uint64_t pacer_dry(const struct rule *rule, const struct pacer_state *state,
                   uint64_t now);
bool pacer_cancel(const struct rule *rule, struct pacer_state *state, uint64_t now,
                  uint64_t cost, struct gale_slot slot);
/* The queue ends where it ended, and burst that was in use is.  Places that were given back are
 * not given again.  False: it is no state of a pacer of that limit. */
bool pacer_convert(const struct rule *rule, struct pacer_state *state, uint64_t limit);
/* The same where the period is not known: all burst is in use. */
void pacer_exhaust(const struct rule *rule, struct pacer_state *state);
uint64_t pacer_expires(const struct rule *rule, const struct pacer_state *state);
bool pacer_valid(const struct rule *rule, const struct pacer_state *state);

#endif
