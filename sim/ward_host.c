/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ward_host.c -- the calls of a node, and when they are aborted.
 *
 * A deed is what the host or the backend does later by itself.
 */
#include "sim/ward_host.h"

#include <inttypes.h>

#include "face/guard.h"
#include "runtime/atomic.h"
#include "sim/must.h"
#include "sim/room.h"
#include "sim/ward_law.h"

#define NEVER UINT64_MAX

/* ---- Deeds ----------------------------------------------------------------------- */

/* What the host or the backend does by itself, later. */
struct deed {
	struct event event; /* first */
	struct ward_node *node;
	struct ward_guard *guard; /* NULL: of all */
	uint64_t life;
	uint64_t stop; /* 0: whether the node runs again or not */
	uint64_t since_us;
};

static struct deed *deed_new(struct ward_node *node, void (*happen)(struct event *self))
{
	struct deed *deed = room_new(sizeof(*deed));

	deed->event.happen = happen;
	deed->node = node;
	deed->life = node->port.life;
	deed->since_us = node->ward->agenda.now_us;
	return deed;
}

static void deed_add(struct deed *deed, uint64_t after_us)
{
	struct agenda *agenda = &deed->node->ward->agenda;

	agenda_add(agenda, &deed->event, agenda->now_us + after_us);
}

/* ---- Calls ----------------------------------------------------------------------- */

bool host_is_stopped(const struct ward_node *node)
{
	return node->paused_us > node->ward->agenda.now_us;
}

/* What is behind its handle is there. */
static bool is_there(const struct ward_guard *guard)
{
	return !guard->dead && (!guard->closed || guard->open > 0);
}

struct gale_guard_counts ward_counts(struct ward_guard *guard)
{
	struct gale_guard_counts counts;

	must(gale_guard_stats(guard->handle, &counts) == GALE_ERR_OK);
	return counts;
}

static void check_count(struct ward_guard *guard) /* SIM-11 */
{
	struct gale_guard_counts counts;

	if (guard->closed || guard->dead || guard->node->is_closing)
		return;
	counts = ward_counts(guard);
	if (counts.in_flight != counts.kept + guard->open ||
	    counts.exits_without_entry > 0)
		ward_fault(guard->node->ward,
		           "node %u group %u: %" PRIu64 " in flight and %" PRIu64
		           " of them kept, where %" PRIu64 " have not exited",
		           guard->node->number, guard->group, counts.in_flight,
		           counts.kept, guard->open);
}

static void leave_backend(struct ward *ward, struct ward_call *call)
{
	if (call->is_at_backend)
		ward_law_leaves(ward, call);
	call->is_at_backend = false;
}

static void exit_call(struct ward_call *call, enum gale_outcome outcome)
{
	struct ward_node *node = call->guard->node;
	uint32_t seat =
	    (uint32_t)chance_below(&node->ward->chance, node->ward->plan.seats);

	if (!call->is_open)
		return;
	call->is_open = false;
	gale_exit(node->seats[seat], &call->entry, outcome);
	call->guard->open -= call->slots;
	check_count(call->guard);
}

static enum gale_outcome draw_outcome(struct ward *ward)
{
	return chance_one_in(&ward->chance, 8)
	           ? (enum gale_outcome)chance_below(&ward->chance, 3)
	           : GALE_OK;
}

/* It has ended at the backend; its node may be stopped, or be no more. */
static void call_ends(struct event *self)
{
	struct ward_call *call = (struct ward_call *)self;
	struct ward_node *node = call->guard->node;
	struct ward *ward = node->ward;
	bool is_late = call->is_open && host_is_stopped(node);

	leave_backend(ward, call);
	if (is_late) {
		agenda_add(&ward->agenda, self, node->paused_us);
		return;
	}
	exit_call(call, draw_outcome(ward));
	list_remove(&call->place);
	free(call);
}

static bool is_of(const struct ward_call *call, const struct deed *deed)
{
	const struct ward_guard *guard = call->guard;

	return guard->node == deed->node && guard->life == deed->life &&
	       (!deed->guard || deed->guard == guard) &&
	       call->entered_us <= deed->since_us;
}

/* The backend works on none of these any more.  A node that runs notices that. */
static void abort_calls(const struct deed *deed)
{
	struct ward_node *node = deed->node;
	struct ward *ward = node->ward;
	struct list *at, *next;

	for (at = ward->calls.next; at != &ward->calls; at = next) {
		struct ward_call *call = list_item(at, struct ward_call, place);

		next = at->next;
		if (!is_of(call, deed))
			continue;
		ward->aborts += call->is_at_backend;
		leave_backend(ward, call);
		if (!host_is_stopped(node))
			exit_call(call, GALE_DROPPED);
	}
}

static bool runs_again(const struct deed *deed)
{
	const struct ward_node *node = deed->node;

	return deed->stop > 0 && node->runtime && node->port.life == deed->life &&
	       (node->stops != deed->stop || !host_is_stopped(node));
}

static void abort_is_due(struct event *self)
{
	struct deed *deed = (struct deed *)self;

	if (!runs_again(deed))
		abort_calls(deed);
	free(deed);
}

void host_exit_ended(struct ward_node *node)
{
	struct ward *ward = node->ward;

	for (struct list *at = ward->calls.next; at != &ward->calls; at = at->next) {
		struct ward_call *call = list_item(at, struct ward_call, place);

		if (call->guard->node == node && !call->is_at_backend)
			exit_call(call, GALE_DROPPED);
	}
}

