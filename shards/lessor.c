/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* lessor.c -- asks that come, answers that come, and what becomes of them. */
#include "shards/lessor.h"

#include "engine/check.h"
#include "runtime/clock.h"
#include "shards/local.h"

#define NO_SEAT UINT32_MAX
#define BACKOFF_FIRST_NS 10000000 /* 10 ms, doubled for each further failure ... */
#define IDLE_WINDOWS_NOTED SIZER_IDLE_MOST
#define PLACE_DELAY_MAX_NS (GALE_SPAN_MAX_US * 1000)
#define METER_LIFE_LEAST_NS 1000000
#define HELD_KEYS_PAUSE_NS 1000000000 /* until a closed lender's are looked at again */
#define DRAIN_TURNS_MOST 100000
#define LET_GO_PER_TURN 256
#define SLOW_READERS_NS 1000000 /* how long until they are looked at again */
#define BACKOFF_DOUBLINGS 7     /* ... up to 1.28 s, and half as much again, by lot */

static const mono never = { UINT64_MAX };

/* ---- Answering ------------------------------------------------------------------- */

static void finish(struct ask *ask, enum store_result result)
{
	if (list_has(&ask->waiting))
		list_remove(&ask->waiting); /* O6 */
	if (list_has(&ask->patience))
		list_remove(&ask->patience);
	ask->result = result;
	ask->home->answered(ask->home, ask); /* last: it is not ours any more */
}

/* Like anyone else; false if the store must be asked. */
static bool settle(struct purse *purse, struct ask *ask, mono now)
{
	struct store_op *op = &ask->op;
	enum local how;
	uint64_t word;

	purse_use(purse);
	if (ask->lender->lending == LENDING_PLACES &&
	    purse_place(purse, now, op->cost, &op->answer)) {
		finish(ask, STORE_DONE);
		return true;
	}
	how = local_try(ask->lender, purse, NO_SEAT, now, op->cost, &word);
	if (how == LOCAL_UNKNOWN)
		return false;
	local_tell(&op->answer, ask->lender, how, word, now);
	finish(ask, STORE_DONE);
	return true;
}

/* ---- Asks ------------------------------------------------------------------------ */

static struct purse_name name_of(const struct ask *ask)
{
	uint32_t skip = 1u + ask->lender->name_len;

	return (struct purse_name){
		.lender = ask->lender,
		.key = ask->key + skip,
		.key_len = (uint16_t)(ask->op.key_len - skip),
		.hash = ask->hash,
	};
}

static struct link *listed_link(struct lessor *lessor, struct lender *lender)
{
	struct link *link = link_of(lessor, lender);

	if (link->own.listed)
		return link;
	lender->hold(lender);
	link->own.lender = lender;
	link->own.listed = true;
	link->own.lent_first = link->own.lent_last = NUMBER_LAST;
	link->own.round_last = NUMBER_LAST;
	list_init(&link->own.wanting);
	list_init(&link->own.flying);
	list_init(&link->own.patience);
	link->own.next = lessor->links;
	lessor->links = link;
	return link;
}

static struct purse *purse_for(struct lessor *lessor, const struct ask *ask)
{
	struct purse_name name = name_of(ask);
	struct purse *purse = purses_find(&lessor->purses, &name);
	struct link *link;

	if (purse)
		return purse;
	link = listed_link(lessor, ask->lender);
	purse = purses_add(&lessor->purses, &name);
	link->own.purses += purse != NULL;
	return purse;
}

struct errand *lessor_errand(struct lessor *lessor, struct purse *purse)
{
	struct purse_own *own = purses_own(&lessor->purses, purse);
	struct list *place;
	struct errand *errand;

	if (own->errand != ERRAND_NONE)
		return &lessor->errands[own->errand]; /* O1 */
	place = list_first(&lessor->free_errands);
	if (!place)
		return NULL;
	list_remove(place);
	errand = list_item(place, struct errand, place);
	errand->purse = purse;
	errand->number = 0;
	errand->store_left = GALE_NEVER;
	errand->forget = false;
	own->errand = (uint32_t)(errand - lessor->errands);
	list_append(&link_of(lessor, purse->lender)->own.wanting, place);
	return errand;
}

