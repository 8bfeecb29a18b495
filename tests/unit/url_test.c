/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* url_test.c -- addresses of servers, and what is said of those that are none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "sim/random.h"
#include "stores/label.h"
#include "stores/url.h"

static struct url_fault fault;

static void every_part_is_found(void **state)
{
	struct url url;

	(void)state;
	assert_true(url_parse("redis://me:p%40ss:w%2Ford@[::1]:7000,b,10.0.0.1:7002/3?"
	                      "prefix=a%26b&durable=1",
	                      &url, &fault));
	assert_string_equal(url.scheme, "redis");
	assert_string_equal(url.user, "me");
	assert_string_equal(url.password, "p@ss:w/ord");
	assert_int_equal(url.host_count, 3);
	assert_string_equal(url.hosts[0].name, "::1");
	assert_int_equal(url.hosts[0].port, 7000);
	assert_string_equal(url.hosts[1].name, "b");
	assert_int_equal(url.hosts[1].port, 0);
	assert_string_equal(url.hosts[2].name, "10.0.0.1");
	assert_int_equal(url.hosts[2].port, 7002);
	assert_string_equal(url.path, "/3");
	assert_string_equal(url_option(&url, "prefix"), "a&b");
	assert_string_equal(url_option(&url, "durable"), "1");
	assert_null(url_option(&url, "dur"));
}

static void what_is_not_there_is_empty(void **state)
{
	struct url url;

	(void)state;
	assert_true(url_parse("redis://localhost", &url, &fault));
	assert_string_equal(url.user, "");
	assert_string_equal(url.password, "");
	assert_string_equal(url.path, "");
	assert_int_equal(url.option_count, 0);
	assert_true(url_parse("redis://:secret@h:1", &url, &fault));
	assert_string_equal(url.user, "");
	assert_string_equal(url.password, "secret");
	assert_true(url_parse("redis:///run/redis.sock?db=2", &url, &fault));
	assert_int_equal(url.host_count, 0);
	assert_string_equal(url.path, "/run/redis.sock");
	assert_string_equal(url_option(&url, "db"), "2");
	assert_true(
	    url_parse("redis://a@b@host", &url, &fault)); /* the last @ counts */
	assert_string_equal(url.user, "a@b");
	assert_string_equal(url.hosts[0].name, "host");
}

/* The text names the part that is wrong, and shows no password. */
static void what_is_none_is_refused(void **state)
{
	static const struct {
		const char *url;
		const char *says;
	} rows[] = {
		{ "", "does not begin with a scheme" },
		{ "redis", "does not begin with a scheme" },
		{ "redis:", "does not begin with a scheme" },
		{ "redis:/h", "does not begin with a scheme" },
		{ "://h", "does not begin with a scheme" },
		{ "redis://h:", "the port of a host is not a number" },
		{ "redis://h:0", "port 0 is not from 1 to 65535" },
		{ "redis://h:65536", "port 65536 is not from 1 to 65535" },
		{ "redis://h:99999", "port 99999 is not from 1 to 65535" },
		{ "redis://h:12x", "the port of a host is not a number" },
		{ "redis://me:secret/word@h", "the port of a host is not a number; in "
		                              "a password, / is written %2F" },
		{ "redis://me:99999/secret@h",
		  "the port of a host is not a number; in" },
		{ "redis://[::1", "a [ has no ]" },
		{ "redis://[::1]x", "behind the ] of a host comes" },
		{ "redis://:80", "a host has no name" },
		{ "redis://h,", "a host has no name" },
		{ "redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16 hosts" },
		{ "redis://u%4@h", "user: behind a %" },
		{ "redis://u%zz@h", "user: behind a %" },
		{ "postgres://%00user@h/db", "user: behind a %" },
		{ "redis://u:secret%@h", "password: behind a %" },
		{ "redis://h/%", "path: behind a %" },
		{ "redis://h?x", "option x has no =value" },
		{ "redis://me?secret@h", "option (?) has no =value" },
		{ "redis://h?x=%", "the value of an option: behind a %" },
		{ "redis://h?a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&i=9",
		  "more than 8 options" },
	};
	struct url url;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_false(url_parse(rows[i].url, &url, &fault));
		assert_int_equal(fault.err, GALE_ERR_URL);
		if (!strstr(fault.text, rows[i].says))
			fail_msg("%s: %s", rows[i].url, fault.text);
		assert_memory_equal(fault.text, "url: ", 5);
		assert_null(strstr(fault.text, "secret"));
	}
}

static void the_longest_and_one_more(void **state)
{
	char text[URL_MOST + 2];
	struct url url;

	(void)state;
	memset(text, 'h', sizeof(text));
	memcpy(text, "redis://", 8);
	text[URL_MOST] = '\0';
	assert_true(url_parse(text, &url, &fault));
	assert_int_equal(strlen(url.hosts[0].name), URL_MOST - 8);
	text[URL_MOST - 1] = '/'; /* a path takes the last byte there is */
	assert_true(url_parse(text, &url, &fault));
	assert_string_equal(url.path, "/");
	text[URL_MOST - 1] = 'h';
	text[URL_MOST] = 'h';
	text[URL_MOST + 1] = '\0';
	assert_false(url_parse(text, &url, &fault));
	assert_string_equal(fault.text, "url: longer than 1024 bytes");
}

