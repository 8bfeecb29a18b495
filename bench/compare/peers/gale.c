/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale.c -- gale, as a user has it: asks by name, the clock read for each.
 *
 * VARIANT names a mode: strict, cached or leased; and after a plus what is answered in an
 * outage, allow or share, or that threads poll before they sleep: polls.  Without an address the
 * store is in this process.
 *
 * Threads   A seat each.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/gale.h>
#include <gale/guard.h>

#include "bench/compare/peers/driver.h"

#define WITHIN GALE_SECONDS(10)
#define DEPTH_MOST 256
#define KEYS_KNOWN 10000 /* to a server beforehand; of more, each is new */
#define NODE_KEYS_MOST (1 << 20)
#define POLL_US 100

static struct gale_runtime *runtime;
static struct gale_store *store;
static struct gale_limiter *limiter;
static struct gale_guard *guard;
static struct gale_seat *caller; /* of call */

static bool says(const char *word)
{
	return strstr(driver_variant, word) != NULL;
}

static enum driver_answer answer_of(const struct gale_answer *answer)
{
	if (answer->verdict == GALE_ALLOW)
		return DRIVER_ALLOWED;
	return gale_why_is_outage(answer->why) ? DRIVER_FAILED : DRIVER_DENIED;
}

/* ---- What is pending ------------------------------------------------------------- */

static size_t hear(struct gale_seat *seat, struct gale_completion *done)
{
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };

	driver_must(poll(&ready, 1, 20000) == 1, "an answer within 20 s");
	return gale_seat_completions(seat, done, DEPTH_MOST);
}

static __attribute__((noinline)) struct gale_answer hear_one(struct gale_seat *seat)
{
	struct gale_completion done[DEPTH_MOST];

	while (hear(seat, done) == 0)
		continue;
	return done[0].answer;
}

/* Each key once, 64 under way. */
static void pass(struct gale_seat *seat, const char (*keys)[DRIVER_KEY_LEN],
                 uint64_t count, struct driver_tally *tally)
{
	struct gale_completion done[DEPTH_MOST];
	size_t pending = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct gale_answer answer =
		    gale_ask(seat, limiter, keys[i], DRIVER_KEY_LEN, 1, NULL);

		if (answer.verdict == GALE_PENDING)
			pending++;
		else
			tally->answers[answer_of(&answer)]++;
		while (pending == 64 || (pending > 0 && i + 1 == count)) {
			size_t heard = hear(seat, done);

			for (size_t j = 0; j < heard; j++)
				tally->answers[answer_of(&done[j].answer)]++;
			pending -= heard;
		}
	}
}

/* ---- Before a work --------------------------------------------------------------- */

static void must(enum gale_err err)
{
	driver_must(err == GALE_ERR_OK, gale_err_text(err));
}

static void close_all(void)
{
	gale_leave(caller);
	gale_guard_close(guard);
	gale_limiter_close(limiter);
	gale_store_close(store);
	gale_runtime_close(runtime);
	caller = NULL;
	guard = NULL;
	limiter = NULL;
	store = NULL;
	runtime = NULL;
}

static struct gale_rule rule_of(const struct driver_work *work)
{
	/* Of those that are no store of a fleet, a rate; what is lent does not die meanwhile. */
	if (!driver_address && !says("leased"))
		return gale_token_bucket(work->limit, work->limit, GALE_DAYS(365));
	/* Counts that a server has forgotten are made up for when the window ends. */
	return gale_fixed_window(work->limit, strcmp(work->name, "outage") == 0
	                                          ? GALE_SECONDS(1)
	                                          : GALE_SPAN_MAX_US);
}

static void open_limiter(const struct driver_work *work)
{
	struct gale_limiter_config config = {
		.name = work->space[0] ? work->space : "compare",
		.rule = rule_of(work),
		.mode = says("leased")   ? GALE_LEASED
		        : says("cached") ? GALE_CACHED_DENY
		                         : GALE_STRICT,
		.on_outage = says("+allow")   ? GALE_ON_OUTAGE_ALLOW
		             : says("+share") ? GALE_ON_OUTAGE_SHARE
		                              : GALE_ON_OUTAGE_DENY,
		.outage_share = says("+share") ? work->limit / 4 : 0,
		.store = store,
	};

	/* In this process, what a call costs that this node answers. */
	if (!driver_address && says("leased") && strcmp(work->name, "allow") == 0) {
		config.lease.sizing = GALE_SIZE_FIXED;
		config.lease.batch = 1000000;
		config.lease.carry_over = true;
	}
	/* To use up a limit takes longer than an ask may where many wait in line. */
	if (strcmp(work->name, "outage") != 0)
		config.lease.patience_us = WITHIN;
	must(gale_limiter_open(runtime, &config, &limiter));
}

static void open_guard(const struct driver_work *work)
{
	struct gale_guard_config config = { .name = "backend",
		                            .law = GALE_FIXED,
		                            .ceiling = (uint32_t)work->limit,
		                            .store = driver_address ? store : NULL };

	must(gale_guard_open(runtime, &config, &guard));
}

