/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * one_step.c -- one thing, so many times: what instructions.sh counts.
 *
 *	one_step fixed_window|gcra|token_bucket|ask|held|named|hot|many|held_denied|denied|
 *	         guard|refused|tenant|tenant_beyond|tenant_lent|tenant_denied|tenant_shared|
 *	         tenant_hold|tenant_grow|all_of|hold|hold_two|grow|nothing COUNT [TENANTS]
 *
 * named is of a key that is looked up, hot of one that is at hand.  Under valgrind asks are too
 * rare for that, so cells are put in by hand, and the host takes the turns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/guard.h>
#include <gale/hold.h>
#include <gale/tenants.h>

#include "face/lend.h"

#define MUCH (UINT64_C(1) << 50)
#define START GALE_DAYS(20700) /* 2026 */

static void must(bool works, const char *what)
{
	if (works)
		return;
	fprintf(stderr, "one_step: %s\n", what);
	exit(2);
}

static void keep(const void *what)
{
	__asm__ volatile("" : : "r"(what) : "memory");
}

/* A millisecond apart, at the rate that the rule lets through. */
static void steps(struct gale_rule config, uint64_t count)
{
	struct gale_answer answer = { .verdict = GALE_ALLOW };
	uint64_t words[4] = { 0 }, now = START;
	struct rule rule;

	must(rule_compile(&config, &rule) == GALE_ERR_OK, "a rule");
	must(rule.words <= 4, "a state is too long");
	answer = rule_step(&rule, words, now, 500);
	for (uint64_t i = 0; i < count; i++) {
		now += GALE_MILLIS(1);
		answer = rule_step(&rule, words, now, 1);
		keep(&answer);
	}
	must(answer.verdict == GALE_ALLOW, "a step was denied");
}

static const char name[] = "sixteen letters.";

/* A runtime with one limiter, and a seat that asks. */
struct scene {
	struct gale_runtime *runtime;
	struct gale_limiter_config limits;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

static void open_scene(struct scene *scene, enum gale_mode mode, uint64_t limit,
                       bool turns)
{
	struct gale_config config = { .shards = 1, .turns = turns };

	scene->limits = (struct gale_limiter_config){
		.name = "bench",
		.rule = gale_fixed_window(limit, GALE_SPAN_MAX_US),
		.mode = mode,
	};
	if (mode == GALE_LEASED)
		scene->limits.lease =
		    (struct gale_leasing){ .sizing = GALE_SIZE_FIXED,
			                   .batch = 1000000,
			                   .patience_us = GALE_SECONDS(30) };
	must(gale_runtime_open(&config, &scene->runtime) == GALE_ERR_OK, "a runtime");
	must(gale_store_open(scene->runtime, NULL, &scene->limits.store) == GALE_ERR_OK,
	     "a store");
	must(gale_limiter_open(scene->runtime, &scene->limits, &scene->limiter) ==
	         GALE_ERR_OK,
	     "a limiter");
	must(gale_join(scene->runtime, &scene->seat) == GALE_ERR_OK, "a seat");
}

static void close_scene(struct scene *scene)
{
	gale_leave(scene->seat);
	gale_limiter_close(scene->limiter);
	gale_store_close(scene->limits.store);
	gale_runtime_close(scene->runtime);
}

static struct gale_answer wait_for(struct scene *scene)
{
	return gale_wait(scene->seat, scene->limiter, name, 16, 1, GALE_SECONDS(30));
}

static void asks(uint64_t count)
{
	struct gale_answer answer = { .verdict = GALE_ALLOW };
	struct scene scene;

	open_scene(&scene, GALE_STRICT, MUCH, false);
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_ask(scene.seat, scene.limiter, name, 16, 1, NULL);
		keep(&answer);
	}
	must(answer.verdict == GALE_ALLOW, "an ask was not allowed");
	close_scene(&scene);
}

static void give_cells(struct scene *scene)
{
	struct purse_name wanted = {
		.lender = &scene->limiter->lender,
		.key = (const uint8_t *)name,
		.key_len = 16,
		.hash = local_hash(&scene->limiter->lender, name, 16),
	};
	struct purses *set = &runtime_shard(scene->runtime, wanted.hash)->lessor.purses;

	must(purses_give_cells(set, purses_find(set, &wanted), 2), "cells");
}

