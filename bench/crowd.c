/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* crowd.c -- asks once for every key. */
#include "bench/crowd.h"

#include <poll.h>

#include "bench/keys.h"

#define NODE_KEYS (1 << 20)

enum gale_verdict crowd_usual(const struct crowd *crowd)
{
	return crowd->limit == 1 ? GALE_DENY : GALE_ALLOW;
}

/* ---- Setting up ------------------------------------------------------------------ */

void crowd_open(struct crowd *crowd)
{
	struct gale_config config = { .max_keys = NODE_KEYS };
	struct gale_store_config store = { .max_keys = UINT64_C(1) << 31 };
	struct gale_limiter_config limiter = {
		.name = "bench",
		.rule = gale_fixed_window(crowd->limit, GALE_SPAN_MAX_US),
		.mode = crowd->mode,
	};

	if (crowd->mode == GALE_LEASED)
		limiter.lease = (struct gale_leasing){ .sizing = GALE_SIZE_FIXED,
			                               .batch = CROWD_LEASE,
			                               .patience_us = CROWD_PATIENCE,
			                               .carry_over = crowd->limit > 1 };
	crowd_must(gale_runtime_open(&config, &crowd->runtime));
	crowd_must(gale_store_open(crowd->runtime, &store, &crowd->store));
	limiter.store = crowd->store;
	crowd_must(gale_limiter_open(crowd->runtime, &limiter, &crowd->limiter));
}

static void wait_for_some(struct gale_seat *seat)
{
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };

	bench_expect(poll(&ready, 1, 10000) == 1, "answers");
}

/* Returns how many are answered. */
static uint64_t fetch(struct gale_seat *seat, bool all_allowed)
{
	struct gale_completion done[64];
	uint64_t count = 0, some;

	do {
		some = gale_seat_completions(seat, done, 64);
		for (uint64_t i = 0; i < some; i++)
			bench_expect(
			    done[i].answer.why != GALE_WHY_BUSY &&
				(!all_allowed || done[i].answer.verdict == GALE_ALLOW),
			    "room, and credit");
		count += some;
	} while (some == 64);
	return count;
}

uint64_t crowd_hear(struct gale_seat *seat)
{
	uint64_t count;

	do {
		wait_for_some(seat);
		count = fetch(seat, /* all_allowed= */ true);
	} while (count == 0);
	return count;
}

/* Asks once for every key, a hundred under way at a time. */
static void ask_all(struct crowd *crowd, struct gale_seat *seat)
{
	uint64_t pending = 0;

	for (uint64_t id = 0; id < crowd->count; id++) {
		struct key key = key_of(id);
		struct gale_answer answer =
		    gale_ask(seat, crowd->limiter, &key, sizeof(key), 1, NULL);

		bench_expect(answer.why != GALE_WHY_BUSY, "room for a new key");
		pending += answer.verdict == GALE_PENDING;
		while (pending > 100 || (pending > 0 && id + 1 == crowd->count)) {
			wait_for_some(seat);
			pending -= fetch(seat, crowd->limit > 1);
		}
	}
}

void crowd_prepare(struct crowd *crowd)
{
	struct gale_seat *seat;

	if (crowd->limiter)
		return;
	crowd->count = keys_in(crowd->count);
	crowd_open(crowd);
	crowd_must(gale_join(crowd->runtime, &seat));
	ask_all(crowd, seat);
	if (crowd->limit == 1)
		ask_all(crowd, seat); /* the first was allowed */
	gale_leave(seat);
}
