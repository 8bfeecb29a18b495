/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet_sim.c -- worlds drawn by lot, each from its seed.
 *
 *     fleet_sim --seeds 0-999             as many worlds
 *     fleet_sim --seeds 7-7 --verbose     one, and everything that happens in it
 *
 * Most worlds lease windows among a few nodes and have everything that can go wrong in
 * them; every tenth is calm, and in it each full window must be used to the last unit.
 * Others lease meters and pacers, or carry units over.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"
#include "tests/support/must.h"

/* ---- Drawing --------------------------------------------------------------------- */

/* What the world itself does not need to know. */
struct script {
	struct world_plan plan;
	uint64_t asks;
	uint64_t gap_us; /* mean time between two asks */
	uint64_t cost_most;
	uint32_t crash_each; /* asks; 0: never */
	uint32_t pause_each;
	bool bursts;           /* many at the same instant */
	bool edges;            /* many close to where windows turn */
	bool calm;             /* steady demand, no faults */
	uint64_t calm_windows; /* of demand */
	bool fades;            /* the first node's demand ends early in each window */
};

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
	script->plan.rate_ppm = chance_one_in(c, 4) ? 0 : 400;
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
	struct world_plan *plan = &script->plan;
	uint64_t limit = chance_between(c, 1, 40);
	uint64_t window = GALE_MILLIS(chance_between(c, 100, 2000));

	plan->rule = gale_fixed_window(limit, window);
	plan->nodes = (uint32_t)chance_between(c, 1, 4);
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
	return script;
}

/* ---- Running --------------------------------------------------------------------- */

struct show {
	const struct script *script;
	struct world *world;
	struct chance chance; /* apart from the world's, so that demand is the same */
};

static void crash_or_start(struct show *show, uint32_t node)
{
	struct world *world = show->world;

	if (!world->nodes[node].runtime)
		world_start(world, node);
	else if (chance_one_in(&show->chance, 3))
		world_shut(world, node);
	else
		world_crash(world, node);
}

static void disturb(struct show *show, uint32_t node)
{
	const struct script *script = show->script;
	uint64_t period = script->plan.rule.period_us;
	struct world *world = show->world;

	if (script->crash_each && (!world->nodes[node].runtime ||
	                           chance_one_in(&show->chance, script->crash_each)))
		crash_or_start(show, node);
	if (world->nodes[node].runtime && script->pause_each &&
	    chance_one_in(&show->chance, script->pause_each))
		world_pause(world, node,
		            world->agenda.now_us +
		                chance_between(&show->chance, 1, 2 * period));
}

/* Whatever the first node still has then, it has to give back in time. */
static bool has_faded(const struct show *show, uint32_t node)
{
	uint64_t period = show->script->plan.rule.period_us;

	return show->script->fades && node == 0 &&
	       show->world->agenda.now_us % period > period * 2 / 5;
}

/* In calm worlds each node has its turn; else a few keys have most of the demand. */
static void ask_one(struct show *show, uint64_t i)
{
	const struct world_plan *plan = &show->script->plan;
	struct chance *c = &show->chance;
	uint32_t node = show->script->calm ? (uint32_t)(i % plan->nodes)
	                                   : (uint32_t)chance_below(c, plan->nodes);
	uint32_t key = (uint32_t)chance_below(c, chance_below(c, plan->keys) + 1);
	uint32_t seat = (uint32_t)chance_below(c, plan->seats);
	uint64_t cost = chance_between(c, 1, show->script->cost_most);

	disturb(show, node);
	if (show->world->nodes[node].runtime && !has_faded(show, node)) {
		if (chance_one_in(c, 4) && !show->script->calm)
			world_ask_only(show->world, node, seat, key, cost,
			               chance_below(c, plan->rule.period_us / 50));
		else
			world_ask(show->world, node, seat, key, cost);
	}
}

/* A moment before or after the next window begins. */
static uint64_t next_edge(struct show *show)
{
	uint64_t period = show->script->plan.rule.period_us;
	uint64_t now = show->world->agenda.now_us;
	uint64_t edge = (now / period + 1) * period;
	uint64_t at = edge + chance_below(&show->chance, 400) - 200;

	return at > now ? at : now;
}

