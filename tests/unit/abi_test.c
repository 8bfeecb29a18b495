/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * abi_test.c -- hosts that were compiled with another gale.h than the library.
 *
 * The first half is where each field of each public struct lies, and the number of each
 * enumerator.  A line here changes with the SONAME and not before; what is new comes at
 * the end of its list.  The second half is hosts that know less than the library, or more.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/gale.h>
#include <gale/guard.h>
#include <gale/http.h>
#include <gale/strategy.h>
#include <gale/tenants.h>

#include "face/sized.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Where things lie ------------------------------------------------------------ */

/* struct, field, offset, bytes; in order, without a gap but for what alignment asks for. */
#define FIELDS(F)                                                                      \
	F(gale_config, shards, 0, 4)                                                   \
	F(gale_config, pending_max, 4, 4)                                              \
	F(gale_config, max_keys, 8, 4)                                                 \
	F(gale_config, poll_us, 12, 4)                                                 \
	F(gale_config, turns, 16, 1)                                                   \
	F(gale_config, allocator, 24, 8)                                               \
	F(gale_config, log, 32, 8)                                                     \
	F(gale_config, clock, 40, 8)                                                   \
	F(gale_store_config, url, 0, 8)                                                \
	F(gale_store_config, max_keys, 8, 8)                                           \
	F(gale_store_config, quarantine_us, 16, 8)                                     \
	F(gale_counts, keys, 0, 8)                                                     \
	F(gale_counts, steps, 8, 8)                                                    \
	F(gale_counts, full, 16, 8)                                                    \
	F(gale_counts, memory, 24, 8)                                                  \
	F(gale_counts, changed, 32, 8)                                                 \
	F(gale_counts, broken, 40, 8)                                                  \
	F(gale_counts, expired, 48, 8)                                                 \
	F(gale_counts, leases, 56, 8)                                                  \
	F(gale_counts, returns, 64, 8)                                                 \
	F(gale_counts, round_trips, 72, 8)                                             \
	F(gale_counts, connects, 80, 8)                                                \
	F(gale_counts, failures, 88, 8)                                                \
	F(gale_counts, wrong, 96, 8)                                                   \
	F(gale_counts, contended, 104, 8)                                              \
	F(gale_counts, quarantined, 112, 8)                                            \
	F(gale_counts, overloaded, 120, 8)                                             \
	F(gale_leasing, sizing, 0, 4)                                                  \
	F(gale_leasing, batch, 8, 8)                                                   \
	F(gale_leasing, predictor, 16, 8)                                              \
	F(gale_leasing, order_cost, 24, 8)                                             \
	F(gale_leasing, strand_penalty, 32, 8)                                         \
	F(gale_leasing, max_size, 40, 8)                                               \
	F(gale_leasing, patience_us, 48, 8)                                            \
	F(gale_leasing, drift_ppm, 56, 4)                                              \
	F(gale_leasing, carry_over, 60, 1)                                             \
	F(gale_leasing, reserved, 64, 64)                                              \
	F(gale_rule, kind, 0, 4)                                                       \
	F(gale_rule, cadence, 4, 4)                                                    \
	F(gale_rule, limit, 8, 8)                                                      \
	F(gale_rule, period_us, 16, 8)                                                 \
	F(gale_rule, burst, 24, 8)                                                     \
	F(gale_rule, buckets, 32, 8)                                                   \
	F(gale_rule, max_wait_us, 40, 8)                                               \
	F(gale_rule, anchor_us, 48, 8)                                                 \
	F(gale_rule, allowance_permille, 56, 4)                                        \
	F(gale_rule, utc_offset_minutes, 60, 4)                                        \
	F(gale_rule, first_weekday, 64, 4)                                             \
	F(gale_rule, strategy, 72, 8)                                                  \
	F(gale_rule, reserved, 80, 48)                                                 \
	F(gale_limiter_config, name, 0, 8)                                             \
	F(gale_limiter_config, rule, 8, 128)                                           \
	F(gale_limiter_config, mode, 136, 4)                                           \
	F(gale_limiter_config, on_outage, 140, 4)                                      \
	F(gale_limiter_config, store, 144, 8)                                          \
	F(gale_limiter_config, lease, 152, 128)                                        \
	F(gale_limiter_config, outage_share, 280, 8)                                   \
	F(gale_limiter_config, on_other_rule, 288, 4)                                  \
	F(gale_limiter_config, reserved, 292, 4)                                       \
	F(gale_limiter_counts, allowed, 0, 8)                                          \
	F(gale_limiter_counts, denied, 8, 8)                                           \
	F(gale_limiter_counts, dropped, 16, 8)                                         \
	F(gale_limiter_counts, allowed_by, 24, 256)                                    \
	F(gale_limiter_counts, denied_by, 280, 256)                                    \
	F(gale_guard_config, name, 0, 8)                                               \
	F(gale_guard_config, law, 8, 4)                                                \
	F(gale_guard_config, start, 12, 4)                                             \
	F(gale_guard_config, floor, 16, 4)                                             \
	F(gale_guard_config, ceiling, 20, 4)                                           \
	F(gale_guard_config, probe, 24, 4)                                             \
	F(gale_guard_config, sheddable_permille, 28, 4)                                \
	F(gale_guard_config, slots_most_permille, 32, 4)                               \
	F(gale_guard_config, observe, 36, 1)                                           \
	F(gale_guard_config, overdue_us, 40, 8)                                        \
	F(gale_guard_config, store, 48, 8)                                             \
	F(gale_guard_config, node, 56, 8)                                              \
	F(gale_guard_config, weight, 64, 4)                                            \
	F(gale_guard_config, drift_ppm, 68, 4)                                         \
	F(gale_guard_config, beat_us, 72, 8)                                           \
	F(gale_guard_config, lease_us, 80, 8)                                          \
	F(gale_guard_config, abort_us, 88, 8)                                          \
	F(gale_guard_config, on_cut_off, 96, 4)                                        \
	F(gale_guard_config, parts, 100, 4)                                            \
	F(gale_guard_config, of_estimates, 104, 4)                                     \
	F(gale_guard_config, reserved, 108, 4)                                         \
	F(gale_guard_config, on_fenced, 112, 8)                                        \
	F(gale_entry, verdict, 0, 4)                                                   \
	F(gale_entry, why, 4, 4)                                                       \
	F(gale_entry, slots, 8, 4)                                                     \
	F(gale_entry, limit, 12, 4)                                                    \
	F(gale_entry, started_ns, 16, 8)                                               \
	F(gale_entry, guard, 24, 8)                                                    \
	F(gale_guard_counts, limit, 0, 8)                                              \
	F(gale_guard_counts, estimate, 8, 8)                                           \
	F(gale_guard_counts, in_flight, 16, 8)                                         \
	F(gale_guard_counts, kept, 24, 8)                                              \
	F(gale_guard_counts, entered, 32, 8)                                           \
	F(gale_guard_counts, ok, 40, 8)                                                \
	F(gale_guard_counts, dropped, 48, 8)                                           \
	F(gale_guard_counts, ignored, 56, 8)                                           \
	F(gale_guard_counts, refused, 64, 8)                                           \
	F(gale_guard_counts, overdue, 72, 8)                                           \
	F(gale_guard_counts, overdue_now, 80, 8)                                       \
	F(gale_guard_counts, exits_without_entry, 88, 8)                               \
	F(gale_guard_counts, refused_by, 96, 256)                                      \
	F(gale_guard_counts, share, 352, 8)                                            \
	F(gale_guard_counts, fleet_limit, 360, 8)                                      \
	F(gale_guard_counts, fleet_nodes, 368, 8)                                      \
	F(gale_guard_counts, fleet_in_flight, 376, 8)                                  \
	F(gale_guard_counts, cut_off, 384, 8)                                          \
	F(gale_guard_counts, beats, 392, 8)                                            \
	F(gale_guard_counts, beats_lost, 400, 8)                                       \
	F(gale_guard_counts, fences, 408, 8)                                           \
	F(gale_budget_config, limit, 0, 8)                                             \
	F(gale_budget_config, window_us, 8, 8)                                         \
	F(gale_budget_config, release_us, 16, 8)                                       \
	F(gale_budget_config, protect_us, 24, 8)                                       \
	F(gale_budget_config, max_tenants, 32, 4)                                      \
	F(gale_budget_config, lending, 36, 4)                                          \
	F(gale_budget_config, store, 40, 8)                                            \
	F(gale_budget_config, name, 48, 8)                                             \
	F(gale_budget_config, patience_us, 56, 8)                                      \
	F(gale_terms, guarantee, 0, 8)                                                 \
	F(gale_terms, cap, 8, 8)                                                       \
	F(gale_terms, weight, 16, 4)                                                   \
	F(gale_terms, reserved, 20, 4)                                                 \
	F(gale_terms, name, 24, 8)                                                     \
	F(gale_terms, alone, 32, 8)                                                    \
	F(gale_terms, parent, 40, 8)                                                   \
	F(gale_tenant_counts, share, 0, 8)                                             \
	F(gale_tenant_counts, used, 8, 8)                                              \
	F(gale_tenant_counts, ahead, 16, 8)                                            \
	F(gale_tenant_counts, owed, 24, 8)                                             \
	F(gale_tenant_counts, allowed, 32, 8)                                          \
	F(gale_tenant_counts, lent, 40, 8)                                             \
	F(gale_tenant_counts, denied, 48, 8)                                           \
	F(gale_tenant_counts, quanta, 56, 8)                                           \
	F(gale_tenant_counts, trips, 64, 8)                                            \
	F(gale_tenant_counts, alone, 72, 8)                                            \
	F(gale_tenant_held, units, 0, 8)                                               \
	F(gale_tenant_held, cut, 8, 1)                                                 \
	F(gale_tenant_held, of_gale, 16, 40)                                           \
	F(gale_metric, name, 0, 8)                                                     \
	F(gale_metric, value, 8, 8)                                                    \
	F(gale_http_policy, name, 0, 8)                                                \
	F(gale_http_policy, answer, 8, 8)                                              \
	F(gale_http_policy, window_us, 16, 8)                                          \
	F(gale_http_policy, unit, 24, 4)                                               \
	F(gale_http_policy, reserved, 32, 32)                                          \
	F(gale_http_options, legacy, 0, 1)                                             \
	F(gale_http_options, legacy_utc_s, 8, 8)                                       \
	F(gale_http_options, later_us, 16, 8)                                          \
	F(gale_http_options, remaining_per_second, 24, 8)                              \
	F(gale_http_options, reserved, 32, 32)

