/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* ward_script.c -- one step after the other, and then peace. */
#include "sim/ward_script.h"

#include <inttypes.h>

#include "sim/must.h"

struct show {
	const struct ward_script *script;
	const struct choice *choice;
	struct ward *ward;
	struct chance chance; /* of this step: what comes of it depends on no other */
	uint64_t settled_us;  /* the store forgets nothing until then */
};

static uint64_t lease_of(const struct show *show)
{
	return show->script->plan.lease_us;
}

static bool draws(struct show *show, uint32_t each)
{
	return each > 0 && chance_one_in(&show->chance, each);
}

static uint64_t later(struct show *show, uint64_t most_us)
{
	return show->ward->agenda.now_us + chance_between(&show->chance, 1, most_us);
}

/* ---- Faults ---------------------------------------------------------------------- */

static uint64_t draw_jump(struct show *show)
{
	const uint64_t most[] = { lease_of(show), GALE_SECONDS(10), GALE_HOURS(2) };

	return chance_between(&show->chance, 1, most[chance_below(&show->chance, 3)]);
}

static void disturb_store(struct show *show)
{
	const struct ward_script *script = show->script;
	struct ward *ward = show->ward;
	bool fails = draws(show, script->fail_each);
	bool flushes = draws(show, script->flush_each);
	bool back = draws(show, script->back_each);
	bool forward = draws(show, script->forward_each);
	uint64_t by_us = draw_jump(show);

	if (draws(show, script->copy_each))
		ward_replicate(ward);
	if (back)
		ward_set_back(ward, by_us);
	else if (forward)
		ward_set_forward(ward, by_us);
	if (ward->agenda.now_us < show->settled_us || !(fails || flushes))
		return;
	show->settled_us = ward->agenda.now_us + 2 * lease_of(show);
	if (fails)
		ward_fail_over(ward);
	else
		ward_flush(ward);
}

/* Any numbers, to one group or to all. */
static void forge(struct show *show)
{
	struct chance *c = &show->chance;
	char name[WARD_NAME_BYTES];
	uint32_t len =
	    ward_name((uint32_t)chance_below(c, show->script->plan.groups), name);
	struct store_nudge nudge = {
		.mark = store_mark((const uint8_t *)name, len),
		.bits = chance_one_in(c, 2) ? UINT64_MAX : chance_below(c, 4),
		.is = { .whom = chance_below(c, (GROUP_GIVE | GROUP_TAKE) + 1),
		        .slots = chance_size(c, GROUP_SLOTS_MAX),
		        .weights = chance_size(c, UINT64_C(1) << 30) },
	};

	ward_nudge(show->ward, &nudge);
}

static void reopen(struct show *show, uint32_t node)
{
	uint32_t group =
	    (uint32_t)chance_below(&show->chance, show->script->plan.groups);

	if (show->ward->nodes[node].guards[group])
		ward_close_guard(show->ward, node, group);
	else
		ward_open_guard(show->ward, node, group);
}

static void disturb_life(struct show *show, uint32_t number)
{
	const struct ward_script *script = show->script;
	struct ward_node *node = &show->ward->nodes[number];
	bool crashes = draws(show, script->crash_each);
	bool shuts = draws(show, script->shut_each);
	bool starts = chance_one_in(&show->chance, 4);

	if (!node->runtime && starts)
		ward_start(show->ward, number);
	else if (node->runtime && crashes)
		ward_crash(show->ward, number);
	else if (ward_is_up(node) && node->held_us <= show->ward->agenda.now_us &&
	         shuts)
		ward_shut(show->ward, number);
}

