/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * beat_servers_test.c -- nodes beat by clients of their own at each store.
 *
 * The same is done in memory, at a Redis and at a PostgreSQL: nodes come to share a ceiling; one
 * that the store may have forgotten keeps what it has, and others wait; names are of any bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/memory.h"
#include "runtime/role.h"
#include "runtime/wake.h"
#include "stores/memory.h"
#include "stores/postgres/link.h"
#include "stores/redis/kind.h"
#include "stores/server.h"
#include "tests/support/both_servers.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define STORES 3 /* Redis, PostgreSQL, memory */
#define MEMORY 2
#define CEILING 10
#define LEASE_US UINT64_C(700000)
#define PATIENCE_NS UINT64_C(30000000000)
#define SLEEP_NS UINT64_C(50000000)
#define TURNS_MOST 400
#define TRIES_MOST 20
#define TOGETHER 8

static struct both_servers both;
static unsigned groups; /* so far: each test has one of its own */

struct node {
	struct store_home home;
	struct boot_clock clock;
	struct store *store;
	struct store_client client;
	struct store_op op;
	struct store_call call;
	struct store_beat beat;
	uint64_t sent_ns; /* the latest beat that was granted */
	uint64_t number;  /* that it heard then, and waits for a lease to prove */
	uint64_t number_ns;
	char name[64];
	uint8_t group[STORE_KEY_MAX];
};

/* ---- Nodes ----------------------------------------------------------------------- */

static struct store *open_store(int which)
{
	struct server_config config = { .allocator = memory_default(), .seed = 7 };
	struct memory_config memory = { .name = "beats",
		                        .max_keys = 100,
		                        .allocator = memory_default() };
	struct url_fault fault;
	struct store *store;

	if (which == MEMORY)
		return memory_open(&memory);
	config.kind = which == 0
	                  ? redis_kind(memory_default(), both.urls[0], &fault)
	                  : postgres_kind(memory_default(), both.urls[1], &fault);
	must(config.kind);
	store = server_open(&config);
	must(store);
	return store;
}

static struct group_settings settings(void)
{
	return (struct group_settings){
		.law = GROUP_FIXED,
		.parts = GROUP_EQUAL,
		.start = 1,
		.floor = 1,
		.ceiling = CEILING,
		.lease_us = LEASE_US,
		.rotate_us = GALE_SECONDS(1),
	};
}

static void open_node(struct node *node, int which, const char *name)
{
	*node = (struct node){ 0 };
	snprintf(node->name, sizeof(node->name), "%s", name);
	boot_clock_init(&node->clock);
	list_init(&node->home.done);
	node->home.clock = &node->clock.clock;
	node->home.watch.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	node->store = open_store(which);
	must(store_enter(node->store, &node->home, &node->client));
	node->op.verb = STORE_BEAT;
	node->op.key = node->group;
	node->op.beat = &node->beat;
	node->op.key_len = (uint32_t)snprintf((char *)node->group, sizeof(node->group),
	                                      "group %u", groups);
	node->beat = (struct store_beat){
		.node = (const uint8_t *)node->name,
		.node_len = (uint32_t)strlen(name),
		.settings = settings(),
		.report = { .incarnation = 1 + strlen(name), .weight = 1 },
	};
}

static void close_node(struct node *node)
{
	store_leave(&node->client);
	node->store->ops->close(node->store);
	close(node->home.watch.epoll_fd);
}

static mono now(const struct node *node)
{
	return clock_now(node->home.clock);
}

static void begin(struct node *node, uint64_t patience_ns)
{
	node->beat.report.seq++;
	node->call = (struct store_call){ .op = &node->op,
		                          .due = mono_after(now(node), patience_ns) };
	if (node->store->ops->begin)
		node->store->ops->begin(&node->client, &node->call);
	else
		store_finish(&node->home, &node->call,
		             store_run(node->store, &node->op, /* patient= */ true));
}

static enum store_result end(struct node *node)
{
	struct store_call *call;

