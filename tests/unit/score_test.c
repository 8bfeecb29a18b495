/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * score_test.c -- each answer that is told is counted once, for its limiter, by its reason.
 *
 * A test keeps a count of its own of all that it is told, and compares.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "face/seat.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/must.h"
#include "tests/support/whys.h"
#include "sim/random.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LIMIT 5

/* ---- What was told ---------------------------------------------------------------- */

struct told_counts {
	uint64_t allowed[WHYS], denied[WHYS];
};

/* One seat's asks about one limiter. */
struct asker {
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	struct told_counts told;
	uint64_t asked, pending;
};

static void note(struct asker *asker, struct gale_answer answer)
{
	asker->asked++;
	if (answer.verdict == GALE_PENDING)
		asker->pending++;
	else if (answer.verdict == GALE_ALLOW)
		asker->told.allowed[answer.why]++;
	else
		asker->told.denied[answer.why]++;
}

static void take_completions(struct asker *asker)
{
	struct gale_completion some[8];
	size_t count;

	while ((count = gale_seat_completions(asker->seat, some, COUNT(some))) > 0)
		for (size_t i = 0; i < count; i++) {
			asker->pending--;
			asker->asked--; /* it was asked before */
			note(asker, some[i].answer);
		}
}

static void await_all(struct asker *asker)
{
	struct pollfd ready = { .fd = gale_seat_fd(asker->seat), .events = POLLIN };

	take_completions(asker);
	while (asker->pending > 0) {
		must(poll(&ready, 1, 30000) == 1);
		take_completions(asker);
	}
}

static void ask_named(struct asker *asker, const char *key, uint64_t cost)
{
	note(asker,
	     gale_ask(asker->seat, asker->limiter, key, strlen(key), cost, asker));
}

static void ask_waiting(struct asker *asker, const char *key, uint64_t cost)
{
	note(asker, gale_wait(asker->seat, asker->limiter, key, strlen(key), cost,
	                      GALE_SECONDS(30)));
}

static void ask_many(struct asker *asker, const char *key, uint64_t cost)
{
	struct gale_question questions[20];
	struct gale_answer answers[20];

	for (size_t i = 0; i < COUNT(questions); i++)
		questions[i] = (struct gale_question){ key, strlen(key), cost, asker };
	gale_ask_many(asker->seat, asker->limiter, questions, COUNT(questions),
	              answers);
	for (size_t i = 0; i < COUNT(questions); i++)
		note(asker, answers[i]);
}

static void ask_held(struct asker *asker, const char *key, uint64_t cost)
{
	struct gale_key *held;

	must(gale_key_open(asker->seat, asker->limiter, key, strlen(key), &held) ==
	     GALE_ERR_OK);
	for (int i = 0; i < 3; i++) {
		note(asker, gale_ask_key(held, cost, asker));
		await_all(asker);
	}
	gale_key_close(held);
}

typedef void ask_fn(struct asker *asker, const char *key, uint64_t cost);
static ask_fn *const ways[] = { ask_named, ask_waiting, ask_many, ask_held };

static void ask_in_all_ways(struct asker *asker, const char *key, uint64_t cost)
{
	for (size_t way = 0; way < COUNT(ways); way++)
		for (int i = 0; i < 2; i++) {
			ways[way](asker, key, cost);
			await_all(asker);
		}
}

static void add_told(struct told_counts *sum, const struct told_counts *told)
{
	for (unsigned why = 0; why < WHYS; why++) {
		sum->allowed[why] += told->allowed[why];
		sum->denied[why] += told->denied[why];
	}
}

static struct gale_limiter_counts counts_of(struct gale_limiter *limiter)
{
	struct gale_limiter_counts counts;

	must(gale_limiter_stats(limiter, &counts) == GALE_ERR_OK);
	return counts;
}

/* All that was told is counted, under its reason, and nothing else is. */
static uint64_t expect_counted(struct gale_limiter *limiter,
                               const struct told_counts *told)
{
	struct gale_limiter_counts counts = counts_of(limiter);
	uint64_t allowed = 0, denied = 0;

	for (unsigned why = 0; why < GALE_WHY_ROOM; why++) {
		assert_int_equal(counts.allowed_by[why],
		                 why < WHYS ? told->allowed[why] : 0);
		assert_int_equal(counts.denied_by[why],
		                 why < WHYS ? told->denied[why] : 0);
		allowed += counts.allowed_by[why];
		denied += counts.denied_by[why];
	}
	assert_int_equal(counts.allowed, allowed);
	assert_int_equal(counts.denied, denied);
	return allowed + denied;
}

