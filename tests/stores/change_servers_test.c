/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * change_servers_test.c -- limits that are changed while their keys live on a real Redis or
 * PostgreSQL (law L15).
 *
 * The servers' clock stands where a test puts it: nothing turns and nothing accrues meanwhile.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gale/gale.h>

#include "tests/support/both_servers.h"
#include "tests/support/fake_time.h"
#include "tests/support/must.h"

#define FIRST_NOON_US (UINT64_C(1893456000000000) + GALE_HOURS(12)) /* in 2030 */
#define WITHIN GALE_SECONDS(30)
#define NODES 8

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

		must(answer.why != GALE_WHY_CHANGED); /* also in a child */
		must(!gale_why_is_outage(answer.why));
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

static struct gale_rule rule_of(bool is_meter, uint64_t limit)
{
	return is_meter ? gale_gcra(limit, GALE_HOURS(4), limit)
	                : gale_fixed_window(limit, GALE_HOURS(4));
}

/* All have the new limit of 100: it holds, as if there had been no other.  Asked of the store each
 * time, as the clocks of the nodes have not moved, by which they would remember denials. */
static void check_next_window(const struct node nodes[NODES])
{
	uint64_t passed = 0;

	noon_us += GALE_HOURS(4);
	fake_time_set(&server_time, noon_us);
	for (int i = 0; i < NODES; i++)
		passed += passes(&nodes[i], 50);
	assert_int_equal(passed, 100);
}

/* Node by node, up and down again, each asking all the while. */
static void check_rolling(int which, bool is_meter, enum gale_mode mode,
                          const char *name)
{
	struct node nodes[NODES];
	uint64_t passed = 0;

	for (int i = 0; i < NODES; i++)
		open_node(&nodes[i], which, name, rule_of(is_meter, 200), mode);
	for (int i = 0; i < NODES; i++)
		passed += passes(&nodes[i], 5);
	assert_int_equal(passed, 5 * NODES);
	for (int up = 1; up >= 0; up--)
		for (int i = 0; i < NODES; i++) {
			struct gale_rule rule = rule_of(is_meter, up ? 400 : 100);

			assert_int_equal(gale_limiter_set_rule(nodes[i].limiter, &rule),
			                 GALE_ERR_OK);
			for (int j = 0; j < NODES; j++)
				passed += passes(&nodes[j], 4);
			assert_true(passed <= 400);
		}
	for (int i = 0; i < NODES; i++)
		passed += passes(&nodes[i], 100);
	assert_true(passed <= 400 && passed >= 100);
	if (!is_meter && mode == GALE_STRICT)
		check_next_window(nodes);
	for (int i = 0; i < NODES; i++)
		close_node(&nodes[i]);
}

static void check_fleets(int which)
{
	check_rolling(which, false, GALE_STRICT, "rolling strict");
	check_rolling(which, false, GALE_CACHED_DENY, "rolling cached");
	check_rolling(which, false, GALE_LEASED, "rolling leased");
	check_rolling(which, true, GALE_STRICT, "rolling meter strict");
	check_rolling(which, true, GALE_LEASED, "rolling meter leased");
}

static void a_fleet_is_changed_node_by_node(void **state)
{
	(void)state;
	on_both(check_fleets);
}

/* ---- Processes ------------------------------------------------------------------- */

/* A node of its own process.  It is told what to do, and says how many calls passed. */
struct process {
	pid_t pid;
	int to;
	int from;
};

struct order {
	uint64_t tries;
	struct gale_rule rule; /* to have from now on; no kind: none */
	bool ends;
};

static _Noreturn void be_node(int which, const char *name, struct gale_rule rule,
                              enum gale_mode mode, int in, int out)
{
	struct node node;
	struct order order;

