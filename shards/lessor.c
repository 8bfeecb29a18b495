/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lessor.c -- asks that come, and what the store itself decides; its opening and end.
 *
 * Threads   The shard's actor; lessor_open and lessor_free, while no other thread is there.
 *           A limiter's closed is written by others, and down_until_ns read by them.
 */
#include "shards/lessor.h"

#include "engine/check.h"
#include "runtime/clock.h"
#include "runtime/counter.h"
#include "runtime/wake.h"
#include "shards/ahead.h"
#include "shards/local.h"

#define DRAIN_TURNS_MOST 100000
#define FLUSH_PAUSE_NS 1000000 /* until connections are looked at again */

/* ---- Answering ------------------------------------------------------------------- */

void lessor_finish(struct ask *ask, enum store_result result)
{
	if (list_has(&ask->waiting))
		list_remove(&ask->waiting); /* LESSOR-6 */
	if (list_has(&ask->patience))
		list_remove(&ask->patience);
	ask->result = result;
	ask->home->answered(ask->home, ask); /* last: it is not ours any more */
}

/* What was taken for it may go back.  The actor does not evict what it has just taken from. */
static void keep(struct ask *ask, struct purse *purse, struct told told, mono now)
{
	if (ask->keeps && purse_pin(purse))
		ask->kept = kept_of(purse, kept_voids(purse), ask->op.cost, told, now);
}

/* Like anyone else; false if the store must be asked. */
bool lessor_settle(struct purse *purse, struct ask *ask, mono now)
{
	struct store_op *op = &ask->op;
	enum local how;
	struct told told;

	purse_use(purse);
	if (ask->lender->lending == LENDING_PLACES &&
	    purse_place(purse, now, op->cost, &op->answer)) {
		lessor_finish(ask, STORE_DONE);
		return true;
	}
	how = local_try(ask->lender, purse, NO_SEAT, now, op->cost, &told);
	if (how == LOCAL_UNKNOWN && !ask->keeps &&
	    ahead_take(ask->lender, purse, now, op->cost, &told))
		how = LOCAL_TAKEN;
	if (how == LOCAL_UNKNOWN)
		return false;
	local_tell(&op->answer, ask->lender, how, told);
	if (how == LOCAL_TAKEN)
		keep(ask, purse, told, now);
	if (ask->restarted && how == LOCAL_TAKEN)
		op->answer.why = GALE_WHY_RESTARTED;
	lessor_finish(ask, STORE_DONE);
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
	link->own.turning = (struct numbers){ NUMBER_LAST, NUMBER_LAST };
	link->own.begun = (struct numbers){ NUMBER_LAST, NUMBER_LAST };
	link->own.ahead_due = (mono){ 0 };
	link->own.trip_ns = 0;
	lessor_copy_terms(link);
	link->own.lives = LIVES_UNKNOWN;
	link->own.recheck = 0;
	link->own.unchanged = 0;
	link->own.books_until = (mono){ 0 };
	link->own.recall_due = (mono){ 0 };
	link->own.unheard = false;
	link->own.jump = (struct jump){ 0 };
	link->own.fenced_until = (mono){ 0 };
	link->own.leave_due = (mono){ 0 };
	list_init(&link->own.wanting);
	list_init(&link->own.flying);
	list_init(&link->own.overdue);
	list_init(&link->own.sleeping);
	list_init(&link->own.patience);
	link->own.next = lessor->links;
	lessor->links = link;
	return link;
}

static const struct link *link_at(const struct lessor *lessor,
                                  const struct store *store)
{
	const struct link *at = lessor->links;

	while (at && at->own.client.store != store)
		at = at->own.next;
	return at;
}

bool lessor_store_is_idle(const struct link *link)
{
	const struct store_client *client = &link->own.client;

	return !client->desk || client->store->ops->is_idle(client);
}

bool lessor_has_store_alone(const struct lessor *lessor, const struct link *link)
{
	const struct link *at = lessor->links;

	while (at && (at == link || at->own.client.store != link->own.client.store))
		at = at->own.next;
	return !at;
}

const struct store_client *lessor_client(struct lessor *lessor, struct link *link)
{
	struct store *store = link->own.lender->store;
	const struct link *other;

	if (link->own.client.store == store)
		return &link->own.client;
	other = link_at(lessor, store);
	if (other)
		link->own.client = other->own.client;
	else if (!store_enter(store, &lessor->home, &link->own.client))
		return NULL;
	return &link->own.client;
}

