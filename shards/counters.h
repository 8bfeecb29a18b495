/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * counters.h -- what can happen, and how often it has: one table.
 *
 * Threads   A shard's counters are added to by its actor, a seat's by its thread, and
 *           read by anybody, so they are relaxed words with one writer each.
 */
#ifndef SHARDS_COUNTERS_H
#define SHARDS_COUNTERS_H

#include <stdint.h>

#include "runtime/atomic.h"

/* Of a seat: where its answers came from. */
#define SEAT_COUNTERS(X)                                                               \
	X(REFUSED, "refused_from_memory")                                              \
	X(ALLOWED, "allowed_from_credit")                                              \
	X(MISSED, "missed")                                                            \
	X(TURNED_AWAY, "turned_away_while_store_was_down")                             \
	X(CROWDED, "crowded_out")                                                      \
	X(KEPT_OUT, "turned_away_in_quarantine")

/* Of a shard: what its actor did and met. */
#define SHARD_COUNTERS(X)                                                              \
	X(LEASES, "leases_asked")                                                      \
	X(BATCHES, "lease_batches")                                                    \
	X(GRANTS, "leases_granted")                                                    \
	X(UNITS, "units_lent")                                                         \
	X(PARTIAL, "leases_cut_short")                                                 \
	X(SPENT, "leases_denied")                                                      \
	X(REFILLS, "refills_ahead")                                                    \
	X(AGAIN, "denials_asked_about_again")                                          \
	X(RECALLS, "denials_asked_about_in_case_the_store_forgot")                     \
	X(RETURNS, "leases_given_back")                                                \
	X(UNITS_BACK, "units_given_back")                                              \
	X(EXPIRED, "leases_dead_on_arrival")                                           \
	X(LOST, "asks_without_answer")                                                 \
	X(STRAY, "answers_late_or_twice")                                              \
	X(WRONG, "answers_not_believed")                                               \
	X(JUMPED, "answers_refused_as_a_clock_has_jumped")                             \
	X(DOWN, "asks_while_store_was_down")                                           \
	X(QUARANTINED, "asks_in_quarantine")                                           \
	X(IMPATIENT, "asks_out_of_patience")                                           \
	X(EVICTED, "keys_evicted")                                                     \
	X(NO_PURSE, "asks_without_room_for_key")                                       \
	X(NO_ERRAND, "asks_with_too_many_under_way")                                   \
	X(CELLS, "keys_split_over_seats")                                              \
	X(FOUGHT, "split_keys_fought_over")

enum seat_counter {
#define X(id, name) COUNT_##id,
	SEAT_COUNTERS(X)
#undef X
	    SEAT_COUNTER_COUNT
};

enum shard_counter {
#define X(id, name) COUNT_##id,
	SHARD_COUNTERS(X)
#undef X
	    SHARD_COUNTER_COUNT
};

/* By the one thread that counts there. */
static inline void count_add(_Atomic uint64_t *counter, uint64_t by)
{
	store_relaxed(counter, load_relaxed(counter) + by);
}

#endif
