/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctor_redis_test.c stores.md -- gale doctor, on real Redis servers, and on false ones where a
 * real one cannot be made to say it: each line that it can print.
 *
 * The rights that it looks for are those that the page writes down.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/doctored.h"
#include "tests/support/fake_time.h"
#include "tests/support/must.h"
#include "tests/support/port.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_server.h"
#include "tests/support/rogue.h"
#include "tools/init.h"
#include "tools/redis_visit.h"

#define RIGHTS_MOST 64

static struct redis_server redis;
static char port[8];
static const char *const has_port[] = { "--port", port, NULL };
static const char *page;

static void init(const char *url)
{
	const char *const words[] = { "init", url, NULL };

	must(command_run(init_run, words) == INIT_DONE);
}

static const char *url_with(const char *user, const char *options)
{
	static char url[256];

	snprintf(url, sizeof(url), "redis://%s%s%s", user, redis.socket, options);
	return url;
}

static const char *url(void)
{
	return url_with("", "");
}

static int start(void **state)
{
	(void)state;
	snprintf(port, sizeof(port), "%d", free_port());
	redis_server_start(&redis, has_port);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	redis_server_stop(&redis);
	command_forget();
	return 0;
}

static int clear(void **state)
{
	(void)state;
	redis_server_do(&redis, "FLUSHALL");
	return 0;
}

/* ---- What it is ------------------------------------------------------------------ */

static void a_server_that_is_well_is_called_so(void **state)
{
	(void)state;
	redis_server_do(&redis, "CONFIG SET appendonly yes");
	redis_server_settle(&redis, "gale:");
	assert_int_equal(doctor(url()), DOCTOR_WELL);
	assert_says(command_out, "OK    connection: /");
	assert_says(command_out, "OK    server: Redis 7");
	assert_says(command_out, "OK    role: primary");
	assert_says(command_out, "OK    eviction: none: the server has no maxmemory");
	assert_says(command_out, "OK    persistence: an append-only file, appendfsync "
	                         "everysec");
	assert_says(command_out, "OK    replicas: none");
	assert_says(command_out, "OK    clock: within a second");
	assert_says(command_out,
	            "OK    state: it has forgotten nothing since 1970-01-01");
	assert_says(command_out, "OK    writes: the server takes them");
	assert_says(command_out, "OK    rights: default may do all");
	assert_says(command_out, "10 well, 0 to warn of, 0 failed");
	assert_string_equal(command_err, "");
	redis_server_do(&redis, "CONFIG SET appendonly no");
}

/* Nothing is written: no key is there afterwards. */
static void a_doctor_leaves_nothing_behind(void **state)
{
	struct redis_talk talk;
	redisReply *reply;

	(void)state;
	doctor(url());
	redis_talk_open(&talk, &redis);
	reply = redis_talk_say(&talk, "DBSIZE");
	assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
	assert_int_equal(reply->integer, 0);
	redis_reply_free(reply);
	redis_talk_close(&talk);
}

static const char *bulk(char *out, size_t room, const char *text)
{
	must((size_t)snprintf(out, room, "$%zu\r\n%s\r\n", strlen(text), text) < room);
	return out;
}

static void what_servers_say_of_themselves_is_judged(void **state)
{
	static const struct {
		const char *info;
		const char *line;
	} rows[] = {
		{ "redis_version:6.2.14\r\nrole:master\r\n",
		  "FAIL  server: Redis 6.2.14 is too old" },
		{ "redis_version:7.2.0\r\ndragonfly_version:df-v1.3\r\n",
		  "WARN  server: Dragonfly: gale is tested with Redis only" },
		{ "redis_version:7.2.0\r\ngarnet_version:1.0\r\n",
		  "WARN  server: Garnet" },
		{ "redis_version:7.2.0\r\nkvrocks_version:2\r\n",
		  "WARN  server: Kvrocks" },
		{ "redis_version:7.2.0\r\nexecutable:/usr/bin/keydb-server\r\n",
		  "WARN  server: KeyDB" },
		{ "redis_version:7.2.4\r\nvalkey_version:8.1.1\r\nredis_mode:"
		  "cluster\r\n",
		  "OK    server: Valkey 8.1.1, cluster" },
		{ "redis_version:7.0.0\r\nredis_mode:cluster\r\n",
		  "FAIL  mode: it is a node of a cluster: begin the URL with "
		  "redis+cluster://" },
		{ "redis_version:7.0.0\r\nrole:master\r\nloading:1\r\n",
		  "FAIL  role: it is still loading its data" },
		{ "redis_version:7.0.0\r\nrole:master\r\nconnected_slaves:1\r\n"
		  "slave0:ip=127.0.0.1,port=1,state=wait_bgsave,offset=0,lag=0\r\n",
		  "WARN  replicas: one is not online (ip=127.0.0.1,port=1,"
		  "state=wait_bgsave" },
		{ "redis_version:7.0.0\r\n",
		  "FAIL  state: a key under the prefix gale:" },
		{ "redis_version:7.0.0\r\n", "WARN  settings: CONFIG GET is refused" },
	};
	struct rogue rogue;
	char place[64], text[512];

	(void)state;
	rogue_open(&rogue);
	snprintf(place, sizeof(place), "redis://127.0.0.1:%d", rogue.port);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rogue_say(&rogue, ROGUE_INFO, bulk(text, sizeof(text), rows[i].info));
		assert_found(place, rows[i].line);
	}
	rogue_say(&rogue, ROGUE_INFO, NULL);
	rogue_hang_up(&rogue, true);
	assert_found(place, "FAIL  connection: the server has closed it");
	rogue_close(&rogue);
}

