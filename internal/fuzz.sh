#!/bin/sh
# Runs each fuzz target of the module for as long as told, one after the other:
# go test takes one target of one package at a time.
#
#   sh internal/fuzz.sh 10m [target]
#
# Exit status: 0 every target was fuzzed, and none crashed; 1 one crashed, go test
# says with what; 2 wrong usage; 75 a target was NOT fuzzed: the time was over before
# its known inputs had been run.
set -eu
time=${1:-}
only=${2:-}
if ! echo "$time" | grep -Eq '^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$|^[0-9]+x$' || ! echo "$time" | grep -q '[1-9]'; then
	echo "FUZZTIME \"$time\" is no time; use one as 30s, 10m or 1h30m, or a number of inputs as 1000x" >&2
	exit 2
fi
targets=$(grep -r --include='*_test.go' '^func Fuzz' . | sed -n 's/^\(.*\)\/[^/]*:func \(Fuzz[A-Za-z0-9_]*\)(.*/\2 \1/p' | sort)
if [ -n "$only" ]; then
	all=$(echo "$targets" | cut -d' ' -f1 | xargs)
	targets=$(echo "$targets" | grep "^$only " || true)
	if [ -z "$targets" ]; then
		echo "no fuzz target is called \"$only\"; there are $all" >&2
		exit 2
	fi
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo "$targets" >"$dir/targets"
idle=0
while read -r target package; do
	echo "== $target in $package, $time"
	{ go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" </dev/null 2>&1 || touch "$dir/failed"; } | tee "$dir/said"
	if [ -e "$dir/failed" ]; then
		echo "$target FAILED, see above" >&2
		exit 1
	fi
	# Running the known inputs counts as execs, too.
	known=$(sed -n 's/.*baseline coverage: [0-9]*\/\([0-9]*\) completed.*/\1/p' "$dir/said" | tail -n 1)
	execs=$(grep '^fuzz: elapsed' "$dir/said" | tail -n 1 | sed -n 's/.*execs: \([0-9]*\) .*/\1/p')
	fuzzed=$((${execs:-0} - ${known:-0}))
	if [ "$fuzzed" -gt 0 ]; then
		echo "$target $fuzzed new inputs" >>"$dir/summary"
	else
		echo "$target NOT fuzzed: $time was over before its ${known:-known} known inputs were run" >>"$dir/summary"
		idle=$((idle + 1))
	fi
done <"$dir/targets"

echo
cat "$dir/summary"
all=$(wc -l <"$dir/targets" | tr -d ' ')
if [ "$idle" -gt 0 ]; then
	echo "targets=$all time=$time each, no crash, but $idle NOT fuzzed: give them more time" >&2
	exit 75
fi
echo "targets=$all time=$time each, no crash"
