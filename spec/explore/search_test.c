/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* search_test.c -- the explorer itself, on worlds whose states can be counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "spec/explore/later.h"

#define MEMORY (UINT64_C(256) << 20)

enum { MOST };

static const char *nothing_wrong(const long *c)
{
	(void)c;
	return NULL;
}

static long number(const long *c, const void *at)
{
	uint32_t value;

	(void)c;
	memcpy(&value, at, sizeof(value));
	return (long)value;
}

static void print(const long *c, const void *at, FILE *out)
{
	fprintf(out, "%ld", number(c, at));
}

static void go(struct walk *walk, long value, enum step_kind kind)
{
	uint32_t state = (uint32_t)value;

	step(walk, &state, kind, "to %d", (int)value, 0);
}

/* ---- A tree: n leads to 2n and 2n + 1 -------------------------------------------- */

static void begin_at_one(const long *c, struct walk *walk)
{
	(void)c;
	go(walk, 1, CHANCE);
}

static void next_of_tree(const long *c, const void *at, struct walk *walk)
{
	long n = number(c, at);

	for (long child = 2 * n; child <= 2 * n + 1; child++)
		if (child <= c[MOST])
			go(walk, child, CHANCE);
}

static const char *is_the_last(const long *c, const void *at)
{
	return c[1] && number(c, at) == c[1] ? "planted" : NULL;
}

static long no_bound(const long *c)
{
	(void)c;
	return UINT32_MAX;
}

static const struct model tree = {
	.name = "tree",
	.size = sizeof(uint32_t),
	.open = nothing_wrong,
	.begin = begin_at_one,
	.next = next_of_tree,
	.broken = is_the_last,
	.bound = no_bound,
	.found = number,
	.print = print,
};

static void explore(struct search *search, const struct model *model, const long *c,
                    uint32_t threads, uint64_t memory)
{
	assert_true(search_open(search, model, c, threads, memory));
	search_run(search);
}

static void all_states_are_met_once(void **state)
{
	(void)state;
	for (uint32_t threads = 1; threads <= 4; threads++) {
		long c[] = { 1000000, 0 };
		struct search search;

		explore(&search, &tree, c, threads, MEMORY);
		assert_false(search.out_of_memory);
		assert_null(search.why);
		assert_int_equal(space_count(&search.space), 1000000); /* SPACE-1 */
		assert_int_equal(search.steps, 999999);
		assert_int_equal(search.levels, 19);
		assert_int_equal(search.found, 1000000);
		search_close(&search);
	}
}

static void a_way_is_one_of_the_shortest(void **state)
{
	long c[] = { 1000000, 77777 };
	struct search search;
	uint32_t depth;

	(void)state;
	explore(&search, &tree, c, 2, MEMORY);
	assert_string_equal(search.why, "planted");
	assert_int_equal(number(c, space_state(&search.space, search.bad)), 77777);
	depth = space_depth(&search.space, search.bad);
	assert_int_equal(depth, 16);
	for (uint32_t at = search.bad; depth > 0; depth--) {
		uint32_t parent = space_parent(&search.space, at); /* SPACE-2 */

		assert_int_equal(number(c, space_state(&search.space, parent)),
		                 number(c, space_state(&search.space, at)) / 2);
		at = parent;
	}
	/* The level is finished, and nothing after it is begun. */
	assert_int_equal(space_count(&search.space), (1 << 17) - 1);
	search_close(&search);
}

/* All of the tenth level is bad: its last state is late, the others are wrong. */
static const char *is_late_or_wrong(const long *c, const void *at)
{
	long n = number(c, at);

	if (n == 1023)
		return "late";
	return n >= 512 ? "wrong" : NULL;
}

/* Of the names of a level's bad states the least is told, whichever thread has which. */
static void threads_do_not_decide_what_is_told(void **state)
{
	struct model two_faults = tree;

	(void)state;
	two_faults.broken = is_late_or_wrong;
	for (uint32_t threads = 1; threads <= 4; threads++) {
		long c[] = { 1000000, 0 };
		struct search search;

		explore(&search, &two_faults, c, threads, MEMORY);
		assert_string_equal(search.why, "late");
		assert_int_equal(number(c, space_state(&search.space, search.bad)),
		                 1023);
		search_close(&search);
	}
}

