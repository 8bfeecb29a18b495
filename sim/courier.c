/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * courier.c -- a beat that waits is found by its number; its answers come once, twice or never.
 *
 * A beat that was sent in another life of the node is not answered.
 */
#include "sim/courier.h"

#include <string.h>

#include "sim/must.h"
#include "sim/room.h"

/* A call that waits for a beat. */
struct waiting {
	struct list place;
	struct store_call *call;
	uint64_t number;
};

struct store_desk {
	struct list place; /* among the courier's */
	struct store_home *home;
	struct list waiting;
	struct courier_parcel *inbox, **inbox_end;
};

struct courier_parcel {
	struct event event; /* first */
	struct courier *courier;
	struct port *port;
	struct station *station;
	struct courier_parcels *parcels;
	struct courier_parcel *before, *after; /* among those that travel */
	struct courier_parcel *next;           /* in the inbox */
	uint64_t life;
	uint64_t number;
	struct store_beat beat;
	uint8_t node[STORE_NODE_MAX];
	uint8_t key[STORE_KEY_MAX];
	uint32_t key_len;
	enum store_result result;
	struct store_nudge nudge; /* of one that is nothing else */
};

/* ---- Parcels --------------------------------------------------------------------- */

static void list_parcel(struct courier_parcels *parcels, struct courier_parcel *parcel)
{
	parcel->parcels = parcels;
	parcel->before = NULL;
	parcel->after = parcels->first;
	if (parcels->first)
		parcels->first->before = parcel;
	parcels->first = parcel;
}

static void parcel_free(struct courier_parcel *parcel)
{
	if (parcel->after)
		parcel->after->before = parcel->before;
	if (parcel->before)
		parcel->before->after = parcel->after;
	else
		parcel->parcels->first = parcel->after;
	free(parcel);
}

static struct courier_parcel *copy_of(const struct courier_parcel *parcel)
{
	struct courier_parcel *copy = room_new(sizeof(*copy));

	*copy = *parcel;
	copy->beat.node = copy->node;
	list_parcel(parcel->parcels, copy);
	return copy;
}

void courier_parcels_free(struct courier_parcels *parcels)
{
	while (parcels->first)
		parcel_free(parcels->first);
}

/* On its way, as often as it comes: it is given away. */
static void post(struct courier_parcel *parcel, void (*arrives)(struct event *self))
{
	struct net *net = parcel->port->net;

	parcel->event.happen = arrives;
	if (net_loses(net)) {
		parcel_free(parcel);
		return;
	}
	if (chance_below(net->chance, 100) < net->terms.doubled_percent) {
		struct courier_parcel *twin = copy_of(parcel);

		net->doubled++;
		agenda_add(net->agenda, &twin->event,
		           net->agenda->now_us + net_delay(net));
	}
	agenda_add(net->agenda, &parcel->event, net->agenda->now_us + net_delay(net));
}

/* ---- Answers --------------------------------------------------------------------- */

static struct waiting *waits_for(const struct store_desk *desk, uint64_t number)
{
	for (struct list *at = desk->waiting.next; at != &desk->waiting;
	     at = at->next) {
		struct waiting *waiting = list_item(at, struct waiting, place);

		if (waiting->number == number)
			return waiting;
	}
	return NULL;
}

static struct store_desk *desk_of(const struct courier *courier, uint64_t number)
{
	for (struct list *at = courier->desks.next; at != &courier->desks;
	     at = at->next) {
		struct store_desk *desk = list_item(at, struct store_desk, place);

		if (waits_for(desk, number))
			return desk;
	}
	return NULL;
}

static void put_in(struct store_desk *desk, struct courier_parcel *parcel)
{
	parcel->next = NULL;
	*desk->inbox_end = parcel;
	desk->inbox_end = &parcel->next;
}

/* A node that pauses takes it in when it goes on.  False: not now, or never. */
static bool is_let_in(struct courier_parcel *parcel)
{
	struct port *port = parcel->port;

	if (port->life != parcel->life || port->dead || port_is_cut(port)) {
		parcel_free(parcel);
		return false;
	}
	if (port->held_us > parcel->event.at_us) {
		agenda_add(port->net->agenda, &parcel->event, port->held_us);
		return false;
	}
	return true;
}

static void nudge_arrives(struct event *self)
{
	struct courier_parcel *parcel = (struct courier_parcel *)self;
	struct list *desks = &parcel->courier->desks, *at;
	struct port *port = parcel->port;

	if (!is_let_in(parcel))
		return;
	for (at = desks->next; at != desks; at = at->next) {
		struct store_home *home = list_item(at, struct store_desk, place)->home;

		if (home->nudges)
			store_put_nudge(home->nudges, &parcel->nudge);
	}
	parcel_free(parcel);
	port->came(port);
}

static void answer_arrives(struct event *self)
{
	struct courier_parcel *parcel = (struct courier_parcel *)self;
	struct port *port = parcel->port;
	struct store_desk *desk;

	if (!is_let_in(parcel))
		return;
	desk = desk_of(parcel->courier, parcel->number);
	if (!desk) {
		parcel_free(parcel);
		return;
	}
	put_in(desk, parcel);
	port->came(port);
}

static void finish(struct store_desk *desk, struct waiting *waiting,
                   enum store_result result)
{
	store_finish(desk->home, waiting->call, result);
	list_remove(&waiting->place);
	free(waiting);
}

static void hand_in(struct store_desk *desk, const struct courier_parcel *parcel)
{
	struct waiting *waiting = waits_for(desk, parcel->number);

	if (!waiting)
		return; /* its twin was there before */
	waiting->call->op->beat->grant = parcel->beat.grant;
	finish(desk, waiting, parcel->result);
}

