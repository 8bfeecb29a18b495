/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole_servers_test.c -- calls and holds that a Redis and a PostgreSQL must both admit, also while one
 * of them is lost in the middle.
 *
 * A node reaches both through proxies.  What it has used is what another node, which comes when the
 * first has gone, does not find.  Windows are of a day, so that none turns.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include <gale/hold.h>

#include "sim/random.h"
#include "tests/support/both_servers.h"
#include "tests/support/length.h"
#include "tests/support/must.h"
#include "tests/support/proxy.h"

#define LIMIT 100
#define WITHIN GALE_SECONDS(30)
#define SOON GALE_SECONDS(1) /* a server that says nothing is given up */

static struct both_servers both;
static unsigned names; /* so far: each scene has limiters of its own */

struct node {
	struct gale_runtime *runtime;
	struct gale_store *stores[BOTH];
	struct gale_limiter *limiters[BOTH];
	struct gale_seat *seat;
	struct gale_part parts[BOTH];
	struct gale_all all;
};

static void open_limiter(struct node *node, int which, const char *url,
                         uint64_t patience_us)
{
	struct gale_store_config store = { .url = url, .quarantine_us = 1 };
	struct gale_limiter_config config = {
		.rule = gale_fixed_window(LIMIT, GALE_DAYS(1)),
		.mode = GALE_LEASED,
		.lease = { .sizing = GALE_SIZE_FIXED,
		           .batch = 1,
		           .patience_us = patience_us },
	};
	char name[16];

	snprintf(name, sizeof(name), "n%u", names);
	config.name = name;
	must(gale_store_open(node->runtime, &store, &node->stores[which]) ==
	     GALE_ERR_OK);
	config.store = node->stores[which];
	must(gale_limiter_open(node->runtime, &config, &node->limiters[which]) ==
	     GALE_ERR_OK);
	node->parts[which] = (struct gale_part){ node->limiters[which], "k", 1, 1 };
}

/* A part at the server that will be lost is given up soon. */
static void open_node(struct node *node, const char *const urls[BOTH], int lost)
{
	struct gale_config config = { .shards = 1 };

	*node = (struct node){ 0 };
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	for (int which = 0; which < BOTH; which++)
		open_limiter(node, which, urls[which], which == lost ? SOON : WITHIN);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
	node->all = (struct gale_all){ .parts = node->parts, .count = BOTH };
}

static void open_near(struct node *node)
{
	const char *const urls[] = { both.urls[0], both.urls[1] };

	open_node(node, urls, /* lost= */ BOTH);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	for (int which = 0; which < BOTH; which++) {
		gale_limiter_close(node->limiters[which]);
		gale_store_close(node->stores[which]);
	}
	gale_runtime_close(node->runtime);
}

static struct gale_answer ask_for(struct node *node, uint64_t cost)
{
	for (int which = 0; which < BOTH; which++)
		node->parts[which].cost = cost;
	return gale_wait_all(node->seat, &node->all, WITHIN);
}

static bool is_allowed(void *arg)
{
	return ask_for(arg, 1).verdict == GALE_ALLOW;
}

struct look {
	struct node node;
	int which;
	uint64_t left;
};

static bool is_spent(void *arg)
{
	struct look *look = arg;
	struct gale_answer answer = gale_wait(
	    look->node.seat, look->node.limiters[look->which], "k", 1, 1, WITHIN);

	look->left += answer.verdict == GALE_ALLOW;
	return answer.verdict == GALE_DENY && answer.why == GALE_WHY_SPENT;
}

/* The units that both have left, when no other node has anything. */
static void count_left(uint64_t ret_left[BOTH])
{
	struct look look;

	open_near(&look.node);
	for (look.which = 0; look.which < BOTH; look.which++) {
		look.left = 0;
		must(becomes_true(is_spent, &look));
		ret_left[look.which] = look.left;
	}
	close_node(&look.node);
}

