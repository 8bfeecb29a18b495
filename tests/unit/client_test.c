/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * client_test.c -- what is asked of a server is answered once, whatever becomes of it.
 *
 * The wire is a test's own: behind it is a server that serves by the engine, when it is
 * told to.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/client.h"
#include "stores/quarantine.h"
#include "runtime/memory.h"
#include "sim/allocator.h"
#include "sim/server.h"
#include "tests/support/customs.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define T0 GALE_SECONDS(1700000000)
#define SECOND_NS UINT64_C(1000000000)
#define PATIENCE_NS (SECOND_NS / 2)
#define KEYS 8
#define SENT_MOST 16
#define CALLS 8
#define LINES_MOST 4

struct sent {
	uint64_t nonce;
	size_t count;
	struct remote_job jobs[REMOTE_BATCH_MOST];
};

/* A wire, and all that is behind it. */
struct fake {
	struct wire *wire; /* allocated, so that who uses it afterwards is found out */
	enum wire_state state;
	enum wire_state next;      /* what a connection that is begun comes to */
	enum wire_reply_kind kind; /* of replies */
	bool silent;
	unsigned skewed;   /* so many replies have another number */
	unsigned meddlers; /* so many swaps find that somebody was faster */
	unsigned connects;
	unsigned hang_ups;
	unsigned flushes;
	unsigned pulses;
	bool is_freed;
	bool has_no_room;
	struct sent sent[SENT_MOST];
	size_t sent_count;
	uint64_t server_us;
	char names[KEYS][32];
	struct kept keys[KEYS];
	struct kept before[REMOTE_BATCH_MOST];
};

struct scene {
	struct test_allocator allocator;
	struct store_home home; /* see on_answer, take_done */
	struct fake fake;
	struct client *client;
	_Atomic uint64_t counters[CLIENT_COUNTER_COUNT];
	struct quarantine_notice notice;
	struct trouble trouble;
	mono now;
	struct rule rule;
	struct store_op ops[CALLS];
	struct store_call calls[CALLS];
	enum store_result results[CALLS];
	unsigned done[CALLS];
	struct lend_answer answers[CALLS];
	size_t answer_count;
	unsigned asks_again; /* so many answers lead to another ask at once */
	char lines[LINES_MOST][WIRE_TEXT]; /* for the host */
	size_t line_count;
};

static struct scene s;
static uint64_t seed; /* of scenes that are opened: what they draw by lot */

/* ---- The wire -------------------------------------------------------------------- */

static void fake_connect(struct wire *wire, mono now)
{
	(void)wire;
	(void)now;
	s.fake.connects++;
	s.fake.state = s.fake.next;
}

static bool fake_send(struct wire *wire, const struct remote_batch *batch)
{
	struct sent *sent = &s.fake.sent[s.fake.sent_count];

	assert_int_equal(s.fake.state, WIRE_READY);
	assert_in_range(batch->count, wire->has_pulses ? 0 : 1, REMOTE_BATCH_MOST);
	s.fake.pulses += batch->count == 0;
	if (s.fake.has_no_room || s.fake.sent_count == SENT_MOST)
		return false;
	s.fake.sent_count++;
	sent->nonce = batch->nonce;
	sent->count = batch->count;
	memcpy(sent->jobs, batch->jobs, batch->count * sizeof(batch->jobs[0]));
	return true;
}

static struct kept *kept_of(struct remote_bytes key)
{
	for (int i = 0; i < KEYS; i++) {
		char *name = s.fake.names[i];

		if (name[0] == '\0')
			memcpy(name, key.bytes, key.count);
		if (strlen(name) == key.count &&
		    memcmp(name, key.bytes, key.count) == 0)
			return &s.fake.keys[i];
	}
	fail_msg("too many keys");
	return NULL;
}

static void meddle(struct kept *kept, const struct rule *rule)
{
	uint64_t words[256] = { 0 };
	struct value value = { .words = words, .room = 256 };

	assert_int_equal(value_decode(rule, kept->bytes, kept->count, &value),
	                 STATE_OK);
	(void)rule_step(rule, words, s.fake.server_us, 1);
	kept->count = value_encode(rule, &value, kept->bytes);
}

static struct remote_told serve(const struct remote_job *job, struct kept *before)
{
	struct kept *kept = kept_of(job->key), after;
	struct remote_told told;

	if (job->verb == REMOTE_SWAP && s.fake.meddlers > 0) {
		s.fake.meddlers--;
		meddle(kept, job->rule);
	}
	*before = *kept;
	told = server_serve(job, s.fake.server_us, before, &after);
	*kept = after;
	return told;
}

static void reply(const struct sent *sent)
{
	struct remote_told told[REMOTE_BATCH_MOST];
	struct wire_reply reply = { .nonce = sent->nonce,
		                    .kind = s.fake.kind,
		                    .told = told,
		                    .count = sent->count };

	for (size_t i = 0; i < sent->count && reply.kind == WIRE_TOLD; i++)
		told[i] = serve(&sent->jobs[i], &s.fake.before[i]);
	if (s.fake.skewed > 0) {
		s.fake.skewed--;
		reply.nonce++;
	}
	s.fake.wire->home->on_reply(s.fake.wire->home, &reply);
}

static enum wire_state fake_turn(struct wire *wire, mono now)
{
	size_t count = s.fake.silent ? 0 : s.fake.sent_count;

	(void)wire;
	(void)now;
	for (size_t i = 0; i < count && s.fake.state == WIRE_READY; i++)
		reply(&s.fake.sent[i]);
	if (count > 0)
		s.fake.sent_count = 0;
	return s.fake.state;
}

static void fake_hang_up(struct wire *wire)
{
	(void)wire;
	s.fake.hang_ups++;
	s.fake.sent_count = 0;
	s.fake.state = WIRE_OPENING;
}

