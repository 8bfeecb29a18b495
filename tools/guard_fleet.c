/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_fleet.c -- forks the backend and the processes of nodes, plays the script, reports.
 *
 *     backend, nodes -> all are ready -> phases of the script, a line a second -> end -> report
 *
 * All nodes are structs in memory that the processes share (guarded.h).  The thread that calls
 * guard_fleet_run gives the orders, and is the only one that prints.
 */
#define _GNU_SOURCE
#include "tools/guard_fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/guard_report.h"
#include "tools/guarded.h"

#define NAP_NS 10000000
#define NAPS_A_SECOND (1000000000 / NAP_NS)
/* In naps, and not by the clock: a machine that stood still has not waited for a process. */
#define READY_MOST_NAPS (90 * NAPS_A_SECOND)
#define SAY_WAITS_NAPS (2 * NAPS_A_SECOND)
#define END_MOST_NAPS (15 * NAPS_A_SECOND)
#define LINE_US GALE_SECONDS(1)
#define PROCESSES_MOST 64
/* Of a shared guard.  The backend ends what a silent node has there a little sooner than the
 * guards were told. */
#define BEAT_US GALE_MILLIS(250)
#define LEASE_US GALE_SECONDS(1)
#define ABORT_US GALE_MILLIS(400)
#define BACKEND_ABORT_US GALE_MILLIS(300)
#define START 20
#define SHEDDABLE_EVERY 8

struct crew_member {
	struct guarded_plan plan;
	struct guarded *guarded;
	pthread_t thread;
	bool is_started;
};

struct guard_fleet {
	const struct guard_flags *flags;
	FILE *lines; /* NULL: none */
	uint32_t nodes;
	struct guarded *each; /* shared */
	struct crew_member *crew;
	pid_t pids[PROCESSES_MOST];
	struct backend backend;
	char guard_name[32];
	uint64_t begin_ns;
	uint32_t phase;
	struct guard_view view;
	struct guard_view last; /* that a line was made of */
	struct sentence why;
};

static volatile sig_atomic_t interrupted;

static void complain(const char *what)
{
	fprintf(stderr, "gale fleet: %s\n", what);
}

static void nap(void)
{
	static const struct timespec time = { .tv_nsec = NAP_NS };

	nanosleep(&time, NULL);
}

/* ---- The script ------------------------------------------------------------------ */

/* Until so many thousandths of the run: calls, in thousandths of what the backend can work on;
 * its places, also in thousandths; 0: it is stopped. */
struct phase {
	uint64_t until;
	uint64_t load;
	uint64_t places;
	const char *says;
	bool bends;
};

#define PHASES 5

static const struct phase scripts[][PHASES] = {
	[GUARD_STEADY] = { { 200, 500, 1000, "half of what the backend can work on",
	                     false },
	                   { 1000, 1500, 1000, "half as much again as it can work on",
	                     false } },
	[GUARD_HALVES] = { { 200, 500, 1000, "half of what the backend can work on",
	                     false },
	                   { 400, 1500, 1000, "half as much again as it can work on",
	                     false },
	                   { 700, 1500, 500, "the backend has half of its places",
	                     false },
	                   { 1000, 1500, 1000, "it has all again", false } },
	[GUARD_STOPS] = { { 200, 500, 1000, "half of what the backend can work on",
	                    false },
	                  { 400, 1500, 1000, "half as much again as it can work on",
	                    false },
	                  { 550, 1500, 0, "the backend ends no call", false },
	                  { 1000, 1500, 1000, "it goes on", false } },
	[GUARD_BENDS] = { { 200, 500, 1000, "half of what the backend can work on",
	                    false },
	                  { 400, 1500, 1000, "half as much again as it can work on",
	                    false },
	                  { 1000, 1500, 1000,
	                    "the more calls are in flight, the slower each is",
	                    true } },
};

static const struct phase *phase_of(const struct guard_fleet *fleet)
{
	return &scripts[fleet->flags->script][fleet->phase];
}

static struct backend_terms terms_of(const struct guard_fleet *fleet)
{
	const struct guard_flags *flags = fleet->flags;
	uint64_t places = phase_of(fleet)->places;

	return (struct backend_terms){
		.places = places > 0 ? flags->places * places / 1000 : flags->places,
		.takes_us = flags->takes_us,
		.abort_us = flags->store ? BACKEND_ABORT_US : 0,
		.stopped = places == 0,
		.bends = phase_of(fleet)->bends,
	};
}

