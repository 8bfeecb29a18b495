/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * key_test.c -- gale peek, reset, forecast and watch, on a Redis and a PostgreSQL of the test's
 * own, beside nodes that spend and lease.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "tests/support/command.h"
#include "tests/support/must.h"
#include "tests/support/postgres_server.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tools/init.h"
#include "tools/key.h"

#define SERVERS 2
#define LIMIT 100
#define HELD 50
#define WITHIN GALE_SECONDS(30)
#define WORDS_MOST 16

static struct redis_server redis;
static struct postgres_server *postgres;
static char urls[SERVERS][256];

/* postgres_server_address is "host=... port=... user=... dbname=..." */
static void put_postgres_url(char url[256])
{
	char host[128], port[16];

	must(sscanf(strstr(postgres_server_address(postgres), "host="), "host=%127s",
	            host) == 1);
	must(sscanf(strstr(postgres_server_address(postgres), "port="), "port=%15s",
	            port) == 1);
	snprintf(url, 256, "postgres:///postgres?host=%s&port=%s&user=gale", host,
	         port);
}

static int start(void **state)
{
	(void)state;
	redis_server_start(&redis, NULL);
	postgres = postgres_server_start();
	snprintf(urls[0], sizeof(urls[0]), "redis://%s", redis.socket);
	put_postgres_url(urls[1]);
	for (int i = 0; i < SERVERS; i++) {
		const char *const words[] = { "init", urls[i], NULL };

		must(command_run(init_run, words) == INIT_DONE);
	}
	return 0;
}

static int stop(void **state)
{
	(void)state;
	redis_server_stop(&redis);
	postgres_server_stop(postgres);
	command_forget();
	return 0;
}

/* ---- Commands -------------------------------------------------------------------- */

static enum key_command current;

static int run_current(int argc, char **argv, FILE *out, FILE *err)
{
	return key_run(current, argc, argv, out, err);
}

/* Words and flags, with a space between them, behind the URL. */
static int run(enum key_command command, const char *url, const char *rest)
{
	const char *words[WORDS_MOST] = { url };
	char copy[256], *save = NULL;
	int count = 1;

	must((size_t)snprintf(copy, sizeof(copy), "%s", rest) < sizeof(copy));
	for (char *word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		must(count < WORDS_MOST - 1);
		words[count++] = word;
	}
	current = command;
	return command_run(run_current, words);
}

/* A window that does not turn while the test runs. */
#define YEARS GALE_DAYS(3650)
#define LONG " --limit 100 --window 87600h"

/* ---- A node ---------------------------------------------------------------------- */

struct one_node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

static bool is_reached(void *arg)
{
	struct one_node *node = arg;
	struct gale_answer answer;

	return gale_peek(node->seat, node->limiter, "reached", 7, WITHIN, &answer) ==
	       GALE_ERR_OK;
}

