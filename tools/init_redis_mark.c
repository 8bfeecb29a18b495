/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_redis_mark.c -- is there a generation? any key of ours? -> greet.lua, as "new".
 *
 * Between the looks and the mark a node may come and begin a generation: then that stays.
 */
#include "tools/init_redis_mark.h"

#include <stdbool.h>
#include <string.h>

#include "stores/redis/script.h"

#define BUCKETS 256
#define KEY_ROOM (REDIS_PREFIX_MAX + 32)
#define PATTERN_ROOM (2 * REDIS_PREFIX_MAX + 32)
#define NEW_SINCE ":0" /* ends the generation of a server that has forgotten nothing */

enum mark {
	MARKED,
	HAD_BEGUN,
	HAS_KEYS,
	MARK_FAILED,
};

/* stores/redis/wire.h has the names of keys. */
static void put_key(char key[KEY_ROOM], const struct redis_url *url, unsigned bucket)
{
	snprintf(key, KEY_ROOM, "%s{b%02x}generation", url->prefix, bucket);
}

/* All of ours, whatever letters the prefix has. */
static void put_pattern(char pattern[PATTERN_ROOM], const struct redis_url *url)
{
	size_t at = 0;

	for (const char *letter = url->prefix; *letter; letter++) {
		if (strchr("*?[]^\\", *letter))
			pattern[at++] = '\\';
		pattern[at++] = *letter;
	}
	strcpy(pattern + at, "{b??}:*"); /* and no generation */
}

static bool is_scan(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       reply->element[1]->type == REDIS_REPLY_ARRAY;
}

/* Looks through all keys, which takes a while where there are many of others'. */
static bool find_keys(redisContext *conn, const struct redis_url *url, bool *ret_any,
                      struct sentence *why)
{
	char pattern[PATTERN_ROOM], cursor[32] = "0";

	put_pattern(pattern, url);
	*ret_any = false;
	do {
		redisReply *reply = redis_asked(
		    conn,
		    redis_ask(conn, "SCAN %s MATCH %s COUNT 1000", cursor, pattern),
		    why);

		if (!reply)
			return false;
		if (is_scan(reply)) {
			snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
			*ret_any = reply->element[1]->elements > 0;
		} else {
			strcpy(cursor, "0");
		}
		freeReplyObject(reply);
	} while (!*ret_any && strcmp(cursor, "0") != 0);
	return true;
}

static bool has_generation(redisContext *conn, const char *key, bool *ret_has,
                           struct sentence *why)
{
	redisReply *reply = redis_asked(conn, redis_ask(conn, "GET %s", key), why);

	if (!reply)
		return false;
	*ret_has = reply->type != REDIS_REPLY_NIL;
	freeReplyObject(reply);
	return true;
}

static bool is_new(const redisReply *generation)
{
	size_t length = strlen(NEW_SINCE);

	return generation->type == REDIS_REPLY_STRING && generation->len > length &&
	       strcmp(generation->str + generation->len - length, NEW_SINCE) == 0;
}

static enum mark greet(redisContext *conn, const struct redis_url *url, const char *key,
                       struct sentence *why)
{
	redisReply *reply = redis_asked(
	    conn,
	    redis_ask(conn, "EVAL %b 1 %s %llu new", redis_greet_script.text,
	              redis_greet_script.count, key, (unsigned long long)url->durable),
	    why);
	enum mark mark;

	if (!reply)
		return MARK_FAILED;
	mark = is_new(reply) ? MARKED : HAD_BEGUN;
	freeReplyObject(reply);
	return mark;
}

static enum mark mark_bucket(redisContext *conn, const struct redis_url *url,
                             unsigned bucket, bool has_keys, struct sentence *why)
{
	char key[KEY_ROOM];
	bool has_begun;

	put_key(key, url, bucket);
	if (!has_generation(conn, key, &has_begun, why))
		return MARK_FAILED;
	if (has_begun)
		return HAD_BEGUN;
	return has_keys ? HAS_KEYS : greet(conn, url, key, why);
}

static void tell(enum mark mark, const struct sentence *why, FILE *out)
{
	switch (mark) {
	case MARKED:
		fputs("it is marked as new: the first ask is granted at once, as "
		      "nothing was granted here before\n",
		      out);
		break;
	case HAD_BEGUN:
		fputs("it is not marked as new: it has begun already\n", out);
		break;
	case HAS_KEYS:
		fputs("it is not marked as new: it has keys of gale's, and may have "
		      "granted more; nothing is granted until that is over\n",
		      out);
		break;
	case MARK_FAILED:
		fprintf(out, "it is not marked as new: %s\n", why->is);
	}
}

void redis_mark(redisContext *conn, const struct redis_url *url, FILE *out)
{
	struct sentence why = { "" };
	enum mark mark = MARK_FAILED;
	bool has_keys;

	if (find_keys(conn, url, &has_keys, &why))
		mark = mark_bucket(conn, url, 0, has_keys, &why);
	tell(mark, &why, out);
}

/* ---- A cluster ------------------------------------------------------------------- */

static bool find_slot(redisContext *conn, const struct redis_url *url, unsigned bucket,
                      long long *ret_slot, struct sentence *why)
{
	char key[KEY_ROOM];
	redisReply *reply;

	put_key(key, url, bucket);
	reply = redis_asked(conn, redis_ask(conn, "CLUSTER KEYSLOT %s", key), why);
	if (!reply)
		return false;
	*ret_slot = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
	freeReplyObject(reply);
	return true;
}

/* False: the server cannot be asked. */
static bool mark_if_in(redisContext *conn, const struct redis_url *url, unsigned bucket,
                       const long long range[2], bool has_keys, unsigned *counts,
                       struct sentence *why)
{
	enum mark mark;
	long long slot;

	if (!find_slot(conn, url, bucket, &slot, why))
		return false;
	if (slot < range[0] || slot > range[1])
		return true;
	mark = mark_bucket(conn, url, bucket, has_keys, why);
	if (mark != MARK_FAILED)
		counts[mark]++;
	return mark != MARK_FAILED;
}

void redis_mark_range(redisContext *conn, const struct redis_url *url, long long first,
                      long long last, FILE *out)
{
	const long long range[2] = { first, last };
	unsigned counts[MARK_FAILED] = { 0 };
	struct sentence why = { "" };
	bool has_keys, good = find_keys(conn, url, &has_keys, &why);

	for (unsigned bucket = 0; good && bucket < BUCKETS; bucket++)
		good = mark_if_in(conn, url, bucket, range, has_keys, counts, &why);
	fprintf(
	    out,
	    "slots %lld to %lld: %u of gale's buckets are marked as new, %u were in "
	    "use, and %u may have been\n",
	    first, last, counts[MARKED], counts[HAD_BEGUN], counts[HAS_KEYS]);
	if (!good)
		fprintf(out, "the others are not marked as new: %s\n", why.is);
}
