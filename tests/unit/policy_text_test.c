/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * policy_text_test.c -- what is said of a policy that is none, sentence by sentence.
 *
 *     policy_text_test PAGE.md   the policies that the page prints are policies
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/policy.h>

#include "policy/human.h"
#include "policy/plan.h"
#include "tests/support/must.h"

#define STORE "stores: {here: {url: \"memory:\"}}\n"
#define END "...\n"
#define LIMITER(rest) STORE "limiters:\n  api:\n    store: here\n    " rest "\n" END
#define FIXED "rule: fixed_window\n    "
#define GUARD(rest) STORE "guards: {db: {" rest "}}\n" END
#define BUDGET(rest) "budgets: {gpu: {" rest "}}\n" END

static const char *page;

struct wrong {
	const char *text;
	enum gale_err err;
	const char *why; /* behind "policy:" */
};

/* What gale itself refuses ends with the text of the error. */
static void said(const struct wrong *cases, size_t count, bool is_gales)
{
	for (size_t i = 0; i < count; i++) {
		struct gale_policy_config config = { .text = cases[i].text };
		char why[GALE_POLICY_WHY_ROOM], expected[GALE_POLICY_WHY_ROOM];
		enum gale_err err = gale_policy_check(&config, why, sizeof(why));

		snprintf(expected, sizeof(expected), "policy:%s%s%s", cases[i].why,
		         is_gales ? ": " : "",
		         is_gales ? gale_err_text(cases[i].err) : "");
		assert_string_equal(why, expected);
		assert_int_equal(err, cases[i].err);
	}
}

#define SAID(cases, is_gales) said(cases, sizeof(cases) / sizeof((cases)[0]), is_gales)

/* ---- YAML ------------------------------------------------------------------------ */

#define TEXT GALE_ERR_POLICY_TEXT
#define LAST                                                                           \
	"yaml: the last line must be \"...\": without it the file may be only half "   \
	"written"
#define LOOK ": look for a quote, a bracket or a space that is missing"

