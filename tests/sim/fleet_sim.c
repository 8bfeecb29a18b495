/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet_sim.c -- worlds drawn by lot, each from its seed.
 *
 *     fleet_sim --seeds 0-999                 as many worlds
 *     fleet_sim --seeds 7-7 --verbose         one, and everything that happens in it
 *     fleet_sim --seeds 7-7 --set nodes=2 --only 3,17-20     one, made smaller
 *
 * A world that fails is made smaller as long as it fails: what was drawn for it is
 * replaced by something simpler (--set), and asks, with what befalls their nodes then, are
 * left out (--only says which are left).  The command that replays the rest is printed.
 *
 * Most worlds lease windows among a few nodes and have everything that can go wrong in
 * them; every tenth is calm, and in it each full window must be used to the last unit.
 * Others lease meters and pacers, or carry units over.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/world.h"
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
	uint32_t cut_each;
	uint32_t fail_each;    /* the store does; with plan.fails */
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
	return script;
}

/* ---- Running --------------------------------------------------------------------- */

#define ASKS_MOST 100000

/* Which asks are made. */
struct choice {
	bool some; /* those only; else all */
	bool at[ASKS_MOST];
};

struct show {
	const struct script *script;
	const struct choice *choice;
	struct world *world;
	struct chance chance; /* of this ask: what comes of it depends on no other */
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
	if (script->cut_each && chance_one_in(&show->chance, script->cut_each))
		world_cut(world, node,
		          world->agenda.now_us +
		              chance_between(&show->chance, 1, 2 * period));
	if (script->fail_each && chance_one_in(&show->chance, 20))
		world_replicate(world);
	if (script->fail_each && chance_one_in(&show->chance, script->fail_each))
		world_fail_over(world);
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

static bool is_chosen(const struct show *show, uint64_t i)
{
	return !show->choice->some || (i < ASKS_MOST && show->choice->at[i]);
}

static void run_asks(struct show *show)
{
	struct world *world = show->world;

	for (uint64_t i = 0; i < show->script->asks && !world->fault[0]; i++) {
		show->chance.state =
		    ~show->script->plan.seed ^ i * UINT64_C(0xd1342543de82ef95);
		world_run(world, next_ask(show));
		if (is_chosen(show, i))
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
	    doubled, crashes, pauses, cut, partitions, fail_overs, unanswered;
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
	tally->cut += world->net.cut;
	tally->partitions += world->partitions;
	tally->fail_overs += world->fail_overs;
	tally->unanswered += world->unanswered;
}

static void tell(const struct tally *tally)
{
	uint64_t faults = tally->lost + tally->doubled + tally->crashes +
	                  tally->pauses + tally->partitions + tally->cut +
	                  tally->fail_overs;

	printf("%" PRIu64 " worlds (%" PRIu64 " calm), %" PRIu64 " events, %" PRIu64
	       " faults\n%" PRIu64 " asks: %" PRIu64 " admitted, %" PRIu64
	       " denied, %" PRIu64 " by nodes that crashed\n%" PRIu64
	       " requests, %" PRIu64 " leases; %" PRIu64 " lost, %" PRIu64
	       " doubled, %" PRIu64 " crashes, %" PRIu64 " pauses, %" PRIu64
	       " partitions (%" PRIu64 " lost to them), %" PRIu64 " fail-overs\n",
	       tally->worlds, tally->calm, tally->events, faults, tally->asks,
	       tally->admitted, tally->denied, tally->unanswered, tally->requests,
	       tally->leases, tally->lost, tally->doubled, tally->crashes,
	       tally->pauses, tally->partitions, tally->cut, tally->fail_overs);
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

/* ---- One world ------------------------------------------------------------------- */

static struct world world;
static uint64_t seed_now; /* for who aborts */

/* What became of it; "" if nothing is wrong. */
static const char *run_world(const struct script *script, const struct choice *choice,
                             bool verbose, struct tally *tally)
{
	struct show show = { script, choice, &world, { 0 } };
	bool used_up, lawful;

	world_open(&world, &script->plan);
	world.verbose = verbose;
	run_asks(&show);
	run_on(&show);
	used_up = world.fault[0] || choice->some || is_used_up(&show);
	lawful = world_close(&world);
	if (tally)
		add(tally, script, &world);
	if (lawful)
		return used_up ? "" : "not all was used";
	return world.fault;
}

/* ---- Made simpler ---------------------------------------------------------------- */

#define SHRINK_RUNS 3000

/* What may be set; and how simple it can be. */
static const struct field {
	const char *name;
	size_t at;
	size_t size;
	uint64_t least, most;
} fields[] = {
#define FIELD(name, member, least, most)                                               \
	{                                                                              \
		name, offsetof(struct script, member),                                 \
		    sizeof(((struct script *)0)->member), least, most                  \
	}
	FIELD("asks", asks, 1, ASKS_MOST),
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
	FIELD("node_keys", plan.node_keys, 0, UINT32_MAX),
	FIELD("offset_us", plan.offset_us, 0, UINT32_MAX),
	FIELD("rate_ppm", plan.rate_ppm, 0, 500),
	FIELD("held", plan.held, 0, 1),
	FIELD("hot", plan.hot, 0, 1),
	FIELD("bursts", bursts, 0, 1),
	FIELD("edges", edges, 0, 1),
	FIELD("cost_most", cost_most, 1, UINT32_MAX),
	FIELD("limit", plan.rule.limit, 1, GALE_UNITS_MAX),
};
#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

static uint64_t get(const struct script *script, const struct field *field)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)script + field->at, field->size);
	return value;
}

