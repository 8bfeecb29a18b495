/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * actor.h -- a thread with a mailbox, that works in turns.
 *
 * Threads   actor_post: any, never blocks.  actor_start, actor_stop: the host's, once
 *           each.  on_mail and chores run on the actor's own thread, under its role.
 * Limits    At stop, everything posted before actor_stop was called is handled first.
 */
#ifndef RUNTIME_ACTOR_H
#define RUNTIME_ACTOR_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/mailbox.h"
#include "runtime/role.h"
#include "runtime/wake.h"

struct actor;

struct actor_ops {
	void (*on_mail)(struct actor *self, void *mail);
	/* Called between turns; returns when to be called again (patience_now_ns). */
	uint64_t (*chores)(struct actor *self);
};

struct actor {
	const struct actor_ops *ops;
	struct mailbox mailbox;
	struct wake wake;
	pthread_t thread;
	_Atomic bool stopping;
};

/* slots: as for mailbox_init.  name has at most 15 bytes.  False if the system has no
 * thread or descriptor left. */
bool actor_start(struct actor *actor, const struct actor_ops *ops, const char *name,
                 struct mail_slot *slots, uint64_t slot_count);
void actor_stop(struct actor *actor);

/* False if the mailbox is full. */
bool actor_post(struct actor *actor, void *mail);

#endif
