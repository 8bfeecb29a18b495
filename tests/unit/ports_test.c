/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ports_test.c -- each port of another project's law against what that project expects.
 *
 * The tables are the expectations of
 *
 *     the predecessor    its reference traces, in IEEE doubles
 *     netflix            VegasLimitTest.java, ExpAvgMeasurementTest.java of
 *                        Netflix/concurrency-limits 78a74b9.  Gradient2 has no test there.
 *     envoy              gradient_controller_test.cc of envoyproxy/envoy 054694f
 *     failsafe-go        adaptivelimiter_test.go, ewma_test.go, windows_test.go of
 *                        failsafe-go/failsafe-go 06622f2
 *     Breakwater         no test of the pool there: the equations of 4.2 of the paper by hand,
 *                        with alpha, beta and the times of bw_config.h, shenango/caladan
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#include "sim/ports.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MS UINT64_C(1000000)

static void assert_near(double got, double wanted, double most)
{
	if (!(fabs(got - wanted) <= most))
		fail_msg("%.12g instead of %.12g", got, wanted);
}

/* ---- The predecessor ---------------------------------------------------------------- */

static void round_of(struct predecessor *p, double rtt_ms)
{
	uint32_t limit = (uint32_t)p->estimate;

	for (uint32_t i = 1; i <= limit; i++)
		predecessor_learn(p, rtt_ms, i, false);
}

static void test_predecessor_best(void **unused)
{
	const double rtts[] = { 10, 20, 30, 40, 5, 50, 60, 70 };
	const double best[] = { 10, 10, 10, 20, 5, 5, 5, 50 };
	struct predecessor p;
	(void)unused;

	predecessor_open(&p, 20, 4, 512);
	p.window = 3;
	for (size_t i = 0; i < COUNT(rtts); i++) {
		predecessor_learn(&p, rtts[i], 1, false);
		assert_near(p.best_ms, best[i], 0);
	}
}

static void test_predecessor_rounds(void **unused)
{
	const double grows[] = { 5.2585918045,   6.6932513094,   8.3044267378,
		                 10.7278483064,  14.2003062174,  19.8907525329,
		                 29.7012138758,  48.1332442364,  86.9190325686,
		                 174.3886667208, 349.2513436805, 512 };
	const double shrinks[] = { 12.3385507432, 9.6618220402, 8.1550593029,
		                   7.2679996587,  6.5848570160, 6.1749647072,
		                   5.8345039172,  5.5506483832 };
	struct predecessor p;
	(void)unused;

	predecessor_open(&p, 4, 4, 512);
	p.window = 0;
	predecessor_learn(&p, 10, 1, false);
	assert_near(p.estimate, 4, 0);
	for (size_t i = 0; i < COUNT(grows); i++) {
		round_of(&p, 10);
		assert_near(p.estimate, grows[i], 1e-9);
	}
	predecessor_open(&p, 30, 4, 30);
	p.window = 0;
	predecessor_learn(&p, 10, 1, false);
	for (size_t i = 0; i < COUNT(shrinks); i++) {
		round_of(&p, 500);
		assert_near(p.estimate, shrinks[i], 1e-9);
	}
}

static void test_predecessor_steps(void **unused)
{
	const double drops[] = { 92, 84.7183326093251, 78.08735059289145,
		                 72.04595648082095, 66.53895862351052 };
	const struct {
		double rtt, estimate;
	} steps[] = {
		{ 10, 51.414213562373 }, { 15, 51.414213562373 },
		{ 20, 51.414213562373 }, { 25, 49.414213562373 },
		{ 30, 48.080880229040 }, { 40, 46.414213562373 },
		{ 90, 46.414213562373 },
	};
	struct predecessor p;
	(void)unused;

	predecessor_open(&p, 100, 4, 512);
	for (size_t i = 0; i < COUNT(drops); i++) {
		predecessor_learn(&p, 10, 100, true);
		assert_near(p.estimate, drops[i], 1e-12);
	}
	for (size_t i = 0; i < COUNT(steps); i++) {
		predecessor_open(&p, 50, 4, 512);
		predecessor_learn(&p, 10, 1, false);
		predecessor_learn(&p, steps[i].rtt, 50, false);
		assert_near(p.estimate, steps[i].estimate, 1e-12);
	}
}

