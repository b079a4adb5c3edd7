#!/bin/sh
# The system tools that tests and benchmarks need beside Python and Java: installs what is missing, if it may.
#   tests/packages.sh COMMAND=PACKAGE …
missing=""
for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null 2>&1 || missing="$missing ${pair#*=}"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing:$missing" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $missing >/dev/null && exit 0
fi
echo "barnabas: tests of the tunnel need$missing; install it as root: apt-get install$missing" >&2
exit 2
