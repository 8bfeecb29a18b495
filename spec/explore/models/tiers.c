/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tiers.c -- units of a store are lent to nodes, and by them to their seats.
 *
 *     store --lease--> a node's word --slice--> a seat's cell --> admitted
 *       ^----return-------'   '---------gather------'              ^
 *                             '------------------------------------'
 *
 * Each change of a word is one step, as it is one compare-and-swap; that no two of them
 * come into each other's way is for tests/interleave.  packed=0 shows what would happen.
 *
 * Shipped   lease_step and lease_give_back; purse_put, purse_take, purse_gather and
 *           purse_empty of shards/purse.c, local_try_unfought, on real cells.
 * Spec      spec/SubLease.tla: the same states.
 */
#include <string.h>

#include "shards/lender.h"
#include "shards/local.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 2
#define SEATS 3
#define WINDOW_US 1000000
#define LIFE_NS 1000000000

enum { N, SEAT_COUNT, LIMIT, BATCH, WINDOWS, PACKED };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 1, "" },
	{ "seats", 1, SEATS, 2, "of a node" },
	{ "limit", 1, 60, 6, "" },
	{ "batch", 1, 60, 3, "" },
	{ "windows", 1, 3, 2, "" },
	{ "packed", 0, 1, 1, "guard at 0: a word is changed in one step" },
	{ NULL, 0, 0, 0, NULL },
};

struct state {
	uint8_t window;
	uint8_t left;
	uint8_t admitted;
	uint8_t lost; /* with nodes that crashed */
	uint8_t word[NODES];
	uint8_t cell[NODES][SEATS];
	uint8_t seen[NODES][SEATS]; /* packed=0: what was loaded, and not stored yet */
};

/* A purse and its cells, as the runtime would have them. */
struct node {
	struct purse purse;
	struct cells *cells;
	alignas(struct cells)
	    uint8_t room[sizeof(struct cells) + SEATS * sizeof(struct cell)];
};

static struct rule rule;
static struct lender lender = { .lending = LENDING_UNITS };
static const mono now = { HERE_NS };
/* Nothing else runs while a node is asked: no thread has to pass a fence. */
static struct grace grace = { .fences = true };

static const char *open(const long *c)
{
	struct gale_rule config = gale_fixed_window((uint64_t)c[LIMIT], WINDOW_US);

	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { .window = 1, .left = small((uint64_t)c[LIMIT]) };

	step(walk, &state, CHANCE, "the first window begins", 0, 0);
}

/* ---- A node's words -------------------------------------------------------------- */

static void node_of(const long *c, const struct state *state, int n,
                    struct node *ret_node)
{
	mono dies = mono_after(now, LIFE_NS);

	memset(ret_node, 0, sizeof(*ret_node));
	ret_node->cells = (struct cells *)ret_node->room;
	ret_node->cells->count = (uint32_t)c[SEAT_COUNT];
	ret_node->purse.lender = &lender;
	purse_give(&ret_node->purse, ret_node->cells);
	purse_split(&ret_node->purse);
	ret_node->purse.credit = credit_until(dies, state->word[n]);
	for (int s = 0; s < c[SEAT_COUNT]; s++)
		ret_node->cells->at[s].credit = credit_until(dies, state->cell[n][s]);
}

/* What the actor has taken out is not the seat's any more, whatever it finds there. */
static uint64_t in_cell(const struct cell *cell)
{
	return cell->state == CELL_OPEN ? credit_units(cell->credit) : 0;
}

static void keep(const long *c, const struct node *node, int n, struct state *state)
{
	state->word[n] = small(credit_units(node->purse.credit));
	for (int s = 0; s < c[SEAT_COUNT]; s++)
		state->cell[n][s] = small(in_cell(&node->cells->at[s]));
}

static unsigned in_cells(const long *c, const struct state *state, int n)
{
	unsigned sum = 0;

	for (int s = 0; s < c[SEAT_COUNT]; s++)
		sum += state->cell[n][s];
	return sum;
}

/* ---- Steps ----------------------------------------------------------------------- */

static uint64_t start_us(void)
{
	return 1000 * (uint64_t)WINDOW_US;
}

static void lease(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct window_state words =
	    words_of_window(&rule, start_us(), (uint64_t)c[LIMIT] - state->left);
	struct ledger ledger = { 0 };
	struct lease_ask ask = {
		.node = 1, .number = 1, .want = (uint64_t)c[BATCH], .least = 1
	};
	uint64_t units =
	    lease_step(&rule, (uint64_t *)&words, &ledger, start_us(), &ask).units;
	struct node node;

	if (units == 0)
		return;
	node_of(c, state, n, &node);
	purse_put(&node.purse, mono_after(now, LIFE_NS), units, now);
	keep(c, &node, n, &after);
	after.left -= small(units);
	step(walk, &after, CHANCE, "node %d is lent %d", n, (int)units);
}

static void take(const long *c, const struct state *state, int n, int s,
                 struct walk *walk)
{
	struct state after = *state;
	struct node node;
	uint64_t word;

