/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet_sim.c -- worlds drawn by lot, each from its seed.
 *
 *     fleet_sim --seeds 0-999                 as many worlds
 *     fleet_sim --seeds 0-999 --redis         those whose store can fail over, by a Redis
 *     fleet_sim --seeds 0-999 --changes       those whose rule can change, and does
 *
 * What becomes of a world that fails: seeds.h.
 *
 * Most worlds lease windows among a few nodes and have everything that can go wrong in
 * them; every tenth is calm, and in it each full window must be used to the last unit.
 * Others lease meters and pacers, or carry units over.  In every ninth or so callers stay with
 * a node and a key for long, so that leases are as large as they get.
 *
 * With --changes nodes are given another rule, one after the other, and in every other world
 * the first one again; and modes and kinds are those of the whole library (L15).
 *
 * With --redis the same worlds are played twice, once by the scripts on a real server and
 * once by the engine here: nodes must be told the same, at the same instants.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/sim/redis_station.h"
#include "tests/sim/seeds.h"
#include "tests/support/must.h"

/* ---- Drawing --------------------------------------------------------------------- */

static uint32_t one_of(struct chance *c, const uint32_t *from, size_t count)
{
	return from[chance_below(c, count)];
}

static uint32_t draw_nodes(struct chance *c)
{
	static const uint32_t often[] = { 1, 2, 2, 2, 2, 3, 3, 4, 8 };

	if (chance_one_in(c, 60))
		return 32;
	return one_of(c, often, sizeof(often) / sizeof(often[0]));
}

static uint64_t draw_window(struct chance *c)
{
	static const uint32_t millis[] = { 10, 10, 50, 100, 500, 1000, 2000 };

	return GALE_MILLIS(one_of(c, millis, sizeof(millis) / sizeof(millis[0])));
}

static uint64_t draw_limit(struct chance *c)
{
	return chance_one_in(c, 8) ? chance_between(c, 1, 2000) : chance_log(c, 60);
}

static void draw_sizing(struct chance *c, struct gale_leasing *lease, uint64_t limit)
{
	switch (chance_below(c, 3)) {
	case 0:
		lease->sizing = GALE_SIZE_FIXED;
		lease->batch = chance_between(c, 1, limit + 3);
		break;
	case 1:
		lease->sizing = GALE_SIZE_EOQ;
		lease->order_cost = (double)chance_between(c, 1, 200);
		lease->strand_penalty = 1;
		break;
	default:
		break;
	}
}

static void draw_net(struct chance *c, struct net_terms *net, uint64_t window)
{
	const uint64_t means[] = { 0,           window / 1000, window / 100,
		                   window / 20, window / 4,    window };

	net->mean_us = means[chance_below(c, 6)];
	net->direct = chance_one_in(c, 8);
	net->lost_percent = chance_one_in(c, 2) ? 10 : 0;
	net->doubled_percent = chance_one_in(c, 2) ? 10 : 0;
}

static uint64_t draw_patience(struct chance *c, uint64_t window)
{
	switch (chance_below(c, 4)) {
	case 0:
		return 1 + window / 50;
	case 1:
		return window / 2;
	case 2:
		return 4 * window;
	default:
		return 0;
	}
}

static struct gale_rule draw_rule(struct chance *c, uint64_t limit, uint64_t window)
{
	uint64_t burst = chance_between(c, 1, limit);

	switch (chance_below(c, 20)) {
	case 0:
	case 1:
		return gale_gcra(limit, window, burst);
	case 2:
		return gale_token_bucket(burst, limit, window);
	case 3:
		return gale_pacer(limit, window, burst);
	case 4:
		return gale_leaky_bucket(limit, window, window * 4);
	case 5:
		return gale_quota_anchored(limit, window,
		                           chance_below(c, window) + 1000000);
	default:
		return gale_fixed_window(limit, window);
	}
}

static bool has_windows(const struct gale_rule *rule)
{
	return rule->kind == GALE_RULE_FIXED_WINDOW || rule->kind == GALE_RULE_QUOTA;
}

