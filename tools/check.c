/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* check.c -- one script, two stores, the same answers; then a crowd. */
#define _GNU_SOURCE
#include "tools/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <gale/gale.h>

#include "tools/last_line.h"
#include "tools/flag.h"

#define YEARS GALE_DAYS(3650)
#define QUEUE GALE_DAYS(100) /* pacers cannot be slower */
#define RULES 12
#define KEYS 4
#define CROWD 200
#define FIFTY 50
#define NAME_MOST 48
#define APART_US GALE_MINUTES(30) /* how long a run may take, and more */
#define PATIENCE GALE_SECONDS(10)
#define GAINED_MOST 100 /* units, in the time between two steps */
#define SETTLED_MOST 30 /* denials of a store that is new */

/* ---- Rules ----------------------------------------------------------------------- */

struct named {
	const char *name;
	struct gale_rule rule;
};

static struct named slow_rule(int which)
{
	const struct named rules[RULES] = {
		{ "fixed window", gale_fixed_window(FIFTY, YEARS) },
		{ "sliding window", gale_sliding_window(FIFTY, YEARS, 10) },
		{ "sliding log", gale_sliding_log(FIFTY, YEARS) },
		{ "gcra", gale_gcra(FIFTY, YEARS, 20) },
		{ "token bucket", gale_token_bucket(30, FIFTY, YEARS) },
		{ "leaky bucket", gale_leaky_bucket(FIFTY, QUEUE, QUEUE) },
		{ "anchored quota", gale_quota_anchored(FIFTY, YEARS, 12345678) },
		{ "rolling quota", gale_quota_rolling(FIFTY, YEARS) },
		{ "token budget", gale_token_budget(FIFTY, YEARS) },
		{ "pacer", gale_pacer(FIFTY, QUEUE, 20) },
		{ "limiting pacer", gale_pacer_limit(FIFTY, QUEUE, 20) },
		{ "gcra of many units",
		  gale_gcra(GALE_UNITS_MAX / 4, YEARS, GALE_UNITS_MAX / 4) },
	};

	return rules[which];
}

/* One of each, that lets fifty calls through while time stands nearly still. */
static struct named fifty_rule(int which)
{
	struct named rule = slow_rule(which);
	const struct gale_rule rules[] = {
		[3] = gale_gcra(FIFTY, YEARS, FIFTY),
		[4] = gale_token_bucket(FIFTY, FIFTY, YEARS),
		[5] = gale_leaky_bucket(FIFTY, QUEUE, (FIFTY - 1) * (QUEUE / FIFTY)),
		[9] = gale_pacer_limit(FIFTY, QUEUE, FIFTY - 1),
		[10] = gale_pacer_limit(FIFTY, QUEUE, FIFTY - 1),
		[11] = gale_gcra(FIFTY, YEARS, FIFTY),
	};

	if (rules[which].kind != GALE_RULE_NONE)
		rule.rule = rules[which];
	return rule;
}

/* ---- Sites ----------------------------------------------------------------------- */

struct site {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
	struct gale_limiter *limiters[RULES];
	struct gale_answer booked[RULES][KEYS]; /* the latest, of pacers */
};

struct check {
	const struct check_flags *flags;
	struct sentence *why;
	uint64_t lot;
	char run[17]; /* what this run's names begin with */
	bool late;    /* an answer was: the rest tells nothing */
	struct last_line last_line;
	struct site ours;
	struct site theirs;
};

static bool went_well(struct check *check, const char *what, enum gale_err err)
{
	struct sentence failed;

	check->late |= err == GALE_ERR_LATE;
	if (err == GALE_ERR_OK)
		return true;
	sentence_say(&failed, "%s: %s", what, gale_err_text(err));
	return last_line_explain(&check->last_line, failed.is, check->why);
}

static bool open_site(struct check *check, struct site *site, const char *url)
{
	struct gale_config config = { .log = &check->last_line.log };
	struct gale_store_config store = { .url = url, .quarantine_us = 1 };

	return went_well(check, "runtime",
	                 gale_runtime_open(&config, &site->runtime)) &&
	       went_well(check, url,
	                 gale_store_open(site->runtime, &store, &site->store)) &&
	       went_well(check, "seat", gale_join(site->runtime, &site->seat));
}

