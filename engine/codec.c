/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* codec.c -- words to bytes and back, the same on every machine. */
#include "engine/codec.h"

#include "engine/check.h"

#define VERSION 2
#define FIRST_VERSION 1

static void put(uint8_t *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> (8 * i));
}

/* Written out, it is one instruction where the machine has that order. */
static uint64_t get(const uint8_t *in)
{
	return (uint64_t)in[0] | (uint64_t)in[1] << 8 | (uint64_t)in[2] << 16 |
	       (uint64_t)in[3] << 24 | (uint64_t)in[4] << 32 | (uint64_t)in[5] << 40 |
	       (uint64_t)in[6] << 48 | (uint64_t)in[7] << 56;
}

size_t state_bytes(size_t words)
{
	return STATE_HEAD_BYTES + words * 8;
}

size_t state_encode(const struct rule *rule, const uint64_t *words, uint8_t *out)
{
	size_t count = rule_words(rule, words);

	gale_audit(rule_valid(rule, words, count)); /* CODEC-1 */
	put(out, VERSION, 1);
	put(out + 1, (uint64_t)rule->is.kind, 1);
	put(out + 2, 0, 2);
	put(out + 4, count, 4);
	put(out + 8, rule->fingerprint, 8);
	for (size_t i = 0; i < count; i++)
		put(out + state_bytes(i), words[i], 8);
	return state_bytes(count);
}

/* The first eight bytes of the head say. */
static uint64_t version_of(uint64_t head)
{
	return head & 0xffff00ff;
}

static uint64_t kind_of(uint64_t head)
{
	return head >> 8 & 0xff;
}

static size_t words_of(uint64_t head)
{
	return (size_t)(head >> 32);
}

static enum state_err check_head(const struct rule *rule, const uint8_t *bytes,
                                 size_t count, size_t room)
{
	uint64_t head;

	if (count < STATE_HEAD_BYTES)
		return STATE_SHORT;
	head = get(bytes);
	if (version_of(head) == FIRST_VERSION)
		return STATE_CHANGED;
	if (version_of(head) != VERSION)
		return STATE_VERSION;
	if (kind_of(head) != (uint64_t)rule->is.kind ||
	    get(bytes + 8) != rule->fingerprint)
		return STATE_CHANGED; /* CODEC-2 */
	if (count != state_bytes(words_of(head)))
		return STATE_SHORT;
	return words_of(head) <= room ? STATE_OK : STATE_TOO_LONG;
}

enum state_err state_decode(const struct rule *rule, const uint8_t *bytes, size_t count,
                            uint64_t *words, size_t room)
{
	enum state_err err = check_head(rule, bytes, count, room);
	size_t word_count;

	if (err != STATE_OK)
		return err;
	word_count = words_of(get(bytes));
	/* CODEC-1 */
	for (size_t i = 0; i < word_count; i++)
		words[i] = get(bytes + state_bytes(i));
	if (!rule_reads(rule, &(struct rule_former){ .kind = rule->is.kind,
	                                             .fingerprint = rule->fingerprint,
	                                             .words = words,
	                                             .count = word_count }))
		return STATE_CHANGED; /* CODEC-2 */
	return rule_valid(rule, words, word_count) ? STATE_OK
	                                           : STATE_INVALID; /* CODEC-1 */
}

/* ---- What another rule has written ----------------------------------------------- */

/* Only a log's former state is longer than that, and it becomes what it is. */
#define FORMER_WORDS_MOST (2 + GALE_BUCKETS_MAX)

static enum state_err state_of(enum rule_conversion conversion)
{
	switch (conversion) {
	case RULE_CONVERTED:
		return STATE_OK;
	case RULE_OTHER:
		return STATE_CHANGED;
	case RULE_INVALID:
		break;
	}
	return STATE_INVALID;
}

enum state_err state_convert(const struct rule *rule, const uint8_t *bytes,
                             size_t count, uint64_t now_us, uint64_t *words,
                             size_t room)
{
	uint64_t former_words[FORMER_WORDS_MOST];
	bool is_log = rule->is.kind == GALE_RULE_SLIDING_LOG;
	uint64_t *former = is_log ? words : former_words;
	uint64_t head = count < STATE_HEAD_BYTES ? 0 : get(bytes);
	size_t most = is_log ? room : FORMER_WORDS_MOST, word_count = words_of(head);

	if (count < STATE_HEAD_BYTES || count != state_bytes(word_count))
		return STATE_SHORT;
	if (kind_of(head) != (uint64_t)rule->is.kind)
		return STATE_CHANGED;
	if (word_count > most || rule->words > room)
		return STATE_TOO_LONG;
	for (size_t i = 0; i < word_count; i++)
		former[i] = get(bytes + state_bytes(i));
	return state_of(rule_convert(
	    rule,
	    &(struct rule_former){ .kind = rule->is.kind,
	                           .fingerprint = get(bytes + 8),
	                           .is_first = version_of(head) == FIRST_VERSION,
	                           .words = former,
	                           .count = word_count },
	    now_us, words));
}
