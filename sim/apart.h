/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * apart.h -- the rows of a key that a store keeps apart (engine/lease.h).
 *
 * Invariants
 *
 *   APART-1  One row at most of each node, with units out.
 *
 * Threads   One.
 */
#ifndef SIM_APART_H
#define SIM_APART_H

#include "engine/lease.h"

/* Zero: none. */
struct aparts {
	struct lease_row *rows;
	size_t count;
	size_t room;
};

/* The node's, or one without a node. */
struct lease_row aparts_find(const struct aparts *aparts, uint64_t node);
/* The row that a step has made; one without a node is none. */
void aparts_keep(struct aparts *aparts, const struct lease_row *row);
/* The same of what a server has made of a value. */
struct kept;
void aparts_keep_of(struct aparts *aparts, const struct kept *after);
void aparts_copy(struct aparts *to, const struct aparts *from);
void aparts_free(struct aparts *aparts);

#endif
