/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenant_fleet.c -- nodes ask for tenants of one budget; what each got is held against its share.
 *
 *     nodes, in processes -> all have been answered -> a line a window -> end -> report
 *
 * Each node has a thread for each tenant.  The units that it is allowed are counted in memory that
 * the processes share, by the windows of this machine's clock, which is the server's.  A node tells
 * how long the window of an answer lasts; so the window is known, however late it is counted.
 */
#define _GNU_SOURCE
#include "tools/tenant_fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gale/tenants.h>

#include "tools/link.h"
#include "tools/sentence.h"

#define NAP_US 2000
#define DENIED_NAP_US 500
#define READY_SAID_US GALE_SECONDS(3)
#define READY_MOST_US GALE_SECONDS(90)
#define END_MOST_US GALE_SECONDS(15)
#define PATIENCE_US GALE_MILLIS(100)
#define BAR 0.95 /* of a share, and of all shares together */

/* What the processes share. */
struct tenant_board {
	_Atomic uint64_t begin_us; /* 0: not yet */
	_Atomic uint64_t ends;
	_Atomic uint64_t ready; /* threads that have been answered */
	_Atomic uint64_t gone;
	_Atomic uint64_t fails;  /* one does, and says why */
	_Atomic uint64_t failed; /* and has said why */
	_Atomic uint64_t quanta;
	_Atomic uint64_t trips;
	char why[SENTENCE_MAX]; /* of the first that failed */
	_Atomic uint64_t
	    used[TENANT_WINDOWS_MOST][TENANT_REGIONS_MOST][TENANT_FLAGS_MOST];
};

struct tenant_fleet {
	const struct tenant_flags *flags;
	struct tenant_board *board;
	char budget[40];
	const char *store; /* as this process reaches it */
	uint64_t region;   /* of this process */
	pid_t pids[64];
	pthread_t thread; /* of a fleet of one process */
	bool has_thread;
	uint64_t windows; /* whole ones that count, from 1 on */
	struct sentence why;
};

struct tenant_node {
	struct tenant_fleet *fleet;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_budget *budget;
};

struct tenant_asker {
	struct tenant_node *node;
	struct gale_tenant *tenant;
	uint64_t number;
	pthread_t thread;
};

static volatile sig_atomic_t interrupted;

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void nap(uint64_t us)
{
	struct timespec time = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&time, NULL);
}

static void fail(struct tenant_board *board, const char *what)
{
	if (atomic_exchange(&board->fails, 1) > 0)
		return;
	snprintf(board->why, sizeof(board->why), "%s", what);
	atomic_store(&board->failed, 1);
}

/* ---- A thread of a node -------------------------------------------------------------- */

/* The window of an answer ends in so long, at the latest. */
static void count(struct tenant_asker *asker, uint64_t asked_us, uint64_t reset_us)
{
	const struct tenant_fleet *fleet = asker->node->fleet;
	uint64_t window_us = fleet->flags->window_us;
	uint64_t begin = atomic_load(&fleet->board->begin_us) / window_us;
	uint64_t number = (asked_us + reset_us - 1) / window_us;

	if (begin > 0 && number >= begin && number - begin < TENANT_WINDOWS_MOST)
		atomic_fetch_add(
		    &fleet->board->used[number - begin][fleet->region][asker->number],
		    1);
}

/* False: denied. */
static bool ask(struct tenant_asker *asker, struct gale_seat *seat)
{
	uint64_t within_us = asker->node->fleet->flags->window_us / 4;
	uint64_t asked_us = now_us();
	struct gale_answer answer = gale_tenant_wait(seat, asker->tenant, 1, within_us);

	if (answer.verdict != GALE_ALLOW)
		return false;
	count(asker, asked_us, answer.reset_after_us);
	return true;
}

/* How many calls are due, of a demand. */
static uint64_t due(const struct tenant_asker *asker, uint64_t since_us)
{
	const struct tenant_flags *flags = asker->node->fleet->flags;
	double percent = (double)flags->each[asker->number].demand_percent;
	double a_window = (double)flags->limit * percent / 100 /
	                  (double)(flags->processes * flags->nodes);

	return (uint64_t)(a_window * (double)since_us / (double)flags->window_us);
}

static void ask_all_the_time(struct tenant_asker *asker, struct gale_seat *seat)
{
	const struct tenant_fleet *fleet = asker->node->fleet;
	bool has_demand = fleet->flags->each[asker->number].demand_percent > 0;
	uint64_t made = 0, allowed = 0, from_us = now_us();

	while (atomic_load(&fleet->board->ends) == 0) {
		if (has_demand && made >= due(asker, now_us() - from_us)) {
			nap(DENIED_NAP_US);
			continue;
		}
		made++;
		if (!ask(asker, seat))
			nap(DENIED_NAP_US);
		else if (allowed++ == 0)
			atomic_fetch_add(&fleet->board->ready, 1);
	}
}

