/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow.h -- one budget, window after window, for tenants whose demands are not known.
 *
 * Tenants that have asked lately are present.  Each has a share, which no other can use up:
 * its guarantee, and then by weight, up to its cap.  The shares and what was used beyond them
 * come to the limit together, as if water rose in vessels that are as wide as the weights:
 *
 *     used |##|      |##|                 share(level) = guarantee + weight * level <= cap
 *     ~~~~~|##|~~~~~~|##|~~~~~ level
 *          |##||    ||##||   |            sum over the present of max(share, used)
 *          |##||#   ||##||   |              + what the absent have used = limit
 *           over  under      under
 *
 * A tenant that has not asked for release_us is absent: its share is the others' then, and its
 * next ask makes it present again.  Water that others have used up meanwhile is gone for the
 * window.
 *
 * Invariants
 *
 *   ESCROW-1  In a window tenants use at most the limit together, whichever of them come, go, are
 *             removed or are changed.  (T1)
 *   ESCROW-2  An ask is admitted only if used + cost <= limit - the sum over others of
 *             max(share, used).  A tenant that has its share gets no more.  (T2)
 *   ESCROW-3  Nothing is reserved for a tenant that has not asked for release_us.  (T3)
 *   ESCROW-4  A tenant exceeds its share by less than the cost of its last ask.  A tenant that
 *             has less than its share, since its asks cost more than was left, has as much more
 *             in the next window, up to the cost of such an ask.  (T4)
 *   ESCROW-5  A tenant that owes units of a window is admitted nothing in it, and has nothing
 *             ahead.  The rest of its share pays first.  Of a node: TREE-6.
 *
 * An ask takes the same time for any number of tenants, and divides nothing while the level
 * stays.  Only the level takes longer, when it has to be found anew: it looks at each tenant that
 * is present, after a window has turned, or after one has become absent, or come back to find its
 * share used.
 *
 * Threads   Pure: one at a time.
 */
#ifndef ENGINE_ESCROW_H
#define ENGINE_ESCROW_H

#include <stdbool.h>

#include <gale/rule.h>

#include "engine/fair.h"

#define ESCROW_NOBODY UINT32_MAX
#define ESCROW_TENANTS_MAX (UINT32_C(1) << 20)

struct escrow_terms {
	uint64_t guarantee;
	uint64_t cap; /* at least 1 */
	uint32_t weight;
};

/* Where a tenant that is present stands. */
enum escrow_stand {
	ESCROW_UNDER,  /* it may rise with the level */
	ESCROW_OVER,   /* it has used more than its share */
	ESCROW_CAPPED, /* its share is its cap */
};

enum escrow_list {
	ESCROW_FREE,    /* no tenant */
	ESCROW_ABSENT,  /* in no order */
	ESCROW_PRESENT, /* the one that asked longest ago is first */
	ESCROW_LISTS
};

struct escrow;

struct escrow_tenant {
	struct escrow_terms terms;
	uint64_t window; /* in which it used this */
	uint64_t used;
	uint64_t debt; /* in the window: what its calls have cost beyond their holds */
	/* The dearest ask, in the window, that its share had no room for.  Of a node: the
	 * sum of those below. */
	uint64_t refused;
	uint64_t owed;       /* from windows before: less than its share */
	uint64_t owed_since; /* the window */
	uint64_t repaid;     /* of it, in this window, on top of the guarantee */
	uint64_t spent;      /* in the window before */
	uint64_t came_us;
	uint64_t asked_us;
	uint64_t share; /* at the level of this number */
	uint64_t level;
	bool part; /* of a unit is beyond it */
	enum escrow_list list;
	enum escrow_stand stand;
	uint32_t before, after; /* in its list */
	struct escrow *below;   /* of an inner node: escrow_tree.h; or NULL */
};

struct escrow_settings {
	uint64_t limit;
	uint64_t period_us;
	uint64_t release_us; /* GALE_NEVER: a tenant that has asked stays present */
	uint64_t protect_us; /* all are present for so long after a window has begun */
	bool parted;         /* no share is lent: fair_share among those present */
};

struct escrow {
	struct escrow_settings set;
	struct escrow_tenant *tenants; /* the caller's memory */
	struct escrow *above;          /* escrow_tree.h; or NULL */
	uint32_t place;                /* there: the tenant that this is */
	uint64_t assured;              /* guarantees may be so much together */
	uint32_t room;
	struct {
		uint32_t first, last, count;
	} lists[ESCROW_LISTS];

	uint64_t now_us;     /* never goes back */
	uint64_t window;     /* its beginning */
	uint64_t used;       /* by all, also by those that were removed */
	uint64_t absent;     /* of it, by those that are not present */
	uint64_t guaranteed; /* to all tenants */
	uint64_t weights;    /* of those present */
	uint64_t promised;   /* to those present, and not used */
	uint64_t kept;       /* of it: units that the node above has used for it */

	/* The level: pool / slopes, for those under it.  escrow_level.c */
	uint64_t level; /* its number, from 1: shares of another are worked out anew */
	bool settled;
	bool is_short;  /* guarantees are more than is left: they shrink alike */
	bool reckoned;  /* reserve is right */
	uint64_t fixed; /* of those over it and capped, and of the absent */
	uint64_t bases; /* of those under it, at level 0 */
	uint64_t slopes;
	uint64_t pool;
	uint64_t floor; /* while the level is not below, all stand where they do */
	uint64_t reserve;
	uint64_t walked; /* tenants that were looked at, of those present */
	uint64_t falls;  /* how often a share may have fallen below what was used */
};

