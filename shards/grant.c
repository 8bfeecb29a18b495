/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * grant.c -- a store's answer: whether it is to be believed, and which calls get its units.
 *
 *     on_answer -> believed? -> the books -> the purse -> calls that wait -> again, or rest
 *
 * A store that says too much of a window is not believed (LESSOR-4); one whose clock has jumped
 * is not for a while (JUMP-3), and what it has lent is dropped: the window may be over.
 *
 * Threads   The shard's actor, also where a store calls back.  Any thread reads
 *           down_until_ns.
 */
#include "engine/check.h"
#include "runtime/clock.h"
#include "runtime/probe.h"
#include "shards/ahead.h"
#include "shards/lessor.h"
#include "shards/local.h"

#define BACKOFF_FIRST_NS 10000000 /* 10 ms, doubled for each further failure ... */
#define BACKOFF_DOUBLINGS 6       /* ... up to 640 ms, and half as much again, by lot */
#define IDLE_WINDOWS_NOTED SIZER_IDLE_MOST
#define PLACE_DELAY_MAX_NS (GALE_SPAN_MAX_US * 1000)
#define METER_LIFE_LEAST_NS 1000000
#define TURN_PARTS 64 /* of a window: in its last, nodes ask for the next */

bool lessor_has_windows(const struct lender *lender)
{
	return lender->lending == LENDING_UNITS && !lender->is_meter;
}

struct borrow_terms lessor_borrow_terms(const struct link *link)
{
	const struct lender *lender = link->own.lender;

	return (struct borrow_terms){
		.capacity = link->own.rule.capacity,
		.window_us = link->own.window_us,
		.look_ns = link->own.look_ns,
		.batch = lender->sizing.batch,
		.has_windows = lessor_has_windows(lender),
		.has_places = lender->lending == LENDING_PLACES,
		.carry_over = lender->carry_over,
	};
}

struct gale_slot lessor_tag(const struct purse *purse)
{
	bool has_part = !lessor_has_windows(purse->lender);

	return (struct gale_slot){ .us = purse->tag_us,
		                   .part = has_part ? purse->tag_part : 0 };
}

void lessor_set_tag(struct purse *purse, struct gale_slot tag)
{
	purse->tag_us = tag.us;
	purse->tag_part = tag.part;
}

/* Does the grant open another window than the purse's books are about?  A meter has no
 * windows; its books are closed by the clock. */
static bool is_next_window(const struct purse *purse, const struct lend_answer *answer,
                           mono now)
{
	if (!lessor_has_windows(purse->lender))
		return mono_reached(now, purse->ends);
	return !slot_equal(answer->grant.tag, lessor_tag(purse));
}

/* What a meter can lend in one period of the books: what it holds, and what accrues from
 * when the first answer of the period may have been given until it ends. */
static uint64_t most_of_meter(const struct link *link, mono now)
{
	const struct lender *lender = link->own.lender;
	const struct books books = lessor_books(link, now);
	uint64_t us = books.period_us + lender->patience_ns / 1000 * 2;
	uint128 accrued;

	us += us / 1000 * lender->drift_ppm / 500 + 1000; /* both clocks drift */
	accrued = wide_quotient((uint128)us * link->own.rule.is.limit,
	                        link->own.rule.is.period_us);
	if (accrued > GALE_UNITS_MAX)
		return GALE_UNITS_MAX;
	return books.capacity + 2 + (uint64_t)accrued;
}

/* Could an honest store say so of any key? */
static bool is_possible(const struct link *link, const struct errand *errand,
                        const struct lease_grant *grant)
{
	const struct lender *lender = link->own.lender;

	if (grant->units > errand->want || grant->lasts_us > GALE_SPAN_MAX_US ||
	    !lessor_ahead_is_possible(errand, grant))
		return false;
	if (!lessor_has_windows(lender))
		return lender->lending != LENDING_PLACES ||
		       grant->delay_ns <= PLACE_DELAY_MAX_NS;
	return grant->lasts_us <= link->own.window_us &&
	       grant->tag.us <= INSTANT_MAX_US;
}

