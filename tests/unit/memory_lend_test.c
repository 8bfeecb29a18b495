/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory_lend_test.c -- the embedded store lends: one request at a time, each answered,
 * and nothing lent that could not be remembered.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/gale.h>

#include "engine/lease.h"
#include "runtime/atomic.h"
#include "stores/memory.h"
#include "sim/apart.h"
#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define CROWD 200
#define BATCH 8
#define HOUR GALE_HOURS(1)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A store by itself. */
struct scene {
	struct test_allocator allocator;
	struct test_clock clock;
	struct store *store;
};

static void scene_open(struct scene *s, uint64_t max_keys)
{
	struct memory_config config = {
		.name = "",
		.max_keys = max_keys,
		.allocator = &s->allocator.allocator,
		.clock = &s->clock.clock,
	};

	test_allocator_init(&s->allocator);
	test_clock_init(&s->clock, HOUSE_NOW);
	s->store = memory_open(&config);
	assert_non_null(s->store);
}

static void scene_close(struct scene *s)
{
	s->store->ops->close(s->store);
	assert_true(test_allocator_is_balanced(&s->allocator));
}

static struct rule compiled(struct gale_rule config)
{
	struct rule rule;

	must(rule_compile(&config, &rule) == GALE_ERR_OK);
	return rule;
}

/* Keeps what it is told. */
struct home {
	struct store_home home; /* first */
	size_t count;
	struct lend_answer answers[BATCH];
};

static void home_on_answer(struct store_home *self, const struct lend_answer *answer)
{
	struct home *home = (struct home *)self;

	must(home->count < BATCH);
	home->answers[home->count++] = *answer;
}

static struct lend_answer ask_one(struct store *store,
                                  const struct lend_request *request)
{
	struct home home = { .home = { .on_answer = home_on_answer } };
	const struct store_client client = { store, &home.home, NULL };

	store->ops->lend(&client, request, 1);
	must(home.count == 1 && home.answers[0].number == request->ask.number);
	return home.answers[0];
}

static struct lend_request request_of(enum lend_verb verb, const struct rule *rule,
                                      const char *key, uint64_t node, uint64_t number)
{
	return (struct lend_request){ .verb = verb,
		                      .key = (const uint8_t *)key,
		                      .key_len = (uint32_t)strlen(key),
		                      .rule = rule,
		                      .ask = { .node = node, .number = number } };
}

static struct lend_answer lend_ask(struct scene *s, const struct rule *rule,
                                   const char *key, const struct lease_ask *ask)
{
	struct lend_request request = request_of(LEND, rule, key, ask->node, 0);

	request.ask = *ask;
	return ask_one(s->store, &request);
}

static struct lend_answer lend(struct scene *s, const struct rule *rule,
                               const char *key, uint64_t node, uint64_t number,
                               uint64_t want)
{
	const struct lease_ask ask = {
		.node = node, .number = number, .least = 1, .want = want
	};

	return lend_ask(s, rule, key, &ask);
}

/* Thirty units, and so many ahead. */
static uint64_t lent_ahead(struct scene *s, const struct rule *rule, const char *key,
                           uint64_t node, uint64_t ahead)
{
	const struct lease_ask ask = {
		.node = node, .number = 1, .least = 30, .want = 30, .ahead = ahead
	};
	struct lend_answer answer = lend_ask(s, rule, key, &ask);

	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.grant.units, 30);
	return answer.grant.ahead;
}

static uint64_t lent(struct scene *s, const struct rule *rule, const char *key,
                     uint64_t node, uint64_t number, uint64_t want)
{
	struct lend_answer answer = lend(s, rule, key, node, number, want);

	assert_int_equal(answer.result, STORE_DONE);
	return answer.grant.units;
}

static enum store_result back(struct scene *s, const struct rule *rule, const char *key,
                              uint64_t node, uint64_t number, struct gale_slot tag,
                              uint64_t units)
{
	struct lend_request request = request_of(LEND_BACK, rule, key, node, number);

	request.tag = tag;
	request.units = units;
	return ask_one(s->store, &request).result;
}

static struct lease_grant status(struct scene *s, const struct rule *rule,
                                 const char *key, uint64_t node)
{
	struct lend_request request = request_of(LEND_STATUS, rule, key, node, 77);
	struct lend_answer answer = ask_one(s->store, &request);

	assert_int_equal(answer.result, STORE_DONE);
	return answer.grant;
}

