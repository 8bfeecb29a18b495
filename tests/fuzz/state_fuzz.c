/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * state_fuzz.c -- what state_decode accepts is a state that every rule can work on.
 *
 * The bytes are a rule, a few instants and costs, and then what a store might hold.
 * The head of the latter is mended, so that the words behind it are looked at too.
 */
#include <stdlib.h>

#include "engine/check.h"
#include "engine/codec.h"
#include "tests/fuzz/bytes.h"

#define ROOM 4096
#define STEPS 4

static uint64_t words[ROOM];
static uint8_t encoded[STATE_HEAD_BYTES + ROOM * sizeof(uint64_t)];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const struct rule *rule, const struct gale_answer *answer)
{
	gale_assert(answer->limit == rule->capacity);
	gale_assert(answer->remaining <= answer->limit);
	gale_assert((answer->verdict == GALE_ALLOW) == (answer->retry_after_us == 0));
	gale_assert(answer->reset_after_us <= GALE_UNITS_MAX); /* RULE-3 */
}

static void step_on(const struct rule *rule, uint64_t now, uint64_t cost)
{
	struct gale_answer answer = rule_peek(rule, words, now);

	check_answer(rule, &answer);
	(void)rule_forecast(rule, words, now, cost);
	if (rule_words_after_step(rule, words) > ROOM)
		return;
	answer = rule_step(rule, words, now, cost);
	check_answer(rule, &answer);
	/* CODEC-1, RULE-3 */
	gale_assert(rule_valid(rule, words, rule_words(rule, words)));
	if (rule_cancel(rule, words, now, cost, answer.slot))
		gale_assert(rule_valid(rule, words, rule_words(rule, words)));
	(void)rule_expires(rule, words);
}

static void work_on(const struct rule *rule, struct bytes *script)
{
	for (int i = 0; i < STEPS; i++) {
		uint64_t now = take_number(script, 8);
		uint64_t cost = take_number(script, 7) & GALE_UNITS_MAX;

		step_on(rule, now, cost ? cost : 1);
	}
}

static void mend_head(const struct rule *rule, uint8_t *bytes, size_t count)
{
	uint32_t word_count = (uint32_t)((count - STATE_HEAD_BYTES) / sizeof(uint64_t));
	uint64_t fingerprint = rule->fingerprint;

	bytes[0] = 1;
	bytes[1] = (uint8_t)rule->is.kind;
	bytes[2] = bytes[3] = 0;
	memcpy(bytes + 4, &word_count, sizeof(word_count));
	memcpy(bytes + 8, &fingerprint, sizeof(fingerprint));
}

/* As they are, the bytes are refused or valid; CODEC-1 */
static void decode(const struct rule *rule, const uint8_t *bytes, size_t count,
                   struct bytes *script)
{
	if (state_decode(rule, bytes, count, words, ROOM) != STATE_OK)
		return;
	gale_assert(state_encode(rule, words, encoded) == count);
	gale_assert(memcmp(encoded, bytes, count) == 0);
	work_on(rule, script);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct gale_rule config = take_rule(&bytes);
	struct bytes script = bytes;
	struct rule rule;
	uint8_t *copy;

	if (rule_compile(&config, &rule) != GALE_ERR_OK)
		return 0;
	for (int i = 0; i < STEPS; i++) {
		(void)take_number(&bytes, 8);
		(void)take_number(&bytes, 7);
	}
	decode(&rule, bytes.at, bytes.left, &script);
	if (bytes.left < STATE_HEAD_BYTES)
		return 0;
	copy = malloc(bytes.left); /* of its own, so that a read past its end is seen */
	gale_assert(copy);
	memcpy(copy, bytes.at, bytes.left);
	mend_head(&rule, copy, bytes.left);
	decode(&rule, copy, bytes.left, &script);
	free(copy);
	return 0;
}
