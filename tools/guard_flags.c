/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* guard_flags.c -- the table, and what does not go together. */
#include "tools/guard_flags.h"

#include <inttypes.h>
#include <string.h>

#include <gale/gale.h>

#include "tools/backend.h"
#include "tools/guarded.h"

#define AT(member) offsetof(struct guard_flags, member)

/* In the order of enum gale_law and of enum guard_script. */
static const char *const laws[] = { "knee", "fixed", "aimd", "gradient", NULL };
static const char *const scripts[] = { "steady", "halves", "stops", "bends", NULL };

static const struct flag flags_of_guard[] = {
	{ .name = "--guard",
	  .help = "limit calls in flight to a backend, and not rates",
	  .read = flag_read_set,
	  .at = AT(is_guard) },
	{ .name = "--processes",
	  .takes = "N",
	  .preset = "1",
	  .allowed = "a whole number from 1 to 64",
	  .help = "processes that the nodes run in",
	  .read = flag_read_number,
	  .at = AT(processes),
	  .least = 1,
	  .most = 64 },
	{ .name = "--nodes",
	  .takes = "N",
	  .preset = "4",
	  .allowed = "a whole number from 1 to 64",
	  .help = "nodes of each process; at most 256 in all",
	  .read = flag_read_number,
	  .at = AT(nodes),
	  .least = 1,
	  .most = 64 },
	{ .name = "--limit",
	  .takes = "N",
	  .preset = "64",
	  .allowed = "a whole number from 1 to 4k (k is understood)",
	  .help = "calls that all nodes together may have in flight",
	  .read = flag_read_number,
	  .at = AT(limit),
	  .least = 1,
	  .most = GUARDED_CALLS },
	{ .name = "--law",
	  .takes = "LAW",
	  .preset = "knee",
	  .allowed = "knee, fixed, aimd or gradient",
	  .help = "how the guards learn what the backend can bear: knee, fixed, aimd "
	          "or gradient",
	  .read = flag_read_word,
	  .at = AT(law),
	  .words = laws },
	{ .name = "--backend",
	  .takes = "SCRIPT",
	  .preset = "halves",
	  .allowed = "steady, halves, stops or bends",
	  .help = "what happens to the backend in the run: steady, halves, stops or "
	          "bends",
	  .read = flag_read_word,
	  .at = AT(script),
	  .words = scripts },
	{ .name = "--places",
	  .takes = "N",
	  .preset = "16",
	  .allowed = "a whole number from 2 to 1024",
	  .help = "calls that the backend works on at a time",
	  .read = flag_read_number,
	  .at = AT(places),
	  .least = 2,
	  .most = BACKEND_PLACES },
	{ .name = "--takes",
	  .takes = "DURATION",
	  .preset = "10ms",
	  .allowed = "a duration from 1ms to 10s, with its unit (us, ms, s, m or h)",
	  .help = "how long the backend works on a call",
	  .read = flag_read_duration,
	  .at = AT(takes_us),
	  .least = GALE_MILLIS(1),
	  .most = GALE_SECONDS(10) },
	{ .name = "--seconds",
	  .takes = "N",
	  .preset = "15",
	  .allowed = "1s to 24h (without a unit: seconds)",
	  .help = "how long to call, in seconds; 1500ms and 2m are understood, too",
	  .read = flag_read_duration,
	  .at = AT(run_us),
	  .least = GALE_SECONDS(1),
	  .most = GALE_HOURS(24),
	  .bare_us = GALE_SECONDS(1) },
	{ .name = "--store",
	  .takes = "URL",
	  .preset = "memory:fleet",
	  .allowed = "memory:NAME, for the nodes of one process, a server: "
	             "redis://HOST:PORT, postgres://HOST/DATABASE, or none",
	  .help = "the store that divides the limit: memory:NAME, redis://HOST, "
	          "postgres://HOST/DATABASE; none: each node has a fixed part",
	  .read = flag_read_text,
	  .at = AT(store) },
	{ .name = "--json",
	  .help = "print one JSON object, and nothing else, on standard output",
	  .read = flag_read_set,
	  .at = AT(json) },
};

static const struct flag_table table = {
	.flags = flags_of_guard,
	.count = sizeof(flags_of_guard) / sizeof(flags_of_guard[0]),
};

static enum flags_result check_together(const struct guard_flags *flags,
                                        struct flags_error *error)
{
	uint64_t nodes = flags->processes * flags->nodes;

	if (nodes > BACKEND_NODES)
		return flags_bad(error,
		                 "--nodes: %" PRIu64 " in each of %" PRIu64
		                 " processes are too many; at most %d in all",
		                 flags->nodes, flags->processes, BACKEND_NODES);
	if (!flags->store && flags->limit < nodes)
		return flags_bad(error,
		                 "--limit: %" PRIu64 " is less than one for each of "
		                 "the %" PRIu64 " nodes; with a store they take turns",
		                 flags->limit, nodes);
	if (flags->processes > 1 && flags->store && !strstr(flags->store, "://"))
		return flags_bad(error,
		                 "--processes: memory: is a store of one process, and "
		                 "each would have its own; they share one with --store "
		                 "redis://HOST:PORT, and none with --store none");
	return FLAGS_RUN;
}

bool guard_flags_wanted(int argc, char *const *argv)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--guard") == 0)
			return true;
	return false;
}

enum flags_result guard_flags_parse(int argc, char *const *argv,
                                    struct guard_flags *ret_flags,
                                    struct flags_error *ret_error)
{
	struct guard_flags flags = { 0 };
	enum flags_result result = flags_read(&table, argc, argv, &flags, ret_error);

	if (result == FLAGS_RUN && strcmp(flags.store, "none") == 0)
		flags.store = NULL;
	if (result == FLAGS_RUN)
		result = check_together(&flags, ret_error);
	if (result == FLAGS_RUN)
		*ret_flags = flags;
	return result;
}

void guard_flags_list(FILE *out)
{
	flags_explain(&table, out);
}

const char *guard_flags_law(const struct guard_flags *flags)
{
	return laws[flags->law];
}

const char *guard_flags_script(const struct guard_flags *flags)
{
	return scripts[flags->script];
}
