/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * estimate.c -- settings, windows and probes: what all laws share.
 *
 *              at its instant            after a round trip
 *     STEADY ------------------> DRAINING ------------------> MEASURING
 *        ^                                                        |
 *        +--- enough answers, or its time is over (ESTIMATE-4) ---+
 *
 * How long windows and probes last follows from the round trip alone, so that a service of
 * microseconds is learned in milliseconds.  A probe of such a service ends after a quarter of a
 * millisecond, or the probe alone would take more than a fifth of a millisecond's goodput.  Nodes
 * of a fleet begin a probe at instants that differ by more than that, so their probes are longer.
 */
#include "engine/estimate.h"

#include "engine/check.h"

#define WINDOW_LEAST_NS UINT64_C(1000000)
#define WINDOW_USUAL_NS UINT64_C(100000000)
#define WINDOW_MOST_NS UINT64_C(1000000000)
#define WINDOW_OK 64       /* answers that end a window at once */
#define WINDOW_OK_LEAST 10 /* and those that end one of the usual length */
#define RTT_MOST_NS UINT64_C(3600000000000)
#define PLANNED_LEAST_NS UINT64_C(250000) /* a shorter round trip plans no time ... */
#define DRAIN_LEAST_NS UINT64_C(62500)    /* but the probe of a guard that is alone */
#define MEASURE_LEAST_NS (3 * DRAIN_LEAST_NS)
#define MEASURE_OK 128
#define INTERVAL_PROBES 16 /* between two probes, counted in probes */
#define INTERVAL_MOST_NS UINT64_C(4000000000)
#define PROBES_SKIPPED_MOST 1024
#define BASE_INTERVAL_NS UINT64_C(10000000000) /* of GRADIENT */

__extension__ typedef unsigned __int128 wide;

/* ---- Settings --------------------------------------------------------------------- */

