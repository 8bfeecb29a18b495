/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* redis_cluster.c -- MEET, ADDSLOTSRANGE, REPLICATE, and a look at CLUSTER NODES. */
#define _GNU_SOURCE
#include "tests/support/redis_cluster.h"

#include <string.h>

#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/port.h"

#define SLOTS 16384
#define COMMAND_MOST 128
#define KEYS_MOST "100"

/* ---- One server ------------------------------------------------------------------ */

static bool is_up(const struct redis_cluster *cluster, int i)
{
	return cluster->servers[i].pid != 0 && !cluster->stands_still[i];
}

/* A part of what a server says; the caller frees it. */
static char *ask(const struct redis_cluster *cluster, int i, const char *command)
{
	struct redis_talk talk;
	redisReply *reply;
	char *text;

	redis_talk_open(&talk, &cluster->servers[i]);
	reply = redis_talk_say(&talk, command);
	must(reply->type == REDIS_REPLY_STRING);
	text = strdup(reply->str);
	must(text);
	redis_reply_free(reply);
	redis_talk_close(&talk);
	return text;
}

static bool says(const struct redis_cluster *cluster, int i, const char *command,
                 const char *part)
{
	char *text = ask(cluster, i, command);
	bool found = strstr(text, part) != NULL;

	free(text);
	return found;
}

/* What a server says of itself, as a line of CLUSTER NODES. */
static char *own_line(const struct redis_cluster *cluster, int i)
{
	char *text = ask(cluster, i, "CLUSTER NODES");
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")) && !strstr(line, "myself"))
		continue;
	must(line);
	line = strdup(line);
	must(line);
	free(text);
	return line;
}

/* id address flags primary ping pong epoch state slots... */
static char *word_of(char *line, int number)
{
	char *word = NULL;

	for (int i = 0; i <= number; i++)
		word = strsep(&line, " ");
	return word;
}

/* ---- Starting -------------------------------------------------------------------- */

static void find_port(char *out)
{
	snprintf(out, 8, "%u", free_port());
}

static void start_server(struct redis_cluster *cluster, int i)
{
	const char *options[] = { cluster->tls ? "--tls-port" : "--port",
		                  cluster->ports[i],
		                  "--cluster-port",
		                  cluster->bus_ports[i],
		                  "--bind",
		                  "127.0.0.1",
		                  "--cluster-enabled",
		                  "yes",
		                  "--cluster-node-timeout",
		                  cluster->tls ? "5000"
		                               : "1000", /* hands are shaken in it */
		                  "--cluster-replica-validity-factor",
		                  "0",
		                  "--cluster-allow-replica-migration",
		                  "no",
		                  "--repl-diskless-sync-delay",
		                  "0",
		                  "--enable-debug-command",
		                  "yes",
		                  NULL };
	size_t count = sizeof(options) / sizeof(options[0]) - 1;

	find_port(cluster->ports[i]);
	find_port(cluster->bus_ports[i]);
	memcpy(cluster->options[i], options, sizeof(options));
	for (size_t k = 0; cluster->tls && cluster->tls[k]; k++)
		cluster->options[i][count++] = cluster->tls[k];
	must(count < sizeof(cluster->options[i]) / sizeof(cluster->options[i][0]));
	redis_server_start(&cluster->servers[i], cluster->options[i]);
}

static bool know_each_other(void *arg)
{
	const struct redis_cluster *cluster = arg;

	for (int i = 0; i < CLUSTER_SERVERS; i++)
		if (!says(cluster, i, "CLUSTER INFO", "cluster_known_nodes:6") ||
		    says(cluster, i, "CLUSTER NODES", "handshake"))
			return false;
	return true;
}

static void introduce(struct redis_cluster *cluster)
{
	char command[COMMAND_MOST];

	for (int i = 0; i < CLUSTER_SERVERS; i++) {
		snprintf(command, sizeof(command), "CLUSTER SET-CONFIG-EPOCH %d",
		         i + 1);
		redis_server_do(&cluster->servers[i], command);
	}
	for (int i = 1; i < CLUSTER_SERVERS; i++) {
		snprintf(command, sizeof(command), "CLUSTER MEET 127.0.0.1 %s %s",
		         cluster->ports[i], cluster->bus_ports[i]);
		redis_server_do(&cluster->servers[0], command);
	}
	must(becomes_true(know_each_other, cluster));
}

