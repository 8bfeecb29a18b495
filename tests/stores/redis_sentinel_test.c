/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_sentinel_test.c -- a primary fails, a replica takes over, and limiters follow.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/customs.h"
#include "tests/support/late_name.h"
#include "tests/support/lines.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/next_window.h"
#include "tests/support/node.h"
#include "tests/support/redis_sentinel.h"
#include "tests/support/windows.h"

#define WINDOW GALE_MILLIS(300)
#define LIMIT 40
/* A fail-over that did not come about is tried again after twice its time-out. */
#define PATIENCE_NS UINT64_C(60000000000)
#define DURABLE_LIMIT 2000

struct scene {
	struct redis_sentinel sentinel;
	struct node node;
	struct windows windows;
	uint64_t limit;
	uint64_t batch;         /* of leases; 0: as learned */
	uint64_t patience_us;   /* of the limiter; 0: the default */
	uint64_t quarantine_us; /* of the store; 0: the default */
	struct lines lines;
};

static struct scene s;

/* ---- Servers and a sentinel ------------------------------------------------------ */

static bool is_primary(int i)
{
	struct redis_talk talk;
	redisReply *reply;
	bool is;

	redis_talk_open(&talk, &s.sentinel.servers[i]);
	reply = redis_talk_say(&talk, "INFO replication");
	is = strstr(reply->str, "role:master") != NULL;
	redis_reply_free(reply);
	redis_talk_close(&talk);
	return is;
}

static bool has_switched(void *arg)
{
	return redis_sentinel_switches(arg) > 0;
}

static int open_scene(int servers)
{
	memset(&s, 0, sizeof(s));
	lines_open(&s.lines);
	redis_sentinel_start(&s.sentinel, servers);
	return 0;
}

static int open_servers(void **state)
{
	(void)state;
	return open_scene(2);
}

static int open_three(void **state)
{
	(void)state;
	return open_scene(3);
}

static int close_servers(void **state)
{
	(void)state;
	redis_sentinel_stop(&s.sentinel);
	return 0;
}

/* ---- A limiter ------------------------------------------------------------------- */

static void open_limiter_of(const char *url, struct gale_rule rule, enum gale_mode mode)
{
	struct node_plan plan = {
		.url = url,
		.quarantine_us = s.quarantine_us,
		.log = &s.lines.log,
		.limiter = { .name = "api",
		             .rule = rule,
		             .mode = mode,
		             .lease.patience_us = s.patience_us,
		             .lease.sizing =
		                 s.batch > 0 ? GALE_SIZE_FIXED : GALE_SIZE_LEARNED,
		             .lease.batch = s.batch },
	};

	s.limit = rule.limit;
	node_open(&s.node, &plan);
	s.windows = (struct windows){ .length_us = rule.period_us };
}

static void open_rule(const char *service, struct gale_rule rule, enum gale_mode mode)
{
	char url[96];

	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/%s", s.sentinel.port,
	         service);
	open_limiter_of(url, rule, mode);
}

static void open_limiter(const char *service, enum gale_mode mode)
{
	open_rule(service, gale_fixed_window(LIMIT, WINDOW), mode);
}

static void close_limiter(void)
{
	node_close(&s.node);
}

static bool ask(void)
{
	bool admitted =
	    windows_ask(&s.windows, s.node.seat, s.node.limiter, GALE_MILLIS(200));

	assert_in_range(s.windows.most, 0, s.limit); /* L1, L12 */
	return admitted;
}

static void ask_for_nothing(void *arg)
{
	(void)arg;
	assert_false(ask());
}

static void ask_until_allowed(unsigned times)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	while (times > 0) {
		times -= ask();
		nap(200);
		assert_true(patience_now_ns() < deadline);
	}
}

/* ---- Tests ----------------------------------------------------------------------- */

static void fails_over(struct gale_rule rule, enum gale_mode mode)
{
	open_rule("main", rule, mode);
	ask_until_allowed(3 * LIMIT);
	redis_server_kill(&s.sentinel.servers[0]);
	while (ask())
		continue;             /* from what is in hand */
	ask_until_allowed(3 * LIMIT); /* by the other one now */
	close_limiter();
}

