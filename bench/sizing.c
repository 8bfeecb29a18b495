/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sizing.c -- which part of a limit does a fleet leave unused, by the way to size its leases?
 *
 *     gale_sizing [--strict | --smoke]
 *
 * The fleet lives in virtual time (tests/support/sized_fleet.h) and is asked for exactly its
 * limit, so the figures are the same on each machine.  Early are windows 10 to 19 of the key,
 * late are windows 400 to 409.  A predictor is wrong by so many times.
 *
 * --strict exits with 1 if a row misses its bar.  --smoke only looks whether all of it runs.
 *
 * Threads   One.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/sized_fleet.h"

#define SMOKE_LATE 21
#define HEDGE(percent)                                                                 \
	.lease = { .sizing = GALE_SIZE_HEDGE }, .predicted_percent = (percent)
#define ODD .order_cost = 1e6, .strand_penalty = 1e-6

struct row {
	struct sized_way way;
	double bar; /* late, in percent of the limit; 0: none */
};

static const struct row rows[] = {
	{ { .name = "learned, the default" }, 3 },
	{ { .name = "EOQ", .lease = { .sizing = GALE_SIZE_EOQ } }, 15 },
	{ { .name = "HEDGE, predicted right", HEDGE(100) }, 15 },
	{ { .name = "HEDGE, predicted a tenth", HEDGE(10) }, 15 },
	{ { .name = "HEDGE, predicted 2 times", HEDGE(200) }, 15 },
	{ { .name = "HEDGE, predicted 10 times", HEDGE(1000) }, 15 },
	{ { .name = "HEDGE, predicted 100 times", HEDGE(10000) }, 15 },
	{ { .name = "HEDGE, predicted 20 times, max_size 125",
	    .lease = { .sizing = GALE_SIZE_HEDGE,
	               .max_size = SIZED_LIMIT / SIZED_NODES },
	    .predicted_percent = 2000 },
	  15 },
	{ { .name = "HEDGE, predicted right, weights 10^6 and 10^-6",
	    .lease = { .sizing = GALE_SIZE_HEDGE, ODD },
	    .predicted_percent = 100 },
	  0 },
};

static double unused(const struct sized_cost *cost)
{
	return 100 * (1 - cost->used);
}

/* Returns whether the row holds its bar. */
static bool measure(const struct row *row, uint64_t late)
{
	struct sized_cost first, last;

	sized_fleet_measure(&row->way, 100, late, &first, &last);
	printf("| %s | %.0f %% | %.0f %% | %.0f |", row->way.name, unused(&first),
	       unused(&last), last.trips);
	if (row->bar > 0)
		printf(" %.0f %% | %s |\n", row->bar,
		       unused(&last) <= row->bar ? "holds" : "misses");
	else
		printf(" | |\n");
	(void)fflush(stdout);
	return row->bar == 0 || unused(&last) <= row->bar;
}

int main(int argc, char **argv)
{
	const char *flag = argc == 2 ? argv[1] : "";
	bool is_strict = strcmp(flag, "--strict") == 0;
	bool is_smoke = strcmp(flag, "--smoke") == 0;
	bool hold = true;

	if (argc > 1 && !is_strict && !is_smoke) {
		fprintf(stderr, "gale_sizing: its flags are --strict and --smoke\n");
		return 2;
	}
	printf(
	    "| leases sized by | unused, early | late | round trips, late | bar | |\n"
	    "|---|--:|--:|--:|--:|---|\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		hold = measure(&rows[i], is_smoke ? SMOKE_LATE : SIZED_LATE) && hold;
	return is_strict && !hold ? 1 : 0;
}
