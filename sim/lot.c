/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* lot.c -- in the place of two functions; the linker puts it there. */
#include "sim/lot.h"

#include <stdbool.h>
#include <stddef.h>

#include "sim/random.h"

#define SECOND_NS UINT64_C(1000000000)
#define MILLI_NS UINT64_C(1000000)

static bool follows;
static struct chance chance;
static uint64_t waited_ns;
static void (*on_wait)(void *self);
static void *waiter;
static bool is_waiting;

void lot_begin(uint64_t seed)
{
	follows = true;
	chance.state = seed;
	waited_ns = 0;
}

void lot_end(void)
{
	follows = false;
}

void lot_on_wait(void (*wait)(void *self), void *self)
{
	on_wait = wait;
	waiter = self;
}

bool __real_random_fill(void *bytes, size_t count);
bool __wrap_random_fill(void *bytes, size_t count);

bool __wrap_random_fill(void *bytes, size_t count)
{
	if (!follows)
		return __real_random_fill(bytes, count);
	for (size_t i = 0; i < count; i++)
		((uint8_t *)bytes)[i] = (uint8_t)chance_next(&chance);
	return true;
}

uint64_t __real_patience_now_ns(void);
uint64_t __wrap_patience_now_ns(void);

uint64_t __wrap_patience_now_ns(void)
{
	if (!follows)
		return __real_patience_now_ns();
	if (!on_wait) {
		waited_ns += SECOND_NS;
		return waited_ns;
	}
	if (is_waiting) /* a node that has turns meanwhile */
		return waited_ns;
	is_waiting = true;
	on_wait(waiter);
	is_waiting = false;
	waited_ns += MILLI_NS;
	return waited_ns;
}
