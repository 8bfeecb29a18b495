/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * line.h -- a connection that comes and goes, and the batches that are under way on it.
 *
 *     LINE_AWAY --a trip waits----> LINE_OPENING -> LINE_READY: line_load, line_send
 *         ^         or it is kept        |              |           |
 *         '------ after a pause ---------'--------------'           '-> on_over
 *
 * It knows nothing of trips but that a batch has some.
 *
 * Invariants
 *
 *   LINE-1  Each batch that was sent is over exactly once, in the order they were sent:
 *           replied to, or not, and then it is not known whether it was done.
 *   LINE-2  A connection is over when it does not open, or a batch is not replied to,
 *           within a second; and after a reply that cannot be believed.
 *   LINE-3  Pauses between connections grow until jobs are told of: a server that lets
 *           us in and then fails each batch is not connected to without end. (L11)
 *   LINE-4  A connection that was ready and is lost is made again, though no trip waits:
 *           a server that has forgotten learns that from the first node that connects, and
 *           its quarantine counts from then. (L12)
 *   LINE-5  Calls of keys wait while more is under way than the server replies to in time,
 *           as flow.h has it: what waits here can still be refused.  Nothing else waits for
 *           that: units that are lent late are of use.
 *
 * Threads   All of it: the shard's actor.
 * Limits    LINE_BATCHES_MOST batches and LINE_JOBS_MOST jobs under way.
 */
#ifndef STORES_LINE_H
#define STORES_LINE_H

#include "engine/flow.h"
#include "stores/client.h"

#define LINE_BATCHES_MOST 256
#define LINE_JOBS_MOST ((size_t)16 * REMOTE_BATCH_MOST)

struct lane;
struct line;
struct trip;

struct batch {
	struct lane *lane;
	uint64_t nonce;
	mono sent;
	mono due;
	uint64_t patience_ns; /* of the trips that are waited for, in sum ... */
	size_t waiting;       /* ... and how many they are */
	bool is_alone;        /* one job, and nothing else under way (flow.h) */
	size_t room;          /* for calls of keys */
	size_t count;         /* 0: it asks for a generation */
	size_t first;         /* place of its jobs, of all that there ever were */
	struct remote_job *jobs;
	struct trip **trips;
};

/* The owner of a line, which is told.  It sends nothing meanwhile. */
struct line_home {
	/* NULL: whether it was done is not known. */
	void (*on_over)(struct line_home *self, struct line *line, struct batch *batch,
	                const struct wire_reply *reply);
	void (*on_lost)(struct line_home *self, struct line *line, bool was_ready);
};

enum line_state {
	LINE_AWAY, /* no connection */
	LINE_OPENING,
	LINE_READY,
};

struct line {
	struct wire_home is; /* first: replies come here */
	struct line_home *home;
	const struct client_config *config;
	struct wire *wire;
	uint32_t node; /* that it leads to */
	enum line_state state;
	bool broken;    /* a reply was such that the connection must go */
	bool was_ready; /* since it was begun: what is greeted again is no other */
	bool is_kept;   /* it is connected again though no trip waits. LINE-4 */
	bool is_full;   /* it takes no more before something was heard; the client's */
	mono state_due; /* away: when to try again; opening: when it takes too long */
	uint32_t failures;
	uint64_t lot;
	uint64_t epoch;   /* of this connection; no two of a client have the same */
	uint64_t *epochs; /* the client's latest */
	uint64_t now_ns;  /* of this turn */
	int64_t ahead_us; /* the server's clock, of this node's */
	bool knows_clock;
	uint64_t told_us; /* on this connection: when it last did, by its clock */
	uint64_t nonce;   /* of the latest batch */
	uint64_t done;    /* batches that are over: the oldest under way is the next */
	struct flow flow; /* of all connections: how much is under way */
	size_t jobs_next;
	size_t jobs_done;
	struct batch batches[LINE_BATCHES_MOST];
	struct remote_job jobs[LINE_JOBS_MOST];
	struct trip *trips[LINE_JOBS_MOST];
};

static inline void client_count(const struct client_config *config,
                                enum client_counter counter, uint64_t by)
{
	_Atomic uint64_t *at = &config->counters[counter];

	store_relaxed(at, load_relaxed(at) + by);
}

/* NULL without memory; the wire is then still the caller's. */
struct line *line_open(const struct client_config *config, struct line_home *home,
                       struct wire *wire, uint32_t node, uint64_t *epochs);
/* Batches that are under way are over. */
void line_close(struct line *line);

/* Reads and writes; connects if a trip waits, or the line is kept. */
void line_turn(struct line *line, bool is_wanted, mono now);
/* Writes what was sent: in the same turn there is nothing new to be read. */
void line_flush(struct line *line, mono now);
/* When it wants to be turned again. */
mono line_due(const struct line *line, bool is_wanted);

/* It could not be connected lately, and will not be tried before long. */
bool line_is_away(const struct line *line, mono now);
bool line_is_idle(const struct line *line);

/* The next batch: empty, with room for REMOTE_BATCH_MOST, and less for calls of keys: LINE-5.
 * NULL: too much is under way. */
struct batch *line_load(struct line *line);
/* False: the wire has no room; and then nothing was sent. */
bool line_send(struct line *line, struct batch *batch, struct remote_batch *sent,
               mono now);

#endif
