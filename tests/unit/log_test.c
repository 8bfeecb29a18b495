/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* log_test.c -- what the host's log is told, and by whom: servers that are not there, or no
 * Redis servers. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/atomic.h"
#include "tests/support/house.h"
#include "tests/support/lines.h"
#include "tests/support/must.h"

#define NOBODY "127.0.0.1:1" /* listens there */

static void ask(void *arg)
{
	(void)house_wait(arg, "secret key");
}

static void a_line_says_how_bad_it_is_and_whose(void **state)
{
	struct lines lines;
	struct house_plan plan = { .rule = gale_fixed_window(5, GALE_HOURS(1)),
		                   .shards = 1,
		                   .mode = GALE_LEASED,
		                   .url = "redis://me:secret@" NOBODY "/3?prefix=p",
		                   .log = &lines.log };
	struct house h;

	(void)state;
	lines_open(&lines);
	house_open(&h, &plan);
	assert_true(lines_will_have_asking(
	    &lines, "error: store redis://" NOBODY "/3?prefix=p: cannot connect: ", ask,
	    &h));
	assert_true(lines_will_have_asking(&lines, "error: limiter house: ", ask, &h));
	assert_false(lines_have(&lines, "secret"));
	assert_true(house_close(&h));
}

/* Somebody who is no Redis server: whoever connects is told this, and no more. */
struct stranger {
	int listener;
	uint16_t port;
	const char *says;
	pthread_t thread;
	_Atomic bool stopping;
};

static void *serve(void *arg)
{
	struct stranger *stranger = arg;
	int last = -1;

	while (!load_relaxed(&stranger->stopping)) {
		struct pollfd wait_for = { stranger->listener, POLLIN, 0 };
		int fd;

		if (poll(&wait_for, 1, /* timeout= */ 20) < 1)
			continue;
		fd = accept(stranger->listener, NULL, NULL);
		must(fd >= 0);
		(void)send(fd, stranger->says, strlen(stranger->says), MSG_NOSIGNAL);
		if (last >= 0)
			close(last);
		last = fd;
	}
	if (last >= 0)
		close(last);
	return NULL;
}

static void stranger_open(struct stranger *stranger, const char *says)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t count = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*stranger = (struct stranger){ .says = says };
	stranger->listener = socket(AF_INET, SOCK_STREAM, 0);
	must(stranger->listener >= 0);
	must(bind(stranger->listener, (struct sockaddr *)&at, count) == 0);
	must(getsockname(stranger->listener, (struct sockaddr *)&at, &count) == 0);
	must(listen(stranger->listener, 16) == 0);
	stranger->port = ntohs(at.sin_port);
	must(pthread_create(&stranger->thread, NULL, serve, stranger) == 0);
}

static void stranger_close(struct stranger *stranger)
{
	store_relaxed(&stranger->stopping, true);
	must(pthread_join(stranger->thread, NULL) == 0);
	close(stranger->listener);
}

static void stranger_is_described(const char *says, const char *line)
{
	struct stranger stranger;
	struct lines lines;
	char url[64];
	struct house_plan plan = { .rule = gale_fixed_window(5, GALE_HOURS(1)),
		                   .shards = 1,
		                   .url = url,
		                   .log = &lines.log };
	struct house h;

	lines_open(&lines);
	stranger_open(&stranger, says);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", stranger.port);
	house_open(&h, &plan);
	if (!lines_will_have_asking(&lines, line, ask, &h))
		fail_msg("said: %s", lines.text[0]);
	assert_true(house_close(&h));
	stranger_close(&stranger);
}

static void another_protocol_is_quoted(void **state)
{
	(void)state;
	stranger_is_described("HTTP/1.1 400 Bad Request\r\n\r\n",
	                      ": what it says is no reply: "
	                      "\"HTTP/1.1 400 Bad Request????\"");
}

static void one_who_says_nothing_is_told_from_one_who_is_not_there(void **state)
{
	(void)state;
	stranger_is_described("", ": no connection within a second: "
	                          "it has accepted, and does not answer");
}

static void levels_have_names(void **state)
{
	(void)state;
	assert_string_equal(gale_level_name(GALE_LEVEL_INFO), "info");
	assert_string_equal(gale_level_name(GALE_LEVEL_WARNING), "warning");
	assert_string_equal(gale_level_name(GALE_LEVEL_ERROR), "error");
	assert_string_equal(gale_level_name((enum gale_level)3), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_says_how_bad_it_is_and_whose),
		cmocka_unit_test(another_protocol_is_quoted),
		cmocka_unit_test(
		    one_who_says_nothing_is_told_from_one_who_is_not_there),
		cmocka_unit_test(levels_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
