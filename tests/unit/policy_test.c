/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * policy_test.c -- policies that are opened and reloaded.
 *
 * The runtime is the test's to turn, on clocks that stand still: so what was spent stays spent.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gale/policy.h>

#include "sim/allocator.h"
#include "tests/support/clock.h"
#include "tests/support/house.h"
#include "tests/support/must.h"
#include "tests/support/scratch.h"

#define FOREVER_US GALE_SECONDS(1)
#define NOBODY 65534
#define STORE "stores: {here: {url: \"memory:\"}}\n"
#define END "...\n"

struct scene {
	struct test_allocator allocator;
	struct test_clock clock;
	struct gale_runtime *runtime;
	struct gale_seat *seat;
	struct gale_policy *policy;
	char why[GALE_POLICY_WHY_ROOM];
};

static void set_up(struct scene *scene)
{
	struct gale_config config = { .shards = 1, .turns = true };

	*scene = (struct scene){ 0 };
	test_allocator_init(&scene->allocator);
	test_clock_init(&scene->clock, HOUSE_NOW);
	test_clock_is_the_nodes(&scene->clock);
	config.allocator = &scene->allocator.allocator;
	config.clock = &scene->clock.clock;
	must(gale_runtime_open(&config, &scene->runtime) == GALE_ERR_OK);
	must(gale_join(scene->runtime, &scene->seat) == GALE_ERR_OK);
}

/* What a policy leaves open would be missing. */
static void tear_down(struct scene *scene)
{
	gale_policy_close(scene->policy);
	gale_leave(scene->seat);
	gale_runtime_close(scene->runtime);
	assert_true(test_allocator_is_balanced(&scene->allocator));
}

static void open_text(struct scene *scene, const char *text)
{
	struct gale_policy_config config = { .text = text };
	enum gale_err err;

	set_up(scene);
	err = gale_policy_open(scene->runtime, &config, scene->why, sizeof(scene->why),
	                       &scene->policy);
	assert_string_equal(scene->why, "");
	assert_int_equal(err, GALE_ERR_OK);
}

static void reload(struct scene *scene, const char *text)
{
	enum gale_err err =
	    gale_policy_reload(scene->policy, text, scene->why, sizeof(scene->why));

	assert_string_equal(scene->why, "");
	assert_int_equal(err, GALE_ERR_OK);
	for (int i = 0; i < 64; i++)
		(void)gale_turn(scene->runtime);
}

static void refuse(struct scene *scene, const char *text, enum gale_err err,
                   const char *why)
{
	enum gale_err actual =
	    gale_policy_reload(scene->policy, text, scene->why, sizeof(scene->why));

	assert_string_equal(scene->why, why);
	assert_int_equal(actual, err);
}

/* gale itself refuses what stands there. */
static void refuse_there(struct scene *scene, const char *text, enum gale_err err,
                         const char *there)
{
	char why[GALE_POLICY_WHY_ROOM];

	snprintf(why, sizeof(why), "%s: %s", there, gale_err_text(err));
	refuse(scene, text, err, why);
}

static uint64_t passes(struct scene *scene, const char *limiter, uint64_t tries)
{
	struct gale_limiter *found = gale_policy_limiter(scene->policy, limiter);
	uint64_t passed = 0;

	for (uint64_t i = 0; i < tries; i++)
		passed +=
		    gale_wait(scene->seat, found, "k", 1, 1, FOREVER_US).verdict ==
		    GALE_ALLOW;
	return passed;
}

/* ---- Opening --------------------------------------------------------------------- */

