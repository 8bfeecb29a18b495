#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# loop_example_test.sh EXAMPLE -- three of five calls pass, in a runtime with threads and in
# one without, and the answers come through the loop.
set -u
bad=0

# Three of five may, or more if the day turns in between.
for how in threads turns; do
	said=$("$1" $how | tr '\n' ' ') || bad=1
	case $said in
	'call 1: yes call 2: yes '*'call 3: yes '*'call 4: '*'call 5: '*) ;;
	*)
		echo "$1 $how says $said"
		bad=1
		;;
	esac
done
exit $bad
