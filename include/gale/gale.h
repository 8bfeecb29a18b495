/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale.h -- may one more call go through?
 *
 *	gale_runtime_open(NULL, &runtime);                           once
 *	gale_store_open(runtime, &store_config, &store);             once
 *	gale_limiter_open(runtime, &limiter_config, &limiter);       once per rule
 *	gale_join(runtime, &seat);                                   once per thread
 *	if (gale_wait(seat, limiter, key, key_len, 1, within).verdict == GALE_ALLOW)
 *		serve();                                             per call
 *
 * In an event loop use gale_ask, which may answer GALE_PENDING: the call is then under
 * way, and its answer comes to gale_seat_completions.
 *
 * Threads   A seat belongs to the thread that joined; whatever takes a seat is for
 *           that thread alone (checked when the library is built with assertions for
 *           debugging).  Everything else may be called from any thread at any time,
 *           except that nobody may use a limiter or a store while it is being closed,
 *           nor open anything from a runtime that is.  A thread inside gale must not
 *           be cancelled.
 * Blocking  gale_ask never waits for a store, a lock or another thread.  It does work
 *           itself, though: with the embedded store, the first call of a new key takes
 *           memory, and now and then the table of its stripe (a 64th of the store)
 *           doubles; a sliding log looks at every stamp it keeps.  gale_wait,
 *           gale_peek, gale_forecast, gale_reset and gale_cancel wait for at most the
 *           time that they are given.  Closing the last user of a store frees its keys
 *           one by one.
 * Memory    Zero a configuration before you fill it.  Configurations, names and keys
 *           are copied.  Handles belong to the library; each is good until it is
 *           closed, and closing NULL does nothing.  A runtime's memory is freed when it
 *           and everything opened from it are closed, in any order.  A seat takes
 *           about half a kilobyte for each ask that may be pending.
 * Errors    Setting up can fail, and says so with an enum gale_err.  Asking cannot:
 *           there is always an answer, and its .why tells where it comes from.  A mistake
 *           in a configuration that shows only then is a denial, never an allow.
 * Limits    Keys are 1 to GALE_KEY_MAX bytes of any value, names 1 to GALE_NAME_MAX.
 *           A process has at most GALE_RUNTIMES_MAX runtimes at a time; one counts until
 *           everything that was opened from it is closed, too.
 * Guest     No signal handlers, nothing written to stdout or stderr, descriptors are
 *           closed on exec.  Our threads block all signals, and otherwise inherit what
 *           the thread that opens the runtime has: processors, priority.  A child made
 *           by fork() is refused everything, as it would spend its parent's budget
 *           twice; it may open a runtime of its own, on stores of its own.  A host that
 *           filters its system calls does so before it opens a runtime, or lets
 *           membarrier through: refused from the start asks take a little longer,
 *           refused later it is a panic (gale_on_panic).
 * ABI       As long as the SONAME is the same (libgale.so.0), a program runs with any
 *           library that is as new as its gale.h or newer: no function goes, and no
 *           field and no number of an enum changes its meaning.  Structs that say "May
 *           grow" get new fields at their end, 0 of which means what was before.  Every
 *           other struct, gale_rule, gale_answer, gale_outlook and the hooks among them,
 *           changes only with the SONAME.  A newer program runs with an older library
 *           if it leaves what that does not know 0; else it gets GALE_ERR_SIZE.
 *           What is to go is marked deprecated here and in CHANGELOG.md one minor
 *           version before the SONAME changes, or earlier.
 *           The size of a struct that may grow is passed by inline functions.  From
 *           another language call what they call, gale_runtime_open_sized and its
 *           like, with the size of the struct as you declare it there.
 */
#ifndef GALE_H
#define GALE_H

#include <stdbool.h>

#include <gale/errors.h>
#include <gale/rule.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GALE_VERSION_MAJOR 0
#define GALE_VERSION_MINOR 1
#define GALE_VERSION_PATCH 0

#define GALE_KEY_MAX 256
#define GALE_NAME_MAX 64
#define GALE_RUNTIMES_MAX 512

/* The version of the library that runs, as "major.minor.patch". */
GALE_API const char *gale_version(void);

