/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * member.c -- when a node beats, what it applies, and when it fences itself.
 *
 * A beat is early (not beat_ns after the last one) for four reasons: the node refuses calls
 * and has less than its part; it has drained down to a share that was lowered, which frees
 * slots for others; it has applied a grant that the store reserves for until it knows; the
 * store has nudged it.  In a group where nothing changes there is none of the four.
 */
#include "engine/member.h"

#include <string.h>

#include "engine/check.h"

#define END_OF_TIME ((mono){ UINT64_MAX })
#define AT_ONCE 4 /* early beats that do not wait */
#define PARTS 16  /* of a lease: anchors are not closer */
#define WORD_MAX ((UINT64_C(1) << 53) - 1)

static uint64_t lasts_ns(const struct member_terms *terms)
{
	mono end =
	    mono_until((mono){ 0 }, (lasting){ terms->lease_us }, terms->drift_ppm);

	return end.ns > terms->abort_ns ? end.ns - terms->abort_ns : 0;
}

bool member_terms_valid(const struct member_terms *terms)
{
	return terms->eager_ns >= 1 && terms->eager_ns <= terms->beat_ns &&
	       terms->lease_us >= 1 && terms->lease_us <= GROUP_TIME_MAX_US &&
	       terms->drift_ppm < 1000000 && terms->weight >= 1 &&
	       terms->weight <= GROUP_WEIGHT_MAX && lasts_ns(terms) > terms->beat_ns;
}

void member_init(struct member *member, const struct member_terms *terms,
                 uint64_t incarnation, mono now)
{
	gale_assert(member_terms_valid(terms) && incarnation > 0);
	*member = (struct member){
		.terms = *terms,
		.incarnation = incarnation,
		.is_fenced = true,
		.fence = END_OF_TIME,
		.due = now,
	};
}

/* ---- Proofs ---------------------------------------------------------------------- */

/* MEMBER-8: by a clock that runs fast, a lease has passed in true time. */
static mono proven_at(const struct member *member, mono heard)
{
	uint64_t us = member->past.lease_us;

	return mono_after(heard, us * 1000 + us * member->terms.drift_ppm / 1000 + 1);
}

static void let_pass(struct member *member, mono now)
{
	struct member_past *past = &member->past;
	uint32_t passed = 0;

	while (passed < past->count &&
	       mono_reached(now, proven_at(member, past->anchors[passed].heard)))
		past->over = past->anchors[passed++].beat;
	past->count -= passed;
	memmove(past->anchors, past->anchors + passed,
	        past->count * sizeof(past->anchors[0]));
}

/* The last one gives way if it is close to the one before: so two that are neighbours are as
 * far from each other as two answers were, or closer than a 16th of a lease. */
static void drop_anchor(struct member *member, mono now, uint64_t beat)
{
	struct member_past *past = &member->past;
	struct member_anchor *last = past->anchors + past->count;
	uint64_t part_ns = past->lease_us * 1000 / PARTS;

	if (past->count >= 1 && last[-1].beat >= beat)
		return;
	if (past->count == MEMBER_ANCHORS ||
	    (past->count >= 2 &&
	     !mono_reached(now, mono_after(last[-2].heard, part_ns))))
		last--;
	*last = (struct member_anchor){ beat, now };
	past->count = (uint32_t)(last - past->anchors) + 1;
}

static void note_number(struct member *member, mono now,
                        const struct group_grant *grant)
{
	if (grant->life == 0)
		return;
	if (grant->life != member->past.life)
		member->past = (struct member_past){ .life = grant->life,
			                             .lease_us = grant->lease_us };
	let_pass(member, now);
	drop_anchor(member, now, grant->beat);
}

/* When it will have proven that this number is over, as it may have long since: many that died at
 * once are not all removed by one beat. */
static mono over_at(const struct member *member, uint64_t beat)
{
	const struct member_past *past = &member->past;

	if (beat <= past->over)
		return (mono){ 0 };
	for (uint32_t i = 0; i < past->count; i++)
		if (past->anchors[i].beat >= beat)
			return proven_at(member, past->anchors[i].heard);
	return END_OF_TIME;
}

