/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shelf.h -- what a store keeps of a group (engine/group.h), in a small world.
 *
 * A shelf has a row for each node.  A beat makes the words of the shipped functions of it,
 * at an instant that is always the same, and puts back what they have become:
 *
 *     shelf  ->  struct group, struct group_member  ->  group_begin, ...  ->  shelf
 *
 * A number can be over as soon as a lease has passed since it was given out: no node knows so
 * earlier (engine/member.h).  So a row has the time that is left until then, and no number: of
 * those that a beat sees, the larger was given out later.  Whether a number that can be over is
 * proven to be is said by each report (enum shelf_proof).
 *
 * Generations and epochs are small numbers here.  Generations are of the world, not of the
 * shelf, since those of the engine hold the time at which they were given: a shelf that is
 * forgotten gives out none again.  Positions follow the order of the nodes.
 *
 * Invariants
 *
 *   SHELF-1  After each beat the sums of the group are those of its rows, or the shelf is
 *            unsound; models say so as "sums". (GROUP-1)
 *
 * Threads   Pure: any.
 */
#ifndef SPEC_EXPLORE_MODELS_SHELF_H
#define SPEC_EXPLORE_MODELS_SHELF_H

#include <string.h>

#include "engine/group.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define SHELF_NODES 3
#define SHELF_TICK_US UINT64_C(1000)
#define SHELF_TURN_US UINT64_C(1000000000)
#define SHELF_LIFE 77777 /* before a beat; no node has begun it */
#define SHELF_KNOWN 1    /* numbers: those that were proven to be over earlier ... */
#define SHELF_OVER 2     /* ... those that can be over ... */
#define SHELF_BEATS 300  /* ... and those that were given out before this beat */

/* What a report proves. */
enum shelf_proof {
	PROVES_ALL,     /* all that can be over is */
	PROVES_NOTHING, /* the proof was lost, or is so late that it says nothing new */
	PROVES_OF_ANOTHER_LIFE, /* a number of a life that the store has forgotten */
};

/* What a node keeps of its share when L falls, though others have more than the rest. */
enum shelf_keeps {
	KEEPS_NOTHING, /* as it is shipped */
	KEEPS_ITS_PART,
	KEEPS_LESS, /* its part, less what others have in flight above their shares */
};

struct row {
	uint8_t life; /* incarnation; 0: there is no such member */
	uint8_t seq;
	uint8_t rest; /* ticks until its last beat can be over */
	uint8_t share;
	uint8_t generation;
	uint8_t high;
	uint8_t in_flight;
	uint8_t weight;
	uint8_t estimate;
	uint8_t hungry; /* these three: where L is parted by demand */
	uint8_t claim;
	uint8_t lacks;
};

struct shelf {
	struct row rows[SHELF_NODES];
	uint8_t limit;
	uint8_t turn;  /* of the rotation */
	uint8_t epoch; /* that it knows */
	uint8_t quiet; /* ticks until it can be over */
	uint8_t still; /* 1: it is quiet, until a report proves that it is over */
	uint8_t lease; /* ticks: of the settings; 0: as in the world's */
	uint8_t lasts; /* ticks: of the life; 0: the same */
	uint8_t unsound;
};

/* What is the same for all beats of an instant. */
struct shelf_world {
	struct group_settings settings;
	uint8_t epoch;      /* how often the store may have forgotten */
	uint8_t generation; /* the next that is given out */
	bool uncapped;      /* without a guard: what others have is not taken off */
	uint8_t keeps;      /* the same: when L falls, enum shelf_keeps */
	bool restless;      /* the same: there is no quiet time */
	bool by_settings;   /* the same: a life lasts as long as the settings' lease */
	uint8_t proof;      /* enum shelf_proof */
	bool any_life;      /* without a guard: a proof of another life is believed */
};

