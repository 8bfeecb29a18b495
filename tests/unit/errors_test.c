/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * errors_test.c -- every error and every why, by the fault that it is for.
 *
 * The tests tick off what they have met; the last two say what was never met.
 */
#define _DEFAULT_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gale/gale.h>
#include <gale/guard.h>
#include <gale/http.h>
#include <gale/tenants.h>

#include "engine/check.h"
#include "face/answer.h"
#include "face/guard.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "tests/support/child.h"
#include "tests/support/customs.h"
#include "tests/support/house.h"
#include "tests/support/must.h"
#include "tests/support/whys.h"

#define LONG_US GALE_SECONDS(30)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ERRORS 105
#define NAME_64 "1234567890123456789012345678901234567890123456789012345678901234"

static bool met_err[ERRORS];
static bool met_why[WHYS];

/* What a pointer to return through must still be after a failure. */
static char untouched;

static void met(enum gale_err actual, enum gale_err expected)
{
	assert_string_equal(gale_err_text(actual), gale_err_text(expected));
	met_err[expected] = true;
}

static void told(struct gale_answer answer, enum gale_why why,
                 enum gale_verdict verdict)
{
	assert_string_equal(gale_why_text(answer.why), gale_why_text(why));
	assert_int_equal(answer.verdict, verdict);
	met_why[why] = true;
}

static struct house_plan plan_of(uint64_t limit)
{
	return (struct house_plan){ .rule = gale_fixed_window(limit, GALE_HOURS(1)) };
}

/* ---- Opening --------------------------------------------------------------------- */

static void fails_runtime(struct gale_config config, enum gale_err expected)
{
	struct gale_runtime *runtime = (void *)&untouched;

	met(gale_runtime_open(&config, &runtime), expected);
	assert_ptr_equal(runtime, &untouched);
}

static uint64_t any_time(struct gale_clock *self)
{
	(void)self;
	return UINT64_C(1) << 59;
}

static void a_runtime_is_refused_for_its_configuration(void **state)
{
	struct gale_allocator sane = *memory_default(), no_alloc = sane, no_free = sane;
	struct gale_log no_write = { NULL };
	struct gale_clock no_now = { 0 },
			  since_1970 = { .now_us = any_time, .boot_ns = any_time };
	struct gale_runtime *runtime;

	(void)state;
	no_alloc.alloc = NULL;
	no_free.free = NULL;
	met(gale_runtime_open(NULL, NULL), GALE_ERR_RET);
	fails_runtime((struct gale_config){ .shards = 257 }, GALE_ERR_SHARDS);
	fails_runtime((struct gale_config){ .shards = UINT32_MAX }, GALE_ERR_SHARDS);
	fails_runtime((struct gale_config){ .pending_max = 65537 }, GALE_ERR_PENDING);
	fails_runtime((struct gale_config){ .poll_us = 10001 }, GALE_ERR_POLL);
	fails_runtime((struct gale_config){ .max_keys = (1u << 28) + 1 },
	              GALE_ERR_NODE_KEYS);
	fails_runtime((struct gale_config){ .allocator = &no_alloc },
	              GALE_ERR_ALLOCATOR);
	fails_runtime((struct gale_config){ .allocator = &no_free },
	              GALE_ERR_ALLOCATOR);
	fails_runtime((struct gale_config){ .log = &no_write }, GALE_ERR_LOG);
	fails_runtime((struct gale_config){ .clock = &no_now }, GALE_ERR_CLOCK);
	fails_runtime((struct gale_config){ .clock = &since_1970 }, GALE_ERR_CLOCK);
	met(gale_runtime_open_sized(&(struct gale_config){ 0 }, 1, &runtime),
	    GALE_ERR_SIZE);
	met(gale_runtime_open(&(struct gale_config){ .pending_max = 65536 }, &runtime),
	    GALE_ERR_OK);
	gale_runtime_close(runtime);
}

static void a_runtime_is_refused_without_memory(void **state)
{
	struct test_allocator none;
	struct gale_config config = { .allocator = &none.allocator };

	(void)state;
	test_allocator_init(&none);
	none.fail_last = UINT64_MAX;
	fails_runtime(config, GALE_ERR_MEMORY);
	assert_true(test_allocator_is_balanced(&none));
}

static int open_without_descriptors(void *arg)
{
	struct rlimit few = { 3, 3 };
	struct gale_runtime *runtime = NULL;

	(void)arg;
	must(setrlimit(RLIMIT_NOFILE, &few) == 0);
	return (int)gale_runtime_open(NULL, &runtime);
}

static int join_without_descriptors(void *arg)
{
	struct rlimit few;
	struct gale_runtime *runtime;
	struct gale_seat *seat = NULL;
	enum gale_err err;

	(void)arg;
	must(gale_runtime_open(NULL, &runtime) == GALE_ERR_OK);
	must(getrlimit(RLIMIT_NOFILE, &few) == 0);
	few.rlim_cur = 3;
	must(setrlimit(RLIMIT_NOFILE, &few) == 0);
	err = gale_join(runtime, &seat);
	gale_runtime_close(runtime);
	return seat ? 99 : (int)err;
}

static void a_system_without_descriptors_is_named(void **state)
{
	(void)state;
	met((enum gale_err)child_run(open_without_descriptors, NULL), GALE_ERR_SYSTEM);
	met((enum gale_err)child_run(join_without_descriptors, NULL), GALE_ERR_SYSTEM);
}

/* One more than there may be, and again one when another has gone. */
static int open_too_many_runtimes(void *arg)
{
	struct gale_config config = { .shards = 1, .turns = true };
	struct gale_runtime *runtimes[GALE_RUNTIMES_MAX], *more = NULL;
	struct rlimit files;
	enum gale_err err;

	(void)arg;
	must(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max;
	must(setrlimit(RLIMIT_NOFILE, &files) == 0);
	for (size_t i = 0; i < GALE_RUNTIMES_MAX; i++)
		must(gale_runtime_open(&config, &runtimes[i]) == GALE_ERR_OK);
	err = gale_runtime_open(&config, &more);
	must(!more);
	gale_runtime_close(runtimes[7]);
	must(gale_runtime_open(&config, &runtimes[7]) == GALE_ERR_OK);
	for (size_t i = 0; i < GALE_RUNTIMES_MAX; i++)
		gale_runtime_close(runtimes[i]);
	return (int)err;
}

static void a_runtime_too_many_is_named(void **state)
{
	(void)state;
	met((enum gale_err)child_run(open_too_many_runtimes, NULL), GALE_ERR_RUNTIMES);
}

static void fails_store(struct house *h, const char *url, uint64_t max_keys,
                        enum gale_err expected)
{
	struct gale_store_config config = { .url = url, .max_keys = max_keys };
	struct gale_store *store = (void *)&untouched;

	met(gale_store_open(h->runtime, &config, &store), expected);
	assert_ptr_equal(store, &untouched);
}

static void a_store_is_refused_for_its_configuration(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_store_config most = { .url = "memory:" NAME_64,
		                          .max_keys = UINT64_C(1) << 31 };
	struct gale_store_config long_wait = { .quarantine_us = GALE_DAYS(1) + 1 };
	struct gale_counts stats;
	struct gale_store *store;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	met(gale_store_open(NULL, NULL, &store), GALE_ERR_RUNTIME);
	met(gale_store_open(h.runtime, NULL, NULL), GALE_ERR_RET);
	met(gale_store_open(h.runtime, &long_wait, &store), GALE_ERR_QUARANTINE);
	fails_store(&h, "", 0, GALE_ERR_URL);
	fails_store(&h, "memory", 0, GALE_ERR_URL);
	fails_store(&h, "Memory:", 0, GALE_ERR_URL);
	fails_store(&h, " memory:", 0, GALE_ERR_URL);
	fails_store(&h, "redis:/127.0.0.1:6379", 0, GALE_ERR_URL);
	fails_store(&h, "redis://h/db", 0, GALE_ERR_URL);
	fails_store(&h, "redis://h?durable=0", 0, GALE_ERR_URL);
	fails_store(&h, "redis://h?durable=10", 0, GALE_ERR_URL);
	fails_store(&h, "redis+sentinel://h/s?durable=all", 0, GALE_ERR_URL);
	fails_store(&h, "redis:///" NAME_64 NAME_64, 0, GALE_ERR_HOST);
	fails_store(&h, "rediss://127.0.0.1?ca=/no/such/file", 0, GALE_ERR_TLS);
	fails_store(&h, "redis+cluster://127.0.0.1/1", 0, GALE_ERR_CLUSTER_DB);
	fails_store(&h, "redis+cluster:///socket", 0, GALE_ERR_URL);
	fails_store(&h, "memory:" NAME_64 "5", 0, GALE_ERR_STORE_NAME);
	fails_store(&h, "memory:", (UINT64_C(1) << 31) + 1, GALE_ERR_STORE_KEYS);
	fails_store(&h, "memory:", UINT64_MAX, GALE_ERR_STORE_KEYS);
	met(gale_store_open(h.runtime, &most, &store), GALE_ERR_OK);
	met(gale_store_stats(NULL, &stats), GALE_ERR_STORE);
	met(gale_store_stats(store, NULL), GALE_ERR_RET);
	gale_store_close(store);
	met(gale_store_stats(store, &stats), GALE_ERR_STORE);
	assert_true(house_close(&h));
}

static struct gale_limiter_config good_limiter(const struct house *h)
{
	return (struct gale_limiter_config){
		.name = "good",
		.rule = gale_fixed_window(5, GALE_HOURS(1)),
		.store = h->store,
	};
}

static void fails_limiter(const struct house *h, struct gale_limiter_config config,
                          enum gale_err expected)
{
	struct gale_limiter *limiter = (void *)&untouched;

	met(gale_limiter_open(h->runtime, &config, &limiter), expected);
	assert_ptr_equal(limiter, &untouched);
}

static void a_limiter_is_refused_for_its_configuration(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_limiter_config good, config;
	struct gale_limiter *limiter;
	struct gale_store *closed;
	struct house h, other;

	(void)state;
	house_open(&h, &plan);
	house_open(&other, &plan);
	config = good = good_limiter(&h);
	met(gale_limiter_open(NULL, &good, &limiter), GALE_ERR_RUNTIME);
	met(gale_limiter_open(h.runtime, NULL, &limiter), GALE_ERR_CONFIG);
	met(gale_limiter_open(h.runtime, &good, NULL), GALE_ERR_RET);
	config.name = NULL;
	fails_limiter(&h, config, GALE_ERR_NAME);
	config.name = "";
	fails_limiter(&h, config, GALE_ERR_NAME);
	config.name = NAME_64 "5";
	fails_limiter(&h, config, GALE_ERR_NAME);
	config.name = NAME_64;
	config.mode = (enum gale_mode)3;
	fails_limiter(&h, config, GALE_ERR_MODE);
	config.mode = GALE_STRICT;
	config.on_outage = (enum gale_on_outage)3;
	fails_limiter(&h, config, GALE_ERR_OUTAGE);
	config.on_outage = GALE_ON_OUTAGE_ALLOW;
	config.store = NULL;
	fails_limiter(&h, config, GALE_ERR_STORE);
	config.store = other.store;
	fails_limiter(&h, config, GALE_ERR_STORE);
	must(gale_store_open(h.runtime, NULL, &closed) == GALE_ERR_OK);
	gale_store_close(closed);
	config.store = closed;
	fails_limiter(&h, config, GALE_ERR_STORE);
	config.store = h.store;
	met(gale_limiter_open(h.runtime, &config, &limiter), GALE_ERR_OK);
	gale_limiter_close(limiter);
	assert_true(house_close(&other));
	assert_true(house_close(&h));
}

/* One part of a good rule is turned bad. */
struct bad_rule {
	enum gale_err err;
	struct gale_rule rule;
};

static struct gale_rule with_cadence(struct gale_rule rule, int cadence)
{
	rule.cadence = (enum gale_cadence)cadence;
	return rule;
}

static struct gale_rule with_allowance(struct gale_rule rule, uint32_t permille)
{
	rule.allowance_permille = permille;
	return rule;
}

static struct gale_rule with_burst(struct gale_rule rule, uint64_t burst)
{
	rule.burst = burst;
	return rule;
}

static void a_limiter_is_refused_for_its_rule(void **state)
{
	const uint64_t units = GALE_UNITS_MAX + 1, span = GALE_SPAN_MAX_US + 1,
		       hour = GALE_HOURS(1);
	const struct bad_rule rules[] = {
		{ GALE_ERR_RULE_KIND, { 0 } },
		{ GALE_ERR_RULE_KIND, { .kind = (enum gale_rule_kind)10, .limit = 1 } },
		{ GALE_ERR_RULE_LIMIT, gale_fixed_window(0, hour) },
		{ GALE_ERR_RULE_LIMIT, gale_fixed_window(units, hour) },
		{ GALE_ERR_RULE_LIMIT, gale_fixed_window(UINT64_MAX, hour) },
		{ GALE_ERR_RULE_LIMIT, gale_sliding_log(65537, hour) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_daily(0, 0) },
		{ GALE_ERR_RULE_PERIOD, gale_sliding_window(5, 0, 10) },
		{ GALE_ERR_RULE_PERIOD, gale_token_budget(5, span) },
		{ GALE_ERR_RULE_PERIOD, gale_quota_anchored(5, 0, 0) },
		{ GALE_ERR_RULE_PERIOD, gale_pacer(5, GALE_PACE_PERIOD_MAX_US + 1, 0) },
		{ GALE_ERR_RULE_BURST, gale_gcra(5, hour, 0) },
		{ GALE_ERR_RULE_BURST, gale_token_bucket(units, 5, hour) },
		{ GALE_ERR_RULE_SPAN, gale_gcra(1, GALE_SPAN_MAX_US, 2) },
		{ GALE_ERR_RULE_SPAN,
		  gale_pacer(1, GALE_PACE_PERIOD_MAX_US, UINT64_C(1) << 7) },
		{ GALE_ERR_RULE_BUCKETS, gale_sliding_window(5, hour, 0) },
		{ GALE_ERR_RULE_BUCKETS, gale_sliding_window(5, hour, 129) },
		{ GALE_ERR_RULE_BUCKETS, gale_sliding_window(5, 9, 10) },
		{ GALE_ERR_RULE_WAIT, gale_leaky_bucket(5, hour, span) },
		{ GALE_ERR_RULE_ANCHOR,
		  gale_quota_anchored(5, hour, (UINT64_C(1) << 52) + 1) },
		{ GALE_ERR_RULE_ALLOWANCE, with_allowance(gale_pacer(5, hour, 1), 0) },
		{ GALE_ERR_RULE_ALLOWANCE,
		  with_allowance(gale_pacer(5, hour, 1), 1001) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_monthly(5, 841) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_daily(5, -841) },
		{ GALE_ERR_RULE_WEEKDAY, gale_quota_weekly(5, 0, 7) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_quota_daily(5, 0), GALE_CADENCE_NONE) },
		{ GALE_ERR_RULE_CADENCE, with_cadence(gale_quota_daily(5, 0), 77) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_fixed_window(5, hour), GALE_DAILY) },
		{ GALE_ERR_RULE_UNUSED, with_burst(gale_fixed_window(5, hour), 1) },
		{ GALE_ERR_RULE_UNUSED, with_burst(gale_quota_daily(5, 0), 1) },
		{ GALE_ERR_RULE_STRATEGY, gale_custom(NULL, 5, hour) },
	};
	struct house_plan plan = plan_of(5);
	struct gale_limiter_config config;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	config = good_limiter(&h);
	for (size_t i = 0; i < COUNT(rules); i++) {
		config.rule = rules[i].rule;
		fails_limiter(&h, config, rules[i].err);
	}
	assert_true(house_close(&h));
}

