/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * uring.h -- gale in a loop of io_uring: your function gets each answer to a pending ask of a
 * seat.
 *
 *	gale_uring_open(&uring, ring, runtime, seat, on_answer);
 *	gale_uring_prepare(&uring);                                 before each submit
 *	io_uring_submit_and_wait(ring, 1);
 *	if (!gale_uring_take(&uring, cqe))                          for each cqe
 *		the cqe is one of yours;
 *	answer = gale_ask(seat, limiter, key, key_len, 1, tag);     per call
 *	gale_uring_close(&uring, on_closed);                        and go on with the loop
 *
 * If the runtime was opened with .turns, gale_uring_take also calls gale_turn when that is due.
 * Use such a runtime in one loop only.  gale.h does not need liburing, and libgale does not use
 * it: all functions below are inline, and none of them waits.
 * liburing's own header needs POSIX: compile with -std=gnu11, and not with -std=c11.
 *
 * user_data  Each request of a gale_uring has an address inside the struct as its user_data.
 *            So the addresses of your own structs are free for your requests.
 *
 * Threads    One thread submits to the ring and has the seat, and only that thread may call
 *            these functions.
 */
#ifndef GALE_URING_H
#define GALE_URING_H

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <time.h>

#include <gale/gale.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The requests of a gale_uring.  CANCELS_ + n cancels request n. */
enum gale_uring_request_ {
	GALE_URING_ANSWERS_, /* polls the seat's descriptor */
	GALE_URING_TURNS_,   /* polls gale_turn_fd */
	GALE_URING_LATER_,   /* the time of the next turn */
	GALE_URING_CANCELS_,
	GALE_URING_REQUESTS_ = 2 * GALE_URING_CANCELS_
};

/* Put this into a struct of your own: on_answer can then find your struct from self. */
struct gale_uring {
	struct io_uring *ring;
	struct gale_runtime *runtime;
	struct gale_seat *seat;
	/* Gets the answer to a pending ask, and the ask's tag.  It must not close self. */
	void (*on_answer)(struct gale_uring *self, void *tag,
	                  const struct gale_answer *answer);
	void (*on_closed)(struct gale_uring *self);
	bool is_closing;
	/* Why the kernel refused a request, until gale_uring_prepare returns it; or 0. */
	int err;
	/* IORING_POLL_ADD_MULTI, or 0 if the kernel does not have it. */
	unsigned repeats;
	/* By CLOCK_MONOTONIC; UINT64_MAX: no turn is due. */
	uint64_t turn_due_ns;
	/* The time of GALE_URING_LATER_, and the same for the kernel. */
	uint64_t later_ns;
	struct __kernel_timespec later;
	/* The last cqe of a request is still to come. */
	bool is_out[GALE_URING_REQUESTS_];
};

static inline void gale_uring_turn_(struct gale_uring *self)
{
	struct timespec now;
	uint64_t after_us;

	(void)gale_turn(self->runtime);
	after_us = gale_turn_after_us(self->runtime);
	self->turn_due_ns = UINT64_MAX;
	if (after_us >= UINT64_MAX / 2000)
		return;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	self->turn_due_ns =
	    (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + after_us * 1000;
}

/* Makes no request: gale_uring_prepare does. */
static inline void gale_uring_open(struct gale_uring *self, struct io_uring *ring,
                                   struct gale_runtime *runtime, struct gale_seat *seat,
                                   void (*on_answer)(struct gale_uring *self, void *tag,
                                                     const struct gale_answer *answer))
{
	self->ring = ring;
	self->runtime = runtime;
	self->seat = seat;
	self->on_answer = on_answer;
	self->on_closed = NULL;
	self->is_closing = false;
	self->err = 0;
	self->repeats = IORING_POLL_ADD_MULTI;
	self->turn_due_ns = UINT64_MAX;
	for (unsigned which = 0; which < GALE_URING_REQUESTS_; which++)
		self->is_out[which] = false;
	if (gale_turn_fd(runtime) >= 0)
		gale_uring_turn_(self);
}

/* A poll that repeats tells of each new event.  The seat's descriptor has a new event for each
 * answer that finds it cleared, but gale_turn_fd has none for work that a turn left undone: its
 * poll is made again after each turn, and then finds the descriptor readable. */
static inline void gale_uring_fill_(struct gale_uring *self, struct io_uring_sqe *sqe,
                                    unsigned which)
{
	switch (which) {
	case GALE_URING_ANSWERS_:
		io_uring_prep_poll_add(sqe, gale_seat_fd(self->seat), POLLIN);
		sqe->len = self->repeats;
		break;
	case GALE_URING_TURNS_:
		io_uring_prep_poll_add(sqe, gale_turn_fd(self->runtime), POLLIN);
		break;
	case GALE_URING_LATER_:
		self->later_ns = self->turn_due_ns;
		self->later.tv_sec = (int64_t)(self->later_ns / 1000000000);
		self->later.tv_nsec = (long long)(self->later_ns % 1000000000);
		io_uring_prep_timeout(sqe, &self->later, 0, IORING_TIMEOUT_ABS);
		break;
	default:
		io_uring_prep_cancel(sqe, &self->is_out[which - GALE_URING_CANCELS_],
		                     0);
	}
	io_uring_sqe_set_data(sqe, &self->is_out[which]);
}

/* Makes room in a full submission queue by submitting what is in it. */
static inline int gale_uring_request_now_(struct gale_uring *self, unsigned which)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(self->ring);

	if (!sqe) {
		int err = io_uring_submit(self->ring);

		sqe = io_uring_get_sqe(self->ring);
		if (!sqe)
			return err < 0 ? err : -EBUSY;
	}
	gale_uring_fill_(self, sqe, which);
	self->is_out[which] = true;
	return 0;
}

