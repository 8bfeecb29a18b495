/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory.c -- stripes of keys, each under a lock of its own.
 *
 * A key's hash, keyed with a secret so that nobody can choose keys that collide, picks
 * its stripe.  A run locks the stripe, reads the clock, looks the key up, lets the
 * rule work on its words, and unlocks: no lock is held across anything that waits.
 *
 *   run:  lock -> now -> find -> rule_step -> (add | keep) -> expire a few -> unlock
 *
 * A beat of a group goes another way (groups.h): all groups are under one lock.
 *
 * A request to lend goes the same way, patiently, one after the other.  A key that is
 * leased has the rows of its ledger behind the rule's words, as many as are in use; a
 * strict key has none and pays nothing for them.  Both kinds of steps work on the same
 * words.  Rows that are kept apart (engine/lease.h) are entries of a table beside the keys, by
 * node and key: they expire like keys, and each is found as fast.
 *
 * Invariants
 *
 *   MEMORY-1  A stripe's now never decreases: now = max(clock, newest), read under its
 *             lock.
 *   MEMORY-2  used is the number of entries in all stripes, and at most max_keys.
 *   MEMORY-3  A new key is added only after the rule allowed it, and it is allowed only
 *             if it could be added: what was spent is remembered or was not spent.
 *   MEMORY-4  A store of a name is in the registry from its first opener to its last
 *             closer, in the process that opened it.
 *   MEMORY-5  A lease is stepped on a copy, and kept only if there is room for its row; but
 *             one apart is lost if there is none. LEASE-5
 *   MEMORY-6  rows_used is the number of rows apart in all stripes, and at most eight times
 *             max_keys.
 *
 * Ordering
 *
 *   used, rows_used, earliest, swept and the counters are relaxed: they publish nothing.  used
 *   and rows_used are the only words that stripes share, and hand out permissions one by one.
 *   earliest is
 *   a hint, read to skip stripes with nothing to expire; it is written under the lock,
 *   and a stale value costs one look or one sweep later.
 */
#include "stores/memory.h"

#include <stdalign.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/check.h"
#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "runtime/lifeline.h"
#include "runtime/lock.h"
#include "runtime/memory.h"
#include "runtime/random.h"
#include "stores/ears.h"
#include "stores/groups.h"
#include "stores/keys.h"

#define STRIPE_BITS 6
#define STRIPES (1 << STRIPE_BITS)
#define EXPIRE_PER_RUN 4    /* of old keys, for at most one new one */
#define LOOKS_FOR_ROOM 64   /* in each stripe, by an ask that needs room */
#define EXPIRE_PER_SWEEP 16 /* of a stripe, under one hold of its lock */
#define STRIPES_PER_SWEEP 4 /* that have something due: a sweep is a part of a turn */
#define COLD_WORDS (2 + GALE_BUCKETS_MAX) /* the longest state of a fresh key */
#define LEASED_WORDS 21 /* of a pacer, the longest state that can be lent from */
#define ROWS_PER_KEY 8  /* apart, on average, at most */

/* A row apart, as the words of an entry. */
struct apart_words {
	uint64_t crowd;
	uint64_t number;
	uint64_t granted;
	uint64_t out;
};

#define APART_WORDS (sizeof(struct apart_words) / sizeof(uint64_t))

struct stripe {
	/* MEMORY-1; beside the lock, as every run writes it */
	alignas(CACHE_LINE) struct lock lock;
	struct {
		uint64_t newest_us;
		uint64_t steps;
		struct keys keys;
		struct keys rows; /* apart, each by its node and its key */
		uint64_t full;
		uint64_t no_memory;
		uint64_t changed;
		uint64_t broken;
		uint64_t expired;
		uint64_t leases;
		uint64_t returns;
	} locked; /* under the lock; every function that touches it says so */
	_Atomic uint64_t earliest_us; /* next_due, as a hint */
};

struct memory_store {
	struct store store;

	/* Since it was opened. */
	struct gale_allocator *allocator;
	struct gale_clock *clock;
	struct boot_clock boot;
	uint64_t max_keys;
	uint8_t secret[XXH3_SECRET_SIZE_MIN];
	char name[GALE_NAME_MAX + 1];

	/* Under the registry's lock. */
	struct memory_store *next;
	uint64_t openers;