/* It has a connection: until then asks are denied at once. */
static void open_node(struct one_node *node, const char *url, enum gale_mode mode)
{
	struct gale_store_config store = { .url = url };
	struct gale_limiter_config config = {
		.name = "api",
		.rule = gale_fixed_window(LIMIT, YEARS),
		.mode = mode,
		.lease = { .sizing = GALE_SIZE_FIXED,
		           .batch = HELD,
		           .patience_us = WITHIN },
	};

	must(gale_runtime_open(NULL, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	config.store = node->store;
	must(gale_limiter_open(node->runtime, &config, &node->limiter) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
	must(becomes_true(is_reached, node));
}

static void close_node(struct one_node *node)
{
	gale_leave(node->seat);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static bool take(struct one_node *node, const char *key, uint64_t cost)
{
	return gale_wait(node->seat, node->limiter, key, strlen(key), cost, WITHIN)
	           .verdict == GALE_ALLOW;
}

static void spend(const char *url, const char *key, uint64_t cost)
{
	struct one_node node;

	open_node(&node, url, GALE_STRICT);
	must(take(&node, key, cost));
	close_node(&node);
}

/* ---- Looking --------------------------------------------------------------------- */

static void what_a_key_has_spent_is_told(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		assert_int_equal(run(KEY_PEEK, urls[i], "api idle" LONG), KEY_DONE);
		assert_says(command_out,
		            "limiter api, key idle: fixed_window, 100 units\n"
		            "spent  0 units");
		assert_says(command_out, "whole  now: nothing of it is spent\n");
		spend(urls[i], "some", 40);
		assert_int_equal(run(KEY_PEEK, urls[i], "api some" LONG), KEY_DONE);
		assert_says(command_out,
		            "spent  40 units; those that nodes hold leased "
		            "and unspent are among them\n");
		assert_says(command_out,
		            "left   60 units: a call of cost 1 would be allowed\n");
		assert_says(command_out, "whole  in ");
		assert_int_equal(run(KEY_PEEK, urls[i], "api some --json" LONG),
		                 KEY_DONE);
		assert_says(command_out,
		            "{\"limiter\":\"api\",\"key\":\"some\",\"rule\":"
		            "\"fixed_window\",\"limit\":100,\"spent\":40,\"left\":60,"
		            "\"allowed\":true,\"why\":\"rule\",\"delay_ns\":0,"
		            "\"full_after_us\":");
		assert_string_equal(command_err, "");
	}
}

static void who_would_be_denied_is_told_when_that_ends(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		spend(urls[i], "all", LIMIT);
		assert_int_equal(run(KEY_PEEK, urls[i], "api all" LONG), KEY_DONE);
		assert_says(command_out, "left   0 units: a call of cost 1 would be "
		                         "denied, and may pass in ");
		assert_int_equal(run(KEY_FORECAST, urls[i], "api all --cost 30" LONG),
		                 KEY_DONE);
		assert_says(command_out, "a call of cost 30 would be admitted in ");
		assert_says(command_out, " at the earliest, if no other call takes");
		assert_int_equal(
		    run(KEY_FORECAST, urls[i], "api all --cost 30 --json" LONG),
		    KEY_DONE);
		assert_says(command_out, "\"cost\":30,\"calls_now\":0,"
		                         "\"earliest_after_us\":");
		assert_null(strstr(command_out, "\"earliest_after_us\":0"));
	}
}

static void a_forecast_knows_now_and_never(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		run(KEY_FORECAST, urls[i], "api other --cost 30" LONG);
		assert_says(command_out,
		            "a call of cost 30 would be admitted now, and 3 "
		            "such calls in all\n");
		run(KEY_FORECAST, urls[i], "api other --cost 30 --json" LONG);
		assert_says(command_out, "\"calls_now\":3,\"earliest_after_us\":0}");
		run(KEY_FORECAST, urls[i], "api other --cost 101" LONG);
		assert_says(command_out, "a call of cost 101 is never admitted\n");
		run(KEY_FORECAST, urls[i], "api other --cost 101 --json" LONG);
		assert_says(command_out, "\"calls_now\":0,\"earliest_after_us\":null}");
	}
}

/* Each rule has flags that make it; a pacer tells a wait. */
static void every_rule_can_be_named(void **state)
{
	static const char *const rows[][2] = {
		{ "fixed_window", "" },
		{ "sliding_window", "--buckets 6" },
		{ "sliding_log", "" },
		{ "gcra", "--burst 20" },
		{ "token_bucket", "--burst 20" },
		{ "leaky_bucket", "--max-wait 2s --window 1h" },
		{ "pacer", "--burst 5 --max-wait 1s --window 1h" },
		{ "pacer_limit", "--burst 5 --window 1h" },
		{ "token_budget", "" },
		{ "quota_rolling", "" },
	};
	char rest[160];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(rest, sizeof(rest), "api %s" LONG " --rule %s %s", rows[i][0],
		         rows[i][0], rows[i][1]);
		assert_int_equal(run(KEY_PEEK, urls[0], rest), KEY_DONE);
		assert_says(command_out, "would be allowed");
	}
	run(KEY_PEEK, urls[0],
	    "api m --rule quota_monthly --limit 5 --utc-offset +02:00");
	assert_says(command_out, "key m: quota, 5 units");
	run(KEY_PEEK, urls[0],
	    "api d --rule quota_daily --limit 5 --utc-offset -05:30");
	assert_says(command_out, "key d: quota, 5 units");
	run(KEY_PEEK, urls[0],
	    "api w --rule quota_weekly --limit 5 --first-weekday monday");
	assert_says(command_out, "key w: quota, 5 units");
}

static void a_key_may_have_any_bytes_in_json(void **state)
{
	(void)state;
	run(KEY_PEEK, urls[0], "api a\"b\\c\x01 --json" LONG);
	assert_says(command_out, "\"key\":\"a\\\"b\\\\c\\u0001\",");
	run(KEY_PEEK, urls[0], "api a\x01z" LONG);
	assert_says(command_out, "key a?z: ");
}

