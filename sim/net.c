/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* net.c -- a heap of events, and parcels that are events. */
#include "sim/net.h"

#include <string.h>

#include "runtime/role.h"
#include "sim/must.h"
#include "sim/room.h"

/* ---- What happens next ----------------------------------------------------------- */

void agenda_open(struct agenda *agenda, uint64_t now_us)
{
	*agenda = (struct agenda){ .now_us = now_us };
}

void agenda_close(struct agenda *agenda)
{
	free(agenda->heap);
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void swap(struct agenda *agenda, size_t a, size_t b)
{
	struct event *event = agenda->heap[a];

	agenda->heap[a] = agenda->heap[b];
	agenda->heap[b] = event;
}

static void make_room(struct agenda *agenda)
{
	if (agenda->count < agenda->room)
		return;
	agenda->room = agenda->room ? 2 * agenda->room : 64;
	agenda->heap = room_for(agenda->heap, agenda->room * sizeof(*agenda->heap));
}

void agenda_add(struct agenda *agenda, struct event *event, uint64_t at_us)
{
	size_t at = agenda->count;

	must(at_us >= agenda->now_us);
	make_room(agenda);
	event->at_us = at_us;
	event->order = agenda->added++;
	agenda->heap[agenda->count++] = event;
	while (at > 0 && is_before(agenda->heap[at], agenda->heap[(at - 1) / 2])) {
		swap(agenda, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static struct event *take_first(struct agenda *agenda)
{
	struct event *first = agenda->heap[0];
	size_t at = 0, child;

	agenda->heap[0] = agenda->heap[--agenda->count];
	while ((child = 2 * at + 1) < agenda->count) {
		if (child + 1 < agenda->count &&
		    is_before(agenda->heap[child + 1], agenda->heap[child]))
			child++;
		if (!is_before(agenda->heap[child], agenda->heap[at]))
			break;
		swap(agenda, at, child);
		at = child;
	}
	return first;
}

uint64_t agenda_next_us(const struct agenda *agenda)
{
	return agenda->count > 0 ? agenda->heap[0]->at_us : UINT64_MAX;
}

void agenda_step(struct agenda *agenda)
{
	struct event *event = take_first(agenda);

	agenda->now_us = event->at_us;
	agenda->happened++;
	event->happen(event);
}

/* ---- Parcels --------------------------------------------------------------------- */

struct parcel {
	struct event event; /* first */
	struct port *port;
	struct parcel *before, *after; /* among those that travel */
	struct parcel *twin;           /* the same request once more; NULL: none */
	uint64_t done;                 /* units that its twin got or gave */
	uint64_t life;
	uint64_t sent_us;
	struct store_home *home;
	struct lend_request request;
	struct rule rule; /* the sender's may be gone by then */
	uint8_t key[STORE_KEY_MAX];
	struct lend_answer answer;
};

static struct parcel *parcel_new(struct port *port)
{
	struct parcel *parcel = room_new(sizeof(*parcel));
	struct net *net = port->net;

	parcel->port = port;
	parcel->life = port->life;
	parcel->sent_us = net->agenda->now_us;
	parcel->after = net->travelling;
	if (net->travelling)
		net->travelling->before = parcel;
	net->travelling = parcel;
	return parcel;
}

static void parcel_free(struct parcel *parcel)
{
	struct net *net = parcel->port->net;

	if (parcel->after)
		parcel->after->before = parcel->before;
	if (parcel->before)
		parcel->before->after = parcel->after;
	else
		net->travelling = parcel->after;
	if (parcel->twin)
		parcel->twin->twin = NULL;
	free(parcel);
}

/* One in twenty takes several times as long. */
uint64_t net_delay(struct net *net)
{
	uint64_t mean = net->terms.mean_us;

	if (mean == 0 || net->terms.exact)
		return mean;
	if (chance_one_in(net->chance, 20))
		return mean * chance_between(net->chance, 1, 8);
	return chance_below(net->chance, 2 * mean + 1);
}

bool net_loses(struct net *net)
{
	bool loses = chance_below(net->chance, 100) < net->terms.lost_percent;

	net->lost += loses;
	return loses;
}

/* How many of it will arrive. */
static unsigned draw_copies(struct net *net)
{
	if (net_loses(net))
		return 0;
	if (chance_below(net->chance, 100) < net->terms.doubled_percent) {
		net->doubled++;
		return 2;
	}
	return 1;
}

static void post(struct parcel *parcel)
{
	struct net *net = parcel->port->net;

	agenda_add(net->agenda, &parcel->event, net->agenda->now_us + net_delay(net));
}

bool port_is_cut(struct port *port)
{
	bool cut = port->cut_us > port->net->agenda->now_us;

	port->net->cut += cut;
	return cut;
}

/* ---- Back ------------------------------------------------------------------------ */

static void note_lateness(struct net *net, uint64_t sent_us)
{
	uint64_t late = net->agenda->now_us - sent_us;

	if (net->late_most_us < late)
		net->late_most_us = late;
}

static void hand_in(struct port *port, struct store_home *home,
                    const struct lend_request *request,
                    const struct lend_answer *answer)
{
	if (port->net->arrives)
		port->net->arrives(port->net, port, request, answer);
	role_begin(&actor_role);
	home->on_answer(home, answer);
	role_end(&actor_role);
}

/* A node that pauses takes it in when it goes on. */
static void answer_arrives(struct event *self)
{
	struct parcel *parcel = (struct parcel *)self;
	struct port *port = parcel->port;

	if (port->life == parcel->life && port->held_us > self->at_us) {
		agenda_add(port->net->agenda, self, port->held_us);
		return;
	}
	if (port->life == parcel->life && !port_is_cut(port)) {
		note_lateness(port->net, parcel->sent_us);
		hand_in(port, parcel->home, &parcel->request, &parcel->answer);
		port->came(port);
	}
	parcel_free(parcel);
}

static void put_request(struct parcel *parcel, const struct lend_request *request)
{
	parcel->request = *request;
	parcel->rule = *request->rule;
	memcpy(parcel->key, request->key, request->key_len);
	parcel->request.rule = &parcel->rule;
	parcel->request.key = parcel->key;
}

static void send_answer(struct port *port, const struct parcel *asked,
                        const struct lend_answer *answer)
{
	unsigned copies = port_is_cut(port) ? 0 : draw_copies(port->net);

	while (copies-- > 0) {
		struct parcel *parcel = parcel_new(port);

		parcel->event.happen = answer_arrives;
		parcel->life = asked->life;
		parcel->home = asked->home;
		put_request(parcel, &asked->request);
		parcel->answer = *answer;
		post(parcel);
	}
}

/* ---- Forth ----------------------------------------------------------------------- */

/* The store answers to this one, within lend. */
struct counter {
	struct store_home home; /* first */
	struct lend_answer answer;
	unsigned count;
};

static void note_answer(struct store_home *home, const struct lend_answer *answer)
{
	struct counter *counter = (struct counter *)home;

	counter->answer = *answer;
	counter->count++;
}

static struct lend_answer serve(struct net *net, const struct lend_request *request,
                                uint64_t before)
{
	struct counter counter = { .home = { .on_answer = note_answer } };
	const struct store_client client = { net->shared, &counter.home, NULL };

	net->shared->ops->lend(&client, request, 1);
	must(counter.count == 1);
	if (net->served)
		net->served(net, request, &counter.answer, before);
	return counter.answer;
}

static unsigned twisted(struct port *port, struct lend_answer *answer)
{
	return port->twist ? port->twist(port, answer) : 1;
}

static uint64_t units_of(const struct lend_request *request,
                         const struct lend_answer *answer)
{
	if (answer->result != STORE_DONE)
		return 0;
	return request->verb == LEND ? answer->grant.units : request->units;
}

static void request_arrives(struct event *self)
{
	struct parcel *parcel = (struct parcel *)self;
	struct port *port = parcel->port;
	struct lend_answer answer = serve(port->net, &parcel->request, parcel->done);
	unsigned times;

	if (parcel->twin)
		parcel->twin->done = units_of(&parcel->request, &answer);
	times = twisted(port, &answer);
	while (times-- > 0)
		send_answer(port, parcel, &answer);
	parcel_free(parcel);
}

static struct parcel *send_request(struct port *port, struct store_home *home,
                                   const struct lend_request *request)
{
	struct parcel *parcel = parcel_new(port);

	parcel->event.happen = request_arrives;
	parcel->home = home;
	put_request(parcel, request);
	post(parcel);
	return parcel;
}

static void send_copies(struct port *port, struct store_home *home,
                        const struct lend_request *request)
{
	unsigned copies = draw_copies(port->net);
	struct parcel *first, *second;

	if (copies > 0)
		first = send_request(port, home, request);
	if (copies > 1) {
		second = send_request(port, home, request);
		first->twin = second;
		second->twin = first;
	}
}

static void lend_directly(struct port *port, struct store_home *home,
                          const struct lend_request *request)
{
	struct lend_answer answer = serve(port->net, request, /* before= */ 0);
	unsigned times = twisted(port, &answer);

	while (times-- > 0)
		hand_in(port, home, request, &answer);
}

static void port_lend(const struct store_client *client,
                      const struct lend_request *requests, size_t count)
{
	struct port *port = (struct port *)client->store;

	for (size_t i = 0; i < count && !port->dead; i++) {
		port->net->requests++;
		if (port->mute || port_is_cut(port))
			continue;
		if (port->net->terms.direct)
			lend_directly(port, client->home, &requests[i]);
		else
			send_copies(port, client->home, &requests[i]);
	}
}

/* ---- The rest of a store --------------------------------------------------------- */

static enum store_result port_run(struct store *self, struct store_op *op, bool patient)
{
	struct port *port = (struct port *)self;

	if (port->dead || port_is_cut(port))
		return STORE_LATE;
	if (!patient && chance_one_in(port->net->chance, 4))
		return STORE_BUSY;
	port->net->runs++;
	return store_run(port->net->shared, op, patient);
}

static bool port_sweep(struct store *self)
{
	(void)self;
	return true;
}

static void port_stats(struct store *self, struct gale_counts *ret_stats)
{
	struct port *port = (struct port *)self;

	port->net->shared->ops->stats(port->net->shared, ret_stats);
}

static void port_close(struct store *self)
{
	struct port *port = (struct port *)self;

	port->inner->ops->close(port->inner);
	port->inner = NULL;
}

static const struct store_ops port_ops = {
	.run = port_run,
	.lend = port_lend,
	.sweep = port_sweep,
	.stats = port_stats,
	.close = port_close,
};

void port_open(struct port *port, struct net *net, struct store *inner)
{
	port->store.ops = &port_ops;
	port->store.quarantine_us = inner->quarantine_us;
	port->store.lends_ahead = inner->lends_ahead;
	port->net = net;
	port->inner = inner;
	port->life++;
	port->dead = false;
	port->mute = false;
	port->held_us = 0;
	port->cut_us = 0;
}

void net_open(struct net *net, struct agenda *agenda, struct chance *chance,
              struct store *shared)
{
	*net = (struct net){ .agenda = agenda, .chance = chance, .shared = shared };
}

void net_close(struct net *net)
{
	while (net->travelling)
		parcel_free(net->travelling);
}