static const char everything[] =
    "stores:\n"
    "  here: {url: \"memory:\", max_keys: 10k, quarantine: 20s}\n"
    "  other: {url: \"memory:policy_test\"}\n"
    "limiters:\n"
    "  a: {rule: fixed_window, limit: 3 per hour, store: here}\n"
    "  b: {rule: sliding_window, limit: 4/h, buckets: 60, store: here}\n"
    "  c: {rule: sliding_log, limit: 5 / 1 h, store: here}\n"
    "  d: {rule: gcra, limit: 1/h, burst: 6, store: here}\n"
    "  e: {rule: token_bucket, capacity: 7, refill: 1 per 1h, store: here}\n"
    "  f: {rule: leaky_bucket, rate: 1/h, max_wait: 7h, store: here}\n"
    "  g: {rule: quota_monthly, limit: 9, utc_offset: +02:00, store: here}\n"
    "  h: {rule: quota_weekly, limit: 10, utc_offset: utc, first_weekday: monday, "
    "store: here}\n"
    "  i: {rule: quota_daily, limit: 11, utc_offset: -05:30, store: here}\n"
    "  j: {rule: quota_anchored, limit: 12 per 30d, anchor: 2020-02-29T12:00:00Z, "
    "store: here}\n"
    "  k: {rule: quota_rolling, limit: 13 per day, store: here}\n"
    "  l: {rule: token_budget, budget: 14 per week, store: other}\n"
    "  m: {rule: pacer, rate: 1/h, burst: 5, max_wait: 9h, allowance: 12.5%, store: "
    "other}\n"
    "  n: {rule: pacer_limit, rate: 1/h, burst: 15, allowance: 100%, store: other}\n"
    "  o:\n"
    "    rule: fixed_window\n"
    "    limit: 2 per hour\n"
    "    store: other\n"
    "    mode: leased\n"
    "    on_outage: share\n"
    "    outage_share: 1\n"
    "    on_other_rule: restart\n"
    "    lease: {sizing: fixed, batch: 1, max_size: 1M, patience: 100ms, drift: 200 "
    "ppm, carry_over: true}\n"
    "  p:\n"
    "    rule: fixed_window\n"
    "    limit: 2 per hour\n"
    "    store: other\n"
    "    mode: leased\n"
    "    lease: {sizing: eoq, order_cost: 20.5, strand_penalty: 1}\n"
    "guards:\n"
    "  alone: {law: fixed, ceiling: 2, sheddable: 50%, slots_most: 100%, observe: "
    "false, overdue: 1 min}\n"
    "  fleet:\n"
    "    law: aimd\n"
    "    start: 4\n"
    "    floor: 2\n"
    "    ceiling: 9\n"
    "    probe: 2\n"
    "    store: other\n"
    "    node: one\n"
    "    weight: 2\n"
    "    drift: 100 ppm\n"
    "    beat: 200ms\n"
    "    lease: 2s\n"
    "    abort: 100 ms\n"
    "    on_cut_off: own\n"
    "    parts: by_weight\n"
    "    of_estimates: least\n"
    "budgets:\n"
    "  gpu:\n"
    "    limit: 1000 per hour\n"
    "    release: never\n"
    "    protect: 1s\n"
    "    max_tenants: 3\n"
    "    lending: lent\n"
    "    tenants: {gold: {weight: 3, guarantee: 100, cap: 900}, iron: {}}\n"
    "  all:\n"
    "    limit: 10 per hour\n"
    "    store: other\n"
    "    patience: 10s\n"
    "    tenants: {gold: {weight: 3, alone: 5}}\n" END;

static void all_that_can_be_said_is_opened(void **state)
{
	static const uint64_t admits[] = { 3,  4,  5,  6,  7,  8,  9, 10,
		                           11, 12, 13, 14, 15, 16, 2, 2 };
	struct scene scene;
	char name[2] = "a";

	(void)state;
	open_text(&scene, everything);
	for (size_t i = 0; i < sizeof(admits) / sizeof(admits[0]); i++, name[0]++) {
		uint64_t passed = passes(&scene, name, 30);

		if (passed != admits[i])
			fail_msg("%s admits %d", name, (int)passed);
	}
	tear_down(&scene);
}

