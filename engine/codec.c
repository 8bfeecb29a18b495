/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* codec.c -- words to bytes and back, the same on every machine. */
#include "engine/codec.h"

#include "engine/check.h"

#define VERSION 1

static void put(uint8_t *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *in, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)in[i] << (8 * i);
	return value;
}

size_t state_bytes(size_t words)
{
	return STATE_HEAD_BYTES + words * 8;
}

size_t state_encode(const struct rule *rule, const uint64_t *words, uint8_t *out)
{
	size_t count = rule_words(rule, words);

	gale_audit(rule_valid(rule, words, count)); /* E1 */
	put(out, VERSION, 1);
	put(out + 1, (uint64_t)rule->is.kind, 1);
	put(out + 2, 0, 2);
	put(out + 4, count, 4);
	put(out + 8, rule->fingerprint, 8);
	for (size_t i = 0; i < count; i++)
		put(out + state_bytes(i), words[i], 8);
	return state_bytes(count);
}

static enum state_err check_head(const struct rule *rule, const uint8_t *bytes,
                                 size_t count, size_t room)
{
	if (count < STATE_HEAD_BYTES)
		return STATE_SHORT;
	if (bytes[0] != VERSION || get(bytes + 2, 2) != 0)
		return STATE_VERSION;
	if (bytes[1] != (uint64_t)rule->is.kind ||
	    get(bytes + 8, 8) != rule->fingerprint)
		return STATE_CHANGED; /* E2 */
	if (count != state_bytes(get(bytes + 4, 4)))
		return STATE_SHORT;
	return get(bytes + 4, 4) <= room ? STATE_OK : STATE_TOO_LONG;
}

enum state_err state_decode(const struct rule *rule, const uint8_t *bytes, size_t count,
                            uint64_t *words, size_t room)
{
	enum state_err err = check_head(rule, bytes, count, room);
	size_t word_count;

	if (err != STATE_OK)
		return err;
	word_count = get(bytes + 4, 4);
	for (size_t i = 0; i < word_count; i++)
		words[i] = get(bytes + state_bytes(i), 8);
	return rule_valid(rule, words, word_count) ? STATE_OK : STATE_INVALID; /* E1 */
}
