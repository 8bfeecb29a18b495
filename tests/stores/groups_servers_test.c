/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * groups_servers_test.c -- thousands of guards of one process, each of a group of its own, beat at a
 * real Redis, and as many at a real PostgreSQL.
 *
 *     each    has its share, and goes on beating: no share ends
 *     all     of a server beat by the connections that one of them has, and many in a call
 *     memory  does not grow with beats
 *
 * The process has turns, and a clock that the test moves when a part of them has beaten.  Servers
 * have clocks of their own, by which a share ends after ten seconds without a beat.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/guard.h>

#include "tests/support/both_servers.h"
#include "tests/support/length.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define GROUPS LONG_OR_BRIEF(5000, 2000) /* at each server */
#define PARTS 20                         /* of them, which beat one after the other */
#define IN_A_PART (GROUPS / PARTS)
#define IDLE_MOST 1000
#define ROUNDS LONG_OR_BRIEF(10, 2) /* of beats, while memory must not grow */
#define CEILING 3
#define BEAT GALE_MILLIS(500)
#define LEASE (20 * BEAT)
#define ABORT (BEAT / 10)
#define ROUNDS_UNTIL_GRANTED 2
#define BYTES_MOST 10000 /* of a guard in a fleet */
#define BEATS_A_CALL 8   /* at least, as a mean */
#define START_US UINT64_C(1700000000000000)

static struct both_servers both;
static uint64_t bytes_taken; /* by all that is open */
static uint64_t clock_us = START_US;

static uint64_t now_us(struct gale_clock *self)
{
	(void)self;
	return clock_us;
}

static uint64_t boot_ns(struct gale_clock *self)
{
	(void)self;
	return (clock_us - START_US) * 1000 + 1;
}

static struct gale_clock test_clock = { now_us, boot_ns };

static void *take_bytes(struct gale_allocator *self, size_t bytes)
{
	(void)self;
	bytes_taken += bytes;
	return malloc(bytes);
}

static void give_bytes(struct gale_allocator *self, void *memory, size_t bytes)
{
	(void)self;
	bytes_taken -= bytes;
	free(memory);
}

static struct gale_allocator counting = { .alloc = take_bytes, .free = give_bytes };

static struct {
	struct gale_runtime *runtime;
	struct gale_seat *seat;
	struct gale_store *stores[BOTH];
	struct gale_guard *guards[BOTH][GROUPS];
} node;

static void open_node(void)
{
	struct gale_config config = {
		.shards = 1, .turns = true, .clock = &test_clock, .allocator = &counting
	};

	must(gale_runtime_open(&config, &node.runtime) == GALE_ERR_OK);
	must(gale_join(node.runtime, &node.seat) == GALE_ERR_OK);
	for (int which = 0; which < BOTH; which++) {
		struct gale_store_config store = { .url = both.urls[which] };

		must(gale_store_open(node.runtime, &store, &node.stores[which]) ==
		     GALE_ERR_OK);
	}
}

static void close_node(void)
{
	for (int which = 0; which < BOTH; which++) {
		for (int i = 0; i < GROUPS; i++)
			gale_guard_close(node.guards[which][i]);
		gale_store_close(node.stores[which]);
	}
	gale_leave(node.seat);
	gale_runtime_close(node.runtime);
	assert_int_equal(bytes_taken, 0);
}

static void open_guard(int which, int i)
{
	char name[32];
	struct gale_guard_config config = { .name = name,
		                            .law = GALE_FIXED,
		                            .ceiling = CEILING,
		                            .store = node.stores[which],
		                            .node = "one",
		                            .beat_us = BEAT,
		                            .lease_us = LEASE,
		                            .abort_us = ABORT };

	snprintf(name, sizeof(name), "backend %d.%d", which, i);
	must(gale_guard_open(node.runtime, &config, &node.guards[which][i]) ==
	     GALE_ERR_OK);
}

static struct gale_guard_counts counts_of(int which, int i)
{
	struct gale_guard_counts counts;

	must(gale_guard_stats(node.guards[which][i], &counts) == GALE_ERR_OK);
	return counts;
}

/* All that can be done now, or a moment later if it waits for a server.  False: nothing came. */
static bool turn(void)
{
	struct pollfd ready = { .fd = gale_turn_fd(node.runtime), .events = POLLIN };
	int come;

	if (gale_turn(node.runtime) > 0)
		return true;
	come = poll(&ready, 1, /* ms= */ 1);
	must(come >= 0);
	return come > 0;
}

/* A beat for which a server has no room comes a little later, by a clock that stands still while
 * anything comes. */
static void wait_for_beat(int which, int i, uint64_t before)
{
	int idle = 0;

	while (counts_of(which, i).beats == before) {
		idle = turn() ? 0 : idle + 1;
		if (idle < IDLE_MOST)
			continue;
		clock_us += BEAT / PARTS;
		idle = 0;
	}
}

/* One part of them after the other, each when the part before has beaten. */
static void open_others(void)
{
	for (int i = 1; i < GROUPS; i++) {
		for (int which = 0; which < BOTH; which++)
			open_guard(which, i);
		if ((i + 1) % IN_A_PART > 0)
			continue;
		for (int which = 0; which < BOTH; which++)
			for (int it = i + 1 - IN_A_PART; it <= i; it++)
				wait_for_beat(which, it, /* before= */ 0);
		clock_us += BEAT / PARTS;
	}
}

