/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* redis_sentinel.c -- processes, and what the sentinel writes into its log. */
#define _GNU_SOURCE
#include "tests/support/redis_sentinel.h"

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

static void start_server(struct redis_sentinel *sentinel, int i)
{
	const char *options[] = { "--port",
		                  sentinel->ports[i],
		                  "--bind",
		                  "127.0.0.1",
		                  "--repl-diskless-sync-delay",
		                  "0",
		                  i > 0 ? "--replicaof" : NULL,
		                  "127.0.0.1",
		                  sentinel->ports[0],
		                  NULL };

	snprintf(sentinel->ports[i], sizeof(sentinel->ports[i]), "%d", free_port());
	memcpy(sentinel->options[i], options, sizeof(options));
	redis_server_start(&sentinel->servers[i], sentinel->options[i]);
}

bool redis_is_linked(void *arg)
{
	struct redis_talk talk;
	redisReply *reply;
	bool linked;

	redis_talk_open(&talk, arg);
	reply = redis_talk_say(&talk, "INFO replication");
	linked = strstr(reply->str, "master_link_status:up");
	redis_reply_free(reply);
	redis_talk_close(&talk);
	return linked;
}

static void write_config(const struct redis_sentinel *sentinel, const char *path)
{
	FILE *file = fopen(path, "w");

	must(file != NULL);
	fprintf(file,
	        "port %d\nbind 127.0.0.1\ndir %s\nlogfile %s/log\n"
	        "sentinel monitor " SENTINEL_SERVICE " 127.0.0.1 %s 1\n"
	        "sentinel down-after-milliseconds " SENTINEL_SERVICE " 500\n"
	        "sentinel failover-timeout " SENTINEL_SERVICE " 3000\n",
	        sentinel->port, sentinel->folder, sentinel->folder, sentinel->ports[0]);
	must(fclose(file) == 0);
}

static void begin(struct redis_sentinel *sentinel)
{
	char path[80];

	scratch_make(sentinel->folder, sizeof(sentinel->folder), "sentinel");
	sentinel->port = free_port();
	snprintf(path, sizeof(path), "%s/conf", sentinel->folder);
	write_config(sentinel, path);
	sentinel->pid = fork();
	must(sentinel->pid >= 0);
	if (sentinel->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("redis-sentinel", "redis-sentinel", path, NULL);
		_exit(127);
	}
}

/* It may have been about to write another. */
static void remove_files(const char *folder)
{
	DIR *open = opendir(folder);
	struct dirent *file;

	must(open != NULL);
	while ((file = readdir(open)))
		(void)unlinkat(dirfd(open), file->d_name, 0);
	closedir(open);
}

void redis_sentinel_end(struct redis_sentinel *sentinel)
{
	if (sentinel->pid == 0)
		return;
	kill(sentinel->pid, SIGKILL);
	must(waitpid(sentinel->pid, NULL, 0) == sentinel->pid);
	sentinel->pid = 0;
	remove_files(sentinel->folder);
	must(rmdir(sentinel->folder) == 0);
}

/* Lines of its log. */
static int lines_with(const struct redis_sentinel *sentinel, const char *what)
{
	char path[80], line[512];
	int count = 0;
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", sentinel->folder);
	log = fopen(path, "r");
	while (log && fgets(line, sizeof(line), log))
		count += strstr(line, what) != NULL;
	if (log)
		fclose(log);
	return count;
}

int redis_sentinel_switches(const struct redis_sentinel *sentinel)
{
	return lines_with(sentinel, "+switch-master ");
}

static bool knows_replicas(void *arg)
{
	const struct redis_sentinel *sentinel = arg;

	return lines_with(sentinel, "+slave ") == sentinel->count - 1;
}

/* A sentinel asks a primary for its replicas at once, and then every ten seconds: if one
 * was not linked by then, and the primary has gone since, there is nobody to take over. */
void redis_sentinel_start(struct redis_sentinel *sentinel, int servers)
{
	*sentinel = (struct redis_sentinel){ .count = servers };
	for (int i = 0; i < servers; i++)
		start_server(sentinel, i);
	for (int i = 1; i < servers; i++)
		must(becomes_true(redis_is_linked, &sentinel->servers[i]));
	begin(sentinel);
	must(becomes_true(knows_replicas, sentinel));
}

void redis_sentinel_stop(struct redis_sentinel *sentinel)
{
	redis_sentinel_end(sentinel);
	for (int i = 0; i < sentinel->count; i++)
		redis_server_stop(&sentinel->servers[i]);
}
