/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fair_test.c -- budgets that are parted: vectors, and a drip that hands out unit by unit.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

#include <gale/rule.h>

#include "engine/fair.h"
#include "tests/support/length.h"

#define NODES 40
#define INSTANCES LONG_OR_BRIEF(20000, 5000)

static uint64_t lot(uint64_t *seed, uint64_t below)
{
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) % below;
}

/* ---- Unit by unit ----------------------------------------------------------------- */

static uint64_t assured(const struct fair_node *node)
{
	return node->guarantee < node->demand ? node->guarantee : node->demand;
}

/* Would the next unit go to a rather than to b? */
static bool before(const struct fair_node *a, const struct fair_node *b)
{
	bool owed_a = a->part < assured(a), owed_b = b->part < assured(b);

	if (owed_a || owed_b)
		return owed_a && !owed_b;
	return (a->part - assured(a)) * b->weight < (b->part - assured(b)) * a->weight;
}

static size_t count_children(const struct fair_node *nodes, size_t count, size_t parent,
                             size_t *ret_first)
{
	size_t children = 0;

	for (size_t i = count; i-- > 1;)
		if (nodes[i].parent == parent) {
			*ret_first = i;
			children++;
		}
	return children;
}

/* The child of parent that gets the next unit; 0: no child can use one. */
static size_t next_child(const struct fair_node *nodes, size_t count, size_t parent,
                         size_t turn)
{
	size_t first = 0, best = 0;
	size_t children = count_children(nodes, count, parent, &first);

	for (size_t i = 0; i < children; i++) {
		size_t child = first + (turn + i) % children;

		if (nodes[child].part < nodes[child].demand &&
		    (best == 0 || before(&nodes[child], &nodes[best])))
			best = child;
	}
	return best;
}

/* One unit falls from the top to a leaf. */
static bool drip(struct fair_node *nodes, size_t count, size_t turn)
{
	size_t at = 0, first;

	if (nodes[0].part == nodes[0].demand)
		return false;
	nodes[0].part++;
	while (count_children(nodes, count, at, &first) > 0) {
		at = next_child(nodes, count, at, turn);
		assert_int_not_equal(at, 0);
		nodes[at].part++;
	}
	return true;
}

static void work_out_demands(struct fair_node *nodes, size_t count)
{
	for (size_t i = count; i-- > 0;) {
		uint64_t sum = 0;
		size_t first;

		for (size_t j = i + 1; j < count; j++)
			if (nodes[j].parent == i)
				sum += nodes[j].demand;
		if (count_children(nodes, count, i, &first) > 0)
			nodes[i].demand = sum;
		if (nodes[i].demand > nodes[i].cap)
			nodes[i].demand = nodes[i].cap;
	}
}

/* ---- Vectors ---------------------------------------------------------------------- */

#define FOUR 4
struct row {
	uint64_t demand[FOUR];
	uint32_t weight[FOUR];
	uint64_t limit;
	uint64_t part[FOUR];
};

/* Of no demand: not there. */
static const struct row rows[] = {
	{ { 10, 20, 5, 0 }, { 1, 1, 1, 1 }, 100, { 10, 20, 5, 0 } },
	{ { 100, 100, 100, 100 }, { 4, 1, 1, 1 }, 70, { 40, 10, 10, 10 } },
	{ { 0, 100, 100, 100 }, { 4, 1, 1, 1 }, 70, { 0, 24, 23, 23 } },
	{ { 5, 100, 100, 100 }, { 4, 1, 1, 1 }, 70, { 5, 22, 22, 21 } },
	{ { 100, 100, 100, 0 }, { 3, 3, 2, 1 }, 100, { 38, 37, 25, 0 } },
	{ { 7, 9, 50, 0 }, { 1, 2, 3, 1 }, 40, { 7, 9, 24, 0 } },
	{ { 3, 3, 3, 0 }, { 1, 1, 1, 1 }, 7, { 3, 2, 2, 0 } },
	{ { 110, 155, 195, 196 }, { 4, 2, 8, 1 }, 115, { 31, 16, 60, 8 } },
};

