/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * event.h -- a seat in a loop of libevent: the answers to pending asks come to a function.
 *
 *	gale_event_open(&event, base, runtime, seat, on_answer);
 *	answer = gale_ask(seat, limiter, key, key_len, 1, tag);     per call
 *	gale_event_close(&event);
 *
 * A runtime with .turns takes its turns in the loop, too; one loop of the process may do
 * that.  gale.h does not need libevent, and libgale does not use it: all is in this header.
 * A program that links libev, too, gets functions of that library under libevent's names.
 *
 * Threads   All of it is for the thread of the loop and of the seat.
 */
#ifndef GALE_EVENT_H
#define GALE_EVENT_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include <gale/gale.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Make it a part of a struct of yours, to find that from self. */
struct gale_event {
	struct gale_runtime *runtime;
	struct gale_seat *seat;
	/* The answer to a pending ask, with the ask's tag.  It must not close self. */
	void (*on_answer)(struct gale_event *self, void *tag,
	                  const struct gale_answer *answer);
	struct event answers;
	bool has_turns;
	struct event turns; /* when its descriptor is readable, or it is time */
};

static inline void gale_event_on_answers_(evutil_socket_t fd, short events, void *arg)
{
	struct gale_event *self = (struct gale_event *)arg;
	struct gale_completion done[16];
	size_t count;

	(void)fd;
	(void)events;
	do {
		count = gale_seat_completions(self->seat, done, 16);
		for (size_t i = 0; i < count; i++)
			self->on_answer(self, done[i].tag, &done[i].answer);
	} while (count == 16);
}

/* Returns 0, or -1 if the loop has no memory. */
static inline int gale_event_turn_(struct gale_event *self)
{
	struct timeval after;
	uint64_t after_us;

	(void)gale_turn(self->runtime);
	after_us = gale_turn_after_us(self->runtime);
	if (after_us == GALE_NEVER)
		return event_add(&self->turns, NULL);
	after.tv_sec = (time_t)(after_us / 1000000);
	after.tv_usec = (suseconds_t)(after_us % 1000000);
	return event_add(&self->turns, &after);
}

static inline void gale_event_on_turn_(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	(void)gale_event_turn_((struct gale_event *)arg);
}

/* No more answers come, and *self may be reused.  Leave the seat after this call. */
static inline void gale_event_close(struct gale_event *self)
{
	(void)event_del(&self->answers);
	if (self->has_turns)
		(void)event_del(&self->turns);
}

/* Returns 0, or -1 as libevent does; then nothing is open. */
static inline int gale_event_open(struct gale_event *self, struct event_base *base,
                                  struct gale_runtime *runtime, struct gale_seat *seat,
                                  void (*on_answer)(struct gale_event *self, void *tag,
                                                    const struct gale_answer *answer))
{
	int turn_fd = gale_turn_fd(runtime);

	self->has_turns = false;
	self->runtime = runtime;
	self->seat = seat;
	self->on_answer = on_answer;
	if (event_assign(&self->answers, base, gale_seat_fd(seat), EV_READ | EV_PERSIST,
	                 gale_event_on_answers_, self) != 0 ||
	    event_add(&self->answers, NULL) != 0)
		return -1;
	if (turn_fd < 0)
		return 0;
	if (event_assign(&self->turns, base, turn_fd, EV_READ, gale_event_on_turn_,
	                 self) == 0) {
		self->has_turns = true;
		if (gale_event_turn_(self) == 0)
			return 0;
	}
	gale_event_close(self);
	return -1;
}

#ifdef __cplusplus
}
#endif
#endif
