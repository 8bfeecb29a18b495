/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.h -- one call that several limits decide: all or nothing.
 *
 *     each part:  ALLOW, its units are kept  |  DENY  |  PENDING
 *     the whole:  DENY if one part denies, else PENDING if one part waits, else ALLOW
 *
 * A whole that is denied gives back what its parts have kept.  Nothing that a part keeps counts
 * as used until the whole is allowed.
 *
 * Invariants
 *
 *   WHOLE-1  The whole is allowed only if every part is.
 *   WHOLE-2  The binding part of a denial is the first one that denies: limits are asked in the
 *            order of the parts.  Of an allow it is the part with the least left.
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_WHOLE_H
#define ENGINE_WHOLE_H

#include <stddef.h>

#include <gale/rule.h>

/* The answer to the whole, from the answers of its parts, of which there is at least one.  All
 * that is to be waited for is as of the part where that takes longest. */
struct gale_answer whole_of(const struct gale_answer *parts, size_t count,
                            size_t *ret_binding);

#endif
