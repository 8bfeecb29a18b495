/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* source.h -- a policy's bytes. */
#ifndef POLICY_SOURCE_H
#define POLICY_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/why.h"

/* The whole of the file, from malloc. */
bool source_read(const char *path, struct why *why, char **ret_text, size_t *ret_bytes);

#endif