static enum store_result run(struct scene *s, enum store_verb verb,
                             const struct rule *rule, const char *key, uint64_t cost,
                             struct gale_answer *ret_answer)
{
	struct store_op op = { .verb = verb,
		               .key = (const uint8_t *)key,
		               .key_len = (uint32_t)strlen(key),
		               .rule = rule,
		               .cost = cost };
	enum store_result result = store_run(s->store, &op, /* patient= */ true);

	*ret_answer = op.answer;
	return result;
}

static bool steps(struct scene *s, const struct rule *rule, const char *key,
                  uint64_t cost)
{
	struct gale_answer answer;

	assert_int_equal(run(s, STORE_STEP, rule, key, cost, &answer), STORE_DONE);
	return answer.verdict == GALE_ALLOW;
}

static uint64_t remaining(struct scene *s, const struct rule *rule, const char *key)
{
	struct gale_answer answer;

	assert_int_equal(run(s, STORE_PEEK, rule, key, 1, &answer), STORE_DONE);
	return answer.remaining;
}

static void reset(struct scene *s, const struct rule *rule, const char *key)
{
	struct gale_answer answer;

	assert_int_equal(run(s, STORE_RESET, rule, key, 1, &answer), STORE_DONE);
}

static struct gale_counts counts_of(struct scene *s)
{
	struct gale_counts counts;

	s->store->ops->stats(s->store, &counts);
	return counts;
}

/* ---- Lending follows the engine -------------------------------------------------- */

static void a_store_lends_and_takes_back(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct lend_answer answer;
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	answer = lend(&s, &rule, "k", 1, 1, 60);
	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.grant.units, 60);
	assert_int_equal(answer.grant.tag.us, HOUSE_NOW - HOUSE_NOW % HOUR);
	assert_int_equal(answer.grant.lasts_us, HOUR - HOUSE_NOW % HOUR);
	assert_int_equal(lent(&s, &rule, "k", 1, 1, 60), 60); /* STORE-6: done once */
	assert_int_equal(remaining(&s, &rule, "k"), 40);
	assert_int_equal(lent(&s, &rule, "k", 2, 1, 60), 40);
	assert_int_equal(lent(&s, &rule, "k", 3, 1, 60), 0);
	assert_int_equal(status(&s, &rule, "k", 1).units, 60);
	assert_int_equal(status(&s, &rule, "k", 2).units, 40);
	assert_int_equal(status(&s, &rule, "k", 3).units, 0);
	assert_int_equal(status(&s, &rule, "k", 3).holders, 2);
	assert_int_equal(back(&s, &rule, "k", 1, 2, answer.grant.tag, 61),
	                 STORE_NOT_BOOKED);
	assert_int_equal(back(&s, &rule, "k", 1, 2, answer.grant.tag, 25), STORE_DONE);
	assert_int_equal(back(&s, &rule, "k", 1, 2, answer.grant.tag, 25), STORE_DONE);
	assert_int_equal(remaining(&s, &rule, "k"), 25); /* STORE-6 */
	assert_int_equal(counts_of(&s).keys, 1);
	assert_int_equal(counts_of(&s).leases, 3); /* the one that came twice, too */
	assert_int_equal(counts_of(&s).returns, 2);
	assert_int_equal(back(&s, &rule, "other", 1, 3, answer.grant.tag, 1),
	                 STORE_NOT_BOOKED);
	scene_close(&s);
}

static void strict_steps_and_leases_work_on_the_same_words(void **state)
{
	const struct gale_rule rules[] = { gale_fixed_window(100, HOUR),
		                           gale_quota_daily(100, 0),
		                           gale_gcra(100, HOUR, 100),
		                           gale_token_bucket(100, 100, HOUR),
		                           gale_pacer_limit(100, HOUR, 99) };

	(void)state;
	for (size_t i = 0; i < COUNT(rules); i++) {
		struct rule rule = compiled(rules[i]);
		struct scene s;

		scene_open(&s, 10);
		assert_true(steps(&s, &rule, "strict first", 30));
		assert_int_equal(lent(&s, &rule, "strict first", 1, 1, 60), 60);
		assert_false(steps(&s, &rule, "strict first", 11) &&
		             rule.is.kind != GALE_RULE_PACER);
		assert_int_equal(lent(&s, &rule, "leased first", 1, 1, 60), 60);
		assert_true(steps(&s, &rule, "leased first", 30));
		assert_int_equal(remaining(&s, &rule, "leased first"), 10);
		assert_true(lent(&s, &rule, "leased first", 1, 2, 60) >= 9);
		scene_close(&s);
	}
}

