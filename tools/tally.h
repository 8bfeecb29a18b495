/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tally.h -- counts what really went through, per key and window, and trusts no node.
 *
 * A worker reports each ALLOW with the instants, on the tool's own clock, before it
 * asked and after it had the answer.  The store decided at some s in between and said
 * that its window ends reset_after_us after s.  Windows end at multiples of their
 * length, so the end is the multiple in
 *
 *	[before + reset_after, after + reset_after]
 *
 * A server has a clock of its own, which differs from ours by slack at most (clock.h):
 * before is moved back by that, and after forward.
 *
 * A unit that a node decided from its credit was admitted between the two instants, in one
 * of the windows that they lie in.
 *
 * None: the store's idea of time contradicts ours, a disagreement.  One: that is the
 * window.  Several, when the worker was suspended across a boundary: a stray, which
 * counts for the earliest of them that has room.
 *
 * Nothing is hidden: what is admitted while no end of a window is near counts in the
 * window it is in, whatever a node believed.  A unit that outlives its window counts in
 * the next, above what that one lends.  Nothing is invented: a unit that was decided
 * before a boundary and seen after it counts in the old window if there is room.  So an
 * overshoot is reported exactly when no choice of windows for the strays could avoid it.
 *
 * With several processes each counts for itself, in a tally whose taker is given each
 * window when it is done: first the counts and the strays that may be of it, then word
 * that it has passed.  One more tally sums up, in which each process is one worker.
 * Strays are placed there and nowhere else: only there it is known where there is room.
 *
 * A fleet with a demand (demand.h) counts its calls, too, each in the window in which it was
 * made.  Of what a window was asked for, at most all limits are owed; served is what was
 * admitted of that.  In the first windows nodes learn: of these nothing is owed.
 *
 * Threads   tally_pass, tally_count .. each worker, with its own number
 *           the others ............... one thread, the collector's
 *           tally_count may sleep while a worker or the collector is so many windows
 *           behind that there is no room; it never drops a count.
 */
#ifndef TOOLS_TALLY_H
#define TOOLS_TALLY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_WINDOW_MIN_US 10000 /* below, most admissions would be strays */
#define TALLY_HISTORY 16          /* of windows that are done */
#define TALLY_GONE UINT64_MAX     /* passed by a worker that counts no more */
#define TALLY_KEYS_MAX 1000000    /* 128 MB of counters */
#define TALLY_LEARNING 5          /* whole windows */

/* The windows, by number since 1970, that an admission may be of; none if first is
 * above last. */
struct tally_span {
	uint64_t first;
	uint64_t last;
};

/* The taker of what was counted, when it is only a part of the whole. */
struct tally_taker {
	void (*take)(struct tally_taker *self, uint32_t key, struct tally_span span,
	             uint64_t units);
	void (*asked)(struct tally_taker *self, uint64_t number, uint64_t units);
	/* All is given that was decided before then. */
	void (*passed)(struct tally_taker *self, uint64_t now_us);
};

struct tally_config {
	uint32_t keys;
	uint32_t workers;
	uint32_t ring; /* windows that may be counted at a time; at least 4 */
	uint64_t limit;
	uint64_t window_us;
	uint64_t begin_us;         /* nothing is decided before */
	uint64_t slack_us;         /* by which the store's clock may differ from ours */
	struct tally_taker *taker; /* NULL: this is the whole, and is summed up here */
};

/* One window: a finished one, or what the current one has so far. */
struct tally_window {
	uint64_t number; /* in this run, from 1 */
	uint64_t admitted;
	uint64_t asked;    /* of a demand */
	uint64_t most;     /* by one key */
	bool whole;        /* it lies inside the run from its beginning to its end */
	double undershoot; /* of its keys, in limits, the mean; 0 if it is not whole */
};

struct tally_totals {
	uint64_t admitted;      /* in all windows that are done */
	uint64_t admitted_max;  /* by one key in one window */
	uint64_t overshoot;     /* admitted_max above the limit; 0 if none */
	uint64_t disagreements; /* admissions that fit no window */
	uint64_t windows;       /* whole ones */
	double undershoot_mean; /* of whole windows and keys, in limits */
	/* Of a demand, in whole windows but for the first ones: */
	uint64_t asked_windows;
	uint64_t asked;
	uint64_t owed;
	uint64_t served;
	double served_worst; /* of owed, in one window */
};

struct tally_stray {
	struct tally_span span;
	uint32_t key;
};

struct tally_worker;

struct tally {
	/* Since it was opened. */
	struct tally_config config;
	uint64_t first; /* the number since 1970 of the run's window 1 */
	struct tally_worker *workers;
	_Atomic uint64_t *counts; /* ring × keys */
	_Atomic uint64_t *asked;  /* ring */

	_Atomic uint64_t base; /* the oldest window that may still be counted */

	pthread_mutex_t lock;
	struct tally_stray *strays; /* under the lock, as the next two */
	size_t stray_count;
	size_t stray_room;

	/* The collector's. */
	struct tally_totals totals;
	double undershoot_sum;
	struct tally_window history[TALLY_HISTORY];
	uint64_t history_count; /* ever; the last TALLY_HISTORY are kept */
};

/* A ring for so many keys (of all tallies on this machine): as long as memory allows, so
 * that no worker has to wait for those that are suspended. */
uint32_t tally_ring(uint64_t keys);

/* False if there is not enough memory. */
bool tally_open(struct tally *tally, const struct tally_config *config);
void tally_close(struct tally *tally);

/* Where an admission belongs that the store decided; a function of its arguments alone.
 */
struct tally_span tally_place(uint64_t window_us, uint64_t before_us, uint64_t after_us,
                              uint64_t reset_after_us);
/* The same for one that a node decided, with credit that lives on for so long: at most
 * until the window ends. */
struct tally_span tally_place_lent(uint64_t window_us, uint64_t before_us,
                                   uint64_t after_us, uint64_t lives_us);

/* All that this worker counts from here on was decided at now_us or later; TALLY_GONE:
 * it counts no more. */
void tally_pass(struct tally *tally, uint32_t worker, uint64_t now_us);

/* One unit of key was allowed, in one of these windows.  None of them ended before what
 * the worker has passed. */
void tally_count(struct tally *tally, uint32_t worker, uint32_t key,
                 struct tally_span span);
/* The same for so many units. */
void tally_count_units(struct tally *tally, uint32_t worker, uint32_t key,
                       struct tally_span span, uint64_t units);

/* The window that this instant is in, by its number since 1970. */
uint64_t tally_number(const struct tally *tally, uint64_t now_us);
/* So many units were asked for in that window, which the worker has not passed. */
void tally_count_asked(struct tally *tally, uint32_t worker, uint64_t number,
                       uint64_t units);

/* Finishes the windows that every worker has passed.  The run ends at stop_us, as far
 * as is known. */
void tally_fold(struct tally *tally, uint64_t stop_us);

/* Have all workers gone? */
bool tally_all_gone(const struct tally *tally);

/* Finishes all windows.  All workers have gone. */
void tally_finish(struct tally *tally, uint64_t stop_us);

/* The part of what was owed; 0 if nothing was. */
double tally_served(const struct tally_totals *totals);

struct tally_totals tally_total(const struct tally *tally);

/* The window of this instant, so far. */
struct tally_window tally_look(const struct tally *tally, uint64_t now_us);

/* Copies the newest finished windows, oldest first; returns how many. */
size_t tally_history(const struct tally *tally, struct tally_window *ret_windows,
                     size_t max);

#endif
