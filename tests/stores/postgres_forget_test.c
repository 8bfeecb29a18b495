/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_forget_test.c -- what a server forgets, and says so: by a crash, by its clock, by
 * a sweep.
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

/* ---- What a server forgets ------------------------------------------------------- */

static void open_again(void)
{
	postgres_line_close(&line);
	postgres_line_open(&line, postgres_server_address(server));
	line.now_us = postgres_line_number(&line, "SELECT gale.now_us()");
}

static void is_told_of_another(const struct remote_job *job)
{
	postgres_line_say(&line, job, 1);
	assert_int_equal(postgres_line_hear(&line, job, 1, told),
	                 POSTGRES_OTHER_GENERATION);
	assert_int_equal(strlen(line.generation), REMOTE_GENERATION_BYTES);
}

/* Lends of a row that is there, and of one that is not, go ways of their own. */
static void another_generation_changes_nothing(void **state)
{
	struct remote_job step = step_of("generation", 3);
	struct remote_job lend = lend_of("generation", 1, 1, 2);
	struct remote_job new = lend_of("no generation", 1, 1, 2);
	struct remote_job first = first_of("no generation", 1, 1, 2);

	(void)state;
	assert_int_equal(code_of(&step), REMOTE_DONE);
	strcpy(line.generation, "another");
	is_told_of_another(&step);
	assert_int_equal(used_of("generation"), 3);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	lend.ask.number = 2;
	strcpy(line.generation, "another");
	is_told_of_another(&lend);
	assert_int_equal(used_of("generation"), 5);
	strcpy(line.generation, "another");
	is_told_of_another(&new);
	strcpy(line.generation, "another");
	is_told_of_another(&first);
	assert_int_equal(used_of("no generation"), 0);
}

/* A pool keeps its clients' connections meanwhile. */
static void a_generation_from_before_the_server_was_started_is_none(void **state)
{
	struct remote_job step = step_of("started", 1);
	struct remote_job lend = lend_of("started", 1, 1, 2);
	struct remote_job first = first_of("started, new", 1, 2, 2);

	(void)state;
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	lend.ask.number = 2;
	postgres_line_do(&line,
	                 "UPDATE gale.birth SET born = born - interval '1 second'");
	is_told_of_another(&lend);
	postgres_line_do(&line,
	                 "UPDATE gale.birth SET born = born - interval '1 second'");
	is_told_of_another(&first);
	postgres_line_do(&line,
	                 "UPDATE gale.birth SET born = born - interval '1 second'");
	is_told_of_another(&step);
	assert_int_equal(used_of("started"), 3);
	assert_int_equal(used_of("started, new"), 0);
}

/* L12: whoever puts an older copy back, or has one take the place of what there is, makes the
 * server forget. */
static void a_generation_that_was_put_back_is_none(void **state)
{
	struct remote_job step = step_of("put back", 1);
	struct remote_job lend = lend_of("put back", 1, 1, 2);
	struct remote_job first = first_of("put back, new", 1, 1, 2);
	const char *copy =
	    "CREATE UNLOGGED TABLE public.copy (LIKE gale.birth INCLUDING ALL);"
	    " INSERT INTO public.copy SELECT * FROM gale.birth;"
	    " DROP TABLE gale.birth; ALTER TABLE public.copy RENAME TO birth;"
	    " ALTER TABLE public.birth SET SCHEMA gale";

	(void)state;
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	lend.ask.number = 2;
	postgres_line_do(&line,
	                 "CREATE TABLE public.saved AS SELECT * FROM gale.birth");
	postgres_line_do(&line, "TRUNCATE gale.keys;"
	                        " INSERT INTO gale.birth SELECT * FROM public.saved");
	is_told_of_another(&step);
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	lend.ask.number = 3;
	postgres_line_do(&line, copy);
	is_told_of_another(&lend);
	postgres_line_do(&line, copy);
	is_told_of_another(&first);
	assert_int_equal(used_of("put back, new"), 0);
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(used_of("put back"), 4);
	postgres_line_do(&line, "DROP TABLE public.saved");
}

static void what_may_forget_is_another_generation(void **state)
{
	char was[REMOTE_GENERATION_BYTES + 1];
	int pid;

	(void)state;
	strcpy(was, generation());
	open_again();
	assert_string_equal(was, generation());

	postgres_line_do(&line, "TRUNCATE gale.keys");
	assert_string_not_equal(was, generation());
	strcpy(was, generation());
	pid = (int)postgres_line_number(&line, "SELECT pg_backend_pid()");
	postgres_server_crash_process(server, pid);
	open_again();
	assert_string_not_equal(was, generation());
	strcpy(was, generation());
	postgres_server_restart(server, /* crashes= */ true);
	open_again();
	assert_string_not_equal(was, generation());
	strcpy(was, generation());
	postgres_server_restart(server, /* crashes= */ false);
	open_again();
	assert_string_not_equal(was, generation());
}

