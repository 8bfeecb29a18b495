/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * courier.h -- a store to which beats travel one by one, and from which grants do.
 *
 *     coordinator -> courier -> parcel ...delay... -> the station
 *                        parcel ...delay... <-  each may be lost, come twice, or overtake
 *
 * (A stream loses nothing in between: virtual_wire.h.)  A node's courier stands where its
 * store would, and knows nothing but beats, and the nudges that these give rise to.
 *
 * Threads   One.
 */
#ifndef SIM_COURIER_H
#define SIM_COURIER_H

#include "sim/net.h"
#include "sim/station.h"

struct courier_parcel;

/* Of all couriers, to free what never arrives. */
struct courier_parcels {
	struct courier_parcel *first;
};

struct courier {
	struct store store; /* first */
	struct port *port;
	struct station *station;
	struct courier_parcels *parcels;
	struct list desks;
	uint64_t sent; /* beats */
};

/* Closes the port's inner store with it. */
struct store *courier_open(struct courier *courier, struct port *port,
                           struct station *station, struct courier_parcels *parcels);
void courier_parcels_free(struct courier_parcels *parcels);

/* A nudge is on its way to the courier's node, as any parcel. */
void courier_nudge(struct courier *courier, const struct store_nudge *nudge);

#endif
