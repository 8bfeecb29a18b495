/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_metrics.c -- read all counters of a runtime, and which keys are refused most
 *
 * Errors   RUNTIME FORKED SINK
 *
 * Prints
 *	gale has metrics, and Prometheus reads them
 *	no key was refused
 */
#include <stdio.h>

#include <gale/gale.h>

/* A server would send the text as the body of its reply. */
struct body {
	struct gale_sink sink;
	size_t bytes;
};

static bool add(struct gale_sink *self, const char *text, size_t bytes)
{
	struct body *body = (struct body *)self;

	(void)text;
	body->bytes += bytes;
	return true;
}

int main(void)
{
	struct body body = { .sink.write = add };
	struct gale_metric metrics[128];
	struct gale_runtime *runtime;
	size_t count;

	if (gale_runtime_open(NULL, &runtime))
		return 1;
	count = gale_metrics(runtime, metrics, 128);
	for (size_t i = 0; i < count && i < 128; i++)
		if (metrics[i].value > 0)
			fprintf(stderr, "%s %llu\n", metrics[i].name,
			        (unsigned long long)metrics[i].value);
	if (gale_metrics_write(runtime, &body.sink))
		return 1;
	if (count > 0 && body.bytes > 0)
		puts("gale has metrics, and Prometheus reads them");
	body.bytes = 0;
	if (gale_offenders_write(runtime, &body.sink))
		return 1;
	if (body.bytes == 0)
		puts("no key was refused");
	gale_runtime_close(runtime);
	return 0;
}
