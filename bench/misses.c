/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * misses.c -- how long does a call wait that finds no credit, and how often is that so?
 *
 * A miss is gale_wait of a key that is new, through a whole runtime with one shard: the
 * caller posts it and sleeps, the shard asks the server and sleeps, over TCP on this
 * machine.  Each is followed by a bare round trip of the server's own client library, so
 * that both meet the same server at the same time.
 *
 * Round trips are counted while calls come at a steady rate, to one key or to 1,000 in
 * turn, after a few windows from which sizes were learned.
 *
 * A steady caller asks for 80 % of a limit, evenly in time, and sleeps from one call to the
 * next: what share of its calls is pending, and what share refused?  Where the machine
 * stands still, the calls that are due by then are made at once.  So it is also said what share is
 * pending in windows in which the machine did not (stalls.h), and how many windows that leaves out.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gale/gale.h>

#include "bench/keys.h"
#include "bench/bench.h"
#include "bench/stalls.h"
#include "runtime/clock.h"
#include "tests/support/port.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_server.h"

#define WITHIN GALE_SECONDS(10)
#define SAMPLES 20000
#define SAMPLES_SMOKE 200
#define PERCENTILES 3
#define MANY_KEYS 1000
#define WINDOW GALE_SECONDS(1)
#define DEMAND 100000 /* calls in a window, of all keys */
#define LEARNED 4     /* windows, before it is counted */
#define COUNTED 4
#define PENDING 4096
#define MILLION 1e6
#define SECOND GALE_SECONDS(1)
#define STEADY 5              /* figures of a steady caller */
#define STEADY_LEARNS 5       /* seconds */
#define STEADY_COUNTED 10     /* seconds */
#define STEADY_SLEEP_NS 20000 /* at least */
#define NONE 1e-4             /* percent: one in a million */

/* A server on 127.0.0.1, and its own client. */
struct server {
	char url[96];
	void (*start)(struct server *self);
	void (*round_trip)(void);
	void (*stop)(void);
};

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
};

/* ---- Redis ----------------------------------------------------------------------- */

static struct redis_server redis;
static redisContext *redis_bare;

static void redis_start(struct server *self)
{
	static char port[8];
	static const char *const options[] = { "--bind", "127.0.0.1", "--port", port,
		                               NULL };
	int number = free_port();

	snprintf(port, sizeof(port), "%d", number);
	snprintf(self->url, sizeof(self->url), "redis://127.0.0.1:%d", number);
	redis_server_start(&redis, options);
	redis_bare = redisConnect("127.0.0.1", number);
	bench_expect(redis_bare && redis_bare->err == 0, "a connection");
}

static void redis_round_trip(void)
{
	redisReply *reply = redisCommand(redis_bare, "PING");

	bench_expect(reply && reply->type == REDIS_REPLY_STATUS, "PING");
	freeReplyObject(reply);
}

static void redis_stop(void)
{
	redisFree(redis_bare);
	redis_server_stop(&redis);
}

/* ---- PostgreSQL ------------------------------------------------------------------ */

static struct postgres_server *postgres;
static PGconn *postgres_bare;

static void postgres_start(struct server *self)
{
	postgres = postgres_server_start();
	snprintf(self->url, sizeof(self->url), "postgres://gale@127.0.0.1:%u/postgres",
	         postgres_server_listen(postgres));
	postgres_bare = PQconnectdb(self->url);
	bench_expect(PQstatus(postgres_bare) == CONNECTION_OK, "a connection");
}

static void postgres_round_trip(void)
{
	PGresult *result = PQexec(postgres_bare, "SELECT 1");

	bench_expect(PQresultStatus(result) == PGRES_TUPLES_OK, "SELECT 1");
	PQclear(result);
}

static void postgres_stop(void)
{
	PQfinish(postgres_bare);
	postgres_server_stop(postgres);
}

/* ---- A node ---------------------------------------------------------------------- */

/* quarantine_us: 1: the server has just been started, and has forgotten nothing; 0: as users have it. */
static void open_node(struct node *node, const char *url, uint64_t quarantine_us)
{
	struct gale_store_config store = { .url = url, .quarantine_us = quarantine_us };
	struct gale_config config = { .shards = 1, .pending_max = PENDING };

	bench_expect(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK &&
	                 gale_store_open(node->runtime, &store, &node->store) ==
	                     GALE_ERR_OK &&
	                 gale_join(node->runtime, &node->seat) == GALE_ERR_OK,
	             "a node");
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static struct gale_limiter *open_limiter(struct node *node, const char *name,
                                         struct gale_rule rule)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = rule,
		.mode = GALE_LEASED,
		.store = node->store,
		.lease.patience_us = WITHIN,
	};
	struct gale_limiter *limiter;

	bench_expect(gale_limiter_open(node->runtime, &config, &limiter) == GALE_ERR_OK,
	             "a limiter");
	return limiter;
}