/* LESSOR-4, after what was said of this one.  Of a window that is open here, see hold_to_books. */
static bool is_believable(const struct link *link, const struct errand *errand,
                          const struct lend_answer *answer, mono now)
{
	const struct purse *purse = errand->purse;
	const struct lender *lender = purse->lender;
	const struct lease_grant *grant = &answer->grant;
	bool next = is_next_window(purse, answer, now);

	if (lender->lending == LENDING_PLACES)
		return true;
	if (lender->is_meter)
		return (next ? 0 : purse->taken) + grant->units <=
		       most_of_meter(link, now);
	if (!next)
		return true;
	return grant->tag.us > purse->tag_us &&
	       (lender->carry_over || mono_reached(now, purse->ends));
}

/* Months have no one length. */
static bool shows_time(const struct link *link)
{
	return lessor_has_windows(link->own.lender) &&
	       !(link->own.rule.is.kind == GALE_RULE_QUOTA &&
	         link->own.rule.is.cadence == GALE_MONTHLY);
}

/* A key that was asked about when the store's clock was ahead keeps the window of that
 * time: that it is spent says nothing of the clock, which has not reached it again. */
static bool is_ahead(const struct link *link, const struct lease_grant *grant)
{
	return grant->units == 0 && grant->lasts_us == link->own.window_us;
}

static bool has_jumped(struct link *link, const struct errand *errand,
                       const struct lease_grant *grant, mono now)
{
	if (!shows_time(link) || is_ahead(link, grant))
		return false;
	return jump_note(&link->own.jump,
	                 grant->tag.us + link->own.window_us - grant->lasts_us,
	                 errand->sent, now, link->own.lender->drift_ppm);
}

static bool is_fenced(const struct link *link, mono now)
{
	return !mono_reached(now, link->own.fenced_until);
}

/* Units that have been asked for by now are not taken either. */
static void fence(struct lessor *lessor, struct link *link, mono now)
{
	link->own.fenced_until = mono_after(now, jump_pause_ns(link->own.window_us));
	store_relaxed(&link->shared.down_until_ns, link->own.fenced_until.ns);
	lessor_drop_lent(lessor, link);
}

static uint64_t spent_of(struct purse *purse)
{
	uint64_t left = purse_left(purse, (mono){ 0 });

	return purse->taken > left ? purse->taken - left : 0;
}

uint64_t lessor_demand(struct purse *purse)
{
	return spent_of(purse) + load_relaxed(&purse->refused);
}

void lessor_window_over(struct lessor *lessor, struct purse *purse)
{
	uint64_t demand = spent_of(purse) + swap_relaxed(&purse->refused, 0);
	struct lender *lender = purse->lender;

	sizer_observe(&lender->sizing, purse_sizer(purse), lessor_hedge(lessor, purse),
	              demand);
	purse->taken = 0;
}

static uint64_t us_between(mono now, mono then)
{
	return then.ns > now.ns ? (then.ns - now.ns) / 1000 : 0;
}

/* Windows without asks are learned from too. */
static void note_idle_windows(struct lessor *lessor, struct purse *purse, mono now)
{
	uint64_t window_us = link_of(lessor, purse->lender)->own.window_us;
	uint64_t idle = us_between(purse->ends, now) / window_us;

	for (uint64_t i = 0; i < idle && i < IDLE_WINDOWS_NOTED; i++)
		lessor_window_over(lessor, purse);
}

