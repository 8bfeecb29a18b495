/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_weather_test.c -- a fleet on a real server, and what can befall the two.
 *
 *     nodes: askers of a strict, a cached-deny and a leased limiter  --proxy-->  server
 *
 * Two nodes are asked as fast as two processors allow, in windows of WINDOW; meanwhile
 * something happens to the server, or on the way to it.  Whatever that is:
 *
 *   - no window of the store has more than the limit of admissions, as counted here: an
 *     admission lies between two readings of the clock                        (L1, L12)
 *   - who asks is answered in time, and every ask is answered once                (L11)
 *   - when all is well again, so are the limiters, within RECOVERY
 *   - nothing is left behind
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include <gale/hold.h>

#include "runtime/clock.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/node.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/weather.h"

#define WINDOW GALE_MILLIS(300)
#define SHARDS 2
#define MARGIN GALE_MILLIS(150) /* two processors, and a server that also wants one */
#define RECOVERY GALE_SECONDS(2)
#define CLOSING (2 * GALE_MILLIS(100) + MARGIN) /* of all shards of a node at once */
#define UNDERSHOOT 0.05                         /* of what everybody wants */

static struct redis_server server;
static struct proxy proxy;
static struct weather weather;
static struct weather_plan plan;
static char url[64];
static bool did_not_recover;

/* All is well; nobody has asked yet. */
static void begin(const char *const *options)
{
	redis_server_start(&server, options);
	redis_server_settle(&server, "gale:");
	proxy_open(&proxy, server.socket);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", proxy.port);
	did_not_recover = false;
	plan = (struct weather_plan){
		.urls = { url, url },
		.shards = SHARDS,
		.window_us = WINDOW,
		.limit = 40,
		.keys = 1,
		.askers = 3,
		.pollers = 1,
		.within_us = GALE_MILLIS(150), /* a shard's patience is 100 ms */
		.nap_us = WEATHER_NAP_US,
	};
}

static void let_ask(void)
{
	weather_let_ask(&weather, &plan);
}

/* All limiters admit again.  quarantine_us: what the store may deny for meanwhile. */
static void recovers(uint64_t quarantine_us)
{
	did_not_recover |= !weather_recovers(&weather, RECOVERY + quarantine_us);
}

static void end(void)
{
	weather_end(&weather);
	weather_was_in_time(&weather, plan.within_us + MARGIN);
	assert_in_range(weather.closing_us, 0,
	                WEATHER_NODES * CLOSING + 3 * weather.late_us);
	assert_false(did_not_recover);
	proxy_close(&proxy);
	redis_server_stop(&server);
}

/* ---- Weather --------------------------------------------------------------------- */

/* Nobody is asked by a machine that stands still: its windows go by. */
static bool stood_still(void)
{
	return weather.late_us > WINDOW / 4;
}

static bool all_is_admitted(void)
{
	bool is_enough = true;

	begin(NULL);
	let_ask();
	recovers(0);
	nap(6 * WINDOW);
	end();
	for (int how = 0; how < HOW_COUNT; how++)
		is_enough &= weather.undershoot[how] < UNDERSHOOT;
	return is_enough;
}

static void nothing_happens(void **state)
{
	int tries = 1;

	(void)state;
	while (!all_is_admitted()) {
		assert_true(stood_still());
		assert_in_range(++tries, 1, 3);
	}
}

static void a_server_is_killed_and_forgets(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	nap(WINDOW / 2);
	redis_server_kill(&server);
	nap(WINDOW / 10);
	redis_server_restart(&server);
	recovers(WINDOW);
	for (int i = 0; i < 4; i++) {
		redis_server_restart(&server);
		nap(WINDOW * 5 / 7);
	}
	recovers(WINDOW);
	end();
}

static void a_server_is_away_for_long(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	redis_server_kill(&server);
	nap(GALE_MILLIS(2500));
	redis_server_restart(&server);
	recovers(WINDOW);
	end();
}

static void a_server_is_emptied(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	for (int i = 0; i < 8; i++) {
		nap(WINDOW * 3 / 7);
		redis_server_do(&server, i % 2 ? "FLUSHDB" : "FLUSHALL");
	}
	recovers(WINDOW);
	end();
}

static void scripts_are_forgotten(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	for (int i = 0; i < 20; i++) {
		nap(WINDOW / 7);
		redis_server_do(&server, "SCRIPT FLUSH");
	}
	recovers(0);
	end();
}

static void a_server_stands_still(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	redis_server_pause(&server);
	nap(GALE_SECONDS(3));
	redis_server_go_on(&server);
	recovers(0);
	end();
}

static void the_way_is_a_black_hole(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	proxy_be_silent(&proxy, true);
	nap(GALE_SECONDS(2));
	proxy_be_silent(&proxy, false);
	recovers(0);
	end();
}

static void answers_are_lost(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	proxy_swallow(&proxy, true);
	nap(GALE_SECONDS(1));
	proxy_swallow(&proxy, false);
	recovers(0);
	end();
}

static void answers_come_after_their_window(void **state)
{
	(void)state;
	begin(NULL);
	plan.patience_us = GALE_MILLIS(800);
	plan.within_us = GALE_MILLIS(900);
	let_ask();
	recovers(0);
	proxy_delay(&proxy, TO_NODE, WINDOW * 3 / 2);
	nap(GALE_SECONDS(2));
	proxy_delay(&proxy, TO_NODE, 0);
	proxy_delay(&proxy, TO_SERVER, WINDOW / 2);
	nap(GALE_SECONDS(1));
	proxy_delay(&proxy, TO_SERVER, 0);
	recovers(0);
	end();
}