static void who_cannot_be_reached_is_said(void **state)
{
	char place[128];

	(void)state;
	assert_found("redis://127.0.0.1:1",
	             "FAIL  connection: cannot connect to 127.0.0.1, port ");
	assert_found("redis:///no/such/socket", "FAIL  connection: cannot connect to");
	assert_found(url_with("who:ever@", ""),
	             "FAIL  connection: the server does not let this user in: "
	             "WRONGPASS");
	assert_found(url_with("", "?db=99"), "DB index is out of range");
	assert_found("redis+sentinel://127.0.0.1:1/mine", "FAIL  connection: cannot");
	snprintf(place, sizeof(place), "redis+cluster://127.0.0.1:%s", port);
	assert_found(place, "FAIL  cluster: ERR This instance has cluster support "
	                    "disabled: begin the URL with redis://");
	assert_says(command_out, "OK    connection: 127.0.0.1:");
}

/* A byte every 100 ms, until the client has gone. */
static void *drip(void *listener)
{
	int fd = accept(*(int *)listener, NULL, NULL);

	struct pollfd end = { .fd = fd, .events = POLLRDHUP };

	must(fd >= 0);
	while (send(fd, "+", 1, MSG_NOSIGNAL) == 1 && poll(&end, 1, /* ms= */ 100) == 0)
		continue;
	close(fd);
	return NULL;
}

static void a_reply_without_an_end_is_not_waited_for(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;
	char place[64];

	(void)state;
	must(listener >= 0 && bind(listener, (struct sockaddr *)&at, length) == 0);
	must(listen(listener, 1) == 0);
	must(getsockname(listener, (struct sockaddr *)&at, &length) == 0);
	must(pthread_create(&thread, NULL, drip, &listener) == 0);
	snprintf(place, sizeof(place), "redis://127.0.0.1:%d", ntohs(at.sin_port));
	assert_found(place, "FAIL  connection: the server cannot be asked: it does not "
	                    "answer within 5 s: see whether it runs");
	must(pthread_join(thread, NULL) == 0);
	close(listener);
}

static void what_is_no_redis_is_said(void **state)
{
	struct rogue rogue;
	char place[64];

	(void)state;
	rogue_open(&rogue);
	snprintf(place, sizeof(place), "redis://127.0.0.1:%d", rogue.port);
	rogue_say(&rogue, ROGUE_INFO, ""); /* not a word */
	assert_found(place, "FAIL  connection: the server cannot be asked: it does not "
	                    "answer within 5 s");
	rogue_say(&rogue, ROGUE_INFO, ":7\r\n");
	assert_found(place, "cannot be asked: what it says to INFO is no text");
	rogue_say(&rogue, ROGUE_INFO,
	          "$39\r\nconnected_slaves:18446744073709551615\r\n\r\n");
	assert_found(place, "WARN  replicas: one is not online ()");
	snprintf(place, sizeof(place), "redis+sentinel://127.0.0.1:%d/mine",
	         rogue.port);
	rogue_say(&rogue, ROGUE_SENTINEL, "*2\r\n:1\r\n*-1\r\n");
	assert_found(place, "the sentinel 127.0.0.1 tells , and must tell an address");
	rogue_close(&rogue);
}

