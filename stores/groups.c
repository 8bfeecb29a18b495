/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * groups.c -- a table of groups, and of each a table, a row and a heap of its members.
 *
 * Tables are chains from slots, as many as there is room for members.  Hashes are keyed, so
 * that names that collide cannot be chosen.
 */
#include "stores/groups.h"

#include <limits.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/check.h"
#include "runtime/list.h"
#include "runtime/memory.h"
#include "runtime/random.h"

#define SLOTS 4096 /* of groups */
#define FIRST_ROOM 8
#define LOOKS 64 /* at groups, by a sweep, or by a beat that needs room */
#define DROPS_PER_SWEEP 256

struct member {
	struct group_member is;
	uint64_t hash;
	struct member *next; /* in its slot */
	uint32_t place;      /* in the heap */
	uint32_t node_len;
	uint8_t node[];
};

struct kept_group {
	struct group is;
	struct group_estimates *estimates; /* NULL: none were needed yet */
	struct kept_group *next;           /* in its slot */
	struct list place;                 /* among all */
	mono over;                         /* a lease after its last beat */
	struct member **slots;             /* room of them ... */
	struct member **row;               /* ... the members by position ... */
	struct member **heap; /* ... and by the numbers of their last beats */
	uint32_t room;        /* 0, or a power of two */
	uint32_t name_len;
	uint64_t hash;
	uint8_t name[];
};

struct groups {
	struct gale_allocator *allocator;
	uint64_t most; /* GROUPS-3 */
	uint64_t count;
	uint8_t secret[XXH3_SECRET_SIZE_MIN];
	struct list all;
	struct list *hand; /* in it: where the next looks begin */
	unsigned ends;     /* so often it came to the end since one was over */
	struct kept_group *slots[SLOTS];
};

static uint64_t hash_of(const struct groups *groups, const uint8_t *bytes,
                        uint32_t count)
{
	return XXH3_64bits_withSecret(bytes, count, groups->secret,
	                              sizeof(groups->secret));
}

/* ---- Members, by their last beats ------------------------------------------------- */

/* Of equal numbers the names decide, as a server sorts them. */
static bool ends_before(const struct member *a, const struct member *b)
{
	uint32_t count = a->node_len < b->node_len ? a->node_len : b->node_len;
	int order;

	if (a->is.beat != b->is.beat)
		return a->is.beat < b->is.beat;
	order = memcmp(a->node, b->node, count);
	return order != 0 ? order < 0 : a->node_len < b->node_len;
}

static void put_at(struct kept_group *group, uint32_t place, struct member *member)
{
	group->heap[place] = member;
	member->place = place;
}

