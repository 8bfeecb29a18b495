/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* actor_test.c -- an actor does what it was given, and stops when it is told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/actor.h"
#include "runtime/atomic.h"
#include "tests/support/length.h"

#define SLOTS 64
#define LIVES LONG_OR_BRIEF(30000, 3000)
#define PATIENCE_S 120 /* for all lives; one that hangs is ended by SIGALRM */

struct counter {
	struct actor actor;
	struct mail_slot slots[SLOTS];
	_Atomic uint64_t handled;
};

static void on_mail(struct actor *self, void *mail)
{
	struct counter *counter = (struct counter *)self;

	assert_ptr_equal(mail, counter);
	add_relaxed(&counter->handled, 1);
}

static uint64_t no_chores(struct actor *self)
{
	(void)self;
	return UINT64_MAX;
}

static const struct actor_ops ops = { .on_mail = on_mail, .chores = no_chores };

static void start(struct counter *counter)
{
	atomic_init(&counter->handled, 0);
	assert_true(actor_open(&counter->actor, &ops, counter->slots, SLOTS));
	assert_true(actor_start(&counter->actor, "counter", 0));
}

/* Regression: the loop looked at the word before it cleared the wake that announced it,
 * and slept for ever. */
static void a_stop_is_never_missed(void **state)
{
	static struct counter counter;

	(void)state;
	alarm(PATIENCE_S);
	for (int life = 0; life < LIVES; life++) {
		start(&counter);
		for (int spin = 0; spin < life % 512; spin++)
			__asm__ volatile("");
		actor_stop(&counter.actor);
		actor_close(&counter.actor);
	}
	alarm(0);
}

static void what_was_posted_before_the_stop_is_handled(void **state)
{
	static struct counter counter;

	(void)state;
	alarm(PATIENCE_S);
	for (int life = 0; life < LIVES / 10; life++) {
		uint64_t posted = (uint64_t)life % SLOTS;

		start(&counter);
		for (uint64_t i = 0; i < posted; i++)
			assert_true(actor_post(&counter.actor, &counter));
		actor_stop(&counter.actor);
		actor_close(&counter.actor);
		assert_int_equal(load_relaxed(&counter.handled), posted);
	}
	alarm(0);
}

/* Without a thread of its own, the turns are whoever's wears its role. */
static void a_host_may_take_the_turns(void **state)
{
	static struct counter counter;
	struct turned turned;

	(void)state;
	atomic_init(&counter.handled, 0);
	assert_true(actor_open(&counter.actor, &ops, counter.slots, SLOTS));
	for (int i = 0; i < 3; i++)
		assert_true(actor_post(&counter.actor, &counter));
	role_begin(&actor_role);
	turned = actor_turn(&counter.actor);
	role_end(&actor_role);
	assert_int_equal(turned.mails, 3);
	assert_int_equal(turned.next_ns, UINT64_MAX);
	assert_false(turned.more);
	assert_true(actor_post(&counter.actor, &counter));
	actor_stop(&counter.actor); /* takes the last */
	actor_close(&counter.actor);
	assert_int_equal(load_relaxed(&counter.handled), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_is_never_missed),
		cmocka_unit_test(what_was_posted_before_the_stop_is_handled),
		cmocka_unit_test(a_host_may_take_the_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
