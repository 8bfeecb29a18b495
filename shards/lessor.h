/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lessor.h -- asks the stores for units, and lends them to the keys of a shard.
 *
 *      ask --- credit or memory settles it ------------------------------> answered
 *       '- else it waits for the key's errand
 *             errand: wanting --batch--> flying --grant--> waiters take -> answered
 *                        ^                |  |  '- denied, lost: so are they
 *                        |-- not enough --|  '- overdue: so are they; a grant that comes
 *                        '-- sleeping <---'     while it is of use is for those who ask next
 *                            dead on arrival: until the window turns
 *
 * Everything happens in turns, and every function is told what time it is.
 *
 * Invariants
 *
 *   LESSOR-1  At most one errand of a key is under way: own.errand names it. (L3)
 *   LESSOR-2  Units come in by on_answer and nowhere else: once for each errand's
 *             number, and only what can be believed.  What comes when its errand is
 *             over, twice or from elsewhere is dropped and counted. (L4, L13)
 *   LESSOR-3  A window's units die when it may be over at the store: counted from the
 *             instant of sending, with the clock's drift taken off.  A meter's are
 *             bounded by how many are out; an answer that is late counts from when
 *             patience ended. (L2, L14)
 *   LESSOR-4  Whatever a store says, no more than the rule's capacity is put into a
 *             purse for one window: beyond that the store is taken to have no more.  A
 *             next window does not begin before the last is over; as long as the key is known here: what is evicted is forgotten, by
 *             us. (L13) How many windows it can open at all is JUMP-3 (jump.h).
 *   LESSOR-5  Units are given back under the tag they were lent under, after they were
 *             taken out of the purse, and once: a request to give back is never
 *             repeated. (L6)
 *   LESSOR-6  An ask that waits is in its errand's waiters and in its link's patience,
 *             or among the crowded, who wait for a purse; it is answered once, by the
 *             time its patience ends. (L11)
 *   LESSOR-7  A purse with an errand is not evicted. (L8)
 *   LESSOR-8  To ask for a key whose errand is overdue is to ask a store that is down:
 *             no call waits for it.  Only a part of the errands, and of the purses, can be
 *             overdue at a time. (L8, L11)
 *   LESSOR-9  A store is left when it has answered all that was given back to it, or has
 *             not for as long as an answer may take. (L6)
 *
 * Threads   The shard's actor.  Others read counters, link->shared, and what readers find
 *           from the table of purses on.
 */
#ifndef SHARDS_LESSOR_H
#define SHARDS_LESSOR_H

#include "runtime/role.h"
#include "shards/ask.h"
#include "shards/counters.h"
#include "shards/purses.h"

#define ERRANDS 1024 /* under way at a time; number 0 stands for none */
#define LEND_BATCH 64
/* Signs between two looks that a key is hot, or is fought over; and that it still is. */
#define CONTENDED 16
#define STILL_CONTENDED 2

struct errand {
	struct list place;   /* wanting, flying, overdue, sleeping, or free */
	struct list waiters; /* asks, in the order they came */
	uint64_t number;     /* of its request; 0: not sent */
	struct purse *purse; /* NULL: it is free */
	uint64_t want;
	uint64_t least;
	uint64_t capacity;   /* of the rule that it was sent with ... */
	uint64_t changes;    /* ... after so many changes */
	uint64_t store_left; /* as the store said last in this errand, or GALE_NEVER */
	mono sent;
	mono due; /* sent: overdue then; overdue: over; sleeping: sent again */
	bool
	    is_overdue; /* no call waits for it; units that come are for the next calls */
	uint64_t ahead; /* units of the next window that were asked for along */
	bool claims;    /* for no call: so that units lent ahead can go back */
	bool spent;     /* the store was told that nothing is in hand */
	bool forget;    /* the key was reset meanwhile: what is granted is not for us */
	bool
	    restarted; /* the key lived under another kind of rule, and has begun anew */
};

/* Requests that will go in one call, and the keys that they point to. */
struct batch {
	struct link *link; /* of the first of them */
	size_t count;
	struct lend_request requests[LEND_BATCH];
	uint8_t keys[LEND_BATCH][STORE_KEY_MAX];
};

/* What HEDGE knows of a key; it begins anew when another key of the place has come. */
struct hedge_place {
	uint32_t hash;
	struct sizer_hedge hedge;
};

#define HEDGE_PLACES 512