static void give_slots(struct redis_cluster *cluster, int i)
{
	char command[COMMAND_MOST];

	snprintf(command, sizeof(command), "CLUSTER ADDSLOTSRANGE %d %d",
	         SLOTS * i / CLUSTER_PRIMARIES,
	         SLOTS * (i + 1) / CLUSTER_PRIMARIES - 1);
	redis_server_do(&cluster->servers[i], command);
}

static void replicate(struct redis_cluster *cluster, int primary, int replica)
{
	char command[COMMAND_MOST];
	char *line = own_line(cluster, primary);

	snprintf(command, sizeof(command), "CLUSTER REPLICATE %s", word_of(line, 0));
	redis_server_do(&cluster->servers[replica], command);
	free(line);
}

static bool is_whole(void *arg)
{
	const struct redis_cluster *cluster = arg;

	for (int i = 0; i < CLUSTER_SERVERS; i++)
		if (is_up(cluster, i) &&
		    (!says(cluster, i, "CLUSTER INFO", "cluster_state:ok") ||
		     says(cluster, i, "INFO replication", "master_link_status:down")))
			return false;
	return true;
}

void redis_cluster_settle(struct redis_cluster *cluster)
{
	must(becomes_true(is_whole, cluster));
}

void redis_cluster_start(struct redis_cluster *cluster)
{
	redis_cluster_start_in_tls(cluster, NULL);
}

void redis_cluster_start_in_tls(struct redis_cluster *cluster, const char *const *tls)
{
	memset(cluster, 0, sizeof(*cluster));
	cluster->tls = tls;
	for (int i = 0; i < CLUSTER_SERVERS; i++)
		start_server(cluster, i);
	introduce(cluster);
	for (int i = 0; i < CLUSTER_PRIMARIES; i++)
		give_slots(cluster, i);
	for (int i = 0; i < CLUSTER_PRIMARIES; i++)
		replicate(cluster, i, i + CLUSTER_PRIMARIES);
	redis_cluster_settle(cluster);
}

void redis_cluster_stop(struct redis_cluster *cluster)
{
	for (int i = 0; i < CLUSTER_SERVERS; i++) {
		if (cluster->stands_still[i])
			redis_server_go_on(&cluster->servers[i]);
		redis_server_kill(&cluster->servers[i]);
		redis_server_stop(&cluster->servers[i]);
	}
}

/* ---- What befalls it ------------------------------------------------------------- */

void redis_cluster_kill(struct redis_cluster *cluster, int i)
{
	redis_server_kill(&cluster->servers[i]);
}

void redis_cluster_restart(struct redis_cluster *cluster, int i)
{
	redis_server_restart(&cluster->servers[i]);
}

void redis_cluster_pause(struct redis_cluster *cluster, int i)
{
	cluster->stands_still[i] = true;
	redis_server_pause(&cluster->servers[i]);
}

void redis_cluster_go_on(struct redis_cluster *cluster, int i)
{
	redis_server_go_on(&cluster->servers[i]);
	cluster->stands_still[i] = false;
}

static bool has_slot(char *line, unsigned slot)
{
	char *word;

	for (int i = 0; i < 8; i++)
		(void)strsep(&line, " ");
	while ((word = strsep(&line, " "))) {
		unsigned first, last;
		int count = sscanf(word, "%u-%u", &first, &last);

		if (count == 1)
			last = first;
		if (count > 0 && first <= slot && slot <= last)
			return true;
	}
	return false;
}

int redis_cluster_owner(const struct redis_cluster *cluster, unsigned slot)
{
	int owner = -1;
	int owners = 0;

	for (int i = 0; i < CLUSTER_SERVERS; i++) {
		char *line = is_up(cluster, i) ? own_line(cluster, i) : NULL;

		if (line && has_slot(line, slot)) {
			owner = i;
			owners++;
		}
		free(line);
	}
	return owners == 1 ? owner : -1;
}

struct sought {
	const struct redis_cluster *cluster;
	unsigned slot;
	int owner;
};

static bool is_owned(void *arg)
{
	struct sought *sought = arg;

	sought->owner = redis_cluster_owner(sought->cluster, sought->slot);
	return sought->owner >= 0;
}

