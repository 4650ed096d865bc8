#!/usr/bin/env bash
# Build wheel and sdist into the folder given, check them, and check that the wheel is under 3 MB.
set -euo pipefail
out=${1:-dist}
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check build twine check-wheel-contents
"$tools/bin/python" -m build --outdir "$out" "$(dirname "$0")/.." >/dev/null
"$tools/bin/twine" check --strict "$out"/*
"$tools/bin/check-wheel-contents" --ignore W002,W009 "$out"/*.whl
for wheel in "$out"/*.whl; do
  bytes=$(wc -c <"$wheel")
  echo "$wheel: $bytes bytes"
  test "$bytes" -lt 3000000
done