/* A server may crash more than once within a second. */
static void no_two_generations_are_the_same(void **state)
{
	static char names[300][REMOTE_GENERATION_BYTES + 1];

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		postgres_line_do(&line, "DELETE FROM gale.birth");
		strcpy(names[i], generation());
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
}

/* The job is sent while a key is used up, and the table emptied. */
static void wait_for_an_emptying(const char *isolation, struct remote_job job)
{
	struct remote_job all = step_of("emptied", LIMIT);
	enum postgres_result means;
	struct line other;
	char sql[96];

	snprintf(sql, sizeof(sql), "SET default_transaction_isolation = '%s'",
	         isolation);
	postgres_line_do(&line, sql);
	assert_int_equal(answer_of(&all).verdict, GALE_ALLOW);
	assert_int_equal(answer_of(&all).verdict, GALE_DENY);
	postgres_line_open(&other, postgres_server_address(server));
	postgres_line_do(&other, "BEGIN; TRUNCATE gale.keys");
	postgres_line_say(&line, &job, 1);
	postgres_line_until_it_waits(&line, &other);
	postgres_line_do(&other, "COMMIT");
	postgres_line_close(&other);
	means = postgres_line_hear(&line, &job, 1, told);
	while (means == POSTGRES_DEADLOCK || means == POSTGRES_TIMED_OUT) {
		postgres_line_say(&line, &job, 1);
		means = postgres_line_hear(&line, &job, 1, told);
	}
	assert_int_equal(means, POSTGRES_OTHER_GENERATION);
	postgres_line_do(&line, "RESET default_transaction_isolation");
}

/* Who waits for it to be committed, too; and who has seen what was before. */
static void an_emptying_is_told_of(void **state)
{
	(void)state;
	static const char *const isolations[] = { "read committed", "repeatable read",
		                                  "serializable" };

	for (int i = 0; i < 3; i++) {
		wait_for_an_emptying(isolations[i], step_of("emptied", LIMIT));
		wait_for_an_emptying(isolations[i], lend_of("emptied", 1, 1, LIMIT));
		wait_for_an_emptying(isolations[i], first_of("emptied", 1, 1, LIMIT));
	}
}

static void without_a_generation_nothing_is_done(void **state)
{
	struct remote_job job = step_of("unmarked", 1);

	(void)state;
	postgres_line_do(&line,
	                 "CREATE FUNCTION public.vanish() RETURNS trigger LANGUAGE"
	                 " plpgsql AS 'BEGIN RETURN NULL; END';"
	                 "CREATE TRIGGER vanishes BEFORE INSERT ON gale.birth"
	                 " FOR EACH ROW EXECUTE FUNCTION public.vanish();"
	                 "DELETE FROM gale.birth");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_DEADLOCK);
	postgres_line_do(&line, "DROP FUNCTION public.vanish() CASCADE");
	assert_int_equal(code_of(&job), REMOTE_DONE);
}

/* ---- Its clock ------------------------------------------------------------------- */

#define NOON_US UINT64_C(1893499200000000) /* in 2030 */

static void set_clock(struct line *own, uint64_t now_us)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "SET gale.test_now = %" PRIu64, now_us);
	postgres_line_do(own, sql);
	own->now_us = now_us;
}

/* That of each session is its own. */
static void begin_with_clocks(struct line *other)
{
	postgres_line_do(&line,
	                 "TRUNCATE gale.keys;"
	                 "CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint"
	                 " LANGUAGE sql VOLATILE AS"
	                 " $$SELECT current_setting('gale.test_now')::bigint$$");
	postgres_line_open(other, postgres_server_address(server));
	set_clock(other, NOON_US + GALE_HOURS(25));
	set_clock(&line, NOON_US);
}

static void end_with_clocks(struct line *other)
{
	postgres_line_close(other);
	postgres_line_install(&line);
	postgres_line_do(&line, "TRUNCATE gale.keys");
	line.now_us = postgres_line_number(&line, "SELECT gale.now_us()");
}

static enum postgres_result meaning_of(const struct remote_job *job)
{
	postgres_line_say(&line, job, 1);
	return postgres_line_hear(&line, job, 1, told);
}

