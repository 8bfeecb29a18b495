/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * virtual_wire.c -- letters that are events; a reply finds its wire by its connection.
 *
 * A letter to the station is served though its connection may be gone by then.
 */
#include "sim/virtual_wire.h"

#include <stdio.h>
#include <string.h>

#include "sim/must.h"
#include "sim/room.h"
#include "stores/server.h"

struct virtual_wire {
	struct wire wire; /* first */
	struct office *office;
	struct port *port;
	struct virtual_wire *before, *after; /* among the office's */
	enum wire_state state;
	uint64_t connection; /* 0: none */
	uint64_t generation; /* of the station, as it was told */
	uint64_t forth_us;   /* when the latest letter gets there, and ... */
	uint64_t back_us;    /* ... the latest reply here: none overtakes */
	bool cut_forth;      /* what is sent gets lost, from some letter on */
	bool cut_back;
	struct letter *inbox, **inbox_end;
};

/* A job with all that it points to. */
struct carried {
	struct remote_job job;
	struct rule rule;
	uint8_t key[STORE_KEY_MAX];
	uint8_t *bytes; /* of its swap */
	struct remote_told told;
	uint8_t *before; /* what was told points there */
	struct store_beat beat;
	uint8_t node[STORE_NODE_MAX];
};

struct letter {
	struct event event; /* first */
	struct office *office;
	struct letter *before, *after; /* among those that travel */
	struct letter *next;           /* in the inbox */
	struct port *port;
	uint64_t life; /* of the port, when it was sent */
	uint64_t connection;
	uint64_t generation; /* as the sender knows it, and then as it is */
	uint64_t since_us;
	bool greets; /* no batch: it asks for the generation */
	bool breaks; /* no letter: the connection is over */
	bool nudges; /* no reply */
	struct store_nudge nudge;
	enum wire_reply_kind kind;
	uint64_t nonce;
	size_t count;
	struct carried carried[];
};

/* ---- Letters --------------------------------------------------------------------- */

static struct letter *letter_new(struct virtual_wire *wire, size_t count)
{
	struct office *office = wire->office;
	struct letter *letter =
	    room_new(sizeof(*letter) + count * sizeof(letter->carried[0]));

	letter->office = office;
	letter->port = wire->port;
	letter->life = wire->port->life;
	letter->connection = wire->connection;
	letter->generation = wire->generation;
	letter->count = count;
	letter->after = office->travelling;
	if (office->travelling)
		office->travelling->before = letter;
	office->travelling = letter;
	return letter;
}

static void letter_free(struct letter *letter)
{
	if (letter->after)
		letter->after->before = letter->before;
	if (letter->before)
		letter->before->after = letter->after;
	else
		letter->office->travelling = letter->after;
	for (size_t i = 0; i < letter->count; i++) {
		free(letter->carried[i].bytes);
		free(letter->carried[i].before);
	}
	free(letter);
}

static struct remote_bytes copy_bytes(uint8_t *to, struct remote_bytes from)
{
	if (from.count > 0)
		memcpy(to, from.bytes, from.count);
	return (struct remote_bytes){ to, from.count };
}

/* Only a swap has these; another job may show where some were. */
static void carry_swap(struct carried *carried, const struct remote_job *job)
{
	carried->bytes = room_for(NULL, job->was.count + job->becomes.count + 1);
	carried->job.was = copy_bytes(carried->bytes, job->was);
	carried->job.becomes =
	    copy_bytes(carried->bytes + job->was.count, job->becomes);
}

static void carry_beat(struct carried *carried, const struct store_beat *beat)
{
	carried->beat = *beat;
	carried->beat.node = carried->node;
	memcpy(carried->node, beat->node, beat->node_len);
	carried->job.beat = &carried->beat;
}

static void carry_rule(struct carried *carried, const struct rule *rule)
{
	carried->rule = *rule;
	carried->job.rule = &carried->rule;
}

/* The sender's may be gone by the time it arrives. */
static void carry(struct carried *carried, const struct remote_job *job)
{
	carried->job = *job;
	if (job->verb == REMOTE_BEAT)
		carry_beat(carried, job->beat);
	else
		carry_rule(carried, job->rule);
	carried->job.key = copy_bytes(carried->key, job->key);
	carried->job.was = carried->job.becomes = (struct remote_bytes){ NULL, 0 };
	if (job->verb == REMOTE_SWAP)
		carry_swap(carried, job);
}

