/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lane.h -- where trips wait, and by which gate they leave.
 *
 * A lane is of one bucket of keys, a gate leads to one node.  A lane with trips is in one
 * list: its gate's, or that of those that rest, or of those whose gate is not known;
 * or in none, while its generation is asked for.  Code that changes what decides that, or
 * whether there are trips, calls lane_enlist.
 *
 *     trip -> lane.waiting or .again -> gate.lanes -> a batch, by the gate's line
 *
 * Threads   All of it: the shard's actor.  What is known of a lane's generation and life,
 *           and a gate's told, are written by batches.c alone.
 */
#ifndef STORES_LANE_H
#define STORES_LANE_H

#include "stores/line.h"
#include "stores/trip.h"

/* Trips to the keys of one bucket. */
struct lane {
	struct list place; /* see above */
	struct list waiting;
	struct list again; /* these go first, in the order they came back */
	uint8_t bucket;
	mono rests; /* until then; 0: it does not */
	/* A node that gets the next batch, as the one that has the bucket has said;
	 * MAP_NOWHERE: none. */
	uint32_t asked;

	/* What is known of the bucket at the end of a connection. CLIENT-4 */
	uint64_t greeted; /* its epoch; 0: nothing is known */
	uint64_t since_us;
	char generation[REMOTE_GENERATION_BYTES];
	size_t generation_count;
	uint64_t asking;       /* the epoch of one that it is asked for; 0: none */
	bool is_to_be_greeted; /* though no call waits, from then on. CLIENT-5 */
	mono greeting_due;

	/* The server's life that was last sent to, as a number, and since when. */
	uint8_t life;
	uint64_t life_since_us;
};

/* What leads to a node. */
struct gate {
	struct line *line; /* NULL: no trip wanted to go there yet */
	struct list lanes;
	mono told; /* when it last told of anything */
};

/* All of a client. */
struct lanes {
	const struct client_config *config;
	struct trips *trips;
	struct line_home *home; /* of lines that are opened here */
	struct list resting;    /* lanes, the first to go on first */
	struct list stray;      /* lanes: it is not known where to */
	bool is_closing;
	bool is_any_to_be_greeted; /* of the lanes, as far as is known */
	mono now;                  /* of this turn */
	uint64_t epochs;           /* connections so far */
	uint32_t count;
	uint32_t gate_count;
	struct lane *all;
	struct gate *gates; /* by their node's number */
};

/* Without a map there is a line at once.  False: without memory; lanes_free all the
 * same. */
bool lanes_init(struct lanes *lanes, const struct client_config *config,
                struct trips *trips, struct line_home *home);
void lanes_free(struct lanes *lanes);
/* Lines are closed, and no more opened; what has not gone is told. */
void lanes_close(struct lanes *lanes, enum store_result result);

struct lane *lanes_of_key(struct lanes *lanes, const uint8_t *key, uint32_t key_len);

/* The trip that goes next; NULL: there is none. */
struct list *lane_first(const struct lane *lane);
/* All trips of a lane, out of it. */
void lane_empty(struct lane *lane, struct list *ret_held);
/* To where it now belongs, if it has trips. */
void lane_enlist(struct lanes *lanes, struct lane *lane);
void lane_rest(struct lanes *lanes, struct lane *lane, mono now);

/* A new trip, behind the others. */
void lane_wait(struct lanes *lanes, struct trip *trip);
/* One of which nothing was done, as far as the server says.  The caller enlists its lane. */
void lane_go_again(struct lanes *lanes, struct trip *trip);
/* One that has got a step further; no other node can have beaten it yet. */
void lane_go_on(struct trip *trip);

/* Its line is there; NULL: none is known, or it cannot be opened. */
struct gate *lanes_gate_of(struct lanes *lanes, struct lane *lane);
/* A line to a node, which is made when it is first needed. */
struct line *lanes_line_to(struct lanes *lanes, uint32_t node);
/* Is the bucket's generation known there? */
bool lane_is_greeted(const struct lane *lane, const struct line *line);

/* All of those that wait in such lanes now are told. */
void lanes_tell(struct lanes *lanes, struct list *list, enum store_result result);
/* Lanes that other nodes have sent there go back to where their buckets are. */
void lanes_leave_asked(struct lanes *lanes, uint32_t node);
void lanes_wake_rested(struct lanes *lanes, mono now);
/* The map is another: each lane looks where it belongs now, and lines that none needs
 * are closed. */
void lanes_follow(struct lanes *lanes);
void lanes_doubt(struct lanes *lanes);
/* Each bucket that was ever used is to be greeted where it is now. CLIENT-5 */
void lanes_greet_all(struct lanes *lanes);

#endif