static void guards_and_budgets_are_opened(void **state)
{
	struct scene scene;
	struct gale_guard *alone;
	struct gale_entry entries[3];
	struct gale_tenant *gold;

	(void)state;
	open_text(&scene, everything);
	alone = gale_policy_guard(scene.policy, "alone");
	for (int i = 0; i < 3; i++)
		entries[i] = gale_enter(scene.seat, alone, 1, GALE_NORMAL);
	assert_int_equal(entries[1].verdict, GALE_ALLOW);
	assert_int_equal(entries[2].verdict, GALE_DENY);
	for (int i = 0; i < 3; i++)
		gale_exit(scene.seat, &entries[i], GALE_OK);
	assert_non_null(gale_policy_guard(scene.policy, "fleet"));
	assert_non_null(gale_policy_budget(scene.policy, "gpu"));
	assert_non_null(gale_policy_store(scene.policy, "here"));
	gold = gale_policy_tenant(scene.policy, "gpu", "gold");
	assert_int_equal(gale_tenant_ask(scene.seat, gold, 900).verdict, GALE_ALLOW);
	assert_int_equal(gale_tenant_ask(scene.seat, gold, 1).verdict, GALE_DENY);
	gold = gale_policy_tenant(scene.policy, "all", "gold");
	assert_int_equal(
	    gale_tenant_wait(scene.seat, gold, 10, GALE_SECONDS(10)).verdict,
	    GALE_ALLOW);
	assert_int_equal(
	    gale_tenant_wait(scene.seat, gold, 1, GALE_SECONDS(10)).verdict, GALE_DENY);
	tear_down(&scene);
}

static void what_is_not_defined_is_null_and_denied(void **state)
{
	struct scene scene;
	char long_name[2 * GALE_NAME_MAX];

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	open_text(&scene, everything);
	assert_null(gale_policy_limiter(scene.policy, "z"));
	assert_null(gale_policy_limiter(scene.policy, long_name));
	assert_null(gale_policy_limiter(scene.policy, NULL));
	assert_null(gale_policy_limiter(NULL, "a"));
	assert_null(gale_policy_tenant(scene.policy, "z", "gold"));
	assert_null(gale_policy_tenant(scene.policy, "gpu", "z"));
	assert_int_equal(passes(&scene, "z", 1), 0);
	tear_down(&scene);
}

/* A customer who changes plans keeps the count. */
static void limiters_of_one_name_share_their_keys(void **state)
{
	struct scene scene;

	(void)state;
	open_text(&scene, STORE
	          "limiters:\n"
	          "  free: {rule: fixed_window, limit: 3/h, store: here, name: plans}\n"
	          "  gold: {rule: fixed_window, limit: 9/h, store: here, name: plans}\n"
	          "  plans: {rule: fixed_window, limit: 10/h, store: here}\n" END);
	assert_int_equal(passes(&scene, "free", 20), 3);
	assert_int_equal(passes(&scene, "gold", 20), 6);
	assert_int_equal(passes(&scene, "plans", 20), 1);
	tear_down(&scene);
}

/* ---- Reloading ------------------------------------------------------------------- */

#define API(rest) STORE "limiters: {api: {rule: fixed_window, store: here, " rest "}}\n"

static void what_was_spent_stays_spent(void **state)
{
	static const char *const modes[] = { "strict", "cached_deny", "leased" };

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		static const char format[] = API("limit: %d per hour, mode: %s") END;
		struct scene scene;
		struct gale_limiter *before;
		char text[256];

		snprintf(text, sizeof(text), format, 10, modes[i]);
		open_text(&scene, text);
		before = gale_policy_limiter(scene.policy, "api");
		assert_int_equal(passes(&scene, "api", 30), 10);
		snprintf(text, sizeof(text), format, 25, modes[i]);
		reload(&scene, text);
		assert_ptr_equal(gale_policy_limiter(scene.policy, "api"), before);
		assert_int_equal(passes(&scene, "api", 30), 15);
		snprintf(text, sizeof(text), format, 20, modes[i]);
		reload(&scene, text);
		assert_int_equal(passes(&scene, "api", 30), 0);
		tear_down(&scene);
	}
}

static void a_reload_that_fails_changes_nothing(void **state)
{
	struct scene scene;

	(void)state;
	open_text(&scene, API("limit: 10 per hour") END);
	assert_int_equal(passes(&scene, "api", 4), 4);
	/* Its last line is missing. */
	refuse(&scene, API("limit: 100 per hour"), GALE_ERR_POLICY_TEXT,
	       "policy:3: yaml: the last line must be \"...\": without it the file "
	       "may be only half written");
	/* The first limiter is good, and the second is not. */
	refuse_there(&scene,
	             STORE
	             "limiters:\n"
	             "  api: {rule: fixed_window, limit: 100/h, store: here}\n"
	             "  new: {rule: gcra, limit: 100/h, burst: 0, store: here}\n" END,
	             GALE_ERR_RULE_BURST, "policy:4: limiters.new.burst");
	assert_null(gale_policy_limiter(scene.policy, "new"));
	assert_int_equal(passes(&scene, "api", 30), 6);
	tear_down(&scene);
}

