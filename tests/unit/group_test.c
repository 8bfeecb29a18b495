/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * group_test.c -- a group's beats by hand, and fleets by lot whose messages are lost, late and
 * doubled, whose nodes die and stop, and whose store forgets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/group.h"
#include "engine/member.h"
#include "tests/support/length.h"
#include "sim/random.h"

#define LEASE UINT64_C(2000000)
#define MEMBERS 8

/* ---- A store ---------------------------------------------------------------------- */

struct shelf {
	struct group group;
	struct group_estimates estimates;
	struct group_member members[MEMBERS];
	int names[MEMBERS]; /* by position; members[i].position is i */
};

static struct group_settings settings_of(uint64_t law, uint64_t parts, uint64_t ceiling)
{
	return (struct group_settings){ .law = law,
		                        .parts = parts,
		                        .start = 1,
		                        .floor = 1,
		                        .ceiling = ceiling,
		                        .lease_us = LEASE,
		                        .hold_us = LEASE,
		                        .rotate_us = 4 * LEASE };
}

static void take_away(struct shelf *shelf, uint64_t at)
{
	uint64_t last;

	group_remove(&shelf->group, &shelf->estimates, &shelf->members[at]);
	last = shelf->group.members;
	shelf->members[at] = shelf->members[last];
	shelf->members[at].position = at;
	shelf->names[at] = shelf->names[last];
	memset(&shelf->members[last], 0, sizeof(shelf->members[last]));
}

/* GROUP-1 */
static void check_sums(const struct shelf *shelf)
{
	struct group sum = { 0 };

	for (uint64_t i = 0; i < shelf->group.members; i++) {
		const struct group_member *m = &shelf->members[i];

		assert_int_equal(m->position, i);
		sum.reserved += group_reserve(m);
		sum.weights += m->weight;
		sum.busy += m->busy;
		sum.limited += m->limited;
		sum.hungry += m->hungry;
		sum.claimed += m->claim;
		sum.lacking += m->lacks;
		sum.in_flight += m->in_flight;
	}
	assert_int_equal(sum.reserved, shelf->group.reserved);
	assert_int_equal(sum.weights, shelf->group.weights);
	assert_int_equal(sum.busy, shelf->group.busy);
	assert_int_equal(sum.limited, shelf->group.limited);
	assert_int_equal(sum.hungry, shelf->group.hungry);
	assert_int_equal(sum.claimed, shelf->group.claimed);
	assert_int_equal(sum.lacking, shelf->group.lacking);
	assert_int_equal(sum.in_flight, shelf->group.in_flight);
}

/* The one that beat longest ago, but for one. */
static uint64_t first_to_end(const struct shelf *shelf, int but)
{
	uint64_t first = shelf->group.members;

	for (uint64_t i = 0; i < shelf->group.members; i++)
		if (shelf->names[i] != but &&
		    (first == shelf->group.members ||
		     shelf->members[i].beat < shelf->members[first].beat))
			first = i;
	return first;
}

static struct group_grant beat(struct shelf *shelf,
                               const struct group_settings *settings, uint64_t now,
                               uint64_t forgot, int name,
                               const struct group_report *report)
{
	struct group_member fresh = { 0 };
	struct group_member *self = &fresh;
	struct group_grant grant;
	enum group_result begun =
	    group_begin(&shelf->group, settings, report, now, forgot);
	int stays = -1;
	uint64_t first;

	for (uint64_t i = 0; i < shelf->group.members; i++)
		if (shelf->names[i] == name &&
		    group_is_reporter(&shelf->members[i], report))
			stays = name;
	for (int i = 0; i < GROUP_EVICT_MOST; i++) {
		first = first_to_end(shelf, stays);
		if (first == shelf->group.members ||
		    !group_expired(&shelf->group, &shelf->members[first]))
			break;
		take_away(shelf, first);
	}
	if (begun == GROUP_DISAGREES && shelf->group.members == 0)
		begun = group_begin(&shelf->group, settings, report, now, forgot);
	if (begun != GROUP_GRANTED)
		return group_refusal(&shelf->group, begun);
	for (uint64_t i = 0; i < shelf->group.members; i++)
		if (shelf->names[i] == name)
			self = &shelf->members[i];
	first = first_to_end(shelf, name);
	grant =
	    group_beat(&shelf->group, &shelf->estimates, self, report,
	               first == shelf->group.members ? 0 : shelf->members[first].beat);
	if (grant.result == GROUP_GONE && self != &fresh)
		take_away(shelf, self->position);
	if (grant.result == GROUP_GRANTED && self == &fresh) {
		shelf->members[fresh.position] = fresh;
		shelf->names[fresh.position] = name;
	}
	check_sums(shelf);
	return grant;
}

/* ---- By hand ---------------------------------------------------------------------- */

struct row {
	int name;
	uint64_t estimate, in_flight, seq, applied; /* applied: which of its grants */
	uint64_t share, limit, members;
};

static void play(uint64_t law, uint64_t parts, const struct row *rows, size_t count)
{
	struct group_settings settings = settings_of(law, parts, 100);
	struct shelf shelf = { 0 };
	uint64_t generations[4][8] = { 0 }, shares[4][8] = { 0 };
	unsigned granted[4] = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct row *r = &rows[i];
		struct group_report report = {
			.incarnation = 1,
			.seq = r->seq,
			.generation = generations[r->name][r->applied],
			.held = shares[r->name][r->applied],
			.in_flight = r->in_flight,
			.weight = 1,
			.demand = r->in_flight,
			.estimate = r->estimate,
			.limited = 1,
		};
		struct group_grant grant =
		    beat(&shelf, &settings, 1, 0, r->name, &report);

		if (grant.generation > generations[r->name][granted[r->name]])
			generations[r->name][++granted[r->name]] = grant.generation;
		shares[r->name][granted[r->name]] = grant.share;
		if (grant.share != r->share || grant.limit != r->limit ||
		    grant.members != r->members)
			fail_msg("row %zu: share %ju of %ju, %ju nodes", i,
			         (uintmax_t)grant.share, (uintmax_t)grant.limit,
			         (uintmax_t)grant.members);
	}
}
#define PLAY(law, parts, ...)                                                          \
	play(law, parts, (const struct row[]){ __VA_ARGS__ },                          \
	     sizeof((const struct row[]){ __VA_ARGS__ }) / sizeof(struct row))

/* name, estimate, in flight, seq, which grant is applied: share, limit, members.
 * GROUP-2, GROUP-3 */
static void what_is_not_applied_is_reserved(void **state)
{
	(void)state;
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 6, 0, 1, 0, 6, 6, 1 },
	     { 2, 6, 0, 1, 0, 0, 6, 2 }, { 1, 6, 0, 2, 1, 3, 6, 2 },
	     { 2, 6, 0, 2, 1, 0, 6, 2 }, { 1, 6, 0, 3, 2, 3, 6, 2 },
	     { 2, 6, 0, 3, 1, 3, 6, 2 });
}

/* GROUP-13: one report frees what a node has given up, and another has it at once. */
static void what_a_node_has_lowered_by_itself_is_free(void **state)
{
	struct group_settings settings = settings_of(GROUP_FIXED, GROUP_EQUAL, 10);
	struct group_report first = { .incarnation = 1, .seq = 1, .weight = 1 };
	struct group_report second = first;
	struct group_grant grant;
	struct shelf shelf = { 0 };

	(void)state;
	grant = beat(&shelf, &settings, 1, 0, 1, &first);
	assert_int_equal(grant.share, 10);
	second.limited = 1;
	assert_int_equal(beat(&shelf, &settings, 2, 0, 2, &second).share, 0);
	first.seq = 2;
	first.generation = grant.generation;
	first.held = 5;
	first.in_flight = 7;
	grant = beat(&shelf, &settings, 3, 0, 1, &first);
	assert_int_equal(grant.share, 5);
	second.seq = 2;
	assert_int_equal(beat(&shelf, &settings, 4, 0, 2, &second).share, 3);
	first.seq = 3;
	first.generation = grant.generation;
	first.in_flight = 5;
	(void)beat(&shelf, &settings, 5, 0, 1, &first);
	second.seq = 3;
	assert_int_equal(beat(&shelf, &settings, 6, 0, 2, &second).share, 5);
}