static bool ask(struct node *node, struct gale_limiter *limiter, struct key key)
{
	return gale_wait(node->seat, limiter, &key, sizeof(key), 1, WITHIN).verdict ==
	       GALE_ALLOW;
}

/* A server that has just been started grants nothing of that second. */
static void wait_for_first(struct node *node, struct gale_limiter *limiter)
{
	const struct timespec moment = { .tv_nsec = 10000000 };

	for (int i = 0; i < 500 && !ask(node, limiter, key_of(UINT64_C(1) << 40)); i++)
		nanosleep(&moment, NULL);
}

/* ---- How long -------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void percentiles(uint64_t *took_ns, size_t count, double *ret_values)
{
	const double parts[PERCENTILES] = { 0.5, 0.99, 0.999 };

	qsort(took_ns, count, sizeof(*took_ns), compare);
	for (int i = 0; i < PERCENTILES; i++)
		ret_values[i] =
		    (double)took_ns[(size_t)(parts[i] * (double)(count - 1))];
}

static void take_samples(const struct server *server, struct node *node,
                         struct gale_limiter *limiter, uint64_t *misses, uint64_t *bare,
                         size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t began = patience_now_ns(), missed;

		bench_expect(ask(node, limiter, key_of(i)), "a miss");
		missed = patience_now_ns();
		server->round_trip();
		misses[i] = missed - began;
		bare[i] = patience_now_ns() - missed;
	}
}

static void measure_latency(void *arg, double *ret_values)
{
	size_t count = bench_is_smoke() ? SAMPLES_SMOKE : SAMPLES;
	uint64_t *misses = malloc(count * sizeof(*misses));
	uint64_t *bare = malloc(count * sizeof(*bare));
	struct server *server = arg;
	struct gale_limiter *limiter;
	struct node node;

	bench_expect(misses && bare, "memory");
	server->start(server);
	open_node(&node, server->url, 1);
	limiter =
	    open_limiter(&node, "latency", gale_fixed_window(1000, GALE_DAYS(365)));
	wait_for_first(&node, limiter);
	take_samples(server, &node, limiter, misses, bare, count);
	percentiles(misses, count, ret_values);
	percentiles(bare, count, ret_values + PERCENTILES);
	gale_limiter_close(limiter);
	close_node(&node);
	server->stop();
	free(misses);
	free(bare);
}

/* ---- How often ------------------------------------------------------------------- */

static uint64_t round_trips(struct node *node)
{
	struct gale_counts counts;

	bench_expect(gale_store_stats(node->store, &counts) == GALE_ERR_OK, "stats");
	return counts.round_trips;
}

/* Calls of an event loop, which never waits; what is pending is answered later. */
struct tide {
	uint64_t asked;
	uint64_t pending; /* now */
	uint64_t waited;
	uint64_t denied;
};

static void hear(struct node *node, struct tide *tide)
{
	struct gale_completion completions[64];
	size_t count;

	do {
		count = gale_seat_completions(node->seat, completions, 64);
		for (size_t i = 0; i < count; i++)
			tide->denied += completions[i].answer.verdict != GALE_ALLOW;
		tide->pending -= count;
	} while (count == 64);
}

static void call(struct node *node, struct gale_limiter *limiter, uint64_t keys,
                 struct tide *tide)
{
	struct key key = key_of(tide->asked++ % keys);
	struct gale_answer answer =
	    gale_ask(node->seat, limiter, &key, sizeof(key), 1, NULL);

	tide->pending += answer.verdict == GALE_PENDING;
	tide->waited += answer.verdict == GALE_PENDING;
	tide->denied += answer.verdict == GALE_DENY;
}

