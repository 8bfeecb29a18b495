/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * value.h -- what a server keeps for a key: its words, and a row for each node with a lease.
 *
 *     head, words              as engine/codec.h encodes them
 *     node, number, granted,
 *     out, tag.us, tag.part    for each row of the ledger, 8 bytes each, little-endian;
 *                              those in use only, in their order
 *
 * A window with rows may be folded: the same in fewer bytes, so that what a lend to the
 * node of the first row leaves as it is lies together, and so does what it changes:
 *
 *     head, start, tag.us, node       of the ledger, and of its first row
 *     apart, used, number, granted    doubles: what is used and not out with that node
 *                                     (below zero, if the tag is of a window that is
 *                                     over); and the first row's
 *     node, number, granted, out      doubles, of each row behind it
 *
 * All rows of a window have one tag, and its part is zero.
 *
 * Of a key with a crowd (engine/lease.h) a server keeps the other rows elsewhere, one for each
 * node.  Where it tells how a value was, the row of the node that asked is a ninth, if it has one
 * in that crowd.
 *
 * Threads   Pure: any.
 */
#ifndef STORES_VALUE_H
#define STORES_VALUE_H

#include "engine/codec.h"
#include "engine/lease.h"

/* The longest that a step without a log can lead to: a sliding window's. */
#define VALUE_WORDS_MOST (2 + GALE_BUCKETS_MAX)
#define VALUE_SHORT_MOST (STATE_HEAD_BYTES + VALUE_WORDS_MOST * 8)

struct value {
	uint64_t *words; /* room of them, all zero if the key is new */
	size_t room;
	struct ledger ledger; /* empty for rules that cannot be lent from */
	bool restarted;       /* it was another kind's, and begins anew */
};

size_t value_bytes(const struct rule *rule, const struct value *value);

/* out has room for value_bytes of them. */
size_t value_encode(const struct rule *rule, const struct value *value, uint8_t *out);

/*
 * A window as a lend has left it that got all it wanted, with as much used as that: it says
 * the same of that request's number (engine/lease.h, LEASE-2), but of its node only that this is
 * what it has out.
 */
#define VALUE_LENT_BYTES (STATE_HEAD_BYTES + (2 + LEASE_ROW_WORDS) * 8)
void value_encode_lent(const struct rule *rule, const struct lease_ask *ask,
                       const struct window_state *left, uint8_t *out);

/* Are the rule's values windows that may have rows? */
bool value_can_fold(const struct rule *rule);

/* A value as Redis keeps it: folded if it is a window with rows; else, and if it is
 * folded already, as it is.  It is valid; out has room for VALUE_FOLDED_MOST, and for
 * count.  Returns how many bytes it wrote. */
#define VALUE_FOLDED_MOST (STATE_HEAD_BYTES + 24 + 32 * (LEASE_ROWS + 1))
size_t value_fold(const struct rule *rule, const uint8_t *bytes, size_t count,
                  uint8_t *out);

/* The same for what another rule has written: what it means under this one.  Rows are of that
 * one, and are left out: what is out stays spent. */
enum state_err value_convert(const struct rule *rule, const uint8_t *bytes,
                             size_t count, uint64_t now_us, struct value *value);

/* A row apart, as a ninth: 48 bytes, to be put behind those of a value that is not folded. */
#define VALUE_ROW_BYTES (LEASE_ROW_WORDS * 8)
void value_encode_apart(const struct lease_row *apart, uint8_t *out);

/* Folded or not.  No bytes at all are those of a new key. */
enum state_err value_decode(const struct rule *rule, const uint8_t *bytes, size_t count,
                            struct value *value);

#endif