static void who_is_named_by_a_sentinel_is_looked_at(void **state)
{
	struct rogue rogue;
	char place[128], told[64];

	(void)state;
	rogue_open(&rogue);
	snprintf(place, sizeof(place), "redis+sentinel://127.0.0.1:1,127.0.0.1:%d/mine",
	         rogue.port);
	assert_found(place, "FAIL  connection: the sentinel 127.0.0.1 knows no service "
	                    "mine");
	snprintf(told, sizeof(told), "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n",
	         strlen(port), port);
	rogue_say(&rogue, ROGUE_SENTINEL, told);
	assert_found(place, "WARN  connection: 1 of the URL's hosts cannot be used: "
	                    "cannot connect to 127.0.0.1");
	assert_says(command_out, ", the primary of mine");
	assert_says(command_out, "OK    server: Redis 7");
	rogue_say(&rogue, ROGUE_SENTINEL, "*2\r\n$4\r\nhost\r\n$1\r\n1\r\n");
	assert_found(place, "tells host, and must tell an address");
	rogue_close(&rogue);
}

/* ---- What it keeps --------------------------------------------------------------- */

static void eviction_is_found(void **state)
{
	(void)state;
	redis_server_do(&redis, "CONFIG SET maxmemory 1gb");
	assert_found(url(), "OK    eviction: none: maxmemory-policy is noeviction");
	redis_server_do(&redis, "CONFIG SET maxmemory-policy volatile-ttl");
	assert_found(url(), "FAIL  eviction: maxmemory-policy is volatile-ttl");
	redis_server_do(&redis, "CONFIG SET maxmemory-policy noeviction");
	redis_server_do(&redis, "CONFIG SET maxmemory 1");
	assert_found(url(), "WARN  memory: ");
	assert_says(command_out, " of 1 bytes are used");
	assert_says(command_out, "FAIL  writes: the server refuses them, and so all "
	                         "calls: OOM");
	redis_server_do(&redis, "CONFIG SET maxmemory 0");
}

static void persistence_is_found(void **state)
{
	const char *const saves[] = { "--save", "3600 1", NULL };
	struct redis_server other;
	char place[128];

	(void)state;
	assert_found(url(), "WARN  persistence: no append-only file: a restart");
	redis_server_start(&other, saves);
	snprintf(place, sizeof(place), "redis://%s", other.socket);
	assert_found(place, "WARN  persistence: snapshots only");
	redis_server_stop(&other);
}

/* ---- Replicas -------------------------------------------------------------------- */

static bool is_online(void *arg)
{
	(void)arg;
	doctor(url());
	return !strstr(command_out, "OK    replicas: none") &&
	       !strstr(command_out, "is not online");
}

static void replicas_are_found(void **state)
{
	const char *const follows[] = { "--replicaof", "127.0.0.1", port, NULL };
	struct redis_server replica;
	char place[128];

	(void)state;
	assert_found(url_with("", "?durable=1"),
	             "FAIL  replicas: 0, and durable=1 in the URL needs 1");
	redis_server_start(&replica, follows);
	assert_true(becomes_true(is_online, NULL));
	assert_found(url(), "WARN  replicas: 1, which may be behind");
	assert_says(command_out, "WARN  split: min-replicas-to-write is 0");
	redis_server_do(&redis, "CONFIG SET min-replicas-to-write 1");
	assert_found(url_with("", "?durable=1"),
	             "OK    replicas: 1, of which 1 confirm each grant");
	assert_says(command_out, "OK    split: a primary that is cut off stops");
	snprintf(place, sizeof(place), "redis://%s", replica.socket);
	assert_found(place, "FAIL  role: it is a replica, which nodes do not use: name "
	                    "its primary, 127.0.0.1:");
	assert_says(command_out, "FAIL  writes: the server refuses them, and so all "
	                         "calls: READONLY");
	redis_server_stop(&replica);
	redis_server_do(&redis, "CONFIG SET min-replicas-to-write 2");
	assert_found(url(), "FAIL  writes: the server refuses them, and so all calls: "
	                    "NOREPLICAS");
	redis_server_do(&redis, "CONFIG SET min-replicas-to-write 0");
}

/* ---- The clock ------------------------------------------------------------------- */

