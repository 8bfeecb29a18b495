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
 * In an event loop, use gale_ask.  If its verdict is GALE_PENDING, gale_seat_completions
 * returns the answer later.
 *
 * Words     An ask is one question: may a call of this cost, in units, go through for
 *           this key?  A limiter answers by its rule, and a store keeps the counts.  A
 *           node is one runtime, usually one process.  A lease is a loan of units from
 *           the store to a node.  The credit of a key is the leased units that the node
 *           can still spend.  rule.h has rules and answers, docs/words.md all words.
 * Threads   Only the thread that called gale_join may use the seat and its keys
 *           (gale_key_open).  Any thread may call all other functions at any time.  But
 *           do not use a limiter or a store while you close it, and open nothing in a
 *           runtime while you close the runtime.
 * Blocking  gale_ask never waits for a store, a lock or another thread.  With a "memory:"
 *           store it may do the work of the store itself.  Functions with a parameter
 *           within_us wait for at most that time.
 * Memory    Set a configuration to zero before you fill it.  gale copies configurations,
 *           names and keys.  Close each handle once, in any order.  Closing NULL does
 *           nothing.
 * Errors    Functions that set something up return an enum gale_err.  An ask always gets
 *           an answer, and the answer's why is its reason.  If the program makes a
 *           mistake, such as an ask with a closed limiter, the answer is a denial.
 * Limits    A key has 1 to GALE_KEY_MAX bytes, and a name 1 to GALE_NAME_MAX, of any
 *           value.  A process has at most GALE_RUNTIMES_MAX runtimes.
 * Process   gale writes nothing to stdout or stderr, and handles no signals.  After
 *           fork(), the child may not use its parent's handles.  docs/host.md has more
 *           on threads, memory, fork, seccomp, and loops of your own.
 * ABI       A program also runs with later libraries that have the same SONAME
 *           (libgale.so.0).  Structs marked "May grow" get new fields at the end; with 0
 *           in a new field, gale does what it did before.  Other structs change only with
 *           the SONAME.  docs/install.md explains this, and calls from other languages.
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

/* A hook is a function of your program that gale calls.  Several threads may call a hook
 * at once.  A hook must not call gale.  The struct of a hook must outlive every runtime
 * and every store that uses it. */
struct gale_allocator {
	/* bytes is not 0.  alloc returns memory that is aligned as malloc's, or NULL.
	 * free gets the same number of bytes as alloc did. */
	void *(*alloc)(struct gale_allocator *self, size_t bytes);
	void (*free)(struct gale_allocator *self, void *memory, size_t bytes);
};

/* How important a line of the log is. */
enum gale_level {
	GALE_LEVEL_INFO,    /* nothing is wrong, or a fault has ended */
	GALE_LEVEL_WARNING, /* gale works, but guarantees less than it could */
	GALE_LEVEL_ERROR,   /* calls are decided without their rule, or soon will be */
};
GALE_API const char *gale_level_name(enum gale_level level); /* "info", ... */

struct gale_log {
	/* source is "limiter NAME", or "store URL" without user, password and options.
	 * The line has no newline at its end, and contains no keys and no secrets. */
	void (*write)(struct gale_log *self, enum gale_level level, const char *source,
	              const char *line);
};
struct gale_clock {
	/* Microseconds since 1970 UTC.  If the clock steps back, gale uses the latest
	 * time that it has seen. */
	uint64_t (*now_us)(struct gale_clock *self);
	/* Nanoseconds since about the start of this machine; below 2^59 when a runtime is
	 * opened.  Leases and deadlines are measured with this clock.  It must never step
	 * back, and must run while the machine sleeps.  NULL: CLOCK_BOOTTIME. */
	uint64_t (*boot_ns)(struct gale_clock *self);
};

