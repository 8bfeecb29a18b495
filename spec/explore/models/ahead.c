/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ahead.c -- units that count in a window and in the next, while the window turns.
 *
 * Messages are lost, late and in another order, with twice=1 doubled, too; nodes crash, the
 * store may forget.  Clocks are those of window.c: in a tick of the store a node's clock goes on
 * by QUARTERS, or by drift quarters less or more.
 *
 *     store    |---- window 1 ----|---- window 2 ----|---- window 3 ----|
 *     a node    ask, 15 and 1 ahead ..............1 .|
 *                                    ask, had 1: they join
 *
 * A node admits at once all that it has in hand: a call costs all of it.  Units ahead are spent at any
 * time while they live, which is more than a node does that spends the others first.
 *
 * With crowd=1 six others have rows in a window that begins with a sum, so that the rows of all are
 * apart; the store drops one that has nothing out, and with it its number.
 *
 * Shipped   lease_turn, lease_step and lease_give_back, with the ledger; window.c at the store;
 *           mono_until, credit.h, and purse_put and purse_take of shards/purse.c at the node.
 */
#include <string.h>

#include "shards/purse.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 2
#define LIVES 2
#define NAMES (NODES * LIVES)
#define MAIL 24
#define OTHERS (LEASE_ROWS - 2)
#define QUARTERS 4
#define QUARTER_NS (1000 * CREDIT_TICK_NS)
#define TICK_US (QUARTERS * QUARTER_NS / 1000)
#define WINDOWS_MOST 3
#define NUMBERS_MOST 7

enum {
	N,
	LIMIT,
	BATCH,
	AHEAD,
	TICKS,
	WINDOWS,
	NUMBERS,
	FEW,
	DRIFT,
	TWICE,
	CRASHES,
	FORGETS,
	BACKS,
	CROWD,
	TURN,
	END,
	MARGIN,
	TAG,
	ASIDE,
	ONCE,
	DROPPED,
	RESERVE,
	KEPT,
	BOOKS,
};

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 16, 48, 32, "a sixteenth can be lent ahead" },
	{ "batch", 1, 47, 15, "" },
	{ "ahead", 1, 3, 1, "that a node asks for" },
	{ "ticks", 1, 3, 1, "of the store in a window" },
	{ "windows", 2, WINDOWS_MOST, WINDOWS_MOST, "" },
	{ "numbers", 1, 4, 2, "of requests, in a node's life" },
	{ "few", 1, 4, 4, "at most so many in that of any but the first node" },
	{ "drift", 0, 1, 0, "quarters of a tick that clocks gain or lose in one" },
	{ "twice", 0, 1, 0, "1: what is under way may come any number of times" },
	{ "crashes", 0, LIVES - 1, 0, "of each node" },
	{ "forgets", 0, 1, 0, "1: the store forgets, once" },
	{ "backs", 0, 1, 1, "0: nothing is given back" },
	{ "crowd", 0, 1, 0,
	  "1: in a window that begins with a sum all rows are apart" },
	{ "turn", 0, 1, 1,
	  "guard at 0: a window begins with what was lent ahead of it" },
	{ "end", 0, 1, 1, "guard at 0: units ahead end with the next window" },
	{ "margin", 0, 1, 1, "guard at 0: units ahead end earlier by the drift" },
	{ "tag", 0, 1, 1, "guard at 0: what a node had counts in its own window" },
	{ "aside", 0, 1, 1,
	  "guard at 0: units ahead whose part went back are not spent" },
	{ "once", 0, 1, 1, "guard at 0: a node says once what it had" },
	{ "dropped", 0, 1, 1,
	  "guard at 0: nobody says what it had when a row was dropped" },
	{ "reserve", 0, 1, 1,
	  "guard at 0: what may have been lent ahead and forgotten is used" },
	{ "kept", 0, 1, 1, "guard at 0: a key is kept while units ahead of it live" },
	{ "books", 0, 1, 1, "0: only the bound is judged, not the ledger" },
	{ NULL, 0, 0, 0, NULL },
};

