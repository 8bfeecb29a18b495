/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * handoff.c -- shares of a group over a network that loses, delays, doubles and reorders.
 *
 * No time passes: no lease ends, and a node beats whenever it likes.  Nodes may leave, and
 * L may shrink, by the estimates that they report, or once by itself.
 *
 * Shipped   group.c at the store, member.c at the nodes: see fleet.h.
 * Spec      spec/Group.tla: the same states, but for leave, more mail, and low without once.
 */
#include "spec/explore/models/fleet.h"

enum {
	N,
	LIMIT,
	LETTERS,
	TWICE,
	LEAVE,
	LOWER,
	LOW,
	HIGH,
	HELD,
	FLIGHT,
	TORN,
	ONE,
	SEQ,
	DRAIN,
	CAP,
	KEEPS,
	ONCE
};

static const struct constant constants[] = {
	{ "nodes", 1, FLEET_NODES, 2, "" },
	{ "limit", 1, 20, 2, "" },
	{ "mail", 1, MAIL, 1, "messages under way, of each node" },
	{ "twice", 0, 1, 0, "they may be delivered again" },
	{ "leave", 0, 1, 0, "nodes leave" },
	{ "lower", 0, 1, 0, "nodes lower their shares by themselves (GROUP-13)" },
	{ "low", 0, 20, 0, "an estimate that nodes may report, to which L shrinks" },
	{ "high", 0, 1, 1,
	  "guard at 0: what was granted earlier and is not confirmed is reserved "
	  "(GROUP-3)" },
	{ "held", 0, 1, 1, "guard at 0: what is in force is reported" },
	{ "flight", 0, 1, 1, "guard at 0: what is in flight is reported" },
	{ "torn", 0, 1, 0,
	  "guard off: what is in flight was read earlier than the share (MEMBER-4)" },
	{ "one", 0, 1, 1,
	  "guard at 0: a node takes the answer to its latest report alone (MEMBER-1)" },
	{ "seq", 0, 1, 1, "guard at 0: an old report changes nothing (GROUP-5)" },
	{ "drain", 0, 1, 1,
	  "guard at 0: who leaves reports what it has in flight (GROUP-8)" },
	{ "cap", 0, 1, 1,
	  "guard at 0: what others are reserved is taken off (GROUP-2)" },
	{ "keeps", KEEPS_NOTHING, KEEPS_LESS, KEEPS_NOTHING,
	  "guard off: when L falls, a node keeps its part (1), or its part less what "
	  "others have in flight above their shares (2)" },
	{ "once", 0, 1, 0, "L falls to low once, and not by estimates" },
	{ NULL, 0, 0, 0, NULL },
};

static const char *open(const long *c)
{
	if (c[LOW] > c[LIMIT])
		return "low is above the limit";
	if (c[ONCE] && c[LOW] == 0)
		return "L cannot fall to 0";
	fleet_terms = (struct fleet_terms){
		.nodes = (int)c[N],
		.limit = (int)c[LIMIT],
		.low = (int)c[LOW],
		.mail = (int)c[LETTERS],
		.twice = (int)c[TWICE],
		.lives = 1,
		.leave = (int)c[LEAVE],
		.lower = (int)c[LOWER],
		.high = c[HIGH],
		.held = c[HELD],
		.flight = c[FLIGHT],
		.torn = c[TORN],
		.one = c[ONE],
		.seq = c[SEQ],
		.drain = c[DRAIN],
		.cap = c[CAP],
		.keeps = (enum shelf_keeps)c[KEEPS],
		.once = (int)c[ONCE],
		.turn = true,
		.sent = true,
		.life = true,
		.quiet = true,
		.epoch = true,
		.lost = true,
		.longest = true,
		.own_life = true,
		.proofs = PROVEN_AT_ONCE,
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
	const struct fleet *fleet = at;
	bool guarded =
	    c[HELD] && c[FLIGHT] && !c[TORN] && c[ONE] && c[SEQ] && c[DRAIN] && c[CAP];

	if (!guarded)
		return NULL;
	if (shelf_reserved(&fleet->shelf) > fleet->cap)
		return "reserved";
	if (is_above(fleet))
		return "above";
	return fleet_broken(fleet);
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

/* Each node that has not left has its part of L, and who leaves has left. */
static bool is_parted(const long *c, const void *at)
{
	const struct fleet *fleet = at;

	for (int n = 0; n < c[N]; n++)
		if (fleet->nodes[n].leaves ||
		    (fleet->nodes[n].life > 0 &&
		     fleet->nodes[n].share < fleet->shelf.limit / c[N]))
			return false;
	return true;
}

static const struct goal goals[] = {
	{ "parted", REACHABLE, is_parted },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	(void)c;
	fleet_print(at, out);
}

const struct model handoff_model = {
	.name = "handoff",
	.about = "shares that are handed on over a network that loses and reorders",
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