static void use_up(struct remote_job *job)
{
	assert_int_equal(answer_of(job).verdict, GALE_ALLOW);
	assert_int_equal(answer_of(job).verdict, GALE_DENY);
}

static void a_clock_behind_what_was_swept_is_another_generation(void **state)
{
	struct rule rule = compiled(gale_fixed_window(3, GALE_HOURS(1)));
	struct remote_job job = step_of("idle", 3);
	char was[REMOTE_GENERATION_BYTES + 1];
	struct line other;

	(void)state;
	job.rule = &rule;
	begin_with_clocks(&other);
	use_up(&job);
	strcpy(was, line.generation);
	assert_int_equal(
	    postgres_line_number(&other, "SELECT dropped FROM gale.sweep(10)"), 1);

	set_clock(&line, NOON_US + GALE_HOURS(1)); /* it had expired */
	assert_int_equal(meaning_of(&job), POSTGRES_TOLD);
	set_clock(&line, NOON_US + GALE_HOURS(1) - 1);
	assert_int_equal(meaning_of(&job), POSTGRES_OTHER_GENERATION);
	assert_string_not_equal(line.generation, was);
	assert_int_equal(meaning_of(&job), POSTGRES_TOLD); /* once is enough */
	end_with_clocks(&other);
}

/* The same of a lend, of a row that is there and of one that was swept. */
static void a_lend_behind_what_was_swept_is_not_done(void **state)
{
	struct rule rule = compiled(gale_fixed_window(3, GALE_HOURS(1)));
	struct rule daily = compiled(gale_fixed_window(3, GALE_DAYS(1)));
	struct remote_job idle = step_of("idle", 3), there = lend_of("there", 1, 1, 1);
	struct remote_job swept = lend_of("idle", 1, 1, 1);
	struct line other;

	(void)state;
	idle.rule = swept.rule = &rule;
	there.rule = &daily;
	begin_with_clocks(&other);
	use_up(&idle);
	set_clock(&line, NOON_US + GALE_HOURS(1));
	assert_int_equal(meaning_of(&there), POSTGRES_TOLD);
	assert_int_equal(
	    postgres_line_number(&other, "SELECT dropped FROM gale.sweep(1)"), 1);
	there.ask.number = 2;
	set_clock(&line, NOON_US + GALE_HOURS(1) - 1);
	is_told_of_another(&there);
	set_clock(&line, NOON_US - 1);
	is_told_of_another(&swept);
	end_with_clocks(&other);
}

static void a_clock_behind_a_generation_begins_another(void **state)
{
	struct remote_job job = read_of("any");
	struct line other;

	(void)state;
	begin_with_clocks(&other);
	assert_int_equal(meaning_of(&job), POSTGRES_OTHER_GENERATION);
	set_clock(&line, NOON_US + 1);
	assert_int_equal(meaning_of(&job), POSTGRES_TOLD);
	set_clock(&line, NOON_US - 1);
	assert_int_equal(meaning_of(&job), POSTGRES_OTHER_GENERATION);
	line.generation[10] = 0;
	assert_int_equal(strtoull(line.generation, NULL, 16), NOON_US / 1000000 - 1);
	end_with_clocks(&other);
}

/* What was told was lent in the last microsecond of the noon's hour: it is dead when it comes. */
static void is_of_the_hour_that_is_over(const struct remote_job *job)
{
	struct lend_answer answer;

	assert_int_equal(meaning_of(job), POSTGRES_TOLD);
	remote_explain_lend(job, &told[0], &answer);
	assert_int_equal(answer.grant.units, 3);
	assert_int_equal(answer.grant.tag.us, NOON_US);
	assert_int_equal(answer.grant.lasts_us, 1);
}

