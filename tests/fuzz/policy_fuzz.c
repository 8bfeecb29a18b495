/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * policy_fuzz.c -- any text is a policy that opens, or is refused by one sentence.
 *
 * The bytes up to a line "..." are a policy, and those after it another, which is put in force
 * after it: so a reload meets whatever is open.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <gale/policy.h>

#include "engine/check.h"
#include "policy/plan.h"

#define END "\n...\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A line of printable ASCII that ends within its room, if and only if something is wrong. */
static void check_why(enum gale_err err, const char *why, size_t room)
{
	size_t length = strnlen(why, room);

	gale_assert(length < room);
	gale_assert((err == GALE_ERR_OK) == (length == 0));
	for (size_t i = 0; i < length; i++)
		gale_assert(why[i] >= ' ' && why[i] <= '~');
}

/* NULs and all: what is read is a plan, or says why not. */
static void read_bytes(const char *text, size_t size)
{
	char sentence[64] = "";
	struct why why = { .text = sentence,
		           .room = sizeof(sentence),
		           .source = "fuzz" };
	struct plan plan;

	if (plan_read(text, size, &why, &plan))
		plan_free(&plan);
	check_why(why.err, sentence, sizeof(sentence));
}

/* Of all stores only those in memory are opened: others would look up names. */
static bool is_of_memory(const char *text, size_t size)
{
	static const char *const servers[] = { "redis", "postgres" };

	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
		if (memmem(text, size, servers[i], strlen(servers[i])) ||
		    memchr(text, '\\', size))
			return false;
	return true;
}

static void open_both(const char *first, const char *second)
{
	struct gale_config config = { .shards = 1, .max_keys = 1, .turns = true };
	struct gale_policy_config source = { .text = first };
	char why[GALE_POLICY_WHY_ROOM];
	struct gale_policy *policy;
	struct gale_runtime *runtime;
	enum gale_err err;

	gale_assert(gale_runtime_open(&config, &runtime) == GALE_ERR_OK);
	err = gale_policy_open(runtime, &source, why, sizeof(why), &policy);
	check_why(err, why, sizeof(why));
	if (err == GALE_ERR_OK) {
		err = gale_policy_reload(policy, second, why, sizeof(why));
		check_why(err, why, sizeof(why));
		/* What is in force can always be put in force again. */
		err = gale_policy_reload(policy, err == GALE_ERR_OK ? second : first,
		                         why, sizeof(why));
		gale_assert(err == GALE_ERR_OK || err == GALE_ERR_TENANTS_FULL);
		gale_policy_close(policy);
	}
	gale_runtime_close(runtime);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char *end, *second;

	gale_assert(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	read_bytes(text, size);
	end = strstr(text, END);
	if (end && is_of_memory(text, size)) {
		second = strdup(end + strlen(END));
		gale_assert(second != NULL);
		end[strlen(END)] = '\0';
		open_both(text, second);
		free(second);
	}
	free(text);
	return 0;
}
