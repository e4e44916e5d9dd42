#!/bin/sh
# ask.sh GSCOPE: asks an installed gscope the first query of README.md, and compares the answer.
set -eu
query='SELECT srcIP, sum(len) AS bytes FROM IP GROUP BY srcIP ORDER BY bytes DESC LIMIT 3'
expected='srcIP,bytes
10.0.0.12,605263
198.51.100.10,132052
2001:db8:80::80,36924'
answer=$("$1" replay /try/office.pcap -o csv --quiet -e "$query")
if [ "$answer" != "$expected" ]; then
  printf 'wrong answer of %s:\n%s\n' "$("$1" --version)" "$answer" >&2
  exit 1
fi