static void a_seat_is_refused_for_its_handles(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_seat *seat;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	met(gale_join(NULL, &seat), GALE_ERR_RUNTIME);
	met(gale_join(h.runtime, NULL), GALE_ERR_RET);
	assert_true(house_close(&h));
}

/* ---- Asking ---------------------------------------------------------------------- */

static void bad_ask(struct gale_seat *seat, struct gale_limiter *limiter,
                    const void *key, size_t key_len, uint64_t cost)
{
	struct gale_answer answer = gale_ask(seat, limiter, key, key_len, cost, NULL);

	told(answer, GALE_WHY_BAD_ASK, GALE_DENY);
	assert_int_equal(answer.limit, seat && limiter ? 5 : 0);
	assert_int_equal(answer.remaining + answer.retry_after_us, 0);
	told(gale_wait(seat, limiter, key, key_len, cost, 0), GALE_WHY_BAD_ASK,
	     GALE_DENY);
}

static void a_bad_ask_is_denied_whatever_the_policy(void **state)
{
	struct house_plan plan = plan_of(5);
	uint8_t key[GALE_KEY_MAX + 1] = { 0 };
	struct house h;

	(void)state;
	plan.on_outage = GALE_ON_OUTAGE_ALLOW;
	house_open(&h, &plan);
	bad_ask(NULL, h.limiter, key, 1, 1);
	bad_ask(h.seat, NULL, key, 1, 1);
	bad_ask(NULL, NULL, NULL, 0, 0);
	bad_ask(h.seat, h.limiter, NULL, 1, 1);
	bad_ask(h.seat, h.limiter, NULL, 0, 1);
	bad_ask(h.seat, h.limiter, key, 0, 1);
	bad_ask(h.seat, h.limiter, key, GALE_KEY_MAX + 1, 1);
	bad_ask(h.seat, h.limiter, key, SIZE_MAX, 1);
	bad_ask(h.seat, h.limiter, key, 1, 0);
	bad_ask(h.seat, h.limiter, key, 1, GALE_UNITS_MAX + 1);
	bad_ask(h.seat, h.limiter, key, 1, UINT64_MAX);
	assert_int_equal(house_stats(&h).steps, 0);
	told(ask_settled(h.seat, h.limiter, key, GALE_KEY_MAX, 5), GALE_WHY_RULE,
	     GALE_ALLOW);
	assert_true(house_close(&h));
}

static void a_bad_look_names_what_is_bad(void **state)
{
	struct house_plan plan = plan_of(5);
	uint8_t key[GALE_KEY_MAX + 1] = { 0 };
	struct gale_outlook forecast;
	struct gale_answer answer = { .slot = { 1, 0 } };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	met(gale_peek(NULL, h.limiter, key, 1, LONG_US, &answer), GALE_ERR_SEAT);
	met(gale_peek(h.seat, NULL, key, 1, LONG_US, &answer), GALE_ERR_LIMITER);
	met(gale_peek(h.seat, h.limiter, NULL, 1, LONG_US, &answer), GALE_ERR_KEY);
	met(gale_peek(h.seat, h.limiter, key, 0, LONG_US, &answer), GALE_ERR_KEY);
	met(gale_peek(h.seat, h.limiter, key, sizeof(key), LONG_US, &answer),
	    GALE_ERR_KEY);
	met(gale_peek(h.seat, h.limiter, key, 1, 0, NULL), GALE_ERR_RET);
	met(gale_forecast(NULL, h.limiter, key, 1, 1, 0, &forecast), GALE_ERR_SEAT);
	met(gale_forecast(h.seat, NULL, key, 1, 1, 0, &forecast), GALE_ERR_LIMITER);
	met(gale_forecast(h.seat, h.limiter, key, 0, 1, 0, &forecast), GALE_ERR_KEY);
	met(gale_forecast(h.seat, h.limiter, key, 1, 0, 0, &forecast), GALE_ERR_COST);
	met(gale_forecast(h.seat, h.limiter, key, 1, GALE_UNITS_MAX + 1, 0, &forecast),
	    GALE_ERR_COST);
	met(gale_forecast(h.seat, h.limiter, key, 1, 1, 0, NULL), GALE_ERR_RET);
	met(gale_reset(NULL, h.limiter, key, 1, 0), GALE_ERR_SEAT);
	met(gale_reset(h.seat, NULL, key, 1, 0), GALE_ERR_LIMITER);
	met(gale_reset(h.seat, h.limiter, key, 0, 0), GALE_ERR_KEY);
	met(gale_cancel(NULL, h.limiter, key, 1, 1, LONG_US, &answer), GALE_ERR_SEAT);
	met(gale_cancel(h.seat, NULL, key, 1, 1, LONG_US, &answer), GALE_ERR_LIMITER);
	met(gale_cancel(h.seat, h.limiter, key, 0, 1, LONG_US, &answer), GALE_ERR_KEY);
	met(gale_cancel(h.seat, h.limiter, key, 1, 0, LONG_US, &answer), GALE_ERR_COST);
	met(gale_cancel(h.seat, h.limiter, key, 1, 1, 0, NULL), GALE_ERR_RET);
	assert_int_equal(answer.slot.us, 1); /* none of these gave it back */
	met(gale_cancel(h.seat, h.limiter, key, 1, 1, LONG_US, &answer),
	    GALE_ERR_NOT_BOOKED);
	answer.slot = (struct gale_slot){ 0 };
	met(gale_cancel(h.seat, h.limiter, key, 1, 1, LONG_US, &answer),
	    GALE_ERR_NOT_BOOKED);
	assert_true(house_close(&h));
}

static void a_busy_store_is_too_much_or_too_late(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_answer answer;
	struct holder holder;
	struct house h;

	(void)state;
	plan.pending_max = 2;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	met(gale_peek(h.seat, h.limiter, "k", 1, 1, &answer), GALE_ERR_LATE);
	told(gale_wait(h.seat, h.limiter, "k", 1, 1, 1), GALE_WHY_LATE, GALE_DENY);
	met(gale_peek(h.seat, h.limiter, "k", 1, 1, &answer), GALE_ERR_BUSY);
	told(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL), GALE_WHY_BUSY, GALE_DENY);
	told(gale_wait(h.seat, h.limiter, "k", 1, 1, 1), GALE_WHY_BUSY, GALE_DENY);
	holder_end(&holder);
	assert_true(house_close(&h));
}

static void a_store_that_cannot_says_why(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_limiter *changed;
	struct gale_answer answer;
	struct house h;

	(void)state;
	plan.max_keys = 1;
	house_open(&h, &plan);
	changed = house_limiter(&h, "house", gale_gcra(6, GALE_HOURS(1), 6));
	h.allocator.fail_last = UINT64_MAX;
	told(house_ask(&h, "k"), GALE_WHY_MEMORY, GALE_DENY);
	h.allocator.fail_last = 0;
	told(house_ask(&h, "k"), GALE_WHY_RULE, GALE_ALLOW);
	told(house_ask(&h, "l"), GALE_WHY_FULL, GALE_DENY);
	told(ask_settled(h.seat, changed, "k", 1, 1), GALE_WHY_CHANGED, GALE_DENY);
	met(gale_peek(h.seat, changed, "k", 1, LONG_US, &answer),
	    GALE_ERR_STORE_CHANGED);
	/* No look needs room; a store that needed it for one would say this. */
	met(error_of(STORE_FULL), GALE_ERR_STORE_FULL);
	gale_limiter_close(changed);
	told(ask_settled(h.seat, changed, "k", 1, 1), GALE_WHY_CLOSED, GALE_DENY);
	assert_int_equal(house_stats(&h).memory, 1);
	assert_int_equal(house_stats(&h).full, 1);
	assert_int_equal(house_stats(&h).changed, 2);
	assert_true(house_close(&h));
}

/* ---- Leases ---------------------------------------------------------------------- */

/* A store that lends as it is told to. */
struct odd_store {
	struct store store;
	struct store *inner;
	bool silent;
	struct lease_grant grant;
	uint8_t life;
	bool waits;
	struct lend_request latest; /* what it points to is gone */
};

static void odd_lend(const struct store_client *client,
                     const struct lend_request *requests, size_t count)
{
	struct odd_store *odd = (struct odd_store *)client->store;
	struct store_home *home = client->home;

	for (size_t i = 0; i < count && !odd->silent; i++) {
		odd->latest = requests[i];
		home->on_answer(home,
		                &(struct lend_answer){ .number = requests[i].ask.number,
		                                       .result = STORE_DONE,
		                                       .life = odd->life,
		                                       .lives = odd->life,
		                                       .waits = odd->waits,
		                                       .grant = odd->grant });
	}
}

static bool odd_sweep(struct store *self)
{
	(void)self;
	return true;
}

static void odd_close(struct store *self)
{
	struct odd_store *odd = (struct odd_store *)self;

	odd->inner->ops->close(odd->inner);
}

static const struct store_ops odd_ops = { .lend = odd_lend,
	                                  .sweep = odd_sweep,
	                                  .close = odd_close };

/* Whatever is leased from now on is leased from it. */
static void odd_begin(struct odd_store *odd, struct house *h)
{
	*odd = (struct odd_store){ .store = { .ops = &odd_ops },
		                   .inner = h->store->inner };
	house_put_inside(h, &odd->store);
	h->limiter->lender.store = &odd->store;
}

static struct house_plan lease_plan(void)
{
	struct house_plan plan = plan_of(5);

	plan.mode = GALE_LEASED;
	plan.shards = 1;
	plan.lease.patience_us = LONG_US;
	return plan;
}

/* For a store that does not answer. */
static struct house_plan hasty_plan(void)
{
	struct house_plan plan = lease_plan();

	plan.lease.patience_us = 1000;
	return plan;
}

static void a_lease_comes_from_credit_and_ends_in_memory(void **state)
{
	struct house_plan plan = lease_plan();
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (int i = 0; i < 5; i++)
		told(house_wait(&h, "k"), GALE_WHY_CREDIT, GALE_ALLOW);
	told(house_wait(&h, "k"), GALE_WHY_SPENT, GALE_DENY);
	told(ask_settled(h.seat, h.limiter, "k", 1, 6), GALE_WHY_TOO_MUCH, GALE_DENY);
	assert_true(house_close(&h));
}

