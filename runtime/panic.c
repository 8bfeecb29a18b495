/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * panic.c -- fence, tell, abort.
 *
 * The words are relaxed: an ask that runs at the same instant may still be admitted,
 * as if it had come before; nothing else is read on the strength of them.
 *
 * Threads   Any.  The first one of a process tells; its others stay where they are.
 */
#define _GNU_SOURCE
#include "runtime/panic.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <gale/gale.h>

#include "engine/check.h"
#include "runtime/atomic.h"
#include "runtime/lifeline.h"

_Atomic bool panic_word;
static _Atomic int teller; /* the process one of whose threads tells; 0: none */
static void (*_Atomic on_panic)(const char *what);

void gale_on_panic(void (*hook)(const char *what))
{
	store_relaxed(&on_panic, hook);
}

static _Noreturn void stay_here(void)
{
	for (;;)
		pause();
}

void gale_panic(const char *file, int line, const char *what)
{
	void (*hook)(const char *) = load_relaxed(&on_panic);
	int self = getpid();
	char text[256];

	store_relaxed(&panic_word, true);
	if (swap_relaxed(&teller, self) == self)
		stay_here(); /* another thread is telling the host */
	lifeline_fence_all();
	snprintf(text, sizeof(text), "%s:%d: broken: %s", file, line, what);
	if (hook)
		hook(text);
	abort();
}
