/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * member_test.c -- when a node of a group beats, what it applies, and when it is fenced.
 *
 * Times are in milliseconds: a beat each second, leases of two, and half a second to abort.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/member.h"

static const struct member_terms terms = {
	.beat_ns = 1000000000,
	.eager_ns = 100000000,
	.lease_us = 2000000,
	.abort_ns = 500000000,
	.hold_ns = 300000000,
	.drift_ppm = 0,
	.weight = 1,
};

static mono at(uint64_t ms)
{
	return (mono){ ms * 1000000 };
}

static void expect(bool is)
{
	if (!is)
		fail();
}

static struct member new_member(void)
{
	struct member member;

	member_init(&member, &terms, 7, at(0));
	return member;
}

static const struct member_facts idle = { .in_flight = 0 };

static struct group_grant share_of(uint64_t share, uint64_t generation)
{
	return (struct group_grant){
		.share = share, .target = share, .generation = generation, .epoch = 3
	};
}

/* A beat at that instant that is answered at once. */
static enum member_news beat(struct member *member, uint64_t ms, uint64_t share,
                             uint64_t generation)
{
	struct group_grant grant = share_of(share, generation);
	struct group_report report;

	expect(member_wants_to_beat(member, at(ms)));
	report = member_report(member, at(ms), &idle);
	return member_hear(member, at(ms), report.seq, &grant);
}

static void nothing_is_admitted_before_the_first_grant(void **state)
{
	struct member member = new_member();

	(void)state;
	assert_true(member.is_fenced);
	assert_int_equal(member.share, 0);
	assert_true(member_wants_to_beat(&member, at(0)));
	assert_int_equal(beat(&member, 0, 4, 1), MEMBER_APPLY);
	assert_int_equal(member.share, 4);
	assert_false(member.is_fenced);
}

/* MEMBER-2 */
static void the_fence_comes_at_its_instant_and_once(void **state)
{
	struct member member = new_member();

	(void)state;
	(void)beat(&member, 0, 4, 1);
	assert_int_equal(member_turn(&member, at(1499)), MEMBER_SAME);
	assert_int_equal(member.share, 4);
	assert_int_equal(member_turn(&member, at(1500)), MEMBER_FENCED);
	assert_int_equal(member.share, 0);
	assert_int_equal(member_turn(&member, at(1501)), MEMBER_SAME);
}

static void the_fence_is_something_to_wake_up_for(void **state)
{
	struct member member = new_member();

	(void)state;
	(void)beat(&member, 0, 4, 1);
	(void)member_report(&member, at(1000), &idle);
	assert_int_equal(member_due(&member).ns, at(1500).ns);
}

static void it_recovers_and_is_fenced_again(void **state)
{
	struct member member = new_member();

	(void)state;
	(void)beat(&member, 0, 4, 1);
	(void)member_turn(&member, at(1500));
	/* The same grant as before is in force again. */
	assert_int_equal(beat(&member, 1600, 4, 1), MEMBER_APPLY);
	assert_int_equal(member.share, 4);
	assert_int_equal(member_turn(&member, at(3099)), MEMBER_SAME);
	assert_int_equal(member_turn(&member, at(3100)), MEMBER_FENCED);
}

static void who_beats_in_time_is_never_fenced(void **state)
{
	struct member member = new_member();

	(void)state;
	for (uint64_t ms = 0; ms < 90000; ms += 1000) {
		assert_int_equal(member_turn(&member, at(ms)), MEMBER_SAME);
		(void)beat(&member, ms, 4, 1);
	}
}

/* A clock that may run slow: the fence comes earlier by as much. */
static void drift_is_taken_off_the_lease(void **state)
{
	struct member_terms drifting = terms;
	struct member member;
	struct group_grant grant = share_of(4, 1);

	(void)state;
	drifting.drift_ppm = 10000;
	member_init(&member, &drifting, 7, at(0));
	(void)member_report(&member, at(0), &idle);
	(void)member_hear(&member, at(10), 1, &grant);
	assert_int_equal(member_turn(&member, at(1479)), MEMBER_SAME);
	assert_int_equal(member_turn(&member, at(1480)), MEMBER_FENCED);
}

