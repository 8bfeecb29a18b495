/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_store_test.c -- redis:// through gale.h: good days, and input that is not good.
 *
 * A real server, real threads; where a server would have to misbehave, a rogue of
 * tests/support.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "sim/allocator.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/late.h"
#include "tests/support/late_name.h"
#include "tests/support/lines.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/rogue.h"
#include "tests/support/rules.h"
#include "tests/support/whys.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CREW 200
#define DATABASES "3000" /* in INFO: more than 64 KiB */
#define NODES_MOST 4
#define PATIENT GALE_SECONDS(10)

struct node {
	struct test_allocator allocator;
	struct lines lines;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

static struct redis_server server;

/* ---- Nodes ----------------------------------------------------------------------- */

struct plan {
	const char *url; /* NULL: the server's socket */
	const char *options;
	struct gale_rule rule;
	enum gale_mode mode;
	enum gale_on_outage on_outage;
	uint64_t patience_us; /* 0: PATIENT */
	uint32_t shards;      /* 0: 2 */
	bool turns;
};

static void node_start(struct node *node, const struct plan *plan)
{
	struct gale_config config = {
		.shards = plan->shards ? plan->shards : 2,
		.allocator = &node->allocator.allocator,
		.log = &node->lines.log,
		.turns = plan->turns,
	};

	memset(node, 0, sizeof(*node));
	lines_open(&node->lines);
	test_allocator_init(&node->allocator);
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

static struct gale_store *open_store(struct node *node, const struct plan *plan)
{
	char url[160];
	struct gale_store_config config = { .url = plan->url ? plan->url : url };
	struct gale_store *store;

	snprintf(url, sizeof(url), "redis://%s%s", server.socket,
	         plan->options ? plan->options : "");
	must(gale_store_open(node->runtime, &config, &store) == GALE_ERR_OK);
	return store;
}

static struct gale_limiter *open_limiter(struct node *node, struct gale_store *store,
                                         const char *name, const struct plan *plan)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = plan->rule,
		.mode = plan->mode,
		.on_outage = plan->on_outage,
		.store = store,
		.lease.patience_us = plan->patience_us ? plan->patience_us : PATIENT,
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(node->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static void node_open(struct node *node, const struct plan *plan)
{
	node_start(node, plan);
	node->store = open_store(node, plan);
	node->limiter = open_limiter(node, node->store, "limiter", plan);
}

static void node_close(struct node *node)
{
	gale_leave(node->seat);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	assert_true(test_allocator_is_balanced(&node->allocator));
}

static struct gale_answer ask(struct node *node, const char *key)
{
	return gale_wait(node->seat, node->limiter, key, strlen(key), 1, PATIENT);
}

static void assert_why(struct node *node, const char *key, enum gale_why why)
{
	struct gale_answer answer = ask(node, key);

	if (answer.why != why)
		print_message("%s, not %s\n", gale_why_text(answer.why),
		              gale_why_text(why));
	assert_int_equal(answer.why, why);
	assert_int_equal(answer.verdict, GALE_DENY);
}

static struct gale_counts counts_of(struct node *node)
{
	struct gale_counts counts;

	must(gale_store_stats(node->store, &counts) == GALE_ERR_OK);
	return counts;
}

static uint64_t metric(struct node *node, const char *name)
{
	struct gale_metric metrics[128];
	size_t count = gale_metrics(node->runtime, metrics, COUNT(metrics));

	for (size_t i = 0; i < count; i++)
		if (strcmp(metrics[i].name, name) == 0)
			return metrics[i].value;
	fail_msg("no metric is called %s", name);
	return 0;
}

/* Each test has a server that holds nothing, and has never forgotten anything. */
static int clean(void **state)
{
	(void)state;
	redis_server_do(&server, "CONFIG SET maxmemory 0");
	redis_server_do(&server, "REPLICAOF NO ONE");
	redis_server_do(&server, "FLUSHALL");
	redis_server_settle(&server, "gale:");
	redis_server_settle(&server, "a:");
	redis_server_settle(&server, "b:");
	return 0;
}

/* ---- Exactly the limit ----------------------------------------------------------- */

struct rush {
	struct node nodes[NODES_MOST];
	unsigned node_count;
	_Atomic uint64_t allowed;
	_Atomic uint64_t whys[WHYS];
};

static void ask_twice(void *arg, unsigned who)
{
	struct rush *rush = arg;
	struct node *node = &rush->nodes[who % rush->node_count];
	struct gale_seat *seat;

	must(gale_join(node->runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < 2; i++) {
		struct gale_answer answer =
		    gale_wait(seat, node->limiter, "k", 1, 1, PATIENT);

		add_relaxed(&rush->whys[answer.why], 1);
		if (answer.verdict == GALE_ALLOW)
			add_relaxed(&rush->allowed, 1);
	}
	gale_leave(seat);
}

static void show_whys(const struct rush *rush, const char *name)
{
	print_message("%s: allowed %" PRIu64 ";", name, load_relaxed(&rush->allowed));
	for (int why = 0; why < WHYS; why++)
		if (load_relaxed(&rush->whys[why]) > 0)
			print_message(" %s %" PRIu64 ";",
			              gale_why_text((enum gale_why)why),
			              load_relaxed(&rush->whys[why]));
	print_message("\n");
}

/* How many answers are neither the rule's nor what the node knows. */
static uint64_t excuses(const struct rush *rush)
{
	uint64_t sum = 0;

	for (int why = GALE_WHY_BUSY; why < WHYS; why++)
		sum += load_relaxed(&rush->whys[why]);
	return sum;
}

/* Nodes are closed before anything is asserted: a test that fails leaves no threads. */
static void rush_at(enum gale_mode mode, unsigned which, unsigned node_count)
{
	static struct rush rush;
	struct named_rule named = fifty_rule(which);
	struct plan plan = { .rule = named.rule, .mode = mode };

	memset(&rush, 0, sizeof(rush));
	rush.node_count = node_count;
	for (unsigned i = 0; i < node_count; i++)
		node_open(&rush.nodes[i], &plan);
	crew_run(CREW, ask_twice, &rush);
	for (unsigned i = 0; i < node_count; i++)
		node_close(&rush.nodes[i]);
	(void)clean(NULL);
	if (rush.allowed != FIFTY || excuses(&rush) > 0)
		show_whys(&rush, named.name);
	assert_int_equal(rush.allowed, FIFTY);
	assert_int_equal(excuses(&rush), 0);
}

static bool can_be_leased(const struct gale_rule *rule)
{
	return rule->kind != GALE_RULE_SLIDING_LOG &&
	       rule->kind != GALE_RULE_SLIDING_WINDOW &&
	       rule->kind != GALE_RULE_TOKEN_BUDGET;
}

static void two_hundred_threads_get_fifty(void **state)
{
	(void)state;
	for (unsigned which = 0; which < FIFTY_RULES; which++) {
		rush_at(GALE_STRICT, which, 1);
		rush_at(GALE_CACHED_DENY, which, 1);
	}
}

static void on_several_nodes_they_get_fifty_in_all(void **state)
{
	(void)state;
	for (unsigned which = 0; which < FIFTY_RULES; which++)
		rush_at(which % 2 ? GALE_STRICT : GALE_CACHED_DENY, which, NODES_MOST);
}

/* Of a pacer, places that were leased and not used are given back at the end only. */
static void leased_they_get_fifty(void **state)
{
	(void)state;
	for (unsigned which = 0; which < FIFTY_RULES; which++) {
		struct gale_rule rule = fifty_rule(which).rule;

		if (can_be_leased(&rule) && rule.kind != GALE_RULE_PACER)
			rush_at(GALE_LEASED, which, 1);
	}
}

/* ---- Looking and correcting ------------------------------------------------------ */

static void what_is_looked_at_and_corrected(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(3, GALE_HOURS(1)) };
	struct gale_outlook outlook;
	struct gale_answer answer;
	struct node node;

	(void)state;
	node_open(&node, &plan);
	for (uint64_t left = 3; left-- > 0;)
		assert_int_equal(ask(&node, "k").remaining, left);
	assert_why(&node, "k", GALE_WHY_RULE);
	assert_int_equal(gale_peek(node.seat, node.limiter, "k", 1, PATIENT, &answer),
	                 GALE_ERR_OK);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(
	    gale_forecast(node.seat, node.limiter, "k", 1, 1, PATIENT, &outlook),
	    GALE_ERR_OK);
	assert_int_equal(outlook.spendable_now, 0);
	assert_int_equal(gale_reset(node.seat, node.limiter, "k", 1, PATIENT),
	                 GALE_ERR_OK);
	assert_int_equal(ask(&node, "k").remaining, 2);
	node_close(&node);
}

static void a_place_that_is_given_back_is_another_callers(void **state)
{
	struct plan plan = { .rule = gale_leaky_bucket(1, GALE_SECONDS(100),
		                                       GALE_SECONDS(100)) };
	struct gale_answer first, second;
	struct node node;

	(void)state;
	node_open(&node, &plan);
	(void)ask(&node, "k");
	first = ask(&node, "k");
	assert_int_equal(first.verdict, GALE_ALLOW);
	assert_why(&node, "k", GALE_WHY_RULE);
	assert_int_equal(
	    gale_cancel(node.seat, node.limiter, "k", 1, 1, PATIENT, &first),
	    GALE_ERR_OK);
	second = ask(&node, "k");
	assert_int_equal(second.verdict, GALE_ALLOW);
	node_close(&node);
}

static void a_log_may_be_long(void **state)
{
	struct plan plan = { .rule = gale_sliding_log(8000, GALE_HOURS(1)) };
	struct node node;

	(void)state;
	node_open(&node, &plan);
	for (uint64_t i = 1; i <= 4400; i++)
		assert_int_equal(ask(&node, "k").remaining, 8000 - i);
	assert_int_equal(counts_of(&node).failures, 0);
	node_close(&node);
}

/* ---- Who meets whom -------------------------------------------------------------- */

static void keys_meet_under_one_name_and_no_other(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(1, GALE_HOURS(1)) };
	struct gale_store *stores[3];
	struct gale_limiter *limiters[4];
	struct node node;

	(void)state;
	node_open(&node, &plan);
	limiters[0] = open_limiter(&node, node.store, "other", &plan);
	for (int i = 0; i < 3; i++) {
		const char *const options[] = { "?prefix=a:", "?prefix=b:",
			                        "?prefix=a:" };

		plan.options = options[i];
		stores[i] = open_store(&node, &plan);
		limiters[i + 1] = open_limiter(&node, stores[i], "limiter", &plan);
	}
	assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
	for (int i = 0; i < 4; i++) {
		struct gale_answer answer =
		    gale_wait(node.seat, limiters[i], "k", 1, 1, PATIENT);

		/* The last is what the second is. */
		assert_int_equal(answer.verdict, i < 3 ? GALE_ALLOW : GALE_DENY);
		assert_int_equal(answer.why, GALE_WHY_RULE);
	}
	for (int i = 0; i < 4; i++)
		gale_limiter_close(limiters[i]);
	for (int i = 0; i < 3; i++)
		gale_store_close(stores[i]);
	node_close(&node);
}

static void a_key_may_be_any_bytes(void **state)
{
	static const char *const keys[] = { "{b00}", "}{", "a b\r\nc", "%n",
		                            "\xff\x01" };
	struct plan plan = { .rule = gale_fixed_window(1, GALE_HOURS(1)) };
	struct node node;

	(void)state;
	node_open(&node, &plan);
	for (size_t i = 0; i < COUNT(keys); i++) {
		assert_int_equal(ask(&node, keys[i]).verdict, GALE_ALLOW);
		assert_why(&node, keys[i], GALE_WHY_RULE);
	}
	assert_int_equal(
	    gale_wait(node.seat, node.limiter, "a\0b", 3, 1, PATIENT).verdict,
	    GALE_ALLOW);
	assert_int_equal(
	    gale_wait(node.seat, node.limiter, "a\0c", 3, 1, PATIENT).verdict,
	    GALE_ALLOW);
	node_close(&node);
}

/* ---- A server that is new -------------------------------------------------------- */

static void in_quarantine_a_look_promises_nothing(void **state)
{
	struct plan plan = { .rule = gale_gcra(5, GALE_SECONDS(20), 5) };
	struct gale_outlook outlook;
	struct gale_answer answer;
	struct node node;

	(void)state;
	redis_server_do(&server, "FLUSHALL");
	node_open(&node, &plan);
	assert_why(&node, "k", GALE_WHY_QUARANTINE);
	assert_int_equal(gale_peek(node.seat, node.limiter, "k", 1, PATIENT, &answer),
	                 GALE_ERR_OK);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.why, GALE_WHY_QUARANTINE);
	assert_in_range(answer.retry_after_us, GALE_SECONDS(21), GALE_SECONDS(25));
	assert_int_equal(
	    gale_forecast(node.seat, node.limiter, "k", 1, 1, PATIENT, &outlook),
	    GALE_ERR_OK);
	assert_int_equal(outlook.spendable_now, 0);
	assert_in_range(outlook.next_after_us, GALE_SECONDS(21), GALE_SECONDS(25));
	assert_int_equal(counts_of(&node).quarantined, 1);
	assert_true(lines_will_have(&node.lines, "it grants nothing for 2"));
	node_close(&node);
}

/* ---- Keys that are not ours ------------------------------------------------------ */

#define OUR_K "gale:{b00}:\7limiterk"

static void a_key_of_another_kind_is_wrong_and_stays(void **state)
{
	static const char *const commands[] = {
		"LPUSH " OUR_K " x",
		"SET " OUR_K " garbage",
		"SETRANGE " OUR_K " 65600 x",
	};
	const struct gale_rule rules[] = { gale_fixed_window(9, GALE_HOURS(1)),
		                           gale_gcra(9, GALE_HOURS(1), 9),
		                           gale_sliding_log(9, GALE_HOURS(1)) };

	(void)state;
	for (size_t i = 0; i < COUNT(commands) * COUNT(rules); i++) {
		struct plan plan = { .rule = rules[i % COUNT(rules)] };
		struct node node;

		redis_server_do(&server, "DEL " OUR_K);
		redis_server_do(&server, commands[i / COUNT(rules)]);
		node_open(&node, &plan);
		assert_why(&node, "k", GALE_WHY_WRONG);
		assert_int_equal(counts_of(&node).wrong, 1);
		assert_int_equal(counts_of(&node).failures, 0);
		assert_int_equal(ask(&node, "other").verdict, GALE_ALLOW);
		assert_int_equal(gale_reset(node.seat, node.limiter, "k", 1, PATIENT),
		                 GALE_ERR_OK);
		assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
		assert_int_equal(
		    gale_reset(node.seat, node.limiter, "other", 5, PATIENT),
		    GALE_ERR_OK);
		node_close(&node);
	}
}

static redisReply *value_of_k(struct redis_talk *talk)
{
	redisReply *value = redis_talk_say(talk, "GET " OUR_K);

	assert_int_equal(value->type, REDIS_REPLY_STRING);
	return value;
}

/* A value that this build has written, as one of the next layout has it. */
static redisReply *age_backwards(struct redis_talk *talk)
{
	redisReply *value = value_of_k(talk);

	assert_int_equal(value->str[0], 2);
	redis_reply_free(value);
	redis_reply_free(redis_talk_say(talk, "SETRANGE " OUR_K " 0 \3"));
	value = value_of_k(talk);
	assert_int_equal(value->str[0], 3);
	return value;
}

static void what_is_newer_stays(struct redis_talk *talk, const struct plan *plan)
{
	redisReply *newer, *after;
	struct node node;

	redis_talk_do(talk, "DEL " OUR_K);
	node_open(&node, plan);
	assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
	node_close(&node);
	newer = age_backwards(talk);
	node_open(&node, plan);
	assert_why(&node, "k", GALE_WHY_WRONG);
	assert_why(&node, "k", GALE_WHY_WRONG);
	node_close(&node);
	after = value_of_k(talk);
	assert_int_equal(after->len, newer->len);
	assert_memory_equal(after->str, newer->str, newer->len);
	redis_reply_free(newer);
	redis_reply_free(after);
}

static void a_value_of_a_newer_gale_is_never_read_and_stays(void **state)
{
	const struct gale_rule rules[] = { gale_fixed_window(99, GALE_HOURS(1)),
		                           gale_gcra(99, GALE_HOURS(1), 99),
		                           gale_token_bucket(99, 1, GALE_HOURS(1)) };
	static const enum gale_mode modes[] = { GALE_STRICT, GALE_CACHED_DENY,
		                                GALE_LEASED };
	struct redis_talk talk;

	(void)state;
	redis_talk_open(&talk, &server);
	for (size_t i = 0; i < COUNT(rules) * COUNT(modes); i++) {
		struct plan plan = { .rule = rules[i % COUNT(rules)],
			             .mode = modes[i / COUNT(rules)] };

		what_is_newer_stays(&talk, &plan);
	}
	redis_talk_do(&talk, "DEL " OUR_K);
	redis_talk_close(&talk);
}

/* That one key cannot be believed is no reason to ask for no other. */
static void a_key_of_another_kind_does_others_no_harm(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .mode = GALE_LEASED,
		             .shards = 1 };
	struct node node;
	char key[16];

