/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* value_test.c -- what a server keeps: read back as written, or refused by name. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "stores/value.h"
#include "tests/support/rules.h"

#define T0 GALE_SECONDS(1700000000)
#define WORDS 256

struct scene {
	struct rule rule;
	uint64_t words[WORDS];
	struct value value;
	uint8_t bytes[4096];
	size_t count;
};

static void scene_open(struct scene *s, struct gale_rule config)
{
	*s = (struct scene){ .bytes = { 0 } };
	s->value.words = s->words;
	s->value.room = WORDS;
	assert_int_equal(rule_compile(&config, &s->rule), GALE_ERR_OK);
}

static void lend_to(struct scene *s, uint64_t node, uint64_t units)
{
	struct lease_ask ask = { node, .number = 1, .want = units, .least = units };

	assert_int_equal(
	    lease_step(&s->rule, s->words, &s->value.ledger, T0, &ask).units, units);
}

static void encode(struct scene *s)
{
	assert_true(value_bytes(&s->rule, &s->value) <= sizeof(s->bytes));
	s->count = value_encode(&s->rule, &s->value, s->bytes);
	assert_int_equal(s->count, value_bytes(&s->rule, &s->value));
}

static enum state_err decode(const struct scene *s, size_t count)
{
	static uint64_t words[WORDS];
	struct value value = { .words = words, .room = WORDS };

	return value_decode(&s->rule, s->bytes, count, &value);
}

static void a_value_of_each_rule_comes_back(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		static struct scene s, again;

		scene_open(&s, fifty_rule(i).rule);
		scene_open(&again, fifty_rule(i).rule);
		assert_int_equal(rule_step(&s.rule, s.words, T0, 1).verdict,
		                 GALE_ALLOW);
		if (lease_possible(&s.rule))
			lend_to(&s, 7, 5);
		encode(&s);
		assert_int_equal(value_decode(&s.rule, s.bytes, s.count, &again.value),
		                 STATE_OK);
		encode(&again);
		assert_int_equal(again.count, s.count);
		assert_memory_equal(again.bytes, s.bytes, s.count);
	}
}

static void no_bytes_are_a_new_key(void **state)
{
	static struct scene s;
	static const struct ledger none;
	static const uint64_t zero[WORDS];

	(void)state;
	scene_open(&s, gale_fixed_window(50, GALE_HOURS(1)));
	memset(s.words, 1, sizeof(s.words));
	s.value.ledger.rows[0].node = 1;
	assert_int_equal(value_decode(&s.rule, NULL, 0, &s.value), STATE_OK);
	assert_memory_equal(s.words, zero, sizeof(zero));
	assert_memory_equal(&s.value.ledger, &none, sizeof(none));
}

/* The longest there is: eight rows behind a pacer's words, and a sliding window. */
static void short_values_are_short(void **state)
{
	static struct scene s;

	(void)state;
	scene_open(&s, gale_pacer(50, GALE_HOURS(1), 40));
	for (uint64_t node = 1; node <= LEASE_ROWS; node++)
		lend_to(&s, node, 1);
	encode(&s);
	assert_true(s.count <= VALUE_SHORT_MOST);
	scene_open(&s, gale_sliding_window(50, GALE_HOURS(1), GALE_BUCKETS_MAX));
	encode(&s);
	assert_int_equal(s.count, VALUE_SHORT_MOST);
}

static void cut_or_longer_bytes_are_refused(void **state)
{
	static struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(50, GALE_HOURS(1)));
	lend_to(&s, 7, 5);
	lend_to(&s, 8, 5);
	encode(&s);
	for (size_t count = 1; count < s.count; count++)
		if (count == STATE_HEAD_BYTES + 16 || count == s.count - 48)
			assert_int_equal(decode(&s, count), STATE_OK); /* fewer rows */
		else
			assert_int_not_equal(decode(&s, count), STATE_OK);
	for (size_t more = 1; more < 48 * LEASE_ROWS; more++)
		assert_int_not_equal(decode(&s, s.count + more), STATE_OK);
}

