/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* tenant_sim.c -- flags, a pond for each seed, a table of tenants, and what gnuplot draws of it. */
#include "tools/tenant_sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <gale/rule.h>

#include "sim/pond.h"
#include "sim/script.h"
#include "tools/fleet.h"
#include "tools/gnuplot.h"
#include "tools/tenant_flags.h"

#define SEEDS_MOST 1000
#define STEPS 1000 /* of a window */
#define ALL_PERCENT                                                                    \
	200 /* of the limit: what a tenant asks for that wants all it can get */
#define NONE ""

static struct pond pond; /* too large for a stack */

struct sim_tenants {
	struct tenant_flags list; /* of --tenants */
	uint64_t nodes;
	uint64_t limit;
	uint64_t window_us;
	uint64_t windows;
	uint64_t cost;
	const char *pause;
	uint64_t delay_us;
	uint64_t lost;
	uint64_t doubled;
	uint64_t crash_us;
	uint64_t forget_us;
	uint64_t drift_ppm;
	uint64_t drift_allowed_ppm;
	uint64_t first_seed;
	uint64_t last_seed;
	uint64_t json;
	const char *plots; /* NULL: none */
};

/* ---- Flags -------------------------------------------------------------------------- */

static bool read_list(const struct flag *flag, const char *text, void *into)
{
	struct sim_tenants *flags = into;

	(void)flag;
	flags->list = (struct tenant_flags){ .tenants = text };
	return tenant_flags_read_list(&flags->list);
}

static bool read_seeds(const struct flag *flag, const char *text, void *into)
{
	struct sim_tenants *flags = into;

	(void)flag;
	return range_read(&text, &flags->first_seed, &flags->last_seed) &&
	       *text == '\0' && flags->last_seed - flags->first_seed < SEEDS_MOST;
}

/* It may be empty. */
static bool read_name(const struct flag *flag, const char *text, void *into)
{
	*(const char **)((char *)into + flag->at) = text;
	return true;
}

#define NUMBER(member, low, high)                                                      \
	.read = flag_read_number, .at = offsetof(struct sim_tenants, member),          \
	.least = (low), .most = (high)
#define DURATION(member, low)                                                          \
	.read = flag_read_duration, .at = offsetof(struct sim_tenants, member),        \
	.least = (low), .most = GALE_HOURS(24)

