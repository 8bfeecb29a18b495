/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* session.c -- asks whose it is, and gives names, one after the other. */
#define _GNU_SOURCE
#include "stores/postgres/session.h"

#include "stores/postgres/numbers.h"
#include "stores/wire.h"

#define AS_TEXT(number) #number
#define TEXT_OF(number) AS_TEXT(number)
#define PATIENCE TEXT_OF(WIRE_PATIENCE_MS)
#define WHOSE 0

/* $1 is the process.  A shorter time-out that a user has set there is kept. */
static const char whose[] =
    "SELECT pg_backend_pid() = $1,"
    " (SELECT set_config(name, '" PATIENCE "', false) FROM pg_settings"
    " WHERE name = 'statement_timeout' AND setting::int NOT BETWEEN 1 AND " PATIENCE
    " AND pg_backend_pid() = $1)";

bool session_ask(struct session *session, PGconn *conn)
{
	uint8_t process[4];
	const char *values[] = { (const char *)process };
	const Oid types[] = { INT4 };
	const int lengths[] = { sizeof(process) }, formats[] = { POSTGRES_BINARY };

	*session = (struct session){ 0 };
	(void)put4(process, (uint32_t)PQbackendPID(conn));
	return PQsendQueryParams(conn, whose, 1, types, values, lengths, formats,
	                         POSTGRES_BINARY) == 1;
}

void session_hear(struct session *session, const PGresult *result)
{
	session->is_ours =
	    PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
	    PQgetlength(result, 0, WHOSE) == 1 && PQgetvalue(result, 0, WHOSE)[0] == 1;
}

bool session_is_to_name(const struct session *session)
{
	return session->is_ours && !session->naming &&
	       session->named < POSTGRES_STATEMENTS;
}

bool session_name(struct session *session, PGconn *conn)
{
	const struct postgres_statement *next = &postgres_statements[session->named];

	session->naming =
	    PQsendPrepare(conn, next->name, next->text, next->count, next->types) == 1;
	return session->naming;
}

void session_hear_name(struct session *session, const PGresult *result)
{
	session->naming = false;
	session->is_ours &= PQresultStatus(result) == PGRES_COMMAND_OK;
	session->named += session->is_ours;
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
	session->is_ours = false;
	session->named = 0;
}
