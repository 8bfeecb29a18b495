/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * server.h -- what a server does with one job, by the engine: the pattern that the steps
 * of real ones are held against, byte for byte.
 *
 * A beat is done by stores/groups.h on the groups that are given.
 *
 * Threads   Pure: any, on different groups.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "stores/groups.h"
#include "stores/remote.h"

#define KEPT_MOST 32768 /* a log of 2,000 stamps */

/* The value of a key; no bytes: it is as new. */
struct kept {
	uint8_t bytes[KEPT_MOST];
	size_t count;        /* behind them is room for a row, to tell of */
	uint64_t expires_us; /* when it may be forgotten; not looked at here */
	struct lease_row
	    apart; /* of the job's node, if it is kept apart (engine/lease.h); the
	                         * caller finds it, and keeps what becomes of it */
	bool crowd_begins; /* all rows apart before this one are of no use any more */
};

/* The row apart, if it counts. LEASE-6 */
void server_put_apart(const struct remote_job *job, uint64_t now,
                      const struct kept *before, struct value *value);

/* What it says, and what the value becomes.  before points into *before, which is where
 * the value was before, as long as the caller keeps it. */
struct remote_told server_serve(const struct remote_job *job, uint64_t now_us,
                                struct kept *before, struct kept *ret_after);

/* The same of a server that keeps what expires at once, until its clock is set back. */
struct remote_told server_serve_and_keep(const struct remote_job *job, uint64_t now_us,
                                         struct kept *before, struct kept *ret_after);

/* REMOTE_BEAT: changes the groups.  What is told points to the bytes of the grant. */
struct remote_told server_beat(struct groups *groups, const struct remote_job *job,
                               uint64_t now_us, uint8_t ret_grant[REMOTE_GRANT_BYTES],
                               struct group_nudge *ret_nudge);

#endif
