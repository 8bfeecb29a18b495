/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * processes.c -- spawn, receive, judge, reap.
 *
 * Invariants
 *
 *   PROCESSES-1  A thread counts nothing for a window that its process has passed, nor
 *                for one that has not begun yet: what says so is nonsense.
 *   PROCESSES-2  All units that a process says to have sent were counted.
 *
 * Ordering
 *
 *   failed   A thread writes why, then stores failed with release  ->  the owner loads
 *            it with acquire and reads why.
 */
#define _GNU_SOURCE
#include "tools/processes.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/member.h"
#include "tools/record.h"

#define NAP_NS 5000000
#define NAPS_TO_END 2000 /* 10 s for a process to end by itself */

extern char **environ;

struct process {
	struct processes *all;
	uint32_t number;
	pid_t pid; /* 0: it was not started, or is reaped */
	int fd;
	int status; /* once it is reaped */
	bool reads; /* its thread was started */
	pthread_t thread;
	struct record_out out;

	/* The thread's, and the owner's when it has failed. */
	struct record_in in;
	bool begun;
	bool is_gone; /* why: it went without a word */
	uint64_t passed_us;
	uint64_t units;
	struct sentence said; /* by itself, and ... */
	size_t said_length;
	struct sentence why; /* ... what we say */

	/* Any thread's. */
	_Atomic bool waits;
	_Atomic bool done; /* with getting ready, and later with the run */
	_Atomic uint64_t counts[SEEN_COUNT];
	struct histogram latency_ns;
};

/* ---- Judging: the threads -------------------------------------------------------- */

static bool is_nonsense(struct process *process, const char *what)
{
	return sentence_say(&process->why, "it sends nonsense: %s", what);
}

static bool hear_text(struct process *process, const struct record *record)
{
	size_t room = SENTENCE_MAX - 1 - process->said_length;
	size_t length = strnlen(record->text, RECORD_TEXT_MAX);

	if (length > room)
		length = room;
	memcpy(process->said.is + process->said_length, record->text, length);
	process->said_length += length;
	return true;
}

/* PROCESSES-1 */
static bool is_in_time(const struct process *process, struct tally_span span)
{
	const struct tally *tally = process->all->tally;
	uint64_t now = tally_number(tally, fleet_clock_us(process->all->clock));

	return span.first <= span.last && span.first >= tally->first &&
	       span.last <= now + 1 &&
	       span.first * tally->config.window_us > process->passed_us;
}

static bool hear_units(struct process *process, const struct record *record)
{
	struct tally *tally = process->all->tally;
	struct tally_span span = { record->first, record->last };

	if (record->what >= tally->config.keys)
		return is_nonsense(process, "a key that there is not");
	if (record->count < 1 || record->count > GALE_UNITS_MAX - process->units ||
	    (span.first < span.last && record->count > 1))
		return is_nonsense(process, "so many units");
	if (!is_in_time(process, span))
		return is_nonsense(process, "units out of their time");
	tally_count_units(tally, process->number, (uint32_t)record->what, span,
	                  record->count);
	process->units += record->count;
	return true;
}

static bool hear_asked(struct process *process, const struct record *record)
{
	struct tally_span span = { record->first, record->first };

	if (record->count < 1 || record->count > GALE_UNITS_MAX)
		return is_nonsense(process, "so many units");
	if (!is_in_time(process, span))
		return is_nonsense(process, "units out of their time");
	tally_count_asked(process->all->tally, process->number, record->first,
	                  record->count);
	return true;
}

static bool hear_passed(struct process *process, const struct record *record)
{
	if (record->first <= process->passed_us || record->first == TALLY_GONE)
		return is_nonsense(process, "time runs backwards");
	process->passed_us = record->first;
	tally_pass(process->all->tally, process->number, record->first);
	return true;
}

static bool hear_counter(struct process *process, const struct record *record)
{
	_Atomic uint64_t *at;

	if (record->what >= SEEN_COUNT)
		return is_nonsense(process, "a counter that there is not");
	at = &process->counts[record->what];
	if (record->what != SEEN_REFUSED_WHY && record->count < atomic_load(at))
		return is_nonsense(process, "a counter falls");
	atomic_store(at, record->count);
	return true;
}

static bool hear_bucket(struct process *process, const struct record *record)
{
	if (record->what >= HISTOGRAM_BUCKETS)
		return is_nonsense(process, "a duration that there is not");
	histogram_put(&process->latency_ns, (unsigned)record->what, record->count);
	return true;
}

static bool hear_done(struct process *process, const struct record *record)
{
	if (record->count != process->units)
		return is_nonsense(process, "units are missing"); /* PROCESSES-2 */
	atomic_store(&process->done, true);
	return true;
}