static void yaml_that_no_policy_has(void **state)
{
	static const struct wrong cases[] = {
		{ "", TEXT,
		  "1: yaml: the policy is empty: write what it defines, as in "
		  "limiters:" },
		{ "# nothing\n", TEXT,
		  "2: yaml: the policy is empty: write what it defines, as in "
		  "limiters:" },
		{ "--- {}\n" END, TEXT,
		  "1: the policy defines nothing: write stores, limiters, guards or "
		  "budgets" },
		{ "just a text\n" END, TEXT,
		  "1: yaml: a policy begins with a name and a colon, as in limiters:" },
		{ "---\n" END, TEXT,
		  "2: yaml: a policy begins with a name and a colon, as in limiters:" },
		{ STORE, TEXT, "2: " LAST },
		{ STORE "..", TEXT,
		  "3: yaml: while scanning a simple key, could not find expected "
		  "':'" LOOK },
		{ STORE END "---\nlimiters: {}\n" END, TEXT,
		  "3: yaml: a second document begins here: a policy is one, so remove "
		  "it" },
		{ STORE "limiters:\n\tapi: {}\n" END, TEXT,
		  "3: yaml: a tab is not allowed here: write spaces" },
		{ "stores:\n  here:\n    url: memory:\n" END, TEXT,
		  "3: yaml: a colon is not allowed here: put a value that has one at "
		  "its end or before a space in quotes, as in \"memory:\"" },
		{ "stores: {here: {url: \"memory:}}\n" END, TEXT,
		  "2: yaml: while scanning a quoted scalar, found unexpected document "
		  "indicator" LOOK },
		{ "stores: {here: {\n" END, TEXT,
		  "2: yaml: while parsing a flow node, did not find expected node "
		  "content" LOOK },
		{ "stores: [here]\n" END, TEXT,
		  "1: stores: a list is not allowed: write names and values, as in "
		  "limit: 100/s" },
		{ "- stores\n" END, TEXT,
		  "1: yaml: a list is not allowed: write names and values, as in "
		  "limit: 100/s" },
		{ "stores: &all {}\n" END, TEXT,
		  "1: stores: an anchor (&) is not allowed: write the value wherever "
		  "it is needed" },
		{ "stores:\n  a: *all\n" END, TEXT,
		  "2: stores.a: an alias (*) is not allowed: write the value itself" },
		{ "stores:\n  <<: *all\n" END, TEXT,
		  "2: stores.<<: an alias (*) is not allowed: write the value itself" },
		{ "stores:\n  a: {max_keys: !!int 5}\n" END, TEXT,
		  "2: stores.a.max_keys: a tag (!) is not allowed: write the value "
		  "alone" },
		{ "stores:\n  ? {a: b}\n  : c\n" END, TEXT,
		  "2: stores: a name is missing here: write one before the colon" },
		{ "stores:\n  \"\": {}\n" END, TEXT,
		  "2: stores: a name is missing here: write one before the colon" },
		{ "stores:\n  a: {}\n  b: {}\n  a: {}\n" END, TEXT,
		  "4: stores.a: is given twice, first in line 2: remove one" },
		{ "stores:\n  a: {}\nstores:\n  b: {}\n" END, TEXT,
		  "3: stores: is given twice, first in line 1: remove one" },
		{ "stores:\n  a: {url: |\n    x\n  }\n" END, TEXT,
		  "2: yaml: while scanning for the next token, found character that "
		  "cannot start any token" LOOK },
		{ "stores:\n  a:\n    url: |\n      memory:x\n" END, TEXT,
		  "3: stores.a.url: has a line break or another control character: "
		  "write it in one line" },
		{ "stores:\n  a: {url: \"\\0\"}\n" END, TEXT,
		  "2: stores.a.url: has a line break or another control character: "
		  "write it in one line" },
		{ "stores: {\"a\\x07\": {}}\n" END, TEXT,
		  "1: stores: a name has a control character" },
		{ "stores:\n  a: {url: }\n" END, TEXT,
		  "2: stores.a.url: has no value: write one, or remove the name" },
		{ "stores:\nlimiters: {}\n" END, TEXT,
		  "1: stores: has no value: write one, or remove the name" },
		{ "stores: {a: {b: {c: {d: {e: {f: {g: {h: i}}}}}}}}\n" END, TEXT,
		  "1: stores.a.b.c.d.e.f.g: is deeper than any field of a policy: "
		  "remove it" },
		{ "\xff\xfe" STORE END, TEXT,
		  "1: yaml: invalid leading UTF-8 octet: write it in UTF-8" },
		{ STORE "\x01", TEXT,
		  "2: yaml: control characters are not allowed: write it in UTF-8" },
	};

	(void)state;
	SAID(cases, false);
}

/* None of these are in a string of C, or they are long. */
static void bytes_that_no_policy_has(void **state)
{
	static const char nul[] = "stores:\n  a: {}\n\0" END;
	static char large[GALE_POLICY_BYTES_MAX + 2], deep[200001];
	char text[128];
	struct why why = { .text = text, .room = sizeof(text), .source = "policy" };
	struct gale_policy_config config = { .text = large };
	struct plan plan;

	(void)state;
	assert_false(plan_read(nul, sizeof(nul) - 1, &why, &plan));
	assert_string_equal(
	    text,
	    "policy:3: yaml: a NUL is not allowed: write the policy as text in UTF-8");
	memset(large, '#', sizeof(large) - 1);
	assert_int_equal(gale_policy_check(&config, text, sizeof(text)),
	                 GALE_ERR_POLICY_TEXT);
	assert_string_equal(text, "policy: is larger than 1048576 bytes: define less");
	memset(deep, '{', sizeof(deep) - 1);
	config.text = deep;
	assert_int_equal(gale_policy_check(&config, text, sizeof(text)),
	                 GALE_ERR_POLICY_TEXT);
	memset(deep, '[', sizeof(deep) - 1);
	assert_int_equal(gale_policy_check(&config, text, sizeof(text)),
	                 GALE_ERR_POLICY_TEXT);
}

/* ---- Fields ---------------------------------------------------------------------- */

#define RIGHT "write its fields below it, further to the right"

#define CIRCLE "is this tenant, or below it: no tenant can be above itself"

