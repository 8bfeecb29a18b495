/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * overdue_test.c -- a store answers when patience has ended, and what it lent is of use.
 *
 * The store answers when the test says so, on a clock that stands still unless the test moves it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "face/face.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define PATIENCE GALE_MILLIS(100)
#define TAKEN_FOR GALE_SECONDS(2) /* after patience */
#define A_MOMENT GALE_MILLIS(1)
#define BACKED_OFF                                                                     \
	GALE_MILLIS(50) /* after one failure or two, a store is asked again */
#define LENT 30
#define REQUESTS 16

struct late_store {
	struct store store; /* first */
	struct store *inner;
	struct store_home *home;
	struct lend_request asked[REQUESTS]; /* what they point to is gone */
	unsigned count;
	uint64_t returned;
};

struct scene {
	struct house house;
	struct late_store late;
	struct lease_grant grant;
};

static struct scene s;

/* ---- The store ------------------------------------------------------------------- */

static void note(const struct store_client *client, const struct lend_request *requests,
                 size_t count)
{
	struct late_store *late = (struct late_store *)client->store;

	late->home = client->home;
	for (size_t i = 0; i < count; i++)
		if (requests[i].verb == LEND_BACK) {
			late->returned += requests[i].units;
		} else {
			must(late->count < REQUESTS);
			late->asked[late->count++] = requests[i];
		}
}

static enum store_result run_inside(struct store *self, struct store_op *op,
                                    bool patient)
{
	struct late_store *late = (struct late_store *)self;

	return late->inner->ops->run(late->inner, op, patient);
}

static bool sweep_inside(struct store *self)
{
	struct late_store *late = (struct late_store *)self;

	return late->inner->ops->sweep(late->inner);
}

static void close_inside(struct store *self)
{
	struct late_store *late = (struct late_store *)self;

	late->inner->ops->close(late->inner);
}

static const struct store_ops late_ops = {
	.run = run_inside, .lend = note, .sweep = sweep_inside, .close = close_inside
};

static void answers(unsigned request, enum store_result result)
{
	const struct lend_answer answer = { .number = s.late.asked[request].ask.number,
		                            .result = result,
		                            .life = 1,
		                            .grant = s.grant };

	s.late.home->on_answer(s.late.home, &answer);
}

/* ---- The scene ------------------------------------------------------------------- */

static struct house_plan plan_of(struct gale_rule rule)
{
	return (struct house_plan){ .rule = rule,
		                    .mode = GALE_LEASED,
		                    .shards = 1,
		                    .turns = true,
		                    .still = true,
		                    .lease = { .patience_us = PATIENCE,
		                               .sizing = GALE_SIZE_FIXED,
		                               .batch = LENT } };
}

static void open_scene(const struct house_plan *plan)
{
	uint64_t window_us = plan->rule.period_us;

	memset(&s, 0, sizeof(s));
	house_open(&s.house, plan);
	s.late.store.ops = &late_ops;
	s.late.inner = s.house.store->inner;
	house_put_inside(&s.house, &s.late.store);
	s.house.limiter->lender.store = &s.late.store;
	s.grant = (struct lease_grant){
		.units = LENT,
		.tag = { .us = HOUSE_NOW - HOUSE_NOW % window_us },
		.lasts_us = window_us - HOUSE_NOW % window_us,
		.left = plan->rule.limit - LENT,
	};
}

static void open_hour(void)
{
	const struct house_plan plan = plan_of(gale_fixed_window(100, GALE_HOURS(1)));

	open_scene(&plan);
}

static void close_scene(void)
{
	assert_true(house_close(&s.house));
}

static void pass(uint64_t us)
{
	test_clock_advance(&s.house.clock, us);
	while (gale_turn(s.house.runtime) > 0)
		continue;
}

static struct gale_answer ask(const char *key)
{
	struct gale_completion done;

