/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* names.c -- rules by their constructors, and numbers in words. */
#include <gale/errors.h>
#include <gale/rule.h>
#include <gale/strategy.h>

struct gale_rule gale_fixed_window(uint64_t limit, uint64_t window_us)
{
	return (struct gale_rule){ .kind = GALE_RULE_FIXED_WINDOW,
		                   .limit = limit,
		                   .period_us = window_us };
}

struct gale_rule gale_sliding_window(uint64_t limit, uint64_t window_us,
                                     uint64_t buckets)
{
	return (struct gale_rule){ .kind = GALE_RULE_SLIDING_WINDOW,
		                   .limit = limit,
		                   .period_us = window_us,
		                   .buckets = buckets };
}

struct gale_rule gale_sliding_log(uint64_t limit, uint64_t window_us)
{
	return (struct gale_rule){ .kind = GALE_RULE_SLIDING_LOG,
		                   .limit = limit,
		                   .period_us = window_us };
}

struct gale_rule gale_gcra(uint64_t limit, uint64_t period_us, uint64_t burst)
{
	return (struct gale_rule){ .kind = GALE_RULE_GCRA,
		                   .limit = limit,
		                   .period_us = period_us,
		                   .burst = burst };
}

struct gale_rule gale_token_bucket(uint64_t capacity, uint64_t refill,
                                   uint64_t period_us)
{
	return (struct gale_rule){ .kind = GALE_RULE_TOKEN_BUCKET,
		                   .limit = refill,
		                   .period_us = period_us,
		                   .burst = capacity };
}

static struct gale_rule pacer(uint64_t rate, uint64_t period_us, uint64_t burst,
                              uint64_t max_wait_us, uint32_t allowance_permille)
{
	return (struct gale_rule){ .kind = GALE_RULE_PACER,
		                   .limit = rate,
		                   .period_us = period_us,
		                   .burst = burst,
		                   .max_wait_us = max_wait_us,
		                   .allowance_permille = allowance_permille };
}

struct gale_rule gale_leaky_bucket(uint64_t rate, uint64_t period_us,
                                   uint64_t max_wait_us)
{
	return pacer(rate, period_us, /* burst= */ 0, max_wait_us, 1000);
}

struct gale_rule gale_pacer(uint64_t rate, uint64_t period_us, uint64_t burst)
{
	return pacer(rate, period_us, burst, GALE_SPAN_MAX_US, 500);
}

struct gale_rule gale_pacer_limit(uint64_t rate, uint64_t period_us, uint64_t burst)
{
	return pacer(rate, period_us, burst, /* max_wait_us= */ 0, 1000);
}

static struct gale_rule quota(uint64_t limit, enum gale_cadence cadence,
                              int32_t utc_offset_minutes)
{
	return (struct gale_rule){ .kind = GALE_RULE_QUOTA,
		                   .cadence = cadence,
		                   .limit = limit,
		                   .utc_offset_minutes = utc_offset_minutes };
}

struct gale_rule gale_quota_monthly(uint64_t limit, int32_t utc_offset_minutes)
{
	return quota(limit, GALE_MONTHLY, utc_offset_minutes);
}

struct gale_rule gale_quota_weekly(uint64_t limit, int32_t utc_offset_minutes,
                                   uint32_t first_weekday)
{
	struct gale_rule rule = quota(limit, GALE_WEEKLY, utc_offset_minutes);

	rule.first_weekday = first_weekday;
	return rule;
}

struct gale_rule gale_quota_daily(uint64_t limit, int32_t utc_offset_minutes)
{
	return quota(limit, GALE_DAILY, utc_offset_minutes);
}

struct gale_rule gale_quota_anchored(uint64_t limit, uint64_t period_us,
                                     uint64_t anchor_us)
{
	struct gale_rule rule =
	    quota(limit, GALE_ANCHORED, /* utc_offset_minutes= */ 0);

	rule.period_us = period_us;
	rule.anchor_us = anchor_us;
	return rule;
}

struct gale_rule gale_quota_rolling(uint64_t limit, uint64_t period_us)
{
	return gale_sliding_window(limit, period_us, /* buckets= */ 10);
}

