/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_config.c -- what a guard's configuration must be, and what its defaults are.
 *
 * Threads   Any.
 */
#define _GNU_SOURCE
#include "face/guard_config.h"

#include <string.h>

#include "face/guard.h"

#define BEAT_DEFAULT_US GALE_MILLIS(500)
#define BEAT_LEAST_US GALE_MILLIS(1)
#define BEAT_MOST_US GALE_MINUTES(1)
#define LEASE_MOST_US GALE_HOURS(1)
#define LEASE_BEATS 5
#define DRIFT_DEFAULT_PPM 500
#define DRIFT_MOST_PPM 100000
#define EAGER_PART 10            /* of a beat, from one early beat to another */
#define ROTATE_LEASES 4          /* a slot is a node's, where there are too few */
#define PROBE_US GALE_SECONDS(1) /* as the scenes of sim/ have it */
#define OVERDUE_MOST_US GALE_DAYS(365)

static_assert((int)GALE_KNEE == ESTIMATE_KNEE && (int)GALE_FIXED == ESTIMATE_FIXED &&
                  (int)GALE_AIMD == ESTIMATE_AIMD &&
                  (int)GALE_GRADIENT == ESTIMATE_GRADIENT,
              "so is a law");

static uint32_t or_default(uint32_t given, uint32_t otherwise)
{
	return given ? given : otherwise;
}

/* A law that is fixed needs one number, which is the ceiling. */
struct estimate_settings guard_law(const struct gale_guard_config *config)
{
	bool fixed = config->law == GALE_FIXED && config->start == 0;

	return (struct estimate_settings){ .law = (enum estimate_law)config->law,
		                           .start =
		                               fixed ? config->ceiling : config->start,
		                           .floor = config->floor,
		                           .ceiling = config->ceiling,
		                           .probe = config->probe };
}

static enum gale_err check_law(const struct gale_guard_config *config)
{
	struct estimate_settings law = guard_law(config);

	if (config->ceiling > GALE_SLOTS_MAX ||
	    (config->law == GALE_FIXED && config->ceiling == 0))
		return GALE_ERR_CEILING;
	switch (estimate_check(&law)) {
	case ESTIMATE_VALID:
		return GALE_ERR_OK;
	case ESTIMATE_BAD_LAW:
		return GALE_ERR_LAW;
	case ESTIMATE_BAD_CEILING:
		return GALE_ERR_CEILING;
	case ESTIMATE_BAD_FLOOR:
		return GALE_ERR_FLOOR;
	case ESTIMATE_BAD_START:
		return GALE_ERR_START;
	case ESTIMATE_BAD_PROBE:
		break;
	}
	return GALE_ERR_PROBE;
}

static uint64_t beat_us_of(const struct gale_guard_config *config)
{
	return config->beat_us ? config->beat_us : BEAT_DEFAULT_US;
}

static uint64_t lease_us_of(const struct gale_guard_config *config)
{
	return config->lease_us ? config->lease_us : LEASE_BEATS * beat_us_of(config);
}

/* With its defaults filled in.  Nodes hear a number in each beat: so it takes them a beat and the
 * group's lease to prove that a member is over (GROUP-4), which is the lease of the config. */
static struct member_terms terms_of(const struct gale_guard_config *config)
{
	uint64_t beat_us = beat_us_of(config);
	uint64_t lease_us = lease_us_of(config) - beat_us;

	return (struct member_terms){
		.beat_ns = beat_us * 1000,
		.eager_ns = beat_us * 1000 / EAGER_PART,
		.lease_us = lease_us,
		.hold_ns = lease_us * 1000,
		.abort_ns = (config->abort_us ? config->abort_us : beat_us) * 1000,
		.weight = or_default(config->weight, 1),
		.drift_ppm = or_default(config->drift_ppm, DRIFT_DEFAULT_PPM),
	};
}

static bool sets_fleet(const struct gale_guard_config *config)
{
	return config->node || config->weight || config->drift_ppm || config->beat_us ||
	       config->lease_us || config->abort_us || config->on_cut_off ||
	       config->parts || config->of_estimates || config->on_fenced;
}

static enum gale_err check_terms(const struct gale_guard_config *config)
{
	uint64_t beat_us = beat_us_of(config);
	uint64_t lease_us = lease_us_of(config);
	struct member_terms terms;

