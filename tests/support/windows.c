/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* windows.c -- the time of day, before and after. */
#include "tests/support/windows.h"

#include "tests/support/moment.h"

static uint64_t number_now(const struct windows *windows)
{
	return wall_us() / windows->length_us;
}

bool windows_ask(struct windows *windows, struct gale_seat *seat,
                 struct gale_limiter *limiter, uint64_t within_us)
{
	uint64_t number = number_now(windows);

	if (gale_wait(seat, limiter, "k", 1, 1, within_us).verdict != GALE_ALLOW)
		return false;
	if (number_now(windows) != number)
		return true;
	if (windows->number != number)
		windows->admitted = 0;
	windows->number = number;
	if (++windows->admitted > windows->most)
		windows->most = windows->admitted;
	return true;
}