static void disturb_node(struct show *show, uint32_t number)
{
	const struct ward_script *script = show->script;
	struct ward *ward = show->ward;
	bool stops = draws(show, script->stop_each);
	bool holds = draws(show, script->hold_each);
	bool reopens = draws(show, script->reopen_each);
	uint64_t until_us =
	    later(show, chance_one_in(&show->chance, 2) ? lease_of(show) / 2
	                                                : 3 * lease_of(show));

	disturb_life(show, number);
	if (draws(show, script->cut_each))
		ward_cut(ward, number, until_us);
	if (!ward_is_up(&ward->nodes[number]) || ward->ended)
		return;
	if (reopens)
		reopen(show, number);
	if (holds)
		ward_hold(ward, number, until_us);
	if (stops)
		ward_stop(ward, number, later(show, 2 * lease_of(show)));
}

/* ---- Calls ----------------------------------------------------------------------- */

static uint64_t draw_time(struct show *show)
{
	if (draws(show, show->script->long_each))
		return chance_between(&show->chance, 1, 4 * lease_of(show));
	return chance_between(&show->chance, 1, lease_of(show) / 8);
}

static void call(struct show *show, uint32_t node)
{
	struct chance *c = &show->chance;
	const struct ward_script *script = show->script;
	uint64_t count = chance_between(c, 1, script->calls_most);
	uint32_t group = (uint32_t)chance_below(c, script->plan.groups);

	for (uint64_t i = 0; i < count && !show->ward->ended; i++) {
		uint32_t seat = (uint32_t)chance_below(c, script->plan.seats);
		uint32_t slots =
		    chance_one_in(c, 3)
			? (uint32_t)chance_between(c, 1, script->slots_most)
			: 1;
		enum gale_class of_class =
		    script->sheds && chance_one_in(c, 3) ? GALE_SHEDDABLE : GALE_NORMAL;
		uint64_t takes_us = draw_time(show);

		(void)ward_enter(show->ward, node, seat, group, slots, of_class,
		                 takes_us);
	}
}

/* ---- Steps ----------------------------------------------------------------------- */

static bool is_chosen(const struct show *show, uint64_t i)
{
	return !show->choice->some || (i < SCRIPT_ASKS_MOST && show->choice->at[i]);
}

static bool reach_step(struct show *show, uint64_t i)
{
	if (i >= show->script->steps || show->ward->ended)
		return false;
	show->chance.state =
	    ~show->script->plan.seed ^ i * UINT64_C(0xd1342543de82ef95);
	ward_run(show->ward, later(show, 2 * show->script->gap_us));
	return !show->ward->ended;
}

static void step(struct show *show)
{
	uint32_t node = (uint32_t)chance_below(&show->chance, show->script->plan.nodes);

	disturb_store(show);
	if (draws(show, show->script->forge_each))
		forge(show);
	disturb_node(show, node);
	if (!show->ward->ended)
		call(show, node);
}

/* ---- Peace ----------------------------------------------------------------------- */

static void run_for(struct show *show, uint64_t us)
{
	ward_run(show->ward, show->ward->agenda.now_us + us);
}

static uint64_t message_us(const struct show *show)
{
	return show->ward->net.terms.mean_us;
}

static void heal(struct show *show)
{
	struct ward *ward = show->ward;
	uint64_t most_us = lease_of(show) / 50;

	ward->net.terms.lost_percent = ward->net.terms.doubled_percent = 0;
	ward->net.terms.exact = true;
	if (ward->net.terms.mean_us > most_us)
		ward->net.terms.mean_us = most_us;
	run_for(show, 3 * lease_of(show));
	ward_end_calls(ward);
	for (uint32_t i = 0; i < ward->plan.nodes && !ward->ended; i++) {
		if (!ward->nodes[i].runtime)
			ward_start(ward, i);
		for (uint32_t j = 0; j < ward->plan.groups; j++)
			if (!ward->nodes[i].guards[j])
				ward_open_guard(ward, i, j);
	}
	ward_set_forward(ward, lease_of(show) + 1);
	/* Seats that are idle give back what they keep. */
	run_for(show, 5 * lease_of(show) + GALE_SECONDS(2));
}

