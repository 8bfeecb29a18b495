/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* driver.c -- lines, keys, threads and times; what a driver in C need not write again. */
#define _GNU_SOURCE
#include "bench/compare/peers/driver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS_MOST 64
#define CALLS_MOST 100000 /* of an outage */

const char *driver_address, *driver_variant;

static const char *folder; /* of draws */
static const struct driver_peer *peer;

/* Of the last line that had keys. */
static char (*keys)[DRIVER_KEY_LEN];
static uint64_t key_count;
static uint32_t *draws;
static uint64_t draw_count;
static char prepared[48]; /* space */

void driver_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

/* ---- Keys ------------------------------------------------------------------------ */

static void make_keys(uint64_t count)
{
	char key[32];

	free(keys);
	keys = malloc(count * sizeof(keys[0]));
	driver_must(keys != NULL, "memory for keys");
	for (uint64_t id = 0; id < count; id++) {
		snprintf(key, sizeof(key), "client-%09" PRIu64, id);
		memcpy(keys[id], key, DRIVER_KEY_LEN);
	}
	key_count = count;
}

static void read_draws(uint64_t count)
{
	char path[512];
	FILE *file;
	long bytes;

	snprintf(path, sizeof(path), "%s/%" PRIu64, folder, count);
	file = fopen(path, "re");
	driver_must(file && fseek(file, 0, SEEK_END) == 0, path);
	bytes = ftell(file);
	rewind(file);
	free(draws);
	draw_count = (uint64_t)bytes / sizeof(draws[0]);
	draws = malloc((size_t)bytes);
	driver_must(draws && draw_count > 0, "memory for draws");
	driver_must(fread(draws, sizeof(draws[0]), draw_count, file) == draw_count,
	            path);
	fclose(file);
	for (uint64_t i = 0; i < draw_count; i++)
		driver_must(draws[i] < count, "a draw");
}

/* ---- Lines ----------------------------------------------------------------------- */

static void take_word(struct driver_work *work, const char *name, const char *value)
{
	double number = strtod(value, NULL);

	if (strcmp(name, "work") == 0)
		snprintf(work->name, sizeof(work->name), "%s", value);
	else if (strcmp(name, "space") == 0)
		snprintf(work->space, sizeof(work->space), "%s", value);
	else if (strcmp(name, "keys") == 0)
		work->keys = (uint64_t)number;
	else if (strcmp(name, "limit") == 0)
		work->limit = (uint64_t)number;
	else if (strcmp(name, "threads") == 0)
		work->threads = (unsigned)number;
	else if (strcmp(name, "depth") == 0)
		work->depth = (unsigned)number;
	else if (strcmp(name, "rate") == 0)
		work->rate = (unsigned)number;
	else if (strcmp(name, "workers") == 0)
		work->workers = (unsigned)number;
	else if (strcmp(name, "port") == 0)
		work->port = (unsigned)number;
	else if (strcmp(name, "seconds") == 0)
		work->seconds = number;
	else if (strcmp(name, "from") == 0)
		work->from = number;
	else if (strcmp(name, "until") == 0)
		work->until = number;
}

static struct driver_work read_work(char *line)
{
	struct driver_work work = { .keys = 1, .threads = 1, .depth = 1, .seconds = 1 };
	char *rest = line, *word, *value;

	while ((word = strsep(&rest, " \n"))) {
		value = strchr(word, '=');
		if (!value)
			continue;
		*value++ = '\0';
		take_word(&work, word, value);
	}
	driver_must(work.threads > 0 && work.threads <= THREADS_MOST && work.depth > 0,
	            "a line of work");
	if (work.limit == 0)
		work.limit = strcmp(work.name, "deny") == 0 ? 1 : DRIVER_LIMIT_MUCH;
	return work;
}

/* The middle of the bucket below which that part of the times is. */
static double time_of(const struct driver_tally *tally, double part)
{
	uint64_t all = 0, seen = 0;

	for (unsigned i = 0; i < DRIVER_TIMES; i++)
		all += tally->times[i];
	for (unsigned i = 0; i < DRIVER_TIMES; i++) {
		seen += tally->times[i];
		if (seen > 0 && (double)seen >= part * (double)all)
			return (8.5 + i % 8) * (double)(UINT64_C(1) << (i / 8));
	}
	return 0;
}