static void free_errand(struct lessor *lessor, struct errand *errand)
{
	gale_assert(list_is_empty(&errand->waiters));
	purses_own(&lessor->purses, errand->purse)->errand = ERRAND_NONE;
	errand->purse = NULL;
	errand->number = 0;
	if (list_has(&errand->place))
		list_remove(&errand->place);
	list_append(&lessor->free_errands, &errand->place);
}

/* Behind all that are due no later; most often that is the end.  Who has waited for a
 * purse is due sooner than those who have come since. */
static void list_by_due(struct list *list, struct ask *ask)
{
	struct list *at = list;

	while (at->before != list &&
	       list_item(at->before, struct ask, patience)->due.ns > ask->due.ns)
		at = at->before;
	list_append(at, &ask->patience);
}

static void wait_for(struct lessor *lessor, struct errand *errand, struct ask *ask,
                     mono now)
{
	struct link *link = link_of(lessor, ask->lender);

	if (ask->due.ns == 0)
		ask->due = mono_after(now, ask->lender->patience_ns);
	list_append(&errand->waiters, &ask->waiting);
	list_by_due(&link->own.patience, ask); /* O6 */
}

static bool is_down(struct lessor *lessor, struct lender *lender, mono now)
{
	struct link *link = link_of(lessor, lender);

	return now.ns < load_relaxed(&link->shared.down_until_ns);
}

static void fail(struct lessor *lessor, struct ask *ask, enum shard_counter why,
                 enum store_result result)
{
	lessor_count(lessor, why, 1);
	finish(ask, result);
}

static void ask_about(struct lessor *lessor, struct purse *purse, struct ask *ask,
                      mono now)
{
	struct errand *errand;

	if (settle(purse, ask, now))
		return;
	if (is_down(lessor, ask->lender, now)) {
		fail(lessor, ask, COUNT_DOWN, STORE_DOWN);
		return;
	}
	errand = lessor_errand(lessor, purse);
	if (errand)
		wait_for(lessor, errand, ask, now);
	else
		fail(lessor, ask, COUNT_NO_ERRAND, STORE_BUSY);
}

/* All purses are in use.  Those with an errand will not be for long. */
static void ask_without_purse(struct lessor *lessor, struct ask *ask, mono now)
{
	if (lessor_is_idle(lessor) && !purses_turn(&lessor->purses)) {
		fail(lessor, ask, COUNT_NO_PURSE, STORE_CROWDED); /* L8 */
		return;
	}
	ask->due = mono_after(now, ask->lender->patience_ns);
	list_append(&lessor->crowded, &ask->waiting);
}

static void ask_for_units(struct lessor *lessor, struct ask *ask, mono now)
{
	struct purse *purse = purse_for(lessor, ask);

	if (purse)
		ask_about(lessor, purse, ask, now);
	else
		ask_without_purse(lessor, ask, now);
}

/* Gives it a purse, if there may be room for one, and returns whether there was. */
static bool place(struct lessor *lessor, struct ask *ask, bool room, mono now)
{
	struct purse *purse = room ? purse_for(lessor, ask) : NULL;

	if (purse) {
		list_remove(&ask->waiting);
		ask_about(lessor, purse, ask, now);
	} else if (mono_reached(now, ask->due)) {
		fail(lessor, ask, COUNT_NO_PURSE, STORE_CROWDED);
	}
	return purse != NULL;
}

/* Those who wait for a purse, in the order they came; returns when to look again. */
static mono place_crowded(struct lessor *lessor, mono now)
{
	struct list *at = lessor->crowded.next, *next;
	mono due = never;
	bool room = true;

	for (; at != &lessor->crowded; at = next) {
		struct ask *ask = list_item(at, struct ask, waiting);
		mono ask_due = ask->due;

		next = at->next;
		room = place(lessor, ask, room, now);
		if (!room)
			due = mono_earlier(due, ask_due);
	}
	return mono_earlier(due, list_is_empty(&lessor->crowded)
	                             ? never
	                             : mono_after(now, SLOW_READERS_NS));
}

