/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* quarantine_test.c -- nothing is granted before all that may be out is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/rule.h"
#include "stores/quarantine.h"

#define NOON UINT64_C(1700049600000000) /* by the server's clock */
#define LONG GALE_DAYS(1)

static uint64_t until(struct gale_rule is, uint64_t since_us, uint64_t most_us)
{
	struct rule rule;

	assert_int_equal(rule_compile(&is, &rule), GALE_ERR_OK);
	return quarantine_until(&rule, since_us, most_us);
}

static void who_never_forgot_grants_at_once(void **state)
{
	(void)state;
	assert_int_equal(until(gale_fixed_window(5, GALE_MINUTES(1)), 0, LONG), 0);
}

static void a_window_turns_first(void **state)
{
	struct gale_rule rule = gale_fixed_window(5, GALE_MINUTES(1));

	(void)state;
	assert_int_equal(until(rule, NOON + GALE_SECONDS(10), LONG),
	                 NOON + GALE_MINUTES(1));
}

/* Whom it took over from may have been in the next window already. */
static void near_its_end_the_next_one_turns_first(void **state)
{
	struct gale_rule rule = gale_fixed_window(5, GALE_MINUTES(1));

	(void)state;
	assert_int_equal(until(rule, NOON - QUARANTINE_SKEW_US - 1, LONG), NOON);
	assert_int_equal(until(rule, NOON - QUARANTINE_SKEW_US, LONG),
	                 NOON + GALE_MINUTES(1));
}

static void a_burst_is_as_new_first(void **state)
{
	(void)state;
	assert_int_equal(until(gale_gcra(5, GALE_SECONDS(5), 9), NOON, LONG),
	                 NOON + GALE_SECONDS(10) + QUARANTINE_SKEW_US);
}

/* Places were booked as far ahead as anybody waits. */
static void a_queue_is_over_first(void **state)
{
	(void)state;
	assert_int_equal(
	    until(gale_leaky_bucket(10, GALE_SECONDS(1), GALE_SECONDS(30)), NOON, LONG),
	    NOON + GALE_SECONDS(30) + 100000 + QUARANTINE_SKEW_US);
}

static void nobody_is_kept_longer_than_the_most(void **state)
{
	(void)state;
	assert_int_equal(
	    until(gale_fixed_window(5, GALE_DAYS(1)), NOON, GALE_SECONDS(60)),
	    NOON + GALE_SECONDS(60));
	assert_int_equal(until(gale_leaky_bucket(10, GALE_SECONDS(1), GALE_SECONDS(30)),
	                       NOON, GALE_SECONDS(2)),
	                 NOON + GALE_SECONDS(2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_never_forgot_grants_at_once),
		cmocka_unit_test(a_window_turns_first),
		cmocka_unit_test(near_its_end_the_next_one_turns_first),
		cmocka_unit_test(a_burst_is_as_new_first),
		cmocka_unit_test(a_queue_is_over_first),
		cmocka_unit_test(nobody_is_kept_longer_than_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
