/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * panic.h -- what happens when an invariant is broken.
 *
 * First nothing is admitted any more, by any runtime of this library; then the host is
 * told; then the process is aborted.  A host whose hook does not return goes on living,
 * fenced: a broken invariant costs availability, never the bound.
 *
 * Threads   panic_fenced: any.
 */
#ifndef RUNTIME_PANIC_H
#define RUNTIME_PANIC_H

#include <stdbool.h>

#include "runtime/atomic.h"

/* panic.c's alone to write. */
extern _Atomic bool panic_word;

/* Has any invariant been broken in this process? */
static inline bool panic_fenced(void)
{
	return load_relaxed(&panic_word);
}

#endif
