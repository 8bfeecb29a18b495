/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* sim_flags.c -- the table, what does not go together, and the script. */
#include "tools/sim_flags.h"

#include <inttypes.h>
#include <string.h>

#include "tools/text.h"

#define HOURS_24 GALE_HOURS(24)
#define WEIGHT_MOST 1000

enum { RULE_WINDOW, RULE_GCRA, RULE_BUCKET, RULE_PACER };
static const char *const rules[] = { "fixed_window", "gcra", "token_bucket", "pacer",
	                             NULL };
enum { MODE_LEASED, MODE_CACHED_DENY, MODE_STRICT };
static const char *const modes[] = { "leased", "cached-deny", "strict", NULL };
enum { SIZE_LEARNED, SIZE_FIXED, SIZE_EOQ };
static const char *const sizings[] = { "learned", "fixed", "eoq", NULL };
enum { ARRIVE_RANDOM, ARRIVE_STEADY, ARRIVE_BURSTS };
static const char *const arrivals[] = { "random", "steady", "bursts", NULL };

/* ---- Reading flags --------------------------------------------------------------- */

/* "5" or "5:30"; moves *text over it. */
static bool read_cost(const char **text, struct cost *ret_cost)
{
	ret_cost->weight = 1;
	if (!number_read(text, &ret_cost->units))
		return false;
	if (**text == ':') {
		++*text;
		if (!number_read(text, &ret_cost->weight))
			return false;
	}
	return ret_cost->units >= 1 && ret_cost->units <= GALE_UNITS_MAX &&
	       ret_cost->weight >= 1 && ret_cost->weight <= WEIGHT_MOST;
}

static bool read_costs(const struct flag *flag, const char *text, void *into)
{
	struct sim_flags *flags = into;

	(void)flag;
	flags->costs_text = text;
	flags->cost_count = 0;
	for (;; text++) {
		if (flags->cost_count == SCRIPT_COSTS_MOST ||
		    !read_cost(&text, &flags->costs[flags->cost_count++]))
			return false;
		if (*text != ',')
			return *text == '\0';
	}
}

static bool read_seeds(const struct flag *flag, const char *text, void *into)
{
	struct sim_flags *flags = into;

	(void)flag;
	return range_read(&text, &flags->first_seed, &flags->last_seed) &&
	       *text == '\0';
}

static bool read_only(const struct flag *flag, const char *text, void *into)
{
	static struct choice choice;
	struct sim_flags *flags = into;

	(void)flag;
	flags->only = text;
	return choice_read(&choice, text);
}

#define AT(member) offsetof(struct sim_flags, member)
#define WORD(member, list, preset_, allowed_)                                          \
	.takes = "WORD", .preset = preset_, .allowed = allowed_,                       \
	.read = flag_read_word, .at = AT(member), .words = list
#define NUMBER(member, preset_, least_, most_, allowed_)                               \
	.takes = "N", .preset = preset_, .allowed = "a whole number " allowed_,        \
	.read = flag_read_number, .at = AT(member), .least = least_, .most = most_
#define TIME(member, preset_, least_, most_, allowed_)                                 \
	.takes = "DURATION", .preset = preset_,                                        \
	.allowed = "a duration " allowed_ ", with its unit (us, ms, s, m or h), or 0", \
	.read = flag_read_duration, .at = AT(member), .least = least_, .most = most_
#define EVERY(member) TIME(member, "0s", 0, HOURS_24, "up to 24h")

