/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shard.c -- takes an ask, has its store run it, sends it home.
 *
 * The shard may wait for the store where a seat may not.
 */
#include "shards/shard.h"

#include <stdio.h>

static void on_mail(struct actor *self, void *mail)
{
	struct ask *ask = mail;

	(void)self;
	ask->result = store_run(ask->store, &ask->op, /* patient= */ true);
	ask->home->answered(ask->home, ask); /* last: it is not ours any more */
}

static uint64_t chores(struct actor *self)
{
	struct shard *shard = (struct shard *)self;

	return shard->chore ? shard->chore->run(shard->chore) : UINT64_MAX;
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
	wake_raise(&shard->actor.wake);
}
