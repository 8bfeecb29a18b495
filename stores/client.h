/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * client.h -- a home's dealings with a server: what was asked, until it is answered.
 *
 * Each ask is a trip.  Trips wait, go in batches, and come back told; some go twice, as
 * a value that is read and then swapped.
 *
 *     begin, lend -> waiting -> batch -> line -> told -> explained -> done
 *                       ^                          |
 *                       '---- read, swap, again ---'
 *
 * A batch is of one bucket of keys.  Where a server is one of many (map.h), trips wait in
 * a lane for each bucket, and lanes at the gate of the node that has the bucket; else there
 * is one lane, and one gate.  A gate has a line (line.h), once it was needed.
 *
 * Invariants
 *
 *   CLIENT-1  Every call is done exactly once: told, or STORE_LATE when it is due, or
 *             STORE_DOWN when there is no connection. (STORE-8)
 *   CLIENT-2  A trip whose batch may have been run is never sent again: its outcome is
 *             not known, and counts as spent.  One that was surely not run goes again,
 *             but not for ever. (L13)
 *   CLIENT-3  Nothing is granted of what a server may have granted before it forgot:
 *             jobs say not before when.  A job of a key of which more was told in an earlier
 *             life of the server reminds it first, also before that instant. (L12)
 *   CLIENT-4  A bucket's generation is for one connection, and is asked for again there
 *             when the node has refused it or that of any other bucket.
 *   CLIENT-5  A server learns that it has forgotten when it is greeted, and its
 *             quarantine counts from then.  So that needs no ask: a connection that is lost
 *             is made again at once, buckets that were used are greeted where they are by
 *             then, a server that has told nothing for a second is asked for a generation,
 *             and a map is learned again after five seconds, until nothing was asked for as
 *             long as a quarantine lasts. (L12)
 *   CLIENT-6  A call of a key is not sent when its answer is not to be expected in time: it is
 *             STORE_BUSY, and has changed nothing.  So a server that is asked too much, or
 *             takes longer than a caller waits, does little for callers that are gone.
 *
 * Threads   All of it: the home's actor.  Counters: any reads them.
 * Limits    CLIENT_TRIPS_MOST trips at a time; one more is STORE_BUSY.
 */
#ifndef STORES_CLIENT_H
#define STORES_CLIENT_H

#include "runtime/atomic.h"
#include "stores/map.h"
#include "stores/notice.h"
#include "stores/store.h"
#include "stores/trouble.h"

#define CLIENT_TRIPS_MOST 4096

/* What has come of connections and calls. */
#define CLIENT_COUNTERS(X)                                                             \
	X(ROUND_TRIPS)                                                                 \
	X(STEPS)                                                                       \
	X(LEASES)                                                                      \
	X(RETURNS)                                                                     \
	X(CHANGED)                                                                     \
	X(CONNECTS)                                                                    \
	X(FAILURES)                                                                    \
	X(WRONG)                                                                       \
	X(BROKEN)                                                                      \
	X(CONTENDED)                                                                   \
	X(OVERLOADED)                                                                  \
	X(QUARANTINED)

enum client_counter {
#define X(id) CLIENT_##id,
	CLIENT_COUNTERS(X)
#undef X
	    CLIENT_COUNTER_COUNT
};

struct client_config {
	struct gale_allocator *allocator;
	struct store_home *home;
	struct wire *wire;          /* the client's from then on */
	struct map *map;            /* instead of it, and the client's as well */
	_Atomic uint64_t *counters; /* CLIENT_COUNTER_COUNT of them, that outlive it */
	struct quarantine_notice *notice; /* it outlives the client, too */
	uint64_t quarantine_us;           /* the longest */
	bool lends_ahead;                 /* of store.h */
	uint64_t seed;                    /* of the jitter */
	struct trouble *trouble;          /* for the host's log; NULL: there is none */
};

struct client;

/* NULL without memory; wire and map are then still the caller's. */
struct client *client_open(const struct client_config *config);
/* Calls that are under way are done as STORE_LATE. */
void client_close(struct client *client);

void client_begin(struct client *client, struct store_call *call, mono now);
void client_lend(struct client *client, const struct lend_request *requests,
                 size_t count, mono now);
mono client_turn(struct client *client, mono now);
/* Nothing that was asked is under way. */
bool client_is_idle(const struct client *client);

#endif
