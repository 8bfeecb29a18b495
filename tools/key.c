/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* key.c -- opens a node, looks at a key once or more often, and prints what it sees. */
#define _GNU_SOURCE
#include "tools/key.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "tools/last_line.h"

#define PATIENCE_MOST GALE_HOURS(1) /* GALE_ERR_PATIENCE */
#define SECOND UINT64_C(1000000)
#define PAUSE_US 20000
#define SPAN_ROOM 32
#define NAME_ROOM 600 /* of a name or key, as JSON has it */

/* ---- The node -------------------------------------------------------------------- */

struct visit {
	const struct key_flags *flags;
	struct last_line last_line;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	sigset_t interrupts; /* that are waited for; of watch */
};

/* A command waits for as long as it was told to, wherever the store is. */
static uint64_t patience_us(const struct visit *visit)
{
	uint64_t within_us = visit->flags->within_us;

	return within_us < PATIENCE_MOST ? within_us : PATIENCE_MOST;
}

static enum gale_err open_node(struct visit *visit)
{
	struct gale_config config = { .shards = 1, .log = &visit->last_line.log };
	struct gale_store_config store = { .url = visit->flags->url };
	struct gale_limiter_config limiter = { .name = visit->flags->limiter,
		                               .rule = visit->flags->rule,
		                               .mode = GALE_STRICT,
		                               .lease = { .patience_us =
		                                              patience_us(visit) } };
	enum gale_err err = gale_runtime_open(&config, &visit->runtime);

	if (err == GALE_ERR_OK)
		err = gale_store_open(visit->runtime, &store, &visit->store);
	limiter.store = visit->store;
	if (err == GALE_ERR_OK)
		err = gale_limiter_open(visit->runtime, &limiter, &visit->limiter);
	if (err == GALE_ERR_OK)
		err = gale_join(visit->runtime, &visit->seat);
	return err;
}

static void close_node(struct visit *visit)
{
	gale_leave(visit->seat);
	gale_limiter_close(visit->limiter);
	gale_store_close(visit->store);
	gale_runtime_close(visit->runtime);
}

/* ---- Asking ---------------------------------------------------------------------- */

struct view {
	struct gale_answer answer;   /* to a call of cost 1 */
	struct gale_outlook outlook; /* of calls of the flags' cost */
	uint64_t left;               /* calls of cost 1 */
	uint64_t spent;
};

static enum gale_err forecast(struct visit *visit, uint64_t cost,
                              struct gale_outlook *ret_outlook)
{
	const struct key_flags *flags = visit->flags;

	return gale_forecast(visit->seat, visit->limiter, flags->key,
	                     strlen(flags->key), cost, flags->within_us, ret_outlook);
}

static enum gale_err look_once(struct visit *visit, struct view *ret_view)
{
	const struct key_flags *flags = visit->flags;
	struct gale_outlook single = { 0 };
	enum gale_err err =
	    gale_peek(visit->seat, visit->limiter, flags->key, strlen(flags->key),
	              flags->within_us, &ret_view->answer);

	if (err == GALE_ERR_OK)
		err = forecast(visit, 1, &single);
	if (err == GALE_ERR_OK)
		err = forecast(visit, flags->cost, &ret_view->outlook);
	ret_view->left = single.spendable_now;
	ret_view->spent = ret_view->answer.limit > ret_view->left
	                      ? ret_view->answer.limit - ret_view->left
	                      : 0;
	return err;
}

static uint64_t monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec / 1000;
}

/* Sleeps until then.  True: it is interrupted, also by a signal that came before. */
static bool is_interrupted_until(const struct visit *visit, uint64_t until_us)
{
	struct timespec left;
	uint64_t now_us, left_us;

	do {
		now_us = monotonic_us();
		left_us = until_us > now_us ? until_us - now_us : 0;
		left.tv_sec = (time_t)(left_us / SECOND);
		left.tv_nsec = (long)(left_us % SECOND * 1000);
		if (sigtimedwait(&visit->interrupts, NULL, &left) == SIGINT)
			return true;
	} while (errno == EINTR);
	return false;
}

/* A store that cannot be reached says so at once, and is tried again: a connection that is just
 * being made may take more than one attempt.  So is a store that others keep busy. */
static enum gale_err look(struct visit *visit, struct view *ret_view)
{
	uint64_t due_us = monotonic_us() + visit->flags->within_us;
	enum gale_err err = look_once(visit, ret_view);