/* MEMBER-3 */
static void a_beat_that_is_lost_changes_nothing_and_is_tried_again_soon(void **state)
{
	struct member member = new_member();

	(void)state;
	(void)beat(&member, 0, 4, 1);
	(void)member_report(&member, at(1000), &idle);
	member_lost(&member, at(1010), 2);
	assert_int_equal(member.share, 4);
	assert_int_equal(member.fence.ns, at(1500).ns);
	assert_false(member_wants_to_beat(&member, at(1259)));
	assert_true(member_wants_to_beat(&member, at(1260)));
}

/* MEMBER-1 */
static void what_comes_for_another_beat_is_dropped(void **state)
{
	struct member member = new_member();
	struct group_grant grant = share_of(9, 5);

	(void)state;
	(void)member_report(&member, at(0), &idle);
	assert_false(member_wants_to_beat(&member, at(5000)));
	member_lost(&member, at(1000), 1);
	assert_int_equal(member_hear(&member, at(1000), 1, &grant), MEMBER_DROPPED);
	(void)member_report(&member, at(1250), &idle);
	assert_int_equal(member_hear(&member, at(1300), 1, &grant), MEMBER_DROPPED);
	assert_int_equal(member.share, 0);
}

/* MEMBER-5 */
static void a_grant_whose_lease_is_over_is_dropped(void **state)
{
	struct member member = new_member();
	struct group_grant grant = share_of(9, 5);

	(void)state;
	(void)member_report(&member, at(0), &idle);
	assert_int_equal(member_hear(&member, at(1500), 1, &grant), MEMBER_DROPPED);
	assert_true(member.is_fenced);
}

/* MEMBER-6 */
static void what_was_under_way_when_the_fence_fell_is_dropped(void **state)
{
	struct group_grant grant = share_of(4, 2);
	struct member member = new_member();

	(void)state;
	(void)beat(&member, 0, 4, 1);
	(void)member_report(&member, at(1400), &idle); /* that 4 are held */
	assert_int_equal(member_turn(&member, at(1500)), MEMBER_FENCED);
	assert_int_equal(member_hear(&member, at(1510), 2, &grant), MEMBER_DROPPED);
	assert_true(member.is_fenced);
	assert_true(member_wants_to_beat(&member, at(1510)));
	assert_int_equal(member_report(&member, at(1510), &idle).held, 0);
}

/* MEMBER-6 */
static void an_answer_finds_a_fence_that_is_overdue(void **state)
{
	struct group_grant grant = share_of(4, 2);
	struct member member = new_member();

	(void)state;
	(void)beat(&member, 0, 4, 1);
	(void)member_report(&member, at(1400), &idle);
	assert_int_equal(member_hear(&member, at(1510), 2, &grant), MEMBER_FENCED);
	assert_int_equal(member.share, 0);
	assert_int_equal(member_hear(&member, at(1510), 2, &grant), MEMBER_DROPPED);
}

static void a_grant_that_cannot_be_is_dropped(void **state)
{
	struct member member = new_member();
	struct group_grant grant = share_of(GROUP_SLOTS_MAX + 1, 5);

	(void)state;
	(void)member_report(&member, at(0), &idle);
	assert_int_equal(member_hear(&member, at(1), 1, &grant), MEMBER_DROPPED);
	/* That beat is lost, and not the node. */
	assert_true(member_wants_to_beat(&member, at(251)));
	assert_int_equal(beat(&member, 251, 4, 6), MEMBER_APPLY);
}

static void a_node_that_does_not_leave_is_not_gone(void **state)
{
	const struct group_grant gone = { .result = GROUP_GONE };
	struct member member = new_member();

	(void)state;
	(void)beat(&member, 0, 4, 1);
	(void)member_report(&member, at(1000), &idle);
	assert_int_equal(member_hear(&member, at(1001), 2, &gone), MEMBER_DROPPED);
	assert_int_equal(member.share, 4);
	assert_int_equal(beat(&member, 1251, 4, 1), MEMBER_SAME);
}

