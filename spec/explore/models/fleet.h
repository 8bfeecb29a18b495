/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet.h -- nodes of a group, their store, and the messages between them, in a small world.
 *
 * Each node has a member (engine/member.h) and calls at a backend; the store has a shelf.
 * Reports and answers lie in the node's mail until they are delivered or lost, in any
 * order; what is delivered may stay, and be delivered again.
 *
 *     node --report--> mail --> shelf --answer--> mail --> node
 *
 * In a world without a lease no time passes.  Else the store counts ticks, and a node's
 * clock goes on by QUARTERS in a tick, or by drift quarters less or more, as it likes.
 * What a node has at the backend when its fence falls or it dies ends a tick later (.dying,
 * .zombies), whether it runs or not: the time that the host must keep to.
 *
 * Numbers have no bound: a node's sequence numbers and generations are renamed after each
 * step so that they keep their order, which is all that is looked at.
 *
 * Shipped   group_begin, group_beat, group_remove, group_expired; member_report,
 *           member_hear, member_lost, member_turn, member_leave, member_nudged.
 *
 * Threads   Pure: any; what open wrote is constant.
 */
#ifndef SPEC_EXPLORE_MODELS_FLEET_H
#define SPEC_EXPLORE_MODELS_FLEET_H

#include "engine/member.h"
#include "spec/explore/models/shelf.h"

#define FLEET_NODES 2
#define MAIL 3
#define QUARTERS 4
#define QUARTER_NS (1000 * SHELF_TICK_US / QUARTERS)

/* The world, and what is left out of it, by what a model's constants say. */
enum fleet_proofs {
	NEVER_PROVEN,   /* without a guard */
	PROVEN_AT_ONCE, /* by each report that is read */
	PROVEN_LATE,    /* a proof may be lost, late, or of a life before */
};

struct fleet_terms {
	int nodes;
	int limit;
	int low;  /* an estimate that makes L shrink; 0: L is fixed */
	int once; /* L falls to low by itself, once: nodes have no estimates */
	enum shelf_keeps keeps;
	int mail;
	int twice; /* what is delivered may be so again */
	int lease; /* ticks; 0: no time passes */
	int drift;
	int abort; /* a tick that calls go on after the fence; 0: they end at once */
	int lives; /* of a node */
	int stays; /* the first node does not die */
	int stop;
	int leave;
	int lower; /* nodes are nudged, and lower their shares by themselves */
	int forgets;
	int copy;
	int was; /* ticks: the lease when the store was copied; 0: the same */
	enum fleet_proofs proofs;
	/* Guards. */
	bool high, held, flight, torn, one, seq, drain, cap, turn, sent, life, quiet,
	    epoch, lost, longest, own_life;
	int told_drift, told_abort, early;
};

enum letter_kind { NO_LETTER, REPORT, ANSWER };

struct letter {
	uint8_t kind;
	uint8_t life;
	uint8_t seq;
	uint8_t epoch;
	uint8_t generation;
	uint8_t share; /* held, or granted */
	uint8_t in_flight;
	uint8_t estimate;
	uint8_t leaves;
	uint8_t result;
	uint8_t fell;
};

struct node {
	uint8_t life; /* 0: it does not run */
	uint8_t lives;
	uint8_t seq;
	uint8_t epoch;
	uint8_t generation;
	uint8_t share;
	uint8_t fell;      /* L has, since this share was granted ... */
	uint8_t fell_kept; /* ... and since that was which the store granted last */
	uint8_t under_way;
	uint8_t fenced;
	uint8_t leaves;
	uint8_t stopped;
	uint8_t age;  /* quarters since it has sent, by its clock */
	uint8_t rest; /* quarters until its fence, the same */
	uint8_t in_flight;
	uint8_t dying;   /* more calls, that were there when the fence fell */
	uint8_t zombies; /* more, of an earlier life */
	uint8_t ends;    /* ticks until those two have ended */
	uint8_t read;    /* torn: 1 + what was in flight when it last looked */
	struct letter mail[MAIL];
};

