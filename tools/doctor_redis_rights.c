/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctor_redis_rights.c -- tries each command that stores/redis/wire.h says nodes need.
 *
 * INFO, SELECT and CLUSTER SLOTS were asked before.  A server looks at the rights of a command
 * before its arguments.  So commands that write are sent with arguments that are refused, or
 * that change nothing.
 */
#include "tools/doctor_redis.h"

#include <string.h>

#define WORDS_MOST 5
#define KEY_ROOM (REDIS_PREFIX_MAX + 24)
#define LIST_ROOM 192

/* What nodes go without when it is missing. */
enum part {
	PART_ALL,
	PART_HASHES,
	PART_GROUPS,
	PART_FLEETS,
	PART_NUDGES,
	PART_POOLS,
	PART_QUICK,
	PART_NAMES,
	PART_DURABLE,
	PART_CLUSTER,
	PARTS,
};

/* In words, key stands for a key of the prefix, and channel for a channel. */
static const struct right {
	const char *is; /* as an ACL has it */
	enum part part;
	const char *words[WORDS_MOST];
} rights[] = {
	{ "eval", PART_ALL, { "EVAL", "return 1", "0" } },
	{ "evalsha",
	  PART_ALL,
	  { "EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0", "0" } },
	{ "script|load", PART_ALL, { "SCRIPT", "LOAD", "return 1" } },
	{ "time", PART_ALL, { "TIME" } },
	{ "get", PART_ALL, { "GET", "key" } },
	{ "set", PART_ALL, { "SET", "key", "1", "refuse" } },
	{ "setrange", PART_ALL, { "SETRANGE", "key", "0", "" } },
	{ "del", PART_ALL, { "DEL", "key" } },
	{ "hget", PART_HASHES, { "HGET", "key", "f" } },
	{ "hmget", PART_GROUPS, { "HMGET", "key", "f" } },
	{ "hset", PART_HASHES, { "HSET", "key", "f", "1", "refuse" } },
	{ "hdel", PART_HASHES, { "HDEL", "key", "f" } },
	{ "zadd", PART_GROUPS, { "ZADD", "key", "refuse", "m" } },
	{ "zcard", PART_GROUPS, { "ZCARD", "key" } },
	{ "zrange", PART_GROUPS, { "ZRANGE", "key", "0", "0" } },
	{ "zrem", PART_GROUPS, { "ZREM", "key", "m" } },
	{ "pexpireat", PART_HASHES, { "PEXPIREAT", "key", "1" } },
	{ "hgetall", PART_POOLS, { "HGETALL", "key" } },
	{ "exists", PART_FLEETS, { "EXISTS", "key" } },
	{ "publish", PART_NUDGES, { "PUBLISH", "channel", "" } },
	{ "mget", PART_QUICK, { "MGET", "key" } },
	{ "client|setname", PART_NAMES, { "CLIENT", "SETNAME", "gale:doctor" } },
	{ "wait", PART_DURABLE, { "WAIT", "0", "1" } },
	{ "asking", PART_CLUSTER, { "ASKING" } },
	{ "subscribe", PART_NUDGES, { "SUBSCRIBE", "channel" } }, /* the last */
};

static const struct {
	const char *what;
	enum doctor_finding when_missing;
	const char *follows;
} parts[PARTS] = {
	[PART_ALL] = { "rights", DOCTOR_FAIL, "nodes can do nothing here" },
	[PART_HASHES] = { "rights of hashes", DOCTOR_WARN,
	                  "guards of several nodes cannot share a ceiling, and of more "
	                  "than seven nodes that lease a key the others give nothing "
	                  "back" },
	[PART_FLEETS] = { "rights of fleets", DOCTOR_WARN,
	                  "of more than seven nodes that lease a key the others give "
	                  "nothing back" },
	[PART_GROUPS] = { "rights of groups", DOCTOR_WARN,
	                  "guards of several nodes cannot share a ceiling" },
	[PART_POOLS] = { "rights of pools", DOCTOR_WARN,
	                 "processes cannot share a budget of tenants" },
	[PART_NUDGES] = { "rights of nudges", DOCTOR_WARN,
	                  "a node that needs slots waits until the others beat" },
	[PART_QUICK] = { "rights of batches", DOCTOR_WARN, "leases take a longer way" },
	[PART_NAMES] = { "rights of names", DOCTOR_WARN,
	                 "connections have no name in CLIENT LIST" },
	[PART_DURABLE] = { "rights of durable=", DOCTOR_FAIL,
	                   "nodes cannot wait for replicas" },
	[PART_CLUSTER] = { "rights of clusters", DOCTOR_FAIL,
	                   "nodes lose calls while slots move" },
};

struct list {
	char is[LIST_ROOM]; /* "+get +set" */
};

struct found {
	struct list missing[PARTS]; /* the user may not */
	struct list unknown;        /* the server has no such command */
	bool no_keys;
	bool no_channels;
	char refuses[REDIS_LINE]; /* writes; "": it takes them */
};

