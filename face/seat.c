/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * seat.c -- joins, leaves, sends asks away and sorts what comes back.
 *
 * An ask runs on the asker's own thread if the store can do it at once.  If not, it is
 * copied into one of the seat's pendings and goes to a shard:
 *
 *            send              answered (shard)       collect
 *     free --------> with the --------------> done -----------> ready ---> the user
 *       ^             shard                  mailbox    |         (in order)
 *       '------- abandoned, or awaited and taken -------'
 *
 * Invariants
 *
 *   SEAT-1  A pending is in exactly one of: the free list, a shard's hands, the done
 *           mailbox, the ready list, the hands of the one who awaits it.
 *   SEAT-2  The done mailbox has a slot for each pending, so posting to it cannot fail.
 *   SEAT-3  The seat lives until its thread has left and no shard holds an ask of it.
 *   SEAT-4  A number below CELLS_MOST is of one seat at a time, and so are its cells.
 *           All seats for which there is none have CELLS_MOST, and no cells; so has a
 *           seat that has left, whose number stays taken until it dies.
 *
 * Threads   Everything but answered runs on the seat's own thread.
 */
#define _GNU_SOURCE
#include "face/lend.h"

#include <string.h>

#include "engine/check.h"
#include "face/guard.h"
#include "face/tenants.h"
#include "runtime/clock.h"
#include "runtime/memory.h"

#define TURN_OF_ANOTHER_NS 500000 /* about how long it takes */

/* ---- Joining and leaving --------------------------------------------------------- */

static struct gale_seat *seat_of_home(struct ask_home *home)
{
	return (struct gale_seat *)((char *)home - offsetof(struct gale_seat, home));
}

/* On the shard's thread. */
static void answered(struct ask_home *home, struct ask *ask)
{
	struct gale_seat *seat = seat_of_home(home);

	gale_assert(mailbox_post(&seat->done, ask)); /* SEAT-2 */
	wake_raise(&seat->wake);
	handle_drop(&seat->handle); /* SEAT-3 */
}

/* Of the seat's own. */
static mono look_now(struct kept_clock *clock)
{
	return seat_look(
	    (struct gale_seat *)((char *)clock - offsetof(struct gale_seat, clock)));
}

void seat_recycle(struct gale_seat *seat, struct pending *pending)
{
	if (pending->ask.keeps)
		seat_give_back(seat, pending->limiter, &pending->ask.kept);
	pending->ask.keeps = false;
	seat->notes -= pending->ask.is_note;
	pending->ask.is_note = pending->ask.is_due = false;
	handle_drop(pending->limiter ? &pending->limiter->handle
	                             : &pending->tenant->handle);
	pending->limiter = NULL;
	pending->tenant = NULL;
	pending->next = seat->free;
	seat->free = pending; /* SEAT-1 */
}

static void append(struct pending_list *list, struct pending *pending)
{
	pending->next = NULL;
	if (list->first)
		list->last->next = pending;
	else
		list->first = pending;
	list->last = pending;
}

static struct pending *take_first(struct pending_list *list)
{
	struct pending *first = list->first;

	if (first)
		list->first = first->next;
	return first;
}

/* Sorts what the shards have answered: to whom it belongs now. */
void seat_collect(struct gale_seat *seat)
{
	struct pending *pending;

	wake_clear(&seat->wake);
	while ((pending = mailbox_take(&seat->done))) {
		if (pending->abandoned)
			seat_recycle(seat, pending);
		else if (pending->awaited)
			pending->answered = true;
		else
			append(&seat->ready, pending);
	}
}

static size_t pendings_bytes(const struct gale_runtime *runtime)
{
	return runtime->pending_max * sizeof(struct pending);
}

static size_t done_bytes(const struct gale_seat *seat)
{
	return seat->done_count * sizeof(struct mail_slot);
}

static void seat_free_parts(struct gale_seat *seat)
{
	struct gale_runtime *runtime = seat->handle.runtime;

	memory_give(runtime->allocator, seat->pendings, pendings_bytes(runtime));
	memory_give(runtime->allocator, seat->done_slots, done_bytes(seat));
	score_free(seat);
}

/* The lowest that no other seat has; CELLS_MOST if all are taken. SEAT-4 */
static uint32_t take_number(struct gale_runtime *runtime) ON(runtime->lock)
{
	uint64_t free = ~runtime->locked.numbers;
	uint32_t number;

	if (free == 0)
		return CELLS_MOST;
	number = (uint32_t)__builtin_ctzll(free);
	runtime->locked.numbers |= UINT64_C(1) << number;
	return number;
}

