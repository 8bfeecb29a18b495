/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * paced_client.c -- calls a service that takes ten calls a second, evenly.
 *
 * A pacer books a place in a queue for each call and says when it comes: delay_ns.
 * Here two calls may go ahead of the rhythm after a pause, and none waits for more
 * than a second: a call that would have to is refused at once, and books nothing.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <gale/gale.h>

struct client {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *pacer;
	struct gale_seat *seat;
};

static enum gale_err open_pacer(struct client *client)
{
	struct gale_limiter_config config = {
		.name = "outgoing",
		.rule = gale_pacer(10, GALE_SECONDS(1), /* burst= */ 2),
		.mode = GALE_STRICT,
		.on_outage = GALE_ON_OUTAGE_DENY,
		.store = client->store,
	};

	config.rule.max_wait_us = GALE_SECONDS(1);
	return gale_limiter_open(client->runtime, &config, &client->pacer);
}

static enum gale_err open_client(struct client *client)
{
	enum gale_err err = gale_runtime_open(NULL, &client->runtime);

	if (err == GALE_ERR_OK)
		err = gale_store_open(client->runtime, NULL, &client->store);
	if (err == GALE_ERR_OK)
		err = open_pacer(client);
	if (err == GALE_ERR_OK)
		err = gale_join(client->runtime, &client->seat);
	return err;
}

static void close_client(struct client *client)
{
	gale_leave(client->seat);
	gale_limiter_close(client->pacer);
	gale_store_close(client->store);
	gale_runtime_close(client->runtime);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / 1000000000),
		                 .tv_nsec = (long)(ns % 1000000000) };

	while (nanosleep(&left, &left) != 0)
		continue;
}

static void call(const struct client *client, int number)
{
	static const char key[] = "mail.example";
	struct gale_answer answer = gale_wait(client->seat, client->pacer, key,
	                                      sizeof(key) - 1, 1, GALE_MILLIS(10));

	if (answer.verdict != GALE_ALLOW) {
		printf("call %d: not sent, try again in %.1f ms\n", number,
		       (double)answer.retry_after_us / 1e3);
		return;
	}
	sleep_ns(answer.delay_ns);
	printf("call %d: sent after %.1f ms\n", number, (double)answer.delay_ns / 1e6);
}

int main(void)
{
	struct client client = { 0 };
	enum gale_err err = open_client(&client);

	if (err != GALE_ERR_OK) {
		fprintf(stderr, "paced_client: %s\n", gale_err_text(err));
		return 1;
	}
	for (int i = 1; i <= 8; i++)
		call(&client, i);
	close_client(&client);
	return 0;
}