static void fake_free(struct wire *wire)
{
	assert_false(s.fake.is_freed);
	s.fake.is_freed = true;
	free(wire);
	s.fake.sent_count = 0;
}

static const struct wire_ops fake_ops = {
	.connect = fake_connect,
	.turn = fake_turn,
	.send = fake_send,
	.hang_up = fake_hang_up,
	.free = fake_free,
};

static enum wire_state fake_flush(struct wire *wire)
{
	(void)wire;
	s.fake.flushes++;
	return s.fake.state;
}

static const struct wire_ops flushing_ops = {
	.connect = fake_connect,
	.turn = fake_turn,
	.send = fake_send,
	.flush = fake_flush,
	.hang_up = fake_hang_up,
	.free = fake_free,
};

/* ---- The shard ------------------------------------------------------------------- */

static void begin(int i, enum store_verb verb, const char *key);

static void on_done(const struct store_call *call)
{
	size_t i = (size_t)(call - s.calls);

	assert_in_range(i, 0, CALLS - 1);
	s.done[i]++;
	s.results[i] = call->result;
	if (s.asks_again > 0) {
		s.asks_again--;
		begin((int)i, STORE_STEP, "again");
	}
}

static void take_done(void)
{
	const struct store_call *call;

	while ((call = store_take(&s.home)))
		on_done(call);
}

static void on_answer(struct store_home *home, const struct lend_answer *answer)
{
	(void)home;
	assert_in_range(s.answer_count, 0, CALLS - 1);
	s.answers[s.answer_count++] = *answer;
}

static void say(void *self, enum gale_level level, const char *text)
{
	(void)self;
	(void)level;
	if (s.line_count < LINES_MOST)
		snprintf(s.lines[s.line_count++], WIRE_TEXT, "%s", text);
}

static void begin_until(int i, enum store_verb verb, const char *key, mono until,
                        uint64_t within_ns)
{
	s.ops[i] = (struct store_op){ .verb = verb,
		                      .key = (const uint8_t *)key,
		                      .key_len = (uint32_t)strlen(key),
		                      .rule = &s.rule,
		                      .cost = 1 };
	s.calls[i] = (struct store_call){ .op = &s.ops[i],
		                          .due = mono_after(s.now, within_ns),
		                          .until = until };
	s.done[i] = 0;
	client_begin(s.client, &s.calls[i], s.now);
	take_done();
}

static void begin_for(int i, enum store_verb verb, const char *key, uint64_t within_ns)
{
	begin_until(i, verb, key, (mono){ 0 }, within_ns);
}

static void begin(int i, enum store_verb verb, const char *key)
{
	begin_for(i, verb, key, PATIENCE_NS);
}

static void lend(enum lend_verb verb, uint64_t number, uint64_t units)
{
	struct lend_request request = {
		.verb = verb,
		.key = (const uint8_t *)"lent",
		.key_len = 4,
		.rule = &s.rule,
		.ask = { .node = 1, .number = number, .want = units, .least = 1 },
		.units = units,
		.due = mono_after(s.now, PATIENCE_NS),
	};

	if (verb == LEND_BACK)
		request.tag = s.answers[0].grant.tag;
	client_lend(s.client, &request, 1, s.now);
}

static mono turn_once(void)
{
	mono due = client_turn(s.client, s.now);

	take_done();
	return due;
}

static void turn(unsigned times)
{
	while (times-- > 0)
		(void)turn_once();
}

static void pass(uint64_t ns)
{
	s.now.ns += ns;
	s.fake.server_us += ns / 1000;
}

static void open_scene(struct gale_rule config)
{
	struct client_config client = { .home = &s.home,
		                        .notice = &s.notice,
		                        .trouble = &s.trouble,
		                        .quarantine_us = QUARANTINE_DEFAULT_US,
		                        .counters = s.counters,
		                        .seed = seed };

	memset(&s, 0, sizeof(s));
	s.fake.wire = calloc(1, sizeof(*s.fake.wire));
	assert_non_null(s.fake.wire);
	list_init(&s.home.done);
	s.home.on_answer = on_answer;
	s.fake.wire->ops = &fake_ops;
	s.fake.state = WIRE_OPENING;
	s.fake.next = WIRE_READY;
	s.fake.server_us = T0;
	s.now.ns = SECOND_NS;
	assert_int_equal(rule_compile(&config, &s.rule), GALE_ERR_OK);
	test_allocator_init(&s.allocator);
	s.trouble = (struct trouble){ .allocator = memory_default(), .say = say };
	trouble_open(&s.trouble);
	client.allocator = &s.allocator.allocator;
	client.wire = s.fake.wire;
	s.client = client_open(&client);
	assert_non_null(s.client);
}

static void close_scene(void)
{
	client_close(s.client);
	take_done();
	trouble_close(&s.trouble);
	assert_true(s.fake.is_freed);
	assert_true(test_allocator_is_balanced(&s.allocator));
}

static void assert_done(int i, enum store_result result)
{
	assert_int_equal(s.done[i], 1); /* CLIENT-1 */
	assert_int_equal(s.results[i], result);
}

/* ---- Tests ----------------------------------------------------------------------- */