static void test_predecessor_aimd(void **unused)
{
	const double rounds[] = { 16, 25, 38, 58, 88, 133 };
	struct predecessor p;
	(void)unused;

	predecessor_open(&p, 10, 4, 512);
	p.aimd = true;
	predecessor_learn(&p, 10, 1, false);
	for (size_t i = 0; i < COUNT(rounds); i++) {
		round_of(&p, 10);
		assert_near(p.estimate, rounds[i], 0);
	}
	predecessor_open(&p, 100, 4, 512);
	p.aimd = true;
	predecessor_learn(&p, 10, 1, false);
	predecessor_learn(&p, 500, 1, false);
	assert_near(p.estimate, 90, 0);
	predecessor_learn(&p, 10, 1, true);
	assert_near(p.estimate, 81, 0);
}

/* ---- Netflix ------------------------------------------------------------------------ */

static void test_vegas(void **unused)
{
	const struct {
		double start, most, smoothing;
		int alpha, beta;
		bool halves;
		struct {
			double rtt_ms;
			uint32_t in_flight;
			int limit;
		} steps[3];
	} cases[] = {
		{ 10, 20, 1, 3, 6, false, { { 10, 10, 10 }, { 10, 11, 16 } } },
		{ 10, 20, 1, 3, 6, false, { { 10, 10, 10 }, { 50, 11, 9 } } },
		{ 10, 20, 1, 3, 6, false, { { 10, 10, 10 }, { 14, 14, 10 } } },
		{ 100,
		  200,
		  0.5,
		  0,
		  0,
		  true,
		  { { 10, 100, 100 }, { 20, 100, 75 }, { 20, 100, 56 } } },
		{ 100,
		  200,
		  1,
		  0,
		  0,
		  true,
		  { { 10, 100, 100 }, { 20, 100, 50 }, { 20, 100, 25 } } },
		{ 10000,
		  20000,
		  1,
		  0,
		  0,
		  false,
		  { { 10000, 5000, 10000 }, { 10000, 6000, 10024 } } },
	};
	(void)unused;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct vegas v;

		vegas_open(&v, cases[i].start, cases[i].most, i);
		v.smoothing = cases[i].smoothing;
		v.alpha = cases[i].alpha;
		v.beta = cases[i].beta;
		v.halves = cases[i].halves;
		for (size_t j = 0; j < 3 && cases[i].steps[j].limit; j++) {
			vegas_learn(&v, cases[i].steps[j].rtt_ms * 1e6,
			            cases[i].steps[j].in_flight, false);
			assert_int_equal((int)v.limit, cases[i].steps[j].limit);
		}
	}
}

static void test_fading_netflix(void **unused)
{
	struct fading f;
	(void)unused;

	fading_open(&f, 100, 10);
	for (int i = 0; i < 10; i++)
		assert_near(fading_add(&f, i + 10), 10 + i * 0.5, 0.01);
	assert_near(fading_add(&f, 100), 16.2, 0.1);
}

/* There is no test of Gradient2 there; these follow from its formula by hand. */
static void test_gradient2(void **unused)
{
	struct gradient2 g;
	(void)unused;

	gradient2_open(&g, 100, 20, 200);
	gradient2_learn(&g, 10e6, 49);
	assert_near(g.limit, 100, 0);
	gradient2_learn(&g, 10e6, 50); /* g = 1 */
	assert_near(g.limit, 100.8, 1e-9);
	gradient2_learn(&g, 100e6, 100); /* g = 1.5 * 40 / 100 */
	assert_near(g.limit, 100.8 * 0.8 + (100.8 * 0.6 + 4) * 0.2, 1e-9);
}

/* ---- Envoy -------------------------------------------------------------------------- */

static struct envoy envoy_of(uint32_t least, uint32_t wanted, double buffer)
{
	static struct envoy e;

	envoy_open(&e, least, 0, 1);
	e.interval_ns = 30000 * MS;
	e.jitter = 0;
	e.wanted = wanted;
	e.buffer = buffer;
	return e;
}

static void five(struct envoy *e, uint64_t *now_ns, uint64_t rtt_ms)
{
	for (int i = 0; i < 5; i++)
		envoy_learn(e, *now_ns, rtt_ms * MS);
	*now_ns += 101 * MS;
	envoy_turn(e, *now_ns);
}

/* MinRTTLogicTest: at its least until 50 answers have been measured. */
static void test_envoy_best(void **unused)
{
	static struct envoy e;
	(void)unused;

	e = envoy_of(7, 50, 0.25);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(e.limit, 7);
		assert_true(e.deferred > 0);
		envoy_learn(&e, 13 * MS, 13 * MS);
	}
	assert_int_equal(e.deferred, 0);
	assert_near(e.best_us, 13000, 0);
}

