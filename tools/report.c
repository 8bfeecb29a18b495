/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* report.c -- the verdict, the table and the JSON object. */
#include "tools/report.h"

#include <inttypes.h>
#include <string.h>

#include "tools/text.h"

/* ---- The verdict ----------------------------------------------------------------- */

static uint64_t decisions(const struct report *report)
{
	return report->counts[SEEN_ALLOWED] + report->counts[SEEN_DENIED];
}

/* Those in which no call was made, too. */
static uint64_t windows_that_count(const struct tally_totals *tally)
{
	return tally->windows > TALLY_LEARNING ? tally->windows - TALLY_LEARNING : 0;
}

/* Of the limits in these windows. */
static double asked_part(const struct report *report)
{
	double limits = (double)report->flags.limit * (double)report->flags.keys *
	                (double)windows_that_count(&report->tally);

	return limits > 0 ? (double)report->tally.asked / limits : 0;
}

/* A machine that is slow asks for less than it should, and what was not asked for proves nothing. */
static bool is_asked_for(const struct report *report)
{
	return asked_part(report) * 100 >=
	       REPORT_BAR_ASKED * (double)report->flags.demand_percent;
}

enum verdict report_verdict(const struct report *report)
{
	const struct tally_totals *tally = &report->tally;

	if (tally->overshoot > 0)
		return VERDICT_OVERSHOT;
	/* The workers and the tally count apart: neither may have lost anything. */
	if (tally->disagreements > 0 || report->clock_step_us > 0 ||
	    tally->admitted != report->counts[SEEN_ALLOWED])
		return VERDICT_UNPROVEN;
	if (report->flags.demand_percent == 0)
		return VERDICT_HELD;
	if (tally->asked_windows == 0)
		return VERDICT_UNPROVEN;
	if (tally_served(tally) < REPORT_BAR_MEAN ||
	    tally->served_worst < REPORT_BAR_WORST)
		return VERDICT_SHORT;
	return is_asked_for(report) ? VERDICT_HELD : VERDICT_UNPROVEN;
}

const char *report_verdict_name(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_HELD:
		return "held";
	case VERDICT_OVERSHOT:
		return "overshot";
	case VERDICT_SHORT:
		return "short";
	case VERDICT_UNPROVEN:
		break;
	}
	return "unproven";
}

int report_status(const struct report *report)
{
	return report_verdict(report) == VERDICT_HELD ? 0 : 1;
}

void report_see(struct report *report, const struct seen *seen)
{
	memcpy(report->counts, seen->counts, sizeof(report->counts));
	report->p50_ns = histogram_quantile(&seen->latency_ns, 500);
	report->p99_ns = histogram_quantile(&seen->latency_ns, 990);
}

/* ---- For people ------------------------------------------------------------------ */

static void print_doubt(const struct report *report, FILE *out)
{
	const struct tally_totals *tally = &report->tally;
	bool all_fit = tally->disagreements == 0 &&
	               tally->admitted == report->counts[SEEN_ALLOWED];
	struct text number, window;

	if (report->clock_step_us == 0 && all_fit && tally->asked_windows > 0)
		fprintf(out,
		        "UNPROVEN: %.1f %% of the limits were asked for, and %" PRIu64
		        " %% were wanted. Set a lower --limit or fewer --nodes: "
		        "this machine is too slow for so many calls\n",
		        100 * asked_part(report), report->flags.demand_percent);
	else if (report->clock_step_us == 0 && all_fit)
		fprintf(out, "UNPROVEN: the run ended before a window was counted\n");
	else if (report->clock_step_us > 0)
		fprintf(out,
		        "UNPROVEN: the system's clock was set by %s us during the run, "
		        "and the windows with it\n",
		        text_count(&number, report->clock_step_us));
	else
		fprintf(out,
		        "UNPROVEN: %s admissions fit no window of %s: the store's "
		        "clock and ours disagree\n",
		        text_count(&number, report->counts[SEEN_ALLOWED] -
		                                report->tally.admitted),
		        text_duration(&window, report->flags.window_us));
}

static void print_verdict(const struct report *report, FILE *out)
{
	const struct tally_totals *tally = &report->tally;
	struct text number, limit, window;

	text_count(&limit, report->flags.limit);
	text_duration(&window, report->flags.window_us);
	switch (report_verdict(report)) {
	case VERDICT_HELD:
		fprintf(out, "HELD: no key got more than %s in any window of %s\n",
		        limit.is, window.is);
		break;
	case VERDICT_OVERSHOT:
		fprintf(out,
		        "OVERSHOT: a key got %s in a window of %s; its limit is %s\n",
		        text_count(&number, tally->admitted_max), window.is, limit.is);
		break;
	case VERDICT_SHORT:
		fprintf(out,
		        "SHORT: %.2f %% of what was owed were served, %.2f %% in the "
		        "worst window; the bar is %.0f %% and %.0f %%\n",
		        100 * tally_served(tally), 100 * tally->served_worst,
		        100 * REPORT_BAR_MEAN, 100 * REPORT_BAR_WORST);
		break;
	case VERDICT_UNPROVEN:
		print_doubt(report, out);
		break;
	}
}

