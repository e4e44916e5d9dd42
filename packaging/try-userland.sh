#!/bin/sh
# try-userland.sh SUITE FILE…: installs packages of gscope in a minimal Debian and asks each a query.
#
# SUITE is a release of Debian (bookworm, trixie), or of a distribution whose archive is MIRROR, with the
# COMPONENTS that hold Python's venv. A FILE is a wheel, an sdist or a .deb; each is tried in a userland
# of its own. Needs root, mmdebstrap, the network, the keyring of the archive in /usr/share/keyrings, and
# an environment of this checkout (`make env`), which generates the capture. Variables of pip are passed
# on. Prints `ok FILE` with the seconds and the size for each; ends with 1 at the first failure.
set -eu
suite=$1
shift
here=$(cd "$(dirname "$0")/.." && pwd)
mirror=${MIRROR:-http://deb.debian.org/debian}
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

"$here/.venv/bin/python" -m tests.docs.office "$work" > "$work/office.log"
mmdebstrap --quiet --variant=minbase --components="${COMPONENTS:-main}" --include=apt,ca-certificates "$suite" "$work/base.tar" "$mirror"

for file; do
  root=$work/root
  mkdir "$root"
  tar --extract --directory "$root" --file "$work/base.tar"
  mkdir "$root/try"
  cp "$work/office.pcap" "$here/packaging/userland/"*.sh "$here/constraints.txt" "$file" "$root/try/"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  echo '127.0.0.1 localhost' > "$root/etc/hosts" # as installers and containers write it
  # A certificate that pip needs here is needed there, too.
  if [ -n "${PIP_CERT:-}" ]; then mkdir -p "$root$(dirname "$PIP_CERT")" && cp "$PIP_CERT" "$root$PIP_CERT"; fi
  case $file in
    *.deb) steps=try-deb.sh ;;
    *) steps=try-pip.sh ;;
  esac
  # A process table and mounts of its own: nothing survives the trial.
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --mount --pid --fork --kill-child sh -euc '
    mount --bind "$1" "$1"  # gscope takes closed folders out of the sight of its processes: / is to be a mount
    mount -t proc proc "$1/proc"
    mkdir -p "$1/dev/shm" && mount -t tmpfs tmpfs "$1/dev/shm"
    cd / && exec env -u XDG_CACHE_HOME -u JAVA_HOME -u TMPDIR HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive chroot "$1" sh -eu "/try/$2" "/try/$3"
  ' sh "$root" "$steps" "$(basename "$file")"
  rm -rf --one-file-system "$root"
done
