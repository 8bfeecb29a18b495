/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* postgres_server.c -- initdb, pg_basebackup, pg_ctl and postgres, run as children. */
#define _GNU_SOURCE
#include "tests/support/postgres_server.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/must.h"
#include "tests/support/port.h"
#include "tests/support/scratch.h"

#define PATH_MOST 256
#define PORT_DEFAULT 5432

struct postgres_server {
	char folder[64];
	char data[80];
	char programs[PATH_MOST]; /* the folder of initdb and postgres */
	char address[128];
	unsigned beginnings; /* before it was last crashed */
	uint16_t port;       /* on 127.0.0.1, and in the socket's name; 0: that only */
	uid_t user;          /* 0: whoever runs the test */
	gid_t group;
	pid_t pid;
};

/* ---- Programs -------------------------------------------------------------------- */

static bool has_initdb(const char *folder)
{
	char path[PATH_MOST + 16];

	snprintf(path, sizeof(path), "%s/initdb", folder);
	return access(path, X_OK) == 0;
}

static bool ask_pg_config(char programs[PATH_MOST])
{
	FILE *said = popen("pg_config --bindir 2>/dev/null", "r");
	bool there = said && fgets(programs, PATH_MOST, said);

	if (said)
		pclose(said);
	if (there)
		programs[strcspn(programs, "\n")] = 0;
	return there && has_initdb(programs);
}

static bool look_around(char programs[PATH_MOST])
{
	glob_t found;
	bool there = false;

	if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) != 0)
		return false;
	for (size_t i = 0; i < found.gl_pathc && !there; i++) {
		snprintf(programs, PATH_MOST, "%s", found.gl_pathv[i]);
		there = has_initdb(programs);
	}
	globfree(&found);
	return there;
}

/* ---- Children -------------------------------------------------------------------- */

/* PostgreSQL refuses to be root. */
static void find_user(struct postgres_server *server)
{
	const struct passwd *user;

	if (geteuid() != 0)
		return;
	user = getpwnam("postgres");
	if (!user)
		user = getpwnam("nobody");
	must(user);
	server->user = user->pw_uid;
	server->group = user->pw_gid;
}

static void become_user(const struct postgres_server *server)
{
	if (server->user != 0)
		must(setgroups(0, NULL) == 0 && setgid(server->group) == 0 &&
		     setuid(server->user) == 0);
	must(prctl(PR_SET_PDEATHSIG, SIGQUIT) == 0); /* at once, with the test */
	must(chdir(server->folder) == 0);
}

/* What it says goes to a file of its own. */
static _Noreturn void be_program(const struct postgres_server *server, const char *name,
                                 char **arguments)
{
	char path[PATH_MOST + 16];

	become_user(server);
	snprintf(path, sizeof(path), "%s/%s", server->programs, name);
	must(freopen("log", "a", stdout) && dup2(STDOUT_FILENO, STDERR_FILENO) >= 0);
	arguments[0] = path; /* its others are found beside it */
	execv(path, arguments);
	_exit(127);
}

static pid_t start(const struct postgres_server *server, const char *name,
                   char **arguments)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0)
		be_program(server, name, arguments);
	return pid;
}

static void show_log(const struct postgres_server *server)
{
	char path[PATH_MOST], line[512];
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", server->folder);
	log = fopen(path, "r");
	while (log && fgets(line, sizeof(line), log))
		fputs(line, stderr);
	if (log)
		fclose(log);
}

/* To its end. */
static void wait_for(const struct postgres_server *server, pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid);
	if (status != 0)
		show_log(server);
	must(status == 0);
}

static void run(const struct postgres_server *server, const char *name,
                char **arguments)
{
	wait_for(server, start(server, name, arguments));
}

/* ---- Clusters -------------------------------------------------------------------- */

/* initdb takes a second of a processor's time, and gives each server the same. */
static int first_cluster = -1; /* as a file of tar's, in memory or the one below */