struct row {
	uint8_t number;
	uint8_t got;
	uint8_t out;
};

struct node {
	uint8_t life;
	uint8_t sent;   /* numbers so far */
	uint8_t open;   /* the request that is under way, or 0 */
	uint8_t age;    /* quarters since it was sent, by the node */
	uint8_t window; /* of the latest answer */
	uint8_t credit;
	uint8_t rest; /* quarters until it dies, by the node; 0: it is dead */
	uint8_t ahead;
	uint8_t ahead_rest;
	uint8_t
	    ahead_of;  /* the window that they were lent ahead of; 0: there are none */
	uint8_t had;   /* of it, in all */
	uint8_t aside; /* of it: their part of the window before went back */
};

struct state {
	uint8_t window; /* by the store's clock, and the ticks into it */
	uint8_t tick;
	uint8_t admitted; /* in it */
	uint8_t quiet; /* nothing is lent before that window; 0: it has not forgotten */
	/* The words and the ledger, as the last step left them. */
	uint8_t start; /* 0: there are none */
	uint8_t used;
	uint8_t has_ahead; /* the row is there, with these two */
	uint8_t ahead_next;
	uint8_t ahead_out;
	uint8_t crowded;
	uint8_t has_crowd;
	struct row rows[NAMES];
	/* Units lent to each in that window and in the next, less those that are back. */
	uint8_t lent_of;
	uint8_t lent[NAMES];
	uint8_t lent_next[NAMES];
	struct node nodes[NODES];
	uint32_t mail[MAIL]; /* in order, then zeros */
};

enum mail_kind { ASK = 1, GRANT, BACK };

struct mail {
	enum mail_kind kind;
	unsigned name; /* of the node, in this life */
	unsigned number;
	unsigned units;
	unsigned window; /* of an ask: that of had */
	unsigned ahead;  /* of an ask: had */
	unsigned lasts;  /* ticks */
	unsigned spent;
};

static struct rule rule;

static uint64_t window_us(const long *c)
{
	return (uint64_t)c[TICKS] * TICK_US;
}

static const char *open(const long *c)
{
	struct gale_rule config = gale_fixed_window((uint64_t)c[LIMIT], window_us(c));

	if (c[BATCH] > c[LIMIT])
		return "batch is above the limit: nothing would ever be lent";
	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { .window = 1 };

	(void)c;
	step(walk, &state, CHANCE, "the first window begins", 0, 0);
}

/* ---- The network ----------------------------------------------------------------- */

static uint32_t packed(const struct mail *m)
{
	return (uint32_t)m->kind << 28 | m->name << 24 | m->number << 20 |
	       m->units << 12 | m->window << 8 | m->ahead << 5 | m->lasts << 2 |
	       m->spent;
}

static struct mail unpacked(uint32_t m)
{
	return (struct mail){
		.kind = (enum mail_kind)(m >> 28),
		.name = m >> 24 & 15,
		.number = m >> 20 & 15,
		.units = m >> 12 & 255,
		.window = m >> 8 & 15,
		.ahead = m >> 5 & 7,
		.lasts = m >> 2 & 7,
		.spent = m & 1,
	};
}

