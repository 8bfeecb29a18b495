/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pool_store.h -- the network and the store of pool.c: one budget, in a small world.
 *
 * An ask makes the words of engine/pool.h of a state, at an instant of the store's clock, and puts
 * back what they have become.  A store turns its window when it is asked.  Here it turns at once,
 * as nothing is read of it before.  Windows are told apart as this one, the one before, and others:
 * of these nothing counts.
 *
 * Threads   Pure: any.
 */
#ifndef SPEC_EXPLORE_MODELS_POOL_STORE_H
#define SPEC_EXPLORE_MODELS_POOL_STORE_H

#include <string.h>

#include "engine/claim.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 3
#define LIVES 2
#define NAMES (NODES * LIVES)
#define TENANTS 2
#define MAIL 6
#define QUARTERS 4
#define QUARTER_NS UINT64_C(1000000)
#define TICK_US (QUARTERS * QUARTER_NS / 1000)
#define OTHER 2 /* age of a window: neither this one, nor the one before */

enum {
	N,
	TENANT_COUNT,
	LIMIT,
	COST,
	TICKS,
	RELEASE,
	GIVES,
	DRIFT,
	MAIL_EACH,
	TWICE,
	CRASHES,
	FORGETS,
	HOLDS,
	MARGIN,
	QUIET,
	STORE,
	TOTAL,
	BACK,
	WINDOW,
	TURN,
	END,
	ONE,
	FRESH,
	OTHERS,
	LEAVE,
	PAST,
	ONCE,
};

enum kind { NOTHING, ASK, ANSWER };

struct letter {
	uint8_t kind;
	uint8_t node;
	uint8_t life;
	uint8_t latest; /* of the node's; 0: it waits for another, or for none */
	uint8_t window; /* how many windows ago */
	uint8_t had;
	uint8_t more;
	uint8_t back;
	uint8_t present;
	uint8_t granted;
	uint8_t left; /* ticks, when it was answered */
	uint8_t quiet;
};

struct node {
	uint8_t life;
	uint8_t waits;  /* an ask is with the store */
	uint8_t sent;   /* quarters ago, by the node's clock */
	uint8_t window; /* how many ago */
	uint8_t granted;
	uint8_t back;
	uint8_t taken;
	uint8_t end;       /* quarters until then, by the node's clock */
	uint8_t held;      /* of what was taken: a call runs that may cost less */
	uint8_t held_from; /* how many windows ago it was taken */
	uint8_t again;     /* the call has ended before */
};

struct tenant {
	uint8_t used;
	uint8_t refused;
	uint8_t
	    age; /* ticks since it asked, the most that matters, or that it never did */
};

struct row {
	uint8_t granted;
	uint8_t back;
};

struct state {
	uint8_t phase;    /* ticks of the store's window */
	uint8_t admitted; /* in it */
	uint8_t used;
	uint8_t quiet; /* ticks */
	uint8_t forgets;
	uint8_t forgot;  /* in this window */
	uint8_t robbed;  /* a grant was taken of another's share */
	uint8_t unasked; /* more was granted than the node has asked for, in all */
	uint8_t wrong;   /* an answer was not believed */
	struct tenant tenants[TENANTS];
	struct row rows[NAMES];
	struct node nodes[NODES];
	struct letter mail[MAIL]; /* in order, behind those that are NOTHING */
};

/* ---- Times and terms ----------------------------------------------------------------- */

static inline uint64_t period_us(const long *c)
{
	return (uint64_t)c[TICKS] * TICK_US;
}

static inline uint64_t window_us(const long *c, uint8_t age)
{
	return age == OTHER ? 0 : (1000 - age) * period_us(c);
}

static inline uint8_t window_age(const long *c, uint64_t window)
{
	uint64_t age = (window_us(c, 0) - window) / period_us(c);

	return age < OTHER ? (uint8_t)age : OTHER;
}

static inline uint64_t store_now(const long *c, const struct state *state)
{
	return window_us(c, 0) + state->phase * TICK_US;
}

static inline mono in_quarters(uint8_t quarters)
{
	return (mono){ HERE_NS + quarters * QUARTER_NS };
}

static inline uint8_t quarters_until(mono then)
{
	return then.ns > HERE_NS ? small((then.ns - HERE_NS) / QUARTER_NS) : 0;
}

static inline uint8_t oldest(const long *c)
{
	return (uint8_t)larger_of(c[RELEASE], 2 * c[TICKS]);
}

static inline struct pool_ask terms_of(const long *c)
{
	return (struct pool_ask){ .limit = (uint64_t)c[LIMIT],
		                  .period_us = period_us(c),
		                  .release_us = (uint64_t)c[RELEASE] * TICK_US,
		                  .cap = (uint64_t)c[LIMIT],
		                  .weight = 1 };
}