/* L is limit, and the law and the parts are as they are given. */
static inline struct group_settings shelf_settings(uint64_t law, uint64_t parts,
                                                   long limit, long lease)
{
	return (struct group_settings){
		.law = law,
		.parts = parts,
		.start = (uint64_t)limit,
		.floor = 1,
		.ceiling = (uint64_t)limit,
		.lease_us = (uint64_t)lease * SHELF_TICK_US,
		.rotate_us = SHELF_TURN_US,
	};
}

struct shelf_words {
	struct group group;
	struct group_estimates estimates;
	struct group_member members[SHELF_NODES]; /* of each node */
};

static inline uint64_t shelf_reserve(const struct row *row)
{
	struct group_member member = { .share = row->share,
		                       .high = row->high,
		                       .in_flight = row->in_flight };

	return row->life == 0 ? 0 : group_reserve(&member);
}

static inline uint64_t shelf_reserved(const struct shelf *shelf)
{
	uint64_t sum = 0;

	for (int n = 0; n < SHELF_NODES; n++)
		sum += shelf_reserve(&shelf->rows[n]);
	return sum;
}

/* The first instant of a turn whose number divides by all that members may be, and as many
 * turns later as the shelf says. */
static inline uint64_t shelf_now_us(const struct shelf_world *w,
                                    const struct shelf *shelf)
{
	return (600 + shelf->turn) * w->settings.rotate_us;
}

/* The world's where ticks are 0. */
static inline uint64_t shelf_lease_us(const struct shelf_world *w, uint8_t ticks)
{
	return ticks > 0 ? ticks * SHELF_TICK_US : w->settings.lease_us;
}

static inline uint8_t shelf_lease(const struct shelf_world *w, uint64_t lease_us)
{
	return lease_us == w->settings.lease_us ? 0 : small(lease_us / SHELF_TICK_US);
}

/* When the store forgot. */
static inline uint64_t shelf_epoch_us(uint64_t now_us, uint64_t epoch)
{
	return epoch == 0 ? 0 : now_us - SHELF_TICK_US + epoch;
}

static inline void shelf_count(struct shelf_words *words)
{
	struct group *g = &words->group;

	g->members = g->reserved = g->weights = g->busy = g->limited = g->hungry =
	    g->claimed = g->lacking = g->in_flight = 0;
	memset(&words->estimates, 0, sizeof(words->estimates));
	for (int n = 0; n < SHELF_NODES; n++) {
		const struct group_member *m = &words->members[n];

		if (m->incarnation == 0)
			continue;
		g->members++;
		g->reserved += group_reserve(m);
		g->weights += m->weight;
		g->busy += m->busy;
		g->limited += m->limited;
		g->hungry += m->hungry;
		g->claimed += m->claim;
		g->lacking += m->lacks;
		g->in_flight += m->in_flight;
		if (m->estimate > 0)
			words->estimates.members[m->estimate - 1]++;
	}
}

/* Positions are given anew: by the order of the nodes. */
static inline void shelf_order(struct shelf_words *words)
{
	uint64_t position = 0;

	for (int n = 0; n < SHELF_NODES; n++)
		if (words->members[n].incarnation > 0)
			words->members[n].position = position++;
}

static inline void shelf_unfold(const struct shelf_world *w, const struct shelf *shelf,
                                struct shelf_words *words)
{
	memset(words, 0, sizeof(*words));
	words->group.settings = w->settings;
	words->group.settings.lease_us = shelf_lease_us(w, shelf->lease);
	words->group.now_us = shelf_now_us(w, shelf);
	words->group.epoch = shelf_epoch_us(words->group.now_us, shelf->epoch);
	words->group.life = SHELF_LIFE;
	words->group.lasts_us = shelf_lease_us(w, shelf->lasts);
	words->group.beats = SHELF_BEATS;
	words->group.over = SHELF_KNOWN;
	if (shelf->still)
		words->group.quiet = (uint64_t)SHELF_OVER + shelf->quiet;
	words->group.generation = 1; /* a grant was made, to somebody */
	words->group.limit = shelf->limit;
	words->group.parted = shelf->limit; /* of each law but GROUP_SUM */
	for (int n = 0; n < SHELF_NODES; n++) {
		const struct row *r = &shelf->rows[n];

		if (r->life == 0)
			continue;
		if (r->generation > words->group.generation)
			words->group.generation = r->generation;
		words->members[n] = (struct group_member){
			.incarnation = r->life,
			.seq = r->seq,
			.beat = (uint64_t)SHELF_OVER + r->rest,
			.share = r->share,
			.generation = r->generation,
			.high = r->high,
			.in_flight = r->in_flight,
			.weight = r->weight,
			.estimate = r->estimate,
			.hungry = r->hungry,
			.claim = r->claim,
			.lacks = r->lacks,
		};
	}
	shelf_order(words);
	shelf_count(words);
}

