/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * model.c -- depth first over whose step comes next and what it sees.
 *
 * A run is repeated from its beginning for each way that it can go on; what was chosen
 * at each step is kept in a stack of forks.  A move is a thread and, for a step that
 * loads, the store that it sees.
 *
 * Two moves of different threads are independent if they come to the same in either
 * order: all but two writes of one word, two fences, and steps on one lock.  (A load
 * names the store that it sees, so that a later store is nothing to it.)  A move that has
 * been tried at a fork sleeps in the branches that are tried after it, until a move is
 * made that it depends on: whatever begins with it has been seen.  No two runs to the end
 * then differ only in the order of independent moves.
 *
 * Invariants
 *
 *   MODEL-5  A run follows from its moves alone: memory is laid out anew for each,
 *            always in the same way.
 *   MODEL-6  view->seen of a thread never falls: it does not see older stores again.
 */
#define _GNU_SOURCE
#include "tests/interleave/model.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "tests/support/must.h"

#define ALONE MODEL_THREADS /* who runs begin and end */
#define THREADS (MODEL_THREADS + 1)
#define STACK_BYTES 65536
#define ARENA_BYTES 524288
#define BLOCK_BYTES 128 /* blocks begin at a multiple */
#define WORDS_MOST 700
#define STORES_MOST 2000
#define STEPS_MOST 900
#define MOVES_MOST 24
#define LOCKS_MOST 4
#define PLACES 1021
/* Times that a thread sees the same old store, one after another: who waits does not wait for
 * ever.  More than a program loads a word that it need not see; fewer would hide faults. */
#define STALE_MOST 4
#define SPURIOUS 0xfffe

enum kind {
	NOTHING, /* it has ended */
	LOAD,
	STORE,
	CHANGE,
	SWAP_IF,
	FENCE,
	BARRIER,
	LOCK,
	UNLOCK,
};

static const char *const kind_names[] = { "-",       "load",    "store",
	                                  "change",  "swap if", "fence",
	                                  "barrier", "lock",    "unlock" };

/* What a thread knows: of each thread so many steps, of each word so many stores. */
struct view {
	uint32_t steps[THREADS];
	uint16_t seen[WORDS_MOST];
};

/* A part of a view, as a store publishes it. */
struct published {
	uint32_t steps[THREADS];
	uint16_t count;
	uint16_t seen[];
};

struct store {
	uint64_t value;
	const struct published *view; /* NULL: it publishes nothing */
	uint16_t next;                /* of the same word; 0: none */
};

struct word {
	volatile void *at;
	size_t size;
	uint16_t stores[128];
	uint16_t count;
	uint32_t touched[THREADS]; /* the last step of each thread on it */
};

struct step {
	enum kind kind;
	enum order order;
	uint16_t word;   /* or lock; BARRIER: who passes it */
	uint64_t value;  /* what is stored */
	uint64_t wanted; /* SWAP_IF */
	enum change how;
	const char *file;
	int line;
	/* When it is done. */
	uint64_t result;
	bool swapped;
};

struct move {
	uint8_t thread;
	uint16_t choice; /* a load: of the word's stores */
};

/* One state of the run, and where it goes from there. */
struct fork {
	struct move moves[MOVES_MOST]; /* to be tried, one after another */
	unsigned count;
	unsigned tried; /* this one is under way */
	struct move sleeping[2 * MOVES_MOST];
	unsigned sleepers;
};

struct thread {
	void (*run)(void);
	jmp_buf at;
	bool started;
	struct step step; /* the next, or the one just done */
	struct view view;
	struct view acquired; /* what a fence would take over */
	struct view fenced;   /* what the last fence publishes with any store */
	bool has_fenced;
	uint16_t stale_word, stale_store, stale_times;
	unsigned spurious;
};

/* Who has touched a byte, and in which of its steps. */
struct byte {
	uint64_t run;
	uint16_t read[THREADS];
	uint16_t wrote[THREADS];
};

struct block {
	size_t at, bytes;
	uint8_t taker, giver;
	uint32_t taken, given; /* steps; given 0: not yet */
};

struct lock_state {
	const void *at;
	int holder; /* -1: none */
	struct view view;
};

static struct {
	const struct program *program;
	const struct mutant *mutant;
	const struct end *ends; /* that are watched */
	size_t end_count;
	struct found found;

	struct fork forks[STEPS_MOST];
	struct step taken[STEPS_MOST]; /* of the last run, for who wants to read it */
	struct move made[STEPS_MOST];
	unsigned depth, depth_before;
	uint64_t run;

