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
 * In an event loop use gale_ask, which may answer GALE_PENDING.  gale_seat_completions
 * then returns the answer when it has come.
 *
 * Threads   A seat is a thread's handle.  Functions that take a seat or a gale_key are
 *           for the thread that joined (debug builds check this).  All others may be
 *           called from any thread at any time, with two exceptions: do not use a
 *           limiter or a store while it is being closed, and do not open anything from
 *           a runtime while it is being closed.  Do not cancel a thread
 *           (pthread_cancel) while it is inside gale.
 * Blocking  gale_ask never waits for a store, a lock or another thread.  With a
 *           "memory:" store it also does the store's work, which takes longer in two
 *           cases.  A new key needs memory, and the store may move up to 160 other keys
 *           to make room.  A sliding log reads a time stamp for each admission of its
 *           key.  gale_wait, gale_peek, gale_forecast, gale_reset and gale_cancel wait
 *           for at most the time that they are given.  The last gale_store_close of a
 *           "memory:" store takes longer if the store has many keys: it frees them one
 *           by one.
 * Memory    Zero a configuration before you fill it.  Configurations, names and keys
 *           are copied.  Handles belong to the library; each is good until it is
 *           closed, and closing NULL does nothing.  A runtime's memory is freed when it
 *           and everything opened from it are closed, in any order.  A seat takes
 *           about half a kilobyte for each ask that may be pending.
 * Errors    Setting up can fail, and says so with an enum gale_err.  Asking cannot:
 *           there is always an answer, and its .why tells where it comes from.  If the
 *           program or its configuration has a mistake, such as a closed limiter or a
 *           key that another kind of rule has written, the answer is a denial.
 * Limits    Keys are 1 to GALE_KEY_MAX bytes of any value, names 1 to GALE_NAME_MAX.  A
 *           process has at most GALE_RUNTIMES_MAX runtimes at a time.  A closed runtime
 *           counts until everything that was opened from it is closed, too.
 * Process   gale sets no signal handlers, writes nothing to stdout or stderr, and
 *           closes its descriptors on exec.  Its threads block all signals.  They inherit
 *           the processor affinity and the priority of the thread that opens the runtime.
 *           After fork() the child may not use its parent's handles: all its asks are
 *           denied, since its parent spends the same units.  The child may open a
 *           runtime and stores of its own.
 *           A program that filters system calls (seccomp) should allow membarrier, or
 *           set its filter before it opens a runtime.  If membarrier is refused from the
 *           start, asks take a little longer.  If it is refused later, gale panics
 *           (gale_on_panic).
 * ABI       A program runs with any library of the same SONAME (libgale.so.0) that is not
 *           older than the gale.h that the program was compiled with.  Within a SONAME
 *           no function is removed, and no field and no enum number changes its
 *           meaning.  Structs that say "May grow" get new fields at their end, and 0 in a
 *           new field means the former behaviour.  Every other struct (gale_rule,
 *           gale_answer, gale_outlook, the hooks) changes only with the SONAME.  A newer
 *           program runs with an older library if it leaves the new fields 0; else it
 *           gets GALE_ERR_SIZE.  A function or field that a later SONAME removes is
 *           marked deprecated, here and in CHANGELOG.md, at least one minor version
 *           before that.  Inline functions pass the size of a struct that may grow.
 *           From another language call gale_runtime_open_sized and the other functions
 *           that end in _sized, with the size of the struct as you declare it there.
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

/* Functions of the host program (hooks) that gale calls.  Each of these structs must
 * outlive every runtime and store that was opened with it.  A store "memory:name" uses
 * the hooks of its first opener until its last opener has closed it.  Several threads may
 * call a hook at once, and gale may hold locks meanwhile: a hook must not call gale. */
struct gale_allocator {
	/* bytes is not 0.  The memory must be aligned as malloc's.  alloc returns NULL
	 * if there is no memory.  free gets the same number of bytes as alloc did. */
	void *(*alloc)(struct gale_allocator *self, size_t bytes);
	void (*free)(struct gale_allocator *self, void *memory, size_t bytes);
};

