/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lender.h -- a limiter as the shards know it: its rule, its store, its terms.
 *
 * Each shard has a link to each lender that it works for: the keys that wait to be asked
 * about, what is under way, the purses with credit, what time it is at the store, and
 * whether that answers at all.
 *
 * Its terms may change while it is open, but not the kind of its rule.  A change is published
 * as a whole.  Each shard takes it over at its next turn, and works by its own copy.
 *
 * Threads   The lender: constant, but for closed, quick_most, capacity and the terms, which
 *           any may change under the lock, and any reads: what terms points to within a
 *           grace period, or under the lock.  link->shared: the shard's actor writes, any
 *           reads.  link->own: the shard's actor.
 *
 * Ordering
 *
 *   terms     a thread that changes them stores terms with release  ->  one that asks loads
 *             it with acquire: the rule is whole.
 *   changes   a thread that changes them adds with release  ->  one that asks loads it with
 *             acquire, and then finds terms as new as that.  A shard takes the lock for them.
 *
 *   closed, quick_most, capacity and down_until_ns are relaxed: an ask that does not see
 *   them yet is one that came before.
 */
#ifndef SHARDS_LENDER_H
#define SHARDS_LENDER_H

#include <stdalign.h>

#include "engine/clock.h"
#include "engine/sizer.h"
#include "runtime/atomic.h"
#include "runtime/grace.h"
#include "runtime/list.h"
#include "runtime/lock.h"
#include "shards/hash.h"
#include "shards/jump.h"
#include "stores/store.h"

#define LIVES_UNKNOWN UINT16_MAX

/* How calls of a limiter are decided. */
enum lending {
	LENDING_NOT,     /* every one by the store */
	LENDING_DENIALS, /* by the store, but its denials are remembered */
	LENDING_UNITS,   /* from units that the store has lent */
	LENDING_PLACES,  /* from places in a pacer's queue that are booked ahead */
};

struct lender;

/* What may change. */
struct terms {
	struct retired retired; /* first: of the lender's limbo */
	struct rule rule;
	struct rule share;  /* on_outage SHARE: the same for less, by this node alone */
	uint64_t window_us; /* the period that demand is counted in */
	uint64_t look_ns;   /* how often a purse with credit is looked at */
};

/* A meter's purse counts what it was lent in a period, up to so much at once. */
struct books {
	uint64_t capacity;
	uint64_t period_us;
};

/* Of purses, which know their next. */
struct numbers {
	uint32_t first;
	uint32_t last;
};

struct link {
	struct {
		alignas(CACHE_LINE) _Atomic uint64_t down_until_ns; /* 0: it answers */
	} shared;
	struct {
		alignas(CACHE_LINE) struct lender *lender;
		struct store_client client; /* the store's; links to one share it */
		struct link *next;          /* of the shard's */
		bool listed;                /* among them */
		struct rule rule;           /* the lender's, as taken over last ... */
		uint64_t window_us;         /* ... and the rest of its terms ... */
		uint64_t look_ns;
		uint64_t changes;   /* ... after so many changes */
		struct books books; /* of terms before, that may be open ... */
		mono books_until;   /* ... until then */
		uint32_t
		    unchanged; /* so many purses may have a denial by terms before */
		uint32_t failures;    /* in a row */
		struct jump jump;     /* of the store's clock */
		mono fenced_until;    /* nothing is believed before, as it has jumped */
		uint32_t purses;      /* of the lender, those in limbo included */
		uint32_t calls;       /* asks that the store is at */
		struct list wanting;  /* errands to be sent */
		struct list flying;   /* errands that were sent, the first due first */
		struct list overdue;  /* errands that may yet be answered; likewise */
		struct list sleeping; /* errands to be sent when a window has turned,
		                         the first due first */
		struct list patience; /* asks that wait, the first due first */
		uint32_t lent_first;  /* purses with credit, to be looked at in turn */
		uint32_t lent_last;
		uint32_t round_last; /* the one that this round ends with */
		mono round_began;
		mono look_due;
		struct numbers turning; /* purses with units ahead, looked at when
		                         * their window has begun ... */
		struct numbers begun;   /* ... and once more (ahead.h) */
		mono ahead_due;         /* not before that */
		uint64_t trip_ns;       /* what an answer takes, on average */
		uint16_t
		    lives; /* of the store, as it said last; LIVES_UNKNOWN: never */
		uint32_t
		    recheck; /* so many purses may have a denial of an earlier one */
		uint32_t denied; /* a purse that was, to be asked about ... */
		mono recall_due; /* ... then; 0: never */
		bool unheard;    /* ... and so is each, as the store did not answer */
		mono leave_due;  /* over, and its store is left then; 0: it is not */
	} own;
};

struct lender {
	_Atomic uint32_t quick_most; /* a cost up to this is answered from one word of a
	                              * purse; 0: none, or it is closed */
	uint32_t score; /* where seats count its answers; the shards do not read it */
	struct hash_secret secret; /* of the hash of its keys */
	_Atomic uint64_t capacity; /* of the rule */
	uint64_t rest_grain; /* what a store had left is kept as a multiple of this */
	_Atomic(struct terms *) terms;
	_Atomic uint64_t changes; /* of the terms */
	enum lending lending;
	struct store *store;
	bool is_meter; /* the kind of its rule; see lessor_has_windows */
	bool carry_over;
	struct sizing sizing;
	struct gale_predictor *predictor; /* NULL: none */
	uint64_t patience_ns;             /* how long an answer may take */
	uint32_t drift_ppm;               /* how much each clock may run fast or slow */
	uint8_t name_len;
	char name[GALE_NAME_MAX];

	/* A shard that has it on its list holds it. */
	void (*hold)(struct lender *self);
	void (*drop)(struct lender *self);

	struct lock lock;
	struct limbo limbo; /* terms before these; under the lock */

	_Atomic bool closed; /* its purses are to be emptied and let go */
	uint32_t link_count;
	struct link *links; /* by the shard's number */
};

/* Terms before these: they are freed when no thread can be reading them. */
void lender_retire_terms(struct lender *lender, struct grace *grace,
                         struct gale_allocator *allocator, struct terms *former)
    ON(lender->lock);
/* No more terms, and nothing is answered from one word any more. */
void lender_close(struct lender *lender);
/* A copy of what is in force. */
struct terms lender_terms(struct lender *lender);
/* No thread asks any more. */
void lender_free_terms(struct lender *lender, struct gale_allocator *allocator);

#endif
