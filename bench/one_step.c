/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * one_step.c -- one thing, so many times: what instructions.sh counts.
 *
 *	one_step fixed_window|gcra|token_bucket|ask|nothing COUNT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/gale.h>

#include "engine/rule.h"

#define START GALE_DAYS(20700) /* 2026 */

static void must(bool works, const char *what)
{
	if (works)
		return;
	fprintf(stderr, "one_step: %s\n", what);
	exit(2);
}

static void keep(const void *what)
{
	__asm__ volatile("" : : "r"(what) : "memory");
}

/* A millisecond apart, at the rate that the rule lets through. */
static void steps(struct gale_rule config, uint64_t count)
{
	struct gale_answer answer = { .verdict = GALE_ALLOW };
	uint64_t words[4] = { 0 }, now = START;
	struct rule rule;

	must(rule_compile(&config, &rule) == GALE_ERR_OK, "a rule");
	must(rule.words <= 4, "a state is too long");
	answer = rule_step(&rule, words, now, 500);
	for (uint64_t i = 0; i < count; i++) {
		now += GALE_MILLIS(1);
		answer = rule_step(&rule, words, now, 1);
		keep(&answer);
	}
	must(answer.verdict == GALE_ALLOW, "a step was denied");
}

static void asks(uint64_t count)
{
	struct gale_config config = { .shards = 1 };
	struct gale_limiter_config limits = {
		.name = "bench",
		.rule = gale_fixed_window(UINT64_C(1) << 50, GALE_SPAN_MAX_US),
		.mode = GALE_STRICT,
	};
	struct gale_answer answer = { .verdict = GALE_ALLOW };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;

	must(gale_runtime_open(&config, &runtime) == GALE_ERR_OK, "a runtime");
	must(gale_store_open(runtime, NULL, &limits.store) == GALE_ERR_OK, "a store");
	must(gale_limiter_open(runtime, &limits, &limiter) == GALE_ERR_OK, "a limiter");
	must(gale_join(runtime, &seat) == GALE_ERR_OK, "a seat");
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_ask(seat, limiter, "sixteen letters.", 16, 1, NULL);
		keep(&answer);
	}
	must(answer.verdict == GALE_ALLOW, "an ask was not allowed");
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(limits.store);
	gale_runtime_close(runtime);
}

static void nothing(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		keep(&i);
}

int main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";
	uint64_t count = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

	if (strcmp(what, "fixed_window") == 0)
		steps(gale_fixed_window(UINT64_C(1) << 40, GALE_SECONDS(1)), count);
	else if (strcmp(what, "gcra") == 0)
		steps(gale_gcra(1000, GALE_SECONDS(1), 1000), count);
	else if (strcmp(what, "token_bucket") == 0)
		steps(gale_token_bucket(1000, 1000, GALE_SECONDS(1)), count);
	else if (strcmp(what, "ask") == 0)
		asks(count);
	else if (strcmp(what, "nothing") == 0)
		nothing(count);
	else
		must(false, "fixed_window|gcra|token_bucket|ask|nothing COUNT");
	return 0;
}
