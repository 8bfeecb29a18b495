/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http.c -- what part of a request's processor time is gale's, in an HTTP server by key?
 *
 *	gale_http SERVER TIMED [--smoke]         the table, for examples/httpd
 *	gale_http --nginx NGINX INSIDE TIMED     the same inside nginx: its program, and
 *	                                         http_inside.c as two libraries
 *	gale_http --there PORT:PID PORT:PID      the same for two servers that run already,
 *	                                         with and without a limit
 *	gale_http --send PORT DEEP KEYS COUNT    only requests, to a server that runs
 *
 * A server is a process, with one thread that serves; requests come from this one, over
 * loopback, on one connection or on 16.  What is counted is the processor time of all threads
 * of the server, the kernel's on its behalf with it, per request: not what passes while it
 * waits.  All are on one processor, where a server finds all requests that there are when
 * its turn comes.  On two it sleeps and is woken in between, as the client happens to be
 * fast, which makes a request twice as dear, and differently so in each round.  Servers that
 * run already are moved there, their first thread: they must be ours, and have no other.
 *
 *     with       the server as it is, with a limit that is never reached
 *     without    the same program, started without a limit: no key is asked about.  Inside
 *                nginx it is looked for nevertheless
 *     again      a second process of the same
 *     timed      the server with a watch held to each call of gale's (http_timed.c)
 *
 * They take turns, in an order by lot, for many rounds, and are started afresh several
 * times.  A round's share is (with - without) / with; what it is of nothing,
 * (again - without) / again, shows how much of that is noise.  Where it is as large as the
 * share itself, the time by the watch over the time of a request says more; it is never
 * too short, as nothing else is done while the watch is read; but where the serving thread
 * takes gale's turns, as inside nginx, the watch is not held to those.
 *
 * Threads   One.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/http_load.h"
#include "bench/http_servers.h"
#include "bench/http_timed.h"
#include "runtime/clock.h"
#include "tests/support/must.h"

#define CONNECTIONS 16
#define ROUNDS_MOST 256
#define BAR 0.01 /* the most that asks may be of a request */

/* How much is done. */
struct effort {
	unsigned launches;
	unsigned rounds;   /* of each launch */
	uint64_t requests; /* in a round, of those that may be under way at once */
	uint64_t warm_up;  /* requests before, or more */
	uint64_t keys_most;
};

static const struct effort full = { 8, 6, 1000, 200000, UINT64_MAX };
static const struct effort inside = { 24, 6, 1000, 20000,
	                              UINT64_MAX }; /* leases last */
static const struct effort smoke = { 1, 2, 20, 2000, 1000 };

enum role {
	WITH,
	WITHOUT,
	AGAIN,
	TIMED,
	ROLES,
};

/* Of a round, nanoseconds a request. */
struct cost {
	double all;
	double serving; /* of it, the thread that serves */
	double asks;    /* by the watch, if there is one */
	double others;  /* the same: ticks, and taking completions */
	double pending; /* the part of the asks that were */
};

/* ---- Numbers --------------------------------------------------------------------- */

struct sample {
	double values[ROUNDS_MOST];
	size_t count;
};

