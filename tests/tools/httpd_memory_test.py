#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""httpd_memory_test.py HTTPD ALLOCATIONS -- a request to examples/httpd allocates nothing: neither gale nor the server.

ALLOCATIONS is tests/support/allocations.c, preloaded into the server.  Clients that are known, on a connection that is
open, make requests that are allowed, and others that are denied.  What is new does allocate, so the count is seen to
rise."""
import os
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "balancer"))
from scene import Balancer, connect  # noqa: E402

HTTPD, ALLOCATIONS = map(os.path.abspath, sys.argv[1:])
CLIENTS = 50
ROUNDS = 40


def requests(first):
    return b"".join(f"GET / HTTP/1.1\r\nX-Api-Key: client-{first + i:06d}\r\n\r\n".encode() for i in range(CLIENTS))


def statuses(connection, count):
    """Of so many replies, in order: each begins with its status line."""
    found, rest = [], b""
    while len(found) < count:
        head, mark, body = rest.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0]) if mark else 0
        if mark and len(body) >= length:
            found.append(int(head.split()[1]))
            rest = body[length:]
            continue
        more = connection.recv(65536)
        assert more, "the server hung up"
        rest += more
    return found


def rounds(connection, count):
    for _ in range(count):
        connection.sendall(requests(0))
        yield from statuses(connection, CLIENTS)


def allocated(file):
    return struct.unpack("=Q", os.pread(file.fileno(), 8, 0))[0]


def requests_allocate_nothing(limit, status):
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(8))
        file.flush()
        os.environ.update(GALE_TEST_ALLOCATIONS=file.name, LD_PRELOAD=ALLOCATIONS)  # of what begins from here on
        with Balancer(HTTPD, "--threads", "1", "--limit", limit) as server, connect(server.port) as connection:
            began = allocated(file)
            assert began > 0, "nothing is counted"
            assert set(rounds(connection, ROUNDS // 4)) <= {200, status}
            before = allocated(file)
            assert before > began, "new clients are known without memory"
            told = set(rounds(connection, ROUNDS))
            assert told == {status}, told
            after = allocated(file)
            print(f"{ROUNDS * CLIENTS} requests with {status}: {after - before} allocations, {before} before")
            assert after == before, f"{after - before} allocations in {ROUNDS * CLIENTS} requests"


requests_allocate_nothing("1000000/d", 200)
requests_allocate_nothing("2/d", 429)
