/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * oracle.c -- each rule as its page says it, in fractions and lists.
 *
 * Names follow the page: L limit, P period, T = P/L one unit's time.  Every strategy
 * has an _ask, which decides and, if told to spend, books; a peek is an _ask of one
 * unit that does not spend.  Nothing is rounded before it is written into an answer.
 *
 * Spec  engine/README.md
 */
#include "tests/model/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "tests/model/rational.h"

#define LAST_INSTANT_US ((wide)1 << 52)
#define LONGEST_SPAN_US ((wide)1 << 50)
#define DAY_US ((wide)86400 * 1000000)
#define GAPS_KEPT 4

/* Units admitted at an instant (sliding log) or in a bucket (sliding window). */
struct admission {
	wide at;
	wide units;
};

struct history {
	struct admission *list; /* oldest first */
	size_t count;
	size_t room;
};

/* A stretch of time, [from, to). */
struct stretch {
	struct rational from;
	struct rational to;
};

struct oracle {
	struct gale_rule rule;

	/* fixed window, quota, token budget */
	wide start;
	wide used;

	/* sliding window, sliding log */
	struct history past;

	/* gcra */
	struct rational tat;

	/* token bucket: what was in it at last_us */
	struct rational tokens;
	wide last_us;

	/* pacer */
	struct rational water;
	struct rational queue_end; /* F */
	struct stretch gaps[GAPS_KEPT + 1];
	size_t gap_count;
};

static wide min_of(wide a, wide b)
{
	return a < b ? a : b;
}

static wide max_of(wide a, wide b)
{
	return a > b ? a : b;
}

static wide floor_div(wide a, wide b)
{
	return rat_floor(rat_ratio(a, b));
}

static uint64_t narrow(wide n)
{
	gale_assert(n >= 0);
	gale_assert(n < (wide)1 << 64);
	return (uint64_t)n;
}

static wide instant(uint64_t now_us)
{
	return min_of((wide)now_us, LAST_INSTANT_US);
}

/* T, and n of them. */
static struct rational unit_time(const struct oracle *o)
{
	return rat_ratio((wide)o->rule.period_us, (wide)o->rule.limit);
}

static struct rational units_time(const struct oracle *o, wide units)
{
	return rat_mul(rat_whole(units), unit_time(o));
}

/* A span counted in units' times: how many fit in. */
static struct rational in_units(const struct oracle *o, struct rational span)
{
	return rat_div(span, unit_time(o));
}

static struct gale_answer verdict(bool allowed)
{
	return (struct gale_answer){ .verdict = allowed ? GALE_ALLOW : GALE_DENY,
		                     .why = GALE_WHY_RULE };
}

/* ---- history ------------------------------------------------------------------- */

static void history_add(struct history *h, wide at, wide units)
{
	if (h->count == h->room) {
		h->room = 2 * h->room + 16;
		h->list = realloc(h->list, h->room * sizeof(h->list[0]));
		gale_assert(h->list != NULL);
	}
	h->list[h->count++] = (struct admission){ at, units };
}

/* Forgets what was admitted before this. */
static void history_forget(struct history *h, wide before)
{
	size_t gone = 0;

	while (gone < h->count && h->list[gone].at < before)
		gone++;
	h->count -= gone;
	if (gone > 0 && h->count > 0)
		memmove(h->list, h->list + gone, h->count * sizeof(h->list[0]));
}

/* The units admitted from first to last, both included. */
static wide history_sum(const struct history *h, wide first, wide last)
{
	wide sum = 0;

	for (size_t i = 0; i < h->count; i++)
		if (h->list[i].at >= first && h->list[i].at <= last)
			sum += h->list[i].units;
	return sum;
}

static wide history_newest(const struct history *h)
{
	return h->count > 0 ? h->list[h->count - 1].at : 0;
}

/* ---- calendar ------------------------------------------------------------------ */

struct window {
	wide start;
	wide end;
};

static bool year_is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
	static const int days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return days[month] + (month == 1 && year_is_leap(year));
}

/* The month that this day, counted from 1970-01-01, falls in; in days.  No local time
 * is earlier than 1969. */
static struct window month_of_day(wide day)
{
	int year = 1969;
	int month = 0;
	wide first = -365;

