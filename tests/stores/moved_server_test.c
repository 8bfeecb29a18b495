/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * moved_server_test.c -- a server's name comes to mean another address.
 *
 * As managed servers do it when one takes over from another.  The program has a resolver of
 * its own, which knows one name, and may take as long as the test wants: until it has
 * answered, whoever asks a limiter is answered in time.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/both_servers.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/node.h"
#include "tests/support/proxy.h"

#define NAME "moving.test"
#define HERE "127.0.0.1"
#define NOBODY "127.0.0.2" /* there nothing listens on the proxy's port */
#define WITHIN GALE_MILLIS(300)
#define ASKS 50
#define PATIENCE_NS UINT64_C(60000000000)

static struct {
	_Atomic bool is_here;
	_Atomic bool is_slow;
	_Atomic unsigned looks;
	sem_t may_go_on;
} resolver;

static struct both_servers both;

/* ---- The resolver ---------------------------------------------------------------- */

struct entry {
	struct addrinfo info; /* first */
	struct sockaddr_in address;
};

static const char *look_up(const char *host)
{
	if (strcmp(host, NAME) != 0)
		return host; /* libpq asks about addresses, too */
	add_relaxed(&resolver.looks, 1);
	if (load_relaxed(&resolver.is_slow))
		must(sem_wait(&resolver.may_go_on) == 0);
	return load_relaxed(&resolver.is_here) ? HERE : NOBODY;
}

/* Instead of libc's. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_found)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	must(entry);
	entry->address.sin_family = AF_INET;
	entry->address.sin_port = htons((uint16_t)atoi(service));
	if (inet_pton(AF_INET, look_up(host), &entry->address.sin_addr) != 1) {
		free(entry);
		return EAI_NONAME;
	}
	entry->info = (struct addrinfo){
		.ai_family = AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = hints ? hints->ai_flags : 0,
		.ai_addrlen = sizeof(entry->address),
		.ai_addr = (struct sockaddr *)&entry->address,
	};
	*ret_found = &entry->info;
	return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
	free(found);
}

/* ---- A limiter ------------------------------------------------------------------- */

static void open_node(struct node *node, const char *url)
{
	node_open(node,
	          &(struct node_plan){
		      .url = url,
		      .quarantine_us = 1,
		      .shards = 2,
		      .limiter = { .name = "moved",
	                           .rule = gale_fixed_window(1000000, GALE_DAYS(365)) },
		  });
}

static enum gale_why ask(struct node *node)
{
	return node_wait(node, "k", WITHIN).why;
}

static void wait_until_decided(struct node *node)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	while (ask(node) != GALE_WHY_RULE) {
		assert_true(patience_now_ns() < deadline);
		nap(GALE_MILLIS(20));
	}
}

/* ---- Tests ----------------------------------------------------------------------- */

static void is_followed(const char *socket, const char *format)
{
	struct proxy proxy;
	struct node node;
	char url[128];

	memset(&resolver, 0, sizeof(resolver));
	must(sem_init(&resolver.may_go_on, 0, 0) == 0);
	proxy_open(&proxy, socket);
	snprintf(url, sizeof(url), format, NAME, proxy.port);
	open_node(&node, url);
	assert_int_equal(load_relaxed(&resolver.looks), 1);
	store_relaxed(&resolver.is_slow, true);
	while (load_relaxed(&resolver.looks) == 1) {
		assert_int_not_equal(ask(&node), GALE_WHY_RULE);
		nap(GALE_MILLIS(20));
	}
	for (int i = 0; i < ASKS; i++) {
		assert_int_not_equal(ask(&node), GALE_WHY_RULE);
		nap(GALE_MILLIS(20));
	}
	assert_int_equal(load_relaxed(&resolver.looks), 2);
	store_relaxed(&resolver.is_here, true);
	store_relaxed(&resolver.is_slow, false);
	must(sem_post(&resolver.may_go_on) == 0);
	wait_until_decided(&node);
	node_close(&node);
	proxy_close(&proxy);
}

static void a_redis_that_has_moved_is_followed(void **state)
{
	(void)state;
	is_followed(both.redis.socket, "redis://%s:%u");
}

static void a_postgres_that_has_moved_is_followed(void **state)
{
	char folder[64], socket[96];

	(void)state;
	must(sscanf(postgres_server_address(both.postgres), "host=%63s", folder) == 1);
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.5432", folder);
	is_followed(socket, "postgres://gale@%s:%u/postgres");
}

/* ---- Servers --------------------------------------------------------------------- */

static int start_servers(void **state)
{
	(void)state;
	both_servers_start(&both);
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	both_servers_stop(&both);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_redis_that_has_moved_is_followed),
		cmocka_unit_test(a_postgres_that_has_moved_is_followed),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
