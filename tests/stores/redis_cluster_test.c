/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_cluster_test.c -- a fleet on a Redis Cluster, and what can befall the two.
 *
 * Two nodes ask of many keys, which lie on all primaries, as strict, cached-deny and leased
 * limiters.  Meanwhile slots are migrated, and primaries replaced.  Whatever that is:
 *
 *   - no window of a key has more than the limit of admissions, as counted here: an
 *     admission lies between two readings of the clock                        (L1, L12)
 *   - who asks is answered in time, and every ask is answered once                (L11)
 *   - when all is well again, every key is admitted again, without a restart
 *   - nothing is left behind
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <string.h>

#include <gale/guard.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "stores/redis/cluster.h"
#include "tests/support/crew.h"
#include "tests/support/customs.h"
#include "tests/support/late.h"
#include "tests/support/moment.h"
#include "tests/support/late_name.h"
#include "tests/support/length.h"
#include "tests/support/lines.h"
#include "tests/support/must.h"
#include "tests/support/next_window.h"
#include "tests/support/node.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/rogue.h"
#include "tests/support/weather.h"

#define WINDOW GALE_MILLIS(300)
#define QUARANTINE (2 * WINDOW) /* all clocks are one: none is ahead of another */
#define KEYS 12
#define WITHIN GALE_MILLIS(150)
#define MARGIN GALE_MILLIS(250)
#define RECOVERY GALE_SECONDS(25) /* with what the cluster takes to notice */
#define CROWD 200
#define FIFTY 50
#define LONG_WINDOW GALE_SECONDS(10) /* twice what a map is believed without a doubt */
#define ATTEMPTS 8
#define PATIENCE GALE_SECONDS(10)
#define URL_ROOM 128

static struct redis_cluster cluster;
static struct weather weather;

static void put_url(char *out, const char *user, int first)
{
	snprintf(out, URL_ROOM, "redis+cluster://%s127.0.0.1:%.7s,127.0.0.1:%.7s", user,
	         cluster.ports[first], cluster.ports[(first + 1) % CLUSTER_SERVERS]);
}

/* ---- The fleet ------------------------------------------------------------------- */

static void let_ask(void)
{
	char urls[WEATHER_NODES][URL_ROOM];
	const struct weather_plan plan = {
		.urls = { urls[0], urls[1] },
		.quarantine_us = QUARANTINE,
		.shards = 2,
		.window_us = WINDOW,
		.limit = 20,
		.keys = KEYS,
		.askers = 2,
		.within_us = WITHIN,
		.nap_us = LONG_OR_BRIEF(2000, 15000),
	};

	for (int i = 0; i < WEATHER_NODES; i++)
		put_url(urls[i], "", i * 2);
	weather_let_ask(&weather, &plan);
}

/* All keys of all limiters are admitted again. */
static void recovers(void)
{
	must(weather_recovers(&weather, RECOVERY));
}

static void end(void)
{
	weather_end(&weather);
	weather_was_in_time(&weather, WITHIN + MARGIN);
}

static void open_node(struct node *node, const char *url, const char *name,
                      struct gale_rule rule, uint64_t patience_us)
{
	node_open(node, &(struct node_plan){
			    .url = url,
			    .quarantine_us = 1,
			    .limiter = { .name = name,
	                                 .rule = rule,
	                                 .mode = GALE_STRICT,
	                                 .lease.patience_us = patience_us },
			});
}

/* The bucket of a key that is asked of the store all the time; -1: it is another. */
static int bucket_of(const redisReply *key)
{
	unsigned bucket;

	if (key->type != REDIS_REPLY_STRING ||
	    sscanf(key->str, "gale:{b%2x}:", &bucket) != 1)
		return -1;
	if (!memmem(key->str, key->len, how_names[STRICT], strlen(how_names[STRICT])))
		return -1;
	return (int)bucket;
}

/* The slot of one that is now at a server. */
static unsigned some_slot_at(int i)
{
	struct redis_talk talk;
	int bucket = -1;

	redis_talk_open(&talk, &cluster.servers[i]);
	while (bucket < 0) {
		redisReply *reply = redis_talk_say(&talk, "RANDOMKEY");

		bucket = bucket_of(reply);
		redis_reply_free(reply);
	}
	redis_talk_close(&talk);
	return redis_slot((uint8_t)bucket);
}

/* ---- Tests ----------------------------------------------------------------------- */

struct crowd {
	struct node node;
	_Atomic unsigned allowed[KEYS];
	_Atomic unsigned denied[KEYS];
	_Atomic unsigned late[KEYS];
};

