/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sizer_learned.c -- first what a window rarely exceeds, then what its own rate says.
 *
 *     units
 *     first |========================|....        a demand above it: the rate is known
 *           |        in hand         |   |==|     by then, and little time is left, so
 *           +------------------------+---+--+     the top-up is small and nearly right
 *           window's start                  end
 *
 * The first lease.  A unit more in it costs h when the window does not need it, which
 * happens with chance q; and it saves a top-up, which costs c, when the window would have
 * needed just that one, which has the density f.  The best q is where c f = h q.  For a
 * logistic demand of scale s, f = q (1 - q) / s, so
 *
 *     1 - q = h s / c:   the chance of a second trip is the spread, counted in trips.
 *
 * It is kept between 1/10 and 1/4, because callers wait for a top-up (which is not in c)
 * and because a rate may mislead; it is 1/10 when no costs are given.
 *
 * Demands are learned as logarithms, by middle and mean deviation; q is at
 * middle + deviation ln(q/(1-q)) / (2 ln 2), which for 9/10 is 1.6 deviations, for a
 * normal demand as well as for a logistic or a Laplacian one.
 *
 * Recent windows count more.  One that is far off counts as if it were less far; two in a
 * row above, or three below, are a new life, and everything starts from the last.  Windows
 * without demand teach nothing about those with some (no call asks in them, so any size
 * of an ask costs nothing), but after a few of them the past is worth less and
 * less.
 *
 * A node that was quiet for a while when a call comes is either at work again, or that call is
 * one of a few.  What a window usually needs would then lie with it, where others want it.  So
 * it asks for what a part of a window needs, and, when that is spent, for what its rate says.
 * Quiet is a sixteenth of the window, but no pause that its calls usually make.
 *
 * Where windows differ much, what a window rarely exceeds is several times what most need, and
 * nothing of it goes back as long as some is spent now and then.  Where other nodes hold units, too,
 * the first lease then is half of what nearly any window needs, and the rate says the rest.
 *
 * A key is tight when the store had too little of it, or hardly any was left, in one of
 * the last TIGHT_WINDOWS.  What is lent and not spent is then wanted elsewhere, and what a
 * window rarely exceeds is more than most windows need.  So nodes that are not alone, or may
 * not stay so, ask for what they will spend soon: that is a part of the window's need, and
 * where a small limit is shared by many it is one call.  Hardly any is less than the fleet may still
 * ask for: in the middle of a window that is half of what it is at its start.
 *
 * Invariants  SIZER-4  When the store has said what is left, or that others hold units,
 *                      no more than a fair part of it is wanted, or what presses:
 *                      no node strands the tail.
 *             SIZER-5  The later in a window, the less is wanted beyond what presses;
 *                      at its end it is nothing (or min_size).
 *             SIZER-6  While a key is tight, no more is wanted beyond what presses than
 *                      a part of what a window usually needs, or than what that part
 *                      needs at the rate so far and half of what was offered so far.
 *             SIZER-7  One call after a pause is lent a sixteenth of what a window
 *                      rarely exceeds, or what presses. (L16)
 *             SIZER-8  Where windows differ and others hold units, the first lease of one is
 *                      half of what a window rarely needs less than, unless that is few
 *                      calls, or what presses. (L16)
 *             SIZER-9  SIZER-6 is for a node that was alone, too, where its windows differ or the
 *                      last was far from what was expected: others may come.  The first lease of
 *                      a window is then as after a pause, among others as well. (L16)
 *             SIZER-10  What a store has left makes a key tight only if it is little for the
 *                      time that is left of the window. (L16)
 */
#include "engine/sizer.h"

#include "engine/real.h"

