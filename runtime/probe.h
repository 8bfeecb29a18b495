/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * probe.h -- points in the library that a tracer can watch while a host runs (USDT).
 *
 *     probe_said      a line that a log gets, or would get
 *     probe_lease     what a store answered to a request for units
 *     probe_share     what a guard may admit from now on, by its fleet
 *
 * A point without a watcher is a nop.  There is none on the hot path.  docs/operate.md lists the
 * arguments; a point whose arguments change gets another name.
 *
 * Threads   Any.
 */
#ifndef RUNTIME_PROBE_H
#define RUNTIME_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef GALE_HAS_PROBES
#include <sys/sdt.h>
#else
#define DTRACE_PROBE3(of, point, a, b, c) ((void)(a), (void)(b), (void)(c))
#define DTRACE_PROBE5(of, point, a, b, c, d, e)                                        \
	(DTRACE_PROBE3(of, point, a, b, c), (void)(d), (void)(e))
#define DTRACE_PROBE6(of, point, a, b, c, d, e, f)                                     \
	(DTRACE_PROBE5(of, point, a, b, c, d, e), (void)(f))
#endif

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

static inline void probe_said(unsigned level, const char *source, const char *line)
{
	DTRACE_PROBE3(gale, said, level, source, line);
}

static inline void probe_lease(const char *name, size_t name_len, unsigned result,
                               uint64_t want, uint64_t units, uint64_t took_ns)
{
	DTRACE_PROBE6(gale, lease, name, name_len, result, want, units, took_ns);
}

static inline void probe_share(const uint8_t *name, size_t name_len, uint64_t limit,
                               uint64_t slots, bool fenced)
{
	DTRACE_PROBE5(gale, share, name, name_len, limit, slots, fenced);
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif
