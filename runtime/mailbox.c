/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * mailbox.c -- a ring of slots that take turns.
 *
 * The idea is Dmitry Vyukov's bounded queue, narrowed to one receiver.  Tickets count
 * up from FIRST_TICKET, and ticket t lives in slot t mod count:
 *
 *     turn == t            free: the sender with ticket t may write
 *     turn == t + 1        full: the receiver at ticket t may read
 *     turn == t + count    free again, for the next lap
 *
 * Invariants
 *
 *   MAILBOX-1  head <= tail <= head + count.
 *   MAILBOX-2  Each ticket is given to exactly one sender (the swap on tail).
 *   MAILBOX-3  A message is written only while turn == t, and read only while turn == t
 *              + 1.
 *
 * Threads   shared, and the turns of slots: any.  own: the receiver.  A slot's mail:
 *           whose turn it is.
 *
 * Ordering
 *
 *   filled   post stores turn with release  ->  take loads it with acquire
 *            The receiver sees the message, and all that its sender did before.
 *   emptied  take stores turn with release  ->  post loads it with acquire
 *            The sender writes only after the receiver has read.
 *
 *   handed   post swaps tail with release  ->  the next post acquires it
 *            A sender that gets a ticket knows whatever the sender before it knew of
 *            emptied slots, and so never takes a free slot for a full one.
 */
#include "runtime/mailbox.h"

#include <stddef.h>

#include "engine/check.h"
#include "runtime/atomic.h"

/* Builds for debugging start just below the wrap, so that every run crosses it. */
#ifdef GALE_DEBUG
#define FIRST_TICKET (UINT64_MAX - 20)
#else
#define FIRST_TICKET UINT64_C(0)
#endif

static struct mail_slot *slot_of(const struct mailbox *box, uint64_t ticket)
{
	return &box->fixed.slots[ticket & box->fixed.mask];
}

void mailbox_init(struct mailbox *box, struct mail_slot *slots, uint64_t count)
{
	gale_assert(count >= 2);
	gale_assert((count & (count - 1)) == 0);

	box->fixed.slots = slots;
	box->fixed.mask = count - 1;
	box->own.head = FIRST_TICKET;
	atomic_init(&box->shared.tail, FIRST_TICKET);
	for (uint64_t i = 0; i < count; i++)
		atomic_init(&slot_of(box, FIRST_TICKET + i)->turn, FIRST_TICKET + i);
}

bool mailbox_post(struct mailbox *box, void *mail)
{
	uint64_t ticket = load_acquire(&box->shared.tail); /* handed */
	struct mail_slot *slot;

	for (;;) {
		slot = slot_of(box, ticket);
		uint64_t turn = load_acquire(&slot->turn); /* emptied */
		int64_t ahead = (int64_t)(turn - ticket);

		if (ahead < 0)
			return false; /* the last lap's message is still there */
		if (ahead > 0)
			ticket = load_relaxed(&box->shared.tail);
		else if (swap_if_acq_rel(&box->shared.tail, &ticket,
		                         ticket + 1)) /* handed */
			break;                        /* MAILBOX-2 */
	}
	slot->mail = mail;                      /* MAILBOX-3 */
	store_release(&slot->turn, ticket + 1); /* filled */
	return true;
}

void *mailbox_take(struct mailbox *box)
{
	uint64_t ticket = box->own.head;
	struct mail_slot *slot = slot_of(box, ticket);
	void *mail;

	if (load_acquire(&slot->turn) != ticket + 1) /* filled */
		return NULL;
	mail = slot->mail;                                        /* MAILBOX-3 */
	store_release(&slot->turn, ticket + box->fixed.mask + 1); /* emptied */
	box->own.head = ticket + 1;
	return mail;
}

bool mailbox_is_held_up(const struct mailbox *box)
{
	return load_relaxed(&box->shared.tail) != box->own.head;
}

bool mailbox_valid(const struct mailbox *box)
{
	uint64_t held = load_relaxed(&box->shared.tail) - box->own.head;

	return held <= box->fixed.mask + 1; /* MAILBOX-1 */
}
