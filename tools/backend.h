/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * backend.h -- a backend that is a process of its own, and counts what is in flight.
 *
 *     callers (caller.h)  -- calls, over a unix socket -->  backend  <-- its owner: terms, counts
 *                         <-- how each has ended --
 *
 * It works on so many calls at a time, the first first, and on each for some time; the others
 * wait.  Its terms can change at any time: half of the places, another duration, no answers at
 * all, or a latency that bends.
 *
 * A backend that bends lets no call wait, and calls slow each other down.  With n in flight, and
 * p places, a call takes 1 + (n/p - 1)^2 times as long; up to p it takes the time of the terms.
 * So n calls bring n/p / (1 + (n/p - 1)^2) times as much as p: with 1.4 p this has its maximum,
 * 1.2, with 2 p it is 1 again, and with 4 p it is 0.4.
 *
 * A call is in flight from when the backend has read it until the backend has ended it.  In one
 * turn it ends calls before it begins new ones.
 *
 * The abort time   A caller says when it sent a message, by CLOCK_MONOTONIC.  When its last one
 *                  is older than the abort time, then the backend ends the caller's calls and
 *                  cuts the connection, whether the caller has died, was stopped, or has closed
 *                  the connection.  It does not notice any of these by itself.
 *
 * Threads   One: the owner.  The backend is forked, and has a single thread.
 * Limits    BACKEND_NODES nodes, BACKEND_PLACES places.  It never works on more calls than
 *           BACKEND_PLACES, also if it bends; then the others wait.
 */
#ifndef TOOLS_BACKEND_H
#define TOOLS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "tools/sentence.h"

#define BACKEND_NODES 256
#define BACKEND_PLACES 1024

struct backend_terms {
	uint64_t places;   /* calls that it works on at a time: 1 to BACKEND_PLACES */
	uint64_t takes_us; /* work on one call */
	uint64_t abort_us; /* 0: it never ends the calls of a silent caller */
	uint64_t stopped;  /* 1: it ends no call by itself */
	uint64_t bends;    /* 1: calls slow each other down, and none waits */
};

struct backend_count {
	uint64_t in_flight;
	uint64_t worst; /* the most that were in flight at one instant */
	uint64_t begun; /* calls */
	uint64_t done;  /* calls that it has worked on */
	uint64_t
	    aborted; /* calls that it has ended before: of silent callers, or as told */
};

struct backend_counts {
	struct backend_count all;
	uint64_t recent_worst; /* the most in flight since the owner looked before */
	uint64_t cut;          /* callers that were silent */
	struct backend_count of[BACKEND_NODES];
};

/* ---- What callers and the backend tell each other -------------------------------- */

enum backend_order {
	BACKEND_CALL = 1,
	BACKEND_PING,   /* the caller lives */
	BACKEND_CANCEL, /* all calls of this connection end */
};

struct backend_message {
	uint32_t order; /* enum backend_order */
	uint32_t node;
	uint64_t number;   /* of the call; comes back when it has ended */
	uint64_t takes_us; /* 0: as the terms say */
	uint64_t sent_ns;  /* when the caller decided on it, or before */
};

enum backend_end {
	BACKEND_DONE = 1,
	BACKEND_ABORTED,
};

struct backend_reply {
	uint64_t end; /* enum backend_end */
	uint64_t number;
};

/* How long a call takes that begins while so many are in flight, itself included. */
uint64_t backend_takes_us(const struct backend_terms *terms, uint64_t takes_us,
                          uint64_t in_flight);

/* The clock of both. */
uint64_t backend_now_ns(void);

/* ---- The owner's side ------------------------------------------------------------ */

struct backend {
	pid_t pid;
	int control;
	struct sockaddr_un address; /* where callers connect */
	socklen_t address_bytes;
};

/* It ends with its owner, however that ends.  Children that the owner forks later have to call
 * backend_forget. */
bool backend_start(struct backend *backend, const struct backend_terms *terms,
                   struct sentence *ret_why);
void backend_forget(struct backend *backend);
void backend_end(struct backend *backend);

/* Both return when the backend has done so; false: it has died. */
bool backend_set(struct backend *backend, const struct backend_terms *terms);
bool backend_look(struct backend *backend, struct backend_counts *ret_counts);

#endif