/* One of two that have one name is not taken, nor is one of other settings. */
static bool may_be_refused(const struct ward *ward, uint32_t node, uint32_t group)
{
	return (ward->plan.twins && node < 2) || (ward->plan.disagrees && group == 0);
}

static bool is_in(const struct ward *ward, uint32_t node, uint32_t group)
{
	return ward->nodes[node].runtime && ward->nodes[node].guards[group] &&
	       ward_counts(ward->nodes[node].guards[group]).cut_off == 0;
}

static void check_rest(struct show *show, uint32_t group) /* SIM-11, SIM-13 */
{
	struct ward *ward = show->ward;
	const struct group *kept = ward_kept(ward, group);
	uint32_t in = 0;

	for (uint32_t i = 0; i < ward->plan.nodes; i++) {
		struct gale_guard_counts counts =
		    ward_counts(ward->nodes[i].guards[group]);

		in += is_in(ward, i, group);
		if (counts.in_flight > 0)
			ward_fault(ward,
			           "node %u group %u: %" PRIu64
			           " in flight, and all has ended",
			           i, group, counts.in_flight);
		if (counts.cut_off > 0 && !may_be_refused(ward, i, group))
			ward_fault(ward, "node %u group %u is cut off, and all is well",
			           i, group);
	}
	if (in == 0 || !kept || kept->members != in || kept->in_flight > 0)
		ward_fault(ward,
		           "group %u: the store has %" PRIu64 " members with %" PRIu64
		           " in flight, where %u are in with none",
		           group, kept ? kept->members : 0, kept ? kept->in_flight : 0,
		           in);
}

/* A guard that observes wants more, too, but does not take it. */
static uint64_t time_of_next(struct ward_guard *guard, uint64_t takes_us)
{
	return guard->observes && guard->open >= ward_counts(guard).limit ? 1
	                                                                  : takes_us;
}

static void fill_node(struct show *show, uint32_t node, uint32_t group,
                      uint64_t takes_us)
{
	const struct ward_plan *plan = &show->script->plan;
	struct ward_guard *guard = show->ward->nodes[node].guards[group];
	uint32_t seat = (uint32_t)chance_below(&show->chance, plan->seats);

	for (uint32_t i = 0; i <= plan->ceiling + group; i++) {
		uint64_t us = time_of_next(guard, takes_us);

		if (!ward_enter(show->ward, node, seat, group, 1, GALE_NORMAL, us) ||
		    us != takes_us)
			return;
	}
}

/* And what is for one that observes. */
static uint64_t in_flight_of(const struct ward *ward, uint32_t group)
{
	uint64_t slots = ward->groups[group].in_flight;

	for (uint32_t i = 0; i < ward->plan.nodes; i++) {
		struct ward_guard *guard = ward->nodes[i].guards[group];

		if (guard && guard->observes)
			slots += ward_counts(guard).share;
	}
	return slots;
}

static bool is_full(const struct show *show, uint32_t group)
{
	return in_flight_of(show->ward, group) >= show->ward->plan.ceiling + group;
}

/* Nodes have all that they are given at this time, and nothing is reserved for another.  Parts of
 * different weights come to less than the limit at times: what is left is given out in turn. */
static bool is_parted(const struct show *show, uint32_t group)
{
	const struct group *kept = ward_kept(show->ward, group);

	return show->script->plan.weight_most > 1 && kept->lacking == 0 &&
	       kept->reserved == in_flight_of(show->ward, group);
}

/* Tries again and again, for so long at most. */
static bool fill(struct show *show, uint32_t group, uint64_t within_us,
                 bool (*is_done)(const struct show *show, uint32_t group))
{
	struct ward *ward = show->ward;
	uint64_t until_us = ward->agenda.now_us + within_us;

	for (;;) {
		for (uint32_t i = 0; i < ward->plan.nodes; i++)
			if (ward_is_up(&ward->nodes[i]))
				fill_node(show, i, group, 100 * lease_of(show));
		if (is_full(show, group) || is_done(show, group) || ward->ended)
			return true;
		if (ward->agenda.now_us >= until_us)
			return false;
		run_for(show, lease_of(show) / 100 + 1);
	}
}

