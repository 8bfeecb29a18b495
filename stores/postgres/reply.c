/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * reply.c -- a result, believed bit by bit.
 *
 * Invariants
 *
 *   POSTGRES-5  Each job is answered, under the batch's nonce, with a code that can be
 *               meant for its verb, and a value of whole words.  Of two answers the
 *               later counts: the first was of a try that came to nothing. (law L13)
 */
#define _GNU_SOURCE
#include <limits.h>
#include <string.h>

#include "stores/postgres/numbers.h"
#include "stores/postgres/wire.h"

/* ---- Errors ---------------------------------------------------------------------- */

static const struct {
	const char *begins;
	enum postgres_result means;
} errors[] = {
	{ "GL001", POSTGRES_OLDER },
	{ "GL002", POSTGRES_NEWER },
	{ "3F000", POSTGRES_MISSING }, /* no such schema */
	{ "42883", POSTGRES_MISSING }, /* no such function */
	{ "42P01", POSTGRES_MISSING }, /* no such table */
	{ "25006", POSTGRES_READ_ONLY },
	{ "26000", POSTGRES_UNNAMED },
	{ "55P03", POSTGRES_TIMED_OUT }, /* a lock */
	{ "57014", POSTGRES_TIMED_OUT }, /* cancelled: the statement took too long */
	{ "40001", POSTGRES_DEADLOCK },  /* not in order with others */
	{ "40P01", POSTGRES_DEADLOCK },
	{ "40", POSTGRES_LOST },
	{ "53", POSTGRES_LATER },   /* connections, memory, disk */
	{ "57P", POSTGRES_LATER },  /* shut down, crashed, cannot connect now */
	{ "08", POSTGRES_LOST },    /* the connection, or a pool's to the server */
	{ "28", POSTGRES_REFUSED }, /* no such user, or password */
	{ "42501", POSTGRES_REFUSED },
	{ "3D000", POSTGRES_REFUSED }, /* no such database */
};

enum postgres_result postgres_error(const char *sqlstate)
{
	if (!sqlstate)
		return POSTGRES_LOST;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strncmp(sqlstate, errors[i].begins, strlen(errors[i].begins)) == 0)
			return errors[i].means;
	return POSTGRES_FAILED;
}

/* ---- Answers --------------------------------------------------------------------- */

/* JOB is a job's number, its code, and of REMOTE_LENT what is used of the window.  Of job 0 WORDS are
 * the nonce, the time of what follows, and where the window of leases that follow starts; of
 * OTHER the letters of the generation instead, and of ALL nothing: each job was lent what it
 * wanted.  Of others: what was there, or the rows behind the first of what was lent from. */
enum column {
	JOB,
	WORDS,
	COLUMNS,
};

static const Oid column_types[COLUMNS] = { INT8, INT8_ARRAY };

#define CODE_BITS 7 /* a code stands above so many of a job's number */
#define USED_BITS 10
#define OTHER (1 << CODE_BITS)         /* of job 0 */
#define ALL (REMOTE_LENT << CODE_BITS) /* of job 0 */
#define CODES (1 << (USED_BITS - CODE_BITS))

static bool has_columns(const PGresult *result)
{
	if (PQnfields(result) != COLUMNS)
		return false;
	for (int i = 0; i < COLUMNS; i++)
		if (PQftype(result, i) != column_types[i] ||
		    PQfformat(result, i) != POSTGRES_BINARY)
			return false;
	return true;
}

static bool read_number(const PGresult *result, int row, uint64_t *ret_number)
{
	if (PQgetlength(result, row, JOB) != 8)
		return false;
	*ret_number = get8((const uint8_t *)PQgetvalue(result, row, JOB));
	return true;
}

struct words {
	const uint8_t *at; /* the first one's length */
	size_t count;
};

static uint64_t word_of(const struct words *words, size_t i)
{
	return get8(words->at + i * NUMBER + 4);
}

/* If it is an array of numbers, and nothing else. */
static bool read_words(const PGresult *result, int row, struct words *ret_words)
{
	const uint8_t *at = (const uint8_t *)PQgetvalue(result, row, WORDS);
	size_t length = (size_t)PQgetlength(result, row, WORDS), count;

	if (length < ARRAY_HEAD || get4(at) != 1 || get4(at + 4) != 0 ||
	    get4(at + 8) != INT8)
		return false;
	count = get4(at + 12);
	at += ARRAY_HEAD;
	if (length != ARRAY_HEAD + count * NUMBER)
		return false;
	for (size_t i = 0; i < count; i++)
		if (get4(at + i * NUMBER) != 8)
			return false;
	*ret_words = (struct words){ at, count };
	return true;
}

