/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * explore.c -- all states of small worlds, made of the functions that gale ships.
 *
 *     gale_explore FILE [NAME...]          runs of a list (runs.h), or some of them
 *     gale_explore --quick FILE            those of the short form
 *     gale_explore --world "MODEL C=N..."  one world, and the way to what breaks it
 *     gale_explore --models                what there is
 *
 *     --threads N     2
 *     --memory MIB    for the states of a run: 2048
 *     --ways          print the way to what breaks, also where that must come out
 *
 * Exit: 0 if all came out as it must; 1 if not; 2 if it could not be run.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "spec/explore/later.h"
#include "spec/explore/runs.h"

struct options {
	uint32_t threads;
	uint64_t bytes_most;
	bool ways;
	bool quick;
	const char *world;
};

static struct options options = { .threads = 2, .bytes_most = UINT64_C(2048) << 20 };

/* ---- One run --------------------------------------------------------------------- */

static bool fail(const struct run *run, const char *why)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s\n", run->name, why);
	return false;
}

static void check_goals(struct search *search)
{
	const struct goal *goal = search->model->goals;
	enum later later = LATER_HOLDS;

	for (; goal && goal->name && later == LATER_HOLDS; goal++) {
		later = later_check(search, goal, options.bytes_most, &search->bad);
		if (later == LATER_FAILS)
			search->why = goal->name;
		search->out_of_memory |= later == LATER_NO_MEMORY;
	}
}

static const char *verdict_of(const struct search *search)
{
	return search->why ? "refuted" : "holds";
}

static void print_row(const struct run *run, const struct search *search)
{
	uint64_t states = space_count(&search->space);
	double rate = search->worked > 0 ? (double)states / search->worked : 0;

	printf(
	    "| %s | %s | %s | %llu | %llu | %u | %ld | %ld | %s%s%s | %.1f | %.0f |\n",
	    run->name, run->model->name, run->constants, (unsigned long long)states,
	    (unsigned long long)search->steps, search->levels + 1,
	    run->model->bound(run->c), search->found, verdict_of(search),
	    search->why ? " by " : "", search->why ? search->why : "", search->seconds,
	    rate / 1000);
	fflush(stdout);
}

static bool came_out(const struct run *run, const struct search *search)
{
	char text[120];

	if (run->holds != !search->why)
		return fail(run, run->holds ? "this must hold, and does not"
		                            : "this must be refuted, and holds");
	if (run->by[0] != '\0' && strcmp(run->by, search->why) != 0)
		return fail(run, "it is refuted, but by something else");
	snprintf(text, sizeof(text), "%llu states, where %ld are expected",
	         (unsigned long long)space_count(&search->space), run->states);
	if (run->states >= 0 && (uint64_t)run->states != space_count(&search->space))
		return fail(run, text);
	snprintf(text, sizeof(text), "%ld was found, where %ld is expected",
	         search->found, run->found);
	if (run->found >= 0 && run->found != search->found)
		return fail(run, text);
	return true;
}

static void print_way(const struct search *search)
{
	printf("\n%s:\n", search->why);
	search_print_way(search, search->bad, stdout);
	putchar('\n');
}

static bool conclude(const struct run *run, struct search *search)
{
	bool ok;

	if (!search->why && !search->out_of_memory && run->live)
		check_goals(search);
	if (search->out_of_memory)
		return fail(run, "not enough memory for all states: see --memory");
	if (search->steps == 0)
		return fail(run, "nothing was explored");
	print_row(run, search);
	ok = came_out(run, search);
	if (search->why && (options.ways || !ok))
		print_way(search);
	return ok;
}

static bool run_one(const struct run *run)
{
	struct search search;
	const char *fault = run->model->open(run->c);
	bool ok;

	if (fault)
		return fail(run, fault);
	if (!search_open(&search, run->model, run->c, options.threads,
	                 options.bytes_most))
		return fail(run, "not enough memory to begin: see --memory");
	search_run(&search);
	ok = conclude(run, &search);
	search_close(&search);
	return ok;
}

/* ---- Lists ----------------------------------------------------------------------- */

static void print_head(void)
{
	puts("| run | model | constants | states | steps | depth | bound | found "
	     "maximum | verdict | s | 1000 states/s and core |");
	puts("|---|---|---|---|---|---|---|---|---|---|---|");
}