/* Where tests/run.sh wants it, for all tests of a run; NULL: it is for this process alone. */
static const char *cluster_of_all(void)
{
	return getenv("GALE_TEST_CLUSTER");
}

static void run_tar(const struct postgres_server *server, const char *what, int stream)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		become_user(server);
		must(dup2(first_cluster, stream) == stream);
		execlp("tar", "tar", what, "-", "-C", server->data, ".", NULL);
		_exit(127);
	}
	wait_for(server, pid);
}

/* Under a name of its own first: others find all of it, or nothing. */
static void give_cluster(const char *path)
{
	char own[PATH_MOST + 16];
	struct stat is;
	int fd;

	must((size_t)snprintf(own, sizeof(own), "%s.%d", path, (int)getpid()) <
	     sizeof(own));
	fd = open(own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	must(fd >= 0 && fstat(first_cluster, &is) == 0);
	must(lseek(first_cluster, 0, SEEK_SET) == 0);
	for (off_t left = is.st_size; left > 0;) {
		ssize_t sent = sendfile(fd, first_cluster, NULL, (size_t)left);

		must(sent > 0);
		left -= sent;
	}
	must(close(fd) == 0 && rename(own, path) == 0);
}

static void keep_cluster(const struct postgres_server *server)
{
	first_cluster = memfd_create("cluster", MFD_CLOEXEC);
	must(first_cluster >= 0);
	run_tar(server, "-cf", STDOUT_FILENO);
	if (cluster_of_all())
		give_cluster(cluster_of_all());
}

static void copy_cluster(const struct postgres_server *server)
{
	must(mkdir(server->data, 0700) == 0);
	if (server->user != 0)
		must(chown(server->data, server->user, server->group) == 0);
	must(lseek(first_cluster, 0, SEEK_SET) == 0);
	run_tar(server, "-xf", STDIN_FILENO);
}

static void make_cluster(const struct postgres_server *server)
{
	char *arguments[] = { "initdb",   "-D",   (char *)server->data,
		              "-U",       "gale", "-A",
		              "trust",    "-E",   "UTF8",
		              "--locale", "C",    "--no-sync",
		              NULL };

	if (first_cluster < 0 && cluster_of_all())
		first_cluster = open(cluster_of_all(), O_RDONLY | O_CLOEXEC);
	if (first_cluster >= 0) {
		copy_cluster(server);
		return;
	}
	run(server, "initdb", arguments);
	keep_cluster(server);
}

/* ---- A server -------------------------------------------------------------------- */

static bool answers(void *arg)
{
	const struct postgres_server *server = arg;

	return PQping(server->address) == PQPING_OK;
}

static void begin(struct postgres_server *server)
{
	char port[8];
	char *arguments[] = { "postgres",
		              "-D",
		              server->data,
		              "-k",
		              server->folder,
		              "-c",
		              server->port ? "listen_addresses=127.0.0.1"
		                           : "listen_addresses=",
		              "-p",
		              port,
		              "-c",
		              "fsync=off",
		              "-c",
		              "max_connections=250",
		              "-c",
		              "shared_buffers=64MB",
		              NULL };

	bool there;

	snprintf(port, sizeof(port), "%u", server->port ? server->port : PORT_DEFAULT);
	server->pid = start(server, "postgres", arguments);
	there = becomes_true(answers, server);
	if (!there)
		show_log(server);
	must(there);
}

static void say_address(struct postgres_server *server)
{
	snprintf(server->address, sizeof(server->address),
	         "host=%s port=%u user=gale dbname=postgres", server->folder,
	         server->port ? server->port : PORT_DEFAULT);
}

/* ---- From start to stop ---------------------------------------------------------- */

static struct postgres_server *server_new(void)
{
	struct postgres_server *server = calloc(1, sizeof(*server));

	must(server);
	must(ask_pg_config(server->programs) || look_around(server->programs));
	find_user(server);
	scratch_make(server->folder, sizeof(server->folder), "postgres");
	if (server->user != 0)
		must(chown(server->folder, server->user, server->group) == 0);
	snprintf(server->data, sizeof(server->data), "%s/data", server->folder);
	return server;
}

struct postgres_server *postgres_server_start(void)
{
	struct postgres_server *server = server_new();

	say_address(server);
	make_cluster(server);
	begin(server);
	return server;
}

const char *postgres_server_address(const struct postgres_server *server)
{
	return server->address;
}

static void end(struct postgres_server *server, int how)
{
	int status;

	must(kill(server->pid, how) == 0);
	must(waitpid(server->pid, &status, 0) == server->pid);
	server->pid = 0;
}

void postgres_server_kill(struct postgres_server *server)
{
	end(server, SIGQUIT);
}

void postgres_server_restart(struct postgres_server *server, bool crashes)
{
	end(server, crashes ? SIGQUIT : SIGINT);
	begin(server);
}

uint16_t postgres_server_listen(struct postgres_server *server)
{
	end(server, SIGINT);
	server->port = free_port();
	say_address(server);
	begin(server);
	return server->port;
}

/* ---- Its log --------------------------------------------------------------------- */

void postgres_server_log_at(struct postgres_server *server, const char *folder)
{
	pid_t pid;

	end(server, SIGINT);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		become_user(server);
		execlp("sh", "sh", "-c",
		       "mv data/pg_wal \"$0\" && ln -s \"$0/pg_wal\" data", folder,
		       NULL);
		_exit(127);
	}
	wait_for(server, pid);
	begin(server);
}