/* ---- Beats ----------------------------------------------------------------------- */

bool member_wants_to_beat(const struct member *member, mono now)
{
	return !member->under_way && !member->has_left &&
	       mono_reached(now, member->due);
}

/* MEMBER-7 */
static void beat_early(struct member *member)
{
	uint64_t ahead_ns = AT_ONCE * member->terms.eager_ns;
	mono soon = member->sent;

	if (member->calm.ns > ahead_ns)
		soon = mono_later(soon, (mono){ member->calm.ns - ahead_ns });
	if (member->seq > 0)
		member->due = mono_earlier(member->due, soon);
}

/* Who asks again and again waits each time. */
static void beat_again(struct member *member)
{
	if (member->seq > 0)
		member->due = mono_earlier(
		    member->due, mono_after(member->sent, member->terms.eager_ns));
}

struct group_report member_report(struct member *member, mono now,
                                  const struct member_facts *facts)
{
	gale_assert(!member->under_way && !member->has_left); /* MEMBER-1 */
	let_pass(member, now);
	member->under_way = true;
	member->sent = now;
	member->due = mono_after(now, member->terms.beat_ns);
	member->calm =
	    mono_after(mono_later(member->calm, now), member->terms.eager_ns);
	member->reported_in_flight = facts->in_flight;
	member->seq++;
	/* MEMBER-4 */
	return (struct group_report){
		.incarnation = member->incarnation,
		.seq = member->seq,
		.epoch = member->epoch,
		.generation = member->generation,
		.held = member->is_fenced ? facts->local : member->share,
		.in_flight = facts->in_flight,
		.weight = member->terms.weight,
		.demand = facts->demand,
		.busy = facts->busy,
		.estimate = facts->estimate,
		.limited = facts->limited,
		.leaves = member->leaves,
		.life = member->past.life,
		.over = member->past.over,
	};
}

mono member_gives_up(const struct member *member)
{
	return member->under_way ? mono_after(member->sent, member->terms.beat_ns)
	                         : END_OF_TIME;
}

mono member_due(const struct member *member)
{
	mono due = member->is_fenced ? END_OF_TIME : member->fence;

	if (!member->under_way && !member->has_left)
		due = mono_earlier(due, member->due);
	return due;
}

void member_lost(struct member *member, mono now, uint64_t seq)
{
	mono again = mono_after(now, member->terms.beat_ns / 4);

	if (!member->under_way || seq != member->seq)
		return;
	member->under_way = false; /* MEMBER-3 */
	member->due = mono_earlier(member->due, again);
}

/* ---- The fence ------------------------------------------------------------------- */

static enum member_news fence(struct member *member)
{
	member->is_fenced = true;
	member->share = 0;
	member->fence = END_OF_TIME;
	if (member->under_way) {
		member->under_way = false; /* MEMBER-6 */
		beat_early(member);
	}
	return MEMBER_FENCED;
}

/* MEMBER-2 */
static bool must_fence(const struct member *member, mono now)
{
	return !member->is_fenced && mono_reached(now, member->fence);
}

enum member_news member_turn(struct member *member, mono now)
{
	return must_fence(member, now) ? fence(member) : MEMBER_SAME;
}

/* ---- Answers --------------------------------------------------------------------- */

/* A share that was lowered since is raised again, if the grant is still the latest. */
static enum member_news apply(struct member *member, mono now,
                              const struct group_grant *grant)
{
	uint32_t share = member->leaves ? 0 : (uint32_t)grant->share;
	bool same = !member->is_fenced && member->epoch == grant->epoch &&
	            member->generation == grant->generation && member->share == share;

	member->is_fenced = false;
	member->epoch = grant->epoch;
	member->generation = grant->generation;
	member->target = (uint32_t)grant->target;
	if (same)
		return MEMBER_SAME;
	if (share > member->share)
		member->held_until = mono_after(now, member->terms.hold_ns);
	member->share = share;
	beat_early(member); /* the store reserves the larger of two until it knows */
	return MEMBER_APPLY;
}

