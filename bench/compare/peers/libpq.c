/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * libpq.c -- a limit as it is written by hand in PostgreSQL: one prepared upsert that counts.
 *
 * ADDRESS is for PQconnectdb.  The row is counted up while it is below its limit; a call that
 * finds no row to update is denied.
 *
 * Threads   A connection each.
 */
#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include "bench/compare/peers/driver.h"

#define TABLE                                                                          \
	"CREATE TABLE IF NOT EXISTS compare_counts (key text PRIMARY KEY, "            \
	"used bigint NOT NULL) WITH (fillfactor = 80)"
#define COUNT                                                                          \
	"INSERT INTO compare_counts AS c VALUES ($1, 1) ON CONFLICT (key) DO UPDATE "  \
	"SET used = c.used + 1 WHERE c.used < $2::bigint RETURNING 1"
#define NAME_MOST 80

static PGconn *caller;
static char space[48];
static char limit[24];

static PGconn *open_connection(void)
{
	PGconn *connection = PQconnectdb(driver_address);

	if (PQstatus(connection) == CONNECTION_OK)
		PQclear(PQprepare(connection, "count", COUNT, 2, NULL));
	return connection;
}

static void name_of(const char *key, char *ret_name)
{
	snprintf(ret_name, NAME_MOST, "%s:%.*s", space, DRIVER_KEY_LEN, key);
}

static enum driver_answer answer_of(PGresult *result)
{
	enum driver_answer answer = DRIVER_FAILED;

	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		answer = PQntuples(result) == 1 ? DRIVER_ALLOWED : DRIVER_DENIED;
	PQclear(result);
	return answer;
}

static enum driver_answer ask_at(PGconn *connection, const char *key)
{
	char name[NAME_MOST];
	const char *const values[] = { name, limit };

	name_of(key, name);
	return answer_of(PQexecPrepared(connection, "count", 2, values, NULL, NULL, 0));
}

static inline enum driver_answer ask(struct driver_turn *turn, const char *key)
{
	return ask_at(turn->own, key);
}

/* So many in one pipeline, and one transaction each. */
static void pipeline(PGconn *connection, const char *const *keys, uint64_t count,
                     struct driver_tally *tally)
{
	for (uint64_t i = 0; i < count; i++) {
		char name[NAME_MOST];
		const char *const values[] = { name, limit };

		name_of(keys[i], name);
		driver_must(PQsendQueryPrepared(connection, "count", 2, values, NULL,
		                                NULL, 0) == 1 &&
		                PQpipelineSync(connection) == 1,
		            "a pipeline");
	}
	for (uint64_t i = 0; i < count; i++) {
		tally->answers[answer_of(PQgetResult(connection))]++;
		PQclear(PQgetResult(connection)); /* no more of this query */
		PQclear(PQgetResult(connection)); /* its sync */
	}
}

#define DEPTH_MOST 256

static void run_deep(struct driver_turn *turn)
{
	const char *keys[DEPTH_MOST];
	unsigned depth = turn->work->depth;
	uint64_t began;

	driver_must(depth <= DEPTH_MOST && PQenterPipelineMode(turn->own) == 1,
	            "depth");
	while ((began = driver_now_ns()) < turn->end_ns) {
		for (unsigned i = 0; i < depth; i++)
			keys[i] = driver_next_key(turn);
		pipeline(turn->own, keys, depth, &turn->tally);
		driver_note(&turn->tally, driver_now_ns() - began);
	}
}

static void run(struct driver_turn *turn)
{
	PGconn *connection = open_connection();

	driver_must(PQstatus(connection) == CONNECTION_OK, "a connection");
	turn->own = connection;
	if (turn->work->depth > 1)
		run_deep(turn);
	else
		driver_loop(turn, 1, ask);
	PQfinish(connection);
}

static enum driver_answer call(const char *key)
{
	if (PQstatus(caller) != CONNECTION_OK) {
		PQfinish(caller);
		caller = open_connection();
		if (PQstatus(caller) != CONNECTION_OK)
			return DRIVER_FAILED;
	}
	return ask_at(caller, key);
}

static void pass(const char (*keys)[DRIVER_KEY_LEN], uint64_t count,
                 struct driver_tally *tally)
{
	const char *some[DEPTH_MOST];
	unsigned held = 0;

	driver_must(PQenterPipelineMode(caller) == 1, "a pipeline");
	for (uint64_t i = 0; i < count; i++) {
		some[held++] = keys[i];
		if (held == 64 || i + 1 == count) {
			pipeline(caller, some, held, tally);
			held = 0;
		}
	}
	driver_must(PQexitPipelineMode(caller) == 1, "a pipeline's end");
}

static const char *prepare(const struct driver_work *work,
                           const char (*keys)[DRIVER_KEY_LEN])
{
	static struct driver_tally ignored;

	driver_must(driver_address != NULL, "an address");
	if (!caller) {
		PGconn *first = PQconnectdb(driver_address);

		driver_must(PQstatus(first) == CONNECTION_OK, PQerrorMessage(first));
		PQclear(PQexec(first, "SET client_min_messages = error"));
		/* Two at once fail where none is there yet: the other has made it. */
		PQclear(PQexec(first, TABLE));
		PQfinish(first);
		caller = open_connection();
	}
	snprintf(space, sizeof(space), "%s", work->space[0] ? work->space : "fill");
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)work->limit);
	if (strcmp(work->name, "deny") == 0)
		pass(keys, work->keys, &ignored);
	return NULL;
}

static void fill(struct driver_turn *turn)
{
	pass(turn->keys, turn->work->keys, &turn->tally);
}

int main(int argc, char **argv)
{
	static const struct driver_peer peer = {
		.prepare = prepare,
		.run = run,
		.call = call,
		.fill = fill,
	};

	return driver_main(argc, argv, &peer);
}
