/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * event.h -- gale in a loop of libevent: the loop calls your function with each answer to a
 * pending ask of a seat.
 *
 *	gale_event_open(&event, base, runtime, seat, on_answer);
 *	answer = gale_ask(seat, limiter, key, key_len, 1, tag);     per call
 *	gale_event_close(&event);
 *
 * If the runtime was opened with .turns, the loop also calls gale_turn when that is due.
 * Use such a runtime in one loop only.  gale.h does not need libevent, and libgale does not use
 * it: all functions below are inline.
 * Do not link libev into the same program: some functions of libev and libevent have the same
 * names, so your program may call the wrong one.
 *
 * Threads   One thread runs the loop and has the seat, and only that thread may call these
 *           functions.
 */
#ifndef GALE_EVENT_H
#define GALE_EVENT_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include <gale/gale.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Put this into a struct of your own: on_answer can then find your struct from self. */
struct gale_event {
	struct gale_runtime *runtime;
	struct gale_seat *seat;
	/* Gets the answer to a pending ask, and the ask's tag.  It must not close self. */
	void (*on_answer)(struct gale_event *self, void *tag,
	                  const struct gale_answer *answer);
	struct event answers;
	bool has_turns;
	struct event turns; /* gale_turn_fd is readable, or a turn is due */
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

/* After this call no more answers come, *self may be reused, and you may leave the seat. */
static inline void gale_event_close(struct gale_event *self)
{
	(void)event_del(&self->answers);
	if (self->has_turns)
		(void)event_del(&self->turns);
}

/* Returns 0, or -1 if libevent returned -1; then nothing is open. */
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
