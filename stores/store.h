/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * store.h -- what every store must do.
 *
 * A store keeps the words of keys and runs rules on them.  Whatever stands behind it,
 * these hold:
 *
 *   STORE-1  One run is one atomic step: it sees all runs on the same key before it,
 *            and none half done.
 *   STORE-2  Time is the store's own, read within the step; for each key it never runs
 *            backward. (law L9)
 *   STORE-3  What was spent is not forgotten while it counts: a key is dropped only
 *            when it has expired (RULE-4) or by STORE_RESET.  A store that is full says
 *            so.  (law L8)
 *   STORE-4  Words that another rule has written are converted (RULE-6), or, of another
 *            kind, not read: STORE_CHANGED, or a new start if the rule says so. (laws
 *            L9, L15)
 *   STORE-5  Unless the result is STORE_DONE, nothing has changed.
 *   STORE-6  Lending follows engine/lease.h: each request is one atomic step, tagged,
 *            and does its work at most once for its node and number. (L4, L6, L9) A
 *            store that may lose its state must say so in each answer (law L12); the
 *            embedded one cannot lose it and live.
 *   STORE-7  A batch is answered part by part, each part any number of times or never,
 *            in any order, with the number of its request; the asker sorts that
 *            out.  (L13)
 *   STORE-8  What was begun is done exactly once, at the latest when its home leaves.
 *   STORE-9  A beat is one atomic step on its group, in the order that engine/group.h
 *            says.  A member is kept until its lease is over; a group, until all of them
 *            are. (laws H1, H8)
 *   STORE-10  A nudge that a beat gives rise to (GROUP-12) comes to all homes that hear
 *            nudges, soon, late, twice or never; and so may one that no beat gave rise to.
 *   STORE-11  A claim is one atomic step on its pool, in the order that engine/pool.h says.  What
 *            was claimed is kept while its window lasts.  (laws T1, W-4)
 *
 * A store that is another machine away is asked by actors only.  Each is a home to it, and
 * enters before it asks: then it has a client there, with a connection of its own.
 *
 * Threads   run, sweep, stats: any thread, at once.  close: once, by the last user.
 *           enter, lend, begin, turn, leave: the home's actor; answers to lend come on its
 *           thread, within one of these.
 */
#ifndef STORES_STORE_H
#define STORES_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

#include "engine/clock.h"
#include "engine/group.h"
#include "engine/lease.h"
#include "engine/pool.h"
#include "engine/rule.h"
#include "runtime/list.h"
#include "runtime/wake.h"

/* A limiter's name and a user's key, so joined that no two pairs look alike. */
#define STORE_KEY_MAX (1 + GALE_NAME_MAX + GALE_KEY_MAX)
#define STORE_NODE_MAX 255 /* bytes of a node's name, in a group */
#define STORE_TENANT_MAX GALE_NAME_MAX

enum store_verb {
	STORE_STEP,
	STORE_PEEK,
	STORE_FORECAST,
	STORE_CANCEL,
	STORE_RESET,
	STORE_BEAT,  /* of a node of a group; groups are apart from keys */
	STORE_CLAIM, /* of a node, for a tenant of a pool; pools are apart, too */
};

/* What a node reports to its group, and is granted. */
struct store_beat {
	const uint8_t *node; /* its name, of any bytes */
	uint32_t node_len;   /* 1 to STORE_NODE_MAX */
	struct group_settings settings;
	struct group_report report;
	struct group_grant
	    grant; /* when the result is STORE_DONE; it may be a refusal */
};

/* What a node asks of a pool on behalf of a tenant, and is granted. */
struct store_claim {
	const uint8_t *tenant; /* its name, of any bytes */
	uint32_t tenant_len;   /* 1 to STORE_TENANT_MAX */
	uint64_t node;         /* 1 to 2^53 - 1: no other node's, and never again */
	struct pool_ask ask;
	struct pool_answer
	    answer; /* when the result is STORE_DONE; it may be a refusal */
};

struct store_op {
	enum store_verb verb;
	uint32_t key_len;
	const uint8_t *key; /* of a beat: the group's name; of a claim: the pool's */
	const struct rule *rule; /* of both: none */
	uint64_t
	    changes; /* how often its limiter's rule had changed before; not the store's */
	uint64_t cost;                /* step, forecast, cancel */
	struct gale_slot slot;        /* cancel */
	struct gale_answer answer;    /* of step and peek */
	struct gale_outlook forecast; /* of forecast */
	struct store_beat *beat;
	struct store_claim *claim;
};