struct fleet {
	struct node nodes[FLEET_NODES];
	struct shelf shelf;
	struct shelf copy;
	uint8_t epoch; /* how often the store has forgotten */
	uint8_t cap;   /* what L was, until less is reserved */
};

static struct fleet_terms fleet_terms;

static inline struct shelf_world fleet_world(const struct fleet *fleet)
{
	const struct fleet_terms *t = &fleet_terms;

	return (struct shelf_world){
		.settings =
		    shelf_settings(t->low > 0 ? GROUP_MIN : GROUP_FIXED, GROUP_EQUAL,
		                   t->limit, t->lease > 0 ? t->lease - t->early : 1),
		.epoch = fleet->epoch,
		.uncapped = !t->cap,
		.keeps = (uint8_t)t->keeps,
		.restless = !t->quiet,
		.by_settings = !t->longest,
		.any_life = !t->own_life,
	};
}

/* ---- What all must be, to be told apart ------------------------------------------ */

struct names {
	uint8_t *at[3 + MAIL];
	int count;
};

static inline void rename_all(struct names *names)
{
	uint8_t was[3 + MAIL];

	for (int i = 0; i < names->count; i++)
		was[i] = *names->at[i];
	for (int i = 0; i < names->count; i++) {
		uint8_t rank = was[i] > 0;

		for (int k = 0; k < names->count; k++) {
			bool first = was[k] > 0 && was[k] < was[i];

			for (int j = 0; j < k && first; j++)
				first = was[j] != was[k];
			rank = (uint8_t)(rank + first);
		}
		*names->at[i] = rank;
	}
}

static inline void add_name(struct names *names, bool is, uint8_t *number)
{
	if (is)
		names->at[names->count++] = number;
}

static inline void rename_of_life(struct fleet *fleet, int n, uint8_t life)
{
	struct node *node = &fleet->nodes[n];
	struct names names = { .count = 0 };

	add_name(&names, node->life == life, &node->seq);
	add_name(&names, fleet->shelf.rows[n].life == life, &fleet->shelf.rows[n].seq);
	add_name(&names, fleet->copy.rows[n].life == life, &fleet->copy.rows[n].seq);
	for (int i = 0; i < MAIL; i++)
		add_name(&names, node->mail[i].kind && node->mail[i].life == life,
		         &node->mail[i].seq);
	rename_all(&names);
}

static inline void sort_mail(struct node *node)
{
	for (int i = 1; i < MAIL; i++)
		for (int k = i; k > 0; k--) {
			struct letter *a = &node->mail[k - 1], *b = &node->mail[k];
			struct letter kept = *a;

			if (memcmp(a, b, sizeof(*a)) >= 0)
				break;
			*a = *b;
			*b = kept;
		}
}

/* An answer that will be dropped is as good as lost. */
static inline void drop_answers(struct node *node)
{
	for (int i = 0; i < MAIL; i++) {
		struct letter *m = &node->mail[i];

		if (m->kind == ANSWER && fleet_terms.one &&
		    (m->life != node->life || m->seq != node->seq || !node->under_way))
			*m = (struct letter){ 0 };
	}
}

static inline void fleet_take(const struct fleet *before, struct fleet *fleet,
                              enum step_kind kind, const char *says, int a, int b,
                              struct walk *walk)
{
	if (fleet->epoch == fleet_terms.forgets)
		memset(&fleet->copy, 0, sizeof(fleet->copy));
	for (int n = 0; n < fleet_terms.nodes; n++) {
		struct node *node = &fleet->nodes[n];
		struct names names = { .count = 0 };

		drop_answers(node);
		for (uint8_t life = 1; life <= fleet_terms.lives; life++)
			rename_of_life(fleet, n, life);
		add_name(&names, true, &node->generation);
		add_name(&names, true, &fleet->shelf.rows[n].generation);
		add_name(&names, true, &fleet->copy.rows[n].generation);
		for (int i = 0; i < MAIL; i++)
			add_name(&names, true, &node->mail[i].generation);
		rename_all(&names);
		sort_mail(node);
	}
	if (memcmp(before, fleet, sizeof(*fleet)) != 0)
		step(walk, fleet, kind, says, a, b);
}

