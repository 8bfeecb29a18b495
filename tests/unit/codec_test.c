/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * codec_test.c -- states as bytes: read back as written, or refused by name.
 */
#include "tests/unit/vectors.h"

#include <string.h>

#include "engine/codec.h"

#define MAX_BYTES (STATE_HEAD_BYTES + 8 * KEY_WORDS)

/* A state as bytes, with the rule that it is of. */
struct packed {
	struct key key;
	uint8_t bytes[MAX_BYTES];
	size_t count;
};

static void pack(struct packed *packed)
{
	size_t words = rule_words(&packed->key.rule, packed->key.words);

	packed->count =
	    state_encode(&packed->key.rule, packed->key.words, packed->bytes);
	assert_int_equal(packed->count, state_bytes(words));
}

/* Three calls at T0, a second apart so that a log has three stamps. */
static void pack_three_calls(struct packed *packed, struct gale_rule config)
{
	key_open(&packed->key, config);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(key_drain(&packed->key, T0 + SEC(i), 1), 1);
	pack(packed);
}

static enum state_err unpack_count(const struct packed *packed, size_t count)
{
	uint64_t words[KEY_WORDS];

	return state_decode(&packed->key.rule, packed->bytes, count, words, KEY_WORDS);
}

static enum state_err unpack(const struct packed *packed)
{
	return unpack_count(packed, packed->count);
}

/* What is accepted is valid and encodes to the same bytes (CODEC-1). */
static void expect_faithful(const struct packed *packed)
{
	static struct packed again;

	again.key.rule = packed->key.rule;
	assert_int_equal(state_decode(&packed->key.rule, packed->bytes, packed->count,
	                              again.key.words, KEY_WORDS),
	                 STATE_OK);
	assert_true(rule_valid(&again.key.rule, again.key.words,
	                       rule_words(&again.key.rule, again.key.words)));
	pack(&again);
	assert_int_equal(again.count, packed->count);
	assert_memory_equal(again.bytes, packed->bytes, packed->count);
}

/* One of each kind, all of which admit three calls a second apart. */
static size_t one_of_each(struct gale_rule *ret_rules)
{
	struct gale_rule rules[] = {
		gale_fixed_window(5, SEC(10)),
		gale_sliding_window(5, SEC(10), 7),
		gale_sliding_log(5, SEC(10)),
		gale_gcra(5, SEC(11), 5),
		gale_token_bucket(5, 3, SEC(11)),
		gale_leaky_bucket(3, SEC(10), SEC(60)),
		gale_quota_monthly(5, 330),
		gale_quota_weekly(5, -60, 3),
		gale_quota_daily(5, 0),
		gale_quota_anchored(5, SEC(7), MS(3)),
		gale_quota_rolling(5, SEC(9)),
		gale_token_budget(5, SEC(10)),
		gale_pacer(3, SEC(10), 1),
		gale_pacer_limit(3, SEC(10), 4),
	};

	memcpy(ret_rules, rules, sizeof(rules));
	return COUNT(rules);
}

#define RULES_MAX 16

/* ---- What is written ------------------------------------------------------------- */

static void a_state_is_a_head_and_its_words(void **state)
{
	(void)state;
	assert_int_equal(state_bytes(0), 16);
	assert_int_equal(state_bytes(2), 32);
	assert_int_equal(state_bytes(131073), 1048600);
}

static void expect_number(const uint8_t *bytes, size_t count, uint64_t number)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bytes[i], number >> 8 * i & 0xff);
}

/* Used 3 in the window that starts at 2 s. */
static void the_layout_is_as_documented(void **state)
{
	struct packed packed;

	(void)state;
	key_open(&packed.key, gale_fixed_window(5, SEC(1)));
	assert_int_equal(key_step(&packed.key, MS(2500), 3).verdict, GALE_ALLOW);
	pack(&packed);
	assert_int_equal(packed.count, 32);
	expect_number(packed.bytes, 1, 2);
	expect_number(packed.bytes + 1, 1, GALE_RULE_FIXED_WINDOW);
	expect_number(packed.bytes + 2, 2, 0);
	expect_number(packed.bytes + 4, 4, 2);
	expect_number(packed.bytes + 8, 8, packed.key.rule.fingerprint);
	expect_number(packed.bytes + 16, 8, SEC(2));
	expect_number(packed.bytes + 24, 8, 3);
}

static void each_rule_names_itself(void **state)
{
	struct gale_rule rules[RULES_MAX];
	size_t count = one_of_each(rules);
	struct packed packed;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		pack_three_calls(&packed, rules[i]);
		expect_number(packed.bytes, 1, 2);
		expect_number(packed.bytes + 1, 1, (uint64_t)rules[i].kind);
		expect_number(packed.bytes + 4, 4,
		              rule_words(&packed.key.rule, packed.key.words));
		expect_number(packed.bytes + 8, 8, packed.key.rule.fingerprint);
	}
}