/* ---- In TLS ---------------------------------------------------------------------- */

static FILE *open_file(const struct postgres_server *server, const char *name,
                       const char *how)
{
	char path[PATH_MOST];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", server->data, name);
	file = fopen(path, how);
	must(file != NULL);
	must(server->user == 0 ||
	     fchown(fileno(file), server->user, server->group) == 0);
	must(fchmod(fileno(file), 0600) == 0); /* or it takes no key from there */
	return file;
}

static void copy_file(const struct postgres_server *server, const char *from,
                      const char *name)
{
	FILE *in = fopen(from, "r"), *out = open_file(server, name, "w");
	char bytes[4096];
	size_t count;

	must(in != NULL);
	while ((count = fread(bytes, 1, sizeof(bytes), in)) > 0)
		must(fwrite(bytes, 1, count, out) == count);
	must(fclose(in) == 0 && fclose(out) == 0);
}

static void write_file(const struct postgres_server *server, const char *name,
                       const char *how, const char *text)
{
	FILE *out = open_file(server, name, how);

	must(fputs(text, out) >= 0 && fclose(out) == 0);
}

uint16_t postgres_server_secure(struct postgres_server *server,
                                const struct postgres_secrets *secrets)
{
	copy_file(server, secrets->ca, "ca.pem");
	copy_file(server, secrets->cert, "server.pem");
	copy_file(server, secrets->key, "server.key");
	write_file(server, "postgresql.conf", "a",
	           "\nssl = on\nssl_ca_file = 'ca.pem'\n"
	           "ssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n");
	write_file(server, "pg_hba.conf", "w",
	           "local all all trust\n"
	           "hostssl all guarded 127.0.0.1/32 trust clientcert=verify-ca\n"
	           "hostssl all all 127.0.0.1/32 trust\n");
	return postgres_server_listen(server);
}

/* ---- Asking ---------------------------------------------------------------------- */

void postgres_server_ask(const struct postgres_server *server, const char *sql,
                         char *ret_text, size_t size)
{
	PGconn *conn = PQconnectdb(server->address);
	PGresult *result = PQexec(conn, sql);

	if (PQntuples(result) != 1)
		fprintf(stderr, "%s: %s", sql, PQerrorMessage(conn));
	must(PQntuples(result) == 1 && PQnfields(result) == 1);
	must((size_t)snprintf(ret_text, size, "%s", PQgetvalue(result, 0, 0)) < size);
	PQclear(result);
	PQfinish(conn);
}

