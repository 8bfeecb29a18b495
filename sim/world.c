/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* world.c -- runs the fleet, and counts. */
#include "sim/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "face/face.h"
#include "stores/memory.h"
#include "sim/answers.h"
#include "sim/force.h"
#include "sim/law.h"
#include "sim/lot.h"
#include "sim/must.h"
#include "sim/room.h"

#define TURNS_MOST 1000 /* in a row: more is a fault */
#define BOOT_BASE GALE_HOURS(10)
#define NAME "sim"

__attribute__((format(printf, 2, 3))) static void trace(const struct world *world,
                                                        const char *format, ...)
{
	va_list args;

	if (!world->verbose)
		return;
	printf("%10" PRIu64 " ", world->agenda.now_us - WORLD_START);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* ---- Clocks ---------------------------------------------------------------------- */

static uint64_t true_us(struct gale_clock *self)
{
	struct world *world =
	    (struct world *)((char *)self - offsetof(struct world, clock_of_store));

	return world->agenda.now_us;
}

static struct node *node_of(struct port *port)
{
	return (struct node *)((char *)port - offsetof(struct node, port));
}

static uint32_t key_named(const uint8_t *name, uint32_t len)
{
	return (uint32_t)(name[len - 1] - 'a');
}

static uint32_t key_of(const struct lend_request *request)
{
	return key_named(request->key, request->key_len);
}

/* Of a rule that is in force, or was. */
static uint64_t life_ns(const struct world *world)
{
	uint64_t one = law_life_ns(&world->plan.rule), other;

	if (!force_changes(world))
		return one;
	other = law_life_ns(&world->plan.next);
	return one > other ? one : other;
}

/* The first answer to a request is the one that may be taken. */
static void arrives(struct net *net, struct port *port,
                    const struct lend_request *request,
                    const struct lend_answer *answer)
{
	struct world *world =
	    (struct world *)((char *)net - offsetof(struct world, net));
	struct node *node = node_of(port);
	uint64_t now_ns = dial_at(&node->dial, world->agenda.now_us);

	if (law_has_windows(&world->plan.rule) || request->verb != LEND ||
	    answer->result != STORE_DONE)
		return;
	law_arrives(world, &node->pots[key_of(request)], answer,
	            dial_true(&node->dial, now_ns + life_ns(world)));
}

/* ---- Answers --------------------------------------------------------------------- */

static void count(struct node *node, struct gale_answer answer)
{
	node->allowed += answer.verdict == GALE_ALLOW;
	node->denied += answer.verdict == GALE_DENY;
	node->allows += answer.verdict == GALE_ALLOW && answer.why == GALE_WHY_CREDIT;
}

static void settle(struct world *world, struct call *call, struct gale_answer answer)
{
	count(&world->nodes[call->node], answer);
	call->answer = answer;
	if (call->pending) {
		answers_check_patience(world, call);
		world->nodes[call->node].pending--;
	}
	call->pending = false;
	trace(world, "node %u key %u cost %" PRIu64 ": %s, %s, in %" PRIu64 " ns",
	      call->node, call->key, call->cost,
	      answer.verdict == GALE_ALLOW ? "allow" : "deny",
	      gale_why_text(answer.why), answer.delay_ns);
	if (answer.verdict == GALE_ALLOW) {
		answers_check_allow(world, call);
		law_admit(world, call);
		return;
	}
	world->denials++;
	if (answer.verdict != GALE_DENY)
		world_fault(world, "a verdict of %d", (int)answer.verdict);
	if (answer.why == GALE_WHY_CLOSED)
		return;
	if (answer.why == GALE_WHY_RULE)
		law_denied(world, call);
	answers_check_denial(world, call);
}

static void take_completions(struct node *node, struct gale_seat *seat)
{
	struct gale_completion some[8];
	size_t count;

	do {
		count = gale_seat_completions(seat, some, 8);
		for (size_t i = 0; i < count; i++) {
			struct call *call = some[i].tag;

			if (!call->pending)
				world_fault(node->world, "answered twice");
			settle(node->world, call, some[i].answer);
		}
	} while (count == 8);
}

static void take_all_completions(struct node *node)
{
	for (uint32_t i = 0; i < node->world->plan.seats; i++)
		take_completions(node, node->seats[i]);
}

/* ---- Turns ----------------------------------------------------------------------- */

static void note_due(struct node *node)
{
	uint64_t now = node->world->agenda.now_us;

	node->due_us = UINT64_MAX;
	for (uint32_t i = 0; i < node->runtime->shard_count; i++) {
		uint64_t due = load_relaxed(&node->runtime->shards[i].lessor_due_ns);
		uint64_t at_us = due == UINT64_MAX ? due : dial_true(&node->dial, due);

		if (at_us < node->due_us)
			node->due_us = at_us;
	}
	if (node->due_us <= now)
		node->due_us = now + 1;
}

/* As if many threads had been at each of its keys; of those that are split, at every other, and
 * in the next second at the others. */
static void heat(struct node *node)
{
	uint64_t second = node->world->agenda.now_us / GALE_SECONDS(1);

	for (uint32_t i = 0; i < node->runtime->shard_count; i++) {
		struct purses *set = &node->runtime->shards[i].lessor.purses;

		for (uint32_t j = 0; j < set->own.made; j++)
			if ((j + second) % 2 || !purse_is_split(purses_at(set, j)))
				store_relaxed(&purses_at(set, j)->contended, CONTENDED);
	}
}

static void take_turns(struct node *node)
{
	int turns = 0;

	if (!node->runtime)
		return;
	if (node->paused_us > node->world->agenda.now_us) {
		node->due_us = node->paused_us;
		return;
	}
	if (node->world->plan.hot)
		heat(node);
	while (gale_turn(node->runtime) > 0 && turns < TURNS_MOST)
		turns++;
	if (turns == TURNS_MOST) {
		world_fault(node->world, "node %u does not rest", node->number);
		node->world->ended = true;
	}
	take_all_completions(node);
	note_due(node);
}

static void came(struct port *port)
{
	take_turns(node_of(port));
}

void world_turns(struct world *world, uint32_t node)
{
	take_turns(&world->nodes[node]);
}

/* ---- Nodes ----------------------------------------------------------------------- */

/* The library's draws by lot follow from the seed, too, and the number of a key's cells
 * is the same on all machines. */
static void tame(struct node *node)
{
	struct gale_runtime *runtime = node->runtime;

	runtime->node = chance_next(&node->world->chance) % GALE_UNITS_MAX + 1;
	runtime->seed = chance_next(&node->world->chance);
	for (uint32_t i = 0; i < runtime->shard_count; i++) {
		runtime->shards[i].lessor.config.node = runtime->node;
		runtime->shards[i].lessor.config.seats = WORLD_SEATS;
	}
}

static void open_store(struct node *node)
{
	struct gale_store_config config = { .max_keys = 1 };
	struct world *world = node->world;

	must(gale_store_open(node->runtime, &config, &node->store) == GALE_ERR_OK);
	port_open(&node->port, &world->net, node->store->inner);
	node->port.came = came;
	node->store->inner = &node->port.store;
	if (world->plan.fails)
		node->store->inner = office_store(&world->office, &node->port,
		                                  &node->allocator.allocator,
		                                  chance_next(&world->chance));
}

static void open_limiter(struct node *node)
{
	const struct world_plan *plan = &node->world->plan;
	struct gale_limiter_config config = { .name = NAME,
		                              .rule = *force_rule_of(node),
		                              .mode = plan->mode,
		                              .store = node->store,
		                              .lease = plan->lease };

	if (node->strict)
		config.mode = GALE_STRICT;
	must(gale_limiter_open(node->runtime, &config, &node->limiter) == GALE_ERR_OK);
}

static void node_start(struct node *node)
{
	const struct world_plan *plan = &node->world->plan;
	struct gale_config config = { .shards = plan->shards,
		                      .pending_max = plan->pending ? plan->pending : 64,
		                      .max_keys = plan->node_keys,
		                      .turns = true,
		                      .allocator = &node->allocator.allocator,
		                      .clock = &node->dial.clock };

	test_allocator_init(&node->allocator);
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	tame(node);
	open_store(node);
	open_limiter(node);
	for (uint32_t i = 0; i < plan->seats; i++)
		must(gale_join(node->runtime, &node->seats[i]) == GALE_ERR_OK);
	memset(node->held, 0, sizeof(node->held));
	node->due_us = UINT64_MAX;
	node->paused_us = 0;
	node->allowed = node->denied = node->allows = node->admitted = 0;
	memset(node->pots, 0, sizeof(node->pots));
}

static void close_held(struct node *node)
{
	for (uint32_t i = 0; i < node->world->plan.seats; i++)
		for (uint32_t j = 0; j < node->world->plan.keys; j++)
			gale_key_close(node->held[i][j]);
}

static void close_rest(struct node *node)
{
	close_held(node);
	for (uint32_t i = 0; i < node->world->plan.seats; i++)
		gale_leave(node->seats[i]);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
}

static void node_is_down(struct node *node)
{
	node->runtime = NULL;
	node->port.life++;
	node->pending = 0;
	node->due_us = UINT64_MAX;
	if (!test_allocator_is_balanced(&node->allocator))
		world_fault(node->world, "node %u has kept memory", node->number);
}

uint64_t world_metric(struct world *world, uint32_t node, const char *name)
{
	struct gale_metric metrics[64];
	size_t count = gale_metrics(world->nodes[node].runtime, metrics, 64);

	for (size_t i = 0; i < count && i < 64; i++)
		if (strcmp(metrics[i].name, name) == 0)
			return metrics[i].value;
	printf("no counter is called %s\n", name);
	abort();
}

static void check_count(struct node *node, const char *name, uint64_t told)
{
	uint64_t counted = world_metric(node->world, node->number, name);

	if (counted != told)
		world_fault(node->world, "node %u counted %" PRIu64 " %s, not %" PRIu64,
		            node->number, counted, name, told);
}

static void check_metrics(struct node *node) /* SIM-5 */
{
	struct world *world = node->world;
	uint64_t lent = world_metric(world, node->number, "units_lent");
	uint64_t back = world_metric(world, node->number, "units_given_back");

	check_count(node, "asks_allowed", node->allowed);
	check_count(node, "asks_denied", node->denied);
	check_count(node, "allowed_from_credit", node->allows);
	if (node->strict)
		return;
	if (lent < node->admitted + back)
		world_fault(world,
		            "node %u was lent %" PRIu64 ", gave back %" PRIu64
		            " and admitted %" PRIu64,
		            node->number, lent, back, node->admitted);
}

void world_crash(struct world *world, uint32_t number)
{
	struct node *node = &world->nodes[number];

	trace(world, "node %u crashes", number);
	check_metrics(node);
	node->port.dead = true;
	close_rest(node);
	gale_runtime_close(node->runtime);
	node_is_down(node);
	world->crashes++;
}

void world_shut(struct world *world, uint32_t number)
{
	struct node *node = &world->nodes[number];

	trace(world, "node %u is closed", number);
	check_metrics(node);
	gale_runtime_close(node->runtime);
	take_all_completions(node); /* pending asks are answered first */
	if (node->pending > 0)
		world_fault(world, "%u calls of node %u were not answered by the end",
		            node->pending, number);
	close_rest(node);
	node_is_down(node);
}

void world_start(struct world *world, uint32_t number)
{
	trace(world, "node %u starts", number);
	node_start(&world->nodes[number]);
	world->restarts++;
}

void world_pause(struct world *world, uint32_t number, uint64_t until_us)
{
	struct node *node = &world->nodes[number];

	take_turns(node); /* what it has been asked before is not part of it */
	trace(world, "node %u pauses until %" PRIu64, number, until_us - WORLD_START);
	node->paused_us = until_us;
	node->port.held_us = until_us;
	node->due_us = until_us;
	world->pauses++;
}

void world_cut(struct world *world, uint32_t number, uint64_t until_us)
{
	trace(world, "node %u is cut off until %" PRIu64, number,
	      until_us - WORLD_START);
	world->nodes[number].port.cut_us = until_us;
	world->partitions++;
}

void world_change(struct world *world, uint32_t number, bool changed)
{
	struct node *node = &world->nodes[number];

	trace(world, "node %u has the %s rule", number, changed ? "next" : "first");
	must(node->paused_us <= world->agenda.now_us);
	law_changes(world);
	world->with[node->changed]--;
	node->changed = changed;
	world->with[node->changed]++;
	law_changes(world);
	world->changes++;
	if (!node->runtime)
		return;
	must(gale_limiter_set_rule(node->limiter, force_rule_of(node)) == GALE_ERR_OK);
	take_turns(node);
}

void world_replicate(struct world *world)
{
	trace(world, "the replica has all");
	world->station->ops->replicate(world->station);
}

void world_fail_over(struct world *world)
{
	trace(world, "the replica takes over");
	office_fail_over(&world->office);
	world->fail_overs++;
}

/* ---- Asking ---------------------------------------------------------------------- */

static void make_call_room(struct world *world)
{
	if (world->call_count < world->call_room)
		return;
	world->call_room = world->call_room ? 2 * world->call_room : 64;
	world->calls = room_for(world->calls, world->call_room * sizeof(*world->calls));
}

static struct call *call_new(struct world *world, const struct node *node, uint32_t key,
                             uint64_t cost)
{
	struct call *call = room_new(sizeof(*call));

	make_call_room(world);
	world->calls[world->call_count++] = call;
	call->life = node->port.life;
	call->asked_us = world->agenda.now_us;
	call->node = node->number;
	call->key = key;
	call->cost = cost;
	return call;
}

static struct gale_key *held_key(struct node *node, uint32_t seat, uint32_t key)
{
	char name = (char)('a' + key);

	if (!node->held[seat][key])
		must(gale_key_open(node->seats[seat], node->limiter, &name, 1,
		                   &node->held[seat][key]) == GALE_ERR_OK);
	return node->held[seat][key];
}

static struct gale_answer ask(struct node *node, uint32_t seat, struct call *call)
{
	struct world *world = node->world;
	char name = (char)('a' + call->key);
	struct gale_question question = { &name, 1, call->cost, call };
	struct gale_answer answer;

	if (world->plan.held && chance_one_in(&world->chance, 3))
		return gale_ask_key(held_key(node, seat, call->key), call->cost, call);
	if (!chance_one_in(&world->chance, 4))
		return gale_ask(node->seats[seat], node->limiter, &name, 1, call->cost,
		                call);
	gale_ask_many(node->seats[seat], node->limiter, &question, 1, &answer);
	return answer;
}

/* A host that is slow to see that its descriptor is readable. */
static void take_turns_later(struct node *node, struct call *call, uint64_t later_us)
{
	call->seen_us = call->asked_us + later_us;
	if (node->due_us > call->seen_us)
		node->due_us = call->seen_us;
}

struct call *world_ask_only(struct world *world, uint32_t number, uint32_t seat,
                            uint32_t key, uint64_t cost, uint64_t later_us)
{
	struct node *node = &world->nodes[number];
	struct call *call = call_new(world, node, key, cost);
	struct gale_answer answer;

	take_turns_later(node, call, later_us);
	answer = ask(node, seat, call);
	if (answer.verdict == GALE_PENDING) {
		call->pending = true;
		node->pending++;
		return call;
	}
	settle(world, call, answer);
	return call;
}

struct call *world_ask(struct world *world, uint32_t number, uint32_t seat,
                       uint32_t key, uint64_t cost)
{
	struct call *call = world_ask_only(world, number, seat, key, cost, 0);

	take_turns(&world->nodes[number]);
	return call;
}

void world_forget(struct world *world, struct call *call)
{
	world->nodes[call->node].pending--;
	call->pending = false;
}

/* ---- Time ------------------------------------------------------------------------ */

static struct node *first_due(struct world *world)
{
	struct node *first = &world->nodes[0];

	for (uint32_t i = 1; i < world->plan.nodes; i++)
		if (world->nodes[i].due_us < first->due_us)
			first = &world->nodes[i];
	return first;
}

void world_run(struct world *world, uint64_t until_us)
{
	while (!world->ended) {
		struct node *node = first_due(world);
		uint64_t event_us = agenda_next_us(&world->agenda);

		if (node->due_us > until_us && event_us > until_us)
			break;
		if (event_us <= node->due_us) {
			agenda_step(&world->agenda);
			continue;
		}
		world->agenda.now_us = node->due_us;
		world->agenda.happened++;
		take_turns(node);
	}
	if (world->agenda.now_us < until_us)
		world->agenda.now_us = until_us;
}

/* ---- Opening and closing --------------------------------------------------------- */

static uint32_t number_of(const struct world *world, uint64_t node)
{
	for (uint32_t i = 0; i < world->plan.nodes; i++)
		if (world->nodes[i].runtime && world->nodes[i].runtime->node == node)
			return i;
	return WORLD_NODES; /* of another life */
}

static struct pot *pot_of(struct world *world, const struct lend_request *request)
{
	uint32_t number = number_of(world, request->ask.node);

	return number < WORLD_NODES ? &world->nodes[number].pots[key_of(request)]
	                            : NULL;
}

/* Units that the store lends are counted where it lends them.  A request that comes twice may be
 * granted twice, but only one answer is taken. */
static void served(struct net *net, const struct lend_request *request,
                   const struct lend_answer *answer, uint64_t before)
{
	struct world *world =
	    (struct world *)((char *)net - offsetof(struct world, net));
	uint32_t key = key_of(request);

	trace(world,
	      "the store: key %u, node %u %s %" PRIu64 " of %" PRIu64 " (%" PRIu64
	      "), for %" PRIu64 " us, in %" PRIu64 " ns%s",
	      key, number_of(world, request->ask.node),
	      request->verb == LEND ? "is lent" : "gives back",
	      request->verb == LEND ? answer->grant.units : request->units,
	      request->ask.want, request->ask.number, answer->grant.lasts_us,
	      answer->grant.delay_ns, answer->result == STORE_DONE ? "" : ": not done");
	law_note(world, key, request->rule,
	         answer->result == STORE_DONE &&
	             (request->verb != LEND || answer->grant.units > 0));
	if (answer->result != STORE_DONE)
		return;
	if (request->verb == LEND)
		law_lent(world, key, pot_of(world, request), answer, before);
	else
		law_given_back(world, key, request->units, before);
}

/* The instant of its step is that of the admission, whichever node hears of it. */
static void stepped(struct net *net, const uint8_t *key, uint32_t key_len,
                    const struct rule *rule, uint64_t cost)
{
	struct world *world =
	    (struct world *)((char *)net - offsetof(struct world, net));

	law_stepped(world, key_named(key, key_len), rule, cost);
}

static void open_station(struct world *world)
{
	engine_station_init(&world->by_engine);
	world->station =
	    world->plan.station ? world->plan.station : &world->by_engine.station;
	station_open(world->station, &world->clock_of_store);
	office_open(&world->office, &world->net, world->station);
}

/* NULL: it is a server. */
static struct store *open_shared(struct world *world)
{
	struct memory_config config = { .name = "",
		                        .max_keys = 1000000,
		                        .allocator = &world->allocator.allocator,
		                        .clock = &world->clock_of_store };
	struct store *store;

	test_allocator_init(&world->allocator);
	world->clock_of_store.now_us = true_us;
	if (world->plan.fails) {
		open_station(world);
		return NULL;
	}
	store = memory_open(&config);
	must(store);
	return store;
}

static void open_node(struct world *world, uint32_t number)
{
	struct node *node = &world->nodes[number];
	const struct world_plan *plan = &world->plan;
	uint64_t offset_us = chance_below(&world->chance, 2 * plan->offset_us + 1);
	uint64_t boot_ns;
	int64_t rate_ppm;

	node->world = world;
	node->number = number;
	node->strict = number < plan->strict;
	rate_ppm = (int64_t)chance_below(&world->chance, 2 * plan->rate_ppm + 1) -
	           (int64_t)plan->rate_ppm;
	boot_ns = (BOOT_BASE + offset_us - plan->offset_us) * 1000;
	boot_ns += chance_below(&world->chance, 1000);
	dial_open(&node->dial, &world->agenda, rate_ppm, boot_ns);
	node_start(node);
}

void world_open(struct world *world, const struct world_plan *plan)
{
	memset(world, 0, sizeof(*world));
	world->plan = *plan;
	world->chance.state = plan->seed;
	lot_begin(~plan->seed);
	agenda_open(&world->agenda, WORLD_START);
	net_open(&world->net, &world->agenda, &world->chance, open_shared(world));
	world->net.terms = plan->net;
	world->net.served = served;
	world->net.stepped = stepped;
	world->net.arrives = arrives;
	world->with[0] = plan->nodes;
	for (uint32_t i = 0; i < plan->nodes; i++)
		open_node(world, i);
}

static void check_calls(struct world *world)
{
	for (size_t i = 0; i < world->call_count; i++) {
		const struct call *call = world->calls[i];
		const struct node *node = &world->nodes[call->node];

		if (!call->pending)
			continue;
		if (node->runtime && call->life == node->port.life)
			world_fault(world, "call %zu was never answered", i);
		else
			world->unanswered++;
	}
}

static void free_all(struct world *world)
{
	for (size_t i = 0; i < world->call_count; i++)
		free(world->calls[i]);
	free(world->calls);
	law_free(world);
	net_close(&world->net);
	agenda_close(&world->agenda);
}

static void close_shared(struct world *world)
{
	if (world->net.shared) {
		world->net.shared->ops->close(world->net.shared);
		return;
	}
	office_close(&world->office);
	world->station->ops->close(world->station);
}

bool world_close(struct world *world)
{
	check_calls(world);
	for (uint32_t i = 0; i < world->plan.nodes; i++)
		if (world->nodes[i].runtime)
			world_shut(world, i);
	law_end(world);
	close_shared(world);
	if (!test_allocator_is_balanced(&world->allocator))
		world_fault(world, "the store has kept memory");
	free_all(world);
	lot_end();
	return world->fault[0] == '\0';
}

uint64_t world_used(const struct world *world, uint32_t key, size_t window)
{
	const struct key_law *law = &world->laws[key];

	return window < law->windows ? law->used[window] : 0;
}
