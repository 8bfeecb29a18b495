/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* window.h -- fixed windows, quotas and token budgets: a count that starts anew. */
#ifndef ENGINE_WINDOW_H
#define ENGINE_WINDOW_H

#include "engine/rule.h"

struct window_state {
	uint64_t start_us; /* of the window that used belongs to */
	uint64_t used;
};

struct gale_answer window_step(const struct rule *rule, struct window_state *state,
                               uint64_t now, uint64_t cost);
struct gale_answer window_peek(const struct rule *rule,
                               const struct window_state *state, uint64_t now);
struct gale_outlook window_forecast(const struct rule *rule,
                                    const struct window_state *state, uint64_t now,
                                    uint64_t cost);
/* Where the window of now starts, as the key sees it. */
uint64_t window_start(const struct rule *rule, const struct window_state *state,
                      uint64_t now);
/* How a window that another rule has opened counts here, if its fingerprint says how long it
 * is; is_first: it does not. */
void window_convert(const struct rule *rule, struct window_state *state,
                    uint64_t fingerprint, bool is_first, uint64_t now);
uint64_t window_expires(const struct rule *rule, const struct window_state *state);
bool window_valid(const struct rule *rule, const struct window_state *state);

#endif
