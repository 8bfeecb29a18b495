/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * client_map_test.c -- what is asked of many servers, each of which has some of the keys.
 *
 * Map and wires are the test's own; behind the wires are servers that serve by the engine.
 * A key's bucket is its first letter, and a node refuses what is not with it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "stores/client.h"
#include "stores/quarantine.h"
#include "sim/allocator.h"
#include "sim/server.h"

#define T0 GALE_SECONDS(1700000000)
#define SECOND_NS UINT64_C(1000000000)
#define NODES 3
#define KEYS 64
#define CALLS 64
#define SENT_MOST 128

struct sent {
	struct remote_batch batch;
	struct remote_job jobs[REMOTE_BATCH_MOST];
	char generation[REMOTE_GENERATION_BYTES + 1];
};

/* A server, and the wire to it. */
struct node {
	struct wire wire; /* first */
	enum wire_state state;
	bool is_open;
	bool is_silent;
	unsigned life; /* of its generations */
	unsigned connects;
	unsigned batches;
	unsigned greetings;
	unsigned most_jobs; /* in one batch */
	struct sent sent[SENT_MOST];
	size_t sent_count;
};

struct key {
	char name[8];
	struct kept kept;
};

struct scene {
	struct test_allocator allocator;
	struct store_home home;
	struct map map;
	uint32_t owners[MAP_BUCKETS];   /* what is so ... */
	uint32_t believed[MAP_BUCKETS]; /* ... and what the map says */
	uint32_t moving[MAP_BUCKETS];   /* to which node; MAP_NOWHERE: it does not */
	unsigned since[NODES][MAP_BUCKETS];
	unsigned not_now; /* so many batches are told to come later */
	unsigned doubts;
	bool is_learning;
	struct node nodes[NODES];
	struct key keys[KEYS];
	struct kept before[REMOTE_BATCH_MOST];
	struct client *client;
	_Atomic uint64_t counters[CLIENT_COUNTER_COUNT];
	struct quarantine_notice notice;
	mono now;
	uint64_t server_us;
	struct rule rule;
	struct store_op ops[CALLS];
	struct store_call calls[CALLS];
	enum store_result results[CALLS];
	unsigned done[CALLS];
};

static struct scene s;

/* ---- Servers --------------------------------------------------------------------- */

static struct kept *kept_of(struct remote_bytes key)
{
	for (int i = 0; i < KEYS; i++) {
		char *name = s.keys[i].name;

		if (name[0] == '\0')
			memcpy(name, key.bytes, key.count);
		if (strlen(name) == key.count &&
		    memcmp(name, key.bytes, key.count) == 0)
			return &s.keys[i].kept;
	}
	fail_msg("too many keys");
	return NULL;
}

static void generation_of(const struct node *node, char *out)
{
	snprintf(out, REMOTE_GENERATION_BYTES, "%d.%u", (int)(node - s.nodes),
	         node->life);
}

/* What a node that does not serve the bucket says. */
static bool refuses(const struct node *node, const struct remote_batch *batch,
                    struct wire_reply *reply)
{
	uint32_t self = (uint32_t)(node - s.nodes), owner = s.owners[batch->bucket];
	uint32_t to = s.moving[batch->bucket];

	if (self == owner && to == MAP_NOWHERE)
		return false;
	if (self == to && batch->asking)
		return false;
	reply->kind = self == owner ? WIRE_ASK : WIRE_MOVED;
	reply->place.port = (uint16_t)(self == owner ? to : owner);
	reply->place.host = "node";
	return true;
}

static void serve(struct wire_reply *reply, const struct sent *sent,
                  struct remote_told *told)
{
	for (size_t i = 0; i < sent->batch.count; i++) {
		struct kept *kept = kept_of(sent->jobs[i].key), after;

		s.before[i] = *kept;
		told[i] =
		    server_serve(&sent->jobs[i], s.server_us, &s.before[i], &after);
		*kept = after;
	}
	reply->told = told;
	reply->count = sent->batch.count;
}

