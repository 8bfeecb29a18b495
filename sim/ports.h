/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ports.h -- laws of other projects, written again from their formulas, to compare with.
 *
 *     predecessor   gradient2 and aimd of the system that gale follows; each answer
 *     netflix       Vegas and Gradient2 of concurrency-limits 78a74b9; windows of 100 ms
 *     envoy         gradient controller 054694f; windows of 100 ms
 *     failsafe      adaptive limiter of failsafe-go 06622f2; windows of 1 s
 *     breakwater    the credit pool of Breakwater (Cho et al., OSDI'20, 4.2), as a guard with one
 *                   client; it runs at the server, and sees the delay in its queue
 *
 * tests/unit/ports_test.c holds each to what its own project's tests expect.  They are IEEE
 * doubles, as there; no library of gale's has them.
 *
 * Threads   One.
 */
#ifndef SIM_PORTS_H
#define SIM_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/random.h"

/* ---- The predecessor ---------------------------------------------------------------- */

#define PREDECESSOR_WINDOW 100 /* answers of which the best is known */

struct predecessor {
	double estimate;
	double least, most;
	double smoothing, tolerance, backoff;
	bool aimd;
	uint32_t window; /* up to PREDECESSOR_WINDOW; 0: all answers so far */
	double best_ms;  /* 0: none yet */
	uint64_t next;   /* number of the next answer */
	uint64_t head, tail;
	uint64_t numbers[PREDECESSOR_WINDOW + 1];
	double values[PREDECESSOR_WINDOW + 1];
};

void predecessor_open(struct predecessor *p, double start, double least, double most);
/* in_flight: when the call entered, it included. */
void predecessor_learn(struct predecessor *p, double rtt_ms, uint32_t in_flight,
                       bool dropped);

/* ---- Netflix ------------------------------------------------------------------------ */

struct vegas {
	double limit;
	double most;
	double best_ns; /* 0: none yet */
	double smoothing;
	int alpha, beta; /* 0: from the limit */
	bool halves;     /* a decrease is to a half, for a test */
	double jitter;
	uint64_t samples; /* since best_ns was taken anew */
	struct chance chance;
};

void vegas_open(struct vegas *v, double start, double most, uint64_t seed);
void vegas_learn(struct vegas *v, double rtt_ns, uint32_t in_flight, bool dropped);

/* A mean that fades, after a plain mean of the first few. */
struct fading {
	double value, sum, factor;
	uint32_t count, warm;
};

void fading_open(struct fading *f, uint32_t window, uint32_t warm);
double fading_add(struct fading *f, double value);

struct gradient2 {
	double limit, least, most;
	struct fading longer;
};

void gradient2_open(struct gradient2 *g, double start, double least, double most);
void gradient2_learn(struct gradient2 *g, double rtt_ns, uint32_t in_flight);

/* ---- Envoy -------------------------------------------------------------------------- */

#define ENVOY_SAMPLES 4096 /* of a window; more are not looked at */

struct envoy {
	uint32_t limit, least, most;
	uint32_t deferred; /* the limit while the best is measured; 0: it is not */
	double best_us;
	double buffer;   /* above the best */
	uint32_t wanted; /* samples for the best */
	uint64_t interval_ns, window_ns;
	uint64_t epoch_ns;    /* calls that began before do not count */
	uint64_t measures_ns; /* when the best is measured next */
	uint64_t turns_ns;    /* when the window ends */
	uint32_t at_least;    /* windows in a row that left the limit at its least */
	uint32_t count;
	float samples[ENVOY_SAMPLES]; /* us */
	struct chance chance;
	double jitter;
};

void envoy_open(struct envoy *e, uint32_t least, uint64_t now_ns, uint64_t seed);
void envoy_learn(struct envoy *e, uint64_t now_ns, uint64_t rtt_ns);
void envoy_turn(struct envoy *e, uint64_t now_ns);

/* ---- failsafe-go -------------------------------------------------------------------- */

#define ROLLING_MOST 50
#define FAILSAFE_SAMPLES 4096

struct rolling {
	double samples[ROLLING_MOST];
	uint32_t size, index, capacity;
	double sum, squares;
};

struct correlation {
	struct rolling x, y;
	double products;
	uint32_t warm;
};

void correlation_open(struct correlation *c, uint32_t capacity, uint32_t warm);
/* Returns the coefficient; *ret_cv_y: how much y varies. */
double correlation_add(struct correlation *c, double x, double y, double *ret_cv_y);

struct failsafe {
	double limit, least, most, factor;
	uint64_t window_ns;
	uint32_t wanted;
	uint64_t next_ns;
	uint32_t in_flight_most;
	double best_ns;
	uint32_t count;
	float samples[FAILSAFE_SAMPLES];
	double median[5];
	uint32_t median_size, median_index;
	struct fading recent, baseline;
	struct correlation throughput, rtt;
};

void failsafe_open(struct failsafe *f, double start);
/* is_full: nothing more may enter. */
void failsafe_learn(struct failsafe *f, uint64_t now_ns, double rtt_ns,
                    uint32_t in_flight, bool is_full, bool dropped);

/* The value that so many hundredths of the samples do not exceed; it sorts them. */
double quantile(float *samples, uint32_t count, uint32_t hundredths);

/* ---- Breakwater --------------------------------------------------------------------- */

struct breakwater {
	double alpha, beta;
	uint32_t clients;
	uint64_t target_ns; /* d_t */
	uint64_t step_ns;   /* a round trip, from one step to the next */
	uint64_t turns_ns;
	uint64_t delay_ns; /* in the queue, as it was seen last */
	uint32_t credits, least, most;
};

/* All times follow from the objective, as in the paper's evaluation: of 200 us the target is 80,
 * and a step 10. */
void breakwater_open(struct breakwater *b, uint32_t start, uint32_t most,
                     uint64_t objective_ns);
/* One step of the pool, at that delay. */
void breakwater_step(struct breakwater *b, uint64_t delay_ns);
/* All steps up to now, at the delay that was seen last. */
void breakwater_turn(struct breakwater *b, uint64_t now_ns);
/* A call that arrives now is dropped, whatever the pool has. */
bool breakwater_drops(const struct breakwater *b);

/* ---- A guard's ---------------------------------------------------------------------- */

/* Windows of laws that take a mean of each. */
struct port_window {
	uint64_t began_ns;
	double sum_ns;
	uint32_t ok;
	uint32_t in_flight;
	bool dropped;
};

struct ported {
	struct port_window window;
	uint32_t in_flight;
	union {
		struct predecessor predecessor;
		struct vegas vegas;
		struct gradient2 gradient2;
		struct envoy envoy;
		struct failsafe failsafe;
		struct breakwater breakwater;
	} law;
};

#endif
