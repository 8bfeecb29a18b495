/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * trip.h -- one ask of a client: what was asked, and for which call.
 *
 * A trip keeps what its asker may have dropped before it is back: rule, key, and the
 * bytes of its swap.  Where it waits is its lane's matter (lane.h), what it does next
 * when a server has told something is its course (course.h).
 *
 *     trip_new -> trip_call, trip_lend, trip_beat -> ... -> trip_tell, which frees it
 *
 * Threads   All of it: the shard's actor.
 * Limits    CLIENT_TRIPS_MOST of a client.  They are kept for the next asks until
 *           trips_free.
 */
#ifndef STORES_TRIP_H
#define STORES_TRIP_H

#include "runtime/list.h"
#include "stores/client.h"

struct lane;

struct trip {
	struct list place;    /* waiting, again, or free */
	struct list patience; /* of calls, the first due first */
	struct lane *lane;
	struct store_call *call; /* NULL: it lends, or its caller waits no more */
	bool lends;
	bool alone;           /* with others its server could not */
	mono due;             /* of a loan: from then on it is of no use; 0: never */
	uint64_t patience_ns; /* from when it was asked until then; 0: for ever */
	enum lend_verb lend;
	uint64_t seen; /* of a window, in ... */
	uint8_t life;  /* ... this life of the server, of which it has been reminded */
	uint8_t sent_in; /* the life that the job was sent in */
	bool reminds;    /* the job is about what was seen, and not yet to lend */
	struct lend_answer answer; /* true once its swap is done */
	uint32_t tries;
	struct remote_job job;
	struct rule rule;
	uint8_t *bytes; /* what its swap was and becomes, or its beat */
	size_t byte_count;
	uint8_t key[STORE_KEY_MAX];
};

/* All of a client. */
struct trips {
	const struct client_config *config;
	uint32_t count;
	uint32_t used; /* of them */
	uint8_t lives; /* of servers, that have followed another; batches.c's */
	struct list free;
	struct list patience;
	uint64_t *words; /* a desk for values of any length */
	size_t word_count;
};

void trips_init(struct trips *trips, const struct client_config *config);
/* When all of them have been told. */
void trips_free(struct trips *trips);

/* NULL: there are too many, or there is no memory. */
struct trip *trip_new(struct trips *trips);
void trip_free(struct trips *trips, struct trip *trip);

/* What it is for. */
void trip_call(struct trips *trips, struct trip *trip, struct store_call *call);
void trip_lend(struct trip *trip, const struct lend_request *request);
/* Of a beat; false without memory. */
bool trip_beat(struct trips *trips, struct trip *trip, struct store_call *call);
bool trip_claim(struct trips *trips, struct trip *trip, struct store_call *call);

/* Does a call or a shard wait for what comes of it? */
static inline bool trip_is_wanted(const struct trip *trip)
{
	return trip->call || trip->lends;
}

/* Tells its asker, and frees it; what is told may lead to more asks. */
void trip_tell(struct trips *trips, struct trip *trip, enum store_result result);
void trip_tell_all(struct trips *trips, struct list *held, enum store_result result);

/* Room for a value of was bytes, what it becomes, and the work on them; what was there
 * before is gone. */
bool trip_have_room(struct trips *trips, struct trip *trip, size_t was);

#endif
