/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow_level.c -- how high the water stands.
 *
 * All that are present begin under the level.  The level that they have then is too high if
 * what some have used is above their shares by more than others' shares are above their caps:
 * it can only fall, so those that are over it stay over it.  Else those above their caps stay
 * there.  So each round settles where some stand, and what is left is their level for good.
 *
 * If the guarantees alone are more than there is, since others have used it, the level has the
 * guarantees for weights, and none for a base.
 */
#include "engine/check.h"
#include "engine/escrow.h"

/* ---- One tenant -------------------------------------------------------------------- */

static uint64_t base_of(const struct escrow *escrow, const struct escrow_tenant *tenant)
{
	return escrow->is_short ? 0 : tenant->terms.guarantee + tenant->repaid;
}

static uint64_t slope_of(const struct escrow *escrow,
                         const struct escrow_tenant *tenant)
{
	return escrow->is_short ? tenant->terms.guarantee : tenant->terms.weight;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A cap that was lowered takes nothing back. */
static uint64_t cap_of(const struct escrow_tenant *tenant)
{
	return greater(tenant->terms.cap, tenant->used);
}

/* The least whole level at which it has so much. */
static uint64_t level_at(const struct escrow *escrow,
                         const struct escrow_tenant *tenant, uint64_t units)
{
	uint64_t base = base_of(escrow, tenant), slope = slope_of(escrow, tenant);

	if (units <= base)
		return 0;
	return slope > 0 ? (units - base - 1) / slope + 1 : UINT64_MAX;
}

/* By weight alone: there is no level. */
static uint64_t parted_share(const struct escrow *escrow,
                             const struct escrow_tenant *tenant)
{
	uint64_t share =
	    fair_share(escrow->set.limit, tenant->terms.weight, escrow->weights);

	return share < tenant->terms.cap ? share : tenant->terms.cap;
}

uint64_t escrow_level_of(const struct escrow *escrow,
                         const struct escrow_tenant *tenant, bool *ret_part)
{
	uint128 rise, whole, share;

	*ret_part = false;
	if (escrow->set.parted)
		return parted_share(escrow, tenant);
	if (tenant->stand == ESCROW_CAPPED)
		return tenant->terms.cap;
	rise = (uint128)slope_of(escrow, tenant) * escrow->pool;
	whole = escrow->slopes > 0 ? wide_quotient(rise, escrow->slopes) : 0;
	share = base_of(escrow, tenant) + whole;
	*ret_part = escrow->slopes > 0 && rise > whole * escrow->slopes &&
	            share < tenant->terms.cap;
	return share < tenant->terms.cap ? (uint64_t)share : tenant->terms.cap;
}

void escrow_note_used(struct escrow *escrow, const struct escrow_tenant *tenant)
{
	if (tenant->stand == ESCROW_UNDER && !escrow->set.parted)
		escrow->floor =
		    greater(escrow->floor, level_at(escrow, tenant, tenant->used));
}

/* ---- All --------------------------------------------------------------------------- */

static struct escrow_tenant *first_of(const struct escrow *escrow)
{
	uint32_t first = escrow->lists[ESCROW_PRESENT].first;

	return first == ESCROW_NOBODY ? NULL : &escrow->tenants[first];
}

static struct escrow_tenant *next_of(struct escrow *escrow,
                                     const struct escrow_tenant *tenant)
{
	escrow->walked++;
	return tenant->after == ESCROW_NOBODY ? NULL : &escrow->tenants[tenant->after];
}

#define EACH_PRESENT(escrow, tenant)                                                   \
	for (struct escrow_tenant *tenant = first_of(escrow); tenant;                  \
	     tenant = next_of(escrow, tenant))

static void find_pool(struct escrow *escrow)
{
	uint64_t taken = escrow->fixed + escrow->bases;

	escrow->pool = escrow->set.limit > taken ? escrow->set.limit - taken : 0;
}

static void begin(struct escrow *escrow)
{
	escrow->fixed = escrow->absent;
	escrow->bases = escrow->slopes = 0;
	EACH_PRESENT(escrow, tenant)
	{
		tenant->stand = ESCROW_UNDER;
		escrow->bases += base_of(escrow, tenant);
		escrow->slopes += slope_of(escrow, tenant);
	}
	find_pool(escrow);
}

static uint64_t least_reserve(struct escrow *escrow)
{
	uint64_t sum = escrow->absent;

	EACH_PRESENT(escrow, tenant)
	sum += greater(base_of(escrow, tenant), tenant->used);
	return sum;
}

/* Units that were to be repaid are the first to go. */
static void choose(struct escrow *escrow)
{
	escrow->is_short = false;
	if (least_reserve(escrow) <= escrow->set.limit)
		return;
	EACH_PRESENT(escrow, tenant)
	tenant->repaid = 0;
	escrow->is_short = least_reserve(escrow) > escrow->set.limit;
}

/* By how much it has used more than its share, and its share is more than its cap; in units,
 * times slopes. */
struct excess {
	uint128 of_used, of_share;
};

static struct excess excess_of(const struct escrow *escrow,
                               const struct escrow_tenant *tenant)
{
	uint128 share = (uint128)base_of(escrow, tenant) * escrow->slopes +
	                (uint128)slope_of(escrow, tenant) * escrow->pool;
	uint128 used = (uint128)tenant->used * escrow->slopes;
	uint128 cap = (uint128)cap_of(tenant) * escrow->slopes;

	return (struct excess){ .of_used = used > share ? used - share : 0,
		                .of_share = share > cap ? share - cap : 0 };
}

static void fix(struct escrow *escrow, struct escrow_tenant *tenant,
                enum escrow_stand stand)
{
	tenant->stand = stand;
	escrow->bases -= base_of(escrow, tenant);
	escrow->slopes -= slope_of(escrow, tenant);
	escrow->fixed += stand == ESCROW_OVER ? tenant->used : cap_of(tenant);
}

/* The excesses are read before any of them is fixed: they are by the same level. */
static void fix_all(struct escrow *escrow, const struct excess *sum)
{
	const struct escrow before = *escrow;

	EACH_PRESENT(escrow, tenant)
	{
		struct excess its = excess_of(&before, tenant);

		if (tenant->stand != ESCROW_UNDER)
			continue;
		if (its.of_used > 0 && sum->of_used >= sum->of_share)
			fix(escrow, tenant, ESCROW_OVER);
		else if (its.of_share > 0 && sum->of_share >= sum->of_used)
			fix(escrow, tenant, ESCROW_CAPPED);
	}
	find_pool(escrow);
}

static bool settle_some(struct escrow *escrow)
{
	struct excess sum = { 0, 0 };

	EACH_PRESENT(escrow, tenant)
	{
		struct excess its = excess_of(escrow, tenant);

		if (tenant->stand != ESCROW_UNDER)
			continue;
		sum.of_used += its.of_used;
		sum.of_share += its.of_share;
	}
	if (escrow->slopes == 0 || (sum.of_used == 0 && sum.of_share == 0))
		return false;
	fix_all(escrow, &sum);
	return true;
}

static void reckon(struct escrow *escrow)
{
	bool part;

	escrow->floor = 0;
	escrow->reserve = escrow->absent;
	EACH_PRESENT(escrow, tenant)
	{
		uint64_t share = escrow_level_of(escrow, tenant, &part);

		escrow->reserve += greater(share, tenant->used);
		if (tenant->stand == ESCROW_CAPPED)
			escrow->floor = greater(
			    escrow->floor, level_at(escrow, tenant, cap_of(tenant)));
		escrow_note_used(escrow, tenant);
	}
	escrow->reckoned = true;
}

void escrow_find_level(struct escrow *escrow)
{
	escrow->level++;
	escrow->settled = true;
	if (escrow->set.parted)
		return;
	choose(escrow);
	begin(escrow);
	while (settle_some(escrow))
		;
	reckon(escrow);
}

bool escrow_lower_level(struct escrow *escrow, struct escrow_tenant *tenant)
{
	bool part;

	escrow->level++;
	if (escrow->set.parted)
		return true;
	if (!escrow->settled || escrow->is_short)
		return false;
	tenant->stand = ESCROW_UNDER;
	escrow->fixed -= tenant->used; /* it was absent */
	escrow->bases += base_of(escrow, tenant);
	escrow->slopes += slope_of(escrow, tenant);
	find_pool(escrow);
	escrow_note_used(escrow, tenant);
	escrow->reckoned = false;
	return escrow->fixed + escrow->bases <= escrow->set.limit &&
	       escrow->pool >= (uint128)escrow->floor * escrow->slopes &&
	       escrow_level_of(escrow, tenant, &part) < tenant->terms.cap;
}