/* Demand of all nodes and keys: from a tenth of the limit to ten times it. */
static void draw_demand(struct chance *c, struct script *script)
{
	uint64_t limit = script->plan.rule.limit * script->plan.keys;
	uint64_t units = limit * chance_between(c, 1, 100) / 10 + 1;
	uint64_t asks = units * 2 / (1 + script->cost_most) + 1;

	script->asks = chance_one_in(c, 100) ? 3000 : chance_between(c, 50, 300);
	script->gap_us = script->plan.rule.period_us / asks + 1;
	script->bursts = chance_one_in(c, 3);
	script->edges = chance_one_in(c, 2);
}

static void draw_faults(struct chance *c, struct script *script)
{
	script->crash_each = chance_one_in(c, 2) ? 100 : 0;
	script->pause_each = chance_one_in(c, 2) ? 60 : 0;
	script->plan.offset_us = chance_one_in(c, 4) ? 0 : GALE_HOURS(1);
	/* Each of two clocks is wrong by 450 ppm at most, of the 500 that are allowed for. */
	script->plan.rate_ppm = chance_one_in(c, 4) ? 0 : 900;
}

static void draw_world(struct chance *c, struct script *script)
{
	struct world_plan *plan = &script->plan;
	uint64_t limit = draw_limit(c), window = draw_window(c);

	plan->rule = draw_rule(c, limit, window);
	plan->mode = GALE_LEASED;
	plan->nodes = draw_nodes(c);
	plan->seats = (uint32_t)chance_between(c, 1, 4);
	plan->shards = chance_one_in(c, 4) ? 2 : 1;
	plan->keys = chance_one_in(c, 3) ? (uint32_t)chance_between(c, 2, 20) : 1;
	plan->node_keys = chance_one_in(c, 4) ? (uint32_t)chance_between(c, 1, 4) : 0;
	plan->held = chance_one_in(c, 3);
	plan->hot = chance_one_in(c, 3);
	plan->strict = chance_one_in(c, 6) ? 1 : 0;
	plan->lease.patience_us = draw_patience(c, window);
	script->cost_most = chance_one_in(c, 2) ? 7 : 1;
	draw_sizing(c, &plan->lease, limit);
	draw_net(c, &plan->net, window);
	draw_faults(c, script);
}

/* What some rules do not go with. */
static void settle_world(struct chance *c, struct script *script)
{
	struct world_plan *plan = &script->plan;

	if (plan->rule.kind == GALE_RULE_PACER) {
		script->cost_most = 1;
		plan->strict = 0;
	}
	if (has_windows(&plan->rule) && plan->lease.sizing == GALE_SIZE_FIXED &&
	    chance_one_in(c, 5)) {
		plan->lease.carry_over = true;
		script->cost_most = 1;
		plan->strict = 0;
		plan->node_keys = 0;
	}
}

/* Each node alone asks for more than the limit, in each window, unit by unit. */
static void draw_calm(struct chance *c, struct script *script)
{
	static const uint32_t nodes[] = { 1, 2, 2, 3, 3, 4, 8, 32 };
	struct world_plan *plan = &script->plan;
	uint64_t limit = chance_between(c, 1, 40);
	uint64_t window = GALE_MILLIS(chance_between(c, 100, 2000));

	plan->rule = gale_fixed_window(limit, window);
	plan->nodes = one_of(c, nodes, sizeof(nodes) / sizeof(nodes[0]));
	plan->keys = 1;
	plan->node_keys = 0;
	plan->strict = 0;
	plan->lease = (struct gale_leasing){ 0 };
	draw_sizing(c, &plan->lease, limit);
	plan->net = (struct net_terms){ .mean_us = chance_below(c, window / 2000),
		                        .direct = chance_one_in(c, 4) };
	script->crash_each = script->pause_each = 0;
	script->cost_most = 1;
	script->gap_us = window / (limit * 3 * plan->nodes) + 1;
	script->calm_windows = 3;
	script->asks = script->calm_windows * window / script->gap_us + 1;
	script->bursts = script->edges = false;
	script->fades = plan->nodes > 1 && chance_one_in(c, 2);
}

