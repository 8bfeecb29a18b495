/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.c -- three tenants behind one budget of a thousand units a second.
 *
 * Each asks as often as it can.  big has the weight 4, mid 2, and small 1; 300 units are
 * guaranteed to small.  In the last window big is silent, and the others have what it leaves.
 * So the program keeps a processor busy for up to three seconds.
 */
#include <stdio.h>

#include <gale/tenants.h>

#define TENANTS 3

static const char *const names[TENANTS] = { "big", "mid", "small" };
static const struct gale_terms terms[TENANTS] = { { .weight = 4 },
	                                          { .weight = 2 },
	                                          { .weight = 1, .guarantee = 300 } };

static void tell(uint64_t *got)
{
	for (int i = 0; i < TENANTS; i++) {
		printf("%s %d%s", names[i], (int)got[i], i < TENANTS - 1 ? ", " : "\n");
		got[i] = 0;
	}
}

/* A window turns when there is more time left of it than before. */
static void ask(struct gale_seat *seat, struct gale_tenant **tenants)
{
	uint64_t got[TENANTS] = { 0 }, left_us = GALE_SECONDS(1);

	for (int windows = 0, i = 0; windows < 3; i++) {
		int of = windows < 2 ? i % TENANTS : 1 + i % (TENANTS - 1);
		struct gale_answer answer = gale_tenant_ask(seat, tenants[of], 1);

		if (answer.reset_after_us > left_us + GALE_MILLIS(500)) {
			tell(got);
			windows++;
		}
		got[of] += answer.verdict == GALE_ALLOW;
		if (answer.reset_after_us > 0)
			left_us = answer.reset_after_us;
	}
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
	ask(seat, tenants);
	for (int i = 0; i < TENANTS; i++)
		gale_tenant_close(tenants[i]);
	gale_leave(seat);
	gale_budget_close(budget);
	gale_runtime_close(runtime);
	return 0;
}
