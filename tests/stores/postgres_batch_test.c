/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_batch_test.c -- many at one schema at once: who waits for whom, and what becomes of
 * keys that are taken to be new, and of units that are lent ahead.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <string.h>

#include "tests/support/must.h"
#include "tests/support/postgres_scene.h"

#define CROWD 200

/* It knows the generation. */
static void open_another(struct line *another)
{
	postgres_line_open(another, postgres_server_address(server));
	another->now_us = line.now_us;
	strcpy(another->generation, line.generation);
}

/* ---- Many at once ---------------------------------------------------------------- */

/* Who timed out has changed nothing, and asks again. */
static void hear_patiently(struct line *own, const struct remote_job *jobs,
                           size_t count, struct remote_told *own_told)
{
	enum postgres_result means = postgres_line_hear(own, jobs, count, own_told);

	while (means == POSTGRES_TIMED_OUT || means == POSTGRES_OTHER_GENERATION)
		means = postgres_line_call(own, jobs, count, own_told);
	assert_int_equal(means, POSTGRES_TOLD);
}

static void a_crowd_is_admitted_up_to_the_limit(void **state)
{
	static struct line crowd[CROWD];
	struct remote_job job = step_of("crowd", 1);
	uint64_t admitted = 0;

	(void)state;
	for (size_t i = 0; i < CROWD; i++) {
		open_another(&crowd[i]);
	}
	for (size_t i = 0; i < CROWD; i++)
		postgres_line_say(&crowd[i], &job, 1);
	for (size_t i = 0; i < CROWD; i++) {
		struct store_op op = { .verb = STORE_STEP };

		hear_patiently(&crowd[i], &job, 1, told);
		assert_int_equal(remote_explain_step(&job, told, &op), STORE_DONE);
		admitted += op.answer.verdict == GALE_ALLOW;
		postgres_line_close(&crowd[i]);
	}
	assert_int_equal(admitted, LIMIT);
	assert_int_equal(used_of("crowd"), LIMIT);
}

/* New keys each other round, so that nobody finds a row to wait at.  A server finds out a circle
 * before anybody's patience is at an end, and then says another thing. */
static void nobody_waits_in_a_circle(void **state)
{
	static char keys[32][24];
	struct remote_job up[32], down[32];
	struct line other;

	(void)state;
	open_another(&other);
	postgres_line_do(&line, "SET deadlock_timeout = '5ms'");
	postgres_line_do(&other, "SET deadlock_timeout = '5ms'");
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < 32; i++) {
			snprintf(keys[i], sizeof(keys[i]), "circle%d.%zu", round / 2,
			         i);
			up[i] = down[31 - i] = lend_of(keys[i], 1, 1, 1);
			down[31 - i].ask.node = 2;
			up[i].is_first = round % 4 < 2;
			down[31 - i].is_first = round % 8 < 4;
		}
		postgres_line_say(&line, up, 32);
		postgres_line_say(&other, down, 32);
		hear_patiently(&line, up, 32, told);
		hear_patiently(&other, down, 32, told);
	}
	postgres_line_do(&line, "RESET deadlock_timeout");
	assert_int_equal(used_of("circle0.0"), 2);
	postgres_line_close(&other);
}

#define MIXERS 12
#define MIXED_KEYS 16
#define MIXED_LIMIT 1000 /* reached halfway */

static char mixed_keys[MIXED_KEYS][16];

/* A lend of each key, some of them twice or with a step, so that the short way and the
 * long one meet at the same rows, in different orders. */
static size_t make_mixed(struct remote_job *jobs, const struct rule *rule, size_t who,
                         uint64_t round)
{
	size_t count = 0;

	for (size_t i = 0; i < MIXED_KEYS; i++) {
		size_t key = (i * 7 + who) % MIXED_KEYS;

		jobs[count] = lend_of(mixed_keys[key], who + 1, round, 1 + key % 3);
		jobs[count].is_first = round <= 2 || round % 8 == who % 8;
		jobs[count++].rule = rule;
	}
	if (who % 3 == 0) {
		jobs[count] = step_of(mixed_keys[round % MIXED_KEYS], 1);
		jobs[count++].rule = rule;
	}
	return count;
}