static void a_batch_is_answered_part_by_part(void **state)
{
	struct rule window = compiled(gale_fixed_window(100, HOUR));
	struct rule other = compiled(gale_gcra(50, HOUR, 50));
	struct rule meter = compiled(gale_gcra(10, HOUR, 5));
	struct home home = { .home = { .on_answer = home_on_answer } };
	struct lend_request requests[] = {
		request_of(LEND, &window, "a", 1, 41),
		request_of(LEND, &meter, "b", 1, 42),
		request_of(LEND, &other, "a", 1, 43),
		request_of(LEND, &window, "a", 1, 44),
		request_of(LEND_STATUS, &window, "a", 1, 45),
	};
	struct store_client client;
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	must(store_enter(s.store, &home.home, &client));
	for (size_t i = 0; i < COUNT(requests); i++)
		requests[i].ask.least = requests[i].ask.want = 4;
	s.store->ops->lend(&client, requests, COUNT(requests));
	assert_int_equal(home.count, COUNT(requests)); /* STORE-7 */
	for (size_t i = 0; i < COUNT(requests); i++) {
		assert_int_equal(home.answers[i].number, 41 + i);
		assert_int_equal(home.answers[i].result,
		                 i == 2 ? STORE_CHANGED : STORE_DONE); /* STORE-4 */
	}
	assert_int_equal(home.answers[3].grant.left, 92);
	assert_int_equal(home.answers[4].grant.units, 8);
	scene_close(&s);
}

/* ---- Memory ---------------------------------------------------------------------- */

static void a_denial_of_a_fresh_key_stores_nothing(void **state)
{
	struct rule rule = compiled(gale_fixed_window(10, HOUR));
	struct lend_request request = request_of(LEND, &rule, "k", 1, 1);
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	request.ask.least = request.ask.want = 11;
	assert_int_equal(ask_one(s.store, &request).grant.retry_us, GALE_NEVER);
	assert_int_equal(status(&s, &rule, "k", 1).left, 10);
	assert_int_equal(back(&s, &rule, "k", 1, 1, slot_at(0), 1), STORE_NOT_BOOKED);
	assert_int_equal(counts_of(&s).keys, 0);
	scene_close(&s);
}

static uint64_t bytes_of(struct scene *s, const struct rule *rule, bool leased)
{
	uint64_t before;

	steps(s, rule, "the first makes the table", 1);
	reset(s, rule, "the first makes the table");
	before = load_relaxed(&s->allocator.bytes);
	if (leased)
		lent(s, rule, "the first makes the table", 1, 1, 1);
	else
		steps(s, rule, "the first makes the table", 1);
	return load_relaxed(&s->allocator.bytes) - before;
}

static void only_leased_keys_pay_for_a_ledger(void **state)
{
	struct rule rule = compiled(gale_fixed_window(10, HOUR));
	struct scene s;
	uint64_t strict, leased;

	(void)state;
	scene_open(&s, 10);
	strict = bytes_of(&s, &rule, /* leased= */ false);
	reset(&s, &rule, "the first makes the table");
	leased = bytes_of(&s, &rule, /* leased= */ true);
	assert_true(strict <= 40 + 2 * 8 + 25);
	assert_int_equal(leased - strict, sizeof(struct lease_row));
	scene_close(&s);
}

/* Each row that has no room fails once; what was there is as it was. */
static void what_cannot_be_remembered_is_not_lent(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	uint64_t failures = 0;
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	for (uint64_t node = 1; node <= LEASE_ROWS + 2; node++) {
		uint64_t left = remaining(&s, &rule, "k");
		enum store_result result;

		s.allocator.fail_first = 1;
		s.allocator.fail_last = UINT64_MAX;
		result = lend(&s, &rule, "k", node, 1, 5).result;
		assert_int_equal(lend(&s, &rule, "k", node, 2, 101).result, result);
		s.allocator.fail_first = s.allocator.fail_last = 0;
		if (result == STORE_DONE)
			break;
		/* STORE-3, STORE-5 */
		assert_int_equal(result, STORE_NO_MEMORY);
		failures++;
		assert_int_equal(remaining(&s, &rule, "k"), left);
		assert_int_equal(status(&s, &rule, "k", node).units, 0);
		assert_int_equal(lent(&s, &rule, "k", node, 3, 5), 5);
	}
	assert_int_equal(failures, 3); /* the key, its second row, and its third */
	assert_int_equal(counts_of(&s).memory, 6);
	scene_close(&s);
}

