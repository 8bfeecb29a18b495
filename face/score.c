/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * score.c -- makes scores, reads them, and keeps what the dead have counted.
 *
 *     chunk 0: numbers 0 to 7; chunk 1: 8 to 23; chunk 2: 24 to 55; ...
 *
 * Threads   Any; what is marked ON, under the runtime's lock.
 */
#include "face/seat.h"

#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"

#define CHUNK_FIRST 8 /* scores in the first chunk */
#define CHUNK_MOST (SCORE_SLOTS - SCORE_WET)
#define ROOM_FIRST 16
#define NUMBERS (CHUNK_FIRST * ((UINT32_C(1) << CHUNK_MOST) - 1))
static_assert(sizeof(struct score) * CHUNK_FIRST << (CHUNK_MOST - 1) <= UINT32_MAX,
              "lender.score says where in a chunk");

/* ---- Where ------------------------------------------------------------------------ */

static uint32_t chunk_of(uint32_t number)
{
	return (uint32_t)(__builtin_clz(CHUNK_FIRST) -
	                  __builtin_clz(number + CHUNK_FIRST));
}

static uint32_t chunk_scores(uint32_t chunk)
{
	return (uint32_t)CHUNK_FIRST << chunk;
}

static size_t chunk_bytes(uint32_t chunk)
{
	return chunk_scores(chunk) * sizeof(struct score);
}

static uint32_t chunk_slot(uint32_t chunk)
{
	return chunk < SCORE_DRY ? chunk : chunk + SCORE_WET;
}

static uint32_t place_of(uint32_t number)
{
	uint32_t chunk = chunk_of(number);
	uint32_t index = number + CHUNK_FIRST - chunk_scores(chunk);

	return index * (uint32_t)sizeof(struct score) | chunk_slot(chunk);
}

/* ---- Sums ------------------------------------------------------------------------- */

static void add_score(struct score_sum *sum, const struct score *score)
{
	for (unsigned why = 0; why < SCORE_WHYS; why++)
		for (unsigned allowed = 0; allowed < 2; allowed++)
			sum->counts[why][allowed] +=
			    load_relaxed(&score->counts[why][allowed]);
}

static void add_sum(struct score_sum *sum, const struct score_sum *other)
{
	for (unsigned why = 0; why < SCORE_WHYS; why++)
		for (unsigned allowed = 0; allowed < 2; allowed++)
			sum->counts[why][allowed] += other->counts[why][allowed];
	sum->dropped += other->dropped;
}

static void clear_score(struct score *score)
{
	for (unsigned why = 0; why < SCORE_WHYS; why++)
		for (unsigned allowed = 0; allowed < 2; allowed++)
			store_relaxed(&score->counts[why][allowed], 0);
}

static struct gale_seat *seat_at(const struct list *place)
{
	return list_item(place, struct gale_seat, place);
}

void score_read(const struct gale_runtime *runtime, const struct gale_limiter *limiter,
                struct score_sum *ret_sum)
{
	const struct list *seats = &runtime->locked.seats;

	*ret_sum = limiter->locked.counted;
	for (const struct list *at = seats->next; at != seats; at = at->next)
		add_score(ret_sum, seat_score(seat_at(at), &limiter->lender));
}

static void add_limiter(const struct gale_runtime *runtime,
                        const struct gale_limiter *limiter, struct score_sum *sum)
    ON(runtime->lock)
{
	struct score_sum its;

	score_read(runtime, limiter, &its);
	add_sum(sum, &its);
	add_sum(sum, &limiter->locked.inherited);
}

void score_read_name(const struct gale_runtime *runtime,
                     const struct gale_limiter *limiter, struct score_sum *ret_sum)
{
	const struct list *all = &limiter->locked.same;

	memset(ret_sum, 0, sizeof(*ret_sum));
	add_limiter(runtime, limiter, ret_sum);
	for (const struct list *at = all->next; at != all; at = at->next)
		add_limiter(runtime, list_item(at, struct gale_limiter, locked.same),
		            ret_sum);
}

static bool is_first(const struct gale_limiter *limiter)
{
	const struct list *all = &limiter->locked.same;

	for (const struct list *at = all->next; at != all; at = at->next)
		if (list_item(at, struct gale_limiter, locked.same)->locked.number <
		    limiter->locked.number)
			return false;
	return true;
}

struct gale_limiter *score_next_name(const struct gale_runtime *runtime,
                                     uint32_t number)
{
	for (; number < runtime->locked.limiter_end; number++)
		if (runtime->locked.limiters[number] &&
		    is_first(runtime->locked.limiters[number]))
			return runtime->locked.limiters[number];
	return NULL;
}

void score_read_all(const struct gale_runtime *runtime, struct score_sum *ret_sum)
{
	*ret_sum = runtime->locked.gone;
	for (uint32_t i = 0; i < runtime->locked.limiter_end; i++)
		if (runtime->locked.limiters[i])
			add_limiter(runtime, runtime->locked.limiters[i], ret_sum);
}

uint64_t score_total(const struct score_sum *sum, enum gale_verdict verdict)
{
	uint64_t total = 0;

	for (unsigned why = 0; why < SCORE_WHYS; why++)
		total += sum->counts[why][verdict == GALE_ALLOW];
	return total;
}

/* ---- Seats ------------------------------------------------------------------------ */

static bool make_chunk(struct gale_seat *seat, uint32_t chunk)
{
	struct score **it = &seat->scores.chunks[chunk_slot(chunk)];

	if (!*it)
		*it = memory_take_lines(seat->handle.runtime->allocator,
		                        chunk_bytes(chunk));
	return *it != NULL;
}

