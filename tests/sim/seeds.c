/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* seeds.c -- arguments, failures, and how to replay them. */
#define _GNU_SOURCE
#include "tests/sim/seeds.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/room.h"

/* ---- Whoever is interrupted ------------------------------------------------------ */

static const char *program; /* this one, as it was called */
static uint64_t seed_now;
static char flags_now[512]; /* but for the seeds */
static struct sigaction before[NSIG];

/* In a world that aborts, or does not end. */
static void interrupted(int number)
{
	char text[700];
	int len = snprintf(text, sizeof(text),
	                   "aborted; replay: %s --seeds %" PRIu64 "-%" PRIu64
	                   "%s --verbose\n",
	                   program, seed_now, seed_now, flags_now);

	(void)sigaction(number, &before[number], NULL);
	if (write(STDOUT_FILENO, text, (size_t)len) == len && number == SIGTERM)
		(void)raise(number);
}

static void note_flags(int argc, char **argv)
{
	size_t used = 0;

	for (int i = 1; i < argc && used < sizeof(flags_now); i++) {
		if (strcmp(argv[i], "--verbose") == 0)
			continue;
		if (strcmp(argv[i], "--seeds") == 0 || strcmp(argv[i], "--lot") == 0)
			i++;
		else
			used += (size_t)snprintf(
			    flags_now + used, sizeof(flags_now) - used, " %s", argv[i]);
	}
}

static void expect_interruption(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = interrupted };

	program = argv[0];
	note_flags(argc, argv);
	(void)sigaction(SIGABRT, &action, &before[SIGABRT]);
	(void)sigaction(SIGSEGV, &action, &before[SIGSEGV]);
	(void)sigaction(SIGTERM, &action, &before[SIGTERM]);
}

/* ---- Arguments ------------------------------------------------------------------- */

static const struct shrink_field *field_named(const struct seeds *seeds,
                                              const char *name, size_t len)
{
	for (size_t i = 0; i < seeds->field_count; i++)
		if (strlen(seeds->fields[i].name) == len &&
		    strncmp(seeds->fields[i].name, name, len) == 0)
			return &seeds->fields[i];
	return NULL;
}

static bool parse_seeds(struct seeds *seeds, const char *text)
{
	return range_read(&text, &seeds->first, &seeds->last) && *text == '\0';
}

/* So many that no run before had. */
static bool parse_lot(struct seeds *seeds, const char *text)
{
	uint64_t count;

	if (!number_read(&text, &count) || *text != '\0' || count < 1 ||
	    count > SEEDS_LOT_MOST)
		return false;
	seeds->first = (uint64_t)time(NULL) * SEEDS_LOT_MOST;
	seeds->last = seeds->first + count - 1;
	printf("--seeds %" PRIu64 "-%" PRIu64 "\n", seeds->first, seeds->last);
	return true;
}

static bool parse_set(struct seeds *seeds, const char *text)
{
	size_t len = strcspn(text, "=");
	const struct shrink_field *field = field_named(seeds, text, len);
	uint64_t value;

	text += len;
	if (!field || seeds->set_count == SEEDS_SETS_MOST || *text++ != '=' ||
	    !number_read(&text, &value) || *text != '\0' || value < field->least ||
	    value > field->most)
		return false;
	seeds->sets[seeds->set_count].field = field;
	seeds->sets[seeds->set_count++].value = value;
	return true;
}

static bool parse_flag(struct seeds *seeds, const char *word)
{
	if (strcmp(word, "--verbose") == 0) {
		seeds->verbose = true;
		return true;
	}
	for (int i = 0; i < SEEDS_FLAGS_MOST && seeds->flags[i]; i++)
		if (strcmp(word, seeds->flags[i]) == 0)
			return seeds->given[i] = true;
	return false;
}

/* Returns what is wrong, or NULL. */
static const char *parse(struct seeds *seeds, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (parse_flag(seeds, argv[i]))
			continue;
		i++;
		if (strcmp(argv[i - 1], "--seeds") == 0) {
			if (!parse_seeds(seeds, value))
				return "--seeds N or FROM-TO: numbers, the first not "
				       "above the second";
		} else if (strcmp(argv[i - 1], "--lot") == 0) {
			if (!parse_lot(seeds, value))
				return "--lot N: so many seeds, 1000000 at most";
		} else if (strcmp(argv[i - 1], "--set") == 0) {
			if (!parse_set(seeds, value))
				return "--set NAME=NUMBER: no such name, or too small "
				       "or large a number";
		} else if (strcmp(argv[i - 1], "--only") == 0) {
			if (!choice_read(&seeds->choice, value))
				return "--only 3,17-20: numbers of asks, below 1000000";
		} else {
			return "usage: [--seeds FROM-TO] [--lot N] [--set NAME=NUMBER] "
			       "[--only LIST] [--verbose]";
		}
	}
	return NULL;
}

