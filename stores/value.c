/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* value.c -- words and rows to bytes and back. */
#define _GNU_SOURCE
#include "stores/value.h"

#include <endian.h>
#include <string.h>

#include "engine/check.h"

#define ROW_BYTES (LEASE_ROW_WORDS * 8)
#define WINDOW_BYTES (STATE_HEAD_BYTES + 16)
#define WINDOW_MOST (WINDOW_BYTES + (LEASE_ROWS + 1) * ROW_BYTES)
#define FOLDED_HEAD (STATE_HEAD_BYTES + 24) /* start, tag, node */
#define FOLDED_ROW 32

static void put(uint8_t *out, uint64_t word)
{
	uint64_t little = htole64(word);

	memcpy(out, &little, sizeof(little));
}

static uint64_t get(const uint8_t *in)
{
	uint64_t little;

	memcpy(&little, in, sizeof(little));
	return le64toh(little);
}

static void put_row(uint8_t *out, const struct lease_row *row)
{
	const uint64_t words[LEASE_ROW_WORDS] = {
		row->node, row->number, row->granted,
		row->out,  row->tag.us, row->tag.part
	};

	for (size_t i = 0; i < LEASE_ROW_WORDS; i++)
		put(out + 8 * i, words[i]);
}

static struct lease_row row_at(const uint8_t *in)
{
	return (struct lease_row){
		.node = get(in),
		.number = get(in + 8),
		.granted = get(in + 16),
		.out = get(in + 24),
		.tag = { .us = get(in + 32), .part = get(in + 40) },
	};
}

size_t value_bytes(const struct rule *rule, const struct value *value)
{
	return state_bytes(rule_words(rule, value->words)) +
	       ledger_rows(&value->ledger) * ROW_BYTES;
}

size_t value_encode(const struct rule *rule, const struct value *value, uint8_t *out)
{
	size_t rows = ledger_rows(&value->ledger);
	size_t at = state_encode(rule, value->words, out);

	for (size_t i = 0; i < rows; i++, at += ROW_BYTES)
		put_row(out + at, &value->ledger.rows[i]);
	return at;
}

void value_encode_lent(const struct rule *rule, const struct lease_ask *ask,
                       const struct window_state *left, uint8_t *out)
{
	const uint64_t words[] = { left->start_us, left->used };
	const struct lease_row row = { .node = ask->node,
		                       .number = ask->number,
		                       .granted = ask->want,
		                       .out = ask->want,
		                       .tag = { .us = left->start_us } };

	put_row(out + state_encode(rule, words, out), &row);
}

void value_encode_apart(const struct lease_row *apart, uint8_t *out)
{
	put_row(out, apart);
}

/* The ninth: of the crowd among the others, or of none. */
static struct lease_row apart_at(const struct ledger *ledger, const uint8_t *bytes)
{
	struct lease_row apart = row_at(bytes);

	apart.tag = slot_at(ledger_crowd_of(ledger, apart.node));
	return apart;
}

static enum state_err decode_rows(const struct rule *rule, const uint8_t *bytes,
                                  size_t count, struct value *value)
{
	size_t rows = count / ROW_BYTES;
	bool has_ninth = rows == LEASE_ROWS + 1;

	if (count % ROW_BYTES != 0 || rows > LEASE_ROWS + 1)
		return STATE_SHORT;
	rows -= has_ninth;
	for (size_t i = 0; i < rows; i++)
		value->ledger.rows[i] = row_at(bytes + i * ROW_BYTES);
	if (has_ninth)
		value->ledger.apart =
		    apart_at(&value->ledger, bytes + LEASE_ROWS * ROW_BYTES);
	if (rows > 0 && (!lease_possible(rule) || ledger_rows(&value->ledger) != rows ||
	                 !ledger_valid(rule, value->words, &value->ledger)))
		return STATE_INVALID;
	return STATE_OK;
}

/* How many bytes the head says that the words take. */
static size_t head_says(const uint8_t *bytes, size_t count)
{
	uint64_t words = count < STATE_HEAD_BYTES ? 0 : get(bytes) >> 32;

	return words > count / 8 ? count : state_bytes(words);
}