static inline bool gale_uring_wants_(const struct gale_uring *self, unsigned which)
{
	if (self->is_closing)
		return false;
	if (which == GALE_URING_TURNS_)
		return gale_turn_fd(self->runtime) >= 0;
	return which == GALE_URING_ANSWERS_ || self->turn_due_ns != UINT64_MAX;
}

/* A time that is too early does no harm: a turn with nothing to do. */
static inline bool gale_uring_is_stale_(const struct gale_uring *self, unsigned which)
{
	return self->is_closing ||
	       (which == GALE_URING_LATER_ && self->turn_due_ns < self->later_ns);
}

/* Puts the requests that are needed into the submission queue.  Call it right before each
 * submit, where no chain of linked requests is half done: if the queue is full, it submits.
 * Returns 0 or a negative errno:
 *
 *   what io_uring_submit returned, or -EBUSY if the queue is still full: take some cqes, and
 *   call it again before you wait;
 *   what the kernel refused a request with: the next call makes the request again. */
static inline int gale_uring_prepare(struct gale_uring *self)
{
	int err = self->err;

	self->err = 0;
	for (unsigned which = 0; which < GALE_URING_CANCELS_ && !err; which++) {
		unsigned cancel = which + GALE_URING_CANCELS_;

		if (!self->is_out[which]) {
			if (gale_uring_wants_(self, which))
				err = gale_uring_request_now_(self, which);
		} else if (!self->is_out[cancel] && gale_uring_is_stale_(self, which)) {
			err = gale_uring_request_now_(self, cancel);
		}
	}
	return err;
}

/* ENOENT and EALREADY: a cancel came too late.  EINVAL: the kernel is older than 5.13, and does
 * not know a poll that repeats. */
static inline void gale_uring_note_(struct gale_uring *self, unsigned which, int res)
{
	if (res >= 0 || res == -ECANCELED || res == -ENOENT || res == -EALREADY ||
	    (which == GALE_URING_LATER_ && res == -ETIME))
		return;
	if (which == GALE_URING_ANSWERS_ && res == -EINVAL && self->repeats)
		self->repeats = 0;
	else
		self->err = res;
}

static inline void gale_uring_take_answers_(struct gale_uring *self)
{
	struct gale_completion done[16];
	size_t count;

	do {
		count = gale_seat_completions(self->seat, done, 16);
		for (size_t i = 0; i < count; i++)
			self->on_answer(self, done[i].tag, &done[i].answer);
	} while (count == 16);
}

static inline void gale_uring_end_if_idle_(struct gale_uring *self)
{
	for (unsigned which = 0; which < GALE_URING_REQUESTS_; which++) {
		if (self->is_out[which])
			return;
	}
	if (self->on_closed)
		self->on_closed(self);
}

/* False: the cqe is none of self's.  You mark the cqe as seen in both cases. */
static inline bool gale_uring_take(struct gale_uring *self,
                                   const struct io_uring_cqe *cqe)
{
	uint64_t which = cqe->user_data - (uint64_t)(uintptr_t)self->is_out;

	if (which >= GALE_URING_REQUESTS_)
		return false;
	if (!(cqe->flags & IORING_CQE_F_MORE))
		self->is_out[which] = false;
	gale_uring_note_(self, (unsigned)which, cqe->res);
	if (self->is_closing)
		gale_uring_end_if_idle_(self);
	else if (which == GALE_URING_ANSWERS_)
		gale_uring_take_answers_(self);
	else if (which == GALE_URING_TURNS_ || which == GALE_URING_LATER_)
		gale_uring_turn_(self);
	return true;
}

/* After this call no more answers come, and you may leave the seat.  Go on with your loop, and
 * keep *self until on_closed is called: by gale_uring_take with the last cqe, or in this call
 * if no request is out.  on_closed may be NULL.  If you end the ring, too, you need not wait:
 * after io_uring_queue_exit the kernel has no request of *self. */
static inline void gale_uring_close(struct gale_uring *self,
                                    void (*on_closed)(struct gale_uring *self))
{
	self->on_closed = on_closed;
	self->is_closing = true;
	gale_uring_end_if_idle_(self);
}

#ifdef __cplusplus
}
#endif
#endif
