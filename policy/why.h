/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * why.h -- a sentence that says where a policy is wrong, and what to do.
 *
 *     policy.yaml:7: limiters.api.limit: "100 per fortnight" is no rate: ...
 *
 * Invariants
 *
 *   WHY-1  The sentence is printable ASCII in one line, and ends within its room.
 *   WHY-2  A word of the policy is quoted by why_quote alone, which leaves URLs out: they
 *          have passwords.
 */
#ifndef POLICY_WHY_H
#define POLICY_WHY_H

#include <stdbool.h>
#include <stddef.h>

#include <gale/errors.h>

#define QUOTE_ROOM 56

struct why {
	char *text; /* room bytes of the host's */
	size_t room;
	const char *source; /* the file */
	enum gale_err err;  /* OK until something was said */
};

/* A word in quotes, cut if it is long. */
struct quote {
	char is[QUOTE_ROOM];
};
struct quote why_quote(const char *word);

/* Without a line (0) or a field ("") these are left out.  Returns false, so that code that fails
 * can say so and why in one line. */
__attribute__((format(printf, 5, 6))) bool why_say(struct why *why, enum gale_err err,
                                                   unsigned line, const char *field,
                                                   const char *format, ...);

bool why_no_memory(struct why *why);

#endif