static void set(struct script *script, const struct field *field, uint64_t value)
{
	memcpy((char *)script + field->at, &value, field->size);
}

static const struct field *field_named(const char *name, size_t len)
{
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (strlen(fields[i].name) == len &&
		    strncmp(fields[i].name, name, len) == 0)
			return &fields[i];
	return NULL;
}

struct shrinking {
	struct script script;
	struct choice choice;
	unsigned runs;
};

static bool still_fails(struct shrinking *it)
{
	return it->runs++ < SHRINK_RUNS &&
	       run_world(&it->script, &it->choice, /* verbose= */ false, NULL)[0];
}

static bool simplify_field(struct shrinking *it, const struct field *field,
                           uint64_t value)
{
	uint64_t was = get(&it->script, field);

	if (value >= was || value < field->least)
		return false;
	set(&it->script, field, value);
	if (still_fails(it))
		return true;
	set(&it->script, field, was);
	return false;
}

static bool simplify(struct shrinking *it)
{
	bool simpler = false;

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		const struct field *field = &fields[i];
		bool done = simplify_field(it, field, field->least);

		simpler |= done;
		while (!done && simplify_field(it, field, get(&it->script, field) / 2))
			simpler = true;
	}
	return simpler;
}

static void choose(struct choice *choice, uint64_t from, uint64_t count, bool chosen)
{
	for (uint64_t i = from; i < from + count && i < ASKS_MOST; i++)
		choice->at[i] = chosen;
}

/* Leaves out so many in a row, wherever that can be done. */
static bool leave_out(struct shrinking *it, uint64_t count)
{
	static struct choice before;
	bool fewer = false;

	for (uint64_t i = 0; i < it->script.asks; i += count) {
		bool any = false;

		for (uint64_t j = i; j < i + count && j < it->script.asks; j++)
			any |= it->choice.at[j];
		if (!any)
			continue;
		before = it->choice;
		choose(&it->choice, i, count, false);
		if (still_fails(it))
			fewer = true;
		else
			it->choice = before;
	}
	return fewer;
}

static void shrink(struct shrinking *it)
{
	bool smaller = true;

	if (it->script.asks >= ASKS_MOST)
		return;
	while (simplify(it))
		;
	it->choice.some = true;
	choose(&it->choice, 0, it->script.asks, true);
	while (smaller) {
		smaller = false;
		for (uint64_t count = it->script.asks / 2 + 1; count > 0; count /= 2)
			smaller |= leave_out(it, count);
		smaller |= simplify(it);
	}
}

static void print_choice(const struct script *script, const struct choice *choice)
{
	const char *before = " --only ";

	for (uint64_t i = 0, j; i < script->asks; i = j + 1) {
		for (j = i; j < script->asks && choice->at[j]; j++)
			;
		if (j == i)
			continue;
		printf("%s%" PRIu64, before, i);
		if (j > i + 1)
			printf("-%" PRIu64, j - 1);
		before = ",";
	}
}

static void print_replay(uint64_t seed, const struct script *script,
                         const struct choice *choice)
{
	struct script drawn = draw(seed);

	printf("replay: fleet_sim --seeds %" PRIu64 "-%" PRIu64, seed, seed);
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (get(script, &fields[i]) != get(&drawn, &fields[i]))
			printf(" --set %s=%" PRIu64, fields[i].name,
			       get(script, &fields[i]));
	if (choice->some)
		print_choice(script, choice);
	printf(" --verbose\n");
}

/* ---- Seeds ----------------------------------------------------------------------- */

