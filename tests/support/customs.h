/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * customs.h -- strategies as a user would write them, and some that nobody should.
 *
 * The fixed window and the gcra are written with strategy.h alone, and decide what the
 * built-in ones do.
 *
 * Threads   All of it: any.
 */
#ifndef TESTS_SUPPORT_CUSTOMS_H
#define TESTS_SUPPORT_CUSTOMS_H

#include <gale/strategy.h>

/* Like gale_fixed_window of the same. */
struct gale_rule custom_window(uint64_t limit, uint64_t window_us);

/* Like gale_gcra(10, 3000007, burst): a unit takes no whole number of microseconds. */
#define CUSTOM_RATE 10
#define CUSTOM_PERIOD_US 3000007
struct gale_rule custom_gcra(uint64_t burst);
/* Like gale_gcra(1000, GALE_MILLIS(20), burst). */
struct gale_rule custom_quick_gcra(uint64_t burst);

/* A window of an hour with a limit of 50, whose step tells this instead. */
enum fault {
	FAULT_NONE,
	FAULT_PENDING,        /* a verdict that is none for a store */
	FAULT_VERDICT,        /* one that is none at all */
	FAULT_NEGATIVE,       /* -1 units remain */
	FAULT_GENEROUS,       /* more than the limit remains */
	FAULT_RETRY_OF_ALLOW, /* allowed, but only later */
	FAULT_RETRY_TOO_LONG, /* denied for longer than there is, but not for ever */
	FAULT_RESET_TOO_LONG, /* words are to be kept for longer than was said */
	FAULT_RESET_FOR_EVER, /* GALE_NEVER */
	FAULT_WORD,           /* a word of 2^53 */
	FAULT_ALL_BITS,       /* each byte of all that it may write is 0xff */
	FAULTS,
};
struct gale_rule custom_broken(enum fault fault);

#endif
