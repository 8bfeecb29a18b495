/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shard.c -- takes an ask, has its store run it, sends it home.
 *
 * The shard may wait for the store where a seat may not.
 *
 * Ordering
 *
 *   chore_due_ns is relaxed: the chore finds its work under the runtime's lock.
 */
#include "shards/shard.h"

#include <stdio.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"

#define NEVER UINT64_MAX

static void on_mail(struct actor *self, void *mail)
{
	struct ask *ask = mail;

	(void)self;
	ask->result = store_run(ask->store, &ask->op, /* patient= */ true);
	ask->home->answered(ask->home, ask); /* last: it is not ours any more */
}

/* A wake that comes while the chore runs finds the word at NEVER and sets it back to
 * 0, so the new deadline does not overwrite it. */
static uint64_t run_chore(struct shard *shard)
{
	uint64_t unchanged = NEVER, due;

	store_relaxed(&shard->chore_due_ns, NEVER);
	due = shard->chore->run(shard->chore);
	if (swap_if_relaxed(&shard->chore_due_ns, &unchanged, due))
		return due;
	return 0; /* woken meanwhile */
}

static uint64_t chores(struct actor *self)
{
	struct shard *shard = (struct shard *)self;
	uint64_t due = load_relaxed(&shard->chore_due_ns);

	if (due == NEVER || patience_now_ns() < due)
		return due;
	return run_chore(shard);
}

static const struct actor_ops shard_ops = {
	.on_mail = on_mail,
	.chores = chores,
};

bool shard_open(struct shard *shard, unsigned number, struct shard_chore *chore)
{
	char name[16];

	snprintf(name, sizeof(name), "gale-shard-%u", number % 1000);
	shard->chore = chore;
	atomic_init(&shard->chore_due_ns, chore ? 0 : NEVER);
	return actor_start(&shard->actor, &shard_ops, name, shard->mails, SHARD_MAILS);
}

void shard_close(struct shard *shard)
{
	actor_stop(&shard->actor);
}

bool shard_post(struct shard *shard, struct ask *ask)
{
	return actor_post(&shard->actor, ask);
}

void shard_wake(struct shard *shard)
{
	if (shard->chore)
		store_relaxed(&shard->chore_due_ns, 0);
	wake_raise(&shard->actor.wake);
}
