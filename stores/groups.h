/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * groups.h -- groups of nodes that share a concurrency ceiling, kept in this process.
 *
 * The words of a group and of its members are engine/group.h's; this keeps them, and calls
 * the engine's steps in the order that page says.  Servers do the same in languages of their
 * own (stores/redis/beat.lua, stores/postgres/schema.sql), and must come to the same words:
 *
 *     beat:  find the group, or make one -> group_begin
 *            -> the members whose leases are over, at most GROUP_EVICT_MOST but the one that
 *               reports: by the number of the last beat, and of equal ones by the bytes of the
 *               name
 *            -> group_begin once more, if it was refused and no member is left
 *            -> group_beat, unless it was refused
 *
 * Invariants
 *
 *   GROUPS-1  A member is found by its node's name, at its position, and among the others in
 *             the order of their last beats; each group's three ways hold the same members.
 *   GROUPS-2  A group is dropped GROUPS_KEPT_US and a lease after its last beat, and not
 *             before, unless its room is needed a lease after that.  These times are of the
 *             node's clock, which is never set: the store's may be. (H1)
 *   GROUPS-3  There are at most so many groups and members together as it was opened for.
 *
 * Threads   One at a time: a lock of the caller's is held around every call.
 */
#ifndef STORES_GROUPS_H
#define STORES_GROUPS_H

#include "engine/clock.h"
#include "stores/store.h"

/* The knowledge of a backend outlives a restart of all its nodes. */
#define GROUPS_KEPT_US UINT64_C(86400000000)

struct groups;

/* NULL without memory. */
struct groups *groups_open(struct gale_allocator *allocator, uint64_t most);
void groups_close(struct groups *groups);

/* One beat, at now_us by the store's clock and at `at` by the node's; .grant says what came of it
 * if it is STORE_DONE, and *ret_nudge what all members are to be told.  STORE_FULL and
 * STORE_NO_MEMORY: nothing was granted. */
enum store_result groups_beat(struct groups *groups, const uint8_t *name,
                              uint32_t name_len, struct store_beat *beat,
                              uint64_t now_us, mono at, uint64_t forgot_us,
                              struct group_nudge *ret_nudge);

/* Drops what is over, some of it at a time; false when there may be more. */
bool groups_sweep(struct groups *groups, mono at);

/* ---- To look at ------------------------------------------------------------------ */

/* NULL: there is none.  True until the next beat. */
const struct group *groups_find(const struct groups *groups, const uint8_t *name,
                                uint32_t name_len);
/* Of a group that is there; NULL where the law needs none. */
const struct group_estimates *groups_estimates(const struct groups *groups,
                                               const uint8_t *name, uint32_t name_len);
const struct group_member *groups_member(const struct groups *groups,
                                         const uint8_t *name, uint32_t name_len,
                                         const uint8_t *node, uint32_t node_len);
/* GROUPS-1, and the sums of all groups. */
bool groups_valid(const struct groups *groups);

#endif
