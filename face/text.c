/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* text.c -- the text for Prometheus: its lines, and how they come to the sink. */
#include "face/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/check.h"

void text_end(struct text *text)
{
	if (text->works && text->length > 0)
		text->works = text->sink->write(text->sink, text->page, text->length);
	text->length = 0;
}

void text_say(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	if (text->length > TEXT_PAGE / 2)
		text_end(text);
	va_start(arguments, format);
	length = vsnprintf(text->page + text->length, TEXT_PAGE - text->length, format,
	                   arguments);
	va_end(arguments);
	gale_assert(length >= 0 && (size_t)length < TEXT_PAGE - text->length);
	text->length += (size_t)length;
}

/* How long the character is that begins here; 0: it is not UTF-8. */
static unsigned utf8_length(const unsigned char *at)
{
	unsigned length = at[0] < 0x80                    ? 1
	                  : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
	                  : (at[0] & 0xf0) == 0xe0        ? 3
	                  : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
	                                                  : 0;
	bool too_low =
	    (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
	bool too_high =
	    (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90);

	for (unsigned i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80) /* the end, too */
			return 0;
	return too_low || too_high ? 0 : length;
}

void text_label(struct text *text, const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	while (*at) {
		unsigned length = utf8_length(at);

		if (length == 0)
			text_say(text, "\\\\x%02x", *at);
		else if (*at == '\n')
			text_say(text, "\\n");
		else
			text_say(text, "%s%.*s", *at == '"' || *at == '\\' ? "\\" : "",
			         (int)length, (const char *)at);
		at += length > 0 ? length : 1;
	}
}

void text_series(struct text *text, const char *metric, const char *label,
                 const char *value)
{
	text_say(text, "%s{%s=\"", metric, label);
	text_label(text, value);
}

void text_value(struct text *text, const char *metric, const char *label,
                const char *value, uint64_t count)
{
	text_series(text, metric, label, value);
	text_say(text, "\"} %" PRIu64 "\n", count);
}

void text_family(struct text *text, const char *name, const char *type,
                 const char *help)
{
	text_say(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}
