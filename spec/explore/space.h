/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * space.h -- all states that were met, each once, and where each was met from.
 *
 * States are kept as they are, so nothing is lost: a hash only says where to look.  Each
 * thread puts what it finds on a shelf of its own; a table of words tells where a state
 * stands:
 *
 *     63         32 31          0
 *     | of the hash | state + 1 |        state = place on the shelf * threads + thread
 *
 * Invariants
 *
 *   SPACE-1  No two states of the space are equal.
 *   SPACE-2  A state's parent has a step to it; a beginning is its own parent.
 *   SPACE-3  The space takes no more memory than it was given; if that is too little,
 *            it says so and stays as it is.
 *
 * Threads   space_add: each thread for itself, at once.  space_grow, open, close: one,
 *           while no other is in the space.  The rest reads: any, but not within a level
 *           what others add in it.
 *
 * Ordering
 *
 *   shelved   space_add swaps the word in with release  ->  space_add loads it with acquire
 *             The state is there to be compared.
 */
#ifndef SPEC_EXPLORE_SPACE_H
#define SPEC_EXPLORE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREADS_MOST 8
#define STATE_NONE UINT32_MAX

struct shelf {
	uint8_t *states;
	uint32_t *parents;
	_Atomic uint32_t count;
	uint32_t room;
};

struct space {
	size_t size;
	uint32_t threads;
	uint64_t bytes_most;
	uint64_t slot_count; /* a power of two */
	_Atomic uint64_t *slots;
	struct shelf shelves[THREADS_MOST];
};

enum added {
	ADDED_NEW,
	ADDED_OLD,
	ADDED_NOT, /* no memory */
};

bool space_open(struct space *space, size_t size, uint32_t threads,
                uint64_t bytes_most);
void space_close(struct space *space);

uint64_t space_hash(const struct space *space, const void *state);
/* Gets what space_add will look at nearer: the word, and then the state. */
void space_near(const struct space *space, uint64_t hash);
void space_nearer(const struct space *space, uint64_t hash);
enum added space_add(struct space *space, uint32_t thread, const void *state,
                     uint64_t hash, uint32_t parent);
/* STATE_NONE: it is not there. */
uint32_t space_find(const struct space *space, const void *state);

/* Before more are added: is the table getting full?  False from space_grow: no memory. */
bool space_is_crowded(const struct space *space);
bool space_is_full(const struct space *space);
bool space_grow(struct space *space);

uint64_t space_count(const struct space *space);
uint64_t space_bytes(const struct space *space);
const void *space_state(const struct space *space, uint32_t state);
uint32_t space_parent(const struct space *space, uint32_t state);
/* How many steps from a beginning, the way it was met. */
uint32_t space_depth(const struct space *space, uint32_t state);

#endif
