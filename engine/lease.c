/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lease.c -- a step of as much as there is, and a row to remember it by.
 *
 * The rule decides and counts; here is only what a step does not know: how much to ask
 * it for, whether a message was here before, and what may go back.
 *
 *     row of the node   number      ->  what happens
 *     none              any             take, and remember
 *     there             higher          take, and remember
 *                       the same        what it got then, while that is worth something
 *                       lower           nothing
 *
 * lasts_us is rounded up.  The store's instants are whole microseconds: units that die
 * at the next whole one after tat live at exactly those instants that are before tat,
 * and that is also when the store forgets the key (RULE-4).  Rounded down, units that
 * accrue faster than one in a microsecond would be dead before they are lent.
 */
#include "engine/lease.h"

#include <assert.h>
#include <string.h>

#include "engine/check.h"
#include "engine/ledger.h"
#include "engine/meter.h"
#include "engine/pacer.h"

/* A pacer's state is the longest of those that can be lent from. */
#define WORDS_MOST (sizeof(struct pacer_state) / sizeof(uint64_t))

static_assert(sizeof(struct lease_row) == LEASE_ROW_WORDS * sizeof(uint64_t),
              "no padding");
static_assert(sizeof(struct window_state) <= sizeof(struct pacer_state) &&
                  sizeof(struct meter_state) <= sizeof(struct pacer_state),
              "WORDS_MOST is enough");

bool lease_possible(const struct rule *rule)
{
	return lent_from(rule) != NOTHING;
}

