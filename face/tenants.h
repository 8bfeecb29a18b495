/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.h -- the objects behind a gale_budget and its gale_tenants.
 *
 *     gale_tenant --> gale_tenant, its parent, if it has one
 *          '--------> gale_budget --> gale_runtime
 *                          '---------> gale_store, if it is shared over one
 *
 * A budget's escrows decide, under the budget's lock: its own, and one below each tenant that has
 * tenants (engine/escrow_tree.h).  A tenant's purse holds units of the tenant's share that the
 * escrows count as used: a call that takes them asks no escrow.
 *
 * Of a budget that is shared over a store a pool there decides (engine/pool.h), and a purse holds
 * units that it has granted (coordinator/fund.h).  The escrow only checks terms.
 *
 * Invariants
 *
 *   TENANT-1  Units are in a purse only until their window ends, and are taken from it in one
 *             step with the look at the clock: so what a purse spends was used in the window
 *             in which it was taken from the escrow.  (T1)
 *   TENANT-2  Units are put into a purse from what is left of a share, and never lent: no
 *             other tenant could have used them.  (T2)
 *   TENANT-3  A tenant whose purse was used since it was looked at is present.  (T3)
 *   TENANT-4  A denial is remembered for less than release_us: a tenant that goes on asking
 *             stays present.  (T2)
 *   TENANT-5  The purse of a tenant that has tenants, or is below one that is closed, is empty.
 *             (TREE-1)
 *   TENANT-6  Budgets of one name lie together in the runtime's list.
 *   TENANT-7  A hold has its tenant, and goes back once, into the window that it is from: also when
 *             the tenant has been closed, or has tenants of its own, since.  (T1)
 *   TENANT-8  What holds give back without a lock is of a tenant that has used no more than its share:
 *             no other tenant could have used it.  Until a step looks at the purse the escrow counts it
 *             as used.  (T3)
 *   TENANT-9  A tenant that was closed lives until its last hold is settled.  Each seat counts in a
 *             word of its own the holds that it has begun less those that it has settled: their sum
 *             says how many are open.  A commit's last step at a tenant takes its hold off that count.
 *   TENANT-10  An ask for more than a purse of the tenant may hold leaves the purse as it is, if what is
 *             left of the share beside it is enough.  Else the purse gives its units back before the ask
 *             is decided: no ask is denied for units that its own purse has.  (T2)
 *
 * Ordering
 *
 *   ended     a commit takes its hold off the count with release  ->  is_settled loads the count with
 *             acquire: what the commit did to the tenant is done before the tenant dies.
 *   closed    a tenant is marked as closed, and then held_closes is added to with release  ->  a commit
 *             loads it with acquire, and then looks at the mark: a commit that finds a tenant open has
 *             not seen that it was closed under holds.
 *   entered   (runtime/grace.h) Such a commit takes its hold off the count, and looks at held_closes
 *             once more.  The thread that closes the tenant adds to held_closes, makes every thread
 *             pass a fence, and then looks at the count.  So one of the two finds that the last hold
 *             is settled.
 *
 * Locks     The runtime's is taken before a budget's, and that before its fund's.
 *
 * Threads   purse: any may take, and give back; put and emptied under the budget's lock; under the
 *           fund's, if it is shared.  holds: each seat its own word; that of all others: any.  held: under
 *           the runtime's lock.  The rest of a tenant, and all of the escrow: under the budget's lock.
 */
#ifndef FACE_TENANTS_H
#define FACE_TENANTS_H

#include <gale/tenants.h>

#include "coordinator/fund.h"
#include "coordinator/till.h"
#include "face/face.h"
#include "face/family.h"
#include "runtime/latch.h"

/* Units that a hold has of one window. */
struct tenant_units {
	uint64_t units;
	uint64_t window; /* of the pool; in this process: a word that dies with it */
	bool alone;      /* of no window: while the store could not be asked */
};

