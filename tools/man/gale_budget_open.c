/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_budget_open.c -- share a budget among tenants
 *
 * Errors   RUNTIME CONFIG RET MEMORY SYSTEM STORE NAME FORKED FENCED SIZE BUDGET TENANT
 *          BUDGET_LIMIT BUDGET_WINDOW PROTECT TENANTS LENDING TENANT_WEIGHT CAP GUARANTEE
 *          TENANTS_FULL PARENT PARENT_STORE DEPTH ALONE_UNITS TENANT_NAME SEAT COST HOLD
 *
 * Prints
 *	big gets 40, small gets 20
 *	a call that held 30 has cost 10: 35 are left
 */
#include <stdio.h>

#include <gale/tenants.h>

static int use_by_hold(struct gale_seat *seat, struct gale_tenant *tenant)
{
	struct gale_tenant_held hold;
	struct gale_tenant_counts counts;

	if (gale_tenant_hold(seat, tenant, 25, &hold, 0).verdict != GALE_ALLOW ||
	    gale_tenant_grow(seat, &hold, 5, 0).verdict != GALE_ALLOW)
		return 1;
	printf("a call that held %d has cost 10: ", (int)hold.units);
	if (gale_tenant_commit(seat, &hold, 10) || gale_tenant_stats(tenant, &counts))
		return 1;
	printf("%d are left\n", (int)(counts.share - counts.used));
	return 0;
}

int main(void)
{
	struct gale_budget_config config = { .limit = 60, .window_us = GALE_DAYS(1) };
	struct gale_terms of_big = { .weight = 2 }, of_small = { .weight = 1 };
	struct gale_tenant *big, *small;
	struct gale_tenant_counts counts;
	struct gale_runtime *runtime;
	struct gale_budget *budget;
	struct gale_seat *seat;
	int got_big = 0, got_small = 0;

	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat) ||
	    gale_budget_open(runtime, &config, &budget) ||
	    gale_tenant_open(budget, &of_big, &big) ||
	    gale_tenant_open(budget, &of_small, &small))
		return 1;
	for (int call = 0; call < 100; call++) {
		got_big += gale_tenant_ask(seat, big, 1).verdict == GALE_ALLOW;
		got_small += gale_tenant_ask(seat, small, 1).verdict == GALE_ALLOW;
	}
	if (gale_tenant_stats(small, &counts) || counts.share != 20)
		return 1;
	printf("big gets %d, small gets %d\n", got_big, got_small);

	of_small.guarantee = 30; /* from now on */
	if (gale_tenant_set_terms(small, &of_small) ||
	    gale_budget_set_limit(budget, 105))
		return 1;
	gale_tenant_close(big);
	if (use_by_hold(seat, small))
		return 1;
	gale_tenant_close(small);
	gale_leave(seat);
	gale_budget_close(budget);
	gale_runtime_close(runtime);
	return 0;
}