/* ---- Folded ---------------------------------------------------------------------- */

static void put_double(uint8_t *out, int64_t number)
{
	double exact = (double)number;
	uint64_t bits;

	memcpy(&bits, &exact, sizeof(bits));
	put(out, bits);
}

/* A whole number that a double holds exactly. */
static bool get_double(const uint8_t *in, int64_t *ret_number)
{
	uint64_t bits = get(in);
	double number;

	memcpy(&number, &bits, sizeof(number));
	if (!(number >= -(double)GALE_UNITS_MAX && number <= (double)GALE_UNITS_MAX))
		return false;
	*ret_number = (int64_t)number;
	return (double)*ret_number == number;
}

static bool is_window_kind(uint64_t kind)
{
	return kind == GALE_RULE_FIXED_WINDOW || kind == GALE_RULE_QUOTA;
}

bool value_can_fold(const struct rule *rule)
{
	return is_window_kind((uint64_t)rule->is.kind);
}

/* A window's head, and a length that no value has which is not folded. */
static bool is_folded(const uint8_t *bytes, size_t count)
{
	return count > FOLDED_HEAD && count <= VALUE_FOLDED_MOST &&
	       (count - FOLDED_HEAD) % FOLDED_ROW == 0 &&
	       is_window_kind(get(bytes) >> 8 & 0xff);
}

static void fold_row(const struct lease_row *row, uint8_t *out)
{
	put_double(out, (int64_t)row->node);
	put_double(out + 8, (int64_t)row->number);
	put_double(out + 16, (int64_t)row->granted);
	put_double(out + 24, (int64_t)row->out);
}

static size_t fold(const uint8_t *bytes, size_t rows, uint8_t *out)
{
	int64_t used = (int64_t)get(bytes + STATE_HEAD_BYTES + 8);
	struct lease_row row = row_at(bytes + WINDOW_BYTES);

	gale_assert(rows >= 1 && rows <= LEASE_ROWS + 1);
	memcpy(out, bytes, STATE_HEAD_BYTES + 8);
	put(out + 24, row.tag.us);
	put(out + 32, row.node);
	put_double(out + 40, used - (int64_t)row.out);
	put_double(out + 48, used);
	put_double(out + 56, (int64_t)row.number);
	put_double(out + 64, (int64_t)row.granted);
	for (size_t i = 1; i < rows; i++) {
		row = row_at(bytes + WINDOW_BYTES + i * ROW_BYTES);
		fold_row(&row, out + FOLDED_HEAD + i * FOLDED_ROW);
	}
	return FOLDED_HEAD + rows * FOLDED_ROW;
}

size_t value_fold(const struct rule *rule, const uint8_t *bytes, size_t count,
                  uint8_t *out)
{
	if (value_can_fold(rule) && count > WINDOW_BYTES && !is_folded(bytes, count))
		return fold(bytes, (count - WINDOW_BYTES) / ROW_BYTES, out);
	memcpy(out, bytes, count);
	return count;
}

/* Four numbers.  False: one of them is none. */
static bool get_four(const uint8_t *in, int64_t four[4])
{
	for (size_t i = 0; i < 4; i++)
		if (!get_double(in + 8 * i, &four[i]))
			return false;
	return true;
}

/* A number below zero is one that no row has, and is refused as that. */
static bool unfold_row(const uint8_t *in, struct lease_row *row)
{
	int64_t four[4];

	if (!get_four(in, four))
		return false;
	row->node = (uint64_t)four[0];
	row->number = (uint64_t)four[1];
	row->granted = (uint64_t)four[2];
	row->out = (uint64_t)four[3];
	return true;
}

static bool unfold_first(const uint8_t *bytes, uint64_t *ret_used,
                         struct lease_row *row)
{
	int64_t four[4]; /* apart, used, number, granted */

	if (!get_four(bytes + FOLDED_HEAD, four))
		return false;
	*ret_used = (uint64_t)four[1];
	row->node = get(bytes + 32);
	row->number = (uint64_t)four[2];
	row->granted = (uint64_t)four[3];
	row->out = (uint64_t)(four[1] - four[0]);
	return true;
}

