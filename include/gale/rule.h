/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * rule.h -- rules, and what an answer says.
 *
 * A rule is what you configure, and an answer is what a call gets back.  Both are plain
 * values.  engine/README.md specifies what each rule decides.
 *
 * Threads   Any thread may call these functions.
 * Units     Limits and costs are integers from 1 to GALE_UNITS_MAX.  For fractions,
 *           count in smaller units: a limit of 1.5 calls is 1,500 thousandths.
 * Time      Durations are in microseconds.  Windows, periods and waits are at most
 *           GALE_SPAN_MAX_US.  The durations in an answer count from now.
 */
#ifndef GALE_RULE_H
#define GALE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gale/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers stay below 2^53, so that C, Lua and SQL compute the same results exactly. */
#define GALE_UNITS_MAX ((UINT64_C(1) << 53) - 1)
#define GALE_SPAN_MAX_US (UINT64_C(1) << 50) /* 35 years */
#define GALE_NEVER UINT64_MAX                /* a time that never comes */

#define GALE_BUCKETS_MAX 128     /* of a sliding window */
#define GALE_LOG_LIMIT_MAX 65536 /* of a sliding log: 16 bytes for each admission */
#define GALE_PACE_PERIOD_MAX_US (UINT64_C(1) << 43) /* 101 days, for pacers */

#define GALE_MICROS(n) ((uint64_t)(n))
#define GALE_MILLIS(n) ((uint64_t)(n)*1000)
#define GALE_SECONDS(n) ((uint64_t)(n)*1000000)
#define GALE_MINUTES(n) ((uint64_t)(n)*60000000)
#define GALE_HOURS(n) ((uint64_t)(n)*3600000000)
#define GALE_DAYS(n) ((uint64_t)(n)*86400000000)

/* ---- Rules ----------------------------------------------------------------------- */

enum gale_rule_kind {
	GALE_RULE_NONE, /* an empty rule, refused everywhere */
	GALE_RULE_FIXED_WINDOW,
	GALE_RULE_SLIDING_WINDOW,
	GALE_RULE_SLIDING_LOG,
	GALE_RULE_GCRA,
	GALE_RULE_TOKEN_BUCKET,
	GALE_RULE_QUOTA,
	GALE_RULE_TOKEN_BUDGET,
	GALE_RULE_PACER,
	GALE_RULE_CUSTOM, /* your own: strategy.h */
};

struct gale_strategy;

/* How the periods of a quota follow each other. */
enum gale_cadence {
	GALE_CADENCE_NONE,
	GALE_MONTHLY,  /* from the 1st to the 1st, leap years included */
	GALE_WEEKLY,   /* seven days from first_weekday */
	GALE_DAILY,    /* midnight to midnight */
	GALE_ANCHORED, /* periods of period_us, one of which starts at anchor_us */
};

/*
 * Fill a rule with one of the functions below.  After that you may change single fields.
 * Fields that the kind does not use must stay 0.
 */
struct gale_rule {
	enum gale_rule_kind kind;
	enum gale_cadence cadence; /* quota */
	uint64_t limit;            /* units per period */
	uint64_t period_us;   /* the window, or the time in which limit units accrue */
	uint64_t burst;       /* most units at once: gcra, token bucket, pacer */
	uint64_t buckets;     /* sliding window: the number of buckets */
	uint64_t max_wait_us; /* pacer: a longer wait is refused at once */
	uint64_t anchor_us;   /* anchored quota: where one period starts */
	uint32_t allowance_permille; /* pacer: the speed at which burst comes back, in
	                                thousandths of the rate */
	int32_t utc_offset_minutes;  /* calendar quota: -840 to 840 */
	uint32_t first_weekday;      /* weekly quota: 0 is Sunday */
	const struct gale_strategy *strategy; /* custom */
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[6];
};

/* limit units in each window of window_us, aligned to the store's clock.  Around the
 * end of a window, up to twice the limit can pass in a short time.  The same is true of
 * token budgets and of all quotas except rolling ones. */
GALE_API struct gale_rule gale_fixed_window(uint64_t limit, uint64_t window_us);

/* About limit units in any time of length window_us.  Units are counted in buckets, which
 * last window_us / buckets each; 10 buckets are usual.  A unit comes back window_us after
 * its use, up to one bucket early or late.  So at most limit units pass in any time of
 * length window_us less one bucket. */
GALE_API struct gale_rule gale_sliding_window(uint64_t limit, uint64_t window_us,
                                              uint64_t buckets);