static void asks_having_seen(struct odd_store *odd, struct house *h, uint64_t seen,
                             uint8_t life)
{
	uint64_t number = odd->latest.ask.number;

	do /* what was denied for a moment is remembered for as long */
		(void)house_wait(h, "k");
	while (odd->latest.ask.number == number);
	assert_int_equal(odd->latest.verb, LEND);
	assert_int_equal(odd->latest.seen, seen);
	if (seen > 0) {
		assert_int_equal(odd->latest.seen_in, odd->grant.tag.us);
		assert_int_equal(odd->latest.life, life);
	}
}

/* The store hears what it has said, from who may have to remind it. L12 */
static void a_store_is_told_what_it_said_was_used(void **state)
{
	struct house_plan plan = lease_plan();
	struct odd_store odd;
	struct house h;

	(void)state;
	plan.rule.limit = 50;
	plan.lease.sizing = GALE_SIZE_FIXED;
	plan.lease.batch = 1;
	house_open(&h, &plan);
	odd_begin(&odd, &h);
	odd.grant = (struct lease_grant){ .units = 1,
		                          .tag = { .us = GALE_HOURS(472222) },
		                          .lasts_us = GALE_MINUTES(50),
		                          .left = 20 };
	odd.life = 7;
	asks_having_seen(&odd, &h, 0, 0);
	asks_having_seen(&odd, &h, 30, 7);
	odd.life = 8;
	odd.waits = true; /* it does not know */
	odd.grant.units = odd.grant.left = 0;
	odd.grant.retry_us = 1;
	asks_having_seen(&odd, &h, 30, 7);
	odd.waits = false;
	odd.grant.units = 1;
	odd.grant.left = 51; /* it is mad */
	asks_having_seen(&odd, &h, 30, 7);
	odd.grant.left = 0;
	asks_having_seen(&odd, &h, 0, 8);
	odd.grant.left = 9;
	asks_having_seen(&odd, &h, 50, 8);
	asks_having_seen(&odd, &h, 41, 8);
	assert_true(house_close(&h));
	assert_int_equal(odd.latest.verb, LEND); /* nothing was left */
}

static void pass_quietly(struct house *h, uint64_t us)
{
	test_clock_advance(&h->clock, us);
	while (gale_turn(h->runtime) > 0)
		continue;
}

/* It answers when the test does. */
struct slow_store {
	struct odd_store odd; /* first */
	struct store_home *home;
	uint64_t asked;
	uint64_t returned;
};

static void slow_lend(const struct store_client *client,
                      const struct lend_request *requests, size_t count)
{
	struct slow_store *slow = (struct slow_store *)client->store;

	slow->home = client->home;
	slow->asked += count;
	slow->odd.latest = requests[count - 1];
	for (size_t i = 0; i < count; i++)
		if (requests[i].verb == LEND_BACK)
			slow->returned += requests[i].units;
}

static enum store_result slow_run(struct store *self, struct store_op *op, bool patient)
{
	struct slow_store *slow = (struct slow_store *)self;

	return slow->odd.inner->ops->run(slow->odd.inner, op, patient);
}

static const struct store_ops slow_ops = {
	.run = slow_run, .lend = slow_lend, .sweep = odd_sweep, .close = odd_close
};

static void slow_answer(struct slow_store *slow)
{
	slow->home->on_answer(
	    slow->home, &(struct lend_answer){ .number = slow->odd.latest.ask.number,
	                                       .result = STORE_DONE,
	                                       .life = slow->odd.life,
	                                       .grant = slow->odd.grant });
}

static void slow_begin(struct slow_store *slow, struct house *h, uint64_t limit)
{
	struct house_plan plan = lease_plan();

	plan.rule.limit = limit;
	plan.lease.sizing = GALE_SIZE_FIXED;
	plan.lease.batch = 30;
	plan.turns = plan.still = true;
	house_open(h, &plan);
	odd_begin(&slow->odd, h);
	slow->odd.store.ops = &slow_ops;
	slow->odd.grant = (struct lease_grant){ .units = 30,
		                                .tag = { .us = GALE_HOURS(472222) },
		                                .lasts_us = GALE_MINUTES(50),
		                                .left = limit - 30 };
	slow->odd.life = 7;
}

/* Of a window of which 30 units are used, and which another limit is set for meanwhile. */
static void slow_answers_after(struct slow_store *slow, struct house *h, uint64_t limit)
{
	struct gale_rule rule = gale_fixed_window(limit, GALE_HOURS(1));
	struct gale_completion done;

	told(gale_ask(h->seat, h->limiter, "k", 1, 1, NULL), GALE_WHY_ASKED,
	     GALE_PENDING);
	pass_quietly(h, 0);
	met(gale_limiter_set_rule(h->limiter, &rule), GALE_ERR_OK);
	pass_quietly(h, 0);
	slow_answer(slow);
	assert_int_equal(gale_seat_completions(h->seat, &done, 1), 1);
	told(done.answer, GALE_WHY_CREDIT, GALE_ALLOW);
}

/* L15: else it would have been all that the limit is larger by. */
static void what_was_used_is_counted_under_the_limit_it_was_asked_under(void **state)
{
	struct slow_store slow = { 0 };
	struct house h;

	(void)state;
	slow_begin(&slow, &h, 50);
	slow_answers_after(&slow, &h, 500);
	told(gale_ask(h.seat, h.limiter, "k", 1, 30, NULL), GALE_WHY_ASKED,
	     GALE_PENDING);
	pass_quietly(&h, 0);
	assert_int_equal(slow.odd.latest.verb, LEND);
	assert_int_equal(slow.odd.latest.seen, 30);
	assert_true(house_close(&h));
}

/* L15: a smaller limit is in force soon, and not when what was on its way is spent. */
static void what_arrives_under_a_larger_limit_goes_back_but_for_who_waits(void **state)
{
	struct slow_store slow = { 0 };
	struct house h;

	(void)state;
	slow_begin(&slow, &h, 50);
	slow_answers_after(&slow, &h, 20);
	told(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL), GALE_WHY_ASKED,
	     GALE_PENDING);
	pass_quietly(&h, 0);
	assert_int_equal(slow.asked, 3);
	assert_int_equal(slow.returned, 29);
	assert_int_equal(slow.odd.latest.verb, LEND); /* last: its number is higher */
	assert_true(house_close(&h));
}

/* L1: the store has forgotten that it lent these. */
static void what_was_lent_before_a_reset_is_not_spent_after_it(void **state)
{
	struct house_plan plan = lease_plan();
	struct gale_completion done;
	struct slow_store slow = { 0 };
	struct house h;

	(void)state;
	plan.turns = plan.still = true;
	house_open(&h, &plan);
	odd_begin(&slow.odd, &h);
	slow.odd.store.ops = &slow_ops;
	slow.odd.grant = (struct lease_grant){ .units = 1,
		                               .tag = { .us = GALE_HOURS(472222) },
		                               .lasts_us = GALE_MINUTES(50) };
	told(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL), GALE_WHY_ASKED,
	     GALE_PENDING);
	pass_quietly(&h, 0);
	assert_int_equal(slow.asked, 1);
	met(gale_reset(h.seat, h.limiter, "k", 1, LONG_US), GALE_ERR_OK);
	slow_answer(&slow);
	assert_int_equal(gale_seat_completions(h.seat, &done, 1), 0);
	pass_quietly(&h, 0);
	assert_int_equal(slow.asked, 2);
	slow_answer(&slow);
	assert_int_equal(gale_seat_completions(h.seat, &done, 1), 1);
	told(done.answer, GALE_WHY_CREDIT, GALE_ALLOW);
	assert_true(house_close(&h));
}

/* What it would have taken stays for the next. */
static void who_has_given_up_takes_nothing_that_comes_late(void **state)
{
	struct slow_store slow = { 0 };
	struct house h;

	(void)state;
	slow_begin(&slow, &h, 50);
	told(gale_wait(h.seat, h.limiter, "k", 1, 1, 1000), GALE_WHY_LATE, GALE_DENY);
	pass_quietly(&h, 1000);
	assert_int_equal(slow.asked, 1);
	slow_answer(&slow);
	for (int i = 0; i < 30; i++)
		told(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL), GALE_WHY_CREDIT,
		     GALE_ALLOW);
	assert_int_equal(house_metric(&h, "asks_out_of_patience"), 1);
	assert_true(house_close(&h));
}

static uint64_t recalls(struct house *h)
{
	return house_metric(h, "denials_asked_about_in_case_the_store_forgot");
}

static void open_denying(struct house *h, struct odd_store *odd, uint64_t window_us,
                         uint64_t quarantine_us)
{
	struct house_plan plan = lease_plan();

	plan.rule = gale_fixed_window(50, window_us);
	plan.turns = plan.still = true;
	house_open(h, &plan);
	odd_begin(odd, h);
	odd->store.quarantine_us = quarantine_us;
	odd->grant = (struct lease_grant){ .tag = { .us = GALE_HOURS(472222) },
		                           .lasts_us = window_us,
		                           .retry_us = window_us };
	odd->life = 7;
	told(house_wait(h, "k"), GALE_WHY_SPENT, GALE_DENY);
	told(house_wait(h, "l"), GALE_WHY_SPENT, GALE_DENY);
}

/* Where all has been denied nobody would hear of it until the window turns: one key asks,
 * and if the store may have forgotten, so does each that is asked about. L12 */
static void a_store_that_denies_all_is_asked_whether_it_forgot(void **state)
{
	struct odd_store odd;
	struct house h;
	uint64_t number;

	(void)state;
	open_denying(&h, &odd, GALE_HOURS(1), GALE_MINUTES(1));
	number = odd.latest.ask.number;
	pass_quietly(&h, GALE_SECONDS(19));
	told(house_wait(&h, "k"), GALE_WHY_SPENT, GALE_DENY);
	assert_int_equal(odd.latest.ask.number, number);
	pass_quietly(&h, GALE_SECONDS(2));
	assert_int_equal(recalls(&h), 1);
	pass_quietly(&h, GALE_SECONDS(1));
	assert_int_equal(recalls(&h), 1);
	number = odd.latest.ask.number;
	told(house_wait(&h, "k"), GALE_WHY_SPENT, GALE_DENY);
	assert_int_equal(odd.latest.ask.number, number);

	odd.life = 8;
	odd.waits = true;
	pass_quietly(&h, GALE_SECONDS(20));
	assert_int_equal(recalls(&h), 4); /* and then both */
	assert_int_equal(odd.latest.seen, 50);
	assert_int_equal(odd.latest.seen_in, odd.grant.tag.us);
	assert_int_equal(odd.latest.life, 7);
	assert_true(house_close(&h));
}

/* The first key asks in vain.  As nothing else is heard of the store then, it goes on; and when the
 * store answers, it has heard of neither key since. L12 */
static void a_store_that_was_down_is_asked_about_all_that_it_denied(void **state)
{
	struct odd_store odd;
	struct house h;
	uint64_t before;

	(void)state;
	open_denying(&h, &odd, GALE_HOURS(1), GALE_MINUTES(1));
	odd.silent = true;
	pass_quietly(&h, GALE_SECONDS(21));
	assert_int_equal(recalls(&h), 1);
	for (int i = 0; i < 120; i++)
		pass_quietly(&h, GALE_SECONDS(1));
	before = recalls(&h);
	assert_in_range(before, 2, 16);

	odd.silent = false;
	odd.life = 8;
	odd.waits = true;
	for (int i = 0; i < 60; i++)
		pass_quietly(&h, GALE_SECONDS(1));
	assert_true(recalls(&h) >= before + 2);
	assert_int_equal(odd.latest.seen, 50);
	assert_int_equal(odd.latest.life, 7);
	assert_true(house_close(&h));
}

/* It has turned before anything is granted again. */
/* What is long is longer than the quarantine of its store, however short that is. */
static void of_a_window_that_outlasts_a_short_quarantine_it_is_asked(void **state)
{
	struct odd_store odd;
	struct house h;

	(void)state;
	open_denying(&h, &odd, GALE_SECONDS(20), GALE_SECONDS(2));
	pass_quietly(&h, GALE_MILLIS(600));
	assert_int_equal(recalls(&h), 0);
	pass_quietly(&h, GALE_MILLIS(100));
	assert_int_equal(recalls(&h), 1);
	assert_int_equal(odd.latest.seen, 50);
	assert_true(house_close(&h));
}

static void of_a_short_window_nobody_asks_that(void **state)
{
	struct odd_store odd;
	struct house h;

	(void)state;
	open_denying(&h, &odd, GALE_MINUTES(1), GALE_MINUTES(1));
	pass_quietly(&h, GALE_SECONDS(30));
	assert_int_equal(recalls(&h), 0);
	assert_true(house_close(&h));
}

