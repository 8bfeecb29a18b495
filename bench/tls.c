/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tls.c -- what does TLS take from the leases of a Redis server?
 *
 * One server, with a port of each kind on loopback, and 64 leases in each call: one call at a time,
 * and with UNDER_WAY_MOST under way.  With TLS there are to be 0.8 times as many leases in
 * the same time, so each may take 1.25 times as long.
 *
 * Threads   One.
 */
#include <stdio.h>
#include <unistd.h>

#include "bench/servers.h"
#include "bench/turns.h"
#include "runtime/memory.h"
#include "stores/redis/kind.h"
#include "tests/support/certificates.h"
#include "tests/support/must.h"
#include "tests/support/port.h"
#include "tests/support/redis_server.h"
#include "tests/support/scratch.h"

#define IN_A_ROW 20
#define AHEAD_BATCHES 64
#define BAR 1.25

enum call {
	PLAIN,
	TLS,
	PLAIN_AHEAD,
	TLS_AHEAD,
	CALLS,
};

struct place {
	struct turns turns; /* first */
	char folder[64], ports[2][8];
	struct certificate certificate;
	const char *options[16];
	struct redis_server server;
	struct asker plain, tls;
};

static void make(struct turns *turns, unsigned call)
{
	struct place *place = (struct place *)turns;
	bool is_plain = call == PLAIN || call == PLAIN_AHEAD;
	struct asker *asker = is_plain ? &place->plain : &place->tls;

	if (call == PLAIN || call == TLS)
		asker_lend(asker, TOGETHER);
	else
		asker_lend_ahead(asker, AHEAD_BATCHES, UNDER_WAY_MOST);
}

static void start_server(struct place *place)
{
	const struct certificate_plan plan = { .folder = place->folder,
		                               .name = "bench",
		                               .names = "IP:127.0.0.1",
		                               .to_days = 1 };
	const char *const options[] = { "--port",
		                        place->ports[0],
		                        "--tls-port",
		                        place->ports[1],
		                        "--tls-cert-file",
		                        place->certificate.cert,
		                        "--tls-key-file",
		                        place->certificate.key,
		                        "--tls-ca-cert-file",
		                        place->certificate.cert,
		                        "--tls-auth-clients",
		                        "no",
		                        NULL };

	scratch_make(place->folder, sizeof(place->folder), "bench-tls");
	certificate_make(&place->certificate, &plan);
	for (int i = 0; i < 2; i++)
		snprintf(place->ports[i], sizeof(place->ports[i]), "%u", free_port());
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		place->options[i] = options[i];
	redis_server_start(&place->server, place->options);
}

static void open_asker(struct asker *asker, const char *url)
{
	struct url_fault fault;
	struct server_kind *kind = redis_kind(memory_default(), url, &fault);

	if (!kind)
		fprintf(stderr, "%s\n", fault.text);
	must(kind != NULL);
	asker_open(asker, kind, TOGETHER);
}

static void measure(const struct turns_table *self, double *ret_us)
{
	static struct place place = { .turns = { make, 0, CALLS, IN_A_ROW, NULL } };
	char url[256];

	(void)self;
	start_server(&place);
	snprintf(url, sizeof(url),
	         "redis://127.0.0.1:%s?prefix=plain:", place.ports[0]);
	open_asker(&place.plain, url);
	snprintf(url, sizeof(url), "rediss://127.0.0.1:%s?prefix=tls:&ca=%s",
	         place.ports[1], place.certificate.cert);
	open_asker(&place.tls, url);
	turns_time(&place.turns, ret_us);
	redis_server_stop(&place.server);
	certificate_drop(&place.certificate);
	must(rmdir(place.folder) == 0);
}

static const unsigned parts[CALLS] = {
	[PLAIN] = TOGETHER,
	[TLS] = TOGETHER,
	[PLAIN_AHEAD] = AHEAD_BATCHES * TOGETHER,
	[TLS_AHEAD] = AHEAD_BATCHES * TOGETHER,
};

static const struct turns_figure figures[] = {
	{ "tls/64 leases at a time over TCP, each", PLAIN, false, 0, 0 },
	{ "tls/64 leases at a time in TLS, each", TLS, false, 0, 0 },
	{ "tls/64 leases over TCP, eight calls under way, each", PLAIN_AHEAD, false, 0,
	  0 },
	{ "tls/64 leases in TLS, eight calls under way, each", TLS_AHEAD, false, 0, 0 },
	{ "tls/64 leases in TLS to 64 over TCP", TLS, true, PLAIN, BAR },
	{ "tls/64 leases in TLS to 64 over TCP, eight calls under way", TLS_AHEAD, true,
	  PLAIN_AHEAD, BAR },
};

void ask_tls(void)
{
	static const struct turns_table table = {
		.figures = figures,
		.count = sizeof(figures) / sizeof(figures[0]),
		.parts = parts,
		.unit = "us",
		.units_a_us = 1,
		.measure = measure,
	};

	turns_add(&table);
}
