/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* init.c -- picks who is asked by the URL. */
#include "tools/init.h"

#include <stdbool.h>
#include <string.h>

#include "tools/check.h"

static void help(FILE *out)
{
	fputs(
	    "usage: gale store init URL [--for ROLE]\n"
	    "       gale store check URL [--steps N] [--seed S]\n"
	    "\n"
	    "init makes a store ready:\n"
	    "  postgres://...        installs gale's schema, or brings it up to date;\n"
	    "                        --for ROLE lets that role use it\n"
	    "  redis://..., redis+sentinel://...\n"
	    "                        looks whether the server can be relied upon\n"
	    "  memory:               needs nothing\n"
	    "\n"
	    "It says what the server is, what was done, and which bound it can give.\n"
	    "\n"
	    "check runs random steps of all rules on a store, and compares each "
	    "answer\n"
	    "with the embedded store's; then a crowd at a limit.  Its keys have names "
	    "of\n"
	    "their own, and are reset at the end.\n"
	    "\n"
	    "Exit status: 0 it is ready, or keeps the laws; 1 not; 2 bad use; 3 an "
	    "answer\n"
	    "was late, so that it cannot be known: check again.\n",
	    out);
}

static bool starts(const char *url, const char *with)
{
	return strncmp(url, with, strlen(with)) == 0;
}

static enum init_status ask_postgres(const char *url, const char *role, FILE *out,
                                     struct sentence *ret_why)
{
#ifdef GALE_POSTGRES
	return init_postgres(url, role, out, ret_why);
#else
	(void)url, (void)role, (void)out;
	sentence_say(ret_why, "this gale was built without PostgreSQL");
	return INIT_FAILED;
#endif
}

static enum init_status ask_redis(const char *url, FILE *out, struct sentence *ret_why)
{
#ifdef GALE_REDIS
	return init_redis(url, out, ret_why);
#else
	(void)url, (void)out;
	sentence_say(ret_why, "this gale was built without Redis");
	return INIT_FAILED;
#endif
}

static enum init_status ask(const char *url, const char *role, FILE *out,
                            struct sentence *ret_why)
{
	if (starts(url, "postgres://") || starts(url, "postgresql://"))
		return ask_postgres(url, role, out, ret_why);
	if (role) {
		sentence_say(ret_why, "--for is for postgres:// only");
		return INIT_BAD_USE;
	}
	if (starts(url, "redis://") || starts(url, "redis+sentinel://"))
		return ask_redis(url, out, ret_why);
	if (starts(url, "memory:")) {
		fputs("memory: nothing is needed\n"
		      "bound: the limit, in every window, while it is open\n",
		      out);
		return INIT_DONE;
	}
	sentence_say(ret_why,
	             "%.200s: no URL of a store; there are memory:, redis://, "
	             "redis+sentinel://, postgres://",
	             url);
	return INIT_BAD_USE;
}

static int check(int argc, char **argv, FILE *out, FILE *err)
{
	int status = check_run(argc, argv, out, err);

	if (status == CHECK_BAD_USE)
		help(err);
	return status;
}

int init_run(int argc, char **argv, FILE *out, FILE *err)
{
	struct sentence why = { "" };
	bool has_role = argc == 4 && strcmp(argv[2], "--for") == 0;
	enum init_status status;

	if (argc == 1 && strcmp(argv[0], "--help") == 0) {
		help(out);
		return INIT_DONE;
	}
	if (argc > 0 && strcmp(argv[0], "check") == 0)
		return check(argc, argv, out, err);
	if (argc < 2 || strcmp(argv[0], "init") != 0 || (argc > 2 && !has_role)) {
		help(err);
		return INIT_BAD_USE;
	}
	status = ask(argv[1], has_role ? argv[3] : NULL, out, &why);
	if (status != INIT_DONE)
		fprintf(err, "gale store init: %s\n", why.is);
	return (int)status;
}
