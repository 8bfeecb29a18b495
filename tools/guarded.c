/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* guarded.c -- one thread that begins calls when they are due, and ends those that are over. */
#define _GNU_SOURCE
#include "tools/guarded.h"

#include <stdlib.h>

#include "tools/caller.h"
#include "tools/last_line.h"

#define SECOND_NS 1000000000
#define TURN_MOST_NS 5000000 /* also when no call is due */
#define BURST 256            /* calls that are due are begun in one turn, at most */
#define TELL_NS 20000000

struct flight {
	struct gale_entry entry; /* of a call */
	uint64_t began_ns;
	uint32_t next_free;
	bool is_used;
};

struct pilot {
	struct caller_taker taker; /* first */
	struct gale_on_fenced on_fenced;
	const struct guarded_plan *plan;
	struct last_line last_line;
	struct guarded *guarded;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
	struct gale_guard *guard;
	struct caller caller;
	_Atomic bool is_fenced; /* and its calls are to be cancelled */
	uint64_t due_ns;        /* the next call */
	uint64_t told_ns;
	uint64_t calls;
	uint32_t free;  /* the first flight that is */
	uint32_t count; /* of those that are used */
	struct flight flights[GUARDED_CALLS];
};

static void add(_Atomic uint64_t *counter, uint64_t count)
{
	atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
}

/* ---- Opening --------------------------------------------------------------------- */

/* On a thread of gale's. */
static void note_fence(struct gale_on_fenced *self, struct gale_guard *guard)
{
	struct pilot *pilot =
	    (struct pilot *)((char *)self - offsetof(struct pilot, on_fenced));

	(void)guard;
	add(&pilot->guarded->fences, 1);
	atomic_store(&pilot->is_fenced, true);
}

static enum gale_err open_guard(struct pilot *pilot)
{
	struct gale_guard_config config = pilot->plan->guard;

	config.store = pilot->store;
	config.node = pilot->plan->name;
	if (pilot->store)
		config.on_fenced = &pilot->on_fenced;
	return gale_guard_open(pilot->runtime, &config, &pilot->guard);
}

static enum gale_err open_gale(struct pilot *pilot)
{
	const struct gale_config config = { .shards = 1,
		                            .max_keys = 64,
		                            .log = pilot->plan->log
		                                       ? pilot->plan->log
		                                       : &pilot->last_line.log };
	const struct gale_store_config store = { .url = pilot->plan->store };
	enum gale_err err = gale_runtime_open(&config, &pilot->runtime);

	if (err == GALE_ERR_OK && store.url)
		err = gale_store_open(pilot->runtime, &store, &pilot->store);
	if (err == GALE_ERR_OK)
		err = gale_join(pilot->runtime, &pilot->seat);
	if (err == GALE_ERR_OK)
		err = open_guard(pilot);
	return err;
}

static void close_gale(struct pilot *pilot)
{
	if (pilot->guard)
		gale_guard_close(pilot->guard);
	if (pilot->seat)
		gale_leave(pilot->seat);
	if (pilot->store)
		gale_store_close(pilot->store);
	if (pilot->runtime)
		gale_runtime_close(pilot->runtime);
}

/* ---- Calls ----------------------------------------------------------------------- */

static void end_flight(struct pilot *pilot, uint32_t number, enum backend_end end)
{
	struct flight *flight = &pilot->flights[number];
	struct guarded *guarded = pilot->guarded;

	gale_exit(pilot->seat, &flight->entry,
	          end == BACKEND_DONE ? GALE_OK : GALE_DROPPED);
	if (end == BACKEND_DONE)
		add(&guarded->round_trips_us,
		    (backend_now_ns() - flight->began_ns) / 1000);
	add(end == BACKEND_DONE ? &guarded->done : &guarded->aborted, 1);
	flight->is_used = false;
	flight->next_free = pilot->free;
	pilot->free = number;
	pilot->count--;
	atomic_store(&guarded->in_flight, pilot->count);
}

static void call_ended(struct caller_taker *self, uint64_t number, enum backend_end end)
{
	end_flight((struct pilot *)self, (uint32_t)number, end);
}

/* The backend has cut the connection: they have ended there. */
static void end_all_flights(struct pilot *pilot)
{
	for (uint32_t i = 0; i < GUARDED_CALLS; i++)
		if (pilot->flights[i].is_used)
			end_flight(pilot, i, BACKEND_ABORTED);
}

static void begin_flight(struct pilot *pilot, const struct gale_entry *entry)
{
	uint32_t number = pilot->free;
	struct flight *flight = &pilot->flights[number];

	pilot->free = flight->next_free;
	flight->entry = *entry;
	flight->began_ns = pilot->caller.now_ns;
	flight->is_used = true;
	pilot->count++;
	atomic_store(&pilot->guarded->in_flight, pilot->count);
	caller_call(&pilot->caller, number, atomic_load(&pilot->guarded->takes_us));
}

