/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * notice.c -- one word: a thread that changes it from or to 0 has something to say.
 *
 * Threads   As notice.h says.
 */
#include "stores/notice.h"

bool notice_begin(struct quarantine_notice *notice, mono now, uint64_t left_us)
{
	uint64_t until = load_relaxed(&notice->until_ns);
	uint64_t end = mono_after(now, left_us * 1000).ns;

	while (until < end)
		if (swap_if_relaxed(&notice->until_ns, &until, end))
			return until == 0;
	return false;
}

bool notice_turn(struct quarantine_notice *notice, mono now, mono *ret_due)
{
	uint64_t until = load_relaxed(&notice->until_ns);

	while (until > 0 && mono_reached(now, (mono){ until }))
		if (swap_if_relaxed(&notice->until_ns, &until, 0)) {
			*ret_due = (mono){ UINT64_MAX };
			return true;
		}
	*ret_due = (mono){ until > 0 ? until : UINT64_MAX };
	return false;
}
