/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * reply.h -- what a Redis server says back, if it can be believed.
 *
 *     bytes --intake--> redisReply --redis_read_reply--> told, or what is the matter
 *
 * An intake is hiredis's parser with bounds of our own: a reply has at most so many
 * parts and a part so many bytes, whatever its head announces.  A reply that exceeds
 * them, or is no reply, breaks the intake: the connection is of no more use, and what
 * was asked on it may or may not have been done.
 *
 * Threads   One intake: one thread.  The rest is pure: any.
 */
#ifndef STORES_REDIS_REPLY_H
#define STORES_REDIS_REPLY_H

#include <hiredis/read.h>

#include "stores/remote.h"

#define REDIS_INFO_MOST                                                                \
	((size_t)1 << 20)       /* a line for each kind of error that it has told */
#define REDIS_STRING_MOST 65536 /* unless the host says otherwise */
#define REDIS_PARTS_MOST (4 * REMOTE_BATCH_MOST) /* of a reply, arrays included */
#define REDIS_TEXT_MOST 128                      /* of an error's text, cut */
#define REDIS_HOST_MOST 255

struct redisReply;

/* ---- Bytes to replies ------------------------------------------------------------ */

struct redis_intake {
	redisReader *reader; /* NULL: there was no memory, or it is broken */
	size_t string_most;
	size_t parts_most; /* of a reply; REDIS_PARTS_MOST, unless it was set */
	size_t parts_left; /* of the reply that is being read */
};

/* It stays where it is as long as it is open.  False: no memory. */
bool redis_intake_open(struct redis_intake *intake, size_t string_most);
void redis_intake_close(struct redis_intake *intake);

/* False: it is broken. */
bool redis_intake_feed(struct redis_intake *intake, const void *bytes, size_t count);
/* The next whole reply, for redis_reply_free, or NULL: more bytes are needed.  False: it
 * is broken. */
bool redis_intake_take(struct redis_intake *intake, struct redisReply **ret_reply);
void redis_reply_free(struct redisReply *reply);
/* Of a generation: whose it is, a colon, and since when.  False: it is none. */
bool redis_read_generation(const struct redisReply *reply, uint64_t *ret_since_us);
/* Not a reply but an alert of TLS, of any version: the port speaks that. */
bool redis_is_tls(const uint8_t *bytes, size_t count);

/* ---- Replies to what they mean --------------------------------------------------- */

enum redis_word {
	REDIS_TOLD,       /* each job has been told of */
	REDIS_GENERATION, /* nothing was done: it has another, which is in .generation */
	REDIS_NOSCRIPT,   /* nothing was done: load the script, and say it again */
	REDIS_MOVED,      /* nothing was done: slot lives at host and port now */
	REDIS_ASK,        /* nothing was done: this once, ask there */
	REDIS_TRYAGAIN,   /* nothing was done: the slot is between two, or at no node */
	REDIS_LATER,      /* LOADING, BUSY, and others that go away by themselves */
	REDIS_READONLY,   /* a replica: what was told of before may be done, no more */
	REDIS_FULL,       /* OOM */
	REDIS_NOT_LET,    /* NOAUTH, WRONGPASS, NOPERM */
	REDIS_ERROR,      /* any other error */
	REDIS_NOT_OURS, /* the answer to something else: the connection is out of step */
	REDIS_STRANGE,  /* what no step.lua says */
};

struct redis_said {
	enum redis_word word;
	char generation[REMOTE_GENERATION_BYTES];
	size_t generation_count;
	uint16_t slot;
	uint16_t port;
	char host[REDIS_HOST_MOST + 1]; /* "": the one that was asked */
	char text[REDIS_TEXT_MOST + 1]; /* of an error: printable */
};

/*
 * The reply to a batch of so many jobs with that nonce.  When it is REDIS_TOLD,
 * told[0 .. count - 1] are set and point into the reply.  An error in
 * the middle of a batch does not say what was done before it: of REDIS_READONLY and the
 * words after it, jobs that take are not to be believed done, and jobs that give back not
 * to be repeated.
 */
void redis_read_reply(const struct redisReply *reply, uint64_t nonce,
                      const struct remote_job *jobs, size_t count,
                      struct remote_told *told, struct redis_said *ret_said);

/* The reply to any other command, if it is an error: what it means. */
bool redis_is_error(const struct redisReply *reply, struct redis_said *ret_said);

#endif
