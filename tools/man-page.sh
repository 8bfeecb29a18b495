#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# man-page.sh GALE OUT -- gale(1), made of what the command says about itself.
set -eu
gale=$1
out=$2

verbatim() { # COMMAND...: what it prints, as it is
	said=$("$@")
	[ -n "$said" ]
	printf '.nf\n'
	printf '%s\n' "$said" | sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
	printf '.fi\n'
}

commands=$("$gale" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx 'version\|help')
[ -n "$commands" ]
{
	printf '.TH GALE 1 "" "%s" "User Commands"\n' "$("$gale" version)"
	printf '.SH NAME\ngale \\- try out the limits that a fleet shares, and look after their store\n'
	printf '.SH SYNOPSIS\n'
	verbatim "$gale" help
	for command in $commands; do
		printf '.SH GALE %s\n' "$(echo "$command" | tr '[:lower:]' '[:upper:]')"
		verbatim "$gale" "$command" --help
	done
	printf '.SH SEE ALSO\nThe library is described in its header, <gale/gale.h>.\n'
} >"$out"
