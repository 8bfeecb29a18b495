#!/bin/bash -eu
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# build.sh -- what OSS-Fuzz runs: each fuzz target and its corpus go into $OUT.
#
# OSS-Fuzz says the compiler and its flags (CC, CFLAGS), the engine (LIB_FUZZING_ENGINE) and where to
# work (WORK, OUT).  Shared libraries that a target needs go beside it, for it runs in an image
# that has none of them.  tests/run.sh runs this script, too.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && git rev-parse --show-toplevel 2>/dev/null) || top=$SRC/gale
cd "$top"

build=$WORK/build
mkdir -p "$OUT/lib"
meson setup "$build" -Dfuzz=true -Dfuzz_engine="$LIB_FUZZING_ENGINE" -Dtools=false \
	-Ddefault_library=static -Db_lundef=false -Dc_link_args="-Wl,-rpath,\$ORIGIN/lib"
ninja -C "$build"

for source in tests/fuzz/*_fuzz.c; do
	target=$(basename "$source" .c)
	cp "$build/tests/fuzz/$target" "$OUT/"
	zip -q -j -r "$OUT/${target}_seed_corpus.zip" "tests/fuzz/corpus/${target%_fuzz}"
	ldd "$OUT/$target" | awk '$3 ~ "^/" { print $3 }' | grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' |
		while read -r library; do cp -n "$library" "$OUT/lib/"; done
done