#define MEMORY 8          /* windows that count, about */
#define SPREAD_FIRST 0.2f /* before there are two to compare */
#define SPREAD_WIDE 0.15f /* windows of steady calls differ by less */
#define STRAY_SPREADS 3   /* this far off is a stray; */
#define STRAY_LEAST 0.405 /* but not within a factor of 1.5 */
#define STRAYS_UP 2
#define STRAYS_DOWN (-3)
#define IDLE_KEPT 4 /* windows without demand that change nothing */
#define TIGHT_WINDOWS 32
#define PARTS_MOST 4   /* of a window: so many asks in it, and a few more */
#define QUIET_PARTS 16 /* of a window: after one without a call, one is asked for */
#define QUIET_GAPS 2
#define FEW_CALLS 32
#define MISS_LEAST 0.1
#define MISS_MOST 0.25

/* The chance that a first lease may leave of a top-up. */
static double miss_of(const struct sizing *sizing, double deviation)
{
	if (sizing->order_cost == 0)
		return MISS_LEAST;
	return real_between(sizing->strand_penalty * deviation /
	                        (2 * REAL_LN2 * sizing->order_cost),
	                    MISS_LEAST, MISS_MOST);
}

/* What was learned, in units; all 0 when nothing was. */
struct outlook {
	double window;    /* that a window rarely exceeds */
	double least;     /* that a window rarely needs less than */
	double deviation; /* how far windows are off their middle */
	bool differs;     /* these two are far apart */
};

static struct outlook outlook_of(const struct sizing *sizing,
                                 const struct sizer_learned *learned)
{
	double spread = (double)learned->spread;
	double middle = real_exp(learned->middle);
	double miss, chance;

	if (learned->windows == 0)
		return (struct outlook){ 0 };
	miss = miss_of(sizing, spread * middle);
	chance = real_exp(spread * real_log((1 - miss) / miss) / (2 * REAL_LN2));
	return (struct outlook){
		.window = middle * chance,
		.least = middle / chance,
		.deviation = spread * middle,
		.differs = learned->spread > SPREAD_WIDE,
	};
}

static uint64_t left_of(const struct sizer_view *view)
{
	return view->left_us < view->window_us ? view->left_us : view->window_us;
}

/* Longer than calls like those that wait are usually apart. */
static bool was_quiet(const struct sizer_view *view, struct outlook outlook)
{
	double windows =
	    view->window_us == 0 ? 0 : (double)view->quiet_us / (double)view->window_us;

	return windows * QUIET_PARTS >= 1 &&
	       windows * outlook.window >= QUIET_GAPS * (double)view->pressing;
}

/* Would others lack much of what a window rarely exceeds?  Of a few calls another trip costs more
 * than they do. */
static bool may_strand(const struct sizer_view *view, struct outlook outlook)
{
	return outlook.differs && view->holders > 1 &&
	       outlook.least >= FEW_CALLS * (double)view->pressing;
}

/* A node that comes only in the second half will not need all of it. */
static double first_size(const struct sizing *sizing, const struct sizer_view *view,
                         struct outlook outlook)
{
	double size = outlook.window;
	double part = view->window_us == 0
	                  ? 1
	                  : 2 * (double)left_of(view) / (double)view->window_us;

	if (size == 0)
		size = sizing_initial(sizing);
	else if (was_quiet(view, outlook))
		size /= QUIET_PARTS; /* SIZER-7 */
	else if (may_strand(view, outlook))
		size = outlook.least / 2;     /* SIZER-8 */
	return part < 1 ? size * part : size; /* SIZER-5 */
}

/* What will be offered in the time that is left, at the rate so far, and as much more as
 * it may well be off by. */
static double rest_of(const struct sizer_view *view)
{
	uint64_t left = left_of(view);
	uint64_t gone = view->window_us - left;
	double rest;

	if (gone == 0)
		return (double)view->capacity;
	rest = (double)view->demand * (double)left / (double)gone;
	return rest + real_root(rest); /* SIZER-5 */
}

/* Before the calls that wait. */
static uint64_t offered_before(const struct sizer_view *view)
{
	return view->demand > view->pressing ? view->demand - view->pressing : 0;
}

/* Units that were lent and are not spent or spoken for. */
static uint64_t in_hand(const struct sizer_view *view)
{
	uint64_t offered = offered_before(view);

	return view->taken > offered ? view->taken - offered : 0;
}