static uint32_t or_default(uint32_t value, uint32_t preset)
{
	return value ? value : preset;
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static struct estimate_settings filled_in(const struct estimate_settings *settings)
{
	struct estimate_settings set = *settings;
	uint32_t said = most(most(set.start, set.floor), set.probe);

	set.floor = or_default(set.floor, ESTIMATE_FLOOR_DEFAULT);
	set.ceiling = or_default(set.ceiling, most(ESTIMATE_CEILING_DEFAULT, said));
	set.probe = or_default(set.probe, ESTIMATE_PROBE_DEFAULT);
	if (set.start == 0)
		set.start = ESTIMATE_START_DEFAULT < set.floor ? set.floor
		            : ESTIMATE_START_DEFAULT > set.ceiling
		                ? set.ceiling
		                : ESTIMATE_START_DEFAULT;
	return set;
}

enum estimate_error estimate_check(const struct estimate_settings *settings)
{
	struct estimate_settings set = filled_in(settings);

	if ((unsigned)set.law > ESTIMATE_GRADIENT)
		return ESTIMATE_BAD_LAW;
	if (set.ceiling > ESTIMATE_MOST)
		return ESTIMATE_BAD_CEILING;
	if (set.floor > set.ceiling)
		return ESTIMATE_BAD_FLOOR;
	if (set.start < set.floor || set.start > set.ceiling)
		return ESTIMATE_BAD_START;
	if (set.probe > set.ceiling)
		return ESTIMATE_BAD_PROBE;
	return ESTIMATE_VALID;
}

enum estimate_error estimate_init(struct estimate *ret_estimate,
                                  const struct estimate_settings *settings)
{
	enum estimate_error error = estimate_check(settings);

	if (error)
		return error;
	*ret_estimate =
	    (struct estimate){ .set = filled_in(settings), .probe_at_ns = UINT64_MAX };
	ret_estimate->limit = (uint64_t)ret_estimate->set.start * ESTIMATE_Q8;
	if (ret_estimate->set.law == ESTIMATE_KNEE)
		knee_init(ret_estimate);
	return ESTIMATE_VALID;
}

/* ---- Numbers ---------------------------------------------------------------------- */

uint64_t estimate_clamp(const struct estimate *estimate, uint64_t limit_q8)
{
	uint64_t floor = (uint64_t)estimate->set.floor * ESTIMATE_Q8;
	uint64_t ceiling = (uint64_t)estimate->set.ceiling * ESTIMATE_Q8;

	return limit_q8 < floor ? floor : limit_q8 > ceiling ? ceiling : limit_q8;
}

uint64_t estimate_rate(uint64_t ok, uint64_t length_ns)
{
	if (length_ns == 0)
		return 0;
	return (uint64_t)((wide)ok * UINT64_C(1000000000000) / length_ns);
}

/* Newton, from above: it falls until it is there. */
uint64_t estimate_root(uint64_t square)
{
	uint64_t root = UINT64_C(1)
	                << (33 - (square ? __builtin_clzll(square) : 63) / 2);
	uint64_t next;

	if (square == 0)
		return 0;
	while ((next = (root + square / root) / 2) < root)
		root = next;
	return root;
}

bool estimate_used(const struct estimate_window *window, uint32_t in_force)
{
	return window->refused > 0 || 2 * (uint64_t)window->in_flight_peak >= in_force;
}

/* ---- How long --------------------------------------------------------------------- */

static uint64_t rtt_of(const struct estimate *estimate)
{
	return estimate->rtt_ns < RTT_MOST_NS ? estimate->rtt_ns : RTT_MOST_NS;
}

static uint64_t at_least(uint64_t ns, uint64_t least_ns)
{
	return ns > least_ns ? ns : least_ns;
}

static uint64_t planned_ns(const struct estimate *estimate)
{
	return at_least(rtt_of(estimate), PLANNED_LEAST_NS);
}

uint64_t estimate_drain_ns(const struct estimate *estimate)
{
	return estimate->aligned ? planned_ns(estimate)
	                         : at_least(rtt_of(estimate), DRAIN_LEAST_NS);
}

/* The nodes of a fleet end together, so for them no count does. */
uint64_t estimate_measure_ns(const struct estimate *estimate)
{
	return (estimate->aligned ? 4 : 8) * planned_ns(estimate);
}

/* Two round trips' worth. */
static uint32_t window_ok(const struct estimate *estimate)
{
	uint32_t ok = 2 * estimate_limit(estimate);

	return ok < WINDOW_OK_LEAST ? WINDOW_OK_LEAST : ok < WINDOW_OK ? ok : WINDOW_OK;
}

static bool measured_enough(const struct estimate *estimate,
                            const struct estimate_window *so_far)
{
	return !estimate->aligned && so_far->ok >= MEASURE_OK &&
	       so_far->length_ns >= at_least(2 * rtt_of(estimate), MEASURE_LEAST_NS);
}

bool estimate_due(const struct estimate *estimate, const struct estimate_window *so_far)
{
	uint64_t rtts = 2 * rtt_of(estimate);
	uint64_t ended = (uint64_t)so_far->ok + so_far->dropped;

	if (so_far->now_ns >= estimate_next_ns(estimate))
		return true;
	if (estimate->phase == ESTIMATE_DRAINING)
		return false;
	if (estimate->phase == ESTIMATE_MEASURING)
		return measured_enough(estimate, so_far);
	if (ended == 0 && so_far->refused == 0 && so_far->in_flight_time == 0)
		return so_far->length_ns >= WINDOW_USUAL_NS + rtts;
	if (so_far->length_ns < (rtts > WINDOW_LEAST_NS ? rtts : WINDOW_LEAST_NS))
		return false;
	return ended >= window_ok(estimate) ||
	       (ended >= WINDOW_OK_LEAST && so_far->length_ns >= WINDOW_USUAL_NS) ||
	       so_far->length_ns >= WINDOW_MOST_NS + 4 * rtts;
}

uint64_t estimate_next_ns(const struct estimate *estimate)
{
	return estimate->phase == ESTIMATE_STEADY ? estimate->probe_at_ns
	                                          : estimate->phase_ends_ns;
}

/* ---- Probes ----------------------------------------------------------------------- */

static bool probes(const struct estimate *estimate)
{
	return estimate->set.law == ESTIMATE_KNEE ||
	       estimate->set.law == ESTIMATE_GRADIENT;
}

/* Between three and five quarters of the usual time. */
static uint64_t interval_ns(const struct estimate *estimate, uint64_t random)
{
	uint64_t usual = INTERVAL_PROBES * 4 * planned_ns(estimate);

	if (usual > INTERVAL_MOST_NS)
		usual = INTERVAL_MOST_NS;
	if (usual < 4 * planned_ns(estimate))
		usual = 4 * planned_ns(estimate);
	if (estimate->set.law == ESTIMATE_GRADIENT)
		usual = BASE_INTERVAL_NS;
	return usual / 4 * 3 + (uint64_t)((wide)(usual / 2) * random >> 64);
}

static void plan(struct estimate *estimate, uint64_t now_ns, uint64_t random)
{
	if (estimate->aligned) {
		/* Others have begun it without this node. */
		if (estimate->later_ns > now_ns)
			estimate->probe_at_ns = estimate->later_ns;
		estimate->which = estimate->later;
		estimate->later_ns = UINT64_MAX;
		return;
	}
	estimate->probe_at_ns = now_ns + interval_ns(estimate, random);
	estimate->which = estimate->set.law == ESTIMATE_KNEE
	                      ? estimate_probe_of(estimate->knee.probes)
	                      : ESTIMATE_PROBE_DRAIN;
}

/* Parts of a slot are rounded by lot in a fleet, so that the sum over its nodes is right. */
static void begin(struct estimate *estimate, uint64_t now_ns, uint32_t in_force,
                  uint64_t random)
{
	estimate->round = estimate->aligned ? random % 16 : 0;
	estimate->phase = ESTIMATE_DRAINING;
	estimate->phase_ends_ns = now_ns + estimate_drain_ns(estimate);
	estimate->during = (struct estimate_sum){ 0 };
	estimate->knee.forced = (uint64_t)in_force * ESTIMATE_Q8;
	estimate->probe_at_ns = UINT64_MAX;
}

static void finish(struct estimate *estimate, uint64_t now_ns, uint64_t random)
{
	estimate->phase = ESTIMATE_STEADY;
	if (estimate->set.law == ESTIMATE_KNEE)
		knee_probed(estimate);
	else
		gradient_probed(estimate, now_ns);
	plan(estimate, now_ns, random);
}

void estimate_add(struct estimate_sum *sum, const struct estimate_window *window)
{
	sum->ok += window->ok;
	sum->refused += window->refused;
	sum->rtt_sum_ns += window->rtt_sum_ns;
	sum->length_ns += window->length_ns;
	sum->flight_time += window->in_flight_time;
}

static void learn_probing(struct estimate *estimate,
                          const struct estimate_window *window, uint64_t random)
{
	if (estimate->phase == ESTIMATE_DRAINING) {
		if (window->now_ns < estimate->phase_ends_ns)
			return;
		estimate->phase = ESTIMATE_MEASURING;
		estimate->phase_ends_ns =
		    window->now_ns + estimate_measure_ns(estimate);
		return;
	}
	estimate_add(&estimate->during, window);
	if (window->now_ns >= estimate->phase_ends_ns ||
	    measured_enough(estimate, window))
		finish(estimate, window->now_ns, random);
}

/* A node that is alone probes only when its ceiling is in the way. */
static void turn_probe(struct estimate *estimate, const struct estimate_window *window,
                       uint32_t in_force, uint64_t random)
{
	if (!probes(estimate))
		return;
	if (!estimate->aligned && estimate->probe_at_ns == UINT64_MAX)
		plan(estimate, window->now_ns, random);
	if (window->now_ns < estimate->probe_at_ns)
		return;
	if (estimate->aligned || (window->refused > 0 && estimate->rtt_ns > 0))
		begin(estimate, window->now_ns, in_force, random);
	else
		plan(estimate, window->now_ns, random);
}

void estimate_probe_at(struct estimate *estimate, uint64_t when_ns,
                       enum estimate_probe which)
{
	estimate->aligned = true;
	estimate->later_ns = UINT64_MAX;
	if (!probes(estimate))
		return;
	if (which == ESTIMATE_PROBE_NONE) {
		estimate->probe_at_ns = UINT64_MAX;
	} else if (estimate->phase != ESTIMATE_STEADY ||
	           estimate->probe_at_ns < when_ns) {
		estimate->later_ns = when_ns;
		estimate->later = which;
	} else {
		estimate->probe_at_ns = when_ns;
		estimate->which = which;
	}
}

void estimate_probe_told(struct estimate *estimate, uint64_t number, uint64_t when_ns,
                         uint64_t every_ns)
{
	uint64_t each = 1, lasts;

	estimate->aligned = true;
	lasts = estimate_drain_ns(estimate) + estimate_measure_ns(estimate);
	while (every_ns * each < 2 * lasts && each < PROBES_SKIPPED_MOST)
		each *= 2;
	if (number % each == 0)
		estimate_probe_at(estimate, when_ns, estimate_probe_of(number));
}

/* In a fleet, its ceiling is made of what the nodes tell. */
static bool tells_limit(const struct estimate *estimate)
{
	return estimate->set.law == ESTIMATE_AIMD ||
	       estimate->set.law == ESTIMATE_GRADIENT;
}

void estimate_group_limit(struct estimate *estimate, uint64_t limit)
{
	estimate->group_limit = limit < ESTIMATE_MOST ? limit : ESTIMATE_MOST;
	if (tells_limit(estimate) && estimate->base.answers == 0)
		estimate->limit =
		    estimate_clamp(estimate, estimate->group_limit * ESTIMATE_Q8);
}

void estimate_probe_alone(struct estimate *estimate)
{
	if (!estimate->aligned)
		return;
	estimate->aligned = false;
	estimate->probe_at_ns = UINT64_MAX;
}

/* ---- Learning --------------------------------------------------------------------- */

/* ESTIMATE-7 */
static void let_in(struct estimate *estimate, const struct estimate_window *window)
{
	uint64_t slots = (uint64_t)window->kept_out * ESTIMATE_Q8;
	bool is_empty = window->in_flight_peak == 0 && window->in_flight_time == 0 &&
	                window->ok == 0 && window->dropped == 0;

	if (is_empty && estimate->set.law != ESTIMATE_FIXED && slots > estimate->limit)
		estimate->limit = slots;
}

void estimate_learn(struct estimate *estimate, const struct estimate_window *window,
                    uint32_t in_force, uint64_t random)
{
	if (estimate->phase != ESTIMATE_STEADY) {
		learn_probing(estimate, window, random);
		return;
	}
	if (window->ok > 0)
		estimate->rtt_ns = window->rtt_sum_ns / window->ok;
	switch (estimate->set.law) {
	case ESTIMATE_KNEE:
		knee_learn(estimate, window, in_force);
		break;
	case ESTIMATE_FIXED:
		break;
	case ESTIMATE_AIMD:
		aimd_learn(estimate, window, in_force);
		break;
	case ESTIMATE_GRADIENT:
		gradient_learn(estimate, window, in_force);
		break;
	}
	let_in(estimate, window);
	estimate->limit = estimate_clamp(estimate, estimate->limit);
	turn_probe(estimate, window, in_force, random);
}

uint32_t estimate_limit(const struct estimate *estimate)
{
	return (uint32_t)(estimate->limit / ESTIMATE_Q8);
}

uint32_t estimate_told(const struct estimate *estimate)
{
	return tells_limit(estimate) && estimate->base.answers > 0
	           ? estimate_limit(estimate)
	           : 0;
}

static uint32_t probe_ceiling(const struct estimate *estimate, uint32_t ceiling)
{
	uint64_t part = (uint64_t)ceiling * knee_probe_part(estimate->which);
	uint32_t left = (uint32_t)((part + estimate->round) / 16);

	if (estimate->set.law != ESTIMATE_KNEE)
		left = estimate->set.probe;
	else if (!estimate->aligned || estimate->set.probe > 1)
		left = most(left, estimate->set.probe);
	return left < ceiling ? left : ceiling;
}

uint32_t estimate_ceiling(const struct estimate *estimate, uint32_t share)
{
	uint32_t limit = estimate_limit(estimate);
	uint32_t ceiling = share < limit ? share : limit;

	return estimate->phase == ESTIMATE_STEADY ? ceiling
	                                          : probe_ceiling(estimate, ceiling);
}

struct estimate_report estimate_report(const struct estimate *estimate)
{
	const struct estimate_knee *knee = &estimate->knee;
	uint64_t cap = knee->cap < estimate->limit ? estimate->limit : knee->cap;

	return (struct estimate_report){
		.rate = knee->rate,
		.knee_ns = knee->knee_ns,
		.busy = knee_reported(estimate),
		.cap = (uint32_t)(estimate_clamp(estimate, cap) / ESTIMATE_Q8),
		.limited = knee->limited,
	};
}
