/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* force.c -- two rules, and when each was in force. */
#include "sim/force.h"

bool force_changes(const struct world *world)
{
	return world->plan.next.kind != GALE_RULE_NONE;
}

static const struct gale_rule *rule_at(const struct world *world, unsigned i)
{
	return i == 0 ? &world->plan.rule : &world->plan.next;
}

const struct gale_rule *force_rule_of(const struct node *node)
{
	return rule_at(node->world, node->changed);
}

unsigned force_of_node(const struct node *node)
{
	return 1u << node->changed;
}

static bool is_same(const struct gale_rule *a, const struct gale_rule *b)
{
	return a->limit == b->limit && a->burst == b->burst &&
	       a->period_us == b->period_us;
}

unsigned force_of_request(const struct world *world, const struct rule *rule)
{
	unsigned set = 0;

	for (unsigned i = 0; i < 2; i++)
		if (is_same(&rule->is, rule_at(world, i)))
			set |= 1u << i;
	return set;
}

unsigned force_of_nodes(const struct world *world)
{
	return (world->with[0] > 0 ? FORCE_RULE : 0) |
	       (world->with[1] > 0 ? FORCE_NEXT : 0);
}

void force_note(struct world *world, struct key_law *law, unsigned set)
{
	for (unsigned i = 0; i < 2; i++)
		if (set & 1u << i)
			law->in_force_us[i] = world->agenda.now_us;
}

uint64_t force_limit(const struct world *world, const struct key_law *law,
                     uint64_t since_us)
{
	uint64_t limit = 0;

	for (unsigned i = 0; i < 2; i++)
		if ((world->with[i] > 0 || law->in_force_us[i] >= since_us) &&
		    limit < rule_at(world, i)->limit)
			limit = rule_at(world, i)->limit;
	return limit;
}

uint64_t force_unit(const struct world *world)
{
	uint64_t period = world->plan.rule.period_us;

	return force_changes(world) ? period * world->plan.next.period_us : period;
}

wide force_burst(const struct world *world, unsigned set)
{
	uint64_t burst = 0;

	for (unsigned i = 0; i < 2; i++)
		if (set & 1u << i && burst < rule_at(world, i)->burst)
			burst = rule_at(world, i)->burst;
	return (wide)burst * force_unit(world);
}

wide force_rate(const struct world *world, unsigned set)
{
	wide rate = 0;

	for (unsigned i = 0; i < 2; i++) {
		const struct gale_rule *rule = rule_at(world, i);
		wide its;

		if (!(set & 1u << i))
			continue;
		its = (wide)rule->limit * (force_unit(world) / rule->period_us);
		if (rate < its)
			rate = its;
	}
	return rate;
}

static bool is_faster(const struct gale_rule *a, const struct gale_rule *b)
{
	return (wide)a->limit * b->period_us > (wide)b->limit * a->period_us;
}

struct gale_rule force_widest(const struct world_plan *plan)
{
	struct gale_rule widest = plan->rule;

	if (plan->next.kind == GALE_RULE_NONE)
		return widest;
	if (is_faster(&plan->next, &widest))
		widest = plan->next;
	if (widest.burst < plan->rule.burst)
		widest.burst = plan->rule.burst;
	if (widest.burst < plan->next.burst)
		widest.burst = plan->next.burst;
	return widest;
}
