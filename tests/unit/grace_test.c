/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * grace_test.c -- nothing is freed under a reader, and nobody waits.
 *
 * Everything is done twice: with the kernel's barrier, and with readers that fence
 * themselves.
 */
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/grace.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"

static void open_with(struct grace *grace, bool fences)
{
	memset(grace, 0, sizeof(*grace));
	grace_open(grace);
	grace->fences |= fences;
}

struct thing {
	struct retired retired; /* first */
	bool freed;
};

static unsigned freed;

static void note(void *self, struct retired *retired)
{
	(void)self;
	assert_false(((struct thing *)retired)->freed);
	((struct thing *)retired)->freed = true;
	freed++;
}

static void turn(struct limbo *limbo, struct grace *grace)
{
	limbo_turn(limbo, grace, note, NULL);
}

static void without_readers_all_is_freed_at_once(void **state)
{
	struct grace grace;
	struct limbo limbo = { 0 };
	struct thing things[3] = { 0 };

	open_with(&grace, *(bool *)*state);
	freed = 0;
	turn(&limbo, &grace);
	assert_true(limbo_is_empty(&limbo));
	for (int i = 0; i < 3; i++)
		limbo_add(&limbo, &things[i].retired);
	assert_false(limbo_is_empty(&limbo));
	turn(&limbo, &grace);
	assert_int_equal(freed, 3);
	assert_true(limbo_is_empty(&limbo));
	grace_close(&grace);
}

static void one_who_reads_is_waited_for(void **state)
{
	struct grace grace;
	struct limbo limbo = { 0 };
	struct thing thing = { 0 };
	struct reader reader = { 0 };

	open_with(&grace, *(bool *)*state);
	freed = 0;
	grace_join(&grace, &reader);
	reader_enter(&grace, &reader);
	limbo_add(&limbo, &thing.retired);
	for (int i = 0; i < 5; i++)
		turn(&limbo, &grace);
	assert_int_equal(freed, 0);
	reader_exit(&reader);
	turn(&limbo, &grace);
	assert_int_equal(freed, 1);
	grace_leave(&grace, &reader);
	grace_close(&grace);
}

static void one_who_came_later_is_not_waited_for(void **state)
{
	struct grace grace;
	struct reader early = { 0 }, late = { 0 };
	uint64_t ticket;

	open_with(&grace, *(bool *)*state);
	grace_join(&grace, &early);
	grace_join(&grace, &late);
	reader_enter(&grace, &early);
	ticket = grace_begin(&grace);
	reader_enter(&grace, &late);
	assert_false(grace_over(&grace, ticket));
	reader_exit(&early);
	assert_true(grace_over(&grace, ticket));
	assert_false(grace_over(&grace, grace_begin(&grace))); /* it is now early */
	reader_exit(&late);
	grace_leave(&grace, &late);
	grace_leave(&grace, &early);
	grace_close(&grace);
}

/* It keeps what was retired since it began, both batches, and nothing from before. */
static void a_stalled_reader_delays_frees_and_nothing_else(void **state)
{
	struct grace grace;
	struct limbo limbo = { 0 }, other = { 0 };
	struct thing before = { 0 }, things[8] = { 0 };
	struct reader stalled = { 0 }, lively = { 0 };

	open_with(&grace, *(bool *)*state);
	freed = 0;
	grace_join(&grace, &stalled);
	grace_join(&grace, &lively);
	reader_enter(&grace, &lively);
	limbo_add(&other, &before.retired);
	turn(&other, &grace); /* its period begins */
	reader_enter(&grace, &stalled);
	reader_exit(&lively);
	turn(&other, &grace);
	assert_true(before.freed); /* though one is stalled */
	for (int i = 0; i < 8; i++) {
		limbo_add(&limbo, &things[i].retired);
		turn(&limbo, &grace);
		reader_enter(&grace, &lively); /* others read on */
		reader_exit(&lively);
	}
	assert_int_equal(freed, 1);
	reader_exit(&stalled);
	turn(&limbo, &grace);
	assert_int_equal(freed, 9);
	assert_true(limbo_is_empty(&limbo));
	grace_leave(&grace, &stalled);
	grace_leave(&grace, &lively);
	grace_close(&grace);
}

static void two_batches_wait_however_many_are_added(void **state)
{
	struct grace grace;
	struct limbo limbo = { 0 };
	struct thing things[4] = { 0 };
	struct reader reader = { 0 };

	open_with(&grace, *(bool *)*state);
	freed = 0;
	grace_join(&grace, &reader);
	reader_enter(&grace, &reader);
	limbo_add(&limbo, &things[0].retired);
	turn(&limbo, &grace);
	reader_exit(&reader);
	reader_enter(&grace, &reader); /* after the first began, before the second */
	limbo_add(&limbo, &things[1].retired);
	limbo_add(&limbo, &things[2].retired);
	turn(&limbo, &grace);
	assert_int_equal(freed, 1);
	limbo_add(&limbo, &things[3].retired);
	turn(&limbo, &grace);
	assert_int_equal(freed, 1);
	limbo_close(&limbo, note, NULL); /* nobody reads any more */
	assert_int_equal(freed, 4);
	reader_exit(&reader);
	grace_leave(&grace, &reader);
	grace_close(&grace);
}

