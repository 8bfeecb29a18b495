/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* value.c -- words and rows to bytes and back. */
#define _GNU_SOURCE
#include "stores/value.h"

#include <endian.h>
#include <string.h>

#define ROW_BYTES (LEASE_ROW_WORDS * 8)

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

static enum state_err decode_rows(const struct rule *rule, const uint8_t *bytes,
                                  size_t count, struct value *value)
{
	size_t rows = count / ROW_BYTES;

	if (count % ROW_BYTES != 0 || rows > LEASE_ROWS)
		return STATE_SHORT;
	for (size_t i = 0; i < rows; i++)
		value->ledger.rows[i] = row_at(bytes + i * ROW_BYTES);
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

enum state_err value_decode(const struct rule *rule, const uint8_t *bytes, size_t count,
                            struct value *value)
{
	size_t state = head_says(bytes, count);
	enum state_err err;

	memset(value->words, 0, value->room * sizeof(uint64_t));
	value->ledger = (struct ledger){ 0 };
	if (count == 0)
		return STATE_OK;
	if (state > count)
		return STATE_SHORT;
	err = state_decode(rule, bytes, state, value->words, value->room);
	return err == STATE_OK ? decode_rows(rule, bytes + state, count - state, value)
	                       : err;
}
