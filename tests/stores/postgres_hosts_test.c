/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_hosts_test.c -- libpq is never left to look a name up, wherever it has it from.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "stores/postgres/hosts.h"
#include "tests/support/must.h"

static struct postgres_hosts hosts;
static struct postgres_places places;
static struct url_fault fault;

static void list(const char *url, size_t first)
{
	assert_true(postgres_hosts_open(&hosts, url, &fault));
	assert_int_equal(fault.err, GALE_ERR_OK);
	postgres_hosts_list(&hosts, first, &places);
	postgres_hosts_close(&hosts);
}

static void are(const char *names, const char *addresses, const char *ports)
{
	assert_string_equal(places.hosts, names);
	assert_string_equal(places.addresses, addresses);
	assert_string_equal(places.ports, ports);
}

static void set(const char *name, const char *value)
{
	must((value ? setenv(name, value, 1) : unsetenv(name)) == 0);
}

static void hosts_of_an_authority_and_an_option_are_the_same(void **state)
{
	(void)state;
	list("postgres://[::1]:7,127.0.0.1:8/db", 0);
	are("::1,127.0.0.1", "::1,127.0.0.1", "7,8");
	list("postgres:///db?host=::1,127.0.0.1&port=7,8", 0);
	are("::1,127.0.0.1", "::1,127.0.0.1", "7,8");
	list("postgres:///db?host=::1,127.0.0.1&port=7", 0);
	are("::1,127.0.0.1", "::1,127.0.0.1", "7,7");
}

static void each_attempt_begins_with_another(void **state)
{
	(void)state;
	list("postgres://127.0.0.1:7,127.0.0.2:8,127.0.0.3/db", 1);
	are("127.0.0.2,127.0.0.3,127.0.0.1", "127.0.0.2,127.0.0.3,127.0.0.1", "8,,7");
	list("postgres://127.0.0.1:7,127.0.0.2:8,127.0.0.3/db", 3);
	assert_int_equal(places.count, 3);
	are("127.0.0.1,127.0.0.2,127.0.0.3", "127.0.0.1,127.0.0.2,127.0.0.3", "7,8,");
}

static void all_addresses_of_a_name_are_tried(void **state)
{
	struct stream_address addresses[STREAM_ADDRESSES_MOST];
	size_t count = stream_resolve("localhost", 1, addresses, STREAM_ADDRESSES_MOST);

	(void)state;
	assert_true(count > 0);
	list("postgres://localhost:7/db", 0);
	assert_int_equal(places.count, count);
	list("postgres://localhost:7,127.0.0.9/db", 0);
	assert_int_equal(places.count, count + 1);
	assert_null(strstr(places.addresses, ",,"));
	assert_non_null(strstr(places.addresses, "127.0.0.1"));
	assert_non_null(strstr(places.hosts, "localhost,127.0.0.9"));
}

static void folders_are_no_names(void **state)
{
	(void)state;
	list("postgres:///db?host=/run/x", 0);
	are("/run/x", "", places.ports);
	list("postgres:///db?host=/run/x,127.0.0.1&port=7", 0);
	are("/run/x,127.0.0.1", ",127.0.0.1", "7,7");
	list("postgres:///db", 0);
	assert_int_equal(places.count, 0);
}

static void the_environment_is_heard(void **state)
{
	(void)state;
	set("PGHOST", "127.0.0.5");
	set("PGPORT", "77");
	list("postgres:///db", 0);
	are("127.0.0.5", "127.0.0.5", "77");
	list("postgres://127.0.0.6:8/db", 0);
	are("127.0.0.6", "127.0.0.6", "8");
	set("PGHOST", "host.invalid");
	list("postgres:///db", 0);
	assert_int_equal(places.count, 0); /* and libpq is not to look it up */
	assert_int_equal(hosts.url.host_count, 1);
	assert_non_null(strstr(fault.text, "no address is known of host.invalid"));
	set("PGHOST", NULL);
	set("PGPORT", NULL);
}

static void addresses_that_are_given_are_left_alone(void **state)
{
	(void)state;
	list("postgres://host.invalid/db?hostaddr=127.0.0.1", 0);
	assert_int_equal(places.count, 0);
}

/* A name may be known later. */
static void who_is_not_found_is_warned_of(void **state)
{
	static const char *const urls[] = { "postgres://host.invalid/db",
		                            "postgres:///db?host=host.invalid" };

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		list(urls[i], 0);
		assert_int_equal(places.count, 0);
		assert_non_null(
		    strstr(fault.text, "no address is known of host.invalid"));
	}
	list("postgres://127.0.0.1/db", 0);
	assert_string_equal(fault.text, "");
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *url;
		const char *text;
	} rows[] = {
		{ "postgres:///db?service=there", "a service needs a host beside it" },
		{ "postgres:///db?host=127.0.0.1&port=1,2",
		  "the ports are not one for all hosts" },
		{ "postgres:///db?host=127.0.0.1&port=000001",
		  "a port has more than five digits" },
		{ "postgres:///db?host=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
		  "more than 16 hosts" },
		{ "postgres:///db?nonsense=1",
		  "libpq says: invalid URI query parameter: \"nonsense\"" },
		{ "postgres://me:secret@[]/db", "a host has no name" },
		{ "postgres://me:secret@h:0/db", "port 0 is not" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_false(postgres_hosts_open(&hosts, rows[i].url, &fault));
		assert_int_equal(fault.err, GALE_ERR_URL);
		if (!strstr(fault.text, rows[i].text))
			fail_msg("%s: %s", rows[i].url, fault.text);
		assert_null(strstr(fault.text, "secret"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_of_an_authority_and_an_option_are_the_same),
		cmocka_unit_test(each_attempt_begins_with_another),
		cmocka_unit_test(all_addresses_of_a_name_are_tried),
		cmocka_unit_test(folders_are_no_names),
		cmocka_unit_test(the_environment_is_heard),
		cmocka_unit_test(addresses_that_are_given_are_left_alone),
		cmocka_unit_test(who_is_not_found_is_warned_of),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
