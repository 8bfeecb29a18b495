/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * rational.h -- exact fractions, for arithmetic that rounds once, at the very end.
 *
 * A fraction is num/den, always in lowest terms, with den above zero.  Both are 128
 * bits wide: an instant (2^52) times a limit (2^53) times a permillage (2^10) still
 * fits.
 *
 * Limits    What does not fit is a broken assertion, never a wrong number.
 */
#ifndef TESTS_MODEL_RATIONAL_H
#define TESTS_MODEL_RATIONAL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/check.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

struct rational {
	wide num;
	wide den;
};

static inline unsigned_wide wide_size(wide a)
{
	return a < 0 ? -(unsigned_wide)a : (unsigned_wide)a;
}

static inline wide wide_add(wide a, wide b)
{
	wide sum;

	gale_assert(!__builtin_add_overflow(a, b, &sum));
	return sum;
}

static inline wide wide_mul(wide a, wide b)
{
	unsigned_wide size;

	gale_assert(!__builtin_mul_overflow(wide_size(a), wide_size(b), &size));
	gale_assert(size >> 127 == 0);
	return (a < 0) != (b < 0) ? -(wide)size : (wide)size;
}

/* Euclid's, with narrow divisions as soon as both numbers are narrow. */
static inline wide wide_gcd(wide a, wide b)
{
	unsigned_wide x = wide_size(a);
	unsigned_wide y = wide_size(b);

	while (y != 0) {
		unsigned_wide rest =
		    (x | y) >> 64 == 0 ? (uint64_t)x % (uint64_t)y : x % y;
		x = y;
		y = rest;
	}
	return (wide)x;
}

static inline struct rational rat_ratio(wide num, wide den)
{
	wide common = wide_gcd(num, den);

	gale_assert(den > 0);
	return (struct rational){ num / common, den / common };
}

static inline struct rational rat_whole(wide n)
{
	return (struct rational){ n, 1 };
}

static inline struct rational rat_add(struct rational a, struct rational b)
{
	wide common = wide_gcd(a.den, b.den);
	wide left = wide_mul(a.num, b.den / common);
	wide right = wide_mul(b.num, a.den / common);

	return rat_ratio(wide_add(left, right), wide_mul(a.den, b.den / common));
}

static inline struct rational rat_sub(struct rational a, struct rational b)
{
	return rat_add(a, (struct rational){ -b.num, b.den });
}

/* What cancels crosswise is cancelled first: the product is then in lowest terms. */
static inline struct rational rat_mul(struct rational a, struct rational b)
{
	wide one = wide_gcd(a.num, b.den);
	wide two = wide_gcd(b.num, a.den);

	return (struct rational){ wide_mul(a.num / one, b.num / two),
		                  wide_mul(a.den / two, b.den / one) };
}

static inline struct rational rat_div(struct rational a, struct rational b)
{
	gale_assert(b.num > 0);
	return rat_mul(a, (struct rational){ b.den, b.num });
}

/* Below, at or above zero: as a is below, at or above b. */
static inline int rat_compare(struct rational a, struct rational b)
{
	wide difference = rat_sub(a, b).num;

	return (difference > 0) - (difference < 0);
}

static inline bool rat_less(struct rational a, struct rational b)
{
	return rat_compare(a, b) < 0;
}

static inline bool rat_equal(struct rational a, struct rational b)
{
	return rat_compare(a, b) == 0;
}

static inline struct rational rat_max(struct rational a, struct rational b)
{
	return rat_less(a, b) ? b : a;
}

static inline struct rational rat_min(struct rational a, struct rational b)
{
	return rat_less(b, a) ? b : a;
}

static inline wide rat_floor(struct rational a)
{
	wide n = a.num / a.den;

	return n * a.den > a.num ? n - 1 : n;
}

static inline wide rat_ceil(struct rational a)
{
	wide n = a.num / a.den;

	return n * a.den < a.num ? n + 1 : n;
}

#endif
