/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * busy.c -- a Redis and a PostgreSQL, and what they say of themselves.
 */
#include "bench/busy.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "runtime/memory.h"
#include "stores/postgres/link.h"
#include "stores/redis/kind.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_server.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double busy_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* ---- Redis ----------------------------------------------------------------------- */

static struct redis_server redis;
static struct redis_talk talk;

struct server_kind *busy_redis_start(void)
{
	struct url_fault fault;
	char url[256];

	redis_server_start(&redis, NULL);
	redis_talk_open(&talk, &redis);
	snprintf(url, sizeof(url), "redis://%s", redis.socket);
	return redis_kind(memory_default(), url, &fault);
}

double busy_redis_us(void (*act)(void *arg), void *arg, unsigned times)
{
	redisReply *reply;
	const char *found;
	double us;

	redis_talk_do(&talk, "CONFIG RESETSTAT");
	for (unsigned i = 0; i < times; i++)
		act(arg);
	reply = redis_talk_say(&talk, "INFO commandstats");
	found = strstr(reply->str, "cmdstat_evalsha:");
	found = found ? strstr(found, "usec_per_call=") : NULL;
	bench_expect(found, "how long EVALSHA took");
	us = strtod(strchr(found, '=') + 1, NULL);
	redis_reply_free(reply);
	return us;
}

void busy_redis_stop(void)
{
	redis_talk_close(&talk);
	redis_server_stop(&redis);
}

/* ---- PostgreSQL ------------------------------------------------------------------ */

static struct postgres_server *postgres;
static PGconn *bare;

struct server_kind *busy_postgres_start(void)
{
	struct url_fault fault;
	char url[256];

	postgres = postgres_server_start();
	bare = PQconnectdb(postgres_server_address(postgres));
	bench_expect(PQstatus(bare) == CONNECTION_OK, PQerrorMessage(bare));
	snprintf(url, sizeof(url), "postgres:///%s?host=%s&user=%s&port=%s", PQdb(bare),
	         PQhost(bare), PQuser(bare), PQport(bare));
	return postgres_kind(memory_default(), url, &fault);
}

uint64_t busy_postgres_ns(void)
{
	PGresult *result = PQexec(bare, "SELECT pid FROM pg_stat_activity WHERE "
	                                "backend_type = 'client backend' AND "
	                                "pid <> pg_backend_pid()");
	uint64_t sum = 0;

	bench_expect(PQntuples(result) > 0, PQerrorMessage(bare));
	for (int i = 0; i < PQntuples(result); i++) {
		uint64_t ns = 0;
		char path[64];
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/schedstat",
		         PQgetvalue(result, i, 0));
		file = fopen(path, "r");
		bench_expect(file && fscanf(file, "%" SCNu64, &ns) == 1, path);
		fclose(file);
		sum += ns;
	}
	PQclear(result);
	return sum;
}

void busy_postgres_stop(void)
{
	PQfinish(bare);
	postgres_server_stop(postgres);
}