static const struct flag flags_of_sim[] = {
	{ .name = "--rule",
	  WORD(rule, rules, "fixed_window",
	       "fixed_window, gcra, token_bucket or pacer"),
	  .help = "fixed_window, gcra, token_bucket or pacer" },
	{ .name = "--limit",
	  NUMBER(limit, "1k", 1, GALE_UNITS_MAX, "from 1 to 9007199254740991"),
	  .help = "units of each key in each window" },
	{ .name = "--window",
	  TIME(window_us, "1s", 1000, HOURS_24, "from 1ms to 24h"),
	  .help =
	      "the window; of the other rules: the time in which limit units accrue" },
	{ .name = "--burst",
	  NUMBER(burst, "0", 0, GALE_UNITS_MAX, "up to 9007199254740991"),
	  .help = "units at once, not for fixed_window; 0: the limit" },
	{ .name = "--max-wait",
	  TIME(max_wait_us, "1s", 0, HOURS_24, "up to 24h"),
	  .help = "pacer: a longer wait is refused" },
	{ .name = "--mode",
	  WORD(mode, modes, "leased", "leased, cached-deny or strict"),
	  .help = "leased, cached-deny or strict" },
	{ .name = "--sizing",
	  WORD(sizing, sizings, "learned", "learned, fixed or eoq"),
	  .help = "how much a node asks for: learned, fixed or eoq" },
	{ .name = "--batch",
	  NUMBER(batch, "0", 0, GALE_UNITS_MAX, "up to 9007199254740991"),
	  .help = "units of a lease, with --sizing fixed" },
	{ .name = "--order-cost",
	  NUMBER(order_cost, "0", 0, 1000000, "up to 1M"),
	  .help = "cost of a round trip, with --sizing eoq" },
	{ .name = "--strand-penalty",
	  NUMBER(strand_penalty, "0", 0, 1000000, "up to 1M"),
	  .help = "cost of an idle unit, with --sizing eoq" },
	{ .name = "--carry-over",
	  .read = flag_read_set,
	  .at = AT(carry_over),
	  .help = "units left in a window stay usable, with --sizing fixed" },
	{ .name = "--patience",
	  TIME(patience_us, "100ms", 1, HOURS_24, "from 1us to 24h"),
	  .help = "how long an ask waits for the store" },
	{ .name = "--drift-allowed",
	  NUMBER(allowance_ppm, "500", 1, 100000, "of ppm, from 1 to 100k"),
	  .help = "the drift of clocks that the limiter expects, in ppm" },
	{ .name = "--nodes",
	  NUMBER(nodes, "4", 1, WORLD_NODES, "from 1 to 512"),
	  .help = "nodes that share the limit" },
	{ .name = "--shards",
	  NUMBER(shards, "1", 1, 8, "from 1 to 8"),
	  .help = "shards of each node" },
	{ .name = "--keys",
	  NUMBER(keys, "1", 1, WORLD_KEYS, "from 1 to 20"),
	  .help = "keys; each ask takes one at random" },
	{ .name = "--demand",
	  NUMBER(demand, "200", 1, 100000, "of percent, from 1 to 100k"),
	  .help = "units asked for by all nodes, in percent of the limit" },
	{ .name = "--arrivals",
	  WORD(arrivals, arrivals, "random", "random, steady or bursts"),
	  .help = "random, steady, or in bursts at the same instant" },
	{ .name = "--cost",
	  .takes = "LIST",
	  .preset = "1",
	  .allowed = "up to 8 costs, with weights from 1 to 1000 if they differ: "
	             "1:90,5:10",
	  .help = "units of an ask, or several with weights: 1:90,5:10",
	  .read = read_costs },
	{ .name = "--duration",
	  TIME(run_us, "10s", 1000, GALE_HOURS(720), "from 1ms to 720h"),
	  .help = "of each run, in virtual time" },
	{ .name = "--delay",
	  TIME(delay_us, "1ms", 0, GALE_HOURS(1), "up to 1h"),
	  .help = "to the store and back, each way, on average" },
	{ .name = "--lost",
	  NUMBER(lost, "0", 0, 100, "of percent"),
	  .help = "percent of requests and answers that never arrive" },
	{ .name = "--doubled",
	  NUMBER(doubled, "0", 0, 100, "of percent"),
	  .help = "percent of them that arrive twice" },
	{ .name = "--offset",
	  TIME(offset_us, "0s", 0, GALE_HOURS(9), "up to 9h"),
	  .help = "by how much the clocks of nodes are wrong, at most" },
	{ .name = "--drift",
	  NUMBER(drift_ppm, "0", 0, 500000, "of ppm, up to 500k"),
	  .help = "how much too fast or slow these clocks run, at most, in ppm" },
	{ .name = "--crash",
	  EVERY(crash_us),
	  .help = "a node crashes once in this time on average; 0: never" },
	{ .name = "--pause",
	  EVERY(pause_us),
	  .help = "a node stops once in this time on average, for up to two windows" },
	{ .name = "--partition",
	  EVERY(cut_us),
	  .help = "a node is cut off from the store once in this time on average, for "
	          "up to two windows" },
	{ .name = "--fail-over",
	  EVERY(fail_us),
	  .help = "a replica without the last writes takes over once in this time on "
	          "average" },
	{ .name = "--seeds",
	  .takes = "N[-M]",
	  .preset = "0-9",
	  .allowed = "a number, or two with a dash, the first not above the second",
	  .help = "a run for each seed; the same seed gives the same run",
	  .read = read_seeds },
	{ .name = "--only",
	  .takes = "LIST",
	  .allowed = "numbers of asks below 1000000: 3,17-20",
	  .help = "only these asks are made: 3,17-20",
	  .read = read_only },
	{ .name = "--verbose",
	  .read = flag_read_set,
	  .at = AT(verbose),
	  .help = "print all that happens" },
};