	must(prctl(PR_SET_PDEATHSIG, SIGKILL) ==
	     0); /* pipes outlive the test in others */
	open_node(&node, which, name, rule, mode);
	while (read(in, &order, sizeof(order)) == sizeof(order) && !order.ends) {
		uint64_t passed;

		if (order.rule.kind != GALE_RULE_NONE)
			must(gale_limiter_set_rule(node.limiter, &order.rule) ==
			     GALE_ERR_OK);
		passed = passes(&node, order.tries);
		must(write(out, &passed, sizeof(passed)) == sizeof(passed));
	}
	close_node(&node);
	_exit(0);
}

static void process_start(struct process *process, int which, const char *name,
                          struct gale_rule rule, enum gale_mode mode)
{
	int down[2], up[2];

	must(pipe(down) == 0 && pipe(up) == 0);
	process->pid = fork();
	must(process->pid >= 0);
	if (process->pid == 0) {
		close(down[1]);
		close(up[0]);
		be_node(which, name, rule, mode, down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	process->to = down[1];
	process->from = up[0];
}

/* It gives back what it has when its orders end; or it is killed, and that is lost. */
static void process_end(struct process *process, bool killed)
{
	const struct order end = { .ends = true };
	int status;

	if (killed)
		kill(process->pid, SIGKILL);
	else
		must(write(process->to, &end, sizeof(end)) == sizeof(end));
	close(process->to);
	must(waitpid(process->pid, &status, 0) == process->pid);
	assert_true(killed || status == 0);
	close(process->from);
}

static void tell(const struct process *process, uint64_t tries, struct gale_rule rule)
{
	const struct order order = { tries, rule, /* ends= */ false };

	must(write(process->to, &order, sizeof(order)) == sizeof(order));
}

/* All at once. */
static uint64_t processes_pass(const struct process *processes, uint64_t tries)
{
	uint64_t sum = 0, passed;

	for (int i = 0; i < NODES; i++)
		tell(&processes[i], tries, (struct gale_rule){ 0 });
	for (int i = 0; i < NODES; i++) {
		must(read(processes[i].from, &passed, sizeof(passed)) ==
		     sizeof(passed));
		sum += passed;
	}
	return sum;
}

/* Up as a deploy does it: each process ends, every other by a kill, and another one has the new
 * limit.  Down by a call in each. */
static void check_deploy(int which, bool is_meter, enum gale_mode mode,
                         const char *name)
{
	struct process processes[NODES];
	struct gale_rule lower = rule_of(is_meter, 100),
			 higher = rule_of(is_meter, 400);
	uint64_t passed = 0, had;

	for (int i = 0; i < NODES; i++)
		process_start(&processes[i], which, name, rule_of(is_meter, 200), mode);
	passed += processes_pass(processes, 5);
	for (int i = 0; i < NODES; i++) {
		process_end(&processes[i], /* killed= */ i % 2);
		process_start(&processes[i], which, name, higher, mode);
		passed += processes_pass(processes, 2);
		assert_true(passed <= 400);
	}
	for (int i = 0; i < NODES; i++) {
		tell(&processes[i], 0, lower);
		must(read(processes[i].from, &had, sizeof(had)) == sizeof(had));
		passed += processes_pass(processes, 2);
	}
	passed += processes_pass(processes, 60);
	assert_in_range(passed, 100, 400);
	assert_int_equal(processes_pass(processes, 3), 0);
	for (int i = 0; i < NODES; i++)
		process_end(&processes[i], /* killed= */ false);
}

static void check_deploys(int which)
{
	check_deploy(which, false, GALE_STRICT, "deploy strict");
	check_deploy(which, false, GALE_CACHED_DENY, "deploy cached");
	check_deploy(which, false, GALE_LEASED, "deploy leased");
	check_deploy(which, true, GALE_STRICT, "deploy meter strict");
	check_deploy(which, true, GALE_LEASED, "deploy meter leased");
}

static void a_fleet_of_processes_is_changed_by_a_deploy(void **state)
{
	(void)state;
	on_both(check_deploys);
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
		cmocka_unit_test(a_fleet_is_changed_node_by_node),
		cmocka_unit_test(a_fleet_of_processes_is_changed_by_a_deploy),
		cmocka_unit_test(another_kind_begins_anew_where_the_host_says_so),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
