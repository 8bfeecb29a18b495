/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * loans.c -- what the embedded store lends of its keys.
 *
 * A key that is leased has the rows of its ledger behind the rule's words, as many as are in
 * use.  Rows that are kept apart (engine/lease.h) are entries of a table beside the keys, by
 * node and key.
 *
 * Threads   Any, under the stripe's lock.
 */
#include <string.h>

#include "engine/check.h"
#include "stores/stripe.h"

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

static void name_apart(const struct key_run *run, uint64_t node, struct apart_name *is)
{
	uint32_t len = (uint32_t)(sizeof(node) + run->name.len);

	memcpy(is->bytes, &node, sizeof(node));
	memcpy(is->bytes + sizeof(node), run->name.bytes, run->name.len);
	is->name = (struct key_name){ is->bytes, len,
		                      memory_hash(run->memory, is->bytes, len) };
}

static struct entry *find_apart(const struct key_run *run, uint64_t node)
    ON(run->stripe->lock)
{
	struct apart_name is;

	name_apart(run, node, &is);
	return keys_find(&run->stripe->locked.rows, &is.name);
}

/* One of another crowd counts as none. LEASE-6 */
static void load_apart(const struct key_run *run, uint64_t node, struct ledger *ledger)
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

static void drop_apart(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
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

static struct entry *add_apart(const struct key_run *run, uint64_t node,
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
static void save_apart(const struct key_run *run, const struct loan *loan)
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

static void load(const struct key_run *run, const struct entry *entry, uint64_t node,
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

static void load_rows(const struct entry *entry, struct ledger *ledger)
{
	memcpy(ledger->rows, entry->words + entry->word_count,
	       entry->rows * sizeof(struct lease_row));
}

static void save(const struct rule *rule, struct entry *entry, const struct loan *loan)
{
	entry->fingerprint = rule->fingerprint;
	entry->rows = (uint16_t)ledger_rows(&loan->ledger);
	memcpy(entry->words, loan->words, rule->words * sizeof(uint64_t));
	memcpy(entry->words + rule->words, loan->ledger.rows,
	       entry->rows * sizeof(struct lease_row));
	entry->expires_us = lease_expires(rule, loan->words, &loan->ledger);
	gale_audit(ledger_valid(rule, loan->words, &loan->ledger));
}

void run_turn(const struct key_run *run, struct entry *entry)
{
	struct loan loan = { 0 };

	if (entry->rows == 0 || !lease_has_ahead(run->rule))
		return;
	memcpy(loan.words, entry->words, run->rule->words * sizeof(uint64_t));
	load_rows(entry, &loan.ledger);
	if (lease_turn(run->rule, loan.words, &loan.ledger, run->now,
	               /* reserve_from_us= */ 0))
		save(run->rule, entry, &loan);
}

uint64_t run_expires(const struct key_run *run, const struct entry *entry)
{
	struct ledger ledger = { 0 };

	if (entry->rows == 0 || !lease_has_ahead(run->rule))
		return rule_expires(run->rule, entry->words);
	load_rows(entry, &ledger);
	return lease_expires(run->rule, entry->words, &ledger);
}

uint64_t entry_ahead(const struct entry *entry)
{
	struct ledger ledger = { 0 };

	if (entry->rows == 0 || entry->kind != GALE_RULE_FIXED_WINDOW)
		return 0;
	load_rows(entry, &ledger);
	return ledger_ahead(&ledger, entry->words[0]);
}

/* Twice as many rows each time: most keys have one node, and few have many. */
static struct entry *with_rows(const struct key_run *run, struct entry *entry,
                               size_t rows) ON(run->stripe->lock)
{
	size_t room = 1;

	if (run->rule->words + rows * LEASE_ROW_WORDS <= entry->room)
		return entry;
	while (room < rows)
		room *= 2;
	return run_grow(run, entry, run->rule->words + room * LEASE_ROW_WORDS);
}

static enum store_result keep(const struct key_run *run, struct entry *entry,
                              const struct loan *loan) ON(run->stripe->lock)
{
	size_t rows = ledger_rows(&loan->ledger);
	enum store_result result = STORE_DONE;

	if (entry)
		entry = with_rows(run, entry, rows);
	else
		result = run_add(run, loan->words, rows, &entry);
	if (result != STORE_DONE)
		return result;
	if (!entry)
		return STORE_NO_MEMORY; /* STORE-3 */
	save(run->rule, entry, loan);
	save_apart(run, loan);
	return STORE_DONE;
}

/* A denial is not remembered, and a fresh key stays fresh; but of a node that
 * has a row it is noted that all is spent. */
static enum store_result lend(const struct key_run *run, struct entry *entry,
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
	else if (entry && !run->converted && (ask->spent || ask->had > 0))
		result = keep(run, entry, &loan);
	if (result != STORE_DONE)
		return result;
	run->stripe->locked.leases += grant.units > 0;
	*ret_grant = grant;
	return STORE_DONE;
}

/* Taking back never needs more room. */
static enum store_result lend_back(const struct key_run *run, struct entry *entry,
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

static struct lease_grant lend_status(const struct key_run *run,
                                      const struct entry *entry, uint64_t node)
    ON(run->stripe->lock)
{
	struct loan loan;

	load(run, entry, node, &loan);
	return lease_status(run->rule, loan.words, &loan.ledger, run->now, node);
}

enum store_result run_lend(const struct key_run *run, struct entry *entry,
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
