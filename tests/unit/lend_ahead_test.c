/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lend_ahead_test.c -- units of two windows, in random worlds.
 *
 * Nodes ask for units of this window and of the next, say what they had, and give back; messages are
 * lost, late and doubled; strict steps come in between; the clock goes on, and in some worlds back;
 * in others the store forgets a key that has expired, or has a reserve after a quarantine.  Some
 * nodes lie about what they were lent ahead.
 *
 * The books of the test are two windows, this one and the next.  A unit is in them once, or twice if
 * it was lent ahead.  They are kept from the answers alone, and say after each step what the value
 * has to have used, what may go back, and what must.
 */
#include <string.h>

#include "engine/lease.h"
#include "engine/window.h"
#include "sim/random.h"
#include "tests/support/length.h"
#include "tests/unit/vectors.h"

#include "tests/support/leased.h" /* after cmocka.h */

#define NODES_MOST 12
#define STEPS_EACH 200
#define PERIOD SEC(1)

struct window {
	uint64_t start;
	uint64_t used;
	uint64_t unsaid; /* of used: lent ahead, and nobody has said to have them */
	uint64_t out[NODES_MOST + 1];  /* of used: with nodes that may give them back */
	uint64_t told[NODES_MOST + 1]; /* lent ahead of it, as the nodes have heard */
	uint64_t claimed[NODES_MOST + 1]; /* said to be had */
	uint64_t number[NODES_MOST + 1];  /* of the last message that did something */
};

struct message {
	bool is_back;
	struct lease_ask ask;
	struct gale_slot tag;
	uint64_t units; /* to give back */
};

struct world {
	struct chance c;
	struct leased key;
	uint64_t now;
	uint64_t nodes;
	uint64_t numbers;
	uint64_t reserve_from; /* 0: the server has forgotten nothing */
	bool goes_back;        /* its clock, now and then */
	bool forgets;          /* keys that have expired */
	bool honest;
	struct window this, next;
	struct message messages[STEPS_EACH];
	size_t message_count;
};

static struct tally {
	uint64_t lent, claims, vain_claims, backs, refused, turned, forgotten, reserves,
	    crowds, exact;
} tally;

