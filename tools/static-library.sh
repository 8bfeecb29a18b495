#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# static-library.sh OUT ARCHIVE ... -- all members as one object with only gale_* to see.
set -eu
out=$1
shift
ld -r -o "$out.o" --whole-archive "$@"
objcopy --localize-hidden "$out.o"
rm -f "$out"
ar rcs "$out" "$out.o"
rm -f "$out.o"
