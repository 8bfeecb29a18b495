/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stream.c -- answers of a language model, behind a budget of a thousand tokens a day.
 *
 * The length of an answer is not known before.  Each call holds 100 tokens before it begins, 100 more
 * whenever it has used them, and gives back the rest when it ends.  The last answer needs more than
 * the 540 tokens that are left then.  It grows in whole steps, so it is stopped after 500.
 */
#include <stdio.h>

#include <gale/hold.h>

#define STEP 100
#define WITHIN GALE_SECONDS(1)

static const uint64_t lengths[] = { 130, 20, 310, 900 };

/* How many tokens were sent. */
static uint64_t stream(struct gale_seat *seat, struct gale_hold *hold, uint64_t length)
{
	const uint64_t more[] = { STEP };
	uint64_t sent = 0;

	for (; sent < length; sent++)
		if (sent == hold->parts[0].units &&
		    gale_hold_grow(seat, hold, more, WITHIN).verdict != GALE_ALLOW)
			break;
	return sent;
}

static bool answer(struct gale_seat *seat, struct gale_limiter *budget, uint64_t length)
{
	struct gale_part part = { budget, "alice", 5, STEP };
	struct gale_all all = { .parts = &part, .count = 1 };
	struct gale_hold hold;
	uint64_t sent;

	if (gale_hold_wait(seat, &all, &hold, WITHIN).verdict != GALE_ALLOW) {
		printf("refused\n");
		return true;
	}
	sent = stream(seat, &hold, length);
	printf("%d of %d tokens\n", (int)sent, (int)length);
	return gale_hold_commit(seat, &hold, &sent) == GALE_ERR_OK;
}

int main(void)
{
	struct gale_limiter_config config = { .name = "tokens", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *budget;
	struct gale_store *store;
	struct gale_seat *seat;
	bool good = true;

	config.rule = gale_quota_daily(1000, 0);
	if (gale_runtime_open(NULL, &runtime) != GALE_ERR_OK ||
	    gale_store_open(runtime, NULL, &store) != GALE_ERR_OK)
		return 1;
	config.store = store;
	if (gale_limiter_open(runtime, &config, &budget) != GALE_ERR_OK ||
	    gale_join(runtime, &seat) != GALE_ERR_OK)
		return 1;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		good &= answer(seat, budget, lengths[i]);
	gale_leave(seat);
	gale_limiter_close(budget);
	gale_store_close(store);
	gale_runtime_close(runtime);
	return good ? 0 : 1;
}