static void refuse_crowded(struct lessor *lessor)
{
	struct list *place;

	while ((place = list_first(&lessor->crowded)))
		fail(lessor, list_item(place, struct ask, waiting), COUNT_NO_PURSE,
		     STORE_CROWDED);
}

/* ---- What the store itself decides ----------------------------------------------- */

/* It counts from when the store said so, however late it is heard of. */
static void remember_denial(struct lessor *lessor, const struct ask *ask, mono said,
                            mono now)
{
	uint64_t retry_us = ask->op.answer.retry_after_us;
	struct purse *purse;
	mono until;

	if (retry_us >= GALE_NEVER / 1000)
		return; /* a cost that never passes denies nobody else */
	until = mono_after(said, retry_us * 1000);
	purse = mono_reached(now, until) ? NULL : purse_for(lessor, ask);
	if (!purse)
		return;
	purse_use(purse);
	purse_deny(purse, until, ask->op.cost);
}

/* Takes out what nobody has taken; returns how much could be given back. */
static uint64_t empty(struct lessor *lessor, struct purse *purse, mono now)
{
	struct block *block;
	uint64_t left;

	if (purse->lender->lending != LENDING_PLACES)
		return purse_empty(purse, now);
	(void)purse_empty(purse, now); /* burst: it is worth nothing to the store */
	block = load_relaxed(&purse->block);
	left = block ? block_close(block, now) : 0;
	purses_take_block(&lessor->purses, purse);
	return left;
}

void lessor_take_back(struct lessor *lessor, struct purse *purse, mono now)
{
	uint64_t left = empty(lessor, purse, now);

	if (left > 0 && !purse->lender->carry_over)
		lessor_give_back(lessor, purse, left);
}

/* Nothing that this node holds of the key is worth anything now. */
static void forget_key(struct lessor *lessor, const struct ask *ask, mono now)
{
	struct purse_name name = name_of(ask);
	struct purse *purse = purses_find(&lessor->purses, &name);
	struct purse_own *own;

	if (!purse)
		return;
	own = purses_own(&lessor->purses, purse);
	if (own->errand != ERRAND_NONE && lessor->errands[own->errand].number != 0)
		lessor->errands[own->errand].forget = true;
	(void)empty(lessor, purse, now);
	purse_deny(purse, (mono){ 0 }, 0);
	lessor_window_over(lessor, purse);
	purse->books.tag = (struct gale_slot){ 0 };
	purse->books.ends = (mono){ 0 };
}

static void ask_store(struct lessor *lessor, struct ask *ask, mono now)
{
	if (ask->op.verb == STORE_RESET)
		forget_key(lessor, ask, now);
	ask->result = store_run(ask->lender->store, &ask->op, /* patient= */ true);
	if (ask->op.verb == STORE_STEP && ask->result == STORE_DONE &&
	    ask->op.answer.verdict == GALE_DENY &&
	    ask->lender->lending == LENDING_DENIALS)
		remember_denial(lessor, ask, now, now);
	finish(ask, ask->result);
}

static bool lends(const struct lender *lender)
{
	return lender->lending == LENDING_UNITS || lender->lending == LENDING_PLACES;
}

void lessor_ask(struct lessor *lessor, struct ask *ask, mono now)
{
	if (ask->is_note) {
		remember_denial(lessor, ask, ask->due, now);
		finish(ask, STORE_DONE);
	} else if (lends(ask->lender) && ask->op.verb == STORE_STEP &&
	           ask->op.cost <= CREDIT_UNITS_MAX) {
		ask_for_units(lessor, ask, now);
	} else {
		ask_store(lessor, ask, now);
	}
}

/* ---- Answers --------------------------------------------------------------------- */