static _Atomic unsigned *place_of(struct crowd *crowd, int key,
                                  struct gale_answer answer)
{
	if (is_late(answer))
		return &crowd->late[key];
	must(answer.why == GALE_WHY_RULE);
	return answer.verdict == GALE_ALLOW ? &crowd->allowed[key]
	                                    : &crowd->denied[key];
}

static void come(void *arg, unsigned who)
{
	struct crowd *crowd = arg;
	struct gale_seat *seat;

	(void)who;
	must(gale_join(crowd->node.runtime, &seat) == GALE_ERR_OK);
	for (int key = 0; key < KEYS; key++) {
		char name[2] = { 'k', (char)('a' + key) };

		add_relaxed(place_of(crowd, key,
		                     gale_wait(seat, crowd->node.limiter, name, 2, 1,
		                               PATIENCE)),
		            1);
	}
	gale_leave(seat);
}

/* Of the fifty some may be late, and their units lost.  Returns how many were late. */
static unsigned comes_once(const char *name, struct gale_rule rule)
{
	static struct crowd crowd;
	char url[URL_ROOM];
	unsigned late = 0;

	memset(&crowd, 0, sizeof(crowd));
	put_url(url, "", 0);
	open_node(&crowd.node, url, name, rule, PATIENCE);
	crew_run(CROWD, come, &crowd);
	node_close(&crowd.node);
	for (int key = 0; key < KEYS; key++) {
		unsigned allowed = load_relaxed(&crowd.allowed[key]);
		unsigned denied = load_relaxed(&crowd.denied[key]);

		assert_in_range(allowed, 0, FIFTY);
		assert_in_range(denied, 0, CROWD - FIFTY);
		assert_int_equal(allowed + denied + load_relaxed(&crowd.late[key]),
		                 CROWD);
		late += load_relaxed(&crowd.late[key]);
	}
	return late;
}

/* Again where a node did not reply within a second, and what it did is not known: that many
 * are too many for a small machine with other things to do. */
static void admits_fifty(const char *name, struct gale_rule rule)
{
	unsigned attempt = 0, late;
	char own[24];

	do {
		snprintf(own, sizeof(own), "%s%u", name, attempt);
		late = comes_once(own, rule);
		print_message("%s: %u late\n", own, late);
	} while (late > 0 && ++attempt < ATTEMPTS);
	assert_int_equal(late, 0);
}

static void two_hundred_at_a_limit_of_fifty_admit_fifty(void **state)
{
	(void)state;
	admits_fifty("crowd", gale_fixed_window(FIFTY, GALE_DAYS(3650)));
	admits_fifty("own crowd", custom_window(FIFTY, GALE_DAYS(3650)));
}

static void keys_are_on_all_primaries(void **state)
{
	(void)state;
	let_ask();
	recovers();
	for (int i = 0; i < CLUSTER_PRIMARIES; i++)
		(void)some_slot_at(i);
	end();
}

struct detours {
	uint64_t asks;
	uint64_t moves;
};

static struct detours detours_since(struct detours since)
{
	return (struct detours){
		redis_cluster_errors(&cluster, "ASK") - since.asks,
		redis_cluster_errors(&cluster, "MOVED") - since.moves,
	};
}

/* Slowly, so that who asks finds half of it, and at once, so that nobody knows: until both
 * ways were taken. */
static void a_slot_moves(void **state)
{
	struct detours none = { 0 }, before = detours_since(none), taken = none;
	unsigned slot;
	int at;

	(void)state;
	let_ask();
	recovers();
	slot = some_slot_at(0);
	at = redis_cluster_await_owner(&cluster, slot);
	for (int i = 0; i < 60 && (i < 2 || taken.asks == 0 || taken.moves == 0); i++) {
		int to = (at + 1) % CLUSTER_PRIMARIES;

		redis_cluster_move_keys(&cluster, slot, at, to, i % 2 ? 0 : 60);
		redis_cluster_move_slot(&cluster, slot, at, to, i % 2 ? 0 : 60);
		at = to;
		recovers();
		taken = detours_since(before);
	}
	end();
	print_message("ASK: %" PRIu64 "; MOVED: %" PRIu64 "\n", taken.asks,
	              taken.moves);
	assert_true(taken.asks > 0);
	assert_true(taken.moves > 0);
}

/* The bucket of the only key of a limiter, and which server has it. */
static uint8_t find_bucket_of(const char *name, int *ret_at)
{
	char command[64];
	unsigned bucket = MAP_BUCKETS;

	snprintf(command, sizeof(command), "KEYS *%s*", name);
	for (int i = 0; i < CLUSTER_SERVERS; i++) {
		struct redis_talk talk;
		redisReply *keys;

		redis_talk_open(&talk, &cluster.servers[i]);
		keys = redis_talk_say(&talk, command);
		if (keys->elements > 0)
			must(sscanf(keys->element[0]->str, "gale:{b%2x}:", &bucket) ==
			     1);
		redis_reply_free(keys);
		redis_talk_close(&talk);
	}
	must(bucket < MAP_BUCKETS);
	*ret_at = redis_cluster_await_owner(&cluster, redis_slot((uint8_t)bucket));
	return (uint8_t)bucket;
}