	(void)state;
	redis_server_do(&server, "SET " OUR_K " garbage");
	node_open(&node, &plan);
	for (int i = 0; i < 20; i++) {
		assert_why(&node, "k", GALE_WHY_WRONG);
		snprintf(key, sizeof(key), "other%d", i);
		assert_int_equal(ask(&node, key).verdict, GALE_ALLOW);
	}
	node_close(&node);
}

static void a_key_under_another_kind_of_rule_is_left_alone(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(9, GALE_HOURS(1)) };
	struct node one, other;

	(void)state;
	node_open(&one, &plan);
	plan.rule = gale_gcra(9, GALE_HOURS(2), 9);
	node_open(&other, &plan);
	assert_int_equal(ask(&one, "k").remaining, 8);
	assert_why(&other, "k", GALE_WHY_CHANGED);
	assert_int_equal(counts_of(&other).changed, 1);
	assert_int_equal(ask(&one, "k").remaining, 7);
	node_close(&one);
	node_close(&other);
}

/* ---- Who is not let in ----------------------------------------------------------- */

static void is_down(void *arg)
{
	assert_why(arg, "k", GALE_WHY_DOWN);
}

static void refused(const char *url, const char *because)
{
	struct plan plan = { .url = url, .rule = gale_fixed_window(9, GALE_HOURS(1)) };
	struct node node;

	plan.shards = 1;
	node_open(&node, &plan);
	if (!lines_will_have_asking(&node.lines, because, is_down, &node))
		fail_msg("%s: said: %s", url, node.lines.text[0]);
	assert_int_equal(counts_of(&node).connects, 0);
	assert_true(counts_of(&node).failures > 0);
	node_close(&node);
}