static void who_has_left_is_not_waited_for(void **state)
{
	struct grace grace;
	struct reader readers[3] = { 0 };
	uint64_t ticket;

	open_with(&grace, *(bool *)*state);
	for (int i = 0; i < 3; i++)
		grace_join(&grace, &readers[i]);
	reader_enter(&grace, &readers[1]);
	ticket = grace_begin(&grace);
	grace_leave(&grace, &readers[0]);
	assert_false(grace_over(&grace, ticket));
	grace_leave(&grace, &readers[1]); /* the one in the middle */
	assert_true(grace_over(&grace, ticket));
	grace_leave(&grace, &readers[1]); /* not there: nothing happens */
	grace_leave(&grace, &readers[2]);
	assert_true(list_is_empty(&grace.locked.readers));
	grace_close(&grace);
}

/* ---- Threads --------------------------------------------------------------------- */

#define READERS 3
#define BOXES 6
#define SWAPS 20000 /* at least ... */
#define READS 20000 /* ... and until there were so many */
#define FRESH UINT64_C(0x1111111111111111)
#define POISON UINT64_C(0xdddddddddddddddd)

/* Two words that are alike while it lives: plain memory, so that TSan sees who may. */
struct box {
	struct retired retired; /* first */
	uint64_t a;
	uint64_t b;
	bool free;
};

struct scene {
	struct grace grace;
	_Atomic(struct box *) published;
	struct box boxes[BOXES];
	_Atomic bool over;
	_Atomic uint64_t reads;
	uint64_t swaps;
};

static void poison(void *self, struct retired *retired)
{
	struct box *box = (struct box *)retired;

	(void)self;
	box->a = POISON;
	box->b = ~POISON;
	box->free = true;
}

static void read_once(struct scene *s, struct reader *reader)
{
	struct box *box;

	reader_enter(&s->grace, reader);
	box = load_acquire(&s->published);
	must(box->a == box->b);
	must(box->a != POISON);
	reader_exit(reader);
}

/* Comes and goes, and reads meanwhile; the first is in no hurry to go, so that nothing but
 * its word tells that it has read. */
static void read_on(struct scene *s, unsigned who)
{
	while (!load_relaxed(&s->over)) {
		struct reader reader = { 0 };

		grace_join(&s->grace, &reader);
		for (int i = 0; i < 200 || (who == 0 && !load_relaxed(&s->over)); i++)
			read_once(s, &reader);
		grace_leave(&s->grace, &reader);
		add_relaxed(&s->reads, 200);
		sched_yield();
	}
}

static struct box *any_free(struct scene *s)
{
	for (int i = 0; i < BOXES; i++)
		if (s->boxes[i].free)
			return &s->boxes[i];
	return NULL;
}

static void swap_once(struct scene *s, struct limbo *limbo)
{
	struct box *box = any_free(s), *old = load_relaxed(&s->published);

	if (!box) {
		sched_yield(); /* readers have them all */
		return;
	}
	box->free = false;
	box->a = box->b = FRESH + s->swaps++;
	store_release(&s->published, box);
	limbo_add(limbo, &old->retired);
}

static void write_on(struct scene *s)
{
	struct limbo limbo = { 0 };

	while (s->swaps < SWAPS || load_relaxed(&s->reads) < READS) {
		swap_once(s, &limbo);
		limbo_turn(&limbo, &s->grace, poison, NULL);
	}
	store_relaxed(&s->over, true);
	while (!limbo_is_empty(&limbo)) {
		limbo_turn(&limbo, &s->grace, poison, NULL);
		sched_yield();
	}
}

static void scene_main(void *arg, unsigned who)
{
	if (who == READERS)
		write_on(arg);
	else
		read_on(arg, who);
}

static void nobody_reads_what_was_freed(void **state)
{
	static struct scene s;

	memset(&s, 0, sizeof(s));
	open_with(&s.grace, *(bool *)*state);
	for (int i = 0; i < BOXES; i++)
		s.boxes[i].free = true;
	s.boxes[0] = (struct box){ .a = FRESH, .b = FRESH };
	store_relaxed(&s.published, &s.boxes[0]);
	crew_run(READERS + 1, scene_main, &s);
	assert_true(s.swaps >= SWAPS);
	assert_true(list_is_empty(&s.grace.locked.readers));
	grace_close(&s.grace);
}

#define BOTH_WAYS(test)                                                                \
	{ #test, test, NULL, NULL, &no },                                              \
	{                                                                              \
#test " (readers fence)", test, NULL, NULL, &yes                       \
	}

int main(void)
{
	static bool yes = true, no = false;
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(without_readers_all_is_freed_at_once),
		BOTH_WAYS(one_who_reads_is_waited_for),
		BOTH_WAYS(one_who_came_later_is_not_waited_for),
		BOTH_WAYS(a_stalled_reader_delays_frees_and_nothing_else),
		BOTH_WAYS(two_batches_wait_however_many_are_added),
		BOTH_WAYS(who_has_left_is_not_waited_for),
		BOTH_WAYS(nobody_reads_what_was_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
