#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# roles.sh ROOT -- clang does refuse code that lacks the lock or the role it needs.
#
# Without this, a macro that has become empty would pass every file.
set -eu
cd "$1"
compile() {
	clang -std=c11 -fsyntax-only -Wthread-safety -Werror -I. -Iinclude "$@" \
		tests/lint/role_fault.c
}

compile
for fault in FIELD LOCK ROLE DROP; do
	if said=$(compile "-DFAULT_$fault" 2>&1); then
		echo "clang accepts FAULT_$fault"
		exit 1
	fi
	case $said in
	*Wthread-safety*) ;;
	*)
		echo "FAULT_$fault fails for another reason: $said"
		exit 1
		;;
	esac
done
