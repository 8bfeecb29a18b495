/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * weather.c -- opens nodes, has them asked, and counts.
 *
 * Threads   Askers write what is atomic and theirs, until stopping is true
 *           and they were joined; the rest is the test's.
 */
#define _GNU_SOURCE
#include "tests/support/weather.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

const char *const how_names[HOW_COUNT] = { "strict", "cached", "leased" };
const enum gale_mode how_modes[HOW_COUNT] = { GALE_STRICT, GALE_CACHED_DENY,
	                                      GALE_LEASED };

/* ---- Askers ---------------------------------------------------------------------- */

static void bump(_Atomic uint64_t *counter)
{
	store_relaxed(counter, load_relaxed(counter) + 1);
}

static struct tally_span place(const struct asker *asker,
                               const struct gale_answer *answer, uint64_t before_us,
                               uint64_t after_us)
{
	uint64_t window_us = asker->weather->plan.window_us;

	if (answer->why == GALE_WHY_CREDIT)
		return tally_place_lent(window_us, before_us, after_us,
		                        answer->reset_after_us);
	return tally_place(window_us, before_us, after_us, answer->reset_after_us);
}

static void note(struct asker *asker, uint32_t key, const struct gale_answer *answer,
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
	tally_count(asker->tally, asker->number, key,
	            place(asker, answer, before_us, after_us));
	store_relaxed(&asker->admitted_us[key], after_us);
}

static struct gale_answer poll_for(struct asker *asker, struct gale_seat *seat,
                                   const char name[2])
{
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };
	struct gale_completion completion;
	struct gale_answer answer =
	    gale_ask(seat, asker->limiter, name, 2, 1, &completion);

	if (answer.verdict != GALE_PENDING)
		return answer;
	while (gale_seat_completions(seat, &completion, 1) == 0)
		must(poll(&ready, 1, 10000) == 1); /* it is answered */
	must(completion.tag == &completion);
	return completion.answer;
}

/* True if it was denied. */
static bool ask_once(struct asker *asker, struct gale_seat *seat, uint32_t key)
{
	const char name[2] = { 'k', (char)('a' + key) };
	uint64_t before_us = wall_us(), began = patience_now_ns();
	struct gale_answer answer;

	bump(&asker->asks);
	answer = asker->polls ? poll_for(asker, seat, name)
	                      : gale_wait(seat, asker->limiter, name, 2, 1,
	                                  asker->weather->plan.within_us);
	note(asker, key, &answer, before_us, (patience_now_ns() - began) / 1000);
	return answer.verdict == GALE_DENY;
}

static void *asker_main(void *arg)
{
	struct asker *asker = arg;
	const struct weather *weather = asker->weather;
	uint32_t key = asker->number % weather->plan.keys;
	struct gale_seat *seat;

	must(gale_join(asker->runtime, &seat) == GALE_ERR_OK);
	while (!load_relaxed(&weather->stopping)) {
		bool denied = ask_once(asker, seat, key);

		key = (key + 1) % weather->plan.keys;
		if (denied && key == 0)
			nap(weather->plan.nap_us);
	}
	gale_leave(seat);
	return NULL;
}

/* ---- Beginning ------------------------------------------------------------------- */

static void open_limiter(const struct weather_plan *plan, struct weather_node *node,
                         enum how how)
{
	struct gale_limiter_config config = {
		.name = how_names[how],
		.rule = gale_fixed_window(plan->limit, plan->window_us),
		.mode = how_modes[how],
		.store = node->store,
		.lease.patience_us = plan->patience_us,
	};

	must(gale_limiter_open(node->runtime, &config, &node->limiters[how]) ==
	     GALE_ERR_OK);
}

static void open_node(const struct weather_plan *plan, struct weather_node *node,
                      const char *url)
{
	struct gale_store_config store = { .url = url,
		                           .quarantine_us = plan->quarantine_us };
	struct gale_config config = { .shards = plan->shards,
		                      .allocator = &node->allocator.allocator };

	test_allocator_init(&node->allocator);
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	for (int how = 0; how < HOW_COUNT; how++)
		open_limiter(plan, node, (enum how)how);
}

static void open_tallies(struct weather *weather)
{
	const struct weather_plan *plan = &weather->plan;
	struct tally_config config = {
		.keys = plan->keys,
		.workers = WEATHER_NODES * plan->askers,
		.ring = tally_ring(plan->keys),
		.limit = plan->limit,
		.window_us = plan->window_us,
		.begin_us = wall_us(),
	};

	for (int how = 0; how < HOW_COUNT; how++)
		must(tally_open(&weather->tallies[how], &config));
}

static void start_asker(struct weather *weather, uint32_t i)
{
	const struct weather_plan *plan = &weather->plan;
	struct asker *asker = &weather->askers[i];
	uint32_t node = i % WEATHER_NODES, which = i / WEATHER_NODES / HOW_COUNT;

	asker->weather = weather;
	asker->how = (enum how)(i / WEATHER_NODES % HOW_COUNT);
	asker->runtime = weather->nodes[node].runtime;
	asker->limiter = weather->nodes[node].limiters[asker->how];
	asker->tally = &weather->tallies[asker->how];
	asker->number = which * WEATHER_NODES + node;
	asker->polls = which >= plan->askers - plan->pollers;
	must(pthread_create(&asker->thread, NULL, asker_main, asker) == 0);
}