static bool can_fail(const struct world_plan *plan)
{
	enum gale_rule_kind kind = plan->rule.kind;

	return !plan->lease.carry_over &&
	       (kind == GALE_RULE_FIXED_WINDOW || kind == GALE_RULE_GCRA ||
	        kind == GALE_RULE_TOKEN_BUCKET);
}

/* Partitions, and stores that forget. */
static void draw_failures(struct chance *c, struct script *script)
{
	script->cut_each = chance_one_in(c, 3) ? 60 : 0;
	script->plan.fails = can_fail(&script->plan) && chance_one_in(c, 3);
	script->fail_each = script->plan.fails ? 50 : 0;
	script->copy_each = 20;
}

/* A node is asked about a key until much of the limit is used: there are leases of many units,
 * and each seat has a part of them in its cell. */
static void draw_rows(struct chance *c, struct script *script)
{
	struct world_plan *plan = &script->plan;
	struct gale_rule *rule = &plan->rule;
	uint64_t cost = (1 + script->cost_most) / 2;

	rule->limit = chance_between(c, 40, 400);
	if (rule->burst > 0)
		rule->burst = chance_between(c, rule->limit / 4, rule->limit);
	plan->nodes = (uint32_t)chance_between(c, 1, 2);
	plan->keys = (uint32_t)chance_between(c, 1, 2);
	plan->node_keys = 0;
	plan->seats = (uint32_t)chance_between(c, 2, 4);
	plan->hot = true;
	if (!plan->lease.carry_over) {
		plan->lease =
		    (struct gale_leasing){ .patience_us = plan->lease.patience_us };
		draw_sizing(c, &plan->lease, rule->limit);
	}
	script->stays = chance_between(c, 10, 100);
	script->asks = chance_between(c, 200, 600);
	script->gap_us =
	    rule->period_us * cost / (rule->limit * chance_between(c, 1, 4)) + 1;
}

/* Nodes ask for a part of the limit in each of several windows, so that they are lent some of the
 * next one ahead.  Some of them want it all. */
static void draw_steady(struct chance *c, struct script *script)
{
	struct world_plan *plan = &script->plan;
	uint64_t limit = chance_between(c, 300, 1200);
	uint64_t window = GALE_MILLIS(chance_between(c, 100, 2000));
	uint64_t calls = limit * chance_between(c, 50, 100) / 100;

	plan->nodes = (uint32_t)chance_between(c, 1, chance_one_in(c, 6) ? 10 : 3);
	plan->keys = (uint32_t)chance_between(c, 1, chance_one_in(c, 4) ? 3 : 1);
	plan->node_keys = chance_one_in(c, 8) ? 1 : 0;
	plan->rule = gale_fixed_window(limit / plan->keys, window);
	plan->lease = (struct gale_leasing){ .patience_us = plan->lease.patience_us };
	plan->net.mean_us = chance_below(c, window / 500);
	script->cost_most = 1;
	script->bursts = script->edges = false;
	script->gap_us = window / calls + 1;
	script->asks = calls * chance_between(c, 6, 14);
	script->crash_each = chance_one_in(c, 2) ? (uint32_t)calls * 3 : 0;
	script->pause_each = chance_one_in(c, 2) ? (uint32_t)calls : 0;
	script->cut_each = chance_one_in(c, 3) ? (uint32_t)calls * 2 : 0;
	script->fail_each = script->plan.fails ? (uint32_t)calls * 3 : 0;
}

static struct script draw(uint64_t seed)
{
	struct chance c = { seed };
	struct script script = { .plan.seed = seed };

