/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* doctor.c -- words and lines; the files of each kind of server ask it. */
#include "tools/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <gale/gale.h>

#include "tools/flag.h"

#define CLOCK_MOST_US 1000000 /* a second: decision 10 allows servers' clocks that */

/* ---- Lines ----------------------------------------------------------------------- */

void doctor_say(struct doctor *doctor, enum doctor_finding finding, const char *what,
                const char *format, ...)
{
	static const char *const words[] = { "OK", "WARN", "FAIL" };
	struct sentence sentence;
	char text[SENTENCE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sentence_say(&sentence, "%s", text);
	doctor->counts[finding]++;
	fprintf(doctor->out, "%-4s  %s%s%s: %s\n", words[finding], doctor->where,
	        doctor->where[0] ? " " : "", what, sentence.is);
}

uint64_t doctor_wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void doctor_judge_clock(struct doctor *doctor, int64_t ahead_us, uint64_t trip_us)
{
	uint64_t off_us = (uint64_t)(ahead_us < 0 ? -ahead_us : ahead_us);

	if (off_us <= CLOCK_MOST_US + trip_us / 2)
		doctor_say(doctor, DOCTOR_OK, "clock",
		           "within a second of this host's (%" PRIu64 " ms off, round "
		           "trip %" PRIu64 " us)",
		           off_us / 1000, trip_us);
	else
		doctor_say(doctor, DOCTOR_WARN, "clock",
		           "%" PRIu64 " ms %s this host's: windows and quotas turn by "
		           "the server's clock, and a replica whose clock is right "
		           "would turn them at another time: run NTP on both",
		           off_us / 1000, ahead_us < 0 ? "behind" : "ahead of");
}

/* ---- Words ----------------------------------------------------------------------- */

struct doctor_flags {
	const char *url;
};

static const struct flag_table table = {
	.count = 0,
	.operands = { { "the URL of a store", offsetof(struct doctor_flags, url) } },
};

static void help(FILE *out)
{
	fputs(
	    "usage: gale doctor URL\n"
	    "\n"
	    "Looks at a store, and changes nothing there.  Prints a line for each\n"
	    "thing that matters: OK, WARN if it costs more than it must, or FAIL if\n"
	    "nodes cannot use the store, or may exceed a limit.  Each WARN and FAIL\n"
	    "says what to do.  Use the URL of the nodes, since rights depend on its "
	    "user.\n"
	    "\n"
	    "  redis://..., redis+sentinel://..., redis+cluster://...\n"
	    "                        server, role, eviction, persistence, replicas,\n"
	    "                        clock, rights, and whether it may have forgotten\n"
	    "  postgres://...        server, role, pool, schema, rights, durability,\n"
	    "                        standbys, clock\n"
	    "  memory:               is in a process: there is nothing to examine\n"
	    "\n",
	    out);
	flags_explain(&table, out);
	fputs("\n"
	      "Exit status: 0 all is well; 1 there are warnings; 2 an argument is\n"
	      "wrong; 3 something fails.\n",
	      out);
}

static bool starts(const char *url, const char *with)
{
	return strncmp(url, with, strlen(with)) == 0;
}

static void look(struct doctor *doctor, const char *url)
{
	if (starts(url, "memory:"))
		doctor_say(doctor, DOCTOR_OK, "server",
		           "none: a store in a process, which ends with it");
	else if (starts(url, "postgres"))
#ifdef GALE_POSTGRES
		doctor_postgres(doctor, url);
#else
		doctor_say(doctor, DOCTOR_FAIL, "server",
		           "this gale was built without PostgreSQL: install libpq-dev, "
		           "and build it again");
#endif
	else
#ifdef GALE_REDIS
		doctor_redis(doctor, url);
#else
		doctor_say(doctor, DOCTOR_FAIL, "server",
		           "this gale was built without Redis: install libhiredis-dev, "
		           "and build it again");
#endif
}

static int conclude(const struct doctor *doctor)
{
	fprintf(doctor->out, "%u well, %u to warn of, %u failed\n",
	        doctor->counts[DOCTOR_OK], doctor->counts[DOCTOR_WARN],
	        doctor->counts[DOCTOR_FAIL]);
	if (doctor->counts[DOCTOR_FAIL] > 0)
		return DOCTOR_FAILED;
	return doctor->counts[DOCTOR_WARN] > 0 ? DOCTOR_WARNED : DOCTOR_WELL;
}

int doctor_run(int argc, char **argv, FILE *out, FILE *err)
{
	struct doctor doctor = { .out = out, .where = "" };
	struct doctor_flags flags = { .url = NULL };
	struct flags_error error;
	struct sentence why;

	switch (flags_read(&table, argc, argv, &flags, &error)) {
	case FLAGS_HELP:
		help(out);
		return DOCTOR_WELL;
	case FLAGS_BAD:
		fprintf(err, "gale doctor: %s\n", error.text);
		return DOCTOR_BAD_USE;
	case FLAGS_RUN:
		break;
	}
	if (gale_url_check(flags.url, why.is, sizeof(why.is)) != GALE_ERR_OK) {
		fprintf(err, "gale doctor: %s\n", why.is);
		return DOCTOR_BAD_USE;
	}
	look(&doctor, flags.url);
	return conclude(&doctor);
}