static void let_in(const char *url)
{
	struct plan plan = { .url = url, .rule = gale_fixed_window(9, GALE_HOURS(1)) };
	struct node node;

	node_open(&node, &plan);
	assert_true(is_of_server(ask(&node, "k")));
	node_close(&node);
}

static void who_has_no_password_is_not_let_in(void **state)
{
	static const char *const options[] = {
		"--requirepass", "open%sesame", "--user", "ali",   "on", ">baba",
		"~gale:*",       "+@all",       "--user", "thief", "on", ">baba",
		"~gale:*",       "+get",        "--user", "bare",  "on", "nopass",
		"~gale:*",       "+@all",       NULL,
	};
	struct redis_server guarded;
	struct proxy proxy;
	char url[128];

	(void)state;
	redis_server_start(&guarded, options);
	proxy_open(&proxy, guarded.socket);
#define URL(who)                                                                       \
	(snprintf(url, sizeof(url), "redis://" who "127.0.0.1:%u", proxy.port), url)
	refused(URL(""), "NOAUTH");
	refused(URL(":wrong@"), "WRONGPASS");
	refused(URL("ali:wrong@"), "WRONGPASS");
	refused(URL("nobody:baba@"), "WRONGPASS");
	refused(URL("thief:baba@"), "NOPERM");
	let_in(URL(":open%%25sesame@"));
	let_in(URL("ali:baba@"));
	let_in(URL("bare@"));
#undef URL
	proxy_close(&proxy);
	redis_server_stop(&guarded);
}

