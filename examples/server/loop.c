/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* loop.c -- watchers, timers, and the seat. */
#define _GNU_SOURCE
#include "examples/server/loop.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MOST 256
#define ANSWERS_MOST 64

/* ---- Watchers --------------------------------------------------------------------- */

bool loop_watch(struct loop *loop, struct watcher *watcher, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLERR, .data.ptr = watcher };
	int change = watcher->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (event.events == watcher->watched)
		return true;
	watcher->watched = event.events;
	return epoll_ctl(loop->epoll, change, watcher->fd, &event) == 0;
}

void loop_end(struct loop *loop, struct watcher *watcher)
{
	if (watcher->fd >= 0)
		close(watcher->fd); /* epoll forgets it */
	watcher->fd = -1;
	watcher->next_dead = loop->dead;
	loop->dead = watcher;
}

static void bury(struct loop *loop)
{
	struct watcher *watcher;

	while ((watcher = loop->dead)) {
		loop->dead = watcher->next_dead;
		free(watcher);
	}
}

/* ---- Timers ----------------------------------------------------------------------- */

void timers_open(struct loop *loop, struct timers *timers, uint64_t wait_ms,
                 void (*on_late)(struct timer *))
{
	timers->head.previous = timers->head.next = &timers->head;
	timers->wait_ns = wait_ms * MILLISECOND;
	timers->on_late = on_late;
	timers->next = loop->timers;
	loop->timers = timers;
}

void timer_stop(struct timer *timer)
{
	if (!timer->next)
		return;
	timer->previous->next = timer->next;
	timer->next->previous = timer->previous;
	timer->previous = timer->next = NULL;
}

void timer_start(struct loop *loop, struct timers *timers, struct timer *timer)
{
	timer_stop(timer);
	timer->deadline_ns = loop->now_ns + timers->wait_ns;
	timer->next = &timers->head;
	timer->previous = timers->head.previous;
	timer->previous->next = timer->next->previous = timer;
}

static void timers_turn(struct loop *loop, struct timers *timers)
{
	struct timer *first;

	while ((first = timers->head.next) != &timers->head &&
	       first->deadline_ns <= loop->now_ns) {
		timer_stop(first);
		timers->on_late(first);
	}
}

static uint64_t earliest(const struct loop *loop, uint64_t until_ns)
{
	for (const struct timers *timers = loop->timers; timers;
	     timers = timers->next) {
		const struct timer *first = timers->head.next;

		if (first != &timers->head && first->deadline_ns < until_ns)
			until_ns = first->deadline_ns;
	}
	return until_ns;
}

/* ---- The seat --------------------------------------------------------------------- */

static void on_completions(struct watcher *watcher, uint32_t events)
{
	struct loop *loop = CONTAINER(watcher, struct loop, completions);
	struct gale_completion done[ANSWERS_MOST];
	size_t count;

	(void)events;
	do {
		count = gale_seat_completions(loop->seat, done, ANSWERS_MOST);
		for (size_t i = 0; i < count; i++)
			loop->on_answer(done[i].tag, &done[i].answer);
	} while (count == ANSWERS_MOST);
}

static void read_clock(struct loop *loop)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	loop->now_ns =
	    (uint64_t)now.tv_sec * 1000 * MILLISECOND + (uint64_t)now.tv_nsec;
	if (loop->seat)
		gale_tick(loop->seat);
}

enum gale_err loop_join(struct loop *loop, struct gale_runtime *runtime,
                        void (*on_answer)(void *tag, const struct gale_answer *answer))
{
	enum gale_err err;

	if (runtime) {
		err = gale_join(runtime, &loop->seat);
		if (err != GALE_ERR_OK)
			return err;
		loop->on_answer = on_answer;
		loop->completions = (struct watcher){ .fd = gale_seat_fd(loop->seat),
			                              .on_events = on_completions };
		if (!loop_watch(loop, &loop->completions, EPOLLIN))
			return GALE_ERR_MEMORY;
	}
	read_clock(loop);
	return GALE_ERR_OK;
}

void loop_leave(struct loop *loop)
{
	bury(loop);
	gale_leave(loop->seat);
	loop->seat = NULL;
}

/* ---- Turning ---------------------------------------------------------------------- */

static int sleep_ms(const struct loop *loop, uint64_t until_ns)
{
	until_ns = earliest(loop, until_ns);
	if (until_ns == UINT64_MAX)
		return -1;
	if (until_ns <= loop->now_ns)
		return 0;
	return (int)((until_ns - loop->now_ns) / MILLISECOND) + 1;
}

void loop_turn(struct loop *loop, uint64_t until_ns)
{
	struct epoll_event events[EVENTS_MOST];
	int count =
	    epoll_wait(loop->epoll, events, EVENTS_MOST, sleep_ms(loop, until_ns));

	read_clock(loop);
	for (int i = 0; i < count; i++) {
		struct watcher *watcher = events[i].data.ptr;

		if (watcher->fd >= 0)
			watcher->on_events(watcher, events[i].events);
	}
	for (struct timers *timers = loop->timers; timers; timers = timers->next)
		timers_turn(loop, timers);
	bury(loop);
}

void loop_wake(struct loop *loop)
{
	/* A counter that is full wakes the loop, too. */
	(void)eventfd_write(loop->wake.fd, 1);
}

static void on_wake(struct watcher *watcher, uint32_t events)
{
	struct loop *loop = CONTAINER(watcher, struct loop, wake);
	eventfd_t value;

	(void)events;
	if (eventfd_read(watcher->fd, &value) == 0)
		loop->on_wake(loop);
}

bool loop_open(struct loop *loop, void (*wake)(struct loop *self))
{
	*loop = (struct loop){
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.wake = { .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
		          .on_events = on_wake },
		.on_wake = wake,
	};
	return loop->epoll >= 0 && loop->wake.fd >= 0 &&
	       loop_watch(loop, &loop->wake, EPOLLIN);
}

void loop_close(struct loop *loop)
{
	close(loop->wake.fd);
	close(loop->epoll);
}
