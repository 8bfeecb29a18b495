/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * remote.h -- what a server is asked to do, and what its answers mean.
 *
 * A server keeps a value for each key (value.h) and changes it in one atomic step.  It
 * does not explain itself: it says what the value was before (or, of a lend that got all
 * it wanted, what it has become, or its window has), and what time it was, and the engine
 * here works out what that step said, with the functions that the embedded store runs, or
 * with one that says the same of less (lease_was_whole).  So an answer is the same wherever
 * a key is kept, and servers know only how values change:
 *
 *     job --> bytes --> server: one step --> bytes --> told --> explained: the answer
 *         (redis/, postgres/)           (redis/, postgres/)
 *
 * A rule whose step a server does not know is stepped here: the value is read, and
 * swapped for what the engine makes of it if no other node was faster.
 *
 * A beat's step is all the server's: what it tells is the grant (stores/groups.h).  So is a
 * claim's: the answer (stores/pools.h).
 *
 * Generations (law L12).  A server that may have forgotten what it granted has another
 * generation.  Each batch says which one it is for, and the server compares that within
 * its step.  not_before_us of a job is the instant before which a server that has
 * forgotten must not grant anything of it: what it granted before may still be out.
 *
 * Threads   Pure: any.
 */
#ifndef STORES_REMOTE_H
#define STORES_REMOTE_H

#include "engine/lease.h"
#include "engine/window.h"
#include "stores/store.h"
#include "stores/value.h"

#define REMOTE_BATCH_MOST 64       /* jobs of one call */
#define REMOTE_GENERATION_BYTES 32 /* of text, at most */

enum remote_verb {
	REMOTE_STEP,  /* of a window, a budget, a gcra, a token bucket: cost */
	REMOTE_LEND,  /* from a window, a gcra, a token bucket: ask */
	REMOTE_BACK,  /* of the same: ask.node, ask.number, tag, units */
	REMOTE_READ,  /* of any rule */
	REMOTE_SWAP,  /* of any rule: was becomes becomes, until expires_us */
	REMOTE_DROP,  /* the key is as new */
	REMOTE_BEAT,  /* of the group of that key; it has no rule */
	REMOTE_CLAIM, /* of the pool of that key; it has no rule */
};

struct remote_bytes {
	const uint8_t *bytes;
	size_t count;
};

struct remote_job {
	enum remote_verb verb;
	struct remote_bytes key;
	const struct rule *rule;
	uint64_t not_before_us; /* step, lend, swap, claim: 0: whenever */
	/* Of a fixed window, at a store that lends ahead: the first that begins then or later
	 * begins with what may have been lent ahead of it and forgotten (lease_turn). */
	uint64_t reserve_from_us;
	uint64_t cost;        /* step */
	struct lease_ask ask; /* lend; back: node and number */
	/* Lend from a window: this node was not told of the key, so that most probably nothing
	 * is there. */
	bool is_first;
	uint64_t seen; /* remote_prepare_reminder: at least so much of the window that
	                * starts at seen_in was used, as this node was told before: a
	                * server that says less has forgotten, and counts on from
	                * there.  Units that were given back look like forgotten ones */
	uint64_t seen_in;
	struct gale_slot tag; /* back */
	uint64_t units;       /* back */
	struct remote_bytes was;
	struct remote_bytes becomes; /* no bytes: the key is dropped */
	uint64_t expires_us;         /* of what it becomes; and then it is as new */
	const struct store_claim *claim;
	const struct store_beat *beat;
	uint64_t
	    forgot_us; /* beat: when the server may have forgotten last; 0: never */
};

/* What became of one job. */
enum remote_code {
	REMOTE_DONE,     /* the step was made, which may have denied */
	REMOTE_MOVED,    /* swap: it was not what was said; nothing has changed */
	REMOTE_WAITS,    /* it is before not_before_us; nothing has changed */
	REMOTE_CALENDAR, /* a quota's month at now_us, or the value's if that is later, is
	                 * none of those that were sent; nothing has changed */
	REMOTE_CHANGED, /* the value is of another rule; nothing has changed */
	REMOTE_GARBLED, /* there is something else under the key; nothing has changed */
	REMOTE_LENT, /* lend: it got all it wanted of a window, from which no other node has
	                 * a row */
};