/* A set: what is under way twice is under way. */
static void put_mail(struct state *state, struct mail m)
{
	uint32_t more = packed(&m);
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

static void drop_mail(struct state *state, uint32_t letter)
{
	size_t to = 0;

	for (size_t i = 0; i < MAIL; i++)
		if (state->mail[i] != letter)
			state->mail[to++] = state->mail[i];
	memset(state->mail + to, 0, (MAIL - to) * sizeof(state->mail[0]));
}

/* Answers that its node takes no more. */
static void drop_answers(struct state *state, unsigned n)
{
	for (size_t i = MAIL; i-- > 0;) {
		struct mail m = unpacked(state->mail[i]);

		if (m.kind == GRANT && m.name / LIVES == n &&
		    m.number != state->nodes[n].open)
			drop_mail(state, state->mail[i]);
	}
}

/* ---- The store ------------------------------------------------------------------- */

static uint64_t start_of(const long *c, unsigned window)
{
	return (1000 + window) * window_us(c);
}

static unsigned window_of(const long *c, uint64_t start_us)
{
	return start_us == 0 ? 0 : (unsigned)(start_us / window_us(c)) - 1000;
}

static uint64_t now_of(const long *c, const struct state *state)
{
	return start_of(c, state->window) + state->tick * TICK_US;
}

/* The key as the store finds it for a node. */
struct key {
	struct window_state words;
	struct ledger ledger;
};

static struct lease_row row_at(const struct state *state, unsigned name,
                               struct gale_slot tag)
{
	const struct row *row = &state->rows[name];

	return (struct lease_row){ .node = name + 1,
		                   .number = row->number,
		                   .granted = row->got,
		                   .out = row->out,
		                   .tag = tag };
}

static void fill(struct ledger *ledger, struct gale_slot tag)
{
	size_t rows = ledger_rows(ledger);

	for (unsigned i = 0; i < OTHERS; i++)
		ledger->rows[rows + i] = (struct lease_row){ .node = NAMES + 1 + i,
			                                     .number = 1,
			                                     .tag = tag };
}

static void put_crowd(const struct state *state, struct ledger *ledger, unsigned name,
                      struct gale_slot tag)
{
	struct lease_row *crowd = &ledger->rows[LEASE_ROWS - 1];

	*crowd =
	    (struct lease_row){ .node = LEASE_CROWD, .number = tag.us + 1, .tag = tag };
	for (unsigned i = 0; i < NAMES; i++) {
		crowd->out += state->rows[i].out > 0;
		crowd->granted += state->rows[i].out > 0 && state->rows[i].got > 0;
	}
	if (state->rows[name].number > 0)
		ledger->apart = row_at(state, name, slot_at(crowd->number));
}

static struct key key_of(const long *c, const struct state *state, unsigned name)
{
	struct key key = { .words = { 0 } };
	struct gale_slot tag = slot_at(start_of(c, state->start));
	size_t count = 0;

	if (state->start == 0)
		return key;
	key.words = (struct window_state){ tag.us, state->used };
	if (state->has_ahead)
		key.ledger.rows[count++] =
		    (struct lease_row){ .node = LEASE_AHEAD,
			                .number = state->ahead_next + 1U,
			                .out = state->ahead_out,
			                .tag = tag };
	if (state->crowded)
		fill(&key.ledger, tag);
	if (state->has_crowd)
		put_crowd(state, &key.ledger, name, tag);
	for (unsigned i = 0; i < NAMES && !state->crowded; i++)
		if (state->rows[i].number > 0)
			key.ledger.rows[count++] = row_at(state, i, tag);
	return key;
}

/* Whoever is in the crowd and has nothing out is forgotten. */
static void keep_row(struct state *state, const struct lease_row *row, bool is_apart)
{
	bool is_kept = !is_apart || row->out > 0;

	if (row->node >= 1 && row->node <= NAMES)
		state->rows[row->node - 1] =
		    is_kept ? (struct row){ small(row->number), small(row->granted),
			                    small(row->out) }
			    : (struct row){ 0 };
}

static void keep(const long *c, struct state *state, const struct key *key)
{
	const struct ledger *ledger = &key->ledger;

	state->start = small(window_of(c, key->words.start_us));
	state->used = small(key->words.used);
	state->has_ahead = state->ahead_next = state->ahead_out = 0;
	state->has_crowd = 0;
	if (!state->crowded)
		memset(state->rows, 0, sizeof(state->rows));
	for (size_t i = 0; i < ledger_rows(ledger); i++) {
		const struct lease_row *row = &ledger->rows[i];

		if (row->node == LEASE_AHEAD) {
			state->has_ahead = 1;
			state->ahead_next = small(row->number - 1);
			state->ahead_out = small(row->out);
		}
		state->has_crowd |= row->node == LEASE_CROWD;
		keep_row(state, row, /* is_apart= */ false);
	}
	if (ledger->apart.node != 0)
		keep_row(state, &ledger->apart, /* is_apart= */ true);
}

static uint64_t reserve_from(const long *c, const struct state *state)
{
	return c[RESERVE] && state->quiet > 0 ? start_of(c, state->quiet) : 0;
}

static void turn_lent(struct state *state)
{
	if (state->lent_of == state->window)
		return;
	if (state->lent_of + 1 == state->window)
		memcpy(state->lent, state->lent_next, sizeof(state->lent));
	else
		memset(state->lent, 0, sizeof(state->lent));
	memset(state->lent_next, 0, sizeof(state->lent_next));
	state->lent_of = state->window;
}

/* Every step finds this first.  The rows of the window before are gone with it. */
static void turn_key(const long *c, struct state *state)
{
	struct key key = key_of(c, state, 0);
	bool begins = state->start != state->window;

	turn_lent(state);
	if (begins) {
		memset(state->rows, 0, sizeof(state->rows));
		state->crowded = 0;
		key.ledger.apart = (struct lease_row){ 0 };
	}
	if (c[TURN] && lease_turn(&rule, (uint64_t *)&key.words, &key.ledger,
	                          now_of(c, state), reserve_from(c, state))) {
		state->crowded = c[CROWD] != 0;
		if (state->crowded)
			fill(&key.ledger, slot_at(key.words.start_us));
	} else if (begins) { /* as the rule's step would */
		key = (struct key){ .words = { start_of(c, state->window), 0 } };
	}
	keep(c, state, &key);
}

/* The guard once at 0: what a node with a row says counts, too. */
static void claim_again(const long *c, const struct state *before, struct key *key,
                        struct mail m)
{
	unsigned window = c[TAG] ? m.window : before->window;

	if (c[ONCE] || before->rows[m.name].number == 0 || before->crowded ||
	    before->rows[m.name].number >= m.number || window != before->window)
		return;
	for (size_t i = 0; i < ledger_rows(&key->ledger); i++) {
		struct lease_row *row = &key->ledger.rows[i];

		if (row->node != LEASE_AHEAD)
			continue;
		m.ahead = (unsigned)smaller_of(m.ahead, (long)row->out);
		row->out -= m.ahead;
	}
	for (size_t i = 0; i < ledger_rows(&key->ledger); i++)
		if (key->ledger.rows[i].node == m.name + 1)
			key->ledger.rows[i].out += m.ahead;
}

static void note_lent(struct state *after, unsigned name, long units, unsigned ahead)
{
	after->lent[name] = small((uint64_t)larger_of(after->lent[name] + units, 0));
	after->lent_next[name] += small(ahead);
}

static void serve(const long *c, const struct state *state, struct mail m,
                  struct walk *walk)
{
	struct state turned = *state, after;
	struct key key;
	struct lease_ask ask = { .node = m.name + 1,
		                 .number = m.number,
		                 .want = (uint64_t)c[BATCH],
		                 .least = 1,
		                 .spent = m.spent,
		                 .ahead = (uint64_t)c[AHEAD],
		                 .had = m.ahead };
	struct lease_grant grant;

	if (state->window < state->quiet)
		return;
	turn_key(c, &turned);
	after = turned;
	key = key_of(c, &turned, m.name);
	ask.had_of = start_of(c, c[TAG] ? m.window : state->window);
	grant = lease_step(&rule, (uint64_t *)&key.words, &key.ledger, now_of(c, state),
	                   &ask);
	claim_again(c, &turned, &key, m);
	keep(c, &after, &key);
	note_lent(&after, m.name, (long)after.used - turned.used,
	          (unsigned)grant.ahead);
	if (!c[TWICE])
		drop_mail(&after, packed(&m));
	if (grant.units > 0)
		put_mail(&after, (struct mail){
				     .kind = GRANT,
				     .name = m.name,
				     .number = m.number,
				     .units = (unsigned)grant.units,
				     .window = state->window,
				     .ahead = (unsigned)grant.ahead,
				     .lasts = (unsigned)(grant.lasts_us / TICK_US) });
	drop_answers(&after, m.name / LIVES);
	step(walk, &after, FAIR, "request %d of name %d is served", (int)m.number,
	     (int)m.name);
}

static void refund(const long *c, const struct state *state, struct mail m,
                   struct walk *walk)
{
	struct state turned = *state, after;
	struct key key;

	turn_key(c, &turned);
	after = turned;
	key = key_of(c, &turned, m.name);
	(void)lease_give_back(&rule, (uint64_t *)&key.words, &key.ledger,
	                      now_of(c, state), m.name + 1, m.number,
	                      slot_at(start_of(c, m.window)), m.units);
	keep(c, &after, &key);
	if (!c[DROPPED])
		after.ahead_out = turned.ahead_out;
	note_lent(&after, m.name, (long)after.used - turned.used, 0);
	if (!c[TWICE])
		drop_mail(&after, packed(&m));
	step(walk, &after, CHANCE, "what %d of name %d returns is there", (int)m.number,
	     (int)m.name);
}

static void drop_key(struct state *state)
{
	state->start = state->used = state->has_ahead = state->ahead_next = 0;
	state->ahead_out = state->crowded = state->has_crowd = 0;
	memset(state->rows, 0, sizeof(state->rows));
}

/* A key whose time is over may go at any later time. */
static void expire(const long *c, const struct state *state, struct walk *walk)
{
	struct key key = key_of(c, state, 0);
	const uint64_t *words = (const uint64_t *)&key.words;
	uint64_t expires = c[KEPT] ? lease_expires(&rule, words, &key.ledger)
	                           : rule_expires(&rule, words);
	struct state after = *state;

	if (state->start == 0 || now_of(c, state) < expires)
		return;
	drop_key(&after);
	step(walk, &after, CHANCE, "the key has expired", 0, 0);
}

/* All of it; how long it is quiet then is for forget.c. */
static void forget(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	if (c[FORGETS] == 0 || state->quiet > 0)
		return;
	after.quiet = small(state->window + 1U);
	drop_key(&after);
	step(walk, &after, CHANCE, "the store forgets", 0, 0);
}

/* ---- A node ---------------------------------------------------------------------- */

static unsigned name_of(const struct state *state, unsigned n)
{
	return n * LIVES + state->nodes[n].life;
}

static bool has_numbers(const long *c, const struct state *state, unsigned n)
{
	long most = n == 0 ? c[NUMBERS] : smaller_of(c[NUMBERS], c[FEW]);

	return state->nodes[n].sent < most;
}

static void ask(const long *c, const struct state *state, unsigned n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	if (node->open > 0 || !has_numbers(c, state, n))
		return;
	node->open = ++node->sent;
	node->age = 0;
	put_mail(&after, (struct mail){ .kind = ASK,
	                                .name = name_of(state, n),
	                                .number = node->sent,
	                                .window = node->had > 0 ? node->ahead_of : 0,
	                                .ahead = node->had,
	                                .spent = node->credit == 0 });
	step(walk, &after, CHANCE, "node %d asks, with number %d", (int)n, node->sent);
}

static mono ends_of(const long *c, const struct node *node, uint64_t lasts_us,
                    long margin)
{
	return mono_until((mono){ HERE_NS - node->age * QUARTER_NS },
	                  (lasting){ lasts_us },
	                  (uint32_t)(margin * c[DRIFT] * 1000000 / QUARTERS));
}

/* Two words of a node: what is dead is not kept. */
static void put_units(uint8_t *units, uint8_t *rest, mono ends, unsigned more)
{
	mono now = { HERE_NS }, dies = { HERE_NS + *rest * QUARTER_NS };
	struct purse purse = { .credit = credit_until(dies, *units) };
	uint64_t until;

	purse_put(&purse, ends, more, now);
	until = credit_dies(purse.credit).ns;
	*rest = until > HERE_NS ? small((until - HERE_NS) / QUARTER_NS) : 0;
	*units = *rest > 0 ? small(credit_units(purse.credit)) : 0;
	*rest = *units > 0 ? *rest : 0;
}

static void forget_ahead(struct node *node)
{
	node->ahead = node->ahead_rest = node->ahead_of = node->had = node->aside = 0;
}

/* If the answer is of the window that they were lent ahead of, they are units of it. */
static unsigned joined(struct node *node, unsigned window)
{
	unsigned units = 0;

	if (node->ahead_of == window)
		units = node->ahead + node->aside;
	if (node->ahead_of <= window)
		forget_ahead(node);
	return units;
}

static void accept(const long *c, const struct state *state, struct mail m,
                   struct walk *walk)
{
	struct state after = *state;
	unsigned n = m.name / LIVES;
	struct node *node = &after.nodes[n];
	uint64_t lasts_us = m.lasts * TICK_US;
	uint64_t longer_us = (c[END] ? 1 : 2) * window_us(c);

	if (name_of(state, n) != m.name || node->open != m.number)
		return;
	m.units += joined(node, m.window);
	node->window = small(m.window);
	put_units(&node->credit, &node->rest, ends_of(c, node, lasts_us, 1), m.units);
	if (m.ahead > 0) {
		put_units(&node->ahead, &node->ahead_rest,
		          ends_of(c, node, lasts_us + longer_us, c[MARGIN]), m.ahead);
		node->ahead_of = small(m.window + 1);
		node->had += small(m.ahead);
	}
	node->open = node->age = 0;
	drop_answers(&after, n);
	step(walk, &after, FAIR, "node %d has the answer to %d", (int)n, (int)m.number);
}

static void give_up(const struct state *state, unsigned n, struct walk *walk)
{
	struct state after = *state;

	if (state->nodes[n].open == 0)
		return;
	after.nodes[n].open = after.nodes[n].age = 0;
	drop_answers(&after, n);
	step(walk, &after, FAIR, "node %d gives up", (int)n, 0);
}

static void spend(const struct state *state, unsigned n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	after.admitted += node->credit;
	node->credit = node->rest = 0;
	if (state->nodes[n].credit > 0)
		step(walk, &after, CHANCE, "node %d admits what it has", (int)n, 0);
}

static void spend_ahead(const struct state *state, unsigned n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	after.admitted += node->ahead;
	node->ahead = node->ahead_rest = 0;
	if (state->nodes[n].ahead > 0)
		step(walk, &after, CHANCE, "node %d admits what it has ahead", (int)n,
		     0);
}

/* Its units of its window, and the part of the units ahead that is of it, too. */
static void give_back(const long *c, const struct state *state, unsigned n,
                      struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	unsigned units = node->credit + node->ahead;

	if (!c[BACKS] || units == 0 || node->open > 0 || !has_numbers(c, state, n))
		return;
	node->sent++;
	put_mail(&after, (struct mail){ .kind = BACK,
	                                .name = name_of(state, n),
	                                .number = node->sent,
	                                .units = units,
	                                .window = node->window });
	node->credit = node->rest = 0;
	if (c[ASIDE]) {
		node->aside += node->ahead;
		node->ahead = node->ahead_rest = 0;
	}
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
	drop_answers(&after, n);
	step(walk, &after, CHANCE, "node %d begins anew", (int)n, 0);
}

static void next_of_node(const long *c, const struct state *state, unsigned n,
                         struct walk *walk)
{
	ask(c, state, n, walk);
	give_up(state, n, walk);
	spend(state, n, walk);
	spend_ahead(state, n, walk);
	give_back(c, state, n, walk);
	crash(c, state, n, walk);
}

/* ---- Time ------------------------------------------------------------------------ */

static void go_by(uint8_t *units, uint8_t *rest, int quarters)
{
	*rest = *rest > quarters ? (uint8_t)(*rest - quarters) : 0;
	if (*rest == 0)
		*units = 0;
}

/* An answer that is older than any unit can last is dead, however much older. */
static void go_on(const long *c, struct node *node, int quarters)
{
	if (node->open > 0)
		node->age =
		    (uint8_t)smaller_of(node->age + quarters, 3 * c[TICKS] * QUARTERS);
	go_by(&node->credit, &node->rest, quarters);
	go_by(&node->ahead, &node->ahead_rest, quarters);
}

/* Each node's clock goes by itself: the ways are counted through. */
static void tick(const long *c, const struct state *state, struct walk *walk)
{
	int ways = 1, pace = c[DRIFT] > 0 ? 3 : 1;

	if (state->window == c[WINDOWS] && state->tick + 1 == c[TICKS])
		return;
	for (int n = 0; n < c[N]; n++)
		ways *= pace;
	for (int way = 0; way < ways; way++) {
		struct state after = *state;
		int rest = way;

		if (++after.tick == c[TICKS]) {
			after.tick = after.admitted = 0;
			after.window++;
		}
		for (int n = 0; n < c[N]; n++, rest /= pace)
			go_on(c, &after.nodes[n],
			      QUARTERS + (rest % pace - pace / 2) * (int)c[DRIFT]);
		step(walk, &after, CHANCE, "a tick; clocks go by %d", way, 0);
	}
}

static void deliver(const long *c, const struct state *state, struct mail m,
                    struct walk *walk)
{
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

	for (unsigned n = 0; n < c[N]; n++)
		next_of_node(c, state, n, walk);
	for (size_t i = 0; i < MAIL && state->mail[i] != 0; i++)
		deliver(c, state, unpacked(state->mail[i]), walk);
	tick(c, state, walk);
	expire(c, state, walk);
	forget(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

/* Of the window that the store is in, and of the next: what nodes have of it. */
static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	unsigned next = 0;

	if (!c[BOOKS])
		return NULL;
	for (unsigned name = 0; name < NAMES; name++) {
		const struct key key = key_of(c, state, name);

		if (!ledger_valid(&rule, (const uint64_t *)&key.words, &key.ledger))
			return "ledger";
		if (state->rows[name].out > state->lent[name])
			return "unlent";
	}
	for (unsigned n = 0; n < c[N]; n++)
		if (state->nodes[n].ahead_of > state->window)
			next += state->nodes[n].ahead + state->nodes[n].aside;
	return next > state->ahead_next && state->quiet == 0 ? "ahead" : NULL;
}

/* The units that a step would find used now. */
static long used_now(const long *c, const struct state *state)
{
	struct state turned = *state;

	turn_key(c, &turned);
	return state->window < state->quiet ? c[LIMIT] : turned.used;
}

/* Units that were admitted, can be without another answer, and can be lent.  A store that has forgotten
 * does not know what it lent of its window. */
static long found(const long *c, const void *at)
{
	const struct state *state = at;
	long sum = state->admitted + c[LIMIT] - used_now(c, state);

	for (unsigned n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];

		sum += node->credit + node->ahead;
		if (node->ahead_of == state->window)
			sum += node->aside;
	}
	return sum;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out,
	        "window %d, words of %d, used %d, ahead %d, not said %d, admitted %d",
	        state->window, state->start, state->used, state->ahead_next,
	        state->ahead_out, state->admitted);
	for (unsigned n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];
		const struct row *row = &state->rows[name_of(state, n)];

		fprintf(out,
		        "; node %d: asks %d, has %d for %d, ahead %d for %d (%d of %d)",
		        (int)n, node->open, node->credit, node->rest, node->ahead,
		        node->ahead_rest, node->had, node->ahead_of);
		fprintf(out, ", aside %d, row %d with %d out", node->aside, row->number,
		        row->out);
	}
}

const struct model ahead_model = {
	.name = "ahead",
	.about = "units that count in two windows, while the first turns",
	.constants = constants,
	.size = sizeof(struct state),
	.open = open,
	.begin = begin,
	.next = next,
	.broken = broken,
	.bound = bound,
	.found = found,
	.print = print,
};
