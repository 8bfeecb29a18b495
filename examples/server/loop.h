/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * loop.h -- a thread that turns around epoll, with a seat of gale's in it.
 *
 *	loop_open, listener_open      before the thread starts
 *	loop_join                     in the thread
 *	loop_turn                     waits, reads the clock once (gale_tick), calls what has
 *	                              events, delivers answers of gale's, calls what is late
 *
 * Threads   A loop and all that is in it belong to one thread, but for loop_wake, which
 *           any thread may call, and loop_open and listener_open, before the thread runs.
 */
#ifndef EXAMPLES_SERVER_LOOP_H
#define EXAMPLES_SERVER_LOOP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include <gale/gale.h>

#define MILLISECOND UINT64_C(1000000)

/* What contains a member. */
#define CONTAINER(pointer, type, member)                                               \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* A descriptor; -1: nothing any more. */
struct watcher {
	int fd;
	uint32_t watched;
	void (*on_events)(struct watcher *self, uint32_t events);
	struct watcher *next_dead; /* its memory is freed when the turn is over */
};

/* All of a list wait equally long, so the one that waits last is last. */
struct timer {
	struct timer *previous, *next;
	uint64_t deadline_ns;
};

struct timers {
	struct timer head;
	uint64_t wait_ns;
	void (*on_late)(struct timer *timer);
	struct timers *next; /* of a loop */
};

struct loop {
	int epoll;
	uint64_t now_ns;        /* of this turn */
	struct gale_seat *seat; /* NULL: no limits */
	struct watcher completions, wake;
	void (*on_answer)(void *tag, const struct gale_answer *answer);
	void (*on_wake)(struct loop *self);
	struct timers *timers;
	struct watcher *dead;
};

/* False: errno says why. */
bool loop_open(struct loop *loop, void (*on_wake)(struct loop *self));
void loop_close(struct loop *loop);
/* Before the first turn.  runtime may be NULL. */
enum gale_err loop_join(struct loop *loop, struct gale_runtime *runtime,
                        void (*on_answer)(void *tag, const struct gale_answer *answer));
void loop_leave(struct loop *loop);
/* Sleeps until something is to be done, or until then (UINT64_MAX: for ever). */
void loop_turn(struct loop *loop, uint64_t until_ns);
void loop_wake(struct loop *loop);

bool loop_watch(struct loop *loop, struct watcher *watcher, uint32_t events);
/* Closes the descriptor, and frees the watcher and what it is the first member of. */
void loop_end(struct loop *loop, struct watcher *watcher);

void timers_open(struct loop *loop, struct timers *timers, uint64_t wait_ms,
                 void (*on_late)(struct timer *timer));
void timer_start(struct loop *loop, struct timers *timers, struct timer *timer);
void timer_stop(struct timer *timer);

#endif
