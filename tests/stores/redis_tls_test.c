/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_tls_test.c -- rediss:// on a real server, and each way in which TLS does not come about.
 *
 *     node --(proxy)--> TLS port of the server;  the test --> its socket, plain
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gale/guard.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/negotiator.h"
#include "tests/support/port.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/secure_server.h"
#include "tests/support/visitor.h"
#include "tests/support/weather.h"

#define URL_ROOM 512
#define OPTIONS_ROOM 400
#define BEAT GALE_SECONDS(3)
#define CUTS 40
#define REFUSALS 12
#define SESSION 4000 /* bytes of answers, until it is negotiated again */

static struct certificates c;
static struct secure_server server; /* good, and asks for no certificate */

/* ---- Servers --------------------------------------------------------------------- */

static void start(struct secure_server *made, const struct certificate *shown,
                  const char *clients)
{
	secure_server_start(made, shown, &c.ca, clients);
	redis_server_settle(&made->is, "gale:");
}

static const char *url_of(char url[URL_ROOM], const char *port, const char *options)
{
	snprintf(url, URL_ROOM, "rediss://127.0.0.1:%s?%s", port, options);
	return url;
}

static const char *trusting(const struct certificate *it, const char *more)
{
	static char options[OPTIONS_ROOM];

	snprintf(options, sizeof(options), "ca=%s%s", it->cert, more);
	return options;
}

static int open_all(void **state)
{
	(void)state;
	certificates_make(&c);
	start(&server, &c.good, "no");
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	secure_server_stop(&server);
	certificates_drop(&c);
	return 0;
}

/* ---- What comes about ------------------------------------------------------------ */

static void who_is_trusted_is_asked(void **state)
{
	char url[URL_ROOM];

	(void)state;
	visitor_let_in(url_of(url, server.port, trusting(&c.ca, "")));
	visitor_let_in(
	    url_of(url, server.port, trusting(&c.ca, "&servername=localhost")));
	snprintf(url, sizeof(url), "rediss://localhost:%s?ca=%s", server.port,
	         c.ca.cert);
	visitor_let_in(url);
}

/* Of OpenSSL's own ways to say which those of the system are, this is one. */
static void without_a_file_those_of_the_system_are_trusted(void **state)
{
	char url[URL_ROOM];

	(void)state;
	must(setenv("SSL_CERT_FILE", c.ca.cert, 1) == 0);
	visitor_let_in(url_of(url, server.port, "prefix=gale:"));
	must(unsetenv("SSL_CERT_FILE") == 0);
}

static void a_client_shows_its_certificate(void **state)
{
	struct secure_server strict;
	char url[URL_ROOM], options[OPTIONS_ROOM];

	(void)state;
	start(&strict, &c.good, "yes");
	snprintf(options, sizeof(options), "ca=%s&cert=%s&key=%s", c.ca.cert,
	         c.client.cert, c.client.key);
	visitor_let_in(url_of(url, strict.port, options));
	secure_server_stop(&strict);
}

static bool is_listed(void *arg)
{
	struct redis_talk talk;
	redisReply *list;
	const char *at;
	bool is;

	redis_talk_open(&talk, &server.is);
	list = redis_talk_say(&talk, "CLIENT LIST");
	at = strstr(list->str, " name=gale:");
	is = at && strstr(at, arg);
	redis_reply_free(list);
	redis_talk_close(&talk);
	return is;
}

static void it_says_who_and_where_as_without_tls(void **state)
{
	char url[URL_ROOM];
	struct visitor node;

	(void)state;
	snprintf(url, sizeof(url), "rediss://ali:baba@127.0.0.1:%s/3?ca=%s",
	         server.port, c.ca.cert);
	visitor_open(&node, url, gale_fixed_window(9, GALE_HOURS(1)), GALE_STRICT);
	visitor_is_answered(&node);
	assert_true(is_listed(" db=3 "));
	assert_true(is_listed(" user=ali "));
	visitor_end(&node);
}

static void what_is_long_goes_in_parts(void **state)
{
	char url[URL_ROOM];

	(void)state;
	visitor_fills_a_log(url_of(url, server.port, trusting(&c.ca, "")));
}

/* Leases lie ahead, and the units of a window are the limit. */
static void leases_are_lent(void **state)
{
	char url[URL_ROOM];
	struct visitor node;
	int admitted = 0;

	(void)state;
	visitor_open(&node, url_of(url, server.port, trusting(&c.ca, "")),
	             gale_fixed_window(300, GALE_DAYS(1)), GALE_LEASED);
	visitor_is_answered(&node);
	for (int i = 0; i < 400; i++)
		admitted += visitor_ask(&node, "leased", 1).verdict == GALE_ALLOW;
	assert_int_equal(admitted, 300);
	visitor_end(&node);
}