static void memory_is_not_exceeded(void **state)
{
	long c[] = { 100000000, 0 };
	struct search search;

	(void)state;
	for (uint64_t memory = 1 << 20; memory <= 64 << 20; memory *= 2) {
		/* SPACE-3 */
		explore(&search, &tree, c, 2, memory);
		assert_true(search.out_of_memory);
		assert_true(space_bytes(&search.space) <= memory + (1 << 18));
		assert_true(space_count(&search.space) > 0);
		search_close(&search);
	}
	assert_false(search_open(&search, &tree, c, 2, 1000));
}

/* ---- What must come later -------------------------------------------------------- */

/*
 *     1 ---> 2 ---> 3 (good)         --> fair, ~~> by chance
 *     ^      ~      ~
 *     '~~ 4 <'      '~> 5 <--> 6     c[MOST]: which of these are there
 */
enum { CHANCE_TO_4 = 1, BACK_FROM_4 = 2, CIRCLE = 4, FAIR_CIRCLE = 8, BLIND = 16 };

static void next_of_graph(const long *c, const void *at, struct walk *walk)
{
	long n = number(c, at);

	if (n == 1)
		go(walk, 2, FAIR);
	if (n == 2 && !(c[MOST] & BLIND))
		go(walk, 3, FAIR);
	if (n == 2 && c[MOST] & CHANCE_TO_4)
		go(walk, 4, CHANCE);
	if (n == 2 && c[MOST] & FAIR_CIRCLE)
		go(walk, 1, FAIR);
	if (n == 4 && c[MOST] & BACK_FROM_4)
		go(walk, 1, CHANCE);
	if (n == 3 && c[MOST] & CIRCLE)
		go(walk, 5, CHANCE);
	if (n == 5 || n == 6)
		go(walk, 11 - n, FAIR);
}

static bool is_three(const long *c, const void *at)
{
	return number(c, at) == 3;
}

static const char *never(const long *c, const void *at)
{
	(void)c;
	(void)at;
	return NULL;
}

static const struct model graph = {
	.name = "graph",
	.size = sizeof(uint32_t),
	.open = nothing_wrong,
	.begin = begin_at_one,
	.next = next_of_graph,
	.broken = never,
	.bound = no_bound,
	.found = number,
	.print = print,
};

/* The state from which it fails, or 0. */
static long fails_from(long edges, enum goal_kind kind)
{
	struct goal goal = { "three", kind, is_three };
	long c[] = { edges, 0 };
	struct search search;
	uint32_t bad = STATE_NONE;
	long from = 0;

	explore(&search, &graph, c, 2, MEMORY);
	if (later_check(&search, &goal, MEMORY, &bad) == LATER_FAILS)
		from = number(c, space_state(&search.space, bad));
	else
		assert_int_equal(bad, STATE_NONE);
	search_close(&search);
	return from;
}

static void what_can_be_reached(void **state)
{
	(void)state;
	assert_int_equal(fails_from(0, REACHABLE), 0);
	assert_int_equal(fails_from(CHANCE_TO_4, REACHABLE), 4);
	assert_int_equal(fails_from(CHANCE_TO_4 | BACK_FROM_4, REACHABLE), 0);
	assert_int_equal(fails_from(FAIR_CIRCLE, REACHABLE), 0);
	assert_int_equal(fails_from(CIRCLE, REACHABLE), 5);
	assert_int_equal(fails_from(BLIND, REACHABLE), 1);
}

static void what_is_certain(void **state)
{
	(void)state;
	assert_int_equal(fails_from(0, CERTAIN), 0);
	assert_int_equal(fails_from(CHANCE_TO_4 | BACK_FROM_4, CERTAIN), 4);
	assert_int_equal(fails_from(FAIR_CIRCLE, CERTAIN), 1);
	assert_int_equal(fails_from(CIRCLE, CERTAIN), 5);
	assert_int_equal(fails_from(BLIND, CERTAIN), 1);
}

static void too_little_memory_for_what_comes_later(void **state)
{
	struct goal goal = { "three", REACHABLE, is_three };
	long c[] = { 1000, 0 };
	struct search search;
	uint32_t bad;

	(void)state;
	explore(&search, &tree, c, 1, MEMORY);
	assert_int_equal(later_check(&search, &goal, 1000, &bad), LATER_NO_MEMORY);
	search_close(&search);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_states_are_met_once),
		cmocka_unit_test(a_way_is_one_of_the_shortest),
		cmocka_unit_test(threads_do_not_decide_what_is_told),
		cmocka_unit_test(memory_is_not_exceeded),
		cmocka_unit_test(what_can_be_reached),
		cmocka_unit_test(what_is_certain),
		cmocka_unit_test(too_little_memory_for_what_comes_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