/* ---- What is read back ----------------------------------------------------------- */

static void what_was_written_is_read_back(void **state)
{
	struct gale_rule rules[RULES_MAX];
	size_t count = one_of_each(rules);
	struct packed packed;
	uint64_t words[KEY_WORDS];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		pack_three_calls(&packed, rules[i]);
		expect_faithful(&packed);
		assert_int_equal(state_decode(&packed.key.rule, packed.bytes,
		                              packed.count, words, KEY_WORDS),
		                 STATE_OK);
		assert_memory_equal(words, packed.key.words,
		                    8 * rule_words(&packed.key.rule, words));
	}
}

static void a_fresh_state_is_read_back_too(void **state)
{
	struct gale_rule rules[RULES_MAX];
	size_t count = one_of_each(rules);
	struct packed packed;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		key_open(&packed.key, rules[i]);
		pack(&packed);
		expect_faithful(&packed);
	}
}

/* Wherever a key goes, its state can be stored: time forward and back, costs 1 to 4. */
static void every_state_on_the_way_is_read_back(void **state)
{
	struct gale_rule rules[RULES_MAX];
	size_t count = one_of_each(rules);
	uint64_t now, draw;
	struct packed packed;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		key_open(&packed.key, rules[i]);
		now = T0;
		draw = 1 + i;
		for (int step = 0; step < 300; step++) {
			draw = draw * 48271 % 2147483647;
			now = now + draw % SEC(3) - (draw % 5 == 0 ? SEC(2) : 0);
			key_step(&packed.key, now, 1 + draw / 7 % 4);
			pack(&packed);
			expect_faithful(&packed);
		}
	}
}

static void a_pacer_that_will_not_wait_reads_what_one_that_waits_wrote(void **state)
{
	struct gale_rule impatient = gale_pacer(3, SEC(10), 1);
	struct packed packed;

	(void)state;
	impatient.max_wait_us = 0;
	pack_three_calls(&packed, gale_pacer(3, SEC(10), 1));
	key_turn(&packed.key, impatient);
	assert_int_equal(unpack(&packed), STATE_OK);
}

/* ---- What is refused ------------------------------------------------------------- */

static void any_other_length_is_refused(void **state)
{
	struct gale_rule rules[RULES_MAX];
	size_t count = one_of_each(rules);
	static struct packed packed;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		pack_three_calls(&packed, rules[i]);
		for (size_t bytes = 0; bytes < packed.count; bytes++)
			assert_int_equal(unpack_count(&packed, bytes), STATE_SHORT);
		for (size_t more = 1; more <= 9; more++)
			assert_int_equal(unpack_count(&packed, packed.count + more),
			                 STATE_SHORT);
	}
}

static void an_announced_count_is_not_trusted(void **state)
{
	static const uint8_t counts[] = { 0, 1, 3, 9, 255 };
	struct packed packed;

	(void)state;
	pack_three_calls(&packed, gale_fixed_window(5, SEC(10)));
	for (size_t i = 0; i < COUNT(counts); i++) {
		packed.bytes[4] = counts[i];
		assert_int_equal(unpack(&packed), STATE_SHORT);
	}
	packed.bytes[4] = 2;
	for (size_t i = 5; i < 8; i++) {
		packed.bytes[i] = 0xff;
		assert_int_equal(unpack(&packed), STATE_SHORT);
		packed.bytes[i] = 0;
	}
	assert_int_equal(unpack(&packed), STATE_OK);
}

/* The right length for its count, but not the count of this rule. */
static void a_count_of_another_rule_is_refused(void **state)
{
	struct packed packed;

	(void)state;
	pack_three_calls(&packed, gale_fixed_window(5, SEC(10)));
	packed.bytes[4] = 1;
	assert_int_not_equal(unpack_count(&packed, 24), STATE_OK);
	packed.bytes[4] = 3;
	memset(packed.bytes + 32, 0, 8);
	assert_int_not_equal(unpack_count(&packed, 40), STATE_OK);
}

static void another_version_is_refused(void **state)
{
	static const uint8_t versions[] = { 0, 3, 255 };
	struct packed packed;

	(void)state;
	pack_three_calls(&packed, gale_gcra(5, SEC(10), 5));
	for (size_t i = 0; i < COUNT(versions); i++) {
		packed.bytes[0] = versions[i];
		assert_int_equal(unpack(&packed), STATE_VERSION);
	}
}

