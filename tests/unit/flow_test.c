/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * flow_test.c -- the room at a server, against servers that work in virtual time.
 *
 * A server does one job after the other, each batch with some work of its own, some way off.  It
 * is asked at a steady rate by callers with patience, whose asks wait in a queue here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/flow.h"

#define MOST 1024
#define BATCH 64
#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define PATIENCE (100 * MS)
#define STEP (MS / 20)
#define UNDER_WAY_MOST MOST
#define QUEUE_MOST 65536

struct sent {
	uint64_t jobs;
	uint64_t in_time; /* of them, if it is replied to by then */
	uint64_t sent_ns;
	uint64_t done_ns;
	uint64_t asked_ns[BATCH];
	bool is_alone;
};

/* A server and who asks it. */
struct scene {
	uint64_t job_ns;   /* of work */
	uint64_t batch_ns; /* the same, for each batch */
	uint64_t way_ns;   /* there and back */
	uint64_t rate;     /* asks a second */
	uint64_t patience_ns;
	uint64_t still_at; /* the server does nothing from then on ... */
	uint64_t still_ns; /* ... for so long, ... */
	uint64_t every_ns; /* ... and again so long after; 0: once */

	struct flow flow;
	uint64_t now;
	uint64_t free_ns; /* when the server has done all that it was sent */
	uint64_t came;
	uint64_t queue[QUEUE_MOST]; /* when they came */
	uint64_t first, last;
	struct sent sent[UNDER_WAY_MOST];
	uint64_t sent_first, sent_last;

	uint64_t served; /* by the server */
	uint64_t allowed;
	uint64_t refused;
};

static struct scene s;

static void open_scene(uint64_t job_ns, uint64_t rate)
{
	s = (struct scene){
		.job_ns = job_ns, .way_ns = MS, .rate = rate, .patience_ns = PATIENCE
	};
	s.flow = (struct flow){ .most = MOST, .batch = BATCH };
}

static void come(void)
{
	uint64_t due = s.now * s.rate / SECOND;

	for (; s.came < due; s.came++)
		s.queue[s.last++ % QUEUE_MOST] = s.now;
	assert_true(s.last - s.first < QUEUE_MOST);
}

static bool is_too_late(const struct sent *along, uint64_t asked_ns)
{
	return s.now + flow_need(&s.flow, along->jobs, s.patience_ns) >=
	       asked_ns + s.patience_ns;
}

static void load(struct sent *sent, uint64_t room)
{
	while (s.first < s.last && sent->jobs < room) {
		uint64_t asked_ns = s.queue[s.first++ % QUEUE_MOST];

		if (is_too_late(sent, asked_ns))
			s.refused++;
		else
			sent->asked_ns[sent->jobs++] = asked_ns;
	}
}

static uint64_t later(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static void work(struct sent *sent)
{
	uint64_t begins = later(s.now + s.way_ns / 2, s.free_ns);

	if (begins >= s.still_at && begins < s.still_at + s.still_ns)
		begins = s.still_at + s.still_ns;
	if (s.every_ns > 0 && begins >= s.still_at)
		s.still_at += s.every_ns;
	s.free_ns = begins + s.batch_ns + sent->jobs * s.job_ns;
	sent->sent_ns = s.now;
	sent->done_ns = s.free_ns + s.way_ns / 2;
}

static void send(void)
{
	uint64_t room;

	while (s.first < s.last && (room = flow_room(&s.flow)) > 0) {
		struct sent *sent = &s.sent[s.sent_last % UNDER_WAY_MOST];

		assert_true(room <= BATCH);
		sent->jobs = 0;
		load(sent, room);
		if (sent->jobs == 0)
			return;
		s.sent_last++;
		sent->is_alone = flow_sent(&s.flow, sent->jobs);
		work(sent);
	}
}

static void hear(void)
{
	while (s.sent_first < s.sent_last) {
		const struct sent *sent = &s.sent[s.sent_first % UNDER_WAY_MOST];
		const struct flow_reply reply = { .jobs = sent->jobs,
			                          .took_ns = s.now - sent->sent_ns,
			                          .patience_ns = s.patience_ns,
			                          .was_alone = sent->is_alone };

		if (sent->done_ns > s.now)
			return;
		s.sent_first++;
		s.served += sent->jobs;
		for (uint64_t i = 0; i < sent->jobs; i++)
			s.allowed += s.now < sent->asked_ns[i] + s.patience_ns;
		flow_heard(&s.flow, &reply);
	}
}

static void run(uint64_t seconds)
{
	uint64_t end = s.now + seconds * SECOND;

	for (; s.now < end; s.now += STEP) {
		come();
		hear();
		send();
		assert_true(flow_valid(&s.flow)); /* FLOW-1 */
	}
}

/* Of what the server did since, at most one in fifty was for nothing. */
static void assert_little_is_lost(void)
{
	assert_true(s.served * 100 <= s.allowed * 102);
}

static void forget_counts(void)
{
	s.served = s.allowed = s.refused = 0;
}

/* ---- Tests ----------------------------------------------------------------------- */

static void who_asks_little_is_always_sent(void **state)
{
	(void)state;
	open_scene(MS / 10, 5000);
	run(10);
	assert_int_equal(s.refused, 0);
	assert_int_equal(s.allowed, s.served);
}

static void more_than_can_be_served_costs_nothing(void **state)
{
	static const uint64_t jobs_ns[] = { MS / 50, MS / 10, MS / 2, 4 * MS };
	static const uint64_t times[] = { 2, 3, 4 };

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 3; j++) {
			uint64_t can = SECOND / jobs_ns[i];

			open_scene(jobs_ns[i], times[j] * can);
			run(1); /* what is sent before anything is known may be lost */
			forget_counts();
			run(10);
			assert_little_is_lost();
			assert_true(s.allowed * 100 >= 95 * 10 * can);
		}
}