static void a_denial_needs_no_row(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	lent(&s, &rule, "k", 1, 1, 100);
	s.allocator.fail_first = 1;
	s.allocator.fail_last = UINT64_MAX;
	assert_int_equal(lent(&s, &rule, "k", 2, 1, 5), 0);
	assert_int_equal(status(&s, &rule, "k", 1).units, 100);
	s.allocator.fail_first = s.allocator.fail_last = 0;
	scene_close(&s);
}

static void more_nodes_than_rows_get_their_units(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct gale_slot tag = slot_at(HOUSE_NOW - HOUSE_NOW % HOUR);
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	for (uint64_t node = 1; node <= 20; node++)
		assert_int_equal(lent(&s, &rule, "k", node, 1, 5), 5);
	assert_int_equal(remaining(&s, &rule, "k"), 0);
	for (uint64_t node = 1; node <= 20; node++)
		assert_int_equal(back(&s, &rule, "k", node, 2, tag, 5), STORE_DONE);
	for (uint64_t node = 1; node <= 20; node++)
		assert_int_equal(back(&s, &rule, "k", node, 3, tag, 5),
		                 STORE_NOT_BOOKED);
	assert_int_equal(remaining(&s, &rule, "k"), 100);
	scene_close(&s);
}

static void lends_to_many(struct scene *s, const struct rule *rule, uint64_t number)
{
	for (uint64_t node = 1; node <= 20; node++)
		assert_int_equal(lent(s, rule, "k", node, number, 5), 5);
}

static unsigned takes_back_of_many(struct scene *s, const struct rule *rule,
                                   uint64_t number)
{
	struct gale_slot tag = slot_at(s->clock.now_us - s->clock.now_us % HOUR);
	unsigned taken = 0;

	for (uint64_t node = 1; node <= 20; node++)
		taken += back(s, rule, "k", node, number, tag, 5) == STORE_DONE;
	return taken;
}

/* There is room for eight, and seven are in the value.  MEMORY-6 */
static void rows_apart_are_bounded(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct scene s;

	(void)state;
	scene_open(&s, 1);
	for (uint64_t number = 1; number < 10; number += 3) {
		lends_to_many(&s, &rule, number);
		assert_int_equal(remaining(&s, &rule, "k"), 0);
		assert_int_equal(takes_back_of_many(&s, &rule, number + 1), 15);
		assert_int_equal(remaining(&s, &rule, "k"), 75);
		test_clock_advance(&s.clock, HOUR); /* what was out is over */
	}
	lends_to_many(&s, &rule, 20);
	test_clock_advance(&s.clock, HOUR);
	lends_to_many(&s, &rule, 30); /* in the places of those before */
	assert_int_equal(takes_back_of_many(&s, &rule, 31), 15);
	scene_close(&s);
}

/* Its units stay spent.  MEMORY-5 */
static void a_row_apart_without_memory_is_lost(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	for (uint64_t node = 1; node <= 8; node++)
		assert_int_equal(lent(&s, &rule, "k", node, 1, 5), 5);
	s.allocator.fail_first = 1;
	s.allocator.fail_last = UINT64_MAX;
	assert_int_equal(lent(&s, &rule, "k", 9, 1, 5), 5);
	s.allocator.fail_first = s.allocator.fail_last = 0;
	assert_int_equal(counts_of(&s).memory, 1);
	assert_int_equal(takes_back_of_many(&s, &rule, 2), 8);
	assert_int_equal(remaining(&s, &rule, "k"), 95);
	scene_close(&s);
}

static void a_full_store_lends_nothing_of_a_new_key(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct lend_request never = request_of(LEND, &rule, "new", 1, 2);
	struct scene s;

	(void)state;
	never.ask.least = never.ask.want = 101;
	/* STORE-3 */
	scene_open(&s, 1);
	assert_int_equal(lent(&s, &rule, "k", 1, 1, 5), 5);
	assert_int_equal(lend(&s, &rule, "new", 1, 2, 5).result, STORE_FULL);
	assert_int_equal(ask_one(s.store, &never).result, STORE_DONE); /* denied */
	assert_int_equal(lent(&s, &rule, "k", 1, 3, 5), 5);
	test_clock_advance(&s.clock, HOUR);
	assert_int_equal(lent(&s, &rule, "new", 1, 4, 5), 5);
	scene_close(&s);
}

