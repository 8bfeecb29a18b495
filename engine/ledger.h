/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ledger.h -- the rows of a key's ledger, for the steps of lease.c.
 *
 *     rows in use ........ the one that was lent to last first
 *     apart .............. of the asking node, beside its crowd (LEASE-6)
 *     the crowd's row .... the last of the value's
 *     the row ahead ...... behind the others, and not in the crowd's place
 *
 * lease.h says what they mean.
 *
 * Threads   Pure: any, on different ledgers.
 */
#ifndef ENGINE_LEDGER_H
#define ENGINE_LEDGER_H

#include "engine/lease.h"

enum lent_from {
	NOTHING,
	A_WINDOW,
	A_METER,
	A_PACER,
};

static inline enum lent_from lent_from(const struct rule *rule)
{
	switch (rule->is.kind) {
	case GALE_RULE_FIXED_WINDOW:
	case GALE_RULE_QUOTA:
		return A_WINDOW;
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return A_METER;
	case GALE_RULE_PACER:
		return A_PACER;
	default:
		return NOTHING;
	}
}

/* The node's row among the value's, or LEASE_ROWS. */
size_t ledger_row_of(const struct ledger *ledger, uint64_t node);
/* The node's, wherever it is, or NULL. */
struct lease_row *ledger_row(struct ledger *ledger, uint64_t node);

static inline bool ledger_is_apart(const struct ledger *ledger,
                                   const struct lease_row *row)
{
	return row == &ledger->apart;
}

static inline bool row_has_some(const struct lease_row *row)
{
	return row->out > 0 && row->granted > 0;
}

/* Of the row apart as it was, and as it is now. */
void ledger_count_crowd(struct ledger *ledger, const struct lease_row *before,
                        const struct lease_row *after);
/* In the place of the node's row, or as a new one. */
void ledger_put(const struct rule *rule, struct ledger *ledger,
                const struct lease_row *row, uint64_t now);

/* The row of what is lent ahead, or NULL; a new one, or NULL without room. */
struct lease_row *ledger_ahead_row(struct ledger *ledger);
struct lease_row *ledger_make_ahead_row(struct ledger *ledger);
/* No node can say any more what it was lent ahead of this window.  LEASE-8 */
void ledger_end_claims(struct ledger *ledger);

#endif