	struct {
		alignas(CACHE_LINE) struct lock lock;
		struct {
			struct groups *groups; /* NULL: none has beaten yet */
		} locked;
	} beats;

	struct ears ears;
	_Atomic uint64_t used;      /* MEMORY-2 */
	_Atomic uint64_t rows_used; /* MEMORY-6 */
	_Atomic uint64_t swept;     /* stripes so far: where the next sweep goes on */
	struct stripe stripes[STRIPES];
};

/* ---- Room for keys --------------------------------------------------------------- */

static uint64_t next_due(const struct stripe *stripe) ON(stripe->lock)
{
	uint64_t keys = keys_next_due(&stripe->locked.keys);
	uint64_t rows = keys_next_due(&stripe->locked.rows);

	return keys < rows ? keys : rows;
}

static void note_earliest(struct stripe *stripe) ON(stripe->lock)
{
	uint64_t due = next_due(stripe);

	if (load_relaxed(&stripe->earliest_us) != due) /* others read this line */
		store_relaxed(&stripe->earliest_us, due);
}

static void expire(struct memory_store *memory, struct stripe *stripe, uint64_t looks,
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
	expire(memory, stripe, LOOKS_FOR_ROOM, /* drops= */ 1);
}

static bool take_place(_Atomic uint64_t *places, uint64_t most)
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

/* Expires elsewhere, without waiting for anybody's lock. */
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

/* ---- Runs ------------------------------------------------------------------------ */

/* What one run works with, under the stripe's lock. */
struct run {
	struct memory_store *memory;
	struct stripe *stripe;
	const struct rule *rule;
	struct store_op *op; /* NULL: it lends */
	struct key_name name;
	uint64_t now;
	uint64_t
	    *converted; /* what the entry's words mean under this rule; NULL: that */
	struct entry *over; /* of another kind: it goes when the key begins anew */
	bool restarted;     /* there is such a one */
};

static struct rule_former former_of(const struct entry *entry)
{
	return (struct rule_former){
		.kind = (enum gale_rule_kind)entry->kind,
		.fingerprint = entry->fingerprint,
		.words = entry->words,
		.count = entry->word_count,
	};
}

static bool is_of(const struct entry *entry, const struct rule *rule)
{
	const struct rule_former former = former_of(entry);

	return rule_reads(rule, &former);
}

static bool forgets_any(const struct run *run)
{
	return run->op && run->op->verb == STORE_RESET;
}

static void drop(const struct run *run, struct entry *entry) ON(run->stripe->lock)
{
	keys_drop(&run->stripe->locked.keys, run->memory->allocator, entry);
	sub_relaxed(&run->memory->used, 1);
}

static struct entry *grow(const struct run *run, struct entry *entry, size_t room)
    ON(run->stripe->lock)
{
	struct entry *larger =
	    keys_grow(&run->stripe->locked.keys, run->memory->allocator, entry, room);

	run->stripe->locked.no_memory += larger == NULL;
	return larger;
}

static void drop_expired(const struct run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	drop(run, entry);
	run->stripe->locked.expired++;
}

/* What another rule has written becomes this one's.  Its rows are of the other, and go: what is
 * out stays spent.                                                              (L15) */
static enum store_result adopt(const struct run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	const struct rule *rule = run->rule;

	if (entry->room < rule->words)
		entry = grow(run, entry, rule->words);
	if (!entry)
		return STORE_NO_MEMORY;
	memcpy(entry->words, run->converted, rule->words * sizeof(uint64_t));
	entry->rows = 0;
	entry->fingerprint = rule->fingerprint;
	entry->word_count = (uint16_t)rule->words;
	entry->expires_us = rule_expires(rule, entry->words);
	return STORE_DONE;
}

/* Remembers what a fresh key has just spent, with room for so many rows. MEMORY-3 */
static enum store_result add(const struct run *run, const uint64_t *words, size_t rows,
                             struct entry **ret_entry) ON(run->stripe->lock)
{
	const struct rule *rule = run->rule;
	size_t count = rule_words(rule, words);
	struct entry *entry;

	if (run->over)
		drop_expired(run, run->over);
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

static enum store_result judge(const struct run *run) ON(run->stripe->lock)
{
	enum store_result result = store_judge(run->op);

