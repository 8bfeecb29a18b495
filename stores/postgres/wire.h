/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wire.h -- jobs to the parameters of one statement, and its result to what was told.
 *
 *     struct postgres_call call;
 *
 *     postgres_ask(&batch, &asked, &call);
 *     session_call(&session, conn, &call);
 *     ...
 *     postgres_told(PQgetResult(conn), &batch, &told_room, told, generation);
 *
 * No sockets, and no state but the room that the bytes are in, which the caller owns and
 * may use again for the next batch once the one before is done with.  No statement needs or
 * leaves anything in the session, if it has no name there (session.h): each may run on another
 * connection of a pool (schema.sql).
 *
 * Threads   Any, on different rooms.
 * Limits    A result is believed as a whole or not at all.
 */
#ifndef STORES_POSTGRES_WIRE_H
#define STORES_POSTGRES_WIRE_H

#include <libpq-fe.h>

#include <gale/gale.h>

#include "stores/postgres/schema.h"
#include "stores/remote.h"

#define POSTGRES_PARAMETERS_MOST 10
#define POSTGRES_BINARY 1

/* Afterwards, for a table that a crash of the server empties, and that is faster; and for
 * one that it does not. */
#define POSTGRES_SET_FAST "SELECT gale.set_durable(false)"
#define POSTGRES_SET_DURABLE "SELECT gale.set_durable(true)"

/* Drops at most so many ($1, int4) expired keys: how many, and may there be more? */
#define POSTGRES_SWEEP "SELECT dropped, more FROM gale.sweep($1)"

/* Where gale.beat publishes nudges; and what it says of one: the group's name in hex, and the
 * words of struct group_nudge.  False: it is none. */
#define POSTGRES_CHANNEL "gale"
bool postgres_read_nudge(const char *text, struct store_nudge *ret_nudge);

/* Bytes that grow as needed; all zero but for the allocator to begin with. */
struct postgres_room {
	struct gale_allocator *allocator;
	uint8_t *bytes;
	size_t size;
};

/* At least so many; what was in it is gone.  False: there is no memory. */
bool postgres_room_make(struct postgres_room *room, size_t size);
void postgres_room_close(struct postgres_room *room);

/* Which way a batch has gone. */
struct postgres_order {
	bool is_short;   /* by their keys: */
	bool is_first;   /* to be put in, as none is likely to be there; */
	bool were_first; /* as was told */
	uint8_t jobs[REMOTE_BATCH_MOST];
};

struct postgres_batch {
	const struct remote_job *jobs; /* all of them beats, or all claims, or none */
	size_t count;                  /* at most REMOTE_BATCH_MOST */
	const char
	    *generation; /* the one it is for; "" asks for it, and changes nothing */
	uint64_t nonce;  /* comes back with the answer */
	struct postgres_order
	    *order; /* postgres_ask writes it, postgres_told needs it, and adds to it */
	uint64_t
	    now_us; /* about the server's time: which periods of a quota to tell of */
	bool takes_first; /* lends that are all first are put in, and not looked for */
};

struct postgres_statement {
	const char *name; /* that it may be given */
	const char *text;
	int count; /* of parameters */
	Oid types[POSTGRES_PARAMETERS_MOST];
};

/* All that there are. */
#define POSTGRES_STATEMENTS 6
extern const struct postgres_statement postgres_statements[POSTGRES_STATEMENTS];

/* What libpq takes to send one. */
struct postgres_call {
	const struct postgres_statement *statement;
	int count; /* of parameters: all that it has, when it is asked */
	const char *values[POSTGRES_PARAMETERS_MOST];
	int lengths[POSTGRES_PARAMETERS_MOST];
	int formats[POSTGRES_PARAMETERS_MOST];
};

/* False if there is no memory.  The call points into the room, and into the batch. */
bool postgres_ask(const struct postgres_batch *batch, struct postgres_room *room,
                  struct postgres_call *ret_call);

enum postgres_result {
	POSTGRES_TOLD,
	POSTGRES_OTHER_GENERATION, /* nothing has changed; the text says which it is */
	POSTGRES_NO_MEMORY,        /* here; what was done is done */
	POSTGRES_MISSING,          /* nothing is installed */
	POSTGRES_OLDER,            /* what is installed is older than this */
	POSTGRES_NEWER,            /* or newer */
	POSTGRES_READ_ONLY,        /* a standby, or one that was told to be */
	POSTGRES_UNNAMED,          /* the session has no statement of that name */
	POSTGRES_TIMED_OUT,        /* waiting for a lock, or working */
	POSTGRES_DEADLOCK, /* or it could not be put in order; asking again may help */
	POSTGRES_LATER, /* too many connections, starting up, shutting down, no room */
	POSTGRES_LOST, /* the connection, or the outcome: it is not known what was done */
	POSTGRES_REFUSED, /* the user, or what that one may do */
	POSTGRES_FAILED,  /* anything else that the server says */
	POSTGRES_WRONG,   /* an answer that cannot be believed */
};

/* What a server's error means, by its five letters; NULL if there are none: it is libpq's. */
enum postgres_result postgres_error(const char *sqlstate);

/*
 * ret_told has room for batch->count of them, in the order of the jobs; what they point
 * to is in the room.  The generation is told only with POSTGRES_OTHER_GENERATION.  But for
 * these two results and POSTGRES_NO_MEMORY, and unless the statement got lost on its way,
 * nothing has changed; after POSTGRES_WRONG that is not known.
 */
enum postgres_result postgres_told(const PGresult *result,
                                   const struct postgres_batch *batch,
                                   struct postgres_room *room,
                                   struct remote_told *ret_told,
                                   char ret_generation[REMOTE_GENERATION_BYTES + 1]);

#endif
