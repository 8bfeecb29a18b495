/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * checks.h -- may this be asked?  Read by every ask, so all of it is inline.
 *
 * Threads   The seat's own.
 */
#ifndef FACE_CHECKS_H
#define FACE_CHECKS_H

#include "face/seat.h"
#include "runtime/hot.h"

/* May anything be asked with these handles?  GALE_WHY_RULE if so. */
static ALWAYS_INLINE enum gale_why check_handles(const struct gale_seat *seat,
                                                 const struct gale_limiter *limiter)
{
	const struct gale_runtime *runtime;

	if (!seat || !limiter || limiter->handle.runtime != seat->handle.runtime)
		return GALE_WHY_BAD_ASK;
	runtime = seat->handle.runtime;
	if (!handle_is_open(&seat->handle, runtime) ||
	    !handle_is_open(&limiter->handle, runtime))
		return GALE_WHY_CLOSED;
	seat_check_thread(seat);
	return runtime_refuses(runtime);
}

/* Tells the time.  False: it must be looked whether the seat may ask at all. */
static ALWAYS_INLINE bool seat_may(const struct gale_seat *seat, mono *ret_now)
{
	/* A seat that has left tells no time. */
	return LIKELY(seat != NULL) && LIKELY(lifeline_passes(&seat->lifeline)) &&
	       LIKELY(seat_tells(seat, ret_now));
}

static ALWAYS_INLINE bool key_is_good(const void *key, size_t key_len)
{
	return key && key_len >= 1 && key_len <= GALE_KEY_MAX;
}

static ALWAYS_INLINE bool cost_is_good(uint64_t cost)
{
	return cost - 1 < GALE_UNITS_MAX;
}

static ALWAYS_INLINE enum gale_why check_ask(const struct gale_seat *seat,
                                             const struct gale_limiter *limiter,
                                             const void *key, size_t key_len,
                                             uint64_t cost)
{
	if (!key_is_good(key, key_len) || !cost_is_good(cost))
		return GALE_WHY_BAD_ASK;
	return check_handles(seat, limiter);
}

#endif
