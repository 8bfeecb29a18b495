/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* fund_scene.c -- a store that answers when the test says so. */
#include "tests/support/fund_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

#include "tests/support/must.h"

struct fund_scene scene;

static void begin(const struct store_client *client, struct store_call *call)
{
	(void)client;
	scene.sent = call;
	scene.calls++;
}

static const struct store_ops store_ops = { .begin = begin };

static void drop(struct fund *self)
{
	(void)self;
}

static void drop_stake(struct stake *self)
{
	(void)self;
	scene.dropped++;
}

static void say(struct fund *self, enum gale_level level, const char *line)
{
	(void)self;
	(void)level;
	scene.lines++;
	strncpy(scene.said, line, sizeof(scene.said) - 1);
}

static const struct fund_ops fund_ops = { drop, drop_stake, say };

void open_stake(int number, const char *name, uint64_t alone)
{
	const struct stake_config config = {
		.fund = &scene.fund,
		.till = &scene.tills[number],
		.name = name,
		.node = (uint64_t)number + 1,
		.terms = { .cap = GALE_UNITS_MAX, .weight = 1 },
		.alone = alone,
	};

	memset(&scene.stakes[number], 0, sizeof(scene.stakes[number]));
	must(stake_open(&scene.stakes[number], &config, scene.now));
}

int open_scene(void **state)
{
	const struct fund_config config = {
		.ops = &fund_ops,
		.coordinator = &scene.coordinator,
		.post = &scene.post,
		.name = "budget",
		.terms = { .limit = LIMIT,
		           .period_us = DAY_US,
		           .release_us = RELEASE_US },
		.patience_ns = PATIENCE_NS,
		.remind_ns = REMIND_NS,
		.alones = scene.alones,
		.alone_count = STAKES,
	};

	(void)state;
	memset(&scene, 0, sizeof(scene));
	scene.now.ns = UINT64_C(1000000000000);
	lock_init(&scene.coordinator.lock);
	lock_take(&scene.coordinator.lock);
	scene.coordinator.locked.ended = true; /* the test takes its turns */
	lock_drop(&scene.coordinator.lock);
	scene.store.ops = &store_ops;
	scene.post =
	    (struct post){ .store = &scene.store,
		           .client = { .store = &scene.store,
		                       .desk = (struct store_desk *)&scene.desk },
		           .entered = true };
	fund_init(&scene.fund, &config);
	open_stake(0, "big", /* alone= */ 0);
	open_stake(1, "small", /* alone= */ 0);
	return 0;
}

int close_scene(void **state)
{
	(void)state;
	fund_free(&scene.fund);
	lock_destroy(&scene.coordinator.lock);
	return 0;
}

static void on_done(struct fund_wait *wait)
{
	((struct asked *)wait)->done = true;
}

enum fund_said ask_now(int stake, uint64_t cost)
{
	struct gale_answer answer;

	return fund_ask(&scene.stakes[stake], cost, scene.now, NULL, NULL, &answer);
}

enum fund_said hold(int stake, uint64_t cost, struct asked *asked,
                    struct fund_held *held)
{
	struct gale_answer answer;

	*asked = (struct asked){ .wait = { .done = on_done }, .op = { .cost = cost } };
	asked->wait.op = &asked->op;
	return fund_ask(&scene.stakes[stake], cost, scene.now, &asked->wait, held,
	                &answer);
}

enum fund_said ask(int stake, uint64_t cost, struct asked *asked)
{
	return hold(stake, cost, asked, NULL);
}

void turn(void)
{
	scene.sent = NULL;
	(void)fund_turn(&scene.fund, scene.now);
}

void wait_for_turn(void)
{
	scene.now = mono_later(scene.now, scene.fund.due);
	assert_true(scene.now.ns < UINT64_MAX);
	turn();
}

void wait_for_call(void)
{
	do
		wait_for_turn();
	while (!scene.sent);
}

const struct pool_ask *asked_of(const struct store_call *call)
{
	return &((const struct store_claim *)call->op->claim)->ask;
}

void answer(uint64_t window, uint64_t granted, uint64_t left_us)
{
	struct store_call *call = scene.sent;

	call->op->claim->answer = (struct pool_answer){ .result = POOL_ANSWERED,
		                                        .window = window,
		                                        .granted = granted,
		                                        .left_us = left_us,
		                                        .share = LIMIT / STAKES,
		                                        .free = LIMIT / 2,
		                                        .retry_us = left_us };
	call->result = STORE_DONE;
	fund_hear(call, scene.now);
}

void refuse(uint64_t result, uint64_t retry_us)
{
	scene.sent->op->claim->answer =
	    (struct pool_answer){ .result = result, .retry_us = retry_us };
	scene.sent->result = STORE_DONE;
	fund_hear(scene.sent, scene.now);
}

void miss(enum store_result result)
{
	scene.sent->result = result;
	fund_hear(scene.sent, scene.now);
}

void lose(void)
{
	miss(STORE_LATE);
}

uint64_t in_till(int stake)
{
	return credit_units(load_relaxed(&scene.tills[stake].purse));
}

void have(int stake, uint64_t units)
{
	struct asked asked;

	assert_int_equal(ask(stake, 1, &asked), FUND_WAITS);
	turn();
	answer(1, units + 1, DAY_US / 2);
	assert_true(asked.done && asked.op.answer.verdict == GALE_ALLOW);
	assert_int_equal(in_till(stake), units);
}

void answers(struct asked *asked, enum gale_verdict verdict, enum gale_why why)
{
	assert_true(asked->done);
	assert_int_equal(asked->op.answer.verdict, verdict);
	assert_string_equal(gale_why_name(asked->op.answer.why), gale_why_name(why));
}
