/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * errand.c -- what is sent: many keys in one call.
 *
 * engine/borrow.h says, after the sizer, how much to ask for, and how much must come for any
 * call to be admitted.
 *
 * Threads   The shard's actor.  Of a purse it reads what any thread writes.
 */
#include <string.h>

#include "engine/check.h"
#include "shards/ahead.h"
#include "shards/lessor.h"

/* The name's length, the name, and the user's key, as limiters make it. */
static uint32_t store_key(const struct purse *purse, uint8_t *out)
{
	const struct lender *lender = purse->lender;

	out[0] = lender->name_len;
	memcpy(out + 1, lender->name, lender->name_len);
	purse_copy_key(purse, out + 1 + lender->name_len);
	return 1u + lender->name_len + purse->key_len;
}

static struct lend_request *batch_add(struct lessor *lessor, struct batch *batch,
                                      const struct purse *purse)
{
	struct lend_request *request = &batch->requests[batch->count];
	uint8_t *key = batch->keys[batch->count++];

	*request = (struct lend_request){
		.key = key,
		.key_len = store_key(purse, key),
		.rule = &link_of(lessor, purse->lender)->own.rule,
	};
	return request;
}

static uint64_t next_number(struct lessor *lessor, uint32_t slot)
{
	return ++lessor->sent * ERRANDS + slot;
}

static void refuse(struct lessor *lessor, const struct batch *batch, size_t count)
{
	for (size_t i = 0; i < count; i++)
		lessor_on_answer(
		    &lessor->home,
		    &(struct lend_answer){ .number = batch->requests[i].ask.number,
		                           .result = STORE_NO_MEMORY });
}

static void batch_send(struct lessor *lessor, struct batch *batch)
{
	const struct store_client *client;
	size_t count = batch->count;

	if (count == 0)
		return;
	batch->count = 0; /* first: what is answered at once may begin another */
	client = lessor_client(lessor, batch->link);
	if (client)
		client->store->ops->lend(client, batch->requests, count);
	else
		refuse(lessor, batch, count);
}

/* ---- Asking ---------------------------------------------------------------------- */

/* The costs that wait. */
static void count_waiters(const struct errand *errand, struct borrow_need *need)
{
	for (struct list *at = errand->waiters.next; at != &errand->waiters;
	     at = at->next) {
		uint64_t cost = list_item(at, struct ask, waiting)->op.cost;

		need->waiting += cost;
		if (need->least == 0 || need->least > cost)
			need->least = cost;
	}
}

struct sizer_hedge *lessor_hedge(struct lessor *lessor, const struct purse *purse)
{
	struct hedge_place *place = &lessor->hedges[purse->hash % HEDGE_PLACES];

	if (!purse->lender->predictor)
		return NULL;
	if (place->hash != purse->hash)
		*place = (struct hedge_place){ .hash = purse->hash };
	return &place->hedge;
}

static uint64_t predicted_for(const struct purse *purse)
{
	struct gale_predictor *predictor = purse->lender->predictor;
	uint8_t key[GALE_KEY_MAX];

	if (!predictor)
		return 0;
	purse_copy_key(purse, key);
	return predictor->demand(predictor, key, purse->key_len);
}

/* A pacer's units that may go at once are asked for as they are needed: none of the burst
 * lies about with one node.  Blocks are for calls that queue. */
static bool queues(const struct purse *purse)
{
	return purse->lender->lending != LENDING_PLACES || purse->tag_us > 0 ||
	       purse->tag_part > 0;
}

/* 0: no cost is refused from memory. */
static uint64_t denied_from(const struct purse *purse, mono now)
{
	uint64_t denial = load_relaxed(&purse->denial);

	if (!credit_lives(denial, now) || denial_is_quarantine(credit_units(denial)))
		return 0;
	return credit_units(denial) + 1;
}