	while (!(call = store_take(&node->home))) {
		(void)node->store->ops->turn(&node->client, now(node));
		call = store_take(&node->home);
		if (call)
			break;
		wake_wait_on(node->home.watch.epoll_fd, NULL,
		             patience_now_ns() + SLEEP_NS);
	}
	must(call == &node->call);
	return call->result;
}

/* What it is granted is in force at once, and all of it is in flight. */
static void hear(struct node *node)
{
	const struct group_grant *grant = &node->beat.grant;
	struct group_report *report = &node->beat.report;

	assert_int_equal(grant->result, GROUP_GRANTED);
	report->epoch = grant->epoch;
	report->generation = grant->generation;
	report->held = report->in_flight = grant->share;
}

/* One number after the other: so it takes up to two leases until one is proven. */
static void note_number(struct node *node)
{
	const struct group_grant *grant = &node->beat.grant;
	struct group_report *report = &node->beat.report;
	uint64_t now_ns = patience_now_ns();

	if (report->life != grant->life)
		report->over = node->number_ns = 0;
	else if (now_ns < node->number_ns + LEASE_US * 1000)
		return;
	if (node->number_ns > 0)
		report->over = node->number;
	report->life = grant->life;
	node->number = grant->beat;
	node->number_ns = now_ns;
}

/* It fences itself when the store may have given its share to others. */
static uint64_t share(struct node *node)
{
	if (patience_now_ns() >= node->sent_ns + LEASE_US * 1000)
		node->beat.report.held = node->beat.report.in_flight = 0;
	return node->beat.report.held;
}

/* On a machine that stands still an answer is late; the next one is not. */
static enum store_result ask(struct node *node)
{
	enum store_result result = STORE_LATE;

	for (int i = 0; i < TRIES_MOST && result != STORE_DONE; i++) {
		if (i > 0)
			nap(GALE_MILLIS(100));
		begin(node, PATIENCE_NS);
		result = end(node);
	}
	return result;
}

static enum store_result beat(struct node *node)
{
	uint64_t sent_ns = patience_now_ns();
	enum store_result result;

	(void)share(node);
	result = ask(node);
	if (result == STORE_DONE) {
		hear(node);
		note_number(node);
		node->sent_ns = sent_ns;
	}
	return result;
}

/* Until they have so much; together never more than the ceiling. */
static void beat_until(struct node *a, struct node *b, uint64_t a_has, uint64_t b_has)
{
	for (int i = 0; i < TURNS_MOST && (share(a) != a_has || share(b) != b_has);
	     i++) {
		assert_int_equal(beat(a), STORE_DONE);
		assert_in_range(share(a) + share(b), 0, CEILING);
		assert_int_equal(beat(b), STORE_DONE);
		assert_in_range(share(a) + share(b), 0, CEILING);
		nap(GALE_MILLIS(5));
	}
	assert_int_equal(share(a), a_has);
	assert_int_equal(share(b), b_has);
}

/* ---- Tests ----------------------------------------------------------------------- */

static void nodes_share_a_ceiling(void **state)
{
	(void)state;
	for (int which = 0; which < STORES; which++) {
		struct node a, b;

		groups++;
		open_node(&a, which, "a");
		open_node(&b, which, "bb");
		for (int i = 0; i < TURNS_MOST && share(&a) < CEILING; i++) {
			assert_int_equal(beat(&a), STORE_DONE);
			nap(GALE_MILLIS(5));
		}
		assert_int_equal(share(&a), CEILING);
		assert_int_equal(beat(&b), STORE_DONE);
		assert_int_equal(share(&b), 0); /* H1 */
		assert_int_equal(b.beat.grant.target, CEILING / 2);
		beat_until(&a, &b, CEILING / 2, CEILING / 2);
		close_node(&a);
		for (int i = 0; i < TURNS_MOST && share(&b) < CEILING; i++) {
			assert_int_equal(beat(&b), STORE_DONE);
			nap(GALE_MILLIS(5));
		}
		assert_int_equal(share(&b), CEILING); /* H8 */
		close_node(&b);
	}
}

