#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# deb.sh FOLDER -- builds the Debian packages into FOLDER, from a copy there of the files that git
# knows, as they are now.  dpkg-buildpackage would leave its objects among them, and packages beside.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
folder=$(realpath "$1")
rm -rf "$folder"/*
mkdir "$folder/gale"
git ls-files -z | xargs -0 cp -P --parents -t "$folder/gale"
cd "$folder/gale"
# The flags of a make that runs this are not for debian/rules.
env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc -b
