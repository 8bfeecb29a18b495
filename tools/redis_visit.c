/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_visit.c -- hiredis, one command at a time.
 *
 * Not redisCommand: it waits for each part of a reply anew, and so without end for a server that
 * never says all.
 */
#define _GNU_SOURCE
#include "tools/redis_visit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/tunnel.h"

static const struct timeval patience = { .tv_sec = REDIS_VISIT_S };

/* ---- One command ----------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void say_late(redisContext *conn)
{
	conn->err = REDIS_ERR_OTHER;
	snprintf(conn->errstr, sizeof(conn->errstr), "it does not answer within %d s",
	         REDIS_VISIT_S);
}

static bool write_all(redisContext *conn)
{
	int done = 0;

	while (!done) {
		if (redisBufferWrite(conn, &done) != REDIS_OK)
			return false;
	}
	return true;
}

static redisReply *hear(redisContext *conn)
{
	int64_t deadline = now_ms() + 1000 * REDIS_VISIT_S;
	struct pollfd from = { .fd = conn->fd, .events = POLLIN };
	void *reply = NULL;
	int64_t left;

	if (!write_all(conn))
		return NULL;
	while (redisGetReplyFromReader(conn, &reply) == REDIS_OK && !reply) {
		left = deadline - now_ms();
		if (left <= 0 || poll(&from, 1, (int)left) == 0) {
			say_late(conn);
			return NULL;
		}
		if (redisBufferRead(conn) != REDIS_OK)
			return NULL;
	}
	return reply;
}

redisReply *redis_ask(redisContext *conn, const char *format, ...)
{
	va_list arguments;
	int added;

	va_start(arguments, format);
	added = redisvAppendCommand(conn, format, arguments);
	va_end(arguments);
	return added == REDIS_OK ? hear(conn) : NULL;
}

redisReply *redis_ask_words(redisContext *conn, int count, const char **words)
{
	return redisAppendCommandArgv(conn, count, words, NULL) == REDIS_OK ? hear(conn)
	                                                                    : NULL;
}

static bool is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
}

const char *redis_text(const redisReply *array, size_t which)
{
	bool is = array->type == REDIS_REPLY_ARRAY && which < array->elements &&
	          is_text(array->element[which]);

	return is ? array->element[which]->str : "";
}

redisReply *redis_asked(redisContext *conn, redisReply *reply, struct sentence *why)
{
	if (reply && reply->type != REDIS_REPLY_ERROR)
		return reply;
	sentence_say(why, "%.200s", reply ? reply->str : conn->errstr);
	freeReplyObject(reply);
	return NULL;
}

/* ---- Signing in ------------------------------------------------------------------ */

static bool sign_in_as(redisContext *conn, const char *user, const char *password,
                       struct sentence *why)
{
	redisReply *reply;

	if (user[0] == '\0' && password[0] == '\0')
		return true;
	if (user[0] != '\0')
		reply = redis_ask(conn, "AUTH %s %s", user, password);
	else
		reply = redis_ask(conn, "AUTH %s", password);
	reply = redis_asked(conn, reply, why);
	freeReplyObject(reply);
	return reply != NULL;
}

bool redis_sign_in(redisContext *conn, const struct redis_url *url,
                   struct sentence *why)
{
	return sign_in_as(conn, url->is.user, url->is.password, why);
}

bool redis_choose_db(redisContext *conn, uint64_t db, struct sentence *why)
{
	redisReply *reply;

	if (db == 0)
		return true;
	reply = redis_asked(
	    conn, redis_ask(conn, "SELECT %llu", (unsigned long long)db), why);
	freeReplyObject(reply);
	return reply != NULL;
}

/* ---- Where it is ----------------------------------------------------------------- */

static redisContext *reach_plain(const char *host, int port)
{
	return port == 0 ? redisConnectUnixWithTimeout(host, patience)
	                 : redisConnectWithTimeout(host, port, patience);
}

/* By a plain socket that leads there; hiredis frees the name of the host. */
static redisContext *reach_in_tls(const struct redis_url *url, const char *host,
                                  int port, struct sentence *why)
{
	int fd = tunnel_open(url, host, port, REDIS_VISIT_S, why);
	redisContext *conn = fd >= 0 ? redisConnectFd(fd) : NULL;

	if (conn) {
		conn->tcp.host = strdup(host);
		conn->tcp.port = port;
	} else if (fd >= 0) {
		close(fd);
		tunnel_close(fd);
	}
	return conn;
}

void redis_leave(redisContext *conn)
{
	int fd = conn->fd;

	redisFree(conn);
	tunnel_close(fd);
}

static void say_unreached(struct sentence *why, const char *host, int port,
                          const char *error)
{
	if (port == 0)
		sentence_say(why, "cannot connect to %.100s: %.200s", host, error);
	else
		sentence_say(why, "cannot connect to %.100s, port %d: %.200s", host,
		             port, error);
}

