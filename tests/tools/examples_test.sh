#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# examples_test.sh FIRST PACED_CLIENT EVENT_LOOP HTTP_SERVER TWO_WINDOWS TENANTS STREAM [JEMALLOC] --
# they do what they say.
set -u
first=$1 paced_client=$2 event_loop=$3 http_server=$4 two_windows=$5 tenants=$6 stream=$7 jemalloc=${8-}
bad=0

fail() {
	echo "FAIL: $*"
	bad=1
}

# Three of five may, or more if the second turns in between.
said=$("$first") || fail "first exits with $?"
case $(tr '\n' ' ' <<<"$said") in
'yes yes yes '*) ;;
*) fail "first says $said" ;;
esac
[ "$(wc -l <<<"$said")" = 5 ] || fail "first says $said"

# Eight calls at ten a second, three of which need not wait.
begun=$(date +%s%N)
said=$("$paced_client") || fail "paced_client exits with $?"
took_ms=$((($(date +%s%N) - begun) / 1000000))
[ "$(grep -c 'sent after' <<<"$said")" = 8 ] || fail "paced_client says $said"
[ "$took_ms" -ge 450 ] || fail "paced_client takes only $took_ms ms"

# Three a second and five a minute: five, or up to ten if the minute turns in between.
said=$("$two_windows") || fail "two_windows exits with $?"
case $(grep -c yes <<<"$said") in
[5-9] | 10) ;;
*) fail "two_windows says $said" ;;
esac
case $(tr '\n' ' ' <<<"$said") in
'yes, 2 left '*'no, the store decided by the rule ') ;;
*) fail "two_windows says $said" ;;
esac

# A machine that stands still may cost the first window, but not all of the second: it is 400, 200
# and 400 if nobody had to wait for the processor for long.
said=$("$tenants") || fail "tenants exits with $?"
grep -qE '^big (399|40[01]), mid (199|20[01]), small (399|40[01])$' <<<"$said" || fail "tenants says $said"
grep -qE '^big [01], mid 46[5-7], small 53[2-4]$' <<<"$said" || fail "tenants says $said"

# The last answer is stopped where the budget is, unless a day begins in between.
said=$("$stream") || fail "stream exits with $?"
grep -qx '130 of 130 tokens' <<<"$said" && grep -qx '310 of 310 tokens' <<<"$said" &&
	grep -qE '^(500|900) of 900 tokens$' <<<"$said" || fail "stream says $said"

# What was taken is counted, and all of it has come back.
if [ -n "$jemalloc" ]; then
	said=$("$jemalloc") || fail "jemalloc exits with $?"
	grep -qE '^with 10000 users: [1-9][0-9]{5,} bytes$' <<<"$said" &&
		grep -qx 'at the end: 0 bytes' <<<"$said" || fail "jemalloc says $said"
fi

# Five at once, then no; another name has its own five.
python3 - "$event_loop" <<'END' || fail "event_loop"
import socket
import subprocess
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
server = subprocess.Popen([sys.argv[1], str(port)], stdout=subprocess.PIPE)
try:
    assert b"listening" in server.stdout.readline()
    asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asker.settimeout(10)

    def ask(name):
        asker.sendto(name, ("127.0.0.1", port))
        return asker.recv(64).decode().split()

    answers = [ask(b"alice") for _ in range(50)]
    assert answers[:5] == [["yes"]] * 5, answers
    refused = [a for a in answers if a[0] == "no"]
    assert refused and all(0 < int(a[1]) <= 1001 for a in refused), answers
    assert ask(b"bob\0\xff") == ["yes"]
    assert server.poll() is None
finally:
    server.kill()
    server.wait()
END

# Three requests for each client, then 429 until the day is over; in order, also when they
# come all at once and each has to wait for its answer; whatever is sent, others go on.
python3 - "$http_server" <<'END' || fail "http_server"
import json
import signal
import socket
import subprocess
import sys
import time

DAY = 86400
left = DAY - time.time() % DAY
if left < 60:
    time.sleep(left + 1)  # the window would turn meanwhile

