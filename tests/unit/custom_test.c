/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * custom_test.c -- strategies of a user's own: what they are given, and what is believed.
 */
#include "tests/unit/vectors.h"

#include <string.h>

#include <gale/strategy.h>

#include "engine/codec.h"
#include "engine/lease.h"
#include "sim/random.h"
#include "tests/support/customs.h"
#include "tests/support/length.h"

#define HOUR GALE_HOURS(1)
#define STEPS LONG_OR_BRIEF(20000, 5000)
#define NAME_64 "1234567890123456789012345678901234567890123456789012345678901234"

/* ---- What is refused ------------------------------------------------------------- */

static struct gale_ruling yes(const struct gale_strategy *self,
                              const struct gale_rule *rule, uint64_t *words,
                              uint64_t now_us, uint64_t cost)
{
	(void)self;
	(void)rule;
	(void)words;
	(void)now_us;
	(void)cost;
	return (struct gale_ruling){ .verdict = GALE_ALLOW };
}

static const struct gale_strategy good = { .name = "good", .words = 1, .step = yes };

static enum gale_err compiled(const struct gale_strategy *strategy)
{
	struct gale_rule config = gale_custom(strategy, 5, HOUR);
	struct rule rule;

	return rule_compile(&config, &rule);
}

static void a_strategy_is_refused_for_its_parts(void **state)
{
	struct gale_strategy s = good;

	(void)state;
	assert_int_equal(compiled(NULL), GALE_ERR_RULE_STRATEGY);
	assert_int_equal(compiled(&s), GALE_ERR_OK);
	s.step = NULL;
	assert_int_equal(compiled(&s), GALE_ERR_RULE_STRATEGY);
	s = good;
	s.name = NULL;
	assert_int_equal(compiled(&s), GALE_ERR_RULE_STRATEGY);
	s.name = "";
	assert_int_equal(compiled(&s), GALE_ERR_RULE_STRATEGY);
	s.name = NAME_64;
	assert_int_equal(compiled(&s), GALE_ERR_OK);
	s.name = NAME_64 "5";
	assert_int_equal(compiled(&s), GALE_ERR_RULE_STRATEGY);
	s = good;
	s.words = 0;
	assert_int_equal(compiled(&s), GALE_ERR_RULE_STRATEGY);
	s.words = GALE_STRATEGY_WORDS_MAX;
	assert_int_equal(compiled(&s), GALE_ERR_OK);
	s.words++;
	assert_int_equal(compiled(&s), GALE_ERR_RULE_STRATEGY);
	s = good;
	s.parameters[GALE_STRATEGY_PARAMETERS - 1] = GALE_UNITS_MAX;
	assert_int_equal(compiled(&s), GALE_ERR_OK);
	s.parameters[GALE_STRATEGY_PARAMETERS - 1]++;
	assert_int_equal(compiled(&s), GALE_ERR_RULE_STRATEGY);
}

static void its_other_parts_are_those_of_any_rule(void **state)
{
	const struct {
		enum gale_err err;
		struct gale_rule rule;
	} rows[] = {
		{ GALE_ERR_RULE_LIMIT, gale_custom(&good, 0, HOUR) },
		{ GALE_ERR_RULE_LIMIT, gale_custom(&good, GALE_UNITS_MAX + 1, HOUR) },
		{ GALE_ERR_RULE_PERIOD, gale_custom(&good, 5, 0) },
		{ GALE_ERR_RULE_PERIOD, gale_custom(&good, 5, GALE_SPAN_MAX_US + 1) },
		{ GALE_ERR_RULE_UNUSED,
		  { .kind = GALE_RULE_CUSTOM,
		    .limit = 5,
		    .period_us = 7,
		    .burst = 1,
		    .strategy = &good } },
		{ GALE_ERR_RULE_UNUSED,
		  { .kind = GALE_RULE_FIXED_WINDOW,
		    .limit = 5,
		    .period_us = 7,
		    .strategy = &good } },
	};
	struct rule rule;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(rule_compile(&rows[i].rule, &rule), rows[i].err);
}

