/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * deaths_servers_test.c -- what a node held and had claimed when it was killed, stopped or closed,
 * over a real Redis and a real PostgreSQL.
 *
 * The node is a process.  It takes units, says so, and does no more.  Windows are of a day, so that
 * none turns meanwhile, but for the one of a node that is stopped.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gale/hold.h>
#include <gale/tenants.h>

#include "tests/support/both_servers.h"
#include "tests/support/must.h"

#define LIMIT 100
#define TAKEN 60
#define WITHIN GALE_SECONDS(10)
#define SHORT_US GALE_SECONDS(2) /* a window that ends while a node is stopped */

static struct both_servers both;
static unsigned names; /* so far: each test has one of its own on each server */

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	struct gale_budget *budget;
	struct gale_tenant *tenant;
};

static void open_limiter(struct node *node, const char *name, uint64_t batch)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = gale_fixed_window(LIMIT, GALE_DAYS(1)),
		.mode = GALE_LEASED,
		.store = node->store,
		.lease = { .sizing = GALE_SIZE_FIXED,
		           .batch = batch,
		           .patience_us = WITHIN },
	};

	must(gale_limiter_open(node->runtime, &config, &node->limiter) == GALE_ERR_OK);
}

static void open_tenant(struct node *node, const char *name, uint64_t window_us)
{
	struct gale_budget_config budget = { .limit = LIMIT,
		                             .window_us = window_us,
		                             .store = node->store,
		                             .name = name,
		                             .patience_us = WITHIN };
	struct gale_terms terms = { .weight = 1, .name = "one" };

	must(gale_budget_open(node->runtime, &budget, &node->budget) == GALE_ERR_OK);
	must(gale_tenant_open(node->budget, &terms, &node->tenant) == GALE_ERR_OK);
}

