/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * roll_servers_test.c -- a fleet of processes is given another limit, node by node, up and down,
 * while it asks: by every kind of rule in every mode at once, on a real Redis, on a real
 * PostgreSQL, and on the embedded store, where the nodes are runtimes of one process.  (L15)
 *
 * A node that is changed is told the new limit, or is ended or killed, and replaced by one that has
 * it, as a deploy does.  The clock of the stores stands still, so it is known what a key has left: in
 * the strict and the cached-deny mode each call must be answered as the limit of its own node
 * says.  Of leases, and of a budget that the nodes share, no more passes than the largest limit in
 * force.  Nothing is refused because of the change.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gale/tenants.h>

#include "runtime/atomic.h"
#include "sim/random.h"
#include "tests/support/both_servers.h"
#include "tests/support/fake_time.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define NOON_US (UINT64_C(1893456000000000) + GALE_HOURS(12)) /* of the first of 2030 */
#define WITHIN GALE_SECONDS(30)
#define NODES 8
#define PLAYS LONG_OR_BRIEF(8, 1)
#define SHARED BOTH /* the embedded store, after both servers */
#define BATCH 3
#define LOST_MOST                                                                      \
	(NODES / 2 * BATCH) /* units that are lost with nodes that are killed */

/* ---- Rows ------------------------------------------------------------------------ */

static struct gale_rule window(uint64_t limit)
{
	return gale_fixed_window(limit, GALE_HOURS(4));
}

static struct gale_rule month(uint64_t limit)
{
	return gale_quota_monthly(limit, 0);
}

static struct gale_rule anchored(uint64_t limit)
{
	return gale_quota_anchored(limit, GALE_DAYS(1), GALE_HOURS(1));
}

static struct gale_rule tokens(uint64_t limit)
{
	return gale_token_budget(limit, GALE_HOURS(4));
}

static struct gale_rule sliding(uint64_t limit)
{
	return gale_sliding_window(limit, GALE_HOURS(4), 10);
}

static struct gale_rule entries(uint64_t limit)
{
	return gale_sliding_log(limit, GALE_HOURS(4));
}

/* The rate changes, too. */
static struct gale_rule gcra(uint64_t limit)
{
	return gale_gcra(limit, GALE_HOURS(4), limit);
}

static struct gale_rule bucket(uint64_t limit)
{
	return gale_token_bucket(limit, limit, GALE_HOURS(4));
}

static struct gale_rule pacer(uint64_t limit)
{
	return gale_pacer_limit(24, GALE_HOURS(4), limit - 1);
}

static struct gale_rule leaky(uint64_t limit)
{
	return gale_leaky_bucket(24, GALE_HOURS(4), (limit - 1) * GALE_MINUTES(10));
}

struct kind {
	const char *name;
	struct gale_rule (*rule)(uint64_t limit);
	uint64_t cost;
	enum { NOT_LEASED, LEASES_PLACES, LEASES_UNITS } leases;
};

static const struct kind kinds[] = {
	{ "window", window, 1, LEASES_UNITS },
	{ "month", month, 1, LEASES_UNITS },
	{ "anchored", anchored, 1, LEASES_UNITS },
	{ "tokens", tokens, 5, NOT_LEASED },
	{ "sliding", sliding, 1, NOT_LEASED },
	{ "log", entries, 1, NOT_LEASED },
	{ "gcra", gcra, 1, LEASES_UNITS },
	{ "bucket", bucket, 1, LEASES_UNITS },
	{ "pacer", pacer, 1, LEASES_PLACES },
	{ "leaky", leaky, 1, LEASES_PLACES },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define MODES 3
#define ROWS_MOST (KINDS * MODES + 1)

/* A kind in a mode; or, without a kind, a budget. */
struct row {
	char name[24];
	const struct kind *kind;
	enum gale_mode mode;
};

static struct row rows[ROWS_MOST];
static size_t row_count;

static void make_rows(void)
{
	static const char *const modes[] = { "strict", "cached", "leased" };

	for (size_t i = 0; i < KINDS * MODES; i++) {
		const struct kind *kind = &kinds[i / MODES];
		struct row *row = &rows[row_count];

		row->kind = kind;
		row->mode = (enum gale_mode)(i % MODES);
		if (row->mode == GALE_LEASED && kind->leases == NOT_LEASED)
			continue;
		snprintf(row->name, sizeof(row->name), "%s %s", kind->name,
		         modes[row->mode]);
		row_count++;
	}
	rows[row_count++] = (struct row){ "budget", NULL, GALE_LEASED };
}

/* A pacer has a place for each instant beside its burst: under which limit that was taken, nobody
 * knows. */
static bool is_exact(const struct row *row)
{
	return row->mode != GALE_LEASED && row->kind->rule != pacer;
}

static uint64_t cost_of(const struct row *row)
{
	return row->kind ? row->kind->cost : 1;
}

/* ---- Time ------------------------------------------------------------------------ */

static struct fake_time server_time;
static struct both_servers both;
static uint64_t noon_us = NOON_US;

static uint64_t stores_now_us(struct gale_clock *self)
{
	(void)self;
	return load_relaxed(server_time.now_us);
}

/* ---- A node ---------------------------------------------------------------------- */

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
	struct gale_limiter *limiters[ROWS_MOST];
	struct gale_budget *budget;
	struct gale_tenant *tenant;
};