/* To where it belongs, from a place that no other member has. */
static void settle(struct kept_group *group, uint32_t place, struct member *member,
                   uint32_t count)
{
	uint32_t child;

	while (place > 0 && ends_before(member, group->heap[(place - 1) / 2])) {
		put_at(group, place, group->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	while ((child = 2 * place + 1) < count) {
		if (child + 1 < count &&
		    ends_before(group->heap[child + 1], group->heap[child]))
			child++;
		if (!ends_before(group->heap[child], member))
			break;
		put_at(group, place, group->heap[child]);
		place = child;
	}
	put_at(group, place, member);
}

static struct member *earlier(struct member *a, struct member *b)
{
	return !b || (a && ends_before(a, b)) ? a : b;
}

/* The one that beat longest ago, but for the one that reports, which may be NULL; NULL: none. */
static struct member *first_but(const struct kept_group *group,
                                const struct member *self)
{
	uint64_t count = group->is.members;

	if (count == 0 || group->heap[0] != self)
		return count == 0 ? NULL : group->heap[0];
	return earlier(count > 1 ? group->heap[1] : NULL,
	               count > 2 ? group->heap[2] : NULL);
}

/* ---- Members --------------------------------------------------------------------- */

static struct member **slot_of(const struct kept_group *group, uint64_t hash)
{
	return &group->slots[hash & (group->room - 1)];
}

static struct member *find_member(const struct groups *groups,
                                  const struct kept_group *group, const uint8_t *node,
                                  uint32_t node_len)
{
	uint64_t hash = hash_of(groups, node, node_len);
	struct member *at = group->room > 0 ? *slot_of(group, hash) : NULL;

	while (at && (at->hash != hash || at->node_len != node_len ||
	              memcmp(at->node, node, node_len) != 0))
		at = at->next;
	return at;
}

static struct member *member_new(const struct groups *groups, const uint8_t *node,
                                 uint32_t node_len)
{
	struct member *member =
	    memory_take(groups->allocator, sizeof(*member) + node_len);

	if (!member)
		return NULL;
	member->hash = hash_of(groups, node, node_len);
	member->node_len = node_len;
	memcpy(member->node, node, node_len);
	return member;
}

static void member_free(const struct groups *groups, struct member *member)
{
	if (member)
		memory_give(groups->allocator, member,
		            sizeof(*member) + member->node_len);
}

static size_t room_bytes(uint32_t room)
{
	return (size_t)room * 3 * sizeof(struct member *);
}

/* For one more.  False without memory, and then all is as it was. */
static bool have_room(const struct groups *groups, struct kept_group *group)
{
	uint32_t was = group->room, room = was > 0 ? 2 * was : FIRST_ROOM;
	struct member **slots;

	if (group->is.members < was)
		return true;
	slots = memory_take(groups->allocator, room_bytes(room));
	if (!slots)
		return false;
	if (was > 0) {
		memcpy(slots + room, group->row, was * sizeof(*slots));
		memcpy(slots + 2 * (size_t)room, group->heap, was * sizeof(*slots));
		memory_give(groups->allocator, group->slots, room_bytes(was));
	}
	group->slots = slots;
	group->row = slots + room;
	group->heap = slots + 2 * (size_t)room;
	group->room = room;
	for (uint32_t i = 0; i < group->is.members; i++) {
		struct member *member = group->row[i];
		struct member **slot = slot_of(group, member->hash);

		member->next = *slot;
		*slot = member;
	}
	return true;
}

/* The engine has counted it. */
static void add_member(struct groups *groups, struct kept_group *group,
                       struct member *member)
{
	struct member **slot = slot_of(group, member->hash);

	member->next = *slot;
	*slot = member;
	group->row[member->is.position] = member;
	settle(group, (uint32_t)group->is.members - 1, member,
	       (uint32_t)group->is.members);
	groups->count++;
}

static void remove_member(struct groups *groups, struct kept_group *group,
                          struct member *member)
{
	struct member **at = slot_of(group, member->hash);
	struct member *last;
	uint32_t count;

	group_remove(&group->is, group->estimates, &member->is);
	count = (uint32_t)group->is.members;
	while (*at != member)
		at = &(*at)->next;
	*at = member->next;
	last = group->row[count];
	last->is.position = member->is.position;
	group->row[last->is.position] = last;
	last = group->heap[count];
	if (last != member)
		settle(group, member->place, last, count);
	member_free(groups, member);
	groups->count--;
}

/* ---- Groups ---------------------------------------------------------------------- */

static struct kept_group *find(const struct groups *groups, const uint8_t *name,
                               uint32_t name_len)
{
	uint64_t hash = hash_of(groups, name, name_len);
	struct kept_group *at = groups->slots[hash % SLOTS];

	while (at && (at->hash != hash || at->name_len != name_len ||
	              memcmp(at->name, name, name_len) != 0))
		at = at->next;
	return at;
}

static struct kept_group *add(struct groups *groups, const uint8_t *name,
                              uint32_t name_len, mono at)
{
	struct kept_group *group =
	    memory_take(groups->allocator, sizeof(*group) + name_len);
	struct kept_group **slot;

	if (!group)
		return NULL;
	group->hash = hash_of(groups, name, name_len);
	group->over = at;
	group->name_len = name_len;
	memcpy(group->name, name, name_len);
	slot = &groups->slots[group->hash % SLOTS];
	group->next = *slot;
	*slot = group;
	list_append(&groups->all, &group->place);
	groups->count++;
	return group;
}

/* All its members are gone. */
static void drop(struct groups *groups, struct kept_group *group)
{
	struct kept_group **at = &groups->slots[group->hash % SLOTS];

	gale_assert(group->is.members == 0);
	while (*at != group)
		at = &(*at)->next;
	*at = group->next;
	list_remove(&group->place);
	memory_give(groups->allocator, group->slots, room_bytes(group->room));
	memory_give(groups->allocator, group->estimates, sizeof(*group->estimates));
	memory_give(groups->allocator, group, sizeof(*group) + group->name_len);
	groups->count--;
}

/* Drops at most so many members, and the group when there are none left; returns how many of
 * all these it dropped.  All leases are over. */
static unsigned dissolve(struct groups *groups, struct kept_group *group, unsigned most)
{
	unsigned dropped = 0;

	for (; dropped < most && group->is.members > 0; dropped++)
		remove_member(groups, group, group->row[group->is.members - 1]);
	if (dropped == most)
		return dropped;
	drop(groups, group);
	return dropped + 1;
}

/* Of those that the hand comes to; margin_us since their last lease was over.  It goes round: one with a
 * long lease hides none that is behind it. */
static unsigned dissolve_some(struct groups *groups, const struct kept_group *but,
                              mono now, uint64_t margin_us, unsigned most)
{
	unsigned dropped = 0;

	for (int i = 0; i < LOOKS && dropped < most; i++) {
		struct list *place = groups->hand;
		struct kept_group *group;

		groups->hand = place->next;
		if (place == &groups->all) {
			groups->ends++;
			continue;
		}
		group = list_item(place, struct kept_group, place);
		if (group == but ||
		    !mono_reached(now, mono_after(group->over, margin_us * 1000)))
			continue;
		dropped += dissolve(groups, group, most - dropped);
		groups->ends = 0;
	}
	return dropped;
}

/* Nothing is over when the hand has gone round in vain, from one end to the next. */
bool groups_sweep(struct groups *groups, mono at)
{
	dissolve_some(groups, NULL, at, GROUPS_KEPT_US, DROPS_PER_SWEEP);
	if (groups->ends < 2)
		return false;
	groups->ends = 0;
	return true;
}

/* GROUPS-3 */
static bool has_place(struct groups *groups, const struct kept_group *but, mono at)
{
	return groups->count < groups->most ||
	       dissolve_some(groups, but, at, /* margin_us= */ 0, /* most= */ 1) > 0;
}

/* ---- A beat ---------------------------------------------------------------------- */

static bool have_estimates(const struct groups *groups, struct kept_group *group,
                           const struct group_settings *settings)
{
	if (group->estimates ||
	    (settings->law != GROUP_MEDIAN && settings->law != GROUP_MIN))
		return true;
	group->estimates = memory_take(groups->allocator, sizeof(*group->estimates));
	return group->estimates;
}

static void evict(struct groups *groups, struct kept_group *group,
                  const struct store_beat *beat)
{
	const struct member *self =
	    find_member(groups, group, beat->node, beat->node_len);
	struct member *first;

	if (self && !group_is_reporter(&self->is, &beat->report))
		self = NULL;
	for (int i = 0; i < GROUP_EVICT_MOST; i++) {
		first = first_but(group, self);
		if (!first || !group_expired(&group->is, &first->is))
			return;
		remove_member(groups, group, first);
	}
}

/* The group at now, without those whose leases are over. */
static enum group_result begin(struct groups *groups, struct kept_group *group,
                               const struct store_beat *beat, uint64_t now_us,
                               uint64_t forgot_us)
{
	enum group_result result =
	    group_begin(&group->is, &beat->settings, &beat->report, now_us, forgot_us);

	if (result == GROUP_WRONG)
		return result;
	evict(groups, group, beat);
	if (result == GROUP_DISAGREES && group->is.members == 0)
		result = group_begin(&group->is, &beat->settings, &beat->report, now_us,
		                     forgot_us);
	return result;
}

static void take(struct groups *groups, struct kept_group *group, struct member *self,
                 bool is_new, struct store_beat *beat, mono at)
{
	struct member *next = first_but(group, is_new ? NULL : self);

	beat->grant = group_beat(&group->is, group->estimates, &self->is, &beat->report,
	                         next ? next->is.beat : 0);
	if (beat->grant.result == GROUP_GRANTED)
		group->over = mono_after(at, group->is.lasts_us * 1000);
	if (beat->grant.result == GROUP_GRANTED && is_new)
		add_member(groups, group, self);
	else if (beat->grant.result == GROUP_GRANTED)
		settle(group, self->place, self, (uint32_t)group->is.members);
	else if (is_new)
		member_free(groups, self);
	else if (beat->grant.result == GROUP_GONE)
		remove_member(groups, group, self);
}

/* All that a new member needs is there before anything is granted. */
static enum store_result beat_on(struct groups *groups, struct kept_group *group,
                                 struct store_beat *beat, mono at)
{
	struct member *self = find_member(groups, group, beat->node, beat->node_len);
	bool is_new = !self;

	if (is_new && !has_place(groups, group, at))
		return STORE_FULL;
	if (is_new)
		self = have_room(groups, group)
		           ? member_new(groups, beat->node, beat->node_len)
		           : NULL;
	if (!self)
		return STORE_NO_MEMORY;
	take(groups, group, self, is_new, beat, at);
	return STORE_DONE;
}

enum store_result groups_beat(struct groups *groups, const uint8_t *name,
                              uint32_t name_len, struct store_beat *beat,
                              uint64_t now_us, mono at, uint64_t forgot_us,
                              struct group_nudge *ret_nudge)
{
	struct kept_group *group = find(groups, name, name_len);
	enum store_result done = STORE_DONE;
	enum group_result result;

	*ret_nudge = (struct group_nudge){ 0 };

	gale_assert(beat->node_len >= 1 && beat->node_len <= STORE_NODE_MAX);
	if (!group_settings_valid(&beat->settings) ||
	    !group_report_valid(&beat->report)) {
		beat->grant = (struct group_grant){ .result = GROUP_WRONG };
		return STORE_DONE;
	}
	if (!group && !has_place(groups, NULL, at))
		return STORE_FULL;
	if (!group)
		group = add(groups, name, name_len, at);
	if (!group || !have_estimates(groups, group, &beat->settings))
		return STORE_NO_MEMORY;
	result = begin(groups, group, beat, now_us, forgot_us);
	if (result == GROUP_GRANTED)
		done = beat_on(groups, group, beat, at);
	else
		beat->grant = group_refusal(&group->is, result);
	*ret_nudge = group_nudge(&group->is);
	return done;
}

/* ---- To look at ------------------------------------------------------------------ */

const struct group *groups_find(const struct groups *groups, const uint8_t *name,
                                uint32_t name_len)
{
	const struct kept_group *group = find(groups, name, name_len);

	return group ? &group->is : NULL;
}

const struct group_estimates *groups_estimates(const struct groups *groups,
                                               const uint8_t *name, uint32_t name_len)
{
	return find(groups, name, name_len)->estimates;
}

const struct group_member *groups_member(const struct groups *groups,
                                         const uint8_t *name, uint32_t name_len,
                                         const uint8_t *node, uint32_t node_len)
{
	const struct kept_group *group = find(groups, name, name_len);
	const struct member *member =
	    group ? find_member(groups, group, node, node_len) : NULL;

	return member ? &member->is : NULL;
}

static bool member_valid(const struct groups *groups, const struct kept_group *group,
                         uint32_t i)
{
	const struct member *member = group->row[i];

	return member->is.position == i &&
	       find_member(groups, group, member->node, member->node_len) == member &&
	       group->heap[member->place] == member &&
	       (member->place == 0 ||
	        !ends_before(member, group->heap[(member->place - 1) / 2]));
}

static bool group_valid(const struct groups *groups, const struct kept_group *group)
{
	uint64_t reserved = 0, in_flight = 0;

	for (uint32_t i = 0; i < group->is.members; i++) {
		if (!member_valid(groups, group, i))
			return false;
		reserved += group_reserve(&group->row[i]->is);
		in_flight += group->row[i]->is.in_flight;
	}
	return reserved == group->is.reserved && in_flight == group->is.in_flight;
}

bool groups_valid(const struct groups *groups)
{
	uint64_t count = 0;

	for (const struct list *at = groups->all.next; at != &groups->all;
	     at = at->next) {
		const struct kept_group *group =
		    list_item(at, const struct kept_group, place);

		if (!group_valid(groups, group))
			return false;
		count += 1 + group->is.members;
	}
	return count == groups->count;
}

/* ---- Opening and closing --------------------------------------------------------- */

struct groups *groups_open(struct gale_allocator *allocator, uint64_t most)
{
	struct groups *groups = memory_take(allocator, sizeof(*groups));

	if (!groups)
		return NULL;
	groups->allocator = allocator;
	groups->most = most;
	list_init(&groups->all);
	groups->hand = &groups->all;
	if (random_fill(groups->secret, sizeof(groups->secret)))
		return groups;
	groups_close(groups);
	return NULL;
}

void groups_close(struct groups *groups)
{
	struct list *at;

	if (!groups)
		return;
	while ((at = list_first(&groups->all)))
		(void)dissolve(groups, list_item(at, struct kept_group, place),
		               UINT_MAX);
	memory_give(groups->allocator, groups, sizeof(*groups));
}
