/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * purses.h -- a shard's purses: found by any thread, kept by one.
 *
 * Purses stand in chunks that never move.  The actor adds them, and evicts them when
 * there are as many as may be: a hand goes around and takes those that no call has used
 * since it last passed, that no thread holds and that no errand is under way for.  What
 * was evicted is used again when no reader can be looking at it any more.
 *
 *     free --add--> in the table --evict--> in limbo --grace over--> free
 *
 * Invariants
 *
 *   EVICT-1  A number is free, in the table or in limbo, and in one of them only.
 *   EVICT-2  At most max purses exist, and their cells take no more memory than so many
 *            purses do, or than those of a few; so memory is bounded. (L8)
 *   EVICT-3  Before a purse leaves the table, the evictor has taken its credit out.
 *
 * Threads   purses_find and what takes a root: any, within a grace period.  Dues and debts:
 *           any, with a pin on the purse or within a grace period; dues only the shard's actor
 *           writes.  The rest: the shard's actor.
 *
 * Ordering
 *
 *   voided    purses_void adds to voids, then stores credit with release  ->  who puts
 *             something back loads credit with acquire, then voids
 *             Units that were taken before are not put into a purse that is void since.
 *   wiped     purses_void stores voids, even again, with release  ->  who takes something that
 *             may go back loads voids with acquire before
 *             If they are even, it takes nothing of before.
 *   roomed    who makes room for debts swaps its address in with release  ->  purse_debt
 *             loads it with acquire: all is zero there.
 */
#ifndef SHARDS_PURSES_H
#define SHARDS_PURSES_H

#include "engine/borrow.h"
#include "shards/bytes.h"
#include "shards/purse.h"
#include "shards/table.h"

#define CHUNK_PURSES 256
#define GHOSTS 1024

/* What only the actor knows of a purse. */
struct purse_own {
	uint16_t errand; /* under way for it, or ERRAND_NONE */
	uint8_t idle;    /* of struct borrow */
	uint8_t life;    /* of the store's memory that the purse's told is of */
	uint32_t next;   /* among the free, or those with credit, or NUMBER_UNLISTED */
};

/* Where it is in the round of those with credit (look.c). */
struct purse_round {
	uint32_t seen : CREDIT_UNIT_BITS;      /* of struct borrow ... */
	uint32_t wait : 31 - CREDIT_UNIT_BITS; /* ... its .wait */
	uint32_t is_patient : 1;               /* ... and its .is_patient */
	uint32_t before; /* the purse to be looked at before this one */
};
static_assert(BORROW_WAIT_MOST == 1 << (31 - CREDIT_UNIT_BITS), "it fits");

/* For calls that keep units which may go back (kept.h): the actor's word, which any thread reads. */
struct purse_dues {
	_Atomic uint32_t word; /* times DUES_VOID that what was taken became worth
	                          nothing, and the bits below */
};
#define DUES_LOOKED_AT 1u /* it is in the round of those with credit */
#define DUES_OWES 2u /* the actor has a pin on it, until its debt is paid or over */
#define DUES_CHANGE                                                                    \
	4u /* times the last voids that only another rule has made, up to 7 */
#define DUES_CHANGES 28u
#define DUES_VOID 32u

/* As credit: units to be paid before anybody has some. */
struct debts {
	_Atomic uint64_t of[CHUNK_PURSES];
};

/* The sizers of keys that are longer than a purse's head.  The sizer of a shorter key lies where
 * the rest of a longer one would. */
struct sizers {
	union sizer of[CHUNK_PURSES];
};

#define ERRAND_NONE 0
#define NUMBER_UNLISTED UINT32_MAX
#define NUMBER_LAST (UINT32_MAX - 1)

/* What a thread takes first of glibc begins at the same place of a page as what other threads
 * take first: a seat, or the first chunk of a shard.  So the first sixteen purses begin half a
 * page further on, where nothing of a seat is (spec/decisions/0008). */
