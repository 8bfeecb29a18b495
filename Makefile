# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# A thin front: meson builds, tests/run.sh tests.  What is said about that goes to standard
# error, so that make -s run ARGS=--json prints an object.  ARGS go to the program:
#
#	make run ARGS="--nodes 4 --seconds 3"

RELEASE = build/release
BENCH = build/bench
DEB = build/deb
DIST = build/dist

# Where make install puts things.  lib and not the compiler's own folder: of the two that
# Debian's loader and pkg-config look at, it is the one that any prefix has.
PREFIX ?= /usr/local
LIBDIR = lib
DESTDIR ?=
# For meson, such as -Dredis=disabled -Dpostgres=disabled -Ddefault_library=static.
OPTIONS =

without = $(findstring -D$(1)=disabled,$(OPTIONS))
library = library $(foreach part,redis $(if $(call without,redis),,tls) postgres policy,$(if $(call without,$(part)),,$(part)))

release = -Dbuildtype=release -Doptimization=2 -Dtests=false
# What OPTIONS may change is named as well, so that a folder has what the last command said.
choices = -Dredis=auto -Dtls=auto -Dpostgres=auto -Dpolicy=auto -Djemalloc=auto -Dexamples=false -Dbench=false -Ddefault_library=both

help:
	@echo "make run      build gale and run a fleet of it         ARGS=\"--nodes 4 --seconds 3\""
	@echo "                                                       ARGS=--guard: guards before a backend"
	@echo "make test     run every suite, some under sanitizers   ARGS=\"gcc fuzz\": only these"
	@echo "                                                       ARGS=all: everything, an hour or more"
	@echo "make prove    explore all states of small worlds       TLA2TOOLS_JAR=...: with TLC, too"
	@echo "make bench    measure                                  ARGS=\"--benchmark_filter=gcra\""
	@echo "make compare  measure gale beside its peers            ARGS=\"--seconds 0.2\", ARGS=--list"
	@echo "make build    build the library and the command into $(RELEASE)"
	@echo "make examples  build the programs of examples/ into $(RELEASE)/examples"
	@echo "make install  install both                             PREFIX=/usr/local DESTDIR="
	@echo "make uninstall  remove what make install installed     the same"
	@echo "make deb      build Debian packages into $(DEB)"
	@echo "make dist     write a tarball of what is committed, and its SBOM, into $(DIST)"
	@echo "make format   put all C files into the shape of .clang-format"
	@echo "make clean    remove build/"
	@echo
	@echo "Each first installs the Debian packages that it needs and this machine lacks (packages.txt)."
	@echo "OPTIONS=\"-Dredis=disabled -Dpostgres=disabled\" builds, runs and installs without servers."

run: build
	@echo "== running: gale fleet $(ARGS)" >&2
	@$(RELEASE)/tools/gale fleet $(ARGS)

test:
	@tools/install-packages.sh library redis tls postgres policy examples servers tests bench \
		$(if $(filter all,$(ARGS)),packages trace) >&2
	@tests/run.sh $(ARGS)

prove: build
	@ninja -C $(RELEASE) spec/gale_explore >&2
	@spec/prove.py $(RELEASE)/spec/gale_explore $(ARGS)

build:
	@tools/install-packages.sh $(library) >&2
	@echo "== building: $(RELEASE)" >&2
	@tools/configure.py $(RELEASE) $(release) -Dprefix="$(PREFIX)" -Dlibdir="$(LIBDIR)" \
		$(choices) $(OPTIONS) >&2
	@ninja -C $(RELEASE) >&2

examples:
	@tools/install-packages.sh $(library) examples >&2
	@$(MAKE) --no-print-directory build OPTIONS="$(OPTIONS) -Dexamples=true"

bench:
	@tools/install-packages.sh library redis tls postgres policy examples servers bench
	@echo "== building: $(BENCH)"
	@tools/configure.py $(BENCH) $(release) -Dbench=true
	@ninja -C $(BENCH)
	@$(BENCH)/bench/gale_bench $(ARGS)

compare:
	@tools/install-packages.sh library redis tls postgres policy examples servers bench >&2
	@tools/install-packages.sh compare >&2 || echo "== packages: the report says which peers are not here" >&2
	@echo "== building: $(BENCH)" >&2
	@tools/configure.py $(BENCH) $(release) -Dbench=true >&2
	@ninja -C $(BENCH) >&2
	@bench/compare/compare.py $(ARGS)

install:
	@tools/install.sh check "$(PREFIX)" "$(LIBDIR)" "$(DESTDIR)"
	@$(MAKE) --no-print-directory build
	@meson install -C $(RELEASE) --no-rebuild --destdir "$(DESTDIR)"
	@tools/install.sh finish "$(PREFIX)" "$(LIBDIR)" "$(DESTDIR)"

uninstall:
	@tools/install.sh remove "$(PREFIX)" "$(LIBDIR)" "$(DESTDIR)"

deb:
	@tools/install-packages.sh library redis tls postgres policy packages >&2
	@tools/deb.sh $(DEB) >&2
	@ls $(DEB)/*.deb

dist:
	@tools/install-packages.sh library redis tls postgres policy >&2
	@tools/dist.py $(DIST)

format:
	git ls-files '*.c' '*.h' '*.cc' | xargs clang-format-14 -i

clean:
	rm -rf build

.PHONY: help run test prove build examples bench compare install uninstall deb dist format clean
