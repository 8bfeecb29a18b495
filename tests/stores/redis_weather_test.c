/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_weather_test.c -- a fleet on a real server, and what can befall the two.
 *
 *     nodes: askers of a strict, a cached-deny and a leased limiter  --proxy-->  server
 *
 * Two nodes are asked as fast as two processors allow, in windows of WINDOW; meanwhile
 * something happens to the server, or on the way to it.  Whatever that is:
 *
 *   - no window of the store has more than the limit of admissions, as counted here: an
 *     admission lies between two readings of the clock                        (L1, L12)
 *   - who asks is answered in time, and every ask is answered once                (L11)
 *   - when all is well again, so are the limiters, within RECOVERY
 *   - nothing is left behind
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "sim/allocator.h"
#include "tests/support/must.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tools/tally.h"

#define WINDOW GALE_MILLIS(300)
#define LIMIT 40
#define NODES 2
#define SHARDS 2
#define WITHIN GALE_MILLIS(150) /* longer than the patience of a shard, 100 ms */
#define MARGIN GALE_MILLIS(150) /* two processors, and a server that also wants one */
#define RECOVERY GALE_SECONDS(2)
#define CLOSING (SHARDS * 2 * GALE_MILLIS(100) + MARGIN)
#define UNDERSHOOT 0.05 /* of what everybody wants */
#define WHYS (GALE_WHY_BAD_ASK + 1)

enum how {
	STRICT,
	CACHED_DENY,
	LEASED,
	HOW_COUNT,
};

struct node {
	struct test_allocator allocator;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiters[HOW_COUNT];
};

/* One thread with a seat of its own. */
struct asker {
	pthread_t thread;
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct tally *tally;
	uint32_t number; /* in its tally */
	bool polls;      /* asks, and fetches the answer; else waits for it */
	_Atomic uint64_t asks;
	_Atomic uint64_t answers;
	_Atomic uint64_t longest_us;
	_Atomic uint64_t admitted_us; /* the latest, by the store or from credit */
	_Atomic uint64_t whys[WHYS];
};

#define ASKERS_EACH 3 /* for each limiter of a node: two wait, one polls */
#define ASKERS (NODES * HOW_COUNT * ASKERS_EACH)

struct weather {
	struct redis_server server;
	struct proxy proxy;
	struct node nodes[NODES];
	struct tally tallies[HOW_COUNT];
	struct asker askers[ASKERS];
	uint64_t patience_us; /* of the limiters; 0: theirs */
	uint64_t within_us;
	uint64_t closing_us;
	double undershoot[HOW_COUNT]; /* of whole windows, in limits */
	bool did_not_recover;
	_Atomic bool stopping;
	pthread_t canary;
	_Atomic uint64_t canary_late_us;
};

static struct weather w;
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

static struct tally_span place(const struct gale_answer *answer, uint64_t before_us,
                               uint64_t after_us)
{
	if (answer->why == GALE_WHY_CREDIT)
		return tally_place_lent(WINDOW, before_us, after_us,
		                        answer->reset_after_us);
	return tally_place(WINDOW, before_us, after_us, answer->reset_after_us);
}

/* How late the machine itself is: no asker can be served better. */
static void *canary_main(void *arg)
{
	(void)arg;
	while (!load_relaxed(&w.stopping)) {
		uint64_t before_us = patience_now_ns() / 1000, late_us;

		nap(1000);
		late_us = patience_now_ns() / 1000 - before_us;
		if (load_relaxed(&w.canary_late_us) < late_us)
			store_relaxed(&w.canary_late_us, late_us);
	}
	return NULL;
}

static void bump(_Atomic uint64_t *counter)
{
	store_relaxed(counter, load_relaxed(counter) + 1);
}

static void note(struct asker *asker, const struct gale_answer *answer,
                 uint64_t before_us, uint64_t took_us)
{
	uint64_t after_us = wall_us();

	bump(&asker->answers);
	bump(&asker->whys[answer->why]);
	if (load_relaxed(&asker->longest_us) < took_us)
		store_relaxed(&asker->longest_us, took_us);
	if (answer->verdict != GALE_ALLOW)
		return;
	must(answer->why == GALE_WHY_RULE || answer->why == GALE_WHY_CREDIT);
	tally_count(asker->tally, asker->number, 0, place(answer, before_us, after_us));
	store_relaxed(&asker->admitted_us, after_us);
}