static uint64_t per_second(const struct report *report)
{
	return (uint64_t)((double)decisions(report) / report->seconds);
}

static double store_calls_per_million(const struct report *report)
{
	return percent(report->counts[SEEN_STORE_CALLS], decisions(report)) * 1e4;
}

static double leases_per_store_call(const struct report *report)
{
	return percent(report->counts[SEEN_LEASES], report->counts[SEEN_STORE_CALLS]) /
	       100;
}

static void print_decisions(const struct report *report, FILE *out)
{
	const uint64_t *counts = report->counts;
	uint64_t all = decisions(report);
	struct text a, b;

	fprintf(out, "  decisions    %15s  %s a second for %.1f s\n",
	        text_count(&a, all), text_count(&b, per_second(report)),
	        report->seconds);
	fprintf(out, "  allowed      %15s  %.1f %%\n",
	        text_count(&a, counts[SEEN_ALLOWED]),
	        percent(counts[SEEN_ALLOWED], all));
	fprintf(out, "  denied       %15s  %.1f %%\n",
	        text_count(&a, counts[SEEN_DENIED]), percent(counts[SEEN_DENIED], all));
	if (counts[SEEN_REFUSED] > 0)
		fprintf(out, "  of these     %15s  not by the rule: %s\n",
		        text_count(&a, counts[SEEN_REFUSED]),
		        gale_why_text((enum gale_why)counts[SEEN_REFUSED_WHY]));
}

static void print_connections(const struct report *report, FILE *out)
{
	const uint64_t *counts = report->counts;
	struct text a, b, c;

	fprintf(out, "  connections  %15s  failures: %s; answers not believed: %s\n",
	        text_count(&a, counts[SEEN_CONNECTS]),
	        text_count(&b, counts[SEEN_FAILURES]),
	        text_count(&c, counts[SEEN_WRONG]));
}

static void print_costs(const struct report *report, FILE *out)
{
	struct text a, b;

	fprintf(out, "  ns/decision  %15s  half took less; 99 %% less than %s\n",
	        text_count(&a, report->p50_ns), text_count(&b, report->p99_ns));
	fprintf(out, "  store calls  %15s  %.1f per million decisions\n",
	        text_count(&a, report->counts[SEEN_STORE_CALLS]),
	        store_calls_per_million(report));
	fprintf(out, "  leases       %15s  %.2f per store call\n",
	        text_count(&a, report->counts[SEEN_LEASES]),
	        leases_per_store_call(report));
	if (report->flags.server)
		print_connections(report, out);
}

static void print_undershoot(const struct report *report, FILE *out)
{
	const struct tally_totals *tally = &report->tally;
	struct text a;

	if (tally->windows == 0) {
		fprintf(out, "  undershoot                  -  "
		             "no window lay inside the run\n");
		return;
	}
	fprintf(
	    out,
	    "  undershoot   %13.3f %%  of the limit, on average; whole windows: %s\n",
	    100 * tally->undershoot_mean, text_count(&a, tally->windows));
}

/* In the windows that count. */
static void print_demand(const struct report *report, FILE *out)
{
	const struct tally_totals *tally = &report->tally;
	struct text a, b;

	if (report->flags.demand_percent == 0)
		return;
	fprintf(out,
	        "  asked        %15s  %.1f %% of the limits in %s windows; wanted: "
	        "%" PRIu64 " %%%s\n",
	        text_count(&a, tally->asked), 100 * asked_part(report),
	        text_count(&b, windows_that_count(tally)), report->flags.demand_percent,
	        report->flags.moving ? ", moving between the nodes" : "");
	fprintf(
	    out,
	    "  served       %15s  %.2f %% of what was owed; worst window: %.2f %%\n",
	    text_count(&a, tally->served), 100 * tally_served(tally),
	    100 * tally->served_worst);
}

static uint64_t above_limit(const struct report *report, uint64_t most)
{
	return most > report->flags.limit ? most - report->flags.limit : 0;
}

/* Of a part of a window it says nothing that it left something. */
static void print_window(const struct report *report, const struct tally_window *window,
                         FILE *out)
{
	struct text admitted, over, most;

	fprintf(out, "  %6" PRIu64 "%-6s %15s  ", window->number,
	        window->whole ? "" : " part", text_count(&admitted, window->admitted));
	if (window->whole)
		fprintf(out, "%8.3f %%", 100 * window->undershoot);
	else
		fprintf(out, "%10s", "-");
	fprintf(out, "  %9s  %13s\n",
	        text_count(&over, above_limit(report, window->most)),
	        text_count(&most, window->most));
}

