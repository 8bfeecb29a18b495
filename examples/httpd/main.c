/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* main.c -- flags, threads, and signals. */
#define _GNU_SOURCE
#include "examples/httpd/httpd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: httpd [options]\n"
    "  --address A    where to listen: an IPv4 address (127.0.0.1)\n"
    "  --port P       the port (8080; 0: any)\n"
    "  --threads N    threads (one for each processor)\n"
    "  --limit N/s    requests of a client: N/s, N/m, N/h or N/d (100/m; 0/s: no "
    "limit)\n"
    "  --clients N    clients that are remembered at once (65536)\n"
    "  --policy FILE  limiters \"keys\" and \"addresses\" from a file, instead of "
    "--limit;\n"
    "                 SIGHUP reads it again\n"
    "  --patience MS  for a client to send a request, or to take a part of a reply "
    "(30000)\n"
    "  --headers      RateLimit headers in each reply, not only in a refusal\n"
    "  --legacy       X-RateLimit headers beside them\n"
    "SIGUSR1 prints to standard error which clients are refused most.\n";

/* ---- Flags ------------------------------------------------------------------------ */

static const struct option options[] = {
	{ "address", required_argument, NULL, 'a' },
	{ "clients", required_argument, NULL, 'c' },
	{ "headers", no_argument, NULL, 'H' },
	{ "help", no_argument, NULL, 'h' },
	{ "legacy", no_argument, NULL, 'L' },
	{ "limit", required_argument, NULL, 'l' },
	{ "patience", required_argument, NULL, 'w' },
	{ "policy", required_argument, NULL, 'y' },
	{ "port", required_argument, NULL, 'p' },
	{ "threads", required_argument, NULL, 't' },
	{ NULL, 0, NULL, 0 },
};

static void take_flag(struct server *server, int flag, const char *text)
{
	switch (flag) {
	case 'a':
		flag_address(text, &server->address);
		break;
	case 'c':
		server->max_clients =
		    (uint32_t)flag_number("--clients", text, 1, 1000000000);
		break;
	case 'H':
		server->has_headers = true;
		break;
	case 'L':
		server->options.legacy = true;
		break;
	case 'l':
		server->limit = flag_rate("--limit", text, 0, &server->window_us);
		break;
	case 'w':
		server->patience_ms = flag_number("--patience", text, 1, 3600000);
		break;
	case 'y':
		server->policy = text;
		break;
	case 'p':
		server->address.sin_port =
		    htons((uint16_t)flag_number("--port", text, 0, UINT16_MAX));
		break;
	case 't':
		server->thread_count =
		    (uint32_t)flag_number("--threads", text, 1, THREADS_MOST);
		break;
	case 'h':
		printf("%s", usage);
		exit(0);
	default:
		fprintf(stderr, "%s", usage); /* after a line of getopt's */
		exit(2);
	}
}

static void take_arguments(struct server *server, int argc, char **argv)
{
	int flag;

	flags_name("httpd");
	while ((flag = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_flag(server, flag, optarg);
	if (optind < argc)
		refuse("%s is no flag\n%s", argv[optind], usage);
	if (server->thread_count == 0)
		server->thread_count = processors();
}

/* ---- Threads ---------------------------------------------------------------------- */

static void open_threads(struct server *server)
{
	size_t bytes = server->thread_count * sizeof(struct thread);
	char text[INET_ADDRSTRLEN];

	server->threads = aligned_alloc(64, bytes);
	if (!server->threads)
		refuse("there is no memory for %u threads", server->thread_count);
	memset(server->threads, 0, bytes);
	for (uint32_t i = 0; i < server->thread_count; i++) {
		if (!thread_open(&server->threads[i], server))
			refuse("thread %u: %s", i, strerror(errno));
	}
	inet_ntop(AF_INET, &server->address.sin_addr, text, sizeof(text));
	printf("listening on %s, port %d\n", text, ntohs(server->address.sin_port));
	fflush(stdout);
}

static void start_threads(struct server *server)
{
	for (uint32_t i = 0; i < server->thread_count; i++) {
		struct thread *thread = &server->threads[i];

		errno = pthread_create(&thread->id, NULL, thread_run, thread);
		if (errno)
			refuse("thread %u: %s", i, strerror(errno));
	}
}

static void drain_threads(struct server *server)
{
	for (uint32_t i = 0; i < server->thread_count; i++)
		loop_wake(&server->threads[i].loop);
	for (uint32_t i = 0; i < server->thread_count; i++) {
		pthread_join(server->threads[i].id, NULL);
		thread_close(&server->threads[i]);
	}
	free(server->threads);
}

/* ---- Signals ---------------------------------------------------------------------- */

static const int ends[] = { SIGINT, SIGTERM };

/* No thread is interrupted by any: the main thread waits for them. */
static sigset_t block_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(&signals, ends[i]);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return signals;
}

/* Until one that ends it. */
static void serve(struct limits *limits, const sigset_t *signals)
{
	int signal;

	while (sigwait(signals, &signal) == 0) {
		if (signal == SIGHUP)
			limits_reload(limits);
		else if (signal == SIGUSR1)
			limits_tell(limits);
		else
			return;
	}
}

/* A second signal ends the process. */
static void unblock_ends(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(&signals, ends[i]);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

int main(int argc, char **argv)
{
	static struct server server = { .limit = 100,
		                        .window_us = GALE_SECONDS(60),
		                        .max_clients = 65536,
		                        .patience_ms = 30000 };
	sigset_t signals;

	server.address =
	    (struct sockaddr_in){ .sin_family = AF_INET,
		                  .sin_port = htons(8080),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	take_arguments(&server, argc, argv);
	signals = block_signals();
	limits_open(&server.limits, &server);
	listener_find_port(&server.address);
	open_threads(&server);
	start_threads(&server);
	serve(&server.limits, &signals);
	unblock_ends();
	drain_threads(&server);
	limits_close(&server.limits);
	return 0;
}