static void an_address_that_leads_nowhere(void **state)
{
	const struct gale_store_config too_far = { .url =
		                                       "redis:///folder/of/a/path/"
		                                       "that/is/much/too/long/for/a/"
		                                       "socket/of/a/server/so/it/is/"
		                                       "refused/at/once/as/it/is/said/"
		                                       "and/that/is/that" };
	const struct gale_store_config two = { .url =
		                                   "redis://127.0.0.1:1,127.0.0.1:2" };
	struct plan plan = { .shards = 1 };
	struct gale_store *store;
	struct node node;
	char url[160];

	(void)state;
	node_start(&node, &plan);
	assert_int_equal(gale_store_open(node.runtime, &two, &store), GALE_ERR_URL);
	assert_true(lines_have(&node.lines, "url: redis:// takes one host"));
	assert_int_equal(gale_store_open(node.runtime, &too_far, &store),
	                 GALE_ERR_HOST);
	assert_true(lines_have(&node.lines, "url: the path of a socket"));
	gale_leave(node.seat);
	gale_runtime_close(node.runtime);
	refused("redis://127.0.0.1:1", "Connection refused");
	refused("redis:///nowhere/at/all", "No such file");
	snprintf(url, sizeof(url), "redis://%s?db=99", server.socket);
	refused(url, "DB index");
}

static bool is_allowed(void *arg)
{
	return ask(arg, "k").verdict == GALE_ALLOW;
}

/* A host whose name nobody knows is like a server that is down. */
static void a_name_that_is_known_later_is_found(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1,
		             .patience_us = GALE_SECONDS(1) };
	struct proxy proxy;
	struct node node;
	char url[64];

	(void)state;
	proxy_open(&proxy, server.socket);
	snprintf(url, sizeof(url), "redis://" LATE_NAME ":%u", proxy.port);
	plan.url = url;
	late_name_is_known(false);
	node_open(&node, &plan);
	assert_true(lines_have(&node.lines, "url: no address is known of " LATE_NAME));
	assert_true(lines_will_have_asking(
	    &node.lines, "no address is known of its host", is_down, &node));
	late_name_is_known(true);
	assert_true(becomes_true(is_allowed, &node));
	node_close(&node);
	proxy_close(&proxy);
}

/* ---- Servers that cannot --------------------------------------------------------- */

static bool is_denied(void *arg)
{
	struct gale_answer answer = ask(arg, "k");

	return answer.verdict == GALE_DENY && is_of_server(answer);
}

static void a_replica_is_not_asked(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1 };
	struct node node;

	(void)state;
	node_open(&node, &plan);
	assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
	redis_server_do(&server, "REPLICAOF 127.0.0.1 1");
	assert_why(&node, "k", GALE_WHY_DOWN);
	nap(GALE_MILLIS(50));
	assert_why(&node, "k", GALE_WHY_DOWN);
	assert_true(lines_will_have(&node.lines, "READONLY"));
	assert_true(lines_will_have(&node.lines, "it is a replica"));
	redis_server_do(&server, "REPLICAOF NO ONE");
	assert_true(becomes_true(is_denied, &node)); /* it may have forgotten */
	assert_true(lines_will_have(&node.lines, ": it is well again, after "));
	redis_server_settle(&server, "gale:");
	assert_true(becomes_true(is_allowed, &node));
	node_close(&node);
}

