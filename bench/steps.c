/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * steps.c -- what does one step of each rule cost, without a store around it?
 *
 * The words stay in the cache and time advances with every step.  "allow" rows are at
 * the rate that their rule lets through, with half of its burst in use where it has
 * one; "deny" rows stay denied.  GCRA, fixed window and token bucket, at cost 1, may
 * take 6 times a bare compare-and-swap.
 */
#include "bench/bench.h"
#include "engine/rule.h"

#define START GALE_DAYS(20700) /* 2026, and midnight: where a window begins */
#define WORDS_MAX 512
#define BIG_LIMIT ((UINT64_C(1) << 52) + 21) /* products need 128 bits */
#define BIG_SPAN ((UINT64_C(1) << 49) - 69)

struct step {
	const char *name;
	struct gale_rule rule;
	enum gale_verdict verdict; /* of every step that is timed */
	uint64_t cost;
	uint64_t advance_us; /* from step to step */
	uint64_t fill;       /* how many steps came before, a microsecond apart */
	uint64_t fill_cost;  /* of each */
	double bar;          /* times a bare compare-and-swap; 0: none */
};

struct state {
	struct rule rule;
	uint64_t now_us;
	uint64_t words[WORDS_MAX];
};

static void check(const struct step *step, const struct gale_answer *answer)
{
	bench_expect(answer->verdict == step->verdict, "a step has the wrong verdict");
}

static void fill(struct state *state, const struct step *step)
{
	bench_expect(rule_compile(&step->rule, &state->rule) == GALE_ERR_OK, "a rule");
	state->now_us = START;
	for (uint64_t i = 0; i < step->fill; i++) {
		struct gale_answer answer = rule_step(&state->rule, state->words,
		                                      state->now_us++, step->fill_cost);

		bench_expect(answer.verdict == GALE_ALLOW, "filling a state");
	}
	bench_expect(rule_words_after_step(&state->rule, state->words) <= WORDS_MAX,
	             "a state is too long");
}

static void run_step(struct bench *b)
{
	const struct step *step = bench_arg(b);
	struct gale_answer answer = { .verdict = step->verdict };
	struct state state = { 0 };

	fill(&state, step);
	for (uint64_t n; (n = bench_batch(b)) > 0; check(step, &answer))
		while (n-- > 0) {
			state.now_us += step->advance_us;
			answer = rule_step(&state.rule, state.words, state.now_us,
			                   step->cost);
			bench_keep(&answer);
		}
}

/* ---- The rows -------------------------------------------------------------------- */

#define STEPS_MAX 64
#define BAR 6
#define SOON GALE_MICROS(100)
#define MS GALE_MILLIS(1)
#define SECOND GALE_SECONDS(1)
#define DAY GALE_DAYS(1)
#define MUCH (UINT64_C(1) << 40)

static struct step steps[STEPS_MAX];
static int step_count;

/* used units were taken by one step before. */
static struct step *add(const char *name, enum gale_verdict verdict,
                        struct gale_rule rule, uint64_t advance_us, uint64_t used)
{
	bench_expect(step_count < STEPS_MAX, "more steps than STEPS_MAX");
	steps[step_count] = (struct step){
		.name = name,
		.rule = rule,
		.verdict = verdict,
		.cost = 1,
		.advance_us = advance_us,
		.fill = used > 0,
		.fill_cost = used,
	};
	return &steps[step_count++];
}

static struct step *allow(const char *name, struct gale_rule rule, uint64_t advance_us,
                          uint64_t used)
{
	return add(name, GALE_ALLOW, rule, advance_us, used);
}

static struct step *deny(const char *name, struct gale_rule rule, uint64_t used)
{
	return add(name, GALE_DENY, rule, /* advance_us= */ 1, used);
}

static void add_windows(void)
{
	struct gale_rule budget = gale_token_budget(MUCH, SECOND);

	allow("steps/fixed window, allow", gale_fixed_window(MUCH, SECOND), SOON, 0)
	    ->bar = BAR;
	deny("steps/fixed window, deny", gale_fixed_window(9, DAY), 9)->bar = BAR;
	allow("steps/fixed window, allow, cost 3", gale_fixed_window(MUCH, SECOND),
	      SOON, 0)
	    ->cost = 3;
	allow("steps/token budget, allow", budget, SOON, 0);
	deny("steps/token budget, deny", gale_token_budget(9, DAY), 9);
	allow("steps/quota, anchored, allow", gale_quota_anchored(MUCH, DAY, SECOND),
	      MS, 0);
	allow("steps/quota, daily, allow", gale_quota_daily(MUCH, 60), MS, 0);
	allow("steps/quota, weekly, allow", gale_quota_weekly(MUCH, 60, 1), MS, 0);
	allow("steps/quota, monthly, allow", gale_quota_monthly(MUCH, 60), MS, 0);
	deny("steps/quota, monthly, deny", gale_quota_monthly(9, 60), 9);
}

