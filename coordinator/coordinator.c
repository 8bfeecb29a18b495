/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * coordinator.c -- guards come, are looked at, beat, and go; funds come, claim, and go.
 *
 * Threads   chores and end: the actor's.
 */
#include "coordinator/coordinator.h"

#include "runtime/atomic.h"
#include "runtime/clock.h"

#define NEVER DUE_NEVER
#define DRAIN_NS UINT64_C(1000000000) /* the longest that closing waits for stores */
#define DRAIN_PAUSE_NS UINT64_C(1000000)

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
	due_now(&coordinator->due);
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

bool coordinator_add_fund(struct coordinator *coordinator, struct fund *fund)
{
	bool ended;

	lock_take(&coordinator->lock);
	ended = coordinator->locked.ended;
	if (!ended) {
		fund->next = coordinator->locked.arrived_funds;
		coordinator->locked.arrived_funds = fund;
		wake(coordinator);
	}
	lock_drop(&coordinator->lock);
	return !ended;
}

void coordinator_wake(struct coordinator *coordinator)
{
	lock_take(&coordinator->lock);
	if (!coordinator->locked.ended)
		wake(coordinator);
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

static void time_guard(struct coordinator *coordinator, struct guard *guard, mono now)
    ON(actor_role)
{
	mono due = guard->look_due;

	if (guard->leaves && guard_has_left(guard))
		due = now;
	else if (guard->fleet)
		due = mono_earlier(due, fleet_due(guard->fleet, now));
	timers_add(&coordinator->timers, &guard->timer, due);
}

static void come(struct coordinator *coordinator, struct guard *guard, mono now)
    ON(actor_role)
{
	if (guard->fleet)
		post_enter(guard->fleet, &coordinator->posts, &coordinator->home);
	timers_add(&coordinator->timers, &guard->timer, now);
}

/* It is not among the timers. */
static void go(struct guard *guard)
{
	if (guard->fleet)
		post_leave(guard->fleet);
	guard->ops->drop(guard);
}

/* One that goes came before, perhaps just now. */
static uint64_t move(struct coordinator *coordinator, mono now, bool ends)
    ON(actor_role)
{
	struct guard *leaving, *next, *guard = take_moves(coordinator, &leaving, ends);
	uint64_t moved = 0;

	for (; guard; guard = next, moved++) {
		next = guard->next;
		come(coordinator, guard, now);
	}
	for (guard = leaving; guard; guard = next, moved++) {
		next = guard->next_leaving;
		guard->leaves = true;
		timers_remove(&coordinator->timers, &guard->timer);
		timers_add(&coordinator->timers, &guard->timer, now);
	}
	return moved;
}

/* ---- Funds ------------------------------------------------------------------------ */

static void come_funds(struct coordinator *coordinator) ON(actor_role)
{
	struct fund *fund, *next;

	lock_take(&coordinator->lock);
	fund = coordinator->locked.arrived_funds;
	coordinator->locked.arrived_funds = NULL;
	lock_drop(&coordinator->lock);
	for (; fund; fund = next) {
		next = fund->next;
		post_join(fund->post, &coordinator->posts, &coordinator->home);
		list_append(&coordinator->funds, &fund->place);
	}
}

static void go_fund(struct fund *fund)
{
	post_part(fund->post);
	list_remove(&fund->place);
	fund->ops->drop(fund);
}

/* A wake is for any of them. */
static uint64_t turn_funds(struct coordinator *coordinator, bool woken, mono now)
    ON(actor_role)
{
	struct list *at, *next;
	uint64_t turned = 0;

	for (at = coordinator->funds.next; at != &coordinator->funds; at = next) {
		struct fund *fund = list_item(at, struct fund, place);

		next = at->next;
		if (!woken && !mono_reached(now, fund->due))
			continue;
		turned += fund_turn(fund, now);
		if (fund_is_over(fund))
			go_fund(fund);
	}
	return turned;
}

static mono funds_due(const struct coordinator *coordinator) ON(actor_role)
{
	mono due = { NEVER };

	for (const struct list *at = coordinator->funds.next; at != &coordinator->funds;
	     at = at->next)
		due = mono_earlier(due, list_item(at, const struct fund, place)->due);
	return due;
}

/* ---- Turns ------------------------------------------------------------------------ */

static void turn_guard(struct coordinator *coordinator, struct guard *guard, mono now)
    ON(actor_role)
{
	if (mono_reached(now, guard->look_due))
		guard->look_due = guard_look(guard, now);
	if (guard->leaves && guard_leaves(guard, now)) {
		go(guard);
		return;
	}
	if (guard->fleet)
		guard_beat(guard, now);
	time_guard(coordinator, guard, now);
}

static uint64_t turn_due(struct coordinator *coordinator, mono now) ON(actor_role)
{
	uint64_t turns = 0;
	struct timer *timer;

	for (; (timer = timers_take(&coordinator->timers, now)); turns++)
		turn_guard(coordinator, guard_of(timer), now);
	return turns;
}

static mono turn_posts(struct coordinator *coordinator, mono now) ON(actor_role)
{
	mono due = { NEVER };

	for (struct list *at = coordinator->posts.next; at != &coordinator->posts;
	     at = at->next)
		due = mono_earlier(due, post_turn(list_item(at, struct post, place),
		                                  &coordinator->home, now));
	return due;
}

/* By a clock that is read after the answer came: the fence may be up meanwhile, and the node
 * may have been stopped before it came.  MEMBER-8 */
static uint64_t hear(struct coordinator *coordinator) ON(actor_role)
{
	uint64_t heard = 0;
	struct store_call *call;

	for (; (call = store_take(&coordinator->home)); heard++) {
		mono now = clock_now(coordinator->clock);
		struct guard *guard;

		if (call->op->verb == STORE_CLAIM) {
			fund_hear(call, now);
			continue;
		}
		guard = fleet_of_call(call)->guard;
		guard_hear(guard, now);
		timers_remove(&coordinator->timers, &guard->timer);
		time_guard(coordinator, guard, now);
	}
	return heard;
}

static void nudge_post(struct coordinator *coordinator, const struct post *post,
                       const struct store_nudge *nudge, mono now) ON(actor_role)
{
	for (struct list *at = post->fleets.next; at != &post->fleets; at = at->next) {
		struct fleet *fleet = list_item(at, struct fleet, place);

		if (((fleet->mark ^ nudge->mark) & nudge->bits) != 0)
			continue;
		guard_nudged(fleet->guard, now, &nudge->is);
		timers_remove(&coordinator->timers, &fleet->guard->timer);
		time_guard(coordinator, fleet->guard, now);
	}
}

/* At the next turn those beat that have a reason to. */
static void hear_nudges(struct coordinator *coordinator, mono now) ON(actor_role)
{
	struct store_nudge nudge;

	while (store_take_nudge(&coordinator->nudges, &nudge))
		for (struct list *at = coordinator->posts.next;
		     at != &coordinator->posts; at = at->next)
			nudge_post(coordinator, list_item(at, struct post, place),
			           &nudge, now);
}

/* A server's answer makes the descriptor readable, and is no instant to wait for. */
static uint64_t work(struct coordinator *coordinator) ON(actor_role)
{
	mono now = clock_now(coordinator->clock), due;
	bool is_due = due_reached(&coordinator->due, now), woken;
	uint64_t done;

	if (!is_due && list_is_empty(&coordinator->posts))
		return 0;
	woken = is_due && due_take(&coordinator->due);
	done = move(coordinator, now, /* ends= */ false);
	come_funds(coordinator);
	done += turn_due(coordinator, now);
	done += turn_funds(coordinator, woken, now);
	due = turn_posts(coordinator, now);
	done += hear(coordinator);
	hear_nudges(coordinator, clock_now(coordinator->clock));
	due = mono_earlier(due, funds_due(coordinator));
	due_set(&coordinator->due,
	        mono_earlier(due, timers_next(&coordinator->timers)));
	return done;
}

/* The clock is another than sleep is measured on. */
static uint64_t after_ns(const struct coordinator *coordinator)
{
	mono now = clock_now(coordinator->clock);
	uint64_t due = due_at(&coordinator->due).ns;

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

/* All guards leave their fleets.  Calls that are in flight still are reported once more, and count
 * until the lease is over. */
static void leave_all(struct coordinator *coordinator, mono now) ON(actor_role)
{
	struct timers timers = coordinator->timers;
	struct timer *timer;

	for (struct list *at = coordinator->funds.next; at != &coordinator->funds;
	     at = at->next)
		fund_end(list_item(at, struct fund, place));
	coordinator->timers = (struct timers){ 0 };
	while ((timer = timers_take(&timers, (mono){ NEVER }))) {
		struct guard *guard = guard_of(timer);

		guard->leaves = true;
		timers_add(&coordinator->timers, timer, now);
	}
}

static bool has_any(const struct coordinator *coordinator)
{
	return coordinator->timers.first || !list_is_empty(&coordinator->funds);
}

/* The time that this takes is the host's, whatever its clock says. */
static void drain(struct coordinator *coordinator) ON(actor_role)
{
	uint64_t deadline_ns = patience_now_ns() + DRAIN_NS;

	leave_all(coordinator, clock_now(coordinator->clock));
	while (has_any(coordinator) && patience_now_ns() < deadline_ns) {
		mono now = clock_now(coordinator->clock);

		(void)turn_due(coordinator, now);
		(void)turn_funds(coordinator, /* woken= */ true, now);
		(void)turn_posts(coordinator, now);
		if (hear(coordinator) == 0 && has_any(coordinator))
			wake_wait_on(coordinator->home.watch.epoll_fd, NULL,
			             patience_now_ns() + DRAIN_PAUSE_NS);
	}
}

/* Those that the store has not answered in time.  The client leaves first: no call of a stake is
 * with the store then. */
static void end_funds(struct coordinator *coordinator) ON(actor_role)
{
	struct list *at, left;

	list_init(&left);
	while ((at = list_first(&coordinator->funds))) {
		post_part(list_item(at, struct fund, place)->post);
		list_remove(at);
		list_append(&left, at);
	}
	while (store_take(&coordinator->home))
		continue;
	while ((at = list_first(&left))) {
		struct fund *fund = list_item(at, struct fund, place);

		list_remove(at);
		fund_drop_stakes(fund);
		fund->ops->drop(fund);
	}
}

static void end(struct actor *self) ON(actor_role)
{
	struct coordinator *coordinator = coordinator_of(self);
	mono now = clock_now(coordinator->clock);
	struct guard *left = NULL, *next;
	struct timer *timer;

	(void)move(coordinator, now, /* ends= */ true);
	come_funds(coordinator);
	drain(coordinator);
	while ((timer = timers_take(&coordinator->timers, (mono){ NEVER }))) {
		struct guard *guard = guard_of(timer);

		guard_ends(guard);
		if (guard->fleet)
			post_leave(guard->fleet);
		guard->next = left;
		left = guard;
	}
	end_funds(coordinator);
	while (store_take(&coordinator->home))
		continue;
	for (; left; left = next) {
		next = left->next;
		left->ops->drop(left);
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
	list_init(&coordinator->posts);
	list_init(&coordinator->funds);
	list_init(&coordinator->home.done);
	coordinator->home.clock = config->clock;
	coordinator->home.nudges = &coordinator->nudges;
	atomic_init(&coordinator->due, NEVER);
	if (!actor_open(&coordinator->actor, &coordinator_ops, coordinator->mails,
	                COORDINATOR_MAILS))
		return GALE_ERR_SYSTEM;
	coordinator->home.watch =
	    (struct watch){ coordinator->actor.watch_fd,
		            /* early= */ config->with_thread && wake_early_pays() };
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
