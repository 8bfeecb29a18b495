/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* server.c -- decode, let the engine change it, encode. */
#define _GNU_SOURCE
#include "sim/server.h"

#include <endian.h>
#include <string.h>

#include "sim/must.h"

#define WORDS_MOST (KEPT_MOST / 8)

static enum remote_code code_of(enum state_err err)
{
	if (err == STATE_OK)
		return REMOTE_DONE;
	return err == STATE_CHANGED ? REMOTE_CHANGED : REMOTE_GARBLED;
}

static void keep(const struct rule *rule, const struct value *value,
                 struct kept *ret_after)
{
	must(value_bytes(rule, value) <= KEPT_MOST);
	ret_after->count = value_encode(rule, value, ret_after->bytes);
	ret_after->expires_us = lease_expires(rule, value->words, &value->ledger);
	ret_after->apart = value->ledger.apart;
}

/* Was that number of the node here before?  Then nothing changes. LEASE-2 */
static bool is_again(const struct ledger *before, const struct ledger *after)
{
	return memcmp(before, after, sizeof(*before)) == 0;
}

/* Does the job change the value? */
static bool changes(const struct remote_job *job, uint64_t now, struct value *value)
{
	const struct ledger before = value->ledger;

	switch (job->verb) {
	case REMOTE_STEP:
		return rule_step(job->rule, value->words, now, job->cost).verdict ==
		       GALE_ALLOW;
	case REMOTE_LEND:
		(void)lease_step(job->rule, value->words, &value->ledger, now,
		                 &job->ask);
		return !is_again(&before, &value->ledger);
	case REMOTE_BACK:
		return lease_give_back(job->rule, value->words, &value->ledger, now,
		                       job->ask.node, job->ask.number, job->tag,
		                       job->units) &&
		       !is_again(&before, &value->ledger);
	default:
		return false;
	}
}

static enum remote_code swap(const struct remote_job *job, const struct kept *before,
                             struct kept *ret_after)
{
	if (before->count != job->was.count ||
	    (before->count > 0 &&
	     memcmp(before->bytes, job->was.bytes, before->count) != 0))
		return REMOTE_MOVED;
	must(job->becomes.count <= KEPT_MOST);
	ret_after->count = job->becomes.count;
	ret_after->expires_us = job->expires_us;
	if (ret_after->count > 0)
		memcpy(ret_after->bytes, job->becomes.bytes, ret_after->count);
	return REMOTE_DONE;
}

static bool is_lease(const struct remote_job *job)
{
	return job->verb == REMOTE_LEND || job->verb == REMOTE_BACK;
}

void server_put_apart(const struct remote_job *job, uint64_t now,
                      const struct kept *before, struct value *value)
{
	uint64_t crowd = ledger_crowd_of(&value->ledger, job->ask.node);

	if (is_lease(job) && crowd != 0 && before->apart.node == job->ask.node &&
	    before->apart.tag.us == crowd && before->apart.out > 0)
		value->ledger.apart = before->apart;
	if (lease_possible(job->rule) &&
	    lease_status(job->rule, value->words, &value->ledger, now, job->ask.node)
	            .units == 0)
		value->ledger.apart = (struct lease_row){ 0 }; /* its window is over */
}

static bool has_crowd(const struct value *value)
{
	return ledger_crowd_of(&value->ledger, 0) != 0;
}

/* How the value was, and the row apart if there is one. */
static struct remote_bytes tell(struct kept *before, const struct lease_row *apart)
{
	size_t count = before->count;

	if (apart->node != 0) {
		must(count + VALUE_ROW_BYTES <= KEPT_MOST);
		value_encode_apart(apart, before->bytes + count);
		count += VALUE_ROW_BYTES;
	}
	return (struct remote_bytes){ before->bytes, count };
}

static enum remote_code step(const struct remote_job *job, uint64_t now,
                             const struct kept *before, struct kept *ret_after,
                             struct lease_row *ret_apart)
{
	uint64_t words[WORDS_MOST];
	struct value value = { .words = words, .room = WORDS_MOST };
	enum remote_code code =
	    code_of(value_decode(job->rule, before->bytes, before->count, &value));
	bool had_crowd;

	if (code != REMOTE_DONE)
		return code;
	server_put_apart(job, now, before, &value);
	*ret_apart = value.ledger.apart;
	(void)lease_turn(job->rule, value.words, &value.ledger, now,
	                 job->reserve_from_us);
	had_crowd = has_crowd(&value);
	if (changes(job, now, &value))
		keep(job->rule, &value, ret_after);
	ret_after->crowd_begins = !had_crowd && has_crowd(&value);
	return code;
}

static bool takes(enum remote_verb verb)
{
	return verb == REMOTE_STEP || verb == REMOTE_LEND || verb == REMOTE_SWAP;
}

struct remote_told server_serve_and_keep(const struct remote_job *job, uint64_t now_us,
                                         struct kept *before, struct kept *ret_after)
{
	struct remote_told told = { .now_us = now_us };
	struct lease_row apart = { 0 };

	*ret_after = *before;
	ret_after->crowd_begins = false;
	if (takes(job->verb) && now_us < job->not_before_us)
		told.code = REMOTE_WAITS;
	else if (job->verb == REMOTE_SWAP)
		told.code = swap(job, before, ret_after);
	else if (job->verb == REMOTE_DROP)
		ret_after->count = 0;
	else if (job->verb != REMOTE_READ)
		told.code = step(job, now_us, before, ret_after, &apart);
	if (told.code == REMOTE_DONE && job->verb != REMOTE_SWAP &&
	    job->verb != REMOTE_DROP)
		told.before = tell(before, &apart);
	return told;
}

static bool is_same(const struct kept *a, const struct kept *b)
{
	return a->count == b->count && a->expires_us == b->expires_us &&
	       memcmp(a->bytes, b->bytes, a->count) == 0;
}

struct remote_told server_serve(const struct remote_job *job, uint64_t now_us,
                                struct kept *before, struct kept *ret_after)
{
	struct remote_told told = server_serve_and_keep(job, now_us, before, ret_after);

	if (!is_same(before, ret_after) && ret_after->expires_us <= now_us)
		ret_after->count = 0; /* RULE-4 */
	return told;
}

static void put_grant(const struct group_grant *grant,
                      uint8_t ret_bytes[REMOTE_GRANT_BYTES])
{
	uint64_t words[GROUP_GRANT_WORDS];

	memcpy(words, grant, sizeof(words));
	for (size_t i = 0; i < GROUP_GRANT_WORDS; i++)
		words[i] = htole64(words[i]);
	memcpy(ret_bytes, words, sizeof(words));
}

struct remote_told server_beat(struct groups *groups, const struct remote_job *job,
                               uint64_t now_us, uint8_t ret_grant[REMOTE_GRANT_BYTES],
                               struct group_nudge *ret_nudge)
{
	struct store_beat beat = *job->beat;
	mono at = { now_us *
		    1000 }; /* a server drops by its clock what it keeps for a day */

	must(job->verb == REMOTE_BEAT);
	/* Members whose time is over are dropped before the beat is served. */
	while (!groups_sweep(groups, at))
		continue;
	must(groups_beat(groups, job->key.bytes, (uint32_t)job->key.count, &beat,
	                 now_us, at, job->forgot_us, ret_nudge) == STORE_DONE);
	put_grant(&beat.grant, ret_grant);
	return (struct remote_told){ .now_us = now_us,
		                     .before = { ret_grant, REMOTE_GRANT_BYTES } };
}
