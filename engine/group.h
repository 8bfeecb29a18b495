/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * group.h -- one ceiling for all nodes that share a backend: the store's side.
 *
 * The nodes of a group beat: each reports to the store what it has in flight, and is
 * granted a share of the group's limit L.  A node lets at most its share in flight.
 *
 *     report (name, incarnation, seq, applied, held, in flight, ...)  ->  beat
 *     beat   ->  grant (share, generation, epoch, limit, ...)
 *
 * The store keeps a struct group and a struct group_member for each node, and calls for
 * one report, in one atomic step and in this order:
 *
 *     group_begin(group, settings, report, now, forgot)  also of a group that is new
 *     while the member with the least .beat, but for one that is the reporter
 *     (group_is_reporter), has expired, GROUP_EVICT_MOST times:
 *             group_remove(group, it); the member at .position = group->members, if any
 *             other, gets the position of the one removed
 *     group_begin again, if it said GROUP_DISAGREES and no member is left
 *     group_beat(group, the member of that name or a zeroed one, report, next)
 *
 * What a member is reserved is what it may have in flight: the largest share that it was
 * granted and has not exchanged for a later one, and what it has reported in flight.  The
 * sum of these never grows beyond L, because a grant is at most what the others leave.
 *
 *     L    |  reserved of others  |  free  |  reserved of self  |
 *                                 |<-   grant is at most this ->|
 *
 * Invariants
 *
 *   GROUP-1  group->reserved is the sum of group_reserve over all members, and so are the
 *            other sums.
 *   GROUP-2  A beat leaves the sum of what is reserved at most L, or at most what it was
 *            before the report was read. (H1)
 *   GROUP-3  What is granted counts as reserved until its node has said that it applied
 *            that grant or a later one. (H1)
 *   GROUP-4  A member counts until a node has proven that its lease is over: that a lease
 *            has passed by that node's clock since it heard the number of the member's last
 *            beat, or a later number of the same life. (H1, H8)
 *   GROUP-5  A report whose seq is not above the last one's changes nothing.  One whose seq is
 *            below is refused: it is late, or of a machine that was put back to an earlier
 *            state, which holds no lease. (H3)
 *   GROUP-6  Of two nodes of one name the second is granted nothing while the first's
 *            lease lasts. (H3)
 *   GROUP-7  When the store may have forgotten, no node is granted more than it has in force
 *            until a node has proven that a lease has passed since the beat that noticed it.
 *            (H3, L12)
 *   GROUP-8  A node that leaves is reserved what it has in flight, until that is 0. (H2)
 *   GROUP-9  A beat does a bounded number of steps on one member, and reads no others. (H7)
 *   GROUP-10  A number is given out once in a life of the group, and later ones are larger.
 *            A life has one lease, and a proof of another life counts as none.  That lease is
 *            the longest of all reports that the life began with or heard while it was quiet, and
 *            of nodes that have been granted something, also of those that are refused. (H1)
 *   GROUP-11  A report of a grant, to a group that never made one, says that the store has
 *            dropped the group: then it is quiet for a lease, too, whatever becomes of that
 *            report. (H1)
 *   GROUP-12  A nudge makes members beat sooner and lower their shares, and changes nothing
 *            else: a store may lose it, repeat it, or send none.  Two of a kind are a 64th of a lease apart, and
 *            with more than 64 members so much longer as there are more.
 *   GROUP-13  Of a node that names the latest grant, no more than it holds is reserved beside
 *            its new share.  So a node that lowers its share by itself frees slots by one report.
 *            (H1)
 *   GROUP-14  A grant above 0 is within what the others' reserves leave of L, also while L falls.
 *            So no call is let in by a share that was granted since L fell, unless at most L are
 *            then in flight.  Who beats first may lose all that L fell by, and gets its part when
 *            the others have given theirs (spec/decisions/0035).  (H1)
 *   GROUP-15  Shares are parts of .parted, which is L, or where GROUP_SUM lowers L, what L falls to
 *            a quarter of a lease later.  Nodes that beat so often have given their parts by then,
 *            each no more than its own, and L takes nothing from them that it must give back.
 *   GROUP-16  Within a lease of a fall, .parted rises by a sixth, or above what it was before it fell,
 *            or not at all; but at once where there are fewer slots than members.  Busy slots
 *            rise and fall by chance, and the shares need not follow.
 *
 * Proofs.  No clock of the store says that a lease is over: clocks are set.  The group counts
 * the beats that it hears, and each answer tells the number given out last.  A node remembers
 * when it heard which, by a clock that is never set, and reports the largest number that it
 * heard at least a lease ago.  So much time has then passed since that number was given out, and
 * since all beats of lower numbers were sent:
 *
 *     member   sends .... fenced ............ its calls have ended
 *     store        number 7 ... number 8
 *     another                     hears 8 |---- lease ----| reports "8 is over": so is 7
 *
 * A proof stays true, so it may be late, doubled and out of order.  A life begins when the store
 * may have forgotten, as it may give numbers out again, and when the lease becomes another one:
 * when the group has other settings, or hears of a longer lease.  An old copy of the store has the
 * settings of its time, while the nodes that it refuses have shares under a longer lease.  The life
 * that begins so is quiet.  A node that was never granted anything has nothing to wait for, so one
 * with a wrong setting holds no node up.
 *
 * Clocks.  The group follows the store's clock, also when it is set back.  What happened at an
 * instant that is yet to come counts as long ago: unsigned differences wrap.  Only .generation
 * never falls.  So a step of the clock ends a pause early, and nothing waits until the clock is
 * again where it was.
 *
 * Nudges.  A member beats now and then, and hears of others only then.  So a beat may nudge
 * the others, to beat at once:
 *
 *     GROUP_GIVE   somebody has come to lack slots: members that have more than they would
 *                  get now lower their shares, and report
 *     GROUP_TAKE   slots have become free: members that lack some are to ask for them
 *
 * A slot more or less, as goes round where a limit does not divide, is worth no nudge.
 *
 * Threads   Pure: any, on different groups.
 * Limits    A store that drops a group whose members have shares gives these away, if a node
 *           that was never granted anything is the first to beat then: so a store drops none
 *           for a day, by its own clock.  A node that lets calls in while it is fenced may be
 *           granted as many when it comes back.  Of a group that was forgotten the nodes
 *           that beat while it is quiet say how long a lease is: a longer one, of nodes none of which
 *           beats so soon, is not known.  The time for which all nodes were dead proves
 *           nothing: the first that comes waits for a lease.  A fleet of which no node lives for
 *           a lease after its first answer proves nothing at all: what is reserved stays so
 *           (spec/decisions/0024).
 *           Two copies of one machine that run at once, of one life, count as one node: each
 *           may be told the share of the other.
 *           GROUP_MEMBERS_MAX members.  A share is at most GROUP_SLOTS_MAX.  What a node
 *           that is dead or stopped has at the backend must end within its abort time
 *           (engine/member.h); GROUP-4 frees its slots then.
 */