static void numbers_are_whole_and_bounded(void **state)
{
	uint64_t number = 7;

	(void)state;
	assert_true(url_number("0", 0, &number));
	assert_int_equal(number, 0);
	assert_true(url_number("15", 15, &number));
	assert_false(url_number("16", 15, &number));
	assert_false(url_number("", 15, &number));
	assert_false(url_number("-1", 15, &number));
	assert_false(url_number("9999999999999999999", UINT64_MAX, &number));
}

/* ---- What users are told --------------------------------------------------------- */

static const char *one_of(struct chance *c, const char *const *texts, size_t count)
{
	return texts[chance_below(c, count)];
}

#define ONE_OF(c, texts) one_of(c, texts, sizeof(texts) / sizeof((texts)[0]))

/* Whatever stands in it, and though it ought to be encoded. */
static void a_password_is_never_shown(void **state)
{
	static const char *const schemes[] = { "redis",  "redis+sentinel",
		                               "rediss", "redis+cluster",
		                               "mysql",  "postgres" };
	static const char *const marks[] = { "",  ":", "/", "?", "@", "&", "+",
		                             "%", "#", "[", "]", ",", "1", ":1" };
	static const char *const pieces[] = { "s3cr3t", "77777" };
	static const char *const places[] = { "h", "h:6379/0", "h/db", "h,i",
		                              "h:1/0?prefix=a" };
	struct chance c = { 3 };
	uint64_t refused = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char url[200], why[192], label[LABEL_ROOM];
		int end = snprintf(url, sizeof(url), "%s://%s:", ONE_OF(&c, schemes),
		                   chance_one_in(&c, 3) ? "" : "me");

		for (uint64_t more = chance_between(&c, 1, 4); more > 0; more--)
			end += snprintf(url + end, sizeof(url) - (size_t)end, "%s%s",
			                ONE_OF(&c, marks), ONE_OF(&c, pieces));
		snprintf(url + end, sizeof(url) - (size_t)end, "@%s",
		         ONE_OF(&c, places));
		refused += gale_url_check(url, why, sizeof(why)) != GALE_ERR_OK;
		label_of_url(url, label);
		for (size_t piece = 0; piece < 2; piece++)
			if (strstr(why, pieces[piece]) || strstr(label, pieces[piece]))
				fail_msg("%s: %s, %s", url, why, label);
	}
	assert_in_range(refused, 5000, 19000);
}