static uint64_t units_told(const struct remote_job *job, const struct remote_told *own)
{
	struct store_op op = { .verb = STORE_STEP };
	struct lend_answer answer;

	if (job->verb == REMOTE_LEND) {
		remote_explain_lend(job, own, &answer);
		assert_int_equal(answer.result, STORE_DONE);
		return answer.grant.units;
	}
	assert_int_equal(remote_explain_step(job, own, &op), STORE_DONE);
	return op.answer.verdict == GALE_ALLOW ? job->cost : 0;
}

/* What was told to have been taken is what is gone, to the unit; and nobody ever waits in
 * a circle, which a server finds out before anybody's patience is at an end. */
static void short_and_long_ways_meet(void **state)
{
	struct rule rule =
	    compiled(gale_quota_anchored(MIXED_LIMIT, GALE_SPAN_MAX_US, 0));
	static struct remote_job jobs[MIXERS][MIXED_KEYS + 1];
	static struct line mixers[MIXERS];
	uint64_t taken = 0, used = 0;
	size_t counts[MIXERS];

	(void)state;
	postgres_line_do(&line, "ALTER DATABASE postgres SET deadlock_timeout = '5ms'");
	for (size_t i = 0; i < MIXED_KEYS; i++)
		snprintf(mixed_keys[i], sizeof(mixed_keys[i]), "mixed%zu", i);
	for (size_t i = 0; i < MIXERS; i++) {
		open_another(&mixers[i]);
	}
	for (uint64_t round = 1; round <= 60; round++) {
		for (size_t i = 0; i < MIXERS; i++) {
			counts[i] = make_mixed(jobs[i], &rule, i, round);
			postgres_line_say(&mixers[i], jobs[i], counts[i]);
		}
		for (size_t i = 0; i < MIXERS; i++) {
			enum postgres_result means =
			    postgres_line_hear(&mixers[i], jobs[i], counts[i], told);

			assert_true(means == POSTGRES_TOLD ||
			            means == POSTGRES_TIMED_OUT);
			for (size_t j = 0; means == POSTGRES_TOLD && j < counts[i]; j++)
				taken += units_told(&jobs[i][j], &told[j]);
		}
	}
	for (size_t i = 0; i < MIXED_KEYS; i++)
		used += used_under(&rule, mixed_keys[i]);
	for (size_t i = 0; i < MIXERS; i++)
		postgres_line_close(&mixers[i]);
	assert_int_equal(taken, used);
	assert_true(taken > 0);
	postgres_line_do(&line, "ALTER DATABASE postgres RESET deadlock_timeout");
}

/* ---- Keys that are new ----------------------------------------------------------- */

static void is_granted(const struct remote_job *jobs, size_t count)
{
	struct lend_answer answer;

	assert_int_equal(postgres_line_call(&line, jobs, count, told), POSTGRES_TOLD);
	for (size_t i = 0; i < count; i++) {
		remote_explain_lend(&jobs[i], &told[i], &answer);
		assert_int_equal(answer.result, STORE_DONE);
		assert_int_equal(answer.grant.units, jobs[i].ask.want);
	}
}

static void what_is_put_in_is_as_if_it_had_been_looked_for(void **state)
{
	struct remote_job lends[] = { first_of("first b", 1, 1, 3),
		                      first_of("first a", 1, 2, LIMIT) };
	struct remote_job again = lend_of("first b", 1, 1, 3);
	struct remote_job more = lend_of("first b", 2, 3, 4);

	(void)state;
	is_granted(lends, 2);
	assert_true(line.order.were_first);
	assert_int_equal(used_of("first a"), LIMIT);
	is_granted(&again, 1); /* the same request is not granted twice */
	assert_int_equal(used_of("first b"), 3);
	is_granted(&more, 1);
	assert_int_equal(used_of("first b"), 7);
}

