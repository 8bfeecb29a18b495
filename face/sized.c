/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* sized.c -- copies what both sides of a struct know. */
#include "face/sized.h"

#include <string.h>

static size_t common(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool is_zero(const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

bool sized_is_good(size_t bytes)
{
	return bytes > 0 && bytes <= SIZED_MOST && bytes % SIZED_ALIGN == 0;
}

bool sized_read(void *known, size_t known_bytes, const void *given, size_t given_bytes)
{
	size_t both = common(known_bytes, given_bytes);

	if (!sized_is_good(given_bytes) ||
	    !is_zero((const char *)given + both, given_bytes - both))
		return false;
	memset(known, 0, known_bytes);
	memcpy(known, given, both);
	return true;
}

bool sized_write(void *given, size_t given_bytes, const void *known, size_t known_bytes)
{
	if (!sized_is_good(given_bytes))
		return false;
	memset(given, 0, given_bytes);
	memcpy(given, known, common(known_bytes, given_bytes));
	return true;
}
