/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * floors.c -- what does the bare work cost on this machine?
 *
 * The floors that every other row is held to: an atomic step, a clock, a hash, a probe
 * of a table, a lock.  The table is the least that a limiter with keys can do: the hash
 * in the slot, then an entry with the key and a word of credit on a line of its own.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bench/bench.h"
#include "bench/keys.h"
#include "runtime/atomic.h"
#include "shards/hash.h"

#define LINE 64
#define SEED 42
#define AHEAD 16   /* keys that are looked up together */
#define STRIPES 64 /* locks, as many as the embedded store has */

/* ---- One word -------------------------------------------------------------------- */

static struct {
	alignas(LINE) _Atomic uint64_t value;
} word;

static void subtract(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			sub_relaxed(&word.value, 1);
}

static void compare_and_swap(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			uint64_t seen = load_relaxed(&word.value);

			while (!swap_if_relaxed(&word.value, &seen, seen - 1))
				continue;
		}
}

/* ---- Clocks ---------------------------------------------------------------------- */

#if defined(__x86_64__)
static void counter(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			uint64_t now = __builtin_ia32_rdtsc();

			bench_keep(&now);
		}
}

/* The least that an ask with a clock of its own takes. */
static void counter_and_swap(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			uint64_t now = __builtin_ia32_rdtsc();
			uint64_t seen = load_relaxed(&word.value);

			bench_keep(&now);
			while (!swap_if_relaxed(&word.value, &seen, seen - 1))
				continue;
		}
}
#endif

static clockid_t monotonic = CLOCK_MONOTONIC;
static clockid_t boottime = CLOCK_BOOTTIME;
static clockid_t coarse = CLOCK_MONOTONIC_COARSE;

static void read_clock(struct bench *b)
{
	clockid_t id = *(clockid_t *)bench_arg(b);

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			struct timespec now;

			clock_gettime(id, &now);
			bench_keep(&now);
		}
}

/* ---- A table --------------------------------------------------------------------- */

struct entry {
	struct key key;
	_Atomic uint64_t credit;
	uint8_t rest[LINE - sizeof(struct key) - sizeof(uint64_t)];
};

struct slot {
	uint64_t hash;
	struct entry *entry; /* NULL: empty */
};

/* Half of the slots or more stay empty. */
struct table {
	struct slot *slots;
	struct entry *entries;
	uint64_t mask;
};

static uint64_t hash_of(const struct key *key)
{
	return XXH3_64bits_withSeed(key, sizeof(*key), SEED);
}

static struct entry *find(const struct table *table, const struct key *key,
                          uint64_t hash)
{
	for (uint64_t at = hash & table->mask;; at = (at + 1) & table->mask) {
		const struct slot *slot = &table->slots[at];

		if (!slot->entry)
			return NULL;
		if (slot->hash == hash &&
		    memcmp(&slot->entry->key, key, sizeof(*key)) == 0)
			return slot->entry;
	}
}

static void put(const struct table *table, struct entry *entry, uint64_t hash)
{
	uint64_t at = hash & table->mask;

	while (table->slots[at].entry)
		at = (at + 1) & table->mask;
	table->slots[at] = (struct slot){ hash, entry };
}

static uint64_t slots_for(uint64_t count)
{
	uint64_t slots = 2;

	while (slots < 2 * count)
		slots *= 2;
	return slots;
}

static void make_table(struct table *table, uint64_t count)
{
	table->mask = slots_for(count) - 1;
	table->slots = calloc(table->mask + 1, sizeof(struct slot));
	table->entries = aligned_alloc(LINE, count * sizeof(struct entry));
	bench_expect(table->slots && table->entries, "memory for a table");
	for (uint64_t id = 0; id < count; id++) {
		struct entry *entry = &table->entries[id];

		entry->key = key_of(id);
		atomic_init(&entry->credit, 0);
		put(table, entry, hash_of(&entry->key));
	}
}

/* Tables of one size are shared by their rows, and live on. */
struct crowd {
	uint64_t count;
	struct table table;
};
static struct crowd one = { .count = 1 };
static struct crowd thousand = { .count = 1000 };
static struct crowd million = { .count = 1000000 };

static void prepare_crowd(void *arg)
{
	struct crowd *crowd = arg;

	crowd->count = keys_in(crowd->count);
	if (!crowd->table.slots)
		make_table(&crowd->table, crowd->count);
}

