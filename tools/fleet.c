/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet.c -- opens the nodes, starts the workers, watches, reports.
 *
 *	nodes -> workers at the gate -> tally -> gate open -> watch -> join -> report
 *
 * The thread that calls fleet_run is the collector: it folds the tally, draws the
 * screen, and is the only one that prints.
 */
#define _GNU_SOURCE
#include "tools/fleet.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/report.h"
#include "tools/screen.h"
#include "tools/worker.h"

#define NAP_NS 5000000 /* half of the shortest window */
#define STOPWATCH_TRIES 1001
#define METRICS_MOST 64

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
};

struct fleet {
	const struct fleet_flags *flags;
	struct fleet_clock clock;
	struct load load;
	struct tally tally;
	struct node *nodes;
	struct worker *workers;
	uint32_t worker_count;
	uint32_t started;
	uint64_t begin_us;
	struct screen screen;
	struct {
		uint64_t due_us;
		uint64_t at_us;
		uint64_t decisions;
	} frame; /* the last one drawn, and the next */
};

static volatile sig_atomic_t interrupted;

static bool complain(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "gale fleet: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	return false;
}

/* ---- Nodes ----------------------------------------------------------------------- */

static enum gale_err open_limiter(const struct fleet *fleet, struct node *node)
{
	const struct fleet_flags *flags = fleet->flags;
	struct gale_limiter_config config = {
		.name = "fleet",
		.rule = gale_fixed_window(flags->limit, flags->window_us),
		.mode = flags->mode,
		.on_outage = GALE_ON_OUTAGE_DENY,
		.store = node->store,
	};

	return gale_limiter_open(node->runtime, &config, &node->limiter);
}

static enum gale_err open_node(struct fleet *fleet, struct node *node)
{
	/* All nodes share this machine: one actor each will do. */
	struct gale_config config = { .shards = 1,
		                      .max_keys = (uint32_t)fleet->flags->keys,
		                      .clock = &fleet->clock.gale };
	struct gale_store_config store = { .url = fleet->flags->store,
		                           .max_keys = fleet->flags->keys };
	enum gale_err err = gale_runtime_open(&config, &node->runtime);

	if (err == GALE_ERR_OK)
		err = gale_store_open(node->runtime, &store, &node->store);
	if (err == GALE_ERR_OK)
		err = open_limiter(fleet, node);
	return err;
}

static void close_node(struct node *node)
{
	if (node->limiter)
		gale_limiter_close(node->limiter);
	if (node->store)
		gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static bool open_nodes(struct fleet *fleet)
{
	for (uint64_t i = 0; i < fleet->flags->nodes; i++) {
		enum gale_err err = open_node(fleet, &fleet->nodes[i]);

		if (err != GALE_ERR_OK)
			return complain("a node cannot start: %s", gale_err_text(err));
	}
	return true;
}

/* ---- Workers --------------------------------------------------------------------- */

static struct worker *prepare(struct fleet *fleet, uint32_t number)
{
	struct worker *worker = &fleet->workers[number];
	struct node *node = &fleet->nodes[number / fleet->flags->threads];

	worker->load = &fleet->load;
	worker->runtime = node->runtime;
	worker->limiter = node->limiter;
	worker->number = number;
	return worker;
}

static bool start_workers(struct fleet *fleet)
{
	while (fleet->started < fleet->worker_count) {
		if (!worker_start(prepare(fleet, fleet->started)))
			return complain("--threads: this system gives no more threads");
		fleet->started++;
	}
	gate_await(&fleet->load.gate, fleet->started);
	for (uint32_t i = 0; i < fleet->started; i++)
		if (fleet->workers[i].err != GALE_ERR_OK)
			return complain("a thread cannot join: %s",
			                gale_err_text(fleet->workers[i].err));
	return true;
}

static bool begin(struct fleet *fleet)
{
	struct tally_config config = {
		.keys = (uint32_t)fleet->flags->keys,
		.workers = fleet->worker_count,
		.ring = tally_ring((uint32_t)fleet->flags->keys),
		.limit = fleet->flags->limit,
		.window_us = fleet->flags->window_us,
		.begin_us = fleet_clock_us(&fleet->clock),
	};

	if (!tally_open(&fleet->tally, &config))
		return complain("--keys: not enough memory for so many");
	fleet->load.tally = &fleet->tally;
	fleet->begin_us = fleet->frame.at_us = config.begin_us;
	fleet->frame.due_us = config.begin_us + screen_period_us(&fleet->screen);
	atomic_store(&fleet->load.stop_us, config.begin_us + fleet->flags->run_us);
	return true;
}

static void join_workers(struct fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->started; i++)
		worker_join(&fleet->workers[i]);
}

static bool check_stuck(const struct fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->started; i++)
		if (atomic_load(&fleet->workers[i].stuck))
			return complain("an answer that was promised did not come");
	return true;
}

/* ---- Looking --------------------------------------------------------------------- */

