/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * slot.h -- exact instants and spans, as whole microseconds and a part.
 *
 * At 3 units per second a unit takes 333,333 1/3 microseconds.  Rounding that loses
 * rate; floating point loses bits.  So a slot is us + part/den, where den is the limit
 * of the rule that the slot belongs to: every multiple of period/limit is exact.
 *
 * Invariants  SLOT-1  part < den.  Two slots may be compared or added only under one
 *                     den.
 *             SLOT-2  us stays below 2^53 for every sum the engine makes: an instant is
 *                     below 2^52, a span at most 2^50, and no slot lies further ahead
 *                     of its instant than two spans.
 */
#ifndef ENGINE_SLOT_H
#define ENGINE_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/rule.h>

#define INSTANT_MAX_US (UINT64_C(1) << 52) /* the year 2112; later is taken as this */

__extension__ typedef unsigned __int128 uint128;

/* floor(a * b / d), with the remainder; exact for any a, b whose quotient fits. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t d, uint64_t *ret_rest)
{
	uint64_t small;
	uint128 big;

	if (!__builtin_mul_overflow(a, b, &small)) {
		*ret_rest = small % d;
		return small / d;
	}
	big = (uint128)a * b;
	*ret_rest = (uint64_t)(big % d);
	return (uint64_t)(big / d);
}

/* floor(ns / 1000) below 2^55 ns, which is 416 days, and at most one more beyond: a
 * multiplication by 2^64 / 1000, rounded up. */
static inline uint64_t us_of_ns(uint64_t ns)
{
	return (uint64_t)((uint128)ns * UINT64_C(18446744073709552) >> 64);
}

/* floor(n / d); most n fit in 64 bits, where it is cheap. */
static inline uint128 wide_quotient(uint128 n, uint64_t d)
{
	if ((uint64_t)(n >> 64) == 0)
		return (uint64_t)n / d;
	return n / d;
}

/* The same, for a quotient that fits in 64 bits. */
static inline uint64_t wide_div(uint128 n, uint64_t d)
{
	return (uint64_t)wide_quotient(n, d);
}

static inline struct gale_slot slot_at(uint64_t us)
{
	return (struct gale_slot){ .us = us };
}

/* How long cost units take at limit units per period; its parts are in 1/limit. */
static inline struct gale_slot slot_span(uint64_t cost, uint64_t period, uint64_t limit)
{
	struct gale_slot span;

	span.us = mul_div(cost, period, limit, &span.part);
	return span;
}

static inline struct gale_slot slot_add(struct gale_slot a, struct gale_slot b,
                                        uint64_t den)
{
	uint64_t part = a.part + b.part;
	uint64_t carry = part >= den;

	return (struct gale_slot){ a.us + b.us + carry, part - (carry ? den : 0) };
}

static inline bool slot_before(struct gale_slot a, struct gale_slot b)
{
	return a.us != b.us ? a.us < b.us : a.part < b.part;
}

static inline bool slot_equal(struct gale_slot a, struct gale_slot b)
{
	return a.us == b.us && a.part == b.part;
}

static inline struct gale_slot slot_later(struct gale_slot a, struct gale_slot b)
{
	return slot_before(a, b) ? b : a;
}

/* b - a, for a not after b. */
static inline struct gale_slot slot_since(struct gale_slot a, struct gale_slot b,
                                          uint64_t den)
{
	uint64_t borrow = b.part < a.part;

	return (struct gale_slot){ b.us - a.us - borrow,
		                   b.part + (borrow ? den : 0) - a.part };
}

/* b - a, or nothing when a is later. */
static inline struct gale_slot slot_until(struct gale_slot a, struct gale_slot b,
                                          uint64_t den)
{
	return slot_before(a, b) ? slot_since(a, b, den) : slot_at(0);
}

/* Whole microseconds, rounded up: a wait that is never too short. */
static inline uint64_t slot_ceil(struct gale_slot s)
{
	return s.us + (s.part != 0);
}

#endif