/* Those so far have beaten again, one part of them after the other, as they were opened. */
static void pass_a_beat(int count)
{
	static uint64_t before[BOTH][GROUPS];

	for (int which = 0; which < BOTH; which++)
		for (int i = 0; i < count; i++)
			before[which][i] = counts_of(which, i).beats;
	for (int i = 0; i < count; i++) {
		if (i % IN_A_PART == 0)
			clock_us += BEAT / PARTS;
		for (int which = 0; which < BOTH; which++)
			wait_for_beat(which, i, before[which][i]);
	}
}

/* A server that is new grants nothing before a lease has passed, by its clock and by ours. */
static void wait_until_servers_grant(void)
{
	uint64_t from_us = wall_us();

	while (wall_us() < from_us + LEASE + BEAT)
		nap(BEAT);
	clock_us += LEASE;
}

/* ---- What servers say ------------------------------------------------------------ */

static uint64_t clients_of_redis(void)
{
	static const char is[] = "connected_clients:";
	struct redis_talk talk;
	redisReply *info;
	uint64_t clients;

	redis_talk_open(&talk, &both.redis);
	info = redis_talk_say(&talk, "INFO clients");
	must(info->type == REDIS_REPLY_STRING && strstr(info->str, is));
	clients = strtoull(strstr(info->str, is) + strlen(is), NULL, 10);
	redis_reply_free(info);
	redis_talk_close(&talk);
	return clients - 1; /* this one */
}

static uint64_t clients_of_postgres(void)
{
	PGconn *connection = PQconnectdb(postgres_server_address(both.postgres));
	PGresult *result =
	    PQexec(connection, "SELECT count(*) FROM pg_stat_activity"
	                       " WHERE backend_type = 'client backend' AND pid <> "
	                       "pg_backend_pid()");
	uint64_t clients;

	must(PQresultStatus(result) == PGRES_TUPLES_OK);
	clients = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	PQfinish(connection);
	return clients;
}

/* ---- Tests ----------------------------------------------------------------------- */

static void each_admits_by_its_share(void)
{
	gale_tick(node.seat);
	for (int which = 0; which < BOTH; which++)
		for (int i = 0; i < GROUPS; i++) {
			struct gale_entry entry = gale_enter(
			    node.seat, node.guards[which][i], 1, GALE_NORMAL);

			assert_int_equal(entry.verdict, GALE_ALLOW);
			assert_int_equal(entry.limit, CEILING);
			gale_exit(node.seat, &entry, GALE_OK);
		}
}

static uint64_t since[BOTH][GROUPS]; /* ended so often by our leap */

static void count_shares_that_ended(void)
{
	for (int which = 0; which < BOTH; which++)
		for (int i = 0; i < GROUPS; i++)
			since[which][i] = counts_of(which, i).fences;
}

static void no_share_has_ended(void)
{
	for (int which = 0; which < BOTH; which++)
		for (int i = 0; i < GROUPS; i++) {
			struct gale_guard_counts counts = counts_of(which, i);

			assert_int_equal(counts.fences, since[which][i]);
			assert_int_equal(counts.share, CEILING);
			assert_int_equal(counts.in_flight, 0);
		}
}

static uint64_t beats_at_redis(void)
{
	uint64_t beats = 0;

	for (int i = 0; i < GROUPS; i++)
		beats += counts_of(0, i).beats;
	return beats;
}

static void thousands_of_groups_beat_at_two_servers(void **state)
{
	uint64_t before, bytes, clients[BOTH], calls, beats;

	(void)state;
	open_node();
	for (int which = 0; which < BOTH; which++)
		open_guard(which, 0);
	pass_a_beat(1);
	clients[0] = clients_of_redis();
	clients[1] = clients_of_postgres();
	before = bytes_taken;
	calls = redis_server_calls(&both.redis, "evalsha");
	open_others();
	pass_a_beat(GROUPS);
	wait_until_servers_grant();
	for (int round = 0; round < ROUNDS_UNTIL_GRANTED; round++)
		pass_a_beat(GROUPS);
	bytes = bytes_taken;
	count_shares_that_ended();
	for (int round = 0; round < ROUNDS; round++)
		pass_a_beat(GROUPS);
	print_message("%d guards, %" PRIu64 " bytes each\n", BOTH * GROUPS,
	              (bytes - before) / (BOTH * GROUPS));
	assert_true(bytes - before <= (uint64_t)BOTH * GROUPS * BYTES_MOST);
	assert_true(bytes_taken <= bytes);
	assert_int_equal(clients_of_redis(), clients[0]);
	assert_int_equal(clients_of_postgres(), clients[1]);
	beats = beats_at_redis();
	calls = redis_server_calls(&both.redis, "evalsha") - calls;
	print_message("%" PRIu64 " beats in %" PRIu64 " calls of Redis\n", beats,
	              calls);
	assert_true(calls * BEATS_A_CALL <= beats);
	each_admits_by_its_share();
	no_share_has_ended();
	close_node();
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
		cmocka_unit_test(thousands_of_groups_beat_at_two_servers),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