static inline uint8_t next_generation(const struct fleet *fleet, int n)
{
	const struct node *node = &fleet->nodes[n];
	uint8_t most = node->generation;

	most = (uint8_t)larger_of(most, fleet->shelf.rows[n].generation);
	most = (uint8_t)larger_of(most, fleet->copy.rows[n].generation);
	for (int i = 0; i < MAIL; i++)
		most = (uint8_t)larger_of(most, node->mail[i].generation);
	return (uint8_t)(most + 1);
}

/* ---- A node's member ------------------------------------------------------------- */

static inline struct member member_of(const struct node *node)
{
	const struct fleet_terms *t = &fleet_terms;
	mono fence = { HERE_NS + node->rest * QUARTER_NS };

	if (t->lease == 0 || node->fenced)
		fence.ns = UINT64_MAX;
	return (struct member){
		.terms = { .beat_ns = 1,
		           .eager_ns = 1,
		           .lease_us = (t->lease > 0 ? (uint64_t)t->lease : 1000) *
		                       SHELF_TICK_US,
		           .abort_ns = (uint64_t)t->told_abort * QUARTERS * QUARTER_NS,
		           .drift_ppm = (uint32_t)(t->told_drift * 1000000 / QUARTERS),
		           .weight = 1 },
		.incarnation = node->life,
		.seq = node->seq,
		.epoch = node->epoch,
		.generation = node->generation,
		.share = node->share,
		.under_way = node->under_way,
		.is_fenced = node->fenced,
		.leaves = node->leaves,
		.sent = { HERE_NS - (t->sent ? node->age * QUARTER_NS : 0) },
		.fence = fence,
		.due = { HERE_NS },
	};
}

static inline void keep_member(struct node *node, const struct member *member)
{
	uint64_t fence = member->fence.ns;

	if (member->has_left) {
		node->life = node->seq = node->epoch = node->generation = 0;
		node->share = node->under_way = node->leaves = node->age = 0;
		node->fenced = 1;
		node->rest = node->read = 0;
		return;
	}
	node->seq = small(member->seq);
	node->epoch = small(member->epoch);
	node->generation = small(member->generation);
	node->share = small(member->share);
	node->under_way = member->under_way;
	node->leaves = member->leaves;
	if (!member->under_way)
		node->age = 0;
	if (member->is_fenced && !node->fenced) {
		gale_assert(node->dying == 0 || !fleet_terms.turn);
		node->dying = (uint8_t)(node->dying + node->in_flight);
		node->in_flight = 0;
		node->ends = (uint8_t)fleet_terms.abort;
		if (fleet_terms.abort == 0)
			node->dying = 0;
	}
	node->fenced = member->is_fenced;
	node->rest = fleet_terms.lease == 0 || member->is_fenced || fence <= HERE_NS
	                 ? 0
	                 : small((fence - HERE_NS) / QUARTER_NS);
}

static inline void fleet_start(struct node *node)
{
	node->life = ++node->lives;
	node->fenced = 1;
}

/* Of a time when the lease was shorter, with a node that has all: it died since. */
static inline struct shelf old_copy(void)
{
	const uint8_t limit = (uint8_t)fleet_terms.limit,
		      was = (uint8_t)fleet_terms.was;

	return (struct shelf){
		.limit = limit,
		.lease = was,
		.lasts = was,
		.rows[FLEET_NODES] = { .life = 1,
		                       .seq = 1,
		                       .rest = was,
		                       .share = limit,
		                       .generation = 1,
		                       .high = limit,
		                       .weight = 1 },
	};
}

static inline void fleet_begin(struct walk *walk)
{
	struct fleet fleet = { .cap = (uint8_t)fleet_terms.limit };

	if (fleet_terms.was > 0)
		fleet.copy = old_copy();
	fleet.shelf.limit = (uint8_t)fleet_terms.limit;
	for (int n = 0; n < fleet_terms.nodes; n++)
		fleet_start(&fleet.nodes[n]);
	step(walk, &fleet, CHANCE, "all nodes begin", 0, 0);
}

