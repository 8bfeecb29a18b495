/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * grace.c -- epochs, and a barrier that the kernel passes to all threads.
 *
 * A reader writes down the epoch that it began in.  A period that begins takes the
 * present epoch as its ticket and opens the next.  A reader that wrote that epoch, or an
 * older one, may have seen what was published before; one that wrote a newer epoch, or
 * writes its word after the barrier, cannot have.
 *
 * Threads   epoch: any.  A reader's word: its thread writes, any reads.  The list of
 *           readers: under the lock.  A limbo: its owner's.
 */
#define _GNU_SOURCE
#include "runtime/grace.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/check.h"

static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void grace_open(struct grace *grace)
{
	atomic_init(&grace->epoch, 1);
	atomic_init(&grace->forgotten, 0);
	grace->fences = !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	lock_init(&grace->lock);
	list_init(&grace->locked.readers);
}

void grace_close(struct grace *grace)
{
	lock_destroy(&grace->lock);
}

void grace_join(struct grace *grace, struct reader *reader)
{
	lock_take(&grace->lock);
	list_append(&grace->locked.readers, &reader->place);
	lock_drop(&grace->lock);
}

void grace_leave(struct grace *grace, struct reader *reader)
{
	lock_take(&grace->lock);
	if (list_has(&reader->place))
		list_remove(&reader->place);
	lock_drop(&grace->lock);
}

void grace_pass(struct grace *grace)
{
	fence_full(); /* entered */
	if (!grace->fences)
		gale_assert(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

uint64_t grace_begin(struct grace *grace)
{
	uint64_t ticket = add_release(&grace->epoch, 1); /* begun */

	grace_pass(grace);
	return ticket;
}

static bool any_since(struct grace *grace, uint64_t ticket) ON(grace->lock)
{
	const struct list *readers = &grace->locked.readers;

	for (const struct list *at = readers->next; at != readers; at = at->next) {
		const struct reader *reader = list_item(at, struct reader, place);
		uint64_t reading = load_acquire(&reader->reading); /* left */

		if (reading != 0 && reading <= ticket)
			return true;
	}
	return false;
}

bool grace_over(struct grace *grace, uint64_t ticket)
{
	bool over;

	lock_take(&grace->lock);
	over = !any_since(grace, ticket);
	lock_drop(&grace->lock);
	return over;
}

/* ---- Limbo ----------------------------------------------------------------------- */

void limbo_add(struct limbo *limbo, struct retired *retired)
{
	retired->next = limbo->gathering;
	limbo->gathering = retired;
}

static void free_all(struct retired **list, limbo_free_fn *free_one, void *self)
{
	struct retired *at = *list;

	*list = NULL;
	while (at) {
		struct retired *next = at->next;

		free_one(self, at);
		at = next;
	}
}

void limbo_turn(struct limbo *limbo, struct grace *grace, limbo_free_fn *free_one,
                void *self)
{
	for (int i = 0; i < 2; i++) {
		if (limbo->waiting && grace_over(grace, limbo->ticket))
			free_all(&limbo->waiting, free_one, self);
		if (limbo->waiting || !limbo->gathering)
			return;
		limbo->waiting = limbo->gathering;
		limbo->gathering = NULL;
		limbo->ticket = grace_begin(grace);
	}
}

bool limbo_is_empty(const struct limbo *limbo)
{
	return !limbo->gathering && !limbo->waiting;
}

void limbo_close(struct limbo *limbo, limbo_free_fn *free_one, void *self)
{
	free_all(&limbo->gathering, free_one, self);
	free_all(&limbo->waiting, free_one, self);
}
