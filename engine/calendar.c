/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * calendar.c -- months, weeks and days at a fixed offset from UTC.
 *
 * Local time is now plus the offset; a period is found there in whole days and shifted
 * back.  Daylight saving is out of scope: a limit that changes length twice a year
 * would need the zone's history in every store.
 *
 * Invariants  CALENDAR-1  start <= now < end, for every instant from 0 to
 *                         INSTANT_MAX_US.
 *             CALENDAR-2  The end of one period is the start of the next.
 */
#include "engine/calendar.h"

#include "engine/check.h"

#define DAY_US ((int64_t)GALE_DAYS(1))
#define DAYS_PER_ERA 146097 /* 400 years */

/* Rounds toward minus infinity, as days before 1970 need; d is positive. */
static int64_t floor_div(int64_t n, int64_t d)
{
	return n / d - (n % d < 0);
}

/*
 * Years start in March here, so that the leap day is the last of its year and
 * (153 * month + 2) / 5 counts the days before a month.
 */
int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
	int64_t y = year - (month <= 2);
	int64_t era = floor_div(y, 400);
	int64_t year_of_era = y - era * 400;
	int64_t month_from_march = (month + 9) % 12;
	int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;

	return era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 -
	       year_of_era / 100 + day_of_year - 719468;
}

void civil_from_days(int64_t days, int64_t *ret_year, unsigned *ret_month,
                     unsigned *ret_day)
{
	int64_t z = days + 719468;
	int64_t era = floor_div(z, DAYS_PER_ERA);
	int64_t day_of_era = z - era * DAYS_PER_ERA;
	int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
	                       day_of_era / 146096) /
	                      365;
	int64_t day_of_year =
	    day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t month_from_march = (5 * day_of_year + 2) / 153;

	*ret_day = (unsigned)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
	*ret_month = (unsigned)(month_from_march < 10 ? month_from_march + 3
	                                              : month_from_march - 9);
	*ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

struct days {
	int64_t first;
	int64_t next;
};

static struct days month_of(int64_t day)
{
	int64_t year;
	unsigned month, day_of_month;

	civil_from_days(day, &year, &month, &day_of_month);
	return (struct days){
		.first = days_from_civil(year, month, 1),
		.next = month == 12 ? days_from_civil(year + 1, 1, 1)
		                    : days_from_civil(year, month + 1, 1),
	};
}

static struct days week_of(int64_t day, int64_t first_weekday)
{
	int64_t weekday =
	    day + 4 - floor_div(day + 4, 7) * 7; /* 1970-01-01: Thursday */
	int64_t first = day - (weekday - first_weekday + 7) % 7;

	return (struct days){ .first = first, .next = first + 7 };
}

static struct days days_of(const struct gale_rule *quota, int64_t day)
{
	switch (quota->cadence) {
	case GALE_MONTHLY:
		return month_of(day);
	case GALE_WEEKLY:
		return week_of(day, quota->first_weekday);
	default:
		return (struct days){ .first = day, .next = day + 1 };
	}
}

/* A period may begin before 1970; the part from 0 on is all that can be asked about. */
static struct period period_from(int64_t start, int64_t end)
{
	return (struct period){ .start_us = start > 0 ? (uint64_t)start : 0,
		                .end_us = (uint64_t)end };
}

static struct period anchored(const struct gale_rule *quota, int64_t now)
{
	int64_t period = (int64_t)quota->period_us;
	int64_t anchor = (int64_t)quota->anchor_us;
	int64_t start = anchor + floor_div(now - anchor, period) * period;

	return period_from(start, start + period);
}

static struct period calendar(const struct gale_rule *quota, int64_t now)
{
	int64_t offset = quota->utc_offset_minutes * (int64_t)GALE_MINUTES(1);
	struct days days = days_of(quota, floor_div(now + offset, DAY_US));

	return period_from(days.first * DAY_US - offset, days.next * DAY_US - offset);
}

struct period quota_period(const struct gale_rule *quota, uint64_t now_us)
{
	struct period period = quota->cadence == GALE_ANCHORED
	                           ? anchored(quota, (int64_t)now_us)
	                           /* CALENDAR-1 */
	                           : calendar(quota, (int64_t)now_us);

	gale_assert(period.start_us <= now_us && now_us < period.end_us);
	return period;
}
