/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * store.h -- what every store must do.
 *
 * A store keeps the words of keys and runs rules on them.  Whatever stands behind it,
 * these hold:
 *
 *   V1  One run is one atomic step: it sees all runs on the same key before it, and
 *       none half done.
 *   V2  Time is the store's own, read within the step; for each key it never runs
 *       backward.                                                          (law L9)
 *   V3  What was spent is not forgotten while it counts: a key is dropped only when it
 *       has expired (R4) or by STORE_RESET.  A store that is full says so.  (law L8)
 *   V4  Words written under one fingerprint are never read under another:
 *       STORE_CHANGED.                                                     (law L9)
 *   V5  Unless the result is STORE_DONE, nothing has changed.
 *
 * Threads   run, sweep, stats: any thread, at once.  close: once, by the last user.
 */
#ifndef STORES_STORE_H
#define STORES_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

#include "engine/rule.h"

/* A limiter's name and a user's key, so joined that no two pairs look alike. */
#define STORE_KEY_MAX (1 + GALE_NAME_MAX + GALE_KEY_MAX)

enum store_verb {
	STORE_STEP,
	STORE_PEEK,
	STORE_FORECAST,
	STORE_CANCEL,
	STORE_RESET,
};

struct store_op {
	enum store_verb verb;
	uint32_t key_len;
	const uint8_t *key;
	const struct rule *rule;
	uint64_t cost;                /* step, forecast, cancel */
	struct gale_slot slot;        /* cancel */
	struct gale_answer answer;    /* of step and peek */
	struct gale_outlook forecast; /* of forecast */
};

enum store_result {
	STORE_DONE,
	STORE_BUSY, /* it could not be done at once, and patience was not given */
	STORE_LATE, /* it may or may not have been done; nobody waits any more */
	STORE_FULL,
	STORE_NO_MEMORY,
	STORE_CHANGED,
	STORE_NOT_BOOKED, /* cancel: nothing to give back */
};

struct store {
	const struct store_ops *ops;
};

struct store_ops {
	/* Without patience it never blocks, and may answer STORE_BUSY instead. */
	enum store_result (*run)(struct store *self, struct store_op *op, bool patient);
	/* Drops what has expired, some of it at a time; false when there may be more.
	 */
	bool (*sweep)(struct store *self);
	void (*stats)(struct store *self, struct gale_counts *ret_stats);
	void (*close)(struct store *self);
};

static inline enum store_result store_run(struct store *store, struct store_op *op,
                                          bool patient)
{
	return store->ops->run(store, op, patient);
}

#endif