static void every_verb_has_its_answer(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(2, GALE_SECONDS(10)));
	for (int i = 0; i < 3; i++)
		begin(i, STORE_STEP, "k");
	begin(3, STORE_PEEK, "k");
	begin(4, STORE_FORECAST, "k");
	begin(5, STORE_CANCEL, "k");
	turn(1);
	assert_int_equal(s.fake.connects, 1);
	for (int i = 0; i < 5; i++)
		assert_done(i, STORE_DONE);
	assert_int_equal(s.ops[1].answer.verdict, GALE_ALLOW);
	assert_int_equal(s.ops[2].answer.verdict, GALE_DENY);
	assert_int_equal(s.ops[3].answer.remaining, 0);
	assert_int_equal(s.ops[4].forecast.spendable_now, 0);
	assert_done(5, STORE_NOT_BOOKED);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_ROUND_TRIPS]),
	                 1); /* all in one */
	begin(6, STORE_RESET, "k");
	begin(7, STORE_STEP, "k");
	turn(1);
	assert_done(6, STORE_DONE);
	assert_int_equal(s.ops[7].answer.verdict, GALE_ALLOW);
	close_scene();
}

static void a_rule_that_the_server_does_not_know_is_read_and_swapped(void **state)
{
	(void)state;
	open_scene(gale_sliding_log(3, GALE_SECONDS(10)));
	for (int i = 0; i < 5; i++) {
		begin(i, STORE_STEP, "k");
		turn(3);
		assert_done(i, STORE_DONE);
		assert_int_equal(s.ops[i].answer.verdict,
		                 i < 3 ? GALE_ALLOW : GALE_DENY);
	}
	close_scene();
}

static void who_was_not_the_fastest_looks_again(void **state)
{
	(void)state;
	open_scene(gale_sliding_log(5, GALE_SECONDS(10)));
	s.fake.meddlers = 2;
	begin(0, STORE_STEP, "k");
	turn(8);
	assert_done(0, STORE_DONE);
	assert_int_equal(s.ops[0].answer.verdict, GALE_ALLOW);
	assert_int_equal(s.ops[0].answer.remaining, 2); /* two others have stepped */
	s.fake.meddlers = 100;
	begin(1, STORE_STEP, "k"); /* they go on until all is gone */
	turn(8);
	assert_done(1, STORE_DONE);
	assert_int_equal(s.ops[1].answer.verdict, GALE_DENY);
	close_scene();
}

static void those_who_change_one_key_at_once_do_not_hinder_each_other(void **state)
{
	(void)state;
	open_scene(gale_sliding_log(2, GALE_SECONDS(10)));
	for (int i = 0; i < 3; i++)
		begin(i, STORE_STEP, "k");
	turn(2);
	for (int i = 0; i < 3; i++)
		assert_done(i, STORE_DONE);
	assert_int_equal(s.ops[0].answer.remaining, 1);
	assert_int_equal(s.ops[1].answer.remaining, 0);
	assert_int_equal(s.ops[2].answer.verdict, GALE_DENY);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_ROUND_TRIPS]), 2);
	close_scene();
}

/* Somebody else takes one of three: then there are two for our three. */
static void who_is_behind_one_that_fails_looks_again(void **state)
{
	int allowed = 0;

	(void)state;
	open_scene(gale_sliding_log(3, GALE_SECONDS(10)));
	s.fake.meddlers = 1;
	for (int i = 0; i < 3; i++)
		begin(i, STORE_STEP, "k");
	turn(5);
	for (int i = 0; i < 3; i++) {
		assert_done(i, STORE_DONE);
		allowed += s.ops[i].answer.verdict == GALE_ALLOW;
	}
	assert_int_equal(allowed, 2);
	close_scene();
}

static void who_is_never_the_fastest_gives_up_and_says_so(void **state)
{
	(void)state;
	open_scene(custom_window(500, GALE_SECONDS(10)));
	s.fake.meddlers = 64;
	begin(0, STORE_STEP, "k");
	turn(200);
	assert_done(0, STORE_DONE);
	assert_int_equal(s.ops[0].answer.remaining, 435);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_CONTENDED]), 0);
	s.fake.meddlers = 500;
	begin(1, STORE_STEP, "k");
	turn(200);
	assert_done(1, STORE_BUSY);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_CONTENDED]), 1);
	close_scene();
}

static void a_strategy_that_rules_what_cannot_be_writes_nothing(void **state)
{
	(void)state;
	open_scene(custom_broken(FAULT_WORD));
	begin(0, STORE_STEP, "k");
	begin(1, STORE_PEEK, "k");
	begin(2, STORE_FORECAST, "k");
	turn(8);
	for (int i = 0; i < 3; i++)
		assert_done(i, STORE_BROKEN);
	assert_int_equal(s.fake.keys[0].count, 0);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_BROKEN]), 3);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_STEPS]), 0);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_ROUND_TRIPS]), 1);
	close_scene();
}

static void what_was_read_before_the_server_forgot_is_read_again(void **state)
{
	(void)state;
	open_scene(gale_sliding_log(5, GALE_SECONDS(10)));
	begin(0, STORE_STEP, "k");
	turn(1); /* it is read, and about to be swapped */
	assert_int_equal(s.done[0], 0);
	s.fake.wire->since_us = s.fake.server_us;
	turn(3);
	assert_done(0, STORE_QUARANTINE); /* CLIENT-3 */
	assert_int_equal(s.ops[0].answer.retry_after_us,
	                 GALE_SECONDS(10) + QUARANTINE_SKEW_US);
	close_scene();
}

static void leases_come_and_go_back(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	lend(LEND, 1, 7);
	turn(1);
	lend(LEND_BACK, 2, 3);
	turn(1);
	lend(LEND, 3, 10);
	turn(1);
	assert_int_equal(s.answer_count, 3);
	assert_int_equal(s.answers[0].number, 1);
	assert_int_equal(s.answers[0].grant.units, 7);
	assert_int_equal(s.answers[1].result, STORE_DONE);
	assert_int_equal(s.answers[2].grant.units, 6);
	close_scene();
}

