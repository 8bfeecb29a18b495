/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * errors.h -- how setting up can fail.
 *
 * One table: name, number, text.  Numbers are never reused.  A text starts with the
 * field or the argument that is wrong.
 */
#ifndef GALE_ERRORS_H
#define GALE_ERRORS_H

#include <gale/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GALE_ERRORS(X)                                                                 \
	X(OK, 0, "no error")                                                           \
	X(RUNTIME, 1, "runtime: is NULL or closed")                                    \
	X(CONFIG, 2, "config: is NULL")                                                \
	X(RET, 3, "ret: the pointer to return through is NULL")                        \
	X(MEMORY, 4, "memory: the allocator returned NULL")                            \
	X(SYSTEM, 5, "system: a thread or descriptor could not be made")               \
	X(SHARDS, 6, "shards: at most 256")                                            \
	X(PENDING, 7, "pending_max: at most 65536")                                    \
	X(ALLOCATOR, 8, "allocator: needs both alloc and free")                        \
	X(CLOCK, 9, "clock: needs now_us, and boot_ns below 2^59")                     \
	X(LOG, 10, "log: needs write")                                                 \
	X(URL, 11,                                                                     \
	  "url: not that of a store; gale_url_check and the log say what is wrong")    \
	X(STORE_NAME, 12, "url: the name after memory: has more than 64 bytes")        \
	X(STORE_KEYS, 13, "max_keys: from 1 to 2^31")                                  \
	X(STORE, 14, "store: is NULL, closed, or of another runtime")                  \
	X(NAME, 15, "name: from 1 to 64 bytes")                                        \
	X(MODE, 16, "mode: unknown")                                                   \
	X(OUTAGE, 17,                                                                  \
	  "on_outage: unknown, or with a share that is 0 or above the limit")          \
	X(RULE_KIND, 18, "rule.kind: unknown")                                         \
	X(RULE_CADENCE, 19, "rule.cadence: unknown, or not for this kind")             \
	X(RULE_LIMIT, 20, "rule.limit: from 1 to 2^53 - 1 (sliding log: to 65536)")    \
	X(RULE_PERIOD, 21, "rule.period_us: from 1 to 2^50 (pacers: to 2^43)")         \
	X(RULE_BURST, 22, "rule.burst: from 1 to 2^53 - 1 (pacers: from 0)")           \
	X(RULE_SPAN, 23, "rule.burst: takes longer than 2^50 microseconds to accrue")  \
	X(RULE_BUCKETS, 24, "rule.buckets: from 1 to 128, and at most period_us")      \
	X(RULE_WAIT, 25, "rule.max_wait_us: at most 2^50")                             \
	X(RULE_ANCHOR, 26, "rule.anchor_us: at most 2^52")                             \
	X(RULE_ALLOWANCE, 27, "rule.allowance_permille: from 1 to 1000")               \
	X(RULE_OFFSET, 28, "rule.utc_offset_minutes: from -840 to 840")                \
	X(RULE_WEEKDAY, 29, "rule.first_weekday: from 0 (Sunday) to 6")                \
	X(RULE_UNUSED, 30, "rule: a field that this kind does not use is not 0")       \
	X(SEAT, 31, "seat: is NULL, or has left")                                      \
	X(LIMITER, 32, "limiter: is NULL, closed, or of another runtime")              \
	X(KEY, 33, "key: from 1 to 256 bytes")                                         \
	X(COST, 34, "cost: from 1 to 2^53 - 1")                                        \
	X(FORKED, 35,                                                                  \
	  "runtime: opened before this process was forked; open a new one")            \
	X(STORE_FULL, 36, "store: holds max_keys keys")                                \
	X(STORE_CHANGED, 37, "store: the key has counts of another kind of rule")      \
	X(LATE, 38, "timeout: no answer within the time given")                        \
	X(BUSY, 39,                                                                    \
	  "seat: too many asks are pending, the store is asked more than it can "      \
	  "answer in time, or other nodes keep changing the key")                      \
	X(NOT_BOOKED, 40,                                                              \
	  "booking: its time is past, or it was given back or never made")             \
	X(FENCED, 41, "runtime: fenced, since gale found a fault in itself")           \
	X(CANNOT_LEASE, 42,                                                            \
	  "mode: this rule cannot be leased, or its window is below 1 ms")             \
	X(SIZING, 43,                                                                  \
	  "lease: a batch, size or cost is out of range, or no predictor is given")    \
	X(PATIENCE, 44, "patience_us: at most an hour")                                \
	X(DRIFT, 45, "lease.drift_ppm: at most 100000")                                \
	X(CARRY_OVER, 46, "lease.carry_over: for windows, with a fixed batch")         \
	X(NODE_KEYS, 47, "max_keys: at most 2^28")                                     \
	X(HOST, 48, "url: the path of the socket has more than 107 bytes")             \
	X(TLS, 49, "url: TLS could not be set up; the log says what is missing")       \
	X(NOT_BUILT, 50,                                                               \
	  "url: gale's part for such servers is not built, or not installed")          \
	X(QUARANTINE, 51, "quarantine_us: at most a day")                              \
	X(CLUSTER_DB, 52, "url: a cluster has no database but 0")                      \
	X(RULE_STRATEGY, 53,                                                           \
	  "rule.strategy: needs a step, a name of 1 to 64 bytes, 1 to 16 words, and "  \
	  "parameters below 2^53")                                                     \
	X(BROKEN, 54, "strategy: its step returned an impossible ruling")              \
	X(POLL, 55, "poll_us: at most 10,000")                                         \
	X(SIZE, 56,                                                                    \
	  "struct: its size is impossible, or it sets a field that this library does " \
	  "not know")                                                                  \
	X(RUNTIMES, 57, "runtime: at most 512 in a process")                           \
	X(RULE_OTHER, 58, "rule.kind: not the kind that the limiter was opened with")  \
	X(OTHER_RULE, 59, "on_other_rule: unknown")                                    \
	X(GUARD, 60, "guard: is NULL or closed")                                       \
	X(GUARD_NAME, 61, "name: another guard of this runtime has it")                \
	X(CEILING, 62, "ceiling: at most 1,000,000; GALE_FIXED needs it")              \
	X(SHEDDABLE, 63, "sheddable_permille: at most 1000")                           \
	X(SLOTS_MOST, 64, "slots_most_permille: at most 1000")                         \
	X(OVERDUE, 65, "overdue_us: at most a year")                                   \
	X(LAW, 66, "law: unknown")                                                     \
	X(FLOOR, 67, "floor: above the ceiling")                                       \
	X(START, 68, "start: below the floor, or above the ceiling")                   \
	X(PROBE, 69, "probe: above the ceiling")                                       \
	X(NODE, 70, "node: from 1 to 64 bytes")                                        \
	X(WEIGHT, 71, "weight: at most 1024")                                          \
	X(BEAT, 72, "beat_us: from 1 ms to a minute")                                  \
	X(LEASE, 73, "lease_us: at least twice beat_us, and at most an hour")          \
	X(ABORT, 74, "abort_us: too long for this lease_us and beat_us")               \
	X(CUT_OFF, 75, "on_cut_off: unknown")                                          \
	X(ON_FENCED, 76, "on_fenced: needs fenced")                                    \
	X(ALONE, 77, "store: is NULL, and the guard sets a field that needs one")      \
	X(PARTS, 78, "parts: not a value of enum gale_parts")                          \
	X(OF_ESTIMATES, 79, "of_estimates: not a value of enum gale_of_estimates")     \
	X(POLICY, 80, "policy: needs an answer, and a value of enum gale_http_unit")   \
	X(POLICY_NAME, 81, "policy.name: from 1 to 64 bytes of printable ASCII")       \
	X(ROOM, 82, "room: the text does not fit")                                     \
	X(SINK, 83, "sink: has no write, or its write has returned false")             \
	X(BUDGET, 84, "budget: is NULL or closed")                                     \
	X(TENANT, 85, "tenant: is NULL or closed")                                     \
	X(BUDGET_LIMIT, 86, "limit: from 1 to 2^53 - 1")                               \
	X(BUDGET_WINDOW, 87, "window_us: from 1 ms to 2^50 us")                        \
	X(PROTECT, 88, "protect_us: above window_us")                                  \
	X(TENANTS, 89, "max_tenants: at most 1,048,576; with a store, 256")            \
	X(LENDING, 90,                                                                 \
	  "lending: not a value of enum gale_lending; with a store, GALE_LENT")        \
	X(TENANT_WEIGHT, 91, "weight: from 1 to 1,048,576")                            \
	X(CAP, 92, "cap: below the guarantee, or above 2^53 - 1")                      \
	X(GUARANTEE, 93, "guarantee: all guarantees together are above the limit")     \
	X(TENANTS_FULL, 94, "tenants: max_tenants are open")                           \
	X(POLICY_FILE, 95, "file: cannot be read; the sentence says why")              \
	X(POLICY_TEXT, 96, "text: not a policy; the sentence says where and why")      \
	X(POLICY_SOURCE, 97, "source: needs a path or a text, and not both")           \
	X(NO_POLICY, 98, "policy: is NULL")                                            \
	X(HOLD, 99, "hold: is NULL, of another runtime, or settled already")           \
	X(PARENT, 100, "parent: needs an open tenant of the same budget")              \
	X(PARENT_STORE, 101, "parent: needs a budget without a store")                 \
	X(DEPTH, 102, "parent: tenants can be 16 levels deep")                         \
	X(ALONE_UNITS, 103,                                                            \
	  "alone: needs a store, and is at most the limit and the cap")                \
	X(TENANT_NAME, 104, "name: another tenant of this budget has it")

enum gale_err {
#define GALE_ERR_ENUM_(name, number, text) GALE_ERR_##name = number,
	GALE_ERRORS(GALE_ERR_ENUM_)
#undef GALE_ERR_ENUM_
};

/* The text of an error; "unknown error" for a number that is none. */
GALE_API const char *gale_err_text(enum gale_err err);

#ifdef __cplusplus
}
#endif
#endif
