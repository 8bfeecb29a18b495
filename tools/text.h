/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * text.h -- numbers as people read them.
 *
 * Each fills the caller's buffer and returns it, so that it can stand in a printf.
 */
#ifndef TOOLS_TEXT_H
#define TOOLS_TEXT_H

#include <stdint.h>

#define TEXT_MAX 32

struct text {
	char is[TEXT_MAX];
};

/* "12,345,678" */
const char *text_count(struct text *text, uint64_t count);

/* "500ms", "90s", "2m": in the largest unit that leaves no rest, as a flag takes it. */
const char *text_duration(struct text *text, uint64_t us);

struct text_long {
	char is[256];
};

/* A URL without its password; cut if it is long. */
const char *text_url(struct text_long *text, const char *url);

/* How many percent part is of whole; 0 of nothing. */
double percent(uint64_t part, uint64_t whole);

#endif
