/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * late.h -- whether somebody was answered by nobody in time.
 *
 * Where many ask a server at once, how many of them are late is the machine's to say; what the
 * server has done for these is not known.
 *
 * Threads   Any.
 */
#ifndef TESTS_SUPPORT_LATE_H
#define TESTS_SUPPORT_LATE_H

#include <stdbool.h>

#include <gale/gale.h>

static inline bool is_late(enum gale_why why)
{
	return why == GALE_WHY_LATE || why == GALE_WHY_DOWN;
}

#endif