static void another_kind_is_refused(void **state)
{
	struct packed packed;

	(void)state;
	pack_three_calls(&packed, gale_gcra(5, SEC(10), 5));
	for (unsigned kind = 0; kind < 256; kind++) {
		packed.bytes[1] = (uint8_t)kind;
		assert_int_equal(unpack(&packed),
		                 kind == GALE_RULE_GCRA ? STATE_OK : STATE_CHANGED);
	}
}

static void another_fingerprint_is_refused(void **state)
{
	struct packed packed;

	(void)state;
	pack_three_calls(&packed, gale_gcra(5, SEC(10), 5));
	for (size_t bit = 64; bit < 128; bit++) {
		packed.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(unpack(&packed), STATE_CHANGED);
		packed.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(unpack(&packed), STATE_OK);
}

/* CODEC-2: the same kind with a parameter changed that gives the words their meaning. */
static void other_parameters_are_refused(void **state)
{
	struct gale_rule pairs[][2] = {
		{ gale_fixed_window(5, SEC(10)), gale_fixed_window(5, SEC(5)) },
		{ gale_sliding_window(5, SEC(10), 7),
		  gale_sliding_window(5, SEC(5), 7) },
		{ gale_sliding_window(5, SEC(10), 7),
		  gale_sliding_window(5, SEC(10), 8) },
		{ gale_gcra(5, SEC(10), 5), gale_gcra(7, SEC(10), 5) },
		{ gale_gcra(5, SEC(10), 5), gale_gcra(5, SEC(9), 5) },
		{ gale_token_bucket(5, 3, SEC(10)), gale_token_bucket(5, 4, SEC(10)) },
		{ gale_quota_monthly(5, 0), gale_quota_monthly(5, 60) },
		{ gale_quota_monthly(5, 0), gale_quota_daily(5, 0) },
		{ gale_quota_weekly(5, 0, 1), gale_quota_weekly(5, 0, 0) },
		{ gale_quota_anchored(5, SEC(7), 3),
		  gale_quota_anchored(5, SEC(7), 4) },
		{ gale_token_budget(5, SEC(10)), gale_token_budget(5, SEC(5)) },
		{ gale_pacer(3, SEC(10), 1), gale_pacer(4, SEC(10), 1) },
		{ gale_pacer(3, SEC(10), 1), gale_pacer(3, SEC(20), 1) },
	};
	struct packed packed;

	(void)state;
	for (size_t i = 0; i < COUNT(pairs); i++) {
		pack_three_calls(&packed, pairs[i][0]);
		assert_int_equal(unpack(&packed), STATE_OK);
		assert_int_equal(rule_compile(&pairs[i][1], &packed.key.rule),
		                 GALE_ERR_OK);
		assert_int_equal(unpack(&packed), STATE_CHANGED);
	}
}

static void more_words_than_there_is_room_for_are_refused(void **state)
{
	struct packed packed;
	uint64_t words[7], guard = UINT64_C(0x1234567890abcdef);

	(void)state;
	pack_three_calls(&packed, gale_sliding_log(5, SEC(10)));
	for (size_t room = 0; room < 7; room++) {
		words[room] = guard;
		assert_int_equal(state_decode(&packed.key.rule, packed.bytes,
		                              packed.count, words, room),
		                 STATE_TOO_LONG);
		assert_int_equal(words[room], guard);
	}
	assert_int_equal(
	    state_decode(&packed.key.rule, packed.bytes, packed.count, words, 7),
	    STATE_OK);
}

/* CODEC-1: they would not be encoded again. */
static void bytes_that_mean_nothing_must_be_zero(void **state)
{
	struct packed packed;

	(void)state;
	pack_three_calls(&packed, gale_gcra(5, SEC(10), 5));
	for (size_t i = 2; i <= 3; i++) {
		packed.bytes[i] = 1;
		assert_int_not_equal(unpack(&packed), STATE_OK);
		packed.bytes[i] = 0;
	}
}

/* Also as words to be converted. */
static bool is_refused(struct packed *packed)
{
	uint64_t words[KEY_WORDS];

	return unpack(packed) != STATE_OK &&
	       state_convert(&packed->key.rule, packed->bytes, packed->count, T0, words,
	                     KEY_WORDS) == STATE_INVALID;
}

/* RULE-3: the first bit that may not be set, and all of them. */
static void words_of_two_to_the_53_are_refused(void **state)
{
	struct gale_rule rules[RULES_MAX];
	size_t count = one_of_each(rules);
	struct packed packed;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		pack_three_calls(&packed, rules[i]);
		for (size_t at = STATE_HEAD_BYTES; at < packed.count; at += 8) {
			packed.bytes[at + 6] ^= 0x20;
			assert_true(is_refused(&packed));
			packed.bytes[at + 6] ^= 0x20;
			packed.bytes[at + 7] = 0xff;
			assert_true(is_refused(&packed));
			packed.bytes[at + 7] = 0;
		}
	}
}