void lessor_unlist_link(struct lessor *lessor, struct link **at)
{
	struct link *link = *at;
	struct store_client client = link->own.client;
	struct lender *lender = link->own.lender;

	*at = link->own.next;
	link->own.client = (struct store_client){ 0 };
	if (client.store && !link_at(lessor, client.store)) {
		store_leave(&client);
		lessor_take_done(lessor);
	}
	link->own.listed = false;
	lender->drop(lender); /* it may be gone */
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
		return &lessor->errands[own->errand]; /* LESSOR-1 */
	place = list_first(&lessor->free_errands);
	if (!place)
		return NULL;
	list_remove(place);
	errand = list_item(place, struct errand, place);
	errand->purse = purse;
	errand->number = 0;
	errand->store_left = GALE_NEVER;
	errand->forget = errand->claims = false;
	own->errand = (uint16_t)(errand - lessor->errands);
	list_append(&link_of(lessor, purse->lender)->own.wanting, place);
	return errand;
}

void lessor_unlist_errand(struct lessor *lessor, struct errand *errand)
{
	if (list_has(&errand->place))
		list_remove(&errand->place);
	lessor->overdue -= errand->is_overdue;
	errand->is_overdue = false;
	errand->number = 0;
}

void lessor_free_errand(struct lessor *lessor, struct errand *errand)
{
	gale_assert(list_is_empty(&errand->waiters));
	purses_own(&lessor->purses, errand->purse)->errand = ERRAND_NONE;
	errand->purse = NULL;
	lessor_unlist_errand(lessor, errand);
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

/* Its caller may wait for less than the limiter lets it. */
static mono due_of(const struct ask *ask, mono now)
{
	mono due = mono_after(now, ask->lender->patience_ns);

	return ask->due.ns > 0 ? mono_earlier(due, ask->due) : due;
}

static void wait_for(struct lessor *lessor, struct errand *errand, struct ask *ask,
                     mono now)
{
	struct link *link = link_of(lessor, ask->lender);

	ask->due = due_of(ask, now);
	list_append(&errand->waiters, &ask->waiting);
	list_by_due(&link->own.patience, ask); /* LESSOR-6 */
}

static bool is_down(struct lessor *lessor, struct lender *lender, mono now)
{
	struct link *link = link_of(lessor, lender);

	return now.ns < load_relaxed(&link->shared.down_until_ns);
}

/* LESSOR-8 */
static bool is_overdue(struct lessor *lessor, const struct purse *purse)
{
	uint16_t errand = purses_own(&lessor->purses, purse)->errand;

	return errand != ERRAND_NONE && lessor->errands[errand].is_overdue;
}

void lessor_fail(struct lessor *lessor, struct ask *ask, enum shard_counter why,
                 enum store_result result)
{
	lessor_count(lessor, why, 1);
	lessor_finish(ask, result);
}

void lessor_keep_out(struct lessor *lessor, struct ask *ask, mono until, mono now)
{
	ask->op.answer = local_quarantine(ask->lender, until, now);
	lessor_fail(lessor, ask, COUNT_QUARANTINED, STORE_QUARANTINE);
}

static void ask_about(struct lessor *lessor, struct purse *purse, struct ask *ask,
                      mono now)
{
	struct errand *errand;
	mono until;

	if (lessor_settle(purse, ask, now))
		return;
	if (purse_is_quarantined(purse, now, &until)) {
		lessor_keep_out(lessor, ask, until, now);
		return;
	}
	if (is_down(lessor, ask->lender, now) || is_overdue(lessor, purse)) {
		lessor_fail(lessor, ask, COUNT_DOWN, STORE_DOWN);
		return;
	}
	errand = lessor_errand(lessor, purse);
	if (errand)
		wait_for(lessor, errand, ask, now);
	else
		lessor_fail(lessor, ask, COUNT_NO_ERRAND, STORE_BUSY);
}

/* All purses are in use.  Those with an errand will not be for long. */
static void ask_without_purse(struct lessor *lessor, struct ask *ask, mono now)
{
	if (lessor_is_idle(lessor) && !purses_turn(&lessor->purses)) {
		lessor_fail(lessor, ask, COUNT_NO_PURSE, STORE_CROWDED); /* L8 */
		return;
	}
	ask->due = due_of(ask, now);
	list_append(&lessor->crowded, &ask->waiting);
}

/* Its caller has, while it was in the mail: nothing is taken for it. */
static bool has_given_up(struct lessor *lessor, struct ask *ask, mono now)
{
	if (ask->due.ns == 0 || !mono_reached(now, ask->due))
		return false;
	lessor_fail(lessor, ask, COUNT_IMPATIENT, STORE_LATE);
	return true;
}

static void ask_for_units(struct lessor *lessor, struct ask *ask, mono now)
{
	struct purse *purse;

	if (has_given_up(lessor, ask, now))
		return;
	purse = purse_for(lessor, ask);
	if (purse)
		ask_about(lessor, purse, ask, now);
	else
		ask_without_purse(lessor, ask, now);
}

/* Gives it a purse, if there may be room for one, and returns whether there was. */
static bool place(struct lessor *lessor, struct ask *ask, bool room, mono now)
{
	struct purse *purse;

	if (mono_reached(now, ask->due)) {
		lessor_fail(lessor, ask, COUNT_NO_PURSE, STORE_CROWDED);
		return room;
	}
	purse = room ? purse_for(lessor, ask) : NULL;
	if (purse) {
		list_remove(&ask->waiting);
		ask_about(lessor, purse, ask, now);
	}
	return purse != NULL;
}

/* Those who wait for a purse, in the order they came; returns when to look again. */
mono lessor_place_crowded(struct lessor *lessor, mono now)
{
	struct list *at = lessor->crowded.next, *next;
	mono due = NEVER_DUE;
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
	                             ? NEVER_DUE
	                             : mono_after(now, SLOW_READERS_NS));
}

