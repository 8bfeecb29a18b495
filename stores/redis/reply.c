/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * reply.c -- bounded parsing, and a door that lets only believable answers in.
 *
 * The bounds are kept by the functions that hiredis calls to make its objects: when one
 * returns NULL, the parser fails, and nothing was allocated.  Bytes that are not yet a
 * whole part are only buffered; that has a bound of its own, since the head of a string may
 * announce any length.
 */
#include "stores/redis/reply.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "engine/window.h"
#include "stores/redis/wire.h"

#define HEAD_MOST 64 /* of a part: its kind and a number */
#define DEPTH_MOST 8 /* arrays in one another */

/* ---- Objects --------------------------------------------------------------------- */

/* An array's parts lie behind the pointers to them, in one block, as calls have many: a
 * pointer is NULL until its part has come. */
static redisReply *part_in(redisReply *array, size_t i)
{
	redisReply *parts = (redisReply *)(array->element + array->elements);

	array->element[i] = &parts[i];
	return &parts[i];
}

/* An array pays for its parts when it is announced: that is when they take memory. */
static redisReply *new_part(const redisReadTask *task, int type)
{
	struct redis_intake *intake = task->privdata;
	redisReply *part;

	if (!task->parent && intake->parts_left == 0)
		return NULL;
	part = task->parent ? part_in(task->parent->obj, (size_t)task->idx)
	                    : calloc(1, sizeof(*part));
	if (!part)
		return NULL;
	intake->parts_left -= !task->parent;
	part->type = type;
	return part;
}

static bool may_have(const redisReadTask *task, size_t parts)
{
	const struct redis_intake *intake = task->privdata;
	size_t depth = 0, own = task->parent ? 0 : 1;

	for (const redisReadTask *at = task->parent; at; at = at->parent)
		depth++;
	return depth < DEPTH_MOST && intake->parts_left >= own &&
	       parts <= intake->parts_left - own;
}

static void *make_string(const redisReadTask *task, char *bytes, size_t count)
{
	const struct redis_intake *intake = task->privdata;
	char *copy;
	redisReply *part;

	if (count > intake->string_most)
		return NULL;
	copy = malloc(count + 1);
	part = copy ? new_part(task, task->type) : NULL;
	if (!part) {
		free(copy);
		return NULL;
	}
	memcpy(copy, bytes, count);
	copy[count] = '\0';
	part->str = copy;
	part->len = count;
	return part;
}

static void *new_array(const redisReadTask *task, size_t count)
{
	struct redis_intake *intake = task->privdata;
	redisReply **parts = NULL;
	redisReply *array;

	if (!may_have(task, count))
		return NULL;
	if (count > 0) {
		parts = calloc(count, sizeof(redisReply *) + sizeof(redisReply));
		if (!parts)
			return NULL;
	}
	array = new_part(task, REDIS_REPLY_ARRAY);
	if (!array) {
		free(parts);
		return NULL;
	}
	intake->parts_left -= count;
	array->elements = count;
	array->element = parts;
	return array;
}

#if HIREDIS_MAJOR >= 1
static void *make_array(const redisReadTask *task, size_t count)
{
	return new_array(task, count);
}

/* None of these was asked for: a reply that has one is none.  Without the functions hiredis
 * would hand out numbers for pointers. */
static void *make_double(const redisReadTask *task, double number, char *text,
                         size_t count)
{
	(void)task;
	(void)number;
	(void)text;
	(void)count;
	return NULL;
}

static void *make_bool(const redisReadTask *task, int truth)
{
	(void)task;
	(void)truth;
	return NULL;
}
#else
/* It has int here, whatever the server announced. */
static void *make_array(const redisReadTask *task, int count)
{
	return count < 0 ? NULL : new_array(task, (size_t)count);
}
#endif

static void *make_integer(const redisReadTask *task, long long number)
{
	redisReply *part = new_part(task, REDIS_REPLY_INTEGER);

	if (part)
		part->integer = number;
	return part;
}

static void *make_nil(const redisReadTask *task)
{
	return new_part(task, REDIS_REPLY_NIL);
}

/* Nesting is bounded by may_have. */
static void empty(redisReply *part)
{
	for (size_t i = 0; part->element && i < part->elements; i++)
		if (part->element[i])
			empty(part->element[i]);
	free(part->element);
	free(part->str);
}

static void free_reply(void *object)
{
	if (object)
		empty(object);
	free(object);
}

bool redis_read_generation(const redisReply *reply, uint64_t *ret_since_us)
{
	const char *since =
	    reply->type == REDIS_REPLY_STRING ? strchr(reply->str, ':') : NULL;

	return since && reply->len <= REMOTE_GENERATION_BYTES &&
	       url_number(since + 1, INSTANT_MAX_US, ret_since_us);
}

bool redis_is_tls(const uint8_t *bytes, size_t count)
{
	return count >= 2 && bytes[0] == 21 && bytes[1] == 3;
}

void redis_reply_free(struct redisReply *reply)
{
	free_reply(reply);
}

/* ---- Intakes --------------------------------------------------------------------- */

