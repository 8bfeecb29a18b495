/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * atomic.h -- the whole vocabulary for words that threads share.
 *
 * The memory order is part of the name.  Every acquire and release is one end of a
 * named pair, declared under Ordering in the head of a file; each end repeats the name
 * at the end of its line, and tests/lint/ordering.py checks that both are there.
 *
 * Threads   Any: what is shared is a word, and whose it is says the file that has it.
 */
#ifndef RUNTIME_ATOMIC_H
#define RUNTIME_ATOMIC_H

#include <stdatomic.h>

#define CACHE_LINE 64 /* words that different threads write lie this far apart */

#define load_relaxed(p) atomic_load_explicit(p, memory_order_relaxed)
#define load_acquire(p) atomic_load_explicit(p, memory_order_acquire)
#define store_relaxed(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit(p, v, memory_order_release)
#define add_relaxed(p, v) atomic_fetch_add_explicit(p, v, memory_order_relaxed)
#define add_release(p, v) atomic_fetch_add_explicit(p, v, memory_order_release)
#define sub_relaxed(p, v) atomic_fetch_sub_explicit(p, v, memory_order_relaxed)
#define sub_release(p, v) atomic_fetch_sub_explicit(p, v, memory_order_release)
#define swap_relaxed(p, v) atomic_exchange_explicit(p, v, memory_order_relaxed)
#define swap_acquire(p, v) atomic_exchange_explicit(p, v, memory_order_acquire)
#define swap_release(p, v) atomic_exchange_explicit(p, v, memory_order_release)
#define or_relaxed(p, v) atomic_fetch_or_explicit(p, v, memory_order_relaxed)

/* Writes before one such step are seen after the next one on the same word. */
#define sub_acq_rel(p, v) atomic_fetch_sub_explicit(p, v, memory_order_acq_rel)
#define swap_acq_rel(p, v) atomic_exchange_explicit(p, v, memory_order_acq_rel)

/* If *p is *expected, it becomes v; otherwise *expected becomes *p. */
#define swap_if_relaxed(p, expected, v)                                                \
	atomic_compare_exchange_weak_explicit(p, expected, v, memory_order_relaxed,    \
	                                      memory_order_relaxed)

#define swap_if_acquire(p, expected, v)                                                \
	atomic_compare_exchange_weak_explicit(p, expected, v, memory_order_acquire,    \
	                                      memory_order_relaxed)

/* The same, where each new value tells what was done before it was set. */
#define swap_if_release(p, expected, v)                                                \
	atomic_compare_exchange_weak_explicit(p, expected, v, memory_order_release,    \
	                                      memory_order_relaxed)
#define swap_if_acq_rel(p, expected, v)                                                \
	atomic_compare_exchange_weak_explicit(p, expected, v, memory_order_acq_rel,    \
	                                      memory_order_acquire)

/* Two threads that each write one word, pass here and read the other's word cannot
 * both miss what the other wrote. */
#define fence_full() atomic_thread_fence(memory_order_seq_cst)

/* For the compiler only: where another thread makes this one pass a fence. */
#define fence_compiler() atomic_signal_fence(memory_order_seq_cst)

/* The same as fence_full, right after a swap of a word or an addition to it: x86 does those with
 * a fence of their own. */
#if defined(__x86_64__)
#define fence_swapped_full() fence_compiler()
#else
#define fence_swapped_full() fence_full()
#endif

#endif
