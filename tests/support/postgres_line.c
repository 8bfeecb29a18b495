/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* postgres_line.c -- libpq, as simply as can be. */
#include "tests/support/postgres_line.h"

#include <string.h>

#include "runtime/memory.h"
#include "tests/support/must.h"

static void say_nothing(void *arg, const char *notice)
{
	(void)arg, (void)notice;
}

void postgres_line_open(struct line *line, const char *address)
{
	*line = (struct line){ .asked.allocator = memory_default(),
		               .answered.allocator = memory_default(),
		               .nonce = 1 };
	line->conn = PQconnectdb(address);
	if (PQstatus(line->conn) != CONNECTION_OK)
		fprintf(stderr, "%s", PQerrorMessage(line->conn));
	must(PQstatus(line->conn) == CONNECTION_OK);
	PQsetNoticeProcessor(line->conn, say_nothing, NULL);
}

void postgres_line_close(struct line *line)
{
	PQfinish(line->conn);
	postgres_room_close(&line->asked);
	postgres_room_close(&line->answered);
}

static bool went_well(const PGresult *result)
{
	return PQresultStatus(result) == PGRES_COMMAND_OK ||
	       PQresultStatus(result) == PGRES_TUPLES_OK;
}

static PGresult *run(struct line *line, const char *sql)
{
	PGresult *result = PQexec(line->conn, sql);

	if (!went_well(result))
		fprintf(stderr, "%.200s\n%s", sql, PQerrorMessage(line->conn));
	must(went_well(result));
	return result;
}

void postgres_line_do(struct line *line, const char *sql)
{
	PQclear(run(line, sql));
}

const char *postgres_line_text(struct line *line, const char *sql)
{
	static char text[64 * 1024];
	PGresult *result = run(line, sql);

	must(PQntuples(result) == 1);
	snprintf(text, sizeof(text), "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	return text;
}

uint64_t postgres_line_number(struct line *line, const char *sql)
{
	return strtoull(postgres_line_text(line, sql), NULL, 10);
}

enum postgres_result postgres_line_try(struct line *line, const char *sql)
{
	PGresult *result = PQexec(line->conn, sql);
	enum postgres_result means =
	    went_well(result)
		? POSTGRES_TOLD
		: postgres_error(PQresultErrorField(result, PG_DIAG_SQLSTATE));

	PQclear(result);
	return means;
}

static struct postgres_batch batch_of(struct line *line, const struct remote_job *jobs,
                                      size_t count)
{
	return (struct postgres_batch){
		.jobs = jobs,
		.count = count,
		.generation = line->generation,
		.nonce = line->nonce,
		.order = &line->order,
		.now_us = line->now_us,
		.takes_first = true,
	};
}

void postgres_line_say(struct line *line, const struct remote_job *jobs, size_t count)
{
	struct postgres_batch batch;
	struct postgres_call call;

	line->nonce = line->nonce * 6364136223846793005u + 1442695040888963407u;
	batch = batch_of(line, jobs, count);
	must(postgres_ask(&batch, &line->asked, &call));
	must(session_call(&line->session, line->conn, &call));
}

enum postgres_result postgres_line_hear(struct line *line,
                                        const struct remote_job *jobs, size_t count,
                                        struct remote_told *ret_told)
{
	struct postgres_batch batch = batch_of(line, jobs, count);
	PGresult *result = PQgetResult(line->conn);
	char generation[REMOTE_GENERATION_BYTES + 1];
	enum postgres_result means =
	    postgres_told(result, &batch, &line->answered, ret_told, generation);

	if (means == POSTGRES_OTHER_GENERATION)
		strcpy(line->generation, generation);
	if (means != POSTGRES_TOLD && means != POSTGRES_OTHER_GENERATION)
		fprintf(stderr, "%s\n", PQresultErrorMessage(result));
	PQclear(result);
	must(PQgetResult(line->conn) == NULL);
	return means;
}

static bool is_answered(struct line *line)
{
	must(PQconsumeInput(line->conn));
	return !PQisBusy(line->conn);
}

void postgres_line_until_it_waits(struct line *line, struct line *another)
{
	char sql[96];

	snprintf(sql, sizeof(sql),
	         "SELECT count(*) FROM pg_locks WHERE pid = %d AND NOT granted",
	         PQbackendPID(line->conn));
	while (!is_answered(line) && postgres_line_number(another, sql) == 0)
		continue;
}

enum postgres_result postgres_line_call(struct line *line,
                                        const struct remote_job *jobs, size_t count,
                                        struct remote_told *ret_told)
{
	enum postgres_result means;

	postgres_line_say(line, jobs, count);
	means = postgres_line_hear(line, jobs, count, ret_told);
	if (means != POSTGRES_OTHER_GENERATION)
		return means;
	postgres_line_say(line, jobs, count);
	return postgres_line_hear(line, jobs, count, ret_told);
}

void postgres_line_install(struct line *line)
{
	postgres_line_do(line, postgres_schema);
}
