/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * batches.h -- what goes by lines, and what comes back.
 *
 * A batch takes what waits in one lane, as much as has room, and the lanes of a gate take
 * turns.  The reply decides where its trips go: on with their course, into their
 * lane again, or to the calls that wait.
 *
 *     gate.lanes -> batches_send -> line -> on_over -> course, lane, or told
 *
 * Threads   All of it: the shard's actor.  No other code writes what is known of a lane's
 *           generation and life, or a gate's told.
 */
#ifndef STORES_BATCHES_H
#define STORES_BATCHES_H

#include "stores/lane.h"

/* All of a client. */
struct batches {
	struct line_home home; /* first: what becomes of lines is told here */
	const struct client_config *config;
	struct trips *trips;
	struct lanes *lanes;
	mono now;   /* of this turn */
	mono asked; /* when a trip was sent last; 0: never */
};

void batches_init(struct batches *batches, const struct client_config *config,
                  struct trips *trips, struct lanes *lanes);

/* What waits at a gate with a line, as much as that takes.  True: it is to be flushed. */
bool batches_send(struct batches *batches, struct gate *gate);

/* Nothing was asked for as long as a quarantine lasts. */
bool batches_sleep(const struct batches *batches);

/* Greets the server where the client must though no call waits. CLIENT-5.  True: something was
 * sent.  *ret_due becomes earlier, if the next greeting is due then. */
bool batches_greet(struct batches *batches, mono *ret_due);

#endif