/* Counts of a budget, for metrics. */
struct budget_counts {
	uint64_t limit;
	uint64_t guarantees; /* together; of a shared budget: in all processes */
	uint64_t used;       /* of this window; those in purses count, and those that
	                      * holds gave back */
	uint64_t tenants;
	uint64_t present;
	uint64_t units; /* that tenants have used */
	uint64_t lent;
	uint64_t alone;
	uint64_t claims;
	uint64_t grants;
	uint64_t failures;
	uint64_t denied_by[GALE_WHY_ROOM];
};

struct gale_budget {
	struct handle handle;
	struct list place;            /* in the runtime's list, under its lock */
	char name[GALE_NAME_MAX + 1]; /* "": it has none */
	uint64_t epoch_ns; /* what to add to this node's clock for UTC, modulo 2^64 */
	uint64_t remember_ns; /* how long a denial may be remembered */
	uint64_t window_us;
	uint32_t room; /* tenants */
	struct gale_store
	    *store;       /* that it is shared over; NULL: it is this process's */
	struct fund fund; /* of one that is shared */
	struct fund_alone *alones; /* the fund's; room for as many */
	struct latch lock;
	struct {
		struct family family;
		bool closed;       /* no purse is filled any more */
		uint32_t open;     /* tenants, of all families */
		struct list named; /* of these, those that have a name */
		uint64_t units; /* that were used, as far as it was looked at purses */
		uint64_t lent;  /* asks, of all tenants that it had */
		uint64_t denied_by[GALE_WHY_ROOM];
	} locked;
};

struct gale_tenant {
	struct handle handle;
	struct gale_budget *budget;
	struct gale_tenant *parent;   /* or NULL */
	char name[GALE_NAME_MAX + 1]; /* "": it has none */
	struct stake stake;           /* of one that is shared */
	/* Begun less settled: a word of each seat that has cells, and one of all others.  TENANT-9 */
	_Atomic uint64_t *holds;
	struct list
	    held; /* in the runtime's list, under its lock: it was closed under holds */
	alignas(WET_ALIGN) struct till till;

	/* Under the budget's lock. */
	struct {
		struct family *family; /* that it is in */
		struct family *below;  /* its tenants'; NULL: it has had none */
		struct list named;     /* among those of the budget */
		uint32_t number;
		uint64_t seen;    /* units in the purse when it was last looked at */
		uint64_t window;  /* that they are of */
		uint64_t allowed; /* units that were used until then */
		uint64_t lent, denied;
	} locked;
};

static_assert(IS_WET(struct gale_tenant, till.purse) &&
                  !IS_WET(struct gale_tenant, handle.runtime) &&
                  !IS_WET(struct gale_tenant, holds) &&
                  !IS_WET(struct gale_tenant, till.share),
              "see hot.h");

static inline bool is_shared(const struct gale_budget *budget)
{
	return budget->store != NULL;
}

/* ---- In shared.c: budgets over a store ---------------------------------------------- */

enum gale_err shared_check(const struct gale_runtime *runtime,
                           const struct gale_budget_config *config);
/* The budget is set up but for its fund. */
enum gale_err shared_open(struct gale_budget *budget,
                          const struct gale_budget_config *config);
void shared_close(struct gale_budget *budget);
void shared_set_limit(struct gale_budget *budget, uint64_t limit);

enum gale_err shared_open_tenant(struct gale_tenant *tenant,
                                 const struct escrow_terms *terms, uint64_t alone);
void shared_close_tenant(struct gale_tenant *tenant);
void shared_set_terms(struct gale_tenant *tenant, const struct escrow_terms *terms,
                      uint64_t alone);
void shared_stats(struct gale_tenant *tenant, struct gale_tenant_counts *ret_counts);
/* Into a sum. */
void shared_add_counts(struct gale_budget *budget, struct budget_counts *sum);

/* An ask that neither purse nor memory could answer, and that does not wait. */
struct gale_answer shared_ask(struct gale_seat *seat, struct gale_tenant *tenant,
                              uint64_t cost);
/* What became of one that has waited. */
struct gale_answer shared_answer(const struct store_op *op, enum store_result result);