/* MEMBER-4 */
static void a_report_names_the_grant_in_force(void **state)
{
	struct member member = new_member();
	struct member_facts facts = { .in_flight = 3, .demand = 5, .local = 2 };
	struct group_report report;

	(void)state;
	(void)beat(&member, 0, 4, 11);
	report = member_report(&member, at(1000), &facts);
	assert_int_equal(report.generation, 11);
	assert_int_equal(report.epoch, 3);
	assert_int_equal(report.held, 4);
	assert_int_equal(report.in_flight, 3);
	assert_int_equal(report.seq, 2);
	member_lost(&member, at(1000), 2);
	(void)member_turn(&member, at(1500));
	report = member_report(&member, at(1500), &facts);
	assert_int_equal(report.held, 2); /* fenced: its own limit, or 0 */
	assert_true(group_report_valid(&report));
}

/* ---- Early beats ------------------------------------------------------------------ */

static uint64_t due_ms(const struct member *member)
{
	return member->due.ns / 1000000;
}

static void what_was_applied_is_acknowledged_early(void **state)
{
	struct member member = new_member();

	(void)state;
	(void)beat(&member, 0, 4, 1);
	assert_int_equal(due_ms(&member), 0);
	(void)beat(&member, 0, 4, 1);
	assert_int_equal(due_ms(&member), 1000);
}

/* MEMBER-7: five at once, and then one in each eager_ns. */
static void early_beats_are_bounded(void **state)
{
	struct member member = new_member();
	uint64_t beats = 0;

	(void)state;
	for (uint64_t ms = 0; ms < 1000; ms++)
		while (member_wants_to_beat(&member, at(ms))) {
			beats++;
			(void)beat(&member, ms, beats % 5, beats);
		}
	assert_int_equal(beats, 5 + 9);
}

static struct member settled(uint64_t share, uint64_t target)
{
	struct member member = new_member();
	struct group_grant grant = share_of(share, 1);

	grant.target = target;
	(void)beat(&member, 0, share, 1);
	(void)member_report(&member, at(1000),
	                    &(struct member_facts){ .in_flight = 6 });
	(void)member_hear(&member, at(1000), 2, &grant);
	assert_int_equal(due_ms(&member), 2000);
	return member;
}

static void who_lacks_and_refuses_beats_early(void **state)
{
	struct member member = settled(4, 6);
	struct member_facts facts = { .in_flight = 6, .limited = true };

	(void)state;
	member_notice(&member, &facts);
	assert_int_equal(due_ms(&member), 1100);
}

static void who_has_its_part_and_refuses_does_not(void **state)
{
	struct member member = settled(6, 6);
	struct member_facts facts = { .in_flight = 6, .limited = true };

	(void)state;
	for (int i = 0; i < 50; i++)
		member_notice(&member, &facts);
	assert_int_equal(due_ms(&member), 2000);
}

static void who_has_drained_to_its_share_beats_early(void **state)
{
	struct member member = settled(4, 4);
	struct member_facts facts = { .in_flight = 5 };

	(void)state;
	member_notice(&member, &facts);
	assert_int_equal(due_ms(&member), 2000);
	facts.in_flight = 4;
	member_notice(&member, &facts);
	assert_int_equal(due_ms(&member), 1000);
}

/* ---- Nudges ----------------------------------------------------------------------- */

static uint64_t due_if_nudged(uint64_t share, uint64_t target,
                              const struct member_facts *facts,
                              struct group_nudge nudge)
{
	struct member member = settled((uint32_t)share, (uint32_t)target);

	(void)member_nudged(&member, at(1000), facts, &nudge);
	return due_ms(&member);
}

/* MEMBER-7 */
static void who_has_more_than_it_would_get_gives(void **state)
{
	const struct member_facts busy = { .in_flight = 6,
		                           .demand = 9,
		                           .limited = true };
	const struct member_facts calm = { .demand = 2 };
	const struct group_nudge give = { GROUP_GIVE, 11, 2 };
	const struct group_nudge nobody_refuses = { GROUP_GIVE, 11, 0 };

	(void)state;
	assert_int_equal(due_if_nudged(7, 7, &busy, give), 1000);
	assert_int_equal(due_if_nudged(6, 6, &busy, give), 2000); /* 5.5, rounded up */
	assert_int_equal(due_if_nudged(4, 4, &calm, give), 1000); /* 2 and 1 more */
	assert_int_equal(due_if_nudged(3, 3, &calm, give), 2000);
	assert_int_equal(due_if_nudged(11, 11, &busy, nobody_refuses), 2000);
	assert_int_equal(due_if_nudged(7, 7, &busy, (struct group_nudge){ 0 }), 2000);
}

