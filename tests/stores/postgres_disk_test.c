/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_disk_test.c -- a PostgreSQL whose disk is full, and has room again.  (L1, L12)
 *
 * gale's tables lie on a disk of some megabytes in memory, which a table of another fills.  The disk is
 * mounted where this process and its children alone see it.  A machine may refuse that: then the test
 * fails and says so, as nothing was tested.
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

#define SIZE "4m"
#define LIMIT 40
#define BEFORE 10 /* asks while all is well */
#define DURING 10 /* asks of the same key while there is no room */

static struct postgres_server *server;
static char folder[64], disk[80], url[128];

/* ---- The disk -------------------------------------------------------------------- */

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
static bool mount_disk(void)
{
	char options[96];
	struct stat is;

	snprintf(disk, sizeof(disk), "%s/disk", folder);
	must(stat(folder, &is) == 0 && mkdir(disk, 0700) == 0);
	snprintf(options, sizeof(options), "size=" SIZE ",mode=0700,uid=%u,gid=%u",
	         is.st_uid, is.st_gid);
	return mount("tmpfs", disk, "tmpfs", 0, options) == 0;
}

/* ---- The server ------------------------------------------------------------------ */

/* What the server says if that fails; "": it does not. */
static void try_there(const char *sql, char ret_why[256])
{
	PGconn *conn = PQconnectdb(postgres_server_address(server));
	PGresult *result = PQexec(conn, sql);

	snprintf(ret_why, 256, "%s", PQresultErrorMessage(result));
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

/* What a statement wrote that has failed still has its room. */
static void fill_disk(void)
{
	char why[256] = "";

	do_there("CREATE TABLE filler (number int) WITH (autovacuum_enabled = false)");
	while (why[0] == '\0')
		try_there("INSERT INTO filler SELECT generate_series(1, 20000)", why);
	assert_non_null(strstr(why, "No space left on device"));
}

static void empty_disk(void)
{
	do_there("DROP TABLE filler");
}

static int open_all(void **state)
{
	char sql[160];

	(void)state;
	server = postgres_server_start();
	must(sscanf(postgres_server_address(server), "host=%63s", folder) == 1);
	snprintf(url, sizeof(url), "postgres://gale@/postgres?host=%s", folder);
	if (!mount_disk())
		fail_msg("this machine refuses to mount a disk: %m");
	snprintf(sql, sizeof(sql), "CREATE TABLESPACE small LOCATION '%s'", disk);
	do_there(sql);
	do_there("ALTER DATABASE postgres SET default_tablespace = small");
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	postgres_server_kill(server);
	must(umount2(disk, MNT_DETACH) == 0);
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

static void run(enum gale_mode mode)
{
	unsigned admitted;
	struct visitor node;

	visitor_open(&node, url, gale_fixed_window(LIMIT, GALE_DAYS(3650)), mode);
	visitor_becomes(&node, is_admitted);
	admitted = admitted_of(&node, BEFORE);
	fill_disk();
	visitor_becomes(&node, is_down);
	assert_true(lines_will_have(&node.lines, "No space left on device"));
	admitted += admitted_of(&node, DURING);
	empty_disk();
	visitor_becomes(&node, is_admitted);
	admitted += rest_of(&node);
	assert_in_range(admitted, 1, LIMIT);
	visitor_end(&node);
}

static void without_room_strict_limits_are_down(void **state)
{
	(void)state;
	run(GALE_STRICT);
}

static void without_room_nothing_is_leased(void **state)
{
	(void)state;
	run(GALE_LEASED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_room_strict_limits_are_down),
		cmocka_unit_test(without_room_nothing_is_leased),
	};

	if (!may_mount()) {
		perror("this machine refuses a process mounts of its own, so a full "
		       "disk was "
		       "not tested: unshare");
		return 1;
	}
	return cmocka_run_group_tests(tests, open_all, close_all);
}