struct lessor_config {
	struct gale_allocator *allocator;
	struct gale_clock *clock;
	struct grace *grace;
	uint64_t node;  /* this runtime, to the stores */
	uint32_t shard; /* its number: the index of its links */
	uint32_t max_purses;
	uint32_t seats; /* how many may be given a cell */
};

struct lessor {
	struct store_home home; /* first: answers come here */
	struct evictor evictor;
	struct kept_clock clock;
	struct lessor_config config;
	struct purses purses;
	struct link *links;
	mono close_due;        /* when purses of closed lenders are looked for again */
	uint32_t closing_hand; /* how far they have been looked for */
	uint64_t sent;         /* requests so far */
	uint64_t heard;        /* answers, of any kind */
	struct list crowded;   /* asks that wait for a purse */
	uint32_t overdue;      /* errands */
	struct list free_errands;
	struct errand errands[ERRANDS];
	struct batch asking;
	struct batch returning;
	struct hedge_place hedges[HEDGE_PLACES];
	_Atomic uint64_t counters[SHARD_COUNTER_COUNT];
};

bool lessor_open(struct lessor *lessor, const struct lessor_config *config);

/* What stores answer in time is answered, the rest is STORE_LATE; what is left is given
 * back.  Readers may still look, and find nothing. */
void lessor_close(struct lessor *lessor) ON(actor_role);
/* Nobody reads any more. */
void lessor_free(struct lessor *lessor);

/* Takes the ask; it is answered now or later. */
void lessor_ask(struct lessor *lessor, struct ask *ask, mono now) ON(actor_role);

/* Sends what is wanted, gives up what is overdue, looks at some purses; returns when it
 * wants to be called again. */
mono lessor_turn(struct lessor *lessor, mono now) ON(actor_role);

/* Lets stores that are elsewhere send and receive; NEVER_DUE if none is at anything. */
mono lessor_turn_stores(struct lessor *lessor, mono now);

/* Is anything still waiting for an answer? */
bool lessor_is_idle(const struct lessor *lessor);

/* ---- Between its files ----------------------------------------------------------- */

#define NEVER_DUE ((mono){ UINT64_MAX })
#define SLOW_READERS_NS 1000000 /* how long until they are looked at again */

/* Answers an ask, which is not ours after that. */
void lessor_finish(struct ask *ask, enum store_result result);
void lessor_fail(struct lessor *lessor, struct ask *ask, enum shard_counter why,
                 enum store_result result);
/* Nothing is granted before then: what that means is the limiter's policy. */
void lessor_keep_out(struct lessor *lessor, struct ask *ask, mono until, mono now);
/* From what this node knows, like anyone else; false if the store must be asked. */
bool lessor_settle(struct purse *purse, struct ask *ask, mono now);

void lessor_on_answer(struct store_home *home, const struct lend_answer *answer);
/* Takes what stores have done of what they were asked. */
void lessor_take_done(struct lessor *lessor);
/* The link's client, which has entered; NULL without memory. */
const struct store_client *lessor_client(struct lessor *lessor, struct link *link);
/* Has it answered all that it was asked here? */
bool lessor_store_is_idle(const struct link *link);
/* Does no other link of this shard ask its store? */
bool lessor_has_store_alone(const struct lessor *lessor, const struct link *link);
/* *at is over; a store that no other link asks is left. */
void lessor_unlist_link(struct lessor *lessor, struct link **at);
/* It is answered, or is not to be any more: it is in no list. */
void lessor_unlist_errand(struct lessor *lessor, struct errand *errand);
void lessor_free_errand(struct lessor *lessor, struct errand *errand);
/* Those who wait for it are told so; and then it is over. */
void lessor_tell_waiters(struct lessor *lessor, struct errand *errand,
                         enum store_result result);
void lessor_fail_waiters(struct lessor *lessor, struct errand *errand,
                         enum store_result result);
/* What slept until a window turned wants to be sent. */
void lessor_wake_sleeping(struct lessor *lessor, struct link *link, mono now);
void lessor_back_off(struct lessor *lessor, struct link *link, mono now);
/* An answer has come, or the word that none will. */
void lessor_note_result(struct lessor *lessor, struct link *link,
                        enum store_result result, mono now);

/* Gives those who wait for a purse one, as far as there are any; returns when to look
 * again. */
mono lessor_place_crowded(struct lessor *lessor, mono now);

/* The purse's own state of HEDGE, or NULL for the other kinds. */
struct sizer_hedge *lessor_hedge(struct lessor *lessor, const struct purse *purse);