/* One that is there already, of this window or of one that is over, sends all another way; and
 * nothing is left of what was put in. */
static void what_is_not_new_is_looked_for(void **state)
{
	struct remote_job known = lend_of("known", 1, 1, 3);
	struct remote_job lends[] = { first_of("known", 1, 2, 4),
		                      first_of("a new one", 1, 3, 5) };

	(void)state;
	is_granted(&known, 1);
	is_granted(lends, 2);
	assert_true(line.order.is_first && !line.order.were_first);
	assert_int_equal(used_of("known"), 7);
	assert_int_equal(used_of("a new one"), 5);
	postgres_line_do(&line, "UPDATE gale.keys SET expires_us = 1, start_us = 0"
	                        " WHERE key = 'known'");
	lends[0].ask.number = 4;
	lends[1].ask.number = 5;
	is_granted(lends, 2);
	assert_false(line.order.were_first);
	assert_int_equal(used_of("known"), 4);
	assert_int_equal(used_of("a new one"), 10);
}

/* However busy the machine is, until the schema is installed again. */
static void let_lends_wait(void)
{
	postgres_line_do(&line, "ALTER FUNCTION gale.lend SET lock_timeout = '30s'");
}

/* ---- Windows that turn ----------------------------------------------------------- */

static const char *const end_of_turning = "SELECT count(*) FROM gale.keys WHERE key = "
					  "'turning' AND expires_us <= gale.now_us()";

/* A lend that waits for a row until its window is over: it is told, what it has got is of the
 * window that is over, and the server has nothing to complain of. */
static void a_window_that_turns_meanwhile_is_no_error(void **state)
{
	struct rule rule = compiled(gale_fixed_window(5, GALE_MILLIS(500)));
	struct remote_job mine = lend_of("turning", 1, 1, 2);
	struct remote_job theirs = lend_of("turning", 2, 2, 2);
	struct remote_job later = lend_of("turning", 2, 3, 5);
	unsigned before = postgres_server_logged(server, "ERROR:");
	struct lend_answer answer;
	uint64_t first;
	struct line other;

	(void)state;
	mine.rule = theirs.rule = later.rule = &rule;
	open_another(&other);
	let_lends_wait();
	postgres_line_do(&line, "BEGIN");
	assert_int_equal(postgres_line_call(&line, &mine, 1, told), POSTGRES_TOLD);
	remote_explain_lend(&mine, &told[0], &answer);
	first = answer.grant.tag.us;
	postgres_line_say(&other, &theirs, 1);
	postgres_line_until_it_waits(&other, &line);
	while (postgres_line_number(&line, end_of_turning) == 0)
		;
	postgres_line_do(&line, "COMMIT");
	assert_int_equal(postgres_line_hear(&other, &theirs, 1, told), POSTGRES_TOLD);
	remote_explain_lend(&theirs, &told[0], &answer);
	assert_int_equal(answer.result, STORE_DONE);
	assert_true(answer.grant.units == 0 || answer.grant.tag.us >= first);
	assert_int_equal(postgres_line_call(&other, &later, 1, told), POSTGRES_TOLD);
	remote_explain_lend(&later, &told[0], &answer);
	assert_true(answer.grant.tag.us > first);
	assert_int_equal(postgres_server_logged(server, "ERROR:"), before);
	postgres_line_close(&other);
	postgres_line_install(&line);
}

/* SCHEMA-1: who has put in a key that is new, and then waits for one that is not, lets go of both: it may
 * be held by one that waits for the first.  Nobody else would let go here, and nobody looks for
 * circles. */
