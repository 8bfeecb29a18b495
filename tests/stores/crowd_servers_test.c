/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * crowd_servers_test.c -- two hundred nodes at once, each with a connection of its own, that
 * want one key of a real Redis and of a real PostgreSQL.
 *
 * Exactly the limit is admitted, by a strategy of one's own, by the store, and from leases.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "tests/support/both_servers.h"
#include "tests/support/crew.h"
#include "tests/support/customs.h"
#include "tests/support/late.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define WITHIN GALE_SECONDS(30)
#define EVER GALE_DAYS(3650)
#define CROWD 200
#define FIFTY 50
#define ATTEMPTS 8

struct crowd {
	const char *name;
	struct gale_rule rule;
	enum gale_mode mode;
};

static struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *first; /* it keeps the connection open */
	struct gale_limiter *limiter;
} nodes[CROWD];

static struct both_servers both;
static _Atomic uint64_t allowed, late, odd;

static struct gale_limiter *limiter_at(const struct node *node, const char *name,
                                       const struct crowd *crowd)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = crowd->rule,
		.mode = crowd->mode,
		.store = node->store,
		.lease = { .sizing = GALE_SIZE_FIXED,
		           .batch = 1,
		           .patience_us = WITHIN },
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(node->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static struct gale_answer ask(const struct node *node, struct gale_limiter *limiter)
{
	struct gale_answer answer;
	struct gale_seat *seat;

	must(gale_join(node->runtime, &seat) == GALE_ERR_OK);
	answer = gale_wait(seat, limiter, "k", 1, 1, WITHIN);
	gale_leave(seat);
	return answer;
}

static void open_node(struct node *node, const char *url)
{
	static const struct crowd first = {
		"first",
		{ .kind = GALE_RULE_FIXED_WINDOW, .limit = 1000000, .period_us = EVER },
		GALE_STRICT
	};
	struct gale_config config = { .shards = 1, .max_keys = 64 };
	struct gale_store_config store = { .url = url, .quarantine_us = 1 };

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	node->first = limiter_at(node, first.name, &first);
	while (ask(node, node->first).verdict != GALE_ALLOW)
		nap(20000);
}

static void close_node(struct node *node)
{
	gale_limiter_close(node->first);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static void come(void *arg, unsigned who)
{
	struct gale_answer answer = ask(&nodes[who], nodes[who].limiter);

	(void)arg;
	add_relaxed(&allowed, answer.verdict == GALE_ALLOW);
	if (is_late(answer))
		add_relaxed(&late, 1);
	else
		add_relaxed(&odd, answer.why >= GALE_WHY_BUSY);
}

static uint64_t contended(const struct node *node)
{
	struct gale_counts counts;

	must(gale_store_stats(node->store, &counts) == GALE_ERR_OK);
	return counts.contended;
}

/* Of those who are beaten, somebody has won: with a limit of fifty nobody is beaten more
 * than fifty times, and nobody gives up.  Of the fifty some may be late, and their units lost. */
static void comes_once(const struct crowd *crowd, unsigned attempt)
{
	char name[24];

	store_relaxed(&allowed, 0);
	store_relaxed(&late, 0);
	store_relaxed(&odd, 0);
	snprintf(name, sizeof(name), "%s%u", crowd->name, attempt);
	for (unsigned i = 0; i < CROWD; i++)
		nodes[i].limiter = limiter_at(&nodes[i], name, crowd);
	crew_run(CROWD, come, NULL);
	for (unsigned i = 0; i < CROWD; i++) {
		assert_int_equal(contended(&nodes[i]), 0);
		gale_limiter_close(nodes[i].limiter);
	}
	print_message("%s: %" PRIu64 " allowed, %" PRIu64 " late\n", name,
	              load_relaxed(&allowed), load_relaxed(&late));
	assert_in_range(load_relaxed(&allowed), 0, FIFTY);
	assert_true(load_relaxed(&allowed) + load_relaxed(&late) >= FIFTY);
	assert_int_equal(load_relaxed(&odd), 0);
}

/* Again where a server was given up on, and what it did for those who were late is not known:
 * that many of them are too many for a small machine with other things to do. */
static void comes(const struct crowd *crowd)
{
	unsigned attempt = 0;

	do
		comes_once(crowd, attempt);
	while (load_relaxed(&late) > 0 && ++attempt < ATTEMPTS);
	assert_int_equal(load_relaxed(&late), 0);
	assert_int_equal(load_relaxed(&allowed), FIFTY);
}

/* They connect one after the other: all at once may take longer than who connects waits. */
static void crowds_come_to(int which)
{
	const struct crowd crowds[] = {
		{ "own", custom_window(FIFTY, EVER), GALE_STRICT },
		{ "strict", gale_fixed_window(FIFTY, EVER), GALE_STRICT },
		{ "leased", gale_fixed_window(FIFTY, EVER), GALE_LEASED },
	};

	for (unsigned i = 0; i < CROWD; i++)
		open_node(&nodes[i], both.urls[which]);
	for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++)
		comes(&crowds[i]);
	for (unsigned i = 0; i < CROWD; i++)
		close_node(&nodes[i]);
}

static void two_hundred_at_redis_get_exactly_the_limit(void **state)
{
	(void)state;
	crowds_come_to(0);
}

static void two_hundred_at_postgres_get_exactly_the_limit(void **state)
{
	(void)state;
	crowds_come_to(1);
}

static int start_servers(void **state)
{
	(void)state;
	both_servers_start(&both);
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	both_servers_stop(&both);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_hundred_at_redis_get_exactly_the_limit),
		cmocka_unit_test(two_hundred_at_postgres_get_exactly_the_limit),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
