/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* law.c -- counts by true time, window by window, meter by meter, place by place. */
#include "sim/law.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/force.h"
#include "sim/room.h"

void world_fault(struct world *world, const char *format, ...)
{
	va_list args;

	world->ended |= world->plan.ends == ENDS_AT_FAULT;
	if (world->fault[0])
		return;
	va_start(args, format);
	vsnprintf(world->fault, sizeof(world->fault), format, args);
	va_end(args);
}

static void note_over(struct world *world, uint64_t units)
{
	if (world->over_most < units)
		world->over_most = units;
	world->ended |= world->plan.ends == ENDS_AT_OVER;
}

/* Too much by so many parts, of which a unit has so many. */
static void note_over_parts(struct world *world, wide parts, uint64_t unit)
{
	note_over(world, (uint64_t)((parts + unit - 1) / unit));
}

static uint64_t elapsed_us(const struct world *world)
{
	return world->agenda.now_us - WORLD_START;
}

/* In the widest terms that the world's rules have, whichever is in force. */
static struct gale_rule widest(const struct world *world)
{
	return force_widest(&world->plan);
}

/* ---- Windows --------------------------------------------------------------------- */

bool law_is_budget(const struct gale_rule *rule)
{
	return rule->kind == GALE_RULE_TOKEN_BUDGET;
}

bool law_has_windows(const struct gale_rule *rule)
{
	return rule->kind == GALE_RULE_FIXED_WINDOW || rule->kind == GALE_RULE_QUOTA ||
	       law_is_budget(rule);
}

static uint64_t window_of(const struct world *world, uint64_t at_us)
{
	const struct gale_rule *rule = &world->plan.rule;
	uint64_t anchor = rule->kind == GALE_RULE_QUOTA ? rule->anchor_us : 0;

	return (at_us - anchor) / rule->period_us -
	       (WORLD_START - anchor) / rule->period_us;
}

static uint64_t window_begins(const struct world *world, uint64_t at_us)
{
	const struct gale_rule *rule = &world->plan.rule;
	uint64_t anchor = rule->kind == GALE_RULE_QUOTA ? rule->anchor_us : 0;

	return at_us - (at_us - anchor) % rule->period_us;
}

static uint64_t *window_at(struct key_law *law, size_t window)
{
	size_t windows = law->windows;

	while (windows <= window)
		windows = windows ? 2 * windows : 16;
	if (windows > law->windows) {
		law->used = room_for(law->used, windows * sizeof(*law->used));
		memset(law->used + law->windows, 0,
		       (windows - law->windows) * sizeof(*law->used));
		law->windows = windows;
	}
	return &law->used[window];
}

/* Units that were lent and not spent when this window began may be spent in it, too. */
static uint64_t carried_into(const struct world *world, struct key_law *law)
{
	uint64_t window = window_of(world, world->agenda.now_us);

	if (law->window != window)
		law->carried = law->lent - law->admitted;
	law->window = window;
	return law->carried;
}

/* A store that answers at once leaves no more than batch - 1 units with a node. */
static uint64_t window_bound(const struct world *world, struct key_law *law)
{
	const struct world_plan *plan = &world->plan;

	if (!plan->lease.carry_over)
		return force_limit(world, law,
		                   window_begins(world, world->agenda.now_us));
	if (plan->net.direct)
		return plan->rule.limit + plan->nodes * (plan->lease.batch - 1);
	return plan->rule.limit + carried_into(world, law);
}

/* It is not known which of the calls that were answered at one instant came last. */
static uint64_t dearest_of(struct key_law *law, size_t window, uint64_t cost)
{
	if (law->dearest_in != window)
		law->dearest = 0;
	law->dearest_in = window;
	if (law->dearest < cost)
		law->dearest = cost;
	return law->dearest;
}

static void check_window(struct world *world, const struct call *call) /* SIM-1 */
{
	size_t window = window_of(world, world->agenda.now_us);
	struct key_law *law = &world->laws[call->key];
	uint64_t *used = window_at(law, window);
	uint64_t bound = window_bound(world, law);

	*used += call->cost;
	/* One unit of a budget that is left is enough for any call. */
	if (law_is_budget(&world->plan.rule))
		bound += dearest_of(law, window, call->cost) - 1;
	if (*used <= bound)
		return;
	note_over(world, *used - bound);
	world_fault(world, "key %u window %zu: %" PRIu64 " admitted, bound %" PRIu64,
	            call->key, window, *used, bound);
}

