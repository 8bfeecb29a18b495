/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * membership.h -- a guard's place in its fleet: reports go to a store, grants come back.
 *
 * engine/member.h decides; here its orders are carried out.  A beat is one call to the store.
 * The embedded store answers at once, a server later: then the coordinator takes the call
 * from its home and hands it to the membership that it belongs to.
 *
 *     membership_send: report  ->  the store  ->  membership_hear: grant -> news
 *
 * Invariants
 *
 *   MEMBERSHIP-1  While a call is with the store, nothing of it is written. (STORE-8)
 *
 * Threads   The coordinator's, but membership_init: the guard's opener.
 */
#ifndef COORDINATOR_MEMBERSHIP_H
#define COORDINATOR_MEMBERSHIP_H

#include "engine/member.h"
#include "stores/store.h"

struct membership_config {
	const char *group;
	const char *node;
	struct group_settings settings;
	struct member_terms terms;
	uint64_t incarnation;
};

struct membership {
	struct member member;
	const struct store_client *client; /* the coordinator's */
	struct store_call call;
	struct store_op op;
	struct store_beat beat;
	bool with_store; /* a call is */
	enum store_result
	    failed; /* what the last beat came to; STORE_DONE: an answer */
	uint32_t group_len;
	uint8_t group[GALE_NAME_MAX];
	uint8_t node[STORE_NODE_MAX];
};

/* The names are of a valid length. */
void membership_init(struct membership *membership,
                     const struct membership_config *config, mono now);

/* Sends a beat if one is due.  True: it is answered already, as by membership_hear; else it
 * is taken from the client's home after a turn of the store. */
bool membership_send(struct membership *membership, mono now,
                     const struct member_facts *facts);

static inline struct membership *membership_of(struct store_call *call)
{
	return (struct membership *)((char *)call - offsetof(struct membership, call));
}

/* The call is done. */
enum member_news membership_hear(struct membership *membership, mono now);

/* When the member wants a turn: for its fence, and for a beat if the store has none. */
static inline mono membership_due(const struct membership *membership)
{
	const struct member *member = &membership->member;

	if (!membership->with_store)
		return member_due(member);
	return member->is_fenced ? (mono){ UINT64_MAX } : member->fence;
}

#endif
