/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * choices.c -- what would the other choices give?
 *
 * The tables of two libraries in the place of our own: the same keys, one line for each,
 * the same take at the end.  And the ways to share one hot word that were not
 * taken.  Nothing of this is in the library.
 */
#define _GNU_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <ck_hs.h>
#include <ck_ht.h>
#include <ck_rhs.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>
#include <urcu/rculfhash.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bench/bench.h"
#include "bench/keys.h"
#include "runtime/atomic.h"

#define SEED 42
#define MUCH (UINT64_C(1) << 62)

struct entry {
	alignas(CACHE_LINE) _Atomic uint64_t credit;
	struct key key;
	struct cds_lfht_node node;
	_Atomic uint64_t
	    *behind; /* the credit again, where it is not found with the entry */
};

static uint64_t hash_of(const struct key *key)
{
	return XXH3_64bits_withSeed(key, sizeof(*key), SEED);
}

static bool equal(const struct key *a, const struct key *b)
{
	return a->bytes[0] == b->bytes[0] && a->bytes[1] == b->bytes[1];
}

static inline bool take(_Atomic uint64_t *credit)
{
	uint64_t word = load_relaxed(credit);

	while (word >= 1)
		if (swap_if_relaxed(credit, &word, word - 1))
			return true;
	return false;
}

/* ---- Keys in every table --------------------------------------------------------- */

struct crowd {
	uint64_t count;
	struct entry *entries;
	_Atomic uint64_t *credits; /* far from the entries */
	ck_ht_t ht;
	ck_hs_t hs;
	ck_rhs_t rhs;
	struct cds_lfht *lfht;
};

static void *table_malloc(size_t bytes)
{
	return malloc(bytes);
}

static void *table_realloc(void *old, size_t was, size_t bytes, bool defer)
{
	(void)was;
	(void)defer;
	return realloc(old, bytes);
}

static void table_free(void *memory, size_t bytes, bool defer)
{
	(void)bytes;
	(void)defer;
	free(memory);
}

static struct ck_malloc table_memory = { .malloc = table_malloc,
	                                 .realloc = table_realloc,
	                                 .free = table_free };

/* ck's sets hold the keys of entries. */
static unsigned long hash_key(const void *key, unsigned long seed)
{
	(void)seed;
	return hash_of(key);
}

static bool same_key(const void *a, const void *b)
{
	return equal(a, b);
}

static inline struct entry *entry_of(struct key *key)
{
	return key ? caa_container_of(key, struct entry, key) : NULL;
}

static int is_of_key(struct cds_lfht_node *node, const void *key)
{
	return equal(&caa_container_of(node, struct entry, node)->key, key);
}

static void place_in_ht(ck_ht_t *ht, struct entry *entry, uint64_t hash)
{
	ck_ht_entry_t slot;
	ck_ht_hash_t at;

	ck_ht_hash_direct(&at, ht, hash);
	ck_ht_entry_set_direct(&slot, at, hash, (uintptr_t)entry);
	bench_expect(ck_ht_put_spmc(ht, at, &slot), "ck_ht_put_spmc");
}

static void place(struct crowd *crowd, uint64_t id)
{
	struct entry *entry = &crowd->entries[id];
	uint64_t hash;

	entry->key = key_of(id);
	entry->behind = &crowd->credits[id * CACHE_LINE / sizeof(uint64_t)];
	atomic_init(&entry->credit, MUCH);
	atomic_init(entry->behind, MUCH);
	hash = hash_of(&entry->key);
	place_in_ht(&crowd->ht, entry, hash);
	bench_expect(ck_hs_put_unique(&crowd->hs, hash, &entry->key), "ck_hs_put");
	bench_expect(ck_rhs_put_unique(&crowd->rhs, hash, &entry->key), "ck_rhs_put");
	cds_lfht_node_init(&entry->node);
	urcu_qsbr_read_lock();
	cds_lfht_add(crowd->lfht, hash, &entry->node);
	urcu_qsbr_read_unlock();
}

