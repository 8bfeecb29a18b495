/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_redis.c -- looks at a Redis server: may it forget, and what then?
 *
 *     (sentinels -> which primary?) -> connect, AUTH, SELECT -> INFO -> lines
 *     a node of a cluster -> CLUSTER SLOTS -> the same of each primary
 */
#include "tools/init.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/init_redis_mark.h"
#include "tools/redis_visit.h"

static bool judge_server(const struct redis_url *url, const char *info, FILE *out,
                         struct sentence *why)
{
	char version[REDIS_LINE], role[REDIS_LINE], replicas[REDIS_LINE],
	    mode[REDIS_LINE];

	redis_line(info, "redis_version", version);
	redis_line(info, "redis_mode", mode);
	redis_line(info, "role", role);
	redis_line(info, "connected_slaves", replicas);
	fprintf(out, "Redis %s, %s, %s, %s replicas\n", version, mode,
	        strcmp(role, "master") == 0 ? "primary" : "replica", replicas);
	if (atoi(version) < REDIS_OLDEST)
		return sentence_say(why, "the server is older than Redis %d",
		                    REDIS_OLDEST);
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
	char most[REDIS_LINE], policy[REDIS_LINE];

	redis_line(info, "maxmemory", most);
	redis_line(info, "maxmemory_policy", policy);
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
	char appends[REDIS_LINE];

	redis_line(info, "aof_enabled", appends);
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

static bool look(redisContext *conn, const struct redis_url *url, FILE *out,
                 bool *has_replicas, struct sentence *why)
{
	redisReply *info = redis_info(conn, why);
	redisReply *saves = redis_config_of(conn, "save");
	char replicas[REDIS_LINE] = "";
	bool good = info && judge_server(url, info->str, out, why) &&
	            judge_memory(info->str, out, why);

	if (good) {
		tell_persistence(info->str, saves ? saves->element[1]->str : NULL, out);
		redis_line(info->str, "connected_slaves", replicas);
	}
	*has_replicas |= atoi(replicas) > 0;
	freeReplyObject(saves);
	freeReplyObject(info);
	return good;
}

static bool look_in(redisContext *conn, const struct redis_url *url, FILE *out,
                    bool *has_replicas, struct sentence *why)
{
	return redis_sign_in(conn, url, why) && redis_choose_db(conn, url->db, why) &&
	       look(conn, url, out, has_replicas, why);
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

static bool look_at_primary(const redisReply *range, const redisContext *asked_of,
                            const struct redis_url *url, FILE *out, bool *has_replicas,
                            struct sentence *why)
{
	const char *host = redis_range_host(range, asked_of);
	int port = redis_range_port(range);
	redisContext *conn = redis_reach(url, host, port, why);
	bool good;

	if (!conn)
		return false;
	fprintf(out, "%s:%d: ", host, port);
	good = look_in(conn, url, out, has_replicas, why);
	redis_leave(conn);
	return good;
}

/* When all are good. */
static void mark_cluster(const redisReply *ranges, const redisContext *asked_of,
                         const struct redis_url *url, FILE *out)
{
	for (size_t i = 0; i < ranges->elements; i++) {
		const redisReply *range = ranges->element[i];
		struct sentence why = { "" };
		redisContext *conn = redis_reach(url, redis_range_host(range, asked_of),
		                                 redis_range_port(range), &why);

		if (conn && redis_sign_in(conn, url, &why))
			redis_mark_range(conn, url, range->element[0]->integer,
			                 range->element[1]->integer, out);
		else
			fprintf(out, "not marked as new: %s\n", why.is);
		if (conn)
			redis_leave(conn);
	}
}

static bool look_at_cluster(redisContext *conn, const struct redis_url *url, FILE *out,
                            bool *has_replicas, struct sentence *why)
{
	redisReply *ranges = NULL;
	bool good;

	if (redis_sign_in(conn, url, why))
		ranges = redis_slots(conn, why);
	good = ranges != NULL;
	for (size_t i = 0; good && i < ranges->elements; i++)
		if (!redis_range_is_seen(ranges, i, conn))
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
	conn = redis_reach_any(&parts, ret_why);
	if (!conn)
		return INIT_FAILED;
	if (parts.service)
		fprintf(out, "the primary of %s is %s:%d\n", parts.service,
		        conn->tcp.host, conn->tcp.port);
	if (parts.is_cluster)
		good = look_at_cluster(conn, &parts, out, &has_replicas, ret_why);
	else
		good = look_in_and_mark(conn, &parts, out, &has_replicas, ret_why);
	redis_leave(conn);
	if (good)
		tell_bound(has_replicas, out);
	return good ? INIT_DONE : INIT_FAILED;
}