/* GROUP-13: a node that holds less than an earlier grant may be about to apply a later one. */
static void what_was_lowered_under_an_earlier_grant_is_reserved(void **state)
{
	struct group_settings settings = settings_of(GROUP_FIXED, GROUP_EQUAL, 10);
	struct group_report first = { .incarnation = 1, .seq = 1, .weight = 1 };
	struct group_report second = first;
	struct shelf shelf = { 0 };

	(void)state;
	assert_int_equal(beat(&shelf, &settings, 1, 0, 1, &first).share, 10);
	first.seq = 2; /* of no grant */
	assert_int_equal(beat(&shelf, &settings, 2, 0, 1, &first).share, 10);
	assert_int_equal(beat(&shelf, &settings, 3, 0, 2, &second).share, 0);
}

static void what_is_in_flight_is_reserved(void **state)
{
	(void)state;
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 8, 0, 1, 0, 8, 8, 1 },
	     { 2, 8, 0, 1, 0, 0, 8, 2 }, { 1, 8, 0, 2, 1, 4, 8, 2 },
	     { 1, 8, 6, 3, 2, 4, 8, 2 }, { 2, 8, 0, 2, 1, 2, 8, 2 });
}

/* GROUP-5 */
static void an_old_report_changes_nothing(void **state)
{
	(void)state;
	PLAY(GROUP_MIN, GROUP_EQUAL, { 1, 6, 0, 1, 0, 6, 6, 1 },
	     { 1, 6, 0, 3, 1, 6, 6, 1 }, { 1, 2, 5, 3, 1, 6, 6, 1 },
	     { 1, 2, 5, 2, 1, 0, 0, 0 }, { 1, 6, 0, 4, 1, 6, 6, 1 });
}

static void the_lower_median_and_the_least(void **state)
{
	(void)state;
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 10, 0, 1, 0, 10, 10, 1 },
	     { 2, 6, 0, 1, 0, 0, 6, 2 }, { 3, 14, 0, 1, 0, 0, 10, 3 });
	PLAY(GROUP_MIN, GROUP_EQUAL, { 1, 10, 0, 1, 0, 10, 10, 1 },
	     { 2, 6, 0, 1, 0, 0, 6, 2 }, { 3, 14, 0, 1, 0, 0, 6, 3 });
}

/* Steps of the predecessor's coordinator, to the same grants: one node; two with an even and an odd
 * limit; one that has more in flight than its share; three, by the median and by the least; a limit
 * that falls; a grant that stays.  There a share counts as lowered when it is granted, and here when
 * its node has confirmed it: that is a beat more of the node whose share was lowered. */
static void vectors_of_the_predecessor(void **state)
{
	(void)state;
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 10, 3, 1, 0, 10, 10, 1 },
	     { 1, 7, 5, 2, 1, 7, 7, 1 }, { 1, 12, 0, 3, 2, 12, 12, 1 });
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 8, 1, 1, 0, 8, 8, 1 },
	     { 2, 8, 2, 1, 0, 0, 8, 2 }, { 1, 8, 4, 2, 1, 4, 8, 2 },
	     { 1, 8, 4, 3, 2, 4, 8, 2 }, { 2, 8, 4, 2, 0, 4, 8, 2 });
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 9, 0, 1, 0, 9, 9, 1 },
	     { 2, 9, 0, 1, 0, 0, 9, 2 }, { 1, 9, 2, 2, 1, 5, 9, 2 },
	     { 1, 9, 2, 3, 2, 5, 9, 2 }, { 2, 9, 2, 2, 0, 4, 9, 2 });
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 10, 0, 1, 0, 10, 10, 1 },
	     { 2, 10, 0, 1, 0, 0, 10, 2 }, { 1, 10, 0, 2, 1, 5, 10, 2 },
	     { 1, 10, 9, 3, 2, 5, 10, 2 }, { 2, 10, 0, 2, 0, 1, 10, 2 });
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 10, 0, 1, 0, 10, 10, 1 },
	     { 2, 6, 0, 1, 0, 0, 6, 2 }, { 3, 14, 0, 1, 0, 0, 10, 3 },
	     { 1, 10, 1, 2, 1, 4, 10, 3 }, { 1, 10, 1, 3, 2, 4, 10, 3 },
	     { 2, 6, 1, 2, 0, 3, 10, 3 }, { 3, 14, 1, 2, 0, 3, 10, 3 });
	PLAY(GROUP_MIN, GROUP_EQUAL, { 1, 10, 0, 1, 0, 10, 10, 1 },
	     { 2, 6, 0, 1, 0, 0, 6, 2 }, { 3, 14, 0, 1, 0, 0, 6, 3 },
	     { 1, 10, 1, 2, 1, 2, 6, 3 }, { 1, 10, 1, 3, 2, 2, 6, 3 },
	     { 2, 6, 1, 2, 0, 2, 6, 3 }, { 3, 14, 1, 2, 0, 2, 6, 3 });
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 20, 0, 1, 0, 20, 20, 1 },
	     { 2, 18, 0, 1, 0, 0, 18, 2 }, { 1, 4, 0, 2, 1, 2, 4, 2 },
	     { 1, 4, 0, 3, 2, 2, 4, 2 }, { 2, 18, 0, 2, 0, 2, 4, 2 });
	PLAY(GROUP_MEDIAN, GROUP_EQUAL, { 1, 5, 0, 1, 0, 5, 5, 1 },
	     { 1, 5, 0, 2, 1, 5, 5, 1 }, { 1, 5, 0, 3, 1, 5, 5, 1 });
}

/* Thirty beats of three nodes in turns, whose estimates and calls vary: the limits are the
 * predecessor's, beat by beat. */
static void mixed_beats_have_the_limits_of_the_predecessor(void **state)
{
	static const uint64_t median[] = { 1, 1,  8,  8,  12, 5, 9,  9, 9,  13,
		                           6, 10, 10, 10, 14, 7, 11, 4, 8,  8,
		                           8, 12, 5,  9,  9,  9, 13, 6, 10, 10 };
	static const uint64_t least[] = { 1, 1, 1, 5, 5, 2, 2, 2, 6, 6, 3, 3, 3, 7, 7,
		                          4, 4, 1, 1, 1, 5, 5, 2, 2, 2, 6, 6, 3, 3, 3 };

	(void)state;
	for (int by_median = 0; by_median <= 1; by_median++) {
		struct group_settings settings = settings_of(
		    by_median ? GROUP_MEDIAN : GROUP_MIN, GROUP_EQUAL, 1000);
		struct shelf shelf = { 0 };
		uint64_t shares[3] = { 0 }, generations[3] = { 0 };

		for (uint64_t i = 0; i < 30; i++) {
			struct group_report report = {
				.incarnation = 1 + i % 3,
				.seq = 1 + i / 3,
				.generation = generations[i % 3],
				.held = shares[i % 3],
				.estimate = 1 + 7 * i % 17,
				.in_flight = 3 * i % 5,
				.weight = 1,
			};
			struct group_grant grant =
			    beat(&shelf, &settings, 1 + i, 0, (int)(i % 3), &report);

			assert_int_equal(grant.limit, (by_median ? median : least)[i]);
			shares[i % 3] = grant.share;
			generations[i % 3] = grant.generation;
		}
	}
}

/* ---- Parts ------------------------------------------------------------------------ */

/* Nodes that want so many slots each, beat in turns, and apply what they get at once. */
struct crowd {
	struct shelf shelf;
	struct group_settings settings;
	size_t count;
	uint64_t wants[MEMBERS], weights[MEMBERS], share[MEMBERS], generation[MEMBERS];
	uint64_t now, seq, moves;
};

