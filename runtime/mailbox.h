/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * mailbox.h -- how one thread hands a pointer to another.
 *
 * A bounded ring of pointers with many senders and one receiver, its owner.  Their memory
 * belongs to the sender until mailbox_post returns true, and to the receiver after.
 *
 * Threads     mailbox_init     before the mailbox is shared
 *             mailbox_post     any thread, never blocks
 *             mailbox_take     the owner only, never blocks
 *
 *                     post    take
 *             post    yes     yes      may run at the same time
 *             take    yes     no        (and is_held_up)
 *
 * Limits      Full is an answer: post returns false, and the sender decides what that
 *             means.  Messages of one sender arrive in order.  A sender that is
 *             descheduled within post hides those that came after its own until it
 *             runs on; take then finds nothing, and nothing is lost.
 */
#ifndef RUNTIME_MAILBOX_H
#define RUNTIME_MAILBOX_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/atomic.h"

struct mail_slot {
	_Atomic uint64_t turn; /* whose turn it is: see mailbox.c */
	void *mail;
};

struct mailbox {
	struct {
		struct mail_slot *slots;
		uint64_t mask;
	} fixed; /* since mailbox_init */
	struct {
		alignas(
		    CACHE_LINE) _Atomic uint64_t tail; /* the next ticket to hand out */
	} shared;                                      /* by the senders */
	struct {
		alignas(CACHE_LINE) uint64_t head; /* the next ticket to receive */
	} own;                                     /* by the receiver */
};

/* The slots are the caller's, and outlive the mailbox; count is a power of two. */
void mailbox_init(struct mailbox *box, struct mail_slot *slots, uint64_t count);

/* Returns false if the ring is full. */
bool mailbox_post(struct mailbox *box, void *mail);

/* The oldest message, or NULL. */
void *mailbox_take(struct mailbox *box);

/* Take has found nothing, but a sender is about to be done, and may hide others. */
bool mailbox_is_held_up(const struct mailbox *box);

bool mailbox_valid(const struct mailbox *box);

#endif