struct escrow_answer {
	bool admitted;
	bool lent;          /* with units beyond its share */
	uint64_t share;     /* of the tenant, in this window, as things are */
	uint64_t remaining; /* of it */
	uint64_t reset_us;  /* until the window turns */
	uint64_t
	    retry_us; /* until it may help; GALE_NEVER: the cost is above cap or limit */
};

/* tenants: room for so many, of any contents. */
void escrow_init(struct escrow *escrow, const struct escrow_settings *set,
                 struct escrow_tenant *tenants, uint32_t room);

/* More room: the tenants are copied, and keep their numbers. */
void escrow_widen(struct escrow *escrow, struct escrow_tenant *tenants, uint32_t room);

/* *ret_number: the tenant's. */
enum fair_fault escrow_add(struct escrow *escrow, const struct escrow_terms *terms,
                           uint32_t *ret_number);
/* Used units stay used. */
enum fair_fault escrow_change(struct escrow *escrow, uint32_t number,
                              const struct escrow_terms *terms);
/* One with an escrow below stays. */
void escrow_remove(struct escrow *escrow, uint32_t number);
/* FAIR_GUARANTEE: guarantees are above it. */
enum fair_fault escrow_set_limit(struct escrow *escrow, uint64_t limit);

/* Of a tenant that has no escrow below.  cost: 1 to GALE_UNITS_MAX.  True: it is admitted, within its
 * share.  False: the tenant is present, and the ask is not decided. */
bool escrow_ask_own(struct escrow *escrow, uint32_t number, uint64_t cost,
                    uint64_t now_us, struct escrow_answer *ret_answer);
/* Decides such an ask, at the same instant. */
void escrow_ask_beyond(struct escrow *escrow, uint32_t number, uint64_t cost,
                       struct escrow_answer *answer);
/* Both. */
static inline struct escrow_answer escrow_ask(struct escrow *escrow, uint32_t number,
                                              uint64_t cost, uint64_t now_us)
{
	struct escrow_answer answer;

	if (!escrow_ask_own(escrow, number, cost, now_us, &answer))
		escrow_ask_beyond(escrow, number, cost, &answer);
	return answer;
}
/* After an ask was admitted: so many more units, up to most, of what is left of its share.  It
 * may use them until the window turns. */
uint64_t escrow_ask_ahead(struct escrow *escrow, uint32_t number, uint64_t most);
/* Units of that window which were not used. */
void escrow_give(struct escrow *escrow, uint32_t number, uint64_t units,
                 uint64_t window);
/* The same, of a tenant that has been removed; of one with an escrow below, from before that was
 * hung there, and then it is the one below that is told. */
void escrow_give_removed(struct escrow *escrow, uint64_t units, uint64_t window);
/* Units of that window which were used beyond those that it was admitted.  They are paid from what
 * is left of its share, now and later in the window.  ESCROW-5 */
void escrow_debit(struct escrow *escrow, uint32_t number, uint64_t units,
                  uint64_t window);

/* Time goes on, before an ask or without one.  A tenant that is to be absent, since it has not
 * asked for release_us; ESCROW_NOBODY: there is none.  The caller says escrow_saw if the tenant
 * has used units meanwhile that it had ahead, and else escrow_leave; and asks for the next. */
uint32_t escrow_due(struct escrow *escrow, uint64_t now_us);
void escrow_saw(struct escrow *escrow, uint32_t number);
void escrow_leave(struct escrow *escrow, uint32_t number);
static inline bool escrow_anybody(const struct escrow *escrow)
{
	return escrow->lists[ESCROW_PRESENT].first != ESCROW_NOBODY;
}
static inline uint32_t escrow_present(const struct escrow *escrow)
{
	return escrow->lists[ESCROW_PRESENT].count;
}
/* The next of those that are present.  ESCROW_NOBODY: before the first, and after the last. */
static inline uint32_t escrow_next(struct escrow *escrow, uint32_t number)
{
	if (number == ESCROW_NOBODY)
		return escrow->lists[ESCROW_PRESENT].first;
	escrow->walked++;
	return escrow->tenants[number].after;
}
/* The same, where no tenant has units ahead. */
static inline void escrow_pass(struct escrow *escrow, uint64_t now_us)
{
	uint32_t number;

	while ((number = escrow_due(escrow, now_us)) != ESCROW_NOBODY)
		escrow_leave(escrow, number);
}

/* As of the last instant that was told. */
uint64_t escrow_used(const struct escrow *escrow, uint32_t number);
uint64_t escrow_share(struct escrow *escrow, uint32_t number);
/* By how much it, or a node above it, has used more than half of its share, as shares were when
 * escrow_share was last asked in each escrow: units given back since have raised none. */
uint64_t escrow_excess(struct escrow *escrow, uint32_t number);
/* An ask for more is never admitted. */
uint64_t escrow_most(const struct escrow *escrow, uint32_t number);

/* ---- In escrow_level.c ------------------------------------------------------------- */

/* Finds the level, and where each tenant stands. */
void escrow_find_level(struct escrow *escrow);
/* A tenant has become present: true if the level falls so little that the rest stand where they
 * did. */
bool escrow_lower_level(struct escrow *escrow, struct escrow_tenant *tenant);
/* The share at the level, and whether a part of a unit is beyond it. */
uint64_t escrow_level_of(const struct escrow *escrow,
                         const struct escrow_tenant *tenant, bool *ret_part);
/* It has used more. */
void escrow_note_used(struct escrow *escrow, const struct escrow_tenant *tenant);

bool escrow_valid(const struct escrow *escrow);

#endif
