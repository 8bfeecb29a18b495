/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sim.c -- a world for each seed; the first that breaks its limit is made smaller.
 *
 * A world that breaks goes on to its end, to see by how much.
 */
#include "tools/sim.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tools/fleet.h"
#include "tools/guard_sim.h"
#include "tools/limits_sim.h"
#include "tools/sim_flags.h"
#include "tools/tenant_flags.h"
#include "tools/tenant_sim.h"
#include "tools/text.h"

static struct world world; /* too large for a stack */

/* ---- One run --------------------------------------------------------------------- */

struct run {
	uint64_t asks;
	uint64_t admitted; /* units, also of windows that are not whole */
	uint64_t over;
	double used;  /* of what there was; percent */
	double asked; /* of it */
	double trips; /* of a window */
	uint64_t lost, doubled, crashes, pauses, partitions, fail_overs;
	char fault[sizeof(world.fault)]; /* "": none */
};

/* Units that the rule had in the whole run, of all keys. */
static double units_of(const struct script *script)
{
	const struct gale_rule *rule = &script->plan.rule;
	uint64_t run_us = script->ends_us - script->begins_us;

	if (rule->kind == GALE_RULE_FIXED_WINDOW)
		run_us -= run_us % rule->period_us;
	return (double)script->plan.keys *
	       ((double)rule->burst +
	        (double)rule->limit * (double)run_us / (double)rule->period_us);
}

static double used_of_key(const struct script *script, uint32_t key)
{
	const struct gale_rule *rule = &script->plan.rule;
	uint64_t first =
	    script->begins_us / rule->period_us - WORLD_START / rule->period_us;
	uint64_t windows = (script->ends_us - script->begins_us) / rule->period_us;
	double used = 0;

	if (rule->kind != GALE_RULE_FIXED_WINDOW)
		return (double)world.laws[key].admitted;
	for (uint64_t i = first; i < first + windows; i++)
		used += (double)world_used(&world, key, i);
	return used;
}

static void measure(const struct script *script, struct run *run)
{
	double units = units_of(script), used = 0, asked = 0;
	double windows = (double)(script->ends_us - script->begins_us) /
	                 (double)script->plan.rule.period_us;

	for (uint32_t i = 0; i < script->plan.keys; i++) {
		used += used_of_key(script, i);
		run->admitted += world.laws[i].admitted;
	}
	for (size_t i = 0; i < world.call_count; i++)
		asked += (double)world.calls[i]->cost;
	run->used = 100 * used / units;
	run->asked = 100 * asked / units;
	run->trips = (double)(world.net.requests + world.net.runs) / windows;
}

static void note_faults(struct run *run)
{
	run->lost = world.net.lost + world.net.cut;
	run->doubled = world.net.doubled;
	run->crashes = world.crashes;
	run->pauses = world.pauses;
	run->partitions = world.partitions;
	run->fail_overs = world.fail_overs;
}

static struct run run_world(const struct sim_flags *flags, uint64_t seed,
                            const struct choice *choice, enum world_end ends,
                            uint64_t *ret_asks)
{
	struct script script = sim_script(flags, seed);
	struct run run = { 0 };

	script.plan.ends = ends;
	world_open(&world, &script.plan);
	world.verbose = flags->verbose && ends == ENDS_NOT;
	*ret_asks = script_play(&script, choice, &world);
	measure(&script, &run);
	run.asks = world.call_count;
	(void)world_close(&world);
	note_faults(&run);
	run.over = world.over_most;
	memcpy(run.fault, world.fault, sizeof(run.fault));
	return run;
}

/* ---- Telling --------------------------------------------------------------------- */

struct fault_name {
	const char *name;
	uint64_t count;
};

static void tell_some_faults(const struct fault_name *faults, size_t count,
                             uint64_t all)
{
	const char *before = " (";

	printf("%" PRIu64 " faults", all);
	for (size_t i = 0; i < count; i++) {
		if (faults[i].count == 0)
			continue;
		printf("%s%" PRIu64 " %s", before, faults[i].count, faults[i].name);
		before = ", ";
	}
	printf(all ? ")\n" : "\n");
}

static void tell_faults(const struct run *run)
{
	const struct fault_name faults[] = {
		{ "lost", run->lost },
		{ "doubled", run->doubled },
		{ "crashes", run->crashes },
		{ "pauses", run->pauses },
		{ "partitions", run->partitions },
		{ "fail-overs", run->fail_overs },
	};
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		all += faults[i].count;
	tell_some_faults(faults, sizeof(faults) / sizeof(faults[0]), all);
}