static void servers_forget(int which)
{
	if (which == 0)
		redis_server_do(&both.redis, "FLUSHALL");
	else
		both_servers_run_sql(&both, "TRUNCATE gale.groups");
}

/* L12 */
static void
who_has_a_share_keeps_it_while_others_wait_for_a_server_that_forgot(void **state)
{
	(void)state;
	for (int which = 0; which < MEMORY; which++) {
		struct node a, b;
		uint64_t epoch;

		groups++;
		open_node(&a, which, "a");
		open_node(&b, which, "bb");
		beat_until(&a, &b, CEILING / 2, CEILING / 2);
		epoch = a.beat.grant.epoch;
		servers_forget(which);
		assert_int_equal(beat(&a), STORE_DONE);
		assert_true(a.beat.grant.epoch > epoch);
		assert_int_equal(share(&a), CEILING / 2);
		assert_in_range(a.beat.grant.next, 1, a.beat.grant.beat);
		close_node(&b);
		open_node(&b, which, "another");
		assert_int_equal(beat(&b), STORE_DONE);
		assert_int_equal(share(&b), 0);
		beat_until(&a, &b, CEILING / 2, CEILING / 2);
		close_node(&a);
		close_node(&b);
	}
}

/* Its own member has other settings, and nobody else is there. */
static void a_lone_node_that_starts_again_with_other_settings_has_a_share(void **state)
{
	(void)state;
	for (int which = 0; which < STORES; which++) {
		struct node node;

		groups++;
		open_node(&node, which, "a");
		assert_int_equal(beat(&node), STORE_DONE);
		node.beat.settings.ceiling = CEILING / 2;
		node.beat.report =
		    (struct group_report){ .incarnation = 99, .weight = 1 };
		node.number_ns = 0;
		assert_int_equal(ask(&node), STORE_DONE);
		assert_int_equal(node.beat.grant.result, GROUP_DISAGREES);
		for (int i = 0;
		     i < TURNS_MOST && node.beat.grant.result == GROUP_DISAGREES; i++) {
			note_number(&node);
			nap(GALE_MILLIS(5));
			assert_int_equal(ask(&node), STORE_DONE);
		}
		assert_int_equal(node.beat.grant.result, GROUP_GRANTED);
		assert_int_equal(node.beat.grant.limit, CEILING / 2);
		close_node(&node);
	}
}

