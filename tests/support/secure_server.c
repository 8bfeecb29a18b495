/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* secure_server.c -- the options of Redis for TLS. */
#define _GNU_SOURCE
#include "tests/support/secure_server.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/must.h"
#include "tests/support/port.h"
#include "tests/support/scratch.h"

/* ---- A server -------------------------------------------------------------------- */

void secure_server_start(struct secure_server *server, const struct certificate *shown,
                         const struct certificate *ca, const char *clients)
{
	const char *const options[] = { "--tls-port",
		                        server->port,
		                        "--tls-cert-file",
		                        shown->cert,
		                        "--tls-key-file",
		                        shown->key,
		                        "--tls-ca-cert-file",
		                        ca->cert,
		                        "--tls-auth-clients",
		                        clients,
		                        "--user",
		                        "ali",
		                        "on",
		                        ">baba",
		                        "~gale:*",
		                        "&*",
		                        "+@all",
		                        NULL };

	snprintf(server->port, sizeof(server->port), "%u", free_port());
	memcpy(server->options, options, sizeof(options));
	server->shown = shown;
	server->ca = ca;
	redis_server_start(&server->is, server->options);
}

void secure_server_stop(struct secure_server *server)
{
	redis_server_stop(&server->is);
}

/* ---- A sentinel ------------------------------------------------------------------ */

static void write_config(const struct secure_sentinel *sentinel,
                         const struct secure_server *server, const char *path)
{
	FILE *file = fopen(path, "w");

	must(file != NULL);
	fprintf(file,
	        "port 0\ntls-port %s\nbind 127.0.0.1\ndir %s\nlogfile %s/log\n"
	        "tls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\n"
	        "tls-auth-clients no\ntls-replication yes\n"
	        "sentinel monitor main 127.0.0.1 %s 1\n",
	        sentinel->port, sentinel->folder, sentinel->folder, server->shown->cert,
	        server->shown->key, server->ca->cert, server->port);
	must(fclose(file) == 0);
}

/* Its log says so once it listens. */
static bool is_ready(void *arg)
{
	const struct secure_sentinel *sentinel = arg;
	char path[80], line[512];
	bool is = false;
	FILE *log;

	must(waitpid(sentinel->pid, NULL, WNOHANG) == 0); /* it is still there */
	snprintf(path, sizeof(path), "%s/log", sentinel->folder);
	log = fopen(path, "r");
	while (log && fgets(line, sizeof(line), log))
		is |= strstr(line, "+monitor master main ") != NULL;
	if (log)
		fclose(log);
	return is;
}

void secure_sentinel_start(struct secure_sentinel *sentinel,
                           const struct secure_server *server)
{
	char path[80];

	scratch_make(sentinel->folder, sizeof(sentinel->folder), "sentinel");
	snprintf(sentinel->port, sizeof(sentinel->port), "%u", free_port());
	snprintf(path, sizeof(path), "%s/conf", sentinel->folder);
	write_config(sentinel, server, path);
	sentinel->pid = fork();
	must(sentinel->pid >= 0);
	if (sentinel->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive the test */
		execlp("redis-sentinel", "redis-sentinel", path, NULL);
		_exit(127);
	}
	must(becomes_true(is_ready, sentinel));
}

/* It may have been about to write another file. */
void secure_sentinel_stop(struct secure_sentinel *sentinel)
{
	struct dirent *file;
	DIR *open;

	must(kill(sentinel->pid, SIGKILL) == 0);
	must(waitpid(sentinel->pid, NULL, 0) == sentinel->pid);
	open = opendir(sentinel->folder);
	must(open != NULL);
	while ((file = readdir(open)))
		(void)unlinkat(dirfd(open), file->d_name, 0);
	closedir(open);
	must(rmdir(sentinel->folder) == 0);
}
