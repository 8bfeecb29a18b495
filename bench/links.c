/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * links.c -- what does a lease cost of a Redis server that is not on this machine?
 *
 * It is on this machine, behind a relay that keeps what it is given for so long, each way
 * (tests/support/proxy.h): TCP on loopback to a thread of this program, and from there
 * the server's own socket.  That thread never sleeps meanwhile, so it needs a processor,
 * and the asker and the server share the other one.  A PING shows how far away the server
 * then really is.
 *
 * The calls take turns (turns.h).
 *
 * Threads   One asks; the relay's.
 */
#include <stdio.h>

#include "bench/redis_bare.h"
#include "bench/servers.h"
#include "bench/turns.h"
#include "runtime/memory.h"
#include "stores/redis/kind.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"

#define MANY_KEYS 1000000
#define IN_A_ROW 4

/* A server that is some way off, and its askers. */
struct place {
	struct turns turns; /* first */
	struct redis_server server;
	struct proxy proxy;
	struct redis_bare bare;
	struct asker few, many;
};

enum call {
	PING,
	LEAST,
	LEASE,
	LEASES,
	LEASES_OF_MANY,
	CALLS,
};

/* What is said of the calls: times in us, of a lease where there are 64, and ratios. */
enum figure {
	A_PING,
	A_LEAST,
	A_LEASE,
	ONE_OF_64,
	ONE_OF_64_OF_MANY,
	LEASE_TO_PING,
	TIMES_64,
	TIMES_64_OF_MANY,
	FIGURES,
};

/* ---- There ----------------------------------------------------------------------- */

static void open_asker(const struct place *place, struct asker *asker,
                       const char *prefix, uint64_t keys)
{
	char url[64];
	struct url_fault fault;

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d?prefix=%s:", place->proxy.port,
	         prefix);
	asker_open(asker, redis_kind(memory_default(), url, &fault), keys);
}

static void place_open(struct place *place, uint64_t way_us)
{
	redis_server_start(&place->server, NULL);
	proxy_open(&place->proxy, place->server.socket);
	redis_bare_open(&place->bare, redisConnect("127.0.0.1", place->proxy.port));
	open_asker(place, &place->few, "few", TOGETHER);
	open_asker(place, &place->many, "many", MANY_KEYS);
	proxy_delay(&place->proxy, TO_SERVER, way_us);
	proxy_delay(&place->proxy, TO_NODE, way_us);
	proxy_be_exact(&place->proxy);
}

/* The process ends next: nothing is taken apart but what would outlive it. */
static void place_leave(struct place *place)
{
	proxy_close(&place->proxy);
	redis_server_stop(&place->server);
}

/* ---- Calls ----------------------------------------------------------------------- */

static void make(struct turns *turns, unsigned call)
{
	struct place *place = (struct place *)turns;

	switch ((enum call)call) {
	case PING:
		redis_bare_ping(&place->bare);
		break;
	case LEAST:
		redis_bare_least(&place->bare);
		break;
	case LEASE:
		asker_lend(&place->few, 1);
		break;
	case LEASES:
		asker_lend(&place->few, TOGETHER);
		break;
	default:
		asker_lend(&place->many, TOGETHER);
		break;
	}
}

/* The way there and back, in the time of *arg. */
static void measure(void *arg, double *ret_values)
{
	static struct place place = { .turns = { make, 0, CALLS, IN_A_ROW, NULL } };
	double us[CALLS];

	place_open(&place, *(const uint64_t *)arg);
	turns_time(&place.turns, us);
	place_leave(&place);
	ret_values[A_PING] = us[PING];
	ret_values[A_LEAST] = us[LEAST];
	ret_values[A_LEASE] = us[LEASE];
	ret_values[ONE_OF_64] = us[LEASES] / TOGETHER;
	ret_values[ONE_OF_64_OF_MANY] = us[LEASES_OF_MANY] / TOGETHER;
	ret_values[LEASE_TO_PING] = us[LEASE] / us[PING];
	ret_values[TIMES_64] = us[LEASES] / TOGETHER / us[LEASE];
	ret_values[TIMES_64_OF_MANY] = us[LEASES_OF_MANY] / TOGETHER / us[LEASE];
}

/* ---- Rows ------------------------------------------------------------------------ */

#define LINK(us)                                                                       \
	{                                                                              \
		us,                                                                    \
		{                                                                      \
			[A_PING] = "links/" #us " us each way, PING, bare",            \
			[A_LEAST] = "links/" #us " us each way, least script, bare",   \
			[A_LEASE] = "links/" #us " us each way, a lease at a time",    \
			[ONE_OF_64] =                                                  \
			    "links/" #us " us each way, 64 leases at a time, each",    \
			[ONE_OF_64_OF_MANY] =                                          \
			    "links/" #us " us each way, 64 leases at a time of "       \
			    "1,000,000 keys, each",                                    \
			[LEASE_TO_PING] = "links/" #us " us each way, lease to PING",  \
			[TIMES_64] =                                                   \
			    "links/" #us " us each way, one of 64 to one at a time",   \
			[TIMES_64_OF_MANY] =                                           \
			    "links/" #us " us each way, one of 64 to one at a "        \
			    "time, 1,000,000 keys",                                    \
		}                                                                      \
	}

void ask_links(void)
{
	static struct {
		uint64_t way_us;
		const char *names[FIGURES];
	} links[] = { LINK(0),  LINK(10),  LINK(25), LINK(50),
		      LINK(75), LINK(100), LINK(200) };
	static const char *const units[FIGURES] = { "us", "us", "us", "us",
		                                    "us", "x",  "x",  "x" };
	static const double bars[FIGURES] = { [LEASE_TO_PING] = 1.15,
		                              [TIMES_64] = 1 / 25.0,
		                              [TIMES_64_OF_MANY] = 1 / 13.0 };

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		bench_add_figures(&(struct bench_figures){ .names = links[i].names,
		                                           .count = FIGURES,
		                                           .units = units,
		                                           .bars = bars,
		                                           .measure = measure,
		                                           .arg = &links[i].way_us });
}
