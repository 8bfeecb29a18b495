/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * random.c -- from the kernel.
 *
 * Threads   Any, at once: nothing is kept.
 */
#include "runtime/random.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

bool random_fill(void *out, size_t bytes)
{
	uint8_t *at = out;

	while (bytes > 0) {
		ssize_t got = getrandom(at, bytes, 0);

		if (got < 0 && errno != EINTR)
			return false;
		if (got > 0) {
			at += got;
			bytes -= (size_t)got;
		}
	}
	return true;
}
