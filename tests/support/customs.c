/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* customs.c -- two that are right, and ten that are not. */
#include "tests/support/customs.h"

#include <string.h>

/* ---- A fixed window: where it starts, and what was used of it -------------------- */

static struct gale_ruling window_step(const struct gale_strategy *self,
                                      const struct gale_rule *rule, uint64_t *words,
                                      uint64_t now_us, uint64_t cost)
{
	uint64_t start = now_us - now_us % rule->period_us;
	uint64_t rest = rule->limit - (words[0] == start ? words[1] : 0);
	struct gale_ruling ruling = {
		.verdict = GALE_DENY,
		.remaining = rest,
		.reset_after_us = start + rule->period_us - now_us,
	};

	(void)self;
	if (cost > rest) {
		ruling.retry_after_us =
		    cost > rule->limit ? GALE_NEVER : ruling.reset_after_us;
		return ruling;
	}
	words[0] = start;
	words[1] = rule->limit - rest + cost;
	ruling.verdict = GALE_ALLOW;
	ruling.remaining -= cost;
	return ruling;
}

static const struct gale_strategy window = { .name = "window/1",
	                                     .words = 2,
	                                     .step = window_step };

struct gale_rule custom_window(uint64_t limit, uint64_t window_us)
{
	return gale_custom(&window, limit, window_us);
}

/* ---- A gcra: when the bucket is full again, in 1/rate microseconds --------------- */

static uint64_t round_up(uint64_t n, uint64_t d)
{
	return n / d + (n % d > 0);
}

static struct gale_ruling gcra_step(const struct gale_strategy *self,
                                    const struct gale_rule *rule, uint64_t *words,
                                    uint64_t now_us, uint64_t cost)
{
	uint64_t rate = self->parameters[0], period = self->parameters[1];
	uint64_t full = rule->limit * period; /* all in 1/rate microseconds */
	uint64_t ahead = words[0] >= now_us ? (words[0] - now_us) * rate + words[1] : 0;
	uint64_t after = ahead + cost * period;

	if (cost > rule->limit || after > full)
		return (struct gale_ruling){
			.verdict = GALE_DENY,
			.remaining = (full - ahead) / period,
			.reset_after_us = round_up(ahead, rate),
			.retry_after_us = cost > rule->limit
			                      ? GALE_NEVER
			                      : round_up(after - full, rate),
		};
	words[0] = now_us + after / rate;
	words[1] = after % rate;
	return (struct gale_ruling){
		.verdict = GALE_ALLOW,
		.remaining = (full - after) / period,
		.reset_after_us = round_up(after, rate),
	};
}

static const struct gale_strategy gcra = {
	.name = "gcra/1",
	.words = 2,
	.parameters = { CUSTOM_RATE, CUSTOM_PERIOD_US },
	.step = gcra_step,
};

static const struct gale_strategy quick_gcra = {
	.name = "gcra/1",
	.words = 2,
	.parameters = { 1000, GALE_MILLIS(20) },
	.step = gcra_step,
};

static struct gale_rule with_burst(const struct gale_strategy *strategy, uint64_t burst)
{
	return gale_custom(
	    strategy, burst,
	    round_up(burst * strategy->parameters[1], strategy->parameters[0]));
}

struct gale_rule custom_gcra(uint64_t burst)
{
	return with_burst(&gcra, burst);
}

struct gale_rule custom_quick_gcra(uint64_t burst)
{
	return with_burst(&quick_gcra, burst);
}

/* ---- Those that are wrong -------------------------------------------------------- */

static struct gale_ruling broken_step(const struct gale_strategy *self,
                                      const struct gale_rule *rule, uint64_t *words,
                                      uint64_t now_us, uint64_t cost)
{
	struct gale_ruling ruling = window_step(self, rule, words, now_us, cost);

	switch ((enum fault)self->parameters[0]) {
	case FAULT_PENDING:
		ruling.verdict = GALE_PENDING;
		break;
	case FAULT_VERDICT:
		ruling.verdict = (enum gale_verdict)77;
		break;
	case FAULT_NEGATIVE:
		ruling.remaining = (uint64_t)-1;
		break;
	case FAULT_GENEROUS:
		ruling.remaining = rule->limit + 1;
		break;
	case FAULT_RETRY_OF_ALLOW:
		ruling.verdict = GALE_ALLOW;
		ruling.retry_after_us = 1;
		break;
	case FAULT_RETRY_TOO_LONG:
		ruling.verdict = GALE_DENY;
		ruling.retry_after_us = GALE_SPAN_MAX_US + 1;
		break;
	case FAULT_RESET_TOO_LONG:
		ruling.reset_after_us = rule->period_us + 1;
		break;
	case FAULT_RESET_FOR_EVER:
		ruling.reset_after_us = GALE_NEVER;
		break;
	case FAULT_WORD:
		ruling.verdict = GALE_ALLOW;
		ruling.retry_after_us = 0;
		words[1] = GALE_UNITS_MAX + 1;
		break;
	case FAULT_ALL_BITS:
		memset(&ruling, 0xff, sizeof(ruling));
		memset(words, 0xff, self->words * sizeof(*words));
		break;
	case FAULT_NONE:
	case FAULTS:
		break;
	}
	return ruling;
}

#define BROKEN(fault)                                                                  \
	[fault] = { .name = "broken",                                                  \
		    .words = 2,                                                        \
		    .parameters = { fault },                                           \
		    .step = broken_step }

static const struct gale_strategy broken[FAULTS] = {
	BROKEN(FAULT_NONE),           BROKEN(FAULT_PENDING),
	BROKEN(FAULT_VERDICT),        BROKEN(FAULT_NEGATIVE),
	BROKEN(FAULT_GENEROUS),       BROKEN(FAULT_RETRY_OF_ALLOW),
	BROKEN(FAULT_RETRY_TOO_LONG), BROKEN(FAULT_RESET_TOO_LONG),
	BROKEN(FAULT_RESET_FOR_EVER), BROKEN(FAULT_WORD),
	BROKEN(FAULT_ALL_BITS),
};

struct gale_rule custom_broken(enum fault fault)
{
	return gale_custom(&broken[fault], 50, GALE_HOURS(1));
}
