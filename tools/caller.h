/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * caller.h -- one node's calls at a backend (backend.h), over one connection.
 *
 *	loop:  caller_begin_turn                  the instant that its messages will tell
 *	       enter, caller_call ...             as often as it may
 *	       caller_turn                        sends, waits a moment, tells what has ended
 *
 * The caller tells the backend that it lives, four times in the abort time or more often.  A
 * caller that was stopped for longer finds that its connection is cut: its calls have ended, and
 * those that it had decided on before the stop do not begin any more.
 *
 * Threads   One.
 */
#ifndef TOOLS_CALLER_H
#define TOOLS_CALLER_H

#include "tools/backend.h"

#define CALLER_BATCH 256

struct caller_taker {
	/* The call with that number has ended. */
	void (*ended)(struct caller_taker *self, uint64_t number, enum backend_end end);
};

struct caller {
	int fd;
	uint32_t node;
	uint64_t ping_ns;
	uint64_t sent_ns; /* the last message */
	uint64_t now_ns;  /* when this turn began */
	bool is_over;
	struct caller_taker *taker;
	size_t count;
	struct backend_message batch[CALLER_BATCH];
	size_t filled; /* bytes of replies */
	char replies[CALLER_BATCH * sizeof(struct backend_reply)];
};

/* abort_us: of the backend's terms, or 0.  False: there is no backend. */
bool caller_open(struct caller *caller, const struct backend *backend, uint32_t node,
                 uint64_t abort_us, struct caller_taker *taker);
void caller_close(struct caller *caller);

void caller_begin_turn(struct caller *caller);
/* takes_us: 0: as all calls do. */
void caller_call(struct caller *caller, uint64_t number, uint64_t takes_us);
/* All calls end; each is told when it has. */
void caller_cancel(struct caller *caller);

/* Waits for a reply until that instant, or until it is time to say something.  False: the
 * connection is cut, and all calls that were not told of have ended; the caller is to be
 * closed. */
bool caller_turn(struct caller *caller, uint64_t until_ns);

#endif
