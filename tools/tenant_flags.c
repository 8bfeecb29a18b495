/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* tenant_flags.c -- the table, the list of tenants, and what does not go together. */
#include "tools/tenant_flags.h"

#include <inttypes.h>
#include <string.h>

#include <gale/tenants.h>

#include "tools/flags.h"
#include "tools/link.h"

#define AT(member) offsetof(struct tenant_flags, member)

static bool read_store(const struct flag *flag, const char *text, void *into)
{
	return flags_is_shared_store(text) && flag_read_text(flag, text, into);
}

static const struct flag flags_of_tenants[] = {
	{ .name = "--tenants",
	  .takes = "LIST",
	  .preset = "big=4,mid=2,small=1",
	  .allowed =
	      "up to 16 of NAME=WEIGHT or NAME=WEIGHT:PERCENT, with commas between",
	  .help = "share one budget among tenants by their weights; each asks for "
	          "PERCENT of the limit; without it, as fast as it is answered",
	  .read = flag_read_text,
	  .at = AT(tenants) },
	{ .name = "--processes",
	  .takes = "N",
	  .preset = "1",
	  .allowed = "a whole number from 1 to 64",
	  .help = "processes that the nodes run in",
	  .read = flag_read_number,
	  .at = AT(processes),
	  .least = 1,
	  .most = 64 },
	{ .name = "--nodes",
	  .takes = "N",
	  .preset = "2",
	  .allowed = "a whole number from 1 to 64",
	  .help = "nodes of each process, each of which has all tenants",
	  .read = flag_read_number,
	  .at = AT(nodes),
	  .least = 1,
	  .most = 64 },
	{ .name = "--regions",
	  .takes = "N",
	  .preset = "1",
	  .allowed = "a whole number from 1 to 8",
	  .help = "regions, among which the processes are dealt out; all but the first "
	          "reach the store by a slow link",
	  .read = flag_read_number,
	  .at = AT(regions),
	  .least = 1,
	  .most = TENANT_REGIONS_MOST },
	{ .name = "--link-ms",
	  .takes = "N",
	  .preset = "20",
	  .allowed = "a whole number from 0 to 10k",
	  .help = "milliseconds that a round trip of such a link takes",
	  .read = flag_read_number,
	  .at = AT(link_ms),
	  .least = 0,
	  .most = 10000 },
	{ .name = "--limit",
	  .takes = "N",
	  .preset = "10k",
	  .allowed = "a whole number from 1 to 1000M (k and M are understood)",
	  .help = "units that all tenants together may use in a window",
	  .read = flag_read_number,
	  .at = AT(limit),
	  .least = 1,
	  .most = 1000000000 },
	{ .name = "--window",
	  .takes = "DURATION",
	  .preset = "1s",
	  .allowed = "a duration from 100ms to 1h, with its unit (us, ms, s, m or h)",
	  .help = "how long a window is",
	  .read = flag_read_duration,
	  .at = AT(window_us),
	  .least = GALE_MILLIS(100),
	  .most = GALE_HOURS(1) },
	{ .name = "--seconds",
	  .takes = "N",
	  .preset = "6",
	  .allowed = "1s to 24h (without a unit: seconds)",
	  .help = "how long to ask, in seconds; 500ms and 2m are understood, too",
	  .read = flag_read_duration,
	  .at = AT(run_us),
	  .least = GALE_SECONDS(1),
	  .most = GALE_HOURS(24),
	  .bare_us = GALE_SECONDS(1) },
	{ .name = "--store",
	  .takes = "URL",
	  .preset = "memory:fleet",
	  .allowed = "memory:NAME, for the nodes of one process, or a server of this "
	             "machine: redis://HOST:PORT, postgres://HOST/DATABASE",
	  .help = "where the budget is: memory:NAME, redis://HOST, "
	          "postgres://HOST/DATABASE",
	  .read = read_store,
	  .at = AT(store) },
	{ .name = "--json",
	  .help = "print one JSON object, and nothing else, on standard output",
	  .read = flag_read_set,
	  .at = AT(json) },
};

static const struct flag_table table = {
	.flags = flags_of_tenants,
	.count = sizeof(flags_of_tenants) / sizeof(flags_of_tenants[0]),
};