static void bytes_of_another_rule_are_refused(void **state)
{
	static struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(50, GALE_HOURS(1)));
	lend_to(&s, 7, 5);
	encode(&s);
	s.rule.fingerprint ^= 1;
	assert_int_equal(decode(&s, s.count), STATE_CHANGED);
	s.rule.fingerprint ^= 1;
	s.bytes[0]++;
	assert_int_equal(decode(&s, s.count), STATE_VERSION);
	s.bytes[0] -= 2;
	assert_int_equal(decode(&s, s.count), STATE_CHANGED); /* the first layout */
}

/* Also where its bytes are as many as those of a window that is folded. */
static void bytes_of_another_kind_are_refused(void **state)
{
	static struct scene s, other;

	(void)state;
	scene_open(&s, gale_fixed_window(50, GALE_HOURS(1)));
	scene_open(&other, gale_gcra(50, GALE_HOURS(1), 50));
	lend_to(&other, 7, 5);
	lend_to(&other, 8, 5);
	encode(&other);
	assert_int_equal(other.count, 48 + 2 * 48);
	assert_int_equal(value_decode(&s.rule, other.bytes, other.count, &s.value),
	                 STATE_CHANGED);
	scene_open(&other, gale_sliding_window(50, GALE_HOURS(1), 5));
	encode(&other);
	assert_int_equal(other.count, 72);
	assert_int_equal(value_decode(&s.rule, other.bytes, other.count, &s.value),
	                 STATE_CHANGED);
}

/* Rows where none can be, of nobody, or with more out than was used. */
static void rows_that_no_steps_lead_to_are_refused(void **state)
{
	static struct scene s;
	size_t row = STATE_HEAD_BYTES + 16;

	(void)state;
	scene_open(&s, gale_fixed_window(50, GALE_HOURS(1)));
	lend_to(&s, 7, 5);
	encode(&s);
	s.bytes[row] = 0; /* the node */
	assert_int_equal(decode(&s, s.count), STATE_INVALID);
	s.bytes[row] = 7;
	assert_int_equal(decode(&s, s.count), STATE_OK);
	s.bytes[row + 24] = 6; /* out */
	assert_int_equal(decode(&s, s.count), STATE_INVALID);
	scene_open(&s, gale_token_budget(50, GALE_HOURS(1)));
	assert_int_equal(rule_step(&s.rule, s.words, T0, 1).verdict, GALE_ALLOW);
	encode(&s);
	s.bytes[row] = 7;
	s.bytes[row + 8] = 1;
	assert_int_equal(decode(&s, s.count + 48), STATE_INVALID);
}

/* ---- Folded ---------------------------------------------------------------------- */

#define FOLDED_FIRST 72 /* bytes, with one row */

static size_t fold(struct scene *s, uint8_t *out)
{
	encode(s);
	return value_fold(&s->rule, s->bytes, s->count, out);
}

/* Folded bytes say the same as those that are not, and need not be folded again. */
static void expect_same_folded(struct scene *s)
{
	static struct scene again;
	uint8_t folded[VALUE_FOLDED_MOST], twice[VALUE_FOLDED_MOST];
	size_t count = fold(s, folded);

	again = *s;
	again.value.words = again.words;
	assert_int_equal(value_decode(&s->rule, folded, count, &again.value), STATE_OK);
	encode(&again);
	assert_int_equal(again.count, s->count);
	assert_memory_equal(again.bytes, s->bytes, s->count);
	assert_int_equal(value_fold(&s->rule, folded, count, twice), count);
	assert_memory_equal(twice, folded, count);
}

static void a_window_with_rows_folds(void **state)
{
	static struct scene s;
	uint8_t folded[VALUE_FOLDED_MOST];

	(void)state;
	scene_open(&s, gale_fixed_window(GALE_UNITS_MAX, GALE_HOURS(1)));
	for (uint64_t node = 1; node <= LEASE_ROWS + 1; node++) {
		lend_to(&s, node == 2 ? LEASE_NODE_MAX : node, GALE_UNITS_MAX >> 4);
		expect_same_folded(&s);
	}
	assert_int_equal(fold(&s, folded), VALUE_FOLDED_MOST - 32);
	/* a step has turned it, and what was out is more than what is used */
	s.words[0] += GALE_HOURS(1);
	s.words[1] = 1;
	expect_same_folded(&s);
}