static void fields_that_there_are_not(void **state)
{
	static const struct wrong cases[] = {
		{ "store: {}\n" END, TEXT,
		  "1: store: is not known: there are stores, limiters, guards, "
		  "budgets" },
		{ "tenants: {}\n" END, TEXT,
		  "1: tenants: is not known: there are stores, limiters, guards, "
		  "budgets" },
		{ "stores: memory\n" END, TEXT,
		  "1: stores: is the value \"memory\": write names below it, further "
		  "to the right" },
		{ "stores: {here: redis://me:secret@host}\n" END, TEXT,
		  "1: stores.here: is the value a URL: " RIGHT },
		{ "stores: {redis://me:secret@host/a: {}}\n" END, TEXT,
		  "1: stores.a URL: url is missing: add it" },
		{ "stores: {here: {max_keys: 5}}\n" END, TEXT,
		  "1: stores.here: url is missing: add it" },
		{ "stores: {a: {url: \"memory:\", max_keys: 3G}}\n" END, TEXT,
		  "1: stores.a.max_keys: \"3G\" is no count: write a whole number, "
		  "such as 1000, 250k or 2M" },
		{ "stores: {here: {url: {}}}\n" END, TEXT,
		  "1: stores.here.url: is a mapping: write one value" },
		{ "stores:\n  here: {url: \"memory:\", keys: 5}\n" END, TEXT,
		  "2: stores.here.keys: is not known: there are url, max_keys, "
		  "quarantine" },
		{ "stores: {here: {url: redis://me:secret@h?prefx=a}}\n" END,
		  GALE_ERR_URL,
		  "1: stores.here.url: option prefx is not known; there are db, "
		  "prefix, durable, sentinel_password" },
		{ "stores: {here: {url: nonsense}}\n" END, GALE_ERR_URL,
		  "1: stores.here.url: it begins with none of memory:, redis://, "
		  "redis+sentinel://, redis+cluster:// (or rediss, for TLS), "
		  "postgres://" },
		{ "stores: "
		  "{12345678901234567890123456789012345678901234567890123456789012345: "
		  "{}}\n" END,
		  GALE_ERR_NAME,
		  "1: stores.\"1234567890123456789012345678901234567890...\": a name "
		  "has at most 64 bytes: choose a shorter one" },
		{ "stores: {\xc3\xa4: {}}\n" END, GALE_ERR_NAME,
		  "1: stores.??: a name is printable ASCII: choose another one" },
		{ "limiters:\n  api: {store: here}\n" END, TEXT,
		  "2: limiters.api: rule is missing: add it, as in rule: "
		  "fixed_window" },
		{ "limiters:\n  api: 100/s\n" END, TEXT,
		  "2: limiters.api: is the value \"100/s\": " RIGHT },
		{ LIMITER("rule: fixed"), TEXT,
		  "5: limiters.api.rule: \"fixed\" is no rule: write one of "
		  "fixed_window, sliding_window, sliding_log, gcra, token_bucket, "
		  "leaky_bucket, quota_monthly, quota_weekly, quota_daily, "
		  "quota_anchored, quota_rolling, token_budget, pacer, pacer_limit" },
		{ LIMITER("rule: fixed_window"), TEXT,
		  "3: limiters.api: limit is missing: add it" },
		{ LIMITER("rule: {fixed_window: 5}"), TEXT,
		  "5: limiters.api.rule: is a mapping: write one value" },
		{ LIMITER(FIXED "limit: 5/s\n    burst: 5"), TEXT,
		  "7: limiters.api.burst: is not known: a limiter with the rule "
		  "fixed_window has rule, limit, store, name, mode, on_outage, "
		  "outage_share, on_other_rule, lease" },
		{ "limiters: {api: {rule: gcra, limit: 5/s, burst: 2}}\n" END, TEXT,
		  "1: limiters.api: store is missing: add it" },
		{ "limiters: {api: {rule: gcra, limit: 5/s, burst: 2, store: x}}\n" END,
		  TEXT,
		  "1: limiters.api.store: \"x\" is no store of this policy: define it "
		  "under stores" },
		{ GUARD("store: \"\""), TEXT,
		  "2: guards.db.store: has no value: write one, or remove the name" },
		{ LIMITER(FIXED "limit: 5/s\n    mode: lease"), TEXT,
		  "7: limiters.api.mode: \"lease\" is not known: write strict, "
		  "cached_deny or leased" },
		{ LIMITER(FIXED "limit: 5/s\n    lease: {batch: 5}"), TEXT,
		  "7: limiters.api.lease: is of no use without mode: leased: add that, "
		  "or remove this" },
		{ LIMITER(FIXED "limit: 5/s\n    outage_share: 5"), TEXT,
		  "7: limiters.api.outage_share: is of no use without on_outage: "
		  "share: add that, or remove this" },
		{ LIMITER(FIXED "limit: 5/s\n    mode: leased\n    lease: {batch: 5}"),
		  TEXT,
		  "8: limiters.api.lease.batch: is of no use without sizing: fixed: "
		  "add that, or remove this" },
		{ LIMITER(FIXED
		          "limit: 5/s\n    mode: leased\n    lease: {order_cost: 5}"),
		  TEXT,
		  "8: limiters.api.lease.order_cost: is of no use without sizing: eoq "
		  "or hedge: add that, or remove this" },
		{ LIMITER(FIXED "limit: 5/s\n    mode: leased\n    lease: {x: 5}"),
		  TEXT,
		  "8: limiters.api.lease.x: is not known: there are sizing, batch, "
		  "order_cost, strand_penalty, max_size, patience, drift, carry_over" },
		{ LIMITER(FIXED "limit: 5/s\n    mode: leased\n    lease: 5"), TEXT,
		  "8: limiters.api.lease: is the value \"5\": " RIGHT },
		{ GUARD("beat: 1s"), TEXT,
		  "2: guards.db.beat: is of no use without a store: add that, or "
		  "remove this" },
		{ GUARD("observe: yes"), TEXT,
		  "2: guards.db.observe: \"yes\" is not known: write false or true" },
		{ GUARD("ceiling: 0"), TEXT,
		  "2: guards.db.ceiling: \"0\" is no value of it: for the default, "
		  "remove the line" },
		{ BUDGET("tenants: {}"), TEXT,
		  "1: budgets.gpu: limit is missing: add it" },
		{ BUDGET("limit: 5/s, tenants: 5"), TEXT,
		  "1: budgets.gpu.tenants: is the value \"5\": write names below it, "
		  "further to the right" },
		{ BUDGET("limit: 5/s, tenants: {a: {wait: 5}}"), TEXT,
		  "1: budgets.gpu.tenants.a.wait: is not known: there are weight, "
		  "guarantee, cap, alone, parent" },
		{ BUDGET("limit: 5/s, patience: 1s"), TEXT,
		  "1: budgets.gpu.patience: is of no use without a store: add that, "
		  "or remove this" },
		{ "budgets:\n  gpu:\n    limit: 5/s\n    tenants:\n      a: {parent: "
		  "b}\n" END,
		  TEXT,
		  "5: budgets.gpu.tenants.a.parent: \"b\" is no tenant of this "
		  "budget: define it under tenants, too" },
		{ "budgets:\n  gpu: {limit: 5/s, tenants: {a: {parent: b}}}\n  cpu: "
		  "{limit: 5/s, tenants: {b: {}}}\n" END,
		  TEXT,
		  "2: budgets.gpu.tenants.a.parent: \"b\" is no tenant of this "
		  "budget: define it under tenants, too" },
		{ BUDGET("limit: 5/s, tenants: {a: {parent: a}}"), TEXT,
		  "1: budgets.gpu.tenants.a.parent: \"a\" " CIRCLE },
		{ BUDGET("limit: 5/s, tenants: {a: {parent: b}, b: {parent: c}, c: "
		         "{parent: b}}"),
		  TEXT, "1: budgets.gpu.tenants.b.parent: \"c\" " CIRCLE },
	};

	(void)state;
	SAID(cases, false);
}

