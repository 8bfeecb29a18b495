/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_replaced_test.c -- one ceiling for a fleet whose server is replaced by its replica, or
 * whose server's clock is set.  (H1)
 *
 *     in flight at the backend, as it counts it  <=  the ceiling, at each instant
 *
 * Each test runs with Redis and PostgreSQL at once, each with servers of its own.  The first
 * node has long calls, which end only because the backend keeps the abort time.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/fake_time.h"
#include "tests/support/guard_scene.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/port.h"
#include "tests/support/postgres_server.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"

#define LIMIT GUARD_SCENE_LIMIT
#define LEASE GUARD_SCENE_LEASE
#define LONG_US (10 * LEASE)

static void open_scene(struct guard_scene *scene, const char *guard, const char *url,
                       void (*looks)(void))
{
	guard_scene_open(scene, guard, url, GUARD_SCENE_BACKEND_ABORT);
	scene->looks = looks;
	atomic_store(&scene->nodes[0].takes_us, LONG_US);
	guard_scene_start_all(scene);
	guard_scene_await_in_flight(scene, 0, 0, 1);
	guard_scene_await_in_flight(scene, 0, 2, LIMIT);
}

static void close_scene(struct guard_scene *scene)
{
	guard_scene_held(scene);
	guard_scene_close(scene);
}

/* ---- A replica takes over -------------------------------------------------------- */

/* The replica lags when the primary and a node die: what it knows of that node is old. */
static void lose_primary(struct guard_scene *scene, struct proxy *replication,
                         void (*replace)(void))
{
	proxy_be_silent(replication, true);
	guard_scene_watch(scene, LEASE / 2);
	guard_scene_kill(scene, 0);
	replace();
	guard_scene_await_in_flight(scene, 1, 2, LIMIT);
	guard_scene_start(scene, 0, "one", NULL);
	guard_scene_await_in_flight(scene, 0, 0, 1);
}

static struct {
	struct redis_server primary;
	struct redis_server replica;
	char name[80]; /* of a link to the socket of one of them */
} redis;

static void point_name_at(const struct redis_server *server)
{
	char fresh[96];

	snprintf(fresh, sizeof(fresh), "%s.new", redis.name);
	must(symlink(server->socket, fresh) == 0);
	must(rename(fresh, redis.name) == 0);
}

static void replace_redis(void)
{
	redis_server_kill(&redis.primary);
	redis_server_do(&redis.replica, "REPLICAOF NO ONE");
	point_name_at(&redis.replica);
}

static void await_replica(void)
{
	struct redis_talk talk;
	bool linked = false;

	redis_talk_open(&talk, &redis.replica);
	while (!linked) {
		redisReply *info = redis_talk_say(&talk, "INFO replication");

		linked = strstr(info->str, "master_link_status:up") != NULL;
		redis_reply_free(info);
		nap(1000);
	}
	redis_talk_close(&talk);
}

static void run_replaced_redis(void)
{
	char port[8], url[160];
	const char *const options[] = { "--repl-ping-replica-period", "1", NULL };
	const char *const follows[] = { "--replicaof", "127.0.0.1", port, NULL };
	struct guard_scene scene;
	struct proxy replication;

	redis_server_start(&redis.primary, options);
	redis_server_settle(&redis.primary, "gale:");
	proxy_open(&replication, redis.primary.socket);
	snprintf(port, sizeof(port), "%u", replication.port);
	redis_server_start(&redis.replica, follows);
	await_replica();
	snprintf(redis.name, sizeof(redis.name), "%s-now", redis.primary.folder);
	point_name_at(&redis.primary);
	snprintf(url, sizeof(url), "redis://%s", redis.name);

	open_scene(&scene, "replaced", url, NULL);
	lose_primary(&scene, &replication, replace_redis);
	close_scene(&scene);

	unlink(redis.name);
	proxy_close(&replication);
	redis_server_stop(&redis.replica);
	redis_server_stop(&redis.primary);
}

static struct {
	struct postgres_server *primary;
	struct postgres_server *standby;
} postgres;

static void replace_postgres(void)
{
	postgres_server_kill(postgres.primary);
	postgres_server_promote(postgres.standby);
}

