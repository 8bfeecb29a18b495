/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* shard_test.c -- a shard's chore comes when it is due, and when it is woken for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "shards/shard.h"

#define PATIENCE_NS UINT64_C(20000000000)

/* A store of which nothing is asked but that it was asked. */
static enum store_result do_nothing(struct store *self, struct store_op *op,
                                    bool patient)
{
	(void)self;
	(void)op;
	return patient ? STORE_DONE : STORE_BUSY;
}

static const struct store_ops idle_ops = { .run = do_nothing };
static struct store idle_store = { .ops = &idle_ops };
static struct terms idle_terms;
static struct lender idle_lender = { .store = &idle_store, .terms = &idle_terms };

struct scene {
	struct shard shard;
	struct shard_chore chore;
	struct boot_clock boot;
	struct grace grace;
	struct ask_home home;
	_Atomic uint64_t chores;
	_Atomic uint64_t answers;
	struct shard *wake_within; /* the chore wakes its own shard, once */
};

static struct scene scene;

static uint64_t count_chore(struct shard_chore *self)
{
	struct shard *woken = scene.wake_within;

	assert_ptr_equal(self, &scene.chore);
	add_relaxed(&scene.chores, 1);
	scene.wake_within = NULL;
	if (woken)
		shard_wake(woken);
	return UINT64_MAX; /* never again by itself */
}

static void count_answer(struct ask_home *self, struct ask *ask)
{
	(void)self;
	assert_int_equal(ask->result, STORE_DONE);
	atomic_fetch_add(&scene.answers, 1); /* gives the ask back */
}

static void scene_open_with(bool with_thread, bool wakes_itself)
{
	scene.chore.run = count_chore;
	scene.home.answered = count_answer;
	scene.wake_within = wakes_itself ? &scene.shard : NULL;
	store_relaxed(&scene.chores, 0);
	store_relaxed(&scene.answers, 0);
	boot_clock_init(&scene.boot);
	grace_open(&scene.grace);
	assert_int_equal(shard_open(&scene.shard,
	                            &(struct lessor_config){
					.allocator = memory_default(),
					.clock = &scene.boot.clock,
					.grace = &scene.grace,
					.max_purses = 1,
				    },
	                            &scene.chore, with_thread,
	                            /* poll_ns= */ 0),
	                 GALE_ERR_OK);
}

static void scene_open(bool wakes_itself)
{
	scene_open_with(/* with_thread= */ true, wakes_itself);
}

static void scene_close(void)
{
	shard_close(&scene.shard);
	shard_free(&scene.shard);
	grace_close(&scene.grace);
}

static void wait_for(_Atomic uint64_t *count, uint64_t value)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	while (atomic_load(count) < value)
		assert_true(patience_now_ns() < deadline);
}

static void ask_and_wait(uint64_t number)
{
	struct ask ask = { .home = &scene.home, .lender = &idle_lender };

	assert_true(shard_post(&scene.shard, &ask));
	wait_for(&scene.answers, number);
}

/* Regression: it came at every wake of the shard, most of all when there was much else
 * to do. */
static void asks_do_not_bring_the_chore(void **state)
{
	(void)state;
	scene_open(false);
	wait_for(&scene.chores, 1);
	for (uint64_t i = 1; i <= 200; i++)
		ask_and_wait(i);
	scene_close();
	assert_int_equal(load_relaxed(&scene.chores), 1);
}

static void a_wake_brings_the_chore(void **state)
{
	(void)state;
	scene_open(false);
	for (uint64_t i = 1; i <= 200; i++) {
		wait_for(&scene.chores, i);
		shard_wake(&scene.shard);
	}
	wait_for(&scene.chores, 201);
	scene_close();
}

static void a_wake_that_comes_while_the_chore_runs_is_not_lost(void **state)
{
	(void)state;
	scene_open(true);
	wait_for(&scene.chores, 2);
	scene_close();
}

/* A host that turns it would be woken for nothing, by what nobody takes from its epoll. */
static void only_its_own_thread_is_woken_early(void **state)
{
	(void)state;
	scene_open(false);
	assert_int_equal(scene.shard.lessor.home.watch.early, wake_early_pays());
	scene_close();
	scene_open_with(/* with_thread= */ false, false);
	assert_false(scene.shard.lessor.home.watch.early);
	scene_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_do_not_bring_the_chore),
		cmocka_unit_test(a_wake_brings_the_chore),
		cmocka_unit_test(a_wake_that_comes_while_the_chore_runs_is_not_lost),
		cmocka_unit_test(only_its_own_thread_is_woken_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
