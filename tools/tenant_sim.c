/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* tenant_sim.c -- flags, a pond for each seed, a table of tenants, and what gnuplot draws of it. */
#include "tools/tenant_sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
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
	uint64_t regions;
	uint64_t link_ms; /* as in gale fleet --tenants */
	uint64_t home;    /* percent */
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
	{ .name = "--regions",
	  .takes = "N",
	  .preset = "1",
	  .allowed = "a whole number from 1 to 8",
	  .help = "regions, among which the nodes are dealt out; all but the first "
	          "reach the store by a slow link",
	  NUMBER(regions, 1, POND_REGIONS) },
	{ .name = "--link-ms",
	  .takes = "N",
	  .preset = "20",
	  .allowed = "a whole number from 0 to 10k",
	  .help = "milliseconds that a round trip of such a link takes",
	  NUMBER(link_ms, 0, 10000) },
	{ .name = "--home",
	  .takes = "PERCENT",
	  .preset = "80",
	  .allowed = "a whole number from 0 to 100",
	  .help =
	      "of its demand a tenant asks for so much in its own region (the first "
	      "tenant's is the first, and so on in turn), and for the rest evenly in "
	      "all",
	  NUMBER(home, 0, 100) },
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
	          "with its data: tenants.svg, or of several regions regions.svg" },
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
	      "in regions    used, in each region\n"
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
	uint64_t in_region[POND_TENANTS][POND_REGIONS];
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
		.regions = (uint32_t)flags->regions,
		.link_us = flags->regions > 1 ? GALE_MILLIS(flags->link_ms) : 0,
		.home_percent = flags->regions > 1 ? (uint32_t)flags->home : 0,
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
		for (uint32_t r = 0; r < plan->regions; r++)
			sums->in_region[i][r] += pond.in_region[w][r][i];
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

/* A line for each window: its number, and what each tenant got, and should have, in percent; and then
 * what it got in each region. */
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
		for (uint32_t r = 0; r < plan->regions; r++)
			for (uint32_t i = 0; i < plan->tenant_count; i++)
				fprintf(file, " %.3f",
				        (double)pond.in_region[w][r][i] * percent);
		fputc('\n', file);
	}
	return fclose(file) == 0;
}

struct plot_script {
	char text[65536];
	size_t at;
};

__attribute__((format(printf, 2, 3))) static void put(struct plot_script *script,
                                                      const char *format, ...)
{
	size_t room = sizeof(script->text) - script->at;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(script->text + script->at, room, format, args);
	va_end(args);
	script->at += (size_t)length < room ? (size_t)length : room - 1;
}

static void plot_totals(struct plot_script *script, const struct sim_tenants *flags,
                        const char *path)
{
	put(script, "plot ");
	for (uint32_t i = 0; i < flags->list.count; i++)
		put(script,
		    "'%s' using 1:%u with points lt %u title '%s' noenhanced,"
		    "'%s' using 1:%u with steps lt %u dt 2 notitle,",
		    path, 2 * i + 2, i + 1, flags->list.each[i].name, path, 2 * i + 3,
		    i + 1);
	put(script, "\n");
}

static void plot_region(struct plot_script *script, const struct sim_tenants *flags,
                        const char *path, uint32_t region)
{
	uint32_t count = (uint32_t)flags->list.count;

	put(script, "set title 'used in region %u%s'\nplot ", region + 1,
	    region == 0 ? ", where the store is" : "");
	for (uint32_t i = 0; i < count; i++)
		put(script, "'%s' using 1:%u with linespoints lt %u notitle,", path,
		    2 + (2 + region) * count + i, i + 1);
	put(script, "\n");
}

static bool plot(const struct sim_tenants *flags, const struct pond_plan *plan)
{
	const char *name = plan->regions > 1 ? "regions" : "tenants";
	static struct plot_script script;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.dat", flags->plots, name);
	if (!write_series(path, plan)) {
		fprintf(stderr, "gale sim: --plots: %s: %s\n", path, strerror(errno));
		return false;
	}
	script.at = 0;
	put(&script,
	    "set terminal svg size 760,%u\nset output '%s/%s.svg'\n"
	    "set key outside right\nset xlabel 'window'\n"
	    "set ylabel 'percent of the limit'\nset yrange [0:*]\n",
	    plan->regions > 1 ? 240 * (plan->regions + 1) : 340, flags->plots, name);
	if (plan->regions == 1) {
		plot_totals(&script, flags, path);
		return gnuplot_run(script.text);
	}
	put(&script,
	    "set rmargin 16\nset multiplot layout %u,1\nset title 'used in all "
	    "regions; dashed: the "
	    "share of one budget without regions'\n",
	    plan->regions + 1);
	plot_totals(&script, flags, path);
	for (uint32_t r = 0; r < plan->regions; r++)
		plot_region(&script, flags, path, r);
	return gnuplot_run(script.text);
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
	printf("%-16s %8s %12s %12s %8s %8s%s\n", "tenant", "weight", "used", "ideal",
	       "ratio", "worst", flags->regions > 1 ? "  in regions" : "");
	for (uint64_t i = 0; i < flags->list.count; i++) {
		printf("%-16s %8" PRIu64 " %12" PRIu64 " %12.0f %8.4f %8.4f",
		       flags->list.each[i].name, flags->list.each[i].weight,
		       sums->used[i], sums->ideal[i],
		       (double)sums->used[i] / sums->ideal[i], sums->worst[i]);
		for (uint64_t r = 0; r < flags->regions && flags->regions > 1; r++)
			printf("%s%" PRIu64, r > 0 ? " " : "  ", sums->in_region[i][r]);
		printf("\n");
	}
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
	       ",\"nodes\":%" PRIu64 ",\"regions\":%" PRIu64 ",\"windows\":%" PRIu64
	       ",\"runs\":%" PRIu64 ",\"admitted_max\":%" PRIu64
	       ",\"utilisation\":%.6f,\"quanta\":%" PRIu64 ",\"asks\":%" PRIu64
	       ",\"lost\":%" PRIu64 ",\"doubled\":%" PRIu64 ",\"crashes\":%" PRIu64
	       ",\"forgets\":%" PRIu64 ",\"tenants\":[",
	       verdict, flags->limit, flags->window_us, flags->nodes, flags->regions,
	       flags->windows, flags->last_seed - flags->first_seed + 1, sums->most,
	       sums->all / sums->ideals, sums->quanta, sums->asks, sums->lost,
	       sums->doubled, sums->crashes, sums->forgets);
	for (uint64_t i = 0; i < flags->list.count; i++) {
		printf("%s{\"name\":\"%s\",\"weight\":%" PRIu64 ",\"used\":%" PRIu64
		       ",\"ideal\":%.0f,\"worst\":%.6f,\"in_regions\":[",
		       i > 0 ? "," : "", flags->list.each[i].name,
		       flags->list.each[i].weight, sums->used[i], sums->ideal[i],
		       sums->worst[i]);
		for (uint64_t r = 0; r < flags->regions; r++)
			printf("%s%" PRIu64, r > 0 ? "," : "", sums->in_region[i][r]);
		printf("]}");
	}
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
	if (flags->regions > flags->nodes)
		return refuse("--regions: each needs a node of its own, with --nodes");
	if (flags->regions > 1 && flags->link_ms * 10000 > flags->window_us)
		return refuse(
		    "--link-ms: a window has to be ten round trips or longer");
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