/* 1,000 units per second with bursts of 1,000, half of which are in use; denied are
 * those that get a unit a day. */
static void add_meters(void)
{
	struct gale_rule gcra = gale_gcra(1000, SECOND, 1000);
	struct gale_rule bucket = gale_token_bucket(1000, 1000, SECOND);
	struct gale_rule big_gcra = gale_gcra(BIG_LIMIT, BIG_SPAN, BIG_LIMIT);
	struct gale_rule big_bucket = gale_token_bucket(BIG_LIMIT, BIG_LIMIT, BIG_SPAN);

	allow("steps/gcra, allow", gcra, MS, 500)->bar = BAR;
	deny("steps/gcra, deny", gale_gcra(1, DAY, 9), 9)->bar = BAR;
	allow("steps/gcra, allow, cost 3", gcra, 3 * MS, 500)->cost = 3;
	allow("steps/gcra, allow, 128 bits", big_gcra, 8193, BIG_LIMIT / 2)->cost =
	    65536;
	deny("steps/gcra, deny, 128 bits", big_gcra, BIG_LIMIT)->cost = BIG_LIMIT / 2;
	allow("steps/token bucket, allow", bucket, MS, 500)->bar = BAR;
	deny("steps/token bucket, deny", gale_token_bucket(9, 1, DAY), 9)->bar = BAR;
	allow("steps/token bucket, allow, cost 3", bucket, 3 * MS, 500)->cost = 3;
	allow("steps/token bucket, allow, 128 bits", big_bucket, 8193, BIG_LIMIT / 2)
	    ->cost = 65536;
}

static void fill_by_one(struct step *step, uint64_t count)
{
	step->fill = count;
	step->fill_cost = 1;
}

static void add_slides(void)
{
	struct gale_rule log = gale_sliding_log(128, 100 * SOON);

	allow("steps/sliding window, 10 buckets, allow",
	      gale_sliding_window(MUCH, SECOND, 10), SOON, 0);
	deny("steps/sliding window, 10 buckets, deny", gale_sliding_window(9, DAY, 10),
	     9);
	allow("steps/sliding window, 128 buckets, allow",
	      gale_sliding_window(MUCH, SECOND, 128), SOON, 0);
	deny("steps/sliding window, 128 buckets, deny",
	     gale_sliding_window(9, DAY, 128), 9);
	fill_by_one(allow("steps/sliding log, 100 live, allow", log, SOON, 0), 100);
	fill_by_one(
	    deny("steps/sliding log, 100 live, deny", gale_sliding_log(100, DAY), 0),
	    100);
}

/* A burst of 1,000 that is in use, and then 500 places that are booked, or none. */
static void add_pacers(void)
{
	struct gale_rule pacer = gale_pacer(1000, SECOND, 1000);
	struct gale_rule leaky = gale_leaky_bucket(1000, SECOND, SECOND);
	struct gale_rule full = gale_leaky_bucket(1, DAY, 9 * DAY);

	allow("steps/pacer, within burst, allow", pacer, 2 * MS, 500);
	fill_by_one(allow("steps/pacer, queued, allow", pacer, MS, 0), 1500);
	deny("steps/pacer that limits, deny", gale_pacer_limit(1, DAY, 9), 9);
	fill_by_one(allow("steps/leaky bucket, queued, allow", leaky, MS, 0), 500);
	fill_by_one(deny("steps/leaky bucket, deny", full, 0), 10);
}

void ask_steps(void)
{
	add_windows();
	add_meters();
	add_slides();
	add_pacers();
	for (int i = 0; i < step_count; i++)
		bench_add(&(struct bench_row){ .name = steps[i].name,
		                               .run = run_step,
		                               .arg = &steps[i],
		                               .floor = "floors/compare and swap",
		                               .bar = steps[i].bar });
}
