/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * group.c -- what a beat of a node comes to at the store.
 *
 * A member's numbers are taken out of the group's sums, changed, and put in again.  While
 * they are out, group->reserved is what the others may have in flight.
 *
 * How L is parted by demand: a node that refuses nothing claims what it uses and one slot
 * more; while no node lacks, it may have its even part all the same, for calls that come at
 * once.  The others are hungry, and divide by weight what is left.  A claim above the part
 * that its node would have as a hungry one counts as hungry, so a busy node cannot keep its
 * share from one that comes later.  From beat to beat this fills up evenly, as water does
 * (max-min fairness).
 */
#include "engine/group.h"

#include <assert.h>
#include <string.h>

#include "engine/check.h"

#define WORD_MAX ((UINT64_C(1) << 53) - 1)
#define EXACT 32          /* estimates below are buckets of their own */
#define STEPS 16          /* buckets of an octave above */
#define NUDGED_MEMBERS 64 /* more of them are nudged less often */
#define NUDGES_A_LEASE 64 /* of a kind, at most */
#define RISES_BY 6        /* at once by such a part of what is parted */
/* So long after the store has forgotten, a group of which it knows nothing is new. */
#define KEPT_US GROUP_TIME_MAX_US

static_assert(
    sizeof(struct group_settings) == GROUP_SETTINGS_WORDS * sizeof(uint64_t) &&
	sizeof(struct group) == GROUP_WORDS * sizeof(uint64_t) &&
	sizeof(struct group_member) == GROUP_MEMBER_WORDS * sizeof(uint64_t) &&
	sizeof(struct group_report) == GROUP_REPORT_WORDS * sizeof(uint64_t) &&
	sizeof(struct group_grant) == GROUP_GRANT_WORDS * sizeof(uint64_t),
    "words alone");

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t clamp(uint64_t x, uint64_t least, uint64_t most)
{
	return larger(least, smaller(x, most));
}

bool group_settings_valid(const struct group_settings *s)
{
	return s->law <= GROUP_MIN && s->parts <= GROUP_EQUAL && s->floor >= 1 &&
	       s->start >= s->floor && s->start <= s->ceiling &&
	       s->ceiling <= GROUP_SLOTS_MAX && s->lease_us >= 1 &&
	       s->lease_us <= GROUP_TIME_MAX_US && s->hold_us <= GROUP_TIME_MAX_US &&
	       s->rotate_us >= 1 && s->rotate_us <= GROUP_TIME_MAX_US &&
	       s->probe_us <= GROUP_TIME_MAX_US;
}

bool group_report_valid(const struct group_report *r)
{
	return r->incarnation >= 1 && r->incarnation <= WORD_MAX && r->seq >= 1 &&
	       r->seq <= WORD_MAX && r->epoch <= WORD_MAX &&
	       r->generation <= WORD_MAX && r->held <= GROUP_SLOTS_MAX &&
	       r->in_flight <= GROUP_SLOTS_MAX && r->weight >= 1 &&
	       r->weight <= GROUP_WEIGHT_MAX && r->demand <= GROUP_SLOTS_MAX &&
	       r->life <= WORD_MAX && r->over <= WORD_MAX &&
	       r->busy <= (uint64_t)GROUP_SLOTS_MAX * GROUP_BUSY_ONE &&
	       r->estimate <= GROUP_SLOTS_MAX && r->limited <= 1 && r->leaves <= 1;
}

/* ---- Estimates ------------------------------------------------------------------- */

static unsigned bucket_of(uint64_t estimate)
{
	unsigned octave;

	if (estimate < EXACT)
		return (unsigned)estimate;
	octave = 63 - (unsigned)__builtin_clzll(estimate);
	return EXACT + (octave - 5) * STEPS +
	       ((unsigned)(estimate >> (octave - 4)) - STEPS);
}

static uint64_t least_of_bucket(unsigned bucket)
{
	unsigned above = bucket - EXACT;

	if (bucket < EXACT)
		return bucket;
	return (uint64_t)(STEPS + above % STEPS) << (above / STEPS + 1);
}

static void count_estimate(struct group_estimates *estimates,
                           const struct group_member *member, int by)
{
	if (estimates != NULL && member->estimate > 0)
		estimates->members[member->estimate - 1] += (uint32_t)by;
}

