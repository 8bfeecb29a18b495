/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres.c -- what does an ask of a PostgreSQL server cost, over what the server takes?
 *
 * The floors are libpq, waiting for each result: a SELECT, and one statement
 * that adds to 64 counters, as a batch of leases must: of a table that is logged as ours
 * is, with the same keys, sent with what to add to each; as it comes, and prepared, as ours is
 * where there is no pool.  The same 64 upserts in a pipeline take several times as long.  The
 * server does not sync.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "bench/keys.h"
#include "bench/servers.h"
#include "runtime/memory.h"
#include "stores/postgres/link.h"
#include "tests/support/postgres_server.h"

#define MANY_KEYS 100000
#define TABLE                                                                          \
	"CREATE TABLE bare (key bytea PRIMARY KEY, used bigint) WITH (fillfactor = "   \
	"70)"
#define UPSERT                                                                         \
	"INSERT INTO bare SELECT * FROM unnest($1::bytea[], $2::int8[])"               \
	" ON CONFLICT (key) DO UPDATE SET used = bare.used + excluded.used"            \
	" RETURNING used"
#define HEAD_BYTES 20

static struct postgres_server *server;
static PGconn *bare;
static struct asker few, many;

static uint64_t many_keys(void)
{
	return bench_is_smoke() ? 1000 : MANY_KEYS;
}

static void expect(PGresult *result, ExecStatusType status)
{
	bench_expect(PQresultStatus(result) == status, PQerrorMessage(bare));
	PQclear(result);
}

static void run_select(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			expect(PQexecParams(bare, "SELECT 1", 0, NULL, NULL, NULL, NULL,
			                    1),
			       PGRES_TUPLES_OK);
}

static char *put_big(char *at, uint64_t number, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, number >>= 8)
		at[i] = (char)(number & 0xff);
	return at + bytes;
}

static char *put_head(char *at, uint64_t type)
{
	at = put_big(at, 1, 4);
	at = put_big(at, 0, 4);
	at = put_big(at, type, 4);
	at = put_big(at, TOGETHER, 4);
	return put_big(at, 1, 4);
}

/* From that one on; after the last comes the first. */
static char *put_keys(char *at, uint64_t first)
{
	at = put_head(at, 17);
	for (uint64_t i = first; i < first + TOGETHER; i++) {
		struct key key = key_of(i % many_keys());

		at = put_big(at, sizeof(key), 4);
		memcpy(at, &key, sizeof(key));
		at += sizeof(key);
	}
	return at;
}

static char *put_units(char *at)
{
	at = put_head(at, 20);
	for (int i = 0; i < TOGETHER; i++)
		at = put_big(put_big(at, 8, 4), 1000, 8);
	return at;
}

enum manner {
	AS_IT_COMES,
	PREPARED,
	AHEAD, /* prepared; it is begun only */
};

static void upsert(enum manner manner, uint64_t first)
{
	static char keys[HEAD_BYTES + TOGETHER * (4 + sizeof(struct key))];
	static char units[HEAD_BYTES + TOGETHER * 12];
	const char *values[] = { keys, units };
	const int lengths[] = { sizeof(keys), sizeof(units) }, formats[] = { 1, 1 };

	put_keys(keys, first);
	put_units(units);
	if (manner == AS_IT_COMES)
		expect(PQexecParams(bare, UPSERT, 2, NULL, values, lengths, formats, 1),
		       PGRES_TUPLES_OK);
	else if (manner == PREPARED)
		expect(PQexecPrepared(bare, "upsert", 2, values, lengths, formats, 1),
		       PGRES_TUPLES_OK);
	else
		bench_expect(PQsendQueryPrepared(bare, "upsert", 2, values, lengths,
		                                 formats, 1) == 1 &&
		                 PQpipelineSync(bare) == 1,
		             PQerrorMessage(bare));
}

/* As many as ours has there, once it has been asked about all: who looks for one of few has as
 * far to go. */
static void fill(void)
{
	for (uint64_t first = 0; first < many_keys(); first += TOGETHER)
		upsert(PREPARED, first);
}

static void start(void)
{
	if (bare)
		return;
	server = postgres_server_start(/* syncs= */ false);
	bare = PQconnectdb(postgres_server_address(server));
	bench_expect(PQstatus(bare) == CONNECTION_OK, PQerrorMessage(bare));
	expect(PQexec(bare, TABLE), PGRES_COMMAND_OK);
	expect(PQprepare(bare, "upsert", UPSERT, 2, NULL), PGRES_COMMAND_OK);
	fill();
}

/* What a server does by itself within a minute: plans are made for the tables as they are. */
static void come_to_rest(void)
{
	expect(PQexec(bare, "VACUUM ANALYZE"), PGRES_COMMAND_OK);
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
	           asker == &few ? TOGETHER : many_keys());
	for (uint64_t i = 0; i < asker->keys; i += TOGETHER)
		asker_lend(asker, TOGETHER); /* nobody asks for a new key afterwards */
	come_to_rest();
}

static void run_upserts(struct bench *b, enum manner manner)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		for (uint64_t done = 0; done < n; done += TOGETHER)
			upsert(manner, 0);
}

static void run_upsert(struct bench *b)
{
	run_upserts(b, AS_IT_COMES);
}

static void run_upsert_prepared(struct bench *b)
{
	run_upserts(b, PREPARED);
}

static void run_upsert_many(struct bench *b)
{
	static uint64_t next;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		for (uint64_t done = 0; done < n; done += TOGETHER, next += TOGETHER)
			upsert(PREPARED, next % many_keys());
}

static void hear(void)
{
	expect(PQgetResult(bare), PGRES_TUPLES_OK);
	bench_expect(PQgetResult(bare) == NULL, "one result");
	expect(PQgetResult(bare), PGRES_PIPELINE_SYNC);
}

static void run_upsert_ahead(struct bench *b)
{
	bench_expect(PQenterPipelineMode(bare) == 1, PQerrorMessage(bare));
	upsert(AHEAD, 0);
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		for (uint64_t done = 0; done < n; done += TOGETHER) {
			upsert(AHEAD, 0);
			hear();
		}
	hear();
	bench_expect(PQexitPipelineMode(bare) == 1, PQerrorMessage(bare));
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
	row("postgres/64 counters, prepared", run_upsert_prepared, NULL,
	    "postgres/64 counters, bare", 0);
	row("postgres/a lease at a time", run_lend_one, &few, "postgres/SELECT 1, bare",
	    0);
	row("postgres/64 leases at a time", run_lend_many, &few,
	    "postgres/64 counters, bare", 1.25);
	row("postgres/64 leases at a time, of prepared", run_lend_many, &few,
	    "postgres/64 counters, prepared", 1.25);
	row("postgres/64 counters, prepared, the next sent ahead", run_upsert_ahead,
	    NULL, NULL, 0);
	row("postgres/64 leases at a time, the next asked for ahead", run_lend_ahead,
	    &few, "postgres/64 counters, prepared, the next sent ahead", 1.25);
	row("postgres/64 steps at a time", run_step_many, &few,
	    "postgres/64 counters, prepared", 0);
	row("postgres/64 counters, prepared, 100,000 keys", run_upsert_many, NULL, NULL,
	    0);
	row("postgres/64 leases at a time, 100,000 keys", run_lend_many, &many,
	    "postgres/64 counters, prepared, 100,000 keys", 0);
}
