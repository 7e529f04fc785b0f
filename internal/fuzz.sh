#!/bin/sh
# Runs each fuzz target of the module for as long as told, one after the other:
# go test takes one target of one package at a time.
#
#   sh internal/fuzz.sh 10m [target]
set -eu
time=$1
only=${2:-}
found=0
for file in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz' | sort); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		if [ -n "$only" ] && [ "$only" != "$target" ]; then
			continue
		fi
		found=$((found + 1))
		echo "== $target in $(dirname "$file"), $time"
		go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
	done
done
if [ "$found" = 0 ]; then
	echo "no fuzz target is called $only" >&2
	exit 2
fi
echo "targets=$found time=$time each, no crash"
