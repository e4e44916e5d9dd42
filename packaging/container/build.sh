#!/bin/sh
# build.sh [OPTION…]: builds the image `gscope` of this checkout with buildah, podman or docker.
#
# BUILDER names the program (default: buildah, else podman, else docker); options are passed to its
# `build`, such as --build-arg BASE=debian:trixie-slim. Needs an environment of the checkout (`make env`).
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
builder=${BUILDER:-$(command -v buildah || command -v podman || command -v docker)}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

# A copy of what is committed: the image has nothing else of the checkout.
git clone --quiet --local "$here" "$context/source"
"$here/.venv/bin/python" -m build --wheel --outdir "$context" "$context/source" > /dev/null
cp "$here/constraints.txt" "$context/"
rm -rf "$context/source"
"$builder" build --tag gscope --file "$here/packaging/container/Containerfile" "$@" "$context"
