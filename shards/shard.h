/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shard.h -- the actor of a part of the keys: it lends, and answers what seats cannot.
 *
 * Threads   shard_post, shard_wake: any, never block.
 *           shard_turn: the host's that turns, if the shard has no thread of its own.
 *           shard_open, shard_tell_to_close, shard_close, shard_free: the runtime's.
 * Limits    A shard takes SHARD_MAILS asks at a time; one more is for the asker to
 *           answer.  Every ask that was taken is answered before shard_close returns,
 *           if it was posted before.
 */
#ifndef SHARDS_SHARD_H
#define SHARDS_SHARD_H

#include <stdbool.h>

#include "runtime/actor.h"
#include "shards/lessor.h"

#define SHARD_MAILS 1024

/* What a shard does between its turns. */
struct shard_chore {
	/* Returns in how many nanoseconds it wants to be called again, by the shard's
	 * clock; UINT64_MAX: when it is woken. */
	uint64_t (*run)(struct shard_chore *self);
};

struct shard {
	struct actor actor;
	struct lessor lessor;
	_Atomic bool woken;        /* and not looked around since */
	struct shard_chore *chore; /* NULL: none */
	/* When they want to be called, by the shard's clock; 0: at once. */
	_Atomic uint64_t lessor_due_ns;
	_Atomic uint64_t chore_due_ns;
	struct mail_slot mails[SHARD_MAILS];
};

/* Its thread, if it is to have one, looks for poll_ns for what is next before it sleeps. */
enum gale_err shard_open(struct shard *shard, const struct lessor_config *config,
                         struct shard_chore *chore, bool with_thread, uint64_t poll_ns);
/* A shard with a thread begins with it, so that several can wait at once. */
void shard_tell_to_close(struct shard *shard);
/* Waits for what stores still owe to asks, at most as long as patience. */
void shard_close(struct shard *shard);
/* No thread reads its purses any more. */
void shard_free(struct shard *shard);

/* What came of a turn. */
struct shard_turned {
	uint64_t done; /* how much it did; 0 if there was nothing to do ... */
	bool held_up;  /* ... or a thread is just posting something */
};
/* For a shard without a thread. */
struct shard_turned shard_turn(struct shard *shard) ON(actor_role);
/* How many nanoseconds until it wants one; UINT64_MAX: not before something is posted. */
uint64_t shard_turn_after_ns(const struct shard *shard);

/* False if the shard has its hands full. */
bool shard_post(struct shard *shard, struct ask *ask);

/* Lets it run its chore soon, and look for what is closed. */
void shard_wake(struct shard *shard);

#endif
