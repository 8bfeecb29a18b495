/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * balancer.h -- an HTTP/1.1 load balancer with a thread for each processor.
 *
 *	a client  --->  thread  --->  a connection of this thread to a backend
 *	          the limit of its address      the guard of the backend
 *
 * A thread accepts connections at a listening socket of its own (SO_REUSEPORT), and turns
 * around an epoll of its own.  It keeps its own connections to each backend, and decides by
 * what it has seen itself which backend is out.  Threads share nothing on the way of a
 * request but gale: the limit of a client's address, and the slots of each backend.
 *
 * A request is read whole (REQUEST_MOST), so that it can be made again at another
 * backend.  A reply is passed on as it comes.
 *
 * Threads   struct balancer is written before the threads start.  All else belongs to one
 *           thread, but for counters, which /metrics reads.
 * Files     main.c ....... flags, threads, signals
 *           thread.c ..... a thread: the loop, and the end
 *           client.c ..... a connection of a client: its requests, its replies
 *           call.c ....... a connection to a backend, and the pool of idle ones
 *           choice.c ..... which backend; ejection; the budget of retries
 *           message.c .... heads and bodies, by libhttp-parser
 *           replies.c .... what the balancer says by itself, and /metrics
 *           ../server/ ... the loop, listening sockets, buffers, values of flags
 */
#ifndef BALANCER_H
#define BALANCER_H

#include <http_parser.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gale/gale.h>
#include <gale/guard.h>

#include "examples/server/buffer.h"
#include "examples/server/flags.h"
#include "examples/server/listener.h"
#include "examples/server/loop.h"

#define BACKENDS_MOST 64
#define HEAD_MOST 16384      /* of a request, of a reply */
#define REQUEST_MOST 1048576 /* of a request's body */
#define READ_MOST 16384      /* at once */
#define UNSENT_MOST 65536 /* a backend is not read while a client has so much to take */
#define IDLE_MOST 64      /* connections that a thread keeps to a backend */
#define CONNECT_MS 1000   /* for a connection to a backend */
#define PART_MS 1000      /* for a client to close after its last reply */

/* ---- Heads and bodies (message.c) ------------------------------------------------- */

enum fault {
	FAULT_NONE,
	FAULT_MALFORMED,
	FAULT_HEAD_TOO_LONG,
	FAULT_BODY_TOO_LONG,
	FAULT_STOPPED, /* a hook said so */
};

/* A request or a reply as it is read.  Its header lines are those that are passed on:
 * none that are for one connection only, and none that say how long the body is. */
struct message {
	http_parser parser;
	/* False: no further. */
	bool (*on_head)(struct message *self);
	bool (*on_body)(struct message *self, const char *text, size_t count);
	struct buffer target; /* of a request */
	struct buffer reason; /* of a reply */
	struct buffer lines;
	struct buffer field, value; /* of the line that is being read */
	struct buffer named;        /* what Connection says, between commas */
	bool is_value;
	bool expects_continue;
	bool has_begun;
	bool has_head;
	bool is_whole;
	bool has_no_body; /* a reply to HEAD */
	enum fault fault;
};

void message_begin(struct message *message, enum http_parser_type type);
/* Returns how much it took: up to the end of the message, at most. */
size_t message_read(struct message *message, const char *text, size_t count);
void message_ends(struct message *message); /* nothing more will come */
void message_free(struct message *message);

/* ---- A thread (thread.c) ---------------------------------------------------------- */

struct backend {
	char name[GALE_NAME_MAX + 1]; /* host:port */
	struct sockaddr_in address;
	uint32_t weight;
	struct gale_guard *guard; /* NULL: --no-limits */
};

/* A backend as one thread sees it. */
struct standing {
	uint32_t in_flight; /* calls of this thread */
	int64_t turn;       /* smooth weighted round robin: the highest is next */
	uint32_t failures;  /* one after the other */
	bool is_ejected;
	bool is_probed; /* by one request, after which it is back or ejected again */
	uint64_t ejected_until_ns;
	uint64_t ejected_for_ns;
	struct call *idle;
	uint32_t idle_count;
	_Atomic uint64_t calls, failed, ejections, ejected; /* for /metrics */
};

struct thread {
	_Alignas(64) pthread_t id;
	const struct balancer *balancer; /* const, so no thread writes to it */
	struct loop loop;                /* its seat is NULL with --no-limits */
	struct listener listener;
	struct timers patience; /* with clients that do not say all, or take nothing */
	struct timers parting;  /* with clients that have had their last reply */
	struct timers connecting, answering;
	uint32_t clients;
	uint32_t retry_permille; /* requests that may be made again, in thousandths */
	bool is_draining;
	uint64_t drained_ns; /* when idle clients are left */
	struct standing standings[BACKENDS_MOST];
	_Atomic uint64_t requests, limited, no_slot, refused, retries, retries_denied;
	char scratch[READ_MOST];
};

