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
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/both_servers.h"
#include "tests/support/fake_time.h"
#include "tests/support/late.h"
#include "tests/support/must.h"

#define FIRST_NOON_US (UINT64_C(1893456000000000) + GALE_HOURS(12)) /* in 2030 */
#define WITHIN GALE_SECONDS(30)
#define LATE_MOST 10 /* units that a call without an answer may have taken */

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
	struct gale_limiter *limiter;
};

static struct fake_time server_time;
static struct both_servers both;
static uint64_t noon_us = FIRST_NOON_US; /* of another day for each test */

static void open_node_by(struct node *node, int which, const char *name,
                         struct gale_rule rule, enum gale_mode mode,
                         struct gale_clock *clock)
{
	struct gale_config config = { .shards = 1, .max_keys = 64, .clock = clock };
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

static void open_node(struct node *node, int which, const char *name,
                      struct gale_rule rule, enum gale_mode mode)
{
	open_node_by(node, which, name, rule, mode, NULL);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

/* Where the machine stands still for a second, a server is taken for dead: then a call that was not
 * asked about is made again, and one that was may have been counted. */
static struct gale_answer ask(const struct node *node)
{
	for (;;) {
		struct gale_answer answer =
		    gale_wait(node->seat, node->limiter, "k", 1, 1, WITHIN);

		if (answer.why != GALE_WHY_DOWN && answer.why != GALE_WHY_BUSY)
			return answer;
		(void)poll(NULL, 0, 1);
	}
}

static uint64_t doubt; /* units of a key that were taken, or not */

/* How many of the calls pass.  None is refused for anything but its rule. */
static uint64_t passes(const char *name, const struct node *node, uint64_t tries)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < tries; i++) {
		struct gale_answer answer = ask(node);
		bool late = answer.why == GALE_WHY_LATE;

		if (answer.why == GALE_WHY_CHANGED ||
		    (gale_why_is_outage(answer.why) && !late))
			fail_msg("%s: %s", name, gale_why_text(answer.why));
		passed += answer.verdict == GALE_ALLOW;
		doubt += late ? LATE_MOST : 0;
	}
	return passed;
}

static void expect(const char *name, const struct node *node, uint64_t tries,
                   uint64_t left)
{
	uint64_t before = doubt, passed = passes(name, node, tries);

	if (passed > left + before || passed + doubt < left)
		fail_msg("%s: %" PRIu64 " of %" PRIu64 " passed", name, passed, left);
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
	doubt = 0;
	expect(name, &one, spends, spends);
	expect(name, &other, left + 20, left);
	expect(name, &one, 3, 0);
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
	struct node node, again;

	open_node(&node, which, "restarts", gale_fixed_window(10, GALE_HOURS(2)),
	          GALE_STRICT);
	doubt = 0;
	expect("window", &node, 10, 10);
	config.store = node.store;
	must(gale_limiter_open(node.runtime, &config, &restarts) == GALE_ERR_OK);
	again = node;
	again.limiter = restarts;
	assert_int_equal(ask(&again).why, GALE_WHY_RESTARTED);
	assert_int_equal(ask(&again).why, GALE_WHY_RULE);
	assert_int_equal(ask(&node).why, GALE_WHY_CHANGED);
	gale_limiter_close(restarts);
	close_node(&node);
}

static void another_kind_begins_anew_where_the_host_says_so(void **state)
{
	(void)state;
	on_both(check_restart);
}

/* ---- A month, in which two nodes are changed -------------------------------------- */

#define MAY_FIRST_US UINT64_C(1903824000000000) /* of 2030; and then June's */
#define DAYS_OF_MAY 31

static uint64_t stores_now_us(struct gale_clock *self)
{
	(void)self;
	return load_relaxed(server_time.now_us);
}

/* It runs, and leaps with the servers'. */
static uint64_t leaping_boot_ns(struct gale_clock *self)
{
	return boottime_ns() + (stores_now_us(self) - FIRST_NOON_US) * 1000;
}

static struct gale_clock leaping = { stores_now_us, leaping_boot_ns };

#define MODES 3

struct month {
	const char *name;
	enum gale_mode mode;
	struct node nodes[2];
	uint64_t passed, doubt;
};

static struct month months[MODES] = {
	{ .name = "month strictly", .mode = GALE_STRICT },
	{ .name = "month cached", .mode = GALE_CACHED_DENY },
	{ .name = "month leased", .mode = GALE_LEASED },
};

