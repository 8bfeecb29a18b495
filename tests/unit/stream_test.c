/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stream_test.c -- a socket of ours does nothing to its host: no signal when the other end
 * has gone (HIREDIS-5), nothing left to programs that the host becomes (HIREDIS-6), no
 * waiting; and its epoll tells what it should.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stores/stream.h"
#include "tests/support/must.h"

static struct scene {
	char folder[32];
	char path[64];
	int listener;
	int epoll_fd;
	struct stream stream;
	int other; /* end of it */
} s;

static void open_scene(bool early)
{
	struct stream_address address;

	strcpy(s.folder, "/tmp/gale-stream-XXXXXX");
	must(mkdtemp(s.folder) != NULL);
	snprintf(s.path, sizeof(s.path), "%s/socket", s.folder);
	must(stream_unix(s.path, &address));
	s.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(s.listener, (const struct sockaddr *)&address.bytes, address.count) ==
	     0);
	must(listen(s.listener, 1) == 0);
	s.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	must(s.epoll_fd >= 0);
	stream_init(&s.stream, (struct watch){ s.epoll_fd, early }, /* tls= */ NULL);
	must(stream_connect(&s.stream, &address));
	s.other = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);
	must(s.other >= 0);
	must(stream_turn(&s.stream) == STREAM_OPEN);
}

static int open_late(void **state)
{
	(void)state;
	open_scene(/* early= */ false);
	return 0;
}

static int open_early(void **state)
{
	(void)state;
	open_scene(/* early= */ true);
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	stream_close(&s.stream);
	close(s.listener);
	close(s.epoll_fd);
	must(unlink(s.path) == 0 && rmdir(s.folder) == 0);
	return 0;
}

/* A network of its own, with another address than its own only of IPv4: what looks a name up
 * there says of "::1" that it knows no such kind. */
static bool moves_to_where_six_is_unknown(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP }, more = { 0 };
	struct sockaddr_in *address = (struct sockaddr_in *)&more.ifr_addr;
	int fd;

	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	strcpy(more.ifr_name, "lo:1");
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(0x0a010203);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0 &&
	       ioctl(fd, SIOCSIFADDR, &more) == 0 && close(fd) == 0;
}

static bool resolves(const char *host, int family)
{
	struct stream_address found[2];

	return stream_resolve(host, 6379, found, 2) == 1 &&
	       ((const struct sockaddr *)&found[0].bytes)->sa_family == family;
}

