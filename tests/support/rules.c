/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* rules.c -- fifty an hour, a day or a month, said in fourteen ways. */
#include "tests/support/rules.h"

#include <assert.h>

#define HOUR GALE_HOURS(1)
#define UNIT (HOUR / FIFTY) /* the time of one unit, in whole microseconds */

/* burst units go at once, then one place, and so many as may wait. */
static struct gale_rule queue_of(uint64_t burst)
{
	struct gale_rule rule = gale_pacer(FIFTY, HOUR, burst);

	rule.max_wait_us = (FIFTY - burst - 1) * UNIT;
	return rule;
}

struct named_rule fifty_rule(unsigned which)
{
	const struct named_rule rules[] = {
		{ "fixed_window", gale_fixed_window(FIFTY, HOUR) },
		{ "sliding_window", gale_sliding_window(FIFTY, HOUR, 10) },
		{ "sliding_log", gale_sliding_log(FIFTY, HOUR) },
		{ "gcra", gale_gcra(FIFTY, HOUR, FIFTY) },
		{ "token_bucket", gale_token_bucket(FIFTY, FIFTY, HOUR) },
		{ "leaky_bucket", gale_leaky_bucket(FIFTY, HOUR, (FIFTY - 1) * UNIT) },
		{ "quota_monthly", gale_quota_monthly(FIFTY, 840) },
		{ "quota_weekly", gale_quota_weekly(FIFTY, 60, 1) },
		{ "quota_daily", gale_quota_daily(FIFTY, -330) },
		{ "quota_anchored", gale_quota_anchored(FIFTY, HOUR, 12345678) },
		{ "quota_rolling", gale_quota_rolling(FIFTY, HOUR) },
		{ "token_budget", gale_token_budget(FIFTY, HOUR) },
		{ "pacer", queue_of(20) },
		{ "pacer_limit", gale_pacer_limit(FIFTY, HOUR, FIFTY - 1) },
	};

	static_assert(sizeof(rules) / sizeof(rules[0]) == FIFTY_RULES, "all of them");
	return rules[which % FIFTY_RULES];
}
