/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * atomic.h -- stands in for runtime/atomic.h: the same words, each a step of the model.
 *
 * Found first on the include path of what tests/interleave compiles again.
 *
 * Threads   See tests/interleave/model.h.
 */
#ifndef RUNTIME_ATOMIC_H
#define RUNTIME_ATOMIC_H

#include <stdatomic.h>

#include "tests/interleave/model.h"

#define CACHE_LINE 64

#define VALUE_OF_(p) __typeof__((void)0, *(p))
#define AT_(p) (p), sizeof(*(p))
#define AS_WORD_(v) ((uint64_t)(uintptr_t)(v))
#define HERE_ __FILE__, __LINE__

#define LOAD_(p, order) ((VALUE_OF_(p))model_load(AT_(p), order, HERE_))
#define STORE_(p, v, order) model_store(AT_(p), AS_WORD_(v), order, HERE_)
#define CHANGE_(p, how, v, order)                                                      \
	((VALUE_OF_(p))model_change(AT_(p), how, AS_WORD_(v), order, HERE_))
#define SWAP_IF_(p, expected, v, order)                                                \
	model_swap_if(AT_(p), expected, AS_WORD_(v), order, HERE_)

#define load_relaxed(p) LOAD_(p, RELAXED)
#define load_acquire(p) LOAD_(p, ACQUIRE)
#define store_relaxed(p, v) STORE_(p, v, RELAXED)
#define store_release(p, v) STORE_(p, v, RELEASE)
#define add_relaxed(p, v) CHANGE_(p, CHANGE_ADD, v, RELAXED)
#define add_release(p, v) CHANGE_(p, CHANGE_ADD, v, RELEASE)
#define sub_relaxed(p, v) CHANGE_(p, CHANGE_SUB, v, RELAXED)
#define sub_release(p, v) CHANGE_(p, CHANGE_SUB, v, RELEASE)
#define swap_relaxed(p, v) CHANGE_(p, CHANGE_SWAP, v, RELAXED)
#define swap_acquire(p, v) CHANGE_(p, CHANGE_SWAP, v, ACQUIRE)
#define swap_release(p, v) CHANGE_(p, CHANGE_SWAP, v, RELEASE)
#define or_relaxed(p, v) CHANGE_(p, CHANGE_OR, v, RELAXED)
#define sub_acq_rel(p, v) CHANGE_(p, CHANGE_SUB, v, ACQ_REL)
#define swap_acq_rel(p, v) CHANGE_(p, CHANGE_SWAP, v, ACQ_REL)
#define swap_if_relaxed(p, expected, v) SWAP_IF_(p, expected, v, RELAXED)
#define swap_if_acquire(p, expected, v) SWAP_IF_(p, expected, v, ACQUIRE)
#define swap_if_release(p, expected, v) SWAP_IF_(p, expected, v, RELEASE)
#define swap_if_acq_rel(p, expected, v) SWAP_IF_(p, expected, v, ACQ_REL)
#define fence_full() model_fence(HERE_)
#define fence_compiler() ((void)0)
#define fence_swapped_full() model_fence(HERE_)

#undef atomic_init
#define atomic_init(p, v) model_init(AT_(p), AS_WORD_(v))

#endif
