/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* both_servers.c -- starts them, and reads what they keep without a limiter's help. */
#include "tests/support/both_servers.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "tests/support/late.h"
#include "tests/support/must.h"

#define KEY_MOST 80

/* What libpq is told is host=... port=... and so on: options of a URL, too. */
static void find_postgres(struct both_servers *both)
{
	char *url = both->urls[1];

	snprintf(url, sizeof(both->urls[1]), "postgres:///?%s",
	         postgres_server_address(both->postgres));
	for (char *at = url; *at != '\0'; at++)
		if (*at == ' ')
			*at = '&';
}

/* Who asks first sets PostgreSQL up; it grants nothing of the second of that. */
static void settle_postgres(const struct both_servers *both)
{
	struct gale_store_config store = { .url = both->urls[1] };
	struct gale_limiter_config config = { .name = "first",
		                              .rule =
		                                  gale_fixed_window(1, GALE_DAYS(1)) };
	struct gale_limiter *limiter;
	struct gale_runtime *runtime;
	struct gale_seat *seat;

	must(gale_runtime_open(NULL, &runtime) == GALE_ERR_OK);
	must(gale_store_open(runtime, &store, &config.store) == GALE_ERR_OK);
	must(gale_limiter_open(runtime, &config, &limiter) == GALE_ERR_OK);
	must(gale_join(runtime, &seat) == GALE_ERR_OK);
	while (!is_of_server(gale_wait(seat, limiter, "k", 1, 1, GALE_SECONDS(10))))
		continue;
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(config.store);
	gale_runtime_close(runtime);
}

void both_servers_start(struct both_servers *both)
{
	redis_server_start(&both->redis, NULL);
	redis_server_settle(&both->redis, "gale:");
	snprintf(both->urls[0], sizeof(both->urls[0]), "redis://%s",
	         both->redis.socket);
	both->postgres = postgres_server_start();
	find_postgres(both);
	settle_postgres(both);
}

void both_servers_stop(struct both_servers *both)
{
	postgres_server_stop(both->postgres);
	redis_server_stop(&both->redis);
}

/* ---- Looking --------------------------------------------------------------------- */

struct name {
	uint8_t bytes[KEY_MOST];
	size_t count;
};

/* The limiter's length, the limiter, and the user's key. */
static struct name name_of(const char *limiter, const char *key)
{
	struct name name = { .count = 1 + strlen(limiter) + strlen(key) };

	must(name.count < sizeof(name.bytes));
	name.bytes[0] = (uint8_t)strlen(limiter);
	memcpy(name.bytes + 1, limiter, strlen(limiter));
	memcpy(name.bytes + 1 + strlen(limiter), key, strlen(key));
	return name;
}

static bool read_words(struct redis_talk *talk, const redisReply *key,
                       uint64_t ret_words[2])
{
	const struct remote_bytes words[] = {
		{ (const uint8_t *)"GET", 3 },
		{ (const uint8_t *)key->str, key->len },
	};
	redisReply *value;
	bool there;

	must(redis_put_words(&talk->text, words, 2));
	redis_talk_send(talk);
	value = redis_talk_hear(talk);
	there = redis_window_of(value, ret_words);
	redis_reply_free(value);
	return there;
}

static bool look_into_redis(const struct both_servers *both, const struct name *name,
                            uint64_t ret_words[2])
{
	struct redis_talk talk;
	redisReply *keys;
	bool there = false;

	redis_talk_open(&talk, &both->redis);
	keys = redis_talk_say(&talk, "KEYS gale:*");
	for (size_t i = 0; i < keys->elements; i++) {
		const redisReply *key = keys->element[i];

		if (key->len > name->count && memcmp(key->str + key->len - name->count,
		                                     name->bytes, name->count) == 0)
			there = read_words(&talk, key, ret_words);
	}
	redis_reply_free(keys);
	redis_talk_close(&talk);
	return there;
}

static PGresult *ask_postgres(const struct both_servers *both, PGconn **ret_conn,
                              const char *sql, const struct name *name)
{
	const char *values[] = { (const char *)name->bytes };
	const int lengths[] = { (int)name->count }, binary[] = { 1 };

	*ret_conn = PQconnectdb(postgres_server_address(both->postgres));
	return PQexecParams(*ret_conn, sql, name->count > 0, NULL, values, lengths,
	                    binary, 0);
}

static bool look_into_postgres(const struct both_servers *both, const struct name *name,
                               uint64_t ret_words[2])
{
	PGconn *conn;
	PGresult *result =
	    ask_postgres(both, &conn,
	                 "SELECT CASE node WHEN 0 THEN words[1] ELSE start_us END, "
	                 "CASE node WHEN 0 THEN words[2] ELSE used END "
	                 "FROM gale.keys WHERE key = $1",
	                 name);
	bool there;

	must(PQresultStatus(result) == PGRES_TUPLES_OK);
	there = PQntuples(result) == 1;
	for (int i = 0; there && i < 2; i++)
		ret_words[i] = strtoull(PQgetvalue(result, 0, i), NULL, 10);
	PQclear(result);
	PQfinish(conn);
	return there;
}

bool both_servers_look(const struct both_servers *both, int which, const char *limiter,
                       const char *key, uint64_t ret_words[2])
{
	struct name name = name_of(limiter, key);

	return which == 0 ? look_into_redis(both, &name, ret_words)
	                  : look_into_postgres(both, &name, ret_words);
}

void both_servers_run_sql(const struct both_servers *both, const char *sql)
{
	const struct name nothing = { .count = 0 };
	PGconn *conn;
	PGresult *result = ask_postgres(both, &conn, sql, &nothing);

	must(PQresultStatus(result) == PGRES_COMMAND_OK);
	PQclear(result);
	PQfinish(conn);
}
