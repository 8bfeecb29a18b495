/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* postgres_visit.c -- libpq, one statement at a time. */
#include "tools/postgres_visit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE "10" /* seconds, for each address */
#define VERSION_ROOM 256

static void say_nothing(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

/* The first line, without its sender's name. */
static bool complain(struct sentence *why, const char *what, const char *message)
{
	const char *at = strstr(message, "ERROR:  ");

	at = at ? at + strlen("ERROR:  ") : message;
	return sentence_say(why, "%s: %.*s", what, (int)strcspn(at, "\n"), at);
}

bool postgres_select(PGconn *conn, const char *sql, char *out, size_t room,
                     struct sentence *why, const char *what)
{
	PGresult *result = PQexec(conn, sql);
	ExecStatusType status = PQresultStatus(result);
	bool good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;

	if (!good)
		complain(why, what, PQerrorMessage(conn));
	else if (room > 0)
		snprintf(out, room, "%s",
		         PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
	PQclear(result);
	return good;
}

PGconn *postgres_visit(const char *url, struct sentence *why)
{
	const char *names[] = { "dbname", "connect_timeout",
		                "fallback_application_name", NULL };
	const char *values[] = { url, PATIENCE, "gale", NULL };
	PGconn *conn = PQconnectdbParams(names, values, /* expand_dbname= */ 1);

	if (conn && PQstatus(conn) == CONNECTION_OK) {
		PQsetNoticeProcessor(conn, say_nothing, NULL);
		return conn;
	}
	complain(why, "cannot connect", conn ? PQerrorMessage(conn) : "no memory");
	PQfinish(conn);
	return NULL;
}

bool postgres_find_schema(PGconn *conn, int *ret_version, struct sentence *why)
{
	char there[8], version[16];

	if (!postgres_select(conn,
	                     "SELECT to_regprocedure('gale.version()') IS NOT NULL",
	                     there, sizeof(there), why, "cannot look for the schema"))
		return false;
	*ret_version = POSTGRES_NOWHERE;
	if (strcmp(there, "t") != 0)
		return true;
	if (!postgres_select(conn, "SELECT gale.version()", version, sizeof(version),
	                     why, "the schema gale cannot be used"))
		return false;
	*ret_version = atoi(version);
	return true;
}

const char *postgres_impostor(const char *version)
{
	static const char *const marks[][2] = {
		{ "CockroachDB", "CockroachDB" }, { "-YB-", "YugabyteDB" },
		{ "Yugabyte", "YugabyteDB" },     { "Redshift", "Amazon Redshift" },
		{ "Greenplum", "Greenplum" },     { "Materialize", "Materialize" },
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strstr(version, marks[i][0]))
			return marks[i][1];
	return NULL;
}

bool postgres_is_postgres(PGconn *conn, struct sentence *why)
{
	char version[VERSION_ROOM];
	const char *other;

	if (!postgres_select(conn, "SELECT version()", version, sizeof(version), why,
	                     "cannot ask"))
		return false;
	other = postgres_impostor(version);
	return !other ||
	       sentence_say(why,
	                    "the server is %s, whose locks and functions are not "
	                    "PostgreSQL's: gale needs PostgreSQL itself",
	                    other);
}

bool postgres_find_loss(PGconn *conn, char *out, size_t room, struct sentence *why)
{
	static const char sql[] =
	    "SELECT CASE WHEN relpersistence <> 'p' THEN 'the table is unlogged'"
	    " WHEN NOT current_setting('fsync')::boolean THEN 'fsync is off'"
	    " WHEN current_setting('synchronous_commit') = 'off'"
	    " THEN 'synchronous_commit is off' END"
	    " FROM pg_class WHERE oid = to_regclass('gale.keys')";

	return postgres_select(conn, sql, out, room, why, "cannot look at the table");
}
