/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants_servers_test.c -- a budget that nodes share over a real Redis and a real PostgreSQL.
 *
 * Windows are of a day, so that none turns meanwhile; units that lie idle go back after hours, and
 * so at once only when a tenant is closed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include <gale/tenants.h>

#include "tests/support/both_servers.h"
#include "tests/support/lines.h"
#include "tests/support/must.h"

#define NODES 3
#define TENANTS 2
#define LIMIT 900
#define QUARANTINE_US GALE_SECONDS(3)
#define WITHIN GALE_SECONDS(10)

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_budget *budget;
	struct gale_tenant *tenants[TENANTS];
	struct gale_seat *seat;
};

static struct both_servers both;
static struct node nodes[NODES];
static unsigned budgets; /* so far: each has a name of its own */
static struct lines lines;

static struct gale_tenant *open_tenant(struct gale_budget *budget, const char *name,
                                       uint32_t weight)
{
	struct gale_terms terms = { .weight = weight, .name = name };
	struct gale_tenant *tenant;

	must(gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK);
	return tenant;
}

/* Without tenants. */
static void open_house_of(int which, struct node *node, uint64_t quarantine_us,
                          uint64_t limit, uint64_t window_us, uint64_t release_us)
{
	struct gale_config config = { .shards = 1, .log = &lines.log };
	struct gale_store_config store = { .url = both.urls[which],
		                           .quarantine_us = quarantine_us };
	struct gale_budget_config budget = { .limit = limit,
		                             .window_us = window_us,
		                             .release_us = release_us,
		                             .patience_us = WITHIN };
	char name[16];

	snprintf(name, sizeof(name), "b%u", budgets);
	budget.name = name;
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	budget.store = node->store;
	must(gale_budget_open(node->runtime, &budget, &node->budget) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

static void open_house(int which, struct node *node, uint64_t quarantine_us)
{
	open_house_of(which, node, quarantine_us, LIMIT, GALE_DAYS(1), 0);
}

static void open_node(int which, struct node *node, uint64_t quarantine_us)
{
	open_house(which, node, quarantine_us);
	node->tenants[0] = open_tenant(node->budget, "big", 2);
	node->tenants[1] = open_tenant(node->budget, "sm:all {}\n", 1);
}

static struct gale_answer ask(int node, int tenant, uint64_t cost)
{
	return gale_tenant_wait(nodes[node].seat, nodes[node].tenants[tenant], cost,
	                        WITHIN);
}

/* A server that has just been started is in quarantine for a moment, however short it is; and a
 * connection takes a moment. */
static bool is_granted(void *arg)
{
	return ask(*(int *)arg, 0, 1).verdict == GALE_ALLOW;
}

/* Each has used one unit then. */
static void warm_up(void)
{
	for (int i = 0; i < NODES; i++)
		must(becomes_true(is_granted, &i));
}

static void open_nodes(int which, uint64_t quarantine_us)
{
	budgets++;
	for (int i = 0; i < NODES; i++)
		open_node(which, &nodes[i], quarantine_us);
	if (quarantine_us == 1)
		warm_up();
}

static void close_house(struct node *node)
{
	gale_leave(node->seat);
	gale_budget_close(node->budget);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static void close_node(struct node *node)
{
	for (int i = 0; i < TENANTS; i++)
		gale_tenant_close(node->tenants[i]);
	close_house(node);
}

static void close_nodes(void)
{
	for (int i = 0; i < NODES; i++)
		close_node(&nodes[i]);
}

/* How many of so many asks of all nodes, one after the other. */
static uint64_t flood(int tenant, int asks)
{
	uint64_t allowed = 0;

	for (int i = 0; i < asks; i++)
		for (int node = 0; node < NODES; node++)
			allowed += ask(node, tenant, 1).verdict == GALE_ALLOW;
	return allowed;
}

static void is_told(struct gale_answer answer, enum gale_verdict verdict,
                    enum gale_why why)
{
	assert_string_equal(gale_why_name(answer.why), gale_why_name(why));
	assert_int_equal(answer.verdict, verdict);
}

/* Where the machine stands still, an answer is late, and the server is taken for dead. */
static bool is_slow(struct gale_answer answer)
{
	return answer.why == GALE_WHY_LATE || answer.why == GALE_WHY_DOWN;
}

static void is_said(const char *what)
{
	if (!lines_will_have(&lines, what))
		lines_show(&lines);
	assert_true(lines_have(&lines, what));
}

static void on_both(void (*run)(int which))
{
	for (int which = 0; which < BOTH; which++)
		run(which);
}

/* T1, T2: by weight, whichever node asks, and never beyond. */
static void shares_are_of_the_fleet_on(int which)
{
	uint64_t got[TENANTS] = { NODES, 0 };

	open_nodes(which, /* quarantine_us= */ 1);
	for (int i = 0; i < 320; i++)
		for (int tenant = 0; tenant < TENANTS; tenant++)
			got[tenant] += flood(tenant, 1);
	assert_in_range(got[0], LIMIT * 2 / 3 - 6, LIMIT * 2 / 3);
	assert_in_range(got[1], LIMIT / 3 - 3, LIMIT / 3);
	close_nodes();
}

static void shares_are_of_the_fleet(void **state)
{
	(void)state;
	on_both(shares_are_of_the_fleet_on);
}

/* What a node had in hand when it ended in order is there for the others. */
static void who_ends_gives_back_on(int which)
{
	uint64_t got = NODES;

	open_nodes(which, /* quarantine_us= */ 1);
	for (int i = NODES; i < 200; i++)
		got += ask(0, 0, 1).verdict == GALE_ALLOW;
	assert_int_equal(got, 200);
	close_node(&nodes[0]);
	for (int i = 0; i < LIMIT; i++)
		got += ask(1, 0, 1).verdict == GALE_ALLOW;
	assert_int_equal(got, LIMIT);
	is_told(ask(2, 0, 1), GALE_DENY, GALE_WHY_SPENT);
	open_node(which, &nodes[0], /* quarantine_us= */ 1);
	close_nodes();
}

static void who_ends_gives_back(void **state)
{
	(void)state;
	on_both(who_ends_gives_back_on);
}

/* Each node's is within the limit, and both together are not: this is said.  The limit is divided by
 * weight, up to each guarantee; no more than it is used.  T1 */
static void guarantees_of_the_fleet_are_told_on(int which)
{
	static const struct gale_terms terms[TENANTS] = {
		{ .weight = 2, .guarantee = 600, .name = "big" },
		{ .weight = 1, .guarantee = 500, .name = "small" },
	};
	uint64_t got[TENANTS] = { 0, 0 };
	char line[200];

	budgets++;
	for (int i = 0; i < TENANTS; i++) {
		struct node *node = &nodes[i];

		open_house(which, node, /* quarantine_us= */ 1);
		must(gale_tenant_open(node->budget, &terms[i], &node->tenants[i]) ==
		     GALE_ERR_OK);
		while (ask(i, i, 1).verdict != GALE_ALLOW)
			continue; /* it is new */
		got[i]++;
	}
	for (int i = TENANTS; i-- > 0;)
		for (int k = 0; k < LIMIT; k++)
			got[i] += ask(i, i, 1).verdict == GALE_ALLOW;
	assert_int_equal(got[0], 600);
	assert_int_equal(got[1], 300);
	snprintf(line, sizeof(line),
	         "warning: budget b%u: tenants of all nodes have guarantees of 1100 "
	         "together, and the limit is 900: not all can be kept",
	         budgets);
	is_said(line);
	for (int i = 0; i < TENANTS; i++) {
		gale_tenant_close(nodes[i].tenants[i]);
		close_house(&nodes[i]);
	}
}

static void guarantees_of_the_fleet_are_told(void **state)
{
	(void)state;
	on_both(guarantees_of_the_fleet_are_told_on);
}

static struct gale_answer answer_to(int node)
{
	struct gale_answer answer;

	do
		answer = ask(node, 0, 1);
	while (is_slow(answer) || answer.why == GALE_WHY_QUARANTINE);
	return answer;
}

/* POOL-6 */
static void is_refused(int which, uint64_t window_us, uint64_t release_us,
                       const char *setting)
{
	char line[64];

	open_house_of(which, &nodes[2], 1, LIMIT, window_us, release_us);
	nodes[2].tenants[0] = open_tenant(nodes[2].budget, "big", 2);
	is_told(answer_to(2), GALE_DENY, GALE_WHY_CHANGED);
	snprintf(line, sizeof(line), "other nodes have another %s", setting);
	is_said(line);
	gale_tenant_close(nodes[2].tenants[0]);
	close_house(&nodes[2]);
}

/* L15: nodes of other limits and terms are told; one of other settings is refused, and told. */
static void nodes_that_disagree_are_told_on(int which)
{
	budgets++;
	lines.count = 0;
	memset(lines.text, 0, sizeof(lines.text));
	open_house(which, &nodes[0], /* quarantine_us= */ 1);
	open_house_of(which, &nodes[1], 1, LIMIT / 2, GALE_DAYS(1), 0);
	for (int i = 0; i < 2; i++)
		nodes[i].tenants[0] =
		    open_tenant(nodes[i].budget, "big", (uint32_t)(2 + i));
	for (int i = 0; i < 2; i++)
		while (ask(i, 0, 1).verdict != GALE_ALLOW)
			continue; /* it is new */
	is_refused(which, GALE_HOURS(1), 0, "window_us");
	is_refused(which, GALE_DAYS(1), GALE_NEVER, "release_us");
	is_said("another node has the limit 900, and this one 450");
	is_said("tenant big: another node has weight 2, guarantee 0, no cap, and this "
	        "one weight 3");
	for (int i = 0; i < 2; i++) {
		gale_tenant_close(nodes[i].tenants[0]);
		close_house(&nodes[i]);
	}
}

static void nodes_that_disagree_are_told(void **state)
{
	(void)state;
	on_both(nodes_that_disagree_are_told_on);
}

static void delete_pool(int which)
{
	char command[128];

	if (which == 0) {
		snprintf(command, sizeof(command),
		         "EVAL "
		         "return(redis.call('DEL',unpack(redis.call('KEYS','gale:{*}"
		         "pool:b%u')))) 0",
		         budgets);
		redis_server_do(&both.redis, command);
		return;
	}
	snprintf(command, sizeof(command), "DELETE FROM gale.pools WHERE name = 'b%u'",
	         budgets);
	both_servers_run_sql(&both, command);
}

/* A node with windows of a day has gone; those of the fleet have windows of a second. */
static void a_pool_that_is_deleted_lets_other_settings_in_on(int which)
{
	budgets++;
	open_house(which, &nodes[0], /* quarantine_us= */ 1);
	nodes[0].tenants[0] = open_tenant(nodes[0].budget, "big", 2);
	assert_int_equal(answer_to(0).verdict, GALE_ALLOW);
	gale_tenant_close(nodes[0].tenants[0]);
	close_house(&nodes[0]);
	open_house_of(which, &nodes[1], 1, LIMIT, GALE_SECONDS(1), 0);
	nodes[1].tenants[0] = open_tenant(nodes[1].budget, "big", 2);
	is_told(answer_to(1), GALE_DENY, GALE_WHY_CHANGED);
	delete_pool(which);
	must(becomes_true(is_granted, &(int){ 1 }));
	gale_tenant_close(nodes[1].tenants[0]);
	close_house(&nodes[1]);
}

static void a_pool_that_is_deleted_lets_other_settings_in(void **state)
{
	(void)state;
	on_both(a_pool_that_is_deleted_lets_other_settings_in_on);
}

static void forget(int which)
{
	if (which == 0)
		redis_server_do(&both.redis, "FLUSHALL");
	else
		both_servers_run_sql(&both, "TRUNCATE gale.pools");
}

/* L12: a server that has forgotten grants nothing for as long as it may; what is in hand stays
 * good. */
static void a_server_that_forgot_is_quiet_on(int which)
{
	struct gale_answer answer;

	open_nodes(which, QUARANTINE_US);
	while ((answer = ask(1, 0, 1)).verdict != GALE_ALLOW)
		assert_true(is_slow(answer) ||
		            answer.why == GALE_WHY_QUARANTINE); /* it is new */
	forget(which);
	while ((answer = ask(1, 0, 1)).verdict == GALE_ALLOW || is_slow(answer))
		continue; /* it has units in hand */
	is_told(answer, GALE_DENY, GALE_WHY_QUARANTINE);
	assert_in_range(answer.retry_after_us, 1, 2 * QUARANTINE_US);
	while ((answer = ask(1, 0, 1)).verdict != GALE_ALLOW)
		assert_true(answer.why == GALE_WHY_LATE ||
		            answer.why == GALE_WHY_QUARANTINE);
	close_nodes();
}

static void a_server_that_forgot_is_quiet(void **state)
{
	(void)state;
	on_both(a_server_that_forgot_is_quiet_on);
}

/* While it is away, nothing is granted; what is in hand can be used, and what a tenant's terms leave to
 * each process.  FUND-8 */
static void a_server_that_is_away_grants_nothing(void **state)
{
	struct gale_terms terms = { .weight = 2, .alone = 5 };
	struct gale_tenant_counts counts;
	struct gale_answer answer;
	uint64_t left;
	(void)state;

	open_nodes(0, /* quarantine_us= */ 1);
	for (int i = 0; i < 20; i++)
		is_told(ask(0, 0, 1), GALE_ALLOW, GALE_WHY_OWN);
	redis_server_do(&both.redis, "CLIENT PAUSE 5000");
	for (left = 0; (answer = ask(0, 0, 1)).verdict == GALE_ALLOW; left++)
		continue;
	assert_true(gale_why_is_outage(answer.why));
	assert_true(left < LIMIT);
	must(gale_tenant_set_terms(nodes[0].tenants[0], &terms) == GALE_ERR_OK);
	answer = ask(0, 0, 5);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_true(gale_why_is_outage(answer.why));
	assert_int_equal(ask(0, 0, 1).verdict, GALE_DENY);
	must(gale_tenant_stats(nodes[0].tenants[0], &counts) == GALE_ERR_OK);
	assert_int_equal(counts.alone, 5);
	close_nodes();
}

static struct gale_tenant_counts counts_of(struct gale_tenant *tenant)
{
	struct gale_tenant_counts counts;

	must(gale_tenant_stats(tenant, &counts) == GALE_ERR_OK);
	return counts;
}

/* FUND-12: what the server has lent goes back, though the hold has grown by units alone. */
static void a_hold_that_grows_alone_gives_back_what_was_lent(void **state)
{
	struct gale_terms terms = { .weight = 2, .alone = LIMIT };
	struct gale_tenant_counts before, after;
	struct gale_tenant_held held;
	struct gale_answer answer;
	(void)state;

	open_nodes(0, /* quarantine_us= */ 1);
	must(gale_tenant_set_terms(nodes[0].tenants[0], &terms) == GALE_ERR_OK);
	before = counts_of(nodes[0].tenants[0]);
	must(gale_tenant_hold(nodes[0].seat, nodes[0].tenants[0], 20, &held, WITHIN)
	         .verdict == GALE_ALLOW);
	redis_server_do(&both.redis, "CLIENT PAUSE 5000");
	answer = gale_tenant_grow(nodes[0].seat, &held,
	                          counts_of(nodes[0].tenants[0]).ahead + 1, WITHIN);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_true(gale_why_is_outage(answer.why));
	after = counts_of(nodes[0].tenants[0]);
	assert_int_equal(after.used, before.used + 20);
	must(gale_tenant_commit(nodes[0].seat, &held, 5) == GALE_ERR_OK);
	after = counts_of(nodes[0].tenants[0]);
	assert_int_equal(after.used, before.used);
	close_nodes();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_of_the_fleet),
		cmocka_unit_test(who_ends_gives_back),
		cmocka_unit_test(guarantees_of_the_fleet_are_told),
		cmocka_unit_test(nodes_that_disagree_are_told),
		cmocka_unit_test(a_pool_that_is_deleted_lets_other_settings_in),
		cmocka_unit_test(a_server_that_forgot_is_quiet),
		cmocka_unit_test(a_server_that_is_away_grants_nothing),
		cmocka_unit_test(a_hold_that_grows_alone_gives_back_what_was_lent),
	};
	int failed;

	lines_open(&lines);
	both_servers_start(&both);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	both_servers_stop(&both);
	return failed;
}
