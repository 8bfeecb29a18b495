/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lease_test.c -- units lent and taken back, and messages that come twice.
 *
 * First each promise by itself, then all of them in random worlds: asks, returns, any
 * earlier message again, strict steps in between, time that goes on and back.  There,
 * what was charged and not taken back is kept in a list, and what the words must be is
 * added up from it anew each time.
 */
#include <string.h>

#include "engine/lease.h"
#include "engine/meter.h"
#include "engine/pacer.h"
#include "engine/window.h"
#include "sim/random.h"
#include "tests/support/length.h"
#include "tests/unit/vectors.h"

#include "tests/support/leased.h" /* after cmocka.h */

__extension__ typedef __int128 wide;

#define MOST GALE_UNITS_MAX
#define NODE_MOST LEASE_NODE_MAX

static const struct gale_slot no_tag;

static struct lease_grant lend(struct leased *key, uint64_t now, uint64_t node,
                               uint64_t number, uint64_t least, uint64_t want)
{
	struct lease_ask ask = {
		.node = node, .number = number, .least = least, .want = want
	};
	return asks(key, now, &ask);
}

static uint64_t out_of(const struct leased *key, uint64_t now, uint64_t node)
{
	struct leased copy = *key;

	find_apart(&copy, node);
	return lease_status(&copy.rule, copy.words, &copy.ledger, now, node).units;
}

static uint64_t remaining(const struct leased *key, uint64_t now)
{
	return rule_peek(&key->rule, key->words, now).remaining;
}

static bool steps(struct leased *key, uint64_t now, uint64_t cost)
{
	bool allowed =
	    rule_step(&key->rule, key->words, now, cost).verdict == GALE_ALLOW;

	check_key(key);
	return allowed;
}

