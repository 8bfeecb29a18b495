/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lock.c -- over a plain pthread mutex; its failures are programming errors.
 *
 * Threads   Any.
 */
#include "runtime/lock.h"

#include "engine/check.h"
#include "runtime/pause.h"

#define TRIES 64 /* a step under a lock takes far less than this many pauses */

void lock_init(struct lock *lock)
{
	gale_assert(pthread_mutex_init(&lock->mutex, NULL) == 0);
}

void lock_destroy(struct lock *lock)
{
	gale_assert(pthread_mutex_destroy(&lock->mutex) == 0);
}

UNCHECKED void lock_take(struct lock *lock)
{
	gale_assert(pthread_mutex_lock(&lock->mutex) == 0);
}

UNCHECKED bool lock_try(struct lock *lock)
{
	for (int i = 0; i < TRIES; i++) {
		if (pthread_mutex_trylock(&lock->mutex) == 0)
			return true;
		pause_briefly();
	}
	return false;
}

UNCHECKED void lock_drop(struct lock *lock)
{
	gale_assert(pthread_mutex_unlock(&lock->mutex) == 0);
}
