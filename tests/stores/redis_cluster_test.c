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
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "stores/redis/cluster.h"
#include "sim/allocator.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/rogue.h"
#include "tools/tally.h"

#define WINDOW GALE_MILLIS(300)
#define QUARANTINE (2 * WINDOW) /* all clocks are one: none is ahead of another */
#define LIMIT 20
#define NODES 2
#define SHARDS 2
#define KEYS 12
#define ASKERS_EACH 2 /* for each limiter of a node */
#define WITHIN GALE_MILLIS(150)
#define MARGIN GALE_MILLIS(250)
#define RECOVERY GALE_SECONDS(25) /* with what the cluster takes to notice */
#define CROWD 200
#define FIFTY 50
#define PATIENCE GALE_SECONDS(10)
#define URL_ROOM 128

enum how {
	STRICT,
	CACHED_DENY,
	LEASED,
	HOW_COUNT,
};

#define ASKERS (NODES * HOW_COUNT * ASKERS_EACH)

struct node {
	struct test_allocator allocator;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiters[HOW_COUNT];
};

struct asker {
	pthread_t thread;
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct tally *tally;
	uint32_t number; /* in its tally */
	enum how how;
	_Atomic uint64_t asks;
	_Atomic uint64_t answers;
	_Atomic uint64_t longest_us;
	_Atomic uint64_t admitted_us[KEYS]; /* the latest */
};

struct fleet {
	struct node nodes[NODES];
	struct tally tallies[HOW_COUNT];
	struct asker askers[ASKERS];
	_Atomic bool stopping;
	pthread_t canary;
	_Atomic uint64_t canary_late_us;
};

static struct redis_cluster cluster;
static struct fleet f;
static const char *const names[] = { "strict", "cached", "leased" };

static uint64_t wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void nap(uint64_t us)
{
	const struct timespec time = { .tv_sec = (time_t)(us / 1000000),
		                       .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&time, NULL);
}

/* ---- Askers ---------------------------------------------------------------------- */

/* How late the machine itself is: no asker can be served better. */
static void *canary_main(void *arg)
{
	(void)arg;
	while (!load_relaxed(&f.stopping)) {
		uint64_t before_us = patience_now_ns() / 1000, late_us;

		nap(1000);
		late_us = patience_now_ns() / 1000 - before_us;
		if (load_relaxed(&f.canary_late_us) < late_us)
			store_relaxed(&f.canary_late_us, late_us);
	}
	return NULL;
}

static void bump(_Atomic uint64_t *counter)
{
	store_relaxed(counter, load_relaxed(counter) + 1);
}

static struct tally_span place(const struct gale_answer *answer, uint64_t before_us,
                               uint64_t after_us)
{
	if (answer->why == GALE_WHY_CREDIT)
		return tally_place_lent(WINDOW, before_us, after_us,
		                        answer->reset_after_us);
	return tally_place(WINDOW, before_us, after_us, answer->reset_after_us);
}

static void ask_once(struct asker *asker, struct gale_seat *seat, uint32_t key)
{
	char name[2] = { 'k', (char)('a' + key) };
	uint64_t before_us = wall_us(), began = patience_now_ns(), took_us, after_us;
	struct gale_answer answer;

	bump(&asker->asks);
	answer = gale_wait(seat, asker->limiter, name, 2, 1, WITHIN);
	took_us = (patience_now_ns() - began) / 1000;
	after_us = wall_us();
	bump(&asker->answers);
	if (load_relaxed(&asker->longest_us) < took_us)
		store_relaxed(&asker->longest_us, took_us);
	if (answer.verdict != GALE_ALLOW)
		return;
	tally_count(asker->tally, asker->number, key,
	            place(&answer, before_us, after_us));
	store_relaxed(&asker->admitted_us[key], after_us);
}