static void empty_inbox(struct store_desk *desk, bool hands_in)
{
	struct courier_parcel *parcel;

	while ((parcel = desk->inbox)) {
		desk->inbox = parcel->next;
		if (!desk->inbox)
			desk->inbox_end = &desk->inbox;
		if (hands_in)
			hand_in(desk, parcel);
		parcel_free(parcel);
	}
}

/* ---- At the station -------------------------------------------------------------- */

static void beat_arrives(struct event *self)
{
	static struct kept kept; /* too large for a stack */
	struct courier_parcel *parcel = (struct courier_parcel *)self;
	struct port *port = parcel->port;
	struct remote_job job = { .verb = REMOTE_BEAT,
		                  .key = { parcel->key, parcel->key_len },
		                  .beat = &parcel->beat };
	struct remote_told told;

	station_look(parcel->station);
	job.forgot_us = parcel->station->since_us;
	told = parcel->station->ops->serve(parcel->station, &job, &kept);
	if (port->net->beaten)
		port->net->beaten(port->net, port, &job, &told);
	parcel->result = remote_explain_beat(&told, &parcel->beat);
	if (port_is_cut(port))
		parcel_free(parcel);
	else
		post(parcel, answer_arrives);
}

/* ---- The store ------------------------------------------------------------------- */

static struct courier *courier_of(const struct store_client *client)
{
	return (struct courier *)client->store;
}

static struct store_desk *courier_enter(struct store *self, struct store_home *home)
{
	struct courier *courier = (struct courier *)self;
	struct store_desk *desk = room_new(sizeof(*desk));

	desk->home = home;
	desk->inbox_end = &desk->inbox;
	list_init(&desk->waiting);
	list_append(&courier->desks, &desk->place);
	return desk;
}

static struct courier_parcel *parcel_new(struct courier *courier)
{
	struct courier_parcel *parcel = room_new(sizeof(*parcel));

	list_parcel(courier->parcels, parcel);
	parcel->courier = courier;
	parcel->port = courier->port;
	parcel->station = courier->station;
	parcel->life = courier->port->life;
	return parcel;
}

void courier_nudge(struct courier *courier, const struct store_nudge *nudge)
{
	struct courier_parcel *parcel = parcel_new(courier);

	parcel->nudge = *nudge;
	post(parcel, nudge_arrives);
}

static void send(struct courier *courier, const struct store_op *op, uint64_t number)
{
	struct courier_parcel *parcel = parcel_new(courier);

	parcel->number = number;
	parcel->beat = *op->beat;
	parcel->beat.node = parcel->node;
	memcpy(parcel->node, op->beat->node, op->beat->node_len);
	memcpy(parcel->key, op->key, op->key_len);
	parcel->key_len = op->key_len;
	courier->port->net->requests++;
	post(parcel, beat_arrives);
}

static void courier_begin(const struct store_client *client, struct store_call *call)
{
	struct courier *courier = courier_of(client);
	struct waiting *waiting = room_new(sizeof(*waiting));

	must(call->op->verb == STORE_BEAT);
	waiting->call = call;
	waiting->number = ++courier->sent;
	list_append(&client->desk->waiting, &waiting->place);
	if (!courier->port->dead && !port_is_cut(courier->port))
		send(courier, call->op, waiting->number);
}

static mono courier_turn(const struct store_client *client, mono now)
{
	struct store_desk *desk = client->desk;
	mono due = { UINT64_MAX };
	struct list *at, *next;

	empty_inbox(desk, /* hands_in= */ true);
	for (at = desk->waiting.next; at != &desk->waiting; at = next) {
		struct waiting *waiting = list_item(at, struct waiting, place);

		next = at->next;
		if (mono_reached(now, waiting->call->due))
			finish(desk, waiting, STORE_LATE);
		else
			due = mono_earlier(due, waiting->call->due);
	}
	return due;
}

static bool courier_is_idle(const struct store_client *client)
{
	return list_is_empty(&client->desk->waiting);
}

static void courier_leave(const struct store_client *client)
{
	struct store_desk *desk = client->desk;
	struct list *at;

	empty_inbox(desk, /* hands_in= */ false);
	while ((at = list_first(&desk->waiting)))
		finish(desk, list_item(at, struct waiting, place), STORE_LATE);
	list_remove(&desk->place);
	free(desk);
}

static enum store_result courier_run(struct store *self, struct store_op *op,
                                     bool patient)
{
	(void)self;
	(void)op;
	(void)patient;
	return STORE_BUSY;
}

static bool courier_sweep(struct store *self)
{
	(void)self;
	return true;
}

static void courier_stats(struct store *self, struct gale_counts *ret_stats)
{
	(void)self;
	*ret_stats = (struct gale_counts){ 0 };
}

static void courier_close(struct store *self)
{
	struct port *port = ((struct courier *)self)->port;

	port->inner->ops->close(port->inner);
	port->inner = NULL;
}

static const struct store_ops courier_ops = {
	.run = courier_run,
	.enter = courier_enter,
	.begin = courier_begin,
	.turn = courier_turn,
	.is_idle = courier_is_idle,
	.leave = courier_leave,
	.sweep = courier_sweep,
	.stats = courier_stats,
	.close = courier_close,
};

struct store *courier_open(struct courier *courier, struct port *port,
                           struct station *station, struct courier_parcels *parcels)
{
	*courier = (struct courier){ .store = { .ops = &courier_ops },
		                     .port = port,
		                     .station = station,
		                     .parcels = parcels };
	list_init(&courier->desks);
	return &courier->store;
}
