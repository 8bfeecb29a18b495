/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_redis.c -- looks at a Redis server: may it forget, and what then?
 *
 *     (sentinels -> which primary?) -> connect, AUTH, SELECT -> INFO -> lines
 *     a node of a cluster -> CLUSTER SLOTS -> the same of each primary
 */
#include "tools/init.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/url.h"
#include "tools/init_redis_mark.h"

#define OLDEST 7 /* server that has all that is needed */
#define LINE 96
#define SLOTS 16384 /* of a cluster */

static const struct timeval patience = { .tv_sec = 5 };

static bool sign_in(redisContext *conn, const char *user, const char *password,
                    struct sentence *why)
{
	redisReply *reply;

	if (user[0] == '\0' && password[0] == '\0')
		return true;
	if (user[0] != '\0')
		reply = redisCommand(conn, "AUTH %s %s", user, password);
	else
		reply = redisCommand(conn, "AUTH %s", password);
	reply = redis_asked(conn, reply, why);
	freeReplyObject(reply);
	return reply != NULL;
}

static redisContext *reach(const char *host, int port, struct sentence *why)
{
	redisContext *conn = port == 0 ? redisConnectUnixWithTimeout(host, patience)
	                               : redisConnectWithTimeout(host, port, patience);

	if (conn && !conn->err && redisSetTimeout(conn, patience) == REDIS_OK)
		return conn;
	sentence_say(why, "cannot connect to %.100s: %.150s", host,
	             conn ? conn->errstr : "no memory");
	if (conn)
		redisFree(conn);
	return NULL;
}

/* ---- Where it is ----------------------------------------------------------------- */

static int port_of(const struct url_host *host, int other)
{
	return host->port != 0 ? host->port : other;
}

/* Names would have to be looked up while asks wait: nodes do not (stores/redis/scout.c). */
static bool is_address(const char *text)
{
	struct in6_addr ignored;

	return inet_pton(AF_INET, text, &ignored) == 1 ||
	       inet_pton(AF_INET6, text, &ignored) == 1;
}

/* What this sentinel says. */
static redisContext *reach_primary(const struct redis_url *url, size_t which, FILE *out,
                                   struct sentence *why)
{
	const struct url_host *host = &url->is.hosts[which];
	const char *service = url->service;
	redisContext *sentinel =
	    reach(host->name, port_of(host, REDIS_SENTINEL_PORT), why);
	redisContext *primary = NULL;
	redisReply *reply = NULL;

	if (!sentinel)
		return NULL;
	if (sign_in(sentinel, "", url->sentinel_password, why))
		reply = redis_asked(sentinel,
		                    redisCommand(sentinel,
		                                 "SENTINEL GET-MASTER-ADDR-BY-NAME %s",
		                                 service),
		                    why);
	if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    !is_address(reply->element[0]->str)) {
		sentence_say(
		    why, "the sentinel %.100s tells %.100s, and must tell an address",
		    host->name, reply->element[0]->str);
	} else if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
		fprintf(out, "%s: the primary of %s is %s:%s\n", host->name, service,
		        reply->element[0]->str, reply->element[1]->str);
		primary =
		    reach(reply->element[0]->str, atoi(reply->element[1]->str), why);
	} else if (reply) {
		sentence_say(why, "the sentinel %.100s knows no service %.100s",
		             host->name, service);
	}
	freeReplyObject(reply);
	redisFree(sentinel);
	return primary;
}

static redisContext *reach_any(const struct redis_url *url, FILE *out,
                               struct sentence *why)
{
	const struct url *is = &url->is;
	redisContext *conn = NULL;

	if (is->host_count == 0)
		return reach(is->path, 0, why);
	for (size_t i = 0; i < is->host_count && !conn; i++)
		conn = url->service ? reach_primary(url, i, out, why)
		                    : reach(is->hosts[i].name,
		                            port_of(&is->hosts[i], REDIS_PORT), why);
	return conn;
}

/* ---- What it is ------------------------------------------------------------------ */