bool score_join(struct gale_runtime *runtime, struct gale_seat *seat)
{
	bool made = true;

	for (uint32_t chunk = 0; made && chunk < runtime->locked.chunk_count; chunk++)
		made = make_chunk(seat, chunk);
	return made;
}

void score_leave(struct gale_runtime *runtime, struct gale_seat *seat)
{
	for (uint32_t i = 0; i < runtime->locked.limiter_end; i++) {
		struct gale_limiter *limiter = runtime->locked.limiters[i];

		if (limiter)
			add_score(&limiter->locked.counted,
			          seat_score(seat, &limiter->lender));
	}
}

void score_free(struct gale_seat *seat)
{
	for (uint32_t chunk = 0; chunk < CHUNK_MOST; chunk++)
		memory_give_lines(seat->handle.runtime->allocator,
		                  seat->scores.chunks[chunk_slot(chunk)],
		                  chunk_bytes(chunk));
}

void score_drop(struct gale_limiter *limiter)
{
	struct gale_runtime *runtime = limiter->handle.runtime;

	lock_take(&runtime->lock);
	limiter->locked.counted.dropped++;
	lock_drop(&runtime->lock);
}

/* ---- Limiters --------------------------------------------------------------------- */

/* A seat that gets its chunk for nothing, as another gets none, keeps it. */
static bool make_chunks(struct gale_runtime *runtime, uint32_t chunk) ON(runtime->lock)
{
	struct list *seats = &runtime->locked.seats;

	if (chunk < runtime->locked.chunk_count)
		return true;
	for (struct list *at = seats->next; at != seats; at = at->next)
		if (!make_chunk(seat_at(at), chunk))
			return false;
	runtime->locked.chunk_count = chunk + 1;
	return true;
}

static bool make_room(struct gale_runtime *runtime, uint32_t number) ON(runtime->lock)
{
	uint32_t room = runtime->locked.limiter_room;
	uint32_t more = room ? 2 * room : ROOM_FIRST;
	struct gale_limiter **former = runtime->locked.limiters, **all;

	if (number < room)
		return true;
	all = memory_take(runtime->allocator, more * sizeof(*all));
	if (!all)
		return false;
	if (former)
		memcpy(all, former, room * sizeof(*all));
	memory_give(runtime->allocator, former, room * sizeof(*all));
	runtime->locked.limiters = all;
	runtime->locked.limiter_room = more;
	return true;
}

static uint32_t least_number(struct gale_runtime *runtime) ON(runtime->lock)
{
	uint32_t number = runtime->locked.limiter_least;

	while (number < runtime->locked.limiter_end && runtime->locked.limiters[number])
		number++;
	return number;
}

static bool has_name_of(const struct lender *lender, const struct lender *other)
{
	return lender->name_len == other->name_len &&
	       memcmp(lender->name, other->name, lender->name_len) == 0;
}

/* Among those of its name, if there are any. */
static void list_name(struct gale_runtime *runtime, struct gale_limiter *limiter)
    ON(runtime->lock)
{
	list_init(&limiter->locked.same);
	for (uint32_t i = 0; i < runtime->locked.limiter_end; i++) {
		struct gale_limiter *other = runtime->locked.limiters[i];

		if (other && has_name_of(&other->lender, &limiter->lender)) {
			list_append(&other->locked.same, &limiter->locked.same);
			return;
		}
	}
}

static bool list_limiter(struct gale_runtime *runtime, struct gale_limiter *limiter)
    ON(runtime->lock)
{
	uint32_t number = least_number(runtime);

	if (number >= NUMBERS || !make_room(runtime, number) ||
	    !make_chunks(runtime, chunk_of(number)))
		return false;
	limiter->locked.number = number;
	limiter->lender.score = place_of(number);
	list_name(runtime, limiter);
	runtime->locked.limiters[number] = limiter;
	runtime->locked.limiter_least = number + 1;
	if (number == runtime->locked.limiter_end)
		runtime->locked.limiter_end++;
	return true;
}

bool score_open(struct gale_limiter *limiter)
{
	struct gale_runtime *runtime = limiter->handle.runtime;
	bool listed;

	lock_take(&runtime->lock);
	listed = list_limiter(runtime, limiter);
	lock_drop(&runtime->lock);
	return listed;
}

/* Another of the name inherits, so that a name's counts never fall while it is in use. */
static struct score_sum *heir_of(struct gale_runtime *runtime,
                                 struct gale_limiter *limiter) ON(runtime->lock)
{
	struct list *other = list_first(&limiter->locked.same);

	return other ? &list_item(other, struct gale_limiter, locked.same)
	                    ->locked.inherited
	             : &runtime->locked.gone;
}

static void strike_off(struct gale_runtime *runtime, struct gale_limiter *limiter)
    ON(runtime->lock)
{
	struct list *seats = &runtime->locked.seats;
	uint32_t number = limiter->locked.number;

	add_limiter(runtime, limiter, heir_of(runtime, limiter));
	for (struct list *at = seats->next; at != seats; at = at->next)
		clear_score(seat_score(seat_at(at), &limiter->lender)); /* SCORE-2 */
	list_remove(&limiter->locked.same);
	runtime->locked.limiters[number] = NULL;
	if (number < runtime->locked.limiter_least)
		runtime->locked.limiter_least = number;
}

void score_close(struct gale_limiter *limiter)
{
	struct gale_runtime *runtime = limiter->handle.runtime;

	lock_take(&runtime->lock);
	if (list_has(&limiter->locked.same))
		strike_off(runtime, limiter);
	lock_drop(&runtime->lock);
}