	while ((err == GALE_ERR_LATE || err == GALE_ERR_BUSY) &&
	       monotonic_us() < due_us) {
		if (is_interrupted_until(visit, monotonic_us() + PAUSE_US))
			break;
		err = look_once(visit, ret_view);
	}
	return err;
}

/* Then it is not known what was spent, and nothing is granted. */
static bool is_quarantined(const struct view *view)
{
	return view->answer.why == GALE_WHY_QUARANTINE;
}

/* ---- Printing -------------------------------------------------------------------- */

/* Rounded up: "3h 12m", "59s", "20ms". */
static const char *span(char text[SPAN_ROOM], uint64_t us)
{
	uint64_t seconds = (us + SECOND - 1) / SECOND;

	if (us < SECOND)
		snprintf(text, SPAN_ROOM, "%" PRIu64 "ms", (us + 999) / 1000);
	else if (seconds < 60)
		snprintf(text, SPAN_ROOM, "%" PRIu64 "s", seconds);
	else if (seconds < 3600)
		snprintf(text, SPAN_ROOM, "%" PRIu64 "m %" PRIu64 "s", seconds / 60,
		         seconds % 60);
	else if (seconds < 86400)
		snprintf(text, SPAN_ROOM, "%" PRIu64 "h %" PRIu64 "m", seconds / 3600,
		         seconds % 3600 / 60);
	else
		snprintf(text, SPAN_ROOM, "%" PRIu64 "d %" PRIu64 "h", seconds / 86400,
		         seconds % 86400 / 3600);
	return text;
}

/* What stands between the quotes of a JSON string. */
static const char *quoted(char text[NAME_ROOM], const char *name)
{
	size_t at = 0;

	for (; *name && at + 7 < NAME_ROOM; name++) {
		unsigned char byte = (unsigned char)*name;

		if (byte == '"' || byte == '\\')
			text[at++] = '\\';
		if (byte >= ' ')
			text[at++] = *name;
		else
			at += (size_t)snprintf(text + at, 7, "\\u%04x", byte);
	}
	text[at] = '\0';
	return text;
}

static void begin_json(const struct visit *visit, FILE *out)
{
	char limiter[NAME_ROOM], key[NAME_ROOM];

	fprintf(out, "{\"limiter\":\"%s\",\"key\":\"%s\",",
	        quoted(limiter, visit->flags->limiter), quoted(key, visit->flags->key));
}

static void begin_text(const struct visit *visit, uint64_t limit, FILE *out)
{
	struct sentence key;

	sentence_say(&key, "%s", visit->flags->key);
	fprintf(out, "limiter %s, key %s: %s, %" PRIu64 " units\n",
	        visit->flags->limiter, key.is, gale_rule_name(visit->flags->rule.kind),
	        limit);
}

static bool may_pass(const struct view *view)
{
	return view->answer.verdict == GALE_ALLOW;
}

static void print_wait(const struct view *view, FILE *out)
{
	char text[SPAN_ROOM];

	if (may_pass(view) && view->answer.delay_ns > 0)
		fprintf(out, "a call of cost 1 would be allowed, and wait for %s\n",
		        span(text, view->answer.delay_ns / 1000));
	else if (may_pass(view))
		fputs("a call of cost 1 would be allowed\n", out);
	else if (view->answer.retry_after_us == GALE_NEVER)
		fputs("a call of cost 1 would be denied\n", out);
	else
		fprintf(out, "a call of cost 1 would be denied, and may pass in %s\n",
		        span(text, view->answer.retry_after_us));
}

static void print_peek(const struct visit *visit, const struct view *view, FILE *out)
{
	char text[SPAN_ROOM];

	begin_text(visit, view->answer.limit, out);
	if (is_quarantined(view)) {
		fprintf(
		    out,
		    "spent  not known: the server may have forgotten what it granted, "
		    "and grants nothing for %s (GALE_WHY_QUARANTINE)\n",
		    span(text, view->answer.retry_after_us));
		return;
	}
	fprintf(out,
	        "spent  %" PRIu64
	        " units; those that nodes hold leased and unspent are among them\n",
	        view->spent);
	fprintf(out, "left   %" PRIu64 " units: ", view->left);
	print_wait(view, out);
	if (view->outlook.full_after_us == 0)
		fputs("whole  now: nothing of it is spent\n", out);
	else
		fprintf(out, "whole  in %s: then all is available again\n",
		        span(text, view->outlook.full_after_us));
}

