/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctor_redis.c -- each host of the URL, and then each primary, line by line.
 *
 * What INFO says is enough for most; CONFIG says the rest where it may be asked.
 */
#include "tools/doctor_redis.h"

#include <stdlib.h>
#include <string.h>

#define TRIPS 5         /* to ask the time; the shortest counts */
#define FULL_PERCENT 90 /* of maxmemory */
#define PRIMARIES_MOST 128
#define WHERE_ROOM 80

/* ---- The server ------------------------------------------------------------------ */

/* A server that speaks as Redis does and is neither Redis nor Valkey, by a line of INFO. */
static const char *impostor(const char *info)
{
	static const char *const marks[][3] = {
		{ "dragonfly_version", "", "Dragonfly" },
		{ "garnet_version", "", "Garnet" },
		{ "kvrocks_version", "", "Kvrocks" },
		{ "executable", "keydb", "KeyDB" },
	};
	char value[REDIS_LINE];

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		redis_line(info, marks[i][0], value);
		if (value[0] != '\0' && strstr(value, marks[i][1]))
			return marks[i][2];
	}
	return NULL;
}

static void judge_server(struct doctor *doctor, const char *info)
{
	char version[REDIS_LINE], valkey[REDIS_LINE], mode[REDIS_LINE];
	const char *other = impostor(info);

	redis_line(info, "redis_version", version);
	redis_line(info, "valkey_version", valkey);
	redis_line(info, "redis_mode", mode);
	if (atoi(version) < REDIS_OLDEST)
		doctor_say(doctor, DOCTOR_FAIL, "server",
		           "Redis %s is too old: gale needs Redis %d.0 or newer",
		           version, REDIS_OLDEST);
	else if (other)
		doctor_say(doctor, DOCTOR_WARN, "server",
		           "%s: gale is tested with Redis only: run gale store check "
		           "URL, and rely on it only if that finds no difference",
		           other);
	else if (valkey[0] != '\0')
		doctor_say(doctor, DOCTOR_OK, "server", "Valkey %s, %s", valkey, mode);
	else
		doctor_say(doctor, DOCTOR_OK, "server", "Redis %s, %s", version, mode);
}

static void judge_mode(struct doctor *doctor, const struct redis_url *url,
                       const char *info)
{
	char mode[REDIS_LINE];

	redis_line(info, "redis_mode", mode);
	if (!url->is_cluster && strcmp(mode, "cluster") == 0)
		doctor_say(doctor, DOCTOR_FAIL, "mode",
		           "it is a node of a cluster: begin the URL with "
		           "redis+cluster://");
}

static void judge_role(struct doctor *doctor, const char *info)
{
	char role[REDIS_LINE], loading[REDIS_LINE], host[REDIS_LINE], port[REDIS_LINE];

	redis_line(info, "role", role);
	redis_line(info, "loading", loading);
	redis_line(info, "master_host", host);
	redis_line(info, "master_port", port);
	if (strcmp(role, "master") != 0)
		doctor_say(doctor, DOCTOR_FAIL, "role",
		           "it is a replica, which nodes do not use: name its primary, "
		           "%s:%s, or the sentinels in the URL",
		           host, port);
	else if (strcmp(loading, "1") == 0)
		doctor_say(doctor, DOCTOR_FAIL, "role",
		           "it is still loading its data, and nodes wait: ask again "
		           "when it has ended");
	else
		doctor_say(doctor, DOCTOR_OK, "role", "primary");
}

/* ---- What it keeps --------------------------------------------------------------- */