static void check_fill(struct show *show, uint32_t group, uint64_t within_us,
                       bool (*is_done)(const struct show *show, uint32_t group),
                       const char *what) /* SIM-13 */
{
	uint64_t limit = show->ward->plan.ceiling + group;

	if (!fill(show, group, within_us, is_done))
		ward_fault(show->ward,
		           "group %u: %" PRIu64 " of %" PRIu64 " in flight %" PRIu64
		           " us after %s",
		           group, in_flight_of(show->ward, group), limit, within_us,
		           what);
}

/* The node has slots, and another one is in. */
static bool can_die(const struct ward *ward, uint32_t node, uint32_t group)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < ward->plan.nodes; i++)
		others += i != node && is_in(ward, i, group);
	return others > 0 && is_in(ward, node, group) &&
	       ward->nodes[node].guards[group]->open > 0;
}

static void die(struct show *show, uint32_t group)
{
	struct ward *ward = show->ward;
	uint64_t lease_us = lease_of(show);
	uint32_t node = (uint32_t)chance_below(&show->chance, ward->plan.nodes);

	if (ward->ended || !can_die(ward, node, group))
		return;
	ward_crash(ward, node);
	/* A report may be under way, the next one too, and then it is tried each hundredth. */
	check_fill(show, group,
	           lease_us + lease_us / 10 + 3 * message_us(show) + lease_us / 50,
	           is_parted, "a node has died");
	check_fill(show, group, 12 * lease_us, is_full,
	           "a node's slots were given out");
}

static void close_all(struct show *show) /* SIM-14 */
{
	struct ward *ward = show->ward;

	ward_end_calls(ward);
	run_for(show, 3 * lease_of(show));
	for (uint32_t i = 0; i < ward->plan.nodes && !ward->ended; i++) {
		if (!ward->nodes[i].runtime)
			continue;
		if (chance_one_in(&show->chance, 2)) {
			ward_shut(ward, i);
			continue;
		}
		for (uint32_t j = 0; j < ward->plan.groups; j++)
			ward_close_guard(ward, i, j);
	}
	run_for(show, 2 * ward->plan.beat_us + 4 * message_us(show));
	for (uint32_t j = 0; j < ward->plan.groups && !ward->ended; j++)
		if (ward_kept(ward, j)->members > 0)
			ward_fault(
			    ward, "group %u has %" PRIu64 " members, and all have left",
			    j, ward_kept(ward, j)->members);
}

static bool is_plain(const struct ward *ward, uint32_t group)
{
	return group > 0 || (ward->plan.law == GALE_FIXED && !ward->plan.disagrees);
}

static void be_in_peace(struct show *show)
{
	struct ward *ward = show->ward;
	uint32_t group;

	show->chance.state = ~show->script->plan.seed + 1;
	heal(show);
	for (group = 0; group < ward->plan.groups && !ward->ended; group++)
		check_rest(show, group);
	for (group = 0; group < ward->plan.groups && !ward->ended; group++)
		if (is_plain(ward, group))
			check_fill(show, group, 12 * lease_of(show), is_full,
			           "all is well");
	group = (uint32_t)chance_below(&show->chance, ward->plan.groups);
	if (is_plain(ward, group))
		die(show, group);
	if (!ward->ended)
		close_all(show);
}

uint64_t ward_script_play(const struct ward_script *script, const struct choice *choice,
                          struct ward *ward)
{
	struct show show = { script, choice, ward, { 0 }, 0 };
	uint64_t i;

	for (i = 0; reach_step(&show, i); i++)
		if (is_chosen(&show, i))
			step(&show);
	if (!ward->ended)
		be_in_peace(&show);
	return i;
}
