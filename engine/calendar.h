/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* calendar.h -- which period of a quota an instant belongs to. */
#ifndef ENGINE_CALENDAR_H
#define ENGINE_CALENDAR_H

#include <stdint.h>

#include <gale/rule.h>

/* Half open: start_us belongs to it, end_us to the next. */
struct period {
	uint64_t start_us;
	uint64_t end_us;
};

/* Days since 1970-01-01 in the proleptic Gregorian calendar, and back. */
int64_t days_from_civil(int64_t year, unsigned month, unsigned day);
void civil_from_days(int64_t days, int64_t *ret_year, unsigned *ret_month,
                     unsigned *ret_day);

struct period quota_period(const struct gale_rule *quota, uint64_t now_us);

#endif
