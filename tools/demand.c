/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * demand.c -- the half that asks is an arc of the nodes in a circle; where it begins is hashed
 * from the slot.
 *
 * Counts of calls are rounded down from products in doubles, each of which both of its
 * neighbours compute alike: so no call is missing, and none is made twice.
 */
#include "tools/demand.h"

#define SLOTS 2 /* in a window */

struct slot {
	uint64_t number;
	uint64_t begin_us;
	uint64_t length_us;
};

static struct slot slot_at(const struct demand *demand, uint64_t now_us)
{
	uint64_t window = now_us / demand->window_us;
	uint64_t begin_us = window * demand->window_us;
	uint64_t half_us = demand->window_us / SLOTS;

	if (now_us - begin_us < half_us)
		return (struct slot){ SLOTS * window, begin_us, half_us };
	return (struct slot){ SLOTS * window + 1, begin_us + half_us,
		              demand->window_us - half_us };
}

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint32_t asking_nodes(const struct demand *demand)
{
	return demand->moves ? (demand->nodes + 1) / 2 : demand->nodes;
}

/* How many nodes of the arc are before this one; asking_nodes or more: it does not ask. */
static uint32_t rank_of(const struct demand *demand, uint32_t node, uint64_t slot)
{
	uint32_t begin = demand->moves ? (uint32_t)(mix(slot) % demand->nodes) : 0;

	return (node + demand->nodes - begin) % demand->nodes;
}

static double calls_of_slot(const struct demand *demand)
{
	return (double)demand->percent / 100 / SLOTS * (double)demand->limit *
	       (double)demand->keys;
}

static double workers_of_slot(const struct demand *demand)
{
	return (double)asking_nodes(demand) * demand->threads;
}

/* The first call of the worker that has so many others before it. */
static uint64_t first_of(const struct demand *demand, uint32_t before)
{
	return (uint64_t)(calls_of_slot(demand) * before / workers_of_slot(demand));
}

/* Workers whose counts are equal do not make their calls at the same instants. */
static void schedule(struct demand_part *part, const struct slot *slot, double phase,
                     uint64_t now_us)
{
	double count = (double)part->count, length_us = (double)slot->length_us;
	double over = (double)(now_us - slot->begin_us) / length_us;

	part->due = (uint64_t)(over * count + 1 - phase);
	if (part->due < part->count)
		part->next_us =
		    slot->begin_us + 1 +
		    (uint64_t)(length_us * ((double)part->due + phase) / count);
}

struct demand_part demand_at(const struct demand *demand, uint32_t place,
                             uint64_t now_us)
{
	struct slot slot = slot_at(demand, now_us);
	uint32_t rank = rank_of(demand, place / demand->threads, slot.number);
	uint32_t before = rank * demand->threads + place % demand->threads;
	struct demand_part part = { .slot = slot.number,
		                    .next_us = slot.begin_us + slot.length_us };

	if (rank >= asking_nodes(demand))
		return part;
	part.first = first_of(demand, before);
	part.count = first_of(demand, before + 1) - part.first;
	if (part.count > 0)
		schedule(&part, &slot, before / workers_of_slot(demand), now_us);
	return part;
}

uint32_t demand_key(const struct demand *demand, uint64_t slot, uint64_t number)
{
	uint64_t turn = demand->moves ? mix(slot + 1) : 0;

	return (uint32_t)((number + turn % demand->keys) % demand->keys);
}