enum store_result {
	STORE_DONE,
	STORE_BUSY, /* it could not be done at once, and patience was not given */
	STORE_LATE, /* it may or may not have been done; no call waits any more */
	STORE_FULL,
	STORE_NO_MEMORY,
	STORE_CHANGED,
	STORE_NOT_BOOKED, /* cancel: nothing to give back */
	STORE_DOWN,       /* it has not answered lately, and was not asked */
	STORE_WRONG,      /* it gave an answer that cannot be believed */
	STORE_BROKEN,     /* the rule is the user's own, and rules what cannot be */
	STORE_CROWDED, /* this node has no room for the key, and the store was not asked */
	STORE_QUARANTINE, /* it may have forgotten what it granted, and grants nothing for
	                     as long as op->answer says */
};

enum lend_verb {
	LEND,        /* want units, at least least */
	LEND_BACK,   /* units, lent under tag, that were not spent */
	LEND_STATUS, /* what is out */
};

/* One request of a batch.  Nothing that it points to is kept after lend returns. */
struct lend_request {
	enum lend_verb verb;
	uint32_t key_len;
	const uint8_t *key;
	const struct rule *rule;
	struct lease_ask ask; /* LEND_BACK and LEND_STATUS: node and number */
	struct gale_slot tag; /* LEND_BACK */
	uint64_t units;       /* LEND_BACK */
	uint64_t seen;        /* LEND from a window: so much of the one that starts at
	                       * seen_in was used, as was told in that life; 0: nothing
	                       * was told.  A store that has forgotten is reminded.  (L12) */
	uint64_t seen_in;     /* both 0: this node was never told of the key */
	uint8_t life;
	mono due; /* LEND: no call waits longer, and it need not be sent; 0: never */
};

/* What came of one request; nothing in it has been checked yet. */
struct lend_answer {
	uint64_t number;          /* of the request */
	enum store_result result; /* STORE_NOT_BOOKED: it was too late to give back */
	uint8_t life; /* of the store's memory: another one after it may have forgotten;
	                 0: it never does */
	uint8_t lives; /* how often a life of any of its servers has followed another */
	bool waits; /* it may have forgotten, and grants nothing before grant.retry_us:
	                 grant.left is not what it knows */
	bool restarted; /* another kind of rule had the key, which has begun anew */
	struct lease_grant
	    grant; /* of LEND and LEND_STATUS, when the result is STORE_DONE */
};

/* A nudge of a group, which its members hear. */
struct store_nudge {
	uint64_t mark; /* store_mark of its name: others may have the same */
	uint64_t bits; /* of the mark that count: others may have been nudged as well */
	struct group_nudge is;
};

/* Nudges that have come to a home and were not taken: the latest. */
#define STORE_NUDGES_MOST 64
struct store_nudges {
	uint64_t put;
	uint64_t taken;
	struct store_nudge all[STORE_NUDGES_MOST];
};

/* An op under way.  It, its op and what that points to stay where they are until it is
 * taken. */
struct store_call {
	struct store_op *op;
	mono due;                 /* the store is late then: it is done as STORE_LATE */
	mono until;               /* an answer is of use until then; 0: until due */
	enum store_result result; /* once it is done */
	struct list place;        /* among those that are done and were not taken */
};

static inline mono store_call_until(const struct store_call *call)
{
	return call->until.ns > 0 ? call->until : call->due;
}

/* An actor that asks. */
struct store_home {
	void (*on_answer)(struct store_home *self, const struct lend_answer *answer);
	struct list done;            /* calls, in that order, until they are taken */
	struct store_nudges *nudges; /* NULL: it hears none */
	struct gale_clock *clock;    /* of begin and lend: what time it is there */
	struct watch
	    watch; /* the actor's, if it sleeps; early: by a thread of its own */
};

struct store_desk; /* the store's own */
struct store_ear;

/* A home's client at a store.  It is a value: copies are the same client. */
struct store_client {
	struct store *store;
	struct store_home *home;
	struct store_desk *desk; /* NULL: the store needs none */
};

struct store {
	const struct store_ops *ops;
	uint64_t
	    quarantine_us; /* the longest, after it has forgotten; 0: it never does */
	bool lends_ahead;  /* of the window after this one, too (engine/lease.h) */
};

struct store_ops {
	/* Without patience it never blocks, and may answer STORE_BUSY instead.  A store
	 * that has begin always does, with and without patience. */
	enum store_result (*run)(struct store *self, struct store_op *op, bool patient);
	/* Sends a batch of requests on their way; never waits for another machine. */
	void (*lend)(const struct store_client *client,
	             const struct lend_request *requests, size_t count);

