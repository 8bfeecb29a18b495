#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""compare.py -- gale and its peers on the same work, in turns, and a report of it in Markdown.

    bench/compare/compare.py                       what "make compare" runs; about a quarter of an hour
    bench/compare/compare.py --list                the peers, and what is missing here
    bench/compare/compare.py --peers gale,gale-strict,xtime --questions process
    bench/compare/compare.py --check               every driver that is here, for a moment; exit status 1 if one fails
    bench/compare/compare.py --smoke               the whole report, of a moment for each question and of few keys

peers/driver.h says how a driver is asked.  A peer that is not here is a line in the report."""
import argparse
import os
import sys
import tempfile

import measure
import peers
import report

TOP = report.TOP
QUESTIONS = {
    "process": ("In one process", "in_process"),
    "redis": ("Over Redis", "over_redis"),
    "postgres": ("Over PostgreSQL", "over_postgres"),
    "http": ("HTTP servers", "http"),
    "memory": ("Memory", "memory"),
    "fleet": ("Fleet", "fleet"),
    "flight": ("In flight", "in_flight"),
    "outage": ("Outages", "outages"),
}


def names(known, what):
    def parse(text):
        chosen = text.split(",")
        wrong = [name for name in chosen if name not in known]
        if wrong:
            raise argparse.ArgumentTypeError(f"no {what} is called {wrong[0]}; there are {', '.join(known)}")
        return chosen
    return parse


def program(text):
    name, _, path = text.partition("=")
    if name not in peers.all_names() or not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"{text}: say PEER=PROGRAM, with a program that is there")
    return name, os.path.abspath(path)


def positive(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value
    return parse


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build/bench"), help="what make bench builds (build/bench)")
    parser.add_argument("--list", action="store_true", help="the peers, and whether they are here")
    parser.add_argument("--check", action="store_true", help="run each driver that is here for a moment")
    parser.add_argument("--smoke", action="store_true", help="a report of a moment for each question: its figures say nothing")
    parser.add_argument("--peers", type=names(peers.all_names(), "peer"), default=[], help="only these, with commas")
    parser.add_argument("--questions", type=names(QUESTIONS, "question"), default=list(QUESTIONS), help=", ".join(QUESTIONS))
    parser.add_argument("--seconds", type=positive(float), default=0.5, help="of a turn (0.5)")
    parser.add_argument("--runs", type=positive(int), default=5, help="turns of each (5)")
    parser.add_argument("--keys", type=positive(int), default=100000, help="whose bytes are measured (100000)")
    parser.add_argument("--modules", default=os.path.join(TOP, "build/compare/node_modules"),
                        help="where Node's peers are (build/compare/node_modules)")
    parser.add_argument("--program", type=program, action="append", default=[], help="PEER=PROGRAM: a driver built by hand")
    parser.add_argument("--out", default=os.path.join(TOP, "build/compare/compare.md"), help="the report, and plots beside it")
    return parser.parse_args()


def list_peers(setting):
    groups = {"in one process": peers.PROCESS, "over Redis": peers.REDIS, "over PostgreSQL": peers.POSTGRES,
              "in flight": peers.GUARD, "HTTP servers": (peers.HTTP_SERVER, peers.NGINX, peers.HAPROXY)}
    for group, some in groups.items():
        for peer in some:
            why = peer.lacks(setting)
            print(f"{group:16} {peer.name:12} {peer.title:28} {'not here: ' + why if why else 'here'}")


def expect(peer, word, result):
    if result.get("failed") or not result.get(word):
        raise SystemExit(f"{peer.title}: {word} is wrong in {result}")
    print(f"{peer.title}: {word} {result[word]:.0f}")


def check(measured, setting):
    """Each driver that is here allows and denies; those that share a store keep one limit."""
    for some, store in ((peers.PROCESS, None), (peers.REDIS, measured.redis), (peers.POSTGRES, measured.postgres)):
        some = measured.here(some)
        if not some:
            continue
        at = store() if store else None
        drivers = [(peer, peer.open(setting, at.address if at else "")) for peer in some]
        for verdict, word in (("allow", "allowed"), ("deny", "denied")):
            for _, driver in drivers:
                driver.send(work=verdict, space=f"check-{verdict}", keys=1, seconds=0.05)
            for peer, driver in drivers:
                expect(peer, word, driver.hear())
        for _, driver in drivers:
            driver.close()
        if at:
            at.server.stop()
    for limits, verdict, word in (((0, 1000000000), "allow", "allowed"), ((1,), "deny", "denied")):
        entries, opened = measured.http_entries(limits)
        for entry in entries:
            expect(entry, word, entry.turn(0.05, work=verdict, space="check", depth=4))
            entry.driver.close()
        for server in opened:
            server.stop()


def main():
    said = options()
    if not os.path.exists(os.path.join(said.build, "bench/compare/compare_gale")):
        raise SystemExit(f"{said.build} has no drivers: make bench or make compare builds them")
    with tempfile.TemporaryDirectory(prefix="gale-compare-") as scratch:
        setting = peers.Setting(os.path.abspath(said.build), os.path.abspath(said.modules), dict(said.program), scratch)
        if said.list:
            list_peers(setting)
            return
        if said.smoke:
            measure.only_for_a_moment()
            said.seconds, said.runs, said.keys = 0.02, 1, 1000
        measured = measure.Measure(setting, said.peers, said.seconds, said.runs, said.keys)
        if said.check:
            check(measured, setting)
            return
        load = os.getloadavg()[0]
        found = {QUESTIONS[name][0]: getattr(measured, QUESTIONS[name][1])() for name in said.questions}
        os.makedirs(os.path.dirname(os.path.abspath(said.out)), exist_ok=True)
        text = report.Report(measured, setting, found, said.out).text((load, os.getloadavg()[0]))
        with open(said.out, "w") as file:
            file.write(text)
        print(f"the report is {os.path.relpath(said.out)}")


sys.exit(main())