static bool begin_phase(struct guard_fleet *fleet)
{
	const struct guard_flags *flags = fleet->flags;
	struct backend_terms terms = terms_of(fleet);
	uint64_t rate = flags->places * 1000 * phase_of(fleet)->load / flags->takes_us;

	for (uint32_t i = 0; i < fleet->nodes; i++)
		atomic_store(&fleet->each[i].calls_per_s,
		             rate / fleet->nodes + (i < rate % fleet->nodes));
	fleet->view.calls_per_s = rate;
	if (fleet->lines)
		fprintf(fleet->lines, "-- %s\n", phase_of(fleet)->says);
	return backend_set(&fleet->backend, &terms) ||
	       sentence_say(&fleet->why, "the backend has died: run the command again");
}

static bool play(struct guard_fleet *fleet, uint64_t elapsed_us)
{
	if (elapsed_us < fleet->flags->run_us * phase_of(fleet)->until / 1000 ||
	    phase_of(fleet)->until == 1000)
		return true;
	fleet->phase++;
	return begin_phase(fleet);
}

/* ---- Nodes ----------------------------------------------------------------------- */

static void *node_main(void *arg)
{
	struct crew_member *member = arg;

	(void)guarded_run(member->guarded, &member->plan);
	return NULL;
}

static bool start_nodes(struct guard_fleet *fleet, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		struct crew_member *member = &fleet->crew[i];

		if (pthread_create(&member->thread, NULL, node_main, member) != 0)
			return sentence_say(
			    &fleet->why,
			    "this system gives no more threads: give fewer --nodes");
		member->is_started = true;
	}
	return true;
}

static void join_nodes(struct guard_fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->nodes; i++)
		if (fleet->crew[i].is_started)
			pthread_join(fleet->crew[i].thread, NULL);
}

static _Noreturn void be_process(struct guard_fleet *fleet, uint32_t number)
{
	uint32_t count = (uint32_t)fleet->flags->nodes;
	bool good;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* the owner's to answer */
	signal(SIGTERM, SIG_IGN);
	backend_forget(&fleet->backend);
	good = start_nodes(fleet, number * count, count);
	join_nodes(fleet);
	_exit(good ? 0 : 1);
}

static bool fork_processes(struct guard_fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->flags->processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return sentence_say(&fleet->why, "--processes: %s",
			                    strerror(errno));
		if (pid == 0)
			be_process(fleet, i);
		fleet->pids[i] = pid;
	}
	return true;
}

/* Without a store the limit is parted once and for all. */
static uint32_t ceiling_of(const struct guard_fleet *fleet, uint32_t node)
{
	uint64_t limit = fleet->flags->limit;

	if (fleet->flags->store)
		return (uint32_t)limit;
	return (uint32_t)(limit / fleet->nodes + (node < limit % fleet->nodes));
}

static void plan_node(struct guard_fleet *fleet, uint32_t node)
{
	struct crew_member *member = &fleet->crew[node];
	uint32_t ceiling = ceiling_of(fleet, node);
	bool is_shared = fleet->flags->store != NULL;

	member->guarded = &fleet->each[node];
	member->plan = (struct guarded_plan){
		.backend = &fleet->backend,
		.node = node,
		.store = fleet->flags->store,
		.backend_abort_us = is_shared ? BACKEND_ABORT_US : 0,
		.sheddable_every = SHEDDABLE_EVERY,
		.guard = { .name = fleet->guard_name,
		           .law = (enum gale_law)fleet->flags->law,
		           .ceiling = ceiling,
		           .start = ceiling < START ? ceiling : START,
		           .beat_us = is_shared ? BEAT_US : 0,
		           .lease_us = is_shared ? LEASE_US : 0,
		           .abort_us = is_shared ? ABORT_US : 0 },
	};
}

static bool open_fleet(struct guard_fleet *fleet)
{
	size_t bytes = fleet->nodes * sizeof(*fleet->each);

	fleet->crew = calloc(fleet->nodes, sizeof(*fleet->crew));
	fleet->each = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!fleet->crew || fleet->each == MAP_FAILED)
		return sentence_say(&fleet->why,
		                    "not enough memory for so many nodes: give fewer");
	/* Another one for each run, as a server remembers. */
	snprintf(fleet->guard_name, sizeof(fleet->guard_name), "fleet-%016" PRIx64,
	         backend_now_ns() ^ (uint64_t)getpid() << 40);
	for (uint32_t i = 0; i < fleet->nodes; i++)
		plan_node(fleet, i);
	fleet->view = (struct guard_view){ .flags = fleet->flags,
		                           .nodes = fleet->nodes,
		                           .each = fleet->each };
	return true;
}