static void who_guesses_wrong_lets_go(void **state)
{
	struct remote_job old = lend_of("let go, z", 1, 1, 1);
	struct remote_job mine[] = { lend_of("let go, z", 1, 2, 2),
		                     lend_of("let go, a", 1, 3, 3) };
	struct remote_job theirs[] = { first_of("let go, a", 2, 4, 4),
		                       first_of("let go, z", 2, 5, 5) };
	unsigned before = postgres_server_logged(server, "ERROR:");
	struct line other;

	(void)state;
	open_another(&other);
	is_granted(&old, 1);
	let_lends_wait();
	postgres_line_do(&line, "SET deadlock_timeout = '60s'");
	postgres_line_do(&other, "SET deadlock_timeout = '60s'");
	postgres_line_do(&line, "BEGIN");
	is_granted(&mine[0], 1);
	postgres_line_say(&other, theirs, 2);
	postgres_line_until_it_waits(&other, &line);
	is_granted(&mine[1], 1);
	postgres_line_do(&line, "COMMIT");
	assert_int_equal(postgres_line_hear(&other, theirs, 2, told), POSTGRES_TOLD);
	postgres_line_do(&line, "RESET deadlock_timeout");
	postgres_line_install(&line);
	assert_int_equal(postgres_line_number(&line,
	                                      "SELECT count(*) FROM pg_proc"
	                                      " WHERE proname = 'lend_first' AND"
	                                      " 'lock_timeout=5ms' = ANY (proconfig)"),
	                 1);
	assert_true(other.order.is_first && !other.order.were_first);
	assert_int_equal(used_of("let go, a"), 7);
	assert_int_equal(used_of("let go, z"), 8);
	assert_int_equal(postgres_server_logged(server, "ERROR:"), before);
	postgres_line_close(&other);
}

/* Whoever puts in what another one is putting in waits for that one, and gets the rest. */
static void who_puts_in_last_gets_the_rest(void **state)
{
	struct remote_job mine = first_of("at once", 1, 1, LIMIT);
	struct remote_job theirs = first_of("at once", 2, 2, LIMIT);
	struct lend_answer answer;
	struct line other;

	(void)state;
	open_another(&other);
	let_lends_wait();
	postgres_line_do(&line, "BEGIN");
	is_granted(&mine, 1);
	postgres_line_say(&other, &theirs, 1);
	postgres_line_until_it_waits(&other, &line);
	postgres_line_do(&line, "COMMIT");
	assert_int_equal(postgres_line_hear(&other, &theirs, 1, told), POSTGRES_TOLD);
	postgres_line_install(&line);
	remote_explain_lend(&theirs, &told[0], &answer);
	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.grant.units, 0);
	assert_int_equal(used_of("at once"), LIMIT);
	postgres_line_close(&other);
}

/* ---- Units ahead ----------------------------------------------------------------- */

#define SECOND GALE_SECONDS(1)
#define IN_A_SECOND 160 /* of which 10 can be lent ahead */

/* The server's clock, and a rule whose units are lent ahead. */
static struct {
	uint64_t now;
	struct rule rule;
} ahead;

static void set_clock(uint64_t now)
{
	char sql[64];

	ahead.now = now;
	snprintf(sql, sizeof(sql), "SET gale.test_now = %" PRIu64, now);
	postgres_line_do(&line, sql);
}

/* A window begins. */
static void begin_ahead(void)
{
	uint64_t now = postgres_line_number(&line, "SELECT gale.now_us()");

	ahead.rule = compiled(gale_fixed_window(IN_A_SECOND, SECOND));
	postgres_line_do(
	    &line,
	    "CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint LANGUAGE sql"
	    " VOLATILE AS $$SELECT current_setting('gale.test_now')::bigint$$");
	set_clock((now / SECOND + 2) * SECOND);
}

static void end_ahead(void)
{
	postgres_line_install(&line);
	postgres_line_do(&line, "RESET gale.test_now");
}

static struct remote_job ask_ahead(const char *key, uint64_t node, uint64_t number,
                                   uint64_t want, uint64_t units)
{
	struct remote_job job = lend_of(key, node, number, want);

	job.rule = &ahead.rule;
	job.ask.ahead = units;
	return job;
}

