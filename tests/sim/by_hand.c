/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* by_hand.c -- makes them, and looks at what came of it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/sim/by_hand.h"

struct world w;

struct world_plan plan_of(uint64_t limit, uint64_t batch, uint32_t nodes)
{
	return (struct world_plan){
		.seed = 1,
		.rule = gale_fixed_window(limit, WINDOW),
		.mode = GALE_LEASED,
		.lease = { .sizing = batch ? GALE_SIZE_FIXED : GALE_SIZE_LEARNED,
		           .batch = batch },
		.net = { .direct = true },
		.nodes = nodes,
		.seats = 1,
		.shards = 1,
		.keys = 2,
		.pending = 256,
	};
}

struct world_plan bad_plan(void)
{
	struct world_plan plan = plan_of(10, 5, 1);

	plan.bad = true;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	plan.lease.patience_us = GALE_MILLIS(20);
	return plan;
}

uint64_t start_of_window(uint64_t window)
{
	return WORLD_START + window * WINDOW;
}

void run_to(uint64_t window, uint64_t into_us)
{
	world_run(&w, start_of_window(window) + into_us);
}

void world_ends(void)
{
	bool lawful = world_close(&w);

	if (!lawful)
		fail_msg("%s", w.fault);
}

uint64_t ask_times(uint64_t times)
{
	uint64_t before = w.admissions;

	for (uint64_t i = 0; i < times; i++)
		world_ask(&w, (uint32_t)(i % w.plan.nodes), 0, 0, 1);
	return w.admissions - before;
}

enum gale_verdict verdict_of(const struct call *call)
{
	return call->pending ? GALE_PENDING : call->answer.verdict;
}

void told(const struct call *call, enum gale_verdict verdict, enum gale_why why)
{
	assert_int_equal(verdict_of(call), verdict);
	assert_string_equal(gale_why_text(call->answer.why), gale_why_text(why));
}

uint64_t counted(const char *name)
{
	return world_metric(&w, 0, name);
}

void steady_asks(uint64_t window, uint64_t from_ms, uint64_t to_ms, uint32_t first_node)
{
	for (uint64_t ms = from_ms; ms < to_ms; ms++) {
		run_to(window, GALE_MILLIS(ms));
		for (uint32_t node = first_node; node < w.plan.nodes; node++)
			world_ask(&w, node, 0, 0, 1);
	}
}
