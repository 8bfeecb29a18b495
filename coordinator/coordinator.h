/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * coordinator.h -- the actor that looks after all guards of a runtime, and its shared budgets.
 *
 *     guard_init -> coordinator_add -> looks and beats, each when it is due
 *                -> coordinator_remove -> it leaves its fleet, if it has one -> drop
 *
 *     fund_init  -> coordinator_add_fund -> turns, each when it is due -> closed -> drop
 *
 *     a turn: guards and funds come and go -> what is due -> the stores send and receive ->
 *             what they have answered -> groups that they have nudged
 *
 * Threads   coordinator_add, coordinator_remove: any.  coordinator_turn: the actor, or the
 *           host's thread that turns.  The rest: the runtime's.
 * Limits    A turn looks at all guards that are due, and at all tenants of each budget that is.
 */
#ifndef COORDINATOR_COORDINATOR_H
#define COORDINATOR_COORDINATOR_H

#include "coordinator/due.h"
#include "coordinator/fund.h"
#include "coordinator/guard.h"
#include "runtime/actor.h"
#include "runtime/lock.h"

#define COORDINATOR_MAILS 2 /* it gets none */

struct coordinator_config {
	struct gale_clock *clock;
	bool with_thread;
	uint64_t poll_ns; /* before its thread sleeps */
};

struct coordinator {
	struct actor actor;
	struct gale_clock *clock;
	struct timers timers;   /* of the guards */
	struct store_home home; /* of beats */
	struct store_nudges nudges;
	struct list posts; /* the stores at which guards beat, and funds claim */
	struct list funds;
	uint64_t done; /* guards that it looked at, or that came or went */
	due_word due;  /* the first of them; or a guard has come or goes */
	struct mail_slot mails[COORDINATOR_MAILS];
	struct lock lock;
	struct {
		struct guard *arrived; /* and not among the timers yet */
		struct guard *leaving;
		struct fund *arrived_funds;
		bool ended; /* it looks at nothing any more */
	} locked;
};

enum gale_err coordinator_open(struct coordinator *coordinator,
                               const struct coordinator_config *config);
/* Its thread, if it has one, takes the last turn; this does not wait. */
void coordinator_tell_to_close(struct coordinator *coordinator);
/* All guards are dropped when this returns. */
void coordinator_close(struct coordinator *coordinator);
/* After this no guard is added or removed. */
void coordinator_free(struct coordinator *coordinator);

/* The guard is the coordinator's, too, until it drops it. */
void coordinator_add(struct coordinator *coordinator, struct guard *guard);
/* It is dropped soon; once for each. */
void coordinator_remove(struct coordinator *coordinator, struct guard *guard);

/* The same of a fund, until it is closed and over.  False: the coordinator has ended. */
bool coordinator_add_fund(struct coordinator *coordinator, struct fund *fund);
/* A fund has something to do. */
void coordinator_wake(struct coordinator *coordinator);

/* For one without a thread: how many guards it looked at, or let go. */
uint64_t coordinator_turn(struct coordinator *coordinator) ON(actor_role);
/* How many nanoseconds until it wants a turn; UINT64_MAX: not before a guard comes. */
uint64_t coordinator_turn_after_ns(const struct coordinator *coordinator);

#endif
