/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * once.c -- messages that get lost, come late, twice, or in another order; and nodes that
 * crash and begin anew.
 *
 * What was sent stays under way for ever: it may be delivered at any time, any number of
 * times, or never.  Credit dies when the window turns, at once for all: when it really
 * does is for window.c.
 *
 * With crowd=1 seven others have rows in the value, so that the rows of all are apart, beside a
 * crowd; the store drops one that has nothing out, and with it its number.
 *
 * Shipped   lease_step and lease_give_back, with the ledger; window.c.
 * Spec      spec/OnceLease.tla: the same states.
 */
#include <string.h>

#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 2
#define LIVES 2
#define NAMES (NODES * LIVES)
#define MAIL 40
#define WINDOW_US 1000000
#define NUMBERS_MOST 7

enum {
	N,
	LIMIT,
	BATCH,
	WINDOWS,
	NUMBERS,
	CRASHES,
	STORE,
	CLIENT,
	CREDIT,
	REPLY_TAG,
	RETURN_TAG,
	RETURN_ONCE,
	FRESH,
	CROWD,
};

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 15, 4, "" },
	{ "batch", 1, 15, 2, "" },
	{ "windows", 1, 3, 2, "" },
	{ "numbers", 1, 4, 2, "of requests, in a node's life" },
	{ "crashes", 0, LIVES - 1, 0, "of each node" },
	{ "store", 0, 1, 1, "guard at 0: the store knows a number again" },
	{ "client", 0, 1, 1, "guard at 0: a node takes the answer to a number once" },
	{ "credit", 0, 1, 1,
	  "guard at 0: a grant is credited once for all who wait (W-10)" },
	{ "replytag", 0, 1, 1,
	  "guard at 0: a grant of a window that is over is dead (W-4)" },
	{ "returntag", 0, 1, 1,
	  "guard at 0: units go back only where they came from (W-27)" },
	{ "returnonce", 0, 1, 1, "guard at 0: the store knows a return again" },
	{ "fresh", 0, 1, 1, "guard at 0: who begins anew has another name" },
	{ "crowd", 0, 1, 0, "1: the rows of all are apart" },
	{ NULL, 0, 0, 0, NULL },
};

struct row {
	uint8_t number;
	uint8_t got;
	uint8_t out;
};

struct node {
	uint8_t life;
	uint8_t sent; /* numbers so far */
	uint8_t open; /* the request that is under way, or 0 */
	uint8_t credit;
};

struct state {
	uint8_t window;
	uint8_t used;
	uint8_t admitted;
	uint8_t rows_window; /* that the rows are of; 0: there are none */
	struct row rows[NAMES];
	struct node nodes[NODES];
	uint16_t mail[MAIL]; /* in order, then zeros */
};

enum mail_kind { ASK = 1, GRANT, BACK };

struct mail {
	enum mail_kind kind;
	unsigned name; /* of the node, in this life */
	unsigned number;
	unsigned units;
	unsigned window;
	unsigned spent;
};

static struct rule rule;

static const char *open(const long *c)
{
	struct gale_rule config = gale_fixed_window((uint64_t)c[LIMIT], WINDOW_US);

	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { .window = 1 };

	(void)c;
	step(walk, &state, CHANCE, "the first window begins", 0, 0);
}

/* ---- The network ----------------------------------------------------------------- */

static uint16_t packed(const struct mail *m)
{
	return (uint16_t)((unsigned)m->kind << 13 | m->name << 10 | m->number << 7 |
	                  m->units << 3 | m->window << 1 | m->spent);
}

static struct mail unpacked(uint16_t m)
{
	return (struct mail){
		.kind = (enum mail_kind)(m >> 13),
		.name = m >> 10 & 7,
		.number = m >> 7 & 7,
		.units = m >> 3 & 15,
		.window = m >> 1 & 3,
		.spent = m & 1,
	};
}