static void open_tables(struct crowd *crowd)
{
	unsigned room = (unsigned)(2 * crowd->count);

	bench_expect(ck_ht_init(&crowd->ht, CK_HT_MODE_DIRECT, NULL, &table_memory,
	                        room, SEED) &&
	                 ck_hs_init(&crowd->hs, CK_HS_MODE_SPMC | CK_HS_MODE_OBJECT,
	                            hash_key, same_key, &table_memory, room, SEED) &&
	                 ck_rhs_init(&crowd->rhs, CK_RHS_MODE_SPMC | CK_RHS_MODE_OBJECT,
	                             hash_key, same_key, &table_memory, room, SEED),
	             "a table of ck's");
	crowd->lfht = cds_lfht_new_flavor(64, 64, 0, CDS_LFHT_AUTO_RESIZE,
	                                  &urcu_qsbr_flavor, NULL);
	bench_expect(crowd->lfht, "a table of liburcu's");
}

static void prepare(void *arg)
{
	struct crowd *crowd = arg;

	if (crowd->entries)
		return;
	crowd->count = keys_in(crowd->count);
	crowd->entries = aligned_alloc(CACHE_LINE, crowd->count * sizeof(struct entry));
	crowd->credits = aligned_alloc(CACHE_LINE, crowd->count * CACHE_LINE);
	bench_expect(crowd->entries && crowd->credits, "memory");
	urcu_qsbr_register_thread();
	open_tables(crowd);
	for (uint64_t id = 0; id < crowd->count; id++)
		place(crowd, id);
	urcu_qsbr_unregister_thread();
}

/* ---- Asking each of them --------------------------------------------------------- */

static inline struct entry *find_ht(struct crowd *crowd, const struct key *key,
                                    uint64_t hash)
{
	ck_ht_entry_t slot;
	ck_ht_hash_t at;
	struct entry *entry;

	ck_ht_hash_direct(&at, &crowd->ht, hash);
	ck_ht_entry_key_set_direct(&slot, hash);
	if (!ck_ht_get_spmc(&crowd->ht, at, &slot))
		return NULL;
	entry = (struct entry *)ck_ht_entry_value_direct(&slot);
	return equal(&entry->key, key) ? entry : NULL;
}

static inline struct entry *find_hs(struct crowd *crowd, const struct key *key,
                                    uint64_t hash)
{
	return entry_of(ck_hs_get(&crowd->hs, hash, key));
}

static inline struct entry *find_rhs(struct crowd *crowd, const struct key *key,
                                     uint64_t hash)
{
	return entry_of(ck_rhs_get(&crowd->rhs, hash, key));
}

static inline struct entry *find_lfht(struct crowd *crowd, const struct key *key,
                                      uint64_t hash)
{
	struct cds_lfht_iter iter;

	cds_lfht_lookup(crowd->lfht, hash, is_of_key, key, &iter);
	return iter.node ? caa_container_of(iter.node, struct entry, node) : NULL;
}

#define DEFINE_RUN(table)                                                              \
	static void run_##table(struct bench *b)                                       \
	{                                                                              \
		struct crowd *crowd = bench_arg(b);                                    \
		struct picker picker = picker_of(b, crowd->count);                     \
		bool all = true;                                                       \
                                                                                       \
		urcu_qsbr_register_thread();                                           \
		for (uint64_t n; (n = bench_batch(b)) > 0;)                            \
			while (n-- > 0) {                                              \
				struct key key = key_of(pick(&picker));                \
				struct entry *entry =                                  \
				    find_##table(crowd, &key, hash_of(&key));          \
                                                                                       \
				all &= entry && take(&entry->credit);                  \
			}                                                              \
		urcu_qsbr_unregister_thread();                                         \
		bench_expect(all, "a key was not found");                              \
	}

DEFINE_RUN(ht)
DEFINE_RUN(hs)
DEFINE_RUN(rhs)
DEFINE_RUN(lfht)

/* ---- Entries that are held ------------------------------------------------------- */

static void run_inline(struct bench *b)
{
	struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			all &= take(&crowd->entries[pick(&picker)].credit);
	bench_expect(all, "nothing was left");
}

static void run_behind(struct bench *b)
{
	struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			all &= take(crowd->entries[pick(&picker)].behind);
	bench_expect(all, "nothing was left");
}

/* ---- One hot word ---------------------------------------------------------------- */

/* What a word begins with is enough for a run. */
static struct {
	alignas(CACHE_LINE) _Atomic uint64_t credit;
	alignas(CACHE_LINE) struct key key; /* which every ask compares */
	struct {
		_Atomic uint64_t units;
		uint64_t unused;
	} near[2]; /* slices on the line of the key */
	struct {
		alignas(2 * CACHE_LINE) _Atomic uint64_t units;
	} apart[2];
} hot;

