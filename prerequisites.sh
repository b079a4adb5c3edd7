#!/bin/sh
# Says in one sentence what is missing on this machine and how to install it; exit 2 then.
python=${1:-python3}

missing() {
    echo "barnabas: $1" >&2
    exit 2
}

command -v "$python" >/dev/null 2>&1 ||
    missing "Python 3.11 or newer is needed and \"$python\" is not here; install it: apt-get install python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    missing "Python 3.11 or newer is needed and \"$python\" is $("$python" -V 2>&1); install it: apt-get install python3.11 python3.11-venv, then: make PYTHON=python3.11 demo"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    missing "Python's venv module is missing; install it: apt-get install python3-venv"

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
command -v "$java" >/dev/null 2>&1 ||
    missing "Java 17 or newer is needed and \"$java\" is not here; install it: apt-get install openjdk-17-jre-headless"
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
[ "${version:-0}" -ge 17 ] ||
    missing "Java 17 or newer is needed and \"$java\" is version ${version:-unknown}; install it: apt-get install openjdk-17-jre-headless"