/* Until a number can be over.  In a new life nothing is, before its first number is. */
static inline uint8_t shelf_ticks(const struct shelf_words *words, uint64_t number)
{
	if (number > SHELF_BEATS || words->group.life != SHELF_LIFE)
		return small(words->group.lasts_us / SHELF_TICK_US);
	return small(number - SHELF_OVER);
}

static inline void shelf_fold(const struct shelf_world *w,
                              const struct shelf_words *words, struct shelf *shelf)
{
	bool by_demand = w->settings.parts == GROUP_BY_DEMAND;
	uint64_t now_us = words->group.now_us;

	shelf->limit = small(words->group.limit);
	shelf->lease = shelf_lease(w, words->group.settings.lease_us);
	shelf->lasts = shelf_lease(w, words->group.lasts_us);
	for (int n = 0; n < SHELF_NODES; n++) {
		const struct group_member *m = &words->members[n];
		uint64_t given =
		    m->generation >= now_us ? w->generation : m->generation;

		if (m->incarnation == 0) {
			shelf->rows[n] = (struct row){ 0 };
			continue;
		}
		shelf->rows[n] = (struct row){
			.life = small(m->incarnation),
			.seq = small(m->seq),
			.rest = shelf_ticks(words, m->beat),
			.share = small(m->share),
			.generation = small(given),
			.high = small(m->high),
			.in_flight = small(m->in_flight),
			.weight = small(m->weight),
			.estimate = small(m->estimate),
			.hungry = by_demand ? small(m->hungry) : 0,
			.claim = by_demand ? small(m->claim) : 0,
			.lacks = by_demand ? small(m->lacks) : 0,
		};
	}
}

/* SHELF-1 */
static inline bool shelf_adds_up(const struct shelf_words *words)
{
	struct shelf_words again = *words;

	shelf_count(&again);
	return memcmp(&again, words, sizeof(again)) == 0;
}

static inline void shelf_remove(struct shelf_words *words, int n)
{
	group_remove(&words->group, &words->estimates, &words->members[n]);
	words->members[n] = (struct group_member){ 0 };
	shelf_order(words);
}

/* Members whose lease is over, but for the one that reports. */
static inline void shelf_evict(struct shelf_words *words, int self,
                               const struct group_report *report)
{
	for (int n = 0; n < SHELF_NODES; n++)
		if (words->members[n].incarnation > 0 &&
		    !(n == self && group_is_reporter(&words->members[n], report)) &&
		    group_expired(&words->group, &words->members[n]))
			shelf_remove(words, n);
}

static inline uint64_t shelf_next(const struct shelf_words *words, int self)
{
	uint64_t next = 0;

	for (int n = 0; n < SHELF_NODES; n++)
		if (n != self && words->members[n].incarnation > 0 &&
		    (next == 0 || words->members[n].beat < next))
			next = words->members[n].beat;
	return next;
}

/* A number of another life may be as large as any of this one. */
static inline void shelf_prove(const struct shelf_world *w, struct group_report *report)
{
	bool is_other = w->proof == PROVES_OF_ANOTHER_LIFE;

	report->life = is_other && !w->any_life ? SHELF_LIFE + 1 : SHELF_LIFE;
	report->over = is_other ? SHELF_BEATS : 0;
	if (w->proof == PROVES_ALL)
		report->over = SHELF_OVER;
}

