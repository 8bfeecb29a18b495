/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * estimate_test.c -- settings, what moves a limit and what does not, probes, random windows.
 *
 * How well the laws do in front of a backend is measured in tests/sim/laws_test.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#include "engine/estimate.h"
#include "sim/random.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MS UINT64_C(1000000)
#define NO_SHARE ESTIMATE_MOST

static const enum estimate_law laws[] = { ESTIMATE_KNEE, ESTIMATE_FIXED, ESTIMATE_AIMD,
	                                  ESTIMATE_GRADIENT };

/* ---- Windows ---------------------------------------------------------------------- */

struct scene {
	struct estimate estimate;
	uint64_t now_ns;
	uint32_t share;
	struct chance chance;
};

static struct scene scene(enum estimate_law law, uint32_t start)
{
	struct estimate_settings settings = { .law = law, .start = start };
	struct scene s = { .now_ns = 1000 * MS, .share = NO_SHARE };

	assert_int_equal(estimate_init(&s.estimate, &settings), ESTIMATE_VALID);
	return s;
}

static uint32_t in_force(const struct scene *s)
{
	uint32_t limit = estimate_limit(&s->estimate);

	return s->share < limit ? s->share : limit;
}

static void learn(struct scene *s, struct estimate_window window)
{
	if (window.length_ns == 0)
		window.length_ns = 100 * MS;
	s->now_ns += window.length_ns;
	window.now_ns = s->now_ns;
	estimate_learn(&s->estimate, &window, in_force(s), chance_next(&s->chance));
}

/* Of a backend with so many servers of 10 ms, to which more comes than may pass: what is
 * admitted above them waits. */
static struct estimate_window busy(struct scene *s, uint32_t servers)
{
	uint32_t flight = estimate_ceiling(&s->estimate, s->share);
	uint32_t works = flight < servers ? flight : servers;
	uint64_t rtt = 10 * MS * flight / works;

	return (struct estimate_window){ .length_ns = 100 * MS,
		                         .ok = 10 * works,
		                         .refused = 100,
		                         .rtt_sum_ns = rtt * 10 * works,
		                         .in_flight_peak = flight,
		                         .in_flight_time = flight * 100 * MS };
}

/* So many answers after a round trip, one call at a time. */
static struct estimate_window calm(uint64_t rtt)
{
	return (struct estimate_window){ .length_ns = 20 * rtt,
		                         .ok = 20,
		                         .rtt_sum_ns = 20 * rtt,
		                         .in_flight_peak = 1,
		                         .in_flight_time = 20 * rtt };
}

/* ---- Settings --------------------------------------------------------------------- */

static void test_settings(void **unused)
{
	const struct {
		struct estimate_settings settings;
		enum estimate_error error;
		uint32_t limit;
	} cases[] = {
		{ { 0 }, ESTIMATE_VALID, 20 },
		{ { .start = 7 }, ESTIMATE_VALID, 7 },
		{ { .floor = 30 }, ESTIMATE_VALID, 30 },
		{ { .ceiling = 8 }, ESTIMATE_VALID, 8 },
		{ { .start = 5000 }, ESTIMATE_VALID, 5000 },
		{ { .start = 4, .floor = 4, .ceiling = 4 }, ESTIMATE_VALID, 4 },
		{ { .ceiling = ESTIMATE_MOST }, ESTIMATE_VALID, 20 },
		{ { .ceiling = ESTIMATE_MOST + 1 }, ESTIMATE_BAD_CEILING, 0 },
		{ { .start = UINT32_MAX }, ESTIMATE_BAD_CEILING, 0 },
		{ { .floor = 10, .ceiling = 5 }, ESTIMATE_BAD_FLOOR, 0 },
		{ { .floor = 10, .start = 5 }, ESTIMATE_BAD_START, 0 },
		{ { .ceiling = 8, .start = 20 }, ESTIMATE_BAD_START, 0 },
		{ { .ceiling = 8, .probe = 9 }, ESTIMATE_BAD_PROBE, 0 },
		{ { .law = (enum estimate_law)4 }, ESTIMATE_BAD_LAW, 0 },
	};
	(void)unused;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct estimate estimate = { .limit = 12345 };
		enum estimate_error error =
		    estimate_init(&estimate, &cases[i].settings);

		assert_int_equal(error, cases[i].error);
		assert_int_equal(estimate_check(&cases[i].settings), error);
		if (error)
			assert_int_equal(estimate.limit, 12345);
		else
			assert_int_equal(estimate_limit(&estimate), cases[i].limit);
	}
}