static void *asker_main(void *arg)
{
	struct tenant_asker *asker = arg;
	struct tenant_board *board = asker->node->fleet->board;
	struct gale_seat *seat;
	enum gale_err err = gale_join(asker->node->runtime, &seat);

	if (err != GALE_ERR_OK) {
		fail(board, gale_err_text(err));
		return NULL;
	}
	ask_all_the_time(asker, seat);
	gale_leave(seat);
	return NULL;
}

/* ---- A node -------------------------------------------------------------------------- */

static enum gale_err open_node(struct tenant_node *node)
{
	const struct tenant_flags *flags = node->fleet->flags;
	struct gale_config config = { .shards = 1 };
	struct gale_store_config store = { .url = node->fleet->store };
	struct gale_budget_config budget = { .limit = flags->limit,
		                             .window_us = flags->window_us,
		                             .name = node->fleet->budget,
		                             .patience_us =
		                                 PATIENCE_US + flags->link_ms * 4000 };
	enum gale_err err = gale_runtime_open(&config, &node->runtime);

	if (err == GALE_ERR_OK)
		err = gale_store_open(node->runtime, &store, &node->store);
	budget.store = node->store;
	return err == GALE_ERR_OK
	           ? gale_budget_open(node->runtime, &budget, &node->budget)
	           : err;
}

static bool start_asker(struct tenant_asker *asker)
{
	const struct tenant_flag *flag =
	    &asker->node->fleet->flags->each[asker->number];
	struct gale_terms terms = { .weight = (uint32_t)flag->weight,
		                    .name = flag->name };
	enum gale_err err =
	    gale_tenant_open(asker->node->budget, &terms, &asker->tenant);

	if (err != GALE_ERR_OK)
		fail(asker->node->fleet->board, gale_err_text(err));
	else if (pthread_create(&asker->thread, NULL, asker_main, asker) != 0)
		fail(asker->node->fleet->board, "this system gives no more threads");
	else
		return true;
	return false;
}

static void end_asker(struct tenant_asker *asker)
{
	struct tenant_board *board = asker->node->fleet->board;
	struct gale_tenant_counts counts;

	pthread_join(asker->thread, NULL);
	if (gale_tenant_stats(asker->tenant, &counts) == GALE_ERR_OK) {
		atomic_fetch_add(&board->quanta, counts.quanta);
		atomic_fetch_add(&board->trips, counts.trips);
	}
	gale_tenant_close(asker->tenant);
}

static void run_node(struct tenant_node *node)
{
	struct tenant_asker askers[TENANT_FLAGS_MOST];
	uint64_t started = 0;
	enum gale_err err = open_node(node);

	if (err != GALE_ERR_OK)
		fail(node->fleet->board, gale_err_text(err));
	for (; err == GALE_ERR_OK && started < node->fleet->flags->count; started++) {
		askers[started] =
		    (struct tenant_asker){ .node = node, .number = started };
		if (!start_asker(&askers[started]))
			break;
	}
	while (started-- > 0)
		end_asker(&askers[started]);
	gale_budget_close(node->budget);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	atomic_fetch_add(&node->fleet->board->gone, 1);
}

static void *node_main(void *arg)
{
	struct tenant_node node = { .fleet = arg };

	run_node(&node);
	return NULL;
}

/* All nodes of a process. */
static void run_process(struct tenant_fleet *fleet)
{
	pthread_t threads[64];
	uint64_t started = 0;

	for (; started < fleet->flags->nodes; started++)
		if (pthread_create(&threads[started], NULL, node_main, fleet) != 0) {
			fail(fleet->board, "this system gives no more threads");
			break;
		}
	while (started-- > 0)
		pthread_join(threads[started], NULL);
}

/* ---- The fleet ------------------------------------------------------------------------ */

/* By a slow link, unless it is of the first region. */
static void run_in_region(struct tenant_fleet *fleet, uint64_t process)
{
	const struct tenant_flags *flags = fleet->flags;
	struct link link;

	fleet->region = process % flags->regions;
	if (fleet->region == 0) {
		run_process(fleet);
		return;
	}
	if (!link_open(&link, flags->store, flags->link_ms * 1000, &fleet->why)) {
		fail(fleet->board, fleet->why.is);
		return;
	}
	fleet->store = link.url;
	run_process(fleet);
	link_close(&link);
}

