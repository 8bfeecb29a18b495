/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_plan_test.c -- a batch reads the rows of its keys, however many others there are.
 *
 * A session keeps its plans.  One that was made for a table of a few rows must be as good
 * when there are many: so plans are made at several sizes, and in sessions that say which
 * they like, the table grows behind the planner's back, and then the rows are counted that
 * each kind of batch looks at: also of lends that have to do with units ahead.  Nor may who chooses keys make them all look alike.  A beat of a
 * group reads as much after thousands of beats, without a vacuum, as after a hundred.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/length.h"
#include "tests/support/must.h"
#include "tests/support/postgres_line.h"
#include "tests/support/postgres_server.h"

#define JOBS 8
#define LIMIT 1000
#define MANY 5000
#define MORE LONG_OR_BRIEF(MANY, MANY / 5) /* than the plan was made for */
#define ALIKE 2000
#define DEAD 500
#define KEY_BYTES 24
#define READ_MOST (6 * JOBS) /* it is looked for where it is missing, and once more */

static struct postgres_server *server;
static struct line line;
static struct rule hourly, daily;
static struct rule fixed; /* units of its windows are lent ahead */
static struct remote_job jobs[JOBS];
static struct remote_told told[JOBS];
static char names[JOBS][KEY_BYTES + 1];
static uint64_t number; /* of the latest request */
static uint64_t fresh;  /* of the latest new key */

/* ---- Batches --------------------------------------------------------------------- */

static struct rule compiled(struct gale_rule config)
{
	struct rule rule;

	must(rule_compile(&config, &rule) == GALE_ERR_OK);
	return rule;
}

static void put_name(int i, const char *what, uint64_t which)
{
	snprintf(names[i], sizeof(names[i]), "%s%08" PRIu64, what, which);
}

static struct remote_job job_of(int i, enum remote_verb verb)
{
	return (struct remote_job){
		.verb = verb,
		.key = { (const uint8_t *)names[i], strlen(names[i]) },
		.rule = &hourly,
		.cost = 1,
		.ask = { .node = 1, .number = ++number, .want = 1, .least = 1 },
	};
}

static void lend_what_is_there(int i)
{
	put_name(i, "there", (uint64_t)i);
	jobs[i] = job_of(i, REMOTE_LEND);
}

static void lend_what_is_new(int i)
{
	put_name(i, "new", fresh++);
	jobs[i] = job_of(i, REMOTE_LEND);
}

/* More than there is. */
static void lend_a_part(int i)
{
	put_name(i, "part", (uint64_t)i);
	jobs[i] = job_of(i, REMOTE_LEND);
	jobs[i].ask.want = LIMIT + 1;
}

static void lend_by_two_rules(int i)
{
	put_name(i, i < JOBS / 2 ? "hour" : "zday", (uint64_t)i);
	jobs[i] = job_of(i, REMOTE_LEND);
	jobs[i].rule = i < JOBS / 2 ? &hourly : &daily;
}

/* Of each two jobs one wants a unit ahead, and the other says what it was lent. */
static void lend_ahead(int i)
{
	put_name(i, "ahead", (uint64_t)i);
	jobs[i] = job_of(i, REMOTE_LEND);
	jobs[i].rule = &fixed;
	jobs[i].ask.ahead = i % 2 == 0;
	jobs[i].ask.had = i % 2 == 1;
	jobs[i].ask.had_of = line.now_us - line.now_us % GALE_HOURS(1);
}

static void step(int i)
{
	put_name(i, "step", (uint64_t)i);
	jobs[i] = job_of(i, REMOTE_STEP);
}

static void read(int i)
{
	put_name(i, "there", (uint64_t)i);
	jobs[i] = job_of(i, REMOTE_READ);
}

static const struct batch {
	const char *name;
	void (*put)(int i);
} batches[] = {
	{ "lends of what is there", lend_what_is_there },
	{ "lends of what is new", lend_what_is_new },
	{ "lends of a part", lend_a_part },
	{ "lends by two rules", lend_by_two_rules },
	{ "lends ahead", lend_ahead },
	{ "steps", step },
	{ "reads", read },
};

#define BATCHES (sizeof(batches) / sizeof(batches[0]))

static void call(const struct batch *batch)
{
	for (int i = 0; i < JOBS; i++)
		batch->put(i);
	assert_int_equal(postgres_line_call(&line, jobs, JOBS, told), POSTGRES_TOLD);
	for (int i = 0; i < JOBS; i++)
		assert_in_range(told[i].code, REMOTE_DONE, REMOTE_LENT);
}

/* ---- Rows ------------------------------------------------------------------------ */

