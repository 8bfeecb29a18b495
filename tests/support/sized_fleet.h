/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sized_fleet.h -- eight nodes that share a limit, in virtual time, and what one way to size
 * their leases costs them.
 *
 * The limit is 1000 a second, and the store is 5 ms away.  Calls come evenly, each at a node
 * drawn by lot.  Counted are how much of what could be admitted was, and how often the store
 * was asked: in ten windows early in the life of the key, and in ten much later.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_SIZED_FLEET_H
#define TESTS_SUPPORT_SIZED_FLEET_H

#include <gale/gale.h>

#define SIZED_NODES 8
#define SIZED_LIMIT 1000
#define SIZED_MEASURED 10 /* windows in a row */
#define SIZED_EARLY 10    /* the first of them */
#define SIZED_LATE 400

struct sized_way {
	const char *name;
	struct gale_leasing lease;
	/* What is predicted, in percent of what a node will be asked for; 0: nothing is. */
	uint64_t predicted_percent;
};

struct sized_cost {
	double used;  /* of what could have been admitted */
	double worst; /* the same, of the worst window */
	double trips; /* of a window */
};

/* demand_percent: of the limit.  late: the first of the late windows; SIZED_LATE, or less where
 * time is short. */
void sized_fleet_measure(const struct sized_way *way, uint64_t demand_percent,
                         uint64_t late, struct sized_cost *ret_early,
                         struct sized_cost *ret_late);

#endif