	if (result != STORE_DONE)
		run->stripe->locked.broken++;
	return result;
}

static enum store_result step_fresh(const struct run *run) ON(run->stripe->lock)
{
	uint64_t words[COLD_WORDS] = { 0 };
	struct store_op *op = run->op;
	enum store_result result;
	struct entry *entry;

	op->answer = rule_step(op->rule, words, run->now, op->cost);
	result = judge(run);
	if (op->answer.verdict == GALE_ALLOW)
		result = add(run, words, /* rows= */ 0, &entry);
	run->stripe->locked.steps += result == STORE_DONE;
	return result;
}

/* RULE-1: then it needs no room. */
static bool will_deny(const struct run *run, const struct entry *entry)
{
	return rule_forecast(run->rule, entry->words, run->now, run->op->cost)
	           .spendable_now == 0;
}

/* Only a log needs more room as it goes; it gets half as much again. */
static struct entry *with_room(const struct run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	size_t need = rule_words_after_step(run->rule, entry->words);

	if (need <= entry->room || will_deny(run, entry))
		return entry;
	return grow(run, entry, need + need / 2);
}

static enum store_result step_known(const struct run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	struct store_op *op = run->op;
	enum store_result result;

	entry = with_room(run, entry);
	if (!entry)
		return STORE_NO_MEMORY;
	op->answer = rule_step(op->rule, entry->words, run->now, op->cost);
	result = judge(run);
	if (op->answer.verdict == GALE_ALLOW)
		entry->expires_us = rule_expires(op->rule, entry->words);
	run->stripe->locked.steps += result == STORE_DONE;
	return result;
}

/* A denial leaves the entry as the other rule has it: what that counts is not forgotten. */
static enum store_result step_converted(const struct run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	struct store_op *op = run->op;
	enum store_result result;

	op->answer = rule_step(op->rule, run->converted, run->now, op->cost);
	result = judge(run);
	if (op->answer.verdict == GALE_ALLOW)
		result = adopt(run, entry);
	run->stripe->locked.steps += result == STORE_DONE;
	return result;
}

static enum store_result step(const struct run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	if (run->converted)
		return step_converted(run, entry);
	return entry ? step_known(run, entry) : step_fresh(run);
}

static uint64_t *words_of(const struct run *run, struct entry *entry)
{
	return run->converted ? run->converted : entry->words;
}

static enum store_result cancel(const struct run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	struct store_op *op = run->op;

	if (!entry ||
	    !rule_cancel(op->rule, words_of(run, entry), run->now, op->cost, op->slot))
		return STORE_NOT_BOOKED;
	if (run->converted)
		return adopt(run, entry);
	entry->expires_us = rule_expires(op->rule, entry->words);
	return STORE_DONE;
}

static enum store_result act(const struct run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	static const uint64_t fresh[COLD_WORDS];
	const uint64_t *words = entry ? words_of(run, entry) : fresh;
	struct store_op *op = run->op;

	switch (op->verb) {
	case STORE_STEP:
		return step(run, entry);
	case STORE_PEEK:
		op->answer = rule_peek(op->rule, words, run->now);
		return judge(run);
	case STORE_FORECAST:
		op->forecast = rule_forecast(op->rule, words, run->now, op->cost);
		return judge(run);
	case STORE_CANCEL:
		return cancel(run, entry);
	case STORE_RESET:
		break;
	case STORE_BEAT:
		gale_assert(false && "it is of no key");
	}
	if (entry)
		drop(run, entry);
	return STORE_DONE;
}

/* ---- Lending --------------------------------------------------------------------- */

/* A key as a request to lend finds it, copied: kept only if there is room. MEMORY-5 */
struct loan {
	uint64_t words[LEASED_WORDS];
	struct ledger ledger;
};

/* ---- Rows apart */

struct apart_name {
	uint8_t bytes[sizeof(uint64_t) + STORE_KEY_MAX];
	struct key_name name;
};

static void name_apart(const struct run *run, uint64_t node, struct apart_name *is)
{
	uint32_t len = (uint32_t)(sizeof(node) + run->name.len);

	memcpy(is->bytes, &node, sizeof(node));
	memcpy(is->bytes + sizeof(node), run->name.bytes, run->name.len);
	is->name = (struct key_name){ is->bytes, len,
		                      XXH3_64bits_withSecret(
					  is->bytes, len, run->memory->secret,
					  sizeof(run->memory->secret)) };
}

static struct entry *find_apart(const struct run *run, uint64_t node)
    ON(run->stripe->lock)
{
	struct apart_name is;

	name_apart(run, node, &is);
	return keys_find(&run->stripe->locked.rows, &is.name);
}

/* One of another crowd counts as none. LEASE-6 */
static void load_apart(const struct run *run, uint64_t node, struct ledger *ledger)
    ON(run->stripe->lock)
{
	uint64_t crowd = ledger_crowd_of(ledger, node);
	const struct entry *entry = crowd == 0 ? NULL : find_apart(run, node);
	struct apart_words is;

	if (!entry)
		return;
	memcpy(&is, entry->words, sizeof(is));
	if (is.crowd != crowd)
		return;
	ledger->apart = (struct lease_row){
		.node = node,
		.number = is.number,
		.granted = is.granted,
		.out = is.out,
		.tag = { .us = is.crowd },
	};
}

static void drop_apart(const struct run *run, struct entry *entry) ON(run->stripe->lock)
{
	keys_drop(&run->stripe->locked.rows, run->memory->allocator, entry);
	sub_relaxed(&run->memory->rows_used, 1);
}

static uint64_t rows_most(const struct memory_store *memory)
{
	return memory->max_keys < UINT64_MAX / ROWS_PER_KEY
	           ? memory->max_keys * ROWS_PER_KEY
	           : UINT64_MAX;
}

static struct entry *add_apart(const struct run *run, uint64_t node,
                               uint64_t expires_us) ON(run->stripe->lock)
{
	struct memory_store *memory = run->memory;
	struct apart_name is;
	struct entry *entry;

	if (!take_place(&memory->rows_used, rows_most(memory))) /* MEMORY-6 */
		return NULL;
	name_apart(run, node, &is);
	entry = keys_add(&run->stripe->locked.rows, memory->allocator, &is.name,
	                 APART_WORDS, expires_us);
	if (!entry) {
		sub_relaxed(&memory->rows_used, 1);
		run->stripe->locked.no_memory++;
	}
	return entry;
}

/* As long as it has units out. */
static void save_apart(const struct run *run, const struct loan *loan)
    ON(run->stripe->lock)
{
	const struct lease_row *row = &loan->ledger.apart;
	struct apart_words is = { row->tag.us, row->number, row->granted, row->out };
	uint64_t expires = rule_expires(run->rule, loan->words);
	struct entry *entry;

	if (row->node == 0)
		return;
	entry = find_apart(run, row->node);
	if (entry && row->out == 0) {
		drop_apart(run, entry);
		return;
	}
	if (!entry)
		entry = add_apart(run, row->node, expires);
	if (!entry)
		return; /* LEASE-5 */
	memcpy(entry->words, &is, sizeof(is));
	entry->expires_us = expires;
}

/* ---- Loans */

static void load(const struct run *run, const struct entry *entry, uint64_t node,
                 struct loan *ret_loan) ON(run->stripe->lock)
{
	const struct rule *rule = run->rule;