	while (first + 365 + year_is_leap(year) <= day)
		first += 365 + year_is_leap(year++);
	while (first + days_in_month(year, month) <= day)
		first += days_in_month(year, month++);
	return (struct window){ first, first + days_in_month(year, month) };
}

/* 0 is Sunday; 1970-01-01 was a Thursday. */
static int weekday_of_day(wide day)
{
	return (int)(day + 4 - 7 * floor_div(day + 4, 7));
}

static struct window week_of_day(wide day, uint32_t first_weekday)
{
	while (weekday_of_day(day) != (int)first_weekday)
		day--;
	return (struct window){ day, day + 7 };
}

static struct window calendar_window(const struct gale_rule *rule, wide now)
{
	wide offset = (wide)rule->utc_offset_minutes * 60 * 1000000;
	wide day = floor_div(now + offset, DAY_US);
	struct window days = { day, day + 1 };

	if (rule->cadence == GALE_MONTHLY)
		days = month_of_day(day);
	else if (rule->cadence == GALE_WEEKLY)
		days = week_of_day(day, rule->first_weekday);
	return (struct window){ days.start * DAY_US - offset,
		                days.end * DAY_US - offset };
}

/* ---- fixed window, quota, token budget ----------------------------------------- */

static struct window periodic_window(wide anchor, wide period, wide now)
{
	wide start = anchor + floor_div(now - anchor, period) * period;

	return (struct window){ start, start + period };
}

static struct window window_of(const struct gale_rule *rule, wide now)
{
	struct window w;

	if (rule->kind != GALE_RULE_QUOTA)
		w = periodic_window(0, (wide)rule->period_us, now);
	else if (rule->cadence == GALE_ANCHORED)
		w = periodic_window((wide)rule->anchor_us, (wide)rule->period_us, now);
	else
		w = calendar_window(rule, now);
	w.start = max_of(w.start, 0);
	return w;
}

/* Moves *now forward into the stored window if it lies before. */
static struct window window_now(const struct oracle *o, wide *now)
{
	struct window w = window_of(&o->rule, *now);

	if (w.start >= o->start)
		return w;
	*now = o->start;
	return window_of(&o->rule, *now);
}

static struct gale_answer window_ask(struct oracle *o, wide now, wide cost, bool spend)
{
	bool budget = o->rule.kind == GALE_RULE_TOKEN_BUDGET;
	wide limit = (wide)o->rule.limit;
	struct window w = window_now(o, &now);
	wide used = w.start == o->start ? o->used : 0;
	bool allowed = budget ? used < limit : used + cost <= limit;
	struct gale_answer answer = verdict(allowed);

	if (allowed && spend) {
		used = min_of(used + cost, (wide)GALE_UNITS_MAX);
		o->start = w.start;
		o->used = used;
	}
	answer.limit = narrow(limit);
	answer.remaining = narrow(max_of(0, limit - used));
	answer.reset_after_us = narrow(w.end - now);
	if (!allowed && !budget && cost > limit)
		answer.retry_after_us = GALE_NEVER;
	else if (!allowed)
		answer.retry_after_us = narrow(w.end - now);
	return answer;
}

static struct gale_outlook window_forecast(const struct oracle *o, wide now, wide cost)
{
	struct window w = window_now(o, &now);
	wide used = w.start == o->start ? o->used : 0;
	wide left = max_of(0, (wide)o->rule.limit - used);
	struct rational calls = rat_ratio(left, cost);
	wide wait = used > 0 ? w.end - now : 0;

	return (struct gale_outlook){
		.spendable_now =
		    narrow(o->rule.kind == GALE_RULE_TOKEN_BUDGET ? rat_ceil(calls)
		                                                  : rat_floor(calls)),
		.next_after_us = narrow(wait),
		.full_after_us = narrow(wait),
	};
}

static uint64_t window_expires(const struct oracle *o)
{
	return o->used > 0 ? narrow(window_of(&o->rule, o->start).end) : 0;
}

/* ---- sliding window ------------------------------------------------------------ */

struct slide {
	wide now;
	wide tick;
	struct rational width;    /* of a bucket */
	struct rational tick_end; /* (tick + 1) * w */
	struct rational fade;     /* old * weight */
	wide old;
	struct rational estimate;
};

