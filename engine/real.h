/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * real.h -- exponential, logarithm and root, for estimates.
 *
 * Written out, because a program with libgale.a would need libm for these three alone;
 * and so that a size is the same on every machine.  Good to some 1e-15 of the result.
 * No admission depends on them.
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_REAL_H
#define ENGINE_REAL_H

#include <stdint.h>
#include <string.h>

#define REAL_LN2 0.69314718055994530942
#define REAL_LN2_HIGH 6.93147180369123816490e-01 /* its first 33 bits, and the rest: */
#define REAL_LN2_LOW 1.90821492927058770002e-10  /* a multiple of HIGH is exact */
#define REAL_ROOT2 1.41421356237309504880

/* 2^power, for -1022 to 1023. */
static inline double real_power_of_2(int power)
{
	uint64_t bits = (uint64_t)(power + 1023) << 52;
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* e^x: 0 below -700, and no more than e^700. */
static inline double real_exp(double x)
{
	double sum = 1;
	double rest;
	int twos;

	if (x < -700)
		return 0;
	if (x > 700)
		x = 700;
	twos = (int)(x / REAL_LN2 + (x < 0 ? -0.5 : 0.5));
	rest = x - twos * REAL_LN2_HIGH - twos * REAL_LN2_LOW;
	for (int i = 14; i > 0; i--) /* Taylor, |rest| <= ln(2)/2 */
		sum = 1 + sum * rest / i;
	return sum * real_power_of_2(twos);
}

/* The natural logarithm of an x > 0 (and not below 1e-300). */
static inline double real_log(double x)
{
	double sum = 0;
	double slope;
	uint64_t bits;
	int twos;

	memcpy(&bits, &x, sizeof(bits));
	twos = (int)(bits >> 52) - 1023;
	x /= real_power_of_2(twos);
	if (x > REAL_ROOT2) {
		x /= 2;
		twos++;
	}
	slope = (x - 1) / (x + 1); /* ln x = 2 artanh slope, |slope| < 0.172 */
	for (int i = 23; i > 1; i -= 2)
		sum = slope * slope * (sum + 1.0 / i);
	return twos * REAL_LN2_HIGH + (twos * REAL_LN2_LOW + 2 * slope * (sum + 1));
}

/* The square root; 0 for what has none, or one below 1e-150. */
static inline double real_root(double x)
{
	double guess;

	if (!(x > 1e-300))
		return 0;
	guess = real_exp(real_log(x) / 2);
	return (guess + x / guess) / 2;
}

static inline double real_between(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

#endif
