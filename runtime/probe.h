/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * probe.h -- points in the library that a tracer can watch while a host runs (USDT).
 *
 *     PROBE_SAID      a line that a log gets, or would get
 *     PROBE_LEASE     what a store answered to a request for units
 *     PROBE_SHARE     what a guard may admit from now on, by its fleet
 *
 * A point that nobody watches is a nop.  There is none on the hot path.  docs/operate.md lists the
 * arguments; a point whose arguments change gets another name.
 *
 * Threads   Any.
 */
#ifndef RUNTIME_PROBE_H
#define RUNTIME_PROBE_H

#ifdef GALE_HAS_PROBES
#include <sys/sdt.h>

#define PROBE_SAID(level, source, line) DTRACE_PROBE3(gale, said, level, source, line)
#define PROBE_LEASE(name, name_len, result, want, units, took_ns)                      \
	DTRACE_PROBE6(gale, lease, name, name_len, result, want, units, took_ns)
#define PROBE_SHARE(name, name_len, limit, slots, fenced)                              \
	DTRACE_PROBE5(gale, share, name, name_len, limit, slots, fenced)
#else
#define PROBE_SAID(level, source, line) ((void)0)
#define PROBE_LEASE(name, name_len, result, want, units, took_ns) ((void)0)
#define PROBE_SHARE(name, name_len, limit, slots, fenced) ((void)0)
#endif

#endif