static void expect_all_counted(const struct asker *asker)
{
	assert_int_equal(asker->pending, 0);
	assert_int_equal(expect_counted(asker->limiter, &asker->told), asker->asked);
}

/* ---- Ways to ask ------------------------------------------------------------------ */

static struct house_plan plan_of(enum gale_mode mode)
{
	return (struct house_plan){ .rule = gale_fixed_window(LIMIT, GALE_HOURS(1)),
		                    .mode = mode };
}

static struct asker asker_of(const struct house *h)
{
	return (struct asker){ .seat = h->seat, .limiter = h->limiter };
}

static void each_way_counts_once_in(enum gale_mode mode)
{
	struct house_plan plan = plan_of(mode);
	struct asker asker;
	struct house h;

	house_open(&h, &plan);
	asker = asker_of(&h);
	ask_in_all_ways(&asker, "alice", 1);
	ask_in_all_ways(&asker, "a key that is longer than sixteen", 1);
	ask_in_all_ways(&asker, "bob", LIMIT + 1); /* too much */
	ask_in_all_ways(&asker, "bob", 0);         /* no cost */
	ask_named(&asker, "", 1);                  /* no key */
	ask_waiting(&asker, "", 1);
	ask_many(&asker, "", 1);
	expect_all_counted(&asker);
	assert_true(asker.told.denied[GALE_WHY_BAD_ASK] > 0);
	assert_int_equal(counts_of(h.limiter).allowed, 2 * LIMIT);
	assert_true(house_close(&h));
}

static void each_way_counts_once(void **state)
{
	(void)state;
	each_way_counts_once_in(GALE_LEASED);
	each_way_counts_once_in(GALE_CACHED_DENY);
	each_way_counts_once_in(GALE_STRICT);
}

static void a_pacer_counts_places(void **state)
{
	struct house_plan plan = { .rule = gale_pacer(1000, GALE_SECONDS(1), 3),
		                   .mode = GALE_LEASED };
	struct asker asker;
	struct house h;

	(void)state;
	plan.rule.max_wait_us = GALE_MILLIS(20);
	house_open(&h, &plan);
	asker = asker_of(&h);
	ask_in_all_ways(&asker, "alice", 1);
	expect_all_counted(&asker);
	assert_true(asker.told.allowed[GALE_WHY_CREDIT] > 0);
	assert_true(asker.told.denied[GALE_WHY_SPENT] > 0);
	assert_true(house_close(&h));
}

/* ---- What the rule did not decide ------------------------------------------------- */

/* A store of which nothing comes but this. */
struct odd_store {
	struct store store;
	struct store *inner;
	enum store_result result;
};

static enum store_result odd_run(struct store *self, struct store_op *op, bool patient)
{
	(void)patient;
	op->answer = (struct gale_answer){ 0 };
	return ((struct odd_store *)self)->result;
}

static void odd_lend(const struct store_client *client,
                     const struct lend_request *requests, size_t count)
{
	struct odd_store *odd = (struct odd_store *)client->store;
	struct store_home *home = client->home;

	for (size_t i = 0; i < count; i++)
		home->on_answer(home, &(struct lend_answer){
					  .number = requests[i].ask.number,
					  .result = odd->result == STORE_QUARANTINE
		                                        ? STORE_DONE
		                                        : odd->result,
					  .waits = odd->result == STORE_QUARANTINE,
					  .grant.retry_us = GALE_SECONDS(1),
				      });
}

static bool odd_sweep(struct store *self)
{
	(void)self;
	return true;
}

static void odd_close(struct store *self)
{
	struct odd_store *odd = (struct odd_store *)self;

	odd->inner->ops->close(odd->inner);
}

static const struct store_ops odd_ops = {
	.run = odd_run, .lend = odd_lend, .sweep = odd_sweep, .close = odd_close
};

static void odd_begin(struct odd_store *odd, struct house *h, enum store_result result)
{
	*odd = (struct odd_store){ { .ops = &odd_ops }, h->store->inner, result };
	h->limiter->lender.store = &odd->store;
	house_put_inside(h, &odd->store);
}