struct gale_rule gale_token_budget(uint64_t budget, uint64_t window_us)
{
	return (struct gale_rule){ .kind = GALE_RULE_TOKEN_BUDGET,
		                   .limit = budget,
		                   .period_us = window_us };
}

struct gale_rule gale_custom(const struct gale_strategy *strategy, uint64_t limit,
                             uint64_t period_us)
{
	return (struct gale_rule){ .kind = GALE_RULE_CUSTOM,
		                   .limit = limit,
		                   .period_us = period_us,
		                   .strategy = strategy };
}

const char *gale_rule_name(enum gale_rule_kind kind)
{
	switch (kind) {
	case GALE_RULE_FIXED_WINDOW:
		return "fixed_window";
	case GALE_RULE_SLIDING_WINDOW:
		return "sliding_window";
	case GALE_RULE_SLIDING_LOG:
		return "sliding_log";
	case GALE_RULE_GCRA:
		return "gcra";
	case GALE_RULE_TOKEN_BUCKET:
		return "token_bucket";
	case GALE_RULE_QUOTA:
		return "quota";
	case GALE_RULE_TOKEN_BUDGET:
		return "token_budget";
	case GALE_RULE_PACER:
		return "pacer";
	case GALE_RULE_CUSTOM:
		return "custom";
	case GALE_RULE_NONE:
		break;
	}
	return "none";
}

const char *gale_why_name(enum gale_why why)
{
	switch (why) {
	case GALE_WHY_RULE:
		return "rule";
	case GALE_WHY_CREDIT:
		return "credit";
	case GALE_WHY_SPENT:
		return "spent";
	case GALE_WHY_BUSY:
		return "busy";
	case GALE_WHY_LATE:
		return "late";
	case GALE_WHY_FULL:
		return "full";
	case GALE_WHY_MEMORY:
		return "memory";
	case GALE_WHY_CHANGED:
		return "changed";
	case GALE_WHY_DOWN:
		return "down";
	case GALE_WHY_WRONG:
		return "wrong";
	case GALE_WHY_BROKEN:
		return "broken";
	case GALE_WHY_CROWDED:
		return "crowded";
	case GALE_WHY_CLOSED:
		return "closed";
	case GALE_WHY_FORKED:
		return "forked";
	case GALE_WHY_FENCED:
		return "fenced";
	case GALE_WHY_BAD_ASK:
		return "bad_ask";
	case GALE_WHY_ASKED:
		return "asked";
	case GALE_WHY_TOO_MUCH:
		return "too_much";
	case GALE_WHY_RESTARTED:
		return "restarted";
	case GALE_WHY_QUARANTINE:
		return "quarantine";
	case GALE_WHY_SLOT:
		return "slot";
	case GALE_WHY_CEILING:
		return "ceiling";
	case GALE_WHY_SHARE:
		return "share";
	case GALE_WHY_ESTIMATE:
		return "estimate";
	case GALE_WHY_PROBE:
		return "probe";
	case GALE_WHY_CUT_OFF:
		return "cut_off";
	case GALE_WHY_CLASS:
		return "class";
	case GALE_WHY_WIDE:
		return "wide";
	case GALE_WHY_OWN:
		return "own";
	case GALE_WHY_LENT:
		return "lent";
	case GALE_WHY_OTHERS:
		return "others";
	}
	return "unknown";
}