struct options {
	uint64_t first, last;
	bool verbose;
	bool shrinks;
	struct {
		const struct field *field;
		uint64_t value;
	} sets[FIELD_COUNT];
	size_t set_count;
	struct choice choice;
};

static struct script script_of(uint64_t seed, const struct options *options)
{
	struct script script = draw(seed);

	for (size_t i = 0; i < options->set_count; i++)
		set(&script, options->sets[i].field, options->sets[i].value);
	return script;
}

static void tell_failure(uint64_t seed, const struct options *options, const char *what)
{
	static struct shrinking it;

	printf("seed %" PRIu64 ": %s\n", seed, what);
	it.script = script_of(seed, options);
	it.choice = options->choice;
	it.runs = 0;
	describe(&it.script);
	if (options->shrinks && !it.script.calm && !options->choice.some) {
		shrink(&it);
		printf("after %u runs: %s\n", it.runs,
		       run_world(&it.script, &it.choice, /* verbose= */ false, NULL));
		describe(&it.script);
	}
	print_replay(seed, &it.script, &it.choice);
}

static bool run_seed(uint64_t seed, const struct options *options, struct tally *tally)
{
	struct script script = script_of(seed, options);
	const char *what;

	seed_now = seed;
	if (options->verbose)
		describe(&script);
	what = run_world(&script, &options->choice, options->verbose, tally);
	if (what[0])
		tell_failure(seed, options, what);
	return !what[0];
}

static void aborted(int number)
{
	char text[80];
	int len =
	    snprintf(text, sizeof(text),
	             "aborted; replay: --seeds %" PRIu64 "-%" PRIu64 " --verbose\n",
	             seed_now, seed_now);

	(void)number;
	if (write(STDOUT_FILENO, text, (size_t)len) < 0)
		return;
}

/* ---- Arguments ------------------------------------------------------------------- */

static bool parse_seeds(const char *text, struct options *options)
{
	char rest;

	return sscanf(text, "%" SCNu64 "-%" SCNu64 "%c", &options->first,
	              &options->last, &rest) == 2 &&
	       options->first <= options->last;
}

static bool parse_set(const char *text, struct options *options)
{
	size_t len = strcspn(text, "=");
	const struct field *field = field_named(text, len);
	uint64_t value;
	char rest;

	if (!field || options->set_count == FIELD_COUNT ||
	    sscanf(text + len, "=%" SCNu64 "%c", &value, &rest) != 1 ||
	    value < field->least || value > field->most)
		return false;
	options->sets[options->set_count].field = field;
	options->sets[options->set_count++].value = value;
	return true;
}

static bool parse_only(const char *text, struct options *options)
{
	uint64_t from, to;
	int len, more;

	options->choice.some = true;
	for (;; text++) {
		if (sscanf(text, "%" SCNu64 "%n", &from, &len) != 1)
			return false;
		to = from;
		if (sscanf(text + len, "-%" SCNu64 "%n", &to, &more) == 1)
			len += more;
		if (to < from || to >= ASKS_MOST)
			return false;
		choose(&options->choice, from, to - from + 1, true);
		text += len;
		if (*text != ',')
			return *text == '\0';
	}
}

/* Returns what is wrong, or NULL. */
static const char *parse(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--verbose") == 0) {
			options->verbose = true;
			continue;
		}
		i++;
		if (strcmp(argv[i - 1], "--seeds") == 0) {
			if (!parse_seeds(value, options))
				return "--seeds FROM-TO: two numbers, the first not "
				       "above the second";
		} else if (strcmp(argv[i - 1], "--set") == 0) {
			if (!parse_set(value, options))
				return "--set NAME=NUMBER: no such name, or too small "
				       "or large a number";
		} else if (strcmp(argv[i - 1], "--only") == 0) {
			if (!parse_only(value, options))
				return "--only 3,17-20: numbers of asks, below 100000";
		} else {
			return "usage: fleet_sim [--seeds FROM-TO] [--set NAME=NUMBER] "
			       "[--only LIST] [--verbose]";
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct options options = { .last = 999, .shrinks = true };
	const char *wrong = parse(argc, argv, &options);
	struct tally tally = { 0 };
	uint64_t failed = 0;

	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		return 2;
	}
	(void)signal(SIGABRT, aborted);
	options.shrinks = !options.verbose;
	for (uint64_t i = 0; i <= options.last - options.first && failed < 10; i++)
		failed += !run_seed(options.first + i, &options, &tally);
	tell(&tally);
	if (tally.asks == 0)
		fprintf(stderr, "nothing was asked\n");
	return failed > 0 || tally.asks == 0;
}