/* The estimate that so many others are below; 0 if no member has one. */
static uint64_t estimate_at(const struct group_estimates *estimates, bool median)
{
	uint64_t all = 0;
	uint64_t below = 0;

	for (unsigned i = 0; i < GROUP_BUCKETS; i++)
		all += estimates->members[i];
	for (unsigned i = 0; i < GROUP_BUCKETS; i++) {
		below += estimates->members[i];
		if (below > (median ? (less(all, 1)) / 2 : 0))
			return least_of_bucket(i);
	}
	return 0;
}

/* ---- Sums ------------------------------------------------------------------------ */

uint64_t group_reserve(const struct group_member *member)
{
	return larger(larger(member->share, member->high), member->in_flight);
}

/* GROUP-1 */
static void take_out(struct group *group, struct group_estimates *estimates,
                     const struct group_member *member)
{
	gale_assert(group->reserved >= group_reserve(member));
	group->reserved -= group_reserve(member);
	group->weights -= member->weight;
	group->busy -= member->busy;
	group->limited -= member->limited;
	group->hungry -= member->hungry;
	group->claimed -= member->claim;
	group->lacking -= member->lacks;
	group->in_flight -= member->in_flight;
	count_estimate(estimates, member, -1);
}

static void put_in(struct group *group, struct group_estimates *estimates,
                   const struct group_member *member)
{
	group->reserved += group_reserve(member);
	group->weights += member->weight;
	group->busy += member->busy;
	group->limited += member->limited;
	group->hungry += member->hungry;
	group->claimed += member->claim;
	group->lacking += member->lacks;
	group->in_flight += member->in_flight;
	count_estimate(estimates, member, 1);
}

/* ---- The group as a whole -------------------------------------------------------- */

static bool is_quiet(const struct group *group)
{
	return group->over < group->quiet;
}

/* No two reports have one incarnation and one seq, and so no two lives a name: what may have been
 * done is never sent again (CLIENT-2). */
static uint64_t life_of(const struct group_report *report)
{
	uint64_t left = WORD_MAX - report->seq;

	return report->incarnation > left ? report->incarnation - left
	                                  : report->incarnation + report->seq;
}

/* GROUP-10: it has a number of its own, which is larger than all that a copy knows of. */
static void begin_life(struct group *group, const struct group_report *report,
                       uint64_t lease_us, bool is_quiet)
{
	group->life = life_of(report);
	group->lasts_us = is_quiet ? larger(group->lasts_us, lease_us) : lease_us;
	group->beats++;
	group->over = 0;
	group->quiet = is_quiet ? group->beats : 0;
}

/* GROUP-10: a node has, or may have, a share that lasts longer than the life's lease. */
static bool hears_of_longer(const struct group *group,
                            const struct group_report *report, uint64_t lease_us)
{
	return lease_us > group->lasts_us &&
	       (is_quiet(group) || report->generation > 0);
}

/* GROUP-4 */
static void hear_proof(struct group *group, const struct group_report *report)
{
	if (report->life == group->life && report->over <= group->beats)
		group->over = larger(group->over, report->over);
}

/* GROUP-11 */
static void see_grants_it_never_made(struct group *group,
                                     const struct group_report *report)
{
	if (group->generation == 0 && report->generation > 0 && !is_quiet(group))
		group->quiet = ++group->beats;
}

enum group_result group_begin(struct group *group,
                              const struct group_settings *settings,
                              const struct group_report *report, uint64_t now_us,
                              uint64_t forgot_us)
{
	bool agrees = memcmp(&group->settings, settings, sizeof(*settings)) == 0;
	bool is_new = group->life == 0;
	bool forgot = forgot_us != group->epoch;
	bool is_longer;

	if (!group_settings_valid(settings))
		return GROUP_WRONG;
	hear_proof(group, report);
	is_longer = !is_new && hears_of_longer(group, report, settings->lease_us);
	if (forgot || is_new || is_longer || (!agrees && group->members == 0))
		begin_life(group, report, settings->lease_us,
		           is_quiet(group) || is_longer ||
		               (forgot && (!is_new || now_us < forgot_us + KEPT_US)));
	if (!agrees && group->members == 0) {
		group->settings = *settings;
		group->limit =
		    settings->law == GROUP_FIXED ? settings->ceiling : settings->start;
		group->parted = group->limit;
		group->highest = group->parted;
		agrees = true;
	}
	see_grants_it_never_made(group, report);
	group->epoch = smaller(forgot_us, WORD_MAX);
	group->now_us = smaller(now_us, WORD_MAX);
	group->nudge = 0;
	return agrees ? GROUP_GRANTED : GROUP_DISAGREES;
}

