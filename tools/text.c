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

double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}