/* ---- Ahead ----------------------------------------------------------------------- */

static void lend_ahead_to(struct scene *s, uint64_t node, uint64_t units,
                          uint64_t ahead)
{
	struct lease_ask ask = { node, .number = 1, .want = units, .least = units,
		                 .ahead = ahead };

	assert_int_equal(
	    lease_step(&s->rule, s->words, &s->value.ledger, T0, &ask).ahead, ahead);
}

static void what_is_lent_ahead_comes_back(void **state)
{
	static struct scene s, again;

	(void)state;
	scene_open(&s, gale_fixed_window(160, GALE_HOURS(1)));
	lend_ahead_to(&s, 7, 5, 4);
	lend_ahead_to(&s, 8, 5, 6);
	expect_same_folded(&s);
	scene_open(&again, s.rule.is);
	assert_int_equal(value_decode(&s.rule, s.bytes, s.count, &again.value),
	                 STATE_OK);
	assert_int_equal(ledger_ahead(&again.value.ledger, again.words[0]), 10);
	/* the next window begins with it, and that is all it has */
	assert_true(lease_turn(&s.rule, s.words, &s.value.ledger, T0 + GALE_HOURS(1),
	                       /* reserve_from_us= */ 0));
	assert_int_equal(s.words[1], 10);
	expect_same_folded(&s);
}

/* As a window of another length: used are 15, and of the window after it 10 more, which may have
 * begun by this one's. */
static uint64_t used_by_windows_of(const struct scene *s, const uint8_t *bytes,
                                   size_t count, uint64_t length_us, uint64_t now_us)
{
	static struct scene into;

	scene_open(&into, gale_fixed_window(s->rule.is.limit, length_us));
	assert_int_equal(value_decode(&into.rule, bytes, count, &into.value),
	                 STATE_CHANGED);
	assert_int_equal(value_convert(&into.rule, bytes, count, now_us, &into.value),
	                 STATE_OK);
	assert_int_equal(ledger_rows(&into.value.ledger), 0);
	return into.words[1];
}

static void another_rule_counts_what_is_lent_ahead(void **state)
{
	static struct scene s;
	uint8_t folded[VALUE_FOLDED_MOST];
	size_t count;

	(void)state;
	scene_open(&s, gale_fixed_window(160, GALE_HOURS(1)));
	lend_ahead_to(&s, 7, 5, 4);
	lend_ahead_to(&s, 8, 5, 6);
	count = fold(&s, folded);
	assert_int_equal(s.words[1], 20);
	assert_int_equal(used_by_windows_of(&s, s.bytes, s.count, GALE_DAYS(1), T0),
	                 30);
	assert_int_equal(used_by_windows_of(&s, folded, count, GALE_DAYS(1), T0), 30);
	assert_int_equal(
	    used_by_windows_of(&s, folded, count, GALE_DAYS(1), T0 + GALE_DAYS(2)), 0);
	/* in the next window the first is over, and what was lent ahead of it is not */
	assert_int_equal(used_by_windows_of(&s, folded, count, GALE_MINUTES(30),
	                                    s.words[0] + GALE_MINUTES(70)),
	                 10);
	assert_int_equal(used_by_windows_of(&s, folded, count, GALE_MINUTES(30),
	                                    s.words[0] + GALE_HOURS(2)),
	                 0);
	/* of a window that is over nothing is lent ahead of this one */
	s.words[0] += GALE_HOURS(1);
	s.words[1] = 1;
	count = fold(&s, folded);
	assert_int_equal(used_by_windows_of(&s, folded, count, GALE_DAYS(1), T0), 1);
}

/* A number of units that is near the most there are does not become a small one. */
static void so_much_ahead_that_no_number_holds_it_is_all(void **state)
{
	static struct scene s;
	struct lease_row *row;

	(void)state;
	scene_open(&s, gale_fixed_window(160, GALE_HOURS(1)));
	lend_ahead_to(&s, 7, 5, 4);
	row = &s.value.ledger.rows[1];
	assert_int_equal(row->node, LEASE_AHEAD);
	row->number = GALE_UNITS_MAX;
	encode(&s);
	assert_int_equal(used_by_windows_of(&s, s.bytes, s.count, GALE_DAYS(1), T0),
	                 GALE_UNITS_MAX);
}