static bool is_meter(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_GCRA ||
	       rule->is.kind == GALE_RULE_TOKEN_BUCKET;
}

static bool has_windows(const struct lender *lender)
{
	return lender->lending == LENDING_UNITS && !is_meter(&lender->rule);
}

/* Does the grant open another window than the purse's books are about?  A meter has no
 * windows; its books are closed by the clock. */
static bool is_next_window(const struct purse *purse, const struct lend_answer *answer,
                           mono now)
{
	if (!has_windows(purse->lender))
		return mono_reached(now, purse->books.ends);
	return !slot_equal(answer->grant.tag, purse->books.tag);
}

/* What a meter can lend in one period of the books: what it holds, and what accrues from
 * when the first answer of the period may have been given until it ends. */
static uint64_t most_of_meter(const struct lender *lender)
{
	uint64_t us = lender->window_us + lender->patience_ns / 1000 * 2;
	uint128 accrued;

	us += us / 1000 * lender->drift_ppm / 500 + 1000; /* both clocks drift */
	accrued = wide_quotient((uint128)us * lender->rule.is.limit,
	                        lender->rule.is.period_us);
	if (accrued > GALE_UNITS_MAX)
		return GALE_UNITS_MAX;
	return lender->rule.capacity + 2 + (uint64_t)accrued;
}

/* O4, and what no honest store would say. */
static bool is_believable(const struct errand *errand, const struct lend_answer *answer,
                          mono now)
{
	const struct purse *purse = errand->purse;
	const struct lender *lender = purse->lender;
	const struct lease_grant *grant = &answer->grant;
	bool next = is_next_window(purse, answer, now);

	if (grant->units > errand->want || grant->lasts_us > GALE_SPAN_MAX_US)
		return false;
	if (lender->lending == LENDING_PLACES)
		return grant->delay_ns <= PLACE_DELAY_MAX_NS;
	if (is_meter(&lender->rule))
		return (next ? 0 : purse->books.taken) + grant->units <=
		       most_of_meter(lender);
	if (grant->lasts_us > lender->window_us)
		return false;
	if (!next)
		return purse->books.taken + grant->units <= lender->rule.capacity;
	return grant->tag.us > purse->books.tag.us &&
	       (lender->carry_over || mono_reached(now, purse->books.ends));
}

void lessor_window_over(struct lessor *lessor, struct purse *purse)
{
	uint64_t left = purse_left(purse, (mono){ 0 });
	uint64_t taken = purse->books.taken;
	uint64_t demand = taken > left ? taken - left : 0;
	struct lender *lender = purse->lender;

	demand += swap_relaxed(&purse->refused, 0);
	sizer_observe(&lender->sizing, &purses_own(&lessor->purses, purse)->sizer,
	              lessor_hedge(lessor, purse), demand);
	purse->books.taken = 0;
}

/* Windows in which nobody asked are learned from too. */
static void note_idle_windows(struct lessor *lessor, struct purse *purse, mono now)
{
	uint64_t idle = us_between(purse->books.ends, now) / purse->lender->window_us;

	for (uint64_t i = 0; i < idle && i < IDLE_WINDOWS_NOTED; i++)
		lessor_window_over(lessor, purse);
}

static void open_window(struct lessor *lessor, struct purse *purse,
                        const struct lease_grant *grant, mono now)
{
	if (purse->books.ends.ns > 0) {
		lessor_window_over(lessor, purse);
		note_idle_windows(lessor, purse, now);
	}
	if (has_windows(purse->lender))
		purse->books.tag = grant->tag;
	purse->books.ends = has_windows(purse->lender)
	                        ? (mono){ 0 }
	                        : mono_after(now, purse->lender->window_us * 1000);
}

static void put_units(struct lessor *lessor, struct purse *purse,
                      const struct lease_grant *grant, mono ends, mono now)
{
	struct lender *lender = purse->lender;
	uint64_t units = grant->units;

	if (units == 0)
		return;
	purse->books.taken += units;
	if (!has_windows(lender))
		purse->books.tag = grant->tag; /* only the latest can go back */
	if (lender->carry_over)
		purse_put(purse, never, units, now);
	else
		purse_put(purse, ends, units, now);
	lessor_list_lent(lessor, purse, now);
	lessor_count(lessor, COUNT_GRANTS, 1);
	lessor_count(lessor, COUNT_UNITS, units);
}

