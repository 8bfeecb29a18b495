/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * schema.h -- what a database has to have installed: schema.sql, as it is built in.
 *
 * Threads   Constants: any.
 */
#ifndef STORES_POSTGRES_SCHEMA_H
#define STORES_POSTGRES_SCHEMA_H

/* As schema.sql says, from which embed.py takes it. */
extern const int postgres_schema_version;

/* To be sent as one query; it ends in a 0. */
extern const char postgres_schema[];

#endif