static void judge_eviction(struct doctor *doctor, const char *info)
{
	char most[REDIS_LINE], policy[REDIS_LINE], used[REDIS_LINE];
	unsigned long long bytes, used_bytes;

	redis_line(info, "maxmemory", most);
	redis_line(info, "maxmemory_policy", policy);
	redis_line(info, "used_memory", used);
	bytes = strtoull(most, NULL, 10);
	used_bytes = strtoull(used, NULL, 10);
	if (bytes == 0) {
		doctor_say(doctor, DOCTOR_OK, "eviction",
		           "none: the server has no maxmemory");
		return;
	}
	if (strcmp(policy, "noeviction") != 0)
		doctor_say(doctor, DOCTOR_FAIL, "eviction",
		           "maxmemory-policy is %s: an evicted key is a limit that is "
		           "granted again: CONFIG SET maxmemory-policy noeviction",
		           policy);
	else
		doctor_say(doctor, DOCTOR_OK, "eviction",
		           "none: maxmemory-policy is noeviction, of %llu bytes",
		           bytes);
	if (used_bytes / FULL_PERCENT >= bytes / 100)
		doctor_say(doctor, DOCTOR_WARN, "memory",
		           "%llu of %llu bytes are used: a full server grants "
		           "nothing: raise maxmemory",
		           used_bytes, bytes);
}

#define FORGETS                                                                        \
	"a restart of the server forgets what was spent of windows longer than a "     \
	"minute, and nodes remind it only of what they know: set appendonly yes"

static void judge_persistence(struct doctor *doctor, const char *info,
                              redisContext *conn)
{
	redisReply *saves = redis_config_of(conn, "save");
	redisReply *syncs = redis_config_of(conn, "appendfsync");
	char appends[REDIS_LINE];

	redis_line(info, "aof_enabled", appends);
	if (strcmp(appends, "1") == 0)
		doctor_say(doctor, DOCTOR_OK, "persistence",
		           "an append-only file, appendfsync %s",
		           syncs ? syncs->element[1]->str : "unknown");
	else if (saves && saves->element[1]->str[0] != '\0')
		doctor_say(doctor, DOCTOR_WARN, "persistence",
		           "snapshots only, of now and then: " FORGETS);
	else
		doctor_say(doctor, DOCTOR_WARN, "persistence",
		           "no append-only file: " FORGETS);
	if (!saves)
		doctor_say(
		    doctor, DOCTOR_WARN, "settings",
		    "CONFIG GET is refused, as by managed servers: snapshots and "
		    "min-replicas-to-write cannot be seen: look them up where "
		    "the server is managed");
	freeReplyObject(saves);
	freeReplyObject(syncs);
}

/* ---- Replicas -------------------------------------------------------------------- */

/* slave0:ip=127.0.0.1,port=7001,state=online,offset=70,lag=0 */
static void judge_each_replica(struct doctor *doctor, const char *info,
                               unsigned long long count)
{
	char name[32], line[REDIS_LINE];

	strcpy(line, "?");
	for (unsigned i = 0; i < count && line[0] != '\0'; i++) {
		snprintf(name, sizeof(name), "slave%u", i);
		redis_line(info, name, line);
		if (!strstr(line, "state=online"))
			doctor_say(doctor, DOCTOR_WARN, "replicas",
			           "one is not online (%s): it could not take over: "
			           "look into its log",
			           line);
	}
}

/* Only min-replicas-to-write ends the grants of a primary that was cut off. */
static void judge_split(struct doctor *doctor, redisContext *conn)
{
	redisReply *least = redis_config_of(conn, "min-replicas-to-write");

	if (least && strcmp(least->element[1]->str, "0") == 0)
		doctor_say(doctor, DOCTOR_WARN, "split",
		           "min-replicas-to-write is 0: a primary that is cut off goes "
		           "on granting beside the replica that took over, up to the "
		           "limit once more: CONFIG SET min-replicas-to-write 1");
	else if (least)
		doctor_say(doctor, DOCTOR_OK, "split",
		           "a primary that is cut off stops granting: "
		           "min-replicas-to-write is %s",
		           least->element[1]->str);
	freeReplyObject(least);
}