#ifndef ENGINE_GROUP_H
#define ENGINE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#define GROUP_SLOTS_MAX 4194303   /* 2^22 - 1 */
#define GROUP_MEMBERS_MAX 1048576 /* 2^20 */
#define GROUP_WEIGHT_MAX 1024
/* Members that a beat removes.  Of D that died at once the last is removed (D / 16 - 5) eager times
 * after the first, if one node lives and wants their slots: tests/unit/mass_death_test.c. */
#define GROUP_EVICT_MOST 16
#define GROUP_BUSY_ONE 256 /* parts of a slot, in which busy is told */
#define GROUP_TIME_MAX_US UINT64_C(86400000000) /* of a setting: a day */

/* Where L comes from. */
enum group_law {
	GROUP_FIXED,  /* settings->ceiling */
	GROUP_SUM,    /* what all keep busy at the knee of the backend, and some more */
	GROUP_MEDIAN, /* the lower median of the members' estimates */
	GROUP_MIN,    /* the least of them */
};

/* How L is parted. */
enum group_parts {
	GROUP_BY_DEMAND, /* a node that asks for less leaves the rest to others */
	GROUP_EQUAL,     /* by weight alone */
};

/* The same for all members, or the beat is refused.  Numbers are below 2^53. */
struct group_settings {
	uint64_t law;
	uint64_t parts;
	uint64_t start;   /* L until something is known; at least 1 */
	uint64_t floor;   /* L is never less; at least 1 */
	uint64_t ceiling; /* L is never more */
	uint64_t lease_us;
	uint64_t hold_us;   /* a share that rose is not taken away sooner, for others */
	uint64_t rotate_us; /* how long a slot is a node's, where there are too few */
	uint64_t probe_us;  /* how often the backend is probed (GROUP_SUM); 0: never */
};
#define GROUP_SETTINGS_WORDS 9

