/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * nudge_servers_test.c -- nodes are nudged by each store, and a nudge is a hint and no more.
 *
 * A beat takes three seconds: what happens long before is not for a beat that was due.  Each
 * test runs over a Redis, a PostgreSQL, and in memory; the last three over a cluster, a primary with
 * a sentinel, and a pool.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/guard.h>

#include "runtime/clock.h"
#include "stores/redis/wire.h"
#include "tests/support/both_servers.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/pool.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_sentinel.h"

#define STORES 3 /* Redis, PostgreSQL, memory */
#define REDIS 0
#define POSTGRES 1
#define CEILING 12
#define BEAT GALE_SECONDS(3)
#define LEASE GALE_SECONDS(9)
#define ABORT GALE_MILLIS(500)
#define TRIES_MOST 4
#define CALM_US                                                                        \
	(BEAT / 10 * 3) /* after beats that were early the next may be at once */
#define FORGED 2000

static struct both_servers both;
static unsigned groups; /* so far: each test has some of its own */

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_guard *guard;
};

static const char *url_of(int which)
{
	return which < BOTH ? both.urls[which] : "memory:nudges";
}

static struct gale_guard_config plan(void)
{
	return (struct gale_guard_config){ .law = GALE_FIXED,
		                           .ceiling = CEILING,
		                           .parts = GALE_BY_WEIGHT,
		                           .beat_us = BEAT,
		                           .lease_us = LEASE,
		                           .abort_us = ABORT };
}

static void open_node(struct node *node, const char *url,
                      struct gale_guard_config config)
{
	struct gale_store_config store = { .url = url };
	char name[32];