	gale_assert(lease_possible(rule));
	gale_assert(rule->words <= LEASED_WORDS);
	*ret_loan = (struct loan){ 0 };
	if (run->converted)
		memcpy(ret_loan->words, run->converted, rule->words * sizeof(uint64_t));
	if (!entry || run->converted) /* then its rows are of the other rule */
		return;
	memcpy(ret_loan->words, entry->words, rule->words * sizeof(uint64_t));
	memcpy(ret_loan->ledger.rows, entry->words + rule->words,
	       entry->rows * sizeof(struct lease_row));
	load_apart(run, node, &ret_loan->ledger);
}

static void save(const struct rule *rule, struct entry *entry, const struct loan *loan)
{
	entry->fingerprint = rule->fingerprint;
	entry->rows = (uint16_t)ledger_rows(&loan->ledger);
	memcpy(entry->words, loan->words, rule->words * sizeof(uint64_t));
	memcpy(entry->words + rule->words, loan->ledger.rows,
	       entry->rows * sizeof(struct lease_row));
	entry->expires_us = rule_expires(rule, loan->words);
	gale_audit(ledger_valid(rule, loan->words, &loan->ledger));
}

/* Twice as many rows each time: most keys have one node, and few have many. */
static struct entry *with_rows(const struct run *run, struct entry *entry, size_t rows)
    ON(run->stripe->lock)
{
	size_t room = 1;

	if (run->rule->words + rows * LEASE_ROW_WORDS <= entry->room)
		return entry;
	while (room < rows)
		room *= 2;
	return grow(run, entry, run->rule->words + room * LEASE_ROW_WORDS);
}

static enum store_result keep(const struct run *run, struct entry *entry,
                              const struct loan *loan) ON(run->stripe->lock)
{
	size_t rows = ledger_rows(&loan->ledger);
	enum store_result result = STORE_DONE;

	if (entry)
		entry = with_rows(run, entry, rows);
	else
		result = add(run, loan->words, rows, &entry);
	if (result != STORE_DONE)
		return result;
	if (!entry)
		return STORE_NO_MEMORY; /* STORE-3 */
	save(run->rule, entry, loan);
	save_apart(run, loan);
	return STORE_DONE;
}

/* What was denied is not remembered, and a fresh key stays fresh; but of a node that
 * has a row it is noted that all is spent. */
static enum store_result lend(const struct run *run, struct entry *entry,
                              const struct lease_ask *ask,
                              struct lease_grant *ret_grant) ON(run->stripe->lock)
{
	enum store_result result = STORE_DONE;
	struct lease_grant grant;
	struct loan loan;