/* How much a line of the log matters. */
enum gale_level {
	GALE_LEVEL_INFO,    /* all is well, or well again */
	GALE_LEVEL_WARNING, /* gale works, but a promise is weaker than it could be */
	GALE_LEVEL_ERROR,   /* asks are not decided by the rule, or soon will not be */
};
GALE_API const char *gale_level_name(enum gale_level level); /* "info", ... */

struct gale_log {
	/* source is "store URL", without user, password and options, or "limiter NAME".
	 * A line does not end with a newline, and contains no keys and no secrets. */
	void (*write)(struct gale_log *self, enum gale_level level, const char *source,
	              const char *line);
};
struct gale_clock {
	/* Microseconds since 1970 UTC.  The clock may stand still or step back; gale
	 * then uses the latest time that it has seen. */
	uint64_t (*now_us)(struct gale_clock *self);
	/* Nanoseconds since about the start of this machine.  The clock must never step
	 * back, must run while the machine sleeps, and must be below 2^59 when a
	 * runtime is opened.  Leases and deadlines are measured with it.  NULL:
	 * CLOCK_BOOTTIME. */
	uint64_t (*boot_ns)(struct gale_clock *self);
};

/* May grow. */
struct gale_config {
	uint32_t shards;      /* the keys are divided among so many shards, each with a
	                         thread of its own; 0: one for each processor */
	uint32_t pending_max; /* asks of one seat that may be pending; 0: 256 */
	uint32_t max_keys;    /* keys whose leases and denials this node remembers,
	                         rounded up to a multiple of shards; 0: 65536 */
	/* How many microseconds a thread of gale, or a call that waits, polls before it
	 * sleeps; at most 10,000; 0: it does not poll.  Polling saves the time to wake
	 * a thread, and costs processor time: use it on machines with processors to
	 * spare.  When other threads want the processor, polling pauses for 100 ms. */
	uint32_t poll_us;
	bool turns; /* no threads: the host calls gale_turn from a loop of its own */
	struct gale_allocator *allocator; /* NULL: malloc and free */
	struct gale_log *log;             /* NULL: nothing is logged */
	/* NULL: gale reads UTC once, when the runtime is opened, and from then on adds the
	 * time that has passed by CLOCK_BOOTTIME. */
	struct gale_clock *clock;
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

/* Answers all pending asks.  From then on every ask is denied with GALE_WHY_CLOSED.
 * Closing NULL does nothing.  Closing any handle twice is a bug of the program, like
 * free() twice; gale panics if it notices. */
GALE_API void gale_runtime_close(struct gale_runtime *runtime);

/* A runtime opened with .turns does its work in gale_turn.  Call gale_turn when the
 * descriptor gale_turn_fd is readable, and when the time gale_turn_after_us has passed.
 * gale_turn returns how much was done: 0 if there was nothing to do, or if another thread
 * is in gale_turn.  Calls that wait (gale_wait and others) take turns themselves.  With a
 * boot_ns of the host and a "memory:" store they give up at once (GALE_WHY_LATE) when
 * there is nothing to do, since that clock may stand still.  In a runtime with threads
 * the three functions return 0, -1 and GALE_NEVER. */
GALE_API uint64_t gale_turn(struct gale_runtime *runtime);
GALE_API int gale_turn_fd(struct gale_runtime *runtime);
GALE_API uint64_t gale_turn_after_us(struct gale_runtime *runtime);

/* Sets a function that is called when gale finds a fault in itself: once, by the thread
 * that found it, after all runtimes were fenced (every ask is denied) and before the
 * process is aborted.  If the hook does not return, the process lives on with every ask
 * denied.  The host should then end the process soon, and not close its runtimes:
 * closing may wait for the thread that found the fault. */
GALE_API void gale_on_panic(void (*hook)(const char *what));

/* ---- Stores ---------------------------------------------------------------------- */

/*
 *     memory: or memory:NAME                        in this process
 *     redis://[user[:password]@]host[:port][/db][?prefix=NAME]
 *     redis:///path/to/socket[?db=N&prefix=NAME]
 *     redis+sentinel://[user[:password]@]host[:port][,...]/service[?db=N&prefix=NAME]
 *         the sentinels must name servers by address, and not by host name
 *     redis+cluster://[user[:password]@]host[:port][,...][?prefix=NAME]
 *     postgres://[user[:password]@]host[:port]/database[?libpq's options]
 *
 * Every Redis URL may have the option durable=N: a grant counts only when N replicas
 * have it.  A replica that takes over then needs no quarantine (quarantine_us below).
 * All nodes of a prefix must use the same N (spec/decisions/0014-durable.md).
 *
 * gale connects to a server on the first ask, and again when the connection is lost.
 * gale_store_open looks up the server's name, which may take a while.  After each lost
 * connection a thread looks the name up again; gale_store_close waits for that.  A name
 * that is not found is like a server that is down: the store opens, the log says so,
 * and the name is looked up every five seconds as long as the store is asked.
 *
 * Each open of "memory:" makes a new store.  All opens of "memory:NAME" in this process
 * share one store.  It is freed when the last of them has closed it, and all leased units
 * have been given back.  The first open of the name determines max_keys, the allocator
 * and the clock.
 */
/* May grow. */
struct gale_store_config {
	const char *url;   /* NULL: "memory:" */
	uint64_t max_keys; /* "memory:" only; 0: 1,000,000 */
	/* How long the quarantine of a server lasts at most; 0: a minute.  A server that
	 * may have lost its counts is in quarantine from when it can be reached again.
	 * It then grants no units until the window that was open has ended, or until
	 * quarantine_us is over, whichever comes first.  Meanwhile asks are
	 * GALE_WHY_QUARANTINE.  If the window outlasts the quarantine, units that were
	 * granted before the loss may be granted a second time, except those that leasing
	 * nodes have reported to the server during the quarantine.  A Redis primary that
	 * becomes a replica, and is primary again within 20 ms, gets no quarantine. */
	uint64_t quarantine_us;
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

/* Checks the URL of a store as gale_store_open would, but looks up no name and asks no
 * server.  NULL is a good URL ("memory:").  If the URL is wrong, ret_why gets a line
 * that names the wrong part, such as "url: option prefx is not known; there are db,
 * prefix, durable, sentinel_password".  The line has no user and no password in it.  A
 * line that is longer than room bytes is cut; 192 bytes are always enough.  If room is 0,
 * ret_why may be NULL.  gale_store_open writes the same line to the log. */
GALE_API enum gale_err gale_url_check(const char *url, char *ret_why, size_t room);

/* May grow. */
struct gale_counts {
	uint64_t keys;    /* held now; a key is dropped within a second of expiring */
	uint64_t steps;   /* decisions made */
	uint64_t full;    /* refused because max_keys were in use */
	uint64_t memory;  /* refused because there was no memory */
	uint64_t changed; /* refused because another kind of rule has written the key */
	uint64_t broken; /* refused because a strategy's ruling was out of its bounds */
	uint64_t expired; /* keys dropped after they expired; such a key begins anew */
	uint64_t leases;  /* leases granted; one that is requested again counts again */
	uint64_t returns; /* leases given back; one that is sent again counts again */