/* ---- Both are there ------------------------------------------------------------------ */

/* Two nodes, at costs by lot, until nothing passes.  One that was refused has used nothing. */
static void all_or_nothing_over_two_servers(void **state)
{
	struct chance chance = { 1 };
	uint64_t used = 0, left[BOTH];
	struct node nodes[2];

	(void)state;
	names++;
	for (int i = 0; i < 2; i++) {
		open_near(&nodes[i]);
		must(becomes_true(is_allowed, &nodes[i]));
		used++;
	}
	/* One of the two limits has less left than the other. */
	must(gale_wait(nodes[0].seat, nodes[0].limiters[1], "k", 1, 20, WITHIN)
	         .verdict == GALE_ALLOW);
	for (int i = 0; i < 60; i++) {
		uint64_t cost = chance_between(&chance, 1, 9);

		if (ask_for(&nodes[i % 2], cost).verdict == GALE_ALLOW)
			used += cost;
	}
	close_node(&nodes[0]);
	close_node(&nodes[1]);
	count_left(left);
	assert_int_equal(left[0], LIMIT - used);
	assert_int_equal(left[1], LIMIT - used - 20);
}

/* ---- One is lost --------------------------------------------------------------------- */

enum loss {
	SWALLOWED, /* it lends, and its answers are lost */
	SILENT,    /* it hears nothing */
	CUT,       /* its connections break, and new ones say nothing */
	LOSSES = LONG_OR_BRIEF(CUT + 1, SWALLOWED + 1)
};

struct far {
	struct node node;
	struct proxy proxies[BOTH];
};

static void open_proxy(struct proxy *proxy, int which, char *ret_url, size_t size)
{
	char folder[64], socket[96];

	if (which == 0) {
		proxy_open(proxy, both.redis.socket);
		snprintf(ret_url, size, "redis://127.0.0.1:%u", proxy->port);
		return;
	}
	must(sscanf(postgres_server_address(both.postgres), "host=%63s", folder) == 1);
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.5432", folder);
	proxy_open(proxy, socket);
	snprintf(ret_url, size, "postgres://gale@127.0.0.1:%u/postgres", proxy->port);
}

static void open_far(struct far *far, int lost)
{
	const char *urls[BOTH];
	char text[BOTH][128];

	names++;
	for (int which = 0; which < BOTH; which++) {
		open_proxy(&far->proxies[which], which, text[which],
		           sizeof(text[which]));
		urls[which] = text[which];
	}
	open_node(&far->node, urls, lost);
	must(becomes_true(is_allowed, &far->node));
}

static void close_far(struct far *far)
{
	close_node(&far->node);
	for (int which = 0; which < BOTH; which++)
		proxy_close(&far->proxies[which]);
}

static void lose(struct proxy *proxy, enum loss loss)
{
	if (loss == SWALLOWED)
		proxy_swallow(proxy, true);
	else
		proxy_be_silent(proxy, true);
	if (loss == CUT)
		proxy_cut(proxy);
}

static void find_again(struct proxy *proxy)
{
	proxy_swallow(proxy, false);
	proxy_be_silent(proxy, false);
}

static void is_denied_by(const struct node *node, const struct gale_answer *answer,
                         int which)
{
	assert_int_equal(answer->verdict, GALE_DENY);
	assert_true(gale_why_is_outage(answer->why));
	assert_int_equal(node->all.binding, which);
}

/* What the other has lent goes back; what the lost one has lent, if anything, is unknown, and used. */
static void is_lost_between(int lost, enum loss loss)
{
	struct gale_answer answer;
	uint64_t left[BOTH];
	struct far far;

	open_far(&far, lost);
	lose(&far.proxies[lost], loss);
	answer = ask_for(&far.node, 10);
	is_denied_by(&far.node, &answer, lost);
	find_again(&far.proxies[lost]);
	close_far(&far);
	count_left(left);
	assert_int_equal(left[!lost], LIMIT - 1);
	assert_in_range(left[lost], LIMIT / 2, LIMIT - 1);
}

