/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * joiner_test.c -- how soon a node that joins a busy fleet has its part of the slots.
 *
 * Real members (engine/member.h) beat at a real group (stores/groups.h) in virtual time, and nudges
 * reach all of them.  A message takes half of a round trip.  All nodes want more than they get,
 * and keep their slots full.  A node that must lower its share is down to it after the drain.
 *
 *     joiner     report ... answer |                                        report ... has its part
 *     the store            nudge ...                        report, nudge ...
 *     the others                   | lower ... drain ... report
 *                                  |<-      the drain, and two round trips       ->|
 *
 * The ramp is counted from the first answer, with which the joiner is a member.  A member that is nudged
 * while a report of its own is under way reports again when that is answered: the rest of that report's
 * trip is the only time that comes on top.
 */
#include "engine/member.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/memory.h"
#include "stores/groups.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define MS UINT64_C(1000000)
#define TRIP (2 * MS)
#define TICK (TRIP / 4)
#define NEVER UINT64_MAX
#define NODES_MOST 33
#define MANY 40 /* slots of each member, of which it has one too much for another */
#define FEW 12
#define PHASES LONG_OR_BRIEF(499, 25) /* of a beat, at which the node joins */
#define BEGIN UINT64_C(1000000000000)

/* As a guard has them by default: face/guard_config.c. */
static const struct member_terms terms = {
	.beat_ns = 500 * MS,
	.eager_ns = 50 * MS,
	.lease_us = 2000000,
	.abort_ns = 500 * MS,
	.hold_ns = 2000 * MS,
	.drift_ppm = 500,
	.weight = 1,
};

struct node {
	struct member member;
	struct group_report report;
	struct group_grant grant;
	struct group_nudge nudge;
	uint32_t in_flight;
	uint64_t drained_ns; /* when it is down to its share; NEVER: it need not be */
	uint64_t report_ns;  /* when it reaches the store; NEVER: none is under way */
	uint64_t answer_ns;  /* when it reaches the node */
	uint64_t nudge_ns;   /* the same */
};

static struct fleet {
	struct groups *groups;
	struct group_settings settings;
	struct node nodes[NODES_MOST];
	unsigned count;
	uint64_t drain_ns;
	uint64_t
	    held_up_ns; /* the longest that a nudge waited for an answer, since the joiner began */
	uint64_t now;
} f;

static struct member_facts facts_of(const struct node *node)
{
	return (struct member_facts){ .in_flight = node->in_flight,
		                      .demand = GROUP_SLOTS_MAX / 4,
		                      .limited = true };
}

/* ---- The store ------------------------------------------------------------------- */

static void nudge_all(const struct group_nudge *nudge)
{
	for (unsigned i = 0; i < f.count; i++) {
		f.nodes[i].nudge = *nudge;
		f.nodes[i].nudge_ns = f.now + TRIP / 2;
	}
}

static void serve(struct node *node)
{
	char name[16];
	struct group_nudge nudge;
	struct store_beat beat = {
		.node = (const uint8_t *)name,
		.node_len = (uint32_t)snprintf(name, sizeof(name), "%u",
		                               (unsigned)(node - f.nodes)),
		.settings = f.settings,
		.report = node->report,
	};

	must(groups_beat(f.groups, (const uint8_t *)"g", 1, &beat, f.now / 1000,
	                 (mono){ f.now }, /* forgot_us= */ 0, &nudge) == STORE_DONE);
	node->grant = beat.grant;
	node->report_ns = NEVER;
	node->answer_ns = f.now + TRIP / 2;
	if (nudge.whom)
		nudge_all(&nudge);
}

/* ---- A node ---------------------------------------------------------------------- */

/* What is free is taken at once; what is too much ends after the drain. */
static void fill(struct node *node)
{
	if (node->in_flight <= node->member.share) {
		node->in_flight = node->member.share;
		node->drained_ns = NEVER;
	} else if (node->drained_ns == NEVER) {
		node->drained_ns = f.now + f.drain_ns;
	}
	if (node->drained_ns <= f.now) {
		node->in_flight = node->member.share;
		node->drained_ns = NEVER;
	}
}

/* By a report that is under way: one at a time is. */
static void note_hold_up(const struct node *node)
{
	uint64_t answer_ns = node->report_ns != NEVER   ? node->report_ns + TRIP / 2
	                     : node->answer_ns != NEVER ? node->answer_ns
	                                                : f.now;

	if (answer_ns - f.now > f.held_up_ns)
		f.held_up_ns = answer_ns - f.now;
}

