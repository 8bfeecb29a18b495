/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * beats.h -- fleets by lot that beat, for what must do as stores/groups.c does.
 *
 * Nodes join, beat, lose answers, repeat themselves, fall silent, come back in another life or
 * under another's name, leave, and say what is not so; the clock stands, runs, jumps and goes
 * back; the store may have forgotten.  Names are of any bytes: separators, zeros, the longest.
 *
 *     beats_open -> { beats_draw -> the store under test, beats_serve -> beats_hear }
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_BEATS_H
#define TESTS_SUPPORT_BEATS_H

#include "sim/random.h"
#include "stores/groups.h"

#define BEATS_GROUPS 3
#define BEATS_NODES 24

struct beats_name {
	uint8_t bytes[STORE_NODE_MAX];
	uint32_t len;
};

struct beats_node {
	struct group_report last;
	uint64_t share; /* that it has applied */
	uint64_t life;  /* of the numbers that it was told, and the last of them */
	uint64_t beat;
	uint64_t silent_until_us;
};

struct beats_group {
	struct beats_name name;
	struct group_settings settings;
	struct beats_node nodes[BEATS_NODES];
	uint64_t nodes_used;
	bool is_shy; /* its nodes prove seldom that leases are over, and then of all */
	bool
	    is_idle; /* its nodes keep nothing busy: L falls to a slot for each of them */
};

/* How often each result came, and more that must have happened. */
struct beats_tally {
	uint64_t beats;
	uint64_t results[GROUP_WRONG + 1];
	uint64_t quiet;
	uint64_t lowered; /* L fell */
	uint64_t evicted;
	uint64_t crowds;  /* as many were evicted as a beat may */
	uint64_t rotated; /* a share went to another without anybody's asking */
	uint64_t laws[GROUP_MIN + 1];
	uint64_t backward;
	uint64_t gives, takes; /* nudges */
};

struct beats {
	struct chance chance;
	uint64_t seed;
	uint64_t step;
	uint64_t now_us;
	uint64_t forgot_us;
	uint64_t set_back_us; /* so far is the clock behind; 0: it is right */
	uint64_t lease_us;    /* of all groups, the least */
	struct groups *pattern;
	struct beats_name nodes[BEATS_NODES]; /* the same names in all groups */
	struct beats_group groups[BEATS_GROUPS];
	struct beats_tally *tally;

	/* The beat that was drawn. */
	struct beats_group *group;
	size_t node;
	struct store_beat beat;
	struct group_nudge nudge; /* of the pattern's */
};

/* A report of a test's node: of a group of the median, of which each has an equal part. */
#define BEATS_LEASE GALE_SECONDS(2)
#define BEATS_SHARE 10 /* of a node alone */

struct beats_said {
	uint64_t incarnation, seq, generation, held, life, over;
};

struct store_beat beats_say(const struct beats *beats, size_t node,
                            const struct beats_said *said);

void beats_open(struct beats *beats, uint64_t seed, uint64_t now_us,
                struct beats_tally *tally);
void beats_close(struct beats *beats);

/* The next beat, and when it comes. */
void beats_draw(struct beats *beats);
/* What the pattern makes of it: beats->beat.grant. */
void beats_serve(struct beats *beats);
/* The node hears it, or does not. */
void beats_hear(struct beats *beats);

/* Of the pattern, as it is now.  NULL: there is none. */
const struct group *beats_group(const struct beats *beats);
const struct group_estimates *beats_estimates(const struct beats *beats);
const struct group_member *beats_member(const struct beats *beats, size_t node);

/* All that must happen has. */
bool beats_tell_something(const struct beats_tally *tally);
void beats_print(const struct beats_tally *tally);

#endif