/* ---- What moves a limit ----------------------------------------------------------- */

/* ESTIMATE-2: nothing, and one call at a time. */
static void test_idle_keeps(void **unused)
{
	(void)unused;

	for (size_t i = 0; i < COUNT(laws); i++) {
		struct scene s = scene(laws[i], 20);

		for (int n = 0; n < 1000; n++) {
			learn(&s, (struct estimate_window){ 0 });
			learn(&s, calm(10 * MS));
			assert_int_equal(estimate_limit(&s.estimate), 20);
			assert_int_equal(estimate_ceiling(&s.estimate, NO_SHARE), 20);
		}
	}
}

/* ESTIMATE-2: all slots are in use, and what was delivered says less or more; but no call wants a slot
 * that it does not get.  As soon as one does, the same windows move the limit. */
static void test_knee_decides_where_calls_are_refused(void **unused)
{
	const struct {
		uint32_t ok; /* in each window, after 10 ms */
		bool rises;
	} cases[] = { { 10, false }, { 3000, true } };
	(void)unused;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct scene s = scene(ESTIMATE_KNEE, 40);
		struct estimate_window window;
		uint32_t before;

		estimate_probe_at(&s.estimate, UINT64_MAX, ESTIMATE_PROBE_NONE);
		for (int n = 0; n < 100; n++)
			learn(&s, busy(&s, 16));
		before = estimate_limit(&s.estimate);
		window = busy(&s, 16);
		window.ok = cases[i].ok;
		window.rtt_sum_ns = window.ok * 10 * MS;
		window.refused = 0;
		assert_true(window.in_flight_peak > before / 2);
		for (int n = 0; n < 1000; n++) {
			learn(&s, window);
			assert_int_equal(estimate_limit(&s.estimate), before);
		}
		window.refused = window.ok;
		learn(&s, window);
		if (cases[i].rises)
			assert_true(estimate_limit(&s.estimate) > before);
		else
			assert_true(estimate_limit(&s.estimate) < before);
	}
}

static void test_refusals_make_it_grow(void **unused)
{
	const enum estimate_law grow[] = { ESTIMATE_KNEE, ESTIMATE_AIMD,
		                           ESTIMATE_GRADIENT };
	(void)unused;

	for (size_t i = 0; i < COUNT(grow); i++) {
		struct scene s = scene(grow[i], 4);

		for (int n = 0; n < 300; n++)
			learn(&s, busy(&s, 40));
		assert_in_range(estimate_limit(&s.estimate), 36, 90);
	}
}

/* ESTIMATE-5: a share of 3 out of 30 is all in use. */
static void test_share_is_what_is_used(void **unused)
{
	const enum estimate_law grow[] = { ESTIMATE_AIMD, ESTIMATE_GRADIENT };
	(void)unused;

	for (size_t i = 0; i < COUNT(grow); i++) {
		struct scene s = scene(grow[i], 30);
		struct estimate_window window = calm(10 * MS);

		s.share = 3;
		window.in_flight_peak = 3;
		learn(&s, window);
		learn(&s, window);
		assert_true(estimate_limit(&s.estimate) > 30);
		window.in_flight_peak = 1;
		s = scene(grow[i], 30);
		s.share = 3;
		learn(&s, window);
		assert_int_equal(estimate_limit(&s.estimate), 30);
	}
}

/* ESTIMATE-3, also where nothing is refused. */
static void test_drops_lower_it(void **unused)
{
	const enum estimate_law fall[] = { ESTIMATE_KNEE, ESTIMATE_AIMD,
		                           ESTIMATE_GRADIENT };
	(void)unused;

	for (size_t i = 0; i < COUNT(fall); i++) {
		struct scene s = scene(fall[i], 100);
		struct estimate_window drops = { .dropped = 20, .in_flight_peak = 100 };

		learn(&s, calm(10 * MS));
		learn(&s, drops);
		assert_true(estimate_limit(&s.estimate) < 100);
		for (int n = 0; n < 200; n++)
			learn(&s, drops);
		assert_in_range(estimate_limit(&s.estimate), 1, 4);
		assert_int_equal(s.estimate.rtt_ns, 10 * MS);
	}
}

