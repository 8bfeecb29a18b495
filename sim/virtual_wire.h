/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * virtual_wire.h -- a node's connections to a station, for the client that is shipped.
 *
 *     shard -> stores/server.c -> client.c -> line.c -> a virtual wire
 *         ...letters, in order, each way... -> the station
 *
 * A connection is a stream: nothing is doubled or overtakes, but it may break at any
 * letter, and neither end be told.  A request that was sent may then still have been done.  One
 * that is sent into a partition arrives when that is over, whether a call waits or not.
 *
 * Threads   One.
 */
#ifndef SIM_VIRTUAL_WIRE_H
#define SIM_VIRTUAL_WIRE_H

#include "sim/net.h"
#include "sim/station.h"

#define OFFICE_QUARANTINE_US GALE_HOURS(1) /* the longest */

struct virtual_wire;
struct letter;

/* What a station's connections have in common. */
struct office {
	struct net *net;
	struct station *station;
	struct virtual_wire *wires; /* all that there are */
	struct letter *travelling;  /* to free what never arrives */
	uint64_t connections;       /* so far */
};

void office_open(struct office *office, struct net *net, struct station *station);
/* No wire is left. */
void office_close(struct office *office);

/* A store that asks the station by a client for each home; port says what becomes of its
 * node.  Closes the port's inner store with it. */
struct store *office_store(struct office *office, struct port *port,
                           struct gale_allocator *allocator, uint64_t seed);

/* A nudge is on its way to the wires of that port's node which hear any.  It comes on another
 * connection than replies do: so it is lost, doubled, and overtakes. */
void office_nudge(struct office *office, const struct port *port,
                  const struct store_nudge *nudge);

/* The station's replica takes over, and some connections break. */
void office_fail_over(struct office *office);
/* The same, and the replica has nothing. */
void office_flush(struct office *office);

#endif