/* MinRTTBufferTest, ConcurrencyLimitBehaviorTestBasic */
static void test_envoy_windows(void **unused)
{
	static struct envoy e;
	uint64_t now = 1000 * MS;
	uint32_t last;
	(void)unused;

	e = envoy_of(3, 5, 0.5);
	five(&e, &now, 5);
	for (int i = 0; i < 10; i++) { /* within the buffer */
		last = e.limit;
		five(&e, &now, 6);
		assert_true(e.limit > last);
	}
	e = envoy_of(7, 5, 0.1);
	now = 1000 * MS;
	five(&e, &now, 5);
	for (int i = 0; i < 10; i++) { /* faster than the best */
		last = e.limit;
		five(&e, &now, 4);
		assert_true(e.limit >= last && e.limit <= 2 * last + 100);
	}
	for (int i = 0; i < 10; i++) { /* slower */
		last = e.limit;
		five(&e, &now, 6);
		assert_true(e.limit < last && e.limit >= 7);
	}
}

/* MinRTTReturnToPreviousLimit, MinRTTEpoch, NoSamplesTest */
static void test_envoy_measures_again(void **unused)
{
	static struct envoy e;
	uint64_t now = 1000 * MS;
	uint32_t last = 0;
	(void)unused;

	e = envoy_of(3, 5, 0.25);
	five(&e, &now, 5);
	for (int i = 0; i < 5; i++) {
		last = e.limit;
		five(&e, &now, 4);
		assert_true(e.limit > last);
	}
	last = e.limit;
	now += 500 * MS;
	envoy_turn(&e, now);
	assert_int_equal(e.limit, last);
	now += 31000 * MS;
	envoy_turn(&e, now);
	assert_int_equal(e.limit, 3);
	for (int i = 0; i < 50; i++) /* they began before */
		envoy_learn(&e, now, 31000 * MS);
	assert_int_equal(e.limit, 3);
	now += 1000 * MS;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(e.limit, 3);
		envoy_learn(&e, now, 13 * MS);
	}
	assert_int_equal(e.limit, last);
	assert_near(e.best_us, 13000, 0);
}

/* ConsecutiveMinConcurrencyReset */
static void test_envoy_at_its_least(void **unused)
{
	static struct envoy e;
	uint64_t now = 1000 * MS;
	uint32_t last;
	(void)unused;

	e = envoy_of(7, 5, 0);
	e.interval_ns = 3600000 * MS;
	five(&e, &now, 5);
	for (int i = 0; i < 12; i++)
		five(&e, &now, 10);
	assert_near(e.best_us, 10000, 0);
	for (int i = 0; i < 10; i++) {
		last = e.limit;
		five(&e, &now, 10);
		assert_true(e.limit >= last);
	}
	assert_true(e.limit > 7);
}

/* ---- failsafe-go -------------------------------------------------------------------- */

static void test_fading_failsafe(void **unused)
{
	const struct {
		uint32_t window, warm, count;
		double values[4], expected;
	} cases[] = {
		{ 5, 3, 3, { 10, 20, 30 }, 20 },
		{ 3, 2, 4, { 10, 20, 30, 40 }, 31 },
	};
	(void)unused;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fading f;

		fading_open(&f, cases[i].window, cases[i].warm);
		for (uint32_t j = 0; j < cases[i].count; j++)
			(void)fading_add(&f, cases[i].values[j]);
		assert_near(round(f.value), cases[i].expected, 0);
	}
}

static void test_correlation(void **unused)
{
	const struct {
		uint32_t count;
		double x[5], y[5], expected;
	} cases[] = {
		{ 1, { 1 }, { 2 }, 0 },
		{ 3, { 1, 2, 3 }, { 10, 20, 30 }, 1 },
		{ 3, { 1, 2, 3 }, { 30, 20, 10 }, -1 },
		{ 3, { 100, 100.1, 100.05 }, { 200, 200.1, 200.05 }, 0 },
		{ 5, { 1, 2, 3, 4, 5 }, { 10, 20, 30, 40, 50 }, 1 },
	};
	(void)unused;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct correlation c;
		double got = 0, cv;

		correlation_open(&c, 3, 0);
		for (uint32_t j = 0; j < cases[i].count; j++)
			got = correlation_add(&c, cases[i].x[j], cases[i].y[j], &cv);
		assert_near(got, cases[i].expected, 0.0001);
	}
}

static void test_rolling(void **unused)
{
	struct correlation c;
	double cv;
	(void)unused;

	correlation_open(&c, 3, 0);
	for (int i = 1; i <= 3; i++)
		(void)correlation_add(&c, 10.0 * i, 10.0 * i, &cv);
	assert_near(cv, 0.4082, 0.0001);
	(void)correlation_add(&c, 40, 40, &cv);
	assert_near(cv, 0.2722, 0.0001);
}

