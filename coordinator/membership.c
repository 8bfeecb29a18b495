/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * membership.c -- carries out what engine/member.h orders.
 *
 * Threads   As membership.h says.
 */
#include "coordinator/membership.h"

#include <string.h>

void membership_init(struct membership *membership,
                     const struct membership_config *config, mono now)
{
	membership->group_len = (uint32_t)strlen(config->group);
	membership->beat.node_len = (uint32_t)strlen(config->node);
	memcpy(membership->group, config->group, membership->group_len);
	memcpy(membership->node, config->node, membership->beat.node_len);
	membership->beat.node = membership->node;
	membership->beat.settings = config->settings;
	membership->op = (struct store_op){ .verb = STORE_BEAT,
		                            .key = membership->group,
		                            .key_len = membership->group_len,
		                            .beat = &membership->beat };
	membership->call.op = &membership->op;
	member_init(&membership->member, &config->terms, config->incarnation, now);
}

enum member_news membership_hear(struct membership *membership, mono now)
{
	struct member *member = &membership->member;
	uint64_t seq = membership->beat.report.seq;

	membership->with_store = false;
	membership->failed = membership->call.result;
	if (membership->call.result == STORE_DONE)
		return member_hear(member, now, seq, &membership->beat.grant);
	member_lost(member, now, seq);
	return MEMBER_SAME;
}

bool membership_send(struct membership *membership, mono now,
                     const struct member_facts *facts)
{
	struct member *member = &membership->member;
	const struct store_client *client = membership->client;

	member_notice(member, facts);
	if (membership->with_store || !member_wants_to_beat(member, now))
		return false; /* MEMBERSHIP-1 */
	membership->beat.report = member_report(member, now, facts);
	membership->call.due = member_gives_up(member);
	membership->with_store = true;
	if (client->desk) {
		client->store->ops->begin(client, &membership->call);
		return false;
	}
	membership->call.result =
	    store_run(client->store, &membership->op, /* patient= */ true);
	return true;
}