/* Until one is not admitted: it is in the bucket whose slot is on its way. */
static struct gale_answer ask_for_new_keys(struct node *node)
{
	for (int i = 0;; i++) {
		struct gale_answer answer;
		char key[12];

		snprintf(key, sizeof(key), "n%d", i);
		answer = node_wait(node, key, GALE_MILLIS(200));
		if (answer.verdict != GALE_ALLOW)
			return answer;
		must(i < 100 * MAP_BUCKETS);
	}
}

/* What was admitted is known there, and what is new waits. */
static void a_slot_that_is_half_moved_is_served(void **state)
{
	struct gale_answer answers[4], fresh;
	struct node node;
	char url[URL_ROOM];
	unsigned slot;
	int from, to;

	(void)state;
	put_url(url, "", 0);
	open_node(&node, url, "half", gale_fixed_window(9, GALE_DAYS(3650)),
	          GALE_SECONDS(3));
	answers[0] = node_wait(&node, "k", PATIENCE);
	slot = redis_slot(find_bucket_of("half", &from));
	to = (from + 1) % CLUSTER_PRIMARIES;
	redis_cluster_move_keys(&cluster, slot, from, to, 0);
	answers[1] = node_wait(&node, "k", PATIENCE);
	answers[2] = node_wait(&node, "k", PATIENCE);
	fresh = ask_for_new_keys(&node);
	redis_cluster_move_slot(&cluster, slot, from, to, 0);
	answers[3] = node_wait(&node, "k", PATIENCE);
	redis_cluster_move_keys(&cluster, slot, to, from, 0);
	redis_cluster_move_slot(&cluster, slot, to, from, 0);
	node_close(&node);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(answers[i].verdict, GALE_ALLOW);
		assert_int_equal(answers[i].remaining, 8 - i);
	}
	assert_int_not_equal(fresh.why, GALE_WHY_RULE);
}

struct bucket {
	uint8_t number;
	int at;
};

/* The bucket of the limiter's key "k" is as if nothing had ever been forgotten of it. */
static struct bucket settle(const char *name, struct gale_rule rule)
{
	struct bucket bucket;
	struct node node;
	char url[URL_ROOM];

	put_url(url, "", 0);
	open_node(&node, url, name, rule, PATIENCE);
	assert_int_equal(node_wait(&node, "k", PATIENCE).verdict, GALE_ALLOW);
	node_close(&node);
	bucket.number = find_bucket_of(name, &bucket.at);
	redis_server_settle_bucket(&cluster.servers[bucket.at], "gale:", bucket.number,
	                           /* durable= */ 0);
	return bucket;
}

static void move(struct bucket *bucket, int to)
{
	unsigned slot = redis_slot(bucket->number);

	redis_cluster_move_keys(&cluster, slot, bucket->at, to, 0);
	redis_cluster_move_slot(&cluster, slot, bucket->at, to, 0);
	bucket->at = to;
}

/* Another than that one. */
static int other_primary(int primary)
{
	for (uint8_t i = 0;; i++) {
		int owner = redis_cluster_owner(&cluster, redis_slot(i));

		if (owner >= 0 && owner != primary)
			return owner;
	}
}

static void is_resharded(void *arg)
{
	struct bucket *bucket = arg;

	move(bucket, other_primary(bucket->at));
}

static uint64_t since(void *arg)
{
	const struct bucket *bucket = arg;

	return next_window_since(&cluster.servers[bucket->at], bucket->number);
}

/* So each server is asked for a generation now and then, but seldom for that of "k". */
static void use_many_buckets(struct node *node)
{
	for (int i = 0; i < MAP_BUCKETS; i++) {
		char key[12];

		snprintf(key, sizeof(key), "n%d", i);
		(void)node_wait(node, key, PATIENCE);
	}
}

/* Nobody asks for its keys meanwhile, and no connection is lost. */
static void the_window_after_a_slot_has_moved_is_whole_but_for_the_reserve(void **state)
{
	const struct gale_rule rule = gale_fixed_window(FIFTY, LONG_WINDOW);
	struct bucket bucket = settle("whole", rule);
	struct node node;
	char url[URL_ROOM];

	(void)state;
	put_url(url, "", 0);
	node_open(&node, &(struct node_plan){ .url = url,
	                                      .limiter = { .name = "whole",
	                                                   .rule = rule,
	                                                   .mode = GALE_LEASED } });
	use_many_buckets(&node);
	assert_int_equal(next_window_gives(&(struct next_window){
			     .node = &node,
			     .limit = FIFTY,
			     .length_us = LONG_WINDOW,
			     .key = "k",
			     .befall = is_resharded,
			     .since_us = since,
			     .arg = &bucket,
			 }),
	                 next_window_most(FIFTY));
	node_close(&node);
}