/* Are units counted by windows, which have a start and nothing else for a tag? */
bool lessor_has_windows(const struct lender *lender);
/* When a meter's units die that count from then. */
mono lessor_unit_ends(const struct link *link, mono from);

/* The link's terms, as borrow.h wants them. */
struct borrow_terms lessor_borrow_terms(const struct link *link);

/* What the units in the purse were lent under. */
struct gale_slot lessor_tag(const struct purse *purse);
/* Another one; of a window nothing is known yet. */
void lessor_set_tag(struct purse *purse, struct gale_slot tag);

/* What the store has said is used of the purse's window, and what it is told of that. */
void lessor_note_used(struct lessor *lessor, const struct errand *errand,
                      const struct lend_answer *answer);
void lessor_fill_seen(struct lessor *lessor, const struct purse *purse,
                      struct lend_request *request);
void lessor_note_denied(struct lessor *lessor, const struct purse *purse, mono now);
void lessor_note_unheard(struct lessor *lessor, const struct errand *errand);
/* Is there a denial to be asked about now, and when is there one? */
bool lessor_rechecks(const struct link *link, mono now);
mono lessor_recall_due(const struct link *link);
/* Finds out whether it has forgotten, and drops denials that it may not know of. */
void lessor_recall(struct lessor *lessor, struct link *link, mono now);

/* Takes over what has changed of the lender's terms, and drops denials by those before. */
void lessor_take_terms(struct lessor *lessor, struct link *link, mono now);
/* The link's first ones. */
void lessor_copy_terms(struct link *link);
/* The largest that the books of a purse may have, whichever terms they were begun under. */
struct books lessor_books(const struct link *link, mono now);
/* Nothing that was known of the purse's key counts, but for what is in hand. */
void lessor_forget_books(struct lessor *lessor, struct purse *purse);

/* In the window that is known: what was spent and what was refused. */
uint64_t lessor_demand(struct purse *purse);
/* The purse's window is over, or as good as: what was asked for is learned from. */
void lessor_window_over(struct lessor *lessor, struct purse *purse);

/* May units that calls keep come back to the purse?  To be asked before what is in it is looked at. */
bool lessor_keeps(const struct purse *purse);
/* Gives units back that were taken out of the purse; keeps: more may come back to it. */
void lessor_give_back(struct lessor *lessor, struct purse *purse, uint64_t units,
                      bool keeps);

/* Takes out of the purse the units that no call has taken, and gives them back. */
void lessor_take_back(struct lessor *lessor, struct purse *purse, mono now);

/* The purse's errand; a new one if it has none; NULL if too many are under way. */
struct errand *lessor_errand(struct lessor *lessor, struct purse *purse);

/* How many units its window needs beyond those in hand; GALE_NEVER: not known. */
uint64_t lessor_need(struct lessor *lessor, struct purse *purse, mono now);

void lessor_send(struct lessor *lessor, struct link *link, mono now) ON(actor_role);
void lessor_send_returns(struct lessor *lessor);

/* A purse with a pin for us: units have come back to it, or it owes some. */
void lessor_take_due(struct lessor *lessor, struct purse *purse, mono now);
/* Purses with credit, or with hope of some: to be looked at, the first with new units; or not
 * any more; looked at, if it is time. */
void lessor_list_lent(struct lessor *lessor, struct purse *purse, mono now);
void lessor_watch(struct lessor *lessor, struct purse *purse, mono now);
/* Units come: how fast those before them were spent makes a purse hot.  So many lie beside it. */
void lessor_warm(const struct lessor *lessor, struct purse *purse, uint64_t beside,
                 uint64_t units, mono now);
void lessor_unlist_lent(struct lessor *lessor, struct purse *purse);
void lessor_look(struct lessor *lessor, struct link *link, mono now);
/* Nobody may spend what is left of it any more. */
void lessor_drop_lent(struct lessor *lessor, const struct link *link);

static inline struct link *link_of(const struct lessor *lessor,
                                   const struct lender *lender)
{
	return &lender->links[lessor->config.shard];
}

/* The store answers; it may be that it must not be believed yet. */
static inline void link_recovers(struct link *link)
{
	link->own.failures = 0;
	store_relaxed(&link->shared.down_until_ns, link->own.fenced_until.ns);
}

static inline void lessor_count(struct lessor *lessor, enum shard_counter counter,
                                uint64_t by)
{
	count_add(&lessor->counters[counter], by);
}

#endif
