/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet.c -- what a guard reports to its group, and what the group's answer does to it.
 *
 * Threads   As fleet.h says.
 */
#include "coordinator/fleet.h"

#include <inttypes.h>
#include <stdio.h>

#include "coordinator/guard.h"
#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "runtime/probe.h"

#define NEVER ((mono){ UINT64_MAX })
#define ENTER_AGAIN_NS UINT64_C(100000000)
#define DRAIN_LEAST_NS                                                                 \
	UINT64_C(1000000) /* from one look at calls that drain to the next */
#define DRAIN_PART 8      /* of the time since it was reported */

void fleet_init(struct fleet *fleet, const struct fleet_config *config, mono now)
{
	membership_init(&fleet->membership, &config->membership, now);
	fleet->post = config->post;
	fleet->membership.client = &config->post->client;
	fleet->mark = store_mark(fleet->membership.group, fleet->membership.group_len);
	fleet->outage = config->outage;
	fleet->shares_instead = config->shares_instead;
	fleet->want.noted = now;
	atomic_init(&fleet->told.fenced, 1);
}

/* ---- What is reported ------------------------------------------------------------- */

static uint32_t in_use_of(const struct guard *guard)
{
	uint32_t in_flight = slots_in_flight(turnstile_word(&guard->turnstile));
	uint32_t kept = turnstile_kept(&guard->turnstile);

	return in_flight > kept ? in_flight - kept : 0;
}

