#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# examples_test.sh FIRST PACED_CLIENT EVENT_LOOP TWO_WINDOWS -- they do what they say.
set -u
first=$1 paced_client=$2 event_loop=$3 two_windows=$4
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

exit $bad
