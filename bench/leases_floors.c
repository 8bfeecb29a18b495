/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * leases_floors.c -- the least that an ask from credit can cost.
 *
 * A table by hand, as the shards' own, with their hash of short keys: half of the hash and
 * a number in a slot of eight bytes, then a line for each key, with the word that is taken
 * from and the key that is compared.  A take checks that there is enough, and swaps.  There
 * is one table, it never grows, nothing is counted, and the answer is a yes or no.
 *
 * "two lines" keeps word and key apart: what is compared is on a line that is not written.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/keys.h"
#include "runtime/atomic.h"
#include "runtime/counter.h"
#include "shards/hash.h"

#define AHEAD 16
#define MUCH (UINT64_C(1) << 62 | 0xfffffffff)
#define THERE_AND_BACK 4001 /* an odd number has a median */

/* ---- A table --------------------------------------------------------------------- */

/* How entries lie: either word and key apart, or on one line. */
struct apart {
	alignas(CACHE_LINE) _Atomic uint64_t credit;
	alignas(CACHE_LINE) uint32_t hash;
	uint16_t key_len;
	struct key key;
};
struct together {
	alignas(CACHE_LINE) _Atomic uint64_t credit;
	uint32_t hash;
	uint16_t key_len;
	struct key key;
};

struct crowd {
	uint64_t count;

	/* Made by prepare. */
	uint64_t mask;
	uint64_t *slots; /* high half of the hash, and number + 1; 0: empty */
	struct apart *apart;
	struct together *together;
};

static const struct hash_secret secret = { 42, 43 };

static uint64_t hash_of(const struct key *key)
{
	return hash_short(&secret, key, sizeof(*key));
}

static void place(struct crowd *crowd, uint64_t id)
{
	struct key key = key_of(id);
	uint64_t hash = hash_of(&key), at = hash & crowd->mask;

	while (crowd->slots[at] != 0)
		at = (at + 1) & crowd->mask;
	crowd->slots[at] = hash >> 32 << 32 | (id + 1);
	atomic_init(&crowd->apart[id].credit, MUCH);
	crowd->apart[id].hash = (uint32_t)hash;
	crowd->apart[id].key_len = sizeof(key);
	crowd->apart[id].key = key;
	atomic_init(&crowd->together[id].credit, MUCH);
	crowd->together[id].hash = (uint32_t)hash;
	crowd->together[id].key_len = sizeof(key);
	crowd->together[id].key = key;
}

static void prepare(void *arg)
{
	struct crowd *crowd = arg;

	if (crowd->slots)
		return;
	crowd->count = keys_in(crowd->count);
	for (crowd->mask = 63; crowd->mask < 2 * crowd->count;)
		crowd->mask = 2 * crowd->mask + 1;
	crowd->slots = calloc(crowd->mask + 1, sizeof(uint64_t));
	crowd->apart = aligned_alloc(CACHE_LINE, crowd->count * sizeof(struct apart));
	crowd->together =
	    aligned_alloc(CACHE_LINE, crowd->count * sizeof(struct together));
	bench_expect(crowd->slots && crowd->apart && crowd->together, "memory");
	for (uint64_t id = 0; id < crowd->count; id++)
		place(crowd, id);
}

static inline bool take(_Atomic uint64_t *credit)
{
	uint64_t word = load_relaxed(credit);

	while (word >= 1)
		if (swap_if_relaxed(credit, &word, word - 1))
			return true;
	return false;
}

/* One function for each layout, which differ in nothing else. */
#define DEFINE_ASK(layout)                                                             \
	static inline bool ask_##layout(const struct crowd *crowd,                     \
	                                const struct key *key, uint64_t hash)          \
	{                                                                              \
		for (uint64_t at = hash & crowd->mask;; at = (at + 1) & crowd->mask) { \
			uint64_t slot = crowd->slots[at];                              \
			struct layout *entry;                                          \
                                                                                       \
			if (slot == 0)                                                 \
				return false;                                          \
			if (slot >> 32 != hash >> 32)                                  \
				continue;                                              \
			entry = &crowd->layout[(uint32_t)slot - 1];                    \
			if (entry->hash == (uint32_t)hash &&                           \
			    entry->key_len == sizeof(*key) &&                          \
			    memcmp(&entry->key, key, sizeof(*key)) == 0)               \
				return take(&entry->credit);                           \
		}                                                                      \
	}                                                                              \
	static void run_##layout(struct bench *b)                                      \
	{                                                                              \
		const struct crowd *crowd = bench_arg(b);                              \
		struct picker picker = picker_of(b, crowd->count);                     \
		bool all = true;                                                       \
                                                                                       \
		for (uint64_t n; (n = bench_batch(b)) > 0;)                            \
			while (n-- > 0) {                                              \
				struct key key = key_of(pick(&picker));                \
                                                                                       \
				all &= ask_##layout(crowd, &key, hash_of(&key));       \
			}                                                              \
		bench_expect(all, "a floor's ask was denied");                         \
	}

