/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_fixed_window.c -- make a rule, which says how much is allowed
 *
 * Prints
 *	fixed_window: 100 units
 *	gcra: 50 units, and 10 at once
 *	quota: 1000000 units
 */
#include <stdio.h>

#include <gale/rule.h>

int main(void)
{
	struct gale_rule minute = gale_fixed_window(100, GALE_MINUTES(1));
	struct gale_rule even = gale_gcra(50, GALE_SECONDS(1), 10);
	struct gale_rule month = gale_quota_monthly(1000000, 60); /* UTC+01:00 */

	printf("%s: %d units\n", gale_rule_name(minute.kind), (int)minute.limit);
	printf("%s: %d units, and %d at once\n", gale_rule_name(even.kind),
	       (int)even.limit, (int)even.burst);
	printf("%s: %d units\n", gale_rule_name(month.kind), (int)month.limit);
	return 0;
}
