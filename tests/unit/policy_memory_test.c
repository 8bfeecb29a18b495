/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * policy_memory_test.c -- memory runs out at each allocation of a policy in turn.
 *
 * A policy is opened and reloaded again and again.  In the n-th round the n-th allocation fails, or
 * all from the n-th on, until a round comes that needed fewer.  Each time all of the policy is in
 * force, or all of the one before, and nothing is lost.  (If there is no memory left at all, a rule
 * that was changed cannot be changed back: that is the one exception.)  The linker puts the functions below in the
 * place of the C library's; libyaml's own are replaced by their names.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gale/policy.h>

#include "tests/support/must.h"

#define FOREVER_US GALE_SECONDS(30)

static const char before[] =
    "stores: {here: {url: \"memory:\"}}\n"
    "limiters:\n"
    "  one: {rule: fixed_window, limit: 2/d, store: here}\n"
    "  two: {rule: fixed_window, limit: 2/d, store: here}\n"
    "budgets: {gpu: {limit: 9/d, tenants: {a: {guarantee: 9}, b: {}}}}\n...\n";

static const char after[] =
    "stores: {here: {url: \"memory:\"}, there: {url: \"memory:\"}}\n"
    "limiters:\n"
    "  one: {rule: fixed_window, limit: 5/d, store: here}\n"
    "  two: {rule: fixed_window, limit: 5/d, store: here}\n"
    "  new: {rule: fixed_window, limit: 5/d, store: there}\n"
    "guards: {db: {store: there}}\n"
    "budgets: {gpu: {limit: 8/d, tenants: {a: {}, b: {guarantee: 8}}}}\n...\n";

/* ---- Allocations ----------------------------------------------------------------- */

static _Thread_local uint64_t countdown; /* to the one that fails; 0: none does */
static _Thread_local bool all_after;
static _Thread_local bool has_failed;
static _Atomic int64_t live;
static uint64_t of_yaml; /* allocations */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void __real_free(void *memory);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

void *yaml_malloc(size_t bytes);
void *yaml_realloc(void *memory, size_t bytes);

static bool fails(void)
{
	if (countdown == 0 || --countdown > 0)
		return false;
	countdown = all_after;
	has_failed = true;
	return true;
}

static void *counted(void *memory)
{
	live += memory != NULL;
	return memory;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return fails() ? NULL : counted(__real_aligned_alloc(align, bytes));
}

char *__wrap_strdup(const char *text)
{
	char *copy = __wrap_malloc(strlen(text) + 1);

	return copy ? strcpy(copy, text) : NULL;
}

void __wrap_free(void *memory)
{
	live -= memory != NULL;
	__real_free(memory);
}

/* libyaml frees these by itself. */
void *yaml_malloc(size_t bytes)
{
	of_yaml++;
	return fails() ? NULL : __real_malloc(bytes > 0 ? bytes : 1);
}

void *yaml_realloc(void *memory, size_t bytes)
{
	if (fails())
		return NULL;
	return memory ? realloc(memory, bytes > 0 ? bytes : 1)
	              : __real_malloc(bytes > 0 ? bytes : 1);
}

static void fail_at(uint64_t number, bool all)
{
	countdown = number;
	all_after = all;
	has_failed = false;
}

/* ---- Rounds ---------------------------------------------------------------------- */

static uint64_t passes(struct gale_seat *seat, struct gale_policy *policy,
                       const char *name)
{
	struct gale_limiter *limiter = gale_policy_limiter(policy, name);
	uint64_t passed = 0;

	for (int i = 0; i < 9; i++)
		passed += gale_wait(seat, limiter, "k", 1, 1, FOREVER_US).verdict ==
		          GALE_ALLOW;
	return passed;
}

static void all_or_none(struct gale_seat *seat, struct gale_policy *policy,
                        enum gale_err err, bool all)
{
	uint64_t limit = err == GALE_ERR_OK ? 5 : 2;
	struct gale_tenant_counts counts;
	struct gale_tenant *b = gale_policy_tenant(policy, "gpu", "b");
	uint64_t one = passes(seat, policy, "one");

	assert_true(one == limit || (all && one == 5));
	assert_int_equal(passes(seat, policy, "two"), limit);
	assert_int_equal(gale_policy_limiter(policy, "new") != NULL,
	                 err == GALE_ERR_OK);
	assert_int_equal(gale_policy_guard(policy, "db") != NULL, err == GALE_ERR_OK);
	(void)gale_tenant_ask(seat, b, 1);
	(void)gale_tenant_ask(seat, gale_policy_tenant(policy, "gpu", "a"), 1);
	assert_int_equal(gale_tenant_stats(b, &counts), GALE_ERR_OK);
	assert_int_equal(counts.share > 4, err == GALE_ERR_OK);
}

/* Some of what gale allocates it can do without. */
static void check_err(enum gale_err err, const char *why, bool failed)
{
	assert_true(err == GALE_ERR_OK || (failed && err == GALE_ERR_MEMORY));
	assert_int_equal(why[0] != '\0', err != GALE_ERR_OK);
}

/* Returns whether anything failed. */
static bool live_once(uint64_t number, bool all)
{
	struct gale_config turns = { .shards = 1, .turns = true, .max_keys = 64 };
	struct gale_policy_config config = { .text = before };
	char why[GALE_POLICY_WHY_ROOM];
	struct gale_runtime *runtime;
	struct gale_policy *policy;
	struct gale_seat *seat;
	enum gale_err err;
	bool opening_failed, failed;

	must(gale_runtime_open(&turns, &runtime) == GALE_ERR_OK);
	must(gale_join(runtime, &seat) == GALE_ERR_OK);
	fail_at(number, all);
	err = gale_policy_open(runtime, &config, why, sizeof(why), &policy);
	opening_failed = has_failed;
	fail_at(0, false);
	check_err(err, why, opening_failed);
	if (err != GALE_ERR_OK)
		must(gale_policy_open(runtime, &config, why, sizeof(why), &policy) ==
		     GALE_ERR_OK);
	fail_at(number, all);
	err = gale_policy_reload(policy, after, why, sizeof(why));
	failed = has_failed;
	fail_at(0, false);
	check_err(err, why, failed);
	all_or_none(seat, policy, err, all);
	gale_policy_close(policy);
	gale_leave(seat);
	gale_runtime_close(runtime);
	return opening_failed || failed;
}

static void live_again_and_again(bool all)
{
	int64_t live_before = live;
	uint64_t number = 1;

	while (live_once(number, all))
		number++;
	assert_true(number > 100 && of_yaml > number);
	assert_int_equal(live, live_before);
}

static void any_allocation_may_fail(void **state)
{
	(void)state;
	live_again_and_again(false);
}

static void all_allocations_from_any_on_may_fail(void **state)
{
	(void)state;
	live_again_and_again(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(all_allocations_from_any_on_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