static void add(struct list *list, const char *sign, const char *right)
{
	size_t used = strlen(list->is);

	snprintf(list->is + used, sizeof(list->is) - used, "%s%s%s", used ? " " : "",
	         sign, right);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* ---- Asking ---------------------------------------------------------------------- */

static redisReply *try_it(redisContext *conn, const struct right *right,
                          const struct redis_url *url)
{
	char key[KEY_ROOM], channel[KEY_ROOM];
	const char *words[WORDS_MOST];
	int count = 0;

	snprintf(key, sizeof(key), "%s{b00}:doctor", url->prefix);
	snprintf(channel, sizeof(channel), "%snudges:doctor", url->prefix);
	for (; count < WORDS_MOST && right->words[count]; count++) {
		words[count] = right->words[count];
		if (strcmp(words[count], "key") == 0)
			words[count] = key;
		else if (strcmp(words[count], "channel") == 0)
			words[count] = channel;
	}
	return redis_ask_words(conn, count, words);
}

/* Of a write whose arguments are wrong: is that all that is wrong? */
static void hear_write(struct found *found, const char *error)
{
	static const char *const kinds[] = { "MISCONF",    "OOM",     "READONLY",
		                             "NOREPLICAS", "LOADING", "MASTERDOWN" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (begins(error, kinds[i]))
			snprintf(found->refuses, sizeof(found->refuses), "%s", error);
}

static void hear(struct found *found, const struct right *right, const char *error)
{
	if (begins(error, "NOPERM") && strstr(error, "ermissions to access"))
		*(strstr(error, "channel") ? &found->no_channels : &found->no_keys) =
		    true;
	else if (begins(error, "NOPERM"))
		add(&found->missing[right->part], "+", right->is);
	else if (begins(error, "ERR") && strstr(error, "nknown ") &&
	         strstr(error, "command"))
		add(&found->unknown, "", right->is);
	else if (strcmp(right->is, "set") == 0)
		hear_write(found, error);
}

static bool is_wanted(enum part part, const struct redis_url *url)
{
	if (part == PART_DURABLE)
		return url->durable > 0;
	return part != PART_CLUSTER || url->is_cluster;
}

/* False: the connection broke. */
static bool ask_all(struct found *found, redisContext *conn,
                    const struct redis_url *url)
{
	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		redisReply *reply;

		if (!is_wanted(rights[i].part, url))
			continue;
		reply = try_it(conn, &rights[i], url);
		if (!reply)
			return false;
		if (reply->type == REDIS_REPLY_ERROR)
			hear(found, &rights[i], reply->str);
		freeReplyObject(reply);
	}
	return true;
}

/* ---- Telling --------------------------------------------------------------------- */

static void tell_missing(struct doctor *doctor, const struct found *found,
                         const char *user)
{
	for (size_t i = 0; i < PARTS; i++)
		if (found->missing[i].is[0] != '\0')
			doctor_say(doctor, parts[i].when_missing, parts[i].what,
			           "%s: ACL SETUSER %s %s", parts[i].follows, user,
			           found->missing[i].is);
}

static void tell_patterns(struct doctor *doctor, const struct found *found,
                          const struct redis_url *url, const char *user)
{
	if (found->no_keys)
		doctor_say(doctor, DOCTOR_FAIL, "rights of keys",
		           "the user may not read and write keys of the prefix: "
		           "ACL SETUSER %s ~%s*",
		           user, url->prefix);
	if (found->no_channels)
		doctor_say(doctor, DOCTOR_WARN, "rights of channels",
		           "a node that needs slots waits until the others beat: "
		           "ACL SETUSER %s &%s*",
		           user, url->prefix);
	if (found->unknown.is[0] != '\0')
		doctor_say(doctor, DOCTOR_FAIL, "commands",
		           "the server knows no %s: take rename-command out of its "
		           "configuration, or choose one that allows them",
		           found->unknown.is);
}

static void tell_writes(struct doctor *doctor, const struct found *found)
{
	if (found->refuses[0] == '\0')
		doctor_say(doctor, DOCTOR_OK, "writes", "the server takes them");
	else
		doctor_say(doctor, DOCTOR_FAIL, "writes",
		           "the server refuses them, and so all calls: %s",
		           found->refuses);
}

static bool lacks_something(const struct found *found)
{
	bool lacks =
	    found->no_keys || found->no_channels || found->unknown.is[0] != '\0';

	for (size_t i = 0; i < PARTS; i++)
		lacks |= found->missing[i].is[0] != '\0';
	return lacks;
}

const char *doctor_redis_user(const struct redis_url *url)
{
	return url->is.user[0] != '\0' ? url->is.user : "default";
}

void doctor_redis_rights(struct doctor *doctor, redisContext *conn,
                         const struct redis_url *url)
{
	const char *user = doctor_redis_user(url);
	struct found found = { .no_keys = false };

	if (!ask_all(&found, conn, url)) {
		doctor_say(doctor, DOCTOR_FAIL, "connection",
		           "the server has closed it: %s: look into its log",
		           conn->errstr);
		return;
	}
	if (!found.no_keys && !strstr(found.missing[PART_ALL].is, "+set"))
		tell_writes(doctor, &found);
	if (!lacks_something(&found))
		doctor_say(doctor, DOCTOR_OK, "rights",
		           "%s may do all that nodes do with keys %s*", user,
		           url->prefix);
	tell_missing(doctor, &found, user);
	tell_patterns(doctor, &found, url, user);
}
