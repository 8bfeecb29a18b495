/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.h -- how much of one budget does each tenant get?
 *
 *	gale_budget_open(runtime, &config, &budget);           once per budget
 *	gale_tenant_open(budget, &terms, &tenant);             once per tenant
 *	answer = gale_tenant_ask(seat, tenant, cost);          per call
 *
 * A budget is a limit of units per window that several tenants share.  A tenant that has
 * asked lately is present, and has a share of the budget: first its guarantee, and then a
 * part of the rest by its weight, up to its cap.  Other tenants cannot use up its share.
 * All shares together are the limit, so a tenant that is alone has all of it.
 *
 * A tenant that has not asked for release_us is absent, and the other tenants get its
 * share.  Its next ask makes it present again.  If the others have used much of its share
 * meanwhile, only a part of its share is left until the next window.  A tenant that asks at
 * least once in each release_us gets its whole share in every window.
 *
 * If an ask costs more than is left of the share, the ask is refused.  The units that were
 * left are added to the tenant's share in a later window.  So even a call that costs more
 * than a share passes from time to time.
 *
 * A tenant can have tenants of its own (terms.parent), 16 levels deep: an organisation has teams,
 * and a team has users.  They share the units of their parent, by the same rules.  If a tenant has
 * had tenants, its own asks are denied (GALE_WHY_BAD_ASK): open another one below it for such asks.
 *
 * If a call's cost is known only when it has ended, hold an upper bound of it (gale_tenant_hold).
 *
 * A budget counts in this process alone, or over a store: then all processes that open a
 * budget of one name there share it.  Its windows are aligned to UTC, by the store's clock.
 * docs/tenants.md explains budgets.
 *
 * Threads   The rules of gale.h for seats and handles hold here.
 * Blocking  A tenant has a purse: units of its share, an eighth of it at most, which were
 *           taken in advance and count as used.  An ask that finds enough units in the
 *           purse takes no lock.  A denial that is remembered takes none, either.  Any
 *           other ask may wait for asks of other threads: a microsecond as a rule, and a
 *           tenth of a millisecond where one of them is interrupted.  Some of these asks
 *           also look at each tenant that is present, a few times: docs/tenants.md lists them.
 */
#ifndef GALE_TENANTS_H
#define GALE_TENANTS_H

#include <gale/gale.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GALE_TENANTS_MAX (UINT32_C(1) << 20)       /* of a budget */
#define GALE_TENANT_WEIGHT_MAX (UINT32_C(1) << 20) /* of a tenant */

struct gale_budget;
struct gale_tenant;

/* What happens to the units that a tenant leaves. */
enum gale_lending {
	GALE_LENT, /* other tenants may use them */
	/* They stay unused.  Each tenant that is present gets limit * weight / (the sum of
	 * the weights of all that are present).  Guarantees do not count, and no units are
	 * added later. */
	GALE_PARTED,
};

/* May grow. */
struct gale_budget_config {
	uint64_t limit;     /* units of a window, 1 to GALE_UNITS_MAX */
	uint64_t window_us; /* 1 ms to GALE_SPAN_MAX_US */
	/* A tenant becomes absent when it has not asked for this time; in some cases only
	 * after twice this time.  0: an eighth of window_us.  GALE_NEVER: a tenant that has
	 * asked once is never absent. */
	uint64_t release_us;
	/* All tenants count as present for this time after the beginning of each window,
	 * so that a tenant that comes later finds its share.  At most window_us. */
	uint64_t protect_us;
	/* Open at a time, at all levels.  0: 1024, or 256 with a store, which is then also the
	 * most.  Each takes 160 bytes when the budget is opened: 2^20 take 168 MB. */
	uint32_t max_tenants;
	enum gale_lending lending; /* with a store: GALE_LENT */
	/* The budget is shared by all that open it with this name on this store.  They need
	 * one window_us, release_us and protect_us.  NULL: it counts in this process. */
	struct gale_store *store;
	/* From 1 to 64 bytes; also its name in metrics (docs/metrics.md).  NULL: no
	 * name; a budget with a store needs one. */
	const char *name;
	/* How long gale waits for the store's answer, at most an hour.  0: 100 ms.  A window has
	 * to be several times as long as the way to the store and back. */
	uint64_t patience_us;
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};