static uint64_t fingerprint(struct gale_strategy strategy, uint64_t limit,
                            uint64_t period_us)
{
	struct gale_rule config = gale_custom(&strategy, limit, period_us);
	struct rule rule;

	assert_int_equal(rule_compile(&config, &rule), GALE_ERR_OK);
	assert_in_range(rule.fingerprint, 0, GALE_UNITS_MAX);
	return rule.fingerprint;
}

/* Where its code and its name are says nothing: other nodes have them elsewhere. */
static void the_fingerprint_is_of_all_that_gives_the_words_a_meaning(void **state)
{
	uint64_t it = fingerprint(good, 5, HOUR);
	struct gale_strategy other = good;
	char name[] = "good";

	(void)state;
	other.name = name;
	assert_int_equal(fingerprint(other, 5, HOUR), it);
	name[3] = 'f';
	assert_int_not_equal(fingerprint(other, 5, HOUR), it);
	assert_int_not_equal(fingerprint(good, 6, HOUR), it);
	assert_int_not_equal(fingerprint(good, 5, HOUR + 1), it);
	other = good;
	other.words = 2;
	assert_int_not_equal(fingerprint(other, 5, HOUR), it);
	for (size_t i = 0; i < GALE_STRATEGY_PARAMETERS; i++) {
		other = good;
		other.parameters[i] = 1;
		assert_int_not_equal(fingerprint(other, 5, HOUR), it);
	}
}

static void it_cannot_be_leased(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, custom_window(5, HOUR));
	assert_false(lease_possible(&key.rule));
}

/* ---- The same as the built-in ---------------------------------------------------- */

static void same_outlook(const struct key *own, const struct key *built_in,
                         uint64_t now, uint64_t cost)
{
	struct gale_outlook a = rule_forecast(&own->rule, own->words, now, cost);
	struct gale_outlook b =
	    rule_forecast(&built_in->rule, built_in->words, now, cost);

	assert_memory_equal(&a, &b, sizeof(a));
}

static void same_step(struct key *own, struct key *built_in, uint64_t now,
                      uint64_t cost)
{
	struct gale_answer a = key_peek(own, now), b = key_peek(built_in, now);

	assert_memory_equal(&a, &b, sizeof(a));
	same_outlook(own, built_in, now, cost);
	a = key_step(own, now, cost);
	b = key_step(built_in, now, cost);
	assert_memory_equal(&a, &b, sizeof(a));
}

/* By bytes and back, as a server keeps it; forgotten when it may be. RULE-4 */
static void keep_and_load(struct key *key, uint64_t now, struct chance *c)
{
	uint8_t bytes[STATE_HEAD_BYTES + 8 * (2 + GALE_STRATEGY_WORDS_MAX)];
	size_t count = state_encode(&key->rule, key->words, bytes);

	assert_int_equal(state_decode(&key->rule, bytes, count, key->words, KEY_WORDS),
	                 STATE_OK);
	if (rule_expires(&key->rule, key->words) <= now && chance_one_in(c, 2))
		memset(key->words, 0, sizeof(key->words));
}

static void run_beside(struct gale_rule own, struct gale_rule built_in, uint64_t seed)
{
	struct chance c = { seed };
	uint64_t now = T0;
	struct key a, b;

	key_open(&a, own);
	key_open(&b, built_in);
	for (int i = 0; i < STEPS; i++) {
		now += chance_size(&c, own.period_us);
		if (chance_one_in(&c, 2000))
			now += chance_size(&c, GALE_DAYS(900));
		same_step(&a, &b, now, chance_between(&c, 1, own.limit + 1));
		keep_and_load(&a, now, &c);
	}
}