void ward_end_calls(struct ward *ward)
{
	for (struct list *at = ward->calls.next; at != &ward->calls; at = at->next) {
		struct ward_call *call = list_item(at, struct ward_call, place);

		leave_backend(ward, call);
		exit_call(call, GALE_IGNORED);
	}
}

void host_forgets(struct ward_node *node)
{
	struct deed *deed = deed_new(node, abort_is_due);
	struct ward *ward = node->ward;
	struct list *at;

	for (at = ward->calls.next; at != &ward->calls; at = at->next) {
		struct ward_call *call = list_item(at, struct ward_call, place);

		if (call->guard->node == node)
			exit_call(call, GALE_IGNORED);
	}
	deed_add(deed, chance_below(&ward->chance, ward->plan.abort_us + 1));
}

void host_falls_silent(struct ward_node *node)
{
	struct deed *deed = deed_new(node, abort_is_due);

	node->stops++;
	deed->stop = node->stops;
	deed_add(deed, node->silence_us);
}

void host_free_deeds(struct ward *ward)
{
	struct agenda *agenda = &ward->agenda;

	for (size_t i = 0; i < agenda->count; i++)
		if (agenda->heap[i]->happen == abort_is_due)
			free(agenda->heap[i]);
	agenda->count = 0;
}

/* ---- Fences ---------------------------------------------------------------------- */

/* Its share is over: the host cancels what is in flight. */
static void lose_share(struct ward_guard *guard)
{
	struct deed *deed = deed_new(guard->node, abort_is_due);

	ward_trace(guard->node->ward, "node %u group %u is cut off",
	           guard->node->number, guard->group);
	guard->is_cut = true;
	guard->alone_us = guard->node->ward->agenda.now_us;
	guard->node->ward->fences++;
	deed->guard = guard;
	deed_add(deed, guard->node->react_us);
}

static void fenced(struct gale_on_fenced *self, struct gale_guard *handle)
{
	struct ward_guard *guard = (struct ward_guard *)self;

	(void)handle;
	if (!guard->is_cut)
		lose_share(guard);
}

void host_takes(struct ward_guard *guard)
{
	guard->hook.fenced = fenced;
	guard->is_cut = true; /* until its first grant */
}

/* Its last call has ended, as the group thinks: the host is told nothing more. */
static bool has_left(const struct ward_guard *guard)
{
	return guard->handle->fleet->membership.member.has_left;
}

/* The host knows it exactly, also of a guard that is closed, or that observes. */
static bool is_cut_off(const struct ward_guard *guard)
{
	const struct gale_guard *handle = guard->handle;
	const struct ward_node *node = guard->node;
	uint64_t now_ns = dial_at(&node->dial, node->ward->agenda.now_us);

	if (has_left(guard))
		return guard->is_cut;
	return load_relaxed(&handle->fleet->told.fenced) ||
	       now_ns >= load_relaxed(&handle->guard.turnstile.fence_ns);
}

static void look_at_fence(struct ward_guard *guard)
{
	bool is_cut = is_cut_off(guard);

	if (is_cut && !guard->is_cut)
		lose_share(guard);
	guard->is_cut = is_cut;
	if (is_cut)
		guard->alone_us = guard->node->ward->agenda.now_us;
}

static uint64_t fence_of(const struct ward_guard *guard)
{
	uint64_t ns = load_relaxed(&guard->handle->guard.turnstile.fence_ns);

	return guard->is_cut || ns == UINT64_MAX || has_left(guard)
	           ? NEVER
	           : dial_true(&guard->node->dial, ns);
}

void host_look(struct ward_node *node)
{
	struct ward_guard *guard = node->ward->guards;

	node->fence_us = NEVER;
	for (; guard; guard = guard->next) {
		if (guard->node != node || !is_there(guard))
			continue;
		look_at_fence(guard);
		if (fence_of(guard) < node->fence_us)
			node->fence_us = fence_of(guard);
	}
}

/* ---- Entering -------------------------------------------------------------------- */

/* SIM-9 */
static bool is_exempt(const struct ward_guard *guard)
{
	const struct ward *ward = guard->node->ward;

	return guard->observes ||
	       (guard->goes_on &&
	        (guard->is_cut ||
	         ward->agenda.now_us < guard->alone_us + 3 * ward->plan.lease_us));
}

static void let_in(struct ward_guard *guard, const struct gale_entry *entry,
                   uint64_t takes_us)
{
	struct ward *ward = guard->node->ward;
	struct ward_call *call = room_new(sizeof(*call));

	call->event.happen = call_ends;
	call->guard = guard;
	call->entry = *entry;
	call->slots = entry->slots;
	call->entered_us = ward->agenda.now_us;
	call->is_exempt = is_exempt(guard);
	call->is_at_backend = call->is_open = true;
	list_append(&ward->calls, &call->place);
	guard->open += call->slots;
	agenda_add(&ward->agenda, &call->event, ward->agenda.now_us + takes_us);
	ward_law_enters(ward, call);
}

bool host_enter(struct ward_guard *guard, uint32_t seat, uint32_t slots,
                enum gale_class of_class, uint64_t takes_us)
{
	struct ward_node *node = guard->node;
	struct ward *ward = node->ward;
	struct gale_entry entry;

	if (ward->plan.ticks)
		gale_tick(node->seats[seat]);
	entry = gale_enter(node->seats[seat], guard->handle, slots, of_class);
	host_look(node);
	if (entry.verdict == GALE_ALLOW)
		let_in(guard, &entry, takes_us);
	else
		ward->refusals++;
	check_count(guard);
	return entry.verdict == GALE_ALLOW;
}