static redisReplyObjectFunctions functions = {
	.createString = make_string,
	.createArray = make_array,
	.createInteger = make_integer,
#if HIREDIS_MAJOR >= 1
	.createDouble = make_double,
	.createBool = make_bool,
#endif
	.createNil = make_nil,
	.freeObject = free_reply,
};

bool redis_intake_open(struct redis_intake *intake, size_t string_most)
{
	*intake = (struct redis_intake){
		.reader = redisReaderCreateWithFunctions(&functions),
		.string_most = string_most,
		.parts_most = REDIS_PARTS_MOST,
		.parts_left = REDIS_PARTS_MOST,
	};
	if (!intake->reader)
		return false;
	intake->reader->privdata = intake;
	return true;
}

void redis_intake_close(struct redis_intake *intake)
{
	if (intake->reader)
		redisReaderFree(intake->reader);
	intake->reader = NULL;
}

static bool broken(struct redis_intake *intake)
{
	redis_intake_close(intake);
	return false;
}

bool redis_intake_feed(struct redis_intake *intake, const void *bytes, size_t count)
{
	if (!intake->reader)
		return false;
	if (redisReaderFeed(intake->reader, bytes, count) != REDIS_OK)
		return broken(intake);
	return true;
}

static bool is_stuffed(const struct redis_intake *intake)
{
	const redisReader *reader = intake->reader;

	return reader->len - reader->pos > intake->string_most + HEAD_MOST;
}

bool redis_intake_take(struct redis_intake *intake, struct redisReply **ret_reply)
{
	void *reply = NULL;

	*ret_reply = NULL;
	if (!intake->reader)
		return false;
	if (redisReaderGetReply(intake->reader, &reply) != REDIS_OK)
		return broken(intake);
	if (!reply)
		return is_stuffed(intake) ? broken(intake) : true;
	intake->parts_left = intake->parts_most;
	*ret_reply = reply;
	return true;
}

/* ---- Errors ---------------------------------------------------------------------- */

static bool begins(const char *text, const char *word)
{
	size_t count = strlen(word);

	return strncmp(text, word, count) == 0 &&
	       (text[count] == ' ' || text[count] == '\0');
}

static enum redis_word word_of(const char *text)
{
	static const struct {
		const char *word;
		enum redis_word means;
	} words[] = {
		{ "NOSCRIPT", REDIS_NOSCRIPT },
		{ "MOVED", REDIS_MOVED },
		{ "ASK", REDIS_ASK },
		{ "LOADING", REDIS_LATER },
		{ "BUSY", REDIS_LATER },
		{ "MASTERDOWN", REDIS_LATER },
		{ "CLUSTERDOWN", REDIS_TRYAGAIN },
		{ "TRYAGAIN", REDIS_TRYAGAIN },
		{ "NOREPLICAS", REDIS_LATER },
		{ "MISCONF", REDIS_LATER },
		{ "READONLY", REDIS_READONLY },
		{ "OOM", REDIS_FULL },
		{ "NOAUTH", REDIS_NOT_LET },
		{ "WRONGPASS", REDIS_NOT_LET },
		{ "NOPERM", REDIS_NOT_LET },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (begins(text, words[i].word))
			return words[i].means;
	return REDIS_ERROR;
}

/* A number up to most, and what stands behind it. */
static bool read_number(const char **at, unsigned long most, uint16_t *ret_number)
{
	unsigned long number = 0;
	const char *text = *at;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		number = number * 10 + (unsigned long)(*text - '0');
		if (number > most)
			return false;
	}
	*at = text;
	*ret_number = (uint16_t)number;
	return true;
}

/* MOVED 3999 127.0.0.1:6381 */
static bool read_address(const char *text, struct redis_said *said)
{
	const char *at = strchr(text, ' '), *colon = strrchr(text, ':');
	size_t count;

	if (!at || !colon)
		return false;
	at++;
	if (!read_number(&at, 16383, &said->slot) || *at != ' ' || colon < at + 1)
		return false;
	count = (size_t)(colon - at - 1);
	if (count > REDIS_HOST_MOST)
		return false;
	memcpy(said->host, at + 1, count);
	said->host[count] = '\0';
	at = colon + 1;
	return read_number(&at, 65535, &said->port) && *at == '\0' && said->port > 0;
}

static void copy_printable(char *out, const redisReply *error)
{
	size_t count = error->len < REDIS_TEXT_MOST ? error->len : REDIS_TEXT_MOST;

	for (size_t i = 0; i < count; i++)
		out[i] =
		    error->str[i] >= ' ' && error->str[i] <= '~' ? error->str[i] : '?';
	out[count] = '\0';
}

bool redis_is_error(const struct redisReply *reply, struct redis_said *ret_said)
{
	if (reply->type != REDIS_REPLY_ERROR)
		return false;
	*ret_said = (struct redis_said){ .word = word_of(reply->str) };
	copy_printable(ret_said->text, reply);
	if ((ret_said->word == REDIS_MOVED || ret_said->word == REDIS_ASK) &&
	    !read_address(reply->str, ret_said))
		ret_said->word = REDIS_STRANGE;
	return true;
}