/* ---- Forgetting ------------------------------------------------------------------ */

static void a_reset_forgets_the_ledger(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct gale_slot tag;
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	tag = lend(&s, &rule, "k", 1, 1, 60).grant.tag;
	reset(&s, &rule, "k");
	assert_int_equal(remaining(&s, &rule, "k"), 100);
	assert_int_equal(back(&s, &rule, "k", 1, 2, tag, 60), STORE_NOT_BOOKED);
	assert_true(steps(&s, &rule, "k", 60));
	assert_int_equal(back(&s, &rule, "k", 1, 2, tag, 60), STORE_NOT_BOOKED);
	assert_int_equal(status(&s, &rule, "k", 1).holders, 0);
	scene_close(&s);
}

/* LEASE-6 */
static void a_reset_forgets_what_is_apart(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	lends_to_many(&s, &rule, 1);
	reset(&s, &rule, "k");
	assert_int_equal(takes_back_of_many(&s, &rule, 2), 0);
	test_clock_advance(&s.clock, 1);
	for (uint64_t node = 1; node <= 8; node++)
		assert_int_equal(lent(&s, &rule, "k", node, 3, 5), 5);
	assert_int_equal(takes_back_of_many(&s, &rule, 4), 8);
	scene_close(&s);
}

static void a_leased_key_expires_as_any_other(void **state)
{
	struct rule rule = compiled(gale_gcra(10, GALE_SECONDS(1), 10));
	struct scene s;
	struct gale_slot tag;

	(void)state;
	scene_open(&s, 10);
	tag = lend(&s, &rule, "k", 1, 1, 5).grant.tag;
	test_clock_set(&s.clock, tag.us - 1);
	(void)s.store->ops->sweep(s.store);
	assert_int_equal(counts_of(&s).keys, 1);
	test_clock_set(&s.clock, tag.us);
	(void)s.store->ops->sweep(s.store);
	assert_int_equal(counts_of(&s).keys, 0);
	assert_int_equal(counts_of(&s).expired, 1);
	scene_close(&s);
}

static void time_never_goes_back_for_a_leased_key(void **state)
{
	struct rule rule = compiled(gale_fixed_window(100, HOUR));
	struct gale_slot tag;
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	tag = lend(&s, &rule, "k", 1, 1, 100).grant.tag;
	test_clock_advance(&s.clock, HOUR);
	assert_int_equal(lent(&s, &rule, "k", 1, 2, 40), 40);
	test_clock_set(&s.clock, HOUSE_NOW);
	assert_int_equal(lend(&s, &rule, "k", 1, 3, 100).grant.tag.us, tag.us + HOUR);
	assert_int_equal(back(&s, &rule, "k", 1, 4, tag, 10),
	                 STORE_NOT_BOOKED); /* STORE-2 */
	scene_close(&s);
}

/* ---- Ahead ------------------------------------------------------------------------ */

/* Whatever comes first in it.  LEASE-7 */
static void a_window_begins_with_what_was_lent_ahead_of_it(void **state)
{
	struct rule rule = compiled(gale_fixed_window(160, HOUR));
	const char *const keys[] = { "peeked", "forecast", "stepped", "lent", "reset" };
	struct store_op op = { .verb = STORE_FORECAST,
		               .key = (const uint8_t *)"forecast",
		               .key_len = 8,
		               .rule = &rule,
		               .cost = 1 };
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_true(s.store->lends_ahead);
	for (size_t i = 0; i < COUNT(keys); i++) {
		assert_int_equal(lent_ahead(&s, &rule, keys[i], 1, 4), 4);
		assert_true(steps(&s, &rule, keys[i], 6));
		assert_int_equal(remaining(&s, &rule, keys[i]), 120);
	}
	test_clock_advance(&s.clock, HOUR);
	assert_int_equal(remaining(&s, &rule, "peeked"), 156);
	assert_int_equal(store_run(s.store, &op, /* patient= */ true), STORE_DONE);
	assert_int_equal(op.forecast.spendable_now, 156);
	assert_false(steps(&s, &rule, "stepped", 157));
	assert_true(steps(&s, &rule, "stepped", 156));
	assert_false(steps(&s, &rule, "stepped", 1));
	assert_int_equal(lent(&s, &rule, "lent", 2, 1, 160), 156);
	reset(&s, &rule, "reset");
	assert_int_equal(remaining(&s, &rule, "reset"), 160);
	test_clock_advance(&s.clock, HOUR);
	for (size_t i = 0; i < COUNT(keys); i++)
		assert_int_equal(remaining(&s, &rule, keys[i]), 160);
	scene_close(&s);
}

