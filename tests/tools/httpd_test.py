#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""httpd_test.py HTTPD [TEST...] -- examples/httpd: limits, policies that change, clients that misbehave, the end."""
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "balancer"))
from scene import (PATIENCE_S, Balancer, Process, connect, get, hear, hearing, is_for_prometheus,  # noqa: E402
                   until, without_rights)

HTTPD = sys.argv[1]
DAY = 86400


class Httpd(Balancer):  # it begins and ends in the same way
    def __init__(self, *arguments):
        super().__init__(HTTPD, *arguments)

    def connect(self):
        return connect(self.port)

    def say(self, sent):
        with self.connect() as connection:
            connection.sendall(sent)
            return hear_many(connection, 1)[0]

    def status(self, sent):
        return self.say(sent)[0]


def page(key=None):
    header = f"x-api-KEY: \t{key} \r\n" if key else ""
    return f"GET / HTTP/1.1\r\nHost: here\r\n{header}\r\n".encode()


def hear_many(connection, count):
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


def a_day_that_does_not_end():
    left = DAY - time.time() % DAY
    if left < 60:
        time.sleep(left + 1)


def wrong_arguments_are_sentences():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for arguments, sentence in (
                (["--bogus"], "usage: httpd"),
                (["80"], "80 is no flag"),
                (["--port", "80x"], "--port 80x: a number from 0 to 65535 is needed"),
                (["--port", "65536"], "--port 65536: a number"),
                (["--limit", "5"], "N/s, N/m, N/h or N/d is needed"),
                (["--limit", "-1/s"], "--limit -1/s: a number"),
                (["--threads", "0"], "--threads 0: a number from 1"),
                (["--address", "here"], "an IPv4 address is needed"),
                (["--policy", "/nowhere.yaml"], "/nowhere.yaml: there is no such file: look for a typing error"),
                (["--policy", "/"], "/: it is a directory: name the file in it"),
                (["--address", "192.0.2.1"], "Cannot assign requested address; --port and --address choose another"),
                (["--port", str(taken.getsockname()[1])], "Address already in use; --port and --address choose another")):
            done = subprocess.run([HTTPD, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
            assert done.returncode == 2 and sentence in done.stderr and not done.stdout, (arguments, done)
    done = subprocess.run([HTTPD, "--help"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and done.stdout.startswith("usage: httpd"), done


def a_policy_that_is_broken_is_no_beginning():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "policy.yaml")
        for text, sentence in (
                (policy(3)[:-4], 'the last line must be "..."'),
                (policy(3)[:60], "policy.yaml:"),
                (policy("many"), '"many per day" is no rate: write units and a time'),
                ("", "the policy is empty: write what it defines"),
                ("\0", "write the policy as text in UTF-8")):
            path.write_text(text)
            done = subprocess.run([HTTPD, "--policy", str(path)], capture_output=True, text=True, timeout=PATIENCE_S)
            assert done.returncode == 2 and sentence in done.stderr and not done.stdout, (text, done)


def who_has_no_right_is_told():
    with tempfile.NamedTemporaryFile("w") as file:
        pathlib.Path(file.name).write_text(policy(3))
        pathlib.Path(file.name).chmod(0)
        for arguments, sentence in (
                (["--address", "0.0.0.0", "--port", "80"],
                 "port 80 of 0.0.0.0: Permission denied; --port and --address choose another"),
                (["--policy", file.name], f"{file.name}: this process may not read it: give its user the right to")):
            done = without_rights(HTTPD, *arguments)
            assert done.returncode == 2 and sentence in done.stderr and not done.stdout, done


def the_page_and_the_readme_print_commands_that_run():
    root = pathlib.Path(__file__).parents[2]
    for page, headers in (("docs/http.md", True), ("README.md", False)):
        flags = re.search(r"build/release/examples/httpd (--[a-z0-9/ -]*[a-z0-9])", root.joinpath(page).read_text())[1]
        with Httpd(*flags.split()) as server:
            status, told, _ = server.say(page_of_alice(root) if headers else b"GET / HTTP/1.1\r\n\r\n")
            assert status == 200 and ("RateLimit" in told) == headers, (page, status, told)


def page_of_alice(root):
    """What curl sends, as the page has it sent."""
    header = re.search(r"`curl -i -H '(.*?)' http://127.0.0.1:8080/`", root.joinpath("docs/http.md").read_text())[1]
    return f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n\r\n".encode()


def a_client_has_its_limit_and_its_headers():
    a_day_that_does_not_end()
    with Httpd("--headers", "--legacy", "--limit", "3/d") as server:
        replies = [server.say(page("alice")) for _ in range(6)]
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
        assert [server.status(page("bob")), server.status(page())] == [200, 200], "other clients"


def who_has_no_key_has_the_limit_of_an_address():
    a_day_that_does_not_end()
    with Httpd("--limit", "3/d") as server:
        assert [server.status(page()) for _ in range(5)] == [200] * 3 + [429] * 2
        assert [get(server.port, source="127.0.0.2")[0] for _ in range(4)] == [200] * 3 + [429]
        assert server.status(page("alice")) == 200, "a key has a limit of its own"


def a_server_whose_store_is_not_there_says_503():
    with socket.socket() as nobody, tempfile.TemporaryDirectory() as folder:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        path = pathlib.Path(folder, "policy.yaml")
        path.write_text(policy(3).replace("memory:", f"redis://127.0.0.1:{nobody.getsockname()[1]}"))
        with hearing(folder) as said, Httpd("--policy", str(path)) as server:
            status, headers, body = server.say(page("alice"))
            until(lambda: "Connection refused; gale doctor URL says what to do" in said(), "the reason")
            assert status == 503 and headers["Content-Type"] == "application/problem+json", (status, headers)
            assert json.loads(body)["status"] == 503, body
            assert server.status(b"GET /health HTTP/1.1\r\n\r\n") == 200


def many_clients_at_once_have_their_limit_in_order():
    """Of 300 clients that nobody knows, two pages each; then two more: three threads, one limit."""
    a_day_that_does_not_end()
    with Httpd("--threads", "3", "--limit", "3/d") as server:
        sent = b"".join(page(i) + b"GET /health HTTP/1.1\r\n\r\n" for i in range(1, 301))
        with server.connect() as connection:
            connection.sendall(sent)
            connection.sendall(sent)
            replies = hear_many(connection, 1200)
        assert {r[0] for r in replies} == {200}, replies
        assert {r[2][:6] for r in replies[::2]} == {b"hello\n"}, replies
        assert {r[2][:3] for r in replies[1::2]} == {b"ok\n"}, replies
        with server.connect() as connection:
            connection.sendall(sent)
            connection.sendall(sent)
            replies = hear_many(connection, 1200)
        assert {r[0] for r in replies[:600:2]} == {200}, replies
        assert {r[0] for r in replies[600::2]} == {429}, replies
        # By whichever thread, a client's limit is one.
        assert [server.status(page("many")) for _ in range(12)] == [200] * 3 + [429] * 9
        # Counted is what was told; pages of it come whole, however many are wanted.
        with server.connect() as connection:
            connection.sendall(20 * b"GET /metrics HTTP/1.1\r\n\r\n")
            replies = hear_many(connection, 20)
        assert all(r[0] == 200 and r[1]["Content-Type"] == "text/plain; version=0.0.4" for r in replies)
        asks = {}
        for line in replies[-1][2].decode().splitlines():
            if line.startswith('gale_requests_total{limiter="keys"'):
                result = line.split('result="')[1].split('"')[0]
                asks[result] = asks.get(result, 0) + int(line.split()[-1])
        assert asks["allowed"] == 903 and asks["denied"] == 309, asks
        is_for_prometheus(replies[-1][2])


def who_is_refused_most_is_told_to_the_operator():
    a_day_that_does_not_end()
    with tempfile.NamedTemporaryFile("w+") as said:
        server = Process.__new__(Httpd)
        server.process = subprocess.Popen([HTTPD, "--port", "0", "--threads", "2", "--limit", "2/d"],
                                          stdout=subprocess.PIPE, stderr=said, text=True)
        server.port = server.listens()

        def told():
            return [json.loads(line) for line in pathlib.Path(said.name).read_text().splitlines()]

        with server:
            statuses = {key: [server.status(page(key)) for _ in range(times)]
                        for key, times in (("alice", 4), ("ma\"llory", 12), ("bob", 2))}
            refused = {key: some.count(429) for key, some in statuses.items()}
            assert refused == {"alice": 2, "ma\"llory": 10, "bob": 0}, statuses
            server.process.send_signal(signal.SIGUSR1)
            until(lambda: len(told()) == 2, "two lines")
            assert [(row["limiter"], row["key"], row["refused"]) for row in told()] == [
                ("keys", "ma\"llory", 10), ("keys", "alice", 2)], told()
            metrics = server.say(b"GET /metrics HTTP/1.1\r\n\r\n")[2]
            assert b"alice" not in metrics and b"llory" not in metrics, "no label per key"
    with Httpd("--limit", "0/s") as server:  # without limits nothing is told
        server.process.send_signal(signal.SIGUSR1)
        assert server.status(page()) == 200


def what_is_malformed_is_refused():
    with Httpd("--limit", "0/s") as server:
        for sent, status in (
                (b"GET /none HTTP/1.1\r\n\r\n", 404),
                (b"PUT / HTTP/1.1\r\n\r\n", 405),
                (b"CONNECT here:80 HTTP/1.1\r\n\r\n", 405),
                (b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 413),
                (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 413),
                (b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 200),
                (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
                (b"GET / HTTP/1.0\r\n\r\n", 200),
                (b"GET / HTTP/2.0\r\n\r\n", 505),
                (b"GET /\r\n\r\n", 505),
                (b"\0\0\0\0", 400),
                (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
                (b"GET / HTTP/1.1\r\nX-Api-Key : alice\r\n\r\n", 400),
                (b"PUT / HTTP/1.1\r\nContent-Length : 3\r\n\r\nabc", 400),
                (page("x" * 257), 400),
                (page("y" * 256), 200),
                (b"GET / HTTP/1.1\r\nX: ".ljust(8192, b"x"), 431),
                (b"GET / HTTP/1.1\r\nX: ".ljust(1 << 20, b"x"), 431)):
            assert server.status(sent) == status, (sent[:60], status)
        # The head may begin anywhere in what is read at once.
        with server.connect() as connection:
            whole = b"GET / HTTP/1.1\r\nX: ".ljust(5000, b"x") + b"\r\n\r\n"
            connection.sendall(20 * whole)
            assert [r[0] for r in hear_many(connection, 20)] == [200] * 20


def odd_clients_are_served_or_left():
    with Httpd("--patience", "500") as server:
        with server.connect() as connection:
            for byte in page("dave"):
                connection.sendall(bytes([byte]))
            assert hear_many(connection, 1)[0][0] == 200
        with server.connect() as connection:
            connection.sendall(page("erin") + page("frank"))
            connection.shutdown(socket.SHUT_WR)
            assert [r[0] for r in hear_many(connection, 2)] == [200, 200]
            assert connection.recv(1) == b""
        with server.connect() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n")
            assert hear(connection)[:2][0] == 200
            assert connection.recv(1) == b""
        for i in range(200):
            with server.connect() as connection:
                connection.sendall(page(f"gone {i}"))
        # One that says a half and waits, and one that takes nothing: both are left, and others go on.
        with server.connect() as slow, server.connect() as greedy:
            slow.sendall(b"GET / HT")
            greedy.settimeout(1)
            try:
                while True:
                    greedy.sendall(b"GET /health HTTP/1.1\r\n\r\n" * 10000)
            except (TimeoutError, ConnectionError):
                pass
            assert server.status(page("grace")) == 200
            assert slow.recv(1) == b""
        assert server.process.poll() is None


def policy(per_day):
    names = "".join(f"  {name}:\n    store: here\n    rule: fixed_window\n    limit: {per_day} per day\n"
                    for name in ("keys", "addresses"))
    return f'stores:\n  here:\n    url: "memory:"\nlimiters:\n{names}...\n'


def a_policy_changes_while_it_serves():
    a_day_that_does_not_end()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "policy.yaml")
        path.write_text(policy(3))
        with open(pathlib.Path(folder, "said"), "w+", encoding="utf-8") as said:
            server = Process.__new__(Httpd)
            server.process = subprocess.Popen([HTTPD, "--port", "0", "--threads", "2", "--policy", str(path)],
                                              stdout=subprocess.PIPE, stderr=said, text=True)
            server.port = server.listens()

            def reload(text, sentence, times=1):
                path.write_text(text)
                server.process.send_signal(signal.SIGHUP)
                until(lambda: pathlib.Path(said.name).read_text().count(sentence) == times, sentence)

            with server:
                assert [server.status(page("alice")) for _ in range(4)] == [200] * 3 + [429]
                reload(policy(5), "the new policy is in force")
                # Spent stays spent: two of five are left.
                assert until(lambda: server.status(page("alice")) == 200, "the new limit")
                assert [server.status(page("alice")) for _ in range(2)] == [200, 429]
                # A file that is half written, or wrong, changes nothing.
                reload(policy(9)[:60], "the old policy stays")
                reload(policy("many"), "the old policy stays", times=2)
                path.rename(path.with_suffix(".old"))
                server.process.send_signal(signal.SIGHUP)
                until(lambda: "the old policy stays: " + str(path) + ": there is no such file: look for" in
                      pathlib.Path(said.name).read_text(), "it is not there")
                assert server.status(page("alice")) == 429
                assert [server.status(page("bob")) for _ in range(6)] == [200] * 5 + [429]
        path.write_text(policy(3).replace("addresses", "others"))
        done = subprocess.run([HTTPD, "--policy", str(path)], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2 and 'must define the limiters "keys" and "addresses"' in done.stderr, done
    with Httpd() as server:  # without a policy the signal changes nothing
        server.process.send_signal(signal.SIGHUP)
        assert server.status(page()) == 200


def a_server_that_is_told_to_end_answers_what_has_arrived():
    many_pages = b"".join(page(i) for i in range(300))
    with Httpd("--threads", "2") as server, server.connect() as idle, server.connect() as many:
        assert get(server.port, "/health")[0] == 200
        server.process.send_signal(signal.SIGSTOP)
        with server.connect() as late:
            late.sendall(page("late") * 2)
            many.sendall(many_pages)
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGCONT)
            assert [r[0] for r in hear_many(late, 2)] == [200, 200]
            assert len(hear_many(many, 300)) == 300
            assert [c.recv(1) for c in (idle, late, many)] == [b""] * 3
        assert server.process.wait(PATIENCE_S) == 0


def a_second_signal_ends_it_at_once():
    server = Httpd("--limit", "0/s")
    with connect(server.port) as busy:
        busy.sendall(b"GET / HT")
        # Both are there when it goes on: the first drains, and the second does not wait for that.
        for told in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
            server.process.send_signal(told)
        assert server.process.wait(PATIENCE_S) == -signal.SIGTERM, server.process.returncode
    server.process.stdout.close()


TESTS = (wrong_arguments_are_sentences, a_policy_that_is_broken_is_no_beginning, who_has_no_right_is_told,
         the_page_and_the_readme_print_commands_that_run,
         a_client_has_its_limit_and_its_headers,
         who_has_no_key_has_the_limit_of_an_address, a_server_whose_store_is_not_there_says_503,
         many_clients_at_once_have_their_limit_in_order, who_is_refused_most_is_told_to_the_operator,
         what_is_malformed_is_refused,
         odd_clients_are_served_or_left, a_policy_changes_while_it_serves,
         a_server_that_is_told_to_end_answers_what_has_arrived, a_second_signal_ends_it_at_once)

for test in TESTS:
    if len(sys.argv) == 2 or test.__name__ in sys.argv[2:]:
        print(test.__name__, flush=True)
        test()