/* May grow. */
struct gale_terms {
	uint64_t guarantee; /* units of each window; all guarantees together are at most
	                       the limit */
	uint64_t cap;       /* most units of each window; 0: no cap */
	uint32_t weight;    /* 1 to GALE_TENANT_WEIGHT_MAX */
	uint32_t reserved;  /* 0 */
	/* From 1 to 64 bytes.  The first 32 names of a budget have lines in metrics.  With a
	 * store, tenants of one name in all processes are one tenant with one share, and the
	 * terms of the last ask hold.  So a handle of a budget can have one open tenant of
	 * each name (GALE_ERR_TENANT_NAME).  NULL: no name; with a store, a name is needed. */
	const char *name;
	/* With a store: how many units each process may admit for the tenant in a time of
	 * window_us while the store cannot be asked, beyond the units in hand.  At most the
	 * limit and the cap; if the limit is lower later, no more than that limit.  A window
	 * may then exceed the limit: for each tenant, each budget of a process that is cut off
	 * may admit less than twice the largest alone of that time.  0: none. */
	uint64_t alone;
	/* Without a store: the tenant of whose share this one gets a part.  All guarantees
	 * below a tenant together are at most its own.  NULL: it gets a part of the budget.
	 * In gale_tenant_set_terms: NULL or the same parent, which stays. */
	struct gale_tenant *parent;
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};

GALE_API enum gale_err gale_budget_open_sized(struct gale_runtime *runtime,
                                              const struct gale_budget_config *config,
                                              size_t config_bytes,
                                              struct gale_budget **ret_budget);
static inline enum gale_err gale_budget_open(struct gale_runtime *runtime,
                                             const struct gale_budget_config *config,
                                             struct gale_budget **ret_budget)
{
	return gale_budget_open_sized(runtime, config, sizeof(*config), ret_budget);
}
/* From then on all asks of its tenants are denied (GALE_WHY_CLOSED). */
GALE_API void gale_budget_close(struct gale_budget *budget);

/* Used units stay used.  The limit must not be below all guarantees together. */
GALE_API enum gale_err gale_budget_set_limit(struct gale_budget *budget,
                                             uint64_t limit);

GALE_API enum gale_err gale_tenant_open_sized(struct gale_budget *budget,
                                              const struct gale_terms *terms,
                                              size_t terms_bytes,
                                              struct gale_tenant **ret_tenant);
static inline enum gale_err gale_tenant_open(struct gale_budget *budget,
                                             const struct gale_terms *terms,
                                             struct gale_tenant **ret_tenant)
{
	return gale_tenant_open_sized(budget, terms, sizeof(*terms), ret_tenant);
}
/* The units that the tenant has used stay used.  From then on all asks of its tenants are denied
 * (GALE_WHY_CLOSED). */
GALE_API void gale_tenant_close(struct gale_tenant *tenant);

/* The new terms hold from the next ask on.  Used units stay used. */
GALE_API enum gale_err gale_tenant_set_terms_sized(struct gale_tenant *tenant,
                                                   const struct gale_terms *terms,
                                                   size_t terms_bytes);
static inline enum gale_err gale_tenant_set_terms(struct gale_tenant *tenant,
                                                  const struct gale_terms *terms)
{
	return gale_tenant_set_terms_sized(tenant, terms, sizeof(*terms));
}

/*
 * Asks on behalf of a tenant.  The answer is never GALE_PENDING.
 *
 *     allowed   GALE_WHY_OWN     from the tenant's share
 *               GALE_WHY_LENT    partly from units beyond its share
 *     denied    GALE_WHY_OTHERS  the share is used up; the units that are left belong to
 *                                other tenants
 *               GALE_WHY_SPENT   the limit is used up
 *               GALE_WHY_TOO_MUCH    more than the limit or the cap
 *               GALE_WHY_FULL        with a store: too many tenants, or too many claims in
 *                                    this window (docs/tenants.md)
 *               GALE_WHY_CHANGED     with a store: other processes have another window_us,
 *                                release_us or protect_us; the log says which
 *               GALE_WHY_QUARANTINE, GALE_WHY_CLOSED, GALE_WHY_BAD_ASK, ... as in rule.h
 *
 * The answer's limit is the tenant's share, and remaining the units that are left of it.  Both
 * numbers are from the last ask that took a lock.  An answer from alone units has alone as its
 * limit.  A denial is remembered for a quarter of release_us, and for at most 100 ms; with a store,
 * until asking the store again may help.
 *
 * With a store, answers come from units that the store has granted to this process.  If these are
 * too few, the store is asked for more, and this ask is denied (GALE_WHY_LATE); gale_tenant_send
 * and gale_tenant_wait wait for the store instead.  While the store cannot be asked, units in hand
 * can be used until their window ends.  Other asks are GALE_WHY_LATE or GALE_WHY_DOWN then: allowed
 * from alone units, and denied when there are none.
 */
GALE_API struct gale_answer gale_tenant_ask(struct gale_seat *seat,
                                            struct gale_tenant *tenant, uint64_t cost);

/* The same, but with a store the answer may come later: if the verdict is GALE_PENDING,
 * gale_seat_completions returns the answer together with tag.  If the seat leaves before that, the
 * ask uses no units. */