static uint64_t stop_us(const struct fleet *fleet)
{
	return atomic_load(&fleet->load.stop_us);
}

static double seconds_until(const struct fleet *fleet, uint64_t now_us)
{
	return (double)(now_us - fleet->begin_us) / 1e6;
}

static uint64_t metric(const struct node *node, const char *name)
{
	struct gale_metric metrics[METRICS_MOST];
	size_t count = gale_metrics(node->runtime, metrics, METRICS_MOST);

	for (size_t i = 0; i < count && i < METRICS_MOST; i++)
		if (strcmp(metrics[i].name, name) == 0)
			return metrics[i].value;
	return 0;
}

static uint64_t round_trips(const struct fleet *fleet)
{
	struct gale_counts stats;
	uint64_t batches = 0;

	/* All nodes have the same store; any of them knows. */
	if (gale_store_stats(fleet->nodes[0].store, &stats) != GALE_ERR_OK)
		return 0;
	for (uint64_t i = 0; i < fleet->flags->nodes; i++)
		batches += metric(&fleet->nodes[i], "lease_batches");
	return stats.steps + batches;
}

static void look(const struct fleet *fleet, struct report *report)
{
	struct histogram latency = { 0 };

	for (uint32_t i = 0; i < fleet->started; i++) {
		const struct worker *worker = &fleet->workers[i];
		uint64_t refused = atomic_load(&worker->refused);

		report->allowed += atomic_load(&worker->allowed);
		report->denied += atomic_load(&worker->denied);
		report->refused += refused;
		if (refused > 0)
			report->refused_text = gale_why_text(
			    (enum gale_why)atomic_load(&worker->refused_why));
		histogram_merge(&latency, &worker->latency_ns);
	}
	report->p50_ns = histogram_quantile(&latency, 500);
	report->p99_ns = histogram_quantile(&latency, 990);
	report->round_trips = round_trips(fleet);
}

static struct frame frame_at(struct fleet *fleet, uint64_t now_us)
{
	struct report seen = { 0 };
	struct frame frame = { .flags = fleet->flags };
	uint64_t since_us = now_us - fleet->frame.at_us;

	look(fleet, &seen);
	frame.elapsed_s = seconds_until(fleet, now_us);
	frame.decisions = seen.allowed + seen.denied;
	frame.allowed = seen.allowed;
	frame.p50_ns = seen.p50_ns;
	frame.p99_ns = seen.p99_ns;
	frame.round_trips = seen.round_trips;
	if (since_us > 0)
		frame.decisions_per_s =
		    (uint64_t)((double)(frame.decisions - fleet->frame.decisions) *
		               1e6 / (double)since_us);
	frame.now = tally_look(&fleet->tally, now_us);
	frame.last_count = tally_history(&fleet->tally, frame.last, SCREEN_WINDOWS);
	return frame;
}

/* ---- The run --------------------------------------------------------------------- */

static void draw(struct fleet *fleet, uint64_t now_us)
{
	uint64_t period_us = screen_period_us(&fleet->screen);
	struct frame frame;

	if (period_us == 0 || now_us < fleet->frame.due_us)
		return;
	frame = frame_at(fleet, now_us);
	screen_draw(&fleet->screen, &frame);
	fleet->frame.at_us = now_us;
	fleet->frame.decisions = frame.decisions;
	fleet->frame.due_us =
	    now_us + period_us - (now_us - fleet->begin_us) % period_us;
}

/* So that what stays on the terminal is the end. */
static void draw_last(struct fleet *fleet)
{
	if (fleet->screen.style != SCREEN_LIVE)
		return;
	fleet->frame.due_us = 0;
	draw(fleet, fleet_clock_us(&fleet->clock));
}

static void stop_early(struct fleet *fleet, uint64_t now_us)
{
	if (interrupted && now_us < stop_us(fleet))
		atomic_store(&fleet->load.stop_us, now_us);
}

static void watch(struct fleet *fleet)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };

	while (!tally_all_gone(&fleet->tally)) {
		uint64_t now_us = fleet_clock_us(&fleet->clock);

		stop_early(fleet, now_us);
		tally_fold(&fleet->tally, stop_us(fleet));
		draw(fleet, now_us);
		nanosleep(&nap, NULL);
	}
	draw_last(fleet);
	tally_finish(&fleet->tally, stop_us(fleet));
}

static enum fleet_status report(const struct fleet *fleet)
{
	struct report report = { .flags = *fleet->flags };

	look(fleet, &report);
	report.seconds = seconds_until(fleet, stop_us(fleet));
	report.tally = tally_total(&fleet->tally);
	report.window_count =
	    tally_history(&fleet->tally, report.windows, TALLY_HISTORY);
	if (fleet->flags->json)
		report_json(&report, stdout);
	else
		report_table(&report, stdout);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		complain("standard output: %s", strerror(errno));
		return FLEET_FAILED;
	}
	return report_status(&report) == 0 ? FLEET_HELD : FLEET_BROKEN;
}

