/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * counters.h -- what can happen, and how often it has: one table.
 *
 * Names are those of gale_metrics, and of gale_metrics_write with gale_ before and _total
 * behind; texts are what is said of them there.
 *
 * Threads   A shard's counters are added to by its actor, a seat's by its thread, and
 *           read by any, so they are relaxed words with one writer each.
 */
#ifndef SHARDS_COUNTERS_H
#define SHARDS_COUNTERS_H

#include <stdint.h>

#include "runtime/atomic.h"

/* Of a seat: what became of asks that it could not answer by itself. */
#define SEAT_COUNTERS(X)                                                               \
	X(MISSED, "missed", "Asks of leased limiters that had to wait for a lease.")   \
	X(TURNED_AWAY, "turned_away_while_store_was_down",                             \
	  "Asks answered by on_outage at once, as the store had just failed.")         \
	X(CROWDED, "crowded_out",                                                      \
	  "Asks of leased limiters that found too many others pending.")               \
	X(KEPT_OUT, "turned_away_in_quarantine",                                       \
	  "Asks answered by on_outage at once, as the key was known to be in "         \
	  "quarantine.")                                                               \
	X(ASTRAY, "asks_of_no_open_limiter",                                           \
	  "Asks with a limiter that was NULL, closed or of another runtime.")          \
	X(NO_ENTRY, "exits_without_entry",                                             \
	  "Exits with an entry that was empty: exited before, or never filled.")

/* Of a shard: what its actor did and met. */
#define SHARD_COUNTERS(X)                                                              \
	X(LEASES, "leases_asked", "Leases that stores were asked for.")                \
	X(BATCHES, "lease_batches",                                                    \
	  "Messages to stores that leases were asked for in.")                         \
	X(GRANTS, "leases_granted", "Leases that brought units or places.")            \
	X(UNITS, "units_lent", "Units and places that leases brought.")                \
	X(PARTIAL, "leases_cut_short", "Leases that brought less than was asked for.") \
	X(SPENT, "leases_denied",                                                      \
	  "Leases that brought nothing, as the limit was used up.")                    \
	X(REFILLS, "refills_ahead",                                                    \
	  "Leases asked for before the units in hand were spent.")                     \
	X(AGAIN, "denials_asked_about_again",                                          \
	  "Leases asked for in case another node has given units back.")               \
	X(RECALLS, "denials_asked_about_in_case_the_store_forgot",                     \
	  "Leases asked for to remind a store of what it denied.")                     \
	X(RETURNS, "leases_given_back",                                                \
	  "Leases of which units were given back to the store.")                       \
	X(UNITS_BACK, "units_given_back", "Units that were given back to the store.")  \
	X(EXPIRED, "leases_dead_on_arrival",                                           \
	  "Leases that had expired when they came.")                                   \
	X(LOST, "asks_without_answer",                                                 \
	  "Requests to stores that were not answered in time.")                        \
	X(STRAY, "answers_late_or_twice",                                              \
	  "Answers of stores that came too late, or a second time.")                   \
	X(WRONG, "answers_not_believed", "Answers of stores that could not be true.")  \
	X(JUMPED, "answers_refused_as_a_clock_has_jumped",                             \
	  "Answers of stores refused as a clock had jumped.")                          \
	X(DOWN, "asks_while_store_was_down",                                           \
	  "Asks that a shard answered by on_outage, as the store had failed.")         \
	X(QUARANTINED, "asks_in_quarantine",                                           \
	  "Asks that a shard answered by on_outage, as the store may have forgotten.") \
	X(IMPATIENT, "asks_out_of_patience",                                           \
	  "Asks that waited for a store in vain, for patience_us or until their "      \
	  "caller gave up.")                                                           \
	X(EVICTED, "keys_evicted",                                                     \
	  "Keys that this node forgot to make room for others.")                       \
	X(NO_PURSE, "asks_without_room_for_key",                                       \
	  "Asks that found max_keys keys of this node in use.")                        \
	X(NO_ERRAND, "asks_with_too_many_under_way",                                   \
	  "Asks that found too many leases under way.")                                \
	X(CELLS, "keys_split_over_seats",                                              \
	  "Keys so hot that each seat got a share of the units.")                      \
	X(FOUGHT, "split_keys_fought_over",                                            \
	  "Times that seats fought over the units of such a key.")

enum seat_counter {
#define X(id, name, help) COUNT_##id,
	SEAT_COUNTERS(X)
#undef X
	    SEAT_COUNTER_COUNT
};

enum shard_counter {
#define X(id, name, help) COUNT_##id,
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