/* One word of a good state, set to what no steps lead to. */
struct spoiled {
	const char *how;
	struct gale_rule config;
	size_t word;
	uint64_t value;
};

static void set_word(struct packed *packed, size_t word, uint64_t value)
{
	for (size_t i = 0; i < 8; i++)
		packed->bytes[STATE_HEAD_BYTES + 8 * word + i] =
		    (uint8_t)(value >> 8 * i);
}

static void words_that_no_steps_lead_to_are_refused(void **state)
{
	struct spoiled rows[] = {
		{ "not aligned", gale_fixed_window(5, SEC(10)), 0, T0 + 1 },
		{ "not a midnight", gale_quota_daily(5, 0), 0, T0 },
		{ "not aligned", gale_token_budget(5, SEC(10)), 0, T0 + 1 },
		{ "more than any log has", gale_sliding_log(5, SEC(10)), 2,
		  GALE_LOG_LIMIT_MAX + 1 },
		{ "a stamp of nothing", gale_sliding_log(5, SEC(10)), 2, 0 },
		{ "two stamps at once", gale_sliding_log(5, SEC(10)), 1, T0 + SEC(1) },
		{ "out of order", gale_sliding_log(5, SEC(10)), 1, T0 + SEC(3) },
		{ "no part of one", gale_gcra(5, SEC(11), 5), 1, 5 },
		{ "no part of one", gale_token_bucket(5, 3, SEC(11)), 1, 3 },
		{ "longer than any bucket", gale_token_bucket(5, 3, SEC(11)), 0,
		  T0 + GALE_SPAN_MAX_US + SEC(30) },
		{ "no part of one", gale_pacer(3, SEC(10), 1), 3, 3 },
	};
	struct packed packed;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		pack_three_calls(&packed, rows[i].config);
		set_word(&packed, rows[i].word, rows[i].value);
		if (unpack(&packed) != STATE_INVALID)
			fail_msg("row %zu, %s, was accepted", i + 1, rows[i].how);
	}
}

/* A crossing debit may leave more than the budget behind. */
static void a_budget_that_was_overshot_is_valid(void **state)
{
	struct packed packed;

	(void)state;
	key_open(&packed.key, gale_token_budget(5, SEC(10)));
	assert_int_equal(key_step(&packed.key, T0, GALE_UNITS_MAX).verdict, GALE_ALLOW);
	pack(&packed);
	expect_faithful(&packed);
}

/* CODEC-1 for bytes that nobody wrote: each byte set to each value. */
static void a_spoiled_byte_is_refused_or_means_what_it_says(void **state)
{
	struct gale_rule rules[RULES_MAX];
	size_t count = one_of_each(rules);
	struct packed packed;
	size_t accepted = 0, refused = 0;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		pack_three_calls(&packed, rules[i]);
		for (size_t at = 0; at < 256 * packed.count; at++) {
			uint8_t kept = packed.bytes[at / 256];

			packed.bytes[at / 256] = (uint8_t)at;
			if (unpack(&packed) == STATE_OK) {
				expect_faithful(&packed);
				accepted++;
			} else {
				refused++;
			}
			packed.bytes[at / 256] = kept;
		}
	}
	assert_true(accepted > 0);
	assert_true(refused > accepted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_is_a_head_and_its_words),
		cmocka_unit_test(the_layout_is_as_documented),
		cmocka_unit_test(each_rule_names_itself),
		cmocka_unit_test(what_was_written_is_read_back),
		cmocka_unit_test(a_fresh_state_is_read_back_too),
		cmocka_unit_test(every_state_on_the_way_is_read_back),
		cmocka_unit_test(
		    a_pacer_that_will_not_wait_reads_what_one_that_waits_wrote),
		cmocka_unit_test(any_other_length_is_refused),
		cmocka_unit_test(an_announced_count_is_not_trusted),
		cmocka_unit_test(a_count_of_another_rule_is_refused),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(another_kind_is_refused),
		cmocka_unit_test(another_fingerprint_is_refused),
		cmocka_unit_test(other_parameters_are_refused),
		cmocka_unit_test(more_words_than_there_is_room_for_are_refused),
		cmocka_unit_test(bytes_that_mean_nothing_must_be_zero),
		cmocka_unit_test(words_of_two_to_the_53_are_refused),
		cmocka_unit_test(words_that_no_steps_lead_to_are_refused),
		cmocka_unit_test(a_budget_that_was_overshot_is_valid),
		cmocka_unit_test(a_spoiled_byte_is_refused_or_means_what_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