static bool is_chosen(const struct run *run, char **names)
{
	if (!*names)
		return !options.quick || run->quick;
	while (*names && strcmp(*names, run->name) != 0)
		names++;
	return *names != NULL;
}

/* The first of the names that no run has, or NULL. */
static const char *unknown(const struct run *runs, size_t count, char **names)
{
	for (; *names; names++) {
		size_t i = 0;

		while (i < count && strcmp(runs[i].name, *names) != 0)
			i++;
		if (i == count)
			return *names;
	}
	return NULL;
}

static int run_all(const struct run *runs, size_t count, char **names)
{
	size_t ran = 0, failed = 0;

	print_head();
	for (size_t i = 0; i < count; i++) {
		if (!is_chosen(&runs[i], names))
			continue;
		ran++;
		failed += !run_one(&runs[i]);
	}
	printf("\n%zu runs, %zu not as they must be\n", ran, failed);
	if (ran == 0)
		fputs("no run was chosen: nothing was explored\n", stderr);
	return ran == 0 || failed > 0;
}

static int run_list(const char *path, char **names)
{
	struct run *runs;
	unsigned line;
	size_t count;
	const char *fault = runs_read(path, &runs, &count, &line);
	const char *name = fault ? NULL : unknown(runs, count, names);
	int status = 2;

	if (fault && line > 0)
		fprintf(stderr, "%s:%u: %s\n", path, line, fault);
	else if (fault)
		fprintf(stderr, "%s: %s\n", path, fault);
	else if (name)
		fprintf(stderr, "%s: there is no run called %s\n", path, name);
	else
		status = run_all(runs, count, names);
	free(runs);
	return status;
}

static int run_world(void)
{
	struct run run;
	char text[400];
	int len = snprintf(text, sizeof(text), "world %s", options.world);
	const char *fault =
	    (size_t)len < sizeof(text) ? run_read(text, &run) : "too long";

	if (fault) {
		fprintf(stderr, "%s\n", fault);
		return 2;
	}
	options.ways = true;
	run.live = true;
	print_head();
	return run_one(&run) ? 0 : 1;
}

static int print_models(void)
{
	for (size_t i = 0; models[i]; i++) {
		const struct constant *constant = models[i]->constants;

		printf("%s: %s\n", models[i]->name, models[i]->about);
		for (; constant->name; constant++)
			printf("    %-10s %3ld to %3ld, else %ld: %s\n", constant->name,
			       constant->least, constant->most, constant->usual,
			       constant->says);
	}
	return 0;
}

/* ---- The command line ------------------------------------------------------------ */

static bool number_option(const char *name, const char *text, long least, long most,
                          long *ret_number)
{
	char *end;

	*ret_number = strtol(text, &end, 10);
	if (*end == '\0' && *ret_number >= least && *ret_number <= most)
		return true;
	fprintf(stderr, "--%s: from %ld to %ld, not %s\n", name, least, most, text);
	return false;
}

static bool set_option(int option, const char *value)
{
	long number = 0;

	switch (option) {
	case 't':
		if (!number_option("threads", value, 1, THREADS_MOST, &number))
			return false;
		options.threads = (uint32_t)number;
		return true;
	case 'm':
		if (!number_option("memory", value, 1, 1 << 20, &number))
			return false;
		options.bytes_most = (uint64_t)number << 20;
		return true;
	case 'w':
		options.ways = true;
		return true;
	case 'q':
		options.quick = true;
		return true;
	case 'o':
		options.world = value;
		return true;
	default:
		return false;
	}
}

static int usage(void)
{
	fputs("gale_explore [--threads N] [--memory MIB] [--ways] [--quick] FILE "
	      "[NAME...]\n"
	      "gale_explore [...] --world \"MODEL CONSTANT=NUMBER...\"\n"
	      "gale_explore --models\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "threads", required_argument, NULL, 't' },
		{ "memory", required_argument, NULL, 'm' },
		{ "ways", no_argument, NULL, 'w' },
		{ "quick", no_argument, NULL, 'q' },
		{ "world", required_argument, NULL, 'o' },
		{ "models", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'l')
			return print_models();
		if (!set_option(option, optarg))
			return usage();
	}
	if (options.world && optind == argc)
		return run_world();
	if (options.world || optind == argc)
		return usage();
	return run_list(argv[optind], argv + optind + 1);
}
