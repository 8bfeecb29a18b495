/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_visit.h -- one visit to a PostgreSQL server, as an operator: connect, ask.
 *
 * Threads   One; it waits for the server.
 */
#ifndef TOOLS_POSTGRES_VISIT_H
#define TOOLS_POSTGRES_VISIT_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/sentence.h"

#define POSTGRES_OLDEST 140000 /* server that has all that is needed */
#define POSTGRES_NOWHERE (-1)  /* no schema of ours */

/* NULL, and why, when there is no connection. */
PGconn *postgres_visit(const char *url, struct sentence *why);

/* Of statements the first value of the last of them, or "".  False: why begins with what. */
bool postgres_select(PGconn *conn, const char *sql, char *out, size_t room,
                     struct sentence *why, const char *what);

/* POSTGRES_NOWHERE, or the version of gale's schema. */
bool postgres_find_schema(PGconn *conn, int *ret_version, struct sentence *why);

/* The name of the system that answers as PostgreSQL does and is none, by what its version()
 * says; NULL: it is PostgreSQL. */
const char *postgres_impostor(const char *version);

/* Asks that, and refuses such a server by its name. */
bool postgres_is_postgres(PGconn *conn, struct sentence *why);

/* The reason why a crash of the server forgets counts; "": there is none. */
bool postgres_find_loss(PGconn *conn, char *out, size_t room, struct sentence *why);

#endif
