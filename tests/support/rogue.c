/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* rogue.c -- commands are read as what they are; the answers are not. */
#define _GNU_SOURCE
#include "tests/support/rogue.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/atomic.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define TAKEN_MOST (1 << 18)
#define WORDS_MOST 256
#define NAP_MS 5
#define NUMBER_WIDTH 24

struct word {
	const char *at;
	size_t count;
};

struct talk {
	struct rogue *rogue;
	int fd;
	char taken[TAKEN_MOST];
	size_t count;
};

/* ---- Commands -------------------------------------------------------------------- */

/* A line that is a letter and a number; NULL: it is not whole yet. */
static const char *read_head(const char *at, const char *end, char letter,
                             size_t *ret_number)
{
	const char *line = memchr(at, '\n', (size_t)(end - at));

	if (!line)
		return NULL;
	must(*at == letter);
	*ret_number = strtoul(at + 1, NULL, 10);
	return line + 1;
}

/* One command; how long it is, 0 if it is not whole yet. */
static size_t read_command(const struct talk *talk, struct word *words,
                           size_t *ret_count)
{
	const char *at = talk->taken, *end = talk->taken + talk->count;
	size_t count = 0;

	at = read_head(at, end, '*', &count);
	must(count <= WORDS_MOST);
	for (size_t i = 0; at && i < count; i++) {
		size_t length = 0;

		at = read_head(at, end, '$', &length);
		if (!at || (size_t)(end - at) < length + 2)
			return 0;
		words[i] = (struct word){ at, length };
		at += length + 2;
	}
	*ret_count = count;
	return at ? (size_t)(at - talk->taken) : 0;
}

static bool is(const struct word *word, const char *text)
{
	return word->count == strlen(text) && memcmp(word->at, text, word->count) == 0;
}

/* It stands behind the keys. */
static unsigned long long nonce_of(const struct word *words, size_t count)
{
	size_t keys = count > 2 ? strtoul(words[2].at, NULL, 10) : 0;

	must(count > 3 + keys);
	return strtoull(words[3 + keys].at, NULL, 10);
}

/* ---- Answers --------------------------------------------------------------------- */

static void put(struct talk *talk, const char *bytes, size_t count)
{
	(void)!send(talk->fd, bytes, count, MSG_NOSIGNAL);
}

static void put_number(struct talk *talk, unsigned long long number)
{
	char text[NUMBER_WIDTH];

	put(talk, text, (size_t)snprintf(text, sizeof(text), "%llu", number));
}

static void put_nonce(struct talk *talk, unsigned long long nonce)
{
	char text[NUMBER_WIDTH], bulk[2 * NUMBER_WIDTH];
	int count = snprintf(text, sizeof(text), "%llu", nonce);

	put(talk, bulk,
	    (size_t)snprintf(bulk, sizeof(bulk), "$%d\r\n%s\r\n", count, text));
}

static void put_text(struct talk *talk, const char *text, unsigned long long nonce)
{
	while (*text != '\0') {
		size_t count = strcspn(text, "%");

		put(talk, text, count);
		text += count;
		if (*text == '\0')
			return;
		if (text[1] == 'n')
			put_nonce(talk, nonce);
		else
			put_number(talk, wall_us());
		text += 2;
	}
}

static void say(struct talk *talk, enum rogue_to to, unsigned long long nonce)
{
	static const char *const honest[] = {
		[ROGUE_INFO] = ("$47\r\nrole:master\r\nloading:0\r\n"
		                "run_id:0123456789ab\r\n\r\n\r\n"),
		[ROGUE_GENERATION] = "$14\r\n0123456789ab:1\r\n",
		[ROGUE_CALL] = ROGUE_HONEST,
		[ROGUE_SLOTS] = "-ERR This instance has cluster support disabled\r\n",
		[ROGUE_SENTINEL] = "*-1\r\n",
	};
	const char *text = load_acquire(&talk->rogue->says[to]);

	put_text(talk, text ? text : honest[to], nonce);
}

/* False: it hangs up. */
static bool answer(struct talk *talk, const struct word *words, size_t count)
{
	if (is(&words[0], "INFO"))
		say(talk, ROGUE_INFO, 0);
	else if (is(&words[0], "CLUSTER"))
		say(talk, ROGUE_SLOTS, 0);
	else if (is(&words[0], "SENTINEL"))
		say(talk, ROGUE_SENTINEL, 0);
	else if (is(&words[0], "EVAL"))
		say(talk, ROGUE_GENERATION, 0);
	else if (is(&words[0], "EVALSHA"))
		say(talk, ROGUE_CALL, nonce_of(words, count));
	else
		put_text(talk, "+OK\r\n", 0);
	return !is(&words[0], "EVALSHA") || !load_relaxed(&talk->rogue->hangs_up);
}

/* ---- The thread ------------------------------------------------------------------ */

static bool is_readable(int fd)
{
	struct pollfd poll_for = { .fd = fd, .events = POLLIN };

	return poll(&poll_for, 1, NAP_MS) == 1;
}

static bool answer_all(struct talk *talk)
{
	struct word words[WORDS_MOST];
	size_t count, length;

	while ((length = read_command(talk, words, &count)) > 0) {
		if (!answer(talk, words, count))
			return false;
		talk->count -= length;
		memmove(talk->taken, talk->taken + length, talk->count);
	}
	return true;
}

static void serve(struct talk *talk)
{
	ssize_t count = 1;

	while (count > 0 && !load_relaxed(&talk->rogue->stopping)) {
		if (!is_readable(talk->fd))
			continue;
		must(talk->count < TAKEN_MOST);
		count = recv(talk->fd, talk->taken + talk->count,
		             TAKEN_MOST - talk->count, 0);
		if (count > 0)
			talk->count += (size_t)count;
		if (count > 0 && !answer_all(talk))
			return;
	}
}

static void *thread_main(void *arg)
{
	struct rogue *rogue = arg;
	struct talk *talk = calloc(1, sizeof(*talk));

	must(talk);
	while (!load_relaxed(&rogue->stopping)) {
		if (!is_readable(rogue->listener))
			continue;
		*talk = (struct talk){ .rogue = rogue };
		talk->fd = accept4(rogue->listener, NULL, NULL, SOCK_CLOEXEC);
		must(talk->fd >= 0);
		serve(talk);
		close(talk->fd);
	}
	free(talk);
	return NULL;
}

void rogue_open(struct rogue *rogue)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t count = sizeof(address);

	memset(rogue, 0, sizeof(*rogue));
	rogue->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(rogue->listener >= 0);
	must(bind(rogue->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(listen(rogue->listener, 16) == 0);
	must(getsockname(rogue->listener, (struct sockaddr *)&address, &count) == 0);
	rogue->port = ntohs(address.sin_port);
	must(pthread_create(&rogue->thread, NULL, thread_main, rogue) == 0);
}

void rogue_close(struct rogue *rogue)
{
	store_relaxed(&rogue->stopping, true);
	must(pthread_join(rogue->thread, NULL) == 0);
	close(rogue->listener);
}

void rogue_say(struct rogue *rogue, enum rogue_to to, const char *text)
{
	store_release(&rogue->says[to], text);
}

void rogue_hang_up(struct rogue *rogue, bool hangs_up)
{
	store_relaxed(&rogue->hangs_up, hangs_up);
}
