/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* fleet.c -- beats, and the clock of a store that is never wrong. */
#include "sim/fleet.h"

#include <string.h>

#define NEVER UINT64_MAX
#define LEG_LEAST_NS 500000
#define LEG_MOST_NS 3000000
#define ABORT_NS UINT64_C(500000000)

static const struct member_terms terms = {
	.beat_ns = FLEET_BEAT_NS,
	.eager_ns = FLEET_BEAT_NS / 10,
	.lease_us = FLEET_LEASE_US,
	.abort_ns = ABORT_NS,
	.hold_ns = FLEET_HOLD_US * UINT64_C(1000),
	.drift_ppm = 500,
	.weight = 1,
};

static struct fleet *fleet_of(struct queue *queue)
{
	return queue->fleet_state;
}

static struct group_settings settings_of(const struct queue *queue)
{
	bool sums = queue->plan->law == law_named("knee");
	uint32_t start = queue->plan->settings.start;

	return (struct group_settings){
		.law = sums ? GROUP_SUM : GROUP_MEDIAN,
		.parts = GROUP_BY_DEMAND,
		.start = start ? start : ESTIMATE_START_DEFAULT,
		.floor = 1,
		.ceiling = ESTIMATE_CEILING_DEFAULT,
		.lease_us = FLEET_LEASE_US,
		.hold_us = FLEET_HOLD_US,
		.rotate_us = 10 * FLEET_LEASE_US,
		.probe_us = sums ? FLEET_BEAT_NS / 1000 : 0,
	};
}

/* ---- The store ---------------------------------------------------------------------- */

static void evict(struct fleet *fleet, struct fleet_node *gone, uint32_t count)
{
	uint64_t position = gone->record.position;

	group_remove(&fleet->group, &fleet->estimates, &gone->record);
	gone->record = (struct group_member){ 0 };
	for (uint32_t i = 0; i < count; i++)
		if (fleet->nodes[i].record.incarnation != 0 &&
		    fleet->nodes[i].record.position == fleet->group.members)
			fleet->nodes[i].record.position = position;
}

/* The least of the others' last beats; 0: there is none. */
static uint64_t next_beat(const struct fleet *fleet, const struct fleet_node *self,
                          uint32_t count)
{
	uint64_t next = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct group_member *record = &fleet->nodes[i].record;

		if (&fleet->nodes[i] != self && record->incarnation != 0 &&
		    (next == 0 || record->beat < next))
			next = record->beat;
	}
	return next;
}

static void nudge_others(struct queue *queue, const struct fleet_node *self,
                         uint64_t now_ns)
{
	struct fleet *fleet = fleet_of(queue);
	struct group_nudge nudge = group_nudge(&fleet->group);

	for (uint32_t i = 0; i < queue->plan->nodes && nudge.whom != 0; i++) {
		struct fleet_node *node = &fleet->nodes[i];

		if (node == self)
			continue;
		node->nudge = nudge;
		node->nudged_ns =
		    now_ns + chance_between(&fleet->chance, LEG_LEAST_NS, LEG_MOST_NS);
	}
}

static void note_limit(struct fleet *fleet, uint64_t now_ns)
{
	uint64_t lease = now_ns / 1000 / FLEET_LEASE_US;

	if (fleet->lease != lease) {
		fleet->most_before = fleet->most;
		fleet->most = 0;
		fleet->lease = lease;
	}
	if (fleet->most < fleet->group.limit)
		fleet->most = fleet->group.limit;
}

static void at_store(struct queue *queue, struct fleet_node *node, uint64_t now_ns)
{
	struct fleet *fleet = fleet_of(queue);
	struct group_settings settings = settings_of(queue);
	uint32_t count = queue->plan->nodes;

	(void)group_begin(&fleet->group, &settings, &node->report, now_ns / 1000, 0);
	for (uint32_t i = 0; i < count; i++)
		if (&fleet->nodes[i] != node && fleet->nodes[i].record.incarnation &&
		    group_expired(&fleet->group, &fleet->nodes[i].record))
			evict(fleet, &fleet->nodes[i], count);
	node->grant = group_beat(&fleet->group, &fleet->estimates, &node->record,
	                         &node->report, next_beat(fleet, node, count));
	node->granted = fleet->group.parted;
	note_limit(fleet, now_ns);
	nudge_others(queue, node, now_ns);
}

