/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sandbox_test.c -- hosts whose kernel makes no thread pass a barrier for us.
 *
 * Refused when a runtime is opened, readers fence themselves and no key is split over
 * seats; all else is as ever.  Refused later, the bound hangs on nothing any more: all is
 * denied, and the host is told.  Each is a child, as a filter stays.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "face/face.h"
#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/must.h"
#include "tests/support/sandbox.h"

#define LIMIT 100000
#define NODE_KEYS 8
#define WINDOW GALE_MILLIS(8) /* its units are looked at each millisecond */

static struct house house;

static void open_house(void)
{
	house_open(&house, &(struct house_plan){
			       .rule = gale_fixed_window(LIMIT, WINDOW),
			       .mode = GALE_LEASED,
			       .lease = { .sizing = GALE_SIZE_FIXED,
	                                  .batch = LIMIT,
	                                  .patience_us = GALE_SECONDS(30) },
			       .shards = 1,
			       .node_keys = NODE_KEYS,
			       .turns = true,
			       .still = true,
			   });
}

static uint64_t counted(enum shard_counter counter)
{
	return load_relaxed(&house.runtime->shards[0].lessor.counters[counter]);
}

static struct gale_answer ask_of(unsigned key, uint64_t cost)
{
	return gale_wait(house.seat, house.limiter, &key, sizeof(key), cost,
	                 GALE_SECONDS(30));
}

static void turn_after(uint64_t us)
{
	test_clock_advance(&house.clock, us);
	while (gale_turn(house.runtime) > 0)
		continue;
}

/* Ten units in each microsecond, of one key. */
static uint64_t spend_fast(void)
{
	uint64_t spent = 1;

	must(ask_of(0, 1).verdict == GALE_ALLOW);
	turn_after(GALE_MILLIS(1));
	for (int i = 0; i < 3; i++) {
		must(ask_of(0, 10000).verdict == GALE_ALLOW);
		spent += 10000;
		turn_after(GALE_MILLIS(1));
	}
	return spent;
}

/* To the last unit of the window, and not one more. */
static uint64_t spend_the_rest(void)
{
	uint64_t spent = 0;

	while (ask_of(0, 1).verdict == GALE_ALLOW)
		spent++;
	return spent;
}

/* Far more than there is room for; each is asked for a second time, when it has gone. */
static bool many_come_and_go(void)
{
	for (unsigned key = 0; key < 20 * NODE_KEYS; key++)
		if (ask_of(1 + key % (10 * NODE_KEYS), 1).verdict != GALE_ALLOW)
			return false;
	return counted(COUNT_EVICTED) > 0;
}

enum { AS_EVER, OTHER_SPLITS, OTHER_UNITS, OTHER_KEYS, OTHER_MEMORY };

static int live(uint64_t splits)
{
	uint64_t spent;

	open_house();
	spent = spend_fast();
	if (counted(COUNT_CELLS) != splits)
		return OTHER_SPLITS;
	if (spent + spend_the_rest() != LIMIT)
		return OTHER_UNITS;
	if (!many_come_and_go())
		return OTHER_KEYS;
	return house_close(&house) ? AS_EVER : OTHER_MEMORY;
}

static int live_with_barriers(void *arg)
{
	(void)arg;
	return live(1);
}

static int live_without_barriers(void *arg)
{
	(void)arg;
	sandbox_without_barriers();
	return live(0);
}

static void a_host_may_have_no_barriers(void **state)
{
	(void)state;
	assert_int_equal(child_run(live_with_barriers, NULL), AS_EVER);
	assert_int_equal(child_run(live_without_barriers, NULL), AS_EVER);
}

/* ---- Refused later --------------------------------------------------------------- */

#define ALL_IS_DENIED 55

/* Nothing is admitted any more when the host hears of it. */
static void expect_a_fence(const char *what)
{
	unsigned key = 1;
	struct gale_answer answer =
	    gale_ask(house.seat, house.limiter, &key, sizeof(key), 1, NULL);
	bool right = answer.verdict == GALE_DENY && answer.why == GALE_WHY_FENCED &&
	             strstr(what, "runtime/grace.c");

	(void)syscall(SYS_exit_group, right ? ALL_IS_DENIED : 0);
}

static int lose_barriers(void *is_told)
{
	gale_on_panic(is_told ? expect_a_fence : NULL);
	open_house();
	must(ask_of(1, 1).verdict == GALE_ALLOW);
	sandbox_without_barriers();
	must(ask_of(1, 1).verdict == GALE_ALLOW); /* what is in hand needs none */
	(void)many_come_and_go();
	return AS_EVER;
}

static void who_loses_them_admits_nothing_more(void **state)
{
	(void)state;
	assert_int_equal(child_run(lose_barriers, &house), ALL_IS_DENIED);
	assert_int_equal(child_run(lose_barriers, NULL), -SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_may_have_no_barriers),
		cmocka_unit_test(who_loses_them_admits_nothing_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
