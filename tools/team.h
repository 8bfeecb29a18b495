/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * team.h -- the nodes and workers of one process, and its count.
 *
 *	open -> warm up -> begin -> fold, look -> join -> close
 *
 * Threads   One: the owner, the tally's collector.
 */
#ifndef TOOLS_TEAM_H
#define TOOLS_TEAM_H

#include "tools/node.h"
#include "tools/tally.h"
#include "tools/worker.h"

struct team {
	struct node_plan plan;
	uint32_t first_place; /* of its workers in the fleet */
	struct load load;
	struct tally tally;
	bool counts; /* the tally is open */
	struct node *nodes;
	struct worker *workers;
	uint32_t worker_count;
	uint32_t started;
	bool joined;
};

/* Opens the nodes, and starts the workers, which wait.  process: from 0.  In any case
 * team_close has to follow. */
bool team_open(struct team *team, const struct node_plan *plan, uint32_t process,
               struct sentence *ret_why);
bool team_warm_up(struct team *team, struct node_host *host, struct sentence *ret_why);

/* Lets the workers ask until stop_us.  taker: as in tally.h. */
bool team_begin(struct team *team, uint64_t begin_us, uint64_t stop_us,
                struct tally_taker *taker, struct sentence *ret_why);
/* Ends it earlier. */
void team_stop(struct team *team, uint64_t stop_us);

/* Adds what it has seen so far. */
void team_look(const struct team *team, struct seen *seen);

/* Waits until all workers are gone; at once if they never began. */
void team_join(struct team *team);
void team_close(struct team *team);

/* How the fleet's count is to be made. */
struct tally_config team_tally_config(const struct fleet_flags *flags,
                                      uint64_t begin_us);

#endif