int redis_cluster_await_owner(const struct redis_cluster *cluster, unsigned slot)
{
	struct sought sought = { .cluster = cluster, .slot = slot };

	must(becomes_true(is_owned, &sought));
	return sought.owner;
}

int redis_cluster_replica(const struct redis_cluster *cluster, int primary)
{
	char *of = own_line(cluster, primary);
	const char *id = word_of(of, 0);
	int replica = -1;

	for (int i = 0; i < CLUSTER_SERVERS; i++) {
		char *line = is_up(cluster, i) ? own_line(cluster, i) : NULL;

		if (line && strcmp(word_of(line, 3), id) == 0)
			replica = i;
		free(line);
	}
	free(of);
	return replica;
}

static uint64_t errors_of(const struct redis_cluster *cluster, int i, const char *word)
{
	char name[COMMAND_MOST], *text = ask(cluster, i, "INFO errorstats");
	const char *at;
	uint64_t count = 0;

	snprintf(name, sizeof(name), "errorstat_%s:count=", word);
	at = strstr(text, name);
	if (at)
		count = strtoull(at + strlen(name), NULL, 10);
	free(text);
	return count;
}

uint64_t redis_cluster_errors(const struct redis_cluster *cluster, const char *word)
{
	uint64_t sum = 0;

	for (int i = 0; i < CLUSTER_SERVERS; i++)
		if (is_up(cluster, i))
			sum += errors_of(cluster, i, word);
	return sum;
}

/* ---- Migration ------------------------------------------------------------------- */

static void set_slot(struct redis_cluster *cluster, int at, unsigned slot,
                     const char *what, int whose)
{
	char command[COMMAND_MOST];
	char *line = own_line(cluster, whose);

	snprintf(command, sizeof(command), "CLUSTER SETSLOT %u %s %s", slot, what,
	         word_of(line, 0));
	redis_server_do(&cluster->servers[at], command);
	free(line);
}

static struct remote_bytes word(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

/* One that has expired meanwhile is no error. */
static void move_key(struct redis_cluster *cluster, struct redis_talk *talk,
                     const redisReply *key, int to)
{
	const struct remote_bytes words[] = {
		word("MIGRATE"),
		word("127.0.0.1"),
		word(cluster->ports[to]),
		{ (const uint8_t *)key->str, key->len },
		word("0"),
		word("1000"),
	};
	redisReply *reply;

	must(redis_put_words(&talk->text, words, sizeof(words) / sizeof(words[0])));
	redis_talk_send(talk);
	reply = redis_talk_hear(talk);
	must(reply->type == REDIS_REPLY_STATUS);
	redis_reply_free(reply);
}

/* False: there are none any more. */
static bool move_some(struct redis_cluster *cluster, unsigned slot, int from, int to,
                      unsigned pause_ms)
{
	char command[COMMAND_MOST];
	struct redis_talk talk;
	redisReply *keys;
	size_t count;

	snprintf(command, sizeof(command), "CLUSTER GETKEYSINSLOT %u " KEYS_MOST, slot);
	redis_talk_open(&talk, &cluster->servers[from]);
	keys = redis_talk_say(&talk, command);
	must(keys->type == REDIS_REPLY_ARRAY);
	count = keys->elements;
	for (size_t i = 0; i < count; i++) {
		move_key(cluster, &talk, keys->element[i], to);
		nap(1000 * (uint64_t)pause_ms);
	}
	redis_reply_free(keys);
	redis_talk_close(&talk);
	return count > 0;
}

void redis_cluster_move_keys(struct redis_cluster *cluster, unsigned slot, int from,
                             int to, unsigned pause_ms)
{
	set_slot(cluster, to, slot, "IMPORTING", from);
	set_slot(cluster, from, slot, "MIGRATING", to);
	nap(1000 * (uint64_t)pause_ms);
	while (move_some(cluster, slot, from, to, pause_ms))
		continue;
}

void redis_cluster_move_slot(struct redis_cluster *cluster, unsigned slot, int from,
                             int to, unsigned pause_ms)
{
	set_slot(cluster, to, slot, "NODE", to);
	nap(1000 * (uint64_t)pause_ms);
	set_slot(cluster, from, slot, "NODE", to);
}
