/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wake.h -- how a thread that sleeps learns that there is mail.
 *
 * A descriptor that is readable from the first raise until the owner clears it.  The
 * owner clears before it looks for work, never after: then whatever it does not find
 * will raise again.
 *
 * Threads   wake_raise, wake_early_pays: any.  The others: the owner.
 * Limits    One write to the descriptor for any number of raises between two clears.
 */
#ifndef RUNTIME_WAKE_H
#define RUNTIME_WAKE_H

#include <stdbool.h>
#include <stdint.h>

struct wake {
	int fd;
	_Atomic bool raised;
	int64_t owed; /* writes that the owner knows of, and has not read */
};

/* An epoll that a thread sleeps on, for threads that have something to tell it.  early: it is to
 * be told, too, that something is about to come; that is told once, as WATCH_EARLY. */
struct watch {
	int epoll_fd; /* -1: no thread does */
	bool early;
};
#define WATCH_EARLY UINT64_C(1) /* an event's data; of any other it is 0 */

/* Whether it is any good to be told early: this thread may use more than one processor, so that
 * the thread that answers need not have the sleeper's. */
bool wake_early_pays(void);

bool wake_open(struct wake *wake);
void wake_close(struct wake *wake);
void wake_raise(struct wake *wake);
void wake_clear(struct wake *wake);

/* A thread that looks for what is next again and again before it sleeps, and lets others have the
 * processor in between: a thread that is awake need not be woken.  It rests for a while when
 * others have kept the processor: a thread that sleeps gets it back sooner. */
struct poller {
	uint64_t poll_ns;  /* so long; 0: it sleeps at once */
	uint64_t rests_ns; /* until then: patience_now_ns() */
};

/* Until raised or until patience_now_ns() reaches deadline_ns; UINT64_MAX is never.  May
 * return early: the caller looks again.  poller: the caller's own; NULL: it sleeps. */
void wake_wait(struct wake *wake, struct poller *poller, uint64_t deadline_ns);

/* The same, until one of these is readable; -1: there is no other. */
void wake_wait_for_either(int fd, int other_fd, struct poller *poller,
                          uint64_t deadline_ns);
/* The same, until an epoll tells of something; -1: there is none.  A thread that is told
 * WATCH_EARLY looks some microseconds longer, for what is about to come. */
void wake_wait_on(int epoll_fd, struct poller *poller, uint64_t deadline_ns);

#endif