	snprintf(name, sizeof(name), "nudged %u", groups);
	config.name = name;
	must(gale_runtime_open(NULL, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	config.store = node->store;
	must(gale_guard_open(node->runtime, &config, &node->guard) == GALE_ERR_OK);
}

static void close_node(struct node *node)
{
	gale_guard_close(node->guard);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static struct gale_guard_counts counts_of(const struct node *node)
{
	struct gale_guard_counts counts;

	must(gale_guard_stats(node->guard, &counts) == GALE_ERR_OK);
	return counts;
}

static void await_share(const struct node *node, uint64_t share)
{
	while (counts_of(node).share != share)
		nap(GALE_MILLIS(1));
}

/* ---- What servers say ------------------------------------------------------------- */

static uint64_t published(void)
{
	return redis_server_calls(&both.redis, "publish");
}

static PGconn *listen_to_postgres(void)
{
	PGconn *conn = PQconnectdb(postgres_server_address(both.postgres));

	must(PQstatus(conn) == CONNECTION_OK);
	PQclear(PQexec(conn, "LISTEN gale"));
	return conn;
}

/* Since it was asked last. */
static uint64_t notified(PGconn *conn)
{
	uint64_t count = 0;
	PGnotify *said;

	PQclear(PQexec(conn, "SELECT 1")); /* what was said before comes first */
	for (; (said = PQnotifies(conn)); count++)
		PQfreemem(said);
	return count;
}

/* ---- Tests ------------------------------------------------------------------------ */

static uint64_t ramp_at_us(const char *url, struct node nodes[2])
{
	uint64_t began_ns;

	groups++;
	open_node(&nodes[0], url, plan());
	await_share(&nodes[0], CEILING);
	nap(CALM_US);
	began_ns = patience_now_ns();
	open_node(&nodes[1], url, plan());
	await_share(&nodes[1], CEILING / 2);
	return (patience_now_ns() - began_ns) / 1000;
}

static uint64_t ramp_us(int which, struct node nodes[2])
{
	return ramp_at_us(url_of(which), nodes);
}

static void a_joiner_has_its_part_long_before_a_beat(void **state)
{
	static const char *const names[STORES] = { "Redis", "PostgreSQL", "memory" };

	(void)state;
	for (int which = 0; which < STORES; which++) {
		uint64_t best_us = UINT64_MAX;

		for (int i = 0; i < TRIES_MOST && best_us >= BEAT / 10; i++) {
			struct node nodes[2];
			uint64_t took_us = ramp_us(which, nodes);

			print_message("%s: after %" PRIu64 " us, beats %" PRIu64
			              " and %" PRIu64 "\n",
			              names[which], took_us, counts_of(&nodes[0]).beats,
			              counts_of(&nodes[1]).beats);
			best_us = took_us < best_us ? took_us : best_us;
			close_node(&nodes[1]);
			close_node(&nodes[0]);
		}
		assert_true(best_us < BEAT / 2);
	}
}

/* GROUP-12: a message or two for a node that comes, and none where nothing changes. */
static void few_are_nudged_and_none_where_nothing_changes(void **state)
{
	PGconn *ear = listen_to_postgres();

	(void)state;
	for (int which = 0; which < BOTH; which++) {
		uint64_t calls = published(), beats, said;
		struct node nodes[2];

		(void)ramp_us(which, nodes);
		said = which == REDIS ? published() - calls : notified(ear);
		assert_in_range(said, 1, 4);
		beats = counts_of(&nodes[0]).beats + 2;
		calls = published();
		while (counts_of(&nodes[0]).beats < beats)
			nap(GALE_MILLIS(20));
		assert_int_equal(which == REDIS ? published() - calls : notified(ear),
		                 0);
		close_node(&nodes[1]);
		close_node(&nodes[0]);
	}
	PQfinish(ear);
}

static void forge_at_redis(const char *group)
{
	const double words[] = { GROUP_GIVE | GROUP_TAKE, 0, 1 };
	uint8_t channel[REDIS_CHANNEL_MAX], text[128];
	struct remote_bytes said[3] = {
		{ (const uint8_t *)"PUBLISH", 7 },
		{ channel,
		  redis_channel(channel, "gale:",
		                store_mark((const uint8_t *)group, strlen(group))) },
		{ text, 0 },
	};
	struct redis_talk talk;

	memcpy(text, words, sizeof(words));
	said[2].count = sizeof(words) + (size_t)snprintf((char *)text + sizeof(words),
	                                                 sizeof(text) - sizeof(words),
	                                                 "gale:{b00}group:%s", group);
	redis_talk_open(&talk, &both.redis);
	for (int i = 0; i < FORGED; i++)
		must(redis_put_words(&talk.text, said, 3));
	redis_talk_send(&talk);
	for (int i = 0; i < FORGED; i++)
		redis_reply_free(redis_talk_hear(&talk));
	redis_talk_do(&talk, "PUBLISH gale:nudges:00 nonsense");
	redis_talk_close(&talk);
}

/* Texts differ, or the server would say them once. */
static void forge_at_postgres(const char *group)
{
	char hex[64] = "", sql[256];

	for (size_t i = 0; group[i]; i++)
		sprintf(hex + 2 * i, "%02x", (uint8_t)group[i]);
	snprintf(sql, sizeof(sql),
	         "DO $$ BEGIN PERFORM pg_notify('gale', '%s 3 0 ' || i) "
	         "FROM generate_series(1, %d) i; END $$",
	         hex, FORGED);
	both_servers_run_sql(&both, sql);
	both_servers_run_sql(&both, "NOTIFY gale, 'nonsense'");
}

/* MEMBER-7: they cost a few beats, and the share until these are answered. */
static void forged_nudges_cost_a_few_beats(void **state)
{
	(void)state;
	for (int which = 0; which < BOTH; which++) {
		uint64_t beats, began_ns, most;
		struct node node;
		char name[32];

		groups++;
		snprintf(name, sizeof(name), "nudged %u", groups);
		open_node(&node, url_of(which), plan());
		await_share(&node, CEILING);
		nap(CALM_US);
		beats = counts_of(&node).beats;
		began_ns = patience_now_ns();
		if (which == REDIS)
			forge_at_redis(name);
		else
			forge_at_postgres(name);
		while (counts_of(&node).beats == beats) /* it has heard them */
			nap(GALE_MILLIS(1));
		nap(GALE_MILLIS(100));
		beats = counts_of(&node).beats - beats;
		most = 5 + (patience_now_ns() - began_ns) / (BEAT * 1000 / 10);
		assert_in_range(beats, 1, most + 1);
		await_share(&node, CEILING);
		close_node(&node);
	}
}

/* A user as docs/stores.md says, but for what nudges need. */
static void without_the_right_to_nudge_it_takes_beats(void **state)
{
	struct gale_guard_config config = plan();
	struct node nodes[2];
	char url[256];

	(void)state;
	groups++;
	redis_server_do(
	    &both.redis,
	    "ACL SETUSER deaf on >word ~gale:* +eval +evalsha +script|load "
	    "+info +time +get +set +setrange +del +mget +client|setname "
	    "+hget +hmget +hset +hdel +zadd +zcard +zrange +zrem +pexpireat");
	snprintf(url, sizeof(url), "redis://deaf:word@%s", both.redis.socket);
	config.beat_us = GALE_MILLIS(200);
	config.lease_us = GALE_SECONDS(2);
	open_node(&nodes[0], url, config);
	await_share(&nodes[0], CEILING);
	open_node(&nodes[1], url, config);
	await_share(&nodes[1], CEILING / 2);
	assert_int_equal(counts_of(&nodes[0]).beats_lost, 0);
	close_node(&nodes[1]);
	close_node(&nodes[0]);
}

/* The message goes round all servers, and each node hears it at its own. */
static void a_cluster_nudges(void **state)
{
	static struct redis_cluster cluster;
	uint64_t best_us = UINT64_MAX;
	char url[64];

	(void)state;
	redis_cluster_start(&cluster);
	snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%.7s", cluster.ports[0]);
	for (int i = 0; i < TRIES_MOST && best_us >= BEAT / 2; i++) {
		struct node nodes[2];
		uint64_t took_us = ramp_at_us(url, nodes);

		best_us = took_us < best_us ? took_us : best_us;
		close_node(&nodes[1]);
		close_node(&nodes[0]);
	}
	redis_cluster_stop(&cluster);
	assert_true(best_us < BEAT / 2);
}

/* Read first from the third: what it has taken the others gave up before. */
static void await_third_of(const struct node nodes[3])
{
	uint64_t taken;

	do {
		nap(GALE_MILLIS(1));
		taken = counts_of(&nodes[2]).share;
		assert_in_range(taken + counts_of(&nodes[0]).share +
		                    counts_of(&nodes[1]).share,
		                0, CEILING);
	} while (taken != CEILING / 3);
}

/* From just after a beat of the first, whose next one is due in a whole BEAT. */
static uint64_t third_joins_us(const char *url, struct node nodes[3])
{
	uint64_t beats = counts_of(&nodes[0]).beats, began_ns;

	while (counts_of(&nodes[0]).beats == beats)
		nap(GALE_MILLIS(1));
	began_ns = patience_now_ns();
	open_node(&nodes[2], url, plan());
	await_third_of(nodes);
	return (patience_now_ns() - began_ns) / 1000;
}

static void third_leaves(struct node nodes[3])
{
	close_node(&nodes[2]);
	await_share(&nodes[0], CEILING / 2);
	await_share(&nodes[1], CEILING / 2);
}

/* Nodes subscribe anew, at the server that took over.  Its first grant of more is after a quiet
 * lease, since it may have forgotten what the other one granted. */
static void after_a_fail_over_the_new_primary_nudges(void **state)
{
	static struct redis_sentinel servers;
	uint64_t best_us = UINT64_MAX;
	struct node nodes[3];
	char url[64];

	(void)state;
	redis_sentinel_start(&servers, 2);
	redis_server_settle(&servers.servers[0], "gale:");
	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/" SENTINEL_SERVICE,
	         servers.port);
	(void)ramp_at_us(url, nodes);
	redis_server_kill(&servers.servers[0]);
	open_node(&nodes[2], url, plan());
	await_third_of(nodes);
	for (int i = 0; i < TRIES_MOST && best_us >= BEAT / 2; i++) {
		uint64_t took_us;

		third_leaves(nodes);
		took_us = third_joins_us(url, nodes);
		best_us = took_us < best_us ? took_us : best_us;
	}
	for (int i = 2; i >= 0; i--)
		close_node(&nodes[i]);
	redis_sentinel_stop(&servers);
	assert_true(best_us < BEAT / 2);
}

/* No session of a pool in transaction pooling can LISTEN. */
static void behind_a_pool_it_takes_beats(void **state)
{
	struct gale_guard_config config = plan();
	struct pooler pool;
	struct node nodes[2];
	char folder[96], url[256];

	(void)state;
	groups++;
	postgres_server_ask(both.postgres, "SHOW unix_socket_directories", folder,
	                    sizeof(folder));
	pool_start(&pool, folder);
	snprintf(url, sizeof(url), "postgres:///postgres?host=%s&port=%d&user=gale",
	         folder, POOL_PORT);
	config.beat_us = GALE_MILLIS(200);
	config.lease_us = GALE_SECONDS(2);
	open_node(&nodes[0], url, config);
	await_share(&nodes[0], CEILING);
	open_node(&nodes[1], url, config);
	while (counts_of(&nodes[1]).share != CEILING / 2) {
		/* Read first: what one has taken the other gave up before. */
		uint64_t taken = counts_of(&nodes[1]).share;

		assert_true(counts_of(&nodes[0]).share + taken <= CEILING);
		nap(GALE_MILLIS(1));
	}
	/* A processor that stands still may lose one. */
	assert_in_range(counts_of(&nodes[0]).beats_lost, 0,
	                counts_of(&nodes[0]).beats / 4);
	close_node(&nodes[1]);
	close_node(&nodes[0]);
	pool_stop(&pool);
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
		cmocka_unit_test(a_joiner_has_its_part_long_before_a_beat),
		cmocka_unit_test(few_are_nudged_and_none_where_nothing_changes),
		cmocka_unit_test(forged_nudges_cost_a_few_beats),
		cmocka_unit_test(without_the_right_to_nudge_it_takes_beats),
		cmocka_unit_test(a_cluster_nudges),
		cmocka_unit_test(after_a_fail_over_the_new_primary_nudges),
		cmocka_unit_test(behind_a_pool_it_takes_beats),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