	done.answer =
	    gale_ask(s.house.seat, s.house.limiter, key, strlen(key), 1, NULL);
	pass(0);
	if (done.answer.verdict == GALE_PENDING)
		(void)gale_seat_completions(s.house.seat, &done, 1);
	return done.answer;
}

static void is_told(const char *key, enum gale_why why)
{
	assert_string_equal(gale_why_text(ask(key).why), gale_why_text(why));
}

/* It is asked for now, and not answered. */
static void is_asked_for(const char *key)
{
	unsigned before = s.late.count;

	assert_int_equal(ask(key).verdict, GALE_PENDING);
	assert_int_equal(s.late.count, before + 1);
}

/* Those who waited. */
static void are_told(unsigned count, enum gale_why why)
{
	struct gale_completion done[REQUESTS];

	assert_int_equal(gale_seat_completions(s.house.seat, done, REQUESTS), count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(done[i].answer.why, why);
}

static void patience_ends(unsigned asks)
{
	pass(PATIENCE);
	are_told(asks, GALE_WHY_LATE);
}

static uint64_t counted(const char *name)
{
	return house_metric(&s.house, name);
}

/* ---- What comes late ------------------------------------------------------------- */

static void units_that_come_late_are_for_who_asks_next(void **state)
{
	(void)state;
	open_hour();
	is_asked_for("k");
	patience_ends(1);
	assert_int_equal(counted("asks_without_answer"), 1);
	pass(TAKEN_FOR - A_MOMENT);
	answers(0, STORE_DONE);
	for (int i = 0; i < LENT; i++)
		is_told("k", GALE_WHY_CREDIT);
	assert_int_equal(counted("answers_late_or_twice"), 0);
	assert_int_equal(counted("units_lent"), LENT);
	answers(0, STORE_DONE); /* once */
	assert_int_equal(counted("answers_late_or_twice"), 1);
	is_asked_for("k");
	close_scene();
}

static void units_that_come_later_than_that_are_spent(void **state)
{
	(void)state;
	open_hour();
	is_asked_for("k");
	patience_ends(1);
	pass(TAKEN_FOR);
	answers(0, STORE_DONE);
	assert_int_equal(counted("answers_late_or_twice"), 1);
	assert_int_equal(counted("units_lent"), 0);
	is_asked_for("k");
	close_scene();
}

static void nothing_is_taken_after_a_window(void **state)
{
	const struct house_plan plan = plan_of(gale_fixed_window(100, GALE_SECONDS(1)));

	(void)state;
	open_scene(&plan);
	is_asked_for("k");
	patience_ends(1);
	pass(GALE_SECONDS(1) - PATIENCE - A_MOMENT);
	is_told("k", GALE_WHY_DOWN);
	pass(A_MOMENT);
	is_asked_for("k");
	answers(0, STORE_DONE);
	assert_int_equal(counted("answers_late_or_twice"), 1);
	close_scene();
}

/* They died with their window. */
static void units_of_a_window_that_is_over_are_not_spent(void **state)
{
	struct house_plan plan = plan_of(gale_fixed_window(100, GALE_SECONDS(1)));

	(void)state;
	open_scene(&plan);
	s.grant.lasts_us = GALE_MILLIS(500);
	is_asked_for("k");
	patience_ends(1);
	pass(GALE_MILLIS(500));
	answers(0, STORE_DONE);
	is_asked_for("k");
	assert_int_equal(counted("leases_dead_on_arrival"), 1);
	close_scene();
}

static void a_denial_that_comes_late_is_one(void **state)
{
	(void)state;
	open_hour();
	s.grant.retry_us = s.grant.lasts_us;
	s.grant.units = s.grant.left = 0;
	is_asked_for("k");
	patience_ends(1);
	pass(A_MOMENT);
	answers(0, STORE_DONE);
	is_told("k", GALE_WHY_SPENT);
	close_scene();
}

/* ---- Meters and pacers ----------------------------------------------------------- */

/* A hundred units an hour; one accrues in 36 seconds. */
static void open_meter(void)
{
	const struct house_plan plan = plan_of(gale_gcra(100, GALE_HOURS(1), 100));

	open_scene(&plan);
	s.grant.tag = (struct gale_slot){ .us = HOUSE_NOW + LENT * GALE_SECONDS(36) };
}

static void units_of_a_meter_that_come_late_are_for_who_asks_next(void **state)
{
	(void)state;
	open_meter();
	is_asked_for("k");
	patience_ends(1);
	pass(TAKEN_FOR - A_MOMENT);
	is_told("k", GALE_WHY_DOWN); /* LESSOR-8 */
	answers(0, STORE_DONE);
	for (int i = 0; i < LENT; i++)
		is_told("k", GALE_WHY_CREDIT);
	assert_int_equal(counted("units_lent"), LENT);
	assert_int_equal(counted("answers_late_or_twice"), 0);
	is_asked_for("k");
	close_scene();
}

/* They live from when patience ended: a millisecond, and as long as the meter takes to fill. */
static void they_live_from_the_end_of_patience(void **state)
{
	const struct house_plan plan = plan_of(gale_gcra(100, GALE_MILLIS(300), 99));

	(void)state;
	open_scene(&plan);
	is_asked_for("k");
	patience_ends(1);
	pass(GALE_MILLIS(300));
	answers(0, STORE_DONE);
	is_told("k", GALE_WHY_CREDIT);
	pass(2 * A_MOMENT); /* a thread's clock may be behind by less */
	is_asked_for("k");
	answers(1, STORE_DONE);
	are_told(1, GALE_WHY_CREDIT);
	is_told("k", GALE_WHY_CREDIT);
	close_scene();
}

static void nothing_is_taken_after_a_meter_has_filled(void **state)
{
	const struct house_plan plan = plan_of(gale_gcra(100, GALE_MILLIS(300), 99));

	(void)state;
	open_scene(&plan);
	is_asked_for("k");
	patience_ends(1);
	pass(GALE_MILLIS(301));
	is_asked_for("k");
	answers(0, STORE_DONE);
	assert_int_equal(counted("answers_late_or_twice"), 1);
	assert_int_equal(counted("units_lent"), 0);
	close_scene();
}

/* The actor was away while patience ended, and units that came meanwhile have died. */
static void units_that_are_dead_by_then_are_late(void **state)
{
	const struct house_plan plan = plan_of(gale_gcra(100, GALE_MILLIS(300), 99));

	(void)state;
	open_scene(&plan);
	is_asked_for("k");
	test_clock_advance(&s.house.clock, PATIENCE + GALE_MILLIS(301));
	answers(0, STORE_DONE);
	pass(0);
	are_told(1, GALE_WHY_LATE);
	assert_int_equal(counted("units_lent"), 0);
	close_scene();
}

static void spend(int units)
{
	while (units-- > 0)
		is_told("k", GALE_WHY_CREDIT);
}

static void lease_and_spend(int times)
{
	while (times-- > 0) {
		is_asked_for("k");
		answers(s.late.count - 1, STORE_DONE);
		are_told(1, GALE_WHY_CREDIT);
		spend(LENT - 1);
	}
}

/* A period's books hold 268 units here: seven more leases after this one, and no eighth.  It is 300 ms
 * long. */
static void comes_late(uint64_t after_us)
{
	is_asked_for("k");
	patience_ends(1);
	pass(after_us - PATIENCE);
	answers(s.late.count - 1, STORE_DONE);
	spend(LENT);
	pass(BACKED_OFF);
}

/* It begins when patience ended. */
static void a_period_that_begins_late_ends_no_later(void **state)
{
	const struct house_plan plan = plan_of(gale_gcra(100, GALE_MILLIS(300), 99));

	(void)state;
	open_scene(&plan);
	comes_late(GALE_MILLIS(300));
	lease_and_spend(7);
	pass(GALE_MILLIS(50));
	lease_and_spend(8);
	assert_int_equal(counted("answers_not_believed"), 0);
	close_scene();
}

/* It is of the period in which patience ended, and begins none. */
static void what_comes_late_begins_no_period(void **state)
{
	const struct house_plan plan = plan_of(gale_gcra(100, GALE_MILLIS(300), 99));

	(void)state;
	open_scene(&plan);
	lease_and_spend(7);
	pass(GALE_MILLIS(190));
	comes_late(GALE_MILLIS(150));
	lease_and_spend(8);
	assert_int_equal(counted("answers_not_believed"), 0);
	close_scene();
}

/* The books of a period hold what the meter holds, two units, and what accrues meanwhile, with drift
 * and two patiences: 204 here.  Units beyond that were lent later, and are no lie.  LESSOR-4 */
static void what_does_not_fit_is_late_and_no_lie(void **state)
{
	(void)state;
	open_meter();
	lease_and_spend(6);
	is_asked_for("k");
	patience_ends(1);
	pass(A_MOMENT);
	answers(6, STORE_DONE);
	assert_int_equal(counted("units_lent"), 6 * LENT);
	assert_int_equal(counted("answers_not_believed"), 0);
	pass(BACKED_OFF);
	is_asked_for("k");
	answers(7, STORE_DONE);
	are_told(1, GALE_WHY_WRONG); /* in time, it is one */
	close_scene();
}

/* A block that is late is for nobody, and its places are for others. */
static void a_block_that_comes_late_goes_back(void **state)
{
	const struct house_plan plan = plan_of(gale_pacer(100, GALE_SECONDS(1), 100));

	(void)state;
	open_scene(&plan);
	s.grant.tag = (struct gale_slot){ .us = HOUSE_NOW };
	s.grant.lasts_us = GALE_MILLIS(10);
	s.grant.units = 1; /* as many as were wanted */
	is_asked_for("k");
	patience_ends(1);
	is_told("k", GALE_WHY_DOWN);
	answers(0, STORE_DONE);
	pass(0);
	assert_int_equal(s.late.returned, 1);
	answers(0, STORE_DONE); /* once */
	pass(BACKED_OFF);
	assert_int_equal(s.late.returned, 1);
	is_asked_for("k");
	patience_ends(1);
	s.grant.units = 10 * LENT;
	answers(1, STORE_DONE);
	pass(0);
	assert_int_equal(s.late.returned, 1);
	assert_int_equal(counted("answers_not_believed"), 1);
	close_scene();
}

/* The store lent them before it dropped the key. */
static void nothing_is_taken_after_a_reset(void **state)
{
	(void)state;
	open_hour();
	is_asked_for("k");
	patience_ends(1);
	must(gale_reset(s.house.seat, s.house.limiter, "k", 1, PATIENCE) ==
	     GALE_ERR_OK);
	pass(BACKED_OFF);
	answers(0, STORE_DONE);
	assert_int_equal(counted("units_lent"), 0);
	is_asked_for("k");
	close_scene();
}

/* A smaller limit is in force at once: what was lent under a larger one goes back. */
static void what_comes_under_another_limit_goes_back(void **state)
{
	const struct gale_rule less = gale_fixed_window(40, GALE_HOURS(1));

	(void)state;
	open_hour();
	is_asked_for("k");
	patience_ends(1);
	must(gale_limiter_set_rule(s.house.limiter, &less) == GALE_ERR_OK);
	pass(A_MOMENT);
	answers(0, STORE_DONE);
	pass(0);
	assert_int_equal(s.late.returned, LENT);
	close_scene();
}

/* ---- Meanwhile ------------------------------------------------------------------- */

/* No second request goes (L3), and nobody waits in vain for the first.  LESSOR-8 */
static void a_key_that_is_overdue_is_down(void **state)
{
	(void)state;
	open_hour();
	is_asked_for("k");
	patience_ends(1);
	is_told("l", GALE_WHY_DOWN);
	pass(BACKED_OFF);
	is_told("k", GALE_WHY_DOWN);
	is_asked_for("l");
	answers(1, STORE_DONE);
	are_told(1, GALE_WHY_CREDIT);
	is_told("k", GALE_WHY_DOWN);
	assert_int_equal(s.late.count, 2);
	close_scene();
}

/* It goes on being asked now and then, and no more.  (L11) */
static void a_late_answer_is_no_sign_of_health(void **state)
{
	(void)state;
	open_hour();
	is_asked_for("k");
	patience_ends(1);
	answers(0, STORE_DONE);
	is_told("k", GALE_WHY_CREDIT);
	is_told("l", GALE_WHY_DOWN);
	close_scene();
}

/* The connection is lost at last: that was one failure. */
static void an_overdue_ask_that_fails_is_over(void **state)
{
	(void)state;
	open_hour();
	is_asked_for("k");
	patience_ends(1);
	pass(BACKED_OFF);
	is_told("k", GALE_WHY_DOWN);
	answers(0, STORE_LATE);
	is_asked_for("k");
	close_scene();
}

/* LESSOR-8: those that are beyond a quarter of the keys are asked for again soon. */
static void a_part_of_the_keys_is_overdue(void **state)
{
	struct house_plan plan = plan_of(gale_fixed_window(100, GALE_HOURS(1)));

	(void)state;
	plan.node_keys = 8;
	open_scene(&plan);
	is_asked_for("a");
	is_asked_for("b");
	is_asked_for("c");
	patience_ends(3);
	pass(BACKED_OFF);
	is_told("a", GALE_WHY_DOWN);
	is_told("b", GALE_WHY_DOWN);
	is_asked_for("c");
	answers(0, STORE_DONE);
	patience_ends(1);
	answers(1, STORE_DONE);
	answers(3, STORE_DONE); /* there was room for it this time */
	is_told("c", GALE_WHY_CREDIT);
	assert_int_equal(counted("units_lent"), 3 * LENT);
	close_scene();
}

/* It gives back what comes while its runtime is open. */
static void a_limiter_that_is_closed_waits_for_what_is_overdue(void **state)
{
	(void)state;
	open_hour();
	is_asked_for("k");
	patience_ends(1);
	gale_limiter_close(s.house.limiter);
	s.house.limiter = NULL;
	pass(A_MOMENT);
	answers(0, STORE_DONE);
	pass(GALE_SECONDS(1));
	assert_int_equal(s.late.returned, LENT);
	close_scene();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_that_come_late_are_for_who_asks_next),
		cmocka_unit_test(units_that_come_later_than_that_are_spent),
		cmocka_unit_test(nothing_is_taken_after_a_window),
		cmocka_unit_test(units_of_a_window_that_is_over_are_not_spent),
		cmocka_unit_test(a_denial_that_comes_late_is_one),
		cmocka_unit_test(units_of_a_meter_that_come_late_are_for_who_asks_next),
		cmocka_unit_test(they_live_from_the_end_of_patience),
		cmocka_unit_test(nothing_is_taken_after_a_meter_has_filled),
		cmocka_unit_test(units_that_are_dead_by_then_are_late),
		cmocka_unit_test(a_period_that_begins_late_ends_no_later),
		cmocka_unit_test(what_comes_late_begins_no_period),
		cmocka_unit_test(what_does_not_fit_is_late_and_no_lie),
		cmocka_unit_test(a_block_that_comes_late_goes_back),
		cmocka_unit_test(nothing_is_taken_after_a_reset),
		cmocka_unit_test(what_comes_under_another_limit_goes_back),
		cmocka_unit_test(a_key_that_is_overdue_is_down),
		cmocka_unit_test(a_late_answer_is_no_sign_of_health),
		cmocka_unit_test(an_overdue_ask_that_fails_is_over),
		cmocka_unit_test(a_part_of_the_keys_is_overdue),
		cmocka_unit_test(a_limiter_that_is_closed_waits_for_what_is_overdue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
