#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""tally.py NAME LOG [STANDSTILLS] -- one line per test: pass or fail, name, where to look.

LOG.json is what meson wrote down, and LOG.txt is where to look.  Only "OK" is a pass: a test
that was skipped has shown nothing.  No log, or an empty one, is a failure of its own.

A test that failed while the machine stood still, as standstill.py wrote down in STANDSTILLS, has
shown nothing either: its line is "again" and its title, and who calls runs it once more.
"""
import json
import sys


def read_tests(path):
    try:
        with open(path) as log:
            return [json.loads(line) for line in log]
    except OSError:
        return []


def read_standstills(path):
    with open(path) as log:
        return [tuple(map(float, line.split())) for line in log]


def was_held_up(test, standstills):
    begin = test["starttime"]
    end = begin + test["duration"]
    return any(since < end and until > begin for since, until in standstills)


def main(name, log, standstills):
    tests = read_tests(f"{log}.json")
    for test in tests:
        title = test["name"].split(" / ")[-1]
        if test["result"] == "OK":
            print("pass", f"{name} {title}", "", sep="\t")
        elif was_held_up(test, standstills):
            print("again", title, sep="\t")
        else:
            why = f"{test['result']}, {log}.txt"
            print("fail", f"{name} {title}", why, sep="\t")
    if not tests:
        print("fail", f"{name} (no tests ran)", f"{log}.txt", sep="\t")


main(*sys.argv[1:3], read_standstills(sys.argv[3]) if len(sys.argv) > 3 else [])
