/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * answers_test.c -- what an answer says for each reason under each policy, and as HTTP.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include <gale/http.h>

#include "engine/check.h"
#include "face/face.h"
#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/must.h"
#include "tests/support/whys.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LIMIT 5
#define SHARE 1

static const enum gale_on_outage policies[] = {
	GALE_ON_OUTAGE_DENY,
	GALE_ON_OUTAGE_ALLOW,
	GALE_ON_OUTAGE_SHARE,
};

static struct house_plan plan_of(enum gale_on_outage policy)
{
	return (struct house_plan){ .rule = gale_fixed_window(LIMIT, GALE_HOURS(1)),
		                    .on_outage = policy,
		                    .outage_share = SHARE };
}

static void expect(struct gale_answer answer, enum gale_why why,
                   enum gale_verdict verdict, uint64_t limit, int status)
{
	assert_string_equal(gale_why_text(answer.why), gale_why_text(why));
	assert_int_equal(answer.verdict, verdict);
	assert_int_equal(answer.limit, limit);
	assert_int_equal(gale_http_status(&answer), status);
}

/* ---- What a store may come to ---------------------------------------------------- */

/* One that comes to the same result whatever it is asked. */
struct stuck_store {
	struct store store;
	struct store *inner;
	enum store_result result;
};

static enum store_result stuck_run(struct store *self, struct store_op *op,
                                   bool patient)
{
	(void)patient;
	op->answer = (struct gale_answer){ 0 };
	return ((struct stuck_store *)self)->result;
}

static bool stuck_sweep(struct store *self)
{
	(void)self;
	return true;
}

static void stuck_close(struct store *self)
{
	struct stuck_store *stuck = (struct stuck_store *)self;

	stuck->inner->ops->close(stuck->inner);
}

static const struct store_ops stuck_ops = { .run = stuck_run,
	                                    .sweep = stuck_sweep,
	                                    .close = stuck_close };

static const struct result_row {
	enum store_result result;
	enum gale_why why;
	bool is_outage;
} rows[] = {
	{ STORE_BUSY, GALE_WHY_BUSY, true },
	{ STORE_LATE, GALE_WHY_LATE, true },
	{ STORE_FULL, GALE_WHY_FULL, true },
	{ STORE_NO_MEMORY, GALE_WHY_MEMORY, true },
	{ STORE_DOWN, GALE_WHY_DOWN, true },
	{ STORE_WRONG, GALE_WHY_WRONG, true },
	{ STORE_CROWDED, GALE_WHY_CROWDED, true },
	{ STORE_QUARANTINE, GALE_WHY_QUARANTINE, true },
	{ STORE_CHANGED, GALE_WHY_CHANGED, false },
	{ STORE_BROKEN, GALE_WHY_BROKEN, false },
};

static void expect_decided_by(enum gale_on_outage policy, const struct result_row *row,
                              struct house *h)
{
	switch (policy) {
	case GALE_ON_OUTAGE_ALLOW:
		expect(house_ask(h, "k"), row->why, GALE_ALLOW, LIMIT, 200);
		break;
	case GALE_ON_OUTAGE_SHARE:
		expect(house_ask(h, "k"), row->why, GALE_ALLOW, SHARE, 200);
		expect(house_ask(h, "k"), row->why, GALE_DENY, SHARE, 503);
		break;
	case GALE_ON_OUTAGE_DENY:
		expect(house_ask(h, "k"), row->why, GALE_DENY, LIMIT, 503);
		break;
	}
}

static void expect_row(const struct result_row *row, enum gale_on_outage policy)
{
	struct house_plan plan = plan_of(policy);
	struct stuck_store stuck = { .store = { .ops = &stuck_ops },
		                     .result = row->result };
	struct house h;

	house_open(&h, &plan);
	stuck.inner = h.store->inner;
	h.limiter->lender.store = &stuck.store;
	house_put_inside(&h, &stuck.store);
	assert_int_equal(gale_why_is_outage(row->why), row->is_outage);
	if (row->is_outage)
		expect_decided_by(policy, row, &h);
	else
		expect(house_ask(&h, "k"), row->why, GALE_DENY, LIMIT, 503);
	assert_true(house_close(&h));
}

static void an_outage_is_for_the_policy_and_a_mistake_is_denied(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		for (size_t j = 0; j < COUNT(policies); j++)
			expect_row(&rows[i], policies[j]);
}

/* ---- What is refused before a store is asked ------------------------------------- */

static void a_bad_ask_is_denied_under_each_policy(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(policies); i++) {
		struct house_plan plan = plan_of(policies[i]);
		struct gale_key *key;
		struct house h;

		house_open(&h, &plan);
		must(gale_key_open(h.seat, h.limiter, "k", 1, &key) == GALE_ERR_OK);
		expect(gale_ask(h.seat, h.limiter, "k", 1, 0, NULL), GALE_WHY_BAD_ASK,
		       GALE_DENY, LIMIT, 503);
		expect(gale_ask_key(key, 0, NULL), GALE_WHY_BAD_ASK, GALE_DENY, LIMIT,
		       503);
		expect(gale_ask(h.seat, NULL, "k", 1, 1, NULL), GALE_WHY_BAD_ASK,
		       GALE_DENY, 0, 503);
		expect(gale_ask(NULL, h.limiter, "k", 1, 1, NULL), GALE_WHY_BAD_ASK,
		       GALE_DENY, 0, 503);
		gale_key_close(key);
		assert_true(house_close(&h));
	}
}