/* ---- Meters ---------------------------------------------------------------------- */

/* The rules that nodes have, and the one that the key's state may be written under: that leaves
 * at its own rate until a node touches it. SIM-8 */
static unsigned in_force(const struct world *world, const struct key_law *law)
{
	return force_of_nodes(world) | law->last;
}

static void accrue(struct world *world, struct key_law *law)
{
	uint64_t now = elapsed_us(world);

	law->accrued +=
	    (wide)(now - law->accrued_us) * force_rate(world, in_force(world, law));
	law->accrued_us = now;
}

/* lent - t/T, in parts. */
static wide debt(const struct world *world, const struct key_law *law, uint64_t units)
{
	return (wide)units * force_unit(world) - law->accrued;
}

static bool is_alone(const struct world *world, const struct key_law *law)
{
	unsigned set = in_force(world, law);

	return set == FORCE_RULE || set == FORCE_NEXT;
}

static void note_least(struct world *world, struct key_law *law)
{
	wide now;

	accrue(world, law);
	now = debt(world, law, law->lent);
	if (now < law->least)
		law->least = now;
	if (now < law->alone || !is_alone(world, law))
		law->alone = now;
}

/* By how much admitted exceeds what may be, since lent was at its least. */
static wide over_of(const struct world *world, const struct key_law *law)
{
	wide admitted = debt(world, law, law->admitted);
	wide over = admitted - law->least - force_burst(world, FORCE_RULE | FORCE_NEXT);
	wide alone = admitted - law->alone - force_burst(world, in_force(world, law));

	return alone > over ? alone : over;
}

static void check_meter(struct world *world, const struct call *call) /* SIM-2 */
{
	struct key_law *law = &world->laws[call->key];
	wide over;

	note_least(world, law);
	over = over_of(world, law);
	if (over <= 0)
		return;
	note_over_parts(world, over, force_unit(world));
	world_fault(world, "key %u: %" PRIu64 " admitted, and that is too early",
	            call->key, law->admitted);
}

/* ---- Sliding rules --------------------------------------------------------------- */

bool law_slides(const struct gale_rule *rule)
{
	return rule->kind == GALE_RULE_SLIDING_WINDOW ||
	       rule->kind == GALE_RULE_SLIDING_LOG;
}

static void note_stamp(struct key_law *law, uint64_t at_us, uint64_t units)
{
	if (law->stamp_count == law->stamp_room) {
		law->stamp_room = law->stamp_room ? 2 * law->stamp_room : 64;
		law->stamps =
		    room_for(law->stamps, law->stamp_room * sizeof(*law->stamps));
	}
	law->stamps[law->stamp_count++] = (struct stamp){ at_us, units };
}

/* So long is counted in full. */
static uint64_t trailing_us(const struct gale_rule *rule)
{
	if (rule->kind == GALE_RULE_SLIDING_LOG)
		return rule->period_us;
	return rule->period_us - (rule->period_us + rule->buckets - 1) / rule->buckets;
}

static void check_sliding(struct world *world, const struct call *call) /* SIM-7 */
{
	struct key_law *law = &world->laws[call->key];
	uint64_t now = world->agenda.now_us, used = 0, limit;
	uint64_t since = now - trailing_us(&world->plan.rule);

	note_stamp(law, now, call->cost);
	for (size_t i = law->stamp_count; i > 0 && law->stamps[i - 1].at_us > since;
	     i--)
		used += law->stamps[i - 1].units;
	limit = force_limit(world, law, since);
	if (used <= limit)
		return;
	note_over(world, used - limit);
	world_fault(world,
	            "key %u: %" PRIu64 " admitted in %" PRIu64 " us, bound %" PRIu64,
	            call->key, used, now - since, limit);
}

/* ---- Pacers ---------------------------------------------------------------------- */

static bool is_booked(struct gale_slot slot)
{
	return slot.us > 0 || slot.part > 0;
}

/* A call with a place of the store's queue leaves then or later. SIM-3 */
static void check_place(struct world *world, const struct call *call)
{
	uint64_t leaves_ns = elapsed_us(world) * 1000 + call->answer.delay_ns;
	uint64_t drift_ns = world->lasts_most_us * world->plan.rate_ppm / 1000;
	uint64_t place_ns = (call->answer.slot.us - WORLD_START) * 1000;

	if (leaves_ns + drift_ns < place_ns)
		world_fault(world, "key %u: leaves %" PRIu64 " ns before its place",
		            call->key, place_ns - leaves_ns);
}