static void a_clock_that_is_wrong_is_found(void **state)
{
	struct redis_server other;
	struct fake_time time;
	char place[128];
	uint64_t now_us = doctor_wall_us();

	(void)state;
	fake_time_begin(&time, now_us + 3600 * UINT64_C(1000000));
	redis_server_start(&other, NULL);
	fake_time_end();
	snprintf(place, sizeof(place), "redis://%s", other.socket);
	assert_found(place, "WARN  clock: 3");
	assert_says(command_out, " ms ahead of this host's");
	fake_time_set(&time, now_us - 3600 * UINT64_C(1000000));
	assert_found(place, " ms behind this host's");
	redis_server_stop(&other);
	fake_time_close(&time);
}

/* ---- State ----------------------------------------------------------------------- */

/* Its generation is a second old: as if it had forgotten what came before. */
static void set_generation(void)
{
	struct redis_talk talk;
	redisReply *info;
	char run[REDIS_LINE], tenure[REDIS_LINE], command[128];

	redis_talk_open(&talk, &redis);
	info = redis_talk_say(&talk, "INFO");
	redis_line(info->str, "run_id", run);
	redis_line(info->str, "master_replid", tenure);
	snprintf(command, sizeof(command),
	         "SET gale:{b00}generation %.6s%.8s0:%lluwhatever", run, tenure,
	         (unsigned long long)doctor_wall_us() - 1000000);
	redis_talk_do(&talk, command);
	redis_reply_free(info);
	redis_talk_close(&talk);
}

static void what_may_have_been_forgotten_is_found(void **state)
{
	(void)state;
	assert_found(url(), "WARN  state: no node has used it yet");
	assert_says(command_out, "gale store init URL marks it");
	init(url());
	assert_found(url(), "OK    state: it is marked as new");
	redis_server_do(&redis, "SAVE");
	redis_server_restart(&redis);
	assert_found(url(), "WARN  state: it was started again, or took over");
	set_generation();
	assert_found(url(),
	             "WARN  state: it may have forgotten what it granted until ");
	redis_server_settle_durable(&redis, "gale:", 2);
	assert_found(url(),
	             "FAIL  durable: other nodes say durable=2 of the prefix, and "
	             "this URL durable=0");
	redis_server_settle(&redis, "gale:");
	assert_found(url_with("", "?durable=1"),
	             "WARN  durable: other nodes use the prefix without durable=");
}

static void a_key_that_is_not_ours_is_found(void **state)
{
	(void)state;
	redis_server_do(&redis, "SET gale:{b00}generation x");
	assert_found(url(), "FAIL  state: a key under the prefix gale: is not gale's");
	redis_server_do(&redis, "DEL gale:{b00}generation");
	redis_server_do(&redis, "HSET gale:{b00}generation f x");
	assert_found(url(), "FAIL  state: a key under the prefix gale: is not gale's");
}

/* ---- Rights ---------------------------------------------------------------------- */

/* Of a table, where | has a \ before it. */
static void unescape(char *line)
{
	char *to = line;

	for (const char *at = line; *at; at++)
		if (*at != '\\')
			*to++ = *at;
	*to = '\0';
}

/* All that begin with + in the page's part on the rights at Redis; returns how many. */
static size_t read_rights(char rights[RIGHTS_MOST][32])
{
	FILE *file = fopen(page, "r");
	bool inside = false;
	char line[512];
	size_t count = 0;

	must(file);
	while (fgets(line, sizeof(line), file)) {
		unescape(line);
		inside |= strncmp(line, "## Rights", 9) == 0;
		inside &= strncmp(line, "PostgreSQL: ", 12) != 0;
		for (const char *at = strchr(line, '+'); inside && at;
		     at = strchr(at + 1, '+')) {
			size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz|");

			must(count < RIGHTS_MOST && length < 31);
			snprintf(rights[count++], 32, "%.*s", (int)length + 1, at);
		}
	}
	fclose(file);
	return count;
}

/* A user who may do all of that but for one. */
static void let(char rights[RIGHTS_MOST][32], size_t count, size_t but,
                const char *patterns)
{
	struct redis_talk talk;
	char command[64], word[40];

	redis_talk_open(&talk, &redis);
	snprintf(command, sizeof(command), "ACL SETUSER least reset on >word %s",
	         patterns);
	redis_talk_do(&talk, command);
	for (size_t i = 0; i < count; i++)
		if (i != but) {
			snprintf(word, sizeof(word), "ACL SETUSER least %s", rights[i]);
			redis_talk_do(&talk, word);
		}
	redis_talk_close(&talk);
}

/* The operator's command needs these, or a node in a cluster. */
static bool is_another_matter(const char *right)
{
	return strcmp(right, "+config|get") == 0 || strcmp(right, "+scan") == 0 ||
	       strcmp(right, "+cluster|slots") == 0 || strcmp(right, "+asking") == 0;
}