/* Until its shard has noticed the change, the old rule may decide a call. */
static void await_limit(const struct node *node, uint64_t limit)
{
	struct gale_answer answer = { 0 };

	while (gale_peek(node->seat, node->limiter, "k", 1, WITHIN, &answer) !=
	           GALE_ERR_OK ||
	       answer.limit != limit)
		continue;
}

static void set_months(uint64_t first, uint64_t second)
{
	const struct gale_rule rules[] = { gale_quota_monthly(first, 0),
		                           gale_quota_monthly(second, 0) };

	for (int i = 0; i < 2 * MODES; i++)
		must(gale_limiter_set_rule(months[i / 2].nodes[i % 2].limiter,
		                           &rules[i % 2]) == GALE_ERR_OK);
	for (int i = 0; i < 2 * MODES; i++)
		await_limit(&months[i / 2].nodes[i % 2], rules[i % 2].limit);
}

/* Each node twice, as what it has in hand is for who asks it again.  Of leases some may lie idle
 * with the other one, but not as much as a tenth of all; and what was lent under a larger limit may
 * be spent. */
static void check_month(struct month *month, uint64_t tries, uint64_t total,
                        uint64_t largest)
{
	bool leased = month->mode == GALE_LEASED;
	uint64_t least = leased ? total - total / 10 : total;
	uint64_t most = leased ? largest : total;

	doubt = month->doubt;
	for (int i = 0; i < 4; i++)
		month->passed += passes(month->name, &month->nodes[i % 2], tries);
	month->doubt = doubt;
	if (month->passed > most || month->passed + doubt < least)
		fail_msg("%s: %" PRIu64 " of %" PRIu64, month->name, month->passed,
		         total);
}

/* So many have passed since the month began, whichever of the two asked. */
static void check_day(uint64_t day_us, uint64_t tries, uint64_t total, uint64_t largest)
{
	fake_time_set(&server_time, day_us + GALE_HOURS(9));
	for (int i = 0; i < MODES; i++)
		check_month(&months[i], tries, total, largest);
}

static void check_months(int which)
{
	uint64_t first_us = MAY_FIRST_US + (uint64_t)which * GALE_DAYS(DAYS_OF_MAY);

	fake_time_set(&server_time, first_us);
	for (int i = 0; i < 2 * MODES; i++)
		open_node_by(&months[i / 2].nodes[i % 2], which, months[i / 2].name,
		             gale_quota_monthly(100, 0), months[i / 2].mode, &leaping);
	check_day(first_us, 10, 40, 100);
	set_months(70, 100);
	check_day(first_us + GALE_DAYS(14), 5, 60, 100);
	set_months(70, 70);
	check_day(first_us + GALE_DAYS(15), 10, 70, 100);
	set_months(90, 90);
	check_day(first_us + GALE_DAYS(22), 20, 90, 100);
	for (int i = 0; i < MODES; i++)
		months[i].passed = months[i].doubt = 0;
	check_day(first_us + GALE_DAYS(DAYS_OF_MAY), 60, 90, 90);
	for (int i = 0; i < 2 * MODES; i++)
		close_node(&months[i / 2].nodes[i % 2]);
	for (int i = 0; i < MODES; i++)
		months[i].passed = months[i].doubt = 0;
}

static void a_months_quota_is_changed_in_its_middle(void **state)
{
	(void)state;
	for (int which = 0; which < BOTH; which++)
		check_months(which);
	noon_us = MAY_FIRST_US + GALE_DAYS(3 * DAYS_OF_MAY);
}

/* ---- Values of before ------------------------------------------------------------ */

/*
 * What gale kept for a key before a limit could be changed (engine/codec.h, version 1), as its
 * engine of that time wrote it: six of ten units are used at noon, or are out with two nodes.
 */
struct old_value {
	const char *name;
	struct gale_rule rule;
	/* Under another limit: what a meter has used is not known there, and counts as all. */
	uint64_t left;
	bool leases;
	struct kept_value kept;
};

#define X(number) UINT64_C(0x##number)
#define OLD_VALUES 14

