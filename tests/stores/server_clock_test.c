/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * server_clock_test.c -- a server's clock steps forward and back, under load and in silence.
 *
 * The clock of a real Redis or PostgreSQL stands still, and is set by hours, days and weeks
 * and by exactly one window, while two nodes ask for units of every rule in every mode.
 * Because it stands still it is known which windows the server can have opened: one for
 * each that a clock which is later than all before it lies in.  Each admits at most its
 * limit, however often the clock comes back to it.                            (L1, L9)
 * But a Redis drops what has expired without a word: if its clock goes ahead and comes back
 * while nobody asks, nobody can tell (spec/decisions/0010).
 *
 *     admitted so far <= limit * windows opened so far
 *
 * What a node may rely on is its own clock, which runs along when the server's clock has a
 * reason to go, and does not when that is set.  Where it does not, nodes believe nothing for
 * a minute (JUMP-3): their clock is moved on by that.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <gale/gale.h>

#include "engine/window.h"
#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "sim/random.h"
#include "tests/support/both_servers.h"
#include "tests/support/fake_time.h"
#include "tests/support/late.h"
#include "tests/support/length.h"
#include "tests/support/must.h"
#include "tests/support/rules.h"
#include "tests/support/whys.h"

#define MODES 3
#define ROWS_MOST (MODES * FIFTY_RULES)
#define NODES 2
#define ASKERS 2 /* of a node */
/* Of a row, after a step: one at least of an ask that began after it. */
#define ANSWERS LONG_OR_BRIEF(2 * NODES * ASKERS, NODES * ASKERS + 1)
#define HOUR_S INT64_C(3600)
#define DAY_S (24 * HOUR_S)
#define NOON_S (INT64_C(1893456000) + 12 * HOUR_S) /* of the first day of 2030 */
#define WITHIN GALE_SECONDS(2)
#define PATIENCE GALE_SECONDS(1)
#define PATIENCE_NS UINT64_C(150000000000)
#define DOUBT_US GALE_SECONDS(61)    /* what a jump is doubted for at most: JUMP-3 */
#define DOUBT_NS UINT64_C(500000000) /* who is behind for so long is in doubt */
#define NAME_MOST 32

/* One rule in one mode: a limiter of each node, all of one name. */
struct row {
	char name[NAME_MOST];
	struct gale_rule rule;
	enum gale_mode mode;
	struct gale_limiter *limiters[NODES];
	struct rule compiled;
	uint64_t opened; /* windows, as the clock was set */
	uint64_t start_us;
	uint64_t seen_us; /* where a window began, as the server says */
	_Atomic uint64_t admitted;
	_Atomic uint64_t
	    lost; /* nobody waited any more when the node's clock went on */
	_Atomic uint64_t answered;
	_Atomic uint64_t by_why[WHYS];
};

/* Time of nodes: it runs, and is moved on. */
struct node_clock {
	struct gale_clock clock; /* first */
	_Atomic uint64_t ahead_us;
};

struct asker {
	pthread_t thread;
	int node;
};

struct scene {
	struct fake_time time;
	int which; /* of both servers */
	uint64_t quarantine_us;
	struct node_clock clock;
	struct gale_runtime *runtimes[NODES];
	struct gale_store *stores[NODES];
	struct row rows[ROWS_MOST];
	int row_count;
	struct asker askers[NODES * ASKERS];
	_Atomic bool stopping;
	bool asking;
};

static struct scene s;
static struct both_servers both;

static void nap_us(long us)
{
	const struct timespec moment = { .tv_nsec = us * 1000 };

	nanosleep(&moment, NULL);
}

static void set_clock(int64_t now_s)
{
	fake_time_set(&s.time, (uint64_t)now_s * 1000000);
}

/* ---- Nodes ----------------------------------------------------------------------- */

static uint64_t now_us(struct gale_clock *self)
{
	const struct node_clock *clock = (struct node_clock *)self;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 +
	       load_relaxed(&clock->ahead_us);
}

static uint64_t boot_ns(struct gale_clock *self)
{
	const struct node_clock *clock = (struct node_clock *)self;

	return patience_now_ns() + 1000 * load_relaxed(&clock->ahead_us);
}