static struct slide slide_at(const struct oracle *o, wide now)
{
	wide buckets = (wide)o->rule.buckets;
	wide period = (wide)o->rule.period_us;
	wide newest = history_newest(&o->past);
	struct slide s = { .now = now, .width = rat_ratio(period, buckets) };
	struct rational weight;

	s.tick = floor_div(wide_mul(now, buckets), period);
	if (s.tick < newest) {
		s.tick = newest;
		s.now = rat_ceil(rat_mul(rat_whole(newest), s.width));
	}
	s.tick_end = rat_mul(rat_whole(s.tick + 1), s.width);
	weight = rat_div(rat_sub(s.tick_end, rat_whole(s.now)), s.width);
	s.old = history_sum(&o->past, s.tick - buckets, s.tick - buckets);
	s.fade = rat_mul(rat_whole(s.old), weight);
	s.estimate = rat_add(
	    s.fade, rat_whole(history_sum(&o->past, s.tick - buckets + 1, s.tick)));
	return s;
}

static wide slide_until(const struct slide *s, struct rational when)
{
	return rat_ceil(rat_sub(when, rat_whole(s->now)));
}

static wide slide_full_after(const struct oracle *o, const struct slide *s)
{
	return slide_until(s, rat_add(s->tick_end, rat_whole((wide)o->rule.period_us)));
}

static wide slide_left(const struct oracle *o, struct rational estimate)
{
	return max_of(0, rat_floor(rat_sub(rat_whole((wide)o->rule.limit), estimate)));
}

static wide slide_retry(const struct slide *s, struct rational lacking)
{
	if (s->old > 0 && !rat_less(s->fade, lacking))
		return max_of(1, rat_ceil(rat_div(rat_mul(lacking, s->width),
		                                  rat_whole(s->old))));
	return max_of(1, slide_until(s, s->tick_end));
}

static struct gale_answer slide_ask(struct oracle *o, wide now, wide cost, bool spend)
{
	struct rational limit = rat_whole((wide)o->rule.limit);
	struct slide s = slide_at(o, now);
	struct rational after = rat_add(s.estimate, rat_whole(cost));
	bool allowed = !rat_less(limit, after);
	struct gale_answer answer = verdict(allowed);

	if (allowed && spend) {
		history_add(&o->past, s.tick, cost);
		history_forget(&o->past, s.tick - (wide)o->rule.buckets);
	}
	answer.limit = o->rule.limit;
	answer.remaining = narrow(slide_left(o, allowed && spend ? after : s.estimate));
	answer.reset_after_us = narrow(slide_full_after(o, &s));
	if (!allowed && cost > (wide)o->rule.limit)
		answer.retry_after_us = GALE_NEVER;
	else if (!allowed)
		answer.retry_after_us = narrow(slide_retry(&s, rat_sub(after, limit)));
	return answer;
}

static struct gale_outlook slide_forecast(const struct oracle *o, wide now, wide cost)
{
	struct slide s = slide_at(o, now);
	bool idle = s.estimate.num == 0;

	return (struct gale_outlook){
		.spendable_now = narrow(slide_left(o, s.estimate) / cost),
		.next_after_us = idle ? 0 : narrow(slide_until(&s, s.tick_end)),
		.full_after_us = idle ? 0 : narrow(slide_full_after(o, &s)),
	};
}

static uint64_t slide_expires(const struct oracle *o)
{
	wide period = (wide)o->rule.period_us;
	struct rational width = rat_ratio(period, (wide)o->rule.buckets);
	wide newest = history_newest(&o->past);

	if (o->past.count == 0)
		return 0;
	return narrow(rat_ceil(
	    rat_add(rat_mul(rat_whole(newest + 1), width), rat_whole(period))));
}

/* ---- sliding log --------------------------------------------------------------- */

/* The units that count at now are those admitted after this. */
static wide log_edge(const struct oracle *o, wide now)
{
	return now - (wide)o->rule.period_us;
}

static wide log_used(const struct oracle *o, wide now)
{
	return history_sum(&o->past, log_edge(o, now) + 1, now);
}

/* The stamp of the n-th counting unit, oldest first, n from 1; none if there is none.
 */