static void note(struct sample *sample, double value)
{
	must(sample->count < ROUNDS_MOST);
	sample->values[sample->count++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double part_of(struct sample *sample, double part)
{
	must(sample->count > 0);
	qsort(sample->values, sample->count, sizeof(double), compare);
	return sample->values[(size_t)(part * (double)(sample->count - 1))];
}

static double median(struct sample *sample)
{
	return part_of(sample, 0.5);
}

/* ---- Processor time -------------------------------------------------------------- */

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

static uint64_t all_ns(pid_t pid)
{
	struct timespec now;
	clockid_t clock;

	must(clock_getcpuclockid(pid, &clock) == 0);
	must(clock_gettime(clock, &now) == 0);
	return ns_of(&now);
}

/* The kernel knows it to a tick while the thread runs, and exactly when it sleeps. */
static uint64_t thread_ns(pid_t pid, const char *thread)
{
	char path[64];
	uint64_t ns;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", pid, thread);
	file = fopen(path, "re");
	must(file && fscanf(file, "%" SCNu64, &ns) == 1);
	fclose(file);
	return ns;
}

/* Of the thread that has done the most: it serves. */
static uint64_t serving_ns(pid_t pid)
{
	const struct dirent *thread;
	uint64_t most = 0;
	char path[32];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	must(threads != NULL);
	while ((thread = readdir(threads))) {
		uint64_t ns =
		    thread->d_name[0] == '.' ? 0 : thread_ns(pid, thread->d_name);

		if (ns > most)
			most = ns;
	}
	closedir(threads);
	return most;
}

static double stamps_a_ns(void)
{
	const struct timespec moment = { .tv_nsec = 100000000 };
	uint64_t first = stamp(), began = patience_now_ns();

	nanosleep(&moment, NULL);
	return (double)(stamp() - first) / (double)(patience_now_ns() - began);
}

/* The first that we may use: it becomes ours, and the servers'. */
static unsigned take_processor(void)
{
	unsigned processor = 0;
	cpu_set_t set;

	must(sched_getaffinity(0, sizeof(set), &set) == 0);
	while (!CPU_ISSET(processor, &set))
		processor++;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	must(sched_setaffinity(0, sizeof(set), &set) == 0);
	return processor;
}

/* ---- A round --------------------------------------------------------------------- */

/* The limit is out of reach, but an ask in a window's last moment may be denied. */
static uint64_t send_all(struct server *server, const struct load_plan *plan)
{
	struct load_answers answers = load_run(server->load, plan);

	must(answers.denied <= answers.sent / 100);
	return answers.sent;
}

/* Each key has been asked about twice at least; few, often enough for leases to be as
 * large as they are going to be. */
static void warm_up(struct server *server, const struct server_question *question,
                    const struct effort *effort)
{
	struct load_plan plan = { .deep = 16,
		                  .keys = question->keys,
		                  .in_order = true,
		                  .count = 2 * question->keys };

	if (plan.count < effort->warm_up)
		plan.count = effort->warm_up;
	(void)send_all(server, &plan);
}

static double ns_of_calls(const struct timed_calls *before,
                          const struct timed_calls *after, double a_ns)
{
	double timed = (double)(after->timed - before->timed);

	if (timed == 0)
		return 0;
	return (double)(after->took - before->took) / a_ns / timed *
	       (double)(after->count - before->count);
}

static void note_calls(const struct timed *before, const struct timed *after,
                       double requests, double a_ns, struct cost *cost)
{
	cost->asks = (ns_of_calls(&before->asks, &after->asks, a_ns) +
	              ns_of_calls(&before->prefetches, &after->prefetches, a_ns)) /
	             requests;
	cost->others = (ns_of_calls(&before->ticks, &after->ticks, a_ns) +
	                ns_of_calls(&before->takes, &after->takes, a_ns)) /
	               requests;
	cost->pending = (double)(after->pending - before->pending) / requests;
}

static struct cost measure(struct server *server, const struct load_plan *plan,
                           double a_ns)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	struct timed before = { 0 };
	struct cost cost = { 0 };
	uint64_t all, serving;
	double requests;

	if (server->timed)
		before = *server->timed;
	all = all_ns(server->pid);
	serving = serving_ns(server->pid);
	requests = (double)send_all(server, plan);
	nanosleep(&moment, NULL); /* it sleeps, too, and its time is known */
	cost.all = (double)(all_ns(server->pid) - all) / requests;
	cost.serving = (double)(serving_ns(server->pid) - serving) / requests;
	if (server->timed)
		note_calls(&before, server->timed, requests, a_ns, &cost);
	return cost;
}

/* ---- A line of the table --------------------------------------------------------- */

struct findings {
	struct sample with, without, others_threads, share, nothing;
	struct sample asks, others, calls, pending; /* by the watch, if there is one */
};

static void note_round(struct findings *found, const struct cost *costs, bool has_watch)
{
	const struct cost *with = &costs[WITH], *without = &costs[WITHOUT];
	const struct cost *again = &costs[AGAIN], *timed = &costs[TIMED];

	note(&found->with, with->all);
	note(&found->without, without->all);
	note(&found->others_threads, with->all - with->serving);
	note(&found->share, (with->all - without->all) / with->all);
	note(&found->nothing, (again->all - without->all) / again->all);
	if (!has_watch)
		return;
	note(&found->asks, timed->asks);
	note(&found->others, timed->others);
	note(&found->calls, timed->asks + timed->others);
	note(&found->pending, timed->pending);
}

static void shuffle(enum role *order, unsigned count)
{
	for (unsigned i = count - 1; i > 0; i--) {
		unsigned other = (unsigned)rand() % (i + 1);
		enum role kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
}

static void take_round(struct server *servers, unsigned count,
                       const struct load_plan *plan, double a_ns,
                       struct findings *found)
{
	enum role order[ROLES] = { WITH, WITHOUT, AGAIN, TIMED };
	struct cost costs[ROLES] = { 0 };

	shuffle(order, count);
	for (unsigned i = 0; i < count; i++)
		costs[order[i]] = measure(&servers[order[i]], plan, a_ns);
	note_round(found, costs, count == ROLES);
}

static void print_heads(void)
{
	static const char *const heads[] = {
		"connections", "deep",      "keys",        "window, s",
		"log",         "with, ns",  "without, ns", "other threads",
		"share",       "spread",    "of nothing",  "spread",
		"asks, ns",    "ticks, ns", "share",       "pending",
		"bar",         "",
	};
	size_t count = sizeof(heads) / sizeof(heads[0]);

	for (size_t i = 0; i < count; i++)
		printf("| %s ", heads[i]);
	printf("|\n");
	for (size_t i = 0; i < count; i++)
		printf("|---");
	printf("|\n");
}

static double spread(struct sample *sample)
{
	return part_of(sample, 0.75) - part_of(sample, 0.25);
}

/* In a window of a second it is misses that are measured, and not asks from credit. */
static bool has_bar(const struct server_question *question)
{
	return strcmp(question->window, "1") != 0;
}

static void print_watch(const struct server_question *question, struct findings *found)
{
	double share = median(&found->calls) / median(&found->with);
	bool holds = share <= BAR && median(&found->share) <= BAR;

	printf("| %.1f | %.1f | %.2f %% | %.2g %% ", median(&found->asks),
	       median(&found->others), 100 * share, 100 * median(&found->pending));
	if (has_bar(question))
		printf("| ≤ %g %% | %s |\n", 100 * BAR, holds ? "holds" : "misses");
	else
		printf("| | |\n");
}

static void print_findings(const struct server_question *question,
                           struct findings *found)
{
	printf("| %u | %u | %" PRIu64 " | %s | %s | %.0f | %.0f | %.0f ",
	       question->connections, question->deep, question->keys, question->window,
	       question->writes_log ? "yes" : "", median(&found->with),
	       median(&found->without), median(&found->others_threads));
	printf("| %.2f %% | %.2f %% | %.2f %% | %.2f %% ", 100 * median(&found->share),
	       100 * spread(&found->share), 100 * median(&found->nothing),
	       100 * spread(&found->nothing));
	if (found->asks.count > 0)
		print_watch(question, found);
	else
		printf("| | | | | | |\n");
	fflush(stdout);
}

static struct load_plan plan_of(const struct server_question *question,
                                const struct effort *effort)
{
	uint64_t at_once = (uint64_t)question->connections * question->deep;

	/* One alone would be over too soon. */
	return (struct load_plan){ .deep = question->deep,
		                   .keys = question->keys,
		                   .count =
		                       effort->requests * (at_once < 4 ? 4 : at_once) };
}

/* ---- Servers of our own ------------------------------------------------------------ */

static void launch(const struct server_programs *programs,
                   const struct server_question *question, const struct effort *effort,
                   double a_ns, unsigned processor, struct findings *found)
{
	struct load_plan plan = plan_of(question, effort);
	struct server servers[ROLES];

	for (int role = 0; role < ROLES; role++) {
		server_start(&servers[role], programs, question,
		             role == WITH || role == TIMED, role == TIMED, processor);
		warm_up(&servers[role], question, effort);
	}
	for (unsigned i = 0; i < effort->rounds; i++)
		take_round(servers, ROLES, &plan, a_ns, found);
	for (int role = 0; role < ROLES; role++)
		server_end(&servers[role]);
	for (int role = 0; role < ROLES; role++)
		server_await(&servers[role]);
}

/* Until there is one without connections. */
static void ask_all(const struct server_question *questions,
                    const struct server_programs *programs, const struct effort *effort)
{
	static struct findings found;
	double a_ns = stamps_a_ns();
	unsigned processor = take_processor();

	print_heads();
	for (; questions->connections > 0; questions++) {
		struct server_question question = *questions;

		if (question.keys > effort->keys_most)
			question.keys = effort->keys_most;
		memset(&found, 0, sizeof(found));
		for (unsigned l = 0; l < effort->launches; l++)
			launch(programs, &question, effort, a_ns, processor, &found);
		print_findings(&question, &found);
	}
}

static void ask_example(const struct server_programs *programs,
                        const struct effort *effort)
{
	static const struct server_question questions[] = {
		{ 1, 1, 1, "3600", false },         { 1, 1, 1000, "3600", false },
		{ 16, 1, 1, "3600", false },        { 16, 1, 1000, "3600", false },
		{ 16, 1, 1000, "1", false },        { 16, 1, 1000000, "3600", false },
		{ 16, 16, 1, "3600", false },       { 16, 16, 1000, "3600", false },
		{ 16, 16, 1000000, "3600", false }, { 0 },
	};

	ask_all(questions, programs, effort);
}

static void ask_nginx(const struct server_programs *programs)
{
	static const struct server_question questions[] = {
		{ 1, 1, 1, "3600", true },       { 1, 1, 1000, "3600", true },
		{ 16, 1, 1, "3600", true },      { 16, 1, 1000, "3600", true },
		{ 16, 1, 100000, "3600", true }, { 16, 1, 1, "3600", false },
		{ 16, 1, 1000, "3600", false },  { 0 },
	};

	ask_all(questions, programs, &inside);
}

/* ---- Servers that run already ---------------------------------------------------- */

static struct server server_there(const char *where)
{
	struct server server = { 0 };
	unsigned port;
	int pid;

	must(sscanf(where, "%u:%d", &port, &pid) == 2);
	server.pid = pid;
	server.port = (uint16_t)port;
	server.load = load_open(server.port, CONNECTIONS);
	return server;
}

static void ask_there(const char *with, const char *without)
{
	static const struct server_question questions[] = {
		{ 1, 1, 1, "", false },       { 1, 1, 1000, "", false },
		{ 16, 1, 1, "", false },      { 16, 1, 1000, "", false },
		{ 16, 1, 100000, "", false },
	};
	static struct findings found;
	/* The second and the third are one: there is nothing to compare it with. */
	struct server servers[] = { server_there(with), server_there(without),
		                    server_there(without) };
	unsigned processor = take_processor();

	for (int s = 0; s < 3; s++)
		server_settle(servers[s].pid, processor);
	print_heads();
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		struct load_plan plan = plan_of(&questions[i], &full);

		memset(&found, 0, sizeof(found));
		for (int s = 0; s < 3; s++)
			warm_up(&servers[s], &questions[i], &full);
		for (unsigned r = 0; r < full.launches * full.rounds; r++)
			take_round(servers, 3, &plan, 1, &found);
		print_findings(&questions[i], &found);
	}
	for (int s = 0; s < 3; s++)
		load_close(servers[s].load);
}

static void only_send(char **numbers)
{
	struct load *load = load_open((uint16_t)atoi(numbers[0]), CONNECTIONS);
	struct load_plan plan = { .deep = (unsigned)atoi(numbers[1]),
		                  .keys = strtoull(numbers[2], NULL, 10),
		                  .count = strtoull(numbers[3], NULL, 10) };
	struct load_answers answers = load_run(load, &plan);

	printf("%" PRIu64 " sent, %" PRIu64 " allowed\n", answers.sent,
	       answers.allowed);
	load_close(load);
}

/* ---------------------------------------------------------------------------------- */

static int wrong_arguments(void)
{
	fprintf(stderr, "gale_http: see the head of bench/http.c\n");
	return 2;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "--send") == 0)
		only_send(argv + 2);
	else if (argc == 4 && strcmp(argv[1], "--there") == 0)
		ask_there(argv[2], argv[3]);
	else if (argc == 5 && strcmp(argv[1], "--nginx") == 0)
		ask_nginx(&(struct server_programs){ argv[3], argv[4], argv[2] });
	else if (argc == 3)
		ask_example(&(struct server_programs){ argv[1], argv[2], NULL }, &full);
	else if (argc == 4 && strcmp(argv[3], "--smoke") == 0)
		ask_example(&(struct server_programs){ argv[1], argv[2], NULL },
		            &smoke);
	else
		return wrong_arguments();
	return 0;
}
