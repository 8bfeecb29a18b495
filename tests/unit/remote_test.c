/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * remote_test.c -- what a server told is explained as the embedded store would answer.
 *
 * The server is sim/server.c.  Beside it, the same calls go straight through
 * the engine on words that never were bytes: both must say the same.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "stores/remote.h"
#include "sim/random.h"
#include "tests/support/customs.h"
#include "tests/support/rules.h"
#include "sim/apart.h"
#include "sim/server.h"

#define T0 (GALE_HOURS(472222) + GALE_MINUTES(1))
#define HOUR GALE_HOURS(1)
#define WORDS 512
#define STEPS 4000

/* A key at a server, and the same in the engine. */
struct scene {
	struct rule rule;
	uint64_t now;
	struct kept kept;
	struct kept before; /* where what was told points to */
	uint64_t words[WORDS];
	struct ledger ledger;
	struct aparts server_rows; /* apart */
	struct aparts rows;
	uint64_t desk_words[WORDS];
	uint8_t desk_bytes[KEPT_MOST];
};

static void scene_open(struct scene *s, struct gale_rule config)
{
	memset(s, 0, sizeof(*s));
	s->now = T0;
	assert_int_equal(rule_compile(&config, &s->rule), GALE_ERR_OK);
}

static struct remote_desk desk_of(struct scene *s)
{
	assert_true(remote_words(&s->rule, s->kept.count) <= WORDS);
	assert_true(remote_bytes_most(&s->rule, s->kept.count) <= KEPT_MOST);
	return (struct remote_desk){ s->desk_words, WORDS, s->desk_bytes };
}

static struct remote_told serve(struct scene *s, const struct remote_job *job)
{
	struct remote_told told;

	s->kept.apart = aparts_find(&s->server_rows, job->ask.node);
	s->before = s->kept;
	told = server_serve(job, s->now, &s->before, &s->kept);
	aparts_keep_of(&s->server_rows, &s->kept);
	return told;
}

static struct remote_job job_of(const struct scene *s, enum remote_verb verb)
{
	return (struct remote_job){ .verb = verb, .rule = &s->rule };
}

/* As a store does it: in one step if the server can, else read and swapped. */
static enum store_result run(struct scene *s, struct store_op *op)
{
	struct remote_job job = job_of(s, REMOTE_READ);
	struct remote_desk desk = desk_of(s);
	enum store_result result;
	struct remote_told told;

	if (op->verb == STORE_STEP && remote_can_step(&s->rule)) {
		job.verb = REMOTE_STEP;
		job.cost = op->cost;
		told = serve(s, &job);
		return remote_explain_step(&job, &told, op);
	}
	told = serve(s, &job);
	if (op->verb == STORE_PEEK || op->verb == STORE_FORECAST)
		return remote_explain_look(&job, &told, &desk, op);
	if (remote_prepare_swap(&job, &told, &desk, op, &result)) {
		struct kept was = s->before; /* as told.before points to it */

		job.was = (struct remote_bytes){ was.bytes, was.count };
		told = serve(s, &job);
		assert_int_equal(told.code, REMOTE_DONE);
	}
	return result;
}

static struct lend_answer lends(struct scene *s, struct remote_job job,
                                enum lend_verb verb)
{
	struct remote_desk desk = desk_of(s);
	struct lend_answer answer;
	struct remote_told told;

	if (verb != LEND_STATUS && remote_can_lend(&s->rule)) {
		job.verb = verb == LEND ? REMOTE_LEND : REMOTE_BACK;
		told = serve(s, &job);
		remote_explain_lend(&job, &told, &answer);
		return answer;
	}
	told = serve(s, &job);
	if (remote_prepare_loan(&job, &told, &desk, verb, &answer)) {
		struct kept was = s->before;

		job.was = (struct remote_bytes){ was.bytes, was.count };
		told = serve(s, &job);
		assert_int_equal(told.code, REMOTE_DONE);
	}
	return answer;
}

/* ---- The same as the engine ------------------------------------------------------ */

