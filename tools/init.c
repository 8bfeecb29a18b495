/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* init.c -- the commands after "gale store"; the URL says which kind of server init asks. */
#include "tools/init.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <gale/gale.h>

#include "tools/check.h"
#include "tools/flag.h"

struct init_flags {
	const char *url;
	const char *role; /* NULL: none */
};

static const struct flag flags_of_init[] = {
	{ .name = "--for",
	  .takes = "ROLE",
	  .allowed = "the name of a PostgreSQL role",
	  .help = "postgres:// only: this role may use gale's schema afterwards",
	  .read = flag_read_text,
	  .at = offsetof(struct init_flags, role) },
};

static const struct flag_table table = {
	.flags = flags_of_init,
	.count = sizeof(flags_of_init) / sizeof(flags_of_init[0]),
	.operands = { { "the URL of a store", offsetof(struct init_flags, url) } },
};

static void help(FILE *out)
{
	fputs("usage: gale store init URL [--for ROLE]\n"
	      "       gale store check URL [--steps N] [--seed S]\n"
	      "\n"
	      "  init       make a store ready, or say why it is not\n"
	      "  check      compare a store's answers with the embedded store's\n"
	      "\n"
	      "gale store init --help and gale store check --help explain the flags.\n",
	      out);
}

static void help_init(FILE *out)
{
	fputs(
	    "usage: gale store init URL [--for ROLE]\n"
	    "\n"
	    "Makes a store ready.  Prints what the server is, what was done, and\n"
	    "which bound the server can keep.\n"
	    "\n"
	    "  postgres://...        installs gale's schema, or brings it up to date\n"
	    "  redis://..., redis+sentinel://..., redis+cluster://...\n"
	    "                        checks whether each primary is reliable, and "
	    "marks an\n"
	    "                        empty one as new, so that its first ask is "
	    "granted at once\n"
	    "  memory:               needs nothing\n"
	    "\n",
	    out);
	flags_explain(&table, out);
	fputs("\n"
	      "Exit status: 0 it is ready; 1 it is not; 2 an argument is wrong.\n",
	      out);
}

static bool starts(const char *url, const char *with)
{
	return strncmp(url, with, strlen(with)) == 0;
}

static enum init_status ask_postgres(const struct init_flags *flags, FILE *out,
                                     struct sentence *ret_why)
{
#ifdef GALE_POSTGRES
	return init_postgres(flags->url, flags->role, out, ret_why);
#else
	(void)flags, (void)out;
	sentence_say(ret_why,
	             "this gale was built without PostgreSQL: install libpq-dev, "
	             "and build it again");
	return INIT_FAILED;
#endif
}

static enum init_status ask_redis(const char *url, FILE *out, struct sentence *ret_why)
{
#ifdef GALE_REDIS
	return init_redis(url, out, ret_why);
#else
	(void)url, (void)out;
	sentence_say(ret_why,
	             "this gale was built without Redis: install libhiredis-dev, "
	             "and build it again");
	return INIT_FAILED;
#endif
}

/* Whatever the library would not open is refused as it refuses it. */
static enum init_status ask(const struct init_flags *flags, FILE *out,
                            struct sentence *ret_why)
{
	if (gale_url_check(flags->url, ret_why->is, sizeof(ret_why->is)) != GALE_ERR_OK)
		return INIT_BAD_USE;
	if (starts(flags->url, "postgres"))
		return ask_postgres(flags, out, ret_why);
	if (flags->role) {
		sentence_say(ret_why, "--for: for postgres:// only");
		return INIT_BAD_USE;
	}
	if (starts(flags->url, "redis"))
		return ask_redis(flags->url, out, ret_why);
	fputs("memory: nothing is needed\n"
	      "bound: the limit, in every window, while it is open\n",
	      out);
	return INIT_DONE;
}

static int run_init(int argc, char **argv, FILE *out, FILE *err)
{
	struct init_flags flags = { .url = NULL };
	struct sentence why = { "" };
	struct flags_error error;
	enum init_status status;

	switch (flags_read(&table, argc, argv, &flags, &error)) {
	case FLAGS_HELP:
		help_init(out);
		return INIT_DONE;
	case FLAGS_BAD:
		fprintf(err, "gale store init: %s\n", error.text);
		return INIT_BAD_USE;
	case FLAGS_RUN:
		break;
	}
	status = ask(&flags, out, &why);
	if (status != INIT_DONE)
		fprintf(err, "gale store init: %s\n", why.is);
	if (status == INIT_FAILED)
		fprintf(err, "gale store init: gale doctor URL says what to do\n");
	return (int)status;
}

int init_run(int argc, char **argv, FILE *out, FILE *err)
{
	const char *word = argc > 0 ? argv[0] : "";
	struct flags_error error;

	if (strcmp(word, "init") == 0)
		return run_init(argc - 1, argv + 1, out, err);
	if (strcmp(word, "check") == 0)
		return check_run(argc - 1, argv + 1, out, err);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		help(out);
		return INIT_DONE;
	}
	if (argc == 0)
		help(err);
	else if (flags_unknown(&error, word, "init, check, --help") == FLAGS_BAD)
		fprintf(err, "gale store: %s\n", error.text);
	return INIT_BAD_USE;
}
