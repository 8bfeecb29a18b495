/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres.c -- what does an ask of a PostgreSQL server cost, over what the server takes?
 *
 * The floors are libpq as it comes, waiting for each result: a SELECT, and one statement
 * that adds to 64 counters, as a batch of leases must.  The server does not sync.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "bench/servers.h"
#include "runtime/memory.h"
#include "stores/postgres/link.h"
#include "tests/support/postgres_server.h"

#define MANY_KEYS 100000
#define TABLE                                                                          \
	"CREATE UNLOGGED TABLE bare (key bytea PRIMARY KEY, used bigint) "             \
	"WITH (fillfactor = 50)"
#define UPSERT                                                                         \
	"INSERT INTO bare SELECT decode(lpad(i::text, 32, '0'), 'hex'), 1000 "         \
	"FROM generate_series(1, 64) AS i "                                            \
	"ON CONFLICT (key) DO UPDATE SET used = bare.used + 1000 RETURNING used"

static struct postgres_server *server;
static PGconn *bare;
static struct asker few, many;

static void expect(PGresult *result, ExecStatusType status)
{
	bench_expect(PQresultStatus(result) == status, PQerrorMessage(bare));
	PQclear(result);
}

static void start(void)
{
	if (bare)
		return;
	server = postgres_server_start(/* syncs= */ false);
	bare = PQconnectdb(postgres_server_address(server));
	bench_expect(PQstatus(bare) == CONNECTION_OK, PQerrorMessage(bare));
	expect(PQexec(bare, TABLE), PGRES_COMMAND_OK);
}

static void prepare_bare(void *arg)
{
	(void)arg;
	start();
}

static void prepare(void *arg)
{
	struct asker *asker = arg;
	char url[256];
	enum gale_err err;

	start();
	if (asker->store)
		return;
	snprintf(url, sizeof(url), "postgres:///%s?host=%s&user=%s&port=%s", PQdb(bare),
	         PQhost(bare), PQuser(bare), PQport(bare));
	asker_open(asker, postgres_kind(memory_default(), url, &err),
	           asker == &few ? TOGETHER : (bench_is_smoke() ? 1000 : MANY_KEYS));
}

static void run_select(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			expect(PQexecParams(bare, "SELECT 1", 0, NULL, NULL, NULL, NULL,
			                    1),
			       PGRES_TUPLES_OK);
}

static void run_upsert(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		for (uint64_t done = 0; done < n; done += TOGETHER)
			expect(PQexecParams(bare, UPSERT, 0, NULL, NULL, NULL, NULL, 1),
			       PGRES_TUPLES_OK);
}

static void row(const char *name, void (*run)(struct bench *), struct asker *asker,
                const char *floor, double bar)
{
	bench_add(&(struct bench_row){ .name = name,
	                               .run = run,
	                               .prepare = asker ? prepare : prepare_bare,
	                               .arg = asker,
	                               .waits = true,
	                               .floor = floor,
	                               .bar = bar });
}

void ask_postgres(void)
{
	row("postgres/SELECT 1, bare", run_select, NULL, NULL, 0);
	row("postgres/64 counters, bare", run_upsert, NULL, "postgres/SELECT 1, bare",
	    0);
	row("postgres/a lease at a time", run_lend_one, &few, "postgres/SELECT 1, bare",
	    0);
	row("postgres/64 leases at a time", run_lend_many, &few,
	    "postgres/64 counters, bare", 1.25);
	row("postgres/64 steps at a time", run_step_many, &few,
	    "postgres/64 counters, bare", 0);
	row("postgres/64 leases at a time, 100,000 keys", run_lend_many, &many,
	    "postgres/64 counters, bare", 0);
}
