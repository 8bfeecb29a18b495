# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""scene.py -- a balancer, backends and clients, as processes that end with this one."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

PATIENCE_S = 60


def until(holds, what):
    """Waits until it holds, and returns what it returned."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := holds()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)
    return value


def connect(port, source=None):
    there = ("127.0.0.1", port)
    return socket.create_connection(there, timeout=PATIENCE_S, source_address=source and (source, 0))


def hear(connection, has_body=True):
    """One reply: (status, headers with small letters, body); None instead of the body if it is cut."""
    file = connection.makefile("rb")
    status = int(file.readline().split()[1])
    headers = {}
    while (line := file.readline().decode().strip()):
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    if not has_body or status in (100, 204, 304):
        return status, headers, b""
    if headers.get("transfer-encoding") == "chunked":
        return status, headers, hear_chunks(file)
    if "content-length" in headers:
        length = int(headers["content-length"])
        body = file.read(length)
        return status, headers, body if len(body) == length else None
    return status, headers, file.read()


def hear_chunks(file):
    body = b""
    while (line := file.readline()):
        size = int(line, 16)
        body += file.read(size)
        file.readline()
        if size == 0:
            return body
    return None


def say(port, sent, source=None, has_body=True):
    with connect(port, source) as connection:
        connection.sendall(sent)
        return hear(connection, has_body)


def get(port, path="/", source=None):
    return say(port, f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode(), source)


def without_rights(*command):
    """Runs it as one that may neither read what it has no right to, nor listen below port 1024."""
    if os.geteuid() == 0:
        command = ("unshare", "--net", "setpriv", "--bounding-set=-dac_override,-dac_read_search,-net_bind_service",
                   *command)
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


@contextlib.contextmanager
def hearing(folder):
    """What processes that begin meanwhile say on standard error, so far."""
    path = pathlib.Path(folder, "stderr")
    with path.open("wb") as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
    try:
        yield path.read_text
    finally:
        os.dup2(before, 2)
        os.close(before)


def is_for_prometheus(text):
    """Has promtool nothing to say of this page of metrics?"""
    said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=PATIENCE_S)
    assert said.returncode == 0 and not said.stdout + said.stderr, said
    # It does complain of a page that lacks a help.
    name = text.split()[2]
    less = text.replace(b"# HELP " + name, b"# NO HELP " + name, 1)
    assert subprocess.run(["promtool", "check", "metrics"], input=less, capture_output=True, timeout=PATIENCE_S).returncode != 0


class Process:
    def __init__(self, *command, stdin=None):
        self.process = subprocess.Popen([str(c) for c in command], stdin=stdin, text=True,
                                        stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def listens(self):
        line = self.process.stdout.readline()
        assert "listening" in line, line
        return int(line.split()[-1])


class Backend(Process):
    def __init__(self, program, places, ms, port=0):
        super().__init__(program, port, places, ms)
        self.again = (program, places, ms)
        self.port = self.listens()

    def takes(self, ms):
        assert get(self.port, f"/ms/{ms}")[0] == 200

    def answered(self):
        return int(get(self.port, "/count")[2])

    def most(self):
        return int(get(self.port, "/most")[2])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def returns(self):
        program, places, ms = self.again
        self.process.stdout.close()
        Process.__init__(self, program, self.port, places, ms)
        self.listens()


class Balancer(Process):
    def __init__(self, program, *arguments):
        super().__init__(program, "--port", 0, *arguments)
        self.port = self.listens()

    def __exit__(self, error, *rest):
        if not error:  # a sanitizer that found something makes another status
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(PATIENCE_S) == 0, self.process.returncode
        super().__exit__(error, *rest)

    def metrics(self):
        text = get(self.port, "/metrics")[2].decode()
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))

    def metric(self, name, **labels):
        text = ",".join(f'{key}="{value}"' for key, value in labels.items())
        return int(self.metrics()[f"{name}{{{text}}}" if text else name])


class Load(Process):
    """Clients of each port; .slices has (ms, good, refused, failed, lost) of each slice of time, by port."""

    def __init__(self, program, clients, slice_ms, *ports):
        super().__init__(program, clients, slice_ms, *ports, stdin=subprocess.PIPE)
        self.slices, self.left = [[] for _ in ports], None
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "left":
                self.left = int(words[1])
            else:
                self.slices[int(words[0])].append([int(word) for word in words[1:]])

    def next(self, count):
        """So many slices that begin from now on, of each port; fewer if the clients have ended."""
        first = len(self.slices[-1]) + 1
        until(lambda: len(self.slices[-1]) >= first + count or not self.reader.is_alive(), "slices")
        return [slices[first:first + count] for slices in self.slices]

    def sums(self):
        """Of all slices of the first port, once the clients have ended."""
        self.reader.join()
        return [sum(column) for column in zip(*self.slices[0])]

    def end(self):
        self.process.stdin.close()
        return self.sums()

    def __exit__(self, *error):
        self.process.kill()
        self.reader.join()
        super().__exit__(*error)


def address(backend, weight=1):
    return f"127.0.0.1:{backend.port}={weight}"
