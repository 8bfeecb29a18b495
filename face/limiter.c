/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* limiter.c -- a rule with a name, on a store. */
#define _GNU_SOURCE
#include <string.h>

#include "face/face.h"

static void limiter_die(struct handle *self)
{
	struct gale_limiter *limiter = (struct gale_limiter *)self;

	handle_drop(&limiter->store->handle);
}

static enum gale_err check_config(const struct gale_runtime *runtime,
                                  const struct gale_limiter_config *config)
{
	size_t name_len = config->name ? strnlen(config->name, GALE_NAME_MAX + 1) : 0;

	if (name_len < 1 || name_len > GALE_NAME_MAX)
		return GALE_ERR_NAME;
	if (config->mode != GALE_STRICT)
		return GALE_ERR_MODE;
	if (config->on_outage != GALE_ON_OUTAGE_DENY &&
	    config->on_outage != GALE_ON_OUTAGE_ALLOW)
		return GALE_ERR_OUTAGE;
	if (!config->store || !handle_is_open(&config->store->handle, runtime))
		return GALE_ERR_STORE;
	return GALE_ERR_OK;
}

static enum gale_err open_checked(struct gale_runtime *runtime,
                                  const struct gale_limiter_config *config,
                                  const struct rule *rule,
                                  struct gale_limiter **ret_limiter)
{
	struct gale_limiter *limiter =
	    handle_new(runtime, sizeof(*limiter), limiter_die);

	if (!limiter)
		return GALE_ERR_MEMORY;
	limiter->rule = *rule;
	limiter->store = config->store;
	limiter->on_outage = config->on_outage;
	limiter->name_len = (uint8_t)strlen(config->name);
	memcpy(limiter->name, config->name, limiter->name_len);
	handle_hold(&config->store->handle);
	*ret_limiter = limiter;
	return GALE_ERR_OK;
}

enum gale_err gale_limiter_open(struct gale_runtime *runtime,
                                const struct gale_limiter_config *config,
                                struct gale_limiter **ret_limiter)
{
	enum gale_err err = runtime_error(runtime);
	struct rule rule;

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_limiter)
		return GALE_ERR_RET;
	if (!config)
		return GALE_ERR_CONFIG;
	err = check_config(runtime, config);
	if (err != GALE_ERR_OK)
		return err;
	err = rule_compile(&config->rule, &rule);
	if (err != GALE_ERR_OK)
		return err;
	return open_checked(runtime, config, &rule, ret_limiter);
}

void gale_limiter_close(struct gale_limiter *limiter)
{
	if (limiter && lifeline_holds(&limiter->handle.runtime->lifeline))
		handle_close(&limiter->handle);
}