/* struct, bytes, and whether it may grow: then its last field ends with it. */
#define STRUCTS(S)                                                                     \
	S(gale_config, 48, true)                                                       \
	S(gale_store_config, 24, true)                                                 \
	S(gale_counts, 128, true)                                                      \
	S(gale_limiter_config, 296, true)                                              \
	S(gale_limiter_counts, 536, true)                                              \
	S(gale_guard_config, 120, true)                                                \
	S(gale_guard_counts, 416, true)                                                \
	S(gale_budget_config, 64, true)                                                \
	S(gale_terms, 48, true)                                                        \
	S(gale_tenant_counts, 80, true)                                                \
	S(gale_tenant_held, 56, false)                                                 \
	S(gale_entry, 32, false)                                                       \
	S(gale_on_fenced, 8, false)                                                    \
	S(gale_metric, 16, true)                                                       \
	S(gale_leasing, 128, false)                                                    \
	S(gale_rule, 128, false)                                                       \
	S(gale_slot, 16, false)                                                        \
	S(gale_answer, 64, false)                                                      \
	S(gale_outlook, 24, false)                                                     \
	S(gale_question, 32, false)                                                    \
	S(gale_completion, 72, false)                                                  \
	S(gale_allocator, 16, false)                                                   \
	S(gale_log, 8, false)                                                          \
	S(gale_clock, 16, false)                                                       \
	S(gale_sink, 8, false)                                                         \
	S(gale_predictor, 8, false)                                                    \
	S(gale_ruling, 32, false)                                                      \
	S(gale_strategy, 88, false)                                                    \
	S(gale_http_policy, 64, false)                                                 \
	S(gale_http_options, 64, false)

