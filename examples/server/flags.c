/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* flags.c -- numbers, rates and addresses. */
#define _GNU_SOURCE
#include "examples/server/flags.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/gale.h>

static const char *name;

void flags_name(const char *program)
{
	name = program;
}

const char *flags_program(void)
{
	return name;
}

_Noreturn void refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", name);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(2);
}

static uint64_t number(const char *flag, const char *text, uint64_t least,
                       uint64_t most, char **ret_end)
{
	uint64_t value;

	errno = 0;
	value = strtoull(text, ret_end, 10);
	if (*text < '0' || *text > '9' || errno || value < least || value > most)
		refuse("%s %s: a number from %llu to %llu is needed", flag, text,
		       (unsigned long long)least, (unsigned long long)most);
	return value;
}

uint64_t flag_number(const char *flag, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t value = number(flag, text, least, most, &end);

	if (*end)
		refuse("%s %s: a number from %llu to %llu is needed", flag, text,
		       (unsigned long long)least, (unsigned long long)most);
	return value;
}

uint64_t flag_rate(const char *flag, const char *text, uint64_t least,
                   uint64_t *ret_window_us)
{
	static const struct {
		const char *per;
		uint64_t seconds;
	} windows[] = { { "/s", 1 }, { "/m", 60 }, { "/h", 3600 }, { "/d", 86400 } };
	char *end;
	uint64_t units = number(flag, text, least, GALE_UNITS_MAX, &end);

	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		if (strcmp(end, windows[i].per) == 0) {
			*ret_window_us = GALE_SECONDS(windows[i].seconds);
			return units;
		}
	}
	refuse("%s %s: N/s, N/m, N/h or N/d is needed", flag, text);
}

void flag_address(const char *text, struct sockaddr_in *address)
{
	if (inet_pton(AF_INET, text, &address->sin_addr) != 1)
		refuse("--address %s: an IPv4 address is needed", text);
}

uint32_t processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}
