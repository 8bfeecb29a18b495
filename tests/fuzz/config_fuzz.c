/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * config_fuzz.c -- any configuration is refused by name, or works.
 *
 * The bytes are a name, a URL, the parts of every configuration, and then asks with
 * their instants and costs.
 */
#include <gale/gale.h>

#include <poll.h>
#include <stdlib.h>

#include "engine/check.h"
#include "tests/fuzz/bytes.h"

#define TEXT 80
#define ASKS_MOST 64
#define KEYS 4

static uint64_t now_us;

static uint64_t read_now(struct gale_clock *self)
{
	(void)self;
	return now_us;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_text(struct bytes *bytes, char *text)
{
	size_t len = take_number(bytes, 1) % TEXT;

	for (size_t i = 0; i < len; i++)
		text[i] = (char)take_number(bytes, 1);
	text[len] = '\0';
}

static void check_answer(const struct gale_answer *answer)
{
	gale_assert(answer->verdict == GALE_ALLOW || answer->verdict == GALE_DENY);
	gale_assert(answer->limit >= 1 && answer->limit <= GALE_UNITS_MAX);
	if (answer->why > GALE_WHY_SPENT)
		return;
	gale_assert(answer->remaining <= GALE_UNITS_MAX);
	gale_assert(answer->why != GALE_WHY_RULE || answer->remaining <= answer->limit);
	gale_assert(answer->verdict == GALE_DENY || answer->retry_after_us == 0);
	gale_assert(answer->why != GALE_WHY_RULE ||
	            (answer->verdict == GALE_ALLOW) == (answer->retry_after_us == 0));
}

static uint64_t predict(struct gale_predictor *self, const void *key, size_t key_len)
{
	(void)self;
	return key_len + *(const uint8_t *)key;
}

static struct gale_predictor predictor = { predict };

static struct gale_leasing take_leasing(struct bytes *bytes)
{
	struct gale_leasing lease = { .sizing = (enum gale_sizing)(
					  take_number(bytes, 1) % 5) };

	lease.batch = take_number(bytes, 2);
	lease.order_cost = (double)take_number(bytes, 2) - 1;
	lease.strand_penalty = (double)take_number(bytes, 1);
	lease.max_size = take_number(bytes, 3);
	lease.drift_ppm = (uint32_t)take_number(bytes, 3);
	lease.carry_over = take_number(bytes, 1) % 2;
	lease.predictor = take_number(bytes, 1) % 4 ? &predictor : NULL;
	return lease;
}

/* All of them, so that there is room for what is asked next. */
static void fetch(struct gale_seat *seat, size_t pending)
{
	struct pollfd wait_for = { .fd = gale_seat_fd(seat), .events = POLLIN };
	struct gale_completion done[8];

	while (pending > 0) {
		(void)poll(&wait_for, 1, /* timeout= */ 1000);
		pending -= gale_seat_completions(seat, done, 8);
	}
}

static void ask_held(struct gale_seat *seat, struct gale_limiter *limiter,
                     const uint8_t *key, uint64_t cost)
{
	struct gale_question questions[2] = { { key, 1, cost, NULL },
		                              { key, 2, cost, NULL } };
	struct gale_answer answers[3];
	struct gale_key *held;
	size_t pending = 0;

	gale_assert(gale_key_open(seat, limiter, key, 1, &held) == GALE_ERR_OK);
	answers[2] = gale_ask_key(held, cost, NULL);
	gale_ask_many(seat, limiter, questions, 2, answers);
	gale_key_close(held);
	for (size_t i = 0; i < 3; i++)
		pending += answers[i].verdict == GALE_PENDING;
	fetch(seat, pending);
}

/* A key is one byte, so that a few keys are asked about again and again. */
static void ask_once(struct gale_seat *seat, struct gale_limiter *limiter,
                     struct bytes *bytes)
{
	uint8_t which = (uint8_t)(take_number(bytes, 1) % KEYS);
	uint8_t key[KEYS] = { which };
	uint64_t cost = take_number(bytes, 8);
	struct gale_answer answer;
	struct gale_outlook forecast;

	now_us = take_number(bytes, 7);
	gale_prefetch(seat, limiter, key, which);
	answer = gale_wait(seat, limiter, key, which, cost, GALE_SECONDS(10));
	gale_assert(which > 0 || answer.why == GALE_WHY_BAD_ASK);
	check_answer(&answer);
	answer = gale_wait(seat, limiter, key, 1, cost, GALE_SECONDS(10));
	check_answer(&answer);
	ask_held(seat, limiter, key, cost);
	if (answer.why != GALE_WHY_RULE)
		return;
	(void)gale_cancel(seat, limiter, key, 1, cost, GALE_SECONDS(10), &answer);
	gale_assert(gale_peek(seat, limiter, key, 1, GALE_SECONDS(10), &answer) ==
	            GALE_ERR_OK);
	check_answer(&answer);
	gale_assert(gale_forecast(seat, limiter, key, 1, cost, GALE_SECONDS(10),
	                          &forecast) == GALE_ERR_OK);
}

static void ask(struct gale_runtime *runtime, struct gale_limiter *limiter,
                struct bytes *bytes)
{
	struct gale_seat *seat;

	gale_assert(gale_join(runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < ASKS_MOST && bytes->left > 0; i++)
		ask_once(seat, limiter, bytes);
	gale_leave(seat);
}

static void open_limiter(struct gale_runtime *runtime, struct gale_store *store,
                         struct bytes *bytes)
{
	char name[TEXT];
	struct gale_limiter_config config = { .name = name, .store = store };
	struct gale_limiter *limiter;
	enum gale_err err;

	take_text(bytes, name);
	config.mode = (enum gale_mode)(take_number(bytes, 1) % 4);
	config.on_outage = (enum gale_on_outage)(take_number(bytes, 1) % 4);
	config.rule = take_rule(bytes);
	config.lease = take_leasing(bytes);
	config.outage_share = take_number(bytes, 3);
	err = gale_limiter_open(runtime, &config, &limiter);
	gale_assert(strcmp(gale_err_text(err), "unknown error") != 0);
	if (err != GALE_ERR_OK)
		return;
	ask(runtime, limiter, bytes);
	gale_limiter_close(limiter);
}

static void open_store(struct gale_runtime *runtime, struct bytes *bytes)
{
	static const char scheme[] = "memory:";
	char url[sizeof(scheme) + TEXT];
	struct gale_store_config config = { .url = url };
	struct gale_store *store;

	strcpy(url, scheme);
	take_text(bytes, take_number(bytes, 1) % 4 ? url + strlen(scheme) : url);
	config.max_keys = take_number(bytes, 5);
	if (gale_store_open(runtime, &config, &store) != GALE_ERR_OK)
		return;
	open_limiter(runtime, store, bytes);
	gale_store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct gale_clock clock = { .now_us = read_now };
	struct gale_config config = {
		.shards = 1,
		.pending_max = (uint32_t)take_number(&bytes, 3),
		.clock = &clock,
	};
	struct gale_runtime *runtime;
	enum gale_err err = gale_runtime_open(&config, &runtime);

	gale_assert(err == GALE_ERR_OK || err == GALE_ERR_PENDING);
	if (err != GALE_ERR_OK)
		return 0;
	open_store(runtime, &bytes);
	gale_runtime_close(runtime);
	return 0;
}