/* The clock shows the window's last microsecond first, and then the next one's first. SCHEMA-2 */
static void what_is_lent_as_a_window_turns_is_of_the_one_that_is_over(void **state)
{
	struct rule rule = compiled(gale_fixed_window(9, GALE_HOURS(1)));
	struct remote_job job = lend_of("turns", 1, 1, 3);
	struct remote_job first = first_of("turns, too", 1, 3, 3);
	struct lend_answer answer;
	struct line other;
	char sql[320];

	(void)state;
	job.rule = first.rule = &rule;
	begin_with_clocks(&other);
	assert_int_equal(code_of(&job), REMOTE_LENT);
	snprintf(sql, sizeof(sql),
	         "CREATE SEQUENCE public.ticks;"
	         "CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint"
	         " LANGUAGE sql VOLATILE AS $$SELECT %llu + nextval('public.ticks')$$",
	         (unsigned long long)(NOON_US + GALE_HOURS(1) - 2));
	postgres_line_do(&line, sql);
	job.ask.number = 2;
	is_of_the_hour_that_is_over(&job);
	job.ask.number = 3;
	assert_int_equal(meaning_of(&job), POSTGRES_TOLD);
	remote_explain_lend(&job, &told[0], &answer);
	assert_int_equal(answer.grant.tag.us, NOON_US + GALE_HOURS(1));
	postgres_line_do(&line, "SELECT setval('public.ticks', 1, false)");
	is_of_the_hour_that_is_over(&first);
	assert_true(line.order.were_first);
	end_with_clocks(&other);
	postgres_line_do(&line, "DROP SEQUENCE public.ticks");
}

/* The sweep ends while somebody waits for it, whose clock is behind. */
static void sweep_meanwhile(const char *isolation, bool is_first)
{
	struct rule rule = compiled(gale_fixed_window(3, GALE_HOURS(1)));
	struct remote_job step = step_of("meanwhile", 3),
			  lend = lend_of("meanwhile", 7, 1, 3);
	enum postgres_result means;
	struct line other;
	char sql[96];

	step.rule = lend.rule = &rule;
	lend.is_first = is_first;
	begin_with_clocks(&other);
	snprintf(sql, sizeof(sql), "SET default_transaction_isolation = '%s'",
	         isolation);
	postgres_line_do(&line, sql);
	use_up(&step);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	postgres_line_do(&other, "BEGIN; DO 'BEGIN PERFORM gale.sweep(10); END'");
	postgres_line_say(&line, &lend, 1);
	postgres_line_until_it_waits(&line, &other);
	postgres_line_do(&other, "COMMIT");
	means = postgres_line_hear(&line, &lend, 1, told);
	while (means == POSTGRES_TIMED_OUT || means == POSTGRES_DEADLOCK)
		means = meaning_of(&lend);
	assert_int_equal(means, POSTGRES_OTHER_GENERATION);
	postgres_line_do(&line, "RESET default_transaction_isolation");
	end_with_clocks(&other);
}

static void what_is_swept_meanwhile_is_noticed(void **state)
{
	(void)state;
	for (int is_first = 0; is_first < 2; is_first++) {
		sweep_meanwhile("read committed", is_first);
		sweep_meanwhile("repeatable read", is_first);
	}
}

/* What was given back whole keeps the window that it was of. */
static void a_window_that_is_empty_again_does_not_go_back(void **state)
{
	struct rule rule = compiled(gale_fixed_window(3, GALE_HOURS(1)));
	struct remote_job step = step_of("empty", 3), lend = lend_of("empty", 7, 1, 3),
			  back = lend_of("empty", 7, 2, 0);
	struct line other;

	(void)state;
	step.rule = lend.rule = back.rule = &rule;
	begin_with_clocks(&other);
	use_up(&step);
	set_clock(&line, NOON_US + GALE_HOURS(1));
	assert_int_equal(code_of(&lend), REMOTE_LENT);
	back.verb = REMOTE_BACK;
	back.tag = slot_at(NOON_US + GALE_HOURS(1));
	back.units = 3;
	assert_int_equal(code_of(&back), REMOTE_DONE);
	set_clock(&line, NOON_US);
	use_up(&step);
	set_clock(&line, NOON_US + GALE_HOURS(1));
	assert_int_equal(answer_of(&step).verdict, GALE_DENY);
	end_with_clocks(&other);
}

static void a_crash_forgets_what_is_not_durable(void **state)
{
	struct remote_job job = step_of("durable", 3);

	(void)state;
	assert_int_equal(code_of(&job), REMOTE_DONE);
	postgres_server_restart(server, /* crashes= */ true);
	open_again();
	assert_int_equal(used_of("durable"), 3);
	postgres_line_do(&line, POSTGRES_SET_FAST);
	postgres_line_do(&line, POSTGRES_SET_FAST);
	assert_int_equal(used_of("durable"), 3);
	postgres_server_restart(server, /* crashes= */ true);
	open_again();
	assert_int_equal(used_of("durable"), 0);
	postgres_line_do(&line, POSTGRES_SET_DURABLE);
	assert_string_equal(postgres_line_text(&line,
	                                       "SELECT relpersistence FROM pg_class"
	                                       " WHERE oid = 'gale.keys'::regclass"),
	                    "p");
}