/* It keeps the connections that it had, and would write what is said to it. */
static void one_that_becomes_a_replica_that_writes_is_not_asked(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1 };
	struct node node;

	(void)state;
	node_open(&node, &plan);
	assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
	redis_server_do(&server, "CONFIG SET replica-read-only no");
	redis_server_do(&server, "REPLICAOF 127.0.0.1 1");
	nap(GALE_MILLIS(1100)); /* who was silent for a second is asked who it is */
	assert_int_equal(ask(&node, "k").verdict, GALE_DENY);
	assert_why(&node, "k", GALE_WHY_DOWN);
	assert_true(lines_will_have(&node.lines, "it is a replica"));
	redis_server_do(&server, "REPLICAOF NO ONE");
	redis_server_do(&server, "CONFIG SET replica-read-only yes");
	assert_true(becomes_true(is_denied, &node)); /* it may have forgotten */
	redis_server_settle(&server, "gale:");
	assert_true(becomes_true(is_allowed, &node));
	node_close(&node);
}

/* Of each database that has keys, how many there are. */
static void a_server_that_has_much_to_say_of_itself_is_heard(void **state)
{
	static const char *const options[] = { "--databases", DATABASES, NULL };
	struct redis_server other;
	struct redis_talk talk;
	redisReply *info;
	char command[160];

	(void)state;
	redis_server_start(&other, options);
	redis_talk_open(&talk, &other);
	for (int i = 0; i < atoi(DATABASES); i++) {
		snprintf(command, sizeof(command), "SELECT %d", i);
		redis_talk_do(&talk, command);
		redis_talk_do(&talk, "SET another users");
	}
	info = redis_talk_say(&talk, "INFO");
	assert_true(info->len > 65536);
	redis_reply_free(info);
	redis_talk_close(&talk);
	snprintf(command, sizeof(command), "redis://%s", other.socket);
	let_in(command);
	redis_server_stop(&other);
}

static void a_server_that_may_forget_is_told_of(void **state)
{
	static const char *const lru[] = { "--maxmemory", "8mb", "--maxmemory-policy",
		                           "allkeys-lru", NULL };
	static const char *const aof[] = { "--appendonly", "yes", NULL };
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1 };
	const struct redis_server quiet = server;
	struct node node;

	(void)state;
	node_open(&node, &plan);
	(void)ask(&node, "k");
	assert_true(lines_will_have(&node.lines, "no append-only file"));
	node_close(&node);

	redis_server_start(&server, lru);
	node_open(&node, &plan);
	(void)ask(&node, "k");
	assert_true(lines_will_have(&node.lines, "maxmemory-policy is allkeys-lru"));
	node_close(&node);
	redis_server_stop(&server);

	redis_server_start(&server, aof);
	node_open(&node, &plan);
	(void)ask(&node, "k");
	assert_false(lines_have(&node.lines, "append-only file"));
	node_close(&node);
	redis_server_stop(&server);
	server = quiet;
}

static void a_server_without_room_takes_nothing(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1,
		             .on_outage = GALE_ON_OUTAGE_ALLOW };
	struct gale_answer answer;
	uint64_t connects;
	struct node node;

	(void)state;
	node_open(&node, &plan);
	assert_true(is_of_server(ask(&node, "k")));
	redis_server_do(&server, "CONFIG SET maxmemory 1");
	answer = ask(&node, "new");
	assert_int_equal(answer.why, GALE_WHY_DOWN);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_true(lines_will_have(&node.lines, "OOM"));
	connects = counts_of(&node).connects;
	for (int i = 0; i < 1000; i++)
		(void)ask(&node, "new");
	assert_in_range(counts_of(&node).connects, connects, connects + 10);
	redis_server_do(&server, "CONFIG SET maxmemory 0");
	plan.on_outage = GALE_ON_OUTAGE_DENY;
	node_close(&node);
	node_open(&node, &plan);
	assert_true(becomes_true(is_allowed, &node));
	node_close(&node);
}

#define LEAST                                                                          \
	"ACL SETUSER least reset on >pass ~gale:* +eval +evalsha +script|load +info "  \
	"+time +get +set +setrange +del"

static bool is_of_use(const char *options)
{
	char url[160];
	struct plan plan = { .url = url,
		             .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1,
		             .patience_us = GALE_SECONDS(1) };
	struct node node;
	bool is_let;

	snprintf(url, sizeof(url), "redis://least:pass@%s%s", server.socket, options);
	node_open(&node, &plan);
	is_let = is_of_server(ask(&node, "k"));
	node_close(&node);
	return is_let;
}

/* The commands that stores/redis/wire.h names, and none that is not needed. */
static void a_user_needs_no_more_than_is_said(void **state)
{
	static const char *const less[] = { "-eval", "-evalsha", "-script|load",
		                            "-info", "-time",    "-get",
		                            "-set",  "resetkeys" };
	char command[64];

	(void)state;
	redis_server_do(&server, LEAST);
	assert_true(is_of_use(""));
	assert_false(is_of_use("?db=1"));
	redis_server_do(&server, LEAST " +select");
	assert_true(is_of_use("?db=1"));
	redis_server_do(&server, LEAST " +client|setname");
	assert_true(is_of_use(""));
	for (size_t i = 0; i < COUNT(less); i++) {
		redis_server_do(&server, LEAST);
		redis_server_do(&server, "SCRIPT FLUSH");
		redis_server_do(&server, "DEL gale:{b00}generation " OUR_K);
		snprintf(command, sizeof(command), "ACL SETUSER least %s", less[i]);
		redis_server_do(&server, command);
		assert_false(is_of_use(""));
	}
	redis_server_do(&server, "ACL DELUSER least");
}

/* Who looks at CLIENT LIST sees which connections are gale's, and of which process.  Who may not
 * set a name goes without (a_user_needs_no_more_than_is_said). */
static void connections_have_a_name(void **state)
{
	char url[160];
	struct plan plan = { .url = url,
		             .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1 };
	struct redis_talk talk;
	redisReply *reply;
	struct node node;
	char name[40];

	(void)state;
	snprintf(url, sizeof(url), "redis://%s", server.socket);
	snprintf(name, sizeof(name), " name=gale:%ld ", (long)getpid());
	node_open(&node, &plan);
	assert_true(becomes_true(is_allowed, &node));
	redis_talk_open(&talk, &server);
	reply = redis_talk_say(&talk, "CLIENT LIST");
	assert_non_null(strstr(reply->str, name));
	redis_reply_free(reply);
	redis_talk_close(&talk);
	node_close(&node);
}

