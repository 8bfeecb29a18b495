/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* whys.h -- how many reasons an answer may have. */
#ifndef TESTS_SUPPORT_WHYS_H
#define TESTS_SUPPORT_WHYS_H

#include <gale/rule.h>

#define WHYS (GALE_WHY_OTHERS + 1)

#endif