/* A number, or null when it is not known. */
static void print_number(const char *name, uint64_t number, bool is_known, FILE *out)
{
	if (is_known)
		fprintf(out, ",\"%s\":%" PRIu64, name, number);
	else
		fprintf(out, ",\"%s\":null", name);
}

static void print_peek_json(const struct visit *visit, const struct view *view,
                            FILE *out)
{
	bool is_known = !is_quarantined(view);
	uint64_t retry_us = view->answer.retry_after_us;

	begin_json(visit, out);
	fprintf(out, "\"rule\":\"%s\",\"limit\":%" PRIu64,
	        gale_rule_name(visit->flags->rule.kind), view->answer.limit);
	print_number("spent", view->spent, is_known, out);
	print_number("left", view->left, is_known, out);
	fprintf(out, ",\"allowed\":%s,\"why\":\"%s\"",
	        may_pass(view) ? "true" : "false", gale_why_name(view->answer.why));
	print_number("delay_ns", view->answer.delay_ns, true, out);
	print_number("full_after_us", view->outlook.full_after_us, is_known, out);
	print_number("retry_after_us", retry_us, retry_us != GALE_NEVER, out);
	fputs("}\n", out);
}

static void print_line(const struct view *view, FILE *out)
{
	time_t now = time(NULL);
	char when[16], text[SPAN_ROOM];
	struct tm local;

	strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&now, &local));
	if (is_quarantined(view)) {
		fprintf(out, "%s  quarantine: grants nothing for %s\n", when,
		        span(text, view->answer.retry_after_us));
		return;
	}
	fprintf(out, "%s  spent %" PRIu64 "  left %" PRIu64 "  %s  whole in %s\n", when,
	        view->spent, view->left, may_pass(view) ? "allows" : "denies",
	        span(text, view->outlook.full_after_us));
}

/* ---- The commands ---------------------------------------------------------------- */

static enum gale_err do_peek(struct visit *visit, FILE *out)
{
	struct view view;
	enum gale_err err = look(visit, &view);

	if (err == GALE_ERR_OK)
		(visit->flags->json ? print_peek_json : print_peek)(visit, &view, out);
	return err;
}

/* Units that were spent are not taken back: those that nodes hold leased are among them. */
static enum gale_err do_reset(struct visit *visit, FILE *out)
{
	const struct key_flags *flags = visit->flags;
	struct view view;
	enum gale_err err = look(visit, &view);
	char text[SPAN_ROOM];

	if (err == GALE_ERR_OK)
		err = gale_reset(visit->seat, visit->limiter, flags->key,
		                 strlen(flags->key), flags->within_us);
	if (err != GALE_ERR_OK)
		return err;
	if (flags->json) {
		begin_json(visit, out);
		fprintf(out,
		        "\"limit\":%" PRIu64 ",\"spent_before\":%" PRIu64
		        ",\"at_most\":%" PRIu64 ",\"for_us\":%" PRIu64 "}\n",
		        view.answer.limit, view.spent, view.answer.limit + view.spent,
		        view.outlook.full_after_us);
		return err;
	}
	begin_text(visit, view.answer.limit, out);
	fprintf(out,
	        "reset  it had spent %" PRIu64
	        " units, and the whole limit is available "
	        "again\n",
	        view.spent);
	if (view.spent > 0)
		fprintf(
		    out,
		    "bound  nodes keep the units that they hold leased, and denials "
		    "that they remember, for up to %s: until then at most %" PRIu64
		    " units pass, counted with those spent before\n",
		    span(text, view.outlook.full_after_us),
		    view.answer.limit + view.spent);
	return err;
}

static void print_forecast(const struct visit *visit, const struct view *view,
                           bool is_never, FILE *out)
{
	uint64_t cost = visit->flags->cost, now = view->outlook.spendable_now;
	char text[SPAN_ROOM];

	begin_text(visit, view->answer.limit, out);
	if (is_never)
		fprintf(out, "a call of cost %" PRIu64 " is never admitted\n", cost);
	else if (now > 0)
		fprintf(out,
		        "a call of cost %" PRIu64 " would be admitted now, and %" PRIu64
		        " such calls in all\n",
		        cost, now);
	else
		fprintf(
		    out,
		    "a call of cost %" PRIu64
		    " would be admitted in %s at the earliest, if no other call takes "
		    "units until then\n",
		    cost, span(text, view->outlook.next_after_us));
}