static void a_server_that_only_reads_says_so(void **state)
{
	struct remote_job job = step_of("read-only", 1);

	(void)state;
	postgres_line_do(&line, "SET default_transaction_read_only = on");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_READ_ONLY);
	postgres_line_do(&line, "RESET default_transaction_read_only");
	assert_int_equal(code_of(&job), REMOTE_DONE);
}

static void who_may_not_is_refused(void **state)
{
	struct remote_job job = step_of("stranger", 1);

	(void)state;
	postgres_line_do(&line, "CREATE ROLE stranger; SET ROLE stranger");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_REFUSED);
	postgres_line_do(&line, "RESET ROLE; GRANT USAGE ON SCHEMA gale TO stranger;"
	                        " SET ROLE stranger");
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_int_equal(postgres_line_try(&line, "SELECT * FROM gale.keys"),
	                 POSTGRES_REFUSED);
	assert_int_equal(postgres_line_try(&line, "SELECT * FROM gale.sweep(1)"),
	                 POSTGRES_TOLD);
	assert_int_equal(postgres_line_try(&line, POSTGRES_SET_FAST), POSTGRES_REFUSED);
	postgres_line_do(&line, "RESET ROLE");
}

/* ---- Sweeping -------------------------------------------------------------------- */

static uint64_t keys(void)
{
	return postgres_line_number(&line, "SELECT count(*) FROM gale.keys");
}

static uint64_t sweep(const char *most)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT dropped FROM gale.sweep(%s)", most);
	return postgres_line_number(&line, sql);
}

static void what_has_expired_is_swept(void **state)
{
	struct line other;

	(void)state;
	postgres_line_do(&line, "TRUNCATE gale.keys");
	postgres_line_do(
	    &line, "INSERT INTO gale.keys (expires_us, head, fingerprint, key, words)"
		   " SELECT CASE WHEN n % 10 = 0 THEN"
		   " gale.now_us() + 1000000000 ELSE n END, 1, 1,"
		   " int4send(n), '{1}' FROM generate_series(1, 20000) n");
	assert_int_equal(sweep("100"), 100);
	postgres_line_open(&other, postgres_server_address(server));
	postgres_line_do(&other,
	                 "BEGIN; SELECT FROM gale.keys WHERE key = int4send(19999)"
	                 " FOR UPDATE");
	for (int i = 0; i < 100; i++)
		sweep("1000");
	assert_int_equal(keys(), 2001);
	postgres_line_do(&other, "COMMIT");
	postgres_line_close(&other);
	for (int i = 0; i < 100; i++)
		sweep("1000");
	assert_int_equal(keys(), 2000);
}

static void what_has_just_expired_is_kept_for_a_while(void **state)
{
	(void)state;
	postgres_line_do(&line, "TRUNCATE gale.keys");
	postgres_line_do(
	    &line,
	    "INSERT INTO gale.keys (expires_us, head, fingerprint, key, words) VALUES"
	    " (gale.now_us() - 1000000, 1, 1, 'young', '{1}')");
	assert_int_equal(sweep("10"), 0);
	assert_int_equal(sweep("10, 0"), 1);
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_generation_changes_nothing),
		cmocka_unit_test(
		    a_generation_from_before_the_server_was_started_is_none),
		cmocka_unit_test(a_generation_that_was_put_back_is_none),
		cmocka_unit_test(what_may_forget_is_another_generation),
		cmocka_unit_test(no_two_generations_are_the_same),
		cmocka_unit_test(an_emptying_is_told_of),
		cmocka_unit_test(without_a_generation_nothing_is_done),
		cmocka_unit_test(a_clock_behind_what_was_swept_is_another_generation),
		cmocka_unit_test(a_lend_behind_what_was_swept_is_not_done),
		cmocka_unit_test(a_clock_behind_a_generation_begins_another),
		cmocka_unit_test(
		    what_is_lent_as_a_window_turns_is_of_the_one_that_is_over),
		cmocka_unit_test(what_is_swept_meanwhile_is_noticed),
		cmocka_unit_test(a_window_that_is_empty_again_does_not_go_back),
		cmocka_unit_test(a_crash_forgets_what_is_not_durable),
		cmocka_unit_test(a_server_that_only_reads_says_so),
		cmocka_unit_test(who_may_not_is_refused),
		cmocka_unit_test(what_has_expired_is_swept),
		cmocka_unit_test(what_has_just_expired_is_kept_for_a_while),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, scene_start, scene_stop);
}