void weather_let_ask(struct weather *weather, const struct weather_plan *plan)
{
	memset(weather, 0, sizeof(*weather));
	weather->plan = *plan;
	weather->asker_count = WEATHER_NODES * HOW_COUNT * plan->askers;
	must(plan->keys <= WEATHER_KEYS_MOST);
	must(weather->asker_count <= WEATHER_ASKERS_MOST);
	open_tallies(weather);
	for (int i = 0; i < WEATHER_NODES; i++)
		open_node(plan, &weather->nodes[i], plan->urls[i]);
	for (uint32_t i = 0; i < weather->asker_count; i++)
		start_asker(weather, i);
	canaries_start(&weather->canaries);
}

/* ---- What must be true ----------------------------------------------------------- */

static bool is_admitted_after(const struct weather *weather, enum how how, uint32_t key,
                              uint64_t us)
{
	for (uint32_t i = 0; i < weather->asker_count; i++)
		if (weather->askers[i].how == how &&
		    load_relaxed(&weather->askers[i].admitted_us[key]) > us)
			return true;
	return false;
}

static bool all_admit_after(const struct weather *weather, uint64_t us)
{
	for (int how = 0; how < HOW_COUNT; how++)
		for (uint32_t key = 0; key < weather->plan.keys; key++)
			if (!is_admitted_after(weather, (enum how)how, key, us))
				return false;
	return true;
}

bool weather_recovers(struct weather *weather, uint64_t within_us)
{
	uint64_t now = wall_us(), began = patience_now_ns(), took_us = 0;

	while (!all_admit_after(weather, now) && took_us < within_us) {
		nap(1000);
		took_us = (patience_now_ns() - began) / 1000;
	}
	print_message("recovered after %" PRIu64 " ms\n", took_us / 1000);
	return all_admit_after(weather, now);
}

static uint64_t why_count(const struct weather *weather, enum how how, int why)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < weather->asker_count; i++)
		if (weather->askers[i].how == how)
			sum += weather->askers[i].whys[why];
	return sum;
}

static void show(const struct weather *weather, enum how how,
                 const struct tally_totals *totals)
{
	print_message("%s: %" PRIu64 " in %" PRIu64 " windows, at most %" PRIu64
	              ", %.0f%% too few;",
	              how_names[how], totals->admitted, totals->windows,
	              totals->admitted_max, 100 * totals->undershoot_mean);
	for (int why = 0; why < WHYS; why++)
		if (why_count(weather, how, why) > 0)
			print_message(" %s: %" PRIu64 ";",
			              gale_why_text((enum gale_why)why),
			              why_count(weather, how, why));
	print_message("\n");
}

static void check_tally(struct weather *weather, enum how how)
{
	struct tally_totals totals;

	tally_finish(&weather->tallies[how], wall_us());
	totals = tally_total(&weather->tallies[how]);
	show(weather, how, &totals);
	tally_close(&weather->tallies[how]);
	weather->undershoot[how] = totals.undershoot_mean;
	assert_in_range(totals.admitted_max, 1, weather->plan.limit); /* L1, L12 */
	assert_int_equal(totals.disagreements, 0);
}

static void check_asker(struct weather *weather, const struct asker *asker)
{
	assert_int_equal(asker->asks, asker->answers);
	assert_true(asker->asks > 0);
	if (weather->longest_us < asker->longest_us)
		weather->longest_us = asker->longest_us;
}

/* ---- The end --------------------------------------------------------------------- */

static void everybody_stops(struct weather *weather)
{
	store_relaxed(&weather->stopping, true);
	for (uint32_t i = 0; i < weather->asker_count; i++)
		must(pthread_join(weather->askers[i].thread, NULL) == 0);
	weather->late_us = canaries_stop(&weather->canaries);
}

static void close_node(struct weather_node *node)
{
	for (int how = 0; how < HOW_COUNT; how++)
		gale_limiter_close(node->limiters[how]);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	assert_true(test_allocator_is_balanced(&node->allocator));
}

void weather_end(struct weather *weather)
{
	uint64_t began;

	everybody_stops(weather);
	began = patience_now_ns();
	for (int i = 0; i < WEATHER_NODES; i++)
		close_node(&weather->nodes[i]);
	weather->closing_us = (patience_now_ns() - began) / 1000;
	print_message("closed after %" PRIu64 " ms\n", weather->closing_us / 1000);
	for (int how = 0; how < HOW_COUNT; how++)
		check_tally(weather, (enum how)how);
	for (uint32_t i = 0; i < weather->asker_count; i++)
		check_asker(weather, &weather->askers[i]);
}

void weather_was_in_time(const struct weather *weather, uint64_t within_us)
{
	print_message("answered after %" PRIu64 " us at most, the machine was %" PRIu64
	              " us late\n",
	              weather->longest_us, weather->late_us);
	assert_in_range(weather->longest_us, 0, within_us + 3 * weather->late_us);
}
