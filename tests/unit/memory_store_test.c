/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory_store_test.c -- the embedded store: one step at a time, never more than its
 * keys, nothing forgotten that counts.
 *
 * are regressions of faults that an earlier system had: time that ran
 * backward for a key, and keys that outlived their expiry.
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/gale.h>

#include "engine/rule.h"
#include "runtime/atomic.h"
#include "stores/memory.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"
#include "tests/support/rules.h"

#define CROWD 200
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A store by itself, and the last thing that was asked of it. */
struct scene {
	struct test_allocator allocator;
	struct test_clock clock;
	struct store *store;
	struct store_op op;
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

static enum store_result run_bytes(struct scene *s, enum store_verb verb,
                                   const struct rule *rule, const void *key,
                                   size_t key_len, uint64_t cost)
{
	s->op = (struct store_op){ .verb = verb,
		                   .key = key,
		                   .key_len = (uint32_t)key_len,
		                   .rule = rule,
		                   .cost = cost };
	return store_run(s->store, &s->op, /* patient= */ true);
}

static enum store_result run(struct scene *s, enum store_verb verb,
                             const struct rule *rule, const char *key)
{
	return run_bytes(s, verb, rule, key, strlen(key), 1);
}

static bool allows(struct scene *s, const struct rule *rule, const char *key)
{
	assert_int_equal(run(s, STORE_STEP, rule, key), STORE_DONE);
	return s->op.answer.verdict == GALE_ALLOW;
}

/* How many of so many calls pass. */
static uint64_t passes(struct scene *s, const struct rule *rule, const char *key,
                       uint64_t calls)
{
	uint64_t allowed = 0;

	while (calls-- > 0)
		allowed += allows(s, rule, key);
	return allowed;
}

static struct gale_counts stats_of(struct scene *s)
{
	struct gale_counts stats;

	s->store->ops->stats(s->store, &stats);
	return stats;
}

static void sweep_all(struct store *store)
{
	while (!store->ops->sweep(store))
		continue;
}

/* ---- Two hundred at once --------------------------------------------------------- */

struct crowd {
	struct scene *scene;
	struct rule rule;
	_Atomic uint64_t allowed;
	_Atomic uint64_t denied;
	_Atomic uint64_t other;
	_Atomic uint64_t seen[CROWD + 1]; /* how often so much remained */
};

/* Half of the crowd waits for the lock, half comes back until it is free. */
static void crowd_step(void *arg, unsigned who)
{
	struct crowd *crowd = arg;
	struct store_op op = { .verb = STORE_STEP,
		               .key = (const uint8_t *)"key",
		               .key_len = 3,
		               .rule = &crowd->rule,
		               .cost = 1 };
	enum store_result result;

	while ((result = store_run(crowd->scene->store, &op, /* patient= */ who % 2)) ==
	       STORE_BUSY)
		must(sched_yield() == 0);
	if (result != STORE_DONE || op.answer.remaining > CROWD)
		add_relaxed(&crowd->other, 1);
	else if (op.answer.verdict == GALE_ALLOW)
		add_relaxed(&crowd->seen[op.answer.remaining], 1);
	add_relaxed(op.answer.verdict == GALE_ALLOW ? &crowd->allowed : &crowd->denied,
	            1);
}

static void two_hundred_threads_at_a_limit_of_fifty_admit_fifty(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct named_rule named = fifty_rule(i);
		struct crowd crowd = { .rule = compiled(named.rule) };
		struct scene s;

		scene_open(&s, 10);
		crowd.scene = &s;
		crew_run(CROWD, crowd_step, &crowd);
		if (crowd.allowed != FIFTY)
			print_error("%s\n", named.name);
		assert_int_equal(crowd.allowed, FIFTY);
		assert_int_equal(crowd.denied, CROWD - FIFTY);
		assert_int_equal(crowd.other, 0);
		scene_close(&s);
	}
}

static void two_hundred_increments_at_once_are_two_hundred(void **state)
{
	struct crowd crowd = { .rule = compiled(gale_fixed_window(CROWD, 1000)) };
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	crowd.scene = &s;
	crew_run(CROWD, crowd_step, &crowd);
	/* STORE-1: each saw the one before */
	assert_int_equal(crowd.allowed, CROWD);
	for (unsigned left = 0; left < CROWD; left++)
		assert_int_equal(crowd.seen[left], 1);
	assert_int_equal(run(&s, STORE_PEEK, &crowd.rule, "key"), STORE_DONE);
	assert_int_equal(s.op.answer.remaining, 0);
	scene_close(&s);
}

struct seats {
	struct house house;
	struct holder *holder; /* NULL: the key is nobody's */
	_Atomic uint64_t asked;
	_Atomic uint64_t pending;
	_Atomic uint64_t allowed;
	_Atomic uint64_t denied;
	_Atomic uint64_t wrong;
};

static void count_verdict(struct seats *seats, const struct gale_answer *answer)
{
	if (answer->why != GALE_WHY_RULE || answer->limit != FIFTY)
		add_relaxed(&seats->wrong, 1);
	else if (answer->verdict == GALE_ALLOW)
		add_relaxed(&seats->allowed, 1);
	else if (answer->verdict == GALE_DENY)
		add_relaxed(&seats->denied, 1);
}

static struct gale_answer fetched(struct seats *seats, struct gale_seat *seat,
                                  void *tag)
{
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };
	struct gale_completion completions[2];
	size_t count = 0;

	add_relaxed(&seats->pending, 1);
	while (count == 0) {
		must(poll(&ready, 1, 30000) == 1);
		count = gale_seat_completions(seat, completions, 2);
	}
	if (count != 1 || completions[0].tag != tag)
		add_relaxed(&seats->wrong, 1);
	return completions[0].answer;
}

static void seat_asks(void *arg, unsigned who)
{
	struct seats *seats = arg;
	struct gale_seat *seat;
	struct gale_answer answer;

	must(gale_join(seats->house.runtime, &seat) == GALE_ERR_OK);
	answer = gale_ask(seat, seats->house.limiter, "key", 3, 1, &who);
	if (add_relaxed(&seats->asked, 1) == CROWD - 1 && seats->holder)
		must(sem_post(&seats->holder->leave) == 0);
	if (answer.verdict == GALE_PENDING)
		answer = fetched(seats, seat, &who);
	count_verdict(seats, &answer);
	gale_leave(seat);
}

