/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wake.c -- an eventfd, and a word that saves writing to it twice.
 *
 * Threads   raised: any writes true, the owner false.  The descriptor: any writes, the
 *           owner reads.
 *
 * Ordering
 *
 *   raised   wake_raise swaps with release  ->  wake_clear swaps with acquire
 *            A raiser that found the word raised did not write.  The owner's next
 *            clear comes after it in the word's order, so that what was posted
 *            before the raise is seen by the look that follows the clear.
 */
#define _GNU_SOURCE
#include "runtime/wake.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/check.h"
#include "runtime/atomic.h"
#include "runtime/clock.h"

bool wake_open(struct wake *wake)
{
	atomic_init(&wake->raised, false);
	wake->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return wake->fd >= 0;
}

void wake_close(struct wake *wake)
{
	close(wake->fd);
}

void wake_raise(struct wake *wake)
{
	uint64_t one = 1;

	if (swap_release(&wake->raised, true)) /* raised */
		return;
	while (write(wake->fd, &one, sizeof(one)) < 0)
		gale_assert(errno == EINTR);
}

void wake_clear(struct wake *wake)
{
	uint64_t count;

	while (read(wake->fd, &count, sizeof(count)) < 0 && errno == EINTR)
		continue;
	(void)swap_acquire(&wake->raised, false); /* raised */
}

void wake_wait(struct wake *wake, uint64_t deadline_ns)
{
	wake_wait_for(wake->fd, deadline_ns);
}

void wake_wait_for(int fd, uint64_t deadline_ns)
{
	wake_wait_for_either(fd, -1, deadline_ns);
}

void wake_wait_for_either(int fd, int other_fd, uint64_t deadline_ns)
{
	struct pollfd polls[] = { { .fd = fd, .events = POLLIN },
		                  { .fd = other_fd, .events = POLLIN } };
	uint64_t now = patience_now_ns();
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
	struct timespec time = { .tv_sec = (time_t)(left / 1000000000),
		                 .tv_nsec = (long)(left % 1000000000) };

	(void)ppoll(polls, 2, deadline_ns == UINT64_MAX ? NULL : &time, NULL);
}
