/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * session.h -- statements with names, in a session that is one's own.
 *
 *     whose is it? --ours--> a name for each statement --> they are sent by their names
 *          `---------a pool's--> nothing: each is sent as it is
 *
 * A server parses and plans a statement once that has a name: of a batch of leases that is a
 * tenth of all its work.  But the name is the session's, and a pool gives each statement another
 * session: a name might be missing there, or be left behind.  A server tells whoever connects
 * which process serves it; a pool makes up a number.  So it is asked for its number, and only if
 * that is the same, names are given.  If one turns out to be missing all the same, all are
 * forgotten, and things go on without.
 *
 * It says what to send next, one thing after the other; the link sends it, each with its own
 * sync, among its batches.
 *
 * Threads   The link's.
 */
#ifndef STORES_POSTGRES_SESSION_H
#define STORES_POSTGRES_SESSION_H

#include "stores/postgres/wire.h"

struct session {
	bool
	    asked; /* the last thing that was to be sent is, and has not been heard of */
	bool is_ours; /* as far as is known */
	bool over;    /* nothing more is to be sent */
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
