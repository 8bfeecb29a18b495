/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* beats.c -- draws what is likely to matter: full groups, short leases, few slots; and a group that
 * is as most are, where little changes. */
#include "tests/support/beats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/memory.h"
#include "tests/support/must.h"

#define WORD_MAX ((UINT64_C(1) << 53) - 1)
#define STEADY_NODES 6
#define STEADY_ODDS 10 /* so much seldomer does something odd happen there */

/* ---- Names ----------------------------------------------------------------------- */

static void name(struct beats_name *name, const char *bytes, size_t len)
{
	memcpy(name->bytes, bytes, len);
	name->len = (uint32_t)len;
}

/* Some sort as what begins them, some have what other tongues part words with. */
static void name_nodes(struct beats *b)
{
	static const struct {
		const char *bytes;
		size_t len;
	} odd[] = {
		{ "a", 1 },     { "a\0", 2 },      { "a b", 3 }, { "a:b", 3 },
		{ "{b00}", 5 }, { "}{", 2 },       { "\n", 1 },  { "\\x", 2 },
		{ "'\"$1", 4 }, { "\xff\xfe", 2 }, { "p0", 2 },
	};
	size_t count = sizeof(odd) / sizeof(odd[0]);

	for (size_t i = 0; i < BEATS_NODES; i++) {
		struct beats_name *out = &b->nodes[i];

		if (i < count) {
			name(out, odd[i].bytes, odd[i].len);
			continue;
		}
		out->len = i == count ? STORE_NODE_MAX
		                      : (uint32_t)chance_between(&b->chance, 3, 40);
		for (uint32_t at = 0; at < out->len; at++)
			out->bytes[at] = (uint8_t)chance_next(&b->chance);
	}
}

static void name_groups(struct beats *b)
{
	static const char *const odd[BEATS_GROUPS] = { "g", "g:h {\n}", "group:g" };

	for (size_t i = 0; i < BEATS_GROUPS; i++)
		name(&b->groups[i].name, odd[i], strlen(odd[i]));
	b->groups[0].name.bytes[b->groups[0].name.len++] = '\0';
}

/* ---- Settings -------------------------------------------------------------------- */

static void draw_settings(struct beats *b, struct group_settings *s)
{
	struct chance *c = &b->chance;
	bool few = chance_one_in(c, 2);

	*s = (struct group_settings){
		.law = chance_below(c, GROUP_MIN + 1),
		.parts = chance_below(c, GROUP_EQUAL + 1),
		.ceiling =
		    few ? chance_between(c, 1, 12) : chance_size(c, GROUP_SLOTS_MAX),
		.lease_us = chance_between(c, b->lease_us, 3 * b->lease_us),
		.hold_us = chance_one_in(c, 2) ? 0 : chance_below(c, 3000000),
		.rotate_us = chance_between(c, 1, 5000000),
		.probe_us = chance_one_in(c, 2) ? 0 : chance_size(c, GROUP_TIME_MAX_US),
	};
	s->floor = chance_one_in(c, 2) ? 1 : chance_between(c, 1, s->ceiling);
	s->start = chance_between(c, s->floor, s->ceiling);
	must(group_settings_valid(s));
}

static bool is_steady(const struct beats *b, const struct beats_group *group)
{
	return group == &b->groups[0];
}

/* Shares are large, so that a part of one is some slots, and move within hold times. */
static void draw_steady_group(struct beats *b, struct beats_group *group)
{
	struct chance *c = &b->chance;
	struct group_settings *s = &group->settings;

	s->law = chance_between(c, GROUP_SUM, GROUP_MIN);
	s->parts = GROUP_BY_DEMAND;
	s->ceiling = chance_between(c, 100, 1000);
	s->floor = 1;
	s->start = chance_between(c, 10, 100);
	s->hold_us = chance_one_in(c, 2) ? s->lease_us : s->lease_us / 4;
	group->nodes_used = chance_between(c, 1, STEADY_NODES);
	group->is_shy = false;
	group->is_idle = chance_one_in(c, 3);
	if (!group->is_idle)
		return;
	s->law = GROUP_SUM;
	s->start = chance_between(c, 10, BEATS_NODES);
	group->nodes_used = BEATS_NODES;
}