static uint64_t share_of(struct gale_guard *guard)
{
	struct gale_guard_counts counts;

	must(gale_guard_stats(guard, &counts) == GALE_ERR_OK);
	return counts.share;
}

/* Before its next beat: it was nudged by what was published, on a connection of its own. */
static void nodes_hear_of_each_other(void **state)
{
	char url[URL_ROOM];
	struct gale_guard_config config = { .name = "guard",
		                            .law = GALE_FIXED,
		                            .ceiling = 12,
		                            .parts = GALE_BY_WEIGHT,
		                            .beat_us = BEAT,
		                            .lease_us = 3 * BEAT,
		                            .abort_us = GALE_MILLIS(500) };
	struct gale_guard *guards[2];
	struct visitor nodes[2];
	uint64_t began_ns;

	(void)state;
	url_of(url, server.port, trusting(&c.ca, ""));
	for (int i = 0; i < 2; i++) {
		must(visitor_start(&nodes[i], url) == GALE_ERR_OK);
		config.store = nodes[i].store;
		began_ns = patience_now_ns();
		must(gale_guard_open(nodes[i].runtime, &config, &guards[i]) ==
		     GALE_ERR_OK);
		while (share_of(guards[i]) != (i == 0 ? 12 : 6))
			nap(GALE_MILLIS(1));
		if (i == 0)
			assert_true(becomes_true(is_listed, " sub=1 "));
	}
	assert_in_range((patience_now_ns() - began_ns) / 1000, 0, BEAT);
	for (int i = 0; i < 2; i++) {
		gale_guard_close(guards[i]);
		visitor_end(&nodes[i]);
	}
}

/* ---- What does not --------------------------------------------------------------- */

static void shown(const struct certificate *it, const char *because)
{
	struct secure_server other;
	char url[URL_ROOM];

	start(&other, it, "no");
	visitor_refused(url_of(url, other.port, trusting(&c.ca, "")), because);
	secure_server_stop(&other);
}

/* TLS-1 */
static void who_is_not_trusted_is_asked_nothing(void **state)
{
	char url[URL_ROOM];

	(void)state;
	visitor_refused(
	    url_of(url, server.port, trusting(&c.other_ca, "")),
	    "the server's certificate is of no CA that is trusted; ca= names the "
	    "file of one");
	visitor_refused(url_of(url, server.port, "prefix=gale:"),
	                "is of no CA that is trusted");
	visitor_refused(
	    url_of(url, server.port, trusting(&c.ca, "&servername=redis.example")),
	    "the server's certificate is not of redis.example; servername= names "
	    "another");
	shown(&c.elsewhere, "the server's certificate is not of 127.0.0.1");
	shown(&c.expired, "the server's certificate, or its CA's, has expired");
}

static void who_shows_no_certificate_where_one_is_wanted(void **state)
{
	struct secure_server strict;
	char url[URL_ROOM];

	(void)state;
	start(&strict, &c.good, "yes");
	visitor_refused(
	    url_of(url, strict.port, trusting(&c.ca, "")),
	    "the server wants a certificate of the client; cert= and key= name "
	    "one");
	secure_server_stop(&strict);
}

static void a_plain_port_does_not_speak_tls(void **state)
{
	struct proxy proxy;
	char url[URL_ROOM], port[8];

	(void)state;
	proxy_open(&proxy, server.is.socket);
	snprintf(port, sizeof(port), "%u", proxy.port);
	visitor_refused(url_of(url, port, trusting(&c.ca, "")),
	                "its port may be one without");
	proxy_close(&proxy);
}

static void a_port_of_tls_is_not_asked_in_plain(void **state)
{
	char url[URL_ROOM];

	(void)state;
	snprintf(url, sizeof(url), "redis://127.0.0.1:%s", server.port);
	visitor_refused(url, "(rediss://)");
}

static int listen_on(char port[8])
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_port = htons(free_port());
	must(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	must(listen(fd, 8) == 0);
	snprintf(port, 8, "%u", ntohs(address.sin_port));
	return fd;
}

/* Before its first byte, and after some of them. */
static void a_server_that_stops_while_hands_are_shaken(void **state)
{
	struct proxy proxy;
	char url[URL_ROOM], port[8];
	int silent = listen_on(port);

	(void)state;
	visitor_refused(
	    url_of(url, port, trusting(&c.ca, "")),
	    "no connection within a second: it accepts connections, but does not agree "
	    "on TLS; its port may be one without TLS");
	close(silent);
	proxy_open_to_port(&proxy, (uint16_t)atoi(server.port));
	snprintf(port, sizeof(port), "%u", proxy.port);
	proxy_swallow(&proxy, true);
	visitor_refused(url_of(url, port, trusting(&c.ca, "")),
	                "does not agree on TLS");
	proxy_swallow(&proxy, false);
	proxy_close(&proxy);
}

