/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * group_limit_test.c -- what a group's limit is after each beat, by hand.
 *
 * No node's lease ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/group.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MEMBERS 9
#define LEASE UINT64_C(2000000)
#define QUARTER (LEASE / 4)

struct scene {
	struct group_settings settings;
	struct group group;
	struct group_estimates estimates;
	struct group_member members[MEMBERS];
	struct group_grant grants[MEMBERS]; /* in force */
};

static struct scene scene_of(uint64_t law, uint64_t start, uint64_t floor,
                             uint64_t ceiling)
{
	return (struct scene){ .settings = { .law = law,
		                             .parts = GROUP_EQUAL,
		                             .start = start,
		                             .floor = floor,
		                             .ceiling = ceiling,
		                             .lease_us = LEASE,
		                             .rotate_us = LEASE } };
}

/* The node reports what the test says, and that it has applied what it was granted last. */
static struct group_grant beat(struct scene *s, int node, uint64_t now,
                               struct group_report report)
{
	struct group_grant *grant = &s->grants[node];

	report.incarnation = 1;
	report.seq = s->members[node].seq + 1;
	report.generation = grant->generation;
	report.held = grant->share;
	report.weight = 1;
	assert_int_equal(group_begin(&s->group, &s->settings, &report, now, 0),
	                 GROUP_GRANTED);
	*grant = group_beat(&s->group, &s->estimates, &s->members[node], &report, 0);
	assert_int_equal(grant->result, GROUP_GRANTED);
	return *grant;
}

/* ---- Sums ------------------------------------------------------------------------- */

struct sum {
	int node;
	uint64_t busy; /* slots */
	uint64_t limited, now, limit, parted;
};

static void sums(struct scene *s, const struct sum *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct group_report report = { .busy = rows[i].busy * GROUP_BUSY_ONE,
			                       .limited = rows[i].limited };
		uint64_t limit = beat(s, rows[i].node, rows[i].now, report).limit;

		if (limit != rows[i].limit || s->group.parted != rows[i].parted)
			fail_msg("row %zu: %ju, %ju", i, (uintmax_t)limit,
			         (uintmax_t)s->group.parted);
	}
}

/* Busy, four roots of that, and one for each member.  It rises at once; it falls where a node is
 * limited, by an eighth in each quarter of a lease, and what is parted a quarter before.  GROUP-15 */
static void the_limit_follows_what_is_busy(void **state)
{
	static const struct sum rows[] = {
		{ 0, 16, 1, 1, 33, 33 },      /* 16 + 16 + 1 */
		{ 1, 9, 1, 2, 47, 47 },       /* 25 + 20 + 2 */
		{ 0, 91, 1, 3, 142, 142 },    /* 100 + 40 + 2 */
		{ 1, 9, 0, 4, 142, 142 },     /* the same */
		{ 0, 0, 0, LEASE, 142, 142 }, /* 23 are enough, but none lacks */
		{ 1, 9, 0, LEASE + QUARTER, 142, 142 }, /* nor here */
		{ 0, 0, 1, 2 * LEASE, 142, 124 },       /* less 17.75, rounded up */
		{ 1, 9, 0, 2 * LEASE + 1, 142, 124 },   /* it has just fallen */
		{ 1, 9, 1, 2 * LEASE + QUARTER - 1, 142, 124 },
		{ 1, 9, 0, 2 * LEASE + QUARTER, 124, 108 }, /* less 15.5 */
		{ 0, 0, 0, 3 * LEASE, 108, 108 },           /* none lacks any more */
		{ 0, 4, 1, 4 * LEASE, 108, 94 },            /* less 13.5 */
		{ 0, 91, 1, 4 * LEASE + 1, 142, 142 },      /* at once */
	};
	struct scene s = scene_of(GROUP_SUM, 10, 1, 1000);

	(void)state;
	sums(&s, rows, COUNT(rows));
}

static void it_falls_no_deeper_than_what_is_busy(void **state)
{
	static const struct sum rows[] = {
		{ 0, 25, 1, LEASE, 46, 46 },
		{ 0, 22, 1, 2 * LEASE, 46,
		  41 }, /* an eighth is 40; 4 * root(22) is 18 */
		{ 0, 0, 1, 3 * LEASE, 41, 35 },
		{ 0, 0, 1, 4 * LEASE, 35, 30 },
		{ 0, 0, 1, 5 * LEASE, 30, 30 },    /* the floor */
		{ 0, 1000, 1, 6 * LEASE, 60, 60 }, /* the ceiling */
	};
	struct scene s = scene_of(GROUP_SUM, 30, 30, 60);

	(void)state;
	sums(&s, rows, COUNT(rows));
}