static void open_node(int node)
{
	struct gale_config config = { .shards = 1, .clock = &s.clock.clock };
	struct gale_store_config store = { .url = both.urls[s.which],
		                           .quarantine_us = s.quarantine_us };

	must(gale_runtime_open(&config, &s.runtimes[node]) == GALE_ERR_OK);
	must(gale_store_open(s.runtimes[node], &store, &s.stores[node]) == GALE_ERR_OK);
}

static struct gale_limiter *limiter_of(int node, const char *name,
                                       struct gale_rule rule, enum gale_mode mode)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = rule,
		.mode = mode,
		.store = s.stores[node],
		.lease = { .sizing = GALE_SIZE_FIXED,
		           .batch = 8,
		           .patience_us = PATIENCE },
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(s.runtimes[node], &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static void add_row(unsigned which, enum gale_mode mode)
{
	static const char *const modes[] = { "strict", "cached", "leased" };
	struct named_rule rule = fifty_rule(which);
	struct row *row = &s.rows[s.row_count];

	must(rule_compile(&rule.rule, &row->compiled) == GALE_ERR_OK);
	if (mode == GALE_LEASED && !lease_possible(&row->compiled))
		return;
	snprintf(row->name, sizeof(row->name), "%s_%s", rule.name, modes[mode]);
	row->rule = rule.rule;
	row->mode = mode;
	for (int i = 0; i < NODES; i++)
		row->limiters[i] = limiter_of(i, row->name, rule.rule, mode);
	s.row_count++;
}

static struct gale_seat *join(int node)
{
	struct gale_seat *seat;

	must(gale_join(s.runtimes[node], &seat) == GALE_ERR_OK);
	return seat;
}

static void *asker_main(void *arg)
{
	const struct asker *asker = arg;
	struct gale_seat *seat = join(asker->node);

	for (int i = 0; !load_relaxed(&s.stopping); i = (i + 1) % s.row_count) {
		struct row *row = &s.rows[i];
		struct gale_answer answer =
		    gale_wait(seat, row->limiters[asker->node], "k", 1, 1, WITHIN);

		add_relaxed(&row->admitted, answer.verdict == GALE_ALLOW);
		add_relaxed(&row->lost, answer.why == GALE_WHY_LATE);
		add_relaxed(&row->answered, 1);
		add_relaxed(&row->by_why[answer.why], 1);
		if (answer.verdict != GALE_ALLOW)
			nap_us(100); /* what is denied from memory takes no time */
	}
	gale_leave(seat);
	return NULL;
}

static void open_nodes_with(int which, uint64_t quarantine_us)
{
	memset(&s.rows, 0, sizeof(s.rows));
	s.row_count = 0;
	s.which = which;
	s.quarantine_us = quarantine_us;
	s.clock = (struct node_clock){ .clock = { now_us, boot_ns } };
	store_relaxed(&s.stopping, false);
	for (int i = 0; i < NODES; i++)
		open_node(i);
}

static void open_nodes(int which)
{
	open_nodes_with(which, 1);
}

/* In brief a rule is in one of the modes. */
static bool has_row(unsigned rule, enum gale_mode mode)
{
	return (enum gale_mode)(rule % MODES) == mode || LONG_OR_BRIEF(true, false);
}

static void add_rows(void)
{
	for (unsigned rule = 0; rule < FIFTY_RULES; rule++)
		for (int mode = 0; mode < MODES; mode++)
			if (has_row(rule, (enum gale_mode)mode))
				add_row(rule, (enum gale_mode)mode);
}

static void let_ask(void)
{
	s.asking = true;
	for (int i = 0; i < NODES * ASKERS; i++) {
		s.askers[i].node = i % NODES;
		must(pthread_create(&s.askers[i].thread, NULL, asker_main,
		                    &s.askers[i]) == 0);
	}
}

static void close_nodes(void)
{
	for (int i = 0; i < NODES; i++) {
		for (int r = 0; r < s.row_count; r++)
			gale_limiter_close(s.rows[r].limiters[i]);
		gale_store_close(s.stores[i]);
		gale_runtime_close(s.runtimes[i]);
	}
}

static void everybody_stops(void)
{
	store_relaxed(&s.stopping, true);
	for (int i = 0; i < NODES * ASKERS; i++)
		must(pthread_join(s.askers[i].thread, NULL) == 0);
	s.asking = false;
}

/* ---- What must be true ----------------------------------------------------------- */

static bool has_windows(const struct row *row)
{
	return row->compiled.is.kind == GALE_RULE_FIXED_WINDOW ||
	       row->compiled.is.kind == GALE_RULE_QUOTA ||
	       row->compiled.is.kind == GALE_RULE_TOKEN_BUDGET;
}

/* Rules without windows are as good as new when a clock is later than ever, if not
 * sooner. */
static void open_windows(int64_t now_s)
{
	for (int i = 0; i < s.row_count; i++) {
		struct row *row = &s.rows[i];
		struct window_state state = { .start_us = row->start_us };
		uint64_t start_us = has_windows(row)
		                        ? window_start(&row->compiled, &state,
		                                       (uint64_t)now_s * 1000000)
		                        : (uint64_t)now_s * 1000000;

		row->opened += row->start_us < start_us;
		if (row->start_us < start_us)
			row->start_us = start_us;
	}
}

static void assert_row(struct row *row)
{
	uint64_t words[2], admitted = load_relaxed(&row->admitted);

	if (admitted > FIFTY * row->opened)
		print_message("%s: %" PRIu64 " in %" PRIu64 " windows\n", row->name,
		              admitted, row->opened);
	assert_true(admitted <= FIFTY * row->opened);
	if (!has_windows(row) ||
	    !both_servers_look(&both, s.which, row->name, "k", words))
		return;
	assert_true(words[0] >= row->seen_us); /* only forward */
	assert_true(words[0] <= row->start_us);
	assert_in_range(words[1], 0, FIFTY);
	row->seen_us = words[0];
}

struct count {
	uint64_t admitted;
	uint64_t lost;
	uint64_t answered;
};

static struct count count_of(const struct row *row)
{
	return (struct count){
		.admitted = load_relaxed(&row->admitted),
		.lost = load_relaxed(&row->lost),
		.answered = load_relaxed(&row->answered),
	};
}

/* What the server has is admitted; what it has lent may die with its node's window, but
 * not all of it. */
static bool has_room(const struct row *row, const struct count *before)
{
	struct count now = count_of(row);

	if (row->mode == GALE_LEASED)
		return now.admitted == before->admitted;
	return now.admitted + now.lost < before->admitted + before->lost + FIFTY;
}

static bool is_behind(const struct row *row, const struct count *before, bool refills)
{
	if (load_relaxed(&row->answered) < before->answered + ANSWERS)
		return true;
	return refills && has_room(row, before);
}

static void show(const struct row *row)
{
	for (int why = 0; why < WHYS; why++)
		print_message("%s: %" PRIu64 " x %s\n", row->name,
		              load_relaxed(&row->by_why[why]),
		              gale_why_text((enum gale_why)why));
}

static void await(struct row *row, const struct count *before, bool refills)
{
	uint64_t begun = patience_now_ns(), deadline = begun + PATIENCE_NS;

	while (is_behind(row, before, refills)) {
		nap_us(1000);
		if (patience_now_ns() - begun > DOUBT_NS) {
			add_relaxed(&s.clock.ahead_us, DOUBT_US);
			begun = patience_now_ns();
		}
		if (patience_now_ns() < deadline)
			continue;
		show(row);
		nap_us(2000000);
		show(row);
		fail_msg("%s: %" PRIu64 " of %" PRIu64 " windows", row->name,
		         row->admitted, row->opened);
	}
}

static void await_all(const struct count *before, bool refills)
{
	for (int i = 0; i < s.row_count; i++)
		await(&s.rows[i], &before[i], refills);
	for (int i = 0; i < s.row_count; i++)
		assert_row(&s.rows[i]);
}

/* ---- Steps ----------------------------------------------------------------------- */

/* The clock of the server is set; that of the nodes moves on by so much. */
struct step {
	int64_t at_s; /* from noon */
	int64_t moves_s;
	bool refills; /* every key is as good as new then */
};

static void make(const struct step *step)
{
	int64_t now_s = NOON_S + step->at_s;
	struct count before[ROWS_MOST];

	for (int i = 0; i < s.row_count; i++)
		before[i] = count_of(&s.rows[i]);
	open_windows(now_s);
	set_clock(now_s);
	add_relaxed(&s.clock.ahead_us, (uint64_t)step->moves_s * 1000000);
	await_all(before, step->refills);
}

static void no_window_opens_twice(int which)
{
	const struct count nothing[ROWS_MOST] = { { 0, 0, 0 } };
	const struct step steps[] = {
		/* By exactly one window, back and forth. */
		{ -HOUR_S, 0, false },
		{ 0, 0, false },
		{ HOUR_S, HOUR_S, false },
		{ 0, 0, false },
		{ HOUR_S, 0, false },
		{ HOUR_S - 1, 0, false },
		{ 2 * HOUR_S, HOUR_S, false },
		{ HOUR_S, HOUR_S, false },
		{ 2 * HOUR_S, 0, false },
		/* By hours, days and weeks. */
		{ -11 * HOUR_S, 0, false },
		{ 45 * DAY_S, 45 * DAY_S + 11 * HOUR_S, true },
		{ 0, 0, false },
		{ 45 * DAY_S - HOUR_S, 0, false },
		{ 45 * DAY_S, 0, false },
		{ -3650 * DAY_S, 0, false },
		{ 38 * DAY_S, 0, false },
		{ 90 * DAY_S, 45 * DAY_S, true },
		{ 83 * DAY_S, HOUR_S, false },
		/* Set, without any time having passed. */
		{ 180 * DAY_S, 0, false },
		{ 90 * DAY_S, 0, false },
		{ 180 * DAY_S, 90 * DAY_S, false },
		{ 270 * DAY_S, 90 * DAY_S, true },
	};

	open_nodes(which);
	add_rows();
	open_windows(NOON_S);
	set_clock(NOON_S);
	let_ask();
	await_all(nothing, true);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		make(&steps[i]);
	everybody_stops();
	close_nodes();
}

static void no_window_of_redis_opens_twice(void **state)
{
	(void)state;
	no_window_opens_twice(0);
}

static void no_window_of_postgres_opens_twice(void **state)
{
	(void)state;
	no_window_opens_twice(1);
}

static int stop_asking(void **state)
{
	(void)state;
	if (s.asking)
		everybody_stops();
	return 0;
}

/* ---- A clock that was years ahead ------------------------------------------------ */

/* The window that was opened then is kept until the clock gets there again; an answer
 * speaks of one window at a time, so that who is denied finds out in time when somebody
 * has reset the key. */
static void ten_years_ahead(int which, enum gale_mode mode)
{
	struct gale_limiter *limiter;
	struct gale_answer answer;
	struct gale_seat *seat;
	uint64_t words[2];

	open_nodes(which);
	set_clock(NOON_S + 3650 * DAY_S);
	limiter = limiter_of(0, "ahead", gale_fixed_window(3, GALE_HOURS(1)), mode);
	seat = join(0);
	for (int i = 0; i < 3; i++) {
		answer = gale_wait(seat, limiter, "k", 1, 1, WITHIN);
		assert_int_equal(answer.verdict, GALE_ALLOW);
	}
	set_clock(NOON_S);
	add_relaxed(&s.clock.ahead_us, GALE_HOURS(1));
	(void)gale_wait(seat, limiter, "k", 1, 1, WITHIN); /* it has been set back */
	nap_us(50000); /* the node is still busy with that when the answer is there */
	set_clock(NOON_S + 2);
	add_relaxed(&s.clock.ahead_us, GALE_HOURS(1));
	answer = gale_wait(seat, limiter, "k", 1, 1, WITHIN);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_in_range(answer.retry_after_us, 1, GALE_HOURS(1));
	assert_int_equal(gale_peek(seat, limiter, "k", 1, WITHIN, &answer),
	                 GALE_ERR_OK);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.remaining, 0);
	assert_in_range(answer.retry_after_us, 1, GALE_HOURS(1));
	must(both_servers_look(&both, s.which, "ahead", "k", words));
	assert_int_equal(words[0], (NOON_S + 3650 * DAY_S) * 1000000);

	assert_int_equal(gale_reset(seat, limiter, "k", 1, WITHIN), GALE_ERR_OK);
	answer = gale_wait(seat, limiter, "k", 1, 1, WITHIN);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	must(both_servers_look(&both, s.which, "ahead", "k", words));
	assert_int_equal(words[0], NOON_S * INT64_C(1000000));
	assert_int_equal(gale_reset(seat, limiter, "k", 1, WITHIN), GALE_ERR_OK);
	gale_leave(seat);
	gale_limiter_close(limiter);
	close_nodes();
}