static wide log_stamp(const struct oracle *o, wide now, wide n, wide none)
{
	for (size_t i = 0; i < o->past.count; i++) {
		const struct admission *a = &o->past.list[i];

		if (a->at <= log_edge(o, now))
			continue;
		n -= a->units;
		if (n <= 0)
			return a->at;
	}
	return none;
}

static wide log_leaves_after(const struct oracle *o, wide now, wide stamp)
{
	return stamp + (wide)o->rule.period_us - now;
}

static struct gale_answer log_ask(struct oracle *o, wide now, wide cost, bool spend)
{
	wide limit = (wide)o->rule.limit;
	wide used;
	bool allowed;
	struct gale_answer answer;

	now = max_of(now, history_newest(&o->past));
	used = log_used(o, now);
	allowed = used + cost <= limit;
	answer = verdict(allowed);
	if (allowed && spend) {
		history_forget(&o->past, log_edge(o, now) + 1);
		history_add(&o->past, now, cost);
		used += cost;
	}
	answer.limit = o->rule.limit;
	answer.remaining = narrow(limit - used);
	answer.reset_after_us =
	    narrow(log_leaves_after(o, now, log_stamp(o, now, 1, now)));
	if (used == 0 && !spend)
		answer.reset_after_us = 0;
	if (!allowed && cost > limit)
		answer.retry_after_us = GALE_NEVER;
	else if (!allowed)
		answer.retry_after_us = narrow(log_leaves_after(
		    o, now, log_stamp(o, now, used + cost - limit, now)));
	return answer;
}

static struct gale_outlook log_forecast(const struct oracle *o, wide now, wide cost)
{
	wide newest = history_newest(&o->past);
	struct gale_outlook forecast = { 0 };
	wide used;

	now = max_of(now, newest);
	used = log_used(o, now);
	forecast.spendable_now = narrow(((wide)o->rule.limit - used) / cost);
	if (used > 0) {
		wide oldest = log_stamp(o, now, 1, now);

		forecast.next_after_us = narrow(log_leaves_after(o, now, oldest));
		forecast.full_after_us = narrow(log_leaves_after(o, now, newest));
	}
	return forecast;
}

static uint64_t log_expires(const struct oracle *o)
{
	if (o->past.count == 0)
		return 0;
	return narrow(history_newest(&o->past) + (wide)o->rule.period_us);
}

/* ---- gcra ---------------------------------------------------------------------- */

/* How far the key is ahead of now: t - now. */
static struct rational gcra_ahead(const struct oracle *o, wide now)
{
	return rat_max(rat_sub(o->tat, rat_whole(now)), rat_whole(0));
}

static wide gcra_left(const struct oracle *o, struct rational ahead)
{
	struct rational tolerance = units_time(o, (wide)o->rule.burst);

	return max_of(0, rat_floor(in_units(o, rat_sub(tolerance, ahead))));
}

static struct gale_answer gcra_ask(struct oracle *o, wide now, wide cost, bool spend)
{
	struct rational tolerance = units_time(o, (wide)o->rule.burst);
	struct rational before = gcra_ahead(o, now);
	struct rational after = rat_add(before, units_time(o, cost));
	bool allowed = !rat_less(tolerance, after);
	struct rational ahead = allowed && spend ? after : before;
	struct gale_answer answer = verdict(allowed);

	if (allowed && spend)
		o->tat = rat_add(rat_whole(now), after);
	answer.limit = o->rule.burst;
	answer.remaining = narrow(gcra_left(o, ahead));
	answer.reset_after_us = narrow(rat_ceil(ahead));
	if (!allowed && cost > (wide)o->rule.burst)
		answer.retry_after_us = GALE_NEVER;
	else if (!allowed)
		answer.retry_after_us = narrow(rat_ceil(rat_sub(after, tolerance)));
	return answer;
}

static struct gale_outlook gcra_forecast(const struct oracle *o, wide now, wide cost)
{
	struct rational tolerance = units_time(o, (wide)o->rule.burst);
	struct rational ahead = gcra_ahead(o, now);
	wide left = gcra_left(o, ahead);
	struct rational next =
	    rat_add(rat_sub(ahead, tolerance), units_time(o, left + 1));

	return (struct gale_outlook){
		.spendable_now = narrow(left / cost),
		.next_after_us = ahead.num == 0 ? 0 : narrow(rat_ceil(next)),
		.full_after_us = narrow(rat_ceil(ahead)),
	};
}