static void a_window_of_ones_own_is_a_window(void **state)
{
	(void)state;
	run_beside(custom_window(5, GALE_SECONDS(1)),
	           gale_fixed_window(5, GALE_SECONDS(1)), 1);
	run_beside(custom_window(1, 1), gale_fixed_window(1, 1), 2);
}

static void a_gcra_of_ones_own_is_a_gcra(void **state)
{
	(void)state;
	run_beside(custom_gcra(7), gale_gcra(CUSTOM_RATE, CUSTOM_PERIOD_US, 7), 3);
	run_beside(custom_quick_gcra(20), gale_gcra(1000, GALE_MILLIS(20), 20), 4);
}

/* ---- What a step is given -------------------------------------------------------- */

static struct spy {
	uint64_t now_us;
	uint64_t cost;
	uint64_t words[GALE_STRATEGY_WORDS_MAX];
	unsigned calls;
	struct gale_ruling says;
} spy;

static struct gale_ruling spy_step(const struct gale_strategy *self,
                                   const struct gale_rule *rule, uint64_t *words,
                                   uint64_t now_us, uint64_t cost)
{
	assert_int_equal(self->parameters[2], 42);
	assert_int_equal(rule->limit, 5);
	spy.now_us = now_us;
	spy.cost = cost;
	spy.calls++;
	memcpy(spy.words, words, self->words * sizeof(*words));
	for (uint64_t i = 0; i < self->words; i++)
		words[i] += i + 1;
	return spy.says;
}

static const struct gale_strategy spying = {
	.name = "spying",
	.words = GALE_STRATEGY_WORDS_MAX,
	.parameters = { 0, 0, 42 },
	.step = spy_step,
};

static void open_spied(struct key *key, struct gale_ruling says)
{
	spy = (struct spy){ .says = says };
	key_open(key, gale_custom(&spying, 5, HOUR));
}

static struct gale_answer spied(struct key *key, uint64_t now_us, uint64_t cost)
{
	return rule_step(&key->rule, key->words, now_us, cost);
}

static void its_words_go_from_call_to_call(void **state)
{
	const uint64_t last = GALE_STRATEGY_WORDS_MAX - 1;
	struct key key;

	(void)state;
	open_spied(&key, (struct gale_ruling){ GALE_ALLOW, 3, 0, HOUR });
	(void)spied(&key, T0, 2);
	assert_int_equal(spy.cost, 2);
	assert_int_equal(spy.now_us, T0);
	assert_int_equal(spy.words[0], 0);
	assert_int_equal(spy.words[last], 0);
	(void)spied(&key, T0 + 1, 1);
	assert_int_equal(spy.words[0], 1);
	assert_int_equal(spy.words[last], last + 1);
}

static void time_never_runs_backward_for_it(void **state)
{
	struct key key;

	(void)state;
	open_spied(&key, (struct gale_ruling){ GALE_ALLOW, 3, 0, HOUR });
	(void)spied(&key, T0, 1);
	(void)spied(&key, T0 - HOUR, 1); /* RULE-2, CUSTOM-1 */
	assert_int_equal(spy.now_us, T0);
	assert_int_equal(spy.words[0], 1);
	(void)rule_peek(&key.rule, key.words, 0);
	assert_int_equal(spy.now_us, T0);
	(void)rule_forecast(&key.rule, key.words, 0, 1);
	assert_int_equal(spy.now_us, T0);
	(void)spied(&key, UINT64_MAX, 1);
	assert_int_equal(spy.now_us, INSTANT_MAX_US);
}

static void a_denial_keeps_nothing_of_what_it_did(void **state)
{
	struct key key, before;

	(void)state;
	open_spied(&key, (struct gale_ruling){ GALE_ALLOW, 3, 0, HOUR });
	(void)spied(&key, T0, 1);
	before = key;
	spy.says = (struct gale_ruling){ GALE_DENY, 3, 7, 9 };
	assert_int_equal(spied(&key, T0 + 1, 1).retry_after_us, 7);
	assert_memory_equal(&key, &before, sizeof(key)); /* RULE-1, CUSTOM-3 */
}

