#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# chroot-test.sh FOLDER -- the two commands on a fresh Debian 12, with nothing but git and
# make: what is committed must build, run and pass its tests there.
#
# Needs root and debootstrap.  An empty or missing FOLDER becomes a minimal Debian, with
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

rm -rf "$folder/root/gale"
git clone -q --no-hardlinks "$top" "$folder/root/gale"

# In a mount namespace of its own, so that nothing stays mounted, however this ends.
inside() { # [OPTION OF unshare] SCRIPT
	unshare --mount --pid --fork "${@:1:$#-1}" /bin/sh -eu -c '
		mount -t proc proc "$1/proc"
		mount --rbind /dev "$1/dev"
		exec chroot "$1" env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			/bin/sh -eu -c "$2"' sh "$folder" "${@: -1}"
}

echo "== git and make"
inside 'apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends git make'
echo "== make run"
inside 'cd /root/gale && make run ARGS="--seconds 2"'
echo "== make run again, without a network"
inside --net 'cd /root/gale && make run ARGS="--seconds 2"'
echo "== make test"
inside 'cd /root/gale && make test'