/* How far a rate is trusted, since all of a window's calls may come at its start: until
 * windows are where they usually are, and above that, to what they usually differ by
 * and then to twice the excess.  A cold key so gets to D in log D steps. */
static double trust_of(const struct sizing *sizing, const struct sizer_view *view,
                       struct outlook outlook)
{
	double excess = (double)view->demand - outlook.window;
	double most = excess < 0 ? -excess : excess;

	if (most < outlook.deviation)
		most = outlook.deviation;
	return most < sizing_initial(sizing) ? sizing_initial(sizing) : most;
}

static double top_up(const struct sizing *sizing, const struct sizer_view *view,
                     struct outlook outlook)
{
	double most = trust_of(sizing, view, outlook);
	double rest = rest_of(view);

	return (double)view->pressing + (rest < most ? rest : most) -
	       (double)in_hand(view);
}

/* In so long a part of a window. */
static double usual_need(const struct sizer_learned *learned,
                         const struct sizer_view *view, uint64_t soon_us)
{
	double usual = learned->windows > 0 ? real_exp(learned->middle) : 0;

	return soon_us < view->window_us
	           ? usual * (double)soon_us / (double)view->window_us
	           : usual;
}

/* The same at the rate so far, of which the calls that wait are the end: n calls are n - 1 times their
 * distance apart.  At most half of what was offered, since all of a window's calls may come at its
 * start.  So a node whose windows differ gets to D in log D steps. */
static double need_so_far(const struct sizer_view *view, uint64_t soon_us)
{
	uint64_t gone = view->window_us - left_of(view);
	double seen = (double)offered_before(view);

	return soon_us < gone / 2 ? seen * (double)soon_us / (double)gone : seen / 2;
}

/* Does the window before say little of this one? */
static bool varies(const struct sizer_learned *learned, struct outlook outlook)
{
	return outlook.differs || learned->strays != 0;
}

/* Beyond what presses, whole units that will be spent soon: in a part of the window that
 * is the shorter the more nodes there are. */
static double tight_size(const struct sizer_learned *learned,
                         const struct sizer_view *view, struct outlook outlook)
{
	bool few = view->holders < PARTS_MOST && !varies(learned, outlook);
	uint64_t parts = few ? view->holders : PARTS_MOST;
	bool unsure = view->taken == 0 && varies(learned, outlook); /* SIZER-9 */
	uint64_t soon = view->window_us /
	                (unsure || was_quiet(view, outlook) ? QUIET_PARTS : parts);
	double usual, need;

	if (soon > left_of(view))
		soon = left_of(view); /* SIZER-5 */
	usual = usual_need(learned, view, soon);
	need = need_so_far(view, soon);
	need = real_between(need > usual ? need : usual, 0, (double)GALE_UNITS_MAX);
	return (double)view->pressing + (double)(uint64_t)need - (double)in_hand(view);
}

/* A node that is alone strands nothing that others want, unless they come in this window. SIZER-9 */
static bool is_tight(const struct sizer_learned *learned, const struct sizer_view *view,
                     struct outlook outlook)
{
	return learned->tight > 0 && (view->holders > 1 || varies(learned, outlook));
}

static double free_size(const struct sizing *sizing, const struct sizer_view *view,
                        struct outlook outlook)
{
	return view->taken == 0 ? first_size(sizing, view, outlook)
	                        : top_up(sizing, view, outlook);
}

/* Of what the store has left, for one of those who hold units and one who may come.  In
 * a new window everything is left; but if no other node held units in the last, no part of
 * it need be left to others. */
static uint64_t fair_part(const struct sizer_view *view)
{
	uint64_t shares = view->holders + (view->holders < UINT64_MAX);
	uint64_t left = view->store_left;

	if (left == GALE_NEVER) {
		if (view->holders <= 1)
			return GALE_NEVER;
		left = view->capacity;
	}
	return left / shares + (left % shares != 0);
}

