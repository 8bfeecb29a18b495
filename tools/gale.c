/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* gale.c -- the gale command: picks what to do by its first word. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "tools/doctor.h"
#include "tools/fleet.h"
#include "tools/flags.h"
#include "tools/guard_fleet.h"
#include "tools/init.h"
#include "tools/key.h"
#include "tools/member.h"
#include "tools/policy.h"
#include "tools/sim.h"
#include "tools/tenant_fleet.h"

#define WORDS_MOST 8 /* behind gale help */

static void help(FILE *out)
{
	fputs("usage: gale COMMAND [FLAG...]\n"
	      "\n"
	      "  check      check whether a file is a policy\n"
	      "  fleet      run a fleet against one store and check its limit\n"
	      "  sim        run a fleet in virtual time and check its limit\n"
	      "  store      make a server ready, or check its answers\n"
	      "  doctor     examine a server, and say what to do\n"
	      "  peek       what a key has spent, what is left, and when that changes\n"
	      "  forecast   when a call of some cost would be admitted\n"
	      "  watch      peek again and again\n"
	      "  reset      give a key its whole limit again\n"
	      "  version    print the version\n"
	      "  help       print this; gale help COMMAND explains a command\n",
	      out);
}

/* What was printed has to arrive. */
static int printed(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror("gale: standard output");
	return FLEET_FAILED;
}

static int refuse(const char *command, const struct flags_error *error)
{
	fprintf(stderr, "gale%s%s: %s\n", command[0] ? " " : "", command, error->text);
	return FLEET_BAD_USE;
}

static int do_version(int argc, char **argv)
{
	struct flags_error error;

	switch (flags_read_none(argc, argv, &error)) {
	case FLAGS_RUN:
		printf("gale %s\n", gale_version());
		return printed();
	case FLAGS_HELP:
		printf("usage: gale version\n\nPrints the version of gale.\n");
		return printed();
	case FLAGS_BAD:
		break;
	}
	return refuse("version", &error);
}

static int do_guard_fleet(int argc, char **argv)
{
	struct guard_flags flags;
	struct flags_error error;

	switch (guard_flags_parse(argc, argv, &flags, &error)) {
	case FLAGS_RUN:
		return (int)guard_fleet_run(&flags);
	case FLAGS_HELP:
		guard_fleet_help(stdout);
		return printed();
	case FLAGS_BAD:
		break;
	}
	return refuse("fleet --guard", &error);
}

static int do_tenant_fleet(int argc, char **argv)
{
	struct tenant_flags flags;
	struct flags_error error;

	switch (tenant_flags_parse(argc, argv, &flags, &error)) {
	case FLAGS_RUN:
		return (int)tenant_fleet_run(&flags);
	case FLAGS_HELP:
		tenant_fleet_help(stdout);
		return printed();
	case FLAGS_BAD:
		break;
	}
	return refuse("fleet --tenants", &error);
}

static int do_fleet(int argc, char **argv)
{
	struct fleet_flags flags;
	struct flags_error error;

	if (guard_flags_wanted(argc, argv))
		return do_guard_fleet(argc, argv);
	if (tenant_flags_wanted(argc, argv))
		return do_tenant_fleet(argc, argv);
	switch (flags_parse(argc, argv, &flags, &error)) {
	case FLAGS_RUN:
		return (int)fleet_run(&flags);
	case FLAGS_HELP:
		fleet_help(stdout);
		return printed();
	case FLAGS_BAD:
		break;
	}
	return refuse("fleet", &error);
}

/* One of the processes of a fleet; its controller has looked at the flags. */
static int do_member(int argc, char **argv)
{
	struct fleet_flags flags;
	struct flags_error error;

	if (flags_parse(argc, argv, &flags, &error) == FLAGS_RUN)
		return member_run(&flags);
	return FLEET_BAD_USE;
}

static int do_store(int argc, char **argv)
{
	int status = init_run(argc, argv, stdout, stderr);

	return status == INIT_DONE && printed() != 0 ? INIT_FAILED : status;
}

static int do_doctor(int argc, char **argv)
{
	int status = doctor_run(argc, argv, stdout, stderr);

	return status != DOCTOR_BAD_USE && printed() != 0 ? FLEET_FAILED : status;
}

static int do_check(int argc, char **argv)
{
	int status = policy_run(argc, argv, stdout, stderr);

	return status == POLICY_GOOD && printed() != 0 ? POLICY_WRONG : status;
}

static int do_key(enum key_command command, int argc, char **argv)
{
	int status = key_run(command, argc, argv, stdout, stderr);

	return status == KEY_DONE && printed() != 0 ? KEY_FAILED : status;
}

static int do_peek(int argc, char **argv)
{
	return do_key(KEY_PEEK, argc, argv);
}

static int do_reset(int argc, char **argv)
{
	return do_key(KEY_RESET, argc, argv);
}

static int do_forecast(int argc, char **argv)
{
	return do_key(KEY_FORECAST, argc, argv);
}

static int do_watch(int argc, char **argv)
{
	return do_key(KEY_WATCH, argc, argv);
}

static int do_sim(int argc, char **argv)
{
	return sim_run(argc, argv);
}

static int do_help(int argc, char **argv);

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "check", do_check },
	{ "fleet", do_fleet },
	{ "sim", do_sim },
	{ "store", do_store },
	{ "doctor", do_doctor },
	{ "peek", do_peek },
	{ "forecast", do_forecast },
	{ "watch", do_watch },
	{ "reset", do_reset },
	{ "version", do_version },
	{ "--version", do_version },
	{ "help", do_help },
	{ "--help", do_help },
	{ "-h", do_help },
	{ MEMBER_COMMAND, do_member },
};

static int run(int argc, char **argv)
{
	struct flags_error error;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, argv[0]) == 0)
			return commands[i].run(argc - 1, argv + 1);
	flags_unknown(&error, argv[0],
	              "check, fleet, sim, store, doctor, peek, forecast, watch, "
	              "reset, version, help");
	return refuse("", &error);
}

/* gale help store init is gale store init --help. */
static int do_help(int argc, char **argv)
{
	char last[] = "--help", *words[WORDS_MOST];
	bool is_general = argc == 0 || argv[0][0] == '-' || argc >= WORDS_MOST ||
	                  strcmp(argv[0], "help") == 0;

	if (is_general) {
		help(stdout);
		return printed();
	}
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	words[argc] = last;
	return run(argc + 1, words);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return run(argc - 1, argv + 1);
	help(stderr);
	return FLEET_BAD_USE;
}
