/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lease.h -- units of a key, lent to a node and taken back.
 *
 * A node asks for many units at once and admits calls from them by itself.  Units that it is
 * lent are spent here, at once: for the store a lease is one step of the rule that takes
 * as much as there is, between least and want.
 *
 *     ask (node, number, least, want)  ->  grant (units, tag, lasts)
 *     give back (node, number, tag, units)  ->  taken back, or too late
 *
 * Beside the words of the rule a leased key has a ledger: a row for each node that was lent
 * to.  It makes a message that comes twice do its work once, and lets no node give back what
 * was not lent.
 *
 * A value has eight rows at most.  A window's other rows are kept apart, one for each node, and
 * its eighth row is the crowd's: it counts them.  A step reads and changes the value and the row
 * of the node that asks, so that it costs the same in a fleet of any size:
 *
 *     rows      of up to seven nodes
 *     crowd     which crowd it is; how many of the rows apart have units out, and how many of
 *               those nodes may have some in hand
 *     apart     the asking node's, if it is not among the first: the store puts it there before
 *               the step, and keeps it after
 *
 * A crowd is made when the first row goes apart, and ends with the window, or when the key is
 * forgotten or becomes another rule's.  It is known by the instant at which it was made, and so
 * are its rows: a row of another crowd counts as none.  A meter and a pacer have no crowd: of
 * a meter's units only those of the latest grant can go back, and of a pacer's the last.
 *
 * A call that comes while a window turns need not wait for a lease of the next one.  A node may
 * be lent units *ahead*: of this window and of the next, so that a call which they admit counts in
 * whichever of both it falls.  They are spent in this window at once.  Their sum is kept in a row of
 * its own, and the next window begins with so much used (lease_turn).  The node's first ask of the
 * next window says how many it was lent: then they are out with it, and go back as others do.
 *
 *     ahead     a row: how many units of the next window are lent, and how many of this one were
 *               lent ahead of it by nodes that have not said so yet
 *
 * A server that has forgotten what it lent ahead does not know the sum.  The first window that
 * begins after its quarantine begins with as much more used as can have been lent ahead of it: the
 * server may have gone on in the window before, and lent ahead again.  Of a window that was there
 * already when the quarantine ended no more is known than of what was lent in it (L12).
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
 *   LEASE-5  A row that is forgotten (the window turned, a ninth of a meter, one apart that
 *            has nothing out or was lost) can only make units stay spent, never come back
 *            twice.
 *   LEASE-6  A row apart counts only beside the crowd that it was made in.  (L16)
 *   LEASE-7  The units of a window that were lent ahead of it, at most a part of the limit that
 *            they were lent under, are used when it begins. (L1)  What goes back of them was said
 *            before to be out, and is in the sum. (L6)
 *   LEASE-8  A node says once in a window what it was lent ahead of it: with the ask that makes
 *            its row.  So no node is put down for what another was lent, and a message that
 *            comes twice gives no unit back that is in another's hands. (L6)
 *   LEASE-9  Units of a window that may come back are with a node that counts as one which may have
 *            some in hand, or are counted as units ahead that no node has said to have; but for what
 *            a node without grant says to have, if that is no more than it wanted. (L6)
 *
 * Threads   Pure: any, on different words.
 * Limits    LEASE-2 holds as long as the row is kept.  A message of a node without a row
 *           is its first: it may take units that no call waits for.
 *           A key that is forgotten and makes a crowd twice within a microsecond takes back
 *           units of the first crowd into the second.
 */
#ifndef ENGINE_LEASE_H
#define ENGINE_LEASE_H

#include "engine/rule.h"
#include "engine/window.h"

#define LEASE_ROWS 8
#define LEASE_ROW_WORDS 6
/* In the place of a node: the row of the crowd.  Its number is the instant at which it was made,
 * out says how many rows apart have units out, and granted of how many of those that is known
 * that they may have some in hand.  Gales that know of no crowd take it for a node. */
#define LEASE_CROWD GALE_UNITS_MAX
/* In the place of a node: the row of what is lent ahead.  Its number is one more than the units of
 * the next window that are, and out the units of this one that no node has said to have. */
