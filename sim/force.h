/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * force.h -- which rules are in force in a world whose nodes are given another one.
 *
 * A rule is in force as long as a node has it, and whenever the store serves a request
 * that a node made when it had it.  A world has at most two rules, so a set of them is two
 * bits: bit 0 is plan.rule, bit 1 is plan.next.
 *
 * Threads   The simulator's.
 */
#ifndef SIM_FORCE_H
#define SIM_FORCE_H

#include "engine/rule.h"
#include "sim/world.h"

#define FORCE_RULE 1u
#define FORCE_NEXT 2u

/* Is there another rule at all? */
bool force_changes(const struct world *world);

/* The rule that a node has, and the set of it alone. */
const struct gale_rule *force_rule_of(const struct node *node);
unsigned force_of_node(const struct node *node);

/* The set of the rule of a request, and of all that nodes have. */
unsigned force_of_request(const struct world *world, const struct rule *rule);
unsigned force_of_nodes(const struct world *world);

/* These are in force for the key now. */
void force_note(struct world *world, struct key_law *law, unsigned set);

/* Of those that were in force since then: the largest limit. */
uint64_t force_limit(const struct world *world, const struct key_law *law,
                     uint64_t since_us);

/* A unit has so many parts; the largest burst of a set in parts, and the fastest rate of a
 * set in parts for each microsecond. */
uint64_t force_unit(const struct world *world);
wide force_burst(const struct world *world, unsigned set);
wide force_rate(const struct world *world, unsigned set);

/* A rule with the fastest rate, the largest burst and the largest limit of the world's. */
struct gale_rule force_widest(const struct world_plan *plan);

#endif
