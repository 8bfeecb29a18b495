/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stream_test.c -- a socket of ours does nothing to its host: no signal when the other end
 * has gone (H5), nothing left to programs that the host becomes (H6), no waiting.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stores/stream.h"
#include "tests/support/must.h"

static struct scene {
	char folder[32];
	char path[64];
	int listener;
	struct stream stream;
	int other; /* end of it */
} s;

static int open_scene(void **state)
{
	struct stream_address address;

	(void)state;
	strcpy(s.folder, "/tmp/gale-stream-XXXXXX");
	must(mkdtemp(s.folder) != NULL);
	snprintf(s.path, sizeof(s.path), "%s/socket", s.folder);
	must(stream_unix(s.path, &address));
	s.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(s.listener, (const struct sockaddr *)&address.bytes, address.count) ==
	     0);
	must(listen(s.listener, 1) == 0);
	stream_init(&s.stream, /* watch_fd= */ -1);
	must(stream_connect(&s.stream, &address));
	s.other = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);
	must(s.other >= 0);
	must(stream_turn(&s.stream) == STREAM_OPEN);
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	stream_close(&s.stream);
	close(s.listener);
	must(unlink(s.path) == 0 && rmdir(s.folder) == 0);
	return 0;
}

/* Also where this machine has only itself to talk to. */
static void an_address_that_is_spelt_out_is_not_looked_up(void **state)
{
	struct stream_address found[2];

	(void)state;
	assert_int_equal(stream_resolve("::1", 6379, found, 2), 1);
	assert_int_equal(((struct sockaddr *)&found[0].bytes)->sa_family, AF_INET6);
	assert_int_equal(stream_resolve("127.0.0.1", 6379, found, 2), 1);
	assert_int_equal(((struct sockaddr *)&found[0].bytes)->sa_family, AF_INET);
}

/* A host's own SIGPIPE, which ends it. */
static void sending_to_nobody_is_no_signal(void **state)
{
	struct sigaction before, deadly = { .sa_handler = SIG_DFL };

	(void)state;
	must(sigaction(SIGPIPE, &deadly, &before) == 0);
	close(s.other);
	assert_int_equal(stream_send(&s.stream, (const uint8_t *)"PING", 4), -1);
	assert_int_equal(errno, EPIPE);
	must(sigaction(SIGPIPE, &before, NULL) == 0);
}

static void it_ends_with_the_program_and_never_waits(void **state)
{
	uint8_t byte;

	(void)state;
	assert_true(fcntl(s.stream.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(s.stream.fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(stream_read(&s.stream, &byte, 1), 0);
	close(s.other);
	assert_int_equal(stream_read(&s.stream, &byte, 1), -1);
	assert_int_equal(errno, 0);
}

/* What has no room goes when there is some. */
static void what_nobody_reads_is_not_waited_for(void **state)
{
	static uint8_t bytes[1 << 20];
	ptrdiff_t sent, sum = 0;

	(void)state;
	while ((sent = stream_send(&s.stream, bytes, sizeof(bytes))) > 0)
		sum += sent;
	assert_int_equal(sent, 0);
	assert_true(sum > 0);
	close(s.other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
		cmocka_unit_test(an_address_that_is_spelt_out_is_not_looked_up),
		TEST(sending_to_nobody_is_no_signal),
		TEST(it_ends_with_the_program_and_never_waits),
		TEST(what_nobody_reads_is_not_waited_for),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