static const struct flag flags_of_tenants[] = {
	{ .name = "--tenants",
	  .takes = "LIST",
	  .preset = "big=4,mid=2,small=1",
	  .allowed =
	      "up to 16 of NAME=WEIGHT or NAME=WEIGHT:PERCENT, with commas between",
	  .help = "share one budget among tenants by their weights; each asks for "
	          "PERCENT of the limit; without it, for twice the limit",
	  .read = read_list },
	{ .name = "--nodes",
	  .takes = "N",
	  .preset = "4",
	  .allowed = "a whole number from 1 to 64",
	  .help = "nodes, each of which has all tenants",
	  NUMBER(nodes, 1, POND_NODES) },
	{ .name = "--limit",
	  .takes = "N",
	  .preset = "10k",
	  .allowed = "a whole number from 1 to 1M (k and M are understood)",
	  .help = "units that all tenants together may use in a window",
	  NUMBER(limit, 1, 1000000) },
	{ .name = "--window",
	  .takes = "DURATION",
	  .preset = "1s",
	  .allowed = "a duration from 10ms to 24h, with its unit (us, ms, s, m or h)",
	  .help = "how long a window is",
	  DURATION(window_us, GALE_MILLIS(10)) },
	{ .name = "--windows",
	  .takes = "N",
	  .preset = "24",
	  .allowed = "a whole number from 3 to 4096",
	  .help = "windows of a run",
	  NUMBER(windows, 3, POND_WINDOWS) },
	{ .name = "--cost",
	  .takes = "N",
	  .preset = "1",
	  .allowed = "a whole number from 1 to 1000",
	  .help = "units of the dearest call; others cost less, down to 1",
	  NUMBER(cost, 1, 1000) },
	{ .name = "--pause",
	  .takes = "NAME",
	  .preset = NONE,
	  .allowed = "the name of a tenant",
	  .help = "a tenant that does not ask in the second third of the run",
	  .read = read_name,
	  .at = offsetof(struct sim_tenants, pause) },
	{ .name = "--delay",
	  .takes = "DURATION",
	  .preset = "1ms",
	  .allowed = "a duration up to 24h",
	  .help = "mean delay of a message; one in twenty takes eight times as long",
	  DURATION(delay_us, 0) },
	{ .name = "--lost",
	  .takes = "PERCENT",
	  .preset = "0",
	  .allowed = "a whole number from 0 to 100",
	  .help = "messages that are lost",
	  NUMBER(lost, 0, 100) },
	{ .name = "--doubled",
	  .takes = "PERCENT",
	  .preset = "0",
	  .allowed = "a whole number from 0 to 100",
	  .help = "messages that come twice",
	  NUMBER(doubled, 0, 100) },
	{ .name = "--crash",
	  .takes = "DURATION",
	  .preset = "0s",
	  .allowed = "0s, or a duration up to 24h",
	  .help = "a node crashes once in this time on average; 0s: never",
	  DURATION(crash_us, 0) },
	{ .name = "--forget",
	  .takes = "DURATION",
	  .preset = "0s",
	  .allowed = "0s, or a duration up to 24h",
	  .help = "the store forgets once in this time on average; 0s: never",
	  DURATION(forget_us, 0) },
	{ .name = "--drift",
	  .takes = "PPM",
	  .preset = "0",
	  .allowed = "a whole number from 0 to 500k",
	  .help = "how fast or slow clocks run at most",
	  NUMBER(drift_ppm, 0, 500000) },
	{ .name = "--drift-allowed",
	  .takes = "PPM",
	  .preset = "500",
	  .allowed = "a whole number from 0 to 500k",
	  .help = "the drift of clocks that nodes expect",
	  NUMBER(drift_allowed_ppm, 0, 500000) },
	{ .name = "--seeds",
	  .takes = "N[-M]",
	  .preset = "0",
	  .allowed = "a number, or two with a dash, the first not above the second, up "
	             "to 1000 of them",
	  .help = "a run for each; the figures are of all together",
	  .read = read_seeds },
	{ .name = "--json",
	  .read = flag_read_set,
	  .at = offsetof(struct sim_tenants, json),
	  .help = "print one JSON object, and nothing else, on standard output" },
	{ .name = "--plots",
	  .takes = "DIR",
	  .allowed = "a folder",
	  .read = flag_read_text,
	  .at = offsetof(struct sim_tenants, plots),
	  .help = "let gnuplot draw the first seed's shares into this folder, as SVG, "
	          "with its data" },
};

static const struct flag_table table = {
	.flags = flags_of_tenants,
	.count = sizeof(flags_of_tenants) / sizeof(flags_of_tenants[0]),
};

static void help(void)
{
	fputs(
	    "usage: gale sim --tenants LIST [FLAG...]\n"
	    "\n"
	    "Runs nodes that share one budget among tenants over a store, in virtual\n"
	    "time, with the library's own code.  This command counts what each tenant\n"
	    "gets, in the store's windows, and compares that with its share by weight\n"
	    "among the tenants that ask.  Everything follows from the seed.\n"
	    "\n",
	    stdout);
	flags_explain(&table, stdout);
	fputs("\n"
	      "used          units that a tenant got, without the first window\n"
	      "ideal         the tenant's share by weight, or its demand, if that is\n"
	      "              less\n"
	      "worst         used divided by ideal, in the tenant's worst window\n"
	      "most in one   the most that all tenants together got in one window\n"
	      "\n"
	      "Exit status: 0 held, 1 a window was above the limit, or no tenant got\n"
	      "units, 2 a flag is wrong, 3 it could not be done.\n",
	      stdout);
}

static int refuse(const char *why)
{
	fprintf(stderr, "gale sim: %s\n", why);
	return FLEET_BAD_USE;
}

/* ---- Runs --------------------------------------------------------------------------- */

struct sums {
	uint64_t used[POND_TENANTS];
	double ideal[POND_TENANTS];
	double worst[POND_TENANTS];
	uint64_t most; /* in one window */
	uint64_t asks, quanta, lost, doubled, crashes, forgets;
	uint64_t broken; /* runs */
	double all, ideals;
};

static uint32_t number_of(const struct sim_tenants *flags, const char *name)
{
	for (uint32_t i = 0; i < flags->list.count; i++)
		if (strcmp(flags->list.each[i].name, name) == 0)
			return i;
	return POND_NOBODY;
}