static void refuse_crowded(struct lessor *lessor)
{
	struct list *place;

	while ((place = list_first(&lessor->crowded)))
		lessor_fail(lessor, list_item(place, struct ask, waiting),
		            COUNT_NO_PURSE, STORE_CROWDED);
}

/* ---- What the store itself decides ----------------------------------------------- */

/* It counts from when the store said so, however late it is heard of. */
static void remember_denial(struct lessor *lessor, const struct ask *ask, mono said,
                            mono now)
{
	bool is_quarantine = ask->op.answer.why == GALE_WHY_QUARANTINE;
	uint64_t retry_us = ask->op.answer.retry_after_us;
	struct purse *purse;
	mono until;

	if (ask->op.changes != load_relaxed(&ask->lender->changes))
		return; /* by a rule that is not in force any more */
	if (retry_us >= GALE_NEVER / 1000)
		return; /* a cost that NEVER_DUE passes denies no other call */
	until = mono_after(said, retry_us * 1000);
	purse = mono_reached(now, until) ? NULL : purse_for(lessor, ask);
	if (!purse || mono_reached(purse->reset_at, said))
		return;
	purse_use(purse);
	if (is_quarantine)
		purse_quarantine(purse, until);
	else
		purse_deny(purse, until, ask->op.cost);
}

/* Takes out the units that no call has taken; returns how many could be given back. */
static uint64_t empty(struct lessor *lessor, struct purse *purse, mono now)
{
	struct block *block;
	uint64_t left;

	if (purse->lender->lending != LENDING_PLACES)
		return purse_empty(purse, lessor->purses.own.grace, now);
	(void)purse_empty(purse, lessor->purses.own.grace,
	                  now); /* burst: it is worth nothing to the store */
	block = load_relaxed(&purse->block);
	left = block ? block_close(block, now) : 0;
	purses_take_block(&lessor->purses, purse);
	return left;
}

/* But for the actor's pin. */
bool lessor_keeps(const struct purse *purse)
{
	bool owes = load_relaxed(purse_dues(purse)) & DUES_OWES;

	return purse_kept_by(purse) > owes;
}

void lessor_take_back(struct lessor *lessor, struct purse *purse, mono now)
{
	bool keeps = lessor_keeps(purse);
	uint64_t left = empty(lessor, purse, now);

	left = lessor_returnable(purse, left) + lessor_set_aside(lessor, purse, now);
	if (left == 0 || purse->lender->carry_over)
		return;
	lessor_give_back(lessor, purse, left, keeps);
	purse_forget_denial(purse); /* the store has these again */
}

void lessor_forget_books(struct lessor *lessor, struct purse *purse)
{
	purse_forget_denial(purse);
	lessor_window_over(lessor, purse);
	lessor_set_tag(purse, (struct gale_slot){ 0 });
	purse->ends = (mono){ 0 };
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
	if (purse->lender->lending == LENDING_PLACES)
		(void)empty(lessor, purse, now);
	purses_void(purse);
	lessor_forget_ahead(lessor, purse);
	lessor_forget_books(lessor, purse);
}