static void answers_come_when_nobody_waits(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	proxy_delay(&proxy, TO_NODE, WINDOW);
	nap(GALE_SECONDS(1));
	proxy_delay(&proxy, TO_NODE, 0);
	recovers(0);
	end();
}

static void connections_are_cut(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	for (uint64_t i = 0; i < 60; i++) {
		nap(WINDOW / 20);
		if (i % 10 == 9)
			proxy_cut(&proxy);
		else
			proxy_cut_after(&proxy, i * i % 211);
	}
	proxy_cut(&proxy);
	recovers(0);
	end();
}

/* Nobody waits for what cannot come. */
static void all_is_closed_in_a_black_hole(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	proxy_be_silent(&proxy, true);
	nap(GALE_MILLIS(50));
	end();
}

/* Each has something to give back, and waits as long as it is patient. */
static void all_shards_wait_at_once_when_they_are_closed(void **state)
{
	const struct node_plan alone = {
		.url = url,
		.shards = 8,
		.limiter = { .name = "alone",
		             .rule = gale_fixed_window(100, GALE_DAYS(1)),
		             .mode = GALE_LEASED,
		             .lease = { .sizing = GALE_SIZE_FIXED,
		                        .batch = 10,
		                        .patience_us = GALE_SECONDS(1) } },
	};
	uint64_t began, took_us;
	struct node node;
	char key[8];

	(void)state;
	begin(NULL);
	node_open(&node, &alone);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(node_wait(&node, key, GALE_SECONDS(5)).verdict,
		                 GALE_ALLOW);
	}
	proxy_be_silent(&proxy, true);
	began = patience_now_ns();
	gale_leave(node.seat);
	gale_runtime_close(node.runtime); /* first: nothing was given back before */
	took_us = (patience_now_ns() - began) / 1000;
	print_message("closed after %u ms\n", (unsigned)(took_us / 1000));
	gale_limiter_close(node.limiter);
	gale_store_close(node.store);
	assert_in_range(took_us, GALE_MILLIS(900), 4 * GALE_SECONDS(1));
	proxy_close(&proxy);
	redis_server_stop(&server);
}

static struct gale_answer hold(struct node *node, struct gale_hold *ret_hold,
                               uint64_t units)
{
	const struct gale_part part = { node->limiter, "k", 1, units };
	struct gale_all all = { .parts = &part, .count = 1 };

	return gale_hold_wait(node->seat, &all, ret_hold, GALE_SECONDS(5));
}

static void is_an_outage(struct gale_answer answer)
{
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_true(gale_why_is_outage(answer.why));
}

/* Of two keys, one has credit, which is not used. */
static void a_part_without_credit_is_an_outage(struct node *node)
{
	const struct gale_part parts[] = { { node->limiter, "k", 1, 1 },
		                           { node->limiter, "other", 5, 1 } };
	struct gale_all all = { .parts = parts, .count = 2 };

	is_an_outage(gale_wait_all(node->seat, &all, GALE_SECONDS(5)));
	assert_int_equal(all.binding, 1);
}

static bool is_asked_again(void *arg)
{
	return node_wait(arg, "other", GALE_SECONDS(5)).verdict == GALE_ALLOW;
}

/* What is held stays held, what goes back is spent without a server, and what it lent in vain is used. */
static void a_hold_lives_through_a_black_hole(void **state)
{
	const struct node_plan tokens = {
		.url = url,
		.shards = 1,
		.limiter = { .name = "tokens",
		             .rule = gale_fixed_window(100, GALE_DAYS(1)),
		             .mode = GALE_LEASED,
		             .lease = { .sizing = GALE_SIZE_FIXED, .batch = 10 } },
	};
	uint64_t more = 30, cost = 20, used = 60;
	struct gale_hold held, other;
	struct node node;

	(void)state;
	begin(NULL);
	node_open(&node, &tokens);
	assert_int_equal(hold(&node, &held, 60).verdict, GALE_ALLOW);
	proxy_be_silent(&proxy, true);
	is_an_outage(gale_hold_grow(node.seat, &held, &more, GALE_SECONDS(5)));
	assert_int_equal(held.parts[0].units, 60);
	assert_int_equal(gale_hold_commit(node.seat, &held, &cost), GALE_ERR_OK);
	a_part_without_credit_is_an_outage(&node);
	assert_int_equal(hold(&node, &other, 40).verdict, GALE_ALLOW);
	is_an_outage(hold(&node, &held, 1));
	cost = 40;
	assert_int_equal(gale_hold_commit(node.seat, &other, &cost), GALE_ERR_OK);
	proxy_be_silent(&proxy, false);
	assert_true(becomes_true(is_asked_again, &node));
	while (node_wait(&node, "k", GALE_SECONDS(5)).verdict == GALE_ALLOW)
		used++;
	assert_in_range(used, 60, 100);
	node_close(&node);
	proxy_close(&proxy);
	redis_server_stop(&server);
}

/* The tests whose names match the argument; all, without one. */
int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_happens),
		cmocka_unit_test(a_server_is_killed_and_forgets),
		cmocka_unit_test(a_server_is_away_for_long),
		cmocka_unit_test(a_server_is_emptied),
		cmocka_unit_test(scripts_are_forgotten),
		cmocka_unit_test(a_server_stands_still),
		cmocka_unit_test(the_way_is_a_black_hole),
		cmocka_unit_test(answers_are_lost),
		cmocka_unit_test(answers_come_after_their_window),
		cmocka_unit_test(answers_come_when_nobody_waits),
		cmocka_unit_test(connections_are_cut),
		cmocka_unit_test(all_is_closed_in_a_black_hole),
		cmocka_unit_test(all_shards_wait_at_once_when_they_are_closed),
		cmocka_unit_test(a_hold_lives_through_a_black_hole),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
