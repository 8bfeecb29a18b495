/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * metrics.c -- counters for the host, as numbers and as a text for Prometheus.
 *
 * Each counter has its name, its type and its help in one table: those of shards/counters.h
 * and the two here.  docs/metrics.md has them all, and tests/unit/metrics_test.c holds it to
 * them.
 *
 * Threads   Any.  All is read under the runtime's lock, which no ask takes.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/check.h"
#include "face/guard.h"
#include "face/seat.h"
#include "face/sized.h"
#include "face/tenants.h"
#include "face/text.h"

static_assert(SCORE_WHYS <= GALE_WHY_ROOM, "a host has room for each");

/* ---- Numbers ---------------------------------------------------------------------- */

static uint64_t seats_counted(const struct gale_runtime *runtime,
                              enum seat_counter counter) ON(runtime->lock)
{
	const struct list *seats = &runtime->locked.seats;
	uint64_t sum = runtime->locked.counted[counter];

	for (const struct list *at = seats->next; at != seats; at = at->next)
		sum += load_relaxed(
		    &list_item(at, struct gale_seat, place)->counters[counter]);
	return sum;
}

static uint64_t shards_counted(const struct gale_runtime *runtime,
                               enum shard_counter counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < runtime->shard_count; i++)
		sum += load_relaxed(&runtime->shards[i].lessor.counters[counter]);
	return sum;
}

/* Of the answers to asks, of which the text tells by limiter. */
#define ASK_COUNTERS(X)                                                                \
	X("asks_allowed", score_total(&all, GALE_ALLOW))                               \
	X("asks_denied", score_total(&all, GALE_DENY))                                 \
	X("asks_dropped", all.dropped)                                                 \
	X("allowed_from_credit", all.counts[GALE_WHY_CREDIT][1])                       \
	X("refused_from_memory", all.counts[GALE_WHY_SPENT][0])

#define ONE(...) +1
#define METRICS (0 ASK_COUNTERS(ONE) SEAT_COUNTERS(ONE) SHARD_COUNTERS(ONE))