static void round_of_beats(struct crowd *crowd)
{
	crowd->seq++;
	for (size_t i = 0; i < crowd->count; i++) {
		uint64_t has = crowd->wants[i] < crowd->share[i] ? crowd->wants[i]
		                                                 : crowd->share[i];
		struct group_report report = {
			.incarnation = 1 + i,
			.seq = crowd->seq,
			.generation = crowd->generation[i],
			.held = crowd->share[i],
			.in_flight = has,
			.weight = crowd->weights[i] ? crowd->weights[i] : 1,
			.demand = has,
			.limited = crowd->wants[i] > crowd->share[i],
		};
		struct group_grant grant;

		crowd->now += LEASE / 4 / crowd->count;
		grant = beat(&crowd->shelf, &crowd->settings, crowd->now, 0, (int)i,
		             &report);
		assert_int_equal(grant.result, GROUP_GRANTED);
		crowd->moves += grant.share != crowd->share[i];
		crowd->share[i] = grant.share;
		crowd->generation[i] = grant.generation;
	}
}

static void rounds(struct crowd *crowd, int count)
{
	for (int i = 0; i < count; i++)
		round_of_beats(crowd);
}

static struct crowd crowd_of(uint64_t limit, size_t count)
{
	return (struct crowd){ .settings =
		                   settings_of(GROUP_FIXED, GROUP_BY_DEMAND, limit),
		               .count = count,
		               .now = LEASE };
}

static uint64_t sum_of(const struct crowd *crowd)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < crowd->count; i++)
		sum += crowd->share[i];
	return sum;
}

static void who_wants_more_gets_what_others_leave(void **state)
{
	struct crowd crowd = crowd_of(12, 4);

	(void)state;
	crowd.wants[0] = 20;
	rounds(&crowd, 40);
	assert_int_equal(crowd.share[0], 9);
	for (int i = 1; i < 4; i++)
		assert_int_equal(crowd.share[i], 1); /* to begin with */
	crowd.wants[0] = 0;
	crowd.wants[3] = 20;
	rounds(&crowd, 40);
	assert_int_equal(crowd.share[3], 9);
	assert_int_equal(crowd.share[0], 1);
}

static void who_wants_little_has_it_and_the_rest_is_even(void **state)
{
	struct crowd crowd = crowd_of(40, 4);

	(void)state;
	crowd.wants[0] = 5;
	for (int i = 1; i < 4; i++)
		crowd.wants[i] = 100;
	rounds(&crowd, 60);
	assert_true(crowd.share[0] >= 5);
	for (int i = 1; i < 4; i++)
		assert_in_range(crowd.share[i], 11, 12);
	assert_int_equal(sum_of(&crowd), 40);
}

/* A busy node that refuses nothing does not keep what another one's part is. */
static void who_comes_later_gets_its_part(void **state)
{
	struct crowd crowd = crowd_of(20, 2);

	(void)state;
	crowd.wants[0] = 20;
	rounds(&crowd, 20);
	assert_true(crowd.share[0] >= 19);
	crowd.wants[1] = 20;
	rounds(&crowd, 20);
	assert_int_equal(crowd.share[0], 10);
	assert_int_equal(crowd.share[1], 10);
}

static void weights_part_what_is_scarce(void **state)
{
	struct crowd crowd = crowd_of(16, 2);

	(void)state;
	crowd.wants[0] = crowd.wants[1] = 100;
	crowd.weights[1] = 3;
	rounds(&crowd, 20);
	assert_int_equal(crowd.share[0], 4);
	assert_int_equal(crowd.share[1], 12);
}

/* Two slots for five: each has one at times, and both are always somebody's. */
static void nobody_starves_where_there_are_too_few(void **state)
{
	bool had[MEMBERS] = { false };

	for (uint64_t parts = 0; parts < 2; parts++) {
		struct crowd crowd = crowd_of(2, 5);
		uint64_t used = 0;

		crowd.settings.parts = parts;
		for (int i = 0; i < 5; i++)
			crowd.wants[i] = 3;
		for (int k = 0; k < 400; k++) {
			round_of_beats(&crowd);
			used += sum_of(&crowd);
			for (int i = 0; i < 5; i++)
				had[i] |= crowd.share[i] > 0;
		}
		for (int i = 0; i < 5; i++)
			assert_true(had[i]);
		assert_true(used > 600);
	}
	(void)state;
}

/* The two slots go on from one to the other, and are not a few nodes' until the clock is again where it
 * was. */
static void where_the_clock_is_set_back_slots_go_round(void **state)
{
	(void)state;
	for (uint64_t parts = 0; parts < 2; parts++) {
		struct crowd crowd = crowd_of(2, 5);
		bool had[MEMBERS] = { false };

		crowd.settings.parts = parts;
		crowd.now = 4000 * LEASE;
		for (int i = 0; i < 5; i++)
			crowd.wants[i] = 3;
		rounds(&crowd, 20);
		crowd.now = 2000 * LEASE;
		for (int k = 0; k < 400; k++) {
			round_of_beats(&crowd);
			for (int i = 0; i < 5; i++)
				had[i] |= crowd.share[i] > 0;
		}
		assert_true(crowd.shelf.group.now_us < 4000 * LEASE);
		for (int i = 0; i < 5; i++)
			assert_true(had[i]);
	}
}

/* Demand that goes to and fro with each beat moves a share once in a hold time at most. */
static void shares_do_not_follow_each_beat(void **state)
{
	struct crowd crowd = crowd_of(20, 2);
	uint64_t used = 0, wanted = 0;

	(void)state;
	rounds(&crowd, 20);
	crowd.moves = 0;
	for (int i = 0; i < 100; i++) {
		crowd.wants[i % 2] = 16;
		crowd.wants[1 - i % 2] = 4;
		round_of_beats(&crowd);
		for (int n = 0; n < 2; n++) {
			used += crowd.wants[n] < crowd.share[n] ? crowd.wants[n]
			                                        : crowd.share[n];
			wanted += crowd.wants[n];
		}
	}
	assert_true(crowd.moves <= 2 * 100 / 4 + 2); /* a hold is four beats */
	/* Shares that stay at 10 would serve 14 of 20. */
	if (used * 10 < wanted * 7 - wanted)
		fail_msg("%ju of %ju with %ju moves", (uintmax_t)used,
		         (uintmax_t)wanted, (uintmax_t)crowd.moves);
}

/* ---- Time ------------------------------------------------------------------------- */

/* Two nodes that apply what they get at once. */
struct pair {
	struct shelf shelf;
	uint64_t seq, generation[2];
	uint64_t over; /* is claimed, as of its life or of another one */
	bool other_life;
};

static struct group_grant beat_at(struct pair *pair, uint64_t now, int name,
                                  uint64_t held, bool limited)
{
	const struct group_settings settings =
	    settings_of(GROUP_FIXED, GROUP_BY_DEMAND, 10);
	const struct group_report report = { .incarnation = 1 + (uint64_t)name,
		                             .seq = ++pair->seq,
		                             .generation = pair->generation[name],
		                             .held = held,
		                             .in_flight = held,
		                             .weight = 1,
		                             .demand = held,
		                             .limited = limited,
		                             .life = pair->shelf.group.life +
		                                     pair->other_life,
		                             .over = pair->over };
	struct group_grant grant = beat(&pair->shelf, &settings, now, 0, name, &report);

	assert_int_equal(grant.result, GROUP_GRANTED);
	pair->generation[name] = grant.generation;
	return grant;
}

/* Both have five, and want more; the last beat of each is at that instant. */
static struct pair even_pair(uint64_t now)
{
	struct pair pair = { 0 };

