/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * actor.h -- a mailbox whose owner works in turns, on a thread of its own or a host's.
 *
 * Threads   actor_post: any, never blocks.  actor_open, actor_start, actor_tell_to_stop,
 *           actor_stop, actor_close: the host's, in this order, once each.  actor_turn,
 *           and with it on_mail, chores and end: the actor's own thread; where none was
 *           started, the thread that has its role, and for end the thread that stops it.
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
	/* Called after the last turn.  NULL: nothing is left to be done. */
	void (*end)(struct actor *self);
};

struct actor {
	const struct actor_ops *ops;
	struct mailbox mailbox;
	struct wake wake;
	int watch_fd; /* an epoll, struct watch: tells that it is awake, or what else it watches */
	pthread_t thread;
	struct poller poller; /* its thread */
	bool has_thread;
	_Atomic bool stopping;
};

/* slots: as for mailbox_init.  False if the system has no descriptor left. */
bool actor_open(struct actor *actor, const struct actor_ops *ops,
                struct mail_slot *slots, uint64_t slot_count);
/* A thread of its own takes the turns from here on, and looks for poll_ns for what is next
 * before it sleeps.  name has at most 15 bytes.  False if the system has no thread left. */
bool actor_start(struct actor *actor, const char *name, uint64_t poll_ns);
/* Its thread, if it has one, takes the last turns and ends; this does not wait for it, and
 * may be left out. */
void actor_tell_to_stop(struct actor *actor);
/* The last turns and the end are over when this returns. */
void actor_stop(struct actor *actor);
/* When it has stopped, or was never started. */
void actor_close(struct actor *actor);

/* What came of a turn. */
struct turned {
	uint64_t mails; /* that were handled */
	uint64_t
	    next_ns;   /* when the next is due if nothing is posted: patience_now_ns */
	bool more;     /* there may be more mail */
	bool held_up;  /* some is not there yet, and may hide what is */
	bool stopping; /* it had been told to stop before it looked for mail */
};
struct turned actor_turn(struct actor *actor) ON(actor_role);

/* False if the mailbox is full. */
bool actor_post(struct actor *actor, void *mail);

#endif
