/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * uv.h -- gale in a loop of libuv: the loop calls your function with each answer to a
 * pending ask of a seat.
 *
 *	gale_uv_open(&uv, loop, runtime, seat, on_answer);
 *	answer = gale_ask(seat, limiter, key, key_len, 1, tag);     per call
 *	gale_uv_close(&uv, on_closed);
 *
 * If the runtime was opened with .turns, the loop also calls gale_turn when that is due.
 * Use such a runtime in one loop only.  gale.h does not need libuv, and libgale does not use
 * it: all functions below are inline.
 * libuv's own header needs POSIX: compile with -std=gnu11, and not with -std=c11.
 *
 * Threads   One thread runs the loop and has the seat, and only that thread may call these
 *           functions.
 */
#ifndef GALE_UV_H
#define GALE_UV_H

#include <uv.h>

#include <gale/gale.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Put this into a struct of your own: on_answer can then find your struct from self. */
struct gale_uv {
	struct gale_runtime *runtime;
	struct gale_seat *seat;
	/* Gets the answer to a pending ask, and the ask's tag.  It must not close self. */
	void (*on_answer)(struct gale_uv *self, void *tag,
	                  const struct gale_answer *answer);
	void (*on_closed)(struct gale_uv *self);
	unsigned handles; /* how many of the three below are open */
	uv_poll_t answers;
	uv_poll_t turns;
	uv_timer_t later; /* for the next turn */
};

static inline void gale_uv_on_answers_(uv_poll_t *poll, int status, int events)
{
	struct gale_uv *self = (struct gale_uv *)poll->data;
	struct gale_completion done[16];
	size_t count;

	(void)status;
	(void)events;
	do {
		count = gale_seat_completions(self->seat, done, 16);
		for (size_t i = 0; i < count; i++)
			self->on_answer(self, done[i].tag, &done[i].answer);
	} while (count == 16);
}

static inline void gale_uv_turn_(uv_timer_t *later)
{
	struct gale_uv *self = (struct gale_uv *)later->data;
	uint64_t after_us;

	(void)gale_turn(self->runtime);
	after_us = gale_turn_after_us(self->runtime);
	if (after_us == GALE_NEVER)
		uv_timer_stop(later);
	else
		uv_timer_start(later, gale_uv_turn_, (after_us + 999) / 1000, 0);
}

static inline void gale_uv_on_turn_(uv_poll_t *poll, int status, int events)
{
	struct gale_uv *self = (struct gale_uv *)poll->data;

	(void)status;
	(void)events;
	gale_uv_turn_(&self->later);
}

static inline void gale_uv_on_closed_(uv_handle_t *handle)
{
	struct gale_uv *self = (struct gale_uv *)handle->data;

	if (--self->handles == 0 && self->on_closed)
		self->on_closed(self);
}

/* After this call no more answers come, and you may leave the seat.  Keep *self until the
 * loop has called on_closed, which may be NULL. */
static inline void gale_uv_close(struct gale_uv *self,
                                 void (*on_closed)(struct gale_uv *self))
{
	unsigned handles = self->handles;

	self->on_closed = on_closed;
	if (handles > 2)
		uv_close((uv_handle_t *)&self->turns, gale_uv_on_closed_);
	if (handles > 1)
		uv_close((uv_handle_t *)&self->answers, gale_uv_on_closed_);
	if (handles > 0)
		uv_close((uv_handle_t *)&self->later, gale_uv_on_closed_);
}

static inline int gale_uv_watch_(struct gale_uv *self, uv_loop_t *loop, uv_poll_t *poll,
                                 int fd, uv_poll_cb on_event)
{
	int err = uv_poll_init(loop, poll, fd);

	if (err)
		return err;
	poll->data = self;
	self->handles++;
	return uv_poll_start(poll, UV_READABLE, on_event);
}

/* Returns 0, or an error of libuv.  After an error, *self must not be freed before the loop
 * has run once. */
static inline int gale_uv_open(struct gale_uv *self, uv_loop_t *loop,
                               struct gale_runtime *runtime, struct gale_seat *seat,
                               void (*on_answer)(struct gale_uv *self, void *tag,
                                                 const struct gale_answer *answer))
{
	int turn_fd = gale_turn_fd(runtime);
	int err = uv_timer_init(loop, &self->later);

	self->runtime = runtime;
	self->seat = seat;
	self->on_answer = on_answer;
	self->later.data = self;
	self->handles = err ? 0 : 1;
	if (!err)
		err = gale_uv_watch_(self, loop, &self->answers, gale_seat_fd(seat),
		                     gale_uv_on_answers_);
	if (!err && turn_fd >= 0)
		err =
		    gale_uv_watch_(self, loop, &self->turns, turn_fd, gale_uv_on_turn_);
	if (err)
		gale_uv_close(self, NULL);
	else if (turn_fd >= 0)
		gale_uv_turn_(&self->later);
	return err;
}

#ifdef __cplusplus
}
#endif
#endif