/* A row of job 0: what is it of, and from when? */
static bool read_first(const PGresult *result, int row,
                       const struct postgres_batch *batch, struct words *ret_words)
{
	return read_words(result, row, ret_words) && ret_words->count >= 2 &&
	       word_of(ret_words, 0) == batch->nonce && word_of(ret_words, 1) > 0 &&
	       word_of(ret_words, 1) <= INSTANT_MAX_US;
}

static enum postgres_result read_generation(const struct words *words,
                                            char ret[REMOTE_GENERATION_BYTES + 1])
{
	char text[REMOTE_GENERATION_BYTES + 1] = "";
	size_t length = words->count - 2;

	if (length == 0 || length > REMOTE_GENERATION_BYTES)
		return POSTGRES_WRONG;
	for (size_t i = 0; i < length; i++) {
		uint64_t letter = word_of(words, i + 2);

		if (letter == 0 || letter > SCHAR_MAX)
			return POSTGRES_WRONG;
		text[i] = (char)letter;
	}
	memcpy(ret, text, sizeof(text));
	return POSTGRES_OTHER_GENERATION;
}

/* Can the code be meant?  A server that says otherwise is not ours. */
static bool is_possible(const struct remote_job *job, uint64_t code)
{
	switch (code) {
	case REMOTE_MOVED:
		return job->verb == REMOTE_SWAP;
	case REMOTE_WAITS:
		return has_patience(job->verb);
	case REMOTE_CALENDAR:
		return job->verb <= REMOTE_BACK &&
		       job->rule->is.kind == GALE_RULE_QUOTA;
	case REMOTE_CHANGED:
	case REMOTE_GARBLED:
		return job->verb != REMOTE_DROP;
	default:
		return code == REMOTE_DONE;
	}
}

/* What a batch's result is read into. */
struct reader {
	const struct postgres_batch *batch;
	struct remote_told *told;
	uint64_t now; /* of the rows that follow; 0: none was told */
	uint64_t
	    start;   /* of the window that they are lent from; INSTANT_MAX_US: none */
	size_t left; /* jobs of which nothing has been told */
	uint8_t *at;
};

static uint8_t *put_little(uint8_t *at, uint64_t number)
{
	uint64_t little = htole64(number);

	memcpy(at, &little, sizeof(little));
	return at + sizeof(little);
}

static uint8_t *put_head(uint8_t *at, const struct rule *rule)
{
	return put_little(put_little(at, head_of(rule)), rule->fingerprint);
}

/* The array's words; false if it is none. */
static bool copy_words(struct reader *reader, const PGresult *result, int row)
{
	struct words words;

	if (!read_words(result, row, &words))
		return false;
	for (size_t i = 0; i < words.count; i++)
		reader->at = put_little(reader->at, word_of(&words, i));
	return true;
}

/* With rows of others it is a value. */
static bool read_lent(struct reader *reader, const PGresult *result, int row,
                      const struct remote_job *job, struct remote_told *told)
{
	if (reader->start == INSTANT_MAX_US ||
	    told->lent.used > job->rule->is.limit) /* it was not denied */
		return false;
	told->lent.start_us = reader->start;
	if (PQgetisnull(result, row, WORDS))
		return true;
	told->code = REMOTE_DONE;
	if (!window_valid(job->rule, &told->lent))
		return false;
	value_encode_lent(job->rule, &job->ask, &told->lent, reader->at);
	reader->at += VALUE_LENT_BYTES;
	return copy_words(reader, result, row);
}

/* The value as it was; no bytes if none. */
static bool read_before(struct reader *reader, const PGresult *result, int row,
                        const struct remote_job *job)
{
	if (PQgetisnull(result, row, WORDS))
		return true;
	if (job->verb <= REMOTE_BACK)
		reader->at = put_head(reader->at, job->rule);
	return copy_words(reader, result, row);
}

static bool read_value(struct reader *reader, const PGresult *result, int row,
                       const struct remote_job *job, struct remote_told *told)
{
	uint8_t *start = reader->at;
	bool good = told->code == REMOTE_LENT
	                ? read_lent(reader, result, row, job, told)
	                : read_before(reader, result, row, job);

	if (!good) {
		told->code = REMOTE_GARBLED; /* it is no value of gale's */
		reader->at = start;
		return is_possible(job, REMOTE_GARBLED);
	}
	told->before.bytes = start;
	told->before.count = (size_t)(reader->at - start);
	return true;
}