static struct gale_answer poll_for(struct asker *asker, struct gale_seat *seat)
{
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };
	struct gale_completion completion;
	struct gale_answer answer =
	    gale_ask(seat, asker->limiter, "k", 1, 1, &completion);

	if (answer.verdict != GALE_PENDING)
		return answer;
	while (gale_seat_completions(seat, &completion, 1) == 0)
		must(poll(&ready, 1, 10000) == 1); /* it is answered */
	must(completion.tag == &completion);
	return completion.answer;
}

static void *asker_main(void *arg)
{
	struct asker *asker = arg;
	struct gale_seat *seat;

	must(gale_join(asker->runtime, &seat) == GALE_ERR_OK);
	while (!load_relaxed(&w.stopping)) {
		uint64_t before_us = wall_us(), began = patience_now_ns();
		struct gale_answer answer;

		bump(&asker->asks);
		answer = asker->polls
		             ? poll_for(asker, seat)
		             : gale_wait(seat, asker->limiter, "k", 1, 1, w.within_us);
		note(asker, &answer, before_us, (patience_now_ns() - began) / 1000);
		if (answer.verdict == GALE_DENY)
			nap(500);
	}
	gale_leave(seat);
	return NULL;
}

/* ---- The fleet ------------------------------------------------------------------- */

static void open_limiter(struct node *node, enum how how)
{
	static const enum gale_mode modes[] = { GALE_STRICT, GALE_CACHED_DENY,
		                                GALE_LEASED };
	struct gale_limiter_config config = {
		.name = names[how],
		.rule = gale_fixed_window(LIMIT, WINDOW),
		.mode = modes[how],
		.store = node->store,
		.lease.patience_us = w.patience_us,
	};

	must(gale_limiter_open(node->runtime, &config, &node->limiters[how]) ==
	     GALE_ERR_OK);
}

static void node_open(struct node *node)
{
	char url[64];
	struct gale_store_config store = { .url = url };
	struct gale_config config = { .shards = SHARDS,
		                      .allocator = &node->allocator.allocator };

	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", w.proxy.port);
	test_allocator_init(&node->allocator);
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	for (int how = 0; how < HOW_COUNT; how++)
		open_limiter(node, (enum how)how);
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
		.keys = 1,
		.workers = NODES * ASKERS_EACH,
		.ring = tally_ring(1),
		.limit = LIMIT,
		.window_us = WINDOW,
		.begin_us = wall_us(),
	};

	for (int how = 0; how < HOW_COUNT; how++)
		must(tally_open(&w.tallies[how], &config));
}

static void start_asker(uint32_t i)
{
	struct asker *asker = &w.askers[i];
	uint32_t node = i % NODES, how = i / NODES % HOW_COUNT,
		 which = i / NODES / HOW_COUNT;

	asker->runtime = w.nodes[node].runtime;
	asker->limiter = w.nodes[node].limiters[how];
	asker->tally = &w.tallies[how];
	asker->number = which * NODES + node;
	asker->polls = which == ASKERS_EACH - 1;
	must(pthread_create(&asker->thread, NULL, asker_main, asker) == 0);
}

static enum how how_of(uint32_t asker)
{
	return asker / NODES % HOW_COUNT;
}

/* All is well; nobody has asked yet. */
static void begin(const char *const *options)
{
	memset(&w, 0, sizeof(w));
	w.within_us = WITHIN;
	redis_server_start(&w.server, options);
	redis_server_settle(&w.server, "gale:");
	proxy_open(&w.proxy, w.server.socket);
}

static void let_ask(void)
{
	open_tallies();
	for (int i = 0; i < NODES; i++)
		node_open(&w.nodes[i]);
	for (uint32_t i = 0; i < ASKERS; i++)
		start_asker(i);
	must(pthread_create(&w.canary, NULL, canary_main, NULL) == 0);
}