/* That this session has looked at, by any index or by none. */
static uint64_t rows_read(void)
{
	return postgres_line_number(
	    &line, "SELECT pg_stat_get_xact_tuples_returned('gale.keys'::regclass)"
		   " + (SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))"
		   " FROM pg_index WHERE indrelid = 'gale.keys'::regclass)");
}

static void put_rows(uint64_t count)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "INSERT INTO gale.keys (expires_us, head, fingerprint, key)"
	         " SELECT 0, 0, 0, convert_to('row' || gen_random_uuid(), 'UTF8')"
	         " FROM generate_series(1, %" PRIu64 ")",
	         count);
	postgres_line_do(&line, sql);
}

static void reads_its_rows_alone(const struct batch *batch)
{
	uint64_t before, after;

	postgres_line_do(&line, "BEGIN"); /* it counts until that ends */
	before = rows_read();
	call(batch);
	after = rows_read();
	postgres_line_do(&line, "COMMIT");
	print_message("%s: %" PRIu64 " rows\n", batch->name, after - before);
	assert_in_range(after - before, 0, READ_MOST);
}

/* ---- Plans ----------------------------------------------------------------------- */

/* As it is when it was just installed. */
static void forget_what_was_seen(void)
{
	postgres_line_do(&line, "DROP SCHEMA IF EXISTS gale CASCADE");
	postgres_line_install(&line);
	/* Nobody else looks: the planner is told when, here. */
	postgres_line_do(&line,
	                 "ALTER TABLE gale.keys SET (autovacuum_enabled = false)");
}

static void plan_is_good(const struct batch *batch, uint64_t rows,
                         const char *looked_at)
{
	postgres_line_do(&line, "DELETE FROM gale.keys");
	put_rows(rows);
	postgres_line_do(&line, looked_at);
	postgres_line_do(&line, "DISCARD PLANS");
	call(batch);
	put_rows(MORE);
	reads_its_rows_alone(batch);
}

static void plans_are_good(uint64_t rows, const char *looked_at)
{
	for (size_t i = 0; i < BATCHES; i++)
		plan_is_good(&batches[i], rows, looked_at);
}

static void a_plan_is_good_for_any_table(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 2, 10, 64, 1000, MANY };

	(void)state;
	forget_what_was_seen();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		print_message("of %" PRIu64 " rows\n", sizes[i]);
		plans_are_good(sizes[i], "VACUUM ANALYZE gale.keys");
	}
}

static void a_plan_is_good_for_a_table_that_nobody_has_looked_at(void **state)
{
	(void)state;
	forget_what_was_seen();
	plans_are_good(0, "SELECT");
	plans_are_good(MANY, "SELECT");
}

static void sessions_have_no_say(void **state)
{
	static const char *const says[] = {
		"SET enable_nestloop = off", "SET enable_indexscan = off",
		"SET enable_indexscan = off; SET enable_bitmapscan = off"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
		print_message("%s\n", says[i]);
		postgres_line_do(&line, says[i]);
		forget_what_was_seen();
		plans_are_good(MANY, "SELECT");
		plans_are_good(MANY, "ANALYZE gale.keys");
		postgres_line_do(&line, "RESET ALL");
	}
}

