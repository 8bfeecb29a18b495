#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# examples_test.sh FIRST PACED_CLIENT EVENT_LOOP HTTP_SERVER TWO_WINDOWS TENANTS STREAM [JEMALLOC] --
# they do what they say.
set -u
blocking=$1 paced_client=$2 event_loop=$3 two_windows=$4 tenants=$5 stream=$6 jemalloc=${7-}
bad=0

fail() {
	echo "FAIL: $*"
	bad=1
}

# Three of five may, or more if the second turns in between.
said=$("$blocking") || fail "blocking exits with $?"
case $(tr '\n' ' ' <<<"$said") in
'yes yes yes '*) ;;
*) fail "blocking says $said" ;;
esac
[ "$(wc -l <<<"$said")" = 5 ] || fail "blocking says $said"

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

exit $bad
