/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shown.c -- what a part that is loaded shows.  meson.build says which it is: PART.
 *
 * Threads   Any.  The pointer is written before a part is used, each time with the same.
 */
#include <stdlib.h>

#include "engine/check.h"
#include "runtime/atomic.h"
#include "stores/part.h"

static void (*_Atomic host_panic)(const char *file, int line, const char *what);

/* The word that fences all runtimes is libgale's. */
void gale_panic(const char *file, int line, const char *what)
{
	load_relaxed (&host_panic)(file, line, what);
	abort(); /* not reached */
}

static void enter(void (*panic)(const char *file, int line, const char *what))
{
	store_relaxed(&host_panic, panic);
}

extern const struct store_part_table gale_part;

__attribute__((visibility("default"))) const struct store_part_table gale_part = {
	.interface = PART_INTERFACE,
	.part = &PART,
	.enter = enter,
};
