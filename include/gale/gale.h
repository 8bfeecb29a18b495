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
 * In an event loop, use gale_ask: its answer may be GALE_PENDING, and then comes later
 * from gale_seat_completions.
 *
 * Words     An ask is one question: may a call that costs so many units go through for
 *           this key?  A limiter answers by its rule; a store keeps the counts.  A node
 *           is one runtime, usually one process.  A store can lend units to a node; that
 *           is a lease.  The credit of a key is the leased units that the node can still
 *           spend.  docs/words.md has all words.
 * Threads   Only the thread that joined may use its seat, and the gale_keys opened with
 *           it.  Any thread may call all other functions at any time.  But do not use a
 *           limiter or a store while you close it, and open nothing in a runtime while
 *           you close it.
 * Blocking  gale_ask waits for no store, lock or other thread.  With a "memory:" store
 *           it also does the work of the store.  Functions with a parameter within_us
 *           wait for at most that time.
 * Memory    Set a configuration to zero before you fill it.  gale copies configurations,
 *           names and keys.  A handle is good until you close it.  Handles may be closed
 *           in any order, each once; closing NULL does nothing.
 * Errors    Functions that set something up return an enum gale_err.  An ask always gets
 *           an answer, and the answer's why is its reason.  If the program makes a
 *           mistake, such as an ask of a closed limiter, the answer is a denial.
 * Limits    A key has 1 to GALE_KEY_MAX bytes of any value, and a name 1 to
 *           GALE_NAME_MAX.  A process has at most GALE_RUNTIMES_MAX runtimes.
 * Process   gale writes nothing to stdout or stderr, and handles no signals.  After
 *           fork(), the child may not use its parent's handles.  docs/host.md has more
 *           on threads, memory, fork, seccomp, and loops of your own.
 * ABI       A program also runs with later libraries of its SONAME (libgale.so.0).
 *           Structs marked "May grow" get new fields at the end; 0 in a new field
 *           means the former behaviour.  Other structs change only with the SONAME.
 *           docs/install.md has the details, and says how other languages call gale.
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

/* Hooks: functions of your program that gale calls.  Several threads may call a hook at
 * once.  A hook must not call gale.  Its struct must outlive every runtime and every
 * store that uses it. */
struct gale_allocator {
	/* bytes is not 0.  alloc returns memory that is aligned as malloc's, or NULL.
	 * free gets the same number of bytes as alloc did. */
	void *(*alloc)(struct gale_allocator *self, size_t bytes);
	void (*free)(struct gale_allocator *self, void *memory, size_t bytes);
};

