/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* lot.c -- in the place of random_fill; the linker puts it there. */
#include "sim/lot.h"

#include <stdbool.h>
#include <stddef.h>

#include "sim/random.h"

static bool follows;
static struct chance chance;

void lot_begin(uint64_t seed)
{
	follows = true;
	chance.state = seed;
}

void lot_end(void)
{
	follows = false;
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