static void draw_group(struct beats *b, struct beats_group *group)
{
	draw_settings(b, &group->settings);
	group->nodes_used = chance_one_in(&b->chance, 3)
	                        ? chance_between(&b->chance, 1, 3)
	                        : BEATS_NODES;
	group->is_shy = chance_one_in(&b->chance, 3);
	memset(group->nodes, 0, sizeof(group->nodes));
	if (is_steady(b, group))
		draw_steady_group(b, group);
}

void beats_open(struct beats *b, uint64_t seed, uint64_t now_us,
                struct beats_tally *tally)
{
	*b = (struct beats){
		.chance = { seed }, .seed = seed, .now_us = now_us, .tally = tally
	};
	b->lease_us = chance_one_in(&b->chance, 4)
	                  ? chance_size(&b->chance, GROUP_TIME_MAX_US / 3)
	                  : chance_between(&b->chance, 1000, 3000000);
	b->pattern = groups_open(memory_default(), UINT64_MAX);
	must(b->pattern);
	name_nodes(b);
	name_groups(b);
	for (size_t i = 0; i < BEATS_GROUPS; i++)
		draw_group(b, &b->groups[i]);
}

struct store_beat beats_say(const struct beats *b, size_t node,
                            const struct beats_said *said)
{
	return (struct store_beat){
		.node = b->nodes[node].bytes,
		.node_len = b->nodes[node].len,
		.settings = { .law = GROUP_MEDIAN,
		              .parts = GROUP_EQUAL,
		              .start = 1,
		              .floor = 1,
		              .ceiling = 100,
		              .lease_us = BEATS_LEASE,
		              .rotate_us = GALE_SECONDS(1) },
		.report = { .incarnation = said->incarnation,
		            .seq = said->seq,
		            .generation = said->generation,
		            .held = said->held,
		            .weight = 1,
		            .estimate = BEATS_SHARE,
		            .limited = 1,
		            .life = said->life,
		            .over = said->over },
	};
}

void beats_close(struct beats *b)
{
	groups_close(b->pattern);
}

/* ---- A beat ---------------------------------------------------------------------- */

static void move_clock(struct beats *b)
{
	struct chance *c = &b->chance;
	uint64_t lease_us = b->groups[chance_below(c, BEATS_GROUPS)].settings.lease_us;

	switch (chance_below(c, 120)) {
	case 0: /* it was set, or nobody beat */
		b->now_us += chance_below(c, 8 * lease_us);
		break;
	case 1: /* to where leases end */
	case 2:
	case 3:
		b->now_us += lease_us;
		break;
	case 4:
	case 5:
	case 6:
		b->now_us -= chance_below(c, lease_us / 2 + 1);
		b->tally->backward++;
		break;
	case 7: /* it was set back by up to an hour; later it is set right */
		if (b->set_back_us > 0) {
			b->now_us += b->set_back_us;
			b->set_back_us = 0;
		} else if (chance_one_in(c, 4)) {
			b->set_back_us = chance_below(c, GALE_HOURS(1));
			b->now_us -= b->set_back_us;
			b->tally->backward++;
		}
		break;
	case 8: /* to where a pause between two nudges ends */
	case 9:
	case 10:
		b->now_us += lease_us / 4096 * chance_between(c, 64, 64 + STEADY_NODES);
		break;
	default:
		if (!chance_one_in(c, 3))
			b->now_us += chance_below(c, lease_us / 16 + 2);
	}
	if (chance_one_in(c, 400))
		b->forgot_us = b->now_us;
	must(b->now_us > 0 && b->now_us <= INSTANT_MAX_US);
}

static void draw_numbers(struct beats *b, const struct beats_node *node,
                         struct group_report *r)
{
	struct chance *c = &b->chance;
	uint64_t most = node->share < GROUP_SLOTS_MAX / 4 - 3 ? node->share + 3
	                                                      : GROUP_SLOTS_MAX / 4;

	r->held = chance_one_in(c, 20) ? chance_below(c, most) : node->share;
	r->in_flight = chance_one_in(c, 3) ? chance_below(c, most) : r->held;
	r->weight = chance_one_in(c, 2) ? 1 : chance_between(c, 1, GROUP_WEIGHT_MAX);
	r->demand = chance_one_in(c, 2) ? chance_below(c, 4 * most)
	                                : chance_size(c, GROUP_SLOTS_MAX);
	r->busy = chance_one_in(c, 4)
	              ? chance_size(c, (uint64_t)GROUP_SLOTS_MAX * GROUP_BUSY_ONE)
	              : chance_below(c, 64 * GROUP_BUSY_ONE);
	r->estimate = chance_one_in(c, 8) ? 0 : chance_size(c, GROUP_SLOTS_MAX);
	r->limited = chance_one_in(c, 2);
}