static struct pond_plan plan_of(const struct sim_tenants *flags, uint64_t seed)
{
	struct pond_plan plan = {
		.seed = seed,
		.nodes = (uint32_t)flags->nodes,
		.tenant_count = (uint32_t)flags->list.count,
		.pauses = number_of(flags, flags->pause),
		.pause_first = (uint32_t)(flags->windows / 3),
		.pause_last = (uint32_t)(flags->windows * 2 / 3 - 1),
		.limit = flags->limit,
		.window_us = flags->window_us,
		.windows = (uint32_t)flags->windows,
		.steps = STEPS,
		.cost_most = (uint32_t)flags->cost,
		.delay_us = flags->delay_us,
		.lost_percent = (uint32_t)flags->lost,
		.doubled_percent = (uint32_t)flags->doubled,
		.crash_us = flags->crash_us,
		.forget_us = flags->forget_us,
		.rate_ppm = (uint32_t)flags->drift_ppm,
		.drift_ppm = (uint32_t)flags->drift_allowed_ppm,
	};

	for (uint32_t i = 0; i < plan.tenant_count; i++) {
		const struct tenant_flag *tenant = &flags->list.each[i];
		uint64_t percent = tenant->demand_percent;

		plan.tenants[i].weight = tenant->weight;
		plan.tenants[i].demand =
		    1 + flags->limit * (percent > 0 ? percent : ALL_PERCENT) / 100;
	}
	return plan;
}

static void add_tenant(struct sums *sums, const struct pond_plan *plan, uint32_t i)
{
	for (uint32_t w = 1; w < plan->windows; w++) {
		double ideal = pond_ideal(plan, w, i), used = (double)pond.used[w][i];

		sums->used[i] += pond.used[w][i];
		sums->ideal[i] += ideal;
		sums->all += used;
		sums->ideals += ideal;
		if (ideal > 0 && used / ideal < sums->worst[i])
			sums->worst[i] = used / ideal;
	}
}

static void add(struct sums *sums, const struct pond_plan *plan)
{
	for (uint32_t i = 0; i < plan->tenant_count; i++)
		add_tenant(sums, plan, i);
	for (uint32_t w = 0; w < plan->windows; w++)
		if (pond.spent[w] > sums->most)
			sums->most = pond.spent[w];
	sums->asks += pond.asks;
	sums->quanta += pond.quanta;
	sums->lost += pond.lost;
	sums->doubled += pond.doubled;
	sums->crashes += pond.crashes;
	sums->forgets += pond.forgets;
	sums->broken += pond.fault[0] != '\0';
}

/* ---- The plot ------------------------------------------------------------------------ */

/* A line for each window: its number, and what each tenant got, and should have, in percent. */
static bool write_series(const char *path, const struct pond_plan *plan)
{
	FILE *file = fopen(path, "w");
	double percent = 100 / (double)plan->limit;

	if (!file)
		return false;
	for (uint32_t w = 1; w < plan->windows; w++) {
		fprintf(file, "%" PRIu32, w);
		for (uint32_t i = 0; i < plan->tenant_count; i++)
			fprintf(file, " %.3f %.3f", (double)pond.used[w][i] * percent,
			        pond_ideal(plan, w, i) * percent);
		fputc('\n', file);
	}
	return fclose(file) == 0;
}

static bool plot(const struct sim_tenants *flags, const struct pond_plan *plan)
{
	static char script[16384];
	size_t at = 0, size = sizeof(script);
	char path[4096];

	snprintf(path, sizeof(path), "%s/tenants.dat", flags->plots);
	if (!write_series(path, plan)) {
		fprintf(stderr, "gale sim: --plots: %s: %s\n", path, strerror(errno));
		return false;
	}
	at += (size_t)snprintf(script + at, size - at,
	                       "set terminal svg size 760,340\n"
	                       "set output '%s/tenants.svg'\nset key outside right\n"
	                       "set xlabel 'window'\nset ylabel 'percent of the "
	                       "limit'\nset yrange [0:*]\nplot ",
	                       flags->plots);
	for (uint32_t i = 0; i < plan->tenant_count; i++)
		at += (size_t)snprintf(
		    script + at, size - at,
		    "'%s' using 1:%u with points lt %u title '%s' noenhanced,"
		    "'%s' using 1:%u with steps lt %u dt 2 notitle,",
		    path, 2 * i + 2, i + 1, flags->list.each[i].name, path, 2 * i + 3,
		    i + 1);
	snprintf(script + at, size - at, "\n");
	return gnuplot_run(script);
}

/* ---- The report ---------------------------------------------------------------------- */

static const char *verdict_of(const struct sim_tenants *flags, const struct sums *sums)
{
	if (sums->most > flags->limit)
		return "overshot";
	if (sums->broken > 0)
		return "broken";
	return sums->all > 0 ? "held" : "unproven";
}

