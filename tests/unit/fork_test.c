/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fork_test.c -- a process is forked while a thread of it opens for the first time.
 *
 * The thread is stopped where the library has the kernel empty a page in children, with
 * whatever it holds then; the child, which has not got that thread, opens what it likes.
 * Each is a process of its own, as there is one first time in each.  Runtimes take turns: a
 * thread of theirs might just have a lock of the allocator's, which is not ours to free.
 *
 * The system's call is replaced by the one below, which the linker finds first.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include <gale/gale.h>

#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define CHILD_HANGS_SECONDS 15 /* less than CHILD_SECONDS: the scene is to see it */
#define LIMIT 3

/* ---- Where a thread stops -------------------------------------------------------- */

struct scene {
	unsigned call; /* which time that a page is to be emptied in children ... */
	bool after;    /* ... and whether the kernel has heard of it */
	sem_t inside;
	sem_t leave;
};

static _Thread_local struct scene *stops_in; /* of the thread that stops; once */

static void stop(void)
{
	struct scene *scene = stops_in;

	stops_in = NULL;
	must(sem_post(&scene->inside) == 0);
	while (sem_wait(&scene->leave) != 0)
		continue;
}

static bool is_the_call(int advice)
{
	return advice == MADV_WIPEONFORK && stops_in && --stops_in->call == 0;
}

int madvise(void *start, size_t bytes, int advice)
{
	bool stops = is_the_call(advice);
	int result;

	if (stops && !stops_in->after)
		stop();
	result = (int)syscall(SYS_madvise, start, bytes, advice);
	if (stops && stops_in)
		stop();
	return result;
}

/* ---- The scene ------------------------------------------------------------------- */

/* A runtime, and a store that has a name; true if they are good for something. */
static bool live(void)
{
	struct house_plan plan = { .rule = gale_fixed_window(LIMIT, GALE_HOURS(1)),
		                   .shards = 1,
		                   .turns = true,
		                   .url = "memory:forked" };
	struct house h;
	uint64_t left;

	house_open(&h, &plan);
	left = house_wait(&h, "k").remaining;
	return house_close(&h) && left == LIMIT - 1;
}

static int live_in_child(void *arg)
{
	(void)arg;
	alarm(CHILD_HANGS_SECONDS);
	return live() ? 0 : 1;
}

static void *live_and_stop(void *arg)
{
	stops_in = arg;
	must(live());
	must(!stops_in); /* it did stop */
	return NULL;
}

static int fork_meanwhile(void *arg)
{
	struct scene *scene = arg;
	pthread_t opener;
	int meanwhile, afterwards;

	must(sem_init(&scene->inside, 0, 0) == 0);
	must(sem_init(&scene->leave, 0, 0) == 0);
	must(pthread_create(&opener, NULL, live_and_stop, scene) == 0);
	while (sem_wait(&scene->inside) != 0)
		continue;
	meanwhile = child_run(live_in_child, NULL);
	must(sem_post(&scene->leave) == 0);
	must(pthread_join(opener, NULL) == 0);
	afterwards = child_run(live_in_child, NULL);
	return meanwhile == 0 && afterwards == 0 && live() ? 0 : 1;
}

static int forked_in(unsigned call, bool after)
{
	struct scene scene = { .call = call, .after = after };

	return child_run(fork_meanwhile, &scene);
}

static void a_child_of_one_that_just_opens_a_runtime_opens_its_own(void **state)
{
	(void)state;
	assert_int_equal(forked_in(1, /* after= */ false), 0);
	assert_int_equal(forked_in(1, /* after= */ true), 0);
}

static void a_child_of_one_that_just_opens_a_store_opens_its_own(void **state)
{
	(void)state;
	assert_int_equal(forked_in(2, /* after= */ false), 0);
	assert_int_equal(forked_in(2, /* after= */ true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_child_of_one_that_just_opens_a_runtime_opens_its_own),
		cmocka_unit_test(a_child_of_one_that_just_opens_a_store_opens_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
