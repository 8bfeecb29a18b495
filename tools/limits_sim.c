/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* limits_sim.c -- flags, a brook for each seed, a table of limits, and what gnuplot draws of it. */
#include "tools/limits_sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <gale/rule.h>

#include "sim/brook.h"
#include "sim/script.h"
#include "tools/fleet.h"
#include "tools/flag.h"
#include "tools/gnuplot.h"

#define SEEDS_MOST 1000
#define UNITS_MOST 1000000

static struct brook brook; /* too large for a stack */

struct limit_flag {
	char name[GALE_NAME_MAX + 1];
	struct brook_limit limit;
};

struct limits_flags {
	struct limit_flag limits[BROOK_LIMITS];
	uint32_t count;
	uint64_t holds;
	uint64_t nodes;
	uint64_t windows;
	uint64_t calls;
	uint64_t cost;
	uint64_t hold;
	uint64_t grow;
	uint64_t send;
	uint64_t breaks;
	uint64_t late;
	uint64_t first_seed;
	uint64_t last_seed;
	uint64_t json;
	const char *plots; /* NULL: none */
};

/* ---- Flags -------------------------------------------------------------------------- */

/* The text up to there, without its end; false: it is empty or too long. */
static bool cut(const char *text, size_t count, char *out, size_t room)
{
	if (count == 0 || count >= room)
		return false;
	memcpy(out, text, count);
	out[count] = '\0';
	return true;
}

static bool is_plain(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < 0x20 || strchr("'\"\\", *name))
			return false;
	return true;
}

/* NAME=UNITS/WINDOW */
static bool read_limit(const char *text, size_t count, struct limit_flag *limit)
{
	const char *equals = memchr(text, '=', count), *slash, *end = text + count;
	char number[24];

	if (!equals ||
	    !cut(text, (size_t)(equals - text), limit->name, sizeof(limit->name)))
		return false;
	slash = memchr(equals, '/', (size_t)(end - equals));
	return is_plain(limit->name) && slash &&
	       cut(equals + 1, (size_t)(slash - equals - 1), number, sizeof(number)) &&
	       flags_number(number, &limit->limit.units) && limit->limit.units >= 1 &&
	       limit->limit.units <= UNITS_MOST &&
	       cut(slash + 1, (size_t)(end - slash - 1), number, sizeof(number)) &&
	       flags_duration(number, 0, &limit->limit.window_us) &&
	       limit->limit.window_us >= GALE_SECONDS(1) &&
	       limit->limit.window_us <= GALE_HOURS(24);
}

static bool is_again(const struct limits_flags *flags, const char *name)
{
	for (uint32_t i = 0; i < flags->count; i++)
		if (strcmp(flags->limits[i].name, name) == 0)
			return true;
	return false;
}

static bool read_limits(const struct flag *flag, const char *text, void *into)
{
	struct limits_flags *flags = into;

	(void)flag;
	for (flags->count = 0; flags->count < BROOK_LIMITS;) {
		size_t count = strcspn(text, ",");
		struct limit_flag *limit = &flags->limits[flags->count];

		if (!read_limit(text, count, limit) || is_again(flags, limit->name) ||
		    limit->limit.window_us < flags->limits[0].limit.window_us)
			return false;
		flags->count++;
		text += count;
		if (*text++ == '\0')
			return true;
	}
	return false;
}

static bool read_seeds(const struct flag *flag, const char *text, void *into)
{
	struct limits_flags *flags = into;

	(void)flag;
	return range_read(&text, &flags->first_seed, &flags->last_seed) &&
	       *text == '\0' && flags->last_seed - flags->first_seed < SEEDS_MOST;
}

#define AT(member) offsetof(struct limits_flags, member)
#define NUMBER(member, low, high)                                                      \
	.read = flag_read_number, .at = AT(member), .least = (low), .most = (high)

