/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet.h -- a guard that shares its ceiling with the guards of other nodes.
 *
 * Guards of one name that beat at one store are a group, and have one ceiling together.
 * The grant that a guard gets becomes its share, the least of its ceilings or one of them.
 *
 *     post     a store at which guards of this runtime beat, and funds (fund.h) claim: one client
 *              for all of them
 *     fleet    a guard's membership of its group, and what it reports
 *
 * Invariants
 *
 *   FLEET-1  Before the first grant and from the fence on, nothing enters unless the guard's
 *            config lets it go on alone.  (H5)
 *   FLEET-2  A call that reads its clock at the fence or later does not enter, whether or not
 *            the coordinator has had a turn since, or is in the midst of one.  (H5)
 *   FLEET-3  A guard that is closed is a member until its last call has ended, or its store
 *            has not been heard for a lease.  (H2)
 *   FLEET-4  A guard that observes reports at most its share as in flight: what it has above
 *            it is taken from no other node.
 *   FLEET-5  A guard that leaves lets nothing in from before its report of that on: neither when
 *            it is closed nor when its runtime is.  (H1)
 *   FLEET-6  Where a runtime ends before a guard's calls, the host is told as at the fence: the
 *            share is others' when the lease is over.  (H2)
 *
 * Threads   The coordinator's, but guard_join: the guard's opener.  told: any reads it.
 */
#ifndef COORDINATOR_FLEET_H
#define COORDINATOR_FLEET_H

#include "coordinator/membership.h"
#include "engine/want.h"
#include "runtime/list.h"

struct guard;

/* In the handle of a store, all zero; the coordinator's while it has members. */
struct post {
	struct store *store;
	struct store_client client;
	struct store_ear *ear; /* NULL: the client hears nudges itself, or none come */
	struct list place;     /* among the coordinator's */
	struct list fleets;    /* that are its members; funds are, too */
	uint32_t members;
	bool entered; /* the client is one */
};

enum fleet_outage {
	FLEET_STOPS,
	FLEET_GOES_ON, /* with what the node has learned by itself */
};

struct fleet_config {
	struct membership_config membership;
	struct post *post;
	enum fleet_outage outage;
	bool
	    shares_instead; /* the law is the group's: the share is all that a node is told */
};

struct fleet {
	struct membership membership;
	struct post *post;
	struct guard *guard;
	struct list place; /* among its post's */
	uint64_t mark;     /* of its group: nudges have it */
	enum fleet_outage outage;
	bool shares_instead;
	bool alone; /* the fence is up, and it goes on */
	struct want want;
	uint64_t refused; /* for want of share, as was reported */
	uint64_t said;    /* the refusal that was logged last; GROUP_GRANTED: none */
	bool said_lost;   /* that a report was not answered */

	/* Any thread reads these. */
	struct {
		_Atomic uint32_t share, limit, members, in_flight;
		_Atomic uint32_t fenced;
		_Atomic uint64_t beats, beats_lost, fences;
	} told;
};

void fleet_init(struct fleet *fleet, const struct fleet_config *config, mono now);

/* The guard is new: nothing enters yet.  (FLEET-1) */
void fleet_begin(struct fleet *fleet, struct guard *guard);

/* The node's own estimate does not limit it.  NULL is no fleet. */
static inline bool fleet_has_limit(const struct fleet *fleet)
{
	return fleet && fleet->shares_instead && !fleet->alone;
}

static inline struct fleet *fleet_of_call(struct store_call *call)
{
	return (struct fleet *)((char *)membership_of(call) -
	                        offsetof(struct fleet, membership));
}

/* When it wants a turn. */
mono fleet_due(const struct fleet *fleet, mono now);

/* Runs the fence and the beat that are due; the guard's ceilings follow. */
void guard_beat(struct guard *guard, mono now);
/* Its beat has been answered, or was lost. */
void guard_hear(struct guard *guard, mono now);
/* The store has nudged the group: it may want to beat now. */
void guard_nudged(struct guard *guard, mono now, const struct group_nudge *nudge);
/* From now on nothing enters.  True: it has left, and can be dropped. */
bool guard_leaves(struct guard *guard, mono now);
bool guard_has_left(const struct guard *guard);
/* The runtime ends, and the guard beats no more. */
void guard_ends(struct guard *guard);

/* ---- Posts ------------------------------------------------------------------------ */

/* A user of it comes and goes; without memory for a client it is tried again in post_turn. */
void post_join(struct post *post, struct list *posts, struct store_home *home);
void post_part(struct post *post);
/* The same of a fleet, which hears nudges. */
void post_enter(struct fleet *fleet, struct list *posts, struct store_home *home);
void post_leave(struct fleet *fleet);
/* Sends and receives; when it wants to be called again. */
mono post_turn(struct post *post, struct store_home *home, mono now);

#endif