/* The server forgot it, which changes no decision; so does the engine's copy, so that
 * rows are the same, too. RULE-4 */
static void forget_if_expired(struct scene *s)
{
	if (s->kept.count > 0 && s->kept.expires_us > s->now)
		return;
	s->kept.count = 0;
	memset(s->words, 0, sizeof(s->words));
	memset(&s->ledger, 0, sizeof(s->ledger));
}

static void same_value(struct scene *s)
{
	struct value value = { .words = s->words, .room = WORDS, .ledger = s->ledger };
	static uint8_t bytes[KEPT_MOST];
	size_t count;

	if (s->kept.count == 0) {
		assert_true(rule_expires(&s->rule, s->words) <= s->now); /* RULE-4 */
		return;
	}
	count = value_encode(&s->rule, &value, bytes);
	assert_int_equal(s->kept.count, count);
	assert_memory_equal(s->kept.bytes, bytes, count);
}

static void step(struct scene *s, uint64_t cost)
{
	struct store_op op = { .verb = STORE_STEP, .rule = &s->rule, .cost = cost };
	struct gale_answer expected = rule_step(&s->rule, s->words, s->now, cost);

	assert_int_equal(run(s, &op), STORE_DONE);
	assert_memory_equal(&op.answer, &expected, sizeof(expected));
}

static void look(struct scene *s, uint64_t cost)
{
	struct store_op op = { .verb = STORE_PEEK, .rule = &s->rule, .cost = cost };
	struct gale_answer peeked = rule_peek(&s->rule, s->words, s->now);
	struct gale_outlook outlook = rule_forecast(&s->rule, s->words, s->now, cost);

	assert_int_equal(run(s, &op), STORE_DONE);
	assert_memory_equal(&op.answer, &peeked, sizeof(peeked));
	op.verb = STORE_FORECAST;
	assert_int_equal(run(s, &op), STORE_DONE);
	assert_memory_equal(&op.forecast, &outlook, sizeof(outlook));
}

static struct lease_grant lend(struct scene *s, struct lease_ask ask)
{
	struct remote_job job = job_of(s, REMOTE_READ);
	struct lease_grant expected;
	struct lend_answer answer;

	s->ledger.apart = aparts_find(&s->rows, ask.node);
	expected = lease_step(&s->rule, s->words, &s->ledger, s->now, &ask);
	aparts_keep(&s->rows, &s->ledger.apart);
	s->ledger.apart =
	    (struct lease_row){ 0 }; /* who only reads is not told of it */
	job.ask = ask;
	answer = lends(s, job, LEND);
	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.number, ask.number);
	assert_memory_equal(&answer.grant, &expected, sizeof(expected));
	answer = lends(s, job, LEND_STATUS);
	expected = lease_status(&s->rule, s->words, &s->ledger, s->now, ask.node);
	assert_memory_equal(&answer.grant, &expected, sizeof(expected));
	return answer.grant;
}

static void give_back(struct scene *s, struct lease_ask ask, struct gale_slot tag,
                      uint64_t units)
{
	struct remote_job job = job_of(s, REMOTE_READ);
	bool expected;

	s->ledger.apart = aparts_find(&s->rows, ask.node);
	expected = lease_give_back(&s->rule, s->words, &s->ledger, s->now, ask.node,
	                           ask.number, tag, units);
	aparts_keep(&s->rows, &s->ledger.apart);
	s->ledger.apart = (struct lease_row){ 0 };
	job.ask = ask;
	job.tag = tag;
	job.units = units;
	assert_int_equal(lends(s, job, LEND_BACK).result,
	                 expected ? STORE_DONE : STORE_NOT_BOOKED);
}

static void act(struct scene *s, struct chance *c, struct lease_grant *granted)
{
	struct lease_ask ask = {
		.node = chance_between(c, 1, 20),
		.number = chance_between(c, 1, 1 + (s->now - T0) / GALE_SECONDS(40)),
		.want = chance_between(c, 5, 20),
		.least = chance_between(c, 1, 5),
	};

	if (chance_one_in(c, 3))
		step(s, chance_between(c, 1, 9));
	else if (chance_one_in(c, 4))
		look(s, chance_between(c, 1, 9));
	else if (lease_possible(&s->rule) && chance_one_in(c, 2))
		granted[ask.node] = lend(s, ask);
	else if (lease_possible(&s->rule))
		give_back(s, ask, granted[ask.node].tag, chance_between(c, 1, 9));
}

