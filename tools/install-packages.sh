#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# install-packages.sh -- installs what packages.txt lists and this machine lacks.
#
# Touches neither the network nor sudo when nothing is missing, so that everything
# works offline from the second time on.
set -eu
list=$(dirname "$0")/../packages.txt

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "== packages: not a Debian system; it is up to you to have those of packages.txt"
	exit 0
fi

missing=
for package in $(sed 's/#.*//' "$list"); do
	case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || :) in
	*' installed') ;;
	*) missing="$missing $package" ;;
	esac
done
if [ -z "$missing" ]; then
	echo "== packages: all there"
	exit 0
fi

echo "== packages: installing$missing"
as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=sudo
	command -v sudo >/dev/null || {
		echo "Neither root nor sudo here.  As root, please run: apt-get install$missing" >&2
		exit 1
	}
fi
$as_root apt-get update -q
$as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get install -q -y --no-install-recommends $missing
