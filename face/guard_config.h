/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_config.h -- what a guard's configuration must be, and what it comes to.
 *
 * Threads   Any: the configuration is the caller's.
 */
#ifndef FACE_GUARD_CONFIG_H
#define FACE_GUARD_CONFIG_H

#include <gale/guard.h>

#include "coordinator/guard.h"

enum gale_err guard_check(const struct gale_runtime *runtime,
                          const struct gale_guard_config *config);

/* Of a configuration that was checked. */
struct estimate_settings guard_law(const struct gale_guard_config *config);
/* The same, and with a store; the incarnation is 0, and a node without a name has none. */
struct fleet_config guard_fleet(const struct gale_guard_config *config);

#endif
