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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gale/guard.h>

#include "runtime/clock.h"
#include "tests/support/late.h"
#include "tests/support/lines.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/port.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/scratch.h"
#include "tests/support/secure_server.h"
#include "tests/support/weather.h"

#define PATIENT GALE_SECONDS(10)
#define URL_ROOM 512
#define BEAT GALE_SECONDS(3)
#define CUTS 40

static char folder[64];
static struct certificate ca, other_ca, good, elsewhere, expired, client;
static struct secure_server server; /* good, and asks for no certificate */

/* ---- Servers --------------------------------------------------------------------- */

static void make(struct certificate *made, const char *name, const char *names,
                 const struct certificate *by, int to_days)
{
	const struct certificate_plan plan = { .folder = folder,
		                               .name = name,
		                               .names = names,
		                               .by = by,
		                               .from_days = -10,
		                               .to_days = to_days };

	certificate_make(made, &plan);
}

static void start(struct secure_server *made, const struct certificate *shown,
                  const char *clients)
{
	secure_server_start(made, shown, &ca, clients);
	redis_server_settle(&made->is, "gale:");
}

static const char *url_of(char url[URL_ROOM], const char *port, const char *options)
{
	snprintf(url, URL_ROOM, "rediss://127.0.0.1:%s?%s", port, options);
	return url;
}

static const char *trusting(const struct certificate *it, const char *more)
{
	static char options[URL_ROOM];

	snprintf(options, sizeof(options), "ca=%s%s", it->cert, more);
	return options;
}

static int open_all(void **state)
{
	(void)state;
	scratch_make(folder, sizeof(folder), "tls");
	make(&ca, "ca", NULL, NULL, 10);
	make(&other_ca, "other", NULL, NULL, 10);
	make(&good, "good", "DNS:localhost,IP:127.0.0.1", &ca, 10);
	make(&elsewhere, "elsewhere", "DNS:redis.example", &ca, 10);
	make(&expired, "expired", "IP:127.0.0.1", &ca, -1);
	make(&client, "client", "DNS:client", &ca, 10);
	start(&server, &good, "no");
	return 0;
}

static void drop(struct certificate *it)
{
	must(unlink(it->cert) == 0 && unlink(it->key) == 0);
	certificate_free(it);
}

static int close_all(void **state)
{
	(void)state;
	secure_server_stop(&server);
	drop(&ca);
	drop(&other_ca);
	drop(&good);
	drop(&elsewhere);
	drop(&expired);
	drop(&client);
	must(rmdir(folder) == 0);
	return 0;
}

/* ---- Nodes ----------------------------------------------------------------------- */

struct node {
	struct test_allocator allocator;
	struct lines lines;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

static enum gale_err node_start(struct node *node, const char *url)
{
	const struct gale_store_config config = { .url = url };
	struct gale_config runtime = { .shards = 1,
		                       .allocator = &node->allocator.allocator,
		                       .log = &node->lines.log };

	memset(node, 0, sizeof(*node));
	lines_open(&node->lines);
	test_allocator_init(&node->allocator);
	must(gale_runtime_open(&runtime, &node->runtime) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
	return gale_store_open(node->runtime, &config, &node->store);
}

static void node_open(struct node *node, const char *url, struct gale_rule rule,
                      enum gale_mode mode)
{
	static unsigned limiters; /* so far: each has keys of its own */
	char name[24];
	struct gale_limiter_config config = {
		.name = name, .rule = rule, .mode = mode, .lease.patience_us = PATIENT
	};

