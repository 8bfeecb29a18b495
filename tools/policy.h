/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* policy.h -- gale check: is a file a policy?  If not, where and why? */
#ifndef TOOLS_POLICY_H
#define TOOLS_POLICY_H

#include <stdio.h>

enum policy_status {
	POLICY_GOOD = 0,
	POLICY_WRONG = 1,
	POLICY_BAD_USE = 2,
};

/* argv as after "gale check". */
int policy_run(int argc, char **argv, FILE *out, FILE *err);

#endif