static void make_old_values(struct old_value out[OLD_VALUES])
{
	const struct old_value values[OLD_VALUES] = {
		{ "window",
		  gale_fixed_window(10, GALE_HOURS(2)),
		  19,
		  true,
		  { FIRST_NOON_US + GALE_HOURS(2),
		    0,
		    { X(200000101), X(1011895bddbed0), X(6ba20a332d000), 6 } } },
		{ "window out",
		  gale_fixed_window(10, GALE_HOURS(2)),
		  19,
		  true,
		  { FIRST_NOON_US + GALE_HOURS(2),
		    2,
		    { X(200000101), X(1011895bddbed0), X(6ba20a332d000), 6, 99, 8, 2, 2,
		      X(6ba20a332d000), 0, 77, 5, 4, 4, X(6ba20a332d000), 0 } } },
		{ "month",
		  gale_quota_monthly(10, 0),
		  19,
		  true,
		  { FIRST_NOON_US + GALE_HOURS(732),
		    0,
		    { X(200000601), X(de644fb5332d7), X(6ba1694472000), 6 } } },
		{ "month out",
		  gale_quota_monthly(10, 0),
		  19,
		  true,
		  { FIRST_NOON_US + GALE_HOURS(732),
		    2,
		    { X(200000601), X(de644fb5332d7), X(6ba1694472000), 6, 99, 8, 2, 2,
		      X(6ba1694472000), 0, 77, 5, 4, 4, X(6ba1694472000), 0 } } },
		{ "anchor",
		  gale_quota_anchored(10, GALE_DAYS(1), GALE_HOURS(1)),
		  19,
		  true,
		  { FIRST_NOON_US + GALE_HOURS(13),
		    0,
		    { X(200000601), X(8d9109205d33f), X(6ba176adac400), 6 } } },
		{ "budget",
		  gale_token_budget(10, GALE_HOURS(2)),
		  19,
		  false,
		  { FIRST_NOON_US + GALE_HOURS(2),
		    0,
		    { X(200000701), X(76a7bff43af8d), X(6ba20a332d000), 6 } } },
		{ "sliding",
		  gale_sliding_window(10, GALE_HOURS(1), 10),
		  19,
		  false,
		  { FIRST_NOON_US + GALE_MINUTES(66),
		    0,
		    { X(c00000201), X(1f57056df6b8ed), X(5041c8), 0, 0, 0, 0, 6 } } },
		{ "log",
		  gale_sliding_log(10, GALE_HOURS(1)),
		  19,
		  false,
		  { FIRST_NOON_US + GALE_HOURS(1),
		    0,
		    { X(300000301), X(104aba9d01c7dd), 1, X(6ba20a332d000), 6 } } },
		{ "gcra",
		  gale_gcra(10, GALE_HOURS(1), 10),
		  0,
		  true,
		  { FIRST_NOON_US + GALE_MINUTES(36),
		    0,
		    { X(300000401), X(18aa6b0652aed7), X(6ba2123f1cc00), 0, 0 } } },
		{ "gcra out",
		  gale_gcra(10, GALE_HOURS(1), 10),
		  0,
		  true,
		  { FIRST_NOON_US + GALE_MINUTES(36),
		    2,
		    { X(300000401), X(18aa6b0652aed7), X(6ba2123f1cc00), 0, 0, 99, 8, 2,
		      2, X(6ba2123f1cc00), 0, 77, 5, 4, 4, X(6ba20f9077800), 0 } } },
		{ "bucket",
		  gale_token_bucket(10, 10, GALE_HOURS(1)),
		  0,
		  true,
		  { FIRST_NOON_US + GALE_MINUTES(36),
		    0,
		    { X(300000501), X(10fddd1890df46), X(6ba2123f1cc00), 0,
		      X(6ba20a332d000) } } },
		{ "bucket out",
		  gale_token_bucket(10, 10, GALE_HOURS(1)),
		  0,
		  true,
		  { FIRST_NOON_US + GALE_MINUTES(36),
		    2,
		    { X(300000501), X(10fddd1890df46), X(6ba2123f1cc00), 0,
		      X(6ba20a332d000), 99, 8, 2, 2, X(6ba2123f1cc00), 0, 77, 5, 4, 4,
		      X(6ba20f9077800), 0 } } },
		{ "pacer",
		  gale_pacer_limit(10, GALE_HOURS(1), 9),
		  1,
		  false,
		  { FIRST_NOON_US + GALE_MINUTES(36),
		    0,
		    { X(1400000801), X(10a61a9040c7bf), 6, 0, X(6ba20a332d000) } } },
		{ "pacer out",
		  gale_pacer_limit(10, GALE_HOURS(1), 9),
		  1,
		  false,
		  { FIRST_NOON_US + GALE_MINUTES(36),
		    2,
		    { X(1400000801), X(10a61a9040c7bf), 6, 0,
		      X(6ba20a332d000), [22] = 99, 8, 2, 0, X(6ba20ce1d2400), 0, 77, 5,
		      4, 0, X(6ba20f9077800), 0 } } },
	};

	memcpy(out, values, sizeof(values));
}

