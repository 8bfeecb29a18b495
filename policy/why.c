/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* why.c -- puts a sentence together. */
#include "policy/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_MOST 40

__attribute__((format(printf, 3, 4))) static size_t
append(struct why *why, size_t length, const char *format, ...)
{
	size_t left = length < why->room ? why->room - length : 0;
	va_list args;
	int added;

	va_start(args, format);
	added = vsnprintf(left ? why->text + length : NULL, left, format, args);
	va_end(args);
	return added > 0 ? length + (size_t)added : length;
}

/* WHY-1 */
static void make_printable(struct why *why)
{
	if (why->room == 0)
		return;
	for (char *at = why->text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

bool why_say(struct why *why, enum gale_err err, unsigned line, const char *field,
             const char *format, ...)
{
	size_t length = append(why, 0, "%s:", why->source);
	size_t left;
	va_list args;

	if (line > 0)
		length = append(why, length, "%u:", line);
	if (field[0])
		length = append(why, length, " %s:", field);
	length = append(why, length, " ");
	left = length < why->room ? why->room - length : 0;
	va_start(args, format);
	(void)vsnprintf(left ? why->text + length : NULL, left, format, args);
	va_end(args);
	make_printable(why);
	why->err = err;
	return false;
}

bool why_no_memory(struct why *why)
{
	return why_say(why, GALE_ERR_MEMORY, 0, "", "there is no memory for it");
}

/* WHY-2 */
struct quote why_quote(const char *word)
{
	struct quote quote = { "a URL" };
	const char *end = strlen(word) > QUOTED_MOST ? "...\"" : "\"";

	if (!strstr(word, "://"))
		snprintf(quote.is, sizeof(quote.is), "\"%.*s%s", QUOTED_MOST, word,
		         end);
	return quote;
}
