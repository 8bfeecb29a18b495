/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.c -- three tenants behind one budget of a thousand units a second.
 *
 * Each asks as often as it can; big has the weight 4, mid 2, and small 1, but 300 units are
 * guaranteed to it.  Half a second into the next window big stops asking, and the others have
 * what it leaves.
 */
#include <stdio.h>

#include <gale/tenants.h>

#define TENANTS 3

static const char *const names[TENANTS] = { "big", "mid", "small" };
static const struct gale_terms terms[TENANTS] = { { .weight = 4 },
	                                          { .weight = 2 },
	                                          { .weight = 1, .guarantee = 300 } };

/* Until the window turns; the first tenant stops so long before that. */
static void one_window(struct gale_seat *seat, struct gale_tenant **tenants,
                       uint64_t stops_us)
{
	uint64_t got[TENANTS] = { 0 }, left_us = GALE_SECONDS(1), before_us;

	do {
		before_us = left_us;
		for (int i = left_us < stops_us; i < TENANTS; i++) {
			struct gale_answer answer =
			    gale_tenant_ask(seat, tenants[i], 1);

			got[i] += answer.verdict == GALE_ALLOW;
			if (answer.reset_after_us > 0)
				left_us = answer.reset_after_us;
		}
	} while (left_us < before_us + GALE_MILLIS(500));
	for (int i = 0; i < TENANTS; i++)
		printf("%s %d%s", names[i], (int)got[i], i < TENANTS - 1 ? ", " : "\n");
}

int main(void)
{
	struct gale_budget_config config = { .limit = 1000,
		                             .window_us = GALE_SECONDS(1) };
	struct gale_tenant *tenants[TENANTS];
	struct gale_runtime *runtime;
	struct gale_budget *budget;
	struct gale_seat *seat;

	if (gale_runtime_open(NULL, &runtime) != GALE_ERR_OK ||
	    gale_budget_open(runtime, &config, &budget) != GALE_ERR_OK ||
	    gale_join(runtime, &seat) != GALE_ERR_OK)
		return 1;
	for (int i = 0; i < TENANTS; i++)
		if (gale_tenant_open(budget, &terms[i], &tenants[i]) != GALE_ERR_OK)
			return 1;
	one_window(seat, tenants, 0); /* begins somewhere in a window */
	one_window(seat, tenants, 0);
	one_window(seat, tenants, GALE_MILLIS(500));
	for (int i = 0; i < TENANTS; i++)
		gale_tenant_close(tenants[i]);
	gale_leave(seat);
	gale_budget_close(budget);
	gale_runtime_close(runtime);
	return 0;
}