static void it_is_forgotten_when_it_said_so_and_not_before(void **state)
{
	struct key key;

	(void)state;
	open_spied(&key, (struct gale_ruling){ GALE_ALLOW, 3, 0, 1000 });
	(void)spied(&key, T0, 1);
	assert_int_equal(rule_expires(&key.rule, key.words), T0 + 1000);
	(void)rule_peek(&key.rule, key.words, T0 + 999);
	assert_int_equal(spy.words[0], 1);
	(void)rule_peek(&key.rule, key.words, T0 + 1000); /* RULE-4, CUSTOM-2 */
	assert_int_equal(spy.words[0], 0);
	spy.says.reset_after_us = 0; /* at once */
	(void)spied(&key, T0 + 1000, 1);
	assert_int_equal(rule_expires(&key.rule, key.words), T0 + 1000);
	(void)spied(&key, T0 + 1000, 1);
	assert_int_equal(spy.words[0], 0);
}

static void a_look_is_a_call_of_cost_0(void **state)
{
	struct key key, before;
	struct gale_answer peek;

	(void)state;
	open_spied(&key, (struct gale_ruling){ GALE_ALLOW, 3, 0, HOUR });
	before = key;
	peek = rule_peek(&key.rule, key.words, T0);
	assert_int_equal(spy.calls, 2); /* of 0 and of 1 */
	assert_int_equal(spy.cost, 1);
	assert_int_equal(peek.remaining, 3);
	(void)rule_forecast(&key.rule, key.words, T0, 2);
	assert_int_equal(spy.cost, 4); /* one more than remains */
	spy.says.remaining = 5;
	assert_int_equal(rule_forecast(&key.rule, key.words, T0, 2).next_after_us, 0);
	assert_int_equal(spy.cost, 0);
	assert_memory_equal(&key, &before, sizeof(key));
}

/* ---- What is believed ------------------------------------------------------------ */

static void expect_broken(struct key *key)
{
	struct key before = *key;
	struct gale_answer answer = rule_step(&key->rule, key->words, T0, 1);

	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.why, GALE_WHY_BROKEN);
	answer = rule_peek(&key->rule, key->words, T0);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.why, GALE_WHY_BROKEN);
	assert_int_equal(rule_forecast(&key->rule, key->words, T0, 1).spendable_now,
	                 OUTLOOK_BROKEN);
	assert_memory_equal(key, &before, sizeof(before)); /* CUSTOM-4 */
}

static void a_ruling_out_of_bounds_is_none(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, custom_broken(FAULT_NONE));
	assert_int_equal(key_step(&key, T0, 1).verdict, GALE_ALLOW);
	for (int fault = FAULT_NONE + 1; fault < FAULTS; fault++) {
		key_open(&key, custom_broken((enum fault)fault));
		expect_broken(&key);
	}
}

static void a_ruling_within_its_bounds_is_believed(void **state)
{
	const struct gale_ruling rows[] = {
		{ GALE_ALLOW, 5, 0, HOUR },
		{ GALE_ALLOW, 0, 0, 0 },
		{ GALE_DENY, 5, GALE_SPAN_MAX_US, HOUR },
		{ GALE_DENY, 0, GALE_NEVER, 0 },
		{ GALE_DENY, 0, 0, 0 },
	};
	struct key key;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct gale_answer answer;

		open_spied(&key, rows[i]);
		answer = spied(&key, T0, 1);
		assert_int_equal(answer.why, GALE_WHY_RULE);
		assert_int_equal(answer.verdict, rows[i].verdict);
		assert_int_equal(answer.limit, 5);
		assert_int_equal(answer.remaining, rows[i].remaining);
		assert_int_equal(answer.retry_after_us, rows[i].retry_after_us);
		assert_int_equal(answer.reset_after_us, rows[i].reset_after_us);
	}
}

