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
	X(RUNTIME, 1, "runtime: it is NULL or closed; pass one that is open")          \
	X(CONFIG, 2, "config: it is NULL; pass a configuration")                       \
	X(RET, 3, "ret: it is NULL; pass a pointer to where the result is to go")      \
	X(MEMORY, 4,                                                                   \
	  "memory: the allocator returned NULL; let the process have more memory")     \
	X(SYSTEM, 5,                                                                   \
	  "system: a thread or descriptor could not be made; raise the limits of the " \
	  "process (ulimit -u, ulimit -n)")                                            \
	X(SHARDS, 6, "shards: must be at most 256")                                    \
	X(PENDING, 7, "pending_max: must be at most 65536")                            \
	X(ALLOCATOR, 8, "allocator: must have both alloc and free")                    \
	X(CLOCK, 9,                                                                    \
	  "clock: must have now_us, and a boot_ns that returns less than 2^59")        \
	X(LOG, 10, "log: must have write")                                             \
	X(URL, 11,                                                                     \
	  "url: no store has such a URL; gale_url_check and the log say what is "      \
	  "wrong in it")                                                               \
	X(STORE_NAME, 12, "url: the name after memory: must have at most 64 bytes")    \
	X(STORE_KEYS, 13, "max_keys: must be from 1 to 2^31")                          \
	X(STORE, 14,                                                                   \
	  "store: it is NULL, closed, or of another runtime; pass one that is open")   \
	X(NAME, 15, "name: must have from 1 to 64 bytes")                              \
	X(MODE, 16, "mode: must be a value of enum gale_mode")                         \
	X(OUTAGE, 17,                                                                  \
	  "on_outage: must be a value of enum gale_on_outage, and a share must be "    \
	  "from 1 to the limit")                                                       \
	X(RULE_KIND, 18, "rule.kind: must be a value of enum gale_rule_kind")          \
	X(RULE_CADENCE, 19,                                                            \
	  "rule.cadence: must be a value of enum gale_cadence that goes with this "    \
	  "kind")                                                                      \
	X(RULE_LIMIT, 20,                                                              \
	  "rule.limit: must be from 1 to 2^53 - 1 (sliding log: to 65536)")            \
	X(RULE_PERIOD, 21, "rule.period_us: must be from 1 to 2^50 (pacers: to 2^43)") \
	X(RULE_BURST, 22, "rule.burst: must be from 1 to 2^53 - 1 (pacers: from 0)")   \
	X(RULE_SPAN, 23,                                                               \
	  "rule.burst: takes longer than 2^50 microseconds to accrue; lower it, or "   \
	  "raise the rate")                                                            \
	X(RULE_BUCKETS, 24,                                                            \
	  "rule.buckets: must be from 1 to 128, and at most period_us")                \
	X(RULE_WAIT, 25, "rule.max_wait_us: must be at most 2^50")                     \
	X(RULE_ANCHOR, 26, "rule.anchor_us: must be at most 2^52")                     \
	X(RULE_ALLOWANCE, 27, "rule.allowance_permille: must be from 1 to 1000")       \
	X(RULE_OFFSET, 28, "rule.utc_offset_minutes: must be from -840 to 840")        \
	X(RULE_WEEKDAY, 29, "rule.first_weekday: must be from 0 (Sunday) to 6")        \
	X(RULE_UNUSED, 30, "rule: a field that this kind does not use must be 0")      \
	X(SEAT, 31, "seat: it is NULL, or has left; pass one that has joined")         \
	X(LIMITER, 32,                                                                 \
	  "limiter: it is NULL, closed, or of another runtime; pass one that is open") \
	X(KEY, 33, "key: must have from 1 to 256 bytes")                               \
	X(COST, 34,                                                                    \
	  "cost: must be from 1 to 2^53 - 1; of a hold that is committed: from 0, "    \
	  "and for a limiter at most 1,048,575 above the held units")                  \
	X(FORKED, 35,                                                                  \
	  "runtime: opened before this process was forked; open a new one")            \
	X(STORE_FULL, 36,                                                              \
	  "store: holds max_keys keys; raise max_keys, or wait until keys expire")     \
	X(STORE_CHANGED, 37,                                                           \
	  "store: the key has counts of another kind of rule; wait until they end, "   \
	  "or set on_other_rule")                                                      \
	X(LATE, 38,                                                                    \
	  "timeout: no answer within the time given; ask again, or give more time")    \
	X(BUSY, 39,                                                                    \
	  "seat: too many asks are pending, the store is asked more than it can "      \
	  "answer in time, or other nodes keep changing the key; ask again later")     \
	X(NOT_BOOKED, 40,                                                              \
	  "booking: its time is past, or it was given back or never made; nothing is " \
	  "given back")                                                                \
	X(FENCED, 41,                                                                  \
	  "runtime: fenced, since gale found a fault in itself; start the process "    \
	  "again")                                                                     \
	X(CANNOT_LEASE, 42,                                                            \
	  "mode: this rule cannot be leased, or its window is below 1 ms; use "        \
	  "GALE_STRICT or GALE_CACHED_DENY")                                           \
	X(SIZING, 43,                                                                  \
	  "lease: a batch, size or cost is out of its range in gale.h, or a "          \
	  "predictor must be given")                                                   \
	X(PATIENCE, 44, "patience_us: must be at most an hour")                        \
	X(DRIFT, 45, "lease.drift_ppm: must be at most 100000")                        \
	X(CARRY_OVER, 46,                                                              \
	  "lease.carry_over: must be 0 without windows, and without a fixed batch")    \
	X(NODE_KEYS, 47, "max_keys: must be at most 2^28")                             \
	X(HOST, 48, "url: the path of the socket must have at most 107 bytes")         \
	X(TLS, 49, "url: TLS could not be set up; the log says what is missing")       \
	X(NOT_BUILT, 50,                                                               \
	  "url: gale's part for such servers is not built, or not installed; install " \
	  "it")                                                                        \
	X(QUARANTINE, 51, "quarantine_us: must be at most a day")                      \
	X(CLUSTER_DB, 52,                                                              \
	  "url: a cluster has no database but 0; leave the number out")                \
	X(RULE_STRATEGY, 53,                                                           \
	  "rule.strategy: must have a step, a name of 1 to 64 bytes, 1 to 16 words, "  \
	  "and parameters below 2^53")                                                 \
	X(BROKEN, 54,                                                                  \
	  "strategy: its step returned an impossible ruling; mend the step")           \
	X(POLL, 55, "poll_us: must be at most 10,000")                                 \
	X(SIZE, 56,                                                                    \
	  "struct: its size is impossible, or it sets a field that this library does " \
	  "not know; compile with this library's headers")                             \
	X(RUNTIMES, 57, "runtime: a process can have at most 512; close one")          \
	X(RULE_OTHER, 58,                                                              \
	  "rule.kind: must be the kind that the limiter was opened with")              \
	X(OTHER_RULE, 59, "on_other_rule: must be a value of enum gale_on_other_rule") \
	X(GUARD, 60, "guard: it is NULL or closed; pass one that is open")             \
	X(GUARD_NAME, 61,                                                              \
	  "name: another guard of this runtime has it; give this one another name")    \
	X(CEILING, 62,                                                                 \
	  "ceiling: must be at most 1,000,000, and above 0 with GALE_FIXED")           \
	X(SHEDDABLE, 63, "sheddable_permille: must be at most 1000")                   \
	X(SLOTS_MOST, 64, "slots_most_permille: must be at most 1000")                 \
	X(OVERDUE, 65, "overdue_us: must be at most a year")                           \
	X(LAW, 66, "law: must be a value of enum gale_law")                            \
	X(FLOOR, 67, "floor: must be at most the ceiling")                             \
	X(START, 68, "start: must be from the floor to the ceiling")                   \
	X(PROBE, 69, "probe: must be at most the ceiling")                             \
	X(NODE, 70, "node: must have from 1 to 64 bytes")                              \
	X(WEIGHT, 71, "weight: must be at most 1024")                                  \
	X(BEAT, 72, "beat_us: must be from 1 ms to a minute")                          \
	X(LEASE, 73, "lease_us: must be at least twice beat_us, and at most an hour")  \
	X(ABORT, 74,                                                                   \
	  "abort_us: is too long for this lease_us and beat_us (0 means beat_us); "    \
	  "lower it, or raise lease_us")                                               \
	X(CUT_OFF, 75, "on_cut_off: must be a value of enum gale_on_cut_off")          \
	X(ON_FENCED, 76, "on_fenced: must have fenced")                                \
	X(ALONE, 77,                                                                   \
	  "store: it is NULL, and the guard sets a field that needs one; set a "       \
	  "store, "                                                                    \
	  "or leave that field 0")                                                     \
	X(PARTS, 78, "parts: must be a value of enum gale_parts")                      \
	X(OF_ESTIMATES, 79, "of_estimates: must be a value of enum gale_of_estimates") \
	X(POLICY, 80,                                                                  \
	  "policy: must have an answer, and a value of enum gale_http_unit")           \
	X(POLICY_NAME, 81,                                                             \
	  "policy.name: must have from 1 to 64 bytes of printable ASCII")              \
	X(ROOM, 82, "room: the text does not fit; give it more room")                  \
	X(SINK, 83,                                                                    \
	  "sink: must have write, which must return true until all is written")        \
	X(BUDGET, 84, "budget: it is NULL or closed; pass one that is open")           \
	X(TENANT, 85, "tenant: it is NULL or closed; pass one that is open")           \
	X(BUDGET_LIMIT, 86, "limit: must be from 1 to 2^53 - 1")                       \
	X(BUDGET_WINDOW, 87, "window_us: must be from 1 ms to 2^50 us")                \
	X(PROTECT, 88, "protect_us: must be at most window_us")                        \
	X(TENANTS, 89,                                                                 \
	  "max_tenants: must be at most 1,048,576; with a store, at most 256")         \
	X(LENDING, 90,                                                                 \
	  "lending: must be a value of enum gale_lending; with a store, GALE_LENT")    \
	X(TENANT_WEIGHT, 91, "weight: must be from 1 to 1,048,576")                    \
	X(CAP, 92, "cap: must be from the guarantee to 2^53 - 1")                      \
	X(GUARANTEE, 93,                                                               \
	  "guarantee: all guarantees together must be at most the limit")              \
	X(TENANTS_FULL, 94,                                                            \
	  "tenants: max_tenants are open; raise max_tenants, or close one")            \
	X(POLICY_FILE, 95, "file: it cannot be read; the sentence says why")           \
	X(POLICY_TEXT, 96, "text: it is no policy; the sentence says where and why")   \
	X(POLICY_SOURCE, 97, "source: must have a path or a text, and not both")       \
	X(NO_POLICY, 98, "policy: it is NULL; pass one that is open")                  \
	X(HOLD, 99,                                                                    \
	  "hold: it is NULL, of another runtime, or settled already; settle each "     \
	  "hold once")                                                                 \
	X(PARENT, 100, "parent: must be an open tenant of the same budget")            \
	X(PARENT_STORE, 101, "parent: must be NULL where the budget has a store")      \
	X(DEPTH, 102, "parent: tenants can be 16 levels deep; choose one further up")  \
	X(ALONE_UNITS, 103,                                                            \
	  "alone: must be at most the limit and the cap, and 0 without a store")       \
	X(TENANT_NAME, 104,                                                            \
	  "name: another tenant of this budget has it; give this one another name")

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