struct order {
	uint64_t limit; /* from now on; 0: no other */
	uint64_t tries;
	bool strict; /* those rows only */
	bool ends;
};

/* How many calls passed, and of how many nobody knows whether they were counted, by row. */
struct report {
	uint64_t passed[ROWS_MOST];
	uint64_t late[ROWS_MOST];
};

static void open_limiter(struct node *node, size_t i, uint64_t limit)
{
	struct gale_limiter_config config = { .name = rows[i].name,
		                              .rule = rows[i].kind->rule(limit),
		                              .mode = rows[i].mode,
		                              .store = node->store,
		                              .lease = { .patience_us = WITHIN } };

	if (config.mode == GALE_LEASED) {
		config.lease.sizing = GALE_SIZE_FIXED;
		config.lease.batch = BATCH;
	}
	must(gale_limiter_open(node->runtime, &config, &node->limiters[i]) ==
	     GALE_ERR_OK);
}

static void open_budget(struct node *node, size_t i, uint64_t limit)
{
	const struct gale_budget_config config = { .limit = limit,
		                                   .window_us = GALE_DAYS(1),
		                                   .store = node->store,
		                                   .name = rows[i].name,
		                                   .patience_us = WITHIN };
	const struct gale_terms terms = { .weight = 1, .name = "all" };

	must(gale_budget_open(node->runtime, &config, &node->budget) == GALE_ERR_OK);
	must(gale_tenant_open(node->budget, &terms, &node->tenant) == GALE_ERR_OK);
}