static void flat(struct fair_node *nodes, size_t count, uint64_t limit)
{
	memset(nodes, 0, count * sizeof(*nodes));
	for (size_t i = 0; i < count; i++)
		nodes[i] = (struct fair_node){ .weight = 1, .cap = GALE_UNITS_MAX };
	nodes[0].guarantee = nodes[0].cap = limit;
}

/* 5.7 of the predecessor's vectors; the last is where it differed from the drip. */
static void vectors_are_parted_as_they_were(void **state)
{
	struct fair_node nodes[1 + FOUR];

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		flat(nodes, 1 + FOUR, rows[r].limit);
		for (size_t i = 0; i < FOUR; i++) {
			nodes[1 + i].demand = rows[r].demand[i];
			nodes[1 + i].weight = rows[r].weight[i];
		}
		assert_int_equal(fair_check(nodes, 1 + FOUR), FAIR_GOOD);
		fair_part(nodes, 1 + FOUR, 0);
		for (size_t i = 0; i < FOUR; i++)
			if (nodes[1 + i].part != rows[r].part[i])
				fail_msg("row %zu, %zu: %lu", r, i,
				         (unsigned long)nodes[1 + i].part);
	}
}

static void a_share_is_at_least_one_unit(void **state)
{
	(void)state;
	assert_int_equal(fair_share(70, 4, 7), 40);
	assert_int_equal(fair_share(70, 1, 7), 10);
	assert_int_equal(fair_share(3, 1, 7), 1);
	assert_int_equal(fair_share(GALE_UNITS_MAX, FAIR_WEIGHT_MAX, FAIR_WEIGHT_MAX),
	                 GALE_UNITS_MAX);
}

/* ---- By lot ----------------------------------------------------------------------- */

static void draw_terms(struct fair_node *node, uint64_t limit, uint64_t *seed)
{
	node->weight = 1 + (uint32_t)lot(seed, lot(seed, 3) == 0 ? 1000 : 9);
	node->demand = lot(seed, 4) == 0 ? 0 : lot(seed, 1 + limit);
	node->cap = lot(seed, 3) == 0 ? 1 + lot(seed, 1 + limit) : GALE_UNITS_MAX;
}

/* Guarantees are given out from the top, so that they can be kept. */
static void draw_guarantees(struct fair_node *nodes, size_t count, uint64_t *seed)
{
	uint64_t left[NODES];

	left[0] = nodes[0].guarantee;
	for (size_t i = 1; i < count; i++) {
		uint64_t most = left[nodes[i].parent];

		if (most > nodes[i].cap)
			most = nodes[i].cap;
		nodes[i].guarantee = lot(seed, 2) == 0 ? lot(seed, 1 + most / 2) : 0;
		left[nodes[i].parent] -= nodes[i].guarantee;
		left[i] = nodes[i].guarantee;
	}
}

/* depth 1: flat. */
static size_t draw_tree(struct fair_node *nodes, bool nested, uint64_t *seed)
{
	size_t count = 2 + lot(seed, nested ? NODES - 2 : 8);
	uint64_t limit = lot(seed, 200);

	flat(nodes, count, limit);
	for (size_t i = 1; i < count; i++) {
		uint64_t least = nodes[i - 1].parent;

		draw_terms(&nodes[i], limit, seed);
		if (nested && i > 1)
			nodes[i].parent =
			    (uint32_t)(least + lot(seed, 1 + (i - 1 - least) / 2));
	}
	draw_guarantees(nodes, count, seed);
	return count;
}

static void compare(bool nested)
{
	struct fair_node nodes[NODES], drop[NODES];

	for (uint64_t i = 0; i < INSTANCES; i++) {
		uint64_t seed = i;
		size_t count = draw_tree(nodes, nested, &seed);
		size_t turn = lot(&seed, 5);

		assert_int_equal(fair_check(nodes, count), FAIR_GOOD);
		memcpy(drop, nodes, sizeof(nodes));
		work_out_demands(drop, count);
		while (drip(drop, count, turn))
			;
		fair_part(nodes, count, turn);
		for (size_t j = 0; j < count; j++)
			if (nodes[j].part != drop[j].part)
				fail_msg("seed %lu, node %zu: %lu, not %lu",
				         (unsigned long)i, j,
				         (unsigned long)nodes[j].part,
				         (unsigned long)drop[j].part);
	}
}

