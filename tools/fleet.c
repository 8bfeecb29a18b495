/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet.c -- starts a team here or several processes, watches, reports.
 *
 *	start, wait until ready -> tally -> begin -> watch -> end -> report
 *
 * The thread that calls fleet_run is the collector: it folds the tally, draws the
 * screen, and is the only one that prints.
 */
#define _GNU_SOURCE
#include "tools/fleet.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/processes.h"
#include "tools/report.h"
#include "tools/screen.h"
#include "tools/team.h"

#define NAP_NS 5000000 /* half of the shortest window */
#define NAPS_A_SECOND (1000000000 / NAP_NS)
/* Processes that are well never take as long.  In naps, and not by the clock: a machine that
 * stood still has not waited for a process. */
#define READY_MOST_NAPS (90 * NAPS_A_SECOND)
#define END_MOST_NAPS (15 * NAPS_A_SECOND)

struct fleet {
	const struct fleet_flags *flags;
	struct fleet_clock clock;
	struct node_host host;
	bool many; /* processes, and no team */
	struct team team;
	struct processes processes;
	struct tally own_tally; /* of many */
	struct tally *tally;
	uint64_t begin_us;
	uint64_t stop_us;
	uint64_t clock_step_us;
	int naps_late; /* of processes that should have ended */
	bool said_waits;
	bool lost; /* it cannot be reported, and why */
	struct sentence why;
	struct screen screen;
	struct {
		uint64_t due_us;
		uint64_t at_us;
		uint64_t decisions;
		uint64_t decisions_per_s;
	} frame; /* the last one drawn, and the next */
};

static volatile sig_atomic_t interrupted;

static void complain(const char *what)
{
	fprintf(stderr, "gale fleet: %s\n", what);
}

static void nap(void)
{
	static const struct timespec time = { .tv_nsec = NAP_NS };

	nanosleep(&time, NULL);
}

static void lose(struct fleet *fleet)
{
	fleet->lost = true;
	if (fleet->many)
		processes_kill(&fleet->processes);
}

/* ---- Getting ready --------------------------------------------------------------- */

static bool goes_on(struct node_host *host)
{
	(void)host;
	return !interrupted;
}

static void say_waits(struct node_host *host)
{
	struct fleet *fleet =
	    (struct fleet *)((char *)host - offsetof(struct fleet, host));

	if (!fleet->said_waits)
		complain("the store was started or emptied a moment ago, and grants "
		         "nothing until the window turns, or for a minute; waiting");
	fleet->said_waits = true;
}

/* Names a run: another for each. */
static uint64_t run_name(const struct fleet *fleet)
{
	return fleet_clock_us(&fleet->clock) << 10 ^ (uint64_t)getpid();
}

static bool start_team(struct fleet *fleet)
{
	struct node_plan plan = { fleet->flags, &fleet->clock, run_name(fleet) };

	fleet->tally = &fleet->team.tally;
	return team_open(&fleet->team, &plan, /* process= */ 0, &fleet->why) &&
	       team_warm_up(&fleet->team, &fleet->host, &fleet->why);
}

static bool await_processes(struct fleet *fleet)
{
	struct processes *processes = &fleet->processes;

	for (int naps = 0; !processes_ready(processes); naps++) {
		if (processes_failed(processes))
			return processes_end(processes, &fleet->why);
		if (interrupted)
			return sentence_say(&fleet->why,
			                    "interrupted before anything was counted");
		if (naps > READY_MOST_NAPS) {
			processes_give_up(processes, &fleet->why);
			return false;
		}
		if (processes_wait(processes))
			say_waits(&fleet->host);
		nap();
	}
	return true;
}

static bool start_processes(struct fleet *fleet)
{
	fleet->tally = &fleet->own_tally;
	return processes_start(&fleet->processes, fleet->flags, &fleet->clock,
	                       run_name(fleet), fleet->tally, &fleet->why) &&
	       await_processes(fleet);
}

