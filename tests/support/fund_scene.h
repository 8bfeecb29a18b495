/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fund_scene.h -- the stakes of a shared budget before a store that answers when the test says so:
 * late, never, or what cannot be true.
 *
 * Threads   The test's.  It takes the coordinator's turns itself.
 */
#ifndef TESTS_SUPPORT_FUND_SCENE_H
#define TESTS_SUPPORT_FUND_SCENE_H

#include "coordinator/coordinator.h"
#include "coordinator/fund.h"

#define LIMIT 1000
#define DAY_US GALE_DAYS(1)
#define RELEASE_US GALE_SECONDS(8)
#define REMIND_NS (GALE_SECONDS(20) * 1000)
#define PATIENCE_NS UINT64_C(100000000)
#define STAKES 2
#define EXTRA STAKES /* one more, that a test opens */

struct fund_scene {
	struct coordinator coordinator;
	struct store store;
	struct store_desk *desk;
	struct post post;
	struct fund fund;
	struct fund_alone alones[STAKES];
	struct stake stakes[STAKES + 1];
	struct till tills[STAKES + 1];
	struct store_call *sent; /* the last that is with the store */
	int calls, dropped;
	char said[128];
	int lines;
	mono now;
};
extern struct fund_scene scene;

/* Of each test. */
int open_scene(void **state);
int close_scene(void **state);
void open_stake(int number, const char *name, uint64_t alone);

/* ---- Asks --------------------------------------------------------------------------- */

struct asked {
	struct fund_wait wait;
	struct store_op op;
	bool done;
};

/* One that waits, if it has to. */
enum fund_said ask(int stake, uint64_t cost, struct asked *asked);
/* The same, and what it gets is held. */
enum fund_said hold(int stake, uint64_t cost, struct asked *asked,
                    struct fund_held *held);
/* One that does not. */
enum fund_said ask_now(int stake, uint64_t cost);
/* It is done, and this is its answer. */
void answers(struct asked *asked, enum gale_verdict verdict, enum gale_why why);

/* ---- Turns, and what the store says -------------------------------------------------- */

void turn(void);
/* Until the fund wants to, and turns then. */
void wait_for_turn(void);
void wait_for_call(void);

const struct pool_ask *asked_of(const struct store_call *call);
/* So much in all, of a window that lasts for so long. */
void answer(uint64_t window, uint64_t granted, uint64_t left_us);
void refuse(uint64_t result, uint64_t retry_us);
void miss(enum store_result result);
void lose(void);

uint64_t in_till(int stake);
/* A stake has asked, and has so much more in hand than it needed. */
void have(int stake, uint64_t units);

#endif