/* GROUP-13: the beat says so.  If the answer leaves the grant as it was, that is in force again:
 * the nudge was an old one, or the share has just risen. */
static void who_gives_lowers_its_share_first(void **state)
{
	const struct member_facts busy = { .in_flight = 6,
		                           .demand = 9,
		                           .limited = true };
	const struct group_nudge give = { GROUP_GIVE, 11, 2 };
	struct member member = settled(7, 7);
	struct group_grant same = share_of(7, 1);
	struct group_report report;

	(void)state;
	assert_int_equal(member_nudged(&member, at(1000), &busy, &give), MEMBER_APPLY);
	assert_int_equal(member.share, 6);
	report = member_report(&member, at(1000), &busy);
	assert_int_equal(report.held, 6);
	assert_int_equal(report.generation, 1);
	assert_int_equal(member_hear(&member, at(1001), report.seq, &same),
	                 MEMBER_APPLY);
	assert_int_equal(member.share, 7);
}

static void who_lacks_takes(void **state)
{
	const struct group_nudge take = { GROUP_TAKE, 0, 0 },
				 give = { GROUP_GIVE, 0, 1 };

	(void)state;
	assert_int_equal(due_if_nudged(0, 6, &idle, take), 1000);
	assert_int_equal(due_if_nudged(6, 6, &idle, take), 2000);
	assert_int_equal(due_if_nudged(0, 6, &idle, give), 2000);
}

/* Whoever sends them. */
static void a_storm_of_nudges_costs_a_beat_in_each_eager_time(void **state)
{
	const struct group_nudge all = { GROUP_GIVE | GROUP_TAKE, 0, 1 };
	struct member member = settled(4, 4);
	uint64_t beats = 0;

	(void)state;
	for (uint64_t ms = 1001; ms < 2001; ms++) {
		for (int i = 0; i < 100; i++)
			(void)member_nudged(&member, at(ms), &idle, &all);
		while (member_wants_to_beat(&member, at(ms))) {
			(void)beat(&member, ms, 4, 1);
			beats++;
			(void)member_nudged(&member, at(ms), &idle, &all);
		}
	}
	assert_int_equal(beats, 4 + 10);
}

/* The store would not lower it yet, but for a new member: so the store is asked. */
static void a_share_that_has_just_risen_is_not_lowered_by_a_nudge(void **state)
{
	const struct group_nudge all = { GROUP_GIVE, 0, 1 };
	struct member member = settled(4, 4);

	(void)state;
	assert_int_equal(beat(&member, 2000, 9, 2), MEMBER_APPLY);
	assert_int_equal(beat(&member, 2000, 9, 2), MEMBER_SAME);
	assert_int_equal(member_nudged(&member, at(2299), &idle, &all), MEMBER_SAME);
	assert_int_equal(member.share, 9);
	assert_true(member_wants_to_beat(&member, at(2299)));
	assert_int_equal(member_nudged(&member, at(2300), &idle, &all), MEMBER_APPLY);
	assert_int_equal(member.share, 0);
}

/* MEMBER-7 */
static void a_nudge_whose_beat_must_wait_lowers_nothing(void **state)
{
	const struct group_nudge all = { GROUP_GIVE, 0, 1 };
	struct member member = settled(4, 4);

	(void)state;
	member.terms.hold_ns = 0;
	while (member_nudged(&member, at(1001), &idle, &all) == MEMBER_APPLY)
		(void)beat(&member, 1001, 4, 1);
	assert_int_equal(member.share, 4);
	assert_false(member_wants_to_beat(&member, at(1001)));
}

