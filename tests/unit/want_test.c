/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * want_test.c -- what a node wants rises at once and falls within two beats; WANT-1.
 *
 * A beat is a second; instants are in milliseconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/want.h"

#define BEAT_NS UINT64_C(1000000000)

static void note(struct want *want, uint64_t ms, uint32_t in_use, bool limited)
{
	want_note(want, in_use, limited, BEAT_NS, (mono){ ms * 1000000 });
}

static void test_demand(void **unused)
{
	static const struct {
		uint64_t ms;
		uint32_t in_use, demand;
	} beats[] = {
		{ 1000, 7, 7 },
		{ 1000, 10, 10 },           /* up at once */
		{ 2000, 0, 5 },             /* a half of the way down */
		{ 2500, 0, 4 },             /* 3.75 */
		{ 4500, 0, 0 },             /* two beats: all of it */
		{ 4600, 1048575, 1048575 }, /* as many as there can be */
		{ 5600, 1048575, 1048575 },
		{ 6600, 524287, 786431 },
	};
	struct want want = { .noted = { 0 } };
	(void)unused;

	for (size_t i = 0; i < sizeof(beats) / sizeof(beats[0]); i++) {
		note(&want, beats[i].ms, beats[i].in_use, false);
		assert_int_equal(want_demand(&want), beats[i].demand);
	}
}

static void test_limited(void **unused)
{
	static const struct {
		uint64_t ms;
		bool refused, limited;
	} beats[] = {
		{ 1000, false, false }, { 1100, true, true },   { 2100, false, true },
		{ 3099, false, true },  { 3100, false, false }, { 3200, true, true },
		{ 4000, true, true },   { 5999, false, true },  { 6000, false, false },
	};
	struct want want = { .noted = { 0 } };
	(void)unused;

	for (size_t i = 0; i < sizeof(beats) / sizeof(beats[0]); i++) {
		note(&want, beats[i].ms, 0, beats[i].refused);
		assert_int_equal(want_is_limited(&want), beats[i].limited);
	}
}

/* Calls come in each second one: it is never said that nothing is wanted. */
static void test_turns(void **unused)
{
	struct want want = { .noted = { 0 } };
	(void)unused;

	for (uint64_t ms = 1000; ms < 60000; ms += 100) {
		bool comes = ms / 1000 % 2 == 1;

		note(&want, ms, comes ? 20 : 0, comes);
		assert_true(want_is_limited(&want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demand),
		cmocka_unit_test(test_limited),
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