static uint64_t gcra_expires(const struct oracle *o)
{
	return narrow(rat_ceil(o->tat));
}

/* ---- token bucket -------------------------------------------------------------- */

/* What is in the bucket now: L tokens have come per P, and the rest spilled over. */
static struct rational bucket_tokens(const struct oracle *o, wide now)
{
	struct rational gained = in_units(o, rat_whole(now - o->last_us));

	return rat_min(rat_whole((wide)o->rule.burst), rat_add(o->tokens, gained));
}

/* How long until there are so many. */
static wide bucket_wait(const struct oracle *o, struct rational tokens, wide wanted)
{
	struct rational lacking = rat_sub(rat_whole(wanted), tokens);

	return max_of(0, rat_ceil(rat_mul(lacking, unit_time(o))));
}

static struct gale_answer bucket_ask(struct oracle *o, wide now, wide cost, bool spend)
{
	wide capacity = (wide)o->rule.burst;
	struct rational tokens;
	bool allowed;
	struct gale_answer answer;

	now = max_of(now, o->last_us);
	tokens = bucket_tokens(o, now);
	allowed = !rat_less(tokens, rat_whole(cost));
	answer = verdict(allowed);
	if (!allowed)
		answer.retry_after_us =
		    cost > capacity ? GALE_NEVER : narrow(bucket_wait(o, tokens, cost));
	if (allowed && spend) {
		tokens = rat_sub(tokens, rat_whole(cost));
		o->tokens = tokens;
		o->last_us = now;
	}
	answer.limit = o->rule.burst;
	answer.remaining = narrow(rat_floor(tokens));
	answer.reset_after_us = narrow(bucket_wait(o, tokens, capacity));
	return answer;
}

static struct gale_outlook bucket_forecast(const struct oracle *o, wide now, wide cost)
{
	wide capacity = (wide)o->rule.burst;
	struct rational tokens = bucket_tokens(o, max_of(now, o->last_us));
	wide next = min_of(capacity, rat_floor(tokens) + 1);

	return (struct gale_outlook){
		.spendable_now = narrow(rat_floor(tokens) / cost),
		.next_after_us = narrow(bucket_wait(o, tokens, next)),
		.full_after_us = narrow(bucket_wait(o, tokens, capacity)),
	};
}

static uint64_t bucket_expires(const struct oracle *o)
{
	wide full_after = bucket_wait(o, o->tokens, (wide)o->rule.burst);

	return full_after == 0 ? 0 : narrow(o->last_us + full_after);
}

/* ---- pacer, leaky bucket ------------------------------------------------------- */

/* Water and queue, as they are at an instant. */
struct pace {
	struct rational now;
	struct rational water;
	struct rational queue_end;
};

static struct rational pacer_allowance(const struct oracle *o)
{
	return rat_ratio((wide)o->rule.allowance_permille, 1000);
}

/* How long so much water takes to leak, or how much leaks in so long. */
static struct rational pacer_leak_time(const struct oracle *o, struct rational water)
{
	if (water.num == 0)
		return rat_whole(0);
	return rat_div(rat_mul(water, unit_time(o)), pacer_allowance(o));
}

static struct rational pacer_leaked(const struct oracle *o, struct rational span)
{
	return rat_mul(in_units(o, span), pacer_allowance(o));
}

static struct pace pace_at(const struct oracle *o, wide now_us)
{
	struct rational now = rat_whole(now_us);
	struct pace p = { now, o->water, o->queue_end };

	if (!rat_less(now, o->queue_end)) {
		struct rational leaked = pacer_leaked(o, rat_sub(now, o->queue_end));

		p.water = rat_max(rat_whole(0), rat_sub(o->water, leaked));
		p.queue_end = now;
	}
	return p;
}

static struct rational pace_queue(const struct pace *p)
{
	return rat_max(rat_whole(0), rat_sub(p->queue_end, p->now));
}

/* How many units would get a place, when the next place is so far away. */
static wide pacer_places(const struct oracle *o, struct rational away)
{
	struct rational patience = rat_whole((wide)o->rule.max_wait_us);

	if (rat_less(patience, away))
		return 0;
	return rat_floor(in_units(o, rat_sub(patience, away))) + 1;
}