/* ---- The network --------------------------------------------------------------------- */

static inline int compare(const struct letter *a, const struct letter *b)
{
	return memcmp(a, b, sizeof(*a));
}

static inline void sort_mail(struct state *state)
{
	struct letter *mail = state->mail;

	for (int i = 1; i < MAIL; i++)
		for (int j = i; j > 0 && compare(&mail[j - 1], &mail[j]) > 0; j--) {
			struct letter letter = mail[j];

			mail[j] = mail[j - 1];
			mail[j - 1] = letter;
		}
}

/* What has become the same is under way once: mail is a set. */
static inline void tidy_mail(struct state *state)
{
	struct letter *mail = state->mail;

	sort_mail(state);
	for (int i = 1; i < MAIL; i++)
		if (compare(&mail[i - 1], &mail[i]) == 0)
			mail[i - 1] = (struct letter){ 0 };
	sort_mail(state);
}

static inline long letters_of(const struct state *state, int n)
{
	long count = 0;

	for (int i = 0; i < MAIL; i++)
		count += state->mail[i].kind != NOTHING && state->mail[i].node == n;
	return count;
}

/* What there is no room for is lost. */
static inline void post(const long *c, struct state *state, const struct letter *letter)
{
	for (int i = 0; i < MAIL; i++)
		if (compare(&state->mail[i], letter) == 0)
			return;
	if (letters_of(state, letter->node) == c[MAIL_EACH])
		return;
	gale_assert(state->mail[0].kind == NOTHING);
	state->mail[0] = *letter;
	sort_mail(state);
}

static inline void lose(struct state *state, int i)
{
	state->mail[i] = (struct letter){ 0 };
	sort_mail(state);
}

/* Nobody waits any more for what is under way: asks may still come, answers are dropped. */
static inline void outdate(const long *c, struct state *state, int n)
{
	for (int i = 0; i < MAIL; i++) {
		struct letter *letter = &state->mail[i];

		if (letter->node != n)
			continue;
		letter->latest = 0;
		if (letter->kind == ANSWER && c[ONE])
			*letter = (struct letter){ 0 };
	}
	tidy_mail(state);
}

/* ---- The store ----------------------------------------------------------------------- */

struct words {
	struct pool pool;
	struct pool_tenant tenants[TENANTS];
	struct pool_claim claims[NAMES];
};

static inline void unpack(const long *c, const struct state *state,
                          struct words *ret_words)
{
	const struct pool_ask terms = terms_of(c);
	uint64_t at = store_now(c, state);

	*ret_words = (struct words){ .pool = { .period_us = terms.period_us,
		                               .now_us = at,
		                               .window = window_us(c, 0),
		                               .used = state->used,
		                               .limit = terms.limit,
		                               .release_us = terms.release_us,
		                               .protect_us = terms.protect_us } };
	for (int i = 0; i < TENANTS; i++)
		ret_words->tenants[i] =
		    (struct pool_tenant){ .cap = terms.cap,
			                  .weight = 1,
			                  .asked_us =
			                      at - state->tenants[i].age * TICK_US,
			                  .used = state->tenants[i].used,
			                  .refused = state->tenants[i].refused };
	for (int i = 0; i < NAMES; i++) {
		ret_words->claims[i].granted = state->rows[i].granted;
		ret_words->claims[i].back = state->rows[i].back;
		ret_words->pool.claims += state->rows[i].granted > 0;
	}
}

static inline void pack(const long *c, const struct words *words, struct state *state)
{
	state->used = small(words->pool.used);
	for (int i = 0; i < TENANTS; i++) {
		const struct pool_tenant *tenant = &words->tenants[i];
		uint64_t age = (words->pool.now_us - tenant->asked_us) / TICK_US;

		state->tenants[i].used = small(tenant->used);
		state->tenants[i].refused = small(tenant->refused);
		state->tenants[i].age = (uint8_t)smaller_of((long)age, oldest(c));
	}
	for (int i = 0; i < NAMES; i++) {
		state->rows[i].granted = small(words->claims[i].granted);
		state->rows[i].back = small(words->claims[i].back);
	}
}

static inline int tenant_of(const long *c, int n)
{
	return n % (int)c[TENANT_COUNT];
}

static inline int name_of(const long *c, const struct letter *letter)
{
	return letter->node * LIVES + (c[FRESH] ? letter->life : 0);
}

