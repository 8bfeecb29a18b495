/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * thread.c -- the loop of a thread: epoll, timers, the listening socket, the end.
 *
 * Draining: no connection is accepted any more, each reply is the last of its connection,
 * and a client that says nothing for DRAIN_MS is left.  What has begun goes on.  A
 * listening socket that is closed would reset the connections that wait in it.  So for
 * DRAIN_MS before that, a filter drops what opens connections, and all that wait are
 * accepted.
 */
#define _GNU_SOURCE
#include "examples/balancer/balancer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MOST 256

/* ---- Watchers --------------------------------------------------------------------- */

bool watch(struct thread *thread, struct watcher *watcher, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLERR, .data.ptr = watcher };
	int change = watcher->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (event.events == watcher->watched)
		return true;
	watcher->watched = event.events;
	return epoll_ctl(thread->epoll, change, watcher->fd, &event) == 0;
}

void watcher_end(struct thread *thread, struct watcher *watcher)
{
	if (watcher->fd >= 0)
		close(watcher->fd); /* epoll forgets it */
	watcher->fd = -1;
	watcher->next_dead = thread->dead;
	thread->dead = watcher;
}

static void bury(struct thread *thread)
{
	struct watcher *watcher;

	while ((watcher = thread->dead)) {
		thread->dead = watcher->next_dead;
		free(watcher);
	}
}

/* ---- Timers ----------------------------------------------------------------------- */

static void timers_open(struct timers *timers, uint64_t wait_ms,
                        void (*on_late)(struct timer *))
{
	timers->head.previous = timers->head.next = &timers->head;
	timers->wait_ns = wait_ms * MILLISECOND;
	timers->on_late = on_late;
}

void timer_stop(struct timer *timer)
{
	if (!timer->next)
		return;
	timer->previous->next = timer->next;
	timer->next->previous = timer->previous;
	timer->previous = timer->next = NULL;
}

void timer_start(struct thread *thread, struct timers *timers, struct timer *timer)
{
	timer_stop(timer);
	timer->deadline_ns = thread->now_ns + timers->wait_ns;
	timer->next = &timers->head;
	timer->previous = timers->head.previous;
	timer->previous->next = timer->next->previous = timer;
}

static void timers_turn(struct thread *thread, struct timers *timers)
{
	struct timer *first;

	while ((first = timers->head.next) != &timers->head &&
	       first->deadline_ns <= thread->now_ns) {
		timer_stop(first);
		timers->on_late(first);
	}
}

static uint64_t earlier(const struct timers *timers, uint64_t than_ns)
{
	const struct timer *first = timers->head.next;

	return first != &timers->head && first->deadline_ns < than_ns
	           ? first->deadline_ns
	           : than_ns;
}

/* ---- The end ---------------------------------------------------------------------- */

/* Of a segment that opens a connection: SYN is set, and ACK is not. */
static void accept_no_more(int listener)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	(void)setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program,
	                 sizeof(program));
}

static void drain(struct thread *thread)
{
	thread->is_draining = true;
	thread->drained_ns = thread->now_ns + DRAIN_MS * MILLISECOND;
	accept_no_more(thread->listener.fd);
}

static void leave_idle_clients(struct thread *thread)
{
	struct timer *timer = thread->patience.head.next, *next;

	for (; timer != &thread->patience.head; timer = next) {
		struct client *client =
		    (struct client *)((char *)timer - offsetof(struct client, timer));

		next = timer->next;
		client_leave(client);
	}
}

static void stop_listening(struct thread *thread)
{
	thread->listener.on_events(&thread->listener, EPOLLIN);
	close(thread->listener.fd);
	thread->listener.fd = -1;
	leave_idle_clients(thread);
}

/* False: there is nothing left to do. */
static bool drain_on(struct thread *thread)
{
	if (!thread->is_draining || thread->now_ns < thread->drained_ns)
		return true;
	if (thread->listener.fd >= 0)
		stop_listening(thread);
	return thread->clients > 0;
}

/* ---- Events ----------------------------------------------------------------------- */

