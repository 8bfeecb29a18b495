/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* policy.c -- asks the library whether it would open the file. */
#include "tools/policy.h"

#include <stddef.h>

#include <gale/policy.h>

#include "tools/flag.h"

struct policy_flags {
	const char *path;
};

static const struct flag_table table = {
	.operands = { { "the file of a policy", offsetof(struct policy_flags, path) } },
};

static void help(FILE *out)
{
	fputs("usage: gale check FILE\n"
	      "\n"
	      "Checks whether a file is a policy: YAML that defines stores, limiters, "
	      "guards\n"
	      "and budgets.  If not, it prints the line, the field, and what is wrong. "
	      " No\n"
	      "server is asked.  (gale store check compares the answers of a store.)\n"
	      "\n",
	      out);
	flags_explain(&table, out);
	fputs("\n"
	      "Exit status: 0 it is a policy; 1 it is not, or cannot be read; 2 an "
	      "argument\n"
	      "is wrong.\n",
	      out);
}

/* A predictor is the program's: here any one stands for it. */
static uint64_t predict_nothing(struct gale_predictor *self, const void *key,
                                size_t key_len)
{
	(void)self, (void)key, (void)key_len;
	return 0;
}

static int check(const char *path, FILE *out, FILE *err)
{
#ifdef GALE_POLICY
	struct gale_predictor predictor = { predict_nothing };
	struct gale_policy_config config = { .path = path, .predictor = &predictor };
	char why[GALE_POLICY_WHY_ROOM];

	if (gale_policy_check(&config, why, sizeof(why)) == GALE_ERR_OK) {
		fprintf(out, "%s: is a policy\n", path);
		return POLICY_GOOD;
	}
	fprintf(err, "%s\n", why);
	return POLICY_WRONG;
#else
	(void)path, (void)out, (void)predict_nothing;
	fputs("gale check: this gale was built without policies: install libyaml-dev, "
	      "and build it again\n",
	      err);
	return POLICY_BAD_USE;
#endif
}

int policy_run(int argc, char **argv, FILE *out, FILE *err)
{
	struct policy_flags flags = { .path = NULL };
	struct flags_error error;

	switch (flags_read(&table, argc, argv, &flags, &error)) {
	case FLAGS_HELP:
		help(out);
		return POLICY_GOOD;
	case FLAGS_BAD:
		fprintf(err, "gale check: %s\n", error.text);
		return POLICY_BAD_USE;
	case FLAGS_RUN:
		break;
	}
	return check(flags.path, out, err);
}