static struct gale_rule with_another_limit(struct gale_rule rule)
{
	if (rule.burst > 0)
		rule.burst += 15;
	else
		rule.limit += 15;
	return rule;
}

/* ---- An upgrade ------------------------------------------------------------------ */

/* One value is kept for each way in which it is read. */
enum reads { STRICTLY, BY_A_LEASE, UNDER_ANOTHER_LIMIT, READS };

struct reading {
	char name[40];
	struct gale_rule rule;
	enum gale_mode mode;
	uint64_t left, fresh;
};

static struct reading reading_of(const struct old_value *value, enum reads reads)
{
	static const char *const how[READS] = { "strictly", "leased", "other" };
	struct reading reading = {
		.rule = value->rule, .mode = GALE_STRICT, .left = 4, .fresh = 10
	};

	snprintf(reading.name, sizeof(reading.name), "%s %s", value->name, how[reads]);
	if (reads == BY_A_LEASE && value->leases)
		reading.mode = GALE_LEASED;
	if (reads == UNDER_ANOTHER_LIMIT) {
		reading.rule = with_another_limit(value->rule);
		reading.left = value->left;
		reading.fresh = 25;
	}
	return reading;
}

static void on_each_reading(int which,
                            void (*run)(int which, const struct old_value *value,
                                        const struct reading *reading))
{
	struct old_value values[OLD_VALUES];

	make_old_values(values);
	for (size_t i = 0; i < OLD_VALUES; i++)
		for (enum reads reads = STRICTLY; reads < READS; reads++) {
			struct reading reading = reading_of(&values[i], reads);

			run(which, &values[i], &reading);
		}
}

static void keep_old(int which, const struct old_value *value,
                     const struct reading *reading)
{
	both_servers_keep(&both, which, reading->name, "k", &value->kept);
}

/* Its schema was of version 7 then; who greets it brings it up to date. */
static void age_postgres(void)
{
	both_servers_run_sql(&both,
	                     "CREATE OR REPLACE FUNCTION gale.version()"
	                     " RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 7'");
}

static struct node reader;

static void expect_of(const struct reading *reading, uint64_t left)
{
	struct gale_limiter_config config = { .name = reading->name,
		                              .rule = reading->rule,
		                              .mode = reading->mode,
		                              .store = reader.store,
		                              .lease = { .patience_us = WITHIN } };
	struct node node = reader;

	must(gale_limiter_open(reader.runtime, &config, &node.limiter) == GALE_ERR_OK);
	doubt = 0;
	expect(reading->name, &node, 30, left);
	gale_limiter_close(node.limiter);
}

static void check_old(int which, const struct old_value *value,
                      const struct reading *reading)
{
	(void)which;
	(void)value;
	expect_of(reading, reading->left);
}

/* Nobody is locked out by it: all is over when it was to be over. */
static void check_fresh(int which, const struct old_value *value,
                        const struct reading *reading)
{
	struct reading strictly = *reading;

	(void)which;
	(void)value;
	strictly.mode = GALE_STRICT;
	expect_of(&strictly, reading->fresh);
}

/* PostgreSQL grants nothing of the second in which it was brought up to date. */
static void open_reader(int which)
{
	open_node(&reader, which, "reader", gale_fixed_window(1000, GALE_HOURS(2)),
	          GALE_STRICT);
	while (!is_of_server(ask(&reader)))
		continue;
	noon_us += GALE_SECONDS(2);
	fake_time_set(&server_time, noon_us);
	while (ask(&reader).verdict != GALE_ALLOW)
		continue;
}

static void values_of_the_first_layout_count(void **state)
{
	(void)state;
	fake_time_set(&server_time, noon_us);
	for (int which = 0; which < BOTH; which++)
		on_each_reading(which, keep_old);
	age_postgres();
	for (int which = 0; which < BOTH; which++) {
		open_reader(which);
		on_each_reading(which, check_old);
		close_node(&reader);
	}
	noon_us += GALE_DAYS(40);
	for (int which = 0; which < BOTH; which++) {
		open_reader(which);
		on_each_reading(which, check_fresh);
		close_node(&reader);
	}
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
		cmocka_unit_test(values_of_the_first_layout_count), /* first */
		cmocka_unit_test(what_was_spent_stays_spent_under_every_kind),
		cmocka_unit_test(another_kind_begins_anew_where_the_host_says_so),
		cmocka_unit_test(a_months_quota_is_changed_in_its_middle),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
