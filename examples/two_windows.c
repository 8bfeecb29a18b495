/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * two_windows.c -- three a second and five a minute, as one rule of our own.
 *
 *     two_windows [URL]      of a store; memory: if there is none
 *
 * A key has four words: for each window where it starts, and what was used of it.  Only
 * step knows that; the store keeps words.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include <gale/gale.h>
#include <gale/strategy.h>

#define WINDOWS 2

static struct gale_ruling step(const struct gale_strategy *self,
                               const struct gale_rule *rule, uint64_t *words,
                               uint64_t now_us, uint64_t cost)
{
	struct gale_ruling ruling = { GALE_ALLOW, rule->limit, 0, 0 };

	for (int i = 0; i < WINDOWS; i++) {
		uint64_t limit = self->parameters[2 * i];
		uint64_t length_us = self->parameters[2 * i + 1];
		uint64_t start_us = now_us - now_us % length_us;
		uint64_t turns_us = start_us + length_us - now_us;
		uint64_t used = words[2 * i] == start_us ? words[2 * i + 1] : 0;
		uint64_t left = used < limit ? limit - used : 0;

		if (cost > left && ruling.retry_after_us < turns_us)
			ruling.retry_after_us = turns_us;
		if (ruling.remaining > left)
			ruling.remaining = left;
		if (ruling.reset_after_us < turns_us)
			ruling.reset_after_us = turns_us;
		words[2 * i] = start_us;
		words[2 * i + 1] = used + cost; /* not kept if it is denied */
	}
	if (cost > rule->limit)
		ruling.retry_after_us = GALE_NEVER;
	if (ruling.retry_after_us > 0)
		ruling.verdict = GALE_DENY;
	else
		ruling.remaining -= cost;
	return ruling;
}

static const struct gale_strategy two_windows = {
	.name = "two windows/1",
	.words = 2 * WINDOWS,
	.parameters = { 3, GALE_SECONDS(1), 5, GALE_MINUTES(1) },
	.step = step,
};

static void wait_us(uint64_t us)
{
	struct timespec time = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&time, NULL);
}

/* Asks until it would have to wait for longer than a second. */
static void ask(struct gale_seat *seat, struct gale_limiter *limiter)
{
	struct gale_answer answer;

	do {
		answer = gale_wait(seat, limiter, "alice", 5, 1, GALE_SECONDS(1));
		if (answer.verdict == GALE_ALLOW) {
			printf("yes, %d left\n", (int)answer.remaining);
			continue;
		}
		printf("no, %s\n", gale_why_text(answer.why));
		if (answer.retry_after_us <= GALE_SECONDS(1))
			wait_us(answer.retry_after_us);
	} while (answer.retry_after_us <= GALE_SECONDS(1) &&
	         answer.why == GALE_WHY_RULE);
}

int main(int argc, char **argv)
{
	struct gale_store_config store = { .url = argc > 1 ? argv[1] : NULL };
	struct gale_limiter_config config = {
		.name = "api",
		.rule = gale_custom(&two_windows, /* limit= */ 3, GALE_MINUTES(1)),
	};
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;

	if (gale_runtime_open(NULL, &runtime) ||
	    gale_store_open(runtime, &store, &config.store) ||
	    gale_limiter_open(runtime, &config, &limiter) || gale_join(runtime, &seat))
		return 1;
	ask(seat, limiter);
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(config.store);
	gale_runtime_close(runtime);
	return 0;
}
