/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * interleave_test.c -- all ways that the hot path can run, and what each order is for.
 *
 *     interleave_test                              everything
 *     interleave_test --brief                      but for long programs, and the excuses: below
 *     interleave_test --program NAME [MUTANT]      one, and the run that is at fault
 *
 * First the model is held to what is known of it; then each program is run in all ways.
 * Then one end of a pair at a time loses its order, and some program must go wrong: an
 * order that nothing misses is not needed, or a program is missing.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/interleave/programs.h"
#include "tests/support/must.h"

#define RUNS_MOST 2000000

static const struct end ends[] = {
#include "tests/interleave/ends.h"
};
#define END_COUNT (sizeof(ends) / sizeof(ends[0]))
_Static_assert(END_COUNT <= ENDS_MOST, "a bit for each");

/* What the model cannot miss, and why. */
static const struct unseen {
	const char *file, *pair;
	enum order without;
	unsigned ends;
	const char *why;
} unseen[] = {
	{ "shards/purse.c", "opened", ACQUIRE, 2,
	  "what it is for comes after a fence everywhere, or is a swap" },
	{ "shards/purse.c", "opened", RELEASE, 1,
	  "before a fence everywhere only the compiler could turn two stores around" },
	{ "shards/purse.c", "settled", RELEASE, 1,
	  "where all is void the seat swaps next, and in the model a swap is never of "
	  "an "
	  "older word" },
	{ "shards/kept.h", "wiped", ACQUIRE, 2,
	  "in the model a swap is never of an older word" },
	{ "shards/purses.c", "wiped", RELEASE, 1,
	  "in the model a swap is never of an older word" },
	{ "shards/purse.c", "unpinned", ACQUIRE, 1,
	  "a fence comes before anything is freed" },
};

#define UNSEEN_COUNT (sizeof(unseen) / sizeof(unseen[0]))
static unsigned excused[UNSEEN_COUNT];

/* Programs that go wrong when no step is whole, or when the kernel's barrier is none. */
static const struct broken {
	const char *program;
	struct mutant how;
} broken[] = {
	{ "take", { .torn = true } },
	{ "put", { .torn = true } },
	{ "gather", { .torn = true } },
	{ "empty", { .torn = true } },
	{ "close a block", { .torn = true } },
	{ "mail", { .torn = true } },
	{ "enter, exit", { .torn = true } },
	{ "call back", { .torn = true } },
	{ "close, slots", { .torn = true } },
	{ "fence, slots", { .torn = true } },
	{ "latch", { .torn = true } },
	{ "gather", { .deaf = true } },
	{ "empty", { .deaf = true } },
	{ "gather, gather", { .deaf = true } },
	{ "evict", { .deaf = true } },
	{ "evict, ahead", { .deaf = true } },
	{ "end, close tenant", { .deaf = true } },
};

/* Programs that take seconds, and without which each order is missed as well. */
static const char *const long_programs[] = { "empty", "evict, two seats" };

/* What was found of a program. */
static struct tried {
	const struct program *program;
	uint64_t steps;
	end_bits met; /* the ends that it comes to */
} * tried;
static unsigned failed;
static bool brief;
static uint64_t total_runs, total_steps;

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void complain(const char *what, const char *why)
{
	printf("FAILED %s: %s\n", what, why);
	failed++;
}

static bool is_long(const struct program *program)
{
	for (size_t i = 0; i < sizeof(long_programs) / sizeof(long_programs[0]); i++)
		if (strcmp(program->name, long_programs[i]) == 0)
			return true;
	return false;
}

static struct found explore(const struct program *program, const struct mutant *mutant)
{
	struct found found = model_explore(program, mutant, RUNS_MOST);

	total_runs += found.runs;
	total_steps += found.steps;
	return found;
}

/* ---- The model ------------------------------------------------------------------- */

