/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet.h -- nodes of a queue that share one ceiling: beats to a store, and what it grants.
 *
 * The store runs engine/group.h, each node engine/member.h.  A message is on its way for 0.5 to
 * 3 ms.  A law that is not of the library has no shares: there each node is alone, as it is
 * where it comes from.
 *
 * Invariants  NODES-1  What is in flight is never above the largest limit of the last two
 *                      leases. (H1)
 *
 * Threads   One.
 */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include "engine/group.h"
#include "engine/member.h"
#include "engine/want.h"
#include "sim/queue.h"

/* How the nodes' probes lie in time. */
enum fleet_probes {
	FLEET_PROBES_TOGETHER,
	FLEET_PROBES_APART, /* each node at an instant of its own between two of the store */
	FLEET_PROBES_ALONE, /* as guards that are alone do */
};

enum fleet_leg {
	LEG_NONE,
	LEG_TO_STORE,
	LEG_TO_NODE,
};

struct fleet_node {
	struct member member;
	struct group_member record; /* at the store */
	struct group_report report;
	struct group_grant grant;
	enum fleet_leg leg;
	uint64_t arrives_ns;
	struct group_nudge nudge; /* under way to it, if .whom is not 0 */
	uint64_t nudged_ns;
	struct want want;
	uint64_t probe;   /* number of the last that it was told */
	uint64_t refused; /* at the last report */
	uint64_t limit;   /* L, when its share was granted */
	uint64_t granted; /* what was parted, in the last answer */
	uint64_t parted;  /* the same, when its share was granted */
	uint64_t rises;   /* of its share, from settled_ns on */
	uint64_t moves;   /* those of them that L did not make: of its part of L */
	uint64_t takes; /* those that what is parted did not make: from another node */
};

struct fleet {
	enum fleet_probes probes;
	uint64_t settled_ns; /* when rises are counted from */
	struct group group;
	struct group_estimates estimates;
	struct fleet_node nodes[QUEUE_NODES];
	struct chance chance;
	uint64_t lease;             /* how many were over before this one */
	uint64_t most, most_before; /* of L, in this lease and in the one before */
	uint64_t over;              /* admissions beyond that: NODES-1 */
};

#define FLEET_BEAT_NS UINT64_C(1000000000)
#define FLEET_LEASE_US UINT64_C(4000000)
#define FLEET_HOLD_US UINT64_C(4000000)

extern const struct queue_fleet fleet_of_nodes;

#endif