/* ---- Guards ----------------------------------------------------------------------- */

#define CEILING 6
#define GUARD "guarded"

struct guards {
	struct node nodes[2];
	struct gale_guard *guards[2];
	uint64_t beats[2]; /* that each has to have made */
};

static void open_guards(struct guards *g)
{
	const struct gale_rule rule = gale_fixed_window(FIFTY, LONG_WINDOW);
	struct gale_guard_config config = { .name = GUARD,
		                            .law = GALE_FIXED,
		                            .ceiling = CEILING,
		                            .beat_us = GALE_MILLIS(100),
		                            .lease_us = GALE_SECONDS(1),
		                            .parts = GALE_BY_WEIGHT };
	char url[URL_ROOM];

	*g = (struct guards){ 0 };
	for (int i = 0; i < 2; i++) {
		put_url(url, "", i);
		open_node(&g->nodes[i], url, "beside", rule, PATIENCE);
		config.store = g->nodes[i].store;
		must(gale_guard_open(g->nodes[i].runtime, &config, &g->guards[i]) ==
		     GALE_ERR_OK);
	}
}

static void close_guards(struct guards *g)
{
	for (int i = 0; i < 2; i++) {
		gale_guard_close(g->guards[i]);
		node_close(&g->nodes[i]);
	}
}

static struct gale_guard_counts counts_of(const struct guards *g, int i)
{
	struct gale_guard_counts counts;

	must(gale_guard_stats(g->guards[i], &counts) == GALE_ERR_OK);
	return counts;
}

/* After so many beats both know of two nodes, and each has its half. */
static bool is_parted(void *arg)
{
	const struct guards *g = arg;
	bool parted = true;

	for (int i = 0; i < 2; i++) {
		struct gale_guard_counts counts = counts_of(g, i);

		parted &= counts.beats >= g->beats[i] && counts.share == CEILING / 2 &&
		          counts.fleet_nodes == 2;
	}
	return parted;
}

/* How many keys of the group a server has; they all have the tag of that bucket. */
static size_t keys_at(int server, uint8_t bucket)
{
	struct redis_talk talk;
	char tag[16];
	redisReply *keys;
	size_t count;

	snprintf(tag, sizeof(tag), "gale:{b%02x}", bucket);
	redis_talk_open(&talk, &cluster.servers[server]);
	keys = redis_talk_say(&talk, "KEYS *" GUARD "*");
	count = keys->elements;
	for (size_t i = 0; i < count; i++)
		assert_memory_equal(keys->element[i]->str, tag, strlen(tag));
	redis_reply_free(keys);
	redis_talk_close(&talk);
	return count;
}

/* The keys of a group lie in one slot, and its nodes follow them. */
static void a_group_moves_with_its_slot(void **state)
{
	struct bucket bucket;
	struct guards g;
	size_t keys;
	int from;

	(void)state;
	open_guards(&g);
	must(becomes_true(is_parted, &g));
	bucket.number = find_bucket_of(GUARD, &bucket.at);
	keys = keys_at(bucket.at, bucket.number);
	assert_in_range(keys, 2,
	                3); /* members, leases, and estimates if there are any */
	from = bucket.at;
	move(&bucket, other_primary(from));
	for (int i = 0; i < 2; i++)
		g.beats[i] = counts_of(&g, i).beats + 3;
	must(becomes_true(is_parted, &g));
	assert_int_equal(keys_at(bucket.at, bucket.number), keys);
	assert_int_equal(keys_at(from, bucket.number), 0);
	close_guards(&g);
}

static bool somebody_else_has(unsigned slot, int not )
{
	int owner = redis_cluster_owner(&cluster, slot);

	return owner >= 0 && owner != not ;
}

struct heir {
	unsigned slot;
	int of;
};

static bool has_heir(void *arg)
{
	const struct heir *heir = arg;

	return somebody_else_has(heir->slot, heir->of);
}

static void a_primary_is_killed(void **state)
{
	struct heir heir;

	(void)state;
	let_ask();
	recovers();
	heir.slot = some_slot_at(0);
	heir.of = redis_cluster_await_owner(&cluster, heir.slot);
	redis_cluster_kill(&cluster, heir.of);
	must(becomes_true(has_heir, &heir));
	recovers();
	redis_cluster_restart(&cluster, heir.of);
	recovers();
	end();
	redis_cluster_settle(&cluster);
}

