/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * flow.h -- how much to have under way at a server, so that its answers come in time.
 *
 * A server that is asked more than it can do answers later and later, and does jobs that no call
 * waits for any more.  A job that waits here can still be refused; one that waits there cannot.
 * So little waits there: no more than a part of the callers' patience is worth, as replies have
 * shown.
 *
 *     jobs wait    ->  flow_room says how many may be sent now; jobs whose answers are of use
 *                      when they come late do not wait for it, and are told of all the same
 *     they go      ->  flow_sent
 *     a reply      ->  flow_heard, with how long it took and how long its callers would wait
 *     before a job ->  flow_need says how long its answer may take
 *
 * The room grows while replies come well before the goal, and shrinks when they come after it.
 * The goal is what a job takes that goes alone, and a part of the patience besides: a server that
 * is far away is no queue.
 *
 * Invariants
 *
 *   FLOW-1  Of an idle flow there is room for a job; the room is never more than most.
 *   FLOW-2  The room grows only while half of it or more is used.
 *   FLOW-3  A job that has waited for no more than a part of its caller's patience may be sent,
 *           unless replies take longer than all of it; and then, too, while nothing else is
 *           under way: a server that became faster is found out.
 *   FLOW-4  Of a room that is in use half is sent together, or a whole batch: what comes back
 *           little by little does not go so.
 *
 * Threads   Pure: any, on different states.
 */
#ifndef ENGINE_FLOW_H
#define ENGINE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* All zero but most and batch is fresh. */
struct flow {
	uint64_t most;      /* of the room */
	uint64_t batch;     /* jobs that go together, at most */
	uint64_t room;      /* 0: nothing was heard yet, and a part of a batch goes */
	uint64_t under_way; /* whether they waited for room or not */
	uint64_t
	    alone_ns; /* what a job takes without others of ours: the shorter ... */
	uint64_t last_alone_ns; /* ... of the last two that went so; 0: not known */
	uint64_t mean_ns;       /* what replies take, the latest most ... */
	uint64_t spread_ns;     /* ... and how far they are from that */
};

/* Jobs of one reply. */
struct flow_reply {
	uint64_t jobs;
	uint64_t took_ns;
	uint64_t patience_ns; /* of calls that wait, in the mean; 0: no call waits */
	bool was_alone;       /* it was one job, and nothing else was under way */
};

/* How many may be sent together now. */
uint64_t flow_room(const struct flow *flow);

/* How long the answer of a job may take that is sent now, along with others. FLOW-3 */
uint64_t flow_need(const struct flow *flow, uint64_t others, uint64_t patience_ns);

/* True: it goes alone, as reply.was_alone wants to know. */
bool flow_sent(struct flow *flow, uint64_t jobs);
void flow_heard(struct flow *flow, const struct flow_reply *reply);
/* No reply will come. */
void flow_lost(struct flow *flow, uint64_t jobs);

bool flow_valid(const struct flow *flow);

#endif