static const struct flag_table table = {
	.flags = flags_of_sim,
	.count = sizeof(flags_of_sim) / sizeof(flags_of_sim[0]),
};

void sim_flags_list(FILE *out)
{
	flags_explain(&table, out);
}

/* ---- Demand ---------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 wide_count;

/* Mean time between two asks of the fleet. */
static uint64_t gap_ns(const struct sim_flags *flags)
{
	wide_count units = 0, weights = 0, gap;

	for (size_t i = 0; i < flags->cost_count; i++) {
		units += (wide_count)flags->costs[i].units * flags->costs[i].weight;
		weights += flags->costs[i].weight;
	}
	gap = (wide_count)flags->window_us * 100000 * units /
	      ((wide_count)flags->limit * flags->keys * flags->demand * weights);
	return gap < HOURS_24 * 10000000 ? (uint64_t)gap : HOURS_24 * 10000000;
}

/* Something that happens so often, on average, happens each so many asks. */
static uint32_t each(const struct sim_flags *flags, uint64_t often_us)
{
	uint64_t asks = often_us * 1000 / gap_ns(flags);

	if (often_us == 0)
		return 0;
	return asks < 1 ? 1 : asks < UINT32_MAX ? (uint32_t)asks : UINT32_MAX;
}

/* ---- What does not go together --------------------------------------------------- */

static bool is_plain(const struct sim_flags *flags)
{
	return flags->cost_count == 1 && flags->costs[0].units == 1;
}

static enum flags_result check_rule(const struct sim_flags *flags,
                                    struct flags_error *error)
{
	if (flags->rule == RULE_WINDOW && flags->burst > 0)
		return flags_bad(error, "--burst: a fixed_window has none");
	if (flags->rule == RULE_PACER &&
	    (!is_plain(flags) || flags->mode != MODE_LEASED))
		return flags_bad(error,
		                 "--rule: a pacer is simulated with --cost 1 and "
		                 "--mode leased");
	if (flags->run_us < flags->window_us)
		return flags_bad(error, "--duration: there is no whole --window in it");
	return FLAGS_RUN;
}

static enum flags_result check_sizing(const struct sim_flags *flags,
                                      struct flags_error *error)
{
	if (flags->mode != MODE_LEASED && flags->sizing != SIZE_LEARNED)
		return flags_bad(error, "--sizing: nothing is leased without --mode "
		                        "leased");
	if ((flags->batch > 0) != (flags->sizing == SIZE_FIXED))
		return flags_bad(error, "--batch: --sizing fixed takes one from 1, and "
		                        "no other does");
	if (flags->sizing != SIZE_EOQ && (flags->order_cost || flags->strand_penalty))
		return flags_bad(error,
		                 "--order-cost: it goes with --sizing eoq, as does "
		                 "--strand-penalty");
	if (flags->carry_over && (flags->rule != RULE_WINDOW || !is_plain(flags) ||
	                          flags->sizing != SIZE_FIXED))
		return flags_bad(error,
		                 "--carry-over: it goes with --rule fixed_window, "
		                 "--sizing fixed and --cost 1");
	return FLAGS_RUN;
}