static void fill_metrics(struct gale_runtime *runtime, struct gale_metric *metrics)
    ON(runtime->lock)
{
	struct score_sum all;
	size_t i = 0;

	score_read_all(runtime, &all);
#define X(name, value) metrics[i++] = (struct gale_metric){ name, value };
	ASK_COUNTERS(X)
#undef X
#define X(id, name, help)                                                              \
	metrics[i++] = (struct gale_metric){ name, seats_counted(runtime, COUNT_##id) };
	SEAT_COUNTERS(X)
#undef X
#define X(id, name, help)                                                              \
	metrics[i++] =                                                                 \
	    (struct gale_metric){ name, shards_counted(runtime, COUNT_##id) };
	SHARD_COUNTERS(X)
#undef X
}

size_t gale_metrics_sized(struct gale_runtime *runtime, struct gale_metric *ret_metrics,
                          size_t metric_bytes, size_t max)
{
	struct gale_metric metrics[METRICS];
	char *at = (char *)ret_metrics;

	if (!runtime || !lifeline_holds(&runtime->lifeline))
		return 0;
	lock_take(&runtime->lock);
	fill_metrics(runtime, metrics);
	lock_drop(&runtime->lock);
	if (!ret_metrics)
		return METRICS;
	for (size_t i = 0; i < METRICS && i < max; i++, at += metric_bytes)
		if (!sized_write(at, metric_bytes, &metrics[i], sizeof(metrics[i])))
			return 0;
	return METRICS;
}

static void fill_counts(const struct score_sum *sum, struct gale_limiter_counts *counts)
{
	counts->allowed = score_total(sum, GALE_ALLOW);
	counts->denied = score_total(sum, GALE_DENY);
	counts->dropped = sum->dropped;
	for (unsigned why = 0; why < SCORE_WHYS; why++) {
		counts->denied_by[why] = sum->counts[why][0];
		counts->allowed_by[why] = sum->counts[why][1];
	}
}

enum gale_err gale_limiter_stats_sized(struct gale_limiter *limiter,
                                       struct gale_limiter_counts *ret_stats,
                                       size_t stats_bytes)
{
	struct gale_limiter_counts known = { 0 };
	struct gale_runtime *runtime;
	struct score_sum sum;

	if (!limiter || !handle_is_open(&limiter->handle, limiter->handle.runtime))
		return GALE_ERR_LIMITER;
	if (!ret_stats)
		return GALE_ERR_RET;
	runtime = limiter->handle.runtime;
	if (!lifeline_holds(&runtime->lifeline))
		return GALE_ERR_FORKED;
	lock_take(&runtime->lock);
	score_read(runtime, limiter, &sum);
	lock_drop(&runtime->lock);
	fill_counts(&sum, &known);
	return sized_write(ret_stats, stats_bytes, &known, sizeof(known))
	           ? GALE_ERR_OK
	           : GALE_ERR_SIZE;
}

/* ---- Limiters --------------------------------------------------------------------- */

#define REQUESTS "gale_requests_total"
#define DROPPED "gale_requests_dropped_total"

/* A count that is still 0 is told if it is one of the usual: what a rate is taken of must
 * be there before it rises. */
static bool is_told(unsigned why, uint64_t count)
{
	return count > 0 || why == GALE_WHY_RULE || why == GALE_WHY_CREDIT ||
	       why == GALE_WHY_SPENT;
}

static void say_requests(struct text *text, const char *limiter,
                         const struct score_sum *sum)
{
	static const char *const results[] = { "denied", "allowed" };

	for (unsigned allowed = 0; allowed < 2; allowed++)
		for (unsigned why = 0; why < SCORE_WHYS; why++) {
			uint64_t count = sum->counts[why][allowed];

			if (!is_told(why, count))
				continue;
			text_series(text, REQUESTS, "limiter", limiter);
			text_say(text, "\",result=\"%s\",why=\"%s\"} %" PRIu64 "\n",
			         results[allowed], gale_why_name(why), count);
		}
}

static void say_dropped(struct text *text, const char *limiter,
                        const struct score_sum *sum)
{
	text_value(text, DROPPED, "limiter", limiter, sum->dropped);
}

typedef void say_name_fn(struct text *text, const char *limiter,
                         const struct score_sum *sum);

static void say_names(struct text *text, const struct gale_runtime *runtime,
                      say_name_fn *say_name) ON(runtime->lock)
{
	const struct gale_limiter *limiter = score_next_name(runtime, 0);

	for (; limiter;
	     limiter = score_next_name(runtime, limiter->locked.number + 1)) {
		const struct lender *lender = &limiter->lender;
		char name[GALE_NAME_MAX + 1] = "";
		struct score_sum sum;

		memcpy(name, lender->name, lender->name_len);
		score_read_name(runtime, limiter, &sum);
		say_name(text, name, &sum);
	}
}

static void say_limiters(struct text *text, const struct gale_runtime *runtime)
    ON(runtime->lock)
{
	text_family(text, REQUESTS, "counter",
	            "Asks that were answered, by limiter, result and reason.");
	say_names(text, runtime, say_requests);
	text_family(text, DROPPED, "counter",
	            "Asks whose seat left before their answer was told.");
	say_names(text, runtime, say_dropped);
}

/* ---- The runtime ------------------------------------------------------------------ */

static void say_counter(struct text *text, const char *name, const char *help,
                        uint64_t count)
{
	text_say(text,
	         "# HELP gale_%s_total %s\n# TYPE gale_%s_total counter\n"
	         "gale_%s_total %" PRIu64 "\n",
	         name, help, name, name, count);
}

static void say_runtime(struct text *text, const struct gale_runtime *runtime)
    ON(runtime->lock)
{
#define X(id, name, help)                                                              \
	say_counter(text, name, help, seats_counted(runtime, COUNT_##id));
	SEAT_COUNTERS(X)
#undef X
#define X(id, name, help)                                                              \
	say_counter(text, name, help, shards_counted(runtime, COUNT_##id));
	SHARD_COUNTERS(X)
#undef X
}

/* ---- Stores ----------------------------------------------------------------------- */

/* The fields of gale_counts. */
#define STORE_COUNTERS(X)                                                              \
	X(keys, "gale_store_keys", "gauge", "Keys that an embedded store holds.")      \
	X(steps, "gale_store_steps_total", "counter", "Decisions of the store.")       \
	X(full, "gale_store_full_total", "counter",                                    \
	  "Asks refused by an embedded store, as it held max_keys keys.")              \
	X(memory, "gale_store_memory_total", "counter",                                \
	  "Asks refused by an embedded store, as there was no memory.")                \
	X(changed, "gale_store_changed_total", "counter",                              \
	  "Asks refused as the key lived under another kind of rule.")                 \
	X(broken, "gale_store_broken_total", "counter",                                \
	  "Asks refused as a strategy's ruling was out of its bounds.")                \
	X(expired, "gale_store_expired_total", "counter",                              \
	  "Keys that an embedded store dropped, as they were as good as new.")         \
	X(leases, "gale_store_leases_total", "counter", "Leases that it granted.")     \
	X(returns, "gale_store_returns_total", "counter",                              \
	  "Leases of which units were given back to it.")                              \
	X(round_trips, "gale_store_round_trips_total", "counter",                      \
	  "Messages that the server answered, of up to 64 asks each.")                 \
	X(connects, "gale_store_connects_total", "counter",                            \
	  "Connections to the server that were ready for use.")                        \
	X(failures, "gale_store_failures_total", "counter",                            \
	  "Ends of connections to the server, and attempts in vain.")                  \
	X(wrong, "gale_store_wrong_total", "counter",                                  \
	  "Answers of the server that could not be true.")                             \
	X(contended, "gale_store_contended_total", "counter",                          \
	  "Asks given up after 64 tries, as others kept changing the key.")            \
	X(quarantined, "gale_store_quarantined_total", "counter",                      \
	  "Asks that got nothing, as the server may have forgotten what it granted.")  \
	X(overloaded, "gale_store_overloaded_total", "counter",                        \
	  "Asks not sent, as the server was not expected to answer in time.")

/* More than one handle may be of one store; its counts are told once. */
static bool is_counted_before(const struct gale_store *first,
                              const struct gale_store *store)
{
	for (; first != store; first = first->next)
		if (first->inner == store->inner)
			return true;
	return false;
}

static void add_counts(struct gale_counts *sum, const struct gale_counts *counts)
{
#define X(field, name, type, help) sum->field += counts->field;
	STORE_COUNTERS(X)
#undef X
}

/* Of all stores that have the label of the first of these. */
static struct gale_counts counts_of_label(const struct gale_store *first)
{
	struct gale_counts sum = { 0 };

	for (const struct gale_store *at = first; at; at = at->next) {
		struct gale_counts counts = { 0 };

		if (strcmp(at->label, first->label) != 0 ||
		    is_counted_before(first, at))
			continue;
		at->inner->ops->stats(at->inner, &counts);
		add_counts(&sum, &counts);
	}
	return sum;
}

static bool is_labelled_before(const struct gale_store *first,
                               const struct gale_store *store)
{
	for (; first != store; first = first->next)
		if (strcmp(first->label, store->label) == 0)
			return true;
	return false;
}

static void say_stores(struct text *text, const struct gale_runtime *runtime)
    ON(runtime->lock)
{
	const struct gale_store *first = runtime->locked.stores;

#define X(field, name, type, help)                                                     \
	text_family(text, name, type, help);                                           \
	for (const struct gale_store *at = first; at; at = at->next)                   \
		if (!is_labelled_before(first, at))                                    \
			text_value(text, name, "store", at->label,                     \
			           counts_of_label(at).field);
	STORE_COUNTERS(X)
#undef X
}

/* ---- Guards ----------------------------------------------------------------------- */

/* The fields of gale_guard_counts that are one number. */
#define GUARD_COUNTERS(X)                                                              \
	X(limit, "gale_guard_limit", "gauge", "Slots of the ceiling in force.")        \
	X(estimate, "gale_guard_estimate", "gauge",                                    \
	  "Slots that the backend can bear, as far as it was learned.")                \
	X(in_flight, "gale_guard_in_flight", "gauge",                                  \
	  "Slots that are taken, those that seats keep included.")                     \
	X(kept, "gale_guard_kept", "gauge",                                            \
	  "Free slots that seats keep for their next calls.")                          \
	X(entered, "gale_guard_entered_total", "counter", "Calls that entered.")       \
	X(ok, "gale_guard_ok_total", "counter", "Slots of calls that ended well.")     \
	X(dropped, "gale_guard_dropped_total", "counter",                              \
	  "Slots of calls that timed out, or that the backend refused.")               \
	X(ignored, "gale_guard_ignored_total", "counter",                              \
	  "Slots of calls whose end says nothing of the backend.")                     \
	X(overdue, "gale_guard_overdue_total", "counter",                              \
	  "Calls that ended, and had taken longer than overdue_us.")                   \
	X(overdue_now, "gale_guard_overdue_slots", "gauge",                            \
	  "Slots or more that are taken by such calls now.")                           \
	X(exits_without_entry, "gale_guard_exits_without_entry_total", "counter",      \
	  "Exits that would have given back more slots than were taken.")              \
	X(share, "gale_guard_share", "gauge",                                          \
	  "Slots that this node has of its fleet's ceiling.")                          \
	X(fleet_limit, "gale_guard_fleet_limit", "gauge",                              \
	  "Slots of the fleet's ceiling.")                                             \
	X(fleet_nodes, "gale_guard_fleet_nodes", "gauge",                              \
	  "Nodes that share the ceiling.")                                             \
	X(fleet_in_flight, "gale_guard_fleet_in_flight", "gauge",                      \
	  "Slots that are taken in the fleet, as its nodes have reported.")            \
	X(cut_off, "gale_guard_cut_off", "gauge",                                      \
	  "1 while this node has no share: it has lost touch, or has got none yet.")   \
	X(beats, "gale_guard_beats_total", "counter",                                  \
	  "Reports to the fleet's store that were answered.")                          \
	X(beats_lost, "gale_guard_beats_lost_total", "counter",                        \
	  "Reports to the fleet's store that were not answered.")                      \
	X(fences, "gale_guard_fences_total", "counter",                                \
	  "How often this node has lost its share for want of an answer.")

#define REFUSED "gale_guard_refused_total"

static void say_refused(struct text *text, const struct gale_guard *guard)
{
	struct gale_guard_counts counts = { 0 };

	guard_fill_counts(guard, &counts);
	for (unsigned why = 0; why < GALE_WHY_ROOM; why++) {
		if (counts.refused_by[why] == 0)
			continue;
		text_series(text, REFUSED, "guard", guard->name);
		text_say(text, "\",why=\"%s\"} %" PRIu64 "\n",
		         gale_why_name((enum gale_why)why), counts.refused_by[why]);
	}
}

static void say_guards(struct text *text, const struct gale_runtime *runtime)
    ON(runtime->lock)
{
	const struct gale_guard *guard;

#define X(field, metric, type, help)                                                   \
	text_family(text, metric, type, help);                                         \
	for (guard = guards_first(runtime); guard;                                     \
	     guard = guards_next(runtime, guard)) {                                    \
		struct gale_guard_counts counts = { 0 };                               \
		guard_fill_counts(guard, &counts);                                     \
		text_value(text, metric, "guard", guard->name, counts.field);          \
	}
	GUARD_COUNTERS(X)
#undef X
	text_family(text, REFUSED, "counter",
	            "Calls that were refused, by guard and by what limited them.");
	for (guard = guards_first(runtime); guard; guard = guards_next(runtime, guard))
		say_refused(text, guard);
}

enum gale_err gale_metrics_write(struct gale_runtime *runtime, struct gale_sink *sink)
{
	struct text text = { .sink = sink, .works = true, .length = 0 };

	if (!runtime)
		return GALE_ERR_RUNTIME;
	if (!lifeline_holds(&runtime->lifeline))
		return GALE_ERR_FORKED;
	if (!sink || !sink->write)
		return GALE_ERR_SINK;
	lock_take(&runtime->lock);
	say_limiters(&text, runtime);
	say_runtime(&text, runtime);
	say_stores(&text, runtime);
	say_guards(&text, runtime);
	budgets_say(&text, runtime);
	text_end(&text);
	lock_drop(&runtime->lock);
	return text.works ? GALE_ERR_OK : GALE_ERR_SINK;
}