	draw_world(&c, &script);
	settle_world(&c, &script);
	draw_demand(&c, &script);
	script.calm = chance_one_in(&c, 10);
	if (script.calm)
		draw_calm(&c, &script);
	else
		draw_failures(&c, &script);
	if (!script.calm && chance_one_in(&c, 8))
		draw_rows(&c, &script);
	else if (!script.calm && chance_one_in(&c, 10))
		draw_steady(&c, &script);
	return script;
}

/* ---- Drawing what it changes to --------------------------------------------------- */

static bool is_metered(const struct gale_rule *rule)
{
	return rule->kind == GALE_RULE_GCRA || rule->kind == GALE_RULE_TOKEN_BUCKET ||
	       rule->kind == GALE_RULE_PACER;
}

/* From a tenth to ten times. */
static uint64_t draw_other(struct chance *c, uint64_t number)
{
	return chance_one_in(c, 2) ? chance_between(c, (number + 9) / 10, number)
	                           : chance_between(c, number, number * 10);
}

/* What is not leased. */
static void draw_asked(struct chance *c, struct world_plan *plan)
{
	struct gale_rule rule = plan->rule;

	plan->mode = chance_one_in(c, 2) ? GALE_STRICT : GALE_CACHED_DENY;
	plan->lease = (struct gale_leasing){ .patience_us = plan->lease.patience_us };
	plan->strict = 0;
	if (rule.kind != GALE_RULE_FIXED_WINDOW)
		return;
	switch (chance_below(c, 6)) {
	case 0:
		plan->rule = gale_sliding_log(rule.limit, rule.period_us);
		plan->fails = false;
		break;
	case 1:
		plan->rule = gale_sliding_window(rule.limit, rule.period_us,
		                                 chance_between(c, 2, 20));
		plan->fails = false;
		break;
	case 2:
	case 3:
		plan->rule = gale_token_budget(rule.limit, rule.period_us);
		break;
	default:
		break;
	}
}

/* Of a server in the world, a state is converted by more than one of its steps, and the law
 * sees each: there, what needs no conversion changes. */
static void draw_next(struct chance *c, struct world_plan *plan)
{
	plan->next = plan->rule;
	if (!is_metered(&plan->rule)) {
		plan->next.limit = draw_other(c, plan->rule.limit);
		return;
	}
	plan->next.burst = draw_other(c, plan->rule.burst);
	if (plan->fails)
		return;
	plan->next.limit = draw_other(c, plan->rule.limit);
	if (chance_one_in(c, 3))
		plan->next.period_us = draw_other(c, plan->rule.period_us);
}

static uint64_t least_capacity(const struct world_plan *plan)
{
	const struct gale_rule *a = &plan->rule, *b = &plan->next;
	uint64_t x = is_metered(a) ? a->burst : a->limit;
	uint64_t y = is_metered(b) ? b->burst : b->limit;

	return x < y ? x : y;
}

/* Within the second window, so that the third is all the next one's. */
static void draw_calm_changes(struct script *script)
{
	struct world_plan *plan = &script->plan;
	uint64_t most =
	    plan->rule.limit > plan->next.limit ? plan->rule.limit : plan->next.limit;

	script->gap_us = plan->rule.period_us / (most * 3 * plan->nodes) + 1;
	script->calm_windows = 5;
	script->asks = script->calm_windows * plan->rule.period_us / script->gap_us + 1;
	script->change_from = plan->rule.period_us / script->gap_us;
	script->change_each = script->change_from / (2 * plan->nodes) + 1;
	script->returns = false;
}

/* From lots of its own: worlds that do not change are drawn as without it. */
static void draw_changes(uint64_t seed, struct script *script)
{
	struct chance c = { ~seed };
	struct world_plan *plan = &script->plan;

	if (plan->lease.carry_over)
		return;
	if (!script->calm && chance_one_in(&c, 2))
		draw_asked(&c, plan);
	draw_next(&c, plan);
	if (plan->rule.kind != GALE_RULE_TOKEN_BUDGET &&
	    script->cost_most > least_capacity(plan))
		script->cost_most = least_capacity(plan);
	script->change_from = chance_below(&c, script->asks / 2 + 1);
	script->change_each = chance_between(&c, 1, script->asks / plan->nodes / 3 + 1);
	script->returns = chance_one_in(&c, 2);
	if (script->calm)
		draw_calm_changes(script);
}