static void a_key_from_ten_years_ahead_is_healed_by_a_reset(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		for (int mode = 0; mode < MODES; mode++)
			ten_years_ahead(i, (enum gale_mode)mode);
}

/* ---- A key that nobody asks about ------------------------------------------------ */

/* Long enough for a Redis, which drops what has expired without looking at it; a PostgreSQL
 * is swept. */
static void wait_until_dropped(int which)
{
	uint64_t words[2];

	for (int i = 0; i < 30 && which == 0; i++)
		nap_us(100000);
	for (int i = 0; i < 2 && which == 1; i++)
		both_servers_run_sql(&both, "DO 'BEGIN WHILE (SELECT more FROM"
		                            " gale.sweep(1000)) LOOP END LOOP; END'");
	assert_false(both_servers_look(&both, which, "idle", "k", words));
}

/* What a server that is new says is that it grants nothing yet. */
static void settle(struct gale_seat *seat, struct gale_limiter *limiter)
{
	while (!is_of_server(gale_wait(seat, limiter, "k", 1, 1, WITHIN)))
		continue;
}

static void an_idle_key_is_not_forgotten(int which)
{
	struct gale_limiter *limiter;
	struct gale_seat *seat;

	open_nodes_with(which, 0);
	set_clock(NOON_S - 2 * HOUR_S);
	limiter =
	    limiter_of(0, "idle", gale_fixed_window(3, GALE_HOURS(1)), GALE_STRICT);
	seat = join(0);
	settle(seat, limiter);
	set_clock(NOON_S);
	for (int i = 0; i < 3; i++)
		assert_int_equal(gale_wait(seat, limiter, "k", 1, 1, WITHIN).verdict,
		                 GALE_ALLOW);
	set_clock(NOON_S + 25 * HOUR_S);
	(void)gale_wait(seat, limiter, "other", 5, 1, WITHIN);
	wait_until_dropped(which);
	for (int i = 0; i < 50; i += 10) {
		set_clock(NOON_S + i);
		assert_int_equal(gale_wait(seat, limiter, "k", 1, 1, WITHIN).verdict,
		                 GALE_DENY);
	}
	set_clock(NOON_S + 2 * HOUR_S); /* life goes on */
	assert_int_equal(gale_wait(seat, limiter, "k", 1, 1, WITHIN).verdict,
	                 GALE_ALLOW);
	(void)gale_reset(seat, limiter, "k", 1, WITHIN);
	gale_leave(seat);
	gale_limiter_close(limiter);
	close_nodes();
}

