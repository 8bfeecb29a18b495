/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* thread.c -- a thread: its loop, and how it ends. */
#define _GNU_SOURCE
#include "examples/httpd/httpd.h"

static void on_client(struct listener *listener, int fd,
                      const struct sockaddr_in *address)
{
	client_accept(CONTAINER(listener, struct thread, listener), fd, address);
}

static void on_answer(void *tag, const struct gale_answer *answer)
{
	client_answer(tag, answer);
}

/* ---- The end ---------------------------------------------------------------------- */

static void on_wake(struct loop *loop)
{
	struct thread *thread = CONTAINER(loop, struct thread, loop);

	if (thread->is_draining)
		return;
	thread->is_draining = true;
	thread->drained_ns = loop->now_ns + DRAIN_MS * MILLISECOND;
	listener_drain(&thread->listener);
}

/* Each client has its timer: one that has nothing more to come is left, and any other has
 * DRAIN_MS for each step from now on. */
static void leave_clients(struct thread *thread)
{
	struct timer waiting = { 0 }, *timer;

	thread->patience.wait_ns = DRAIN_MS * MILLISECOND;
	timer_start(&thread->loop, &thread->patience, &waiting); /* the end of those */
	while ((timer = thread->patience.head.next) != &waiting) {
		timer_start(&thread->loop, &thread->patience, timer);
		client_leave(CONTAINER(timer, struct client, timer));
	}
	timer_stop(&waiting);
}

/* False: there is nothing left to do. */
static bool drain_on(struct thread *thread)
{
	if (!thread->is_draining || thread->loop.now_ns < thread->drained_ns)
		return true;
	if (listener_is_open(&thread->listener)) {
		listener_close(&thread->listener);
		leave_clients(thread);
	}
	return thread->clients > 0;
}

/* ---- The loop --------------------------------------------------------------------- */

static uint64_t wakes_ns(const struct thread *thread)
{
	bool is_ending = thread->is_draining && listener_is_open(&thread->listener);

	return is_ending ? thread->drained_ns : UINT64_MAX;
}

void *thread_run(void *argument)
{
	struct thread *thread = argument;
	struct gale_runtime *runtime = thread->server->limits.runtime;
	enum gale_err err = loop_join(&thread->loop, runtime, on_answer);

	if (err != GALE_ERR_OK)
		refuse("a thread: %s", gale_err_text(err));
	while (drain_on(thread))
		loop_turn(&thread->loop, wakes_ns(thread));
	loop_leave(&thread->loop);
	return NULL;
}

bool thread_open(struct thread *thread, struct server *server)
{
	thread->server = server;
	if (!loop_open(&thread->loop, on_wake))
		return false;
	timers_open(&thread->loop, &thread->patience, server->patience_ms, client_late);
	return listener_open(&thread->listener, &thread->loop, &server->address,
	                     on_client);
}

void thread_close(struct thread *thread)
{
	loop_close(&thread->loop);
	buffer_free(&thread->page);
}
