/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* guard_report.c -- columns for people, one object for programs. */
#include "tools/guard_report.h"

#include <inttypes.h>
#include <string.h>

#include "tools/text.h"

#define SHARES_SHOWN 8 /* of nodes, one by one */

/* What a guard refuses for; all else is "other". */
static const enum gale_why reasons[] = {
	GALE_WHY_SHARE, GALE_WHY_ESTIMATE, GALE_WHY_CEILING,
	GALE_WHY_CLASS, GALE_WHY_PROBE,    GALE_WHY_CUT_OFF,
};

#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

/* ---- Sums ------------------------------------------------------------------------ */

static uint64_t seen(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_node(struct guard_sums *sums, const struct guarded *node)
{
	sums->asked += seen(&node->asked);
	sums->entered += seen(&node->entered);
	sums->done += seen(&node->done);
	sums->aborted += seen(&node->aborted);
	sums->round_trips_us += seen(&node->round_trips_us);
	sums->cuts += seen(&node->cuts);
	sums->fences += seen(&node->fences);
	for (int why = 0; why < GALE_WHY_ROOM; why++) {
		sums->refused += seen(&node->refused_by[why]);
		sums->refused_by[why] += seen(&node->refused_by[why]);
	}
}

void guard_view_sum(struct guard_view *view)
{
	view->sums = (struct guard_sums){ 0 };
	for (uint32_t i = 0; i < view->nodes; i++)
		add_node(&view->sums, &view->each[i]);
}

uint64_t guard_overshoot(const struct guard_view *view)
{
	uint64_t worst = view->backend.all.worst;

	return worst > view->flags->limit ? worst - view->flags->limit : 0;
}

static uint64_t other_refusals(const struct guard_sums *sums)
{
	uint64_t others = sums->refused;

	for (size_t i = 0; i < REASONS; i++)
		others -= sums->refused_by[reasons[i]];
	return others;
}

static double per_second(uint64_t count, double seconds)
{
	return seconds > 0 ? (double)count / seconds : 0;
}

static double mean_ms(const struct guard_sums *sums)
{
	return sums->done ? (double)sums->round_trips_us / (double)sums->done / 1e3 : 0;
}

static struct guard_sums since(const struct guard_view *view,
                               const struct guard_view *before)
{
	struct guard_sums sums = view->sums;

	sums.done -= before->sums.done;
	sums.refused -= before->sums.refused;
	sums.round_trips_us -= before->sums.round_trips_us;
	for (int why = 0; why < GALE_WHY_ROOM; why++)
		sums.refused_by[why] -= before->sums.refused_by[why];
	return sums;
}

/* ---- Lines ----------------------------------------------------------------------- */

static void say_backend(const struct guard_flags *flags, FILE *out)
{
	struct text places, takes, rate;

	fprintf(
	    out,
	    "The backend works on %s calls at a time, for %s each: on %s a "
	    "second at most%s.\n",
	    text_count(&places, flags->places), text_duration(&takes, flags->takes_us),
	    text_count(&rate, flags->places * 1000000 / flags->takes_us),
	    flags->script == GUARD_BENDS ? ", and on a fifth more while it bends" : "");
}

void guard_report_head(const struct guard_flags *flags, FILE *out)
{
	uint64_t nodes = flags->processes * flags->nodes;
	struct text_long store;

	fprintf(out,
	        "%" PRIu64 " nodes in %" PRIu64 " process%s, law %s, at most %" PRIu64
	        " calls in flight, ",
	        nodes, flags->processes, flags->processes > 1 ? "es" : "",
	        guard_flags_law(flags), flags->limit);
	if (flags->store)
		fprintf(out, "shared out by %s.\n", text_url(&store, flags->store));
	else
		fprintf(out, "of which each node has a fixed part:\n"
		             "each guard is on its own.\n");
	say_backend(flags, out);
	fprintf(out,
	        "\n   time  calls/s  done/s  ms/call  in flight  worst  limits of the "
	        "nodes; refused a second\n");
}

/* Of a few each, of many the least and the most. */
static void say_limits(const struct guard_view *view, FILE *out)
{
	uint64_t sum = 0, least = UINT64_MAX, most = 0, fleet_limit = 0;

	for (uint32_t i = 0; i < view->nodes; i++) {
		uint64_t limit = seen(&view->each[i].limit);

		sum += limit;
		if (seen(&view->each[i].fleet_limit) > 0)
			fleet_limit = seen(&view->each[i].fleet_limit);
		least = limit < least ? limit : least;
		most = limit > most ? limit : most;
		if (view->nodes <= SHARES_SHOWN)
			fprintf(out, "%s%" PRIu64, i > 0 ? "+" : "", limit);
	}
	if (view->nodes > SHARES_SHOWN)
		fprintf(out, "%" PRIu64 " to %" PRIu64, least, most);
	fprintf(out, " = %" PRIu64, sum);
	if (view->flags->store)
		fprintf(out, " of %" PRIu64, fleet_limit);
}

static void say_refusals(const struct guard_sums *sums, double seconds, FILE *out)
{
	uint64_t others = other_refusals(sums);
	const char *before = "; ";

	for (size_t i = 0; i < REASONS; i++) {
		uint64_t count = sums->refused_by[reasons[i]];

		if (count == 0)
			continue;
		fprintf(out, "%s%s %.0f", before, gale_why_name(reasons[i]),
		        per_second(count, seconds));
		before = ", ";
	}
	if (others > 0)
		fprintf(out, "%sother %.0f", before, per_second(others, seconds));
}

void guard_report_line(const struct guard_view *view, const struct guard_view *before,
                       FILE *out)
{
	struct guard_sums sums = since(view, before);
	double seconds = view->elapsed_s - before->elapsed_s;

	fprintf(
	    out, "%5.1f s  %7" PRIu64 "  %6.0f  %7.1f  %9" PRIu64 "  %5" PRIu64 "  ",
	    view->elapsed_s, view->calls_per_s, per_second(sums.done, seconds),
	    mean_ms(&sums), view->backend.all.in_flight, view->backend.recent_worst);
	say_limits(view, out);
	say_refusals(&sums, seconds, out);
	fprintf(out, "\n");
	fflush(out);
}

/* ---- The end --------------------------------------------------------------------- */

void guard_report_table(const struct guard_view *view, FILE *out)
{
	const struct guard_sums *sums = &view->sums;
	uint64_t overshoot = guard_overshoot(view), others = other_refusals(sums);
	struct text a, b, c;

	fprintf(out,
	        "\n%s: at most %" PRIu64 " calls were in flight at one instant, as the "
	        "backend counted them; the limit is %" PRIu64 "\n\n",
	        overshoot > 0 ? "overshot" : "held", view->backend.all.worst,
	        view->flags->limit);
	fprintf(out, "  calls      %s; %s entered, %s refused\n",
	        text_count(&a, sums->asked), text_count(&b, sums->entered),
	        text_count(&c, sums->refused));
	fprintf(out, "  done       %s, %.0f a second; %.1f ms each\n",
	        text_count(&a, sums->done), per_second(sums->done, view->elapsed_s),
	        mean_ms(sums));
	if (sums->aborted > 0)
		fprintf(out, "  aborted    %s\n", text_count(&a, sums->aborted));
	for (size_t i = 0; i < REASONS; i++)
		if (sums->refused_by[reasons[i]] > 0)
			fprintf(out, "  refused    %s: %s\n",
			        text_count(&a, sums->refused_by[reasons[i]]),
			        gale_why_text(reasons[i]));
	if (others > 0)
		fprintf(out, "  refused    %s: for other reasons\n",
		        text_count(&a, others));
}

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

static void json_setup(const struct guard_flags *flags, FILE *out)
{
	struct text_long store;

	json_text(out, "law", guard_flags_law(flags));
	json_text(out, "backend", guard_flags_script(flags));
	json_text(out, "store", flags->store ? text_url(&store, flags->store) : "none");
	json_count(out, "processes", flags->processes);
	json_count(out, "nodes", flags->nodes);
	json_count(out, "limit", flags->limit);
	json_count(out, "places", flags->places);
	json_count(out, "takes_us", flags->takes_us);
}

void guard_report_json(const struct guard_view *view, FILE *out)
{
	const struct guard_sums *sums = &view->sums;
	uint64_t overshoot = guard_overshoot(view);

	fprintf(out, "{");
	json_setup(view->flags, out);
	fprintf(out, "\"seconds\": %.6f, ", view->elapsed_s);
	json_count(out, "calls", sums->asked);
	json_count(out, "entered", sums->entered);
	json_count(out, "done", sums->done);
	json_count(out, "aborted", sums->aborted);
	json_count(out, "refused", sums->refused);
	fprintf(out, "\"refused_by\": {");
	for (size_t i = 0; i < REASONS; i++)
		json_count(out, gale_why_name(reasons[i]),
		           sums->refused_by[reasons[i]]);
	fprintf(out, "\"other\": %" PRIu64 "}, ", other_refusals(sums));
	fprintf(out, "\"done_per_second\": %.3f, ",
	        per_second(sums->done, view->elapsed_s));
	fprintf(out, "\"call_ms_mean\": %.3f, ", mean_ms(sums));
	json_count(out, "cuts", sums->cuts);
	json_count(out, "fences", sums->fences);
	json_count(out, "backend_begun", view->backend.all.begun);
	json_count(out, "in_flight_worst", view->backend.all.worst);
	json_count(out, "overshoot", overshoot);
	fprintf(out, "\"verdict\": \"%s\"}\n", overshoot > 0 ? "overshot" : "held");
}