static void run_replaced_postgres(void)
{
	char url[160], folder[64], socket[96];
	struct guard_scene scene;
	struct proxy replication;
	uint16_t port, standby_port;

	postgres.primary = postgres_server_start();
	port = postgres_server_listen(postgres.primary);
	must(sscanf(postgres_server_address(postgres.primary), "host=%63s", folder) ==
	     1);
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.%u", folder, port);
	proxy_open(&replication, socket);
	postgres.standby = postgres_server_follow(replication.port, &standby_port);
	snprintf(url, sizeof(url), "postgres://gale@127.0.0.1:%u,127.0.0.1:%u/postgres",
	         port, standby_port);

	open_scene(&scene, "replaced", url, NULL);
	postgres_server_catch_up(postgres.standby, postgres.primary);
	lose_primary(&scene, &replication, replace_postgres);
	close_scene(&scene);

	proxy_close(&replication);
	postgres_server_stop(postgres.standby);
	postgres_server_stop(postgres.primary);
}

static void run_replaced(int which)
{
	if (which == 0)
		run_replaced_redis();
	else
		run_replaced_postgres();
}

static void a_replica_that_lags_takes_over(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_replaced);
}

/* ---- A clock is set -------------------------------------------------------------- */

static struct {
	struct fake_time time;
	int64_t ahead_us;
} server_clock;

/* It runs, and is set by a step. */
static void move_clock(void)
{
	fake_time_set(&server_clock.time,
	              (uint64_t)((int64_t)wall_us() + server_clock.ahead_us));
}

static void set_clock(struct guard_scene *scene, int64_t step_us)
{
	server_clock.ahead_us += step_us;
	move_clock();
	guard_scene_watch(scene, 2 * LEASE);
	guard_scene_await_in_flight(scene, 0, 2, LIMIT);
}

/* The node's calls go on until its fence, and by the server's clock its lease is over before. */
static void set_clock_and_cut_off(struct guard_scene *scene, struct proxy *proxy,
                                  int64_t step_us)
{
	proxy_be_silent(proxy, true);
	set_clock(scene, step_us);
	guard_scene_await_refused(scene, 0, GALE_WHY_CUT_OFF, 1);
	guard_scene_await_in_flight(scene, 1, 2, LIMIT);
	proxy_be_silent(proxy, false);
	guard_scene_await_in_flight(scene, 0, 0, 1);
	guard_scene_await_in_flight(scene, 0, 2, LIMIT);
}

/* The first node has its own way to the server. */
static void set_clock_on(const char *url, struct proxy *proxy, const char *way)
{
	struct guard_scene scene;

	guard_scene_open(&scene, "clock", url, GUARD_SCENE_BACKEND_ABORT);
	scene.looks = move_clock;
	atomic_store(&scene.nodes[0].takes_us, LONG_US);
	guard_scene_start(&scene, 0, "one", way);
	guard_scene_start(&scene, 1, "two", NULL);
	guard_scene_start(&scene, 2, "three", NULL);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 2, LIMIT);
	set_clock_and_cut_off(&scene, proxy, (int64_t)LEASE / 2);
	set_clock(&scene, (int64_t)LEASE / 2);
	set_clock(&scene, GALE_HOURS(1));
	set_clock(&scene, -(int64_t)GALE_HOURS(1));
	close_scene(&scene);
}

static void run_clock_of_redis(void)
{
	struct redis_server server;
	struct proxy proxy;
	char url[256], way[64];

	redis_server_start(&server, NULL);
	fake_time_end();
	redis_server_settle(&server, "gale:");
	proxy_open(&proxy, server.socket);
	snprintf(url, sizeof(url), "redis://%s", server.socket);
	snprintf(way, sizeof(way), "redis://127.0.0.1:%u", proxy.port);
	set_clock_on(url, &proxy, way);
	proxy_close(&proxy);
	redis_server_stop(&server);
}

static void run_clock_of_postgres(void)
{
	struct postgres_server *server = postgres_server_start();
	uint16_t port = postgres_server_listen(server);
	struct proxy proxy;
	char folder[64], socket[96], url[64], way[64];

	fake_time_end();
	must(sscanf(postgres_server_address(server), "host=%63s", folder) == 1);
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.%u", folder, port);
	proxy_open(&proxy, socket);
	snprintf(url, sizeof(url), "postgres://gale@127.0.0.1:%u/postgres", port);
	snprintf(way, sizeof(way), "postgres://gale@127.0.0.1:%u/postgres", proxy.port);
	set_clock_on(url, &proxy, way);
	proxy_close(&proxy);
	postgres_server_stop(server);
}

static void run_clock(int which)
{
	fake_time_begin(&server_clock.time, wall_us());
	if (which == 0)
		run_clock_of_redis();
	else
		run_clock_of_postgres();
	fake_time_close(&server_clock.time);
}

static void a_clock_is_set(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replica_that_lags_takes_over),
		cmocka_unit_test(a_clock_is_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