static void give_number(struct gale_runtime *runtime, uint32_t number) ON(runtime->lock)
{
	if (number < CELLS_MOST)
		runtime->locked.numbers &= ~(UINT64_C(1) << number);
}

static const _Atomic uint64_t no_pass; /* is no token */

static const _Atomic uint64_t *pass_of(const struct gale_seat *seat)
{
	const struct gale_runtime *runtime = seat->handle.runtime;

	return seat->number < runtime->cell_count ? runtime->lifeline.word : &no_pass;
}

/* False: there is no memory, and the seat is not listed. */
static bool list(struct gale_seat *seat)
{
	struct gale_runtime *runtime = seat->handle.runtime;
	bool joined;

	lock_take(&runtime->lock);
	joined = score_join(runtime, seat); /* SCORE-1 */
	if (joined) {
		seat->number = seat->taken = take_number(runtime);
		seat->pass = pass_of(seat);
		list_append(&runtime->locked.seats, &seat->place);
	}
	lock_drop(&runtime->lock);
	if (joined)
		grace_join(&runtime->grace, &seat->reader);
	return joined;
}

/* What it has counted stays counted. */
static void strike_off(struct gale_runtime *runtime, struct gale_seat *seat)
    ON(runtime->lock)
{
	for (int i = 0; i < SEAT_COUNTER_COUNT; i++)
		runtime->locked.counted[i] += load_relaxed(&seat->counters[i]);
	score_leave(runtime, seat);
	list_remove(&seat->place);
	give_number(runtime, seat->taken);
}

/* If it came so far as to be listed. */
static void unlist(struct gale_seat *seat)
{
	struct gale_runtime *runtime = seat->handle.runtime;

	grace_leave(&runtime->grace, &seat->reader);
	lock_take(&runtime->lock);
	if (list_has(&seat->place))
		strike_off(runtime, seat);
	lock_drop(&runtime->lock);
}

/* Asks of tenants that wait.  FUND-10 */
static void give_up_all(struct gale_seat *seat)
{
	for (uint32_t i = 0; i < seat->handle.runtime->pending_max; i++) {
		struct pending *pending = &seat->pendings[i];

		if (pending->tenant &&
		    fund_give_up(&pending->tenant->stake, &pending->wait))
			seat_wait_no_more(seat, pending);
	}
}

/* Those that are ready, and parts that were fetched of a whole that is not complete. */
static void recycle_all(struct gale_seat *seat)
{
	uint32_t most = seat->pendings ? seat->handle.runtime->pending_max : 0;

	for (uint32_t i = 0; i < most; i++) {
		struct pending *pending = &seat->pendings[i];

		if (!pending->limiter && !pending->tenant)
			continue; /* it is free */
		if (pending->limiter)
			score_drop(pending->limiter);
		else
			fund_undo(&pending->tenant->stake, &pending->wait);
		seat_recycle(seat, pending);
	}
}

/* By the last one who holds it: its own thread, or a shard with its last ask. */
static void seat_die(struct handle *self)
{
	struct gale_seat *seat = (struct gale_seat *)self;

	if (seat->wake.fd >= 0) {
		seat_collect(seat);
		wake_close(&seat->wake);
	}
	recycle_all(seat);
	unlist(seat);
	seat_free_parts(seat);
}

static uint32_t power_of_two_from(uint32_t least)
{
	uint32_t power = 2;

	while (power < least)
		power *= 2;
	return power;
}

static enum gale_err seat_make_parts(struct gale_seat *seat)
{
	struct gale_runtime *runtime = seat->handle.runtime;

	seat->home.answered = answered;
	seat->clock.now = look_now;
	seat->owner = pthread_self();
	seat->roots = runtime->roots;
	seat->lifeline = runtime->lifeline;
	seat->shard_count = runtime->shard_count;
	pocket_empty(&seat->pocket, POCKET_NOTHING);
	seat->done_count = power_of_two_from(runtime->pending_max);
	seat->wake.fd = -1;
	seat->pendings = memory_take(runtime->allocator, pendings_bytes(runtime));
	seat->done_slots = memory_take(runtime->allocator, done_bytes(seat));
	if (!seat->pendings || !seat->done_slots)
		return GALE_ERR_MEMORY;
	mailbox_init(&seat->done, seat->done_slots, seat->done_count);
	for (uint32_t i = 0; i < runtime->pending_max; i++) {
		seat->pendings[i].next = seat->free;
		seat->free = &seat->pendings[i];
	}
	seat->poller = (struct poller){ .poll_ns = runtime->poll_ns };
	return wake_open(&seat->wake) ? GALE_ERR_OK : GALE_ERR_SYSTEM;
}

