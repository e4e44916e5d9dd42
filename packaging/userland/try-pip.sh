#!/bin/sh
# try-pip.sh FILE: installs a wheel or an sdist into an environment of the userland, and asks it.
set -eu
apt-get -qq update
apt-get -qq install --yes --no-install-recommends python3-venv > /try/apt.log 2>&1 ||
  { cat /try/apt.log; exit 1; }
start=$(date +%s)
python3 -m venv /opt/gscope
/opt/gscope/bin/pip install --quiet --no-cache-dir --constraint /try/constraints.txt "$1"
/opt/gscope/bin/pip check > /dev/null
installed=$(date +%s)
sh /try/ask.sh /opt/gscope/bin/gscope
test -f /opt/gscope/share/man/man1/gscope-run.1
printf 'ok %s: %s, %s; installed in %s s, %s; first answer after %s s\n' "$(basename "$1")" \
  "$(. /etc/os-release && echo "$PRETTY_NAME")" "$(python3 --version)" $((installed - start)) \
  "$(du -sh /opt/gscope | cut -f1)" $(($(date +%s) - installed))
