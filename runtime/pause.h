/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pause.h -- a pause of some cycles, for a thread that waits for a word.
 *
 * Threads   Any.
 */
#ifndef RUNTIME_PAUSE_H
#define RUNTIME_PAUSE_H

/* The processor does something else for some tens of cycles. */
static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