static bool same_key(const struct leased *a, const struct leased *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- What can be lent ------------------------------------------------------------ */

static void some_rules_can_be_lent_from(void **state)
{
	const struct {
		struct gale_rule rule;
		bool possible;
	} rows[] = {
		{ gale_fixed_window(10, SEC(1)), true },
		{ gale_quota_monthly(10, 60), true },
		{ gale_quota_anchored(10, SEC(5), 7), true },
		{ gale_gcra(10, SEC(1), 5), true },
		{ gale_token_bucket(10, 5, SEC(1)), true },
		{ gale_pacer(10, SEC(1), 5), true },
		{ gale_leaky_bucket(10, SEC(1), SEC(1)), true },
		{ gale_sliding_window(10, SEC(1), 10), false },
		{ gale_sliding_log(10, SEC(1)), false },
		{ gale_quota_rolling(10, SEC(1)), false },
		{ gale_token_budget(10, SEC(1)), false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rule rule;

		assert_int_equal(rule_compile(&rows[i].rule, &rule), GALE_ERR_OK);
		assert_int_equal(lease_possible(&rule), rows[i].possible);
	}
}

/* ---- Windows --------------------------------------------------------------------- */

static void a_window_lends_what_is_left(void **state)
{
	struct leased key = key_of(gale_fixed_window(100, SEC(1)));
	struct lease_grant grant = lend(&key, T0 + 250, 1, 1, 1, 60);

	(void)state;
	assert_int_equal(grant.units, 60);
	assert_int_equal(grant.tag.us, T0);
	assert_int_equal(grant.tag.part, 0);
	assert_int_equal(grant.lasts_us, SEC(1) - 250);
	assert_int_equal(grant.left, 40);
	assert_int_equal(grant.retry_us, 0);
	assert_int_equal(grant.holders, 1);
	assert_int_equal(grant.delay_ns, 0);
	assert_true(steps(&key, T0 + 300, 15)); /* a strict step, on the same words */
	grant = lend(&key, T0 + 300, 2, 1, 20, 60);
	assert_int_equal(grant.units, 25); /* LEASE-1 */
	assert_int_equal(grant.left, 0);
	assert_int_equal(grant.holders, 2);
	assert_false(steps(&key, T0 + 300, 1));
}

static void a_window_that_has_too_little_changes_nothing(void **state)
{
	struct leased key = key_of(gale_fixed_window(100, SEC(1))), before;
	struct lease_grant grant;

	(void)state;
	lend(&key, T0, 1, 1, 1, 90);
	before = key;
	grant = lend(&key, T0 + 1, 2, 1, 11, 50);
	assert_int_equal(grant.units, 0); /* LEASE-1 */
	assert_int_equal(grant.left, 10);
	assert_int_equal(grant.retry_us, SEC(1) - 1);
	assert_int_equal(grant.lasts_us, SEC(1) - 1);
	assert_int_equal(grant.tag.us, T0);
	assert_int_equal(grant.holders, 1);
	assert_int_equal(lend(&key, T0 + 1, 2, 1, 101, 101).retry_us, GALE_NEVER);
	assert_int_equal(lend(&key, T0 + SEC(9), 2, 1, 101, 101).tag.us, T0 + SEC(9));
	assert_int_equal(lend(&key, T0 + SEC(9), 2, 1, 101, 101).holders, 0);
	assert_true(same_key(&key, &before)); /* RULE-1 */
}

/* a batch that does not divide the limit, or exceeds it, strands no tail. */
static void every_unit_of_a_window_is_lent(void **state)
{
	static const uint64_t rows[][2] = {
		{ 10, 4 }, { 100, 30 }, { 100, 64 }, { 10, 11 }
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct leased key = key_of(gale_fixed_window(rows[i][0], SEC(1)));
		uint64_t sum = 0, units, number = 0;

		do {
			number++;
			units =
			    lend(&key, T0, number % 3 + 1, number, 1, rows[i][1]).units;
			sum += units;
		} while (units > 0);
		assert_int_equal(sum, rows[i][0]);
		assert_int_equal(number,
		                 (rows[i][0] + rows[i][1] - 1) / rows[i][1] + 1);
	}
}

/* Of all that a store may say of a window, what cannot be is not believed. */
static void what_was_left_of_a_window_tells_what_was_lent_whole(void **state)
{
	const struct leased key = key_of(gale_fixed_window(100, SEC(1)));
	const struct lease_ask ask = { .node = 1, .number = 5, .least = 1, .want = 30 };
	struct window_state left = { .start_us = T0, .used = 40 };
	struct lease_grant grant;

	(void)state;
	assert_true(lease_was_whole(&key.rule, &left, T0 + 10, &ask, &grant));
	assert_int_equal(grant.units, 30);
	assert_int_equal(grant.tag.us, T0);
	assert_int_equal(grant.lasts_us, SEC(1) - 10);
	assert_int_equal(grant.left, 60);
	assert_int_equal(grant.holders, 1);
	assert_false(lease_was_whole(&key.rule, &left, T0 + SEC(1), &ask, &grant));
	left.used = 29;
	assert_false(lease_was_whole(&key.rule, &left, T0, &ask, &grant));
	left.used = 101;
	assert_false(lease_was_whole(&key.rule, &left, T0, &ask, &grant));
	left = (struct window_state){ .start_us = T0 + 1, .used = 40 };
	assert_false(lease_was_whole(&key.rule, &left, T0 + 10, &ask, &grant));
	left.start_us = (INSTANT_MAX_US / SEC(1) + 1) * SEC(1);
	assert_false(lease_was_whole(&key.rule, &left, UINT64_MAX, &ask, &grant));
}

static void a_number_does_its_work_once(void **state)
{
	struct leased key = key_of(gale_fixed_window(100, SEC(1))), before;
	struct gale_slot tag = lend(&key, T0, 1, 5, 1, 30).tag;
	struct lease_grant again;

	(void)state;
	before = key;
	again = lend(&key, T0 + 10, 1, 5, 1, 30);
	assert_int_equal(again.units, 30); /* LEASE-2 */
	assert_int_equal(again.tag.us, T0);
	assert_int_equal(again.lasts_us, SEC(1) - 10);
	assert_int_equal(again.left, 70);
	assert_int_equal(again.retry_us, 0);
	assert_int_equal(lend(&key, T0 + 10, 1, 4, 1, 30).units, 0); /* LEASE-2 */
	assert_true(same_key(&key, &before));
	assert_true(back(&key, T0 + 20, 1, 6, tag, 10));
	before = key;
	assert_true(back(&key, T0 + 20, 1, 6, tag, 10)); /* LEASE-2: so it is */
	assert_int_equal(lend(&key, T0 + 20, 1, 6, 1, 30).units, 0);
	assert_int_equal(lend(&key, T0 + 20, 1, 5, 1, 30).units, 0);
	assert_false(back(&key, T0 + 20, 1, 5, tag, 10));
	assert_false(back(&key, T0 + 20, 1, 6, slot_at(T0 + 1), 10));
	assert_true(same_key(&key, &before));
	assert_int_equal(remaining(&key, T0 + 20), 80);
	assert_int_equal(lend(&key, T0 + 20, 1, 7, 1, 30).units, 30);
	assert_false(back(&key, T0 + 20, 1, 7, tag, 10)); /* LEASE-2: that was an ask */
	assert_int_equal(lend(&key, T0 + 20, 2, 1, 1, 90).units, 50);
	assert_int_equal(lend(&key, T0 + 20, 2, 1, 1, 90).retry_us, 0);
	assert_int_equal(lend(&key, T0 + 20, 2, 2, 1, 90).retry_us, SEC(1) - 20);
	assert_true(back(&key, T0 + 20, 1, 8, tag, 1));
	assert_true(steps(&key, T0 + 20, 1));
	assert_int_equal(lend(&key, T0 + 20, 1, 8, 1, 30).retry_us, SEC(1) - 20);
}

static void a_window_takes_back_only_what_is_out(void **state)
{
	struct leased key = key_of(gale_fixed_window(100, SEC(1))), before;
	struct gale_slot tag = lend(&key, T0, 1, 1, 1, 30).tag;

	(void)state;
	lend(&key, T0, 1, 2, 1, 20);
	lend(&key, T0, 2, 1, 1, 10);
	before = key;
	assert_false(back(&key, T0, 1, 3, tag, 51)); /* LEASE-3 */
	assert_false(back(&key, T0, 2, 3, tag, 11));
	assert_false(back(&key, T0, 3, 3, tag, 1));
	assert_false(back(&key, T0, 0, 3, tag, 1));
	assert_false(
	    back(&key, T0, 0, 0, no_tag, 1)); /* as an empty row would have it */
	assert_false(back(&key, T0, 1, 3, tag, 0));
	assert_false(back(&key, T0, 1, 3, slot_at(T0 + 1), 1));
	assert_false(
	    back(&key, T0, 1, 3, (struct gale_slot){ T0, LEASE_KEEPS + 1 }, 1));
	assert_false(back(&key, T0, 1, MOST + 1, tag, 1));
	assert_true(same_key(&key, &before));
	assert_true(back(&key, T0, 1, 3, tag, 50)); /* of both grants, LEASE-4 */
	assert_false(back(&key, T0, 1, 4, tag, 1)); /* LEASE-3: not twice */
	assert_int_equal(remaining(&key, T0), 90);
	assert_int_equal(out_of(&key, T0, 1), 0);
	assert_int_equal(out_of(&key, T0, 2), 10);
	assert_int_equal(lend(&key, T0, 3, 1, 1, 1).holders, 2);
}

static struct lease_grant ask_spent(struct leased *key, uint64_t now, uint64_t node,
                                    uint64_t number)
{
	struct lease_ask ask = {
		.node = node, .number = number, .least = 1, .want = 9, .spent = true
	};
	return asks(key, now, &ask);
}

/* Those who asked in vain with nothing in hand will give nothing back. */
static void others_are_those_who_may_give_back(void **state)
{
	struct leased key = key_of(gale_fixed_window(100, SEC(1))), before;
	struct gale_slot tag = lend(&key, T0, 1, 1, 1, 50).tag;

	(void)state;
	assert_int_equal(lend(&key, T0, 2, 1, 1, 30).others, 1);
	assert_int_equal(lend(&key, T0, 3, 1, 1, 20).others, 2);
	assert_int_equal(lend(&key, T0, 4, 1, 1, 1).others, 3);
	assert_int_equal(lend(&key, T0, 1, 2, 1, 9).others, 2); /* it has some */
	assert_int_equal(ask_spent(&key, T0, 4, 2).others, 3);  /* it has no row */
	assert_int_equal(ask_spent(&key, T0, 1, 3).others, 2);
	before = key;
	assert_int_equal(ask_spent(&key, T0, 1, 3).units, 0);
	assert_int_equal(lend(&key, T0, 1, 1, 1, 50).units, 0); /* LEASE-2 */
	assert_true(same_key(&key, &before));
	assert_int_equal(lend(&key, T0, 4, 3, 1, 1).others, 2);
	assert_int_equal(lend(&key, T0, 4, 3, 1, 1).holders, 3);
	assert_true(back(&key, T0, 2, 2, tag, 30));
	assert_int_equal(lend(&key, T0, 4, 4, 31, 31).others, 1);
	assert_int_equal(ask_spent(&key, T0, 1, 4).others, 1);
	assert_int_equal(lend(&key, T0, 4, 5, 31, 31).others, 2);
	assert_int_equal(lend(&key, T0 + SEC(1), 4, 6, 101, 101).others, 0);
}

/* A call that runs may put something back: its node gave back the rest.  LEASE-9 */
static void who_gives_back_may_have_more(void **state)
{
	struct leased key = key_of(gale_fixed_window(100, SEC(1))), before;
	struct gale_slot tag = lend(&key, T0, 1, 1, 1, 60).tag;
	struct gale_slot keeps = { .us = tag.us, .part = LEASE_KEEPS };

	(void)state;
	assert_int_equal(lend(&key, T0, 2, 1, 1, 40).units, 40);
	assert_true(back(&key, T0, 1, 2, keeps, 20));
	before = key;
	assert_true(back(&key, T0, 1, 2, keeps, 20)); /* LEASE-2 */
	assert_true(same_key(&key, &before));
	assert_int_equal(ask_spent(&key, T0, 2, 2).units, 9);
	assert_int_equal(lend(&key, T0, 2, 3, 12, 12).others, 1);
	assert_int_equal(out_of(&key, T0, 1), 40);
	assert_true(back(&key, T0, 1, 3, tag, 10));
	assert_int_equal(lend(&key, T0, 2, 4, 22, 22).others, 0);
	assert_true(back(&key, T0, 1, 4, keeps, 30)); /* nothing is left */
	assert_int_equal(lend(&key, T0, 2, 5, 100, 100).others, 0);
}

static void a_window_that_turns_forgets(void **state)
{
	struct leased key = key_of(gale_fixed_window(100, SEC(1)));
	struct gale_slot old = lend(&key, T0, 1, 5, 1, 30).tag;
	struct lease_grant grant;

	(void)state;
	lend(&key, T0, 2, 5, 1, 30);
	assert_false(back(&key, T0 + SEC(1), 1, 6, old, 30)); /* LEASE-3 */
	assert_int_equal(out_of(&key, T0 + SEC(1), 1), 0);
	assert_true(steps(&key, T0 + SEC(1), 50)); /* it knows of no ledger */
	assert_false(back(&key, T0 + SEC(1), 1, 6, old, 30));
	assert_int_equal(out_of(&key, T0 + SEC(1), 1), 0);
	grant = lend(&key, T0 + SEC(1), 1, 7, 1, 10);
	assert_int_equal(grant.units, 10);
	assert_int_equal(grant.holders, 1); /* LEASE-5 */
	assert_int_equal(ledger_rows(&key.ledger), 1);
	assert_int_equal(out_of(&key, T0 + SEC(1), 1), 10);
	assert_false(back(&key, T0 + SEC(1), 1, 8, grant.tag, 11));
	assert_false(back(&key, T0 + SEC(1), 1, 8, old, 10));
	/* The clock is not believed. RULE-2 */
	assert_false(back(&key, T0, 1, 8, old, 10));
	assert_true(back(&key, T0, 1, 8, grant.tag, 10));
	assert_int_equal(remaining(&key, T0 + SEC(1)), 50);
}

static void a_window_with_all_back_is_as_good_as_new(void **state)
{
	struct leased key = key_of(gale_fixed_window(100, SEC(1)));
	struct gale_slot tag = lend(&key, T0, 1, 1, 1, 100).tag;
	struct leased fresh = key_of(gale_fixed_window(100, SEC(1)));
	struct gale_answer a, b;

	(void)state;
	assert_true(back(&key, T0 + 1, 1, 2, tag, 100));
	assert_int_equal(rule_expires(&key.rule, key.words), T0); /* RULE-4 */
	a = rule_peek(&key.rule, key.words, T0);
	b = rule_peek(&key.rule, fresh.words, T0);
	assert_memory_equal(&a, &b, sizeof(a));
	a = rule_peek(&key.rule, key.words, T0 - 1); /* RULE-2: it is T0 */
	/* LEASE-2, still */
	b = rule_peek(&key.rule, fresh.words, T0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(lend(&key, T0 + 2, 1, 1, 1, 100).units, 0);
	assert_int_equal(lend(&key, T0 + 2, 1, 3, 1, 100).units, 100);
}

/* ---- More nodes than rows -------------------------------------------------------- */

/* L16: whoever was lent some can give it back, once, and knows who else may. */
static void a_fleet_of_any_size_gives_back(void **state)
{
	struct leased key = key_of(gale_fixed_window(500, SEC(1)));
	struct gale_slot tag = slot_at(T0);
	struct lease_grant grant;

	(void)state;
	for (uint64_t node = 1; node <= 100; node++) {
		grant = lend(&key, T0 + node, node, 1, 1, 5);
		assert_int_equal(grant.units, 5);
		assert_int_equal(grant.holders, node);
		assert_int_equal(grant.others, node - 1);
	}
	assert_int_equal(ledger_rows(&key.ledger), LEASE_ROWS);
	assert_int_equal(ask_spent(&key, T0 + 200, 50, 2).others, 99);
	assert_int_equal(ask_spent(&key, T0 + 200, 60, 2).others, 98);
	assert_int_equal(ask_spent(&key, T0 + 200, 60, 2).others, 98);
	assert_int_equal(lend(&key, T0 + 200, 61, 1, 1, 5).units, 5); /* LEASE-2 */
	for (uint64_t node = 1; node <= 100; node++) {
		assert_false(back(&key, T0 + 300, node, 3, tag, 6));
		assert_false(back(&key, T0 + 300, node, 3, slot_at(T0 - 1), 5));
		assert_true(back(&key, T0 + 300, node, 3, tag, 2));
		assert_false(back(&key, T0 + 300, node, 3, tag, 3) &&
		             out_of(&key, T0 + 300, node) != 3); /* LEASE-3 */
		assert_true(back(&key, T0 + 300, node, 4, tag, 3));
		assert_false(back(&key, T0 + 300, node, 5, tag, 1));
		assert_int_equal(remaining(&key, T0 + 300), 5 * node);
	}
	grant = lend(&key, T0 + 400, 99, 6, 1, 5);
	assert_int_equal(grant.holders, 1);
	assert_int_equal(grant.others, 0);
	assert_false(back(&key, T0 + SEC(1), 99, 7, tag, 5));
	assert_int_equal(lend(&key, T0 + SEC(1), 99, 8, 1, 5).holders, 1);
	assert_int_equal(ledger_rows(&key.ledger), 1);
}

/* Units out of one crowd are none of the next crowd's. LEASE-6 */
static void a_row_of_another_crowd_is_none(void **state)
{
	struct leased key = key_of(gale_fixed_window(500, SEC(1)));
	struct gale_slot tag = slot_at(T0);

	(void)state;
	for (uint64_t node = 1; node <= 20; node++)
		lend(&key, T0, node, 1, 1, 5);
	memset(key.words, 0, sizeof(key.words)); /* it was reset */
	memset(&key.ledger, 0, sizeof(key.ledger));
	for (uint64_t node = 1; node <= 8; node++)
		lend(&key, T0 + 1, node, 2, 1, 5);
	assert_int_equal(remaining(&key, T0 + 1), 460);
	assert_int_equal(out_of(&key, T0 + 1, 20), 0);
	assert_false(back(&key, T0 + 1, 20, 3, tag, 5));
	assert_true(back(&key, T0 + 1, 8, 3, tag, 5));
	assert_int_equal(lend(&key, T0 + 2, 20, 1, 1, 5).holders, 8);
	assert_int_equal(out_of(&key, T0 + 2, 20), 5);
	key.aparts[20].tag.us = T0; /* a store that gives it the wrong one */
	key.ledger.apart = key.aparts[20];
	assert_false(
	    lease_give_back(&key.rule, key.words, &key.ledger, T0 + 2, 20, 2, tag, 5));
	assert_false(ledger_valid(&key.rule, key.words, &key.ledger));
}

/* ---- Ahead, after a quarantine -------------------------------------------------- */

static struct lease_grant lend_both(struct leased *key, uint64_t now, uint64_t units,
                                    uint64_t ahead)
{
	struct lease_ask ask = {
		.node = 1, .number = 1, .want = units, .least = units, .ahead = ahead
	};

	return asks(key, now, &ask);
}

static uint64_t used_after_turn(const struct leased *key, uint64_t now,
                                uint64_t reserve_from)
{
	struct leased copy = *key;

	(void)lease_turn(&copy.rule, copy.words, &copy.ledger, now, reserve_from);
	check_key(&copy);
	return key->rule.is.limit - remaining(&copy, now);
}

/* A window that was there when the quarantine ended has none, nor one after the next; and what is
 * known to be lent ahead is besides. LEASE-7 */
static void one_window_after_a_quarantine_has_a_reserve(void **state)
{
	struct leased key = key_of(gale_fixed_window(160, SEC(1)));

	(void)state;
	assert_int_equal(used_after_turn(&key, T0, T0 + 1), 0);
	assert_int_equal(used_after_turn(&key, T0 + SEC(1), T0 + 1), 10);
	assert_int_equal(used_after_turn(&key, T0 + SEC(1), T0 + SEC(1)), 10);
	assert_int_equal(used_after_turn(&key, T0 + SEC(2), T0 + 1), 0);
	assert_int_equal(used_after_turn(&key, T0 + SEC(1), /* reserve_from= */ 0), 0);
	assert_int_equal(lend_both(&key, T0, 5, 4).ahead, 4);
	assert_int_equal(used_after_turn(&key, T0 + SEC(1), /* reserve_from= */ 0), 4);
	assert_int_equal(used_after_turn(&key, T0 + SEC(1), T0 + 1), 14);
	assert_int_equal(used_after_turn(&key, T0 + SEC(2), T0 + 1), 0);
}

/* It is denied, so that the rows of the window before stay as they are. */
static void what_was_had_of_a_window_that_is_over_is_not_claimed(void **state)
{
	struct leased key = key_of(gale_fixed_window(160, SEC(1)));
	struct lease_ask late = { .node = 1,
		                  .number = 2,
		                  .want = 161,
		                  .least = 161,
		                  .had = 4,
		                  .had_of = T0 + SEC(1) };
	struct leased before;

	(void)state;
	assert_int_equal(lend_both(&key, T0, 5, 4).ahead, 4);
	assert_true(lease_turn(&key.rule, key.words, &key.ledger, T0 + SEC(1),
	                       /* reserve_from_us= */ 0));
	before = key;
	assert_int_equal(asks(&key, T0 + SEC(2), &late).units, 0);
	assert_true(same_key(&key, &before));
	assert_int_equal(asks(&key, T0 + SEC(1), &late).units, 0);
	assert_int_equal(out_of(&key, T0 + SEC(1), 1), 4);
}

/* A store before this one has written eight rows of nodes. */
static void eight_nodes_of_before_become_seven_and_a_crowd(void **state)
{
	struct leased key = key_of(gale_fixed_window(500, SEC(1)));
	struct gale_slot tag = slot_at(T0);

	(void)state;
	for (uint64_t node = 1; node <= 8; node++)
		key.ledger.rows[node - 1] = (struct lease_row){
			.node = node, .number = 1, .granted = 5, .out = 5, .tag = tag
		};
	((struct window_state *)key.words)->start_us = T0;
	((struct window_state *)key.words)->used = 40;
	check_key(&key);
	assert_int_equal(lend(&key, T0, 8, 2, 1, 5).holders, 8);
	assert_int_equal(lend(&key, T0, 9, 1, 1, 5).holders, 8);
	assert_false(back(&key, T0, 7, 2, tag, 5)); /* LEASE-5: it stays spent */
	assert_true(back(&key, T0, 8, 3, tag, 10));
	assert_true(back(&key, T0, 9, 2, tag, 5));
	assert_int_equal(remaining(&key, T0), 465);
}

/* So that nobody can give back more than there is, whatever was lost. */
static void a_row_apart_takes_no_more_off_than_is_used(void **state)
{
	struct leased key = key_of(gale_fixed_window(500, SEC(1)));

	(void)state;
	for (uint64_t node = 1; node <= 9; node++)
		lend(&key, T0, node, 1, 1, node == 9 ? 100 : 5);
	((struct window_state *)key.words)->used = 50;
	assert_false(back(&key, T0, 9, 2, slot_at(T0), 100));
	assert_true(back(&key, T0, 9, 2, slot_at(T0), 10));
}

/* LEASE-5 */
static void a_meter_forgets_the_node_lent_to_longest_ago(void **state)
{
	struct leased key = key_of(gale_gcra(100, SEC(1), 100));

	(void)state;
	for (uint64_t node = 1; node <= LEASE_ROWS; node++)
		lend(&key, T0, node, 1, 1, 5);
	lend(&key, T0, 1, 2, 1, 5); /* 2 is now the last */
	assert_int_equal(ledger_rows(&key.ledger), LEASE_ROWS);
	assert_int_equal(lend(&key, T0, 9, 1, 1, 5).holders, LEASE_ROWS);
	assert_int_equal(lend(&key, T0, 1, 2, 1, 5).units, 5); /* LEASE-2 */
	assert_int_equal(remaining(&key, T0), 50);
	/* Its first message is taken for a new one: charged again, never given twice. */
	assert_int_equal(lend(&key, T0, 2, 1, 1, 5).units, 5);
	assert_int_equal(remaining(&key, T0), 45);
}

/* ---- Ahead ----------------------------------------------------------------------- */

#define T1 (T0 + SEC(1))
#define T2 (T0 + SEC(2))

/* A sixteenth of its limit is ten. */
static struct leased bridged_key(void)
{
	return key_of(gale_fixed_window(160, SEC(1)));
}

static bool turns(struct leased *key, uint64_t now, uint64_t reserve_from_us)
{
	bool turned =
	    lease_turn(&key->rule, key->words, &key->ledger, now, reserve_from_us);

	check_key(key);
	return turned;
}

/* As a store does it: it begins the window first. */
static struct lease_grant bridge(struct leased *key, uint64_t now,
                                 const struct lease_ask *ask)
{
	(void)turns(key, now, /* reserve_from_us= */ 0);
	return asks(key, now, ask);
}

static struct lease_grant lend_ahead(struct leased *key, uint64_t now, uint64_t node,
                                     uint64_t want, uint64_t ahead)
{
	struct lease_ask ask = {
		.node = node, .number = 1, .least = 1, .want = want, .ahead = ahead
	};
	return bridge(key, now, &ask);
}

static struct lease_grant tell(struct leased *key, uint64_t now, uint64_t node,
                               uint64_t number, uint64_t had, uint64_t had_of)
{
	struct lease_ask ask = { .node = node,
		                 .number = number,
		                 .least = 1,
		                 .want = 10,
		                 .had = had,
		                 .had_of = had_of };
	return bridge(key, now, &ask);
}

/* LEASE-7 */
static void a_window_begins_with_what_was_lent_ahead(void **state)
{
	struct leased key = bridged_key(), late;
	struct lease_grant grant = lend_ahead(&key, T0, 1, 30, 4);

	(void)state;
	assert_int_equal(grant.units, 30);
	assert_int_equal(grant.ahead, 4);
	assert_int_equal(grant.left, 126);
	assert_int_equal(grant.lasts_us, SEC(1));
	assert_int_equal(grant.holders, 1);
	assert_int_equal(remaining(&key, T0), 126);
	assert_int_equal(out_of(&key, T0, 1), 34);
	assert_int_equal(lend_ahead(&key, T0, 2, 20, 3).ahead, 3);
	assert_int_equal(ledger_ahead(&key.ledger, T0), 7);
	assert_int_equal(ledger_ahead(&key.ledger, T1), 0);
	assert_true(steps(&key, T0, 50));
	assert_false(turns(&key, T1 - 1, 0));
	late = key;
	assert_true(turns(&key, T1, 0));
	assert_int_equal(remaining(&key, T1), 153);
	assert_int_equal(out_of(&key, T1, 1), 0);
	assert_false(turns(&key, T1, 0)); /* once */
	assert_false(turns(&key, T0, 0)); /* RULE-2 */
	grant = lend_ahead(&key, T1, 3, 5, 0);
	assert_int_equal(grant.holders, 1);
	assert_int_equal(grant.others, 1); /* seven, with nodes that have not come */
	assert_int_equal(grant.ahead, 0);
	assert_true(steps(&key, T1, 148)); /* a strict step, on the same words */
	assert_false(steps(&key, T1, 1));
	assert_false(turns(&key, T2, 0)); /* nothing more was lent ahead */
	assert_int_equal(remaining(&key, T2), 160);
	assert_false(turns(&late, T2, 0)); /* two windows later it is over */
	assert_int_equal(remaining(&late, T2), 160);
}

static void at_most_a_sixteenth_is_lent_ahead(void **state)
{
	struct leased key = bridged_key();
	struct leased little = key_of(gale_fixed_window(15, SEC(1)));
	struct lease_grant grant;

	(void)state;
	assert_int_equal(lend_ahead(&key, T0, 1, 20, 6).ahead, 6);
	assert_int_equal(lend_ahead(&key, T0, 2, 20, 6).ahead, 4);
	grant = lend_ahead(&key, T0, 3, 20, 6);
	assert_int_equal(grant.units, 20);
	assert_int_equal(grant.ahead, 0);
	assert_int_equal(remaining(&key, T0), 90);
	assert_int_equal(lend_ahead(&key, T1, 1, 20, 99).ahead, 10);
	assert_int_equal(remaining(&key, T1), 120); /* ten were used, and ten are */
	key = bridged_key();
	grant = lend_ahead(&key, T0, 1, 158, 5); /* no more than is left */
	assert_int_equal(grant.ahead, 2);
	assert_int_equal(grant.left, 0);
	grant = lend_ahead(&key, T0, 2, 1, 5); /* a denial lends nothing */
	assert_int_equal(grant.units, 0);
	assert_int_equal(grant.ahead, 0);
	assert_int_equal(ledger_ahead(&key.ledger, T0), 2);
	assert_int_equal(lend_ahead(&little, T0, 1, 5, 5).ahead, 0);
	assert_int_equal(remaining(&little, T0), 10);
}

static void of_a_fixed_window_alone_units_are_lent_ahead(void **state)
{
	const struct gale_rule others[] = {
		gale_quota_monthly(160, 60),  gale_quota_anchored(160, SEC(5), 7),
		gale_gcra(160, SEC(1), 160),  gale_token_bucket(160, 160, SEC(1)),
		gale_pacer(160, SEC(1), 160),
	};
	struct leased key = bridged_key();

	(void)state;
	assert_true(lease_has_ahead(&key.rule));
	for (size_t i = 0; i < COUNT(others); i++) {
		key = key_of(others[i]);
		assert_false(lease_has_ahead(&key.rule));
		assert_false(turns(&key, T0, T1));
		assert_int_equal(lend_ahead(&key, T0, 1, 5, 5).ahead, 0);
		assert_int_equal(lease_expires(&key.rule, key.words, &key.ledger),
		                 rule_expires(&key.rule, key.words));
	}
}

/* LEASE-8 */
static void a_node_says_once_what_it_was_lent_ahead(void **state)
{
	struct leased key = bridged_key(), before;
	struct lease_grant again;

	(void)state;
	lend_ahead(&key, T0, 1, 30, 4);
	lend_ahead(&key, T0, 2, 30, 3);
	tell(&key, T0, 1, 2, 4, T1); /* not yet: it is of the next window */
	assert_int_equal(out_of(&key, T0, 1), 44);
	assert_int_equal(tell(&key, T1, 1, 3, 4, T1).units, 10);
	assert_int_equal(out_of(&key, T1, 1), 14);
	before = key;
	again = tell(&key, T1, 1, 3, 4, T1);
	assert_int_equal(again.units, 10); /* LEASE-2 */
	assert_int_equal(again.ahead, 0);
	assert_true(same_key(&key, &before));
	tell(&key, T1, 1, 4, 4, T1); /* its answer was lost, for all that it knows */
	assert_int_equal(out_of(&key, T1, 1), 24);
	assert_int_equal(remaining(&key, T1), 133);
	tell(&key, T1, 3, 1, 2, T0);
	tell(&key, T1, 4, 1, 2, T2);
	assert_int_equal(out_of(&key, T1, 3), 10); /* of another window */
	assert_int_equal(out_of(&key, T1, 4), 10);
	tell(&key, T1, 2, 2, 9, T1);
	assert_int_equal(out_of(&key, T1, 2), 13); /* what nobody has said */
	tell(&key, T1, 5, 1, 1, T1);
	assert_int_equal(out_of(&key, T1, 5), 10); /* all have */
	assert_true(back(&key, T1, 1, 5, slot_at(T1), 24));
	assert_false(back(&key, T1, 1, 6, slot_at(T1), 1)); /* LEASE-3 */
	assert_true(back(&key, T1, 2, 3, slot_at(T1), 13));
	assert_int_equal(remaining(&key, T1), 130);
	assert_false(back(&key, T1, LEASE_AHEAD, 9, slot_at(T1), 1));
}

static void the_same_number_again_says_nothing_of_units_ahead(void **state)
{
	struct leased key = bridged_key(), before;
	struct lease_grant again;

	(void)state;
	lend_ahead(&key, T0, 1, 30, 4);
	before = key;
	again = lend_ahead(&key, T0, 1, 30, 4);
	assert_int_equal(again.units, 30); /* LEASE-2 */
	assert_int_equal(again.ahead, 0);
	assert_true(same_key(&key, &before));
}

static void an_ask_in_vain_says_it_too(void **state)
{
	struct leased key = bridged_key(), before;

	(void)state;
	lend_ahead(&key, T0, 1, 30, 4);
	assert_true(turns(&key, T1, 0));
	assert_true(steps(&key, T1, 156));
	assert_int_equal(tell(&key, T1, 1, 2, 4, T1).units, 0);
	assert_int_equal(out_of(&key, T1, 1), 4);
	before = key;
	assert_int_equal(tell(&key, T1, 1, 2, 4, T1).units, 0); /* LEASE-2 */
	assert_true(same_key(&key, &before));
	assert_true(back(&key, T1, 1, 3, slot_at(T1), 4));
	assert_int_equal(remaining(&key, T1), 4);
}

/* An ask that can never pass turns no window: the ledger is still that of the one before. */
static void an_ask_in_vain_says_nothing_of_a_window_that_is_over(void **state)
{
	const struct lease_ask ask = { .node = 2,
		                       .number = 2,
		                       .least = 161,
		                       .want = 161,
		                       .had = 4,
		                       .had_of = T1 };
	struct leased key = bridged_key(), before;

	(void)state;
	lend_ahead(&key, T0, 2, 30, 4);
	lend_ahead(&key, T1, 1, 30, 0);
	before = key;
	assert_int_equal(bridge(&key, T2, &ask).retry_us, GALE_NEVER);
	assert_true(same_key(&key, &before)); /* RULE-1 */
}

/* Their part of this window goes back, and that of the next stays. */
static void units_ahead_go_back_into_each_window_by_itself(void **state)
{
	struct leased key = bridged_key();

	(void)state;
	lend_ahead(&key, T0, 1, 30, 4);
	assert_false(back(&key, T0, 1, 2, slot_at(T0), 35)); /* LEASE-3 */
	assert_true(back(&key, T0, 1, 2, slot_at(T0), 34));
	assert_int_equal(remaining(&key, T0), 160);
	assert_int_equal(rule_expires(&key.rule, key.words), T0);
	assert_int_equal(lease_expires(&key.rule, key.words, &key.ledger), T2);
	assert_true(turns(&key, T1, 0));
	assert_int_equal(remaining(&key, T1), 156);
	assert_false(back(&key, T1, 1, 3, slot_at(T1), 4)); /* nobody said so */
	assert_false(back(&key, T1, 1, 3, slot_at(T0), 4));
	tell(&key, T1, 1, 4, 4, T1);
	assert_true(back(&key, T1, 1, 5, slot_at(T1), 14));
	assert_int_equal(remaining(&key, T1), 160);
}

/* RULE-4, for two windows. */
static void what_is_lent_ahead_keeps_the_key(void **state)
{
	struct leased key = bridged_key();

	(void)state;
	lend_ahead(&key, T0, 1, 30, 0);
	assert_int_equal(lease_expires(&key.rule, key.words, &key.ledger), T1);
	lend_ahead(&key, T0, 2, 30, 1);
	assert_int_equal(lease_expires(&key.rule, key.words, &key.ledger), T2);
	assert_true(turns(&key, T1, 0));
	assert_int_equal(lease_expires(&key.rule, key.words, &key.ledger), T2);
}

/* A store that has forgotten does not know the sum. */
static void what_may_have_been_lent_ahead_is_reserved(void **state)
{
	struct leased key = bridged_key(), fresh = key;

	(void)state;
	assert_false(turns(&key, T0, T0 + 1)); /* it was there before then */
	assert_true(turns(&key, T0, T0));
	assert_int_equal(remaining(&key, T0), 150);
	assert_false(turns(&key, T0 + 5, T0)); /* once */
	tell(&key, T0 + 5, 1, 1, 4, T0);
	assert_int_equal(out_of(&key, T0 + 5, 1), 14);
	assert_int_equal(remaining(&key, T0 + 5), 140);
	assert_false(turns(&key, T1, T0)); /* it is the second */
	assert_true(turns(&key, T1, T0 + 1));
	assert_int_equal(remaining(&key, T1), 150);
	key = fresh;
	lend_ahead(&key, T0, 1, 30, 4);
	assert_false(turns(&key, T0, T0)); /* it has begun */
	assert_true(turns(&key, T1, T0 + 1));
	assert_int_equal(remaining(&key, T1), 146); /* it has lent since */
	key = fresh;
	lend_ahead(&key, T0, 1, 30, 4);
	key.rule = key_of(gale_fixed_window(16, SEC(1))).rule;
	assert_true(turns(&key, T1, T1));
	assert_int_equal(remaining(&key, T1), 11); /* of what is in force now */
}

/* ---- Ahead, and more nodes than rows */

static void where_there_is_no_row_nothing_is_lent_ahead(void **state)
{
	struct leased key = bridged_key();

	(void)state;
	for (uint64_t node = 1; node <= 7; node++)
		lend_ahead(&key, T0, node, 5, 0);
	assert_int_equal(lend_ahead(&key, T0, 8, 5, 3).ahead, 0);
	key = bridged_key();
	for (uint64_t node = 1; node <= 7; node++) /* the seventh's is the last row */
		assert_int_equal(lend_ahead(&key, T0, node, 5, node == 7).ahead, 0);
	key = bridged_key();
	for (uint64_t node = 1; node <= 6; node++)
		assert_int_equal(lend_ahead(&key, T0, node, 5, node == 6).ahead,
		                 node == 6);
	assert_int_equal(ledger_rows(&key.ledger), LEASE_ROWS - 1);
	assert_int_equal(lend_ahead(&key, T0, 7, 5, 2).ahead, 2); /* apart */
	assert_int_equal(lend_ahead(&key, T0, 8, 5, 3).holders, 8);
	assert_int_equal(ledger_rows(&key.ledger), LEASE_ROWS);
	assert_int_equal(out_of(&key, T0, 7), 7);
	assert_int_equal(out_of(&key, T0, 8), 8);
	assert_int_equal(ledger_ahead(&key.ledger, T0), 6);
	assert_int_equal(remaining(&key, T0), 160 - 40 - 6);
	assert_true(back(&key, T0, 8, 2, slot_at(T0), 8));
	assert_true(turns(&key, T1, 0));
	assert_int_equal(ledger_rows(&key.ledger), 1);
	assert_int_equal(remaining(&key, T1), 154);
}

/* Nothing is left for a node that says what it was lent ahead: that may go back.  LEASE-9 */
static void who_says_what_it_had_may_have_it(void **state)
{
	struct leased key = bridged_key(), before;
	struct lease_ask ask = {
		.node = 1, .number = 2, .least = 1, .want = 1, .had = 4, .had_of = T1
	};
	struct lease_grant grant;

	(void)state;
	lend_ahead(&key, T0, 1, 30, 4);
	assert_int_equal(lend_ahead(&key, T1, 2, 156, 0).others, 1);
	before = key;
	grant = bridge(&key, T1, &ask);
	assert_int_equal(grant.units, 0);
	assert_int_equal(grant.had, 4);
	assert_int_equal(tell(&key, T1, 2, 3, 0, 0).others, 1);
	grant = bridge(&key, T1, &ask); /* LEASE-2 */
	assert_int_equal(grant.units + grant.had, 0);
	assert_true(back(&key, T1, 1, 3, slot_at(T1), 4));
	key = before;
	ask.spent = true;
	assert_int_equal(bridge(&key, T1, &ask).had, 4);
	assert_int_equal(tell(&key, T1, 2, 3, 0, 0).others, 0);
}

/* The window began with units of nodes 1 and 2, and six others asked first. */
static struct leased crowded_key(void)
{
	struct leased key = bridged_key();

	lend_ahead(&key, T0, 1, 30, 4);
	lend_ahead(&key, T0, 2, 30, 3);
	for (uint64_t node = 11; node <= 16; node++)
		lend_ahead(&key, T1, node, 5, 0);
	return key;
}

static void rows_apart_say_what_they_were_lent_ahead(void **state)
{
	struct leased key = crowded_key();

	(void)state;
	tell(&key, T1, 1, 2, 4, T1);
	tell(&key, T1, 2, 2, 3, T1);
	assert_int_equal(out_of(&key, T1, 1), 14);
	assert_int_equal(out_of(&key, T1, 2), 13);
	assert_true(back(&key, T1, 1, 3, slot_at(T1), 14));
	assert_true(back(&key, T1, 2, 3, slot_at(T1), 13));
	assert_int_equal(remaining(&key, T1), 130);
}

/* A row apart with nothing out is dropped, and its number with it: the same ask is a first one
 * again.  It is not put down for what another has in hand.  LEASE-8 */
static void messages_that_come_twice_give_no_other_nodes_units_back(void **state)
{
	struct leased key = crowded_key();

	(void)state;
	tell(&key, T1, 1, 2, 4, T1);
	assert_true(back(&key, T1, 1, 3, slot_at(T1), 14));
	assert_int_equal(remaining(&key, T1), 127); /* 30, and 3 of node 2 */
	tell(&key, T1, 1, 2, 4, T1);
	assert_int_equal(out_of(&key, T1, 1), 10);
	assert_false(back(&key, T1, 1, 3, slot_at(T1), 14));
	assert_int_equal(remaining(&key, T1), 117);
}

/* ---- Meters ---------------------------------------------------------------------- */

static void a_meter_lends_what_has_accrued(void **state)
{
	struct leased key = key_of(gale_gcra(3, SEC(1), 7)), before;
	struct lease_grant grant = lend(&key, T0, 1, 1, 1, 5);

	(void)state;
	assert_int_equal(grant.units, 5);
	assert_int_equal(grant.tag.us, T0 + 1666666); /* 5/3 of a second, exactly */
	assert_int_equal(grant.tag.part, 2);
	assert_int_equal(grant.lasts_us, 1666667); /* up */
	assert_int_equal(grant.left, 2);
	grant = lend(&key, T0, 2, 1, 1, 5);
	assert_int_equal(grant.units, 2); /* LEASE-1 */
	assert_int_equal(grant.holders, 2);
	before = key;
	grant = lend(&key, T0 + 1, 2, 2, 2, 5);
	assert_int_equal(grant.units, 0);
	assert_int_equal(grant.left, 0);
	assert_int_equal(grant.retry_us, 666666);
	assert_int_equal(lend(&key, T0 + 1, 2, 2, 8, 8).retry_us, GALE_NEVER);
	assert_true(same_key(&key, &before)); /* RULE-1 */
	assert_int_equal(lend(&key, T0 + 1666667, 3, 1, 1, 9).holders,
	                 2); /* 1's died */
}

static void units_faster_than_the_clock_can_be_lent(void **state)
{
	struct leased key = key_of(gale_gcra(50000000, SEC(1), 10));

	(void)state;
	assert_int_equal(lend(&key, T0, 1, 1, 1, 10).lasts_us, 1); /* 0.2 */
}

/* A node may have units of earlier grants left, too: they stay spent. */
static void a_meter_takes_back_no_more_than_the_latest_grant(void **state)
{
	struct leased key = key_of(gale_token_bucket(7, 3, SEC(1))), before = key;
	struct gale_slot one = lend(&before, T0, 1, 1, 1, 2).tag, two;

	(void)state;
	lend(&key, T0, 1, 1, 1, 2);
	/* LEASE-3: as after the first */
	two = lend(&key, T0 + 5, 1, 2, 1, 4).tag;
	assert_true(back(&key, T0 + 6, 1, 3, two, 6));
	assert_int_equal(key.words[0], before.words[0]);
	assert_int_equal(key.words[1], one.part);
}

static void a_meter_takes_back_the_latest_grant_exactly(void **state)
{
	struct leased key = key_of(gale_token_bucket(7, 3, SEC(1))), before;
	struct gale_slot one = lend(&key, T0, 1, 1, 1, 2).tag, two;

	(void)state;
	two = lend(&key, T0 + 5, 2, 1, 1, 4).tag;
	before = key;
	assert_false(back(&key, T0 + 6, 1, 2, one, 1)); /* LEASE-3: not the latest */
	assert_false(back(&key, T0 + 6, 1, 2, two, 1));
	assert_false(back(&key, T0 + 6, 2, 2, one, 1));
	assert_true(same_key(&key, &before));
	assert_true(back(&key, T0 + 6, 2, 2, two, 3));
	assert_int_equal(key.words[0], T0 + 1000000); /* three units: 2/3 + 1/3 */
	assert_int_equal(key.words[1], 0);
	assert_false(back(&key, T0 + 6, 2, 3, two, 1)); /* LEASE-3: once */
	assert_true(back(&key, T0 + 6, 2, 2, two, 3));  /* LEASE-2 */
	assert_int_equal(remaining(&key, T0 + 6), 4);
}

/* Its units count from T0 + 10 on; those before were there again. */
static void giving_back_does_not_go_behind_the_grant(void **state)
{
	struct leased key = key_of(gale_gcra(1, 1, 5));
	struct gale_slot tag;

	(void)state;
	lend(&key, T0, 1, 1, 1, 2);
	tag = lend(&key, T0 + 10, 1, 2, 1, 5).tag;
	assert_true(back(&key, T0 + 11, 1, 3, tag, 5));
	assert_int_equal(key.words[0], T0 + 10);
	assert_int_equal(remaining(&key, T0 + 11), 5);
}

/* Three go back, a strict step takes three: tat is where it was, but is another's. */
static void a_tag_that_comes_again_is_another(void **state)
{
	struct leased key = key_of(gale_gcra(1, 1, 20));
	struct gale_slot tag = lend(&key, T0, 1, 1, 1, 10).tag;

	(void)state;
	assert_true(back(&key, T0 + 1, 1, 2, tag, 3));
	assert_true(steps(&key, T0 + 9, 1));
	assert_true(steps(&key, T0 + 9, 0 + 1));
	assert_int_equal(key.words[0], T0 + 11);
	assert_false(back(&key, T0 + 9, 1, 3, tag, 1));
	key = key_of(gale_gcra(1, 1, 20));
	tag = lend(&key, T0, 1, 1, 1, 10).tag;
	assert_true(back(&key, T0 + 1, 1, 2, tag, 3));
	assert_true(steps(&key, T0 + 5, 3));
	assert_int_equal(key.words[0], tag.us);
	assert_false(back(&key, T0 + 5, 1, 3, tag, 7)); /* LEASE-3 */
}

static void a_strict_step_ends_what_can_be_given_back(void **state)
{
	struct leased key = key_of(gale_gcra(10, SEC(1), 20));
	struct gale_slot tag = lend(&key, T0, 1, 1, 1, 10).tag;
	struct lease_grant again;

	(void)state;
	assert_true(steps(&key, T0, 1));
	assert_false(back(&key, T0, 1, 2, tag, 10)); /* LEASE-3 */
	/* LEASE-2: they are good until their own tat */
	again = lend(&key, T0 + 10, 1, 1, 1, 10);
	assert_int_equal(again.units, 10);
	assert_int_equal(again.lasts_us, SEC(1) - 10);
	assert_true(slot_equal(again.tag, tag));
	assert_int_equal(lend(&key, T0 + SEC(1), 1, 1, 1, 10).units, 0);
	assert_int_equal(out_of(&key, T0 + SEC(1) - 1, 1), 10);
	assert_int_equal(out_of(&key, T0 + SEC(1), 1), 0);
	assert_int_equal(remaining(&key, T0), 9);
}

static void a_meter_takes_nothing_back_that_has_died(void **state)
{
	struct leased key = key_of(gale_gcra(10, SEC(1), 20)), before;
	struct gale_slot tag = lend(&key, T0, 1, 1, 1, 10).tag;

	(void)state;
	before = key;
	assert_false(back(&key, tag.us, 1, 2, tag, 10)); /* LEASE-3 */
	assert_true(same_key(&key, &before));
	assert_true(back(&key, tag.us - 1, 1, 2, tag, 10));
}

/* ---- Pacers ---------------------------------------------------------------------- */

static struct gale_rule paced(uint64_t limit, uint64_t burst, uint64_t max_wait_us)
{
	struct gale_rule rule = gale_pacer(limit, SEC(1), burst);

	rule.max_wait_us = max_wait_us;
	return rule;
}

static void a_pacer_lends_its_burst_at_once(void **state)
{
	struct leased key = key_of(paced(3, 10, SEC(100))), before;
	struct lease_grant grant = lend(&key, T0, 1, 1, 1, 4);

	(void)state;
	assert_int_equal(grant.units, 4);
	assert_true(slot_equal(grant.tag, no_tag));
	assert_int_equal(grant.delay_ns, 0);
	assert_int_equal(grant.lasts_us, 1333334); /* 4/3 of a second, up */
	assert_int_equal(grant.holders, 0);        /* nothing could come back */
	before = key;
	assert_false(back(&key, T0, 1, 2, no_tag, 4)); /* LEASE-3 */
	assert_false(back(&key, T0, 1, 2, slot_at(T0 + 1333334), 4));
	grant = lend(&key, T0 + 4, 1, 1, 1, 4);
	assert_int_equal(grant.units, 4); /* LEASE-2 */
	assert_int_equal(grant.lasts_us, 1333330);
	assert_true(slot_equal(grant.tag, no_tag));
	assert_int_equal(lend(&key, T0 + 1333334, 1, 1, 1, 4).units, 0);
	assert_true(same_key(&key, &before));
	grant = lend(&key, T0, 1, 2, 6, 50); /* as much as fits, if that is enough */
	assert_int_equal(grant.units, 6);
	assert_true(slot_equal(grant.tag, no_tag));
}

static void a_pacer_books_places_in_a_row(void **state)
{
	struct leased key = key_of(paced(3, 0, SEC(100)));
	struct lease_grant grant = lend(&key, T0, 1, 1, 1, 10);

	(void)state;
	assert_int_equal(grant.units, 10);
	assert_int_equal(grant.tag.us, T0);
	assert_int_equal(grant.delay_ns, 0);
	assert_int_equal(grant.lasts_us, 3333334);
	grant = lend(&key, T0 + 1, 2, 1, 1, 10);
	assert_int_equal(grant.units, 10);
	assert_int_equal(grant.tag.us, T0 + 3333333);
	assert_int_equal(grant.tag.part, 1);
	assert_int_equal(grant.delay_ns, 3333332334);
	assert_int_equal(grant.holders, 2);
	assert_int_equal(lend(&key, T0 + 3333334, 3, 1, 1, 1).holders,
	                 2); /* 1 is over */
}

/* Within a second of waiting, ten at most; but a call of twenty is booked as a call. */
static void a_block_ends_within_the_longest_wait(void **state)
{
	struct leased key = key_of(paced(10, 0, SEC(1))), before;
	struct lease_grant grant = lend(&key, T0, 1, 1, 1, 1000);

	(void)state;
	assert_int_equal(grant.units, 11); /* LEASE-1: the last at T0 + 1 s */
	assert_int_equal(grant.left, 0);
	before = key;
	grant = lend(&key, T0, 2, 1, 1, 5);
	assert_int_equal(grant.units, 0);
	assert_int_equal(grant.retry_us, MS(100));
	assert_true(same_key(&key, &before)); /* RULE-1 */
	grant = lend(&key, T0 + MS(350), 2, 1, 1, 1000);
	assert_int_equal(grant.units, 3);
	key = key_of(paced(10, 0, SEC(1)));
	assert_int_equal(lend(&key, T0, 1, 1, 20, 1000).units, 20); /* LEASE-1 */
	assert_int_equal(lend(&key, T0, 1, 2, 1, 1).retry_us, SEC(1));
	key = key_of(gale_pacer_limit(10, SEC(1), 0));
	assert_int_equal(lend(&key, T0, 1, 1, 1, 1000).units, 1);
	assert_int_equal(lend(&key, T0, 1, 2, MOST, MOST).retry_us, GALE_NEVER);
}

static void a_block_comes_back_from_its_end(void **state)
{
	struct leased key = key_of(paced(3, 0, SEC(100))), before;
	struct gale_slot tag, end;

	(void)state;
	lend(&key, T0, 1, 1, 1, 1);
	tag = lend(&key, T0, 1, 2, 1, 10).tag;
	assert_true(steps(&key, T0, 1)); /* the place behind it */
	before = key;
	assert_false(back(&key, T0, 1, 3, tag, 11)); /* LEASE-3 */
	assert_false(back(&key, T0, 1, 3, slot_at(T0), 1));
	assert_false(back(&key, T0, 2, 3, tag, 1));
	assert_false(back(&key, T0 + SEC(3), 1, 3, tag, 4)); /* it has passed */
	assert_true(same_key(&key, &before));
	assert_true(back(&key, T0, 1, 3, tag, 4));  /* the last four, now a gap */
	assert_false(back(&key, T0, 1, 4, tag, 1)); /* LEASE-3: once */
	assert_true(back(&key, T0, 1, 3, tag, 4));  /* LEASE-2 */
	end = slot_add(tag, slot_span(6, SEC(1), 3), 3);
	assert_int_equal(out_of(&key, T0, 1), 6);
	assert_int_equal(out_of(&key, end.us + 1, 1), 0);
	before = key;
	assert_true(slot_equal(lend(&key, T0, 2, 1, 4, 4).tag, end)); /* PACER-4 */
	key = before;
	assert_int_equal(lend(&key, T0, 2, 1, 5, 5).tag.us, T0 + SEC(4));
}

static void the_end_of_the_queue_comes_back(void **state)
{
	struct leased key = key_of(paced(3, 0, SEC(100)));
	struct gale_slot tag = lend(&key, T0, 1, 1, 1, 10).tag;

	(void)state;
	assert_true(back(&key, T0, 1, 2, tag, 10));
	assert_true(slot_equal(lend(&key, T0, 2, 1, 1, 1).tag, tag));
}

/* Its places would be counted from a later instant than they were booked from. */
static void a_block_that_has_begun_is_not_told_again(void **state)
{
	struct leased key = key_of(paced(3, 0, SEC(100)));
	struct lease_grant first, again;

	(void)state;
	lend(&key, T0, 2, 1, 1, 10);
	first = lend(&key, T0, 1, 1, 1, 10);
	again = lend(&key, T0 + SEC(1), 1, 1, 1, 10);
	assert_int_equal(again.units, 10); /* LEASE-2 */
	assert_true(slot_equal(again.tag, first.tag));
	assert_int_equal(again.delay_ns, first.delay_ns - 1000000000);
	assert_int_equal(again.lasts_us, first.lasts_us - SEC(1));
	assert_int_equal(lend(&key, first.tag.us, 1, 1, 1, 10).units, 10);
	assert_int_equal(lend(&key, first.tag.us + 1, 1, 1, 1, 10).units, 0);
	assert_true(back(&key, first.tag.us + 1, 1, 2, first.tag, 9));
}

/* ---- The ends of the numbers ----------------------------------------------------- */

static void the_largest_numbers_fit(void **state)
{
	struct leased key = key_of(gale_fixed_window(MOST, GALE_SPAN_MAX_US));
	struct lease_grant grant =
	    lend(&key, INSTANT_MAX_US + 5, NODE_MOST, MOST - 1, 1, MOST);

	(void)state;
	assert_int_equal(grant.units, MOST);
	assert_int_equal(grant.left, 0);
	assert_int_equal(lend(&key, UINT64_MAX, 1, MOST, 1, MOST).units, 0);
	assert_true(
	    back(&key, UINT64_MAX, NODE_MOST, MOST, grant.tag, MOST)); /* LEASE-4 */
	/* LEASE-2 */
	assert_int_equal(lend(&key, UINT64_MAX, NODE_MOST, MOST, 1, MOST).units, 0);
	assert_int_equal(lend(&key, UINT64_MAX, 1, MOST, 1, MOST).units, MOST);

	key = key_of(gale_gcra(MOST, GALE_SPAN_MAX_US, MOST));
	grant = lend(&key, INSTANT_MAX_US, NODE_MOST, MOST - 1, 1, MOST);
	assert_int_equal(grant.units, MOST);
	assert_int_equal(grant.lasts_us, GALE_SPAN_MAX_US);
	assert_true(back(&key, INSTANT_MAX_US, NODE_MOST, MOST, grant.tag, MOST - 1));
	assert_int_equal(remaining(&key, INSTANT_MAX_US), MOST - 1);

	key =
	    key_of(gale_leaky_bucket(MOST, GALE_PACE_PERIOD_MAX_US, GALE_SPAN_MAX_US));
	grant = lend(&key, INSTANT_MAX_US, NODE_MOST, MOST - 1, 1, MOST);
	assert_int_equal(grant.units, MOST);
	assert_int_equal(grant.lasts_us, GALE_PACE_PERIOD_MAX_US);
	assert_true(back(&key, INSTANT_MAX_US, NODE_MOST, MOST, grant.tag, 1));
}

static void a_ledger_that_cannot_be_is_seen(void **state)
{
	struct leased key = key_of(gale_fixed_window(10, SEC(1))), bad;

	(void)state;
	lend(&key, T0, 1, 1, 1, 3);
	lend(&key, T0, 2, 1, 1, 3);
#define REFUSED(change)                                                                \
	bad = key;                                                                     \
	change;                                                                        \
	assert_false(ledger_valid(&bad.rule, bad.words, &bad.ledger))
	REFUSED(bad.ledger.rows[0].node = 1);          /* twice */
	REFUSED(bad.ledger.rows[0].out = 8);           /* LEASE-4 */
	REFUSED(bad.ledger.rows[0].out = MOST);        /* and no overflow */
	REFUSED(bad.ledger.rows[0].granted = 4);       /* more than is out */
	REFUSED(bad.ledger.rows[0].number = 0);        /* of no request */
	REFUSED(bad.ledger.rows[0].number = MOST + 1); /* RULE-3 */
	REFUSED(bad.ledger.rows[0].node = MOST + 1);
	REFUSED(bad.ledger.rows[0].tag.us++);   /* two windows */
	REFUSED(bad.ledger.rows[0].tag.part++); /* no instant */
	REFUSED(bad.ledger.rows[1].node = 0);   /* not cleared */
	REFUSED(bad.ledger.rows[3].node = 3);   /* a hole */
	REFUSED(bad.words[1] = 5);              /* LEASE-4: less used than out */
	key = bridged_key();
	lend_ahead(&key, T0, 1, 3, 2);
	lend_ahead(&key, T1, 1, 3, 2);
	assert_int_equal(key.ledger.rows[1].node, LEASE_AHEAD);
	REFUSED(bad.ledger.rows[1].number = 0);
	REFUSED(bad.ledger.rows[1].out = 3);  /* LEASE-4 */
	REFUSED(bad.ledger.rows[1].tag.us--); /* two windows */
	REFUSED(bad.ledger.rows[0].node = LEASE_AHEAD) /* twice */;
	key = key_of(gale_gcra(10, SEC(1), 5));
	lend(&key, T0, 1, 1, 1, 3);
	REFUSED(bad.ledger.rows[0].out = 4);
	REFUSED(bad.ledger.rows[0].tag.part = 10);
	key = key_of(paced(10, 0, SEC(5)));
	lend(&key, T0, 1, 1, 1, 3);
	REFUSED(bad.ledger.rows[0].out = 2);
#undef REFUSED
}

/* ---- Random worlds --------------------------------------------------------------- */

#define NODES_MOST 12
#define STEPS_EACH 150
#define LIST_MOST (STEPS_EACH + 1)

struct message {
	bool is_back;
	struct lease_ask ask;
	struct gale_slot tag;
	uint64_t units; /* to give back */
	bool keeps;     /* more may come */
};

/* Something that was taken from the key. */
struct charge {
	uint64_t node; /* 0: a strict step */
	uint64_t number;
	uint64_t at;    /* when, as the rule sees it */
	uint64_t start; /* of the window */
	uint64_t units;
	uint64_t back; /* of them */
	struct gale_slot tag;
	bool placed; /* by a pacer */
};

/* The last message of a node that did something. */
struct known {
	bool yes;
	uint64_t start; /* of the window */
	uint64_t number;
	size_t charge; /* what it was granted, or LIST_MOST if it gave back */
	size_t latest; /* grant */
};

struct world {
	struct chance c;
	struct leased key;
	uint64_t now;
	uint64_t last;  /* token bucket: the latest allowed step */
	bool goes_back; /* its clock, now and then */
	bool went_back;
	uint64_t nodes;
	uint64_t numbers;
	struct message messages[LIST_MOST];
	size_t message_count;
	struct charge charges[LIST_MOST];
	size_t charge_count;
	struct known known[NODES_MOST + 1];
};

static struct tally {
	uint64_t whole, grants, denials, replays, backs, refused, charged_again, placed,
	    spent, crowds;
} tally;

static bool is_window(const struct world *w)
{
	return w->key.rule.is.kind == GALE_RULE_FIXED_WINDOW ||
	       w->key.rule.is.kind == GALE_RULE_QUOTA;
}

static bool is_pacer(const struct world *w)
{
	return w->key.rule.is.kind == GALE_RULE_PACER;
}

static uint64_t net(const struct charge *charge)
{
	return charge->units - charge->back;
}

/* All of a node's rows are kept, whatever they have out. */
static bool is_small(const struct world *w)
{
	return w->nodes < LEASE_ROWS || (w->nodes == LEASE_ROWS && !is_window(w));
}

/* When and in which window the key says it is. */
static uint64_t at_of(const struct world *w)
{
	if (w->key.rule.is.kind == GALE_RULE_TOKEN_BUCKET && w->now < w->last)
		return w->last;
	return w->now;
}

static uint64_t window_us(const struct world *w)
{
	return is_window(w) && w->key.rule.is.kind == GALE_RULE_QUOTA
	           ? GALE_DAYS(1)
	           : w->key.rule.is.period_us;
}

/* Windows go forward only. RULE-2 */
static uint64_t start_of(const struct world *w)
{
	uint64_t start = w->now - w->now % window_us(w);

	for (size_t i = 0; i < w->charge_count; i++)
		if (w->charges[i].start > start)
			start = w->charges[i].start;
	return start;
}

static uint64_t used_in(const struct world *w, uint64_t start)
{
	uint64_t used = 0;

	for (size_t i = 0; i < w->charge_count; i++)
		if (w->charges[i].start == start)
			used += net(&w->charges[i]);
	return used;
}

/* A slot as a number of 1/limit microseconds. */
static wide place_of(const struct world *w, struct gale_slot slot)
{
	return (wide)slot.us * (wide)w->key.rule.is.limit + (wide)slot.part;
}

static wide tat_of(const struct world *w)
{
	return place_of(w, ((const struct meter_state *)w->key.words)->tat);
}

/* Where tat would be if only what was not given back had ever been taken. */
static wide summed_tat(const struct world *w, bool with_all_back)
{
	wide limit = (wide)w->key.rule.is.limit, tat = 0;

	for (size_t i = 0; i < w->charge_count; i++) {
		const struct charge *charge = &w->charges[i];

		if (net(charge) == 0 && !with_all_back)
			continue;
		if (tat < (wide)charge->at * limit)
			tat = (wide)charge->at * limit;
		tat += (wide)net(charge) * (wide)w->key.rule.is.period_us;
	}
	return tat;
}

static uint64_t left_of_meter(const struct world *w)
{
	const struct gale_rule *is = &w->key.rule.is;
	wide now = (wide)at_of(w) * (wide)is->limit, ahead = tat_of(w) - now;
	wide room = (wide)is->burst * (wide)is->period_us;

	if (ahead < 0)
		ahead = 0;
	return ahead >= room ? 0 : (uint64_t)((room - ahead) / (wide)is->period_us);
}

static uint64_t left_of(const struct world *w)
{
	if (!is_window(w))
		return left_of_meter(w);
	return w->key.rule.is.limit - used_in(w, start_of(w));
}

/* ---- What must always hold */

static void check_window(const struct world *w)
{
	const struct window_state *state = (const struct window_state *)w->key.words;

	assert_int_equal(state->used, used_in(w, state->start_us)); /* LEASE-4 */
	assert_true(state->used <= w->key.rule.is.limit);
}

static wide latest_at(const struct world *w)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < w->charge_count; i++)
		if (w->charges[i].at > latest)
			latest = w->charges[i].at;
	return (wide)latest * (wide)w->key.rule.is.limit;
}

/* For all intervals that end with the last charge: net <= burst + t/T. */
static void check_meter(const struct world *w)
{
	const struct gale_rule *is = &w->key.rule.is;
	const struct charge *last;
	wide sum = 0;

	/* A grant that was given back whole may have moved tat on to its instant, where
	 * all has accrued; only earlier instants could tell. */
	assert_true(summed_tat(w, false) <= tat_of(w));
	assert_true(tat_of(w) <= summed_tat(w, true));
	if (!w->went_back)
		assert_true(tat_of(w) == summed_tat(w, false) ||
		            tat_of(w) <= latest_at(w));
	if (w->charge_count == 0)
		return;
	last = &w->charges[w->charge_count - 1];
	for (size_t i = w->charge_count; i-- > 0 && net(last) > 0;) {
		if (net(&w->charges[i]) == 0)
			continue; /* nothing began or ended here */
		sum += (wide)net(&w->charges[i]) * (wide)is->period_us;
		assert_true(sum <= (wide)is->burst * (wide)is->period_us +
		                       ((wide)last->at - (wide)w->charges[i].at) *
		                           (wide)is->limit); /* METER-1 */
	}
}

/* The last charge's places are nobody else's. PACER-1 */
static void check_places(const struct world *w)
{
	wide period = (wide)w->key.rule.is.period_us;
	const struct charge *last;
	wide from, to;

	if (w->charge_count == 0 || !w->charges[w->charge_count - 1].placed)
		return;
	last = &w->charges[w->charge_count - 1];
	from = place_of(w, last->tag);
	to = from + (wide)net(last) * period;
	for (size_t i = 0; i + 1 < w->charge_count; i++) {
		const struct charge *other = &w->charges[i];
		wide begin = place_of(w, other->tag);

		if (other->placed && net(other) > 0)
			assert_true(to <= begin ||
			            begin + (wide)net(other) * period <= from);
	}
}

/* The node's, or NULL. */
static struct lease_row *row_of(struct leased *key, uint64_t node)
{
	uint64_t crowd = ledger_crowd_of(&key->ledger, node);

	for (size_t i = 0; i < ledger_rows(&key->ledger); i++)
		if (key->ledger.rows[i].node == node)
			return &key->ledger.rows[i];
	return crowd != 0 && key->aparts[node].tag.us == crowd ? &key->aparts[node]
	                                                       : NULL;
}

static bool is_apart(const struct leased *key, const struct lease_row *row)
{
	return row >= key->aparts && row < key->aparts + APARTS;
}

/* The crowd counts rows apart. LEASE-6 */
static void check_crowd(const struct leased *key)
{
	const struct lease_row *crowd = &key->ledger.rows[LEASE_ROWS - 1];
	uint64_t holding = 0, in_hand = 0;

	if (crowd->node != LEASE_CROWD)
		return;
	for (size_t i = 0; i < APARTS; i++) {
		const struct lease_row *row = &key->aparts[i];

		if (row->tag.us != crowd->number)
			continue;
		holding += row->out > 0;
		in_hand += row->out > 0 && row->granted > 0;
	}
	assert_int_equal(crowd->out, holding);
	assert_int_equal(crowd->granted, in_hand);
	tally.crowds++;
}

static void check_world(const struct world *w)
{
	check_key(&w->key);
	check_crowd(&w->key);
	if (is_window(w))
		check_window(w);
	else if (is_pacer(w))
		check_places(w);
	else
		check_meter(w);
}

static void charge(struct world *w, uint64_t node, uint64_t number, uint64_t at,
                   uint64_t start, uint64_t units, struct gale_slot tag)
{
	w->charges[w->charge_count++] = (struct charge){
		.node = node,
		.number = number,
		.at = at,
		.start = start,
		.units = units,
		.tag = tag,
		.placed = is_pacer(w) && !slot_equal(tag, no_tag),
	};
	w->last = at;
}

/* ---- Messages */

/* Does the ledger know of the node, as far as the world is small? */
static bool is_known(const struct world *w, uint64_t node)
{
	const struct known *known = &w->known[node];

	return known->yes && (!is_window(w) || known->start == start_of(w));
}

static void note_grant(struct world *w, uint64_t node, uint64_t number, uint64_t start)
{
	for (uint64_t i = 1; i <= w->nodes && is_window(w); i++)
		if (w->known[i].start != start)
			w->known[i].yes = false;
	w->known[node] = (struct known){ .yes = true,
		                         .start = start,
		                         .number = number,
		                         .charge = w->charge_count - 1,
		                         .latest = w->charge_count - 1 };
}

static bool is_booked_at(const struct leased *key, uint64_t now, uint64_t units,
                         struct gale_slot *ret_last)
{
	struct leased scratch = *key;
	struct gale_answer answer = rule_step(&scratch.rule, scratch.words, now, units);

	if (answer.verdict != GALE_ALLOW)
		return false;
	*ret_last =
	    slot_add(answer.slot,
	             slot_span(units - 1, key->rule.is.period_us, key->rule.is.limit),
	             key->rule.is.limit);
	return !slot_equal(answer.slot, no_tag);
}

static bool goes_at_once(const struct leased *key, uint64_t now, uint64_t units)
{
	struct leased scratch = *key;
	struct gale_answer answer = rule_step(&scratch.rule, scratch.words, now, units);

	return answer.verdict == GALE_ALLOW && slot_equal(answer.slot, no_tag);
}

/* One more would not have been granted. */
static void check_most_of_pacer(const struct world *w, const struct leased *before,
                                const struct lease_ask *ask, uint64_t units,
                                bool placed)
{
	struct gale_slot last, latest = slot_at(w->now + w->key.rule.is.max_wait_us);

	if (!placed) {
		assert_true(goes_at_once(before, w->now, units));
		assert_true(units == ask->want ||
		            !goes_at_once(before, w->now, units + 1));
		return;
	}
	assert_false(goes_at_once(before, w->now, ask->least));
	assert_true(is_booked_at(before, w->now, units, &last));
	assert_true(units == ask->least || !slot_before(latest, last));
	if (units < ask->want && is_booked_at(before, w->now, units + 1, &last))
		assert_true(slot_before(latest, last));
}

static void check_grant(const struct world *w, const struct leased *before,
                        uint64_t left, const struct lease_ask *ask,
                        const struct lease_grant *grant)
{
	assert_in_range(grant->units, ask->least, ask->want); /* LEASE-1 */
	if (is_pacer(w)) {
		check_most_of_pacer(w, before, ask, grant->units,
		                    !slot_equal(grant->tag, no_tag));
		return;
	}
	assert_int_equal(grant->units, ask->want < left ? ask->want : left);
	assert_int_equal(grant->left, left - grant->units);
	if (is_window(w))
		assert_int_equal(grant->tag.us, start_of(w));
}

/* An answer that took nothing: what was said before, or no. LEASE-2 */
static void check_replay(const struct world *w, const struct lease_ask *ask,
                         const struct lease_grant *grant)
{
	for (size_t i = 0; i < w->charge_count; i++) {
		const struct charge *charge = &w->charges[i];

		if (charge->node == ask->node && charge->number == ask->number &&
		    charge->units == grant->units &&
		    slot_equal(charge->tag, grant->tag))
			return;
	}
	fail_msg("units from nowhere");
}

static bool may_be_denied(const struct world *w, const struct leased *before,
                          uint64_t left, const struct lease_ask *ask)
{
	struct gale_slot last;

	if (!is_pacer(w))
		return left < ask->least;
	return !goes_at_once(before, w->now, ask->least) &&
	       !is_booked_at(before, w->now, ask->least, &last);
}

/* It got nothing, and said that all is spent: that is noted, and nothing else. */
static bool is_noted(struct world *w, const struct leased *before,
                     const struct lease_ask *ask, const struct lease_grant *grant)
{
	struct leased without = w->key;
	struct lease_row *row = row_of(&without, ask->node);

	if (grant->units > 0 || same_key(before, &w->key))
		return false;
	assert_int_equal(row->granted, 0);
	*row = *row_of((struct leased *)before, ask->node);
	if (is_apart(&without, row)) {
		check_crowd(&w->key);
		without.ledger.rows[LEASE_ROWS - 1] =
		    before->ledger.rows[LEASE_ROWS - 1];
	}
	assert_true(same_key(before, &without));
	assert_true(ask->spent && is_window(w) && is_known(w, ask->node));
	assert_true(ask->number > w->known[ask->node].number);
	w->known[ask->node].number = ask->number;
	w->known[ask->node].charge = LIST_MOST;
	tally.spent++;
	return true;
}

/* How the window was left says the same, if that is all there is. */
static void check_whole(const struct world *w, const struct lease_ask *ask,
                        const struct lease_grant *grant)
{
	const struct window_state *left = (const struct window_state *)w->key.words;
	struct lease_grant told;

	if (!is_window(w) || grant->units < ask->want ||
	    ledger_rows(&w->key.ledger) > 1)
		return;
	assert_true(lease_was_whole(&w->key.rule, left, w->now, ask, &told));
	assert_memory_equal(&told, grant, sizeof(told));
	tally.whole++;
}

static void deliver_ask(struct world *w, const struct lease_ask *ask)
{
	struct leased before = w->key;
	const struct known *known = &w->known[ask->node];
	bool old = is_known(w, ask->node) && ask->number <= known->number;
	uint64_t left = is_pacer(w) ? 0 : left_of(w), start = start_of(w);
	struct lease_grant grant = asks(&w->key, w->now, ask);
	bool changed = memcmp(before.words, w->key.words, sizeof(before.words)) != 0;

	if (is_small(w)) {
		assert_true(!old || same_key(&before, &w->key)); /* LEASE-2 */
		assert_true(old || changed || may_be_denied(w, &before, left, ask));
	}
	if (is_noted(w, &before, ask, &grant))
		return;
	if (!changed) {
		assert_true(same_key(&before, &w->key)); /* RULE-1 */
		tally.denials += grant.units == 0;
		tally.replays += grant.units > 0;
		if (grant.units > 0)
			check_replay(w, ask, &grant);
		else if (is_small(w) && old && is_window(w)) /* again: LEASE-2 */
			assert_false(ask->number == known->number &&
			             known->charge != LIST_MOST);
		return;
	}
	tally.charged_again += ask->number < w->numbers && old;
	tally.grants++;
	tally.placed += is_pacer(w) && !slot_equal(grant.tag, no_tag);
	check_grant(w, &before, left, ask, &grant);
	check_whole(w, ask, &grant);
	charge(w, ask->node, ask->number, at_of(w), start, grant.units, grant.tag);
	note_grant(w, ask->node, ask->number, start);
	if (!is_window(w) && !is_pacer(w))
		assert_true(place_of(w, grant.tag) == tat_of(w));
}

/* What a node has out in this window. */
static uint64_t out_in_window(const struct world *w, uint64_t node)
{
	uint64_t out = 0;

	for (size_t i = 0; i < w->charge_count; i++)
		if (w->charges[i].node == node && w->charges[i].start == start_of(w))
			out += net(&w->charges[i]);
	return out;
}

/* May these units come back? */
static bool may_return(const struct world *w, const struct message *m)
{
	const struct known *known = &w->known[m->ask.node];
	const struct charge *latest = &w->charges[known->latest];

	if (!is_known(w, m->ask.node) || m->ask.number <= known->number ||
	    m->units == 0)
		return false;
	if (is_window(w))
		return m->tag.us == start_of(w) &&
		       m->units <= out_in_window(w, m->ask.node);
	if (known->charge == LIST_MOST || !slot_equal(latest->tag, m->tag) ||
	    (is_pacer(w) && m->units > latest->units))
		return false; /* of a meter's, what is too much stays spent */
	return is_pacer(w) ? latest->placed
	                   : place_of(w, m->tag) == tat_of(w) &&
	                         slot_before(slot_at(w->now), m->tag);
}

/* Then they do, but for a meter's row that may be forgotten, and places that may have passed.
 * L16 */
static bool must_return(const struct world *w, const struct message *m)
{
	return (is_small(w) || is_window(w)) && !is_pacer(w) && may_return(w, m);
}

/* Of a window any grant's will do; they are all the same. */
static void take_off(struct world *w, const struct message *m)
{
	const struct charge *latest = &w->charges[w->known[m->ask.node].latest];
	uint64_t units = m->units;

	if (!is_window(w) && !is_pacer(w) && units > net(latest))
		units = net(latest);
	for (size_t i = w->charge_count; i-- > 0 && units > 0;) {
		struct charge *charge = &w->charges[i];
		uint64_t part = net(charge) < units ? net(charge) : units;

		if (charge->node != m->ask.node || !slot_equal(charge->tag, m->tag))
			continue;
		charge->back += part;
		units -= part;
	}
	assert_int_equal(units, 0); /* LEASE-3 */
}

static void deliver_back(struct world *w, const struct message *m)
{
	struct leased before = w->key;
	bool may = may_return(w, m), must = must_return(w, m);
	struct gale_slot tag = { m->tag.us, m->keeps ? LEASE_KEEPS : m->tag.part };
	bool taken = back(&w->key, w->now, m->ask.node, m->ask.number, tag, m->units);
	uint64_t start = is_window(w) ? start_of(w) : 0;

	if (same_key(&before, &w->key)) {
		tally.refused += !taken;
		assert_false(must);
		return;
	}
	assert_true(taken);
	assert_true(may); /* LEASE-3, LEASE-5 */
	tally.backs++;
	take_off(w, m);
	w->known[m->ask.node].number = m->ask.number;
	w->known[m->ask.node].start = start;
	w->known[m->ask.node].charge = LIST_MOST;
}

static void deliver(struct world *w, const struct message *m)
{
	if (m->is_back)
		deliver_back(w, m);
	else
		deliver_ask(w, &m->ask);
}

/* ---- Worlds */

static struct gale_rule random_rule(struct chance *c)
{
	uint64_t limit = chance_log(c, 200), burst = chance_log(c, 200);
	uint64_t period = chance_one_in(c, 3) ? SEC(1) : chance_log(c, SEC(1));
	struct gale_rule rule;

	switch (chance_below(c, 6)) {
	case 0:
		return gale_fixed_window(limit, period);
	case 1:
		return gale_quota_daily(limit, 0);
	case 2:
		return gale_gcra(limit, period, burst);
	case 3:
		return gale_token_bucket(burst, limit, period);
	case 4:
		return gale_leaky_bucket(limit, period,
		                         chance_below(c, 20 * period / limit + 2));
	default:
		rule = gale_pacer(limit, period, chance_below(c, 30));
		rule.max_wait_us = chance_below(c, 20 * period / limit + 2);
		return rule;
	}
}

static void open_world(struct world *w, uint64_t seed)
{
	struct chance c = { seed };

	*w = (struct world){ .c = c };
	w->key = key_of(random_rule(&w->c));
	w->nodes = chance_between(&w->c, 1, NODES_MOST);
	w->goes_back = chance_one_in(&w->c, 2);
	w->now = T0 + chance_below(&w->c, GALE_DAYS(1));
}

static void random_ask(struct world *w, struct message *m)
{
	uint64_t most = chance_one_in(&w->c, 4) ? 300 : 20;

	m->ask.want = chance_log(&w->c, most);
	m->ask.spent = chance_one_in(&w->c, 2);
	m->ask.least =
	    chance_one_in(&w->c, 2) ? 1 : chance_between(&w->c, 1, m->ask.want);
}

/* Of something that was granted, most often the node's latest; and sometimes nonsense. */
static void random_back(struct world *w, struct message *m)
{
	const struct charge *of = &w->charges[chance_below(&w->c, w->charge_count)];

	if (w->known[m->ask.node].yes && !chance_one_in(&w->c, 4))
		of = &w->charges[w->known[m->ask.node].latest];
	m->is_back = true;
	m->tag = of->tag;
	m->units = chance_below(&w->c, of->units + 2);
	if (chance_one_in(&w->c, 3))
		m->units = net(of);
	if (chance_one_in(&w->c, 8))
		m->tag.us += chance_below(&w->c, 3);
	m->keeps = is_window(w) && chance_one_in(&w->c, 4);
}

static void random_message(struct world *w)
{
	struct message *m = &w->messages[w->message_count];

	if (w->message_count > 0 && chance_one_in(&w->c, 3)) {
		deliver(w, &w->messages[chance_below(&w->c, w->message_count)]);
		return;
	}
	w->message_count++;
	m->ask.node = chance_between(&w->c, 1, w->nodes);
	m->ask.number = ++w->numbers;
	if (w->charge_count > 0 && chance_one_in(&w->c, 3))
		random_back(w, m);
	else
		random_ask(w, m);
	if (!chance_one_in(&w->c, 8)) /* or lost, unless it comes late */
		deliver(w, m);
}

static void strict_step(struct world *w)
{
	uint64_t cost = chance_log(&w->c, 10), start = start_of(w), at = at_of(w);
	struct gale_answer answer = rule_step(&w->key.rule, w->key.words, w->now, cost);

	if (answer.verdict == GALE_ALLOW)
		charge(w, 0, 0, at, start, cost, answer.slot);
}

static void move_clock(struct world *w)
{
	uint64_t scale =
	    chance_one_in(&w->c, 6) ? 2 * window_us(w) : window_us(w) / 8 + 1;
	uint64_t by = chance_log(&w->c, scale);

	if (w->goes_back && chance_one_in(&w->c, 6)) {
		w->now -= by;
		w->went_back = true;
	} else {
		w->now += by;
	}
}

static void run_world(uint64_t seed)
{
	static struct world w;

	open_world(&w, seed);
	for (int i = 0; i < STEPS_EACH; i++) {
		if (chance_one_in(&w.c, 4))
			move_clock(&w);
		if (chance_one_in(&w.c, 8))
			strict_step(&w);
		else
			random_message(&w);
		check_world(&w);
	}
}

#define WORLDS LONG_OR_BRIEF(UINT64_C(8000), UINT64_C(1600))

static void whatever_comes_the_sums_are_right(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++)
		run_world(seed);
	/* All that should happen did. */
	assert_true(tally.grants > 12 * WORLDS);
	assert_true(tally.denials > 12 * WORLDS);
	assert_true(tally.replays > 2 * WORLDS);
	assert_true(tally.spent > WORLDS / 4);
	assert_true(tally.crowds > WORLDS);
	assert_true(tally.backs > 2 * WORLDS);
	assert_true(tally.refused > 2 * WORLDS);
	assert_true(tally.placed > 2 * WORLDS);
	assert_true(tally.charged_again > WORLDS / 80); /* LEASE-5 */
	assert_true(tally.whole > WORLDS / 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_rules_can_be_lent_from),
		cmocka_unit_test(a_window_lends_what_is_left),
		cmocka_unit_test(a_window_that_has_too_little_changes_nothing),
		cmocka_unit_test(every_unit_of_a_window_is_lent),
		cmocka_unit_test(what_was_left_of_a_window_tells_what_was_lent_whole),
		cmocka_unit_test(a_number_does_its_work_once),
		cmocka_unit_test(a_window_takes_back_only_what_is_out),
		cmocka_unit_test(others_are_those_who_may_give_back),
		cmocka_unit_test(who_gives_back_may_have_more),
		cmocka_unit_test(who_says_what_it_had_may_have_it),
		cmocka_unit_test(a_window_that_turns_forgets),
		cmocka_unit_test(a_window_with_all_back_is_as_good_as_new),
		cmocka_unit_test(a_fleet_of_any_size_gives_back),
		cmocka_unit_test(a_row_of_another_crowd_is_none),
		cmocka_unit_test(one_window_after_a_quarantine_has_a_reserve),
		cmocka_unit_test(what_was_had_of_a_window_that_is_over_is_not_claimed),
		cmocka_unit_test(eight_nodes_of_before_become_seven_and_a_crowd),
		cmocka_unit_test(a_row_apart_takes_no_more_off_than_is_used),
		cmocka_unit_test(a_window_begins_with_what_was_lent_ahead),
		cmocka_unit_test(at_most_a_sixteenth_is_lent_ahead),
		cmocka_unit_test(of_a_fixed_window_alone_units_are_lent_ahead),
		cmocka_unit_test(a_node_says_once_what_it_was_lent_ahead),
		cmocka_unit_test(the_same_number_again_says_nothing_of_units_ahead),
		cmocka_unit_test(an_ask_in_vain_says_it_too),
		cmocka_unit_test(an_ask_in_vain_says_nothing_of_a_window_that_is_over),
		cmocka_unit_test(units_ahead_go_back_into_each_window_by_itself),
		cmocka_unit_test(what_is_lent_ahead_keeps_the_key),
		cmocka_unit_test(what_may_have_been_lent_ahead_is_reserved),
		cmocka_unit_test(where_there_is_no_row_nothing_is_lent_ahead),
		cmocka_unit_test(rows_apart_say_what_they_were_lent_ahead),
		cmocka_unit_test(
		    messages_that_come_twice_give_no_other_nodes_units_back),
		cmocka_unit_test(a_meter_forgets_the_node_lent_to_longest_ago),
		cmocka_unit_test(a_meter_lends_what_has_accrued),
		cmocka_unit_test(units_faster_than_the_clock_can_be_lent),
		cmocka_unit_test(a_meter_takes_back_no_more_than_the_latest_grant),
		cmocka_unit_test(a_meter_takes_back_the_latest_grant_exactly),
		cmocka_unit_test(giving_back_does_not_go_behind_the_grant),
		cmocka_unit_test(a_tag_that_comes_again_is_another),
		cmocka_unit_test(a_strict_step_ends_what_can_be_given_back),
		cmocka_unit_test(a_meter_takes_nothing_back_that_has_died),
		cmocka_unit_test(a_pacer_lends_its_burst_at_once),
		cmocka_unit_test(a_pacer_books_places_in_a_row),
		cmocka_unit_test(a_block_ends_within_the_longest_wait),
		cmocka_unit_test(a_block_comes_back_from_its_end),
		cmocka_unit_test(the_end_of_the_queue_comes_back),
		cmocka_unit_test(a_block_that_has_begun_is_not_told_again),
		cmocka_unit_test(the_largest_numbers_fit),
		cmocka_unit_test(a_ledger_that_cannot_be_is_seen),
		cmocka_unit_test(whatever_comes_the_sums_are_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
