/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * processes_test.c -- processes that behave, and those that do not.
 *
 * The command starts itself again as its processes, and so does this test: started as
 * one of them, it plays the part that its first flag names.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/member.h"
#include "tools/processes.h"
#include "tools/record.h"

#define WINDOW GALE_MILLIS(500)
#define LIMIT 5
#define KEYS 2
#define PROCESSES 3
#define NAPS_MOST 2000 /* 10 s */
#define FAR_AHEAD 1000 /* windows: 500 s, which no machine takes to start a process */

/* ---- The processes --------------------------------------------------------------- */

static struct record_in orders;
static struct record_out words;
static uint64_t window; /* that they count in */
static uint64_t begun_us;
static bool first; /* of the processes */

static struct record ordered(enum record_kind kind)
{
	struct record record;

	if (record_get(&orders, /* wait= */ true, &record) != RECORD_IS ||
	    record.kind != kind)
		_exit(9);
	return record;
}

static void say(enum record_kind kind, uint64_t what, uint64_t from, uint64_t last,
                uint64_t count)
{
	struct record record = {
		.kind = kind, .what = what, .first = from, .last = last, .count = count
	};

	record_put(&words, &record);
}

static void say_units(uint64_t key, uint64_t number, uint64_t count)
{
	say(RECORD_UNITS, key, number, number, count);
}

static void say_done(uint64_t units)
{
	say(RECORD_DONE, 0, 0, 0, units);
}

/* In each window 2 units of each process: more than the limit of three. */
static void be_good(void)
{
	say_units(0, window, 2);
	say(RECORD_UNITS, 1, window, window + 1, 1);
	say(RECORD_ASKED, 0, window, 0, 5);
	say(RECORD_COUNTER, SEEN_ALLOWED, 0, 0, 3);
	say(RECORD_BUCKET, 7, 0, 0, 3);
	say(RECORD_PASSED, 0, window * WINDOW + 1000, 0, 0);
	say_done(3);
}

static void be_killed(void)
{
	raise(SIGKILL);
}

static void leave_early(void)
{
	exit(7);
}

static void close_its_end(void)
{
	shutdown(MEMBER_FD, SHUT_RDWR);
	sleep(60);
}

static void be_silent(void)
{
	sleep(60);
}

static void babble(void)
{
	static const char text[] = "a text that is no record, and longer than one";

	if (send(MEMBER_FD, text, sizeof(text), 0) < 0)
		_exit(9);
	sleep(60);
}

static void say_why(void)
{
	record_put_text(&words, "--store: it is somewhere else, or elsewhere");
	say(RECORD_FAILED, 0, 0, 0, 0);
}

static void name_no_key(void)
{
	say_units(KEYS, window, 1);
}

static void count_nothing(void)
{
	say_units(0, window, 0);
}

static void count_too_much(void)
{
	say_units(0, window, UINT64_MAX);
}

static void count_many_strays(void)
{
	say(RECORD_UNITS, 0, window, window + 1, 1000000);
}

static void count_too_early(void)
{
	say_units(0, window - 2, 1);
}

static void count_too_late(void)
{
	say_units(0, window + FAR_AHEAD, 1);
}

static void count_after_it_has_passed(void)
{
	say(RECORD_PASSED, 0, window * WINDOW, 0, 0);
	say_units(0, window, 1);
}

static void turn_windows_round(void)
{
	say(RECORD_UNITS, 0, window + 1, window, 1);
}

static void ask_for_nothing(void)
{
	say(RECORD_ASKED, 0, window, 0, 0);
}

static void ask_for_too_much(void)
{
	say(RECORD_ASKED, 0, window, 0, UINT64_MAX);
}

static void ask_too_early(void)
{
	say(RECORD_ASKED, 0, window - 2, 0, 1);
}

static void ask_too_late(void)
{
	say(RECORD_ASKED, 0, window + FAR_AHEAD, 0, 1);
}

static void ask_after_it_has_passed(void)
{
	say(RECORD_PASSED, 0, window * WINDOW, 0, 0);
	say(RECORD_ASKED, 0, window, 0, 1);
}

static void pass_backwards(void)
{
	say(RECORD_PASSED, 0, begun_us, 0, 0);
	say(RECORD_PASSED, 0, begun_us - 1, 0, 0);
}

static void count_down(void)
{
	say(RECORD_COUNTER, SEEN_DENIED, 0, 0, 8);
	say(RECORD_COUNTER, SEEN_DENIED, 0, 0, 7);
}