static bool fork_processes(struct tenant_fleet *fleet)
{
	for (uint64_t i = 0; i < fleet->flags->processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return sentence_say(&fleet->why, "--processes: %s",
			                    strerror(errno));
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			signal(SIGINT, SIG_IGN); /* the owner's to answer */
			signal(SIGTERM, SIG_IGN);
			run_in_region(fleet, i);
			_exit(0);
		}
		fleet->pids[i] = pid;
	}
	return true;
}

static void *process_main(void *arg)
{
	run_process(arg);
	return NULL;
}

static bool start(struct tenant_fleet *fleet)
{
	fleet->board = mmap(NULL, sizeof(*fleet->board), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fleet->board == MAP_FAILED)
		return sentence_say(&fleet->why, "not enough memory");
	/* Another one for each run, as a server remembers. */
	snprintf(fleet->budget, sizeof(fleet->budget), "fleet-%" PRIx64 "-%x", now_us(),
	         (unsigned)getpid());
	if (fleet->flags->processes > 1)
		return fork_processes(fleet);
	fleet->has_thread =
	    pthread_create(&fleet->thread, NULL, process_main, fleet) == 0;
	return fleet->has_thread ||
	       sentence_say(&fleet->why, "this system gives no more threads");
}

static bool any_failed(struct tenant_fleet *fleet)
{
	int status;

	if (atomic_load(&fleet->board->failed) > 0)
		return !sentence_say(&fleet->why, "%s", fleet->board->why);
	for (uint64_t i = 0; i < fleet->flags->processes; i++) {
		if (fleet->pids[i] == 0 ||
		    waitpid(fleet->pids[i], &status, WNOHANG) != fleet->pids[i])
			continue;
		fleet->pids[i] = 0;
		if (status != 0)
			return !sentence_say(&fleet->why,
			                     "process %" PRIu64 " has died", i + 1);
	}
	return false;
}

static bool say_waiting(const struct tenant_flags *flags)
{
	fprintf(stderr,
	        "gale fleet --tenants: not all tenants have got units from %s yet; "
	        "it is asked on, for up to %d s\n",
	        flags->store, (int)(READY_MOST_US / GALE_SECONDS(1)));
	return true;
}

static bool await_ready(struct tenant_fleet *fleet)
{
	const struct tenant_flags *flags = fleet->flags;
	uint64_t wanted = flags->processes * flags->nodes * flags->count;
	uint64_t from_us = now_us();
	bool is_said = false;

	while (atomic_load(&fleet->board->ready) < wanted) {
		if (any_failed(fleet))
			return false;
		if (interrupted)
			return sentence_say(&fleet->why,
			                    "interrupted before anything was counted");
		if (now_us() > from_us + READY_MOST_US)
			return sentence_say(&fleet->why,
			                    "the tenants get no units from %s",
			                    flags->store);
		if (!is_said && now_us() > from_us + READY_SAID_US)
			is_said = say_waiting(flags);
		nap(NAP_US);
	}
	return true;
}

static uint64_t used_by(const struct tenant_fleet *fleet, uint64_t window,
                        uint64_t tenant)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < fleet->flags->regions; i++)
		sum += atomic_load(&fleet->board->used[window][i][tenant]);
	return sum;
}

static uint64_t used_in(const struct tenant_fleet *fleet, uint64_t window)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < fleet->flags->count; i++)
		sum += used_by(fleet, window, i);
	return sum;
}

static void say_window(const struct tenant_fleet *fleet, uint64_t window)
{
	FILE *out = fleet->flags->json ? stderr : stdout;

	fprintf(out, "window %3" PRIu64 " ", window);
	for (uint64_t i = 0; i < fleet->flags->count; i++)
		fprintf(out, "  %s %" PRIu64, fleet->flags->each[i].name,
		        used_by(fleet, window, i));
	fprintf(out, "  of %" PRIu64 "\n", fleet->flags->limit);
	fflush(out);
}

/* From the beginning of a window on; the first counts for nothing, as not all are there. */
static bool watch(struct tenant_fleet *fleet)
{
	const struct tenant_flags *flags = fleet->flags;
	uint64_t begin_us = now_us(), number;

	atomic_store(&fleet->board->begin_us, begin_us);
	begin_us -= begin_us % flags->window_us;
	while (!interrupted && now_us() < begin_us + flags->run_us) {
		number = (now_us() - begin_us) / flags->window_us;
		if (any_failed(fleet))
			return false;
		/* Answers of a window may be counted a quarter of one later. */
		for (; fleet->windows + 1 < number; fleet->windows++)
			say_window(fleet, fleet->windows + 1);
		nap(NAP_US);
	}
	return true;
}