static wide pacer_limit(const struct oracle *o)
{
	return min_of((wide)GALE_UNITS_MAX,
	              (wide)o->rule.burst + pacer_places(o, rat_whole(0)));
}

static wide pacer_burst_left(const struct oracle *o, const struct pace *p)
{
	return rat_floor(rat_sub(rat_whole((wide)o->rule.burst), p->water));
}

static wide pacer_left(const struct oracle *o, const struct pace *p)
{
	return min_of((wide)GALE_UNITS_MAX,
	              pacer_burst_left(o, p) + pacer_places(o, pace_queue(p)));
}

static wide pacer_reset(const struct oracle *o, const struct pace *p)
{
	return rat_ceil(rat_add(pace_queue(p), pacer_leak_time(o, p->water)));
}

static struct rational gap_length(const struct stretch *gap)
{
	return rat_sub(gap->to, gap->from);
}

static void gap_remove(struct oracle *o, size_t i)
{
	o->gap_count--;
	for (; i < o->gap_count; i++)
		o->gaps[i] = o->gaps[i + 1];
}

/* The earliest gap that is still to come and long enough; gap_count if there is none.
 */
static size_t gap_find(const struct oracle *o, struct rational now,
                       struct rational span)
{
	size_t found = o->gap_count;

	for (size_t i = 0; i < o->gap_count; i++) {
		const struct stretch *gap = &o->gaps[i];

		if (rat_less(gap->from, now) || rat_less(gap_length(gap), span))
			continue;
		if (found == o->gap_count || rat_less(gap->from, o->gaps[found].from))
			found = i;
	}
	return found;
}

/* Takes the place: the front of this gap, or the end of the queue. */
static void pacer_book(struct oracle *o, struct pace *p, size_t gap,
                       struct rational span)
{
	p->water = rat_whole((wide)o->rule.burst);
	if (gap == o->gap_count) {
		p->queue_end = rat_add(p->queue_end, span);
		return;
	}
	o->gaps[gap].from = rat_add(o->gaps[gap].from, span);
	if (rat_equal(o->gaps[gap].from, o->gaps[gap].to))
		gap_remove(o, gap);
}

static struct gale_slot slot_of(const struct oracle *o, struct rational place)
{
	wide us = rat_floor(place);
	struct rational rest = rat_sub(place, rat_whole(us));
	struct rational part = rat_mul(rest, rat_whole((wide)o->rule.limit));

	gale_assert(part.den == 1);
	return (struct gale_slot){ narrow(us), narrow(part.num) };
}

/* Decides what c units would get, and changes *p and the gaps if told to spend. */
static struct gale_answer pacer_decide(struct oracle *o, struct pace *p, wide cost,
                                       bool spend)
{
	struct rational patience = rat_whole((wide)o->rule.max_wait_us);
	struct rational span = units_time(o, cost);
	struct rational after = rat_add(p->water, rat_whole(cost));
	size_t gap = gap_find(o, p->now, span);
	struct rational place = gap < o->gap_count ? o->gaps[gap].from : p->queue_end;
	struct rational delay = rat_sub(place, p->now);
	struct gale_answer answer = verdict(true);

	if (rat_less(rat_whole(LONGEST_SPAN_US), span)) {
		answer = verdict(false);
		answer.retry_after_us = GALE_NEVER;
	} else if (!rat_less(rat_whole((wide)o->rule.burst), after)) {
		if (spend)
			p->water = after;
	} else if (rat_less(patience, delay)) {
		answer = verdict(false);
		answer.retry_after_us = narrow(rat_ceil(rat_sub(delay, patience)));
	} else {
		answer.delay_ns = narrow(rat_ceil(rat_mul(delay, rat_whole(1000))));
		if (spend) {
			answer.slot = slot_of(o, place);
			pacer_book(o, p, gap, span);
		}
	}
	return answer;
}

static struct gale_answer pacer_ask(struct oracle *o, wide now, wide cost, bool spend)
{
	struct pace p = pace_at(o, now);
	struct gale_answer answer = pacer_decide(o, &p, cost, spend);

	if (answer.verdict == GALE_ALLOW && spend) {
		o->water = p.water;
		o->queue_end = p.queue_end;
	}
	answer.limit = narrow(pacer_limit(o));
	answer.remaining = narrow(pacer_left(o, &p));
	answer.reset_after_us = narrow(pacer_reset(o, &p));
	return answer;
}

