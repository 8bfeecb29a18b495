/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tree.h -- a policy's text as a tree of names and values.
 *
 * Of YAML a policy uses mappings and single values.  All else is refused: lists, anchors and
 * aliases, tags, a second document, deep nesting, names that are given twice.  The text must
 * end with the line "...": so half of it is no policy.
 *
 * Invariants
 *
 *   NODE-1  no name is twice in a mapping, and none is empty.
 */
#ifndef POLICY_TREE_H
#define POLICY_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/why.h"

/* A name of a mapping, and what stands behind it. */
struct node {
	const struct node *above; /* the node of the mapping; NULL: this is the whole */
	struct node *next;        /* in the mapping */
	struct node *first;       /* of what is in this one */
	struct node *last;
	size_t count;
	char *name;
	char *value; /* NULL: a mapping */
	unsigned line;
};

/* The whole, a mapping. */
bool tree_read(const char *text, size_t bytes, struct why *why, struct node **ret_root);
void tree_free(struct node *root);

/* NULL: the mapping has no such name, or there is no mapping. */
const struct node *node_find(const struct node *map, const char *name);

/* Says what is wrong with a node: its line, the names on the way to it, and this. */
__attribute__((format(printf, 4, 5))) bool node_say(const struct node *node,
                                                    struct why *why, enum gale_err err,
                                                    const char *format, ...);

#endif