struct chunk {
	struct purse_own own[CHUNK_PURSES];
	alignas(TABLE_ALIGN) struct purse purses[CHUNK_PURSES];
	struct purse_round rounds[CHUNK_PURSES];
	struct purse_dues dues[CHUNK_PURSES];
	_Atomic(struct debts *) debts;   /* NULL: none was ever owed */
	_Atomic(struct aheads *) aheads; /* NULL: none was ever lent (ahead.h) */
	struct sizers *sizers;           /* NULL: no key was ever so long */
	uint32_t together; /* chunks of the block that begins with this one */
};

/* Of each key that a purse's head has room for: what stands in a chunk, its head apart.  A key takes
 * the slots of a table besides, 16 to 32 bytes. */
#define PURSE_BYTES                                                                    \
	(sizeof(struct purse) + sizeof(struct purse_own) +                             \
	 sizeof(struct purse_round) + sizeof(struct purse_dues))
static_assert(PURSE_BYTES == 148 && sizeof(struct chunk) <= CHUNK_PURSES * 149,
              "a key of 16 bytes takes at most 176, of a million of them");

/* Of a chunk by itself malloc's part would be a page, or two: so those of a large set are taken
 * together, as many as there are CHUNKS_PARTs of it already. */
#define CHUNKS_TOGETHER 16
#define CHUNKS_PART 8
#define HALF_A_PAGE 2048
static_assert(offsetof(struct chunk, purses) % (2 * HALF_A_PAGE) == HALF_A_PAGE,
              "half a page");

/* What was learned of a key that has been evicted, for as long as no other key of the
 * same place is. */
struct ghost {
	uint32_t hash;
	enum sizing_kind kind; /* whose words they are */
	union sizer sizer;
};

/* Who keeps the books. */
struct evictor {
	/* The purse is about to leave: takes its credit out. */
	void (*evict)(struct evictor *self, struct purse *purse);
	/* No reader can be looking at it any more. */
	void (*gone)(struct evictor *self, struct purse *purse);
};

struct purse_name {
	struct lender *lender;
	const uint8_t *key;
	uint16_t key_len;
	uint64_t hash;
};

struct purses {
	struct table table;
	struct chunk **chunks; /* max / CHUNK_PURSES, filled from the front */

	struct {
		struct hashes hashes;
		struct gale_allocator *allocator;
		struct grace *grace;
		struct evictor *evictor;
		uint32_t max;
		uint32_t made;       /* numbers that stand in chunks */
		struct chunk *spare; /* the next of a block of chunks ... */
		uint32_t spares;     /* ... of which so many are left */
		uint32_t split;      /* purses that have cells */
		uint32_t free;       /* the first free number, or NUMBER_LAST */
		uint32_t hand;
		bool barren; /* the hand has found nothing when it was there last */
		struct limbo gone;   /* purses */
		struct limbo parts;  /* slots, cells and blocks */
		struct part *fading; /* large ones that no reader looks at any more */
		size_t faded;        /* of the first of them: so far it is given back */
		struct ghost *ghosts;
	} own;
};

static inline struct purse *purses_at(const struct purses *set, uint32_t number)
{
	return &set->chunks[number / CHUNK_PURSES]->purses[number % CHUNK_PURSES];
}

static inline struct purse_own *purses_own(const struct purses *set,
                                           const struct purse *purse)
{
	uint32_t number = purse->number;

	return &set->chunks[number / CHUNK_PURSES]->own[number % CHUNK_PURSES];
}

static inline struct purse_round *purses_round(const struct purses *set,
                                               const struct purse *purse)
{
	uint32_t number = purse->number;

	return &set->chunks[number / CHUNK_PURSES]->rounds[number % CHUNK_PURSES];
}