static void a_sentinel_whose_name_is_known_later_is_found(void **state)
{
	char url[96];

	(void)state;
	snprintf(url, sizeof(url), "redis+sentinel://" LATE_NAME ":%d/main",
	         s.sentinel.port);
	late_name_is_known(false);
	open_limiter_of(url, gale_fixed_window(LIMIT, WINDOW), GALE_STRICT);
	assert_true(lines_have(&s.lines, "url: no address is known of " LATE_NAME));
	assert_true(lines_will_have_asking(&s.lines, "no address is known of its host",
	                                   ask_for_nothing, NULL));
	late_name_is_known(true);
	ask_until_allowed(2 * LIMIT);
	close_limiter();
}

static void a_leased_limiter_follows_the_primary(void **state)
{
	(void)state;
	fails_over(gale_fixed_window(LIMIT, WINDOW), GALE_LEASED);
}

static void a_strict_limiter_follows_the_primary(void **state)
{
	(void)state;
	fails_over(gale_fixed_window(LIMIT, WINDOW), GALE_STRICT);
}

static void a_strategy_of_ones_own_follows_the_primary(void **state)
{
	(void)state;
	fails_over(custom_window(LIMIT, WINDOW), GALE_CACHED_DENY);
}

/* The third takes over from the second as soon as that has granted anything; but a sentinel
 * whose new primary dies before it has switched to it waits for that one for ever. */
static void fails_over_twice(enum gale_mode mode)
{
	int first = 0, second;

	open_limiter("main", mode);
	ask_until_allowed(LIMIT);
	redis_server_kill(&s.sentinel.servers[first]);
	while (ask())
		continue;
	ask_until_allowed(1);
	must(becomes_true(has_switched, &s.sentinel));
	second = is_primary(1) ? 1 : 2;
	redis_server_kill(&s.sentinel.servers[second]);
	while (ask())
		continue;
	ask_until_allowed(3 * LIMIT);
	close_limiter();
}

static void two_fail_overs_in_a_row_are_followed(void **state)
{
	(void)state;
	fails_over_twice(GALE_LEASED);
}

/* One that was replaced, and does not know it yet, is asked for half a second at most. */
static void a_primary_that_was_replaced_is_left(void **state)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;
	struct gale_counts counts = { 0 };

	(void)state;
	open_limiter("main", GALE_STRICT);
	ask_until_allowed(LIMIT);
	redis_server_do(&s.sentinel.servers[1], "REPLICAOF NO ONE");
	redis_server_pause(&s.sentinel.servers[0]);
	while (counts.connects < 2) { /* the sentinel takes its time */
		(void)ask();
		counts = node_stats(&s.node);
		assert_true(patience_now_ns() < deadline);
	}
	redis_server_go_on(&s.sentinel.servers[0]);
	ask_until_allowed(3 * LIMIT);
	close_limiter();
}

/* ---- A primary that does not know that it is none ------------------------------ */

/* A sentinel that tells what the test says, to one client at a time. */
static struct teller {
	int listener;
	uint16_t port;
	pthread_t thread;
	_Atomic int primary;
	_Atomic bool stopping;
} teller;

static void tell(int fd)
{
	const char *port = s.sentinel.ports[load_relaxed(&teller.primary)];
	char text[64];
	int count =
	    snprintf(text, sizeof(text), "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n",
	             strlen(port), port);

	must(send(fd, text, (size_t)count, MSG_NOSIGNAL) == count);
}

static void *teller_main(void *arg)
{
	char said[512];

	(void)arg;
	while (!load_relaxed(&teller.stopping)) {
		int fd = accept4(teller.listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			break; /* it was shut */
		while (recv(fd, said, sizeof(said), 0) > 0)
			tell(fd);
		close(fd);
	}
	return NULL;
}

static void teller_open(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);

	memset(&teller, 0, sizeof(teller));
	teller.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(teller.listener, (struct sockaddr *)&address, size) == 0);
	must(listen(teller.listener, 8) == 0);
	must(getsockname(teller.listener, (struct sockaddr *)&address, &size) == 0);
	teller.port = ntohs(address.sin_port);
	must(pthread_create(&teller.thread, NULL, teller_main, NULL) == 0);
}