/* Chance moves what is busy up and down.  GROUP-16 */
static void a_small_rise_waits_for_a_lease_after_a_fall(void **state)
{
	static const struct sum rows[] = {
		{ 0, 64, 1, LEASE, 97, 97 },
		{ 0, 49, 1, 2 * LEASE, 97, 84 },
		{ 0, 56, 0, 2 * LEASE + 1, 97, 84 }, /* 86 */
		{ 0, 49, 1, 2 * LEASE + QUARTER, 84, 78 },
		{ 0, 59, 0, 2 * LEASE + QUARTER + 1, 84, 78 }, /* 90 */
		{ 0, 60, 0, 2 * LEASE + QUARTER + 2, 91, 91 }, /* by a sixth */
		{ 0, 49, 1, 2 * LEASE + 2 * QUARTER, 91, 79 },
		{ 0, 59, 0, 2 * LEASE + 2 * QUARTER + 1, 91, 79 }, /* below the 97 */
		{ 0, 59, 0, 3 * LEASE + 2 * QUARTER - 1, 79, 79 },
		{ 0, 59, 0, 3 * LEASE + 2 * QUARTER, 90, 90 },
		{ 0, 49, 1, 4 * LEASE + 2 * QUARTER, 90, 78 },
		{ 0, 59, 0, 4 * LEASE + 2 * QUARTER + 1, 90, 78 },
		{ 0, 59, 0, 4 * LEASE + 2 * QUARTER - 1, 90, 90 }, /* set back */
	};
	struct scene s = scene_of(GROUP_SUM, 10, 1, 1000);

	(void)state;
	sums(&s, rows, COUNT(rows));
}

/* Then chance is not all that moves it.  GROUP-16 */
static void a_rise_above_what_was_parted_does_not_wait(void **state)
{
	static const struct sum rows[] = {
		{ 0, 49, 0, LEASE, 78, 78 },
		{ 0, 47, 1, 2 * LEASE, 78, 75 },
		{ 0, 49, 0, 2 * LEASE + 1, 78, 75 },
		{ 0, 50, 0, 2 * LEASE + 2, 79, 79 },
		{ 0, 47, 1, 2 * LEASE + QUARTER, 79, 75 },
		{ 0, 50, 0, 2 * LEASE + QUARTER + 1, 79, 75 },
		{ 0, 51, 0, 2 * LEASE + QUARTER + 2, 80, 80 },
	};
	struct scene s = scene_of(GROUP_SUM, 10, 1, 1000);

	(void)state;
	sums(&s, rows, COUNT(rows));
}

/* GROUP-16 */
static void each_member_has_a_slot_at_once(void **state)
{
	static const struct sum rows[] = {
		{ 0, 1, 0, 2 * LEASE, 13, 13 },
		{ 0, 0, 1, 3 * LEASE, 13, 11 },
		{ 0, 0, 1, 3 * LEASE + QUARTER, 11, 9 },
		{ 0, 0, 1, 3 * LEASE + 2 * QUARTER, 9, 8 },
		{ 8, 0, 0, 3 * LEASE + 2 * QUARTER + 1, 9, 9 },
	};
	struct scene s = scene_of(GROUP_SUM, 1, 1, 1000);

	(void)state;
	for (int node = 0; node < 8; node++)
		beat(&s, node, LEASE, (struct group_report){ .busy = 0 });
	sums(&s, rows, COUNT(rows));
}

/* GROUP-16 */
static void what_was_parted_by_other_settings_holds_nothing_up(void **state)
{
	static const struct sum before[] = { { 0, 64, 1, LEASE, 97, 97 },
		                             { 0, 49, 1, 2 * LEASE, 97, 84 } };
	static const struct sum after[] = { { 1, 49, 0, 2 * LEASE + 1, 78, 78 } };
	struct scene s = scene_of(GROUP_SUM, 10, 1, 1000);

	(void)state;
	sums(&s, before, COUNT(before));
	group_remove(&s.group, &s.estimates, &s.members[0]);
	s.settings.start = 70;
	sums(&s, after, COUNT(after));
}

/* ---- Estimates -------------------------------------------------------------------- */

/* The predecessor's vectors. */
struct estimate {
	int node;
	uint64_t estimate, in_flight;
	uint64_t limit, members;
};