static void names_come_go_and_come_back(void **state)
{
	static const char one[] = STORE
	    "limiters: {one: {rule: fixed_window, limit: 3/h, store: here}}\n" END;
	static const char two[] = STORE
	    "limiters: {two: {rule: fixed_window, limit: 5/h, store: here}}\n" END;
	static const char other[] =
	    "stores: {here: {url: \"memory:\"}, there: {url: \"memory:\"}}\n" END;
	struct scene scene;
	struct gale_limiter *held;

	(void)state;
	open_text(&scene, one);
	held = gale_policy_limiter(scene.policy, "one");
	assert_int_equal(passes(&scene, "one", 1), 1);
	reload(&scene, two);
	assert_null(gale_policy_limiter(scene.policy, "one"));
	assert_int_equal(passes(&scene, "two", 9), 5);
	/* Who holds it uses it as before. */
	assert_int_equal(gale_wait(scene.seat, held, "k", 1, 1, FOREVER_US).verdict,
	                 GALE_ALLOW);
	reload(&scene, other);
	assert_non_null(gale_policy_store(scene.policy, "there"));
	reload(&scene, one);
	assert_ptr_equal(gale_policy_limiter(scene.policy, "one"), held);
	assert_null(gale_policy_store(scene.policy, "there"));
	assert_int_equal(passes(&scene, "one", 9), 1);
	tear_down(&scene);
}

#define GPU(limit, tenants)                                                            \
	"budgets: {gpu: {limit: " limit                                                \
	" per hour, max_tenants: 3, tenants: {" tenants "}}}\n" END

#define ALONE(limit, alone)                                                            \
	STORE "budgets: {api: {limit: " limit                                          \
	      " per hour, store: here, tenants: {a: {alone: " alone "}}}}\n" END

/* They rise after the limit, and fall before it. */
static void units_alone_move_with_the_limit(void **state)
{
	struct scene scene;

	(void)state;
	open_text(&scene, ALONE("10", "10"));
	reload(&scene, ALONE("100", "100"));
	reload(&scene, ALONE("50", "50"));
	reload(&scene, ALONE("50", "20"));
	refuse_there(&scene, ALONE("50", "51"), GALE_ERR_ALONE_UNITS,
	             "policy:2: budgets.api.tenants.a.alone");
	tear_down(&scene);
}

/* Guarantees that fall make room for those that rise, and for a limit that falls. */
static void guarantees_move_from_tenant_to_tenant(void **state)
{
	struct scene scene;
	struct gale_tenant *a, *b;
	struct gale_tenant_counts counts;

	(void)state;
	open_text(&scene, GPU("1000", "a: {guarantee: 1000}, b: {}"));
	a = gale_policy_tenant(scene.policy, "gpu", "a");
	b = gale_policy_tenant(scene.policy, "gpu", "b");
	reload(&scene, GPU("1000", "a: {}, b: {guarantee: 1000}"));
	reload(&scene, GPU("500", "b: {guarantee: 300}, a: {guarantee: 200}"));
	reload(&scene, GPU("900", "b: {guarantee: 100}, a: {guarantee: 800}"));
	assert_ptr_equal(gale_policy_tenant(scene.policy, "gpu", "a"), a);
	assert_int_equal(gale_tenant_ask(scene.seat, b, 1).verdict, GALE_ALLOW);
	assert_int_equal(gale_tenant_ask(scene.seat, a, 1).verdict, GALE_ALLOW);
	assert_int_equal(gale_tenant_stats(a, &counts), GALE_ERR_OK);
	assert_int_equal(counts.share, 800);
	/* One that has gone has no guarantee, and another may have it. */
	reload(&scene, GPU("900", "c: {guarantee: 900}"));
	assert_null(gale_policy_tenant(scene.policy, "gpu", "a"));
	refuse_there(&scene, GPU("900", "d: {}"), GALE_ERR_TENANTS_FULL,
	             "policy:1: budgets.gpu.tenants.d");
	refuse_there(&scene, GPU("900", "b: {guarantee: 901}"), GALE_ERR_GUARANTEE,
	             "policy:1: budgets.gpu.tenants.b.guarantee");
	tear_down(&scene);
}

