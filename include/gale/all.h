/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * all.h -- one call that several limits must admit: all of them, or nothing is used.
 *
 *	struct gale_part parts[] = {
 *		{ per_minute, user, user_len, 1 },
 *		{ per_day, user, user_len, 1 },
 *	};
 *	struct gale_all all = { .parts = parts, .count = 2 };
 *
 *	if (gale_wait_all(seat, &all, within).verdict == GALE_ALLOW)
 *		serve();
 *	else
 *		log("refused by part %zu", all.binding);
 *
 * If one part refuses, the units of the others go back into the windows that they are from:
 * a call that the day's limit refuses uses nothing of the minute's.  Where this node has
 * credit for all parts, no store is asked.  If some parts lack credit, their stores are
 * asked at the same time, and the units of the other parts are kept for the call meanwhile.
 *
 * A call may also need slots of a guard.  The guard is entered first, and left again if a part
 * refuses.  So the order is concurrency, then the parts as they are listed: list
 * rates before costs.
 *
 * If any one of several limits is enough, ask them one after the other until one allows.
 *
 * Threads   The rules of gale.h for seats and handles hold here.
 * Limiters  Parts need limiters in the mode GALE_LEASED whose rule has units: windows, quotas,
 *           GCRA and token buckets.  Their stores may differ.  A part may cost at most
 *           1,048,575 units.
 * Errors    As in gale.h: there is always an answer.
 * Not yet   Units that go back are spent by this node, or go to the store when they stay
 *           idle.  If the node dies first, they stay used until their window ends.
 */
#ifndef GALE_ALL_H
#define GALE_ALL_H

#include <gale/guard.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GALE_PARTS_MAX 8

/* One limit, and how much of it the call needs. */
struct gale_part {
	struct gale_limiter *limiter;
	const void *key;
	size_t key_len;
	uint64_t cost;
};

#define GALE_BINDING_GUARD SIZE_MAX

/* Zero it before you fill it. */
struct gale_all {
	const struct gale_part *parts; /* read only by the call that asks */
	size_t count;                  /* 1 to GALE_PARTS_MAX */
	/* NULL: no guard.  Else the call takes slots of this class in it. */
	struct gale_guard *guard;
	uint32_t slots;
	enum gale_class of_class;

	/* Set with the answer. */
	struct gale_entry entry; /* of an allowed call with a guard: you exit it */
	/* The part that decides.  For a denial: the first that refuses, or GALE_BINDING_GUARD.
	 * For an allow: the one with the least remaining.  .limit, .remaining and .why of the
	 * answer are of that part. */
	size_t binding;
	uint64_t reserved[4]; /* 0 */
};

/* If the verdict is GALE_PENDING, gale_seat_completions returns the answer later, with this
 * tag, and sets all->binding.  Until then *all must stay where it is, and the seat has one
 * pending ask for each part.  If the seat leaves before the answer has come, the parts' units go
 * back, and your program exits the entry. */
GALE_API struct gale_answer gale_ask_all(struct gale_seat *seat, struct gale_all *all,
                                         void *tag);

/* The same, but waits for the answer, for at most within_us; the verdict is never
 * GALE_PENDING.  If the answer is late (GALE_WHY_LATE), no units stay taken. */
GALE_API struct gale_answer gale_wait_all(struct gale_seat *seat, struct gale_all *all,
                                          uint64_t within_us);

#ifdef __cplusplus
}
#endif
#endif
