/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_tls_test.c -- sslmode and its like, which are libpq's, on a real server.
 *
 *     node --TLS on loopback--> the server <--its socket-- the test
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/certificates.h"
#include "tests/support/must.h"
#include "tests/support/postgres_server.h"
#include "tests/support/proxy.h"
#include "tests/support/visitor.h"

#define URL_ROOM 512
#define OPTIONS_ROOM 400
#define CUTS 10

static struct certificates c;
static struct postgres_server *server;
static uint16_t port;

/* ---- The server ------------------------------------------------------------------ */

static void show(const struct certificate *shown)
{
	const struct postgres_secrets secrets = { .ca = c.ca.cert,
		                                  .cert = shown->cert,
		                                  .key = shown->key };

	port = postgres_server_secure(server, &secrets);
}

static int open_all(void **state)
{
	char ignored[8];

	(void)state;
	certificates_make(&c);
	server = postgres_server_start();
	postgres_server_ask(server, "CREATE ROLE guarded LOGIN SUPERUSER; SELECT 1",
	                    ignored, sizeof(ignored));
	show(&c.good);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	postgres_server_stop(server);
	certificates_drop(&c);
	return 0;
}

static const char *url_as(char url[URL_ROOM], const char *user, uint16_t at,
                          const char *options)
{
	snprintf(url, URL_ROOM, "postgres://%s@localhost:%u/postgres?%s", user, at,
	         options);
	return url;
}

static const char *url_of(char url[URL_ROOM], const char *options)
{
	return url_as(url, "gale", port, options);
}

static const char *trusting(const struct certificate *it)
{
	static char options[OPTIONS_ROOM];

	snprintf(options, sizeof(options), "sslmode=verify-full&sslrootcert=%s",
	         it->cert);
	return options;
}

/* ---- What comes about ------------------------------------------------------------ */

/* Of the sessions of nodes there are some, and each is in TLS. */
static bool are_secure(void)
{
	char all[8];

	postgres_server_ask(server,
	                    "SELECT coalesce(bool_and(ssl), false) FROM pg_stat_ssl"
	                    " JOIN pg_stat_activity USING (pid)"
	                    " WHERE application_name = 'gale'",
	                    all, sizeof(all));
	return all[0] == 't';
}

static void a_server_is_verified_and_asked(void **state)
{
	struct visitor node;
	char url[URL_ROOM];

	(void)state;
	visitor_open(&node, url_of(url, trusting(&c.ca)),
	             gale_fixed_window(9, GALE_HOURS(1)), GALE_STRICT);
	visitor_is_answered(&node);
	assert_true(are_secure());
	visitor_end(&node);
	visitor_let_in(url_of(url, "sslmode=require"));
	visitor_let_in(url_of(url, "")); /* libpq prefers TLS */
}

static void a_client_shows_its_certificate(void **state)
{
	char url[URL_ROOM], options[OPTIONS_ROOM];

	(void)state;
	snprintf(options, sizeof(options), "sslmode=require&sslcert=%s&sslkey=%s",
	         c.client.cert, c.client.key);
	visitor_let_in(url_as(url, "guarded", port, options));
	visitor_refused(url_as(url, "guarded", port, "sslmode=require"),
	                "connection requires a valid client certificate");
}

static void what_is_long_goes_in_parts(void **state)
{
	char url[URL_ROOM];

	(void)state;
	visitor_fills_a_log(url_of(url, trusting(&c.ca)));
}

/* ---- What does not --------------------------------------------------------------- */

static void who_is_not_trusted_is_asked_nothing(void **state)
{
	char url[URL_ROOM];

	(void)state;
	visitor_refused(url_of(url, trusting(&c.other_ca)),
	                "certificate verify failed");
	visitor_refused(url_of(url, "sslmode=verify-full&sslrootcert=/no/such/file"),
	                "\"/no/such/file\" does not exist");
	show(&c.elsewhere);
	visitor_refused(url_of(url, trusting(&c.ca)),
	                "for \"redis.example\" does not match host name \"localhost\"");
	show(&c.expired);
	visitor_refused(url_of(url, trusting(&c.ca)), "certificate verify failed");
	show(&c.good);
	visitor_let_in(url_of(url, trusting(&c.ca)));
}

static void a_server_in_tls_is_not_asked_in_plain(void **state)
{
	char url[URL_ROOM];

	(void)state;
	visitor_refused(url_of(url, "sslmode=disable"), "no encryption");
}

static void a_server_without_tls_is_not_asked(void **state)
{
	struct postgres_server *plain = postgres_server_start();
	uint16_t there = postgres_server_listen(plain);
	char url[URL_ROOM];

	(void)state;
	visitor_refused(url_as(url, "gale", there, trusting(&c.ca)),
	                "server does not support SSL, but SSL was required");
	postgres_server_stop(plain);
}

static void a_server_that_stops_while_hands_are_shaken(void **state)
{
	struct proxy proxy;
	char url[URL_ROOM];

	(void)state;
	proxy_open_to_port(&proxy, port);
	proxy_swallow(&proxy, true);
	visitor_refused(url_as(url, "gale", proxy.port, trusting(&c.ca)),
	                "no connection within a second: the server does not answer");
	proxy_swallow(&proxy, false);
	proxy_close(&proxy);
}

/* Connections end in the middle of records, and of hands that are shaken. */
static void connections_are_made_anew(void **state)
{
	struct visitor node;
	struct proxy proxy;
	char url[URL_ROOM];

	(void)state;
	proxy_open_to_port(&proxy, port);
	visitor_open(&node, url_as(url, "gale", proxy.port, trusting(&c.ca)),
	             gale_fixed_window(1000000, GALE_HOURS(1)), GALE_STRICT);
	for (uint64_t i = 0; i < CUTS; i++) {
		visitor_is_answered(&node);
		if (i % 2 == 0)
			proxy_cut_after(&proxy, i * i * 137 % 4001);
		else
			proxy_cut(&proxy);
	}
	visitor_is_answered(&node);
	visitor_end(&node);
	proxy_close(&proxy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_is_verified_and_asked),
		cmocka_unit_test(a_client_shows_its_certificate),
		cmocka_unit_test(what_is_long_goes_in_parts),
		cmocka_unit_test(who_is_not_trusted_is_asked_nothing),
		cmocka_unit_test(a_server_in_tls_is_not_asked_in_plain),
		cmocka_unit_test(a_server_without_tls_is_not_asked),
		cmocka_unit_test(a_server_that_stops_while_hands_are_shaken),
		cmocka_unit_test(connections_are_made_anew),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