/* Those below a tenant have parts of its share, and move with it. */
static void tenants_of_tenants_move_with_their_parents(void **state)
{
	struct scene scene;
	struct gale_tenant *team;
	struct gale_tenant_counts counts;

	(void)state;
	open_text(&scene, GPU("1000", "b: {guarantee: 400}, a: {parent: b, guarantee: "
	                              "400}, c: {parent: a, guarantee: 300}"));
	team = gale_policy_tenant(scene.policy, "gpu", "c");
	assert_int_equal(gale_tenant_ask(scene.seat, team, 1).verdict, GALE_ALLOW);
	reload(&scene, GPU("100", "b: {guarantee: 50}, a: {parent: b, guarantee: "
	                          "50}, c: {parent: a, guarantee: 20}"));
	reload(&scene, GPU("2000", "b: {guarantee: 900}, a: {parent: b, guarantee: "
	                           "900}, c: {parent: a, guarantee: 900}"));
	refuse_there(&scene,
	             GPU("2000", "b: {guarantee: 900}, a: {parent: b, guarantee: "
	                         "100}, c: {parent: a, guarantee: 900}"),
	             GALE_ERR_GUARANTEE, "policy:1: budgets.gpu.tenants.c.guarantee");
	assert_int_equal(gale_tenant_stats(team, &counts), GALE_ERR_OK);
	assert_int_equal(counts.share, 2000);
	assert_int_equal(
	    gale_tenant_ask(scene.seat, gale_policy_tenant(scene.policy, "gpu", "b"), 1)
		.why,
	    GALE_WHY_BAD_ASK);
	refuse(&scene, GPU("2000", "b: {}, a: {parent: b}, c: {parent: b}"),
	       GALE_ERR_POLICY_TEXT,
	       "policy:1: budgets.gpu.tenants.c.parent: cannot change while it is in "
	       "use: write it as it was, or give the changed tenant another name");
	/* One that has gone may come back where it was. */
	reload(&scene, GPU("2000", "b: {}"));
	assert_null(gale_policy_tenant(scene.policy, "gpu", "c"));
	reload(&scene, GPU("2000", "c: {parent: a}, b: {}, a: {parent: b}"));
	assert_ptr_equal(gale_policy_tenant(scene.policy, "gpu", "c"), team);
	tear_down(&scene);
}