redisContext *redis_reach(const struct redis_url *url, const char *host, int port,
                          struct sentence *why)
{
	struct sentence its = { "no memory" };
	redisContext *conn = url->is_secure ? reach_in_tls(url, host, port, &its)
	                                    : reach_plain(host, port);

	if (conn && !conn->err && redisSetTimeout(conn, patience) == REDIS_OK)
		return conn;
	say_unreached(why, host, port, conn ? conn->errstr : its.is);
	if (conn)
		redis_leave(conn);
	return NULL;
}

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

/* What a sentinel says is a host and a port. */
static redisContext *follow(const struct redis_url *url, const redisReply *told,
                            const char *sentinel, struct sentence *why)
{
	const char *host;
	int port;

	if (told->type != REDIS_REPLY_ARRAY || told->elements != 2) {
		sentence_say(why, "the sentinel %.100s knows no service %.100s",
		             sentinel, url->service);
		return NULL;
	}
	host = redis_text(told, 0);
	if (is_address(host) && sscanf(redis_text(told, 1), "%d", &port) == 1)
		return redis_reach(url, host, port, why);
	sentence_say(why, "the sentinel %.100s tells %.100s, and must tell an address",
	             sentinel, host);
	return NULL;
}

static redisContext *reach_primary(const struct redis_url *url, size_t which,
                                   struct sentence *why)
{
	const struct url_host *host = &url->is.hosts[which];
	redisContext *sentinel =
	    redis_reach(url, host->name, port_of(host, REDIS_SENTINEL_PORT), why);
	redisContext *primary = NULL;
	redisReply *reply = NULL;

	if (!sentinel)
		return NULL;
	if (sign_in_as(sentinel, "", url->sentinel_password, why))
		reply = redis_asked(sentinel,
		                    redis_ask(sentinel,
		                              "SENTINEL GET-MASTER-ADDR-BY-NAME %s",
		                              url->service),
		                    why);
	if (reply)
		primary = follow(url, reply, host->name, why);
	freeReplyObject(reply);
	redis_leave(sentinel);
	return primary;
}

redisContext *redis_reach_host(const struct redis_url *url, size_t which,
                               struct sentence *why)
{
	const struct url_host *host = &url->is.hosts[which];

	return url->service
	           ? reach_primary(url, which, why)
	           : redis_reach(url, host->name, port_of(host, REDIS_PORT), why);
}

redisContext *redis_reach_any(const struct redis_url *url, struct sentence *why)
{
	redisContext *conn = NULL;

	if (url->is.host_count == 0)
		return redis_reach(url, url->is.path, 0, why);
	for (size_t i = 0; i < url->is.host_count && !conn; i++)
		conn = redis_reach_host(url, i, why);
	return conn;
}

/* ---- What it is ------------------------------------------------------------------ */

void redis_line(const char *info, const char *name, char value[REDIS_LINE])
{
	size_t length = strlen(name);
	const char *at = info;

	value[0] = '\0';
	while (at && (strncmp(at, name, length) != 0 || at[length] != ':')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (at)
		snprintf(value, REDIS_LINE, "%.*s",
		         (int)strcspn(at + length + 1, "\r\n"), at + length + 1);
}

redisReply *redis_info(redisContext *conn, struct sentence *why)
{
	redisReply *info = redis_asked(conn, redis_ask(conn, "INFO"), why);

	if (!info || is_text(info))
		return info;
	freeReplyObject(info);
	conn->err = REDIS_ERR_PROTOCOL;
	sentence_say(why, "what it says to INFO is no text");
	return NULL;
}

redisReply *redis_config_of(redisContext *conn, const char *name)
{
	redisReply *reply = redis_ask(conn, "CONFIG GET %s", name);

	if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    is_text(reply->element[1]))
		return reply;
	freeReplyObject(reply); /* it may be forbidden */
	return NULL;
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
	return count == REDIS_SLOTS ||
	       sentence_say(why, "%lld of %d slots have no server", REDIS_SLOTS - count,
	                    REDIS_SLOTS);
}

redisReply *redis_slots(redisContext *conn, struct sentence *why)
{
	redisReply *ranges = redis_asked(conn, redis_ask(conn, "CLUSTER SLOTS"), why);

	if (!ranges || are_whole(ranges, why))
		return ranges;
	freeReplyObject(ranges);
	return NULL;
}

const char *redis_range_host(const redisReply *range, const redisContext *asked_of)
{
	const redisReply *host = range->element[2]->element[0];
	bool is_told = host->type == REDIS_REPLY_STRING && host->len > 0;

	return is_told ? host->str : asked_of->tcp.host;
}

int redis_range_port(const redisReply *range)
{
	return (int)range->element[2]->element[1]->integer;
}

bool redis_range_is_seen(const redisReply *ranges, size_t which,
                         const redisContext *asked_of)
{
	const redisReply *range = ranges->element[which];

	for (size_t i = 0; i < which; i++)
		if (redis_range_port(ranges->element[i]) == redis_range_port(range) &&
		    strcmp(redis_range_host(ranges->element[i], asked_of),
		           redis_range_host(range, asked_of)) == 0)
			return true;
	return false;
}