struct layout {
	const char *of;
	const char *field;
	size_t offset, bytes;         /* as it is */
	size_t was_offset, was_bytes; /* as hosts were compiled with */
};

static const struct layout layouts[] = {
#define F(of, field, at, size)                                                         \
	{ #of, #field, offsetof(struct of, field), sizeof(((struct of *)NULL)->field), \
	  at,  size },
	FIELDS(F)
#undef F
};

static void fields_lie_where_they_did(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(layouts); i++) {
		const struct layout *at = &layouts[i];

		if (at->offset != at->was_offset || at->bytes != at->was_bytes)
			fail_msg("%s.%s has moved: %zu bytes at %zu", at->of, at->field,
			         at->bytes, at->offset);
	}
}

static size_t end_of_last_field(const char *of)
{
	size_t end = 0;

	for (size_t i = 0; i < COUNT(layouts); i++)
		if (strcmp(layouts[i].of, of) == 0)
			end = layouts[i].offset + layouts[i].bytes;
	return end;
}

/* Padding at the end is not copied with a struct: a field that came to lie there would be
 * read from an older host's, and be anything. */
static void a_struct_that_may_grow_ends_with_its_last_field(void **state)
{
	(void)state;
#define S(of, size, grows)                                                             \
	assert_int_equal(sizeof(struct of), size);                                     \
	if (grows)                                                                     \
		assert_int_equal(end_of_last_field(#of), sizeof(struct of));
	STRUCTS(S)
#undef S
}

/* The names in order: a new one has the next number. */
static void numbers_are_what_they_were(void **state)
{
	static const int whys[] = {
		GALE_WHY_RULE,      GALE_WHY_CREDIT,     GALE_WHY_SPENT,
		GALE_WHY_BUSY,      GALE_WHY_LATE,       GALE_WHY_FULL,
		GALE_WHY_MEMORY,    GALE_WHY_CHANGED,    GALE_WHY_DOWN,
		GALE_WHY_WRONG,     GALE_WHY_BROKEN,     GALE_WHY_CROWDED,
		GALE_WHY_CLOSED,    GALE_WHY_FORKED,     GALE_WHY_FENCED,
		GALE_WHY_BAD_ASK,   GALE_WHY_ASKED,      GALE_WHY_TOO_MUCH,
		GALE_WHY_RESTARTED, GALE_WHY_QUARANTINE, GALE_WHY_SLOT,
		GALE_WHY_CEILING,   GALE_WHY_SHARE,      GALE_WHY_ESTIMATE,
		GALE_WHY_PROBE,     GALE_WHY_CUT_OFF,    GALE_WHY_CLASS,
		GALE_WHY_WIDE,      GALE_WHY_OWN,        GALE_WHY_LENT,
		GALE_WHY_OTHERS,
	};
	static const int kinds[] = {
		GALE_RULE_NONE,        GALE_RULE_FIXED_WINDOW, GALE_RULE_SLIDING_WINDOW,
		GALE_RULE_SLIDING_LOG, GALE_RULE_GCRA,         GALE_RULE_TOKEN_BUCKET,
		GALE_RULE_QUOTA,       GALE_RULE_TOKEN_BUDGET, GALE_RULE_PACER,
		GALE_RULE_CUSTOM,
	};
	static const int others[][5] = {
		{ GALE_DENY, GALE_PENDING, GALE_ALLOW, 3, 4 },
		{ GALE_STRICT, GALE_CACHED_DENY, GALE_LEASED, 3, 4 },
		{ GALE_SIZE_LEARNED, GALE_SIZE_FIXED, GALE_SIZE_EOQ, GALE_SIZE_HEDGE,
		  4 },
		{ GALE_ON_OUTAGE_DENY, GALE_ON_OUTAGE_ALLOW, GALE_ON_OUTAGE_SHARE, 3,
		  4 },
		{ GALE_CADENCE_NONE, GALE_MONTHLY, GALE_WEEKLY, GALE_DAILY,
		  GALE_ANCHORED },
		{ GALE_LEVEL_INFO, GALE_LEVEL_WARNING, GALE_LEVEL_ERROR, 3, 4 },
		{ GALE_KNEE, GALE_FIXED, GALE_AIMD, GALE_GRADIENT, 4 },
		{ GALE_NORMAL, GALE_SHEDDABLE, 2, 3, 4 },
		{ GALE_OK, GALE_DROPPED, GALE_IGNORED, 3, 4 },
		{ GALE_ON_CUT_OFF_DENY, GALE_ON_CUT_OFF_OWN, 2, 3, 4 },
		{ GALE_HTTP_REQUESTS, GALE_HTTP_CONTENT_BYTES,
		  GALE_HTTP_CONCURRENT_REQUESTS, 3, 4 },
		{ GALE_ON_OTHER_RULE_REFUSE, GALE_ON_OTHER_RULE_RESTART, 2, 3, 4 },
		{ GALE_BY_DEMAND, GALE_BY_WEIGHT, 2, 3, 4 },
		{ GALE_MEDIAN, GALE_LEAST, 2, 3, 4 },
		{ GALE_LENT, GALE_PARTED, 2, 3, 4 },
	};

	(void)state;
	for (int i = 0; i < (int)COUNT(whys); i++)
		assert_int_equal(whys[i], i);
	for (int i = 0; i < (int)COUNT(kinds); i++)
		assert_int_equal(kinds[i], i);
	for (size_t i = 0; i < COUNT(others); i++)
		for (int j = 0; j < 5; j++)
			assert_int_equal(others[i][j], j);
}

/* ---- Hosts of another age -------------------------------------------------------- */

struct older {
	uint64_t a;
};
struct newer {
	uint64_t a, b;
};

static void what_both_sides_know_is_copied(void **state)
{
	struct newer given = { 1, 0 }, known = { 7, 7 };
	struct older old_given = { 2 }, old_known = { 7 };

	(void)state;
	assert_true(sized_read(&known, sizeof(known), &old_given, sizeof(old_given)));
	assert_int_equal(known.a, 2);
	assert_int_equal(known.b, 0);
	assert_true(sized_read(&old_known, sizeof(old_known), &given, sizeof(given)));
	assert_int_equal(old_known.a, 1);
	given.b = UINT64_C(1) << 63;
	assert_false(sized_read(&old_known, sizeof(old_known), &given, sizeof(given)));

	assert_true(sized_write(&given, sizeof(given), &old_given, sizeof(old_given)));
	assert_int_equal(given.a, 2);
	assert_int_equal(given.b, 0);
	known = (struct newer){ 3, 4 };
	assert_true(sized_write(&old_given, sizeof(old_given), &known, sizeof(known)));
	assert_int_equal(old_given.a, 3);
}

/* What a newer gale.h might declare. */
struct newer_config {
	struct gale_config now;
	uint64_t later[2];
};
struct newer_store_config {
	struct gale_store_config now;
	uint64_t later[2];
};
struct newer_limiter_config {
	struct gale_limiter_config now;
	uint64_t later[2];
};
struct newer_guard_config {
	struct gale_guard_config now;
	uint64_t later[2];
};
struct newer_budget_config {
	struct gale_budget_config now;
	uint64_t later[2];
};
struct newer_terms {
	struct gale_terms now;
	uint64_t later[2];
};
struct newer_counts {
	struct gale_counts now;
	uint64_t later[2];
};
struct newer_metric {
	struct gale_metric now;
	uint64_t later[2];
};

static enum gale_err open_runtime(const void *config, size_t bytes)
{
	struct gale_runtime *runtime = NULL;
	enum gale_err err = gale_runtime_open_sized(config, bytes, &runtime);

	assert_true((err == GALE_ERR_OK) == (runtime != NULL));
	gale_runtime_close(runtime);
	return err;
}

static enum gale_err open_store(struct house *h, const void *config, size_t bytes)
{
	struct gale_store *store = NULL;
	enum gale_err err = gale_store_open_sized(h->runtime, config, bytes, &store);

	assert_true((err == GALE_ERR_OK) == (store != NULL));
	gale_store_close(store);
	return err;
}

static enum gale_err open_limiter(struct house *h, const void *config, size_t bytes)
{
	struct gale_limiter *limiter = NULL;
	enum gale_err err =
	    gale_limiter_open_sized(h->runtime, config, bytes, &limiter);

	assert_true((err == GALE_ERR_OK) == (limiter != NULL));
	gale_limiter_close(limiter);
	return err;
}

static enum gale_err open_guard(struct house *h, const void *config, size_t bytes)
{
	struct gale_guard *guard = NULL;
	enum gale_err err = gale_guard_open_sized(h->runtime, config, bytes, &guard);

	assert_true((err == GALE_ERR_OK) == (guard != NULL));
	gale_guard_close(guard);
	return err;
}

static const struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                          .limit = 5,
	                                          .period_us = GALE_HOURS(1) } };