/* A user who may do all that a connection begins with, and not the rest. */
static void who_is_let_in_in_vain_does_not_come_again_at_once(void **state)
{
	static const enum gale_mode modes[] = { GALE_STRICT, GALE_LEASED };
	char url[160];
	struct plan plan = { .url = url,
		             .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1 };

	(void)state;
	snprintf(url, sizeof(url), "redis://half:x@%s", server.socket);
	redis_server_do(&server, "ACL SETUSER half on nopass ~* +@all -set -setrange");
	for (size_t i = 0; i < COUNT(modes); i++) {
		uint64_t end = patience_now_ns() + UINT64_C(1000000000);
		struct node node;

		plan.mode = modes[i];
		node_open(&node, &plan);
		while (patience_now_ns() < end) {
			assert_int_equal(ask(&node, "k").verdict, GALE_DENY);
			nap(GALE_MILLIS(1));
		}
		assert_in_range(counts_of(&node).connects, 2, 12);
		redis_server_do(&server, "ACL SETUSER half +@all");
		assert_true(becomes_true(is_allowed, &node));
		redis_server_do(&server, "ACL SETUSER half -set -setrange");
		node_close(&node);
	}
	redis_server_do(&server, "ACL DELUSER half");
}

/* ---- Servers that lie ------------------------------------------------------------ */

static const char *const rubbish[] = {
	"+OK\r\n",
	":1\r\n",
	"$-1\r\n",
	"*-1\r\n",
	"*0\r\n",
	"*1\r\n%n",
	"*2\r\n%n:1\r\n",
	"*2\r\n%n$40\r\n0123456789012345678901234567890123456789\r\n",
	"*3\r\n%n:0\r\n$0\r\n\r\n",
	"*3\r\n%n:-5\r\n$0\r\n\r\n",
	"*3\r\n%n:9223372036854775807\r\n$0\r\n\r\n",
	"*3\r\n$2\r\n99\r\n:%t\r\n$0\r\n\r\n",
	"*3\r\n:-1\r\n:%t\r\n$0\r\n\r\n",
	"*3\r\n$1\r\n1\r\n:%t\r\n$0\r\n\r\n",
	"*3\r\n%n:%t\r\n:99\r\n",
	"*3\r\n%n:%t\r\n:0\r\n",
	"*3\r\n%n:%t\r\n:1\r\n",
	"*3\r\n%n:%t\r\n:2\r\n",
	"*3\r\n%n:%t\r\n:3\r\n",
	"*3\r\n%n:%t\r\n:5\r\n",
	"*3\r\n%n:%t\r\n$5\r\nhello\r\n",
	"*3\r\n%n:%t\r\n$-1\r\n",
	"*3\r\n%n:%t\r\n*0\r\n",
	"*4\r\n%n:%t\r\n$0\r\n\r\n$0\r\n\r\n",
	"*2147483647\r\n",
	"*9223372036854775807\r\n",
	"*-7\r\n",
	"$2147483647\r\n",
	"$9223372036854775807\r\n",
	"*3\r\n%n:%t\r\n$99999999\r\n",
	"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	"nonsense\r\n",
	"\r\n\r\n\r\n",
	"-\r\n",
	"-ERR what\r\n",
	"-ERR \x01\x1b[31m\r\n",
	"-MOVED\r\n",
	"-MOVED 99999 nowhere:0\r\n",
	"-ASK 1 nowhere:1\r\n",
	"-LOADING\r\n",
	"*3\r\n%n", /* and no more */
	"*3\r\n%n:",
	"",
};

static bool is_ruled(void *arg)
{
	return is_of_server(ask(arg, "k"));
}

static void hear_rubbish(struct rogue *rogue, enum rogue_to to, const char *text)
{
	struct plan plan = { .rule = gale_fixed_window(9, GALE_HOURS(1)),
		             .shards = 1,
		             .patience_us = GALE_MILLIS(60) };
	struct gale_answer answer;
	struct node node;
	char url[64];

	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", rogue->port);
	plan.url = url;
	rogue_say(rogue, to, text);
	node_open(&node, &plan);
	answer = ask(&node, "k");
	if (answer.verdict != GALE_DENY ||
	    (answer.why != GALE_WHY_WRONG && answer.why != GALE_WHY_DOWN &&
	     answer.why != GALE_WHY_LATE && answer.why != GALE_WHY_BUSY))
		print_message("%s\n%s\n", text, gale_why_text(answer.why));
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_true(answer.why > GALE_WHY_SPENT);
	rogue_say(rogue, to, NULL);
	if (!becomes_true(is_ruled, &node))
		fail_msg("after %s: %s; said %s", text,
		         gale_why_text(ask(&node, "k").why), node.lines.text[0]);
	node_close(&node);
}

static void rubbish_is_not_believed(void **state)
{
	struct rogue rogue;

	(void)state;
	rogue_open(&rogue);
	for (size_t i = 0; i < COUNT(rubbish); i++)
		hear_rubbish(&rogue, ROGUE_CALL, rubbish[i]);
	rogue_hang_up(&rogue, true);
	for (size_t i = COUNT(rubbish) - 3; i < COUNT(rubbish); i++)
		hear_rubbish(&rogue, ROGUE_CALL, rubbish[i]);
	rogue_close(&rogue);
}

static void rubbish_to_a_greeting_is_not_believed(void **state)
{
	static const char *const infos[] = {
		":1\r\n",
		"$-1\r\n",
		"$0\r\n\r\n",
		"$5\r\nhello\r\n",
		"-ERR no\r\n",
		"$999999999\r\n",
		"*0\r\n",
		"$12\r\nrole:slave\r\n\r\n",
		"+OK\r\n+OK\r\n+OK\r\n",
	};
	static const char *const generations[] = {
		":1\r\n",
		"$-1\r\n",
		"$3\r\nabc\r\n",
		"$2\r\na:\r\n",
		"$3\r\na:x\r\n",
		"$26\r\n0123456789ab:9999999999999\r\n",
		"$34\r\n0123456789ab:000000000000000000001\r\n",
		"-NOSCRIPT\r\n",
		"*1\r\n:1\r\n",
	};
	struct rogue rogue;

	(void)state;
	rogue_open(&rogue);
	for (size_t i = 0; i < COUNT(infos); i++)
		hear_rubbish(&rogue, ROGUE_INFO, infos[i]);
	for (size_t i = 0; i < COUNT(generations); i++)
		hear_rubbish(&rogue, ROGUE_GENERATION, generations[i]);
	rogue_close(&rogue);
}