static int accept_one(struct thread *thread, struct sockaddr_in *ret_address)
{
	socklen_t length = sizeof(*ret_address);

	return accept4(thread->listener.fd, (struct sockaddr *)ret_address, &length,
	               SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Without a descriptor, who waits would make epoll return at once for ever. */
static void turn_one_away(struct thread *thread)
{
	struct sockaddr_in address;
	int fd;

	close(thread->spare);
	fd = accept_one(thread, &address);
	if (fd >= 0)
		close(fd);
	thread->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_listener(struct watcher *watcher, uint32_t events)
{
	struct thread *thread =
	    (struct thread *)((char *)watcher - offsetof(struct thread, listener));
	struct sockaddr_in address;
	int fd;

	(void)events;
	while ((fd = accept_one(thread, &address)) >= 0)
		client_accept(thread, fd, &address);
	if (errno == EMFILE || errno == ENFILE)
		turn_one_away(thread);
}

static void on_wake(struct watcher *watcher, uint32_t events)
{
	struct thread *thread =
	    (struct thread *)((char *)watcher - offsetof(struct thread, wake));
	uint64_t value;

	(void)events;
	if (read(watcher->fd, &value, sizeof(value)) == sizeof(value) &&
	    !thread->is_draining)
		drain(thread);
}

static void on_completions(struct watcher *watcher, uint32_t events)
{
	struct thread *thread =
	    (struct thread *)((char *)watcher - offsetof(struct thread, completions));
	struct gale_completion done[64];
	size_t taken;

	(void)events;
	do {
		taken = gale_seat_completions(thread->seat, done, 64);
		for (size_t i = 0; i < taken; i++)
			client_answer(done[i].tag, &done[i].answer);
	} while (taken == 64);
}

/* ---- The loop --------------------------------------------------------------------- */

static void read_clock(struct thread *thread)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	thread->now_ns =
	    (uint64_t)now.tv_sec * 1000 * MILLISECOND + (uint64_t)now.tv_nsec;
	if (thread->seat)
		gale_tick(thread->seat);
}

static int sleep_ms(const struct thread *thread)
{
	uint64_t until = UINT64_MAX;

	until = earlier(&thread->patience, until);
	until = earlier(&thread->parting, until);
	until = earlier(&thread->connecting, until);
	until = earlier(&thread->answering, until);
	if (thread->is_draining && thread->listener.fd >= 0 &&
	    thread->drained_ns < until)
		until = thread->drained_ns;
	if (until == UINT64_MAX)
		return -1;
	if (until <= thread->now_ns)
		return 0;
	return (int)((until - thread->now_ns) / MILLISECOND) + 1;
}

static void turn(struct thread *thread)
{
	struct epoll_event events[EVENTS_MOST];
	int many = epoll_wait(thread->epoll, events, EVENTS_MOST, sleep_ms(thread));

	read_clock(thread);
	for (int i = 0; i < many; i++) {
		struct watcher *watcher = events[i].data.ptr;

		if (watcher->fd >= 0)
			watcher->on_events(watcher, events[i].events);
	}
	timers_turn(thread, &thread->patience);
	timers_turn(thread, &thread->parting);
	timers_turn(thread, &thread->connecting);
	timers_turn(thread, &thread->answering);
}

void *thread_run(void *argument)
{
	struct thread *thread = argument;
	struct balancer *balancer = thread->balancer;

	if (balancer->runtime) {
		if (gale_join(balancer->runtime, &thread->seat) != GALE_ERR_OK) {
			fprintf(stderr, "balancer: no memory for a thread\n");
			exit(1);
		}
		thread->completions =
		    (struct watcher){ .fd = gale_seat_fd(thread->seat),
			              .on_events = on_completions };
		(void)watch(thread, &thread->completions, EPOLLIN);
	}
	read_clock(thread);
	while (drain_on(thread)) {
		bury(thread);
		turn(thread);
	}
	for (uint32_t i = 0; i < balancer->backend_count; i++)
		calls_close(thread, i);
	bury(thread);
	gale_leave(thread->seat);
	return NULL;
}

/* ---- Setting up ------------------------------------------------------------------- */

static int open_listener(const struct balancer *balancer)
{
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0 &&
	    bind(fd, (const struct sockaddr *)&balancer->address,
	         sizeof(balancer->address)) == 0 &&
	    listen(fd, SOMAXCONN) == 0)
		return fd;
	close(fd);
	return -1;
}

bool thread_open(struct thread *thread, struct balancer *balancer)
{
	thread->balancer = balancer;
	thread->listener =
	    (struct watcher){ .fd = open_listener(balancer), .on_events = on_listener };
	thread->wake = (struct watcher){ .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
		                         .on_events = on_wake };
	thread->epoll = epoll_create1(EPOLL_CLOEXEC);
	timers_open(&thread->patience, balancer->client_ms, client_late);
	timers_open(&thread->parting, PART_MS, client_late);
	timers_open(&thread->connecting, CONNECT_MS, call_late);
	timers_open(&thread->answering, balancer->answer_ms, call_late);
	thread->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	budget_begin(thread);
	return thread->listener.fd >= 0 && thread->wake.fd >= 0 && thread->epoll >= 0 &&
	       watch(thread, &thread->listener, EPOLLIN) &&
	       watch(thread, &thread->wake, EPOLLIN);
}

void thread_close(struct thread *thread)
{
	close(thread->spare);
	close(thread->wake.fd);
	close(thread->epoll);
}
