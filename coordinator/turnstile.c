/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * turnstile.c -- steps on the word of a guard, and calls to its cells.
 *
 * Threads   As turnstile.h says.
 */
#include "coordinator/turnstile.h"

#define ALL_CELLS UINT64_MAX

void turnstile_init(struct turnstile *turnstile, struct turnstile_cell *cells,
                    const struct turnstile_config *config)
{
	atomic_init(&turnstile->word, 0);
	turnstile->cells = cells;
	turnstile->cell_count = config->cell_count;
	turnstile->sheddable = slots_fraction(config->sheddable_permille);
	turnstile->wide = slots_fraction(config->wide_permille);
	turnstile->wide_least = slots_part(config->begins, turnstile->wide);
	turnstile->observes = config->observes;
	atomic_init(&turnstile->fence_ns, UINT64_MAX);
	turnstile->common = &cells[config->cell_count].tally;
	for (uint32_t i = 0; i < config->cell_count; i++)
		cells[i].bit = UINT64_C(1) << i;
}

static bool is_alone(const struct turnstile *turnstile, const struct tally *tally)
{
	return tally != turnstile->common;
}

/* ---- Calls ------------------------------------------------------------------------ */

struct call {
	uint32_t count;
	bool sheddable;
};

static bool take(struct turnstile *turnstile, const struct call *call,
                 uint64_t *ret_word)
{
	uint64_t word = load_relaxed(&turnstile->word);

	while (slots_fit(word, turnstile_part(turnstile, word, call->sheddable),
	                 call->count))
		if (swap_if_relaxed(&turnstile->word, &word,
		                    slots_taken(word, call->count))) {
			*ret_word = slots_taken(word, call->count);
			return true;
		}
	*ret_word = word;
	return false;
}

/* A call that is only counted does not fit, but is to be counted. */
static bool take_anyway(struct turnstile *turnstile, uint32_t count)
{
	uint64_t word = load_relaxed(&turnstile->word);

	while (!slots_closed(word) && slots_fit(word, SLOTS_MOST, count))
		if (swap_if_relaxed(&turnstile->word, &word, slots_taken(word, count)))
			return true;
	return false;
}

/* A call that a guard which has learned nothing lets in is never too wide: while the ceiling in
 * force is too small for it, it counts as refused, so that the ceiling rises again. */
static bool is_wide(const struct turnstile *turnstile, uint64_t word, uint32_t count)
{
	return count > 1 && count > turnstile->wide_least &&
	       count > slots_part(slots_most(word), turnstile->wide);
}

/* Of a call of several slots that waits for all others to end in vain.  Racy, as a peak is: a call
 * that is refused comes again. */
static void note_kept_out(struct turnstile *turnstile, uint64_t word, uint8_t why,
                          uint32_t count)
{
	if (count > 1 && count > slots_most(word) && why != TURNSTILE_REFUSED_WIDE &&
	    why != SLOTS_BY_FENCE && !slots_closed(word) &&
	    count > load_relaxed(&turnstile->kept_out))
		store_relaxed(&turnstile->kept_out, count);
}

static uint8_t why_of(const struct turnstile *turnstile, uint64_t word,
                      const struct call *call)
{
	if (slots_closed(word) || slots_by(word) == SLOTS_BY_FENCE)
		return (uint8_t)slots_by(word);
	if (is_wide(turnstile, word, call->count))
		return TURNSTILE_REFUSED_WIDE;
	return slots_fit(word, slots_most(word), call->count) ? TURNSTILE_REFUSED_CLASS
	                                                      : (uint8_t)slots_by(word);
}

static struct turnstile_entered refuse(struct turnstile *turnstile, struct tally *tally,
                                       const struct call *call, uint64_t word)
{
	uint8_t why = why_of(turnstile, word, call);
	bool alone = is_alone(turnstile, tally);

	tally_add(&tally->refused[why], 1, alone);
	note_kept_out(turnstile, word, why, call->count);
	if (!turnstile->observes || !take_anyway(turnstile, call->count))
		return (struct turnstile_entered){ slots_most(word),
			                           TURNSTILE_REFUSED | why };
	tally_add(&tally->entered, 1, alone);
	return (struct turnstile_entered){ slots_most(word), TURNSTILE_OBSERVED | why };
}

/* Slots that cells keep are free, while this call finds none.  None is kept anew until a quarter of
 * the ceiling is free, so the next call that finds none is refused at once.  A bit that is lost
 * to a seat that keeps something at this instant is set again when it does the next time.  If
 * the word is closed meanwhile, the last slot is not given back here: a seat that enters a guard
 * while it is closed has a call of it in flight (guard.h). */
static bool take_after_call_back(struct turnstile *turnstile, const struct call *call,
                                 uint64_t *ret_word)
{
	uint64_t keeping = load_relaxed(&turnstile->keeping);

	if (keeping == 0 || slots_closed(*ret_word))
		return false;
	keeping = swap_relaxed(&turnstile->keeping, 0);
	return turnstile_call_back(turnstile, keeping).count > 0 &&
	       take(turnstile, call, ret_word);
}

