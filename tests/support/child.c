/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* child.c -- fork, and wait. */
#define _DEFAULT_SOURCE
#include "tests/support/child.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/must.h"

/* ThreadSanitizer would end a child that starts threads, if its parent has some. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

_Noreturn static void be_child(int (*work)(void *arg), void *arg)
{
	struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	alarm(CHILD_SECONDS);
	_exit(work(arg));
}

int child_run(int (*work)(void *arg), void *arg)
{
	pid_t child = fork();
	int status;

	must(child >= 0);
	if (child == 0)
		be_child(work, arg);
	must(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
