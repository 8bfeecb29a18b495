/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* script.c -- one ask after the other, each with its own chance. */
#include "sim/script.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* ---- One ask --------------------------------------------------------------------- */

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
	if (script->fail_each && chance_one_in(&show->chance, script->copy_each))
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

/* A few keys have most of the demand, or all the same. */
static uint32_t draw_key(const struct script *script, struct chance *c)
{
	uint64_t keys = script->plan.keys;

	return (uint32_t)chance_below(c,
	                              script->even ? keys : chance_below(c, keys) + 1);
}

/* In calm worlds each node has its turn. */
static uint32_t draw_node(const struct script *script, struct chance *c, uint64_t ask)
{
	uint64_t nodes = script->plan.nodes;

	return (uint32_t)(script->calm ? ask % nodes : chance_below(c, nodes));
}

/* Of asks in a row that stay, whichever of them are made. */
static struct chance chance_of_row(const struct script *script, uint64_t ask)
{
	uint64_t row = ask / script->stays + 1;

	return (struct chance){ script->plan.seed ^
		                row * UINT64_C(0xd1342543de82ef95) };
}

static uint64_t weight_of(const struct script *script)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < script->cost_count; i++)
		weight += script->costs[i].weight;
	return weight;
}

static uint64_t draw_cost(struct show *show)
{
	const struct script *script = show->script;
	const struct cost *cost = script->costs;
	uint64_t at;

	if (script->cost_count == 0)
		return chance_between(&show->chance, 1, script->cost_most);
	at = chance_below(&show->chance, weight_of(script));
	for (; at >= cost->weight; cost++)
		at -= cost->weight;
	return cost->units;
}

/* Which rule a node is to have by now: it is its turn once, and with returns twice. */
static bool is_changed(const struct script *script, uint32_t node, uint64_t ask)
{
	uint64_t nodes = script->plan.nodes, turns;

	if (script->change_each == 0 || ask < script->change_from)
		return false;
	turns = (ask - script->change_from) / script->change_each;
	return turns >= node && !(script->returns && turns >= nodes + node);
}

/* A node that pauses is changed when it goes on. */
static void change(struct show *show, uint64_t ask)
{
	struct world *world = show->world;

	for (uint32_t i = 0; i < show->script->plan.nodes; i++)
		if (world->nodes[i].changed != is_changed(show->script, i, ask) &&
		    world->nodes[i].paused_us <= world->agenda.now_us)
			world_change(world, i, !world->nodes[i].changed);
}

static void ask_one(struct show *show, uint64_t i)
{
	const struct script *script = show->script;
	const struct world_plan *plan = &script->plan;
	bool stays = script->stays > 0;
	struct chance row = stays ? chance_of_row(script, i) : (struct chance){ 0 };
	struct chance *c = &show->chance, *who = stays ? &row : c;
	uint32_t node = draw_node(script, who, i);
	uint32_t key = draw_key(script, who);
	uint32_t seat = (uint32_t)chance_below(c, plan->seats);
	uint64_t cost = draw_cost(show);

	disturb(show, node);
	if (show->world->nodes[node].runtime && !has_faded(show, node)) {
		if (chance_one_in(c, 4) && !script->calm)
			world_ask_only(show->world, node, seat, key, cost,
			               chance_below(c, plan->rule.period_us / 50));
		else
			world_ask(show->world, node, seat, key, cost);
	}
}

/* ---- One after the other -------------------------------------------------------- */

/* A moment before or after the next window begins. */
static uint64_t next_edge(struct show *show)
{
	uint64_t period = show->script->plan.rule.period_us;
	uint64_t now = show->world->agenda.now_us;
	uint64_t edge = (now / period + 1) * period;
	uint64_t at = edge + chance_below(&show->chance, 400) - 200;

	return at > now ? at : now;
}

static uint64_t draw_gap(struct show *show)
{
	uint64_t gap = show->script->gap_us * (show->script->bursts ? 8 : 1);

	return chance_below(&show->chance, 2 * gap + 1);
}

/* A microsecond, as often as makes up for what is below one. */
static uint64_t draw_rest(struct show *show)
{
	uint64_t rest_ns = show->script->gap_ns * (show->script->bursts ? 8 : 1);

	if (rest_ns == 0)
		return 0;
	return rest_ns / 1000 + (chance_below(&show->chance, 1000) < rest_ns % 1000);
}

static uint64_t next_ask(struct show *show)
{
	const struct script *script = show->script;
	uint64_t now = show->world->agenda.now_us;
	struct chance *c = &show->chance;

	if (script->calm)
		return now + script->gap_us + draw_rest(show);
	if (script->bursts && !chance_one_in(c, 8))
		return now;
	if (script->edges && chance_one_in(c, 8))
		return next_edge(show);
	return now + draw_gap(show) + draw_rest(show);
}

static bool is_chosen(const struct show *show, uint64_t i)
{
	return !show->choice->some || (i < SCRIPT_ASKS_MOST && show->choice->at[i]);
}

/* Is there an ask of this number?  Then it is its time. */
static bool reach_ask(struct show *show, uint64_t i)
{
	const struct script *script = show->script;
	uint64_t at_us;

	if (i >= script->asks || show->world->ended)
		return false;
	show->chance.state = ~script->plan.seed ^ i * UINT64_C(0xd1342543de82ef95);
	at_us = next_ask(show);
	if (script->ends_us && at_us >= script->ends_us)
		return false;
	world_run(show->world, at_us);
	return true;
}

static uint64_t run_asks(struct show *show)
{
	uint64_t i;

	for (i = 0; reach_ask(show, i); i++) {
		change(show, i);
		if (is_chosen(show, i))
			ask_one(show, i);
	}
	return i;
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

uint64_t script_play(const struct script *script, const struct choice *choice,
                     struct world *world)
{
	struct show show = { script, choice, world, { 0 } };
	uint64_t asks;

	if (script->begins_us)
		world_run(world, script->begins_us);
	asks = run_asks(&show);
	run_on(&show);
	return asks;
}

/* ---- Which ----------------------------------------------------------------------- */

void choice_set(struct choice *choice, uint64_t from, uint64_t count, bool chosen)
{
	for (uint64_t i = from; i < from + count && i < SCRIPT_ASKS_MOST; i++)
		choice->at[i] = chosen;
}

bool number_read(const char **text, uint64_t *ret_number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(*text, &end, 10);
	*text = end;
	return errno == 0;
}

bool range_read(const char **text, uint64_t *ret_first, uint64_t *ret_last)
{
	if (!number_read(text, ret_first))
		return false;
	*ret_last = *ret_first;
	if (**text != '-')
		return true;
	++*text;
	return number_read(text, ret_last) && *ret_first <= *ret_last;
}

bool choice_read(struct choice *choice, const char *text)
{
	uint64_t first, last;

	choice->some = true;
	for (;; text++) {
		if (!range_read(&text, &first, &last) || last >= SCRIPT_ASKS_MOST)
			return false;
		choice_set(choice, first, last - first + 1, true);
		if (*text != ',')
			return *text == '\0';
	}
}

void choice_print(const struct choice *choice, uint64_t asks, FILE *out)
{
	const char *before = "";

	for (uint64_t i = 0, j; i < asks; i = j + 1) {
		for (j = i; j < asks && choice->at[j]; j++)
			;
		if (j == i)
			continue;
		fprintf(out, "%s%" PRIu64, before, i);
		if (j > i + 1)
			fprintf(out, "-%" PRIu64, j - 1);
		before = ",";
	}
}