/* A set: what is under way twice is under way. */
static void put_mail(struct state *state, struct mail m)
{
	uint16_t more = packed(&m);
	size_t at = 0;

	while (state->mail[at] != 0 && state->mail[at] < more)
		at++;
	if (state->mail[at] == more)
		return;
	gale_assert(state->mail[MAIL - 1] == 0);
	for (size_t i = MAIL - 1; i > at; i--)
		state->mail[i] = state->mail[i - 1];
	state->mail[at] = more;
}

/* ---- The store ------------------------------------------------------------------- */

static uint64_t start_of(unsigned window)
{
	return (1000 + window) * (uint64_t)WINDOW_US;
}

static uint64_t now_of(const struct state *state)
{
	return start_of(state->window) + WINDOW_US / 2;
}

/* Rows of other nodes. */
static void fill(const struct state *state, struct ledger *ledger)
{
	for (unsigned i = 0; i < LEASE_ROWS - 1; i++)
		ledger->rows[i] = (struct lease_row){
			.node = NAMES + 1 + i,
			.number = 1,
			.tag = slot_at(start_of(state->window)),
		};
}

static struct ledger crowd_of(const struct state *state, unsigned name)
{
	struct ledger ledger = { 0 };
	struct lease_row *crowd = &ledger.rows[LEASE_ROWS - 1];
	const struct row *own = &state->rows[name];

	fill(state, &ledger);
	if (state->rows_window != state->window)
		return ledger;
	*crowd = (struct lease_row){ .node = LEASE_CROWD,
		                     .number = now_of(state),
		                     .tag = ledger.rows[0].tag };
	for (unsigned i = 0; i < NAMES; i++) {
		crowd->out += state->rows[i].out > 0;
		crowd->granted += state->rows[i].out > 0 && state->rows[i].got > 0;
	}
	if (own->number > 0)
		ledger.apart = (struct lease_row){ .node = name + 1,
			                           .number = own->number,
			                           .granted = own->got,
			                           .out = own->out,
			                           .tag = slot_at(crowd->number) };
	return ledger;
}

/* The crowd still counts its rows. LEASE-6 */
static void keep_crowd(struct state *state, const struct ledger *ledger)
{
	const struct lease_row *crowd = &ledger->rows[LEASE_ROWS - 1];
	const struct lease_row *apart = &ledger->apart;
	struct ledger again;

	if (crowd->node != LEASE_CROWD)
		return;
	if (state->rows_window != state->window)
		memset(state->rows, 0, sizeof(state->rows)); /* LEASE-5 */
	state->rows_window = state->window;
	if (apart->node != 0)
		state->rows[apart->node - 1] =
		    apart->out == 0
			? (struct row){ 0 }
			: (struct row){ small(apart->number), small(apart->granted),
			                small(apart->out) };
	again = crowd_of(state, 0);
	gale_assert(memcmp(&again.rows, &ledger->rows, sizeof(again.rows)) == 0);
}

static struct ledger ledger_of(const struct state *state)
{
	struct ledger ledger = { 0 };
	size_t count = 0;

	for (unsigned name = 0; name < NAMES; name++) {
		const struct row *row = &state->rows[name];

		if (row->number > 0)
			ledger.rows[count++] = (struct lease_row){
				.node = name + 1,
				.number = row->number,
				.granted = row->got,
				.out = row->out,
				.tag = slot_at(start_of(state->rows_window)),
			};
	}
	return ledger;
}

static void keep_ledger(struct state *state, const struct ledger *ledger)
{
	for (unsigned name = 0; name < NAMES; name++)
		state->rows[name] = (struct row){ 0 };
	for (size_t i = 0; i < ledger_rows(ledger); i++) {
		const struct lease_row *row = &ledger->rows[i];

		state->rows[row->node - 1] =
		    (struct row){ small(row->number), small(row->granted),
			          small(row->out) };
		state->rows_window =
		    (uint8_t)(row->tag.us / WINDOW_US - 1000); /* all of one window */
	}
}