static void try_litmus(const struct litmus *it)
{
	struct found found = explore(&it->program, NULL);

	printf("%-22s %8" PRIu64 " runs, outcomes %" PRIx64 "%s%s\n", it->program.name,
	       found.runs, found.outcomes, found.fault[0] ? ", " : "", found.fault);
	if ((it->outcomes == 0) != (found.fault[0] != '\0'))
		complain(it->program.name, found.fault[0] ? found.fault : "no fault");
	if (it->outcomes && found.outcomes != it->outcomes)
		complain(it->program.name, "other outcomes than it must have");
	if (it->runs && found.runs != it->runs)
		complain(it->program.name, "another number of runs");
}

/* ---- The hot path ---------------------------------------------------------------- */

static void try_program(const struct program *program)
{
	uint64_t since = now_ms();
	struct found found = explore(program, NULL);

	tried[program - programs] = (struct tried){ program, found.steps, found.met };
	printf("%-22s %8" PRIu64 " runs, %8" PRIu64 " the same, %9" PRIu64
	       " steps, %5" PRIu64 " ms\n",
	       program->name, found.runs, found.pruned, found.steps, now_ms() - since);
	if (found.fault[0]) {
		model_print_run();
		complain(program->name, found.fault);
	}
	if (found.runs < 2)
		complain(program->name, "it has not been interleaved");
}

/* ---- Mutants --------------------------------------------------------------------- */

/* What only takes too long has not gone wrong. */
static bool goes_wrong(const struct program *program, const struct mutant *mutant)
{
	struct found found = explore(program, mutant);

	return found.fault[0] != '\0' && found.runs <= RUNS_MOST;
}

static int compare_steps(const void *a, const void *b)
{
	uint64_t x = ((const struct tried *)a)->steps;
	uint64_t y = ((const struct tried *)b)->steps;

	return (x > y) - (x < y);
}

/* The program that goes wrong, or NULL; short ones are tried first, and those that do not come
 * there need not be tried. */
static const struct program *refute(const struct mutant *mutant, unsigned *ret_tried)
{
	end_bits bit = end_bit((size_t)(mutant->end - ends));

	*ret_tried = 0;
	for (size_t i = 0; i < program_count; i++)
		if (tried[i].met & bit) {
			(*ret_tried)++;
			if (goes_wrong(tried[i].program, mutant))
				return tried[i].program;
		}
	return NULL;
}

static const struct unseen *find_unseen(const struct mutant *mutant)
{
	for (size_t i = 0; i < UNSEEN_COUNT; i++)
		if (strcmp(unseen[i].file, mutant->end->file) == 0 &&
		    strcmp(unseen[i].pair, mutant->end->pair) == 0 &&
		    unseen[i].without == mutant->without)
			return &unseen[i];
	return NULL;
}

static const char *order_name(enum order order)
{
	return order == FULL ? "fence" : order == ACQUIRE ? "acquire" : "release";
}

static void try_mutant(const struct end *end, enum order without)
{
	struct mutant mutant = { .end = end, .without = without };
	unsigned count;
	const struct program *program;
	const struct unseen *known;
	char name[80];

	if (brief && find_unseen(&mutant))
		return;
	program = refute(&mutant, &count);
	known = program ? NULL : find_unseen(&mutant);

	(void)snprintf(name, sizeof(name), "%s:%d %s", end->file, end->first,
	               order_name(without));
	printf("%-9s %-32s %s%s\n", end->pair, name,
	       program ? "goes wrong in: " : "is not missed: ",
	       program ? program->name
	       : known ? known->why
	               : "");
	if (known)
		excused[known - unseen]++;
	if (!program && !known)
		complain(name, "nothing goes wrong without it");
	if (count == 0)
		complain(name, "no program comes there");
}

/* Each excuse is needed.  To show that, all programs are run, which takes most of the time. */
static void check_unseen(void)
{
	for (size_t i = 0; i < UNSEEN_COUNT; i++)
		if (excused[i] != unseen[i].ends)
			complain(unseen[i].why, "not said of as many ends");
}