static void reply_to(struct node *node, const struct sent *sent)
{
	struct remote_told told[REMOTE_BATCH_MOST];
	struct wire_reply reply = { .nonce = sent->batch.nonce,
		                    .count = sent->batch.count };
	char generation[REMOTE_GENERATION_BYTES];

	generation_of(node, generation);
	if (s.not_now > 0) {
		s.not_now--;
		reply.kind = WIRE_NOT_NOW;
	} else if (refuses(node, &sent->batch, &reply)) {
		assert_int_not_equal(reply.kind, WIRE_TOLD);
	} else if (sent->batch.count == 0) {
		reply.generation = (struct remote_bytes){ (const uint8_t *)generation,
			                                  strlen(generation) };
		reply.since_us = s.since[node - s.nodes][sent->batch.bucket];
	} else if (strcmp(sent->generation, generation) != 0) {
		reply.kind = WIRE_AGAIN;
	} else {
		serve(&reply, sent, told);
	}
	node->wire.home->on_reply(node->wire.home, &reply);
}

/* ---- Wires ----------------------------------------------------------------------- */

static void node_connect(struct wire *wire, mono now)
{
	struct node *node = (struct node *)wire;

	(void)now;
	node->connects++;
	if (node->state == WIRE_OPENING)
		node->state = WIRE_READY;
}

static void assert_of_one_bucket(const struct remote_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		assert_int_equal(batch->jobs[i].key.bytes[0], batch->bucket);
}

static bool node_send(struct wire *wire, const struct remote_batch *batch)
{
	struct node *node = (struct node *)wire;
	struct sent *sent = &node->sent[node->sent_count];

	assert_int_equal(node->state, WIRE_READY);
	if (node->sent_count == SENT_MOST)
		return false;
	assert_of_one_bucket(batch);
	node->sent_count++;
	node->batches += batch->count > 0;
	node->greetings += batch->count == 0;
	if (node->most_jobs < batch->count)
		node->most_jobs = (unsigned)batch->count;
	*sent = (struct sent){ .batch = *batch };
	if (batch->count > 0)
		memcpy(sent->jobs, batch->jobs, batch->count * sizeof(sent->jobs[0]));
	if (batch->generation.count > 0)
		memcpy(sent->generation, batch->generation.bytes,
		       batch->generation.count);
	return true;
}

static enum wire_state node_turn(struct wire *wire, mono now)
{
	struct node *node = (struct node *)wire;
	size_t count = node->is_silent ? 0 : node->sent_count;

	(void)now;
	for (size_t i = 0; i < count && node->state == WIRE_READY; i++)
		reply_to(node, &node->sent[i]);
	if (count > 0)
		node->sent_count = 0;
	return node->state;
}

static void node_hang_up(struct wire *wire)
{
	struct node *node = (struct node *)wire;

	node->sent_count = 0;
	if (node->state == WIRE_READY)
		node->state = WIRE_OPENING;
}

static void node_free(struct wire *wire)
{
	struct node *node = (struct node *)wire;

	assert_true(node->is_open);
	node->is_open = false;
	node_hang_up(wire);
}

static const struct wire_ops node_ops = {
	.connect = node_connect,
	.turn = node_turn,
	.send = node_send,
	.hang_up = node_hang_up,
	.free = node_free,
};

/* ---- The map --------------------------------------------------------------------- */

static uint8_t map_bucket(const struct map *map, const uint8_t *key, uint32_t key_len)
{
	(void)map;
	assert_true(key_len > 0);
	return key[0];
}

static uint32_t map_node(const struct map *map, uint8_t bucket)
{
	(void)map;
	return s.believed[bucket];
}

static void map_doubt(struct map *map)
{
	(void)map;
	s.doubts++;
}

static mono map_turn(struct map *map, mono now)
{
	(void)map;
	(void)now;
	return (mono){ UINT64_MAX };
}

static bool map_is_learning(const struct map *map, mono now)
{
	(void)map;
	(void)now;
	return s.is_learning;
}

static uint32_t map_other(struct map *map, uint32_t node,
                          const struct wire_place *place)
{
	(void)map;
	(void)node;
	assert_string_equal(place->host, "node");
	return place->port;
}

static uint32_t map_moved(struct map *map, uint8_t bucket, uint32_t node,
                          const struct wire_place *place)
{
	s.believed[bucket] = map_other(map, node, place);
	return s.believed[bucket];
}

static struct wire *map_wire(struct map *map, uint32_t number)
{
	struct node *node = &s.nodes[number];