static uint64_t next_ask(struct show *show)
{
	const struct script *script = show->script;
	uint64_t now = show->world->agenda.now_us;
	struct chance *c = &show->chance;

	if (script->calm)
		return now + script->gap_us;
	if (script->bursts && !chance_one_in(c, 8))
		return now;
	if (script->edges && chance_one_in(c, 8))
		return next_edge(show);
	return now + chance_below(c, 2 * script->gap_us * (script->bursts ? 8 : 1) + 1);
}

static void run_asks(struct show *show)
{
	struct world *world = show->world;

	for (uint64_t i = 0; i < show->script->asks && !world->fault[0]; i++) {
		world_run(world, next_ask(show));
		ask_one(show, i);
	}
}

static void run_on(struct show *show)
{
	const struct world_plan *plan = &show->script->plan;
	uint64_t patience =
	    plan->lease.patience_us ? plan->lease.patience_us : GALE_MILLIS(100);
	uint64_t now = show->world->agenda.now_us;

	for (uint32_t i = 0; i < plan->nodes; i++)
		if (show->world->nodes[i].runtime)
			world_turns(show->world, i);
	world_run(show->world, now + 2 * patience + 3 * plan->rule.period_us);
}

/* The first window is half over when the world begins. */
static bool is_used_up(struct show *show)
{
	const struct script *script = show->script;

	for (size_t i = 1; script->calm && i < script->calm_windows; i++) {
		uint64_t used = world_used(show->world, 0, i);

		if (used == script->plan.rule.limit)
			continue;
		printf("window %zu: %" PRIu64 " of %" PRIu64 " were used\n", i, used,
		       script->plan.rule.limit);
		return false;
	}
	return true;
}

/* ---- Telling --------------------------------------------------------------------- */

struct tally {
	uint64_t worlds, calm, events, asks, admitted, denied, requests, leases, lost,
	    doubled, crashes, pauses, unanswered;
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
	tally->lost += world->net.lost;
	tally->doubled += world->net.doubled;
	tally->crashes += world->crashes;
	tally->pauses += world->pauses;
	tally->unanswered += world->unanswered;
}

static void tell(const struct tally *tally)
{
	printf("%" PRIu64 " worlds (%" PRIu64 " calm), %" PRIu64 " events\n"
	       "%" PRIu64 " asks: %" PRIu64 " admitted, %" PRIu64 " denied, %" PRIu64
	       " by nodes that crashed\n"
	       "%" PRIu64 " requests, %" PRIu64 " leases, %" PRIu64 " lost, %" PRIu64
	       " doubled, %" PRIu64 " crashes, %" PRIu64 " pauses\n",
	       tally->worlds, tally->calm, tally->events, tally->asks, tally->admitted,
	       tally->denied, tally->unanswered, tally->requests, tally->leases,
	       tally->lost, tally->doubled, tally->crashes, tally->pauses);
}

static void describe(const struct script *script)
{
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
}

static bool run_seed(uint64_t seed, bool verbose, struct tally *tally)
{
	static struct world world;
	struct script script = draw(seed);
	struct show show = { &script, &world, { ~seed } };
	bool used_up, lawful;

	if (verbose)
		describe(&script);
	world_open(&world, &script.plan);
	world.verbose = verbose;
	run_asks(&show);
	run_on(&show);
	used_up = world.fault[0] || is_used_up(&show);
	lawful = world_close(&world);
	add(tally, &script, &world);
	if (lawful && used_up)
		return true;
	printf("seed %" PRIu64 ": %s\n", seed,
	       lawful ? "not all was used" : world.fault);
	describe(&script);
	printf("replay: fleet_sim --seeds %" PRIu64 "-%" PRIu64 " --verbose\n", seed,
	       seed);
	return false;
}

int main(int argc, char **argv)
{
	uint64_t first = 0, last = 999, failed = 0;
	struct tally tally = { 0 };
	bool verbose = argc > 3 && strcmp(argv[3], "--verbose") == 0;

	if (argc > 1 && (argc < 3 || strcmp(argv[1], "--seeds") != 0 ||
	                 sscanf(argv[2], "%" SCNu64 "-%" SCNu64, &first, &last) != 2)) {
		fprintf(stderr, "usage: %s [--seeds FROM-TO [--verbose]]\n", argv[0]);
		return 2;
	}
	for (uint64_t seed = first; seed <= last && failed < 10; seed++)
		failed += !run_seed(seed, verbose, &tally);
	tell(&tally);
	return failed == 0 ? 0 : 1;
}