/* However fast everything fails. */
static void test_drops_are_no_round_trips(void **unused)
{
	struct scene s = scene(ESTIMATE_KNEE, 40);
	uint64_t knee;
	(void)unused;

	for (int n = 0; n < 100; n++)
		learn(&s, busy(&s, 16));
	knee = s.estimate.knee.knee_ns;
	for (int n = 0; n < 100; n++)
		learn(&s,
		      (struct estimate_window){ .dropped = 1000, .in_flight_peak = 3 });
	assert_int_equal(s.estimate.knee.knee_ns, knee);
	for (int n = 0; n < 20; n++)
		learn(&s, busy(&s, 16));
	assert_in_range(estimate_limit(&s.estimate), 15, 80);
}

static struct estimate_window kept_out(uint32_t slots)
{
	return (struct estimate_window){ .refused = 10, .kept_out = slots };
}

/* ESTIMATE-7: and where calls enter, the law learns from these. */
static void test_a_call_that_is_kept_out_is_let_in(void **unused)
{
	(void)unused;

	for (size_t i = 0; i < COUNT(laws); i++) {
		struct scene s = scene(laws[i], 4);
		struct estimate_window window = calm(10 * MS);
		bool is_fixed = laws[i] == ESTIMATE_FIXED;

		window.kept_out = 9;
		learn(&s, window);
		assert_in_range(estimate_limit(&s.estimate), 1, 8);
		learn(&s, kept_out(9));
		assert_int_equal(estimate_limit(&s.estimate), is_fixed ? 4 : 9);
		learn(&s, kept_out(2));
		assert_int_equal(estimate_limit(&s.estimate), is_fixed ? 4 : 9);
		learn(&s, kept_out(UINT32_MAX));
		assert_int_equal(estimate_limit(&s.estimate),
		                 is_fixed ? 4
		                          : s.estimate.set.ceiling); /* ESTIMATE-1 */
	}
}

/* ESTIMATE-6: it begins with the fleet's ceiling, and goes its own way from its first answer on. */
static void test_who_has_no_answer_has_no_say(void **unused)
{
	const enum estimate_law tell[] = { ESTIMATE_AIMD, ESTIMATE_GRADIENT };
	(void)unused;

	for (size_t i = 0; i < COUNT(tell); i++) {
		struct scene s = scene(tell[i], 20);
		uint32_t learned;

		assert_int_equal(estimate_told(&s.estimate), 0);
		estimate_group_limit(&s.estimate, 100);
		assert_int_equal(estimate_limit(&s.estimate), 100);
		assert_int_equal(estimate_told(&s.estimate), 0);
		learn(&s, busy(&s, 16));
		learned = estimate_limit(&s.estimate);
		assert_true(learned >= 90);
		assert_int_equal(estimate_told(&s.estimate), learned);
		estimate_group_limit(&s.estimate, 7);
		assert_int_equal(estimate_limit(&s.estimate), learned);
	}
}

/* What a fleet's nodes work on is added up instead. */
static void test_knee_tells_no_limit(void **unused)
{
	struct scene s = scene(ESTIMATE_KNEE, 20);
	(void)unused;

	estimate_group_limit(&s.estimate, 100);
	assert_int_equal(estimate_limit(&s.estimate), 20);
	learn(&s, busy(&s, 16));
	assert_int_equal(estimate_told(&s.estimate), 0);
}

static void test_late_answers_lower_it(void **unused)
{
	const enum estimate_law fall[] = { ESTIMATE_AIMD, ESTIMATE_GRADIENT };
	(void)unused;

	for (size_t i = 0; i < COUNT(fall); i++) {
		struct scene s = scene(fall[i], 100);

		for (int n = 0; n < 5; n++)
			learn(&s, calm(10 * MS));
		assert_int_equal(estimate_limit(&s.estimate), 100);
		for (int n = 0; n < 5; n++)
			learn(&s, calm(100 * MS));
		assert_true(estimate_limit(&s.estimate) < 90);
	}
}

/* So many times 1,000 answers in 100 ms, each after 40 ms. */
static void late_answers(struct scene *s, int count)
{
	while (count-- > 0)
		learn(s, (struct estimate_window){ .ok = 1000,
		                                   .rtt_sum_ns = 1000 * 40 * MS,
		                                   .in_flight_peak = 400 });
}