static void print_forecast_json(const struct visit *visit, const struct view *view,
                                bool is_never, FILE *out)
{
	uint64_t now = view->outlook.spendable_now;

	begin_json(visit, out);
	fprintf(out,
	        "\"limit\":%" PRIu64 ",\"cost\":%" PRIu64 ",\"calls_now\":%" PRIu64
	        ",\"earliest_after_us\":",
	        view->answer.limit, visit->flags->cost, now);
	if (is_never)
		fputs("null}\n", out);
	else
		fprintf(out, "%" PRIu64 "}\n",
		        now > 0 ? 0 : view->outlook.next_after_us);
}

static enum gale_err do_forecast(struct visit *visit, FILE *out)
{
	struct view view;
	enum gale_err err = look(visit, &view);
	bool is_never = view.outlook.spendable_now == 0 &&
	                (view.outlook.next_after_us == 0 ||
	                 view.outlook.next_after_us == GALE_NEVER);

	if (err == GALE_ERR_OK)
		(visit->flags->json ? print_forecast_json
		                    : print_forecast)(visit, &view, is_never, out);
	return err;
}

/* ---- Watching -------------------------------------------------------------------- */

static enum gale_err watch(struct visit *visit, FILE *out)
{
	const struct key_flags *flags = visit->flags;
	uint64_t next_us = monotonic_us();
	struct view view;

	for (uint64_t i = 0; flags->count == 0 || i < flags->count; i++) {
		enum gale_err err;

		if (is_interrupted_until(visit, next_us))
			return GALE_ERR_OK;
		err = look(visit, &view);
		if (err != GALE_ERR_OK)
			return err;
		if (flags->json)
			print_peek_json(visit, &view, out);
		else
			print_line(&view, out);
		if (fflush(out) != 0)
			break; /* its reader has gone */
		next_us += flags->every_us;
	}
	return GALE_ERR_OK;
}

/* The threads of gale block all signals, so this one gets it. */
static enum gale_err do_watch(struct visit *visit, FILE *out)
{
	sigset_t before;
	enum gale_err err;

	sigaddset(&visit->interrupts, SIGINT);
	pthread_sigmask(SIG_BLOCK, &visit->interrupts, &before);
	err = watch(visit, out);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* ---- All of it ------------------------------------------------------------------- */

static void complain(struct visit *visit, enum gale_err wrong, FILE *err)
{
	const char *name = key_command_name(visit->flags->command);
	struct sentence why;

	last_line_explain(&visit->last_line, gale_err_text(wrong), &why);
	fprintf(err, "gale %s: %s\n", name, why.is);
	if (wrong == GALE_ERR_LATE)
		fprintf(err, "gale %s: gale doctor URL says what is wrong\n", name);
	if (wrong == GALE_ERR_STORE_CHANGED)
		fprintf(err, "gale %s: give the --rule that the nodes have\n", name);
}

static int visit_key(const struct key_flags *flags, FILE *out, FILE *err)
{
	static enum gale_err (*const commands[])(struct visit *, FILE *) = {
		[KEY_PEEK] = do_peek,
		[KEY_RESET] = do_reset,
		[KEY_FORECAST] = do_forecast,
		[KEY_WATCH] = do_watch,
	};
	struct visit visit = { .flags = flags };
	enum gale_err wrong;

	sigemptyset(&visit.interrupts);
	last_line_open(&visit.last_line);
	wrong = open_node(&visit);
	if (wrong == GALE_ERR_OK)
		wrong = commands[flags->command](&visit, out);
	if (wrong != GALE_ERR_OK)
		complain(&visit, wrong, err);
	close_node(&visit);
	last_line_close(&visit.last_line);
	return wrong == GALE_ERR_OK ? KEY_DONE : KEY_FAILED;
}

int key_run(enum key_command command, int argc, char **argv, FILE *out, FILE *err)
{
	struct key_flags flags;
	struct flags_error error;

	switch (key_flags_parse(command, argc, argv, &flags, &error)) {
	case FLAGS_RUN:
		return visit_key(&flags, out, err);
	case FLAGS_HELP:
		key_flags_help(command, out);
		return KEY_DONE;
	case FLAGS_BAD:
		break;
	}
	fprintf(err, "gale %s: %s\n", key_command_name(command), error.text);
	return KEY_BAD_USE;
}
