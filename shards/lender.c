/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lender.c -- terms are published, and freed when nobody can be reading them.
 *
 * Threads   lender_set_terms, lender_terms: any.  lender_free_terms: the last one.
 */
#include "shards/lender.h"

#include "runtime/memory.h"

/* A unit that is lent may be spent by any cost that can ever pass. */
static uint64_t quick_most_of(const struct lender *lender, const struct rule *rule)
{
	if (lender->lending == LENDING_UNITS)
		return rule->capacity;
	return lender->lending == LENDING_DENIALS ? GALE_UNITS_MAX : 0;
}

static void free_terms(void *self, struct retired *retired)
{
	memory_give(self, retired, sizeof(struct terms));
}

bool lender_set_terms(struct lender *lender, struct grace *grace,
                      struct gale_allocator *allocator, struct terms *terms)
{
	struct terms *former;

	lock_take(&lender->lock);
	if (load_relaxed(&lender->closed)) {
		lock_drop(&lender->lock);
		return false;
	}
	former = load_relaxed(&lender->terms);
	store_release(&lender->terms, terms); /* terms */
	store_relaxed(&lender->capacity, terms->rule.capacity);
	store_relaxed(&lender->quick_most, quick_most_of(lender, &terms->rule));
	if (former) {
		(void)add_release(&lender->changes, 1); /* changes */
		limbo_add(&lender->limbo, &former->retired);
		limbo_turn(&lender->limbo, grace, free_terms, allocator);
	}
	lock_drop(&lender->lock);
	return true;
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
