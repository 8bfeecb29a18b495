/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* ports.c -- formulas of other projects; their names for things are in the comments. */
#include "sim/ports.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double within(double x, double least, double most)
{
	return x < least ? least : x > most ? most : x;
}

/* From 0 to 1. */
static double unit(struct chance *c)
{
	return (double)(chance_next(c) >> 11) / 9007199254740992.0;
}

/* Not below 1; what Netflix and failsafe-go look up in a table. */
static int log10_of(double limit)
{
	int digits = 0;

	for (double x = limit; x >= 10; x /= 10)
		digits++;
	return digits < 1 ? 1 : digits;
}

/* ---- The predecessor ---------------------------------------------------------------- */

void predecessor_open(struct predecessor *p, double start, double least, double most)
{
	*p = (struct predecessor){
		.estimate = start,
		.least = least,
		.most = most,
		.smoothing = 0.2,
		.tolerance = 2,
		.backoff = 0.9,
		.window = PREDECESSOR_WINDOW,
	};
}

static void note_best(struct predecessor *p, double rtt_ms)
{
	const uint64_t places = PREDECESSOR_WINDOW + 1;
	uint64_t number = p->next++;

	if (p->window == 0) {
		p->best_ms = number == 0 || rtt_ms < p->best_ms ? rtt_ms : p->best_ms;
		return;
	}
	if (p->head < p->tail && p->numbers[p->head % places] + p->window <= number)
		p->head++;
	while (p->head < p->tail && p->values[(p->tail - 1) % places] >= rtt_ms)
		p->tail--;
	p->numbers[p->tail % places] = number;
	p->values[p->tail++ % places] = rtt_ms;
	p->best_ms = p->values[p->head % places];
}

static void by_gradient(struct predecessor *p, double rtt, uint32_t in_flight,
                        bool dropped)
{
	double e = p->estimate, gradient, next;

	if (dropped)
		gradient = 0.5;
	else if (rtt <= 0)
		gradient = 1;
	else
		gradient = within(p->tolerance * p->best_ms / rtt, 0.5, 1);
	if (!dropped && 2.0 * in_flight < e)
		return;
	next = e * gradient + sqrt(e);
	p->estimate =
	    within(e * (1 - p->smoothing) + next * p->smoothing, p->least, p->most);
}

static void by_steps(struct predecessor *p, double rtt, uint32_t in_flight,
                     bool dropped)
{
	if (dropped || rtt > p->tolerance * p->best_ms)
		p->estimate = fmax(p->least, floor(p->estimate * p->backoff));
	else if (2.0 * in_flight >= p->estimate)
		p->estimate = fmin(p->most, p->estimate + 1);
}

void predecessor_learn(struct predecessor *p, double rtt_ms, uint32_t in_flight,
                       bool dropped)
{
	note_best(p, rtt_ms); /* of a drop, too */
	if (p->aimd)
		by_steps(p, rtt_ms, in_flight, dropped);
	else
		by_gradient(p, rtt_ms, in_flight, dropped);
}

/* ---- Netflix Vegas ------------------------------------------------------------------ */

void vegas_open(struct vegas *v, double start, double most, uint64_t seed)
{
	*v = (struct vegas){
		.limit = start, .most = most, .smoothing = 1, .chance = { seed }
	};
	v->jitter = 0.5 + unit(&v->chance) / 2;
}

static double vegas_next(const struct vegas *v, double rtt, uint32_t in_flight,
                         bool dropped)
{
	int queue = (int)ceil(v->limit * (1 - v->best_ns / rtt));
	int step = log10_of(floor(v->limit));
	int alpha = v->alpha ? v->alpha : 3 * step, beta = v->beta ? v->beta : 6 * step;
	double less = v->halves ? v->limit / 2 : v->limit - step;

	if (dropped)
		return less;
	if (in_flight * 2.0 < v->limit)
		return v->limit;
	if (queue <= step)
		return v->limit + beta;
	if (queue < alpha)
		return v->limit + step;
	return queue > beta ? less : v->limit;
}

void vegas_learn(struct vegas *v, double rtt_ns, uint32_t in_flight, bool dropped)
{
	double next;

	v->samples++;
	if (v->jitter * 30 * v->limit <= (double)v->samples) { /* probeMultiplier */
		v->jitter = 0.5 + unit(&v->chance) / 2;
		v->samples = 0;
		v->best_ns = rtt_ns;
		return;
	}
	if (v->best_ns == 0 || rtt_ns < v->best_ns) {
		v->best_ns = rtt_ns;
		return;
	}
	next = within(vegas_next(v, rtt_ns, in_flight, dropped), 1, v->most);
	v->limit = (1 - v->smoothing) * v->limit + v->smoothing * next;
}

/* ---- Netflix Gradient2 -------------------------------------------------------------- */

void fading_open(struct fading *f, uint32_t window, uint32_t warm)
{
	*f = (struct fading){ .factor = 2.0 / (window + 1.0), .warm = warm };
}