static bool has_key(int i)
{
	struct redis_talk talk;
	redisReply *keys;
	bool has;

	redis_talk_open(&talk, &s.sentinel.servers[i]);
	keys = redis_talk_say(&talk, "KEYS *limiter*");
	has = keys->elements > 0;
	redis_reply_free(keys);
	redis_talk_close(&talk);
	return has;
}

static bool asks_of_second(void *arg)
{
	(void)node_wait(arg, "k", GALE_MILLIS(200));
	return has_key(1);
}

/* It answers as ever, and the sentinel says that another is the primary: by itself nobody
 * would notice. */
static void a_primary_that_lives_on_is_left_when_a_sentinel_says_so(void **state)
{
	char url[96];
	struct node_plan plan = {
		.url = url,
		.quarantine_us = 1,
		.shards = 1,
		.limiter = { .name = "limiter",
		             .rule = gale_fixed_window(1000000, GALE_DAYS(3650)),
		             .mode = GALE_STRICT },
	};
	uint64_t began;
	struct node node;

	(void)state;
	redis_sentinel_end(&s.sentinel); /* which would make them one again */
	redis_server_do(&s.sentinel.servers[1], "REPLICAOF NO ONE");
	teller_open();
	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%u/main", teller.port);
	node_open(&node, &plan);
	while (node_wait(&node, "k", GALE_MILLIS(200)).verdict != GALE_ALLOW)
		nap(GALE_MILLIS(10));
	assert_true(has_key(0));
	assert_false(has_key(1));
	store_relaxed(&teller.primary, 1);
	began = patience_now_ns();
	assert_true(becomes_true(asks_of_second, &node));
	print_message("left after %u ms\n",
	              (unsigned)((patience_now_ns() - began) / 1000000));
	store_relaxed(&teller.stopping, true);
	node_close(&node);
	must(shutdown(teller.listener, SHUT_RDWR) == 0);
	must(pthread_join(teller.thread, NULL) == 0);
	close(teller.listener);
}

/* ---- Granted durably ------------------------------------------------------------- */

static void open_durable(const char *options, enum gale_mode mode)
{
	char url[96];

	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/main%s",
	         s.sentinel.port, options);
	s.quarantine_us = GALE_DAYS(1); /* who waits at all waits for ever */
	open_limiter_of(url, gale_fixed_window(DURABLE_LIMIT, GALE_DAYS(1)), mode);
}

static void ask_for(uint64_t ms)
{
	uint64_t deadline = patience_now_ns() + UINT64_C(1000000) * ms;

	while (patience_now_ns() < deadline) {
		(void)ask();
		nap(GALE_MILLIS(ms / 400));
	}
}

static void goes_on(enum gale_mode mode)
{
	redis_server_settle_durable(&s.sentinel.servers[0], "gale:", 1);
	open_durable("?durable=1", mode);
	ask_for(4000); /* what is stored is then of younger days than who stores it */
	assert_in_range(s.windows.most, 100, DURABLE_LIMIT / 2);
	redis_server_kill(&s.sentinel.servers[0]);
	while (ask())
		continue;                           /* from what is in hand */
	ask_until_allowed(DURABLE_LIMIT / 2 - 100); /* some answers may be late */
	while (ask())
		continue;
	assert_in_range(s.windows.most, DURABLE_LIMIT / 2, DURABLE_LIMIT);
	close_limiter();
}

/* Who takes over knows all that was granted, and nobody waits. */
static void what_replicas_confirmed_is_gone_on_with(void **state)
{
	(void)state;
	goes_on(GALE_STRICT);
}

static void what_replicas_confirmed_is_lent_on(void **state)
{
	(void)state;
	s.batch = 20;
	goes_on(GALE_LEASED);
}