	(void)map;
	assert_in_range(number, 0, NODES - 1);
	assert_false(node->is_open);
	node->is_open = true;
	return &node->wire;
}

static bool map_is_needed(const struct map *map, uint32_t node)
{
	(void)map;
	for (int i = 0; i < MAP_BUCKETS; i++)
		if (s.believed[i] == node)
			return true;
	return false;
}

static void map_drop(struct map *map, uint32_t node)
{
	(void)map;
	assert_false(s.nodes[node].is_open);
}

static void map_free(struct map *map)
{
	(void)map;
}

static const struct map_ops map_ops = {
	.bucket = map_bucket,
	.node = map_node,
	.doubt = map_doubt,
	.turn = map_turn,
	.is_learning = map_is_learning,
	.moved = map_moved,
	.other = map_other,
	.wire = map_wire,
	.is_needed = map_is_needed,
	.drop = map_drop,
	.free = map_free,
};

static void give(char bucket, uint32_t node)
{
	s.owners[(uint8_t)bucket] = node;
}

/* The map knows what is so. */
static void learn(void)
{
	memcpy(s.believed, s.owners, sizeof(s.owners));
	s.is_learning = false;
	s.map.changes++;
	s.map.tried = s.now;
}

/* ---- The shard ------------------------------------------------------------------- */

static void on_done(const struct store_call *call)
{
	size_t i = (size_t)(call - s.calls);

	s.done[i]++;
	s.results[i] = call->result;
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
	(void)answer;
	fail_msg("nothing was lent");
}

static void begin(int i, const char *key)
{
	s.ops[i] = (struct store_op){ .verb = STORE_STEP,
		                      .key = (const uint8_t *)key,
		                      .key_len = (uint32_t)strlen(key),
		                      .rule = &s.rule,
		                      .cost = 1 };
	s.calls[i] = (struct store_call){ .op = &s.ops[i],
		                          .due = mono_after(s.now, SECOND_NS / 2) };
	s.done[i] = 0;
	client_begin(s.client, &s.calls[i], s.now);
	take_done();
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
	s.server_us += ns / 1000;
}

static void open_scene(void)
{
	struct client_config config = { .home = &s.home,
		                        .map = &s.map,
		                        .counters = s.counters,
		                        .notice = &s.notice,
		                        .quarantine_us = QUARANTINE_DEFAULT_US };
	struct gale_rule rule = gale_fixed_window(10, GALE_SECONDS(10));

	memset(&s, 0, sizeof(s));
	memset(s.moving, 0xff, sizeof(s.moving)); /* MAP_NOWHERE */
	list_init(&s.home.done);
	s.home.on_answer = on_answer;
	s.map.ops = &map_ops;
	for (int i = 0; i < NODES; i++)
		s.nodes[i].wire = (struct wire){ .ops = &node_ops, .by_buckets = true };
	s.server_us = T0;
	s.now.ns = SECOND_NS;
	assert_int_equal(rule_compile(&rule, &s.rule), GALE_ERR_OK);
	test_allocator_init(&s.allocator);
	config.allocator = &s.allocator.allocator;
	s.client = client_open(&config);
	assert_non_null(s.client);
}

static void close_scene(void)
{
	client_close(s.client);
	take_done();
	for (int i = 0; i < NODES; i++)
		assert_false(s.nodes[i].is_open);
	assert_true(test_allocator_is_balanced(&s.allocator));
}

static void assert_done(int i, enum store_result result)
{
	assert_int_equal(s.done[i], 1); /* CLIENT-1 */
	assert_int_equal(s.results[i], result);
}

static void assert_remaining(int i, uint64_t remaining)
{
	assert_done(i, STORE_DONE);
	assert_int_equal(s.ops[i].answer.remaining, remaining);
}

/* ---- Tests ----------------------------------------------------------------------- */

