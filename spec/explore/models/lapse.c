/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lapse.c -- stores of a group that forget, or fall back to an old copy.
 *
 * For a lease afterwards the store grants no node more than that has in force: by then all
 * that was granted before is over, or has been reported.
 *
 * Shipped   group.c at the store, member.c at the nodes: see fleet.h.
 * Spec      spec/Group.tla: the same states, but for copy.
 */
#include "spec/explore/models/fleet.h"

enum {
	N,
	LIMIT,
	LETTERS,
	TWICE,
	LEASE,
	LIVES,
	FORGETS,
	COPY,
	LOWER,
	WAS,
	PROOFS,
	QUIET,
	LOST,
	EPOCH,
	LONGEST,
	OWN
};

static const struct constant constants[] = {
	{ "nodes", 1, FLEET_NODES, 2, "" },
	{ "limit", 1, 20, 1, "" },
	{ "mail", 1, MAIL, 1, "messages under way, of each node" },
	{ "twice", 0, 1, 0, "they may be delivered again" },
	{ "lease", 1, 8, 2, "ticks" },
	{ "lives", 1, 3, 1, "of each node" },
	{ "forgets", 0, 3, 1, "of the store" },
	{ "copy", 0, 1, 0, "it may fall back to a copy, too" },
	{ "lower", 0, 1, 0, "nodes lower their shares by themselves (GROUP-13)" },
	{ "was", 0, 7, 0,
	  "ticks: the lease when the only copy was made, below lease; 0: the same" },
	{ "proofs", NEVER_PROVEN, PROVEN_LATE, PROVEN_AT_ONCE,
	  "guard at 0: nodes prove that leases are over (GROUP-4): at once (1), or "
	  "late, "
	  "lost, or of a life before (2)" },
	{ "quiet", 0, 1, 1,
	  "guard at 0: it grants nothing more for a lease (GROUP-7)" },
	{ "lost", 0, 1, 1,
	  "guard at 0: a beat is lost when the fence falls (MEMBER-6)" },
	{ "epoch", 0, 1, 1, "guard at 0: a grant is confirmed by its epoch, too" },
	{ "longest", 0, 1, 1,
	  "guard at 0: the longest lease that is heard of counts (GROUP-10)" },
	{ "own", 0, 1, 1, "guard at 0: a proof of another life is none (GROUP-10)" },
	{ NULL, 0, 0, 0, NULL },
};

static const char *open(const long *c)
{
	if (c[WAS] > 0 && (!c[COPY] || c[WAS] >= c[LEASE]))
		return "was is of a copy, and below lease";
	fleet_terms = (struct fleet_terms){
		.nodes = (int)c[N],
		.limit = (int)c[LIMIT],
		.mail = (int)c[LETTERS],
		.twice = (int)c[TWICE],
		.lease = (int)c[LEASE],
		.lives = (int)c[LIVES],
		.forgets = (int)c[FORGETS],
		.copy = (int)c[COPY],
		.lower = (int)c[LOWER],
		.was = (int)c[WAS],
		.quiet = c[QUIET],
		.lost = c[LOST],
		.epoch = c[EPOCH],
		.longest = c[LONGEST],
		.own_life = c[OWN],
		.proofs = (enum fleet_proofs)c[PROOFS],
		.high = true,
		.held = true,
		.flight = true,
		.one = true,
		.seq = true,
		.drain = true,
		.cap = true,
		.turn = true,
		.sent = true,
		.life = true,
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
	return c[QUIET] && c[LOST] && c[LONGEST] && c[OWN] ? fleet_broken(at) : NULL;
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
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	(void)c;
	fleet_print(at, out);
}

const struct model lapse_model = {
	.name = "lapse",
	.about = "shares granted by a store that forgets, or falls back to a copy",
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