GALE_API struct gale_answer gale_tenant_send(struct gale_seat *seat,
                                             struct gale_tenant *tenant, uint64_t cost,
                                             void *tag);

/* The same, but waits for the answer for at most within_us, and is never GALE_PENDING.  If no
 * answer comes, it is denied (GALE_WHY_LATE). */
GALE_API struct gale_answer gale_tenant_wait(struct gale_seat *seat,
                                             struct gale_tenant *tenant, uint64_t cost,
                                             uint64_t within_us);

/*
 * Holds, for a cost that is known only when the call has ended:
 *
 *	struct gale_tenant_held hold;
 *
 *	if (gale_tenant_hold(seat, tenant, at_most, &hold, within).verdict != GALE_ALLOW)
 *		return refuse();
 *	while (next_token(&used))
 *		if (used >= hold.units &&
 *		    gale_tenant_grow(seat, &hold, more, 0).verdict != GALE_ALLOW)
 *			break;                                  stop the stream
 *	gale_tenant_commit(seat, &hold, used);          the real cost; 0: it was cancelled
 *
 * Held units count as used in the window that they are from.  When the call has ended, the hold
 * commits the real cost, and the units that it did not need go back into that window.  With a store
 * they go back into the units that this process has in hand, and from there to the pool if they stay
 * idle.  If that window has ended, they are gone, and a commit changes no later window.
 *
 * If the call cost more than was held, the tenant owes the difference until the window ends.  It is
 * paid from the tenant's share before the tenant, or a tenant below it, gets anything else: so it takes
 * nothing of what is reserved for others, and held and used units never exceed the limit together.
 * With a store, what this process has in hand pays first, as it was granted.  Committed units exceed the
 * limit by the unpaid difference at most.
 *
 * A hold lives until it is settled, however long the call runs: it does not expire, and each one
 * that was allowed needs one commit.  Any thread may settle it, with the seat of that thread;
 * different threads must not use one hold at the same time.  Do not copy a hold.
 */
struct gale_tenant_held {
	uint64_t units;      /* held; 0: nothing is */
	bool cut;            /* the limit or the cap is held, as at_most was more */
	uint64_t of_gale[5]; /* the library's */
};

/* As gale_tenant_wait, but the units are held.  Any bound above the limit or the cap is cut to it.
 * With within_us 0 as gale_tenant_ask. */
GALE_API struct gale_answer
gale_tenant_hold(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t at_most,
                 struct gale_tenant_held *ret_hold, uint64_t within_us);

/* Holds more units, of the window that is open now.  After a denial the hold is as it was. */
GALE_API struct gale_answer gale_tenant_grow(struct gale_seat *seat,
                                             struct gale_tenant_held *hold,
                                             uint64_t more, uint64_t within_us);

/* The call has ended, and this is its real cost; 0: it has cost nothing.  A second commit changes
 * nothing (GALE_ERR_HOLD).  A cost above GALE_UNITS_MAX settles nothing (GALE_ERR_COST).  If the
 * tenant or the budget was closed, the units go back all the same, nothing is owed, and the error is
 * GALE_ERR_TENANT. */
GALE_API enum gale_err gale_tenant_commit(struct gale_seat *seat,
                                          struct gale_tenant_held *hold, uint64_t cost);

/* May grow. */
struct gale_tenant_counts {
	uint64_t share; /* units of this window; 0 while the tenant is absent */
	/* Units used in this window, without those in the purse; with a store, by this process.
	 * Held units count as used.  If the tenant has tenants: units used by all of these,
	 * units in their purses, and units kept for their guarantees.  The other counts are of
	 * its own asks. */
	uint64_t used;
	uint64_t ahead;   /* units in the purse */
	uint64_t owed;    /* units that will be added to its share in later windows */
	uint64_t allowed; /* units used since it was opened; those that holds gave back
	                     stay counted */
	uint64_t lent;    /* asks that were allowed with units beyond the share */
	uint64_t denied;  /* asks that were denied, without remembered denials; with a
	                     store, also those that got no answer from it */
	uint64_t quanta;  /* grants of the store; 0 without one, as the next */
	uint64_t trips;   /* questions to the store */
	uint64_t alone;   /* allowed units, while the store could not be asked */
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};
GALE_API enum gale_err gale_tenant_stats_sized(struct gale_tenant *tenant,
                                               struct gale_tenant_counts *ret_stats,
                                               size_t stats_bytes);
static inline enum gale_err gale_tenant_stats(struct gale_tenant *tenant,
                                              struct gale_tenant_counts *ret_stats)
{
	return gale_tenant_stats_sized(tenant, ret_stats, sizeof(*ret_stats));
}

#ifdef __cplusplus
}
#endif
#endif