static const enum store_result failures[] = {
	STORE_BUSY, STORE_LATE,   STORE_FULL,    STORE_NO_MEMORY, STORE_CHANGED,
	STORE_DOWN, STORE_BROKEN, STORE_CROWDED, STORE_WRONG,     STORE_QUARANTINE,
};

static void a_failure_counts_once(enum gale_mode mode, enum gale_on_outage on_outage,
                                  enum store_result failure)
{
	struct house_plan plan = plan_of(mode);
	struct odd_store odd;
	struct asker asker;
	struct house h;

	plan.on_outage = on_outage;
	plan.outage_share = on_outage == GALE_ON_OUTAGE_SHARE ? 2 : 0;
	plan.lease.patience_us = 1000; /* of a store that is busy for ever */
	house_open(&h, &plan);
	odd_begin(&odd, &h, failure);
	asker = asker_of(&h);
	ask_in_all_ways(&asker, "alice", 1);
	expect_all_counted(&asker);
	assert_int_equal(asker.told.allowed[GALE_WHY_CREDIT], 0);
	assert_true(house_close(&h));
}

static void what_a_policy_decides_counts_under_its_reason(void **state)
{
	(void)state;
	for (enum gale_on_outage policy = GALE_ON_OUTAGE_DENY;
	     policy <= GALE_ON_OUTAGE_SHARE; policy++)
		for (size_t i = 0; i < COUNT(failures); i++) {
			a_failure_counts_once(GALE_STRICT, policy, failures[i]);
			a_failure_counts_once(GALE_CACHED_DENY, policy, failures[i]);
			a_failure_counts_once(GALE_LEASED, policy, failures[i]);
		}
}

/* More than may be pending: what is crowded out is counted, too. */
static void what_is_crowded_out_counts(void **state)
{
	struct house_plan plan = plan_of(GALE_LEASED);
	struct asker asker;
	struct house h;
	char key[8];

	(void)state;
	plan.turns = true; /* nothing is answered before a turn */
	plan.pending_max = 4;
	house_open(&h, &plan);
	asker = asker_of(&h);
	for (int i = 0; i < 10; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		ask_named(&asker, key, 1);
	}
	assert_int_equal(asker.pending, 4);
	assert_int_equal(expect_counted(h.limiter, &asker.told), 6);
	while (asker.pending > 0) {
		(void)gale_turn(h.runtime);
		take_completions(&asker);
	}
	expect_all_counted(&asker);
	assert_int_equal(asker.told.denied[GALE_WHY_BUSY], 6);
	assert_true(house_close(&h));
}

/* One that gale_wait gave up is late, once, and what comes for it later is nothing. */
static void what_comes_too_late_counts_once(void **state)
{
	struct house_plan plan = plan_of(GALE_LEASED);
	struct asker asker;
	struct house h;

	(void)state;
	plan.turns = true;
	plan.still = true; /* so a turn brings nothing in time */
	house_open(&h, &plan);
	asker = asker_of(&h);
	note(&asker, gale_wait(h.seat, h.limiter, "alice", 5, 1, 0));
	ask_named(&asker, "alice", 1);
	while (asker.pending > 0) {
		(void)gale_turn(h.runtime);
		take_completions(&asker);
	}
	expect_all_counted(&asker);
	assert_int_equal(asker.told.denied[GALE_WHY_LATE], 1);
	assert_true(house_close(&h));
}

/* ---- Ends ------------------------------------------------------------------------- */

static void asks_of_a_runtime_that_is_closed_count(void **state)
{
	struct house_plan plan = plan_of(GALE_LEASED);
	struct gale_key *held;
	struct asker asker;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	asker = asker_of(&h);
	must(gale_key_open(h.seat, h.limiter, "alice", 5, &held) == GALE_ERR_OK);
	ask_waiting(&asker, "alice", 1);
	gale_runtime_close(h.runtime);
	note(&asker, gale_ask_key(held, 1, NULL));
	ask_named(&asker, "alice", 1);
	ask_waiting(&asker, "alice", 1);
	ask_many(&asker, "alice", 1);
	expect_all_counted(&asker);
	assert_int_equal(asker.told.denied[GALE_WHY_CLOSED], asker.asked - 1);
	gale_key_close(held);
	gale_leave(h.seat);
	gale_limiter_close(h.limiter);
	gale_store_close(h.store);
	assert_true(test_allocator_is_balanced(&h.allocator));
}

