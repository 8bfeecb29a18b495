/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* dial.c -- from true time to a node's, and back. */
#include "sim/dial.h"

#define HORIZON_US GALE_HOURS(2000) /* nothing that is due is later */

uint64_t dial_at(const struct dial *dial, uint64_t at_us)
{
	uint64_t rate = (uint64_t)(1000000 + dial->rate_ppm);

	return dial->boot_ns + (at_us - dial->start_us) * rate / 1000;
}

uint64_t dial_true(const struct dial *dial, uint64_t boot_ns)
{
	uint64_t rate = (uint64_t)(1000000 + dial->rate_ppm), at_us;

	if (boot_ns > dial->boot_ns + HORIZON_US * 1000)
		return UINT64_MAX;
	at_us = dial->start_us;
	if (boot_ns > dial->boot_ns)
		at_us += (boot_ns - dial->boot_ns) / rate * 1000 +
		         (boot_ns - dial->boot_ns) % rate * 1000 / rate;
	while (dial_at(dial, at_us) < boot_ns)
		at_us++;
	return at_us;
}

static uint64_t boot_ns_of(struct gale_clock *self)
{
	const struct dial *dial = (const struct dial *)self;

	return dial_at(dial, dial->agenda->now_us);
}

static uint64_t now_us_of(struct gale_clock *self)
{
	const struct dial *dial = (const struct dial *)self;

	return dial->agenda->now_us + dial->boot_ns / 1000;
}

void dial_open(struct dial *dial, const struct agenda *agenda, int64_t rate_ppm,
               uint64_t boot_ns)
{
	*dial = (struct dial){ .clock = { .now_us = now_us_of, .boot_ns = boot_ns_of },
		               .agenda = agenda,
		               .rate_ppm = rate_ppm,
		               .start_us = agenda->now_us,
		               .boot_ns = boot_ns };
}