/* The first window is half over when the world begins.  That in which rules change may be
 * used by either. */
static bool is_used_up(const struct script *script, const struct world *world)
{
	const struct world_plan *plan = &script->plan;
	bool changes = plan->next.kind != GALE_RULE_NONE;

	for (size_t i = 1; script->calm && i < script->calm_windows; i++) {
		uint64_t used = world_used(world, 0, i);
		uint64_t limit = changes ? plan->next.limit : plan->rule.limit;

		if (used == limit || (changes && i < 3))
			continue;
		printf("window %zu: %" PRIu64 " of %" PRIu64 " were used\n", i, used,
		       limit);
		return false;
	}
	return true;
}

/* ---- Telling --------------------------------------------------------------------- */

struct tally {
	uint64_t worlds, calm, events, asks, admitted, denied, requests, leases, ahead,
	    lost, doubled, crashes, pauses, cut, partitions, fail_overs, changes,
	    unanswered, us;
};

static void add(struct tally *tally, const struct script *script,
                const struct world *world)
{
	tally->worlds++;
	tally->calm += script->calm;
	tally->events += world->agenda.happened + world->call_count;
	tally->asks += world->call_count;
	tally->admitted += world->admissions;
	tally->denied += world->denials;
	tally->requests += world->net.requests;
	tally->leases += world->leases;
	tally->ahead += world->ahead;
	tally->lost += world->net.lost;
	tally->doubled += world->net.doubled;
	tally->crashes += world->crashes;
	tally->pauses += world->pauses;
	tally->cut += world->net.cut;
	tally->partitions += world->partitions;
	tally->fail_overs += world->fail_overs;
	tally->changes += world->changes;
	tally->unanswered += world->unanswered;
	tally->us += world->agenda.now_us - WORLD_START;
}

static void tell(const struct tally *tally)
{
	uint64_t faults = tally->lost + tally->doubled + tally->crashes +
	                  tally->pauses + tally->partitions + tally->cut +
	                  tally->fail_overs;

	printf("%" PRIu64 " worlds (%" PRIu64 " calm), %" PRIu64 " minutes, %" PRIu64
	       " events, %" PRIu64 " faults\n%" PRIu64 " asks: %" PRIu64
	       " admitted, %" PRIu64 " denied, %" PRIu64
	       " by nodes that crashed\n%" PRIu64 " requests, %" PRIu64
	       " leases, %" PRIu64 " units ahead; %" PRIu64 " lost, %" PRIu64
	       " doubled, %" PRIu64 " crashes, %" PRIu64 " pauses, %" PRIu64
	       " partitions (%" PRIu64 " lost to them), %" PRIu64
	       " fail-overs, %" PRIu64 " changes\n",
	       tally->worlds, tally->calm, tally->us / GALE_MINUTES(1), tally->events,
	       faults, tally->asks, tally->admitted, tally->denied, tally->unanswered,
	       tally->requests, tally->leases, tally->ahead, tally->lost,
	       tally->doubled, tally->crashes, tally->pauses, tally->partitions,
	       tally->cut, tally->fail_overs, tally->changes);
}