/* At most limit units in any time of length window_us.  The rule keeps a time stamp for
 * each admission, and each ask reads all of them, so use it for small limits. */
GALE_API struct gale_rule gale_sliding_log(uint64_t limit, uint64_t window_us);

/* limit units per period, evenly spaced, and at most burst of them at once. */
GALE_API struct gale_rule gale_gcra(uint64_t limit, uint64_t period_us, uint64_t burst);

/* A bucket that holds at most capacity units, and gains refill units per period.  It
 * decides like gale_gcra(refill, period_us, capacity), except while the store's clock is
 * behind the time of an earlier call. */
GALE_API struct gale_rule gale_token_bucket(uint64_t capacity, uint64_t refill,
                                            uint64_t period_us);

/* A pacer without burst: rate units per period, one after the other.  The answer says
 * how long the call must wait (delay_ns); a wait above max_wait_us is a denial. */
GALE_API struct gale_rule gale_leaky_bucket(uint64_t rate, uint64_t period_us,
                                            uint64_t max_wait_us);

/* limit units per calendar period, in local time of a fixed offset from UTC. */
GALE_API struct gale_rule gale_quota_monthly(uint64_t limit,
                                             int32_t utc_offset_minutes);
GALE_API struct gale_rule gale_quota_weekly(uint64_t limit, int32_t utc_offset_minutes,
                                            uint32_t first_weekday);
GALE_API struct gale_rule gale_quota_daily(uint64_t limit, int32_t utc_offset_minutes);

/* limit units per period, counted from an instant (microseconds since 1970 UTC). */
GALE_API struct gale_rule gale_quota_anchored(uint64_t limit, uint64_t period_us,
                                              uint64_t anchor_us);

/* A sliding window of ten buckets. */
GALE_API struct gale_rule gale_quota_rolling(uint64_t limit, uint64_t period_us);

/* For costs that are known only afterwards.  An ask is allowed if at least one unit of the
 * window's budget is left, and its whole cost counts.  So the units of a window exceed the
 * budget by less than the cost of the last ask that was allowed. */
GALE_API struct gale_rule gale_token_budget(uint64_t budget, uint64_t window_us);

/* Spreads calls evenly.  The answer says how long the call must wait (delay_ns).  After
 * idle time, burst units and one more call need not wait.  While no call waits, the burst
 * comes back at half the rate. */
GALE_API struct gale_rule gale_pacer(uint64_t rate, uint64_t period_us, uint64_t burst);

/* The same, but a call that would have to wait is denied, and the burst comes back at
 * the full rate.  Limiters with gale_pacer and with gale_pacer_limit may have one name,
 * and then share their keys. */
GALE_API struct gale_rule gale_pacer_limit(uint64_t rate, uint64_t period_us,
                                           uint64_t burst);

/* "fixed_window", "gcra" and so on; "none" for an unknown kind. */
GALE_API const char *gale_rule_name(enum gale_rule_kind kind);

/* ---- Answers --------------------------------------------------------------------- */

/* The smaller of two verdicts is the stricter one: see gale_combine. */
enum gale_verdict {
	GALE_DENY,
	GALE_PENDING, /* gale_seat_completions will return the answer */
	GALE_ALLOW,
};

/* The reason of an answer.  gale_why_text gives a sentence, and gale_why_name one word:
 * "rule", "credit", "bad_ask". */
