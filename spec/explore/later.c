/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * later.c -- steps, turned around.
 *
 * The steps to a state stand in a row, from starts[state] on; each is the state that it
 * comes from.  left counts the steps of a state that are not known to lead to good.
 */
#include "spec/explore/later.h"

#include <stdlib.h>
#include <string.h>

/* States by place: those of the first shelf, then those of the second, ... */
struct backwards {
	const struct search *search;
	const struct goal *goal;
	uint32_t base[THREADS_MOST];
	uint32_t count;
	uint64_t *starts; /* count + 1 */
	uint32_t *from;
	uint32_t *left;
	uint32_t *queue;
	bool *good;
};

struct edges {
	struct walk walk; /* first */
	struct backwards *back;
	uint32_t place; /* whose steps they are */
	bool fill;      /* or only count */
};

static uint32_t place_of(const struct backwards *back, uint32_t state)
{
	uint32_t threads = back->search->space.threads;

	return back->base[state % threads] + state / threads;
}

static uint32_t state_of(const struct backwards *back, uint32_t place)
{
	uint32_t shelf = back->search->space.threads - 1;

	while (place < back->base[shelf])
		shelf--;
	return (place - back->base[shelf]) * back->search->space.threads + shelf;
}

static void take_edge(struct walk *self, const void *state, enum step_kind kind,
                      const char *says, int a, int b)
{
	struct edges *edges = (struct edges *)self;
	struct backwards *back = edges->back;
	uint32_t to;

	(void)says;
	(void)a;
	(void)b;
	if (back->goal->kind == CERTAIN && kind != FAIR)
		return;
	to = place_of(back, space_find(&back->search->space, state));
	if (edges->fill) {
		back->from[--back->starts[to]] = edges->place;
	} else {
		back->starts[to]++;
		back->left[edges->place]++;
	}
}

static void walk_edges(struct backwards *back, bool fill)
{
	const struct search *search = back->search;
	struct edges edges = { .walk = { .take = take_edge },
		               .back = back,
		               .fill = fill };

	for (uint32_t place = 0; place < back->count; place++) {
		edges.place = place;
		search->model->next(search->c,
		                    space_state(&search->space, state_of(back, place)),
		                    &edges.walk);
	}
}

/* starts[i] is where the row of i ends, before it is filled from the end. */
static uint64_t sum_starts(struct backwards *back)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < back->count; i++) {
		sum += back->starts[i];
		back->starts[i] = sum;
	}
	back->starts[back->count] = sum;
	return sum;
}

static bool turn_around(struct backwards *back, uint64_t bytes_most)
{
	uint64_t count = back->count, edges;

	if (count * 25 > bytes_most)
		return false;
	back->starts = calloc(count + 1, sizeof(*back->starts));
	back->left = calloc(count, sizeof(*back->left));
	back->queue = calloc(count, sizeof(*back->queue));
	back->good = calloc(count, sizeof(*back->good));
	if (!back->starts || !back->left || !back->queue || !back->good)
		return false;
	walk_edges(back, /* fill= */ false);
	edges = sum_starts(back);
	if (count * 25 + edges * sizeof(*back->from) > bytes_most)
		return false;
	back->from = malloc((edges + 1) * sizeof(*back->from));
	if (!back->from)
		return false;
	walk_edges(back, /* fill= */ true);
	return true;
}

static uint32_t queue_good(struct backwards *back)
{
	const struct search *search = back->search;
	uint32_t queued = 0;

	for (uint32_t i = 0; i < back->count; i++) {
		back->good[i] = back->goal->good(
		    search->c, space_state(&search->space, state_of(back, i)));
		if (back->good[i])
			back->queue[queued++] = i;
	}
	return queued;
}

static bool becomes_good(struct backwards *back, uint32_t place)
{
	if (back->good[place])
		return false;
	if (back->goal->kind == CERTAIN && --back->left[place] > 0)
		return false;
	back->good[place] = true;
	return true;
}

static void spread(struct backwards *back)
{
	uint32_t queued = queue_good(back);

	for (uint32_t at = 0; at < queued; at++) {
		uint32_t to = back->queue[at];

		for (uint64_t i = back->starts[to]; i < back->starts[to + 1]; i++)
			if (becomes_good(back, back->from[i]))
				back->queue[queued++] = back->from[i];
	}
}

/* STATE_NONE: there is none. */
static uint32_t nearest_bad(const struct backwards *back)
{
	uint32_t nearest = STATE_NONE, best = UINT32_MAX;

	for (uint32_t i = 0; i < back->count; i++) {
		uint32_t state = state_of(back, i);
		uint32_t depth = back->good[i]
		                     ? UINT32_MAX
		                     : space_depth(&back->search->space, state);

		if (depth < best) {
			best = depth;
			nearest = state;
		}
	}
	return nearest;
}

enum later later_check(const struct search *search, const struct goal *goal,
                       uint64_t bytes_most, uint32_t *ret_bad)
{
	struct backwards back = { .search = search, .goal = goal };
	enum later later = LATER_NO_MEMORY;

	for (uint32_t i = 0; i < search->space.threads; i++) {
		back.base[i] = back.count;
		back.count += search->space.shelves[i].count;
	}
	if (turn_around(&back, bytes_most)) {
		spread(&back);
		*ret_bad = nearest_bad(&back);
		later = *ret_bad == STATE_NONE ? LATER_HOLDS : LATER_FAILS;
	}
	free(back.starts);
	free(back.from);
	free(back.left);
	free(back.queue);
	free(back.good);
	return later;
}