static void judge_replicas(struct doctor *doctor, const struct redis_url *url,
                           const char *info, redisContext *conn)
{
	char text[REDIS_LINE];
	unsigned long long count;

	redis_line(info, "connected_slaves", text);
	count = strtoull(text, NULL, 10);
	if (count < url->durable)
		doctor_say(doctor, DOCTOR_FAIL, "replicas",
		           "%llu, and durable=%llu in the URL needs %llu: nodes refuse "
		           "the server: add replicas, or take durable= out",
		           count, (unsigned long long)url->durable,
		           (unsigned long long)url->durable);
	else if (url->durable > 0)
		doctor_say(doctor, DOCTOR_OK, "replicas",
		           "%llu, of which %llu confirm each grant: one of them can "
		           "take over and grants at once",
		           count, (unsigned long long)url->durable);
	else if (count > 0)
		doctor_say(doctor, DOCTOR_WARN, "replicas",
		           "%llu, which may be behind: after a fail-over no call is "
		           "granted until the window ends, for at most a minute, and "
		           "units of longer windows may be granted again: durable=1 in "
		           "the URL of all nodes ends that",
		           count);
	else
		doctor_say(doctor, DOCTOR_OK, "replicas",
		           "none: while this server is down, so is the store");
	judge_each_replica(doctor, info, count);
	if (count > 0)
		judge_split(doctor, conn);
}

/* ---- The clock ------------------------------------------------------------------- */

uint64_t doctor_redis_time(redisContext *conn)
{
	redisReply *reply = redis_ask(conn, "TIME");
	uint64_t us = 0;

	if (reply)
		us = strtoull(redis_text(reply, 0), NULL, 10) * 1000000 +
		     strtoull(redis_text(reply, 1), NULL, 10);
	freeReplyObject(reply);
	return us;
}

/* A right that is missing is told with the others. */
static void judge_clock(struct doctor *doctor, redisContext *conn)
{
	uint64_t least_us = UINT64_MAX;
	int64_t ahead_us = 0;

	for (int i = 0; i < TRIPS; i++) {
		uint64_t before = doctor_wall_us(), told = doctor_redis_time(conn);
		uint64_t trip = doctor_wall_us() - before;

		if (told == 0)
			return;
		if (trip < least_us) {
			least_us = trip;
			ahead_us = (int64_t)told - (int64_t)(before + trip / 2);
		}
	}
	doctor_judge_clock(doctor, ahead_us, least_us);
}

/* ---- One server ------------------------------------------------------------------ */

static void judge_all(struct doctor *doctor, const struct redis_url *url,
                      redisContext *conn, const char *info)
{
	judge_server(doctor, info);
	judge_mode(doctor, url, info);
	judge_role(doctor, info);
	judge_eviction(doctor, info);
	judge_persistence(doctor, info, conn);
	judge_replicas(doctor, url, info, conn);
	judge_clock(doctor, conn);
	if (!url->is_cluster)
		doctor_redis_state(doctor, conn, url, info);
	doctor_redis_rights(doctor, conn, url);
}

static void say_no_answer(struct doctor *doctor, const struct sentence *why)
{
	doctor_say(
	    doctor, DOCTOR_FAIL, "connection",
	    "the server cannot be asked: %s: see whether it runs, and whether it "
	    "is a Redis",
	    why->is);
}

/* True: it has let the user in. */
static bool enter(struct doctor *doctor, const struct redis_url *url,
                  redisContext *conn)
{
	struct sentence why;

	if (redis_sign_in(conn, url, &why) && redis_choose_db(conn, url->db, &why))
		return true;
	if (conn->err)
		say_no_answer(doctor, &why);
	else
		doctor_say(
		    doctor, DOCTOR_FAIL, "connection",
		    "the server does not let this user in: %s: mend the user, the "
		    "password or the database in the URL",
		    why.is);
	return false;
}

static void visit(struct doctor *doctor, const struct redis_url *url,
                  redisContext *conn)
{
	struct sentence why;
	redisReply *info;

	if (!enter(doctor, url, conn))
		return;
	info = redis_info(conn, &why);
	if (info)
		judge_all(doctor, url, conn, info->str);
	else if (conn->err)
		say_no_answer(doctor, &why);
	else
		doctor_say(doctor, DOCTOR_FAIL, "connection",
		           "INFO is refused: %s: ACL SETUSER %s +info", why.is,
		           doctor_redis_user(url));
	freeReplyObject(info);
}

/* ---- A cluster ------------------------------------------------------------------- */