enum gale_err gale_join(struct gale_runtime *runtime, struct gale_seat **ret_seat)
{
	enum gale_err err = runtime_error(runtime);
	struct gale_seat *seat;

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_seat)
		return GALE_ERR_RET;
	seat = handle_new(runtime, sizeof(*seat), seat_die);
	if (!seat)
		return GALE_ERR_MEMORY;
	err = seat_make_parts(seat);
	if (err == GALE_ERR_OK && !list(seat))
		err = GALE_ERR_MEMORY;
	if (err != GALE_ERR_OK) {
		handle_close(&seat->handle);
		return err;
	}
	*ret_seat = seat;
	return GALE_ERR_OK;
}

/* Where a seat that has left finds nothing: no grace period would keep what it reads. */
static alignas(CACHE_LINE) _Atomic uint64_t no_slots[TABLE_NEAR];
static const struct root no_root = { (uintptr_t)no_slots + HOME_BITS };

void gale_leave(struct gale_seat *seat)
{
	if (!seat || !lifeline_holds(&seat->handle.runtime->lifeline))
		return;
	seat_check_thread(seat);
	lock_take(&seat->handle.runtime->lock);
	guards_leave(seat->handle.runtime, seat->number);
	lock_drop(&seat->handle.runtime->lock);
	if (seat_is_in(seat)) /* else handle_close tells of that */
		give_up_all(seat);
	seat->number = CELLS_MOST; /* SEAT-4 */
	seat->pass = &no_pass;     /* no guard is entered quickly any more */
	seat->ticked = (mono){ 0 };
	seat->counter = (struct counter){ 0 };
	seat->roots = &no_root;
	seat->shard_count = 1;
	handle_close(&seat->handle);
}

/* ---- Sending and waiting -------------------------------------------------------- */

static void fill(struct pending *pending, struct gale_seat *seat,
                 struct gale_limiter *limiter, const struct store_op *op)
{
	struct ask *ask = &pending->ask;
	uint32_t skip = 1u + limiter->lender.name_len;

	memcpy(ask->key, op->key, op->key_len);
	ask->op = *op;
	ask->op.key = ask->key;
	ask->home = &seat->home;
	ask->lender = &limiter->lender;
	ask->due = (mono){ 0 };
	ask->keeps = ask->is_due = false;
	ask->hash = local_hash(&limiter->lender, ask->key + skip, op->key_len - skip);
	pending->limiter = limiter;
	pending->awaited = pending->answered = pending->abandoned = false;
	pending->whole = NULL;
}

static struct pending *take_free(struct gale_seat *seat)
{
	struct pending *pending;

	if (!seat->free) {
		seat_collect(seat); /* abandoned ones may have come back */
		seat_raise_if_ready(seat);
	}
	pending = seat->free;
	if (pending)
		seat->free = pending->next;
	return pending;
}

bool seat_post(struct gale_seat *seat, struct pending *pending)
{
	handle_hold(&seat->handle); /* SEAT-3 */
	if (runtime_post(seat->handle.runtime, &pending->ask))
		return true;
	handle_drop(&seat->handle);
	return false;
}

static bool post(struct gale_seat *seat, struct pending *pending)
{
	handle_hold(&pending->limiter->handle);
	if (seat_post(seat, pending))
		return true;
	seat_recycle(seat, pending);
	return false;
}

bool seat_has_free(struct gale_seat *seat, size_t count)
{
	struct pending *free;

	seat_collect(seat); /* abandoned ones may have come back */
	seat_raise_if_ready(seat);
	for (free = seat->free; free && count > 0; free = free->next)
		count--;
	return count == 0;
}

struct pending *seat_part(struct gale_seat *seat, struct gale_limiter *limiter,
                          const struct store_op *op)
{
	struct pending *part = take_free(seat);

	if (!part)
		return NULL;
	fill(part, seat, limiter, op);
	handle_hold(&limiter->handle);
	part->ask.keeps = true;
	part->ask.kept.purse = NULL;
	part->is_decided = false;
	return part;
}

void seat_ready(struct gale_seat *seat, struct pending *part)
{
	append(&seat->ready, part);
}

struct pending *seat_send(struct gale_seat *seat, struct gale_limiter *limiter,
                          const struct store_op *op, void *tag, mono due)
{
	struct pending *pending = take_free(seat);

	if (!pending)
		return NULL;
	fill(pending, seat, limiter, op);
	pending->tag = tag;
	pending->awaited = due.ns > 0;
	pending->ask.due = due;
	return post(seat, pending) ? pending : NULL;
}