	/* NULL, all of these, for a store that answers at once. */
	/* Makes a client of the home, and gives its desk; NULL without memory. */
	struct store_desk *(*enter)(struct store *self, struct store_home *home);
	/* A call that is done is put into the home, here or in a turn, and the home takes it. */
	void (*begin)(const struct store_client *client, struct store_call *call);
	/* Sends and receives; returns when it wants to be called again, if nothing
	 * happens on the home's epoll before. */
	mono (*turn)(const struct store_client *client, mono now);
	/* Nothing that the home asked is under way. */
	bool (*is_idle)(const struct store_client *client);
	/* The client is gone; all that it has begun is done as STORE_LATE. */
	void (*leave)(const struct store_client *client);

	/* Nudges, of a store without clients; others have them put into the homes that beat
	 * there.  An ear is had by an actor, whose watch is told that something has come: then
	 * it has the ear heard.  NULL without memory. */
	struct store_ear *(*listen)(struct store *self, struct watch watch);
	void (*hear)(struct store_ear *ear, struct store_nudges *nudges);
	void (*unlisten)(struct store_ear *ear);

	/* Drops what has expired, some of it at a time; false when there may be more.
	 */
	bool (*sweep)(struct store *self);
	void (*stats)(struct store *self, struct gale_counts *ret_stats);
	void (*close)(struct store *self);
};

/* What a step, a peek or a forecast has come to. */
static inline enum store_result store_judge(const struct store_op *op)
{
	bool broken = op->verb == STORE_FORECAST
	                  ? op->forecast.spendable_now == OUTLOOK_BROKEN
	                  : op->answer.why == GALE_WHY_BROKEN;

	if (op->verb == STORE_STEP && op->answer.why == GALE_WHY_QUARANTINE)
		return STORE_QUARANTINE;
	return broken ? STORE_BROKEN : STORE_DONE;
}

/* Of a result that is no answer. */
static inline enum gale_why store_why(enum store_result result)
{
	switch (result) {
	case STORE_BUSY:
		return GALE_WHY_BUSY;
	case STORE_LATE:
		return GALE_WHY_LATE;
	case STORE_FULL:
		return GALE_WHY_FULL;
	case STORE_NO_MEMORY:
		return GALE_WHY_MEMORY;
	case STORE_CHANGED:
		return GALE_WHY_CHANGED;
	case STORE_DOWN:
		return GALE_WHY_DOWN;
	case STORE_WRONG:
		return GALE_WHY_WRONG;
	case STORE_BROKEN:
		return GALE_WHY_BROKEN;
	case STORE_CROWDED:
		return GALE_WHY_CROWDED;
	case STORE_QUARANTINE:
		return GALE_WHY_QUARANTINE;
	case STORE_DONE:
	case STORE_NOT_BOOKED:
		break;
	}
	return GALE_WHY_RULE;
}

static inline enum store_result store_run(struct store *store, struct store_op *op,
                                          bool patient)
{
	return store->ops->run(store, op, patient);
}

/* ---- Homes and their clients ----------------------------------------------------- */

/* False without memory.  Once for a home and a store, until it has left. */
static inline bool store_enter(struct store *store, struct store_home *home,
                               struct store_client *ret_client)
{
	struct store_desk *desk =
	    store->ops->enter ? store->ops->enter(store, home) : NULL;

	if (store->ops->enter && !desk)
		return false;
	*ret_client = (struct store_client){ store, home, desk };
	return true;
}

static inline void store_leave(const struct store_client *client)
{
	if (client->desk)
		client->store->ops->leave(client);
}

/* For stores: the call is done. */
static inline void store_finish(struct store_home *home, struct store_call *call,
                                enum store_result result)
{
	call->result = result;
	list_append(&home->done, &call->place);
}

/* The same for all nodes. */
static inline uint64_t store_mark(const uint8_t *name, size_t count)
{
	uint64_t mark = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < count; i++)
		mark = (mark ^ name[i]) * UINT64_C(1099511628211);
	return mark ^ mark >> 32;
}

/* For stores.  The oldest one makes room: there will be a beat without it. */
static inline void store_put_nudge(struct store_nudges *nudges,
                                   const struct store_nudge *nudge)
{
	nudges->all[nudges->put++ % STORE_NUDGES_MOST] = *nudge;
	if (nudges->put - nudges->taken > STORE_NUDGES_MOST)
		nudges->taken = nudges->put - STORE_NUDGES_MOST;
}

/* False: there is none more. */
static inline bool store_take_nudge(struct store_nudges *nudges,
                                    struct store_nudge *ret_nudge)
{
	if (nudges->taken == nudges->put)
		return false;
	*ret_nudge = nudges->all[nudges->taken++ % STORE_NUDGES_MOST];
	return true;
}

/* A call that is done, and the caller's again; NULL: there is none more. */
static inline struct store_call *store_take(struct store_home *home)
{
	struct list *place = list_first(&home->done);

	if (!place)
		return NULL;
	list_remove(place);
	return list_item(place, struct store_call, place);
}

#endif
