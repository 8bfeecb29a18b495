/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* server_test.c -- homes that enter a server, ask there, and leave. */
#include "stores/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/clock.h"
#include "sim/allocator.h"
#include "tests/support/clock.h"

#define HOMES 3

/* A server that never lets anybody in. */
struct scene {
	struct test_allocator allocator;
	struct test_clock clock;
	struct server_kind kind;
	unsigned wires;
	struct store *store;
	struct store_home homes[HOMES];
	struct store_client clients[HOMES];
	struct rule rule;
	struct store_op op;
	struct store_call calls[HOMES];
};

static struct scene s;

static void wire_connect(struct wire *wire, mono now)
{
	(void)wire, (void)now;
}

static enum wire_state wire_turn(struct wire *wire, mono now)
{
	(void)wire, (void)now;
	return WIRE_OPENING;
}

static bool wire_send(struct wire *wire, const struct remote_batch *batch)
{
	(void)wire, (void)batch;
	fail_msg("nothing can be sent");
	return false;
}

static void wire_hang_up(struct wire *wire)
{
	(void)wire;
}

static void wire_free(struct wire *wire)
{
	s.wires--;
	free(wire);
}

static const struct wire_ops wire_ops = {
	.connect = wire_connect,
	.turn = wire_turn,
	.send = wire_send,
	.hang_up = wire_hang_up,
	.free = wire_free,
};

static struct wire *kind_wire(struct server_kind *kind, struct watch watch)
{
	struct wire *wire = calloc(1, sizeof(*wire));

	(void)kind, (void)watch;
	assert_non_null(wire);
	wire->ops = &wire_ops;
	s.wires++;
	return wire;
}

static void kind_free(struct server_kind *kind)
{
	assert_ptr_equal(kind, &s.kind);
	kind->wire = NULL;
}

static void open_scene(void)
{
	struct gale_rule rule = gale_fixed_window(10, GALE_SECONDS(10));
	struct server_config config = { .allocator = &s.allocator.allocator,
		                        .kind = &s.kind };

	memset(&s, 0, sizeof(s));
	test_allocator_init(&s.allocator);
	test_clock_init(&s.clock, GALE_HOURS(1));
	test_clock_is_the_nodes(&s.clock);
	s.kind = (struct server_kind){ .wire = kind_wire, .free = kind_free };
	s.store = server_open(&config);
	assert_non_null(s.store);
	assert_int_equal(rule_compile(&rule, &s.rule), GALE_ERR_OK);
	s.op = (struct store_op){ .verb = STORE_STEP,
		                  .key = (const uint8_t *)"k",
		                  .key_len = 1,
		                  .rule = &s.rule,
		                  .cost = 1 };
	for (int i = 0; i < HOMES; i++) {
		list_init(&s.homes[i].done);
		s.homes[i].clock = &s.clock.clock;
		s.homes[i].watch.epoll_fd = -1;
	}
}

static void close_scene(void)
{
	s.store->ops->close(s.store);
	assert_null(s.kind.wire);
	assert_int_equal(s.wires, 0);
	assert_true(test_allocator_is_balanced(&s.allocator));
}

static mono now(void)
{
	return clock_now(&s.clock.clock);
}

static void enter(int i)
{
	assert_true(store_enter(s.store, &s.homes[i], &s.clients[i]));
}

static void begin(int i)
{
	s.calls[i] =
	    (struct store_call){ .op = &s.op, .due = mono_after(now(), 1000000) };
	s.store->ops->begin(&s.clients[i], &s.calls[i]);
}

static void assert_takes(int i, enum store_result result)
{
	assert_ptr_equal(store_take(&s.homes[i]), &s.calls[i]);
	assert_int_equal(s.calls[i].result, result);
	assert_null(store_take(&s.homes[i]));
}

static void each_home_has_a_client_and_takes_what_it_began(void **state)
{
	(void)state;
	open_scene();
	for (int i = 0; i < HOMES; i++)
		enter(i);
	assert_int_equal(s.wires, HOMES);
	for (int i = 0; i < HOMES; i++) {
		begin(i);
		assert_null(store_take(&s.homes[i]));
	}
	test_clock_advance(&s.clock, 1000);
	for (int i = HOMES - 1; i >= 0; i--) {
		assert_false(s.store->ops->is_idle(&s.clients[i]));
		(void)s.store->ops->turn(&s.clients[i], now());
		assert_takes(i, STORE_LATE);
		assert_true(s.store->ops->is_idle(&s.clients[i]));
	}
	for (int i = 0; i < HOMES; i++)
		store_leave(&s.clients[i]);
	close_scene();
}

/* STORE-8 */
static void what_a_home_that_leaves_has_begun_is_late(void **state)
{
	(void)state;
	open_scene();
	enter(0);
	enter(1);
	begin(0);
	begin(1);
	store_leave(&s.clients[0]);
	assert_takes(0, STORE_LATE);
	assert_null(store_take(&s.homes[1]));
	enter(0);
	begin(0);
	store_leave(&s.clients[1]);
	assert_takes(1, STORE_LATE);
	store_leave(&s.clients[0]);
	assert_takes(0, STORE_LATE);
	close_scene();
}

static uint64_t failures(void)
{
	struct gale_counts counts;

	s.store->ops->stats(s.store, &counts);
	return counts.failures;
}

static void what_a_home_has_counted_stays_when_it_leaves(void **state)
{
	uint64_t before;

	(void)state;
	open_scene();
	enter(0);
	enter(1);
	begin(0);
	for (int i = 0; failures() == 0 && i < 100; i++) {
		(void)s.store->ops->turn(&s.clients[0], now());
		test_clock_advance(&s.clock, GALE_SECONDS(1));
	}
	before = failures();
	assert_true(before > 0);
	store_leave(&s.clients[0]);
	assert_int_equal(failures(), before);
	store_leave(&s.clients[1]);
	close_scene();
}

static void a_home_without_memory_does_not_enter(void **state)
{
	uint64_t fails = 0;

	(void)state;
	open_scene();
	do {
		fails++;
		s.allocator.fail_first = s.allocator.calls + fails;
		s.allocator.fail_last = s.allocator.fail_first;
		assert_int_equal(s.wires, 0);
	} while (!store_enter(s.store, &s.homes[0], &s.clients[0]));
	assert_true(fails > 2);
	store_leave(&s.clients[0]);
	close_scene();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_home_has_a_client_and_takes_what_it_began),
		cmocka_unit_test(what_a_home_that_leaves_has_begun_is_late),
		cmocka_unit_test(what_a_home_has_counted_stays_when_it_leaves),
		cmocka_unit_test(a_home_without_memory_does_not_enter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