/* From credit, or with a limit of 1 from memory of a denial; the seat ticks once. */
static void leased_asks(uint64_t count, uint64_t limit, bool hot)
{
	struct gale_answer answer = { 0 };
	struct scene scene;

	open_scene(&scene, GALE_LEASED, limit, hot);
	must(wait_for(&scene).verdict == GALE_ALLOW, "a first ask was not allowed");
	(void)wait_for(&scene);
	if (hot)
		give_cells(&scene);
	gale_tick(scene.seat);
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_ask(scene.seat, scene.limiter, name, 16, 1, NULL);
		keep(&answer);
	}
	must(answer.verdict == (limit == 1 ? GALE_DENY : GALE_ALLOW), "a verdict");
	close_scene(&scene);
}

/* Sixteen at a time, all of one key. */
static void asks_of_many(uint64_t count)
{
	struct gale_question questions[16];
	struct gale_answer answers[16];
	struct scene scene;

	open_scene(&scene, GALE_LEASED, MUCH, false);
	must(wait_for(&scene).verdict == GALE_ALLOW, "a first ask was not allowed");
	for (int i = 0; i < 16; i++)
		questions[i] =
		    (struct gale_question){ .key = name, .key_len = 16, .cost = 1 };
	gale_tick(scene.seat);
	for (uint64_t i = 0; i < count; i += 16) {
		gale_ask_many(scene.seat, scene.limiter, questions, 16, answers);
		keep(answers);
	}
	must(answers[15].verdict == GALE_ALLOW, "an ask was not allowed");
	close_scene(&scene);
}

static void held_asks(uint64_t count, uint64_t limit)
{
	struct gale_answer answer = { 0 };
	struct gale_key *key;
	struct scene scene;

	open_scene(&scene, GALE_LEASED, limit, false);
	must(wait_for(&scene).verdict == GALE_ALLOW, "a first ask was not allowed");
	(void)wait_for(&scene);
	must(gale_key_open(scene.seat, scene.limiter, name, 16, &key) == GALE_ERR_OK,
	     "a key");
	gale_tick(scene.seat);
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_ask_key(key, 1, NULL);
		keep(&answer);
	}
	must(answer.verdict == (limit == 1 ? GALE_DENY : GALE_ALLOW), "a verdict");
	gale_key_close(key);
	close_scene(&scene);
}

/* One call enters and exits, or with no slot left is refused; the seat ticks once. */
static void calls(uint64_t count, bool full)
{
	struct gale_guard_config limits = { .name = "bench", .law = GALE_FIXED };
	struct gale_entry entry = { 0 }, kept = { 0 };
	struct gale_guard *guard;
	struct scene scene;

	limits.ceiling = full ? 1 : 1000;
	open_scene(&scene, GALE_STRICT, MUCH, true);
	must(gale_guard_open(scene.runtime, &limits, &guard) == GALE_ERR_OK, "a guard");
	gale_tick(scene.seat);
	if (full)
		kept = gale_enter(scene.seat, guard, 1, GALE_NORMAL);
	for (uint64_t i = 0; i < count; i++) {
		entry = gale_enter(scene.seat, guard, 1, GALE_NORMAL);
		must(entry.verdict == (full ? GALE_DENY : GALE_ALLOW), "a verdict");
		if (entry.verdict == GALE_ALLOW)
			gale_exit(scene.seat, &entry, GALE_OK);
		keep(&entry);
	}
	gale_exit(scene.seat, &kept, GALE_OK);
	gale_guard_close(guard);
	close_scene(&scene);
}

/* A budget with so many tenants that are present.  One asks: from its purse; with no purse, or for
 * more than a purse can have, by the budget's lock; or with no more units than tenants it is denied.
 * The seat ticks once. */
#define CROWD 10000
#define ABOVE_PURSES (UINT64_C(1) << 20)

static int crowd = CROWD;

static void asks_of_tenant(uint64_t count, enum gale_lending lending, uint64_t limit,
                           uint64_t cost)
{
	struct gale_budget_config config = { .limit = limit,
		                             .window_us = GALE_SPAN_MAX_US,
		                             .max_tenants = CROWD,
		                             .lending = lending };
	static struct gale_tenant *tenants[CROWD];
	struct gale_terms terms = { .weight = 1 };
	struct gale_answer answer = { 0 };
	struct gale_budget *budget;
	struct scene scene;

	open_scene(&scene, GALE_STRICT, MUCH, true);
	must(gale_budget_open(scene.runtime, &config, &budget) == GALE_ERR_OK,
	     "a budget");
	gale_tick(scene.seat);
	for (int i = 0; i < crowd; i++) {
		must(gale_tenant_open(budget, &terms, &tenants[i]) == GALE_ERR_OK,
		     "a tenant");
		(void)gale_tenant_ask(scene.seat, tenants[i], 1);
	}
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_tenant_ask(scene.seat, tenants[0], cost);
		keep(&answer);
	}
	must(answer.verdict == (limit <= CROWD ? GALE_DENY : GALE_ALLOW), "a verdict");
	for (int i = 0; i < crowd; i++)
		gale_tenant_close(tenants[i]);
	gale_budget_close(budget);
	close_scene(&scene);
}