/* It may have been read before what it is nudged for. */
static void who_is_nudged_while_a_beat_is_under_way_beats_again(void **state)
{
	const struct group_nudge give = { GROUP_GIVE, 1, 1 };
	struct member member = settled(4, 4);
	struct group_grant grant = share_of(4, 1);
	struct group_report report;

	(void)state;
	report = member_report(&member, at(2000), &idle);
	assert_int_equal(member_nudged(&member, at(2000), &idle, &give), MEMBER_APPLY);
	assert_false(member_wants_to_beat(&member, at(2001)));
	assert_int_equal(member_hear(&member, at(2001), report.seq, &grant),
	                 MEMBER_APPLY);
	assert_true(member_wants_to_beat(&member, at(2001)));
}

static void who_leaves_is_not_nudged(void **state)
{
	const struct group_nudge give = { GROUP_GIVE, 0, 1 };
	struct member member = settled(4, 4);

	(void)state;
	(void)member_leave(&member, at(1000));
	(void)member_report(&member, at(1000), &idle);
	assert_int_equal(member_nudged(&member, at(1000), &idle, &give), MEMBER_SAME);
	assert_int_equal(due_ms(&member), 2000);
}

/* ---- Proofs ----------------------------------------------------------------------- */

/* A beat that is heard so many milliseconds after it was sent, and the number it is told. */
static struct group_report number(struct member *member, uint64_t ms, uint64_t after,
                                  uint64_t life, uint64_t beat)
{
	struct group_grant grant = share_of(1, 1);
	struct group_report report = member_report(member, at(ms), &idle);

	grant.life = life;
	grant.beat = beat;
	grant.lease_us = 2000000;
	(void)member_hear(member, at(ms + after), report.seq, &grant);
	return report;
}

static void expect_proof(const struct group_report *report, uint64_t life,
                         uint64_t over)
{
	if (report->life != life || report->over != over)
		fail_msg("%ju of life %ju is over", (uintmax_t)report->over,
		         (uintmax_t)report->life);
}

/* MEMBER-8: a lease counts from when the number was heard, and not from when it was asked for. */
static void a_number_is_over_a_lease_after_it_was_heard(void **state)
{
	struct member member = new_member();
	struct group_report report;

	(void)state;
	report = number(&member, 0, 400, 3, 10);
	expect_proof(&report, 0, 0);
	report = number(&member, 1000, 0, 3, 15);
	expect_proof(&report, 3, 0);
	report = number(&member, 2399, 0, 3, 20);
	expect_proof(&report, 3, 0);
	report = number(&member, 2400, 0, 3, 21);
	expect_proof(&report, 3, 0); /* that much may be rounded */
	report = number(&member, 2401, 0, 3, 22);
	expect_proof(&report, 3, 10);
	report = number(&member, 9000, 0, 3, 30);
	expect_proof(&report, 3, 22);
}

/* A clock that may run fast: a lease is over later by as much. */
static void drift_is_added_to_a_proof(void **state)
{
	struct member_terms drifting = terms;
	struct member member;
	struct group_report report;

	(void)state;
	drifting.drift_ppm = 10000;
	member_init(&member, &drifting, 7, at(0));
	(void)number(&member, 0, 0, 3, 10);
	report = number(&member, 2020, 0, 3, 11);
	expect_proof(&report, 3, 0);
	report = number(&member, 2021, 0, 3, 12);
	expect_proof(&report, 3, 10);
}

/* And so are all of its numbers. */
static void a_life_that_is_over_proves_nothing(void **state)
{
	struct member member = new_member();
	struct group_report report;

	(void)state;
	(void)number(&member, 0, 0, 3, 10);
	(void)number(&member, 2500, 0, 4, 5);
	report = number(&member, 2600, 0, 4, 6);
	expect_proof(&report, 4, 0);
	report = number(&member, 4501, 0, 4, 7);
	expect_proof(&report, 4, 5);
}

/* The fence has dropped its grant, and a late answer is as good a proof. */
static void an_answer_that_comes_too_late_is_proof_too(void **state)
{
	struct member member = new_member();
	struct group_report report;

	(void)state;
	(void)number(&member, 0, 1700, 3, 10);
	assert_true(member.is_fenced);
	report = number(&member, 3701, 0, 3, 11);
	expect_proof(&report, 3, 10);
}

