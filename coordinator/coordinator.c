/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * coordinator.c -- guards come, are looked at, and go.
 *
 * Threads   chores and end: the actor's.  due_ns: the actor and who adds or removes write
 *           it, any reads.
 *
 * Ordering
 *
 *   due_ns is relaxed: guards that come or go are found under the lock.
 */
#include "coordinator/coordinator.h"

#include "runtime/atomic.h"
#include "runtime/clock.h"

#define NEVER UINT64_MAX

static struct coordinator *coordinator_of(struct actor *actor)
{
	return (struct coordinator *)actor;
}

static struct guard *guard_of(struct timer *timer)
{
	return (struct guard *)((char *)timer - offsetof(struct guard, timer));
}

/* ---- Coming and going ------------------------------------------------------------- */

/* Under the lock: once it has ended, its descriptor is another's. */
static void wake(struct coordinator *coordinator) ON(coordinator->lock)
{
	store_relaxed(&coordinator->due_ns, 0);
	wake_raise(&coordinator->actor.wake);
}

void coordinator_add(struct coordinator *coordinator, struct guard *guard)
{
	lock_take(&coordinator->lock);
	guard->next = coordinator->locked.arrived;
	coordinator->locked.arrived = guard;
	wake(coordinator);
	lock_drop(&coordinator->lock);
}

void coordinator_remove(struct coordinator *coordinator, struct guard *guard)
{
	lock_take(&coordinator->lock);
	if (!coordinator->locked.ended) {
		guard->next_leaving = coordinator->locked.leaving;
		coordinator->locked.leaving = guard;
		wake(coordinator);
	}
	lock_drop(&coordinator->lock);
}

/* Those that have come, and those that go, since it asked last. */
static struct guard *take_moves(struct coordinator *coordinator,
                                struct guard **ret_leaving, bool ends)
{
	struct guard *arrived;

	lock_take(&coordinator->lock);
	arrived = coordinator->locked.arrived;
	*ret_leaving = coordinator->locked.leaving;
	coordinator->locked.arrived = coordinator->locked.leaving = NULL;
	coordinator->locked.ended = ends;
	lock_drop(&coordinator->lock);
	return arrived;
}

/* One that goes came before, perhaps just now. */
static uint64_t move(struct coordinator *coordinator, mono now, bool ends)
    ON(actor_role)
{
	struct guard *leaving, *next, *guard = take_moves(coordinator, &leaving, ends);
	uint64_t moved = 0;

	for (; guard; guard = next, moved++) {
		next = guard->next;
		timers_add(&coordinator->timers, &guard->timer, now);
	}
	for (guard = leaving; guard; guard = next, moved++) {
		next = guard->next_leaving;
		timers_remove(&coordinator->timers, &guard->timer);
		guard->ops->drop(guard);
	}
	return moved;
}

/* ---- Turns ------------------------------------------------------------------------ */

static uint64_t look_at_due(struct coordinator *coordinator, mono now) ON(actor_role)
{
	uint64_t looks = 0;
	struct timer *timer;

	for (; (timer = timers_take(&coordinator->timers, now)); looks++)
		timers_add(&coordinator->timers, timer,
		           guard_look(guard_of(timer), now));
	return looks;
}

/* A guard that comes meanwhile sets the word back to 0, and that is not overwritten. */
static void set_due(struct coordinator *coordinator, mono due)
{
	uint64_t word = NEVER;

	while (word == NEVER && !swap_if_relaxed(&coordinator->due_ns, &word, due.ns))
		continue;
}

static uint64_t work(struct coordinator *coordinator) ON(actor_role)
{
	mono now = clock_now(coordinator->clock);
	uint64_t done;

	if (!mono_reached(now, (mono){ load_relaxed(&coordinator->due_ns) }))
		return 0;
	store_relaxed(&coordinator->due_ns, NEVER);
	done = move(coordinator, now, /* ends= */ false);
	done += look_at_due(coordinator, now);
	set_due(coordinator, timers_next(&coordinator->timers));
	return done;
}

/* The clock is another than sleep is measured on. */
static uint64_t after_ns(const struct coordinator *coordinator)
{
	mono now = clock_now(coordinator->clock);
	uint64_t due = load_relaxed(&coordinator->due_ns);

	if (due == NEVER)
		return NEVER;
	return due > now.ns ? due - now.ns : 0;
}

static void on_mail(struct actor *self, void *mail)
{
	(void)self;
	(void)mail;
}

static uint64_t chores(struct actor *self) ON(actor_role)
{
	struct coordinator *coordinator = coordinator_of(self);
	uint64_t after;

	coordinator->done += work(coordinator);
	after = after_ns(coordinator);
	return after == NEVER ? NEVER : after == 0 ? 0 : patience_now_ns() + after;
}

static void end(struct actor *self) ON(actor_role)
{
	struct coordinator *coordinator = coordinator_of(self);
	struct timer *timer;

	(void)move(coordinator, clock_now(coordinator->clock), /* ends= */ true);
	while ((timer = timers_take(&coordinator->timers, (mono){ NEVER }))) {
		struct guard *guard = guard_of(timer);

		guard->ops->drop(guard);
	}
}

static const struct actor_ops coordinator_ops = {
	.on_mail = on_mail,
	.chores = chores,
	.end = end,
};

uint64_t coordinator_turn(struct coordinator *coordinator)
{
	uint64_t before = coordinator->done;

	(void)actor_turn(&coordinator->actor);
	return coordinator->done - before;
}

uint64_t coordinator_turn_after_ns(const struct coordinator *coordinator)
{
	return load_relaxed(&coordinator->actor.wake.raised) ? 0
	                                                     : after_ns(coordinator);
}

/* ---- Opening and closing ---------------------------------------------------------- */

enum gale_err coordinator_open(struct coordinator *coordinator,
                               const struct coordinator_config *config)
{
	coordinator->clock = config->clock;
	atomic_init(&coordinator->due_ns, NEVER);
	if (!actor_open(&coordinator->actor, &coordinator_ops, coordinator->mails,
	                COORDINATOR_MAILS))
		return GALE_ERR_SYSTEM;
	lock_init(&coordinator->lock);
	if (!config->with_thread ||
	    actor_start(&coordinator->actor, "gale-guards", config->poll_ns))
		return GALE_ERR_OK;
	coordinator_close(coordinator);
	coordinator_free(coordinator);
	return GALE_ERR_SYSTEM;
}

void coordinator_tell_to_close(struct coordinator *coordinator)
{
	actor_tell_to_stop(&coordinator->actor);
}

void coordinator_close(struct coordinator *coordinator)
{
	actor_stop(&coordinator->actor);
	actor_close(&coordinator->actor);
}

void coordinator_free(struct coordinator *coordinator)
{
	lock_destroy(&coordinator->lock);
}