static wide pacer_next(const struct oracle *o, const struct pace *p)
{
	wide target = (wide)o->rule.burst - pacer_burst_left(o, p) - 1;
	struct rational queue = pace_queue(p);

	if (queue.num > 0)
		return rat_ceil(queue);
	if (p->water.num == 0)
		return 0;
	return rat_ceil(pacer_leak_time(o, rat_sub(p->water, rat_whole(target))));
}

/* First those that the burst takes, then those that wait in line, a span apart. */
static wide pacer_calls(const struct oracle *o, const struct pace *p, wide cost)
{
	struct rational patience = rat_whole((wide)o->rule.max_wait_us);
	struct rational queue = pace_queue(p);
	struct rational span = units_time(o, cost);
	wide calls = pacer_burst_left(o, p) / cost;

	if (rat_less(rat_whole(LONGEST_SPAN_US), span))
		return 0;
	if (!rat_less(patience, queue))
		calls += rat_floor(rat_div(rat_sub(patience, queue), span)) + 1;
	return min_of(calls, (wide)GALE_UNITS_MAX);
}

static struct gale_outlook pacer_forecast(const struct oracle *o, wide now, wide cost)
{
	struct pace p = pace_at(o, now);

	return (struct gale_outlook){
		.spendable_now = narrow(pacer_calls(o, &p, cost)),
		.next_after_us = narrow(pacer_next(o, &p)),
		.full_after_us = narrow(pacer_reset(o, &p)),
	};
}

static bool gap_overlaps(const struct oracle *o, const struct stretch *place)
{
	for (size_t i = 0; i < o->gap_count; i++)
		if (rat_less(place->from, o->gaps[i].to) &&
		    rat_less(o->gaps[i].from, place->to))
			return true;
	return false;
}

static void gaps_forget(struct oracle *o, struct rational now)
{
	for (size_t i = o->gap_count; i-- > 0;)
		if (!rat_less(now, o->gaps[i].to))
			gap_remove(o, i);
}

/* The queue ends earlier: at from, and before every gap that is then its end. */
static void pacer_take_back(struct oracle *o, struct rational from, struct rational now)
{
	size_t i = 0;

	o->queue_end = from;
	while (i < o->gap_count) {
		const struct stretch *gap = &o->gaps[i];

		if (rat_equal(gap->to, o->queue_end) && !rat_less(gap->from, now)) {
			o->queue_end = gap->from;
			gap_remove(o, i);
			i = 0; /* from the start: another may now be the end */
		} else {
			i++;
		}
	}
}

/* The shortest of all, the latest of equals. */
static size_t gap_least(const struct oracle *o)
{
	size_t least = 0;

	for (size_t i = 1; i < o->gap_count; i++) {
		const struct stretch *gap = &o->gaps[i];
		int longer = rat_compare(gap_length(gap), gap_length(&o->gaps[least]));

		if (longer < 0 ||
		    (longer == 0 && rat_less(o->gaps[least].from, gap->from)))
			least = i;
	}
	return least;
}

bool oracle_cancel(struct oracle *o, uint64_t now_us, uint64_t cost,
                   struct gale_slot slot)
{
	struct rational now = rat_whole(instant(now_us));
	struct rational span = units_time(o, (wide)cost);
	struct stretch place;

	if (slot.part >= o->rule.limit)
		return false; /* no fraction that a slot of this rule has */
	place.from = rat_add(rat_whole((wide)slot.us),
	                     rat_ratio((wide)slot.part, (wide)o->rule.limit));
	place.to = rat_add(place.from, span);
	if (rat_less(rat_whole(LONGEST_SPAN_US), span))
		return false; /* nor a place that any step books */
	if (rat_less(place.from, now) || rat_less(o->queue_end, place.to) ||
	    gap_overlaps(o, &place))
		return false;

	gaps_forget(o, now);
	if (rat_equal(place.to, o->queue_end)) {
		pacer_take_back(o, place.from, now);
		return true;
	}
	o->gaps[o->gap_count++] = place;
	if (o->gap_count > GAPS_KEPT)
		gap_remove(o, gap_least(o));
	return true;
}

