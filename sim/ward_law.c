/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* ward_law.c -- slots at the backend, leases by true time, and generations. */
#include "sim/ward_law.h"

#include <inttypes.h>
#include <string.h>

#include "sim/must.h"

/* ---- What was granted ------------------------------------------------------------ */

static struct ward_guard *guard_of(const struct ward *ward, uint64_t incarnation)
{
	struct ward_guard *guard = ward->guards;

	while (guard && guard->incarnation != incarnation)
		guard = guard->next;
	return guard;
}

/* SIM-12 */
static void check_grant(struct ward *ward, const struct ward_guard *guard,
                        const struct group_grant *now)
{
	const struct group_grant *before = &guard->granted;

	if (before->generation == 0 || before->epoch != now->epoch)
		return;
	if (now->generation < before->generation ||
	    (now->generation == before->generation && now->share != before->share))
		ward_fault(ward,
		           "node %u: generation %" PRIu64 " with share %" PRIu64
		           " follows %" PRIu64 " with %" PRIu64,
		           guard->node->number, now->generation, now->share,
		           before->generation, before->share);
}

static uint64_t period_of(const struct ward *ward)
{
	return ward->agenda.now_us / (2 * ward->plan.lease_us);
}

static void turn_period(const struct ward *ward, struct ward_group *group)
{
	uint64_t period = period_of(ward);

	if (group->period == period)
		return;
	group->most_before = group->period + 1 == period ? group->most : 0;
	group->most = 0;
	group->period = period;
}

static bool is_plain(const struct ward *ward, uint32_t group)
{
	return group > 0 || (ward->plan.law == GALE_FIXED && !ward->plan.disagrees);
}

/* Of a group whose nodes disagree, the one that comes first has another limit. */
static void note_limit(struct ward *ward, uint32_t number)
{
	struct ward_group *group = &ward->groups[number];
	const struct group *kept = ward_kept(ward, number);
	uint64_t most = kept->limit;

	if (number == 0 && ward->plan.disagrees && most < kept->reserved)
		most = kept->reserved;
	turn_period(ward, group);
	if (group->most < most)
		group->most = most;
}

/* SIM-15 */
static void note_fall(struct ward_group *group, const struct group *kept)
{
	group->falls += kept->limit < group->limit || kept->epoch != group->epoch;
	group->limit = kept->limit;
	group->epoch = kept->epoch;
}

/* SIM-15: while the store may have forgotten, the others may have more than it knows. */
static uint64_t falls_before(const struct ward *ward, uint32_t number)
{
	const struct group *kept = ward_kept(ward, number);

	return kept->over < kept->quiet ? UINT64_MAX : ward->groups[number].falls;
}

void ward_law_beaten(struct ward *ward, const struct remote_job *job,
                     const struct remote_told *told)
{
	struct ward_guard *guard = guard_of(ward, job->beat->report.incarnation);
	struct store_beat beat = *job->beat;

	must(guard);
	must(remote_explain_beat(told, &beat) == STORE_DONE);
	must(groups_valid(ward->station.groups));
	ward->beats++;
	ward_trace(
	    ward,
	    "node %u group %u reports %" PRIu64 " of %" PRIu64 ", number %" PRIu64
	    ", limited %" PRIu64 ", leaves %" PRIu64 ": result %" PRIu64
	    ", share %" PRIu64 " of %" PRIu64 ", generation %" PRIu64,
	    guard->node->number, guard->group, beat.report.in_flight, beat.report.held,
	    beat.report.seq, beat.report.limited, beat.report.leaves, beat.grant.result,
	    beat.grant.share, beat.grant.limit, beat.grant.generation);
	note_limit(ward, guard->group);
	note_fall(&ward->groups[guard->group], ward_kept(ward, guard->group));
	if (beat.grant.result != GROUP_GRANTED)
		return;
	check_grant(ward, guard, &beat.grant);
	guard->granted = beat.grant;
	guard->granted_falls = falls_before(ward, guard->group);
	guard->lease_ends_us =
	    ward->agenda.now_us + ward->plan.lease_us - ward->plan.beat_us;
}

/* ---- What is in flight ----------------------------------------------------------- */

static uint64_t bound_of(const struct ward *ward, struct ward_group *group)
{
	turn_period(ward, group);
	return group->most > group->most_before ? group->most : group->most_before;
}

static void check_lease(struct ward *ward, const struct ward_guard *guard) /* SIM-10 */
{
	uint64_t now = ward->agenda.now_us;

	if (now + ward->plan.abort_us > guard->lease_ends_us)
		ward_fault(ward,
		           "node %u group %u: a call is let in %" PRIu64
		           " us before its lease ends, %" PRIu64 " us too late",
		           guard->node->number, guard->group,
		           guard->lease_ends_us > now ? guard->lease_ends_us - now : 0,
		           now + ward->plan.abort_us - guard->lease_ends_us);
}

static void check_fall(struct ward *ward, struct ward_guard *guard) /* SIM-15 */
{
	const struct ward_group *group = &ward->groups[guard->group];

	if ((guard->group == 0 && ward->plan.disagrees) ||
	    guard->granted_falls != group->falls ||
	    ward_counts(guard).share > guard->granted.share ||
	    group->in_flight <= group->limit)
		return;
	ward_fault(ward,
	           "group %u: %" PRIu64
	           " in flight with a call of node %u, whose share "
	           "was granted since the limit fell to %" PRIu64,
	           guard->group, group->in_flight, guard->node->number, group->limit);
}

void ward_law_enters(struct ward *ward, const struct ward_call *call)
{
	uint32_t number = call->guard->group;
	struct ward_group *group = &ward->groups[number];
	uint64_t bound;

	ward->entries++;
	if (call->is_exempt)
		return;
	check_lease(ward, call->guard);
	group->in_flight += call->slots;
	if (group->worst < group->in_flight)
		group->worst = group->in_flight;
	bound = is_plain(ward, number) ? ward->plan.ceiling + number
	                               : bound_of(ward, group);
	if (group->in_flight > bound) /* SIM-9 */
		ward_fault(ward,
		           "group %u: %" PRIu64 " in flight, limit %" PRIu64
		           ", with node %u's",
		           number, group->in_flight, bound, call->guard->node->number);
	check_fall(ward, call->guard);
}

void ward_law_leaves(struct ward *ward, const struct ward_call *call)
{
	struct ward_group *group = &ward->groups[call->guard->group];

	if (call->is_exempt)
		return;
	must(group->in_flight >= call->slots);
	group->in_flight -= call->slots;
}
