/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* session.c -- asks whose it is, and then tells it more, one thing after the other. */
#define _GNU_SOURCE
#include "stores/postgres/session.h"

#include <endian.h>
#include <string.h>

/* Milliseconds, as long as a line waits; who has set less there has meant it. */
#define TIME_OUT                                                                       \
	"SELECT set_config('statement_timeout', '1000', false) FROM pg_settings"       \
	" WHERE name = 'statement_timeout' AND setting::int NOT BETWEEN 1 AND 1000"

void session_open(struct session *session)
{
	*session = (struct session){ 0 };
}

static bool say(PGconn *conn, const char *text)
{
	return PQsendQueryParams(conn, text, 0, NULL, NULL, NULL, NULL,
	                         POSTGRES_BINARY) == 1;
}

static bool give_name(PGconn *conn, const struct postgres_statement *statement)
{
	return PQsendPrepare(conn, statement->name, statement->text, statement->count,
	                     statement->types) == 1;
}

static bool ask(const struct session *session, PGconn *conn)
{
	switch (session->step) {
	case SESSION_WHOSE:
		return say(conn, "SELECT pg_backend_pid()");
	case SESSION_TIME_OUT:
		return say(conn, TIME_OUT);
	default:
		return give_name(conn, &postgres_statements[session->named]);
	}
}

bool session_ask(struct session *session, PGconn *conn)
{
	if (session->asked || session->step == SESSION_OVER)
		return true;
	session->asked = ask(session, conn);
	return session->asked;
}

static bool is_process(const PGresult *result, int process)
{
	uint32_t big;

	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1 ||
	    PQnfields(result) != 1 || PQgetlength(result, 0, 0) != sizeof(big))
		return false;
	memcpy(&big, PQgetvalue(result, 0, 0), sizeof(big));
	return process != 0 && be32toh(big) == (uint32_t)process;
}

/* What it was that has a name now, or cannot have one. */
static enum session_step hear_name(struct session *session, const PGresult *result)
{
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		return SESSION_OVER;
	session->named++;
	return session->named < POSTGRES_STATEMENTS ? SESSION_NAMES : SESSION_OVER;
}

void session_hear(struct session *session, PGconn *conn, const PGresult *result)
{
	session->asked = false;
	switch (session->step) {
	case SESSION_WHOSE:
		session->step = is_process(result, PQbackendPID(conn))
		                    ? SESSION_TIME_OUT
		                    : SESSION_OVER;
		break;
	case SESSION_TIME_OUT: /* who may not say it can still give names */
		session->step = SESSION_NAMES;
		break;
	case SESSION_NAMES:
		session->step = hear_name(session, result);
		break;
	case SESSION_OVER:
		break;
	}
}

bool session_call(const struct session *session, PGconn *conn,
                  const struct postgres_call *call)
{
	const struct postgres_statement *statement = call->statement;

	if ((size_t)(statement - postgres_statements) < session->named)
		return PQsendQueryPrepared(conn, statement->name, statement->count,
		                           call->values, call->lengths, call->formats,
		                           POSTGRES_BINARY) == 1;
	return PQsendQueryParams(conn, statement->text, statement->count,
	                         statement->types, call->values, call->lengths,
	                         call->formats, POSTGRES_BINARY) == 1;
}

void session_lose(struct session *session)
{
	session->named = 0;
	session->step = SESSION_OVER;
}