/* As many in each millisecond.  When a window is as good as over, a few are denied. */
static void ask_steadily(struct node *node, struct gale_limiter *limiter, uint64_t keys,
                         uint64_t windows)
{
	const struct timespec moment = { .tv_nsec = 500000 };
	uint64_t began = patience_now_ns(), all = windows * DEMAND;
	struct tide tide = { 0 };

	while (tide.asked < all || tide.pending > 0) {
		uint64_t due = (patience_now_ns() - began) / 1000 * DEMAND / WINDOW;

		while (tide.asked < due && tide.asked < all)
			call(node, limiter, keys, &tide);
		nanosleep(&moment, NULL);
		hear(node, &tide);
	}
	/* On a machine that has no time the rate is not steady, which a smoke run bears. */
	bench_expect(bench_is_smoke() || tide.denied < all / 20,
	             "calls at a steady rate");
}

static double trips_of_a_million(struct node *node, const char *name, uint64_t keys)
{
	struct gale_limiter *limiter =
	    open_limiter(node, name, gale_fixed_window(10 * DEMAND / keys, WINDOW));
	uint64_t windows = bench_is_smoke() ? 1 : COUNTED, before;

	wait_for_first(node, limiter);
	ask_steadily(node, limiter, keys, bench_is_smoke() ? 1 : LEARNED);
	before = round_trips(node);
	ask_steadily(node, limiter, keys, windows);
	before = round_trips(node) - before;
	gale_limiter_close(limiter);
	return (double)before * MILLION / (double)(windows * DEMAND);
}

static void measure_trips(void *arg, double *ret_values)
{
	struct server *server = arg;
	struct node node;

	server->start(server);
	open_node(&node, server->url, 1);
	ret_values[0] = trips_of_a_million(&node, "hot", 1);
	ret_values[1] = trips_of_a_million(&node, "many", MANY_KEYS);
	close_node(&node);
	server->stop();
}

/* ---- A steady caller ------------------------------------------------------------- */

struct steady {
	struct server *server;
	uint64_t rate; /* calls in a second */
	uint64_t window_us;
	const char *names[STEADY];
};

/* Evenly, each at its instant. */
static void flow(struct node *node, struct gale_limiter *limiter, uint64_t rate,
                 uint64_t seconds, struct tide *tide, struct stalls *stalls)
{
	uint64_t began = patience_now_ns(), all = seconds * rate;

	while (tide->asked < all || tide->pending > 0) {
		uint64_t gone_ns = patience_now_ns() - began, due_ns;
		uint64_t due = gone_ns / 1000 * rate / SECOND;
		uint64_t next_ns = (due + 1) * SECOND / rate * 1000;
		uint64_t asked = tide->asked, waited = tide->waited;
		struct timespec sleep = { .tv_nsec = STEADY_SLEEP_NS };

		while (tide->asked < due && tide->asked < all)
			call(node, limiter, 1, tide);
		stalls_note(stalls, tide->asked - asked, tide->waited - waited);
		hear(node, tide);
		if (next_ns > gone_ns + STEADY_SLEEP_NS)
			sleep.tv_nsec = (long)(next_ns - gone_ns);
		due_ns = stalls_now_ns() + (uint64_t)sleep.tv_nsec;
		nanosleep(&sleep, NULL);
		stalls_woke(stalls, due_ns);
	}
}

static void measure_steady(void *arg, double *ret_values)
{
	struct steady *steady = arg;
	uint64_t calls = steady->rate * steady->window_us / SECOND;
	uint64_t seconds = bench_is_smoke() ? 1 : STEADY_COUNTED, before;
	struct tide learned = { 0 }, tide = { 0 };
	struct stalls_found found;
	struct stalls stalls;
	struct gale_limiter *limiter;
	struct node node;

	steady->server->start(steady->server);
	open_node(&node, steady->server->url, 0);
	limiter = open_limiter(&node, "steady",
	                       gale_fixed_window(calls * 10 / 8, steady->window_us));
	wait_for_first(&node, limiter);
	stalls_begin(&stalls, steady->window_us);
	flow(&node, limiter, steady->rate, bench_is_smoke() ? 1 : STEADY_LEARNS,
	     &learned, &stalls);
	stalls_end(&stalls, &found);
	before = round_trips(&node);
	stalls_begin(&stalls, steady->window_us);
	flow(&node, limiter, steady->rate, seconds, &tide, &stalls);
	stalls_end(&stalls, &found);
	ret_values[0] = 100 * found.waited;
	ret_values[1] = 100 * found.in_quiet;
	ret_values[2] = 100 * found.left_out;
	ret_values[3] = 100 * (double)tide.denied / (double)tide.asked;
	ret_values[4] = (double)(round_trips(&node) - before) /
	                (double)(seconds * SECOND / steady->window_us);
	gale_limiter_close(limiter);
	close_node(&node);
	steady->server->stop();
}