/* The first place is so long from when the store answered, not from when it was asked:
 * nobody may leave early. */
static void put_places(struct lessor *lessor, struct purse *purse,
                       const struct lease_grant *grant, mono now)
{
	struct block block = {
		.rule = &purse->lender->rule,
		.first = mono_after(now, grant->delay_ns),
		.slot = grant->tag,
		.count = grant->units,
	};

	lessor_take_back(lessor, purse, now);
	purse->books.tag = grant->tag;
	purse->books.taken += grant->units;
	if (!purses_give_block(&lessor->purses, purse, &block)) {
		lessor_give_back(lessor, purse, grant->units); /* no memory */
		return;
	}
	lessor_list_lent(lessor, purse, now);
	lessor_count(lessor, COUNT_GRANTS, 1);
	lessor_count(lessor, COUNT_UNITS, grant->units);
}

/* So little was left of the window that the units were dead on arrival.  Whoever asked
 * again would get more of the same, until the limit is gone: nobody needs to, before the
 * store's window is over. */
static void note_dead(struct lessor *lessor, const struct errand *errand,
                      const struct lease_grant *grant, mono ends, mono now)
{
	const struct lender *lender = errand->purse->lender;

	if (!has_windows(lender) || lender->carry_over || grant->units == 0 ||
	    credit_lives(credit_until(ends, grant->units), now))
		return;
	lessor_count(lessor, COUNT_EXPIRED, 1);
	purse_deny(errand->purse, mono_after(errand->sent, grant->lasts_us * 1000), 1);
}

static bool is_placed(const struct lender *lender, const struct lease_grant *grant)
{
	return lender->lending == LENDING_PLACES &&
	       (grant->tag.us > 0 || grant->tag.part > 0);
}

/* The store has not got what was wanted: until it may, nobody needs to ask. */
static void note_spent(struct lessor *lessor, const struct errand *errand,
                       const struct lease_grant *grant, mono now)
{
	struct purse *purse = errand->purse;
	uint64_t wait_us = grant->units == 0 ? grant->retry_us : grant->lasts_us;

	if (!has_windows(purse->lender) && grant->units > 0)
		return; /* more may accrue at any time */
	if (wait_us > GALE_SPAN_MAX_US)
		wait_us = purse->lender->window_us;
	purse_deny(purse, mono_after(errand->sent, wait_us * 1000),
	           grant->left + purse_left(purse, now) + 1);
	lessor_count(lessor, COUNT_SPENT, 1);
}

static void serve(struct errand *errand, mono now)
{
	struct list *place = list_first(&errand->waiters), *next;

	for (; place && place != &errand->waiters; place = next) {
		next = place->next;
		(void)settle(errand->purse, list_item(place, struct ask, waiting), now);
	}
}

/* Waiters that were not served make the errand go again. */
static void go_again_or_rest(struct lessor *lessor, struct errand *errand)
{
	struct link *link = link_of(lessor, errand->purse->lender);

	if (list_is_empty(&errand->waiters)) {
		free_errand(lessor, errand);
		return;
	}
	errand->number = 0;
	errand->forget = false;
	list_append(&link->own.wanting, &errand->place);
}

/* A window's units die with it.  Those of a meter are bounded by how many are out, not by
 * when they are spent: they live as long as the meter takes to fill, so that a store which
 * is slower than that can be leased from at all. */
static mono ends_of(const struct errand *errand, const struct lease_grant *grant,
                    mono now)
{
	const struct lender *lender = errand->purse->lender;

	if (is_meter(&lender->rule))
		return mono_after(now, METER_LIFE_LEAST_NS + lender->window_us * 1000);
	if (lender->lending == LENDING_PLACES) /* of its burst: for those who wait */
		return mono_after(now, METER_LIFE_LEAST_NS);
	return mono_until(errand->sent, (lasting){ grant->lasts_us },
	                  lender->drift_ppm); /* O3 */
}