static void describe(const void *drawn)
{
	const struct script *script = drawn;
	const struct world_plan *plan = &script->plan;

	printf("%s, limit %" PRIu64 ", burst %" PRIu64 ", period %" PRIu64
	       " us; %u nodes, %u seats, %u shards, %u strict, %u keys of %u\n"
	       "sizing %d, batch %" PRIu64 "%s, patience %" PRIu64 "; delay %" PRIu64
	       "%s, lost %u %%, doubled %u %%; offset %" PRIu64 ", rate %u%s%s%s\n",
	       gale_rule_name(plan->rule.kind), plan->rule.limit, plan->rule.burst,
	       plan->rule.period_us, plan->nodes, plan->seats, plan->shards,
	       plan->strict, plan->keys, plan->node_keys, (int)plan->lease.sizing,
	       plan->lease.batch, plan->lease.carry_over ? " carried over" : "",
	       plan->lease.patience_us, plan->net.mean_us,
	       plan->net.direct ? " (direct)" : "", plan->net.lost_percent,
	       plan->net.doubled_percent, plan->offset_us, plan->rate_ppm,
	       script->calm ? ", calm" : "", plan->held ? ", held" : "",
	       plan->hot ? ", hot" : "");
	if (script->stays > 0)
		printf("; %" PRIu64 " asks in a row stay", script->stays);
	printf("\n");
	if (plan->next.kind != GALE_RULE_NONE)
		printf("mode %d; next: limit %" PRIu64 ", burst %" PRIu64
		       ", period %" PRIu64 " us, from ask %" PRIu64 ", each %" PRIu64
		       "%s\n",
		       (int)plan->mode, plan->next.limit, plan->next.burst,
		       plan->next.period_us, script->change_from, script->change_each,
		       script->returns ? ", and back" : "");
}

/* ---- One world ------------------------------------------------------------------- */

static struct world world;

static void fold(uint64_t *sum, uint64_t number)
{
	struct chance c = { *sum ^ number };

	*sum = chance_next(&c);
}