/* Of a key that has been reset; who tells of one may have a clock that is a little ahead. */
static void forget_denials(struct lessor *lessor, const struct ask *ask, mono now)
{
	struct purse *purse = purse_for(lessor, ask);

	if (!purse)
		return;
	purse_use(purse);
	purse_forget_denial(purse);
	purse->reset_at = mono_after(now, COUNTER_AHEAD_NS);
}

/* The store has looked at its clock after that instant. */
static void finish_op(struct lessor *lessor, struct ask *ask, enum store_result result,
                      mono asked)
{
	mono now = clock_now(lessor->config.clock);

	if (ask->lender->lending == LENDING_DENIALS && ask->op.verb == STORE_RESET)
		forget_denials(lessor, ask, now);
	if (ask->lender->lending == LENDING_DENIALS && ask->op.verb == STORE_STEP &&
	    (result == STORE_DONE || result == STORE_QUARANTINE) &&
	    ask->op.answer.verdict == GALE_DENY)
		remember_denial(lessor, ask, asked, now);
	lessor_count(lessor, COUNT_QUARANTINED, result == STORE_QUARANTINE);
	lessor_finish(ask, result);
}

static mono begun(const struct store_call *call, const struct lender *lender)
{
	return (mono){ call->due.ns - lender->patience_ns };
}

static void on_done(struct lessor *lessor, struct ask *ask)
{
	struct link *link = link_of(lessor, ask->lender);
	enum store_result result = ask->call.result;
	mono now = clock_now(lessor->config.clock);

	lessor->heard++;
	link->own.calls--;
	if (result == STORE_LATE || result == STORE_DOWN)
		lessor_back_off(lessor, link, now);
	else if (result == STORE_DONE || result == STORE_QUARANTINE)
		link_recovers(link);
	finish_op(lessor, ask, result, begun(&ask->call, ask->lender));
}

void lessor_take_done(struct lessor *lessor)
{
	struct store_call *call;

	while ((call = store_take(&lessor->home)))
		on_done(lessor, list_item(call, struct ask, call));
}

static void begin(struct lessor *lessor, struct ask *ask, mono now)
{
	struct lender *lender = ask->lender;
	struct link *link = listed_link(lessor, lender);
	const struct store_client *client;

	if (has_given_up(lessor, ask, now))
		return;
	if (now.ns < load_relaxed(&link->shared.down_until_ns)) {
		lessor_fail(lessor, ask, COUNT_DOWN, STORE_DOWN);
		return;
	}
	client = lessor_client(lessor, link);
	if (!client) {
		lessor_finish(ask, STORE_NO_MEMORY);
		return;
	}
	link->own.calls++;
	ask->op.rule = &link->own.rule;
	ask->op.changes = link->own.changes;
	ask->call = (struct store_call){ .op = &ask->op,
		                         .due = mono_after(now, lender->patience_ns),
		                         .until = due_of(ask, now) };
	client->store->ops->begin(client, &ask->call);
}

static enum store_result run_patiently(struct ask *ask)
{
	uint64_t changes = load_relaxed(&ask->lender->changes);
	const struct terms terms = lender_terms(ask->lender);
	enum store_result result;

	ask->op.changes = changes;
	ask->op.rule = &terms.rule;
	result = store_run(ask->lender->store, &ask->op, /* patient= */ true);
	ask->op.rule = NULL;
	return result;
}

static void ask_store(struct lessor *lessor, struct ask *ask, mono now)
{
	if (ask->op.verb == STORE_RESET)
		forget_key(lessor, ask, now);
	if (ask->lender->store->ops->begin)
		begin(lessor, ask, now);
	else
		finish_op(lessor, ask, run_patiently(ask), now);
}

static bool lends(const struct lender *lender)
{
	return lender->lending == LENDING_UNITS || lender->lending == LENDING_PLACES;
}

void lessor_ask(struct lessor *lessor, struct ask *ask, mono now)
{
	ask->restarted = false;
	if (ask->is_due) {
		lessor_take_due(lessor, ask->kept.purse, now);
		lessor_finish(ask, STORE_DONE);
	} else if (ask->is_note) {
		remember_denial(lessor, ask, ask->due, now);
		lessor_finish(ask, STORE_DONE);
	} else if (lends(ask->lender) && ask->op.verb == STORE_STEP &&
	           ask->op.cost <= CREDIT_UNITS_MAX) {
		ask_for_units(lessor, ask, now);
	} else {
		ask_store(lessor, ask, now);
	}
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
	lessor_forget_ahead(lessor, purse);
	lessor_count(lessor, COUNT_EVICTED, 1);
}

static void gone(struct evictor *self, struct purse *purse)
{
	struct lessor *lessor =
	    (struct lessor *)((char *)self - offsetof(struct lessor, evictor));

	link_of(lessor, purse->lender)->own.purses--;
}

