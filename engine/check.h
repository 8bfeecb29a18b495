/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * check.h -- assertions that stay on.
 *
 * gale_assert   cheap, one condition, in every build: a broken one fences every runtime
 *               (nothing is admitted any more), tells the host, and aborts.
 * gale_audit    walks; in builds for debugging and testing only.
 */
#ifndef ENGINE_CHECK_H
#define ENGINE_CHECK_H

/* Defined in runtime/panic.c; the one thing that engine/ needs from outside. */
_Noreturn void gale_panic(const char *file, int line, const char *what);

#define gale_assert(x)                                                                 \
	do {                                                                           \
		if (__builtin_expect(!(x), 0))                                         \
			gale_panic(__FILE__, __LINE__, #x);                            \
	} while (0)

#ifdef GALE_DEBUG
#define gale_audit(x) gale_assert(x)
#else
#define gale_audit(x) ((void)sizeof(x))
#endif

#endif