/* The newest field of each is out of its bounds, where it is read. */
static void an_older_host_does_not_set_what_it_does_not_know(void **state)
{
	struct gale_config config = { .shards = 1, .clock = (void *)1 };
	struct gale_store_config store = { .quarantine_us = UINT64_MAX };
	struct gale_limiter_config limiter = { .name = "l", .rule = plan.rule };
	struct gale_guard_config guard = { .name = "g", .on_fenced = (void *)1 };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(open_guard(&h, &guard, sizeof(guard)), GALE_ERR_ALONE);
	assert_int_equal(
	    open_guard(&h, &guard, offsetof(struct gale_guard_config, on_fenced)),
	    GALE_ERR_OK);
	limiter.store = h.store;
	limiter.on_outage = GALE_ON_OUTAGE_SHARE;
	limiter.outage_share = 1;
	assert_int_equal(open_runtime(&config, offsetof(struct gale_config, clock)),
	                 GALE_ERR_OK);
	assert_int_equal(open_store(&h, &store, sizeof(store)), GALE_ERR_QUARANTINE);
	assert_int_equal(
	    open_store(&h, &store, offsetof(struct gale_store_config, quarantine_us)),
	    GALE_ERR_OK);
	assert_int_equal(open_limiter(&h, &limiter, sizeof(limiter)), GALE_ERR_OK);
	assert_int_equal(
	    open_limiter(&h, &limiter,
	                 offsetof(struct gale_limiter_config, outage_share)),
	    GALE_ERR_OUTAGE);
	assert_true(house_close(&h));
}

