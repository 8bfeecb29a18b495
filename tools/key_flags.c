/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* key_flags.c -- one table, of which each command has a part. */
#include "tools/key_flags.h"

#include <string.h>

#define YEARS_35 GALE_SPAN_MAX_US
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum {
	KIND_FIXED_WINDOW,
	KIND_SLIDING_WINDOW,
	KIND_SLIDING_LOG,
	KIND_GCRA,
	KIND_TOKEN_BUCKET,
	KIND_LEAKY_BUCKET,
	KIND_PACER,
	KIND_PACER_LIMIT,
	KIND_TOKEN_BUDGET,
	KIND_MONTHLY,
	KIND_WEEKLY,
	KIND_DAILY,
	KIND_ROLLING,
};
static const char *const kinds[] = {
	"fixed_window",  "sliding_window",
	"sliding_log",   "gcra",
	"token_bucket",  "leaky_bucket",
	"pacer",         "pacer_limit",
	"token_budget",  "quota_monthly",
	"quota_weekly",  "quota_daily",
	"quota_rolling", NULL,
};
#define KINDS                                                                          \
	"fixed_window, sliding_window, sliding_log, gcra, token_bucket, "              \
	"leaky_bucket, pacer, pacer_limit, token_budget, quota_monthly, "              \
	"quota_weekly, quota_daily or quota_rolling"

static const char *const weekdays[] = { "sunday",   "monday", "tuesday",  "wednesday",
	                                "thursday", "friday", "saturday", NULL };

/* "+02:00", "-05:30", "utc" */
static bool read_offset(const struct flag *flag, const char *text, void *into)
{
	struct key_flags *flags = into;
	int sign = text[0] == '-' ? -1 : 1;
	unsigned hours, minutes;
	char end;

	(void)flag;
	flags->offset_minutes = 0;
	if (strcmp(text, "utc") == 0)
		return true;
	if ((text[0] != '+' && text[0] != '-') || strlen(text) != 6 ||
	    sscanf(text + 1, "%2u:%2u%c", &hours, &minutes, &end) != 2 || hours > 14 ||
	    minutes > 59)
		return false;
	flags->offset_minutes = sign * (int32_t)(hours * 60 + minutes);
	return true;
}

#define AT(member) offsetof(struct key_flags, member)
#define UNITS(name_, member, preset_, least_, help_)                                   \
	{                                                                              \
		.name = name_, .takes = "N", .preset = preset_,                        \
		.allowed = "a whole number up to 9007199254740991 (k and M are "       \
			   "understood)",                                              \
		.help = help_, .read = flag_read_number, .at = AT(member),             \
		.least = least_, .most = GALE_UNITS_MAX                                \
	}
#define TIME(name_, member, preset_, least_, help_)                                    \
	{                                                                              \
		.name = name_, .takes = "DURATION", .preset = preset_,                 \
		.allowed = "a duration with its unit (us, ms, s, m or h)",             \
		.help = help_, .read = flag_read_duration, .at = AT(member),           \
		.least = least_, .most = YEARS_35                                      \
	}

/* forecast has the first, too; watch the last two. */
static const struct flag all_flags[] = {
	UNITS("--cost", cost, "1", 1, "units of the call"),
	{ .name = "--rule",
	  .takes = "RULE",
	  .preset = "fixed_window",
	  .allowed = KINDS,
	  .help = "as in gale/rule.h",
	  .read = flag_read_word,
	  .at = AT(kind),
	  .words = kinds },
	UNITS("--limit", limit, NULL, 1,
	      "units in each window; of a bucket or pacer: units that accrue in this "
	      "time"),
	TIME("--window", window_us, NULL, 1, "the window; not for calendar quotas"),
	UNITS("--burst", burst, NULL, 0, "gcra, token_bucket, pacer: units at once"),
	UNITS("--buckets", buckets, "10", 1, "of a sliding_window"),
	TIME("--max-wait", max_wait_us, NULL, 0,
	     "leaky_bucket, pacer: the longest wait"),
	{ .name = "--utc-offset",
	  .takes = "OFFSET",
	  .preset = "utc",
	  .allowed = "utc, or hours and minutes: +02:00",
	  .help = "of calendar quotas",
	  .read = read_offset },
	{ .name = "--first-weekday",
	  .takes = "DAY",
	  .preset = "sunday",
	  .allowed = "sunday, monday, tuesday, wednesday, thursday, friday or saturday",
	  .help = "of quota_weekly",
	  .read = flag_read_word,
	  .at = AT(weekday),
	  .words = weekdays },
	TIME("--within", within_us, "5s", 1, "how long to wait for the store"),
	{ .name = "--json",
	  .help = "print one JSON object a line, and nothing else",
	  .read = flag_read_set,
	  .at = AT(json) },
	TIME("--every", every_us, "1s", 1000, "how often to look"),
	UNITS("--count", count, "0", 0, "how many times; 0: until it is interrupted"),
};
#define OF_FORECAST 1
#define OF_WATCH 2

static struct flag_table table_of(enum key_command command)
{
	struct flag_table table = {
		.flags = all_flags + OF_FORECAST,
		.count = COUNT(all_flags) - OF_FORECAST - OF_WATCH,
		.operands = { { "the URL of a store", AT(url) },
		              { "the name of a limiter", AT(limiter) },
		              { "a key", AT(key) } },
	};

