/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * flags.c -- one table: how a flag is spelled, read, bounded and explained.
 *
 * A flag that is not given has its preset, which is read as if it had been given: so
 * that --help cannot tell anything else.
 */
#include "tools/flags.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tools/tally.h"

#define HOURS_24 GALE_HOURS(24)

struct flag {
	const char *name;
	const char *takes; /* NULL: no value */
	const char *preset;
	const char *allowed;
	const char *help;
	bool (*read)(const struct flag *flag, const char *text,
	             struct fleet_flags *flags);
	size_t
	    at; /* of the uint64_t in struct fleet_flags, for numbers and durations */
	uint64_t least;
	uint64_t most;
	uint64_t bare_us; /* for durations */
};

/* ---- Reading values -------------------------------------------------------------- */

static bool digits(const char **text, uint64_t *ret_number)
{
	const char *at = *text;
	uint64_t number = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	if (at == *text)
		return false;
	*text = at;
	*ret_number = number;
	return true;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static bool scale(const struct unit *units, const char *name, uint64_t number,
                  uint64_t *ret_number)
{
	for (const struct unit *unit = units; unit->name; unit++) {
		if (strcmp(unit->name, name) != 0)
			continue;
		if (unit->factor == 0 || number > UINT64_MAX / unit->factor)
			return false;
		*ret_number = number * unit->factor;
		return true;
	}
	return false;
}

bool flags_number(const char *text, uint64_t *ret_number)
{
	static const struct unit units[] = {
		{ "", 1 }, { "k", 1000 }, { "M", 1000000 }, { NULL, 0 }
	};
	uint64_t number;

	return digits(&text, &number) && scale(units, text, number, ret_number);
}

bool flags_duration(const char *text, uint64_t bare_us, uint64_t *ret_us)
{
	const struct unit units[] = {
		{ "", bare_us },  { "us", 1 },       { "ms", 1000 },
		{ "s", 1000000 }, { "m", 60000000 }, { "h", 3600000000 },
		{ NULL, 0 },
	};
	uint64_t number;

	return digits(&text, &number) && scale(units, text, number, ret_us);
}

/* ---- Reading flags --------------------------------------------------------------- */

static bool store_number(const struct flag *flag, uint64_t number,
                         struct fleet_flags *flags)
{
	if (number < flag->least || number > flag->most)
		return false;
	memcpy((char *)flags + flag->at, &number, sizeof(number));
	return true;
}

static bool read_number(const struct flag *flag, const char *text,
                        struct fleet_flags *flags)
{
	uint64_t number;

	return flags_number(text, &number) && store_number(flag, number, flags);
}

static bool read_duration(const struct flag *flag, const char *text,
                          struct fleet_flags *flags)
{
	uint64_t us;

	return flags_duration(text, flag->bare_us, &us) &&
	       store_number(flag, us, flags);
}

static bool read_mode(const struct flag *flag, const char *text,
                      struct fleet_flags *flags)
{
	static const struct mode {
		const char *name;
		enum gale_mode is;
	} modes[] = { { "leased", GALE_LEASED },
		      { "cached-deny", GALE_CACHED_DENY },
		      { "strict", GALE_STRICT } };

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

static bool read_store(const struct flag *flag, const char *text,
                       struct fleet_flags *flags)
{
	(void)flag;
	flags->server = is_server(text);
	flags->store = text;
	return flags->server || is_memory_name(text);
}

static bool read_json(const struct flag *flag, const char *text,
                      struct fleet_flags *flags)
{
	(void)flag;
	(void)text;
	flags->json = true;
	return true;
}

#define AT(member) offsetof(struct fleet_flags, member)

static const struct flag table[] = {
	{ .name = "--processes",
	  .takes = "N",
	  .preset = "1",
	  .allowed = "a whole number from 1 to 64",
	  .help = "processes; more than one need a store that is a server",
	  .read = read_number,
	  .at = AT(processes),
	  .least = 1,
	  .most = 64 },
	{ .name = "--nodes",
	  .takes = "N",
	  .preset = "4",
	  .allowed = "a whole number from 1 to 64",
	  .help = "runtimes of each process",
	  .read = read_number,
	  .at = AT(nodes),
	  .least = 1,
	  .most = 64 },
	{ .name = "--threads",
	  .takes = "N",
	  .preset = "2",
	  .allowed = "a whole number from 1 to 256",
	  .help = "asking threads of each node; at most 1024 in all",
	  .read = read_number,
	  .at = AT(threads),
	  .least = 1,
	  .most = 256 },
	{ .name = "--keys",
	  .takes = "N",
	  .preset = "100",
	  .allowed = "a whole number from 1 to 1M (k and M are understood)",
	  .help = "keys, asked for at random, all alike",
	  .read = read_number,
	  .at = AT(keys),
	  .least = 1,
	  .most = TALLY_KEYS_MAX },
	{ .name = "--limit",
	  .takes = "N",
	  .preset = "5k",
	  .allowed = "a whole number from 1 to 9007199254740991 (k and M are "
	             "understood)",
	  .help = "what each key may have in each window",
	  .read = read_number,
	  .at = AT(limit),
	  .least = 1,
	  .most = GALE_UNITS_MAX },
	{ .name = "--window",
	  .takes = "DURATION",
	  .preset = "500ms",
	  .allowed = "a duration from 10ms to 24h, with its unit (us, ms, s, m or h)",
	  .help = "length of the windows of the rule, a fixed window",
	  .read = read_duration,
	  .at = AT(window_us),
	  .least = TALLY_WINDOW_MIN_US,
	  .most = HOURS_24 },
	{ .name = "--seconds",
	  .takes = "N",
	  .preset = "5",
	  .allowed = "100ms to 24h (without a unit: seconds)",
	  .help = "how long to ask; units are understood",
	  .read = read_duration,
	  .at = AT(run_us),
	  .least = GALE_MILLIS(100),
	  .most = HOURS_24,
	  .bare_us = GALE_SECONDS(1) },
	{ .name = "--mode",
	  .takes = "MODE",
	  .preset = "leased",
	  .allowed = "leased, cached-deny or strict",
	  .help = "who decides: strict, the store; leased, each node",
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

#define FLAG_COUNT (sizeof(table) / sizeof(table[0]))

/* ---- Errors ---------------------------------------------------------------------- */

/* Whatever was given, the error stays one short line. */
struct shown {
	char is[49];
};

static const char *show(struct shown *shown, const char *text, size_t length)
{
	size_t most = sizeof(shown->is) - 1;
	bool cut = length > most;

	if (cut)
		length = most;
	for (size_t i = 0; i < length; i++)
		shown->is[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
	shown->is[length] = '\0';
	if (cut)
		memcpy(shown->is + most - 3, "...", 3);
	return shown->is;
}

static enum flags_result bad(struct flags_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return FLAGS_BAD;
}

static enum flags_result bad_value(struct flags_error *error, const struct flag *flag,
                                   const char *text)
{
	struct shown shown;

	return bad(error, "%s: it takes %s, not \"%s\"", flag->name, flag->allowed,
	           show(&shown, text, strlen(text)));
}

static enum flags_result bad_name(struct flags_error *error, const char *text,
                                  size_t length)
{
	char names[128] = "";
	struct shown shown;

	for (size_t i = 0; i < FLAG_COUNT; i++) {
		strcat(names, table[i].name);
		strcat(names, i + 1 < FLAG_COUNT ? " " : "");
	}
	return bad(error, "%s: unknown; there are %s --help",
	           show(&shown, text, length), names);
}

/* ---- Parsing --------------------------------------------------------------------- */

static const struct flag *find(const char *name, size_t length)
{
	for (size_t i = 0; i < FLAG_COUNT; i++)
		if (strlen(table[i].name) == length &&
		    memcmp(table[i].name, name, length) == 0)
			return &table[i];
	return NULL;
}

/* "--name value" or "--name=value"; moves *at over what was used. */
static enum flags_result parse_one(int argc, char *const *argv, int *at,
                                   struct fleet_flags *flags, struct flags_error *error)
{
	const char *text = argv[(*at)++];
	size_t length = strcspn(text, "=");
	const char *value = text[length] ? text + length + 1 : NULL;
	const struct flag *flag = find(text, length);

	if (!flag)
		return bad_name(error, text, length);
	if (!flag->takes && value)
		return bad(error, "%s: takes no value", flag->name);
	if (flag->takes && !value && *at == argc)
		return bad(error, "%s: needs a value, %s", flag->name, flag->allowed);
	if (flag->takes && !value)
		value = argv[(*at)++];
	return flag->read(flag, value, flags) ? FLAGS_RUN
	                                      : bad_value(error, flag, value);
}

static enum flags_result check_together(const struct fleet_flags *flags,
                                        struct flags_error *error)
{
	if (flags->processes > 1 && !flags->server)
		return bad(error, "--processes: memory: is a store of one process, "
		                  "and each would have its own; they share one with "
		                  "--store redis://HOST:PORT");
	if (flags->processes * flags->keys > FLAGS_COUNTERS_MAX)
		return bad(error,
		           "--keys: %" PRIu64 " in each of %" PRIu64
		           " processes are too many; at most %d in all",
		           flags->keys, flags->processes, FLAGS_COUNTERS_MAX);
	if (flags->processes * flags->nodes * flags->threads <= FLAGS_WORKERS_MAX)
		return FLAGS_RUN;
	return bad(error,
	           "--threads: %" PRIu64 " on each of %" PRIu64
	           " nodes are too many; --processes times --nodes times --threads "
	           "is at most %d",
	           flags->threads, flags->processes * flags->nodes, FLAGS_WORKERS_MAX);
}

static void preset(struct fleet_flags *flags)
{
	memset(flags, 0, sizeof(*flags));
	for (size_t i = 0; i < FLAG_COUNT; i++)
		if (table[i].preset)
			table[i].read(&table[i], table[i].preset, flags);
}

static bool is_help(const char *text)
{
	return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

enum flags_result flags_parse(int argc, char *const *argv,
                              struct fleet_flags *ret_flags,
                              struct flags_error *ret_error)
{
	enum flags_result result = FLAGS_RUN;
	struct fleet_flags flags;

	preset(&flags);
	flags.argc = argc;
	flags.argv = argv;
	for (int at = 0; at < argc && result == FLAGS_RUN;) {
		if (is_help(argv[at]))
			return FLAGS_HELP;
		result = parse_one(argc, argv, &at, &flags, ret_error);
	}
	if (result == FLAGS_RUN)
		result = check_together(&flags, ret_error);
	if (result == FLAGS_RUN)
		*ret_flags = flags;
	return result;
}

void flags_list(FILE *out)
{
	for (size_t i = 0; i < FLAG_COUNT; i++) {
		const struct flag *flag = &table[i];
		char left[32];

		snprintf(left, sizeof(left), "%s %s", flag->name,
		         flag->takes ? flag->takes : "");
		fprintf(out, "  %-18s  %s", left, flag->help);
		if (flag->preset)
			fprintf(out, " (%s)", flag->preset);
		fprintf(out, "\n");
	}
}