/* An ask for more is never allowed. */
uint64_t shared_most(struct gale_tenant *tenant);
/* *ret_units: what was taken, if it is allowed. */
struct gale_answer shared_hold(struct gale_seat *seat, struct gale_tenant *tenant,
                               uint64_t cost, uint64_t within_us,
                               struct tenant_units *ret_units);
/* So many of these go back, or so many more were used.  Once for each shared_hold. */
void shared_settle(struct gale_seat *seat, struct gale_tenant *tenant,
                   const struct tenant_units *units, uint64_t back, uint64_t over);

/* ---- In escrowed.c: budgets of this process ------------------------------------------ */

/* Gives back the units in the tenant's purse, and forgets remembered denials. */
void escrowed_empty(struct gale_tenant *tenant);
/* The same for all tenants of the family, and those below them. */
void escrowed_empty_all(struct family *family);
/* Gives back units ahead, so that tenants have used half of what their shares are now, or more
 * without them.  TENANT-2 */
void escrowed_take_back_all(struct family *family);

/* An ask that neither purse nor memory could answer. */
struct gale_answer escrowed_ask(struct gale_seat *seat, struct gale_tenant *tenant,
                                uint64_t cost);
/* The same three for holds. */
uint64_t escrowed_most(struct gale_tenant *tenant);
struct gale_answer escrowed_hold(struct gale_seat *seat, struct gale_tenant *tenant,
                                 uint64_t cost, struct tenant_units *ret_units);
void escrowed_settle(struct gale_seat *seat, struct gale_tenant *tenant,
                     const struct tenant_units *units, uint64_t back, uint64_t over);
void escrowed_stats(struct gale_tenant *tenant, struct gale_tenant_counts *ret_counts);
void escrowed_add_counts(struct gale_budget *budget, struct budget_counts *sum)
    ON(budget->lock);

/* ---- In tenants.c -------------------------------------------------------------------- */

static inline bool tenant_is_open(const struct gale_tenant *tenant)
{
	const struct gale_budget *budget = tenant->budget;

	for (; tenant; tenant = tenant->parent)
		if (load_relaxed(&tenant->handle.closed))
			return false;
	return !load_relaxed(&budget->handle.closed);
}

/* May the seat ask for the tenant?  GALE_WHY_RULE if so. */
enum gale_why tenant_check(const struct gale_seat *seat,
                           const struct gale_tenant *tenant, uint64_t cost);
/* An ask of so much was denied just now.  False: it may be asked. */
bool tenant_denies(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost,
                   struct gale_answer *ret_answer);

static inline uint64_t tenant_until_us(mono now, uint64_t word)
{
	return us_of_ns(credit_dies(word).ns - now.ns);
}

/* Units were taken from the purse, which became this word. */
static inline struct gale_answer tenant_allowed(struct gale_tenant *tenant, mono now,
                                                uint64_t word)
{
	return (struct gale_answer){
		.verdict = GALE_ALLOW,
		.why = GALE_WHY_OWN,
		.limit = load_relaxed(&tenant->till.share),
		.remaining = load_relaxed(&tenant->till.left) + credit_units(word),
		.reset_after_us = tenant_until_us(now, word),
	};
}

/* All numbers of the budget, into a sum. */
void budget_add_counts(struct gale_budget *budget, struct budget_counts *sum)
    ON(budget->lock);
/* Under the budget's lock. */
void tenant_counts(struct gale_tenant *tenant, struct gale_tenant_counts *ret_counts);

/* From purse or memory.  False: *ret_answer says nothing. */
bool tenant_ask_here(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost,
                     struct gale_answer *ret_answer);

/* ---- In tenant_hold.c ----------------------------------------------------------------- */

/* It is closed now: it lives on until its last hold is settled. */
void tenant_keep_while_held(struct gale_tenant *tenant);

/* ---- In metrics_budgets.c ------------------------------------------------------------ */

struct text;
void budgets_say(struct text *text, const struct gale_runtime *runtime)
    ON(runtime->lock);

#endif