static enum flags_result check_faults(const struct sim_flags *flags,
                                      struct flags_error *error)
{
	if (flags->fail_us && (flags->rule == RULE_PACER || flags->carry_over))
		return flags_bad(error, "--fail-over: not with a pacer, nor with "
		                        "--carry-over");
	if (flags->fail_us && flags->window_us > OFFICE_QUARANTINE_US)
		return flags_bad(error,
		                 "--fail-over: of windows above an hour a server "
		                 "may forget some");
	if (flags->fail_us && flags->doubled)
		return flags_bad(error, "--doubled: the connections to a server that "
		                        "fails over double nothing");
	return FLAGS_RUN;
}

static enum flags_result check_demand(const struct sim_flags *flags,
                                      struct flags_error *error)
{
	uint64_t gap = gap_ns(flags);

	if (gap > 0 && flags->run_us / gap * 1000 < SCRIPT_ASKS_MOST)
		return FLAGS_RUN;
	return flags_bad(error,
	                 "--demand: more than %d asks in a run; shorten --duration, or "
	                 "let each ask have a larger --cost",
	                 SCRIPT_ASKS_MOST);
}

static enum flags_result check_together(const struct sim_flags *flags,
                                        struct flags_error *error)
{
	enum flags_result (*const checks[])(const struct sim_flags *,
	                                    struct flags_error *) = {
		check_rule, check_sizing, check_faults, check_demand
	};
	enum flags_result result = FLAGS_RUN;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (result == FLAGS_RUN)
			result = checks[i](flags, error);
	return result;
}

enum flags_result sim_flags_parse(int argc, char *const *argv,
                                  struct sim_flags *ret_flags,
                                  struct flags_error *ret_error)
{
	struct sim_flags flags = { 0 };
	enum flags_result result = flags_read(&table, argc, argv, &flags, ret_error);

	if (result == FLAGS_RUN)
		result = check_together(&flags, ret_error);
	if (result == FLAGS_RUN)
		*ret_flags = flags;
	return result;
}

/* ---- The script ------------------------------------------------------------------ */

static struct gale_rule rule_of(const struct sim_flags *flags)
{
	uint64_t burst = flags->burst ? flags->burst : flags->limit;
	struct gale_rule rule = gale_fixed_window(flags->limit, flags->window_us);

	if (flags->rule == RULE_GCRA)
		rule = gale_gcra(flags->limit, flags->window_us, burst);
	if (flags->rule == RULE_BUCKET)
		rule = gale_token_bucket(burst, flags->limit, flags->window_us);
	if (flags->rule == RULE_PACER) {
		rule = gale_pacer(flags->limit, flags->window_us, burst);
		rule.max_wait_us = flags->max_wait_us;
	}
	return rule;
}

static struct gale_leasing lease_of(const struct sim_flags *flags)
{
	static const enum gale_sizing is[] = { GALE_SIZE_LEARNED, GALE_SIZE_FIXED,
		                               GALE_SIZE_EOQ };

	return (struct gale_leasing){ .sizing = is[flags->sizing],
		                      .batch = flags->batch,
		                      .order_cost = (double)flags->order_cost,
		                      .strand_penalty = (double)flags->strand_penalty,
		                      .patience_us = flags->patience_us,
		                      .drift_ppm = (uint32_t)flags->allowance_ppm,
		                      .carry_over = flags->carry_over };
}

static struct world_plan plan_of(const struct sim_flags *flags, uint64_t seed)
{
	static const enum gale_mode is[] = { GALE_LEASED, GALE_CACHED_DENY,
		                             GALE_STRICT };

	return (struct world_plan){
		.seed = seed,
		.rule = rule_of(flags),
		.mode = is[flags->mode],
		.lease = lease_of(flags),
		.net = { .mean_us = flags->delay_us,
		         .lost_percent = (uint32_t)flags->lost,
		         .doubled_percent = (uint32_t)flags->doubled },
		.nodes = (uint32_t)flags->nodes,
		.seats = 1,
		.shards = (uint32_t)flags->shards,
		.keys = (uint32_t)flags->keys,
		.pending = 1024,
		.rate_ppm = (uint32_t)flags->drift_ppm,
		.offset_us = flags->offset_us,
		.fails = flags->fail_us > 0,
	};
}