static void a_newer_host_is_served_if_it_sets_nothing_new(void **state)
{
	struct newer_config config = { .now = { .shards = 1 } };
	struct newer_store_config store = { .now = { .url = "memory:" } };
	struct newer_limiter_config limiter = { .now = { .name = "l" } };
	struct newer_guard_config guard = { .now = { .name = "g" } };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	limiter.now.rule = plan.rule;
	limiter.now.store = h.store;
	assert_int_equal(open_runtime(&config, sizeof(config)), GALE_ERR_OK);
	assert_int_equal(open_store(&h, &store, sizeof(store)), GALE_ERR_OK);
	assert_int_equal(open_limiter(&h, &limiter, sizeof(limiter)), GALE_ERR_OK);
	assert_int_equal(open_guard(&h, &guard, sizeof(guard)), GALE_ERR_OK);
	config.later[1] = store.later[1] = limiter.later[1] = guard.later[1] =
	    UINT64_C(1) << 63;
	assert_int_equal(open_guard(&h, &guard, sizeof(guard)), GALE_ERR_SIZE);
	assert_int_equal(open_runtime(&config, sizeof(config)), GALE_ERR_SIZE);
	assert_int_equal(open_store(&h, &store, sizeof(store)), GALE_ERR_SIZE);
	assert_int_equal(open_limiter(&h, &limiter, sizeof(limiter)), GALE_ERR_SIZE);
	assert_true(house_close(&h));
}

