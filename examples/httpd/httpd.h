/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * httpd.h -- an HTTP/1.1 server with a thread for each processor, that asks before it
 * serves, and never waits for that.
 *
 *	a client  --->  thread  --->  the limit of its API key, or else of its address
 *
 * Each thread accepts connections at a listening socket of its own (SO_REUSEPORT), and
 * turns around an epoll of its own.  A turn reads the clock once (gale_tick), and asks
 * for each request as it is parsed.  Most answers come at once.  If one is pending, its
 * connection is not served until the answer comes to the seat's completions, with the
 * connection as its tag, and all others go on.  Requests may be pipelined: all that a turn
 * replies to a connection leaves in one call.
 *
 * There is one page, "/".  Its status is 200; or 429, with RateLimit headers, Retry-After
 * and a problem as JSON; or 503 when gale cannot tell.  "/health" is always 200, and
 * "/metrics" is for Prometheus.
 *
 * SIGHUP reads the policy again, and a policy with a mistake changes nothing.  SIGUSR1 prints
 * which clients are refused most.  SIGTERM drains: requests that have arrived are answered,
 * each connection ends with its last reply, and the server exits when none is left.  A second
 * SIGTERM ends it at once.
 *
 * Threads   struct server is written before the threads start.  The main thread takes the
 *           signals, and reads policies.  All else belongs to one thread.
 * Memory    A request allocates nothing, once the buffer of its connection has grown.
 * Files     main.c ....... flags, threads, signals
 *           limits.c ..... gale's handles, from flags or from a policy
 *           thread.c ..... a thread: the loop, and the end
 *           client.c ..... a connection: its requests, its replies
 *           request.c .... a request's head, by libhttp-parser
 *           reply.c ...... replies, and /metrics
 *           ../server/ ... the loop, listening sockets, buffers, values of flags
 */
#ifndef HTTPD_H
#define HTTPD_H

#include <http_parser.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gale/gale.h>
#include <gale/http.h>
#include <gale/policy.h>

#include "examples/server/buffer.h"
#include "examples/server/flags.h"
#include "examples/server/listener.h"
#include "examples/server/loop.h"

#define IN_MOST 8192      /* of a connection that is not answered yet: a head fits */
#define UNSENT_MOST 65536 /* a client that has so much to take is not served */

/* ---- Limits (limits.c) ------------------------------------------------------------ */

struct limits {
	struct gale_runtime *runtime; /* NULL: there are none */
	struct gale_policy *policy;   /* NULL: they come from flags */
	struct gale_store *store;
	struct gale_limiter *by_key, *by_address;
	uint64_t window_us; /* 0: not known */
};

struct server;

/* Ends the program with a sentence if they cannot be opened. */
void limits_open(struct limits *limits, const struct server *server);
/* Says on standard error how it went. */
void limits_reload(struct limits *limits);
/* Prints there which keys are refused most. */
void limits_tell(struct limits *limits);
void limits_close(struct limits *limits);

/* ---- A request (request.c) -------------------------------------------------------- */

/* A part of the head: counted from its first byte. */
struct span {
	uint32_t first, count;
};

enum fault {
	FAULT_NONE,
	FAULT_MALFORMED,
	FAULT_BODY, /* it has one */
	FAULT_KEY,  /* its API key is too long */
};

struct request {
	http_parser parser;
	const char *head; /* while the parser reads */
	struct span target, api_key;
	struct span name, value; /* of the line that is being read */
	bool is_value;
	bool is_whole;
	enum fault fault;
};

void request_begin(struct request *request);
/* Reads on: count bytes from text, in a head that began at head.  Returns how many it
 * took: up to the end of the request, at most. */
size_t request_read(struct request *request, const char *head, const char *text,
                    size_t count);

/* ---- A thread (thread.c) ---------------------------------------------------------- */

struct thread {
	_Alignas(64) struct server *server;
	pthread_t id;
	struct loop loop;
	struct listener listener;
	struct timers patience; /* with clients that do not say all, or take nothing */
	uint32_t clients;
	bool is_draining;
	uint64_t drained_ns; /* when clients that say nothing are left */
	struct buffer page;  /* of /metrics */
};

struct server {
	struct sockaddr_in address;
	uint32_t thread_count;
	struct thread *threads;
	uint64_t limit, window_us; /* 0: there are no limits */
	uint32_t max_clients;      /* that are remembered at once */
	const char *policy;        /* a file; NULL: limit and window_us */
	uint64_t patience_ms;
	bool has_headers; /* each reply, and not only one that denies */
	struct gale_http_options options;
	struct limits limits;
};

/* False: errno says why. */
bool thread_open(struct thread *thread, struct server *server);
void *thread_run(void *thread);
void thread_close(struct thread *thread);

/* ---- Clients (client.c) ----------------------------------------------------------- */

struct client {
	struct watcher watcher;
	struct timer timer;
	struct thread *thread;
	uint32_t address;
	bool waits;        /* for an answer of gale's */
	bool closes;       /* after this reply */
	bool has_said_all; /* it ends when everything is answered */
	bool parts;        /* the last reply was sent, and the client has not closed */
	struct request request;
	struct buffer out;
	/* The request that is being read begins at first, and is parsed up to parsed. */
	uint32_t first, parsed, count;
	char in[IN_MOST];
};

void client_accept(struct thread *thread, int fd, const struct sockaddr_in *address);
void client_late(struct timer *timer);
void client_answer(struct client *client, const struct gale_answer *answer);
void client_leave(struct client *client); /* once all that it said is answered */

/* ---- Replies (reply.c) ------------------------------------------------------------ */

void reply_text(struct client *client, int status, const char *lines, const char *body);
void reply_to_answer(struct client *client, const struct gale_answer *answer);
void reply_metrics(struct client *client);

#endif
