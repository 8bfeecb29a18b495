/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_postgres.c -- installs the schema, as whoever the URL names.
 *
 *     connect -> can it be written to? -> which version is there? -> install -> grant
 */
#include "tools/init.h"

#include <stdbool.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "stores/postgres/schema.h"

#define OLDEST 140000 /* server that has all that is needed */
#define PATIENCE "10" /* seconds, for each address */
#define NOWHERE (-1)  /* no schema of ours */

static void say_nothing(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

/* The first line, without who says it. */
static bool complain(struct sentence *why, const char *what, const char *message)
{
	const char *at = strstr(message, "ERROR:  ");

	at = at ? at + strlen("ERROR:  ") : message;
	return sentence_say(why, "%s: %.*s", what, (int)strcspn(at, "\n"), at);
}

/* Of statements the first value of the last of them, or "". */
static bool run(PGconn *conn, const char *sql, char *out, size_t room,
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

static PGconn *connect_to(const char *url, struct sentence *why)
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

static bool is_usable(PGconn *conn, struct sentence *why)
{
	char read_only[8];

	if (PQserverVersion(conn) < OLDEST)
		return sentence_say(why, "the server is older than PostgreSQL 14");
	if (!run(conn, "SHOW transaction_read_only", read_only, sizeof(read_only), why,
	         "cannot ask"))
		return false;
	if (strcmp(read_only, "on") == 0)
		return sentence_say(why,
		                    "the server is read-only: a standby, or it was "
		                    "told to be");
	return true;
}

static bool find_version(PGconn *conn, int *ret_version, struct sentence *why)
{
	char there[8], version[16];

	if (!run(conn, "SELECT to_regprocedure('gale.version()') IS NOT NULL", there,
	         sizeof(there), why, "cannot look for the schema"))
		return false;
	*ret_version = NOWHERE;
	if (strcmp(there, "t") != 0)
		return true;
	if (!run(conn, "SELECT gale.version()", version, sizeof(version), why,
	         "the schema gale cannot be used"))
		return false;
	*ret_version = atoi(version);
	return true;
}

/* A schema that was just made has granted nothing: its first generation began before all windows,
 * unless a node was faster and has begun one. */
static bool begin(PGconn *conn, FILE *out, struct sentence *why)
{
	static const char sql[] =
	    "INSERT INTO gale.birth (generation, earliest, place)"
	    " SELECT repeat('0', 10) || right(replace(gen_random_uuid()::text, '-', "
	    "''), 22),"
	    " gale.now_us() / 1000000 * 1000000, pg_relation_filepath('gale.birth')"
	    " WHERE NOT EXISTS (SELECT FROM gale.keys)"
	    " ON CONFLICT DO NOTHING RETURNING 1";
	char is_begun[4];

	if (!run(conn, sql, is_begun, sizeof(is_begun), why, "cannot mark it as new"))
		return false;
	if (is_begun[0] != '\0')
		fputs("it is marked as new: the first ask is granted at once\n", out);
	return true;
}

static bool install(PGconn *conn, int version, FILE *out, struct sentence *why)
{
	if (version > POSTGRES_SCHEMA_VERSION)
		return sentence_say(why,
		                    "the schema gale has version %d, and this gale "
		                    "knows %d: bring gale up to date",
		                    version, POSTGRES_SCHEMA_VERSION);
	if (version == POSTGRES_SCHEMA_VERSION) {
		fprintf(out, "schema gale, version %d, is there\n", version);
		return true;
	}
	if (!run(conn, postgres_schema, NULL, 0, why, "cannot install the schema gale"))
		return false;
	if (version == NOWHERE) {
		fprintf(out, "schema gale, version %d, has been installed\n",
		        POSTGRES_SCHEMA_VERSION);
		return begin(conn, out, why);
	}
	fprintf(out, "schema gale has been brought from version %d to %d\n", version,
	        POSTGRES_SCHEMA_VERSION);
	return true;
}

static bool grant(PGconn *conn, const char *role, FILE *out, struct sentence *why)
{
	char *quoted = PQescapeIdentifier(conn, role, strlen(role));
	char sql[512];
	bool good;

	snprintf(sql, sizeof(sql), "GRANT USAGE ON SCHEMA gale TO %s",
	         quoted ? quoted : "");
	good = quoted && run(conn, sql, NULL, 0, why, "cannot let the role use it");
	if (good)
		fprintf(out, "%s may use it\n", role);
	PQfreemem(quoted);
	return good;
}

/* What a crash of the server loses decides what the bound is worth then. */
static bool tell_bound(PGconn *conn, FILE *out, struct sentence *why)
{
	static const char sql[] =
	    "SELECT CASE WHEN relpersistence <> 'p' THEN 'the table is unlogged'"
	    " WHEN NOT current_setting('fsync')::boolean THEN 'fsync is off'"
	    " WHEN current_setting('synchronous_commit') = 'off'"
	    " THEN 'synchronous_commit is off' END"
	    " FROM pg_class WHERE oid = to_regclass('gale.keys')";
	char loses[64];

	if (!run(conn, sql, loses, sizeof(loses), why, "cannot look at the table"))
		return false;
	if (loses[0] == '\0')
		fputs(
		    "bound: the limit, in every window, across crashes; after a start "
		    "or a promotion nothing is granted until the open window has "
		    "turned, for at most a minute\n",
		    out);
	else
		fprintf(
		    out,
		    "bound: the limit, in every window of up to a minute; %s, so of "
		    "a longer one a crash may grant again what it had granted\n",
		    loses);
	return true;
}

static void tell_server(PGconn *conn, FILE *out)
{
	int version = PQserverVersion(conn);

	fprintf(out, "PostgreSQL %d.%d, database %s, as %s\n", version / 10000,
	        version % 10000, PQdb(conn), PQuser(conn));
}

static bool set_up(PGconn *conn, const char *role, FILE *out, struct sentence *why)
{
	int version;

	tell_server(conn, out);
	return is_usable(conn, why) && find_version(conn, &version, why) &&
	       install(conn, version, out, why) &&
	       (!role || grant(conn, role, out, why)) && tell_bound(conn, out, why);
}

enum init_status init_postgres(const char *url, const char *role, FILE *out,
                               struct sentence *ret_why)
{
	PGconn *conn;
	bool good;

	conn = connect_to(url, ret_why);
	if (!conn)
		return INIT_FAILED;
	good = set_up(conn, role, out, ret_why);
	PQfinish(conn);
	return good ? INIT_DONE : INIT_FAILED;
}