DEFINE_ASK(apart)
DEFINE_ASK(together)

/* ---- Behind a call --------------------------------------------------------------- */

/*
 * The same work where the length of the keys, the secret and the cost are not known when it
 * is compiled, as in a library: a call, a hash of a short key of so many bytes, a
 * comparison of as many, and units that may be dead by now.
 */
struct terms {
	struct hash_secret secret;
	uint64_t now_tick;
};

static inline bool equal(const uint8_t *a, const uint8_t *b, size_t len)
{
	uint64_t x[2], y[2];

	if (len < 8 || len > 16)
		return memcmp(a, b, len) == 0;
	memcpy(&x[0], a, 8);
	memcpy(&x[1], a + len - 8, 8);
	memcpy(&y[0], b, 8);
	memcpy(&y[1], b + len - 8, 8);
	return x[0] == y[0] && x[1] == y[1];
}

static inline bool take_alive(_Atomic uint64_t *credit, uint64_t cost,
                              uint64_t now_tick)
{
	uint64_t word = load_relaxed(credit);

	while ((word & 0xfffffffff) >= cost && word >> 36 > now_tick)
		if (swap_if_relaxed(credit, &word, word - cost))
			return true;
	return false;
}

static __attribute__((noinline)) bool ask_called(const struct crowd *crowd,
                                                 const struct terms *terms,
                                                 const void *key, size_t key_len,
                                                 uint64_t cost)
{
	uint64_t hash = hash_short(&terms->secret, key, key_len);

	for (uint64_t at = hash & crowd->mask;; at = (at + 1) & crowd->mask) {
		uint64_t slot = crowd->slots[at];
		struct together *entry;

		if (slot == 0)
			return false;
		if (slot >> 32 != hash >> 32)
			continue;
		entry = &crowd->together[(uint32_t)slot - 1];
		if (entry->key_len == key_len &&
		    equal((const uint8_t *)&entry->key, key, key_len))
			return take_alive(&entry->credit, cost, terms->now_tick);
	}
}

static inline void call(struct bench *b, pick_fn *pick_one, struct picker picker,
                        bool reads_counter)
{
	const struct crowd *crowd = bench_arg(b);
	struct terms terms = { .secret = secret };
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(pick_one(&picker));

			if (reads_counter)
				terms.now_tick = counter_ticks() >> 60;
			all &= ask_called(crowd, &terms, &key, sizeof(key), 1);
		}
	bench_expect(all, "a floor's ask was denied");
}

static uint64_t keys_of(const struct bench *b)
{
	const struct crowd *crowd = bench_arg(b);

	return crowd->count;
}

static void run_called(struct bench *b)
{
	call(b, pick, picker_of(b, keys_of(b)), false);
}

static void run_called_timed(struct bench *b)
{
	call(b, pick, picker_of(b, keys_of(b)), true);
}

static void run_called_in_crowd(struct bench *b)
{
	call(b, pick_in_crowd, picker_in_crowd(keys_of(b)), false);
}

/* ---- Sixteen at a time ----------------------------------------------------------- */

static inline void fetch_slots(const struct crowd *crowd, pick_fn *pick_one,
                               struct picker *picker, struct key *keys,
                               uint64_t *hashes)
{
	for (int i = 0; i < AHEAD; i++) {
		keys[i] = key_of(pick_one(picker));
		hashes[i] = hash_of(&keys[i]);
		__builtin_prefetch(&crowd->slots[hashes[i] & crowd->mask]);
	}
}

static inline void fetch_entries(const struct crowd *crowd, const uint64_t *hashes)
{
	for (int i = 0; i < AHEAD; i++) {
		uint64_t slot = crowd->slots[hashes[i] & crowd->mask];
		struct together *entry =
		    &crowd->together[(uint32_t)(slot - 1) &
		                     (uint32_t) - (int32_t)(slot != 0)];

		__builtin_prefetch(entry, 1);
	}
}

static inline void take_ahead(struct bench *b, pick_fn *pick_one, struct picker picker)
{
	const struct crowd *crowd = bench_arg(b);
	struct key keys[AHEAD];
	uint64_t hashes[AHEAD];
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		for (; n > 0; n -= AHEAD) {
			fetch_slots(crowd, pick_one, &picker, keys, hashes);
			fetch_entries(crowd, hashes);
			for (int i = 0; i < AHEAD; i++)
				all &= ask_together(crowd, &keys[i], hashes[i]);
		}
	bench_expect(all, "a floor's ask was denied");
}

static void run_ahead(struct bench *b)
{
	take_ahead(b, pick, picker_of(b, keys_of(b)));
}

static void run_ahead_in_crowd(struct bench *b)
{
	take_ahead(b, pick_in_crowd, picker_in_crowd(keys_of(b)));
}

/* ---- One word that is held ------------------------------------------------------- */

static struct {
	struct apart inline_entry;
	struct apart behind_entry;
	_Atomic uint64_t *behind;
} held;