/* ---- Runtime --------------------------------------------------------------------- */

/* What the host may provide.  Each object must outlive every runtime and store that was
 * opened with it; a store with a name lives until its last opener closes it.  The
 * functions may be called from any thread, also at once, and under our locks: they must
 * not call gale. */
struct gale_allocator {
	/* bytes is not 0; memory is aligned as malloc's; NULL: there is none.  What is
	 * freed comes with the number of bytes that it was taken with. */
	void *(*alloc)(struct gale_allocator *self, size_t bytes);
	void (*free)(struct gale_allocator *self, void *memory, size_t bytes);
};

/* How much a line of the log matters. */
enum gale_level {
	GALE_LEVEL_INFO,    /* all is well, or well again */
	GALE_LEVEL_WARNING, /* it works, and promises less than it could */
	GALE_LEVEL_ERROR,   /* asks are not decided by the rule, or soon will not be */
};
GALE_API const char *gale_level_name(enum gale_level level); /* "info", ... */

struct gale_log {
	/* source is "store URL", without user, password and options, or "limiter NAME".
	 * A line has no end of line, and neither keys nor what is secret in it. */
	void (*write)(struct gale_log *self, enum gale_level level, const char *source,
	              const char *line);
};
struct gale_clock {
	/* Microseconds since 1970 UTC.  Time may stand still or step back: decisions
	 * then go on from the latest time that their part of the store has seen. */
	uint64_t (*now_us)(struct gale_clock *self);
	/* Nanoseconds since this node started, or so: they never go back, count while the
	 * machine sleeps, and are below 2^59 when a runtime is opened.  Leases and
	 * deadlines are measured with them.  NULL: CLOCK_BOOTTIME. */
	uint64_t (*boot_ns)(struct gale_clock *self);
};

/* May grow. */
struct gale_config {
	uint32_t shards;      /* actors that answer what could not be answered at once;
	                         0: one for each processor */
	uint32_t pending_max; /* asks of one seat that may be pending; 0: 256 */
	uint32_t max_keys;    /* keys that this node knows leases or denials of, rounded
	                         up for each shard; 0: 65536 */
	uint32_t
	    poll_us; /* each shard's thread, and each call that waits, looks so long
	                     for what is next, each time before it sleeps; 0: not at all.
	                     What comes meanwhile comes sooner by what it takes to wake a
	                     thread.  For machines with processors to spare: where others
	                     keep them, who polls rests for 100 ms.  At most 10,000 */
	bool turns;  /* no threads: the host calls gale_turn from a loop of its own */
	struct gale_allocator *allocator; /* NULL: malloc and free */
	struct gale_log *log;             /* NULL: say nothing */
	struct gale_clock *clock; /* NULL: CLOCK_BOOTTIME, set to UTC when opened */
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};

struct gale_runtime;

/* config may be NULL for all defaults. */
GALE_API enum gale_err gale_runtime_open_sized(const struct gale_config *config,
                                               size_t config_bytes,
                                               struct gale_runtime **ret_runtime);
static inline enum gale_err gale_runtime_open(const struct gale_config *config,
                                              struct gale_runtime **ret_runtime)
{
	return gale_runtime_open_sized(config, sizeof(*config), ret_runtime);
}

/* From here on every ask is denied with GALE_WHY_CLOSED.  Pending asks are answered
 * first.  NULL is allowed and does nothing; closing twice is a broken contract. */
GALE_API void gale_runtime_close(struct gale_runtime *runtime);

/* A runtime opened with .turns does its work here: call it when the descriptor is
 * readable, and when gale_turn_after_us has passed.  Returns how much was done; 0 when
 * there was nothing to do, or another thread is at it.  Calls that wait take turns
 * themselves; when the host's clock stands still and there is nothing to do, they are
 * late at once.  With threads: 0, -1 and GALE_NEVER. */
GALE_API uint64_t gale_turn(struct gale_runtime *runtime);
GALE_API int gale_turn_fd(struct gale_runtime *runtime);
GALE_API uint64_t gale_turn_after_us(struct gale_runtime *runtime);