static void open_window(struct lessor *lessor, struct purse *purse,
                        const struct lease_grant *grant, mono now)
{
	uint64_t window_us = link_of(lessor, purse->lender)->own.window_us;

	if (purse->ends.ns > 0) {
		lessor_window_over(lessor, purse);
		note_idle_windows(lessor, purse, now);
	}
	if (lessor_has_windows(purse->lender))
		lessor_set_tag(purse, slot_at(grant->tag.us));
	purse->ends = lessor_has_windows(purse->lender)
	                  ? (mono){ 0 }
	                  : mono_after(now, window_us * 1000);
}

/* Before the units are put in. What carries over outlives what the store said of a window. */
static void note_rest(struct lessor *lessor, const struct errand *errand,
                      const struct lend_answer *answer, mono now)
{
	struct purse *purse = errand->purse;
	const struct link *link = link_of(lessor, purse->lender);
	bool known = !answer->waits && !purse->lender->carry_over;
	uint64_t left =
	    rest_moved(answer->grant.left, errand->capacity, link->own.rule.capacity);

	purse_tell(purse, known ? left : 0, now);
}

/* joins: units ahead that are about to join the purse; or NULL. */
static void put_units(struct lessor *lessor, struct purse *purse,
                      const struct lease_grant *grant, const struct ahead *joins,
                      mono ends, mono now)
{
	struct lender *lender = purse->lender;
	uint64_t units = grant->units;

	if (units == 0)
		return;
	lessor_warm(lessor, purse, joins ? ahead_left(joins, now) : 0, units, now);
	purse->taken += units;
	if (!lessor_has_windows(lender))
		lessor_set_tag(purse, grant->tag); /* only the latest can go back */
	if (lender->carry_over)
		ends = NEVER_DUE;
	kept_lend(purse, ends, units, &lessor->clock, now);
	lessor_list_lent(lessor, purse, now);
	lessor_count(lessor, COUNT_GRANTS, 1);
	lessor_count(lessor, COUNT_UNITS, grant->units);
}

/* The first place is so long from when the store answered, not from when it was asked:
 * no call may leave early. */
static void put_places(struct lessor *lessor, struct purse *purse,
                       const struct lease_grant *grant, mono now)
{
	struct block block = {
		.rule = link_of(lessor, purse->lender)->own.rule,
		.first = mono_after(now, grant->delay_ns),
		.slot = grant->tag,
		.count = grant->units,
	};
	uint64_t room =
	    block.rule.capacity > block.count ? block.rule.capacity - block.count : 0;

	block.left = grant->left < room ? grant->left : room;

	lessor_take_back(lessor, purse, now);
	lessor_set_tag(purse, grant->tag);
	purse->taken += grant->units;
	if (!purses_give_block(&lessor->purses, purse, &block)) {
		lessor_give_back(lessor, purse, grant->units, false); /* no memory */
		return;
	}
	lessor_list_lent(lessor, purse, now);
	lessor_count(lessor, COUNT_GRANTS, 1);
	lessor_count(lessor, COUNT_UNITS, grant->units);
}

static bool is_placed(const struct lender *lender, const struct lease_grant *grant)
{
	return lender->lending == LENDING_PLACES &&
	       (grant->tag.us > 0 || grant->tag.part > 0);
}

/* The store has not got what was wanted: until it may, no caller needs to ask. */
static void deny(struct lessor *lessor, struct purse *purse,
                 const struct borrow_orders *orders, mono now)
{
	lessor_use_ahead(lessor, purse, now);
	purse_deny(purse, orders->until, orders->beyond + purse_common(purse, now));
	if (orders->what & BORROW_WATCH)
		lessor_watch(lessor, purse, now);
	lessor_note_denied(lessor, purse, now);
	lessor_count(lessor, COUNT_SPENT, 1);
}

/* The store may have forgotten what it granted: that is not to be taken for a denial. */
static void keep_out(struct lessor *lessor, struct errand *errand, mono until, mono now)
{
	struct list *place;

	while ((place = list_first(&errand->waiters)))
		lessor_keep_out(lessor, list_item(place, struct ask, waiting), until,
		                now);
}

