/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* laws.c -- the windows of a guard, as the library's guard counts them. */
#include "sim/laws.h"

#include <string.h>

#include "engine/check.h"
#include "sim/random.h"

/* ---- Those of the library ----------------------------------------------------------- */

static void open_as(union guard *guard, const struct estimate_settings *settings,
                    uint64_t seed, enum estimate_law law)
{
	struct estimate_settings set = *settings;

	set.law = law;
	*guard = (union guard){ .shipped = { .chance = seed } };
	gale_assert(estimate_init(&guard->shipped.estimate, &set) == ESTIMATE_VALID);
}

static void open_knee(union guard *guard, const struct estimate_settings *settings,
                      uint64_t seed)
{
	open_as(guard, settings, seed, ESTIMATE_KNEE);
}

static void open_fixed(union guard *guard, const struct estimate_settings *settings,
                       uint64_t seed)
{
	open_as(guard, settings, seed, ESTIMATE_FIXED);
}

static void open_aimd(union guard *guard, const struct estimate_settings *settings,
                      uint64_t seed)
{
	open_as(guard, settings, seed, ESTIMATE_AIMD);
}

static void open_gradient(union guard *guard, const struct estimate_settings *settings,
                          uint64_t seed)
{
	open_as(guard, settings, seed, ESTIMATE_GRADIENT);
}

static void move(struct shipped *s, uint64_t now_ns, uint32_t in_flight)
{
	s->window.in_flight_time += s->in_flight * (now_ns - s->moved_ns);
	s->moved_ns = now_ns;
	s->in_flight = in_flight;
	if (s->window.in_flight_peak < in_flight)
		s->window.in_flight_peak = in_flight;
}

static void turn(struct shipped *s, uint64_t now_ns, uint32_t share)
{
	uint32_t limit = estimate_limit(&s->estimate);
	enum estimate_phase phase = s->estimate.phase;
	struct chance chance = { s->chance };

	move(s, now_ns, s->in_flight);
	s->window.now_ns = now_ns;
	s->window.length_ns = now_ns - s->began_ns;
	if (!estimate_due(&s->estimate, &s->window))
		return;
	estimate_learn(&s->estimate, &s->window, share < limit ? share : limit,
	               chance_next(&chance));
	s->chance = chance.state;
	if (phase == ESTIMATE_STEADY && s->estimate.phase != ESTIMATE_STEADY)
		s->probes[s->estimate.which]++;
	s->window = (struct estimate_window){ .in_flight_peak = s->in_flight };
	s->began_ns = now_ns;
}

static void shipped_entered(union guard *guard, uint64_t now_ns, uint32_t in_flight)
{
	move(&guard->shipped, now_ns, in_flight);
}

static void shipped_refused(union guard *guard, uint64_t now_ns, uint32_t share)
{
	guard->shipped.window.refused++;
	turn(&guard->shipped, now_ns, share);
}

static void shipped_ended(union guard *guard, const struct ended *ended,
                          uint32_t in_flight)
{
	struct shipped *s = &guard->shipped;
	struct estimate_window *window = &s->window;

	move(s, ended->now_ns, in_flight);
	if (ended->dropped) {
		window->dropped++;
	} else {
		window->rtt_sum_ns += ended->rtt_ns;
		window->ok++;
	}
	turn(s, ended->now_ns, ended->share);
}

static void shipped_look(union guard *guard, uint64_t now_ns, uint32_t share)
{
	turn(&guard->shipped, now_ns, share);
}

static uint32_t shipped_ceiling(union guard *guard, uint32_t share, uint64_t now_ns)
{
	(void)now_ns;
	return estimate_ceiling(&guard->shipped.estimate, share);
}

static uint32_t shipped_limit(union guard *guard, uint32_t share, uint64_t now_ns)
{
	uint32_t limit = estimate_limit(&guard->shipped.estimate);

	(void)now_ns;
	return share < limit ? share : limit;
}

#define SHIPPED(word, opens, says)                                                     \
	static const struct law word = {                                               \
		.name = #word,                                                         \
		.about = says,                                                         \
		.open = opens,                                                         \
		.entered = shipped_entered,                                            \
		.refused = shipped_refused,                                            \
		.ended = shipped_ended,                                                \
		.look = shipped_look,                                                  \
		.ceiling = shipped_ceiling,                                            \
		.limit = shipped_limit,                                                \
		.shipped = true,                                                       \
	}

SHIPPED(knee, open_knee, "the default");
SHIPPED(fixed, open_fixed, "always its start");
SHIPPED(aimd, open_aimd, "one more, a tenth less");
SHIPPED(gradient, open_gradient, "best round trip / round trip");

/* ---- Ports -------------------------------------------------------------------------- */

#define WINDOW_NS UINT64_C(100000000)
#define WINDOW_OK 10
#define SHORTEST_NS 100000 /* netflix: a shorter answer does not count */