/* From the purse of a tenant that is alone: two units are held and one is committed, or one hold grows
 * by one. */
static void holds_of_tenant(uint64_t count, bool grows)
{
	struct gale_budget_config config = { .limit = MUCH,
		                             .window_us = GALE_SPAN_MAX_US };
	struct gale_terms terms = { .weight = 1 };
	struct gale_tenant_held hold;
	struct gale_tenant *tenant;
	struct gale_budget *budget;
	struct scene scene;

	open_scene(&scene, GALE_STRICT, MUCH, true);
	must(gale_budget_open(scene.runtime, &config, &budget) == GALE_ERR_OK,
	     "a budget");
	must(gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK, "a tenant");
	gale_tick(scene.seat);
	must(gale_tenant_hold(scene.seat, tenant, 1, &hold, 0).verdict == GALE_ALLOW,
	     "a hold");
	for (uint64_t i = 0; i < count; i++) {
		struct gale_tenant_held other;
		struct gale_answer answer =
		    grows ? gale_tenant_grow(scene.seat, &hold, 1, 0)
			  : gale_tenant_hold(scene.seat, tenant, 2, &other, 0);

		must(answer.verdict == GALE_ALLOW, "a verdict");
		must(grows || gale_tenant_commit(scene.seat, &other, 1) == GALE_ERR_OK,
		     "a commit");
	}
	must(gale_tenant_commit(scene.seat, &hold, 0) == GALE_ERR_OK, "a commit");
	gale_tenant_close(tenant);
	gale_budget_close(budget);
	close_scene(&scene);
}

/* Within the guarantee, of a budget that is shared over the store; what the store has to be asked for
 * is waited for. */
static void asks_of_shared(uint64_t count)
{
	struct gale_terms terms = { .guarantee = MUCH, .weight = 1, .name = "tenant" };
	struct gale_budget_config config = { .limit = MUCH,
		                             .window_us = GALE_SPAN_MAX_US,
		                             .name = "bench",
		                             .patience_us = GALE_SECONDS(30) };
	struct gale_answer answer = { 0 };
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	struct scene scene;

	open_scene(&scene, GALE_STRICT, MUCH, true);
	config.store = scene.limits.store;
	must(gale_budget_open(scene.runtime, &config, &budget) == GALE_ERR_OK,
	     "a budget");
	must(gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK, "a tenant");
	gale_tick(scene.seat);
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_tenant_ask(scene.seat, tenant, 1);
		if (answer.verdict != GALE_ALLOW)
			answer =
			    gale_tenant_wait(scene.seat, tenant, 1, GALE_SECONDS(30));
		must(answer.verdict == GALE_ALLOW, "a verdict");
	}
	gale_tenant_close(tenant);
	gale_budget_close(budget);
	close_scene(&scene);
}

/* Parts of one key, each of a limiter of its own that has credit: the scene's, and another. */
struct parts {
	struct gale_limiter *other;
	struct gale_part parts[2];
	struct gale_all all;
};

static void open_parts(struct scene *scene, struct parts *parts, size_t count)
{
	open_scene(scene, GALE_LEASED, MUCH, false);
	scene->limits.name = "other";
	must(gale_limiter_open(scene->runtime, &scene->limits, &parts->other) ==
	         GALE_ERR_OK,
	     "another limiter");
	parts->parts[0] = (struct gale_part){ scene->limiter, name, 16, 1 };
	parts->parts[1] = (struct gale_part){ parts->other, name, 16, 1 };
	parts->all = (struct gale_all){ .parts = parts->parts, .count = count };
	must(gale_wait_all(scene->seat, &parts->all, GALE_SECONDS(30)).verdict ==
	         GALE_ALLOW,
	     "a first ask was not allowed");
	gale_tick(scene->seat);
}

static void close_parts(struct scene *scene, struct parts *parts)
{
	gale_limiter_close(parts->other);
	close_scene(scene);
}

static void asks_of_all(uint64_t count)
{
	struct gale_answer answer = { 0 };
	struct scene scene;
	struct parts parts;

	open_parts(&scene, &parts, 2);
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_ask_all(scene.seat, &parts.all, NULL);
		keep(&answer);
	}
	must(answer.verdict == GALE_ALLOW, "an ask was not allowed");
	close_parts(&scene, &parts);
}