	struct thread threads[THREADS];
	int now; /* who runs; -1: the model itself */
	jmp_buf home;
	uint64_t outcomes;

	struct word words[WORDS_MOST];
	uint16_t word_count;
	uint16_t word_at[ARENA_BYTES]; /* + 1 */
	struct store stores[STORES_MOST];
	uint16_t store_count;
	struct view fences;
	struct lock_state locks[LOCKS_MOST];
	unsigned lock_count;
	struct block blocks[ARENA_BYTES / BLOCK_BYTES];
	unsigned block_count;
	uint16_t block_at[ARENA_BYTES / BLOCK_BYTES]; /* + 1 */
	size_t used;
	size_t pooled;
} m;

/* A line of the code under test that makes a step; files are told apart by their names' addresses. */
struct place {
	const char *file; /* NULL: free */
	int line;
	end_bits ends;
};

static struct place places[PLACES];
static unsigned place_count;

static _Alignas(BLOCK_BYTES) unsigned char arena[ARENA_BYTES];
static _Alignas(16) unsigned char stacks[MODEL_THREADS][STACK_BYTES];
static jmp_buf
    bottoms[MODEL_THREADS]; /* of the stacks: where a thread begins, in each run */
static _Alignas(16) unsigned char pool[8 << 20]; /* of what is published */
static struct byte bytes[ARENA_BYTES];

/* ---- Ends ------------------------------------------------------------------------ */

static _Noreturn void go_home(void)
{
	m.now = -1;
	_longjmp(m.home, 1);
}

static _Noreturn void blame(const char *format, const char *a, const char *b, int line)
{
	char text[160];

	(void)snprintf(text, sizeof(text), format, a, b, line);
	(void)snprintf(m.found.fault, sizeof(m.found.fault), "%s", text);
	go_home();
}

_Noreturn void model_fail(const char *file, int line, const char *what)
{
	blame("%s does not hold (%s:%d)", what, file, line); /* MODEL-3 */
}

void model_outcome(unsigned bit)
{
	m.outcomes |= UINT64_C(1) << bit;
}

static bool runs_alone(void)
{
	return m.now == ALONE;
}

/* ---- Views ----------------------------------------------------------------------- */

