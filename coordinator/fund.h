/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fund.h -- a budget that is shared over a store, and the tenants of it that this node has.
 *
 *     fund     a budget: its name at the store, its stakes
 *     stake    a tenant: its claim of the pool (engine/claim.h), and the asks that wait for it
 *
 * An ask takes units from the till.  One that finds too few looks at the claim, under the fund's
 * lock; if that has too few, too, it waits, and the coordinator asks the pool: once for all asks of
 * the tenant that wait, and for all tenants that lack something in one turn.
 *
 *     seat: fund_ask -> waits          coordinator: fund_turn -> the store -> fund_hear -> done
 *
 * Invariants
 *
 *   FUND-1  What is in the till was taken from the claim, and is of the claim's window.  (T1)
 *   FUND-2  One call of a stake is with the store at most, and nothing of it is written then.
 *   FUND-3  Units that were not needed since the last look go back, once: as totals, so that a
 *           call that is lost is made again.  (L6)
 *   FUND-4  While asks of a tenant are answered here, the pool hears of it at least once in each
 *           release_us.  (T2)
 *   FUND-5  Units that this node has been granted in a window, of all tenants, are at most the
 *           limit: an answer that says more is not believed.  (L13)
 *   FUND-6  While a window lasts of which it was granted something, the pool is told so once in
 *           each remind_ns, so that a store that has forgotten knows it before it grants.  (L12)
 *   FUND-7  A tenant that goes on spending asks for more before it lacks any: at the look that
 *           says so (CLAIM-5), in the same one call as those that wait.
 *   FUND-8  A stake admits something alone (engine/alone.h) only after a call of the fund that the
 *           store did not answer, and that was sent after the last one that it did.  It does so
 *           until the next one that the store answers, and for no longer than two calls may take:
 *           then an ask waits for its call first.
 *   FUND-9  What a tenant has used alone is its name's, in all stakes of this fund, and is known
 *           until its window is over, though they are closed.  (ALONE-1, T1)
 *   FUND-10  Units are taken for an ask only while it waits: one that has given up takes none, and
 *           one for which some were taken is told so, even if it gives up then.  If there is no one
 *           to be told, they go back.
 *   FUND-11  New terms of a tenant are told to the pool at once, though it lacks nothing, if they are of
 *            a window that lasts: until then its old guarantee is kept for it there.  (T2)
 *   FUND-12  Units that are held count as taken, in their window.  Those that are not spent go back
 *           into the claim while that window lasts, once.  Until then a stake that leaves waits for
 *           what its holds give back.
 *
 * Threads   fund_ask, fund_settle, fund_give_up, fund_undo, fund_init, stake_open and the functions that change or close:
 *           any.
 *           fund_turn, fund_hear and the rest: the coordinator's.
 */
#ifndef COORDINATOR_FUND_H
#define COORDINATOR_FUND_H

#include "coordinator/fleet.h"
#include "coordinator/till.h"
#include "engine/alone.h"
#include "engine/claim.h"
#include "runtime/lock.h"

struct coordinator;
struct fund;
struct stake;

struct fund_ops {
	/* The coordinator has done with it. */
	void (*drop)(struct fund *self);
	void (*drop_stake)(struct stake *self);
	void (*say)(struct fund *self, enum gale_level level, const char *line);
};

/* Units that an ask has taken, and of which some may go back. */
struct fund_held {
	uint64_t units;
	uint64_t window; /* of the pool */
	bool alone;      /* they are not of the pool, and none goes back */
};

/* An ask that waits.  Its memory is the asker's until it is given to fund_ask, and again when
 * done is called; done may free it. */
struct fund_wait {
	void (*done)(struct fund_wait *self);
	struct list place;
	struct store_op *op;
	enum store_result result;
	struct fund_held *held; /* of a hold: where what was taken is told */
	bool waits;             /* under the fund's lock */
	uint64_t window;        /* that these are of */
	uint64_t units;         /* of the pool, that were taken for it */
};