static void serve(struct errand *errand, mono now)
{
	struct list *place = list_first(&errand->waiters), *next;

	for (; place && place != &errand->waiters; place = next) {
		struct ask *ask = list_item(place, struct ask, waiting);

		next = place->next;
		ask->restarted = errand->restarted;
		(void)lessor_settle(errand->purse, ask, now);
	}
}

static bool any_waits(const struct errand *errand)
{
	return !list_is_empty(&errand->waiters);
}

static void go_again_or_end(struct lessor *lessor, struct errand *errand,
                            const struct borrow_orders *orders)
{
	struct link *link = link_of(lessor, errand->purse->lender);

	if (!(orders->what & BORROW_ASK_AGAIN)) {
		lessor_free_errand(lessor, errand);
		return;
	}
	errand->number = 0;
	errand->forget = false;
	list_append(&link->own.wanting, &errand->place);
}

static void resume(struct lessor *lessor, struct errand *errand)
{
	struct borrow_orders orders = borrow_resume(any_waits(errand));

	go_again_or_end(lessor, errand, &orders);
}

static void sleep_until(struct lessor *lessor, struct errand *errand, mono due)
{
	struct list *sleeping = &link_of(lessor, errand->purse->lender)->own.sleeping;
	struct list *at = sleeping;

	lessor_count(lessor, COUNT_EXPIRED, 1);
	errand->number = 0;
	errand->due = due;
	while (at->before != sleeping &&
	       list_item(at->before, struct errand, place)->due.ns > errand->due.ns)
		at = at->before;
	list_append(at, &errand->place);
}

/* Errands that are due go again, unless no call waits any longer. */
void lessor_wake_sleeping(struct lessor *lessor, struct link *link, mono now)
{
	struct list *place;

	while ((place = list_first(&link->own.sleeping))) {
		struct errand *errand = list_item(place, struct errand, place);

		if (!mono_reached(now, errand->due))
			return;
		list_remove(place);
		resume(lessor, errand);
	}
}

mono lessor_unit_ends(const struct link *link, mono from)
{
	return mono_after(from, METER_LIFE_LEAST_NS + link->own.window_us * 1000);
}

/* A meter's books allow for patience and no more: what takes longer counts as if it had come when
 * patience ended, and its units live from then.  No other answer about the key has come since.
 * LESSOR-1 */
static mono counts_from(const struct errand *errand, mono now)
{
	const struct lender *lender = errand->purse->lender;

	if (!lender->is_meter)
		return now;
	return mono_earlier(now, mono_after(errand->sent, lender->patience_ns));
}

static bool is_dead_by(const struct link *link, const struct errand *errand, mono now)
{
	return errand->purse->lender->is_meter &&
	       mono_reached(now, lessor_unit_ends(link, counts_from(errand, now)));
}

/* A window's units die with it.  Those of a meter are bounded by how many are out, not by
 * when they are spent: they live as long as the meter takes to fill, so that a store which
 * is slower than that can be leased from at all. */
static mono ends_of(const struct link *link, const struct errand *errand,
                    const struct lease_grant *grant, mono now)
{
	const struct lender *lender = link->own.lender;

	if (lender->is_meter)
		return lessor_unit_ends(link, counts_from(errand, now));
	if (lender->lending == LENDING_PLACES) /* of its burst: for calls that wait */
		return mono_after(now, METER_LIFE_LEAST_NS);
	return mono_until(errand->sent, (lasting){ grant->lasts_us },
	                  clock_apart_ppm(lender->drift_ppm)); /* LESSOR-3 */
}

/* The window that was over here was not yet over there: what was wanted is for the next. */
static bool is_of_the_last(const struct errand *errand, bool next)
{
	return !next && mono_reached(errand->sent, errand->purse->ends);
}

