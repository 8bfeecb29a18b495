/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * mass_death_test.c -- of a fleet all nodes but one die at once, and the last one gets their slots.
 *
 * Real members (engine/member.h) beat at a real group (stores/groups.h) in virtual time.  A message
 * takes TRIP / 2, calls last no time, and no nudge arrives.  What the rule of shares allows is this,
 * from the instant of the deaths on:
 *
 *     a beat                   until the survivor hears a number that is not below the dead's
 *     (1 + drift) of the       until it has proven that number; the group's lease is a beat shorter
 *       group's lease          than the one that a guard is given
 *     an eager time for each   since a beat removes GROUP_EVICT_MOST members at most: five beats
 *       beat after the fifth   follow each other at once, and then one comes each eager time
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
#define TRIP MS
#define NEVER UINT64_MAX
#define NODES_MOST 401
#define AT_ONCE 5                   /* beats (MEMBER-7) */
#define PHASES LONG_OR_BRIEF(25, 5) /* of a beat, at which the nodes die */
#define BEGIN UINT64_C(1000000000000)

/* As a guard has them by default: face/guard_config.c. */
static const struct member_terms terms = {
	.beat_ns = 500 * MS,
	.eager_ns = 50 * MS,
	.lease_us = 2000000,
	.abort_ns = 500 * MS,
	.drift_ppm = 500,
	.weight = 1,
};

struct node {
	struct member member;
	struct group_report report;
	struct group_grant grant;
	uint64_t report_ns; /* when it reaches the store; NEVER: none is under way */
	uint64_t answer_ns; /* when it reaches the node */
	bool is_dead;
};

static struct fleet {
	struct groups *groups;
	struct group_settings settings;
	struct node nodes[NODES_MOST];
	unsigned count;
	uint64_t now;
} f;

/* More than it has, always. */
static struct member_facts facts_of(const struct node *node)
{
	return (struct member_facts){ .in_flight = node->member.share,
		                      .demand = GROUP_SLOTS_MAX / 4,
		                      .limited = true };
}

static uint64_t due_of(const struct node *node)
{
	uint64_t due = node->report_ns;

	if (!node->is_dead && member_due(&node->member).ns < due)
		due = member_due(&node->member).ns;
	return !node->is_dead && node->answer_ns < due ? node->answer_ns : due;
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
}

static void send(struct node *node)
{
	struct member_facts facts = facts_of(node);

	node->report = member_report(&node->member, (mono){ f.now }, &facts);
	node->report_ns = f.now + TRIP / 2;
}

static void hear(struct node *node)
{
	struct member_facts facts;

	member_hear(&node->member, (mono){ f.now }, node->report.seq, &node->grant);
	node->answer_ns = NEVER;
	facts = facts_of(node);
	member_notice(&node->member, &facts);
}

static void act(struct node *node)
{
	if (node->report_ns <= f.now)
		serve(node);
	if (node->is_dead)
		return;
	if (node->answer_ns <= f.now)
		hear(node);
	member_turn(&node->member, (mono){ f.now });
	if (member_wants_to_beat(&node->member, (mono){ f.now }))
		send(node);
}

/* Until then, or until the first node has so much. */
static void run(uint64_t until, uint32_t share)
{
	while (f.now < until && f.nodes[0].member.share < share) {
		struct node *next = &f.nodes[0];

		for (unsigned i = 1; i < f.count; i++)
			if (due_of(&f.nodes[i]) < due_of(next))
				next = &f.nodes[i];
		f.now = due_of(next) < until ? due_of(next) : until;
		act(next);
	}
}

static void open_fleet(unsigned count, uint32_t slots)
{
	f = (struct fleet){
		.groups = groups_open(memory_default(), UINT64_MAX),
		.settings = { .law = GROUP_FIXED,
		              .start = slots,
		              .floor = 1,
		              .ceiling = slots,
		              .lease_us = terms.lease_us,
		              .hold_us = terms.lease_us,
		              .rotate_us = 4 * terms.lease_us },
		.count = count,
		.now = BEGIN,
	};
	must(f.groups);
	for (unsigned i = 0; i < count; i++) {
		member_init(&f.nodes[i].member, &terms, /* incarnation= */ 1,
		            (mono){ BEGIN + terms.beat_ns * i / count });
		f.nodes[i].report_ns = f.nodes[i].answer_ns = NEVER;
	}
}

/* From the deaths until the last node has all slots. */
static uint64_t comes_back_in(unsigned count, unsigned phase)
{
	const uint32_t slots = 10 * count;
	uint64_t died = BEGIN + 10 * terms.beat_ns + terms.beat_ns * phase / PHASES;

	open_fleet(count, slots);
	run(died, /* share= */ UINT32_MAX);
	must(groups_find(f.groups, (const uint8_t *)"g", 1)->members == count);
	must(f.nodes[0].member.share < 2 * slots / count);
	for (unsigned i = 1; i < count; i++)
		f.nodes[i].is_dead = true;
	run(died + 100 * terms.beat_ns, slots);
	must(f.nodes[0].member.share == slots);
	must(groups_valid(f.groups));
	groups_close(f.groups);
	return f.now - died;
}

static uint64_t allowed_for(unsigned dead)
{
	uint64_t beats = (dead + GROUP_EVICT_MOST - 1) / GROUP_EVICT_MOST;
	uint64_t eager = beats > AT_ONCE ? beats - AT_ONCE : 0;
	uint64_t lease_ns = terms.lease_us * 1000;

	return terms.beat_ns + lease_ns + lease_ns / 1000000 * terms.drift_ppm +
	       eager * terms.eager_ns + (2 + AT_ONCE) * TRIP;
}

static uint64_t slowest(unsigned count)
{
	uint64_t most = 0;

	for (unsigned phase = 0; phase < PHASES; phase++) {
		uint64_t took = comes_back_in(count, phase);

		most = took > most ? took : most;
	}
	printf("%u dead: %.3f s, allowed %.3f s\n", count - 1, (double)most / 1e9,
	       (double)allowed_for(count - 1) / 1e9);
	return most;
}

/* A tenth more than the lease that a guard is given. */
static uint64_t a_tenth_more(void)
{
	return (terms.lease_us * 1000 + terms.beat_ns) / 10 * 11;
}

static void slots_of_99_dead_of_100_are_back_in_a_lease_and_a_tenth(void **state)
{
	uint64_t most = slowest(100);

	(void)state;
	assert_true(most <= allowed_for(99));
	assert_true(most <= a_tenth_more());
}

/* The most for which that holds, with the terms that a guard has by default. */
static void so_are_those_of_144_dead_for_each_that_lives(void **state)
{
	uint64_t most = slowest(145);

	(void)state;
	assert_true(most <= allowed_for(144));
	assert_true(most <= a_tenth_more());
}

static void
of_more_dead_an_eager_time_more_for_each_beat_that_removes_some(void **state)
{
	(void)state;
	assert_true(slowest(NODES_MOST) <= allowed_for(NODES_MOST - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    slots_of_99_dead_of_100_are_back_in_a_lease_and_a_tenth),
		cmocka_unit_test(so_are_those_of_144_dead_for_each_that_lives),
		cmocka_unit_test(
		    of_more_dead_an_eager_time_more_for_each_beat_that_removes_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