static struct gale_rule some_rule(unsigned which)
{
	if (which < FIFTY_RULES)
		return fifty_rule(which).rule;
	return which == FIFTY_RULES ? custom_window(50, HOUR) : custom_gcra(5000);
}

static void every_rule_answers_as_the_engine_does(void **state)
{
	static struct scene s;

	(void)state;
	for (unsigned i = 0; i < FIFTY_RULES + 2; i++) {
		struct lease_grant granted[21] = { 0 };
		struct chance c = { i };

		scene_open(&s, some_rule(i));
		for (int n = 0; n < STEPS; n++) {
			s.now += chance_below(&c, GALE_SECONDS(90));
			forget_if_expired(&s);
			act(&s, &c, granted);
			same_value(&s);
		}
		aparts_free(&s.rows);
		aparts_free(&s.server_rows);
	}
}

/* ---- Swaps ----------------------------------------------------------------------- */

static void a_place_is_cancelled_by_a_swap(void **state)
{
	static struct scene s;
	struct store_op op = { .verb = STORE_STEP, .cost = 1 };

	(void)state;
	scene_open(&s, gale_leaky_bucket(50, HOUR, HOUR));
	op.rule = &s.rule;
	assert_int_equal(run(&s, &op), STORE_DONE);
	assert_int_equal(run(&s, &op), STORE_DONE);
	op.slot = op.answer.slot;
	op.verb = STORE_CANCEL;
	assert_int_equal(run(&s, &op), STORE_DONE);
	assert_int_equal(run(&s, &op), STORE_NOT_BOOKED);
	s.kept.count = 0;
	assert_int_equal(run(&s, &op), STORE_NOT_BOOKED);
}

static void what_was_denied_is_not_swapped(void **state)
{
	static struct scene s;
	struct store_op op = { .verb = STORE_STEP, .cost = 51 };
	struct remote_job job;
	struct remote_told told;
	struct remote_desk desk;
	enum store_result result;

	(void)state;
	scene_open(&s, gale_sliding_log(50, HOUR));
	op.rule = &s.rule;
	job = job_of(&s, REMOTE_READ);
	desk = desk_of(&s);
	told = serve(&s, &job);
	assert_false(remote_prepare_swap(&job, &told, &desk, &op, &result));
	assert_int_equal(result, STORE_DONE);
	assert_int_equal(op.answer.retry_after_us, GALE_NEVER);
	assert_int_equal(job.verb, REMOTE_READ);
}

/* ---- What cannot be explained ---------------------------------------------------- */

static void codes_are_results(void **state)
{
	static const struct {
		enum remote_code code;
		enum store_result result;
	} rows[] = {
		{ REMOTE_DONE, STORE_DONE },       { REMOTE_MOVED, STORE_BUSY },
		{ REMOTE_WAITS, STORE_WRONG },     { REMOTE_CALENDAR, STORE_BUSY },
		{ REMOTE_CHANGED, STORE_CHANGED }, { REMOTE_GARBLED, STORE_WRONG },
	};
	static struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(50, HOUR));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct remote_job job = job_of(&s, REMOTE_STEP);
		struct remote_told told = { .code = rows[i].code, .now_us = T0 };
		struct store_op op;

		job.cost = 1;
		assert_int_equal(remote_explain_step(&job, &told, &op), rows[i].result);
	}
}