/* ---- A server that nobody asks --------------------------------------------------- */

#define LIMIT 3
#define YEAR_US GALE_DAYS(365)

static void drop_all_of_postgres(uint64_t now_us, const struct gale_rule *rule)
{
	fake_time_set(&s.time, now_us + 2 * rule->period_us + GALE_HOURS(25));
	both_servers_run_sql(&both, "DO 'BEGIN WHILE (SELECT more FROM"
	                            " gale.sweep(1000)) LOOP END LOOP; END'");
}

static void take_all(struct gale_seat *seat, struct gale_limiter *limiter,
                     uint64_t now_us)
{
	fake_time_set(&s.time, now_us - YEAR_US / 2);
	(void)gale_wait(seat, limiter, "k", 1, 1, WITHIN); /* who is new is known now */
	fake_time_set(&s.time, now_us);
	for (int i = 0; i < LIMIT; i++)
		assert_int_equal(gale_wait(seat, limiter, "k", 1, 1, WITHIN).verdict,
		                 GALE_ALLOW);
}

/* Where a window begins, in a later year each time. */
static uint64_t begin_of(int which, const struct gale_rule *rule)
{
	static uint64_t years[BOTH];
	uint64_t year_us = (uint64_t)NOON_S * 1000000 + ++years[which] * YEAR_US;

	must(years[which] < 82); /* before INSTANT_MAX_US */

	return year_us - year_us % rule->period_us + rule->period_us;
}