/* What borrow.h keeps of the purse's key, which lies where there was room for it. */
static inline struct borrow purses_borrow(const struct purses *set,
                                          const struct purse *purse)
{
	return (struct borrow){
		.seen = purses_round(set, purse)->seen,
		.wait = purses_round(set, purse)->wait,
		.is_patient = purses_round(set, purse)->is_patient,
		.idle = purses_own(set, purse)->idle,
		.hopes = purse->hopes,
		.holders = purse->holders,
	};
}

static inline void purses_keep_borrow(const struct purses *set, struct purse *purse,
                                      const struct borrow *borrow)
{
	purses_round(set, purse)->seen = borrow->seen & BORROW_UNSEEN;
	purses_round(set, purse)->wait = borrow->wait & (BORROW_WAIT_MOST - 1);
	purses_round(set, purse)->is_patient = borrow->is_patient;
	purses_own(set, purse)->idle = borrow->idle;
	purse->hopes = borrow->hopes & 15u;
	purse->holders = borrow->holders & BORROW_HOLDERS_MOST;
}

/* By its number, since who has a purse need not know its set. */
static inline struct chunk *purse_chunk(const struct purse *purse)
{
	uint32_t at = purse->number % CHUNK_PURSES;

	return (struct chunk *)((uintptr_t)(purse - at) -
	                        offsetof(struct chunk, purses));
}

/* By the actor, of one that is in the table. */
static inline union sizer *purse_sizer(struct purse *purse)
{
	return purse->key_len <= PURSE_HEAD
	           ? &purse->key.sizer
	           : &purse_chunk(purse)->sizers->of[purse->number % CHUNK_PURSES];
}

static inline _Atomic uint32_t *purse_dues(const struct purse *purse)
{
	return &purse_chunk(purse)->dues[purse->number % CHUNK_PURSES].word;
}

/* Was anything ever owed by a purse of the chunk?  Most often not, and then nothing is owed.  Who looks
 * at a debt loads it anew, by purse_debt. */
static inline bool chunk_may_owe(const struct chunk *chunk)
{
	return !LIKELY(load_relaxed(&chunk->debts) == NULL);
}

/* By the actor. */
static inline void purse_mark(const struct purse *purse, uint32_t bit, bool on)
{
	_Atomic uint32_t *dues = purse_dues(purse);
	uint32_t word = load_relaxed(dues), marked = on ? word | bit : word & ~bit;

	if (marked != word)
		store_relaxed(dues, marked);
}

/* NULL: there is no room for a debt, so there is none. */
static inline _Atomic uint64_t *purse_debt(const struct purse *purse)
{
	struct debts *debts = load_acquire(&purse_chunk(purse)->debts); /* roomed */

	return debts ? &debts->of[purse->number % CHUNK_PURSES] : NULL;
}

static ALWAYS_INLINE bool key_is(const struct purse *purse, const uint8_t *key,
                                 size_t len)
{
	if (LIKELY(len <= PURSE_HEAD))
		return bytes_equal(purse->head, key, len);
	if (len <= PURSE_NEAR)
		return bytes_equal(purse->head, key, PURSE_HEAD) &&
		       bytes_equal(purse->key.tail, key + PURSE_HEAD, len - PURSE_HEAD);
	return bytes_equal(purse->key.far, key, len);
}

static ALWAYS_INLINE bool purse_is(const struct purse *purse,
                                   const struct purse_name *name)
{
	return LIKELY(purse->lender == name->lender) &&
	       LIKELY(purse->key_len == name->key_len) &&
	       LIKELY(key_is(purse, name->key, name->key_len));
}

/* The same of a short key, whose length is known: to look at it once more costs 0.3 ns. */
static ALWAYS_INLINE bool purse_is_of_short(const struct purse *purse,
                                            const struct purse_name *name)
{
	size_t last = (size_t)name->key_len - 8;

	return LIKELY(purse->lender == name->lender) &&
	       LIKELY(purse->key_len == name->key_len) &&
	       LIKELY(eight_at(purse->head) == eight_at(name->key)) &&
	       LIKELY(eight_at(purse->head + last) == eight_at(name->key + last));
}

