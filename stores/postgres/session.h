/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * session.h -- what a session is told that is the link's own.
 *
 *     whose is it? --ours--> its time-out, at once --> later a name for each statement
 *          `-----a pool's--> nothing: each statement is sent as it is
 *
 * A server parses and plans a statement once that has a name: of a batch of leases that is a
 * tenth of all its work.  And it ends a statement that takes longer than any call here waits, if it
 * is told how long that is; not its commit, which may wait for a standby.  But both are the
 * session's, and a pool gives each statement another one: what was said would be missing there,
 * or be left behind.
 *
 * A server tells each client that connects which process serves it; most pools make up a number
 * (pgbouncer, odyssey).  So a session is asked for its process, and only where that is the same, it
 * is told more, the time-out by the very statement that asks.  A session of a pool that passes the
 * number on may be taken for the link's: then the time-out stays there, and a name may turn out to
 * be missing: all are forgotten, and statements go without.
 *
 * Threads   The link's.
 */
#ifndef STORES_POSTGRES_SESSION_H
#define STORES_POSTGRES_SESSION_H

#include "stores/postgres/wire.h"

struct session {
	bool is_ours;
	bool naming;  /* a name has been sent, and not been heard of */
	size_t named; /* so many of postgres_statements have names */
};

/* Of a new connection: asks whose it is; false if that cannot be sent. */
bool session_ask(struct session *session, PGconn *conn);
void session_hear(struct session *session, const PGresult *result);

/* Is there another name to be given, and may it be now? */
bool session_is_to_name(const struct session *session);
/* Gives it; false if it cannot be sent.  The caller ends it with a sync. */
bool session_name(struct session *session, PGconn *conn);
/* What came of it; NULL, or an error: it has none. */
void session_hear_name(struct session *session, const PGresult *result);

/* Sends a call, by its name if it has one; false if it cannot be sent. */
bool session_call(const struct session *session, PGconn *conn,
                  const struct postgres_call *call);

/* A name is missing: the session is not ours after all. */
void session_lose(struct session *session);

#endif
