/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sentence.h -- why something cannot go on, in one line for people.
 */
#ifndef TOOLS_SENTENCE_H
#define TOOLS_SENTENCE_H

#include <stdbool.h>

#define SENTENCE_MAX 384

struct sentence {
	char is[SENTENCE_MAX]; /* without a line's end; cut if it is longer */
};

/* Returns false, so that code that fails can say so and why in one line. */
__attribute__((format(printf, 2, 3))) bool sentence_say(struct sentence *sentence,
                                                        const char *format, ...);

#endif