static bool is_again(const struct tenant_flags *flags, const char *name)
{
	for (uint64_t i = 0; i < flags->count; i++)
		if (strcmp(flags->each[i].name, name) == 0)
			return true;
	return false;
}

/* The text up to there, without its end; false: it is empty or too long. */
static bool cut(const char *text, size_t count, char *out, size_t room)
{
	if (count == 0 || count >= room)
		return false;
	memcpy(out, text, count);
	out[count] = '\0';
	return true;
}

static bool read_tenant(const char *text, size_t count, struct tenant_flags *flags)
{
	struct tenant_flag *tenant = &flags->each[flags->count];
	const char *equals = memchr(text, '=', count), *colon, *end = text + count;
	char number[24];

	if (!equals ||
	    !cut(text, (size_t)(equals - text), tenant->name, sizeof(tenant->name)))
		return false;
	colon = memchr(equals, ':', (size_t)(end - equals));
	if (!cut(equals + 1, (size_t)((colon ? colon : end) - equals - 1), number,
	         sizeof(number)) ||
	    !flags_number(number, &tenant->weight) || tenant->weight < 1 ||
	    tenant->weight > GALE_TENANT_WEIGHT_MAX)
		return false;
	tenant->demand_percent = 0;
	if (colon &&
	    (!cut(colon + 1, (size_t)(end - colon - 1), number, sizeof(number)) ||
	     !flags_number(number, &tenant->demand_percent) ||
	     tenant->demand_percent < 1 || tenant->demand_percent > 10000))
		return false;
	return !is_again(flags, tenant->name) && ++flags->count > 0;
}

bool tenant_flags_read_list(struct tenant_flags *flags)
{
	const char *at = flags->tenants;

	for (;;) {
		size_t count = strcspn(at, ",");

		if (flags->count == TENANT_FLAGS_MOST || !read_tenant(at, count, flags))
			return false;
		if (at[count] == '\0')
			return true;
		at += count + 1;
	}
}

static enum flags_result check_regions(const struct tenant_flags *flags,
                                       struct flags_error *error)
{
	if (flags->regions == 1)
		return FLAGS_RUN;
	if (flags->regions > flags->processes)
		return flags_bad(error,
		                 "--regions: each needs a process of its own, with "
		                 "--processes");
	if (!link_can_carry(flags->store))
		return flags_bad(error, "--regions: a slow link leads to a store "
		                        "redis://HOST:PORT alone");
	if (flags->link_ms * 10000 > flags->window_us)
		return flags_bad(error,
		                 "--link-ms: a window has to be ten round trips or "
		                 "longer");
	return FLAGS_RUN;
}

static enum flags_result check_together(struct tenant_flags *flags,
                                        struct flags_error *error)
{
	if (!tenant_flags_read_list(flags))
		return flags_bad(
		    error,
		    "--tenants: '%s' is no list of up to %d of NAME=WEIGHT or "
		    "NAME=WEIGHT:PERCENT, each with a name of its own",
		    flags->tenants, TENANT_FLAGS_MOST);
	if (flags->run_us / flags->window_us < 4)
		return flags_bad(
		    error, "--seconds: less than four windows, of which the first "
			   "and the last do not count");
	if (flags->run_us / flags->window_us > TENANT_WINDOWS_MOST - 2)
		return flags_bad(error, "--seconds: more than %d windows",
		                 TENANT_WINDOWS_MOST - 2);
	if (flags->processes > 1 && !strstr(flags->store, "://"))
		return flags_bad(error,
		                 "--processes: memory: is a store of one process, and "
		                 "each would have its own; they share one with --store "
		                 "redis://HOST:PORT");
	return check_regions(flags, error);
}

bool tenant_flags_wanted(int argc, char *const *argv)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--tenants") == 0 ||
		    strncmp(argv[i], "--tenants=", 10) == 0)
			return true;
	return false;
}

enum flags_result tenant_flags_parse(int argc, char *const *argv,
                                     struct tenant_flags *ret_flags,
                                     struct flags_error *ret_error)
{
	struct tenant_flags flags = { 0 };
	enum flags_result result = flags_read(&table, argc, argv, &flags, ret_error);

	if (result == FLAGS_RUN)
		result = check_together(&flags, ret_error);
	if (result == FLAGS_RUN)
		*ret_flags = flags;
	return result;
}

void tenant_flags_list(FILE *out)
{
	flags_explain(&table, out);
}
