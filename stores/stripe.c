/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stripe.c -- room for keys: they are added, grow, expire.
 *
 * Threads   Any, under the stripe's lock.
 */
#include "stores/stripe.h"

#include <string.h>

#define LOOKS_FOR_ROOM 64 /* in each stripe, by an ask that needs room */

uint64_t stripe_read_clock(struct memory_store *memory, struct stripe *stripe)
    ON(stripe->lock)
{
	uint64_t now = memory->clock->now_us(memory->clock);

	if (now > INSTANT_MAX_US)
		now = INSTANT_MAX_US;
	if (stripe->locked.newest_us < now)
		stripe->locked.newest_us = now;
	return stripe->locked.newest_us;
}

uint64_t stripe_next_due(const struct stripe *stripe) ON(stripe->lock)
{
	uint64_t keys = keys_next_due(&stripe->locked.keys);
	uint64_t rows = keys_next_due(&stripe->locked.rows);

	return keys < rows ? keys : rows;
}

static void note_earliest(struct stripe *stripe) ON(stripe->lock)
{
	uint64_t due = stripe_next_due(stripe);

	if (load_relaxed(&stripe->earliest_us) != due) /* others read this line */
		store_relaxed(&stripe->earliest_us, due);
}

void stripe_expire(struct memory_store *memory, struct stripe *stripe, uint64_t looks,
                   uint64_t drops) ON(stripe->lock)
{
	uint64_t dropped = keys_expire(&stripe->locked.keys, memory->allocator,
	                               stripe->locked.newest_us, looks, drops);
	uint64_t rows = keys_expire(&stripe->locked.rows, memory->allocator,
	                            stripe->locked.newest_us, looks, drops);

	stripe->locked.expired += dropped;
	if (dropped > 0)
		sub_relaxed(&memory->used, dropped);
	if (rows > 0)
		sub_relaxed(&memory->rows_used, rows);
	note_earliest(stripe);
}

/* One that has expired is enough.  It may stand behind others that were moved on since;
 * behind very many, it makes room only after the next sweep. */
static void expire_one(struct memory_store *memory, struct stripe *stripe)
    ON(stripe->lock)
{
	stripe_expire(memory, stripe, LOOKS_FOR_ROOM, /* drops= */ 1);
}

bool take_place(_Atomic uint64_t *places, uint64_t most)
{
	uint64_t used = load_relaxed(places);

	while (used < most)
		if (swap_if_relaxed(places, &used, used + 1))
			return true;
	return false;
}

static bool reserve(struct memory_store *memory)
{
	return take_place(&memory->used, memory->max_keys); /* MEMORY-2 */
}

/* Expires elsewhere, without waiting for a lock. */
static void expire_others(struct memory_store *memory, const struct stripe *own,
                          uint64_t now)
{
	for (int i = 0; i < STRIPES; i++) {
		struct stripe *stripe = &memory->stripes[i];

		if (stripe == own || load_relaxed(&stripe->earliest_us) > now)
			continue;
		if (!lock_try(&stripe->lock))
			continue;
		if (stripe->locked.newest_us < now)
			stripe->locked.newest_us = now; /* MEMORY-1 */
		expire_one(memory, stripe);
		lock_drop(&stripe->lock);
	}
}

static bool reserve_if_possible(struct memory_store *memory, struct stripe *stripe)
    ON(stripe->lock)
{
	if (reserve(memory))
		return true;
	expire_one(memory, stripe);
	if (reserve(memory))
		return true;
	expire_others(memory, stripe, stripe->locked.newest_us);
	return reserve(memory);
}

void run_drop(const struct key_run *run, struct entry *entry) ON(run->stripe->lock)
{
	keys_drop(&run->stripe->locked.keys, run->memory->allocator, entry);
	sub_relaxed(&run->memory->used, 1);
}

struct entry *run_grow(const struct key_run *run, struct entry *entry, size_t room)
    ON(run->stripe->lock)
{
	struct entry *larger =
	    keys_grow(&run->stripe->locked.keys, run->memory->allocator, entry, room);

	run->stripe->locked.no_memory += larger == NULL;
	return larger;
}

void run_drop_expired(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	run_drop(run, entry);
	run->stripe->locked.expired++;
}

enum store_result run_add(const struct key_run *run, const uint64_t *words, size_t rows,
                          struct entry **ret_entry) ON(run->stripe->lock)
{
	const struct rule *rule = run->rule;
	size_t count = rule_words(rule, words);
	struct entry *entry;

	if (run->over)
		run_drop_expired(run, run->over);
	if (!reserve_if_possible(run->memory, run->stripe)) {
		run->stripe->locked.full++;
		return STORE_FULL; /* STORE-3 */
	}
	entry = keys_add(&run->stripe->locked.keys, run->memory->allocator, &run->name,
	                 count + rows * LEASE_ROW_WORDS, rule_expires(rule, words));
	if (!entry) {
		sub_relaxed(&run->memory->used, 1);
		run->stripe->locked.no_memory++;
		return STORE_NO_MEMORY;
	}
	entry->fingerprint = rule->fingerprint;
	entry->kind = (uint16_t)rule->is.kind;
	entry->word_count = (uint16_t)rule->words;
	memcpy(entry->words, words, count * sizeof(uint64_t));
	*ret_entry = entry;
	return STORE_DONE;
}