/* New fields of what lies within another struct come out of its reserve: nothing moves. */
static void a_reserve_is_left_zero(void **state)
{
	struct gale_limiter_config limiter = { .name = "l",
		                               .rule = plan.rule,
		                               .mode = GALE_LEASED };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	limiter.store = h.store;
	assert_int_equal(open_limiter(&h, &limiter, sizeof(limiter)), GALE_ERR_OK);
	for (size_t i = 0; i < COUNT(limiter.lease.reserved); i++) {
		limiter.lease.reserved[i] = 1;
		assert_int_equal(open_limiter(&h, &limiter, sizeof(limiter)),
		                 GALE_ERR_SIZE);
		limiter.lease.reserved[i] = 0;
	}
	for (size_t i = 0; i < COUNT(limiter.rule.reserved); i++) {
		limiter.rule.reserved[i] = 1;
		assert_int_equal(open_limiter(&h, &limiter, sizeof(limiter)),
		                 GALE_ERR_SIZE);
		limiter.rule.reserved[i] = 0;
	}
	assert_true(house_close(&h));
}

static void a_host_gets_the_counts_that_it_knows(void **state)
{
	struct newer_counts newer;
	struct gale_counts older;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	(void)house_ask(&h, "k");
	memset(&newer, 0xff, sizeof(newer));
	memset(&older, 0xff, sizeof(older));
	must(gale_store_stats_sized(h.store, &newer.now, sizeof(newer)) == GALE_ERR_OK);
	must(gale_store_stats_sized(h.store, &older,
	                            offsetof(struct gale_counts, full)) == GALE_ERR_OK);
	assert_int_equal(newer.now.steps, 1);
	assert_int_equal(newer.now.contended, 0);
	assert_int_equal(newer.later[0] | newer.later[1], 0);
	assert_int_equal(older.steps, 1);
	assert_int_equal(older.full, UINT64_MAX); /* it was not written */
	assert_true(house_close(&h));
}