/* All of a key's units are taken.  In silence the clock goes to where the key is dropped, and
 * comes back to so long after it went: there the key still counts. */
static void in_silence(struct gale_rule rule, uint64_t back_us)
{
	uint64_t now_us = begin_of(1, &rule);
	struct gale_limiter *limiter;
	struct gale_seat *seat;

	open_nodes_with(1, 0);
	limiter = limiter_of(0, "silent", rule, GALE_STRICT);
	seat = join(0);
	take_all(seat, limiter, now_us);
	drop_all_of_postgres(now_us, &rule);
	fake_time_set(&s.time, now_us + back_us);
	for (int i = 0; i < LIMIT; i++)
		if (gale_wait(seat, limiter, "k", 1, 1, WITHIN).verdict != GALE_DENY)
			fail_msg("period %" PRIu64 ", back to %" PRIu64, rule.period_us,
			         back_us);
	fake_time_set(&s.time, now_us + 3 * rule.period_us); /* life goes on */
	assert_int_equal(gale_wait(seat, limiter, "k", 1, 1, WITHIN).verdict,
	                 GALE_ALLOW);
	gale_leave(seat);
	gale_limiter_close(limiter);
	close_nodes();
}

static void no_window_of_postgres_opens_twice_in_silence(void **state)
{
	static const uint64_t periods[] = { GALE_SECONDS(3), GALE_HOURS(1),
		                            GALE_DAYS(7) };
	static const uint64_t backs[] = { 0, GALE_MILLIS(900), GALE_MILLIS(1100),
		                          GALE_SECONDS(2) };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct gale_rule rule = gale_fixed_window(LIMIT, periods[i]);

		for (int j = 0; j < 4; j++)
			in_silence(rule, backs[j]);
		in_silence(rule, periods[i] - 1000);
		in_silence(gale_gcra(LIMIT, periods[i], LIMIT), periods[i] / 4);
		in_silence(gale_sliding_log(LIMIT, periods[i]), periods[i] - 1000);
	}
}