/* Before anything is known a quarter of a batch goes. */
static void what_is_lost_at_first_is_little(void **state)
{
	(void)state;
	open_scene(4 * MS, 1000);
	run(2);
	assert_true(s.served - s.allowed <= BATCH / 4);
}

/* One at a time finds out whether the server still takes longer. */
static void who_waits_for_less_than_a_reply_takes_is_not_sent(void **state)
{
	(void)state;
	open_scene(MS / 100, 2000);
	s.way_ns = 30 * MS;
	s.patience_ns = 20 * MS;
	run(1);
	forget_counts();
	run(10);
	assert_int_equal(s.allowed, 0);
	assert_true(s.served <= 10 * SECOND / s.way_ns);
	s.way_ns = MS;
	run(1);
	forget_counts();
	run(10);
	assert_int_equal(s.refused, 0);
	assert_true(s.allowed >= 10 * s.rate - 100);
}

/* Those before them waited for longer, and made a longer queue. */
static void who_waits_for_less_than_others_did_loses_little(void **state)
{
	(void)state;
	open_scene(MS / 5, 15000);
	run(2);
	s.patience_ns = 20 * MS;
	run(1);
	forget_counts();
	run(10);
	assert_little_is_lost();
	assert_true(s.allowed * 100 >= 80 * 10 * 5000);
}

static void a_batch_that_has_work_of_its_own_is_not_cut_to_pieces(void **state)
{
	(void)state;
	open_scene(MS / 50, 20000);
	s.batch_ns = 5 * MS;
	run(1);
	forget_counts();
	run(10);
	assert_little_is_lost();
	assert_true(s.allowed * 100 >=
	            95 * 10 * BATCH * SECOND / (5 * MS + BATCH * MS / 50));
}

/* Its replies take more than a part of the patience, and are no queue. */
static void a_server_far_away_is_asked_as_much_as_it_can_do(void **state)
{
	(void)state;
	open_scene(MS / 20, 10000);
	s.way_ns = 60 * MS;
	run(4);
	forget_counts();
	run(10);
	assert_little_is_lost();
	assert_true(s.allowed >= 10 * 9500);
}

static void a_server_that_stands_still_is_asked_again_when_it_goes_on(void **state)
{
	(void)state;
	open_scene(MS / 5, 15000);
	s.still_at = 2 * SECOND;
	s.still_ns = SECOND / 2;
	run(3);
	assert_true(s.served - s.allowed <= 1024);
	forget_counts();
	run(4);
	assert_little_is_lost();
	assert_true(s.allowed >= 4 * 4750);
}

/* A processor, or a disk, is had by others for a moment. */
static void a_server_that_stands_still_for_moments_does_little_for_nothing(void **state)
{
	static const uint64_t jobs_ns[] = { MS / 50, MS / 5, MS };
	static const uint64_t times[] = { 2, 4 };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < 2; j++) {
			uint64_t can = SECOND / jobs_ns[i];

			open_scene(jobs_ns[i], times[j] * can);
			s.still_ns = PATIENCE * 2 / 5;
			s.every_ns = SECOND / 4;
			run(1);
			forget_counts();
			run(10);
			assert_little_is_lost();
			assert_true(s.allowed * 100 >= 95 * 10 * can * 84 / 100);
		}
}

static void a_server_that_gets_slower_is_asked_less(void **state)
{
	(void)state;
	open_scene(MS / 50, 40000);
	run(4);
	s.job_ns = MS;
	run(1);
	forget_counts();
	run(10);
	assert_little_is_lost();
	assert_true(s.allowed >= 10 * 950);
}

static void a_server_that_gets_faster_is_asked_more(void **state)
{
	(void)state;
	open_scene(4 * MS, 8000);
	run(4);
	s.job_ns = MS / 10;
	run(1);
	forget_counts();
	run(10);
	assert_true(s.allowed >= 10 * 7900);
}

/* All replies take as long, and the room grows until another batch has room. */
static void another_batch_under_way_is_foreseen(void **state)
{
	(void)state;
	open_scene(MS / 5, 10);
	run(2);
	s.rate = 15000;
	s.came = s.now * s.rate / SECOND;
	run(1);
	forget_counts();
	run(10);
	assert_little_is_lost();
}

