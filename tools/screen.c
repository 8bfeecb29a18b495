/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * screen.c -- moves the cursor up and writes over what was there.
 *
 * A line longer than the terminal is wide would wrap and be two, so lines are cut.
 */
#define _GNU_SOURCE
#include "tools/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/text.h"

#define BAR 24

/* ---- Opening --------------------------------------------------------------------- */

static bool can_move_cursor(FILE *out)
{
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && term && *term && strcmp(term, "dumb") != 0;
}

static int columns_of(FILE *out)
{
	struct winsize size;

	if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
		return 80;
	return size.ws_col;
}

void screen_open(struct screen *screen, FILE *out, bool even_plain)
{
	*screen = (struct screen){ .out = out };
	if (can_move_cursor(out))
		screen->style = SCREEN_LIVE;
	else
		screen->style = even_plain ? SCREEN_PLAIN : SCREEN_OFF;
}

uint64_t screen_period_us(const struct screen *screen)
{
	switch (screen->style) {
	case SCREEN_PLAIN:
		return GALE_SECONDS(1);
	case SCREEN_LIVE:
		return GALE_MILLIS(200);
	case SCREEN_OFF:
		break;
	}
	return 0;
}

/* ---- Drawing in place ------------------------------------------------------------ */

static void line(struct screen *screen, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(screen->out, "%.*s\033[K\n", screen->columns - 1, text);
	screen->lines++;
}

struct bar {
	char is[BAR + 1];
};

static const char *draw_bar(struct bar *bar, double part)
{
	int filled = part <= 0 ? 0 : part >= 1 ? BAR : (int)(part * BAR);

	memset(bar->is, '.', BAR);
	memset(bar->is, '#', (size_t)filled);
	bar->is[BAR] = '\0';
	return bar->is;
}

static double filled(const struct frame *frame, const struct tally_window *window)
{
	return (double)window->admitted /
	       ((double)frame->flags->keys * (double)frame->flags->limit);
}

static void draw_window(struct screen *screen, const struct frame *frame,
                        const struct tally_window *window, const char *what)
{
	double part = filled(frame, window);
	struct text admitted, most;
	struct bar bar;

	line(screen, "  %4s %5" PRIu64 "  [%s] %6.2f %%  %s; most by a key %s", what,
	     window->number, draw_bar(&bar, part), 100 * part,
	     text_count(&admitted, window->admitted), text_count(&most, window->most));
}

/* Of a demand.  Processes tell what a window was asked for when it is done. */
static void draw_demand(struct screen *screen, const struct frame *frame)
{
	const struct tally_totals *total = &frame->total;
	struct text a, b;

	if (frame->flags->demand_percent == 0)
		return;
	if (total->asked_windows == 0) {
		line(screen,
		     "  asked       nothing counts yet: nodes learn for %d windows",
		     TALLY_LEARNING);
		line(screen, "  worst       -");
		return;
	}
	line(screen, "  asked       %s; served %s: %.2f %% of what was owed",
	     text_count(&a, total->asked), text_count(&b, total->served),
	     100 * tally_served(total));
	line(screen, "  worst       %.2f %%, of %s windows after the first %d",
	     100 * total->served_worst, text_count(&a, total->asked_windows),
	     TALLY_LEARNING);
}

static void draw_head(struct screen *screen, const struct frame *frame)
{
	const struct fleet_flags *flags = frame->flags;
	double run_s = (double)flags->run_us / 1e6;
	struct text limit, keys, window;
	struct text_long store;
	struct bar bar;

	line(screen,
	     "%" PRIu64 " nodes of %" PRIu64 " threads, %s keys, %s per %s, %s, %s",
	     flags->processes * flags->nodes, flags->threads,
	     text_count(&keys, flags->keys), text_count(&limit, flags->limit),
	     text_duration(&window, flags->window_us), flags->mode_name,
	     text_url(&store, flags->store));
	line(screen, "  progress    [%s] %.1f of %g s",
	     draw_bar(&bar, frame->elapsed_s / run_s), frame->elapsed_s, run_s);
}

static void draw_figures(struct screen *screen, const struct frame *frame)
{
	struct text a, b;

	line(screen, "  decisions   %s a second; %.1f %% allowed",
	     text_count(&a, frame->decisions_per_s),
	     percent(frame->allowed, frame->decisions));
	line(screen, "  ns/decision %s (p50), %s (p99)", text_count(&a, frame->p50_ns),
	     text_count(&b, frame->p99_ns));
	line(screen, "  store calls %s; %.1f per million decisions",
	     text_count(&a, frame->store_calls),
	     percent(frame->store_calls, frame->decisions) * 1e4);
}

static void draw_live(struct screen *screen, const struct frame *frame)
{
	if (screen->lines > 0)
		fprintf(screen->out, "\033[%dA\r", screen->lines);
	screen->lines = 0;
	screen->columns = columns_of(screen->out);
	draw_head(screen, frame);
	draw_figures(screen, frame);
	draw_demand(screen, frame);
	line(screen, "  admitted in the windows, of all keys' limits:");
	for (size_t i = 0; i < SCREEN_WINDOWS; i++) {
		if (i < frame->last_count)
			draw_window(screen, frame, &frame->last[i], "");
		else
			line(screen, "%s", "");
	}
	/* Processes tell of a window when it is done. */
	if (frame->flags->processes == 1)
		draw_window(screen, frame, &frame->now, "now");
	line(screen, "%s", "");
}

/* ---- One line a second ----------------------------------------------------------- */

static void draw_plain_demand(const struct screen *screen, const struct frame *frame)
{
	const struct tally_totals *total = &frame->total;
	struct text a;

	if (frame->flags->demand_percent == 0)
		return;
	if (total->asked_windows == 0)
		fprintf(screen->out, "; nodes learn");
	else
		fprintf(screen->out, "; asked %s, served %.2f %%, worst window %.2f %%",
		        text_count(&a, total->asked), 100 * tally_served(total),
		        100 * total->served_worst);
}

static void draw_plain(const struct screen *screen, const struct frame *frame)
{
	const struct tally_window *window =
	    frame->last_count > 0 ? &frame->last[frame->last_count - 1] : &frame->now;
	struct text a, b, c, d;

	fprintf(screen->out,
	        "%5.1f s  %s decisions/s  p50 %s ns  p99 %s ns  %s store calls  "
	        "window %" PRIu64 ": %.2f %% of the limits",
	        frame->elapsed_s, text_count(&a, frame->decisions_per_s),
	        text_count(&b, frame->p50_ns), text_count(&c, frame->p99_ns),
	        text_count(&d, frame->store_calls), window->number,
	        100 * filled(frame, window));
	draw_plain_demand(screen, frame);
	fprintf(screen->out, "\n");
}

void screen_draw(struct screen *screen, const struct frame *frame)
{
	switch (screen->style) {
	case SCREEN_OFF:
		return;
	case SCREEN_PLAIN:
		draw_plain(screen, frame);
		break;
	case SCREEN_LIVE:
		draw_live(screen, frame);
		break;
	}
	fflush(screen->out);
}