/* How much a line of the log matters. */
enum gale_level {
	GALE_LEVEL_INFO,    /* all is well, or well again */
	GALE_LEVEL_WARNING, /* gale works, but a promise is weaker than it could be */
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
	/* Nanoseconds since about the start of this machine, below 2^59 when a runtime is
	 * opened.  The clock must never step back, and must run while the machine
	 * sleeps.  Leases and deadlines are measured with it.  NULL: CLOCK_BOOTTIME. */
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
	 * sleeps; at most 10,000; 0: it does not poll.  Polling answers sooner, and costs
	 * processor time: docs/host.md. */
	uint32_t poll_us;
	bool turns; /* no threads: your own loop calls gale_turn */
	struct gale_allocator *allocator; /* NULL: malloc and free */
	struct gale_log *log;             /* NULL: nothing is logged */
	/* NULL: gale reads UTC when the runtime is opened, and then adds the time that
	 * has passed by CLOCK_BOOTTIME. */
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

/* Answers all pending asks.  From then on every ask is denied (GALE_WHY_CLOSED).  The
 * memory is freed when everything that was opened in the runtime is closed, too. */
GALE_API void gale_runtime_close(struct gale_runtime *runtime);

/* For runtimes opened with .turns: gale_turn does the work that is due.  Call it when the
 * descriptor gale_turn_fd is readable, and when the time gale_turn_after_us has passed.
 * gale_turn returns 0 if there was nothing to do, or if another thread is in it.  In a
 * runtime with threads the three functions return 0, -1 and GALE_NEVER. */
GALE_API uint64_t gale_turn(struct gale_runtime *runtime);
GALE_API int gale_turn_fd(struct gale_runtime *runtime);
GALE_API uint64_t gale_turn_after_us(struct gale_runtime *runtime);

/* Sets a function that gale calls once, when it finds a fault in itself.  From then on
 * every ask of every runtime is denied (GALE_WHY_FENCED).  When the hook returns, gale
 * aborts the process.  A hook that does not return should soon end the process, and must
 * not close runtimes. */
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
 * Each open of "memory:" makes a new store.  All opens of "memory:NAME" in this process
 * share one store; the first one determines its max_keys, allocator and clock.
 *
 * gale connects to a server on the first ask, and again when the connection is lost.
 * gale_store_open looks up the host name, which may take a while; it also succeeds when
 * the name is not found or the server is down.  docs/stores.md has more, and explains
 * durable=N, an option of every Redis URL.
 */
/* May grow. */
struct gale_store_config {
	const char *url;   /* NULL: "memory:" */
	uint64_t max_keys; /* "memory:" only; 0: 1,000,000 */
	/* A server that may have lost its counts grants nothing until the current window
	 * has ended, but for at most this time; 0: a minute.  This is its quarantine,
	 * and asks then are GALE_WHY_QUARANTINE.  If the window lasts longer, some units
	 * may be granted twice: docs/outages.md. */
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

/* Checks the URL of a store, but looks up no name and asks no server.  NULL is a good
 * URL.  If the URL is wrong, ret_why gets a line that names the wrong part, such as
 * "url: option prefx is not known; there are db, prefix, durable, sentinel_password".
 * The line contains no user and no password.  192 bytes are always enough; a line longer
 * than room is cut.  With room 0, ret_why may be NULL. */
GALE_API enum gale_err gale_url_check(const char *url, char *ret_why, size_t room);

/* Counts since the store was opened.  May grow. */
struct gale_counts {
	uint64_t keys;    /* held now; a key is dropped within a second of expiring */
	uint64_t steps;   /* decisions made */
	uint64_t full;    /* asks refused because max_keys were in use */
	uint64_t memory;  /* asks refused because there was no memory */
	uint64_t changed; /* asks refused because another kind of rule uses the key */
	uint64_t broken;  /* asks refused because a gale_strategy returned nonsense */
	uint64_t expired; /* keys dropped after they expired */
	uint64_t leases;  /* leases granted, repeated requests included */
	uint64_t returns; /* leases given back, repeated requests included */

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
	                     denies calls that cost as much or more, until
	                     retry_after_us of the denial has passed */
	GALE_LEASED,      /* the store lends units, and this node decides from them */
};

/* How many units a node leases at a time: docs/sizing.md. */
enum gale_sizing {
	GALE_SIZE_LEARNED, /* from the demand in earlier windows */
	GALE_SIZE_FIXED,   /* batch units, or what is left if that is less */
	GALE_SIZE_EOQ,     /* the size at which round trips (order_cost) and idle units
	                      (strand_penalty) cost the same */
	GALE_SIZE_HEDGE,   /* a mean of EOQ's size and of the predictor's */
};

/* demand returns how many units of the key this node will probably be asked for in the
 * window that begins; 0: unknown.  gale calls it before it asks the store for a lease,
 * and for one key never from two threads at once. */
struct gale_predictor {
	uint64_t (*demand)(struct gale_predictor *self, const void *key,
	                   size_t key_len);
};

/*
 * How units are leased; all zero is a good choice.  docs/leasing.md says what a leased
 * rule guarantees, and which rules can be leased.
 *
 * An answer from credit (GALE_WHY_CREDIT) has an estimate in remaining: the units that
 * all nodes can still spend, as far as this node knows.  Its reset_after_us is the time
 * until the credit expires.  An ask that finds too little credit is GALE_PENDING while
 * gale asks the store.
 */
struct gale_leasing {
	enum gale_sizing sizing;
	uint64_t batch;                   /* fixed: units of each lease */
	struct gale_predictor *predictor; /* hedge; it must outlive the runtime */
	/* eoq, hedge: the cost of a round trip, and of an idle unit, in any unit of your
	 * own.  If both are 0, they are 20 and 1. */
	double order_cost;
	double strand_penalty;
	uint64_t max_size;    /* units of the largest lease; 0: 1,000,000 */
	uint64_t patience_us; /* in every mode: how long an ask may wait for the store,
	                         at most an hour; 0: 100 ms */
	uint32_t drift_ppm;   /* how wrong the speed of a clock may be; 0: 500 */
	/* For windows with a fixed batch: units left over in one window may be spent in
	 * later ones.  A window may then exceed the limit: docs/leasing.md. */
	bool carry_over;
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[8];
};

/* The answer of an ask in an outage.  gale_why_is_outage tells which reasons are outages. */
enum gale_on_outage {
	GALE_ON_OUTAGE_DENY,
	GALE_ON_OUTAGE_ALLOW,
	/* The answer of the same rule with the limit outage_share.  This node counts it
	 * alone, by its own clock, and in addition to what the store has granted. */
	GALE_ON_OUTAGE_SHARE,
};

/* The fate of a key that has counts of another kind of rule, or of another
 * gale_strategy: this limiter cannot read them. */
enum gale_on_other_rule {
	GALE_ON_OTHER_RULE_REFUSE,  /* GALE_WHY_CHANGED, until the key expires */
	GALE_ON_OTHER_RULE_RESTART, /* the key gets a fresh limit; the first call that is
	                               allowed is GALE_WHY_RESTARTED */
};

/* May grow. */
struct gale_limiter_config {
	const char *name; /* limiters of one name share their keys; others never do */
	struct gale_rule rule;
	enum gale_mode mode;
	enum gale_on_outage on_outage;
	struct gale_store *store;
	struct gale_leasing lease; /* other modes than GALE_LEASED use patience_us */
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
 * Units that were spent stay spent.  While nodes have different limits, a window admits
 * at most the largest of them.  docs/changing.md has more, on periods above all.  On an
 * error nothing changes. */
GALE_API enum gale_err gale_limiter_set_rule(struct gale_limiter *limiter,
                                             const struct gale_rule *rule);

#define GALE_WHY_ROOM 32 /* more than any enum gale_why, also in later versions */

/* How many asks of one limiter got which answer.  An ask is counted when its answer is
 * returned to the program.  An ask with a NULL or closed limiter counts for none.
 * May grow. */
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

/* Drops the seat's pending asks: their answers never come, but the store may still count
 * their units. */
GALE_API void gale_leave(struct gale_seat *seat);

/* ---- Asking ---------------------------------------------------------------------- */

/* Asks whether a call of this cost, in units, may go through for this key.  If the
 * verdict is GALE_PENDING, gale_seat_completions returns the answer later, with tag. */
GALE_API struct gale_answer gale_ask(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, uint64_t cost, void *tag);

/* The same, but waits for the answer.  The verdict is never GALE_PENDING.  If no answer
 * comes within within_us (GALE_WHY_LATE), the store may still count the units, unless
 * within_us is 0. */
GALE_API struct gale_answer gale_wait(struct gale_seat *seat,
                                      struct gale_limiter *limiter, const void *key,
                                      size_t key_len, uint64_t cost,
                                      uint64_t within_us);

/* Asks several questions at once, each as gale_ask would, but in no particular order.
 * For keys that are not in the processor's cache this is several times faster.
 * ret_answers must not overlap the questions. */
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
 * you know the key, and do something else before you ask.  No answer changes. */
GALE_API void gale_prefetch(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len);

/* Makes a handle of a key that is asked about often.  gale_ask_key need not search for
 * the key, and this node does not forget it.  The handle belongs to the seat. */
struct gale_key;
GALE_API enum gale_err gale_key_open(struct gale_seat *seat,
                                     struct gale_limiter *limiter, const void *key,
                                     size_t key_len, struct gale_key **ret_key);
GALE_API void gale_key_close(struct gale_key *key);
GALE_API struct gale_answer gale_ask_key(struct gale_key *key, uint64_t cost,
                                         void *tag);

/* Reads the clock once, for all asks of the seat until its next gale_tick.  Call it in
 * each turn of your loop.  Leased units count as alive until a tick shows that they have
 * expired, so tick often.  On a seat that never ticks, each ask reads the clock. */
GALE_API void gale_tick(struct gale_seat *seat);

struct gale_completion {
	void *tag;
	struct gale_answer answer;
};

/* A descriptor for poll, epoll and so on.  It is readable when completions may be
 * waiting.  For a seat that has left it is -1. */
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

/* Counts of events in this runtime since it was opened; docs/metrics.md explains each.
 * Fills in up to max of them, and returns how many there are. */
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
	/* A part may end in the middle of a line, has no final 0, and is good only during
	 * the call.  Return false to get no more parts. */
	bool (*write)(struct gale_sink *self, const char *text, size_t bytes);
};

/* Writes all counters of the runtime and of its limiters, stores and guards as Prometheus
 * reads them ("text/plain; version=0.0.4").  Nothing in the runtime can be opened or
 * closed meanwhile, so the sink must not block. */
GALE_API enum gale_err gale_metrics_write(struct gale_runtime *runtime,
                                          struct gale_sink *sink);

/* ---- Looking and correcting ------------------------------------------------------ */

/* These functions ask the store, and take no units.  They wait for at most within_us. */

/* The answer that the store would give now to a call of cost 1.  on_outage is ignored.
 * Leased units and remembered denials of this node are ignored, too. */
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
 * until the window ends.  A reset also repairs a key that was used while the store's
 * clock was wrong and far ahead. */
GALE_API enum gale_err gale_reset(struct gale_seat *seat, struct gale_limiter *limiter,
                                  const void *key, size_t key_len, uint64_t within_us);

/* Gives back the place in a pacer's queue that *answer has booked, if the time of the
 * place has not come.  cost must be the cost of that ask.  gale_cancel clears answer->slot,
 * so that no place is given back twice, except on GALE_ERR_BUSY and on an error in the
 * arguments. */
GALE_API enum gale_err gale_cancel(struct gale_seat *seat, struct gale_limiter *limiter,
                                   const void *key, size_t key_len, uint64_t cost,
                                   uint64_t within_us, struct gale_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
