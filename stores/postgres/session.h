/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * session.h -- what a session is told that is one's own.
 *
 *     whose is it? --ours--> its time-out --> a name for each statement, by which it is sent
 *          `-----a pool's--> nothing: each is sent as it is
 *
 * A server parses and plans a statement once that has a name: of a batch of leases that is a
 * tenth of all its work.  And it ends a statement that takes longer than anybody here waits, if it
 * is told how long that is.  But both are the session's, and a pool gives each statement another
 * session: what was said would be missing there, or be left behind.  A server tells whoever
 * connects which process serves it; a pool makes up a number.  So it is asked for its number, and
 * only if that is the same, it is told more.  If a name turns out to be missing all the same, all
 * are forgotten, and things go on without.
 *
 * It says what to send next, one thing after the other; the link sends it, each with its own
 * sync, among its batches.
 *
 * Threads   The link's.
 */
#ifndef STORES_POSTGRES_SESSION_H
#define STORES_POSTGRES_SESSION_H

#include "stores/postgres/wire.h"

enum session_step {
	SESSION_WHOSE,
	SESSION_TIME_OUT,
	SESSION_NAMES,
	SESSION_OVER, /* nothing more is to be sent */
};

struct session {
	enum session_step step;
	bool asked;   /* it is sent, and has not been heard of */
	size_t named; /* so many of postgres_statements have names */
};

/* Of a new connection. */
void session_open(struct session *session);

/* Sends what is next, if anything is; false if that cannot be sent.  The caller ends it with a
 * sync if session->asked is true afterwards. */
bool session_ask(struct session *session, PGconn *conn);

/* What came of it; NULL, or an error: it failed. */
void session_hear(struct session *session, PGconn *conn, const PGresult *result);

/* Sends a call, by its name if it has one; false if it cannot be sent. */
bool session_call(const struct session *session, PGconn *conn,
                  const struct postgres_call *call);

/* A name is missing: the session is not ours after all. */
void session_lose(struct session *session);

#endif
