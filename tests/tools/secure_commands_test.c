/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * secure_commands_test.c GALE -- each command that asks a server, with URLs of TLS.
 *
 *     gale store init, gale doctor: hiredis --> tools/tunnel.c --> the server
 *     the others:                   the library, in the command --> the server
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/must.h"
#include "tests/support/secure_server.h"

#define ROOM 1024
#define TRIES_MOST 3
#define LATE 3 /* of gale store check: an answer was late */

/* Exit statuses, as each command's help has them. */
#define DONE 0
#define WARNED 1 /* by the doctor, who misses an append-only file */
#define FAILED 1
#define REFUSED 2
#define OF_A_KEY_FAILED 3
#define FLEET_FAILED 3
#define DOCTOR_FAILED 3

static const char *gale;
static struct certificates c;
static struct secure_server server; /* wants a certificate of who asks */
static struct secure_sentinel sentinel;

/* ---- Servers --------------------------------------------------------------------- */

static int start(void **state)
{
	(void)state;
	certificates_make(&c);
	secure_server_start(&server, &c.good, &c.ca, "yes");
	secure_sentinel_start(&sentinel, &server);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	secure_sentinel_stop(&sentinel);
	secure_server_stop(&server);
	certificates_drop(&c);
	return 0;
}

/* ---- Commands -------------------------------------------------------------------- */

/* What it has said, on either stream. */
static char said[16 * ROOM];

/* Returns how it has exited. */
static int run(const char *words, const char *url, const char *rest)
{
	char line[2 * ROOM];
	size_t count;
	int status;
	FILE *out;

	must((size_t)snprintf(line, sizeof(line), "timeout 60 %s %s '%s' %s 2>&1", gale,
	                      words, url, rest) < sizeof(line));
	out = popen(line, "r");
	must(out != NULL);
	count = fread(said, 1, sizeof(said) - 1, out);
	said[count] = '\0';
	status = pclose(out);
	must(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void says(const char *command, int wanted, int status, const char *part)
{
	if (status == wanted && strstr(said, part))
		return;
	fail_msg("gale %s exits with %d and says: %s", command, status, said);
}

static const char *url_of(char url[ROOM], const struct certificate *trusted,
                          bool shows_one)
{
	int count = snprintf(url, ROOM, "rediss://ali:baba@127.0.0.1:%s?ca=%s",
	                     server.port, trusted->cert);

	if (shows_one)
		snprintf(url + count, ROOM - (size_t)count, "&cert=%s&key=%s",
		         c.client.cert, c.client.key);
	return url;
}

#define KEY "api alice --limit 100 --window 87600h"

/* The first one marks the server as new, and the others are answered at once. */
static const struct row {
	const char *words, *rest;
	int exits;
	const char *says;
} rows[] = {
	{ "store init", "", DONE, "it is marked as new" },
	{ "doctor", "", WARNED, "OK    rights: ali may do all" },
	{ "peek", KEY, DONE, "spent  0 units" },
	{ "forecast", KEY, DONE, "a call of cost 1 would be admitted now" },
	{ "watch", KEY " --count 2 --every 1ms", DONE, "spent 0  left 100  allows" },
	{ "reset", KEY, DONE, "the whole limit is available again" },
	{ "store check", "--steps 500", DONE, "crowd: 200 at once" },
	{ "fleet --processes 2 --nodes 2 --seconds 1 --store", "", DONE, "" },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void answers(const struct row *row, const char *url)
{
	int status = LATE;

	for (int i = 0; i < TRIES_MOST && status == LATE; i++)
		status = run(row->words, url, row->rest);
	says(row->words, row->exits, status, row->says);
}

static void a_server_is_asked(void **state)
{
	char url[ROOM];

	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		answers(&rows[i], url_of(url, &c.ca, /* shows_one= */ true));
}

static void a_sentinel_and_its_primary_are_asked(void **state)
{
	static const struct row led[] = {
		{ "doctor", "", WARNED, "OK    role: primary" },
		{ "peek", KEY, DONE, "spent  0 units" },
	};
	char url[ROOM];

	(void)state;
	snprintf(url, sizeof(url),
	         "rediss+sentinel://ali:baba@127.0.0.1:%s/main?ca=%s&cert=%s&key=%s",
	         sentinel.port, c.ca.cert, c.client.cert, c.client.key);
	for (size_t i = 0; i < sizeof(led) / sizeof(led[0]); i++)
		answers(&led[i], url);
}

/* ---- What goes wrong ------------------------------------------------------------- */

static void refuses(const char *words, const char *rest, const char *url, int exits,
                    const char *because)
{
	says(words, exits, run(words, url, rest), because);
}

static void what_is_wrong_is_said(void **state)
{
	static const char *const of_no_ca =
	    "the server's certificate is of no CA that is trusted; ca= names the file "
	    "of one";
	static const char *const none_shown =
	    "the server wants a certificate of the client; cert= and key= name one";
	char url[ROOM];

	(void)state;
	url_of(url, &c.other_ca, /* shows_one= */ true);
	refuses("store init", "", url, FAILED, of_no_ca);
	refuses("doctor", "", url, DOCTOR_FAILED, of_no_ca);
	refuses("peek", KEY " --within 3s", url, OF_A_KEY_FAILED, of_no_ca);
	url_of(url, &c.ca, /* shows_one= */ false);
	refuses("store init", "", url, FAILED, none_shown);
	refuses("doctor", "", url, DOCTOR_FAILED, none_shown);
	refuses("peek", KEY " --within 3s", url, OF_A_KEY_FAILED, none_shown);
}

/* A file is looked at when the store is opened. */
static void a_file_that_is_not_there_is_named(void **state)
{
	static const char *const wrong = "rediss://127.0.0.1:1?ca=/no/such/file";
	static const char *const because =
	    "option ca: no certificate can be read from the file: No such file";

	(void)state;
	refuses("store init", "", wrong, FAILED, because);
	refuses("store check", "", wrong, FAILED, because);
	refuses("doctor", "", wrong, DOCTOR_FAILED, because);
	refuses("peek", KEY, wrong, OF_A_KEY_FAILED, because);
	refuses("fleet --seconds 1 --store", "", wrong, FLEET_FAILED, because);
	refuses("fleet --processes 2 --seconds 1 --store", "", wrong, FLEET_FAILED,
	        because);
	refuses("fleet --guard --processes 2 --seconds 1 --store", "", wrong,
	        FLEET_FAILED, because);
}

static void an_option_that_is_of_another_scheme_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		refuses(rows[i].words, rows[i].rest, "redis://127.0.0.1:1?ca=/a",
		        REFUSED, "url: option ca is for TLS: rediss://");
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_is_asked),
		cmocka_unit_test(a_sentinel_and_its_primary_are_asked),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(a_file_that_is_not_there_is_named),
		cmocka_unit_test(an_option_that_is_of_another_scheme_is_refused),
	};

	must(count == 2);
	gale = args[1];
	return cmocka_run_group_tests(tests, start, stop);
}