struct remote_told {
	enum remote_code code;
	uint64_t now_us; /* the server's, read within the step */
	struct remote_bytes
	    before; /* REMOTE_DONE: the value; of a swap and a drop: none; of a lend that
	             * granted it may be the one after, too: the same request's number finds
	             * the same answer in it (lease.h, LEASE-2); of a beat the words of
	             * the grant, of a claim those of the answer */
	struct window_state lent; /* REMOTE_LENT: how it was left */
};

/* Can a server step the rule by itself?  Otherwise it is read and swapped. */
bool remote_can_step(const struct rule *rule);
bool remote_can_lend(const struct rule *rule);
/* Is what it lends of a window: of a fixed one, or a quota's? */
bool remote_lends_windows(const struct rule *rule);
/* Does the lend want units ahead, or say which it had?  Then it is told the whole value. */
bool remote_lends_ahead(const struct remote_job *job);
/* Each job may have its own copy. */
bool remote_same_rule(const struct rule *a, const struct rule *b);

/*
 * The result of a job, as store.h has it.  Before not_before_us that is a denial until
 * then.  STORE_BUSY: nothing has changed, and it may be tried again: it was not what was
 * said (read it again), or the quota's months were others (send those of now_us).
 * Bytes that cannot be believed are STORE_WRONG, or STORE_CHANGED.
 */

/* REMOTE_STEP: fills op->answer. */
enum store_result remote_explain_step(const struct remote_job *job,
                                      const struct remote_told *told,
                                      struct store_op *op);

/* REMOTE_LEND, REMOTE_BACK, and REMOTE_READ: what ask.node has out. */
void remote_explain_lend(const struct remote_job *job, const struct remote_told *told,
                         struct lend_answer *ret_answer);

/* REMOTE_BEAT: what was granted. */
#define REMOTE_GRANT_BYTES (GROUP_GRANT_WORDS * sizeof(uint64_t))
enum store_result remote_explain_beat(const struct remote_told *told,
                                      struct store_beat *beat);

/* REMOTE_CLAIM: what was answered. */
#define REMOTE_CLAIM_BYTES (POOL_ANSWER_WORDS * sizeof(uint64_t))
enum store_result remote_explain_claim(const struct remote_told *told,
                                       struct store_claim *claim);

/* Where a value of any length is worked on; the memory is the caller's. */
struct remote_desk {
	uint64_t *words; /* room for remote_words */
	size_t room;
	uint8_t *bytes; /* room for remote_bytes_most: where a swap's becomes is */
};

/* The longest value that steps of the rule can lead to. */
size_t remote_value_most(const struct rule *rule);

/* How much room a value of so many bytes, and one more step of it, can need. */
size_t remote_words(const struct rule *rule, size_t bytes);
size_t remote_bytes_most(const struct rule *rule, size_t bytes);

/* REMOTE_READ: fills op->answer of a peek, op->forecast of a forecast. */
enum store_result remote_explain_look(const struct remote_job *job,
                                      const struct remote_told *told,
                                      const struct remote_desk *desk,
                                      struct store_op *op);

/*
 * Of a key that was read: *job, a REMOTE_READ, turns into the swap to send, and *op or
 * *ret_answer holds what is true once the swap is REMOTE_DONE.  False: it is settled
 * without one, and *ret_result or the answer says how.  The swap's was is what told points
 * to, its becomes is in the desk's bytes: both must last until it is sent.  An answer's
 * durations count from the read.
 */

/* A step or a cancel of any rule: op->verb, op->cost, op->slot. */
bool remote_prepare_swap(struct remote_job *job, const struct remote_told *told,
                         const struct remote_desk *desk, struct store_op *op,
                         enum store_result *ret_result);

/* To remind a window that was forgotten of what was seen of it: job->seen, seen_in. */
bool remote_prepare_reminder(struct remote_job *job, const struct remote_told *told,
                             const struct remote_desk *desk);

/* To lend or to take back, of any rule that can be lent from: verb says which, and the
 * job's ask, tag and units say what. */
bool remote_prepare_loan(struct remote_job *job, const struct remote_told *told,
                         const struct remote_desk *desk, enum lend_verb verb,
                         struct lend_answer *ret_answer);

#endif