/* Units that tenants of one name use alone.  Another name may have the place when the window is
 * over. */
struct fund_alone {
	struct alone alone;
	uint32_t name_len; /* 0: no tenant's yet */
	uint8_t name[STORE_TENANT_MAX];
};

/* Of all stakes that it has or had. */
struct fund_counts {
	uint64_t used;       /* in the window that lasts, here */
	uint64_t present;    /* stakes that have a share of it */
	uint64_t guarantees; /* of all tenants that are present, at all nodes */
	uint64_t spent;      /* here, in all windows */
	uint64_t alone;      /* of these, while the store could not be asked */
	uint64_t quanta;     /* grants of the pool */
	uint64_t trips;      /* calls of the store */
	uint64_t failures; /* of these, without an answer, or with one that cannot be */
	uint64_t denied_by[GALE_WHY_ROOM];
};

struct fund_config {
	const struct fund_ops *ops;
	struct coordinator *coordinator;
	struct post *post;
	const char *name;      /* the caller's until the fund is freed */
	struct pool_ask terms; /* the budget's; those of tenants do not count */
	uint32_t drift_ppm;    /* of this clock by the store's: clock_apart_ppm */
	uint64_t patience_ns;  /* with the store */
	uint64_t remind_ns;
	struct fund_alone *alones; /* all zero; the fund's until it is freed */
	uint32_t alone_count;      /* names that may use units alone in a window */
};

struct fund {
	const struct fund_ops *ops;
	struct coordinator *coordinator;
	struct post *post;
	uint32_t drift_ppm;
	uint64_t patience_ns;
	uint64_t tick_ns; /* from one look at idle units to the next */
	uint64_t remind_ns;
	uint32_t alone_count;
	uint32_t name_len;
	const uint8_t *name;

	/* The coordinator's. */
	struct fund *next; /* that has arrived; under the coordinator's lock */
	struct list place; /* among all */
	mono due;
	uint64_t said;      /* what was logged last; POOL_ANSWERED: nothing */
	bool is_early_said; /* that answers come after their window */
	uint64_t
	    limit_said; /* its own, of which it was said that another node has another */
	uint64_t guarantees_said; /* the most of all nodes that were above the limit */
	bool is_alone_said;       /* that tenants live without the store */

	struct lock lock;
	struct {
		struct list stakes;
		struct pool_ask terms;
		uint64_t window;
		uint64_t granted;      /* in it, to this node, and not given back */
		uint64_t most;         /* the largest limit of it */
		enum gale_why cut_off; /* why the store cannot be asked; RULE: it can */
		mono failed;           /* when a call last said so */
		mono answered;         /* when the store last said something */
		bool disagrees;        /* other nodes have other settings */
		uint64_t guarantees;   /* of all nodes' tenants, as it said last */
		struct fund_alone *alones;
		struct fund_counts
		    counts; /* of stakes that are gone; denials, failures: of all */
		bool closed;
		bool ended; /* the coordinator looks at it no more */
	} locked;
};

struct stake_counts {
	uint64_t quanta;  /* grants of the pool */
	uint64_t trips;   /* calls of the store */
	uint64_t denied;  /* asks, but for those that the till denied */
	uint64_t share;   /* of the window that lasts, as was told last */
	uint64_t used;    /* in it, here */
	uint64_t in_hand; /* of it, here */
	uint64_t spent;   /* here, in all windows */
	uint64_t alone;   /* of these, while the store could not be asked */
};

/* Of a tenant, as nodes may give it. */
struct stake_terms {
	uint64_t guarantee;
	uint64_t cap;
	uint64_t weight; /* 0: none */
};

struct stake {
	struct fund *fund;
	struct till *till;
	uint32_t name_len;
	const uint8_t *name;

	/* The coordinator's. */
	struct stake *next; /* to be sent */
	struct store_call call;
	struct store_op op;
	struct store_claim claim_op;
	struct stake_terms asked_with; /* in the last ask that is over */
	struct stake_terms said;       /* its own: others' differ, as was said */