/* Redis has the latest time to the second, and bears a second that is set back: so two seconds
 * after a window's end its value is not yet to be forgotten.  Who looks at a value drops it when
 * it has expired. */
static void two_seconds_back(struct gale_rule rule)
{
	uint64_t begin_us = begin_of(0, &rule), end_us = begin_us + rule.period_us;
	uint64_t kept_us = end_us + GALE_SECONDS(1) - 1000;
	struct gale_limiter *limiter;
	struct gale_answer answer;
	struct gale_seat *seat;

	open_nodes_with(0, 0);
	limiter = limiter_of(0, "back", rule, GALE_STRICT);
	seat = join(0);
	take_all(seat, limiter, begin_us);
	fake_time_set(&s.time, kept_us);
	(void)gale_wait(seat, limiter, "other", 5, 1, WITHIN);
	fake_time_set(&s.time, kept_us + GALE_SECONDS(1) - 1000);
	assert_int_equal(gale_peek(seat, limiter, "k", 1, WITHIN, &answer),
	                 GALE_ERR_OK);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	fake_time_set(&s.time, end_us - 1000);
	answer = gale_wait(seat, limiter, "k", 1, 1, WITHIN);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.why, GALE_WHY_RULE);
	assert_in_range(answer.retry_after_us, 1, 1000);
	gale_leave(seat);
	gale_limiter_close(limiter);
	close_nodes();
}