static void asks_of_no_limiter_are_no_limiters(void **state)
{
	struct house_plan plan = plan_of(GALE_LEASED);
	struct gale_limiter *other;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	other = house_limiter(&h, "other", plan.rule);
	gale_limiter_close(other);
	assert_int_equal(gale_ask(h.seat, other, "k", 1, 1, NULL).why, GALE_WHY_CLOSED);
	assert_int_equal(gale_ask(h.seat, NULL, "k", 1, 1, NULL).why, GALE_WHY_BAD_ASK);
	assert_int_equal(house_metric(&h, "asks_of_no_open_limiter"), 2);
	assert_int_equal(house_metric(&h, "asks_denied"), 0);
	assert_true(house_close(&h));
}

static void what_a_seat_leaves_behind_is_dropped(void **state)
{
	struct house_plan plan = plan_of(GALE_LEASED);
	struct gale_seat *seat;
	struct asker asker;
	struct house h;

	(void)state;
	plan.turns = true;
	house_open(&h, &plan);
	must(gale_join(h.runtime, &seat) == GALE_ERR_OK);
	asker = (struct asker){ .seat = seat, .limiter = h.limiter };
	ask_named(&asker, "alice", 1);
	ask_named(&asker, "bob", 1);
	assert_int_equal(asker.pending, 2);
	gale_leave(seat);
	while (gale_turn(h.runtime) > 0)
		;
	assert_int_equal(counts_of(h.limiter).dropped, 2);
	assert_int_equal(house_metric(&h, "asks_dropped"), 2);
	assert_int_equal(expect_counted(h.limiter, &asker.told), 0);
	assert_true(house_close(&h));
}

/* ---- Many seats and limiters ------------------------------------------------------ */

#define THREADS 8
#define ASKS 4000

struct crowd {
	struct house h;
	struct asker askers[THREADS];
};

static void ask_at_random(void *arg, unsigned who)
{
	struct crowd *crowd = arg;
	struct asker *asker = &crowd->askers[who];
	struct chance chance = { who + 1 };
	char key[16];

	must(gale_join(crowd->h.runtime, &asker->seat) == GALE_ERR_OK);
	asker->limiter = crowd->h.limiter;
	while (asker->asked < ASKS) {
		snprintf(key, sizeof(key), "a key of %u",
		         (unsigned)chance_below(&chance, 20));
		ways[chance_below(&chance, COUNT(ways))](asker, key,
		                                         1 + chance_below(&chance, 3));
		take_completions(asker);
	}
	await_all(asker);
	if (who % 2)
		gale_leave(asker->seat);
}

static void seats_count_together(enum gale_mode mode)
{
	struct house_plan plan = plan_of(mode);
	struct told_counts told = { 0 };
	struct crowd crowd = { 0 };
	uint64_t asked = 0;

	plan.rule.limit = 1000;
	house_open(&crowd.h, &plan);
	crew_run(THREADS, ask_at_random, &crowd);
	for (unsigned i = 0; i < THREADS; i++) {
		add_told(&told, &crowd.askers[i].told);
		asked += crowd.askers[i].asked;
	}
	assert_true(asked >= THREADS * ASKS);
	assert_int_equal(expect_counted(crowd.h.limiter, &told), asked);
	for (unsigned i = 0; i < THREADS; i += 2) {
		crowd.askers[i].seat->owner = pthread_self(); /* its thread is gone */
		gale_leave(crowd.askers[i].seat);
	}
	assert_int_equal(expect_counted(crowd.h.limiter, &told), asked);
	assert_int_equal(house_metric(&crowd.h, "asks_allowed") +
	                     house_metric(&crowd.h, "asks_denied"),
	                 asked);
	assert_true(house_close(&crowd.h));
}

static void threads_count_together(void **state)
{
	(void)state;
	seats_count_together(GALE_LEASED);
	seats_count_together(GALE_CACHED_DENY);
	seats_count_together(GALE_STRICT);
}

#define SEATS 3
#define LIMITERS 100

static void ask_times(struct gale_seat *seat, struct gale_limiter *limiter,
                      unsigned times)
{
	while (times-- > 0)
		(void)gale_wait(seat, limiter, "k", 1, 1, GALE_SECONDS(30));
}

static uint64_t answered(struct gale_limiter *limiter)
{
	struct gale_limiter_counts counts = counts_of(limiter);

	return counts.allowed + counts.denied;
}