/* The value of a line of INFO's, or "". */
static void find(const char *info, const char *name, char value[LINE])
{
	size_t length = strlen(name);
	const char *at = info;

	value[0] = '\0';
	while (at && (strncmp(at, name, length) != 0 || at[length] != ':')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (at)
		snprintf(value, LINE, "%.*s", (int)strcspn(at + length + 1, "\r\n"),
		         at + length + 1);
}

static bool judge_server(const struct redis_url *url, const char *info, FILE *out,
                         struct sentence *why)
{
	char version[LINE], role[LINE], replicas[LINE], mode[LINE];

	find(info, "redis_version", version);
	find(info, "redis_mode", mode);
	find(info, "role", role);
	find(info, "connected_slaves", replicas);
	fprintf(out, "Redis %s, %s, %s, %s replicas\n", version, mode,
	        strcmp(role, "master") == 0 ? "primary" : "replica", replicas);
	if (atoi(version) < OLDEST)
		return sentence_say(why, "the server is older than Redis %d", OLDEST);
	if (strcmp(role, "master") != 0)
		return sentence_say(why, "it is a replica: name its primary, or the "
		                         "sentinels");
	if (!url->is_cluster && strcmp(mode, "cluster") == 0)
		return sentence_say(why, "it is a node of a cluster, which "
		                         "redis+cluster:// asks");
	if ((uint64_t)atoi(replicas) < url->durable)
		return sentence_say(why, "it has fewer replicas than durable= says");
	return true;
}

static bool judge_memory(const char *info, FILE *out, struct sentence *why)
{
	char most[LINE], policy[LINE];

	find(info, "maxmemory", most);
	find(info, "maxmemory_policy", policy);
	if (strcmp(most, "0") == 0)
		fputs("memory: no maximum, so no key is evicted\n", out);
	else
		fprintf(out, "memory: at most %s bytes, then %s\n", most, policy);
	if (strcmp(most, "0") == 0 || strcmp(policy, "noeviction") == 0)
		return true;
	return sentence_say(why,
	                    "maxmemory-policy is %s: a key that is evicted is a limit "
	                    "granted again, unnoticed; set it to noeviction",
	                    policy);
}

static void tell_persistence(const char *info, const char *saves, FILE *out)
{
	char appends[LINE];

	find(info, "aof_enabled", appends);
	fprintf(out, "persistence: %s\n",
	        strcmp(appends, "1") == 0
	            ? "an append-only file; the last second may be "
	              "lost, unless appendfsync is always"
	        : !saves           ? "no append-only file"
	        : saves[0] != '\0' ? "snapshots; what came after the last is lost"
	                           : "none");
}

static void tell_bound(bool has_replicas, FILE *out)
{
	fputs(
	    "bound: the limit, in every window of up to a minute: after a start, a "
	    "loss or a fail-over nothing is granted until the open window has turned; "
	    "of a longer one what is lost may be granted again, once for each loss\n",
	    out);
	if (has_replicas)
		fputs("while a replica takes over: a primary that lives on without "
		      "knowing grants the limit once more; min-replicas-to-write "
		      "ends that\n",
		      out);
}

static redisReply *config_of(redisContext *conn, const char *name)
{
	redisReply *reply = redisCommand(conn, "CONFIG GET %s", name);

	if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
		return reply;
	freeReplyObject(reply); /* it may be forbidden */
	return NULL;
}

static bool choose_db(redisContext *conn, uint64_t db, struct sentence *why)
{
	redisReply *reply;

	if (db == 0)
		return true;
	reply = redis_asked(
	    conn, redisCommand(conn, "SELECT %llu", (unsigned long long)db), why);
	freeReplyObject(reply);
	return reply != NULL;
}

static bool look(redisContext *conn, const struct redis_url *url, FILE *out,
                 bool *has_replicas, struct sentence *why)
{
	redisReply *info = redis_asked(conn, redisCommand(conn, "INFO"), why);
	redisReply *saves = config_of(conn, "save");
	char replicas[LINE] = "";
	bool good = info && judge_server(url, info->str, out, why) &&
	            judge_memory(info->str, out, why);

	if (good) {
		tell_persistence(info->str, saves ? saves->element[1]->str : NULL, out);
		find(info->str, "connected_slaves", replicas);
	}
	*has_replicas |= atoi(replicas) > 0;
	freeReplyObject(saves);
	freeReplyObject(info);
	return good;
}

static bool look_in(redisContext *conn, const struct redis_url *url, FILE *out,
                    bool *has_replicas, struct sentence *why)
{
	return sign_in(conn, url->is.user, url->is.password, why) &&
	       choose_db(conn, url->db, why) && look(conn, url, out, has_replicas, why);
}

static bool look_in_and_mark(redisContext *conn, const struct redis_url *url, FILE *out,
                             bool *has_replicas, struct sentence *why)
{
	if (!look_in(conn, url, out, has_replicas, why))
		return false;
	redis_mark(conn, url, out);
	return true;
}

/* ---- A cluster ------------------------------------------------------------------- */

/* Of CLUSTER SLOTS: first, last, and the primary's address and port. */
static bool is_range(const redisReply *range)
{
	return range->type == REDIS_REPLY_ARRAY && range->elements >= 3 &&
	       range->element[0]->type == REDIS_REPLY_INTEGER &&
	       range->element[1]->type == REDIS_REPLY_INTEGER &&
	       range->element[2]->type == REDIS_REPLY_ARRAY &&
	       range->element[2]->elements >= 2 &&
	       range->element[2]->element[1]->type == REDIS_REPLY_INTEGER;
}

/* All have servers? */
static bool are_whole(const redisReply *ranges, struct sentence *why)
{
	long long count = 0;

	for (size_t i = 0; i < ranges->elements; i++) {
		const redisReply *range = ranges->element[i];

		if (!is_range(range))
			return sentence_say(why, "what it says of slots is strange");
		count += range->element[1]->integer - range->element[0]->integer + 1;
	}
	return count == SLOTS || sentence_say(why, "%lld of %d slots have no server",
	                                      SLOTS - count, SLOTS);
}

/* A server that does not know its own address tells none. */
static const char *host_of(const redisReply *range, const redisContext *asked_of)
{
	const redisReply *host = range->element[2]->element[0];
	bool is_told = host->type == REDIS_REPLY_STRING && host->len > 0;

	return is_told ? host->str : asked_of->tcp.host;
}

static bool was_before(const redisReply *ranges, size_t which, const redisContext *conn)
{
	const redisReply *range = ranges->element[which];

	for (size_t i = 0; i < which; i++)
		if (ranges->element[i]->element[2]->element[1]->integer ==
		        range->element[2]->element[1]->integer &&
		    strcmp(host_of(ranges->element[i], conn), host_of(range, conn)) ==
		        0)
			return true;
	return false;
}

static bool look_at_primary(const redisReply *range, const redisContext *asked_of,
                            const struct redis_url *url, FILE *out, bool *has_replicas,
                            struct sentence *why)
{
	const char *host = host_of(range, asked_of);
	int port = (int)range->element[2]->element[1]->integer;
	redisContext *conn = reach(host, port, why);
	bool good;

	if (!conn)
		return false;
	fprintf(out, "%s:%d: ", host, port);
	good = look_in(conn, url, out, has_replicas, why);
	redisFree(conn);
	return good;
}

/* When all are good. */
static void mark_cluster(const redisReply *ranges, const redisContext *asked_of,
                         const struct redis_url *url, FILE *out)
{
	for (size_t i = 0; i < ranges->elements; i++) {
		const redisReply *range = ranges->element[i];
		struct sentence why = { "" };
		redisContext *conn =
		    reach(host_of(range, asked_of),
		          (int)range->element[2]->element[1]->integer, &why);

		if (conn && sign_in(conn, url->is.user, url->is.password, &why))
			redis_mark_range(conn, url, range->element[0]->integer,
			                 range->element[1]->integer, out);
		else
			fprintf(out, "not marked as new: %s\n", why.is);
		if (conn)
			redisFree(conn);
	}
}

static bool look_at_cluster(redisContext *conn, const struct redis_url *url, FILE *out,
                            bool *has_replicas, struct sentence *why)
{
	redisReply *ranges = NULL;
	bool good;

	if (sign_in(conn, url->is.user, url->is.password, why))
		ranges = redis_asked(conn, redisCommand(conn, "CLUSTER SLOTS"), why);
	good = ranges && are_whole(ranges, why);
	for (size_t i = 0; good && i < ranges->elements; i++)
		if (!was_before(ranges, i, conn))
			good = look_at_primary(ranges->element[i], conn, url, out,
			                       has_replicas, why);
	if (good)
		mark_cluster(ranges, conn, url, out);
	freeReplyObject(ranges);
	return good;
}

/* ---- All of it ------------------------------------------------------------------- */

enum init_status init_redis(const char *url, FILE *out, struct sentence *ret_why)
{
	struct redis_url parts;
	struct url_fault fault;
	redisContext *conn;
	bool good, has_replicas = false;

	if (!redis_url_parse(url, &parts, &fault)) {
		sentence_say(ret_why, "%s", fault.text);
		return INIT_BAD_USE;
	}
	conn = reach_any(&parts, out, ret_why);
	if (!conn)
		return INIT_FAILED;
	if (parts.is_cluster)
		good = look_at_cluster(conn, &parts, out, &has_replicas, ret_why);
	else
		good = look_in_and_mark(conn, &parts, out, &has_replicas, ret_why);
	redisFree(conn);
	if (good)
		tell_bound(has_replicas, out);
	return good ? INIT_DONE : INIT_FAILED;
}
