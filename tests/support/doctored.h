/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctored.h -- gale doctor, run in this process; what it says is in command_out.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_DOCTORED_H
#define TESTS_SUPPORT_DOCTORED_H

#include "tests/support/command.h"
#include "tools/doctor.h"

static inline int doctor(const char *url)
{
	const char *const words[] = { url, NULL };

	return command_run(doctor_run, words);
}

/* What it says of a line, and how it exits: with 3 for FAIL, and with 1 at least for WARN. */
#define assert_found(url, line)                                                        \
	do {                                                                           \
		int status_ = doctor(url);                                             \
		assert_says(command_out, line);                                        \
		if (strncmp(line, "FAIL", 4) == 0)                                     \
			assert_int_equal(status_, DOCTOR_FAILED);                      \
		else if (strncmp(line, "WARN", 4) == 0)                                \
			assert_int_not_equal(status_, DOCTOR_WELL);                    \
	} while (0)

#endif