/* ---- What must be true ----------------------------------------------------------- */

static uint64_t admitted_after(enum how how)
{
	uint64_t latest = 0;

	for (uint32_t i = 0; i < ASKERS; i++) {
		uint64_t at = load_relaxed(&w.askers[i].admitted_us);

		if (how_of(i) == how && latest < at)
			latest = at;
	}
	return latest;
}

static bool all_admit_after(uint64_t us)
{
	for (int how = 0; how < HOW_COUNT; how++)
		if (admitted_after((enum how)how) <= us)
			return false;
	return true;
}

/* All limiters admit again.  quarantine_us: what the store may deny for meanwhile. */
static void recovers(uint64_t quarantine_us)
{
	uint64_t now = wall_us(), deadline = now + RECOVERY + quarantine_us;

	while (!all_admit_after(now) && wall_us() < deadline)
		nap(1000);
	print_message("recovered after %" PRIu64 " ms\n", (wall_us() - now) / 1000);
	w.did_not_recover |= !all_admit_after(now);
}

static uint64_t why_count(enum how how, enum gale_why why)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ASKERS; i++)
		if (how_of(i) == how)
			sum += load_relaxed(&w.askers[i].whys[why]);
	return sum;
}

static void show(enum how how, const struct tally_totals *totals)
{
	uint64_t longest_us = 0;

	for (uint32_t i = 0; i < ASKERS; i++)
		if (how_of(i) == how && longest_us < w.askers[i].longest_us)
			longest_us = w.askers[i].longest_us;
	print_message("%s: %" PRIu64 " in %" PRIu64 " windows, at most %" PRIu64
	              ", %.0f%% too few; longest %" PRIu64 " ms;",
	              names[how], totals->admitted, totals->windows,
	              totals->admitted_max, 100 * totals->undershoot_mean,
	              longest_us / 1000);
	for (int why = 0; why < WHYS; why++)
		if (why_count(how, (enum gale_why)why) > 0)
			print_message(" %s: %" PRIu64 ";",
			              gale_why_text((enum gale_why)why),
			              why_count(how, (enum gale_why)why));
	print_message("\n");
}

static void check_asker(const struct asker *asker)
{
	assert_int_equal(asker->asks, asker->answers);
	assert_true(asker->asks > 0);
	/* It sleeps for its shard, and its shard for the server. */
	assert_in_range(asker->longest_us, 0,
	                w.within_us + MARGIN + 3 * w.canary_late_us);
}

static void check_tally(enum how how)
{
	struct tally_totals totals;

	tally_finish(&w.tallies[how], wall_us());
	totals = tally_total(&w.tallies[how]);
	show(how, &totals);
	tally_close(&w.tallies[how]);
	w.undershoot[how] = totals.undershoot_mean;
	assert_in_range(totals.admitted_max, 1, LIMIT);
	assert_int_equal(totals.disagreements, 0);
}

static void everybody_stops(void)
{
	store_relaxed(&w.stopping, true);
	for (uint32_t i = 0; i < ASKERS; i++)
		must(pthread_join(w.askers[i].thread, NULL) == 0);
	must(pthread_join(w.canary, NULL) == 0);
}

static void end(void)
{
	uint64_t began;

	everybody_stops();
	began = patience_now_ns();
	for (int i = 0; i < NODES; i++)
		node_close(&w.nodes[i]);
	w.closing_us = (patience_now_ns() - began) / 1000;
	for (int how = 0; how < HOW_COUNT; how++)
		check_tally((enum how)how);
	for (uint32_t i = 0; i < ASKERS; i++)
		check_asker(&w.askers[i]);
	assert_in_range(w.closing_us, 0, NODES * CLOSING + 3 * w.canary_late_us);
	assert_false(w.did_not_recover);
	proxy_close(&w.proxy);
	redis_server_stop(&w.server);
}

/* ---- Weather --------------------------------------------------------------------- */

static void nothing_happens(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	nap(6 * WINDOW);
	end();
	for (int how = 0; how < HOW_COUNT; how++)
		assert_true(w.undershoot[how] < UNDERSHOOT);
}