/* A ninth row, of the node that asked. */
static void expect_apart(struct scene *s, const uint8_t *bytes, size_t count,
                         const struct lease_row *apart)
{
	static struct scene into;

	scene_open(&into, s->rule.is);
	assert_int_equal(value_decode(&s->rule, bytes, count, &into.value), STATE_OK);
	assert_memory_equal(&into.value.ledger.rows, &s->value.ledger.rows,
	                    sizeof(s->value.ledger.rows));
	assert_memory_equal(&into.value.ledger.apart, apart, sizeof(*apart));
}

static void a_row_apart_is_told_as_a_ninth(void **state)
{
	static struct scene s;
	uint8_t folded[VALUE_FOLDED_MOST];
	struct lease_row apart;

	(void)state;
	scene_open(&s, gale_fixed_window(1000, GALE_HOURS(1)));
	for (uint64_t node = 1; node <= 20; node++)
		lend_to(&s, node, 5);
	apart = s.value.ledger.apart;
	assert_int_equal(apart.node, 20);
	encode(&s);
	value_encode_apart(&apart, s.bytes + s.count);
	s.count += VALUE_ROW_BYTES;
	expect_apart(&s, s.bytes, s.count, &apart);
	expect_apart(&s, folded, value_fold(&s.rule, s.bytes, s.count, folded), &apart);
	apart.node = 1; /* it is among the others */
	value_encode_apart(&apart, s.bytes + s.count - VALUE_ROW_BYTES);
	assert_int_equal(decode(&s, s.count), STATE_INVALID);
	apart.node = LEASE_CROWD;
	value_encode_apart(&apart, s.bytes + s.count - VALUE_ROW_BYTES);
	assert_int_equal(decode(&s, s.count), STATE_INVALID);
}

/* No crowd, no row apart. */
static void a_ninth_row_without_a_crowd_is_refused(void **state)
{
	static struct scene s;
	struct lease_row apart = { .node = 20, .number = 1, .granted = 5, .out = 5 };

	(void)state;
	scene_open(&s, gale_fixed_window(1000, GALE_HOURS(1)));
	for (uint64_t node = 1; node <= 8; node++)
		lend_to(&s, node, 5);
	s.value.ledger.rows[LEASE_ROWS - 1].node = 8;
	encode(&s);
	value_encode_apart(&apart, s.bytes + s.count);
	assert_int_equal(decode(&s, s.count + VALUE_ROW_BYTES), STATE_INVALID);
	scene_open(&s, gale_gcra(1000, GALE_HOURS(1), 1000));
	for (uint64_t node = 1; node <= 8; node++)
		lend_to(&s, node, 5);
	encode(&s);
	value_encode_apart(&apart, s.bytes + s.count);
	assert_int_equal(decode(&s, s.count + VALUE_ROW_BYTES), STATE_INVALID);
}

static void expect_not_folded(struct scene *s)
{
	uint8_t out[sizeof(s->bytes)];
	size_t count = fold(s, out);

	assert_int_equal(count, s->count);
	assert_memory_equal(out, s->bytes, count);
}

static void what_has_no_rows_or_is_no_window_stays_as_it_is(void **state)
{
	static struct scene s;

	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		scene_open(&s, fifty_rule(i).rule);
		rule_step(&s.rule, s.words, T0, 1);
		expect_not_folded(&s);
	}
	scene_open(&s, gale_gcra(50, GALE_HOURS(1), 50));
	lend_to(&s, 7, 5);
	expect_not_folded(&s);
}

static void two_lends(struct scene *s)
{
	scene_open(s, gale_fixed_window(50, GALE_HOURS(1)));
	lend_to(s, 7, 5);
	lend_to(s, 8, 5);
}

static void put_double(uint8_t *out, double number)
{
	memcpy(out, &number, sizeof(number));
}