static bool begin_processes(struct fleet *fleet)
{
	struct tally_config config = team_tally_config(fleet->flags, fleet->begin_us);

	config.workers = (uint32_t)fleet->flags->processes;
	if (!tally_open(fleet->tally, &config))
		return sentence_say(
		    &fleet->why, "--keys: not enough memory for so many: give fewer");
	processes_begin(&fleet->processes, fleet->begin_us, fleet->stop_us);
	return true;
}

static bool begin(struct fleet *fleet)
{
	uint64_t now_us = fleet_clock_us(&fleet->clock);

	fleet->begin_us = fleet->frame.at_us = now_us;
	fleet->stop_us = now_us + fleet->flags->run_us;
	fleet->frame.due_us = now_us + screen_period_us(&fleet->screen);
	if (fleet->many)
		return begin_processes(fleet);
	return team_begin(&fleet->team, fleet->begin_us, fleet->stop_us,
	                  /* taker= */ NULL, &fleet->why);
}

/* ---- Looking --------------------------------------------------------------------- */

/* Of the run, which is over then, however late that is noticed. */
static double seconds_of_run(const struct fleet *fleet, uint64_t now_us)
{
	uint64_t until_us = now_us < fleet->stop_us ? now_us : fleet->stop_us;

	return (double)(until_us - fleet->begin_us) / 1e6;
}

static void look(const struct fleet *fleet, struct report *report)
{
	struct seen seen = { 0 };

	if (fleet->many)
		processes_look(&fleet->processes, &seen);
	else
		team_look(&fleet->team, &seen);
	report_see(report, &seen);
}

/* Of the time since the last frame; too short a time has the rate before it, as
 * processes tell what they have seen a few times a second. */
static uint64_t rate_at(const struct fleet *fleet, uint64_t decisions, uint64_t now_us)
{
	uint64_t since_us = now_us - fleet->frame.at_us;

	if (2 * since_us < screen_period_us(&fleet->screen))
		return fleet->frame.decisions_per_s;
	return (uint64_t)((double)(decisions - fleet->frame.decisions) * 1e6 /
	                  (double)since_us);
}

static struct frame frame_at(struct fleet *fleet, uint64_t now_us)
{
	struct report seen = { 0 };
	struct frame frame = { .flags = fleet->flags };

	look(fleet, &seen);
	frame.elapsed_s = seconds_of_run(fleet, now_us);
	frame.allowed = seen.counts[SEEN_ALLOWED];
	frame.decisions = frame.allowed + seen.counts[SEEN_DENIED];
	frame.decisions_per_s = rate_at(fleet, frame.decisions, now_us);
	frame.p50_ns = seen.p50_ns;
	frame.p99_ns = seen.p99_ns;
	frame.store_calls = seen.counts[SEEN_STORE_CALLS];
	frame.total = tally_total(fleet->tally);
	frame.now = tally_look(fleet->tally, now_us);
	frame.last_count = tally_history(fleet->tally, frame.last, SCREEN_WINDOWS);
	return frame;
}

static void draw(struct fleet *fleet, uint64_t now_us)
{
	uint64_t period_us = screen_period_us(&fleet->screen);
	struct frame frame;

	if (period_us == 0 || now_us < fleet->frame.due_us)
		return;
	frame = frame_at(fleet, now_us);
	screen_draw(&fleet->screen, &frame);
	fleet->frame.at_us = now_us;
	fleet->frame.decisions = frame.decisions;
	fleet->frame.decisions_per_s = frame.decisions_per_s;
	fleet->frame.due_us =
	    now_us + period_us - (now_us - fleet->begin_us) % period_us;
}

/* So that what stays on the terminal is the end. */
static void draw_last(struct fleet *fleet)
{
	if (fleet->screen.style != SCREEN_LIVE)
		return;
	fleet->frame.due_us = 0;
	draw(fleet, fleet_clock_us(&fleet->clock));
}

/* ---- The run --------------------------------------------------------------------- */

static void stop_early(struct fleet *fleet, uint64_t now_us)
{
	if (!interrupted || now_us >= fleet->stop_us)
		return;
	fleet->stop_us = now_us;
	if (fleet->many)
		processes_stop(&fleet->processes, now_us);
	else
		team_stop(&fleet->team, now_us);
}

