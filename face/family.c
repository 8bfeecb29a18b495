/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * family.c -- memory for as many tenants as there are.
 */
#include "face/family.h"

#include <string.h>

static void give_back(struct family *family, struct gale_allocator *allocator)
{
	if (family->tenants)
		memory_give(allocator, family->tenants,
		            family->room * sizeof(*family->tenants));
	if (family->handles)
		memory_give(allocator, family->handles,
		            family->room * sizeof(struct gale_tenant *));
}

/* False: nothing was taken, and nothing is to be given back. */
static bool take_room(struct family *family, struct gale_allocator *allocator,
                      uint32_t room)
{
	*family = (struct family){
		.tenants = memory_take(allocator, room * sizeof(*family->tenants)),
		.handles = memory_take(allocator, room * sizeof(struct gale_tenant *)),
		.room = room
	};
	if (family->tenants && family->handles)
		return true;
	give_back(family, allocator);
	*family = (struct family){ 0 };
	return false;
}

bool family_open(struct family *family, const struct escrow_settings *set,
                 struct gale_allocator *allocator, uint32_t room)
{
	if (!take_room(family, allocator, room))
		return false;
	escrow_init(&family->escrow, set, family->tenants, room);
	return true;
}

void family_close(struct family *family, struct gale_allocator *allocator)
{
	give_back(family, allocator);
}

/* Numbers stay. */
static bool grow(struct family *family, struct gale_allocator *allocator, uint32_t most)
{
	uint32_t room = family->room < most / 2 ? 2 * family->room : most;
	struct family larger;

	if (room == family->room || !take_room(&larger, allocator, room))
		return false;
	escrow_widen(&family->escrow, larger.tenants, room);
	memcpy(larger.handles, family->handles,
	       family->room * sizeof(struct gale_tenant *));
	give_back(family, allocator);
	family->tenants = larger.tenants;
	family->handles = larger.handles;
	family->room = room;
	return true;
}

enum fair_fault family_add(struct family *family, const struct escrow_terms *terms,
                           struct gale_allocator *allocator, uint32_t most,
                           uint32_t *ret_number)
{
	enum fair_fault fault = escrow_add(&family->escrow, terms, ret_number);

	if (fault == FAIR_FULL && grow(family, allocator, most))
		fault = escrow_add(&family->escrow, terms, ret_number);
	return fault;
}
