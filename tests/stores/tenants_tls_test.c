/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants_tls_test.c -- a budget of two nodes, of which one asks the server by TLS.
 *
 *     node 0 --TLS--> Redis <--its socket-- node 1
 *
 * The window is of a day, so that it does not turn meanwhile.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include <gale/tenants.h>

#include "tests/support/must.h"
#include "tests/support/secure_server.h"

#define NODES 2
#define LIMIT 900
#define ALONE 5
#define WITHIN GALE_SECONDS(10)

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	struct gale_seat *seat;
};

static struct certificates c;
static struct secure_server server;
static struct node nodes[NODES];
static uint64_t used;

static void open_node(struct node *node, const char *url)
{
	struct gale_config config = { .shards = 1 };
	struct gale_store_config store = { .url = url, .quarantine_us = 1 };
	struct gale_budget_config budget = { .name = "b",
		                             .limit = LIMIT,
		                             .window_us = GALE_DAYS(1),
		                             .patience_us = WITHIN };
	struct gale_terms terms = { .weight = 1, .name = "t", .alone = ALONE };

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	budget.store = node->store;
	must(gale_budget_open(node->runtime, &budget, &node->budget) == GALE_ERR_OK);
	must(gale_tenant_open(node->budget, &terms, &node->tenant) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_tenant_close(node->tenant);
	gale_budget_close(node->budget);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static struct gale_answer ask(struct node *node)
{
	struct gale_answer answer =
	    gale_tenant_wait(node->seat, node->tenant, 1, WITHIN);

	used += answer.verdict == GALE_ALLOW && !gale_why_is_outage(answer.why);
	return answer;
}

static bool is_granted(void *node)
{
	struct gale_answer answer = ask(node);

	return answer.verdict == GALE_ALLOW && !gale_why_is_outage(answer.why);
}

static void show(const struct certificate *certificate)
{
	char command[512];

	snprintf(command, sizeof(command),
	         "CONFIG SET tls-cert-file %s tls-key-file %s", certificate->cert,
	         certificate->key);
	redis_server_do(&server.is, command);
}

static void open_nodes(void)
{
	char secure[256], plain[128];

	snprintf(secure, sizeof(secure), "rediss://127.0.0.1:%s?ca=%s", server.port,
	         c.ca.cert);
	snprintf(plain, sizeof(plain), "redis://%s", server.is.socket);
	open_node(&nodes[0], secure);
	open_node(&nodes[1], plain);
	for (int i = 0; i < NODES; i++)
		must(becomes_true(is_granted, &nodes[i]));
}

/* Once what it has in hand is used.  FUND-8 */
static void spend_what_is_left_alone(struct node *node)
{
	struct gale_tenant_counts counts;
	int alone = 0;

	for (;;) {
		struct gale_answer answer = ask(node);

		if (answer.verdict != GALE_ALLOW) {
			assert_true(gale_why_is_outage(answer.why));
			break;
		}
		alone += gale_why_is_outage(answer.why);
	}
	assert_int_equal(alone, ALONE);
	must(gale_tenant_stats(node->tenant, &counts) == GALE_ERR_OK);
	assert_int_equal(counts.alone, ALONE);
}

/* A node that finds an expired certificate has what it was lent, and what it may admit alone.  When the
 * certificate is good, the rest of the budget is there, to the last unit.  (T1) */
static void a_node_that_is_kept_out_loses_nothing(void **state)
{
	(void)state;
	open_nodes();
	show(&c.expired);
	redis_server_do(&server.is, "CLIENT KILL TYPE normal");
	spend_what_is_left_alone(&nodes[0]);
	must(becomes_true(is_granted, &nodes[1])); /* by a new connection */
	assert_true(used < LIMIT);

	show(&c.good);
	must(becomes_true(is_granted, &nodes[0]));
	for (int i = 0; i < NODES; i++)
		while (ask(&nodes[i]).verdict == GALE_ALLOW)
			continue;
	assert_int_equal(used, LIMIT);
	for (int i = 0; i < NODES; i++)
		close_node(&nodes[i]);
}

static int start_server(void **state)
{
	(void)state;
	certificates_make(&c);
	secure_server_start(&server, &c.good, &c.ca, "no");
	redis_server_settle(&server.is, "gale:");
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	secure_server_stop(&server);
	certificates_drop(&c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_is_kept_out_loses_nothing),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