static void count_something_else(void)
{
	say(RECORD_COUNTER, SEEN_COUNT, 0, 0, 1);
}

static void take_forever(void)
{
	say(RECORD_BUCKET, HISTOGRAM_BUCKETS, 0, 0, 1);
}

static void lose_units(void)
{
	say_units(0, window, 1);
	say_done(2);
}

static void begin_again(void)
{
	say(RECORD_READY, 0, 0, 0, 0);
}

static void end_badly(void)
{
	say_done(0);
	record_flush(&words);
	exit(5);
}

/* What the first process does, before or after it is ready; the others are good. */
static const struct part {
	const char *name;
	void (*play)(void);
	bool early;
	const char *says; /* of it, the controller; NULL: all is well */
} parts[] = {
	{ "be-good", be_good, false, NULL },
	{ "be-killed-early", be_killed, true, "process 1 was ended by signal 9" },
	{ "be-killed", be_killed, false, "process 1 was ended by signal 9" },
	{ "leave-early", leave_early, true,
	  "process 1 ended too early, with status 7" },
	{ "leave", leave_early, false, "process 1 ended too early, with status 7" },
	{ "end-badly", end_badly, false, "process 1 ended too early, with status 5" },
	{ "babble-early", babble, true, "process 1: it sends nonsense: what it sends" },
	{ "babble", babble, false, "process 1: it sends nonsense: what it sends" },
	{ "say-why-early", say_why, true,
	  "process 1: --store: it is somewhere else, or elsewhere" },
	{ "say-why", say_why, false,
	  "process 1: --store: it is somewhere else, or elsewhere" },
	{ "done-early", be_good, true, "nonsense: a record that has no place" },
	{ "begin-again", begin_again, false, "nonsense: a record that has no place" },
	{ "name-no-key", name_no_key, false, "nonsense: a key that there is not" },
	{ "count-nothing", count_nothing, false, "nonsense: so many units" },
	{ "count-too-much", count_too_much, false, "nonsense: so many units" },
	{ "count-many-strays", count_many_strays, false, "nonsense: so many units" },
	{ "count-too-early", count_too_early, false, "units out of their time" },
	{ "count-too-late", count_too_late, false, "units out of their time" },
	{ "count-what-has-passed", count_after_it_has_passed, false,
	  "units out of their time" },
	{ "turn-windows-round", turn_windows_round, false, "units out of their time" },
	{ "ask-for-nothing", ask_for_nothing, false, "nonsense: so many units" },
	{ "ask-for-too-much", ask_for_too_much, false, "nonsense: so many units" },
	{ "ask-too-early", ask_too_early, false, "units out of their time" },
	{ "ask-too-late", ask_too_late, false, "units out of their time" },
	{ "ask-for-what-has-passed", ask_after_it_has_passed, false,
	  "units out of their time" },
	{ "pass-backwards", pass_backwards, false, "time runs backwards" },
	{ "count-down", count_down, false, "a counter falls" },
	{ "count-something-else", count_something_else, false,
	  "a counter that there is not" },
	{ "take-forever", take_forever, false, "a duration that there is not" },
	{ "lose-units", lose_units, false, "units are missing" },
	{ "close", close_its_end, false, "process 1 has closed its connection" },
	{ "be-silent-early", be_silent, true, "process 1 gives no answer" },
	{ "be-silent", be_silent, false, "process 1 gives no answer" },
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static const struct part *part_named(const char *name)
{
	for (size_t i = 0; i < PARTS; i++)
		if (strcmp(parts[i].name, name) == 0)
			return &parts[i];
	_exit(9);
}

static int play(const char *name)
{
	const struct part *part = part_named(name), *good = part_named("be-good");

	record_in_init(&orders, MEMBER_FD);
	record_out_init(&words, MEMBER_FD);
	first = ordered(RECORD_PLAN).what == 0;
	if (first && part->early) {
		part->play();
		record_flush(&words);
		return 0;
	}
	say(RECORD_READY, 0, 0, 0, 0);
	record_flush(&words);
	begun_us = ordered(RECORD_BEGIN).first;
	window = begun_us / WINDOW + 1;
	(first ? part : good)->play();
	return record_flush(&words) ? 0 : 9;
}

/* ---- The controller -------------------------------------------------------------- */

struct scene {
	struct fleet_flags flags;
	char *argv[1];
	struct fleet_clock clock;
	struct tally tally;
	struct processes processes;
	struct sentence why;
	uint64_t begin_us;
};

static void nap(void)
{
	static const struct timespec time = { .tv_nsec = 5000000 };

	nanosleep(&time, NULL);
}

static bool open_scene(struct scene *scene, const char *part)
{
	struct tally_config config = {
		.keys = KEYS,
		.workers = PROCESSES,
		.ring = 16,
		.limit = LIMIT,
		.window_us = WINDOW,
	};

	memset(scene, 0, sizeof(*scene));
	scene->argv[0] = (char *)(uintptr_t)part;
	scene->flags = (struct fleet_flags){ .processes = PROCESSES,
		                             .argc = 1,
		                             .argv = scene->argv };
	fleet_clock_init(&scene->clock);
	scene->begin_us = config.begin_us = fleet_clock_us(&scene->clock);
	assert_true(tally_open(&scene->tally, &config));
	return processes_start(&scene->processes, &scene->flags, &scene->clock,
	                       /* run= */ 1, &scene->tally, &scene->why);
}

static void close_scene(struct scene *scene)
{
	processes_close(&scene->processes);
	tally_close(&scene->tally);
}

/* False if they failed, or take too long. */
static bool get_ready(struct scene *scene, int naps)
{
	while (!processes_ready(&scene->processes)) {
		if (processes_failed(&scene->processes))
			return processes_end(&scene->processes, &scene->why);
		if (naps-- == 0) {
			processes_give_up(&scene->processes, &scene->why);
			return false;
		}
		nap();
	}
	return true;
}

static bool run_to_end(struct scene *scene, int naps)
{
	uint64_t stop_us = scene->begin_us + 4 * WINDOW;

	processes_begin(&scene->processes, scene->begin_us, stop_us);
	while (!tally_all_gone(&scene->tally)) {
		tally_fold(&scene->tally, stop_us);
		if (processes_failed(&scene->processes))
			return processes_end(&scene->processes, &scene->why);
		if (naps-- == 0) {
			processes_give_up(&scene->processes, &scene->why);
			return false;
		}
		nap();
	}
	tally_finish(&scene->tally, stop_us);
	return processes_end(&scene->processes, &scene->why);
}

static void counts_of_all_processes_are_added_up(void **state)
{
	struct scene scene;
	struct seen seen = { 0 };
	struct tally_totals totals;
	struct tally_window windows[4];

	(void)state;
	assert_true(open_scene(&scene, "be-good"));
	assert_true(get_ready(&scene, NAPS_MOST));
	assert_true(run_to_end(&scene, NAPS_MOST));
	processes_look(&scene.processes, &seen);
	assert_int_equal(seen.counts[SEEN_ALLOWED], 3 * PROCESSES);
	assert_int_equal(histogram_get(&seen.latency_ns, 7), 3 * PROCESSES);
	totals = tally_total(&scene.tally);
	assert_int_equal(totals.admitted, 3 * PROCESSES);
	assert_int_equal(totals.admitted_max, 2 * PROCESSES);
	assert_int_equal(totals.overshoot, 2 * PROCESSES - LIMIT);
	assert_int_equal(totals.disagreements, 0);
	assert_true(tally_history(&scene.tally, windows, 4) > 0);
	assert_int_equal(windows[0].asked, 5 * PROCESSES);
	close_scene(&scene);
}

/* Whatever one of them does, it is named, and none is left.  The scene is closed before it
 * is judged: a check that fails leaves this stack, and the threads look at the scene. */
static void expect_failure(const struct part *part)
{
	bool is_silent = part->play == be_silent;
	struct scene scene;
	bool good = open_scene(&scene, part->name) &&
	            get_ready(&scene, is_silent && part->early ? 100 : NAPS_MOST) &&
	            run_to_end(&scene, is_silent ? 100 : NAPS_MOST);

	close_scene(&scene);
	if (good || !strstr(scene.why.is, part->says))
		fail_msg("%s: %d, \"%s\", not \"%s\"", part->name, good, scene.why.is,
		         part->says);
}

static void a_process_that_does_not_behave_fails_the_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < PARTS; i++)
		if (parts[i].says)
			expect_failure(&parts[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_of_all_processes_are_added_up),
		cmocka_unit_test(a_process_that_does_not_behave_fails_the_run),
	};

	if (argc == 3 && strcmp(argv[1], MEMBER_COMMAND) == 0)
		return play(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
