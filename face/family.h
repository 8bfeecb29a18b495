/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * family.h -- the tenants of a budget, or of one of its tenants: an escrow, and each one's place.
 *
 * Threads   One at a time: under the budget's lock.
 */
#ifndef FACE_FAMILY_H
#define FACE_FAMILY_H

#include "engine/escrow_tree.h"
#include "runtime/memory.h"

struct gale_tenant;

struct family {
	struct escrow escrow;
	struct escrow_tenant *tenants;
	struct gale_tenant **handles; /* by number; NULL: free */
	uint32_t room;
};

/* False: there is no memory, and nothing has to be closed. */
bool family_open(struct family *family, const struct escrow_settings *set,
                 struct gale_allocator *allocator, uint32_t room);
void family_close(struct family *family, struct gale_allocator *allocator);

/* *ret_number: the tenant's.  If there was no room for it, there is more then, up to most. */
enum fair_fault family_add(struct family *family, const struct escrow_terms *terms,
                           struct gale_allocator *allocator, uint32_t most,
                           uint32_t *ret_number);

#endif