static void each_key_is_asked_of_its_node(void **state)
{
	(void)state;
	open_scene();
	give('b', 1);
	learn();
	begin(0, "a1");
	begin(1, "a2");
	begin(2, "b1");
	turn(3);
	for (int i = 0; i < 3; i++)
		assert_remaining(i, 9);
	assert_int_equal(s.nodes[0].greetings, 1); /* a bucket's, once */
	assert_int_equal(s.nodes[0].batches, 1);
	assert_int_equal(s.nodes[0].most_jobs, 2);
	assert_int_equal(s.nodes[1].batches, 1);
	assert_int_equal(s.nodes[2].connects, 0);
	begin(3, "a1");
	turn(1);
	assert_remaining(3, 8);
	assert_int_equal(s.nodes[0].greetings, 1);
	close_scene();
}

static void many_buckets_go_at_once(void **state)
{
	static char keys[CALLS][2];

	(void)state;
	open_scene();
	for (int i = 0; i < CALLS; i++) {
		keys[i][0] = (char)('0' + i);
		begin(i, keys[i]);
	}
	turn(8); /* greetings; batches, as many as were seen to be answered in time */
	for (int i = 0; i < CALLS; i++)
		assert_remaining(i, 9);
	assert_int_equal(s.nodes[0].batches, CALLS);
	close_scene();
}

static void who_has_moved_is_followed(void **state)
{
	(void)state;
	open_scene();
	begin(0, "a");
	turn(2);
	assert_remaining(0, 9);
	give('a', 1);
	for (int i = 1; i < 4; i++)
		begin(i, "a");
	turn(4);
	for (int i = 1; i < 4; i++)
		assert_remaining(i, 9 - (uint64_t)i); /* in their order, once */
	assert_true(s.doubts > 0);
	assert_int_equal(s.nodes[1].greetings, 1);
	close_scene();
}

static void who_is_moving_is_asked_there(void **state)
{
	unsigned asked;

	(void)state;
	open_scene();
	begin(0, "a");
	turn(2);
	s.moving['a'] = 1;
	begin(1, "a");
	begin(2, "a");
	turn(4);
	assert_remaining(1, 8);
	assert_remaining(2, 7);
	asked = s.nodes[0].batches + s.nodes[0].greetings;
	begin(3, "a");
	turn(6);
	assert_remaining(3, 6);
	assert_true(s.nodes[0].batches + s.nodes[0].greetings > asked); /* first */
	s.moving['a'] = MAP_NOWHERE;                                    /* back again */
	begin(4, "a");
	turn(4);
	assert_remaining(4, 5);
	close_scene();
}

/* Two that each say that the other has it. */
static void nobody_is_sent_around_for_ever(void **state)
{
	(void)state;
	open_scene();
	give('a', 2);
	s.moving['a'] = 2;
	s.owners['a'] = 1;
	s.believed['a'] = 1;
	begin(0, "a");
	for (int i = 0; i < 200; i++) {
		s.owners['a'] = (uint32_t)i % 2; /* never who is asked */
		s.moving['a'] = MAP_NOWHERE;
		turn(1);
	}
	assert_int_equal(s.done[0], 1);
	close_scene();
}

static void who_cannot_now_is_asked_later_and_alone(void **state)
{
	(void)state;
	open_scene();
	begin(0, "a1");
	turn(2);
	begin(1, "a1");
	begin(2, "a2");
	s.not_now = 1;
	turn(5);
	assert_int_equal(s.done[1] + s.done[2], 0); /* they rest */
	s.nodes[0].most_jobs = 0;
	pass(SECOND_NS / 50);
	turn(3);
	assert_remaining(1, 8);
	assert_remaining(2, 9);
	assert_int_equal(s.nodes[0].most_jobs, 1);
	s.not_now = 1000;
	begin(3, "a1");
	pass(SECOND_NS / 2);
	turn(1);
	assert_done(3, STORE_BUSY); /* patience holds, and it was not sent */
	close_scene();
}

static void another_generation_is_asked_for(void **state)
{
	(void)state;
	open_scene();
	begin(0, "a");
	begin(1, "b");
	turn(2);
	s.nodes[0].life++;
	s.since[0]['a'] = 1; /* long ago */
	begin(2, "a");
	turn(4);
	assert_remaining(2, 8);
	assert_int_equal(s.nodes[0].greetings, 4); /* twice for each */
	close_scene();
}

