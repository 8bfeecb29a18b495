/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * law.h -- what may be admitted in a world, counted without gale.
 *
 * The law knows true time, what the store lent and took back, and each call at the moment
 * of its admission.  What breaks it is the world's fault, and how many units that is too
 * much is kept.
 *
 * Invariants   SIM-1 to SIM-3 and SIM-6 to SIM-8 of world.h.  SIM-4 and SIM-5 are the
 *              answers', in answers.h.
 *
 * Threads   The simulator's.
 */
#ifndef SIM_LAW_H
#define SIM_LAW_H

#include "sim/world.h"

/* The first fault is kept. */
__attribute__((format(printf, 2, 3))) void world_fault(struct world *world,
                                                       const char *format, ...);

bool law_is_budget(const struct gale_rule *rule);
bool law_has_windows(const struct gale_rule *rule);
bool law_slides(const struct gale_rule *rule);

/* Nodes are given another rule: before and after. */
void law_changes(struct world *world);
/* A call was denied by the store itself. */
void law_denied(struct world *world, const struct call *call);

/* How long units that are not of a window live with a node. */
uint64_t law_life_ns(const struct gale_rule *rule);

/* The store has served something about a key by that rule, and has taken something or not:
 * before law_lent and law_given_back. */
void law_note(struct world *world, uint32_t key, const struct rule *rule, bool took);

/* It has lent what is in the answer, or so much was given back; before: the same that it
 * had done before, when a request came twice.  pot: of the node, NULL: that is no more. */
void law_lent(struct world *world, uint32_t key, struct pot *pot,
              const struct lend_answer *answer, uint64_t before);
void law_given_back(struct world *world, uint32_t key, uint64_t units, uint64_t before);

/* Units that are not of a window have come to a node, and live until then. */
void law_arrives(struct world *world, struct pot *pot, const struct lend_answer *answer,
                 uint64_t dies_us);

/* A call was allowed.  A call that a server elsewhere has decided was counted there and
 * then, by law_stepped. */
void law_admit(struct world *world, const struct call *call);
void law_stepped(struct world *world, uint32_t key, const struct rule *rule,
                 uint64_t cost);

/* Checks what can be checked only when everything has happened. */
void law_end(struct world *world);
void law_free(struct world *world);

#endif