	snprintf(name, sizeof(name), "limiter %u", limiters++);
	must(node_start(node, url) == GALE_ERR_OK);
	config.store = node->store;
	must(gale_limiter_open(node->runtime, &config, &node->limiter) == GALE_ERR_OK);
}

static void node_end(struct node *node)
{
	gale_leave(node->seat);
	if (node->limiter)
		gale_limiter_close(node->limiter);
	if (node->store)
		gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	assert_true(test_allocator_is_balanced(&node->allocator));
}

static struct gale_answer ask(struct node *node, const char *key, uint64_t cost)
{
	return gale_wait(node->seat, node->limiter, key, strlen(key), cost, PATIENT);
}

static bool is_answered(void *arg)
{
	return !is_late(ask(arg, "k", 1));
}

static void becomes(bool (*holds)(void *arg), struct node *node)
{
	if (becomes_true(holds, node))
		return;
	lines_show(&node->lines);
	fail_msg("it does not come to that");
}

/* A busy machine may let a connection's second pass. */
static void await_answer(struct node *node)
{
	becomes(is_answered, node);
}

static void ask_once(void *arg)
{
	(void)ask(arg, "k", 1);
}

/* ---- What comes about ------------------------------------------------------------ */

static void let_in(const char *url)
{
	struct node node;

	node_open(&node, url, gale_fixed_window(9, GALE_HOURS(1)), GALE_STRICT);
	await_answer(&node);
	node_end(&node);
}

static void who_is_trusted_is_asked(void **state)
{
	char url[URL_ROOM];

	(void)state;
	let_in(url_of(url, server.port, trusting(&ca, "")));
	let_in(url_of(url, server.port, trusting(&ca, "&servername=localhost")));
	snprintf(url, sizeof(url), "rediss://localhost:%s?ca=%s", server.port, ca.cert);
	let_in(url);
}

/* Of OpenSSL's own ways to say which those of the system are, this is one. */
static void without_a_file_those_of_the_system_are_trusted(void **state)
{
	char url[URL_ROOM];

	(void)state;
	must(setenv("SSL_CERT_FILE", ca.cert, 1) == 0);
	let_in(url_of(url, server.port, "prefix=gale:"));
	must(unsetenv("SSL_CERT_FILE") == 0);
}

static void a_client_shows_its_certificate(void **state)
{
	struct secure_server strict;
	char url[URL_ROOM], options[URL_ROOM];

	(void)state;
	start(&strict, &good, "yes");
	snprintf(options, sizeof(options), "ca=%s&cert=%s&key=%s", ca.cert, client.cert,
	         client.key);
	let_in(url_of(url, strict.port, options));
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
	struct node node;

	(void)state;
	snprintf(url, sizeof(url), "rediss://ali:baba@127.0.0.1:%s/3?ca=%s",
	         server.port, ca.cert);
	node_open(&node, url, gale_fixed_window(9, GALE_HOURS(1)), GALE_STRICT);
	await_answer(&node);
	assert_true(is_listed(" db=3 "));
	assert_true(is_listed(" user=ali "));
	node_end(&node);
}

/* A value that is longer than a record, there and back. */
static void what_is_long_goes_in_parts(void **state)
{
	char url[URL_ROOM];
	struct node node;
	uint64_t remaining = 2000;

	(void)state;
	node_open(&node, url_of(url, server.port, trusting(&ca, "")),
	          gale_sliding_log(2000, GALE_HOURS(1)), GALE_STRICT);
	await_answer(&node);
	while (remaining > 700) {
		struct gale_answer answer = ask(&node, "long", 1);

		if (is_late(answer))
			continue;
		assert_int_equal(answer.verdict, GALE_ALLOW);
		assert_true(answer.remaining < remaining);
		remaining = answer.remaining;
	}
	node_end(&node);
}

/* Leases lie ahead, and the units of a window are the limit. */
static void leases_are_lent(void **state)
{
	char url[URL_ROOM];
	struct node node;
	int admitted = 0;

	(void)state;
	node_open(&node, url_of(url, server.port, trusting(&ca, "")),
	          gale_fixed_window(300, GALE_DAYS(1)), GALE_LEASED);
	await_answer(&node);
	for (int i = 0; i < 400; i++)
		admitted += ask(&node, "leased", 1).verdict == GALE_ALLOW;
	assert_int_equal(admitted, 300);
	node_end(&node);
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
	struct node nodes[2];
	uint64_t began_ns;

	(void)state;
	url_of(url, server.port, trusting(&ca, ""));
	for (int i = 0; i < 2; i++) {
		must(node_start(&nodes[i], url) == GALE_ERR_OK);
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
		node_end(&nodes[i]);
	}
}

/* ---- What does not --------------------------------------------------------------- */

static void refused(const char *url, const char *because)
{
	struct gale_counts counts;
	struct node node;

	node_open(&node, url, gale_fixed_window(9, GALE_HOURS(1)), GALE_STRICT);
	if (!lines_will_have_asking(&node.lines, because, ask_once, &node)) {
		lines_show(&node.lines);
		fail_msg("%s: %s", url, because);
	}
	must(gale_store_stats(node.store, &counts) == GALE_ERR_OK);
	assert_int_equal(counts.connects, 0);
	node_end(&node);
}

static void shown(const struct certificate *it, const char *because)
{
	struct secure_server other;
	char url[URL_ROOM];

	start(&other, it, "no");
	refused(url_of(url, other.port, trusting(&ca, "")), because);
	secure_server_stop(&other);
}

/* TLS-1 */
static void who_is_not_trusted_is_asked_nothing(void **state)
{
	char url[URL_ROOM];

	(void)state;
	refused(url_of(url, server.port, trusting(&other_ca, "")),
	        "the server's certificate is of no CA that is trusted; ca= names the "
	        "file of one");
	refused(url_of(url, server.port, "prefix=gale:"),
	        "is of no CA that is trusted");
	refused(url_of(url, server.port, trusting(&ca, "&servername=redis.example")),
	        "the server's certificate is not of redis.example; servername= names "
	        "another");
	shown(&elsewhere, "the server's certificate is not of 127.0.0.1");
	shown(&expired, "the server's certificate, or its CA's, has expired");
}

static void who_shows_no_certificate_where_one_is_wanted(void **state)
{
	struct secure_server strict;
	char url[URL_ROOM];

	(void)state;
	start(&strict, &good, "yes");
	refused(url_of(url, strict.port, trusting(&ca, "")),
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
	refused(url_of(url, port, trusting(&ca, "")), "its port may be one without");
	proxy_close(&proxy);
}

static void a_port_of_tls_is_not_asked_in_plain(void **state)
{
	char url[URL_ROOM];

	(void)state;
	snprintf(url, sizeof(url), "redis://127.0.0.1:%s", server.port);
	refused(url, "(rediss://)");
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
	refused(url_of(url, port, trusting(&ca, "")),
	        "no connection within a second: it has accepted, and does not agree on "
	        "TLS; its port may be one without");
	close(silent);
	proxy_open_to_port(&proxy, (uint16_t)atoi(server.port));
	snprintf(port, sizeof(port), "%u", proxy.port);
	proxy_swallow(&proxy, true);
	refused(url_of(url, port, trusting(&ca, "")), "does not agree on TLS");
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
	refused(url_of(url, port, trusting(&ca, "")),
	        "the server has hung up before TLS was agreed on");
	must(shutdown(listener, SHUT_RD) == 0);
	must(pthread_join(thread, NULL) == 0);
	close(listener);
}

static void cannot_open(const char *options, const char *because)
{
	char url[URL_ROOM];
	struct node node;

	assert_int_equal(node_start(&node, url_of(url, server.port, options)),
	                 GALE_ERR_TLS);
	if (!lines_have(&node.lines, because)) {
		lines_show(&node.lines);
		fail_msg("%s: %s", url, because);
	}
	node.store = NULL;
	node_end(&node);
}

static void files_that_are_not_what_they_should_be(void **state)
{
	char options[URL_ROOM];

	(void)state;
	cannot_open("ca=/no/such/file", "url: option ca: no certificate can be read "
	                                "from the file: ");
	snprintf(options, sizeof(options), "ca=%s", client.key);
	cannot_open(options, "url: option ca: no certificate can be read");
	snprintf(options, sizeof(options), "cert=/none&key=%s", client.key);
	cannot_open(options, "url: option cert: no certificate can be read");
	snprintf(options, sizeof(options), "cert=%s&key=%s", client.cert, good.key);
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
	    url_of(url, port, trusting(&ca, "&prefix=weather:"));
	redis_server_settle(&server.is, "weather:");
	weather_let_ask(&weather, &plan);
	assert_true(weather_recovers(&weather, PATIENT));
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
	assert_true(weather_recovers(&weather, PATIENT));
	weather_end(&weather);
	weather_was_in_time(&weather, plan.within_us + GALE_MILLIS(150));
	proxy_close(&proxy);
}

/* ---- Several servers ------------------------------------------------------------- */

static bool is_admitted(void *arg)
{
	return ask(arg, "k", 1).verdict == GALE_ALLOW;
}

static void write_sentinel(const char *path, uint16_t port)
{
	FILE *file = fopen(path, "w");

	must(file != NULL);
	fprintf(file,
	        "port 0\ntls-port %u\nbind 127.0.0.1\ndir %s\nlogfile \"\"\n"
	        "tls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\n"
	        "tls-auth-clients no\ntls-replication yes\n"
	        "sentinel monitor main 127.0.0.1 %s 1\n",
	        port, folder, good.cert, good.key, ca.cert, server.port);
	must(fclose(file) == 0);
}

static pid_t start_sentinel(const char *path)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(freopen("/dev/null", "w", stdout));
	execlp("redis-sentinel", "redis-sentinel", path, NULL);
	_exit(127);
}

/* Which has a certificate with the address that it tells; one name for all is given, too. */
static void a_sentinel_and_its_primary_are_asked_in_tls(void **state)
{
	static const char *const names[] = { "", "&servername=localhost" };
	uint16_t port = free_port();
	char path[80], url[URL_ROOM];
	struct node node;
	pid_t pid;

	(void)state;
	snprintf(path, sizeof(path), "%s/sentinel", folder);
	write_sentinel(path, port);
	pid = start_sentinel(path);
	for (int i = 0; i < 2; i++) {
		snprintf(url, sizeof(url),
		         "rediss+sentinel://127.0.0.1:%u/main?ca=%s%s", port, ca.cert,
		         names[i]);
		node_open(&node, url, gale_fixed_window(9, GALE_HOURS(1)), GALE_STRICT);
		becomes(is_admitted, &node);
		node_end(&node);
	}
	snprintf(url, sizeof(url), "rediss+sentinel://127.0.0.1:%u/main?ca=%s", port,
	         other_ca.cert);
	refused(url, "is of no CA that is trusted");
	must(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	must(unlink(path) == 0);
}

static bool are_admitted(void *arg)
{
	bool all = true;
	char key[8];

	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		all &= ask(arg, key, 1).verdict == GALE_ALLOW;
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
		                    good.cert,
		                    "--tls-key-file",
		                    good.key,
		                    "--tls-ca-cert-file",
		                    ca.cert,
		                    "--tls-auth-clients",
		                    "no",
		                    NULL };
	char url[URL_ROOM];
	struct node node;

	(void)state;
	redis_cluster_start_in_tls(&cluster, tls);
	snprintf(url, sizeof(url), "rediss+cluster://127.0.0.1:%s?ca=%s",
	         cluster.ports[0], ca.cert);
	node_open(&node, url, gale_fixed_window(999, GALE_SECONDS(1)), GALE_STRICT);
	becomes(are_admitted, &node);
	node_end(&node);
	snprintf(url, sizeof(url), "rediss+cluster://127.0.0.1:%s?ca=%s",
	         cluster.ports[0], other_ca.cert);
	refused(url, "no node tells where keys are: the server's certificate is of no "
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
		cmocka_unit_test(a_sentinel_and_its_primary_are_asked_in_tls),
		cmocka_unit_test(the_nodes_of_a_cluster_are_asked_in_tls),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, open_all, close_all);
}
