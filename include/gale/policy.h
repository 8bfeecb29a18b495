/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * policy.h -- stores, limiters, guards and budgets from a file.
 *
 *	struct gale_policy_config config = { .path = "policy.yaml" };
 *	char why[GALE_POLICY_WHY_ROOM];
 *
 *	if (gale_policy_open(runtime, &config, why, sizeof(why), &policy))
 *		give_up(why);                                          once
 *	api = gale_policy_limiter(policy, "api");                      once per name
 *	gale_wait(seat, api, key, key_len, 1, within);                 per call
 *	if (gale_policy_reload(policy, NULL, why, sizeof(why)))
 *		complain(why);                                         when the file has changed
 *
 * The functions are in a library of their own, libgale-policy, which needs libyaml; link it
 * with -lgale-policy (pkg-config gale-policy).  docs/policy.md lists all fields of a policy.
 *
 * Threads   The rules of gale.h for handles hold here.  Any thread may look a name up and
 *           reload; reloads wait for each other.  Do not use a policy while it is being
 *           closed, nor in a signal handler, nor in the child of a fork.
 * Blocking  A lookup takes a lock for a moment.  Opening and reloading read the file, and
 *           look up the names of servers, which may take a while.  Threads that look a name
 *           up, and calls on the handles, do not wait for that.
 * Memory    A policy's own memory comes from malloc, as libyaml's does.
 * Handles   A handle that a function below returns belongs to the policy: do not close it.
 *           The handle is good until the policy is closed, and stays the same for its name:
 *           look it up once.  For a name that the policy does not define the result is NULL,
 *           and an ask of a NULL limiter is denied.
 */
#ifndef GALE_POLICY_H
#define GALE_POLICY_H

#include <gale/gale.h>
#include <gale/guard.h>
#include <gale/tenants.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GALE_POLICY_BYTES_MAX (UINT32_C(1) << 20) /* of a file or text */
#define GALE_POLICY_WHY_ROOM 512 /* is enough for nearly every sentence */

struct gale_policy;

/* Where a policy is, and the functions of the host that it may use.  Zero it before you
 * fill it. */
struct gale_policy_config {
	/* One of these two is given, and the other is NULL. */
	const char *path; /* a file, which each reload reads again */
	const char *text; /* the policy itself */
	/* For limiters with "sizing: hedge".  It must outlive the runtime. */
	struct gale_predictor *predictor;
	/* For all guards with a store.  It must outlive the runtime. */
	struct gale_on_fenced *on_fenced;
	/* Must be 0.  A new field takes the place of the first element. */
	uint64_t reserved[4];
};

/*
 * Opens everything that the policy defines, or nothing.
 *
 * On an error ret_why gets a sentence with the file, the line, the field, and what is wrong:
 *
 *     policy.yaml:7: limiters.api.limit: "100 per fortnight" is no rate: ...
 *
 * If a store, limiter, guard or budget cannot be opened, the error is that of the function
 * that opens one.
 *
 * A sentence contains no URL, and so no password.  One that is longer than room bytes is cut.
 * If room is 0, ret_why may be NULL.  Without an error the sentence is empty.
 */
GALE_API enum gale_err gale_policy_open(struct gale_runtime *runtime,
                                        const struct gale_policy_config *config,
                                        char *ret_why, size_t room,
                                        struct gale_policy **ret_policy);

/* Finds the mistakes that gale_policy_open would find, but leaves nothing open, looks up no
 * name and asks no server. */
GALE_API enum gale_err gale_policy_check(const struct gale_policy_config *config,
                                         char *ret_why, size_t room);

/*
 * Puts a new policy in force: this text, or the file as it is now if text is NULL.
 *
 * All of the new policy comes into force, or none of it.  On an error the old policy stays in
 * force, and ret_why gets a sentence.  So a broken file changes nothing.  A file that is only
 * half written has no last line ("..."), which is an error, too.
 *
 *     changed   the limits, rates, bursts and waits of a rule, by gale_limiter_set_rule: what
 *               was spent stays spent.  The limit of a budget, and the terms of a tenant.
 *               Any other field of a name that is open cannot change: such a reload is an
 *               error.  Give the changed thing another name, or open the policy anew.
 *     new       is opened.
 *     gone      a name that the new policy does not define cannot be looked up any more.  Its
 *               handle works as before until the policy is closed.  A tenant that is gone
 *               loses its guarantee, but still counts towards max_tenants.  If a later policy
 *               defines the name again, the name has its old handle again.
 *
 * If memory runs out while rules are changed, gale restores the old rules, as far as there is
 * memory for that.
 */
GALE_API enum gale_err gale_policy_reload(struct gale_policy *policy, const char *text,
                                          char *ret_why, size_t room);

/* Closes everything that it has opened; closing NULL does nothing. */
GALE_API void gale_policy_close(struct gale_policy *policy);

GALE_API struct gale_store *gale_policy_store(struct gale_policy *policy,
                                              const char *name);
GALE_API struct gale_limiter *gale_policy_limiter(struct gale_policy *policy,
                                                  const char *name);
GALE_API struct gale_guard *gale_policy_guard(struct gale_policy *policy,
                                              const char *name);
/* Your program may open more tenants in this budget. */
GALE_API struct gale_budget *gale_policy_budget(struct gale_policy *policy,
                                                const char *name);
GALE_API struct gale_tenant *gale_policy_tenant(struct gale_policy *policy,
                                                const char *budget, const char *name);

#ifdef __cplusplus
}
#endif
#endif