static bool start(struct guard_fleet *fleet)
{
	struct backend_terms terms = terms_of(fleet);

	return open_fleet(fleet) &&
	       backend_start(&fleet->backend, &terms, &fleet->why) &&
	       (fleet->flags->processes > 1 ? fork_processes(fleet)
	                                    : start_nodes(fleet, 0, fleet->nodes));
}

/* ---- How they fare --------------------------------------------------------------- */

static bool any_failed(struct guard_fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->nodes; i++)
		if (atomic_load(&fleet->each[i].has_ended) &&
		    fleet->each[i].why.is[0] != '\0') {
			fleet->why = fleet->each[i].why;
			return true;
		}
	return false;
}

static bool any_died(struct guard_fleet *fleet)
{
	int status;

	for (uint32_t i = 0; i < fleet->flags->processes; i++) {
		if (fleet->pids[i] == 0 ||
		    waitpid(fleet->pids[i], &status, WNOHANG) != fleet->pids[i])
			continue;
		fleet->pids[i] = 0;
		if (status == 0)
			continue;
		sentence_say(&fleet->why, "process %" PRIu32 " has died", i + 1);
		return true;
	}
	return false;
}

/* With a store: some have a share.  Of a server that may have forgotten none has one. */
static bool all_ready(const struct guard_fleet *fleet)
{
	uint64_t limits = 0;

	for (uint32_t i = 0; i < fleet->nodes; i++) {
		if (!atomic_load(&fleet->each[i].is_ready))
			return false;
		limits += atomic_load(&fleet->each[i].limit);
	}
	return limits > 0;
}

static bool all_ended(const struct guard_fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->nodes; i++)
		if (!atomic_load(&fleet->each[i].has_ended))
			return false;
	return true;
}

static bool await_ready(struct guard_fleet *fleet)
{
	for (int naps = 0; !all_ready(fleet); naps++) {
		if (any_failed(fleet) || any_died(fleet))
			return false;
		if (interrupted)
			return sentence_say(&fleet->why,
			                    "interrupted before anything was counted");
		if (naps > READY_MOST_NAPS)
			return sentence_say(&fleet->why,
			                    "the nodes get no shares: gale doctor URL "
			                    "says what is wrong");
		if (naps == SAY_WAITS_NAPS && fleet->flags->store)
			complain(
			    "no node has a share yet; a store that was started or "
			    "emptied a moment ago grants none for a while; waiting");
		nap();
	}
	return true;
}

/* ---- The run --------------------------------------------------------------------- */

static uint64_t elapsed_us(const struct guard_fleet *fleet)
{
	return (backend_now_ns() - fleet->begin_ns) / 1000;
}

static bool look(struct guard_fleet *fleet)
{
	fleet->view.elapsed_s = (double)elapsed_us(fleet) / 1e6;
	guard_view_sum(&fleet->view);
	return backend_look(&fleet->backend, &fleet->view.backend) ||
	       sentence_say(&fleet->why, "the backend has died: run the command again");
}

static bool draw(struct guard_fleet *fleet)
{
	if (!look(fleet))
		return false;
	if (fleet->lines)
		guard_report_line(&fleet->view, &fleet->last, fleet->lines);
	fleet->last = fleet->view;
	return true;
}

static bool watch(struct guard_fleet *fleet)
{
	uint64_t line_us = LINE_US, now_us;

	fleet->begin_ns = backend_now_ns();
	if (!begin_phase(fleet))
		return false;
	while ((now_us = elapsed_us(fleet)) < fleet->flags->run_us && !interrupted) {
		if (any_failed(fleet) || any_died(fleet) || !play(fleet, now_us))
			return false;
		if (now_us >= line_us) {
			line_us = now_us - now_us % LINE_US + LINE_US;
			if (!draw(fleet))
				return false;
		}
		nap();
	}
	return draw(fleet);
}

/* Calls that are in flight then end, too. */
static bool end_nodes(struct guard_fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->nodes; i++)
		atomic_store(&fleet->each[i].ends, true);
	for (int naps = 0; !all_ended(fleet); naps++) {
		if (any_died(fleet))
			return false;
		if (naps > END_MOST_NAPS)
			return sentence_say(
			    &fleet->why, "a node does not end: run the command again");
		nap();
	}
	return !any_failed(fleet);
}

static enum fleet_status report(struct guard_fleet *fleet)
{
	/* The time of the run, and the counts of its very end. */
	double seconds = fleet->view.elapsed_s;