/* Versions of rows that nobody can see are not looked for in the index again and again. */
static void what_is_dead_is_soon_passed_over(void **state)
{
	struct line reader;

	(void)state;
	forget_what_was_seen();
	put_rows(MANY);
	postgres_line_open(&reader, postgres_server_address(server));
	postgres_line_do(&reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
	for (int i = 0; i < DEAD; i++)
		call(&batches[0]);
	postgres_line_do(&reader, "COMMIT");
	postgres_line_close(&reader);
	call(&batches[0]); /* it sees that they are dead, and says so in the index */
	reads_its_rows_alone(&batches[0]);
}

/* ---- Beats of groups ------------------------------------------------------------- */

#define NODES 50
#define DEAD_BEATS LONG_OR_BRIEF(3000, 1000) /* entries; a page has a hundred */
#define LOOKS 20                             /* beats that are counted */

static uint64_t beats;

/* Of one node after the other; no lease is over. */
static void beat(void)
{
	char node[16];
	struct remote_told answer;
	struct store_beat beat = {
		.node = (const uint8_t *)node,
		.node_len = (uint32_t)snprintf(node, sizeof(node), "node %" PRIu64,
		                               beats % NODES),
		.settings = { .law = GROUP_FIXED,
		              .start = 10 * NODES,
		              .floor = 1,
		              .ceiling = 10 * NODES,
		              .lease_us = GALE_SECONDS(2),
		              .rotate_us = GALE_SECONDS(8) },
		.report = { .incarnation = 1,
		            .seq = 1 + beats / NODES,
		            .weight = 1,
		            .limited = 1 },
	};
	const struct remote_job job = { .verb = REMOTE_BEAT,
		                        .key = { (const uint8_t *)"g", 1 },
		                        .beat = &beat };

	beats++;
	assert_int_equal(postgres_line_call(&line, &job, 1, &answer), POSTGRES_TOLD);
	assert_int_equal(remote_explain_beat(&answer, &beat), STORE_DONE);
	assert_int_equal(beat.grant.result, GROUP_GRANTED);
}

static void beat_often(uint64_t count)
{
	while (count-- > 0)
		beat();
}

static void begin_group(void)
{
	beats = 0;
	forget_what_was_seen();
	postgres_line_do(&line,
	                 "ALTER TABLE gale.groups SET (autovacuum_enabled = false);"
	                 "ALTER TABLE gale.members SET (autovacuum_enabled = false)");
	beat_often(2 * NODES);
}

/* Each beat moves its member to the end of members_by_beat, and leaves a dead entry where it was.  The
 * scan for those that beat longest ago begins behind these (gale.groups.first_beat). */
enum { ENTRIES, PAGES };

static uint64_t read_by_this_transaction(int what, const char *relation)
{
	char sql[160];

	snprintf(sql, sizeof(sql), "SELECT pg_stat_get_xact_%s('gale.%s'::regclass)",
	         what == ENTRIES ? "tuples_returned" : "blocks_fetched", relation);
	return postgres_line_number(&line, sql);
}

/* Of each LOOKS times. */
static uint64_t read_by_beats(int what, const char *relation)
{
	uint64_t sum = 0;

	for (int i = 0; i < LOOKS; i++) {
		uint64_t before;

		postgres_line_do(&line, "BEGIN"); /* it counts until that ends */
		before = read_by_this_transaction(what, relation);
		beat();
		sum += read_by_this_transaction(what, relation) - before;
		postgres_line_do(&line, "COMMIT");
	}
	return sum;
}

static void expect_no_more(int what, const char *relation, uint64_t before,
                           uint64_t after)
{
	print_message("%s: %d beats read %" PRIu64 " %s, and then %" PRIu64 "\n",
	              relation, LOOKS, before, what == ENTRIES ? "entries" : "pages",
	              after);
	assert_in_range(before, LOOKS, 1000 * LOOKS);
	assert_in_range(after, 0, 2 * before); /* the tree may have a level more */
}

static void what_a_beat_reads_does_not_grow_without_a_vacuum(void **state)
{
	static const char *const relations[] = { "members_by_beat", "members_pkey",
		                                 "members" };
	uint64_t pages[3], entries;

	(void)state;
	begin_group();
	entries = read_by_beats(ENTRIES, "members_by_beat");
	for (int i = 0; i < 3; i++)
		pages[i] = read_by_beats(PAGES, relations[i]);
	beat_often(DEAD_BEATS);
	expect_no_more(ENTRIES, "members_by_beat", entries,
	               read_by_beats(ENTRIES, "members_by_beat"));
	for (int i = 0; i < 3; i++)
		expect_no_more(PAGES, relations[i], pages[i],
		               read_by_beats(PAGES, relations[i]));
}

/* Somebody's long transaction: no entry can be marked as dead, and each would be followed. */
static void nor_while_nothing_may_be_cleaned_up(void **state)
{
	struct line reader;
	uint64_t entries, pages;

	(void)state;
	begin_group();
	postgres_line_open(&reader, postgres_server_address(server));
	postgres_line_do(&reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
	entries = read_by_beats(ENTRIES, "members_by_beat");
	pages = read_by_beats(PAGES, "members_by_beat");
	beat_often(DEAD_BEATS);
	expect_no_more(ENTRIES, "members_by_beat", entries,
	               read_by_beats(ENTRIES, "members_by_beat"));
	expect_no_more(PAGES, "members_by_beat", pages,
	               read_by_beats(PAGES, "members_by_beat"));
	postgres_line_do(&reader, "COMMIT");
	postgres_line_close(&reader);
}

/* ---- Keys that look alike -------------------------------------------------------- */

static uint32_t turned(uint32_t word, int bits)
{
	return word << bits | word >> (32 - bits);
}

/* What a server does with each twelve bytes (Jenkins' lookup3). */
static void mix(uint32_t s[3])
{
	static const int bits[] = { 4, 6, 8, 16, 19, 4 };

	for (int i = 0; i < 6; i++) {
		uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];

		*a -= *c;
		*a ^= turned(*c, bits[i]);
		*c += *b;
	}
}

/* Twelve bytes as they come, and twelve that lead from there to where all are led. */
static void put_alike(int i, uint64_t which)
{
	uint32_t words[KEY_BYTES / 4] = { (uint32_t)which, 1, 1 }, s[3];

	for (int w = 0; w < 3; w++)
		s[w] = 0x9e3779b9 + KEY_BYTES + 3923095 + words[w];
	mix(s);
	for (int w = 0; w < 3; w++)
		words[3 + w] = 0 - s[w];
	memcpy(names[i], words, KEY_BYTES);
}

static void call_alike(uint64_t from)
{
	for (int i = 0; i < JOBS; i++) {
		put_alike(i, from + (uint64_t)i);
		jobs[i] = job_of(i, REMOTE_LEND);
		jobs[i].key.count = KEY_BYTES;
	}
	assert_int_equal(postgres_line_call(&line, jobs, JOBS, told), POSTGRES_TOLD);
}

/* Without a salt they are. */
static void are_alike(void)
{
	const char *read =
	    "SELECT pg_stat_get_xact_tuples_returned('unsalted'::regclass)";
	uint64_t before, after;

	postgres_line_do(&line,
	                 "BEGIN; CREATE TABLE alike AS SELECT key FROM gale.keys;"
	                 "CREATE INDEX unsalted ON alike USING hash (key);"
	                 "SET LOCAL enable_seqscan = off");
	before = postgres_line_number(&line, read);
	postgres_line_do(
	    &line, "SELECT FROM alike WHERE key = (SELECT key FROM gale.keys LIMIT 1)");
	after = postgres_line_number(&line, read);
	postgres_line_do(&line, "ROLLBACK");
	assert_int_equal(after - before, ALIKE);
}

static void nobody_knows_which_keys_look_alike(void **state)
{
	uint64_t before, after;
	char salt[64];

	(void)state;
	snprintf(salt, sizeof(salt), "%s",
	         postgres_line_text(&line, "SELECT gale.salt()"));
	forget_what_was_seen();
	assert_string_not_equal(postgres_line_text(&line, "SELECT gale.salt()"), salt);
	for (uint64_t from = 0; from < ALIKE; from += JOBS)
		call_alike(from);
	are_alike();
	postgres_line_do(&line, "BEGIN");
	before = rows_read();
	call_alike(0);
	after = rows_read();
	postgres_line_do(&line, "COMMIT");
	assert_in_range(after - before, JOBS, READ_MOST);
}

/* ---- Compiling ------------------------------------------------------------------- */

static bool server_has_a_compiler_in_memory(void)
{
	char path[64], text[512];
	bool is_there = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", PQbackendPID(line.conn));
	maps = fopen(path, "r");
	must(maps);
	while (fgets(text, sizeof(text), maps))
		is_there |= strstr(text, "llvmjit") != NULL;
	fclose(maps);
	return is_there;
}

/* A table that nobody has looked at seems dear to read: each plan of it would be compiled, which
 * takes longer than anybody waits. */
static void no_plan_is_compiled(void **state)
{
	(void)state;
	forget_what_was_seen();
	put_rows(MANY);
	postgres_line_do(&line, "SET jit = on");
	postgres_line_do(&line, "SET enable_nestloop = off"); /* what is left is dear */
	postgres_line_do(&line, "SET jit_above_cost = 250");
	for (size_t i = 0; i < BATCHES; i++) {
		postgres_line_do(&line, "DISCARD PLANS");
		call(&batches[i]);
	}
	postgres_line_do(&line, "SELECT dropped, more FROM gale.sweep(1000)");
	assert_false(server_has_a_compiler_in_memory());
	postgres_line_do(&line, "SELECT count(*) FROM generate_series(1, 1000000)");
	assert_true(server_has_a_compiler_in_memory());
	postgres_line_do(&line, "RESET ALL");
}

static int start(void **state)
{
	(void)state;
	server = postgres_server_start();
	hourly = compiled(gale_quota_anchored(LIMIT, GALE_HOURS(1), 0));
	daily = compiled(gale_quota_anchored(LIMIT, GALE_HOURS(24), 0));
	fixed = compiled(gale_fixed_window(LIMIT, GALE_HOURS(1)));
	postgres_line_open(&line, postgres_server_address(server));
	postgres_line_install(&line);
	line.now_us = postgres_line_number(&line, "SELECT gale.now_us()");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	postgres_line_close(&line);
	postgres_server_stop(server);
	return 0;
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_plan_is_compiled),
		cmocka_unit_test(a_plan_is_good_for_a_table_that_nobody_has_looked_at),
		cmocka_unit_test(a_plan_is_good_for_any_table),
		cmocka_unit_test(sessions_have_no_say),
		cmocka_unit_test(what_is_dead_is_soon_passed_over),
		cmocka_unit_test(what_a_beat_reads_does_not_grow_without_a_vacuum),
		cmocka_unit_test(nor_while_nothing_may_be_cleaned_up),
		cmocka_unit_test(nobody_knows_which_keys_look_alike),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, start, stop);
}