static inline struct letter *free_letter(struct node *node)
{
	for (int i = 0; i < fleet_terms.mail; i++)
		if (node->mail[i].kind == NO_LETTER)
			return &node->mail[i];
	return NULL;
}

/* ---- A beat ---------------------------------------------------------------------- */

static inline void fleet_send(const struct fleet *before, int n, int estimate,
                              struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];
	struct letter *letter = free_letter(node);
	struct member member = member_of(node);
	uint32_t in_flight = (uint32_t)(node->in_flight + node->dying);
	struct member_facts facts = { .estimate = (uint32_t)estimate };
	struct group_report report;

	if (letter == NULL)
		return;
	facts.in_flight = node->read > 0 ? node->read - 1U : in_flight;
	if (!fleet_terms.flight || (node->leaves && !fleet_terms.drain))
		facts.in_flight = 0;
	facts.demand = facts.in_flight;
	report = member_report(&member, (mono){ HERE_NS }, &facts);
	node->age = 0;
	keep_member(node, &member);
	*letter = (struct letter){
		.kind = REPORT,
		.life = node->life,
		.seq = small(report.seq),
		.epoch = small(report.epoch),
		.generation = small(report.generation),
		.share = small(report.held),
		.in_flight = small(report.in_flight),
		.estimate = small(report.estimate),
		.leaves = report.leaves == 1,
	};
	fleet_take(before, &fleet, FAIR, "node %d reports %d in flight", n,
	           (int)facts.in_flight, walk);
}

static inline void forget_guards(struct shelf *shelf, int n, const struct letter *m)
{
	struct row *row = &shelf->rows[n];

	if (!fleet_terms.life && row->life != m->life)
		*row = (struct row){ 0 };
	if (!fleet_terms.seq && row->life == m->life)
		row->seq = 0;
}

/* L follows what nodes have confirmed. */
static inline void lower_cap(struct fleet *fleet)
{
	uint64_t reserved = shelf_reserved(&fleet->shelf);

	if (fleet_terms.once)
		return;
	if (reserved < fleet->cap)
		fleet->cap = small(reserved);
	if (fleet->shelf.limit > fleet->cap)
		fleet->cap = fleet->shelf.limit;
}

/* The grant in an answer: as old as the one that it repeats, if it repeats one. */
static inline void note_fall(struct fleet *fleet, int n, bool fell, bool is_new)
{
	for (int k = 0; k < fleet_terms.nodes && fell; k++) {
		struct node *node = &fleet->nodes[k];

		node->fell = node->fell_kept = 1;
		for (int i = 0; i < MAIL; i++)
			node->mail[i].fell = node->mail[i].kind == ANSWER;
	}
	if (is_new)
		fleet->nodes[n].fell_kept = 0;
}

static inline void fleet_serve(const struct fleet *before, int n, int i, bool stays,
                               enum shelf_proof proof, struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];
	const struct letter m = node->mail[i];
	struct letter *answer = stays ? free_letter(node) : &node->mail[i];
	struct shelf_world world = fleet_world(&fleet);
	uint8_t told = fleet_terms.held ? m.share : 0;
	struct group_grant grant;

	if (answer == NULL)
		return;
	world.generation = next_generation(&fleet, n);
	world.proof = (uint8_t)proof;
	forget_guards(&fleet.shelf, n, &m);
	grant = shelf_beat(&world, &fleet.shelf, n,
	                   (struct group_report){
			       .incarnation = m.life,
			       .seq = m.seq,
			       .epoch = fleet_terms.epoch ? m.epoch : fleet.epoch,
			       .generation = m.generation,
			       .held = told,
			       .in_flight = m.in_flight,
			       .weight = 1,
			       .demand = m.in_flight,
			       .estimate = m.estimate,
			       .limited = 1,
			       .leaves = m.leaves,
			   });
	if (!fleet_terms.high)
		fleet.shelf.rows[n].high =
		    (uint8_t)larger_of(fleet.shelf.rows[n].share, told);
	lower_cap(&fleet);
	note_fall(&fleet, n, fleet.shelf.limit < before->shelf.limit,
	          grant.result == GROUP_GRANTED);
	*answer = (struct letter){
		.kind = ANSWER,
		.life = m.life,
		.seq = m.seq,
		.epoch = small(grant.epoch),
		.generation = small(grant.generation),
		.share = small(grant.share),
		.result = small(grant.result),
		.fell = node->fell_kept,
	};
	fleet_take(before, &fleet, FAIR,
	           stays ? "the store grants node %d %d, and the report stays"
	                 : "the store grants node %d %d",
	           n, (int)grant.share, walk);
}