static void say(const struct driver_tally *tally, double seconds, double bytes)
{
	const uint64_t *answers = tally->answers;

	printf("operations=%" PRIu64 " allowed=%" PRIu64 " denied=%" PRIu64
	       " failed=%" PRIu64 " seconds=%.6f p50=%.0f p99=%.0f bytes=%.1f\n",
	       answers[DRIVER_ALLOWED] + answers[DRIVER_DENIED] +
	           answers[DRIVER_FAILED],
	       answers[DRIVER_ALLOWED], answers[DRIVER_DENIED], answers[DRIVER_FAILED],
	       seconds, time_of(tally, 0.5), time_of(tally, 0.99), bytes);
}

static void add(struct driver_tally *to, const struct driver_tally *from)
{
	for (int i = 0; i < 3; i++)
		to->answers[i] += from->answers[i];
	for (unsigned i = 0; i < DRIVER_TIMES; i++)
		to->times[i] += from->times[i];
}

/* ---- As fast as they come -------------------------------------------------------- */

static void *run_thread(void *arg)
{
	peer->run(arg);
	return NULL;
}

static void run(const struct driver_work *work)
{
	static struct driver_turn turns[THREADS_MOST];
	static struct driver_tally all;
	pthread_t threads[THREADS_MOST];
	uint64_t began = driver_now_ns();

	all = (struct driver_tally){ { 0 }, { 0 } };
	for (unsigned i = 0; i < work->threads; i++) {
		turns[i] = (struct driver_turn){
			.work = work,
			.keys = (const char(*)[DRIVER_KEY_LEN])keys,
			.draws = draws,
			.drawn = draw_count,
			.at = draw_count / work->threads * i,
			.end_ns = began + (uint64_t)(work->seconds * 1e9),
		};
		driver_must(pthread_create(&threads[i], NULL, run_thread, &turns[i]) ==
		                0,
		            "a thread");
	}
	for (unsigned i = 0; i < work->threads; i++) {
		pthread_join(threads[i], NULL);
		add(&all, &turns[i].tally);
	}
	say(&all, (double)(driver_now_ns() - began) / 1e9, 0);
}

/* ---- Memory ---------------------------------------------------------------------- */

static double resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long all = 0, resident = 0;

	driver_must(statm && fscanf(statm, "%ld %ld", &all, &resident) == 2, "statm");
	fclose(statm);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void fill(const struct driver_work *work, double before)
{
	struct driver_turn turn = { .work = work,
		                    .keys = (const char(*)[DRIVER_KEY_LEN])keys };
	uint64_t began = driver_now_ns();

	peer->fill(&turn);
	say(&turn.tally, (double)(driver_now_ns() - began) / 1e9,
	    (resident_bytes() - before) / (double)work->keys);
}

/* ---- At a rate ------------------------------------------------------------------- */

static void sleep_until(uint64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000),
		                  .tv_nsec = (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		continue;
}

static void fleet(const struct driver_work *work)
{
	uint64_t began = driver_now_ns(), count = 0, due;
	uint64_t from = began + (uint64_t)(work->from * 1e9);
	uint64_t until = began + (uint64_t)(work->until * 1e9);
	struct driver_tally tally = { { 0 }, { 0 } };

	while ((due = from + count++ * 1000000000 / work->rate) < until) {
		uint64_t asked;

		sleep_until(due);
		asked = driver_now_ns();
		/* A peer that cannot keep up asks for less, and not for longer. */
		if (asked >= until)
			break;
		tally.answers[peer->call(keys[0])]++;
		driver_note(&tally, driver_now_ns() - asked);
	}
	say(&tally, (double)(driver_now_ns() - began) / 1e9, 0);
}

static void outage(const struct driver_work *work)
{
	uint64_t began = driver_now_ns(), count = 0, due;
	uint64_t until = began + (uint64_t)(work->seconds * 1e9);

	for (due = began; due < until && count < CALLS_MOST; count++) {
		enum driver_answer answer;
		uint64_t asked;

		sleep_until(due);
		asked = driver_now_ns();
		answer = peer->call(keys[0]);
		printf("call=%.3f:%.3f:%c ", (double)(asked - began) / 1e6,
		       (double)(driver_now_ns() - asked) / 1e6, "adf"[answer]);
		/* The calls that a late answer held up are not made up for. */
		due += 1000000000 / work->rate;
		if (due < driver_now_ns())
			due = driver_now_ns();
	}
	printf("\n");
}

/* ---- In flight ------------------------------------------------------------------- */