static void try_end(const struct end *end)
{
	for (int bit = ACQUIRE; bit <= FULL; bit *= 2)
		if (end->order & (enum order)bit)
			try_mutant(end, (enum order)bit);
}

static const struct program *find_program(const char *name)
{
	for (size_t i = 0; i < program_count; i++)
		if (strcmp(programs[i].name, name) == 0)
			return &programs[i];
	return NULL;
}

static void try_broken(const struct broken *it)
{
	struct found found = explore(find_program(it->program), &it->how);

	printf("%-9s %-32s %s\n", it->how.torn ? "torn" : "deaf", it->program,
	       found.fault);
	if (!found.fault[0])
		complain(it->program, it->how.torn ? "nothing goes wrong though torn"
		                                   : "nothing goes wrong though deaf");
}

static int try_all(void)
{
	uint64_t since = now_ms();

	tried = calloc(program_count, sizeof(*tried));
	must(tried);
	for (size_t i = 0; i < litmus_count; i++)
		try_litmus(&litmus[i]);
	for (size_t i = 0; i < program_count; i++)
		if (!brief || !is_long(&programs[i]))
			try_program(&programs[i]);
	qsort(tried, program_count, sizeof(*tried), compare_steps);
	for (size_t i = 0; i < END_COUNT; i++)
		try_end(&ends[i]);
	if (!brief)
		check_unseen();
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		try_broken(&broken[i]);
	printf("%zu programs, %zu ends: %" PRIu64 " runs, %" PRIu64 " steps, %" PRIu64
	       " ms, %u failed\n",
	       program_count, END_COUNT, total_runs, total_steps, now_ms() - since,
	       failed);
	free(tried);
	return failed > 0 || total_runs == 0;
}

/* ---- One ------------------------------------------------------------------------- */

/* "shards/purse.c:116 acquire", as it is printed. */
static bool parse_mutant(const char *text, struct mutant *ret_mutant)
{
	for (size_t i = 0; i < END_COUNT; i++)
		for (int bit = ACQUIRE; bit <= FULL; bit *= 2) {
			char name[80];

			(void)snprintf(name, sizeof(name), "%s:%d %s", ends[i].file,
			               ends[i].first, order_name((enum order)bit));
			if (strcmp(name, text) != 0)
				continue;
			*ret_mutant = (struct mutant){ .end = &ends[i],
				                       .without = (enum order)bit };
			return true;
		}
	ret_mutant->torn = strcmp(text, "torn") == 0;
	ret_mutant->deaf = strcmp(text, "deaf") == 0;
	return ret_mutant->torn || ret_mutant->deaf;
}

static int try_one(const char *name, const char *text)
{
	const struct program *program = find_program(name);
	struct mutant mutant = { 0 };
	struct found found;

	if (!program || (text && !parse_mutant(text, &mutant))) {
		fprintf(stderr, "there is no such %s: %s\n",
		        program ? "mutant" : "program", program ? text : name);
		return 2;
	}
	found = explore(program, text ? &mutant : NULL);
	if (found.fault[0])
		model_print_run();
	printf("%" PRIu64 " runs, %" PRIu64 " steps: %s\n", found.runs, found.steps,
	       found.fault[0] ? found.fault : "no fault");
	return found.fault[0] != '\0';
}

int main(int argc, char **argv)
{
	model_watch(ends, END_COUNT);
	brief = argc == 2 && strcmp(argv[1], "--brief") == 0;
	if (argc == 1 || brief)
		return try_all();
	if (argc <= 4 && argc >= 3 && strcmp(argv[1], "--program") == 0)
		return try_one(argv[2], argv[3]);
	fprintf(stderr, "usage: %s [--brief | --program NAME [MUTANT]]\n", argv[0]);
	return 2;
}