/* Of a tenant: by the coordinator, or the thread that closes it. */
static void waited(struct fund_wait *wait)
{
	struct pending *pending =
	    (struct pending *)((char *)wait - offsetof(struct pending, wait));

	pending->ask.result = wait->result;
	pending->ask.home->answered(pending->ask.home, &pending->ask);
}

struct pending *seat_wait_for(struct gale_seat *seat, struct gale_tenant *tenant,
                              uint64_t cost, void *tag, bool awaited)
{
	struct pending *pending = take_free(seat);

	if (!pending)
		return NULL;
	pending->ask.home = &seat->home;
	pending->ask.op = (struct store_op){ .verb = STORE_STEP, .cost = cost };
	pending->ask.keeps = pending->ask.is_due = false;
	pending->tenant = tenant;
	pending->wait = (struct fund_wait){ .done = waited, .op = &pending->ask.op };
	pending->tag = tag;
	pending->awaited = awaited;
	pending->answered = pending->abandoned = false;
	pending->whole = NULL;
	handle_hold(&tenant->handle);
	handle_hold(&seat->handle); /* SEAT-3 */
	return pending;
}

void seat_wait_no_more(struct gale_seat *seat, struct pending *pending)
{
	seat_recycle(seat, pending);
	handle_drop(&seat->handle);
}

/* Notes take at most half of the pendings, and never the last that is free: asks and
 * looks come first, and none of them fails for a note.  Where there is but one, a denial
 * is not noted. */
static bool may_note(struct gale_seat *seat)
{
	uint32_t most = seat->handle.runtime->pending_max / 2;

	if (seat->notes >= most || !seat->free || !seat->free->next) {
		seat_collect(seat); /* some may have been read */
		seat_raise_if_ready(seat);
	}
	return seat->notes < most && seat->free && seat->free->next;
}

void seat_note_denial(struct gale_seat *seat, struct gale_limiter *limiter,
                      const struct store_op *op, mono asked)
{
	struct pending *pending = may_note(seat) ? take_free(seat) : NULL;

	if (!pending)
		return;
	fill(pending, seat, limiter, op);
	pending->ask.is_note = true;
	pending->ask.due = asked;
	seat->notes++;
	pending->abandoned = true;
	(void)post(seat, pending);
}

/* The key as limiters make it. */
static size_t key_of(const struct gale_limiter *limiter, const struct purse *purse,
                     uint8_t *ret_key)
{
	const struct lender *lender = &limiter->lender;

	ret_key[0] = lender->name_len;
	memcpy(ret_key + 1, lender->name, lender->name_len);
	purse_copy_key(purse, ret_key + 1 + lender->name_len);
	return 1u + lender->name_len + purse->key_len;
}

/* A note, for which the seat may have no pending, and the shard no room. */
bool seat_note_due(struct gale_seat *seat, struct gale_limiter *limiter,
                   struct purse *purse)
{
	struct pending *pending = seat->free;
	uint8_t key[STORE_KEY_MAX];
	struct store_op op = { .verb = STORE_STEP, .key = key };

	if (seat->notes >= seat->handle.runtime->pending_max / 2 || !pending ||
	    !pending->next)
		return false;
	seat->free = pending->next;
	op.key_len = (uint32_t)key_of(limiter, purse, key);
	fill(pending, seat, limiter, &op);
	pending->ask.is_note = pending->ask.is_due = true;
	pending->ask.kept = (struct kept_units){ .purse = purse };
	seat->notes++;
	pending->abandoned = true;
	return post(seat, pending);
}

void seat_give_back(struct gale_seat *seat, struct gale_limiter *limiter,
                    struct kept_units *kept)
{
	bool owes;

	if (!kept->purse)
		return;
	owes = seat_put_back(seat, kept, credit_units(kept->word));
	seat_hand_on(seat, limiter, kept->purse, kept_books(kept->purse), owes);
	kept->purse = NULL;
}

/* What came for others while we looked for our own is still to be fetched. */
void seat_raise_if_ready(struct gale_seat *seat)
{
	if (seat->ready.first)
		wake_raise(&seat->wake);
}

/* Until something has come for the seat, or there is work for a turn: turn_fd says so,
 * unless it is -1. */
static void sleep_at_most(struct gale_seat *seat, int turn_fd, uint64_t most_ns,
                          uint64_t deadline_ns)
{
	uint64_t now = patience_now_ns();

	if (deadline_ns > now && most_ns < deadline_ns - now)
		deadline_ns = now + most_ns;
	wake_wait_for_either(seat->wake.fd, turn_fd, &seat->poller, deadline_ns);
}

