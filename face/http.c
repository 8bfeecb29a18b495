/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http.c -- an answer as HTTP says it.
 *
 * Threads   Any.
 */
#include <gale/http.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INTEGER_MAX UINT64_C(999999999999999) /* of a structured field */
#define NAME_MAX_BYTES 255
#define LINE_MOST (2 * NAME_MAX_BYTES + 96)

static bool is_by_rule(enum gale_why why)
{
	return why == GALE_WHY_RULE || why == GALE_WHY_SPENT ||
	       why == GALE_WHY_TOO_MUCH;
}

int gale_http_status(const struct gale_answer *answer)
{
	switch (answer->verdict) {
	case GALE_ALLOW:
		return 200;
	case GALE_PENDING:
		return 0;
	case GALE_DENY:
		break;
	}
	return is_by_rule(answer->why) ? 429 : 503;
}

/* As a string of a structured field; false if it cannot be one. */
static bool quote(const char *name, char *ret_quoted)
{
	size_t length = name ? strlen(name) : NAME_MAX_BYTES + 1;

	if (length > NAME_MAX_BYTES)
		return false;
	*ret_quoted++ = '"';
	for (size_t i = 0; i < length; i++) {
		if (name[i] < ' ' || name[i] > '~')
			return false;
		if (name[i] == '"' || name[i] == '\\')
			*ret_quoted++ = '\\';
		*ret_quoted++ = name[i];
	}
	*ret_quoted++ = '"';
	*ret_quoted = '\0';
	return true;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

static uint64_t seconds_up(uint64_t us)
{
	return us / 1000000 + (us % 1000000 > 0);
}

/* Does the answer say what remains?  Of a cost that never passes nothing was looked up. */
static bool tells_remaining(const struct gale_answer *answer)
{
	return answer->why == GALE_WHY_RULE || answer->why == GALE_WHY_CREDIT ||
	       answer->why == GALE_WHY_SPENT || answer->why == GALE_WHY_RESTARTED;
}

struct page {
	char text[3 * LINE_MOST];
	size_t length;
};

static void write_limit(struct page *page, const struct gale_answer *answer,
                        const char *quoted, uint64_t window_us)
{
	uint64_t limit = at_most(answer->limit, INTEGER_MAX);
	char *at = page->text;
	size_t room = sizeof(page->text);
	int n = snprintf(at, room, "RateLimit-Policy: %s;q=%" PRIu64, quoted, limit);

	if (window_us >= 1000000)
		n += snprintf(at + n, room - (size_t)n, ";w=%" PRIu64,
		              window_us / 1000000);
	n += snprintf(at + n, room - (size_t)n, "\r\n");
	if (tells_remaining(answer))
		n += snprintf(at + n, room - (size_t)n,
		              "RateLimit: %s;r=%" PRIu64 ";t=%" PRIu64 "\r\n", quoted,
		              at_most(answer->remaining, limit),
		              seconds_up(answer->reset_after_us));
	page->length = (size_t)n;
}

static void write_retry(struct page *page, const struct gale_answer *answer)
{
	if (answer->verdict != GALE_DENY || answer->retry_after_us == 0 ||
	    answer->retry_after_us == GALE_NEVER)
		return;
	page->length += (size_t)snprintf(
	    page->text + page->length, sizeof(page->text) - page->length,
	    "Retry-After: %" PRIu64 "\r\n", seconds_up(answer->retry_after_us));
}

int gale_http_headers(const struct gale_answer *answer, const char *name,
                      uint64_t window_us, char *buf, size_t room)
{
	char quoted[2 * NAME_MAX_BYTES + 3];
	struct page page = { .length = 0 };
	bool fits;

	if (room > 0)
		buf[0] = '\0';
	if (!quote(name, quoted))
		return -1;
	if (answer->verdict != GALE_PENDING && answer->limit > 0)
		write_limit(&page, answer, quoted, window_us);
	write_retry(&page, answer);
	fits = page.length < room;
	if (fits)
		memcpy(buf, page.text, page.length);
	if (fits)
		buf[page.length] = '\0';
	return (int)page.length;
}
