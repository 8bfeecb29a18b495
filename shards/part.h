/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * part.h -- memory that readers may still look at when its owner is done with it.
 *
 * Threads   The shard's actor.
 */
#ifndef SHARDS_PART_H
#define SHARDS_PART_H

#include <stddef.h>

#include "runtime/grace.h"

/* The head of what readers reach by a pointer. */
struct part {
	struct retired retired; /* first */
	size_t bytes;           /* of the whole, as taken */
};

#endif