/* While no call waits.  Calls that do take from what all share only. */
static struct borrow_need need_of(struct purse *purse, mono now)
{
	struct borrow_need need = {
		.denied = denied_from(purse, now),
		.owed = kept_debt(purse, now),
		.common = purse_common(purse, now),
		.held = purse_left(purse, now),
		.ends = purse->ends,
		.taken = purse->taken,
		.refused = load_relaxed(&purse->refused),
		.store_left = GALE_NEVER,
	};

	need.waiting = need.owed;
	return need;
}

/* After what lies in cells was gathered. */
static struct borrow_need need_of_errand(const struct errand *errand, mono now)
{
	struct borrow_need need = need_of(errand->purse, now);

	need.store_left = errand->store_left;
	count_waiters(errand, &need);
	return need;
}

/* A window that is over counts before the answer closes it: the first ask of the next is the one that
 * it says most about. */
static union sizer sizer_of(struct purse *purse, mono now)
{
	union sizer sizer = *purse_sizer(purse);

	if (purse->ends.ns > 0 && mono_reached(now, purse->ends))
		sizer_foresee(&purse->lender->sizing, &sizer, lessor_demand(purse));
	return sizer;
}

static uint64_t size_of(struct lessor *lessor, struct purse *purse,
                        const struct borrow_terms *terms,
                        const struct borrow_need *need, mono now)
{
	union sizer sizer = sizer_of(purse, now);
	struct borrow borrow = purses_borrow(&lessor->purses, purse);
	struct sizer_view view = borrow_view(terms, &borrow, need, now);

	view.predicted = predicted_for(purse);
	return sizer_want(&purse->lender->sizing, &sizer, lessor_hedge(lessor, purse),
	                  &view);
}

uint64_t lessor_need(struct lessor *lessor, struct purse *purse, mono now)
{
	const struct borrow_terms terms =
	    lessor_borrow_terms(link_of(lessor, purse->lender));
	const struct borrow_need need = need_of(purse, now);
	struct borrow borrow = purses_borrow(&lessor->purses, purse);
	struct sizer_view view = borrow_view(&terms, &borrow, &need, now);

	return sizer_need(&purse->lender->sizing, purse_sizer(purse), &view);
}

static void note_lack(struct lessor *lessor, struct purse *purse,
                      const struct borrow_terms *terms, const struct borrow_need *need,
                      const struct borrow_ask *ask, mono now)
{
	struct borrow borrow = purses_borrow(&lessor->purses, purse);

	borrow_lack(terms, &borrow, need, ask, now);
	purses_keep_borrow(&lessor->purses, purse, &borrow);
}

/* Units ahead may be spent or go back.  keeps: something may come back, or could when need was seen. */
static bool is_all_spent(const struct purse *purse, const struct borrow_need *need,
                         bool keeps, mono now)
{
	return need->held == 0 && !keeps && !lessor_has_ahead(purse, now);
}

static void fill_ask(struct lessor *lessor, struct errand *errand,
                     struct lease_ask *ask, mono now)
{
	struct purse *purse = errand->purse;
	const struct link *link = link_of(lessor, purse->lender);
	const struct borrow_terms terms = lessor_borrow_terms(link);
	struct borrow_need need;
	struct borrow_ask said;
	bool keeps = lessor_keeps(purse);

	purse_gather(purse, lessor->purses.own.grace, now);
	need = need_of_errand(errand, now);
	errand->claims = errand->claims && need.waiting == 0;
	said = borrow_ask(&terms, &need,
	                  errand->claims  ? 1
	                  : queues(purse) ? size_of(lessor, purse, &terms, &need, now)
	                                  : need.waiting);
	note_lack(lessor, purse, &terms, &need, &said, now);
	errand->want = said.want;
	errand->least = said.least;
	errand->changes = link->own.changes;
	errand->capacity = terms.capacity;
	errand->spent = is_all_spent(purse, &need, keeps, now);
	errand->number = next_number(lessor, (uint32_t)(errand - lessor->errands));
	*ask = (struct lease_ask){ .node = lessor->config.node,
		                   .number = errand->number,
		                   .want = errand->want,
		                   .least = errand->least,
		                   .spent = errand->spent };
	lessor_fill_ahead(lessor, errand, &need, ask, now);
	errand->ahead = ask->ahead;
}

