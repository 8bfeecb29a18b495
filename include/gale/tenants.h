/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.h -- who gets how much of one budget?
 *
 *	gale_budget_open(runtime, &config, &budget);           once per budget
 *	gale_tenant_open(budget, &terms, &tenant);             once per tenant
 *	answer = gale_tenant_ask(seat, tenant, cost);          per call
 *
 * A budget is a number of units per window.  Tenants that have asked lately are present.
 * Each of them has a share: first its guarantee, then by weight, up to its cap.  Nobody
 * else can use up what is left of a share.  The shares of all that are present come to the
 * limit together: so a tenant that is alone has all of it.
 *
 * A tenant that has not asked for release_us is absent: its share is the others'.  Its next
 * ask makes it present again.  What the others have used by then is gone for the window:
 * then it gets less than its share, until the window turns.  A tenant that asks at least
 * once in each release_us gets its share in every window, however much the others ask.
 *
 * If an ask is refused, since it costs more than is left of its tenant's share, what was
 * left is owed to the tenant in a later window.  So an ask that costs more than a share
 * passes once in a while.
 *
 * A budget is of this process: its windows are aligned to UTC, and no store is asked.
 *
 * Threads   The rules of gale.h for seats and handles hold here.
 * Blocking  A tenant's purse holds some units of its share ahead of time.  An ask that the
 *           purse has enough for takes no lock, and so does a refusal that is remembered.
 *           Any other ask may wait for the asks of other threads, each of which takes about
 *           a microsecond.  When a window turns, or a tenant becomes absent, the next such
 *           ask also looks at each tenant that is present.
 * Units     Units in a purse count as used.  A purse never holds more than an eighth of the
 *           share, and they go back when the share falls below them, and when the tenant is
 *           absent or closed.
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

/* Whether what a tenant does not use is lent to others. */
enum gale_lending {
	GALE_LENT,
	/* Each tenant may use limit * weight / the weights of those that are present, and no
	 * more.  There are no guarantees, and nothing is owed. */
	GALE_PARTED,
};

/* May grow. */
struct gale_budget_config {
	uint64_t limit;     /* units of a window, 1 to GALE_UNITS_MAX */
	uint64_t window_us; /* 1 ms to GALE_SPAN_MAX_US */
	/* A tenant that has not asked for so long is absent; it may take twice as long to
	 * notice.  0: an eighth of window_us.  GALE_NEVER: it is never absent. */
	uint64_t release_us;
	/* For so long after a window has begun, all tenants are present: those that come late
	 * find their shares, too.  At most window_us. */
	uint64_t protect_us;
	uint32_t max_tenants; /* open at a time; 0: 1024 */
	enum gale_lending lending;
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};

/* May grow. */
struct gale_terms {
	uint64_t
	    guarantee; /* units of a window; of all tenants together at most the limit */
	uint64_t cap;  /* units of a window at most; 0: no cap */
	uint32_t weight;   /* 1 to GALE_TENANT_WEIGHT_MAX */
	uint32_t reserved; /* 0 */
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
/* Its tenants are refused from then on: GALE_WHY_CLOSED. */
GALE_API void gale_budget_close(struct gale_budget *budget);

/* A limit that is lowered takes nothing back.  It may not be below the guarantees. */
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
/* What the tenant has used stays used: another in its place has no units of it. */
GALE_API void gale_tenant_close(struct gale_tenant *tenant);

/* Other terms, from the next ask on; what was used stays used. */
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
 *               GALE_WHY_LENT    in part from units that nobody has a share in
 *     denied    GALE_WHY_OTHERS  the share is used; what is left is other tenants'
 *               GALE_WHY_SPENT   the limit is used up
 *               GALE_WHY_TOO_MUCH, GALE_WHY_CLOSED, GALE_WHY_BAD_ASK, ... as in rule.h
 *
 * limit is the tenant's share, and remaining what is left of it: of an answer that took no lock,
 * as of the last one that did.  A denial is remembered for at most a quarter of release_us.
 */
GALE_API struct gale_answer gale_tenant_ask(struct gale_seat *seat,
                                            struct gale_tenant *tenant, uint64_t cost);

/* May grow. */
struct gale_tenant_counts {
	uint64_t share;   /* in this window, as things are; 0 while it is absent */
	uint64_t used;    /* units of this window, less those in the purse */
	uint64_t ahead;   /* units in the purse */
	uint64_t owed;    /* units of later windows, on top of its share */
	uint64_t allowed; /* units, since it was opened, less those in the purse */
	uint64_t lent;    /* asks that were allowed with units beyond the share */
	/* Asks that were denied, but for those that were denied from memory. */
	uint64_t denied;
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
