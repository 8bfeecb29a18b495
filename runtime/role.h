/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * role.h -- which thread may run this code, checked by clang -Wthread-safety.
 *
 * A role is a hat that a thread wears from start to end.  A function marked ON(role)
 * can be called only by code that wears it already, one marked ON(x->lock) only under
 * that lock, and a variable marked OF(lock) is touched only there.  gcc sees nothing,
 * and nothing is left of it at run time.
 *
 * Threads   None of its own: it is about them.
 * Limits    clang 14 cannot guard a member by a lock beside it.  Such members stand in
 *           a struct called "locked", and the functions that touch it are marked.
 */
#ifndef RUNTIME_ROLE_H
#define RUNTIME_ROLE_H

#if defined(__clang__)
#define ROLE_ATTRIBUTE_(x) __attribute__((x))
#else
#define ROLE_ATTRIBUTE_(x)
#endif

/* For the few functions that make the rules rather than keep them. */
#define UNCHECKED ROLE_ATTRIBUTE_(no_thread_safety_analysis)

#define CAPABILITY(name) ROLE_ATTRIBUTE_(capability(name))
#define ON(x) ROLE_ATTRIBUTE_(requires_capability(x))
#define OF(x) ROLE_ATTRIBUTE_(guarded_by(x))
#define TAKES(x) ROLE_ATTRIBUTE_(acquire_capability(x))
#define TAKES_IF_TRUE(x) ROLE_ATTRIBUTE_(try_acquire_capability(1, x))
#define DROPS(x) ROLE_ATTRIBUTE_(release_capability(x))

struct CAPABILITY("role") role {
	char unused;
};

/* The thread that runs an actor's turns. */
extern struct role actor_role;

/* A thread's main function puts its hat on once, and takes it off at its end. */
void role_begin(struct role *role) TAKES(*role);
void role_end(struct role *role) DROPS(*role);

#endif