static void *asker_main(void *arg)
{
	struct asker *asker = arg;
	struct gale_seat *seat;

	must(gale_join(asker->runtime, &seat) == GALE_ERR_OK);
	for (uint32_t i = asker->number; !load_relaxed(&f.stopping); i++) {
		ask_once(asker, seat, i % KEYS);
		if (i % KEYS == 0)
			nap(2000);
	}
	gale_leave(seat);
	return NULL;
}

/* ---- The fleet ------------------------------------------------------------------- */

static void put_url(char *out, const char *user, int first)
{
	snprintf(out, URL_ROOM, "redis+cluster://%s127.0.0.1:%.7s,127.0.0.1:%.7s", user,
	         cluster.ports[first], cluster.ports[(first + 1) % CLUSTER_SERVERS]);
}

static struct gale_limiter *open_limiter(struct node *node, const char *name,
                                         struct gale_rule rule, enum gale_mode mode,
                                         uint64_t patience_us)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = rule,
		.mode = mode,
		.store = node->store,
		.lease.patience_us = patience_us,
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(node->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static void node_open(struct node *node, const char *url, uint64_t quarantine_us)
{
	struct gale_store_config store = { .url = url, .quarantine_us = quarantine_us };
	struct gale_config config = { .shards = SHARDS,
		                      .allocator = &node->allocator.allocator };

	test_allocator_init(&node->allocator);
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
}

static void node_close(struct node *node)
{
	for (int how = 0; how < HOW_COUNT; how++)
		gale_limiter_close(node->limiters[how]);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	assert_true(test_allocator_is_balanced(&node->allocator));
}

static void open_tallies(void)
{
	struct tally_config config = {
		.keys = KEYS,
		.workers = NODES * ASKERS_EACH,
		.ring = tally_ring(KEYS),
		.limit = LIMIT,
		.window_us = WINDOW,
		.begin_us = wall_us(),
	};

	for (int how = 0; how < HOW_COUNT; how++)
		must(tally_open(&f.tallies[how], &config));
}

static void open_fleet_node(int i)
{
	static const enum gale_mode modes[] = { GALE_STRICT, GALE_CACHED_DENY,
		                                GALE_LEASED };
	struct node *node = &f.nodes[i];
	char url[URL_ROOM];

	put_url(url, "", i * 2);
	node_open(node, url, QUARANTINE);
	for (int how = 0; how < HOW_COUNT; how++)
		node->limiters[how] = open_limiter(
		    node, names[how], gale_fixed_window(LIMIT, WINDOW), modes[how], 0);
}

static void start_asker(uint32_t i)
{
	struct asker *asker = &f.askers[i];
	uint32_t node = i % NODES, which = i / NODES / HOW_COUNT;

	asker->how = (enum how)(i / NODES % HOW_COUNT);
	asker->runtime = f.nodes[node].runtime;
	asker->limiter = f.nodes[node].limiters[asker->how];
	asker->tally = &f.tallies[asker->how];
	asker->number = which * NODES + node;
	must(pthread_create(&asker->thread, NULL, asker_main, asker) == 0);
}

static void let_ask(void)
{
	memset(&f, 0, sizeof(f));
	open_tallies();
	for (int i = 0; i < NODES; i++)
		open_fleet_node(i);
	for (uint32_t i = 0; i < ASKERS; i++)
		start_asker(i);
	must(pthread_create(&f.canary, NULL, canary_main, NULL) == 0);
}

static bool is_admitted_after(enum how how, int key, uint64_t us)
{
	for (uint32_t i = 0; i < ASKERS; i++)
		if (f.askers[i].how == how &&
		    load_relaxed(&f.askers[i].admitted_us[key]) > us)
			return true;
	return false;
}

static bool all_admit_after(uint64_t us)
{
	for (int how = 0; how < HOW_COUNT; how++)
		for (int key = 0; key < KEYS; key++)
			if (!is_admitted_after((enum how)how, key, us))
				return false;
	return true;
}

/* All keys of all limiters are admitted again. */
static void recovers(void)
{
	uint64_t now = wall_us(), deadline = now + RECOVERY;

	while (!all_admit_after(now)) {
		must(wall_us() < deadline);
		nap(1000);
	}
	print_message("recovered after %" PRIu64 " ms\n", (wall_us() - now) / 1000);
}

static void check_tally(enum how how)
{
	struct tally_totals totals;

	tally_finish(&f.tallies[how], wall_us());
	totals = tally_total(&f.tallies[how]);
	print_message("%s: %" PRIu64 " in %" PRIu64 " windows, at most %" PRIu64 "\n",
	              names[how], totals.admitted, totals.windows, totals.admitted_max);
	tally_close(&f.tallies[how]);
	assert_in_range(totals.admitted_max, 1, LIMIT); /* L1, L12 */
	assert_int_equal(totals.disagreements, 0);
}

static void end(void)
{
	store_relaxed(&f.stopping, true);
	for (uint32_t i = 0; i < ASKERS; i++)
		must(pthread_join(f.askers[i].thread, NULL) == 0);
	must(pthread_join(f.canary, NULL) == 0);
	for (int i = 0; i < NODES; i++)
		node_close(&f.nodes[i]);
	for (int how = 0; how < HOW_COUNT; how++)
		check_tally((enum how)how);
	for (uint32_t i = 0; i < ASKERS; i++) {
		const struct asker *asker = &f.askers[i];

		assert_int_equal(asker->asks, asker->answers);
		assert_in_range(asker->longest_us, 0,
		                WITHIN + MARGIN + 3 * f.canary_late_us);
	}
}

/* The bucket of a key that is asked of the store all the time; -1: it is another. */
static int bucket_of(const redisReply *key)
{
	unsigned bucket;

	if (key->type != REDIS_REPLY_STRING ||
	    sscanf(key->str, "gale:{b%2x}:", &bucket) != 1)
		return -1;
	if (!memmem(key->str, key->len, names[STRICT], strlen(names[STRICT])))
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
	struct gale_limiter *limiter;
	_Atomic unsigned allowed[KEYS];
	_Atomic unsigned denied[KEYS];
};

static void come(void *arg, unsigned who)
{
	struct crowd *crowd = arg;
	struct gale_seat *seat;

	(void)who;
	must(gale_join(crowd->node.runtime, &seat) == GALE_ERR_OK);
	for (int key = 0; key < KEYS; key++) {
		char name[2] = { 'k', (char)('a' + key) };
		struct gale_answer answer =
		    gale_wait(seat, crowd->limiter, name, 2, 1, PATIENCE);

		must(answer.why == GALE_WHY_RULE);
		atomic_fetch_add(answer.verdict == GALE_ALLOW ? &crowd->allowed[key]
		                                              : &crowd->denied[key],
		                 1);
	}
	gale_leave(seat);
}

static void two_hundred_at_a_limit_of_fifty_admit_fifty(void **state)
{
	static struct crowd crowd;
	char url[URL_ROOM];

	(void)state;
	put_url(url, "", 0);
	node_open(&crowd.node, url, /* quarantine_us= */ 1);
	crowd.limiter = open_limiter(&crowd.node, "crowd",
	                             gale_fixed_window(FIFTY, GALE_DAYS(3650)),
	                             GALE_STRICT, PATIENCE);
	crew_run(CROWD, come, &crowd);
	for (int key = 0; key < KEYS; key++) {
		assert_int_equal(crowd.allowed[key], FIFTY);
		assert_int_equal(crowd.denied[key], CROWD - FIFTY);
	}
	gale_limiter_close(crowd.limiter);
	node_close(&crowd.node);
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
	at = redis_cluster_owner(&cluster, slot);
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

/* The slot of the only key of a limiter, and which server has it. */
static unsigned slot_of(const char *name, int *ret_at)
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
	*ret_at = redis_cluster_owner(&cluster, redis_slot((uint8_t)bucket));
	return redis_slot((uint8_t)bucket);
}

/* Until one is not admitted: it is in the bucket whose slot is on its way. */
static struct gale_answer ask_for_new_keys(struct gale_seat *seat,
                                           struct gale_limiter *limiter)
{
	for (int i = 0;; i++) {
		struct gale_answer answer;
		char key[12];

		snprintf(key, sizeof(key), "n%d", i);
		answer =
		    gale_wait(seat, limiter, key, strlen(key), 1, GALE_MILLIS(200));
		if (answer.verdict != GALE_ALLOW)
			return answer;
		must(i < 100 * MAP_BUCKETS);
	}
}

/* What was admitted is known there, and what is new waits. */
static void a_slot_that_is_half_moved_is_served(void **state)
{
	static struct node node;
	struct gale_answer answers[4], fresh;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	char url[URL_ROOM];
	unsigned slot;
	int from, to;

	(void)state;
	put_url(url, "", 0);
	node_open(&node, url, /* quarantine_us= */ 1);
	limiter = open_limiter(&node, "half", gale_fixed_window(9, GALE_DAYS(3650)),
	                       GALE_STRICT, GALE_SECONDS(3));
	must(gale_join(node.runtime, &seat) == GALE_ERR_OK);
	answers[0] = gale_wait(seat, limiter, "k", 1, 1, PATIENCE);
	slot = slot_of("half", &from);
	to = (from + 1) % CLUSTER_PRIMARIES;
	redis_cluster_move_keys(&cluster, slot, from, to, 0);
	answers[1] = gale_wait(seat, limiter, "k", 1, 1, PATIENCE);
	answers[2] = gale_wait(seat, limiter, "k", 1, 1, PATIENCE);
	fresh = ask_for_new_keys(seat, limiter);
	redis_cluster_move_slot(&cluster, slot, from, to, 0);
	answers[3] = gale_wait(seat, limiter, "k", 1, 1, PATIENCE);
	redis_cluster_move_keys(&cluster, slot, to, from, 0);
	redis_cluster_move_slot(&cluster, slot, to, from, 0);
	gale_leave(seat);
	gale_limiter_close(limiter);
	node_close(&node);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(answers[i].verdict, GALE_ALLOW);
		assert_int_equal(answers[i].remaining, 8 - i);
	}
	assert_int_not_equal(fresh.why, GALE_WHY_RULE);
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
	heir.of = redis_cluster_owner(&cluster, heir.slot);
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
	heir.of = redis_cluster_owner(&cluster, heir.slot);
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

		heir.of = redis_cluster_owner(&cluster, heir.slot);
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

static enum gale_why why_of(const char *url, uint64_t patience_us)
{
	static struct node node;
	struct gale_limiter *limiter;
	struct gale_answer answer;
	struct gale_seat *seat;

	memset(&node, 0, sizeof(node));
	node_open(&node, url, /* quarantine_us= */ 1);
	limiter = open_limiter(&node, "why", gale_fixed_window(9, GALE_HOURS(1)),
	                       GALE_STRICT, patience_us);
	must(gale_join(node.runtime, &seat) == GALE_ERR_OK);
	answer = gale_wait(seat, limiter, "k", 1, 1, PATIENCE);
	gale_leave(seat);
	gale_limiter_close(limiter);
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
		                "+script|load +info +time +get +set +setrange +del "
		                "+wait +cluster|slots +asking");
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
		cmocka_unit_test(who_is_not_let_in_is_told),
		cmocka_unit_test(a_user_of_a_durable_cluster_needs_little),
		cmocka_unit_test(rubbish_about_slots_is_not_believed),
		cmocka_unit_test(who_is_sent_nowhere_is_answered),
		cmocka_unit_test(keys_are_on_all_primaries),
		cmocka_unit_test(a_slot_that_is_half_moved_is_served),
		cmocka_unit_test(a_slot_moves),
		cmocka_unit_test(a_replica_takes_over_within_a_window),
		cmocka_unit_test(a_primary_is_killed),
		cmocka_unit_test(a_primary_stands_still_and_goes_on),
		cmocka_unit_test(all_is_closed_while_nobody_answers),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
