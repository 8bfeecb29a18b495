/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lender.c -- terms are copied, and freed when no thread can be reading them.
 *
 * Threads   lender_terms, lender_close, lender_retire_terms: any.  lender_free_terms: the last one.
 */
#include "shards/lender.h"

#include "runtime/memory.h"

static void free_terms(void *self, struct retired *retired)
{
	memory_give(self, retired, sizeof(struct terms));
}

void lender_retire_terms(struct lender *lender, struct grace *grace,
                         struct gale_allocator *allocator, struct terms *former)
{
	limbo_add(&lender->limbo, &former->retired);
	limbo_turn(&lender->limbo, grace, free_terms, allocator);
}

void lender_close(struct lender *lender)
{
	lock_take(&lender->lock);
	store_relaxed(&lender->closed, true);
	store_relaxed(&lender->quick_most, 0);
	lock_drop(&lender->lock);
}

struct terms lender_terms(struct lender *lender)
{
	struct terms terms;

	lock_take(&lender->lock);
	terms = *load_relaxed(&lender->terms);
	lock_drop(&lender->lock);
	return terms;
}

void lender_free_terms(struct lender *lender, struct gale_allocator *allocator)
{
	lock_take(&lender->lock);
	limbo_close(&lender->limbo, free_terms, allocator);
	lock_drop(&lender->lock);
	memory_give(allocator, load_relaxed(&lender->terms), sizeof(struct terms));
	lock_destroy(&lender->lock);
}
