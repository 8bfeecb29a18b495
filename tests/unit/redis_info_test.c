/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* redis_info_test.c -- what is made of the lines that a server says of itself. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "stores/redis/info.h"

#define PRIMARY "# Replication\r\nrole:master\r\nconnected_slaves:2\r\nloading:0\r\n"

static void a_primary_is_asked(void **state)
{
	(void)state;
	assert_null(redis_info_refusal(PRIMARY, 0, false));
	assert_null(redis_info_refusal(PRIMARY, 2, false));
}

/* Also one whose lines only begin or end like those that are looked for. */
static void who_cannot_grant_is_refused(void **state)
{
	(void)state;
	assert_string_equal(redis_info_refusal("role:slave\r\n", 0, false),
	                    "it is a replica");
	assert_string_equal(
	    redis_info_refusal("xrole:master\r\nroles:master\r\n", 0, false),
	    "it is a replica");
	assert_string_equal(redis_info_refusal("", 0, false), "it is a replica");
	assert_string_equal(
	    redis_info_refusal("role:master\r\nloading:1\r\n", 0, false),
	    "it is loading");
}

static void a_node_of_a_cluster_is_asked_as_one(void **state)
{
	static const char node[] = PRIMARY "redis_mode:cluster\r\n";

	(void)state;
	assert_null(redis_info_refusal(node, 0, true));
	assert_string_equal(redis_info_refusal(node, 0, false),
	                    "it is a node of a cluster, which redis+cluster:// asks");
	assert_null(redis_info_refusal(PRIMARY "redis_mode:standalone\r\n", 0, false));
}

static void too_few_replicas_are_refused(void **state)
{
	static const char why[] = "it has fewer replicas than durable= says";

	(void)state;
	assert_string_equal(redis_info_refusal(PRIMARY, 3, false), why);
	assert_string_equal(redis_info_refusal("role:master\r\n", 1, false), why);
	assert_string_equal(
	    redis_info_refusal("role:master\r\nconnected_slaves:-1\r\n", 1, false),
	    why);
	assert_string_equal(
	    redis_info_refusal("role:master\r\nconnected_slaves:99999999999\r\n", 1,
	                       false),
	    why);
}

static void what_it_cannot_promise_is_said(void **state)
{
	char text[WIRE_TEXT] = "";

	(void)state;
	redis_info_warning("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"
	                   "aof_enabled:1\r\n",
	                   0, text);
	assert_string_equal(text, "");
	redis_info_warning("maxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
	                   "aof_enabled:0\r\n",
	                   0, text);
	assert_non_null(strstr(text, "no append-only file"));
	redis_info_warning("maxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n"
	                   "aof_enabled:1\r\n",
	                   0, text);
	assert_non_null(strstr(text, "maxmemory-policy is allkeys-lru"));
}

static void who_takes_over_may_not_know_all(void **state)
{
	static const char info[] =
	    "maxmemory:0\r\naof_enabled:1\r\nconnected_slaves:2\r\n";
	char text[WIRE_TEXT] = "";

	(void)state;
	redis_info_warning(info, /* durable= */ 1, text);
	assert_string_equal(text, "");
	redis_info_warning("maxmemory:0\r\naof_enabled:1\r\nconnected_slaves:0\r\n", 0,
	                   text);
	assert_string_equal(text, "");
	redis_info_warning(info, /* durable= */ 0, text);
	assert_non_null(strstr(text, "after a fail-over nothing is granted"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_primary_is_asked),
		cmocka_unit_test(who_cannot_grant_is_refused),
		cmocka_unit_test(a_node_of_a_cluster_is_asked_as_one),
		cmocka_unit_test(too_few_replicas_are_refused),
		cmocka_unit_test(what_it_cannot_promise_is_said),
		cmocka_unit_test(who_takes_over_may_not_know_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