static void take_grant(struct lessor *lessor, struct errand *errand,
                       const struct lend_answer *answer, mono now)
{
	struct purse *purse = errand->purse;
	const struct lease_grant *grant = &answer->grant;
	mono ends = ends_of(errand, grant, now);
	bool next = is_next_window(purse, answer, now);

	if (next)
		open_window(lessor, purse, grant, now);
	if (has_windows(purse->lender))
		purse->books.ends = mono_later(purse->books.ends, ends);
	purse->holders =
	    grant->holders < UINT8_MAX ? (uint8_t)grant->holders : UINT8_MAX;
	errand->store_left = grant->left;
	if (grant->units > 0 && is_placed(purse->lender, grant))
		put_places(lessor, purse, grant, now);
	else
		put_units(lessor, purse, grant, ends, now);
	if (grant->units > 0 && grant->units < errand->want)
		lessor_count(lessor, COUNT_PARTIAL, 1);
	if (grant->units < errand->want) {
		purse_gather(purse, now);
		note_spent(lessor, errand, grant, now);
	}
	note_dead(lessor, errand, grant, ends, now);
	serve(errand, now);
	go_again_or_rest(lessor, errand);
}

static void fail_waiters(struct lessor *lessor, struct errand *errand,
                         enum store_result result)
{
	struct list *place;

	while ((place = list_first(&errand->waiters)))
		finish(list_item(place, struct ask, waiting), result);
	free_errand(lessor, errand);
}

/* Whether it will answer soon is for the next ask to find out, not for each of many. */
static void back_off(struct lessor *lessor, struct link *link, mono now)
{
	uint32_t doublings = link->own.failures < BACKOFF_DOUBLINGS ? link->own.failures
	                                                            : BACKOFF_DOUBLINGS;
	uint64_t wait = (uint64_t)BACKOFF_FIRST_NS << doublings;
	uint64_t lot =
	    (lessor->config.node ^ lessor->sent) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	link->own.failures++;
	wait += wait * lot >> 33;
	store_relaxed(&link->shared.down_until_ns, mono_after(now, wait).ns);
}

static void on_answer(struct lend_home *home,
                      const struct lend_answer *answer) UNCHECKED
{
	struct lessor *lessor = (struct lessor *)home;
	uint32_t slot = (uint32_t)(answer->number % ERRANDS);
	struct errand *errand = &lessor->errands[slot];
	mono now = clock_now(lessor->config.clock);
	struct link *link;

	if (slot == ERRAND_NONE)
		return; /* of what was given back: nothing depends on it */
	if (!errand->purse || errand->number != answer->number) {
		lessor_count(lessor, COUNT_STRAY, 1); /* O2 */
		return;
	}
	link = link_of(lessor, errand->purse->lender);
	list_remove(&errand->place);
	errand->number = 0;
	link->own.failures = 0;
	store_relaxed(&link->shared.down_until_ns, 0);
	if (answer->result != STORE_DONE) {
		fail_waiters(lessor, errand, answer->result);
	} else if (errand->forget) {
		go_again_or_rest(lessor, errand);
	} else if (!is_believable(errand, answer, now)) {
		lessor_count(lessor, COUNT_WRONG, 1);
		fail_waiters(lessor, errand, STORE_WRONG);
	} else {
		take_grant(lessor, errand, answer, now);
	}
}

/* ---- Turns ----------------------------------------------------------------------- */

/* The store has not answered in time: whether the units were lent is not known, so they
 * are spent. */
static void give_up_overdue(struct lessor *lessor, struct link *link, mono now)
{
	struct list *place;

	while ((place = list_first(&link->own.flying))) {
		struct errand *errand = list_item(place, struct errand, place);

		if (!mono_reached(now, errand->due))
			return;
		lessor_count(lessor, COUNT_LOST, 1);
		if (now.ns >= load_relaxed(&link->shared.down_until_ns))
			back_off(lessor, link, now);
		fail_waiters(lessor, errand, STORE_LATE);
	}
}