static struct lease_grant grant_of(const struct remote_job *job)
{
	struct lend_answer answer;

	assert_int_equal(postgres_line_call(&line, job, 1, told), POSTGRES_TOLD);
	remote_explain_lend(job, &told[0], &answer);
	assert_int_equal(answer.result, STORE_DONE);
	return answer.grant;
}

/* By a step that costs nothing it can be lent: the window begins with what was lent ahead. */
static uint64_t left_of(const char *key)
{
	struct remote_job job = ask_ahead(key, 1000, 1, IN_A_SECOND + 1, 0);

	job.ask.least = IN_A_SECOND + 1;
	return grant_of(&job).left;
}

static uint64_t expires(const char *key)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "SELECT expires_us FROM gale.keys WHERE key = '%s'",
	         key);
	return postgres_line_number(&line, sql);
}

/* LEASE-7: what is lent ahead is used in both windows; and beside it others go the short way. */
static void units_ahead_count_in_both_windows(void **state)
{
	struct remote_job jobs[] = { ask_ahead("ahead a", 1, 1, 5, 0),
		                     ask_ahead("ahead b", 1, 2, 5, 4),
		                     ask_ahead("ahead c", 1, 3, 5, 0) };
	struct remote_job more = ask_ahead("ahead b", 1, 4, 7, 0);
	struct lease_grant grant;
	uint64_t start;

	(void)state;
	begin_ahead();
	start = ahead.now;
	for (size_t i = 0; i < 3; i++)
		jobs[i].rule = more.rule = &ahead.rule;
	assert_int_equal(postgres_line_call(&line, jobs, 3, told), POSTGRES_TOLD);
	assert_int_equal(told[0].code, REMOTE_LENT);
	assert_int_equal(told[1].code, REMOTE_DONE);
	assert_int_equal(told[2].code, REMOTE_LENT);
	grant = grant_of(&jobs[1]); /* the same request again */
	assert_int_equal(grant.units, 5);
	assert_int_equal(grant.ahead, 0);
	assert_int_equal(left_of("ahead b"), IN_A_SECOND - 9);
	assert_int_equal(expires("ahead b"), start + 2 * SECOND);
	assert_int_equal(grant_of(&more).units, 7); /* the short way */
	assert_int_equal(left_of("ahead b"), IN_A_SECOND - 16);
	assert_int_equal(expires("ahead b"), start + 2 * SECOND);
	assert_int_equal(expires("ahead a"), start + SECOND);

	set_clock(start + SECOND);
	assert_int_equal(left_of("ahead b"), IN_A_SECOND - 4);
	assert_int_equal(left_of("ahead a"), IN_A_SECOND);
	more.ask.number = 5;
	assert_int_equal(grant_of(&more).units, 7);
	assert_int_equal(left_of("ahead b"), IN_A_SECOND - 11);
	assert_int_equal(expires("ahead b"), start + 2 * SECOND);
	set_clock(start + 2 * SECOND);
	assert_int_equal(left_of("ahead b"), IN_A_SECOND);
	end_ahead();
}

/* Who skips a window has lent nothing ahead of the one after it. */
static void units_ahead_end_with_their_window(void **state)
{
	struct remote_job job;

	(void)state;
	begin_ahead();
	job = ask_ahead("ahead skipped", 1, 1, 5, 4);
	assert_int_equal(grant_of(&job).ahead, 4);
	set_clock(ahead.now + 2 * SECOND);
	assert_int_equal(left_of("ahead skipped"), IN_A_SECOND);
	job.ask.number = 2;
	job.ask.ahead = 0;
	assert_int_equal(grant_of(&job).units, 5);
	assert_int_equal(left_of("ahead skipped"), IN_A_SECOND - 5);
	end_ahead();
}

