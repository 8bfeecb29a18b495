# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""report.py -- what was measured, as Markdown, with plots by gnuplot."""
import datetime
import os
import shutil
import statistics
import subprocess
import textwrap

import measure
import peers


NAMED_MOST = 4  # works of which each is named where gale loses
AGAIN_MS = 50  # later than another, which is no accident of when calls were made
TOP = os.path.dirname(os.path.dirname(peers.HERE))


def spread(values, form="{:,.2f}"):
    """Median, and least to most."""
    if not values:
        return "-"
    low, high = form.format(min(values)), form.format(max(values))
    return f"{form.format(statistics.median(values))} ({low} to {high})" if low != high else low


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def wide(values, scale=1.0):
    """The same, with as many digits as a number of that size has use for."""
    values = [value * scale for value in values]
    middle = number(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({number(min(values))} to {number(max(values))})"


def rates(results):
    return [result["operations"] / result["seconds"] for result in results]


def wrapped(text):
    """Prose in lines of a width that is read; tables, pictures and titles as they are."""
    def paragraph(part):
        if part.startswith(("|", "#", "!", "**")):
            return part
        return "\n".join(textwrap.fill(line, 138, subsequent_indent="  " if line.startswith("- ") else "", break_on_hyphens=False,
                                       break_long_words=False)
                         for line in (part.split("\n") if part.startswith("- ") else [part]))
    return "\n\n".join(map(paragraph, (part.strip("\n") for part in text.split("\n\n") if part.strip()))) + "\n"


def ratios(ours, theirs):
    """Of calls a second, in each round; None: one of them has none."""
    if not ours or isinstance(ours, str) or not theirs or isinstance(theirs, str):
        return None
    return [a / b for a, b in zip(rates(ours), rates(theirs))]


def times(ratio_values):
    middle = statistics.median(ratio_values)
    text = f"{wide(ratio_values)} ×"
    return text if middle >= 1 else f"{text} **gale loses**"


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def middle_rate(results):
    return statistics.median(rates(results)) if results and not isinstance(results, str) else None


# ---- Plots -------------------------------------------------------------------------------------------

STYLE = """
set terminal svg size 900,{height} font "sans,12" background "white"
set output "{path}"
set datafile separator "\\t"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set grid ytics lc rgb "#dddddd"
set key top left horizontal
set xtics rotate by -15 noenhanced nomirror
set ylabel "{label}"
set title "{title}"
{more}
plot {plots}
"""


class Plots:
    """SVG files beside the report, named after it."""

    def __init__(self, report):
        self.base = os.path.splitext(report)[0]
        self.is_here = shutil.which("gnuplot") is not None

    def bars(self, name, title, label, groups, columns, log=False):
        """groups: {on the x axis: [a value or None for each column]}; a line of Markdown."""
        if not self.is_here:
            return "There is no plot here: install gnuplot-nox.\n"
        path = f"{self.base}-{name}.svg"
        # Only what is shown under one title is compared; "?" leaves a bar out.
        data = "\n".join("\t".join([f'"{group}"', *("?" if value is None else f"{value:.6g}" for value in values)])
                         for group, values in groups.items())
        plots = ", ".join(f"$data using {i + 2}:xtic(1) title \"{column}\"" for i, column in enumerate(columns))
        script = f"$data << END\n{data}\nEND\nset datafile missing '?'\n" + STYLE.format(
            path=path, label=label, title=title, height=420, plots=plots,
            more="set logscale y\nset format y '10^{%T}'" if log else "set yrange [0:*]")
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
        return f"![{title}]({os.path.basename(path)})\n"


# ---- Sections ----------------------------------------------------------------------------------------


class Report:
    def __init__(self, measured, setting, found, path):
        self.measured = measured
        self.setting = setting
        self.found = found
        self.plots = Plots(path)
        self.folder = os.path.dirname(os.path.abspath(path))
        self.losses = []
        self.wins = []

    def calls(self, question, scale, unit):
        """A table for each title: how many calls a second each peer makes, in which way."""
        tables, noted = {}, {}
        columns = ["peer", "way", unit[2], "gale, leased: times as many", "gale, strict", f"p50, {unit[0]}", f"p99, {unit[0]}"]
        has_server = question != "In one process"
        if has_server:
            columns.append("of the server's processor, µs a call")
        for (work, way), results in self.found[question].items():
            leased, strict = results.get("gale, leased"), results.get("gale, strict")
            for title, values in results.items():
                row = [title, way]
                if isinstance(values, str):
                    row += [f"cannot: {values}", *[""] * (len(columns) - 3)]
                else:
                    row += [wide(rates(values), scale)]
                    for mode, ours in (("gale, leased", leased), ("gale, strict", strict)):
                        ratio = None if title.startswith("gale") else ratios(ours, values)
                        row.append(times(ratio) if ratio else "")
                        if ratio and statistics.median(ratio) < 1:
                            noted.setdefault((title, mode), []).append((1 / statistics.median(ratio), f"{work}, {way}"))
                    row += [number(statistics.median(value[part] for value in values) * unit[1]) for part in ("p50", "p99")]
                    if has_server:
                        row.append(wide([value["us"] for value in values]))
                tables.setdefault(work, []).append(row)
        for (title, mode), works in noted.items():
            all_works = len(self.found[question])
            self.losses.append(f"{question}: {title} makes up to {max(works)[0]:.1f} × the calls of {mode}, in {len(works)} of "
                               f"{all_works} works" + (f": {'; '.join(work for _, work in works)}" if len(works) <= NAMED_MOST else ""))
        return "\n".join(f"**{work}**\n\n" + table(columns, rows) for work, rows in tables.items())

    def in_process(self):
        found = self.found.get("In one process")
        if not found:
            return ""
        columns = ["one hot key", f"{measure.SOME:,} keys by Zipf", f"{measure.MOST:,} keys"]
        groups = {}
        for title in dict.fromkeys(title for results in found.values() for title in results):
            groups[title] = []
            for column in columns:
                values = found.get((f"allow, {column}", "1 thread"), {}).get(title)
                groups[title].append(middle_rate(values) and 1e9 / middle_rate(values))
        return """## In one process

The cost of a decision in the process that makes the call, without any server. *gale, leased* answers from units that were leased beforehand
(1,000,000 at a time) from a store in the same process; *gale, strict* asks that store in each call, and is what the peers do. All look a
key up by its name, also the one hot key. Limits are token buckets, or windows where a peer has only these. `deny` asks for keys that are
used up. bottleneck starts each job by a timer, so that one call at a time takes a millisecond or more. p50 and p99 are of one call in
64, the reading of the clock included; of Node, of one in 16.

""" + self.plots.bars("process", "A call that is allowed, 1 thread", "ns a call (log)", groups, columns, log=True) + "\n" + self.calls(
            "In one process", 1e-3, ("ns", 1, "thousand calls a second"))

    def over(self, name):
        question = f"Over {name}"
        found = self.found.get(question)
        if not found:
            return ""
        columns = ["1 thread", "2 threads", "1 thread, 64 under way"]
        groups = {}
        for title in dict.fromkeys(title for results in found.values() for title in results):
            groups[title] = []
            for column in columns:
                values = found.get((f"allow, {measure.SOME:,} keys by Zipf", column), {}).get(title)
                groups[title].append(middle_rate(values))
        bare = {"Redis": "*bare hiredis* is the limit that one writes by hand: a script that counts and expires, one round trip a call.",
                "PostgreSQL": "*bare libpq* is the limit that one writes by hand: one prepared upsert a call. A step of *gale, "
                              "strict* is a function in PL/pgSQL that knows all rules, and the server prepares its expressions anew in "
                              "each transaction."}[name]
        return f"""## Over {name}

The cost of a decision for a process that shares its limits with others by a {name} on this machine, over TCP. {bare}
*gale, leased* leases units in batches of a size that it learns, so most of its calls reach no server; all others ask
the server in each call. A strict call goes by way of a thread of gale; with *poll_us 100* that thread and the one that waits poll
before they sleep ([strict calls]({self.link('docs/stores.md')}#strict-calls)).
The million keys are new to the
server, and so to gale's node. One thread has one call under way, or 64. With several under
way, each time of hiredis and libpq is of a batch of 64.
{"The server syncs nothing to disk." if name == "PostgreSQL" else "Nothing is kept on disk."}

""" + self.plots.bars(name.lower(), f"Calls over {name} that are allowed, {measure.SOME:,} keys", "calls a second (log)", groups, columns,
                      log=True) + "\n" + self.calls(question, 1e-3, ("µs", 1e-3, "thousand calls a second"))

    def http(self):
        found = self.found.get("HTTP servers")
        if not found:
            return ""
        parts, groups = [], {}
        for (work, _), results in found.items():
            rows, added = [], {}
            ours = next((values for title, values in results.items() if title.startswith("gale") and "no limit" not in title), None)
            for title, values in results.items():
                bare = results.get(title.split(",")[0] + ", no limit")
                cost = [value["us"] for value in values]
                own = ratio = None
                if bare and bare is not values:
                    own = [limited["us"] / without["us"] for limited, without in zip(values, bare)]
                if ours and ours is not values:
                    ratio = [theirs / value["us"] for theirs, value in zip(cost, ours)]
                if own:
                    added[title] = statistics.median(own)
                if ratio and "no limit" not in title and statistics.median(ratio) < 1:
                    self.losses.append(f"HTTP servers, {work}: a request to {title} takes {statistics.median(ratio):.2f} × the "
                                       "processor time of one to gale's server")
                rows.append([title, wide(rates(values), 1e-3), wide(cost), f"{wide(own)} ×" if own else "",
                             f"{wide(ratio)} ×" if ratio else "", number(statistics.median(value["p99"] for value in values) / 1000)])
                groups.setdefault(title, []).append(statistics.median(cost))
            of_gale = min((ratio for title, ratio in added.items() if title.startswith("gale")), default=0)
            self.losses += [f"HTTP servers, {work}: {title} adds {100 * ratio - 100:.0f} % to its server's request, and gale "
                            f"{100 * of_gale - 100:.0f} %" for title, ratio in added.items() if ratio < of_gale]
            parts.append(f"**{work}**\n\n" + table(["server", "thousand requests a second", "processor time of a request, µs",
                                                      "of itself without a limit", "of gale's", "p99, µs"], rows))
        counts = max(map(len, groups.values()))
        groups = {title.replace("gale's examples/", ""): (values + [None] * counts)[:counts] for title, values in groups.items()}
        plot = self.plots.bars("http", "Processor time of a request", "µs", {
            title: values[:3] for title, values in groups.items() if len(values) >= 3},
            ["one key", f"{measure.SOME:,} keys", f"{measure.MOST:,} keys"])
        return f"""## HTTP servers

Each is one process with one thread that serves, replies with a small page, and limits by the header `X-Api-Key`: nginx by `limit_req`,
HAProxy by a stick table of requests, gale's is [examples/httpd]({self.link('examples/httpd/httpd.h')}) with a store in
its memory. A client on
this machine has {measure.CONNECTIONS} connections with a request each under way. *Processor time* is of all threads of a server, the
kernel's on its behalf with it, and is what a busy machine disturbs least. gale's server is an example: it does less for a request than the
others do, so the column *of itself without a limit* is the one that compares the limits. The million keys
are new to a server, or come after a million others.

{plot}
""" + "\n".join(parts)

    def memory(self):
        found = self.found.get("Memory")
        if not found:
            return ""
        rows = []
        for group, entries in found.items():
            for title, values in entries.items():
                if isinstance(values, str):
                    rows.append([group, title, f"cannot: {values}", ""])
                    continue
                own = "" if group == "HTTP servers" else f"{max(0, values['client']):,.0f}"
                rows.append([group, title, own, "" if values["server"] is None else f"{values['server']:,.0f}"])
        return f"""## Bytes of a key

A process grows when each of {self.measured.keys:,} keys of 16 bytes is asked for once. The table shows that growth, divided by the number
of keys: of resident memory for programs in C, of the heap after a collection for Go, Java and Node. *server*: the memory that Redis
reports, the disk space of PostgreSQL's tables and indexes, and the resident memory of an HTTP server. A leased key is known to the node
and to its store; in one process both are counted.

""" + table(["where", "peer", "in the process that asks", "in the server"], rows)

    def fleet(self):
        found = self.found.get("Fleet")
        if not found:
            return ""
        rows = []
        for store, entries in found.items():
            for title, demands in entries.items():
                row = [store, title]
                failed = [run["failed"] for runs in demands.values() for run in runs]
                if any(failed):
                    row[1] += f" ({spread(failed, '{:,.0f}')} calls failed or got no answer)"
                for runs in demands.values():
                    above = [max(0, run["allowed"] - measure.FLEET_LIMIT) for run in runs]
                    below = [max(0, measure.FLEET_LIMIT - run["allowed"]) for run in runs]
                    row += [spread(above, "{:,.0f}"), spread(below, "{:,.0f}"), spread([run["operations"] for run in runs], "{:,.0f}")]
                    if statistics.median(below) > 0 and title.startswith("gale") and not any(run["failed"] for run in runs):
                        self.losses.append(f"a fleet over {store}: {title} leaves {spread(below, '{:,.0f}')} of "
                                           f"{measure.FLEET_LIMIT:,} units unused")
                rows.append(row)
        return f"""## A fleet over a shared store

{measure.FLEET} processes share one limit of {measure.FLEET_LIMIT:,} calls in a window, and ask for twice as many within
{measure.FLEET_SECONDS:g} s: all at the same rate (*even*), or one after the other (*moving*). *over* is what was admitted beyond the limit,
and *under* what was left of it when all had asked. A process that cannot keep up asks for less, so *asked* stands beside it.

""" + table(["store", "peer", "even: over", "under", "asked", "moving: over", "under", "asked"], rows) + """
Go's x/time/rate, Guava's RateLimiter and governor cannot: each limits one process. nginx and HAProxy cannot: each server counts alone
(HAProxy's peers copy their tables to each other, and do not add them up).
"""

    def in_flight(self):
        found = self.found.get("In flight")
        if not found:
            return ""
        rows, groups = [], {}
        for title, runs in found.items():
            rows.append([title, spread([run["peak"] for run in runs], "{:.0f}"), spread([run["above"] for run in runs], "{:.1f}"),
                         spread([run["mean"] for run in runs], "{:.1f}"), spread([run["rate"] for run in runs], "{:,.0f}"),
                         spread([run["refused"] for run in runs], "{:,.0f}"), wide([run["p99"] / 1e6 for run in runs])])
            groups[title.split(":")[0] if "1 proxy" in title or "process" in title else title.replace(":", ",")] = [
                max(run["peak"] for run in runs)]
        ours = [statistics.median(run["rate"] for run in runs) for title, runs in found.items() if title.startswith("gale")]
        for title, runs in found.items():
            rate = statistics.median(run["rate"] for run in runs)
            if ours and not title.startswith("gale") and "2 prox" not in title and rate > ours[0]:
                self.losses.append(f"in flight: {title} serves {rate / ours[0]:.2f} × as many calls a second as gale's guard")
        return f"""## In flight above a ceiling

A backend takes {measure.HOLD_MS} ms for a call, and at most {measure.CEILING} calls may be in flight there. {measure.FLEET} processes with
{measure.WORKERS} workers each call it as soon as they are let in; one that is refused tries again after a millisecond, and one of a peer
that keeps a queue waits. The backend counts. At best it serves {measure.CEILING * 1000 // measure.HOLD_MS:,} calls a second.
*above* is the part of the time with more than {measure.CEILING} in flight.

{self.plots.bars("flight", f"Most calls in flight, ceiling {measure.CEILING}", "calls", groups, ["most in flight"])}
""" + table(["peer", "most in flight", "above, %", "mean", "served a second", "refused", "p99 of being let in, ms"], rows) + """
redis-semaphore and bottleneck are in Node: a process has its workers in one thread. nginx refuses what exceeds its ceiling, and
HAProxy queues it; two proxies do not know of each other. p99 of a proxy includes the backend's time; of gale's guard it is of an
attempt. Go's x/time/rate, Guava, governor and
rate-limiter-flexible cannot: they limit calls in a time.
"""

    def outages(self):
        found = self.found.get("Outages")
        if not found:
            return ""
        parts = []
        for how, entries in found.items():
            rows = []
            for title, phases in entries.items():
                row = [title]
                for phase in ("during", "after"):
                    counts = phases[phase]
                    row += [f"{counts['a']} / {counts['d']} / {counts['f']} / {counts['p']}", f"{counts['longest']:,.0f}"]
                again = phases["allowed again"]
                rows.append([*row, "not within the test" if again is None else f"{max(0, again):,.0f}"])
            again = {title: phases["allowed again"] for title, phases in entries.items() if phases["allowed again"] is not None}
            best = min((title for title in again if not title.startswith("gale")), key=again.get, default=None)
            self.losses += [f"Redis {how}: {title} allows again {again[title]:.0f} ms after Redis is back, "
                            f"{best} after {again[best]:.0f} ms"
                            for title in again if best and title.startswith("gale") and again[title] > again[best] + AGAIN_MS]
            parts.append(f"**Redis {how}**\n\n" + table(
                ["peer", "during: allowed / denied / failed / no answer", "longest, ms", "after: the same", "longest, ms",
                 "allowed again after, ms"], rows))
        return f"""## What clients see when Redis stops

Each client makes {measure.OUTAGE_RATE} calls a second that its limit allows. After {measure.OUTAGE[0]:g} s Redis stops for
{measure.OUTAGE[1]:g} s; then {measure.OUTAGE[2]:g} s more pass. A call that blocks its thread holds up the next, so such a client makes
fewer. *failed*: the client gets an error, or from gale a denial that says that the store cannot be asked. *no
answer*: still none at the end.
gale's window is a second here: after a restart that lost all counts, it refuses until the window is over.

""" + "\n".join(parts)

    # ---- The whole -----------------------------------------------------------------------------------

    def link(self, path):
        """From the report to a file of this tree."""
        return os.path.relpath(os.path.join(TOP, path), self.folder)

    def machine(self):
        with open("/proc/cpuinfo") as text:
            model = next((line.split(":")[1].strip() for line in text if line.startswith("model name")), "a processor")
        with open("/etc/os-release") as text:
            system = next((line.split("=")[1].strip().strip('"') for line in text if line.startswith("PRETTY_NAME")), "Linux")
        return f"{os.cpu_count()} processors ({model}), {system}"

    def versions(self):
        found = {}
        for peer in (*peers.PROCESS, *peers.REDIS, *peers.POSTGRES, *peers.GUARD, peers.NGINX, peers.HAPROXY):
            if not peer.is_gale and peer.title not in self.measured.missing and (
                    not self.measured.chosen or peer.name in self.measured.chosen):
                version = peer.version(self.setting)
                if version:
                    found[peer.title.split(",")[0].removeprefix("bare ")] = version
        return ", ".join(f"{name} {version}" for name, version in found.items())

    def headline(self):
        """The least and most that gale makes of a peer's calls, for each peer."""
        rows = []
        for question in ("In one process", "Over Redis", "Over PostgreSQL"):
            of_peers = {}
            for results in self.found.get(question, {}).values():
                for title, values in results.items():
                    if title.startswith("gale") or isinstance(values, str):
                        continue
                    for mode in ("gale, leased", "gale, strict"):
                        ratio = ratios(results.get(mode), values)
                        if ratio:
                            of_peers.setdefault(title, {}).setdefault(mode, []).append(statistics.median(ratio))
            for title, modes in of_peers.items():
                cells = [f"{number(min(values))} to {number(max(values))} ×" for values in
                         (modes.get(mode, []) for mode in ("gale, leased", "gale, strict")) if values]
                rows.append([question, title, *cells, *[""] * (2 - len(cells))])
        if not rows:
            return ""
        return "How many calls gale makes in the time of one of a peer's: the least and the most of all works.\n\n" + table(
            ["where", "peer", "gale, leased", "gale, strict"], rows)

    def text(self, load):
        sections = [self.in_process(), self.over("Redis"), self.over("PostgreSQL"), self.http(), self.memory(), self.fleet(),
                    self.in_flight(), self.outages()]
        missing = [f"- {title} is not here: {why}" for title, why in self.measured.missing.items()]
        losses = [f"- {loss}" for loss in self.losses] or ["- nowhere, of what was measured"]
        return wrapped("\n".join([
            "# gale and its peers\n",
            f"Written by `make compare` ([bench/compare]({self.link('bench/compare')})) on {datetime.date.today()}, on "
            f"{self.machine()}, with a load of {load[0]:.1f} before and {load[1]:.1f} after. gale is the version of this tree; "
            f"{self.versions()}.\n",
            f"All peers of a table take turns, in an order by lot, {self.measured.runs} rounds of {self.measured.seconds:g} s each. "
            "A figure is the median, with the least and the most in brackets; a ratio is of two turns of one round. Where other "
            "work has the processors, ratios say more than figures.\n",
            self.headline(),
            "## Where gale loses\n", "\n".join(losses) + "\n",
            "\n".join(["## Not here\n", *missing]) + "\n" if missing else "",
            *sections]))