/* The same may be so at nodes whose clocks are ahead. */
static bool is_at_the_end(const struct link *link, const struct errand *errand,
                          bool next)
{
	uint64_t about_ns = link->own.window_us / TURN_PARTS * 1000;

	return !next &&
	       mono_reached(mono_after(errand->sent, about_ns), errand->purse->ends);
}

static uint64_t left_us(mono from, mono ends)
{
	return mono_reached(from, ends) ? 0 : (ends.ns - from.ns) / 1000;
}

/* Is there enough for all?  A store that may have forgotten does not know. */
static void note_left(struct lessor *lessor, const struct errand *errand,
                      const struct lend_answer *answer, bool next, mono ends)
{
	const struct lender *lender = errand->purse->lender;
	const struct link *link = link_of(lessor, lender);
	struct sizer_told told = {
		.capacity = link->own.rule.capacity,
		.left = answer->grant.left,
		.window_us = link->own.window_us,
		.left_us = left_us(errand->sent, ends),
		.fell_short = answer->grant.units < errand->want,
		.at_the_end = is_at_the_end(link, errand, next),
	};

	if (!lessor_has_windows(lender) || answer->waits ||
	    is_of_the_last(errand, next))
		return;
	sizer_hear(&lender->sizing, purse_sizer(errand->purse), &told);
}

/* In books, in the purse. */
static void take_units(struct lessor *lessor, struct errand *errand,
                       const struct lend_answer *answer, bool next, mono now)
{
	struct purse *purse = errand->purse;
	const struct lease_grant *grant = &answer->grant;
	mono ends = ends_of(link_of(lessor, purse->lender), errand, grant, now);
	struct ahead *joins;

	if (next)
		open_window(lessor, purse, grant, counts_from(errand, now));
	joins = lessor_count_ahead(lessor, purse, grant, next);
	lessor_note_used(lessor, errand, answer);
	note_left(lessor, errand, answer, next, ends);
	if (lessor_has_windows(purse->lender))
		purse->ends = mono_later(purse->ends, ends);
	errand->store_left = grant->left;
	errand->restarted = answer->restarted;
	note_rest(lessor, errand, answer, now);
	if (grant->units > 0 && is_placed(purse->lender, grant))
		put_places(lessor, purse, grant, now);
	else
		put_units(lessor, purse, grant, joins, ends, now);
	if (joins)
		lessor_join_ahead(lessor, purse, joins, ends, now);
	if (grant->ahead > 0)
		lessor_put_ahead(lessor, errand, grant, now);
}

/* Units that were wanted and did not come may lie in cells. */
static void serve_from_all(struct lessor *lessor, struct errand *errand,
                           const struct lease_grant *grant,
                           const struct borrow_orders *orders, mono now)
{
	if (grant->units > 0 && grant->units < errand->want)
		lessor_count(lessor, COUNT_PARTIAL, 1);
	if (grant->units < errand->want)
		purse_gather(errand->purse, lessor->purses.own.grace, now);
	if (orders->what & BORROW_DENY)
		deny(lessor, errand->purse, orders, now);
	serve(errand, now);
}

static void go_on(struct lessor *lessor, struct errand *errand,
                  const struct borrow_orders *orders, mono now)
{
	struct purse *purse = errand->purse;

	if (orders->what & BORROW_GIVE_BACK)
		lessor_take_back(lessor, purse, now);
	if (orders->what & BORROW_QUARANTINE)
		purse_quarantine(purse, orders->until);
	if (orders->what & BORROW_KEEP_OUT)
		keep_out(lessor, errand, orders->until, now);
	go_again_or_end(lessor, errand, orders);
}