struct balancer {
	struct sockaddr_in address;
	uint32_t thread_count;
	struct thread *threads;
	uint32_t backend_count;
	struct backend backends[BACKENDS_MOST];
	struct gale_runtime *runtime; /* NULL: --no-limits */
	struct gale_store *store;
	struct gale_limiter *limiter; /* NULL: no --limit */
	uint64_t limit, window_us;
	uint64_t client_ms, answer_ms;
	uint32_t slots; /* of each backend; 0: as many as is learned */
	const char *store_url;
	bool no_limits;
};

/* Adds to a counter that other threads only read. */
static inline void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter,
	                      atomic_load_explicit(counter, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
}

/* False: errno says why. */
bool thread_open(struct thread *thread, const struct balancer *balancer);
void *thread_run(void *thread);
void thread_close(struct thread *thread);

/* ---- Clients (client.c) ----------------------------------------------------------- */

enum client_state {
	CLIENT_READING, /* a request */
	CLIENT_ASKING,  /* gale has not answered yet */
	CLIENT_CALLING, /* a backend */
	CLIENT_ENDING,  /* the last reply is being sent */
	CLIENT_PARTING, /* it was sent; what is still said is not listened to */
};

struct client {
	struct watcher watcher;
	struct timer timer;
	struct thread *thread;
	uint32_t address;
	enum client_state state;
	struct message request;
	struct buffer in;   /* not read by the parser yet */
	struct buffer body; /* of the request */
	struct buffer out;
	struct call *call;
	uint64_t tried;   /* backends, a bit each */
	int failed_as;    /* the status, if no backend is left */
	bool has_refusal; /* by a guard */
	struct gale_answer refusal;
	bool was_stale; /* once a connection that was idle was closed already */
	bool has_head;  /* of the reply, which began to be sent */
	bool is_chunked;
	bool closes; /* after this reply */
};

void client_accept(struct thread *thread, int fd, const struct sockaddr_in *address);
void client_late(struct timer *timer);
void client_drop(struct client *client);
void client_answer(struct client *client, const struct gale_answer *answer);
void client_leave(struct client *client); /* unless it has said something */
/* Which of its backends is to be called, after an attempt that failed or was none. */
void client_call(struct client *client);
/* What a call has for it. */
bool client_head(struct client *client, const struct message *reply);
bool client_body(struct client *client, const char *text, size_t count);
void client_end(struct client *client);           /* the reply is whole */
void client_flush(struct client *client);         /* after any of these */
bool client_is_safe(const struct client *client); /* its request may be made twice */

/* ---- Calls (call.c) --------------------------------------------------------------- */

struct call {
	struct watcher watcher;
	struct timer timer;
	struct thread *thread;
	uint32_t backend;
	struct client *client; /* NULL: it is idle, and one of its backend's */
	struct call *next_idle, *previous_idle;
	struct gale_entry entry;
	struct message reply;
	struct buffer out; /* the request */
	bool is_probe;
	bool is_connected;
	bool is_reused;
	bool has_sent;
	bool has_heard;
	bool is_refused;  /* by the backend, and another one is asked */
	bool is_stalled;  /* its client takes the reply too slowly */
	bool has_stalled; /* so how long it took says nothing of the backend */
};

/* Takes the entry.  False: there is no connection. */
bool call_begin(struct client *client, uint32_t backend, struct gale_entry entry);
void call_abort(struct call *call); /* its client is gone */
void call_go_on(struct call *call); /* its client takes more */
void call_late(struct timer *timer);
void calls_close(struct thread *thread, uint32_t backend); /* the idle ones */

/* ---- Which backend (choice.c) ----------------------------------------------------- */

/* -1: there is none that was not tried and is not ejected. */
int choice_next(struct thread *thread, uint64_t tried);
bool choice_is_there(const struct thread *thread, uint64_t tried);
/* A call begins; true: it is the probe that decides about an ejected backend. */
bool choice_begins(struct thread *thread, uint32_t backend);
/* And how it ends. */
void choice_works(struct thread *thread, uint32_t backend, bool is_probe);
void choice_fails(struct thread *thread, uint32_t backend, bool is_probe);
void choice_says_nothing(struct thread *thread, uint32_t backend, bool is_probe);
void budget_begin(struct thread *thread);
void budget_earn(struct thread *thread);
bool budget_spend(struct thread *thread);

/* ---- What the balancer says (replies.c) ------------------------------------------- */

/* All end the request; after the last the connection, too. */
void reply_status(struct client *client, int status, const char *sentence);
void reply_last(struct client *client, int status, const char *sentence);
void reply_over_limit(struct client *client, const struct gale_answer *answer);
void reply_no_slot(struct client *client, const struct gale_answer *refusal);
void reply_metrics(struct client *client);

#endif