/* May grow. */
struct gale_config {
	uint32_t shards;      /* threads of gale, each for a part of the keys (a shard);
	                         0: one for each processor */
	uint32_t pending_max; /* how many asks of one seat may be pending; 0: 256 */
	uint32_t max_keys;    /* for how many keys this node keeps leases and denials,
	                         rounded up to a multiple of shards; 0: 65536 */
	/* How long threads of gale, and functions that wait, poll before they sleep; at
	 * most 10,000; 0: they do not poll.  Polling makes answers faster, and costs
	 * processor time: docs/host.md. */
	uint32_t poll_us;
	bool turns; /* no threads: your own loop calls gale_turn */
	struct gale_allocator *allocator; /* NULL: malloc and free, or mmap */
	struct gale_log *log;             /* NULL: nothing is logged */
	/* NULL: gale reads UTC when the runtime is opened, and then adds the time that
	 * CLOCK_BOOTTIME measures. */
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

/* Answers all pending asks.  Later asks are denied (GALE_WHY_CLOSED).  The memory of the
 * runtime is freed when everything that was opened in it is closed, too. */
GALE_API void gale_runtime_close(struct gale_runtime *runtime);

/* For runtimes opened with .turns.  gale_turn does the work that is due.  Call it when the
 * descriptor gale_turn_fd is readable, and after gale_turn_after_us microseconds at latest.
 * gale_turn returns 0 if there was nothing to do, or if another thread is inside it.  For
 * runtimes without .turns the functions return 0, -1 and GALE_NEVER. */
GALE_API uint64_t gale_turn(struct gale_runtime *runtime);
GALE_API int gale_turn_fd(struct gale_runtime *runtime);
GALE_API uint64_t gale_turn_after_us(struct gale_runtime *runtime);

/* Sets a hook for panics.  gale panics when it finds a fault in itself: it denies every
 * ask of every runtime (GALE_WHY_FENCED), calls the hook once, and aborts the process when
 * the hook returns.  If the hook does not return, it should soon end the process.  The
 * hook must not close runtimes. */
GALE_API void gale_on_panic(void (*hook)(const char *what));

/* ---- Stores ---------------------------------------------------------------------- */

/*
 *     memory: or memory:NAME                        in this process
 *     redis://[user[:password]@]host[:port][/db][?prefix=NAME]
 *     redis:///path/to/socket[?db=N&prefix=NAME]
 *     redis+sentinel://[user[:password]@]host[:port][,...]/service[?db=N&prefix=NAME]
 *         the sentinels must name servers by address, and not by host name
 *     redis+cluster://[user[:password]@]host[:port][,...][?prefix=NAME]
 *     rediss://, rediss+sentinel://, rediss+cluster://   the same in TLS
 *         [?ca=FILE&cert=FILE&key=FILE&servername=NAME], see docs/stores.md
 *     postgres://[user[:password]@]host[:port]/database[?libpq's options]
 *
 * Each gale_store_open of "memory:" makes a new store.  In a process, there is one store for
 * each "memory:NAME"; its first gale_store_open sets max_keys, allocator and clock.
 *
 * gale connects to a server on the first ask, and again when the connection is lost.
 * gale_store_open looks up the host name, which may take a while.  It also succeeds when
 * the name is not found or the server is down.  docs/stores.md has more, such as
 * durable=N, an option of all Redis URLs.
 */
/* May grow. */
struct gale_store_config {
	const char *url;   /* NULL: "memory:" */
	uint64_t max_keys; /* "memory:" only; 0: 1,000,000 */
	/* A server that may have lost its counts grants nothing until the current window
	 * ends, or until this time has passed; 0: a minute.  In this quarantine, asks
	 * are GALE_WHY_QUARANTINE.  If a window is longer than the quarantine, some of
	 * its units may be granted twice: docs/outages.md. */
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

/* Checks the URL of a store, but looks up no name and asks no server.  NULL means
 * "memory:".  If the URL is wrong, ret_why gets a line that names the wrong part, such as
 * "url: option prefx is not known; there are db, prefix, durable, sentinel_password".
 * The line contains no user and no password.  192 bytes are always enough; a line longer
 * than room is cut.  With room 0, ret_why may be NULL. */
GALE_API enum gale_err gale_url_check(const char *url, char *ret_why, size_t room);

/* Counts since the store was opened.  May grow. */
struct gale_counts {
	uint64_t keys;    /* held now; an expired key is dropped within a second */
	uint64_t steps;   /* decisions made */
	uint64_t full;    /* asks refused because max_keys were in use */
	uint64_t memory;  /* asks refused because there was no memory */
	uint64_t changed; /* asks refused because another kind of rule uses the key */
	uint64_t broken;  /* asks refused because a gale_strategy returned nonsense */
	uint64_t expired; /* keys dropped after they expired */
	uint64_t leases;  /* leases granted; a repeated request counts again */
	uint64_t returns; /* leases given back; a repeated request counts again */

