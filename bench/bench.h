/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * bench.h -- how a question is asked of the machine, from C.
 *
 * A question is a file; what it measures are rows.  A row is a function that does
 * something over and over, and may name a floor: the row that does the bare work.
 *
 *	static void swap(struct bench *b)
 *	{
 *		for (uint64_t n; (n = bench_batch(b)) > 0;)
 *			while (n-- > 0)
 *				something();
 *	}
 *	bench_add(&(struct bench_row){ .name = "steps/gcra", .run = swap,
 *	                               .floor = "floors/compare and swap", .bar = 6 });
 *
 * shim.cc runs all rows of a run in one random order, several times over, so that a
 * row and its floor see the same machine; the figure is the median.
 *
 * Threads   A row of several threads runs in all of them at once; its figure is the
 *           wall time over the operations of all, so twice the throughput is half the
 *           figure.  A row of one thread is measured in that thread's own time, which
 *           does not count while another has the processor; but one that waits is
 *           measured by the clock on the wall.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bench;

struct bench_row {
	const char *name; /* "question/row" */
	void (*run)(struct bench *b);
	void (*prepare)(void *arg); /* once, before the first run, never at once
	                                     with another row's; NULL: nothing to do */
	void *arg;
	int threads;         /* 0: one */
	bool waits;          /* for another process: the figure is wall time */
	uint64_t operations; /* of each thread; 0: as many as take long enough */
	const char *floor;   /* a row's name; NULL: none */
	double bar;          /* the most that it may be of its floor; 0: none */
};

/* Something that is not a time: measured once, in a process of its own. */
struct bench_figure {
	const char *name;
	const char *unit;
	double (*measure)(void *arg);
	void *arg;
	double bar; /* the most that it may be; 0: none */
};

/* Several that come of one measurement, such as the percentiles of one run. */
struct bench_figures {
	const char *const *names;
	size_t count;
	const char *unit;         /* of all */
	const char *const *units; /* or of each */
	const double *bars;       /* the most that each may be; NULL: no bars */
	void (*measure)(void *arg, double *ret_values); /* so many */
	void *arg;
	/* That measure, one after the other: each figure is the median of what they find.
	 * Each takes some memory first that is not used, so that the rest lies elsewhere.
	 * 0: one. */
	unsigned processes;
};

/* All copy what they are given, but not what it points to. */
void bench_add(const struct bench_row *row);
void bench_add_figure(const struct bench_figure *figure);
void bench_add_figures(const struct bench_figures *figures);

/* ---- Within a row ---------------------------------------------------------------- */

/* How many operations to do now, a multiple of 16; 0 when it is enough. */
uint64_t bench_batch(struct bench *b);

/* What is done between them is not measured.  Each pair adds part of a microsecond to what is. */
void bench_pause(struct bench *b);
void bench_go_on(struct bench *b);

/* Which of the row's threads this is, from 0. */
int bench_thread(const struct bench *b);

void *bench_arg(const struct bench *b);

/* To be said in the table, as a part of all operations: how many were, say, pending. */
void bench_count(struct bench *b, const char *what, uint64_t count);

/* The compiler may not leave out what leads to *what. */
static inline void bench_keep(const void *what)
{
	__asm__ volatile("" : : "r"(what) : "memory");
}

/* ---- Around the rows ------------------------------------------------------------- */

/* Is this only to see that everything runs?  Nothing then needs its full size. */
bool bench_is_smoke(void);

/* Ends the program, since what a row needs does not work. */
void bench_fail(const char *what);

static inline void bench_expect(bool works, const char *what)
{
	if (!works)
		bench_fail(what);
}

int bench_main(int argc, char **argv);

/* ---- The questions --------------------------------------------------------------- */

void ask_floors(void);
void ask_steps(void);
void ask_store(void);
void ask_asks(void);
void ask_lease_floors(void);
void ask_choices(void);
void ask_leases(void);
void ask_lease_turns(void);
void ask_guards(void);
void ask_holds(void);
void ask_tenants(void);
void ask_bytes(void);
void ask_growth(void);
void ask_redis(void);
void ask_links(void);
void ask_tls(void);
void ask_postgres(void);
void ask_misses(void);
void ask_beats(void);
void ask_fleets(void);
void ask_overload(void);
void ask_calls(void);
void ask_strict(void);

#ifdef __cplusplus
}
#endif
#endif