static void what_was_lent_ahead_goes_back_when_it_was_said(void **state)
{
	struct rule rule = compiled(gale_fixed_window(160, HOUR));
	struct lease_ask ask = { .node = 1, .number = 3, .least = 1, .want = 160 };
	struct gale_slot tag = slot_at(HOUSE_NOW - HOUSE_NOW % HOUR + HOUR);
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	lent_ahead(&s, &rule, "k", 1, 4);
	assert_int_equal(status(&s, &rule, "k", 1).units, 34);
	assert_int_equal(back(&s, &rule, "k", 1, 2, slot_at(tag.us - HOUR), 34),
	                 STORE_DONE);
	assert_int_equal(remaining(&s, &rule, "k"), 160);
	test_clock_advance(&s.clock, HOUR);
	assert_true(steps(&s, &rule, "k", 156));
	ask.had = 4;
	ask.had_of = tag.us;
	assert_int_equal(lend_ask(&s, &rule, "k", &ask).grant.units, 0);
	assert_int_equal(status(&s, &rule, "k", 1).units,
	                 4); /* said in vain, and kept */
	assert_int_equal(back(&s, &rule, "k", 1, 4, tag, 4), STORE_DONE);
	assert_int_equal(remaining(&s, &rule, "k"), 4);
	scene_close(&s);
}

/* Also when nothing is used of the first. */
static void what_was_lent_ahead_keeps_its_key_for_two_windows(void **state)
{
	struct rule rule = compiled(gale_fixed_window(160, HOUR));
	uint64_t start = HOUSE_NOW - HOUSE_NOW % HOUR;
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	lent_ahead(&s, &rule, "k", 1, 4);
	assert_true(steps(&s, &rule, "k", 1)); /* that expires as the lease does */
	lent_ahead(&s, &rule, "back", 1, 4);
	assert_int_equal(back(&s, &rule, "back", 1, 2, slot_at(start), 34), STORE_DONE);
	lent_ahead(&s, &rule, "none", 1, 0);
	test_clock_set(&s.clock, start + 2 * HOUR - 1);
	(void)s.store->ops->sweep(s.store);
	assert_int_equal(counts_of(&s).keys, 2);
	assert_int_equal(remaining(&s, &rule, "k"), 156);
	assert_int_equal(remaining(&s, &rule, "back"), 156);
	test_clock_set(&s.clock, start + 2 * HOUR);
	(void)s.store->ops->sweep(s.store);
	assert_int_equal(counts_of(&s).keys, 0);
	scene_close(&s);
}

/* Units ahead of a rule that was: they are used in either window in which they can be. (L15) */
static void another_period_counts_what_was_lent_ahead(void **state)
{
	const uint64_t periods[] = { HOUR / 2, 2 * HOUR };
	struct rule rule = compiled(gale_fixed_window(160, HOUR));
	struct rule vast = compiled(gale_fixed_window(GALE_UNITS_MAX, HOUR));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	for (size_t i = 0; i < COUNT(periods); i++) {
		struct rule other = compiled(gale_fixed_window(160, periods[i]));

		lent_ahead(&s, &rule, "now", 1, 4);
		lent_ahead(&s, &rule, "later", 1, 4);
		lent_ahead(&s, &rule, "late", 1, 4);
		assert_int_equal(remaining(&s, &other, "now"), 122);
		assert_true(steps(&s, &other, "now", 122)); /* it is adopted */
		assert_false(steps(&s, &other, "now", 1));
		test_clock_advance(&s.clock, HOUR);
		assert_true(steps(&s, &other, "later", 156));
		assert_false(steps(&s, &other, "later", 1));
		test_clock_advance(&s.clock, HOUR);
		assert_int_equal(remaining(&s, &other, "late"), 160);
		test_clock_advance(&s.clock, 2 * HOUR);
	}
	lent_ahead(&s, &vast, "vast", 1, 4);
	assert_true(steps(&s, &vast, "vast", GALE_UNITS_MAX - 34));
	vast = compiled(gale_fixed_window(GALE_UNITS_MAX, HOUR / 2));
	assert_int_equal(remaining(&s, &vast, "vast"), 0); /* RULE-3 */
	scene_close(&s);
}

/* ---- Many at once ---------------------------------------------------------------- */

