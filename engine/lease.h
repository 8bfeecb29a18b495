/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lease.h -- units of a key, lent to a node and taken back.
 *
 * A node asks for many units at once and admits calls from them by itself.  What it is
 * lent is spent here, at once: for the store a lease is one step of the rule that takes
 * as much as there is, between least and want.
 *
 *     ask (node, number, least, want)  ->  grant (units, tag, lasts)
 *     give back (node, number, tag, units)  ->  taken back, or too late
 *
 * Beside the words of the rule a leased key has a ledger: a row for each of the nodes
 * that were lent to last.  It makes a message that comes twice do its work once, and
 * lets nobody give back what was not lent.
 *
 * The tag says what the units were taken from: for windows the window's start, for
 * meters the exact tat after the grant, for pacers the first place.  Units go back only
 * where they came from.  A row keeps its tag, because steps that are no leases work on
 * the same words and know nothing of the ledger.
 *
 * Invariants
 *
 *   LEASE-1  A grant is 0, or between least and want, and never more than what is left;
 *            but a pacer books least places whenever it would book a call of that cost.
 *            (L5)
 *   LEASE-2  A request number of a node does its work at most once: the same number
 *            again gets the same units and changes nothing; a lower one gets nothing.
 *            (L4, L13)
 *   LEASE-3  Units are taken back only under the tag they were lent under, only from a
 *            node whose row says that they are out, and at most once. (L6)
 *   LEASE-4  With units out and not given back, and whatever messages are lost or come
 *            twice, the sum of what was granted under a window's tag and not taken back
 *            is what the window has used; it is at most the largest limit that it was
 *            lent under. (L1, L15)
 *   LEASE-5  A row that is forgotten (more nodes than rows, or the window turned) can
 *            only make units stay spent, never come back twice.
 *
 * Threads   Pure: any, on different words.
 * Limits    LEASE-2 holds as long as the row is kept.  A message of a node without a row
 *           is its first: it may take units that nobody waits for.
 */
#ifndef ENGINE_LEASE_H
#define ENGINE_LEASE_H

#include "engine/rule.h"
#include "engine/window.h"

#define LEASE_ROWS 8
#define LEASE_ROW_WORDS 6

/* One node's dealings with this key: words below 2^53.  node 0: an empty row. */
struct lease_row {
	uint64_t node;
	uint64_t number; /* of its last request */
	uint64_t
	    granted;  /* what that request got; 0: it has nothing in hand, since it gave
	                     back, or asked in vain when all was spent */
	uint64_t out; /* lent under the tag, not given back, and could be */
	struct gale_slot
	    tag; /* of a pacer's units at once, which have none: when they die */
};

/* Rows in use come first, the one that was lent to last before the others. */
struct ledger {
	struct lease_row rows[LEASE_ROWS];
};

struct lease_ask {
	uint64_t node; /* 1 to GALE_UNITS_MAX, as unique as the store needs it to be */
	/* 1 to GALE_UNITS_MAX; a node's later requests have higher ones */
	uint64_t number;
	uint64_t want;
	uint64_t least; /* 1 to want */
	bool spent;     /* nothing is in hand of what it was lent before */
};

struct lease_grant {
	uint64_t units;
	struct gale_slot
	    tag; /* windows: also when units is 0; of a pacer's units at once: zero */
	uint64_t lasts_us; /* from the store's now: until the units are worth nothing */
	uint64_t left;     /* what can still be lent now */
	uint64_t
	    retry_us; /* when units is 0: until least units may be there, or GALE_NEVER;
	               * for a number that was used before, 0 may mean: with a new one */
	uint64_t holders; /* rows with units out, this node's included */
	uint64_t
	    others; /* windows: other rows whose nodes may have some in hand, as far as
	                     they have told; else 0 */
	uint64_t
	    delay_ns; /* pacer: from the store's now until the first place; else 0 */
};

/* Can units of such a rule be lent at all?  Fixed windows, quotas, gcra, token
 * buckets, pacers.                                                              (L14) */
bool lease_possible(const struct rule *rule);

/* words and *ledger change together, or not at all. */
struct lease_grant lease_step(const struct rule *rule, uint64_t *words,
                              struct ledger *ledger, uint64_t now_us,
                              const struct lease_ask *ask);

/*
 * What lease_step says to the same number again, of one that got all it wanted, if that is all
 * that is known: how the window was left, and that nobody else has a row there.  False: the
 * window cannot have been left so, or is over.
 */
bool lease_was_whole(const struct rule *rule, const struct window_state *left,
                     uint64_t now_us, const struct lease_ask *ask,
                     struct lease_grant *ret_grant);

/* True if the units are with the key again, now or by the same number before.  A
 * window's can come back in parts; a meter's and a pacer's only once for each grant, and
 * only the latest grant's: of a pacer's block the last so many places. */
bool lease_give_back(const struct rule *rule, uint64_t *words, struct ledger *ledger,
                     uint64_t now_us, uint64_t node, uint64_t number,
                     struct gale_slot tag, uint64_t units);

/* What lease_step would say to a node that asks for nothing: units is what it has out. */
struct lease_grant lease_status(const struct rule *rule, const uint64_t *words,
                                const struct ledger *ledger, uint64_t now_us,
                                uint64_t node);

/* How many rows are in use. */
size_t ledger_rows(const struct ledger *ledger);
bool ledger_valid(const struct rule *rule, const uint64_t *words,
                  const struct ledger *ledger);

#endif