static void a_pacers_places_are_booked_by_swaps(void **state)
{
	(void)state;
	open_scene(gale_leaky_bucket(10, GALE_SECONDS(1), GALE_SECONDS(10)));
	lend(LEND, 1, 7);
	turn(3);
	assert_int_equal(s.answer_count, 1);
	assert_int_equal(s.answers[0].result, STORE_DONE);
	assert_int_equal(s.answers[0].grant.units, 7);
	close_scene();
}

static void what_is_under_way_when_the_line_breaks_is_not_sent_again(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.silent = true;
	begin(0, STORE_STEP, "k");
	lend(LEND, 1, 5);
	turn(2);
	assert_int_equal(s.done[0], 0);
	s.fake.state = WIRE_BROKEN;
	turn(1);
	assert_done(0, STORE_LATE); /* CLIENT-2 */
	assert_int_equal(s.answer_count, 1);
	assert_int_equal(s.answers[0].result, STORE_LATE);
	s.fake.silent = false;
	begin(1, STORE_STEP, "k");
	turn(2);
	assert_int_equal(s.fake.connects,
	                 2); /* a line that was good is tried at once */
	assert_done(1, STORE_DONE);
	assert_int_equal(s.ops[1].answer.remaining,
	                 9); /* the first was not sent twice */
	close_scene();
}

/* A server that answers after so long, once. */
static void be_answered_after(uint64_t ns)
{
	s.fake.silent = true;
	begin(0, STORE_STEP, "k");
	turn(1);
	pass(ns);
	s.fake.silent = false;
	turn(1);
	assert_done(0, STORE_DONE);
}

/* CLIENT-6 */
static void who_would_be_late_is_not_sent(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	be_answered_after(SECOND_NS / 5);
	s.fake.has_no_room = true;
	begin(1, STORE_STEP, "k");
	lend(LEND, 1, 5);
	turn(1);
	pass(SECOND_NS / 4);
	turn(1);
	assert_done(1, STORE_BUSY);
	s.fake.has_no_room = false;
	turn(2);
	assert_int_equal(s.answers[0].grant.units, 5); /* late units are of use */
	begin(2, STORE_STEP, "k");
	turn(2);
	assert_done(2, STORE_DONE); /* it has not waited */
	assert_int_equal(s.ops[2].answer.remaining, 8);
	close_scene();
}

/* The same; one of them finds out whether the server still takes so long. */
static void who_waits_for_less_than_a_reply_takes_is_not_sent(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	be_answered_after(SECOND_NS / 5);
	for (int i = 1; i < 4; i++)
		begin_for(i, STORE_STEP, "k", SECOND_NS / 10);
	turn(2);
	assert_done(1, STORE_DONE);
	assert_done(2, STORE_BUSY);
	assert_done(3, STORE_BUSY);
	assert_int_equal(s.ops[1].answer.remaining, 8);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_OVERLOADED]), 2);
	close_scene();
}

/* Nothing is known of the server by that. */
static void who_has_given_up_before_it_begins_is_no_overload(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	begin_for(1, STORE_STEP, "k", 0);
	assert_done(1, STORE_LATE);
	begin_until(2, STORE_STEP, "k", s.now, PATIENCE_NS); /* while it came here */
	turn(2);
	assert_done(2, STORE_BUSY);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_OVERLOADED]), 0);
	close_scene();
}

static unsigned done_as(enum store_result result)
{
	unsigned count = 0;

	for (int i = 0; i < CALLS; i++)
		count += s.done[i] == 1 && s.results[i] == result;
	return count;
}

/* LINE-5.  Its replies come after most of the time that a caller waits for. */
static void a_server_that_is_late_gets_less_at_once(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(1000, GALE_SECONDS(10000)));
	for (int round = 0; round < 4; round++) {
		s.fake.silent = true;
		for (int i = 0; i < CALLS; i++)
			begin(i, STORE_STEP, "k");
		turn(1);
		pass(SECOND_NS / 5 * 2);
		s.fake.silent = false;
		turn(2);
		assert_int_equal(done_as(STORE_DONE) + done_as(STORE_BUSY), CALLS);
		assert_true(round > 0 || done_as(STORE_DONE) == CALLS);
	}
	assert_in_range(done_as(STORE_DONE), 1, CALLS - 1);
	close_scene();
}

static void what_has_come_is_told_though_it_is_due(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	be_answered_after(SECOND_NS / 2);
	assert_int_equal(s.ops[0].answer.remaining, 9);
	close_scene();
}

static void who_cannot_be_reached_is_not_asked_for_a_while(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.next = WIRE_BROKEN;
	begin(0, STORE_STEP, "k");
	turn(1);
	assert_done(0, STORE_DOWN);
	begin(1, STORE_STEP, "k");
	assert_done(1, STORE_DOWN); /* at once */
	lend(LEND, 1, 5);
	assert_int_equal(s.answers[0].result, STORE_DOWN);
	turn(5);
	assert_int_equal(s.fake.connects, 1);
	for (int i = 0; i < 12; i++) {
		pass(2 * SECOND_NS);
		begin(2, STORE_STEP, "k");
		turn(1);
		assert_done(2, STORE_DOWN);
		assert_int_equal(s.fake.connects,
		                 2 + i); /* never more than 2 s apart */
	}
	pass(2 * SECOND_NS);
	s.fake.next = WIRE_READY;
	begin(3, STORE_STEP, "k");
	turn(1);
	assert_done(3, STORE_DONE);
	close_scene();
}

/* In milliseconds, after so many attempts in vain. */
static unsigned pause_after(unsigned attempts)
{
	unsigned ms = 0, before;

	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.next = WIRE_BROKEN;
	for (unsigned i = 0; i <= attempts; i++) {
		before = s.fake.connects;
		for (ms = 0; s.fake.connects == before; ms++) {
			begin(0, STORE_STEP, "k");
			turn(1);
			assert_done(0, STORE_DOWN);
			pass(SECOND_NS / 1000);
		}
	}
	close_scene();
	return ms - 1;
}