/* The rest of a pacer's block is too little: it goes back before another is booked,
 * as the store takes back from the latest only. */
static void return_first(struct lessor *lessor, struct purse *purse, mono now)
{
	if (purse->lender->lending != LENDING_PLACES)
		return;
	lessor_take_back(lessor, purse, now);
	lessor_send_returns(lessor);
}

/* Units in cells are wanted of as many purses as go in one call: they share a fence. */
static void want_cells(struct lessor *lessor, const struct link *link,
                       const struct list *last, mono now)
{
	const struct list *at = &link->own.wanting;
	bool any = false;

	for (int i = 0; i < LEND_BATCH && at != last; i++) {
		at = at->next;
		any |= purse_want(list_item(at, struct errand, place)->purse, now);
	}
	if (any)
		grace_pass(lessor->purses.own.grace); /* entered */
}

static void add_errand(struct lessor *lessor, struct link *link, struct errand *errand,
                       mono now)
{
	struct lend_request *request;

	return_first(lessor, errand->purse, now);
	request = batch_add(lessor, &lessor->asking, errand->purse);
	request->verb = LEND;
	/* LESSOR-3: before the store can have looked at its clock */
	fill_ask(lessor, errand, &request->ask, now);
	lessor_fill_seen(lessor, errand->purse, request);
	errand->sent = now;
	errand->due = request->due = mono_after(now, link->own.lender->patience_ns);
	list_remove(&errand->place);
	list_append(&link->own.flying, &errand->place);
}

/* Those that wait now; what is to go again when it has been answered goes in the next
 * turn. */
void lessor_send(struct lessor *lessor, struct link *link, mono now)
{
	struct list *last = link->own.wanting.before, *place;
	bool more = !list_is_empty(&link->own.wanting);

	while (more) {
		lessor->asking.link = link;
		want_cells(lessor, link, last, now);
		while (more && lessor->asking.count < LEND_BATCH) {
			place = list_first(&link->own.wanting);
			more = place != last;
			add_errand(lessor, link, list_item(place, struct errand, place),
			           now);
		}
		lessor_count(lessor, COUNT_LEASES, lessor->asking.count);
		lessor_count(lessor, COUNT_BATCHES, 1);
		batch_send(lessor, &lessor->asking);
	}
}

/* ---- Giving back ----------------------------------------------------------------- */

void lessor_send_returns(struct lessor *lessor)
{
	batch_send(lessor, &lessor->returning);
}

static bool goes_along(const struct batch *batch, const struct purse *purse)
{
	return batch->count == 0 ||
	       batch->link->own.lender->store == purse->lender->store;
}

void lessor_give_back(struct lessor *lessor, struct purse *purse, uint64_t units,
                      bool keeps)
{
	struct batch *batch = &lessor->returning;
	struct lend_request *request;

	if (batch->count == LEND_BATCH || !goes_along(batch, purse))
		lessor_send_returns(lessor);
	if (batch->count == 0)
		batch->link = link_of(lessor, purse->lender);
	request = batch_add(lessor, batch, purse);
	request->verb = LEND_BACK;
	request->ask.node = lessor->config.node;
	request->ask.number = next_number(lessor, ERRAND_NONE);
	request->tag = lessor_tag(purse);
	if (keeps && lessor_has_windows(purse->lender))
		request->tag.part = LEASE_KEEPS; /* LEASE-9 */
	request->units = units;                  /* LESSOR-5 */
	if (lessor_has_windows(purse->lender))
		purse->told -= units < purse->told ? units : purse->told;
	purse->taken -= units < purse->taken ? units : purse->taken;
	lessor_count(lessor, COUNT_RETURNS, 1);
	lessor_count(lessor, COUNT_UNITS_BACK, units);
}