static void what_gale_refuses_is_said_at_its_field(void **state)
{
	static const struct wrong cases[] = {
		{ "stores: {a: {url: \"memory:\", max_keys: 3000M}}\n" END,
		  GALE_ERR_STORE_KEYS, "1: stores.a.max_keys" },
		{ "stores: {a: {url: \"memory:\", quarantine: 2d}}\n" END,
		  GALE_ERR_QUARANTINE, "1: stores.a.quarantine" },
		{ LIMITER(FIXED "limit: 0/s"), GALE_ERR_RULE_LIMIT,
		  "6: limiters.api.limit" },
		{ LIMITER("rule: token_bucket\n    capacity: 1\n    refill: 1/0s"),
		  GALE_ERR_RULE_PERIOD, "7: limiters.api.refill" },
		{ LIMITER("rule: token_bucket\n    capacity: 0\n    refill: 1/s"),
		  GALE_ERR_RULE_BURST, "6: limiters.api.capacity" },
		{ LIMITER("rule: sliding_window\n    limit: 1/s\n    buckets: 129"),
		  GALE_ERR_RULE_BUCKETS, "7: limiters.api.buckets" },
		{ LIMITER("rule: quota_daily\n    limit: 1\n    utc_offset: +15:00"),
		  GALE_ERR_RULE_OFFSET, "7: limiters.api.utc_offset" },
		{ LIMITER("rule: sliding_log\n    limit: 1/s\n    mode: leased"),
		  GALE_ERR_CANNOT_LEASE, "7: limiters.api.mode" },
		{ LIMITER(FIXED "limit: 1/s\n    on_outage: share"), GALE_ERR_OUTAGE,
		  "7: limiters.api.on_outage" },
		{ LIMITER(FIXED
		          "limit: 1/s\n    mode: leased\n    lease: {sizing: hedge}"),
		  GALE_ERR_SIZING, "8: limiters.api.lease.sizing" },
		{ LIMITER(
		      FIXED
		      "limit: 1/s\n    mode: leased\n    lease:\n      patience: 2h"),
		  GALE_ERR_PATIENCE, "9: limiters.api.lease.patience" },
		{ LIMITER(
		      FIXED
		      "limit: 1/s\n    mode: leased\n    lease: {drift: 999999 ppm}"),
		  GALE_ERR_DRIFT, "8: limiters.api.lease.drift" },
		{ GUARD("law: fixed"), GALE_ERR_CEILING, "2: guards.db.law" },
		{ GUARD("ceiling: 9999999999"), GALE_ERR_CEILING,
		  "2: guards.db.ceiling" },
		{ GUARD("floor: 9, ceiling: 8"), GALE_ERR_FLOOR, "2: guards.db.floor" },
		{ GUARD("start: 9, ceiling: 8"), GALE_ERR_START, "2: guards.db.start" },
		{ GUARD("probe: 9, ceiling: 8"), GALE_ERR_PROBE, "2: guards.db.probe" },
		{ GUARD("overdue: 9999d"), GALE_ERR_OVERDUE, "2: guards.db.overdue" },
		{ GUARD("store: here, weight: 9999"), GALE_ERR_WEIGHT,
		  "2: guards.db.weight" },
		{ GUARD("store: here, beat: 2min"), GALE_ERR_BEAT,
		  "2: guards.db.beat" },
		{ GUARD("store: here, lease: 1ms"), GALE_ERR_LEASE,
		  "2: guards.db.lease" },
		{ GUARD("store: here, abort: 1h"), GALE_ERR_ABORT,
		  "2: guards.db.abort" },
		{ BUDGET("limit: 0/s"), GALE_ERR_BUDGET_LIMIT, "1: budgets.gpu.limit" },
		{ BUDGET("limit: 1/us"), GALE_ERR_BUDGET_WINDOW,
		  "1: budgets.gpu.limit" },
		{ BUDGET("limit: 1/s, protect: 2s"), GALE_ERR_PROTECT,
		  "1: budgets.gpu.protect" },
		{ BUDGET("limit: 1/s, max_tenants: 2M"), GALE_ERR_TENANTS,
		  "1: budgets.gpu.max_tenants" },
		{ BUDGET("limit: 1/s, tenants: {a: {weight: 0}}"),
		  GALE_ERR_TENANT_WEIGHT, "1: budgets.gpu.tenants.a.weight" },
		{ BUDGET("limit: 9/s, tenants: {a: {cap: 1, guarantee: 2}}"),
		  GALE_ERR_CAP, "1: budgets.gpu.tenants.a.cap" },
		{ BUDGET("limit: 9/s, tenants: {a: {guarantee: 5}, b: {guarantee: 5}}"),
		  GALE_ERR_GUARANTEE, "1: budgets.gpu.tenants.b.guarantee" },
		{ BUDGET("limit: 9/s, tenants: {b: {parent: a, guarantee: 5}, a: "
		         "{guarantee: 4}}"),
		  GALE_ERR_GUARANTEE, "1: budgets.gpu.tenants.b.guarantee" },
		{ STORE "budgets: {gpu: {limit: 9/s, store: here, tenants: {b: "
		        "{parent: a}, a: {}}}}\n" END,
		  GALE_ERR_PARENT_STORE, "2: budgets.gpu.tenants.b.parent" },
		{ STORE "budgets: {gpu: {limit: 9/s, store: here, patience: 2h}}\n" END,
		  GALE_ERR_PATIENCE, "2: budgets.gpu.patience" },
		{ BUDGET("limit: 9/s, tenants: {a: {}, b: {parent: a}, c: {parent: b}, "
		         "d: {parent: c}, e: {parent: d}, f: {parent: e}, g: {parent: "
		         "f}, h: {parent: g}, i: {parent: h}, j: {parent: i}, k: "
		         "{parent: j}, l: {parent: k}, m: {parent: l}, n: {parent: m}, "
		         "o: {parent: n}, p: {parent: o}, q: {parent: p}}"),
		  GALE_ERR_DEPTH, "1: budgets.gpu.tenants.q.parent" },
		{ BUDGET("limit: 9/s, max_tenants: 1, tenants: {a: {}, b: {}}"),
		  GALE_ERR_TENANTS_FULL, "1: budgets.gpu.tenants.b" },
	};

	(void)state;
	SAID(cases, true);
}