static uint64_t refused_for_share(const struct guard *guard)
{
	struct tally_sum sum;

	turnstile_sum(&guard->turnstile, &sum);
	return sum.refused[SLOTS_BY_SHARE] + sum.refused[TURNSTILE_REFUSED_CLASS];
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Of a guard that observes what it would have, did it refuse: at most its share.  So it takes
 * nothing from nodes that keep to theirs.  FLEET-4 */
static uint32_t counted(const struct guard *guard, uint32_t slots)
{
	return guard->turnstile.observes
	           ? smaller(slots, guard->fleet->membership.member.share)
	           : slots;
}

static struct member_facts facts_of(struct guard *guard, mono now)
{
	struct fleet *fleet = guard->fleet;
	struct estimate_report estimate = estimate_report(&guard->estimate);
	uint32_t in_flight =
	    counted(guard, slots_in_flight(turnstile_word(&guard->turnstile)));
	uint32_t in_use = counted(guard, in_use_of(guard));
	uint32_t demand;

	want_note(&fleet->want, in_use, refused_for_share(guard) != fleet->refused,
	          fleet->membership.member.terms.beat_ns, now);
	demand = want_demand(&fleet->want);
	return (struct member_facts){
		.in_flight = in_flight,
		.demand = demand,
		/* Nothing measured yet: what it works on now. */
		.busy = estimate.knee_ns > 0 ? estimate.busy
		                             : (uint64_t)in_use * GROUP_BUSY_ONE,
		.estimate = estimate_told(&guard->estimate),
		/* The slots that it uses and one more.  All that its law allows would be
		 * taken from others, and it uses less. */
		.local = fleet->alone
		             ? smaller(demand + 1, estimate_limit(&guard->estimate))
		             : 0,
		.limited = want_is_limited(&fleet->want),
	};
}

/* ---- What is answered ------------------------------------------------------------- */

/* The share first.  While the share of before is in force, so is its fence, and a call that has
 * entered on it just before it was fenced finds that all is late.  FLEET-2 */
static void put_in_force(struct guard *guard)
{
	struct fleet *fleet = guard->fleet;
	const struct member *member = &fleet->membership.member;
	bool fenced = member->is_fenced;
	uint64_t fence_ns = member->fence.ns;

	fleet->alone =
	    fenced && !member->leaves && fleet->outage == FLEET_GOES_ON; /* FLEET-1 */
	if (fenced)
		fence_ns = fleet->alone ? UINT64_MAX : 0;
	guard_put_share(guard, (uint16_t)member->generation,
	                fleet->alone ? SLOTS_MOST : member->share,
	                fenced && !fleet->alone);
	store_relaxed(&guard->turnstile.fence_ns, fence_ns);
	store_relaxed(&fleet->told.share, member->share);
	store_relaxed(&fleet->told.fenced, fenced);
	probe_share(fleet->membership.group, fleet->membership.group_len,
	            member->told.limit, member->share, fenced);
}

void fleet_begin(struct fleet *fleet, struct guard *guard)
{
	fleet->guard = guard;
	put_in_force(guard);
}

static const char *refusal(uint64_t result)
{
	switch (result) {
	case GROUP_NAMESAKE:
		return "another node of this node's name is in the group, or a guard "
		       "of before with calls in flight: give each node a name of its "
		       "own, and end the calls of a guard before it is opened again";
	case GROUP_DISAGREES:
		return "the group has other settings: all its nodes need the same "
		       "law, start, floor, ceiling, beat, lease, parts and "
		       "of_estimates";
	case GROUP_FULL:
		return "the group has as many nodes as it can";
	default:
		return "the store does not understand this node's reports";
	}
}

static void say_refusal(struct guard *guard, uint64_t result)
{
	if (guard->fleet->said != result && result != GROUP_GRANTED)
		guard->ops->say(guard, GALE_LEVEL_ERROR, refusal(result));
	if (guard->fleet->said != GROUP_GRANTED && result == GROUP_GRANTED)
		guard->ops->say(guard, GALE_LEVEL_INFO, "the group takes this node");
	guard->fleet->said = result;
}

static void say_fenced(struct guard *guard, bool fenced)
{
	struct fleet *fleet = guard->fleet;

	guard->ops->say(guard, fenced ? GALE_LEVEL_ERROR : GALE_LEVEL_INFO,
	                !fenced ? "has a share of its fleet's ceiling"
	                : fleet->outage == FLEET_GOES_ON
	                    ? "lost its share of the fleet's ceiling: goes on alone"
	                    : "lost its share of the fleet's ceiling: refuses all "
	                      "calls");
	if (fenced && guard->ops->fenced)
		guard->ops->fenced(guard);
}

static void plan_probe(struct guard *guard, const struct group_grant *grant, mono now)
{
	uint64_t every_us = guard->fleet->membership.beat.settings.probe_us;

	if (grant->probe_us > 0)
		estimate_probe_told(&guard->estimate, grant->probe,
		                    mono_after(now, grant->probe_us * 1000).ns,
		                    every_us * 1000);
}

static void tell(struct fleet *fleet, const struct group_grant *grant)
{
	store_relaxed(&fleet->told.limit, (uint32_t)grant->limit);
	store_relaxed(&fleet->told.members, (uint32_t)grant->members);
	store_relaxed(&fleet->told.in_flight, (uint32_t)grant->in_flight);
}

static void count(_Atomic uint64_t *counter)
{
	store_relaxed(counter, load_relaxed(counter) + 1);
}

static void follow(struct guard *guard, enum member_news news, bool was_fenced)
{
	struct fleet *fleet = guard->fleet;
	const struct member *member = &fleet->membership.member;

	put_in_force(guard);
	if (news == MEMBER_FENCED)
		count(&fleet->told.fences);
	if (news == MEMBER_FENCED || (was_fenced && !member->is_fenced))
		say_fenced(guard, member->is_fenced);
	if (news == MEMBER_REFUSED)
		say_refusal(guard, member->told.result);
}

/* Without a share, and once until a report is answered. */
static void say_lost(struct guard *guard, enum store_result result)
{
	struct fleet *fleet = guard->fleet;

	if (result != STORE_DONE && !fleet->said_lost &&
	    fleet->membership.member.is_fenced) {
		guard->ops->say(guard, GALE_LEVEL_WARNING,
		                result == STORE_FULL
		                    ? "has no share: the store is full"
		                    : "has no share: its report was not answered");
		fleet->said_lost = true;
	}
	if (result == STORE_DONE)
		fleet->said_lost = false;
}

void guard_hear(struct guard *guard, mono now)
{
	struct fleet *fleet = guard->fleet;
	struct membership *membership = &fleet->membership;
	bool was_fenced = membership->member.is_fenced;
	enum member_news news = membership_hear(membership, now);

	count(membership->failed == STORE_DONE ? &fleet->told.beats
	                                       : &fleet->told.beats_lost);
	if (news == MEMBER_APPLY || news == MEMBER_SAME) {
		if (membership->failed == STORE_DONE) {
			tell(fleet, &membership->member.told);
			estimate_group_limit(&guard->estimate,
			                     membership->member.told.limit);
			plan_probe(guard, &membership->member.told, now);
			say_refusal(guard, GROUP_GRANTED);
		}
	}
	follow(guard, news, was_fenced);
	say_lost(guard, membership->failed);
}

/* The fence first: a node that goes on alone reports what it then holds. */
void guard_beat(struct guard *guard, mono now)
{
	struct fleet *fleet = guard->fleet;
	struct member *member = &fleet->membership.member;
	uint64_t seq = member->seq;
	struct member_facts facts;

	if (member_turn(member, now) == MEMBER_FENCED)
		follow(guard, MEMBER_FENCED, /* was_fenced= */ false);
	if (!fleet->post->entered)
		return;
	facts = facts_of(guard, now);
	if (membership_send(&fleet->membership, now, &facts)) /* MEMBER-8 */
		guard_hear(guard, clock_now(fleet->post->client.home->clock));
	if (member->seq != seq)
		fleet->refused = refused_for_share(guard);
}

void guard_nudged(struct guard *guard, mono now, const struct group_nudge *nudge)
{
	struct member_facts facts = facts_of(guard, now);
	enum member_news news =
	    member_nudged(&guard->fleet->membership.member, now, &facts, nudge);

	if (news == MEMBER_APPLY)
		follow(guard, news, /* was_fenced= */ false);
}

/* No exit says that it was the last one above the share, so that is looked for: the sooner, the
 * shorter it can have been so. */
static mono drain_due(const struct fleet *fleet, mono now)
{
	const struct member *member = &fleet->membership.member;
	uint64_t after_ns = (now.ns - member->sent.ns) / DRAIN_PART;

	if (fleet->membership.with_store || !member_drains(member))
		return NEVER;
	return mono_after(now, after_ns > DRAIN_LEAST_NS ? after_ns : DRAIN_LEAST_NS);
}

/* A post without a client is tried again after a while. */
mono fleet_due(const struct fleet *fleet, mono now)
{
	mono due =
	    mono_earlier(membership_due(&fleet->membership), drain_due(fleet, now));

	return fleet->post->entered ? due
	                            : mono_later(due, mono_after(now, ENTER_AGAIN_NS));
}

bool guard_leaves(struct guard *guard, mono now)
{
	/* Before it is reported: then the share is others'. */
	if (guard->fleet &&
	    member_leave(&guard->fleet->membership.member, now) == MEMBER_APPLY)
		put_in_force(guard); /* FLEET-5 */
	return guard_has_left(guard);
}

/* FLEET-3: a store that has not been heard for a lease has given the share away. */
bool guard_has_left(const struct guard *guard)
{
	const struct member *member;

	if (!guard->fleet)
		return true;
	member = &guard->fleet->membership.member;
	return !guard->fleet->membership.with_store &&
	       (member->has_left || (member->leaves && member->is_fenced));
}

void guard_ends(struct guard *guard)
{
	if (!guard->fleet || guard->fleet->membership.member.is_fenced ||
	    in_use_of(guard) == 0)
		return;
	guard->ops->say(guard, GALE_LEVEL_ERROR,
	                "beats no more, and has calls in flight");
	if (guard->ops->fenced)
		guard->ops->fenced(guard); /* FLEET-6 */
}

/* ---- Posts ------------------------------------------------------------------------ */

/* Without an ear it hears of others at its next beats. */
static bool enter_store(struct post *post, struct store_home *home)
{
	if (!store_enter(post->store, home, &post->client))
		return false;
	if (post->store->ops->listen)
		post->ear = post->store->ops->listen(post->store, home->watch);
	return true;
}

void post_join(struct post *post, struct list *posts, struct store_home *home)
{
	if (post->members++ > 0)
		return;
	list_init(&post->fleets);
	post->entered = enter_store(post, home);
	list_append(posts, &post->place);
}

void post_enter(struct fleet *fleet, struct list *posts, struct store_home *home)
{
	post_join(fleet->post, posts, home);
	list_append(&fleet->post->fleets, &fleet->place);
}

void post_leave(struct fleet *fleet)
{
	list_remove(&fleet->place);
	post_part(fleet->post);
}

void post_part(struct post *post)
{
	if (--post->members > 0)
		return;
	if (post->ear)
		post->store->ops->unlisten(post->ear);
	if (post->entered)
		store_leave(&post->client);
	post->ear = NULL;
	post->entered = false;
	list_remove(&post->place);
}

mono post_turn(struct post *post, struct store_home *home, mono now)
{
	if (!post->entered)
		post->entered = enter_store(post, home);
	if (post->ear)
		post->store->ops->hear(post->ear, home->nudges);
	if (!post->entered || !post->client.desk)
		return NEVER;
	return post->client.store->ops->turn(&post->client, now);
}