static mono tell_time(struct kept_clock *clock)
{
	struct lessor *lessor =
	    (struct lessor *)((char *)clock - offsetof(struct lessor, clock));

	return clock_now(lessor->config.clock);
}

bool lessor_open(struct lessor *lessor, const struct lessor_config *config)
{
	lessor->config = *config;
	lessor->clock.now = tell_time;
	lessor->home.on_answer = lessor_on_answer;
	list_init(&lessor->home.done);
	lessor->home.clock = config->clock;
	lessor->home.watch.epoll_fd = -1;
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
		lessor_fail_waiters(lessor, list_item(place, struct errand, place),
		                    STORE_LATE);
	while ((place = list_first(&link->own.overdue)))
		lessor_free_errand(lessor, list_item(place, struct errand, place));
	while ((place = list_first(&link->own.wanting)))
		lessor_fail_waiters(lessor, list_item(place, struct errand, place),
		                    STORE_LATE);
	while ((place = list_first(&link->own.sleeping)))
		lessor_fail_waiters(lessor, list_item(place, struct errand, place),
		                    STORE_LATE);
}

static bool is_there(const struct purse *purse)
{
	return purse->lender && !purse_is_dead(purse);
}

/* Of all the purses at once: they share a fence. */
static void want_all(struct lessor *lessor)
{
	struct purses *set = &lessor->purses;
	bool any = false;

	for (uint32_t i = 0; i < set->own.made; i++)
		if (is_there(purses_at(set, i)))
			any |= purse_want(purses_at(set, i), (mono){ 0 });
	if (any)
		grace_pass(set->own.grace); /* entered */
}

static void empty_all(struct lessor *lessor)
{
	struct purses *set = &lessor->purses;

	want_all(lessor);
	for (uint32_t i = 0; i < set->own.made; i++)
		if (is_there(purses_at(set, i)))
			evict(&lessor->evictor, purses_at(set, i));
	lessor_send_returns(lessor);
}

/* The longest that any of the stores may still take. */
static uint64_t longest_patience_ns(const struct lessor *lessor)
{
	uint64_t patience_ns = 0;

	for (const struct link *at = lessor->links; at; at = at->own.next)
		if (at->own.lender->patience_ns > patience_ns)
			patience_ns = at->own.lender->patience_ns;
	return patience_ns;
}

/* Stores that are elsewhere have answered all that they were asked. */
static bool stores_are_idle(struct lessor *lessor)
{
	for (const struct link *at = lessor->links; at; at = at->own.next)
		if (!lessor_store_is_idle(at))
			return false;
	return true;
}

static void drain(struct lessor *lessor) ON(actor_role)
{
	mono now = clock_now(lessor->config.clock), before, due;
	mono deadline = mono_after(now, longest_patience_ns(lessor));
	uint32_t turns = DRAIN_TURNS_MOST; /* the clock may stand still */

	do {
		before = now;
		due = lessor_turn(lessor, now);
		(void)lessor_turn_stores(lessor, now);
		if (!stores_are_idle(lessor))
			wake_wait_on(lessor->home.watch.epoll_fd, NULL,
			             patience_now_ns() + FLUSH_PAUSE_NS);
		now = clock_now(lessor->config.clock);
	} while (--turns > 0 && !lessor_is_idle(lessor) &&
	         !mono_reached(now, deadline) &&
	         (now.ns > before.ns || mono_reached(now, due)));
}

/* Until stores that are elsewhere have what was given back.  The time that this takes is
 * the host's, whatever its clock says. */
static void flush(struct lessor *lessor) ON(actor_role)
{
	uint64_t deadline_ns = patience_now_ns() + longest_patience_ns(lessor);

	for (;;) {
		(void)lessor_turn_stores(lessor, clock_now(lessor->config.clock));
		if (stores_are_idle(lessor) || patience_now_ns() >= deadline_ns)
			return;
		wake_wait_on(lessor->home.watch.epoll_fd, NULL,
		             patience_now_ns() + FLUSH_PAUSE_NS);
	}
}

void lessor_close(struct lessor *lessor)
{
	drain(lessor);
	refuse_crowded(lessor);
	for (struct link *link = lessor->links; link; link = link->own.next)
		close_link(lessor, link);
	empty_all(lessor);
	flush(lessor);
	while (lessor->links)
		lessor_unlist_link(lessor, &lessor->links);
}

void lessor_free(struct lessor *lessor)
{
	purses_close(&lessor->purses);
}
