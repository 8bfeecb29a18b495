/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctor_postgres.c -- asks as the role of the URL, and changes nothing.
 *
 *     connect -> PostgreSQL? -> primary? -> schema, rights -> what a crash loses -> clock
 */
#include "tools/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stores/postgres/schema.h"
#include "tools/postgres_visit.h"

#define TRIPS 5 /* to ask the time; the shortest counts */
#define ROOM 512

/* The first value; false: a line says why not. */
static bool ask(struct doctor *doctor, PGconn *conn, const char *sql, char out[ROOM],
                const char *what)
{
	struct sentence why;

	if (postgres_select(conn, sql, out, ROOM, &why, "the server cannot be asked"))
		return true;
	doctor_say(doctor, DOCTOR_FAIL, what, "%s: look into its log", why.is);
	return false;
}

/* ---- The server ------------------------------------------------------------------ */

static bool judge_server(struct doctor *doctor, PGconn *conn)
{
	char text[ROOM];
	struct sentence why;
	long version;

	if (!postgres_is_postgres(conn, &why)) {
		doctor_say(doctor, DOCTOR_FAIL, "server", "%s", why.is);
		return false;
	}
	if (!ask(doctor, conn, "SELECT current_setting('server_version_num')", text,
	         "server"))
		return false;
	version = strtol(text, NULL, 10);
	if (version < POSTGRES_OLDEST)
		doctor_say(doctor, DOCTOR_FAIL, "server",
		           "PostgreSQL %ld is too old: gale needs PostgreSQL %d or "
		           "newer",
		           version / 10000, POSTGRES_OLDEST / 10000);
	else
		doctor_say(doctor, DOCTOR_OK, "server", "PostgreSQL %ld.%ld",
		           version / 10000, version % 10000);
	return version >= POSTGRES_OLDEST;
}

static void judge_role(struct doctor *doctor, PGconn *conn)
{
	char text[ROOM];

	if (!ask(
		doctor, conn,
		"SELECT CASE WHEN pg_is_in_recovery() THEN 'standby'"
		" WHEN current_setting('transaction_read_only') = 'on' THEN 'read only'"
		" ELSE 'primary' END",
		text, "role"))
		return;
	if (strcmp(text, "primary") == 0)
		doctor_say(doctor, DOCTOR_OK, "role", "primary");
	else if (strcmp(text, "standby") == 0)
		doctor_say(doctor, DOCTOR_FAIL, "role",
		           "it is a standby, which nodes do not use: name its primary "
		           "in the URL, or both");
	else
		doctor_say(doctor, DOCTOR_FAIL, "role",
		           "transactions of this role are read-only: ALTER ROLE %s "
		           "SET default_transaction_read_only = off",
		           PQuser(conn));
}

/* A pool makes up the number of the process that serves a session. */
static void judge_pool(struct doctor *doctor, PGconn *conn)
{
	char text[ROOM];

	if (!ask(doctor, conn, "SELECT pg_backend_pid()", text, "pool"))
		return;
	if (atoi(text) == PQbackendPID(conn))
		doctor_say(doctor, DOCTOR_OK, "pool", "none: sessions are the nodes'");
	else
		doctor_say(doctor, DOCTOR_WARN, "pool",
		           "sessions are a pool's: nodes prepare no statements, and "
		           "one that needs slots waits until the others beat: let "
		           "nodes connect to the server itself");
}

/* ---- The schema ------------------------------------------------------------------ */

static void judge_missing(struct doctor *doctor, PGconn *conn)
{
	char text[ROOM];

	if (!ask(doctor, conn,
	         "SELECT has_database_privilege(current_database(), 'CREATE')", text,
	         "schema"))
		return;
	if (strcmp(text, "t") == 0)
		doctor_say(doctor, DOCTOR_WARN, "schema",
		           "it is not installed: the first node installs it, and the "
		           "first calls may be refused for up to a minute "
		           "(GALE_WHY_QUARANTINE): gale store init URL");
	else
		doctor_say(doctor, DOCTOR_FAIL, "schema",
		           "it is not installed, and %s may not do that: gale store "
		           "init URL --for %s, with the URL of a role that may CREATE "
		           "in the database",
		           PQuser(conn), PQuser(conn));
}