static uint64_t limit_of(const struct world *w)
{
	return w->key.rule.is.limit;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A small world's rows are all in the value, whatever they have out. */
static bool is_small(const struct world *w)
{
	return w->nodes <= LEASE_ROWS - 2;
}

/* ---- Windows --------------------------------------------------------------------- */

static void move_books(struct world *w)
{
	uint64_t start = w->now - w->now % PERIOD;
	uint64_t reserve = limit_of(w) / LEASE_AHEAD_PARTS;

	if (start <= w->this.start)
		return; /* RULE-2 */
	w->this = start == w->next.start ? w->next : (struct window){ .start = start };
	tally.turned += w->this.used > 0;
	w->next = (struct window){ .start = start + PERIOD };
	if (w->reserve_from > 0 && start >= w->reserve_from &&
	    start - w->reserve_from < PERIOD) {
		w->this.used += reserve; /* L12 */
		w->this.unsaid += reserve;
		tally.reserves++;
	}
}

/* As a store does it before each step. */
static void turn(struct world *w)
{
	move_books(w);
	(void)lease_turn(&w->key.rule, w->key.words, &w->key.ledger, w->now,
	                 w->reserve_from);
}

static void check_world(const struct world *w)
{
	const struct window_state *state = (const struct window_state *)w->key.words;
	uint64_t out = 0;

	check_key(&w->key);
	tally.crowds += ledger_crowd_of(&w->key.ledger, NODES_MOST) != 0;
	assert_true(w->this.used <= limit_of(w)); /* L1 */
	assert_true(w->next.used <= limit_of(w) / LEASE_AHEAD_PARTS);
	for (uint64_t i = 1; i <= w->nodes; i++)
		out += w->this.out[i];
	assert_true(out + w->this.unsaid <= w->this.used);
	if (state->start_us != w->this.start) {
		assert_int_equal(w->this.used, 0); /* the next step begins it */
		assert_int_equal(w->next.used, 0);
		return;
	}
	assert_int_equal(state->used, w->this.used); /* LEASE-4, LEASE-7 */
	assert_int_equal(ledger_ahead(&w->key.ledger, w->this.start), w->next.used);
}

/* ---- Messages -------------------------------------------------------------------- */

/* An answer that comes late or twice tells the node nothing. */
static void deliver_ask(struct world *w, const struct lease_ask *ask, bool heard)
{
	struct window *this = &w->this;
	uint64_t left = limit_of(w) - this->used;
	bool old = ask->number <= this->number[ask->node];
	struct leased before = w->key;
	struct lease_grant grant = asks(&w->key, w->now, ask);
	bool changed = memcmp(before.words, w->key.words, sizeof(before.words)) != 0;
	uint64_t most;

	if (is_small(w) && old)
		assert_memory_equal(&before, &w->key, sizeof(before)); /* LEASE-2 */
	if (grant.had > 0) {
		assert_true(ask->had_of == this->start && grant.had <= ask->had);
		assert_true(grant.had <= this->unsaid); /* LEASE-8 */
		this->unsaid -= grant.had;
		this->out[ask->node] += grant.had;
		this->claimed[ask->node] += grant.had;
		this->number[ask->node] = ask->number;
		if (w->honest)
			assert_true(this->claimed[ask->node] <= this->told[ask->node]);
		tally.claims++;
		tally.vain_claims += grant.units == 0;
	}
	if (!changed) { /* said again, or denied; LEASE-2: that all is spent is noted */
		if (memcmp(&before, &w->key, sizeof(before)) != 0)
			this->number[ask->node] = ask->number;
		return;
	}
	most = least_of(limit_of(w) / LEASE_AHEAD_PARTS - w->next.used,
	                left - grant.units);
	assert_int_equal(grant.units, least_of(ask->want, left)); /* LEASE-1 */
	assert_true(grant.ahead <= least_of(ask->ahead, most));
	assert_int_equal(grant.left, left - grant.units - grant.ahead);
	assert_int_equal(grant.tag.us, this->start);
	this->used += grant.units + grant.ahead;
	this->out[ask->node] += grant.units + grant.ahead;
	this->number[ask->node] = ask->number;
	w->next.used += grant.ahead;
	w->next.unsaid += grant.ahead;
	if (heard)
		w->next.told[ask->node] += grant.ahead;
	tally.lent += grant.ahead > 0;
	tally.exact += grant.ahead == ask->ahead && grant.ahead > 0;
}

static void deliver_back(struct world *w, const struct message *m)
{
	struct window *this = &w->this;
	uint64_t node = m->ask.node;
	struct leased before = w->key;
	bool taken = back(&w->key, w->now, node, m->ask.number, m->tag, m->units);
	bool changed = memcmp(before.words, w->key.words, sizeof(before.words)) != 0;
	bool may = m->tag.us == this->start && m->units >= 1 &&
	           m->units <= this->out[node] && m->ask.number > this->number[node];

	assert_int_equal(changed, may); /* LEASE-3; L16: in a fleet of any size */
	if (!changed) {
		tally.refused += !taken;
		return;
	}
	assert_true(taken);
	this->used -= m->units;
	this->out[node] -= m->units;
	this->number[node] = m->ask.number;
	tally.backs++;
}

static void deliver(struct world *w, const struct message *m, bool heard)
{
	turn(w);
	if (m->is_back)
		deliver_back(w, m);
	else
		deliver_ask(w, &m->ask, heard);
}

static void random_ask(struct world *w, struct message *m)
{
	const struct window *this = &w->this;

	m->ask.want = chance_log(&w->c, chance_one_in(&w->c, 4) ? 300 : 20);
	m->ask.least =
	    chance_one_in(&w->c, 2) ? 1 : chance_between(&w->c, 1, m->ask.want);
	m->ask.spent = chance_one_in(&w->c, 2);
	m->ask.ahead = chance_one_in(&w->c, 3) ? 0 : chance_log(&w->c, 20);
	m->ask.had_of = this->start;
	m->ask.had = this->told[m->ask.node] - this->claimed[m->ask.node];
	if (!w->honest && chance_one_in(&w->c, 2)) {
		m->ask.had = chance_log(&w->c, 50);
		m->ask.had_of += chance_below(&w->c, 2) * PERIOD;
	}
}

static void random_back(struct world *w, struct message *m)
{
	uint64_t out = w->this.out[m->ask.node];

	m->is_back = true;
	m->tag.us = w->this.start;
	m->units = chance_below(&w->c, out + 2);
	if (chance_one_in(&w->c, 3))
		m->units = out;
	if (chance_one_in(&w->c, 8))
		m->tag.us += PERIOD; /* of the next window nothing can go back yet */
}

static void random_message(struct world *w)
{
	struct message *m = &w->messages[w->message_count];

	if (w->message_count > 0 && chance_one_in(&w->c, 3)) {
		deliver(w, &w->messages[chance_below(&w->c, w->message_count)],
		        /* heard= */ false);
		return;
	}
	turn(w);
	w->message_count++;
	m->ask.node = chance_between(&w->c, 1, w->nodes);
	m->ask.number = ++w->numbers;
	if (chance_one_in(&w->c, 3))
		random_back(w, m);
	else
		random_ask(w, m);
	if (!chance_one_in(&w->c, 8)) /* or it is lost, or comes late */
		deliver(w, m, !chance_one_in(&w->c, 8));
}

/* ---- Worlds ---------------------------------------------------------------------- */

static void strict_step(struct world *w)
{
	uint64_t cost = chance_log(&w->c, 10);

	turn(w);
	if (rule_step(&w->key.rule, w->key.words, w->now, cost).verdict == GALE_ALLOW)
		w->this.used += cost;
}

/* Nothing that counts is lost. */
static void forget(struct world *w)
{
	move_books(w);
	if (w->now < lease_expires(&w->key.rule, w->key.words, &w->key.ledger))
		return;
	assert_int_equal(w->this.used, w->this.unsaid); /* but for a reserve */
	assert_int_equal(w->next.used, 0);
	tally.forgotten += w->key.words[0] != 0;
	w->key = (struct leased){ .rule = w->key.rule };
	memset(w->this.number, 0, sizeof(w->this.number)); /* LEASE-5 */
}

static void move_clock(struct world *w)
{
	uint64_t scale = chance_one_in(&w->c, 8) ? 3 * PERIOD : PERIOD / 2;
	uint64_t by = chance_log(&w->c, scale);

	/* Not out of a window that no step has begun: the value still has the one before. */
	if (w->goes_back && chance_one_in(&w->c, 6) && w->key.words[0] == w->this.start)
		w->now -= by;
	else
		w->now += by;
}

static void open_world(struct world *w, uint64_t seed)
{
	struct chance c = { seed };

	*w = (struct world){ .c = c };
	w->key = key_of(gale_fixed_window(chance_between(&w->c, 10, 1000), PERIOD));
	w->nodes = chance_between(&w->c, 1, NODES_MOST);
	w->goes_back = chance_one_in(&w->c, 3);
	w->forgets = !w->goes_back && chance_one_in(&w->c, 2);
	w->honest = !chance_one_in(&w->c, 3);
	w->now = T0 + chance_below(&w->c, GALE_DAYS(1));
	if (chance_one_in(&w->c, 3))
		w->reserve_from = w->now + chance_below(&w->c, 10 * PERIOD);
}

static void run_world(uint64_t seed)
{
	static struct world w;

	open_world(&w, seed);
	for (int i = 0; i < STEPS_EACH; i++) {
		if (chance_one_in(&w.c, 6))
			move_clock(&w);
		if (w.forgets)
			forget(&w);
		if (chance_one_in(&w.c, 10))
			strict_step(&w);
		else
			random_message(&w);
		check_world(&w);
	}
}

#define WORLDS LONG_OR_BRIEF(UINT64_C(10000), UINT64_C(2000))

static void whatever_comes_two_windows_add_up(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++)
		run_world(seed);
	/* All that should happen did. */
	assert_true(tally.lent > 4 * WORLDS);
	assert_true(tally.exact > 2 * WORLDS);
	assert_true(tally.claims > WORLDS / 2);
	assert_true(tally.vain_claims > WORLDS / 30);
	assert_true(tally.backs > 8 * WORLDS);
	assert_true(tally.refused > 20 * WORLDS);
	assert_true(tally.turned > WORLDS / 2);
	assert_true(tally.forgotten > WORLDS / 20);
	assert_true(tally.reserves > WORLDS / 40);
	assert_true(tally.crowds > 10 * WORLDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_comes_two_windows_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
