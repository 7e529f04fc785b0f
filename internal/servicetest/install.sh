#!/bin/sh
# Installs the servers that the tests and benchmarks start privately. Asks
# nothing; says plainly what it cannot do. Run by `make servers`.
set -u

missing=
need() { # command, Debian package; servers may live outside a user's PATH
	PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need redis-server redis-server
need rabbitmq-server rabbitmq-server
need mariadbd mariadb-server
need chromium chromium
[ -z "$missing" ] && exit 0

fail() {
	echo "The tests need these Debian packages, which are not installed:$missing" >&2
	echo "$1" >&2
	echo "Without them run 'make test-short'." >&2
	exit 1
}
command -v apt-get >/dev/null 2>&1 || fail "There is no apt-get here to install them with."
as_root=
if [ "$(id -u)" != 0 ]; then
	sudo -n true 2>/dev/null || fail "This is not root and sudo asks for a password: sudo apt-get install$missing"
	as_root=sudo
fi

# A package must not start a server of its own on the default ports.
policy=/usr/sbin/policy-rc.d
made=
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null && $as_root chmod +x $policy && made=yes
fi
echo "Installing$missing …"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
ok=yes
{ $as_root apt-get update && $as_root apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 </dev/null || ok=
[ -n "$made" ] && $as_root rm -f $policy
if [ -z "$ok" ]; then
	tail -n 15 "$log" >&2
	fail "apt-get could not install them; its whole output is in $log."
fi
rm -f "$log"