static uint64_t clamp(uint64_t now_us)
{
	return now_us < INSTANT_MAX_US ? now_us : INSTANT_MAX_US;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- Rows ------------------------------------------------------------------------ */

/* Is the ledger about a window that is over?  A step may have turned it, which leaves
 * the ledger as it was. LEASE-5 */
static bool is_of_the_past(const struct rule *rule, const uint64_t *words,
                           const struct ledger *ledger, uint64_t now)
{
	const struct window_state *state = (const struct window_state *)words;

	return lent_from(rule) == A_WINDOW && ledger->rows[0].node != 0 &&
	       ledger->rows[0].tag.us != window_start(rule, state, now);
}

/* The node's row as far as it counts now, or NULL. */
static const struct lease_row *find_row(const struct rule *rule, const uint64_t *words,
                                        const struct ledger *ledger, uint64_t now,
                                        uint64_t node)
{
	if (is_of_the_past(rule, words, ledger, now))
		return NULL;
	return ledger_row((struct ledger *)ledger, node); /* which is only read */
}

/* ---- Ahead ----------------------------------------------------------------------- */

bool lease_has_ahead(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_FIXED_WINDOW;
}

static uint64_t ahead_most(const struct rule *rule)
{
	return rule->is.limit / LEASE_AHEAD_PARTS;
}

static uint64_t ahead_of(const struct rule *rule, const uint64_t *words,
                         const struct ledger *ledger)
{
	const struct window_state *state = (const struct window_state *)words;

	return lease_has_ahead(rule) ? ledger_ahead(ledger, state->start_us) : 0;
}

uint64_t lease_expires(const struct rule *rule, const uint64_t *words,
                       const struct ledger *ledger)
{
	const struct window_state *state = (const struct window_state *)words;

	if (ahead_of(rule, words, ledger) > 0)
		return state->start_us + 2 * rule->is.period_us;
	return rule_expires(rule, words);
}

void lease_count_ahead(struct window_state *former, uint64_t period_us, uint64_t ahead,
                       uint64_t now_us)
{
	uint64_t now = clamp(now_us);

	if (ahead == 0 || period_us > GALE_UNITS_MAX)
		return;
	if (now >= former->start_us && now - former->start_us >= period_us)
		*former = (struct window_state){ former->start_us + period_us, 0 };
	ahead = smaller(ahead, GALE_UNITS_MAX - former->used);
	former->used += ahead; /* LEASE-7, RULE-3 */
}

static bool is_reserved(const struct rule *rule, uint64_t start, uint64_t from)
{
	return from > 0 && start >= from && start - from < rule->is.period_us;
}

bool lease_turn(const struct rule *rule, uint64_t *words, struct ledger *ledger,
                uint64_t now_us, uint64_t reserve_from_us)
{
	struct window_state *state = (struct window_state *)words;
	uint64_t ahead = 0, start;

	if (!lease_has_ahead(rule))
		return false;
	start = window_start(rule, state, clamp(now_us));
	if (start == state->start_us)
		return false;
	if (start == state->start_us + rule->is.period_us)
		ahead = ahead_of(rule, words, ledger);
	if (is_reserved(rule, start, reserve_from_us))
		ahead += ahead_most(rule);
	if (ahead == 0)
		return false; /* the rule's step begins it */
	*state = (struct window_state){ start, ahead };
	*ledger = (struct ledger){ 0 }; /* LEASE-5 */
	ledger->rows[0] = (struct lease_row){
		.node = LEASE_AHEAD,
		.number = 1,
		.out = ahead,
		.tag = slot_at(start),
	};
	return true;
}

/* The node says that it has them: at most as many as no node has said to have. */
static uint64_t claim(struct ledger *ledger, struct gale_slot tag,
                      const struct lease_ask *ask)
{
	struct lease_row *row = ledger_ahead_row(ledger);
	uint64_t had;

	if (!row || row->tag.us != tag.us || tag.us != ask->had_of)
		return 0;
	had = smaller(ask->had, row->out);
	row->out -= had; /* LEASE-7 */
	return had;
}

/* Beside what the node was just lent of this window. */
static uint64_t lend_ahead(const struct rule *rule, uint64_t *words,
                           struct ledger *ledger, const struct lease_ask *ask)
{
	struct window_state *state = (struct window_state *)words;
	struct lease_row *row = ledger_ahead_row(ledger);
	uint64_t units = smaller(ask->ahead, rule->is.limit - state->used);
	uint64_t lent = row ? row->number - 1 : 0;

	if (!lease_has_ahead(rule) || lent >= ahead_most(rule))
		return 0;
	units = smaller(units, ahead_most(rule) - lent);
	if (units > 0 && !row)
		row = ledger_make_ahead_row(ledger);
	if (units == 0 || !row)
		return 0;
	row->number += units;
	state->used += units; /* LEASE-7 */
	ledger_row(ledger, ask->node)->out += units;
	return units;
}

/* When what the row says to be out is over: a pacer's with its last place. */
static struct gale_slot end_of(const struct rule *rule, const struct lease_row *row)
{
	if (lent_from(rule) != A_PACER)
		return row->tag;
	return slot_add(row->tag, rule_span(rule, row->out), rule->is.limit);
}

/* After a return a meter's tat lies before the row's tag: the key may expire before that,
 * and a store that forgets it then must say the same. */
static bool is_held(const struct rule *rule, const struct lease_row *row, uint64_t now)
{
	if (row->node == 0 || row->out == 0)
		return false;
	if (lent_from(rule) == A_METER && row->granted == 0)
		return false;
	return lent_from(rule) == A_WINDOW ||
	       slot_before(slot_at(now), end_of(rule, row));
}

static uint64_t holders(const struct rule *rule, const uint64_t *words,
                        const struct ledger *ledger, uint64_t now)
{
	uint64_t held = 0;

	if (is_of_the_past(rule, words, ledger, now))
		return 0;
	for (size_t i = 0; i < LEASE_ROWS && ledger->rows[i].node != 0; i++) {
		const struct lease_row *row = &ledger->rows[i];

		if (row->node == LEASE_CROWD)
			held += row->out;
		else if (row->node != LEASE_AHEAD)
			held += is_held(rule, row, now);
	}
	return held;
}

static uint64_t others(const struct rule *rule, const uint64_t *words,
                       const struct ledger *ledger, uint64_t now, uint64_t node)
{
	const struct lease_row *own = find_row(rule, words, ledger, now, node);
	uint64_t others = 0;

	if (lent_from(rule) != A_WINDOW || is_of_the_past(rule, words, ledger, now))
		return 0;
	for (size_t i = 0; i < LEASE_ROWS && ledger->rows[i].node != 0; i++) {
		const struct lease_row *row = &ledger->rows[i];

		if (row->node == LEASE_CROWD)
			others += row->granted;
		else if (row->node == LEASE_AHEAD)
			others += row->out > 0; /* with nodes that have not asked yet */
		else
			others += row_has_some(row);
	}
	return others - (own && row_has_some(own));
}

/* ---- Taking ---------------------------------------------------------------------- */

/* The rule's answer to a cost; it is spent, or nothing has changed. RULE-1 */
static struct lease_grant spend(const struct rule *rule, uint64_t *words, uint64_t now,
                                uint64_t cost)
{
	struct gale_answer answer = rule_step(rule, words, now, cost);

	return (struct lease_grant){
		.units = answer.verdict == GALE_ALLOW ? cost : 0,
		.tag = answer.slot,
		.lasts_us = answer.reset_after_us,
		.left = answer.remaining,
		.retry_us = answer.retry_after_us,
		.delay_ns = answer.delay_ns,
	};
}

/* Units that are spent now would be there again at reset: that is how long they last. */
static struct lease_grant take_left(const struct rule *rule, uint64_t *words,
                                    uint64_t now, const struct lease_ask *ask)
{
	uint64_t left = rule_peek(rule, words, now).remaining;
	uint64_t units = smaller(ask->want, left);

	return spend(rule, words, now, units >= ask->least ? units : ask->least);
}

static struct lease_grant window_take(const struct rule *rule, uint64_t *words,
                                      uint64_t now, const struct lease_ask *ask)
{
	struct lease_grant grant = take_left(rule, words, now, ask);

	grant.tag =
	    slot_at(window_start(rule, (const struct window_state *)words, now));
	return grant;
}

static struct lease_grant meter_take(const struct rule *rule, uint64_t *words,
                                     uint64_t now, const struct lease_ask *ask)
{
	struct lease_grant grant = take_left(rule, words, now, ask);

	grant.tag = ((const struct meter_state *)words)->tat;
	return grant;
}

/* Would so many places be booked, the last of them within the longest wait?  That of the
 * first is the rule's own condition. */
static bool can_book(const struct rule *rule, const uint64_t *words, uint64_t now,
                     uint64_t units)
{
	struct gale_slot latest = slot_at(now + rule->is.max_wait_us), last;
	uint64_t scratch[WORDS_MOST];
	struct gale_answer answer;

	memcpy(scratch, words, sizeof(scratch));
	answer = rule_step(rule, scratch, now, units);
	if (answer.verdict != GALE_ALLOW)
		return false;
	last = slot_add(answer.slot, rule_span(rule, units - 1), rule->is.limit);
	return !slot_before(latest, last);
}

/* The most places that can be booked in a row; least if there are not more.  If a row fits,
 * so does a shorter one: halving finds it. */
static uint64_t longest_run(const struct rule *rule, const uint64_t *words,
                            uint64_t now, const struct lease_ask *ask)
{
	uint64_t fits = ask->least, fails = ask->want;

	if (fails == fits || can_book(rule, words, now, fails))
		return fails;
	if (!can_book(rule, words, now, fits))
		return fits; /* the rule decides */
	while (fails - fits > 1) {
		uint64_t middle = fits + (fails - fits) / 2;

		if (can_book(rule, words, now, middle))
			fits = middle;
		else
			fails = middle;
	}
	return fits;
}

static uint64_t us_until(const struct rule *rule, uint64_t now, struct gale_slot then)
{
	return slot_ceil(slot_until(slot_at(now), then, rule->is.limit));
}

/* At once, from the burst; it is earned again no faster than places leave, so units that
 * were kept for as long as their places would take are gone before others have them. */
static struct lease_grant pacer_take_burst(const struct rule *rule, uint64_t *words,
                                           uint64_t now, uint64_t units)
{
	struct lease_grant grant = spend(rule, words, now, units);

	grant.lasts_us = slot_ceil(rule_span(rule, units));
	return grant;
}

static struct lease_grant pacer_book(const struct rule *rule, uint64_t *words,
                                     uint64_t now, const struct lease_ask *ask)
{
	uint64_t units = longest_run(rule, words, now, ask);
	struct lease_grant grant = spend(rule, words, now, units);
	struct gale_slot end;

	if (grant.units == 0)
		return grant;
	end = slot_add(grant.tag, rule_span(rule, units), rule->is.limit);
	grant.lasts_us = us_until(rule, now, end);
	return grant;
}

static bool goes_at_once(const struct rule *rule, const uint64_t *words, uint64_t now,
                         const struct lease_ask *ask, uint64_t *ret_units)
{
	uint64_t dry = pacer_dry(rule, (const struct pacer_state *)words, now);

	*ret_units = smaller(ask->want, dry);
	return dry >= ask->least;
}

/* Takes what there is, and fills the row that remembers it. */
static struct lease_grant take(const struct rule *rule, uint64_t *words, uint64_t now,
                               const struct lease_ask *ask, struct lease_row *row)
{
	struct lease_grant grant;
	uint64_t units;

	if (lent_from(rule) == A_PACER && goes_at_once(rule, words, now, ask, &units)) {
		grant = pacer_take_burst(rule, words, now, units);
		row->out = 0; /* nothing was booked that could be given back */
		row->tag = slot_at(now + grant.lasts_us);
		row->granted = grant.units;
		return grant;
	}
	if (lent_from(rule) == A_PACER)
		grant = pacer_book(rule, words, now, ask);
	else if (lent_from(rule) == A_METER)
		grant = meter_take(rule, words, now, ask);
	else
		grant = window_take(rule, words, now, ask);
	row->out = grant.units;
	row->tag = grant.tag;
	row->granted = grant.units;
	return grant;
}

/* ---- What was said before -------------------------------------------------------- */

static struct lease_grant outlook(const struct rule *rule, const uint64_t *words,
                                  const struct ledger *ledger, uint64_t now,
                                  uint64_t node)
{
	struct gale_answer peeked = rule_peek(rule, words, now);
	struct lease_grant grant = {
		.lasts_us = peeked.reset_after_us,
		.left = peeked.remaining,
		.retry_us = peeked.retry_after_us,
		.holders = holders(rule, words, ledger, now),
		.others = others(rule, words, ledger, now, node),
	};

	if (lent_from(rule) == A_WINDOW)
		grant.tag = slot_at(
		    window_start(rule, (const struct window_state *)words, now));
	return grant;
}

static uint64_t nanoseconds(struct gale_slot wait, uint64_t den)
{
	return wait.us * 1000 +
	       (wait.part * 1000 + den - 1) / den; /* up: never early */
}

/* A block whose first place has passed is not told again: the delay counts from now, so
 * all its places would come too late, the last of them where others are. PACER-1 */
static bool is_worth_something(const struct rule *rule, const struct lease_row *row,
                               uint64_t now)
{
	if (lent_from(rule) == A_WINDOW)
		return true;
	if (lent_from(rule) == A_PACER && row->out > 0)
		return !slot_before(row->tag, slot_at(now));
	return slot_before(slot_at(now), row->tag);
}

/* Such an ask got nothing: it is more than it wanted. */
static bool was_claimed(const struct lease_row *row, const struct lease_ask *ask)
{
	return row->granted > ask->want;
}

/* The same number again, or a lower one. LEASE-2 */
static struct lease_grant say_again(const struct rule *rule, const uint64_t *words,
                                    const struct ledger *ledger, uint64_t now,
                                    const struct lease_row *row,
                                    const struct lease_ask *ask)
{
	struct lease_grant grant = outlook(rule, words, ledger, now, row->node);
	bool booked = lent_from(rule) == A_PACER && row->out > 0;

	if (ask->number < row->number || row->granted == 0 || was_claimed(row, ask) ||
	    !is_worth_something(rule, row, now))
		return grant;
	grant.units = row->granted;
	grant.retry_us = 0;
	if (lent_from(rule) == A_WINDOW)
		return grant;
	grant.lasts_us = us_until(rule, now, end_of(rule, row));
	if (lent_from(rule) == A_METER || booked)
		grant.tag = row->tag;
	if (booked)
		grant.delay_ns = nanoseconds(
		    slot_since(slot_at(now), row->tag, rule->is.limit), rule->is.limit);
	return grant;
}

struct lease_grant lease_status(const struct rule *rule, const uint64_t *words,
                                const struct ledger *ledger, uint64_t now_us,
                                uint64_t node)
{
	uint64_t now = clamp(now_us);
	const struct lease_row *row = find_row(rule, words, ledger, now, node);
	struct lease_grant grant = outlook(rule, words, ledger, now, node);

	if (!row || !is_held(rule, row, now))
		return grant;
	grant.units = row->out;
	if (lent_from(rule) == A_WINDOW)
		return grant;
	grant.tag = row->tag;
	grant.lasts_us = us_until(rule, now, end_of(rule, row));
	return grant;
}

/* ---- Lending --------------------------------------------------------------------- */

static bool is_ask(const struct lease_ask *ask)
{
	return ask->node >= 1 && ask->node <= LEASE_NODE_MAX && ask->number >= 1 &&
	       ask->number <= GALE_UNITS_MAX && ask->least >= 1 &&
	       ask->least <= ask->want && ask->want <= GALE_UNITS_MAX;
}

/* The window has too little for it, and it has nothing in hand: others need not hope for
 * that. */
static void note_spent(const struct rule *rule, struct ledger *ledger,
                       const struct lease_row *found, const struct lease_ask *ask)
{
	struct lease_row *row, before;

	if (!found || !ask->spent || lent_from(rule) != A_WINDOW)
		return;
	row = ledger_row(ledger, ask->node);
	before = *row;
	row->number = ask->number; /* LEASE-2 */
	row->granted = 0;
	if (ledger_is_apart(ledger, row))
		ledger_count_crowd(ledger, &before, row);
}

struct lease_grant lease_step(const struct rule *rule, uint64_t *words,
                              struct ledger *ledger, uint64_t now_us,
                              const struct lease_ask *ask)
{
	uint64_t now = clamp(now_us);
	const struct lease_row *row = find_row(rule, words, ledger, now, ask->node);
	uint64_t before = row && lent_from(rule) == A_WINDOW ? row->out : 0;
	struct lease_row now_first = { .node = ask->node, .number = ask->number };
	bool over = is_of_the_past(rule, words, ledger, now);
	struct lease_grant grant;
	uint64_t had;

	gale_assert(lease_possible(rule) && is_ask(ask));
	if (row && ask->number <= row->number)
		return say_again(rule, words, ledger, now, row, ask);
	grant = take(rule, words, now, ask, &now_first);
	if (grant.units > 0 && over)
		*ledger = (struct ledger){ 0 };        /* LEASE-5 */
	had = row ? 0 : claim(ledger, grant.tag, ask); /* LEASE-8 */
	if (grant.units > 0 || had > 0) {
		now_first.out += before + had; /* LEASE-4 */
		if (had > 0)
			now_first.tag = grant.tag;
		if (grant.units == 0 && had > ask->want && !ask->spent)
			now_first.granted = had; /* LEASE-9 */
		ledger_put(rule, ledger, &now_first, now);
	} else {
		note_spent(rule, ledger, row, ask);
	}
	grant.had = had;
	if (grant.units > 0 && ask->ahead > 0) {
		grant.ahead = lend_ahead(rule, words, ledger, ask);
		grant.left -= grant.ahead;
	}
	grant.holders = holders(rule, words, ledger, now);
	grant.others = others(rule, words, ledger, now, ask->node);
	return grant;
}

bool lease_was_whole(const struct rule *rule, const struct window_state *left,
                     uint64_t now_us, const struct lease_ask *ask,
                     struct lease_grant *ret_grant)
{
	uint64_t now = clamp(now_us);
	struct gale_answer peeked;

	gale_assert(lent_from(rule) == A_WINDOW && is_ask(ask));
	if (left->start_us > INSTANT_MAX_US || left->used > rule->is.limit ||
	    ask->want > left->used || /* LEASE-4 */
	    window_start(rule, left, now) != left->start_us)
		return false;
	peeked = window_peek(rule, left, now);
	*ret_grant = (struct lease_grant){
		.units = ask->want,
		.tag = slot_at(left->start_us),
		.lasts_us = peeked.reset_after_us,
		.left = peeked.remaining,
		.holders = 1,
	};
	return true;
}

/* ---- Giving back ----------------------------------------------------------------- */

/* Are so many of the row's units out under the tag?  A meter's or pacer's can be only as
 * long as nothing of them was given back: after that the tag is not where they are. */
static bool covers(const struct rule *rule, const struct lease_row *row,
                   struct gale_slot its_tag, struct gale_slot tag, uint64_t units)
{
	if (lent_from(rule) != A_WINDOW && row->granted == 0)
		return false;
	if (lent_from(rule) == A_METER && units > row->out)
		units = row->out; /* a node may have some of the grants before, too */
	return slot_equal(its_tag, tag) && units >= 1 && units <= row->out;
}

/* Of a meter's, only what the latest grant lent can go back: the rest stays spent. */
static uint64_t returnable(const struct rule *rule, const struct lease_row *row,
                           uint64_t units)
{
	return lent_from(rule) == A_METER && units > row->out ? row->out : units;
}

/* Its start stays, though nothing may be used: the key goes back to no other. WINDOW-2 */
static bool window_undo(struct window_state *state, uint64_t units)
{
	if (units > state->used)
		return false; /* what was there has been lost, and the row apart has not */
	state->used -= units; /* LEASE-4 */
	return true;
}

/* Not further back than the grant came from, since that was at least units ahead. */
static bool meter_undo(const struct rule *rule, struct meter_state *state, uint64_t now,
                       struct gale_slot tag, uint64_t units)
{
	if (!slot_equal(state->tat, tag) || !slot_before(slot_at(now), tag))
		return false;
	state->tat = slot_since(rule_span(rule, units), tag, rule->is.limit);
	return true;
}

/* The last of the block: the first ones may have left already. */
static bool pacer_undo(const struct rule *rule, uint64_t *words, uint64_t now,
                       const struct lease_row *row, uint64_t units)
{
	struct gale_slot kept = rule_span(rule, row->granted - units);

	return rule_cancel(rule, words, now, units,
	                   slot_add(row->tag, kept, rule->is.limit));
}

static bool undo(const struct rule *rule, uint64_t *words, uint64_t now,
                 const struct lease_row *row, uint64_t units)
{
	switch (lent_from(rule)) {
	case A_WINDOW:
		return window_undo((struct window_state *)words, units);
	case A_METER:
		return meter_undo(rule, (struct meter_state *)words, now, row->tag,
		                  units);
	default:
		return pacer_undo(rule, words, now, row, units);
	}
}

bool lease_give_back(const struct rule *rule, uint64_t *words, struct ledger *ledger,
                     uint64_t now_us, uint64_t node, uint64_t number,
                     struct gale_slot tag, uint64_t units)
{
	uint64_t now = clamp(now_us);
	struct lease_row *row, before;
	bool keeps = lent_from(rule) == A_WINDOW && tag.part == LEASE_KEEPS;
	struct gale_slot its_tag;

	gale_assert(lease_possible(rule));
	if (keeps)
		tag.part = 0;
	if (node == 0 || node > LEASE_NODE_MAX ||
	    !find_row(rule, words, ledger, now, node))
		return false;
	row = ledger_row(ledger, node);
	before = *row;
	its_tag = ledger_is_apart(ledger, row) ? ledger->rows[0].tag : row->tag;
	if (number == row->number) /* LEASE-2 */
		return row->granted <= keeps && slot_equal(its_tag, tag);
	if (number < row->number || number > GALE_UNITS_MAX ||
	    !covers(rule, row, its_tag, tag, units)) /* LEASE-3 */
		return false;
	units = returnable(rule, row, units);
	if (!undo(rule, words, now, row, units))
		return false;
	row->number = number;
	row->out -= units;
	row->granted = keeps && row->out > 0; /* LEASE-9 */
	if (ledger_is_apart(ledger, row))
		ledger_count_crowd(ledger, &before, row);
	if (ledger_is_apart(ledger, row) && row->out == 0)
		ledger_end_claims(ledger); /* LEASE-8 */
	return true;
}