/* Where most purses are, at home; NULL: it may be elsewhere. */
static ALWAYS_INLINE struct purse *root_find_near(const table_root *root,
                                                  const struct purse_name *name)
{
	uint64_t slot = home_near(home_at(root, name->hash), name->hash);

	return LIKELY(slot_is_of(slot, name->hash)) &&
	               LIKELY(purse_is(slot_item(slot), name))
	           ? slot_item(slot)
	           : NULL; /* TABLE-3 */
}

static ALWAYS_INLINE struct purse *root_find(const table_root *root,
                                             const struct purse_name *name)
{
	struct purse *purse = root_find_near(root, name);
	struct seek seek;

	if (LIKELY(purse != NULL))
		return purse; /* TABLE-3 */
	seek = root_seek(root, name->hash);
	do
		purse = table_next(&seek);
	while (purse && !purse_is(purse, name));
	return purse; /* TABLE-3 */
}

static inline struct purse *purses_find(struct purses *set,
                                        const struct purse_name *name)
{
	return root_find(&set->table.root, name);
}

/* The purse that is most likely the hash's, at home or not; its name is not compared. */
static ALWAYS_INLINE struct purse *root_likely(const table_root *root, uint64_t hash)
{
	uint64_t slot = home_near(home_at(root, hash), hash);
	struct seek seek;

	if (LIKELY(slot_is_of(slot, hash)))
		return slot_item(slot); /* TABLE-3 */
	seek = root_seek(root, hash);
	return table_next(&seek); /* TABLE-3 */
}

/* Brings a purse nearer, for one who will take from it soon; of NULL, nothing. */
static ALWAYS_INLINE void purse_prefetch(const struct purse *purse)
{
	__builtin_prefetch(purse, /* to be written= */ 1);
}

bool purses_open(struct purses *set, struct gale_allocator *allocator,
                 struct grace *grace, struct evictor *evictor, uint32_t max);
/* Nobody reads any more, and the evictor is not called. */
void purses_close(struct purses *set);

/* A new purse of that name, which has none; NULL when all are in use, or without
 * memory. */
struct purse *purses_add(struct purses *set, const struct purse_name *name);

/* Out of the table, if no thread holds it. */
bool purses_evict(struct purses *set, struct purse *purse);

/* Gives a purse cells for so many seats; it goes on without, and false, where there is no
 * memory, or cells have as much of it as they may. */
bool purses_give_cells(struct purses *set, struct purse *purse, uint32_t count);

/* Gives the purse of a pacer a block; without memory it is not done, and false. */
bool purses_give_block(struct purses *set, struct purse *purse,
                       const struct block *block);
/* Takes the purse's block away, if it has one. */
void purses_take_block(struct purses *set, struct purse *purse);

/* Lets go of what readers have left; true when something is still waiting for them. */
bool purses_turn(struct purses *set);

/* Gives some of what a table has outgrown back to the kernel, and at last the block.  Before
 * purses_turn: then a turn that lets go of a table does not begin with it, too. */
void purses_fade(struct purses *set);
static inline bool purses_fades(const struct purses *set)
{
	return set->own.fading != NULL;
}

/* Room for a debt of the purse, by any thread with a pin; false without memory. */
bool purses_make_room_for_debt(const struct purse *purse,
                               struct gale_allocator *allocator);

/* Room for units of the purse that are lent ahead; NULL without memory. */
struct ahead *purses_make_room_ahead(const struct purse *purse,
                                     struct gale_allocator *allocator);

/* Units that were in the purse, or were taken from it and not spent, are worth nothing. */
void purses_void(struct purse *purse);
/* The same, since another rule counts in other windows.  The debt stays. */
void purses_void_by_change(struct purse *purse);

bool purses_valid(struct purses *set);

#endif