static bool end(struct tenant_fleet *fleet)
{
	uint64_t nodes = fleet->flags->processes * fleet->flags->nodes;
	uint64_t until_us = now_us() + END_MOST_US;

	atomic_store(&fleet->board->ends, 1);
	while (atomic_load(&fleet->board->gone) < nodes) {
		if (any_failed(fleet))
			return false;
		if (now_us() > until_us)
			return sentence_say(&fleet->why, "a node does not end");
		nap(NAP_US);
	}
	return true;
}

static void close_fleet(struct tenant_fleet *fleet)
{
	if (fleet->has_thread && atomic_load(&fleet->board->ends))
		pthread_join(fleet->thread, NULL);
	for (uint64_t i = 0; i < fleet->flags->processes; i++)
		if (fleet->pids[i] > 0) {
			if (atomic_load(&fleet->board->gone) <
			    fleet->flags->processes * fleet->flags->nodes)
				kill(fleet->pids[i], SIGKILL);
			waitpid(fleet->pids[i], NULL, 0);
		}
}

/* ---- The report ----------------------------------------------------------------------- */

struct tenant_result {
	uint64_t used[TENANT_FLAGS_MOST];
	double ideal[TENANT_FLAGS_MOST];
	uint64_t all;
	uint64_t most; /* in one window */
	double worst;  /* of used over ideal */
	double ideals;
	const char *verdict;
};

/* A share by weight, or the demand, if that is less. */
static double ideal_of(const struct tenant_flags *flags, uint64_t tenant)
{
	double weights = 0, limit = (double)flags->limit, share;
	double demand = limit * (double)flags->each[tenant].demand_percent / 100;

	for (uint64_t i = 0; i < flags->count; i++)
		weights += (double)flags->each[i].weight;
	share = limit * (double)flags->each[tenant].weight / weights;
	return demand > 0 && demand < share ? demand : share;
}

static struct tenant_result sum_up(const struct tenant_fleet *fleet)
{
	struct tenant_result result = { .worst = 1 };

	for (uint64_t window = 1; window <= fleet->windows; window++) {
		uint64_t used = used_in(fleet, window);

		result.all += used;
		if (used > result.most)
			result.most = used;
		for (uint64_t i = 0; i < fleet->flags->count; i++)
			result.used[i] += used_by(fleet, window, i);
	}
	for (uint64_t i = 0; i < fleet->flags->count; i++) {
		double ratio;

		result.ideal[i] = ideal_of(fleet->flags, i) * (double)fleet->windows;
		result.ideals += result.ideal[i];
		ratio = (double)result.used[i] / result.ideal[i];
		if (ratio < result.worst)
			result.worst = ratio;
	}
	result.verdict = result.most > fleet->flags->limit ? "overshot"
	                 : fleet->windows == 0             ? "unproven"
	                 : result.worst < BAR              ? "short"
	                                                   : "held";
	return result;
}

static void print_table(const struct tenant_fleet *fleet,
                        const struct tenant_result *result)
{
	printf("\n%-16s %8s %12s %12s %8s\n", "tenant", "weight", "used", "ideal",
	       "ratio");
	for (uint64_t i = 0; i < fleet->flags->count; i++)
		printf("%-16s %8" PRIu64 " %12" PRIu64 " %12.0f %8.4f\n",
		       fleet->flags->each[i].name, fleet->flags->each[i].weight,
		       result->used[i], result->ideal[i],
		       (double)result->used[i] / result->ideal[i]);
	printf("\nwindows %" PRIu64 "   most in one %" PRIu64 " of %" PRIu64
	       "   utilisation %.4f   quanta %" PRIu64 "   round trips %" PRIu64
	       "\nverdict %s\n",
	       fleet->windows, result->most, fleet->flags->limit,
	       (double)result->all / result->ideals, atomic_load(&fleet->board->quanta),
	       atomic_load(&fleet->board->trips), result->verdict);
}

/* What the tenant used in each region, in the windows that count. */
static void print_regions(const struct tenant_fleet *fleet, uint64_t tenant)
{
	for (uint64_t region = 0; region < fleet->flags->regions; region++) {
		uint64_t used = 0;

		for (uint64_t window = 1; window <= fleet->windows; window++)
			used +=
			    atomic_load(&fleet->board->used[window][region][tenant]);
		printf("%s%" PRIu64, region > 0 ? "," : "", used);
	}
}

static void print_string(const char *text)
{
	putchar('"');
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\')
			printf("\\u%04x", (unsigned char)*text);
		else
			putchar(*text);
	putchar('"');
}