/* The call is answered, and what comes on top ends the connection. */
static void a_surplus_reply_ends_the_connection(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(9, GALE_HOURS(1)), .shards = 1 };
	struct rogue rogue;
	struct node node;
	char url[64];

	(void)state;
	rogue_open(&rogue);
	rogue_say(&rogue, ROGUE_CALL, ROGUE_HONEST "+surplus\r\n");
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", rogue.port);
	plan.url = url;
	node_open(&node, &plan);
	for (int i = 0; i < 5; i++)
		assert_true(becomes_true(is_ruled, &node));
	assert_true(counts_of(&node).failures >= 4);
	assert_true(lines_will_have(&node.lines, "a reply to nothing"));
	node_close(&node);
	rogue_close(&rogue);
}

/* ---- Failures -------------------------------------------------------------------- */

#define MANY 200
#define AT_ONCE 15 /* so many are sent though nothing is known of the server */

static void ask_many(struct node *node, int count)
{
	char key[16];

	for (int i = 0; i < count; i++) {
		snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(
		    gale_ask(node->seat, node->limiter, key, strlen(key), 1, NULL)
			.verdict,
		    GALE_PENDING);
	}
}

static void fetch_many(struct node *node, int count, enum gale_why why)
{
	struct pollfd ready = { .fd = gale_seat_fd(node->seat), .events = POLLIN };
	struct gale_completion completion;

	for (int i = 0; i < count; i++) {
		while (gale_seat_completions(node->seat, &completion, 1) == 0)
			must(poll(&ready, 1, 10000) == 1);
		assert_int_equal(completion.answer.why, why);
	}
	assert_int_equal(gale_seat_completions(node->seat, &completion, 1), 0);
}

/* In the middle of what is under way, too: nobody is refused, and nothing is done twice. */
static void who_comes_after_the_scripts_were_forgotten_is_served(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .shards = 1 };
	struct proxy proxy;
	struct node node;
	char url[64];

	(void)state;
	proxy_open(&proxy, server.socket);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", proxy.port);
	plan.url = url;
	node_open(&node, &plan);
	assert_int_equal(ask(&node, "0").remaining, 98);
	proxy_delay(&proxy, TO_SERVER, GALE_MILLIS(5));
	for (int i = 0; i < 10; i++) {
		ask_many(&node, MANY);
		redis_server_do(&server, "SCRIPT FLUSH");
		fetch_many(&node, MANY, GALE_WHY_RULE);
	}
	assert_int_equal(ask(&node, "0").remaining, 87);
	assert_int_equal(ask(&node, "199").remaining, 88);
	assert_int_equal(counts_of(&node).failures, 0);
	assert_int_equal(counts_of(&node).connects, 1);
	assert_int_equal(node.lines.count, 1); /* what it can promise */
	node_close(&node);
	proxy_close(&proxy);
}

static void asks_that_fail_together_are_one_failure(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(9, GALE_HOURS(1)), .shards = 1 };
	struct proxy proxy;
	struct node node;
	char url[64];

	(void)state;
	proxy_open(&proxy, server.socket);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", proxy.port);
	plan.url = url;
	node_open(&node, &plan);
	assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
	proxy_swallow(&proxy, true);
	ask_many(&node, AT_ONCE);
	nap(GALE_MILLIS(20));
	proxy_swallow(&proxy, false);
	proxy_cut(&proxy);
	fetch_many(&node, AT_ONCE, GALE_WHY_LATE);
	nap(GALE_MILLIS(
	    60)); /* the first pause is 15 ms at most, the eighth a second */
	assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
	node_close(&node);
	proxy_close(&proxy);
}

/* The seat knows, and asks no shard. */
static void who_leases_from_a_dead_server_is_turned_away_at_once(void **state)
{
	static const char away[] = "turned_away_while_store_was_down";
	struct plan plan = { .url = "redis://127.0.0.1:1",
		             .rule = gale_fixed_window(9, GALE_HOURS(1)),
		             .mode = GALE_LEASED,
		             .shards = 1 };
	struct node node;

	(void)state;
	node_open(&node, &plan);
	for (int i = 0; i < 1000; i++)
		assert_why(&node, "k", GALE_WHY_DOWN);
	assert_in_range(metric(&node, away), 900, 1000);
	node_close(&node);
}

/* ---- Turns ----------------------------------------------------------------------- */

/* Turns when it is asked for, as a host does; returns how often, until the ask is
 * answered or the time is over. */
static unsigned turn_until(struct node *node, struct gale_completion *completion,
                           uint64_t us)
{
	uint64_t deadline = patience_now_ns() + us * 1000;
	unsigned turns = 0;
	uint64_t did = 1; /* in the latest turn */

	while (patience_now_ns() < deadline) {
		struct pollfd ready = { .fd = gale_turn_fd(node->runtime),
			                .events = POLLIN };
		uint64_t after_us = gale_turn_after_us(node->runtime);
		uint64_t left_us = (deadline - patience_now_ns()) / 1000;
		int ms = (int)((after_us < left_us ? after_us : left_us) / 1000) + 1;

		if (gale_seat_completions(node->seat, completion, 1) > 0) {
			assert_true(did > 0); /* that was something */
			break;
		}
		(void)poll(&ready, 1, ms);
		did = gale_turn(node->runtime);
		turns++;
	}
	return turns;
}