/* Somebody is there, and grants nothing. */
static void assert_quarantine(void)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;
	unsigned denied = 0;

	while (denied < 200) {
		struct gale_answer answer = node_wait(&s.node, "k", GALE_MILLIS(200));

		assert_int_equal(answer.verdict, GALE_DENY);
		denied += answer.why == GALE_WHY_QUARANTINE;
		nap(GALE_MILLIS(2));
		if (patience_now_ns() >= deadline) {
			lines_show(&s.lines);
			fail_msg("%u denials", denied);
		}
	}
}

static void waits_after_a_fail_over(const char *options)
{
	redis_server_settle(&s.sentinel.servers[0], "gale:");
	open_durable(options, GALE_STRICT);
	ask_for(4000);
	assert_in_range(s.windows.most, 100, DURABLE_LIMIT / 2);
	redis_server_kill(&s.sentinel.servers[0]);
	assert_quarantine();
	close_limiter();
}

static void what_nobody_confirmed_may_be_forgotten(void **state)
{
	(void)state;
	waits_after_a_fail_over("");
}

/* One who did not wait for replicas was there in the same life. */
static void who_does_not_wait_for_replicas_spoils_it_for_all(void **state)
{
	(void)state;
	waits_after_a_fail_over("?durable=1");
	assert_true(lines_have(&s.lines, "without durable="));
}

static void who_would_not_wait_for_replicas_is_not_let_in(void **state)
{
	(void)state;
	redis_server_settle_durable(&s.sentinel.servers[0], "gale:", 1);
	open_durable("", GALE_STRICT);
	assert_true(lines_will_have_asking(&s.lines, "durable=1 is what others say",
	                                   ask_for_nothing, NULL));
	close_limiter();
}

static void read_info(const struct redis_server *server, const char *name, char *out)
{
	struct redis_talk talk;
	redisReply *info;
	const char *at;

	redis_talk_open(&talk, server);
	info = redis_talk_say(&talk, "INFO replication");
	at = strstr(info->str, name);
	must(at != NULL);
	snprintf(out, 41, "%.40s", at + strlen(name));
	redis_reply_free(info);
	redis_talk_close(&talk);
}

/* It says that it goes on with the history that it has found, which is too short. */
static void a_primary_that_comes_back_from_its_disk_goes_on_with_nothing(void **state)
{
	char url[64], before[41], after[41];

	(void)state;
	redis_sentinel_end(&s.sentinel);
	redis_server_settle_durable(&s.sentinel.servers[0], "gale:", 1);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%s?durable=1",
	         s.sentinel.ports[0]);
	s.quarantine_us = GALE_DAYS(1);
	open_limiter_of(url, gale_fixed_window(DURABLE_LIMIT, GALE_DAYS(1)),
	                GALE_STRICT);
	ask_for(3000);
	redis_server_do(&s.sentinel.servers[0], "SAVE");
	ask_for(400);
	read_info(&s.sentinel.servers[0], "master_replid:", before);
	redis_server_restart(&s.sentinel.servers[0]);
	read_info(&s.sentinel.servers[0], "master_replid2:", after);
	assert_string_equal(before, after);
	assert_quarantine();
	close_limiter();
}

/* Replicas are waited for for half a second before each failure. */
static void too_few_replicas_are_an_outage(void **state)
{
	uint64_t before, began_ns, took_us;
	struct gale_counts counts;
	char url[64];

	(void)state;
	redis_sentinel_end(&s.sentinel);
	redis_server_settle_durable(&s.sentinel.servers[0], "gale:", 1);
	s.patience_us = GALE_SECONDS(5);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%s?durable=1",
	         s.sentinel.ports[0]);
	open_limiter_of(url, gale_fixed_window(LIMIT, GALE_DAYS(1)), GALE_STRICT);
	ask_until_allowed(1);
	redis_server_pause(&s.sentinel.servers[1]);
	before = node_stats(&s.node).failures;
	began_ns = patience_now_ns();
	assert_int_equal(node_wait(&s.node, "k", GALE_SECONDS(5)).why, GALE_WHY_DOWN);
	assert_true(lines_will_have(&s.lines, "durable= says have it after"));
	counts = node_stats(&s.node);
	took_us = (patience_now_ns() - began_ns) / 1000;
	assert_in_range(counts.failures, 1, before + 1 + took_us / GALE_MILLIS(500));
	redis_server_kill(&s.sentinel.servers[1]);
	while (!lines_have(&s.lines, "it has fewer replicas than durable= says"))
		assert_false(ask());
	close_limiter();
}