/* ---- Values ---------------------------------------------------------------------- */

static void counts_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t count;
	} good[] = { { "0", 0 },
		     { "7", 7 },
		     { "250k", 250000 },
		     { "2M", 2000000 },
		     { "9007199254740991", GALE_UNITS_MAX } };
	static const char *const bad[] = { "",
		                           "-1",
		                           "+1",
		                           "1.5",
		                           "1 000",
		                           "1,000",
		                           "010",
		                           "0x10",
		                           "1e3",
		                           "k",
		                           "1kk",
		                           "1 k",
		                           " 1",
		                           "1 ",
		                           "1_000",
		                           "9007199254740992",
		                           "18446744073709551616",
		                           "9007199254741k",
		                           "99999999999999999999999999999999" };
	uint64_t count;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(human_count(good[i].text, &count));
		assert_int_equal(count, good[i].count);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!human_count(bad[i], &count))
			fail_msg("\"%s\" is read as %d", bad[i], (int)count);
}

static void durations_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t us;
	} good[] = { { "0s", 0 },
		     { "5us", 5 },
		     { "200ms", 200000 },
		     { "5s", 5000000 },
		     { "5 s", 5000000 },
		     { "1 sec", 1000000 },
		     { "2 seconds", 2000000 },
		     { "1m", GALE_MINUTES(1) },
		     { "1min", GALE_MINUTES(1) },
		     { "2 minutes", GALE_MINUTES(2) },
		     { "3h", GALE_HOURS(3) },
		     { "1 hour", GALE_HOURS(1) },
		     { "13031d", GALE_DAYS(13031) },
		     { "2 weeks", GALE_DAYS(14) } };
	static const char *const bad[] = { "",       "5",      "s",
		                           "5S",     "5 mo",   "1.5s",
		                           "-1s",    "5ss",    "5s ",
		                           "13032d", "1 year", "1 month",
		                           "never",  "1h30m",  "9007199254740991d" };
	uint64_t us;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(human_duration(good[i].text, &us));
		assert_int_equal(us, good[i].us);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!human_duration(bad[i], &us))
			fail_msg("\"%s\" is read as %d", bad[i], (int)us);
}