	if (config->weight > GROUP_WEIGHT_MAX)
		return GALE_ERR_WEIGHT;
	if (config->drift_ppm > DRIFT_MOST_PPM)
		return GALE_ERR_DRIFT;
	if (beat_us < BEAT_LEAST_US || beat_us > BEAT_MOST_US)
		return GALE_ERR_BEAT;
	/* A beat until a proof of it can begin, one until the next beat, and one to abort. */
	if (lease_us < 2 * beat_us || lease_us > LEASE_MOST_US)
		return GALE_ERR_LEASE;
	if (config->abort_us > LEASE_MOST_US)
		return GALE_ERR_ABORT;
	/* Until its fence a node must have the time for a beat. */
	terms = terms_of(config);
	return member_terms_valid(&terms) ? GALE_ERR_OK : GALE_ERR_ABORT;
}

static enum gale_err check_fleet(const struct gale_runtime *runtime,
                                 const struct gale_guard_config *config)
{
	size_t node_len = config->node ? strnlen(config->node, GALE_NAME_MAX + 1) : 1;

	if (config->reserved != 0)
		return GALE_ERR_SIZE;
	if (!config->store)
		return sets_fleet(config) ? GALE_ERR_ALONE : GALE_ERR_OK;
	if (!handle_is_open(&config->store->handle, runtime))
		return GALE_ERR_STORE;
	if (node_len < 1 || node_len > GALE_NAME_MAX)
		return GALE_ERR_NODE;
	if (config->on_cut_off > GALE_ON_CUT_OFF_OWN)
		return GALE_ERR_CUT_OFF;
	if (config->on_fenced && !config->on_fenced->fenced)
		return GALE_ERR_ON_FENCED;
	if (config->parts > GALE_BY_WEIGHT)
		return GALE_ERR_PARTS;
	if (config->of_estimates > GALE_LEAST)
		return GALE_ERR_OF_ESTIMATES;
	return check_terms(config);
}

enum gale_err guard_check(const struct gale_runtime *runtime,
                          const struct gale_guard_config *config)
{
	size_t name_len = config->name ? strnlen(config->name, GALE_NAME_MAX + 1) : 0;
	enum gale_err err;

	if (name_len < 1 || name_len > GALE_NAME_MAX)
		return GALE_ERR_NAME;
	if (config->sheddable_permille > 1000)
		return GALE_ERR_SHEDDABLE;
	if (config->slots_most_permille > 1000)
		return GALE_ERR_SLOTS_MOST;
	if (config->overdue_us > OVERDUE_MOST_US)
		return GALE_ERR_OVERDUE;
	err = check_law(config);
	return err == GALE_ERR_OK ? check_fleet(runtime, config) : err;
}

/* ---- The fleet -------------------------------------------------------------------- */

static uint64_t group_law_of(const struct gale_guard_config *config)
{
	if (config->law == GALE_KNEE)
		return GROUP_SUM;
	if (config->law == GALE_FIXED)
		return GROUP_FIXED;
	return config->of_estimates == GALE_LEAST ? GROUP_MIN : GROUP_MEDIAN;
}

static struct group_settings settings_of(const struct gale_guard_config *config)
{
	struct estimate_settings law = guard_law(config);
	struct member_terms terms = terms_of(config);
	struct estimate estimate;
	/* AIMD and GRADIENT find a group's ceiling alike.  A microsecond tells such groups apart,
	 * so that a node with the other law is refused. */
	uint64_t mark_us = config->law == GALE_GRADIENT;

	(void)estimate_init(&estimate, &law);
	return (struct group_settings){
		.law = group_law_of(config),
		.parts =
		    config->parts == GALE_BY_WEIGHT ? GROUP_EQUAL : GROUP_BY_DEMAND,
		.start = estimate.set.start,
		.floor = estimate.set.floor,
		.ceiling = estimate.set.ceiling,
		.lease_us = terms.lease_us,
		.hold_us = terms.lease_us,
		.rotate_us = ROTATE_LEASES * terms.lease_us + mark_us,
		.probe_us = config->law == GALE_KNEE ? PROBE_US : 0,
	};
}

struct fleet_config guard_fleet(const struct gale_guard_config *config)
{
	return (struct fleet_config){
		.membership = { .group = config->name,
		                .node = config->node,
		                .settings = settings_of(config),
		                .terms = terms_of(config) },
		.post = &config->store->post,
		.outage = config->on_cut_off == GALE_ON_CUT_OFF_OWN ? FLEET_GOES_ON
		                                                    : FLEET_STOPS,
		.shares_instead = config->law == GALE_KNEE || config->law == GALE_FIXED,
	};
}