static inline void fleet_hear(const struct fleet *before, int n, int i, bool stays,
                              struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];
	const struct letter m = node->mail[i];
	struct member member = member_of(node);
	struct group_grant grant = { .result = m.result,
		                     .share = m.share,
		                     .target = m.share,
		                     .generation = m.generation,
		                     .epoch = m.epoch };
	uint64_t latest = member.seq;

	if (node->life != m.life || node->stopped)
		return;
	if (!fleet_terms.one) {
		member.under_way = true;
		member.seq = m.seq;
	}
	member_hear(&member, (mono){ HERE_NS }, m.seq, &grant);
	if (!member.has_left)
		member.seq = latest;
	keep_member(node, &member);
	if (node->generation == m.generation)
		node->fell = m.fell;
	if (!stays)
		node->mail[i] = (struct letter){ 0 };
	fleet_take(before, &fleet, FAIR, "an answer reaches node %d: %d", n, m.share,
	           walk);
}

static inline void fleet_lose(const struct fleet *before, int n, int i,
                              struct walk *walk)
{
	struct fleet fleet = *before;

	fleet.nodes[n].mail[i] = (struct letter){ 0 };
	fleet_take(before, &fleet, CHANCE, "a message of node %d is lost", n, 0, walk);
}

/* Only who heard an answer of a life before can report a number of it. */
static inline void serve_proofs(const struct fleet *fleet, int n, int i, bool stays,
                                struct walk *walk)
{
	const struct letter *m = &fleet->nodes[n].mail[i];

	if (fleet_terms.proofs != NEVER_PROVEN)
		fleet_serve(fleet, n, i, stays, PROVES_ALL, walk);
	if (fleet_terms.proofs != PROVEN_AT_ONCE)
		fleet_serve(fleet, n, i, stays, PROVES_NOTHING, walk);
	if (fleet_terms.proofs == PROVEN_LATE && m->generation > 0 &&
	    m->epoch != fleet->epoch)
		fleet_serve(fleet, n, i, stays, PROVES_OF_ANOTHER_LIFE, walk);
}

static inline void next_of_mail(const struct fleet *fleet, int n, int i,
                                struct walk *walk)
{
	const struct letter *m = &fleet->nodes[n].mail[i];

	for (int stays = 0; stays <= fleet_terms.twice; stays++) {
		if (m->kind == REPORT)
			serve_proofs(fleet, n, i, stays, walk);
		if (m->kind == ANSWER)
			fleet_hear(fleet, n, i, stays, walk);
	}
	if (m->kind != NO_LETTER)
		fleet_lose(fleet, n, i, walk);
}

/* ---- What a node does ------------------------------------------------------------ */

static inline void fleet_give_up(const struct fleet *before, int n, struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];
	struct member member = member_of(node);

	member_lost(&member, (mono){ HERE_NS }, member.seq);
	keep_member(node, &member);
	fleet_take(before, &fleet, CHANCE, "node %d gives up", n, 0, walk);
}

static inline void fleet_leave(const struct fleet *before, int n, struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];
	struct member member = member_of(node);

	member_leave(&member, (mono){ HERE_NS });
	keep_member(node, &member);
	fleet_take(before, &fleet, CHANCE, "node %d is to leave", n, 0, walk);
}

