/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * policy.c -- limits from a file, which SIGHUP puts in force anew.
 *
 *     policy FILE      reads keys from standard input, a line each, and says yes or no by the
 *                      limiter "api" of the file; a line "reload" does what SIGHUP does
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <gale/policy.h>

static volatile sig_atomic_t has_changed;

/* gale may not be called here: the loop looks at it. */
static void note(int signal)
{
	(void)signal;
	has_changed = 1;
}

static void reload(struct gale_policy *policy)
{
	char why[GALE_POLICY_WHY_ROOM];

	has_changed = 0;
	if (gale_policy_reload(policy, NULL, why, sizeof(why)) == GALE_ERR_OK)
		puts("reloaded");
	else
		printf("the old policy stays: %s\n", why);
}

static void serve(struct gale_seat *seat, struct gale_policy *policy)
{
	struct gale_limiter *api = gale_policy_limiter(policy, "api");
	char key[GALE_KEY_MAX];
	struct gale_answer answer;

	while (fgets(key, sizeof(key), stdin)) {
		key[strcspn(key, "\n")] = '\0';
		if (has_changed || strcmp(key, "reload") == 0)
			reload(policy);
		if (strcmp(key, "reload") != 0) {
			answer =
			    gale_wait(seat, api, key, strlen(key), 1, GALE_MILLIS(100));
			puts(answer.verdict == GALE_ALLOW ? "yes" : "no");
		}
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct sigaction on_hangup = { .sa_handler = note, .sa_flags = SA_RESTART };
	struct gale_policy_config config = { .path = argv[argc - 1] };
	char why[GALE_POLICY_WHY_ROOM];
	struct gale_runtime *runtime;
	struct gale_policy *policy;
	struct gale_seat *seat;

	if (argc != 2) {
		fputs("usage: policy FILE\n", stderr);
		return 2;
	}
	if (gale_runtime_open(NULL, &runtime) != GALE_ERR_OK ||
	    gale_join(runtime, &seat) != GALE_ERR_OK)
		return 1;
	if (gale_policy_open(runtime, &config, why, sizeof(why), &policy) !=
	    GALE_ERR_OK) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	sigaction(SIGHUP, &on_hangup, NULL);
	serve(seat, policy);
	gale_leave(seat);
	gale_policy_close(policy);
	gale_runtime_close(runtime);
	return 0;
}
