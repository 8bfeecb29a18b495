/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * jump.h -- has the store's clock jumped against this node's?
 *
 * An answer about a window says what time it was at the store.  That was read after the
 * answer was asked for and before it came, so it is known what the store's clock can show
 * at most from then on, as long as both run.  One that shows more was set, or lies, or
 * this node's clock stood still.
 *
 *     shown by the store   |      x           x     most, carried on: x is at the latest
 *     this node's time     | sent | came      |     when it was asked for
 *
 * Invariants
 *
 *   JUMP-1  Clocks that run at most drift_ppm fast or slow have not jumped, whatever
 *           answers take, and in whatever order they come.
 *   JUMP-2  What is tolerated does not add up: until a jump, all that is shown is at
 *           most a second ahead of one clock that runs on.
 *   JUMP-3  After a jump a limiter's shard believes nothing for as long as the window,
 *           but for a second at least and a minute at most.  So whatever a store says,
 *           it opens two windows of a key for each such pause at most, besides those
 *           that go by on this node's clock; of windows below a second, a second's more
 *           at first. (L13)
 *
 * Threads   The shard's actor.
 */
#ifndef SHARDS_JUMP_H
#define SHARDS_JUMP_H

#include "engine/clock.h"

/* All zero: nothing is known. */
struct jump {
	uint64_t most_ns; /* the store's clock shows no more ... */
	mono at;          /* ... then */
	bool known;
};

/* The store has shown so much, in an answer that was asked for at sent and is here now.
 * True if that cannot be, and then nothing is known any more. */
bool jump_note(struct jump *jump, uint64_t shown_us, mono sent, mono now,
               uint32_t drift_ppm);

/* How long nothing is believed after that, with windows of this length. */
uint64_t jump_pause_ns(uint64_t window_us);

#endif
