/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* redis_server.c -- fork, exec, and a socket that answers after a while. */
#define _GNU_SOURCE
#include "tests/support/redis_server.h"

#include <endian.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/memory.h"
#include "tests/support/must.h"
#include "tests/support/scratch.h"

#define OPTIONS_MOST 48
#define WORDS_MOST 32
#define REPLY_MOST (1 << 21) /* of a part */

/* ---- The server ------------------------------------------------------------------ */

/* It may have kept files, and folders of files. */
static int remove_one(const char *path, const struct stat *about, int kind,
                      struct FTW *where)
{
	(void)about;
	(void)kind;
	(void)where;
	return remove(path);
}

static void remove_folder(const struct redis_server *server)
{
	(void)nftw(server->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static size_t add_options(const char **args, size_t count, const char *const *options)
{
	for (size_t i = 0; options && options[i]; i++) {
		must(count < OPTIONS_MOST);
		args[count++] = options[i];
	}
	return count;
}

/* Another one that speaks the same, such as valkey-server. */
static const char *program(void)
{
	const char *named = getenv("GALE_TEST_REDIS");

	return named ? named : "redis-server";
}

_Noreturn static void be_server(const struct redis_server *server,
                                const char *const *options)
{
	const char *const own[] = { program(),
		                    "--port",
		                    "0",
		                    "--save",
		                    "",
		                    "--appendonly",
		                    "no",
		                    "--daemonize",
		                    "no",
		                    "--logfile",
		                    "log",
		                    "--loglevel",
		                    "warning",
		                    "--unixsocket",
		                    server->socket,
		                    "--dir",
		                    server->folder,
		                    NULL };
	const char *args[OPTIONS_MOST + 1] = { NULL };

	add_options(args, add_options(args, 0, own), options);
	prctl(PR_SET_PDEATHSIG, SIGKILL);        /* it does not outlive the test */
	must(freopen("/dev/null", "w", stdout)); /* its log */
	execvp(args[0], (char *const *)(uintptr_t)args);
	perror(args[0]);
	_exit(127);
}

static int try_connect(const struct redis_server *server)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	must(strlen(server->socket) < sizeof(address.sun_path));
	strcpy(address.sun_path, server->socket);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool answers(void *arg)
{
	const struct redis_server *server = arg;
	int fd;

	must(waitpid(server->pid, NULL, WNOHANG) == 0); /* it is still there */
	fd = try_connect(server);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void launch(struct redis_server *server)
{
	server->pid = fork();
	must(server->pid >= 0);
	if (server->pid == 0)
		be_server(server, server->options);
	must(becomes_true(answers, server));
}

void redis_server_start(struct redis_server *server, const char *const *options)
{
	server->options = options;
	scratch_make(server->folder, sizeof(server->folder), "redis");
	snprintf(server->socket, sizeof(server->socket), "%s/socket", server->folder);
	launch(server);
}

static void end(struct redis_server *server, int signal)
{
	int status;

	if (server->pid == 0)
		return;
	must(kill(server->pid, signal) == 0);
	must(waitpid(server->pid, &status, 0) == server->pid);
	server->pid = 0;
}

/* It may stand still, if a test has failed meanwhile. */
void redis_server_stop(struct redis_server *server)
{
	if (server->pid != 0)
		redis_server_go_on(server);
	end(server, SIGTERM);
	remove_folder(server);
}

void redis_server_kill(struct redis_server *server)
{
	end(server, SIGKILL);
}

void redis_server_restart(struct redis_server *server)
{
	redis_server_kill(server);
	launch(server);
}

/* It has stopped when this returns. */
void redis_server_pause(const struct redis_server *server)
{
	int status;

	must(kill(server->pid, SIGSTOP) == 0);
	must(waitpid(server->pid, &status, WUNTRACED) == server->pid);
	must(WIFSTOPPED(status));
}

void redis_server_go_on(const struct redis_server *server)
{
	must(kill(server->pid, SIGCONT) == 0);
}

/* So many characters of what INFO says behind a name. */
static void read_info(struct redis_talk *talk, const char *name, char *out,
                      size_t count)
{
	redisReply *info = redis_talk_say(talk, "INFO");
	const char *at;

	must(info->type == REDIS_REPLY_STRING);
	at = strstr(info->str, name);
	must(at && strlen(at + strlen(name)) > count);
	memcpy(out, at + strlen(name), count);
	out[count] = '\0';
	redis_reply_free(info);
}

void redis_server_settle(const struct redis_server *server, const char *prefix)
{
	redis_server_settle_durable(server, prefix, 0);
}

void redis_server_settle_durable(const struct redis_server *server, const char *prefix,
                                 unsigned durable)
{
	redis_server_settle_bucket(server, prefix, 0, durable);
}

void redis_server_settle_bucket(const struct redis_server *server, const char *prefix,
                                uint8_t bucket, unsigned durable)
{
	static const char latest[8]; /* time that was seen there: the first of all */
	struct redis_talk talk;
	char run[7], tenure[9], key[64], value[32];
	struct remote_bytes words[3] = { { (const uint8_t *)"SET", 3 },
		                         { (const uint8_t *)key, 0 },
		                         { (const uint8_t *)value, 0 } };

	redis_talk_open(&talk, server);
	read_info(&talk, "run_id:", run, sizeof(run) - 1);
	read_info(&talk, "master_replid:", tenure, sizeof(tenure) - 1);
	words[1].count =
	    (size_t)snprintf(key, sizeof(key), "%s{b%02x}generation", prefix, bucket);
	words[2].count =
	    (size_t)snprintf(value, sizeof(value), "%s%s%u:1", run, tenure, durable);
	memcpy(value + words[2].count, latest, sizeof(latest));
	words[2].count += sizeof(latest);
	must(redis_put_words(&talk.text, words, 3));
	redis_talk_send(&talk);
	redis_reply_free(redis_talk_hear(&talk));
	redis_talk_close(&talk);
}

/* ---- Talks ----------------------------------------------------------------------- */

void redis_talk_open(struct redis_talk *talk, const struct redis_server *server)
{
	*talk = (struct redis_talk){ .text.allocator = memory_default() };
	talk->fd = try_connect(server);
	must(talk->fd >= 0);
	must(redis_intake_open(&talk->intake, REPLY_MOST));
}

void redis_talk_close(struct redis_talk *talk)
{
	redis_intake_close(&talk->intake);
	redis_text_free(&talk->text);
	close(talk->fd);
}

void redis_talk_send(struct redis_talk *talk)
{
	while (talk->text.count > 0) {
		ssize_t sent =
		    send(talk->fd, talk->text.bytes, talk->text.count, MSG_NOSIGNAL);

		must(sent > 0);
		redis_text_cut(&talk->text, (size_t)sent);
	}
}

redisReply *redis_talk_hear(struct redis_talk *talk)
{
	char bytes[65536];
	redisReply *reply;

	for (;;) {
		ssize_t count;

		must(redis_intake_take(&talk->intake, &reply));
		if (reply)
			return reply;
		count = recv(talk->fd, bytes, sizeof(bytes), 0);
		must(count > 0);
		must(redis_intake_feed(&talk->intake, bytes, (size_t)count));
	}
}

redisReply *redis_talk_say(struct redis_talk *talk, const char *command)
{
	struct remote_bytes words[WORDS_MOST];
	size_t count = 0;

	while (*command != '\0') {
		size_t length = strcspn(command, " ");

		must(count < WORDS_MOST);
		words[count++] =
		    (struct remote_bytes){ (const uint8_t *)command, length };
		command += length + (command[length] == ' ');
	}
	must(redis_put_words(&talk->text, words, count));
	redis_talk_send(talk);
	return redis_talk_hear(talk);
}

void redis_talk_do(struct redis_talk *talk, const char *command)
{
	redisReply *reply = redis_talk_say(talk, command);

	if (reply->type == REDIS_REPLY_ERROR)
		fprintf(stderr, "%s: %s\n", command, reply->str);
	must(reply->type != REDIS_REPLY_ERROR);
	redis_reply_free(reply);
}

void redis_server_do(const struct redis_server *server, const char *command)
{
	struct redis_talk talk;

	redis_talk_open(&talk, server);
	redis_talk_do(&talk, command);
	redis_talk_close(&talk);
}

uint64_t redis_server_calls(const struct redis_server *server, const char *command)
{
	struct redis_talk talk;
	redisReply *info;
	const char *at;
	uint64_t calls;
	char name[64];

	(void)snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
	redis_talk_open(&talk, server);
	info = redis_talk_say(&talk, "INFO commandstats");
	must(info->type == REDIS_REPLY_STRING);
	at = strstr(info->str, name);
	calls = at ? strtoull(at + strlen(name), NULL, 10) : 0;
	redis_reply_free(info);
	redis_talk_close(&talk);
	return calls;
}

static uint64_t word_at(const char *text)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	return le64toh(word);
}

/* Folded (stores/value.h), what is used is a double. */
bool redis_window_of(const redisReply *value, uint64_t ret_words[2])
{
	uint64_t bits;
	double used;

	if (value->type != REDIS_REPLY_STRING || value->len < 32)
		return false;
	ret_words[0] = word_at(value->str + 16);
	ret_words[1] = word_at(value->str + 24);
	if (value->len < 72)
		return true;
	bits = word_at(value->str + 48);
	memcpy(&used, &bits, sizeof(used));
	ret_words[1] = (uint64_t)used;
	return true;
}