static void call(struct pilot *pilot)
{
	uint32_t every = pilot->plan->sheddable_every;
	bool sheddable = every > 0 && pilot->calls % every == 0;
	struct gale_entry entry = gale_enter(pilot->seat, pilot->guard, 1,
	                                     sheddable ? GALE_SHEDDABLE : GALE_NORMAL);

	pilot->calls++;
	add(&pilot->guarded->asked, 1);
	if (entry.verdict == GALE_ALLOW) {
		add(&pilot->guarded->entered, 1);
		begin_flight(pilot, &entry);
		return;
	}
	add(&pilot->guarded->refused_by[entry.why], 1);
	/* gale may have no thread at the moment that could have said it. */
	if (entry.why == GALE_WHY_CUT_OFF && pilot->count > 0)
		atomic_store(&pilot->is_fenced, true);
}

/* Calls that were due long ago are not made up for: the backend would get them at once. */
static void begin_due_calls(struct pilot *pilot)
{
	uint64_t rate = atomic_load(&pilot->guarded->calls_per_s);
	uint64_t now_ns = pilot->caller.now_ns, step_ns;

	if (rate == 0 || atomic_load(&pilot->guarded->ends)) {
		pilot->due_ns = now_ns + TURN_MOST_NS;
		return;
	}
	step_ns = SECOND_NS / rate;
	if (pilot->due_ns > now_ns + step_ns)
		pilot->due_ns = now_ns + step_ns; /* it was slower */
	for (int i = 0; i < BURST && pilot->due_ns <= now_ns; i++) {
		if (pilot->count < GUARDED_CALLS)
			call(pilot);
		pilot->due_ns += step_ns;
	}
	if (pilot->due_ns < now_ns)
		pilot->due_ns = now_ns;
}

/* ---- The run --------------------------------------------------------------------- */

static void tell(struct pilot *pilot)
{
	struct gale_guard_counts counts;

	if (pilot->caller.now_ns < pilot->told_ns + TELL_NS ||
	    gale_guard_stats(pilot->guard, &counts) != GALE_ERR_OK)
		return;
	pilot->told_ns = pilot->caller.now_ns;
	atomic_store(&pilot->guarded->limit, counts.limit);
	atomic_store(&pilot->guarded->fleet_limit, counts.fleet_limit);
	atomic_store(&pilot->guarded->is_ready, true);
}

static bool connect_caller(struct pilot *pilot)
{
	return caller_open(&pilot->caller, pilot->plan->backend, pilot->plan->node,
	                   pilot->plan->backend_abort_us, &pilot->taker);
}

static uint64_t turn_end_ns(const struct pilot *pilot)
{
	uint64_t most_ns = pilot->caller.now_ns + TURN_MOST_NS;

	return pilot->due_ns < most_ns ? pilot->due_ns : most_ns;
}

static void fly(struct pilot *pilot)
{
	caller_begin_turn(&pilot->caller);
	if (atomic_exchange(&pilot->is_fenced, false))
		caller_cancel(&pilot->caller);
	begin_due_calls(pilot);
	tell(pilot);
}

static bool run(struct pilot *pilot)
{
	struct guarded *guarded = pilot->guarded;
	bool is_connected = connect_caller(pilot);

	while (is_connected && (!atomic_load(&guarded->ends) || pilot->count > 0)) {
		if (atomic_load(&guarded->ends))
			atomic_store(&pilot->is_fenced, true);
		fly(pilot);
		if (caller_turn(&pilot->caller, turn_end_ns(pilot)))
			continue;
		end_all_flights(pilot);
		add(&guarded->cuts, 1);
		caller_close(&pilot->caller);
		is_connected = connect_caller(pilot);
	}
	caller_close(&pilot->caller);
	return is_connected ||
	       sentence_say(&guarded->why,
	                    "the backend cannot be reached: run the command again");
}

static bool cannot_start(struct pilot *pilot, enum gale_err err)
{
	struct sentence failed;

	sentence_say(&failed, "a node cannot start: %s", gale_err_text(err));
	return last_line_explain(&pilot->last_line, failed.is, &pilot->guarded->why);
}

static void init(struct pilot *pilot, struct guarded *guarded,
                 const struct guarded_plan *plan)
{
	last_line_open(&pilot->last_line);
	pilot->taker.ended = call_ended;
	pilot->on_fenced.fenced = note_fence;
	pilot->plan = plan;
	pilot->guarded = guarded;
	pilot->due_ns = backend_now_ns();
	for (uint32_t i = 0; i < GUARDED_CALLS; i++)
		pilot->flights[i].next_free = i + 1;
}

bool guarded_run(struct guarded *guarded, const struct guarded_plan *plan)
{
	struct pilot *pilot = calloc(1, sizeof(*pilot));
	enum gale_err err;
	bool good;

	if (!pilot)
		return sentence_say(&guarded->why,
		                    "not enough memory for a node: give fewer");
	init(pilot, guarded, plan);
	err = open_gale(pilot);
	good = err == GALE_ERR_OK ? run(pilot) : cannot_start(pilot, err);
	close_gale(pilot);
	last_line_close(&pilot->last_line);
	free(pilot);
	atomic_store(&guarded->has_ended, true);
	return good;
}
