/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_line.h -- a connection, over which a test asks and waits.
 *
 * Threads   One at a time.
 */
#ifndef TESTS_SUPPORT_POSTGRES_LINE_H
#define TESTS_SUPPORT_POSTGRES_LINE_H

#include "stores/postgres/session.h"

struct line {
	PGconn *conn;
	struct session session; /* without names */
	struct postgres_room asked;
	struct postgres_room answered;
	char generation[REMOTE_GENERATION_BYTES + 1];
	uint64_t nonce;
	struct postgres_order order; /* of what was said last */
	uint64_t now_us;             /* what the next batch says of the server's time */
};

void postgres_line_open(struct line *line, const char *address);
void postgres_line_close(struct line *line);

/* Runs what must succeed. */
void postgres_line_do(struct line *line, const char *sql);
/* The same; the text of its first value, until the next one is asked for. */
const char *postgres_line_text(struct line *line, const char *sql);
uint64_t postgres_line_number(struct line *line, const char *sql);
/* What its error means, or POSTGRES_TOLD if there is none. */
enum postgres_result postgres_line_try(struct line *line, const char *sql);

/* Sends jobs; the answer is waited for by postgres_line_hear. */
void postgres_line_say(struct line *line, const struct remote_job *jobs, size_t count);
enum postgres_result postgres_line_hear(struct line *line,
                                        const struct remote_job *jobs, size_t count,
                                        struct remote_told *ret_told);

/* Until what one has said waits for a lock, or is answered; another one asks the server that. */
void postgres_line_until_it_waits(struct line *line, struct line *another);

/* Says and hears; another generation is taken over, and asked again. */
enum postgres_result postgres_line_call(struct line *line,
                                        const struct remote_job *jobs, size_t count,
                                        struct remote_told *ret_told);

/* Installs the schema. */
void postgres_line_install(struct line *line);

#endif