static void a_server_is_lost_between_taking_and_using(void **state)
{
	(void)state;
	for (int lost = 0; lost < BOTH; lost++)
		for (int loss = 0; loss < LOSSES; loss++)
			is_lost_between(lost, (enum loss)loss);
}

/* The same where nobody waits. */
static void what_is_pending_is_answered(int lost)
{
	struct gale_completion completion;
	uint64_t left[BOTH];
	struct far far;

	open_far(&far, lost);
	lose(&far.proxies[lost], SWALLOWED);
	for (int which = 0; which < BOTH; which++)
		far.node.parts[which].cost = 10;
	assert_int_equal(gale_ask_all(far.node.seat, &far.node.all, NULL).verdict,
	                 GALE_PENDING);
	while (gale_seat_completions(far.node.seat, &completion, 1) == 0)
		continue;
	is_denied_by(&far.node, &completion.answer, lost);
	find_again(&far.proxies[lost]);
	close_far(&far);
	count_left(left);
	assert_int_equal(left[!lost], LIMIT - 1);
}

static void a_server_is_lost_while_a_call_is_pending(void **state)
{
	(void)state;
	for (int lost = 0; lost < BOTH; lost++)
		what_is_pending_is_answered(lost);
}

/* ---- Holds --------------------------------------------------------------------------- */

static bool is_held(struct node *node, struct gale_hold *ret_hold)
{
	node->parts[0].cost = 60;
	node->parts[1].cost = 40;
	return gale_hold_wait(node->seat, &node->all, ret_hold, WITHIN).verdict ==
	       GALE_ALLOW;
}

/* Where the machine stood still for so long that the server was given up, units are gone: so anew. */
static void open_and_hold(struct far *far, int lost, struct gale_hold *ret_hold)
{
	open_far(far, lost);
	while (!is_held(&far->node, ret_hold)) {
		close_far(far);
		open_far(far, lost);
	}
}

/* It does not grow meanwhile, in neither part; what it holds is committed in both. */
static void a_hold_outlives(int lost, enum loss loss)
{
	const uint64_t more[] = { 20, 20 }, costs[] = { 30, 25 };
	struct gale_answer answer;
	struct gale_hold held;
	uint64_t left[BOTH];
	struct far far;

	open_and_hold(&far, lost, &held);
	lose(&far.proxies[lost], loss);
	answer = gale_hold_grow(far.node.seat, &held, more, WITHIN);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_true(gale_why_is_outage(answer.why));
	assert_int_equal(held.binding, lost);
	assert_int_equal(held.parts[0].units, 60);
	assert_int_equal(held.parts[1].units, 40);
	assert_int_equal(gale_hold_commit(far.node.seat, &held, costs), GALE_ERR_OK);
	assert_int_equal(gale_hold_commit(far.node.seat, &held, costs), GALE_ERR_HOLD);
	find_again(&far.proxies[lost]);
	close_far(&far);
	count_left(left);
	assert_int_equal(left[!lost], LIMIT - 1 - costs[!lost]);
	assert_true(left[lost] <= LIMIT - 1 - costs[lost]);
}

static void a_hold_outlives_a_server_that_is_lost(void **state)
{
	(void)state;
	for (int lost = 0; lost < BOTH; lost++)
		for (int loss = 0; loss < LOSSES; loss++)
			a_hold_outlives(lost, (enum loss)loss);
}

static int start(void **state)
{
	(void)state;
	both_servers_start(&both);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	both_servers_stop(&both);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_or_nothing_over_two_servers),
		cmocka_unit_test(a_server_is_lost_between_taking_and_using),
		cmocka_unit_test(a_server_is_lost_while_a_call_is_pending),
		cmocka_unit_test(a_hold_outlives_a_server_that_is_lost),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