/* Nodes that lost a server together do not come back together: half as much again is drawn. */
static void pauses_are_doubled_and_drawn_by_lot(void **state)
{
	(void)state;
	for (unsigned attempts = 1; attempts <= 8; attempts++) {
		unsigned pause = 10u << (attempts < 6 ? attempts - 1 : 5);
		unsigned shortest = 2 * pause, longest = 0;

		for (seed = 1; seed <= 64; seed++) {
			unsigned ms = pause_after(attempts);

			assert_in_range(ms, pause, pause + pause / 2);
			shortest = ms < shortest ? ms : shortest;
			longest = ms > longest ? ms : longest;
		}
		assert_true(longest - shortest >= pause / 4);
	}
	seed = 0;
}

/* It lets us in, and that is all that it does. */
static void who_fails_each_batch_is_not_connected_to_without_a_pause(void **state)
{
	static const enum wire_reply_kind kinds[] = { WIRE_LATER, WIRE_WRONG };

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
		s.fake.kind = kinds[i];
		for (int ms = 0; ms < 1000; ms++) {
			begin(0, STORE_STEP, "k");
			turn(2);
			pass(SECOND_NS / 1000);
		}
		assert_in_range(s.fake.connects, 2, 10); /* LINE-3 */
		pass(SECOND_NS);
		s.fake.kind = WIRE_TOLD;
		begin(0, STORE_STEP, "k");
		turn(1);
		assert_done(0, STORE_DONE);
		s.fake.kind = kinds[i];
		s.fake.connects = 0;
		begin(0, STORE_STEP, "k");
		turn(1);
		begin(0, STORE_STEP, "k");
		turn(1);
		assert_int_equal(s.fake.connects, 1); /* it had told: once at once */
		close_scene();
	}
}

static void a_line_that_does_not_open_is_given_up(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.next = WIRE_OPENING;
	begin(0, STORE_STEP, "k");
	turn(1);
	pass(SECOND_NS / 2);
	turn(1);
	assert_done(0, STORE_LATE); /* it was due */
	pass(SECOND_NS / 4);
	begin(1, STORE_STEP, "k");
	pass(SECOND_NS / 4);
	turn(1);
	assert_done(1, STORE_DOWN);
	assert_int_equal(s.fake.hang_ups, 1);
	close_scene();
}

/* Units that nobody waits for are not taken from others. */
static void a_loan_that_nobody_waits_for_is_not_asked_for(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.next = WIRE_OPENING;
	lend(LEND, 1, 9);
	turn(1);
	pass(SECOND_NS * 3 / 4);
	lend(LEND, 2, 5);
	s.fake.state = WIRE_READY;
	turn(2);
	assert_int_equal(s.answer_count, 2);
	assert_int_equal(s.answers[0].number, 1);
	assert_int_equal(s.answers[0].result, STORE_LATE);
	assert_int_equal(s.answers[1].result, STORE_DONE);
	assert_int_equal(s.answers[1].grant.units, 5);
	lend(LEND, 3, 5);
	turn(1);
	assert_int_equal(s.answers[2].grant.units, 5);
	close_scene();
}

static void a_server_that_is_silent_is_hung_up_on(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.silent = true;
	begin(0, STORE_STEP, "k");
	turn(1);
	pass(SECOND_NS / 2);
	turn(1);
	assert_done(0, STORE_LATE);
	assert_int_equal(s.fake.hang_ups, 0);
	pass(SECOND_NS / 2);
	turn(1);
	assert_int_equal(s.fake.hang_ups, 1);
	close_scene();
}

/* Who connects first is told of a new life, from which a quarantine counts. CLIENT-5 */
static void a_line_that_was_lost_is_connected_again_though_nobody_asks(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	begin(0, STORE_STEP, "k");
	turn(1);
	assert_done(0, STORE_DONE);
	s.fake.state = s.fake.next = WIRE_BROKEN;
	turn(1);
	for (int i = 0; i < 10; i++) {
		mono due = turn_once();

		assert_in_range(due.ns, s.now.ns, s.now.ns + SECOND_NS);
		pass(due.ns - s.now.ns);
	}
	assert_in_range(s.fake.connects, 5, 11); /* LINE-4 */
	s.fake.next = WIRE_READY;
	pass(SECOND_NS);
	turn(1);
	assert_int_equal(turn_once().ns, UINT64_MAX);
	close_scene();
}

/* Until nobody has asked for so long that all is over that there was. */
static void a_server_that_nobody_asks_is_asked_whether_it_has_forgotten(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.wire->has_pulses = true;
	turn(2);
	begin(0, STORE_STEP, "k");
	turn(2);
	assert_int_equal(s.fake.pulses, 0);
	for (unsigned i = 1; i < 60; i++) {
		assert_int_equal(turn_once().ns, s.now.ns + SECOND_NS);
		pass(SECOND_NS);
		turn(2);
		assert_int_equal(s.fake.pulses, i);
	}
	pass(SECOND_NS);
	turn(1);
	assert_int_equal(turn_once().ns, UINT64_MAX);
	assert_int_equal(s.fake.pulses, 59);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_ROUND_TRIPS]), 1);

	begin(0, STORE_STEP, "k");
	turn(2);
	s.fake.silent = true;
	pass(SECOND_NS);
	turn(1);
	pass(SECOND_NS);
	turn(2);
	assert_int_equal(s.fake.connects, 2); /* it had gone without a word */
	close_scene();
}