static void a_server_is_killed_and_forgets(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	nap(WINDOW / 2);
	redis_server_kill(&w.server);
	nap(WINDOW / 10);
	redis_server_restart(&w.server);
	recovers(WINDOW);
	for (int i = 0; i < 4; i++) {
		redis_server_restart(&w.server);
		nap(WINDOW * 5 / 7);
	}
	recovers(WINDOW);
	end();
}

static void a_server_is_away_for_long(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	redis_server_kill(&w.server);
	nap(GALE_MILLIS(2500));
	redis_server_restart(&w.server);
	recovers(WINDOW);
	end();
}

static void a_server_is_emptied(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	for (int i = 0; i < 8; i++) {
		nap(WINDOW * 3 / 7);
		redis_server_do(&w.server, i % 2 ? "FLUSHDB" : "FLUSHALL");
	}
	recovers(WINDOW);
	end();
}

static void scripts_are_forgotten(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	for (int i = 0; i < 20; i++) {
		nap(WINDOW / 7);
		redis_server_do(&w.server, "SCRIPT FLUSH");
	}
	recovers(0);
	end();
}

static void a_server_stands_still(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	redis_server_pause(&w.server);
	nap(GALE_SECONDS(3));
	redis_server_go_on(&w.server);
	recovers(0);
	end();
}

static void the_way_is_a_black_hole(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	proxy_be_silent(&w.proxy, true);
	nap(GALE_SECONDS(2));
	proxy_be_silent(&w.proxy, false);
	recovers(0);
	end();
}

static void answers_are_lost(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	proxy_swallow(&w.proxy, true);
	nap(GALE_SECONDS(1));
	proxy_swallow(&w.proxy, false);
	recovers(0);
	end();
}

static void answers_come_after_their_window(void **state)
{
	(void)state;
	begin(NULL);
	w.patience_us = GALE_MILLIS(800);
	w.within_us = GALE_MILLIS(900);
	let_ask();
	recovers(0);
	proxy_delay(&w.proxy, TO_NODE, WINDOW * 3 / 2);
	nap(GALE_SECONDS(2));
	proxy_delay(&w.proxy, TO_NODE, 0);
	proxy_delay(&w.proxy, TO_SERVER, WINDOW / 2);
	nap(GALE_SECONDS(1));
	proxy_delay(&w.proxy, TO_SERVER, 0);
	recovers(0);
	end();
}

static void answers_come_when_nobody_waits(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	proxy_delay(&w.proxy, TO_NODE, WINDOW);
	nap(GALE_SECONDS(1));
	proxy_delay(&w.proxy, TO_NODE, 0);
	recovers(0);
	end();
}

static void connections_are_cut(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	for (uint64_t i = 0; i < 60; i++) {
		nap(WINDOW / 20);
		if (i % 10 == 9)
			proxy_cut(&w.proxy);
		else
			proxy_cut_after(&w.proxy, i * i % 211);
	}
	proxy_cut(&w.proxy);
	recovers(0);
	end();
}

/* Nobody waits for what cannot come. */
static void all_is_closed_in_a_black_hole(void **state)
{
	(void)state;
	begin(NULL);
	let_ask();
	recovers(0);
	proxy_be_silent(&w.proxy, true);
	nap(GALE_MILLIS(50));
	end();
}

/* The tests whose names match the argument; all, without one. */
int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_happens),
		cmocka_unit_test(a_server_is_killed_and_forgets),
		cmocka_unit_test(a_server_is_away_for_long),
		cmocka_unit_test(a_server_is_emptied),
		cmocka_unit_test(scripts_are_forgotten),
		cmocka_unit_test(a_server_stands_still),
		cmocka_unit_test(the_way_is_a_black_hole),
		cmocka_unit_test(answers_are_lost),
		cmocka_unit_test(answers_come_after_their_window),
		cmocka_unit_test(answers_come_when_nobody_waits),
		cmocka_unit_test(connections_are_cut),
		cmocka_unit_test(all_is_closed_in_a_black_hole),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