/* Windows are whole from the first on. */
static uint64_t begin_of(const struct sim_flags *flags)
{
	uint64_t windows = (WORLD_START + flags->window_us - 1) / flags->window_us;

	return flags->rule == RULE_WINDOW ? windows * flags->window_us : WORLD_START;
}

struct script sim_script(const struct sim_flags *flags, uint64_t seed)
{
	struct script script = {
		.plan = plan_of(flags, seed),
		.asks = SCRIPT_ASKS_MOST,
		.begins_us = begin_of(flags),
		.ends_us = begin_of(flags) + flags->run_us,
		.gap_us = gap_ns(flags) / 1000,
		.gap_ns = gap_ns(flags) % 1000,
		.cost_count = flags->cost_count,
		.crash_each = each(flags, flags->crash_us),
		.pause_each = each(flags, flags->pause_us),
		.cut_each = each(flags, flags->cut_us),
		.fail_each = each(flags, flags->fail_us),
		.copy_each = each(flags, flags->window_us / 10),
		.bursts = flags->arrivals == ARRIVE_BURSTS,
		.calm = flags->arrivals == ARRIVE_STEADY,
		.even = true,
	};

	memcpy(script.costs, flags->costs, sizeof(script.costs));
	return script;
}

/* ---- Once more ------------------------------------------------------------------- */

#define FIELD(member, least)                                                           \
	{                                                                              \
#member, AT(member), sizeof(((struct sim_flags *)0)->member), least,   \
		    UINT64_MAX                                                         \
	}

const struct shrink_field sim_fields[] = {
	FIELD(fail_us, 0),  FIELD(crash_us, 0),  FIELD(pause_us, 0),
	FIELD(cut_us, 0),   FIELD(lost, 0),      FIELD(doubled, 0),
	FIELD(delay_us, 0), FIELD(offset_us, 0), FIELD(drift_ppm, 0),
	FIELD(nodes, 1),    FIELD(shards, 1),    FIELD(keys, 1),
	FIELD(demand, 1),   FIELD(limit, 1),
};
const size_t sim_field_count = sizeof(sim_fields) / sizeof(sim_fields[0]);

static uint64_t value_of(const struct sim_flags *flags, const struct flag *flag)
{
	uint64_t value;

	memcpy(&value, (const char *)flags + flag->at, sizeof(value));
	return value;
}

static void print_flag(const struct sim_flags *flags, const struct flag *flag,
                       FILE *out)
{
	uint64_t value = value_of(flags, flag);
	struct text text;

	fprintf(out, " %s", flag->name);
	if (flag->read == flag_read_word)
		fprintf(out, " %s", flag->words[value]);
	if (flag->read == flag_read_number)
		fprintf(out, " %" PRIu64, value);
	if (flag->read == flag_read_duration)
		fprintf(out, " %s", text_duration(&text, value));
}

/* Is it one that stands in the struct as a number? */
static bool is_number(const struct flag *flag)
{
	return flag->read == flag_read_word || flag->read == flag_read_number ||
	       flag->read == flag_read_duration || flag->read == flag_read_set;
}

void sim_flags_print(const struct sim_flags *flags, uint64_t seed,
                     const struct choice *choice, uint64_t asks, FILE *out)
{
	struct sim_flags presets = { 0 };
	struct flags_error error;

	(void)flags_read(&table, 0, NULL, &presets, &error);
	presets.verbose = flags->verbose;
	fprintf(out, "gale sim");
	for (size_t i = 0; i < table.count; i++) {
		const struct flag *flag = &flags_of_sim[i];

		if (is_number(flag) &&
		    value_of(flags, flag) != value_of(&presets, flag))
			print_flag(flags, flag, out);
	}
	if (strcmp(flags->costs_text, presets.costs_text) != 0)
		fprintf(out, " --cost %s", flags->costs_text);
	fprintf(out, " --seeds %" PRIu64, seed);
	if (choice->some)
		fprintf(out, " --only ");
	if (choice->some)
		choice_print(choice, asks, out);
	fprintf(out, " --verbose\n");
}