/* Estimates as they are counted: exact up to 31, then rounded down to 16 steps an
 * octave. */
#define GROUP_BUCKETS 304

/* Words below 2^53; all zero when new. */
struct group {
	struct group_settings settings; /* of the member that was first */
	uint64_t now_us;                /* of the latest beat: may be set back */
	uint64_t epoch;    /* when the store may have forgotten last, as it was told */
	uint64_t life;     /* unlike any other's; 0: it is new */
	uint64_t lasts_us; /* the lease of the life: the longest that a node may have */
	uint64_t beats;    /* the number given out last */
	uint64_t
	    over; /* the largest number that a lease has passed since, as was proven */
	uint64_t quiet;      /* nothing more is granted until over reaches it */
	uint64_t generation; /* of the last grant to any member */
	uint64_t limit;      /* L */
	uint64_t parted;     /* L, or what it is about to fall to: GROUP-15 */
	uint64_t lowered_us; /* when .parted last fell; GROUP_SUM */
	uint64_t joined_us;  /* when the last member came */
	uint64_t members;
	uint64_t reserved;
	uint64_t weights; /* of those that do not leave */
	uint64_t busy;
	uint64_t limited;   /* members that refused something for want of share */
	uint64_t hungry;    /* weights of those that would take more than they say */
	uint64_t claimed;   /* by those that are not hungry */
	uint64_t lacking;   /* slots that members should have and have not */
	uint64_t in_flight; /* as reported */
	uint64_t nudge;     /* GROUP_GIVE, GROUP_TAKE, or both: by the last beat */
	uint64_t
	    wanting; /* 1: somebody has come to lack, and GROUP_GIVE is not said yet */
	uint64_t give_us; /* when GROUP_GIVE was said last */
	uint64_t take_us; /* the same, GROUP_TAKE */
	uint64_t highest; /* .parted before it fell: GROUP-16 */
};
#define GROUP_WORDS (GROUP_SETTINGS_WORDS + 26)

enum group_nudges {
	GROUP_GIVE = 1,
	GROUP_TAKE = 2,
};

/* A nudge: the same for all members; see group_nudge. */
struct group_nudge {
	uint64_t whom; /* GROUP_GIVE, GROUP_TAKE or both; 0: there is no nudge */
	/* A member that refuses calls would get slots * weight / weights.  0 weights: no
	 * member refuses any. */
	uint64_t slots;
	uint64_t weights;
};
#define GROUP_NUDGE_WORDS 3

/* Members that have an estimate of each size; only of GROUP_MEDIAN and GROUP_MIN. */
struct group_estimates {
	uint32_t members[GROUP_BUCKETS];
};

/* Words below 2^53; all zero: a node of which nothing is known. */
struct group_member {
	uint64_t incarnation; /* 0: there is none */
	uint64_t position;    /* 0 to group->members - 1, no two the same */
	uint64_t seq;
	uint64_t beat;  /* the number of the last */
	uint64_t share; /* what it was granted last */
	uint64_t generation;
	uint64_t high; /* the most that it was granted since what it has applied */
	uint64_t in_flight;
	uint64_t raised_us; /* when its share last rose */
	uint64_t weight;    /* 0: it leaves */
	uint64_t busy;
	uint64_t estimate; /* 1 + its bucket; 0: none */
	uint64_t limited;  /* 1 or 0 */
	uint64_t hungry;   /* its weight, or 0 */
	uint64_t claim;    /* 0 if hungry */
	uint64_t lacks;
};
#define GROUP_MEMBER_WORDS 16

