/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* gnuplot.c -- a script goes to its standard input. */
#include "tools/gnuplot.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

bool gnuplot_may_draw_in(const char *folder)
{
	struct stat is;

	return stat(folder, &is) == 0 && S_ISDIR(is.st_mode) && !strpbrk(folder, "'\n");
}

bool gnuplot_run(const char *script)
{
	FILE *pipe;
	int status;

	(void)signal(SIGPIPE, SIG_IGN); /* it may be gone before it has read all */
	pipe = popen("gnuplot", "w");
	if (!pipe)
		return false;
	fputs(script, pipe);
	status = pclose(pipe);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		fputs("gale sim: --plots: gnuplot is not installed: install "
		      "gnuplot-nox\n",
		      stderr);
	return status == 0;
}