/* ---- Rows ------------------------------------------------------------------------ */

#define LATENCIES(server, bare)                                                        \
	{                                                                              \
		"misses/" server ", p50", "misses/" server ", p99",                    \
		    "misses/" server ", p99.9", "misses/" bare ", p50",                \
		    "misses/" bare ", p99", "misses/" bare ", p99.9"                   \
	}
#define TRIPS(server)                                                                  \
	{                                                                              \
		"misses/" server ", 1,000,000 calls, 1 key",                           \
		    "misses/" server ", 1,000,000 calls, 1,000 keys"                   \
	}

#define STEADY_NAMES(server, rate, window)                                             \
	{                                                                              \
		"misses/" server ", steady, " rate " a second, " window ", pending",   \
		    "misses/" server ", steady, " rate " a second, " window            \
		    ", pending in quiet windows",                                      \
		    "misses/" server ", steady, " rate " a second, " window            \
		    ", windows that are not quiet",                                    \
		    "misses/" server ", steady, " rate " a second, " window            \
		    ", refused",                                                       \
		    "misses/" server ", steady, " rate " a second, " window            \
		    ", round trips of a window"                                        \
	}

/* Nothing may be refused, and one call in ten thousand may wait. */
static void add_steadies(struct server *server, struct steady *steadies, size_t count)
{
	static const char *const units[STEADY] = { "%", "%", "%", "%", "" };
	static const double bars[STEADY] = { 0.01, 0.01, 0, NONE, 2 };

	for (size_t i = 0; i < count; i++) {
		steadies[i].server = server;
		bench_add_figures(&(struct bench_figures){ .names = steadies[i].names,
		                                           .count = STEADY,
		                                           .units = units,
		                                           .bars = bars,
		                                           .measure = measure_steady,
		                                           .arg = &steadies[i] });
	}
}

static void add_steady_redis(struct server *server)
{
	static struct steady steadies[] = {
		{ NULL, 1000, SECOND, STEADY_NAMES("Redis", "1,000", "1 s") },
		{ NULL, 10000, SECOND, STEADY_NAMES("Redis", "10,000", "1 s") },
		{ NULL, 100000, SECOND, STEADY_NAMES("Redis", "100,000", "1 s") },
		{ NULL, 1000, SECOND / 10, STEADY_NAMES("Redis", "1,000", "100 ms") },
		{ NULL, 10000, SECOND / 10, STEADY_NAMES("Redis", "10,000", "100 ms") },
		{ NULL, 100000, SECOND / 10,
		  STEADY_NAMES("Redis", "100,000", "100 ms") },
	};

	add_steadies(server, steadies, sizeof(steadies) / sizeof(steadies[0]));
}

static void add_steady_postgres(struct server *server)
{
	static struct steady steadies[] = {
		{ NULL, 1000, SECOND, STEADY_NAMES("PostgreSQL", "1,000", "1 s") },
		{ NULL, 10000, SECOND, STEADY_NAMES("PostgreSQL", "10,000", "1 s") },
	};

	add_steadies(server, steadies, sizeof(steadies) / sizeof(steadies[0]));
}

static void add(struct server *server, const char *const latencies[2 * PERCENTILES],
                const char *const trips[2])
{
	bench_add_figures(&(struct bench_figures){ .names = latencies,
	                                           .count = 2 * PERCENTILES,
	                                           .unit = "ns",
	                                           .measure = measure_latency,
	                                           .arg = server });
	bench_add_figures(&(struct bench_figures){ .names = trips,
	                                           .count = 2,
	                                           .unit = "round trips",
	                                           .measure = measure_trips,
	                                           .arg = server });
}

void ask_misses(void)
{
	static struct server redis_site = { "", redis_start, redis_round_trip,
		                            redis_stop };
	static struct server postgres_site = { "", postgres_start, postgres_round_trip,
		                               postgres_stop };
	static const char *const redis_latencies[] = LATENCIES("Redis", "PING, bare");
	static const char *const redis_trips[] = TRIPS("Redis");
	static const char *const postgres_latencies[] =
	    LATENCIES("PostgreSQL", "SELECT 1, bare");
	static const char *const postgres_trips[] = TRIPS("PostgreSQL");

	add(&redis_site, redis_latencies, redis_trips);
	add_steady_redis(&redis_site);
	add(&postgres_site, postgres_latencies, postgres_trips);
	add_steady_postgres(&postgres_site);
}