static void visit_primary(struct doctor *doctor, const struct redis_url *url,
                          const redisReply *range, const redisContext *asked_of)
{
	const char *host = redis_range_host(range, asked_of);
	int port = redis_range_port(range);
	char where[WHERE_ROOM];
	struct sentence why;
	redisContext *conn;

	snprintf(where, sizeof(where), "%.64s:%d", host, port);
	doctor->where = where;
	conn = redis_reach(url, host, port, &why);
	if (conn)
		visit(doctor, url, conn);
	else
		doctor_say(doctor, DOCTOR_FAIL, "connection",
		           "%s: nodes must reach each primary under the address that "
		           "the cluster tells",
		           why.is);
	if (conn)
		redis_leave(conn);
	doctor->where = "";
}

/* Of a cluster whose user was let in. */
static void visit_primaries(struct doctor *doctor, const struct redis_url *url,
                            const redisReply *ranges, const redisContext *conn)
{
	unsigned count = 0;

	for (size_t i = 0; i < ranges->elements; i++)
		count += !redis_range_is_seen(ranges, i, conn);
	if (count > PRIMARIES_MOST) {
		doctor_say(doctor, DOCTOR_FAIL, "cluster",
		           "%u primaries: gale knows at most %d", count,
		           PRIMARIES_MOST);
		return;
	}
	doctor_say(doctor, DOCTOR_OK, "cluster", "%u primaries serve all %d slots",
	           count, REDIS_SLOTS);
	for (size_t i = 0; i < ranges->elements; i++)
		if (!redis_range_is_seen(ranges, i, conn))
			visit_primary(doctor, url, ranges->element[i], conn);
}

static void visit_cluster(struct doctor *doctor, const struct redis_url *url,
                          redisContext *conn)
{
	struct sentence why;
	redisReply *ranges;

	if (!enter(doctor, url, conn))
		return;
	ranges = redis_slots(conn, &why);
	if (ranges)
		visit_primaries(doctor, url, ranges, conn);
	else
		doctor_say(doctor, DOCTOR_FAIL, "cluster",
		           "%s: begin the URL with redis:// if it is none, give the "
		           "user +cluster|slots, or mend the cluster",
		           why.is);
	freeReplyObject(ranges);
}

/* ---- All of it ------------------------------------------------------------------- */

/* The first that answers; each other one is tried, too, as it is there for when that one is
 * down. */
static redisContext *reach_hosts(struct doctor *doctor, const struct redis_url *url)
{
	redisContext *first = NULL;
	struct sentence why;
	size_t silent = 0;

	if (url->is.host_count == 0) {
		first = redis_reach(url, url->is.path, 0, &why);
		silent = !first;
	}
	for (size_t i = 0; i < url->is.host_count; i++) {
		struct sentence its;
		redisContext *conn = redis_reach_host(url, i, &its);

		if (!conn) {
			silent++;
			why = its;
		} else if (first) {
			redis_leave(conn);
		} else {
			first = conn;
		}
	}
	if (!first)
		doctor_say(doctor, DOCTOR_FAIL, "connection",
		           "%s: start the server, or mend the host, the port or the "
		           "service in the URL",
		           why.is);
	else if (silent > 0)
		doctor_say(doctor, DOCTOR_WARN, "connection",
		           "%zu of the URL's hosts cannot be used: %s: the others must "
		           "do: mend it",
		           silent, why.is);
	return first;
}

static void tell_reached(struct doctor *doctor, const struct redis_url *url,
                         const redisContext *conn)
{
	if (url->is.host_count == 0)
		doctor_say(doctor, DOCTOR_OK, "connection", "%s", url->is.path);
	else
		doctor_say(doctor, DOCTOR_OK, "connection", "%s:%d%s%s", conn->tcp.host,
		           conn->tcp.port, url->service ? ", the primary of " : "",
		           url->service ? url->service : "");
}

void doctor_redis(struct doctor *doctor, const char *url)
{
	struct redis_url parts;
	struct url_fault fault;
	redisContext *conn;

	if (!redis_url_parse(url, &parts, &fault)) { /* gale_url_check let it pass */
		doctor_say(doctor, DOCTOR_FAIL, "connection", "%s", fault.text);
		return;
	}
	conn = reach_hosts(doctor, &parts);
	if (!conn)
		return;
	tell_reached(doctor, &parts, conn);
	if (parts.is_cluster)
		visit_cluster(doctor, &parts, conn);
	else
		visit(doctor, &parts, conn);
	redis_leave(conn);
}
