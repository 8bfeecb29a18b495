/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* rules.h -- one rule of each strategy, alike in what it lets through. */
#ifndef TESTS_SUPPORT_RULES_H
#define TESTS_SUPPORT_RULES_H

#include <gale/rule.h>

struct named_rule {
	const char *name;
	struct gale_rule rule;
};

/* While time stands still, each lets exactly FIFTY calls of cost 1 through. */
#define FIFTY 50
#define FIFTY_RULES 14
struct named_rule fifty_rule(unsigned which);

#endif