#define SPY                                                                            \
	"CREATE TABLE public.seen (process int, names int);"                           \
	"CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint LANGUAGE plpgsql"     \
	" VOLATILE AS $$ BEGIN INSERT INTO public.seen SELECT pg_backend_pid(),"       \
	" count(*) FROM pg_catalog.pg_prepared_statements; %s RETURN"                  \
	" (date_part('epoch', clock_timestamp()) * 1000000)::bigint; END $$"

void postgres_server_spy(const struct postgres_server *server, bool forgets)
{
	PGconn *conn = PQconnectdb(server->address);
	char sql[512];
	PGresult *result;

	must((size_t)snprintf(sql, sizeof(sql), SPY,
	                      forgets ? "EXECUTE 'DEALLOCATE ALL';" : "") <
	     sizeof(sql));
	result = PQexec(conn, sql);
	must(PQresultStatus(result) == PGRES_COMMAND_OK);
	PQclear(result);
	PQfinish(conn);
}

/* ---- Standbys -------------------------------------------------------------------- */

static void copy(const struct postgres_server *standby, uint16_t port)
{
	char from[96];
	char *arguments[] = { "pg_basebackup",
		              "-D",
		              (char *)standby->data,
		              "-d",
		              from,
		              "-R",
		              "-c",
		              "fast",
		              "--no-sync",
		              NULL };

	snprintf(from, sizeof(from), "host=127.0.0.1 port=%u user=gale", port);
	run(standby, "pg_basebackup", arguments);
}

struct postgres_server *postgres_server_follow(uint16_t port, uint16_t *ret_port)
{
	struct postgres_server *standby = server_new();

	copy(standby, port);
	*ret_port = standby->port = free_port();
	say_address(standby);
	begin(standby);
	return standby;
}

struct place {
	const struct postgres_server *standby;
	char lsn[32];
};

static bool has_replayed(void *arg)
{
	const struct place *place = arg;
	char sql[96], is[8];

	snprintf(sql, sizeof(sql), "SELECT pg_last_wal_replay_lsn() >= '%s'::pg_lsn",
	         place->lsn);
	postgres_server_ask(place->standby, sql, is, sizeof(is));
	return is[0] == 't';
}

void postgres_server_catch_up(const struct postgres_server *standby,
                              const struct postgres_server *primary)
{
	struct place place = { .standby = standby };

	postgres_server_ask(primary, "SELECT pg_current_wal_lsn()", place.lsn,
	                    sizeof(place.lsn));
	must(becomes_true(has_replayed, &place));
}

void postgres_server_promote(struct postgres_server *standby)
{
	char *arguments[] = { "pg_ctl", "promote", "-D", standby->data, NULL };

	run(standby, "pg_ctl", arguments);
}

/* ---- Crashes --------------------------------------------------------------------- */

unsigned postgres_server_logged(const struct postgres_server *server, const char *text)
{
	char path[PATH_MOST], line[512];
	unsigned count = 0;
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", server->folder);
	log = fopen(path, "r");
	must(log != NULL);
	while (fgets(line, sizeof(line), log))
		count += strstr(line, text) != NULL;
	fclose(log);
	return count;
}

/* How often it has begun anew, as its log says. */
static unsigned beginnings(const struct postgres_server *server)
{
	return postgres_server_logged(server, "reinitializing");
}

static bool has_begun_anew(void *arg)
{
	const struct postgres_server *server = arg;

	return beginnings(server) > server->beginnings;
}

/* It may still answer before it has noticed. */
void postgres_server_crash_process(struct postgres_server *server, int pid)
{
	server->beginnings = beginnings(server);
	must(kill(pid, SIGKILL) == 0);
	must(becomes_true(has_begun_anew, server));
	must(becomes_true(answers, server));
}

static int remove_one(const char *path, const struct stat *is, int flag,
                      struct FTW *walk)
{
	(void)is, (void)flag, (void)walk;
	return remove(path);
}

void postgres_server_stop(struct postgres_server *server)
{
	if (server->pid != 0)
		end(server, SIGINT);
	must(nftw(server->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
	free(server);
}