/* One bucket may have been forgotten, and not the others. */
static void a_bucket_has_a_quarantine_of_its_own(void **state)
{
	(void)state;
	open_scene();
	s.server_us = 5000000;
	s.since[0]['a'] = 5000000;
	begin(0, "a");
	begin(1, "b");
	turn(2);
	assert_done(0, STORE_QUARANTINE); /* CLIENT-3 */
	assert_int_equal(s.ops[0].answer.retry_after_us, GALE_SECONDS(5));
	assert_int_equal(s.ops[1].answer.verdict, GALE_ALLOW);
	close_scene();
}

/* Who tells of another life for one bucket has another for all. */
static void a_node_that_has_forgotten_is_greeted_for_all_buckets(void **state)
{
	(void)state;
	open_scene();
	s.nodes[0].wire.has_pulses = true;
	begin(0, "a");
	begin(1, "b");
	turn(2);
	pass(SECOND_NS);
	turn(2);
	assert_int_equal(s.nodes[0].greetings, 3); /* one of them */
	pass(SECOND_NS);
	s.nodes[0].life++;
	turn(3);
	assert_int_equal(s.nodes[0].greetings,
	                 5); /* both, and nobody asked. CLIENT-5 */
	assert_int_equal(s.nodes[0].batches, 2);
	close_scene();
}

static void buckets_are_greeted_where_they_are_though_nobody_asks(void **state)
{
	(void)state;
	open_scene();
	begin(0, "a");
	begin(1, "b");
	turn(2);
	s.nodes[0].state = WIRE_BROKEN;
	give('a', 1);
	give('b', 2);
	turn(1);
	assert_true(s.doubts > 0);
	learn();
	turn(3);
	for (int i = 1; i < NODES; i++) {
		assert_int_equal(s.nodes[i].greetings, 1); /* CLIENT-5 */
		assert_int_equal(s.nodes[i].batches, 0);
	}
	close_scene();
}

/* Nobody says that a bucket has moved that nobody asks for. */
static void a_map_is_learned_again_until_nobody_asks_any_more(void **state)
{
	(void)state;
	open_scene();
	learn();
	begin(0, "a");
	turn(2);
	pass(5 * SECOND_NS - 1);
	assert_int_equal(client_turn(s.client, s.now).ns, s.now.ns + 1);
	assert_int_equal(s.doubts, 0);
	pass(1);
	give('a', 1);
	turn(1);
	assert_int_equal(s.doubts, 1); /* CLIENT-5 */
	learn();
	turn(3);
	assert_int_equal(s.nodes[1].greetings, 1);
	pass(QUARANTINE_DEFAULT_US * 1000);
	assert_int_equal(client_turn(s.client, s.now).ns, UINT64_MAX);
	assert_int_equal(s.doubts, 1);
	begin(1, "a");
	turn(2);
	assert_true(s.doubts > 1);
	close_scene();
}

/* Two that each say that the other has it: while nobody asks, that is no hurry. */
static void who_is_sent_around_is_greeted_with_pauses(void **state)
{
	unsigned before;

	(void)state;
	open_scene();
	begin(0, "a");
	turn(2);
	s.nodes[0].state = WIRE_BROKEN;
	turn(1);
	s.nodes[0].state = WIRE_OPENING;
	give('a', 2); /* neither of both */
	before = s.nodes[0].greetings;
	for (int i = 0; i < 100; i++) {
		s.believed['a'] = (uint32_t)i % 2;
		turn(1);
	}
	assert_in_range(s.nodes[0].greetings + s.nodes[1].greetings, before + 1,
	                before + 2);
	pass(SECOND_NS);
	learn();
	turn(3);
	assert_int_equal(s.nodes[2].greetings, 1);
	close_scene();
}

static void what_is_under_way_when_a_line_breaks_is_not_sent_again(void **state)
{
	(void)state;
	open_scene();
	give('b', 1);
	learn();
	begin(0, "a");
	begin(1, "b");
	turn(2);
	s.nodes[0].is_silent = true;
	s.nodes[1].is_silent = true;
	begin(2, "a");
	begin(3, "b");
	turn(1);
	s.nodes[0].state = WIRE_BROKEN;
	turn(1);
	assert_done(2, STORE_LATE);     /* CLIENT-2 */
	assert_int_equal(s.done[3], 0); /* the other line goes on */
	s.nodes[1].is_silent = false;
	turn(1);
	assert_remaining(3, 8);
	assert_true(s.doubts > 0);
	close_scene();
}

