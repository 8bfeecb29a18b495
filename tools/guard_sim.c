/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* guard_sim.c -- every law in every scenario, in one table; and what gnuplot draws of it. */
#include "tools/guard_sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/scenes.h"
#include "sim/script.h"
#include "tools/fleet.h"
#include "tools/flag.h"
#include "tools/gnuplot.h"

#define ALL "all"
#define SEEDS_MOST 1000

struct guard_flags {
	uint64_t guard;
	const char *law;
	const char *scenario;
	uint64_t first_seed;
	uint64_t last_seed;
	uint64_t drawn;
	uint64_t json;
	const char *plots; /* NULL: none */
};

static struct queue queue; /* too large for a stack */
static struct fleet fleet;

/* ---- Flags -------------------------------------------------------------------------- */

static bool read_seeds(const struct flag *flag, const char *text, void *into)
{
	struct guard_flags *flags = into;

	(void)flag;
	return range_read(&text, &flags->first_seed, &flags->last_seed) &&
	       *text == '\0' && flags->last_seed - flags->first_seed < SEEDS_MOST;
}

#define AT(member) offsetof(struct guard_flags, member)

static const struct flag flags_of_guard[] = {
	{ .name = "--guard",
	  .read = flag_read_set,
	  .at = AT(guard),
	  .help = "laws of a ceiling, instead of a fleet with a limit" },
	{ .name = "--law",
	  .takes = "NAME",
	  .preset = ALL,
	  .allowed = "a law of the list that --help prints, or all",
	  .read = flag_read_text,
	  .at = AT(law),
	  .help = "one law of the list below, or all" },
	{ .name = "--scenario",
	  .takes = "NAME",
	  .preset = ALL,
	  .allowed = "a scenario of the list that --help prints, or all",
	  .read = flag_read_text,
	  .at = AT(scenario),
	  .help = "one scenario of the list below, or all" },
	{ .name = "--seeds",
	  .takes = "N[-M]",
	  .preset = "710000-710002",
	  .allowed = "a number, or two with a dash, the first not above the second, up "
	             "to 1000 of them",
	  .help = "a run for each; the figures are their means",
	  .read = read_seeds },
	{ .name = "--drawn",
	  .read = flag_read_set,
	  .at = AT(drawn),
	  .help =
	      "servers, service, objective and load are drawn by lot for each seed" },
	{ .name = "--json",
	  .read = flag_read_set,
	  .at = AT(json),
	  .help = "print an object for each law and scenario, one a line" },
	{ .name = "--plots",
	  .takes = "DIR",
	  .allowed = "a folder",
	  .read = flag_read_text,
	  .at = AT(plots),
	  .help = "let gnuplot draw each scenario into this folder, as SVG, with its "
	          "data" },
};

static const struct flag_table table = {
	.flags = flags_of_guard,
	.count = sizeof(flags_of_guard) / sizeof(flags_of_guard[0]),
};

static void help(void)
{
	fputs("usage: gale sim --guard [FLAG...]\n"
	      "\n"
	      "Runs a backend in virtual time behind a guard.  A law learns the\n"
	      "guard's ceiling.  Goodput is the number of calls that are answered\n"
	      "within the objective, divided by that of an oracle.  The oracle knows\n"
	      "the best fixed limit of each phase.\n"
	      "\n"
	      "Exit status: 0 done, 2 a flag is wrong, 3 it could not be done.\n"
	      "\n",
	      stdout);
	flags_explain(&table, stdout);
	printf("\nLaws:\n");
	for (size_t i = 0; i < law_count; i++)
		printf("  %-18s %s\n", laws[i]->name, laws[i]->about);
	printf("\nScenarios:\n");
	for (size_t i = 0; i < scene_count; i++)
		printf("  %-18s %s\n", scenes[i].name, scenes[i].about);
}

static int refuse(const char *why)
{
	fprintf(stderr, "gale sim: %s\n", why);
	return FLEET_BAD_USE;
}

static bool is_all(const char *name)
{
	return strcmp(name, ALL) == 0;
}

/* ---- Plots -------------------------------------------------------------------------- */