	assert_int_equal(beat_at(&pair, now - 2, 0, 0, true).share, 10);
	assert_int_equal(beat_at(&pair, now - 1, 1, 0, true).share, 0);
	assert_int_equal(beat_at(&pair, now, 0, 10, true).share, 5);
	beat_at(&pair, now, 0, 5, true);
	assert_int_equal(beat_at(&pair, now, 1, 0, true).share, 5);
	beat_at(&pair, now, 1, 5, true);
	return pair;
}

/* One that refused something comes back when the lease of another may be over, also where it has
 * its part already. */
static void who_refused_something_hears_whose_lease_is_next(void **state)
{
	struct pair pair = even_pair(1000);
	struct group_grant grant = beat_at(&pair, 1400, 0, 5, true);

	(void)state;
	assert_int_equal(grant.share, 5);
	assert_int_equal(grant.target, 5); /* it lacks nothing */
	assert_int_equal(grant.next, pair.shelf.members[1].beat);
	assert_int_equal(grant.beat, grant.next + 1);
	assert_int_equal(grant.lease_us, LEASE);
	assert_int_equal(beat_at(&pair, 1500, 0, 2, false).next, 0);
}

/* However far, and as often. */
static void a_clock_that_is_set_ends_no_lease(void **state)
{
	struct pair pair = even_pair(100 * LEASE);
	const uint64_t clocks[] = {
		101 * LEASE, 1, 100 * LEASE, UINT64_C(1) << 52, 0, 5
	};

	(void)state;
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		struct group_grant grant = beat_at(&pair, clocks[i], 0, 5, true);

		assert_int_equal(grant.share, 5);
		assert_int_equal(grant.members, 2);
	}
}

/* GROUP-4: by number, whatever the clock says. */
static void a_lease_that_is_over_is_over(void **state)
{
	const uint64_t clocks[] = { 1000, 1, 1000 + LEASE };

	(void)state;
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		struct pair pair = even_pair(1000);
		uint64_t last = pair.shelf.members[1].beat;

		pair.over = last - 1;
		assert_int_equal(beat_at(&pair, clocks[i], 0, 5, true).share, 5);
		pair.over = last;
		assert_int_equal(beat_at(&pair, clocks[i], 0, 5, true).share, 10);
	}
}

/* A proof may be late: it says nothing of the beats that came after it. */
static void who_has_beaten_since_is_not_over(void **state)
{
	struct pair pair = even_pair(1000);
	uint64_t last = pair.shelf.members[1].beat;

	(void)state;
	beat_at(&pair, 1001, 1, 5, true);
	pair.over = last;
	assert_int_equal(beat_at(&pair, 1002, 0, 5, true).share, 5);
	assert_int_equal(pair.shelf.group.over, last);
	pair.over = last - 1;
	beat_at(&pair, 1003, 0, 5, true);
	assert_int_equal(pair.shelf.group.over, last);
}

/* GROUP-10 */
static void a_proof_of_another_life_counts_as_none(void **state)
{
	struct pair pair = even_pair(1000);

	(void)state;
	pair.over = pair.shelf.members[1].beat;
	pair.other_life = true;
	assert_int_equal(beat_at(&pair, 1001, 0, 5, true).share, 5);
	pair.other_life = false;
	pair.over = pair.shelf.group.beats + 1; /* was not given out */
	assert_int_equal(beat_at(&pair, 1001, 0, 5, true).share, 5);
	assert_int_equal(pair.shelf.group.over, 0);
}

/* ---- Nudges ----------------------------------------------------------------------- */

#define PAUSE (LEASE / 4096 * (64 + 2)) /* of two members */

static uint64_t nudged(const struct pair *pair)
{
	return group_nudge(&pair->shelf.group).whom;
}

static void who_comes_to_lack_has_others_nudged_to_give(void **state)
{
	struct pair pair = { 0 };
	struct group_nudge nudge;

	(void)state;
	beat_at(&pair, 1000000, 0, 0, true);
	beat_at(&pair, 1000001, 0, 10, true);
	assert_int_equal(nudged(&pair), 0);
	beat_at(&pair, 1000002, 1, 0, true);
	nudge = group_nudge(&pair.shelf.group);
	assert_int_equal(nudge.whom, GROUP_GIVE);
	assert_int_equal(nudge.slots, 10);
	assert_int_equal(nudge.weights, 2);
	/* Once: it goes on lacking, as calls go on. */
	for (uint64_t i = 1; i < 10; i++) {
		beat_at(&pair, 1000002 + i * PAUSE, 1, 0, true);
		assert_int_equal(nudged(&pair), 0);
	}
}

static void what_becomes_free_is_offered_to_who_lacks(void **state)
{
	struct pair pair = { 0 };

	(void)state;
	beat_at(&pair, 1000000, 0, 0, true);
	beat_at(&pair, 1000001, 0, 10, true);
	beat_at(&pair, 1000002, 1, 0, true);
	assert_int_equal(beat_at(&pair, 1000003, 0, 10, true).share, 5);
	assert_int_equal(nudged(&pair), 0); /* nothing is, yet */
	beat_at(&pair, 1000004, 0, 5, true);
	assert_int_equal(nudged(&pair), GROUP_TAKE);
	assert_int_equal(beat_at(&pair, 1000005, 1, 0, true).share, 5);
	assert_int_equal(nudged(&pair), 0);
	beat_at(&pair, 1000006, 1, 5, true);
	/* Nothing changes any more. */
	for (uint64_t i = 1; i < 20; i++) {
		beat_at(&pair, 1000006 + i * LEASE / 4, (int)(i % 2), 5, true);
		assert_int_equal(nudged(&pair), 0);
	}
}

/* What comes too soon after another one is said later, by whoever beats. */
static void a_nudge_that_must_wait_is_not_lost(void **state)
{
	struct pair pair = { 0 };

	(void)state;
	beat_at(&pair, 1000000, 0, 0, true);
	beat_at(&pair, 1000001, 0, 10, true);
	beat_at(&pair, 1000002, 1, 0, false); /* claims one, and lacks it */
	assert_int_equal(nudged(&pair), GROUP_GIVE);
	beat_at(&pair, 1000003, 1, 0, true);
	assert_int_equal(nudged(&pair), 0);
	beat_at(&pair, 1000001 + PAUSE, 0, 10, true);
	assert_int_equal(nudged(&pair), 0);
	beat_at(&pair, 1000002 + PAUSE, 0, 10, true);
	assert_int_equal(nudged(&pair), GROUP_GIVE);
}

static void where_the_clock_is_set_back_a_nudge_need_not_wait(void **state)
{
	struct pair pair = { 0 };

	(void)state;
	beat_at(&pair, 1000000, 0, 0, true);
	beat_at(&pair, 1000001, 0, 10, true);
	beat_at(&pair, 1000002, 1, 0, false);
	assert_int_equal(nudged(&pair), GROUP_GIVE);
	beat_at(&pair, 1000003, 1, 0, true);
	assert_int_equal(nudged(&pair), 0);
	beat_at(&pair, 400, 0, 10, true);
	assert_int_equal(nudged(&pair), GROUP_GIVE);
	assert_int_equal(pair.shelf.group.give_us, 400);
}

/* GROUP-12: a thousand nodes come at once, and in a lease no more is said than of one. */
static void a_crowd_that_comes_is_no_storm(void **state)
{
	enum { CROWD = 1000 };
	const struct group_settings settings =
	    settings_of(GROUP_FIXED, GROUP_EQUAL, 4000);
	static struct group_member members[CROWD];
	struct group group = { 0 };
	uint64_t messages = 0, nudges = 0;

	(void)state;
	for (uint64_t i = 0; i < (uint64_t)4 * CROWD; i++) {
		const struct group_report report = {
			.incarnation = 1,
			.seq = 1 + i,
			.weight = 1,
			.held = members[i % CROWD].share,
			.generation = members[i % CROWD].generation
		};

		assert_int_equal(group_begin(&group, &settings, &report,
		                             LEASE + i * LEASE / (4 * CROWD), 0),
		                 GROUP_GRANTED);
		(void)group_beat(&group, NULL, &members[i % CROWD], &report, 0);
		if (group.nudge == 0)
			continue;
		nudges++;
		messages += group.members;
	}
	assert_in_range(nudges, 2, 2 * 64);
	assert_in_range(messages, 100, 2 * 64 * 64);
}