static void fold_call(uint64_t *sum, const struct call *call)
{
	const struct gale_answer *answer = &call->answer;
	const uint64_t numbers[] = {
		call->asked_us,
		call->node,
		call->key,
		call->cost,
		call->pending,
		answer->verdict,
		answer->why,
		answer->limit,
		answer->remaining,
		answer->reset_after_us,
		answer->retry_after_us,
		answer->delay_ns,
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		fold(sum, numbers[i]);
}

/* What nodes have told their callers and been told, as one number. */
static uint64_t story_of(const struct world *it)
{
	const uint64_t numbers[] = {
		it->admissions, it->denials,      it->leases,          it->fail_overs,
		it->unanswered, it->net.requests, it->net.lost,        it->net.cut,
		it->over_most,  it->chance.state, it->agenda.happened,
	};
	uint64_t sum = 0;

	for (size_t i = 0; i < it->call_count; i++)
		fold_call(&sum, it->calls[i]);
	for (uint32_t i = 0; i < it->plan.keys; i++) {
		fold(&sum, it->laws[i].lent);
		fold(&sum, it->laws[i].admitted);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		fold(&sum, numbers[i]);
	return sum;
}

/* What became of it; "" if nothing is wrong. */
static const char *play_world(const struct script *script, const struct choice *choice,
                              bool verbose, struct tally *tally, uint64_t *ret_asks,
                              uint64_t *ret_story)
{
	bool used_up, lawful;

	world_open(&world, &script->plan);
	world.verbose = verbose;
	*ret_asks = script_play(script, choice, &world);
	used_up = world.fault[0] || choice->some || is_used_up(script, &world);
	*ret_story = story_of(&world);
	lawful = world_close(&world);
	if (tally)
		add(tally, script, &world);
	if (lawful)
		return used_up ? "" : "not all was used";
	return world.fault;
}

/* The same, and if there is a station the engine must have the same story. */
static const char *run_world(const struct script *script, const struct choice *choice,
                             bool verbose, struct tally *tally, uint64_t *ret_asks)
{
	struct script by_engine = *script;
	uint64_t story, other;
	const char *what = play_world(script, choice, verbose, tally, ret_asks, &story);

	if (what[0] || !script->plan.station)
		return what;
	by_engine.plan.station = NULL;
	what = play_world(&by_engine, choice, /* verbose= */ false, NULL, ret_asks,
	                  &other);
	if (what[0])
		return what;
	return story == other ? "" : "without --redis, nodes are told something else";
}

/* ---- Made simpler ---------------------------------------------------------------- */

/* What may be set; and how simple it can be. */
static const struct shrink_field fields[] = {
#define FIELD(name, member, least, most)                                               \
	{                                                                              \
		name, offsetof(struct script, member),                                 \
		    sizeof(((struct script *)0)->member), least, most                  \
	}
	FIELD("asks", asks, 1, SCRIPT_ASKS_MOST),
	FIELD("fail_each", fail_each, 0, UINT32_MAX),
	FIELD("crash_each", crash_each, 0, UINT32_MAX),
	FIELD("pause_each", pause_each, 0, UINT32_MAX),
	FIELD("cut_each", cut_each, 0, UINT32_MAX),
	FIELD("lost", plan.net.lost_percent, 0, 100),
	FIELD("doubled", plan.net.doubled_percent, 0, 100),
	FIELD("delay_us", plan.net.mean_us, 0, UINT32_MAX),
	FIELD("nodes", plan.nodes, 1, WORLD_NODES),
	FIELD("keys", plan.keys, 1, WORLD_KEYS),
	FIELD("seats", plan.seats, 1, WORLD_SEATS),
	FIELD("shards", plan.shards, 1, 8),
	FIELD("strict", plan.strict, 0, UINT32_MAX),
	FIELD("node_keys", plan.node_keys, 0, 1000000),
	FIELD("offset_us", plan.offset_us, 0, UINT32_MAX),
	FIELD("rate_ppm", plan.rate_ppm, 0, 100000),
	FIELD("held", plan.held, 0, 1),
	FIELD("hot", plan.hot, 0, 1),
	FIELD("bursts", bursts, 0, 1),
	FIELD("edges", edges, 0, 1),
	FIELD("stays", stays, 0, SCRIPT_ASKS_MOST),
	FIELD("cost_most", cost_most, 1, UINT32_MAX),
	FIELD("limit", plan.rule.limit, 1, GALE_UNITS_MAX),
};
/* ---- All ------------------------------------------------------------------------- */

enum flag {
	BY_REDIS,
	CHANGES,
};

static struct station *redis;
static struct tally tally;

static void draw_one(const struct seeds *seeds, uint64_t seed, void *ret_plan)
{
	struct script *script = ret_plan;

	*script = draw(seed);
	if (seeds->given[CHANGES])
		draw_changes(seed, script);
}

static bool skips(const struct seeds *seeds, const void *plan)
{
	const struct script *script = plan;

	return (seeds->given[BY_REDIS] && !script->plan.fails) ||
	       (seeds->given[CHANGES] && script->change_each == 0);
}

/* A calm one is as simple as it gets. */
static bool shrinks(const void *plan)
{
	return !((const struct script *)plan)->calm;
}

static const char *play(const struct seeds *seeds, const void *plan,
                        const struct choice *choice, bool verbose, bool first,
                        uint64_t *ret_asks)
{
	struct script script = *(const struct script *)plan;

	(void)seeds;
	if (!script.plan.fails)
		script.fail_each = 0; /* its store is no server */
	script.plan.station = redis;
	return run_world(&script, choice, verbose, first ? &tally : NULL, ret_asks);
}

int main(int argc, char **argv)
{
	static struct seeds seeds = {
		.fields = fields,
		.field_count = sizeof(fields) / sizeof(fields[0]),
		.plan_bytes = sizeof(struct script),
		.flags = { [BY_REDIS] = "--redis", [CHANGES] = "--changes" },
		.draw = draw_one,
		.skips = skips,
		.play = play,
		.describe = describe,
		.shrinks = shrinks,
		.last = 999,
	};
	uint64_t failed;

	if (!seeds_read(&seeds, argc, argv))
		return 2;
	if (seeds.given[BY_REDIS])
		redis = redis_station_start();
	failed = seeds_play(&seeds);
	tell(&tally);
	if (redis)
		printf("%" PRIu64 " jobs by Redis\n", redis_station_stop());
	if (tally.asks == 0)
		fprintf(stderr, "nothing was asked\n");
	return failed > 0 || tally.asks == 0;
}