/* Of what was asked for, or of what there was if that is less; percent. */
static double served(double used, double asked)
{
	double most = asked < 100 ? asked : 100;

	return most > 0 ? 100 * used / most : 100;
}

static void tell_run(uint64_t seed, const struct run *run)
{
	printf("seed %" PRIu64 ": over-admission %" PRIu64 "; used %.1f %% (asked for "
	       "%.0f %%, served %.1f %%); %.1f round trips a window; ",
	       seed, run->over, run->used, run->asked, served(run->used, run->asked),
	       run->trips);
	tell_faults(run);
	fflush(stdout);
}

struct total {
	uint64_t runs;
	uint64_t broken;
	struct run sum;
};

static void add(struct total *total, const struct run *run)
{
	struct run *sum = &total->sum;

	total->runs++;
	total->broken += run->fault[0] != '\0';
	sum->asks += run->asks;
	sum->admitted += run->admitted;
	sum->over = sum->over > run->over ? sum->over : run->over;
	sum->used += run->used;
	sum->asked += run->asked;
	sum->trips += run->trips;
	sum->lost += run->lost;
	sum->doubled += run->doubled;
	sum->crashes += run->crashes;
	sum->pauses += run->pauses;
	sum->partitions += run->partitions;
	sum->fail_overs += run->fail_overs;
}

static void tell_total(const struct total *total)
{
	const struct run *sum = &total->sum;
	double runs = (double)total->runs;
	double used = sum->used / runs, asked = sum->asked / runs;

	printf("%s: %" PRIu64 " runs, %" PRIu64 " asks; worst over-admission %" PRIu64
	       "; used %.1f %% (asked for %.0f %%, served %.1f %%); %.1f round "
	       "trips a window; ",
	       total->broken ? "BROKEN" : "HELD", total->runs, sum->asks, sum->over,
	       used, asked, served(used, asked), sum->trips / runs);
	tell_faults(sum);
}

/* ---- What broke ------------------------------------------------------------------ */

struct breach {
	struct shrink shrink; /* first */
	struct sim_flags flags;
	uint64_t seed;
	bool over; /* too much was admitted: then no other fault will do */
};

static bool still_fails(struct shrink *self, uint64_t *ret_asks)
{
	struct breach *breach = (struct breach *)self;
	struct run run =
	    run_world(&breach->flags, breach->seed, &self->choice,
	              breach->over ? ENDS_AT_OVER : ENDS_AT_FAULT, ret_asks);

	return breach->over ? run.over > 0 : run.fault[0] != '\0';
}

static void make_smaller(struct breach *breach)
{
	breach->shrink.plan = &breach->flags;
	breach->shrink.fields = sim_fields;
	breach->shrink.field_count = sim_field_count;
	breach->shrink.fails = still_fails;
	shrink(&breach->shrink);
	printf("made smaller in %" PRIu64 " runs; ", breach->shrink.runs);
}

/* Only the first is made smaller, as that takes its time; and none that the user looks at
 * or has made smaller. */
static void tell_breach(const struct sim_flags *flags, uint64_t seed,
                        const struct choice *choice, const struct run *run, bool first)
{
	static struct breach breach;

	breach.flags = *flags;
	breach.seed = seed;
	breach.over = run->over > 0;
	breach.shrink.choice = *choice;
	breach.shrink.asks = SCRIPT_ASKS_MOST;
	printf("seed %" PRIu64 ": BROKEN: %s\n", seed, run->fault);
	fflush(stdout);
	if (first && !flags->verbose && !choice->some)
		make_smaller(&breach);
	printf("replay: ");
	sim_flags_print(&breach.flags, seed, &breach.shrink.choice, breach.shrink.asks,
	                stdout);
}

/* ---- All runs -------------------------------------------------------------------- */

static uint64_t seed_now; /* for aborted */

static void aborted(int number)
{
	char text[80];
	int len = snprintf(
	    text, sizeof(text),
	    "aborted; replay with the same flags and --seeds %" PRIu64 "\n", seed_now);

	(void)number;
	if (write(STDERR_FILENO, text, (size_t)len) < 0)
		return;
}

static bool nothing_asked(uint64_t seed)
{
	fflush(stdout);
	fprintf(stderr,
	        "gale sim: seed %" PRIu64 ": nothing was asked, which proves nothing: "
	        "lengthen --duration, raise --demand, or choose others with --only\n",
	        seed);
	return false;
}

static enum fleet_status nothing_admitted(void)
{
	fflush(stdout);
	fputs("gale sim: nothing was admitted in any run, which proves nothing: raise "
	      "--limit, or lower --cost\n",
	      stderr);
	return FLEET_BROKEN;
}