static const char *prepare(const struct driver_work *work,
                           const char (*keys)[DRIVER_KEY_LEN])
{
	static struct driver_tally ignored;
	struct gale_config config = {
		.pending_max = DEPTH_MOST,
		.max_keys = work->keys > 65536 ? NODE_KEYS_MOST : 0,
		.poll_us = says("+polls") ? POLL_US : 0,
	};
	struct gale_store_config at = { .url = driver_address,
		                        .max_keys = 2 * NODE_KEYS_MOST };

	close_all();
	must(gale_runtime_open(&config, &runtime));
	must(gale_store_open(runtime, &at, &store));
	must(gale_join(runtime, &caller));
	if (strcmp(work->name, "guard") == 0) {
		open_guard(work);
		return NULL;
	}
	open_limiter(work);
	/* A connection is there, and each key is lent; or used up, and known to be. */
	if (strcmp(work->name, "allow") == 0 &&
	    (!driver_address || work->keys <= KEYS_KNOWN))
		pass(caller, keys, work->keys, &ignored);
	else if (strcmp(work->name, "fill") != 0 && strcmp(work->name, "fleet") != 0)
		pass(caller, keys, 1, &ignored);
	for (int i = 0; i < 2 && strcmp(work->name, "deny") == 0; i++)
		pass(caller, keys, work->keys, &ignored);
	return NULL;
}

/* ---- The works ------------------------------------------------------------------- */

static inline __attribute__((always_inline)) enum driver_answer
ask(struct driver_turn *turn, const char *key)
{
	struct gale_answer answer;

	if (driver_address) {
		answer = gale_wait(turn->own, limiter, key, DRIVER_KEY_LEN, 1, WITHIN);
		return answer_of(&answer);
	}
	answer = gale_ask(turn->own, limiter, key, DRIVER_KEY_LEN, 1, NULL);
	if (__builtin_expect(answer.verdict == GALE_PENDING, 0))
		answer = hear_one(turn->own);
	return answer_of(&answer);
}

/* So many are under way all the time; each is timed.  A tag is the place of its time. */
static void run_deep(struct driver_turn *turn)
{
	struct gale_completion done[DEPTH_MOST];
	uint64_t began[DEPTH_MOST];
	size_t free_places[DEPTH_MOST], free_count = turn->work->depth, heard;

	driver_must(turn->work->depth <= DEPTH_MOST, "depth");
	for (size_t i = 0; i < free_count; i++)
		free_places[i] = i;
	for (;;) {
		uint64_t now = driver_now_ns();

		while (free_count > 0 && now < turn->end_ns) {
			size_t place = free_places[--free_count];
			struct gale_answer answer =
			    gale_ask(turn->own, limiter, driver_next_key(turn),
			             DRIVER_KEY_LEN, 1, &began[place]);

			began[place] = now;
			if (answer.verdict == GALE_PENDING)
				continue;
			turn->tally.answers[answer_of(&answer)]++;
			free_places[free_count++] = place;
			now = driver_now_ns();
			driver_note(&turn->tally, now - began[place]);
		}
		if (free_count == turn->work->depth)
			return;
		heard = hear(turn->own, done);
		now = driver_now_ns();
		for (size_t i = 0; i < heard; i++) {
			size_t place = (size_t)((uint64_t *)done[i].tag - began);

			turn->tally.answers[answer_of(&done[i].answer)]++;
			driver_note(&turn->tally, now - began[place]);
			free_places[free_count++] = place;
		}
	}
}

static void run(struct driver_turn *turn)
{
	struct gale_seat *seat;

	must(gale_join(runtime, &seat));
	turn->own = seat;
	if (turn->work->depth > 1)
		run_deep(turn);
	else
		driver_loop(turn, driver_address && !says("leased") ? 1 : 64, ask);
	gale_leave(seat);
}

static enum driver_answer call(const char *key)
{
	struct gale_answer answer =
	    gale_wait(caller, limiter, key, DRIVER_KEY_LEN, 1, WITHIN);

	return answer_of(&answer);
}

static void fill(struct driver_turn *turn)
{
	pass(caller, turn->keys, turn->work->keys, &turn->tally);
}

/* ---- In flight ------------------------------------------------------------------- */

struct place {
	struct gale_seat *seat;
	struct gale_entry entry;
};

static void *worker_open(void)
{
	struct place *place = calloc(1, sizeof(*place));

	driver_must(place != NULL, "memory");
	must(gale_join(runtime, &place->seat));
	return place;
}

static bool enter(void *worker)
{
	struct place *place = worker;

	place->entry = gale_enter(place->seat, guard, 1, GALE_NORMAL);
	return place->entry.verdict == GALE_ALLOW;
}

static void exit_one(void *worker)
{
	struct place *place = worker;

	gale_exit(place->seat, &place->entry, GALE_OK);
}

static void worker_close(void *worker)
{
	struct place *place = worker;

	gale_leave(place->seat);
	free(place);
}

int main(int argc, char **argv)
{
	static const struct driver_peer peer = {
		.prepare = prepare,
		.run = run,
		.call = call,
		.fill = fill,
		.worker_open = worker_open,
		.enter = enter,
		.exit = exit_one,
		.worker_close = worker_close,
	};
	int status = driver_main(argc, argv, &peer);

	close_all();
	return status;
}