static void a_primary_stands_still_and_goes_on(void **state)
{
	struct heir heir;

	(void)state;
	let_ask();
	recovers();
	heir.slot = some_slot_at(1);
	heir.of = redis_cluster_await_owner(&cluster, heir.slot);
	redis_cluster_pause(&cluster, heir.of);
	must(becomes_true(has_heir, &heir));
	recovers();
	redis_cluster_go_on(&cluster, heir.of);
	recovers();
	end();
	redis_cluster_settle(&cluster);
}

/* A replica takes over without asking anybody, so soon that the window is still open. */
static void a_replica_takes_over_within_a_window(void **state)
{
	(void)state;
	let_ask();
	recovers();
	for (int i = 0; i < 2; i++) {
		struct heir heir = { .slot = redis_slot(0) };
		int replica;

		heir.of = redis_cluster_await_owner(&cluster, heir.slot);
		replica = redis_cluster_replica(&cluster, heir.of);
		must(replica >= 0);
		while (wall_us() % WINDOW > WINDOW / 10)
			nap(500); /* the old one will know before the window ends */
		redis_server_do(&cluster.servers[replica], "CLUSTER FAILOVER TAKEOVER");
		must(becomes_true(has_heir, &heir));
		recovers();
		redis_cluster_settle(&cluster);
	}
	end();
}

/* ---- Granted durably ------------------------------------------------------------- */

#define DAILY 2000
#define BATCH 20
#define AT_ONCE 100
#define PATIENCE_NS UINT64_C(60000000000)

static struct {
	struct node node;
	char url[URL_ROOM + 32];
	const char *prefix;
	_Atomic unsigned admitted;
} d;

/* quarantine_us: who waits at all waits so long. */
static void open_durable(uint64_t quarantine_us, enum gale_mode mode)
{
	node_open(&d.node,
	          &(struct node_plan){
		      .url = d.url,
		      .quarantine_us = quarantine_us,
		      .shards = 1,
		      .limiter = { .name = "day",
	                           .rule = gale_fixed_window(DAILY, GALE_DAYS(3650)),
	                           .mode = mode,
	                           .lease = { .sizing = GALE_SIZE_FIXED,
	                                      .batch = BATCH,
	                                      .patience_us = GALE_SECONDS(2) } },
		  });
}

static struct gale_answer ask_durable(struct gale_seat *seat)
{
	struct gale_answer answer =
	    gale_wait(seat, d.node.limiter, "k", 1, 1, GALE_SECONDS(2));

	if (answer.verdict == GALE_ALLOW)
		add_relaxed(&d.admitted, 1);
	return answer;
}

static void ask_alone(void *arg, unsigned who)
{
	struct gale_seat *seat;

	(void)arg, (void)who;
	must(gale_join(d.node.runtime, &seat) == GALE_ERR_OK);
	(void)ask_durable(seat);
	gale_leave(seat);
}

/* So many more in all. */
static void is_admitted(unsigned times)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;
	unsigned until = load_relaxed(&d.admitted) + times;

	while (load_relaxed(&d.admitted) < until) {
		(void)ask_durable(d.node.seat);
		nap(200);
		assert_true(patience_now_ns() < deadline);
	}
}

static void is_used_up(void)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;
	struct gale_answer answer;

	do {
		answer = ask_durable(d.node.seat);
		assert_true(patience_now_ns() < deadline);
	} while (answer.verdict == GALE_ALLOW ||
	         (answer.why != GALE_WHY_RULE && answer.why != GALE_WHY_SPENT));
}

/* The value of its only key at a server that has it, for redis_reply_free; NULL: it has
 * none. */
static redisReply *value_at(int i, unsigned *ret_bucket)
{
	redisReply *keys, *value = NULL;
	struct redis_talk talk;
	char command[32];

	snprintf(command, sizeof(command), "KEYS %s*day*", d.prefix);
	redis_talk_open(&talk, &cluster.servers[i]);
	keys = redis_talk_say(&talk, command);
	if (keys->elements > 0) {
		const redisReply *key = keys->element[0];
		const struct remote_bytes words[] = {
			{ (const uint8_t *)"GET", 3 },
			{ (const uint8_t *)key->str, key->len },
		};

		must(sscanf(key->str + strlen(d.prefix), "{b%2x}:", ret_bucket) == 1);
		must(redis_put_words(&talk.text, words, 2));
		redis_talk_send(&talk);
		value = redis_talk_hear(&talk);
	}
	redis_reply_free(keys);
	redis_talk_close(&talk);
	return value;
}

static uint64_t used_at(int i)
{
	unsigned bucket;
	redisReply *value = value_at(i, &bucket);
	uint64_t words[2];

	must(value && redis_window_of(value, words));
	redis_reply_free(value);
	return words[1];
}

