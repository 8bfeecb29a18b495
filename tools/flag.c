/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * flag.c -- a flag that is not given has its preset, which is read as if it had been
 * given: so that --help cannot tell anything else.
 */
#include "tools/flag.h"

#include <stdarg.h>
#include <string.h>

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
		if (number > 0 &&
		    (unit->factor == 0 || number > UINT64_MAX / unit->factor))
			return false; /* nothing is nothing, of whatever unit */
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

static bool store_number(const struct flag *flag, uint64_t number, void *into)
{
	if (number < flag->least || number > flag->most)
		return false;
	memcpy((char *)into + flag->at, &number, sizeof(number));
	return true;
}

bool flag_read_number(const struct flag *flag, const char *text, void *into)
{
	uint64_t number;

	return flags_number(text, &number) && store_number(flag, number, into);
}

bool flag_read_duration(const struct flag *flag, const char *text, void *into)
{
	uint64_t us;

	return flags_duration(text, flag->bare_us, &us) && store_number(flag, us, into);
}

bool flag_read_word(const struct flag *flag, const char *text, void *into)
{
	for (uint64_t i = 0; flag->words[i]; i++) {
		if (strcmp(flag->words[i], text) != 0)
			continue;
		memcpy((char *)into + flag->at, &i, sizeof(i));
		return true;
	}
	return false;
}

bool flag_read_text(const struct flag *flag, const char *text, void *into)
{
	memcpy((char *)into + flag->at, &text, sizeof(text));
	return text[0] != '\0';
}

bool flag_read_set(const struct flag *flag, const char *text, void *into)
{
	const uint64_t set = 1;

	(void)text;
	memcpy((char *)into + flag->at, &set, sizeof(set));
	return true;
}

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

enum flags_result flags_bad(struct flags_error *error, const char *format, ...)
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

	return flags_bad(error, "%s: it takes %s, not \"%s\"", flag->name,
	                 flag->allowed, show(&shown, text, strlen(text)));
}

enum flags_result flags_unknown(struct flags_error *error, const char *word,
                                const char *there_are)
{
	struct shown shown;

	return flags_bad(error, "%s: unknown; there are %s",
	                 show(&shown, word, strlen(word)), there_are);
}

static enum flags_result bad_name(const struct flag_table *table,
                                  struct flags_error *error, const char *text,
                                  size_t length)
{
	char names[448] = "";
	struct shown shown;

	for (size_t i = 0; i < table->count; i++) {
		const char *name = table->flags[i].name;
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s ", name);
	}
	return flags_bad(error, "%s: unknown; there %s %s--help",
	                 show(&shown, text, length),
	                 table->count > 0 ? "are" : "is only", names);
}

#define OPERANDS 128 /* bytes of the list of all */

/* ---- Parsing --------------------------------------------------------------------- */

static const struct flag *find(const struct flag_table *table, const char *name,
                               size_t length)
{
	for (size_t i = 0; i < table->count; i++)
		if (strlen(table->flags[i].name) == length &&
		    memcmp(table->flags[i].name, name, length) == 0)
			return &table->flags[i];
	return NULL;
}

/* "--name value" or "--name=value"; moves *at over what was used. */
static enum flags_result parse_one(const struct flag_table *table, int argc,
                                   char *const *argv, int *at, void *into,
                                   struct flags_error *error)
{
	const char *text = argv[(*at)++];
	size_t length = strcspn(text, "=");
	const char *value = text[length] ? text + length + 1 : NULL;
	const struct flag *flag = find(table, text, length);

	if (!flag)
		return bad_name(table, error, text, length);
	if (!flag->takes && value)
		return flags_bad(error, "%s: takes no value", flag->name);
	if (flag->takes && !value && *at == argc)
		return flags_bad(error, "%s: needs a value, %s", flag->name,
		                 flag->allowed);
	if (flag->takes && !value)
		value = argv[(*at)++];
	return flag->read(flag, value, into) ? FLAGS_RUN
	                                     : bad_value(error, flag, value);
}

static void preset(const struct flag_table *table, void *into)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct flag *flag = &table->flags[i];

		if (flag->preset)
			flag->read(flag, flag->preset, into);
	}
}

/* The first operand without a word yet; NULL: all have theirs. */
static const struct flag_operand *next_operand(const struct flag_table *table,
                                               const void *into)
{
	for (size_t i = 0; i < FLAG_OPERANDS_MOST && table->operands[i].is; i++) {
		const char *word;

		memcpy(&word, (const char *)into + table->operands[i].at, sizeof(word));
		if (!word)
			return &table->operands[i];
	}
	return NULL;
}

/* "the URL of a store, the limiter's name, the key" */
static const char *all_operands(const struct flag_table *table, char names[OPERANDS])
{
	names[0] = '\0';
	for (size_t i = 0; i < FLAG_OPERANDS_MOST && table->operands[i].is; i++) {
		size_t used = strlen(names);

		snprintf(names + used, OPERANDS - used, "%s%s", used > 0 ? ", " : "",
		         table->operands[i].is);
	}
	return names;
}

/* A URL is not shown: it may have a password in it. */
static enum flags_result take_operand(const struct flag_table *table, const char *text,
                                      void *into, struct flags_error *error)
{
	const struct flag_operand *operand = next_operand(table, into);
	char names[OPERANDS];
	struct shown shown;

	if (operand) {
		memcpy((char *)into + operand->at, &text, sizeof(text));
		return FLAGS_RUN;
	}
	if (strstr(text, "://"))
		return flags_bad(error, "%s is given twice", table->operands[0].is);
	return flags_bad(error, "%s: a word too many; it takes only %s",
	                 show(&shown, text, strlen(text)), all_operands(table, names));
}

static enum flags_result need_operands(const struct flag_table *table, const void *into,
                                       struct flags_error *error)
{
	const struct flag_operand *operand = next_operand(table, into);

	return operand ? flags_bad(error, "it takes %s, and none is given", operand->is)
	               : FLAGS_RUN;
}

/* Wherever it stands: also where a value was to come. */
static bool asks_for_help(int argc, char *const *argv)
{
	for (int at = 0; at < argc; at++)
		if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)
			return true;
	return false;
}

enum flags_result flags_read(const struct flag_table *table, int argc,
                             char *const *argv, void *into,
                             struct flags_error *ret_error)
{
	enum flags_result result = FLAGS_RUN;

	if (asks_for_help(argc, argv))
		return FLAGS_HELP;
	preset(table, into);
	for (int at = 0; at < argc && result == FLAGS_RUN;) {
		if (table->operands[0].is && argv[at][0] != '-')
			result = take_operand(table, argv[at++], into, ret_error);
		else
			result = parse_one(table, argc, argv, &at, into, ret_error);
	}
	return result == FLAGS_RUN ? need_operands(table, into, ret_error) : result;
}

enum flags_result flags_read_none(int argc, char *const *argv,
                                  struct flags_error *ret_error)
{
	static const struct flag_table none = { .count = 0 };

	return flags_read(&none, argc, argv, NULL, ret_error);
}

#define COLUMNS "  %-20s  %s"

void flags_explain(const struct flag_table *table, FILE *out)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct flag *flag = &table->flags[i];
		char left[32];

		snprintf(left, sizeof(left), "%s %s", flag->name,
		         flag->takes ? flag->takes : "");
		fprintf(out, COLUMNS, left, flag->help);
		if (flag->preset)
			fprintf(out, " (%s)", flag->preset);
		fprintf(out, "\n");
	}
	fprintf(out, COLUMNS "\n", "--help", "print this");
}