/* The workers are at the gate. */
static enum fleet_status run_begun(struct fleet *fleet)
{
	enum fleet_status status = FLEET_FAILED;

	gate_open(&fleet->load.gate, /* give_up= */ false);
	watch(fleet);
	join_workers(fleet);
	if (check_stuck(fleet))
		status = report(fleet);
	tally_close(&fleet->tally);
	return status;
}

static enum fleet_status run_opened(struct fleet *fleet)
{
	enum fleet_status status = FLEET_FAILED;

	if (open_nodes(fleet) && start_workers(fleet) && begin(fleet)) {
		status = run_begun(fleet);
	} else {
		gate_open(&fleet->load.gate, /* give_up= */ true);
		join_workers(fleet);
	}
	for (uint64_t i = 0; i < fleet->flags->nodes; i++)
		close_node(&fleet->nodes[i]);
	return status;
}

/* ---- Setting up ------------------------------------------------------------------ */

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* The second one kills. */
static void catch_interrupts(void)
{
	struct sigaction action = { .sa_handler = on_interrupt,
		                    .sa_flags = (int)(SA_RESTART | SA_RESETHAND) };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

/* The median of reading it twice in a row. */
static uint64_t stopwatch_cost_ns(void)
{
	uint64_t costs[STOPWATCH_TRIES];

	for (size_t i = 0; i < STOPWATCH_TRIES; i++) {
		uint64_t begun = stopwatch_ns();

		costs[i] = stopwatch_ns() - begun;
	}
	qsort(costs, STOPWATCH_TRIES, sizeof(costs[0]), by_size);
	return costs[STOPWATCH_TRIES / 2];
}

static void set_up(struct fleet *fleet, const struct fleet_flags *flags)
{
	fleet->flags = flags;
	fleet->worker_count = (uint32_t)(flags->nodes * flags->threads);
	fleet_clock_init(&fleet->clock);
	fleet->load.clock = &fleet->clock;
	fleet->load.keys = (uint32_t)flags->keys;
	fleet->load.stopwatch_cost_ns = stopwatch_cost_ns();
	gate_init(&fleet->load.gate);
	screen_open(&fleet->screen, flags->json ? stderr : stdout,
	            /* even_plain= */ !flags->json);
	catch_interrupts();
}

enum fleet_status fleet_run(const struct fleet_flags *flags)
{
	struct fleet fleet = { 0 };
	enum fleet_status status = FLEET_FAILED;

	set_up(&fleet, flags);
	fleet.nodes = calloc(flags->nodes, sizeof(*fleet.nodes));
	fleet.workers = calloc(fleet.worker_count, sizeof(*fleet.workers));
	if (fleet.nodes && fleet.workers)
		status = run_opened(&fleet);
	else
		complain("--threads: not enough memory for so many");
	free(fleet.workers);
	free(fleet.nodes);
	gate_destroy(&fleet.load.gate);
	return status;
}

/* ---- Help ------------------------------------------------------------------------ */

void fleet_help(FILE *out)
{
	fputs(
	    "usage: gale fleet [FLAG...]\n"
	    "\n"
	    "Starts nodes that share one store, lets their threads ask for random "
	    "keys\n"
	    "as fast as they are answered, and checks the bound: no key may get more\n"
	    "than its limit in any window, however many nodes there are.  What goes\n"
	    "through is counted here, by our own clock, not by the store.\n"
	    "\n",
	    out);
	flags_list(out);
	fputs(
	    "  --help              print this\n"
	    "\n"
	    "Numbers take k and M; durations take us, ms, s, m and h.\n"
	    "\n"
	    "decisions     allowed and denied answers.  refused: those of the denied\n"
	    "              that the rule did not decide, such as \"the store is "
	    "full\"\n"
	    "ns/decision   from asking to having the answer, of every 32nd decision;\n"
	    "              half (p50) and 99 % (p99) took no longer\n"
	    "round trips   decisions that the store has made, and batches of leases\n"
	    "windows       those that began and ended while the fleet was asking\n"
	    "admitted_max  the most that one key got in one window\n"
	    "overshoot     how far admitted_max is above the limit; 0 if it is not\n"
	    "undershoot    of these windows and all keys, the mean of what was left "
	    "of\n"
	    "              the limit, as a part of it: 0 when every key got its whole\n"
	    "              limit in every window.  It means something only if the "
	    "keys\n"
	    "              were asked for more than their limits\n"
	    "seconds       how long the fleet was asking\n"
	    "clock_disagreements\n"
	    "              admissions whose window, as they were told it, cannot be "
	    "one\n"
	    "              by our own clock\n"
	    "verdict       held; overshot: overshoot is not 0; unproven: the clocks\n"
	    "              disagreed\n"
	    "\n"
	    "Exit status: 0 held, 1 overshot or unproven, 2 a flag is wrong, 3 the "
	    "fleet\n"
	    "could not run.\n",
	    out);
}