/* Whatever it would have, as nudges may be old or forged. */
static inline void fleet_lower(const struct fleet *before, int n, struct walk *walk)
{
	for (uint64_t to = 0; to < before->nodes[n].share; to++) {
		const struct group_nudge nudge = { GROUP_GIVE, to, 1 };
		struct fleet fleet = *before;
		struct node *node = &fleet.nodes[n];
		struct member member = member_of(node);
		struct member_facts facts = { .limited = true };

		member_nudged(&member, (mono){ HERE_NS }, &facts, &nudge);
		keep_member(node, &member);
		fleet_take(before, &fleet, CHANCE, "node %d lowers its share to %d", n,
		           (int)to, walk);
	}
}

/* Only where timers are late: else the fence falls as a tick reaches it. */
static inline void fleet_turn(const struct fleet *before, int n, struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];
	struct member member = member_of(node);

	member_turn(&member, (mono){ HERE_NS });
	keep_member(node, &member);
	fleet_take(before, &fleet, FAIR, "the fence of node %d falls", n, 0, walk);
}

static inline void fleet_look(const struct fleet *before, int n, struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];

	node->read = (uint8_t)(1 + node->in_flight + node->dying);
	fleet_take(before, &fleet, CHANCE, "node %d looks", n, 0, walk);
}

static inline void next_of_calls(const struct fleet *before, int n, struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];

	if (node->life > 0 && !node->stopped && !node->fenced &&
	    node->in_flight + node->dying < node->share) {
		node->in_flight++;
		fleet_take(before, &fleet, CHANCE, "node %d admits", n, 0, walk);
		fleet = *before;
	}
	if (node->in_flight > 0) {
		node->in_flight--;
		fleet_take(before, &fleet, FAIR, "a call of node %d ends", n, 0, walk);
		fleet = *before;
	}
	if (node->dying > 0) {
		node->dying--;
		fleet_take(before, &fleet, FAIR, "a call of node %d is aborted", n, 0,
		           walk);
	}
}

/* What it leaves at the backend ends in time. */
static inline void fleet_die(const struct fleet *before, int n, struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];
	struct node dead = { .lives = node->lives, .fenced = 1 };

	if (node->zombies > 0 || (node->dying > 0 && node->in_flight > 0))
		return;
	dead.zombies = (uint8_t)(node->in_flight + node->dying);
	dead.ends = node->dying > 0 ? node->ends : (uint8_t)fleet_terms.abort;
	if (dead.zombies == 0 || dead.ends == 0)
		dead.zombies = dead.ends = 0;
	memcpy(dead.mail, node->mail, sizeof(dead.mail));
	*node = dead;
	fleet_take(before, &fleet, CHANCE, "node %d dies", n, 0, walk);
}

static inline void next_of_fate(const struct fleet *before, int n, struct walk *walk)
{
	struct fleet fleet = *before;
	struct node *node = &fleet.nodes[n];

	if (node->life == 0) {
		fleet_start(node);
		if (node->lives <= fleet_terms.lives)
			fleet_take(before, &fleet, CHANCE, "node %d begins anew", n, 0,
			           walk);
		return;
	}
	if (fleet_terms.lease > 0 && fleet_terms.lives > 1 &&
	    !(fleet_terms.stays && n == 0))
		fleet_die(before, n, walk);
	if (fleet_terms.stop) {
		node->stopped ^= 1;
		fleet_take(before, &fleet, CHANCE,
		           node->stopped ? "node %d stops" : "node %d goes on", n, 0,
		           walk);
	}
}

static inline void next_of_node(const struct fleet *fleet, int n, struct walk *walk)
{
	const struct node *node = &fleet->nodes[n];

	for (int i = 0; i < fleet_terms.mail; i++)
		next_of_mail(fleet, n, i, walk);
	next_of_calls(fleet, n, walk);
	next_of_fate(fleet, n, walk);
	if (node->life == 0 || node->stopped)
		return;
	if (node->under_way) {
		fleet_give_up(fleet, n, walk);
	} else {
		fleet_send(fleet, n, fleet_terms.once ? 0 : fleet_terms.limit, walk);
		if (fleet_terms.low > 0 && !fleet_terms.once)
			fleet_send(fleet, n, fleet_terms.low, walk);
	}
	if (fleet_terms.leave && !node->leaves)
		fleet_leave(fleet, n, walk);
	if (fleet_terms.lower)
		fleet_lower(fleet, n, walk);
	if (fleet_terms.torn)
		fleet_look(fleet, n, walk);
	if (!fleet_terms.turn && !node->fenced && node->rest == 0)
		fleet_turn(fleet, n, walk);
}