static void print_table(const struct sim_tenants *flags, const struct sums *sums,
                        const char *verdict)
{
	printf("%-16s %8s %12s %12s %8s %8s\n", "tenant", "weight", "used", "ideal",
	       "ratio", "worst");
	for (uint64_t i = 0; i < flags->list.count; i++)
		printf("%-16s %8" PRIu64 " %12" PRIu64 " %12.0f %8.4f %8.4f\n",
		       flags->list.each[i].name, flags->list.each[i].weight,
		       sums->used[i], sums->ideal[i],
		       (double)sums->used[i] / sums->ideal[i], sums->worst[i]);
	printf("\nruns %" PRIu64 "   most in one %" PRIu64 " of %" PRIu64
	       "   utilisation %.4f   quanta %" PRIu64 "   asks %" PRIu64 "\n%" PRIu64
	       " lost, %" PRIu64 " doubled, %" PRIu64 " crashes, %" PRIu64
	       " times forgotten\nverdict %s\n",
	       flags->last_seed - flags->first_seed + 1, sums->most, flags->limit,
	       sums->all / sums->ideals, sums->quanta, sums->asks, sums->lost,
	       sums->doubled, sums->crashes, sums->forgets, verdict);
}

static void print_json(const struct sim_tenants *flags, const struct sums *sums,
                       const char *verdict)
{
	printf("{\"verdict\":\"%s\",\"limit\":%" PRIu64 ",\"window_us\":%" PRIu64
	       ",\"nodes\":%" PRIu64 ",\"windows\":%" PRIu64 ",\"runs\":%" PRIu64
	       ",\"admitted_max\":%" PRIu64 ",\"utilisation\":%.6f,\"quanta\":%" PRIu64
	       ",\"asks\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"doubled\":%" PRIu64
	       ",\"crashes\":%" PRIu64 ",\"forgets\":%" PRIu64 ",\"tenants\":[",
	       verdict, flags->limit, flags->window_us, flags->nodes, flags->windows,
	       flags->last_seed - flags->first_seed + 1, sums->most,
	       sums->all / sums->ideals, sums->quanta, sums->asks, sums->lost,
	       sums->doubled, sums->crashes, sums->forgets);
	for (uint64_t i = 0; i < flags->list.count; i++)
		printf("%s{\"name\":\"%s\",\"weight\":%" PRIu64 ",\"used\":%" PRIu64
		       ",\"ideal\":%.0f,\"worst\":%.6f}",
		       i > 0 ? "," : "", flags->list.each[i].name,
		       flags->list.each[i].weight, sums->used[i], sums->ideal[i],
		       sums->worst[i]);
	printf("]}\n");
}

static int run_all(const struct sim_tenants *flags)
{
	struct sums sums = { 0 };
	const char *verdict;

	for (uint32_t i = 0; i < POND_TENANTS; i++)
		sums.worst[i] = 1;
	for (uint64_t seed = flags->first_seed; seed <= flags->last_seed; seed++) {
		struct pond_plan plan = plan_of(flags, seed);

		pond_play(&pond, &plan);
		add(&sums, &plan);
		if (pond.fault[0])
			fprintf(stderr, "gale sim: seed %" PRIu64 ": %s\n", seed,
			        pond.fault);
		if (flags->plots && seed == flags->first_seed && !plot(flags, &plan))
			return FLEET_FAILED;
	}
	verdict = verdict_of(flags, &sums);
	if (flags->json)
		print_json(flags, &sums, verdict);
	else
		print_table(flags, &sums, verdict);
	return strcmp(verdict, "held") == 0 ? FLEET_HELD : FLEET_BROKEN;
}

/* ---- The command --------------------------------------------------------------------- */

static bool is_plain(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < 0x20 || strchr("'\"\\", *name))
			return false;
	return true;
}

static int check(const struct sim_tenants *flags)
{
	for (uint64_t i = 0; i < flags->list.count; i++)
		if (!is_plain(flags->list.each[i].name))
			return refuse("--tenants: a name has a quote, a backslash or a "
			              "control character");
	if (flags->pause[0] &&
	    (number_of(flags, flags->pause) == POND_NOBODY || flags->list.count == 1))
		return refuse("--pause: no tenant of --tenants beside others has that "
		              "name");
	if (flags->plots && !gnuplot_may_draw_in(flags->plots))
		return refuse("--plots: there is no such folder");
	return FLEET_HELD;
}

int tenant_sim_run(int argc, char *const *argv)
{
	struct sim_tenants flags = { 0 };
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