static uint8_t find_bucket(void)
{
	unsigned bucket = MAP_BUCKETS;

	for (int i = 0; i < CLUSTER_SERVERS; i++) {
		redisReply *value = value_at(i, &bucket);

		if (value)
			redis_reply_free(value);
	}
	must(bucket < MAP_BUCKETS);
	return (uint8_t)bucket;
}

/* One is admitted, and it is as if the server had never forgotten anything. */
static struct heir begin_a_day(enum gale_mode mode)
{
	uint8_t bucket;
	struct heir heir;

	open_durable(/* quarantine_us= */ 1, GALE_STRICT);
	is_admitted(1);
	node_close(&d.node);
	bucket = find_bucket();
	heir.slot = redis_slot(bucket);
	heir.of = redis_cluster_await_owner(&cluster, heir.slot);
	redis_server_settle_bucket(&cluster.servers[heir.of], d.prefix, bucket, 1);
	open_durable(GALE_DAYS(1), mode);
	return heir;
}

static bool has_no_replica(void *arg)
{
	struct redis_talk talk;
	redisReply *reply;
	bool none;

	redis_talk_open(&talk, arg);
	reply = redis_talk_say(&talk, "INFO replication");
	none = strstr(reply->str, "connected_slaves:0") != NULL;
	redis_reply_free(reply);
	redis_talk_close(&talk);
	return none;
}

/* Its replica hears of nothing any more, and is not let in again. */
static void cut_off(int primary)
{
	struct redis_server *server = &cluster.servers[primary];

	redis_server_do(server, "ACL SETUSER default -psync -sync");
	redis_server_do(server, "CLIENT KILL TYPE replica");
	must(becomes_true(has_no_replica, server));
}

/* What the replica has not got when its primary dies, nobody was told of. */
static void is_gone_on_with(const char *prefix, enum gale_mode mode)
{
	struct heir heir;
	uint64_t used;
	int to;

	memset(&d, 0, sizeof(d));
	d.prefix = prefix;
	put_url(d.url, "", 0);
	strcat(d.url, "?durable=1&prefix=");
	strcat(d.url, prefix);
	heir = begin_a_day(mode);
	is_admitted(DAILY / 4);
	nap(GALE_SECONDS(3)); /* what is stored is then of younger days than ... */
	is_admitted(BATCH);   /* ... who stores it */
	cut_off(heir.of);
	used = used_at(heir.of);
	crew_run(AT_ONCE, ask_alone, NULL);
	assert_true(used_at(heir.of) > used);
	used = used_at(heir.of);
	redis_cluster_kill(&cluster, heir.of);
	must(becomes_true(has_heir, &heir));
	to = redis_cluster_await_owner(&cluster, heir.slot);
	assert_true(used_at(to) < used);
	assert_true(used_at(to) >= load_relaxed(&d.admitted));
	redis_cluster_restart(&cluster, heir.of);
	redis_cluster_settle(&cluster);
	is_admitted(DAILY / 4);
	is_used_up();
	print_message("%u of %u were admitted\n", load_relaxed(&d.admitted), DAILY);
	assert_in_range(load_relaxed(&d.admitted), DAILY / 2, DAILY);
	node_close(&d.node);
}

static void what_a_replica_has_not_got_nobody_was_granted(void **state)
{
	(void)state;
	is_gone_on_with("d:", GALE_STRICT);
}

static void what_a_replica_has_not_got_nobody_was_lent(void **state)
{
	(void)state;
	is_gone_on_with("e:", GALE_LEASED);
}

/* A replica that had not got all takes over, and its slot moves on before anybody asks: the
 * generation that comes with the keys is that of a primary which had granted more. */
static void what_was_lost_before_a_slot_moved_is_not_granted(void **state)
{
	const struct gale_rule rule = gale_fixed_window(FIFTY, GALE_DAYS(3650));
	struct bucket bucket = settle("lost", rule);
	struct heir heir = { .slot = redis_slot(bucket.number), .of = bucket.at };
	int replica = redis_cluster_replica(&cluster, bucket.at);
	struct node node;
	char url[URL_ROOM];

	(void)state;
	must(replica >= 0);
	put_url(url, "", 0);
	open_node(&node, url, "lost", rule, PATIENCE);
	for (int i = 1; i < FIFTY; i++) {
		assert_int_equal(node_wait(&node, "k", PATIENCE).verdict, GALE_ALLOW);
		if (i == 1)
			cut_off(bucket.at);
	}
	node_close(&node);
	redis_cluster_kill(&cluster, bucket.at);
	redis_server_do(&cluster.servers[replica], "CLUSTER FAILOVER TAKEOVER");
	must(becomes_true(has_heir, &heir));
	redis_cluster_restart(&cluster, bucket.at);
	redis_cluster_settle(&cluster);
	bucket.at = replica;
	move(&bucket, other_primary(replica));
	node_open(&node, &(struct node_plan){ .url = url,
	                                      .quarantine_us = GALE_DAYS(1),
	                                      .limiter = { .name = "lost",
	                                                   .rule = rule,
	                                                   .mode = GALE_STRICT } });
	assert_int_equal(node_wait(&node, "k", PATIENCE).why, GALE_WHY_QUARANTINE);
	node_close(&node);
}