static void names_are_of_any_bytes(void **state)
{
	static const char odd[][4] = {
		"a b", "a:b", "{x}", "}\n{", "'\"$", "\xff\xfe"
	};
	uint8_t longest[STORE_NODE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = (uint8_t)(i % 7);
	for (int which = 0; which < STORES; which++) {
		struct node node;

		groups++;
		open_node(&node, which, "");
		node.beat.settings.lease_us = GALE_MINUTES(5);
		memcpy(node.group + node.op.key_len, ":{\0\n}", 5);
		node.op.key_len += 5;
		for (size_t i = 0; i <= sizeof(odd) / sizeof(odd[0]); i++) {
			bool is_last = i == sizeof(odd) / sizeof(odd[0]);

			node.beat.node = is_last ? longest : (const uint8_t *)odd[i];
			node.beat.node_len = is_last ? STORE_NODE_MAX : 3;
			node.beat.report =
			    (struct group_report){ .incarnation = 1 + i, .weight = 1 };
			assert_int_equal(beat(&node), STORE_DONE);
			assert_int_equal(node.beat.grant.members, 1 + i);
		}
		close_node(&node);
	}
}

/* A step of the key of that very name does not meet the group. */
static void groups_are_apart_from_keys(void **state)
{
	struct gale_rule config = gale_fixed_window(3, GALE_HOURS(1));
	struct rule rule;

	(void)state;
	must(rule_compile(&config, &rule) == GALE_ERR_OK);
	for (int which = 0; which < STORES; which++) {
		struct node node;

		groups++;
		open_node(&node, which, "a");
		node.beat.settings.lease_us = GALE_MINUTES(5);
		assert_int_equal(beat(&node), STORE_DONE);
		node.op.verb = STORE_STEP;
		node.op.rule = &rule;
		node.op.cost = 1;
		assert_int_equal(ask(&node),
		                 which == MEMORY ? STORE_DONE : STORE_QUARANTINE);
		node.op.verb = STORE_BEAT;
		assert_int_equal(beat(&node), STORE_DONE);
		assert_int_equal(node.beat.grant.members, 1);
		close_node(&node);
	}
}

static void settings_that_disagree_and_reports_that_are_none_are_said(void **state)
{
	(void)state;
	for (int which = 0; which < STORES; which++) {
		struct node a, b;

		groups++;
		open_node(&a, which, "a");
		open_node(&b, which, "b");
		a.beat.settings.lease_us = b.beat.settings.lease_us = GALE_MINUTES(5);
		assert_int_equal(beat(&a), STORE_DONE);
		b.beat.settings.ceiling++;
		assert_int_equal(ask(&b), STORE_DONE);
		assert_int_equal(b.beat.grant.result, GROUP_DISAGREES);
		b.beat.settings.floor = 0;
		assert_int_equal(ask(&b), STORE_DONE);
		assert_int_equal(b.beat.grant.result, GROUP_WRONG);
		b.beat = a.beat;
		b.beat.report.incarnation++;
		assert_int_equal(ask(&b), STORE_DONE);
		assert_int_equal(b.beat.grant.result, GROUP_NAMESAKE);
		assert_int_equal(b.beat.grant.next, a.beat.grant.beat);
		close_node(&a);
		close_node(&b);
	}
}

/* Sixty-four go in a call, at most; and some alone, while a call of others is under way. */
static void many_groups_beat_at_once(void **state)
{
	enum { MANY = 100 };
	static struct store_op ops[MANY];
	static struct store_call calls[MANY];
	static struct store_beat beats[MANY];
	static char names[MANY][32];

	(void)state;
	for (int which = 0; which < MEMORY; which++) {
		struct node node;
		uint64_t done_before;

		groups++;
		open_node(&node, which, "a");
		assert_int_equal(beat(&node), STORE_DONE);
		done_before = redis_server_calls(&both.redis, "evalsha");
		for (int i = 0; i < MANY; i++) {
			beats[i] = node.beat;
			ops[i] = (struct store_op){ .verb = STORE_BEAT,
				                    .key = (uint8_t *)names[i],
				                    .beat = &beats[i] };
			ops[i].key_len = (uint32_t)snprintf(names[i], sizeof(names[i]),
			                                    "many %u %d", groups, i);
			calls[i] = (struct store_call){ .op = &ops[i],
				                        .due = mono_after(
							    now(&node), PATIENCE_NS) };
			node.store->ops->begin(&node.client, &calls[i]);
		}
		for (int done = 0; done < MANY;) {
			struct store_call *call = store_take(&node.home);

			if (!call) {
				(void)node.store->ops->turn(&node.client, now(&node));
				continue;
			}
			assert_ptr_equal(call, &calls[done++]);
			assert_int_equal(call->result, STORE_DONE);
			assert_int_equal(call->op->beat->grant.members, 1);
		}
		if (which == 0)
			assert_in_range(redis_server_calls(&both.redis, "evalsha") -
			                    done_before,
			                2, 4);
		close_node(&node);
	}
}

/* Beats of groups, or steps of keys, that go in one call. */
struct together {
	struct node node;
	struct store_op ops[TOGETHER];
	struct store_call calls[TOGETHER];
	struct store_beat beats[TOGETHER];
	char names[TOGETHER][32];
};

/* rule: NULL: they are of groups. */
static void open_together(struct together *t, const struct rule *rule)
{
	groups++;
	open_node(&t->node, 1, "a");
	for (int i = 0; i < TOGETHER; i++) {
		t->beats[i] = t->node.beat;
		t->ops[i] = (struct store_op){ .verb = rule ? STORE_STEP : STORE_BEAT,
			                       .key = (uint8_t *)t->names[i],
			                       .beat = &t->beats[i],
			                       .rule = rule,
			                       .cost = 1 };
		t->ops[i].key_len = (uint32_t)snprintf(t->names[i], sizeof(t->names[i]),
		                                       "locked %u %d", groups, i);
	}
}

static void begin_together(struct together *t, int but)
{
	for (int i = 0; i < TOGETHER; i++) {
		if (i == but)
			continue;
		t->beats[i].report.seq++;
		t->calls[i] = (struct store_call){
			.op = &t->ops[i], .due = mono_after(now(&t->node), PATIENCE_NS)
		};
		t->node.store->ops->begin(&t->node.client, &t->calls[i]);
	}
}

/* So many of them, but for one, which is not answered yet.  False: one came to nothing. */
static bool end_together(struct together *t, int count, int but)
{
	bool all = true;

	for (int done = 0; done < count;) {
		struct store_call *call = store_take(&t->node.home);

		if (!call) {
			(void)t->node.store->ops->turn(&t->node.client, now(&t->node));
			continue;
		}
		assert_true(but < 0 || call != &t->calls[but]);
		all &= call->result == STORE_DONE;
		done++;
	}
	return all;
}

/* By a transaction that takes its time. */
static void one_that_is_locked_holds_up_no_other(struct together *t, const char *from)
{
	enum { LOCKED = 3 };
	PGconn *conn;
	PGresult *result;
	char sql[128];

	do
		begin_together(t, -1);
	while (!end_together(t, TOGETHER, -1)); /* it was in quarantine */
	conn = PQconnectdb(postgres_server_address(both.postgres));
	PQclear(PQexec(conn, "BEGIN"));
	snprintf(sql, sizeof(sql), "SELECT FROM gale.%s = '%s' FOR UPDATE", from,
	         t->names[LOCKED]);
	result = PQexec(conn, sql);
	must(PQntuples(result) == 1);
	PQclear(result);
	begin_together(t, -1);
	assert_true(end_together(t, TOGETHER - 1, LOCKED));
	begin_together(t, LOCKED);
	assert_true(end_together(t, TOGETHER - 1, LOCKED));
	PQclear(PQexec(conn, "ROLLBACK"));
	PQfinish(conn);
	assert_true(end_together(t, 1, -1));
	close_node(&t->node);
}

static void a_group_that_is_locked_holds_up_no_other(void **state)
{
	static struct together t;

	(void)state;
	open_together(&t, NULL);
	one_that_is_locked_holds_up_no_other(&t, "groups WHERE name");
}

static void a_key_that_is_locked_holds_up_no_other(void **state)
{
	static struct together t;
	struct gale_rule config = gale_gcra(1000, GALE_SECONDS(1), 1000);
	struct rule rule;

	(void)state;
	must(rule_compile(&config, &rule) == GALE_ERR_OK);
	open_together(&t, &rule);
	one_that_is_locked_holds_up_no_other(&t, "keys WHERE key");
}

/* Nobody knows whether it was done: the next one is no repetition. */
static void a_beat_that_is_not_answered_is_late(void **state)
{
	struct node node;

	(void)state;
	groups++;
	open_node(&node, 0, "a");
	assert_int_equal(beat(&node), STORE_DONE);
	redis_server_pause(&both.redis);
	begin(&node, UINT64_C(20000000));
	assert_int_equal(end(&node), STORE_LATE);
	redis_server_go_on(&both.redis);
	while (beat(&node) != STORE_DONE)
		nap(GALE_MILLIS(10));
	assert_int_equal(node.beat.grant.result, GROUP_GRANTED);
	close_node(&node);
}

/* Until it takes them again, no node hears of a share. */
static void a_server_that_refuses_beats_grants_nothing(void **state)
{
	static const char *const refuses[] = { "CONFIG SET maxmemory 1",
		                               "REPLICAOF 127.0.0.1 1" };
	static const char *const takes[] = { "CONFIG SET maxmemory 0",
		                             "REPLICAOF NO ONE" };
	struct node node;

	(void)state;
	groups++;
	open_node(&node, 0, "a");
	assert_int_equal(beat(&node), STORE_DONE);
	for (int i = 0; i < 2; i++) {
		redis_server_do(&both.redis, refuses[i]);
		for (int tries = 0; tries < 3; tries++)
			assert_int_equal(beat(&node), STORE_DOWN);
		redis_server_do(&both.redis, takes[i]);
		while (beat(&node) != STORE_DONE)
			nap(GALE_MILLIS(10));
		assert_int_equal(node.beat.grant.result, GROUP_GRANTED);
	}
	close_node(&node);
}

/* A server that was started again knows no script. */
static void a_script_that_is_gone_is_sent_again(void **state)
{
	struct node node;

	(void)state;
	groups++;
	open_node(&node, 0, "a");
	assert_int_equal(beat(&node), STORE_DONE);
	redis_server_do(&both.redis, "SCRIPT FLUSH");
	assert_int_equal(beat(&node), STORE_DONE);
	assert_int_equal(node.beat.grant.result, GROUP_GRANTED);
	close_node(&node);
}

/* What docs/stores.md writes down of Redis' users. */
static void rights_that_are_written_down_suffice(void **state)
{
	struct node node;
	char before[sizeof(both.urls[0])];

	(void)state;
	groups++;
	redis_server_do(
	    &both.redis,
	    "ACL SETUSER least on >word ~gale:* +eval +evalsha +script|load "
	    "+info +time +get +set +setrange +del +mget +client|setname "
	    "+hget +hmget +hset +hdel +zadd +zcard +zrange +zrem "
	    "+pexpireat");
	memcpy(before, both.urls[0], sizeof(before));
	snprintf(both.urls[0], sizeof(both.urls[0]), "redis://least:word@%s",
	         both.redis.socket);
	open_node(&node, 0, "a");
	node.beat.settings.law = GROUP_MEDIAN;
	node.beat.report.estimate = 7;
	assert_int_equal(beat(&node), STORE_DONE);
	node.beat.report.estimate = 0;
	assert_int_equal(beat(&node), STORE_DONE);
	node.beat.report.leaves = 1;
	node.beat.report.in_flight = node.beat.report.held = 0;
	assert_int_equal(ask(&node), STORE_DONE);
	assert_int_equal(node.beat.grant.result, GROUP_GONE);
	close_node(&node);
	memcpy(both.urls[0], before, sizeof(before));
}

/* ---- All ------------------------------------------------------------------------- */

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
		cmocka_unit_test(nodes_share_a_ceiling),
		cmocka_unit_test(
		    who_has_a_share_keeps_it_while_others_wait_for_a_server_that_forgot),
		cmocka_unit_test(
		    a_lone_node_that_starts_again_with_other_settings_has_a_share),
		cmocka_unit_test(names_are_of_any_bytes),
		cmocka_unit_test(groups_are_apart_from_keys),
		cmocka_unit_test(
		    settings_that_disagree_and_reports_that_are_none_are_said),
		cmocka_unit_test(many_groups_beat_at_once),
		cmocka_unit_test(a_group_that_is_locked_holds_up_no_other),
		cmocka_unit_test(a_key_that_is_locked_holds_up_no_other),
		cmocka_unit_test(a_beat_that_is_not_answered_is_late),
		cmocka_unit_test(a_server_that_refuses_beats_grants_nothing),
		cmocka_unit_test(a_script_that_is_gone_is_sent_again),
		cmocka_unit_test(rights_that_are_written_down_suffice),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