static void act(struct node *node)
{
	struct member_facts facts = facts_of(node);

	if (node->report_ns <= f.now)
		serve(node);
	if (node->answer_ns <= f.now) {
		member_hear(&node->member, (mono){ f.now }, node->report.seq,
		            &node->grant);
		node->answer_ns = NEVER;
	}
	if (node->nudge_ns <= f.now) {
		note_hold_up(node);
		member_nudged(&node->member, (mono){ f.now }, &facts, &node->nudge);
		node->nudge_ns = NEVER;
	}
	member_turn(&node->member, (mono){ f.now });
	fill(node);
	facts = facts_of(node);
	member_notice(&node->member, &facts);
	if (!member_wants_to_beat(&node->member, (mono){ f.now }))
		return;
	node->report = member_report(&node->member, (mono){ f.now }, &facts);
	node->report_ns = f.now + TRIP / 2;
}

static void tick(void)
{
	uint32_t in_flight = 0;

	f.now += TICK;
	for (unsigned i = 0; i < f.count; i++) {
		act(&f.nodes[i]);
		in_flight += f.nodes[i].in_flight;
	}
	must(in_flight <= f.settings.ceiling);
}

static void begin_node(uint64_t at)
{
	struct node *node = &f.nodes[f.count++];

	member_init(&node->member, &terms, /* incarnation= */ 1, (mono){ at });
	node->report_ns = node->answer_ns = node->nudge_ns = node->drained_ns = NEVER;
}

/* With so many members, which have so many slots each. */
static void open_fleet(unsigned members, uint32_t each, uint64_t drain_ns)
{
	const uint32_t slots = each * members;

	f = (struct fleet){
		.groups = groups_open(memory_default(), UINT64_MAX),
		.settings = { .law = GROUP_FIXED,
		              .start = slots,
		              .floor = 1,
		              .ceiling = slots,
		              .lease_us = terms.lease_us,
		              .hold_us = terms.lease_us,
		              .rotate_us = 4 * terms.lease_us },
		.drain_ns = drain_ns,
		.now = BEGIN,
	};
	must(f.groups);
	for (unsigned i = 0; i < members; i++)
		begin_node(BEGIN + terms.beat_ns * i / members);
}

/* From its first answer until it has its part. */
static uint64_t ramp_ns(unsigned members, uint32_t each, uint64_t drain_ns,
                        unsigned phase)
{
	struct node *joiner = &f.nodes[members];
	uint64_t heard_ns = 0;

	open_fleet(members, each, drain_ns);
	while (f.now < BEGIN + 10 * terms.beat_ns + terms.beat_ns * phase / PHASES)
		tick();
	for (unsigned i = 0; i < members; i++)
		must(f.nodes[i].in_flight == each);
	begin_node(f.now);
	f.held_up_ns = 0;
	while (joiner->member.share < each * members / (members + 1)) {
		tick();
		if (heard_ns == 0 && !joiner->member.is_fenced)
			heard_ns = f.now;
	}
	must(groups_valid(f.groups));
	groups_close(f.groups);
	return f.now - heard_ns;
}

struct ramps {
	uint64_t longest_ns;
	uint64_t beyond_ns; /* at most, without what held a nudge up */
};

static struct ramps ramps_of(unsigned members, uint32_t each, uint64_t drain_ns)
{
	struct ramps ramps = { 0 };

	for (unsigned phase = 0; phase < PHASES; phase++) {
		uint64_t took = ramp_ns(members, each, drain_ns, phase);

		ramps.longest_ns = took > ramps.longest_ns ? took : ramps.longest_ns;
		took -= took > f.held_up_ns ? f.held_up_ns : took;
		ramps.beyond_ns = took > ramps.beyond_ns ? took : ramps.beyond_ns;
	}
	printf("%u members with %u slots each, a drain of %.0f round trips: %.2f, "
	       "%.2f without what held a nudge up\n",
	       members, each, (double)drain_ns / TRIP, (double)ramps.longest_ns / TRIP,
	       (double)ramps.beyond_ns / TRIP);
	return ramps;
}

static void a_joiner_has_its_part_two_round_trips_after_the_drain(void **state)
{
	static const unsigned members[] = { 1, 2, 8, 32 };
	static const uint64_t drains[] = { 0, 10 * TRIP, 100 * TRIP };

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 3; k++) {
			struct ramps ramps = ramps_of(members[i], MANY, drains[k]);

			assert_in_range(ramps.beyond_ns, 0, drains[k] + 2 * TRIP);
			assert_in_range(ramps.longest_ns, 1, drains[k] + 3 * TRIP);
		}
}

/* The others have a slot too much or none, which no nudge takes away (GROUP-12): it is the joiner's
 * as each of them beats. */
static void of_less_than_a_slot_of_each_it_waits_for_a_beat(void **state)
{
	uint64_t took = ramps_of(32, FEW, /* drain_ns= */ 0).longest_ns;

	(void)state;
	assert_true(took <= terms.beat_ns + terms.eager_ns + 2 * TRIP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_joiner_has_its_part_two_round_trips_after_the_drain),
		cmocka_unit_test(of_less_than_a_slot_of_each_it_waits_for_a_beat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