struct worker {
	const struct driver_work *work;
	uint64_t end_ns;
	struct driver_tally tally;
};

static int connect_backend(unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons((uint16_t)port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	driver_must(fd >= 0 &&
	                connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0,
	            "the backend");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void call_backend(int fd)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: backend\r\n\r\n";
	char reply[512];
	size_t count = 0;

	driver_must(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) ==
	                (ssize_t)sizeof(request) - 1,
	            "a request to the backend");
	do {
		ssize_t more = recv(fd, reply + count, sizeof(reply) - count, 0);

		driver_must(more > 0, "a reply of the backend");
		count += (size_t)more;
	} while (count < 4 || !memmem(reply, count, "\r\n\r\n", 4));
}

static void *guard_worker(void *arg)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	struct worker *worker = arg;
	void *own = peer->worker_open();
	int fd = peer->is_proxy ? -1 : connect_backend(worker->work->port);
	uint64_t began;

	while ((began = driver_now_ns()) < worker->end_ns) {
		bool may = peer->enter(own);

		worker->tally.answers[may ? DRIVER_ALLOWED : DRIVER_DENIED]++;
		driver_note(&worker->tally, driver_now_ns() - began);
		if (!may) {
			nanosleep(&moment, NULL);
			continue;
		}
		if (!peer->is_proxy)
			call_backend(fd);
		peer->exit(own);
	}
	if (fd >= 0)
		close(fd);
	peer->worker_close(own);
	return NULL;
}

static void guard(const struct driver_work *work)
{
	static struct worker workers[THREADS_MOST];
	static struct driver_tally all;
	pthread_t threads[THREADS_MOST];
	uint64_t began = driver_now_ns();

	driver_must(work->workers > 0 && work->workers <= THREADS_MOST, "workers");
	all = (struct driver_tally){ { 0 }, { 0 } };
	for (unsigned i = 0; i < work->workers; i++) {
		workers[i] = (struct worker){
			.work = work, .end_ns = began + (uint64_t)(work->seconds * 1e9)
		};
		driver_must(
		    pthread_create(&threads[i], NULL, guard_worker, &workers[i]) == 0,
		    "a thread");
	}
	for (unsigned i = 0; i < work->workers; i++) {
		pthread_join(threads[i], NULL);
		add(&all, &workers[i].tally);
	}
	say(&all, (double)(driver_now_ns() - began) / 1e9, 0);
}

/* ---- A line ---------------------------------------------------------------------- */

/* NULL: it can. */
static const char *make_ready(const struct driver_work *work)
{
	const char *why = NULL;

	if (strcmp(work->name, "guard") == 0 && !peer->enter)
		return "it limits calls in a time, and not calls in flight";
	if (strcmp(work->name, "guard") != 0 && !peer->call)
		return "it limits calls in flight, and not calls in a time";
	if (key_count != work->keys) {
		make_keys(work->keys);
		read_draws(work->keys);
		prepared[0] = '\0';
	}
	if (strcmp(work->name, "fill") != 0 && strcmp(prepared, work->space) != 0) {
		why = peer->prepare(work, (const char(*)[DRIVER_KEY_LEN])keys);
		snprintf(prepared, sizeof(prepared), "%s", why ? "" : work->space);
	}
	return why;
}

static void do_line(const struct driver_work *work)
{
	const char *why = make_ready(work);

	if (why) {
		printf("cannot=%s\n", why);
	} else if (strcmp(work->name, "fill") == 0) {
		double before = resident_bytes();

		why = peer->prepare(work, (const char(*)[DRIVER_KEY_LEN])keys);
		driver_must(why == NULL, "memory of a peer");
		fill(work, before);
	} else if (strcmp(work->name, "fleet") == 0) {
		fleet(work);
	} else if (strcmp(work->name, "outage") == 0) {
		outage(work);
	} else if (strcmp(work->name, "guard") == 0) {
		guard(work);
	} else {
		run(work);
	}
	fflush(stdout);
}

int driver_main(int argc, char **argv, const struct driver_peer *of)
{
	char line[1024];

	driver_must(argc >= 2, "DRAWS [ADDRESS [VARIANT]]");
	peer = of;
	folder = argv[1];
	driver_address = argc > 2 && argv[2][0] ? argv[2] : NULL;
	driver_variant = argc > 3 ? argv[3] : "";
	while (fgets(line, sizeof(line), stdin)) {
		struct driver_work work = read_work(line);

		do_line(&work);
	}
	return 0;
}