bool seeds_read(struct seeds *seeds, int argc, char **argv)
{
	const char *wrong = parse(seeds, argc, argv);

	seeds->program = argv[0];
	if (!wrong) {
		expect_interruption(argc, argv);
		return true;
	}
	fprintf(stderr, "%s: %s", seeds->program, wrong);
	for (int i = 0; i < SEEDS_FLAGS_MOST && seeds->flags[i]; i++)
		fprintf(stderr, " [%s]", seeds->flags[i]);
	fprintf(stderr, "\n");
	return false;
}

/* ---- Failures -------------------------------------------------------------------- */

struct shrinking {
	struct shrink shrink; /* first */
	const struct seeds *seeds;
};

static bool still_fails(struct shrink *self, uint64_t *ret_asks)
{
	const struct seeds *seeds = ((struct shrinking *)self)->seeds;

	return seeds->play(seeds, self->plan, &self->choice, /* verbose= */ false,
	                   /* first= */ false, ret_asks)[0];
}

static void print_replay(const struct seeds *seeds, uint64_t seed,
                         const struct choice *choice, uint64_t asks)
{
	printf("replay: %s --seeds %" PRIu64 "-%" PRIu64, seeds->program, seed, seed);
	seeds->draw(seeds, seed, seeds->drawn);
	for (size_t i = 0; i < seeds->field_count; i++) {
		const struct shrink_field *field = &seeds->fields[i];
		uint64_t is = shrink_get(seeds->plan, field);

		if (is != shrink_get(seeds->drawn, field))
			printf(" --set %s=%" PRIu64, field->name, is);
	}
	if (choice->some) {
		printf(" --only ");
		choice_print(choice, asks, stdout);
	}
	for (int i = 0; i < SEEDS_FLAGS_MOST && seeds->flags[i]; i++)
		if (seeds->given[i])
			printf(" %s", seeds->flags[i]);
	printf(" --verbose\n");
}

static void make_smaller(const struct seeds *seeds, struct shrink *it)
{
	shrink(it);
	printf("after %" PRIu64 " runs: %s\n", it->runs,
	       seeds->play(seeds, it->plan, &it->choice, /* verbose= */ false,
	                   /* first= */ false, &it->asks));
	seeds->describe(it->plan);
}

static void tell_failure(const struct seeds *seeds, uint64_t seed, const char *what)
{
	static struct shrinking it;
	bool can = !seeds->shrinks || seeds->shrinks(seeds->plan);

	printf("seed %" PRIu64 ": %s\n", seed, what);
	it.seeds = seeds;
	it.shrink.plan = seeds->plan;
	it.shrink.fields = seeds->fields;
	it.shrink.field_count = seeds->field_count;
	it.shrink.fails = still_fails;
	it.shrink.asks = SCRIPT_ASKS_MOST;
	it.shrink.runs = it.shrink.spent = 0;
	it.shrink.choice = seeds->choice;
	seeds->describe(seeds->plan);
	fflush(stdout); /* should a smaller one abort */
	if (!seeds->verbose && can && !seeds->choice.some)
		make_smaller(seeds, &it.shrink);
	print_replay(seeds, seed, &it.shrink.choice, it.shrink.asks);
}

/* ---- One after the other ---------------------------------------------------------- */

static bool play_seed(const struct seeds *seeds, uint64_t seed)
{
	const char *what;
	uint64_t asks;

	seeds->draw(seeds, seed, seeds->plan);
	for (size_t i = 0; i < seeds->set_count; i++)
		shrink_set(seeds->plan, seeds->sets[i].field, seeds->sets[i].value);
	seed_now = seed;
	if (seeds->skips && seeds->skips(seeds, seeds->plan))
		return true;
	if (seeds->verbose)
		seeds->describe(seeds->plan);
	what = seeds->play(seeds, seeds->plan, &seeds->choice, seeds->verbose,
	                   /* first= */ true, &asks);
	if (what[0])
		tell_failure(seeds, seed, what);
	return !what[0];
}

uint64_t seeds_play(struct seeds *seeds)
{
	uint64_t failed = 0;

	seeds->plan = room_new(seeds->plan_bytes);
	seeds->drawn = room_new(seeds->plan_bytes);
	for (uint64_t i = 0; i <= seeds->last - seeds->first && failed < 10; i++)
		failed += !play_seed(seeds, seeds->first + i);
	free(seeds->plan);
	free(seeds->drawn);
	return failed;
}