/* ---- What cannot be believed ----------------------------------------------------- */

static enum gale_why why_of(const char *url, uint64_t patience_us)
{
	struct gale_answer answer;
	struct node node;

	open_node(&node, url, "why", gale_fixed_window(9, GALE_HOURS(1)), patience_us);
	answer = node_wait(&node, "k", PATIENCE);
	node_close(&node);
	return answer.why;
}

static void one_seed_that_is_up_is_enough(void **state)
{
	char url[URL_ROOM];

	(void)state;
	snprintf(url, sizeof(url),
	         "redis+cluster://127.0.0.1:1,127.0.0.1:2,127.0.0.1:%.7s",
	         cluster.ports[5]);
	assert_int_equal(why_of(url, PATIENCE), GALE_WHY_RULE);
	assert_int_equal(why_of("redis+cluster://127.0.0.1:1,127.0.0.1:2", PATIENCE),
	                 GALE_WHY_DOWN);
}

static bool is_ruled(void *arg)
{
	return node_wait(arg, "k", PATIENCE).why == GALE_WHY_RULE;
}

static void a_name_that_is_known_later_is_found(void **state)
{
	struct lines lines;
	struct node node;
	char url[URL_ROOM];

	(void)state;
	snprintf(url, sizeof(url), "redis+cluster://" LATE_NAME ":%.7s",
	         cluster.ports[0]);
	lines_open(&lines);
	late_name_is_known(false);
	node_open(&node, &(struct node_plan){
			     .url = url,
			     .quarantine_us = 1,
			     .log = &lines.log,
			     .limiter = { .name = "late",
	                                  .rule = gale_fixed_window(9, GALE_HOURS(1)) },
			 });
	assert_true(lines_have(&lines, "url: no address is known of " LATE_NAME));
	assert_int_equal(node_wait(&node, "k", GALE_SECONDS(2)).why, GALE_WHY_DOWN);
	assert_true(lines_will_have(&lines, "no address is known of its hosts"));
	late_name_is_known(true);
	assert_true(becomes_true(is_ruled, &node));
	node_close(&node);
}

static void who_is_not_let_in_is_told(void **state)
{
	char url[URL_ROOM];

	(void)state;
	put_url(url, "nobody:wrong@", 0);
	assert_int_equal(why_of(url, GALE_SECONDS(3)), GALE_WHY_DOWN);
}

/* With the commands that stores/redis/wire.h names; and he says what others say. */
static void a_user_of_a_durable_cluster_needs_little(void **state)
{
	char plain[URL_ROOM], durable[URL_ROOM + 16];

	(void)state;
	for (int i = 0; i < CLUSTER_SERVERS; i++)
		redis_server_do(&cluster.servers[i],
		                "ACL SETUSER least reset on >x ~l:* +eval +evalsha "
		                "+script|load +info +time +get +set +setrange "
		                "+del +wait +cluster|slots +asking");
	put_url(plain, "least:x@", 0);
	strcat(plain, "?prefix=l:");
	snprintf(durable, sizeof(durable), "%s&durable=1", plain);
	assert_int_equal(why_of(durable, GALE_SECONDS(3)), GALE_WHY_RULE);
	assert_int_equal(why_of(plain, GALE_SECONDS(3)), GALE_WHY_DOWN);
	for (int i = 0; i < CLUSTER_SERVERS; i++)
		redis_server_do(&cluster.servers[i], "ACL DELUSER least");
}

/* What a node says of slots is believed if all of it can be. */
static void rubbish_about_slots_is_not_believed(void **state)
{
	static const char *const rubbish[] = {
		"*0\r\n",
		":1\r\n",
		"*1\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$0\r\n\r\n:6379\r\n",
		"*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$0\r\n\r\n:6379\r\n",
		"*1\r\n*3\r\n:2\r\n:1\r\n*2\r\n$0\r\n\r\n:6379\r\n",
		"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:0\r\n",
		"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:65536\r\n",
		"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n:1\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$4\r\nname\r\n:6379\r\n",
		"*1\r\n*3\r\n:0\r\n:16383\r\n*1\r\n$0\r\n\r\n",
		"*1\r\n*2\r\n:0\r\n:16383\r\n",
		"*999999999\r\n",
		"-ERR This instance has cluster support disabled\r\n",
	};
	char url[URL_ROOM];
	struct rogue rogue;

	(void)state;
	rogue_open(&rogue);
	snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%u", rogue.port);
	for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++) {
		rogue_say(&rogue, ROGUE_SLOTS, rubbish[i]);
		assert_int_equal(why_of(url, GALE_SECONDS(3)), GALE_WHY_DOWN);
	}
	rogue_close(&rogue);
}