bool group_expired(const struct group *group, const struct group_member *member)
{
	return member->beat <= group->over; /* GROUP-4 */
}

bool group_is_reporter(const struct group_member *member,
                       const struct group_report *report)
{
	return member->incarnation == report->incarnation && member->seq <= report->seq;
}

void group_remove(struct group *group, struct group_estimates *estimates,
                  const struct group_member *member)
{
	gale_assert(group->members > 0);
	take_out(group, estimates, member);
	group->members--;
}

/* The largest root whose square is at most x. */
static uint64_t root(uint64_t x)
{
	uint64_t low = 0;

	for (uint64_t bit = UINT64_C(1) << 26; bit > 0; bit >>= 1)
		if ((low + bit) * (low + bit) <= x)
			low += bit;
	return low;
}

/*
 * The slots that are busy at the knee, four times their spread (by chance, so many calls
 * more may come at a time), and one for each member, since shares are whole numbers.
 */
static uint64_t limit_by_sum(const struct group *group, uint64_t members)
{
	return group->busy / GROUP_BUSY_ONE +
	       root(group->busy / (GROUP_BUSY_ONE / 16)) + members;
}

static bool has_just_fallen(const struct group *group)
{
	return group->now_us - group->lowered_us < group->settings.lease_us;
}

/* Parted slots are not to rise to so many yet (GROUP-16). */
static bool rise_waits(const struct group *group, uint64_t members, uint64_t to)
{
	return has_just_fallen(group) && to <= group->highest &&
	       (to - group->parted) * RISES_BY < group->parted &&
	       members <= group->parted;
}

/* L falls by at most an eighth in each quarter of a lease: nodes that have joined have
 * measured nothing yet.  The shares fall first (GROUP-15). */
static void follow_sum(struct group *group, uint64_t members, uint64_t to)
{
	bool may_fall =
	    group->now_us - group->lowered_us >= group->settings.lease_us / 4;

	if (may_fall)
		group->limit = group->parted;
	if (to > group->parted && !rise_waits(group, members, to)) {
		group->parted = to;
	} else if (to < group->parted && group->limited > 0 && may_fall) {
		if (!has_just_fallen(group) || group->parted > group->highest)
			group->highest = group->parted;
		group->parted = larger(to, group->parted - (group->parted + 7) / 8);
		group->lowered_us = group->now_us;
	}
	group->limit = larger(group->limit, group->parted);
}

static void set_limit(struct group *group, const struct group_estimates *estimates,
                      uint64_t members)
{
	const struct group_settings *s = &group->settings;
	uint64_t to = s->ceiling;

	if (s->law == GROUP_SUM) {
		follow_sum(group, members,
		           clamp(limit_by_sum(group, members), s->floor, s->ceiling));
		return;
	}
	if (s->law != GROUP_FIXED) {
		to = estimate_at(estimates, s->law == GROUP_MEDIAN);
		if (to == 0)
			return;
	}
	group->limit = clamp(to, s->floor, s->ceiling);
	group->parted = group->limit;
}

/* ---- Parts ----------------------------------------------------------------------- */

/* slots * weight / weights; what does not divide is given to one after the other.  Each part is
 * rounded by itself: where weights differ, all parts together may for one turn come to some slots
 * less than there are, or to more, which GROUP-2 cuts off. */
static uint64_t part_of(const struct group *group, const struct group_member *self,
                        uint64_t members, uint64_t slots, uint64_t weights)
{
	uint64_t turn = group->now_us / group->settings.rotate_us;
	uint64_t rank = (self->position + turn % members) % members;
	uint64_t whole = slots * self->weight / weights;
	uint64_t rest = slots * self->weight % weights;

	return whole + (rank * weights < rest * members ? 1 : 0);
}

/* Says what self claims, too. */
static uint64_t target_by_demand(const struct group *group, struct group_member *self,
                                 uint64_t members, uint64_t demand)
{
	uint64_t part =
	    part_of(group, self, members, less(group->parted, group->claimed),
	            group->hungry + self->weight);
	bool hungry = self->limited || demand + 1 > part;

	self->hungry = hungry ? self->weight : 0;
	self->claim = hungry ? 0 : demand + 1;
	if (hungry)
		return self->limited ? part : smaller(part, demand + 1);
	if (group->lacking > 0)
		return self->claim;
	return larger(self->claim,
	              part_of(group, self, members, group->parted, group->weights));
}

