/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * litmus.c -- the model is what C11 says, as far as it goes; from books on memory models.
 *
 * Threads   See model.h.
 */
#include "tests/interleave/programs.h"

#include "runtime/atomic.h"

static struct {
	_Atomic uint64_t x, y, z;
	uint64_t plain;
	uint64_t a, b, c, d; /* what was seen */
} * s;

static void begin(void)
{
	s = model_take(sizeof(*s));
}

static void two_bits(void)
{
	model_outcome((unsigned)(s->a << 1 | s->b));
}

/* ---- Store buffering ------------------------------------------------------------- */

static void sb_one(void)
{
	store_release(&s->x, 1);
	s->a = load_acquire(&s->y);
}

static void sb_two(void)
{
	store_release(&s->y, 1);
	s->b = load_acquire(&s->x);
}

static void sb_fenced_one(void)
{
	store_relaxed(&s->x, 1);
	fence_full();
	s->a = load_relaxed(&s->y);
}

static void sb_fenced_two(void)
{
	store_relaxed(&s->y, 1);
	fence_full();
	s->b = load_relaxed(&s->x);
}

/* The other side does nothing: the kernel makes it pass a fence. */
static void sb_quick(void)
{
	store_relaxed(&s->y, 1);
	s->b = load_relaxed(&s->x);
}

static void sb_barrier(void)
{
	store_relaxed(&s->x, 1);
	model_barrier();
	s->a = load_relaxed(&s->y);
}

/* ---- Messages -------------------------------------------------------------------- */

static void mp_send(void)
{
	store_relaxed(&s->x, 1);
	store_release(&s->y, 1);
}

static void mp_send_relaxed(void)
{
	store_relaxed(&s->x, 1);
	store_relaxed(&s->y, 1);
}

static void mp_receive(void)
{
	s->a = load_acquire(&s->y);
	s->b = load_relaxed(&s->x);
}

static void mp_send_fenced(void)
{
	store_relaxed(&s->x, 1);
	fence_full();
	store_relaxed(&s->y, 1);
}

static void mp_receive_fenced(void)
{
	s->a = load_relaxed(&s->y);
	fence_full();
	s->b = load_relaxed(&s->x);
}

static void plain_send(void)
{
	model_touch(&s->plain, sizeof(s->plain), true);
	store_release(&s->y, 1);
}

static void plain_send_relaxed(void)
{
	model_touch(&s->plain, sizeof(s->plain), true);
	store_relaxed(&s->y, 1);
}

static void plain_receive(void)
{
	if (load_acquire(&s->y))
		model_touch(&s->plain, sizeof(s->plain), false);
	s->a = s->b = 0;
}

/* A step that reads and writes passes on what the store before it published. */
static void pass_on(void)
{
	(void)add_relaxed(&s->y, 1);
}

static void receive_two(void)
{
	if (load_acquire(&s->y) == 2)
		s->a = 1;
	s->b = load_relaxed(&s->x);
}

static void send_by_adding(void)
{
	store_relaxed(&s->x, 1);
	(void)add_release(&s->y, 1);
}

static void passed_on(void)
{
	model_outcome((unsigned)(s->a << 1 | s->b));
}

/* ---- One word -------------------------------------------------------------------- */

static void write_once(void)
{
	store_relaxed(&s->x, 1);
}

/* What has been seen is not unseen. */
static void read_twice(void)
{
	s->a = load_relaxed(&s->x);
	s->b = load_relaxed(&s->x);
}

static void add_twice(void)
{
	(void)add_relaxed(&s->x, 1);
	(void)add_relaxed(&s->x, 1);
}

static void sum(void)
{
	model_outcome((unsigned)load_relaxed(&s->x));
}

static void add_by_swaps(void)
{
	uint64_t was = load_relaxed(&s->x);

	while (!swap_if_relaxed(&s->x, &was, was + 1))
		;
}

/* ---- Locks and memory ------------------------------------------------------------ */

static void add_locked(void)
{
	model_lock(&s->z);
	model_touch(&s->plain, sizeof(s->plain), true);
	s->plain++;
	model_unlock(&s->z);
}

