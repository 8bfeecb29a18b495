#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""standstill.py FILE -- writes down when a processor let nobody go on.

A line for each time: its begin and its end, in seconds since 1970.  A process per processor naps
there, and looks at how long that took.  They end with whoever started this.
"""
import os
import sys
import time

NAP_S = 0.005
LONG_S = 0.3  # a node has 0.1 s for an answer, and a server 1 s


def watch(processor, log):
    parent = os.getppid()
    os.sched_setaffinity(0, {processor})
    while os.getppid() == parent:
        before = time.monotonic()
        time.sleep(NAP_S)
        took = time.monotonic() - before
        if took > LONG_S:
            now = time.time()
            print(f"{now - took:.3f} {now:.3f}", file=log, flush=True)


def main(path):
    processors = sorted(os.sched_getaffinity(0))
    with open(path, "a") as log:
        for processor in processors[1:]:
            if os.fork() == 0:
                watch(processor, log)
                os._exit(0)
        watch(processors[0], log)


main(sys.argv[1])
