# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# A thin front: meson builds, tests/run.sh tests.  What is said about that goes to standard
# error, so that make -s run ARGS=--json prints an object.  ARGS go to the program:
#
#	make run ARGS="--nodes 4 --seconds 3"

RELEASE = build/release
BENCH = build/bench

# meson reads its options only once; afterwards ninja notices what has changed.
configure = test -f $(1)/build.ninja || meson setup $(1) --buildtype=release -Doptimization=2 $(2)

help:
	@echo "make run      build gale and run a fleet of it         ARGS=\"--nodes 4 --seconds 3\""
	@echo "make test     run every test, in every configuration   ARGS=\"gcc fuzz\": only these"
	@echo "make prove    explore all states of small worlds       TLA2TOOLS_JAR=...: with TLC, too"
	@echo "make bench    measure                                  ARGS=\"--benchmark_filter=gcra\""
	@echo "make build    build the library and the command into $(RELEASE)"
	@echo "make install  install both, as root, under /usr/local"
	@echo "make format   put all C files into the shape of .clang-format"
	@echo "make clean    remove build/"
	@echo
	@echo "run, test and bench first install the Debian packages they lack (packages.txt)."

run: build
	@echo "== running: gale fleet $(ARGS)" >&2
	@$(RELEASE)/tools/gale fleet $(ARGS)

test: packages
	@tests/run.sh $(ARGS)

prove: build
	@spec/prove.py $(RELEASE)/spec/gale_explore $(ARGS)

build: packages
	@echo "== building: $(RELEASE)" >&2
	@($(call configure,$(RELEASE),-Dtests=false)) >&2
	@ninja -C $(RELEASE) >&2

bench: packages
	@echo "== building: $(BENCH)"
	@$(call configure,$(BENCH),-Dtests=false -Dbench=true)
	@ninja -C $(BENCH)
	@$(BENCH)/bench/gale_bench $(ARGS)

install: build
	meson install -C $(RELEASE) --no-rebuild
	ldconfig

packages:
	@tools/install-packages.sh >&2

format:
	git ls-files '*.c' '*.h' '*.cc' | xargs clang-format-14 -i

clean:
	rm -rf build

.PHONY: help run test prove build bench install packages format clean
