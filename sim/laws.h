/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * laws.h -- one face for all laws of a ceiling: those of the library, and ports to compare.
 *
 * A guard of the simulator counts its windows itself, from what it is told.
 *
 * Threads   One.
 */
#ifndef SIM_LAWS_H
#define SIM_LAWS_H

#include <stddef.h>

#include "engine/estimate.h"
#include "sim/ports.h"

struct ended {
	uint64_t now_ns;
	uint64_t rtt_ns;
	uint32_t in_flight; /* of the node when the call entered, it included */
	uint32_t share;
	bool dropped;
	uint64_t
	    delay_ns; /* age of the first call that waits for a server: what is seen at
	                      the backend alone; 0: none waits */
};

/* Of the library: an estimate, and the window that is being counted. */
struct shipped {
	struct estimate estimate;
	struct estimate_window window;
	uint64_t began_ns;
	uint64_t moved_ns; /* up to which in_flight_time is counted */
	uint32_t in_flight;
	uint64_t chance;
	uint64_t probes[3];
};

union guard {
	struct shipped shipped;
	struct ported port;
};

struct law {
	const char *name;
	const char *about;
	void (*open)(union guard *guard, const struct estimate_settings *settings,
	             uint64_t seed);
	/* What an answer may take.  NULL: it need not know. */
	void (*told)(union guard *guard, uint64_t objective_ns);
	void (*entered)(union guard *guard, uint64_t now_ns, uint32_t in_flight);
	void (*refused)(union guard *guard, uint64_t now_ns, uint32_t share);
	void (*ended)(union guard *guard, const struct ended *ended,
	              uint32_t in_flight);
	/* Time has passed; NULL: it need not know. */
	void (*look)(union guard *guard, uint64_t now_ns, uint32_t share);
	uint32_t (*ceiling)(union guard *guard, uint32_t share, uint64_t now_ns);
	/* But for a probe. */
	uint32_t (*limit)(union guard *guard, uint32_t share, uint64_t now_ns);
	bool shipped; /* it may get shares of a fleet */
};

extern const struct law *const laws[];
extern const size_t law_count;

/* NULL: there is none. */
const struct law *law_named(const char *name);

#endif