/* ---- What nobody is told --------------------------------------------------------- */

/* Nobody else asks meanwhile: the shard is to wake by itself. */
static void a_sentinel_that_is_silent_is_passed_over_in_time(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct gale_counts counts;
	char url[96];

	(void)state;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(bind(silent, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(listen(silent, 8) == 0);
	must(getsockname(silent, (struct sockaddr *)&address, &size) == 0);
	s.patience_us = GALE_SECONDS(5);
	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/main",
	         ntohs(address.sin_port), s.sentinel.port);
	open_limiter_of(url, gale_fixed_window(LIMIT, WINDOW), GALE_STRICT);
	(void)node_wait(&s.node, "k", GALE_SECONDS(5));
	counts = node_stats(&s.node);
	assert_int_equal(counts.failures, 0);
	assert_int_equal(counts.connects, 1);
	close_limiter();
	close(silent);
}

/* A server that was a replica meanwhile has forgotten, and says nothing of it by itself. */
static void who_was_a_replica_for_a_moment_has_forgotten(void **state)
{
	struct redis_server *primary = &s.sentinel.servers[0],
			    *other = &s.sentinel.servers[1];
	struct gale_counts counts;
	char command[64], url[48];

	(void)state;
	must(becomes_true(redis_is_linked, other));
	redis_sentinel_end(&s.sentinel);
	redis_server_settle(primary, "gale:");
	must(becomes_true(redis_is_linked, other));
	redis_server_do(primary, "WAIT 1 0");
	redis_server_do(other, "REPLICAOF NO ONE"); /* what is granted now it misses */
	snprintf(url, sizeof(url), "redis://127.0.0.1:%s", s.sentinel.ports[0]);
	s.patience_us = GALE_SECONDS(5);
	open_limiter_of(url, gale_fixed_window(LIMIT, GALE_DAYS(1)), GALE_STRICT);
	for (int i = 0; i < 2 * LIMIT; i++) /* none may be answered too late */
		(void)windows_ask(&s.windows, s.node.seat, s.node.limiter,
		                  GALE_SECONDS(5));
	assert_int_equal(s.windows.most, LIMIT);
	snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %s",
	         s.sentinel.ports[1]);
	redis_server_do(primary, command);
	must(becomes_true(redis_is_linked, primary));
	redis_server_do(primary, "REPLICAOF NO ONE");
	assert_false(ask()); /* and not LIMIT once more */
	counts = node_stats(&s.node);
	assert_int_equal(counts.failures, 0); /* it is the same connection */
	close_limiter();
}

/* What a sentinel says to a command, which is one word or begins with it. */
static bool sentinel_nods(const char *command)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons((uint16_t)s.sentinel.port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char said[4] = "";

	must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(send(fd, command, strlen(command), MSG_NOSIGNAL) > 0);
	must(recv(fd, said, sizeof(said) - 1, MSG_WAITALL) == sizeof(said) - 1);
	close(fd);
	return strcmp(said, "+OK") == 0;
}

static bool begins_to_switch(void *arg)
{
	(void)arg;
	return sentinel_nods("SENTINEL FAILOVER main\r\n");
}

struct switches {
	int before;
};

static bool has_switched_again(void *arg)
{
	const struct switches *switches = arg;

	return redis_sentinel_switches(&s.sentinel) > switches->before;
}

static void is_switched(void *arg)
{
	struct switches switches = { redis_sentinel_switches(&s.sentinel) };

	(void)arg;
	must(becomes_true(begins_to_switch, NULL));
	must(becomes_true(has_switched_again, &switches));
}

/* The latest, as whoever is no primary any more is not greeted again. */
static uint64_t since(void *arg)
{
	uint64_t one = next_window_since(&s.sentinel.servers[0], 0),
		 other = next_window_since(&s.sentinel.servers[1], 0);

	(void)arg;
	return one > other ? one : other;
}