static void seat_waits(void *arg, unsigned who)
{
	struct seats *seats = arg;
	struct gale_seat *seat;
	struct gale_answer answer;

	(void)who;
	must(gale_join(seats->house.runtime, &seat) == GALE_ERR_OK);
	answer = gale_wait(seat, seats->house.limiter, "key", 3, 1, GALE_SECONDS(30));
	count_verdict(seats, &answer);
	gale_leave(seat);
}

static void seats_admit_fifty(const struct named_rule *named, bool held,
                              void (*work)(void *arg, unsigned who))
{
	struct house_plan plan = { .rule = named->rule, .shards = 2, .pending_max = 4 };
	struct seats seats = { .holder = NULL };
	struct holder holder;

	house_open(&seats.house, &plan);
	if (held) {
		holder_begin(&holder, seats.house.limiter, "key");
		seats.holder = &holder;
	}
	crew_run(CROWD, work, &seats);
	if (held) {
		holder_end(&holder);
		assert_int_equal(seats.pending, CROWD);
	}
	if (seats.allowed != FIFTY)
		print_error("%s\n", named->name);
	assert_int_equal(seats.allowed, FIFTY);
	assert_int_equal(seats.denied, CROWD - FIFTY);
	assert_int_equal(seats.wrong, 0);
	assert_true(house_close(&seats.house));
}

static void two_hundred_seats_at_a_limit_of_fifty_admit_fifty(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct named_rule named = fifty_rule(i);

		seats_admit_fifty(&named, /* held= */ false, seat_asks);
	}
}

/* Every one of them is told to come back, and is answered by a shard. */
static void two_hundred_pending_asks_at_a_limit_of_fifty_admit_fifty(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct named_rule named = fifty_rule(i);

		seats_admit_fifty(&named, /* held= */ true, seat_asks);
	}
}

static void two_hundred_waits_at_a_limit_of_fifty_admit_fifty(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct named_rule named = fifty_rule(i);

		seats_admit_fifty(&named, /* held= */ false, seat_waits);
	}
}

/* ---- What every store does ------------------------------------------------------- */