static void what_cannot_change_is_named(void **state)
{
	static const struct {
		const char *from, *to, *why;
	} cases[] = {
		{ API("limit: 9/h"),
		  STORE
		  "limiters: {api: {rule: gcra, burst: 1, store: here, limit: 9/h}}\n",
		  "policy:2: limiters.api.rule: cannot change while it is in use: "
		  "write it as it was, or give the changed limiter another name" },
		{ API("limit: 9/h"), API("limit: 9/h, mode: leased"),
		  "policy:2: limiters.api.mode: cannot change while it is in use: "
		  "write it as it was, or give the changed limiter another name" },
		{ API("limit: 9/h, mode: leased"), API("limit: 9/h"),
		  "policy:2: limiters.api: mode cannot change while it is in use: add "
		  "it as it was, or give the changed limiter another name" },
		{ API("limit: 9/h, mode: leased, lease: {drift: 9 ppm}"),
		  API("limit: 9/h, mode: leased"),
		  "policy:2: limiters.api: drift cannot change while it is in use: add "
		  "it as it was, or give the changed limiter another name" },
		{ STORE, "stores:\n  here:\n    url: \"memory:other\"\n",
		  "policy:3: stores.here.url: cannot change while it is in use: write "
		  "it as it was, or give the changed store another name" },
		{ "guards: {db: {ceiling: 9}}\n", "guards: {db: {ceiling: 10}}\n",
		  "policy:1: guards.db.ceiling: cannot change while it is in use: "
		  "write it as it was, or give the changed guard another name" },
		{ "budgets: {gpu: {limit: 9/h}}\n", "budgets: {gpu: {limit: 9/min}}\n",
		  "policy:1: budgets.gpu.limit: cannot change while it is in use, but "
		  "for its units: write it as it was, or give the changed budget "
		  "another name" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;
		char text[256];

		snprintf(text, sizeof(text), "%s" END, cases[i].from);
		open_text(&scene, text);
		snprintf(text, sizeof(text), "%s" END, cases[i].to);
		refuse(&scene, text, GALE_ERR_POLICY_TEXT, cases[i].why);
		tear_down(&scene);
	}
}

/* ---- Arguments and files --------------------------------------------------------- */

static void arguments_are_refused(void **state)
{
	struct gale_policy_config config = { 0 };
	struct scene scene;
	struct gale_policy *policy;
	char why[96];

	(void)state;
	set_up(&scene);
	assert_int_equal(gale_policy_open(scene.runtime, NULL, why, 96, &policy),
	                 GALE_ERR_CONFIG);
	assert_string_equal(why, "policy: config: it is NULL; pass a configuration");
	assert_int_equal(gale_policy_open(scene.runtime, &config, why, 96, NULL),
	                 GALE_ERR_RET);
	assert_int_equal(gale_policy_check(&config, why, 96), GALE_ERR_POLICY_SOURCE);
	config.text = STORE END;
	config.path = "policy.yaml";
	assert_int_equal(gale_policy_check(&config, NULL, 0), GALE_ERR_POLICY_SOURCE);
	config.path = NULL;
	config.reserved[3] = 1;
	assert_int_equal(gale_policy_check(&config, why, 96), GALE_ERR_SIZE);
	config.reserved[3] = 0;
	assert_int_equal(gale_policy_check(&config, NULL, 0), GALE_ERR_OK);
	assert_int_equal(gale_policy_open(NULL, &config, why, 96, &policy),
	                 GALE_ERR_RUNTIME);
	assert_string_equal(why,
	                    "policy:1: stores.here: runtime: it is NULL or closed; "
	                    "pass one that is open");
	assert_int_equal(gale_policy_reload(NULL, NULL, why, 96), GALE_ERR_NO_POLICY);
	gale_policy_close(NULL);
	tear_down(&scene);
	/* There is no file to read again. */
	open_text(&scene, STORE END);
	refuse_there(&scene, NULL, GALE_ERR_POLICY_SOURCE, "policy");
	tear_down(&scene);
}

static void a_sentence_is_cut_to_its_room(void **state)
{
	struct gale_policy_config config = { .text =
		                                 "limiters: {a: {rule: none}}\n" END };
	char why[GALE_POLICY_WHY_ROOM], cut[GALE_POLICY_WHY_ROOM];

	(void)state;
	assert_int_equal(gale_policy_check(&config, why, sizeof(why)),
	                 GALE_ERR_POLICY_TEXT);
	for (size_t room = 1; room < strlen(why) + 2; room++) {
		memset(cut, 'x', sizeof(cut));
		assert_int_equal(gale_policy_check(&config, cut, room),
		                 GALE_ERR_POLICY_TEXT);
		assert_memory_equal(cut, why,
		                    room - 1 < strlen(why) ? room - 1 : strlen(why));
		assert_true(memchr(cut, '\0', room) != NULL);
		assert_int_equal(cut[room], 'x');
	}
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	must(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void a_file_is_read_again(void **state)
{
	char folder[128], path[160], why[GALE_POLICY_WHY_ROOM];
	struct gale_policy_config config = { .path = path };
	struct scene scene;

	(void)state;
	scratch_make(folder, sizeof(folder), "policy");
	snprintf(path, sizeof(path), "%s/policy.yaml", folder);
	write_file(path, API("limit: 2/h") END);
	set_up(&scene);
	assert_int_equal(
	    gale_policy_open(scene.runtime, &config, why, sizeof(why), &scene.policy),
	    GALE_ERR_OK);
	assert_int_equal(passes(&scene, "api", 9), 2);
	write_file(path, API("limit: 5/h") END);
	reload(&scene, NULL);
	assert_int_equal(passes(&scene, "api", 9), 3);
	/* However many bytes of another policy have been written. */
	for (size_t bytes = 0; bytes < strlen(API("limit: 8/h") END) - 1; bytes++) {
		write_file(path, API("limit: 8/h") END);
		must(truncate(path, (off_t)bytes) == 0);
		if (bytes < strlen(API("limit: 8/h") END) - 1)
			assert_int_not_equal(
			    gale_policy_reload(scene.policy, NULL, why, sizeof(why)),
			    GALE_ERR_OK);
		assert_memory_equal(why, path, strlen(path));
	}
	assert_int_equal(passes(&scene, "api", 9), 0);
	must(unlink(path) == 0);
	assert_int_equal(gale_policy_reload(scene.policy, NULL, why, sizeof(why)),
	                 GALE_ERR_POLICY_FILE);
	tear_down(&scene);
	must(rmdir(folder) == 0);
}

static void says_of_file(const char *path, const char *what)
{
	struct gale_policy_config config = { .path = path };
	char why[GALE_POLICY_WHY_ROOM], expected[GALE_POLICY_WHY_ROOM];

	snprintf(expected, sizeof(expected), "%s: %s", path, what);
	assert_int_equal(gale_policy_check(&config, why, sizeof(why)),
	                 GALE_ERR_POLICY_FILE);
	assert_string_equal(why, expected);
}

static void what_is_no_file_is_said(void **state)
{
	const bool was_root = geteuid() == 0;
	char folder[128], path[160];

	(void)state;
	scratch_make(folder, sizeof(folder), "policy");
	says_of_file(folder, "it is a directory: name the file in it");
	snprintf(path, sizeof(path), "%s/policy", folder);
	says_of_file(path,
	             "there is no such file: look for a typing error in the path");
	must(mkfifo(path, 0600) == 0);
	says_of_file(path, "it is no regular file: write the policy to one");
	must(unlink(path) == 0);
	write_file(path, STORE END);
	must(truncate(path, GALE_POLICY_BYTES_MAX + 1) == 0);
	says_of_file(path, "is larger than 1048576 bytes: define less");
	/* To root no file is forbidden. */
	must(truncate(path, 0) == 0 && chmod(path, 0) == 0);
	must(!was_root || seteuid(NOBODY) == 0);
	says_of_file(
	    path,
	    "this process may not read it: give its user the right to, as with chmod");
	must(!was_root || seteuid(0) == 0);
	must(unlink(path) == 0 && rmdir(folder) == 0);
}

/* ---- Threads --------------------------------------------------------------------- */

static _Atomic bool is_over;

static void *look_up(void *arg)
{
	struct gale_policy *policy = arg;
	struct gale_limiter *api = gale_policy_limiter(policy, "api");

	while (!atomic_load(&is_over))
		if (gale_policy_limiter(policy, "api") != api)
			return NULL;
	return policy;
}

static void names_are_found_while_it_is_reloaded(void **state)
{
	struct scene scene;
	pthread_t threads[2];
	void *found;

	(void)state;
	open_text(&scene, API("limit: 10/h") END);
	for (int i = 0; i < 2; i++)
		must(pthread_create(&threads[i], NULL, look_up, scene.policy) == 0);
	for (int i = 0; i < 50; i++) {
		reload(&scene, API("limit: 20/h") END);
		reload(&scene, i % 2 ? API("limit: 30/h") "guards: {a: {}}\n" END
		                     : API("limit: 10/h") END);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < 2; i++) {
		must(pthread_join(threads[i], &found) == 0);
		assert_ptr_equal(found, scene.policy);
	}
	tear_down(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_can_be_said_is_opened),
		cmocka_unit_test(guards_and_budgets_are_opened),
		cmocka_unit_test(what_is_not_defined_is_null_and_denied),
		cmocka_unit_test(limiters_of_one_name_share_their_keys),
		cmocka_unit_test(what_was_spent_stays_spent),
		cmocka_unit_test(a_reload_that_fails_changes_nothing),
		cmocka_unit_test(names_come_go_and_come_back),
		cmocka_unit_test(units_alone_move_with_the_limit),
		cmocka_unit_test(tenants_of_tenants_move_with_their_parents),
		cmocka_unit_test(guarantees_move_from_tenant_to_tenant),
		cmocka_unit_test(what_cannot_change_is_named),
		cmocka_unit_test(arguments_are_refused),
		cmocka_unit_test(a_sentence_is_cut_to_its_room),
		cmocka_unit_test(a_file_is_read_again),
		cmocka_unit_test(what_is_no_file_is_said),
		cmocka_unit_test(names_are_found_while_it_is_reloaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
