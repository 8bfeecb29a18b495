/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * windows.h -- what one thread was admitted in each window of a server on this machine.
 *
 * An admission whose ask began and ended in one window is of that window.  Those that
 * lie across a boundary are counted to neither: they may be of either.
 */
#ifndef TESTS_SUPPORT_WINDOWS_H
#define TESTS_SUPPORT_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

struct windows {
	uint64_t length_us;
	uint64_t number;   /* that is counted */
	uint64_t admitted; /* in it */
	uint64_t most;     /* in any */
};

/* Asks once, and waits; true if it was admitted. */
bool windows_ask(struct windows *windows, struct gale_seat *seat,
                 struct gale_limiter *limiter, uint64_t within_us);

#endif