	node_of(c, state, n, &node);
	if (!purse_take(&node.purse, (uint32_t)s, now, 1, &word))
		return;
	keep(c, &node, n, &after);
	after.admitted++;
	step(walk, &after, FAIR, "seat %d.%d admits", n, s);
}

/* As who asks about many keys does. */
static void take_from_word(const long *c, const struct state *state, int n, int s,
                           struct walk *walk)
{
	struct state after = *state;
	struct node node;
	struct told told;

	node_of(c, state, n, &node);
	if (local_try_unfought(&node.purse, now, 1, &told) != LOCAL_TAKEN)
		return;
	keep(c, &node, n, &after);
	after.admitted++;
	step(walk, &after, FAIR, "seat %d.%d admits by the node's word", n, s);
}

static void load(const struct state *state, int n, int s, struct walk *walk)
{
	struct state after = *state;

	after.seen[n][s] = state->cell[n][s];
	step(walk, &after, CHANCE, "seat %d.%d loads its cell", n, s);
}

static void store(const struct state *state, int n, int s, struct walk *walk)
{
	struct state after = *state;

	after.cell[n][s] = (uint8_t)(state->seen[n][s] - 1);
	after.seen[n][s] = 0;
	after.admitted++;
	step(walk, &after, CHANCE, "seat %d.%d stores one less, and admits", n, s);
}

static void next_of_seat(const long *c, const struct state *state, int n, int s,
                         struct walk *walk)
{
	if (state->seen[n][s] > 0) {
		store(state, n, s, walk);
		return;
	}
	take_from_word(c, state, n, s, walk);
	if (!c[PACKED] && state->cell[n][s] > 0)
		load(state, n, s, walk);
	else
		take(c, state, n, s, walk);
}

static void gather(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node node;

	if (in_cells(c, state, n) == 0)
		return;
	node_of(c, state, n, &node);
	purse_gather(&node.purse, &grace, now);
	keep(c, &node, n, &after);
	step(walk, &after, CHANCE, "node %d gathers what is in its cells", n, 0);
}

static void give_back(const long *c, const struct state *state, int n,
                      struct walk *walk)
{
	struct state after = *state;
	uint64_t used = (uint64_t)c[LIMIT] - state->left, units;
	struct window_state words = { start_us(), used };
	struct ledger ledger = { .rows = { {
				     .node = 1,
				     .number = 1,
				     .granted = used,
				     .out = used,
				     .tag = slot_at(start_us()),
				 } } };
	struct node node;

	node_of(c, state, n, &node);
	units = purse_empty(&node.purse, &grace, now);
	if (units == 0 ||
	    !lease_give_back(&rule, (uint64_t *)&words, &ledger, start_us(), 1, 2,
	                     slot_at(start_us()), units))
		return;
	keep(c, &node, n, &after);
	after.left = small((uint64_t)c[LIMIT] - words.used);
	step(walk, &after, CHANCE, "node %d gives back %d", n, (int)units);
}

static void crash(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	unsigned had = state->word[n] + in_cells(c, state, n);

	if (had == 0)
		return;
	after.lost += small(had);
	after.word[n] = 0;
	memset(after.cell[n], 0, sizeof(after.cell[n]));
	memset(after.seen[n], 0, sizeof(after.seen[n]));
	step(walk, &after, CHANCE, "node %d crashes", n, 0);
}

static void turn(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = { .window = (uint8_t)(state->window + 1),
		               .left = small((uint64_t)c[LIMIT]) };

	memcpy(after.seen, state->seen, sizeof(after.seen));
	if (state->window < c[WINDOWS])
		step(walk, &after, CHANCE, "the window turns", 0, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		if (state->word[n] == 0)
			lease(c, state, n, walk);
		for (int s = 0; s < c[SEAT_COUNT]; s++)
			next_of_seat(c, state, n, s, walk);
		gather(c, state, n, walk);
		give_back(c, state, n, walk);
		crash(c, state, n, walk);
	}
	turn(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	long sum = state->left + state->admitted + state->lost;

	for (int n = 0; n < c[N]; n++)
		sum += state->word[n] + in_cells(c, state, n);
	return sum == c[LIMIT] ? NULL : "conserved";
}

static long bound(const long *c)
{
	return c[LIMIT];
}

static long found(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->admitted;
}

/* Whatever lies in which cell: it is all admitted in this window, if it is asked for. */
static bool is_used_up(const long *c, const void *at)
{
	const struct state *state = at;

	return state->admitted + state->lost == c[LIMIT];
}

static const struct goal goals[] = {
	{ "used-up", REACHABLE, is_used_up },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "left %d, admitted %d, lost %d", state->left, state->admitted,
	        state->lost);
	for (int n = 0; n < c[N]; n++) {
		fprintf(out, "; node %d: %d, cells", n, state->word[n]);
		for (int s = 0; s < c[SEAT_COUNT]; s++)
			fprintf(out, " %d", state->cell[n][s]);
	}
}

const struct model tiers_model = {
	.name = "tiers",
	.about = "a store's units in nodes' words, and those in seats' cells",
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
