/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * server_store.h -- a store as a server and its client are one, that can forget.
 *
 * The server is sim/server.c; what it told is explained by stores/remote.c, and
 * how long it grants nothing after a fail-over is said by stores/quarantine.c: together
 * they are what a node meets behind a real server, less the connection.
 *
 * Threads   One.
 */
#ifndef SIM_SERVER_STORE_H
#define SIM_SERVER_STORE_H

#include "stores/store.h"

/* For rules that a server can step, and lend of. */
struct store *server_store_open(struct gale_clock *clock);

/* What a replica has by now: all. */
void server_store_replicate(struct store *self);
/* The replica takes over: what has been written since is lost. */
void server_store_fail_over(struct store *self);

#endif