/* No connection is lost by that for a while, and nobody asks. */
static void
the_window_after_an_orderly_fail_over_is_whole_but_for_the_reserve(void **state)
{
	(void)state;
	redis_server_settle(&s.sentinel.servers[0], "gale:");
	open_rule("main", gale_fixed_window(LIMIT, GALE_SECONDS(10)), GALE_LEASED);
	assert_int_equal(
	    next_window_gives(&(struct next_window){ .node = &s.node,
	                                             .limit = LIMIT,
	                                             .length_us = GALE_SECONDS(10),
	                                             .key = "k",
	                                             .befall = is_switched,
	                                             .since_us = since }),
	    next_window_most(LIMIT));
	close_limiter();
}

static void a_service_that_nobody_knows_is_down(void **state)
{
	struct gale_counts counts;

	(void)state;
	open_limiter("other", GALE_STRICT);
	assert_true(lines_will_have_asking(&s.lines, "knows no service other",
	                                   ask_for_nothing, NULL));
	counts = node_stats(&s.node);
	assert_int_equal(counts.connects, 0);
	close_limiter();
}

static uint64_t cpu_us(void)
{
	struct rusage usage;

	must(getrusage(RUSAGE_SELF, &usage) == 0);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* First the primary goes, and nobody asks; then the sentinel. */
static void a_sentinel_that_goes_does_not_keep_anybody_busy(void **state)
{
	uint64_t before;

	(void)state;
	open_limiter("main", GALE_STRICT);
	ask_until_allowed(1);
	redis_server_kill(&s.sentinel.servers[0]);
	nap(GALE_MILLIS(200));
	must(kill(s.sentinel.pid, SIGKILL) == 0);
	nap(GALE_MILLIS(200));
	before = cpu_us();
	nap(GALE_MILLIS(1000));
	assert_in_range(cpu_us() - before, 0, GALE_MILLIS(100));
	close_limiter();
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_leased_limiter_follows_the_primary,
		                                open_servers, close_servers),
		cmocka_unit_test_setup_teardown(a_strict_limiter_follows_the_primary,
		                                open_servers, close_servers),
		cmocka_unit_test_setup_teardown(
		    a_strategy_of_ones_own_follows_the_primary, open_servers,
		    close_servers),
		cmocka_unit_test_setup_teardown(a_primary_that_was_replaced_is_left,
		                                open_servers, close_servers),
		cmocka_unit_test_setup_teardown(
		    a_sentinel_that_goes_does_not_keep_anybody_busy, open_servers,
		    close_servers),
		cmocka_unit_test_setup_teardown(
		    who_was_a_replica_for_a_moment_has_forgotten, open_servers,
		    close_servers),
		cmocka_unit_test_setup_teardown(
		    a_sentinel_that_is_silent_is_passed_over_in_time, open_servers,
		    close_servers),
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, close_servers)
		TEST(two_fail_overs_in_a_row_are_followed, open_three),
		TEST(a_primary_that_lives_on_is_left_when_a_sentinel_says_so,
		     open_servers),
		TEST(what_replicas_confirmed_is_gone_on_with, open_three),
		TEST(what_replicas_confirmed_is_lent_on, open_three),
		TEST(what_nobody_confirmed_may_be_forgotten, open_three),
		TEST(who_does_not_wait_for_replicas_spoils_it_for_all, open_three),
		TEST(who_would_not_wait_for_replicas_is_not_let_in, open_servers),
		TEST(a_primary_that_comes_back_from_its_disk_goes_on_with_nothing,
		     open_servers),
		TEST(too_few_replicas_are_an_outage, open_servers),
		TEST(a_sentinel_whose_name_is_known_later_is_found, open_servers),
		TEST(the_window_after_an_orderly_fail_over_is_whole_but_for_the_reserve,
		     open_servers),
#undef TEST
		cmocka_unit_test_setup_teardown(a_service_that_nobody_knows_is_down,
		                                open_servers, close_servers),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