/* However often it beats, it keeps few numbers, and is never behind by more than a 16th of a
 * lease. */
static void anchors_are_coarse_and_not_too_coarse(void **state)
{
	struct member member = new_member();

	(void)state;
	for (uint64_t ms = 0; ms < 20000; ms += 3) {
		struct group_report report = number(&member, ms, 0, 3, 1 + ms);

		assert_true(member.past.count <= MEMBER_ANCHORS);
		if (ms < 2200)
			continue;
		assert_in_range(report.over, ms - 2000 - 2000 / 16, ms - 2000);
	}
	assert_in_range(member.past.count, 16, 34);
}

/* Whoever beats now and then forgets none. */
static void numbers_that_are_far_apart_are_all_kept(void **state)
{
	struct member member = new_member();
	struct group_report report;

	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		(void)number(&member, i * 126, 0, 3, 1 + i);
	for (uint64_t i = 4; i < 20; i++) {
		report = number(&member, 2001 + i * 126, 0, 3, 90 + i);
		expect_proof(&report, 3, 1 + i);
	}
}

static void when_the_next_lease_is_over_it_beats(void **state)
{
	struct member member = new_member();
	struct group_grant grant = share_of(1, 1);

	(void)state;
	(void)number(&member, 0, 0, 3, 10);
	(void)number(&member, 310, 0, 3, 11);
	(void)number(&member, 1000, 0, 3, 14);
	grant.life = 3;
	grant.beat = 15;
	grant.lease_us = 2000000;
	grant.next = 11;
	(void)member_report(&member, at(1900), &idle);
	(void)member_hear(&member, at(1910), 4, &grant);
	assert_int_equal(due_ms(&member), 2310);
	assert_int_equal(member_report(&member, member_due(&member), &idle).over, 11);
	grant.next = 16; /* nobody can have been told it */
	(void)member_hear(&member, at(2320), 5, &grant);
	assert_int_equal(due_ms(&member), 3310);
}

/* It has proven that, but the store removes only so many by a beat. */
static void while_leases_that_are_over_are_next_it_beats_on(void **state)
{
	struct member member = new_member();
	struct group_grant grant = share_of(1, 1);

	(void)state;
	(void)number(&member, 0, 0, 3, 10);
	(void)number(&member, 1000, 0, 3, 12);
	grant.life = 3;
	grant.beat = 15;
	grant.lease_us = 2000000;
	assert_int_equal(member_report(&member, at(2010), &idle).over, 10);
	for (uint64_t next = 8; next <= 10; next++) {
		mono sent = member.sent;

		grant.next = next;
		(void)member_hear(&member, mono_after(sent, 1000000), member.seq,
		                  &grant);
		assert_int_equal(member_due(&member).ns, sent.ns + terms.eager_ns);
		assert_int_equal(
		    member_report(&member, member_due(&member), &idle).over, 10);
	}
}

/* ---- Leaving, and refusals -------------------------------------------------------- */

static void leaving_is_draining(void **state)
{
	struct member member = settled(6, 6);
	struct member_facts facts = { .in_flight = 2 };
	struct group_grant grant = share_of(0, 9);
	struct group_report report;

	(void)state;
	assert_int_equal(member_leave(&member, at(1200)), MEMBER_APPLY);
	assert_int_equal(member.share, 0);
	report = member_report(&member, at(1200), &facts);
	assert_int_equal(report.leaves, 1);
	assert_int_equal(report.held, 0);
	assert_int_equal(report.in_flight, 2);
	grant.share = 5; /* whatever is granted */
	(void)member_hear(&member, at(1201), report.seq, &grant);
	assert_int_equal(member.share, 0);
	facts.in_flight = 0;
	member_notice(&member, &facts);
	assert_int_equal(due_ms(&member), 1200);
	report = member_report(&member, at(1201), &facts);
	grant.result = GROUP_GONE;
	assert_int_equal(member_hear(&member, at(1202), report.seq, &grant),
	                 MEMBER_LEFT);
	assert_false(member_wants_to_beat(&member, at(9000)));
	assert_int_equal(member_due(&member).ns, UINT64_MAX);
}

