/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * clock.h -- time that a test moves, and a step that a test can stop halfway.
 *
 * A store reads its clock within the step, under its lock.  So a thread that is held
 * up while it reads the clock keeps the store busy for everybody else, for as long as
 * the test wants: that is a holder.
 *
 * Threads   Any, at once.
 */
#ifndef TESTS_SUPPORT_CLOCK_H
#define TESTS_SUPPORT_CLOCK_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

#include <gale/gale.h>

#include "stores/store.h"

struct test_clock {
	struct gale_clock clock; /* first: it is what the library gets */
	_Atomic uint64_t now_us;
	_Atomic uint64_t boot_ns; /* the node's own, once test_clock_is_the_nodes */
	_Atomic uint64_t reads;
	_Atomic uint64_t boot_reads;
	uint64_t store_takes_ns; /* so long, on the node's own, each time it is read */
	uint64_t
	    yield_each; /* so many reads, the processor is left to others; 0: never */
};

void test_clock_init(struct test_clock *test, uint64_t now_us);
/* From here on a runtime that is opened with it has no other time at all. */
void test_clock_is_the_nodes(struct test_clock *test);
/* Of stores only; the node's does not go back. */
void test_clock_set(struct test_clock *test, uint64_t now_us);
/* Of both. */
void test_clock_advance(struct test_clock *test, uint64_t by_us);

/* A thread within a look at a key, with the lock of its stripe. */
struct holder {
	pthread_t thread;
	sem_t inside;
	sem_t leave;
	struct store *store;
	struct store_op op;
	struct rule rule;
	uint8_t key[STORE_KEY_MAX];
};

/* Returns when the key's stripe is held.  The store's clock must be a test_clock. */
void holder_begin(struct holder *holder, struct gale_limiter *limiter, const char *key);
/* Lets the look end, and waits for it. */
void holder_end(struct holder *holder);

#endif