double learned_size(const struct sizing *sizing, const struct sizer_learned *learned,
                    const struct sizer_view *view)
{
	struct outlook outlook = outlook_of(sizing, learned);
	double fair = (double)fair_part(view);
	double size = is_tight(learned, view, outlook)
	                  ? tight_size(learned, view, outlook)
	                  : free_size(sizing, view, outlook);

	size = sizing_clamp(sizing, size);
	return size < fair ? size : fair; /* SIZER-4 */
}

#define FULL_PARTS                                                                     \
	16 /* of the limit: from all but one on, a node alone may have too little */

double learned_usual(const struct sizing *sizing, const struct sizer_learned *learned,
                     uint64_t capacity, uint64_t holders)
{
	struct outlook outlook = outlook_of(sizing, learned);
	double full = (double)capacity - (double)capacity / FULL_PARTS;
	bool tight = learned->tight > 0 && holders > 1;

	return tight || outlook.differs || real_exp(learned->middle) > full
	           ? 0
	           : outlook.window;
}

static void begin(struct sizer_learned *learned, double seen)
{
	*learned = (struct sizer_learned){ .middle = seen,
		                           .spread = SPREAD_FIRST,
		                           .windows = 1,
		                           .tight = learned->tight };
}

static void forget(struct sizer_learned *learned)
{
	if (learned->windows == 0 || ++learned->idle <= IDLE_KEPT)
		return;
	begin(learned, learned->middle - REAL_LN2);
	learned->idle = IDLE_KEPT;
	if (learned->middle < 0)
		*learned = (struct sizer_learned){ 0 };
}

static double stray_limit(const struct sizer_learned *learned)
{
	double limit = STRAY_SPREADS * (double)learned->spread;

	return limit > STRAY_LEAST ? limit : STRAY_LEAST;
}

/* Has demand changed for good? */
static bool has_moved(struct sizer_learned *learned, double off)
{
	double limit = stray_limit(learned);

	if (off > limit)
		learned->strays =
		    (int8_t)(learned->strays > 0 ? learned->strays + 1 : 1);
	else if (off < -limit)
		learned->strays =
		    (int8_t)(learned->strays < 0 ? learned->strays - 1 : -1);
	else
		learned->strays = 0;
	return learned->strays == STRAYS_UP || learned->strays == STRAYS_DOWN;
}

static void blend(struct sizer_learned *learned, double off)
{
	double limit = stray_limit(learned);
	double far;

	if (learned->windows < MEMORY)
		learned->windows++;
	off = real_between(off, -limit, limit);
	far = off < 0 ? -off : off;
	learned->middle += off / learned->windows;
	learned->spread += ((float)far - learned->spread) / learned->windows;
}

/* What is left of a window, from 0 to 1. */
static double part_left(const struct sizer_told *told)
{
	return told->left_us < told->window_us
	           ? (double)told->left_us / (double)told->window_us
	           : 1;
}

/* First leases together are above what is needed by a spread or two.  Where less than half
 * of one is left, there may not have been enough for all of them; later in the window less is
 * needed.  At a window's end other nodes
 * may have taken the rest for the next window: that makes no key tight, and a tight one stays so. */
void learned_hear(struct sizer_learned *learned, const struct sizer_told *told)
{
	double little = (double)told->capacity * (double)learned->spread / 2 *
	                part_left(told); /* SIZER-10 */

	if (told->at_the_end && learned->tight == 0)
		return;
	if (told->fell_short || (double)told->left < little)
		learned->tight = TIGHT_WINDOWS;
}

void learned_observe(struct sizer_learned *learned, uint64_t demand)
{
	double seen, off;

	if (learned->tight > 0)
		learned->tight--;
	if (demand == 0) {
		forget(learned);
		return;
	}
	learned->idle = 0;
	seen = real_log((double)demand);
	off = seen - learned->middle;
	if (learned->windows == 0 || has_moved(learned, off))
		begin(learned, seen);
	else
		blend(learned, off);
}
