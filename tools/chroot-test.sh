#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# chroot-test.sh FOLDER -- every command of the README, and every make of docs/install.md, on a fresh
# Debian 12, with nothing but git and make: what is committed must build, run, install and pass its
# tests there.
#
# The commands are read from the README, the lines of its blocks without a language, and run as
# printed; one that this script does not know is an error.  Those of install.md run without sudo,
# which is not there.  make test comes last.  Servers are
# started in a network of their own, so that they take no port of this machine.
#
# Needs root, debootstrap and iproute2.  An empty or missing FOLDER becomes a minimal Debian, with
# this machine's own apt sources; one that is there already is used as it is.  By hand, for
# it takes a while.
set -eu
[ $# = 1 ] || {
	echo "usage: $0 FOLDER" >&2
	exit 2
}
top=$(cd "$(dirname "$0")/.." && pwd)
folder=$(realpath -m "$1")

if [ ! -e "$folder/etc/debian_version" ]; then
	echo "== a minimal Debian 12 in $folder"
	mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' | head -n 1)
	debootstrap --variant=minbase bookworm "$folder" $mirror
fi

# What it takes to reach the same packages as this machine does.
cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d "$folder/etc/apt/"
cp /etc/resolv.conf /etc/hosts "$folder/etc/"
# Packages start no servers there: it has no system to run them.
printf '#!/bin/sh\nexit 101\n' >"$folder/usr/sbin/policy-rc.d"
chmod +x "$folder/usr/sbin/policy-rc.d"

rm -rf "$folder/root/gale"
git clone -q --no-hardlinks "$top" "$folder/root/gale"

# In a mount namespace of its own, so that nothing stays mounted, and in a process namespace, so
# that nothing keeps running, however this ends.  With --net, there is only a loopback.
inside() { # [--net] SCRIPT
	unshare --mount --pid --fork "${@:1:$#-1}" /bin/sh -eu -c '
		[ $# = 2 ] || ip link set lo up
		mount -t proc proc "$1/proc"
		mount --rbind /dev "$1/dev"
		mount --rbind /sys "$1/sys"
		exec chroot "$1" env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			/bin/sh -eu -c "$2"' sh "$folder" "${@: -1}" "${@:1:$#-1}"
}

says_so() { # FILE: three of the README's five calls may pass
	[ "$(grep -c 'may pass$' "$1")" = 3 ] && [ "$(grep -c 'denied$' "$1")" = 2 ]
}

readme=$folder/root/gale/README.md
commands=$(awk '/^```/ { plain = !open && $0 == "```"; open = !open; next } plain' "$readme" |
	sed 's/ *#.*//' | grep .)

echo "== git and make"
inside 'apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends git make'

init=
while read -r command; do
	echo "== $command"
	case $command in
	'make run')
		inside "cd /root/gale && $command"
		echo "== $command, again, without a network"
		inside --net "cd /root/gale && $command"
		;;
	'make install') inside "cd /root/gale && $command" ;;
	'make test') ;; # it comes last
	'make examples && build/release/examples/httpd --limit 5/s')
		inside "cd /root/gale && ${command% && *}"
		inside --net "cd /root/gale && ${command#* && } >/root/httpd.txt & cd /root
			until grep -qs listening httpd.txt; do sleep 0.1; done
			bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080
				for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf \"GET / HTTP/1.1\r\n\r\n\" >&3; done
				printf \"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n\" >&3
				cat <&3 >replies.txt'"
		grep -q '^HTTP/1.1 200 OK' "$folder/root/replies.txt"
		grep -q '^HTTP/1.1 429 Too Many Requests' "$folder/root/replies.txt"
		;;
	'apt-get install -y wrk && wrk http://127.0.0.1:8080/')
		inside "${command% && *}"
		inside --net "/root/gale/build/release/examples/httpd --limit 5/s >/root/httpd.txt & cd /root
			until grep -qs listening httpd.txt; do sleep 0.1; done
			${command#* && }" | tee "$folder/root/wrk.txt"
		grep -q 'Non-2xx or 3xx responses: [1-9]' "$folder/root/wrk.txt"
		;;
	'cc first.c '*)
		"$top/tests/readme-program.sh" "$readme" "$folder/root/first.c"
		inside "cd /root && $command" | tee "$folder/root/first.txt"
		says_so "$folder/root/first.txt"
		;;
	'gale store init '*) init=$command ;;
	*)
		echo "the README has a command that $0 does not know" >&2
		exit 1
		;;
	esac
done <<<"$commands"

echo "== with a server: $init"
inside 'DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends redis-server'
inside --net "redis-server --save '' --daemonize yes >/root/redis.txt
	until redis-cli ping >/root/redis.txt 2>&1; do sleep 0.1; done
	$init
	gale fleet --store '${init##* }' --seconds 3"

echo "== make uninstall"
inside 'cd /root/gale && make uninstall && [ ! -e /usr/local/bin/gale ]'
printed=$(sed -n 's/^\(sudo \)\{0,1\}\(make [a-z].*\)/\2/p' "$folder/root/gale/docs/install.md" | sed 's/  *#.*//')
[ "$(wc -l <<<"$printed")" = 7 ] || {
	echo "docs/install.md prints other commands than $0 knows: $printed" >&2
	exit 1
}
while read -r command; do
	echo "== $command"
	inside "cd /root/gale && $command" </dev/null
done <<<"$printed"

echo "== make test"
inside 'cd /root/gale && make test'
echo "== every command of the README went through"
