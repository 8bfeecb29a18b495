/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * record_test.c -- what is sent is received, in order and whole, or not at all.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/record.h"

static int ends[2];
static struct record_out out;
static struct record_in in;

static int open_it(void **state)
{
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	record_out_init(&out, ends[0]);
	record_in_init(&in, ends[1]);
	return 0;
}

static int close_it(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static struct record units(uint64_t key)
{
	return (struct record){
		.kind = RECORD_UNITS, .what = key, .first = 5, .last = 6, .count = 7
	};
}

static void put_key(uint64_t key)
{
	struct record record = units(key);

	record_put(&out, &record);
}

static void expect_key(uint64_t key)
{
	struct record record;

	assert_int_equal(record_get(&in, /* wait= */ true, &record), RECORD_IS);
	assert_int_equal(record.kind, RECORD_UNITS);
	assert_int_equal(record.what, key);
	assert_int_equal(record.first, 5);
	assert_int_equal(record.last, 6);
	assert_int_equal(record.count, 7);
}

static void expect(enum record_got got)
{
	struct record record = { .what = 77 };

	assert_int_equal(record_get(&in, /* wait= */ false, &record), got);
	assert_int_equal(record.what, 77); /* untouched */
}

/* As a sender that is out of its mind would. */
static void send_raw(const struct record *record, size_t bytes)
{
	assert_int_equal(send(ends[0], record, bytes, 0), (ssize_t)bytes);
}

static void records_arrive_in_their_order(void **state)
{
	(void)state;
	for (uint64_t key = 0; key < 3; key++)
		put_key(key);
	expect(RECORD_NOT_YET); /* not sent yet */
	assert_true(record_flush(&out));
	for (uint64_t key = 0; key < 3; key++)
		expect_key(key);
	expect(RECORD_NOT_YET);
}

static void *put_many(void *arg)
{
	(void)arg;
	for (uint64_t key = 0; key < 100 * RECORD_BATCH; key++)
		put_key(key);
	record_flush(&out);
	return NULL;
}

static void more_than_there_is_room_for_waits_and_is_not_lost(void **state)
{
	pthread_t sender;

	(void)state;
	assert_int_equal(pthread_create(&sender, NULL, put_many, NULL), 0);
	for (uint64_t key = 0; key < 100 * RECORD_BATCH; key++)
		expect_key(key);
	pthread_join(sender, NULL);
}

static void a_record_may_come_in_parts(void **state)
{
	struct record record = units(9);

	(void)state;
	send_raw(&record, 17);
	expect(RECORD_NOT_YET);
	assert_int_equal(send(ends[0], (char *)&record + 17, sizeof(record) - 17, 0),
	                 (ssize_t)(sizeof(record) - 17));
	expect_key(9);
}

static void an_end_after_a_whole_record_is_an_end(void **state)
{
	(void)state;
	put_key(1);
	assert_true(record_flush(&out));
	shutdown(ends[0], SHUT_WR);
	expect_key(1);
	expect(RECORD_END);
	expect(RECORD_END);
}

static void an_end_within_a_record_is_nonsense(void **state)
{
	struct record record = units(1);

	(void)state;
	send_raw(&record, sizeof(record) - 1);
	shutdown(ends[0], SHUT_WR);
	expect(RECORD_NONSENSE);
}

static void what_is_doubled_missing_or_of_no_kind_is_nonsense(void **state)
{
	struct record twice = units(1), later = units(1), none = { 0 };
	struct record beyond = { .kind = RECORD_KIND_END };

	(void)state;
	later.number = 1;
	send_raw(&later, sizeof(later));
	expect(RECORD_NONSENSE);

	record_in_init(&in, ends[1]);
	send_raw(&none, sizeof(none));
	expect(RECORD_NONSENSE);

	record_in_init(&in, ends[1]);
	send_raw(&beyond, sizeof(beyond));
	expect(RECORD_NONSENSE);

	record_in_init(&in, ends[1]);
	send_raw(&twice, sizeof(twice));
	send_raw(&twice, sizeof(twice));
	expect_key(1);
	expect(RECORD_NONSENSE);
}

static void who_sends_to_nobody_is_told(void **state)
{
	(void)state;
	shutdown(ends[1], SHUT_RDWR);
	put_key(1);
	assert_false(record_flush(&out));
	put_many(NULL); /* ends */
	assert_false(record_flush(&out));
}

static void a_text_takes_as_many_records_as_it_needs(void **state)
{
	static const char text[] = "one that is longer than one record, or two of them";
	char heard[sizeof(text) + RECORD_TEXT_MAX] = "";
	struct record record;

	(void)state;
	record_put_text(&out, text);
	assert_true(record_flush(&out));
	while (record_get(&in, /* wait= */ false, &record) == RECORD_IS) {
		assert_int_equal(record.kind, RECORD_TEXT);
		strncat(heard, record.text, RECORD_TEXT_MAX);
	}
	assert_string_equal(heard, text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_it, close_it)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_arrive_in_their_order),
		TEST(more_than_there_is_room_for_waits_and_is_not_lost),
		TEST(a_record_may_come_in_parts),
		TEST(an_end_after_a_whole_record_is_an_end),
		TEST(an_end_within_a_record_is_nonsense),
		TEST(what_is_doubled_missing_or_of_no_kind_is_nonsense),
		TEST(who_sends_to_nobody_is_told),
		TEST(a_text_takes_as_many_records_as_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
