/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * role_fault.c -- what clang -Wthread-safety must refuse, one fault at a time.
 *
 * Never linked.  roles.sh compiles it without a FAULT, which must succeed, and with
 * each of FAULT_FIELD, FAULT_LOCK, FAULT_ROLE and FAULT_DROP, which must not.
 */
#include "runtime/lock.h"
#include "runtime/role.h"

extern struct lock ledger_lock;
extern struct role clerk_role;
extern int ledger OF(ledger_lock);

struct account {
	struct lock lock;
	int balance;
};

void account_add(struct account *account) ON(account->lock);
void clerk_turn(void) ON(clerk_role);

void with_all_it_takes(struct account *account);
void with_all_it_takes(struct account *account)
{
	lock_take(&ledger_lock);
	ledger++;
	lock_drop(&ledger_lock);

	if (lock_try(&account->lock)) {
		account_add(account);
		lock_drop(&account->lock);
	}

	role_begin(&clerk_role);
	clerk_turn();
	role_end(&clerk_role);
}

void faulty(struct account *account);
void faulty(struct account *account)
{
#if defined(FAULT_FIELD)
	ledger++;
#elif defined(FAULT_LOCK)
	account_add(account);
#elif defined(FAULT_ROLE)
	clerk_turn();
#elif defined(FAULT_DROP)
	lock_take(&account->lock);
#endif
	(void)account;
}
