/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* quarantine.c -- the end of what was promised. */
#include "stores/quarantine.h"

#include "engine/window.h"

static uint64_t end_of_window(const struct rule *rule, uint64_t now_us)
{
	struct window_state state = { 0 };

	state.start_us = window_start(rule, &state, now_us);
	state.used = 1;
	return window_expires(rule, &state);
}

uint64_t quarantine_until(const struct rule *rule, uint64_t since_us, uint64_t most_us)
{
	uint64_t end_us, most = since_us + most_us;

	if (since_us == 0)
		return 0;
	switch (rule->is.kind) {
	case GALE_RULE_FIXED_WINDOW:
	case GALE_RULE_QUOTA:
	case GALE_RULE_TOKEN_BUDGET:
		end_us = end_of_window(rule, since_us);
		break;
	default:
		end_us = since_us + rule_window_us(rule);
	}
	return end_us < most ? end_us : most;
}