	/* The counters below are for servers only.  For a server, the counters above
	 * count only what this runtime asks; keys, full, memory and expired are 0. */
	uint64_t round_trips; /* messages answered, each with up to 64 asks */
	uint64_t connects;    /* connections that were ready for use */
	uint64_t failures;    /* connections lost, and failed attempts to connect */
	uint64_t wrong;       /* answers that could not be true */
	uint64_t contended; /* asks given up after 64 tries, mostly because others kept
	                         changing the key; the answer was GALE_WHY_BUSY */
	uint64_t quarantined; /* asks and lease requests that got nothing because of a
	                         quarantine */
	uint64_t overloaded;  /* asks not sent, as the server would have answered too
	                         late; the answer was GALE_WHY_BUSY */
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
	                     itself denies calls of the key that cost as much or more,
	                     until retry_after_us of the denial has passed */
	GALE_LEASED,      /* the store lends units, and this node decides from them */
};

/* How many units a node leases at a time: docs/sizing.md. */
enum gale_sizing {
	GALE_SIZE_LEARNED, /* as many as the demand of earlier windows suggests */
	GALE_SIZE_FIXED,   /* batch units, or fewer if fewer are left */
	GALE_SIZE_EOQ,     /* the size at which round trips (order_cost) and idle units
	                      (strand_penalty) cost the same */
	GALE_SIZE_HEDGE,   /* a mean of EOQ's size and the predictor's */
};

/* demand is a hook that returns how many units of the key this node will probably need in
 * the window that begins; 0: unknown.  gale calls it before it asks the store for a lease,
 * but never in two threads at once for one key. */
struct gale_predictor {
	uint64_t (*demand)(struct gale_predictor *self, const void *key,
	                   size_t key_len);
};

/*
 * How units are leased.  You may leave all fields 0.  docs/leasing.md says what a leased
 * rule guarantees, and which rules can be leased.
 *
 * If the credit is enough for an ask, the answer is GALE_WHY_CREDIT.  Its remaining is an
 * estimate of the units that all nodes can still spend, and its reset_after_us is the time
 * until the credit expires.  If the credit is too small, gale_ask is GALE_PENDING while
 * gale asks the store.
 */
struct gale_leasing {
	enum gale_sizing sizing;
	uint64_t batch;                   /* fixed: units of each lease */
	struct gale_predictor *predictor; /* hedge; it must outlive the runtime */
	/* eoq, hedge: the cost of a round trip, and the cost of an idle unit.  Choose any
	 * measure, and use it for both.  If both are 0, they are 20 and 1. */
	double order_cost;
	double strand_penalty;
	uint64_t max_size;    /* units of the largest lease; 0: 1,000,000 */
	uint64_t patience_us; /* in every mode: how long an ask may wait for the store,
	                         at most an hour; 0: 100 ms */
	uint32_t drift_ppm;   /* how much too fast or slow a clock may run; 0: 500 */
	/* For windows and quotas with GALE_SIZE_FIXED: leased units of one window may be
	 * spent in later windows.  A window may then exceed the limit: docs/leasing.md. */
	bool carry_over;
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[8];
};

/* The answer of an ask whose reason is an outage (gale_why_is_outage). */
enum gale_on_outage {
	GALE_ON_OUTAGE_DENY,
	GALE_ON_OUTAGE_ALLOW,
	/* The same rule decides, with the limit outage_share.  Only this node counts these
	 * calls, by its own clock.  They come on top of what the store has granted. */
	GALE_ON_OUTAGE_SHARE,
};

/* What happens to a key that has counts of another kind of rule, or of another
 * gale_strategy.  This limiter cannot read such counts. */
enum gale_on_other_rule {
	GALE_ON_OTHER_RULE_REFUSE,  /* GALE_WHY_CHANGED, until the key expires */
	GALE_ON_OTHER_RULE_RESTART, /* the key gets a fresh limit; the first call that is
	                               allowed is GALE_WHY_RESTARTED */
};

/* May grow. */
struct gale_limiter_config {
	const char *name; /* on one store, limiters of one name share their counts */
	struct gale_rule rule;
	enum gale_mode mode;
	enum gale_on_outage on_outage;
	struct gale_store *store;
	struct gale_leasing lease; /* for GALE_LEASED; patience_us for every mode */
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

/* Gives a limiter in use another limit, burst, rate or period; the kind of rule stays.
 * Units that were spent stay spent; but with gale_custom, on_other_rule decides about keys
 * that have counts.  While nodes have different limits, a window admits at most the largest
 * of them.  On an error nothing changes.  Read docs/changing.md before you change a
 * period. */
GALE_API enum gale_err gale_limiter_set_rule(struct gale_limiter *limiter,
                                             const struct gale_rule *rule);

#define GALE_WHY_ROOM 32 /* enum gale_why is below this, also in later versions */

/* How many asks of one limiter got which answer.  An ask is counted when its answer is
 * returned to the program.  May grow. */
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

/* Makes a seat, the handle with which this thread asks.  One is enough for a thread. */
GALE_API enum gale_err gale_join(struct gale_runtime *runtime,
                                 struct gale_seat **ret_seat);

/* Closes the seat.  The answers of its pending asks never come, but the store may still
 * count their units. */
GALE_API void gale_leave(struct gale_seat *seat);

/* ---- Asking ---------------------------------------------------------------------- */

/* Asks whether a call of this cost may go through for this key.  If the verdict is
 * GALE_PENDING, gale_seat_completions returns the answer later, together with tag. */
GALE_API struct gale_answer gale_ask(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, uint64_t cost, void *tag);

/* The same, but waits for the answer.  The verdict is never GALE_PENDING.  If no answer
 * comes within within_us, on_outage decides (GALE_WHY_LATE).  Leased units that come later
 * are for this node's next ask, if they come within patience_us (units of a window: within
 * two seconds more).  In the other modes, the store may still count the call.
 * If the server usually takes longer than within_us, gale sends it one ask at a time, and
 * the others are GALE_WHY_BUSY.  With within_us 0, no server is asked, and none counts the
 * call. */
GALE_API struct gale_answer gale_wait(struct gale_seat *seat,
                                      struct gale_limiter *limiter, const void *key,
                                      size_t key_len, uint64_t cost,
                                      uint64_t within_us);

/* Asks several questions at once, as gale_ask does, but in no particular order.  For keys
 * that are not in the processor's cache this is several times faster.  ret_answers must
 * not overlap the questions. */
struct gale_question {
	const void *key;
	size_t key_len;
	uint64_t cost;
	void *tag;
};
GALE_API void gale_ask_many(struct gale_seat *seat, struct gale_limiter *limiter,
                            const struct gale_question *questions, size_t count,
                            struct gale_answer *ret_answers);

/* Begins to load the memory that an ask about this key will read.  Call it as soon as
 * you know the key, and do something else before you ask.  It only saves time. */
GALE_API void gale_prefetch(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len);

/* Makes a handle for a key that is asked about often.  gale_ask_key need not search for
 * the key, and this node does not forget the key.  The handle belongs to the seat. */
struct gale_key;
GALE_API enum gale_err gale_key_open(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, struct gale_key **ret_key);
GALE_API void gale_key_close(struct gale_key *key);
GALE_API struct gale_answer gale_ask_key(struct gale_key *key, uint64_t cost,
                                         void *tag);

/* Reads the clock for all asks of the seat until its next gale_tick.  Call it in each turn
 * of your loop.  Leased units can be spent until a tick shows that they have expired, so
 * tick often.  On a seat that never ticks, each ask reads the clock. */
GALE_API void gale_tick(struct gale_seat *seat);

struct gale_completion {
	void *tag;
	struct gale_answer answer;
};

/* A descriptor for poll or epoll.  It is readable when there may be completions.  -1 if
 * the seat has left. */
GALE_API int gale_seat_fd(struct gale_seat *seat);

/* Takes at most max completions, and returns their number.  Call it until it returns
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

/* Counts of events in this runtime since it was opened; docs/metrics.md explains each.
 * Fills in at most max metrics, and returns how many metrics gale has. */
GALE_API size_t gale_metrics_sized(struct gale_runtime *runtime,
                                   struct gale_metric *ret_metrics, size_t metric_bytes,
                                   size_t max);
static inline size_t gale_metrics(struct gale_runtime *runtime,
                                  struct gale_metric *ret_metrics, size_t max)
{
	return gale_metrics_sized(runtime, ret_metrics, sizeof(*ret_metrics), max);
}

/* A hook that takes a text part by part. */
struct gale_sink {
	/* A part may end in the middle of a line, has no final 0, and exists only during
	 * the call.  Return false to get no more parts. */
	bool (*write)(struct gale_sink *self, const char *text, size_t bytes);
};

/* Writes all counters of the runtime, its limiters, stores, guards and budgets in the format of
 * Prometheus ("text/plain; version=0.0.4").  Other threads cannot open or close anything in
 * the runtime meanwhile, so the sink must not block. */
GALE_API enum gale_err gale_metrics_write(struct gale_runtime *runtime,
                                          struct gale_sink *sink);

/* Writes the keys that each limiter's rule has refused most often, at most 16 of a limiter:
 * a line of JSON for each key, the most refused key first.  docs/operate.md has the fields.
 * Limiters of one name are told together: the refusals of a key are added up.
 * Keys may be secrets of your clients: show the text to operators only.  The sink must not
 * block, as above. */
GALE_API enum gale_err gale_offenders_write(struct gale_runtime *runtime,
                                            struct gale_sink *sink);

/* ---- Looking and correcting ------------------------------------------------------ */

/* These functions ask the store, and take no units.  They wait for at most within_us. */

/* The answer that the store would give now to a call of cost 1.  Ignores on_outage, and
 * this node's leased units and remembered denials. */
GALE_API enum gale_err gale_peek(struct gale_seat *seat, struct gale_limiter *limiter,
                                 const void *key, size_t key_len, uint64_t within_us,
                                 struct gale_answer *ret_answer);

/* How many calls of this cost the store would allow now, and when it would allow more. */
GALE_API enum gale_err gale_forecast(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, uint64_t cost, uint64_t within_us,
                                     struct gale_outlook *ret_forecast);

/* Makes the store forget the key, so that the key has its whole limit again.  Other
 * nodes, and other limiters of the same name, keep their leases and remembered denials
 * until the window ends, and units that were lent ahead of the next window, at most a
 * sixteenth of the limit, until that ends.  If a key was used while the store's clock was
 * far ahead, a reset repairs the key. */
GALE_API enum gale_err gale_reset(struct gale_seat *seat, struct gale_limiter *limiter,
                                  const void *key, size_t key_len, uint64_t within_us);

/* Gives back a place in a pacer's queue, if the time of the place has not come.  answer is
 * the answer of the ask that booked the place, and cost the cost of that ask.  gale_cancel
 * clears answer->slot, so that a second call does nothing.  After GALE_ERR_BUSY, or an
 * error in the arguments, answer->slot is unchanged, and you may try again. */
GALE_API enum gale_err gale_cancel(struct gale_seat *seat, struct gale_limiter *limiter,
                                   const void *key, size_t key_len, uint64_t cost,
                                   uint64_t within_us, struct gale_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
