/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_policy_open.c -- define limits in a file
 *
 * Errors   RUNTIME CONFIG RET MEMORY FORKED FENCED SIZE NAME POLICY_FILE POLICY_TEXT POLICY_SOURCE
 *          NO_POLICY
 *
 * Prints
 *	passed: 2
 *	passed after a reload: 1 more
 *	the old policy stays in force
 */
#include <stdio.h>

#include <gale/policy.h>

/* In a file, most of the time: .path instead of .text. */
#define POLICY(limit)                                                                  \
	"stores:\n"                                                                    \
	"  here:\n"                                                                    \
	"    url: \"memory:\"\n"                                                       \
	"limiters:\n"                                                                  \
	"  api:\n"                                                                     \
	"    store: here\n"                                                            \
	"    rule: fixed_window\n"                                                     \
	"    limit: " limit " per day\n"                                               \
	"...\n"

static int passed(struct gale_seat *seat, struct gale_limiter *api)
{
	int count = 0;

	for (int call = 0; call < 4; call++)
		count += gale_wait(seat, api, "bob", 3, 1, GALE_SECONDS(5)).verdict ==
		         GALE_ALLOW;
	return count;
}

int main(void)
{
	struct gale_policy_config config = { .text = POLICY("2") };
	char why[GALE_POLICY_WHY_ROOM];
	struct gale_runtime *runtime;
	struct gale_policy *policy;
	struct gale_limiter *api;
	struct gale_seat *seat;

	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat))
		return 1;
	if (gale_policy_open(runtime, &config, why, sizeof(why), &policy)) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	api = gale_policy_limiter(policy, "api");
	printf("passed: %d\n", passed(seat, api));
	if (gale_policy_reload(policy, POLICY("3"), why, sizeof(why)))
		return 1;
	printf("passed after a reload: %d more\n", passed(seat, api));
	if (gale_policy_reload(policy, POLICY("few"), why, sizeof(why))) {
		fprintf(stderr, "%s\n", why); /* line, field, and what is wrong */
		puts("the old policy stays in force");
	}
	gale_leave(seat);
	gale_policy_close(policy);
	gale_runtime_close(runtime);
	return 0;
}