/* The best round trip is 10 ms: 10,000 answers of a second are held against it, and those of a minute
 * later no more. */
static void test_best_is_forgotten_by_time(void **unused)
{
	const enum estimate_law fall[] = { ESTIMATE_AIMD, ESTIMATE_GRADIENT };
	(void)unused;

	for (size_t i = 0; i < COUNT(fall); i++) {
		struct scene s = scene(fall[i], 1000);
		uint32_t before = 1000;

		for (int n = 0; n < 5; n++)
			learn(&s, calm(10 * MS));
		for (int n = 0; n < 10; n++) {
			late_answers(&s, 1);
			assert_true(estimate_limit(&s.estimate) < before);
			before = estimate_limit(&s.estimate);
		}
		late_answers(&s, 570);
		before = estimate_limit(&s.estimate);
		assert_in_range(before, 1, 4);
		late_answers(&s, 40);
		assert_true(estimate_limit(&s.estimate) > before);
	}
}

/* One answer is a window: steps of the predecessor's law that the mended one shares. */
static void test_one_answer_is_a_window(void **unused)
{
	const struct {
		uint32_t start;
		uint32_t rtt_ms; /* of one whose best is 10; 0: dropped */
		double limit;
	} steps[] = {
		{ 50, 10, 51.414213562373 },
		{ 50, 15, 51.414213562373 },
		{ 50, 40, 46.414213562373 },
		{ 50, 500, 46.414213562373 },
		{ 100, 0, 92 },
	};
	(void)unused;

	for (size_t i = 0; i < COUNT(steps); i++) {
		struct scene s = scene(ESTIMATE_GRADIENT, steps[i].start);
		struct estimate_window one = calm(10 * MS);

		learn(&s, one);
		one = (struct estimate_window){
			.length_ns = 1,
			.ok = steps[i].rtt_ms > 0,
			.dropped = steps[i].rtt_ms == 0,
			.rtt_sum_ns = steps[i].rtt_ms * MS,
			.in_flight_peak = steps[i].start,
		};
		learn(&s, one);
		assert_true(fabs((double)s.estimate.limit / ESTIMATE_Q8 -
		                 steps[i].limit) < 0.01);
	}
}

/* ---- Probes ----------------------------------------------------------------------- */

static void until_probe(struct scene *s)
{
	for (int n = 0; n < 1000 && s->estimate.phase == ESTIMATE_STEADY; n++)
		learn(s, busy(s, 16));
	assert_int_not_equal(s->estimate.phase, ESTIMATE_STEADY);
}

static void test_knee_is_measured(void **unused)
{
	struct scene s = scene(ESTIMATE_KNEE, 40);
	struct estimate_report report;
	(void)unused;

	until_probe(&s);
	assert_int_equal(s.estimate.which, ESTIMATE_PROBE_DRAIN);
	assert_int_equal(estimate_ceiling(&s.estimate, 40), 20);
	assert_int_equal(estimate_ceiling(&s.estimate, 1), 1);
	for (int n = 0; n < 2000; n++)
		learn(&s, busy(&s, 16));
	report = estimate_report(&s.estimate);
	assert_in_range(report.knee_ns, 10 * MS, 13 * MS);
	assert_in_range(knee_busy(&s.estimate), 15 * 256, 21 * 256);
	assert_in_range(report.busy, knee_busy(&s.estimate) * 4 / 10,
	                knee_busy(&s.estimate) * 6 / 10); /* all are in flight */
	assert_in_range(report.rate, 1500000, 1600000);
	assert_in_range(estimate_limit(&s.estimate), 15, 26);
	assert_true(report.cap >= estimate_limit(&s.estimate));
	assert_true(report.limited);
}

/* A node of a fleet whose slots are hardly ever free reports x^2 of the 40 that it keeps busy, so
 * that x^2 + 4 x, which the store makes of it, is 40 and half a root; with a group twice as
 * large, 80 and half a root of that. */