static void note_leave(struct world *world, const struct call *call)
{
	struct key_law *law = &world->laws[call->key];

	if (is_booked(call->answer.slot))
		check_place(world, call);

	if (law->leave_count == law->leave_room) {
		law->leave_room = law->leave_room ? 2 * law->leave_room : 64;
		law->leaves =
		    room_for(law->leaves, law->leave_room * sizeof(*law->leaves));
	}
	law->leaves[law->leave_count++] =
	    elapsed_us(world) * 1000 + call->answer.delay_ns;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Two roundings, the way of an answer, and what a clock may be wrong by while a block
 * lasts. */
static uint64_t leave_slack_ns(const struct world *world)
{
	uint64_t drift_ns = world->lasts_most_us * world->plan.rate_ppm / 1000;

	return 2 + world->net.late_most_us * 1000 + 2 * drift_ns;
}

/* The n-th after any other leaves (n - burst - 1) T later. SIM-3 */
static void check_leaves(struct world *world, struct key_law *law, uint32_t key)
{
	const struct gale_rule any = widest(world), *rule = &any;
	wide slack = (wide)leave_slack_ns(world) * rule->limit;
	wide most = 0;

	if (law->leave_count > 0)
		qsort(law->leaves, law->leave_count, sizeof(*law->leaves), by_size);
	for (size_t i = 0; i < law->leave_count; i++) {
		wide at = (wide)law->leaves[i] * rule->limit -
		          (wide)i * rule->period_us * 1000;
		wide room = (wide)rule->burst * rule->period_us * 1000;

		if (i > 0 && at + slack + room < most) {
			note_over_parts(world, most - at - slack - room,
			                rule->period_us * 1000);
			world_fault(world,
			            "key %u: call %zu leaves too early, at %" PRIu64
			            " ns",
			            key, i, law->leaves[i]);
		}
		if (i == 0 || at > most)
			most = at;
	}
}

/* ---- What a node has ------------------------------------------------------------- */

static uint64_t more_than(uint64_t units, uint64_t before)
{
	return units > before ? units - before : 0;
}

/* Units that were lent ahead of a window are the window's when it has begun. */
static void turn_pot(struct pot *pot, uint64_t now)
{
	if (pot->dies_us > now)
		return;
	if (pot->next_dies_us > now) {
		pot->units = pot->next;
		pot->dies_us = pot->next_dies_us;
	}
	pot->next = 0;
}

static void take_from_pot(struct world *world, const struct call *call) /* SIM-6 */
{
	struct pot *pot = &world->nodes[call->node].pots[call->key];
	uint64_t now = world->agenda.now_us;

	if (world->plan.lease.carry_over || world->plan.bad ||
	    is_booked(call->answer.slot))
		return;
	turn_pot(pot, now);
	if (pot->units < call->cost || pot->dies_us <= now)
		world_fault(world,
		            "node %u key %u: cost %" PRIu64 " from %" PRIu64
		            " units that died %" PRIu64 " us ago",
		            call->node, call->key, call->cost, pot->units,
		            now > pot->dies_us ? now - pot->dies_us : 0);
	else
		pot->units -= call->cost;
}

static void put_into_pot(struct world *world, struct pot *pot, uint64_t units,
                         uint64_t before, uint64_t dies_us)
{
	if (pot->dies_us <= world->agenda.now_us)
		pot->units = units;
	else
		pot->units += more_than(units, before);
	if (units > 0 && pot->dies_us < dies_us)
		pot->dies_us = dies_us;
}

/* Of this window, and of the next. */
static void put_ahead(const struct world *world, struct pot *pot, uint64_t units,
                      uint64_t ends_us)
{
	pot->units += units;
	pot->next += units;
	if (units > 0)
		pot->next_dies_us = ends_us + widest(world).period_us;
}

uint64_t law_life_ns(const struct gale_rule *rule)
{
	wide fill = (wide)(rule->burst + 1) * rule->period_us;
	wide fill_us = (fill + rule->limit - 1) / rule->limit;
	uint64_t least_us = GALE_MILLIS(1);

	if (rule->kind == GALE_RULE_PACER)
		return least_us * 1000;
	return (least_us + (uint64_t)fill_us) * 1000;
}

void law_arrives(struct world *world, struct pot *pot, const struct lend_answer *answer,
                 uint64_t dies_us)
{
	if (answer->number <= pot->number)
		return;
	pot->number = answer->number;
	if (world->plan.rule.kind != GALE_RULE_PACER || !is_booked(answer->grant.tag))
		put_into_pot(world, pot, answer->grant.units, /* before= */ 0, dies_us);
}

/* ---- What the store says --------------------------------------------------------- */

/* A refusal may have left the state as it was. */
static void touch(struct world *world, struct key_law *law, unsigned set, bool took)
{
	note_least(world, law);
	force_note(world, law, set);
	law->last = took ? set : law->last | set;
}

void law_changes(struct world *world)
{
	for (uint32_t i = 0; i < world->plan.keys; i++) {
		note_least(world, &world->laws[i]);
		force_note(world, &world->laws[i], force_of_nodes(world));
	}
}

void law_denied(struct world *world, const struct call *call)
{
	struct key_law *law = &world->laws[call->key];

	touch(world, law, force_of_node(&world->nodes[call->node]), /* took= */ false);
}

void law_note(struct world *world, uint32_t key, const struct rule *rule, bool took)
{
	struct key_law *law = &world->laws[key];

	touch(world, law, force_of_request(world, rule), took);
	if (law_has_windows(&world->plan.rule))
		(void)carried_into(world, law);
}

void law_lent(struct world *world, uint32_t key, struct pot *pot,
              const struct lend_answer *answer, uint64_t before)
{
	const struct lease_grant *grant = &answer->grant;
	struct key_law *law = &world->laws[key];

	if (world->lasts_most_us < grant->lasts_us)
		world->lasts_most_us = grant->lasts_us;
	if (pot && law_has_windows(&world->plan.rule)) {
		turn_pot(pot, world->agenda.now_us);
		put_into_pot(world, pot, grant->units, before,
		             world->agenda.now_us + grant->lasts_us);
		put_ahead(world, pot, grant->ahead,
		          world->agenda.now_us + grant->lasts_us);
	}
	law->lent += more_than(grant->units, before) + grant->ahead;
	world->leases += grant->units > 0;
	world->ahead += grant->ahead;
	note_least(world, law);
}

void law_given_back(struct world *world, uint32_t key, uint64_t units, uint64_t before)
{
	struct key_law *law = &world->laws[key];

	law->lent -= more_than(units, before);
	note_least(world, law);
}

/* ---- What is admitted ------------------------------------------------------------ */

/* Units that are lent, or a call's own if a store has decided. */
static void count_admitted(struct world *world, const struct call *call)
{
	struct key_law *law = &world->laws[call->key];

	note_least(world, law);
	if (law_has_windows(&world->plan.rule))
		(void)carried_into(world, law); /* before anything is taken */
	law->admitted += call->cost;
	if (call->answer.why == GALE_WHY_CREDIT)
		take_from_pot(world, call);
	else
		law->lent += call->cost;
	if (law_has_windows(&world->plan.rule))
		check_window(world, call);
	else if (law_slides(&world->plan.rule))
		check_sliding(world, call);
	else if (world->plan.rule.kind == GALE_RULE_PACER)
		note_leave(world, call);
	else
		check_meter(world, call);
}

void law_admit(struct world *world, const struct call *call)
{
	bool from_credit = call->answer.why == GALE_WHY_CREDIT;

	world->admissions++;
	if (from_credit)
		world->nodes[call->node].admitted += call->cost;
	if (!from_credit && !world->plan.fails)
		touch(world, &world->laws[call->key],
		      force_of_node(&world->nodes[call->node]), /* took= */ true);
	if (from_credit || !world->plan.fails)
		count_admitted(world, call);
}

void law_stepped(struct world *world, uint32_t key, const struct rule *rule,
                 uint64_t cost)
{
	struct call call = { .key = key, .cost = cost, .answer.why = GALE_WHY_RULE };

	law_note(world, key, rule, /* took= */ true);
	count_admitted(world, &call);
}

/* ---- In the end ------------------------------------------------------------------ */

void law_end(struct world *world)
{
	for (uint32_t i = 0; i < world->plan.keys; i++)
		if (world->plan.rule.kind == GALE_RULE_PACER)
			check_leaves(world, &world->laws[i], i);
}

void law_free(struct world *world)
{
	for (uint32_t i = 0; i < WORLD_KEYS; i++) {
		free(world->laws[i].used);
		free(world->laws[i].leaves);
		free(world->laws[i].stamps);
	}
}
