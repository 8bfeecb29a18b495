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

/* When all is over that was granted until then; places are booked ahead. */
static uint64_t end_of_grants(const struct rule *rule, uint64_t last_us)
{
	switch (rule->is.kind) {
	case GALE_RULE_FIXED_WINDOW:
	case GALE_RULE_QUOTA:
	case GALE_RULE_TOKEN_BUDGET:
		return end_of_window(rule, last_us);
	case GALE_RULE_PACER:
		return last_us + rule_window_us(rule) + rule->is.max_wait_us;
	default:
		return last_us + rule_window_us(rule);
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t quarantine_until(const struct rule *rule, uint64_t since_us, uint64_t most_us)
{
	if (since_us == 0)
		return 0;
	return earlier(end_of_grants(rule, since_us + QUARANTINE_SKEW_US),
	               since_us + most_us);
}

uint64_t quarantine_of_windows(uint64_t period_us, uint64_t since_us, uint64_t most_us)
{
	uint64_t last_us = since_us + QUARANTINE_SKEW_US;
	uint64_t end_us = last_us - last_us % period_us + period_us;

	return since_us > 0 ? earlier(end_us, since_us + most_us) : 0;
}