	load(run, entry, ask->node, &loan);
	grant = lease_step(run->rule, loan.words, &loan.ledger, run->now, ask);
	if (grant.units > 0)
		result = keep(run, entry, &loan);
	else if (entry && !run->converted && ask->spent)
		result = keep(run, entry, &loan);
	if (result != STORE_DONE)
		return result;
	run->stripe->locked.leases += grant.units > 0;
	*ret_grant = grant;
	return STORE_DONE;
}

/* What it takes back never needs more room. */
static enum store_result lend_back(const struct run *run, struct entry *entry,
                                   const struct lend_request *request)
    ON(run->stripe->lock)
{
	struct loan loan;

	load(run, entry, request->ask.node, &loan);
	if (!entry || !lease_give_back(run->rule, loan.words, &loan.ledger, run->now,
	                               request->ask.node, request->ask.number,
	                               request->tag, request->units))
		return STORE_NOT_BOOKED;
	save(run->rule, entry, &loan);
	save_apart(run, &loan);
	run->stripe->locked.returns++;
	return STORE_DONE;
}

static struct lease_grant lend_status(const struct run *run, const struct entry *entry,
                                      uint64_t node) ON(run->stripe->lock)
{
	struct loan loan;

	load(run, entry, node, &loan);
	return lease_status(run->rule, loan.words, &loan.ledger, run->now, node);
}

static enum store_result serve(const struct run *run, struct entry *entry,
                               const struct lend_request *request,
                               struct lease_grant *ret_grant) ON(run->stripe->lock)
{
	switch (request->verb) {
	case LEND:
		return lend(run, entry, &request->ask, ret_grant);
	case LEND_BACK:
		return lend_back(run, entry, request);
	case LEND_STATUS:
		break;
	}
	*ret_grant = lend_status(run, entry, request->ask.node);
	return STORE_DONE;
}

/* ---- One atomic step ------------------------------------------------------------- */

/* The store's time, read under the lock: runs on a key are in the order of their nows.
 * MEMORY-1, STORE-2 */
static uint64_t read_clock(struct memory_store *memory, struct stripe *stripe)
    ON(stripe->lock)
{
	uint64_t now = memory->clock->now_us(memory->clock);

	if (now > INSTANT_MAX_US)
		now = INSTANT_MAX_US;
	if (stripe->locked.newest_us < now)
		stripe->locked.newest_us = now;
	return stripe->locked.newest_us;
}

static enum store_result run_on_entry(const struct run *run, struct entry *entry,
                                      const struct lend_request *request,
                                      struct lease_grant *ret_grant)
    ON(run->stripe->lock)
{
	return request ? serve(run, entry, request, ret_grant) : act(run, entry);
}

/* Another rule has written the entry, and it counts still. STORE-4 */
static enum store_result run_on_other(struct run *run, struct entry *entry,
                                      const struct lend_request *request,
                                      struct lease_grant *ret_grant)
    ON(run->stripe->lock)
{
	const struct rule_former former = former_of(entry);
	uint64_t words[COLD_WORDS];
	enum store_result result;

	switch (rule_convert(run->rule, &former, run->now, words)) {
	case RULE_CONVERTED:
		run->converted = words;
		result = run_on_entry(run, entry, request, ret_grant);
		run->converted = NULL; /* the words are this function's */
		return result;
	case RULE_INVALID:
		gale_assert(false && "this store has written them itself");
		return STORE_WRONG;
	case RULE_OTHER:
		break;
	}
	if (!run->rule->restarts) {
		run->stripe->locked.changed++;
		return STORE_CHANGED;
	}
	run->over = entry;
	run->restarted = true;
	return run_on_entry(run, /* entry= */ NULL, request, ret_grant);
}

static enum store_result run_on_key(struct run *run, const struct lend_request *request,
                                    struct lease_grant *ret_grant) ON(run->stripe->lock)
{
	struct entry *entry = keys_find(&run->stripe->locked.keys, &run->name);

