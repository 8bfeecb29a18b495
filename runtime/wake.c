/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wake.c -- an eventfd, and a word that saves writing to it twice.
 *
 * Threads   raised: any writes true, the owner false.  The descriptor: any writes, the
 *           owner reads.  owed: the owner's.
 *
 * Invariant  What is in the descriptor, and what is on its way there, is owed, and one more while
 *            raised is true: the thread that makes it true writes one.  So there is nothing to read
 *            while nothing is owed and it is false; most clears are such, and cost no call.
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
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/check.h"
#include "runtime/atomic.h"
#include "runtime/clock.h"

#define KEPT_NS 200000 /* a server that answers gives a processor back sooner */
#define REST_NS 100000000
#define LOOK_NS 5000 /* by a thread told early; to sleep and be woken takes longer */

bool wake_open(struct wake *wake)
{
	atomic_init(&wake->raised, false);
	wake->owed = 0;
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

static void take_writes(struct wake *wake)
{
	uint64_t count;
	ssize_t size;

	do
		size = read(wake->fd, &count, sizeof(count));
	while (size < 0 && errno == EINTR);
	if (size == sizeof(count))
		wake->owed -= (int64_t)count;
}

/* A raise that the first look misses is seen by the swap, and owed. */
void wake_clear(struct wake *wake)
{
	if (wake->owed > 0 || load_relaxed(&wake->raised))
		take_writes(wake);
	wake->owed += swap_acquire(&wake->raised, false); /* raised */
}

/* ---- Waiting --------------------------------------------------------------------- */

/* What is left until then; NULL: all the time that there is. */
static const struct timespec *until(uint64_t deadline_ns, struct timespec *ret_left)
{
	uint64_t now = patience_now_ns();
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

	*ret_left = (struct timespec){ .tv_sec = (time_t)(left / 1000000000),
		                       .tv_nsec = (long)(left % 1000000000) };
	return deadline_ns == UINT64_MAX ? NULL : ret_left;
}

/* most: to wait for it; NULL is for ever. */
static bool either_comes(int fd, int other_fd, const struct timespec *most)
{
	struct pollfd polls[] = { { .fd = fd, .events = POLLIN },
		                  { .fd = other_fd, .events = POLLIN } };

	return ppoll(polls, 2, most, NULL) > 0;
}

/* A thread that has slept gets the processor when it is woken; one that has given way, when the
 * other's time is over: some milliseconds. */
static uint64_t give_way(struct poller *poller, uint64_t before)
{
	uint64_t now;

	sched_yield();
	now = patience_now_ns();
	if (now - before > KEPT_NS)
		poller->rests_ns = now + REST_NS;
	return now;
}

/* Whether one of two descriptors, or an epoll, has something to tell now. */
struct look {
	int fd, other_fd;
	bool on_epoll;
};

static bool has_come(const struct look *look)
{
	static const struct timespec at_once;
	struct epoll_event event;

	if (look->on_epoll)
		return epoll_wait(look->fd, &event, 1, 0) > 0 &&
		       event.data.u64 != WATCH_EARLY; /* this thread looks on anyway */
	return either_comes(look->fd, look->other_fd, &at_once);
}

static bool comes_while_polled(const struct look *look, struct poller *poller,
                               uint64_t deadline_ns)
{
	uint64_t now, end_ns;

	if (!poller || poller->poll_ns == 0)
		return false;
	now = patience_now_ns();
	end_ns = now + poller->poll_ns;
	if (deadline_ns < end_ns)
		end_ns = deadline_ns;
	for (; now < end_ns && now >= poller->rests_ns; now = give_way(poller, now))
		if (has_come(look))
			return true;
	return false;
}

static void sleep_for_either(int fd, int other_fd, uint64_t deadline_ns)
{
	struct timespec left;

	(void)either_comes(fd, other_fd, until(deadline_ns, &left));
}

bool wake_early_pays(void)
{
	cpu_set_t processors;

	CPU_ZERO(&processors);
	return sched_getaffinity(0, sizeof(processors), &processors) != 0 ||
	       CPU_COUNT(&processors) > 1;
}

/* Something is about to come. */
static void look_a_moment(int epoll_fd)
{
	uint64_t end_ns = patience_now_ns() + LOOK_NS;
	struct epoll_event event;

	while (epoll_wait(epoll_fd, &event, 1, 0) == 0 && patience_now_ns() < end_ns)
		;
}

#ifdef GALE_HAS_EPOLL_PWAIT2
static int wait_by_kernel(int epoll_fd, struct epoll_event *event, uint64_t deadline_ns)
{
	struct timespec left;

	return epoll_pwait2(epoll_fd, event, 1, until(deadline_ns, &left), NULL);
}
#else
static int wait_by_kernel(int epoll_fd, struct epoll_event *event, uint64_t deadline_ns)
{
	(void)epoll_fd;
	(void)event;
	(void)deadline_ns;
	errno = ENOSYS;
	return -1;
}
#endif

/* To poll the epoll has the kernel look twice at what it tells of.  Where there is no wait by
 * nanoseconds, in a libc, a kernel before Linux 5.11 or behind a filter, that must do; what is
 * told but once has then to be taken. */
static void sleep_on(int epoll_fd, uint64_t deadline_ns)
{
	struct epoll_event event;
	int count = wait_by_kernel(epoll_fd, &event, deadline_ns);

	if (count < 0 && errno != EINTR) {
		sleep_for_either(epoll_fd, -1, deadline_ns);
		count = epoll_wait(epoll_fd, &event, 1, 0);
	}
	if (count == 1 && event.data.u64 == WATCH_EARLY)
		look_a_moment(epoll_fd);
}

void wake_wait(struct wake *wake, struct poller *poller, uint64_t deadline_ns)
{
	wake_wait_for_either(wake->fd, -1, poller, deadline_ns);
}

void wake_wait_for_either(int fd, int other_fd, struct poller *poller,
                          uint64_t deadline_ns)
{
	const struct look look = { fd, other_fd, /* on_epoll= */ false };

	if (!comes_while_polled(&look, poller, deadline_ns))
		sleep_for_either(fd, other_fd, deadline_ns);
}

void wake_wait_on(int epoll_fd, struct poller *poller, uint64_t deadline_ns)
{
	const struct look look = { epoll_fd, -1, /* on_epoll= */ true };

	if (!comes_while_polled(&look, poller, deadline_ns))
		sleep_on(epoll_fd, deadline_ns);
}