static void keep(const long *c, struct state *state, const struct window_state *words,
                 const struct ledger *ledger)
{
	state->used =
	    words->start_us == start_of(state->window) ? small(words->used) : 0;
	if (c[CROWD])
		keep_crowd(state, ledger);
	else
		keep_ledger(state, ledger);
}

static void serve(const long *c, const struct state *state, struct mail m,
                  struct walk *walk)
{
	struct state after = *state;
	uint64_t now = now_of(state);
	struct window_state words =
	    words_of_window(&rule, start_of(state->window), state->used);
	struct ledger ledger = c[CROWD] ? crowd_of(state, m.name) : ledger_of(state);
	const struct row *row = &state->rows[m.name];
	bool known = state->rows_window == state->window && row->number > m.number;
	uint8_t latest = known ? row->number : (uint8_t)m.number;
	struct lease_ask ask = { .node = m.name + 1,
		                 .number = m.number,
		                 .want = (uint64_t)c[BATCH],
		                 .least = 1,
		                 .spent = m.spent };
	struct lease_grant grant;

	if (!c[STORE])
		ask.number = NUMBERS_MOST; /* it is always a new one */
	grant = lease_step(&rule, (uint64_t *)&words, &ledger, now, &ask);
	keep(c, &after, &words, &ledger);
	if (after.rows[m.name].number == NUMBERS_MOST)
		after.rows[m.name].number = latest;
	if (grant.units > 0)
		put_mail(&after,
		         (struct mail){ GRANT, m.name, m.number, (unsigned)grant.units,
		                        state->window, 0 });
	step(walk, &after, FAIR, "request %d of name %d is served", (int)m.number,
	     (int)m.name);
}

static void refund(const long *c, const struct state *state, struct mail m,
                   struct walk *walk)
{
	struct state after = *state;
	uint64_t now = now_of(state);
	struct window_state words =
	    words_of_window(&rule, start_of(state->window), state->used);
	struct ledger ledger = c[CROWD] ? crowd_of(state, m.name) : ledger_of(state);
	unsigned window = c[RETURN_TAG] ? m.window : state->window;

	if (!c[RETURN_ONCE] && state->rows[m.name].number >= m.number)
		ledger.rows[0].number = m.number - 1;
	(void)lease_give_back(&rule, (uint64_t *)&words, &ledger, now, m.name + 1,
	                      m.number, slot_at(start_of(window)), m.units);
	keep(c, &after, &words, &ledger);
	step(walk, &after, CHANCE, "what %d of name %d returns is there", (int)m.number,
	     (int)m.name);
}

/* ---- Nodes ----------------------------------------------------------------------- */

static unsigned name_of(const long *c, const struct state *state, unsigned n)
{
	return n * LIVES + (c[FRESH] ? state->nodes[n].life : 0);
}

static void ask(const long *c, const struct state *state, unsigned n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	if (node->open > 0 || node->sent == c[NUMBERS])
		return;
	node->open = ++node->sent;
	put_mail(&after, (struct mail){ ASK, name_of(c, state, n), node->sent, 0, 0,
	                                node->credit == 0 });
	step(walk, &after, CHANCE, "node %d asks, with number %d", (int)n, node->sent);
}

/* A grant for a node: of this life, if names are fresh. */
static void accept(const long *c, const struct state *state, struct mail m,
                   struct walk *walk)
{
	struct state after = *state;
	unsigned n = m.name / LIVES;
	struct node *node = &after.nodes[n];
	unsigned times = !c[CREDIT] && node->open > 0 ? 2 : 1;

	if (name_of(c, state, n) != m.name ||
	    (c[CLIENT] && (node->open == 0 || node->open != m.number)))
		return;
	node->open = 0;
	if (!c[REPLY_TAG] || m.window == state->window)
		node->credit += small(times * m.units);
	step(walk, &after, FAIR, "node %d has the answer to %d", (int)n, (int)m.number);
}