/* ---- Resetting ------------------------------------------------------------------- */

/* The bound that is told is reached by a node that holds a lease, and never passed. */
static void a_reset_tells_what_nodes_may_still_hold(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		struct one_node holder, other;
		unsigned admitted = 0;

		open_node(&holder, urls[i], GALE_LEASED);
		open_node(&other, urls[i], GALE_STRICT);
		must(take(&holder, "held", 1)); /* and HELD - 1 are in hand */
		run(KEY_PEEK, urls[i], "api held" LONG);
		assert_says(command_out, "spent  50 units");
		assert_int_equal(run(KEY_RESET, urls[i], "api held" LONG), KEY_DONE);
		assert_says(command_out, "reset  it had spent 50 units, and the whole "
		                         "limit is available again\n");
		assert_says(command_out, "until then at most 150 units pass");
		run(KEY_PEEK, urls[i], "api held" LONG);
		assert_says(command_out, "spent  0 units");
		while (take(&other, "held", 1))
			admitted++;
		assert_int_equal(admitted, LIMIT);
		for (admitted = 1; take(&holder, "held", 1);)
			admitted++;
		assert_int_equal(admitted, HELD);
		close_node(&holder);
		close_node(&other);
	}
}

static void a_reset_of_what_is_whole_has_no_bound(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		run(KEY_RESET, urls[i], "api fresh" LONG);
		assert_says(command_out, "reset  it had spent 0 units");
		assert_null(strstr(command_out, "bound"));
		run(KEY_RESET, urls[i], "api fresh --json" LONG);
		assert_says(command_out,
		            "\"limit\":100,\"spent_before\":0,\"at_most\":100,"
		            "\"for_us\":0}\n");
	}
}

/* ---- Watching -------------------------------------------------------------------- */

static unsigned lines_of(const char *text)
{
	unsigned count = 0;

	for (; (text = strchr(text, '\n')); text++)
		count++;
	return count;
}

static void a_watch_prints_a_line_each_time(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		assert_int_equal(
		    run(KEY_WATCH, urls[i], "api seen --count 3 --every 1ms" LONG),
		    KEY_DONE);
		assert_int_equal(lines_of(command_out), 3);
		assert_says(command_out, "  spent 0  left 100  allows  whole in 0ms\n");
		run(KEY_WATCH, urls[i], "api seen --count 2 --every 1ms --json" LONG);
		assert_int_equal(lines_of(command_out), 2);
		assert_says(command_out, "{\"limiter\":\"api\",\"key\":\"seen\",");
	}
}

static _Atomic bool is_over;

/* Until the watch has ended: it may not have begun. */
static void *interrupt_it(void *arg)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	while (!load_acquire(&is_over)) {
		pthread_kill(*(pthread_t *)arg, SIGINT);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void an_interrupt_ends_a_watch(void **state)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	pthread_t self = pthread_self(), thread;
	struct sigaction before;
	int status;

	(void)state;
	sigaction(SIGINT, &ignore, &before);
	must(pthread_create(&thread, NULL, interrupt_it, &self) == 0);
	status = run(KEY_WATCH, urls[0], "api seen --every 10h" LONG);
	store_release(&is_over, true);
	pthread_join(thread, NULL);
	sigaction(SIGINT, &before, NULL);
	assert_int_equal(status, KEY_DONE);
	assert_true(lines_of(command_out) <= 1);
}

/* ---- What goes wrong ------------------------------------------------------------- */

static void what_cannot_be_told_is_said(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		spend(urls[i], "window", 1);
		assert_int_equal(
		    run(KEY_PEEK, urls[i], "api window --rule gcra --burst 5" LONG),
		    KEY_FAILED);
		assert_says(command_err,
		            "gale peek: store: the key has counts of another "
		            "kind of rule");
		assert_says(command_err,
		            "gale peek: give the --rule that the nodes have");
	}
	assert_int_equal(
	    run(KEY_RESET, "redis://127.0.0.1:1", "api k --within 100ms" LONG),
	    KEY_FAILED);
	assert_says(command_err,
	            "gale reset: timeout: no answer within the time given; "
	            "ask again, or give more time");
	assert_says(command_err, "gale reset: gale doctor URL says what is wrong");
	assert_string_equal(command_out, "");
}