/* Called once, from the thread that found a broken invariant, after every runtime of
 * this library has been fenced and before the process is aborted.  A hook that does not
 * return keeps the process alive, with every ask denied; such a process should end
 * soon, and without closing its runtimes, which may wait for the broken thread. */
GALE_API void gale_on_panic(void (*hook)(const char *what));

/* ---- Stores ---------------------------------------------------------------------- */

/*
 *     memory: or memory:NAME                        in this process
 *     redis://[user[:password]@]host[:port][/db][?prefix=NAME]
 *     redis:///path/to/socket[?db=N&prefix=NAME]
 *     redis+sentinel://[user[:password]@]host[:port][,...]/service[?db=N&prefix=NAME]
 *         the sentinels must tell addresses, and not names
 *     redis+cluster://[user[:password]@]host[:port][,...][?prefix=NAME]
 *         durable=N, of any Redis: what is granted is believed when N replicas have it, so
 *         that one of them can take over without a quarantine; the same for all who share
 *         a prefix (spec/decisions/0014-durable.md)
 *     postgres://[user[:password]@]host[:port]/database[?libpq's options]
 *
 * A server is connected to when it is first asked, and again when it is lost.  Its name is
 * looked up here, which may take a while, and again when it has been lost, by a thread that
 * lasts as long as that takes; to close the store is to wait for it.  A name that is not
 * found is like a server that is down: the store opens, the log says so, and the name is
 * looked up again every five seconds while the store is asked.
 *
 * "memory:" is yours alone, even within the process; "memory:NAME" is shared by all in
 * this process who name it, and is forgotten when the last of them has closed it (with
 * leases: soon after, when what is left of them has been given back).  The
 * first opener of a name decides for all of them: max_keys, and the allocator and the
 * clock of its runtime.
 */
/* May grow. */
struct gale_store_config {
	const char *url;        /* NULL: "memory:" */
	uint64_t max_keys;      /* of memory; 0: 1,000,000 */
	uint64_t quarantine_us; /* of a server that may have forgotten what it granted:
	                           nothing is granted until that is over, at most so
	                           long; 0: a minute.  Asks are GALE_WHY_QUARANTINE until
	                           then.  Of a window that is longer it is told by nodes
	                           that lease what they know meanwhile; the rest may be
	                           granted again */
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};

struct gale_store;

/* config may be NULL for all defaults. */
GALE_API enum gale_err gale_store_open_sized(struct gale_runtime *runtime,
                                             const struct gale_store_config *config,
                                             size_t config_bytes,
                                             struct gale_store **ret_store);
static inline enum gale_err gale_store_open(struct gale_runtime *runtime,
                                            const struct gale_store_config *config,
                                            struct gale_store **ret_store)
{
	return gale_store_open_sized(runtime, config, sizeof(*config), ret_store);
}
GALE_API void gale_store_close(struct gale_store *store);

/* Is it the URL of a store, NULL included?  What gale_store_open would say of it: GALE_ERR_OK,
 * or why not, and then *ret_why is a line that names the part which is wrong, such as
 * "url: option prefx is not known; there are db, prefix, durable, sentinel_password".  It is
 * cut if it needs more than room bytes; 192 are enough; with a room of 0 ret_why may be NULL.
 * The line has no user and no password of the URL in it.  Nothing is looked up, and no
 * server is asked.  gale_store_open writes the same line to the log. */
GALE_API enum gale_err gale_url_check(const char *url, char *ret_why, size_t room);

/* May grow. */
struct gale_counts {
	uint64_t keys;  /* held now; those as good as new are dropped within a second */
	uint64_t steps; /* decisions made */
	uint64_t full;  /* refused because max_keys were in use */
	uint64_t memory;  /* refused because there was no memory */
	uint64_t changed; /* refused because the key lives under another kind of rule */
	uint64_t broken; /* refused because a strategy's ruling was out of its bounds */
	uint64_t expired; /* keys dropped because they were as good as new */
	uint64_t leases;  /* granted; one that was asked for twice counts twice */
	uint64_t returns; /* of leases, given back; counted in the same way */