static void a_refusal_leaves_the_share_until_its_fence(void **state)
{
	struct member member = settled(6, 6);
	struct group_grant grant = { .result = GROUP_DISAGREES };

	(void)state;
	(void)member_report(&member, at(2000), &idle);
	assert_int_equal(member_hear(&member, at(2001), 3, &grant), MEMBER_REFUSED);
	assert_int_equal(member.share, 6);
	assert_int_equal(member_turn(&member, at(2500)), MEMBER_FENCED);
}

static void terms_that_never_admit_are_no_terms(void **state)
{
	struct member_terms bad = terms;

	(void)state;
	assert_true(member_terms_valid(&terms));
	bad.abort_ns = 1000000000; /* the fence comes with the next beat */
	assert_false(member_terms_valid(&bad));
	bad = terms;
	bad.lease_us = 1000000; /* as long as a beat */
	assert_false(member_terms_valid(&bad));
	bad = terms;
	bad.weight = 0;
	assert_false(member_terms_valid(&bad));
	bad = terms;
	bad.eager_ns = bad.beat_ns + 1;
	assert_false(member_terms_valid(&bad));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_admitted_before_the_first_grant),
		cmocka_unit_test(the_fence_comes_at_its_instant_and_once),
		cmocka_unit_test(the_fence_is_something_to_wake_up_for),
		cmocka_unit_test(it_recovers_and_is_fenced_again),
		cmocka_unit_test(who_beats_in_time_is_never_fenced),
		cmocka_unit_test(drift_is_taken_off_the_lease),
		cmocka_unit_test(
		    a_beat_that_is_lost_changes_nothing_and_is_tried_again_soon),
		cmocka_unit_test(what_comes_for_another_beat_is_dropped),
		cmocka_unit_test(a_grant_whose_lease_is_over_is_dropped),
		cmocka_unit_test(what_was_under_way_when_the_fence_fell_is_dropped),
		cmocka_unit_test(an_answer_finds_a_fence_that_is_overdue),
		cmocka_unit_test(a_grant_that_cannot_be_is_dropped),
		cmocka_unit_test(a_node_that_does_not_leave_is_not_gone),
		cmocka_unit_test(a_report_names_the_grant_in_force),
		cmocka_unit_test(what_was_applied_is_acknowledged_early),
		cmocka_unit_test(who_lacks_and_refuses_beats_early),
		cmocka_unit_test(who_has_its_part_and_refuses_does_not),
		cmocka_unit_test(who_has_drained_to_its_share_beats_early),
		cmocka_unit_test(early_beats_are_bounded),
		cmocka_unit_test(who_has_more_than_it_would_get_gives),
		cmocka_unit_test(who_gives_lowers_its_share_first),
		cmocka_unit_test(who_lacks_takes),
		cmocka_unit_test(a_storm_of_nudges_costs_a_beat_in_each_eager_time),
		cmocka_unit_test(a_share_that_has_just_risen_is_not_lowered_by_a_nudge),
		cmocka_unit_test(a_nudge_whose_beat_must_wait_lowers_nothing),
		cmocka_unit_test(who_is_nudged_while_a_beat_is_under_way_beats_again),
		cmocka_unit_test(who_leaves_is_not_nudged),
		cmocka_unit_test(a_number_is_over_a_lease_after_it_was_heard),
		cmocka_unit_test(drift_is_added_to_a_proof),
		cmocka_unit_test(a_life_that_is_over_proves_nothing),
		cmocka_unit_test(an_answer_that_comes_too_late_is_proof_too),
		cmocka_unit_test(anchors_are_coarse_and_not_too_coarse),
		cmocka_unit_test(numbers_that_are_far_apart_are_all_kept),
		cmocka_unit_test(when_the_next_lease_is_over_it_beats),
		cmocka_unit_test(while_leases_that_are_over_are_next_it_beats_on),
		cmocka_unit_test(leaving_is_draining),
		cmocka_unit_test(a_refusal_leaves_the_share_until_its_fence),
		cmocka_unit_test(terms_that_never_admit_are_no_terms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