/* When what is sent now arrives, not before *latest. */
static uint64_t arrival(struct port *port, uint64_t *latest)
{
	uint64_t now = port->net->agenda->now_us;
	uint64_t at = (port_is_cut(port) ? port->cut_us : now) + net_delay(port->net);

	if (at < *latest)
		at = *latest;
	*latest = at;
	return at;
}

/* ---- At the node ----------------------------------------------------------------- */

static struct virtual_wire *wire_of(const struct letter *letter)
{
	struct virtual_wire *wire = letter->office->wires;

	while (wire && wire->connection != letter->connection)
		wire = wire->after;
	return wire;
}

static void put_in(struct virtual_wire *wire, struct letter *letter)
{
	letter->next = NULL;
	*wire->inbox_end = letter;
	wire->inbox_end = &letter->next;
}

static void reply_arrives(struct event *self)
{
	struct letter *letter = (struct letter *)self;
	struct virtual_wire *wire = wire_of(letter);

	if (!wire) {
		letter_free(letter);
		return;
	}
	put_in(wire, letter);
	wire->port->came(wire->port);
}

/* It is not heard of at once, or not at all: then the client finds that out. */
static void break_off(struct virtual_wire *wire)
{
	struct net *net = wire->office->net;
	struct letter *letter;

	if (chance_one_in(net->chance, 2))
		return;
	letter = letter_new(wire, 0);
	letter->breaks = true;
	letter->event.happen = reply_arrives;
	agenda_add(net->agenda, &letter->event, arrival(wire->port, &wire->back_us));
}

/* ---- At the station -------------------------------------------------------------- */

static void tell_law(struct letter *letter, const struct remote_job *job,
                     const struct remote_told *told, bool arrives)
{
	struct net *net = letter->office->net;
	struct lend_request request = { .verb =
		                            job->verb == REMOTE_LEND ? LEND : LEND_BACK,
		                        .key = job->key.bytes,
		                        .key_len = (uint32_t)job->key.count,
		                        .rule = job->rule,
		                        .ask = job->ask,
		                        .tag = job->tag,
		                        .units = job->units };
	struct lend_answer answer = { .number = job->ask.number };

	if (job->verb != REMOTE_LEND && job->verb != REMOTE_BACK)
		return;
	remote_explain_lend(job, told, &answer);
	if (arrives && net->arrives)
		net->arrives(net, letter->port, &request, &answer);
	if (!arrives && net->served)
		net->served(net, &request, &answer, /* before= */ 0);
}

static void tell_step(struct net *net, const struct remote_job *job,
                      const struct remote_told *told)
{
	struct store_op op = { .verb = STORE_STEP,
		               .rule = job->rule,
		               .cost = job->cost };

	if (job->verb == REMOTE_STEP &&
	    remote_explain_step(job, told, &op) == STORE_DONE &&
	    op.answer.verdict == GALE_ALLOW && net->stepped)
		net->stepped(net, job->key.bytes, (uint32_t)job->key.count, job->rule,
		             job->cost);
}

static void serve_one(struct letter *letter, struct carried *carried)
{
	static struct kept before; /* too large for a stack */
	struct station *station = letter->office->station;

	carried->told = station->ops->serve(station, &carried->job, &before);
	tell_law(letter, &carried->job, &carried->told, /* arrives= */ false);
	tell_step(letter->office->net, &carried->job, &carried->told);
	if (carried->job.verb == REMOTE_BEAT && letter->office->net->beaten)
		letter->office->net->beaten(letter->office->net, letter->port,
		                            &carried->job, &carried->told);
	carried->before = room_for(NULL, carried->told.before.count + 1);
	carried->told.before = copy_bytes(carried->before, carried->told.before);
}

static void serve(struct letter *letter)
{
	struct station *station = letter->office->station;

	station_look(station);
	letter->kind = WIRE_TOLD;
	if (!letter->greets && letter->generation != station->generation)
		letter->kind = WIRE_AGAIN;
	for (size_t i = 0; i < letter->count && letter->kind == WIRE_TOLD; i++)
		serve_one(letter, &letter->carried[i]);
	letter->generation = station->generation;
	letter->since_us = station->since_us;
}

