/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* pool.c -- pgbouncer, run as a child. */
#define _GNU_SOURCE
#include "tests/support/pool.h"

#include <grp.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/must.h"

static const char settings[] = "[databases]\n"
			       "postgres = host=%s port=5432 user=gale\n"
			       "[pgbouncer]\n"
			       "listen_addr =\n"
			       "listen_port = %d\n"
			       "unix_socket_dir = %s\n"
			       "auth_type = any\n"
			       "pool_mode = transaction\n"
			       "default_pool_size = 3\n"
			       "max_client_conn = 300\n"
			       "server_login_retry = 0.1\n"
			       "server_connect_timeout = 1\n";

static void name_of(const struct pooler *pool, const char *what, char *out, size_t room)
{
	snprintf(out, room, "%s/%s", pool->folder, what);
}

static void write_settings(const struct pooler *pool)
{
	char path[128];
	FILE *file;

	name_of(pool, "pool.ini", path, sizeof(path));
	file = fopen(path, "w");
	must(file != NULL);
	must(fprintf(file, settings, pool->folder, POOL_PORT, pool->folder) > 0);
	must(fclose(file) == 0);
	must(chmod(path, 0644) == 0);
}

/* Whose folder that is: it refuses to be root. */
static void become_owner(const struct pooler *pool)
{
	struct stat folder;

	must(stat(pool->folder, &folder) == 0);
	if (geteuid() == 0)
		must(setgroups(0, NULL) == 0 && setgid(folder.st_gid) == 0 &&
		     setuid(folder.st_uid) == 0);
	must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); /* with the test */
	must(chdir(pool->folder) == 0);
}

static _Noreturn void be_pool(const struct pooler *pool)
{
	static const char *const programs[] = { "/usr/sbin/pgbouncer",
		                                "/usr/bin/pgbouncer",
		                                "/usr/local/bin/pgbouncer" };

	become_owner(pool);
	must(freopen("pool.log", "a", stdout) && dup2(STDOUT_FILENO, 2) >= 0);
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		execl(programs[i], "pgbouncer", "pool.ini", (char *)NULL);
	_exit(127);
}

static bool answers(void *arg)
{
	const struct pooler *pool = arg;
	char address[192];

	snprintf(address, sizeof(address), "host=%s port=%d user=gale dbname=postgres",
	         pool->folder, POOL_PORT);
	return PQping(address) == PQPING_OK;
}

static void launch(struct pooler *pool)
{
	char socket[128];

	/* One that was killed has left it behind. */
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.%d", pool->folder, POOL_PORT);
	(void)unlink(socket);
	pool->pid = fork();
	must(pool->pid >= 0);
	if (pool->pid == 0)
		be_pool(pool);
	must(becomes_true(answers, pool));
}

void pool_start(struct pooler *pool, const char *folder)
{
	must(strlen(folder) < sizeof(pool->folder));
	strcpy(pool->folder, folder);
	write_settings(pool);
	launch(pool);
}

void pool_stop(struct pooler *pool)
{
	int status;

	must(kill(pool->pid, SIGKILL) == 0);
	must(waitpid(pool->pid, &status, 0) == pool->pid);
}

void pool_restart(struct pooler *pool)
{
	pool_stop(pool);
	launch(pool);
}