/* Its server grants nothing for so long. */
static void odd_is_quarantined(struct odd_store *odd, uint64_t left_us)
{
	odd->waits = true;
	odd->grant = (struct lease_grant){ .tag = { .us = GALE_HOURS(472222) },
		                           .lasts_us = GALE_MINUTES(50),
		                           .retry_us = left_us };
}

static void open_quarantined(struct house *h, struct odd_store *odd,
                             enum gale_on_outage on_outage)
{
	struct house_plan plan = lease_plan();

	plan.turns = plan.still = true;
	plan.lease.sizing = GALE_SIZE_FIXED;
	plan.lease.batch = 2;
	plan.on_outage = on_outage;
	plan.outage_share = on_outage == GALE_ON_OUTAGE_SHARE ? 1 : 0;
	house_open(h, &plan);
	odd_begin(odd, h);
	odd_is_quarantined(odd, GALE_SECONDS(20));
}

/* It is known until it is over: until then nobody asks the store. */
static void a_quarantine_is_remembered_as_that_and_ends(void **state)
{
	struct gale_answer answer;
	struct odd_store odd;
	struct house h;

	(void)state;
	open_quarantined(&h, &odd, GALE_ON_OUTAGE_DENY);
	told(house_wait(&h, "k"), GALE_WHY_QUARANTINE, GALE_DENY);
	odd.grant = (struct lease_grant){ .units = 1,
		                          .tag = { .us = GALE_HOURS(472222) },
		                          .lasts_us = GALE_MINUTES(50) };
	odd.waits = false;
	pass_quietly(&h, GALE_SECONDS(15));
	answer = gale_ask(h.seat, h.limiter, "k", 1, 1, NULL);
	told(answer, GALE_WHY_QUARANTINE, GALE_DENY);
	assert_in_range(answer.retry_after_us, GALE_SECONDS(5), GALE_MILLIS(5001));
	assert_int_equal(answer.reset_after_us, answer.retry_after_us);
	assert_int_equal(answer.limit, 5);
	assert_int_equal(house_metric(&h, "asks_in_quarantine"), 1);
	assert_int_equal(house_metric(&h, "turned_away_in_quarantine"), 1);
	assert_int_equal(house_metric(&h, "refused_from_memory"), 0);
	pass_quietly(&h, GALE_MILLIS(5001));
	told(house_wait(&h, "k"), GALE_WHY_CREDIT, GALE_ALLOW);
	assert_true(house_close(&h));
}

static void in_quarantine_the_policy_decides(void **state)
{
	struct odd_store odd;
	struct house h;

	(void)state;
	open_quarantined(&h, &odd, GALE_ON_OUTAGE_ALLOW);
	for (int i = 0; i < 3; i++)
		told(house_wait(&h, "k"), GALE_WHY_QUARANTINE, GALE_ALLOW);
	assert_int_equal(house_ask(&h, "k").retry_after_us, 0);
	assert_true(house_close(&h));

	open_quarantined(&h, &odd, GALE_ON_OUTAGE_SHARE);
	told(house_wait(&h, "k"), GALE_WHY_QUARANTINE, GALE_ALLOW);
	told(house_wait(&h, "k"), GALE_WHY_QUARANTINE, GALE_DENY);
	told(house_wait(&h, "l"), GALE_WHY_QUARANTINE, GALE_ALLOW);
	assert_true(house_close(&h));
}

/* What was lent before is good until it dies. */
static void credit_in_hand_is_spent_in_quarantine(void **state)
{
	struct odd_store odd;
	struct house h;

	(void)state;
	open_quarantined(&h, &odd, GALE_ON_OUTAGE_DENY);
	odd.waits = false;
	odd.grant.units = 2;
	told(house_wait(&h, "k"), GALE_WHY_CREDIT, GALE_ALLOW);
	odd_is_quarantined(&odd, GALE_SECONDS(20));
	told(house_wait(&h, "k"), GALE_WHY_CREDIT, GALE_ALLOW);
	told(house_wait(&h, "k"), GALE_WHY_QUARANTINE, GALE_DENY);
	assert_true(house_close(&h));
}

/* It steps as its server does that has forgotten. */
static void odd_step(const struct store_client *client, struct store_call *call)
{
	struct odd_store *odd = (struct odd_store *)client->store;

	odd->latest.units++; /* calls */
	call->op->answer =
	    (struct gale_answer){ .verdict = GALE_DENY,
		                  .why = GALE_WHY_QUARANTINE,
		                  .limit = 5,
		                  .retry_after_us = odd->grant.retry_us,
		                  .reset_after_us = odd->grant.retry_us };
	store_finish(client->home, call, STORE_QUARANTINE);
}

static enum store_result odd_run(struct store *self, struct store_op *op, bool patient)
{
	(void)self, (void)op, (void)patient;
	return STORE_BUSY;
}

static const struct store_ops odd_server_ops = {
	.run = odd_run, .begin = odd_step, .sweep = odd_sweep, .close = odd_close
};

static uint64_t calls_of(enum gale_mode mode, enum gale_on_outage on_outage)
{
	struct house_plan plan = plan_of(5);
	struct odd_store odd;
	struct house h;
	enum gale_verdict verdict =
	    on_outage == GALE_ON_OUTAGE_ALLOW ? GALE_ALLOW : GALE_DENY;

	plan.mode = mode;
	plan.shards = 1;
	plan.turns = plan.still = true;
	plan.on_outage = on_outage;
	house_open(&h, &plan);
	odd_begin(&odd, &h);
	odd.store.ops = &odd_server_ops;
	odd.grant.retry_us = GALE_SECONDS(20);
	for (int i = 0; i < 3; i++) {
		struct gale_answer answer = house_wait(&h, "k");

		told(answer, GALE_WHY_QUARANTINE, verdict);
		assert_in_range(answer.retry_after_us,
		                verdict == GALE_DENY ? GALE_SECONDS(20) : 0,
		                verdict == GALE_DENY ? GALE_MILLIS(20001) : 0);
	}
	told(gale_wait(h.seat, h.limiter, "k", 1, GALE_UNITS_MAX, LONG_US),
	     GALE_WHY_QUARANTINE, verdict); /* more than a word can deny */
	assert_true(house_close(&h));
	return odd.latest.units;
}

static void a_server_that_decides_each_call_is_quarantined_as_well(void **state)
{
	(void)state;
	for (int allow = 0; allow < 2; allow++) {
		enum gale_on_outage on_outage =
		    allow ? GALE_ON_OUTAGE_ALLOW : GALE_ON_OUTAGE_DENY;

		assert_int_equal(calls_of(GALE_STRICT, on_outage), 4);
		assert_int_equal(calls_of(GALE_CACHED_DENY, on_outage), 1);
	}
}

/* A server that keeps the latest call. */
struct keeping_store {
	struct odd_store odd; /* first */
	struct store_home *home;
	struct store_call *call;
};

static void keep_call(const struct store_client *client, struct store_call *call)
{
	struct keeping_store *keeping = (struct keeping_store *)client->store;

	keeping->home = client->home;
	keeping->call = call;
}

static const struct store_ops keeping_ops = {
	.run = odd_run, .begin = keep_call, .sweep = odd_sweep, .close = odd_close
};

static void call_is_late(struct keeping_store *keeping, struct house *h, uint64_t after)
{
	pass_quietly(h, after);
	store_finish(keeping->home, keeping->call, STORE_LATE);
	pass_quietly(h, 0);
}

/* The server is told for how long its answer is of use; it is late when the limiter's patience ends. */
static void who_waits_for_less_than_others_makes_no_server_down(void **state)
{
	struct keeping_store keeping = { 0 };
	struct house_plan plan = plan_of(5);
	struct house h;

	(void)state;
	plan.shards = 1;
	plan.turns = plan.still = true;
	plan.lease.patience_us = LONG_US;
	house_open(&h, &plan);
	odd_begin(&keeping.odd, &h);
	keeping.odd.store.ops = &keeping_ops;
	told(gale_wait(h.seat, h.limiter, "k", 1, 1, 1000), GALE_WHY_LATE, GALE_DENY);
	assert_int_equal(keeping.call->until.ns,
	                 mono_after(clock_now(h.runtime->node_clock), 1000000).ns);
	assert_int_equal(
	    keeping.call->due.ns,
	    mono_after(clock_now(h.runtime->node_clock), LONG_US * 1000).ns);
	pass_quietly(&h, 1000);
	store_finish(keeping.home, keeping.call, STORE_BUSY); /* it was not sent */
	pass_quietly(&h, 0);
	told(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL), GALE_WHY_ASKED,
	     GALE_PENDING);
	pass_quietly(&h, 0);
	assert_int_equal(
	    keeping.call->due.ns,
	    mono_after(clock_now(h.runtime->node_clock), LONG_US * 1000).ns);
	call_is_late(&keeping, &h, LONG_US); /* now it is */
	told(gale_wait(h.seat, h.limiter, "k", 1, 1, LONG_US), GALE_WHY_DOWN,
	     GALE_DENY);
	assert_true(house_close(&h));
}

/* It is late after patience_us for them, too. */
static void a_dead_server_is_down_for_hasty_callers(void **state)
{
	struct keeping_store keeping = { 0 };
	struct house_plan plan = plan_of(5);
	struct house h;

	(void)state;
	plan.shards = 1;
	plan.turns = plan.still = true;
	plan.lease.patience_us = LONG_US;
	house_open(&h, &plan);
	odd_begin(&keeping.odd, &h);
	keeping.odd.store.ops = &keeping_ops;
	told(gale_wait(h.seat, h.limiter, "k", 1, 1, LONG_US / 2), GALE_WHY_LATE,
	     GALE_DENY);
	call_is_late(&keeping, &h, LONG_US);
	told(gale_wait(h.seat, h.limiter, "k", 1, 1, LONG_US / 2), GALE_WHY_DOWN,
	     GALE_DENY);
	assert_true(house_close(&h));
}

/* The shard comes to it when its caller has gone; what it says then. */
static enum store_result given_up_in_the_mailbox(struct house *h)
{
	struct store_op op = { .verb = STORE_STEP, .cost = 1 };
	uint8_t key[STORE_KEY_MAX];
	struct pending *pending;

	key[0] = h->limiter->lender.name_len;
	memcpy(key + 1, h->limiter->lender.name, key[0]);
	key[1 + key[0]] = 'k';
	op.key = key;
	op.key_len = 2u + key[0];
	pending = seat_send(h->seat, h->limiter, &op, NULL,
	                    mono_after(clock_now(h->runtime->node_clock), 1000000));
	assert_non_null(pending);
	pass_quietly(h, 5000);
	return pending->ask.result;
}

static void who_has_given_up_in_the_mailbox_takes_nothing(void **state)
{
	struct slow_store slow = { 0 };
	struct gale_completion done;
	struct house h;

	(void)state;
	slow_begin(&slow, &h, 50);
	told(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL), GALE_WHY_ASKED,
	     GALE_PENDING);
	pass_quietly(&h, 0);
	slow_answer(&slow);
	assert_int_equal(gale_seat_completions(h.seat, &done, 1), 1);
	assert_int_equal(given_up_in_the_mailbox(&h), STORE_LATE);
	assert_true(house_close(&h));
}

/* Nor is the server asked for it, that decides each call. */
static void who_has_given_up_in_the_mailbox_is_not_sent(void **state)
{
	struct keeping_store keeping = { 0 };
	struct house_plan plan = plan_of(5);
	struct house h;

	(void)state;
	plan.shards = 1;
	plan.turns = plan.still = true;
	house_open(&h, &plan);
	odd_begin(&keeping.odd, &h);
	keeping.odd.store.ops = &keeping_ops;
	assert_int_equal(given_up_in_the_mailbox(&h), STORE_LATE);
	assert_null(keeping.call);
	assert_int_equal(house_metric(&h, "asks_out_of_patience"), 1);
	assert_true(house_close(&h));
}

static void a_store_that_never_answers_is_late_and_then_down(void **state)
{
	struct house_plan plan = hasty_plan();
	struct gale_answer answer = { 0 };
	struct odd_store odd;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	odd_begin(&odd, &h);
	odd.silent = true;
	told(house_wait(&h, "k"), GALE_WHY_LATE, GALE_DENY);
	/* The pause doubles with each failure: it is met by the slowest of machines. */
	for (int i = 0; i < 20 && answer.why != GALE_WHY_DOWN; i++) {
		answer = house_wait(&h, "k");
		must(answer.why == GALE_WHY_LATE || answer.why == GALE_WHY_DOWN);
	}
	told(answer, GALE_WHY_DOWN, GALE_DENY);
	assert_true(house_close(&h));
}

static enum gale_verdict late_or_down(struct house *h, const char *key)
{
	struct gale_answer answer = house_wait(h, key);

	must(answer.why == GALE_WHY_LATE || answer.why == GALE_WHY_DOWN);
	return answer.verdict;
}