/* Nodes bring it up to date themselves if it is their role's. */
static void judge_older(struct doctor *doctor, PGconn *conn, int version)
{
	char text[ROOM];

	if (!ask(doctor, conn,
	         "SELECT nspowner = current_user::regrole FROM pg_namespace"
	         " WHERE nspname = 'gale'",
	         text, "schema"))
		return;
	if (strcmp(text, "t") == 0)
		doctor_say(doctor, DOCTOR_WARN, "schema",
		           "version %d is older than this gale, which needs %d: the "
		           "next node that connects replaces it, and older nodes are "
		           "refused from then on: bring all of them up to date",
		           version, postgres_schema_version);
	else
		doctor_say(doctor, DOCTOR_FAIL, "schema",
		           "version %d is older than this gale, which needs %d: gale "
		           "store init URL, with the URL of the schema's owner",
		           version, postgres_schema_version);
}

static void judge_version(struct doctor *doctor, PGconn *conn)
{
	struct sentence why;
	int version;

	if (!postgres_find_schema(conn, &version, &why))
		doctor_say(doctor, DOCTOR_FAIL, "schema",
		           "%s: gale store init URL, with the URL of its owner",
		           why.is);
	else if (version == postgres_schema_version)
		doctor_say(doctor, DOCTOR_OK, "schema", "version %d", version);
	else if (version > postgres_schema_version)
		doctor_say(doctor, DOCTOR_FAIL, "schema",
		           "version %d is newer than this gale, which knows %d: bring "
		           "gale up to date on all nodes",
		           version, postgres_schema_version);
	else
		judge_older(doctor, conn, version);
}

/* Those that nodes call: schema.sql grants them to all users of the schema. */
static void judge_functions(struct doctor *doctor, PGconn *conn)
{
	static const char sql[] =
	    "SELECT string_agg('gale.' || proname, ', ' ORDER BY proname) FROM pg_proc"
	    " WHERE pronamespace = to_regnamespace('gale') AND proname IN"
	    " ('version', 'run', 'lend', 'lend_first', 'lends', 'beat', 'sweep')"
	    " AND NOT has_function_privilege(oid, 'EXECUTE')";
	char text[ROOM];

	if (!ask(doctor, conn, sql, text, "rights"))
		return;
	if (text[0] == '\0')
		doctor_say(doctor, DOCTOR_OK, "rights",
		           "%s may call all that nodes call", PQuser(conn));
	else
		doctor_say(doctor, DOCTOR_FAIL, "rights",
		           "%s may not call %s: GRANT EXECUTE ON FUNCTION %s TO %s, as "
		           "the schema's owner",
		           PQuser(conn), text, text, PQuser(conn));
}

/* True: there is one that may be looked into. */
static bool judge_schema(struct doctor *doctor, PGconn *conn)
{
	char text[ROOM];

	if (!ask(doctor, conn,
	         "SELECT CASE WHEN to_regnamespace('gale') IS NULL THEN 'missing'"
	         " WHEN NOT has_schema_privilege('gale', 'USAGE') THEN 'refused'"
	         " WHEN to_regprocedure('gale.version()') IS NULL THEN 'missing' END",
	         text, "schema"))
		return false;
	if (strcmp(text, "missing") == 0)
		judge_missing(doctor, conn);
	else if (strcmp(text, "refused") == 0)
		doctor_say(doctor, DOCTOR_FAIL, "rights",
		           "%s may not use the schema: gale store init URL --for %s, "
		           "with the URL of its owner",
		           PQuser(conn), PQuser(conn));
	if (text[0] != '\0')
		return false;
	judge_version(doctor, conn);
	judge_functions(doctor, conn);
	return true;
}

/* ---- What it keeps --------------------------------------------------------------- */