static void open_node(struct node *node, int where, uint64_t limit)
{
	static struct gale_clock clock = { .now_us = stores_now_us };
	const struct gale_config config = { .shards = 1, .clock = &clock };
	const struct gale_store_config store = {
		.url = where == SHARED ? "memory:rolls" : both.urls[where],
		.quarantine_us = 1,
	};

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
	for (size_t i = 0; i < row_count; i++)
		if (rows[i].kind)
			open_limiter(node, i, limit);
		else
			open_budget(node, i, limit);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	for (size_t i = 0; i < row_count; i++)
		if (rows[i].kind)
			gale_limiter_close(node->limiters[i]);
	gale_tenant_close(node->tenant);
	gale_budget_close(node->budget);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

/* Denials by the limit before are dropped in a turn of the limiter's thread.  Two calls
 * that this thread makes, one after the other, have a whole turn between them.  The embedded store
 * is asked for a peek without that thread. */
static void await_turn(const struct node *node, size_t i)
{
	for (int calls = 0; calls < 2; calls++)
		must(gale_reset(node->seat, node->limiters[i], "another", 7, WITHIN) ==
		     GALE_ERR_OK);
}

static void await_limit(const struct node *node, size_t i, uint64_t limit)
{
	struct gale_answer answer = { .limit = 0 };

	while (answer.limit != limit)
		must(gale_peek(node->seat, node->limiters[i], "k", 1, WITHIN,
		               &answer) == GALE_ERR_OK);
	await_turn(node, i);
}

static void set_limit(const struct node *node, uint64_t limit)
{
	must(gale_budget_set_limit(node->budget, limit) == GALE_ERR_OK);
	for (size_t i = 0; i < row_count; i++) {
		struct gale_rule rule;

		if (!rows[i].kind)
			continue;
		rule = rows[i].kind->rule(limit);
		must(gale_limiter_set_rule(node->limiters[i], &rule) == GALE_ERR_OK);
		if (is_exact(&rows[i]))
			await_limit(node, i, limit);
	}
}

/* Where the machine stands still for a second, a server is taken for dead: then a call that was not
 * asked about is made again, and one that was may have been counted. */
static bool was_not_asked(struct gale_answer answer)
{
	return answer.why == GALE_WHY_DOWN || answer.why == GALE_WHY_BUSY;
}

/* A call is refused for its limit, or not at all. */
static void note(size_t i, struct gale_answer answer, struct report *report)
{
	bool late = answer.why == GALE_WHY_LATE;

	if (answer.why == GALE_WHY_CHANGED ||
	    (gale_why_is_outage(answer.why) && !late)) {
		fprintf(stderr, "%s: %s\n", rows[i].name, gale_why_text(answer.why));
		must(false); /* also in a child */
	}
	report->passed[i] += answer.verdict == GALE_ALLOW;
	report->late[i] += late;
}

static struct gale_answer ask(const struct node *node, size_t i)
{
	return rows[i].kind ? gale_ask(node->seat, node->limiters[i], "k", 1,
	                               cost_of(&rows[i]), &rows[i])
	                    : gale_tenant_send(node->seat, node->tenant, 1, &rows[i]);
}

/* Returns how many answers are to come. */
static size_t ask_until_heard(const struct node *node, size_t i, struct report *report)
{
	struct gale_answer answer = ask(node, i);

	while (was_not_asked(answer)) {
		(void)poll(NULL, 0, 1);
		answer = ask(node, i);
	}
	if (answer.verdict == GALE_PENDING)
		return 1;
	note(i, answer, report);
	return 0;
}

static void hear(const struct node *node, size_t pending, struct report *report)
{
	struct pollfd fd = { .fd = gale_seat_fd(node->seat), .events = POLLIN };
	struct gale_completion some[ROWS_MOST];

	while (pending > 0) {
		size_t count;

		must(poll(&fd, 1, -1) == 1);
		count = gale_seat_completions(node->seat, some, ROWS_MOST);
		pending -= count;
		for (size_t at = 0; at < count; at++) {
			size_t i = (size_t)((const struct row *)some[at].tag - rows);

			if (was_not_asked(some[at].answer))
				pending += ask_until_heard(node, i, report);
			else
				note(i, some[at].answer, report);
		}
	}
}

static bool is_asked(size_t i, bool strict)
{
	return rows[i].mode == GALE_STRICT || !strict;
}

/* Of each row once, all at the same time. */
static void ask_all(const struct node *node, bool strict, struct report *report)
{
	size_t pending = 0;

	for (size_t i = 0; i < row_count; i++)
		if (is_asked(i, strict))
			pending += ask_until_heard(node, i, report);
	hear(node, pending, report);
}

static void obey(const struct node *node, const struct order *order,
                 struct report *ret_report)
{
	*ret_report = (struct report){ .passed = { 0 } };
	if (order->limit > 0)
		set_limit(node, order->limit);
	for (uint64_t i = 0; i < order->tries; i++)
		ask_all(node, order->strict, ret_report);
}

/* ---- Members --------------------------------------------------------------------- */

/* A node, here or in a process of its own. */
struct member {
	int where;
	uint64_t limit;
	struct node node; /* here */
	pid_t pid;        /* there */
	int to, from;
};

static struct member members[NODES];

static _Noreturn void be_member(struct member *member, int in, int out)
{
	struct order order;
	struct report report;

	/* Pipes outlive the test in others. */
	must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	open_node(&member->node, member->where, member->limit);
	while (read(in, &order, sizeof(order)) == sizeof(order) && !order.ends) {
		obey(&member->node, &order, &report);
		must(write(out, &report, sizeof(report)) == sizeof(report));
	}
	close_node(&member->node);
	_exit(0);
}

static void fork_member(struct member *member)
{
	int down[2], up[2];

	must(pipe(down) == 0 && pipe(up) == 0);
	fflush(stdout);
	member->pid = fork();
	must(member->pid >= 0);
	if (member->pid == 0) {
		close(down[1]);
		close(up[0]);
		be_member(member, down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	member->to = down[1];
	member->from = up[0];
}

static void member_begin(struct member *member, int where, uint64_t limit)
{
	member->where = where;
	member->limit = limit;
	if (where == SHARED)
		open_node(&member->node, where, limit);
	else
		fork_member(member);
}

static void tell(struct member *member, struct order order)
{
	if (order.limit > 0)
		member->limit = order.limit;
	if (member->where != SHARED)
		must(write(member->to, &order, sizeof(order)) == sizeof(order));
}

static struct report hear_of(struct member *member, struct order order)
{
	struct report report;

	if (member->where == SHARED)
		obey(&member->node, &order, &report);
	else
		must(read(member->from, &report, sizeof(report)) == sizeof(report));
	return report;
}

/* It gives back what it has; or it is killed, and that is lost. */
static void member_end(struct member *member, bool killed)
{
	int status;

	if (member->where == SHARED) {
		close_node(&member->node);
		return;
	}
	if (killed)
		kill(member->pid, SIGKILL);
	else
		tell(member, (struct order){ .ends = true });
	close(member->to);
	must(waitpid(member->pid, &status, 0) == member->pid);
	must(killed || status == 0);
	close(member->from);
}

/* ---- What must be true ----------------------------------------------------------- */

/* Of the window: what was used, what may have been, and the largest limit that was in force. */
static uint64_t used[ROWS_MOST], doubtful[ROWS_MOST], largest;

/* A budget of tokens is debited after the fact: its last debit may exceed it. */
static bool passes(const struct row *row, uint64_t limit, uint64_t already)
{
	uint64_t cost = cost_of(row);

	return row->kind && row->kind->rule == tokens ? already < limit
	                                              : already + cost <= limit;
}

static uint64_t expected_of(const struct row *row, uint64_t limit, uint64_t already,
                            uint64_t tries)
{
	uint64_t passed = 0;

	for (; tries > 0 && passes(row, limit, already); tries--, passed++)
		already += cost_of(row);
	return passed;
}

static void check_row(size_t i, const struct report *report, uint64_t limit,
                      uint64_t tries)
{
	const struct row *row = &rows[i];
	uint64_t passed = report->passed[i], late = report->late[i];
	uint64_t most = expected_of(row, limit, used[i], tries), least;

	doubtful[i] += late * (is_exact(row) ? cost_of(row) : BATCH);
	least = expected_of(row, limit, used[i] + doubtful[i], tries - late);
	if (is_exact(row) && (passed > most || passed < least))
		fail_msg("%s: %" PRIu64 " of %" PRIu64 " calls passed under %" PRIu64
		         ", of which %" PRIu64 " were used",
		         row->name, passed, tries, limit, used[i]);
	used[i] += passed * cost_of(row);
	if (!is_exact(row) && used[i] > largest)
		fail_msg("%s: %" PRIu64 " of %" PRIu64, row->name, used[i], largest);
}

static void check(const struct report *report, uint64_t limit, struct order order)
{
	for (size_t i = 0; i < row_count; i++)
		if (is_asked(i, order.strict))
			check_row(i, report, limit, order.tries);
}

/* Units that were out with a node which was killed are lost, and a pacer's that wait too long. */
static void check_used_up(void)
{
	for (size_t i = 0; i < row_count; i++)
		if (rows[i].kind && rows[i].kind->leases != LEASES_PLACES)
			assert_true(used[i] + doubtful[i] + LOST_MOST >= largest);
}

/* ---- Acts ------------------------------------------------------------------------ */

static void one_asks(struct member *member, uint64_t tries)
{
	const struct order order = { .tries = tries };
	struct report report;

	tell(member, order);
	report = hear_of(member, order);
	check(&report, member->limit, order);
}

/* All have one limit. */
static void all_ask_at_once(uint64_t tries, bool strict)
{
	struct order order = { .tries = tries, .strict = strict };
	struct report report, sum = { .passed = { 0 } };

	for (int i = 0; i < NODES; i++)
		tell(&members[i], order);
	for (int i = 0; i < NODES; i++) {
		report = hear_of(&members[i], order);
		for (size_t row = 0; row < row_count; row++) {
			sum.passed[row] += report.passed[row];
			sum.late[row] += report.late[row];
		}
	}
	order.tries *= NODES;
	check(&sum, members[0].limit, order);
}

static void new_window(uint64_t most)
{
	noon_us += GALE_DAYS(40);
	fake_time_set(&server_time, noon_us);
	memset(used, 0, sizeof(used));
	memset(doubtful, 0, sizeof(doubtful));
	largest = most;
}

static void all_begin(int where, uint64_t limit)
{
	for (int i = 0; i < NODES; i++)
		member_begin(&members[i], where, limit);
}

static void all_end(void)
{
	for (int i = 0; i < NODES; i++)
		member_end(&members[i], /* killed= */ false);
}

static void change(struct member *member, uint64_t limit, bool deployed, bool killed)
{
	const struct order order = { .limit = limit };

	if (deployed) {
		member_end(member, killed);
		member_begin(member, member->where, limit);
		return;
	}
	tell(member, order);
	(void)hear_of(member, order);
}

/* Node by node, from any of them: every other one is replaced.  Each asks each time. */
static void roll(struct chance *c, uint64_t limit, bool kills)
{
	uint64_t first = chance_below(c, NODES);

	for (uint64_t i = 0; i < NODES; i++) {
		change(&members[(first + i) % NODES], limit, /* deployed= */ i % 2,
		       kills);
		for (int j = 0; j < NODES; j++)
			one_asks(&members[j], 1);
	}
}

/* 4 hours have whole parts of each. */
static const uint64_t limits[] = { 6, 12, 24, 30, 48, 60 };

struct course {
	uint64_t first, up, down;
};

static struct course draw_course(struct chance *c, int play)
{
	const size_t most = sizeof(limits) / sizeof(limits[0]) - 1;
	size_t middle = chance_between(c, 1, most - 1);

	if (play == 0)
		return (struct course){ 24, 48, 12 };
	return (struct course){ limits[middle],
		                limits[chance_between(c, middle + 1, most)],
		                limits[chance_below(c, middle)] };
}

static void play(int where, int number)
{
	struct chance c = { (uint64_t)number + 1 };
	struct course course = draw_course(&c, number);

	new_window(course.first);
	all_begin(where, course.first);
	for (int i = 0; i < NODES; i++)
		one_asks(&members[i], 2);
	largest = course.up;
	roll(&c, course.up, /* kills= */ true);
	all_ask_at_once(4, /* strict= */ false);
	check_used_up();
	all_ask_at_once(1, /* strict= */ false);
	all_end();

	new_window(course.up);
	all_begin(where, course.up);
	roll(&c, course.down, /* kills= */ false);
	all_ask_at_once(1, /* strict= */ false);
	/* The clocks of the nodes have not gone on: they remember what they were denied. */
	new_window(course.down);
	all_ask_at_once(course.down / 4 + 1, /* strict= */ true);
	all_end();
}

static void play_all(int where)
{
	for (int number = 0; number < PLAYS; number++)
		play(where, number);
}

static void every_kind_rolls_over_redis(void **state)
{
	(void)state;
	play_all(0);
}

static void every_kind_rolls_over_postgres(void **state)
{
	(void)state;
	play_all(1);
}

static void every_kind_rolls_over_the_embedded_store(void **state)
{
	(void)state;
	play_all(SHARED);
}

static int start_servers(void **state)
{
	(void)state;
	make_rows();
	fake_time_begin(&server_time, NOON_US);
	both_servers_start(&both);
	fake_time_end();
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	both_servers_stop(&both);
	fake_time_close(&server_time);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_rolls_over_redis),
		cmocka_unit_test(every_kind_rolls_over_postgres),
		cmocka_unit_test(every_kind_rolls_over_the_embedded_store),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
