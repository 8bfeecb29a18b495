/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* both_servers.c -- starts them, and reads what they keep without a limiter's help. */
#define _GNU_SOURCE
#include "tests/support/both_servers.h"

#include <endian.h>
#include <inttypes.h>
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

/* ---- Keeping --------------------------------------------------------------------- */

#define ROW 6                    /* numbers */
#define GRACE_US GALE_SECONDS(4) /* a Redis keeps values for so much longer */

static size_t words_of(const struct kept_value *value)
{
	return (size_t)(value->numbers[0] >> 32);
}

static bool is_lent_window(const struct kept_value *value)
{
	return value->rows > 0 && words_of(value) == 2;
}

static size_t put_number(uint8_t *out, uint64_t number)
{
	number = htole64(number);
	memcpy(out, &number, sizeof(number));
	return sizeof(number);
}

static size_t put_double(uint8_t *out, double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return put_number(out, bits);
}

/* A row is node, number, granted, out, tag and part. */
static size_t put_folded(uint8_t *out, const struct kept_value *value)
{
	const uint64_t *of = value->numbers, *row = of + 4;
	size_t count = 0;

	for (size_t i = 0; i < 3; i++)
		count += put_number(out + count, of[i]);
	count += put_number(out + count, row[4]);
	count += put_number(out + count, row[0]);
	count += put_double(out + count, (double)of[3] - (double)row[3]);
	count += put_double(out + count, (double)of[3]);
	count += put_double(out + count, (double)row[1]);
	count += put_double(out + count, (double)row[2]);
	for (size_t i = 1; i < value->rows; i++)
		for (size_t j = 0; j < 4; j++)
			count += put_double(out + count, (double)row[i * ROW + j]);
	return count;
}

static size_t put_value(uint8_t *out, const struct kept_value *value)
{
	size_t numbers = 2 + words_of(value) + value->rows * ROW, count = 0;

	must(numbers <= KEPT_NUMBERS);
	if (is_lent_window(value))
		return put_folded(out, value);
	for (size_t i = 0; i < numbers; i++)
		count += put_number(out + count, value->numbers[i]);
	return count;
}

static void keep_in_redis(const struct both_servers *both, const struct name *name,
                          const struct kept_value *value)
{
	uint8_t key[REDIS_KEY_MAX], bytes[KEPT_NUMBERS * 8];
	char at[24];
	const struct remote_bytes words[] = {
		{ (const uint8_t *)"SET", 3 },
		{ key, redis_key(key, "gale:", 0,
		                 (struct remote_bytes){ name->bytes, name->count }) },
		{ bytes, put_value(bytes, value) },
		{ (const uint8_t *)"PXAT", 4 },
		{ (const uint8_t *)at,
		  (size_t)snprintf(at, sizeof(at), "%" PRIu64,
		                   (value->expires_us + GRACE_US) / 1000) },
	};
	struct redis_talk talk;
	redisReply *reply;

	redis_talk_open(&talk, &both->redis);
	must(redis_put_words(&talk.text, words, sizeof(words) / sizeof(words[0])));
	redis_talk_send(&talk);
	reply = redis_talk_hear(&talk);
	must(reply->type == REDIS_REPLY_STATUS);
	redis_reply_free(reply);
	redis_talk_close(&talk);
}

/* Of a window that was lent from, the first ten numbers have columns of their own. */
static void keep_in_postgres(const struct both_servers *both, const struct name *name,
                             const struct kept_value *value)
{
	const uint64_t *of = value->numbers, none[] = { UINT64_MAX, 0, 0, 0, 0, 0 };
	const uint64_t *columns = is_lent_window(value) ? of + 2 : none;
	size_t first = is_lent_window(value) ? 4 + ROW : 2;
	size_t numbers = 2 + words_of(value) + value->rows * ROW;
	char sql[2048];
	int count =
	    snprintf(sql, sizeof(sql),
	             "INSERT INTO gale.keys VALUES (%" PRIu64 ", %" PRIu64 ", %" PRIu64,
	             value->expires_us, of[0], of[1]);
	PGresult *result;
	PGconn *conn;

	for (size_t i = 0; i < 6; i++)
		count += snprintf(sql + count, sizeof(sql) - (size_t)count,
		                  ", %" PRId64, (int64_t)columns[i]);
	count +=
	    snprintf(sql + count, sizeof(sql) - (size_t)count, ", $1, nullif(ARRAY[");
	for (size_t i = first; i < numbers; i++)
		count += snprintf(sql + count, sizeof(sql) - (size_t)count,
		                  "%s%" PRIu64, i > first ? ", " : "", of[i]);
	snprintf(sql + count, sizeof(sql) - (size_t)count, "]::bigint[], '{}'))");
	result = ask_postgres(both, &conn, sql, name);
	must(PQresultStatus(result) == PGRES_COMMAND_OK);
	PQclear(result);
	PQfinish(conn);
}

void both_servers_keep(const struct both_servers *both, int which, const char *limiter,
                       const char *key, const struct kept_value *value)
{
	struct name name = name_of(limiter, key);

	if (which == 0)
		keep_in_redis(both, &name, value);
	else
		keep_in_postgres(both, &name, value);
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