static void a_node_may_have_a_share_while_the_store_is_down(void **state)
{
	struct house_plan plan = hasty_plan();
	struct odd_store odd;
	struct house h;

	(void)state;
	plan.on_outage = GALE_ON_OUTAGE_SHARE;
	plan.outage_share = 2;
	house_open(&h, &plan);
	odd_begin(&odd, &h);
	odd.silent = true;
	assert_int_equal(late_or_down(&h, "k"), GALE_ALLOW);
	assert_int_equal(late_or_down(&h, "k"), GALE_ALLOW);
	assert_int_equal(late_or_down(&h, "k"), GALE_DENY); /* once for a window */
	assert_int_equal(late_or_down(&h, "l"), GALE_ALLOW);
	test_clock_advance(&h.clock, GALE_HOURS(1));
	assert_int_equal(late_or_down(&h, "k"), GALE_ALLOW);
	assert_true(house_close(&h));
}

/* By a thread that looks at a key of the share's. */
static void hold_share(struct holder *holder, struct house *h)
{
	struct store *inner = h->limiter->store->inner;

	house_put_inside(h, h->limiter->share_store);
	holder_begin(holder, h->limiter, "k");
	house_put_inside(h, inner);
}

static void nobody_waits_for_a_share_that_another_thread_holds(void **state)
{
	struct house_plan plan = hasty_plan();
	struct holder holder;
	struct odd_store odd;
	struct house h;

	(void)state;
	plan.on_outage = GALE_ON_OUTAGE_SHARE;
	plan.outage_share = 2;
	plan.turns = true;
	house_open(&h, &plan);
	odd_begin(&odd, &h);
	odd.silent = true;
	hold_share(&holder, &h);
	assert_int_equal(late_or_down(&h, "k"), GALE_DENY);
	holder_end(&holder);
	assert_int_equal(late_or_down(&h, "k"), GALE_ALLOW);
	assert_true(house_close(&h));
}

static void a_store_that_lends_more_than_was_asked_is_not_believed(void **state)
{
	struct house_plan plan = lease_plan();
	struct odd_store odd;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	odd_begin(&odd, &h);
	odd.grant =
	    (struct lease_grant){ .units = 1000, .tag = { 1, 0 }, .lasts_us = 1000 };
	told(house_wait(&h, "k"), GALE_WHY_WRONG, GALE_DENY);
	assert_true(house_close(&h));
}

static void a_strategy_that_rules_what_cannot_be_is_not_believed(void **state)
{
	struct house_plan plan = { .rule = custom_broken(FAULT_NEGATIVE) };
	struct gale_answer peek;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	told(house_wait(&h, "k"), GALE_WHY_BROKEN, GALE_DENY);
	met(gale_peek(h.seat, h.limiter, "k", 1, LONG_US, &peek), GALE_ERR_BROKEN);
	assert_true(house_close(&h));
}

/* It has no way to say so, and nothing to say. */
static void a_prefetch_of_what_is_not_there_does_nothing(void **state)
{
	struct house_plan plan = lease_plan();
	uint8_t key[GALE_KEY_MAX + 1] = { 0 };
	struct house h, other;

	(void)state;
	house_open(&h, &plan);
	house_open(&other, &plan);
	gale_prefetch(NULL, h.limiter, key, 1);
	gale_prefetch(h.seat, NULL, key, 1);
	gale_prefetch(h.seat, other.limiter, key, 1);
	gale_prefetch(h.seat, h.limiter, NULL, 1);
	gale_prefetch(h.seat, h.limiter, key, 0);
	gale_prefetch(h.seat, h.limiter, key, GALE_KEY_MAX + 1);
	gale_prefetch(h.seat, h.limiter, key, SIZE_MAX);
	gale_prefetch(h.seat, h.limiter, key, GALE_KEY_MAX);
	assert_int_equal(house_stats(&h).leases, 0);
	told(house_wait(&h, "k"), GALE_WHY_CREDIT, GALE_ALLOW);
	gale_runtime_close(h.runtime);
	gale_prefetch(h.seat, h.limiter, "k", 1);
	h.runtime = NULL;
	assert_true(house_close(&other));
	assert_true(house_close(&h));
}

static void a_node_whose_keys_are_all_held_says_so(void **state)
{
	struct house_plan plan = lease_plan();
	struct gale_key *key;
	struct house h;

	(void)state;
	plan.node_keys = 1;
	plan.lease.sizing = GALE_SIZE_FIXED;
	plan.lease.batch = 5;
	house_open(&h, &plan);
	met(gale_key_open(h.seat, h.limiter, "k", 1, &key), GALE_ERR_OK);
	told(house_wait(&h, "k"), GALE_WHY_CREDIT, GALE_ALLOW);
	told(gale_ask_key(key, 1, NULL), GALE_WHY_CREDIT, GALE_ALLOW);
	told(house_wait(&h, "l"), GALE_WHY_CROWDED, GALE_DENY);
	gale_key_close(key);
	gale_tick(h.seat); /* who knows the time is quick */
	told(gale_ask_key(key, 1, NULL), GALE_WHY_CLOSED, GALE_DENY);
	told(house_wait(&h, "l"), GALE_WHY_CREDIT, GALE_ALLOW);
	assert_true(house_close(&h));
}

static void fails_lease(struct house *h, struct gale_rule rule,
                        struct gale_leasing lease, enum gale_err expected)
{
	struct gale_limiter_config config = { .name = "l",
		                              .rule = rule,
		                              .mode = GALE_LEASED,
		                              .store = h->store,
		                              .lease = lease };
	struct gale_limiter *limiter = (void *)&untouched;

	met(gale_limiter_open(h->runtime, &config, &limiter), expected);
	assert_ptr_equal(limiter, &untouched);
}

struct knower {
	struct gale_predictor predictor;
	_Atomic uint64_t asked;
};

static uint64_t forty(struct gale_predictor *self, const void *key, size_t key_len)
{
	struct knower *knower = (struct knower *)self;

	must(key_len == 1 && *(const char *)key == 'k');
	atomic_fetch_add(&knower->asked, 1);
	return 40;
}

/* sqrt(2 * 20 * 40 / 1) = 40, and the other expert says 1 at first: between them. */
static void a_predictor_is_asked_how_much_will_be_wanted(void **state)
{
	struct house_plan plan = lease_plan();
	struct knower knower = { .predictor = { forty } };
	struct house h;

	(void)state;
	plan.rule = gale_fixed_window(1000, GALE_HOURS(1));
	plan.lease.sizing = GALE_SIZE_HEDGE;
	plan.lease.predictor = &knower.predictor;
	house_open(&h, &plan);
	told(house_wait(&h, "k"), GALE_WHY_CREDIT, GALE_ALLOW);
	assert_int_equal(knower.asked, 1);
	assert_in_range(house_metric(&h, "units_lent"), 2, 40);
	assert_true(house_close(&h));
}

static void a_lease_is_refused_for_its_terms(void **state)
{
	struct house_plan plan = lease_plan();
	struct gale_rule window = plan.rule;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	fails_lease(&h, gale_sliding_window(5, 1000000, 10), (struct gale_leasing){ 0 },
	            GALE_ERR_CANNOT_LEASE);
	fails_lease(&h, gale_sliding_log(5, 1000000), (struct gale_leasing){ 0 },
	            GALE_ERR_CANNOT_LEASE);
	fails_lease(&h, gale_token_budget(5, 1000000), (struct gale_leasing){ 0 },
	            GALE_ERR_CANNOT_LEASE);
	fails_lease(&h, custom_window(5, 1000000), (struct gale_leasing){ 0 },
	            GALE_ERR_CANNOT_LEASE);
	fails_lease(&h, window, (struct gale_leasing){ .sizing = GALE_SIZE_FIXED },
	            GALE_ERR_SIZING);
	fails_lease(&h, window,
	            (struct gale_leasing){ .sizing = GALE_SIZE_EOQ, .order_cost = -1 },
	            GALE_ERR_SIZING);
	fails_lease(&h, window, (struct gale_leasing){ .sizing = GALE_SIZE_HEDGE },
	            GALE_ERR_SIZING);
	fails_lease(&h, window,
	            (struct gale_leasing){ .patience_us = GALE_HOURS(1) + 1 },
	            GALE_ERR_PATIENCE);
	fails_lease(&h, window, (struct gale_leasing){ .drift_ppm = 100001 },
	            GALE_ERR_DRIFT);
	fails_lease(&h, window, (struct gale_leasing){ .carry_over = true },
	            GALE_ERR_CARRY_OVER);
	assert_true(house_close(&h));
}

/* An ask of any mode may have to wait for the store. */
static void patience_is_bounded_in_every_mode(void **state)
{
	struct house_plan plan = plan_of(5);
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (int mode = GALE_STRICT; mode <= GALE_LEASED; mode++) {
		struct gale_limiter_config config = {
			.name = "l",
			.rule = plan.rule,
			.mode = (enum gale_mode)mode,
			.store = h.store,
			.lease = { .patience_us = GALE_HOURS(1) },
		};
		struct gale_limiter *limiter;

		met(gale_limiter_open(h.runtime, &config, &limiter), GALE_ERR_OK);
		gale_limiter_close(limiter);
		config.lease.patience_us++;
		met(gale_limiter_open(h.runtime, &config, &limiter), GALE_ERR_PATIENCE);
	}
	assert_true(house_close(&h));
}

static void a_held_key_is_refused_for_what_it_is_of(void **state)
{
	struct house_plan plan = lease_plan();
	struct gale_key *key = (void *)&untouched;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	met(gale_key_open(NULL, h.limiter, "k", 1, &key), GALE_ERR_SEAT);
	met(gale_key_open(h.seat, NULL, "k", 1, &key), GALE_ERR_LIMITER);
	met(gale_key_open(h.seat, h.limiter, NULL, 1, &key), GALE_ERR_KEY);
	met(gale_key_open(h.seat, h.limiter, "k", 0, &key), GALE_ERR_KEY);
	met(gale_key_open(h.seat, h.limiter, "k", 1, NULL), GALE_ERR_RET);
	assert_ptr_equal(key, &untouched);
	told(gale_ask_key(NULL, 1, NULL), GALE_WHY_BAD_ASK, GALE_DENY);
	met(gale_key_open(h.seat, h.limiter, "k", 1, &key), GALE_ERR_OK);
	told(gale_ask_key(key, 0, NULL), GALE_WHY_BAD_ASK, GALE_DENY);
	gale_key_close(key);
	assert_true(house_close(&h));
}

/* ---- Tenants ---------------------------------------------------------------------- */

static void fails_budget(const struct house *h, struct gale_budget_config config,
                         enum gale_err expected)
{
	struct gale_budget *budget = (void *)&untouched;

	met(gale_budget_open(h->runtime, &config, &budget), expected);
	assert_ptr_equal(budget, &untouched);
}

#define BUDGET(...)                                                                    \
	((struct gale_budget_config){                                                  \
	    .limit = 100, .window_us = GALE_SECONDS(1), __VA_ARGS__ })

static void a_budget_is_refused_for_its_configuration(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_budget_config good = BUDGET(.max_tenants = 1);
	struct gale_budget *budget = (void *)&untouched;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	met(gale_budget_open(NULL, &good, &budget), GALE_ERR_RUNTIME);
	met(gale_budget_open(h.runtime, NULL, &budget), GALE_ERR_CONFIG);
	met(gale_budget_open(h.runtime, &good, NULL), GALE_ERR_RET);
	met(gale_budget_open_sized(h.runtime, &good, 3, &budget), GALE_ERR_SIZE);
	fails_budget(&h, (struct gale_budget_config){ .window_us = GALE_SECONDS(1) },
	             GALE_ERR_BUDGET_LIMIT);
	fails_budget(&h,
	             (struct gale_budget_config){ .limit = GALE_UNITS_MAX + 1,
	                                          .window_us = GALE_SECONDS(1) },
	             GALE_ERR_BUDGET_LIMIT);
	fails_budget(&h, (struct gale_budget_config){ .limit = 1, .window_us = 999 },
	             GALE_ERR_BUDGET_WINDOW);
	fails_budget(&h, BUDGET(.protect_us = GALE_SECONDS(1) + 1), GALE_ERR_PROTECT);
	fails_budget(&h, BUDGET(.max_tenants = GALE_TENANTS_MAX + 1), GALE_ERR_TENANTS);
	fails_budget(&h, BUDGET(.lending = (enum gale_lending)2), GALE_ERR_LENDING);
	assert_ptr_equal(budget, &untouched);
	assert_true(house_close(&h));
}

static void fails_tenant(struct gale_budget *budget, struct gale_terms terms,
                         enum gale_err expected)
{
	struct gale_tenant *tenant = (void *)&untouched;

	met(gale_tenant_open(budget, &terms, &tenant), expected);
	assert_ptr_equal(tenant, &untouched);
}