static void what_was_not_done_is_sent_again(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.kind = WIRE_AGAIN;
	begin(0, STORE_STEP, "k");
	begin(1, STORE_STEP, "k");
	turn(3);
	assert_int_equal(s.done[0], 0);
	s.fake.kind = WIRE_TOLD;
	turn(2);
	assert_done(0, STORE_DONE);
	assert_done(1, STORE_DONE);
	assert_int_equal(s.ops[0].answer.remaining, 9); /* in their order */
	assert_int_equal(s.ops[1].answer.remaining, 8);
	begin(2, STORE_STEP, "k");
	s.fake.kind = WIRE_AGAIN;
	turn(200);
	assert_done(2, STORE_BUSY); /* but not for ever */
	close_scene();
}

static void replies_that_cannot_be(void **state)
{
	static const struct {
		enum wire_reply_kind kind;
		enum store_result result;
	} rows[] = {
		{ WIRE_LATER, STORE_DOWN },
		{ WIRE_WRONG, STORE_WRONG },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
		s.fake.kind = rows[i].kind;
		begin(0, STORE_STEP, "k");
		turn(1);
		assert_done(0, rows[i].result);
		assert_int_equal(s.fake.hang_ups, 1);
		close_scene();
	}
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.skewed = 1; /* WIRE-1: the reply to something else */
	begin(0, STORE_STEP, "k");
	turn(1);
	assert_done(0, STORE_LATE);
	assert_int_equal(s.fake.hang_ups, 1);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_WRONG]), 1);
	close_scene();
}

static void a_server_that_forgot_grants_nothing_of_the_window(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.wire->since_us = T0 - T0 % GALE_SECONDS(10) + GALE_SECONDS(3);
	s.fake.server_us = s.fake.wire->since_us + 1;
	begin(0, STORE_STEP, "k");
	lend(LEND, 1, 5);
	begin(2, STORE_PEEK, "k");
	turn(1);
	assert_done(0, STORE_QUARANTINE); /* CLIENT-3 */
	assert_int_equal(s.ops[0].answer.retry_after_us, GALE_SECONDS(7) - 1);
	assert_done(2, STORE_DONE);
	assert_int_equal(s.ops[2].answer.why, GALE_WHY_QUARANTINE);
	assert_int_equal(s.answers[0].grant.units, 0);
	assert_true(s.answers[0].waits);
	assert_int_equal(s.answers[0].grant.retry_us, GALE_SECONDS(7) - 1);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_QUARANTINED]), 2);
	pass(7 * SECOND_NS);
	begin(1, STORE_STEP, "k");
	lend(LEND, 2, 5);
	turn(1);
	assert_int_equal(s.ops[1].answer.verdict, GALE_ALLOW);
	assert_int_equal(s.answers[1].grant.units, 5);
	assert_false(s.answers[1].waits);
	close_scene();
}

/* A pacer's places are booked by a swap, and wait as well. */
static void places_of_a_server_that_forgot_wait(void **state)
{
	(void)state;
	open_scene(gale_leaky_bucket(10, GALE_SECONDS(1), GALE_SECONDS(10)));
	s.fake.wire->since_us = s.fake.server_us;
	lend(LEND, 1, 7);
	turn(3);
	assert_int_equal(s.answers[0].result, STORE_DONE);
	assert_int_equal(s.answers[0].grant.units, 0);
	assert_true(s.answers[0].waits);
	close_scene();
}

static unsigned lines_about(const char *part)
{
	unsigned count = 0;

	for (size_t i = 0; i < s.line_count; i++)
		count += strstr(s.lines[i], part) != NULL;
	return count;
}

/* One line when it begins, however many wait, and one when the last need not wait any more. */
static void a_quarantine_is_told_of_when_it_begins_and_when_it_is_over(void **state)
{
	struct rule brief;
	struct gale_rule config = gale_fixed_window(10, GALE_SECONDS(10));

	(void)state;
	open_scene(gale_fixed_window(10, GALE_HOURS(1)));
	s.fake.wire->since_us = s.fake.server_us = T0 + GALE_SECONDS(3);
	brief = s.rule;
	assert_int_equal(rule_compile(&config, &s.rule), GALE_ERR_OK);
	begin(0, STORE_STEP, "k");
	turn(1);
	assert_int_equal(lines_about("may have forgotten what it granted"), 1);
	assert_int_equal(lines_about("for 7.0 s, and of longer windows for 60.0 s"), 1);
	s.rule = brief;
	begin(1, STORE_STEP, "l");
	turn(1);
	assert_done(1, STORE_QUARANTINE);
	pass(59 * SECOND_NS);
	turn(1);
	assert_int_equal(s.line_count, 1);
	assert_in_range(turn_once().ns, s.now.ns,
	                s.now.ns + SECOND_NS); /* it wants to say so */
	pass(SECOND_NS);
	turn(2);
	assert_int_equal(lines_about("the quarantine is over"), 1);
	assert_int_equal(s.line_count, 2);
	close_scene();
}

static void nobody_is_kept_in_quarantine_for_longer_than_a_minute(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_DAYS(1)));
	s.fake.wire->since_us = T0;
	begin(0, STORE_STEP, "k");
	turn(1);
	assert_done(0, STORE_QUARANTINE);
	assert_int_equal(s.ops[0].answer.retry_after_us, GALE_MINUTES(1));
	pass(60 * SECOND_NS);
	begin(1, STORE_STEP, "k");
	turn(1);
	assert_int_equal(s.ops[1].answer.verdict, GALE_ALLOW);
	close_scene();
}

static void count_answer(struct store_home *home, const struct lend_answer *answer)
{
	(void)home;
	s.answers[0] = *answer;
	s.answer_count++;
}

static void lend_with(uint64_t number, uint64_t want, const struct lend_request *told)
{
	struct lend_request request = *told;

	request.verb = LEND;
	request.key = (const uint8_t *)"lent";
	request.key_len = 4;
	request.rule = &s.rule;
	request.ask = (struct lease_ask){
		.node = number, .number = number, .want = want, .least = 1
	};
	client_lend(s.client, &request, 1, s.now);
}

