/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * jemalloc_test.c -- an allocator that has to be told the size of what it frees, and the malloc of a
 * host that gave none.
 *
 * sdallocx believes the size that it gets, and with a wrong one spoils its arena.  So a
 * head before each block remembers the size, as in sim/allocator.c; what goes to
 * sdallocx is what gale said, and jemalloc's own record of the block must agree.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <cmocka.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "runtime/memory.h"
#include "tests/support/must.h"

struct host {
	struct gale_allocator allocator; /* first: it is what gale gets */
	int flags;
	_Atomic uint64_t taken; /* blocks, ever */
	_Atomic uint64_t given;
};

struct head {
	alignas(max_align_t) size_t bytes;
};

static void *take(struct gale_allocator *self, size_t bytes)
{
	struct host *host = (struct host *)self;
	struct head *head;

	must(bytes > 0);
	head = mallocx(sizeof(*head) + bytes, host->flags);
	must(head);
	head->bytes = bytes;
	add_relaxed(&host->taken, 1);
	return head + 1;
}

static void give(struct gale_allocator *self, void *memory, size_t bytes)
{
	struct host *host = (struct host *)self;
	struct head *head = (struct head *)memory - 1;
	size_t whole = sizeof(*head) + bytes;

	must(head->bytes == bytes);
	must(sallocx(head, host->flags) == nallocx(whole, host->flags));
	add_relaxed(&host->given, 1);
	sdallocx(head, whole, host->flags);
}

/* What jemalloc itself says is in the arena. */
static size_t left_in(unsigned arena)
{
	size_t mib[5], depth = sizeof(mib) / sizeof(mib[0]), small, large;
	size_t size = sizeof(small);
	uint64_t epoch = 1;

	must(mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) == 0);
	must(mallctlnametomib("stats.arenas.0.small.allocated", mib, &depth) == 0);
	mib[2] = arena;
	must(mallctlbymib(mib, depth, &small, &size, NULL, 0) == 0);
	depth = sizeof(mib) / sizeof(mib[0]);
	must(mallctlnametomib("stats.arenas.0.large.allocated", mib, &depth) == 0);
	mib[2] = arena;
	must(mallctlbymib(mib, depth, &large, &size, NULL, 0) == 0);
	return small + large;
}

/* Keys that are evicted, tables that grow, a log that does with each admission, a key
 * that is held, a seat that comes and goes. */
static void ask_much(struct gale_runtime *runtime, struct gale_store *store,
                     enum gale_mode mode, struct gale_rule rule)
{
	struct gale_limiter_config config = {
		.name = "api", .rule = rule, .mode = mode, .store = store
	};
	struct gale_limiter *limiter;
	struct gale_key *held;
	struct gale_seat *seat;

	must(gale_limiter_open(runtime, &config, &limiter) == GALE_ERR_OK);
	must(gale_join(runtime, &seat) == GALE_ERR_OK);
	must(gale_key_open(seat, limiter, "held", 4, &held) == GALE_ERR_OK);
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t user = i % 3 ? i : 0;

		gale_wait(seat, limiter, &user, sizeof(user), 1, GALE_SECONDS(10));
	}
	gale_key_close(held);
	gale_leave(seat);
	gale_limiter_close(limiter);
}

static void every_free_has_the_size_that_was_taken(void **state)
{
	static struct host host = { .allocator = { take, give } };
	struct gale_config config = { .allocator = &host.allocator,
		                      .shards = 2,
		                      .max_keys = 500 };
	struct gale_store_config far = { .url = "redis://127.0.0.1:1" };
	struct gale_runtime *runtime;
	struct gale_store *memory, *server;
	size_t size = sizeof(unsigned);
	unsigned arena;

	(void)state;
	must(mallctl("arenas.create", &arena, &size, NULL, 0) == 0);
	host.flags = MALLOCX_ARENA((int)arena) | MALLOCX_TCACHE_NONE;

	must(gale_runtime_open(&config, &runtime) == GALE_ERR_OK);
	must(gale_store_open(runtime, NULL, &memory) == GALE_ERR_OK);
	ask_much(runtime, memory, GALE_LEASED, gale_fixed_window(100, GALE_SECONDS(1)));
	ask_much(runtime, memory, GALE_CACHED_DENY,
	         gale_sliding_log(20, GALE_SECONDS(1)));
	ask_much(runtime, memory, GALE_STRICT, gale_gcra(100, GALE_SECONDS(1), 10));
	gale_store_close(memory);

	/* Nobody is there: what is asked goes through the client and comes back undone. */
	if (gale_store_open(runtime, &far, &server) != GALE_ERR_NOT_BUILT) {
		ask_much(runtime, server, GALE_LEASED,
		         gale_fixed_window(5, GALE_SECONDS(1)));
		gale_store_close(server);
	}
	gale_runtime_close(runtime);

	assert_true(load_relaxed(&host.taken) > 1000);
	assert_int_equal(load_relaxed(&host.given), load_relaxed(&host.taken));
	assert_int_equal(left_in(arena), 0);
}

/* ---- As malloc ------------------------------------------------------------------- */

#define AN_ARENA ((size_t)16 << 20) /* jemalloc makes one of its own for as much */

static long pages_touched(void)
{
	struct rusage usage;

	must(getrusage(RUSAGE_THREAD, &usage) == 0);
	return usage.ru_minflt;
}

/* Takes and gives one back; returns the pages that were touched meanwhile. */
static long touched_by(size_t bytes)
{
	long before = pages_touched();
	uint8_t *memory = memory_take_lines_raw(memory_default(), bytes);

	must(memory);
	memory[bytes / 2] = 1;
	memory_give_lines(memory_default(), memory, bytes);
	return pages_touched() - before;
}

/* Before the block, and in its middle: the first turn of a shard whose table is as large waits for no
 * more.  All code has been used by then. */
static void a_large_block_touches_few_pages(void **state)
{
	(void)state;
	(void)touched_by(MEMORY_LARGE);
	assert_in_range(touched_by(AN_ARENA), 2, 4);
}

static bool is_mapped(void *page)
{
	unsigned char resident;

	return mincore(page, MEMORY_PAGE, &resident) == 0 || errno != ENOMEM;
}

static void a_large_block_is_zero_and_goes_back_to_the_kernel(void **state)
{
	size_t bytes = MEMORY_LARGE + 1;
	uint8_t *memory = memory_take_raw(memory_default(), bytes);

	(void)state;
	must(memory);
	assert_int_equal((uintptr_t)memory % MEMORY_PAGE, 0);
	assert_int_equal(memory[0] | memory[bytes - 1], 0);
	assert_true(is_mapped(memory) && is_mapped(memory + MEMORY_LARGE));
	memory_give(memory_default(), memory, bytes);
	assert_false(is_mapped(memory) || is_mapped(memory + MEMORY_LARGE));
	assert_null(memory_take_raw(memory_default(), SIZE_MAX / 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_block_touches_few_pages),
		cmocka_unit_test(a_large_block_is_zero_and_goes_back_to_the_kernel),
		cmocka_unit_test(every_free_has_the_size_that_was_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
