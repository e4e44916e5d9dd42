#!/bin/sh
# try-deb.sh FILE: installs a Debian package, asks it, verifies its unit, removes and purges it.
set -eu
fail() { printf '%s\n' "$*" >&2; exit 1; }
files() {
  find / -xdev \( -path /proc -o -path /run -o -path /try -o -path /tmp -o -path /var/lib/apt -o -path /var/cache/apt \
    -o -path /var/lib/dpkg -o -path /var/log -o -path "$HOME/.cache" \) -prune -o -print | sort
}
quiet() { "$@" > /try/out.log 2>&1 || { cat /try/out.log >&2; fail "failed: $*"; }; }

# What the package depends on is there before the files are counted.
quiet apt-get -qq update
quiet apt-get -qq satisfy --yes --no-install-recommends "$(dpkg-deb --field "$1" Depends)"
files > /try/before
start=$(date +%s)
quiet apt-get -qq install --yes --no-install-recommends "$1"
installed=$(date +%s)

sh /try/ask.sh /usr/bin/gscope
answered=$(date +%s)
id gscope > /dev/null || fail 'the user gscope is missing'
for each in /var/lib/gscope /var/cache/gscope; do
  [ "$(stat --format '%U %G %a' "$each")" = 'gscope gscope 750' ] || fail "$each has other rights"
done
unit=$(dpkg --listfiles gscope | grep '/gscope@.service$')
cp "$unit" /try/gscope@flows.service
systemd-analyze verify /try/gscope@flows.service > /try/verify.log 2>&1 || true
! grep gscope@flows /try/verify.log || fail 'the unit is invalid'
size=$(du -sh /usr/lib/gscope | cut -f1)

# Another user can replay, and a run leaves nothing outside the folders of the package.
setpriv --reuid=gscope --regid=gscope --clear-groups env HOME=/var/lib/gscope \
  XDG_CACHE_HOME=/var/cache/gscope sh /try/ask.sh /usr/bin/gscope
echo '# changed' >> /etc/gscope/gscope.yaml
quiet apt-get -qq remove --yes gscope
[ -f /etc/gscope/gscope.yaml ] || fail 'a configuration file was removed'
if [ -e /usr/bin/gscope ] || [ -e /usr/lib/gscope ]; then fail 'files are left after the removal'; fi
quiet apt-get -qq purge --yes gscope
files > /try/after
diff /try/before /try/after || fail 'the purge left or took files'
printf 'ok %s: %s; installed in %s s, %s; first answer after %s s; nothing left\n' "$(basename "$1")" \
  "$(. /etc/os-release && echo "$PRETTY_NAME")" $((installed - start)) "$size" $((answered - installed))