static void a_host_gets_the_metrics_that_it_knows(void **state)
{
	struct gale_metric all[100];
	struct newer_metric newer[100];
	size_t count, index = 0;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	(void)house_ask(&h, "k");
	count = gale_metrics(h.runtime, all, COUNT(all));
	must(count <= COUNT(all));
	memset(newer, 0xff, sizeof(newer));
	assert_int_equal(gale_metrics_sized(h.runtime, &newer[0].now, sizeof(newer[0]),
	                                    COUNT(newer)),
	                 count);
	for (; index < count; index++) {
		assert_string_equal(newer[index].now.name, all[index].name);
		assert_int_equal(newer[index].later[0] | newer[index].later[1], 0);
	}
	assert_true(house_close(&h));
}

/* Not what sizeof says of any struct: two arguments that changed places, or a guess. */
static void a_size_that_cannot_be_is_refused(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 12, SIZED_MOST + 8, SIZE_MAX };
	struct gale_limiter_config limiter = { .name = "l", .rule = plan.rule };
	struct gale_config config = { .shards = 1 };
	struct gale_store_config store = { .url = "memory:" };
	struct gale_counts counts;
	struct gale_metric metric;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	limiter.store = h.store;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		assert_int_equal(open_runtime(&config, sizes[i]), GALE_ERR_SIZE);
		assert_int_equal(open_store(&h, &store, sizes[i]), GALE_ERR_SIZE);
		assert_int_equal(open_limiter(&h, &limiter, sizes[i]), GALE_ERR_SIZE);
		assert_int_equal(gale_store_stats_sized(h.store, &counts, sizes[i]),
		                 GALE_ERR_SIZE);
		assert_int_equal(gale_metrics_sized(h.runtime, &metric, sizes[i], 1),
		                 0);
	}
	assert_int_equal(open_runtime(NULL, 0), GALE_ERR_OK); /* nothing of that size */
	assert_true(house_close(&h));
}