	/* Of a server; the others are then what this runtime asked it for, and keys, full,
	 * memory and expired are 0. */
	uint64_t round_trips; /* calls that it has answered, of up to 64 asks each */
	uint64_t connects;    /* connections that were ready for use */
	uint64_t failures;    /* ends of connections, and attempts in vain */
	uint64_t wrong;       /* answers that could not be believed */
	uint64_t contended;   /* asks given up after 64 tries, mostly as others kept
	                         changing the key; they were GALE_WHY_BUSY */
	uint64_t
	    quarantined; /* asks that got nothing from a server that may have forgotten
	                         what it granted: GALE_WHY_QUARANTINE, or remembered as that */
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};
GALE_API enum gale_err gale_store_stats_sized(struct gale_store *store,
                                              struct gale_counts *ret_stats,
                                              size_t stats_bytes);
static inline enum gale_err gale_store_stats(struct gale_store *store,
                                             struct gale_counts *ret_stats)
{
	return gale_store_stats_sized(store, ret_stats, sizeof(*ret_stats));
}

/* ---- Limiters -------------------------------------------------------------------- */

enum gale_mode {
	GALE_STRICT,      /* every decision is the store's */
	GALE_CACHED_DENY, /* so is every allow; a denial is remembered until its retry time,
	                     for its cost and above */
	GALE_LEASED,      /* the store lends units, and this node decides from them */
};

/* How many units to lease at a time. */
enum gale_sizing {
	GALE_SIZE_LEARNED, /* from what was asked for in windows before */
	GALE_SIZE_FIXED,   /* batch units, or fewer when there are not so many */
	GALE_SIZE_EOQ,     /* where order_cost and strand_penalty balance */
	GALE_SIZE_HEDGE, /* between that and what the host predicts: whichever costs less */
};

/* What the host expects a key to ask for in the window that begins; 0: no idea.  Called
 * by a shard before it asks the store, one call at a time for each key. */
struct gale_predictor {
	uint64_t (*demand)(struct gale_predictor *self, const void *key,
	                   size_t key_len);
};

/*
 * How units are leased; zero is good.
 *
 * Windows: the sum of what all nodes admit in a window of the store is at most the limit,
 * whatever messages are lost, late or doubled, as long as no node's clock, and not the
 * store's, runs drift_ppm fast or slow.  gcra and token bucket: in any time t at most
 * burst + t/T, and what is leased and not yet spent.  Pacers: places in the queue are
 * booked ahead, and are as far apart as the rule says, by the node's clock.  The other
 * rules, and windows below a millisecond, cannot be leased.
 *
 * The first ask of a key, and each that finds no credit, is GALE_PENDING while its shard
 * asks the store.  One lease is at most 1,048,575 units; a cost above that is decided by
 * the store.  Of an answer from credit, remaining is what is left where it was taken from, and
 * reset_after_us how long that lives.
 *
 * When the store's clock has jumped forward by more than a second against the node's, as
 * it was set, or the node's stood still, it is not known which windows are over.  A shard
 * that hears of it drops what it has leased from the limiter's windows and believes no
 * answer for as long as a window, but for a second at least and a minute at most: asks
 * are GALE_WHY_DOWN, and on_outage decides.  A window that is not over by the node's clock
 * then makes answers about the next one GALE_WHY_WRONG until it is.  So whatever a store
 * says, a node admits no more than the limit in a window of a key, and two windows for
 * each such pause at most, besides those that go by on its own clock.  Not so for monthly
 * quotas, and in the other modes, where each call is the store's to decide.  Clocks of a
 * cluster's servers that differ by more than a second are such jumps, too.
 */
struct gale_leasing {
	enum gale_sizing sizing;
	uint64_t batch;                   /* fixed */
	struct gale_predictor *predictor; /* hedge; it must outlive the runtime */
	double order_cost;                /* of a round trip, and ... */
	double strand_penalty;            /* ... of a unit not used; both 0: 20 and 1 */
	uint64_t max_size;                /* 0: 1,000,000 */
	uint64_t patience_us; /* how long an ask may wait for the store; 0: 100 ms */
	uint32_t drift_ppm;   /* 0: 500 */
	/* Windows, fixed size: what is left of a window may be spent in later ones.  In
	 * calls of cost 1 at most limit + nodes * (batch - 1) are then admitted in a
	 * window; limit + nodes * batch if answers come late. */
	bool carry_over;
	/* 0.  New fields go here, in place of the first of these. */
	uint64_t reserved[8];
};