static void take_grant(struct lessor *lessor, struct errand *errand,
                       const struct lend_answer *answer, mono now)
{
	struct purse *purse = errand->purse;
	const struct link *link = link_of(lessor, purse->lender);
	const struct borrow_terms terms = lessor_borrow_terms(link);
	struct borrow_answer event = {
		.grant = &answer->grant,
		.want = errand->want,
		.capacity = errand->capacity,
		.changed = errand->changes != link->own.changes,
		.sent = errand->sent,
		.next = is_next_window(purse, answer, counts_from(errand, now)),
		.waits = answer->waits,
		.spent = errand->spent,
	};
	struct borrow_orders orders;
	struct borrow borrow;

	take_units(lessor, errand, answer, event.next, now);
	event.lives = credit_lives(load_relaxed(&purse->credit), now);
	borrow = purses_borrow(&lessor->purses, purse);
	orders = borrow_hear(&terms, &borrow, &event);
	purses_keep_borrow(&lessor->purses, purse, &borrow);
	if (orders.what & BORROW_SLEEP) {
		serve(errand, now); /* from units ahead: they live */
		sleep_until(lessor, errand, orders.until);
		return;
	}
	serve_from_all(lessor, errand, &answer->grant, &orders, now);
	borrow = purses_borrow(&lessor->purses, purse);
	orders = borrow_served(&terms, &borrow, &event, any_waits(errand));
	purses_keep_borrow(&lessor->purses, purse, &borrow);
	go_on(lessor, errand, &orders, now);
}

void lessor_tell_waiters(struct lessor *lessor, struct errand *errand,
                         enum store_result result)
{
	struct list *place;

	while ((place = list_first(&errand->waiters)))
		lessor_finish(list_item(place, struct ask, waiting), result);
	lessor_note_unheard(lessor, errand);
}

void lessor_fail_waiters(struct lessor *lessor, struct errand *errand,
                         enum store_result result)
{
	lessor_tell_waiters(lessor, errand, result);
	lessor_free_errand(lessor, errand);
}

/* Whether it will answer soon is for the next ask to find out, not for each of many; and
 * many that fail together are one failure. */
void lessor_back_off(struct lessor *lessor, struct link *link, mono now)
{
	uint32_t doublings = link->own.failures < BACKOFF_DOUBLINGS ? link->own.failures
	                                                            : BACKOFF_DOUBLINGS;
	uint64_t wait = (uint64_t)BACKOFF_FIRST_NS << doublings;
	uint64_t lot =
	    (lessor->config.node ^ lessor->sent) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	if (now.ns < load_relaxed(&link->shared.down_until_ns))
		return;
	link->own.failures++;
	wait += wait * lot >> 33;
	store_relaxed(&link->shared.down_until_ns, mono_after(now, wait).ns);
}

/* A connection that is gone answers, too: that nothing comes from there.  An answer that cannot
 * be believed is no sign of health, nor need the fault be more than one key's: if it was the
 * server's, the connection is gone, and the next ask is told so. */
void lessor_note_result(struct lessor *lessor, struct link *link,
                        enum store_result result, mono now)
{
	if (result == STORE_LATE || result == STORE_DOWN)
		lessor_back_off(lessor, link, now);
	else if (result != STORE_WRONG)
		link_recovers(link);
}

static void disbelieve(struct lessor *lessor, struct errand *errand,
                       enum shard_counter why, enum store_result result)
{
	lessor_count(lessor, why, 1);
	lessor_fail_waiters(lessor, errand, result);
}

/* LESSOR-4.  It was asked under the limit of that time: by the books of this node alone no more
 * than that is to be had of the window, and what the store says beyond is not believed.  So it may
 * be where nodes have other periods, too: a window of theirs that ended is not counted (L15). */
static void hold_to_books(struct lessor *lessor, const struct errand *errand,
                          struct lend_answer *answer, mono now)
{
	struct lease_grant *grant = &answer->grant;
	bool next = is_next_window(errand->purse, answer, now);
	uint64_t ahead = lessor_lent_ahead(errand->purse, next ? &grant->tag : NULL);
	uint64_t taken = next ? ahead : errand->purse->taken + ahead;
	uint64_t room = errand->capacity > taken ? errand->capacity - taken : 0;

