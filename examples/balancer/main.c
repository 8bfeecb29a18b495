/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* main.c -- flags, gale's handles, the threads, and the signals that end them. */
#define _GNU_SOURCE
#include "examples/balancer/balancer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/server/log.h"

#define PENDING 4096 /* requests of a thread that may wait for an answer of gale's */

static const char usage[] =
    "usage: balancer [options] HOST:PORT[=WEIGHT]...\n"
    "  --address A    where to listen: an IPv4 address (127.0.0.1)\n"
    "  --port P       the port (8080; 0: any)\n"
    "  --threads N    threads (one for each processor)\n"
    "  --limit N/s    requests of a client's address: N/s, N/m, N/h or N/d (no limit)\n"
    "  --slots N      calls in flight to each backend (as many as it can bear)\n"
    "  --store URL    shares limit and slots with other balancers (this one is alone)\n"
    "  --client MS    for a client to send a request, or to take a part of a reply "
    "(30000)\n"
    "  --answer MS    for a backend to send a part of a reply (10000)\n"
    "  --no-limits    without gale\n";

/* ---- Flags ------------------------------------------------------------------------ */

static void take_host(struct backend *backend, const char *text)
{
	const struct addrinfo wanted = { .ai_family = AF_INET,
		                         .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char host[GALE_NAME_MAX + 1];
	const char *colon = strrchr(text, ':');
	int failed;

	if (!colon || colon == text || !colon[1])
		refuse("backend %s: HOST:PORT or HOST:PORT=WEIGHT is needed", text);
	(void)flag_number("port of backend", colon + 1, 1, UINT16_MAX);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	failed = getaddrinfo(host, colon + 1, &wanted, &found);
	if (failed)
		refuse("backend %s: %s", text, gai_strerror(failed));
	memcpy(&backend->address, found->ai_addr, sizeof(backend->address));
	freeaddrinfo(found);
}

static void take_backend(struct balancer *balancer, const char *text)
{
	struct backend *backend = &balancer->backends[balancer->backend_count];
	const char *weight = strchr(text, '=');
	size_t length = weight ? (size_t)(weight - text) : strlen(text);

	if (balancer->backend_count == BACKENDS_MOST)
		refuse("there are more than %d backends", BACKENDS_MOST);
	if (length > GALE_NAME_MAX)
		refuse("backend %s: the name is longer than %d bytes", text,
		       GALE_NAME_MAX);
	memcpy(backend->name, text, length);
	for (uint32_t i = 0; i < balancer->backend_count; i++) {
		if (strcmp(balancer->backends[i].name, backend->name) == 0)
			refuse("backend %s is there twice", backend->name);
	}
	backend->weight =
	    weight ? (uint32_t)flag_number("weight", weight + 1, 1, 1000) : 1;
	take_host(backend, backend->name);
	balancer->backend_count++;
}

static const struct option options[] = {
	{ "address", required_argument, NULL, 'a' },
	{ "answer", required_argument, NULL, 'b' },
	{ "client", required_argument, NULL, 'c' },
	{ "help", no_argument, NULL, 'h' },
	{ "limit", required_argument, NULL, 'l' },
	{ "no-limits", no_argument, NULL, 'n' },
	{ "port", required_argument, NULL, 'p' },
	{ "slots", required_argument, NULL, 's' },
	{ "store", required_argument, NULL, 'u' },
	{ "threads", required_argument, NULL, 't' },
	{ NULL, 0, NULL, 0 },
};

static void take_flag(struct balancer *balancer, int flag, const char *text)
{
	switch (flag) {
	case 'a':
		flag_address(text, &balancer->address);
		break;
	case 'b':
		balancer->answer_ms = flag_number("--answer", text, 1, 3600000);
		break;
	case 'c':
		balancer->client_ms = flag_number("--client", text, 1, 3600000);
		break;
	case 'l':
		balancer->limit = flag_rate("--limit", text, 1, &balancer->window_us);
		break;
	case 'n':
		balancer->no_limits = true;
		break;
	case 'p':
		balancer->address.sin_port =
		    htons((uint16_t)flag_number("--port", text, 0, UINT16_MAX));
		break;
	case 's':
		balancer->slots =
		    (uint32_t)flag_number("--slots", text, 1, GALE_SLOTS_MAX);
		break;
	case 't':
		balancer->thread_count =
		    (uint32_t)flag_number("--threads", text, 1, THREADS_MOST);
		break;
	case 'u':
		balancer->store_url = text;
		break;
	case 'h':
		printf("%s", usage);
		exit(0);
	default:
		fprintf(stderr, "%s", usage); /* after a line of getopt's */
		exit(2);
	}
}

static void take_arguments(struct balancer *balancer, int argc, char **argv)
{
	char why[192];
	int flag;

	flags_name("balancer");
	while ((flag = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_flag(balancer, flag, optarg);
	for (; optind < argc; optind++)
		take_backend(balancer, argv[optind]);
	if (balancer->backend_count == 0)
		refuse("a backend is needed: HOST:PORT or HOST:PORT=WEIGHT\n%s", usage);
	if (balancer->no_limits &&
	    (balancer->limit || balancer->slots || balancer->store_url))
		refuse("--no-limits excludes --limit, --slots and --store");
	if (gale_url_check(balancer->store_url, why, sizeof(why)) != GALE_ERR_OK)
		refuse("--store: %s", why);
	if (balancer->thread_count == 0)
		balancer->thread_count = processors();
}

/* ---- gale ------------------------------------------------------------------------- */

static void must(enum gale_err err, const char *what)
{
	if (err != GALE_ERR_OK)
		refuse("%s: %s", what, gale_err_text(err));
}

/* A node that loses its fleet goes on by what it learned itself. */
static void open_guard(struct balancer *balancer, struct backend *backend)
{
	struct gale_guard_config config = {
		.name = backend->name,
		.law = balancer->slots ? GALE_FIXED : GALE_KNEE,
		.ceiling = balancer->slots,
	};

	if (balancer->store_url) {
		config.store = balancer->store;
		config.on_cut_off = GALE_ON_CUT_OFF_OWN;
	}
	must(gale_guard_open(balancer->runtime, &config, &backend->guard),
	     backend->name);
}

/* When gale cannot tell, as with a store that is down, the balancer would rather serve. */
static void open_limiter(struct balancer *balancer)
{
	struct gale_limiter_config config = {
		.name = "address",
		.rule = gale_fixed_window(balancer->limit, balancer->window_us),
		.mode = GALE_LEASED,
		.on_outage = GALE_ON_OUTAGE_ALLOW,
		.store = balancer->store,
	};

	must(gale_limiter_open(balancer->runtime, &config, &balancer->limiter),
	     "--limit");
}

static void open_gale(struct balancer *balancer)
{
	struct gale_config config = { .shards = 1,
		                      .pending_max = PENDING,
		                      .log = &log_to_stderr };
	struct gale_store_config store = { .url = balancer->store_url };

	must(gale_runtime_open(&config, &balancer->runtime), "gale");
	must(gale_store_open(balancer->runtime, &store, &balancer->store), "--store");
	if (balancer->limit)
		open_limiter(balancer);
	for (uint32_t i = 0; i < balancer->backend_count; i++)
		open_guard(balancer, &balancer->backends[i]);
}

static void close_gale(struct balancer *balancer)
{
	for (uint32_t i = 0; i < balancer->backend_count; i++)
		gale_guard_close(balancer->backends[i].guard);
	gale_limiter_close(balancer->limiter);
	gale_store_close(balancer->store);
	gale_runtime_close(balancer->runtime);
}

/* ---- Listening -------------------------------------------------------------------- */

static void listen_in_all(struct balancer *balancer)
{
	char text[INET_ADDRSTRLEN];

	for (uint32_t i = 0; i < balancer->thread_count; i++) {
		if (!thread_open(&balancer->threads[i], balancer))
			refuse("thread %u: %s", i, strerror(errno));
	}
	inet_ntop(AF_INET, &balancer->address.sin_addr, text, sizeof(text));
	printf("listening on %s, port %d\n", text, ntohs(balancer->address.sin_port));
	fflush(stdout);
}

/* ---- Threads ---------------------------------------------------------------------- */

static void run(struct balancer *balancer, const sigset_t *ends)
{
	int signal;

	for (uint32_t i = 0; i < balancer->thread_count; i++) {
		struct thread *thread = &balancer->threads[i];

		errno = pthread_create(&thread->id, NULL, thread_run, thread);
		if (errno)
			refuse("thread %u: %s", i, strerror(errno));
	}
	sigwait(ends, &signal);
	for (uint32_t i = 0; i < balancer->thread_count; i++)
		loop_wake(&balancer->threads[i].loop);
	for (uint32_t i = 0; i < balancer->thread_count; i++) {
		pthread_join(balancer->threads[i].id, NULL);
		thread_close(&balancer->threads[i]);
	}
}

int main(int argc, char **argv)
{
	static struct balancer balancer = { .client_ms = 30000, .answer_ms = 10000 };
	sigset_t ends;

	balancer.address =
	    (struct sockaddr_in){ .sin_family = AF_INET,
		                  .sin_port = htons(8080),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	take_arguments(&balancer, argc, argv);
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	balancer.threads =
	    aligned_alloc(64, balancer.thread_count * sizeof(struct thread));
	if (!balancer.threads)
		refuse("there is no memory for %u threads", balancer.thread_count);
	memset(balancer.threads, 0, balancer.thread_count * sizeof(struct thread));
	listener_find_port(&balancer.address);
	if (!balancer.no_limits)
		open_gale(&balancer);
	listen_in_all(&balancer);
	run(&balancer, &ends);
	close_gale(&balancer);
	free(balancer.threads);
	return 0;
}
