/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* session.c -- asks whose it is, and then gives names, one after the other. */
#define _GNU_SOURCE
#include "stores/postgres/session.h"

#include <endian.h>
#include <string.h>

void session_open(struct session *session)
{
	*session = (struct session){ 0 };
}

static bool ask_for_process(PGconn *conn)
{
	return PQsendQueryParams(conn, "SELECT pg_backend_pid()", 0, NULL, NULL, NULL,
	                         NULL, POSTGRES_BINARY) == 1;
}

static bool give_name(PGconn *conn, const struct postgres_statement *statement)
{
	return PQsendPrepare(conn, statement->name, statement->text, statement->count,
	                     statement->types) == 1;
}

bool session_ask(struct session *session, PGconn *conn)
{
	if (session->asked || session->over)
		return true;
	session->asked = session->is_ours
	                     ? give_name(conn, &postgres_statements[session->named])
	                     : ask_for_process(conn);
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

void session_hear(struct session *session, PGconn *conn, const PGresult *result)
{
	session->asked = false;
	if (session->over)
		return;
	if (!session->is_ours)
		session->is_ours = is_process(result, PQbackendPID(conn));
	else if (PQresultStatus(result) == PGRES_COMMAND_OK)
		session->named++;
	else
		session->over = true;
	session->over |= !session->is_ours || session->named == POSTGRES_STATEMENTS;
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
	session->over = true;
}