static void test_full_reports_less(void **unused)
{
	const struct {
		uint32_t of_ten;      /* windows in which all slots are in flight */
		uint64_t nodes;       /* alike, in the group */
		uint64_t least, most; /* percent of what is busy */
	} cases[] = {
		{ 10, 1, 58, 60 }, /* x = sqrt(4 + 40 + 3.16) - 2 */
		{ 10, 2, 67, 70 }, /* sqrt(4 + 80 + 4.47) - 2 */
		{ 8, 1, 66, 80 },  /* about two roots */
		{ 5, 1, 98, 100 },
	};
	(void)unused;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct scene s = scene(ESTIMATE_KNEE, 40);
		uint64_t reported, all;

		estimate_probe_at(&s.estimate, UINT64_MAX, ESTIMATE_PROBE_NONE);
		for (uint32_t n = 0; n < 400; n++) {
			struct estimate_window window = busy(&s, 16);

			if (n % 10 >= cases[i].of_ten)
				window.in_flight_time = 0;
			learn(&s, window);
		}
		estimate_group_limit(&s.estimate,
		                     cases[i].nodes * s.estimate.knee.in_force);
		all = knee_busy(&s.estimate);
		reported = estimate_report(&s.estimate).busy;
		assert_in_range(reported, all * cases[i].least / 100,
		                all * cases[i].most / 100 + 1);
	}
}

/* What a node reports, after it was full in so many of ten windows, and then for 40 ms, by chance,
 * had twice as many answers; in percent of what it reported before. */
static uint64_t report_after_a_burst(uint32_t of_ten)
{
	struct scene s = scene(ESTIMATE_KNEE, 40);
	uint64_t before;

	estimate_probe_at(&s.estimate, UINT64_MAX, ESTIMATE_PROBE_NONE);
	for (uint32_t n = 0; n < 400; n++) {
		struct estimate_window window = busy(&s, 16);

		if (n % 10 >= of_ten)
			window.in_flight_time = 0;
		learn(&s, window);
	}
	before = estimate_report(&s.estimate).busy;
	for (int n = 0; n < 4; n++) {
		struct estimate_window window = busy(&s, 16);

		window.length_ns = 10 * MS;
		window.rtt_sum_ns = window.rtt_sum_ns / window.ok * 32;
		window.ok = 32;
		window.in_flight_time /= 10;
		learn(&s, window);
	}
	return estimate_report(&s.estimate).busy * 100 / before;
}

/* L rises with the largest report, so chance would raise it. */
static void test_full_reports_two_beats(void **unused)
{
	(void)unused;

	assert_in_range(report_after_a_burst(10), 98, 105);
	assert_in_range(report_after_a_burst(5), 140, 200);
}

/* ESTIMATE-4: nothing is answered any more, or everything is dropped. */
static void test_probe_ends_by_time(void **unused)
{
	(void)unused;

	for (uint32_t dropped = 0; dropped <= 5; dropped += 5) {
		struct scene s = scene(ESTIMATE_KNEE, 40);
		uint64_t began;

		until_probe(&s);
		began = s.now_ns;
		while (s.estimate.phase != ESTIMATE_STEADY) {
			assert_true(estimate_next_ns(&s.estimate) < began + 1000 * MS);
			learn(&s,
			      (struct estimate_window){
				  .length_ns = estimate_next_ns(&s.estimate) - s.now_ns,
				  .dropped = dropped });
		}
		assert_in_range(s.now_ns - began, 1, 1000 * MS);
	}
}

/* Whether the window ends that has gone on for so long in the phase that is running. */
static bool ends_after(const struct scene *s, uint64_t length_ns, uint32_t ok)
{
	return estimate_due(&s->estimate,
	                    &(struct estimate_window){ .now_ns = s->now_ns + length_ns,
	                                               .length_ns = length_ns,
	                                               .ok = ok,
	                                               .in_flight_time = 1 });
}

/* Of round trips of 10 us: a quarter of a millisecond, but if few are answered; and in a fleet
 * longer, however many are. */
static void test_short_probes(void **unused)
{
	const struct {
		bool aligned;
		uint64_t drains_ns, measures_ns, most_ns;
	} cases[] = { { false, 62500, 187500, 2 * MS }, { true, 250000, MS, MS } };
	(void)unused;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct scene s = scene(ESTIMATE_KNEE, 40);

		while (s.estimate.phase == ESTIMATE_STEADY) {
			struct estimate_window window = calm(10000);

			window.refused = 1;
			if (cases[i].aligned)
				estimate_probe_at(&s.estimate, s.now_ns + 1,
				                  ESTIMATE_PROBE_SLOPE);
			learn(&s, window);
		}
		assert_false(ends_after(&s, cases[i].drains_ns - 1, 1000));
		assert_true(ends_after(&s, cases[i].drains_ns, 0));
		learn(&s, (struct estimate_window){ .length_ns = cases[i].drains_ns });
		assert_int_equal(s.estimate.phase, ESTIMATE_MEASURING);
		assert_false(ends_after(&s, cases[i].measures_ns - 1, 1000));
		assert_true(ends_after(&s, cases[i].measures_ns, 128));
		assert_false(ends_after(&s, cases[i].most_ns - 1, 127));
		assert_true(ends_after(&s, cases[i].most_ns, 0));
	}
}