/* ---- Leases, lives, and what was forgotten ------------------------------------------ */

struct life {
	int name;
	uint64_t incarnation, seq, generation, held, in_flight, leaves;
	uint64_t over, life; /* 0: of the life that it is */
};

/* Four slots, parted equally. */
static struct group_grant tell(struct shelf *shelf, uint64_t now, uint64_t forgot,
                               const struct life *life)
{
	struct group_settings settings = settings_of(GROUP_FIXED, GROUP_EQUAL, 4);
	struct group_report report = { .incarnation = life->incarnation,
		                       .seq = life->seq,
		                       .epoch = forgot,
		                       .generation = life->generation,
		                       .held = life->held,
		                       .in_flight = life->in_flight,
		                       .weight = 1,
		                       .demand = life->in_flight,
		                       .limited = 1,
		                       .leaves = life->leaves,
		                       .life =
		                           life->life ? life->life : shelf->group.life,
		                       .over = life->over };

	return beat(shelf, &settings, now, forgot, life->name, &report);
}
#define TELL(shelf, now, forgot, ...)                                                  \
	tell((shelf), (now), (forgot), &(struct life){ __VA_ARGS__ })

/* GROUP-4 */
static void what_a_node_has_is_others_when_its_lease_is_over(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant grant =
	    TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 1);

	(void)state;
	assert_int_equal(grant.share, 4);
	assert_int_equal(TELL(&shelf, 2, 0, .name = 2, .incarnation = 7, .seq = 1).next,
	                 grant.beat);
	assert_int_equal(TELL(&shelf, 9 * LEASE, 0, .name = 2, .incarnation = 7,
	                      .seq = 2, .over = grant.beat - 1)
	                     .share,
	                 0);
	assert_int_equal(TELL(&shelf, 3, 0, .name = 2, .incarnation = 7, .seq = 3,
	                      .over = grant.beat)
	                     .share,
	                 4);
	assert_int_equal(shelf.group.members, 1);
}

/* GROUP-6 */
static void a_namesake_waits_until_the_lease_is_over(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant first =
	    TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 5);
	struct group_grant grant;

	(void)state;
	assert_int_equal(first.share, 4);
	grant = TELL(&shelf, 2, 0, .name = 1, .incarnation = 8, .seq = 1);
	assert_int_equal(grant.result, GROUP_NAMESAKE);
	assert_int_equal(grant.next, first.beat);
	assert_int_equal(grant.beat, first.beat); /* which it may prove */
	assert_int_equal(grant.life, first.life);
	assert_int_equal(grant.lease_us, LEASE);
	assert_int_equal(grant.share, 0);
	grant = TELL(&shelf, 3 * LEASE, 0, .name = 1, .incarnation = 8, .seq = 1);
	assert_int_equal(grant.result, GROUP_NAMESAKE);
	grant = TELL(&shelf, 3, 0, .name = 1, .incarnation = 8, .seq = 2,
	             .over = first.beat);
	assert_int_equal(grant.result, GROUP_GRANTED);
	assert_int_equal(grant.share, 4);
}

/* GROUP-5: its lease would count from when it asked, and that of its later state has begun before. */
static void a_machine_that_was_put_back_gets_no_share(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant grant;

	(void)state;
	TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 9);
	grant = TELL(&shelf, 2, 0, .name = 1, .incarnation = 7, .seq = 6);
	assert_int_equal(grant.result, GROUP_NAMESAKE);
	assert_int_equal(grant.share, 0);
	assert_int_equal(grant.next, shelf.members[0].beat);
	grant = TELL(&shelf, 2, 0, .name = 1, .incarnation = 7, .seq = 9);
	assert_int_equal(grant.result, GROUP_STALE);
	assert_int_equal(grant.share, 4);
}

/* Each has nobody else to prove that its lease is over, and nothing else that it could be. */
static void
a_lone_node_that_starts_again_or_is_put_back_has_a_share_after_a_lease(void **state)
{
	struct group_settings other = settings_of(GROUP_FIXED, GROUP_EQUAL, 9);
	struct group_report report = { .incarnation = 8, .weight = 1, .limited = 1 };
	struct shelf shelf = { 0 };
	struct group_grant grant;

	(void)state;
	grant = TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 9);
	assert_int_equal(TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 3,
	                      .over = grant.beat)
	                     .share,
	                 4); /* an earlier state */
	report.seq = 1;
	grant = beat(&shelf, &other, 1, 0, 1, &report);
	assert_int_equal(grant.result, GROUP_DISAGREES);
	report.seq = 2;
	report.life = grant.life;
	report.over = grant.beat;
	grant = beat(&shelf, &other, 1, 0, 1, &report);
	assert_int_equal(grant.result, GROUP_GRANTED);
	assert_int_equal(grant.share, 9);
	assert_int_equal(shelf.group.members, 1);
}

/* GROUP-7 */
static void what_was_forgotten_may_be_in_force_for_a_lease(void **state)
{
	uint64_t forgot = 5 * LEASE, noticed;
	struct shelf shelf = { 0 };
	struct group_grant grant =
	    TELL(&shelf, forgot, forgot, .name = 2, .incarnation = 7, .seq = 1);

	(void)state;
	noticed = grant.next;
	assert_true(noticed > 0);
	assert_int_equal(grant.share, 0);
	assert_int_equal(TELL(&shelf, forgot + 1, forgot, .name = 1, .incarnation = 7,
	                      .seq = 9, .generation = 3, .held = 3, .in_flight = 3)
	                     .share,
	                 2);
	/* By the clock it is over, and for a life that was. */
	assert_int_equal(TELL(&shelf, 9 * forgot, forgot, .name = 2, .incarnation = 7,
	                      .seq = 2, .over = shelf.group.beats, .life = 77)
	                     .share,
	                 0);
	grant = TELL(&shelf, 1, forgot, .name = 2, .incarnation = 7, .seq = 4,
	             .over = shelf.group.quiet);
	assert_int_equal(grant.share, 1);
}

/* So long after the store has forgotten, what it does not know is new. */
static void a_new_group_is_quiet_only_where_something_may_be_forgotten(void **state)
{
	const uint64_t forgot = 5 * LEASE, most = GROUP_TIME_MAX_US;
	struct shelf shelf = { 0 }, later = { 0 };

	(void)state;
	assert_int_equal(TELL(&shelf, forgot + most - 1, forgot, .name = 2,
	                      .incarnation = 7, .seq = 1)
	                     .share,
	                 0);
	assert_int_equal(
	    TELL(&later, forgot + most, forgot, .name = 2, .incarnation = 7, .seq = 1)
		.share,
	    4);
	/* A copy has members who may have more. */
	assert_int_equal(
	    TELL(&later, 3 * most, forgot + 1, .name = 2, .incarnation = 7, .seq = 2)
		.share,
	    0);
}

/* GROUP-11 */
static void a_group_that_was_dropped_gives_nothing_away(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant grant = TELL(&shelf, LEASE, 0, .name = 1, .incarnation = 7,
	                                .seq = 9, .generation = 3, .held = 1);

	(void)state;
	assert_int_equal(grant.share, 1);
	assert_int_equal(grant.next, grant.beat - 1);
	assert_int_equal(
	    TELL(&shelf, 9 * LEASE, 0, .name = 2, .incarnation = 7, .seq = 1).share, 0);
	assert_int_equal(TELL(&shelf, 9 * LEASE, 0, .name = 2, .incarnation = 7,
	                      .seq = 2, .over = grant.next - 1)
	                     .share,
	                 0);
	assert_int_equal(TELL(&shelf, 1, 0, .name = 2, .incarnation = 7, .seq = 3,
	                      .over = grant.beat)
	                     .share,
	                 4);
}

