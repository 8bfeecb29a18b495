/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* clock.c -- a word, and a thread that stops when it reads it. */
#include "tests/support/clock.h"

#include <sched.h>
#include <string.h>

#include "face/face.h"
#include "runtime/atomic.h"
#include "tests/support/must.h"

/* The holder that this thread is, until it has stopped once. */
static _Thread_local struct holder *holding;

static void maybe_yield(const struct test_clock *test, uint64_t reads)
{
	if (test->yield_each > 0 && reads % test->yield_each == 0)
		sched_yield();
}

static uint64_t test_clock_now(struct gale_clock *self)
{
	struct test_clock *test = (struct test_clock *)self;
	struct holder *holder = holding;

	holding = NULL;
	if (holder) {
		must(sem_post(&holder->inside) == 0);
		while (sem_wait(&holder->leave) != 0)
			continue;
	}
	maybe_yield(test, add_relaxed(&test->reads, 1) + 1);
	add_relaxed(&test->boot_ns, test->store_takes_ns);
	return load_relaxed(&test->now_us);
}

void test_clock_init(struct test_clock *test, uint64_t now_us)
{
	memset(test, 0, sizeof(*test));
	test->clock.now_us = test_clock_now;
	test->now_us = now_us;
}

static uint64_t test_clock_boot(struct gale_clock *self)
{
	struct test_clock *test = (struct test_clock *)self;

	add_relaxed(&test->boot_reads, 1);
	return load_relaxed(&test->boot_ns);
}

void test_clock_is_the_nodes(struct test_clock *test)
{
	store_relaxed(&test->boot_ns, UINT64_C(1000000000));
	test->clock.boot_ns = test_clock_boot;
}

void test_clock_set(struct test_clock *test, uint64_t now_us)
{
	store_relaxed(&test->now_us, now_us);
}

void test_clock_advance(struct test_clock *test, uint64_t by_us)
{
	add_relaxed(&test->now_us, by_us);
	add_relaxed(&test->boot_ns, by_us * 1000);
}

static void *hold(void *arg)
{
	struct holder *holder = arg;

	holding = holder;
	must(store_run(holder->store, &holder->op, /* patient= */ true) == STORE_DONE);
	must(!holding);
	return NULL;
}

void holder_begin(struct holder *holder, struct gale_limiter *limiter, const char *key)
{
	size_t key_len = strlen(key);

	must(sem_init(&holder->inside, 0, 0) == 0);
	must(sem_init(&holder->leave, 0, 0) == 0);
	holder->key[0] = limiter->lender.name_len;
	memcpy(holder->key + 1, limiter->lender.name, limiter->lender.name_len);
	memcpy(holder->key + 1 + limiter->lender.name_len, key, key_len);
	holder->store = limiter->store->inner;
	holder->rule =
	    lender_terms(&limiter->lender).rule; /* it may be closed meanwhile */
	holder->op = (struct store_op){
		.verb = STORE_PEEK,
		.key = holder->key,
		.key_len = (uint32_t)(1 + limiter->lender.name_len + key_len),
		.rule = &holder->rule,
	};
	must(pthread_create(&holder->thread, NULL, hold, holder) == 0);
	while (sem_wait(&holder->inside) != 0)
		continue;
}

void holder_end(struct holder *holder)
{
	must(sem_post(&holder->leave) == 0);
	must(pthread_join(holder->thread, NULL) == 0);
	sem_destroy(&holder->inside);
	sem_destroy(&holder->leave);
}
