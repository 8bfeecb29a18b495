/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_postgres.c -- installs the schema, as the user that the URL names.
 *
 *     connect -> can it be written to? -> which version is there? -> install -> grant
 */
#include "tools/init.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stores/postgres/schema.h"
#include "tools/postgres_visit.h"

static bool is_usable(PGconn *conn, struct sentence *why)
{
	char read_only[8];

	if (PQserverVersion(conn) < POSTGRES_OLDEST)
		return sentence_say(why, "the server is older than PostgreSQL 14");
	if (!postgres_select(conn, "SHOW transaction_read_only", read_only,
	                     sizeof(read_only), why, "cannot ask"))
		return false;
	if (strcmp(read_only, "on") == 0)
		return sentence_say(why,
		                    "the server is read-only: a standby, or it was "
		                    "told to be");
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

	if (!postgres_select(conn, sql, is_begun, sizeof(is_begun), why,
	                     "cannot mark it as new"))
		return false;
	if (is_begun[0] != '\0')
		fputs("it is marked as new: the first ask is granted at once\n", out);
	return true;
}

static bool install(PGconn *conn, int version, FILE *out, struct sentence *why)
{
	if (version > postgres_schema_version)
		return sentence_say(why,
		                    "the schema gale has version %d, and this gale "
		                    "knows %d: bring gale up to date",
		                    version, postgres_schema_version);
	if (version == postgres_schema_version) {
		fprintf(out, "schema gale, version %d, is there\n", version);
		return true;
	}
	if (!postgres_select(conn, postgres_schema, NULL, 0, why,
	                     "cannot install the schema gale"))
		return false;
	if (version == POSTGRES_NOWHERE) {
		fprintf(out, "schema gale, version %d, has been installed\n",
		        postgres_schema_version);
		return begin(conn, out, why);
	}
	fprintf(out, "schema gale has been brought from version %d to %d\n", version,
	        postgres_schema_version);
	return true;
}

static bool grant(PGconn *conn, const char *role, FILE *out, struct sentence *why)
{
	char *quoted = PQescapeIdentifier(conn, role, strlen(role));
	char sql[512];
	bool good;

	snprintf(sql, sizeof(sql), "GRANT USAGE ON SCHEMA gale TO %s",
	         quoted ? quoted : "");
	good = quoted &&
	       postgres_select(conn, sql, NULL, 0, why, "cannot let the role use it");
	if (good)
		fprintf(out, "%s may use it\n", role);
	PQfreemem(quoted);
	return good;
}

/* What a crash of the server loses decides what the bound is worth then. */
static bool tell_bound(PGconn *conn, FILE *out, struct sentence *why)
{
	char loses[64];

	if (!postgres_find_loss(conn, loses, sizeof(loses), why))
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
	return postgres_is_postgres(conn, why) && is_usable(conn, why) &&
	       postgres_find_schema(conn, &version, why) &&
	       install(conn, version, out, why) &&
	       (!role || grant(conn, role, out, why)) && tell_bound(conn, out, why);
}

enum init_status init_postgres(const char *url, const char *role, FILE *out,
                               struct sentence *ret_why)
{
	PGconn *conn;
	bool good;

	conn = postgres_visit(url, ret_why);
	if (!conn)
		return INIT_FAILED;
	good = set_up(conn, role, out, ret_why);
	PQfinish(conn);
	return good ? INIT_DONE : INIT_FAILED;
}