/* Goodput, ceiling and mean latency over time, of one law. */
static bool write_series(const char *path, const struct queue_plan *plan)
{
	FILE *file = fopen(path, "w");
	double tick = (double)plan->tick_ns / 1e9;

	if (!file)
		return false;
	for (uint32_t i = 0; i < queue.tick_count; i++)
		fprintf(file, "%.3f %.0f %" PRIu32 " %.3f\n", i * tick,
		        queue.ticks[i].good / tick, queue.ticks[i].limit,
		        queue.ticks[i].latency_us / 1000.0);
	return fclose(file) == 0;
}

static bool is_drawn(const struct guard_flags *flags, size_t law)
{
	return is_all(flags->law) || strcmp(laws[law]->name, flags->law) == 0;
}

static bool plot(const struct guard_flags *flags, const struct scene *scene)
{
	static char script[16384];
	size_t at = 0, size = sizeof(script);
	static const char *const titles[] = { "good answers a second", "ceiling" };

	at += (size_t)snprintf(script + at, size - at,
	                       "set terminal svg size 760,560\n"
	                       "set output '%s/%s.svg'\nset multiplot layout 2,1\n"
	                       "set key outside right\nset xlabel 'seconds'\n",
	                       flags->plots, scene->name);
	for (int column = 0; column < 2; column++) {
		at += (size_t)snprintf(script + at, size - at,
		                       "set title '%s: %s'\nset yrange [0:*]\nplot ",
		                       scene->name, titles[column]);
		for (size_t i = 0; i < law_count; i++)
			if (is_drawn(flags, i))
				at += (size_t)snprintf(script + at, size - at,
				                       "'%s/%s-%s.dat' every 4 using "
				                       "1:%d with lines title "
				                       "'%s' noenhanced,",
				                       flags->plots, scene->name,
				                       laws[i]->name, column + 2,
				                       laws[i]->name);
		at += (size_t)snprintf(script + at, size - at, "\n");
	}
	return gnuplot_run(script);
}

/* ---- The table ---------------------------------------------------------------------- */

struct cell {
	double goodput; /* means over the seeds */
	double worst;   /* of the seeds */
	double p99_ms;
	double refused;
	double p99_ratio;
};

static void plan_of(struct queue_plan *plan, const struct guard_flags *flags,
                    const struct scene *scene, uint64_t seed)
{
	scene->plan(plan, flags->drawn ? seed : 0);
	plan->seed = seed;
}

static void add(struct cell *cell, const struct score *score, double runs)
{
	cell->goodput += score->goodput / runs;
	cell->p99_ms += (double)score->p99_ns / 1e6 / runs;
	cell->refused += score->refused / runs;
	cell->p99_ratio += score->p99_ratio / runs;
	if (score->goodput < cell->worst)
		cell->worst = score->goodput;
}

static bool keep_series(const struct guard_flags *flags, const struct scene *scene,
                        const struct law *law, const struct queue_plan *plan)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s-%s.dat", flags->plots, scene->name,
	         law->name);
	if (write_series(path, plan))
		return true;
	fprintf(stderr, "gale sim: --plots: %s: %s\n", path, strerror(errno));
	return false;
}

/* All laws meet the same calls, and the same oracle. */
static bool run_scene(const struct guard_flags *flags, const struct scene *scene,
                      struct cell *cells)
{
	double runs = (double)(flags->last_seed - flags->first_seed + 1);
	struct queue_plan plan;
	struct oracle oracle;
	struct score score;

	for (size_t i = 0; i < law_count; i++)
		cells[i] = (struct cell){ .worst = 1e9 };
	for (uint64_t seed = flags->first_seed; seed <= flags->last_seed; seed++) {
		plan_of(&plan, flags, scene, seed);
		oracle_scan(&oracle, &queue, &plan);
		for (size_t i = 0; i < law_count; i++) {
			if (!is_drawn(flags, i))
				continue;
			plan.law = laws[i];
			queue_play(&queue, &plan, &fleet);
			score_of(&score, &queue, &oracle);
			add(&cells[i], &score, runs);
			if (flags->plots && seed == flags->first_seed &&
			    !keep_series(flags, scene, laws[i], &plan))
				return false;
		}
	}
	return !flags->plots || plot(flags, scene);
}

