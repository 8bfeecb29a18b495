/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * net.h -- what happens next, and a network between nodes and one store.
 *
 * Time is a number that moves from one event to the next.  A node's store is a port: what
 * is lent through it travels to the shared store as parcels, one for each request, and
 * each answer travels back as another.
 *
 *     node -> port -> parcel ...delay... -> the store -> parcel ...delay... -> node
 *
 * Each parcel may be lost, or come twice, and none waits for another.  (A store that is a
 * server is reached by streams, which have the same terms: virtual_wire.h.)
 *
 * Threads   One.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "stores/remote.h"
#include "stores/store.h"
#include "sim/random.h"

/* ---- What happens next ----------------------------------------------------------- */

struct event {
	uint64_t at_us; /* true time, since 1970 */
	uint64_t order; /* of those at the same instant */
	void (*happen)(struct event *self);
};

struct agenda {
	uint64_t now_us;
	uint64_t happened;
	uint64_t added;
	struct event **heap;
	size_t count;
	size_t room;
};

void agenda_open(struct agenda *agenda, uint64_t now_us);
void agenda_close(struct agenda *agenda);
/* The event stays its owner's; it must not be added twice at a time. */
void agenda_add(struct agenda *agenda, struct event *event, uint64_t at_us);
/* UINT64_MAX: nothing will. */
uint64_t agenda_next_us(const struct agenda *agenda);
/* Moves time there, and lets it happen. */
void agenda_step(struct agenda *agenda);

/* ---- The network ----------------------------------------------------------------- */

struct net_terms {
	uint64_t mean_us; /* of the delay of a parcel, each way */
	bool exact;       /* each takes just as long */
	uint32_t lost_percent;
	uint32_t doubled_percent;
	bool direct; /* no delay: an answer comes within the call that asks */
};

struct port;

struct net {
	struct agenda *agenda;
	struct chance *chance;
	struct store *shared;
	struct net_terms terms;
	/* For each request that the store has served; twice if it came twice, and then
	 * with what was done for its twin. */
	void (*served)(struct net *self, const struct lend_request *request,
	               const struct lend_answer *answer, uint64_t before);
	/* For each call that a server admits itself, before a node knows. */
	void (*stepped)(struct net *self, const uint8_t *key, uint32_t key_len,
	                const struct rule *rule, uint64_t cost);
	/* For each answer that comes to a node that is there, before it knows. */
	void (*arrives)(struct net *self, struct port *port,
	                const struct lend_request *request,
	                const struct lend_answer *answer);
	/* For each beat that the store has served, before a node is told. */
	void (*beaten)(struct net *self, struct port *port,
	               const struct remote_job *job, const struct remote_told *told);
	struct parcel *travelling; /* all of them, to free what never arrives */
	uint64_t requests;
	uint64_t runs; /* that are no requests to lend */
	uint64_t lost;
	uint64_t doubled;
	uint64_t cut;          /* lost to partitions */
	uint64_t late_most_us; /* the longest that an answer was on its way */
};

/* Where a node meets the network; it stands where the node's own store would. */
struct port {
	struct store store; /* first */
	struct net *net;
	struct store *inner; /* closed with it */
	uint64_t life;       /* what was sent in another life is not answered */
	bool dead;           /* nothing leaves */
	bool mute;           /* nothing leaves, though it is alive */
	uint64_t cut_us;     /* nothing passes, either way, before */
	uint64_t held_us;    /* answers do not come in before */
	void (*came)(struct port *self);
	/* NULL, or what a bad store makes of an answer; returns how often it comes. */
	unsigned (*twist)(struct port *self, struct lend_answer *answer);
};

void net_open(struct net *net, struct agenda *agenda, struct chance *chance,
              struct store *shared);
void net_close(struct net *net);
/* How long one is on its way: one in twenty takes several times as long. */
uint64_t net_delay(struct net *net);
/* Is this one lost?  Counts it. */
bool net_loses(struct net *net);
/* Is there a partition between it and the store?  Then what was to pass is counted. */
bool port_is_cut(struct port *port);
void port_open(struct port *port, struct net *net, struct store *inner);

#endif