/* Its store is another machine away: the answer comes when it comes. */
static bool is_elsewhere(const struct pending *pending)
{
	const struct gale_store *store =
	    pending->limiter ? pending->limiter->store : pending->tenant->budget->store;

	return store->inner->ops->turn != NULL;
}

/* How long a turn can wait, if no descriptor tells of work before.  What the host's clock
 * says of that may not hold: it is looked at again and again. */
static uint64_t may_sleep_ns(const struct gale_runtime *runtime)
{
	return runtime->node_clock == &runtime->boot.clock
	           ? runtime_turn_after_ns(runtime)
	           : TURN_OF_ANOTHER_NS;
}

/* Where the host takes the turns, one who waits takes them.  False if nothing can come
 * of it: the host's clock stands still, and nothing is to be done.  While another thread
 * turns it may not see what was posted meanwhile, nor do we what another is just posting,
 * so then we come back soon. */
static bool turn_a_while(struct gale_seat *seat, const struct pending *pending,
                         uint64_t deadline_ns)
{
	struct gale_runtime *runtime = seat->handle.runtime;
	struct shard_turned turned;

	if (!runtime_turn(runtime, &turned) || turned.held_up) {
		sleep_at_most(seat, -1, TURN_OF_ANOTHER_NS, deadline_ns);
		return true;
	}
	if (turned.done > 0)
		return true;
	if (runtime->node_clock != &runtime->boot.clock && !is_elsewhere(pending))
		return false;
	sleep_at_most(seat, runtime->turn_fd, may_sleep_ns(runtime), deadline_ns);
	return true;
}

static bool wait_a_while(struct gale_seat *seat, const struct pending *pending,
                         uint64_t deadline_ns)
{
	if (seat->handle.runtime->turns)
		return turn_a_while(seat, pending, deadline_ns);
	wake_wait(&seat->wake, &seat->poller, deadline_ns);
	return true;
}

static void take_answer(struct pending *pending, struct store_op *op,
                        struct kept_units *ret_kept)
{
	op->answer = pending->ask.op.answer;
	op->forecast = pending->ask.op.forecast;
	if (!pending->ask.keeps)
		return;
	*ret_kept = pending->ask.kept;
	pending->ask.keeps = false;
}

/* No answer has come in time.  A tenant's may have been decided, and be on its way: that answer holds.
 * FUND-10 */
static enum store_result give_up(struct gale_seat *seat, struct pending *pending,
                                 struct store_op *op)
{
	if (pending->tenant && fund_give_up(&pending->tenant->stake, &pending->wait)) {
		seat_wait_no_more(seat, pending);
		return STORE_LATE;
	}
	pending->abandoned = true;
	if (!pending->tenant)
		return STORE_LATE;
	op->answer = pending->ask.op.answer;
	return pending->wait.result;
}

enum store_result seat_await(struct gale_seat *seat, struct pending *pending,
                             struct store_op *op, struct kept_units *ret_kept,
                             uint64_t deadline_ns)
{
	bool goes_on = true;

	seat_collect(seat);
	while (!pending->answered && goes_on && patience_now_ns() < deadline_ns) {
		goes_on = wait_a_while(seat, pending, deadline_ns);
		seat_collect(seat); /* another thread's turn may have brought it */
	}
	seat_raise_if_ready(seat);
	if (!pending->answered)
		return give_up(seat, pending, op);
	take_answer(pending, op, ret_kept);
	enum store_result result = pending->ask.result;
	seat_recycle(seat, pending);
	return result;
}

struct pending *seat_take_ready(struct gale_seat *seat)
{
	return take_first(&seat->ready);
}

bool seat_is_here(const struct gale_seat *seat)
{
	const struct gale_runtime *runtime = seat->handle.runtime;

	return lifeline_holds(&runtime->lifeline) &&
	       handle_is_open(&seat->handle, runtime);
}

mono seat_now(struct gale_seat *seat)
{
	mono now;

	if (seat_tells(seat, &now))
		return now;
	return seat->handle.runtime->counts && seat_is_here(seat)
	           ? counter_look(&seat->counter)
	           : clock_now(seat->handle.runtime->node_clock);
}

mono seat_look(struct gale_seat *seat)
{
	mono ticked = seat->ticked, now;

	seat->ticked.ns = 0; /* so that the counter tells, where there is one */
	now = seat_now(seat);
	seat->ticked = ticked;
	return now;
}

void gale_tick(struct gale_seat *seat)
{
	if (!seat || !seat_is_here(seat))
		return;
	seat_check_thread(seat);
	seat->ticked = seat_look(seat);
}

int gale_seat_fd(struct gale_seat *seat)
{
	return seat && seat_is_here(seat) ? seat->wake.fd : -1;
}