static void bytes_are_believed_only_if_steps_lead_to_them(void **state)
{
	static struct scene s;
	struct store_op op = { .verb = STORE_STEP, .cost = 1 };

	(void)state;
	scene_open(&s, gale_fixed_window(50, HOUR));
	op.rule = &s.rule;
	assert_int_equal(run(&s, &op), STORE_DONE);
	s.kept.bytes[30] = 0x20; /* used: 2^53 */
	assert_int_equal(run(&s, &op), STORE_WRONG);
	s.kept.bytes[30] = 0;
	s.kept.bytes[1] = GALE_RULE_TOKEN_BUDGET;
	assert_int_equal(run(&s, &op), STORE_CHANGED);
}

/* ---- Generations ----------------------------------------------------------------- */

static void before_its_instant_nothing_is_granted(void **state)
{
	static struct scene s;
	struct remote_told told;
	struct remote_job job;
	struct store_op op;

	(void)state;
	scene_open(&s, gale_token_budget(50, HOUR));
	job = job_of(&s, REMOTE_STEP);
	job.cost = 1;
	job.not_before_us = T0 + 5;
	told = serve(&s, &job);
	assert_int_equal(told.code, REMOTE_WAITS);
	assert_int_equal(remote_explain_step(&job, &told, &op), STORE_QUARANTINE);
	assert_int_equal(op.answer.verdict, GALE_DENY);
	assert_int_equal(op.answer.why, GALE_WHY_QUARANTINE);
	assert_int_equal(op.answer.retry_after_us, 5);
	assert_int_equal(op.answer.remaining, 0);
	assert_int_equal(s.kept.count, 0);
	s.now += 5;
	told = serve(&s, &job);
	assert_int_equal(remote_explain_step(&job, &told, &op), STORE_DONE);
	assert_int_equal(op.answer.verdict, GALE_ALLOW);
}

static void before_its_instant_nothing_is_swapped(void **state)
{
	static struct scene s;
	struct store_op op = { .verb = STORE_STEP, .cost = 1 };
	struct remote_told told;
	struct remote_job job;
	struct remote_desk desk;
	enum store_result result;

	(void)state;
	scene_open(&s, gale_sliding_window(50, HOUR, 10));
	job = job_of(&s, REMOTE_READ);
	job.not_before_us = T0 + 5;
	desk = desk_of(&s);
	told = serve(&s, &job);
	assert_false(remote_prepare_swap(&job, &told, &desk, &op, &result));
	assert_int_equal(result, STORE_QUARANTINE);
	assert_int_equal(op.answer.retry_after_us, 5);
}

static void before_its_instant_nothing_is_lent(void **state)
{
	static struct scene s;
	struct lend_answer answer;
	struct remote_told told;
	struct remote_job job;

	(void)state;
	scene_open(&s, gale_fixed_window(50, HOUR));
	job = job_of(&s, REMOTE_LEND);
	job.ask = (struct lease_ask){ 1, 1, .want = 50, .least = 1 };
	job.not_before_us = T0 + 5;
	told = serve(&s, &job);
	remote_explain_lend(&job, &told, &answer);
	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.grant.units, 0);
	assert_int_equal(answer.grant.left, 0);
	assert_int_equal(answer.grant.retry_us, 5);
	assert_int_equal(answer.grant.tag.us, T0 - GALE_MINUTES(1));
	assert_int_equal(answer.grant.lasts_us, HOUR - GALE_MINUTES(1));
	job.ask = (struct lease_ask){ 1, 1, .want = 51, .least = 51 };
	remote_explain_lend(&job, &told, &answer);
	assert_int_equal(answer.grant.retry_us, GALE_NEVER);
}

/* Whatever the server says: it has only to say it too early. */
static void what_is_lent_before_its_instant_is_not_had(void **state)
{
	static struct scene s;
	struct remote_told told = { .code = REMOTE_LENT, .now_us = T0 };
	struct lend_answer answer;
	struct remote_job job;

	(void)state;
	scene_open(&s, gale_fixed_window(50, HOUR));
	told.lent = (struct window_state){ T0 - GALE_MINUTES(1), 50 };
	job = job_of(&s, REMOTE_LEND);
	job.ask = (struct lease_ask){ 1, 1, .want = 50, .least = 1 };
	remote_explain_lend(&job, &told, &answer);
	assert_int_equal(answer.grant.units, 50);
	job.not_before_us = T0 + 5;
	remote_explain_lend(&job, &told, &answer);
	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.grant.units, 0);
	assert_int_equal(answer.grant.retry_us, 5);
}

