#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# install-packages.sh GROUP... -- installs what these groups of packages.txt list and this
# machine lacks, and nothing else.  It says first what that is.
#
# Debian starts no server of the group compare: a user who compares starts those by hand.
#
# Touches neither the network nor sudo when nothing is missing, so that everything
# works offline from the second time on.
set -eu
list=$(dirname "$0")/../packages.txt
policy=${GALE_POLICY_RC:-/usr/sbin/policy-rc.d} # what Debian asks before it starts a server

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "== packages: not a Debian system; it is up to you to have those of packages.txt: $*"
	exit 0
fi

packages_of() { # GROUP
	sed 's/#.*//' "$list" | awk -v group="[$1]" '
		/^\[/ { inside = $1 == group; found = found || inside; next }
		inside && NF { print $1 }
		END { exit !found }' || {
		echo "packages.txt has no group [$1]" >&2
		exit 2
	}
}

missing=
starts=
quiet=
for group; do
	packages=$(packages_of "$group")
	for package in $packages; do
		case " $missing " in *" $package "*) continue ;; esac
		case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || :) in
		*' installed') continue ;;
		esac
		missing="$missing $package"
		case $group/$package in
		servers/* | */prometheus) starts="$starts $package" ;;
		compare/nginx | compare/haproxy) quiet=yes ;;
		esac
	done
done
if [ -z "$missing" ]; then
	echo "== packages: all there ($*)"
	exit 0
fi

by_hand() {
	echo "As root, please run: apt-get install --no-install-recommends$missing" >&2
	exit 1
}
as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "This needs packages that are missing, and there is neither root nor sudo here." >&2
		by_hand
	}
	as_root=sudo
fi

echo "== packages: installing$missing"
[ -z "$starts" ] || echo "== packages: Debian will start these servers:$starts"
if [ -n "$quiet" ] && [ ! -e "$policy" ]; then
	trap '$as_root rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
	$as_root chmod +x "$policy"
fi
$as_root apt-get update -q || by_hand
$as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get install -q -y --no-install-recommends $missing || by_hand