static void prepare_hot(void *arg)
{
	(void)arg;
	hot.key = key_of(0);
	atomic_init(&hot.credit, MUCH);
}

/* Units taken beyond the limit are put back: others may be denied meanwhile. */
static void run_undo(struct bench *b)
{
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			bool had = (int64_t)sub_relaxed(&hot.credit, 1) > 0;

			if (!had)
				add_relaxed(&hot.credit, 1);
			all &= had;
		}
	bench_expect(all, "nothing was left");
}

static void run_swap(struct bench *b)
{
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			all &= take(&hot.credit);
	bench_expect(all, "nothing was left");
}

/* A slice is cut off when there is nothing left of the last. */
static inline bool take_sliced(_Atomic uint64_t *units, uint64_t slice)
{
	if (take(units))
		return true;
	if ((int64_t)sub_relaxed(&hot.credit, slice) <= 0)
		return false;
	store_relaxed(units, slice - 1);
	return true;
}

static inline void slices(struct bench *b, _Atomic uint64_t *units, uint64_t slice)
{
	struct key key = key_of(0);
	bool all = true;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			bench_keep(&key);
			all &= equal((const struct key *)&hot.key, &key) &&
			       take_sliced(units, slice);
		}
	bench_expect(all, "nothing was left");
}

static uint64_t small_slice = 64, large_slice = 256;

static void run_near(struct bench *b)
{
	slices(b, &hot.near[bench_thread(b) % 2].units, *(uint64_t *)bench_arg(b));
}

static void run_apart(struct bench *b)
{
	slices(b, &hot.apart[bench_thread(b) % 2].units, *(uint64_t *)bench_arg(b));
}

/* ---- The rows -------------------------------------------------------------------- */

static struct crowd one = { .count = 1 };
static struct crowd thousand = { .count = 1000 };
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

static void ask_words(void)
{
	row("choices/swap, two threads", run_swap, prepare_hot, NULL, 2);
	row("choices/subtract, then undo, two threads", run_undo, prepare_hot, NULL, 2);
	row("choices/slices of 64 beside the key", run_near, prepare_hot, &small_slice,
	    1);
	row("choices/slices of 64 beside the key, two threads", run_near, prepare_hot,
	    &small_slice, 2);
	row("choices/slices of 64 apart", run_apart, prepare_hot, &small_slice, 1);
	row("choices/slices of 64 apart, two threads", run_apart, prepare_hot,
	    &small_slice, 2);
	row("choices/slices of 256 apart", run_apart, prepare_hot, &large_slice, 1);
	row("choices/slices of 256 apart, two threads", run_apart, prepare_hot,
	    &large_slice, 2);
}

void ask_choices(void)
{
	row("choices/ck_ht, 1 key", run_ht, prepare, &one, 1);
	row("choices/ck_ht, 1,000 keys", run_ht, prepare, &thousand, 1);
	row("choices/ck_ht, 1,000,000 keys", run_ht, prepare, &million, 1);
	row("choices/ck_hs, 1 key", run_hs, prepare, &one, 1);
	row("choices/ck_hs, 1,000 keys", run_hs, prepare, &thousand, 1);
	row("choices/ck_hs, 1,000,000 keys", run_hs, prepare, &million, 1);
	row("choices/ck_rhs, 1 key", run_rhs, prepare, &one, 1);
	row("choices/ck_rhs, 1,000 keys", run_rhs, prepare, &thousand, 1);
	row("choices/ck_rhs, 1,000,000 keys", run_rhs, prepare, &million, 1);
	row("choices/rculfhash, 1 key", run_lfht, prepare, &one, 1);
	row("choices/rculfhash, 1,000 keys", run_lfht, prepare, &thousand, 1);
	row("choices/rculfhash, 1,000,000 keys", run_lfht, prepare, &million, 1);
	row("choices/held, inline, 1,000 keys", run_inline, prepare, &thousand, 1);
	row("choices/held, inline, 1,000,000 keys", run_inline, prepare, &million, 1);
	row("choices/held, behind a pointer, 1,000 keys", run_behind, prepare,
	    &thousand, 1);
	row("choices/held, behind a pointer, 1,000,000 keys", run_behind, prepare,
	    &million, 1);
	ask_words();
}