/* At most a sixteenth is lent ahead, to all nodes together. */
static void a_sixteenth_is_lent_ahead(void **state)
{
	struct remote_job first, second;

	(void)state;
	begin_ahead();
	first = ask_ahead("ahead most", 1, 1, 5, 6);
	second = ask_ahead("ahead most", 2, 2, 5, 6);
	assert_int_equal(grant_of(&first).ahead, 6);
	assert_int_equal(grant_of(&second).ahead, 4);
	set_clock(ahead.now + SECOND);
	assert_int_equal(left_of("ahead most"), IN_A_SECOND - 10);
	end_ahead();
}

/* LEASE-8, LEASE-3: a node says once what it was lent ahead, and gives it back once. */
static void units_ahead_go_back_once(void **state)
{
	struct remote_job job, other, back;

	(void)state;
	begin_ahead();
	job = ask_ahead("ahead back", 1, 1, 5, 4);
	assert_int_equal(grant_of(&job).ahead, 4);
	set_clock(ahead.now + SECOND);
	job.ask = (struct lease_ask){ 1, 2, 3, 1, .had = 3, .had_of = ahead.now };
	assert_int_equal(grant_of(&job).had, 3);
	job.ask.number = 3; /* it has a row */
	assert_int_equal(grant_of(&job).had, 0);
	other = job;
	other.ask.node = 2; /* more than the fourth nobody else can have had */
	assert_int_equal(grant_of(&other).had, 1);
	assert_int_equal(left_of("ahead back"), IN_A_SECOND - 4 - 3 * 3);

	back = job;
	back.verb = REMOTE_BACK;
	back.ask.number = 4;
	back.tag = slot_at(ahead.now);
	back.units = 9; /* the three, and twice three */
	for (int i = 0; i < 2; i++) {
		struct lend_answer answer;

		assert_int_equal(code_of(&back), REMOTE_DONE);
		remote_explain_lend(&back, &told[0], &answer);
		assert_int_equal(answer.result, STORE_DONE);
		assert_int_equal(left_of("ahead back"), IN_A_SECOND - 4);
	}
	end_ahead();
}

/* A key that is reset is as new, and what was lent ahead before is nobody's. */
static void a_reset_forgets_what_was_lent_ahead(void **state)
{
	struct remote_job job, drop;

	(void)state;
	begin_ahead();
	job = ask_ahead("ahead reset", 1, 1, 5, 4);
	assert_int_equal(grant_of(&job).ahead, 4);
	drop = job;
	drop.verb = REMOTE_DROP;
	assert_int_equal(code_of(&drop), REMOTE_DONE);
	assert_int_equal(left_of("ahead reset"), IN_A_SECOND);
	set_clock(ahead.now + SECOND);
	assert_int_equal(left_of("ahead reset"), IN_A_SECOND);
	job.ask = (struct lease_ask){ 1, 2, 3, 1, .had = 4, .had_of = ahead.now };
	assert_int_equal(grant_of(&job).had, 0);
	assert_int_equal(left_of("ahead reset"), IN_A_SECOND - 3);
	end_ahead();
}

/* L12: the first window after a quarantine begins with what may have been lent ahead of it, of a key that
 * is there and of one that is not; the short way as well, and a step. */