/* apart, used, number, granted; and of the row behind: node, number, granted, out. */
static void a_double_that_is_no_number_of_units_is_refused(void **state)
{
	const double bad[] = { 0.5, -1, 9007199254740992, 1e300, -1e300, 0.0 / 0.0 };
	static struct scene s, into;
	uint8_t folded[VALUE_FOLDED_MOST];
	size_t count;

	(void)state;
	two_lends(&s);
	two_lends(&into);
	for (size_t at = 40; at < FOLDED_FIRST + 32; at += 8)
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			count = fold(&s, folded);
			put_double(folded + at, bad[i]);
			assert_int_equal(
			    value_decode(&s.rule, folded, count, &into.value),
			    STATE_INVALID);
		}
	count = fold(&s, folded);
	assert_int_equal(value_decode(&s.rule, folded, count, &into.value), STATE_OK);
}

static void folded_bytes_of_no_length_of_theirs_are_refused(void **state)
{
	static struct scene s, into;
	uint8_t folded[VALUE_FOLDED_MOST + 64] = { 0 };
	size_t count;

	(void)state;
	two_lends(&s);
	two_lends(&into);
	count = fold(&s, folded);
	assert_int_equal(count, FOLDED_FIRST + 32);
	for (size_t n = STATE_HEAD_BYTES; n < sizeof(folded); n++) {
		enum state_err err = value_decode(&s.rule, folded, n, &into.value);

		if (n != FOLDED_FIRST && n != count && /* one with fewer rows */
		    n != STATE_HEAD_BYTES + 16)        /* one with none, much used */
			assert_int_not_equal(err, STATE_OK);
	}
}

/* Units that were lent ahead of a window count under another period, while they can be spent.  (L15) */
static void units_ahead_are_used_under_another_period(void **state)
{
	const struct lease_ask ask = {
		.node = 1, .number = 1, .least = 30, .want = 30, .ahead = 4
	};
	static struct scene s, other;
	const struct {
		uint64_t now;
		uint64_t used;
	} rows[] = { { T0, 38 },
		     { T0 + GALE_SECONDS(1), 4 },
		     { T0 + GALE_SECONDS(2), 0 } };

	(void)state;
	scene_open(&s, gale_fixed_window(160, GALE_SECONDS(1)));
	assert_int_equal(lease_step(&s.rule, s.words, &s.value.ledger, T0, &ask).ahead,
	                 4);
	encode(&s);
	scene_open(&other, gale_fixed_window(160, GALE_SECONDS(1) / 2));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(value_convert(&other.rule, s.bytes, s.count,
		                               rows[i].now, &other.value),
		                 STATE_OK);
		assert_int_equal(other.words[1], rows[i].used);
		assert_int_equal(ledger_rows(&other.value.ledger), 0);
	}
	memset(s.bytes + STATE_HEAD_BYTES, 0xff, 16); /* no instant, and no count */
	assert_int_equal(value_convert(&other.rule, s.bytes, s.count, T0, &other.value),
	                 STATE_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_of_each_rule_comes_back),
		cmocka_unit_test(no_bytes_are_a_new_key),
		cmocka_unit_test(short_values_are_short),
		cmocka_unit_test(cut_or_longer_bytes_are_refused),
		cmocka_unit_test(bytes_of_another_rule_are_refused),
		cmocka_unit_test(bytes_of_another_kind_are_refused),
		cmocka_unit_test(rows_that_no_steps_lead_to_are_refused),
		cmocka_unit_test(a_window_with_rows_folds),
		cmocka_unit_test(what_is_lent_ahead_comes_back),
		cmocka_unit_test(another_rule_counts_what_is_lent_ahead),
		cmocka_unit_test(so_much_ahead_that_no_number_holds_it_is_all),
		cmocka_unit_test(a_row_apart_is_told_as_a_ninth),
		cmocka_unit_test(a_ninth_row_without_a_crowd_is_refused),
		cmocka_unit_test(what_has_no_rows_or_is_no_window_stays_as_it_is),
		cmocka_unit_test(a_double_that_is_no_number_of_units_is_refused),
		cmocka_unit_test(folded_bytes_of_no_length_of_theirs_are_refused),
		cmocka_unit_test(units_ahead_are_used_under_another_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