static void print_windows(const struct report *report, FILE *out)
{
	struct text window, over, limit;

	fprintf(
	    out,
	    "\n  window of %-5s     admitted  undershoot  overshoot  most by a key\n",
	    text_duration(&window, report->flags.window_us));
	for (size_t i = 0; i < report->window_count; i++)
		print_window(report, &report->windows[i], out);
	fprintf(out, "  worst, of all                           %9s  %13s  limit %s\n",
	        text_count(&over, report->tally.overshoot),
	        text_count(&window, report->tally.admitted_max),
	        text_count(&limit, report->flags.limit));
}

void report_table(const struct report *report, FILE *out)
{
	print_verdict(report, out);
	fprintf(out, "\n");
	print_demand(report, out);
	print_decisions(report, out);
	print_costs(report, out);
	print_undershoot(report, out);
	print_windows(report, out);
}

/* ---- For programs ---------------------------------------------------------------- */

/* Bytes beyond ASCII are taken for Latin-1, so that any bytes give valid JSON. */
static void json_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\": \"", name);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < ' ' || c > '~' || c == '"' || c == '\\')
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fprintf(out, "\", ");
}

static void json_count(FILE *out, const char *name, uint64_t count)
{
	fprintf(out, "\"%s\": %" PRIu64 ", ", name, count);
}

static void json_setup(const struct report *report, FILE *out)
{
	const struct fleet_flags *flags = &report->flags;
	struct text_long store;

	json_text(out, "mode", flags->mode_name);
	json_text(out, "store", text_url(&store, flags->store));
	json_count(out, "processes", flags->processes);
	json_count(out, "nodes", flags->nodes);
	json_count(out, "threads", flags->threads);
	json_count(out, "keys", flags->keys);
	json_count(out, "limit", flags->limit);
	json_count(out, "window_us", flags->window_us);
	fprintf(out, "\"seconds\": %.6f, ", report->seconds);
}

static void json_seen(const struct report *report, FILE *out)
{
	const uint64_t *counts = report->counts;

	json_count(out, "decisions", decisions(report));
	json_count(out, "decisions_per_second", per_second(report));
	json_count(out, "allowed", counts[SEEN_ALLOWED]);
	json_count(out, "denied", counts[SEEN_DENIED]);
	json_count(out, "refused", counts[SEEN_REFUSED]);
	json_count(out, "ns_per_decision_p50", report->p50_ns);
	json_count(out, "ns_per_decision_p99", report->p99_ns);
	json_count(out, "store_calls", counts[SEEN_STORE_CALLS]);
	fprintf(out, "\"store_calls_per_million\": %.3f, ",
	        store_calls_per_million(report));
	json_count(out, "leases", counts[SEEN_LEASES]);
	fprintf(out, "\"leases_per_store_call\": %.3f, ",
	        leases_per_store_call(report));
	json_count(out, "connects", counts[SEEN_CONNECTS]);
	json_count(out, "failures", counts[SEEN_FAILURES]);
	json_count(out, "wrong", counts[SEEN_WRONG]);
}

static void json_demand(const struct report *report, FILE *out)
{
	const struct tally_totals *tally = &report->tally;

	if (report->flags.demand_percent == 0)
		return;
	json_count(out, "demand_percent", report->flags.demand_percent);
	json_count(out, "moving", report->flags.moving);
	json_count(out, "asked_windows", tally->asked_windows);
	json_count(out, "asked", tally->asked);
	json_count(out, "owed", tally->owed);
	json_count(out, "served", tally->served);
	fprintf(out, "\"served_mean\": %.6f, \"served_worst\": %.6f, ",
	        tally_served(tally), tally->served_worst);
}

void report_json(const struct report *report, FILE *out)
{
	const struct tally_totals *tally = &report->tally;
	const char *verdict = report_verdict_name(report_verdict(report));

	fprintf(out, "{");
	json_setup(report, out);
	json_demand(report, out);
	json_seen(report, out);
	json_count(out, "windows", tally->windows);
	json_count(out, "admitted_max", tally->admitted_max);
	json_count(out, "overshoot", tally->overshoot);
	fprintf(out, "\"undershoot_mean\": %.9f, ", tally->undershoot_mean);
	json_count(out, "clock_disagreements", tally->disagreements);
	json_count(out, "clock_step_us", report->clock_step_us);
	fprintf(out, "\"verdict\": \"%s\"}\n", verdict);
}