	if (!lessor_has_windows(errand->purse->lender) || grant->units <= room ||
	    (next && ahead == 0))
		return;
	lessor_count(lessor, COUNT_WRONG, 1);
	grant->units = room;
	grant->left = 0;
	grant->retry_us = grant->lasts_us;
}

static void on_grant(struct lessor *lessor, struct link *link, struct errand *errand,
                     const struct lend_answer *answer, mono now)
{
	bool possible = is_possible(link, errand, &answer->grant);
	mono from = counts_from(errand, now);
	bool fits = is_believable(link, errand, answer, from);
	struct lend_answer believed = *answer;

	if (possible && !is_fenced(link, now) &&
	    has_jumped(link, errand, &answer->grant, now))
		fence(lessor, link, now);
	if (is_fenced(link, now)) {
		disbelieve(lessor, errand, COUNT_JUMPED, STORE_DOWN); /* JUMP-3 */
	} else if (!possible || (!fits && from.ns == now.ns)) {
		disbelieve(lessor, errand, COUNT_WRONG, STORE_WRONG);
	} else if (!fits || is_dead_by(link, errand, now)) {
		lessor_fail_waiters(lessor, errand, STORE_LATE); /* it was lent later */
	} else {
		hold_to_books(lessor, errand, &believed, now);
		take_grant(lessor, errand, &believed, now);
	}
}

/* No call waits for its places.  They go back under their tag: what was left of the block before went
 * back before this was asked for. */
static void return_late(struct lessor *lessor, struct errand *errand,
                        const struct lease_grant *grant)
{
	struct purse *purse = errand->purse;

	if (grant->units > 0 && is_placed(purse->lender, grant)) {
		lessor_set_tag(purse, grant->tag);
		purse->taken += grant->units;
		lessor_count(lessor, COUNT_GRANTS, 1);
		lessor_count(lessor, COUNT_UNITS, grant->units);
		lessor_give_back(lessor, purse, grant->units, false);
	}
	lessor_free_errand(lessor, errand);
}

static void note_trip(struct link *link, const struct errand *errand, mono now)
{
	uint64_t trip_ns = now.ns - errand->sent.ns;

	link->own.trip_ns =
	    link->own.trip_ns == 0 ? trip_ns : (link->own.trip_ns * 7 + trip_ns) / 8;
}

void lessor_on_answer(struct store_home *home,
                      const struct lend_answer *answer) UNCHECKED
{
	struct lessor *lessor = (struct lessor *)home;
	uint32_t slot = (uint32_t)(answer->number % ERRANDS);
	struct errand *errand = &lessor->errands[slot];
	mono now = clock_now(lessor->config.clock);
	struct link *link;
	bool in_time;

	lessor->heard++;
	if (slot == ERRAND_NONE)
		return; /* of what was given back: nothing depends on it */
	if (!errand->purse || errand->number != answer->number) {
		lessor_count(lessor, COUNT_STRAY, 1); /* LESSOR-2 */
		return;
	}
	link = link_of(lessor, errand->purse->lender);
	probe_lease(errand->purse->lender->name, errand->purse->lender->name_len,
	            answer->result, errand->want,
	            answer->result == STORE_DONE ? answer->grant.units : 0,
	            now.ns - errand->sent.ns);
	in_time = !errand->is_overdue;
	note_trip(link, errand, now);
	lessor_unlist_errand(lessor, errand);
	if (in_time) /* else it was taken for down, and stays so: L11 */
		lessor_note_result(lessor, link, answer->result, now);
	if (answer->result != STORE_DONE)
		lessor_fail_waiters(lessor, errand, answer->result);
	else if (errand->forget)
		resume(lessor, errand);
	else if (!in_time && link->own.lender->lending == LENDING_PLACES &&
	         is_possible(link, errand, &answer->grant))
		return_late(lessor, errand, &answer->grant);
	else
		on_grant(lessor, link, errand, answer, now);
}