	if (!entry || is_of(entry, run->rule) || forgets_any(run))
		return run_on_entry(run, entry, request, ret_grant);
	if (request && request->verb == LEND_BACK)
		return STORE_NOT_BOOKED; /* its row is gone, or will be */
	if (entry->expires_us > run->now)
		return run_on_other(run, entry, request, ret_grant);
	drop_expired(run, entry);
	return run_on_entry(run, /* entry= */ NULL, request, ret_grant);
}

/* The key first, then those that are due: one that is asked about again is moved on,
 * not dropped and made anew. */
static enum store_result run_locked(struct run *run, const struct lend_request *request,
                                    struct lease_grant *ret_grant) ON(run->stripe->lock)
{
	enum store_result result;

	run->now = read_clock(run->memory, run->stripe);
	result = run_on_key(run, request, ret_grant);
	if (run->restarted && run->op && run->op->answer.verdict == GALE_ALLOW)
		run->op->answer.why = GALE_WHY_RESTARTED;
	expire(run->memory, run->stripe, EXPIRE_PER_RUN, EXPIRE_PER_RUN);
	return result;
}

static struct run run_on(struct memory_store *memory, const struct rule *rule,
                         const uint8_t *key, uint32_t key_len)
{
	uint64_t hash = XXH3_64bits_withSecret(key, key_len, memory->secret,
	                                       sizeof(memory->secret));

	return (struct run){
		.memory = memory,
		.stripe = &memory->stripes[hash >> (64 - STRIPE_BITS)],
		.rule = rule,
		.name = { key, key_len, hash },
	};
}

/* The node's own: CLOCK_BOOTTIME if the host has none. */
static mono instant_of(const struct memory_store *memory)
{
	return memory->clock->boot_ns ? clock_now(memory->clock)
	                              : (mono){ boottime_ns() };
}

static enum store_result beat_locked(struct memory_store *memory, struct store_op *op,
                                     struct group_nudge *ret_nudge)
    ON(memory->beats.lock)
{
	struct groups *groups = memory->beats.locked.groups;

	if (!groups)
		groups = groups_open(memory->allocator, memory->max_keys);
	memory->beats.locked.groups = groups;
	if (!groups)
		return STORE_NO_MEMORY;
	return groups_beat(groups, op->key, op->key_len, op->beat,
	                   memory->clock->now_us(memory->clock), instant_of(memory),
	                   /* forgot_us= */ 0, ret_nudge);
}

static void nudge(struct memory_store *memory, const struct store_op *op,
                  const struct group_nudge *is)
{
	const struct store_nudge nudge = { store_mark(op->key, op->key_len), UINT64_MAX,
		                           *is };

	if (is->whom != 0)
		ears_tell(&memory->ears, &nudge);
}

/* Nodes beat now and then: who has no patience for one has none at all. */
static enum store_result beat(struct memory_store *memory, struct store_op *op,
                              bool patient)
{
	struct group_nudge is = { 0 };
	enum store_result result;

	if (patient)
		lock_take(&memory->beats.lock);
	else if (!lock_try(&memory->beats.lock))
		return STORE_BUSY;
	result = beat_locked(memory, op, &is);
	lock_drop(&memory->beats.lock);
	nudge(memory, op, &is);
	return result;
}

static enum store_result run_key(struct memory_store *memory, struct store_op *op,
                                 bool patient)
{
	struct run run = run_on(memory, op->rule, op->key, op->key_len);
	enum store_result result;

	run.op = op;
	if (patient)
		lock_take(&run.stripe->lock);
	else if (!lock_try(&run.stripe->lock))
		return STORE_BUSY;
	result = run_locked(&run, /* request= */ NULL, /* ret_grant= */ NULL);
	lock_drop(&run.stripe->lock);
	return result;
}

static enum store_result memory_run(struct store *self, struct store_op *op,
                                    bool patient)
{
	struct memory_store *memory = (struct memory_store *)self;

	return op->verb == STORE_BEAT ? beat(memory, op, patient)
	                              : run_key(memory, op, patient);
}

/* The answer is given outside the lock, so that it may ask for more. */
static void memory_lend(const struct store_client *client,
                        const struct lend_request *requests, size_t count)
{
	struct memory_store *memory = (struct memory_store *)client->store;

	for (size_t i = 0; i < count; i++) {
		const struct lend_request *request = &requests[i];
		struct lend_answer answer = { .number = request->ask.number };
		struct run run =
		    run_on(memory, request->rule, request->key, request->key_len);

		lock_take(&run.stripe->lock);
		answer.result = run_locked(&run, request, &answer.grant);
		answer.restarted = run.restarted;
		lock_drop(&run.stripe->lock);
		client->home->on_answer(client->home, &answer);
	}
}

/* ---- Sweeping and counting ------------------------------------------------------- */

/* True: something was due. */
static bool sweep_stripe(struct memory_store *memory, struct stripe *stripe)
{
	bool due;

	lock_take(&stripe->lock);
	read_clock(memory, stripe);
	due = next_due(stripe) <= stripe->locked.newest_us;
	expire(memory, stripe, EXPIRE_PER_SWEEP, EXPIRE_PER_SWEEP);
	lock_drop(&stripe->lock);
	return due;
}

/* A few, from where the last sweep has ended; true when nothing was due in any. */
static bool sweep_stripes(struct memory_store *memory)
{
	uint64_t first = load_relaxed(&memory->swept), due = 0, i;

	for (i = 0; i < STRIPES && due < STRIPES_PER_SWEEP; i++)
		due += sweep_stripe(memory, &memory->stripes[(first + i) % STRIPES]);
	store_relaxed(&memory->swept, first + i);
	return due == 0;
}

static bool sweep_groups(struct memory_store *memory)
{
	struct groups *groups;
	bool done;

	lock_take(&memory->beats.lock);
	groups = memory->beats.locked.groups;
	done = !groups || groups_sweep(groups, instant_of(memory));
	lock_drop(&memory->beats.lock);
	return done;
}

static bool memory_sweep(struct store *self)
{
	struct memory_store *memory = (struct memory_store *)self;
	bool done = sweep_groups(memory);

	return sweep_stripes(memory) && done;
}

static void add_stats(struct stripe *stripe, struct gale_counts *sum)
{
	lock_take(&stripe->lock);
	sum->keys += stripe->locked.keys.count;
	sum->steps += stripe->locked.steps;
	sum->full += stripe->locked.full;
	sum->memory += stripe->locked.no_memory;
	sum->changed += stripe->locked.changed;
	sum->broken += stripe->locked.broken;
	sum->expired += stripe->locked.expired;
	sum->leases += stripe->locked.leases;
	sum->returns += stripe->locked.returns;
	lock_drop(&stripe->lock);
}

static void memory_stats(struct store *self, struct gale_counts *ret_stats)
{
	struct memory_store *memory = (struct memory_store *)self;

	*ret_stats = (struct gale_counts){ 0 };
	for (int i = 0; i < STRIPES; i++)
		add_stats(&memory->stripes[i], ret_stats);
}

/* ---- Opening and closing --------------------------------------------------------- */

/*
 * The stores that have names.  In a child made by fork() this reads as zero: an open
 * lock and no stores, so that the child starts with stores of its own, and does not
 * wait for a lock that a thread of its parent held.  Here it starts as zero, too.
 */
static union {
	alignas(LIFELINE_PAGE) uint8_t pages[LIFELINE_PAGE];
	struct {
		struct lock lock;
		struct {
			struct memory_store *first;
		} locked;
	} is;
} registry;

static void memory_free(struct memory_store *memory)
{
	struct gale_allocator *allocator = memory->allocator;

	for (int i = 0; i < STRIPES; i++) {
		struct stripe *stripe = &memory->stripes[i];

		lock_take(&stripe->lock);
		gale_audit(keys_valid(&stripe->locked.keys));
		gale_audit(keys_valid(&stripe->locked.rows));
		keys_close(&stripe->locked.keys, allocator);
		keys_close(&stripe->locked.rows, allocator);
		lock_drop(&stripe->lock);
		lock_destroy(&stripe->lock);
	}
	lock_take(&memory->beats.lock);
	groups_close(memory->beats.locked.groups);
	lock_drop(&memory->beats.lock);
	lock_destroy(&memory->beats.lock);
	ears_close(&memory->ears);
	memory_give_lines(allocator, memory, sizeof(*memory));
}

/* True for the last one; the store is then out of the registry. */
static bool release(struct memory_store *memory) ON(registry.is.lock)
{
	struct memory_store **at = &registry.is.locked.first;

	if (--memory->openers > 0)
		return false;
	while (*at != memory)
		at = &(*at)->next;
	*at = memory->next; /* MEMORY-4 */
	return true;
}

static void memory_close(struct store *self)
{
	struct memory_store *memory = (struct memory_store *)self;
	bool last = true;

	if (memory->name[0] != '\0') {
		lock_take(&registry.is.lock);
		last = release(memory);
		lock_drop(&registry.is.lock);
	}
	if (last)
		memory_free(memory);
}

static struct store_ear *memory_listen(struct store *self, struct watch watch)
{
	return ear_open(&((struct memory_store *)self)->ears, watch);
}

static const struct store_ops memory_ops = {
	.run = memory_run,
	.lend = memory_lend,
	.listen = memory_listen,
	.hear = ear_hear,
	.unlisten = ear_close,
	.sweep = memory_sweep,
	.stats = memory_stats,
	.close = memory_close,
};

static struct memory_store *memory_new(const struct memory_config *config)
{
	struct memory_store *memory =
	    memory_take_lines(config->allocator, sizeof(*memory));