static void a_check_says_what_is_wrong(void **state)
{
	static const struct {
		const char *url;
		enum gale_err err;
		const char *says; /* "": nothing */
	} rows[] = {
		{ NULL, GALE_ERR_OK, "" },
		{ "memory:", GALE_ERR_OK, "" },
		{ "memory:name", GALE_ERR_OK, "" },
		{ "memory:12345678901234567890123456789012345678901234567890123456789"
		  "012345",
		  GALE_ERR_STORE_NAME, "url: the name after memory:" },
		{ "", GALE_ERR_URL, "url: it begins with none of memory:, redis://" },
		{ "localhost:6379", GALE_ERR_URL, "url: it begins with none of" },
		{ "mysql://h", GALE_ERR_URL, "url: it begins with none of" },
		{ "redis:/h", GALE_ERR_URL, "url: it begins with none of" },
#ifdef GALE_REDIS
		{ "redis://h:6379/3?prefix=a&durable=2", GALE_ERR_OK, "" },
		{ "redis:///run/redis.sock?db=3", GALE_ERR_OK, "" },
		{ "redis+sentinel://h,i:3/main?sentinel_password=x&db=1", GALE_ERR_OK,
		  "" },
		{ "redis+cluster://h,i:3/0?prefix=", GALE_ERR_OK, "" },
		{ "redis://h?prefx=a", GALE_ERR_URL,
		  "url: option prefx is not known; there are db, prefix, durable, "
		  "sentinel_password" },
		{ "redis://h?prefix=a{b", GALE_ERR_URL, "url: option prefix is" },
		{ "redis://h?durable=0", GALE_ERR_URL, "url: option durable is not" },
		{ "redis://h?durable=all", GALE_ERR_URL, "url: option durable is not" },
		{ "redis://h/db", GALE_ERR_URL, "url: the database is not a number" },
		{ "redis://h/1000001", GALE_ERR_URL, "url: the database is not" },
		{ "redis://h/1?db=1", GALE_ERR_URL, "both the path and option db" },
		{ "redis://h,i", GALE_ERR_URL, "url: redis:// takes one host" },
		{ "redis://", GALE_ERR_URL, "url: redis:// needs a host, or the path" },
		{ "redis+sentinel://h", GALE_ERR_URL, "the name by which sentinels" },
		{ "redis+sentinel://me:1/2@h/main", GALE_ERR_URL,
		  "url: the name of a service has an @; in a password, / is" },
		{ "redis+sentinel:///main", GALE_ERR_URL, "the host of a sentinel" },
		{ "redis+cluster:///x", GALE_ERR_URL, "redis+cluster:// needs a host" },
		{ "redis+cluster://h/1", GALE_ERR_CLUSTER_DB, "url: a cluster has no" },
		{ "redis://h:99999", GALE_ERR_URL, "url: port 99999 is not from 1" },
		{ "rediss://h:1/3?ca=/a.pem&cert=/b&key=/"
		  "c&servername=d&prefix=e&durable=1",
		  GALE_ERR_OK, "" },
		{ "rediss+sentinel://h,i:3/main?ca=a&sentinel_password=x&db=1",
		  GALE_ERR_OK, "" },
		{ "rediss+cluster://h,i:3/0?servername=all", GALE_ERR_OK, "" },
		{ "rediss://h?servername=.example", GALE_ERR_URL,
		  "url: option servername begins with a dot" },
		{ "rediss://h?verify=no", GALE_ERR_URL,
		  "url: option verify is not known; there are db, prefix, durable, "
		  "sentinel_password, ca, cert, key, servername" },
		{ "redis://h?ca=a", GALE_ERR_URL,
		  "url: option ca is for TLS: rediss://, rediss+sentinel://, "
		  "rediss+cluster://" },
		{ "redis+cluster://h?servername=a", GALE_ERR_URL,
		  "url: option servername is for TLS" },
		{ "rediss://h?ca=", GALE_ERR_URL, "url: option ca is empty" },
		{ "rediss://h?cert=a", GALE_ERR_URL,
		  "url: of the options cert and key each needs the other" },
		{ "rediss://h?key=a", GALE_ERR_URL, "each needs the other" },
		{ "rediss:///run/redis.sock", GALE_ERR_URL,
		  "url: rediss:// needs a host" },
		{ "rediss://h,i", GALE_ERR_URL, "url: rediss:// takes one host" },
		{ "rediss+sentinel://h", GALE_ERR_URL,
		  "url: behind the hosts of rediss+sentinel:// comes / and the name by "
		  "which sentinels know the service" },
		{ "redisss://h", GALE_ERR_URL, "url: it begins with none of" },
#endif
#ifdef GALE_POSTGRES
		{ "postgres://me@h/db?sslmode=require", GALE_ERR_OK, "" },
		{ "postgresql:///db", GALE_ERR_OK, "" },
		{ "postgres://me:secret@h/db?sslmod=x", GALE_ERR_URL, "\"sslmod\"" },
		{ "postgres://h:70000/db", GALE_ERR_URL, "url: port 70000" },
		{ "postgres://me:a@b@h/db", GALE_ERR_URL,
		  "url: a host has an @; in a password, @ is written %40" },
		{ "postgres://me:1/2?secret=b@h/db", GALE_ERR_URL,
		  "url: libpq says: invalid URI query parameter" },
#endif
	};
	char why[192];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(gale_url_check(rows[i].url, why, sizeof(why)),
		                 rows[i].err);
		assert_int_equal(gale_url_check(rows[i].url, NULL, 0), rows[i].err);
		if (!strstr(why, rows[i].says))
			fail_msg("%s: %s", rows[i].url, why);
		assert_int_equal(why[0] == '\0', rows[i].err == GALE_ERR_OK);
	}
	assert_int_equal(gale_url_check("mysql://h", why, 6), GALE_ERR_URL);
	assert_string_equal(why, "url: ");
}

static void keep_line(struct gale_log *self, enum gale_level level, const char *source,
                      const char *line)
{
	(void)self;
	assert_int_equal(level, GALE_LEVEL_ERROR);
	assert_string_equal(source, "store mysql://h");
	snprintf(fault.text, sizeof(fault.text), "%s", line);
}

static void the_log_says_it_too(void **state)
{
	struct gale_store_config store_config = { .url = "mysql://h" };
	struct gale_log log = { keep_line };
	struct gale_config config = { .turns = true, .log = &log };
	struct gale_runtime *runtime;
	struct gale_store *store;
	char why[192];

	(void)state;
	assert_int_equal(gale_runtime_open(&config, &runtime), GALE_ERR_OK);
	assert_int_equal(gale_store_open(runtime, &store_config, &store), GALE_ERR_URL);
	assert_int_equal(gale_url_check("mysql://h", why, sizeof(why)), GALE_ERR_URL);
	assert_string_equal(fault.text, why);
	gale_runtime_close(runtime);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_is_found),
		cmocka_unit_test(what_is_not_there_is_empty),
		cmocka_unit_test(what_is_none_is_refused),
		cmocka_unit_test(the_longest_and_one_more),
		cmocka_unit_test(numbers_are_whole_and_bounded),
		cmocka_unit_test(a_password_is_never_shown),
		cmocka_unit_test(a_check_says_what_is_wrong),
		cmocka_unit_test(the_log_says_it_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