static inline __attribute__((always_inline)) void
hash_each(struct bench *b, uint64_t (*hash_it)(const struct key *key))
{
	uint64_t id = 0;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(id++);
			uint64_t hash = hash_it(&key);

			bench_keep(&hash);
		}
}

static void hash_only(struct bench *b)
{
	hash_each(b, hash_of);
}

/* As the shards hash them. */
static uint64_t short_hash_of(const struct key *key)
{
	static const struct hash_secret secret = { SEED, SEED + 1 };

	return hash_short(&secret, key, sizeof(*key));
}

static void short_hash_only(struct bench *b)
{
	hash_each(b, short_hash_of);
}

static void probe(struct bench *b)
{
	const struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(pick(&picker));
			struct entry *entry = find(&crowd->table, &key, hash_of(&key));

			sub_relaxed(&entry->credit, 1);
		}
}

/* Hash all and fetch their slots, fetch their entries, then take from each. */
static void probe_ahead(const struct table *table, struct picker *picker)
{
	uint64_t hashes[AHEAD];
	struct key keys[AHEAD];

	for (int i = 0; i < AHEAD; i++) {
		keys[i] = key_of(pick(picker));
		hashes[i] = hash_of(&keys[i]);
		__builtin_prefetch(&table->slots[hashes[i] & table->mask]);
	}
	for (int i = 0; i < AHEAD; i++)
		__builtin_prefetch(table->slots[hashes[i] & table->mask].entry, 1);
	for (int i = 0; i < AHEAD; i++)
		sub_relaxed(&find(table, &keys[i], hashes[i])->credit, 1);
}

static void probe_16(struct bench *b)
{
	const struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		for (; n > 0; n -= AHEAD)
			probe_ahead(&crowd->table, &picker);
}

/* ---- Locks ----------------------------------------------------------------------- */

static struct stripe {
	alignas(LINE) pthread_mutex_t mutex;
} stripes[STRIPES];

static void prepare_stripes(void)
{
	static bool ready;

	for (int i = 0; i < STRIPES && !ready; i++)
		pthread_mutex_init(&stripes[i].mutex, NULL);
	ready = true;
}

static void prepare_lock(void *arg)
{
	(void)arg;
	prepare_stripes();
}

static void prepare_locked_crowd(void *arg)
{
	prepare_stripes();
	prepare_crowd(arg);
}

static void lock_and_unlock(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			pthread_mutex_lock(&stripes[0].mutex);
			pthread_mutex_unlock(&stripes[0].mutex);
		}
}

static struct stripe *stripe_of(uint64_t hash)
{
	return &stripes[(hash >> 32) % STRIPES];
}

/* The lock guards the credit. */
static void take_locked(const struct table *table, const struct key *key, uint64_t hash)
{
	struct entry *entry = find(table, key, hash);

	store_relaxed(&entry->credit, load_relaxed(&entry->credit) - 1);
}

static void lock_and_probe(struct bench *b)
{
	const struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(pick(&picker));
			uint64_t hash = hash_of(&key);
			struct stripe *stripe = stripe_of(hash);

			pthread_mutex_lock(&stripe->mutex);
			take_locked(&crowd->table, &key, hash);
			pthread_mutex_unlock(&stripe->mutex);
		}
}

/* What a store must do that reads its time within the step: the clock also ends the
 * overlap of one probe's cache misses with the next one's. */
static void lock_clock_and_probe(struct bench *b)
{
	const struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(pick(&picker));
			uint64_t hash = hash_of(&key);
			struct stripe *stripe = stripe_of(hash);
			struct timespec now;

			pthread_mutex_lock(&stripe->mutex);
			clock_gettime(CLOCK_BOOTTIME, &now);
			bench_keep(&now);
			take_locked(&crowd->table, &key, hash);
			pthread_mutex_unlock(&stripe->mutex);
		}
}

/* ---- New keys -------------------------------------------------------------------- */

static void twice_the_slots(struct table *table)
{
	struct table larger = { .mask = 2 * table->mask + 1 };

	larger.slots = calloc(larger.mask + 1, sizeof(struct slot));
	bench_expect(larger.slots != NULL, "memory for a table");
	for (uint64_t i = 0; i <= table->mask; i++)
		if (table->slots[i].entry)
			put(&larger, table->slots[i].entry, table->slots[i].hash);
	free(table->slots);
	*table = larger;
}

