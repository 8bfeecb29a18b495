/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * processes.h -- the processes of a fleet: starts them, adds up what they tell.
 *
 *	start -> ready? -> begin -> look ... all gone (tally.h) -> end -> close
 *
 * One thread for each process receives (record.h) and counts into the fleet's tally, as
 * a worker of that number.  Each record is judged before it counts.  The first process
 * that dies, sends nonsense or fails is remembered; the run is then worth nothing, and
 * its owner kills the others.
 *
 * No process outlives this one: the kernel ends those whose parent has died, and their
 * socket is at its end then.
 *
 * Threads   One: the owner, the tally's collector.
 */
#ifndef TOOLS_PROCESSES_H
#define TOOLS_PROCESSES_H

#include "tools/clock.h"
#include "tools/flags.h"
#include "tools/gate.h"
#include "tools/seen.h"
#include "tools/sentence.h"
#include "tools/tally.h"

struct process;

struct processes {
	const struct fleet_flags *flags;
	const struct fleet_clock *clock;
	struct tally *tally; /* open before they begin */
	struct gate gate;    /* the threads wait here until then */
	struct process *each;
	uint32_t started;
	_Atomic uint32_t failed; /* the first one's number, from 1; 0: none */
};

/* Starts them all; they get ready by themselves.  In any case processes_close has to
 * follow.  run: as in node.h. */
bool processes_start(struct processes *processes, const struct fleet_flags *flags,
                     const struct fleet_clock *clock, uint64_t run, struct tally *tally,
                     struct sentence *ret_why);

bool processes_ready(struct processes *processes);      /* all of them */
bool processes_wait(const struct processes *processes); /* for the store to grant */
bool processes_failed(const struct processes *processes);

void processes_begin(struct processes *processes, uint64_t begin_us, uint64_t stop_us);
void processes_stop(struct processes *processes, uint64_t stop_us);

/* Adds what they have told so far. */
void processes_look(const struct processes *processes, struct seen *seen);

/* Those that have not ended; what they did not tell is lost. */
void processes_kill(struct processes *processes);
/* The same, because one of them takes too long. */
void processes_give_up(struct processes *processes, struct sentence *ret_why);

/* When all are gone, or one has failed: true if each has ended well. */
bool processes_end(struct processes *processes, struct sentence *ret_why);
void processes_close(struct processes *processes);

#endif