#define LEASE_AHEAD (LEASE_CROWD - 1)
#define LEASE_AHEAD_PARTS 16 /* of a limit: at most one is lent ahead */
#define LEASE_NODE_MAX (LEASE_AHEAD - 1)
/* In the place of a part of the tag, where units of a window go back: more of what the node was lent
 * may come back. */
#define LEASE_KEEPS 1

/* One node's dealings with this key: words below 2^53.  node 0: an empty row. */
struct lease_row {
	uint64_t node;
	uint64_t number; /* of its last request */
	uint64_t
	    granted;  /* what that request got; 0: it has nothing in hand, since it gave
	                     back, or asked in vain when all was spent.  Of a window also, of
	                     one that got nothing: what it was lent ahead, if it wanted less, or
	                     1, if it gave back and more may come. */
	uint64_t out; /* lent under the tag, not given back, and could be */
	struct gale_slot
	    tag; /* of a pacer's units at once, which have none: when they die */
};

/* Rows in use come first, the one that was lent to last before the others. */
struct ledger {
	struct lease_row rows[LEASE_ROWS];
	/* Of the asking node, if it is kept apart; its tag is the number of its crowd.  Without a
	 * node: there is none, or none was looked for. */
	struct lease_row apart;
};

struct lease_ask {
	uint64_t node; /* 1 to LEASE_NODE_MAX, as unique as the store needs it to be */
	/* 1 to GALE_UNITS_MAX; a node's later requests have higher ones */
	uint64_t number;
	uint64_t want;
	uint64_t least; /* 1 to want */
	bool spent; /* nothing is in hand of what it was lent before, or can be again */
	uint64_t ahead;  /* wanted of the next window, too, if there is any grant */
	uint64_t had;    /* was lent ahead ... */
	uint64_t had_of; /* ... of the window that starts then */
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
	                     they have told, and one for units ahead that no node has said to
	                     have; else 0 */
	uint64_t
	    delay_ns;   /* pacer: from the store's now until the first place; else 0 */
	uint64_t ahead; /* besides units: so many of this window and of the next */
	uint64_t
	    had; /* of what the node said it had: so many are out with it from now on */
};

/* Can units of such a rule be lent at all?  Fixed windows, quotas, gcra, token
 * buckets, pacers.                                                              (L14) */
bool lease_possible(const struct rule *rule);

/* Can units of it be lent ahead?  Of a fixed window. */
bool lease_has_ahead(const struct rule *rule);

/*
 * Before each step on a key, of any node: the window that begins with what was lent ahead.
 * The first window that begins at reserve_from_us or after it begins with all that may have been
 * lent so by a store that has forgotten, too; 0: it has not.  False: nothing has changed.
 *                                                                                    LEASE-7
 */
bool lease_turn(const struct rule *rule, uint64_t *words, struct ledger *ledger,
                uint64_t now_us, uint64_t reserve_from_us);

/* As rule_expires: units of the next window that are lent keep the key until that is over. */
uint64_t lease_expires(const struct rule *rule, const uint64_t *words,
                       const struct ledger *ledger);

/*
 * Before the words of a fixed window of that period are converted to another rule's: what was lent
 * ahead of the next one is used, in it or, if it is over, in the next.  It counts in the window of
 * the other rule in which either ends.
 */
void lease_count_ahead(struct window_state *former, uint64_t period_us, uint64_t ahead,
                       uint64_t now_us);

/* words and *ledger change together, or not at all.  A store keeps the row apart as long as it
 * has units out.  lease_turn has been called. */
struct lease_grant lease_step(const struct rule *rule, uint64_t *words,
                              struct ledger *ledger, uint64_t now_us,
                              const struct lease_ask *ask);

/*
 * What lease_step says to the same number again, of one that got all it wanted, if that is all
 * that is known: how the window was left, and that no other node has a row there.  False: the
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

/* How many rows are in use: of the value's, the crowd's included. */
size_t ledger_rows(const struct ledger *ledger);
/* Which crowd the node's row is of, if it has one apart: a store has to look for it there before
 * a step.  0: it has none. */
uint64_t ledger_crowd_of(const struct ledger *ledger, uint64_t node);
/* How many units are lent of the window after that one. */
uint64_t ledger_ahead(const struct ledger *ledger, uint64_t start_us);
bool ledger_valid(const struct rule *rule, const uint64_t *words,
                  const struct ledger *ledger);

#endif
