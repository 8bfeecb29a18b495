/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* turns.c -- makes them, and looks at the clock. */
#include "bench/turns.h"

#include <stdlib.h>

#include "bench/bench.h"
#include "runtime/clock.h"

#define SAMPLES 1000 /* or more, to the end of a row */
#define SAMPLES_SMOKE 16
#define IN_A_ROW_MOST 64

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void time_call(struct turns *turns, unsigned call, uint64_t *ret_ns)
{
	for (unsigned i = 0; i < turns->in_a_row / 4; i++)
		turns->make(turns, call);
	for (unsigned i = 0; i < turns->in_a_row; i++) {
		uint64_t began = patience_now_ns();

		turns->make(turns, call);
		ret_ns[i] = patience_now_ns() - began;
	}
}

void turns_time(struct turns *turns, double *ret_us)
{
	static uint64_t took[TURNS_CALLS_MOST][SAMPLES + IN_A_ROW_MOST];
	size_t least = bench_is_smoke() ? SAMPLES_SMOKE : SAMPLES, count = 0;

	bench_expect(turns->calls <= TURNS_CALLS_MOST, "so many calls");
	bench_expect(turns->in_a_row <= IN_A_ROW_MOST, "so many in a row");
	for (; count < least; count += turns->in_a_row)
		for (unsigned call = 0; call < turns->calls; call++)
			time_call(turns, turns->first + call, &took[call][count]);
	for (unsigned call = 0; call < turns->calls; call++) {
		qsort(took[call], count, sizeof(took[call][0]), compare);
		ret_us[call] = (double)took[call][count / 2] / 1000;
	}
}