static void *hang_up_on_each(void *arg)
{
	const int *listener = arg;
	char byte;
	int fd;

	while ((fd = accept4(*listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		must(recv(fd, &byte, 1, 0) >= 0);
		shutdown(fd, SHUT_WR);
		while (recv(fd, &byte, 1, 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

static void a_server_that_hangs_up_while_hands_are_shaken(void **state)
{
	char url[URL_ROOM], port[8];
	int listener = listen_on(port);
	pthread_t thread;

	(void)state;
	must(pthread_create(&thread, NULL, hang_up_on_each, &listener) == 0);
	visitor_refused(url_of(url, port, trusting(&c.ca, "")),
	                "the server has hung up before TLS was agreed on");
	must(shutdown(listener, SHUT_RD) == 0);
	must(pthread_join(thread, NULL) == 0);
	close(listener);
}

static void cannot_open(const char *options, const char *because)
{
	char url[URL_ROOM];

	visitor_cannot_open(url_of(url, server.port, options), because);
}

static void files_that_are_not_what_they_should_be(void **state)
{
	char options[OPTIONS_ROOM];

	(void)state;
	cannot_open("ca=/no/such/file", "url: option ca: no certificate can be read "
	                                "from the file: ");
	snprintf(options, sizeof(options), "ca=%s", c.client.key);
	cannot_open(options, "url: option ca: no certificate can be read");
	snprintf(options, sizeof(options), "cert=/none&key=%s", c.client.key);
	cannot_open(options, "url: option cert: no certificate can be read");
	snprintf(options, sizeof(options), "cert=%s&key=%s", c.client.cert, c.good.key);
	cannot_open(options, "url: option key: the file has no key of the certificate");
}

/* ---- Weather --------------------------------------------------------------------- */

/* Connections end in the middle of records, of hands that are shaken, and of everything else;
 * all is as without TLS (redis_weather_test.c). */
static void connections_are_made_anew_under_load(void **state)
{
	static struct weather weather;
	struct weather_plan plan = { .shards = 2,
		                     .window_us = GALE_MILLIS(300),
		                     .limit = 40,
		                     .keys = 1,
		                     .askers = 3,
		                     .pollers = 1,
		                     .within_us = GALE_MILLIS(150),
		                     .nap_us = WEATHER_NAP_US };
	char url[URL_ROOM], port[8];
	struct proxy proxy;

	(void)state;
	proxy_open_to_port(&proxy, (uint16_t)atoi(server.port));
	snprintf(port, sizeof(port), "%u", proxy.port);
	plan.urls[0] = plan.urls[1] =
	    url_of(url, port, trusting(&c.ca, "&prefix=weather:"));
	redis_server_settle(&server.is, "weather:");
	weather_let_ask(&weather, &plan);
	assert_true(weather_recovers(&weather, VISITOR_PATIENCE));
	for (uint64_t i = 0; i < CUTS; i++) {
		nap(GALE_MILLIS(15));
		if (i % 10 == 9)
			proxy_cut(&proxy);
		else if (i % 10 == 4)
			redis_server_do(&server.is, "CLIENT KILL TYPE normal");
		else
			proxy_cut_after(&proxy, i * i * 37 % 4001);
	}
	proxy_cut(&proxy);
	assert_true(weather_recovers(&weather, VISITOR_PATIENCE));
	weather_end(&weather);
	weather_was_in_time(&weather, plan.within_us + GALE_MILLIS(150));
	proxy_close(&proxy);
}

static bool has_refused_often(void *arg)
{
	struct negotiator *negotiator = arg;

	return load_relaxed(&negotiator->refused) >= REFUSALS;
}

/* A node does not negotiate again: its session ends, and another one is made. */
static void sessions_that_are_negotiated_again_are_made_anew_under_load(void **state)
{
	static struct negotiator negotiator;
	static struct weather weather;
	struct weather_plan plan = { .shards = 2,
		                     .window_us = GALE_MILLIS(300),
		                     .limit = 40,
		                     .keys = 1,
		                     .askers = 3,
		                     .pollers = 1,
		                     .within_us = GALE_MILLIS(150),
		                     .nap_us = WEATHER_NAP_US };
	char url[URL_ROOM];

	(void)state;
	negotiator_open(&negotiator, &c.good, server.is.socket, SIZE_MAX);
	plan.urls[0] = plan.urls[1] =
	    url_of(url, negotiator.port, trusting(&c.ca, "&prefix=negotiated:"));
	redis_server_settle(&server.is, "negotiated:");
	weather_let_ask(&weather, &plan);
	assert_true(weather_recovers(&weather, VISITOR_PATIENCE));
	store_relaxed(&negotiator.each, SESSION);
	assert_true(becomes_true(has_refused_often, &negotiator));
	store_relaxed(&negotiator.each, SIZE_MAX);
	assert_true(weather_recovers(&weather, VISITOR_PATIENCE));
	weather_end(&weather);
	weather_was_in_time(&weather, plan.within_us + GALE_MILLIS(150));
	negotiator_close(&negotiator);
	assert_true(negotiator.asked >= negotiator.refused);
}

static void a_server_that_negotiates_at_once_is_told_of(void **state)
{
	static struct negotiator negotiator;
	char url[URL_ROOM];

	(void)state;
	negotiator_open(&negotiator, &c.good, server.is.socket, /* each= */ 1);
	visitor_refused(url_of(url, negotiator.port, trusting(&c.ca, "")),
	                "the server wants to negotiate TLS again, which gale does not: "
	                "turn that off at the server, or let it use TLS 1.3");
	negotiator_close(&negotiator);
}

/* ---- Several servers ------------------------------------------------------------- */

/* Which has a certificate with the address that it tells; one name for all is given, too. */
static void a_sentinel_and_its_primary_are_asked_in_tls(void **state)
{
	static const char *const names[] = { "", "&servername=localhost" };
	struct secure_sentinel sentinel;
	char url[URL_ROOM];

	(void)state;
	secure_sentinel_start(&sentinel, &server);
	for (int i = 0; i < 2; i++) {
		snprintf(url, sizeof(url),
		         "rediss+sentinel://127.0.0.1:%s/main?ca=%s%s", sentinel.port,
		         c.ca.cert, names[i]);
		visitor_let_in(url);
	}
	snprintf(url, sizeof(url), "rediss+sentinel://127.0.0.1:%s/main?ca=%s",
	         sentinel.port, c.other_ca.cert);
	visitor_refused(
	    url, "a sentinel: the server's certificate is of no CA that is trusted");
	secure_sentinel_stop(&sentinel);
}

static bool are_admitted(void *arg)
{
	bool all = true;
	char key[8];

	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		all &= visitor_ask(arg, key, 1).verdict == GALE_ALLOW;
	}
	return all;
}

static void the_nodes_of_a_cluster_are_asked_in_tls(void **state)
{
	static struct redis_cluster cluster;
	const char *const tls[] = { "--tls-cluster",
		                    "yes",
		                    "--tls-replication",
		                    "yes",
		                    "--tls-cert-file",
		                    c.good.cert,
		                    "--tls-key-file",
		                    c.good.key,
		                    "--tls-ca-cert-file",
		                    c.ca.cert,
		                    "--tls-auth-clients",
		                    "no",
		                    NULL };
	char url[URL_ROOM];
	struct visitor node;

	(void)state;
	redis_cluster_start_in_tls(&cluster, tls);
	snprintf(url, sizeof(url), "rediss+cluster://127.0.0.1:%s?ca=%s",
	         cluster.ports[0], c.ca.cert);
	visitor_open(&node, url, gale_fixed_window(999, GALE_SECONDS(1)), GALE_STRICT);
	visitor_becomes(&node, are_admitted);
	visitor_end(&node);
	snprintf(url, sizeof(url), "rediss+cluster://127.0.0.1:%s?ca=%s",
	         cluster.ports[0], c.other_ca.cert);
	visitor_refused(
	    url, "no node tells where keys are: the server's certificate is of no "
		 "CA that is trusted");
	redis_cluster_stop(&cluster);
}

/* The tests whose names match the argument; all, without one. */
int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_trusted_is_asked),
		cmocka_unit_test(without_a_file_those_of_the_system_are_trusted),
		cmocka_unit_test(a_client_shows_its_certificate),
		cmocka_unit_test(it_says_who_and_where_as_without_tls),
		cmocka_unit_test(what_is_long_goes_in_parts),
		cmocka_unit_test(leases_are_lent),
		cmocka_unit_test(nodes_hear_of_each_other),
		cmocka_unit_test(who_is_not_trusted_is_asked_nothing),
		cmocka_unit_test(who_shows_no_certificate_where_one_is_wanted),
		cmocka_unit_test(a_plain_port_does_not_speak_tls),
		cmocka_unit_test(a_port_of_tls_is_not_asked_in_plain),
		cmocka_unit_test(a_server_that_stops_while_hands_are_shaken),
		cmocka_unit_test(a_server_that_hangs_up_while_hands_are_shaken),
		cmocka_unit_test(files_that_are_not_what_they_should_be),
		cmocka_unit_test(connections_are_made_anew_under_load),
		cmocka_unit_test(
		    sessions_that_are_negotiated_again_are_made_anew_under_load),
		cmocka_unit_test(a_server_that_negotiates_at_once_is_told_of),
		cmocka_unit_test(a_sentinel_and_its_primary_are_asked_in_tls),
		cmocka_unit_test(the_nodes_of_a_cluster_are_asked_in_tls),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, open_all, close_all);
}