/* FAIR-1 */
static void flat_parts_are_those_of_a_drip(void **state)
{
	(void)state;
	compare(/* nested= */ false);
}

/* FAIR-1, FAIR-2 */
static void nested_parts_are_those_of_a_drip(void **state)
{
	(void)state;
	compare(/* nested= */ true);
}

static void the_odd_unit_goes_round(void **state)
{
	struct fair_node nodes[4];

	(void)state;
	for (size_t turn = 0; turn < 6; turn++) {
		flat(nodes, 4, 7);
		for (size_t i = 1; i < 4; i++)
			nodes[i].demand = 10;
		fair_part(nodes, 4, turn);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(nodes[1 + i].part, i == turn % 3 ? 3 : 2);
	}
}

static void the_largest_numbers_are_parted_exactly(void **state)
{
	struct fair_node nodes[3];

	(void)state;
	flat(nodes, 3, GALE_UNITS_MAX);
	nodes[1].demand = nodes[2].demand = GALE_UNITS_MAX;
	nodes[1].weight = FAIR_WEIGHT_MAX;
	nodes[2].weight = FAIR_WEIGHT_MAX - 1;
	assert_int_equal(fair_check(nodes, 3), FAIR_GOOD);
	fair_part(nodes, 3, 0);
	assert_int_equal(nodes[1].part + nodes[2].part, GALE_UNITS_MAX);
	/* The last unit of each: the other's next would have been due no sooner. */
	assert_true((uint128)(nodes[1].part - 1) * nodes[2].weight <=
	            (uint128)nodes[2].part * nodes[1].weight);
	assert_true((uint128)(nodes[2].part - 1) * nodes[1].weight <=
	            (uint128)nodes[1].part * nodes[2].weight);
}

/* ---- Bad input -------------------------------------------------------------------- */

static enum fair_fault with(size_t i, struct fair_node node)
{
	struct fair_node nodes[4];

	flat(nodes, 4, 100);
	nodes[2].guarantee = 60;
	nodes[3].parent = 2;
	nodes[i] = node;
	return fair_check(nodes, 4);
}

static void a_bad_tree_is_refused(void **state)
{
	struct fair_node good = { .weight = 1, .cap = 100 }, node = good;

	(void)state;
	assert_int_equal(with(1, good), FAIR_GOOD);
	node.weight = 0;
	assert_int_equal(with(1, node), FAIR_WEIGHT);
	node.weight = FAIR_WEIGHT_MAX + 1;
	assert_int_equal(with(1, node), FAIR_WEIGHT);
	node = good;
	node.guarantee = 41; /* and 60 are more than 100 */
	assert_int_equal(with(1, node), FAIR_GUARANTEE);
	node.guarantee = 40;
	assert_int_equal(with(1, node), FAIR_GOOD);
	node.guarantee = 61;
	node.parent = 2;
	assert_int_equal(with(3, node), FAIR_GUARANTEE);
	node.cap = 60;
	assert_int_equal(with(3, node), FAIR_CAP);
	node = good;
	node.cap = GALE_UNITS_MAX + 1;
	assert_int_equal(with(1, node), FAIR_CAP);
	node = good;
	node.demand = GALE_UNITS_MAX + 1;
	assert_int_equal(with(1, node), FAIR_DEMAND);
}

static void a_cycle_is_refused(void **state)
{
	struct fair_node node = { .weight = 1, .cap = 100, .parent = 1 };

	(void)state;
	assert_int_equal(with(1, node), FAIR_PARENT); /* its own */
	node.parent = 3;
	assert_int_equal(with(2, node), FAIR_PARENT); /* and 2 is the parent of 3 */
	node.parent = 0;
	assert_int_equal(with(3, node), FAIR_GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_are_parted_as_they_were),
		cmocka_unit_test(a_share_is_at_least_one_unit),
		cmocka_unit_test(flat_parts_are_those_of_a_drip),
		cmocka_unit_test(nested_parts_are_those_of_a_drip),
		cmocka_unit_test(the_odd_unit_goes_round),
		cmocka_unit_test(the_largest_numbers_are_parted_exactly),
		cmocka_unit_test(a_bad_tree_is_refused),
		cmocka_unit_test(a_cycle_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