static const struct flag flags_of_limits[] = {
	{ .name = "--limits",
	  .takes = "LIST",
	  .preset = "minute=10k/1m",
	  .allowed = "up to 4 of NAME=UNITS/WINDOW, each with a name of its own, with "
	             "commas between, the shortest window first; units from 1 to 1M, "
	             "windows from 1s to 24h",
	  .help = "limits that each call needs, all of them or none",
	  .read = read_limits },
	{ .name = "--holds",
	  .read = flag_read_set,
	  .at = AT(holds),
	  .help = "calls are streams, whose cost is known when they have ended" },
	{ .name = "--nodes",
	  .takes = "N",
	  .preset = "1",
	  .allowed = "a whole number from 1 to 16",
	  .help = "nodes of the fleet",
	  NUMBER(nodes, 1, BROOK_NODES) },
	{ .name = "--windows",
	  .takes = "N",
	  .preset = "12",
	  .allowed = "a whole number from 2 to 1024",
	  .help = "windows of the first limit; a run ends amid the last",
	  NUMBER(windows, 2, BROOK_WINDOWS) },
	{ .name = "--calls",
	  .takes = "N",
	  .preset = "60",
	  .allowed = "a whole number from 1 to 10k",
	  .help = "calls that begin in such a window, on average",
	  NUMBER(calls, 1, 10000) },
	{ .name = "--cost",
	  .takes = "N",
	  .preset = "500",
	  .allowed = "a whole number from 1 to 100k",
	  .help = "units of the dearest call; others cost less, down to 1",
	  NUMBER(cost, 1, 100000) },
	{ .name = "--hold",
	  .takes = "N",
	  .preset = "200",
	  .allowed = "a whole number from 1 to 1M",
	  .help = "units that a stream holds at first",
	  NUMBER(hold, 1, UNITS_MOST) },
	{ .name = "--grow",
	  .takes = "N",
	  .preset = "100",
	  .allowed = "a whole number from 1 to 100k",
	  .help = "units that it grows by when it has sent what it holds",
	  NUMBER(grow, 1, 100000) },
	{ .name = "--send",
	  .takes = "N",
	  .preset = "1k",
	  .allowed = "a whole number from 1 to 1M",
	  .help = "units that a stream sends in a window of the first limit",
	  NUMBER(send, 1, UNITS_MOST) },
	{ .name = "--break",
	  .takes = "PERCENT",
	  .preset = "5",
	  .allowed = "a whole number from 0 to 100",
	  .help = "streams that break before their end",
	  NUMBER(breaks, 0, 100) },
	{ .name = "--late",
	  .takes = "N",
	  .preset = "20",
	  .allowed = "a whole number from 0 to 1000",
	  .help = "units that a stream may still send after it was refused to grow",
	  NUMBER(late, 0, 1000) },
	{ .name = "--seeds",
	  .takes = "N[-M]",
	  .preset = "0",
	  .allowed = "a number, or two with a dash, the first not above the second, up "
	             "to 1000 of them",
	  .help = "a run for each; the figures are of all together",
	  .read = read_seeds },
	{ .name = "--json",
	  .read = flag_read_set,
	  .at = AT(json),
	  .help = "print one JSON object, and nothing else, on standard output" },
	{ .name = "--plots",
	  .takes = "DIR",
	  .allowed = "a folder",
	  .read = flag_read_text,
	  .at = AT(plots),
	  .help = "let gnuplot draw the first seed into this folder, as SVG, with its "
	          "data: limits.svg, or with --holds holds.svg" },
};

static const struct flag_table table = {
	.flags = flags_of_limits,
	.count = sizeof(flags_of_limits) / sizeof(flags_of_limits[0]),
};

static void help(void)
{
	fputs(
	    "usage: gale sim --limits LIST [--holds] [FLAG...]\n"
	    "\n"
	    "Runs calls that several limits must admit, in virtual time, with the\n"
	    "library's own nodes and store.  With --holds a call is a stream: it\n"
	    "holds units before it begins, grows while it sends, and commits what it\n"
	    "has sent.  This command counts what is committed and held in each window\n"
	    "of each limit.  Everything follows from the seed.\n"
	    "\n",
	    stdout);
	flags_explain(&table, stdout);
	fputs(
	    "\n"
	    "committed     units that calls have cost, in all windows\n"
	    "most in one   the most that was committed in one window\n"
	    "excess        what holds of a window had cost beyond what they held, at\n"
	    "              most, since units were last taken from it\n"
	    "refused       calls that this limit refused first\n"
	    "left          units that calls still got one by one, at the end\n"
	    "stopped       streams that might not grow\n"
	    "late          streams that were committed after their window\n"
	    "\n"
	    "A run is broken if a call was admitted above a limit, if a window has\n"
	    "committed more than its limit and its excess, or if a refused call has\n"
	    "used units: then less is left at the end.\n"
	    "\n"
	    "Exit status: 0 held, 1 a run was broken, or no call was admitted, 2 a\n"
	    "flag is wrong, 3 it could not be done.\n",
	    stdout);
}