static void open_node(struct node *node, int which, uint64_t window_us, uint64_t batch)
{
	struct gale_config config = { .shards = 1 };
	struct gale_store_config store = { .url = both.urls[which],
		                           .quarantine_us = 1 };
	char name[16];

	snprintf(name, sizeof(name), "n%u", names);
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
	open_limiter(node, name, batch);
	open_tenant(node, name, window_us);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_tenant_close(node->tenant);
	gale_budget_close(node->budget);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

/* ---- What it takes ------------------------------------------------------------------- */

static bool may_ask(struct node *node)
{
	return gale_wait(node->seat, node->limiter, "k", 1, 1, WITHIN).verdict ==
	       GALE_ALLOW;
}

static bool may_spend(struct node *node)
{
	return gale_tenant_wait(node->seat, node->tenant, 1, WITHIN).verdict ==
	       GALE_ALLOW;
}

static bool may_hold(struct node *node, uint64_t units)
{
	struct gale_part part = {
		.limiter = node->limiter, .key = "k", .key_len = 1, .cost = units
	};
	struct gale_all all = { .parts = &part, .count = 1 };
	static struct gale_hold hold; /* until the process is killed */

	return gale_hold_wait(node->seat, &all, &hold, WITHIN).verdict == GALE_ALLOW;
}

/* A server that has just begun is in quarantine for a moment, and a connection takes one, too. */
static bool holds(void *arg)
{
	return may_hold(arg, TAKEN);
}

static bool spends(void *arg)
{
	return may_spend(arg);
}

static uint64_t all_of(struct node *node, bool (*may)(struct node *))
{
	uint64_t allowed = 0;

	for (int i = 0; i < 2 * LIMIT; i++)
		allowed += may(node);
	return allowed;
}

/* ---- Nodes that are processes --------------------------------------------------------- */

/* Runs in a process of its own: says what it has taken when it is asked to by a byte. */
struct process {
	pid_t pid;
	int from;
	int to;
};

static uint64_t hear(const struct process *process)
{
	uint64_t number;

	must(read(process->from, &number, sizeof(number)) == sizeof(number));
	return number;
}

static void tell(const struct process *process)
{
	must(write(process->to, "", 1) == 1);
}

static void life(struct node *node, int from, int to)
{
	uint64_t taken = 1;
	char byte;

	must(becomes_true(holds, node));
	must(becomes_true(spends, node));
	while (taken < TAKEN)
		taken += may_spend(node);
	do {
		must(write(to, &taken, sizeof(taken)) == sizeof(taken));
		must(read(from, &byte, 1) == 1);
		taken = all_of(node, may_spend);
	} while (true);
}

static struct process begin(int which, uint64_t window_us)
{
	int down[2], up[2];
	pid_t pid;

	names++;
	must(pipe(down) == 0 && pipe(up) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		struct node node;

		close(down[1]);
		close(up[0]);
		open_node(&node, which, window_us, /* batch= */ 1);
		life(&node, down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	return (struct process){ pid, up[0], down[1] };
}

static void end(struct process *process)
{
	must(kill(process->pid, SIGKILL) == 0);
	must(waitpid(process->pid, NULL, 0) == process->pid);
	close(process->from);
	close(process->to);
}

/* ---- Tests ---------------------------------------------------------------------------- */

static void on_both(void (*run)(int which))
{
	for (int which = 0; which < BOTH; which++)
		run(which);
}

/* What it held, and all that it had claimed, stay used; the rest is there for others. */
static void what_a_dead_node_had_stays_used_on(int which)
{
	struct process process = begin(which, GALE_DAYS(1));
	struct node node;
	uint64_t left;

	assert_int_equal(hear(&process), TAKEN);
	end(&process);
	open_node(&node, which, GALE_DAYS(1), /* batch= */ 1);
	assert_true(becomes_true(spends, &node));
	assert_int_equal(all_of(&node, may_ask), LIMIT - TAKEN);
	left = all_of(&node, may_spend) + 1;
	assert_in_range(left, 1, LIMIT - TAKEN);
	close_node(&node);
}

static void what_a_dead_node_had_stays_used(void **state)
{
	(void)state;
	on_both(what_a_dead_node_had_stays_used_on);
}

static bool asks(void *arg)
{
	return may_ask(arg);
}

static bool finds_the_rest(void *arg)
{
	struct node *node = arg;
	struct gale_outlook outlook;

	return gale_forecast(node->seat, node->limiter, "k", 1, 1, WITHIN, &outlook) ==
	           GALE_ERR_OK &&
	       outlook.spendable_now == LIMIT - 1;
}

/* It was lent all for one unit.  Its runtime ends at once, or goes on without the limiter. */
static void what_a_node_had_goes_back_on(int which, bool runtime_stays)
{
	struct node node, other;

	names++;
	open_node(&node, which, GALE_DAYS(1), /* batch= */ LIMIT);
	open_node(&other, which, GALE_DAYS(1), /* batch= */ 1);
	assert_true(becomes_true(asks, &node));
	gale_limiter_close(node.limiter);
	node.limiter = NULL;
	if (runtime_stays)
		assert_true(becomes_true(finds_the_rest, &other));
	close_node(&node);
	assert_true(becomes_true(finds_the_rest, &other));
	close_node(&other);
}

/* The limiter was the last one of its store: that is not left before it has what was given back.
 * LESSOR-9, L6 */
static void what_a_node_had_goes_back_when_it_ends(void **state)
{
	(void)state;
	for (int which = 0; which < BOTH; which++)
		for (int stays = 0; stays < 2; stays++)
			what_a_node_had_goes_back_on(which, stays);
}

static bool is_over(void *arg)
{
	return may_spend(arg) && all_of(arg, may_spend) == LIMIT - 1;
}

/* Units that it had claimed are worth nothing when it goes on in another window, all of which others
 * have used.  (T1, L6) */
static void a_node_that_was_stopped_spends_nothing_of_another_window_on(int which)
{
	struct process process = begin(which, SHORT_US);
	struct gale_tenant_counts counts;
	struct node node;
	uint64_t spent;

	(void)hear(&process);
	must(kill(process.pid, SIGSTOP) == 0);
	open_node(&node, which, SHORT_US, /* batch= */ 1);
	/* A whole window that this node alone has used. */
	do {
		assert_true(becomes_true(is_over, &node));
		must(kill(process.pid, SIGCONT) == 0);
		tell(&process);
		spent = hear(&process);
		must(gale_tenant_stats(node.tenant, &counts) == GALE_ERR_OK);
		must(kill(process.pid, SIGSTOP) == 0);
	} while (counts.used != LIMIT); /* the window has ended meanwhile */
	assert_int_equal(spent, 0);
	must(kill(process.pid, SIGCONT) == 0);
	end(&process);
	close_node(&node);
}

static void a_node_that_was_stopped_spends_nothing_of_another_window(void **state)
{
	(void)state;
	on_both(a_node_that_was_stopped_spends_nothing_of_another_window_on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_dead_node_had_stays_used),
		cmocka_unit_test(what_a_node_had_goes_back_when_it_ends),
		cmocka_unit_test(
		    a_node_that_was_stopped_spends_nothing_of_another_window),
	};
	int failed;

	both_servers_start(&both);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	both_servers_stop(&both);
	return failed;
}
