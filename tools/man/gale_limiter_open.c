/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_limiter_open.c -- open a limiter, change its rule, and count its answers
 *
 * Errors   RUNTIME CONFIG RET MEMORY STORE NAME MODE OUTAGE RULE_KIND RULE_CADENCE RULE_LIMIT
 *          RULE_PERIOD RULE_BURST RULE_SPAN RULE_BUCKETS RULE_WAIT RULE_ANCHOR RULE_ALLOWANCE
 *          RULE_OFFSET RULE_WEEKDAY RULE_UNUSED RULE_STRATEGY LIMITER FORKED FENCED CANNOT_LEASE
 *          SIZING PATIENCE DRIFT CARRY_OVER SIZE RULE_OTHER OTHER_RULE
 *
 * Prints
 *	denied 1, and 1 after the limit was raised
 *	mode: this rule cannot be leased, or its window is below 1 ms; use GALE_STRICT or GALE_CACHED_DENY
 */
#include <stdio.h>

#include <gale/gale.h>

static struct gale_runtime *runtime;
static struct gale_seat *seat;

static int denied_of_two(struct gale_limiter *limiter)
{
	struct gale_limiter_counts counts;

	for (int call = 0; call < 2; call++)
		(void)gale_wait(seat, limiter, "bob", 3, 1, GALE_SECONDS(5));
	return gale_limiter_stats(limiter, &counts) ? -1 : (int)counts.denied;
}

int main(void)
{
	struct gale_limiter_config api = { .name = "api", .mode = GALE_STRICT };
	struct gale_rule larger = gale_fixed_window(3, GALE_DAYS(1));
	struct gale_limiter *limiter, *other;
	int denied;

	api.rule = gale_fixed_window(1, GALE_DAYS(1));
	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &api.store) ||
	    gale_limiter_open(runtime, &api, &limiter))
		return 1;
	denied = denied_of_two(limiter);
	if (gale_limiter_set_rule(limiter, &larger))
		return 1;
	printf("denied %d, and %d after the limit was raised\n", denied,
	       denied_of_two(limiter));

	api.mode = GALE_LEASED;
	api.rule = gale_sliding_log(3, GALE_DAYS(1));
	puts(gale_err_text(gale_limiter_open(runtime, &api, &other)));

	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(api.store);
	gale_runtime_close(runtime);
	return 0;
}
