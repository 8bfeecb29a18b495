/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shard.c -- the turns of a shard: mail, then what the lessor has to do, then chores.
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

static struct shard *shard_of(struct actor *actor)
{
	return (struct shard *)actor;
}

static mono now_of(const struct shard *shard)
{
	return clock_now(shard->lessor.config.clock);
}

static void on_mail(struct actor *self, void *mail) ON(actor_role)
{
	struct shard *shard = shard_of(self);

	lessor_ask(&shard->lessor, mail, now_of(shard));
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

static uint64_t chore_due(struct shard *shard)
{
	uint64_t due = load_relaxed(&shard->chore_due_ns);

	if (due == NEVER || patience_now_ns() < due)
		return due;
	return run_chore(shard);
}

/* The lessor's instants are of another clock than sleep is measured on. */
static uint64_t sleep_until(mono now, mono due)
{
	uint64_t wait = due.ns > now.ns ? due.ns - now.ns : 0;

	if (due.ns == UINT64_MAX)
		return NEVER;
	return wait == 0 ? 0 : patience_now_ns() + wait;
}

static uint64_t chores(struct actor *self) ON(actor_role)
{
	struct shard *shard = shard_of(self);
	mono now = now_of(shard);
	uint64_t lent_due, due;

	shard->lessor_due = lessor_turn(&shard->lessor, now);
	lent_due = sleep_until(now, shard->lessor_due);
	due = chore_due(shard);
	return due < lent_due ? due : lent_due;
}

static const struct actor_ops shard_ops = {
	.on_mail = on_mail,
	.chores = chores,
};

enum gale_err shard_open(struct shard *shard, const struct lessor_config *config,
                         struct shard_chore *chore, bool with_thread)
{
	char name[16];

	snprintf(name, sizeof(name), "gale-shard-%u", config->shard % 1000);
	shard->chore = chore;
	atomic_init(&shard->chore_due_ns, chore ? 0 : NEVER);
	if (!lessor_open(&shard->lessor, config))
		return GALE_ERR_MEMORY;
	if (!actor_open(&shard->actor, &shard_ops, shard->mails, SHARD_MAILS)) {
		lessor_free(&shard->lessor);
		return GALE_ERR_SYSTEM;
	}
	if (!with_thread || actor_start(&shard->actor, name))
		return GALE_ERR_OK;
	shard_close(shard);
	shard_free(shard);
	return GALE_ERR_SYSTEM;
}

uint64_t shard_turn(struct shard *shard)
{
	mono before = shard->lessor_due;
	struct turned turned = actor_turn(&shard->actor);
	bool was_due = mono_reached(now_of(shard), before);

	return turned.mails + was_due;
}

static uint64_t chore_after_ns(const struct shard *shard)
{
	uint64_t due = load_relaxed(&shard->chore_due_ns), now;

	if (due == NEVER)
		return NEVER;
	now = patience_now_ns();
	return due > now ? due - now : 0;
}

uint64_t shard_turn_after_ns(const struct shard *shard)
{
	mono now = now_of(shard), due = shard->lessor_due;
	uint64_t chore = chore_after_ns(shard), lent = NEVER;

	if (due.ns != UINT64_MAX)
		lent = due.ns > now.ns ? due.ns - now.ns : 0;
	return lent < chore ? lent : chore;
}

void shard_close(struct shard *shard)
{
	actor_stop(&shard->actor);
	role_begin(&actor_role); /* its thread is gone: we are the actor now */
	lessor_close(&shard->lessor);
	role_end(&actor_role);
}

void shard_free(struct shard *shard)
{
	lessor_free(&shard->lessor);
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