struct crowd {
	struct scene *scene;
	struct rule rule;
	uint64_t nodes;
	_Atomic uint64_t units;
	_Atomic uint64_t grants;
};

/* Until there is nothing left; a third of it comes back once, and is lent again. */
static void crowd_lends(void *arg, unsigned who)
{
	struct crowd *crowd = arg;
	uint64_t node = who + 1, number = 0;
	struct lend_answer answer;

	for (;;) {
		answer = lend(crowd->scene, &crowd->rule, "k", node, ++number, 7);
		must(answer.result == STORE_DONE);
		if (answer.grant.units == 0)
			return;
		add_relaxed(&crowd->grants, 1);
		add_relaxed(&crowd->units, answer.grant.units);
		if (number == 1 && who % 3 == 0 &&
		    back(crowd->scene, &crowd->rule, "k", node, ++number,
		         answer.grant.tag, answer.grant.units) == STORE_DONE)
			sub_relaxed(&crowd->units, answer.grant.units);
	}
}

static void two_hundred_threads_are_lent_exactly_the_limit(void **state)
{
	const struct gale_rule rules[] = { gale_fixed_window(5003, HOUR),
		                           gale_quota_daily(5003, 0),
		                           gale_gcra(1, HOUR, 5003),
		                           gale_token_bucket(5003, 1, HOUR) };

	(void)state;
	for (size_t i = 0; i < COUNT(rules); i++) {
		struct crowd crowd = { .rule = compiled(rules[i]) };
		struct scene s;

		scene_open(&s, 10);
		crowd.scene = &s;
		crew_run(CROWD, crowd_lends, &crowd);
		/* What came back after the last had gone is there still. */
		assert_int_equal(crowd.units + remaining(&s, &crowd.rule, "k"), 5003);
		assert_int_equal(counts_of(&s).leases, crowd.grants);
		scene_close(&s);
	}
}

/* Every request is one atomic step: the places of all threads are one queue. */
static void places_lent_at_once_do_not_overlap(void **state)
{
	struct crowd crowd = { .rule = compiled(
				   gale_leaky_bucket(1000, GALE_SECONDS(1), HOUR)) };
	struct scene s;
	struct lend_answer answer;

	(void)state;
	scene_open(&s, 10);
	answer = lend(&s, &crowd.rule, "k", 1, 1, 10);
	assert_int_equal(answer.grant.tag.us, HOUSE_NOW);
	for (uint64_t i = 1; i < 50; i++) {
		answer = lend(&s, &crowd.rule, "k", i % 5 + 1, i + 1, 10);
		assert_int_equal(answer.grant.tag.us, HOUSE_NOW + i * 10000);
		assert_int_equal(answer.grant.delay_ns, i * 10000000); /* STORE-6 */
	}
	assert_int_equal(
	    back(&s, &crowd.rule, "k", 49 % 5 + 1, 99, answer.grant.tag, 4),
	    STORE_DONE);
	answer = lend(&s, &crowd.rule, "k", 1, 100, 1);
	assert_int_equal(answer.grant.tag.us, HOUSE_NOW + 496000);
	scene_close(&s);
}

/* ---- Against the engine ---------------------------------------------------------- */

/* A key of the store, and the same as the engine has it. */
struct twin {
	struct rule rule;
	char key[2];
	uint64_t words[21];
	struct ledger ledger;
	struct aparts aparts;
};

static struct lease_grant twin_step(struct twin *twin, uint64_t now,
                                    const struct lease_ask *ask)
{
	struct lease_grant grant;

	(void)lease_turn(&twin->rule, twin->words, &twin->ledger, now, 0);
	twin->ledger.apart = aparts_find(&twin->aparts, ask->node);
	grant = lease_step(&twin->rule, twin->words, &twin->ledger, now, ask);
	aparts_keep(&twin->aparts, &twin->ledger.apart);
	return grant;
}

static bool twin_takes_back(struct twin *twin, uint64_t now, uint64_t node,
                            uint64_t number, const struct lease_grant *grant)
{
	bool taken;

	(void)lease_turn(&twin->rule, twin->words, &twin->ledger, now, 0);
	twin->ledger.apart = aparts_find(&twin->aparts, node);
	taken = lease_give_back(&twin->rule, twin->words, &twin->ledger, now, node,
	                        number, grant->tag, grant->units);
	aparts_keep(&twin->aparts, &twin->ledger.apart);
	return taken;
}

