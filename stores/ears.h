/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ears.h -- nudges between the actors of one process.
 *
 *     a beat, on any thread -> ears_tell -> each ear, whose actor wakes -> ear_hear -> its home
 *
 * Threads   ears_tell: any, at once.  An ear: its actor's.  ears_open, ears_close: one, before
 *           and after all others.
 */
#ifndef STORES_EARS_H
#define STORES_EARS_H

#include "runtime/lock.h"
#include "stores/store.h"

struct ears {
	struct gale_allocator *allocator;
	struct lock lock;
	struct {
		struct list all;
	} locked;
};

void ears_open(struct ears *ears, struct gale_allocator *allocator);
/* There are none any more. */
void ears_close(struct ears *ears);
void ears_tell(struct ears *ears, const struct store_nudge *nudge);

/* NULL without memory, or a descriptor.  See store.h: listen, hear, unlisten. */
struct store_ear *ear_open(struct ears *ears, struct watch watch);
void ear_hear(struct store_ear *ear, struct store_nudges *nudges);
void ear_close(struct store_ear *ear);

#endif