/* A node that sends everybody away, or round in circles; nobody waits longer than he
 * wants to. */
static void who_is_sent_nowhere_is_answered(void **state)
{
	static const char *const answers[] = {
		"-MOVED 1 name:6379\r\n",        "-MOVED 1 127.0.0.1:1\r\n",
		"-MOVED 16384 127.0.0.1:1\r\n",  "-MOVED\r\n",
		"-ASK 1 name:6379\r\n",          "-ASK 1 127.0.0.1:1\r\n",
		"-TRYAGAIN of keys\r\n",         "-CLUSTERDOWN of all\r\n",
		"-READONLY it is a replica\r\n", "$-1\r\n",
	};
	char url[URL_ROOM], slots[64], circle[2][32];
	struct rogue rogue;

	(void)state;
	rogue_open(&rogue);
	snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%u", rogue.port);
	snprintf(slots, sizeof(slots),
	         "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:%u\r\n", rogue.port);
	snprintf(circle[0], sizeof(circle[0]), "-MOVED 1 :%u\r\n", rogue.port);
	snprintf(circle[1], sizeof(circle[1]), "-ASK 1 :%u\r\n", rogue.port);
	rogue_say(&rogue, ROGUE_SLOTS, slots);
	assert_int_equal(why_of(url, PATIENCE), GALE_WHY_RULE); /* it can be honest */
	for (int to = ROGUE_GENERATION; to <= ROGUE_CALL; to++) {
		for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
			rogue_say(&rogue, (enum rogue_to)to, answers[i]);
			assert_int_not_equal(why_of(url, GALE_MILLIS(200)),
			                     GALE_WHY_RULE);
		}
		for (int i = 0; i < 2; i++) {
			rogue_say(&rogue, (enum rogue_to)to, circle[i]);
			assert_int_not_equal(why_of(url, GALE_MILLIS(200)),
			                     GALE_WHY_RULE);
		}
		rogue_say(&rogue, (enum rogue_to)to, NULL);
	}
	rogue_close(&rogue);
}

/* Nobody waits for what cannot come. */
static void all_is_closed_while_nobody_answers(void **state)
{
	(void)state;
	let_ask();
	recovers();
	for (int i = 0; i < CLUSTER_SERVERS; i++)
		redis_cluster_pause(&cluster, i);
	nap(GALE_MILLIS(50));
	end();
	for (int i = 0; i < CLUSTER_SERVERS; i++)
		redis_cluster_go_on(&cluster, i);
}

static int start_cluster(void **state)
{
	(void)state;
	redis_cluster_start(&cluster);
	return 0;
}

static int stop_cluster(void **state)
{
	(void)state;
	redis_cluster_stop(&cluster);
	return 0;
}

/* The tests whose names match the argument; all, without one. */
int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_hundred_at_a_limit_of_fifty_admit_fifty),
		cmocka_unit_test(one_seed_that_is_up_is_enough),
		cmocka_unit_test(a_name_that_is_known_later_is_found),
		cmocka_unit_test(who_is_not_let_in_is_told),
		cmocka_unit_test(a_user_of_a_durable_cluster_needs_little),
		cmocka_unit_test(rubbish_about_slots_is_not_believed),
		cmocka_unit_test(who_is_sent_nowhere_is_answered),
		cmocka_unit_test(keys_are_on_all_primaries),
		cmocka_unit_test(a_slot_that_is_half_moved_is_served),
		cmocka_unit_test(a_slot_moves),
		cmocka_unit_test(
		    the_window_after_a_slot_has_moved_is_whole_but_for_the_reserve),
		cmocka_unit_test(a_group_moves_with_its_slot),
		cmocka_unit_test(what_was_lost_before_a_slot_moved_is_not_granted),
		cmocka_unit_test(a_replica_takes_over_within_a_window),
		cmocka_unit_test(a_primary_is_killed),
		cmocka_unit_test(a_primary_stands_still_and_goes_on),
		cmocka_unit_test(what_a_replica_has_not_got_nobody_was_granted),
		cmocka_unit_test(what_a_replica_has_not_got_nobody_was_lent),
		cmocka_unit_test(all_is_closed_while_nobody_answers),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