static void close_site(struct site *site)
{
	for (int i = 0; i < RULES; i++)
		gale_limiter_close(site->limiters[i]);
	gale_leave(site->seat);
	gale_store_close(site->store);
	gale_runtime_close(site->runtime);
}

static bool open_limiter(struct check *check, struct site *site, const char *name,
                         struct gale_rule rule, struct gale_limiter **ret_limiter)
{
	char whole[NAME_MOST];
	struct gale_limiter_config config = {
		.name = whole,
		.rule = rule,
		.mode = GALE_STRICT,
		.store = site->store,
		.lease = { .patience_us = PATIENCE },
	};

	snprintf(whole, sizeof(whole), "check-%s-%s", check->run, name);
	return went_well(check, "limiter",
	                 gale_limiter_open(site->runtime, &config, ret_limiter));
}

static bool open_limiters(struct check *check, struct site *site)
{
	char name[8];

	for (int i = 0; i < RULES; i++) {
		snprintf(name, sizeof(name), "r%d", i);
		if (!open_limiter(check, site, name, slow_rule(i).rule,
		                  &site->limiters[i]))
			return false;
	}
	return true;
}

/* A store that has just been made may grant nothing for a moment. */
static bool settle(struct check *check, struct site *site)
{
	struct gale_limiter *soon;
	struct gale_answer answer = { 0 };
	struct sentence failed;

	if (!open_limiter(check, site, "soon", gale_fixed_window(FIFTY, YEARS), &soon))
		return false;
	for (int i = 0; i < SETTLED_MOST && answer.verdict != GALE_ALLOW; i++) {
		if (i > 0)
			nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		answer = gale_wait(site->seat, soon, "k", 1, 1, PATIENCE);
	}
	(void)gale_reset(site->seat, soon, "k", 1, PATIENCE);
	gale_limiter_close(soon);
	if (answer.verdict == GALE_ALLOW)
		return true;
	sentence_say(&failed, "it grants nothing (gale doctor URL says what to do): %s",
	             gale_why_text(answer.why));
	return last_line_explain(&check->last_line, failed.is, check->why);
}

/* ---- The script ------------------------------------------------------------------ */

struct step {
	uint64_t number;
	unsigned verb;
	int rule;
	int key;
	uint64_t cost;
};

static uint64_t below(struct check *check, uint64_t most)
{
	check->lot = check->lot * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (check->lot >> 33) % most;
}

static struct step draw(struct check *check, uint64_t number)
{
	return (struct step){
		.number = number,
		.verb = (unsigned)below(check, 16),
		.rule = (int)below(check, RULES),
		.key = (int)below(check, KEYS),
		.cost = 1 + below(check, below(check, 20) == 0 ? 60 : 6),
	};
}

/* Returns false, and says where. */
static bool differs(struct check *check, const struct step *step, const char *what,
                    uint64_t theirs, uint64_t ours)
{
	return sentence_say(
	    check->why,
	    "step %llu of seed %llu, %s, key %d, cost %llu: %s is %llu, "
	    "the embedded store says %llu",
	    (unsigned long long)step->number, (unsigned long long)check->flags->seed,
	    slow_rule(step->rule).name, step->key, (unsigned long long)step->cost, what,
	    (unsigned long long)theirs, (unsigned long long)ours);
}

static bool is_near(uint64_t a, uint64_t b)
{
	return a > b ? a - b <= APART_US : b - a <= APART_US;
}

/* The gcra of many units gains some in each microsecond. */
static bool are_units(const struct step *step, uint64_t a, uint64_t b)
{
	uint64_t most = slow_rule(step->rule).rule.limit > FIFTY ? GAINED_MOST : 0;

	return a > b ? a - b <= most : b - a <= most;
}

