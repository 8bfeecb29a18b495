/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * conformance_test.c -- gale store check, on every store that there is.
 *
 * Thousands of steps of all rules have the same answers as on the embedded store, and two
 * hundred threads at once admit exactly the limit (tools/check.h).  And it finds out who
 * does not keep the laws: a store that forgets, and one that is not there.  Of one that is
 * late it says that it cannot tell.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/atomic.h"
#include "tests/support/length.h"
#include "tests/support/must.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_server.h"
#include "tools/check.h"

#define STEPS LONG_OR_BRIEF(CHECK_STEPS, CHECK_STEPS / 4)
#define TRIES_MOST 3
#define BARE 1 /* keys of a Redis without any: the generation's */

static struct redis_server redis;
static struct redis_cluster cluster;
static struct postgres_server *postgres;

/* A machine that stands still for a second tells nothing of the laws: then the check is
 * begun again, under names of its own. */
static void keeps_the_laws(const char *url)
{
	const struct check_flags flags = { .url = url, .seed = 20, .steps = STEPS };
	struct sentence why = { "" };
	enum check_status status = CHECK_UNTOLD;

	for (int i = 0; i < TRIES_MOST && status == CHECK_UNTOLD; i++) {
		status = check_store(&flags, stdout, &why);
		if (status != CHECK_KEPT)
			print_error("%s: %s\n", url, why.is);
	}
	assert_int_equal(status, CHECK_KEPT);
}

static void the_embedded_store_keeps_the_laws(void **state)
{
	(void)state;
	keeps_the_laws("memory:");
}

/* And nothing of it stays there. */
static void redis_keeps_the_laws(void **state)
{
	char url[160];
	struct redis_talk talk;
	redisReply *keys;

	(void)state;
	snprintf(url, sizeof(url), "redis://%s", redis.socket);
	keeps_the_laws(url);
	redis_talk_open(&talk, &redis);
	keys = redis_talk_say(&talk, "DBSIZE");
	assert_int_equal(keys->integer, BARE);
	redis_reply_free(keys);
	redis_talk_close(&talk);
}

static void a_cluster_keeps_the_laws(void **state)
{
	char url[160];

	(void)state;
	snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%.7s", cluster.ports[0]);
	keeps_the_laws(url);
}

/* What libpq is told is host=... port=... and so on: options of a URL, too. */
static void postgres_keeps_the_laws(void **state)
{
	char url[512];

	(void)state;
	snprintf(url, sizeof(url), "postgres:///?%s",
	         postgres_server_address(postgres));
	for (char *at = url; *at != '\0'; at++)
		if (*at == ' ')
			*at = '&';
	keeps_the_laws(url);
}

static _Atomic bool stopping;

static void *keep_forgetting(void *arg)
{
	struct redis_talk talk;

	(void)arg;
	redis_talk_open(&talk, &redis);
	while (!load_relaxed(&stopping)) {
		redis_talk_do(&talk, "FLUSHALL");
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
	redis_talk_close(&talk);
	return NULL;
}

static void a_store_that_forgets_is_found_out(void **state)
{
	struct check_flags flags = { .seed = 20, .steps = STEPS };
	struct sentence why = { "" };
	char url[160];
	pthread_t thread;

	(void)state;
	snprintf(url, sizeof(url), "redis://%s", redis.socket);
	flags.url = url;
	must(pthread_create(&thread, NULL, keep_forgetting, NULL) == 0);
	assert_int_equal(check_store(&flags, stdout, &why), CHECK_BROKEN);
	store_relaxed(&stopping, true);
	must(pthread_join(thread, NULL) == 0);
	assert_non_null(strstr(why.is, "the embedded store says"));
}

/* Once the script is under way, which has more keys than the one that is asked about first. */
static void *stand_still(void *arg)
{
	struct redis_talk talk;
	long long keys;

	(void)arg;
	redis_talk_open(&talk, &redis);
	do {
		redisReply *reply = redis_talk_say(&talk, "DBSIZE");

		keys = reply->integer;
		redis_reply_free(reply);
	} while (keys < BARE + 12 && !load_relaxed(&stopping));
	redis_talk_close(&talk);
	redis_server_pause(&redis);
	return NULL;
}

static void of_a_store_that_is_late_nothing_is_told(void **state)
{
	struct check_flags flags = { .seed = 20, .steps = CHECK_STEPS_MOST };
	struct sentence why = { "" };
	char url[160];
	pthread_t thread;
	enum check_status status;

	(void)state;
	snprintf(url, sizeof(url), "redis://%s", redis.socket);
	flags.url = url;
	redis_server_do(&redis, "FLUSHALL"); /* what the forgetful one left */
	store_relaxed(&stopping, false);
	must(pthread_create(&thread, NULL, stand_still, NULL) == 0);
	status = check_store(&flags, stdout, &why);
	store_relaxed(&stopping, true);
	must(pthread_join(thread, NULL) == 0);
	redis_server_go_on(&redis);
	assert_int_equal(status, CHECK_UNTOLD);
	assert_null(strstr(why.is, "the embedded store says"));
}

static int run(const char *words, FILE *out, FILE *err)
{
	char line[128], *argv[8], *rest;
	int argc = 0;

	snprintf(line, sizeof(line), "%s", words);
	for (char *word = strtok_r(line, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	return check_run(argc, argv, out, err);
}

static void words_that_are_wrong_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"memory: --steps",
		"memory: --steps 0",
		"memory: --steps 1x",
		"memory: --steps -1",
		"memory: --seed",
		"memory: --speed 1",
		"nothing://",
		"redis://127.0.0.1:1?prefx=a",
	};
	FILE *nowhere = tmpfile();

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(run(wrong[i], nowhere, nowhere), CHECK_BAD_USE);
	assert_int_equal(run("memory: --steps 9 --seed 3", nowhere, nowhere),
	                 CHECK_KEPT);
	assert_int_equal(run("redis://127.0.0.1:1", nowhere, nowhere), CHECK_BROKEN);
	fclose(nowhere);
}

static int start_servers(void **state)
{
	(void)state;
	redis_server_start(&redis, NULL);
	postgres = postgres_server_start();
	redis_cluster_start(&cluster);
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	postgres_server_stop(postgres);
	redis_server_stop(&redis);
	redis_cluster_stop(&cluster);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_embedded_store_keeps_the_laws),
		cmocka_unit_test(redis_keeps_the_laws),
		cmocka_unit_test(a_cluster_keeps_the_laws),
		cmocka_unit_test(postgres_keeps_the_laws),
		cmocka_unit_test(a_store_that_forgets_is_found_out),
		cmocka_unit_test(of_a_store_that_is_late_nothing_is_told),
		cmocka_unit_test(words_that_are_wrong_are_refused),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
