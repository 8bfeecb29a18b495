/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* human.c -- each kind of text, from left to right. */
#include "policy/human.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <gale/rule.h>

#define DECIMALS_MOST 6
#define LEAST_YEAR 1970
#define MOST_YEAR 2099

static const char no_count[] =
    "is no count: write a whole number, such as 1000, 250k or 2M";
static const char no_duration[] =
    "is no duration: write a whole number with us, ms, s, min, h or d, such as 250ms";
static const char no_rate[] =
    "is no rate: write units and a time, such as 100/s or 1000 per 5 min";
static const char too_large[] = "is too large: at most 9007199254740991";
static const char too_long[] = "is too long: at most 35 years (13031d)";

/* ---- Words and digits ------------------------------------------------------------ */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void skip_spaces(const char **at)
{
	while (**at == ' ')
		++*at;
}

/* Skips the word, if it is there. */
static bool skip(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

enum digits {
	DIGITS_NONE,
	DIGITS_ZERO_AHEAD, /* 010 is eight to some, and ten to others */
	DIGITS_MANY,       /* above GALE_UNITS_MAX */
	DIGITS_GOOD,
};

static enum digits read_digits(const char **at, uint64_t *ret_number)
{
	const char *begin = *at;
	uint64_t number = 0;

	while (is_digit(**at) && number <= GALE_UNITS_MAX)
		number = number * 10 + (uint64_t)(*(*at)++ - '0');
	*ret_number = number;
	if (*at == begin)
		return DIGITS_NONE;
	if (begin[0] == '0' && *at - begin > 1)
		return DIGITS_ZERO_AHEAD;
	return number <= GALE_UNITS_MAX ? DIGITS_GOOD : DIGITS_MANY;
}

/* As many digits as that, and no more. */
static bool read_places(const char **at, int places, uint32_t *ret_number)
{
	*ret_number = 0;
	for (int i = 0; i < places; i++) {
		if (!is_digit(**at))
			return false;
		*ret_number = *ret_number * 10 + (uint32_t)(*(*at)++ - '0');
	}
	return !is_digit(**at);
}

static bool times(uint64_t *number, uint64_t by, uint64_t most)
{
	if (*number > most / by)
		return false;
	*number *= by;
	return true;
}

/* A count at the beginning of a text. */
static const char *read_count(const char **at, uint64_t *ret_count,
                              const char *otherwise)
{
	switch (read_digits(at, ret_count)) {
	case DIGITS_NONE:
		return otherwise;
	case DIGITS_ZERO_AHEAD:
		return "begins with 0: write the number without it";
	case DIGITS_MANY:
		return too_large;
	case DIGITS_GOOD:
		break;
	}
	if (skip(at, "k"))
		return times(ret_count, 1000, GALE_UNITS_MAX) ? NULL : too_large;
	if (skip(at, "M"))
		return times(ret_count, 1000000, GALE_UNITS_MAX) ? NULL : too_large;
	return NULL;
}

const char *human_count(const char *text, uint64_t *ret_count)
{
	const char *wrong = read_count(&text, ret_count, no_count);

	return wrong || *text == '\0' ? wrong : no_count;
}

/* ---- Times ----------------------------------------------------------------------- */

/* Longer words first: the first that a text begins with is taken. */
static bool read_unit(const char **at, uint64_t *ret_us)
{
	static const struct unit {
		const char *word;
		uint64_t us;
	} units[] = {
		{ "microseconds", 1 },
		{ "microsecond", 1 },
		{ "milliseconds", GALE_MILLIS(1) },
		{ "millisecond", GALE_MILLIS(1) },
		{ "seconds", GALE_SECONDS(1) },
		{ "second", GALE_SECONDS(1) },
		{ "minutes", GALE_MINUTES(1) },
		{ "minute", GALE_MINUTES(1) },
		{ "hours", GALE_HOURS(1) },
		{ "hour", GALE_HOURS(1) },
		{ "days", GALE_DAYS(1) },
		{ "day", GALE_DAYS(1) },
		{ "weeks", GALE_DAYS(7) },
		{ "week", GALE_DAYS(7) },
		{ "sec", GALE_SECONDS(1) },
		{ "min", GALE_MINUTES(1) },
		{ "us", 1 },
		{ "ms", GALE_MILLIS(1) },
		{ "s", GALE_SECONDS(1) },
		{ "m", GALE_MINUTES(1) },
		{ "h", GALE_HOURS(1) },
		{ "d", GALE_DAYS(1) },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!skip(at, units[i].word))
			continue;
		*ret_us = units[i].us;
		return true;
	}
	return false;
}

/* To the end of the text. */
static const char *read_duration(const char *at, uint64_t *ret_us,
                                 const char *otherwise)
{
	const char *wrong = read_count(&at, ret_us, otherwise);
	uint64_t unit_us;

	if (wrong)
		return wrong == too_large ? too_long : wrong;
	skip_spaces(&at);
	if (!read_unit(&at, &unit_us) || *at)
		return otherwise;
	return times(ret_us, unit_us, GALE_SPAN_MAX_US) ? NULL : too_long;
}

const char *human_duration(const char *text, uint64_t *ret_us)
{
	return read_duration(text, ret_us, no_duration);
}