static void print_json(const struct guard_flags *flags, const struct scene *scene,
                       const struct cell *cells)
{
	for (size_t i = 0; i < law_count; i++)
		if (is_drawn(flags, i))
			printf("{\"scenario\": \"%s\", \"law\": \"%s\", \"goodput\": "
			       "%.4f, \"worst_seed\": %.4f, \"p99_ms\": %.4f, "
			       "\"p99_ratio\": %.3f, \"refused\": %.4f}\n",
			       scene->name, laws[i]->name, cells[i].goodput,
			       cells[i].worst, cells[i].p99_ms, cells[i].p99_ratio,
			       cells[i].refused);
}

static void print_head(const struct guard_flags *flags)
{
	printf("%-14s", "goodput/p99 ms");
	for (size_t i = 0; i < law_count; i++)
		if (is_drawn(flags, i))
			printf(" %16s", laws[i]->name);
	printf("\n");
}

static void print_row(const struct guard_flags *flags, const struct scene *scene,
                      const struct cell *cells)
{
	char text[32];

	printf("%-14s", scene->name);
	for (size_t i = 0; i < law_count; i++) {
		if (!is_drawn(flags, i))
			continue;
		snprintf(text, sizeof(text), "%.3f/%.4g", cells[i].goodput,
		         cells[i].p99_ms);
		printf(" %16s", text);
	}
	printf("\n");
	fflush(stdout);
}

static void print_worst(const struct guard_flags *flags, const double *worst)
{
	printf("%-14s", "worst");
	for (size_t i = 0; i < law_count; i++)
		if (is_drawn(flags, i))
			printf(" %16.3f", worst[i]);
	printf("\n");
}

#define LAWS_MOST 32

static int run_all(const struct guard_flags *flags)
{
	static struct cell cells[LAWS_MOST];
	double worst[LAWS_MOST];

	for (size_t i = 0; i < law_count; i++)
		worst[i] = 1e9;
	if (!flags->json)
		print_head(flags);
	for (size_t i = 0; i < scene_count; i++) {
		if (!is_all(flags->scenario) &&
		    strcmp(flags->scenario, scenes[i].name) != 0)
			continue;
		if (!run_scene(flags, &scenes[i], cells))
			return FLEET_FAILED;
		if (flags->json)
			print_json(flags, &scenes[i], cells);
		else
			print_row(flags, &scenes[i], cells);
		for (size_t j = 0; j < law_count; j++)
			if (cells[j].goodput < worst[j])
				worst[j] = cells[j].goodput;
	}
	if (!flags->json && is_all(flags->scenario))
		print_worst(flags, worst);
	return FLEET_HELD;
}

/* ---- The command -------------------------------------------------------------------- */

bool guard_sim_wanted(int argc, char *const *argv)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--guard") == 0)
			return true;
	return false;
}

static int check(const struct guard_flags *flags)
{
	if (!is_all(flags->law) && !law_named(flags->law))
		return refuse("--law: there is none of that name; see gale sim --guard "
		              "--help");
	if (!is_all(flags->scenario) && !scene_named(flags->scenario))
		return refuse("--scenario: there is none of that name; see gale sim "
		              "--guard --help");
	if (flags->plots && !gnuplot_may_draw_in(flags->plots))
		return refuse("--plots: there is no such folder");
	return FLEET_HELD;
}

int guard_sim_run(int argc, char *const *argv)
{
	struct guard_flags flags = { 0 };
	struct flags_error error;
	int status;

	switch (flags_read(&table, argc, argv, &flags, &error)) {
	case FLAGS_BAD:
		return refuse(error.text);
	case FLAGS_HELP:
		help();
		return fflush(stdout) == 0 ? FLEET_HELD : FLEET_FAILED;
	case FLAGS_RUN:
		break;
	}
	status = check(&flags);
	if (status == FLEET_HELD)
		status = run_all(&flags);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("gale sim: standard output");
	return FLEET_FAILED;
}