	if (!memory)
		return NULL;
	memory->store.ops = &memory_ops;
	memory->allocator = config->allocator;
	boot_clock_init(&memory->boot);
	memory->clock = config->clock ? config->clock : &memory->boot.clock;
	memory->max_keys = config->max_keys;
	memory->openers = 1;
	strcpy(memory->name, config->name);
	lock_init(&memory->beats.lock);
	ears_open(&memory->ears, config->allocator);
	for (int i = 0; i < STRIPES; i++) {
		lock_init(&memory->stripes[i].lock);
		store_relaxed(&memory->stripes[i].earliest_us, UINT64_MAX);
	}
	if (random_fill(memory->secret, sizeof(memory->secret)))
		return memory;
	memory_free(memory);
	return NULL;
}

static struct memory_store *find_named(const char *name) ON(registry.is.lock)
{
	struct memory_store *at = registry.is.locked.first;

	while (at && strcmp(at->name, name) != 0)
		at = at->next;
	return at;
}

static struct memory_store *open_named(const struct memory_config *config)
    ON(registry.is.lock)
{
	struct memory_store *memory = find_named(config->name);

	if (memory) {
		memory->openers++;
		return memory;
	}
	memory = memory_new(config);
	if (memory) {
		memory->next = registry.is.locked.first;
		registry.is.locked.first = memory; /* MEMORY-4 */
	}
	return memory;
}

struct store *memory_open(const struct memory_config *config)
{
	struct memory_store *memory;

	gale_assert(strlen(config->name) <= GALE_NAME_MAX);
	gale_assert(config->max_keys > 0);
	if (config->name[0] == '\0')
		return (struct store *)memory_new(config);
	if (!lifeline_cover(registry.pages, sizeof(registry.pages)))
		return NULL;
	lock_take(&registry.is.lock);
	memory = open_named(config);
	lock_drop(&registry.is.lock);
	return (struct store *)memory;
}