/* The same of guards, of budgets and of what is counted. */
static void every_size_is_looked_at(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 12, SIZED_MOST + 8, SIZE_MAX };
	struct gale_budget_config config = { .limit = 9, .window_us = GALE_HOURS(1) };
	struct gale_guard_config guard_config = { .name = "g" };
	struct gale_terms terms = { .weight = 1, .name = "t" };
	struct gale_limiter_counts counts;
	struct gale_tenant_counts tenant_counts;
	struct gale_guard_counts guard_counts;
	struct gale_budget *budget, *none = NULL;
	struct gale_tenant *tenant, *no_tenant = NULL;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	must(gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK);
	must(gale_guard_open(h.runtime, &guard_config, &guard) == GALE_ERR_OK);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		assert_int_equal(
		    gale_budget_open_sized(h.runtime, &config, sizes[i], &none),
		    GALE_ERR_SIZE);
		assert_int_equal(
		    gale_tenant_open_sized(budget, &terms, sizes[i], &no_tenant),
		    GALE_ERR_SIZE);
		assert_int_equal(gale_tenant_set_terms_sized(tenant, &terms, sizes[i]),
		                 GALE_ERR_SIZE);
		assert_int_equal(
		    gale_tenant_stats_sized(tenant, &tenant_counts, sizes[i]),
		    GALE_ERR_SIZE);
		assert_int_equal(gale_guard_stats_sized(guard, &guard_counts, sizes[i]),
		                 GALE_ERR_SIZE);
		assert_int_equal(gale_limiter_stats_sized(h.limiter, &counts, sizes[i]),
		                 GALE_ERR_SIZE);
		assert_int_equal(open_guard(&h, &guard_config, sizes[i]),
		                 GALE_ERR_SIZE);
	}
	assert_true(!none && !no_tenant);
	gale_guard_close(guard);
	gale_tenant_close(tenant);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

static void terms_of_another_age_hold_as_far_as_they_are_known(void **state)
{
	struct newer_budget_config config = { .now = { .limit = 9,
		                                       .window_us = GALE_HOURS(1) } };
	struct newer_terms terms = { .now = { .weight = 1, .name = "t" } };
	struct gale_tenant *tenant = NULL;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	config.later[1] = terms.later[1] = 1;
	assert_int_equal(
	    gale_budget_open_sized(h.runtime, &config.now, sizeof(config), &budget),
	    GALE_ERR_SIZE);
	config.later[1] = 0;
	must(gale_budget_open_sized(h.runtime, &config.now, sizeof(config), &budget) ==
	     GALE_ERR_OK);
	assert_int_equal(
	    gale_tenant_open_sized(budget, &terms.now, sizeof(terms), &tenant),
	    GALE_ERR_SIZE);
	terms.later[1] = 0;
	must(gale_tenant_open_sized(budget, &terms.now, sizeof(terms), &tenant) ==
	     GALE_ERR_OK);
	terms.later[0] = 1;
	assert_int_equal(gale_tenant_set_terms_sized(tenant, &terms.now, sizeof(terms)),
	                 GALE_ERR_SIZE);
	terms.now.alone =
	    1; /* an older host does not know it: that budget has no store */
	assert_int_equal(
	    gale_tenant_set_terms_sized(tenant, &terms.now, sizeof(terms.now)),
	    GALE_ERR_ALONE_UNITS);
	assert_int_equal(gale_tenant_set_terms_sized(
			     tenant, &terms.now, offsetof(struct gale_terms, alone)),
	                 GALE_ERR_OK);
	gale_tenant_close(tenant);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if UINTPTR_MAX == UINT64_MAX
		cmocka_unit_test(fields_lie_where_they_did),
		cmocka_unit_test(a_struct_that_may_grow_ends_with_its_last_field),
#endif
		cmocka_unit_test(numbers_are_what_they_were),
		cmocka_unit_test(what_both_sides_know_is_copied),
		cmocka_unit_test(an_older_host_does_not_set_what_it_does_not_know),
		cmocka_unit_test(a_newer_host_is_served_if_it_sets_nothing_new),
		cmocka_unit_test(a_reserve_is_left_zero),
		cmocka_unit_test(a_host_gets_the_counts_that_it_knows),
		cmocka_unit_test(a_host_gets_the_metrics_that_it_knows),
		cmocka_unit_test(a_size_that_cannot_be_is_refused),
		cmocka_unit_test(every_size_is_looked_at),
		cmocka_unit_test(terms_of_another_age_hold_as_far_as_they_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