static void who_waits_for_a_dead_node_goes_to_the_next(void **state)
{
	(void)state;
	open_scene();
	give('a', 1);
	learn();
	s.nodes[1].state = WIRE_BROKEN;
	begin(0, "a");
	turn(1);
	assert_done(0, STORE_DOWN);
	begin(1, "a");
	assert_done(1, STORE_DOWN); /* at once */
	begin(2, "b");
	turn(2);
	assert_remaining(2, 9); /* the others go on */
	give('a', 2);
	learn();
	turn(1);
	begin(3, "a");
	turn(2);
	assert_remaining(3, 9);
	assert_false(s.nodes[1].is_open); /* nobody needs it */
	assert_true(s.nodes[0].is_open);
	close_scene();
}

static void who_belongs_nowhere_is_told(void **state)
{
	(void)state;
	open_scene();
	give('a', MAP_NOWHERE);
	learn();
	turn(1);
	begin(0, "a");
	assert_done(0, STORE_DOWN); /* nobody has it */
	s.is_learning = true;
	begin(1, "a");
	turn(2);
	assert_int_equal(s.done[1], 0); /* that may change */
	assert_true(s.doubts > 0);
	learn();
	turn(1);
	assert_done(1, STORE_DOWN); /* it did not */
	s.is_learning = true;
	begin(2, "a");
	turn(1);
	give('a', 2);
	learn();
	turn(3);
	assert_remaining(2, 9);
	close_scene();
}

static void closing_answers_what_is_under_way(void **state)
{
	(void)state;
	open_scene();
	give('b', 1);
	give('c', MAP_NOWHERE);
	learn();
	begin(0, "a");
	turn(2);
	s.nodes[0].is_silent = s.nodes[1].is_silent = true;
	begin(0, "a"); /* under way */
	begin(1, "b"); /* waits for a generation */
	turn(1);
	begin(2, "b"); /* too */
	begin(3, "d"); /* has not gone yet */
	s.is_learning = true;
	begin(4, "c"); /* nobody knows where to */
	close_scene();
	assert_done(0, STORE_LATE);
	for (int i = 1; i < 5; i++)
		assert_int_equal(s.done[i], 1);
}

static void without_memory_nothing_is_asked(void **state)
{
	struct client_config config = { .map = &s.map };

	(void)state;
	open_scene();
	config.allocator = &s.allocator.allocator;
	for (uint64_t i = 0; i < 3; i++) {
		s.allocator.fail_first = s.allocator.fail_last =
		    s.allocator.calls + 1 + i;
		assert_null(client_open(&config));
	}
	s.allocator.fail_first = 1;
	s.allocator.fail_last = UINT64_MAX;
	begin(0, "a");
	assert_int_equal(s.done[0], 1); /* no line, no trip */
	s.allocator.fail_first = s.allocator.fail_last = 0;
	begin(1, "a");
	turn(3);
	assert_remaining(1, 9);
	close_scene();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_is_asked_of_its_node),
		cmocka_unit_test(many_buckets_go_at_once),
		cmocka_unit_test(who_has_moved_is_followed),
		cmocka_unit_test(who_is_moving_is_asked_there),
		cmocka_unit_test(nobody_is_sent_around_for_ever),
		cmocka_unit_test(who_cannot_now_is_asked_later_and_alone),
		cmocka_unit_test(another_generation_is_asked_for),
		cmocka_unit_test(a_bucket_has_a_quarantine_of_its_own),
		cmocka_unit_test(a_node_that_has_forgotten_is_greeted_for_all_buckets),
		cmocka_unit_test(buckets_are_greeted_where_they_are_though_nobody_asks),
		cmocka_unit_test(a_map_is_learned_again_until_nobody_asks_any_more),
		cmocka_unit_test(who_is_sent_around_is_greeted_with_pauses),
		cmocka_unit_test(
		    what_is_under_way_when_a_line_breaks_is_not_sent_again),
		cmocka_unit_test(who_waits_for_a_dead_node_goes_to_the_next),
		cmocka_unit_test(who_belongs_nowhere_is_told),
		cmocka_unit_test(closing_answers_what_is_under_way),
		cmocka_unit_test(without_memory_nothing_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