static void twin_lends(struct scene *s, struct twin *twin, struct chance *c,
                       uint64_t number)
{
	struct lease_ask ask = { .node = chance_between(c, 1, 20),
		                 .number = number - chance_below(c, 3),
		                 .least = 1,
		                 .want = chance_between(c, 1, 20),
		                 .ahead = chance_below(c, 3),
		                 .had = chance_below(c, 3),
		                 .had_of = s->clock.now_us - s->clock.now_us % 5000 };
	struct lease_grant expected = twin_step(twin, s->clock.now_us, &ask);
	struct lend_answer answer = lend_ask(s, &twin->rule, twin->key, &ask);

	assert_int_equal(answer.result, STORE_DONE);
	assert_memory_equal(&answer.grant, &expected, sizeof(expected));
	if (expected.units == 0 || !chance_one_in(c, 2))
		return;
	expected.units = chance_between(c, 1, expected.units);
	assert_int_equal(
	    back(s, &twin->rule, twin->key, ask.node, number + 1, expected.tag,
	         expected.units) == STORE_DONE,
	    twin_takes_back(twin, s->clock.now_us, ask.node, number + 1, &expected));
}

static void twin_steps(struct scene *s, struct twin *twin, uint64_t cost)
{
	struct gale_answer answer, expected;

	(void)lease_turn(&twin->rule, twin->words, &twin->ledger, s->clock.now_us, 0);
	expected = rule_step(&twin->rule, twin->words, s->clock.now_us, cost);
	assert_int_equal(run(s, STORE_STEP, &twin->rule, twin->key, cost, &answer),
	                 STORE_DONE);
	assert_int_equal(answer.verdict, expected.verdict);
	assert_int_equal(answer.remaining, expected.remaining);
}

static void a_store_says_what_the_engine_says(void **state)
{
	struct twin twins[] = {
		{ .rule = compiled(gale_fixed_window(100, 5000)), .key = "a" },
		{ .rule = compiled(gale_token_bucket(50, 70, 5000)), .key = "b" },
		{ .rule = compiled(gale_gcra(70, 5000, 50)), .key = "c" },
		{ .rule = compiled(gale_pacer(30, 5000, 10)), .key = "d" },
		{ .rule = compiled(gale_leaky_bucket(30, 5000, 4000)), .key = "e" },
	};
	struct chance c = { 7 };
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	for (uint64_t i = 1; i <= 50000; i++) {
		struct twin *twin = &twins[chance_below(&c, COUNT(twins))];

		if (chance_one_in(&c, 8))
			twin_steps(&s, twin, chance_between(&c, 1, 5));
		else
			twin_lends(&s, twin, &c, 3 * i);
		test_clock_advance(&s.clock, chance_below(&c, 400));
	}
	for (size_t i = 0; i < COUNT(twins); i++)
		aparts_free(&twins[i].aparts);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_lends_and_takes_back),
		cmocka_unit_test(strict_steps_and_leases_work_on_the_same_words),
		cmocka_unit_test(a_batch_is_answered_part_by_part),
		cmocka_unit_test(a_denial_of_a_fresh_key_stores_nothing),
		cmocka_unit_test(only_leased_keys_pay_for_a_ledger),
		cmocka_unit_test(what_cannot_be_remembered_is_not_lent),
		cmocka_unit_test(a_denial_needs_no_row),
		cmocka_unit_test(more_nodes_than_rows_get_their_units),
		cmocka_unit_test(rows_apart_are_bounded),
		cmocka_unit_test(a_row_apart_without_memory_is_lost),
		cmocka_unit_test(a_full_store_lends_nothing_of_a_new_key),
		cmocka_unit_test(a_reset_forgets_what_is_apart),
		cmocka_unit_test(a_reset_forgets_the_ledger),
		cmocka_unit_test(a_leased_key_expires_as_any_other),
		cmocka_unit_test(time_never_goes_back_for_a_leased_key),
		cmocka_unit_test(a_window_begins_with_what_was_lent_ahead_of_it),
		cmocka_unit_test(what_was_lent_ahead_goes_back_when_it_was_said),
		cmocka_unit_test(what_was_lent_ahead_keeps_its_key_for_two_windows),
		cmocka_unit_test(another_period_counts_what_was_lent_ahead),
		cmocka_unit_test(two_hundred_threads_are_lent_exactly_the_limit),
		cmocka_unit_test(places_lent_at_once_do_not_overlap),
		cmocka_unit_test(a_store_says_what_the_engine_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
