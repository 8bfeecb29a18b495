/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * regions_example_test.c -- examples/regions.c with two servers, and a slow link to one of them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/must.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"

#define WAY_US 10000 /* of the link, each */
#define ALL 12000    /* units of all windows that count */

static const char *program;

struct row {
	unsigned long shared, split, ideal;
};

static struct row read_row(FILE *said, const char *tenant)
{
	char line[128], name[16];
	struct row row;

	while (fgets(line, sizeof(line), said))
		if (sscanf(line, "%15s %lu %lu %lu", name, &row.shared, &row.split,
		           &row.ideal) == 4 &&
		    strcmp(name, tenant) == 0)
			return row;
	fail_msg("it says nothing of %s", tenant);
	return row;
}

/* A machine that stands still may cost a part of a window: four fifths are asked for. */
static void who_is_shared_gets_what_was_of_no_use_in_the_west(void **state)
{
	struct redis_server east, west;
	struct proxy link;
	struct row gold, silver;
	char command[512];
	FILE *said;
	(void)state;

	redis_server_start(&east, NULL);
	redis_server_start(&west, NULL);
	redis_server_settle(&east, "gale:");
	redis_server_settle(&west, "gale:");
	proxy_open(&link, east.socket);
	proxy_delay(&link, TO_SERVER, WAY_US);
	proxy_delay(&link, TO_NODE, WAY_US);
	snprintf(command, sizeof(command),
	         "'%s' 'redis://%s' 'redis://%s' 'redis://127.0.0.1:%u'", program,
	         east.socket, west.socket, link.port);
	said = popen(command, "r");
	must(said);
	gold = read_row(said, "gold");
	silver = read_row(said, "silver");
	assert_int_equal(pclose(said), 0);
	print_message("gold %lu, split %lu; silver %lu, split %lu\n", gold.shared,
	              gold.split, silver.shared, silver.split);
	assert_int_equal(gold.ideal + silver.ideal, ALL);
	assert_true(gold.shared * 5 >= gold.ideal * 4);
	assert_true(silver.shared * 5 >= silver.ideal * 4);
	assert_true(gold.split * 4 <= gold.ideal * 3);
	assert_true(silver.split * 4 <= silver.ideal * 3);
	proxy_close(&link);
	redis_server_stop(&west);
	redis_server_stop(&east);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_shared_gets_what_was_of_no_use_in_the_west),
	};

	must(argc == 2);
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