static void letter_arrives(struct event *self)
{
	struct letter *letter = (struct letter *)self;
	struct virtual_wire *wire = wire_of(letter);
	struct net *net = letter->office->net;

	serve(letter);
	if (!wire || wire->cut_back) {
		letter_free(letter);
		return;
	}
	if (net_loses(net)) {
		wire->cut_back = true;
		break_off(wire);
		letter_free(letter);
		return;
	}
	letter->event.happen = reply_arrives;
	agenda_add(net->agenda, &letter->event, arrival(wire->port, &wire->back_us));
}

static void post(struct virtual_wire *wire, struct letter *letter)
{
	struct net *net = wire->office->net;

	letter->event.happen = letter_arrives;
	if (wire->port->dead || wire->cut_forth) {
		letter_free(letter);
	} else if (net_loses(net)) {
		wire->cut_forth = true;
		break_off(wire);
		letter_free(letter);
	} else {
		agenda_add(net->agenda, &letter->event,
		           arrival(wire->port, &wire->forth_us));
	}
}

/* ---- The wire -------------------------------------------------------------------- */

static void greet(struct virtual_wire *wire)
{
	struct letter *letter = letter_new(wire, 0);

	letter->greets = true;
	wire->state = WIRE_OPENING;
	post(wire, letter);
}

static void wire_connect(struct wire *self, mono now)
{
	struct virtual_wire *wire = (struct virtual_wire *)self;

	(void)now;
	wire->connection = ++wire->office->connections;
	wire->cut_forth = wire->cut_back = false;
	wire->forth_us = wire->back_us = 0;
	greet(wire);
}

static void be_greeted(struct virtual_wire *wire, const struct letter *letter)
{
	wire->generation = letter->generation;
	wire->wire.since_us = letter->since_us;
	wire->state = WIRE_READY;
}

static void hand_in(struct virtual_wire *wire, struct letter *letter)
{
	struct remote_told *told = room_new((letter->count + 1) * sizeof(*told));
	struct wire_reply reply = { .nonce = letter->nonce,
		                    .kind = letter->kind,
		                    .told = told,
		                    .count = letter->count };

	for (size_t i = 0; i < letter->count && letter->kind == WIRE_TOLD; i++) {
		told[i] = letter->carried[i].told;
		tell_law(letter, &letter->carried[i].job, &told[i],
		         /* arrives= */ true);
	}
	wire->wire.home->on_reply(wire->wire.home, &reply);
	free(told);
}

/* A client that is told that the generation is another asks for it. */
static void read_letter(struct virtual_wire *wire, struct letter *letter)
{
	if (letter->breaks) {
		wire->state = WIRE_BROKEN;
		snprintf(wire->wire.text, WIRE_TEXT, "the connection broke");
	} else if (letter->nudges) {
		wire->wire.home->on_nudge(wire->wire.home, &letter->nudge);
	} else if (letter->greets) {
		be_greeted(wire, letter);
	} else {
		hand_in(wire, letter);
		if (letter->kind == WIRE_AGAIN && wire->state == WIRE_READY)
			greet(wire);
	}
}

static struct letter *take_out(struct virtual_wire *wire)
{
	struct letter *letter = wire->inbox;

	if (!letter)
		return NULL;
	wire->inbox = letter->next;
	if (!wire->inbox)
		wire->inbox_end = &wire->inbox;
	return letter;
}

static enum wire_state wire_turn(struct wire *self, mono now)
{
	struct virtual_wire *wire = (struct virtual_wire *)self;
	struct letter *letter;

	(void)now;
	while (wire->state != WIRE_BROKEN && (letter = take_out(wire))) {
		read_letter(wire, letter);
		letter_free(letter);
	}
	return wire->state;
}

static bool wire_send(struct wire *self, const struct remote_batch *batch)
{
	struct virtual_wire *wire = (struct virtual_wire *)self;
	struct letter *letter = letter_new(wire, batch->count);

	letter->nonce = batch->nonce;
	for (size_t i = 0; i < batch->count; i++)
		carry(&letter->carried[i], &batch->jobs[i]);
	wire->office->net->requests++;
	post(wire, letter);
	return true;
}