/* What to answer when the rule cannot decide, for a reason that gale_why_is_outage. */
enum gale_on_outage {
	GALE_ON_OUTAGE_DENY,
	GALE_ON_OUTAGE_ALLOW,
	/* The same rule with a limit of outage_share, kept by this node alone, windows by
	 * its own clock: the fleet may then admit that much for each of its nodes, besides
	 * what the store has let through or lent. */
	GALE_ON_OUTAGE_SHARE,
};

/* What to do with a key that lives under a rule of another kind, or under another strategy:
 * what it has spent means nothing here. */
enum gale_on_other_rule {
	GALE_ON_OTHER_RULE_REFUSE,  /* GALE_WHY_CHANGED, until the key is over */
	GALE_ON_OTHER_RULE_RESTART, /* it begins anew; the first call that is allowed is
	                               GALE_WHY_RESTARTED */
};

/* May grow. */
struct gale_limiter_config {
	const char *name; /* keys of limiters with different names never meet */
	struct gale_rule rule;
	enum gale_mode mode;
	enum gale_on_outage on_outage;
	struct gale_store *store;
	struct gale_leasing lease; /* mode GALE_LEASED; else ignored */
	uint64_t outage_share;     /* with GALE_ON_OUTAGE_SHARE: from 1 to the limit */
	enum gale_on_other_rule on_other_rule;
	uint32_t reserved; /* 0 */
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};

struct gale_limiter;

GALE_API enum gale_err gale_limiter_open_sized(struct gale_runtime *runtime,
                                               const struct gale_limiter_config *config,
                                               size_t config_bytes,
                                               struct gale_limiter **ret_limiter);
static inline enum gale_err gale_limiter_open(struct gale_runtime *runtime,
                                              const struct gale_limiter_config *config,
                                              struct gale_limiter **ret_limiter)
{
	return gale_limiter_open_sized(runtime, config, sizeof(*config), ret_limiter);
}
GALE_API void gale_limiter_close(struct gale_limiter *limiter);

/*
 * Another limit, burst, rate or period, of the same kind of rule, while the limiter is in
 * use.  Nodes that still have the old rule may share the store meanwhile, and limiters of
 * one name with different rules may share a key.
 *
 * What was spent stays spent.  While several limits are in force, a window admits at most
 * the largest; once all nodes have the new one, and what was lent under the old one is
 * over, at most the new.  A key that has spent more than a new, smaller limit waits until
 * its window turns, or until so much has accrued.  With another period, what was used of a
 * window that reaches into the new one counts there in full.
 *
 * Calls that begin later may still be decided by the old rule until each shard has had a
 * turn.  On an error nothing changes.
 */
GALE_API enum gale_err gale_limiter_set_rule(struct gale_limiter *limiter,
                                             const struct gale_rule *rule);

/* ---- Seats ----------------------------------------------------------------------- */

struct gale_seat;

/* Once per thread. */
GALE_API enum gale_err gale_join(struct gale_runtime *runtime,
                                 struct gale_seat **ret_seat);

/* Pending asks of the seat are forgotten; what they take from a budget stays taken. */
GALE_API void gale_leave(struct gale_seat *seat);

/* ---- Asking ---------------------------------------------------------------------- */

/*
 * May cost units of key go through?  When the answer is GALE_PENDING, it comes later
 * to gale_seat_completions, with the tag.
 */
GALE_API struct gale_answer gale_ask(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, uint64_t cost, void *tag);

/* The same, but waits for the answer, for at most within_us.  Never GALE_PENDING.  When
 * it is late, the cost may have been taken all the same, unless within_us is 0. */
GALE_API struct gale_answer gale_wait(struct gale_seat *seat,
                                      struct gale_limiter *limiter, const void *key,
                                      size_t key_len, uint64_t cost,
                                      uint64_t within_us);

/* Many at once: several times faster than one by one for keys that are not in the cache,
 * and faster for most others.  Each is answered as gale_ask would, in ret_answers, which
 * lie apart from the questions; in which order units are taken for them, and of a hot key
 * where from, is not said. */
