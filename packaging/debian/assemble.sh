#!/bin/sh
# assemble.sh ROOT HOME SITE: makes the environment around the installed packages below ROOT.
#
# HOME is the folder of the environment and SITE that of its packages, both as they are called on the
# machine where the package is installed.
set -eu
root=$1 home=$2 site=$3
python=$(/usr/bin/python3 -c 'import sys; print("/usr/bin/python%d.%d" % sys.version_info[:2])')

# pip puts commands and shared files below the target; only gscope's are kept, in the system's folders.
mkdir -p "$root/usr/share/man/man1" "$root$home/bin"
mv "$root$site/share/man/man1/"gscope*.1 "$root/usr/share/man/man1/"
rm -rf "${root:?}$site/bin" "${root:?}$site/share"
# Nor is it recorded where the package was built: the commands had the path of the builder's Python.
find "$root$site" -name direct_url.json -delete
sed -i -E '/^(\.\.\/)*(bin|share)\/|direct_url\.json/d' "$root$site"/*.dist-info/RECORD

# An environment as `python3 -m venv` makes it, without its scripts for shells.
ln -s "$python" "$root$home/bin/python"
ln -s python "$root$home/bin/python3"
cat > "$root$home/pyvenv.cfg" <<EOF
home = /usr/bin
include-system-site-packages = false
version = $(/usr/bin/python3 -c 'import platform; print(platform.python_version())')
executable = $python
EOF
cat > "$root$home/bin/gscope" <<EOF
#!$home/bin/python
import sys

from gscope.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
EOF
chmod 755 "$root$home/bin/gscope"
mkdir -p "$root/usr/bin"
ln -s "../${home#/usr/}/bin/gscope" "$root/usr/bin/gscope"

# Modules are compiled here and never again, so that nothing is left when the package is removed.
"$root$home/bin/python" -m compileall -q -j 0 --invalidation-mode unchecked-hash \
  -s "$root" -p / "$root$site" || true
find "$root" -type d -exec chmod 755 {} +
find "$root$site" -type f ! -perm -0100 -exec chmod 644 {} +

# Completions, as the commands that are in the package print them.
gscope() { "$root$home/bin/python" -m gscope "$@"; }
for each in bash:bash-completion/completions/gscope zsh:zsh/vendor-completions/_gscope \
  fish:fish/vendor_completions.d/gscope.fish; do
  file=$root/usr/share/${each#*:}
  mkdir -p "$(dirname "$file")"
  gscope completion "${each%%:*}" > "$file"
done
install -D -m 644 debian/gscope.yaml "$root/etc/gscope/gscope.yaml"