static void what_is_closed_is_denied_under_each_policy(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(policies); i++) {
		struct house_plan plan = plan_of(policies[i]);
		struct gale_limiter *closed;
		struct house h;

		house_open(&h, &plan);
		closed = house_limiter(&h, "closed", plan.rule);
		gale_limiter_close(closed);
		expect(gale_ask(h.seat, closed, "k", 1, 1, NULL), GALE_WHY_CLOSED,
		       GALE_DENY, 0, 503);
		gale_runtime_close(h.runtime);
		expect(house_ask(&h, "k"), GALE_WHY_CLOSED, GALE_DENY, LIMIT, 503);
		h.runtime = NULL;
		assert_true(house_close(&h));
	}
}

static bool is_denied(struct house *h, enum gale_why why)
{
	struct gale_answer answer = house_ask(h, "k");

	return answer.verdict == GALE_DENY && answer.why == why &&
	       answer.limit == LIMIT && gale_http_status(&answer) == 503;
}

static int after_fork(void *h)
{
	return is_denied(h, GALE_WHY_FORKED) ? 0 : 1;
}

static struct house *fenced;

/* Within the hook everything is fenced, and nothing has ended yet. */
static void ask_when_fenced(const char *what)
{
	(void)what;
	_Exit(is_denied(fenced, GALE_WHY_FENCED) ? 0 : 1);
}

static int after_panic(void *h)
{
	struct house_plan plan = plan_of(((struct house *)h)->limiter->on_outage);
	static struct house own;

	house_open(&own, &plan);
	fenced = &own;
	gale_on_panic(ask_when_fenced);
	gale_panic("answers_test.c", 0, "a test");
}

static void what_is_forked_or_fenced_is_denied_under_each_policy(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(policies); i++) {
		struct house_plan plan = plan_of(policies[i]);
		struct house h;

		house_open(&h, &plan);
		assert_int_equal(child_run(after_fork, &h), 0);
		assert_int_equal(child_run(after_panic, &h), 0);
		assert_true(house_close(&h));
	}
}

/* ---- What the rule decides ------------------------------------------------------- */

static void a_pending_answer_says_that_it_is_and_its_limit(void **state)
{
	struct house_plan plan = plan_of(GALE_ON_OUTAGE_ALLOW);
	struct gale_question question = { "l", 1, 1, NULL };
	struct gale_answer answer;
	struct gale_key *key;
	struct house h;

	(void)state;
	plan.mode = GALE_LEASED;
	plan.turns = true; /* nobody takes any */
	house_open(&h, &plan);
	must(gale_key_open(h.seat, h.limiter, "m", 1, &key) == GALE_ERR_OK);
	expect(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL), GALE_WHY_ASKED,
	       GALE_PENDING, LIMIT, 0);
	gale_ask_many(h.seat, h.limiter, &question, 1, &answer);
	expect(answer, GALE_WHY_ASKED, GALE_PENDING, LIMIT, 0);
	expect(gale_ask_key(key, 1, NULL), GALE_WHY_ASKED, GALE_PENDING, LIMIT, 0);
	gale_key_close(key);
	assert_true(house_close(&h));
}

static void what_the_rule_denies_is_429(void **state)
{
	struct house_plan plan = plan_of(GALE_ON_OUTAGE_ALLOW);
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	expect(house_ask(&h, "k"), GALE_WHY_RULE, GALE_ALLOW, LIMIT, 200);
	expect(ask_settled(h.seat, h.limiter, "k", 1, 5), GALE_WHY_RULE, GALE_DENY,
	       LIMIT, 429);
	answer = ask_settled(h.seat, h.limiter, "k", 1, 6);
	expect(answer, GALE_WHY_RULE, GALE_DENY, LIMIT, 429);
	assert_int_equal(answer.retry_after_us, GALE_NEVER);
	assert_true(house_close(&h));
}

static void what_a_node_denies_by_itself_is_429(void **state)
{
	struct house_plan plan = plan_of(GALE_ON_OUTAGE_ALLOW);
	struct gale_answer answer;
	struct house h;

	(void)state;
	plan.mode = GALE_LEASED;
	house_open(&h, &plan);
	for (int i = 0; i < LIMIT; i++)
		expect(house_wait(&h, "k"), GALE_WHY_CREDIT, GALE_ALLOW, LIMIT, 200);
	expect(house_wait(&h, "k"), GALE_WHY_SPENT, GALE_DENY, LIMIT, 429);
	answer = gale_wait(h.seat, h.limiter, "k", 1, LIMIT + 1, GALE_SECONDS(30));
	expect(answer, GALE_WHY_TOO_MUCH, GALE_DENY, LIMIT, 429);
	assert_int_equal(answer.retry_after_us, GALE_NEVER);
	assert_true(house_close(&h));
}

/* ---- All of them ----------------------------------------------------------------- */

static bool is_in_rows(enum gale_why why)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].why == why)
			return true;
	return false;
}

static void only_what_a_store_comes_to_is_an_outage(void **state)
{
	(void)state;
	for (int why = 0; why < WHYS; why++)
		if (!is_in_rows((enum gale_why)why))
			assert_false(gale_why_is_outage((enum gale_why)why));
	assert_false(gale_why_is_outage((enum gale_why)WHYS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_outage_is_for_the_policy_and_a_mistake_is_denied),
		cmocka_unit_test(a_bad_ask_is_denied_under_each_policy),
		cmocka_unit_test(what_is_closed_is_denied_under_each_policy),
		cmocka_unit_test(what_is_forked_or_fenced_is_denied_under_each_policy),
		cmocka_unit_test(a_pending_answer_says_that_it_is_and_its_limit),
		cmocka_unit_test(what_the_rule_denies_is_429),
		cmocka_unit_test(what_a_node_denies_by_itself_is_429),
		cmocka_unit_test(only_what_a_store_comes_to_is_an_outage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