struct gale_question {
	const void *key;
	size_t key_len;
	uint64_t cost;
	void *tag;
};
GALE_API void gale_ask_many(struct gale_seat *seat, struct gale_limiter *limiter,
                            const struct gale_question *questions, size_t count,
                            struct gale_answer *ret_answers);

/* Begins to fetch what this node knows of a key, for a thread that will ask about it and
 * has something else to do before, such as a server that has just received a request.
 * Where a key is seldom in the cache an ask takes half as long after it; where it mostly
 * is, this is only one more call.  Changes no answer, and ignores what is no key. */
GALE_API void gale_prefetch(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len);

/* A key that is asked about often may be held: its asks skip hash and lookup, and what
 * this node knows of it is not evicted.  It belongs to its seat. */
struct gale_key;
GALE_API enum gale_err gale_key_open(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, struct gale_key **ret_key);
GALE_API void gale_key_close(struct gale_key *key);
GALE_API struct gale_answer gale_ask_key(struct gale_key *key, uint64_t cost,
                                         void *tag);

/* Reads the clock for all asks of the seat until the next tick; call it once in each
 * turn of your loop.  A call is then admitted at some instant between the last tick and
 * its return: tick often, as credit counts as alive until a tick shows that it is dead.  A
 * seat that has never ticked reads the clock for each ask. */
GALE_API void gale_tick(struct gale_seat *seat);

struct gale_completion {
	void *tag;
	struct gale_answer answer;
};

/* A descriptor for poll and its like: readable when completions may be waiting; -1 for
 * a seat that has left. */
GALE_API int gale_seat_fd(struct gale_seat *seat);

/* Takes up to max completions; returns how many.  Call it until it returns less. */
GALE_API size_t gale_seat_completions(struct gale_seat *seat,
                                      struct gale_completion *ret_completions,
                                      size_t max);

/* ---- Counters -------------------------------------------------------------------- */

/* May grow. */
struct gale_metric {
	const char *name;
	uint64_t value;
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};

/* What has happened in this runtime since it was opened; returns how many there are,
 * and fills in up to max of them. */
GALE_API size_t gale_metrics_sized(struct gale_runtime *runtime,
                                   struct gale_metric *ret_metrics, size_t metric_bytes,
                                   size_t max);
static inline size_t gale_metrics(struct gale_runtime *runtime,
                                  struct gale_metric *ret_metrics, size_t max)
{
	return gale_metrics_sized(runtime, ret_metrics, sizeof(*ret_metrics), max);
}

/* ---- Looking and correcting ------------------------------------------------------ */

/* None of these counts as a call.  All wait at most within_us for the store. */

/* What the store would say to a call of cost 1 now, whatever on_outage is.  With leases, this
 * node may know better: it may have units in hand, or remember a denial. */
GALE_API enum gale_err gale_peek(struct gale_seat *seat, struct gale_limiter *limiter,
                                 const void *key, size_t key_len, uint64_t within_us,
                                 struct gale_answer *ret_answer);

/* How many calls of this cost the store would let pass now, and when more. */
GALE_API enum gale_err gale_forecast(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, uint64_t cost, uint64_t within_us,
                                     struct gale_outlook *ret_forecast);

/* Forgets the key: its next call finds everything available.  What other nodes, or other
 * limiters of the name, have leased of it or remember stays good until its window turns.
 *
 * A key that was asked about while the store's clock was far ahead keeps the window of
 * that time until the clock gets there again: when that is used up, answers speak of one
 * more window each time, and this ends it. */
GALE_API enum gale_err gale_reset(struct gale_seat *seat, struct gale_limiter *limiter,
                                  const void *key, size_t key_len, uint64_t within_us);

/*
 * Gives back the place in a pacer's queue that *answer booked, if its time has not come;
 * another call may then take it.  The cost must be the one that was booked.  Clears
 * answer->slot unless it says GALE_ERR_BUSY, so that a place is given back once.
 */
GALE_API enum gale_err gale_cancel(struct gale_seat *seat, struct gale_limiter *limiter,
                                   const void *key, size_t key_len, uint64_t cost,
                                   uint64_t within_us, struct gale_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
