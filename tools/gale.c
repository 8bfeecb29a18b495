/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* gale.c -- the gale command: picks what to do by its first word. */
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "tools/fleet.h"
#include "tools/flags.h"
#include "tools/init.h"
#include "tools/member.h"
#include "tools/sim.h"

static void help(FILE *out)
{
	fputs("usage: gale COMMAND [FLAG...]\n"
	      "\n"
	      "  fleet      run a fleet against one store and check its bound\n"
	      "  sim        run a fleet in virtual time and check its bound\n"
	      "  store      make a server ready, or say what it can promise\n"
	      "  version    print the version\n"
	      "  help       print this\n"
	      "\n"
	      "gale fleet --help, gale sim --help and gale store --help tell about "
	      "theirs.\n",
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

static int do_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	help(stdout);
	return printed();
}

static int do_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("gale %s\n", gale_version());
	return printed();
}

static int do_fleet(int argc, char **argv)
{
	struct fleet_flags flags;
	struct flags_error error;

	switch (flags_parse(argc, argv, &flags, &error)) {
	case FLAGS_RUN:
		return (int)fleet_run(&flags);
	case FLAGS_HELP:
		fleet_help(stdout);
		return printed();
	case FLAGS_BAD:
		break;
	}
	fprintf(stderr, "gale fleet: %s\n", error.text);
	return FLEET_BAD_USE;
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

static int do_sim(int argc, char **argv)
{
	return sim_run(argc, argv);
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "fleet", do_fleet },         { "sim", do_sim },
	{ "store", do_store },         { "version", do_version },
	{ "--version", do_version },   { "help", do_help },
	{ "--help", do_help },         { "-h", do_help },
	{ MEMBER_COMMAND, do_member },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, argv[1]) == 0)
			return commands[i].run(argc - 2, argv + 2);
	if (argc > 1)
		fprintf(stderr, "gale: unknown command; there are fleet, sim, store, "
		                "version, help\n");
	else
		help(stderr);
	return FLEET_BAD_USE;
}