/* ---- The store, and time --------------------------------------------------------- */

static inline void next_of_store(const struct fleet *before, struct walk *walk)
{
	struct fleet fleet = *before;

	if (fleet.epoch == fleet_terms.forgets)
		return;
	fleet.epoch++;
	fleet.shelf = (struct shelf){ .limit = (uint8_t)fleet_terms.limit };
	fleet_take(before, &fleet, CHANCE, "the store forgets all", 0, 0, walk);
	if (!fleet_terms.copy)
		return;
	fleet = *before;
	fleet.epoch++;
	fleet.shelf = before->copy;
	if (before->copy.limit > 0)
		fleet_take(before, &fleet, CHANCE, "the store falls back to a copy", 0,
		           0, walk);
	if (fleet_terms.was > 0)
		return;
	fleet = *before;
	fleet.copy = fleet.shelf;
	fleet_take(before, &fleet, CHANCE, "the store is copied", 0, 0, walk);
}

static inline void fleet_fall(const struct fleet *before, struct walk *walk)
{
	struct fleet fleet = *before;

	if (!fleet_terms.once || fleet.shelf.limit == fleet_terms.low)
		return;
	fleet.shelf.limit = (uint8_t)fleet_terms.low;
	note_fall(&fleet, 0, true, false);
	fleet_take(before, &fleet, CHANCE, "L falls", 0, 0, walk);
}

static inline void pass(uint8_t *left)
{
	*left = *left > 0 ? (uint8_t)(*left - 1) : 0;
}

static inline void tick_shelf(struct shelf *shelf)
{
	pass(&shelf->quiet);
	if (shelf->quiet == 0 && fleet_terms.proofs == PROVEN_AT_ONCE)
		shelf->still = 0;
	for (int n = 0; n < SHELF_NODES; n++)
		pass(&shelf->rows[n].rest);
}

/* What is older is dead, however much older. */
static inline long oldest(void)
{
	return fleet_terms.lease * (QUARTERS - fleet_terms.told_drift) -
	       fleet_terms.told_abort * QUARTERS;
}

static inline void tick_node(struct node *node, int quarters)
{
	struct member member;
	bool under_way = node->under_way;

	pass(&node->ends);
	if (node->ends == 0)
		node->dying = node->zombies = 0;
	if (node->under_way)
		node->age = (uint8_t)smaller_of(node->age + quarters, oldest());
	node->rest = node->rest > quarters ? (uint8_t)(node->rest - quarters) : 0;
	if (node->life == 0 || node->fenced || !fleet_terms.turn)
		return;
	/* Of a node that is stopped, too: it can do nothing before it looks. */
	member = member_of(node);
	member_turn(&member, (mono){ HERE_NS });
	member.under_way |= under_way && !fleet_terms.lost;
	keep_member(node, &member);
}

static inline void fleet_tick(const struct fleet *before, struct walk *walk)
{
	int pace = fleet_terms.drift > 0 ? 3 : 1, ways = 1;

	if (fleet_terms.lease == 0)
		return;
	for (int n = 0; n < fleet_terms.nodes; n++)
		ways *= pace;
	for (int way = 0; way < ways; way++) {
		struct fleet fleet = *before;
		int rest = way;

		tick_shelf(&fleet.shelf);
		tick_shelf(&fleet.copy);
		for (int n = 0; n < fleet_terms.nodes; n++, rest /= pace)
			tick_node(&fleet.nodes[n], QUARTERS + (rest % pace - pace / 2) *
			                                          fleet_terms.drift);
		fleet_take(before, &fleet, CHANCE, "a tick; clocks go by %d", way, 0,
		           walk);
	}
}

