/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * driver.h -- the line protocol that all drivers of bench/compare speak, for those in C.
 *
 *	DRIVER DRAWS [ADDRESS [VARIANT]]
 *
 * A driver reads a line of name=value words and writes one for it, until its input ends:
 *
 *	work=allow|deny keys=N threads=N depth=N seconds=S space=NAME
 *	        calls, as fast as they come, for keys drawn from the file DRAWS/N (indices of
 *	        32 bits, little-endian).  allow: under a limit that is never reached.  deny: all
 *	        keys are used up before.  depth: calls under way at once in a thread.  space:
 *	        what keys of other lines do not meet; the same again is prepared already
 *	work=fill keys=N        each key once.  bytes: what that takes of memory, for each key
 *	work=fleet limit=N rate=N from=S until=S        calls for one key with that limit, so
 *	        many a second, between those times from now
 *	work=guard limit=N workers=N seconds=S port=N   workers that call the backend at that
 *	        port as soon as they are let in, and ask again after a millisecond if not
 *	work=outage rate=N seconds=S                    calls of allow, and when each was answered
 *
 *	operations=N allowed=N denied=N failed=N seconds=S p50=NS p99=NS bytes=N
 *	call=START:TOOK:OUTCOME ...     for outage, in ms; a: allowed, d: denied, f: failed,
 *	                                p: pending until the end
 *	cannot=TEXT                     to the end of the line: why the peer does not do that
 *
 * Keys are 16 bytes, "client-000000042".
 *
 * Threads   One reads and writes; each call of run has a thread and a turn of its own.
 */
#ifndef BENCH_COMPARE_DRIVER_H
#define BENCH_COMPARE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define DRIVER_KEY_LEN 16
#define DRIVER_LIMIT_MUCH (UINT64_C(1) << 40)
#define DRIVER_TIMES 512 /* buckets of times, eight in each power of two */

enum driver_answer {
	DRIVER_ALLOWED,
	DRIVER_DENIED,
	DRIVER_FAILED,
};

struct driver_work {
	char name[16];
	char space[48];
	uint64_t keys;
	uint64_t limit; /* of a key */
	unsigned threads;
	unsigned depth;
	unsigned rate;
	unsigned workers;
	unsigned port;
	double seconds;
	double from, until;
};

struct driver_tally {
	uint64_t answers[3]; /* by enum driver_answer */
	uint64_t times[DRIVER_TIMES];
};

/* What one thread does of a work. */
struct driver_turn {
	const struct driver_work *work;
	const char (*keys)[DRIVER_KEY_LEN];
	const uint32_t *draws;
	uint64_t drawn; /* how many there are, a power of two or more than asked */
	uint64_t at;
	uint64_t end_ns;
	void *own; /* the peer's */
	struct driver_tally tally;
};

struct driver_peer {
	/* Before a work of another space than the last; NULL, or why it cannot be done.
	 * For deny, each key is then used up. */
	const char *(*prepare)(const struct driver_work *work,
	                       const char (*keys)[DRIVER_KEY_LEN]);
	/* In each thread: until end_ns. */
	void (*run)(struct driver_turn *turn);
	/* One call; in one thread at a time; for fleet and outage. */
	enum driver_answer (*call)(const char *key);
	/* Asks for each key once; as in run. */
	void (*fill)(struct driver_turn *turn);
	/* A worker's place of its own, for guard; NULL: cannot.  enter of a proxy calls the
	 * backend itself. */
	bool is_proxy;
	void *(*worker_open)(void);
	bool (*enter)(void *worker);
	void (*exit)(void *worker);
	void (*worker_close)(void *worker);
};

int driver_main(int argc, char **argv, const struct driver_peer *peer);

/* Of the command line; NULL: none. */
extern const char *driver_address, *driver_variant;

/* Ends the driver. */
_Noreturn void driver_fail(const char *what);

static inline void driver_must(bool works, const char *what)
{
	if (!works)
		driver_fail(what);
}

static inline uint64_t driver_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline const char *driver_next_key(struct driver_turn *turn)
{
	uint32_t id = turn->draws[turn->at];

	turn->at = turn->at + 1 == turn->drawn ? 0 : turn->at + 1;
	return turn->keys[id];
}

static inline void driver_note(struct driver_tally *tally, uint64_t ns)
{
	unsigned power = 63 - (unsigned)__builtin_clzll(ns | 8);

	tally->times[(power - 3) * 8 + ((ns >> (power - 3)) & 7)]++;
}

/* The loop of run for a peer that is called once at a time.  It is inlined with ask; of each
 * `every` calls one is timed. */
static inline __attribute__((always_inline)) void
driver_loop(struct driver_turn *turn, unsigned every,
            enum driver_answer (*ask)(struct driver_turn *turn, const char *key))
{
	uint64_t began = driver_now_ns(), ended;

	while (began < turn->end_ns) {
		turn->tally.answers[ask(turn, driver_next_key(turn))]++;
		ended = driver_now_ns();
		driver_note(&turn->tally, ended - began);
		for (unsigned i = 1; i < every; i++)
			turn->tally.answers[ask(turn, driver_next_key(turn))]++;
		began = every > 1 ? driver_now_ns() : ended;
	}
}

#endif
