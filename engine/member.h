/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * member.h -- one ceiling for all nodes that share a backend: a node's side.
 *
 * A node of a group (engine/group.h) beats: it reports, hears what share it is granted,
 * and lets no more in flight.  Each grant is a lease: when the store has not been heard for
 * so long that it may give the share to others, the node fences itself, which means that
 * its share is 0.
 *
 *     sent                                     fenced                       over
 *      |-- (1 - drift) of the lease, less abort --|-- abort, and by the drift --|
 *
 * It is over for others when one of them has proven that (group.h), and each node keeps what it
 * needs for such proofs: when it heard which number, as coarse as a 16th of the lease, and so
 * that it lacks none for longer than from one answer to the next.
 *
 * A step is given what happened, and leaves what is to be done in the member: .share and
 * .is_fenced are what is in force now; member_due says when to call again.
 *
 *     loop   member_turn(now)             the fence, exactly when it is due
 *            member_wants_to_beat(now)    then read the guard's word, member_report, send
 *     later  member_hear(grant) or member_lost()
 *
 * Invariants
 *
 *   MEMBER-1  At most one beat is under way; what comes for another one is dropped. (H5)
 *   MEMBER-2  From `sent + lease * (1 - drift) - abort` of the latest beat that was granted,
 *             .share is 0, unless a later beat has been granted. (H5, L2)
 *   MEMBER-3  A beat that is lost changes neither the share nor the fence. (H5)
 *   MEMBER-4  A report names the grant that was in force when what is in flight was read.
 *             (H4)
 *   MEMBER-5  A grant that comes when its lease is over is not applied.
 *   MEMBER-6  When the fence falls, a beat that is under way is lost: it told the store what
 *             was in force, which a store that has forgotten may grant again. (GROUP-7)
 *
 *   MEMBER-7  Four early beats may follow another at once, and then each waits eager_ns after
 *            the one before.  A nudge makes a beat early, and may lower the share until that
 *            beat is answered: so much a lost, a repeated and a forged one cost.  (GROUP-12)
 *
 *   MEMBER-8  A report says that a number is over only when (1 + drift) of the group's lease has
 *             passed by this node's clock since it heard that number or a later one, in the same
 *             life.  So `now` of member_hear is read after the answer has come: a node that is
 *             stopped between the two would prove what has not passed.  (GROUP-4)
 *
 * Threads   Pure: any, on different members.
 */
#ifndef ENGINE_MEMBER_H
#define ENGINE_MEMBER_H

#include "engine/clock.h"
#include "engine/group.h"

struct member_terms {
	uint64_t beat_ns; /* from one beat to the next */
	uint64_t
	    eager_ns; /* the least from one to another, when something has changed: of all
	                 but four, see MEMBER-7 */
	uint64_t lease_us; /* as in the group's settings */
	uint64_t abort_ns; /* what a stopped node has at the backend ends within this */
	uint64_t hold_ns;  /* a share that rose is not lowered sooner by a nudge */
	uint32_t drift_ppm;
	uint32_t weight;
};

/* When a number was heard. */
struct member_anchor {
	uint64_t beat;
	mono heard;
};
#define MEMBER_ANCHORS 36

/* All of one life, rising in both; the numbers that are over are taken out. */
struct member_past {
	uint64_t life;
	uint64_t lease_us; /* of the group */
	uint64_t over;     /* the largest that is */
	uint32_t count;
	struct member_anchor anchors[MEMBER_ANCHORS];
};

/* What the guard has counted, read in one step with what is in force. */
struct member_facts {
	uint32_t in_flight; /* slots kept by seats included */
	uint32_t demand;
	uint64_t busy;
	uint32_t estimate;
	uint32_t
	    local; /* what it holds while fenced: 0; some slots, if it goes on alone */
	bool limited; /* it refused something for want of share since the last report */
};

struct member {
	struct member_terms terms;
	uint64_t incarnation;
	uint64_t seq;   /* of the last report */
	uint64_t epoch; /* of the grant that is in force; 0, 0: none */
	uint64_t generation;
	uint32_t share;  /* of that grant, or lower since a nudge */
	uint32_t target; /* what the share would be if all was free */
	uint32_t reported_in_flight;
	bool under_way; /* a beat is */
	bool is_fenced; /* or was never granted anything */
	bool leaves;
	bool has_left;
	mono held_until;         /* the share: it has risen */
	mono sent;               /* the last beat */
	mono fence;              /* when the share becomes 0 */
	mono due;                /* the next beat */
	mono calm;               /* by then the beats so far are eager_ns apart */
	struct group_grant told; /* the last answer, and what it said */
	struct member_past past;
};

enum member_news {
	MEMBER_SAME,
	MEMBER_APPLY,   /* .share and .generation have changed: put them in force */
	MEMBER_FENCED,  /* .share is 0: put it in force, and tell the host */
	MEMBER_DROPPED, /* what came was for no beat that is under way, or too late */
	MEMBER_REFUSED, /* .told.result says why; what is in force stays until its fence */
	MEMBER_LEFT,
};

/* False: with such terms nothing could ever be admitted, or a lease would end between two
 * beats. */
bool member_terms_valid(const struct member_terms *terms);

/* It beats as soon as it is turned. */
void member_init(struct member *member, const struct member_terms *terms,
                 uint64_t incarnation, mono now);

/* Whatever is due by itself. */
enum member_news member_turn(struct member *member, mono now);
bool member_wants_to_beat(const struct member *member, mono now);

/* A beat is under way from now on. */
struct group_report member_report(struct member *member, mono now,
                                  const struct member_facts *facts);

/* The answer to the report with that seq, and its failure.  Where the fence is overdue it
 * falls, and the answer is dropped. */
enum member_news member_hear(struct member *member, mono now, uint64_t seq,
                             const struct group_grant *grant);
void member_lost(struct member *member, mono now, uint64_t seq);

/* What may make the next beat an early one: something was refused for want of share, or
 * what is in flight has fallen. */
void member_notice(struct member *member, const struct member_facts *facts);

/* It has reported more in flight than its share is now, or leaves: what ends is to be reported. */
bool member_drains(const struct member *member);

/* The store has nudged all members of the group; facts: as they are now. */
enum member_news member_nudged(struct member *member, mono now,
                               const struct member_facts *facts,
                               const struct group_nudge *nudge);

/* From now on the share is 0, and it leaves when nothing is in flight. */
enum member_news member_leave(struct member *member, mono now);

/* When to turn again, if nothing happens before; a beat that is under way must be lost by
 * member_gives_up. */
mono member_due(const struct member *member);
mono member_gives_up(const struct member *member);

#endif
