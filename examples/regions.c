/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * regions.c -- one budget for two regions, beside a budget that is split between them.
 *
 *     regions EAST WEST EAST_AS_SEEN_FROM_WEST      URLs of stores
 *
 * Each region has a server of its own, which limits users there; here, no user reaches the limit.
 * The budget of 3000 units a second is at the server of the east, which the west reaches by a slow
 * link.  gold asks in both regions, but hardly in the west; silver asks in the east alone, and both
 * want more than there is.  Split in two, half of the budget is of no use in the west; shared, it
 * goes to where it is asked for.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <gale/tenants.h>

#define LIMIT UINT64_C(3000)
#define WINDOW_US GALE_SECONDS(1)
#define WINDOWS 4 /* that count */
#define USERS 8   /* of a tenant in a region */
#define USER_LIMIT 5000

static const struct gale_terms terms[] = { { .weight = 3, .name = "gold" },
	                                   { .weight = 1, .name = "silver" } };

struct region {
	const char *own, *global; /* URLs */
	struct gale_runtime *runtime;
	struct gale_store *at_own, *at_global;
	struct gale_limiter *users;
	struct gale_budget *shared, *half;
};

/* A tenant in a region asks for so many units of a window. */
struct caller {
	struct region *region;
	const struct gale_terms *terms;
	uint64_t demand;
	uint64_t from_us, to_us; /* what counts */
	uint64_t shared, split;  /* units that it got then */
	enum gale_err err;
	pthread_t thread;
};

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
}

static enum gale_err open_region(struct region *region)
{
	struct gale_store_config own = { .url = region->own },
				 global = { .url = region->global };
	struct gale_limiter_config users = {
		.name = "users", .rule = gale_fixed_window(USER_LIMIT, WINDOW_US)
	};
	struct gale_budget_config budget = { .limit = LIMIT / 2,
		                             .window_us = WINDOW_US,
		                             .name = "global" };
	enum gale_err err = gale_runtime_open(NULL, &region->runtime);

	if (!err)
		err = gale_budget_open(region->runtime, &budget, &region->half);
	if (!err)
		err = gale_store_open(region->runtime, &own, &region->at_own);
	users.store = region->at_own;
	if (!err)
		err = gale_limiter_open(region->runtime, &users, &region->users);
	if (!err)
		err = gale_store_open(region->runtime, &global, &region->at_global);
	budget.store = region->at_global;
	budget.limit = LIMIT;
	return err ? err : gale_budget_open(region->runtime, &budget, &region->shared);
}

static void close_region(struct region *region)
{
	gale_budget_close(region->shared);
	gale_budget_close(region->half);
	gale_limiter_close(region->users);
	gale_store_close(region->at_global);
	gale_store_close(region->at_own);
	gale_runtime_close(region->runtime);
}

/* First the user's limit, at the region's own server; then the tenant's part of the budget. */
static void call(struct caller *caller, struct gale_seat *seat,
                 struct gale_tenant *shared, struct gale_tenant *split, uint64_t number)
{
	bool counts = now_us() >= caller->from_us;
	char user[16];
	int length = snprintf(user, sizeof(user), "%s-%d", caller->terms->name,
	                      (int)(number % USERS));

	if (gale_wait(seat, caller->region->users, user, (size_t)length, 1, WINDOW_US)
	        .verdict != GALE_ALLOW)
		return;
	if (gale_tenant_ask(seat, split, 1).verdict == GALE_ALLOW)
		caller->split += counts;
	if (gale_tenant_wait(seat, shared, 1, WINDOW_US).verdict == GALE_ALLOW)
		caller->shared += counts;
	else
		nap();
}

static void *caller_main(void *arg)
{
	struct caller *caller = arg;
	struct gale_tenant *shared, *split;
	uint64_t began_us = now_us(), made = 0, now;
	struct gale_seat *seat;

	caller->err = gale_join(caller->region->runtime, &seat);
	if (!caller->err)
		caller->err =
		    gale_tenant_open(caller->region->shared, caller->terms, &shared);
	if (!caller->err)
		caller->err =
		    gale_tenant_open(caller->region->half, caller->terms, &split);
	if (caller->err)
		return NULL; /* all is over soon */
	while ((now = now_us()) < caller->to_us)
		if (made >= caller->demand * (now - began_us) / WINDOW_US) {
			nap();
		} else {
			call(caller, seat, shared, split, made);
			made++;
		}
	gale_tenant_close(split);
	gale_tenant_close(shared);
	gale_leave(seat);
	return NULL;
}

/* gold gets three quarters, and silver one: both want more. */
static void tell(const struct caller *callers)
{
	uint64_t ideal = LIMIT * WINDOWS;

	printf("%-8s %8s %8s %8s\n", "tenant", "shared", "split", "ideal");
	printf("%-8s %8llu %8llu %8llu\n", "gold",
	       (unsigned long long)(callers[0].shared + callers[1].shared),
	       (unsigned long long)(callers[0].split + callers[1].split),
	       (unsigned long long)(ideal * 3 / 4));
	printf("%-8s %8llu %8llu %8llu\n", "silver",
	       (unsigned long long)callers[2].shared,
	       (unsigned long long)callers[2].split, (unsigned long long)(ideal / 4));
}

/* All that they do; the first error of one of them. */
static enum gale_err run(struct caller *callers, int count)
{
	/* The first window does not count: servers are met, and demands learned. */
	uint64_t from_us = (now_us() / WINDOW_US + 2) * WINDOW_US;
	enum gale_err err = GALE_ERR_OK;
	int begun = 0;

	for (; begun < count; begun++) {
		callers[begun].from_us = from_us;
		callers[begun].to_us = from_us + WINDOWS * WINDOW_US;
		if (pthread_create(&callers[begun].thread, NULL, caller_main,
		                   &callers[begun]))
			break;
	}
	if (begun < count)
		err = GALE_ERR_SYSTEM;
	for (int i = 0; i < begun; i++) {
		pthread_join(callers[i].thread, NULL);
		if (!err)
			err = callers[i].err;
	}
	return err;
}

int main(int argc, char **argv)
{
	struct region east = { 0 }, west = { 0 };
	struct caller callers[] = { { &east, &terms[0], .demand = 9000 },
		                    { &west, &terms[0], .demand = 300 },
		                    { &east, &terms[1], .demand = 9000 } };
	enum gale_err err;

	if (argc != 4) {
		fprintf(stderr, "regions EAST WEST EAST_AS_SEEN_FROM_WEST\n");
		return 2;
	}
	east.own = east.global = argv[1];
	west.own = argv[2];
	west.global = argv[3];
	err = open_region(&east);
	if (!err)
		err = open_region(&west);
	if (!err)
		err = run(callers, 3);
	if (!err)
		tell(callers);
	else
		fprintf(stderr, "regions: %s\n", gale_err_text(err));
	close_region(&west);
	close_region(&east);
	return err ? 1 : 0;
}
