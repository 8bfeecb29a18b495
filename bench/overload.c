/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * overload.c -- what does a server count for each unit that a caller is allowed, when strict asks
 * come faster than it can be asked?
 *
 * The way to the server is slow, and is what cannot do more: so the figure is of the queue, and
 * hardly of the machine.  First the rate is looked for that is served.  Then asks come at twice
 * that rate, and at four times.
 *
 * Threads   One, and gale's.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "tests/support/both_servers.h"
#include "tests/support/overload.h"
#include "tests/support/proxy.h"

#define EVER GALE_DAYS(3650)
#define MUCH UINT64_C(1000000000)
#define BYTE_NS 1000
#define MORE 20000 /* asks a second: more than is served */
#define TIMES 2
#define FIGURES (TIMES + 1)
#define BAR 1.02

static struct both_servers both;
static struct proxy proxy;

struct site {
	int which; /* of both */
	const char *form;
	char url[64];
};

static void find_socket(const struct site *site, char *ret_socket, size_t size)
{
	const char *address = postgres_server_address(both.postgres);
	const char *host = strstr(address, "host=");

	if (site->which == 0) {
		snprintf(ret_socket, size, "%s", both.redis.socket);
		return;
	}
	bench_expect(host != NULL, "a server on a socket");
	host += strlen("host=");
	snprintf(ret_socket, size, "%.*s/.s.PGSQL.5432", (int)strcspn(host, " "), host);
}

static void start(struct site *site)
{
	char socket[96];

	both_servers_start(&both);
	find_socket(site, socket, sizeof(socket));
	proxy_open(&proxy, socket);
	proxy_slow(&proxy, TO_SERVER, BYTE_NS);
	snprintf(site->url, sizeof(site->url), site->form, proxy.port);
}

static void stop(void)
{
	proxy_close(&proxy);
	both_servers_stop(&both);
}

/* Returns what the server counts. */
static uint64_t run(const struct site *site, const char *limiter, uint64_t rate,
                    struct overload_tally *ret_tally)
{
	const struct overload overload = {
		.url = site->url,
		.limiter = limiter,
		.key = "k",
		.rule = gale_fixed_window(MUCH, EVER),
		.nodes = 2,
		.rate = rate,
		.lasts_us = bench_is_smoke() ? GALE_MILLIS(100) : GALE_SECONDS(4),
	};
	uint64_t words[2] = { 0 };

	*ret_tally = overload_run(&overload);
	(void)both_servers_look(&both, site->which, limiter, "k", words);
	return words[1];
}

static double ratio(uint64_t part, uint64_t of)
{
	return of > 0 ? (double)part / (double)of : 0;
}

static void measure(void *arg, double *ret_values)
{
	struct site *site = arg;
	struct overload_tally tally;
	uint64_t served, used;
	char limiter[8];

	start(site);
	used = run(site, "first", MORE, &tally);
	served = used * GALE_SECONDS(1) / tally.lasted_us;
	for (unsigned i = 0; i < TIMES; i++) {
		snprintf(limiter, sizeof(limiter), "%u", i);
		used = run(site, limiter, (2 + 2 * i) * served, &tally);
		ret_values[i] = ratio(used, tally.allowed);
	}
	ret_values[TIMES] =
	    ratio(served, tally.allowed * GALE_SECONDS(1) / tally.lasted_us);
	stop();
}

#define NAMES(server)                                                                  \
	{                                                                              \
		"overload/" server ", 2 x what is served",                             \
		    "overload/" server ", 4 x what is served",                         \
		    "overload/" server ", served of allowed at 4 x"                    \
	}

void ask_overload(void)
{
	static struct site redis = { .which = 0, .form = "redis://127.0.0.1:%u" };
	static struct site postgres = { .which = 1,
		                        .form =
		                            "postgres://gale@127.0.0.1:%u/postgres" };
	static const char *const redis_names[] = NAMES("Redis");
	static const char *const postgres_names[] = NAMES("PostgreSQL");
	static const double bars[] = { BAR, BAR, 1 / 0.95 };
	static const char *const units[] = { "used / allowed", "used / allowed",
		                             "served / allowed" };

	bench_add_figures(&(struct bench_figures){ .names = redis_names,
	                                           .count = FIGURES,
	                                           .units = units,
	                                           .bars = bars,
	                                           .measure = measure,
	                                           .arg = &redis });
	bench_add_figures(&(struct bench_figures){ .names = postgres_names,
	                                           .count = FIGURES,
	                                           .units = units,
	                                           .bars = bars,
	                                           .measure = measure,
	                                           .arg = &postgres });
}
