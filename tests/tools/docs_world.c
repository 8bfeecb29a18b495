/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * docs_world.c -- runs the blocks of C in docs/, each in a world of its own; docs_world.h.
 *
 *     world NAME...      runs these blocks; exit status 1 if one does not do what its page says
 *
 * docs_programs_test.sh defines BLOCKS, which lists them: BLOCK(holds_1) and so on.
 *
 * Limits    A window is a day: the test fails if one turns while a block runs.
 * Threads   One.
 */
#include "tests/tools/docs_world.h"

struct gale_runtime *runtime;
struct gale_store *store;
struct gale_seat *seat;
struct gale_limiter *limiter, *per_minute, *per_day, *of_user, *of_model;
struct gale_budget *budget;
struct gale_tenant *tenant, *organisation;
struct gale_hold hold;
const char *key = "alice", *user = "alice", *model = "large";
size_t key_len = 5, user_len = 5, model_len = 5;
uint64_t cost = 1, prompt = 300, max_tokens = 500, within = GALE_SECONDS(60), used;
const uint64_t costs[2] = { 700, 700 };
unsigned queries, streams, sent;

static const char *running;

void must(bool is_so, const char *what)
{
	if (is_so)
		return;
	printf("%s: not so: %s\n", running, what);
	exit(1);
}

/* ---- What blocks call ---------------------------------------------------------------- */

bool query_database(void)
{
	return ++queries > 0;
}

void stream(void)
{
	streams++;
}

void send_reply(int status, const char *lines, size_t length)
{
	sent++;
	MUST(status == 200);
	MUST(strlen(lines) == length);
	MUST(strstr(lines, "RateLimit-Policy: \"day\";q=100;w=86400\r\n") != NULL);
}

void report_error(void)
{
	must(false, "the rule is set");
}

void stop_the_stream(void)
{
	must(false, "the hold grows");
}

int refuse_by(size_t part)
{
	printf("%s: part %zu refuses\n", running, part);
	return 1;
}

int refuse(void)
{
	MUST(false);
	return 0;
}

/* A stream of 600. */
bool next_token(uint64_t *ret_used)
{
	return ++*ret_used < 600;
}

/* ---- Before and after ------------------------------------------------------------------ */

void must_be_left(struct gale_limiter *of, const char *name, uint64_t units)
{
	size_t length = strlen(name);

	MUST(gale_wait(seat, of, name, length, units + 1, within).verdict == GALE_DENY);
	MUST(gale_wait(seat, of, name, length, units, within).verdict == GALE_ALLOW);
}

void must_be_text(char *text, const char *words)
{
	MUST(strstr(text, words) != NULL);
	free(text);
}

void open_organisation(void)
{
	const struct gale_budget_config config = { .limit = 10000,
		                                   .window_us = GALE_DAYS(1) };
	const struct gale_terms terms = { .weight = 1, .guarantee = 500 };

	MUST(!gale_budget_open(runtime, &config, &budget));
	MUST(!gale_tenant_open(budget, &terms, &organisation));
}

void open_tenant(void)
{
	const struct gale_terms terms = { .weight = 1, .guarantee = 400 };

	open_organisation();
	MUST(!gale_tenant_open(budget, &terms, &tenant));
}

void open_hold(void)
{
	struct gale_part parts[] = { { of_user, user, user_len, prompt },
		                     { of_model, model, model_len, prompt } };
	struct gale_all all = { .parts = parts, .count = 2 };

	MUST(gale_hold_wait(seat, &all, &hold, within).verdict == GALE_ALLOW);
}

/* ---- The world ---------------------------------------------------------------------------- */

/* All units are leased at once, so that a hold can grow without the store. */
static struct gale_limiter *open_limiter(const char *name, uint64_t limit)
{
	const struct gale_limiter_config config = {
		.name = name,
		.store = store,
		.rule = gale_fixed_window(limit, GALE_DAYS(1)),
		.mode = GALE_LEASED,
		.lease = { .sizing = GALE_SIZE_FIXED, .batch = limit },
	};
	struct gale_limiter *opened;

	MUST(!gale_limiter_open(runtime, &config, &opened));
	return opened;
}

static void open_world(void)
{
	MUST(!gale_runtime_open(NULL, &runtime));
	MUST(!gale_store_open(runtime, NULL, &store));
	MUST(!gale_join(runtime, &seat));
	limiter = open_limiter("limiter", 100);
	per_minute = open_limiter("per minute", 1000);
	per_day = open_limiter("per day", 1000);
	of_user = open_limiter("of user", 1000);
	of_model = open_limiter("of model", 1000);
	queries = streams = sent = 0;
}

#define BLOCK(name) int name(void);
BLOCKS
#undef BLOCK

static const struct block {
	const char *name;
	int (*inside)(void);
} blocks[] = {
#define BLOCK(name) { #name, name },
	BLOCKS
};

static bool is_named(const char *name, char **names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

int main(int argc, char **argv)
{
	int done = 0;

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		running = blocks[i].name;
		if (!is_named(running, argv + 1))
			continue;
		open_world();
		MUST(blocks[i].inside() == 0);
		gale_runtime_close(runtime);
		done++;
	}
	return done == argc - 1 ? 0 : 1;
}