static void locked_sum(void)
{
	model_outcome((unsigned)s->plain);
}

static void lock_both_ways(void)
{
	model_lock(&s->x);
	model_lock(&s->y);
}

static void lock_the_other_way(void)
{
	model_lock(&s->y);
	model_lock(&s->x);
}

static void *given;

static void begin_giving(void)
{
	begin();
	given = model_take(128);
}

static void look_then_leave(void)
{
	model_touch(given, 8, false);
	store_release(&s->x, 1);
}

static void look_and_leave(void)
{
	model_touch(given, 8, false);
	store_relaxed(&s->x, 1);
}

static void give(void)
{
	if (load_acquire(&s->x))
		model_give(given);
}

static void fails(void)
{
	if (load_relaxed(&s->x))
		must_hold(load_relaxed(&s->y));
}

#define BITS(...) (0 | BITS_(__VA_ARGS__, 32, 32, 32, 32))
#define BITS_(a, b, c, d, ...)                                                         \
	((UINT64_C(1) << (a) | UINT64_C(1) << (b) | UINT64_C(1) << (c) |               \
	  UINT64_C(1) << (d)) &                                                        \
	 UINT32_MAX)

const struct litmus litmus[] = {
	/* a and b are two bits: 1 is "a saw 0, b saw 1". */
	{ { "store buffering", begin, { sb_one, sb_two }, two_bits, 0 },
	  BITS(0, 1, 2, 3),
	  4 },
	{ { "the same with fences",
	    begin,
	    { sb_fenced_one, sb_fenced_two },
	    two_bits,
	    0 },
	  BITS(1, 2, 3),
	  0 },
	{ { "a fence on one side", begin, { sb_fenced_one, sb_quick }, two_bits, 0 },
	  BITS(0, 1, 2, 3),
	  0 },
	{ { "a barrier by the kernel", begin, { sb_barrier, sb_quick }, two_bits, 0 },
	  BITS(1, 2, 3),
	  0 },
	{ { "a message", begin, { mp_send, mp_receive }, two_bits, 0 },
	  BITS(0, 1, 3),
	  3 },
	{ { "a relaxed message", begin, { mp_send_relaxed, mp_receive }, two_bits, 0 },
	  BITS(0, 1, 2, 3),
	  4 },
	{ { "a message by fences",
	    begin,
	    { mp_send_fenced, mp_receive_fenced },
	    two_bits,
	    0 },
	  BITS(0, 1, 3),
	  0 },
	{ { "passed on",
	    begin,
	    { send_by_adding, pass_on, receive_two },
	    passed_on,
	    0 },
	  BITS(0, 1, 3),
	  0 },
	{ { "one word", begin, { write_once, read_twice }, two_bits, 0 },
	  BITS(0, 1, 3),
	  3 },
	/* Six orders of four steps, two by two. */
	{ { "sums", begin, { add_twice, add_twice }, sum, 0 }, BITS(4), 6 },
	{ { "sums by swaps",
	    begin,
	    { add_by_swaps, add_by_swaps, add_by_swaps },
	    sum,
	    1 },
	  BITS(3),
	  0 },
	{ { "a lock", begin, { add_locked, add_locked, add_locked }, locked_sum, 0 },
	  BITS(3),
	  6 },
	{ { "memory in order", begin_giving, { look_then_leave, give }, sum, 0 },
	  BITS(1),
	  2 },
	{ { "plain words in order", begin, { plain_send, plain_receive }, sum, 0 },
	  BITS(0),
	  2 },

	{ { "MODEL-1: words", begin, { plain_send_relaxed, plain_receive }, NULL, 0 },
	  0,
	  0 },
	{ { "MODEL-2: memory", begin_giving, { look_and_leave, give }, NULL, 0 },
	  0,
	  0 },
	{ { "MODEL-3", begin, { mp_send_relaxed, fails }, NULL, 0 }, 0, 0 },
	{ { "MODEL-4", begin, { lock_both_ways, lock_the_other_way }, NULL, 0 }, 0, 0 },
};
const size_t litmus_count = sizeof(litmus) / sizeof(litmus[0]);
