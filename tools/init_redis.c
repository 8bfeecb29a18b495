/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_redis.c -- looks at a Redis server: may it forget, and what then?
 *
 *     (sentinels -> which primary?) -> connect, AUTH -> INFO -> lines
 */
#include "tools/init.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stores/url.h"

#define PORT 6379
#define SENTINEL_PORT 26379
#define OLDEST 7 /* server that has all that is needed */
#define LINE 96

static const struct timeval patience = { .tv_sec = 5 };

/* A reply that is no error, or NULL. */
static redisReply *asked(redisContext *conn, redisReply *reply, struct sentence *why)
{
	if (reply && reply->type != REDIS_REPLY_ERROR)
		return reply;
	sentence_say(why, "%.200s", reply ? reply->str : conn->errstr);
	freeReplyObject(reply);
	return NULL;
}

static bool sign_in(redisContext *conn, const char *user, const char *password,
                    struct sentence *why)
{
	redisReply *reply;

	if (!password)
		password = "";
	if (user[0] == '\0' && password[0] == '\0')
		return true;
	if (user[0] != '\0')
		reply = redisCommand(conn, "AUTH %s %s", user, password);
	else
		reply = redisCommand(conn, "AUTH %s", password);
	reply = asked(conn, reply, why);
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
static redisContext *reach_primary(const struct url *url, size_t which, FILE *out,
                                   struct sentence *why)
{
	const struct url_host *host = &url->hosts[which];
	const char *service = url->path[0] == '/' ? url->path + 1 : url->path;
	redisContext *sentinel = reach(host->name, port_of(host, SENTINEL_PORT), why);
	redisContext *primary = NULL;
	redisReply *reply = NULL;

	if (!sentinel)
		return NULL;
	if (sign_in(sentinel, "", url_option(url, "sentinel_password"), why))
		reply =
		    asked(sentinel,
		          redisCommand(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME %s",
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

static redisContext *reach_any(const struct url *url, FILE *out, struct sentence *why)
{
	bool has_sentinels = strcmp(url->scheme, "redis+sentinel") == 0;
	redisContext *conn = NULL;

	if (url->host_count == 0 && !has_sentinels)
		return reach(url->path, 0, why);
	for (size_t i = 0; i < url->host_count && !conn; i++)
		conn = has_sentinels ? reach_primary(url, i, out, why)
		                     : reach(url->hosts[i].name,
		                             port_of(&url->hosts[i], PORT), why);
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

static bool judge_server(const char *info, FILE *out, struct sentence *why)
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
	if (strcmp(mode, "cluster") == 0)
		return sentence_say(why, "it is a node of a cluster");
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

static void tell_bound(const char *info, FILE *out)
{
	char replicas[LINE];

	fputs(
	    "bound: the limit, in every window of up to a minute: after a start, a "
	    "loss or a fail-over nothing is granted until the open window has turned; "
	    "of a longer one what is lost may be granted again, once for each loss\n",
	    out);
	find(info, "connected_slaves", replicas);
	if (atoi(replicas) > 0)
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

static bool look(redisContext *conn, FILE *out, struct sentence *why)
{
	redisReply *info = asked(conn, redisCommand(conn, "INFO"), why);
	redisReply *saves = config_of(conn, "save");
	bool good = info && judge_server(info->str, out, why) &&
	            judge_memory(info->str, out, why);

	if (good) {
		tell_persistence(info->str, saves ? saves->element[1]->str : NULL, out);
		tell_bound(info->str, out);
	}
	freeReplyObject(saves);
	freeReplyObject(info);
	return good;
}

enum init_status init_redis(const char *url, FILE *out, struct sentence *ret_why)
{
	redisContext *conn;
	struct url parts;
	bool good;

	if (!url_parse(url, &parts)) {
		sentence_say(ret_why, "%.200s: no URL of a store", url);
		return INIT_BAD_USE;
	}
	conn = reach_any(&parts, out, ret_why);
	if (!conn)
		return INIT_FAILED;
	good = sign_in(conn, parts.user, parts.password, ret_why) &&
	       look(conn, out, ret_why);
	redisFree(conn);
	return good ? INIT_DONE : INIT_FAILED;
}
