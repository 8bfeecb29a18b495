/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* log.h -- the exact trailing window: a stamp for each admission. */
#ifndef ENGINE_LOG_H
#define ENGINE_LOG_H

#include "engine/rule.h"

struct log_entry {
	uint64_t at_us;
	uint64_t units;
};

struct log_state {
	uint64_t count;
	struct log_entry entries[]; /* oldest first */
};

struct gale_answer log_step(const struct rule *rule, struct log_state *state,
                            uint64_t now, uint64_t cost);
struct gale_answer log_peek(const struct rule *rule, const struct log_state *state,
                            uint64_t now);
struct gale_outlook log_forecast(const struct rule *rule, const struct log_state *state,
                                 uint64_t now, uint64_t cost);
uint64_t log_expires(const struct rule *rule, const struct log_state *state);
bool log_valid(const struct log_state *state);

#endif