static void raise_steps(uint32_t steps[THREADS], const uint32_t with[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		steps[i] = steps[i] < with[i] ? with[i] : steps[i];
}

static void raise_seen(uint16_t *seen, const uint16_t *with, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		seen[i] = seen[i] < with[i] ? with[i] : seen[i];
}

static void join(struct view *view, const struct view *with)
{
	raise_steps(view->steps, with->steps);
	raise_seen(view->seen, with->seen, m.word_count);
}

static void join_stores(struct view *view, const struct view *with)
{
	raise_seen(view->seen, with->seen, m.word_count);
}

static void join_published(struct view *view, const struct published *with)
{
	if (!with)
		return;
	raise_steps(view->steps, with->steps);
	raise_seen(view->seen, with->seen, with->count);
}

/* The view, and what was published before. */
static const struct published *publish(const struct view *view,
                                       const struct published *before)
{
	size_t size = sizeof(struct published) + m.word_count * sizeof(uint16_t);
	struct published *published = (struct published *)(void *)&pool[m.pooled];

	m.pooled += (size + 15) / 16 * 16;
	must(m.pooled <= sizeof(pool));
	memcpy(published->steps, view->steps, sizeof(view->steps));
	memcpy(published->seen, view->seen, m.word_count * sizeof(uint16_t));
	published->count = m.word_count;
	if (before) {
		raise_steps(published->steps, before->steps);
		raise_seen(published->seen, before->seen, before->count);
	}
	return published;
}

/* ---- Memory ---------------------------------------------------------------------- */

static bool is_ours(const volatile void *at)
{
	uintptr_t from = (uintptr_t)arena;

	return (uintptr_t)at >= from && (uintptr_t)at < from + ARENA_BYTES;
}

static size_t offset_of(const volatile void *at)
{
	return (size_t)((uintptr_t)at - (uintptr_t)arena);
}

void *model_take(size_t size)
{
	size_t at = m.used, room = (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	struct block *block = &m.blocks[m.block_count++];

	must(at + room <= ARENA_BYTES);
	m.used += room;
	memset(&arena[at], 0, room);
	*block = (struct block){ .at = at, .bytes = room, .taker = (uint8_t)m.now };
	block->taken = m.threads[m.now].view.steps[m.now];
	for (size_t i = at; i < m.used; i += BLOCK_BYTES)
		m.block_at[i / BLOCK_BYTES] = (uint16_t)m.block_count;
	return &arena[at];
}

static bool knows(int thread, int other, uint32_t step)
{
	return m.threads[thread].view.steps[other] >= step;
}

static _Noreturn void blame_race(const char *what, const volatile void *at)
{
	const struct block *block =
	    &m.blocks[m.block_at[offset_of(at) / BLOCK_BYTES] - 1];
	const struct step *step = &m.threads[m.now].step;
	char where[80];

	(void)snprintf(where, sizeof(where), "block %d, byte %zu, after %s",
	               (int)(block - m.blocks), offset_of(at) - block->at,
	               kind_names[step->kind]);
	blame("%s: %s at line %d", what, where, step->line);
}

/* The block that it lies in, if this thread may touch it. */
static struct block *block_of(const volatile void *at)
{
	unsigned number = m.block_at[offset_of(at) / BLOCK_BYTES];
	struct block *block;

	must(number > 0);
	block = &m.blocks[number - 1];
	if (block->given)
		blame_race("memory that was given back is touched", at); /* MODEL-2 */
	if (!knows(m.now, block->taker, block->taken))
		blame_race("memory is touched that nobody published", at); /* MODEL-2 */
	return block;
}

/* The steps of each thread that this one knows of, and all of its own. */
static void note_known(uint16_t known[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		known[i] = (uint16_t)m.threads[m.now].view.steps[i];
	known[m.now] = UINT16_MAX;
}

static bool is_after(const uint16_t known[THREADS], const uint16_t touched[THREADS])
{
	unsigned unknown = 0;

	for (int i = 0; i < THREADS; i++)
		unknown += touched[i] > known[i];
	return unknown == 0;
}

static void touch_byte(size_t at, bool writes, const uint16_t known[THREADS])
{
	struct byte *byte = &bytes[at];
	uint16_t step = (uint16_t)m.threads[m.now].view.steps[m.now];

	if (byte->run != m.run)
		*byte = (struct byte){ .run = m.run };
	if (!is_after(known, byte->wrote) || (writes && !is_after(known, byte->read)))
		blame_race("two threads at once", &arena[at]); /* MODEL-1 */
	if (writes)
		byte->wrote[m.now] = step;
	else
		byte->read[m.now] = step;
}

static void touch_bytes(const volatile void *at, size_t size, bool writes)
{
	uint16_t known[THREADS];

	(void)block_of(at);
	note_known(known);
	for (size_t i = 0; i < size; i++)
		touch_byte(offset_of(at) + i, writes, known);
}

void model_touch(const volatile void *at, size_t size, bool writes)
{
	if (m.now >= 0 && !runs_alone() && is_ours(at))
		touch_bytes(at, size, writes);
}

static void touch_words(const struct block *block)
{
	for (unsigned i = 0; i < m.word_count; i++) {
		const struct word *word = &m.words[i];
		size_t at = offset_of(word->at);

		if (at < block->at || at >= block->at + block->bytes)
			continue;
		for (int j = 0; j < THREADS; j++)
			if (!knows(m.now, j, word->touched[j]))
				blame_race("memory is given back under a thread",
				           word->at); /* MODEL-1 */
	}
}

void model_give(void *memory)
{
	struct block *block;

	if (!memory)
		return;
	block = block_of(memory);
	if (!runs_alone()) {
		touch_words(block);
		model_touch(memory, block->bytes, /* writes= */ true);
	}
	block->given = m.threads[m.now].view.steps[m.now];
	block->giver = (uint8_t)m.now;
}

/* ---- Words ----------------------------------------------------------------------- */

static uint64_t read_memory(const volatile void *at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, (const void *)(uintptr_t)at, size);
	return value;
}

static void write_memory(volatile void *at, size_t size, uint64_t value)
{
	memcpy((void *)(uintptr_t)at, &value, size);
}

static void add_store(struct word *word, uint64_t value, const struct published *view)
{
	must(m.store_count < STORES_MOST);
	must(word->count < sizeof(word->stores) / sizeof(word->stores[0]));
	word->stores[word->count++] = m.store_count;
	m.stores[m.store_count++] = (struct store){ .value = value, .view = view };
}

/* A word that is met for the first time has one store, which all may see. */
static uint16_t word_of(const volatile void *at, size_t size)
{
	struct word *word;

	must(is_ours(at));
	if (m.word_at[offset_of(at)])
		return (uint16_t)(m.word_at[offset_of(at)] - 1);
	must(m.word_count < WORDS_MOST);
	word = &m.words[m.word_count++];
	m.word_at[offset_of(at)] = m.word_count;
	*word = (struct word){ .at = (volatile void *)(uintptr_t)at, .size = size };
	add_store(word, read_memory(at, size), NULL);
	return (uint16_t)(m.word_count - 1);
}

static struct store *store_of(const struct word *word, unsigned number)
{
	return &m.stores[word->stores[number]];
}

void model_init(volatile void *at, size_t size, uint64_t value)
{
	struct word *word;

	model_touch(at, size, /* writes= */ true);
	write_memory(at, size, value);
	if (!is_ours(at))
		return;
	word = &m.words[word_of(at, size)];
	word->count = 0;
	add_store(word, value, NULL);
}

uint64_t model_knows(const volatile void *at, size_t size)
{
	uint16_t number = word_of(at, size);

	return store_of(&m.words[number], m.threads[m.now].view.seen[number])->value;
}

/* ---- One step -------------------------------------------------------------------- */

static bool is_at(const struct end *end, const char *file, int line)
{
	size_t file_len, end_len;

	if (line < end->first || line > end->last)
		return false;
	file_len = strlen(file);
	end_len = strlen(end->file);
	return file_len >= end_len && strcmp(file + file_len - end_len, end->file) == 0;
}

static end_bits find_ends(const char *file, int line)
{
	end_bits there = 0;

	for (size_t i = 0; i < m.end_count; i++)
		if (is_at(&m.ends[i], file, line))
			there |= end_bit(i);
	return there;
}

/* The ends at this place.  They are looked for once. */
static end_bits ends_at(const char *file, int line)
{
	struct place *place;
	size_t i = ((uintptr_t)file + (unsigned)line) % PLACES;

	while (places[i].file && (places[i].file != file || places[i].line != line))
		i = (i + 1) % PLACES;
	place = &places[i];
	if (!place->file) {
		must(++place_count < PLACES);
		*place = (struct place){ file, line, find_ends(file, line) };
	}
	return place->ends;
}

/* The order that the mutant leaves of it. */
static enum order order_of(enum order order, const char *file, int line)
{
	end_bits there = ends_at(file, line);

	if (!m.mutant)
		m.found.met |= there;
	else if (m.mutant->end && (there & end_bit((size_t)(m.mutant->end - m.ends))))
		return order & ~m.mutant->without;
	return order;
}

static bool is_torn(void)
{
	return m.mutant && m.mutant->torn;
}

static uint64_t changed(const struct step *step, uint64_t was, size_t size)
{
	uint64_t value = step->value;

	if (step->how == CHANGE_ADD)
		value = was + value;
	else if (step->how == CHANGE_SUB)
		value = was - value;
	else if (step->how == CHANGE_OR)
		value = was | value;
	return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

static void see(struct thread *thread, uint16_t number, unsigned choice,
                enum order order)
{
	struct word *word = &m.words[number];
	const struct store *store = store_of(word, choice);

	must(choice >= thread->view.seen[number]); /* MODEL-6 */
	thread->view.seen[number] = (uint16_t)choice;
	if (order & ACQUIRE)
		join_published(&thread->view, store->view);
	else
		join_published(&thread->acquired, store->view);
}

/* What a store publishes: the view of its thread, or what was fenced; and what was
 * published by the store that it replaces in one step. */
static const struct published *published_by(struct thread *thread, enum order order,
                                            const struct published *before)
{
	if (!(order & RELEASE) && !thread->has_fenced)
		return before;
	return publish(order & RELEASE ? &thread->view : &thread->fenced, before);
}

static void put(struct thread *thread, uint16_t number, uint64_t value,
                enum order order, const struct published *before)
{
	struct word *word = &m.words[number];

	thread->view.seen[number] = word->count;
	add_store(word, value, published_by(thread, order, before));
	write_memory(word->at, word->size, value);
}

/* Fences see what was stored before other fences; only stores that were seen order
 * anything else. */
static void pass_fence(struct thread *thread)
{
	join(&thread->view, &thread->acquired);
	join_stores(&m.fences, &thread->view);
	join_stores(&thread->view, &m.fences);
	thread->fenced = thread->view;
	thread->has_fenced = true;
}

static void do_load(struct thread *thread, struct step *step, unsigned choice)
{
	see(thread, step->word, choice, step->order);
	step->result = store_of(&m.words[step->word], choice)->value;
}

static void do_change(struct thread *thread, struct step *step, unsigned choice)
{
	struct word *word = &m.words[step->word];
	const struct store *store = store_of(word, choice);
	const struct published *before = store->view;

	step->result = store->value;
	see(thread, step->word, choice, step->order);
	put(thread, step->word, changed(step, step->result, word->size), step->order,
	    before);
}

static void do_swap_if(struct thread *thread, struct step *step, unsigned choice)
{
	struct word *word = &m.words[step->word];

	if (choice == SPURIOUS) {
		thread->spurious++;
		do_load(thread, step, word->count - 1u);
		step->swapped = false;
		return;
	}
	step->swapped = store_of(word, choice)->value == step->wanted;
	step->how = CHANGE_SWAP;
	if (step->swapped)
		do_change(thread, step, choice);
	else
		do_load(thread, step, choice);
}

static struct lock_state *lock_of(const struct step *step)
{
	return &m.locks[step->word];
}

static void do_lock(struct thread *thread, struct step *step)
{
	lock_of(step)->holder = (int)(thread - m.threads);
	join(&thread->view, &lock_of(step)->view);
}

static void do_unlock(struct thread *thread, struct step *step)
{
	lock_of(step)->holder = -1;
	lock_of(step)->view = thread->view;
}

static void do_step(struct thread *thread, unsigned choice)
{
	struct step *step = &thread->step;
	int number = (int)(thread - m.threads);

	switch (step->kind) {
	case LOAD:
		do_load(thread, step, choice);
		break;
	case STORE:
		put(thread, step->word, step->value, step->order, NULL);
		break;
	case CHANGE:
		do_change(thread, step, choice);
		break;
	case SWAP_IF:
		do_swap_if(thread, step, choice);
		break;
	case FENCE:
		if (step->order & FULL)
			pass_fence(thread);
		break;
	case BARRIER:
		pass_fence(&m.threads[step->word]);
		break;
	case LOCK:
		do_lock(thread, step);
		break;
	case UNLOCK:
		do_unlock(thread, step);
		break;
	case NOTHING:
		break;
	}
	if (step->kind >= LOAD && step->kind <= SWAP_IF)
		m.words[step->word].touched[number] = thread->view.steps[number];
	thread->view.steps[number]++;
}

/* ---- Moves ----------------------------------------------------------------------- */

static bool writes(const struct step *step, unsigned choice)
{
	switch (step->kind) {
	case STORE:
	case CHANGE:
		return true;
	case SWAP_IF:
		return choice != SPURIOUS &&
		       store_of(&m.words[step->word], choice)->value == step->wanted;
	default:
		return false;
	}
}

static bool is_memory(const struct step *step)
{
	return step->kind >= LOAD && step->kind <= SWAP_IF;
}

static bool is_locking(const struct step *step)
{
	return step->kind == LOCK || step->kind == UNLOCK;
}

static bool is_fence(const struct step *step)
{
	return step->kind == FENCE || step->kind == BARRIER;
}

/* Before either is made. */
static bool depends(struct move a, struct move b)
{
	const struct step *x = &m.threads[a.thread].step;
	const struct step *y = &m.threads[b.thread].step;

	if (a.thread == b.thread || (is_fence(x) && is_fence(y)) ||
	    (x->kind == BARRIER && x->word == b.thread) ||
	    (y->kind == BARRIER && y->word == a.thread))
		return true;
	if (is_locking(x) && is_locking(y))
		return x->word == y->word;
	return is_memory(x) && is_memory(y) && x->word == y->word &&
	       writes(x, a.choice) && writes(y, b.choice);
}

static void add_move(struct fork *fork, int thread, unsigned choice)
{
	must(fork->count < MOVES_MOST);
	fork->moves[fork->count++] = (struct move){ (uint8_t)thread, (uint16_t)choice };
}

static bool is_tiresome(const struct thread *thread, uint16_t word, unsigned choice)
{
	return choice + 1u < m.words[word].count && thread->stale_word == word &&
	       thread->stale_store == choice && thread->stale_times >= STALE_MOST;
}

static void add_loads(struct fork *fork, int number)
{
	struct thread *thread = &m.threads[number];
	uint16_t word = thread->step.word;

	for (unsigned i = m.words[word].count; i-- > thread->view.seen[word];)
		if (!is_tiresome(thread, word, i))
			add_move(fork, number, i);
}

static void add_swaps(struct fork *fork, int number)
{
	struct thread *thread = &m.threads[number];
	const struct word *word = &m.words[thread->step.word];

	for (unsigned i = word->count; i-- > thread->view.seen[thread->step.word];) {
		bool equal = store_of(word, i)->value == thread->step.wanted;
		bool newest = i + 1u == word->count;

		if (!equal || newest || is_torn())
			add_move(fork, number, i);
		if (equal && newest && thread->spurious < m.program->spurious)
			add_move(fork, number, SPURIOUS);
	}
}

static void add_changes(struct fork *fork, int number)
{
	struct thread *thread = &m.threads[number];
	const struct word *word = &m.words[thread->step.word];
	unsigned newest = word->count - 1u;
	unsigned from = is_torn() ? thread->view.seen[thread->step.word] : newest;

	for (unsigned i = from; i <= newest; i++)
		add_move(fork, number, i);
}

static void add_moves(struct fork *fork, int number)
{
	const struct thread *thread = &m.threads[number];

	switch (thread->step.kind) {
	case NOTHING:
		return;
	case LOAD:
		add_loads(fork, number);
		return;
	case SWAP_IF:
		add_swaps(fork, number);
		return;
	case CHANGE:
		add_changes(fork, number);
		return;
	case LOCK:
		if (lock_of(&thread->step)->holder < 0)
			add_move(fork, number, 0);
		return;
	default:
		add_move(fork, number, 0);
		return;
	}
}

static bool same(struct move a, struct move b)
{
	return a.thread == b.thread && a.choice == b.choice;
}

static bool sleeps(const struct fork *fork, struct move move)
{
	for (unsigned i = 0; i < fork->sleepers; i++)
		if (same(fork->sleeping[i], move))
			return true;
	return false;
}

static void drop_sleepers(struct fork *fork)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < fork->count; i++)
		if (!sleeps(fork, fork->moves[i]))
			fork->moves[kept++] = fork->moves[i];
	fork->count = kept;
}

/* Sleepers of the next fork: those of this one, and what was tried before, that the move
 * is independent of. */
static void lull(struct fork *next, struct move sleeper, struct move made)
{
	if (depends(sleeper, made))
		return;
	must(next->sleepers < 2 * MOVES_MOST);
	next->sleeping[next->sleepers++] = sleeper;
}

static void lull_all(struct fork *next, const struct fork *fork, struct move made)
{
	next->sleepers = 0;
	for (unsigned i = 0; i < fork->sleepers; i++)
		lull(next, fork->sleeping[i], made);
	for (unsigned i = 0; i < fork->tried; i++)
		lull(next, fork->moves[i], made);
}

static void note_staleness(struct thread *thread, struct move move)
{
	uint16_t word = thread->step.word;

	if (thread->step.kind != LOAD || move.choice + 1u >= m.words[word].count)
		return;
	if (thread->stale_word == word && thread->stale_store == move.choice)
		thread->stale_times++;
	else
		thread->stale_times = 1;
	thread->stale_word = word;
	thread->stale_store = move.choice;
}

/* ---- Coroutines ------------------------------------------------------------------ */

static void resume(int number)
{
	struct thread *thread = &m.threads[number];

	m.now = number;
	if (_setjmp(m.home) == 0) {
		if (thread->started)
			_longjmp(thread->at, 1);
		thread->started = true;
		_longjmp(bottoms[number], 1);
	}
	m.now = -1;
}

/* The thread stops here until its step is done. */
static void post(struct thread *thread)
{
	if (runs_alone()) {
		do_step(thread, is_memory(&thread->step)
		                    ? m.words[thread->step.word].count - 1u
		                    : 0);
		return;
	}
	if (_setjmp(thread->at) == 0)
		go_home();
}

/* The frame at the bottom of a stack.  What is above it is left when a run is over. */
static void thread_main(void)
{
	struct thread *thread;

	if (_setjmp(bottoms[m.now]) == 0)
		go_home();
	thread = &m.threads[m.now];
	thread->run();
	thread->step = (struct step){ .kind = NOTHING };
	go_home();
}

static void lay_bottom(int number)
{
	ucontext_t start;

	must(getcontext(&start) == 0);
	start.uc_stack.ss_sp = stacks[number];
	start.uc_stack.ss_size = STACK_BYTES;
	start.uc_link = NULL;
	makecontext(&start, thread_main, 0);
	m.now = number;
	if (_setjmp(m.home) == 0)
		(void)setcontext(&start);
	m.now = -1;
}

static void thread_open(int number, void (*run)(void))
{
	struct thread *thread = &m.threads[number];

	thread->view = m.threads[ALONE].view;
	thread->acquired = thread->view;
	thread->view.steps[number] = 1;
	thread->run = run;
}

/* ---- What the code calls --------------------------------------------------------- */

static struct thread *begin_step(enum kind kind, const volatile void *at, size_t size,
                                 enum order order, const char *file, int line)
{
	struct thread *thread = &m.threads[m.now];

	must(m.now >= 0);
	if (!runs_alone())
		(void)block_of(at);
	thread->step = (struct step){ .kind = kind,
		                      .order = order_of(order, file, line),
		                      .word = word_of(at, size),
		                      .file = file,
		                      .line = line };
	return thread;
}

uint64_t model_load(const volatile void *at, size_t size, enum order order,
                    const char *file, int line)
{
	struct thread *thread = begin_step(LOAD, at, size, order, file, line);

	post(thread);
	return thread->step.result;
}

void model_store(volatile void *at, size_t size, uint64_t value, enum order order,
                 const char *file, int line)
{
	struct thread *thread = begin_step(STORE, at, size, order, file, line);

	thread->step.value = value;
	post(thread);
}

uint64_t model_change(volatile void *at, size_t size, enum change how, uint64_t value,
                      enum order order, const char *file, int line)
{
	struct thread *thread = begin_step(CHANGE, at, size, order, file, line);

	thread->step.value = value;
	thread->step.how = how;
	post(thread);
	return thread->step.result;
}

bool model_swap_if(volatile void *at, size_t size, void *expected, uint64_t value,
                   enum order order, const char *file, int line)
{
	struct thread *thread = begin_step(SWAP_IF, at, size, order, file, line);

	thread->step.value = value;
	thread->step.wanted = read_memory(expected, size);
	post(thread);
	if (!thread->step.swapped)
		write_memory(expected, size, thread->step.result);
	return thread->step.swapped;
}

static struct thread *begin_other(enum kind kind, enum order order, const char *file,
                                  int line)
{
	struct thread *thread = &m.threads[m.now];

	thread->step = (struct step){ .kind = kind,
		                      .order = order_of(order, file, line),
		                      .file = file,
		                      .line = line };
	return thread;
}

void model_fence(const char *file, int line)
{
	post(begin_other(FENCE, FULL, file, line));
}

/* One after another, in their own time; the caller first and last. */
void model_barrier(void)
{
	int caller = m.now;

	if (m.mutant && m.mutant->deaf)
		return;
	for (int i = 0; i < MODEL_THREADS + 2; i++) {
		bool is_end = i == 0 || i == MODEL_THREADS + 1;
		struct thread *thread = begin_other(BARRIER, FULL, "membarrier", 0);

		thread->step.word = (uint16_t)(is_end ? caller : i - 1);
		post(thread);
	}
}

static uint16_t lock_number(const void *lock)
{
	unsigned i = 0;

	while (i < m.lock_count && m.locks[i].at != lock)
		i++;
	must(i < LOCKS_MOST);
	if (i == m.lock_count)
		m.locks[m.lock_count++] =
		    (struct lock_state){ .at = lock, .holder = -1 };
	return (uint16_t)i;
}

void model_lock(const void *lock)
{
	struct thread *thread = begin_other(LOCK, ACQUIRE, "lock", 0);

	thread->step.word = lock_number(lock);
	post(thread);
}

void model_unlock(const void *lock)
{
	struct thread *thread = begin_other(UNLOCK, RELEASE, "unlock", 0);

	thread->step.word = lock_number(lock);
	post(thread);
}

/* ---- One run --------------------------------------------------------------------- */

static void wipe(void)
{
	for (unsigned i = 0; i < m.word_count; i++)
		m.word_at[offset_of(m.words[i].at)] = 0;
	memset(m.threads, 0, sizeof(m.threads));
	memset(&m.fences, 0, sizeof(m.fences));
	memset(m.block_at, 0, m.used / BLOCK_BYTES * sizeof(m.block_at[0]));
	m.word_count = m.store_count = 0;
	m.lock_count = m.block_count = m.depth = 0;
	m.used = m.pooled = 0;
	m.outcomes = 0;
	m.run++;
}

static bool run_alone(void (*run)(void))
{
	m.now = ALONE;
	if (_setjmp(m.home) == 0 && run)
		run();
	m.now = -1;
	return !m.found.fault[0];
}

static bool begin(void)
{
	wipe();
	m.threads[ALONE].view.steps[ALONE] = 1;
	if (!run_alone(m.program->begin))
		return false;
	for (int i = 0; i < MODEL_THREADS && m.program->threads[i]; i++) {
		thread_open(i, m.program->threads[i]);
		resume(i);
	}
	return !m.found.fault[0];
}

static bool end(void)
{
	for (int i = 0; i < MODEL_THREADS; i++)
		join(&m.threads[ALONE].view, &m.threads[i].view);
	return run_alone(m.program->end);
}

static bool all_ended(void)
{
	for (int i = 0; i < MODEL_THREADS; i++)
		if (m.threads[i].step.kind != NOTHING)
			return false;
	return true;
}

/* A fork that is met for the first time. */
static void open_fork(struct fork *fork)
{
	fork->count = fork->tried = 0;
	for (int i = 0; i < MODEL_THREADS; i++)
		add_moves(fork, i);
	if (fork->count == 0 && !all_ended())
		(void)snprintf(m.found.fault, sizeof(m.found.fault),
		               "all that have not ended wait"); /* MODEL-4 */
	drop_sleepers(fork);
}

static void make_move(struct move move, const struct fork *fork)
{
	struct thread *thread = &m.threads[move.thread];

	if (m.depth + 1 < STEPS_MOST && m.depth + 1 >= m.depth_before)
		lull_all(&m.forks[m.depth + 1], fork, move);
	note_staleness(thread, move);
	do_step(thread, move.choice);
	m.taken[m.depth] = thread->step;
	m.made[m.depth] = move;
	m.depth++;
	m.found.steps++;
	resume(move.thread);
}

/* One run, as the forks say, and on from there; true when it was to its end. */
static bool run(void)
{
	if (!begin())
		return false;
	for (;;) {
		struct fork *fork = &m.forks[m.depth];

		if (m.depth >= m.depth_before)
			open_fork(fork);
		if (fork->count == 0 || m.found.fault[0])
			break;
		make_move(fork->moves[fork->tried], fork);
		if (m.found.fault[0])
			return false;
		if (m.depth == STEPS_MOST) {
			(void)snprintf(m.found.fault, sizeof(m.found.fault),
			               "more than %d steps", STEPS_MOST); /* MODEL-4 */
			return false;
		}
	}
	return !m.found.fault[0] && all_ended() && end();
}

/* To the last fork where something is left to be tried; false if there is none. */
static bool go_back(void)
{
	while (m.depth > 0) {
		struct fork *fork = &m.forks[m.depth - 1];

		if (fork->tried + 1 < fork->count) {
			fork->tried++;
			m.depth_before = m.depth;
			return true;
		}
		m.depth--;
	}
	return false;
}

void model_watch(const struct end *ends, size_t count)
{
	m.ends = ends;
	m.end_count = count;
}

static void lay_bottoms(void)
{
	static bool laid;

	for (int i = 0; i < MODEL_THREADS && !laid; i++)
		lay_bottom(i);
	laid = true;
}

struct found model_explore(const struct program *program, const struct mutant *mutant,
                           uint64_t most)
{
	m.program = program;
	m.mutant = mutant;
	m.found = (struct found){ 0 };
	m.depth_before = 0;
	m.forks[0].sleepers = 0;
	lay_bottoms();
	do {
		if (run()) {
			m.found.runs++;
			m.found.outcomes |= m.outcomes;
		} else if (!m.found.fault[0]) {
			m.found.pruned++;
		}
		if (!m.found.fault[0] && m.found.runs > most)
			(void)snprintf(m.found.fault, sizeof(m.found.fault),
			               "more than %" PRIu64 " runs", most);
	} while (!m.found.fault[0] && go_back());
	return m.found;
}

void model_print_run(void)
{
	for (unsigned i = 0; i < m.depth; i++) {
		const struct step *step = &m.taken[i];
		const char *slash = strrchr(step->file, '/');

		printf("%4u  %u: %-8s word %-3u", i, m.made[i].thread,
		       kind_names[step->kind], step->word);
		if (is_memory(step))
			printf(" sees %u (%" PRIx64 ")%s", m.made[i].choice,
			       step->kind == STORE ? step->value : step->result,
			       step->kind == SWAP_IF && !step->swapped ? ", fails"
			                                               : "");
		printf("  %s:%d\n", slash ? slash + 1 : step->file, step->line);
	}
}
