/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_scene.h -- a server, a connection to its schema, and jobs for it.
 *
 * What all tests of the schema by itself have in common: one server for the whole program.
 */
#ifndef TESTS_SUPPORT_POSTGRES_SCENE_H
#define TESTS_SUPPORT_POSTGRES_SCENE_H

#include "tests/support/postgres_line.h"
#include "tests/support/postgres_server.h"

#define LIMIT 77

extern struct postgres_server *server;
extern struct line line;
extern struct rule hourly; /* LIMIT in an hour */
extern struct remote_told told[REMOTE_BATCH_MOST];

/* Of cmocka's groups. */
int scene_start(void **state);
int scene_stop(void **state);

struct rule compiled(struct gale_rule config);
struct remote_bytes bytes_of(const char *text);

struct remote_job step_of(const char *key, uint64_t cost);
struct remote_job lend_of(const char *key, uint64_t node, uint64_t number,
                          uint64_t want);
/* Of a key that the node was never told of. */
struct remote_job first_of(const char *key, uint64_t node, uint64_t number,
                           uint64_t want);
struct remote_job read_of(const char *key);

/* Calls, and expects to be told. */
enum remote_code code_of(const struct remote_job *job);
struct gale_answer answer_of(const struct remote_job *job);
/* How much of the window is used. */
uint64_t used_under(const struct rule *rule, const char *key);
uint64_t used_of(const char *key);
/* The generation, as anybody is told who asks for another one. */
const char *generation(void);

#endif