/* GROUP-11: nothing is kept of a node that has left, but that it had a grant. */
static void a_node_that_leaves_tells_of_a_dropped_group(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant grant;

	(void)state;
	assert_int_equal(TELL(&shelf, LEASE, 0, .name = 1, .incarnation = 7, .seq = 9,
	                      .generation = 3, .leaves = 1)
	                     .result,
	                 GROUP_GONE);
	grant = TELL(&shelf, LEASE, 0, .name = 2, .incarnation = 7, .seq = 1);
	assert_int_equal(grant.share, 0);
	assert_int_equal(TELL(&shelf, LEASE, 0, .name = 2, .incarnation = 7, .seq = 2,
	                      .over = grant.next)
	                     .share,
	                 4);
}

/* GROUP-7, GROUP-10: it gives out numbers again that were told already. */
static void an_old_copy_believes_no_proof_of_what_came_after_it(void **state)
{
	const uint64_t clocks[] = { 5 * LEASE, 11 * LEASE, 400 * LEASE };

	(void)state;
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		struct shelf shelf = { 0 }, copy;
		struct group_grant heard;

		TELL(&shelf, 10 * LEASE, 0, .name = 2, .incarnation = 7, .seq = 1);
		TELL(&shelf, 10 * LEASE, 0, .name = 2, .incarnation = 7, .seq = 2,
		     .leaves = 1);
		copy = shelf;
		heard =
		    TELL(&shelf, 10 * LEASE, 0, .name = 1, .incarnation = 7, .seq = 1);
		assert_int_equal(heard.share, 4);
		for (uint64_t seq = 1; seq < 9; seq++)
			assert_int_equal(TELL(&copy, clocks[i], 5 * LEASE, .name = 3,
			                      .incarnation = 99, .seq = seq,
			                      .over = heard.beat, .life = heard.life)
			                     .share,
			                 0);
		assert_true(copy.group.beats > heard.beat);
	}
}

/* A member of a copy counts for a lease after it took over, though it has beaten since. */
static void an_old_copy_keeps_who_it_knows(void **state)
{
	struct shelf shelf = { 0 };
	uint64_t noticed;

	(void)state;
	TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 1);
	noticed = TELL(&shelf, 2, 5, .name = 2, .incarnation = 8, .seq = 1).next;
	assert_int_equal(
	    TELL(&shelf, 9 * LEASE, 5, .name = 2, .incarnation = 8, .seq = 2).members,
	    2);
	assert_int_equal(
	    TELL(&shelf, 2, 5, .name = 2, .incarnation = 8, .seq = 3, .over = noticed)
		.share,
	    4);
	assert_int_equal(shelf.group.members, 1);
}

/* Whose members are all dead, and whose settings were others: its lease counts, until it has the
 * new one, in a life of its own. */
static void who_disagrees_can_prove_that_all_are_over(void **state)
{
	struct group_settings settings = settings_of(GROUP_FIXED, GROUP_EQUAL, 9);
	struct group_report report = {
		.incarnation = 9, .seq = 1, .weight = 1, .limited = 1
	};
	struct shelf shelf = { 0 };
	struct group_grant first, grant;

	(void)state;
	settings.lease_us = 3 * LEASE;
	first = TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 1);
	grant = beat(&shelf, &settings, 2, 0, 2, &report);
	assert_int_equal(grant.result, GROUP_DISAGREES);
	assert_int_equal(grant.beat, first.beat);
	assert_int_equal(grant.lease_us, LEASE);
	report.life = grant.life;
	report.over = grant.beat;
	report.seq = 2;
	grant = beat(&shelf, &settings, 2, 0, 2, &report);
	assert_int_equal(grant.result, GROUP_GRANTED);
	assert_int_equal(grant.share, 9);
	assert_int_equal(grant.lease_us, 3 * LEASE);
	assert_true(grant.life != first.life && grant.beat > first.beat);
	assert_int_equal(shelf.group.over, 0);
}

static struct group_grant tell_long(struct shelf *shelf, uint64_t forgot, int name,
                                    uint64_t seq, uint64_t generation, uint64_t over)
{
	struct group_settings settings = settings_of(GROUP_FIXED, GROUP_EQUAL, 4);
	const struct group_report report = { .incarnation = 7,
		                             .seq = seq,
		                             .generation = generation,
		                             .held = generation > 0 ? 4 : 0,
		                             .weight = 1,
		                             .limited = 1,
		                             .life = shelf->group.life,
		                             .over = over };

	settings.lease_us = 10 * LEASE;
	return beat(shelf, &settings, 3, forgot, name, &report);
}

/* GROUP-10: a copy of when the lease was short, and nodes that have shares under a long one.  What is
 * over was heard a long lease ago, or counts as none. */
static void an_old_copy_waits_for_the_longest_lease_that_it_hears_of(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant grant;

	(void)state;
	TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 1);
	grant = TELL(&shelf, 2, 5, .name = 1, .incarnation = 7, .seq = 2);
	assert_int_equal(grant.lease_us, LEASE);
	grant = tell_long(&shelf, 5, 2, 1, 9, 0);
	assert_int_equal(grant.result, GROUP_DISAGREES);
	assert_int_equal(grant.lease_us, 10 * LEASE);
	assert_int_equal(TELL(&shelf, 2, 5, .name = 1, .incarnation = 7, .seq = 3).next,
	                 shelf.group.quiet);
	grant = tell_long(&shelf, 5, 3, 1, 0, shelf.group.quiet - 1);
	assert_int_equal(grant.result, GROUP_DISAGREES);
	assert_true(shelf.group.over < shelf.group.quiet);
	grant = tell_long(&shelf, 5, 3, 2, 0, shelf.group.beats);
	assert_int_equal(grant.result, GROUP_GRANTED);
	assert_int_equal(grant.share, 4);
	assert_int_equal(grant.lease_us, 10 * LEASE);
}

/* GROUP-10: also after the quiet time.  A node that has nothing does not count. */
static void a_longer_lease_of_a_node_that_holds_begins_a_quiet_life(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant first =
	    TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 1);

	(void)state;
	assert_int_equal(tell_long(&shelf, 0, 2, 1, 0, 0).life, first.life);
	assert_int_equal(shelf.group.lasts_us, LEASE);
	assert_int_not_equal(tell_long(&shelf, 0, 2, 2, 9, 0).life, first.life);
	assert_int_equal(shelf.group.quiet, shelf.group.beats);
	assert_int_equal(shelf.group.lasts_us, 10 * LEASE);
	assert_int_equal(TELL(&shelf, 2, 0, .name = 1, .incarnation = 7, .seq = 2,
	                      .generation = first.generation, .held = 3)
	                     .share,
	                 3);
	first = tell_long(&shelf, 0, 2, 3, 9, 0);
	assert_int_equal(first.life, shelf.group.life);
	assert_int_equal(first.lease_us, 10 * LEASE); /* not another one each time */
	assert_int_equal(tell_long(&shelf, 0, 2, 4, 9, 0).life, first.life);
}

/* What a copy knows of an earlier epoch confirms nothing. */
static void a_grant_of_another_epoch_is_not_the_latest(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant grant =
	    TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 1);
	struct group_settings settings = settings_of(GROUP_FIXED, GROUP_EQUAL, 4);
	struct group_report report = { .incarnation = 7,
		                       .seq = 2,
		                       .epoch = 3,
		                       .generation = grant.generation,
		                       .weight = 1 };

	(void)state;
	(void)TELL(&shelf, 2, 0, .name = 2, .incarnation = 7,
	           .seq = 1); /* from now on the first one's part is 2 */
	assert_int_equal(beat(&shelf, &settings, 2, 0, 1, &report).share, 2);
	report.seq = 3;
	(void)beat(&shelf, &settings, 2, 0, 1, &report);
	assert_int_equal(
	    TELL(&shelf, 2, 0, .name = 2, .incarnation = 7, .seq = 2).share, 0);
}