static bool is_ours(const struct reader *reader, const struct remote_job *job,
                    uint64_t code, uint64_t coded)
{
	if (code == REMOTE_LENT)
		return reader->batch->order->is_short && !remote_lends_ahead(job);
	return coded >> USED_BITS == 0 && is_possible(job, code);
}

static bool read_job(struct reader *reader, const PGresult *result, int row,
                     size_t number, uint64_t coded)
{
	const struct postgres_batch *batch = reader->batch;
	size_t which =
	    batch->order->is_short ? batch->order->jobs[number - 1] : number - 1;
	uint64_t code = coded >> CODE_BITS & (CODES - 1);
	struct remote_told *told = &reader->told[which];

	if (reader->now == 0 || !is_ours(reader, &batch->jobs[which], code, coded))
		return false;
	reader->left -= told->now_us == 0;
	*told = (struct remote_told){ .code = (enum remote_code)code,
		                      .now_us = reader->now,
		                      .lent = { .used = coded >> USED_BITS } };
	return read_value(reader, result, row, &batch->jobs[which], told);
}

static bool read_time(struct reader *reader, const PGresult *result, int row)
{
	struct words words;

	if (!read_first(result, row, reader->batch, &words))
		return false;
	reader->now = word_of(&words, 1);
	reader->start = words.count > 2 ? word_of(&words, 2) : INSTANT_MAX_US;
	return reader->start <= INSTANT_MAX_US;
}

/* Keys that were put in: each node has all that it wanted, and none had any before. */
static bool read_all(struct reader *reader)
{
	const struct postgres_batch *batch = reader->batch;

	if (batch->count == 0 || !batch->order->is_first || reader->now == 0 ||
	    reader->start == INSTANT_MAX_US)
		return false;
	for (size_t i = 0; i < batch->count; i++)
		reader->told[i] = (struct remote_told){
			.code = REMOTE_LENT,
			.now_us = reader->now,
			.lent = { .start_us = reader->start,
			          .used = batch->jobs[i].ask.want },
		};
	reader->left = 0;
	batch->order->were_first = true;
	return true;
}

static bool read_row(struct reader *reader, const PGresult *result, int row)
{
	uint64_t coded;
	size_t number;

	if (PQgetisnull(result, row, JOB))
		return true; /* it has only been made ready */
	if (!read_number(result, row, &coded))
		return false;
	if (coded == 0)
		return read_time(reader, result, row);
	if (coded == ALL)
		return read_all(reader);
	number = coded & ((1 << CODE_BITS) - 1);
	return number >= 1 && number <= reader->batch->count &&
	       read_job(reader, result, row, number, coded);
}

/* Bytes in an array's words are fewer than what they came in. */
static size_t room_for(const PGresult *result)
{
	size_t sum = 0;

	for (int row = 0; row < PQntuples(result); row++)
		sum += 10 * 8 + (size_t)PQgetlength(result, row, WORDS);
	return sum;
}

static enum postgres_result read_rows(const PGresult *result,
                                      const struct postgres_batch *batch,
                                      struct postgres_room *room,
                                      struct remote_told *told)
{
	struct reader reader = { .batch = batch,
		                 .told = told,
		                 .start = INSTANT_MAX_US,
		                 .left = batch->count };

	if (!postgres_room_make(room, room_for(result)))
		return POSTGRES_NO_MEMORY;
	reader.at = room->bytes;
	memset(told, 0, batch->count * sizeof(*told));
	for (int row = 0; row < PQntuples(result); row++)
		if (!read_row(&reader, result, row))
			return POSTGRES_WRONG;
	return reader.left == 0 && reader.now > 0 ? POSTGRES_TOLD : POSTGRES_WRONG;
}

/* The last row may say that it is another. */
static bool is_other_generation(const PGresult *result,
                                const struct postgres_batch *batch,
                                struct words *ret_words)
{
	int last = PQntuples(result) - 1;
	uint64_t coded;

	return last >= 0 && read_number(result, last, &coded) && coded == OTHER &&
	       read_first(result, last, batch, ret_words);
}

enum postgres_result postgres_told(const PGresult *result,
                                   const struct postgres_batch *batch,
                                   struct postgres_room *room,
                                   struct remote_told *ret_told,
                                   char ret_generation[REMOTE_GENERATION_BYTES + 1])
{
	struct words words;

	if (!result)
		return POSTGRES_NO_MEMORY;
	if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		return postgres_error(PQresultErrorField(result, PG_DIAG_SQLSTATE));
	if (PQresultStatus(result) != PGRES_TUPLES_OK || !has_columns(result))
		return POSTGRES_WRONG;
	if (is_other_generation(result, batch, &words))
		return read_generation(&words, ret_generation);
	return read_rows(result, batch, room, ret_told);
}