/* ---- A node ------------------------------------------------------------------------- */

static struct member_facts facts_of(struct queue *queue, uint32_t i, uint64_t now_ns)
{
	struct fleet_node *node = &fleet_of(queue)->nodes[i];
	const struct queue_node *guard = &queue->nodes[i];
	const struct estimate *estimate = &guard->guard.shipped.estimate;

	want_note(&node->want, guard->in_flight, guard->refused != node->refused,
	          FLEET_BEAT_NS, (mono){ now_ns });
	return (struct member_facts){
		.in_flight = guard->in_flight,
		.demand = want_demand(&node->want),
		.limited = want_is_limited(&node->want),
		.estimate = estimate_told(estimate),
	};
}

static void send_report(struct queue *queue, uint32_t i, uint64_t now_ns)
{
	struct fleet_node *node = &fleet_of(queue)->nodes[i];
	struct queue_node *guard = &queue->nodes[i];
	const struct estimate *estimate = &guard->guard.shipped.estimate;
	struct member_facts facts = facts_of(queue, i, now_ns);

	queue->plan->law->look(&guard->guard, now_ns, guard->share);
	facts.busy = estimate_report(estimate).busy;
	node->refused = guard->refused;
	node->report = member_report(&node->member, (mono){ now_ns }, &facts);
}

static void hear_probe(struct queue *queue, uint32_t i, uint64_t now_ns)
{
	struct fleet *fleet = fleet_of(queue);
	struct fleet_node *node = &fleet->nodes[i];
	struct estimate *estimate = &queue->nodes[i].guard.shipped.estimate;
	uint64_t at = now_ns + node->grant.probe_us * 1000;

	if (node->grant.probe == 0 || node->grant.probe == node->probe ||
	    fleet->probes == FLEET_PROBES_ALONE)
		return;
	node->probe = node->grant.probe;
	if (fleet->probes == FLEET_PROBES_APART)
		at += i * FLEET_BEAT_NS / queue->plan->nodes;
	estimate_probe_told(estimate, node->probe, at, FLEET_BEAT_NS);
}

/* A slot more than by its old part of what there was: what does not divide moves by a slot. */
static bool has_moved(uint64_t from, uint64_t of, uint64_t to, uint64_t of_now)
{
	return (to - 1) * of > from * of_now;
}

static void put_in_force(struct queue *queue, uint32_t i, uint64_t now_ns)
{
	struct fleet *fleet = fleet_of(queue);
	struct fleet_node *node = &fleet->nodes[i];
	struct queue_node *guard = &queue->nodes[i];
	uint64_t limit = node->member.told.limit;
	uint32_t share = node->member.share;

	if (share > guard->share && now_ns >= fleet->settled_ns) {
		node->rises++;
		node->moves += has_moved(guard->share, node->limit, share, limit);
		node->takes +=
		    has_moved(guard->share, node->parted, share, node->granted);
	}
	if (share != guard->share) {
		node->limit = limit;
		node->parted = node->granted;
	}
	guard->share = share;
}

