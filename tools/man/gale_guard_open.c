/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_guard_open.c -- limit the calls that are in flight
 *
 * Errors   RUNTIME CONFIG RET MEMORY SYSTEM STORE NAME FORKED FENCED SIZE GUARD GUARD_NAME CEILING
 *          SHEDDABLE SLOTS_MOST OVERDUE LAW FLOOR START PROBE NODE WEIGHT DRIFT BEAT LEASE ABORT
 *          CUT_OFF ON_FENCED ALONE PARTS OF_ESTIMATES
 *
 * Prints
 *	the third call: ceiling
 *	entered 2, refused 1
 */
#include <stdio.h>

#include <gale/guard.h>

int main(void)
{
	struct gale_guard_config backend = { .name = "backend",
		                             .law = GALE_FIXED,
		                             .ceiling = 2 };
	struct gale_guard_counts counts;
	struct gale_entry calls[3];
	struct gale_runtime *runtime;
	struct gale_guard *guard;
	struct gale_seat *seat;

	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat) ||
	    gale_guard_open(runtime, &backend, &guard))
		return 1;
	for (int i = 0; i < 3; i++)
		calls[i] = gale_enter(seat, guard, 1, GALE_NORMAL);
	printf("the third call: %s\n", gale_why_name(calls[2].why));
	for (int i = 0; i < 3; i++)
		if (calls[i].verdict == GALE_ALLOW)
			gale_exit(seat, &calls[i], GALE_OK);
	if (gale_guard_stats(guard, &counts))
		return 1;
	printf("entered %d, refused %d\n", (int)counts.entered, (int)counts.refused);
	gale_leave(seat);
	gale_guard_close(guard);
	gale_runtime_close(runtime);
	return 0;
}