/* GROUP-8 */
static void who_leaves_is_reserved_what_it_has_in_flight(void **state)
{
	struct shelf shelf = { 0 };
	struct group_grant grant =
	    TELL(&shelf, 1, 0, .name = 1, .incarnation = 7, .seq = 1);

	(void)state;
	(void)TELL(&shelf, 1, 0, .name = 2, .incarnation = 7, .seq = 1);
	grant = TELL(&shelf, 2, 0, .name = 1, .incarnation = 7, .seq = 2,
	             .generation = grant.generation, .in_flight = 3, .leaves = 1);
	assert_int_equal(grant.share, 0);
	(void)TELL(&shelf, 3, 0, .name = 1, .incarnation = 7, .seq = 3,
	           .generation = grant.generation, .in_flight = 3, .leaves = 1);
	assert_int_equal(
	    TELL(&shelf, 4, 0, .name = 2, .incarnation = 7, .seq = 2).share, 1);
	assert_int_equal(TELL(&shelf, 5, 0, .name = 1, .incarnation = 7, .seq = 4,
	                      .generation = 0, .leaves = 1)
	                     .result,
	                 GROUP_GONE);
	assert_int_equal(
	    TELL(&shelf, 6, 0, .name = 2, .incarnation = 7, .seq = 3).share, 4);
}

/* GROUP-9: what a beat does depends on the sums, and on one member. */
static void a_beat_reads_no_other_member(void **state)
{
	struct shelf shelf = { 0 };
	struct group_member others[MEMBERS];

	(void)state;
	for (int name = 1; name <= 3; name++)
		(void)TELL(&shelf, 1, 0, .name = name, .incarnation = 7, .seq = 1);
	memcpy(others, shelf.members, sizeof(others));
	(void)TELL(&shelf, 2, 0, .name = 3, .incarnation = 7, .seq = 2);
	assert_memory_equal(others, shelf.members, 2 * sizeof(others[0]));
	assert_memory_not_equal(&others[2], &shelf.members[2], sizeof(others[2]));
}

/* ---- By lot ----------------------------------------------------------------------- */

#define NODES 4
#define NETS 64
#define BEAT UINT64_C(400000)
#define ABORT UINT64_C(300000)
#define DRIFT_PPM 200000
#define CLOCK_US (GROUP_TIME_MAX_US / 2) /* the store's is set to at most so much */

struct message {
	bool is_answer;
	int node;
	uint64_t life; /* of the process that has sent the report */
	uint64_t at;
	uint64_t seq;
	struct group_report report;
	struct group_grant grant;
};

struct node {
	struct member member;
	int64_t rate_ppm; /* of its clock */
	uint64_t offset_ns;
	uint64_t life;
	bool lives, stopped;
	uint32_t in_flight; /* as it knows */
	uint32_t zombies;   /* at the backend, of a node that died or stopped */
	uint64_t zombies_end;
	uint64_t
	    ends; /* stopped or fenced: when what it has at the backend ends; else 0 */
	uint64_t fence; /* the last */
	bool limited;
};

struct fleet {
	struct chance *lot;
	struct group_settings settings;
	struct shelf shelf;
	struct shelf copy; /* what a replica has */
	uint64_t now, forgot, lives;
	uint64_t clock; /* the store's, which is set at will */
	struct node nodes[NODES];
	struct message net[NETS];
	size_t messages;
	uint64_t most, granted;
};

static mono mono_of(const struct fleet *fleet, const struct node *node)
{
	uint64_t per_milli = (uint64_t)(1000000 + node->rate_ppm);

	return (mono){ node->offset_ns + fleet->now * per_milli / 1000 };
}

/* When its clock says so, or later. */
static uint64_t true_of(const struct node *node, mono then)
{
	uint64_t per_milli = (uint64_t)(1000000 + node->rate_ppm);

	return ((then.ns - node->offset_ns) * 1000 + per_milli - 1) / per_milli;
}

static void start(struct fleet *fleet, int n)
{
	struct member_terms terms = { .beat_ns = BEAT * 1000,
		                      .eager_ns = BEAT * 100,
		                      .lease_us = LEASE,
		                      .abort_ns = ABORT * 1000,
		                      .drift_ppm = DRIFT_PPM,
		                      .weight = 1 + (uint32_t)n % 2 };

	fleet->nodes[n].life = ++fleet->lives;
	fleet->nodes[n].lives = true;
	fleet->nodes[n].stopped = false;
	fleet->nodes[n].in_flight = 0;
	fleet->nodes[n].ends = 0;
	/* So that no two lives of the group have one name. */
	member_init(&fleet->nodes[n].member, &terms, fleet->lives << 20,
	            mono_of(fleet, &fleet->nodes[n]));
}

static void send(struct fleet *fleet, const struct message *message)
{
	if (fleet->messages < NETS && chance_below(fleet->lot, 10) > 0)
		fleet->net[fleet->messages++] = *message;
	if (fleet->messages < NETS && chance_below(fleet->lot, 10) == 0) {
		fleet->net[fleet->messages] = *message; /* once more */
		fleet->net[fleet->messages++].at += chance_below(fleet->lot, 4 * BEAT);
	}
}

static uint64_t some_delay(struct fleet *fleet)
{
	return chance_below(fleet->lot, 5) == 0 ? chance_below(fleet->lot, 3 * BEAT)
	                                        : chance_below(fleet->lot, BEAT / 20);
}

static struct member_facts facts_of(const struct node *node)
{
	return (struct member_facts){ .in_flight = node->in_flight,
		                      .demand = node->in_flight,
		                      .busy = node->in_flight * GROUP_BUSY_ONE,
		                      .estimate = 1 + node->in_flight,
		                      .limited = node->limited };
}

static void run_node(struct fleet *fleet, int n)
{
	struct node *node = &fleet->nodes[n];
	struct member_facts facts = facts_of(node);
	mono now = mono_of(fleet, node);
	uint64_t seq = node->member.seq + 1;

	if (!node->lives || node->stopped)
		return;
	member_turn(&node->member, now);
	if (mono_reached(now, member_gives_up(&node->member)))
		member_lost(&node->member, now, node->member.seq);
	member_notice(&node->member, &facts);
	if (!member_wants_to_beat(&node->member, now))
		return;
	send(fleet, &(struct message){
			.node = n,
			.life = node->life,
			.at = fleet->now + some_delay(fleet),
			.seq = seq,
			.report = member_report(&node->member, now, &facts),
		    });
	node->limited = false;
}

static void arrive(struct fleet *fleet, const struct message *m)
{
	struct node *node = &fleet->nodes[m->node];
	struct message answer = *m;

	if (m->is_answer) {
		if (node->life == m->life && node->lives && !node->stopped &&
		    member_hear(&node->member, mono_of(fleet, node), m->seq,
		                &m->grant) == MEMBER_LEFT)
			node->lives = false;
		return;
	}
	answer.grant = beat(&fleet->shelf, &fleet->settings, fleet->clock,
	                    fleet->forgot, m->node, &m->report);
	fleet->granted += answer.grant.share;
	answer.is_answer = true;
	answer.at = fleet->now + some_delay(fleet);
	send(fleet, &answer);
}

static void use(struct fleet *fleet, struct node *node)
{
	/* As a seat does: the fence counts, whether or not its timer has run. */
	bool fenced = node->member.is_fenced ||
	              mono_reached(mono_of(fleet, node), node->member.fence);

	if (!node->lives || node->stopped)
		return;
	if (!node->member.is_fenced)
		node->fence = true_of(node, node->member.fence);
	if (fenced && node->ends == 0) /* the host aborts */
		node->ends = node->fence + ABORT;
	if (node->ends > 0 && fleet->now >= node->ends) {
		node->in_flight = 0;
		node->ends = 0;
	}
	if (fenced)
		return;
	for (int i = 0; i < 3; i++) {
		if (chance_below(fleet->lot, 3) > 0) {
			if (node->in_flight < node->member.share)
				node->in_flight++;
			else
				node->limited = true;
		} else if (node->in_flight > 0) {
			node->in_flight--;
		}
	}
}

