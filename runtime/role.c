/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * role.c -- the hats themselves; putting one on has no run-time effect.
 *
 * Threads   None of its own: there is nothing to touch.
 */
#include "runtime/role.h"

struct role actor_role;

UNCHECKED void role_begin(struct role *role)
{
	(void)role;
}

UNCHECKED void role_end(struct role *role)
{
	(void)role;
}
