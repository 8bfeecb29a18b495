/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * visitor.h -- a node with one store and at most one limiter, and whether its server lets it in.
 *
 * Threads   One, the test's.
 */
#ifndef TESTS_SUPPORT_VISITOR_H
#define TESTS_SUPPORT_VISITOR_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

#include "sim/allocator.h"
#include "tests/support/lines.h"

#define VISITOR_PATIENCE GALE_SECONDS(10)

struct visitor {
	struct test_allocator allocator;
	struct lines lines;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter; /* NULL: none */
	struct gale_seat *seat;
};

/* Without a limiter; what gale_store_open returns. */
enum gale_err visitor_start(struct visitor *visitor, const char *url);
/* Its keys are its own. */
void visitor_open(struct visitor *visitor, const char *url, struct gale_rule rule,
                  enum gale_mode mode);
/* Fails if anything is left of its memory. */
void visitor_end(struct visitor *visitor);

struct gale_answer visitor_ask(struct visitor *visitor, const char *key, uint64_t cost);
/* Waits for it; fails, and shows the log, if that takes too long. */
void visitor_becomes(struct visitor *visitor, bool (*holds)(void *visitor));
/* The server answers: a busy machine may let a connection's second pass before. */
void visitor_is_answered(struct visitor *visitor);

/* A visitor of that URL is answered, and leaves. */
void visitor_let_in(const char *url);
/* One spends of a log, until that is longer than a record of TLS. */
void visitor_fills_a_log(const char *url);
/* A visitor is not let in, and never was connected; the log says why. */
void visitor_refused(const char *url, const char *because);
/* The store cannot be opened: GALE_ERR_TLS, and the log says why. */
void visitor_cannot_open(const char *url, const char *because);

#endif