	/* Under the fund's lock. */
	struct {
		struct list place; /* among the fund's */
		struct list waits;
		struct claim claim;
		uint64_t alone;          /* units of a window of its own; 0: none */
		struct pool_answer told; /* what the pool answered last */
		enum gale_why why;       /* of what was refused */
		mono tick;               /* the next look */
		bool ahead;              /* more is asked for before it is gone */
		uint64_t ordered;        /* a cost that no call waits for */
		uint64_t holds;          /* of any window */
		bool leaves;
		bool tells; /* the pool is to hear of it, though it lacks nothing ... */
		mono tell_at;   /* ... from then on */
		uint32_t tries; /* to tell what it gives back, since it left */
		uint32_t
		    early;    /* answers in turn whose window was over when they came */
		bool present; /* units were spent before the last look */
		struct stake_counts counts;
	} locked;
};

/* ---- Any thread -------------------------------------------------------------------- */

void fund_init(struct fund *fund, const struct fund_config *config);
void fund_free(struct fund *fund);
/* Its stakes answer no more, and give back what they have. */
void fund_close(struct fund *fund);
/* 1 to GALE_UNITS_MAX. */
void fund_set_limit(struct fund *fund, uint64_t limit);
void fund_counts(struct fund *fund, mono now, struct fund_counts *ret_counts);

struct stake_config {
	struct fund *fund;
	struct till *till;
	const char *name;      /* the caller's until the stake is dropped */
	uint64_t node;         /* no other stake has it, anywhere */
	struct pool_ask terms; /* the tenant's part */
	uint64_t alone; /* units of each window, while the store cannot be asked */
};

/* False: the fund has ended. */
bool stake_open(struct stake *stake, const struct stake_config *config, mono now);
/* The coordinator drops it when what it had is given back, if it has not done so. */
void stake_close(struct stake *stake);
void stake_set_terms(struct stake *stake, const struct pool_ask *terms, uint64_t alone);

enum fund_said {
	FUND_ALLOWED,
	FUND_DENIED,
	FUND_WAITS, /* with wait: it is done later.  Without one: the pool is asked all the same */
};

/* From what is in hand; *ret_answer, unless it waits.  *ret_held: what a hold has taken, when it is
 * allowed, also if it waits; NULL: the units are used. */
enum fund_said fund_ask(struct stake *stake, uint64_t cost, mono now,
                        struct fund_wait *wait, struct fund_held *ret_held,
                        struct gale_answer *ret_answer);
/* A hold ends: so many of its units go back, or so many more were used.  FUND-12 */
void fund_settle(struct stake *stake, const struct fund_held *held, uint64_t back,
                 uint64_t over, mono now);
/* An ask for more is never allowed. */
uint64_t fund_most(struct stake *stake);
/* True: it has given up, and done is not called.  False: op and result tell what was answered
 * before, and done is called, if it was not already.  FUND-10 */
bool fund_give_up(struct stake *stake, struct fund_wait *wait);
/* An answer that no asker will use: its units go back into their window. */
void fund_undo(struct stake *stake, const struct fund_wait *wait);
void stake_counts(struct stake *stake, mono now, struct stake_counts *ret_counts);

/* ---- The coordinator's --------------------------------------------------------------- */

/* Looks at all its stakes, and asks for those that lack something; how many.  fund->due: when it
 * wants a turn. */
uint64_t fund_turn(struct fund *fund, mono now);
/* A call of one of its stakes has been answered. */
void fund_hear(struct store_call *call, mono now);
static inline struct stake *stake_of_call(struct store_call *call)
{
	return (struct stake *)((char *)call - offsetof(struct stake, call));
}
/* It is closed, and nothing of it is with the store, or owed to it. */
bool fund_is_over(struct fund *fund);
/* All stakes leave: the runtime ends. */
void fund_end(struct fund *fund);
/* Drops the stakes that are left. */
void fund_drop_stakes(struct fund *fund);

#endif