static void each_right_that_is_missing_is_named(void **state)
{
	const char *place = url_with("least:word@", "?db=1&durable=1");
	char rights[RIGHTS_MOST][32], line[64];
	size_t count = read_rights(rights);

	(void)state;
	assert_int_equal(count, 30);
	let(rights, count, count, "~gale:* &gale:*");
	assert_found(place,
	             "OK    rights: least may do all that nodes do with keys gale:*");
	for (size_t i = 0; i < count; i++) {
		if (is_another_matter(rights[i]))
			continue;
		let(rights, count, i, "~gale:* &gale:*");
		if (strcmp(rights[i], "+select") == 0)
			snprintf(line, sizeof(line), "FAIL  connection: ");
		else
			snprintf(line, sizeof(line), ": ACL SETUSER least %s\n",
			         rights[i]);
		assert_found(place, line);
	}
}

static void what_follows_from_a_missing_right_is_said(void **state)
{
	static const char *const rows[][2] = {
		{ "+eval", "FAIL  rights: nodes can do nothing here: " },
		{ "+hset", "WARN  rights of hashes: guards of several nodes cannot" },
		{ "+exists", "WARN  rights of fleets: of more than seven nodes" },
		{ "+zadd", "WARN  rights of groups: guards of several nodes cannot" },
		{ "+hgetall",
		  "WARN  rights of pools: processes cannot share a budget" },
		{ "+publish", "WARN  rights of nudges: a node that needs slots waits" },
		{ "+mget", "WARN  rights of batches: leases take a longer way" },
		{ "+client|setname",
		  "WARN  rights of names: connections have no name" },
		{ "+wait", "FAIL  rights of durable=: nodes cannot wait for" },
		{ "+info", "FAIL  connection: INFO is refused: NOPERM" },
	};
	const char *place = url_with("least:word@", "?durable=1");
	char rights[RIGHTS_MOST][32];
	size_t count = read_rights(rights), which;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (which = 0; strcmp(rights[which], rows[i][0]) != 0;)
			must(++which < count);
		let(rights, count, which, "~gale:* &gale:*");
		assert_found(place, rows[i][1]);
	}
	let(rights, count, count, "~other:* &gale:*");
	assert_found(place,
	             "FAIL  rights of keys: the user may not read and write keys of "
	             "the prefix: ACL SETUSER least ~gale:*");
	let(rights, count, count, "~gale:*");
	assert_found(place,
	             "WARN  rights of channels: a node that needs slots waits until "
	             "the others beat: ACL SETUSER least &gale:*");
	redis_server_do(&redis, "ACL DELUSER least");
}

static void a_command_that_is_not_there_is_named(void **state)
{
	const char *const renames[] = { "--rename-command", "SETRANGE", "other", NULL };
	struct redis_server other;
	char place[128];

	(void)state;
	redis_server_start(&other, renames);
	snprintf(place, sizeof(place), "redis://%s", other.socket);
	assert_found(place, "FAIL  commands: the server knows no setrange: ");
	redis_server_stop(&other);
}

/* ---- Clusters -------------------------------------------------------------------- */

static void each_primary_of_a_cluster_is_looked_at(void **state)
{
	char rights[RIGHTS_MOST][32], place[128], line[64];
	struct redis_cluster cluster;
	int owner;

	(void)state;
	read_rights(rights);
	redis_cluster_start(&cluster);
	snprintf(place, sizeof(place), "redis+cluster://127.0.0.1:%s,127.0.0.1:1",
	         cluster.ports[0]);
	assert_found(place, "WARN  connection: 1 of the URL's hosts cannot be used");
	assert_says(command_out, "OK    cluster: 3 primaries serve all 16384 slots");
	for (int i = 0; i < CLUSTER_PRIMARIES; i++) {
		snprintf(line, sizeof(line),
		         "OK    127.0.0.1:%s rights: ", cluster.ports[i]);
		assert_says(command_out, line);
		redis_server_do(&cluster.servers[i],
		                "ACL SETUSER few on >word ~* &* +@all -asking");
	}
	snprintf(place, sizeof(place), "redis+cluster://few:word@127.0.0.1:%s",
	         cluster.ports[0]);
	assert_found(place,
	             " rights of clusters: nodes lose calls while slots move: ACL "
	             "SETUSER few +asking\n");
	redis_server_do(&cluster.servers[0], "ACL SETUSER few -cluster|slots");
	assert_found(place, "FAIL  cluster: NOPERM");
	owner = redis_cluster_owner(&cluster, 7);
	must(owner >= 0);
	redis_server_do(&cluster.servers[owner], "CLUSTER DELSLOTS 7");
	snprintf(place, sizeof(place), "redis+cluster://127.0.0.1:%s",
	         cluster.ports[owner]);
	assert_found(place, "FAIL  cluster: 1 of 16384 slots have no server");
	redis_cluster_stop(&cluster);
}

