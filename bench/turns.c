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

static uint64_t time_one(struct turns *turns, unsigned call)
{
	uint64_t began;

	if (turns->ready)
		turns->ready(turns, call);
	began = patience_now_ns();
	turns->make(turns, call);
	return patience_now_ns() - began;
}

static void time_call(struct turns *turns, unsigned call, uint64_t *ret_ns)
{
	for (unsigned i = 0; i < turns->in_a_row / 4; i++)
		(void)time_one(turns, call);
	for (unsigned i = 0; i < turns->in_a_row; i++)
		ret_ns[i] = time_one(turns, call);
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

/* ---- Figures --------------------------------------------------------------------- */

static double of_a_part(const struct turns_table *table, const double *us,
                        unsigned call)
{
	return us[call] / table->parts[call];
}

static void measure(void *arg, double *ret_values)
{
	const struct turns_table *table = arg;
	double us[TURNS_CALLS_MOST];

	table->measure(table, us);
	for (size_t i = 0; i < table->count; i++) {
		const struct turns_figure *figure = &table->figures[i];
		double part = of_a_part(table, us, figure->call);

		ret_values[i] = figure->is_ratio
		                    ? part / of_a_part(table, us, figure->floor)
		                    : part * table->units_a_us;
	}
}

static void *list_of(size_t count, size_t size)
{
	void *list = calloc(count, size);

	bench_expect(list != NULL, "memory");
	return list;
}

void turns_add(const struct turns_table *table)
{
	const char **names = list_of(table->count, sizeof(*names));
	const char **units = list_of(table->count, sizeof(*units));
	double *bars = list_of(table->count, sizeof(*bars));

	for (size_t i = 0; i < table->count; i++) {
		names[i] = table->figures[i].name;
		units[i] = table->figures[i].is_ratio ? "x" : table->unit;
		bars[i] = table->figures[i].bar;
	}
	bench_add_figures(&(struct bench_figures){ .names = names,
	                                           .count = table->count,
	                                           .units = units,
	                                           .bars = bars,
	                                           .measure = measure,
	                                           .arg = (void *)table,
	                                           .processes = table->processes });
}