static void rates_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t units, per_us;
	} good[] = { { "100/s", 100, 1000000 },
		     { "1000 per minute", 1000, GALE_MINUTES(1) },
		     { "20k per 5 min", 20000, GALE_MINUTES(5) },
		     { "5 / 2 h", 5, GALE_HOURS(2) },
		     { "5/100ms", 5, 100000 },
		     { "1M per day", 1000000, GALE_DAYS(1) } };
	static const char *const bad[] = { "",          "100",         "/s",
		                           "100/",      "100 s",       "100 per",
		                           "100pers",   "100 per s s", "100//s",
		                           "100/s/s",   "100/-1s",     "100 per month",
		                           "100 a day", "100/99999d",  "100/ 5" };
	struct rate rate;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(human_rate(good[i].text, &rate));
		assert_int_equal(rate.units, good[i].units);
		assert_int_equal(rate.per_us, good[i].per_us);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!human_rate(bad[i], &rate))
			fail_msg("\"%s\" is read as a rate", bad[i]);
}

static void parts_are_read(void **state)
{
	static const char *const bad[] = { "",      "90",  "101%", "100.1%",
		                           "9.25%", "-1%", "%",    "5.%" };
	static const char *const bad_ppm[] = { "", "5", "5 %", "1000001 ppm",
		                               "0.5 ppm" };
	static const char *const bad_decimal[] = {
		"", ".5", "1.", "1.1234567", "-1", "1e3", "0,5", "99999999999999999"
	};
	uint32_t part;
	double number;

	(void)state;
	assert_null(human_permille("90%", &part));
	assert_int_equal(part, 900);
	assert_null(human_permille("92.5 %", &part));
	assert_int_equal(part, 925);
	assert_null(human_permille("100%", &part));
	assert_int_equal(part, 1000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_non_null(human_permille(bad[i], &part));
	assert_null(human_ppm("500 ppm", &part));
	assert_int_equal(part, 500);
	for (size_t i = 0; i < sizeof(bad_ppm) / sizeof(bad_ppm[0]); i++)
		assert_non_null(human_ppm(bad_ppm[i], &part));
	assert_null(human_decimal("20", &number));
	assert_true(number == 20);
	assert_null(human_decimal("0.5", &number));
	assert_true(number == 0.5);
	for (size_t i = 0; i < sizeof(bad_decimal) / sizeof(bad_decimal[0]); i++)
		assert_non_null(human_decimal(bad_decimal[i], &number));
}

static void calendars_are_read(void **state)
{
	static const char *const bad[] = { "",        "02:00", "+2:00", "+02:60",
		                           "+02:000", "UTC",   "+02" };
	static const char *const bad_date[] = {
		"",
		"2026-02-29",
		"2026-13-01",
		"2026-00-01",
		"2026-01-00",
		"1969-12-31",
		"2100-01-01",
		"2026-1-1",
		"2026-01-01T24:00:00Z",
		"2026-01-01T00:00:00",
		"2026-01-01 00:00:00Z",
		"2026-01-01Z",
	};
	int32_t minutes;
	uint64_t us;

	(void)state;
	assert_null(human_offset("utc", &minutes));
	assert_int_equal(minutes, 0);
	assert_null(human_offset("-05:30", &minutes));
	assert_int_equal(minutes, -330);
	assert_null(human_offset("+14:00", &minutes));
	assert_int_equal(minutes, 840);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_non_null(human_offset(bad[i], &minutes));
	assert_null(human_instant("1970-01-01", &us));
	assert_int_equal(us, 0);
	/* date -u -d 2024-02-29T12:34:56Z +%s */
	assert_null(human_instant("2024-02-29T12:34:56Z", &us));
	assert_int_equal(us, GALE_SECONDS(1709210096));
	assert_null(human_instant("2099-12-31T23:59:59Z", &us));
	assert_int_equal(us, GALE_SECONDS(4102444799));
	for (size_t i = 0; i < sizeof(bad_date) / sizeof(bad_date[0]); i++)
		assert_non_null(human_instant(bad_date[i], &us));
}

/* ---- The page -------------------------------------------------------------------- */

/* Takes blocks of ```yaml out of the page. */
static void the_page_prints_policies(void **state)
{
	static const char begin[] = "```yaml\n", end[] = "```\n";
	char *text = NULL, *at, *to;
	size_t room = 0, policies = 0;
	FILE *file = fopen(page, "r");

	(void)state;
	must(file && getdelim(&text, &room, '\0', file) > 0 && fclose(file) == 0);
	for (at = text; (at = strstr(at, begin)) != NULL; at = to + 1) {
		struct gale_policy_config config = { .text = at + strlen(begin) };
		char why[GALE_POLICY_WHY_ROOM];

		to = strstr(at + strlen(begin), end);
		must(to != NULL);
		*to = '\0';
		(void)gale_policy_check(&config, why, sizeof(why));
		assert_string_equal(why, "");
		policies++;
	}
	assert_true(policies >= 3);
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_that_no_policy_has),
		cmocka_unit_test(bytes_that_no_policy_has),
		cmocka_unit_test(fields_that_there_are_not),
		cmocka_unit_test(what_gale_refuses_is_said_at_its_field),
		cmocka_unit_test(counts_are_read),
		cmocka_unit_test(durations_are_read),
		cmocka_unit_test(rates_are_read),
		cmocka_unit_test(parts_are_read),
		cmocka_unit_test(calendars_are_read),
		cmocka_unit_test(the_page_prints_policies),
	};

	must(argc == 2);
	page = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