/* CLUSTER SLOTS of so many primaries, each at an address of its own. */
static void tell_primaries(char *out, size_t room, int count)
{
	int used = snprintf(out, room, "*%d\r\n", count);

	for (int i = 0; i < count; i++) {
		char host[16];
		int length = snprintf(host, sizeof(host), "127.0.0.%d", i + 1);

		used += snprintf(out + used, room - (size_t)used,
		                 "*3\r\n:%d\r\n:%d\r\n*2\r\n$%d\r\n%s\r\n:1\r\n", i,
		                 i < count - 1 ? i : 16383, length, host);
	}
	must((size_t)used < room);
}

static void false_clusters_are_found(void **state)
{
	static char many[16384], two[1024]; /* the first may still be being said */
	struct rogue rogue;
	char place[64];

	(void)state;
	rogue_open(&rogue);
	snprintf(place, sizeof(place), "redis+cluster://127.0.0.1:%d", rogue.port);
	tell_primaries(many, sizeof(many), 129);
	rogue_say(&rogue, ROGUE_SLOTS, many);
	assert_found(place, "FAIL  cluster: 129 primaries: gale knows at most 128");
	tell_primaries(two, sizeof(two), 2);
	rogue_say(&rogue, ROGUE_SLOTS, two);
	assert_found(place,
	             "FAIL  127.0.0.2:1 connection: cannot connect to 127.0.0.2");
	assert_says(command_out, "OK    cluster: 2 primaries");
	rogue_say(&rogue, ROGUE_SLOTS, "*1\r\n:1\r\n");
	assert_found(place, "FAIL  cluster: what it says of slots is strange");
	rogue_close(&rogue);
}

/* ---- Words ----------------------------------------------------------------------- */

static void words_that_are_wrong_are_refused(void **state)
{
	const char *const none[] = { NULL }, *const help[] = { "--help", NULL };

	(void)state;
	assert_int_equal(doctor("memory:"), DOCTOR_WELL);
	assert_says(command_out, "OK    server: none: a store in a process");
	assert_int_equal(doctor("mysql://host"), DOCTOR_BAD_USE);
	assert_says(command_err, "gale doctor: url: it begins with none of memory:");
	assert_int_equal(command_run(doctor_run, none), DOCTOR_BAD_USE);
	assert_says(command_err, "it takes the URL of a store");
	assert_int_equal(command_run(doctor_run, help), DOCTOR_WELL);
	assert_says(command_out, "usage: gale doctor URL");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_server_that_is_well_is_called_so, clear),
		cmocka_unit_test_setup(a_doctor_leaves_nothing_behind, clear),
		cmocka_unit_test(what_servers_say_of_themselves_is_judged),
		cmocka_unit_test(who_cannot_be_reached_is_said),
		cmocka_unit_test(a_reply_without_an_end_is_not_waited_for),
		cmocka_unit_test(what_is_no_redis_is_said),
		cmocka_unit_test(who_is_named_by_a_sentinel_is_looked_at),
		cmocka_unit_test(eviction_is_found),
		cmocka_unit_test(persistence_is_found),
		cmocka_unit_test(replicas_are_found),
		cmocka_unit_test(a_clock_that_is_wrong_is_found),
		cmocka_unit_test_setup(what_may_have_been_forgotten_is_found, clear),
		cmocka_unit_test_setup(a_key_that_is_not_ours_is_found, clear),
		cmocka_unit_test(each_right_that_is_missing_is_named),
		cmocka_unit_test(what_follows_from_a_missing_right_is_said),
		cmocka_unit_test(a_command_that_is_not_there_is_named),
		cmocka_unit_test(each_primary_of_a_cluster_is_looked_at),
		cmocka_unit_test(false_clusters_are_found),
		cmocka_unit_test(words_that_are_wrong_are_refused),
	};

	must(argc == 2);
	page = argv[1];
	return cmocka_run_group_tests(tests, start, stop);
}