/* What a tenant that is present has left of its share; 0 if it is absent. */
static inline uint64_t left_of(const long *c, const struct state *state, int tenant)
{
	struct pool_ask ask = terms_of(c);
	struct pool_claim none = { 0 };
	struct pool_answer answer;
	struct words words;

	if (state->tenants[tenant].age >= c[RELEASE])
		return 0;
	unpack(c, state, &words);
	answer = pool_step(&words.pool, words.tenants, (size_t)c[TENANT_COUNT],
	                   (size_t)tenant, &none, &ask, /* not_before_us= */ 0);
	return answer.share > answer.used ? answer.share - answer.used : 0;
}

/* T2: who is present takes nothing of what is left of another's share.  Units that a store hears of
 * after it has forgotten are of nobody's share. */
static inline bool robs(const long *c, const struct state *before,
                        const struct state *after, int tenant)
{
	if (before->forgot || before->tenants[tenant].age >= c[RELEASE])
		return false;
	for (int j = 0; j < c[TENANT_COUNT]; j++)
		if (j != tenant && left_of(c, after, j) < left_of(c, before, j))
			return true;
	return false;
}

static inline struct pool_ask ask_of(const long *c, const struct letter *letter)
{
	struct pool_ask ask = terms_of(c);

	ask.present = letter->present;
	ask.window = window_us(c, letter->window);
	ask.had = letter->had;
	ask.more = ask.least = letter->more;
	ask.back = letter->back;
	return ask;
}

/* What a store without its guards makes of an ask. */
static inline void misread(const long *c, struct words *words, int tenant,
                           const struct pool_claim *claim, struct pool_ask *ask)
{
	if (!c[WINDOW])
		ask->window = words->pool.window;
	if (!c[STORE]) {
		ask->back = ask->window == words->pool.window ? ask->back : 0;
		ask->had = claim->granted;
		ask->window = words->pool.window;
	}
	for (int i = 0; i < TENANTS && !c[OTHERS]; i++)
		if (i != tenant)
			words->tenants[i].asked_us = 0;
}

static inline struct pool_answer serve(const long *c, struct state *state,
                                       const struct letter *letter)
{
	int tenant = tenant_of(c, letter->node), name = name_of(c, letter);
	struct pool_ask ask = ask_of(c, letter);
	struct state before = *state;
	uint64_t until = store_now(c, state) + state->quiet * TICK_US;
	struct pool_answer answer;
	struct words words;
	uint64_t back, asked;

	unpack(c, state, &words);
	misread(c, &words, tenant, &words.claims[name], &ask);
	back = c[BACK] ? 0 : words.claims[name].back;
	words.claims[name].back -= back;
	answer = pool_step(&words.pool, words.tenants, (size_t)c[TENANT_COUNT],
	                   (size_t)tenant, &words.claims[name], &ask,
	                   state->quiet > 0 ? until : 0);
	words.claims[name].back += back;
	pack(c, &words, state);
	for (int i = 0; i < TENANTS && !c[OTHERS]; i++)
		if (i != tenant)
			state->tenants[i].age = before.tenants[i].age;
	asked = letter->more + (letter->window == 0 ? letter->had : 0u);
	state->unasked |=
	    answer.granted > before.rows[name].granted && answer.granted > asked;
	state->robbed |= robs(c, &before, state, tenant);
	return answer;
}

/* The window turns: pool.h says how. */
static inline void turn_store(const long *c, struct state *state)
{
	struct pool_ask ask = terms_of(c);
	struct words words;
	bool turned;

	unpack(c, state, &words);
	words.pool.window -= ask.period_us;
	gale_assert(pool_begin(&words.pool, &ask, store_now(c, state), &turned) ==
	                POOL_ANSWERED &&
	            turned);
	memset(words.claims, 0, sizeof(words.claims));
	for (int i = 0; i < TENANTS; i++) {
		if (pool_keeps(&words.pool, &ask, &words.tenants[i]))
			pool_forget(&words.pool, &words.tenants[i]);
		else
			words.tenants[i] = (struct pool_tenant){ 0 };
	}
	pack(c, &words, state);
	memset(state->rows, 0, sizeof(state->rows));
	state->admitted = state->forgot = 0;
}

static inline void reply(const long *c, struct state *state, const struct letter *ask,
                         const struct pool_answer *answer)
{
	struct letter letter = { .kind = ANSWER,
		                 .node = ask->node,
		                 .life = ask->life,
		                 .latest = ask->latest,
		                 .granted = small(answer->granted),
		                 .left = small(answer->left_us / TICK_US),
		                 .quiet = answer->result == POOL_QUIET };

	if (ask->life == state->nodes[ask->node].life && (ask->latest || !c[ONE]))
		post(c, state, &letter);
}

#endif