static int refuse(const char *why)
{
	fprintf(stderr, "gale sim: %s\n", why);
	return FLEET_BAD_USE;
}

/* ---- Runs --------------------------------------------------------------------------- */

struct limit_sums {
	uint64_t committed;
	uint64_t most;
	uint64_t excess;
	uint64_t refused;
	uint64_t left;
};

struct limits_sums {
	struct limit_sums limits[BROOK_LIMITS];
	uint64_t admitted, refused, broken, stopped, late;
	uint64_t faults; /* runs */
};

static struct brook_plan plan_of(const struct limits_flags *flags, uint64_t seed)
{
	struct brook_plan plan = {
		.seed = seed,
		.nodes = (uint32_t)flags->nodes,
		.limit_count = flags->count,
		.windows = (uint32_t)flags->windows,
		.calls = flags->calls,
		.cost_most = flags->cost,
		.holds = flags->holds > 0,
		.held = flags->holds > 0 ? flags->hold : 0,
		.grows = flags->grow,
		.sends = flags->send,
		.break_percent = (uint32_t)flags->breaks,
		.late = flags->late,
	};

	for (uint32_t i = 0; i < flags->count; i++)
		plan.limits[i] = flags->limits[i].limit;
	return plan;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void add_limit(struct limit_sums *sums, const struct brook_plan *plan,
                      uint32_t i)
{
	for (uint64_t w = 0; w < brook_windows(plan, i); w++) {
		const struct brook_window *window = &brook.windows[i][w];
		uint64_t excess = plan->nodes > 1 ? window->excess : window->since;

		sums->committed += window->committed;
		sums->most = larger(sums->most, window->committed);
		sums->excess = larger(sums->excess, excess);
	}
	sums->left += brook.left[i];
}

static void add(struct limits_sums *sums, const struct brook_plan *plan)
{
	for (uint64_t w = 0; w < brook_windows(plan, 0); w++) {
		const struct brook_events *events = &brook.events[w];

		sums->admitted += events->admitted;
		sums->broken += events->broken;
		sums->stopped += events->stopped;
		sums->late += events->late;
		for (uint32_t i = 0; i < plan->limit_count; i++) {
			sums->limits[i].refused += events->refused[i];
			sums->refused += events->refused[i];
		}
	}
	for (uint32_t i = 0; i < plan->limit_count; i++)
		add_limit(&sums->limits[i], plan, i);
	sums->faults += brook.fault[0] != '\0';
}

/* ---- Plots --------------------------------------------------------------------------- */

/* A line for each window of the first limit: its number; how many calls were admitted, or refused by a
 * limit before; how much of each limit is used, in percent. */
static void write_windows(FILE *file, const struct limits_flags *flags)
{
	for (uint32_t w = 0; w < flags->windows; w++) {
		const struct brook_events *events = &brook.events[w];
		uint64_t calls = events->admitted;

		fprintf(file, "%" PRIu32 " %" PRIu64, w, calls);
		for (uint32_t i = 0; i < flags->count; i++) {
			calls += events->refused[i];
			fprintf(file, " %" PRIu64, calls);
		}
		for (uint32_t i = 0; i < flags->count; i++)
			fprintf(file, " %.3f",
			        100 * (double)brook.used[w][i] /
			            (double)flags->limits[i].limit.units);
		fputc('\n', file);
	}
}

/* A line for each sample: when, in windows; committed; committed and held; what its window commits in the
 * end; streams that were stopped, that were committed after their window, and that broke.  A window ends with an empty line. */
static void write_samples(FILE *file, const struct limits_flags *flags)
{
	uint64_t window_us = flags->limits[0].limit.window_us, last = 0;

	for (size_t i = 0; i < brook.sample_count; i++) {
		const struct brook_sample *sample = &brook.samples[i];
		uint64_t window = sample->at_us / window_us;

		fprintf(file,
		        "%s%.4f %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		        " %" PRIu64 " %" PRIu64 "\n",
		        window > last ? "\n" : "",
		        (double)sample->at_us / (double)window_us, sample->committed,
		        sample->committed + sample->held,
		        brook.windows[0][window].committed, sample->events.stopped,
		        sample->events.late, sample->events.broken);
		last = window;
	}
}

static bool write_data(const struct limits_flags *flags, const char *path)
{
	FILE *file = fopen(path, "w");

	if (file) {
		(flags->holds ? write_samples : write_windows)(file, flags);
		if (fclose(file) == 0)
			return true;
	}
	fprintf(stderr, "gale sim: --plots: %s: %s\n", path, strerror(errno));
	return false;
}

/* From the top of each heap of calls to its bottom. */
static size_t script_windows(const struct limits_flags *flags, const char *path,
                             char *script, size_t size)
{
	size_t at =
	    (size_t)snprintf(script, size,
	                     "set multiplot layout 2,1\nset style fill solid 0.5\n"
	                     "set boxwidth 0.8\nset xrange [-0.5:%" PRIu64 ".5]\n"
	                     "set ylabel 'calls'\nplot ",
	                     flags->windows - 1);

	for (uint32_t i = flags->count; i-- > 0;)
		at += (size_t)snprintf(script + at, size - at,
		                       "'%s' using 1:%u with boxes lt %u title "
		                       "'refused by %s' noenhanced,",
		                       path, i + 3, i + 2, flags->limits[i].name);
	at += (size_t)snprintf(script + at, size - at,
	                       "'%s' using 1:2 with boxes lt 1 title 'admitted'\n"
	                       "set ylabel 'percent used'\nplot ",
	                       path);
	for (uint32_t i = 0; i < flags->count; i++)
		at += (size_t)snprintf(script + at, size - at,
		                       "'%s' using 1:%u with linespoints lt %u title "
		                       "'of %s' noenhanced,",
		                       path, flags->count + i + 3, i + 2,
		                       flags->limits[i].name);
	return at + (size_t)snprintf(script + at, size - at, "\n");
}

static size_t script_samples(const struct limits_flags *flags, const char *path,
                             char *script, size_t size)
{
	uint64_t units = flags->limits[0].limit.units;

	return (size_t)snprintf(
	    script, size,
	    "set style fill solid 0.4 noborder\nset ylabel 'units'\nplot "
	    "'%s' using 1:3 with filledcurves x1 lt 3 title 'held',"
	    "'%s' using 1:2 with filledcurves x1 lt 2 title 'committed',"
	    "'%s' using 1:4 with lines lt 1 lw 2 title 'committed in the end',"
	    "'%s' using 1:($5 > 0 ? $3 : 1/0) with points pt 2 lt 7 title 'stopped',"
	    "'%s' using 1:($6 > 0 ? $3 : 1/0) with points pt 6 lt 4 title 'late',"
	    "'%s' using 1:($7 > 0 ? $3 : 1/0) with points pt 8 lt 6 title 'broken',"
	    "%" PRIu64 " with lines lt -1 dt 2 title 'limit'\n",
	    path, path, path, path, path, path, units);
}

static bool plot(const struct limits_flags *flags)
{
	const char *name = flags->holds ? "holds" : "limits";
	static char script[32768];
	char path[4096];
	size_t at, size = sizeof(script);

	snprintf(path, sizeof(path), "%s/%s.dat", flags->plots, name);
	if (!write_data(flags, path))
		return false;
	at = (size_t)snprintf(script, size,
	                      "set terminal svg size 760,%u\nset output '%s/%s.svg'\n"
	                      "set key outside bottom center horizontal\n"
	                      "set yrange [0:*]\nset lmargin 9\n"
	                      "set xlabel 'window of %s' noenhanced\n",
	                      flags->holds ? 380 : 560, flags->plots, name,
	                      flags->limits[0].name);
	(void)(flags->holds ? script_samples : script_windows)(flags, path, script + at,
	                                                       size - at);
	return gnuplot_run(script);
}

/* ---- The report ---------------------------------------------------------------------- */

static const char *verdict_of(const struct limits_sums *sums)
{
	if (sums->faults > 0)
		return "broken";
	return sums->admitted > 0 ? "held" : "unproven";
}

static void print_table(const struct limits_flags *flags,
                        const struct limits_sums *sums)
{
	printf("%-16s %9s %12s %12s %8s %9s %9s\n", "limit", "units", "committed",
	       "most in one", "excess", "refused", "left");
	for (uint32_t i = 0; i < flags->count; i++) {
		const struct limit_sums *limit = &sums->limits[i];

		printf("%-16s %9" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8" PRIu64
		       " %9" PRIu64 " %9" PRIu64 "\n",
		       flags->limits[i].name, flags->limits[i].limit.units,
		       limit->committed, limit->most, limit->excess, limit->refused,
		       limit->left);
	}
	printf("\nruns %" PRIu64 "   calls admitted %" PRIu64 ", refused %" PRIu64,
	       flags->last_seed - flags->first_seed + 1, sums->admitted, sums->refused);
	if (flags->holds)
		printf("   streams broken %" PRIu64 ", stopped %" PRIu64
		       ", late %" PRIu64,
		       sums->broken, sums->stopped, sums->late);
	printf("\nverdict %s\n", verdict_of(sums));
}

static void print_json(const struct limits_flags *flags, const struct limits_sums *sums)
{
	printf("{\"verdict\":\"%s\",\"nodes\":%" PRIu64 ",\"windows\":%" PRIu64
	       ",\"runs\":%" PRIu64 ",\"admitted\":%" PRIu64 ",\"refused\":%" PRIu64
	       ",\"broken\":%" PRIu64 ",\"stopped\":%" PRIu64 ",\"late\":%" PRIu64
	       ",\"limits\":[",
	       verdict_of(sums), flags->nodes, flags->windows,
	       flags->last_seed - flags->first_seed + 1, sums->admitted, sums->refused,
	       sums->broken, sums->stopped, sums->late);
	for (uint32_t i = 0; i < flags->count; i++) {
		const struct limit_sums *limit = &sums->limits[i];

		printf("%s{\"name\":\"%s\",\"units\":%" PRIu64 ",\"window_us\":%" PRIu64
		       ",\"committed\":%" PRIu64 ",\"most\":%" PRIu64
		       ",\"excess\":%" PRIu64 ",\"refused\":%" PRIu64
		       ",\"left\":%" PRIu64 "}",
		       i > 0 ? "," : "", flags->limits[i].name,
		       flags->limits[i].limit.units, flags->limits[i].limit.window_us,
		       limit->committed, limit->most, limit->excess, limit->refused,
		       limit->left);
	}
	printf("]}\n");
}

static int run_all(const struct limits_flags *flags)
{
	struct limits_sums sums = { 0 };

	for (uint64_t seed = flags->first_seed; seed <= flags->last_seed; seed++) {
		struct brook_plan plan = plan_of(flags, seed);

		brook_play(&brook, &plan);
		add(&sums, &plan);
		if (brook.fault[0])
			fprintf(stderr, "gale sim: seed %" PRIu64 ": %s\n", seed,
			        brook.fault);
		if (flags->plots && seed == flags->first_seed && !plot(flags))
			return FLEET_FAILED;
	}
	if (flags->json)
		print_json(flags, &sums);
	else
		print_table(flags, &sums);
	return strcmp(verdict_of(&sums), "held") == 0 ? FLEET_HELD : FLEET_BROKEN;
}

/* ---- The command --------------------------------------------------------------------- */

bool limits_sim_wanted(int argc, char *const *argv)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--limits") == 0 ||
		    strncmp(argv[i], "--limits=", 9) == 0 ||
		    strcmp(argv[i], "--holds") == 0)
			return true;
	return false;
}

static int check(const struct limits_flags *flags)
{
	for (uint32_t i = 0; i < flags->count && flags->holds; i++)
		if (flags->hold > flags->limits[i].limit.units)
			return refuse(
			    "--hold: more than a limit; the library would cut it "
			    "to the limit, and this command does not");
	if (flags->holds &&
	    flags->calls * (flags->cost / flags->send + 1) > BROOK_CALLS / 2)
		return refuse(
		    "--calls: too many streams at once; raise --send, or lower "
		    "--cost");
	if (flags->plots && !gnuplot_may_draw_in(flags->plots))
		return refuse("--plots: there is no such folder");
	return FLEET_HELD;
}

int limits_sim_run(int argc, char *const *argv)
{
	struct limits_flags flags = { 0 };
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
