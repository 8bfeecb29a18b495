/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * record.h -- what the processes of a fleet tell each other.
 *
 *	controller                       process
 *	         PLAN ------------------>
 *	         <----------- WAITS, at most one
 *	         <----------- READY, or TEXT ... FAILED
 *	         BEGIN ----------------->
 *	         STOP ------------------>      to end early
 *	         <----------- UNITS ... ASKED ... PASSED ... COUNTER ... BUCKET ...
 *	         <----------- DONE
 *
 * Both are on one machine and of one build: records are structs as they are in memory.
 * Each has its place in the order, so that nothing can be missing, doubled or swapped;
 * what a record says is for its reader to judge.
 *
 * Threads   A sender or receiver belongs to one thread.
 */
#ifndef TOOLS_RECORD_H
#define TOOLS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_TEXT_MAX                                                                \
	24 /* bytes; a text without its end goes on in the next record */
#define RECORD_BATCH 512

#define RECORD_KINDS(X)                                                                \
	X(PLAN)  /* what: the process's number; first: the run; last: its clock */     \
	X(BEGIN) /* first: when it begins; last: when it stops */                      \
	X(STOP)  /* first: when it stops instead */                                    \
	X(WAITS) /* the store grants nothing yet */                                    \
	X(READY)                                                                       \
	X(TEXT)                                                                        \
	X(FAILED)  /* the text before it says why */                                   \
	X(UNITS)   /* count of key what, in one of the windows first to last */        \
	X(ASKED)   /* count, in window first, of a demand */                           \
	X(PASSED)  /* first: what was decided before has been sent */                  \
	X(COUNTER) /* what: an enum seen_counter; count: what it is now */             \
	X(BUCKET)  /* what: of the histogram; count: what it is now */                 \
	X(DONE)    /* count: all units that were sent */

enum record_kind {
	RECORD_NONE,
#define X(id) RECORD_##id,
	RECORD_KINDS(X)
#undef X
	    RECORD_KIND_END
};

struct record {
	uint32_t kind;
	uint32_t number; /* from 0, of this sender */
	uint64_t what;
	union {
		struct {
			uint64_t first;
			uint64_t last;
			uint64_t count;
		};
		char text[RECORD_TEXT_MAX];
	};
};

_Static_assert(sizeof(struct record) == 40, "no padding is sent");

/* ---- Sending --------------------------------------------------------------------- */

struct record_out {
	int fd;
	bool broken; /* the receiver is gone; what is put is forgotten */
	uint32_t number;
	size_t count;
	struct record batch[RECORD_BATCH];
};

void record_out_init(struct record_out *out, int fd);

/* Sends a batch when it is full; may wait for the receiver. */
void record_put(struct record_out *out, const struct record *record);
void record_put_text(struct record_out *out, const char *text);
/* Sends what was put; false if the receiver is gone. */
bool record_flush(struct record_out *out);

/* ---- Receiving ------------------------------------------------------------------- */

enum record_got {
	RECORD_IS,       /* *ret_record is set */
	RECORD_NOT_YET,  /* nothing is there, and waiting was not wished */
	RECORD_END,      /* the sender is gone, after a whole record */
	RECORD_NONSENSE, /* this is no record, or not the next one, or a part of one */
};

struct record_in {
	int fd;
	uint32_t number;
	size_t used; /* bytes that were taken, of those that are there */
	size_t filled;
	char bytes[RECORD_BATCH * sizeof(struct record)];
};

void record_in_init(struct record_in *in, int fd);
enum record_got record_get(struct record_in *in, bool wait, struct record *ret_record);

#endif
