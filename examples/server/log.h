/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* log.h -- what gale has to say, on standard error: a store that cannot be reached, and why. */
#ifndef EXAMPLES_SERVER_LOG_H
#define EXAMPLES_SERVER_LOG_H

#include <gale/gale.h>

extern struct gale_log log_to_stderr;

#endif
