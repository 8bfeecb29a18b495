/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_custom.c -- make a rule of your own
 *
 * Prints
 *	3 of 5 calls passed, and none comes back
 */
#include <stdio.h>

#include <gale/gale.h>
#include <gale/strategy.h>

/* So many units, and then no more.  words[0] counts them. */
static struct gale_ruling step(const struct gale_strategy *self,
                               const struct gale_rule *rule, uint64_t *words,
                               uint64_t now_us, uint64_t cost)
{
	struct gale_ruling ruling = { .verdict = GALE_ALLOW,
		                      .reset_after_us = rule->period_us };

	(void)self;
	(void)now_us;
	if (cost > rule->limit - words[0]) {
		ruling.verdict = GALE_DENY;
		ruling.retry_after_us = GALE_NEVER;
	} else {
		words[0] += cost;
	}
	ruling.remaining = rule->limit - words[0];
	return ruling;
}

int main(void)
{
	static const struct gale_strategy once = { .name = "once/1",
		                                   .words = 1,
		                                   .step = step };
	struct gale_limiter_config config = { .name = "trial" };
	struct gale_answer answer = { 0 };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	int passed = 0;

	config.rule = gale_custom(&once, 3, GALE_DAYS(1));
	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &config.store) ||
	    gale_limiter_open(runtime, &config, &limiter))
		return 1;
	for (int call = 0; call < 5; call++) {
		answer = gale_wait(seat, limiter, "bob", 3, 1, GALE_SECONDS(5));
		passed += answer.verdict == GALE_ALLOW;
	}
	printf("%d of 5 calls passed, and %s comes back\n", passed,
	       answer.retry_after_us == GALE_NEVER ? "none" : "one");
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(config.store);
	gale_runtime_close(runtime);
	return 0;
}