static void test_failsafe(void **unused)
{
	const struct {
		double rtt_ms[5];
		uint32_t in_flight;
		int limits[5];
		double recent_ms; /* 0: not asked */
	} cases[] = {
		{ { 1000, 500 }, 5, { 21, 22 }, 0 },
		{ { 2000, 2000 }, 10, { 19, 18 }, 0 },
		{ { 1300, 1300 }, 10, { 20, 20 }, 0 },
		{ { 100, 300, 200, 200, 250 }, 10, { 0 }, 200 },
	};
	static struct failsafe f;
	(void)unused;

	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t now = 0;

		failsafe_open(&f, 20);
		f.wanted = 1;
		for (int j = 0; j < 10; j++)
			(void)fading_add(&f.baseline, 1e9);
		for (int j = 0; j < 5 && cases[i].rtt_ms[j] > 0; j++) {
			now += 2000 * MS;
			f.next_ns = now - 1;
			failsafe_learn(&f, now, cases[i].rtt_ms[j] * 1e6,
			               cases[i].in_flight, false, false);
			if (cases[i].limits[j])
				assert_int_equal((int)f.limit, cases[i].limits[j]);
		}
		if (cases[i].recent_ms > 0)
			assert_near(f.recent.value, cases[i].recent_ms * 1e6, 1);
	}
}

/* ---- Breakwater --------------------------------------------------------------------- */

static void test_breakwater_steps(void **unused)
{
	static const struct {
		uint32_t clients, credits;
		uint64_t delay_us;
		uint32_t next;
	} steps[] = {
		{ 1, 20, 0, 21 },         /* + max(0.001 * 1, 1) */
		{ 100, 20, 79, 21 },      /* as long as the delay is below 80 us */
		{ 5000, 200, 79, 205 },   /* + 0.001 * 5000 */
		{ 100, 200, 80, 200 },    /* * (1 - 0.02 * 0) */
		{ 100, 200, 120, 198 },   /* * (1 - 0.02 * 40 / 80) */
		{ 100, 200, 160, 196 },   /* * (1 - 0.02 * 80 / 80) */
		{ 100, 200, 1080, 150 },  /* * (1 - 0.02 * 1000 / 80) */
		{ 100, 200, 2080, 100 },  /* * (1 - 0.02 * 2000 / 80) */
		{ 100, 200, 80000, 100 }, /* never by more than a half */
		{ 1, 19, 100, 18 },       /* 18.905: credits are whole */
		{ 1, 1, 80000, 1 },       { 1, 1000, 0, 1000 },
	};
	(void)unused;

	for (size_t i = 0; i < COUNT(steps); i++) {
		struct breakwater b;

		breakwater_open(&b, steps[i].credits, 1000, 200000);
		b.clients = steps[i].clients;
		breakwater_step(&b, steps[i].delay_us * 1000);
		assert_int_equal(b.credits, steps[i].next);
	}
}

/* One step in each 10 us of an objective of 200, and drops from 160 us on. */
static void test_breakwater_times(void **unused)
{
	struct breakwater b;
	(void)unused;

	breakwater_open(&b, 20, 1000, 200000);
	assert_int_equal(b.target_ns, 80000);
	breakwater_turn(&b, 9999);
	assert_int_equal(b.credits, 20);
	breakwater_turn(&b, 10000);
	assert_int_equal(b.credits, 21);
	breakwater_turn(&b, 45000);
	assert_int_equal(b.credits, 24);
	b.delay_ns = 159999;
	assert_false(breakwater_drops(&b));
	b.delay_ns = 160000;
	assert_true(breakwater_drops(&b));
	breakwater_turn(&b, 50000);
	assert_int_equal(b.credits, 23); /* 23.52 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_predecessor_best),
		cmocka_unit_test(test_predecessor_rounds),
		cmocka_unit_test(test_predecessor_steps),
		cmocka_unit_test(test_predecessor_aimd),
		cmocka_unit_test(test_vegas),
		cmocka_unit_test(test_fading_netflix),
		cmocka_unit_test(test_gradient2),
		cmocka_unit_test(test_envoy_best),
		cmocka_unit_test(test_envoy_windows),
		cmocka_unit_test(test_envoy_measures_again),
		cmocka_unit_test(test_envoy_at_its_least),
		cmocka_unit_test(test_fading_failsafe),
		cmocka_unit_test(test_correlation),
		cmocka_unit_test(test_rolling),
		cmocka_unit_test(test_failsafe),
		cmocka_unit_test(test_breakwater_steps),
		cmocka_unit_test(test_breakwater_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
