/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * quick.h -- what the quick ways to ask have in common: by name, many at once, of a held key.
 *
 * Most asks are of a seat that knows what time it is, and are answered from one word that
 * no other thread wants at this instant.  All of it is in line, so that an ask is one function.
 *
 * Threads   The seat's own; what takes a purse, within a grace period or with a pin on it.
 */
#ifndef FACE_QUICK_H
#define FACE_QUICK_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "face/checks.h"
#include "shards/local.h"

static ALWAYS_INLINE uint64_t hash_of(const struct lender *lender, const void *key,
                                      size_t key_len)
{
	if (LIKELY(hash_is_short(key_len)))
		return hash_short(&lender->secret, key, key_len);
	return XXH3_64bits_withSeed(key, key_len, lender->secret.first);
}

static ALWAYS_INLINE const table_root *root_of(const struct gale_seat *seat,
                                               uint64_t hash)
{
	return &seat->roots[shard_number(hash, seat->shard_count)].table;
}

/* ---- May it be quick? ------------------------------------------------------------ */

static ALWAYS_INLINE bool cost_is_quick(const struct lender *lender, uint64_t cost)
{
	return cost - 1 < load_relaxed(&lender->quick_most);
}

static ALWAYS_INLINE bool may_be_quick(const struct gale_seat *seat,
                                       const struct lender *lender, uint64_t cost)
{
	/* A limiter that is closed is not quick, and a seat that has left tells no time. */
	return LIKELY(cost_is_quick(lender, cost)) &&
	       LIKELY(lifeline_passes(&seat->lifeline));
}

/* ---- What is found --------------------------------------------------------------- */

/* The outcome in this node, in registers: an answer is made of it once, where it is
 * returned. */
struct found {
	enum local how;
	struct told told;
};

static ALWAYS_INLINE bool is_decided(const struct found *found)
{
	return found->how == LOCAL_TAKEN || found->how == LOCAL_REFUSED;
}

static ALWAYS_INLINE struct found take_quickly(mono now, struct purse *purse,
                                               struct cell *cell, uint64_t cost)
{
	struct found found = { .how = LOCAL_UNKNOWN };

	found.how = local_try_word(purse, cell, now, cost, &found.told);
	return found;
}

static inline struct gale_answer answer_from(const struct lender *lender,
                                             const struct found *found)
{
	uint64_t limit = load_relaxed(&lender->capacity);

	if (found->how == LOCAL_TAKEN)
		return LOCAL_ALLOW(limit, found->told);
	return LOCAL_DENY(limit, found->told);
}

#endif