static void wire_hang_up(struct wire *self)
{
	struct virtual_wire *wire = (struct virtual_wire *)self;
	struct letter *letter;

	while ((letter = take_out(wire)))
		letter_free(letter);
	wire->connection = 0;
	wire->state = WIRE_OPENING;
}

static void wire_free(struct wire *self)
{
	struct virtual_wire *wire = (struct virtual_wire *)self;

	wire_hang_up(self);
	if (wire->after)
		wire->after->before = wire->before;
	if (wire->before)
		wire->before->after = wire->after;
	else
		wire->office->wires = wire->after;
	free(wire);
}

static const struct wire_ops wire_ops = {
	.connect = wire_connect,
	.turn = wire_turn,
	.send = wire_send,
	.hang_up = wire_hang_up,
	.free = wire_free,
};

/* ---- The store ------------------------------------------------------------------- */

struct kind {
	struct server_kind is; /* first */
	struct office *office;
	struct port *port;
};

static struct wire *kind_wire(struct server_kind *self, struct watch watch)
{
	struct kind *kind = (struct kind *)self;
	struct office *office = kind->office;
	struct virtual_wire *wire = room_new(sizeof(*wire));

	(void)watch;
	wire->wire.ops = &wire_ops;
	wire->wire.watch.epoll_fd = -1;
	wire->office = office;
	wire->port = kind->port;
	wire->inbox_end = &wire->inbox;
	wire->after = office->wires;
	if (office->wires)
		office->wires->before = wire;
	office->wires = wire;
	return &wire->wire;
}

static void kind_free(struct server_kind *self)
{
	struct kind *kind = (struct kind *)self;

	kind->port->inner->ops->close(kind->port->inner);
	kind->port->inner = NULL;
	free(kind);
}

struct store *office_store(struct office *office, struct port *port,
                           struct gale_allocator *allocator, uint64_t seed)
{
	struct kind *kind = room_new(sizeof(*kind));
	struct server_config config = { .allocator = allocator,
		                        .kind = &kind->is,
		                        .quarantine_us = OFFICE_QUARANTINE_US,
		                        .seed = seed };
	struct store *store;

	kind->is.wire = kind_wire;
	kind->is.free = kind_free;
	kind->is.lends_ahead = true;
	kind->office = office;
	kind->port = port;
	store = server_open(&config);
	must(store);
	return store;
}

static void nudge_wire(struct virtual_wire *wire, const struct store_nudge *nudge)
{
	struct net *net = wire->office->net;
	struct letter *letter;

	if (net_loses(net) || port_is_cut(wire->port))
		return;
	letter = letter_new(wire, 0);
	letter->nudges = true;
	letter->nudge = *nudge;
	letter->event.happen = reply_arrives;
	agenda_add(net->agenda, &letter->event, net->agenda->now_us + net_delay(net));
}

void office_nudge(struct office *office, const struct port *port,
                  const struct store_nudge *nudge)
{
	struct net *net = office->net;

	for (struct virtual_wire *wire = office->wires; wire; wire = wire->after) {
		if (wire->port != port || !wire->wire.hears || wire->connection == 0)
			continue;
		nudge_wire(wire, nudge);
		if (chance_below(net->chance, 100) >= net->terms.doubled_percent)
			continue;
		net->doubled++;
		nudge_wire(wire, nudge);
	}
}

static void break_some(struct office *office)
{
	for (struct virtual_wire *wire = office->wires; wire; wire = wire->after)
		if (wire->connection > 0 && chance_one_in(office->net->chance, 2)) {
			wire->cut_forth = wire->cut_back = true;
			break_off(wire);
		}
}

void office_fail_over(struct office *office)
{
	station_fail_over(office->station);
	break_some(office);
}

void office_flush(struct office *office)
{
	station_flush(office->station);
	break_some(office);
}

void office_open(struct office *office, struct net *net, struct station *station)
{
	*office = (struct office){ .net = net, .station = station };
}

void office_close(struct office *office)
{
	must(!office->wires);
	while (office->travelling)
		letter_free(office->travelling);
}