/* The group at now, without those whose leases are over.  What is quiet is so in ticks. */
static inline enum group_result shelf_begin(const struct shelf_world *w,
                                            struct shelf *shelf,
                                            struct shelf_words *words, int n,
                                            const struct group_report *report)
{
	const uint64_t now_us = words->group.now_us;
	const uint64_t forgot_us = shelf_epoch_us(now_us, w->epoch);
	enum group_result begun =
	    group_begin(&words->group, &w->settings, report, now_us, forgot_us);

	if (w->by_settings)
		words->group.lasts_us = words->group.settings.lease_us;
	if (w->restless)
		words->group.quiet = 0;
	shelf->epoch = w->epoch;
	shelf_evict(words, n, report);
	if (begun == GROUP_DISAGREES && words->group.members == 0)
		begun =
		    group_begin(&words->group, &w->settings, report, now_us, forgot_us);
	shelf->still = words->group.over < words->group.quiet;
	shelf->quiet = shelf->still ? shelf_ticks(words, words->group.quiet) : 0;
	return begun;
}

/* What others are reserved, and what of it is above their shares. */
static inline uint64_t shelf_others(const struct shelf_words *words, int self,
                                    uint64_t *ret_above)
{
	uint64_t sum = 0;

	*ret_above = 0;
	for (int n = 0; n < SHELF_NODES; n++) {
		const struct group_member *m = &words->members[n];

		if (n == self || m->incarnation == 0)
			continue;
		sum += group_reserve(m);
		*ret_above += group_reserve(m) - m->share;
	}
	return sum;
}

/* So that group_beat leaves to the node what it keeps. */
static inline void shelf_keep(const struct shelf_world *w, struct shelf_words *words,
                              int n, const struct group_report *report)
{
	struct shelf_words tried = *words;
	const struct group_member *self = &words->members[n];
	uint64_t above, others = shelf_others(words, n, &above);
	uint64_t kept = self->share < report->held ? self->share : report->held;
	uint64_t most;

	(void)group_beat(&tried.group, &tried.estimates, &tried.members[n], report, 0);
	if (w->keeps == KEEPS_LESS)
		kept = kept > above ? kept - above : 0;
	most = tried.group.limit > kept ? tried.group.limit - kept : 0;
	if (others > most)
		words->group.reserved -= others - most;
}

/*
 * A report reaches the store, as engine/group.h says.  Numbers in it, and in what is
 * returned, are those of the world: epochs and generations are small.
 */
static inline struct group_grant shelf_beat(const struct shelf_world *w,
                                            struct shelf *shelf, int n,
                                            struct group_report report)
{
	struct shelf_words words;
	struct group_grant grant;
	enum group_result begun;
	uint64_t now_us;

	shelf_unfold(w, shelf, &words);
	now_us = words.group.now_us;
	report.epoch = shelf_epoch_us(now_us, report.epoch);
	shelf_prove(w, &report);
	begun = shelf_begin(w, shelf, &words, n, &report);
	if (begun == GROUP_DISAGREES) {
		shelf_fold(w, &words, shelf);
		return group_refusal(&words.group, begun);
	}
	gale_assert(begun == GROUP_GRANTED);
	if (w->uncapped)
		words.group.reserved = group_reserve(&words.members[n]);
	if (w->keeps != KEEPS_NOTHING)
		shelf_keep(w, &words, n, &report);
	grant = group_beat(&words.group, &words.estimates, &words.members[n], &report,
	                   shelf_next(&words, n));
	gale_assert(grant.result != GROUP_WRONG && grant.result != GROUP_FULL);
	if (grant.result == GROUP_GONE && words.members[n].incarnation > 0)
		shelf_remove(&words, n);
	if (!w->uncapped && w->keeps == KEEPS_NOTHING)
		shelf->unsound |= !shelf_adds_up(&words);
	shelf_fold(w, &words, shelf);
	if (grant.generation >= now_us)
		grant.generation = w->generation;
	grant.epoch = w->epoch;
	return grant;
}

#endif
