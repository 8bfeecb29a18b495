/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * forgetful_server_test.c -- a server forgets a window that is longer than nodes wait.
 *
 * Two nodes have leased from a quota of an hour when a real Redis or PostgreSQL is emptied,
 * or ends and starts empty.  It grants nothing for QUARANTINE, which is much less than an
 * hour; then it goes on with what it is reminded of.                             (L12)
 *
 *     reminded by .......... admitted in all
 *     all .................. the limit
 *     some ................. the limit, and what others were lent after those were told
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "runtime/clock.h"
#include "tests/support/both_servers.h"
#include "tests/support/moment.h"
#include "tests/support/node.h"

#define LIMIT 40
#define BATCH 10
#define NODES 2
#define QUARANTINE GALE_SECONDS(2)
#define WITHIN GALE_SECONDS(5)
#define PATIENCE_NS UINT64_C(60000000000)
#define TRIES_MOST 3

/* Each is a way to forget everything. */
struct loss {
	int which; /* of both servers */
	void (*happen)(void);
	bool cuts; /* all connections */
};

static struct both_servers both;
static struct node nodes[NODES];
static unsigned keys; /* so far: each test has one of its own */
static char key[16];
static struct gale_answer denial; /* the latest */
static bool late; /* an answer was: what it granted is lost (stores/line.h, LINE-2) */

/* ---- Losses ---------------------------------------------------------------------- */

static void redis_is_emptied(void)
{
	redis_server_do(&both.redis, "FLUSHALL");
}

static void redis_starts_empty(void)
{
	redis_server_restart(&both.redis);
}

static void postgres_is_emptied(void)
{
	both_servers_run_sql(&both, "TRUNCATE gale.keys");
}

static void postgres_crashes_without_the_table(void)
{
	both_servers_run_sql(&both, "ALTER TABLE gale.keys SET UNLOGGED");
	postgres_server_restart(both.postgres, /* crashes= */ true);
}

static const struct loss losses[] = {
	{ 0, redis_is_emptied, .cuts = false },
	{ 0, redis_starts_empty, .cuts = true },
	{ 1, postgres_is_emptied, .cuts = false },
	{ 1, postgres_crashes_without_the_table, .cuts = true },
};

#define LOSSES (sizeof(losses) / sizeof(losses[0]))

/* ---- Nodes ----------------------------------------------------------------------- */

static void open_node(struct node *node, const char *url)
{
	node_open(node,
	          &(struct node_plan){
		      .url = url,
		      .quarantine_us = QUARANTINE,
		      .shards = 1,
		      .limiter = { .name = "quota",
	                           .rule = gale_fixed_window(LIMIT, GALE_HOURS(24)),
	                           .mode = GALE_LEASED,
	                           .lease = { .sizing = GALE_SIZE_FIXED,
	                                      .batch = BATCH,
	                                      .patience_us = GALE_SECONDS(1) } },
		  });
}

static struct gale_answer ask(struct node *node)
{
	struct gale_answer answer = node_wait(node, key, WITHIN);

	if (answer.verdict == GALE_DENY)
		denial = answer;
	late |= answer.why == GALE_WHY_LATE;
	return answer;
}

static bool is_decided(const struct gale_answer *answer)
{
	return answer->verdict == GALE_ALLOW || answer->why == GALE_WHY_SPENT;
}

/* Until the server has decided: it may not be there, or grant nothing yet. */
static bool is_let_in(struct node *node)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;
	struct gale_answer answer = ask(node);

	while (!is_decided(&answer)) {
		nap(GALE_MILLIS(5));
		assert_true(patience_now_ns() < deadline);
		answer = ask(node);
	}
	return answer.verdict == GALE_ALLOW;
}

static unsigned lets_in(struct node *node, unsigned most)
{
	unsigned count = 0;

	while (count < most && is_let_in(node))
		count++;
	return count;
}

/* Until the denial is of the day and not of the quarantine. */
static unsigned lets_in_all(struct node *node)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;
	unsigned count = 0;

	for (;;) {
		struct gale_answer answer = ask(node);

		count += answer.verdict == GALE_ALLOW;
		if (answer.why == GALE_WHY_SPENT &&
		    answer.retry_after_us > 2 * QUARANTINE)
			return count;
		if (answer.verdict != GALE_ALLOW)
			nap(GALE_MILLIS(5));
		assert_true(patience_now_ns() < deadline);
	}
}

static void begin(const struct loss *loss)
{
	snprintf(key, sizeof(key), "k%u", keys++);
	for (int i = 0; i < NODES; i++)
		open_node(&nodes[i], both.urls[loss->which]);
	while (!is_let_in(&nodes[0])) /* the server's first quarantine */
		nap(GALE_MILLIS(20));
	assert_int_equal(lets_in(&nodes[0], BATCH - 1), BATCH - 1);
}

static void end(void)
{
	for (int i = 0; i < NODES; i++)
		node_close(&nodes[i]);
}

/* ---- Tests ----------------------------------------------------------------------- */

/* Until it has nothing in hand, and the server denies it more. */
static unsigned uses_up(struct node *node)
{
	return lets_in(node, 2 * LIMIT);
}

