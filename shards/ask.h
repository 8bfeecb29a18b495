/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ask.h -- what travels from a seat to a shard and back.
 *
 * An ask belongs to its seat until it is posted, to the shard until home->answered is
 * called, and to the seat again after that.  No other thread reads or writes it.
 *
 * Threads   Its seat's thread until it is posted; then the shard's actor, until
 *           home->answered is called, which runs there; then the seat's again.
 */
#ifndef SHARDS_ASK_H
#define SHARDS_ASK_H

#include "shards/kept.h"
#include "shards/lender.h"
#include "stores/store.h"

struct ask;

/* Where an ask goes back to; answered runs on the shard's thread. */
struct ask_home {
	void (*answered)(struct ask_home *self, struct ask *ask);
};

struct ask {
	struct ask_home *home;
	struct lender *lender;
	uint64_t hash;          /* of the key under the lender's seed */
	struct store_op op;     /* its key is the one below */
	struct store_call call; /* of the op, while a store is at it */
	enum store_result result;
	bool is_note; /* the store has denied it already: remember that */
	bool is_due;  /* the purse that is kept needs a look; the pin goes along */
	bool keeps;   /* what is taken for it may go back: kept says what, with a pin */
	struct kept_units kept;

	/* The shard's. */
	bool restarted;       /* a store says that the key has begun anew */
	struct list waiting;  /* for an errand */
	struct list patience; /* of its link */
	mono due; /* when patience ends, its caller's or the limiter's; 0: it does not
	             wait yet, and its caller waits for ever.  Of a note: when the
	             store said so */

	uint8_t key[STORE_KEY_MAX];
};

#endif