/* Further than a limiter waits by default. */
static void a_store_that_is_far_away_is_waited_for(void **state)
{
	struct proxy proxy;
	char url[64];

	(void)state;
	proxy_open(&proxy, redis.socket);
	proxy_delay(&proxy, TO_NODE, GALE_MILLIS(150));
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", (unsigned)proxy.port);
	assert_int_equal(run(KEY_FORECAST, url, "api far --cost 30 --within 60s" LONG),
	                 KEY_DONE);
	assert_says(command_out, "a call of cost 30 would be admitted now");
	assert_int_equal(run(KEY_RESET, url, "api far --within 60s" LONG), KEY_DONE);
	proxy_close(&proxy);
}

/* A prefix that nobody has said to be new. */
static void what_a_server_may_have_forgotten_is_not_told(void **state)
{
	char url[300];

	(void)state;
	snprintf(url, sizeof(url), "%s?prefix=other:", urls[0]);
	assert_int_equal(run(KEY_PEEK, url, "api k" LONG), KEY_DONE);
	assert_says(command_out,
	            "spent  not known: the server may have forgotten what it "
	            "granted, and grants nothing for ");
	assert_null(strstr(command_out, "left"));
	assert_int_equal(run(KEY_PEEK, url, "api k --json" LONG), KEY_DONE);
	assert_says(command_out, "\"spent\":null,\"left\":null,\"allowed\":false,"
	                         "\"why\":\"quarantine\",");
	assert_int_equal(run(KEY_WATCH, url, "api k --count 1" LONG), KEY_DONE);
	assert_says(command_out, "  quarantine: grants nothing for ");
}

static void words_that_are_wrong_are_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "api k --window 1h", "--limit: give the limit that the nodes have" },
		{ "api k --limit 5", "--window: give the window that the nodes have" },
		{ "api k --limit 5 --window 1h --rule quota_daily",
		  "--window: not for quota_daily" },
		{ "api k --limit 5 --window 1h --rule gcra",
		  "--burst: give the burst that the nodes have" },
		{ "api k --limit 5 --rule quota_daily --utc-offset 2",
		  "--utc-offset: it takes utc, or hours and minutes: +02:00" },
		{ "api k --limit 5 --rule never", "--rule: it takes fixed_window, " },
		{ "api k --limit 5 --every 1s", "--every: unknown" },
		{ "api --limit 5 --window 1h", "it takes a key, and none is given" },
		{ "", "it takes the name of a limiter, and none is given" },
		{ "api k more --limit 5 --window 1h",
		  "more: a word too many; it takes only the URL of a store, the name "
		  "of a limiter, a key" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(run(KEY_PEEK, urls[0], rows[i][0]), KEY_BAD_USE);
		assert_says(command_err, rows[i][1]);
	}
	assert_int_equal(run(KEY_PEEK, "memory:x", "api k" LONG), KEY_BAD_USE);
	assert_says(command_err, "gale peek: url: memory: is a store in the process");
	assert_int_equal(run(KEY_PEEK, "mysql://x", "api k" LONG), KEY_BAD_USE);
	assert_says(command_err, "gale peek: url: it begins with none of memory:");
	for (int i = KEY_PEEK; i <= KEY_WATCH; i++) {
		assert_int_equal(run((enum key_command)i, "--help", ""), KEY_DONE);
		assert_says(command_out,
		            " URL LIMITER KEY --limit N --window DURATION");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_key_has_spent_is_told),
		cmocka_unit_test(who_would_be_denied_is_told_when_that_ends),
		cmocka_unit_test(a_forecast_knows_now_and_never),
		cmocka_unit_test(every_rule_can_be_named),
		cmocka_unit_test(a_key_may_have_any_bytes_in_json),
		cmocka_unit_test(a_reset_tells_what_nodes_may_still_hold),
		cmocka_unit_test(a_reset_of_what_is_whole_has_no_bound),
		cmocka_unit_test(a_watch_prints_a_line_each_time),
		cmocka_unit_test(an_interrupt_ends_a_watch),
		cmocka_unit_test(what_cannot_be_told_is_said),
		cmocka_unit_test(a_store_that_is_far_away_is_waited_for),
		cmocka_unit_test(what_a_server_may_have_forgotten_is_not_told),
		cmocka_unit_test(words_that_are_wrong_are_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