	if (command == KEY_FORECAST) {
		table.flags -= OF_FORECAST;
		table.count += OF_FORECAST;
	}
	if (command == KEY_WATCH)
		table.count += OF_WATCH;
	return table;
}

const char *key_command_name(enum key_command command)
{
	static const char *const names[] = { "peek", "reset", "forecast", "watch" };

	return names[command];
}

/* ---- The rule -------------------------------------------------------------------- */

static struct gale_rule rule_of(const struct key_flags *flags)
{
	uint64_t limit = flags->limit, window_us = flags->window_us;
	uint64_t burst = flags->burst;
	int32_t offset = flags->offset_minutes;

	switch (flags->kind) {
	case KIND_SLIDING_WINDOW:
		return gale_sliding_window(limit, window_us, flags->buckets);
	case KIND_SLIDING_LOG:
		return gale_sliding_log(limit, window_us);
	case KIND_GCRA:
		return gale_gcra(limit, window_us, burst);
	case KIND_TOKEN_BUCKET:
		return gale_token_bucket(burst, limit, window_us);
	case KIND_LEAKY_BUCKET:
		return gale_leaky_bucket(limit, window_us, flags->max_wait_us);
	case KIND_PACER:
		return gale_pacer(limit, window_us, burst);
	case KIND_PACER_LIMIT:
		return gale_pacer_limit(limit, window_us, burst);
	case KIND_TOKEN_BUDGET:
		return gale_token_budget(limit, window_us);
	case KIND_MONTHLY:
		return gale_quota_monthly(limit, offset);
	case KIND_WEEKLY:
		return gale_quota_weekly(limit, offset, (uint32_t)flags->weekday);
	case KIND_DAILY:
		return gale_quota_daily(limit, offset);
	case KIND_ROLLING:
		return gale_quota_rolling(limit, window_us);
	default:
		return gale_fixed_window(limit, window_us);
	}
}

static enum flags_result check_rule(struct key_flags *flags, struct flags_error *error)
{
	bool is_calendar = flags->kind >= KIND_MONTHLY && flags->kind <= KIND_DAILY;
	bool has_burst = flags->kind == KIND_GCRA || flags->kind == KIND_TOKEN_BUCKET;

	if (flags->limit == 0)
		return flags_bad(error, "--limit: give the limit that the nodes have: "
		                        "a store does not know it");
	if (flags->window_us == 0 && !is_calendar)
		return flags_bad(error,
		                 "--window: give the window that the nodes have");
	if (flags->window_us != 0 && is_calendar)
		return flags_bad(error, "--window: not for %s", kinds[flags->kind]);
	if (flags->burst == 0 && has_burst)
		return flags_bad(error, "--burst: give the burst that the nodes have");
	flags->rule = rule_of(flags);
	if (flags->kind == KIND_PACER && flags->max_wait_us != 0)
		flags->rule.max_wait_us = flags->max_wait_us;
	return FLAGS_RUN;
}

static enum flags_result check_url(const struct key_flags *flags,
                                   struct flags_error *error)
{
	if (gale_url_check(flags->url, error->text, sizeof(error->text)) != GALE_ERR_OK)
		return FLAGS_BAD;
	if (strncmp(flags->url, "memory:", strlen("memory:")) == 0)
		return flags_bad(error, "url: memory: is a store in the process that "
		                        "opens it, and no other can look into it");
	return FLAGS_RUN;
}

enum flags_result key_flags_parse(enum key_command command, int argc, char *const *argv,
                                  struct key_flags *ret_flags,
                                  struct flags_error *ret_error)
{
	const struct flag_table table = table_of(command);
	enum flags_result result;

	*ret_flags = (struct key_flags){ .command = command, .cost = 1 };
	result = flags_read(&table, argc, argv, ret_flags, ret_error);
	if (result == FLAGS_RUN)
		result = check_url(ret_flags, ret_error);
	if (result == FLAGS_RUN)
		result = check_rule(ret_flags, ret_error);
	return result;
}

/* ---- Help ------------------------------------------------------------------------ */

static const char *const purposes[] = {
	[KEY_PEEK] = "Says what a key has spent, what is left, and when that changes.\n"
		     "Nothing is taken.\n",
	[KEY_RESET] =
	    "Makes the store forget what a key has spent: the whole limit is\n"
	    "available again.  Says how much may pass until what was spent\n"
	    "before would have come back by itself.\n",
	[KEY_FORECAST] = "Says when a call of some cost would be admitted at the "
			 "earliest, if no\nother call takes units until then.  Nothing "
			 "is taken.\n",
	[KEY_WATCH] = "Peeks again and again, and prints a line each time.\n",
};

void key_flags_help(enum key_command command, FILE *out)
{
	const struct flag_table table = table_of(command);

	fprintf(
	    out,
	    "usage: gale %s URL LIMITER KEY --limit N --window DURATION "
	    "[FLAG...]\n\n%s"
	    "\n"
	    "A store keeps what was spent, but not the rule: give the rule that the\n"
	    "nodes have.\n"
	    "\n",
	    key_command_name(command), purposes[command]);
	flags_explain(&table, out);
	fputs("\n"
	      "Exit status: 0 done; 2 a flag or the URL is wrong; 3 the store gave no\n"
	      "answer.\n",
	      out);
}
