/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* text.c -- numbers as people read them. */
#include "tools/text.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *text_count(struct text *text, uint64_t count)
{
	char digits[TEXT_MAX];
	size_t left = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = text->is;

	for (const char *from = digits; left > 0; left--) {
		*to++ = *from++;
		if (left > 1 && left % 3 == 1)
			*to++ = ',';
	}
	*to = '\0';
	return text->is;
}

const char *text_duration(struct text *text, uint64_t us)
{
	static const struct unit {
		const char *name;
		uint64_t us;
	} units[] = { { "h", 3600000000 },
		      { "m", 60000000 },
		      { "s", 1000000 },
		      { "ms", 1000 },
		      { "us", 1 } };
	const struct unit *unit = units;

	while (unit->us > 1 && (us % unit->us != 0 || us < unit->us))
		unit++;
	snprintf(text->is, sizeof(text->is), "%" PRIu64 "%s", us / unit->us,
	         unit->name);
	return text->is;
}

/* scheme://user:password@host/...: up to the last @ before the first /. */
const char *text_url(struct text_long *text, const char *url)
{
	const char *begin = strstr(url, "://");
	const char *end = begin ? begin + 3 + strcspn(begin + 3, "/?") : NULL;
	const char *colon = begin ? strchr(begin + 3, ':') : NULL;
	const char *at = end;

	while (at && at > begin && *at != '@')
		at--;
	if (!begin || at == begin || !colon || colon > at)
		snprintf(text->is, sizeof(text->is), "%s", url);
	else
		snprintf(text->is, sizeof(text->is), "%.*s:***%s", (int)(colon - url),
		         url, at);
	return text->is;
}

double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}