static bool hear_begun(struct process *process, const struct record *record)
{
	switch (record->kind) {
	case RECORD_UNITS:
		return hear_units(process, record);
	case RECORD_ASKED:
		return hear_asked(process, record);
	case RECORD_PASSED:
		return hear_passed(process, record);
	case RECORD_COUNTER:
		return hear_counter(process, record);
	case RECORD_BUCKET:
		return hear_bucket(process, record);
	case RECORD_DONE:
		return hear_done(process, record);
	case RECORD_TEXT:
		return hear_text(process, record);
	case RECORD_FAILED:
		return sentence_say(&process->why, "%s", process->said.is);
	default:
		return is_nonsense(process, "a record that has no place there");
	}
}

static bool hear_early(struct process *process, const struct record *record)
{
	switch (record->kind) {
	case RECORD_WAITS:
		atomic_store(&process->waits, true);
		return true;
	case RECORD_READY:
		atomic_store(&process->done, true);
		return true;
	case RECORD_TEXT:
		return hear_text(process, record);
	case RECORD_FAILED:
		return sentence_say(&process->why, "%s", process->said.is);
	default:
		return is_nonsense(process, "a record that has no place there");
	}
}

/* ---- Receiving: the threads ------------------------------------------------------ */

static bool hear(struct process *process)
{
	struct record record;

	switch (record_get(&process->in, /* wait= */ true, &record)) {
	case RECORD_IS:
		return process->begun ? hear_begun(process, &record)
		                      : hear_early(process, &record);
	case RECORD_NOT_YET:
	case RECORD_END:
		process->is_gone = true;
		return false;
	case RECORD_NONSENSE:
		break;
	}
	return is_nonsense(process, "what it sends is no record");
}

/* Only the first counts: the others are killed because of it. */
static void fail(struct process *process)
{
	uint32_t none = 0;

	atomic_compare_exchange_strong_explicit(
	    &process->all->failed, &none, process->number + 1, memory_order_release,
	    memory_order_relaxed); /* failed */
}

static bool hear_until_done(struct process *process)
{
	atomic_store(&process->done, false);
	while (!atomic_load(&process->done))
		if (!hear(process)) {
			fail(process);
			return false;
		}
	return true;
}

static void *receive(void *self)
{
	struct process *process = self;

	if (!hear_until_done(process) || !gate_pass(&process->all->gate))
		return NULL;
	process->begun = true;
	hear_until_done(process);
	tally_pass(process->all->tally, process->number, TALLY_GONE);
	return NULL;
}

/* ---- Starting -------------------------------------------------------------------- */

/* Signals that are meant for all of us are the controller's to answer. */
static void block_interrupts(posix_spawnattr_t *how)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	posix_spawnattr_init(how);
	posix_spawnattr_setsigmask(how, &blocked);
	posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGMASK);
}

static int spawn_with(pid_t *ret_pid, char *const *argv, int fd)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	int err;

	block_interrupts(&how);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fd, MEMBER_FD);
	err = posix_spawn(ret_pid, "/proc/self/exe", &files, &how, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return err;
}