static void forget(void)
{
	memset(s.fake.keys, 0, sizeof(s.fake.keys));
	s.fake.wire->since_us = s.fake.server_us;
}

/* What it was told before the server forgot, also while nothing is granted yet, and also
 * if it gets nothing for it. L12 */
static void a_server_that_forgot_is_reminded(void **state)
{
	const struct lend_request nothing = { 0 };
	struct lend_request told = { .seen_in = T0 - T0 % GALE_DAYS(1) };

	(void)state;
	open_scene(gale_quota_daily(50, 0));
	lend_with(1, 20, &nothing);
	turn(1);
	assert_int_equal(s.answers[0].grant.units, 20);
	assert_int_not_equal(s.answers[0].life, 0);
	told.seen = 20;
	told.life = s.answers[0].life;
	pass(SECOND_NS);
	forget();

	lend_with(2, 20, &told);
	turn(3);
	assert_int_equal(s.answer_count, 2);
	assert_int_equal(s.answers[1].grant.units, 0);
	assert_int_equal(s.answers[1].grant.left, 0);
	assert_true(s.answers[1].waits);
	assert_int_not_equal(s.answers[1].life, told.life);
	pass(61 * SECOND_NS);
	lend_with(3, 50, &nothing);
	turn(1);
	assert_int_equal(s.answers[2].grant.units, 30);
	assert_int_equal(s.answers[2].life, s.answers[1].life);
	assert_false(s.answers[2].waits);

	pass(SECOND_NS);
	forget();
	pass(61 * SECOND_NS);
	told.seen = 50;
	lend_with(4, 1, &told);
	turn(3);
	assert_int_equal(s.answers[3].grant.units, 0);
	assert_false(s.answers[3].waits);
	lend_with(5, 50, &nothing);
	turn(1);
	assert_int_equal(s.answers[4].grant.units, 0);
	close_scene();
}

/* What others gave back looks like what was forgotten. */
static void a_server_that_forgot_nothing_is_not_reminded(void **state)
{
	struct lend_request told = { .seen_in = T0 - T0 % GALE_DAYS(1), .seen = 50 };

	(void)state;
	open_scene(gale_quota_daily(50, 0));
	lend_with(1, 20, &(struct lend_request){ 0 });
	turn(1);
	told.life = s.answers[0].life;
	lend_with(2, 50, &told);
	turn(1);
	assert_int_equal(s.answers[1].grant.units, 30);
	assert_int_equal(s.answers[1].life, told.life);

	forget();
	pass(61 * SECOND_NS);
	told.seen_in -= GALE_DAYS(1); /* of yesterday it need not know */
	lend_with(3, 50, &told);
	turn(2);
	assert_int_equal(s.answers[2].grant.units, 50);
	close_scene();
}

/* A reminder that is not answered is one that nobody has heard. */
static void a_reminder_may_have_to_be_repeated(void **state)
{
	struct lend_request told = { .seen_in = T0 - T0 % GALE_DAYS(1), .seen = 40 };

	(void)state;
	open_scene(gale_quota_daily(50, 0));
	lend_with(1, 40, &(struct lend_request){ 0 });
	turn(1);
	told.life = s.answers[0].life;
	forget();
	pass(61 * SECOND_NS);
	s.fake.meddlers = 1;
	lend_with(2, 20, &told);
	turn(1);  /* it is read */
	forget(); /* and forgets again, before it is reminded */
	s.fake.kind = WIRE_AGAIN;
	turn(1);
	s.fake.kind = WIRE_TOLD;
	pass(61 * SECOND_NS);
	turn(6);
	assert_int_equal(s.answer_count, 2);
	assert_int_equal(s.answers[1].grant.units, 10);
	close_scene();
}

static void hands_that_are_full_say_so(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.home.on_answer = count_answer;
	s.fake.has_no_room = true;
	for (uint64_t i = 1; i <= CLIENT_TRIPS_MOST; i++)
		lend(LEND, i, 1);
	turn(1);
	assert_int_equal(s.answer_count, 0);
	lend(LEND, CLIENT_TRIPS_MOST + 1, 1);
	assert_int_equal(s.answers[0].result, STORE_BUSY);
	begin(0, STORE_STEP, "k");
	assert_done(0, STORE_BUSY);
	s.fake.has_no_room = false;
	turn(CLIENT_TRIPS_MOST / REMOTE_BATCH_MOST);
	assert_int_equal(s.answer_count, CLIENT_TRIPS_MOST + 1);
	close_scene();
}

/* Nothing is under way, and so nothing will be heard that it could go after. */
static void a_batch_that_there_was_no_room_for_goes_soon(void **state)
{
	mono due;

	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.has_no_room = true;
	begin(0, STORE_STEP, "k");
	due = turn_once();
	assert_in_range(due.ns, s.now.ns + 1, s.now.ns + SECOND_NS / 20);
	s.fake.has_no_room = false;
	s.now = due;
	turn(1);
	assert_done(0, STORE_DONE);
	close_scene();
}

/* What it says to that, it will not have said by then. */
static void what_was_sent_is_written_and_nothing_read(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.wire->ops = &flushing_ops;
	begin(0, STORE_STEP, "k");
	turn(1);
	assert_int_equal(s.fake.flushes, 1);
	assert_int_equal(s.done[0], 0);
	turn(1);
	assert_int_equal(s.fake.flushes, 1);
	assert_done(0, STORE_DONE);
	begin(1, STORE_STEP, "k");
	s.fake.silent = true;
	turn(1);
	begin(2, STORE_STEP, "k");
	s.fake.state = WIRE_BROKEN; /* as it finds out when it writes */
	turn(1);
	assert_done(1, STORE_LATE);
	close_scene();
}