static bool run_seed(const struct sim_flags *flags, uint64_t seed,
                     const struct choice *choice, struct total *total)
{
	uint64_t asks;
	struct run run;

	seed_now = seed;
	run = run_world(flags, seed, choice, ENDS_NOT, &asks);
	if (run.asks == 0)
		return nothing_asked(seed);
	add(total, &run);
	tell_run(seed, &run);
	if (run.fault[0])
		tell_breach(flags, seed, choice, &run, total->broken == 1);
	return true;
}

static enum fleet_status run_all(const struct sim_flags *flags)
{
	static struct choice choice;
	struct total total = { 0 };

	if (flags->only)
		(void)choice_read(&choice, flags->only);
	(void)signal(SIGABRT, aborted);
	for (uint64_t i = 0; i <= flags->last_seed - flags->first_seed; i++)
		if (!run_seed(flags, flags->first_seed + i, &choice, &total))
			return FLEET_BROKEN;
	if (total.broken == 0 && total.sum.admitted == 0)
		return nothing_admitted();
	tell_total(&total);
	return total.broken ? FLEET_BROKEN : FLEET_HELD;
}

/* ---- The command ----------------------------------------------------------------- */

static enum gale_err open_limiter(struct gale_runtime *runtime,
                                  const struct script *script)
{
	struct gale_limiter_config config = { .name = "sim",
		                              .rule = script->plan.rule,
		                              .mode = script->plan.mode,
		                              .lease = script->plan.lease };
	struct gale_limiter *limiter;
	enum gale_err err = gale_store_open(runtime, NULL, &config.store);

	if (err)
		return err;
	err = gale_limiter_open(runtime, &config, &limiter);
	if (!err)
		gale_limiter_close(limiter);
	gale_store_close(config.store);
	return err;
}

/* Would the library take such a limiter? */
static enum gale_err try_limiter(const struct sim_flags *flags)
{
	struct script script = sim_script(flags, /* seed= */ 0);
	struct gale_config config = { .shards = 1, .turns = true };
	struct gale_runtime *runtime;
	enum gale_err err = gale_runtime_open(&config, &runtime);

	if (err)
		return err;
	err = open_limiter(runtime, &script);
	gale_runtime_close(runtime);
	return err;
}

static void help(FILE *out)
{
	fputs("usage: gale sim [FLAG...]\n"
	      "\n"
	      "Runs a fleet in virtual time, with the library's own nodes and store.\n"
	      "It shows whether the fleet ever admits more than the limit, how much\n"
	      "of the limit is used, how much of the demand is served, and how many\n"
	      "round trips that takes.  Everything follows from the seed.  If a run\n"
	      "breaks the limit, the command looks for a smaller run that does so,\n"
	      "too, and its last line is the command that repeats it.\n"
	      "\n"
	      "Exit status: 0 the limit held in all runs, 1 it did not, 2 a flag is\n"
	      "wrong, 3 a run did not come to its end.\n"
	      "\n",
	      out);
	sim_flags_list(out);
	fputs(
	    "\n"
	    "The limit holds while clocks drift by at most --drift-allowed.\n"
	    "--drift 20000 shows what happens otherwise.\n"
	    "\n"
	    "gale sim --guard --help: laws of a ceiling on calls in flight, instead.\n"
	    "gale sim --tenants --help: one budget for several tenants.\n"
	    "gale sim --limits --help: calls that need several limits, and holds.\n",
	    out);
}

static enum fleet_status printed(enum fleet_status status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("gale sim: standard output");
	return FLEET_FAILED;
}

static enum fleet_status refuse(const char *why)
{
	fprintf(stderr, "gale sim: %s\n", why);
	return FLEET_BAD_USE;
}

int sim_run(int argc, char *const *argv)
{
	struct sim_flags flags;
	struct flags_error error;
	enum gale_err err;

	if (guard_sim_wanted(argc, argv))
		return guard_sim_run(argc, argv);
	if (tenant_flags_wanted(argc, argv))
		return tenant_sim_run(argc, argv);
	if (limits_sim_wanted(argc, argv))
		return limits_sim_run(argc, argv);
	switch (sim_flags_parse(argc, argv, &flags, &error)) {
	case FLAGS_BAD:
		return (int)refuse(error.text);
	case FLAGS_HELP:
		help(stdout);
		return (int)printed(FLEET_HELD);
	case FLAGS_RUN:
		break;
	}
	err = try_limiter(&flags);
	if (err)
		return (int)refuse(gale_err_text(err));
	return (int)printed(run_all(&flags));
}
