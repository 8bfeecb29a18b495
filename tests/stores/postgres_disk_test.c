/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_disk_test.c -- a PostgreSQL whose disk is full, and has room again.  (L1, L12)
 *
 * gale's tables lie on a disk of some megabytes in memory, and the server's write-ahead log on another;
 * others fill either.  The disks are mounted where this process and its children alone see them.  A
 * machine may refuse that: then the test fails and says so, as nothing was tested.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <libpq-fe.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/late.h"
#include "tests/support/must.h"
#include "tests/support/postgres_server.h"
#include "tests/support/visitor.h"

#define TABLES_MB 4
#define LOG_MB 40 /* two files of the log */
#define LIMIT 40
#define BEFORE 10 /* asks while all is well */
#define DURING 10 /* asks of the same key while there is no room */

static struct postgres_server *server;
static char folder[64], tables[80], wal[80], url[128];
static unsigned wal_mb = LOG_MB;

/* ---- Disks ----------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	must(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Who is not root becomes the root of a namespace of users for it, and stays itself there. */
static bool may_mount(void)
{
	bool is_root = geteuid() == 0;
	char map[64];

	snprintf(map, sizeof(map), "%u %u 1", geteuid(), geteuid());
	if (unshare(CLONE_NEWNS | (is_root ? 0 : CLONE_NEWUSER)) != 0)
		return false;
	if (!is_root)
		write_text("/proc/self/uid_map", map);
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* It belongs to whom the folder of the server belongs to. */
static void mount_disk(const char *path, unsigned megabytes, unsigned long flags)
{
	char options[96];
	struct stat is;

	must(stat(folder, &is) == 0);
	snprintf(options, sizeof(options), "size=%um,mode=0700,uid=%u,gid=%u",
	         megabytes, is.st_uid, is.st_gid);
	if (mount("tmpfs", path, "tmpfs", flags, options) != 0)
		fail_msg("this machine refuses to mount a disk: %m");
}

static void new_disk(char path[80], const char *name, unsigned megabytes)
{
	snprintf(path, 80, "%s/%s", folder, name);
	must(mkdir(path, 0700) == 0);
	mount_disk(path, megabytes, 0);
}

/* ---- The server ------------------------------------------------------------------ */

/* What the server says if that fails; "": it does not. */
static void try_there(const char *sql, char ret_why[256])
{
	PGconn *conn = PQconnectdb(postgres_server_address(server));
	PGresult *result = PQexec(conn, sql);

	snprintf(ret_why, 256, "%s", PQerrorMessage(conn));
	PQclear(result);
	PQfinish(conn);
}

static void do_there(const char *sql)
{
	char why[256];

	try_there(sql, why);
	if (why[0] != '\0')
		print_error("%s: %s\n", sql, why);
	must(why[0] == '\0');
}

static void try_until_it_fails(const char *sql, char ret_why[256])
{
	do
		try_there(sql, ret_why);
	while (ret_why[0] == '\0');
}

/* What a statement wrote that has failed still has its room. */
static void fill_tables(void)
{
	char why[256];

	do_there("CREATE TABLE filler (number int) WITH (autovacuum_enabled = false)");
	try_until_it_fails("INSERT INTO filler SELECT generate_series(1, 20000)", why);
	assert_non_null(strstr(why, "No space left on device"));
}

static void empty_tables(void)
{
	do_there("DROP TABLE filler");
}

static unsigned ends(void)
{
	return postgres_server_logged(server, "due to startup process failure");
}

static bool has_ended_again(void *ends_before)
{
	return ends() > *(unsigned *)ends_before;
}

/* The server panics, and what would recover it has no room, either. */
static void fill_log(void)
{
	unsigned before = ends();
	char why[256];

	try_until_it_fails(
	    "SELECT pg_logical_emit_message(false, '', repeat('x', 1000000))", why);
	assert_true(becomes_true(has_ended_again, &before));
}

static void enlarge_log(void)
{
	wal_mb += LOG_MB;
	mount_disk(wal, wal_mb, MS_REMOUNT);
	postgres_server_restart(server, /* crashes= */ true);
}

static int open_all(void **state)
{
	char sql[160];

	(void)state;
	server = postgres_server_start();
	must(sscanf(postgres_server_address(server), "host=%63s", folder) == 1);
	snprintf(url, sizeof(url), "postgres://gale@/postgres?host=%s", folder);
	new_disk(tables, "tables", TABLES_MB);
	new_disk(wal, "wal", wal_mb);
	postgres_server_log_at(server, wal);
	snprintf(sql, sizeof(sql), "CREATE TABLESPACE small LOCATION '%s'", tables);
	do_there(sql);
	do_there("ALTER DATABASE postgres SET default_tablespace = small");
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	postgres_server_kill(server);
	must(umount2(tables, MNT_DETACH) == 0 && umount2(wal, MNT_DETACH) == 0);
	postgres_server_stop(server);
	return 0;
}

/* ---- What nodes get -------------------------------------------------------------- */

/* Each time another key, which needs room. */
static struct gale_answer ask_new_key(void *visitor)
{
	static unsigned keys;
	char key[64];

	snprintf(key, sizeof(key), "a key that is longer than most, number %u", keys++);
	return visitor_ask(visitor, key, 1);
}

static bool is_down(void *visitor)
{
	struct gale_answer answer = ask_new_key(visitor);

	return answer.verdict == GALE_DENY && answer.why == GALE_WHY_DOWN;
}

static bool is_admitted(void *visitor)
{
	return ask_new_key(visitor).verdict == GALE_ALLOW;
}

static unsigned admitted_of(struct visitor *visitor, unsigned asks)
{
	unsigned admitted = 0;

	for (unsigned i = 0; i < asks; i++)
		admitted += visitor_ask(visitor, "k", 1).verdict == GALE_ALLOW;
	return admitted;
}

/* Until it is spent. */
static unsigned rest_of(struct visitor *visitor)
{
	struct gale_answer answer;
	unsigned admitted = 0;

	do {
		answer = visitor_ask(visitor, "k", 1);
		admitted += answer.verdict == GALE_ALLOW;
	} while (answer.verdict == GALE_ALLOW || is_late(answer));
	return admitted;
}

struct trouble {
	void (*begin)(void);
	void (*end)(void);
	const char *told; /* in gale's log */
};

static void run(enum gale_mode mode, const struct trouble *trouble)
{
	unsigned admitted;
	struct visitor node;

	visitor_open(&node, url, gale_fixed_window(LIMIT, GALE_DAYS(3650)), mode);
	visitor_becomes(&node, is_admitted);
	admitted = admitted_of(&node, BEFORE);
	trouble->begin();
	visitor_becomes(&node, is_down);
	assert_true(lines_will_have(&node.lines, trouble->told));
	admitted += admitted_of(&node, DURING);
	trouble->end();
	visitor_becomes(&node, is_admitted);
	admitted += rest_of(&node);
	assert_in_range(admitted, 1, LIMIT);
	visitor_end(&node);
}

static void without_room_for_keys_it_is_an_outage(void **state)
{
	static const struct trouble trouble = { fill_tables, empty_tables,
		                                "No space left on device" };

	(void)state;
	run(GALE_STRICT, &trouble);
	run(GALE_LEASED, &trouble);
}

static void without_room_for_its_log_the_server_ends(void **state)
{
	static const struct trouble trouble = { fill_log, enlarge_log,
		                                "cannot connect" };

	(void)state;
	run(GALE_STRICT, &trouble);
	run(GALE_LEASED, &trouble);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_room_for_keys_it_is_an_outage),
		cmocka_unit_test(without_room_for_its_log_the_server_ends),
	};

	if (!may_mount()) {
		perror("this machine refuses a process mounts of its own, so a full "
		       "disk was "
		       "not tested: unshare");
		return 1;
	}
	return cmocka_run_group_tests(tests, open_all, close_all);
}