static void a_counter_counts(void **state)
{
	struct rule rule = compiled(gale_fixed_window(10, GALE_SECONDS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_true(allows(&s, &rule, "k"));
	assert_int_equal(s.op.answer.remaining, 9);
	assert_true(allows(&s, &rule, "k"));
	assert_int_equal(s.op.answer.remaining, 8);
	scene_close(&s);
}

static void keys_are_isolated(void **state)
{
	struct rule rule = compiled(gale_fixed_window(1, GALE_SECONDS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 100);
	assert_true(allows(&s, &rule, "a"));
	assert_false(allows(&s, &rule, "a"));
	assert_true(allows(&s, &rule, "b"));
	assert_true(allows(&s, &rule, "aa"));
	assert_false(allows(&s, &rule, "b"));
	scene_close(&s);
}

static void a_reset_key_is_fresh(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct rule rule = compiled(fifty_rule(i).rule);
		struct scene s;

		scene_open(&s, 1);
		assert_int_equal(passes(&s, &rule, "k", 60), FIFTY);
		assert_int_equal(run(&s, STORE_RESET, &rule, "k"), STORE_DONE);
		assert_int_equal(stats_of(&s).keys, 0);
		assert_int_equal(passes(&s, &rule, "k", 60), FIFTY);
		scene_close(&s);
	}
}

static void a_reset_of_an_unknown_key_does_nothing(void **state)
{
	struct rule rule = compiled(gale_fixed_window(1, GALE_SECONDS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_true(allows(&s, &rule, "known"));
	assert_int_equal(run(&s, STORE_RESET, &rule, "unknown"), STORE_DONE);
	assert_int_equal(stats_of(&s).keys, 1);
	assert_false(allows(&s, &rule, "known"));
	scene_close(&s);
}

static void a_thousand_and_one_milliseconds_later_it_counts_from_one(void **state)
{
	struct rule rule = compiled(gale_sliding_log(10, GALE_MILLIS(1000)));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_true(allows(&s, &rule, "k"));
	assert_true(allows(&s, &rule, "k"));
	test_clock_advance(&s.clock, GALE_MILLIS(1001));
	assert_true(allows(&s, &rule, "k"));
	assert_int_equal(s.op.answer.remaining, 9);
	scene_close(&s);
}

static void keys_are_bytes_of_any_value(void **state)
{
	static const uint8_t keys[][4] = {
		{ 0 },           { 0, 0 },        { 0, 0, 0 }, { 'a', 0 },
		{ 'a', 0, 'b' }, { 'a', 0, 'c' }, { 0, 'a' },  { 255, 0, 255, 0 },
	};
	static const size_t lens[] = { 1, 2, 3, 2, 3, 3, 2, 4 };
	struct rule rule = compiled(gale_fixed_window(1, GALE_SECONDS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < COUNT(keys); i++) {
			assert_int_equal(
			    run_bytes(&s, STORE_STEP, &rule, keys[i], lens[i], 1),
			    STORE_DONE);
			assert_int_equal(s.op.answer.verdict,
			                 round == 0 ? GALE_ALLOW : GALE_DENY);
		}
	assert_int_equal(stats_of(&s).keys, COUNT(keys));
	scene_close(&s);
}

static void a_name_and_a_key_that_read_alike_together_are_two(void **state)
{
	struct house_plan plan = { .rule = gale_fixed_window(1, GALE_SECONDS(1)) };
	struct house h;
	struct gale_limiter *a, *ab;

	(void)state;
	house_open(&h, &plan);
	a = house_limiter(&h, "a", plan.rule);
	ab = house_limiter(&h, "ab", plan.rule);
	assert_int_equal(ask_settled(h.seat, a, "bc", 2, 1).verdict, GALE_ALLOW);
	assert_int_equal(ask_settled(h.seat, ab, "c", 1, 1).verdict, GALE_ALLOW);
	assert_int_equal(ask_settled(h.seat, a, "bc", 2, 1).verdict, GALE_DENY);
	assert_int_equal(ask_settled(h.seat, ab, "c", 1, 1).verdict, GALE_DENY);
	assert_int_equal(house_stats(&h).keys, 2);
	gale_limiter_close(a);
	gale_limiter_close(ab);
	assert_true(house_close(&h));
}

static void looking_stores_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct rule rule = compiled(fifty_rule(i).rule);
		struct scene s;
		uint64_t calls;

		scene_open(&s, 10);
		calls = s.allocator.calls;
		assert_int_equal(run(&s, STORE_PEEK, &rule, "k"), STORE_DONE);
		assert_int_equal(s.op.answer.verdict, GALE_ALLOW);
		assert_int_equal(s.op.answer.remaining, FIFTY);
		assert_int_equal(run(&s, STORE_FORECAST, &rule, "k"), STORE_DONE);
		assert_int_equal(s.op.forecast.spendable_now, FIFTY);
		assert_int_equal(run(&s, STORE_CANCEL, &rule, "k"), STORE_NOT_BOOKED);
		assert_int_equal(stats_of(&s).keys, 0);
		assert_int_equal(stats_of(&s).steps, 0);
		assert_int_equal(s.allocator.calls, calls);

		/* And of a key that is there, it changes nothing. */
		assert_true(allows(&s, &rule, "k"));
		for (int look = 0; look < 5; look++) {
			assert_int_equal(run(&s, STORE_PEEK, &rule, "k"), STORE_DONE);
			assert_int_equal(s.op.answer.remaining, FIFTY - 1);
			assert_int_equal(run(&s, STORE_FORECAST, &rule, "k"),
			                 STORE_DONE);
			assert_int_equal(s.op.forecast.spendable_now, FIFTY - 1);
		}
		assert_int_equal(passes(&s, &rule, "k", 60), FIFTY - 1);
		scene_close(&s);
	}
}

/* A cost above the limit must not become a key: it would be a way to fill the store. */
static void a_denied_fresh_key_stores_nothing(void **state)
{
	struct rule rule = compiled(gale_fixed_window(5, GALE_SECONDS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_int_equal(run_bytes(&s, STORE_STEP, &rule, "k", 1, 6), STORE_DONE);
	assert_int_equal(s.op.answer.verdict, GALE_DENY);
	assert_true(s.op.answer.retry_after_us == GALE_NEVER);
	assert_int_equal(stats_of(&s).keys, 0);
	assert_int_equal(stats_of(&s).steps, 1);
	scene_close(&s);
}

/* Ten units at once are one stamp; an eleventh is refused, and needs no second one. */
static void a_denial_needs_no_memory(void **state)
{
	struct rule rule = compiled(gale_sliding_log(10, GALE_HOURS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_int_equal(run_bytes(&s, STORE_STEP, &rule, "k", 1, 10), STORE_DONE);
	assert_int_equal(s.op.answer.verdict, GALE_ALLOW);
	test_clock_advance(&s.clock, 1);
	s.allocator.fail_last = UINT64_MAX;
	assert_int_equal(run(&s, STORE_STEP, &rule, "k"), STORE_DONE);
	assert_int_equal(s.op.answer.verdict, GALE_DENY);
	s.allocator.fail_last = 0;
	scene_close(&s);
}

static void a_place_is_given_back_once(void **state)
{
	struct rule rule =
	    compiled(gale_leaky_bucket(10, GALE_SECONDS(1), GALE_SECONDS(1)));
	struct gale_slot slot;
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_true(allows(&s, &rule, "k"));
	assert_true(allows(&s, &rule, "k"));
	slot = s.op.answer.slot;
	assert_int_equal(s.op.answer.delay_ns, 100000000);
	for (int round = 0; round < 2; round++) {
		run(&s, STORE_PEEK, &rule, "k");
		s.op.verb = STORE_CANCEL;
		s.op.slot = slot;
		s.op.cost = 1;
		assert_int_equal(store_run(s.store, &s.op, true),
		                 round == 0 ? STORE_DONE : STORE_NOT_BOOKED);
	}
	assert_true(allows(&s, &rule, "k"));
	assert_int_equal(s.op.answer.delay_ns, 100000000); /* the same place again */
	scene_close(&s);
}

/* ---- Other rules ------------------------------------------------------------ */

static void words_are_never_read_under_another_kind(void **state)
{
	static const enum store_verb verbs[] = { STORE_STEP, STORE_PEEK, STORE_FORECAST,
		                                 STORE_CANCEL };
	struct rule ten = compiled(gale_fixed_window(10, GALE_HOURS(1)));
	struct rule others[] = {
		compiled(gale_token_budget(10, GALE_HOURS(1))),
		compiled(gale_sliding_window(10, GALE_HOURS(1), 128)),
		compiled(gale_sliding_log(10, GALE_HOURS(1))),
		compiled(gale_gcra(10, GALE_HOURS(1), 10)),
	};
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_int_equal(passes(&s, &ten, "k", 4), 4);
	for (size_t i = 0; i < COUNT(others); i++)
		for (size_t v = 0; v < COUNT(verbs); v++)
			assert_int_equal(run(&s, verbs[v], &others[i], "k"),
			                 STORE_CHANGED);
	assert_int_equal(stats_of(&s).changed, COUNT(others) * COUNT(verbs));
	assert_int_equal(stats_of(&s).keys, 1);
	assert_int_equal(passes(&s, &ten, "k", 20), 6); /* STORE-5: as it was */
	scene_close(&s);
}

static void other_parameters_are_accepted_once_the_key_has_expired(void **state)
{
	struct rule ten = compiled(gale_fixed_window(10, GALE_HOURS(1)));
	struct rule log = compiled(gale_sliding_log(3, GALE_HOURS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 1);
	assert_int_equal(passes(&s, &ten, "k", 20), 10);
	test_clock_advance(&s.clock, GALE_MINUTES(59) - 1);
	assert_int_equal(run(&s, STORE_STEP, &log, "k"), STORE_CHANGED);
	test_clock_advance(&s.clock, 1);
	assert_int_equal(passes(&s, &log, "k", 20), 3);
	assert_int_equal(run(&s, STORE_STEP, &ten, "k"), STORE_CHANGED);
	assert_int_equal(stats_of(&s).keys, 1);
	scene_close(&s);
}

/* A pacer's patience is how it is asked, not what its words mean. */
static void pacers_that_differ_in_patience_share_their_key(void **state)
{
	struct gale_rule impatient = gale_pacer(10, GALE_SECONDS(1), 2);
	struct rule pace = compiled(impatient), refuse;
	struct scene s;

	(void)state;
	impatient.max_wait_us = 0;
	refuse = compiled(impatient);
	scene_open(&s, 1);
	assert_int_equal(passes(&s, &pace, "k", 3), 3);
	assert_int_equal(passes(&s, &refuse, "k", 3), 0);
	assert_true(allows(&s, &pace, "k"));
	assert_int_equal(s.op.answer.delay_ns, 100000000);
	scene_close(&s);
}

/* L15: the one that leaks faster is the most that is in force. */
static void pacers_that_leak_at_different_speeds_share_their_key(void **state)
{
	struct rule pace = compiled(gale_pacer(10, GALE_SECONDS(1), 5));
	struct rule refuse = compiled(gale_pacer_limit(10, GALE_SECONDS(1), 5));
	struct scene s;

	(void)state;
	scene_open(&s, 1);
	assert_int_equal(passes(&s, &refuse, "k", 4), 4);
	assert_true(allows(&s, &pace, "k"));
	assert_int_equal(s.op.answer.delay_ns, 0); /* the fifth of the burst */
	assert_true(allows(&s, &pace, "k"));
	assert_true(allows(&s, &pace, "k"));
	assert_int_equal(s.op.answer.delay_ns, 100000000);
	scene_close(&s);
}

static void a_reset_works_under_any_parameters_and_refuses_nothing(void **state)
{
	struct rule ten = compiled(gale_fixed_window(10, GALE_HOURS(1)));
	struct rule two = compiled(gale_fixed_window(2, GALE_HOURS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	assert_int_equal(passes(&s, &ten, "k", 4), 4);
	assert_int_equal(run(&s, STORE_RESET, &two, "k"), STORE_DONE);
	assert_int_equal(stats_of(&s).keys, 0);
	assert_int_equal(stats_of(&s).changed, 0);
	assert_int_equal(passes(&s, &two, "k", 4), 2);
	scene_close(&s);
}

/* ---- Time ------------------------------------------------------------------------ */

/* R-13 (a key whose expiry lay within a tick of a wheel waited for a whole lap). */
static void r13_a_key_is_gone_at_its_expiry_wherever_that_lies(void **state)
{
	static const uint64_t spans[] = { 1,           2,        999,
		                          1000,        1001,     1500,
		                          99999,       1500500,  12345678,
		                          86400000001, 1u << 20, GALE_SECONDS(3600) };

	(void)state;
	for (size_t i = 0; i < COUNT(spans); i++) {
		struct rule rule = compiled(gale_sliding_log(5, spans[i]));
		struct rule other = compiled(gale_fixed_window(6, spans[i]));
		struct scene s;

		scene_open(&s, 1);
		assert_true(allows(&s, &rule, "k"));
		test_clock_advance(&s.clock, spans[i] - 1);
		sweep_all(s.store);
		assert_int_equal(stats_of(&s).keys, 1);
		assert_int_equal(run(&s, STORE_PEEK, &other, "k"), STORE_CHANGED);
		assert_int_equal(run(&s, STORE_STEP, &other, "l"), STORE_FULL);

		test_clock_advance(&s.clock, 1);
		assert_int_equal(run(&s, STORE_PEEK, &other, "k"), STORE_DONE);
		assert_int_equal(stats_of(&s).keys, 0); /* dropped by the run */
		assert_true(allows(&s, &other, "l"));
		test_clock_advance(&s.clock, spans[i]);
		sweep_all(s.store);
		assert_int_equal(stats_of(&s).keys, 0); /* dropped by the sweep */
		assert_int_equal(stats_of(&s).expired, 2);
		scene_close(&s);
	}
}

static bool holds_no_key(void *arg)
{
	struct gale_counts stats;

	must(gale_store_stats(arg, &stats) == GALE_ERR_OK);
	return stats.keys == 0;
}

/* R-13 again, with the runtime's own threads and the real clock. */
static void r13_a_store_that_nobody_asks_drops_expired_keys_by_itself(void **state)
{
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter_config config = { .name = "r13",
		                              .rule = gale_sliding_log(5, 2500) };
	struct gale_limiter *limiter;
	struct gale_seat *seat;

	(void)state;
	assert_int_equal(gale_runtime_open(NULL, &runtime), GALE_ERR_OK);
	assert_int_equal(gale_store_open(runtime, NULL, &store), GALE_ERR_OK);
	config.store = store;
	assert_int_equal(gale_limiter_open(runtime, &config, &limiter), GALE_ERR_OK);
	assert_int_equal(gale_join(runtime, &seat), GALE_ERR_OK);
	for (char key = 0; key < 100; key++)
		(void)gale_wait(seat, limiter, &key, 1, 1, GALE_SECONDS(30));
	assert_true(becomes_true(holds_no_key, store));
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(store);
	gale_runtime_close(runtime);
}

/* Reads now one side of a boundary, now the other. */
struct jumpy_clock {
	struct gale_clock clock;
	_Atomic uint64_t reads;
	uint64_t sides[2];
};

static uint64_t jumpy_now(struct gale_clock *self)
{
	struct jumpy_clock *jumpy = (struct jumpy_clock *)self;

	return jumpy->sides[add_relaxed(&jumpy->reads, 1) % 2];
}

static struct store *open_jumpy(struct jumpy_clock *jumpy, uint64_t before,
                                uint64_t after)
{
	static struct test_allocator allocator;
	struct memory_config config = { .name = "",
		                        .max_keys = 10,
		                        .allocator = &allocator.allocator,
		                        .clock = &jumpy->clock };
	struct store *store;

	test_allocator_init(&allocator);
	*jumpy = (struct jumpy_clock){ .clock = { .now_us = jumpy_now },
		                       .sides = { before, after } };
	store = memory_open(&config);
	assert_non_null(store);
	return store;
}

#define WINDOW_LIMIT 10
struct straddle {
	struct store *store;
	struct rule rule;
	_Atomic uint64_t seen[2][WINDOW_LIMIT]; /* of each window: so much remained */
	_Atomic uint64_t wrong;
};

static void straddle_once(struct straddle *straddle)
{
	struct store_op op = { .verb = STORE_STEP,
		               .key = (const uint8_t *)"k",
		               .key_len = 1,
		               .rule = &straddle->rule,
		               .cost = 1 };

	if (store_run(straddle->store, &op, /* patient= */ true) != STORE_DONE)
		add_relaxed(&straddle->wrong, 1);
	if (op.answer.verdict != GALE_ALLOW)
		return;
	/* 1 ms of the first window is left, or most of the second. */
	add_relaxed(&straddle->seen[op.answer.reset_after_us > 1000]
	                           [op.answer.remaining % WINDOW_LIMIT],
	            1);
}

static void straddle_often(void *arg, unsigned who)
{
	struct straddle *straddle = arg;

	for (int i = 0; i < 200; i++) {
		if (who == 0) /* drops the first window's count as soon as it may */
			sweep_all(straddle->store);
		else
			straddle_once(straddle);
	}
}

/*
 * R-11 (lock waiters that had read the clock before the lock opened an old window
 * again). In each window each number remains once at most: counts never go back.
 */
static void r11_waiters_at_a_boundary_never_reopen_a_window(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct jumpy_clock jumpy;
		struct straddle straddle = {
			.store = open_jumpy(&jumpy, 999000, 1001000),
			.rule =
			    compiled(gale_fixed_window(WINDOW_LIMIT, GALE_SECONDS(1))),
		};

		crew_run(8, straddle_often, &straddle);
		for (int left = 0; left < WINDOW_LIMIT; left++) {
			assert_in_range(straddle.seen[0][left], 0, 1);
			assert_int_equal(straddle.seen[1][left], 1);
		}
		assert_int_equal(straddle.wrong, 0);
		straddle.store->ops->close(straddle.store);
	}
}

/* R-3 (a clock that alternates around a boundary admitted a window again each time). */
static void r3_a_clock_that_alternates_admits_two_windows_at_most(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct named_rule named = fifty_rule(i);
		struct rule rule = compiled(named.rule);
		struct store_op op = { .verb = STORE_STEP,
			               .key = (const uint8_t *)"k",
			               .key_len = 1,
			               .rule = &rule,
			               .cost = 1 };
		bool turns = rule.is.kind == GALE_RULE_FIXED_WINDOW ||
		             rule.is.kind == GALE_RULE_TOKEN_BUDGET;
		struct jumpy_clock jumpy;
		struct store *store =
		    open_jumpy(&jumpy, GALE_HOURS(9) - 1000, GALE_HOURS(9) + 1000);
		uint64_t allowed = 0;

		for (int call = 0; call < 1000; call++) {
			assert_int_equal(store_run(store, &op, true), STORE_DONE);
			allowed += op.answer.verdict == GALE_ALLOW;
			sweep_all(store);
		}
		if (allowed > (turns ? 2 : 1) * FIFTY)
			print_error("%s\n", named.name);
		assert_in_range(allowed, FIFTY, (turns ? 2 : 1) * FIFTY);
		store->ops->close(store);
	}
}

/* MEMORY-1: what was dropped as expired stays of the past when the clock steps back. */
static void a_window_that_was_swept_is_not_opened_again(void **state)
{
	struct rule rule = compiled(gale_fixed_window(5, GALE_SECONDS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 10);
	test_clock_set(&s.clock, 999000);
	assert_int_equal(passes(&s, &rule, "k", 9), 5);
	test_clock_set(&s.clock, 1001000);
	sweep_all(s.store);
	assert_int_equal(stats_of(&s).keys, 0);
	test_clock_set(&s.clock, 999000);
	assert_int_equal(passes(&s, &rule, "k", 9), 5);
	assert_int_equal(s.op.answer.reset_after_us, 999000); /* the second's */
	assert_int_equal(passes(&s, &rule, "k", 9), 0);
	scene_close(&s);
}

static void years_forward_and_back_admit_nothing_twice(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct rule rule = compiled(fifty_rule(i).rule);
		struct scene s;

		scene_open(&s, 10);
		assert_int_equal(passes(&s, &rule, "k", 60), FIFTY);
		test_clock_advance(&s.clock, GALE_DAYS(3653));
		assert_int_equal(passes(&s, &rule, "k", 60), FIFTY);
		test_clock_set(&s.clock, HOUSE_NOW);
		assert_int_equal(passes(&s, &rule, "k", 60), 0);
		test_clock_set(&s.clock, 0);
		assert_int_equal(passes(&s, &rule, "k", 60), 0);
		sweep_all(s.store);
		assert_int_equal(passes(&s, &rule, "k", 60), 0);
		scene_close(&s);
	}
}

static void time_ends_in_2112_and_the_store_lives_on(void **state)
{
	static const uint64_t ends[] = { UINT64_C(1) << 52, (UINT64_C(1) << 52) + 1,
		                         UINT64_C(1) << 60, UINT64_MAX };

	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct rule rule = compiled(fifty_rule(i).rule);
		struct scene s;

		scene_open(&s, 10);
		assert_int_equal(passes(&s, &rule, "k", 60), FIFTY);
		for (size_t end = 0; end < COUNT(ends); end++) {
			test_clock_set(&s.clock, ends[end]);
			assert_int_equal(passes(&s, &rule, "k", 60),
			                 end == 0 ? FIFTY : 0);
			sweep_all(s.store);
		}
		scene_close(&s);
	}
}

/* ---- Bounded keys ---------------------------------------------------------------- */

static void number_key(uint64_t number, char key[8])
{
	memcpy(key, &number, 8);
}

static enum store_result step_number(struct scene *s, const struct rule *rule,
                                     uint64_t number)
{
	char key[8];

	number_key(number, key);
	return run_bytes(s, STORE_STEP, rule, key, sizeof(key), 1);
}

static void a_full_store_says_so_and_stores_nothing(void **state)
{
	struct rule rule = compiled(gale_fixed_window(5, GALE_HOURS(1)));
	struct scene s;
	uint64_t bytes;

	(void)state;
	scene_open(&s, 100);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(step_number(&s, &rule, i), STORE_DONE);
	bytes = s.allocator.bytes;
	for (uint64_t i = 100; i < 1100; i++)
		assert_int_equal(step_number(&s, &rule, i), STORE_FULL);
	assert_int_equal(s.allocator.bytes, bytes);
	assert_int_equal(stats_of(&s).keys, 100);
	assert_int_equal(stats_of(&s).full, 1000);
	assert_int_equal(stats_of(&s).steps, 100);
	/* What is denied needs no room, and is told by the rule. */
	assert_int_equal(run_bytes(&s, STORE_STEP, &rule, "too much", 8, 6),
	                 STORE_DONE);
	assert_int_equal(s.op.answer.verdict, GALE_DENY);
	assert_true(s.op.answer.retry_after_us == GALE_NEVER);
	for (uint64_t i = 0; i < 100; i++) { /* those that it knows go on */
		assert_int_equal(step_number(&s, &rule, i), STORE_DONE);
		assert_int_equal(s.op.answer.remaining, 3);
	}
	/* Of those that it refused, nothing was spent. */
	test_clock_advance(&s.clock, GALE_HOURS(1));
	assert_int_equal(step_number(&s, &rule, 100), STORE_DONE);
	assert_int_equal(s.op.answer.remaining, 4);
	scene_close(&s);
}

/* With one key at most, each new one needs the room of the one before, which lives in
 * another of the stripes nearly always. */
static void an_expired_key_makes_room_in_any_stripe(void **state)
{
	struct rule rule = compiled(gale_fixed_window(1, GALE_SECONDS(1)));
	struct scene s;

	(void)state;
	scene_open(&s, 1);
	for (uint64_t i = 0; i < 500; i++) {
		assert_int_equal(step_number(&s, &rule, i), STORE_DONE);
		assert_int_equal(s.op.answer.verdict, GALE_ALLOW);
		assert_int_equal(step_number(&s, &rule, i + 1), STORE_FULL);
		test_clock_advance(&s.clock, GALE_SECONDS(1));
	}
	assert_int_equal(stats_of(&s).expired, 499);
	scene_close(&s);
}

/*
 * The odd key has expired, but in its stripe many keys that were due before it and have
 * been moved on since stand in front of it.  memory.h: an expired one makes room.
 */
static void an_expired_key_makes_room_also_behind_keys_that_live_on(void **state)
{
	struct rule rule = compiled(gale_gcra(10, GALE_SECONDS(1), 10));
	char odd[8];
	struct scene s;

	(void)state;
	scene_open(&s, 1000);
	number_key(999, odd);
	for (uint64_t i = 0; i < 999; i++)
		assert_int_equal(step_number(&s, &rule, i), STORE_DONE);
	assert_int_equal(run_bytes(&s, STORE_STEP, &rule, odd, 8, 2), STORE_DONE);
	test_clock_advance(&s.clock, GALE_MILLIS(50));
	for (uint64_t i = 0; i < 999; i++)
		for (int call = 0; call < 5; call++)
			assert_int_equal(step_number(&s, &rule, i), STORE_DONE);
	test_clock_advance(&s.clock, GALE_MILLIS(150));
	assert_int_equal(step_number(&s, &rule, 1000), STORE_DONE);
	assert_int_equal(step_number(&s, &rule, 1001), STORE_FULL);
	assert_int_equal(stats_of(&s).keys, 1000);
	scene_close(&s);
}

#define FLOOD LONG_OR_BRIEF(1000000, 20000)
#define FLOOD_BYTES_MOST (512 * 1024) /* for 1000 keys, and the store itself */

static void open_flood(struct scene *s, const struct rule *daily)
{
	scene_open(s, 1000);
	assert_int_equal(passes(s, daily, "spent", 3), 3);
}

/* L8 (an earlier system evicted, and gave the evicted their budget back). */
static void a_flood_of_keys_at_a_bound_of_a_thousand_makes_no_room(void **state)
{
	struct rule daily = compiled(gale_fixed_window(3, GALE_DAYS(1)));
	struct rule hourly = compiled(gale_gcra(5, GALE_HOURS(1), 5));
	struct scene s;

	(void)state;
	open_flood(&s, &daily);
	for (uint64_t i = 0; i < FLOOD; i++) {
		enum store_result result = step_number(&s, &hourly, i);

		if (result != (i < 999 ? STORE_DONE : STORE_FULL))
			fail_msg("key %llu: %d", (unsigned long long)i, (int)result);
		if (i % 1000 == 0)
			assert_false(allows(&s, &daily, "spent"));
	}
	assert_in_range(s.allocator.most, 1, FLOOD_BYTES_MOST);
	assert_int_equal(stats_of(&s).keys, 1000);
	assert_int_equal(stats_of(&s).full, FLOOD - 999);
	scene_close(&s);
}

/* Keys come and expire; what they leave behind does not add up. */
static void a_flood_of_keys_that_come_and_go_leaves_memory_flat(void **state)
{
	struct rule daily = compiled(gale_fixed_window(3, GALE_DAYS(1)));
	struct rule brief = compiled(gale_sliding_log(5, 900));
	struct scene s;

	(void)state;
	open_flood(&s, &daily);
	for (uint64_t i = 0; i < FLOOD; i++) {
		enum store_result result = step_number(&s, &brief, i);

		if (result != STORE_DONE)
			fail_msg("key %llu: %d", (unsigned long long)i, (int)result);
		test_clock_advance(&s.clock, 1);
		if (i % 1000 == 0)
			assert_false(allows(&s, &daily, "spent"));
	}
	assert_in_range(s.allocator.most, 1, FLOOD_BYTES_MOST);
	test_clock_advance(&s.clock, 900);
	sweep_all(s.store);
	assert_int_equal(stats_of(&s).keys, 1);
	assert_int_equal(stats_of(&s).expired, FLOOD);
	scene_close(&s);
}

/* As a turn of a shard would stand still for all of them. */
static void a_sweep_drops_a_few_however_many_have_expired(void **state)
{
	struct rule brief = compiled(gale_fixed_window(5, 900));
	uint64_t left = 5000;
	struct scene s;

	(void)state;
	scene_open(&s, left);
	for (uint64_t i = 0; i < left; i++)
		assert_int_equal(step_number(&s, &brief, i), STORE_DONE);
	test_clock_advance(&s.clock, 900);
	while (!s.store->ops->sweep(s.store)) {
		assert_in_range(left - stats_of(&s).keys, 1, 64);
		left = stats_of(&s).keys;
	}
	assert_int_equal(left, 0);
	scene_close(&s);
}

struct flood {
	struct scene *scene;
	struct rule rule;
	_Atomic uint64_t done;
};

static void flood_step(void *arg, unsigned who)
{
	struct flood *flood = arg;

	for (uint64_t i = 0; i < 100; i++) {
		uint64_t number = who * 1000 + i;
		struct store_op op = { .verb = STORE_STEP,
			               .key = (const uint8_t *)&number,
			               .key_len = sizeof(number),
			               .rule = &flood->rule,
			               .cost = 1 };

		if (store_run(flood->scene->store, &op, true) == STORE_DONE)
			add_relaxed(&flood->done, 1);
	}
}

/* MEMORY-2, with everybody reaching for the last places at once. */
static void a_bound_is_exact_under_any_number_of_threads(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		struct flood flood = { .rule = compiled(
					   gale_fixed_window(5, GALE_HOURS(1))) };
		struct scene s;

		scene_open(&s, 777);
		flood.scene = &s;
		crew_run(16, flood_step, &flood);
		assert_int_equal(flood.done, 777);
		assert_int_equal(stats_of(&s).keys, 777);
		assert_int_equal(stats_of(&s).full, 16 * 100 - 777);
		scene_close(&s);
	}
}

static void a_log_that_grew_is_dropped_whole(void **state)
{
	struct rule rule = compiled(gale_sliding_log(5000, GALE_SECONDS(1)));
	struct scene s;
	uint64_t empty;

	(void)state;
	scene_open(&s, 10);
	empty = s.allocator.bytes;
	for (int i = 0; i < 5000; i++) {
		assert_true(allows(&s, &rule, "k"));
		test_clock_advance(&s.clock, 1);
	}
	assert_false(allows(&s, &rule, "k"));
	assert_in_range(s.allocator.bytes - empty, 5000 * 16, 5000 * 16 * 2);
	test_clock_advance(&s.clock, GALE_SECONDS(1));
	sweep_all(s.store);
	assert_in_range(s.allocator.bytes - empty, 1, 4096); /* the empty tables */
	scene_close(&s);
}

/* ---- Names ----------------------------------------------------------------------- */

static struct gale_answer ask_k(const struct house *h)
{
	return ask_settled(h->seat, h->limiter, "k", 1, 1);
}

static void a_named_store_is_shared_by_all_who_name_it(void **state)
{
	struct house_plan plan = { .rule = gale_fixed_window(3, GALE_HOURS(1)),
		                   .url = "memory:shared" };
	struct house one, two;

	(void)state;
	house_open(&one, &plan);
	house_open(&two, &plan);
	assert_int_equal(ask_k(&one).remaining, 2);
	assert_int_equal(ask_k(&two).remaining, 1);
	assert_int_equal(ask_k(&one).remaining, 0);
	assert_int_equal(ask_k(&two).verdict, GALE_DENY);
	assert_int_equal(house_stats(&two).keys, 1);
	assert_false(house_close(&one)); /* the store's memory is with the second */
	assert_true(house_close(&two));
	assert_true(test_allocator_is_balanced(&one.allocator));
}

static void a_named_store_lives_on_the_clock_of_its_first_opener(void **state)
{
	struct house_plan plan = { .rule = gale_fixed_window(3, GALE_HOURS(1)),
		                   .url = "memory:clock" };
	struct house one, two;

	(void)state;
	house_open(&one, &plan);
	house_open(&two, &plan);
	assert_int_equal(ask_k(&one).remaining, 2);
	house_close(&one);
	test_clock_advance(&two.clock, GALE_HOURS(2));
	assert_int_equal(ask_k(&two).remaining, 1);
	test_clock_advance(&one.clock, GALE_HOURS(1));
	assert_int_equal(ask_k(&two).remaining, 2);
	assert_true(house_close(&two));
	assert_true(test_allocator_is_balanced(&one.allocator));
}

struct plain {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

static void plain_open(struct plain *p, const char *url)
{
	struct gale_store_config store = { .url = url };
	struct gale_limiter_config limiter = { .name = "plain",
		                               .rule =
		                                   gale_sliding_log(2, GALE_DAYS(1)) };

	must(gale_runtime_open(NULL, &p->runtime) == GALE_ERR_OK);
	must(gale_store_open(p->runtime, &store, &p->store) == GALE_ERR_OK);
	limiter.store = p->store;
	must(gale_limiter_open(p->runtime, &limiter, &p->limiter) == GALE_ERR_OK);
	must(gale_join(p->runtime, &p->seat) == GALE_ERR_OK);
}

static void plain_close(struct plain *p)
{
	gale_leave(p->seat);
	gale_limiter_close(p->limiter);
	gale_store_close(p->store);
	gale_runtime_close(p->runtime);
}

static enum gale_verdict plain_wait(struct plain *p)
{
	return gale_wait(p->seat, p->limiter, "k", 1, 1, GALE_SECONDS(30)).verdict;
}

/* With no clock of the host's, the store has its own, not its opener's. */
static void a_named_store_outlives_the_runtime_that_opened_it(void **state)
{
	struct plain one, two;

	(void)state;
	plain_open(&one, "memory:outlives");
	plain_open(&two, "memory:outlives");
	assert_int_equal(plain_wait(&one), GALE_ALLOW);
	plain_close(&one);
	assert_int_equal(plain_wait(&two), GALE_ALLOW);
	assert_int_equal(plain_wait(&two), GALE_DENY);
	plain_close(&two);
}

static void a_name_is_forgotten_with_its_last_closer(void **state)
{
	struct plain p;

	(void)state;
	for (int life = 0; life < 3; life++) {
		plain_open(&p, "memory:forgotten");
		assert_int_equal(plain_wait(&p), GALE_ALLOW);
		assert_int_equal(plain_wait(&p), GALE_ALLOW);
		assert_int_equal(plain_wait(&p), GALE_DENY);
		plain_close(&p);
	}
}

static void unnamed_stores_and_other_names_are_not_shared(void **state)
{
	static const char *const urls[] = { "memory:",  "memory:",  NULL,
		                            "memory:a", "memory:b", "memory:A" };
	struct plain p[COUNT(urls)];

	(void)state;
	for (size_t i = 0; i < COUNT(urls); i++)
		plain_open(&p[i], urls[i]);
	for (size_t i = 0; i < COUNT(urls); i++) {
		assert_int_equal(plain_wait(&p[i]), GALE_ALLOW);
		assert_int_equal(plain_wait(&p[i]), GALE_ALLOW);
		assert_int_equal(plain_wait(&p[i]), GALE_DENY);
	}
	for (size_t i = 0; i < COUNT(urls); i++)
		plain_close(&p[i]);
}

static void the_first_opener_of_a_name_decides_how_many_keys(void **state)
{
	struct house_plan plan = { .rule = gale_fixed_window(3, GALE_HOURS(1)),
		                   .url = "memory:keys",
		                   .max_keys = 1 };
	struct house one, two;

	(void)state;
	house_open(&one, &plan);
	plan.max_keys = 100;
	house_open(&two, &plan);
	assert_int_equal(house_ask(&two, "a").verdict, GALE_ALLOW);
	assert_int_equal(house_ask(&two, "b").why, GALE_WHY_FULL);
	house_close(&one);
	assert_int_equal(house_ask(&two, "b").why, GALE_WHY_FULL);
	assert_true(house_close(&two));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_hundred_threads_at_a_limit_of_fifty_admit_fifty),
		cmocka_unit_test(two_hundred_increments_at_once_are_two_hundred),
		cmocka_unit_test(two_hundred_seats_at_a_limit_of_fifty_admit_fifty),
		cmocka_unit_test(
		    two_hundred_pending_asks_at_a_limit_of_fifty_admit_fifty),
		cmocka_unit_test(two_hundred_waits_at_a_limit_of_fifty_admit_fifty),
		cmocka_unit_test(a_counter_counts),
		cmocka_unit_test(keys_are_isolated),
		cmocka_unit_test(a_reset_key_is_fresh),
		cmocka_unit_test(a_reset_of_an_unknown_key_does_nothing),
		cmocka_unit_test(
		    a_thousand_and_one_milliseconds_later_it_counts_from_one),
		cmocka_unit_test(keys_are_bytes_of_any_value),
		cmocka_unit_test(a_name_and_a_key_that_read_alike_together_are_two),
		cmocka_unit_test(looking_stores_nothing),
		cmocka_unit_test(a_denied_fresh_key_stores_nothing),
		cmocka_unit_test(a_denial_needs_no_memory),
		cmocka_unit_test(a_place_is_given_back_once),
		cmocka_unit_test(words_are_never_read_under_another_kind),
		cmocka_unit_test(
		    other_parameters_are_accepted_once_the_key_has_expired),
		cmocka_unit_test(pacers_that_differ_in_patience_share_their_key),
		cmocka_unit_test(pacers_that_leak_at_different_speeds_share_their_key),
		cmocka_unit_test(
		    a_reset_works_under_any_parameters_and_refuses_nothing),
		cmocka_unit_test(r13_a_key_is_gone_at_its_expiry_wherever_that_lies),
		cmocka_unit_test(
		    r13_a_store_that_nobody_asks_drops_expired_keys_by_itself),
		cmocka_unit_test(r11_waiters_at_a_boundary_never_reopen_a_window),
		cmocka_unit_test(r3_a_clock_that_alternates_admits_two_windows_at_most),
		cmocka_unit_test(a_window_that_was_swept_is_not_opened_again),
		cmocka_unit_test(years_forward_and_back_admit_nothing_twice),
		cmocka_unit_test(time_ends_in_2112_and_the_store_lives_on),
		cmocka_unit_test(a_full_store_says_so_and_stores_nothing),
		cmocka_unit_test(an_expired_key_makes_room_in_any_stripe),
		cmocka_unit_test(
		    an_expired_key_makes_room_also_behind_keys_that_live_on),
		cmocka_unit_test(
		    a_flood_of_keys_at_a_bound_of_a_thousand_makes_no_room),
		cmocka_unit_test(a_flood_of_keys_that_come_and_go_leaves_memory_flat),
		cmocka_unit_test(a_sweep_drops_a_few_however_many_have_expired),
		cmocka_unit_test(a_bound_is_exact_under_any_number_of_threads),
		cmocka_unit_test(a_log_that_grew_is_dropped_whole),
		cmocka_unit_test(a_named_store_is_shared_by_all_who_name_it),
		cmocka_unit_test(a_named_store_lives_on_the_clock_of_its_first_opener),
		cmocka_unit_test(a_named_store_outlives_the_runtime_that_opened_it),
		cmocka_unit_test(a_name_is_forgotten_with_its_last_closer),
		cmocka_unit_test(unnamed_stores_and_other_names_are_not_shared),
		cmocka_unit_test(the_first_opener_of_a_name_decides_how_many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