/* ---- Batches --------------------------------------------------------------------- */

static bool is_number(const redisReply *part, uint64_t least, uint64_t most,
                      uint64_t *ret_number)
{
	if (part->type != REDIS_REPLY_INTEGER || part->integer < 0 ||
	    (uint64_t)part->integer < least || (uint64_t)part->integer > most)
		return false;
	*ret_number = (uint64_t)part->integer;
	return true;
}

/* It is the very word that was sent. */
static bool is_nonce(const redisReply *part, uint64_t nonce)
{
	char word[REDIS_DECIMAL_MOST];
	size_t count = redis_decimal(word, nonce);

	return part->type == REDIS_REPLY_STRING && part->len == count &&
	       memcmp(part->str, word, count) == 0;
}

/* The longest value that the job's server can have told of. */
static size_t told_most(const struct remote_job *job)
{
	switch (job->verb) {
	case REMOTE_SWAP:
	case REMOTE_DROP:
		return 0;
	case REMOTE_BEAT:
		return REMOTE_GRANT_BYTES;
	case REMOTE_CLAIM:
		return REMOTE_CLAIM_BYTES;
	default:
		return remote_value_most(job->rule);
	}
}

static bool can_say(const struct remote_job *job, enum remote_code code)
{
	switch (code) {
	case REMOTE_DONE:
	case REMOTE_LENT:
		return false; /* it tells the value instead, or a number */
	case REMOTE_MOVED:
		return job->verb == REMOTE_SWAP;
	case REMOTE_WAITS:
		return job->not_before_us > 0;
	case REMOTE_CALENDAR:
		return job->rule && job->rule->is.kind == GALE_RULE_QUOTA;
	case REMOTE_CHANGED:
	case REMOTE_GARBLED:
		break;
	}
	return job->verb != REMOTE_DROP;
}

/* It got all it wanted in the window of now, of which so much is used by that.  False: that
 * cannot be. */
static bool read_lent(long long said, const struct remote_job *job, uint64_t now_us,
                      struct remote_told *ret_told)
{
	const struct window_state fresh = { 0 };
	uint64_t used = 0 - (uint64_t)said;

	if (job->verb != REMOTE_LEND || !remote_lends_windows(job->rule) ||
	    remote_lends_ahead(job) || used < job->ask.want ||
	    used > job->rule->is.limit)
		return false;
	ret_told->code = REMOTE_LENT;
	ret_told->before = (struct remote_bytes){ 0 };
	ret_told->lent = (struct window_state){
		.start_us = window_start(job->rule, &fresh, now_us),
		.used = used,
	};
	return true;
}

static bool read_told(const redisReply *part, const struct remote_job *job,
                      uint64_t now_us, struct remote_told *ret_told)
{
	uint64_t code;

	if (part->type == REDIS_REPLY_INTEGER && part->integer < 0)
		return read_lent(part->integer, job, now_us, ret_told);
	if (part->type == REDIS_REPLY_STRING) {
		ret_told->code = REMOTE_DONE;
		ret_told->before =
		    (struct remote_bytes){ (const uint8_t *)part->str, part->len };
		return part->len <= told_most(job);
	}
	if (!is_number(part, 1, REMOTE_GARBLED, &code))
		return false;
	ret_told->code = (enum remote_code)code;
	ret_told->before = (struct remote_bytes){ 0 };
	return can_say(job, ret_told->code);
}

static enum redis_word read_generation(const redisReply *found,
                                       struct redis_said *ret_said)
{
	if (found->type != REDIS_REPLY_STRING || found->len > REMOTE_GENERATION_BYTES)
		return REDIS_STRANGE;
	memcpy(ret_said->generation, found->str, found->len);
	ret_said->generation_count = found->len;
	return REDIS_GENERATION;
}

static enum redis_word read_all(const redisReply *reply, const struct remote_job *jobs,
                                size_t count, struct remote_told *told)
{
	uint64_t now_us;

	if (reply->elements != count + 2 ||
	    !is_number(reply->element[1], 1, INSTANT_MAX_US, &now_us))
		return REDIS_STRANGE;
	for (size_t i = 0; i < count; i++) {
		if (!read_told(reply->element[i + 2], &jobs[i], now_us, &told[i]))
			return REDIS_STRANGE;
		told[i].now_us = now_us;
	}
	return REDIS_TOLD;
}

void redis_read_reply(const struct redisReply *reply, uint64_t nonce,
                      const struct remote_job *jobs, size_t count,
                      struct remote_told *told, struct redis_said *ret_said)
{
	gale_assert(count >= 1 && count <= REMOTE_BATCH_MOST);
	if (redis_is_error(reply, ret_said))
		return;
	*ret_said = (struct redis_said){ .word = REDIS_STRANGE };
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2)
		return;
	if (!is_nonce(reply->element[0], nonce))
		ret_said->word = REDIS_NOT_OURS;
	else if (reply->elements == 2)
		ret_said->word = read_generation(reply->element[1], ret_said);
	else
		ret_said->word = read_all(reply, jobs, count, told);
}