/* A server turns its windows by the system's clock. */
static void watch_clock(struct fleet *fleet)
{
	uint64_t apart_us = fleet_clock_apart_us(&fleet->clock);

	if (fleet->flags->server && fleet->clock_step_us < apart_us)
		fleet->clock_step_us = apart_us;
}

static void watch_processes(struct fleet *fleet, uint64_t now_us)
{
	if (fleet->lost)
		return;
	if (processes_failed(&fleet->processes)) {
		processes_end(&fleet->processes, &fleet->why);
		lose(fleet);
	} else if (now_us > fleet->stop_us && ++fleet->naps_late > END_MOST_NAPS) {
		processes_give_up(&fleet->processes, &fleet->why);
		lose(fleet);
	}
}

static void watch(struct fleet *fleet)
{
	while (!tally_all_gone(fleet->tally)) {
		uint64_t now_us = fleet_clock_us(&fleet->clock);

		stop_early(fleet, now_us);
		watch_clock(fleet);
		if (fleet->many)
			watch_processes(fleet, now_us);
		tally_fold(fleet->tally, fleet->stop_us);
		draw(fleet, now_us);
		nap();
	}
	watch_clock(fleet);
	draw_last(fleet);
	tally_finish(fleet->tally, fleet->stop_us);
}

/* All are gone: have they gone well? */
static bool ended_well(struct fleet *fleet)
{
	if (!fleet->many) {
		team_join(&fleet->team);
		return true;
	}
	return !fleet->lost && processes_end(&fleet->processes, &fleet->why);
}

static enum fleet_status print(struct fleet *fleet, const struct report *report)
{
	if (fleet->flags->json)
		report_json(report, stdout);
	else
		report_table(report, stdout);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return report_status(report) == 0 ? FLEET_HELD : FLEET_BROKEN;
	sentence_say(&fleet->why, "standard output: %s", strerror(errno));
	return FLEET_FAILED;
}

static enum fleet_status report(struct fleet *fleet)
{
	struct report report = { .flags = *fleet->flags };

	look(fleet, &report);
	if (report.counts[SEEN_STUCK] > 0) {
		sentence_say(&fleet->why, "an answer that was promised did not come");
		return FLEET_FAILED;
	}
	report.seconds = seconds_of_run(fleet, fleet->stop_us);
	report.clock_step_us = fleet->clock_step_us;
	report.tally = tally_total(fleet->tally);
	if (fleet->many)
		report.tally.disagreements += report.counts[SEEN_DISAGREEMENTS];
	report.window_count =
	    tally_history(fleet->tally, report.windows, TALLY_HISTORY);
	return print(fleet, &report);
}

static enum fleet_status run(struct fleet *fleet)
{
	if (!(fleet->many ? start_processes(fleet) : start_team(fleet)) ||
	    !begin(fleet))
		return FLEET_FAILED;
	watch(fleet);
	return ended_well(fleet) ? report(fleet) : FLEET_FAILED;
}

static void close_all(struct fleet *fleet)
{
	if (!fleet->many) {
		team_close(&fleet->team);
		return;
	}
	processes_close(&fleet->processes);
	if (fleet->own_tally.workers)
		tally_close(&fleet->own_tally);
}