/* A share is not lowered by parts when no other member lacks, but by what all have above what is
 * parted (GROUP-15).  One that its node is in want of is not lowered for others soon after it
 * rose, either; but those that have joined since need not wait. */
static uint64_t share_by_demand(const struct group *group,
                                const struct group_member *self, uint64_t target)
{
	bool is_held = self->hungry > 0 &&
	               group->now_us - self->raised_us < group->settings.hold_us &&
	               group->joined_us <= self->raised_us;
	uint64_t gives = less(group->reserved + self->share, group->parted);

	if (!is_held)
		gives = larger(gives, group->lacking);
	return larger(target, less(self->share, gives));
}

/* ---- Nudges ---------------------------------------------------------------------- */

/* All that are told in a lease are as many whatever the number of members. */
static bool may_nudge(const struct group *group, uint64_t last_us)
{
	uint64_t pause_us = group->settings.lease_us /
	                    (NUDGED_MEMBERS * NUDGES_A_LEASE) *
	                    (NUDGED_MEMBERS + group->members);

	return !is_quiet(group) && group->now_us - last_us >= pause_us; /* GROUP-12 */
}

/* Self lacked so many slots before its beat. */
static void nudge_to_give(struct group *group, const struct group_member *self,
                          uint64_t lacked)
{
	bool is_short = self->lacks > 1 || (self->lacks > 0 && self->share == 0 &&
	                                    group->members <= group->parted);

	if (self->lacks > lacked && is_short)
		group->wanting = 1;
	if (group->lacking == 0)
		group->wanting = 0;
	if (group->wanting == 0 || !may_nudge(group, group->give_us))
		return;
	group->nudge |= GROUP_GIVE;
	group->give_us = group->now_us;
	group->wanting = 0;
}

/* Others lack so many slots, and so many are reserved. */
static void nudge_to_take(struct group *group, uint64_t lacking, uint64_t reserved)
{
	if (lacking == 0 || reserved >= group->parted ||
	    !may_nudge(group, group->take_us))
		return;
	group->nudge |= GROUP_TAKE;
	group->take_us = group->now_us;
}

static void nudge_others(struct group *group, const struct group_member *self,
                         uint64_t lacked)
{
	nudge_to_give(group, self, lacked);
	nudge_to_take(group, group->lacking - self->lacks, group->reserved);
}

struct group_nudge group_nudge(const struct group *group)
{
	bool equal = group->settings.parts == GROUP_EQUAL;

	if (group->nudge == 0)
		return (struct group_nudge){ 0 };
	return (struct group_nudge){
		.whom = group->nudge,
		.slots = equal ? group->parted : less(group->parted, group->claimed),
		.weights = equal ? group->weights : group->hungry,
	};
}

/* ---- A beat ---------------------------------------------------------------------- */

static struct group_grant grant_of(const struct group *group,
                                   const struct group_member *self,
                                   enum group_result result)
{
	return (struct group_grant){
		.result = result,
		.share = self->share,
		.generation = self->generation,
		.epoch = group->epoch,
		.target = self->share + self->lacks,
		.limit = group->limit,
		.members = group->members,
		.in_flight = group->in_flight,
		.lacking = group->lacking,
		.life = group->life,
		.beat = group->beats,
		.lease_us = group->lasts_us,
	};
}

struct group_grant group_refusal(const struct group *group, enum group_result result)
{
	return (struct group_grant){
		.result = result,
		.life = group->life,
		.beat = group->beats,
		.lease_us = group->lasts_us,
	};
}

/* All members' clocks hear of the same instants, which come at a beat of their own. */
static void tell_probe(const struct group *group, struct group_grant *grant)
{
	uint64_t every = group->settings.probe_us;
	uint64_t number;
	uint64_t jitter;

	if (every == 0 || group->settings.law != GROUP_SUM)
		return;
	number = group->now_us / every + 1;
	jitter = every / 4 * (number % 65536 * 40503 % 65536) / 65536;
	grant->probe = number;
	grant->probe_us = number * every + jitter - group->now_us;
}

static void tell_next(const struct group *group, const struct group_member *self,
                      uint64_t next, struct group_grant *grant)
{
	if (is_quiet(group))
		grant->next = group->quiet;
	else if (self->lacks + self->limited > 0)
		grant->next = next;
}