const char *gale_why_text(enum gale_why why)
{
	switch (why) {
	case GALE_WHY_RULE:
		return "the store decided by the rule";
	case GALE_WHY_CREDIT:
		return "from units that the store has lent to this node";
	case GALE_WHY_SPENT:
		return "the limit is used up, as the store said earlier";
	case GALE_WHY_BUSY:
		return "too many asks are pending, the store is asked more than it can "
		       "answer in time, or other nodes keep changing the key";
	case GALE_WHY_LATE:
		return "the store did not answer in time";
	case GALE_WHY_FULL:
		return "the store holds max_keys keys, and this key is new";
	case GALE_WHY_MEMORY:
		return "there is no memory for a new key";
	case GALE_WHY_CHANGED:
		return "the key has counts of another kind of rule";
	case GALE_WHY_DOWN:
		return "the store is down: it failed lately, and was not asked again";
	case GALE_WHY_WRONG:
		return "the store's answer cannot be true";
	case GALE_WHY_BROKEN:
		return "the step of a strategy returned an impossible ruling";
	case GALE_WHY_CROWDED:
		return "this node remembers max_keys keys, and all are in use";
	case GALE_WHY_CLOSED:
		return "the runtime or the limiter is closed";
	case GALE_WHY_FORKED:
		return "the runtime was opened before this process was forked";
	case GALE_WHY_FENCED:
		return "gale found a fault in itself, and admits nothing any more";
	case GALE_WHY_RESTARTED:
		return "the key had counts of another kind of rule, and got a fresh "
		       "limit";
	case GALE_WHY_BAD_ASK:
		return "a NULL handle, an impossible key, or a cost out of range";
	case GALE_WHY_ASKED:
		return "under way: the answer comes to the seat's completions";
	case GALE_WHY_TOO_MUCH:
		return "the cost is above the limit: it can never pass";
	case GALE_WHY_QUARANTINE:
		return "a quarantine: the server may have forgotten its grants";
	case GALE_WHY_SLOT:
		return "the guard had a free slot";
	case GALE_WHY_CEILING:
		return "the guard's ceiling is in use";
	case GALE_WHY_SHARE:
		return "this node's share of the fleet's ceiling is in use";
	case GALE_WHY_ESTIMATE:
		return "the backend can bear no more calls, by the guard's estimate";
	case GALE_WHY_PROBE:
		return "the guard admits less for a moment, to measure the backend";
	case GALE_WHY_CUT_OFF:
		return "this node has no share of its fleet's ceiling: it has "
		       "lost touch, or has got none yet";
	case GALE_WHY_CLASS:
		return "the slots that are free are for normal calls";
	case GALE_WHY_WIDE:
		return "the call wants more slots than one call may take now";
	case GALE_WHY_OWN:
		return "from the tenant's share";
	case GALE_WHY_LENT:
		return "partly from units beyond the tenant's share";
	case GALE_WHY_OTHERS:
		return "the tenant's share is used up; the units that are left belong "
		       "to "
		       "other tenants";
	}
	return "unknown";
}

bool gale_why_is_outage(enum gale_why why)
{
	switch (why) {
	case GALE_WHY_BUSY:
	case GALE_WHY_LATE:
	case GALE_WHY_FULL:
	case GALE_WHY_MEMORY:
	case GALE_WHY_DOWN:
	case GALE_WHY_WRONG:
	case GALE_WHY_CROWDED:
	case GALE_WHY_QUARANTINE:
		return true;
	case GALE_WHY_RULE:
	case GALE_WHY_CREDIT:
	case GALE_WHY_SPENT:
	case GALE_WHY_CHANGED:
	case GALE_WHY_BROKEN:
	case GALE_WHY_CLOSED:
	case GALE_WHY_FORKED:
	case GALE_WHY_FENCED:
	case GALE_WHY_BAD_ASK:
	case GALE_WHY_ASKED:
	case GALE_WHY_TOO_MUCH:
	case GALE_WHY_RESTARTED:
	case GALE_WHY_SLOT:
	case GALE_WHY_CEILING:
	case GALE_WHY_SHARE:
	case GALE_WHY_ESTIMATE:
	case GALE_WHY_PROBE:
	case GALE_WHY_CUT_OFF:
	case GALE_WHY_CLASS:
	case GALE_WHY_WIDE:
	case GALE_WHY_OWN:
	case GALE_WHY_LENT:
	case GALE_WHY_OTHERS:
		break;
	}
	return false;
}

const char *gale_err_text(enum gale_err err)
{
	switch (err) {
#define GALE_ERR_TEXT_(name, number, text)                                             \
	case GALE_ERR_##name:                                                          \
		return text;
		GALE_ERRORS(GALE_ERR_TEXT_)
#undef GALE_ERR_TEXT_
	}
	return "unknown error";
}

bool gale_why_is_estimate(enum gale_why why)
{
	return why == GALE_WHY_CREDIT || why == GALE_WHY_SPENT ||
	       why == GALE_WHY_RESTARTED;
}
