/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres.c -- what does an ask of a PostgreSQL server cost, over what the server takes?
 *
 * The floors are libpq, waiting for each result: a SELECT, and one statement that adds to
 * 64 counters, as a batch of leases must: of a table that is logged as ours is, with as
 * many rows and the same keys, sent with what to add to each; as it comes, and prepared, as
 * ours is where there is no pool.  The same 64 upserts in a pipeline take several times as
 * long.  The server does not sync.
 *
 * A call and its floor take turns (turns.h): what a server has to do by itself now and then
 * falls on both.  Which of a server's processes are woken on whose processor does not, and stays
 * as it is for as long as they live: so the figures are medians of several runs, each with a
 * server of its own.
 *
 * Threads   One.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "bench/keys.h"
#include "bench/servers.h"
#include "bench/turns.h"
#include "runtime/memory.h"
#include "stores/postgres/link.h"
#include "tests/support/postgres_server.h"

#define MANY_KEYS                                                                      \
	100000 /* no multiple of 64: keys new together are not asked for together */
#define IN_A_ROW 20
#define PROCESSES 5
#define TABLE                                                                          \
	"CREATE TABLE bare (key bytea PRIMARY KEY, used bigint) WITH (fillfactor = "   \
	"70)"
#define UPSERT                                                                         \
	"INSERT INTO bare SELECT * FROM unnest($1::bytea[], $2::int8[])"               \
	" ON CONFLICT (key) DO UPDATE SET used = bare.used + excluded.used"            \
	" RETURNING used"
#define HEAD_BYTES 20
#define AHEAD_BATCHES 16
#define NEW_KEYS (UINT64_C(1) << 40) /* from there on none has been asked for */

enum call {
	SELECT,
	LEASE,
	PLAIN,
	PREPARED,
	LEASES,
	PREPARED_AHEAD, /* AHEAD_BATCHES of them */
	LEASES_AHEAD,
	PREPARED_OF_MANY,
	LEASES_OF_MANY,
	STEPS,
	PREPARED_NEW,
	LEASES_NEW,
	CALLS,
};

static struct postgres_server *server;
static PGconn *bare;
static struct asker few, many, fresh;

static uint64_t many_keys(void)
{
	return bench_is_smoke() ? 1000 : MANY_KEYS;
}

