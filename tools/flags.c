/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* flags.c -- the table, and what does not go together. */
#include "tools/flags.h"

#include <inttypes.h>
#include <string.h>

#include "tools/tally.h"

#define HOURS_24 GALE_HOURS(24)

/* ---- Reading flags --------------------------------------------------------------- */

static bool read_mode(const struct flag *flag, const char *text, void *into)
{
	static const struct mode {
		const char *name;
		enum gale_mode is;
	} modes[] = { { "leased", GALE_LEASED },
		      { "cached-deny", GALE_CACHED_DENY },
		      { "strict", GALE_STRICT } };

	struct fleet_flags *flags = into;

	(void)flag;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, text) != 0)
			continue;
		flags->mode = modes[i].is;
		flags->mode_name = modes[i].name;
		return true;
	}
	return false;
}

/* "memory:" alone would be a store for each node. */
static bool is_memory_name(const char *text)
{
	static const char scheme[] = "memory:";
	size_t length = strlen(text);

	if (strncmp(text, scheme, sizeof(scheme) - 1) != 0)
		return false;
	length -= sizeof(scheme) - 1;
	return length >= 1 && length <= GALE_NAME_MAX;
}

/* Which servers there are, the library knows. */
static bool is_server(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon && colon > text && strncmp(colon, "://", 3) == 0;
}

bool flags_is_shared_store(const char *text)
{
	return is_server(text) || is_memory_name(text);
}

static bool read_store(const struct flag *flag, const char *text, void *into)
{
	struct fleet_flags *flags = into;

	(void)flag;
	flags->server = is_server(text);
	flags->store = text;
	return flags_is_shared_store(text);
}

/* "80%"; of the limits of all keys, in each window. */
static bool read_demand(const struct flag *flag, const char *text, void *into)
{
	char number[8];
	size_t length = strlen(text);

	if (length < 2 || length > sizeof(number) || text[length - 1] != '%')
		return false;
	memcpy(number, text, length - 1);
	number[length - 1] = '\0';
	return flag_read_number(flag, number, into);
}

static bool read_json(const struct flag *flag, const char *text, void *into)
{
	struct fleet_flags *flags = into;

	(void)flag;
	(void)text;
	flags->json = true;
	return true;
}

#define AT(member) offsetof(struct fleet_flags, member)

static const struct flag flags_of_fleet[] = {
	{ .name = "--processes",
	  .takes = "N",
	  .preset = "1",
	  .allowed = "a whole number from 1 to 64",
	  .help = "processes; more than one need a store that is a server",
	  .read = flag_read_number,
	  .at = AT(processes),
	  .least = 1,
	  .most = 64 },
	{ .name = "--nodes",
	  .takes = "N",
	  .preset = "4",
	  .allowed = "a whole number from 1 to 64",
	  .help = "runtimes of each process",
	  .read = flag_read_number,
	  .at = AT(nodes),
	  .least = 1,
	  .most = 64 },
	{ .name = "--threads",
	  .takes = "N",
	  .preset = "2",
	  .allowed = "a whole number from 1 to 256",
	  .help = "asking threads of each node; at most 1024 in all",
	  .read = flag_read_number,
	  .at = AT(threads),
	  .least = 1,
	  .most = 256 },
	{ .name = "--keys",
	  .takes = "N",
	  .preset = "100",
	  .allowed = "a whole number from 1 to 1M (k and M are understood)",
	  .help = "keys, asked for at random, all alike",
	  .read = flag_read_number,
	  .at = AT(keys),
	  .least = 1,
	  .most = TALLY_KEYS_MAX },
	{ .name = "--limit",
	  .takes = "N",
	  .preset = "5k",
	  .allowed = "a whole number from 1 to 9007199254740991 (k and M are "
	             "understood)",
	  .help = "what each key may have in each window",
	  .read = flag_read_number,
	  .at = AT(limit),
	  .least = 1,
	  .most = GALE_UNITS_MAX },
	{ .name = "--window",
	  .takes = "DURATION",
	  .preset = "500ms",
	  .allowed = "a duration from 10ms to 24h, with its unit (us, ms, s, m or h)",
	  .help = "length of the windows of the rule, a fixed window",
	  .read = flag_read_duration,
	  .at = AT(window_us),
	  .least = TALLY_WINDOW_MIN_US,
	  .most = HOURS_24 },
	{ .name = "--seconds",
	  .takes = "N",
	  .preset = "5",
	  .allowed = "100ms to 24h (without a unit: seconds)",
	  .help = "how long to ask, in seconds; 500ms and 2m are understood, too",
	  .read = flag_read_duration,
	  .at = AT(run_us),
	  .least = GALE_MILLIS(100),
	  .most = HOURS_24,
	  .bare_us = GALE_SECONDS(1) },
	{ .name = "--demand",
	  .takes = "P%",
	  .allowed = "a whole number from 1 to 1000, and %",
	  .help = "part of the limits that is asked for in each window; not given: "
	          "as much as is answered",
	  .read = read_demand,
	  .at = AT(demand_percent),
	  .least = 1,
	  .most = 1000 },
	{ .name = "--moving",
	  .help = "only half of the nodes ask; which half is drawn by lot twice in "
	          "each window",
	  .read = flag_read_set,
	  .at = AT(moving) },
	{ .name = "--mode",
	  .takes = "MODE",
	  .preset = "leased",
	  .allowed = "leased, cached-deny or strict",
	  .help = "strict: the store decides; leased: each node decides",
	  .read = read_mode },
	{ .name = "--store",
	  .takes = "URL",
	  .preset = "memory:fleet",
	  .allowed = "memory:NAME (the name from 1 to 64 bytes, for all nodes to "
	             "share) or a server: redis://HOST:PORT, "
	             "postgres://HOST/DATABASE",
	  .help = "memory:NAME, or a server: redis://HOST, postgres://HOST/DATABASE",
	  .read = read_store },
	{ .name = "--json",
	  .help = "print one JSON object, and nothing else, on standard output",
	  .read = read_json },
};