enum gale_why {
	GALE_WHY_RULE,   /* the store decided by the rule */
	GALE_WHY_CREDIT, /* units that the store has lent to this node were enough */
	GALE_WHY_SPENT,  /* the limit is used up, as the store has told this node */
	GALE_WHY_BUSY, /* too many asks are pending, or other nodes keep changing the key, or
	                  the store is asked more than it can answer in time */
	GALE_WHY_LATE,    /* no answer in time; the units may have been taken */
	GALE_WHY_FULL,    /* the store holds max_keys keys, and this one is new */
	GALE_WHY_MEMORY,  /* there is no memory for a new key */
	GALE_WHY_CHANGED, /* the key has counts of another kind of rule */
	GALE_WHY_DOWN, /* the store is down: it failed lately, and was not asked again */
	GALE_WHY_WRONG,   /* the store's answer cannot be true */
	GALE_WHY_BROKEN,  /* the step of a gale_strategy returned nonsense */
	GALE_WHY_CROWDED, /* this node remembers max_keys keys, and all are in use */
	GALE_WHY_CLOSED,  /* the runtime or the limiter is closed */
	GALE_WHY_FORKED, /* this process is a fork of the one that opened the runtime */
	GALE_WHY_FENCED, /* gale found a fault in itself, and admits nothing any more */
	GALE_WHY_BAD_ASK,  /* NULL handle, empty or over-long key, cost out of range */
	GALE_WHY_ASKED,    /* with GALE_PENDING: gale is asking the store */
	GALE_WHY_TOO_MUCH, /* the cost is above the limit: it never passes */
	GALE_WHY_RESTARTED, /* the key had counts of another kind of rule, and got a fresh
	                       limit: on_other_rule */
	GALE_WHY_QUARANTINE, /* the server may have forgotten what it granted, and grants
	                        nothing for retry_after_us */
	/* Only from a guard (guard.h). */
	GALE_WHY_SLOT,     /* a slot was free */
	GALE_WHY_CEILING,  /* all slots of the guard's .ceiling are in use */
	GALE_WHY_SHARE,    /* this node's share of the fleet's ceiling is in use */
	GALE_WHY_ESTIMATE, /* as many slots are in use as the backend can bear, by the
	                      guard's estimate */
	GALE_WHY_PROBE, /* the guard admits less for a moment, to measure the backend */
	GALE_WHY_CUT_OFF, /* this node has no share of its fleet's ceiling now */
	GALE_WHY_CLASS,   /* the slots that are free are for normal calls */
	GALE_WHY_WIDE,    /* the call wants more slots than one call may take now */
	/* Only from a tenant (tenants.h). */
	GALE_WHY_OWN,    /* from the tenant's share */
	GALE_WHY_LENT,   /* partly from units beyond the tenant's share */
	GALE_WHY_OTHERS, /* the tenant's share is used up; the units that are left belong
	                    to other tenants */
};
GALE_API const char *gale_why_text(enum gale_why why);
GALE_API const char *gale_why_name(enum gale_why why);

/* True if the rule could not be applied, and the limiter's on_outage decided: for BUSY,
 * LATE, FULL, MEMORY, DOWN, WRONG, CROWDED and QUARANTINE.  Mistakes of the program or
 * its configuration (CHANGED, BROKEN, BAD_ASK) are always denied, and so are all asks of
 * a runtime that has ended (CLOSED, FORKED, FENCED). */
GALE_API bool gale_why_is_outage(enum gale_why why);

/* True if remaining is an estimate of this node, and not a number from the store: for
 * CREDIT, SPENT and RESTARTED.  docs/leasing.md says how wrong the estimate can be.  After
 * gale_combine, check the why of each single answer. */
GALE_API bool gale_why_is_estimate(enum gale_why why);

/* A booked place in a pacer's queue; gale_cancel gives it back. */
struct gale_slot {
	uint64_t us;
	uint64_t part; /* in 1/limit of a microsecond */
};

struct gale_answer {
	enum gale_verdict verdict;
	enum gale_why why;
	uint64_t limit;     /* how many calls of cost 1 an unused key allows; 0 if
	                            the limiter is NULL or closed */
	uint64_t remaining; /* units that would be allowed now, after this call; an
	                            estimate if gale_why_is_estimate(why) */
	uint64_t
	    reset_after_us; /* until the key has its whole limit again; of a sliding
	                            log: until some of it comes back */
	uint64_t
	    retry_after_us;    /* 0 if allowed, or if it is not known; GALE_NEVER if no
	                            wait can help */
	uint64_t delay_ns;     /* pacers: how long the call must wait; rounded up */
	struct gale_slot slot; /* pacers: the place that was booked; zero if none was */
};

struct gale_outlook {
	uint64_t spendable_now; /* how many calls of this cost would be allowed now */
	uint64_t next_after_us; /* until more would be allowed; 0 if all is available */
	uint64_t full_after_us; /* until the whole limit is available */
};

/*
 * Combines the answers of several limiters to one call.  The result has the smallest
 * verdict, limit and remaining, and the longest times.  If several answers have the
 * smallest verdict, the result's why is the one with the highest number.  The result has no
 * slot: gale_cancel needs the single answers.  Without any answers it is GALE_ALLOW.
 *
 * If ret_binding is not NULL, *ret_binding gets the index of the answer that decides: the
 * one with the smallest verdict.  Among equals it is the one with the longest
 * retry_after_us; then the longest delay_ns; then the least remaining; then the first.
 */
GALE_API struct gale_answer gale_combine(const struct gale_answer *answers,
                                         size_t count, size_t *ret_binding);

#ifdef __cplusplus
}
#endif
#endif