/* Each seat a score for each limiter, whichever was there first. */
static void each_limiter_counts_its_own(void **state)
{
	struct house_plan plan = plan_of(GALE_STRICT);
	struct gale_limiter *limiters[LIMITERS];
	struct gale_seat *seats[SEATS];
	char name[16];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (unsigned i = 0; i < LIMITERS; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		limiters[i] = house_limiter(&h, name, plan.rule);
		if (i % (LIMITERS / SEATS + 1) == 0)
			must(gale_join(h.runtime, &seats[i / (LIMITERS / SEATS + 1)]) ==
			     GALE_ERR_OK);
	}
	for (unsigned i = 0; i < LIMITERS; i++)
		for (unsigned j = 0; j < SEATS; j++)
			ask_times(seats[j], limiters[i], i + j);
	gale_leave(seats[1]);
	for (unsigned i = 0; i < LIMITERS; i++)
		assert_int_equal(answered(limiters[i]), SEATS * i + 3);
	for (unsigned i = 0; i < LIMITERS; i++)
		gale_limiter_close(limiters[i]);
	gale_leave(seats[0]);
	gale_leave(seats[2]);
	assert_true(house_close(&h));
}

static uint64_t asks_of_all(struct house *h)
{
	return house_metric(h, "asks_allowed") + house_metric(h, "asks_denied");
}

/* A number is given again, and its scores begin at 0; all together never falls. */
static void what_a_limiter_counted_outlives_it(void **state)
{
	struct house_plan plan = plan_of(GALE_STRICT);
	struct gale_limiter *first, *second;
	struct house h;
	uint32_t number;

	(void)state;
	house_open(&h, &plan);
	first = house_limiter(&h, "first", plan.rule);
	ask_times(h.seat, first, 7);
	assert_int_equal(answered(first), 7);
	number = first->locked.number;
	gale_limiter_close(first);
	assert_int_equal(asks_of_all(&h), 7);
	second = house_limiter(&h, "second", plan.rule);
	assert_int_equal(second->locked.number, number);
	assert_int_equal(answered(second), 0);
	ask_times(h.seat, second, 2);
	assert_int_equal(answered(second), 2);
	assert_int_equal(asks_of_all(&h), 9);
	assert_true(house_metric(&h, "asks_allowed") == LIMIT + 2);
	gale_limiter_close(second);
	assert_true(house_close(&h));
}

static void a_handle_that_is_closed_has_no_stats(void **state)
{
	struct house_plan plan = plan_of(GALE_STRICT);
	struct gale_limiter_counts counts;
	struct gale_limiter *other;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	other = house_limiter(&h, "other", plan.rule);
	gale_limiter_close(other);
	assert_int_equal(gale_limiter_stats(other, &counts), GALE_ERR_LIMITER);
	assert_int_equal(gale_limiter_stats(NULL, &counts), GALE_ERR_LIMITER);
	assert_int_equal(gale_limiter_stats(h.limiter, NULL), GALE_ERR_RET);
	assert_int_equal(gale_limiter_stats_sized(h.limiter, &counts, 7),
	                 GALE_ERR_SIZE);
	assert_true(house_close(&h));
}

static void each_reason_has_a_name_and_a_place(void **state)
{
	(void)state;
	assert_int_equal(SCORE_WHYS, GALE_WHY_SLOT); /* the rest is of guards */
	for (enum gale_why why = 0; why < WHYS; why++) {
		assert_string_not_equal(gale_why_name(why), "unknown");
		for (enum gale_why other = 0; other < why; other++)
			assert_string_not_equal(gale_why_name(why),
			                        gale_why_name(other));
	}
	assert_string_equal(gale_why_name(WHYS), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_counts_once),
		cmocka_unit_test(a_pacer_counts_places),
		cmocka_unit_test(what_a_policy_decides_counts_under_its_reason),
		cmocka_unit_test(what_is_crowded_out_counts),
		cmocka_unit_test(what_comes_too_late_counts_once),
		cmocka_unit_test(asks_of_a_runtime_that_is_closed_count),
		cmocka_unit_test(asks_of_no_limiter_are_no_limiters),
		cmocka_unit_test(what_a_seat_leaves_behind_is_dropped),
		cmocka_unit_test(threads_count_together),
		cmocka_unit_test(each_limiter_counts_its_own),
		cmocka_unit_test(what_a_limiter_counted_outlives_it),
		cmocka_unit_test(a_handle_that_is_closed_has_no_stats),
		cmocka_unit_test(each_reason_has_a_name_and_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