static void answer_impatient(struct lessor *lessor, struct link *link, mono now)
{
	struct list *place;

	while ((place = list_first(&link->own.patience))) {
		struct ask *ask = list_item(place, struct ask, patience);

		if (!mono_reached(now, ask->due))
			return;
		fail(lessor, ask, COUNT_IMPATIENT, STORE_LATE); /* O6 */
	}
}

static mono due_of(const struct link *link)
{
	struct list *flying = list_first(&link->own.flying);
	struct list *patience = list_first(&link->own.patience);
	mono due = never;

	if (flying)
		due = mono_earlier(due, list_item(flying, struct errand, place)->due);
	if (patience)
		due = mono_earlier(due, list_item(patience, struct ask, patience)->due);
	if (link->own.lent_first != NUMBER_LAST)
		due = mono_earlier(due, link->own.look_due);
	return due;
}

/* Purses of lenders that nobody asks any more, some at a time; true when all are out. */
static bool let_go(struct lessor *lessor)
{
	struct purses *set = &lessor->purses;
	uint32_t budget = LET_GO_PER_TURN;

	while (budget-- > 0 && lessor->closing_hand < set->own.made) {
		struct purse *purse = purses_at(set, lessor->closing_hand++);

		if (purse->lender && load_relaxed(&purse->lender->closed) &&
		    load_relaxed(&purse->pins) != PURSE_DEAD)
			(void)purses_evict(set, purse);
	}
	return lessor->closing_hand >= set->own.made;
}

static bool link_is_idle(const struct link *link)
{
	return list_is_empty(&link->own.wanting) && list_is_empty(&link->own.flying);
}

static bool link_is_over(const struct link *link)
{
	return load_relaxed(&link->own.lender->closed) && link_is_idle(link);
}

/* A purse that somebody holds keeps its lender. */
static bool unlist_over(struct lessor *lessor)
{
	struct link **at = &lessor->links;
	bool all = true;

	while (*at) {
		struct link *link = *at;

		if (link_is_over(link) && link->own.purses == 0) {
			*at = link->own.next;
			link->own.listed = false;
			link->own.lender->drop(link->own.lender); /* it may be gone */
			continue;
		}
		all &= !link_is_over(link);
		at = &link->own.next;
	}
	return all;
}

static bool any_over(const struct lessor *lessor)
{
	for (const struct link *at = lessor->links; at; at = at->own.next)
		if (link_is_over(at))
			return true;
	return false;
}

/* Returns when to go on with it.  Held keys keep a closed lender's purses: they are looked
 * at again when somebody wakes the shard for it, or after a while. */
static mono close_lenders(struct lessor *lessor, mono now)
{
	if (!any_over(lessor))
		return never;
	if (!mono_reached(now, lessor->close_due))
		return lessor->close_due;
	if (!let_go(lessor))
		return now;
	lessor->closing_hand = 0;
	lessor_send_returns(lessor);
	lessor->close_due = mono_after(
	    now, purses_turn(&lessor->purses) ? SLOW_READERS_NS : HELD_KEYS_PAUSE_NS);
	return unlist_over(lessor) ? never : lessor->close_due;
}

mono lessor_turn(struct lessor *lessor, mono now)
{
	bool more = false;
	mono due;

	place_crowded(lessor, now);

	for (struct link *link = lessor->links; link; link = link->own.next) {
		give_up_overdue(lessor, link, now);
		answer_impatient(lessor, link, now);
		lessor_send(lessor, link, now);
		lessor_look(lessor, link, now);
		more |= !list_is_empty(&link->own.wanting);
	}
	lessor_send_returns(lessor);
	due = close_lenders(lessor, now);
	due = mono_earlier(due, place_crowded(lessor, now));
	if (purses_turn(&lessor->purses))
		due = mono_earlier(due, mono_after(now, SLOW_READERS_NS));
	for (struct link *link = lessor->links; link; link = link->own.next)
		due = mono_earlier(due, due_of(link));
	return more ? now : due;
}

