/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * plan.h -- everything that a policy defines, read and checked, with nothing opened.
 *
 * Invariants
 *
 *   PLAN-1  Entries are in the order of their kinds, and then of owners and names.
 *   PLAN-2  Each store that an entry names is an entry, too.
 *   PLAN-3  Each parent that a tenant names is a tenant of the same budget, and no tenant is above
 *           itself.
 */
#ifndef POLICY_PLAN_H
#define POLICY_PLAN_H

#include <stddef.h>

#include "policy/entry.h"

struct plan {
	struct entry *entries;
	size_t count;
	struct node *root; /* NULL: it has no text any more */
};

/* Pure but for memory: asks no store. */
bool plan_read(const char *text, size_t bytes, struct why *why, struct plan *ret_plan);

/* Frees it; its handles are not closed. */
void plan_free(struct plan *plan);

/* NULL: there is none.  The owner of all but tenants is "". */
struct entry *plan_find(const struct plan *plan, enum kind kind, const char *owner,
                        const char *name);

/* Puts the entries in order. */
void plan_sort(struct plan *plan);

#endif