static void give_up(const struct state *state, unsigned n, struct walk *walk)
{
	struct state after = *state;

	after.nodes[n].open = 0;
	if (state->nodes[n].open > 0)
		step(walk, &after, FAIR, "node %d gives up", (int)n, 0);
}

static void spend(const struct state *state, unsigned n, struct walk *walk)
{
	struct state after = *state;

	if (state->nodes[n].credit == 0)
		return;
	after.nodes[n].credit--;
	after.admitted++;
	step(walk, &after, CHANCE, "node %d admits", (int)n, 0);
}

static void give_back(const long *c, const struct state *state, unsigned n,
                      struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	if (node->credit == 0 || node->open > 0 || node->sent == c[NUMBERS])
		return;
	node->sent++;
	put_mail(&after, (struct mail){ BACK, name_of(c, state, n), node->sent,
	                                node->credit, state->window, 0 });
	node->credit = 0;
	step(walk, &after, CHANCE, "node %d gives back, with number %d", (int)n,
	     node->sent);
}

static void crash(const long *c, const struct state *state, unsigned n,
                  struct walk *walk)
{
	struct state after = *state;

	if (state->nodes[n].life == c[CRASHES])
		return;
	after.nodes[n] = (struct node){ .life = (uint8_t)(state->nodes[n].life + 1) };
	step(walk, &after, CHANCE, "node %d begins anew", (int)n, 0);
}

static void turn(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	if (state->window == c[WINDOWS])
		return;
	after.window++;
	after.used = after.admitted = 0;
	for (int n = 0; n < c[N]; n++)
		after.nodes[n].credit = 0;
	step(walk, &after, CHANCE, "the window turns", 0, 0);
}

static void deliver(const long *c, const struct state *state, uint16_t letter,
                    struct walk *walk)
{
	struct mail m = unpacked(letter);

	if (m.kind == ASK)
		serve(c, state, m, walk);
	else if (m.kind == GRANT)
		accept(c, state, m, walk);
	else
		refund(c, state, m, walk);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (unsigned n = 0; n < c[N]; n++) {
		ask(c, state, n, walk);
		give_up(state, n, walk);
		spend(state, n, walk);
		give_back(c, state, n, walk);
		crash(c, state, n, walk);
	}
	for (size_t i = 0; i < MAIL && state->mail[i] != 0; i++)
		deliver(c, state, state->mail[i], walk);
	turn(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	unsigned out = 0;

	(void)c;
	for (unsigned name = 0; name < NAMES; name++)
		out += state->rows[name].out;
	return state->rows_window == state->window && out > state->used ? "ledger"
	                                                                : NULL;
}

/* Nothing is minted: what was admitted, is in hand, and can be lent. */
static long found(const long *c, const void *at)
{
	const struct state *state = at;
	long sum = state->admitted + c[LIMIT] - state->used;

	for (int n = 0; n < c[N]; n++)
		sum += state->nodes[n].credit;
	return sum;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

static bool is_answered(const long *c, const void *at)
{
	const struct state *state = at;
	bool answered = true;

	for (int n = 0; n < c[N]; n++)
		answered &= state->nodes[n].open == 0;
	return answered;
}

static const struct goal goals[] = {
	{ "answered", REACHABLE, is_answered },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "window %d, used %d, admitted %d", state->window, state->used,
	        state->admitted);
	for (int n = 0; n < c[N]; n++)
		fprintf(out, "; node %d: asks %d, has %d", n, state->nodes[n].open,
		        state->nodes[n].credit);
}

const struct model once_model = {
	.name = "once",
	.about =
	    "messages that are lost, late, doubled and reordered; nodes that crash",
	.constants = constants,
	.goals = goals,
	.size = sizeof(struct state),
	.open = open,
	.begin = begin,
	.next = next,
	.broken = broken,
	.bound = bound,
	.found = found,
	.print = print,
};