struct group_report {
	uint64_t incarnation; /* 1 to 2^53 - 1: another one in each life of a node */
	uint64_t seq;         /* 1 and up in each life */
	uint64_t epoch;       /* of the grant that it has applied; 0, 0: of none */
	uint64_t generation;
	uint64_t held;      /* the share in force at the node; fenced: 0 */
	uint64_t in_flight; /* read in one step with held */
	uint64_t weight;    /* 1 to GROUP_WEIGHT_MAX */
	uint64_t
	    demand; /* slots that it would have had in flight, averaged over time */
	uint64_t
	    busy; /* GROUP_SUM: what it keeps busy at the knee, in parts of a slot */
	uint64_t estimate; /* GROUP_MEDIAN, GROUP_MIN: its own limit; 0: none */
	uint64_t limited;  /* 1: it has refused something for want of share */
	uint64_t leaves;   /* 1: its share is 0 and stays so */
	uint64_t life;     /* of the last answer; 0: none */
	uint64_t
	    over; /* of that life: the node heard this number a lease ago; 0: none */
};
#define GROUP_REPORT_WORDS 14

enum group_result {
	GROUP_GRANTED,
	GROUP_STALE, /* the last report again: what was granted is told again */
	GROUP_GONE,  /* the node has left: its member is to be removed */
	GROUP_NAMESAKE, /* another node of that name lives, or an earlier state of it reports,
	                  * until .next is over */
	GROUP_DISAGREES, /* the group has other settings */
	GROUP_FULL,
	GROUP_WRONG, /* the report is not one */
};

struct group_grant {
	uint64_t result;
	uint64_t share;
	uint64_t generation;
	uint64_t epoch;
	uint64_t
	    target; /* what its share would be if all was free; above share: it lacks */
	uint64_t limit; /* L */
	uint64_t members;
	uint64_t in_flight; /* of the group, as reported */
	uint64_t lacking;   /* of the group */
	uint64_t life;      /* of these numbers */
	uint64_t
	    beat; /* the number given out last: where it is granted, to this beat */
	uint64_t
	    next; /* when this is over, asking again may help: a namesake's last beat, a
	                   * quiet time; if it lacks or was limited, the least of the others'
	                   * last beats; 0: it is not known */
	uint64_t lease_us; /* of the life */
	uint64_t probe_us; /* until the next probe; 0: there is none */
	uint64_t probe;    /* its number */
};
#define GROUP_GRANT_WORDS 15

/* False: there can be no such group. */
bool group_settings_valid(const struct group_settings *settings);
bool group_report_valid(const struct group_report *report);

/*
 * The group at now, under the settings that a valid report came with, and with what that
 * proves.  forgot_us: when the store may have forgotten last, 0 if never.  GROUP_GRANTED: go on.
 */
enum group_result group_begin(struct group *group,
                              const struct group_settings *settings,
                              const struct group_report *report, uint64_t now_us,
                              uint64_t forgot_us);
/* The answer to a node that group_begin has refused. */
struct group_grant group_refusal(const struct group *group, enum group_result result);

/* Its lease is over. */
bool group_expired(const struct group *group, const struct group_member *member);

/* The member of the reporter's name is the node that reports, in no earlier state: so it is none
 * of the dead, though its lease is over. */
bool group_is_reporter(const struct group_member *member,
                       const struct group_report *report);

/* The member's words are free afterwards. */
void group_remove(struct group *group, struct group_estimates *estimates,
                  const struct group_member *member);

/*
 * What the report comes to.  *self: the member of the node's name, zeroed if there is none.
 * next: the least .beat of the other members, 0 if there is none.  estimates may
 * be NULL where the law needs none.  GROUP_GONE: remove *self, if it was there.  *self is
 * written for GROUP_GRANTED alone; if .incarnation was 0 it is a new member.
 */
struct group_grant group_beat(struct group *group, struct group_estimates *estimates,
                              struct group_member *self,
                              const struct group_report *report, uint64_t next);

/* The nudge that the group's latest beat sends to all members. */
struct group_nudge group_nudge(const struct group *group);

/* What a member may have in flight. */
uint64_t group_reserve(const struct group_member *member);

#endif