static void judge_durability(struct doctor *doctor, PGconn *conn)
{
	char loses[ROOM];
	struct sentence why;

	if (!postgres_find_loss(conn, loses, sizeof(loses), &why))
		doctor_say(doctor, DOCTOR_FAIL, "durability", "%s", why.is);
	else if (loses[0] == '\0')
		doctor_say(doctor, DOCTOR_OK, "durability",
		           "a crash forgets nothing that was granted");
	else
		doctor_say(doctor, DOCTOR_WARN, "durability",
		           "%s: a crash may forget what was granted, and units of "
		           "windows longer than a minute may be granted again: set "
		           "fsync and synchronous_commit on, and SELECT "
		           "gale.set_durable(true)",
		           loses);
}

static void judge_standbys(struct doctor *doctor, PGconn *conn)
{
	static const char sql[] = "SELECT count(*) FROM pg_stat_replication";
	static const char waits[] =
	    "SELECT current_setting('synchronous_standby_names') <> '' AND"
	    " current_setting('synchronous_commit') NOT IN ('off', 'local')";
	char count[ROOM], text[ROOM];

	if (!ask(doctor, conn, sql, count, "standbys") ||
	    !ask(doctor, conn, waits, text, "standbys"))
		return;
	if (strcmp(text, "t") == 0 && strcmp(count, "0") == 0)
		doctor_say(doctor, DOCTOR_FAIL, "standbys",
		           "none is connected, and commits wait for one "
		           "(synchronous_standby_names): nodes get no answer: start "
		           "the standby, or empty that setting");
	else if (strcmp(text, "t") == 0)
		doctor_say(doctor, DOCTOR_OK, "standbys",
		           "%s, and commits wait for those in "
		           "synchronous_standby_names: one of them can take over",
		           count);
	else if (strcmp(count, "0") == 0)
		doctor_say(doctor, DOCTOR_OK, "standbys",
		           "none: while this server is down, so is the store");
	else
		doctor_say(
		    doctor, DOCTOR_WARN, "standbys",
		    "%s, which may be behind: after a promotion units of windows "
		    "longer than a minute may be granted again: set "
		    "synchronous_standby_names",
		    count);
}

/* ---- The clock ------------------------------------------------------------------- */

static void judge_clock(struct doctor *doctor, PGconn *conn)
{
	uint64_t least_us = UINT64_MAX;
	int64_t ahead_us = 0;
	char text[ROOM];

	for (int i = 0; i < TRIPS; i++) {
		uint64_t before = doctor_wall_us(), trip;
		bool told = ask(doctor, conn,
		                "SELECT (extract(epoch FROM clock_timestamp())"
		                " * 1000000)::bigint",
		                text, "clock");

		if (!told)
			return;
		trip = doctor_wall_us() - before;
		if (trip < least_us) {
			least_us = trip;
			ahead_us = (int64_t)strtoull(text, NULL, 10) -
			           (int64_t)(before + trip / 2);
		}
	}
	doctor_judge_clock(doctor, ahead_us, least_us);
}

/* ---- All of it ------------------------------------------------------------------- */

static void visit(struct doctor *doctor, PGconn *conn)
{
	doctor_say(doctor, DOCTOR_OK, "connection", "%s:%s, database %s, as %s",
	           PQhost(conn), PQport(conn), PQdb(conn), PQuser(conn));
	if (!judge_server(doctor, conn))
		return;
	judge_role(doctor, conn);
	judge_pool(doctor, conn);
	if (judge_schema(doctor, conn))
		judge_durability(doctor, conn);
	judge_standbys(doctor, conn);
	judge_clock(doctor, conn);
}

void doctor_postgres(struct doctor *doctor, const char *url)
{
	struct sentence why;
	PGconn *conn = postgres_visit(url, &why);

	if (!conn) {
		doctor_say(doctor, DOCTOR_FAIL, "connection",
		           "%s: start the server, or mend the host, the role or the "
		           "database in the URL",
		           why.is);
		return;
	}
	visit(doctor, conn);
	PQfinish(conn);
}