static void port_entered(union guard *guard, uint64_t now_ns, uint32_t in_flight)
{
	(void)now_ns;
	guard->port.in_flight = in_flight;
}

static void port_refused(union guard *guard, uint64_t now_ns, uint32_t share)
{
	(void)guard;
	(void)now_ns;
	(void)share;
}

/* True at the end of a window, of which *ret_mean_ns is the mean. */
static bool in_window(struct ported *port, const struct ended *ended,
                      struct port_window *ret_window)
{
	struct port_window *window = &port->window;

	window->dropped = window->dropped || ended->dropped;
	if (!ended->dropped && ended->rtt_ns >= SHORTEST_NS) {
		window->sum_ns += (double)ended->rtt_ns;
		window->ok++;
		if (window->in_flight < ended->in_flight)
			window->in_flight = ended->in_flight;
	}
	if (ended->now_ns < window->began_ns + WINDOW_NS)
		return false;
	*ret_window = *window;
	if (window->ok < WINDOW_OK)
		return false;
	*window = (struct port_window){ .began_ns = ended->now_ns };
	return true;
}

static void open_predecessor(union guard *guard,
                             const struct estimate_settings *settings, uint64_t seed)
{
	uint32_t start = settings->start ? settings->start : ESTIMATE_START_DEFAULT;

	(void)seed;
	memset(guard, 0, sizeof(*guard));
	predecessor_open(&guard->port.law.predecessor, start, 4, 512);
}

static void open_predecessor_aimd(union guard *guard,
                                  const struct estimate_settings *settings,
                                  uint64_t seed)
{
	open_predecessor(guard, settings, seed);
	guard->port.law.predecessor.aimd = true;
}

/* Whole milliseconds, as its clock has. */
static void predecessor_ended(union guard *guard, const struct ended *ended,
                              uint32_t in_flight)
{
	uint64_t ms = 1000000;

	guard->port.in_flight = in_flight;
	predecessor_learn(
	    &guard->port.law.predecessor,
	    (double)(ended->now_ns / ms - (ended->now_ns - ended->rtt_ns) / ms),
	    ended->in_flight, ended->dropped);
}

static uint32_t predecessor_limit(union guard *guard, uint32_t share, uint64_t now_ns)
{
	(void)share;
	(void)now_ns;
	return (uint32_t)guard->port.law.predecessor.estimate;
}

static void open_vegas(union guard *guard, const struct estimate_settings *settings,
                       uint64_t seed)
{
	uint32_t start = settings->start ? settings->start : ESTIMATE_START_DEFAULT;

	memset(guard, 0, sizeof(*guard));
	vegas_open(&guard->port.law.vegas, start, 1000, seed);
}

static void vegas_ended(union guard *guard, const struct ended *ended,
                        uint32_t in_flight)
{
	struct port_window window;

	guard->port.in_flight = in_flight;
	if (in_window(&guard->port, ended, &window))
		vegas_learn(&guard->port.law.vegas, window.sum_ns / window.ok,
		            window.in_flight, window.dropped);
}

static uint32_t vegas_limit(union guard *guard, uint32_t share, uint64_t now_ns)
{
	(void)share;
	(void)now_ns;
	return (uint32_t)guard->port.law.vegas.limit;
}

static void open_gradient2(union guard *guard, const struct estimate_settings *settings,
                           uint64_t seed)
{
	uint32_t start = settings->start ? settings->start : ESTIMATE_START_DEFAULT;

	(void)seed;
	memset(guard, 0, sizeof(*guard));
	gradient2_open(&guard->port.law.gradient2, start, start < 20 ? start : 20, 200);
}

static void gradient2_ended(union guard *guard, const struct ended *ended,
                            uint32_t in_flight)
{
	struct port_window window;

	guard->port.in_flight = in_flight;
	if (in_window(&guard->port, ended, &window))
		gradient2_learn(&guard->port.law.gradient2, window.sum_ns / window.ok,
		                window.in_flight);
}

static uint32_t gradient2_limit(union guard *guard, uint32_t share, uint64_t now_ns)
{
	(void)share;
	(void)now_ns;
	return (uint32_t)guard->port.law.gradient2.limit;
}

static void open_envoy(union guard *guard, const struct estimate_settings *settings,
                       uint64_t seed)
{
	(void)settings;
	memset(guard, 0, sizeof(*guard));
	envoy_open(&guard->port.law.envoy, 3, 0, seed);
}

static void envoy_ended(union guard *guard, const struct ended *ended,
                        uint32_t in_flight)
{
	guard->port.in_flight = in_flight;
	if (!ended->dropped)
		envoy_learn(&guard->port.law.envoy, ended->now_ns, ended->rtt_ns);
}

static uint32_t envoy_ceiling(union guard *guard, uint32_t share, uint64_t now_ns)
{
	(void)share;
	envoy_turn(&guard->port.law.envoy, now_ns);
	return guard->port.law.envoy.limit;
}