static void estimates(uint64_t law, const struct estimate *rows, size_t count)
{
	struct scene s = scene_of(law, 1, 1, 100);

	for (size_t i = 0; i < count; i++) {
		const struct estimate *r = &rows[i];
		struct group_report report = { .estimate = r->estimate,
			                       .in_flight = r->in_flight };
		struct group_grant grant = beat(&s, r->node, 1, report);

		if (grant.limit != r->limit || grant.members != r->members)
			fail_msg("row %zu: %ju, %ju nodes", i, (uintmax_t)grant.limit,
			         (uintmax_t)grant.members);
		if (grant.members == 1)
			assert_int_equal(grant.share, grant.limit);
	}
}

static void one_node_has_what_it_estimates(void **state)
{
	static const struct estimate rows[] = { { 0, 10, 3, 10, 1 },
		                                { 0, 7, 5, 7, 1 },
		                                { 0, 12, 0, 12, 1 } };

	(void)state;
	estimates(GROUP_MEDIAN, rows, COUNT(rows));
	estimates(GROUP_MIN, rows, COUNT(rows));
}

static void an_estimate_that_falls_is_the_limit_at_once(void **state)
{
	static const struct estimate rows[] = {
		{ 0, 20, 0, 20, 1 },
		{ 1, 18, 0, 18, 2 },
		{ 0, 4, 0, 4, 2 },
		{ 1, 18, 0, 4, 2 },
	};

	(void)state;
	estimates(GROUP_MEDIAN, rows, COUNT(rows));
	estimates(GROUP_MIN, rows, COUNT(rows));
}

/* Three nodes in turns, of which each estimates something else each time. */
static void the_limit_follows_estimates_that_change(void **state)
{
	static const uint64_t median[] = { 1, 1,  8,  8,  12, 5, 9,  9, 9,  13,
		                           6, 10, 10, 10, 14, 7, 11, 4, 8,  8,
		                           8, 12, 5,  9,  9,  9, 13, 6, 10, 10 };
	static const uint64_t min[] = { 1, 1, 1, 5, 5, 2, 2, 2, 6, 6, 3, 3, 3, 7, 7,
		                        4, 4, 1, 1, 1, 5, 5, 2, 2, 2, 6, 6, 3, 3, 3 };
	struct estimate rows[2][COUNT(median)];

	(void)state;
	for (size_t i = 0; i < COUNT(median); i++) {
		struct estimate row = { .node = (int)(i % 3),
			                .estimate = 1 + 7 * i % 17,
			                .in_flight = 3 * i % 5,
			                .members = i < 2 ? i + 1 : 3 };

		row.limit = median[i];
		rows[0][i] = row;
		row.limit = min[i];
		rows[1][i] = row;
	}
	estimates(GROUP_MEDIAN, rows[0], COUNT(median));
	estimates(GROUP_MIN, rows[1], COUNT(min));
}

/* ---- Generations ------------------------------------------------------------------ */

/* So that the same share can be confirmed. */
static void a_share_that_stays_is_the_same_grant(void **state)
{
	struct scene s = scene_of(GROUP_MEDIAN, 1, 1, 100);
	struct group_grant first, next;

	(void)state;
	first = beat(&s, 0, 1, (struct group_report){ .estimate = 5 });
	assert_int_equal(first.share, 5);
	for (uint64_t now = 2; now < 4; now++) {
		next = beat(&s, 0, now, (struct group_report){ .estimate = 5 });
		assert_int_equal(next.share, 5);
		assert_int_equal(next.generation, first.generation);
	}
	next = beat(&s, 0, 4, (struct group_report){ .estimate = 4 });
	assert_int_equal(next.share, 4);
	assert_true(next.generation > first.generation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_follows_what_is_busy),
		cmocka_unit_test(it_falls_no_deeper_than_what_is_busy),
		cmocka_unit_test(a_small_rise_waits_for_a_lease_after_a_fall),
		cmocka_unit_test(a_rise_above_what_was_parted_does_not_wait),
		cmocka_unit_test(each_member_has_a_slot_at_once),
		cmocka_unit_test(what_was_parted_by_other_settings_holds_nothing_up),
		cmocka_unit_test(one_node_has_what_it_estimates),
		cmocka_unit_test(an_estimate_that_falls_is_the_limit_at_once),
		cmocka_unit_test(the_limit_follows_estimates_that_change),
		cmocka_unit_test(a_share_that_stays_is_the_same_grant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