static void test_probe_at_an_instant(void **unused)
{
	struct scene s = scene(ESTIMATE_KNEE, 40);
	struct estimate_window so_far = { .length_ns = MS };
	(void)unused;

	estimate_probe_at(&s.estimate, UINT64_MAX, ESTIMATE_PROBE_NONE);
	for (int n = 0; n < 100; n++) {
		learn(&s, busy(&s, 16));
		assert_int_equal(s.estimate.phase, ESTIMATE_STEADY);
	}
	estimate_probe_at(&s.estimate, s.now_ns + 3 * MS, ESTIMATE_PROBE_SLOPE);
	assert_int_equal(estimate_next_ns(&s.estimate), s.now_ns + 3 * MS);
	so_far.now_ns = s.now_ns + 3 * MS - 1;
	assert_false(estimate_due(&s.estimate, &so_far));
	so_far.now_ns++;
	assert_true(estimate_due(&s.estimate, &so_far));
	learn(&s, (struct estimate_window){ .length_ns = 3 * MS });
	assert_int_equal(s.estimate.phase, ESTIMATE_DRAINING);
	/* The next is told while this one runs, and the one after it. */
	estimate_probe_at(&s.estimate, s.now_ns + 5000 * MS, ESTIMATE_PROBE_DRAIN);
	while (s.estimate.phase != ESTIMATE_STEADY)
		learn(&s, busy(&s, 16));
	assert_int_equal(s.estimate.which, ESTIMATE_PROBE_DRAIN);
	estimate_probe_at(&s.estimate, s.now_ns + 9000 * MS, ESTIMATE_PROBE_SLOPE);
	assert_int_equal(s.estimate.which, ESTIMATE_PROBE_DRAIN);
	assert_true(estimate_next_ns(&s.estimate) < s.now_ns + 5000 * MS);
	estimate_probe_alone(&s.estimate);
	for (int n = 0; n < 30; n++)
		learn(&s, busy(&s, 16));
	until_probe(&s);
}

/* Five round trips of 1 s do not fit between two probes: one in sixteen takes place, and the
 * kinds still take turns. */
static void test_long_probes_are_fewer(void **unused)
{
	struct scene s = scene(ESTIMATE_KNEE, 40);
	uint32_t probes = 0, drains = 0;
	(void)unused;

	estimate_probe_at(&s.estimate, 0, ESTIMATE_PROBE_NONE);
	learn(&s, calm(1000 * MS));
	for (uint64_t number = 1; number <= 96; number++) {
		struct estimate told = s.estimate;

		estimate_probe_told(&told, number, s.now_ns + MS, 1000 * MS);
		if (estimate_next_ns(&told) == UINT64_MAX)
			continue;
		assert_int_equal(number % 16, 0);
		probes++;
		drains += told.which == ESTIMATE_PROBE_DRAIN;
	}
	assert_int_equal(probes, 6);
	assert_int_equal(drains, 2);
}

static void test_due(void **unused)
{
	struct scene s = scene(ESTIMATE_KNEE, 20);
	const struct {
		uint64_t length_ns;
		uint32_t ok;
		bool due;
	} cases[] = {
		{ 19 * MS, 1000, false }, /* less than two round trips */
		{ 20 * MS, 40, true },    { 20 * MS, 39, false },
		{ 100 * MS, 9, false },   { 100 * MS, 10, true },
		{ 1079 * MS, 0, false },  { 1080 * MS, 0, true },
	};
	(void)unused;

	learn(&s, calm(10 * MS));
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct estimate_window so_far = { .now_ns = 1,
			                          .length_ns = cases[i].length_ns,
			                          .ok = cases[i].ok,
			                          .in_flight_time = 1 };

		assert_int_equal(estimate_due(&s.estimate, &so_far), cases[i].due);
	}
	/* Nothing is in flight, nothing comes. */
	assert_true(estimate_due(&s.estimate,
	                         &(struct estimate_window){ .length_ns = 120 * MS }));
}