static const struct flag_table table = {
	.flags = flags_of_fleet,
	.count = sizeof(flags_of_fleet) / sizeof(flags_of_fleet[0]),
};

/* ---- Parsing --------------------------------------------------------------------- */

static enum flags_result check_demand(const struct fleet_flags *flags,
                                      struct flags_error *error)
{
	if (flags->moving && flags->demand_percent == 0)
		return flags_bad(error, "--moving: it is the demand that moves, and "
		                        "none is given: --demand 80%%");
	if (flags->demand_percent > 0 &&
	    flags->run_us / flags->window_us < FLAGS_DEMAND_WINDOWS_MIN)
		return flags_bad(error,
		                 "--seconds: with --demand the run has at least %d "
		                 "windows, as nodes learn in the first of them",
		                 FLAGS_DEMAND_WINDOWS_MIN);
	if ((double)flags->demand_percent / 100 * (double)flags->limit *
	        (double)flags->keys >
	    FLAGS_DEMAND_CALLS_MAX)
		return flags_bad(error,
		                 "--demand: so many calls in a window are too many; at "
		                 "most %.0f",
		                 FLAGS_DEMAND_CALLS_MAX);
	return FLAGS_RUN;
}

static enum flags_result check_together(const struct fleet_flags *flags,
                                        struct flags_error *error)
{
	if (flags->processes > 1 && !flags->server)
		return flags_bad(error,
		                 "--processes: memory: is a store of one process, "
		                 "and each would have its own; they share one with "
		                 "--store redis://HOST:PORT");
	if (flags->processes * flags->keys > FLAGS_COUNTERS_MAX)
		return flags_bad(error,
		                 "--keys: %" PRIu64 " in each of %" PRIu64
		                 " processes are too many; at most %d in all",
		                 flags->keys, flags->processes, FLAGS_COUNTERS_MAX);
	if (flags->processes * flags->nodes * flags->threads <= FLAGS_WORKERS_MAX)
		return FLAGS_RUN;
	return flags_bad(
	    error,
	    "--threads: %" PRIu64 " on each of %" PRIu64
	    " nodes are too many; --processes times --nodes times --threads "
	    "is at most %d",
	    flags->threads, flags->processes * flags->nodes, FLAGS_WORKERS_MAX);
}

enum flags_result flags_parse(int argc, char *const *argv,
                              struct fleet_flags *ret_flags,
                              struct flags_error *ret_error)
{
	struct fleet_flags flags = { .argc = argc, .argv = argv };
	enum flags_result result = flags_read(&table, argc, argv, &flags, ret_error);

	if (result == FLAGS_RUN)
		result = check_demand(&flags, ret_error);
	if (result == FLAGS_RUN)
		result = check_together(&flags, ret_error);
	if (result == FLAGS_RUN)
		*ret_flags = flags;
	return result;
}

void flags_list(FILE *out)
{
	flags_explain(&table, out);
}