	/* The counters below are for a server only.  With a server, those above count
	 * what this runtime asked it for; keys, full, memory and expired are 0. */
	uint64_t round_trips; /* messages that it has answered, of up to 64 asks each */
	uint64_t connects;    /* connections that were ready for use */
	uint64_t failures;    /* connections lost, and failed attempts to connect */
	uint64_t wrong;       /* answers that could not be true */
	uint64_t contended; /* asks given up after 64 tries, mostly because others kept
	                         changing the key; the answer was GALE_WHY_BUSY */
	uint64_t quarantined; /* asks and lease requests that got nothing because of a
	                         quarantine */
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
	GALE_STRICT,      /* the store makes every decision */
	GALE_CACHED_DENY, /* the store makes every ALLOW.  After a denial, this node
	                     denies calls that cost as much or more, until the
	                     denial's retry time */
	GALE_LEASED,      /* the store lends units, and this node decides from them */
};

/* How many units to lease at a time. */
enum gale_sizing {
	GALE_SIZE_LEARNED, /* from the demand in earlier windows */
	GALE_SIZE_FIXED,   /* batch units, or what is left if that is less */
	GALE_SIZE_EOQ,     /* the economic order quantity: the size at which round trips
	                      (order_cost) and idle units (strand_penalty) cost the same */
	/* A mean of EOQ's size and a size from the predictor: the one that has cost less so
	 * far weighs more.  docs/sizing.md says what a bad prediction costs. */
	GALE_SIZE_HEDGE,
};

/* demand returns how many units of the key this node will probably be asked for in the
 * window that begins; 0: unknown.  A shard calls it before it asks the store.  No two
 * threads call it for one key at the same time. */
struct gale_predictor {
	uint64_t (*demand)(struct gale_predictor *self, const void *key,
	                   size_t key_len);
};

/*
 * How units are leased; all zero is a good choice.
 *
 * Windows and quotas: all nodes together admit at most the limit in a window of the
 * store, as long as no clock runs more than drift_ppm fast or slow.  GCRA and token
 * buckets: let T be the time in which one unit accrues.  In any span of time t all nodes
 * admit at most burst + t/T units, plus the units that were leased and not yet spent when
 * the span began.  Pacers: a node reserves places in the queue before it needs them.
 * The other rules, and windows below a millisecond, cannot be leased.  docs/leasing.md
 * has the details, and says what happens when a clock jumps.
 *
 * The credit of a key is the leased units that this node can still spend.  An ask that
 * finds no credit, such as the first of a key, is GALE_PENDING while its shard asks the
 * store.  One lease is at most 1,048,575 units; the store decides an ask that costs
 * more.
 *
 * In an answer from credit (GALE_WHY_CREDIT), reset_after_us is how long the credit
 * lives, and remaining estimates the units that all nodes can still spend.  It is the
 * units in hand, and those that the store had left when it last answered this node.
 * Other nodes may have taken units since that answer.  The estimate is too high by at
 * most the units that the store has lent to other nodes since.  It is too low by at most
 * the sum of
 *     the units that other nodes hold unspent,
 *     the units that were given back or have accrued since, and
 *     the units that other threads of this node have set aside for themselves.
 */
struct gale_leasing {
	enum gale_sizing sizing;
	uint64_t batch;                   /* fixed: units of each lease */
	struct gale_predictor *predictor; /* hedge; it must outlive the runtime */
	/* eoq, hedge: what a round trip costs, and what an idle unit costs, in any unit of
	 * your own.  If both are 0, they are 20 and 1. */
	double order_cost;
	double strand_penalty;
	uint64_t max_size;    /* units of the largest lease; 0: 1,000,000 */
	uint64_t patience_us; /* how long an ask may wait for the store; 0: 100 ms */
	uint32_t drift_ppm;   /* how wrong the speed of a clock may be; 0: 500 */
	/* For windows with a fixed batch: leased units that are left over in one window
	 * may be spent in later ones.  A window then admits at most limit + nodes * (batch - 1)
	 * calls of cost 1, or limit + nodes * batch if answers of the store come late. */
	bool carry_over;
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[8];
};

/* The answer in an outage.  gale_why_is_outage tells which reasons are outages. */
enum gale_on_outage {
	GALE_ON_OUTAGE_DENY,
	GALE_ON_OUTAGE_ALLOW,
	/* This node decides alone, by the same rule with the limit outage_share and by
	 * its own clock.  Each node may then admit outage_share in addition to the
	 * calls that the store has allowed and the units that the store has lent. */
	GALE_ON_OUTAGE_SHARE,
};

/* The answer for a key that another kind of rule, or another strategy, has written.
 * This limiter cannot read the key's state. */
enum gale_on_other_rule {
	GALE_ON_OTHER_RULE_REFUSE,  /* GALE_WHY_CHANGED, until the key expires */
	GALE_ON_OTHER_RULE_RESTART, /* the key begins anew; the first call that is
	                               allowed is GALE_WHY_RESTARTED */
};

/* May grow. */
struct gale_limiter_config {
	const char *name; /* limiters of one name share their keys; others never do */
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
 * Gives a limiter that is in use another limit, burst, rate or period; the kind of rule
 * stays.  Nodes with the old rule may go on sharing the store meanwhile, and limiters
 * of one name with different rules may share a key.
 *
 * Units that were spent stay spent.  While several limits are in force, a window admits
 * at most the largest of them.  The new limit alone holds once all nodes have it and
 * the leases under the old one have ended.  With a smaller limit that is soon, since
 * nodes then give their leases back.  A key that has spent more than the new limit is
 * denied until its window ends, or until enough has accrued.
 *
 * If the period changes, the units spent in the open window count in full in the new
 * window that overlaps it.  Units of earlier windows do not count.  Do not use two
 * periods side by side for long: whenever the shorter window ends, the longer one loses
 * its count.  Together they can then admit the sum of what each would admit alone.
 *
 * Until each shard has had a turn, the old rule may decide some calls.  On an error
 * nothing changes.
 */
GALE_API enum gale_err gale_limiter_set_rule(struct gale_limiter *limiter,
                                             const struct gale_rule *rule);

#define GALE_WHY_ROOM 32 /* above all numbers of enum gale_why, now and later */

/* How many asks of one limiter got which answer.  An ask is counted once, when its
 * answer is returned; a pending ask, when gale_seat_completions returns the answer.
 * Asks with a handle that is NULL or closed count for no limiter.  May grow. */
struct gale_limiter_counts {
	uint64_t allowed; /* the sum of allowed_by */
	uint64_t denied;  /* the sum of denied_by */
	uint64_t dropped; /* asks whose seat left before their answer was returned */
	uint64_t allowed_by[GALE_WHY_ROOM]; /* by the answer's why */
	uint64_t denied_by[GALE_WHY_ROOM];
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};
GALE_API enum gale_err gale_limiter_stats_sized(struct gale_limiter *limiter,
                                                struct gale_limiter_counts *ret_stats,
                                                size_t stats_bytes);
static inline enum gale_err gale_limiter_stats(struct gale_limiter *limiter,
                                               struct gale_limiter_counts *ret_stats)
{
	return gale_limiter_stats_sized(limiter, ret_stats, sizeof(*ret_stats));
}

/* ---- Seats ----------------------------------------------------------------------- */

struct gale_seat;

/* Makes the seat of this thread.  Call it once per thread. */
GALE_API enum gale_err gale_join(struct gale_runtime *runtime,
                                 struct gale_seat **ret_seat);

/* Drops the pending asks of the seat; the units that they take stay taken. */
GALE_API void gale_leave(struct gale_seat *seat);

/* ---- Asking ---------------------------------------------------------------------- */

/*
 * Asks whether a call of this cost, in units, may go through for this key.  If the
 * verdict is GALE_PENDING, gale_seat_completions returns the answer later, with this tag.
 */
GALE_API struct gale_answer gale_ask(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, uint64_t cost, void *tag);

/* The same, but waits for the answer, for at most within_us; the verdict is never
 * GALE_PENDING.  When the answer is late (GALE_WHY_LATE), the units may have been taken
 * all the same, unless within_us is 0. */
GALE_API struct gale_answer gale_wait(struct gale_seat *seat,
                                      struct gale_limiter *limiter, const void *key,
                                      size_t key_len, uint64_t cost,
                                      uint64_t within_us);

/* Asks many questions at once: several times faster than one by one for keys that are
 * not in the processor's cache, and faster for most others.  Each is answered as by
 * gale_ask.  ret_answers must not overlap the questions.  The order in which units are
 * taken is not defined. */
struct gale_question {
	const void *key;
	size_t key_len;
	uint64_t cost;
	void *tag;
};
GALE_API void gale_ask_many(struct gale_seat *seat, struct gale_limiter *limiter,
                            const struct gale_question *questions, size_t count,
                            struct gale_answer *ret_answers);

/* Begins to fetch the memory that an ask about this key will read.  Use it in a thread
 * that does something else before it asks, such as a server that has just received a
 * request.  It halves the time of an ask whose key is not in the processor's cache, and
 * is of no use for other keys.  It changes no answer. */
GALE_API void gale_prefetch(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len);

/* Makes a handle of a key that is asked about often.  Its asks skip the hash and the
 * look-up, and this node does not forget the key.  The handle belongs to the seat. */
struct gale_key;
GALE_API enum gale_err gale_key_open(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, struct gale_key **ret_key);
GALE_API void gale_key_close(struct gale_key *key);
GALE_API struct gale_answer gale_ask_key(struct gale_key *key, uint64_t cost,
                                         void *tag);

/* Reads the clock once for all asks of the seat until the next gale_tick.  Call it in each
 * turn of your loop.  An ask then uses the time of the last tick: leased units count as
 * alive until a tick shows that they have expired.  So tick often.  A call counts as
 * admitted at some moment between the last tick and the return of the ask.  On a seat
 * that never ticks, each ask reads the clock. */
GALE_API void gale_tick(struct gale_seat *seat);

struct gale_completion {
	void *tag;
	struct gale_answer answer;
};

/* A descriptor for poll and its like.  It is readable when completions may be waiting;
 * it is -1 for a seat that has left. */
GALE_API int gale_seat_fd(struct gale_seat *seat);

/* Takes up to max completions, and returns how many it took.  Call it until it returns
 * fewer than max. */
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

/* Counts of events in this runtime since it was opened.  Fills in up to max counters,
 * and returns how many there are.  docs/metrics.md says what each counts. */
GALE_API size_t gale_metrics_sized(struct gale_runtime *runtime,
                                   struct gale_metric *ret_metrics, size_t metric_bytes,
                                   size_t max);
static inline size_t gale_metrics(struct gale_runtime *runtime,
                                  struct gale_metric *ret_metrics, size_t max)
{
	return gale_metrics_sized(runtime, ret_metrics, sizeof(*ret_metrics), max);
}

/* Takes a text part by part, and puts it into memory of the host. */
struct gale_sink {
	/* Takes the next part of the text.  A part may end in the middle of a line, has no
	 * final 0, and is good only during the call.  After write has returned false, it
	 * is not called again. */
	bool (*write)(struct gale_sink *self, const char *text, size_t bytes);
};

/* Writes all counters of the runtime, its limiters (those of one name together), its
 * stores and its guards, as Prometheus reads them: "text/plain; version=0.0.4".
 * docs/metrics.md lists them.  Nothing can be opened or closed meanwhile, so the sink must
 * neither block nor call gale. */
GALE_API enum gale_err gale_metrics_write(struct gale_runtime *runtime,
                                          struct gale_sink *sink);

/* ---- Looking and correcting ------------------------------------------------------ */

/* These functions count as no call, and wait at most within_us for the store. */

/* Gives the answer that the store would give to a call of cost 1 now; on_outage is
 * ignored.  With leases, gale_ask may answer otherwise: from units in hand, or from a
 * remembered denial. */
GALE_API enum gale_err gale_peek(struct gale_seat *seat, struct gale_limiter *limiter,
                                 const void *key, size_t key_len, uint64_t within_us,
                                 struct gale_answer *ret_answer);

/* Gives how many calls of this cost the store would allow now, and when it would allow
 * more. */
GALE_API enum gale_err gale_forecast(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, uint64_t cost, uint64_t within_us,
                                     struct gale_outlook *ret_forecast);

/* Makes the store forget the key: its next call finds the whole limit available.  Other
 * nodes, and other limiters of the same name, keep their leases and remembered denials
 * until the window ends.
 *
 * A reset also repairs a key that was used while the store's clock was far ahead.  Without
 * a reset, such a key stays in that later window until the clock gets there. */
GALE_API enum gale_err gale_reset(struct gale_seat *seat, struct gale_limiter *limiter,
                                  const void *key, size_t key_len, uint64_t within_us);

/*
 * Gives back the place in a pacer's queue that *answer booked, if its time has not
 * come; another call may then take it.  The cost must be the one that was booked.
 * So that a place is given back only once, gale_cancel clears answer->slot.  It does not
 * clear it on GALE_ERR_BUSY, and on an error that is found before the store is asked.
 */
GALE_API enum gale_err gale_cancel(struct gale_seat *seat, struct gale_limiter *limiter,
                                   const void *key, size_t key_len, uint64_t cost,
                                   uint64_t within_us, struct gale_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