/* A unit alone is one of it. */
const char *human_rate(const char *text, struct rate *ret_rate)
{
	const char *wrong = read_count(&text, &ret_rate->units, no_rate);

	if (wrong)
		return wrong;
	skip_spaces(&text);
	if (!skip(&text, "/") && !skip(&text, "per "))
		return no_rate;
	skip_spaces(&text);
	if (is_digit(*text))
		return read_duration(text, &ret_rate->per_us, no_rate);
	return read_unit(&text, &ret_rate->per_us) && *text == '\0' ? NULL : no_rate;
}

/* ---- Parts ----------------------------------------------------------------------- */

/* A number with so many decimals at most, times 10 to the power of that. */
static bool read_fixed(const char **at, int decimals, uint64_t *ret_number)
{
	if (read_digits(at, ret_number) != DIGITS_GOOD)
		return false;
	if (*ret_number > GALE_UNITS_MAX / 1000000)
		return false;
	if (**at == '.' && !is_digit(*++*at))
		return false;
	for (int i = 0; i < decimals; i++)
		*ret_number = *ret_number * 10 +
		              (is_digit(**at) ? (uint64_t)(*(*at)++ - '0') : 0);
	return !is_digit(**at);
}

const char *human_permille(const char *text, uint32_t *ret_permille)
{
	uint64_t permille;

	if (read_fixed(&text, 1, &permille) && permille <= 1000) {
		skip_spaces(&text);
		*ret_permille = (uint32_t)permille;
		if (strcmp(text, "%") == 0)
			return NULL;
	}
	return "is no part of a whole: write 0% to 100%, such as 90% or 92.5%";
}

const char *human_ppm(const char *text, uint32_t *ret_ppm)
{
	uint64_t ppm;

	if (read_digits(&text, &ppm) == DIGITS_GOOD && ppm <= 1000000) {
		skip_spaces(&text);
		*ret_ppm = (uint32_t)ppm;
		if (strcmp(text, "ppm") == 0)
			return NULL;
	}
	return "is no drift of a clock: write parts per million, such as 500 ppm";
}

const char *human_decimal(const char *text, double *ret_number)
{
	uint64_t millionths;

	if (!read_fixed(&text, DECIMALS_MOST, &millionths) || *text)
		return "is no number: write it with at most six decimals, such as 20 "
		       "or 0.5";
	*ret_number = (double)millionths / 1e6;
	return NULL;
}

/* ---- Calendar -------------------------------------------------------------------- */

const char *human_offset(const char *text, int32_t *ret_minutes)
{
	int32_t sign = text[0] == '-' ? -1 : 1;
	uint32_t hours, minutes;

	*ret_minutes = 0;
	if (strcmp(text, "utc") == 0)
		return NULL;
	if ((text[0] == '+' || text[0] == '-') &&
	    (text++, read_places(&text, 2, &hours)) && skip(&text, ":") &&
	    read_places(&text, 2, &minutes) && minutes < 60 && *text == '\0') {
		*ret_minutes = sign * (int32_t)(hours * 60 + minutes);
		return NULL;
	}
	return "is no offset from UTC: write utc, +02:00 or -05:30";
}

static bool is_leap(uint32_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Of the year that it is in; 0: there is no such day. */
static uint32_t days_of_month(uint32_t year, uint32_t month)
{
	static const uint8_t days[] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
	};

	if (month < 1 || month > 12)
		return 0;
	return days[month - 1] + (month == 2 && is_leap(year) ? 1u : 0u);
}

static uint64_t days_since_1970(uint32_t year, uint32_t month, uint32_t day)
{
	uint64_t days = day - 1;

	for (uint32_t y = LEAST_YEAR; y < year; y++)
		days += is_leap(y) ? 366 : 365;
	for (uint32_t m = 1; m < month; m++)
		days += days_of_month(year, m);
	return days;
}

static bool read_date(const char **at, uint64_t *ret_days)
{
	uint32_t year, month, day;

	if (!read_places(at, 4, &year) || !skip(at, "-") ||
	    !read_places(at, 2, &month) || !skip(at, "-") || !read_places(at, 2, &day))
		return false;
	if (year < LEAST_YEAR || year > MOST_YEAR || day < 1 ||
	    day > days_of_month(year, month))
		return false;
	*ret_days = days_since_1970(year, month, day);
	return true;
}

static bool read_time(const char **at, uint64_t *ret_seconds)
{
	uint32_t hours, minutes, seconds;

	if (!read_places(at, 2, &hours) || !skip(at, ":") ||
	    !read_places(at, 2, &minutes) || !skip(at, ":") ||
	    !read_places(at, 2, &seconds) || !skip(at, "Z"))
		return false;
	*ret_seconds = hours * 3600 + minutes * 60 + seconds;
	return hours < 24 && minutes < 60 && seconds < 60;
}

const char *human_instant(const char *text, uint64_t *ret_us)
{
	uint64_t days, seconds = 0;
	bool is_good = read_date(&text, &days);

	if (is_good && skip(&text, "T"))
		is_good = read_time(&text, &seconds);
	if (!is_good || *text)
		return "is no time: write a date from 1970 to 2099 in UTC, such as "
		       "2026-01-31 or 2026-01-31T12:00:00Z";
	*ret_us = GALE_DAYS(days) + GALE_SECONDS(seconds);
	return NULL;
}