static void add(struct table *table, uint64_t id)
{
	struct entry *entry = malloc(sizeof(*entry));

	bench_expect(entry != NULL, "memory for an entry");
	entry->key = key_of(id);
	atomic_init(&entry->credit, 0);
	if (2 * id >= table->mask)
		twice_the_slots(table);
	put(table, entry, hash_of(&entry->key));
}

static void empty(struct table *table)
{
	for (uint64_t i = 0; i <= table->mask; i++)
		free(table->slots[i].entry);
	free(table->slots);
}

static void new_keys(struct bench *b)
{
	struct table table = { .slots = calloc(2, sizeof(struct slot)), .mask = 1 };
	uint64_t id = 0;

	bench_expect(table.slots != NULL, "memory for a table");
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(id);

			if (!find(&table, &key, hash_of(&key)))
				add(&table, id++);
		}
	empty(&table);
}

/* ---- The rows -------------------------------------------------------------------- */

static void row(const char *name, void (*run)(struct bench *), void (*prepare)(void *),
                void *arg, int threads)
{
	bench_add(&(struct bench_row){ .name = name,
	                               .run = run,
	                               .prepare = prepare,
	                               .arg = arg,
	                               .threads = threads });
}

static void add_words_and_clocks(void)
{
	row("floors/subtract", subtract, NULL, NULL, 1);
	row("floors/subtract, two threads", subtract, NULL, NULL, 2);
	row("floors/compare and swap", compare_and_swap, NULL, NULL, 1);
	row("floors/compare and swap, two threads", compare_and_swap, NULL, NULL, 2);
#if defined(__x86_64__)
	row("floors/clock: rdtsc", counter, NULL, NULL, 1);
	row("floors/rdtsc, compare and swap", counter_and_swap, NULL, NULL, 1);
#endif
	row("floors/clock: monotonic", read_clock, NULL, &monotonic, 1);
	row("floors/clock: boottime", read_clock, NULL, &boottime, 1);
	row("floors/clock: monotonic, coarse", read_clock, NULL, &coarse, 1);
}

static void add_probes(void)
{
	row("floors/hash of 16 bytes", hash_only, NULL, NULL, 1);
	row("floors/hash of 16 bytes, as shards do", short_hash_only, NULL, NULL, 1);
	row("floors/probe, 1 key", probe, prepare_crowd, &one, 1);
	row("floors/probe, 1,000 keys", probe, prepare_crowd, &thousand, 1);
	row("floors/probe, 1,000,000 keys", probe, prepare_crowd, &million, 1);
	row("floors/probe 16 at a time, 1 key", probe_16, prepare_crowd, &one, 1);
	row("floors/probe 16 at a time, 1,000 keys", probe_16, prepare_crowd, &thousand,
	    1);
	row("floors/probe 16 at a time, 1,000,000 keys", probe_16, prepare_crowd,
	    &million, 1);
}

static void add_locked(const char *name, void (*run)(struct bench *),
                       struct crowd *crowd, int threads)
{
	row(name, run, prepare_locked_crowd, crowd, threads);
}

static void add_locks(void)
{
	row("floors/lock", lock_and_unlock, prepare_lock, NULL, 1);
	row("floors/lock, two threads", lock_and_unlock, prepare_lock, NULL, 2);
	add_locked("floors/lock, probe, 1 key", lock_and_probe, &one, 1);
	add_locked("floors/lock, probe, 1,000,000 keys", lock_and_probe, &million, 1);
	add_locked("floors/lock, clock, probe, 1 key", lock_clock_and_probe, &one, 1);
	add_locked("floors/lock, clock, probe, 1 key, two threads",
	           lock_clock_and_probe, &one, 2);
	add_locked("floors/lock, clock, probe, 1,000 keys", lock_clock_and_probe,
	           &thousand, 1);
	add_locked("floors/lock, clock, probe, 1,000 keys, two threads",
	           lock_clock_and_probe, &thousand, 2);
	add_locked("floors/lock, clock, probe, 1,000,000 keys", lock_clock_and_probe,
	           &million, 1);
	add_locked("floors/lock, clock, probe, 1,000,000 keys, two threads",
	           lock_clock_and_probe, &million, 2);
}

void ask_floors(void)
{
	add_words_and_clocks();
	add_probes();
	add_locks();
	bench_add(&(struct bench_row){
	    .name = "floors/new key", .run = new_keys, .operations = 1000000 });
}
