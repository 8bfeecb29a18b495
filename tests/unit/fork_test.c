/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* fork_test.c -- a child made by fork() may start anew, on stores of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"

#define NAME "memory:fork_test"
#define LIMIT 3
#define CHILDREN 30

/* How many of five asks on the named store are allowed to a runtime of its own. */
static int allowed(void)
{
	struct gale_store_config named = { .url = NAME };
	struct gale_limiter_config config = {
		.name = "api",
		.rule = gale_fixed_window(LIMIT, GALE_DAYS(1000)),
	};
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	int count = 0;

	must(gale_runtime_open(NULL, &runtime) == GALE_ERR_OK);
	must(gale_store_open(runtime, &named, &config.store) == GALE_ERR_OK);
	must(gale_limiter_open(runtime, &config, &limiter) == GALE_ERR_OK);
	must(gale_join(runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < LIMIT + 2; i++)
		count +=
		    gale_wait(seat, limiter, "k", 1, 1, GALE_SECONDS(10)).verdict ==
		    GALE_ALLOW;
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(config.store);
	gale_runtime_close(runtime);
	return count;
}

static int allowed_in_child(void *arg)
{
	(void)arg;
	return allowed();
}

/* Regression: the child found its parent's store under the name, and its counts. */
static void a_child_opens_a_named_store_of_its_own(void **state)
{
	struct gale_store_config named = { .url = NAME };
	struct gale_runtime *runtime;
	struct gale_store *store;

	(void)state;
	assert_int_equal(gale_runtime_open(NULL, &runtime), GALE_ERR_OK);
	assert_int_equal(gale_store_open(runtime, &named, &store), GALE_ERR_OK);
	assert_int_equal(allowed(), LIMIT);
	assert_int_equal(allowed(), 0); /* the same store, still open */
	assert_int_equal(child_run(allowed_in_child, NULL), LIMIT);
	assert_int_equal(allowed(), 0); /* the parent lost nothing by it */
	gale_store_close(store);
	gale_runtime_close(runtime);
}

struct traffic {
	_Atomic bool over;
};

/* Who 0 forks; the others keep the registry and the stripes of the store busy. */
static void fork_or_be_busy(void *arg, unsigned who)
{
	struct traffic *traffic = arg;

	for (int i = 0; who == 0 && i < CHILDREN; i++)
		must(child_run(allowed_in_child, NULL) == LIMIT);
	if (who == 0)
		store_relaxed(&traffic->over, true);
	while (!load_relaxed(&traffic->over))
		(void)allowed();
}

/* Regression: a lock that a thread of the parent held was held for ever in the child. */
static void a_child_never_waits_for_a_lock_of_its_parents_threads(void **state)
{
	struct traffic traffic;

	(void)state;
	atomic_init(&traffic.over, false);
	crew_run(4, fork_or_be_busy, &traffic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_opens_a_named_store_of_its_own),
		cmocka_unit_test(a_child_never_waits_for_a_lock_of_its_parents_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