for wrong in (["--bogus"], ["80x"], ["-1"], ["0", "", "1"], ["65536"]):
    done = subprocess.run([sys.argv[1], *wrong], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "usage: " in done.stderr and not done.stdout, done
done = subprocess.run([sys.argv[1], "--help"], capture_output=True, text=True, timeout=30)
assert done.returncode == 0 and done.stdout.startswith("usage: http_server"), done

# A client that takes no reply does not keep a server that is told to end.
stuck = subprocess.Popen([sys.argv[1], "0", "0"], stdout=subprocess.PIPE, text=True)
greedy = socket.create_connection(("127.0.0.1", int(stuck.stdout.readline().split()[-1])), timeout=1)
try:
    while True:
        greedy.sendall(b"GET /health HTTP/1.1\r\n\r\n" * 10000)
except TimeoutError:
    stuck.send_signal(signal.SIGTERM)

server = subprocess.Popen([sys.argv[1], "--headers", "--legacy", "0", "3", str(DAY)],
                          stdout=subprocess.PIPE, text=True)
port = int(server.stdout.readline().split()[-1])


def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def page(key=None):
    header = f"x-api-KEY: \t{key} \r\n" if key else ""
    return f"GET / HTTP/1.1\r\nHost: here\r\n{header}\r\n".encode()


def hear(connection, count):
    """So many replies, and not a byte more: (status, headers, body)."""
    replies, rest = [], b""
    while len(replies) < count:
        head, mark, body = rest.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = dict(line.split(": ") for line in lines[1:]) if mark else {}
        if mark and len(body) >= int(headers["Content-Length"]):
            replies.append((int(lines[0].split()[1]), headers, body))
            rest = body[int(headers["Content-Length"]):]
            continue
        more = connection.recv(65536)
        assert more, replies
        rest += more
    assert not rest, rest
    return replies


def say(sent):
    with connect() as connection:
        connection.sendall(sent)
        return hear(connection, 1)[0]


def status(sent):
    return say(sent)[0]


try:
    replies = [say(page("alice")) for _ in range(6)]
    assert [r[0] for r in replies] == [200] * 3 + [429] * 3, replies
    assert all(0 < int(r[1]["Retry-After"]) <= DAY for r in replies[3:]), replies
    assert not any("Retry-After" in r[1] for r in replies[:3]), replies
    assert {r[1]["RateLimit-Policy"] for r in replies} == {f'"requests";q=3;w={DAY}'}, replies
    remaining = [r[1]["RateLimit"].split(";")[:2] for r in replies]
    assert remaining == [['"requests"', f"r={n}"] for n in (2, 1, 0, 0, 0, 0)], replies
    assert all(0 < int(r[1]["RateLimit"].split(";t=")[1]) <= DAY for r in replies), replies
    assert [r[1]["X-RateLimit-Remaining"] for r in replies] == ["2", "1", "0", "0", "0", "0"], replies
    assert all(r[1]["X-RateLimit-Limit"] == "3" for r in replies), replies
    assert [r[1]["Content-Type"] for r in replies] == ["text/plain"] * 3 + ["application/problem+json"] * 3
    problem = json.loads(replies[5][2])
    assert problem["type"].endswith("#quota-exceeded") and problem["status"] == 429, problem
    assert problem["violated-policies"] == ["requests"], problem
    assert [status(page("bob")), status(page())] == [200, 200], "other clients"

    # Of 300 clients that nobody knows, two pages each; then two more.
    sent = b"".join(page(i) + b"GET /health HTTP/1.1\r\n\r\n" for i in range(1, 301))
    with connect() as connection:
        connection.sendall(sent)
        connection.sendall(sent)
        replies = hear(connection, 1200)
        assert {r[0] for r in replies} == {200}, replies
        assert {r[2][:6] for r in replies[::2]} == {b"hello\n"}, replies
        assert {r[2][:3] for r in replies[1::2]} == {b"ok\n"}, replies
        connection.sendall(sent)
        connection.sendall(sent)
        replies = hear(connection, 1200)
        assert {r[0] for r in replies[:600:2]} == {200}, replies
        assert {r[0] for r in replies[600::2]} == {429}, replies

    # A byte at a time; a client that says no more; clients that are gone.
    with connect() as connection:
        for byte in page("dave"):
            connection.sendall(bytes([byte]))
        assert hear(connection, 1)[0][0] == 200
    with connect() as connection:
        connection.sendall(page("erin") + page("frank"))
        connection.shutdown(socket.SHUT_WR)
        assert [r[0] for r in hear(connection, 2)] == [200, 200]
        assert connection.recv(1) == b""
    for i in range(200):
        with connect() as connection:
            connection.sendall(page(f"gone {i}"))

    # What was counted is what was told; pages of it come whole, however many are wanted.
    metrics = b"GET /metrics HTTP/1.1\r\n\r\n"
    with connect() as connection:
        connection.sendall(20 * metrics)
        replies = hear(connection, 20)
    assert all(r[0] == 200 and r[1]["Content-Type"] == "text/plain; version=0.0.4" for r in replies)
    asks = {}
    for line in replies[-1][2].decode().splitlines():
        if line.startswith('gale_requests_total{limiter="keys"'):
            result = line.split('result="')[1].split('"')[0]
            asks[result] = asks.get(result, 0) + int(line.split()[-1])
    assert asks["allowed"] >= 900 and asks["denied"] >= 303, asks

    assert status(b"GET /none HTTP/1.1\r\n\r\n") == 404
    assert status(b"PUT / HTTP/1.1\r\n\r\n") == 405
    assert status(b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\n") == 413
    assert status(b"GET / HTTP/1.0\r\n\r\n") == 400
    assert status(b"GET /\r\n\r\n") == 400
    assert status(page("x" * 257)) == 400
    assert status(page("y" * 256)) == 200
    assert status(b"GET / HTTP/1.1\r\nX: ".ljust(8192, b"x")) == 431
    with connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n")
        assert hear(connection, 1)[0][0] == 200
        assert connection.recv(1) == b""
    assert server.poll() is None

    # It drains: who was there before the signal has a reply to all that was sent.
    with connect() as idle, connect() as many:
        server.send_signal(signal.SIGSTOP)
        with connect() as late:
            late.sendall(page("late") * 2)
            many.sendall(sent)
            server.send_signal(signal.SIGTERM)
            server.send_signal(signal.SIGCONT)
            assert [r[0] for r in hear(late, 2)] == [200, 200]
            assert len(hear(many, 600)) == 600
            assert [c.recv(1) for c in (idle, late, many)] == [b""] * 3
    assert server.wait(30) == 0
    assert stuck.wait(30) == 0
finally:
    for process in (server, stuck):
        process.kill()
        process.wait()
END

exit $bad