static void a_host_that_turns_is_called_when_the_server_answers(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .turns = true };
	struct gale_completion completion = { 0 };
	struct proxy proxy;
	struct node node;
	char url[64];

	(void)state;
	proxy_open(&proxy, server.socket);
	proxy_delay(&proxy, TO_NODE, GALE_MILLIS(20));
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", proxy.port);
	plan.url = url;
	node_open(&node, &plan);
	for (unsigned most = 20; most >= 8; most -= 6) {
		assert_int_equal(
		    gale_ask(node.seat, node.limiter, "k", 1, 1, NULL).verdict,
		    GALE_PENDING);
		assert_in_range(turn_until(&node, &completion, PATIENT), 2, most);
		assert_int_equal(completion.answer.verdict, GALE_ALLOW);
	}
	assert_in_range(turn_until(&node, &completion, GALE_MILLIS(300)), 0, 5);
	proxy_be_silent(&proxy, true);
	(void)gale_ask(node.seat, node.limiter, "k", 1, 1, NULL);
	assert_in_range(turn_until(&node, &completion, GALE_MILLIS(300)), 1, 8);
	proxy_be_silent(&proxy, false);
	assert_in_range(turn_until(&node, &completion, PATIENT), 0, 20);
	node_close(&node);
	proxy_close(&proxy);
}

static void who_waits_in_turns_hears_the_server(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(99, GALE_HOURS(1)),
		             .turns = true };
	struct node node;

	(void)state;
	node_open(&node, &plan);
	for (uint64_t i = 1; i <= 20; i++)
		assert_int_equal(ask(&node, "k").remaining, 99 - i);
	node_close(&node);
}

/* ---- Forks ----------------------------------------------------------------------- */

static int ask_in_child(void *arg)
{
	struct node *node = arg;
	struct gale_answer answer;

	if (ask(node, "k").why != GALE_WHY_FORKED)
		return 1;
	if (gale_peek(node->seat, node->limiter, "k", 1, PATIENT, &answer) !=
	    GALE_ERR_FORKED)
		return 2;
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	return 0;
}

static void a_child_is_refused_and_its_parent_goes_on(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(9, GALE_HOURS(1)) };
	struct node node;

	(void)state;
	node_open(&node, &plan);
	assert_int_equal(ask(&node, "k").remaining, 8);
	assert_int_equal(child_run(ask_in_child, &node), 0);
	assert_int_equal(ask(&node, "k").remaining, 7);
	assert_int_equal(counts_of(&node).failures, 0);
	node_close(&node);
}

static uint64_t cpu_us(void)
{
	struct rusage usage;

	must(getrusage(RUSAGE_SELF, &usage) == 0);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* The child has a copy of the connection, which the server ends. */
static int watch_the_end(void *arg)
{
	(void)arg;
	nap(GALE_MILLIS(700));
	return 0;
}

static void *run_child(void *arg)
{
	return (void *)(intptr_t)child_run(watch_the_end, arg);
}

static void a_child_does_not_make_its_parent_spin(void **state)
{
	struct plan plan = { .rule = gale_fixed_window(9, GALE_HOURS(1)) };
	struct proxy proxy;
	struct node node;
	pthread_t thread;
	uint64_t before;
	char url[64];

	(void)state;
	proxy_open(&proxy, server.socket);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", proxy.port);
	plan.url = url;
	node_open(&node, &plan);
	assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
	must(pthread_create(&thread, NULL, run_child, NULL) == 0);
	nap(GALE_MILLIS(100));
	proxy_cut(&proxy);
	nap(GALE_MILLIS(100));
	before = cpu_us();
	nap(GALE_MILLIS(300));
	assert_in_range(cpu_us() - before, 0, GALE_MILLIS(100));
	must(pthread_join(thread, NULL) == 0);
	assert_int_equal(ask(&node, "k").verdict, GALE_ALLOW);
	node_close(&node);
	proxy_close(&proxy);
}

/* The tests whose names match the argument; all, without one. */
int main(int count, char **args)
{
#define TEST(name) cmocka_unit_test_setup(name, clean)
	const struct CMUnitTest tests[] = {
		TEST(two_hundred_threads_get_fifty),
		TEST(on_several_nodes_they_get_fifty_in_all),
		TEST(leased_they_get_fifty),
		TEST(what_is_looked_at_and_corrected),
		TEST(a_place_that_is_given_back_is_another_callers),
		TEST(a_log_may_be_long),
		TEST(keys_meet_under_one_name_and_no_other),
		TEST(a_key_may_be_any_bytes),
		TEST(in_quarantine_a_look_promises_nothing),
		TEST(a_key_of_another_kind_is_wrong_and_stays),
		TEST(a_value_of_a_newer_gale_is_never_read_and_stays),
		TEST(a_key_of_another_kind_does_others_no_harm),
		TEST(a_key_under_another_kind_of_rule_is_left_alone),
		TEST(who_has_no_password_is_not_let_in),
		TEST(an_address_that_leads_nowhere),
		TEST(a_name_that_is_known_later_is_found),
		TEST(a_replica_is_not_asked),
		TEST(one_that_becomes_a_replica_that_writes_is_not_asked),
		TEST(a_server_that_has_much_to_say_of_itself_is_heard),
		TEST(a_server_that_may_forget_is_told_of),
		TEST(a_server_without_room_takes_nothing),
		TEST(a_user_needs_no_more_than_is_said),
		TEST(connections_have_a_name),
		TEST(who_is_let_in_in_vain_does_not_come_again_at_once),
		TEST(rubbish_is_not_believed),
		TEST(rubbish_to_a_greeting_is_not_believed),
		TEST(a_surplus_reply_ends_the_connection),
		TEST(who_comes_after_the_scripts_were_forgotten_is_served),
		TEST(asks_that_fail_together_are_one_failure),
		TEST(who_leases_from_a_dead_server_is_turned_away_at_once),
		TEST(a_host_that_turns_is_called_when_the_server_answers),
		TEST(who_waits_in_turns_hears_the_server),
		TEST(a_child_is_refused_and_its_parent_goes_on),
		TEST(a_child_does_not_make_its_parent_spin),
	};
#undef TEST
	int failed;

	if (count == 3 && strcmp(args[1], "--but") == 0)
		cmocka_set_skip_filter(args[2]);
	else if (count == 2)
		cmocka_set_test_filter(args[1]);
	redis_server_start(&server, NULL);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	redis_server_stop(&server);
	return failed;
}
