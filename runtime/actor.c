/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * actor.c -- clear, work, sleep.
 *
 * Threads   As actor.h says.  stopping is written by the host and read by the actor;
 *           has_thread and thread are the host's; poller is its thread's, from when it starts.
 *
 * Ordering
 *
 *   stopping  actor_tell_to_stop stores it with release  ->  a turn loads it with acquire
 *             The loop looks into the mailbox once more after it has seen the word, so
 *             it leaves nothing behind that was posted before that.  The word is
 *             work like any other: it is looked at after the clear, or the raise that
 *             announced it would be lost.
 */
#define _GNU_SOURCE
#include "runtime/actor.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "engine/check.h"
#include "runtime/atomic.h"

#define TURN_LIMIT 256 /* messages, before chores get their turn */

struct turned actor_turn(struct actor *actor)
{
	struct turned turned = { .more = true };

	wake_clear(&actor->wake);
	turned.stopping = load_acquire(&actor->stopping); /* stopping */
	while (turned.mails < TURN_LIMIT && turned.more) {
		void *mail = mailbox_take(&actor->mailbox);

		turned.more = mail != NULL;
		turned.mails += turned.more;
		if (mail)
			actor->ops->on_mail(actor, mail);
	}
	turned.held_up = mailbox_is_held_up(&actor->mailbox);
	turned.next_ns = actor->ops->chores(actor);
	return turned;
}

/* Returns when it has been told to stop, and has looked into the mailbox after that. */
static void loop(struct actor *actor) ON(actor_role)
{
	for (;;) {
		struct turned turned = actor_turn(actor);

		if (turned.more)
			continue;
		if (turned.stopping)
			return;
		wake_wait_on(actor->watch_fd, &actor->poller, turned.next_ns);
	}
}

static void live(struct actor *actor)
{
	role_begin(&actor_role);
	loop(actor);
	if (actor->ops->end)
		actor->ops->end(actor);
	role_end(&actor_role);
}

static void *thread_main(void *arg)
{
	live(arg);
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

/* An epoll of that descriptor; -1 if the system has none left. */
static int watch(int fd)
{
	struct epoll_event readable = { .events = EPOLLIN };
	int watch_fd = epoll_create1(EPOLL_CLOEXEC);

	if (watch_fd >= 0 && epoll_ctl(watch_fd, EPOLL_CTL_ADD, fd, &readable) != 0) {
		close(watch_fd);
		return -1;
	}
	return watch_fd;
}

bool actor_open(struct actor *actor, const struct actor_ops *ops,
                struct mail_slot *slots, uint64_t slot_count)
{
	actor->ops = ops;
	actor->has_thread = false;
	actor->poller = (struct poller){ 0 };
	mailbox_init(&actor->mailbox, slots, slot_count);
	atomic_init(&actor->stopping, false);
	if (!wake_open(&actor->wake))
		return false;
	actor->watch_fd = watch(actor->wake.fd);
	if (actor->watch_fd < 0)
		wake_close(&actor->wake);
	return actor->watch_fd >= 0;
}

bool actor_start(struct actor *actor, const char *name, uint64_t poll_ns)
{
	actor->poller.poll_ns = poll_ns;
	actor->has_thread = start_thread(actor);
	if (actor->has_thread)
		(void)pthread_setname_np(actor->thread, name);
	return actor->has_thread;
}

void actor_tell_to_stop(struct actor *actor)
{
	store_release(&actor->stopping, true); /* stopping */
	if (actor->has_thread)
		wake_raise(&actor->wake);
}

void actor_stop(struct actor *actor)
{
	actor_tell_to_stop(actor);
	if (actor->has_thread)
		gale_assert(pthread_join(actor->thread, NULL) == 0);
	else
		live(actor);
}

void actor_close(struct actor *actor)
{
	close(actor->watch_fd);
	wake_close(&actor->wake);
}

bool actor_post(struct actor *actor, void *mail)
{
	if (!mailbox_post(&actor->mailbox, mail))
		return false;
	wake_raise(&actor->wake);
	return true;
}
