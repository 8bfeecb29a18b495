/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lock.h -- a mutex that clang can check.
 *
 * Threads   Any.  What a lock guards is marked OF(lock) where it is declared.
 * Limits    Not on the hot path: lock_try is for asks, lock_take for everything slow.
 */
#ifndef RUNTIME_LOCK_H
#define RUNTIME_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/role.h"

struct CAPABILITY("lock") lock {
	pthread_mutex_t mutex;
};

void lock_init(struct lock *lock);
void lock_destroy(struct lock *lock);
void lock_take(struct lock *lock) TAKES(*lock);
/* Tries for about a microsecond; false if the holder did not let go meanwhile. */
bool lock_try(struct lock *lock) TAKES_IF_TRUE(*lock);
void lock_drop(struct lock *lock) DROPS(*lock);

#endif
