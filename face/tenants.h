/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.h -- the objects behind a gale_budget and its gale_tenants.
 *
 *     gale_tenant --> gale_budget --> gale_runtime
 *
 * A budget's escrow decides, under the budget's lock.  A tenant's purse holds units of the
 * tenant's share that the escrow counts as used: who takes them asks nobody.
 *
 * Invariants
 *
 *   TENANT-1  Units are in a purse only until their window ends, and are taken from it in one
 *             step with the look at the clock: so what a purse spends was used in the window
 *             in which it was taken from the escrow.  (T1)
 *   TENANT-2  Units are put into a purse from what is left of a share, and never lent: nobody
 *             else could have used them.  (T2)
 *   TENANT-3  A tenant whose purse was used since it was looked at is present.  (T3)
 *   TENANT-4  A denial is remembered for less than release_us: a tenant that goes on asking
 *             stays present.  (T2)
 *
 * Threads   purse: any may take; put and emptied under the budget's lock.  The rest of a
 *           tenant, and all of the escrow: under that lock.
 */
#ifndef FACE_TENANTS_H
#define FACE_TENANTS_H

#include <gale/tenants.h>

#include "engine/escrow.h"
#include "face/face.h"

struct gale_budget {
	struct handle handle;
	uint64_t epoch_ns; /* what to add to this node's clock for UTC, modulo 2^64 */
	uint64_t remember_ns; /* how long a denial may be remembered */
	uint32_t room;        /* tenants */
	struct lock lock;
	struct {
		struct escrow escrow;
		struct escrow_tenant *tenants;
		struct gale_tenant **handles; /* by number; NULL: free */
	} locked;
};

struct gale_tenant {
	struct handle handle;
	struct gale_budget *budget;
	_Atomic uint64_t most; /* that it may ever ask for at once */
	/* As of the last ask that took the lock. */
	alignas(WET_ALIGN) _Atomic uint64_t share;
	_Atomic uint64_t left; /* of it, but for the purse */
	_Atomic uint64_t
	    denied; /* engine/credit.h: the cost that was, and until when */
	_Atomic uint64_t denied_why;
	_Atomic uint64_t purse; /* engine/credit.h */

	/* Under the budget's lock. */
	struct {
		uint32_t number;
		uint64_t seen;   /* units in the purse when it was last looked at */
		uint64_t window; /* that they are of */
		uint64_t allowed, lent, denied;
	} locked;
};

static_assert(IS_WET(struct gale_tenant, purse) &&
                  !IS_WET(struct gale_tenant, handle.runtime) &&
                  !IS_WET(struct gale_tenant, share),
              "see hot.h");

#endif