static void a_wire_is_turned_when_it_is_due(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.wire->due = mono_after(s.now, SECOND_NS / 10);
	assert_int_equal(turn_once().ns, UINT64_MAX);
	s.fake.next = WIRE_OPENING;
	begin(0, STORE_STEP, "k");
	assert_int_equal(turn_once().ns, s.fake.wire->due.ns);
	s.fake.state = WIRE_READY;
	s.fake.silent = true;
	assert_int_equal(turn_once().ns, s.fake.wire->due.ns);
	s.fake.silent = false;
	assert_int_equal(turn_once().ns, UINT64_MAX);
	assert_done(0, STORE_DONE);
	close_scene();
}

static void without_memory_an_ask_says_so(void **state)
{
	(void)state;
	open_scene(gale_sliding_log(3, GALE_SECONDS(10)));
	begin(0, STORE_STEP, "k");
	s.allocator.fail_first = 1;
	s.allocator.fail_last = UINT64_MAX;
	turn(1);
	assert_done(0, STORE_NO_MEMORY);
	begin(1, STORE_STEP, "k"); /* a trip there is: it was used before */
	s.allocator.fail_first = s.allocator.fail_last = 0;
	turn(3);
	assert_done(1, STORE_DONE);
	close_scene();
}

static void who_asks_again_when_answered_is_heard(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.asks_again = 3;
	begin(0, STORE_STEP, "k");
	turn(6);
	assert_done(0, STORE_DONE);
	assert_int_equal(load_relaxed(&s.counters[CLIENT_STEPS]), 4);
	s.asks_again = 1;
	s.fake.silent = true;
	begin(0, STORE_STEP, "k");
	turn(1);
	s.fake.state = WIRE_BROKEN;
	turn(1);
	assert_int_equal(s.done[0], 0); /* the second waits for the next connection */
	s.fake.silent = false;
	turn(2);
	assert_done(0, STORE_DONE);
	close_scene();
}

static void closing_answers_what_is_under_way(void **state)
{
	(void)state;
	open_scene(gale_fixed_window(10, GALE_SECONDS(10)));
	s.fake.silent = true;
	begin(0, STORE_STEP, "k");
	turn(1);
	begin(1, STORE_STEP, "k"); /* has not gone yet */
	close_scene();
	assert_done(0, STORE_LATE);
	assert_done(1, STORE_LATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verb_has_its_answer),
		cmocka_unit_test(
		    a_rule_that_the_server_does_not_know_is_read_and_swapped),
		cmocka_unit_test(who_was_not_the_fastest_looks_again),
		cmocka_unit_test(
		    those_who_change_one_key_at_once_do_not_hinder_each_other),
		cmocka_unit_test(who_is_behind_one_that_fails_looks_again),
		cmocka_unit_test(who_is_never_the_fastest_gives_up_and_says_so),
		cmocka_unit_test(a_strategy_that_rules_what_cannot_be_writes_nothing),
		cmocka_unit_test(what_was_read_before_the_server_forgot_is_read_again),
		cmocka_unit_test(leases_come_and_go_back),
		cmocka_unit_test(a_pacers_places_are_booked_by_swaps),
		cmocka_unit_test(
		    what_is_under_way_when_the_line_breaks_is_not_sent_again),
		cmocka_unit_test(who_would_be_late_is_not_sent),
		cmocka_unit_test(who_waits_for_less_than_a_reply_takes_is_not_sent),
		cmocka_unit_test(who_has_given_up_before_it_begins_is_no_overload),
		cmocka_unit_test(a_server_that_is_late_gets_less_at_once),
		cmocka_unit_test(what_has_come_is_told_though_it_is_due),
		cmocka_unit_test(who_cannot_be_reached_is_not_asked_for_a_while),
		cmocka_unit_test(pauses_are_doubled_and_drawn_by_lot),
		cmocka_unit_test(
		    who_fails_each_batch_is_not_connected_to_without_a_pause),
		cmocka_unit_test(a_line_that_does_not_open_is_given_up),
		cmocka_unit_test(a_loan_that_nobody_waits_for_is_not_asked_for),
		cmocka_unit_test(a_server_that_is_silent_is_hung_up_on),
		cmocka_unit_test(
		    a_line_that_was_lost_is_connected_again_though_nobody_asks),
		cmocka_unit_test(
		    a_server_that_nobody_asks_is_asked_whether_it_has_forgotten),
		cmocka_unit_test(what_was_not_done_is_sent_again),
		cmocka_unit_test(replies_that_cannot_be),
		cmocka_unit_test(a_server_that_forgot_grants_nothing_of_the_window),
		cmocka_unit_test(nobody_is_kept_in_quarantine_for_longer_than_a_minute),
		cmocka_unit_test(places_of_a_server_that_forgot_wait),
		cmocka_unit_test(
		    a_quarantine_is_told_of_when_it_begins_and_when_it_is_over),
		cmocka_unit_test(a_server_that_forgot_is_reminded),
		cmocka_unit_test(a_server_that_forgot_nothing_is_not_reminded),
		cmocka_unit_test(a_reminder_may_have_to_be_repeated),
		cmocka_unit_test(hands_that_are_full_say_so),
		cmocka_unit_test(a_batch_that_there_was_no_room_for_goes_soon),
		cmocka_unit_test(what_was_sent_is_written_and_nothing_read),
		cmocka_unit_test(a_wire_is_turned_when_it_is_due),
		cmocka_unit_test(without_memory_an_ask_says_so),
		cmocka_unit_test(who_asks_again_when_answered_is_heard),
		cmocka_unit_test(closing_answers_what_is_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