/* ---- Setting up ------------------------------------------------------------------ */

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* The second one kills. */
static void catch_interrupts(void)
{
	struct sigaction action = { .sa_handler = on_interrupt,
		                    .sa_flags = (int)(SA_RESTART | SA_RESETHAND) };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* As the library has it; otherwise each node would say so. */
static bool is_url(struct fleet *fleet)
{
	char why[192];

	return gale_url_check(fleet->flags->store, why, sizeof(why)) == GALE_ERR_OK ||
	       sentence_say(&fleet->why, "--store: %s", why);
}

enum fleet_status fleet_run(const struct fleet_flags *flags)
{
	struct fleet fleet = { .flags = flags,
		               .many = flags->processes > 1,
		               .host = { goes_on, say_waits } };
	enum fleet_status status;

	if (!is_url(&fleet)) {
		complain(fleet.why.is);
		return FLEET_BAD_USE;
	}
	fleet_clock_init(&fleet.clock);
	screen_open(&fleet.screen, flags->json ? stderr : stdout,
	            /* even_plain= */ !flags->json);
	catch_interrupts();
	status = run(&fleet);
	if (status == FLEET_FAILED)
		complain(fleet.why.is);
	close_all(&fleet);
	return status;
}

/* ---- Help ------------------------------------------------------------------------ */

void fleet_help(FILE *out)
{
	fputs("usage: gale fleet [FLAG...]\n"
	      "\n"
	      "Starts nodes that share one store, lets their threads ask for random\n"
	      "keys as fast as they are answered, and checks the limit: no key may\n"
	      "get more than its limit in any window, however many nodes there are.\n"
	      "This command counts what is admitted, by its own clock and not by the\n"
	      "store.\n"
	      "\n"
	      "With --processes, each process reports what it admitted, and this one\n"
	      "counts it.  The server has to be on this machine, because its windows\n"
	      "and the count must use the same clock.  If the server was started or\n"
	      "emptied a moment ago, the command waits until it grants again: for at\n"
	      "most a minute.\n"
	      "\n"
	      "With --demand, the fleet asks for that part of the limits, evenly in\n"
	      "time, and this command also checks that the demand is served.  With\n"
	      "--moving, only half of the nodes ask.  Which half is drawn by lot\n"
	      "twice in each window.\n"
	      "\n"
	      "gale fleet --guard limits what is in flight instead: see\n"
	      "gale fleet --guard --help.  gale fleet --tenants divides one budget by\n"
	      "weights: see gale fleet --tenants --help.\n"
	      "\n",
	      out);
	flags_list(out);
	fputs("\n"
	      "Numbers take k and M; durations take us, ms, s, m and h.\n"
	      "\n"
	      "decisions     allowed and denied answers.  refused: the denied ones\n"
	      "              that the rule did not decide, such as \"the store is "
	      "full\"\n"
	      "ns/decision   time from question to answer, of every 32nd decision;\n"
	      "              half (p50) and 99 % (p99) took no longer\n"
	      "store calls   round trips to the server, each of up to 64 asks; for\n"
	      "              memory: the decisions of the store and the batches of\n"
	      "              leases\n"
	      "leases        leases that the store granted\n"
	      "connections   connections that were ready for use.  failures:\n"
	      "              connections lost, and failed attempts to connect\n"
	      "windows       windows that began and ended while the fleet was asking\n"
	      "admitted_max  the most that one key got in one window\n"
	      "overshoot     how far admitted_max is above the limit; 0 if it is not\n"
	      "undershoot    the part of the limit that was not used, as a mean of\n"
	      "              these windows and all keys: 0 when every key got its\n"
	      "              whole limit in every window.  It means something only if\n"
	      "              the keys were asked for more than their limits\n"
	      "seconds       how long the fleet was asking\n"
	      "clock_disagreements\n"
	      "              admissions in a window that, by the clock of this\n"
	      "              command, was not open\n"
	      "clock_step_us\n"
	      "              by how much the system's clock was set during the run\n"
	      "asked, owed, served\n"
	      "              of a demand, in all whole windows but the first five.\n"
	      "              asked: units that were asked for.  owed: the same, but\n"
	      "              at most the limits in each window.  served: units of\n"
	      "              owed that were admitted.  served_mean: this part of\n"
	      "              owed, of all windows; served_worst: of the worst\n"
	      "verdict       held; overshot: overshoot is not 0; short: less than\n"
	      "              99 % of what was owed were served, or less than 95 % in\n"
	      "              one window; unproven: the clocks disagreed, or the\n"
	      "              system's clock was set, no window was counted, or less\n"
	      "              than nine tenths of the demand were asked for\n"
	      "\n"
	      "Exit status: 0 held, 1 overshot, short or unproven, 2 a flag is wrong,\n"
	      "3 the fleet could not run, for example because a process has died.\n",
	      out);
}
