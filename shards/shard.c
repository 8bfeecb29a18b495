/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shard.c -- the turns of a shard: mail, then what the lessor has to do, then chores.
 *
 * Threads   on_mail, chores and end: the actor's.  chore_due_ns and woken: the actor and
 *           shard_wake write, any reads.  lessor_due_ns: the actor writes, any reads.
 *
 * Ordering
 *
 *   chore_due_ns is relaxed: the chore finds its work under the runtime's lock.
 *   lessor_due_ns is the actor's; others read it to know how long they may sleep.
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

static mono due_at(const _Atomic uint64_t *due_ns)
{
	return (mono){ load_relaxed(due_ns) };
}

/* A wake that comes while the chore runs finds the word at NEVER and sets it back to
 * 0, so the new deadline does not overwrite it. */
static void run_chore(struct shard *shard)
{
	uint64_t word = NEVER, due;

	store_relaxed(&shard->chore_due_ns, NEVER);
	due = mono_after(now_of(shard), shard->chore->run(shard->chore)).ns;
	/* The swap may fail for nothing; the word is then NEVER still. */
	while (word == NEVER && !swap_if_relaxed(&shard->chore_due_ns, &word, due))
		continue;
}

static mono earliest_due(const struct shard *shard)
{
	return mono_earlier(due_at(&shard->lessor_due_ns),
	                    due_at(&shard->chore_due_ns));
}

/* How long that is from now; the shard's clock is another than sleep is measured on. */
static uint64_t due_after_ns(const struct shard *shard)
{
	mono now = now_of(shard), due = earliest_due(shard);

	if (due.ns == NEVER)
		return NEVER;
	return mono_reached(now, due) ? 0 : due.ns - now.ns;
}

static uint64_t chores(struct actor *self) ON(actor_role)
{
	struct shard *shard = shard_of(self);
	mono now = now_of(shard);
	uint64_t after;

	if (swap_relaxed(&shard->woken, false))
		shard->lessor.close_due = (mono){ 0 };
	store_relaxed(&shard->lessor_due_ns, lessor_turn(&shard->lessor, now).ns);
	if (shard->chore && mono_reached(now, due_at(&shard->chore_due_ns)))
		run_chore(shard);
	after = due_after_ns(shard);
	return after == NEVER ? NEVER : after == 0 ? 0 : patience_now_ns() + after;
}

static void end(struct actor *self) ON(actor_role)
{
	lessor_close(&shard_of(self)->lessor);
}

static const struct actor_ops shard_ops = {
	.on_mail = on_mail,
	.chores = chores,
	.end = end,
};

enum gale_err shard_open(struct shard *shard, const struct lessor_config *config,
                         struct shard_chore *chore, bool with_thread, uint64_t poll_ns)
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
	shard->lessor.home.watch =
	    (struct watch){ shard->actor.watch_fd,
		            /* early= */ with_thread && wake_early_pays() };
	if (!with_thread || actor_start(&shard->actor, name, poll_ns))
		return GALE_ERR_OK;
	shard_close(shard);
	shard_free(shard);
	return GALE_ERR_SYSTEM;
}

struct shard_turned shard_turn(struct shard *shard)
{
	mono before = earliest_due(shard);
	uint64_t heard = shard->lessor.heard;
	struct turned turned = actor_turn(&shard->actor);

	if (turned.more)
		wake_raise(&shard->actor.wake); /* the descriptor says so */
	return (struct shard_turned){
		.done = turned.mails + (shard->lessor.heard - heard) +
		        mono_reached(now_of(shard), before),
		.held_up = turned.held_up,
	};
}

uint64_t shard_turn_after_ns(const struct shard *shard)
{
	return load_relaxed(&shard->actor.wake.raised) ? 0 : due_after_ns(shard);
}

void shard_tell_to_close(struct shard *shard)
{
	actor_tell_to_stop(&shard->actor);
}

void shard_close(struct shard *shard)
{
	actor_stop(&shard->actor);
	actor_close(&shard->actor);
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
	store_relaxed(&shard->woken, true);
	if (shard->chore)
		store_relaxed(&shard->chore_due_ns, 0);
	wake_raise(&shard->actor.wake);
}