	if (!look(fleet))
		return FLEET_FAILED;
	fleet->view.elapsed_s = seconds;
	if (fleet->flags->json)
		guard_report_json(&fleet->view, stdout);
	else
		guard_report_table(&fleet->view, stdout);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return guard_overshoot(&fleet->view) > 0 ? FLEET_BROKEN : FLEET_HELD;
	sentence_say(&fleet->why, "standard output: %s", strerror(errno));
	return FLEET_FAILED;
}

static enum fleet_status run(struct guard_fleet *fleet)
{
	if (!start(fleet) || !await_ready(fleet))
		return FLEET_FAILED;
	if (fleet->lines)
		guard_report_head(fleet->flags, fleet->lines);
	return watch(fleet) && end_nodes(fleet) ? report(fleet) : FLEET_FAILED;
}

/* If the run failed, threads of this process may be stuck: they end with it, and have what they
 * use until then. */
static void close_fleet(struct guard_fleet *fleet, bool well)
{
	for (uint32_t i = 0; i < fleet->flags->processes; i++)
		if (fleet->pids[i] > 0) {
			kill(fleet->pids[i], SIGKILL);
			waitpid(fleet->pids[i], NULL, 0);
		}
	if (well)
		join_nodes(fleet);
	if (well || fleet->flags->processes > 1) {
		munmap(fleet->each, fleet->nodes * sizeof(*fleet->each));
		free(fleet->crew);
	}
	backend_end(&fleet->backend);
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

static bool is_url(struct guard_fleet *fleet)
{
	char why[192];

	return !fleet->flags->store ||
	       gale_url_check(fleet->flags->store, why, sizeof(why)) == GALE_ERR_OK ||
	       sentence_say(&fleet->why, "--store: %s", why);
}

enum fleet_status guard_fleet_run(const struct guard_flags *flags)
{
	struct guard_fleet fleet = { .flags = flags,
		                     .lines = flags->json ? NULL : stdout,
		                     .nodes =
		                         (uint32_t)(flags->processes * flags->nodes) };
	enum fleet_status status;

	if (!is_url(&fleet)) {
		complain(fleet.why.is);
		return FLEET_BAD_USE;
	}
	catch_interrupts();
	status = run(&fleet);
	if (status == FLEET_FAILED)
		complain(fleet.why.is);
	close_fleet(&fleet, status != FLEET_FAILED);
	return status;
}

/* ---- Help ------------------------------------------------------------------------ */

void guard_fleet_help(FILE *out)
{
	fputs("usage: gale fleet --guard [FLAG...]\n"
	      "\n"
	      "Starts nodes that call one backend through guards.  A guard limits how\n"
	      "many calls are in flight at once, and refuses the others.  The backend\n"
	      "is a process of its own.  It works on some calls at a time, in places;\n"
	      "other calls wait.  It counts how many calls are in flight.  The nodes\n"
	      "call more and more often.  Then the backend loses half of its places,\n"
	      "and gets them back.  --backend says what happens instead:\n"
	      "  steady      nothing\n"
	      "  stops       the backend ends no call for a while\n"
	      "  bends       no call waits any more, but each slows the others down:\n"
	      "              with n calls in flight, more than the p places, a call\n"
	      "              takes 1 + (n/p - 1)^2 times as long\n"
	      "\n"
	      "The nodes share one limit through a store.  With --store none, each\n"
	      "node has a fixed part of the limit, and its guard knows of no other.\n"
	      "\n",
	      out);
	guard_flags_list(out);
	fputs(
	    "\n"
	    "calls/s       calls a second that all nodes make, refused ones included\n"
	    "done/s        calls a second that the backend has worked on\n"
	    "ms/call       how long these took, as a mean\n"
	    "in flight     calls that the backend has at that moment\n"
	    "worst         the most that it had at one instant since the line before\n"
	    "limits        the limit of each guard, and their sum; with a store,\n"
	    "              also the limit that the fleet has learned\n"
	    "refused       calls a second that the guards refused, and why:\n"
	    "  share       the node's share of the limit was in use\n"
	    "  estimate    as many were in flight as the backend can bear, as far\n"
	    "              as the guard has learned\n"
	    "  ceiling     the whole limit was in use\n"
	    "  class       the call was sheddable (one in eight is), and nine\n"
	    "              tenths of the limit were in use\n"
	    "  probe       the guard measured the backend with less load\n"
	    "  cut_off     the node had no share: it had lost touch with the store, "
	    "or\n"
	    "              had got none yet\n"
	    "overshoot     how far the worst of the whole run is above --limit\n"
	    "\n"
	    "Exit status: 0 held, 1 overshot, 2 a flag is wrong, 3 the fleet could\n"
	    "not run.\n",
	    out);
}