static void expect(PGresult *result, ExecStatusType status)
{
	bench_expect(PQresultStatus(result) == status, PQerrorMessage(bare));
	PQclear(result);
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

/* From that one on; after the last of many comes the first. */
static char *put_keys(char *at, uint64_t first)
{
	at = put_head(at, 17);
	for (uint64_t i = first; i < first + TOGETHER; i++) {
		struct key key = key_of(i < NEW_KEYS ? i % many_keys() : i);

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
	BY_NAME,
	BEGUN, /* by its name, and not waited for */
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
	else if (manner == BY_NAME)
		expect(PQexecPrepared(bare, "upsert", 2, values, lengths, formats, 1),
		       PGRES_TUPLES_OK);
	else
		bench_expect(PQsendQueryPrepared(bare, "upsert", 2, values, lengths,
		                                 formats, 1) == 1 &&
		                 PQpipelineSync(bare) == 1,
		             PQerrorMessage(bare));
}

static void hear(void)
{
	expect(PQgetResult(bare), PGRES_TUPLES_OK);
	bench_expect(PQgetResult(bare) == NULL, "one result");
	expect(PQgetResult(bare), PGRES_PIPELINE_SYNC);
}

static void upsert_ahead(void)
{
	bench_expect(PQenterPipelineMode(bare) == 1, PQerrorMessage(bare));
	upsert(BEGUN, 0);
	for (int i = 1; i < AHEAD_BATCHES; i++) {
		upsert(BEGUN, 0);
		hear();
	}
	hear();
	bench_expect(PQexitPipelineMode(bare) == 1, PQerrorMessage(bare));
}

static void upsert_next(uint64_t *next)
{
	upsert(BY_NAME, *next);
	*next += TOGETHER;
}

/* ---- A server, and its askers ------------------------------------------------------- */

static void start(void)
{
	server = postgres_server_start();
	bare = PQconnectdb(postgres_server_address(server));
	bench_expect(PQstatus(bare) == CONNECTION_OK, PQerrorMessage(bare));
	expect(PQexec(bare, TABLE), PGRES_COMMAND_OK);
	expect(PQprepare(bare, "upsert", UPSERT, 2, NULL), PGRES_COMMAND_OK);
}

static void open_asker(struct asker *asker, uint64_t keys)
{
	char url[256];
	struct url_fault fault;

	snprintf(url, sizeof(url), "postgres:///%s?host=%s&user=%s&port=%s", PQdb(bare),
	         PQhost(bare), PQuser(bare), PQport(bare));
	asker_open(asker, postgres_kind(memory_default(), url, &fault), keys);
}

/* Both tables have as many rows, and are as a server leaves them by itself within a minute:
 * plans are made for them as they are. */
static void fill(void)
{
	for (uint64_t first = 0; first < many_keys(); first += TOGETHER) {
		upsert(BY_NAME, first);
		asker_lend(&many, TOGETHER);
	}
	expect(PQexec(bare, "VACUUM ANALYZE"), PGRES_COMMAND_OK);
}

/* ---- Calls ----------------------------------------------------------------------- */

static void make(struct turns *turns, unsigned call)
{
	static uint64_t next, next_new = NEW_KEYS;

	(void)turns;
	switch ((enum call)call) {
	case SELECT:
		expect(PQexecParams(bare, "SELECT 1", 0, NULL, NULL, NULL, NULL, 1),
		       PGRES_TUPLES_OK);
		break;
	case PLAIN:
		upsert(AS_IT_COMES, 0);
		break;
	case PREPARED:
		upsert(BY_NAME, 0);
		break;
	case LEASES:
		asker_lend(&few, TOGETHER);
		break;
	case PREPARED_OF_MANY:
		upsert_next(&next);
		break;
	case LEASES_OF_MANY:
		asker_lend(&many, TOGETHER);
		break;
	case PREPARED_NEW:
		upsert_next(&next_new);
		break;
	case LEASES_NEW:
		asker_lend(&fresh, TOGETHER);
		break;
	case PREPARED_AHEAD:
		upsert_ahead();
		break;
	case LEASES_AHEAD:
		asker_lend_ahead(&few, AHEAD_BATCHES, /* under_way= */ 2);
		break;
	case STEPS:
		asker_step(&few, TOGETHER);
		break;
	default:
		asker_lend(&few, 1);
		break;
	}
}

/* Those that are compared take turns. */
static void time_phases(double *ret_us)
{
	static const struct {
		enum call first;
		unsigned calls;
	} phases[] = { { SELECT, 2 },           { PLAIN, 3 }, { PREPARED_AHEAD, 2 },
		       { PREPARED_OF_MANY, 2 }, { STEPS, 1 }, { PREPARED_NEW, 2 } };

	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		struct turns turns = { make, phases[i].first, phases[i].calls, IN_A_ROW,
			               NULL };

		turns_time(&turns, ret_us + phases[i].first);
	}
}

/* ---- Figures --------------------------------------------------------------------- */

static const unsigned parts[CALLS] = {
	[SELECT] = 1,
	[LEASE] = 1,
	[PLAIN] = TOGETHER,
	[PREPARED] = TOGETHER,
	[LEASES] = TOGETHER,
	[PREPARED_AHEAD] = AHEAD_BATCHES * TOGETHER,
	[LEASES_AHEAD] = AHEAD_BATCHES * TOGETHER,
	[PREPARED_OF_MANY] = TOGETHER,
	[LEASES_OF_MANY] = TOGETHER,
	[STEPS] = TOGETHER,
	[PREPARED_NEW] = TOGETHER,
	[LEASES_NEW] = TOGETHER,
};

static const struct turns_figure figures[] = {
	{ "postgres/SELECT 1, bare", SELECT, false, 0, 0 },
	{ "postgres/a lease at a time", LEASE, false, 0, 0 },
	{ "postgres/64 counters, bare, each", PLAIN, false, 0, 0 },
	{ "postgres/64 counters, prepared, each", PREPARED, false, 0, 0 },
	{ "postgres/64 leases, each", LEASES, false, 0, 0 },
	{ "postgres/64 leases to bare", LEASES, true, PLAIN, 1.25 },
	{ "postgres/64 leases to prepared", LEASES, true, PREPARED, 1.25 },
	{ "postgres/64 counters, prepared, the next sent ahead, each", PREPARED_AHEAD,
	  false, 0, 0 },
	{ "postgres/64 leases, the next asked for ahead, each", LEASES_AHEAD, false, 0,
	  0 },
	{ "postgres/64 leases to prepared, the next ahead", LEASES_AHEAD, true,
	  PREPARED_AHEAD, 1.25 },
	{ "postgres/64 counters of 100,000, prepared, each", PREPARED_OF_MANY, false, 0,
	  0 },
	{ "postgres/64 leases of 100,000 keys, each", LEASES_OF_MANY, false, 0, 0 },
	{ "postgres/64 leases to prepared, of 100,000", LEASES_OF_MANY, true,
	  PREPARED_OF_MANY, 1.25 },
	{ "postgres/64 new counters, prepared, each", PREPARED_NEW, false, 0, 0 },
	{ "postgres/64 leases of new keys, each", LEASES_NEW, false, 0, 0 },
	{ "postgres/64 leases to prepared, of new ones", LEASES_NEW, true, PREPARED_NEW,
	  1.25 },
	{ "postgres/64 steps, each", STEPS, false, 0, 0 },
};

static void measure(const struct turns_table *self, double *ret_us)
{
	(void)self;
	start();
	open_asker(&many, many_keys());
	open_asker(&few, TOGETHER);
	open_asker(&fresh, UINT64_MAX);
	fresh.next = NEW_KEYS;
	fill();
	time_phases(ret_us);
	postgres_server_stop(server);
}

void ask_postgres(void)
{
	static const struct turns_table table = {
		.figures = figures,
		.count = sizeof(figures) / sizeof(figures[0]),
		.parts = parts,
		.unit = "us",
		.units_a_us = 1,
		.processes = PROCESSES,
		.measure = measure,
	};

	turns_add(&table);
}