#define SAME(field)                                                                    \
	(theirs->field == ours->field ||                                               \
	 differs(check, step, #field, theirs->field, ours->field))
#define UNITS(field)                                                                   \
	(are_units(step, theirs->field, ours->field) ||                                \
	 differs(check, step, #field, theirs->field, ours->field))
#define NEAR(field, per)                                                               \
	(is_near(theirs->field / (per), ours->field / (per)) ||                        \
	 differs(check, step, #field, theirs->field, ours->field))

/* The cost may be taken. */
static bool came(struct check *check, const struct step *step,
                 const struct gale_answer *answer)
{
	if (answer->why != GALE_WHY_LATE)
		return true;
	check->late = true;
	return sentence_say(
	    check->why, "step %llu of seed %llu: %s", (unsigned long long)step->number,
	    (unsigned long long)check->flags->seed, gale_why_text(answer->why));
}

static bool are_same(struct check *check, const struct step *step,
                     const struct gale_answer *theirs, const struct gale_answer *ours)
{
	return SAME(why) && SAME(verdict) && SAME(limit) && UNITS(remaining) &&
	       NEAR(reset_after_us, 1) && NEAR(retry_after_us, 1) &&
	       NEAR(delay_ns, 1000);
}

static bool look_same(struct check *check, const struct step *step,
                      const struct gale_outlook *theirs,
                      const struct gale_outlook *ours)
{
	return UNITS(spendable_now) && NEAR(next_after_us, 1) && NEAR(full_after_us, 1);
}

static enum gale_err look(struct site *site, const struct step *step, const char *key,
                          struct gale_answer *ret_peek,
                          struct gale_outlook *ret_outlook)
{
	struct gale_limiter *limiter = site->limiters[step->rule];
	enum gale_err err = gale_peek(site->seat, limiter, key, 2, PATIENCE, ret_peek);

	if (err != GALE_ERR_OK)
		return err;
	return gale_forecast(site->seat, limiter, key, 2, step->cost, PATIENCE,
	                     ret_outlook);
}

static bool look_at_both(struct check *check, const struct step *step, const char *key)
{
	struct gale_answer peeks[2];
	struct gale_outlook outlooks[2];

	return went_well(check, "look",
	                 look(&check->theirs, step, key, &peeks[0], &outlooks[0])) &&
	       went_well(check, "look",
	                 look(&check->ours, step, key, &peeks[1], &outlooks[1])) &&
	       are_same(check, step, &peeks[0], &peeks[1]) &&
	       look_same(check, step, &outlooks[0], &outlooks[1]);
}

static enum gale_err give_back(struct site *site, const struct step *step,
                               const char *key)
{
	return gale_cancel(site->seat, site->limiters[step->rule], key, 2, step->cost,
	                   PATIENCE, &site->booked[step->rule][step->key]);
}

static bool give_back_both(struct check *check, const struct step *step,
                           const char *key)
{
	enum gale_err theirs = give_back(&check->theirs, step, key);
	enum gale_err ours = give_back(&check->ours, step, key);

	if (theirs == GALE_ERR_LATE)
		return went_well(check, "cancel", theirs);
	return theirs == ours ||
	       differs(check, step, "a cancel", (uint64_t)theirs, (uint64_t)ours);
}

static enum gale_err reset(struct site *site, int rule, const char *key)
{
	return gale_reset(site->seat, site->limiters[rule], key, 2, PATIENCE);
}

static bool reset_both(struct check *check, int rule, const char *key)
{
	return went_well(check, "reset", reset(&check->theirs, rule, key)) &&
	       went_well(check, "reset", reset(&check->ours, rule, key));
}

static struct gale_answer take(struct site *site, const struct step *step,
                               const char *key)
{
	struct gale_answer answer = gale_wait(site->seat, site->limiters[step->rule],
	                                      key, 2, step->cost, PATIENCE);

	if (answer.slot.us > 0 && answer.delay_ns > 0) /* it is not over at once */
		site->booked[step->rule][step->key] = answer;
	return answer;
}

static bool run_step(struct check *check, const struct step *step)
{
	char key[2] = { 'k', (char)('0' + step->key) };
	struct gale_answer theirs, ours;

	switch (step->verb) {
	case 0:
		return look_at_both(check, step, key);
	case 1:
		return give_back_both(check, step, key);
	case 2:
		return reset_both(check, step->rule, key);
	default:
		theirs = take(&check->theirs, step, key);
		ours = take(&check->ours, step, key);
		return came(check, step, &theirs) &&
		       are_same(check, step, &theirs, &ours);
	}
}

/* Nothing of it stays at the store. */
static bool clean_up(struct check *check)
{
	for (int rule = 0; rule < RULES; rule++)
		for (int key = 0; key < KEYS; key++) {
			char name[2] = { 'k', (char)('0' + key) };

			if (!reset_both(check, rule, name))
				return false;
		}
	return true;
}

static bool run_script(struct check *check)
{
	bool same =
	    open_limiters(check, &check->theirs) && open_limiters(check, &check->ours);

	for (uint64_t i = 0; same && i < check->flags->steps; i++) {
		struct step step = draw(check, i);

		same = run_step(check, &step);
	}
	return same && clean_up(check);
}

/* ---- The crowd ------------------------------------------------------------------- */

struct crowd {
	struct site *site;
	struct gale_limiter *limiter;
	pthread_barrier_t start;
	atomic_uint allowed;
	atomic_uint others; /* neither admitted nor denied by the rule ... */
	atomic_bool late;   /* ... and one of those because it came too late */
};

static void *come(void *arg)
{
	struct crowd *crowd = arg;
	struct gale_answer answer = { .why = GALE_WHY_CLOSED };
	struct gale_seat *seat;

	(void)pthread_barrier_wait(&crowd->start);
	if (gale_join(crowd->site->runtime, &seat) == GALE_ERR_OK) {
		answer = gale_wait(seat, crowd->limiter, "k", 1, 1, PATIENCE);
		gale_leave(seat);
	}
	atomic_fetch_add(&crowd->allowed, answer.verdict == GALE_ALLOW);
	atomic_fetch_add(&crowd->others, answer.why != GALE_WHY_RULE);
	if (answer.why == GALE_WHY_LATE)
		atomic_store(&crowd->late, true);
	return NULL;
}

/* False: not all of them could be made, and those that were must not wait for them. */
static bool send_crowd(struct crowd *crowd)
{
	pthread_t threads[CROWD];
	unsigned count = 0;

	while (count < CROWD && pthread_create(&threads[count], NULL, come, crowd) == 0)
		count++;
	if (count < CROWD)
		return false;
	while (count > 0)
		(void)pthread_join(threads[--count], NULL);
	return true;
}

static bool judge(struct check *check, const struct crowd *crowd, const char *name)
{
	if (crowd->allowed == FIFTY && crowd->others == 0)
		return true;
	check->late |= crowd->late && crowd->allowed <= FIFTY;
	return sentence_say(check->why,
	                    "a crowd of %d at a %s of %d: %u were admitted, and %u not "
	                    "answered",
	                    CROWD, name, FIFTY, crowd->allowed, crowd->others);
}

static bool run_crowd(struct check *check, int rule)
{
	struct named named = fifty_rule(rule);
	struct crowd crowd = { .site = &check->theirs };
	char name[16];
	bool kept;

	snprintf(name, sizeof(name), "crowd%d", rule);
	if (!open_limiter(check, &check->theirs, name, named.rule, &crowd.limiter))
		return false;
	if (pthread_barrier_init(&crowd.start, NULL, CROWD) != 0 || !send_crowd(&crowd))
		return sentence_say(check->why,
		                    "this system gives no %d threads: raise ulimit -u",
		                    CROWD);
	(void)pthread_barrier_destroy(&crowd.start);
	kept = judge(check, &crowd, named.name);
	(void)gale_reset(check->theirs.seat, crowd.limiter, "k", 1, PATIENCE);
	gale_limiter_close(crowd.limiter);
	return kept;
}

static bool run_crowds(struct check *check)
{
	for (int rule = 0; rule < RULES; rule++)
		if (!run_crowd(check, rule))
			return false;
	return true;
}

/* ---- All of it ------------------------------------------------------------------- */

static bool name_run(struct check *check)
{
	uint64_t name;

	if (getrandom(&name, sizeof(name), 0) != sizeof(name))
		return sentence_say(
		    check->why,
		    "this system gives no random number: run the command again");
	snprintf(check->run, sizeof(check->run), "%016llx", (unsigned long long)name);
	return true;
}

static bool is_kept(struct check *check, FILE *out)
{
	if (!settle(check, &check->theirs) || !run_script(check))
		return false;
	fprintf(out,
	        "script: %llu steps of %d rules, seed %llu: as the embedded store "
	        "answers\n",
	        (unsigned long long)check->flags->steps, RULES,
	        (unsigned long long)check->flags->seed);
	if (!run_crowds(check))
		return false;
	fprintf(out, "crowd: %d at once at a limit of %d, %d rules: %d admitted\n",
	        CROWD, FIFTY, RULES, FIFTY);
	return true;
}

enum check_status check_store(const struct check_flags *flags, FILE *out,
                              struct sentence *ret_why)
{
	struct check check = { .flags = flags, .why = ret_why, .lot = flags->seed };
	char embedded[32] = "memory:";
	bool kept;

	last_line_open(&check.last_line);
	kept = name_run(&check) &&
	       open_site(&check, &check.ours, strcat(embedded, check.run)) &&
	       open_site(&check, &check.theirs, flags->url) && is_kept(&check, out);
	close_site(&check.theirs);
	close_site(&check.ours);
	last_line_close(&check.last_line);
	if (kept)
		return CHECK_KEPT;
	return check.late ? CHECK_UNTOLD : CHECK_BROKEN;
}

/* ---- Words ----------------------------------------------------------------------- */

static const struct flag flags_of_check[] = {
	{ .name = "--steps",
	  .takes = "N",
	  .preset = "10k",
	  .allowed = "a whole number from 1 to 100M (k and M are understood)",
	  .help = "how many random steps",
	  .read = flag_read_number,
	  .at = offsetof(struct check_flags, steps),
	  .least = 1,
	  .most = CHECK_STEPS_MOST },
	{ .name = "--seed",
	  .takes = "S",
	  .preset = "20",
	  .allowed = "a whole number",
	  .help = "which steps: the same again for the same seed",
	  .read = flag_read_number,
	  .at = offsetof(struct check_flags, seed),
	  .most = UINT64_MAX },
};

static const struct flag_table table = {
	.flags = flags_of_check,
	.count = sizeof(flags_of_check) / sizeof(flags_of_check[0]),
	.operands = { { "the URL of a store", offsetof(struct check_flags, url) } },
};

static void help(FILE *out)
{
	fputs("usage: gale store check URL [--steps N] [--seed S]\n"
	      "\n"
	      "Runs random steps of all rules on a store, and compares each answer\n"
	      "with the embedded store's.  Then 200 threads ask at once at a limit of\n"
	      "50.  The command uses keys with names of their own, and resets them at\n"
	      "the end.\n"
	      "\n",
	      out);
	flags_explain(&table, out);
	fputs("\n"
	      "Exit status: 0 the store answers as it should; 1 it does not, or gives\n"
	      "no answer; 2 an argument is wrong; 3 an answer was late, so\n"
	      "check again.\n",
	      out);
}

/* A URL that the library would not open is refused before anything is begun. */
static enum check_status check(const struct check_flags *flags, FILE *out,
                               struct sentence *ret_why)
{
	if (gale_url_check(flags->url, ret_why->is, sizeof(ret_why->is)) != GALE_ERR_OK)
		return CHECK_BAD_USE;
	return check_store(flags, out, ret_why);
}

int check_run(int argc, char **argv, FILE *out, FILE *err)
{
	struct check_flags flags = { .url = NULL };
	struct sentence why = { "" };
	struct flags_error error;
	enum check_status status;

	switch (flags_read(&table, argc, argv, &flags, &error)) {
	case FLAGS_HELP:
		help(out);
		return CHECK_KEPT;
	case FLAGS_BAD:
		fprintf(err, "gale store check: %s\n", error.text);
		return CHECK_BAD_USE;
	case FLAGS_RUN:
		break;
	}
	status = check(&flags, out, &why);
	if (status != CHECK_KEPT)
		fprintf(err, "gale store check: %s%s\n",
		        status == CHECK_UNTOLD ? "not known: " : "", why.is);
	return (int)status;
}
