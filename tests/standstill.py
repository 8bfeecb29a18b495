#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""standstill.py FILE PID -- writes down when a processor let nobody go on.

A line for each time: its begin and its end, in seconds since 1970.  A process per processor naps
there, and looks at how long that took.  They end when process PID does.
"""
import os
import select
import sys
import time

NAP_MS = 5
LONG_S = 0.3  # a node has 0.1 s for an answer, and a server 1 s


def watch(processor, ended, log):
    os.sched_setaffinity(0, {processor})
    over = False
    while not over:
        before = time.monotonic()
        over = ended.poll(NAP_MS)
        took = time.monotonic() - before
        if took > LONG_S:
            now = time.time()
            print(f"{now - took:.3f} {now:.3f}", file=log, flush=True)


def main(path, pid):
    ended = select.poll()
    ended.register(os.pidfd_open(pid), select.POLLIN)
    processors = sorted(os.sched_getaffinity(0))
    with open(path, "a") as log:
        for processor in processors[1:]:
            if os.fork() == 0:
                watch(processor, ended, log)
                os._exit(0)
        watch(processors[0], ended, log)


main(sys.argv[1], int(sys.argv[2]))
