/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fake_time.h -- servers whose clock stands where a test has put it (fake_clock.c).
 *
 * What is started between fake_time_begin and fake_time_end, and all that it starts, takes
 * the time of day from a word of shared memory.  That stands still: so a test knows what
 * time it was when something happened.  Time-outs of such a server, and the test itself, have
 * real time.
 *
 * Threads   One; fake_time_set: any.
 */
#ifndef TESTS_SUPPORT_FAKE_TIME_H
#define TESTS_SUPPORT_FAKE_TIME_H

#include <stdint.h>

struct fake_time {
	char folder[32];
	char file[48];    /* the word */
	char library[48]; /* fake_clock.c, where any user may read it */
	_Atomic uint64_t *now_us;
};

void fake_time_begin(struct fake_time *fake, uint64_t now_us);
/* Programs that are started from now on have the real time again. */
void fake_time_end(void);
/* Microseconds since 1970 UTC; it is that late at once. */
void fake_time_set(struct fake_time *fake, uint64_t now_us);
/* The servers are gone, and so are the files. */
void fake_time_close(struct fake_time *fake);

#endif