static uint64_t pacer_expires(const struct oracle *o)
{
	struct rational end = rat_add(o->queue_end, pacer_leak_time(o, o->water));

	for (size_t i = 0; i < o->gap_count; i++)
		end = rat_max(end, o->gaps[i].to);
	return narrow(rat_ceil(end));
}

/* ---- all of them --------------------------------------------------------------- */

struct oracle *oracle_new(const struct gale_rule *rule)
{
	struct oracle *o = calloc(1, sizeof(*o));

	gale_assert(o != NULL);
	o->rule = *rule;
	o->tat = rat_whole(0);
	o->tokens = rat_whole((wide)rule->burst);
	o->water = rat_whole(0);
	o->queue_end = rat_whole(0);
	return o;
}

void oracle_free(struct oracle *o)
{
	free(o->past.list);
	free(o);
}

void oracle_use(struct oracle *o, const struct gale_rule *rule)
{
	gale_assert(rule->kind == GALE_RULE_PACER && o->rule.kind == GALE_RULE_PACER);
	gale_assert(rule->limit == o->rule.limit && rule->burst == o->rule.burst);
	gale_assert(rule->period_us == o->rule.period_us);
	o->rule = *rule;
}

static struct gale_answer ask(struct oracle *o, wide now, wide cost, bool spend)
{
	switch (o->rule.kind) {
	case GALE_RULE_FIXED_WINDOW:
	case GALE_RULE_QUOTA:
	case GALE_RULE_TOKEN_BUDGET:
		return window_ask(o, now, cost, spend);
	case GALE_RULE_SLIDING_WINDOW:
		return slide_ask(o, now, cost, spend);
	case GALE_RULE_SLIDING_LOG:
		return log_ask(o, now, cost, spend);
	case GALE_RULE_GCRA:
		return gcra_ask(o, now, cost, spend);
	case GALE_RULE_TOKEN_BUCKET:
		return bucket_ask(o, now, cost, spend);
	case GALE_RULE_PACER:
		return pacer_ask(o, now, cost, spend);
	default:
		gale_panic(__FILE__, __LINE__, "a rule of no kind");
	}
}

struct gale_answer oracle_step(struct oracle *o, uint64_t now_us, uint64_t cost)
{
	return ask(o, instant(now_us), (wide)cost, /* spend: */ true);
}

struct gale_answer oracle_peek(const struct oracle *o, uint64_t now_us)
{
	struct oracle copy =
	    *o; /* an ask that does not spend leaves even this as it is */

	return ask(&copy, instant(now_us), 1, /* spend: */ false);
}

struct gale_outlook oracle_forecast(const struct oracle *o, uint64_t now_us,
                                    uint64_t cost)
{
	wide now = instant(now_us);

	switch (o->rule.kind) {
	case GALE_RULE_FIXED_WINDOW:
	case GALE_RULE_QUOTA:
	case GALE_RULE_TOKEN_BUDGET:
		return window_forecast(o, now, (wide)cost);
	case GALE_RULE_SLIDING_WINDOW:
		return slide_forecast(o, now, (wide)cost);
	case GALE_RULE_SLIDING_LOG:
		return log_forecast(o, now, (wide)cost);
	case GALE_RULE_GCRA:
		return gcra_forecast(o, now, (wide)cost);
	case GALE_RULE_TOKEN_BUCKET:
		return bucket_forecast(o, now, (wide)cost);
	case GALE_RULE_PACER:
		return pacer_forecast(o, now, (wide)cost);
	default:
		gale_panic(__FILE__, __LINE__, "a rule of no kind");
	}
}

uint64_t oracle_expires(const struct oracle *o)
{
	switch (o->rule.kind) {
	case GALE_RULE_FIXED_WINDOW:
	case GALE_RULE_QUOTA:
	case GALE_RULE_TOKEN_BUDGET:
		return window_expires(o);
	case GALE_RULE_SLIDING_WINDOW:
		return slide_expires(o);
	case GALE_RULE_SLIDING_LOG:
		return log_expires(o);
	case GALE_RULE_GCRA:
		return gcra_expires(o);
	case GALE_RULE_TOKEN_BUCKET:
		return bucket_expires(o);
	case GALE_RULE_PACER:
		return pacer_expires(o);
	default:
		gale_panic(__FILE__, __LINE__, "a rule of no kind");
	}
}