bool lessor_is_idle(const struct lessor *lessor)
{
	for (const struct link *link = lessor->links; link; link = link->own.next)
		if (!link_is_idle(link))
			return false;
	return true;
}

/* ---- Opening and closing --------------------------------------------------------- */

static void evict(struct evictor *self, struct purse *purse)
{
	struct lessor *lessor =
	    (struct lessor *)((char *)self - offsetof(struct lessor, evictor));
	mono now = clock_now(lessor->config.clock);

	lessor_unlist_lent(lessor, purse);
	lessor_window_over(lessor, purse);
	lessor_take_back(lessor, purse, now);
	lessor_count(lessor, COUNT_EVICTED, 1);
}

static void gone(struct evictor *self, struct purse *purse)
{
	struct lessor *lessor =
	    (struct lessor *)((char *)self - offsetof(struct lessor, evictor));

	link_of(lessor, purse->lender)->own.purses--;
}

bool lessor_open(struct lessor *lessor, const struct lessor_config *config)
{
	lessor->config = *config;
	lessor->home.on_answer = on_answer;
	lessor->evictor.evict = evict;
	lessor->evictor.gone = gone;
	list_init(&lessor->free_errands);
	list_init(&lessor->crowded);
	for (uint32_t i = 1; i < ERRANDS; i++) {
		list_init(&lessor->errands[i].waiters);
		list_append(&lessor->free_errands, &lessor->errands[i].place);
	}
	return purses_open(&lessor->purses, config->allocator, config->grace,
	                   &lessor->evictor, config->max_purses);
}

static void close_link(struct lessor *lessor, struct link *link)
{
	struct list *place;

	while ((place = list_first(&link->own.flying)))
		fail_waiters(lessor, list_item(place, struct errand, place),
		             STORE_LATE);
	while ((place = list_first(&link->own.wanting)))
		fail_waiters(lessor, list_item(place, struct errand, place),
		             STORE_LATE);
}

static void empty_all(struct lessor *lessor)
{
	struct purses *set = &lessor->purses;

	for (uint32_t i = 0; i < set->own.made; i++) {
		struct purse *purse = purses_at(set, i);

		if (purse->lender && load_relaxed(&purse->pins) != PURSE_DEAD)
			evict(&lessor->evictor, purse);
	}
	lessor_send_returns(lessor);
}

/* The longest that any of the stores may still take. */
static mono drain_deadline(const struct lessor *lessor, mono now)
{
	uint64_t patience_ns = 0;

	for (const struct link *at = lessor->links; at; at = at->own.next)
		if (at->own.lender->patience_ns > patience_ns)
			patience_ns = at->own.lender->patience_ns;
	return mono_after(now, patience_ns);
}

static void drain(struct lessor *lessor) ON(actor_role)
{
	mono now = clock_now(lessor->config.clock), before, due;
	mono deadline = drain_deadline(lessor, now);
	uint32_t turns = DRAIN_TURNS_MOST; /* the clock may stand still */

	do {
		before = now;
		due = lessor_turn(lessor, now);
		now = clock_now(lessor->config.clock);
	} while (--turns > 0 && !lessor_is_idle(lessor) &&
	         !mono_reached(now, deadline) &&
	         (now.ns > before.ns || mono_reached(now, due)));
}

void lessor_close(struct lessor *lessor)
{
	drain(lessor);
	refuse_crowded(lessor);
	for (struct link *link = lessor->links; link; link = link->own.next)
		close_link(lessor, link);
	empty_all(lessor);
	while (lessor->links) {
		struct link *link = lessor->links;

		lessor->links = link->own.next;
		link->own.listed = false;
		link->own.lender->drop(link->own.lender);
	}
}

void lessor_free(struct lessor *lessor)
{
	purses_close(&lessor->purses);
}
