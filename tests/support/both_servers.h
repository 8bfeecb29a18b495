/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * both_servers.h -- a Redis and a PostgreSQL of the test's own, for what must hold on each.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_BOTH_SERVERS_H
#define TESTS_SUPPORT_BOTH_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/postgres_server.h"
#include "tests/support/redis_server.h"

#define BOTH 2
#define KEPT_NUMBERS 36

struct both_servers {
	struct redis_server redis;
	struct postgres_server *postgres;
	char urls[BOTH][256];
};

void both_servers_start(struct both_servers *both);
void both_servers_stop(struct both_servers *both);

/* The first two words of what the server keeps for a limiter's key: of a window where it
 * starts, and how much of it was used.  False if there is nothing. */
bool both_servers_look(const struct both_servers *both, int which, const char *limiter,
                       const char *key, uint64_t ret_words[2]);

/* A value in numbers, as stores/value.h has them: the head's two, then the rule's words, which the
 * first counts in its upper half, and six for each row. */
struct kept_value {
	uint64_t expires_us;
	size_t rows;
	uint64_t numbers[KEPT_NUMBERS];
};

/* Puts it there, as a node would have. */
void both_servers_keep(const struct both_servers *both, int which, const char *limiter,
                       const char *key, const struct kept_value *value);

/* Runs what must succeed at PostgreSQL. */
void both_servers_run_sql(const struct both_servers *both, const char *sql);

#endif