static inline void fleet_next(const struct fleet *fleet, struct walk *walk)
{
	for (int n = 0; n < fleet_terms.nodes; n++)
		next_of_node(fleet, n, walk);
	next_of_store(fleet, walk);
	fleet_fall(fleet, walk);
	fleet_tick(fleet, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

static inline int at_backend(const struct node *node)
{
	return node->in_flight + node->dying + node->zombies;
}

/* What it has at the backend, or may have by what it knows, or by an answer that comes. */
static inline long entitled(const struct node *node)
{
	long most = larger_of(at_backend(node), node->fenced ? 0 : node->share);

	for (int i = 0; i < MAIL; i++) {
		const struct letter *m = &node->mail[i];
		struct member member = member_of(node);
		struct group_grant grant = { .result = m->result, .share = m->share };

		if (m->kind != ANSWER || node->life != m->life)
			continue;
		member_hear(&member, (mono){ HERE_NS }, m->seq, &grant);
		if (!member.is_fenced)
			most = larger_of(most, member.share);
	}
	return most;
}

/* A share that was granted since L fell last is within it, with all that others may have. */
static inline bool is_above(const struct fleet *fleet)
{
	for (int n = 0; n < fleet_terms.nodes; n++) {
		const struct node *node = &fleet->nodes[n];
		long sum = node->share;

		for (int k = 0; k < fleet_terms.nodes; k++)
			sum += k != n ? entitled(&fleet->nodes[k]) : 0;
		if (!node->fenced && !node->fell && node->share > 0 &&
		    sum > fleet->shelf.limit)
			return true;
	}
	return false;
}

/* The invariant of shares.md: what the store reserves covers what a node may have.  While
 * the store may have forgotten, it need not. */
static inline const char *fleet_broken(const struct fleet *fleet)
{
	bool knows = fleet->shelf.epoch == fleet->epoch && fleet->shelf.quiet == 0;

	if (fleet->shelf.unsound)
		return "sums";
	for (int n = 0; n < fleet_terms.nodes && knows; n++)
		if ((uint64_t)entitled(&fleet->nodes[n]) >
		    shelf_reserve(&fleet->shelf.rows[n]))
			return "covered";
	return NULL;
}

/* As much above limit as is above what L was while it shrinks. */
static inline long fleet_found(const struct fleet *fleet)
{
	long sum = fleet_terms.limit - fleet->cap;

	for (int n = 0; n < fleet_terms.nodes; n++)
		sum += at_backend(&fleet->nodes[n]);
	return sum;
}

static inline void fleet_print(const struct fleet *fleet, FILE *out)
{
	static const char *const kinds[] = { "", "report", "answer" };

	fprintf(out, "epoch %d L %d", fleet->epoch, fleet->shelf.limit);
	for (int n = 0; n < fleet_terms.nodes; n++) {
		const struct node *node = &fleet->nodes[n];
		const struct row *row = &fleet->shelf.rows[n];

		fprintf(out,
		        "; node %d (life %d%s%s%s): seq %d%s, grant %d of %d for "
		        "%d, %d+%d+%d in flight",
		        n, node->life, node->fenced ? ", fenced" : "",
		        node->leaves ? ", leaves" : "",
		        node->stopped ? ", stopped" : "", node->seq,
		        node->under_way ? " under way" : "", node->generation,
		        node->share, node->rest, node->in_flight, node->dying,
		        node->zombies);
		fprintf(out,
		        " [life %d seq %d grant %d of %d, high %d, in flight %d, "
		        "for %d]",
		        row->life, row->seq, row->generation, row->share, row->high,
		        row->in_flight, row->rest);
		for (int i = 0; i < MAIL; i++)
			if (node->mail[i].kind != NO_LETTER)
				fprintf(out, " <%s %d: grant %d of %d, in flight %d>",
				        kinds[node->mail[i].kind], node->mail[i].seq,
				        node->mail[i].generation, node->mail[i].share,
				        node->mail[i].in_flight);
	}
}

#endif
