/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ev.h -- gale in a loop of libev: the loop calls your function with each answer to a
 * pending ask of a seat.
 *
 *	gale_ev_open(&ev, loop, runtime, seat, on_answer);
 *	answer = gale_ask(seat, limiter, key, key_len, 1, tag);     per call
 *	gale_ev_close(&ev);
 *
 * If the runtime was opened with .turns, the loop also calls gale_turn when that is due.
 * Use such a runtime in one loop only.  gale.h does not need libev, and libgale does not use
 * it: all functions below are inline.
 *
 * Threads   One thread runs the loop and has the seat, and only that thread may call these
 *           functions.
 */
#ifndef GALE_EV_H
#define GALE_EV_H

#include <ev.h>

#include <gale/gale.h>

#if !EV_MULTIPLICITY
#error "gale/ev.h passes the loop: build libev with EV_MULTIPLICITY"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Put this into a struct of your own: on_answer can then find your struct from self. */
struct gale_ev {
	struct ev_loop *loop;
	struct gale_runtime *runtime;
	struct gale_seat *seat;
	/* Gets the answer to a pending ask, and the ask's tag.  It must not close self. */
	void (*on_answer)(struct gale_ev *self, void *tag,
	                  const struct gale_answer *answer);
	ev_io answers;
	ev_io turns;
	ev_timer later; /* for the next turn */
};

static inline void gale_ev_on_answers_(struct ev_loop *loop, ev_io *io, int events)
{
	struct gale_ev *self = (struct gale_ev *)io->data;
	struct gale_completion done[16];
	size_t count;

	(void)loop;
	(void)events;
	do {
		count = gale_seat_completions(self->seat, done, 16);
		for (size_t i = 0; i < count; i++)
			self->on_answer(self, done[i].tag, &done[i].answer);
	} while (count == 16);
}

/* gale_turn may take a while, so the loop's time is updated before the timer starts. */
static inline void gale_ev_turn_(struct gale_ev *self)
{
	uint64_t after_us;

	(void)gale_turn(self->runtime);
	after_us = gale_turn_after_us(self->runtime);
	ev_timer_stop(self->loop, &self->later);
	if (after_us == GALE_NEVER)
		return;
	ev_now_update(self->loop);
	ev_timer_set(&self->later, (double)after_us / 1e6, 0.);
	ev_timer_start(self->loop, &self->later);
}

static inline void gale_ev_on_turn_(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)events;
	gale_ev_turn_((struct gale_ev *)io->data);
}

static inline void gale_ev_on_later_(struct ev_loop *loop, ev_timer *later, int events)
{
	(void)loop;
	(void)events;
	gale_ev_turn_((struct gale_ev *)later->data);
}

/* After this call no more answers come, *self may be reused, and you may leave the seat. */
static inline void gale_ev_close(struct gale_ev *self)
{
	ev_io_stop(self->loop, &self->answers);
	ev_io_stop(self->loop, &self->turns);
	ev_timer_stop(self->loop, &self->later);
}

static inline void gale_ev_open(struct gale_ev *self, struct ev_loop *loop,
                                struct gale_runtime *runtime, struct gale_seat *seat,
                                void (*on_answer)(struct gale_ev *self, void *tag,
                                                  const struct gale_answer *answer))
{
	int turn_fd = gale_turn_fd(runtime);

	self->loop = loop;
	self->runtime = runtime;
	self->seat = seat;
	self->on_answer = on_answer;
	self->answers.data = self->turns.data = self->later.data = self;
	ev_io_init(&self->answers, gale_ev_on_answers_, gale_seat_fd(seat), EV_READ);
	ev_io_init(&self->turns, gale_ev_on_turn_, turn_fd, EV_READ);
	ev_timer_init(&self->later, gale_ev_on_later_, 0., 0.);
	ev_io_start(loop, &self->answers);
	if (turn_fd < 0)
		return;
	ev_io_start(loop, &self->turns);
	gale_ev_turn_(self);
}

#ifdef __cplusplus
}
#endif
#endif