double fading_add(struct fading *f, double value)
{
	if (f->count < f->warm) {
		f->sum += value;
		f->value = f->sum / ++f->count;
	} else {
		f->value = f->value * (1 - f->factor) + value * f->factor;
	}
	return f->value;
}

void gradient2_open(struct gradient2 *g, double start, double least, double most)
{
	*g = (struct gradient2){ .limit = start, .least = least, .most = most };
	fading_open(&g->longer, 600, 10);
}

void gradient2_learn(struct gradient2 *g, double rtt_ns, uint32_t in_flight)
{
	double longer = fading_add(&g->longer, rtt_ns), next;

	if (longer / rtt_ns > 2)
		g->longer.value *= 0.95;
	if (in_flight < g->limit / 2)
		return;
	next = g->limit * within(1.5 * longer / rtt_ns, 0.5, 1) + 4;
	g->limit = within(g->limit * 0.8 + next * 0.2, g->least, g->most);
}

/* ---- Envoy -------------------------------------------------------------------------- */

static int order(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

double quantile(float *samples, uint32_t count, uint32_t hundredths)
{
	qsort(samples, count, sizeof(*samples), order);
	return (double)samples[(uint64_t)(count - 1) * hundredths / 100];
}

static void measure_best(struct envoy *e, uint64_t now_ns)
{
	if (e->deferred)
		return;
	e->deferred = e->limit;
	e->limit = e->least;
	e->count = 0;
	e->epoch_ns = now_ns;
	e->at_least = 0;
}

void envoy_open(struct envoy *e, uint32_t least, uint64_t now_ns, uint64_t seed)
{
	memset(e, 0, sizeof(*e));
	e->limit = e->least = least;
	e->most = 1000;
	e->buffer = 0.25;
	e->wanted = 50;
	e->interval_ns = UINT64_C(60000000000);
	e->window_ns = 100000000;
	e->chance.state = seed;
	e->jitter = 0.15;
	e->measures_ns = UINT64_MAX;
	e->turns_ns = now_ns + e->window_ns;
	measure_best(e, now_ns);
}

static void has_best(struct envoy *e, uint64_t now_ns)
{
	e->best_us = quantile(e->samples, e->count, 50);
	e->count = 0;
	e->limit = e->deferred;
	e->deferred = 0;
	e->measures_ns =
	    now_ns + e->interval_ns +
	    (uint64_t)((double)e->interval_ns * e->jitter * unit(&e->chance));
	e->turns_ns = now_ns + e->window_ns;
}

static void end_window(struct envoy *e)
{
	double gradient, limit;
	uint32_t old = e->limit;

	if (e->count == 0)
		return;
	gradient = within(e->best_us * (1 + e->buffer) /
	                      fmax(1, quantile(e->samples, e->count, 50)),
	                  0.5, 2);
	e->count = 0;
	limit = old * gradient;
	e->limit = (uint32_t)within(floor(limit + sqrt(limit)), e->least, e->most);
	e->at_least = old == e->least && e->limit == e->least ? e->at_least + 1 : 0;
	if (e->at_least >= 5)
		e->measures_ns = 0;
}

void envoy_turn(struct envoy *e, uint64_t now_ns)
{
	if (e->deferred)
		return;
	while (now_ns >= e->turns_ns) {
		end_window(e);
		e->turns_ns += e->window_ns;
	}
	if (now_ns >= e->measures_ns)
		measure_best(e, now_ns);
}

void envoy_learn(struct envoy *e, uint64_t now_ns, uint64_t rtt_ns)
{
	envoy_turn(e, now_ns);
	if (now_ns - rtt_ns < e->epoch_ns)
		return;
	if (e->count < ENVOY_SAMPLES)
		e->samples[e->count++] = (float)rtt_ns / 1000;
	if (e->deferred && e->count >= e->wanted)
		has_best(e, now_ns);
}

/* ---- failsafe-go -------------------------------------------------------------------- */

/* Zeroes are not values. */
static double rolling_add(struct rolling *r, double value, bool *ret_full)
{
	double old = 0;

	*ret_full = false;
	if (value == 0)
		return 0;
	if (r->size == r->capacity) {
		*ret_full = true;
		old = r->samples[r->index];
		r->sum -= old;
		r->squares -= old * old;
	} else {
		r->size++;
	}
	r->samples[r->index] = value;
	r->sum += value;
	r->squares += value * value;
	r->index = (r->index + 1) % r->capacity;
	return old;
}

/* False: it cannot be said. */
static bool rolling_varies(const struct rolling *r, double *ret_mean,
                           double *ret_variance)
{
	if (r->size < 2)
		return false;
	*ret_mean = r->sum / r->size;
	*ret_variance = r->squares / r->size - *ret_mean * *ret_mean;
	return *ret_variance >= 0 && *ret_mean != 0;
}

void correlation_open(struct correlation *c, uint32_t capacity, uint32_t warm)
{
	memset(c, 0, sizeof(*c));
	c->x.capacity = c->y.capacity = capacity;
	c->warm = warm;
}

double correlation_add(struct correlation *c, double x, double y, double *ret_cv_y)
{
	bool full, unused;
	double old_x = rolling_add(&c->x, x, &full);
	double old_y = rolling_add(&c->y, y, &unused);
	double mean_x = 0, mean_y = 0, var_x = 0, var_y = 0;
	bool varies_x = rolling_varies(&c->x, &mean_x, &var_x);
	bool varies_y = rolling_varies(&c->y, &mean_y, &var_y);

	*ret_cv_y = 0;
	if (full)
		c->products -= old_x * old_y;
	c->products += x * y;
	if (!varies_x || !varies_y || c->x.size < c->warm)
		return 0;
	*ret_cv_y = sqrt(var_y) / mean_y;
	if (sqrt(var_x) / mean_x < 0.01 || *ret_cv_y < 0.01)
		return 0;
	return (c->products / c->x.size - mean_x * mean_y) /
	       (sqrt(var_x) * sqrt(var_y));
}

void failsafe_open(struct failsafe *f, double start)
{
	memset(f, 0, sizeof(*f));
	f->limit = start;
	f->least = 1;
	f->most = 200;
	f->factor = 5;
	f->window_ns = UINT64_C(1000000000);
	f->wanted = 50;
	fading_open(&f->recent, 5, 10);
	fading_open(&f->baseline, 10, 10);
	correlation_open(&f->throughput, 50, 10);
	correlation_open(&f->rtt, 50, 10);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median_add(struct failsafe *f, double value)
{
	double sorted[5];

	f->median[f->median_index] = value;
	f->median_index = (f->median_index + 1) % 5;
	if (f->median_size < 4) {
		f->median_size++;
		return value;
	}
	memcpy(sorted, f->median, sizeof(sorted));
	qsort(sorted, 5, sizeof(double), by_value);
	return sorted[2];
}

/* 1: more, -1: less. */
static int direction(const struct failsafe *f, int queue, bool full, double throughput,
                     double throughput_cv, double rtt)
{
	int step = log10_of(floor(f->limit));

	if (queue > 6 * step)
		return -1;
	if (full && (throughput < 0 || (throughput < 0.3 && rtt > 0.5) ||
	             (throughput_cv < 0.2 && rtt > 0.5)))
		return -1;
	return queue < 3 * step ? 1 : 0;
}

static void failsafe_update(struct failsafe *f, double recent, bool full)
{
	double baseline = fading_add(&f->baseline, recent), cv, unused;
	int queue = (int)ceil(f->limit * (1 - baseline / recent));
	uint32_t flight = f->in_flight_most;
	double throughput =
	    correlation_add(&f->throughput, flight, flight / (recent / 1e9), &cv);
	double rtt = correlation_add(&f->rtt, flight, recent, &unused);
	int step = log10_of(floor(f->limit));
	double next = f->limit + step * direction(f, queue, full, throughput, cv, rtt);

	if (next > flight * f->factor)
		next = f->limit - step;
	f->limit = within(next, f->least, f->most);
}

void failsafe_learn(struct failsafe *f, uint64_t now_ns, double rtt_ns,
                    uint32_t in_flight, bool is_full, bool dropped)
{
	double recent, length;

	if (!dropped) {
		if (f->count == 0 || rtt_ns < f->best_ns)
			f->best_ns = rtt_ns;
		if (f->count == 0 || in_flight > f->in_flight_most)
			f->in_flight_most = in_flight;
		if (f->count < FAILSAFE_SAMPLES)
			f->samples[f->count++] = (float)rtt_ns;
	}
	if (now_ns <= f->next_ns || f->count < f->wanted)
		return;
	recent = median_add(f, quantile(f->samples, f->count, 90));
	failsafe_update(f, fading_add(&f->recent, recent), is_full);
	f->count = 0;
	length = within(f->best_ns * 2, (double)f->window_ns, 30e9);
	f->next_ns = now_ns + (uint64_t)length;
}

/* ---- Breakwater --------------------------------------------------------------------- */

void breakwater_open(struct breakwater *b, uint32_t start, uint32_t most,
                     uint64_t objective_ns)
{
	*b = (struct breakwater){
		.alpha = 0.001,
		.beta = 0.02,
		.clients = 1,
		.target_ns = objective_ns * 2 / 5,
		.step_ns = objective_ns / 20,
		.turns_ns = objective_ns / 20,
		.credits = start,
		.least = 1,
		.most = most,
	};
}

/* Credits are whole, there as here. */
void breakwater_step(struct breakwater *b, uint64_t delay_ns)
{
	double above = (double)delay_ns - (double)b->target_ns, next;

	if (above < 0)
		next = b->credits + fmax(floor(b->alpha * b->clients), 1);
	else
		next =
		    b->credits * fmax(1 - b->beta * above / (double)b->target_ns, 0.5);
	b->credits = (uint32_t)within(floor(next), b->least, b->most);
}

void breakwater_turn(struct breakwater *b, uint64_t now_ns)
{
	for (; b->turns_ns <= now_ns; b->turns_ns += b->step_ns)
		breakwater_step(b, b->delay_ns);
}

bool breakwater_drops(const struct breakwater *b)
{
	return b->delay_ns >= 2 * b->target_ns;
}
