/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * rule_lot_test.c -- limits that change by lot while threads ask (law L15).
 *
 * Each seed is a kind of rule in a mode.  Threads ask by name and by held keys, and another one
 * gives the limiter one limit after the other meanwhile.  The store's clock stands still, so it is
 * one window: no key gets more than the largest limit, nothing is refused for a change, and under a
 * limit that is larger than all before, what is missing to it may pass to the unit.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <poll.h>
#include <string.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define HOUR GALE_HOURS(1)
#define KEYS 3
#define ASKERS 3
#define ASKS 300 /* of each asker, by key, or about that */
#define LEAST 50
#define MOST 400
#define SEEDS LONG_OR_BRIEF(320, 40)

static struct gale_rule rule_of(uint64_t kind, uint64_t limit)
{
	switch (kind) {
	case 0:
		return gale_fixed_window(limit, HOUR);
	case 1:
		return gale_gcra(1, HOUR, limit);
	case 2:
		return gale_quota_anchored(limit, HOUR, GALE_MINUTES(7));
	case 3:
		return gale_token_bucket(limit, 1, HOUR);
	case 4: /* these two are not leased */
		return gale_sliding_window(limit, HOUR, 10);
	default:
		return gale_token_budget(limit, HOUR);
	}
}

#define KINDS 6
#define LEASED_KINDS 4

static struct scene {
	struct house house;
	uint64_t kind;
	uint64_t largest, changes;
	uint64_t seeds[ASKERS + 1];
	_Atomic uint64_t admitted[KEYS];
	_Atomic uint32_t asking;
} s;

static const char *const keys[KEYS] = { "a", "key-1234", "the third key of all" };

static void set_limit(uint64_t limit)
{
	struct gale_rule rule = rule_of(s.kind, limit);

	if (limit > s.largest)
		s.largest = limit;
	must(gale_limiter_set_rule(s.house.limiter, &rule) == GALE_ERR_OK);
	s.changes++;
}

static void open_scene(uint64_t seed)
{
	struct chance c = { seed };
	struct house_plan plan = { .shards = 2, .mode = (enum gale_mode)(seed % 3) };

	memset(&s, 0, sizeof(s));
	s.kind = chance_below(&c, plan.mode == GALE_LEASED ? LEASED_KINDS : KINDS);
	s.largest = chance_between(&c, LEAST, MOST);
	plan.rule = rule_of(s.kind, s.largest);
	if (plan.mode == GALE_LEASED && chance_one_in(&c, 2)) {
		plan.lease.sizing = GALE_SIZE_FIXED;
		plan.lease.batch = chance_between(&c, 1, 40);
	}
	plan.lease.patience_us = GALE_SECONDS(60);
	house_open(&s.house, &plan);
	for (size_t i = 0; i <= ASKERS; i++)
		s.seeds[i] = chance_next(&c);
}

/* By the rule, whichever limit it has: no outage, and no mistake. */
static void note(size_t key, struct gale_answer answer)
{
	must(answer.why == GALE_WHY_RULE || answer.why == GALE_WHY_CREDIT ||
	     answer.why == GALE_WHY_SPENT);
	must(answer.limit >= LEAST && answer.limit <= 2 * MOST);
	must(answer.remaining <= answer.limit);
	if (answer.verdict == GALE_ALLOW)
		(void)add_relaxed(&s.admitted[key], 1);
}

static struct gale_answer ask_held(struct gale_seat *seat, struct gale_key *key)
{
	struct pollfd fd = { .fd = gale_seat_fd(seat), .events = POLLIN };
	struct gale_answer answer = gale_ask_key(key, 1, NULL);
	struct gale_completion completion;

	if (answer.verdict != GALE_PENDING)
		return answer;
	while (gale_seat_completions(seat, &completion, 1) == 0)
		must(poll(&fd, 1, -1) == 1);
	return completion.answer;
}

static struct gale_answer ask(struct gale_seat *seat, size_t key)
{
	return gale_wait(seat, s.house.limiter, keys[key], strlen(keys[key]), 1,
	                 GALE_SECONDS(60));
}

static void ask_all(struct chance *c)
{
	struct gale_key *held[KEYS];
	struct gale_seat *seat;

	must(gale_join(s.house.runtime, &seat) == GALE_ERR_OK);
	for (size_t i = 0; i < KEYS; i++)
		must(gale_key_open(seat, s.house.limiter, keys[i], strlen(keys[i]),
		                   &held[i]) == GALE_ERR_OK);
	for (uint64_t i = 0; i < ASKS * KEYS; i++) {
		size_t key = chance_below(c, KEYS);

		note(key,
		     chance_one_in(c, 2) ? ask_held(seat, held[key]) : ask(seat, key));
	}
	for (size_t i = 0; i < KEYS; i++)
		gale_key_close(held[i]);
	gale_leave(seat);
}

static void work(void *arg, unsigned who)
{
	struct chance c = { s.seeds[who] };

	(void)arg;
	if (who < ASKERS) {
		ask_all(&c);
		(void)sub_release(&s.asking, 1);
		return;
	}
	while (load_acquire(&s.asking) > 0)
		set_limit(chance_between(&c, LEAST, MOST));
}

static void check_key(uint64_t seed, size_t key)
{
	uint64_t admitted = load_relaxed(&s.admitted[key]);

	if (admitted > s.largest)
		fail_msg("seed %llu: %llu of %llu", (unsigned long long)seed,
		         (unsigned long long)admitted, (unsigned long long)s.largest);
}

/* Nothing was lost on the way, and nobody is locked out: the shard notices the change, and then all
 * of it passes. */
static void check_rest(size_t key)
{
	while (load_relaxed(&s.admitted[key]) < s.largest)
		note(key, ask(s.house.seat, key));
	for (int i = 0; i < 20; i++)
		note(key, ask(s.house.seat, key));
	assert_int_equal(load_relaxed(&s.admitted[key]), s.largest);
}

static void limits_by_lot_hold_while_threads_ask(void **state)
{
	uint64_t changes = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		open_scene(seed);
		store_relaxed(&s.asking, ASKERS);
		crew_run(ASKERS + 1, work, NULL);
		for (size_t key = 0; key < KEYS; key++)
			check_key(seed, key);
		changes += s.changes;
		set_limit(s.largest + LEAST);
		for (size_t key = 0; key < KEYS; key++)
			check_rest(key);
		assert_true(house_close(&s.house));
	}
	assert_true(changes > SEEDS); /* while they asked */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_by_lot_hold_while_threads_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