static bool is_believable(const struct member *member, const struct group_grant *grant)
{
	return grant->share <= GROUP_SLOTS_MAX && grant->target <= GROUP_SLOTS_MAX &&
	       grant->result <= GROUP_WRONG && grant->life <= WORD_MAX &&
	       grant->beat <= WORD_MAX && grant->lease_us <= GROUP_TIME_MAX_US &&
	       (grant->life == 0 || grant->lease_us >= 1) &&
	       (grant->result != GROUP_GONE || member->leaves);
}

enum member_news member_hear(struct member *member, mono now, uint64_t seq,
                             const struct group_grant *grant)
{
	mono until;

	if (seq == member->seq && is_believable(member, grant))
		note_number(member, now, grant);
	if (must_fence(member, now)) /* the timer is late */
		return fence(member);
	if (!member->under_way || seq != member->seq || !is_believable(member, grant)) {
		member_lost(member, now, seq);
		return MEMBER_DROPPED; /* MEMBER-1 */
	}
	member->under_way = false;
	member->told = *grant;
	if (grant->result == GROUP_GONE) {
		member->has_left = true;
		member->is_fenced = true;
		member->share = 0;
		return MEMBER_LEFT;
	}
	if (grant->next > 0)
		member->due = mono_earlier(
		    member->due,
		    mono_later(over_at(member, grant->next),
		               mono_after(member->sent, member->terms.eager_ns)));
	if (grant->result != GROUP_GRANTED && grant->result != GROUP_STALE)
		return MEMBER_REFUSED;
	until.ns = member->sent.ns + lasts_ns(&member->terms);
	if (mono_reached(now, until)) /* MEMBER-5 */
		return MEMBER_DROPPED;
	member->fence = until;
	return apply(member, now, grant);
}

/* ---- What makes it beat early ---------------------------------------------------- */

bool member_drains(const struct member *member)
{
	return !member->has_left && member->reported_in_flight > member->share;
}

void member_notice(struct member *member, const struct member_facts *facts)
{
	bool lacks = facts->limited && member->share < member->target;
	bool drained = member_drains(member) && facts->in_flight <= member->share;

	if (member->under_way || member->has_left)
		return;
	if (lacks && !member->is_fenced)
		beat_again(member);
	if (drained || (member->leaves && facts->in_flight == 0))
		beat_early(member);
}

/* The share that it would be granted now, rounded up. */
static uint64_t would_have(const struct member *member,
                           const struct member_facts *facts,
                           const struct group_nudge *nudge)
{
	uint64_t share = nudge->slots;

	if (nudge->weights > 0)
		share = (nudge->slots * member->terms.weight + nudge->weights - 1) /
		        nudge->weights;
	return !facts->limited && facts->demand < share ? facts->demand + 1 : share;
}

/* What is too much is given up before the beat, so that one beat frees it: the store need not
 * hear first that a lower grant is in force.  Of a storm of nudges most change nothing: what a
 * beat cannot tell at once stays in force.  A share that has just risen waits for the store's
 * word, as that knows whether there is a new member.  GROUP-13, MEMBER-7 */
enum member_news member_nudged(struct member *member, mono now,
                               const struct member_facts *facts,
                               const struct group_nudge *nudge)
{
	uint64_t enough = would_have(member, facts, nudge);
	bool gives = (nudge->whom & GROUP_GIVE) && member->share > enough;
	bool takes = (nudge->whom & GROUP_TAKE) && member->share < member->target;

	if ((!gives && !takes) || member->has_left || member->leaves)
		return MEMBER_SAME;
	beat_early(member);
	if (!gives || !mono_reached(now, member->due) ||
	    !mono_reached(now, member->held_until))
		return MEMBER_SAME;
	member->share = (uint32_t)enough;
	return MEMBER_APPLY;
}

enum member_news member_leave(struct member *member, mono now)
{
	if (member->leaves)
		return MEMBER_SAME;
	member->leaves = true;
	member->share = 0;
	member->due = now;
	return MEMBER_APPLY;
}
