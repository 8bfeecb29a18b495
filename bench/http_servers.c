/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* http_servers.c -- forked, moved to their processor, and told that they end with us. */
#define _GNU_SOURCE
#include "bench/http_servers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/http_load.h"
#include "bench/http_timed.h"
#include "tests/support/must.h"
#include "tests/support/port.h"

#define LIMIT "1000000000000"
#define CONF "nginx.conf"
#define PAGE "index.html"
#define PAGE_BYTES 612 /* as its welcome page */

void server_settle(pid_t pid, unsigned processor)
{
	const struct sched_param none = { 0 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	must(sched_setaffinity(pid, sizeof(set), &set) == 0);
	must(sched_setscheduler(pid, SCHED_BATCH, &none) == 0);
}

/* ---- Processes ------------------------------------------------------------------- */

struct command {
	char *const *arguments;
	const char *preload; /* or NULL */
	bool is_off;         /* what is loaded does not ask */
	unsigned processor;
	int out;      /* becomes its standard output; -1: it keeps ours */
	int timed_fd; /* becomes TIMED_FD; -1: there is none */
};

static struct timed *open_timed(int *ret_fd)
{
	struct timed *timed;

	*ret_fd = memfd_create("timed", MFD_CLOEXEC);
	must(*ret_fd >= 0 && ftruncate(*ret_fd, sizeof(*timed)) == 0);
	timed =
	    mmap(NULL, sizeof(*timed), PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	must(timed != MAP_FAILED);
	return timed;
}

static void pass_on(int timed_fd)
{
	if (timed_fd == TIMED_FD)
		must(fcntl(timed_fd, F_SETFD, 0) == 0);
	else if (timed_fd >= 0)
		must(dup2(timed_fd, TIMED_FD) >= 0);
}

_Noreturn static void be(const struct command *command)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	server_settle(0, command->processor);
	if (command->out >= 0)
		must(dup2(command->out, STDOUT_FILENO) >= 0);
	pass_on(command->timed_fd);
	if (command->preload)
		must(setenv("LD_PRELOAD", command->preload, 1) == 0);
	if (command->is_off)
		must(setenv(INSIDE_OFF, "", 1) == 0);
	execv(command->arguments[0], command->arguments);
	perror(command->arguments[0]);
	_exit(1);
}

static pid_t run(const struct command *command)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0)
		be(command);
	return pid;
}

/* ---- The server of the examples -------------------------------------------------- */

/* It says its port in its first line. */
static uint16_t port_of(int out)
{
	FILE *file = fdopen(out, "r");
	unsigned port = 0;

	must(file && fscanf(file, "listening on 127.0.0.1, port %u", &port) == 1);
	fclose(file);
	return (uint16_t)port;
}

static void start_example(struct server *server, const char *program,
                          const struct server_question *question, bool limits,
                          struct command *command)
{
	char clients[16];
	char *limit = strcmp(question->window, "1") == 0 ? LIMIT "/s" : LIMIT "/h";
	char *arguments[] = { (char *)program,
		              "--port",
		              "0",
		              "--threads",
		              "1",
		              "--limit",
		              limits ? limit : "0/s",
		              "--clients",
		              clients,
		              NULL };
	int out[2];

	snprintf(clients, sizeof(clients), "%d",
	         question->keys > 10000 ? 1 << 20 : 65536);
	must(pipe2(out, O_CLOEXEC) == 0);
	command->arguments = arguments;
	command->out = out[1];
	server->pid = run(command);
	close(out[1]);
	server->port = port_of(out[0]);
}

/* ---- nginx ----------------------------------------------------------------------- */

static void path_in(const struct server *server, const char *name, char ret_path[96])
{
	snprintf(ret_path, 96, "%s/%s", server->folder, name);
}

static void write_page(const struct server *server)
{
	char path[96];
	FILE *file;

	path_in(server, PAGE, path);
	file = fopen(path, "we");
	must(file != NULL);
	for (int i = 0; i < PAGE_BYTES; i++)
		must(fputc('.', file) != EOF);
	must(fclose(file) == 0);
}

static void write_conf(const struct server *server,
                       const struct server_question *question)
{
	char path[96];
	FILE *file;

	path_in(server, CONF, path);
	file = fopen(path, "we");
	must(file != NULL);
	fprintf(file,
	        "daemon off; master_process off; pid pid; error_log log;\n"
	        "events { worker_connections 64; }\n"
	        "http { access_log off; keepalive_requests 1000000000; "
	        "keepalive_timeout 1h; client_header_buffer_size 4k;\n"
	        "client_body_temp_path body; proxy_temp_path proxy;\n"
	        "fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path "
	        "scgi;\n"
	        "server { listen 127.0.0.1:%u; location / { %s } } }\n",
	        server->port,
	        question->writes_log
	            ? "root .; sendfile on; tcp_nopush on; access_log access;"
	            : "empty_gif;");
	must(fclose(file) == 0);
}

static bool listens(void *arg)
{
	const struct server *server = arg;
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(server->port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool there;

	must(fd >= 0);
	there = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return there;
}

static void start_nginx(struct server *server, const char *program,
                        const struct server_question *question, struct command *command)
{
	char *arguments[] = { (char *)program, "-p", server->folder, "-e",
		              "log",           "-c", CONF,           NULL };

	strcpy(server->folder, "/tmp/gale-nginx-XXXXXX");
	must(mkdtemp(server->folder) != NULL);
	server->port = free_port();
	write_conf(server, question);
	write_page(server);
	command->arguments = arguments;
	server->pid = run(command);
	must(becomes_true(listens, server));
}

static void remove_folder(const struct server *server)
{
	static const char *const names[] = { CONF,    PAGE,   "log",   "access",
		                             "pid",   "body", "proxy", "fastcgi",
		                             "uwsgi", "scgi" };
	char path[96];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path_in(server, names[i], path);
		(void)remove(path);
	}
	must(rmdir(server->folder) == 0);
}

/* ---- From start to stop ---------------------------------------------------------- */

void server_start(struct server *server, const struct server_programs *programs,
                  const struct server_question *question, bool limits, bool is_timed,
                  unsigned processor)
{
	const char *program = is_timed ? programs->timed : programs->server;
	struct command command = { .processor = processor, .out = -1, .timed_fd = -1 };

	*server = (struct server){ 0 };
	if (is_timed)
		server->timed = open_timed(&command.timed_fd);
	command.is_off = !limits;
	if (programs->nginx)
		command.preload = program;
	if (programs->nginx)
		start_nginx(server, programs->nginx, question, &command);
	else
		start_example(server, program, question, limits, &command);
	if (command.timed_fd >= 0)
		close(command.timed_fd);
	server->load = load_open(server->port, question->connections);
}

void server_end(struct server *server)
{
	load_close(server->load);
	must(kill(server->pid, SIGTERM) == 0);
}

void server_await(struct server *server)
{
	int status;

	must(waitpid(server->pid, &status, 0) == server->pid);
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	if (server->timed)
		munmap(server->timed, sizeof(*server->timed));
	if (server->folder[0])
		remove_folder(server);
}
