/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * crash.c -- nodes of a group that die, begin anew under their name, or stop for longer than
 * a lease, while clocks drift.
 *
 * A node fences itself a tick before the store may give its share to others, and what it
 * has at the backend ends within that tick.
 *
 * Shipped   group.c at the store, member.c and mono_until at the nodes: see fleet.h.
 * Spec      spec/Group.tla: the same states, but for lives, stop and drift.
 */
#include "spec/explore/models/fleet.h"

enum {
	N,
	LIMIT,
	LETTERS,
	TWICE,
	LEASE,
	DRIFT,
	ABORT,
	LIVES,
	STAYS,
	STOP,
	LOWER,
	PROOFS,
	MARGIN,
	TOLD,
	TURN,
	SENT,
	LIFE,
	EARLY,
};

static const struct constant constants[] = {
	{ "nodes", 1, FLEET_NODES, 2, "" },
	{ "limit", 1, 20, 1, "" },
	{ "mail", 1, MAIL, 1, "messages under way, of each node" },
	{ "twice", 0, 1, 0, "they may be delivered again" },
	{ "lease", 2, 8, 2, "ticks" },
	{ "drift", 0, 2, 0, "quarters of a tick that clocks gain or lose in one" },
	{ "abort", 0, 1, 1, "ticks that calls go on after a fence or a death" },
	{ "lives", 1, 3, 1, "of each node" },
	{ "stays", 0, 1, 0, "the first node does not die" },
	{ "stop", 0, 1, 0, "nodes stop, and go on" },
	{ "lower", 0, 1, 0, "nodes lower their shares by themselves (GROUP-13)" },
	{ "proofs", NEVER_PROVEN, PROVEN_LATE, PROVEN_AT_ONCE,
	  "guard at 0: nodes prove that leases are over (GROUP-4): at once (1), or "
	  "late, "
	  "or the proof is lost (2)" },
	{ "margin", 0, 1, 1, "guard at 0: nodes reckon with the drift (MEMBER-2)" },
	{ "told", 0, 1, 1,
	  "guard at 0: and with the time that calls go on (MEMBER-2)" },
	{ "turn", 0, 1, 1, "guard at 0: a fence falls at its instant (MEMBER-2)" },
	{ "sent", 0, 1, 1, "guard at 0: a lease counts from the sending (MEMBER-2)" },
	{ "life", 0, 1, 1, "guard at 0: a namesake waits (GROUP-6)" },
	{ "early", 0, 1, 0,
	  "guard off: the store ends leases a tick too early (GROUP-4)" },
	{ NULL, 0, 0, 0, NULL },
};

static const char *open(const long *c)
{
	fleet_terms = (struct fleet_terms){
		.nodes = (int)c[N],
		.limit = (int)c[LIMIT],
		.mail = (int)c[LETTERS],
		.twice = (int)c[TWICE],
		.lease = (int)c[LEASE],
		.drift = (int)c[DRIFT],
		.abort = (int)c[ABORT],
		.lives = (int)c[LIVES],
		.stays = (int)c[STAYS],
		.stop = (int)c[STOP],
		.lower = (int)c[LOWER],
		.proofs = (enum fleet_proofs)c[PROOFS],
		.told_drift = c[MARGIN] ? (int)c[DRIFT] : 0,
		.told_abort = c[TOLD] ? (int)c[ABORT] : 0,
		.turn = c[TURN],
		.sent = c[SENT],
		.life = c[LIFE],
		.early = (int)c[EARLY],
		.high = true,
		.held = true,
		.flight = true,
		.one = true,
		.seq = true,
		.drain = true,
		.cap = true,
		.quiet = true,
		.epoch = true,
		.lost = true,
		.longest = true,
		.own_life = true,
	};
	return NULL;
}

static void begin(const long *c, struct walk *walk)
{
	(void)c;
	fleet_begin(walk);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	(void)c;
	fleet_next(at, walk);
}

static const char *broken(const long *c, const void *at)
{
	bool guarded =
	    c[MARGIN] && c[TOLD] && c[TURN] && c[SENT] && c[LIFE] && !c[EARLY];

	return guarded ? fleet_broken(at) : NULL;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

static long found(const long *c, const void *at)
{
	(void)c;
	return fleet_found(at);
}

/* The slots of a node that is gone for good come back: the first has them all.  Where it may die, too,
 * that says nothing. */
static bool is_back(const long *c, const void *at)
{
	const struct fleet *fleet = at;
	const struct node *first = &fleet->nodes[0];

	for (int n = 1; n < c[N]; n++)
		if (fleet->nodes[n].life > 0 || fleet->nodes[n].lives < c[LIVES])
			return true;
	return first->life == 0 || first->share == c[LIMIT];
}

/* Each node that runs has its part, and all of L is theirs. */
static bool is_parted(const long *c, const void *at)
{
	const struct fleet *fleet = at;
	long shares = 0;
	int running = 0;

	for (int n = 0; n < c[N]; n++) {
		const struct node *node = &fleet->nodes[n];

		if (node->life == 0)
			continue;
		if (node->share < c[LIMIT] / c[N])
			return false;
		shares += node->fenced ? 0 : node->share;
		running++;
	}
	return running == 0 || shares == c[LIMIT];
}

static const struct goal goals[] = {
	{ "parted", REACHABLE, is_parted },
	{ "back", REACHABLE, is_back },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	(void)c;
	fleet_print(at, out);
}

const struct model crash_model = {
	.name = "crash",
	.about = "shares of nodes that die, begin anew, or stop, by clocks that drift",
	.constants = constants,
	.goals = goals,
	.size = sizeof(struct fleet),
	.open = open,
	.begin = begin,
	.next = next,
	.broken = broken,
	.bound = bound,
	.found = found,
	.print = print,
};