/* ---- By hand --------------------------------------------------------------------- */

static struct flow fresh(void)
{
	return (struct flow){ .most = MOST, .batch = BATCH };
}

static void half_of_a_room_goes_together(void **state)
{
	struct flow flow = fresh();

	(void)state;
	flow.room = 40;
	assert_int_equal(flow_room(&flow), 40);
	assert_false(flow_sent(&flow, 21));
	assert_int_equal(flow_room(&flow), 0); /* 19 are left: FLOW-4 */
	flow_lost(&flow, 1);
	assert_int_equal(flow_room(&flow), 20);
}

static void one_goes(struct flow *flow, uint64_t took_ns)
{
	const struct flow_reply reply = { .jobs = 1,
		                          .took_ns = took_ns,
		                          .patience_ns = PATIENCE,
		                          .was_alone = true };

	assert_true(flow_sent(flow, 1));
	flow_heard(flow, &reply);
}

/* It may have met with a standstill. */
static void one_slow_reply_is_not_the_way(void **state)
{
	struct flow flow = fresh();

	(void)state;
	one_goes(&flow, 90 * MS);
	assert_int_equal(flow.alone_ns, 0);
	one_goes(&flow, 2 * MS);
	assert_int_equal(flow.alone_ns, 2 * MS);
	one_goes(&flow, 90 * MS);
	assert_int_equal(flow.alone_ns, 2 * MS);
	one_goes(&flow, 80 * MS); /* twice: it is far away now */
	assert_int_equal(flow.alone_ns, 80 * MS);
}

static void who_has_not_waited_is_always_sent(void **state)
{
	struct flow flow = fresh();

	(void)state;
	assert_int_equal(flow_need(&flow, 0, PATIENCE), 0);
	flow.mean_ns = PATIENCE;
	flow.under_way = 1;
	assert_int_equal(flow_need(&flow, 1, PATIENCE), PATIENCE / 4 * 3); /* FLOW-3 */
	flow.mean_ns++;
	assert_int_equal(flow_need(&flow, 0, PATIENCE), PATIENCE + 1);
	flow.under_way = 0;
	assert_int_equal(flow_need(&flow, 1, PATIENCE), PATIENCE + 1);
	assert_int_equal(flow_need(&flow, 0, PATIENCE), PATIENCE / 4 * 3);
}

static void a_room_that_is_not_used_does_not_grow(void **state)
{
	struct flow flow = fresh();

	(void)state;
	for (int i = 0; i < 1000; i++)
		one_goes(&flow, MS);
	assert_int_equal(flow.room, 0); /* FLOW-2 */
	assert_int_equal(flow.alone_ns, MS);
}

static void nobody_s_patience_is_no_goal(void **state)
{
	struct flow flow = fresh();
	const struct flow_reply reply = { .jobs = BATCH, .took_ns = SECOND };

	(void)state;
	(void)flow_sent(&flow, BATCH);
	flow_heard(&flow, &reply);
	assert_int_equal(flow.room, 0);
	assert_int_equal(flow.under_way, 0);
	assert_true(flow.mean_ns > 0);
}

/* Of a fresh flow the goal is patience alone, and less than one part of it. */
static void patience_may_be_next_to_nothing(void **state)
{
	struct flow flow = { .most = MOST, .batch = BATCH };
	struct flow_reply reply = {
		.jobs = 1, .took_ns = 1000, .patience_ns = 3, .was_alone = true
	};

	(void)state;
	(void)flow_sent(&flow, 1);
	flow_heard(&flow, &reply);
	assert_true(flow_valid(&flow));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patience_may_be_next_to_nothing),
		cmocka_unit_test(who_asks_little_is_always_sent),
		cmocka_unit_test(more_than_can_be_served_costs_nothing),
		cmocka_unit_test(what_is_lost_at_first_is_little),
		cmocka_unit_test(who_waits_for_less_than_a_reply_takes_is_not_sent),
		cmocka_unit_test(who_waits_for_less_than_others_did_loses_little),
		cmocka_unit_test(a_batch_that_has_work_of_its_own_is_not_cut_to_pieces),
		cmocka_unit_test(a_server_far_away_is_asked_as_much_as_it_can_do),
		cmocka_unit_test(
		    a_server_that_stands_still_is_asked_again_when_it_goes_on),
		cmocka_unit_test(
		    a_server_that_stands_still_for_moments_does_little_for_nothing),
		cmocka_unit_test(a_server_that_gets_slower_is_asked_less),
		cmocka_unit_test(a_server_that_gets_faster_is_asked_more),
		cmocka_unit_test(another_batch_under_way_is_foreseen),
		cmocka_unit_test(one_slow_reply_is_not_the_way),
		cmocka_unit_test(half_of_a_room_goes_together),
		cmocka_unit_test(who_has_not_waited_is_always_sent),
		cmocka_unit_test(a_room_that_is_not_used_does_not_grow),
		cmocka_unit_test(nobody_s_patience_is_no_goal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