/* A look that is right, and a call behind it that is not; and a forecast's. */
static struct gale_ruling sly_step(const struct gale_strategy *self,
                                   const struct gale_rule *rule, uint64_t *words,
                                   uint64_t now_us, uint64_t cost)
{
	uint64_t remaining = cost == self->parameters[0] ? rule->limit + 1 : 3;

	(void)words;
	(void)now_us;
	return (struct gale_ruling){ .verdict = GALE_ALLOW, .remaining = remaining };
}

static void each_call_of_a_look_is_judged(void **state)
{
	struct gale_strategy sly = { .name = "sly", .words = 1, .step = sly_step };
	struct key key;

	(void)state;
	sly.parameters[0] = 1;
	key_open(&key, gale_custom(&sly, 5, HOUR));
	assert_int_equal(rule_peek(&key.rule, key.words, T0).why, GALE_WHY_BROKEN);
	assert_int_equal(rule_forecast(&key.rule, key.words, T0, 1).spendable_now, 3);
	sly.parameters[0] = 4;
	assert_int_equal(rule_peek(&key.rule, key.words, T0).why, GALE_WHY_RULE);
	assert_int_equal(rule_forecast(&key.rule, key.words, T0, 1).spendable_now,
	                 OUTLOOK_BROKEN);
}

/* ---- What a store may hold ------------------------------------------------------- */

static void words_that_no_steps_lead_to_are_refused(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, custom_window(5, HOUR));
	assert_int_equal(rule_words(&key.rule, key.words), 4);
	(void)key_step(&key, T0, 1);
	assert_true(rule_valid(&key.rule, key.words, 4));
	assert_false(rule_valid(&key.rule, key.words, 3));
	assert_false(rule_valid(&key.rule, key.words, 5));
	key.words[1] = key.words[0] - 1; /* it expired before it was written */
	assert_false(rule_valid(&key.rule, key.words, 4));
	key.words[1] = key.words[0] + HOUR; /* as late as can be */
	assert_true(rule_valid(&key.rule, key.words, 4));
	key.words[1]++;
	assert_false(rule_valid(&key.rule, key.words, 4));
	key.words[1]--;
	key.words[3] = GALE_UNITS_MAX + 1; /* RULE-3 */
	assert_false(rule_valid(&key.rule, key.words, 4));
	key.words[3] = 0;
	key.words[0] = key.words[1] = INSTANT_MAX_US + 1;
	assert_false(rule_valid(&key.rule, key.words, 4));
}

/* What may be written, but no window: it is the strategy that cannot make sense of it. */
static void words_that_mean_nothing_give_no_answer(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, custom_window(5, HOUR));
	(void)key_step(&key, T0, 1);
	key.words[3] = 6;
	assert_true(rule_valid(&key.rule, key.words, 4));
	expect_broken(&key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_strategy_is_refused_for_its_parts),
		cmocka_unit_test(its_other_parts_are_those_of_any_rule),
		cmocka_unit_test(
		    the_fingerprint_is_of_all_that_gives_the_words_a_meaning),
		cmocka_unit_test(it_cannot_be_leased),
		cmocka_unit_test(a_window_of_ones_own_is_a_window),
		cmocka_unit_test(a_gcra_of_ones_own_is_a_gcra),
		cmocka_unit_test(its_words_go_from_call_to_call),
		cmocka_unit_test(time_never_runs_backward_for_it),
		cmocka_unit_test(a_denial_keeps_nothing_of_what_it_did),
		cmocka_unit_test(it_is_forgotten_when_it_said_so_and_not_before),
		cmocka_unit_test(a_look_is_a_call_of_cost_0),
		cmocka_unit_test(a_ruling_out_of_bounds_is_none),
		cmocka_unit_test(a_ruling_within_its_bounds_is_believed),
		cmocka_unit_test(each_call_of_a_look_is_judged),
		cmocka_unit_test(words_that_no_steps_lead_to_are_refused),
		cmocka_unit_test(words_that_mean_nothing_give_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