/* Two units are held, and one is committed: the other goes back. */
static void holds(uint64_t count, size_t parts_each)
{
	const uint64_t costs[2] = { 1, 1 };
	struct gale_answer answer = { 0 };
	struct gale_hold hold;
	struct scene scene;
	struct parts parts;

	open_parts(&scene, &parts, parts_each);
	parts.parts[0].cost = parts.parts[1].cost = 2;
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_hold_all(scene.seat, &parts.all, &hold, NULL);
		must(answer.verdict == GALE_ALLOW, "a hold was not allowed");
		must(gale_hold_commit(scene.seat, &hold, costs) == GALE_ERR_OK,
		     "a commit");
	}
	close_parts(&scene, &parts);
}

static void grows(uint64_t count)
{
	const uint64_t more[1] = { 1 };
	struct gale_answer answer = { 0 };
	struct gale_hold hold;
	struct scene scene;
	struct parts parts;

	open_parts(&scene, &parts, 1);
	answer = gale_hold_all(scene.seat, &parts.all, &hold, NULL);
	for (uint64_t i = 0; i < count; i++) {
		answer = gale_hold_grow(scene.seat, &hold, more, 0);
		keep(&answer);
	}
	must(answer.verdict == GALE_ALLOW, "a hold did not grow");
	must(gale_hold_cancel(scene.seat, &hold) == GALE_ERR_OK, "a cancel");
	close_parts(&scene, &parts);
}

static void nothing(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		keep(&i);
}

int main(int argc, char **argv)
{
	const char *what = argc >= 3 ? argv[1] : "";
	uint64_t count = argc >= 3 ? strtoull(argv[2], NULL, 10) : 0;

	if (argc == 4)
		crowd = atoi(argv[3]);
	must(crowd >= 1 && crowd <= CROWD, "1 to 10,000 tenants");
	if (strcmp(what, "fixed_window") == 0)
		steps(gale_fixed_window(UINT64_C(1) << 40, GALE_SECONDS(1)), count);
	else if (strcmp(what, "gcra") == 0)
		steps(gale_gcra(1000, GALE_SECONDS(1), 1000), count);
	else if (strcmp(what, "token_bucket") == 0)
		steps(gale_token_bucket(1000, 1000, GALE_SECONDS(1)), count);
	else if (strcmp(what, "ask") == 0)
		asks(count);
	else if (strcmp(what, "held") == 0)
		held_asks(count, MUCH);
	else if (strcmp(what, "named") == 0)
		leased_asks(count, MUCH, false);
	else if (strcmp(what, "hot") == 0)
		leased_asks(count, MUCH, true);
	else if (strcmp(what, "many") == 0)
		asks_of_many(count);
	else if (strcmp(what, "held_denied") == 0)
		held_asks(count, 1);
	else if (strcmp(what, "denied") == 0)
		leased_asks(count, 1, false);
	else if (strcmp(what, "guard") == 0)
		calls(count, false);
	else if (strcmp(what, "refused") == 0)
		calls(count, true);
	else if (strcmp(what, "tenant") == 0)
		asks_of_tenant(count, GALE_LENT, MUCH, 1);
	else if (strcmp(what, "tenant_beyond") == 0)
		asks_of_tenant(count, GALE_PARTED, MUCH, 1);
	else if (strcmp(what, "tenant_lent") == 0)
		asks_of_tenant(count, GALE_LENT, GALE_UNITS_MAX, ABOVE_PURSES);
	else if (strcmp(what, "tenant_denied") == 0)
		asks_of_tenant(count, GALE_LENT, CROWD, 1);
	else if (strcmp(what, "tenant_hold") == 0)
		holds_of_tenant(count, /* grows= */ false);
	else if (strcmp(what, "tenant_grow") == 0)
		holds_of_tenant(count, /* grows= */ true);
	else if (strcmp(what, "tenant_shared") == 0)
		asks_of_shared(count);
	else if (strcmp(what, "all_of") == 0)
		asks_of_all(count);
	else if (strcmp(what, "hold") == 0)
		holds(count, 1);
	else if (strcmp(what, "hold_two") == 0)
		holds(count, 2);
	else if (strcmp(what, "grow") == 0)
		grows(count);
	else if (strcmp(what, "nothing") == 0)
		nothing(count);
	else
		must(false, "see the head of one_step.c");
	return 0;
}