static uint32_t envoy_limit(union guard *guard, uint32_t share, uint64_t now_ns)
{
	const struct envoy *envoy = &guard->port.law.envoy;

	(void)share;
	(void)now_ns;
	return envoy->deferred ? envoy->deferred : envoy->limit;
}

static void open_failsafe(union guard *guard, const struct estimate_settings *settings,
                          uint64_t seed)
{
	uint32_t start = settings->start ? settings->start : ESTIMATE_START_DEFAULT;

	(void)seed;
	memset(guard, 0, sizeof(*guard));
	failsafe_open(&guard->port.law.failsafe, start);
}

static void failsafe_ended(union guard *guard, const struct ended *ended,
                           uint32_t in_flight)
{
	struct failsafe *failsafe = &guard->port.law.failsafe;

	/* The call that ended still has its permit. */
	guard->port.in_flight = in_flight;
	failsafe_learn(failsafe, ended->now_ns, (double)ended->rtt_ns, ended->in_flight,
	               in_flight + 1 >= (uint32_t)failsafe->limit, ended->dropped);
}

static uint32_t failsafe_limit(union guard *guard, uint32_t share, uint64_t now_ns)
{
	(void)share;
	(void)now_ns;
	return (uint32_t)guard->port.law.failsafe.limit;
}

static void open_breakwater(union guard *guard,
                            const struct estimate_settings *settings, uint64_t seed)
{
	(void)seed;
	memset(guard, 0, sizeof(*guard));
	guard->port.law.breakwater.credits =
	    settings->start ? settings->start : ESTIMATE_START_DEFAULT;
}

static void breakwater_told(union guard *guard, uint64_t objective_ns)
{
	struct breakwater *breakwater = &guard->port.law.breakwater;

	breakwater_open(breakwater, breakwater->credits, 1000, objective_ns);
}

static void breakwater_ended(union guard *guard, const struct ended *ended,
                             uint32_t in_flight)
{
	struct breakwater *breakwater = &guard->port.law.breakwater;

	guard->port.in_flight = in_flight;
	breakwater_turn(breakwater, ended->now_ns);
	breakwater->delay_ns = ended->delay_ns;
}

/* With nothing in flight it would not hear that the queue is gone. */
static uint32_t breakwater_ceiling(union guard *guard, uint32_t share, uint64_t now_ns)
{
	struct breakwater *breakwater = &guard->port.law.breakwater;

	(void)share;
	breakwater_turn(breakwater, now_ns);
	if (breakwater_drops(breakwater) && guard->port.in_flight > 0)
		return 0;
	return breakwater->credits;
}

static uint32_t breakwater_limit(union guard *guard, uint32_t share, uint64_t now_ns)
{
	(void)share;
	(void)now_ns;
	return guard->port.law.breakwater.credits;
}

#define PORT(id, word, says, opens, ends, admits, limits)                              \
	static const struct law id = {                                                 \
		.name = word,                                                          \
		.about = says,                                                         \
		.open = opens,                                                         \
		.entered = port_entered,                                               \
		.refused = port_refused,                                               \
		.ended = ends,                                                         \
		.ceiling = admits,                                                     \
		.limit = limits,                                                       \
	}

PORT(predecessor, "predecessor", "gradient2 of the predecessor", open_predecessor,
     predecessor_ended, predecessor_limit, predecessor_limit);
PORT(predecessor_aimd, "predecessor-aimd", "aimd of the predecessor",
     open_predecessor_aimd, predecessor_ended, predecessor_limit, predecessor_limit);
PORT(vegas, "vegas", "Netflix Vegas", open_vegas, vegas_ended, vegas_limit,
     vegas_limit);
PORT(gradient2, "gradient2", "Netflix Gradient2", open_gradient2, gradient2_ended,
     gradient2_limit, gradient2_limit);
PORT(envoy, "envoy", "Envoy gradient", open_envoy, envoy_ended, envoy_ceiling,
     envoy_limit);
PORT(failsafe, "failsafe-go", "failsafe-go adaptive limiter", open_failsafe,
     failsafe_ended, failsafe_limit, failsafe_limit);
static const struct law breakwater = {
	.name = "breakwater",
	.about = "Breakwater, whose server sees its queue, and knows the objective",
	.open = open_breakwater,
	.told = breakwater_told,
	.entered = port_entered,
	.refused = port_refused,
	.ended = breakwater_ended,
	.ceiling = breakwater_ceiling,
	.limit = breakwater_limit,
};

/* ---- All ---------------------------------------------------------------------------- */

const struct law *const laws[] = {
	&knee,  &gradient,  &aimd,  &fixed,    &predecessor, &predecessor_aimd,
	&vegas, &gradient2, &envoy, &failsafe, &breakwater,
};
const size_t law_count = sizeof(laws) / sizeof(laws[0]);

const struct law *law_named(const char *name)
{
	for (size_t i = 0; i < law_count; i++)
		if (strcmp(laws[i]->name, name) == 0)
			return laws[i];
	return NULL;
}
