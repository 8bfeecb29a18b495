/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* servers.c -- asks, and sleeps until they are answered. */
#define _GNU_SOURCE
#include "bench/servers.h"

#include <string.h>
#include <sys/epoll.h>

#include "bench/keys.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "runtime/role.h"
#include "runtime/wake.h"

#define LIMIT (UINT64_C(1) << 52)
#define UNITS 1000
#define SLEEP_NS 100000000
#define PATIENCE_NS UINT64_C(10000000000)

static uint64_t number; /* of the latest request, of any asker and node */

static void on_answer(struct store_home *home, const struct lend_answer *answer)
{
	struct asker *asker = (struct asker *)home;
	bool granted = answer->result == STORE_DONE && answer->grant.units == UNITS;

	if (asker->granted && answer->result == STORE_LATE)
		asker->late++; /* the host stood still for as long as a line waits */
	else
		bench_expect(granted || !asker->granted, "a lease");
	bench_expect(asker->late <= 1 + asker->next / 100, "leases in time");
	asker->granted |= granted;
	asker->answered++;
}

static bool is_done(const struct store_call *call)
{
	const struct store_op *op = call->op;

	return call->result == STORE_DONE &&
	       (op->verb == STORE_BEAT ? op->beat->grant.result == GROUP_GRANTED
	                               : op->answer.verdict == GALE_ALLOW);
}

static void turn(struct asker *asker)
{
	const struct store_call *call;

	(void)asker->store->ops->turn(&asker->client, clock_now(asker->home.clock));
	while ((call = store_take(&asker->home))) {
		bench_expect(is_done(call), "a step, or a beat");
		asker->answered++;
	}
}

/* A server that has just been started grants nothing until a second has passed. */
static void wait_for_first(struct asker *asker)
{
	uint64_t deadline_ns = patience_now_ns() + PATIENCE_NS;

	while (!asker->granted && patience_now_ns() < deadline_ns) {
		wake_wait_on(asker->home.watch.epoll_fd, &asker->poller,
		             patience_now_ns() + SLEEP_NS);
		asker_lend(asker, 1);
	}
	bench_expect(asker->granted, "a first lease");
}

static void init(struct asker *asker, uint64_t keys)
{
	static struct boot_clock boot;
	struct gale_rule rule = gale_fixed_window(LIMIT, GALE_DAYS(365));

	boot_clock_init(&boot);
	*asker = (struct asker){ .keys = keys };
	asker->home.on_answer = on_answer;
	list_init(&asker->home.done);
	asker->home.clock = &boot.clock;
	bench_expect(rule_compile(&rule, &asker->rule) == GALE_ERR_OK, "a rule");
}

void asker_open_embedded(struct asker *asker, struct store *store, uint64_t keys)
{
	bench_expect(store != NULL, "a store");
	init(asker, keys);
	asker->store = store;
	asker->client = (struct store_client){ .store = store, .home = &asker->home };
}

void asker_open(struct asker *asker, struct server_kind *kind, uint64_t keys)
{
	struct server_config config = {
		.allocator = memory_default(),
		.kind = kind,
		.quarantine_us = 1, /* it has just been started */
	};

	bench_expect(kind != NULL, "a server");
	init(asker, keys);
	asker->home.watch.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	asker->home.watch.early = wake_early_pays();
	asker->store = server_open(&config);
	bench_expect(asker->store &&
	                 store_enter(asker->store, &asker->home, &asker->client),
	             "a store");
	wait_for_first(asker);
}

static mono now_of(const struct asker *asker)
{
	return clock_now(asker->home.clock);
}

static void wait_for(struct asker *asker, unsigned count)
{
	if (asker->answered >= count)
		return;
	turn(asker);
	while (asker->answered < count) {
		wake_wait_on(asker->home.watch.epoll_fd, &asker->poller,
		             patience_now_ns() + SLEEP_NS);
		turn(asker);
	}
}