static void two_seconds_back_open_no_window_of_redis_twice(void **state)
{
	(void)state;
	two_seconds_back(gale_fixed_window(LIMIT, GALE_SECONDS(3)));
	two_seconds_back(gale_fixed_window(LIMIT, GALE_HOURS(1)));
	two_seconds_back(gale_sliding_log(LIMIT, GALE_SECONDS(3)));
	two_seconds_back(gale_sliding_log(LIMIT, GALE_HOURS(1)));
}

/* There is enough for all; but a server that is new has nothing to give. */
static void is_answered(struct gale_seat *seat, struct gale_limiter *limiter)
{
	struct gale_answer answer = gale_wait(seat, limiter, "k", 1, 1, WITHIN);

	if (answer.verdict != GALE_ALLOW)
		fail_msg("%s, and again in %" PRIu64 " us", gale_why_text(answer.why),
		         answer.retry_after_us);
}

/* Time that passes is no reason to think that anything was forgotten: more and more of it, a
 * second each, or any; nor is less than a second that is set back, whether this node asks who
 * the server is (it does after a second) or not. */
static void passes_and_is_answered(struct gale_seat *seat, struct gale_limiter *limiter,
                                   uint64_t now_us)
{
	struct chance chance = { 1 };

	for (uint64_t silence = GALE_MILLIS(250); silence < YEAR_US;
	     silence += silence / 4) {
		fake_time_set(&s.time, now_us += silence);
		is_answered(seat, limiter);
	}
	for (int i = 0; i < 40; i++) {
		fake_time_set(&s.time, now_us += GALE_SECONDS(1));
		is_answered(seat, limiter);
	}
	for (int i = 0; i < 200; i++) {
		now_us += chance_below(&chance, GALE_SECONDS(10));
		fake_time_set(&s.time, now_us);
		if (chance_one_in(&chance, 2))
			is_answered(seat, limiter);
		fake_time_set(&s.time, now_us - chance_below(&chance, GALE_SECONDS(1)));
		add_relaxed(&s.clock.ahead_us,
		            GALE_SECONDS(2) * chance_below(&chance, 2));
		is_answered(seat, limiter);
	}
}

static void who_was_silent_is_answered(void **state)
{
	const struct gale_rule rule = gale_fixed_window(1000000, GALE_SECONDS(1));

	(void)state;
	for (int which = 0; which < BOTH; which++) {
		uint64_t now_us = begin_of(which, &rule);
		struct gale_limiter *limiter;
		struct gale_seat *seat;

		open_nodes_with(which, 0);
		limiter = limiter_of(0, "patient", rule, GALE_STRICT);
		seat = join(0);
		take_all(seat, limiter, now_us);
		passes_and_is_answered(seat, limiter, now_us);
		gale_leave(seat);
		gale_limiter_close(limiter);
		close_nodes();
	}
}

static void an_idle_key_of_redis_is_not_forgotten(void **state)
{
	(void)state;
	an_idle_key_is_not_forgotten(0);
}

static void an_idle_key_of_postgres_is_not_forgotten(void **state)
{
	(void)state;
	an_idle_key_is_not_forgotten(1);
}

/* ---- Servers ---------------------------------------------------------------------- */

static int start_servers(void **state)
{
	(void)state;
	fake_time_begin(&s.time, (uint64_t)(NOON_S - 20 * 365 * DAY_S) * 1000000);
	both_servers_start(&both);
	fake_time_end();
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	both_servers_stop(&both);
	fake_time_close(&s.time);
	return 0;
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(no_window_of_redis_opens_twice, stop_asking),
		cmocka_unit_test_teardown(no_window_of_postgres_opens_twice,
		                          stop_asking),
		cmocka_unit_test(an_idle_key_of_redis_is_not_forgotten),
		cmocka_unit_test(an_idle_key_of_postgres_is_not_forgotten),
		cmocka_unit_test(a_key_from_ten_years_ahead_is_healed_by_a_reset),
		cmocka_unit_test(no_window_of_postgres_opens_twice_in_silence),
		cmocka_unit_test(two_seconds_back_open_no_window_of_redis_twice),
		cmocka_unit_test(who_was_silent_is_answered),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