static void a_tenant_is_refused_for_its_terms(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_budget_config config = BUDGET(.max_tenants = 2);
	struct gale_terms terms = { .guarantee = 60, .weight = 1 }, high = terms;
	struct gale_tenant_counts counts;
	struct gale_tenant *one, *two;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	high.guarantee = 101;
	house_open(&h, &plan);
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	fails_tenant(NULL, terms, GALE_ERR_BUDGET);
	fails_tenant(budget, (struct gale_terms){ .weight = 0 },
	             GALE_ERR_TENANT_WEIGHT);
	fails_tenant(budget,
	             (struct gale_terms){ .weight = GALE_TENANT_WEIGHT_MAX + 1 },
	             GALE_ERR_TENANT_WEIGHT);
	fails_tenant(budget,
	             (struct gale_terms){ .guarantee = 2, .cap = 1, .weight = 1 },
	             GALE_ERR_CAP);
	fails_tenant(budget, (struct gale_terms){ .weight = 1, .reserved = 1 },
	             GALE_ERR_SIZE);
	must(gale_tenant_open(budget, &terms, &one) == GALE_ERR_OK);
	fails_tenant(budget, terms, GALE_ERR_GUARANTEE);
	met(gale_tenant_set_terms(one, &high), GALE_ERR_GUARANTEE);
	met(gale_tenant_set_terms(NULL, &high), GALE_ERR_TENANT);
	met(gale_tenant_stats(NULL, &counts), GALE_ERR_TENANT);
	met(gale_tenant_stats(one, NULL), GALE_ERR_RET);
	met(gale_budget_set_limit(budget, 59), GALE_ERR_GUARANTEE);
	met(gale_budget_set_limit(budget, 0), GALE_ERR_BUDGET_LIMIT);
	met(gale_budget_set_limit(NULL, 1), GALE_ERR_BUDGET);
	terms.guarantee = 0;
	must(gale_tenant_open(budget, &terms, &two) == GALE_ERR_OK);
	fails_tenant(budget, terms, GALE_ERR_TENANTS_FULL);
	told(gale_tenant_ask(h.seat, one, 50), GALE_WHY_OWN, GALE_ALLOW);
	told(gale_tenant_ask(h.seat, two, 0), GALE_WHY_BAD_ASK, GALE_DENY);
	told(gale_tenant_ask(h.seat, NULL, 1), GALE_WHY_BAD_ASK, GALE_DENY);
	told(gale_tenant_ask(NULL, two, 1), GALE_WHY_BAD_ASK, GALE_DENY);
	told(gale_tenant_ask(h.seat, two, 30), GALE_WHY_OTHERS, GALE_DENY);
	gale_tenant_close(one);
	gale_tenant_close(two);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

static void a_tenant_is_refused_for_what_it_may_use_alone(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_budget_config config = BUDGET(.max_tenants = 2), shared = config;
	struct gale_terms terms = { .weight = 1, .name = "one", .alone = 1 };
	struct gale_budget *budget, *other;
	struct gale_tenant *tenant;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	shared.store = h.store;
	shared.name = "shared";
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	must(gale_budget_open(h.runtime, &shared, &other) == GALE_ERR_OK);
	fails_tenant(budget, terms, GALE_ERR_ALONE_UNITS);
	terms.alone = config.limit + 1;
	fails_tenant(other, terms, GALE_ERR_ALONE_UNITS);
	terms.alone = config.limit;
	must(gale_tenant_open(other, &terms, &tenant) == GALE_ERR_OK);
	terms.cap = config.limit - 1;
	met(gale_tenant_set_terms(tenant, &terms), GALE_ERR_ALONE_UNITS);
	terms.cap = 0;
	fails_tenant(other, terms, GALE_ERR_TENANT_NAME);
	gale_tenant_close(tenant);
	must(gale_tenant_open(other, &terms, &tenant) == GALE_ERR_OK);
	gale_tenant_close(tenant);
	gale_budget_close(budget);
	gale_budget_close(other);
	assert_true(house_close(&h));
}

static void a_tenant_is_refused_for_its_parent(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_budget_config config = BUDGET(.max_tenants = 20), shared = config;
	struct gale_tenant *tenants[16];
	struct gale_budget *budget, *other;
	struct gale_terms terms = { .weight = 1 };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	shared.store = h.store;
	shared.name = "shared";
	must(gale_budget_open(h.runtime, &shared, &other) == GALE_ERR_OK);
	for (int i = 0; i < 16; i++) {
		must(gale_tenant_open(budget, &terms, &tenants[i]) == GALE_ERR_OK);
		terms.parent = tenants[i];
	}
	fails_tenant(budget, terms, GALE_ERR_DEPTH);
	met(gale_tenant_set_terms(tenants[0], &terms), GALE_ERR_PARENT);
	terms.name = "below";
	fails_tenant(other, terms, GALE_ERR_PARENT_STORE);
	for (int i = 0; i < 16; i++)
		gale_tenant_close(tenants[i]);
	gale_budget_close(budget);
	gale_budget_close(other);
	assert_true(house_close(&h));
}

/* Three have a third of a hundred each, and one of them the odd unit. */
static void the_odd_unit_is_lent(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_budget_config config = BUDGET(.max_tenants = 3);
	struct gale_terms terms = { .weight = 1 };
	struct gale_tenant *tenants[3];
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	for (int i = 0; i < 3; i++) {
		must(gale_tenant_open(budget, &terms, &tenants[i]) == GALE_ERR_OK);
		told(gale_tenant_ask(h.seat, tenants[i], 1), GALE_WHY_OWN, GALE_ALLOW);
	}
	told(gale_tenant_ask(h.seat, tenants[0], 32), GALE_WHY_OWN, GALE_ALLOW);
	told(gale_tenant_ask(h.seat, tenants[0], 1), GALE_WHY_LENT, GALE_ALLOW);
	for (int i = 0; i < 3; i++)
		gale_tenant_close(tenants[i]);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

/* ---- Guards ----------------------------------------------------------------------- */

static void fails_guard(const struct house *h, struct gale_guard_config config,
                        enum gale_err expected)
{
	struct gale_guard *guard = (void *)&untouched;

	met(gale_guard_open(h->runtime, &config, &guard), expected);
	assert_ptr_equal(guard, &untouched);
}

#define GUARD(...) ((struct gale_guard_config){ .name = "g", __VA_ARGS__ })

static void a_guard_is_refused_for_its_configuration(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_guard_config config = { .name = "same" };
	struct gale_guard_counts counts;
	struct gale_guard *guard, *other;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	met(gale_guard_open(NULL, &config, &guard), GALE_ERR_RUNTIME);
	met(gale_guard_open(h.runtime, NULL, &guard), GALE_ERR_CONFIG);
	met(gale_guard_open(h.runtime, &config, NULL), GALE_ERR_RET);
	met(gale_guard_open_sized(h.runtime, &config, 7, &guard), GALE_ERR_SIZE);
	fails_guard(&h, (struct gale_guard_config){ 0 }, GALE_ERR_NAME);
	fails_guard(&h, (struct gale_guard_config){ .name = NAME_64 "5" },
	            GALE_ERR_NAME);
	fails_guard(&h, GUARD(.law = (enum gale_law)4), GALE_ERR_LAW);
	fails_guard(&h, GUARD(.law = GALE_FIXED), GALE_ERR_CEILING);
	fails_guard(&h, GUARD(.ceiling = GALE_SLOTS_MAX + 1), GALE_ERR_CEILING);
	fails_guard(&h, GUARD(.ceiling = UINT32_MAX), GALE_ERR_CEILING);
	fails_guard(&h, GUARD(.floor = 11, .ceiling = 10), GALE_ERR_FLOOR);
	fails_guard(&h, GUARD(.start = 11, .ceiling = 10), GALE_ERR_START);
	fails_guard(&h, GUARD(.start = 4, .floor = 5), GALE_ERR_START);
	fails_guard(&h, GUARD(.probe = 11, .ceiling = 10), GALE_ERR_PROBE);
	fails_guard(&h, GUARD(.sheddable_permille = 1001), GALE_ERR_SHEDDABLE);
	fails_guard(&h, GUARD(.slots_most_permille = 1001), GALE_ERR_SLOTS_MOST);
	fails_guard(&h, GUARD(.overdue_us = GALE_DAYS(365) + 1), GALE_ERR_OVERDUE);
	fails_guard(&h, GUARD(.reserved = 1), GALE_ERR_SIZE);
	met(gale_guard_open(h.runtime, &config, &guard), GALE_ERR_OK);
	met(gale_guard_open(h.runtime, &config, &other), GALE_ERR_GUARD_NAME);
	met(gale_guard_stats(NULL, &counts), GALE_ERR_GUARD);
	met(gale_guard_stats(guard, NULL), GALE_ERR_RET);
	met(gale_guard_stats_sized(guard, &counts, 7), GALE_ERR_SIZE);
	gale_guard_close(guard);
	met(gale_guard_stats(guard, &counts), GALE_ERR_GUARD);
	met(gale_guard_open(h.runtime, &config, &other), GALE_ERR_OK);
	gale_guard_close(other);
	assert_true(house_close(&h));
}

static void a_guard_is_refused_for_its_fleet(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_on_fenced no_hook = { NULL };
	struct gale_store *closed;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	fails_guard(&h, GUARD(.node = "n"), GALE_ERR_ALONE);
	fails_guard(&h, GUARD(.lease_us = 1), GALE_ERR_ALONE);
	fails_guard(&h, GUARD(.on_fenced = &no_hook), GALE_ERR_ALONE);
	must(gale_store_open(h.runtime, NULL, &closed) == GALE_ERR_OK);
	gale_store_close(closed);
	fails_guard(&h, GUARD(.store = closed), GALE_ERR_STORE);
	fails_guard(&h, GUARD(.store = h.store, .node = ""), GALE_ERR_NODE);
	fails_guard(&h, GUARD(.store = h.store, .node = NAME_64 "5"), GALE_ERR_NODE);
	fails_guard(&h, GUARD(.store = h.store, .weight = 1025), GALE_ERR_WEIGHT);
	fails_guard(&h, GUARD(.store = h.store, .drift_ppm = 100001), GALE_ERR_DRIFT);
	fails_guard(&h, GUARD(.store = h.store, .beat_us = 999), GALE_ERR_BEAT);
	fails_guard(&h, GUARD(.store = h.store, .beat_us = GALE_MINUTES(1) + 1),
	            GALE_ERR_BEAT);
	fails_guard(
	    &h,
	    GUARD(.store = h.store, .beat_us = 5000, .lease_us = 9999, .abort_us = 1),
	    GALE_ERR_LEASE);
	fails_guard(&h, GUARD(.store = h.store, .lease_us = GALE_HOURS(1) + 1),
	            GALE_ERR_LEASE);
	fails_guard(&h, GUARD(.store = h.store, .abort_us = GALE_SECONDS(2)),
	            GALE_ERR_ABORT);
	fails_guard(&h, GUARD(.store = h.store, .abort_us = UINT64_MAX),
	            GALE_ERR_ABORT);
	fails_guard(&h,
	            GUARD(.store = h.store, .beat_us = 5000, .lease_us = 10000,
	                  .abort_us = 5000),
	            GALE_ERR_ABORT);
	fails_guard(&h, GUARD(.store = h.store, .on_cut_off = (enum gale_on_cut_off)2),
	            GALE_ERR_CUT_OFF);
	fails_guard(&h, GUARD(.store = h.store, .on_fenced = &no_hook),
	            GALE_ERR_ON_FENCED);
	fails_guard(&h, GUARD(.store = h.store, .parts = (enum gale_parts)2),
	            GALE_ERR_PARTS);
	fails_guard(&h,
	            GUARD(.store = h.store, .of_estimates = (enum gale_of_estimates)2),
	            GALE_ERR_OF_ESTIMATES);
	assert_true(house_close(&h));
}

static void told_entry(struct gale_entry entry, enum gale_why why,
                       enum gale_verdict verdict)
{
	told((struct gale_answer){ .verdict = entry.verdict, .why = entry.why }, why,
	     verdict);
}

/* The coordinator puts each of these in force; here it is done in its place. */
static void a_refused_call_is_told_what_limited_it(void **state)
{
	static const struct slots_ceiling rows[] = {
		{ 0, SLOTS_BY_SHARE },
		{ 0, SLOTS_BY_ESTIMATE },
		{ 0, SLOTS_BY_PROBE },
		{ 0, SLOTS_BY_FENCE },
	};
	static const enum gale_why whys[] = { GALE_WHY_SHARE, GALE_WHY_ESTIMATE,
		                              GALE_WHY_PROBE, GALE_WHY_CUT_OFF };
	struct house_plan plan = plan_of(5);
	struct gale_guard_config config = {
		.name = "g", .law = GALE_FIXED, .ceiling = 2, .sheddable_permille = 500
	};
	struct gale_entry entry, second;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_guard_open(h.runtime, &config, &guard) == GALE_ERR_OK);
	told_entry(gale_enter(h.seat, guard, 2, GALE_NORMAL), GALE_WHY_WIDE, GALE_DENY);
	entry = gale_enter(h.seat, guard, 1, GALE_NORMAL);
	told_entry(entry, GALE_WHY_SLOT, GALE_ALLOW);
	told_entry(gale_enter(h.seat, guard, 1, GALE_SHEDDABLE), GALE_WHY_CLASS,
	           GALE_DENY);
	second = gale_enter(h.seat, guard, 1, GALE_NORMAL);
	told_entry(second, GALE_WHY_SLOT, GALE_ALLOW);
	told_entry(gale_enter(h.seat, guard, 1, GALE_NORMAL), GALE_WHY_CEILING,
	           GALE_DENY);
	gale_guard_close(guard);
	gale_exit(h.seat, &entry, GALE_OK);
	gale_exit(h.seat, &second, GALE_OK);
	assert_true(house_close(&h));
	house_open(&h, &(struct house_plan){ .rule = plan.rule, .turns = true });
	must(gale_guard_open(h.runtime, &config, &guard) == GALE_ERR_OK);
	for (size_t i = 0; i < COUNT(rows); i++) {
		turnstile_apply(&guard->guard.turnstile, 1, rows[i]);
		told_entry(gale_enter(h.seat, guard, 1, GALE_NORMAL), whys[i],
		           GALE_DENY);
	}
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* ---- After a fork, and after a broken invariant ---------------------------------- */

/* Both in a child, which returns the number of the first expectation that fails. */
static int all_refused(struct house *h, enum gale_why why, enum gale_err err)
{
	struct gale_limiter_config config = good_limiter(h);
	struct gale_answer answer = { .slot = { 1, 0 } };
	struct gale_outlook forecast;
	struct gale_limiter *limiter;
	struct gale_store *store;
	struct gale_seat *seat;

	gale_prefetch(h->seat, h->limiter, "k", 1);
	if (house_ask(h, "k").why != why || house_ask(h, "k").verdict != GALE_DENY)
		return 1;
	if (house_wait(h, "k").why != why || house_wait(h, "k").verdict != GALE_DENY)
		return 2;
	if (gale_peek(h->seat, h->limiter, "k", 1, 0, &answer) != err ||
	    gale_forecast(h->seat, h->limiter, "k", 1, 1, 0, &forecast) != err ||
	    gale_reset(h->seat, h->limiter, "k", 1, 0) != err ||
	    gale_cancel(h->seat, h->limiter, "k", 1, 1, 0, &answer) != err)
		return 3;
	if (gale_join(h->runtime, &seat) != err)
		return 4;
	if (gale_store_open(h->runtime, NULL, &store) != err)
		return 5;
	if (gale_limiter_open(h->runtime, &config, &limiter) != err)
		return 6;
	return 0;
}

static int after_fork(void *h)
{
	return all_refused(h, GALE_WHY_FORKED, GALE_ERR_FORKED);
}

static void a_forked_child_is_refused_everything(void **state)
{
	struct house_plan plan = plan_of(5);
	struct house h;

	(void)state;
	plan.on_outage = GALE_ON_OUTAGE_ALLOW;
	house_open(&h, &plan);
	assert_int_equal(child_run(after_fork, &h), 0);
	met_err[GALE_ERR_FORKED] = met_why[GALE_WHY_FORKED] = true;
	assert_int_equal(house_ask(&h, "k").verdict, GALE_ALLOW);
	assert_true(house_close(&h));
}

/* A key that is lent so much that the next asks are answered here, by name and held. */
struct lent {
	struct house house;
	struct gale_key *held;
};

#define LENT_KEY "long enough"

static void open_lent(struct lent *lent)
{
	struct house_plan plan = lease_plan();
	struct house *h = &lent->house;

	plan.rule = gale_fixed_window(20, GALE_HOURS(1));
	plan.lease.sizing = GALE_SIZE_FIXED;
	plan.lease.batch = 20;
	house_open(h, &plan);
	must(gale_key_open(h->seat, h->limiter, LENT_KEY, strlen(LENT_KEY),
	                   &lent->held) == GALE_ERR_OK);
	must(house_wait(h, LENT_KEY).why == GALE_WHY_CREDIT);
	must(gale_ask_key(lent->held, 1, NULL).why == GALE_WHY_CREDIT);
}

/* L1: what it was lent is another's now, or nobody's.  In each way to ask. */
static bool spends_nothing(struct lent *lent, enum gale_why why)
{
	struct house *h = &lent->house;
	struct gale_question question = { LENT_KEY, strlen(LENT_KEY), 1, NULL };
	struct gale_answer answers[3] = {
		gale_ask(h->seat, h->limiter, LENT_KEY, strlen(LENT_KEY), 1, NULL),
		gale_ask_key(lent->held, 1, NULL),
	};

	gale_ask_many(h->seat, h->limiter, &question, 1, &answers[2]);
	for (int i = 0; i < 3; i++)
		if (answers[i].why != why || answers[i].verdict != GALE_DENY)
			return false;
	return true;
}

static int lent_after_fork(void *lent)
{
	return spends_nothing(lent, GALE_WHY_FORKED) ? 0 : 1;
}

static void a_forked_child_spends_nothing_of_what_was_lent(void **state)
{
	struct lent lent;

	(void)state;
	open_lent(&lent);
	assert_int_equal(child_run(lent_after_fork, &lent), 0);
	gale_tick(lent.house.seat); /* who knows the time is quick */
	assert_int_equal(child_run(lent_after_fork, &lent), 0);
	told(gale_ask_key(lent.held, 1, NULL), GALE_WHY_CREDIT, GALE_ALLOW);
	gale_key_close(lent.held);
	assert_true(house_close(&lent.house));
}

static void a_closed_runtime_spends_nothing_of_what_was_lent(void **state)
{
	struct lent lent;

	(void)state;
	open_lent(&lent);
	gale_tick(lent.house.seat);
	gale_runtime_close(lent.house.runtime);
	assert_true(spends_nothing(&lent, GALE_WHY_CLOSED));
	gale_key_close(lent.held);
	lent.house.runtime = NULL;
	assert_true(house_close(&lent.house));
}

static _Atomic bool hook_ran;

static void tell_and_stay(const char *what)
{
	(void)what;
	atomic_store(&hook_ran, true);
	for (;;)
		pause();
}

static void *break_an_invariant(void *arg)
{
	(void)arg;
	gale_panic("errors_test.c", 0, "a test");
}

static int after_panic(void *arg)
{
	struct house_plan plan = plan_of(5);
	pthread_t broken;
	static struct house h; /* outlives this: its shards run on */
	static struct lent lent;

	(void)arg;
	plan.on_outage = GALE_ON_OUTAGE_ALLOW;
	house_open(&h, &plan);
	open_lent(&lent);
	gale_tick(lent.house.seat);
	gale_on_panic(tell_and_stay);
	must(pthread_create(&broken, NULL, break_an_invariant, NULL) == 0);
	while (!atomic_load(&hook_ran))
		continue;
	return spends_nothing(&lent, GALE_WHY_FENCED)
	           ? all_refused(&h, GALE_WHY_FENCED, GALE_ERR_FENCED)
	           : -1;
}

static void a_fenced_process_is_refused_everything(void **state)
{
	(void)state;
	assert_int_equal(child_run(after_panic, NULL), 0);
	met_err[GALE_ERR_FENCED] = met_why[GALE_WHY_FENCED] = true;
}

/* ---- Replies --------------------------------------------------------------------- */

static void a_reply_that_cannot_be_written_says_why(void **state)
{
	struct gale_answer answer = { .verdict = GALE_DENY, .limit = 1 };
	struct gale_http_policy policy = { .name = "a", .answer = &answer };
	struct gale_http_options options = { .reserved = { [3] = 1 } };
	char buf[GALE_HTTP_HEADERS_ROOM(1)];
	size_t length;

	(void)state;
	met(gale_http_headers(&policy, 1, NULL, buf, sizeof(buf), NULL), GALE_ERR_RET);
	met(gale_http_headers(&policy, 1, NULL, NULL, 1, &length), GALE_ERR_RET);
	met(gale_http_headers(&policy, 1, NULL, NULL, 0, &length), GALE_ERR_ROOM);
	met(gale_http_headers(&policy, 1, &options, buf, sizeof(buf), &length),
	    GALE_ERR_SIZE);
	met(gale_http_headers(NULL, 1, NULL, buf, sizeof(buf), &length),
	    GALE_ERR_POLICY);
	policy.unit = (enum gale_http_unit)3;
	met(gale_http_problem(&policy, 1, buf, sizeof(buf), &length), GALE_ERR_POLICY);
	policy.unit = GALE_HTTP_REQUESTS;
	policy.reserved[1] = 1;
	met(gale_http_problem(&policy, 1, buf, sizeof(buf), &length), GALE_ERR_SIZE);
	policy.reserved[1] = 0;
	policy.name = "";
	met(gale_http_problem(&policy, 1, buf, sizeof(buf), &length),
	    GALE_ERR_POLICY_NAME);
	policy = (struct gale_http_policy){ .name = "a" };
	met(gale_http_problem(&policy, 1, buf, sizeof(buf), &length), GALE_ERR_POLICY);
}

/* ---- Metrics --------------------------------------------------------------------- */

static bool takes_nothing(struct gale_sink *self, const char *text, size_t bytes)
{
	(void)self;
	(void)text;
	(void)bytes;
	return false;
}

static int write_after_fork(void *h)
{
	struct gale_runtime *runtime = ((struct house *)h)->runtime;
	struct gale_sink sink = { takes_nothing };

	return gale_metrics_write(runtime, &sink) == GALE_ERR_FORKED &&
	               gale_offenders_write(runtime, &sink) == GALE_ERR_FORKED
	           ? 0
	           : 1;
}

static void metrics_that_are_not_written_say_why(void **state)
{
	struct house_plan plan = plan_of(1);
	struct gale_sink sink = { takes_nothing }, empty = { NULL };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	met(gale_metrics_write(NULL, &sink), GALE_ERR_RUNTIME);
	met(gale_metrics_write(h.runtime, NULL), GALE_ERR_SINK);
	met(gale_metrics_write(h.runtime, &empty), GALE_ERR_SINK);
	met(gale_metrics_write(h.runtime, &sink), GALE_ERR_SINK);
	met(gale_offenders_write(NULL, &sink), GALE_ERR_RUNTIME);
	met(gale_offenders_write(h.runtime, NULL), GALE_ERR_SINK);
	met(gale_offenders_write(h.runtime, &empty), GALE_ERR_SINK);
	(void)house_wait(&h, "k");
	assert_int_equal(house_wait(&h, "k").verdict, GALE_DENY);
	met(gale_offenders_write(h.runtime, &sink), GALE_ERR_SINK);
	assert_int_equal(child_run(write_after_fork, &h), 0);
	assert_true(house_close(&h));
}

/* ---- Texts ----------------------------------------------------------------------- */

static void the_text_of_an_error_says_what_is_wrong_and_what_to_do(void **state)
{
	static const char *const fields[ERRORS] = {
		[GALE_ERR_RUNTIME] = "runtime",
		[GALE_ERR_CONFIG] = "config",
		[GALE_ERR_RET] = "ret",
		[GALE_ERR_MEMORY] = "memory",
		[GALE_ERR_SYSTEM] = "system",
		[GALE_ERR_SHARDS] = "shards",
		[GALE_ERR_PENDING] = "pending_max",
		[GALE_ERR_POLL] = "poll_us",
		[GALE_ERR_RULE_OTHER] = "rule.kind",
		[GALE_ERR_OTHER_RULE] = "on_other_rule",
		[GALE_ERR_HOLD] = "hold",
		[GALE_ERR_GUARD] = "guard",
		[GALE_ERR_GUARD_NAME] = "name",
		[GALE_ERR_CEILING] = "ceiling",
		[GALE_ERR_SHEDDABLE] = "sheddable_permille",
		[GALE_ERR_SLOTS_MOST] = "slots_most_permille",
		[GALE_ERR_OVERDUE] = "overdue_us",
		[GALE_ERR_LAW] = "law",
		[GALE_ERR_FLOOR] = "floor",
		[GALE_ERR_START] = "start",
		[GALE_ERR_PROBE] = "probe",
		[GALE_ERR_NODE] = "node",
		[GALE_ERR_WEIGHT] = "weight",
		[GALE_ERR_BEAT] = "beat_us",
		[GALE_ERR_LEASE] = "lease_us",
		[GALE_ERR_ABORT] = "abort_us",
		[GALE_ERR_CUT_OFF] = "on_cut_off",
		[GALE_ERR_ON_FENCED] = "on_fenced",
		[GALE_ERR_ALONE] = "store",
		[GALE_ERR_PARTS] = "parts",
		[GALE_ERR_OF_ESTIMATES] = "of_estimates",
		[GALE_ERR_POLICY] = "policy",
		[GALE_ERR_POLICY_NAME] = "policy.name",
		[GALE_ERR_ROOM] = "room",
		[GALE_ERR_SINK] = "sink",
		[GALE_ERR_BUDGET] = "budget",
		[GALE_ERR_TENANT] = "tenant",
		[GALE_ERR_BUDGET_LIMIT] = "limit",
		[GALE_ERR_BUDGET_WINDOW] = "window_us",
		[GALE_ERR_PROTECT] = "protect_us",
		[GALE_ERR_TENANTS] = "max_tenants",
		[GALE_ERR_LENDING] = "lending",
		[GALE_ERR_TENANT_WEIGHT] = "weight",
		[GALE_ERR_CAP] = "cap",
		[GALE_ERR_GUARANTEE] = "guarantee",
		[GALE_ERR_TENANTS_FULL] = "tenants",
		[GALE_ERR_PARENT] = "parent",
		[GALE_ERR_PARENT_STORE] = "parent",
		[GALE_ERR_DEPTH] = "parent",
		[GALE_ERR_ALONE_UNITS] = "alone",
		[GALE_ERR_TENANT_NAME] = "name",
		[GALE_ERR_ALLOCATOR] = "allocator",
		[GALE_ERR_CLOCK] = "clock",
		[GALE_ERR_LOG] = "log",
		[GALE_ERR_URL] = "url",
		[GALE_ERR_STORE_NAME] = "url",
		[GALE_ERR_STORE_KEYS] = "max_keys",
		[GALE_ERR_STORE] = "store",
		[GALE_ERR_NAME] = "name",
		[GALE_ERR_MODE] = "mode",
		[GALE_ERR_OUTAGE] = "on_outage",
		[GALE_ERR_RULE_KIND] = "rule.kind",
		[GALE_ERR_RULE_CADENCE] = "rule.cadence",
		[GALE_ERR_RULE_LIMIT] = "rule.limit",
		[GALE_ERR_RULE_PERIOD] = "rule.period_us",
		[GALE_ERR_RULE_BURST] = "rule.burst",
		[GALE_ERR_RULE_SPAN] = "rule.burst",
		[GALE_ERR_RULE_BUCKETS] = "rule.buckets",
		[GALE_ERR_RULE_WAIT] = "rule.max_wait_us",
		[GALE_ERR_RULE_ANCHOR] = "rule.anchor_us",
		[GALE_ERR_RULE_ALLOWANCE] = "rule.allowance_permille",
		[GALE_ERR_RULE_OFFSET] = "rule.utc_offset_minutes",
		[GALE_ERR_RULE_WEEKDAY] = "rule.first_weekday",
		[GALE_ERR_RULE_UNUSED] = "rule",
		[GALE_ERR_SEAT] = "seat",
		[GALE_ERR_LIMITER] = "limiter",
		[GALE_ERR_KEY] = "key",
		[GALE_ERR_COST] = "cost",
		[GALE_ERR_FORKED] = "runtime",
		[GALE_ERR_STORE_FULL] = "store",
		[GALE_ERR_STORE_CHANGED] = "store",
		[GALE_ERR_LATE] = "timeout",
		[GALE_ERR_BUSY] = "seat",
		[GALE_ERR_NOT_BOOKED] = "booking",
		[GALE_ERR_FENCED] = "runtime",
		[GALE_ERR_CANNOT_LEASE] = "mode",
		[GALE_ERR_SIZING] = "lease",
		[GALE_ERR_PATIENCE] = "patience_us",
		[GALE_ERR_DRIFT] = "lease.drift_ppm",
		[GALE_ERR_CARRY_OVER] = "lease.carry_over",
		[GALE_ERR_NODE_KEYS] = "max_keys",
		[GALE_ERR_HOST] = "url",
		[GALE_ERR_TLS] = "url",
		[GALE_ERR_NOT_BUILT] = "url",
		[GALE_ERR_QUARANTINE] = "quarantine_us",
		[GALE_ERR_CLUSTER_DB] = "url",
		[GALE_ERR_RULE_STRATEGY] = "rule.strategy",
		[GALE_ERR_BROKEN] = "strategy",
		[GALE_ERR_SIZE] = "struct",
		[GALE_ERR_RUNTIMES] = "runtime",
		[GALE_ERR_POLICY_FILE] = "file",
		[GALE_ERR_POLICY_TEXT] = "text",
		[GALE_ERR_POLICY_SOURCE] = "source",
		[GALE_ERR_NO_POLICY] = "policy",
	};

	(void)state;
	assert_string_equal(gale_err_text(GALE_ERR_OK), "no error");
	for (int err = 1; err < ERRORS; err++) {
		const char *text = gale_err_text((enum gale_err)err);
		size_t len = strlen(fields[err]);

		assert_memory_equal(text, fields[err], len);
		assert_memory_equal(text + len, ": ", 2);
		assert_true(strlen(text) > len + 2);
		/* What the field must be, or what to do. */
		if (!strstr(text, " must ") && !strstr(text, "; "))
			fail_msg("it does not say what to do: %s", text);
	}
}

/* L15: a key of another kind of rule is refused, or begins anew if the host says so. */
static void another_kind_of_rule_is_told_of(void **state)
{
	struct house_plan plan = plan_of(5);
	const struct gale_rule gcra = gale_gcra(5, GALE_HOURS(1), 5);
	struct gale_limiter_config config = { .name = "house", .rule = gcra };
	struct gale_limiter *restarts;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	config.store = h.store;
	config.on_other_rule = (enum gale_on_other_rule)2;
	met(gale_limiter_open(h.runtime, &config, &restarts), GALE_ERR_OTHER_RULE);
	config.on_other_rule = GALE_ON_OTHER_RULE_RESTART;
	met(gale_limiter_open(h.runtime, &config, &restarts), GALE_ERR_OK);
	told(house_ask(&h, "k"), GALE_WHY_RULE, GALE_ALLOW);
	told(ask_settled(h.seat, restarts, "k", 1, 1), GALE_WHY_RESTARTED, GALE_ALLOW);
	told(ask_settled(h.seat, restarts, "k", 1, 1), GALE_WHY_RULE, GALE_ALLOW);
	told(house_ask(&h, "k"), GALE_WHY_CHANGED, GALE_DENY);
	met(gale_limiter_set_rule(h.limiter, &gcra), GALE_ERR_RULE_OTHER);
	met(gale_limiter_set_rule(h.limiter, NULL), GALE_ERR_CONFIG);
	met(gale_limiter_set_rule(NULL, &gcra), GALE_ERR_LIMITER);
	gale_limiter_close(restarts);
	house_close(&h);
}

static void numbers_that_mean_nothing_have_a_text_that_says_so(void **state)
{
	static const int none[] = { -1, ERRORS, 1000, INT32_MAX };

	(void)state;
	for (size_t i = 0; i < COUNT(none); i++) {
		assert_string_equal(gale_err_text((enum gale_err)none[i]),
		                    "unknown error");
		assert_string_equal(gale_why_text((enum gale_why)none[i]), "unknown");
		assert_string_equal(gale_rule_name((enum gale_rule_kind)none[i]),
		                    "none");
	}
}

/* ---- What was met ---------------------------------------------------------------- */

static void every_error_was_met(void **state)
{
#define ERROR_NUMBER_(name, number, text) number,
	static const int numbers[] = { GALE_ERRORS(ERROR_NUMBER_) };
#undef ERROR_NUMBER_

	(void)state;
#if defined(GALE_REDIS) && defined(GALE_POSTGRES)
	met_err[GALE_ERR_NOT_BUILT] = true; /* all is built */
#endif
	/* Of another library: policy_test.c meets them. */
	for (int err = GALE_ERR_POLICY_FILE; err <= GALE_ERR_NO_POLICY; err++)
		met_err[err] = true;
	met_err[GALE_ERR_HOLD] = true; /* by holds_test.c */
	assert_int_equal(COUNT(numbers), ERRORS);
	for (int err = 0; err < ERRORS; err++) {
		assert_int_equal(numbers[err], err);
		if (!met_err[err])
			fail_msg("never met: %s", gale_err_text((enum gale_err)err));
	}
}

static void every_why_was_met(void **state)
{
	(void)state;
	assert_string_equal(gale_why_text((enum gale_why)WHYS), "unknown");
	for (int why = 0; why < WHYS; why++)
		if (!met_why[why])
			fail_msg("never met: %s", gale_why_text((enum gale_why)why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_runtime_is_refused_for_its_configuration),
		cmocka_unit_test(a_runtime_is_refused_without_memory),
		cmocka_unit_test(a_system_without_descriptors_is_named),
		cmocka_unit_test(a_runtime_too_many_is_named),
		cmocka_unit_test(a_store_is_refused_for_its_configuration),
		cmocka_unit_test(a_limiter_is_refused_for_its_configuration),
		cmocka_unit_test(a_limiter_is_refused_for_its_rule),
		cmocka_unit_test(a_seat_is_refused_for_its_handles),
		cmocka_unit_test(a_bad_ask_is_denied_whatever_the_policy),
		cmocka_unit_test(a_prefetch_of_what_is_not_there_does_nothing),
		cmocka_unit_test(a_bad_look_names_what_is_bad),
		cmocka_unit_test(a_busy_store_is_too_much_or_too_late),
		cmocka_unit_test(a_store_that_cannot_says_why),
		cmocka_unit_test(a_lease_comes_from_credit_and_ends_in_memory),
		cmocka_unit_test(a_store_is_told_what_it_said_was_used),
		cmocka_unit_test(what_was_lent_before_a_reset_is_not_spent_after_it),
		cmocka_unit_test(
		    what_was_used_is_counted_under_the_limit_it_was_asked_under),
		cmocka_unit_test(
		    what_arrives_under_a_larger_limit_goes_back_but_for_who_waits),
		cmocka_unit_test(who_has_given_up_takes_nothing_that_comes_late),
		cmocka_unit_test(a_store_that_denies_all_is_asked_whether_it_forgot),
		cmocka_unit_test(
		    a_store_that_was_down_is_asked_about_all_that_it_denied),
		cmocka_unit_test(
		    of_a_window_that_outlasts_a_short_quarantine_it_is_asked),
		cmocka_unit_test(of_a_short_window_nobody_asks_that),
		cmocka_unit_test(a_quarantine_is_remembered_as_that_and_ends),
		cmocka_unit_test(in_quarantine_the_policy_decides),
		cmocka_unit_test(credit_in_hand_is_spent_in_quarantine),
		cmocka_unit_test(
		    a_server_that_decides_each_call_is_quarantined_as_well),
		cmocka_unit_test(who_waits_for_less_than_others_makes_no_server_down),
		cmocka_unit_test(a_dead_server_is_down_for_hasty_callers),
		cmocka_unit_test(who_has_given_up_in_the_mailbox_takes_nothing),
		cmocka_unit_test(who_has_given_up_in_the_mailbox_is_not_sent),
		cmocka_unit_test(a_store_that_never_answers_is_late_and_then_down),
		cmocka_unit_test(a_node_may_have_a_share_while_the_store_is_down),
		cmocka_unit_test(nobody_waits_for_a_share_that_another_thread_holds),
		cmocka_unit_test(
		    a_store_that_lends_more_than_was_asked_is_not_believed),
		cmocka_unit_test(a_strategy_that_rules_what_cannot_be_is_not_believed),
		cmocka_unit_test(a_node_whose_keys_are_all_held_says_so),
		cmocka_unit_test(a_predictor_is_asked_how_much_will_be_wanted),
		cmocka_unit_test(a_lease_is_refused_for_its_terms),
		cmocka_unit_test(patience_is_bounded_in_every_mode),
		cmocka_unit_test(a_held_key_is_refused_for_what_it_is_of),
		cmocka_unit_test(a_budget_is_refused_for_its_configuration),
		cmocka_unit_test(a_tenant_is_refused_for_its_terms),
		cmocka_unit_test(a_tenant_is_refused_for_what_it_may_use_alone),
		cmocka_unit_test(a_tenant_is_refused_for_its_parent),
		cmocka_unit_test(the_odd_unit_is_lent),
		cmocka_unit_test(a_guard_is_refused_for_its_configuration),
		cmocka_unit_test(a_guard_is_refused_for_its_fleet),
		cmocka_unit_test(a_refused_call_is_told_what_limited_it),
		cmocka_unit_test(a_forked_child_is_refused_everything),
		cmocka_unit_test(a_forked_child_spends_nothing_of_what_was_lent),
		cmocka_unit_test(a_closed_runtime_spends_nothing_of_what_was_lent),
		cmocka_unit_test(a_fenced_process_is_refused_everything),
		cmocka_unit_test(a_reply_that_cannot_be_written_says_why),
		cmocka_unit_test(metrics_that_are_not_written_say_why),
		cmocka_unit_test(
		    the_text_of_an_error_says_what_is_wrong_and_what_to_do),
		cmocka_unit_test(another_kind_of_rule_is_told_of),
		cmocka_unit_test(numbers_that_mean_nothing_have_a_text_that_says_so),
		cmocka_unit_test(every_error_was_met),
		cmocka_unit_test(every_why_was_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