static struct key next_key(struct asker *asker)
{
	return key_of(asker->first + asker->next++ % asker->keys);
}

/* Until they are answered. */
struct lot {
	struct lend_request requests[TOGETHER];
	struct key keys[TOGETHER];
};

static uint64_t node_of(const struct asker *asker)
{
	return asker->nodes > 0 ? 1 + asker->next % asker->nodes : 1;
}

static void begin(struct asker *asker, struct lot *lot, unsigned count)
{
	mono due = mono_after(now_of(asker), PATIENCE_NS);

	for (unsigned i = 0; i < count; i++) {
		lot->keys[i] = next_key(asker);
		lot->requests[i] = (struct lend_request){
			.verb = LEND,
			.key = (const uint8_t *)&lot->keys[i],
			.key_len = sizeof(lot->keys[i]),
			.rule = &asker->rule,
			.ask = { .node = node_of(asker),
			         .number = ++number,
			         .want = UNITS,
			         .least = 1 },
			.due = due,
			.seen_in = asker->next > asker->keys, /* it was told before */
		};
	}
	asker->store->ops->lend(&asker->client, lot->requests, count);
}

void asker_lend(struct asker *asker, unsigned count)
{
	struct lot lot;

	asker->answered = 0;
	begin(asker, &lot, count);
	wait_for(asker, count);
}

static void run_ops(struct asker *asker, struct store_op *ops, unsigned count)
{
	struct store_call calls[TOGETHER];

	asker->answered = 0;
	for (unsigned i = 0; i < count; i++) {
		calls[i] = (struct store_call){
			.op = &ops[i], .due = mono_after(now_of(asker), PATIENCE_NS)
		};
		asker->store->ops->begin(&asker->client, &calls[i]);
	}
	wait_for(asker, count);
}

void asker_step(struct asker *asker, unsigned count)
{
	struct store_op ops[TOGETHER];
	struct key keys[TOGETHER];

	for (unsigned i = 0; i < count; i++) {
		keys[i] = next_key(asker);
		ops[i] = (struct store_op){ .verb = STORE_STEP,
			                    .key = (const uint8_t *)&keys[i],
			                    .key_len = sizeof(keys[i]),
			                    .rule = &asker->rule,
			                    .cost = 1 };
	}
	run_ops(asker, ops, count);
}

void asker_beat(struct asker *asker, const char *group, struct store_beat *beats,
                unsigned count)
{
	struct store_op ops[TOGETHER];

	for (unsigned i = 0; i < count; i++)
		ops[i] = (struct store_op){ .verb = STORE_BEAT,
			                    .key = (const uint8_t *)group,
			                    .key_len = (uint32_t)strlen(group),
			                    .beat = &beats[i] };
	run_ops(asker, ops, count);
}

/* Answers come in the order of the batches. */
void asker_lend_ahead(struct asker *asker, unsigned batches, unsigned under_way)
{
	struct lot lots[UNDER_WAY_MOST];

	asker->answered = 0;
	for (unsigned i = 0; i < batches; i++) {
		begin(asker, &lots[i % under_way], TOGETHER);
		if (i + 1 < under_way)
			continue;
		wait_for(asker, TOGETHER);
		asker->answered -= TOGETHER;
	}
	wait_for(asker, (under_way - 1) * TOGETHER);
}

static void run(struct bench *b, void (*ask)(struct asker *, unsigned), unsigned count)
{
	struct asker *asker = bench_arg(b);

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		for (uint64_t done = 0; done < n; done += count)
			ask(asker, count);
}

void run_lend_one(struct bench *b)
{
	run(b, asker_lend, 1);
}

void run_lend_many(struct bench *b)
{
	run(b, asker_lend, TOGETHER);
}

void run_step_one(struct bench *b)
{
	run(b, asker_step, 1);
}

void run_step_many(struct bench *b)
{
	run(b, asker_step, TOGETHER);
}
