/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_combine.c -- read an answer, and make one of several
 *
 * Prints
 *	the second decides: down, an outage: yes, an estimate: no
 */
#include <stdio.h>

#include <gale/rule.h>

int main(void)
{
	struct gale_answer answers[] = {
		{ .verdict = GALE_ALLOW, .why = GALE_WHY_CREDIT, .limit = 100 },
		{ .verdict = GALE_DENY, .why = GALE_WHY_DOWN, .limit = 5 },
	};
	size_t binding;
	struct gale_answer all = gale_combine(answers, 2, &binding);

	if (all.verdict == GALE_DENY && binding == 1)
		printf("the second decides: %s, an outage: %s, an estimate: %s\n",
		       gale_why_name(all.why),
		       gale_why_is_outage(all.why) ? "yes" : "no",
		       gale_why_is_estimate(all.why) ? "yes" : "no");
	fprintf(stderr, "%s\n", gale_why_text(all.why));
	return 0;
}
