#!/bin/sh
# build-deb.sh FOLDER: builds the Debian package of this checkout for the running release, into FOLDER.
#
# Needs debhelper, python3, python3-venv and the network (pip). SOURCE_DATE_EPOCH is the time of the last
# commit if it is unset: the same commit gives the same bytes.
set -eu
target=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/gscope
mkdir "$tree"
git ls-files -z | tar --null --files-from=- --mtime="@$SOURCE_DATE_EPOCH" --create | tar --extract --directory "$tree"
mv "$tree/packaging/debian" "$tree/debian"
cp "$tree/packaging/gscope@.service" "$tree/debian/gscope@.service"

# A package belongs to one release, because it belongs to one version of Python.
release=$(. /etc/os-release && echo "${ID}${VERSION_ID:-}")
sed -i "1s/(\([^)]*\))/(\1~$release)/" "$tree/debian/changelog"

cd "$tree"
chmod +x debian/rules
dpkg-buildpackage --build=binary --no-sign --jobs=1
mv "$work"/gscope_*.deb "$target/"