/* As it would be if it were not folded; 0: it is no value. */
static size_t unfold(const uint8_t *bytes, size_t count, uint8_t out[WINDOW_MOST])
{
	size_t rows = (count - FOLDED_HEAD) / FOLDED_ROW;
	struct lease_row row = { .tag = { .us = get(bytes + 24) } };
	uint64_t used;

	if (!unfold_first(bytes, &used, &row))
		return 0;
	memcpy(out, bytes, STATE_HEAD_BYTES + 8);
	put(out + STATE_HEAD_BYTES + 8, used);
	put_row(out + WINDOW_BYTES, &row);
	for (size_t i = 1; i < rows; i++) {
		if (!unfold_row(bytes + FOLDED_HEAD + i * FOLDED_ROW, &row))
			return 0;
		put_row(out + WINDOW_BYTES + i * ROW_BYTES, &row);
	}
	return WINDOW_BYTES + rows * ROW_BYTES;
}

/* ---- Back ------------------------------------------------------------------------ */

static enum state_err decode(const struct rule *rule, const uint8_t *bytes,
                             size_t count, struct value *value)
{
	size_t state = head_says(bytes, count);
	enum state_err err;

	if (state > count)
		return STATE_SHORT;
	err = state_decode(rule, bytes, state, value->words, value->room);
	return err == STATE_OK ? decode_rows(rule, bytes + state, count - state, value)
	                       : err;
}

enum state_err value_decode(const struct rule *rule, const uint8_t *bytes, size_t count,
                            struct value *value)
{
	uint8_t plain[WINDOW_MOST];

	memset(value->words, 0, value->room * sizeof(uint64_t));
	value->ledger = (struct ledger){ 0 };
	if (count == 0)
		return STATE_OK;
	if (!is_folded(bytes, count))
		return decode(rule, bytes, count, value);
	count = unfold(bytes, count, plain);
	return count == 0 ? STATE_INVALID : decode(rule, plain, count, value);
}

/* A window that has rows, not folded: what was lent ahead of the next is used. */
static const uint8_t *use_ahead(const uint8_t *bytes, size_t count, uint64_t now_us,
                                uint8_t *out)
{
	struct ledger ledger = { 0 };
	struct window_state state = { get(bytes + STATE_HEAD_BYTES),
		                      get(bytes + STATE_HEAD_BYTES + 8) };

	for (size_t i = 0;
	     i < LEASE_ROWS && WINDOW_BYTES + (i + 1) * ROW_BYTES <= count; i++)
		ledger.rows[i] = row_at(bytes + WINDOW_BYTES + i * ROW_BYTES);
	if (state.used <= GALE_UNITS_MAX) /* else it is invalid */
		lease_count_ahead(&state, get(bytes + 8),
		                  ledger_ahead(&ledger, state.start_us), now_us);
	memcpy(out, bytes, WINDOW_BYTES);
	put(out + STATE_HEAD_BYTES, state.start_us);
	put(out + STATE_HEAD_BYTES + 8, state.used);
	return out;
}

enum state_err value_convert(const struct rule *rule, const uint8_t *bytes,
                             size_t count, uint64_t now_us, struct value *value)
{
	uint8_t plain[WINDOW_MOST], used[WINDOW_BYTES];
	size_t state;

	value->ledger = (struct ledger){ 0 };
	if (is_folded(bytes, count)) {
		count = unfold(bytes, count, plain);
		bytes = plain;
		if (count == 0)
			return STATE_INVALID;
	}
	state = head_says(bytes, count);
	if (state > count || (count - state) % ROW_BYTES != 0)
		return STATE_SHORT;
	if (state == WINDOW_BYTES && count > state &&
	    (get(bytes) >> 8 & 0xff) == GALE_RULE_FIXED_WINDOW)
		bytes = use_ahead(bytes, count, now_us, used);
	return state_convert(rule, bytes, state, now_us, value->words, value->room);
}