/* Rare, so all that is known of it is said. */
static void tell(const struct loss *loss, unsigned admitted)
{
	print_error("loss %d: %u admitted, the latest denial is for %llu us\n",
	            (int)(loss - losses), admitted,
	            (unsigned long long)denial.retry_after_us);
	for (int i = 0; i < NODES; i++) {
		struct gale_counts counts = node_stats(&nodes[i]);

		print_error("  %llu round trips, %llu connects, %llu failures\n",
		            (unsigned long long)counts.round_trips,
		            (unsigned long long)counts.connects,
		            (unsigned long long)counts.failures);
	}
}

/* All of the limit, and no more than so much.  A round in which an answer was late, or a node
 * was back too late, and which has lost something by that, is begun again. */
static void admits(const struct loss *loss, unsigned (*admit)(const struct loss *loss),
                   unsigned most)
{
	unsigned admitted = 0;

	for (int i = 0; i < TRIES_MOST && (i == 0 || (late && admitted < LIMIT)); i++) {
		late = false;
		begin(loss);
		admitted = admit(loss);
		if (admitted < LIMIT || admitted > most)
			tell(loss, admitted);
		end();
	}
	assert_in_range(admitted, LIMIT, most);
}

static unsigned by_two_that_remind(const struct loss *loss)
{
	unsigned admitted = BATCH + lets_in(&nodes[1], BATCH);

	loss->happen();
	admitted += uses_up(&nodes[1]);
	admitted += uses_up(&nodes[0]);
	for (int n = 0; n < NODES; n++)
		admitted += lets_in_all(&nodes[n]);
	return admitted;
}

/* All ask before anything is granted, or who was told last asks first. */
static void nothing_is_granted_twice_if_all_remind(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOSSES; i++)
		admits(&losses[i], by_two_that_remind, LIMIT);
}

/* What it has remembered is dropped soon after. */
static void asks_for_a_while(struct node *node)
{
	for (int i = 0; i < 100; i++) {
		assert_int_not_equal(ask(node).verdict, GALE_ALLOW);
		nap(GALE_MILLIS(5));
	}
}

static unsigned by_one_that_was_denied(const struct loss *loss)
{
	unsigned admitted = BATCH + uses_up(&nodes[0]);
	char used_up[sizeof(key)];

	if (admitted != LIMIT)
		return admitted;
	loss->happen();
	strcpy(used_up, key);
	strcpy(key, "another");
	(void)is_let_in(&nodes[0]);
	strcpy(key, used_up);
	asks_for_a_while(&nodes[0]);
	admitted += lets_in_all(&nodes[1]);
	admitted += lets_in_all(&nodes[0]);
	return admitted;
}

/* Who has been denied would not ask before tomorrow: it is enough that it hears of it by
 * another key.  That it gets nothing for its reminder does not matter. */
static void what_was_used_up_stays_so(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOSSES; i++)
		admits(&losses[i], by_one_that_was_denied, LIMIT);
}

/* True if the node could speak to the server long before the quarantine was over.  Where the
 * machine stands still for so long, it cannot. */
static bool is_back_in_time(struct node *node, const struct loss *loss,
                            uint64_t connects)
{
	uint64_t since = patience_now_ns();

	while (loss->cuts && node_stats(node).connects == connects) {
		nap(GALE_MILLIS(1));
		assert_true(patience_now_ns() < since + PATIENCE_NS);
	}
	return patience_now_ns() - since < QUARANTINE * 1000 / 2;
}

#define KEYS_USED_UP 3

/* Of all its keys, and nobody asks it again. */
static unsigned by_one_that_nobody_asks(const struct loss *loss)
{
	char all[KEYS_USED_UP][sizeof(key)];
	unsigned admitted = 0, others = 0;
	uint64_t connects;

	for (int i = 0; i < KEYS_USED_UP; i++) {
		if (i > 0)
			snprintf(key, sizeof(key), "k%u", keys++);
		strcpy(all[i], key);
		admitted = (i == 0 ? BATCH : 0) + uses_up(&nodes[0]);
		if (admitted != LIMIT)
			return admitted;
	}
	connects = node_stats(&nodes[0]).connects;
	loss->happen();
	if (!is_back_in_time(&nodes[0], loss, connects)) {
		late = true;
		return 0;
	}
	for (int i = 0; i < KEYS_USED_UP; i++) {
		strcpy(key, all[i]);
		others += lets_in_all(&nodes[1]);
	}
	return admitted + others;
}

static void what_was_used_up_is_told_though_nobody_asks(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOSSES; i++)
		admits(&losses[i], by_one_that_nobody_asks, LIMIT);
}

static unsigned by_one_of_two(const struct loss *loss)
{
	unsigned admitted = BATCH + lets_in(&nodes[1], BATCH);

	loss->happen();
	return admitted + lets_in_all(&nodes[0]);
}

static void what_nobody_speaks_of_is_granted_again_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOSSES; i++)
		admits(&losses[i], by_one_of_two, LIMIT + BATCH);
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
		cmocka_unit_test(nothing_is_granted_twice_if_all_remind),
		cmocka_unit_test(what_was_used_up_stays_so),
		cmocka_unit_test(what_was_used_up_is_told_though_nobody_asks),
		cmocka_unit_test(what_nobody_speaks_of_is_granted_again_and_no_more),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