static void prepare_held(void *arg)
{
	(void)arg;
	atomic_init(&held.inline_entry.credit, MUCH);
	atomic_init(&held.behind_entry.credit, MUCH);
	held.behind = &held.behind_entry.credit;
}

static void run_held(struct bench *b)
{
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			all &= take(&held.inline_entry.credit);
	bench_expect(all, "a floor's ask was denied");
}

/* The pointer is read each time, as a reader must that does not own it. */
static void run_behind(struct bench *b)
{
	_Atomic uint64_t *volatile *at = (_Atomic uint64_t *volatile *)&held.behind;
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			all &= take(*at);
	bench_expect(all, "a floor's ask was denied");
}

/* ---- Each thread a word of its own ----------------------------------------------- */

static struct apart cells[2];

static void prepare_cells(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++)
		atomic_init(&cells[i].credit, MUCH);
}

static void run_cells(struct bench *b)
{
	_Atomic uint64_t *credit = &cells[bench_thread(b)].credit;
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			all &= take(credit);
	bench_expect(all, "a floor's ask was denied");
}

/* ---- To another thread and back -------------------------------------------------- */

static struct {
	int there;
	int back;
} ends;

static void *answer_all(void *arg)
{
	uint64_t one = 1;

	for (int i = 0; i < THERE_AND_BACK; i++)
		bench_expect(read(ends.there, &one, sizeof(one)) == sizeof(one) &&
		                 write(ends.back, &one, sizeof(one)) == sizeof(one),
		             "an eventfd");
	return arg;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double there_and_back(void *arg)
{
	static uint64_t took[THERE_AND_BACK];
	pthread_t thread;
	uint64_t one = 1;

	(void)arg;
	ends.there = eventfd(0, EFD_CLOEXEC);
	ends.back = eventfd(0, EFD_CLOEXEC);
	bench_expect(pthread_create(&thread, NULL, answer_all, NULL) == 0, "a thread");
	for (int i = 0; i < THERE_AND_BACK; i++) {
		uint64_t begin = now_ns();

		bench_expect(write(ends.there, &one, sizeof(one)) == sizeof(one) &&
		                 read(ends.back, &one, sizeof(one)) == sizeof(one),
		             "an eventfd");
		took[i] = now_ns() - begin;
	}
	pthread_join(thread, NULL);
	qsort(took, THERE_AND_BACK, sizeof(took[0]), compare);
	return (double)took[THERE_AND_BACK / 2] / 1000;
}

/* ---- The rows -------------------------------------------------------------------- */

static struct crowd one = { .count = 1 };
static struct crowd thousand = { .count = 1000 };
static struct crowd ten_thousand = { .count = 10000 };
static struct crowd million = { .count = 1000000 };

static void row(const char *name, void (*run)(struct bench *),
                void (*prepare_it)(void *), void *arg, int threads)
{
	bench_add(&(struct bench_row){ .name = name,
	                               .run = run,
	                               .prepare = prepare_it,
	                               .arg = arg,
	                               .threads = threads });
}

void ask_lease_floors(void)
{
	row("take/held", run_held, prepare_held, NULL, 1);
	row("take/held, behind a pointer", run_behind, prepare_held, NULL, 1);
	row("take/held, two threads", run_held, prepare_held, NULL, 2);
	row("take/a cell each, two threads", run_cells, prepare_cells, NULL, 2);
	row("take/1 key", run_together, prepare, &one, 1);
	row("take/1 key, behind a call", run_called, prepare, &one, 1);
	row("take/1 key, behind a call, rdtsc", run_called_timed, prepare, &one, 1);
	row("take/1,000 keys, behind a call", run_called, prepare, &thousand, 1);
	row("take/10,000 keys, Zipf, behind a call", run_called_in_crowd, prepare,
	    &ten_thousand, 1);
	row("take/1,000,000 keys, behind a call", run_called, prepare, &million, 1);
	row("take/1 key, two threads", run_together, prepare, &one, 2);
	row("take/1,000 keys", run_together, prepare, &thousand, 1);
	row("take/1,000,000 keys", run_together, prepare, &million, 1);
	row("take/1 key, two lines", run_apart, prepare, &one, 1);
	row("take/1 key, two lines, two threads", run_apart, prepare, &one, 2);
	row("take/1,000 keys, two lines", run_apart, prepare, &thousand, 1);
	row("take/1,000,000 keys, two lines", run_apart, prepare, &million, 1);
	row("take/16 at a time, 1,000 keys", run_ahead, prepare, &thousand, 1);
	row("take/16 at a time, 10,000 keys, Zipf", run_ahead_in_crowd, prepare,
	    &ten_thousand, 1);
	row("take/16 at a time, 1,000,000 keys", run_ahead, prepare, &million, 1);
	bench_add_figure(&(struct bench_figure){ .name = "take/to a thread and back",
	                                         .unit = "us",
	                                         .measure = there_and_back });
}