/* So much more or less than before; what is first told is anything up to most. */
static uint64_t draw_near(struct chance *c, uint64_t before, uint64_t by, uint64_t most)
{
	uint64_t up = before + chance_below(c, 2 * by + 1);

	return before == 0 ? chance_below(c, most) : up > by ? up - by : 0;
}

static void draw_steady_numbers(struct beats *b, const struct beats_node *node,
                                struct group_report *r)
{
	struct chance *c = &b->chance;

	r->held = node->share;
	r->in_flight = chance_below(c, node->share + 1);
	r->weight = 1 + b->node % 3;
	r->demand = draw_near(c, r->demand, 2, 40);
	r->busy = b->group->is_idle
	              ? 0
	              : draw_near(c, r->busy, 2 * GROUP_BUSY_ONE, 40 * GROUP_BUSY_ONE);
	r->estimate = draw_near(c, r->estimate, 3, 60);
	r->limited ^= chance_one_in(c, 8);
}

/* What it says of numbers that are over. */
static void draw_proof(struct beats *b, const struct beats_node *node,
                       struct group_report *r)
{
	struct chance *c = &b->chance;

	r->life = chance_one_in(c, 25) ? chance_size(c, WORD_MAX) : node->life;
	r->over = 0;
	if (b->group->is_shy && beats_group(b) && chance_one_in(c, 60)) {
		r->life = beats_group(b)->life;
		r->over = beats_group(b)->beats;
	} else if (!b->group->is_shy && r->life == node->life && chance_one_in(c, 2))
		r->over =
		    node->beat - chance_below(c, node->beat < 40 ? node->beat + 1 : 40);
	if (chance_one_in(c, 100))
		r->over = chance_size(c, WORD_MAX);
}

/* Of a node that was there, or is new. */
static struct group_report draw_report(struct beats *b, struct beats_node *node)
{
	struct chance *c = &b->chance;
	struct group_report r = node->last;
	uint64_t odds = is_steady(b, b->group) ? STEADY_ODDS : 1;

	if (is_steady(b, b->group))
		draw_steady_numbers(b, node, &r);
	else
		draw_numbers(b, node, &r);
	draw_proof(b, node, &r);
	r.leaves =
	    chance_one_in(c, 30 * odds) || (node->last.leaves && !chance_one_in(c, 8));
	if (r.leaves && chance_one_in(c, 2))
		r.in_flight = r.held = 0;
	r.seq++;
	if (r.incarnation == 0 ||
	    chance_one_in(c, 40 * odds)) { /* another life, or a namesake */
		r.incarnation =
		    chance_between(c, 1, chance_one_in(c, 2) ? 4 : WORD_MAX);
		r.seq = chance_between(c, 1, 3);
		r.epoch = r.generation = 0;
		r.leaves = 0;
	}
	if (chance_one_in(c, 25 * odds))
		r.seq = chance_between(c, 1, r.seq);
	if (chance_one_in(c, 25 * odds))
		r.generation = chance_below(c, 2) * chance_size(c, WORD_MAX);
	return r;
}

void beats_draw(struct beats *b)
{
	struct chance *c = &b->chance;
	struct beats_node *node;

	b->step++;
	move_clock(b);
	b->group = &b->groups[chance_below(c, BEATS_GROUPS)];
	if (chance_one_in(c, 300))
		draw_group(b, b->group);
	do {
		b->node = chance_below(c, b->group->nodes_used);
		node = &b->group->nodes[b->node];
	} while (node->silent_until_us > b->now_us && !chance_one_in(c, 4));
	if (chance_one_in(c, 60))
		node->silent_until_us =
		    b->now_us + chance_below(c, 3 * b->group->settings.lease_us);
	b->beat = (struct store_beat){ .node = b->nodes[b->node].bytes,
		                       .node_len = b->nodes[b->node].len,
		                       .settings = b->group->settings,
		                       .report = draw_report(b, node) };
	if (chance_one_in(c, 100))
		draw_settings(b, &b->beat.settings);
	must(group_report_valid(&b->beat.report));
}

