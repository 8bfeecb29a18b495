/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * change_servers_test.c -- limits that are changed while their keys live on a real Redis or
 * PostgreSQL (law L15).
 *
 * The servers' clock stands where a test puts it: nothing turns and nothing accrues meanwhile.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <gale/gale.h>

#include "tests/support/both_servers.h"
#include "tests/support/fake_time.h"
#include "tests/support/must.h"

#define FIRST_NOON_US (UINT64_C(1893456000000000) + GALE_HOURS(12)) /* in 2030 */
#define WITHIN GALE_SECONDS(30)

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
	struct gale_limiter *limiter;
};

static struct fake_time server_time;
static struct both_servers both;
static uint64_t noon_us = FIRST_NOON_US; /* of another day for each test */

static void open_node(struct node *node, int which, const char *name,
                      struct gale_rule rule, enum gale_mode mode)
{
	struct gale_config config = { .shards = 1, .max_keys = 64 };
	struct gale_store_config store = { .url = both.urls[which],
		                           .quarantine_us = 1 };
	struct gale_limiter_config limiter = { .name = name,
		                               .rule = rule,
		                               .mode = mode,
		                               .lease = { .patience_us = WITHIN } };

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
	limiter.store = node->store;
	must(gale_limiter_open(node->runtime, &limiter, &node->limiter) == GALE_ERR_OK);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

/* How many of so many calls pass.  None is refused for anything but its rule. */
static uint64_t passes(const struct node *node, uint64_t tries)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < tries; i++) {
		struct gale_answer answer =
		    gale_wait(node->seat, node->limiter, "k", 1, 1, WITHIN);

		assert_int_not_equal(answer.why, GALE_WHY_CHANGED);
		assert_false(gale_why_is_outage(answer.why));
		passed += answer.verdict == GALE_ALLOW;
	}
	return passed;
}

static void on_both(void (*run)(int which))
{
	for (int which = 0; which < BOTH; which++) {
		noon_us += GALE_DAYS(1);
		fake_time_set(&server_time, noon_us);
		run(which);
	}
}

/* Another rule reads what the first has spent; then the first reads what both have. */
static void check_pair(int which, const char *name, struct gale_rule first,
                       uint64_t spends, struct gale_rule second, uint64_t left)
{
	struct node one, other;

	open_node(&one, which, name, first, GALE_STRICT);
	open_node(&other, which, name, second, GALE_STRICT);
	assert_int_equal(passes(&one, spends), spends);
	assert_int_equal(passes(&other, left + 20), left);
	assert_int_equal(passes(&one, 3), 0);
	close_node(&one);
	close_node(&other);
}

static void check_kinds(int which)
{
	struct gale_rule patient = gale_pacer_limit(10, GALE_HOURS(1), 9);

	check_pair(which, "window", gale_fixed_window(10, GALE_HOURS(2)), 6,
	           gale_fixed_window(25, GALE_HOURS(2)), 19);
	check_pair(which, "period", gale_fixed_window(10, GALE_HOURS(2)), 6,
	           gale_fixed_window(10, GALE_HOURS(3)), 4);
	check_pair(which, "budget", gale_token_budget(10, GALE_HOURS(2)), 6,
	           gale_token_budget(25, GALE_HOURS(2)), 19);
	check_pair(which, "month", gale_quota_monthly(10, 0), 6,
	           gale_quota_monthly(25, 0), 19);
	check_pair(which, "anchor", gale_quota_anchored(10, GALE_DAYS(1), 0), 6,
	           gale_quota_anchored(10, GALE_DAYS(1), GALE_HOURS(1)), 4);
	check_pair(which, "gcra", gale_gcra(10, GALE_HOURS(1), 10), 4,
	           gale_gcra(100, GALE_HOURS(1), 100), 96);
	check_pair(which, "bucket", gale_token_bucket(10, 10, GALE_HOURS(1)), 4,
	           gale_token_bucket(100, 100, GALE_HOURS(1)), 96);
	check_pair(which, "burst", gale_gcra(10, GALE_HOURS(1), 10), 4,
	           gale_gcra(10, GALE_HOURS(1), 30), 26);
	check_pair(which, "sliding", gale_sliding_window(10, GALE_HOURS(1), 10), 6,
	           gale_sliding_window(25, GALE_HOURS(1), 10), 19);
	check_pair(which, "log", gale_sliding_log(10, GALE_HOURS(1)), 6,
	           gale_sliding_log(25, GALE_HOURS(1)), 19);
	check_pair(which, "pacer", patient, 4, gale_pacer_limit(10, GALE_HOURS(1), 24),
	           21);
}

static void what_was_spent_stays_spent_under_every_kind(void **state)
{
	(void)state;
	on_both(check_kinds);
}

static void check_restart(int which)
{
	struct gale_limiter_config config = {
		.name = "restarts",
		.rule = gale_gcra(5, GALE_HOURS(1), 5),
		.mode = GALE_STRICT,
		.on_other_rule = GALE_ON_OTHER_RULE_RESTART,
	};
	struct gale_limiter *restarts;
	struct node node;

	open_node(&node, which, "restarts", gale_fixed_window(10, GALE_HOURS(2)),
	          GALE_STRICT);
	assert_int_equal(passes(&node, 10), 10);
	config.store = node.store;
	must(gale_limiter_open(node.runtime, &config, &restarts) == GALE_ERR_OK);
	assert_int_equal(gale_wait(node.seat, restarts, "k", 1, 1, WITHIN).why,
	                 GALE_WHY_RESTARTED);
	assert_int_equal(gale_wait(node.seat, restarts, "k", 1, 1, WITHIN).why,
	                 GALE_WHY_RULE);
	assert_int_equal(gale_wait(node.seat, node.limiter, "k", 1, 1, WITHIN).why,
	                 GALE_WHY_CHANGED);
	gale_limiter_close(restarts);
	close_node(&node);
}

static void another_kind_begins_anew_where_the_host_says_so(void **state)
{
	(void)state;
	on_both(check_restart);
}

static int start_servers(void **state)
{
	(void)state;
	fake_time_begin(&server_time, FIRST_NOON_US - GALE_DAYS(1));
	both_servers_start(&both);
	fake_time_end();
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	both_servers_stop(&both);
	fake_time_close(&server_time);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_spent_stays_spent_under_every_kind),
		cmocka_unit_test(another_kind_begins_anew_where_the_host_says_so),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