struct turnstile_entered turnstile_enter(struct turnstile *turnstile,
                                         struct turnstile_cell *cell, uint32_t count,
                                         bool sheddable)
{
	struct tally *tally = cell ? &cell->tally : turnstile->common;
	const struct call call = { count, sheddable };
	uint64_t word = load_relaxed(&turnstile->word);

	if (is_wide(turnstile, word, count))
		return refuse(turnstile, tally, &call, word);
	if (!take(turnstile, &call, &word) &&
	    !take_after_call_back(turnstile, &call, &word))
		return refuse(turnstile, tally, &call, word);
	turnstile_note_peak(turnstile, slots_in_flight(word));
	tally_add(&tally->entered, 1, is_alone(turnstile, tally));
	return (struct turnstile_entered){ .most = slots_most(word) };
}

bool turnstile_give(struct turnstile *turnstile, uint32_t count)
{
	uint64_t word = load_relaxed(&turnstile->word);

	while (slots_can_give(word, count))
		if (swap_if_acq_rel(&turnstile->word, &word,
		                    slots_given(word, count))) /* vacated */
			return slots_closed(word) && slots_in_flight(word) == count;
	(void)add_relaxed(&turnstile->refused_gives, 1); /* SLOTS-2 */
	return false;
}

/* ---- The coordinator -------------------------------------------------------------- */

static uint32_t call_back_one(struct turnstile_cell *cell)
{
	uint64_t kept = load_relaxed(&cell->kept);

	while (!swap_if_acq_rel(&cell->kept, &kept,
	                        ((kept >> 32) + 1) << 32)) /* called, vacated */
		continue;
	return cell_kept(kept);
}

struct turnstile_called turnstile_call_back(struct turnstile *turnstile, uint64_t cells)
{
	struct turnstile_called called = { 0 };

	for (uint32_t i = 0; i < turnstile->cell_count; i++)
		if (cells >> i & 1)
			called.count += call_back_one(&turnstile->cells[i]);
	if (called.count > 0)
		called.last = turnstile_give(turnstile, called.count); /* TURNSTILE-1 */
	return called;
}

bool turnstile_apply(struct turnstile *turnstile, uint16_t generation,
                     struct slots_ceiling ceiling)
{
	uint64_t word = load_relaxed(&turnstile->word), was;

	do
		was = word;
	while (!swap_if_relaxed(&turnstile->word, &word,
	                        slots_applied(was, generation, ceiling)));
	return ceiling.most < slots_most(was) &&
	       turnstile_call_back(turnstile, ALL_CELLS).last;
}

bool turnstile_keep(struct turnstile *turnstile, uint64_t cells, uint32_t most)
{
	uint64_t less = 0;

	for (uint32_t i = 0; i < turnstile->cell_count; i++) {
		uint32_t now = cells >> i & 1 ? most : 0;

		if (now == load_relaxed(&turnstile->cells[i].most))
			continue;
		if (now < load_relaxed(&turnstile->cells[i].most))
			less |= UINT64_C(1) << i;
		store_relaxed(&turnstile->cells[i].most, now);
	}
	return turnstile_call_back(turnstile, less).last;
}

bool turnstile_close(struct turnstile *turnstile)
{
	const struct slots_ceiling closed = { 0, SLOTS_BY_CLOSE };
	uint64_t word = load_relaxed(&turnstile->word), was;

	do
		was = word;
	while (!swap_if_acquire(
	    &turnstile->word, &word,
	    slots_applied(was, slots_generation(was), closed))); /* vacated */
	return slots_in_flight(was) == 0 ||
	       turnstile_call_back(turnstile, ALL_CELLS).last;
}

/* ---- Counts ----------------------------------------------------------------------- */

uint32_t turnstile_kept(const struct turnstile *turnstile)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < turnstile->cell_count; i++)
		sum += cell_kept(load_relaxed(&turnstile->cells[i].kept));
	return sum;
}

static void add_tally(struct tally_sum *sum, const struct tally *tally)
{
	sum->entered += load_relaxed(&tally->entered);
	sum->overdue += load_relaxed(&tally->overdue);
	for (int i = 0; i < TURNSTILE_OUTCOMES; i++) {
		sum->ended[i] += load_relaxed(&tally->ended[i].slots);
		sum->busy_ns[i] += load_relaxed(&tally->ended[i].busy_ns);
	}
	for (int i = 0; i < TURNSTILE_REFUSALS; i++)
		sum->refused[i] += load_relaxed(&tally->refused[i]);
}

/* The last is of seats without a cell. */
void turnstile_sum(const struct turnstile *turnstile, struct tally_sum *ret_sum)
{
	*ret_sum = (struct tally_sum){ 0 };
	for (uint32_t i = 0; i <= turnstile->cell_count; i++)
		add_tally(ret_sum, &turnstile->cells[i].tally);
}

uint32_t turnstile_take_peak(struct turnstile *turnstile)
{
	uint32_t now = slots_in_flight(load_relaxed(&turnstile->word));
	uint32_t peak = swap_relaxed(&turnstile->peak, now);

	return peak > now ? peak : now;
}

uint32_t turnstile_take_kept_out(struct turnstile *turnstile)
{
	return swap_relaxed(&turnstile->kept_out, 0);
}