static bool spawn(struct process *process, char *const *argv, struct sentence *ret_why)
{
	int ends[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return sentence_say(ret_why, "--processes: %s", strerror(errno));
	process->fd = ends[0];
	record_in_init(&process->in, process->fd);
	record_out_init(&process->out, process->fd);
	err = spawn_with(&process->pid, argv, ends[1]);
	close(ends[1]);
	if (err == 0)
		return true;
	process->pid = 0;
	return sentence_say(ret_why, "--processes: %s", strerror(err));
}

static void tell_plan(struct process *process, uint64_t run)
{
	struct record plan = { .kind = RECORD_PLAN,
		               .what = process->number,
		               .first = run,
		               .last = process->all->clock->epoch_ns };

	record_put(&process->out, &plan);
	record_flush(&process->out);
}

static bool start(struct processes *processes, char *const *argv, uint64_t run,
                  struct sentence *ret_why)
{
	struct process *process = &processes->each[processes->started];

	process->all = processes;
	process->number = processes->started;
	process->fd = -1;
	processes->started++;
	if (!spawn(process, argv, ret_why))
		return false;
	tell_plan(process, run);
	process->reads = pthread_create(&process->thread, NULL, receive, process) == 0;
	return process->reads ||
	       sentence_say(
		   ret_why,
		   "--processes: this system gives no more threads: give fewer");
}

/* The same flags, behind the command's two words. */
static char **make_argv(const struct fleet_flags *flags)
{
	static char gale[] = "gale", command[] = MEMBER_COMMAND;
	char **argv = calloc((size_t)flags->argc + 3, sizeof(*argv));

	if (!argv)
		return NULL;
	argv[0] = gale;
	argv[1] = command;
	for (int i = 0; i < flags->argc; i++)
		argv[i + 2] = flags->argv[i];
	return argv;
}

bool processes_start(struct processes *processes, const struct fleet_flags *flags,
                     const struct fleet_clock *clock, uint64_t run, struct tally *tally,
                     struct sentence *ret_why)
{
	char **argv = make_argv(flags);
	bool good;

	memset(processes, 0, sizeof(*processes));
	processes->flags = flags;
	processes->clock = clock;
	processes->tally = tally;
	gate_init(&processes->gate);
	processes->each = calloc(flags->processes, sizeof(*processes->each));
	good = argv && processes->each;
	if (!good)
		sentence_say(ret_why,
		             "--processes: not enough memory for so many: give fewer");
	while (good && processes->started < flags->processes)
		good = start(processes, argv, run, ret_why);
	free(argv);
	return good;
}

/* ---- The run --------------------------------------------------------------------- */

bool processes_ready(struct processes *processes)
{
	return gate_waiting(&processes->gate) == processes->started;
}

bool processes_wait(const struct processes *processes)
{
	for (uint32_t i = 0; i < processes->started; i++)
		if (atomic_load(&processes->each[i].waits))
			return true;
	return false;
}

bool processes_failed(const struct processes *processes)
{
	return atomic_load_explicit(&processes->failed, memory_order_acquire) !=
	       0; /* failed */
}

static void tell_all(struct processes *processes, const struct record *record)
{
	for (uint32_t i = 0; i < processes->started; i++) {
		struct process *process = &processes->each[i];

		record_put(&process->out, record);
		record_flush(&process->out); /* its end is found out elsewhere */
	}
}

void processes_begin(struct processes *processes, uint64_t begin_us, uint64_t stop_us)
{
	struct record record = { .kind = RECORD_BEGIN,
		                 .first = begin_us,
		                 .last = stop_us };

	gate_open(&processes->gate, /* give_up= */ false);
	tell_all(processes, &record);
}

void processes_stop(struct processes *processes, uint64_t stop_us)
{
	struct record record = { .kind = RECORD_STOP, .first = stop_us };

	tell_all(processes, &record);
}

static void add_up(const struct process *process, struct seen *seen)
{
	for (unsigned i = 0; i < SEEN_COUNT; i++) {
		uint64_t count = atomic_load(&process->counts[i]);

		if (i != SEEN_REFUSED_WHY)
			seen->counts[i] += count;
		else if (count > 0)
			seen->counts[i] = count;
	}
	histogram_merge(&seen->latency_ns, &process->latency_ns);
}

void processes_look(const struct processes *processes, struct seen *seen)
{
	for (uint32_t i = 0; i < processes->started; i++)
		add_up(&processes->each[i], seen);
}

/* ---- The end --------------------------------------------------------------------- */

void processes_kill(struct processes *processes)
{
	for (uint32_t i = 0; i < processes->started; i++)
		if (processes->each[i].pid > 0)
			kill(processes->each[i].pid, SIGKILL);
}

/* True if it has ended, by itself, within a while. */
static bool reap(struct process *process, int naps)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };

	while (process->pid > 0) {
		if (waitpid(process->pid, &process->status, WNOHANG) == process->pid)
			process->pid = 0;
		else if (naps-- == 0)
			return false;
		else
			nanosleep(&nap, NULL);
	}
	return true;
}

static bool say_status(const struct process *process, struct sentence *ret_why)
{
	unsigned number = process->number + 1;
	int status = process->status;

	if (WIFSIGNALED(status))
		return sentence_say(ret_why, "process %u was ended by signal %d (%s)",
		                    number, WTERMSIG(status),
		                    strsignal(WTERMSIG(status)));
	return sentence_say(ret_why, "process %u ended too early, with status %d",
	                    number, WEXITSTATUS(status));
}

static bool say_why(struct processes *processes, uint32_t number,
                    struct sentence *ret_why)
{
	struct process *process = &processes->each[number - 1];

	if (process->is_gone && reap(process, NAPS_TO_END))
		return say_status(process, ret_why);
	if (process->is_gone)
		return sentence_say(ret_why, "process %u has closed its connection",
		                    number);
	return sentence_say(ret_why, "process %u: %s", number, process->why.is);
}

void processes_give_up(struct processes *processes, struct sentence *ret_why)
{
	uint32_t late = 0;

	while (late + 1 < processes->started &&
	       atomic_load(&processes->each[late].done))
		late++;
	sentence_say(ret_why, "process %u gives no answer", late + 1);
	processes_kill(processes);
}

bool processes_end(struct processes *processes, struct sentence *ret_why)
{
	uint32_t failed =
	    atomic_load_explicit(&processes->failed, memory_order_acquire); /* failed */

	if (failed > 0)
		return say_why(processes, failed, ret_why);
	for (uint32_t i = 0; i < processes->started; i++) {
		struct process *process = &processes->each[i];

		if (!reap(process, NAPS_TO_END))
			return sentence_say(ret_why, "process %u does not end", i + 1);
		if (process->status != 0)
			return say_status(process, ret_why);
	}
	return true;
}

void processes_close(struct processes *processes)
{
	processes_kill(processes);
	gate_open(&processes->gate, /* give_up= */ true);
	for (uint32_t i = 0; i < processes->started; i++) {
		struct process *process = &processes->each[i];

		if (process->reads)
			pthread_join(process->thread, NULL);
		if (process->pid > 0)
			waitpid(process->pid, &process->status, 0);
		if (process->fd >= 0)
			close(process->fd);
	}
	free(processes->each);
	gate_destroy(&processes->gate);
}
