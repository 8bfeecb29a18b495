/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * rogue.h -- a Redis server that greets politely, and then says whatever the test wants.
 *
 * It serves one connection at a time, on a port of loopback, on a thread of its own.
 * What it says to a call is a text in which %n stands for the call's nonce, a string, and
 * %t for the time.
 *
 * Threads   rogue_say: any.
 */
#ifndef TESTS_SUPPORT_ROGUE_H
#define TESTS_SUPPORT_ROGUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What an honest server says to a call of one step, of a key that is new. */
#define ROGUE_HONEST "*3\r\n%n:%t\r\n$0\r\n\r\n"

enum rogue_to {
	ROGUE_INFO,
	ROGUE_GENERATION,
	ROGUE_CALL,
	ROGUE_SLOTS,    /* CLUSTER SLOTS */
	ROGUE_SENTINEL, /* SENTINEL GET-MASTER-ADDR-BY-NAME */
	ROGUE_TO_COUNT,
};

struct rogue {
	uint16_t port;
	int listener;
	pthread_t thread;
	_Atomic bool stopping;
	const char *_Atomic says[ROGUE_TO_COUNT];
	_Atomic bool hangs_up; /* after what it said to a call */
};

void rogue_open(struct rogue *rogue);
void rogue_close(struct rogue *rogue);

/* NULL: as an honest one does.  The text stays where it is. */
void rogue_say(struct rogue *rogue, enum rogue_to to, const char *text);
void rogue_hang_up(struct rogue *rogue, bool hangs_up);

#endif
