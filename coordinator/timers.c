/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * timers.c -- melds, by which all is done.
 *
 * Threads   As timers.h says.
 */
#include "coordinator/timers.h"

/* Two heaps become one; neither has siblings. */
static struct timer *meld(struct timer *a, struct timer *b)
{
	struct timer *first, *other;

	if (!a || !b)
		return a ? a : b;
	first = b->due.ns < a->due.ns ? b : a;
	other = first == a ? b : a;
	other->sibling = first->child;
	if (other->sibling)
		other->sibling->before = other;
	other->before = first;
	first->child = other;
	return first;
}

void timers_add(struct timers *timers, struct timer *timer, mono due)
{
	*timer = (struct timer){ .due = due };
	timers->first = meld(timers->first, timer);
}

static struct timer *take_sibling(struct timer **siblings)
{
	struct timer *taken = *siblings;

	if (taken) {
		*siblings = taken->sibling;
		taken->sibling = taken->before = NULL;
	}
	return taken;
}

/* Pairs from the left, and then all pairs from the right: so a take is cheap on average. */
static struct timer *meld_all(struct timer *siblings)
{
	struct timer *pairs = NULL, *all = NULL;

	while (siblings) {
		struct timer *a = take_sibling(&siblings);
		struct timer *pair = meld(a, take_sibling(&siblings));

		pair->sibling = pairs;
		pairs = pair;
	}
	while (pairs)
		all = meld(take_sibling(&pairs), all);
	return all;
}

static void cut(struct timer *timer)
{
	if (timer->before->child == timer)
		timer->before->child = timer->sibling;
	else
		timer->before->sibling = timer->sibling;
	if (timer->sibling)
		timer->sibling->before = timer->before;
	timer->sibling = timer->before = NULL;
}

void timers_remove(struct timers *timers, struct timer *timer)
{
	struct timer *rest;

	if (timer == timers->first) {
		timers->first = meld_all(timer->child);
		return;
	}
	cut(timer);
	rest = meld_all(timer->child);
	timers->first = meld(timers->first, rest);
}

struct timer *timers_take(struct timers *timers, mono now)
{
	struct timer *first = timers->first;

	if (!first || !mono_reached(now, first->due))
		return NULL;
	timers_remove(timers, first);
	return first;
}
