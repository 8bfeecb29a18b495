/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * length.h -- how long a test is, where a shorter one shows the same less often.
 *
 * make test builds with -Dbrief=true; make test ARGS=all, and meson by itself, without.
 */
#ifndef TESTS_SUPPORT_LENGTH_H
#define TESTS_SUPPORT_LENGTH_H

#ifdef TESTS_ARE_BRIEF
#define LONG_OR_BRIEF(full, brief) (brief)
#else
#define LONG_OR_BRIEF(full, brief) (full)
#endif

#endif