/* A server that has forgotten a window is reminded by who was told of it. L12 */
static void what_was_seen_counts(void **state)
{
	static struct scene s;
	struct lend_answer answer;
	struct remote_desk desk;
	struct remote_told told;
	struct remote_job job;

	(void)state;
	scene_open(&s, gale_quota_daily(50, 0));
	job = job_of(&s, REMOTE_READ);
	job.seen = 30;
	job.seen_in = T0 - T0 % GALE_DAYS(1);
	told = serve(&s, &job);
	desk = desk_of(&s);
	assert_true(remote_prepare_reminder(&job, &told, &desk));
	told = serve(&s, &job);
	assert_int_equal(told.code, REMOTE_DONE);
	job.verb = REMOTE_READ;
	told = serve(&s, &job);
	assert_false(remote_prepare_reminder(&job, &told, &desk)); /* it knows */
	job.verb = REMOTE_LEND;
	job.ask = (struct lease_ask){ 1, 1, .want = 50, .least = 1 };
	told = serve(&s, &job);
	remote_explain_lend(&job, &told, &answer);
	assert_int_equal(answer.grant.units, 20);
	assert_int_equal(answer.grant.left, 0);
}

/* Of another window than the one that is it says nothing. */
static void what_was_seen_of_another_day_does_not_count(void **state)
{
	static struct scene s;
	struct remote_desk desk;
	struct remote_told told;
	struct remote_job job;

	(void)state;
	scene_open(&s, gale_quota_daily(50, 0));
	job = job_of(&s, REMOTE_READ);
	job.seen = 30;
	job.seen_in = T0 - T0 % GALE_DAYS(1) - GALE_DAYS(1);
	told = serve(&s, &job);
	desk = desk_of(&s);
	assert_false(remote_prepare_reminder(&job, &told, &desk));
}

/* A folded value, too, is the same as the one that it would become. */
static void what_stays_as_it_is_is_not_swapped(void **state)
{
	static struct scene s;
	uint8_t folded[VALUE_FOLDED_MOST];
	struct lend_answer answer;
	struct remote_desk desk;
	struct remote_told told;
	struct remote_job job;

	(void)state;
	scene_open(&s, gale_fixed_window(50, GALE_HOURS(1)));
	job = job_of(&s, REMOTE_LEND);
	job.ask = (struct lease_ask){ 1, 1, .want = 5, .least = 1 };
	(void)serve(&s, &job);
	job.verb = REMOTE_READ;
	told = serve(&s, &job);
	told.before.count =
	    value_fold(&s.rule, told.before.bytes, told.before.count, folded);
	told.before.bytes = folded;
	desk = desk_of(&s);
	assert_false(
	    remote_prepare_loan(&job, &told, &desk, LEND, &answer)); /* again */
	assert_int_equal(answer.grant.units, 5);
	job.ask.number = 2;
	assert_true(remote_prepare_loan(&job, &told, &desk, LEND, &answer));
	assert_int_equal(job.was.count, told.before.count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_answers_as_the_engine_does),
		cmocka_unit_test(a_place_is_cancelled_by_a_swap),
		cmocka_unit_test(what_was_denied_is_not_swapped),
		cmocka_unit_test(codes_are_results),
		cmocka_unit_test(bytes_are_believed_only_if_steps_lead_to_them),
		cmocka_unit_test(before_its_instant_nothing_is_granted),
		cmocka_unit_test(before_its_instant_nothing_is_swapped),
		cmocka_unit_test(before_its_instant_nothing_is_lent),
		cmocka_unit_test(what_is_lent_before_its_instant_is_not_had),
		cmocka_unit_test(what_stays_as_it_is_is_not_swapped),
		cmocka_unit_test(what_was_seen_counts),
		cmocka_unit_test(what_was_seen_of_another_day_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
