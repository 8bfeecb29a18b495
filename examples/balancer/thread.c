/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * thread.c -- a thread: its loop, and how it ends.
 *
 * Draining: no connection is accepted any more, each reply is the last of its connection,
 * and a client that says nothing for DRAIN_MS is left.  Requests that have begun go on.
 */
#define _GNU_SOURCE
#include "examples/balancer/balancer.h"

#include <stdio.h>
#include <stdlib.h>

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

static void leave_idle_clients(struct thread *thread)
{
	struct timer *timer = thread->patience.head.next, *next;

	for (; timer != &thread->patience.head; timer = next) {
		next = timer->next;
		client_leave(CONTAINER(timer, struct client, timer));
	}
}

static void stop_listening(struct thread *thread)
{
	listener_close(&thread->listener);
	leave_idle_clients(thread);
}

/* False: there is nothing left to do. */
static bool drain_on(struct thread *thread)
{
	if (!thread->is_draining || thread->loop.now_ns < thread->drained_ns)
		return true;
	if (listener_is_open(&thread->listener))
		stop_listening(thread);
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
	const struct balancer *balancer = thread->balancer;

	if (loop_join(&thread->loop, balancer->runtime, on_answer) != GALE_ERR_OK) {
		fprintf(stderr, "balancer: no memory for a thread\n");
		exit(1);
	}
	while (drain_on(thread))
		loop_turn(&thread->loop, wakes_ns(thread));
	for (uint32_t i = 0; i < balancer->backend_count; i++)
		calls_close(thread, i);
	loop_leave(&thread->loop);
	return NULL;
}

bool thread_open(struct thread *thread, const struct balancer *balancer)
{
	struct loop *loop = &thread->loop;

	thread->balancer = balancer;
	if (!loop_open(loop, on_wake))
		return false;
	timers_open(loop, &thread->patience, balancer->client_ms, client_late);
	timers_open(loop, &thread->parting, PART_MS, client_late);
	timers_open(loop, &thread->connecting, CONNECT_MS, call_late);
	timers_open(loop, &thread->answering, balancer->answer_ms, call_late);
	budget_begin(thread);
	return listener_open(&thread->listener, loop, &balancer->address, on_client);
}

void thread_close(struct thread *thread)
{
	loop_close(&thread->loop);
}
