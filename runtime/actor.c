/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * actor.c -- clear, work, sleep.
 *
 * Ordering
 *
 *   stopping  actor_stop stores it with release  ->  the loop loads it with acquire
 *             The loop looks into the mailbox once more after it has seen the word, so
 *             it leaves nothing behind that was posted before actor_stop.  The word is
 *             work like any other: it is looked at after the clear, or the raise that
 *             announced it would be lost.
 */
#define _GNU_SOURCE
#include "runtime/actor.h"

#include <signal.h>

#include "engine/check.h"
#include "runtime/atomic.h"

#define TURN_LIMIT 256 /* messages, before chores get their turn */

static bool turn(struct actor *actor) ON(actor_role);
static void loop(struct actor *actor) ON(actor_role);

static bool turn(struct actor *actor)
{
	for (int i = 0; i < TURN_LIMIT; i++) {
		void *mail = mailbox_take(&actor->mailbox);

		if (!mail)
			return false;
		actor->ops->on_mail(actor, mail);
	}
	return true; /* there may be more */
}

static void loop(struct actor *actor)
{
	for (;;) {
		bool stopping, more;

		wake_clear(&actor->wake);
		stopping = load_acquire(&actor->stopping); /* stopping */
		more = turn(actor);
		uint64_t next = actor->ops->chores(actor);

		if (more)
			continue;
		if (stopping)
			return;
		wake_wait(&actor->wake, next);
	}
}

static void *thread_main(void *arg)
{
	role_begin(&actor_role);
	loop(arg);
	role_end(&actor_role);
	return NULL;
}

/* The host's signal handlers must not run on our thread, so it starts with all blocked
 * and inherits nothing else. */
static bool start_thread(struct actor *actor)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	gale_assert(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
	started = pthread_create(&actor->thread, NULL, thread_main, actor) == 0;
	gale_assert(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	return started;
}

bool actor_start(struct actor *actor, const struct actor_ops *ops, const char *name,
                 struct mail_slot *slots, uint64_t slot_count)
{
	actor->ops = ops;
	mailbox_init(&actor->mailbox, slots, slot_count);
	atomic_init(&actor->stopping, false);
	if (!wake_open(&actor->wake))
		return false;
	if (!start_thread(actor)) {
		wake_close(&actor->wake);
		return false;
	}
	(void)pthread_setname_np(actor->thread, name);
	return true;
}

void actor_stop(struct actor *actor)
{
	store_release(&actor->stopping, true); /* stopping */
	wake_raise(&actor->wake);
	gale_assert(pthread_join(actor->thread, NULL) == 0);
	wake_close(&actor->wake);
}

bool actor_post(struct actor *actor, void *mail)
{
	if (!mailbox_post(&actor->mailbox, mail))
		return false;
	wake_raise(&actor->wake);
	return true;
}
