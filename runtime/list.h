/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * list.h -- a list whose links are in what it holds.
 *
 * Threads   None of its own.
 */
#ifndef RUNTIME_LIST_H
#define RUNTIME_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* One place in a list, or the list itself.  A place in no list is all zero. */
struct list {
	struct list *next;
	struct list *before;
};

/* What a place belongs to. */
#define list_item(place, type, member)                                                 \
	((type *)((char *)(place)-offsetof(type, member)))

static inline void list_init(struct list *list)
{
	list->next = list->before = list;
}

static inline bool list_is_empty(const struct list *list)
{
	return list->next == list;
}

/* The first place, or NULL. */
static inline struct list *list_first(const struct list *list)
{
	return list_is_empty(list) ? NULL : list->next;
}

/* At the end of the list; or before a place in it. */
static inline void list_append(struct list *list, struct list *place)
{
	place->next = list;
	place->before = list->before;
	list->before->next = place;
	list->before = place;
}

static inline bool list_has(const struct list *place)
{
	return place->next != NULL;
}

static inline void list_remove(struct list *place)
{
	place->before->next = place->next;
	place->next->before = place->before;
	place->next = place->before = NULL;
}

#endif
