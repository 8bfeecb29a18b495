#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# policy_example_test.sh POLICY -- limits come from the file, and from the file that it becomes.
set -u
python3 - "$1" <<'END'
import os
import signal
import subprocess
import sys
import tempfile


# A log, which has no window that could turn meanwhile.
def policy(limit, end="...\n"):
    with open("policy.new", "w") as file:
        file.write('stores: {here: {url: "memory:"}}\nlimiters:\n  api:\n    store: here\n'
                   f"    rule: sliding_log\n    limit: {limit}\n{end}")
    os.rename("policy.new", "policy.yaml")


with tempfile.TemporaryDirectory() as folder:
    program = os.path.realpath(sys.argv[1])
    os.chdir(folder)
    done = subprocess.run([program, "policy.yaml"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and done.stderr.startswith("policy.yaml: there is no such file"), done
    policy("2 per day")
    server = subprocess.Popen([program, "policy.yaml"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(*lines):
        """What is said to each; one more line where it reloads by itself."""
        server.stdin.write("".join(line + "\n" for line in lines))
        server.stdin.flush()
        return [server.stdout.readline().strip() for _ in lines]

    try:
        assert say("a", "a", "a", "b") == ["yes", "yes", "no", "yes"]
        policy("3 per day")
        assert say("reload", "a", "a") == ["reloaded", "yes", "no"]
        policy("9 per day", end="")
        assert say("reload", "a")[0].startswith("the old policy stays: policy.yaml:7: yaml: the last line")
        policy("4 per day")
        server.send_signal(signal.SIGHUP)
        assert say("a") == ["reloaded"]
        assert [server.stdout.readline().strip(), *say("a")] == ["yes", "no"]
        server.stdin.close()
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.wait()
END