/* What it has at the backend ends within the time that the group was told. */
static void die(struct fleet *fleet, struct node *node)
{
	uint64_t end = node->ends > 0 ? node->ends : fleet->now + ABORT;

	if (node->lives && fleet->now < end) {
		node->zombies += node->in_flight;
		node->zombies_end = end;
	}
	node->in_flight = 0;
	node->lives = false;
}

static void misfortune(struct fleet *fleet)
{
	int n = (int)chance_below(fleet->lot, NODES);
	struct node *node = &fleet->nodes[n];

	switch (chance_below(fleet->lot, 60)) {
	case 0: /* it dies */
		die(fleet, node);
		break;
	case 1:
		if (node->lives && !node->stopped) {
			node->stopped = true;
			if (node->ends == 0)
				node->ends = fleet->now + ABORT;
		}
		break;
	case 2:
		if (node->lives)
			member_leave(&node->member, mono_of(fleet, node));
		break;
	case 3: /* a server that is flushed, or an old copy that takes over */
		if (chance_below(fleet->lot, 4) == 0) {
			fleet->forgot = fleet->clock + (fleet->clock == fleet->forgot);
			if (chance_below(fleet->lot, 2) == 0)
				memset(&fleet->shelf, 0, sizeof(fleet->shelf));
			else
				fleet->shelf = fleet->copy;
		}
		break;
	case 4:
		fleet->copy = fleet->shelf;
		break;
	default:
		if (!node->lives)
			start(fleet, n);
		else if (chance_below(fleet->lot, 8) == 0)
			node->stopped = false;
	}
}

static void check_fleet(struct fleet *fleet)
{
	uint64_t at_backend = 0;

	for (int n = 0; n < NODES; n++) {
		struct node *node = &fleet->nodes[n];

		if (node->zombies > 0 && fleet->now >= node->zombies_end)
			node->zombies = 0;
		if (node->ends == 0 || fleet->now < node->ends)
			at_backend += node->in_flight;
		at_backend += node->zombies;
	}
	if (at_backend > fleet->most)
		fleet->most = at_backend;
	if (at_backend > fleet->settings.ceiling)
		fail_msg("%ju in flight of %ju at %ju us", (uintmax_t)at_backend,
		         (uintmax_t)fleet->settings.ceiling, (uintmax_t)fleet->now);
}

static void live(uint64_t seed, uint64_t steps)
{
	struct chance lot = { seed };
	static struct fleet fleet;

	memset(&fleet, 0, sizeof(fleet));
	fleet.lot = &lot;
	fleet.now = 10 * BEAT;
	fleet.clock = 1;
	fleet.settings =
	    settings_of(GROUP_FIXED, chance_below(&lot, 2), 1 + chance_below(&lot, 9));
	fleet.copy = fleet.shelf;
	for (int n = 0; n < NODES; n++) {
		fleet.nodes[n].rate_ppm =
		    (int64_t)chance_below(&lot, 2 * DRIFT_PPM + 1) - DRIFT_PPM;
		fleet.nodes[n].offset_ns = chance_below(&lot, UINT64_C(1) << 50);
		start(&fleet, n);
	}
	for (uint64_t i = 0; i < steps; i++) {
		fleet.now += chance_below(&lot, BEAT / 10);
		if (chance_below(&lot, 4) == 0) /* forward or back, however far */
			fleet.clock = 1 + chance_below(&lot, CLOCK_US);
		for (size_t k = 0; k < fleet.messages;) {
			struct message m = fleet.net[k];

			if (m.at > fleet.now) {
				k++;
				continue;
			}
			fleet.net[k] = fleet.net[--fleet.messages];
			arrive(&fleet, &m);
		}
		for (int n = 0; n < NODES; n++) {
			use(&fleet, &fleet.nodes[n]);
			run_node(&fleet, n);
		}
		misfortune(&fleet);
		check_fleet(&fleet);
	}
	if (fleet.granted == 0 || fleet.most == 0)
		fail_msg("seed %ju: granted %ju, most %ju", (uintmax_t)seed,
		         (uintmax_t)fleet.granted, (uintmax_t)fleet.most);
}

static void no_fleet_has_more_in_flight_than_its_limit(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= LONG_OR_BRIEF(400, 40); seed++) {

		live(seed, 3000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_applied_is_reserved),
		cmocka_unit_test(what_a_node_has_lowered_by_itself_is_free),
		cmocka_unit_test(what_was_lowered_under_an_earlier_grant_is_reserved),
		cmocka_unit_test(what_is_in_flight_is_reserved),
		cmocka_unit_test(an_old_report_changes_nothing),
		cmocka_unit_test(the_lower_median_and_the_least),
		cmocka_unit_test(vectors_of_the_predecessor),
		cmocka_unit_test(mixed_beats_have_the_limits_of_the_predecessor),
		cmocka_unit_test(who_wants_more_gets_what_others_leave),
		cmocka_unit_test(who_wants_little_has_it_and_the_rest_is_even),
		cmocka_unit_test(who_comes_later_gets_its_part),
		cmocka_unit_test(weights_part_what_is_scarce),
		cmocka_unit_test(nobody_starves_where_there_are_too_few),
		cmocka_unit_test(where_the_clock_is_set_back_slots_go_round),
		cmocka_unit_test(shares_do_not_follow_each_beat),
		cmocka_unit_test(who_refused_something_hears_whose_lease_is_next),
		cmocka_unit_test(a_clock_that_is_set_ends_no_lease),
		cmocka_unit_test(a_lease_that_is_over_is_over),
		cmocka_unit_test(who_has_beaten_since_is_not_over),
		cmocka_unit_test(a_proof_of_another_life_counts_as_none),
		cmocka_unit_test(who_comes_to_lack_has_others_nudged_to_give),
		cmocka_unit_test(what_becomes_free_is_offered_to_who_lacks),
		cmocka_unit_test(a_nudge_that_must_wait_is_not_lost),
		cmocka_unit_test(where_the_clock_is_set_back_a_nudge_need_not_wait),
		cmocka_unit_test(a_crowd_that_comes_is_no_storm),
		cmocka_unit_test(what_a_node_has_is_others_when_its_lease_is_over),
		cmocka_unit_test(a_namesake_waits_until_the_lease_is_over),
		cmocka_unit_test(a_machine_that_was_put_back_gets_no_share),
		cmocka_unit_test(
		    a_lone_node_that_starts_again_or_is_put_back_has_a_share_after_a_lease),
		cmocka_unit_test(what_was_forgotten_may_be_in_force_for_a_lease),
		cmocka_unit_test(
		    a_new_group_is_quiet_only_where_something_may_be_forgotten),
		cmocka_unit_test(a_group_that_was_dropped_gives_nothing_away),
		cmocka_unit_test(a_node_that_leaves_tells_of_a_dropped_group),
		cmocka_unit_test(an_old_copy_believes_no_proof_of_what_came_after_it),
		cmocka_unit_test(an_old_copy_keeps_who_it_knows),
		cmocka_unit_test(who_disagrees_can_prove_that_all_are_over),
		cmocka_unit_test(
		    an_old_copy_waits_for_the_longest_lease_that_it_hears_of),
		cmocka_unit_test(
		    a_longer_lease_of_a_node_that_holds_begins_a_quiet_life),
		cmocka_unit_test(a_grant_of_another_epoch_is_not_the_latest),
		cmocka_unit_test(who_leaves_is_reserved_what_it_has_in_flight),
		cmocka_unit_test(a_beat_reads_no_other_member),
		cmocka_unit_test(no_fleet_has_more_in_flight_than_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