static void print_json(const struct tenant_fleet *fleet,
                       const struct tenant_result *result)
{
	printf("{\"verdict\":\"%s\",\"limit\":%" PRIu64 ",\"window_us\":%" PRIu64
	       ",\"processes\":%" PRIu64 ",\"nodes\":%" PRIu64 ",\"regions\":%" PRIu64
	       ",\"windows\":%" PRIu64 ",\"admitted_max\":%" PRIu64
	       ",\"utilisation\":%.6f,\"worst\":%.6f"
	       ",\"quanta\":%" PRIu64 ",\"round_trips\":%" PRIu64 ",\"tenants\":[",
	       result->verdict, fleet->flags->limit, fleet->flags->window_us,
	       fleet->flags->processes, fleet->flags->nodes, fleet->flags->regions,
	       fleet->windows, result->most,
	       result->ideals > 0 ? (double)result->all / result->ideals : 0,
	       fleet->windows > 0 ? result->worst : 0,
	       atomic_load(&fleet->board->quanta), atomic_load(&fleet->board->trips));
	for (uint64_t i = 0; i < fleet->flags->count; i++) {
		printf("%s{\"name\":", i > 0 ? "," : "");
		print_string(fleet->flags->each[i].name);
		printf(",\"weight\":%" PRIu64 ",\"used\":%" PRIu64
		       ",\"ideal\":%.0f,\"in_regions\":[",
		       fleet->flags->each[i].weight, result->used[i], result->ideal[i]);
		print_regions(fleet, i);
		printf("]}");
	}
	printf("]}\n");
}

static enum fleet_status report(struct tenant_fleet *fleet)
{
	struct tenant_result result = sum_up(fleet);

	if (fleet->flags->json)
		print_json(fleet, &result);
	else
		print_table(fleet, &result);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return strcmp(result.verdict, "held") == 0 ? FLEET_HELD : FLEET_BROKEN;
	sentence_say(&fleet->why, "standard output: %s", strerror(errno));
	return FLEET_FAILED;
}

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

enum fleet_status tenant_fleet_run(const struct tenant_flags *flags)
{
	struct sigaction action = { .sa_handler = on_interrupt,
		                    .sa_flags = (int)(SA_RESTART | SA_RESETHAND) };
	struct tenant_fleet fleet = { .flags = flags, .store = flags->store };
	enum fleet_status status = FLEET_FAILED;
	char why[192];

	if (gale_url_check(flags->store, why, sizeof(why)) != GALE_ERR_OK) {
		fprintf(stderr, "gale fleet: --store: %s\n", why);
		return FLEET_BAD_USE;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (start(&fleet) && await_ready(&fleet) && watch(&fleet) && end(&fleet))
		status = report(&fleet);
	if (status == FLEET_FAILED)
		fprintf(stderr, "gale fleet: %s\n", fleet.why.is);
	if (fleet.board && fleet.board != MAP_FAILED) {
		atomic_store(&fleet.board->ends, 1);
		close_fleet(&fleet);
		munmap(fleet.board, sizeof(*fleet.board));
	}
	return status;
}

void tenant_fleet_help(FILE *out)
{
	fputs(
	    "usage: gale fleet --tenants LIST [FLAG...]\n"
	    "\n"
	    "Starts nodes that share one budget over a store.  Each node asks for all\n"
	    "tenants, and a tenant has one share for all nodes.  This command counts\n"
	    "what each tenant gets, in the windows of this machine's clock, and\n"
	    "compares that with the share that its weight gives it.  A server has to\n"
	    "be on this machine.\n"
	    "\n",
	    out);
	tenant_flags_list(out);
	fputs(
	    "\n"
	    "Numbers take k and M; durations take us, ms, s, m and h.\n"
	    "\n"
	    "used          units that a tenant got in whole windows, without the "
	    "first\n"
	    "ideal         the tenant's share by weight, or its demand, if that is\n"
	    "              less; the rest of such a share is kept for the tenant\n"
	    "most in one   the most that all tenants together got in one window\n"
	    "utilisation   used of all tenants, divided by ideal of all\n"
	    "quanta        grants of the store; round trips: questions to the store\n"
	    "verdict       held; overshot: more than the limit in a window; short: a\n"
	    "              tenant got less than 95 % of what is ideal; unproven: no\n"
	    "              whole window was counted\n"
	    "\n"
	    "Exit status: 0 held, 1 overshot, short or unproven, 2 a flag is wrong,\n"
	    "3 the fleet could not run.\n",
	    out);
}