/* What the report says of the node. */
static void hear(const struct group *group, struct group_member *self,
                 const struct group_report *report)
{
	/* GROUP-3, GROUP-13 */
	bool applied = report->epoch == group->epoch &&
	               report->generation == self->generation && self->generation > 0;

	self->high = larger(applied ? 0 : self->high, report->held);
	self->incarnation = report->incarnation;
	self->seq = report->seq;
	self->beat = group->beats;
	self->in_flight = report->in_flight;
	self->weight = report->leaves ? 0 : report->weight;
	self->busy = report->leaves ? 0 : report->busy;
	self->limited = report->leaves ? 0 : report->limited;
	self->estimate = report->leaves || report->estimate == 0 ||
	                         group->settings.law == GROUP_FIXED ||
	                         group->settings.law == GROUP_SUM
	                     ? 0
	                     : 1 + bucket_of(report->estimate);
}

static void grant(struct group *group, struct group_member *self, uint64_t share)
{
	self->high = larger(self->high, share);
	if (share == self->share && self->generation > 0)
		return;
	if (share > self->share)
		self->raised_us = group->now_us;
	/* Never one that was given out before, even by a group that was forgotten. */
	group->generation = larger(group->generation + 1, group->now_us);
	self->generation = group->generation;
	self->share = share;
}

static struct group_grant refuse_namesake(const struct group *group,
                                          const struct group_member *self)
{
	struct group_grant refusal = group_refusal(group, GROUP_NAMESAKE);

	refusal.next = self->beat;
	return refusal;
}

static struct group_grant leave(struct group *group, const struct group_member *self)
{
	nudge_to_take(group, group->lacking - self->lacks,
	              group->reserved - group_reserve(self));
	return (struct group_grant){ .result = GROUP_GONE };
}

struct group_grant group_beat(struct group *group, struct group_estimates *estimates,
                              struct group_member *self,
                              const struct group_report *report, uint64_t next_beat)
{
	bool is_new = self->incarnation == 0;
	bool is_namesake = !is_new && self->incarnation != report->incarnation;
	struct group_member next = { .position = self->position };
	struct group_grant grant_told;
	uint64_t members = group->members + (is_new ? 1 : 0);
	uint64_t lacked = is_new || is_namesake ? 0 : self->lacks;
	uint64_t target = 0, share;

	if (!group_report_valid(report))
		return (struct group_grant){ .result = GROUP_WRONG };
	if (is_namesake && !group_expired(group, self)) /* GROUP-6 */
		return refuse_namesake(group, self);
	if (!is_new && !is_namesake && report->seq <= self->seq) /* GROUP-5 */
		return report->seq == self->seq ? grant_of(group, self, GROUP_STALE)
		                                : refuse_namesake(group, self);
	if (report->leaves && report->in_flight == 0) /* GROUP-8 */
		return leave(group, self);
	if (members > GROUP_MEMBERS_MAX)
		return group_refusal(group, GROUP_FULL);
	group->beats++; /* GROUP-10 */

	if (is_new)
		next.position = group->members;
	else
		take_out(group, estimates, self);
	if (!is_new && !is_namesake)
		next = *self;
	if (is_new || is_namesake)
		group->joined_us = group->now_us;
	group->members = members;
	hear(group, &next, report);

	/* L needs all that was heard, and parts of it need L. */
	group->weights += next.weight;
	group->busy += next.busy;
	group->limited += next.limited;
	count_estimate(estimates, &next, 1);
	set_limit(group, estimates, members);
	next.hungry = 0;
	next.claim = 0;
	if (next.weight > 0 && group->settings.parts == GROUP_EQUAL)
		target = part_of(group, &next, members, group->parted, group->weights);
	else if (next.weight > 0)
		target = target_by_demand(group, &next, members, report->demand);
	group->weights -= next.weight;
	group->busy -= next.busy;
	group->limited -= next.limited;
	count_estimate(estimates, &next, -1);

	share = group->settings.parts == GROUP_EQUAL || next.weight == 0
	            ? target
	            : share_by_demand(group, &next, target);
	/* GROUP-2, GROUP-14 */
	share = smaller(share, less(group->limit, group->reserved));
	if (is_quiet(group))
		share = smaller(share, report->held); /* GROUP-7 */
	grant(group, &next, share);
	/* What it might use at most is nothing that others have to give. */
	next.lacks = less(next.claim > 0 ? next.claim : target, share);
	*self = next;
	put_in(group, estimates, self);
	nudge_others(group, self, lacked);
	grant_told = grant_of(group, self, GROUP_GRANTED);
	grant_told.target = target;
	tell_next(group, self, next_beat, &grant_told);
	tell_probe(group, &grant_told);
	return grant_told;
}