/* ---- Numbers and random windows --------------------------------------------------- */

static void test_root(void **unused)
{
	struct chance chance = { 1 };
	(void)unused;

	assert_int_equal(estimate_root(0), 0);
	for (int n = 0; n < 10000; n++) {
		uint64_t square = chance_log(&chance, UINT64_MAX / 2);
		uint64_t root = estimate_root(square);

		assert_true(root * root <= square);
		assert_true((root + 1) * (root + 1) > square);
	}
}

static struct estimate_window anything(struct chance *c)
{
	struct estimate_window window = {
		.length_ns = chance_log(c, UINT64_C(1) << 40),
		.ok = (uint32_t)chance_log(c, 1000000) - 1,
		.dropped = chance_one_in(c, 4) ? (uint32_t)chance_log(c, 1000000) : 0,
		.ignored = (uint32_t)chance_log(c, 1000),
		.refused = chance_one_in(c, 2) ? (uint32_t)chance_log(c, 1000000) : 0,
		.in_flight_peak = (uint32_t)chance_log(c, ESTIMATE_MOST),
	};

	window.rtt_sum_ns = (chance_log(c, UINT64_C(1) << 42) - 1) * window.ok;
	return window;
}

static void check(const struct scene *s, const struct estimate_window *window,
                  uint32_t before)
{
	const struct estimate *estimate = &s->estimate;
	uint32_t limit = estimate_limit(estimate);
	uint32_t admits = estimate_ceiling(estimate, s->share);

	assert_in_range(limit, estimate->set.floor, estimate->set.ceiling);
	assert_in_range(admits, !estimate->aligned, limit);
	assert_true(admits <= s->share);
	if (limit > before)
		assert_true(
		    estimate_used(window, before < s->share ? before : s->share));
	if (limit > before && estimate->set.law == ESTIMATE_KNEE)
		assert_true(window->refused > 0);
}

/* ESTIMATE-1 to ESTIMATE-3, whatever is counted. */
static void test_random_windows(void **unused)
{
	(void)unused;

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct scene s = scene(laws[seed % COUNT(laws)], 20);
		struct chance *c = &s.chance;
		uint32_t ceiling = (uint32_t)chance_log(c, ESTIMATE_MOST);
		struct estimate_settings settings = {
			.law = laws[seed % COUNT(laws)],
			.ceiling = ceiling,
			.floor = (uint32_t)chance_log(c, ceiling),
		};

		c->state = seed;
		assert_int_equal(estimate_init(&s.estimate, &settings), ESTIMATE_VALID);
		for (int n = 0; n < 300; n++) {
			uint32_t before = estimate_limit(&s.estimate);
			struct estimate_window window = anything(c);

			s.share = (uint32_t)chance_log(c, ESTIMATE_MOST);
			if (chance_one_in(c, 20))
				estimate_probe_at(&s.estimate, s.now_ns,
				                  ESTIMATE_PROBE_SLOPE);
			if (chance_one_in(c, 20))
				estimate_probe_alone(&s.estimate);
			learn(&s, window);
			check(&s, &window, before);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_idle_keeps),
		cmocka_unit_test(test_knee_decides_where_calls_are_refused),
		cmocka_unit_test(test_refusals_make_it_grow),
		cmocka_unit_test(test_share_is_what_is_used),
		cmocka_unit_test(test_drops_lower_it),
		cmocka_unit_test(test_drops_are_no_round_trips),
		cmocka_unit_test(test_a_call_that_is_kept_out_is_let_in),
		cmocka_unit_test(test_who_has_no_answer_has_no_say),
		cmocka_unit_test(test_knee_tells_no_limit),
		cmocka_unit_test(test_late_answers_lower_it),
		cmocka_unit_test(test_best_is_forgotten_by_time),
		cmocka_unit_test(test_one_answer_is_a_window),
		cmocka_unit_test(test_knee_is_measured),
		cmocka_unit_test(test_full_reports_less),
		cmocka_unit_test(test_full_reports_two_beats),
		cmocka_unit_test(test_probe_ends_by_time),
		cmocka_unit_test(test_short_probes),
		cmocka_unit_test(test_probe_at_an_instant),
		cmocka_unit_test(test_long_probes_are_fewer),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_random_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
