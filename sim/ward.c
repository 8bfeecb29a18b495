/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* ward.c -- nodes, what befalls them and their store, and whose turn is next. */
#include "sim/ward.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "face/face.h"
#include "face/guard.h"
#include "runtime/atomic.h"
#include "sim/lot.h"
#include "sim/must.h"
#include "sim/room.h"
#include "sim/ward_host.h"
#include "sim/ward_law.h"

#define TURNS_MOST 1000 /* in a row: more is a fault */
#define BOOT_BASE GALE_HOURS(10)
#define NEVER UINT64_MAX

void ward_fault(struct ward *ward, const char *format, ...)
{
	va_list args;

	ward->ended = true;
	if (ward->fault[0])
		return;
	va_start(args, format);
	vsnprintf(ward->fault, sizeof(ward->fault), format, args);
	va_end(args);
}

void ward_trace(const struct ward *ward, const char *format, ...)
{
	va_list args;

	if (!ward->verbose)
		return;
	printf("%10" PRIu64 " ", ward->agenda.now_us - WARD_START);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

uint32_t ward_name(uint32_t group, char ret_name[WARD_NAME_BYTES])
{
	return (uint32_t)snprintf(ret_name, WARD_NAME_BYTES, "group%u", group % 10);
}

const struct group *ward_kept(const struct ward *ward, uint32_t group)
{
	char name[WARD_NAME_BYTES];
	uint32_t len = ward_name(group, name);

	return groups_find(ward->station.groups, (const uint8_t *)name, len);
}

bool ward_is_up(const struct ward_node *node)
{
	return node->runtime && !node->is_closing && !host_is_stopped(node);
}

/* ---- Turns ----------------------------------------------------------------------- */

static void note_due(struct ward_node *node)
{
	uint64_t now_us = node->ward->agenda.now_us;
	uint64_t after_ns = runtime_turn_after_ns(node->runtime);

	node->due_us =
	    after_ns == UINT64_MAX
		? NEVER
		: dial_true(&node->dial, dial_at(&node->dial, now_us) + after_ns);
	if (node->due_us <= now_us)
		node->due_us = now_us + 1;
}

static void turn(struct ward_node *node)
{
	int turns = 0;

	while (gale_turn(node->runtime) > 0 && turns < TURNS_MOST)
		turns++;
	if (turns == TURNS_MOST)
		ward_fault(node->ward, "node %u does not rest", node->number);
}

/* All of it that runs goes on. */
static void go_on(struct ward_node *node)
{
	uint64_t now_us = node->ward->agenda.now_us;

	if (!node->runtime) {
		node->due_us = node->fence_us = NEVER;
		return;
	}
	if (host_is_stopped(node)) {
		node->due_us = node->paused_us;
		node->fence_us = NEVER;
		return;
	}
	if (node->is_stopped)
		host_exit_ended(node);
	node->is_stopped = false;
	host_look(node);
	if (node->is_closing) {
		node->due_us = NEVER;
	} else if (node->held_us > now_us) {
		node->due_us = node->held_us;
	} else {
		turn(node);
		host_look(node);
		note_due(node);
	}
}

static void came(struct port *port)
{
	go_on((struct ward_node *)((char *)port - offsetof(struct ward_node, port)));
}

/* ---- Nodes ----------------------------------------------------------------------- */

static void open_store(struct ward_node *node)
{
	struct gale_store_config config = { .max_keys = 1 };
	struct ward *ward = node->ward;

	must(gale_store_open(node->runtime, &config, &node->store) == GALE_ERR_OK);
	port_open(&node->port, &ward->net, node->store->inner);
	node->port.came = came;
	if (ward->plan.parcels)
		node->store->inner =
		    courier_open(&node->courier, &node->port, &ward->station.station,
		                 &ward->parcels);
	else
		node->store->inner =
		    office_store(&ward->office, &node->port, &node->allocator.allocator,
		                 chance_next(&ward->chance));
	node->store->post.store = node->store->inner;
}

static struct gale_guard_config config_of(struct ward_node *node, uint32_t group)
{
	const struct ward_plan *plan = &node->ward->plan;
	bool is_last = node->number == plan->nodes - 1;

	return (struct gale_guard_config){
		.law = group == 0 ? (enum gale_law)plan->law : GALE_FIXED,
		.ceiling =
		    plan->ceiling + group + (is_last && group == 0 && plan->disagrees),
		.observe = is_last && plan->observes,
		.store = node->store,
		.weight = node->weight,
		.drift_ppm = plan->drift_ppm,
		.beat_us = plan->beat_us,
		.lease_us = plan->lease_us,
		.abort_us = plan->abort_us,
		.on_cut_off = node->number == 0 && plan->alone ? GALE_ON_CUT_OFF_OWN
		                                               : GALE_ON_CUT_OFF_DENY,
		.parts = (enum gale_parts)plan->parts,
		.of_estimates = (enum gale_of_estimates)(
		    group == 0 && plan->law > GALE_FIXED ? plan->of_estimates : 0),
	};
}

static struct ward_guard *guard_new(struct ward_node *node, uint32_t group,
                                    const struct gale_guard_config *config)
{
	struct ward_guard *guard = room_new(sizeof(*guard));

	guard->node = node;
	guard->life = node->port.life;
	guard->group = group;
	guard->observes = config->observe;
	guard->goes_on = config->on_cut_off == GALE_ON_CUT_OFF_OWN;
	host_takes(guard);
	guard->next = node->ward->guards;
	node->ward->guards = guard;
	return guard;
}

void ward_open_guard(struct ward *ward, uint32_t number, uint32_t group)
{
	struct ward_node *node = &ward->nodes[number];
	struct gale_guard_config config = config_of(node, group);
	struct ward_guard *guard = guard_new(node, group, &config);
	uint32_t named = ward->plan.twins && number == 1 ? 0 : number;
	char name[WARD_NAME_BYTES], who[16];

	must(!node->guards[group]);
	(void)ward_name(group, name);
	(void)snprintf(who, sizeof(who), "node%u", named);
	config.name = name;
	config.on_fenced = &guard->hook;
	if (ward->plan.named || (ward->plan.twins && number < 2))
		config.node = who;
	must(gale_guard_open(node->runtime, &config, &guard->handle) == GALE_ERR_OK);
	guard->incarnation = guard->handle->fleet->membership.member.incarnation;
	node->guards[group] = guard;
	ward_trace(ward, "node %u opens group %u, incarnation %" PRIu64, number, group,
	           guard->incarnation);
}

void ward_close_guard(struct ward *ward, uint32_t number, uint32_t group)
{
	struct ward_node *node = &ward->nodes[number];
	struct ward_guard *guard = node->guards[group];

	ward_trace(ward, "node %u closes group %u, with %" PRIu64 " in flight", number,
	           group, guard->open);
	node->guards[group] = NULL;
	guard->closed = true;
	gale_guard_close(guard->handle);
	ward->reopened++;
	go_on(node);
}

/* The library's draws by lot follow from the seed, and the number of cells is the same on all
 * machines. */
static void tame(struct ward_node *node)
{
	node->runtime->node = chance_next(&node->ward->chance) % GALE_UNITS_MAX + 1;
	node->runtime->seed = chance_next(&node->ward->chance);
	node->runtime->cell_count = WARD_SEATS;
}

static void draw_host(struct ward_node *node)
{
	const struct ward_plan *plan = &node->ward->plan;

	node->silence_us = chance_below(&node->ward->chance, plan->abort_us + 1);
	node->react_us = plan->abort_us - node->silence_us;
	node->weight =
	    (uint32_t)chance_between(&node->ward->chance, 1, plan->weight_most);
}

static void node_start(struct ward_node *node)
{
	const struct ward_plan *plan = &node->ward->plan;
	struct gale_config config = { .shards = 1,
		                      .turns = true,
		                      .allocator = &node->allocator.allocator,
		                      .clock = &node->dial.clock };

	test_allocator_init(&node->allocator);
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	tame(node);
	draw_host(node);
	open_store(node);
	node->paused_us = node->held_us = 0;
	node->is_stopped = false;
	for (uint32_t i = 0; i < plan->seats; i++)
		must(gale_join(node->runtime, &node->seats[i]) == GALE_ERR_OK);
	for (uint32_t i = 0; i < plan->groups; i++)
		ward_open_guard(node->ward, node->number, i);
	go_on(node);
}

static void close_rest(struct ward_node *node)
{
	for (uint32_t i = 0; i < node->ward->plan.seats; i++)
		gale_leave(node->seats[i]);
	for (uint32_t i = 0; i < node->ward->plan.groups; i++) {
		if (node->guards[i])
			gale_guard_close(node->guards[i]->handle);
		node->guards[i] = NULL;
	}
	gale_store_close(node->store);
}

static void mark_dead(struct ward_node *node)
{
	for (struct ward_guard *guard = node->ward->guards; guard; guard = guard->next)
		if (guard->node == node)
			guard->dead = true;
}

static void node_is_down(struct ward_node *node)
{
	node->runtime = NULL;
	node->port.life++;
	node->due_us = node->fence_us = NEVER;
	if (!test_allocator_is_balanced(&node->allocator))
		ward_fault(node->ward, "node %u has kept memory", node->number);
}

void ward_crash(struct ward *ward, uint32_t number)
{
	struct ward_node *node = &ward->nodes[number];

	ward_trace(ward, "node %u crashes", number);
	node->port.dead = true;
	mark_dead(node);
	host_forgets(node);
	close_rest(node);
	gale_runtime_close(node->runtime);
	node_is_down(node);
	ward->crashes++;
}

static void wait_a_milli(void *self)
{
	struct ward *ward = self;

	ward_run(ward, ward->agenda.now_us + GALE_MILLIS(1));
}

/* The others go on meanwhile. */
void ward_shut(struct ward *ward, uint32_t number)
{
	struct ward_node *node = &ward->nodes[number];

	ward_trace(ward, "node %u is closed", number);
	node->is_closing = true;
	lot_on_wait(wait_a_milli, ward);
	gale_runtime_close(node->runtime);
	lot_on_wait(NULL, NULL);
	ward_trace(ward, "node %u has closed", number);
	mark_dead(node);
	host_forgets(node);
	close_rest(node);
	node->is_closing = false;
	node_is_down(node);
	ward->shuts++;
}

void ward_start(struct ward *ward, uint32_t number)
{
	ward_trace(ward, "node %u starts", number);
	node_start(&ward->nodes[number]);
	ward->restarts++;
}

void ward_stop(struct ward *ward, uint32_t number, uint64_t until_us)
{
	struct ward_node *node = &ward->nodes[number];

	go_on(node);
	ward_trace(ward, "node %u stops until %" PRIu64, number, until_us - WARD_START);
	ward->stops++;
	node->is_stopped = true;
	node->paused_us = node->port.held_us = until_us;
	node->due_us = until_us;
	node->fence_us = NEVER;
	host_falls_silent(node);
}

void ward_hold(struct ward *ward, uint32_t number, uint64_t until_us)
{
	struct ward_node *node = &ward->nodes[number];

	go_on(node);
	ward_trace(ward, "gale's thread of node %u is held until %" PRIu64, number,
	           until_us - WARD_START);
	ward->holds++;
	node->held_us = node->due_us = until_us;
}

void ward_cut(struct ward *ward, uint32_t number, uint64_t until_us)
{
	ward_trace(ward, "node %u does not reach the store until %" PRIu64, number,
	           until_us - WARD_START);
	ward->nodes[number].port.cut_us = until_us;
	ward->partitions++;
}

/* ---- The store ------------------------------------------------------------------- */

void ward_replicate(struct ward *ward)
{
	ward_trace(ward, "the replica has all");
	ward->station.station.ops->replicate(&ward->station.station);
}

void ward_fail_over(struct ward *ward)
{
	ward_trace(ward, "the replica takes over");
	office_fail_over(&ward->office);
	ward->fail_overs++;
}

void ward_flush(struct ward *ward)
{
	ward_trace(ward, "the store has nothing any more");
	office_flush(&ward->office);
	ward->flushes++;
}

static uint64_t store_now_us(struct gale_clock *self)
{
	struct ward *ward =
	    (struct ward *)((char *)self - offsetof(struct ward, clock_of_store));

	return ward->agenda.now_us + (uint64_t)ward->clock_shift_us;
}

static uint64_t note_clock(struct ward *ward)
{
	uint64_t now_us = store_now_us(&ward->clock_of_store);

	if (ward->clock_most_us < now_us)
		ward->clock_most_us = now_us;
	ward->settings++;
	return now_us;
}

bool ward_is_set_back(struct ward *ward)
{
	return store_now_us(&ward->clock_of_store) < ward->clock_most_us;
}

void ward_set_back(struct ward *ward, uint64_t by_us)
{
	ward_trace(ward, "the store's clock is set back by %" PRIu64 " us", by_us);
	(void)note_clock(ward);
	ward->clock_shift_us -= (int64_t)by_us;
}

void ward_set_forward(struct ward *ward, uint64_t by_us)
{
	uint64_t now_us = note_clock(ward);
	uint64_t to_us = ward->clock_most_us + by_us;

	ward_trace(ward, "the store's clock is set forward by %" PRIu64 " us",
	           to_us - now_us);
	ward->clock_shift_us += (int64_t)(to_us - now_us);
}

/* Also to the node whose beat it was. */
void ward_nudge(struct ward *ward, const struct store_nudge *nudge)
{
	for (uint32_t i = 0; i < ward->plan.nodes; i++) {
		struct ward_node *node = &ward->nodes[i];

		if (!node->runtime || node->port.dead)
			continue;
		ward->nudges++;
		if (ward->plan.parcels)
			courier_nudge(&node->courier, nudge);
		else
			office_nudge(&ward->office, &node->port, nudge);
	}
}

bool ward_enter(struct ward *ward, uint32_t number, uint32_t seat, uint32_t group,
                uint32_t slots, enum gale_class of_class, uint64_t takes_us)
{
	struct ward_node *node = &ward->nodes[number];
	struct ward_guard *guard = node->guards[group];

	if (!ward_is_up(node) || !guard)
		return false;
	if (node->is_stopped)
		go_on(node);
	return host_enter(guard, seat, slots, of_class, takes_us);
}

/* ---- Time ------------------------------------------------------------------------ */

static uint64_t due_of(const struct ward_node *node)
{
	return node->due_us < node->fence_us ? node->due_us : node->fence_us;
}

static struct ward_node *first_due(struct ward *ward)
{
	struct ward_node *first = &ward->nodes[0];

	for (uint32_t i = 1; i < ward->plan.nodes; i++)
		if (due_of(&ward->nodes[i]) < due_of(first))
			first = &ward->nodes[i];
	return first;
}

void ward_run(struct ward *ward, uint64_t until_us)
{
	while (!ward->ended) {
		struct ward_node *node = first_due(ward);
		uint64_t event_us = agenda_next_us(&ward->agenda);

		if (due_of(node) > until_us && event_us > until_us)
			break;
		if (event_us <= due_of(node)) {
			agenda_step(&ward->agenda);
			continue;
		}
		ward->agenda.now_us = due_of(node);
		ward->agenda.happened++;
		go_on(node);
	}
	if (ward->agenda.now_us < until_us)
		ward->agenda.now_us = until_us;
}

/* ---- Opening and closing --------------------------------------------------------- */

static void beaten(struct net *net, struct port *port, const struct remote_job *job,
                   const struct remote_told *told)
{
	struct ward *ward = (struct ward *)((char *)net - offsetof(struct ward, net));

	(void)port;
	ward_law_beaten(ward, job, told);
	if (ward->station.nudge.is.whom > 0)
		ward_nudge(ward, &ward->station.nudge);
}

static void open_node(struct ward *ward, uint32_t number)
{
	struct ward_node *node = &ward->nodes[number];
	const struct ward_plan *plan = &ward->plan;
	uint64_t boot_us = BOOT_BASE - plan->offset_us +
	                   chance_below(&ward->chance, 2 * plan->offset_us + 1);
	int64_t rate_ppm =
	    (int64_t)chance_below(&ward->chance, 2 * plan->rate_ppm + 1) -
	    (int64_t)plan->rate_ppm;

	node->ward = ward;
	node->number = number;
	dial_open(&node->dial, &ward->agenda, rate_ppm, boot_us * 1000);
	node_start(node);
}

void ward_open(struct ward *ward, const struct ward_plan *plan, bool verbose)
{
	memset(ward, 0, sizeof(*ward));
	ward->verbose = verbose;
	ward->plan = *plan;
	ward->chance.state = plan->seed;
	lot_begin(~plan->seed);
	list_init(&ward->calls);
	agenda_open(&ward->agenda, WARD_START);
	net_open(&ward->net, &ward->agenda, &ward->chance, NULL);
	ward->net.terms = plan->net;
	ward->net.beaten = beaten;
	ward->clock_of_store.now_us = store_now_us;
	engine_station_init(&ward->station);
	station_open(&ward->station.station, &ward->clock_of_store);
	office_open(&ward->office, &ward->net, &ward->station.station);
	for (uint32_t i = 0; i < plan->nodes; i++)
		ward->nodes[i].due_us = ward->nodes[i].fence_us = NEVER;
	for (uint32_t i = 0; i < plan->nodes; i++)
		open_node(ward, i);
}

/* Of the agenda's events the letters and parcels are freed by those whose they are. */
static void free_all(struct ward *ward)
{
	struct ward_guard *guard;
	struct list *at;

	while ((at = list_first(&ward->calls))) {
		list_remove(at);
		free(list_item(at, struct ward_call, place));
	}
	while ((guard = ward->guards)) {
		ward->guards = guard->next;
		free(guard);
	}
	office_close(&ward->office);
	courier_parcels_free(&ward->parcels);
	net_close(&ward->net);
	agenda_close(&ward->agenda);
}

bool ward_close(struct ward *ward)
{
	for (uint32_t i = 0; i < ward->plan.nodes; i++)
		if (ward->nodes[i].runtime)
			ward_crash(ward, i);
	host_free_deeds(ward);
	ward->station.station.ops->close(&ward->station.station);
	free_all(ward);
	lot_end();
	return ward->fault[0] == '\0';
}
