#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""tally.py NAME TESTLOG.JSON TEXT -- one line per test: pass or fail, name, where to look.

Only "OK" is a pass: a test that was skipped has shown nothing.  No log, or an empty one,
is a failure of its own.
"""
import json
import sys

name, path, text = sys.argv[1:]
try:
    with open(path) as log:
        tests = [json.loads(line) for line in log]
except OSError:
    tests = []
for test in tests:
    passed = test["result"] == "OK"
    title = test["name"].split(" / ")[-1]
    why = "" if passed else f"{test['result']}, {text}"
    print("pass" if passed else "fail", f"{name} {title}", why, sep="\t")
if not tests:
    print("fail", f"{name} (no tests ran)", text, sep="\t")
