/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* custom.h -- a rule that the user wrote (gale/strategy.h). */
#ifndef ENGINE_CUSTOM_H
#define ENGINE_CUSTOM_H

#include "engine/rule.h"

struct custom_state {
	uint64_t last_us;    /* of the last call that was allowed */
	uint64_t expires_us; /* as that said */
	uint64_t words[];    /* the strategy's */
};

struct gale_answer custom_step(const struct rule *rule, struct custom_state *state,
                               uint64_t now, uint64_t cost);
struct gale_answer custom_peek(const struct rule *rule,
                               const struct custom_state *state, uint64_t now);
struct gale_outlook custom_forecast(const struct rule *rule,
                                    const struct custom_state *state, uint64_t now,
                                    uint64_t cost);
uint64_t custom_expires(const struct rule *rule, const struct custom_state *state);
bool custom_valid(const struct rule *rule, const struct custom_state *state);

#endif