static void note(struct beats *b, const struct group *before)
{
	const struct group *after = beats_group(b);
	struct beats_tally *tally = b->tally;

	tally->beats++;
	tally->results[b->beat.grant.result]++;
	tally->gives += (b->nudge.whom & GROUP_GIVE) != 0;
	tally->takes += (b->nudge.whom & GROUP_TAKE) != 0;
	tally->quiet += after->over < after->quiet;
	tally->lowered += after->limit < before->limit;
	tally->evicted += after->members + 1 < before->members;
	tally->crowds += after->members + GROUP_EVICT_MOST <= before->members;
	tally->laws[after->settings.law] += b->beat.grant.result == GROUP_GRANTED;
	tally->rotated += b->beat.grant.result == GROUP_GRANTED &&
	                  b->beat.grant.share < b->group->nodes[b->node].share;
}

void beats_serve(struct beats *b)
{
	const struct group *had = beats_group(b);
	struct group before = had ? *had : (struct group){ 0 };

	/* Nothing is swept, and there is room: no instant matters. */
	must(groups_beat(b->pattern, b->group->name.bytes, b->group->name.len, &b->beat,
	                 b->now_us, /* at= */ (mono){ 0 }, b->forgot_us,
	                 &b->nudge) == STORE_DONE);
	note(b, &before);
}

void beats_hear(struct beats *b)
{
	struct beats_node *node = &b->group->nodes[b->node];
	const struct group_grant *grant = &b->beat.grant;

	node->last = b->beat.report;
	if (chance_one_in(&b->chance, 6)) /* it is lost */
		return;
	node->life = grant->life;
	node->beat = grant->beat;
	if (grant->result == GROUP_GRANTED || grant->result == GROUP_STALE) {
		node->last.epoch = grant->epoch;
		node->last.generation = grant->generation;
		node->share = grant->share;
	} else if (grant->result == GROUP_GONE) {
		memset(node, 0, sizeof(*node));
	}
}

/* ---- To look at ------------------------------------------------------------------ */

const struct group *beats_group(const struct beats *b)
{
	return groups_find(b->pattern, b->group->name.bytes, b->group->name.len);
}

const struct group_estimates *beats_estimates(const struct beats *b)
{
	return groups_estimates(b->pattern, b->group->name.bytes, b->group->name.len);
}

const struct group_member *beats_member(const struct beats *b, size_t node)
{
	return groups_member(b->pattern, b->group->name.bytes, b->group->name.len,
	                     b->nodes[node].bytes, b->nodes[node].len);
}

bool beats_tell_something(const struct beats_tally *tally)
{
	bool all = tally->quiet && tally->lowered && tally->evicted && tally->crowds &&
	           tally->rotated && tally->backward && tally->gives && tally->takes;

	for (int result = GROUP_GRANTED; result <= GROUP_DISAGREES; result++)
		all &= tally->results[result] > 0;
	for (int law = GROUP_FIXED; law <= GROUP_MIN; law++)
		all &= tally->laws[law] > 0;
	return all;
}

void beats_print(const struct beats_tally *tally)
{
	printf("%" PRIu64 " beats: %" PRIu64 " granted (%" PRIu64 " fixed, %" PRIu64
	       " sum, %" PRIu64 " median, %" PRIu64 " min), %" PRIu64 " stale, %" PRIu64
	       " gone, %" PRIu64 " namesakes, %" PRIu64 " disagree; %" PRIu64
	       " in a quiet time, %" PRIu64 " lowered L, %" PRIu64
	       " took from a share, %" PRIu64 " evicted several and %" PRIu64
	       " as many as they may, %" PRIu64 " steps of the clock back, %" PRIu64
	       " nudges to give and %" PRIu64 " to take\n",
	       tally->beats, tally->results[GROUP_GRANTED], tally->laws[GROUP_FIXED],
	       tally->laws[GROUP_SUM], tally->laws[GROUP_MEDIAN],
	       tally->laws[GROUP_MIN], tally->results[GROUP_STALE],
	       tally->results[GROUP_GONE], tally->results[GROUP_NAMESAKE],
	       tally->results[GROUP_DISAGREES], tally->quiet, tally->lowered,
	       tally->rotated, tally->evicted, tally->crowds, tally->backward,
	       tally->gives, tally->takes);
}