static void an_address_that_is_spelt_out_is_not_looked_up(void **state)
{
	int status;
	pid_t child;

	(void)state;
	child = fork();
	if (child == 0)
		_exit(!moves_to_where_six_is_unknown() ? 2
		      : resolves("::1", AF_INET6) && resolves("127.0.0.1", AF_INET)
		          ? 0
		          : 1);
	must(child > 0 && waitpid(child, &status, 0) == child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A host's own SIGPIPE, which ends it. */
static void sending_to_nobody_is_no_signal(void **state)
{
	struct sigaction before, deadly = { .sa_handler = SIG_DFL };

	uint8_t byte;

	(void)state;
	must(sigaction(SIGPIPE, &deadly, &before) == 0);
	close(s.other);
	assert_int_equal(stream_send(&s.stream, (const uint8_t *)"PING", 4), 4);
	assert_int_equal(stream_read(&s.stream, &byte, 1), -1);
	assert_int_equal(errno, EPIPE);
	must(sigaction(SIGPIPE, &before, NULL) == 0);
}

/* A server that refuses a client says why, and closes, while the client sends. */
static void what_was_said_last_is_read_after_a_send_in_vain(void **state)
{
	uint8_t bytes[4];

	(void)state;
	must(send(s.other, "full", 4, MSG_NOSIGNAL) == 4);
	close(s.other);
	for (int i = 0; i < 2; i++)
		assert_int_equal(stream_send(&s.stream, (const uint8_t *)"PING", 4), 4);
	assert_int_equal(stream_read(&s.stream, bytes, sizeof(bytes)), 4);
	assert_memory_equal(bytes, "full", 4);
	assert_int_equal(stream_read(&s.stream, bytes, sizeof(bytes)), -1);
	assert_int_equal(errno, EPIPE);
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

/* ---- What its epoll tells -------------------------------------------------------- */

static uint32_t told(void)
{
	struct epoll_event event = { .events = 0 };

	if (epoll_wait(s.epoll_fd, &event, 1, 0) <= 0)
		return 0;
	assert_int_equal(event.data.u64 == WATCH_EARLY, event.events == EPOLLOUT);
	return event.events;
}

static void say_and_take(void)
{
	uint8_t bytes[4];

	must(stream_send(&s.stream, (const uint8_t *)"PING", 4) == 4);
	assert_int_equal(told(), 0);
	must(recv(s.other, bytes, sizeof(bytes), 0) == sizeof(bytes));
}

static void who_sleeps_is_told_once_that_it_was_taken(void **state)
{
	(void)state;
	while (told() != 0) /* that there is room, at first */
		;
	for (int i = 0; i < 3; i++) {
		say_and_take();
		assert_int_equal(told(), EPOLLOUT);
		assert_int_equal(told(), 0);
	}
	must(send(s.other, "PONG", 4, MSG_NOSIGNAL) == 4);
	assert_int_equal(told(), EPOLLIN);
	assert_int_equal(told(), EPOLLIN);
	close(s.other);
}

static void who_does_not_is_told_of_nothing_but_answers(void **state)
{
	(void)state;
	say_and_take();
	assert_int_equal(told(), 0);
	must(send(s.other, "PONG", 4, MSG_NOSIGNAL) == 4);
	assert_int_equal(told(), EPOLLIN);
	close(s.other);
}

/* A child of the host's has copies of all descriptors. */
static void what_is_closed_is_told_of_no_more(void **state)
{
	int copies[2] = { dup(s.stream.fd), dup(s.stream.early_fd) };
	uint8_t bytes[4];

	(void)state;
	must(copies[0] >= 0 && copies[1] >= 0);
	stream_close(&s.stream);
	must(send(copies[0], "PING", 4, MSG_NOSIGNAL) == 4);
	must(recv(s.other, bytes, sizeof(bytes), 0) == sizeof(bytes));
	must(send(s.other, "PONG", 4, MSG_NOSIGNAL) == 4);
	assert_int_equal(told(), 0);
	close(copies[0]);
	close(copies[1]);
	close(s.other);
}

static void a_copy_ends_with_the_program_too(void **state)
{
	(void)state;
	assert_true(fcntl(s.stream.early_fd, F_GETFD) & FD_CLOEXEC);
	close(s.other);
}

/* Where there is no descriptor for a copy, or no epoll that takes it, all else works. */
static void without_a_copy_nobody_is_told_early(void **state)
{
	struct rlimit before, few;
	struct stream_address address;

	(void)state;
	must(getrlimit(RLIMIT_NOFILE, &before) == 0);
	must(stream_unix(s.path, &address));
	close(s.other);
	stream_close(&s.stream);
	few = before;
	few.rlim_cur = (rlim_t)dup(s.listener);
	must(close((int)few.rlim_cur++) == 0);
	must(setrlimit(RLIMIT_NOFILE, &few) == 0);
	must(stream_connect(&s.stream, &address));
	must(setrlimit(RLIMIT_NOFILE, &before) == 0);
	assert_int_equal(s.stream.early_fd, -1);
	s.other = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);
	must(s.other >= 0);
	assert_int_equal(stream_turn(&s.stream), STREAM_OPEN);
	say_and_take();
	assert_int_equal(told(), 0);
	must(send(s.other, "PONG", 4, MSG_NOSIGNAL) == 4);
	assert_int_equal(told(), EPOLLIN);
	close(s.other);
}

static void an_address_is_named_as_it_is_spelt(void **state)
{
	struct stream_address address;
	char name[STREAM_NAME];

	(void)state;
	must(stream_numeric("10.0.0.1", 6379, &address));
	stream_name(&address, name);
	assert_string_equal(name, "10.0.0.1:6379");
	must(stream_numeric("::1", 7000, &address));
	stream_name(&address, name);
	assert_string_equal(name, "[::1]:7000");
	must(stream_unix("/run/redis.sock", &address));
	stream_name(&address, name);
	assert_string_equal(name, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_late, close_scene)
#define TEST_EARLY(name) cmocka_unit_test_setup_teardown(name, open_early, close_scene)
		cmocka_unit_test(an_address_that_is_spelt_out_is_not_looked_up),
		cmocka_unit_test(an_address_is_named_as_it_is_spelt),
		TEST(sending_to_nobody_is_no_signal),
		TEST(what_was_said_last_is_read_after_a_send_in_vain),
		TEST(it_ends_with_the_program_and_never_waits),
		TEST(what_nobody_reads_is_not_waited_for),
		TEST_EARLY(who_sleeps_is_told_once_that_it_was_taken),
		TEST(who_does_not_is_told_of_nothing_but_answers),
		TEST_EARLY(what_is_closed_is_told_of_no_more),
		TEST_EARLY(a_copy_ends_with_the_program_too),
		TEST_EARLY(without_a_copy_nobody_is_told_early),
		TEST_EARLY(sending_to_nobody_is_no_signal),
		TEST_EARLY(what_nobody_reads_is_not_waited_for),
#undef TEST_EARLY
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