static void what_was_forgotten_is_reserved(void **state)
{
	struct remote_job jobs[2], step;
	struct lend_answer answer;

	(void)state;
	begin_ahead();
	jobs[0] = ask_ahead("ahead forgot a", 1, 1, IN_A_SECOND, 0);
	jobs[1] = ask_ahead("ahead forgot b", 1, 2, IN_A_SECOND, 0);
	for (size_t i = 0; i < 2; i++) {
		jobs[i].is_first = true;
		jobs[i].not_before_us = jobs[i].reserve_from_us = ahead.now - 1;
	}
	assert_int_equal(postgres_line_call(&line, jobs, 2, told), POSTGRES_TOLD);
	for (size_t i = 0; i < 2; i++) {
		remote_explain_lend(&jobs[i], &told[i], &answer);
		assert_int_equal(answer.result, STORE_DONE);
		assert_int_equal(answer.grant.units, IN_A_SECOND - 10);
	}
	step = jobs[0];
	step.verb = REMOTE_STEP;
	step.key = bytes_of("ahead forgot c");
	step.cost = IN_A_SECOND - 9;
	assert_int_equal(answer_of(&step).verdict, GALE_DENY);
	step.cost = IN_A_SECOND - 10;
	assert_int_equal(answer_of(&step).verdict, GALE_ALLOW);
	set_clock(ahead.now + SECOND); /* and no other */
	jobs[0].ask.number = 3;
	assert_int_equal(grant_of(&jobs[0]).units, IN_A_SECOND);
	end_ahead();
}

static void who_waits_too_long_is_told(void **state)
{
	struct remote_job job = step_of("held", 1);
	unsigned before = postgres_server_logged(server, "ERROR:");
	struct line other;

	(void)state;
	open_another(&other);
	postgres_line_do(&other, "BEGIN");
	assert_int_equal(postgres_line_call(&other, &job, 1, told), POSTGRES_TOLD);
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_TIMED_OUT);
	assert_int_equal(postgres_server_logged(server, "ERROR:"), before + 1);
	job = read_of("held");
	assert_int_equal(postgres_line_call(&line, &job, 1, told),
	                 POSTGRES_TOLD); /* needs no lock */
	postgres_line_do(&other, "ROLLBACK");
	postgres_line_close(&other);
	assert_int_equal(used_of("held"), 0);
}

static void nothing_stays_in_the_session(void **state)
{
	struct remote_job job = step_of("session", 1);

	(void)state;
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_int_equal(postgres_line_number(&line, "SELECT count(*) FROM pg_locks"
	                                             " WHERE locktype = 'advisory'"),
	                 0);
	assert_int_equal(
	    postgres_line_number(&line, "SELECT count(*) FROM pg_prepared_statements"),
	    0);
	assert_string_equal(postgres_line_text(&line, "SHOW lock_timeout"), "0");
	assert_string_equal(postgres_line_text(&line, "SHOW enable_seqscan"), "on");
}

static void a_hot_key_stays_on_few_pages(void **state)
{
	struct rule fast = compiled(gale_gcra(1000000, GALE_SECONDS(1), 1000));
	struct remote_job job = step_of("hot", 1);

	(void)state;
	postgres_line_do(&line, "TRUNCATE gale.keys");
	job.rule = &fast;
	for (int i = 0; i < 3000; i++)
		assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_true(postgres_line_number(
			&line, "SELECT pg_relation_size('gale.keys')") <= 8 * 8192);
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crowd_is_admitted_up_to_the_limit),
		cmocka_unit_test(nobody_waits_in_a_circle),
		cmocka_unit_test(short_and_long_ways_meet),
		cmocka_unit_test(what_is_put_in_is_as_if_it_had_been_looked_for),
		cmocka_unit_test(what_is_not_new_is_looked_for),
		cmocka_unit_test(a_window_that_turns_meanwhile_is_no_error),
		cmocka_unit_test(who_guesses_wrong_lets_go),
		cmocka_unit_test(who_puts_in_last_gets_the_rest),
		cmocka_unit_test(units_ahead_count_in_both_windows),
		cmocka_unit_test(units_ahead_end_with_their_window),
		cmocka_unit_test(a_sixteenth_is_lent_ahead),
		cmocka_unit_test(units_ahead_go_back_once),
		cmocka_unit_test(a_reset_forgets_what_was_lent_ahead),
		cmocka_unit_test(what_was_forgotten_is_reserved),
		cmocka_unit_test(who_waits_too_long_is_told),
		cmocka_unit_test(nothing_stays_in_the_session),
		cmocka_unit_test(a_hot_key_stays_on_few_pages),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, scene_start, scene_stop);
}
