/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * straight.c -- what is seldom needed on the straight way.
 *
 * Threads   As straight.h says.
 */
#include "face/straight.h"

struct purse *straight_find_longer(const struct gale_seat *seat,
                                   const struct gale_part *part)
{
	struct lender *lender = &part->limiter->lender;
	struct purse_name name = {
		.lender = lender,
		.key = part->key,
		.key_len = (uint16_t)part->key_len,
		.hash = hash_of(lender, part->key, part->key_len),
	};

	return root_find(root_of(seat, name.hash), &name);
}

void straight_put_back(struct gale_seat *seat, struct kept_units kept, bool pinned)
{
	seat_put_back(seat, &kept, credit_units(kept.word));
	if (pinned)
		purse_unpin(kept.purse);
}
