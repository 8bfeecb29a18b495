/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* names_test.c -- hosts that move, and a resolver that takes its time. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "runtime/atomic.h"
#include "stores/names.h"
#include "tests/support/must.h"

#define SECOND_NS UINT64_C(1000000000)
#define HOSTS 3

/* A resolver that says what the test wants, and when. */
static struct {
	_Atomic uint32_t address[HOSTS]; /* by the first letter of the name; 0: none */
	_Atomic unsigned looks;
	_Atomic unsigned left;
	_Atomic bool is_slow;
	_Atomic bool is_apart;
	sem_t may_go_on;
} resolver;

/* On a thread of its own: named, and deaf to the host's signals. */
static void look_around(void)
{
	char name[16];
	sigset_t blocked;

	must(pthread_getname_np(pthread_self(), name, sizeof(name)) == 0);
	must(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
	store_relaxed(&resolver.is_apart, strcmp(name, "gale-names") == 0 &&
	                                      sigismember(&blocked, SIGTERM) == 1);
}

static size_t resolve(const char *host, uint16_t port,
                      struct stream_address *ret_addresses, size_t most)
{
	uint32_t address;

	add_relaxed(&resolver.looks, 1);
	if (load_relaxed(&resolver.is_slow)) {
		must(sem_wait(&resolver.may_go_on) == 0);
		look_around();
	}
	address = load_relaxed(&resolver.address[host[0] - 'a']);
	must(most == STREAM_ADDRESSES_MOST);
	if (address != 0) {
		struct sockaddr_in *at = (struct sockaddr_in *)&ret_addresses[0].bytes;

		ret_addresses[0] = (struct stream_address){ .count = sizeof(*at) };
		at->sin_family = AF_INET;
		at->sin_port = htons(port);
		at->sin_addr.s_addr = htonl(address);
	}
	add_relaxed(&resolver.left, 1);
	return address != 0;
}

/* What was refused, or warned of. */
static struct url_fault fault;

static void open_names(struct names *names, struct url *url, const char *text)
{
	fault = (struct url_fault){ .text = "" };
	memset(&resolver, 0, sizeof(resolver));
	must(sem_init(&resolver.may_go_on, 0, 0) == 0);
	for (uint32_t i = 0; i < HOSTS; i++)
		store_relaxed(&resolver.address[i], i + 1);
	assert_true(url_parse(text, url, &fault));
	names_open(names, url, 7, resolve, &fault);
}

static void assert_found(struct names *names, size_t i, uint8_t host, uint32_t address,
                         uint16_t port)
{
	struct names_found found;
	const struct sockaddr_in *at;

	names_list(names, &found);
	assert_true(i < found.count);
	at = (const struct sockaddr_in *)&found.addresses[i].bytes;
	assert_int_equal(found.hosts[i], host);
	assert_int_equal(ntohl(at->sin_addr.s_addr), address);
	assert_int_equal(ntohs(at->sin_port), port);
}

static bool has_looked(void *arg)
{
	return load_relaxed(&resolver.left) >= *(const unsigned *)arg;
}

/* The thread hands over what it has found after it has looked. */
static bool is_at(void *arg)
{
	struct names *names = arg;
	struct names_found found;
	const struct sockaddr_in *at;

	names_list(names, &found);
	at = (const struct sockaddr_in *)&found.addresses[0].bytes;
	return ntohl(at->sin_addr.s_addr) == load_relaxed(&resolver.address[0]);
}

static void names_are_looked_up_when_opened(void **state)
{
	struct names names;
	struct url url;

	(void)state;
	open_names(&names, &url, "redis://a,b:9");
	assert_int_equal(resolver.looks, 2);
	assert_string_equal(fault.text, "");
	assert_found(&names, 0, 0, 1, 7);
	assert_found(&names, 1, 1, 2, 9);
	names_close(&names);
}

static void who_is_not_found_at_first_is_looked_up_again(void **state)
{
	struct names_found found;
	struct names names;
	struct url url;

	(void)state;
	open_names(&names, &url, "redis://a");
	names_close(&names);
	store_relaxed(&resolver.address[0], 0);
	names_open(&names, &url, 7, resolve, &fault);
	assert_int_equal(fault.err, GALE_ERR_OK);
	assert_string_equal(fault.text,
	                    "url: no address is known of a; it is looked up "
	                    "again");
	names_list(&names, &found);
	assert_int_equal(found.count, 0);
	store_relaxed(&resolver.address[0], 77);
	names_look_again(&names, (mono){ SECOND_NS });
	assert_true(becomes_true(is_at, &names));
	names_close(&names);
	assert_true(url_parse("redis://c,a", &url, &fault));
	store_relaxed(&resolver.address[0], 0);
	store_relaxed(&resolver.address[2], 0);
	names_open(&names, &url, 7, resolve, &fault);
	assert_string_equal(fault.text,
	                    "url: no address is known of c, nor of any other "
	                    "host; it is looked up again");
	names_close(&names);
}

static void a_host_that_moves_is_followed(void **state)
{
	struct names names;
	struct url url;

	(void)state;
	open_names(&names, &url, "redis://a");
	store_relaxed(&resolver.address[0], 77);
	assert_found(&names, 0, 0, 1, 7); /* nobody has looked */
	names_look_again(&names, (mono){ SECOND_NS });
	assert_true(becomes_true(is_at, &names));
	store_relaxed(&resolver.address[0], 88);
	names_look_again(&names, (mono){ 7 * SECOND_NS });
	assert_true(becomes_true(is_at, &names));
	names_close(&names);
}

static void nobody_waits_for_a_slow_resolver(void **state)
{
	struct names names;
	struct url url;

	(void)state;
	open_names(&names, &url, "redis://a");
	store_relaxed(&resolver.is_slow, true);
	store_relaxed(&resolver.address[0], 77);
	for (uint64_t i = 1; i < 100; i++) {
		names_look_again(&names, (mono){ i * SECOND_NS });
		assert_found(&names, 0, 0, 1, 7);
	}
	assert_in_range(load_relaxed(&resolver.looks), 1, 2); /* one at a time */
	must(sem_post(&resolver.may_go_on) == 0);
	assert_true(becomes_true(is_at, &names));
	assert_true(load_relaxed(&resolver.is_apart));
	names_close(&names);
}

static void names_are_not_looked_up_all_the_time(void **state)
{
	struct names names;
	struct url url;
	unsigned looks = 2;

	(void)state;
	open_names(&names, &url, "redis://a");
	for (uint64_t i = 0; i < 5; i++) {
		names_look_again(&names, (mono){ (10 + i) * SECOND_NS });
		assert_true(becomes_true(has_looked, &looks));
	}
	assert_int_equal(load_relaxed(&resolver.looks), 2);
	names_close(&names);
}

static void who_is_not_found_again_stays_where_it_was(void **state)
{
	struct names names;
	struct url url;
	uint64_t s = 1;

	(void)state;
	open_names(&names, &url, "redis://b,a");
	store_relaxed(&resolver.address[1], 0);
	store_relaxed(&resolver.address[0], 77);
	while (load_relaxed(&resolver.looks) < 6) /* the second after the first */
		names_look_again(&names, (mono){ 6 * s++ * SECOND_NS });
	assert_found(&names, 0, 0, 2, 7);
	assert_found(&names, 1, 1, 77, 7);
	names_close(&names);
}

static void what_is_spelled_out_is_not_looked_up_again(void **state)
{
	struct names names;
	struct url url;

	(void)state;
	assert_true(url_parse("redis://127.0.0.1,[::1]:8", &url, &fault));
	names_open(&names, &url, 7, stream_resolve, &fault);
	names.fixed.lookup = NULL; /* it would be called */
	names_look_again(&names, (mono){ SECOND_NS });
	assert_false(names.locked.has_thread);
	assert_found(&names, 0, 0, INADDR_LOOPBACK, 7);
	names_close(&names);
}

static void *let_go_soon(void *arg)
{
	(void)arg;
	must(sem_post(&resolver.may_go_on) == 0);
	return NULL;
}

static void closing_waits_for_who_is_looking(void **state)
{
	struct names names;
	struct url url;
	pthread_t thread;

	(void)state;
	open_names(&names, &url, "redis://a");
	store_relaxed(&resolver.is_slow, true);
	names_look_again(&names, (mono){ SECOND_NS });
	must(pthread_create(&thread, NULL, let_go_soon, NULL) == 0);
	names_close(&names);
	assert_int_equal(load_relaxed(&resolver.left), 2);
	must(pthread_join(thread, NULL) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_looked_up_when_opened),
		cmocka_unit_test(who_is_not_found_at_first_is_looked_up_again),
		cmocka_unit_test(a_host_that_moves_is_followed),
		cmocka_unit_test(nobody_waits_for_a_slow_resolver),
		cmocka_unit_test(names_are_not_looked_up_all_the_time),
		cmocka_unit_test(who_is_not_found_again_stays_where_it_was),
		cmocka_unit_test(what_is_spelled_out_is_not_looked_up_again),
		cmocka_unit_test(closing_waits_for_who_is_looking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