static void turn_node(struct queue *queue, uint32_t i, uint64_t now_ns)
{
	struct fleet *fleet = fleet_of(queue);
	struct fleet_node *node = &fleet->nodes[i];
	mono now = { now_ns };

	(void)member_turn(&node->member, now);
	if (node->leg == LEG_TO_NODE && node->arrives_ns <= now_ns) {
		node->leg = LEG_NONE;
		(void)member_hear(&node->member, now, node->report.seq, &node->grant);
		estimate_group_limit(&queue->nodes[i].guard.shipped.estimate,
		                     node->grant.limit);
		hear_probe(queue, i, now_ns);
	}
	put_in_force(queue, i, now_ns);
	if (node->nudge.whom != 0 && node->nudged_ns <= now_ns) {
		struct member_facts facts = facts_of(queue, i, now_ns);

		(void)member_nudged(&node->member, now, &facts, &node->nudge);
		node->nudge.whom = 0;
		put_in_force(queue, i, now_ns);
	}
	if (node->leg == LEG_NONE && member_wants_to_beat(&node->member, now)) {
		send_report(queue, i, now_ns);
		node->leg = LEG_TO_STORE;
		node->arrives_ns =
		    now_ns + chance_between(&fleet->chance, LEG_LEAST_NS, LEG_MOST_NS);
	}
}

static uint64_t next_of(const struct fleet_node *node)
{
	uint64_t due = member_due(&node->member).ns;

	if (node->nudge.whom != 0 && node->nudged_ns < due)
		due = node->nudged_ns;
	return node->leg != LEG_NONE && node->arrives_ns < due ? node->arrives_ns : due;
}

static void turn_fleet(struct queue *queue, uint64_t now_ns)
{
	struct fleet *fleet = fleet_of(queue);

	queue->fleet_at_ns = NEVER;
	for (uint32_t i = 0; i < queue->plan->nodes; i++) {
		struct fleet_node *node = &fleet->nodes[i];

		if (node->leg == LEG_TO_STORE && node->arrives_ns <= now_ns) {
			at_store(queue, node, now_ns);
			node->leg = LEG_TO_NODE;
			node->arrives_ns =
			    now_ns +
			    chance_between(&fleet->chance, LEG_LEAST_NS, LEG_MOST_NS);
		}
		if (next_of(node) <= now_ns)
			turn_node(queue, i, now_ns);
		if (next_of(node) < queue->fleet_at_ns)
			queue->fleet_at_ns =
			    next_of(node) > now_ns ? next_of(node) : now_ns + 1;
	}
}

static void open_fleet(struct queue *queue)
{
	struct fleet *fleet = fleet_of(queue);
	enum fleet_probes probes = fleet->probes;

	*fleet = (struct fleet){ .probes = probes,
		                 .settled_ns = queue->plan->ends_ns / 4,
		                 .chance = { queue->plan->seed } };
	for (uint32_t i = 0; i < queue->plan->nodes; i++) {
		uint64_t starts = i * FLEET_BEAT_NS / 100;

		member_init(&fleet->nodes[i].member, &terms, i + 1, (mono){ starts });
		queue->nodes[i].share = 0;
		if (probes != FLEET_PROBES_ALONE)
			estimate_probe_at(&queue->nodes[i].guard.shipped.estimate,
			                  NEVER, ESTIMATE_PROBE_NONE);
	}
	queue->fleet_at_ns = 0;
}

/* A share that could be larger is asked for early. */
static void note_refusal(struct queue *queue, uint32_t i, uint64_t now_ns)
{
	struct fleet *fleet = fleet_of(queue);
	struct member_facts facts = { .in_flight = queue->nodes[i].in_flight,
		                      .limited = true };

	member_notice(&fleet->nodes[i].member, &facts);
	if (next_of(&fleet->nodes[i]) < queue->fleet_at_ns)
		queue->fleet_at_ns = next_of(&fleet->nodes[i]) > now_ns
		                         ? next_of(&fleet->nodes[i])
		                         : now_ns + 1;
}

/* NODES-1 */
static void check_flight(struct queue *queue, uint32_t in_flight)
{
	struct fleet *fleet = fleet_of(queue);

	if (in_flight > fleet->most && in_flight > fleet->most_before)
		fleet->over++;
}

const struct queue_fleet fleet_of_nodes = {
	.open = open_fleet,
	.turn = turn_fleet,
	.refused = note_refusal,
	.admitted = check_flight,
};
