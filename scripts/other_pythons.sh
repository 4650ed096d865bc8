#!/usr/bin/env bash
# Small environments for the other Pythons on this machine, with what generating a world needs; prints their paths,
# separated by colons, for KBGYM_PYTHONS. A version that is not here, or cannot be set up, is left out and named.
set -u

found=()
for version in 3.12 3.13 3.14; do
  for python in "python$version" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
    "$python" -c 'import sys' >/dev/null 2>&1 || continue
    place=".venv/python-$version"
    if { [ -x "$place/bin/python" ] || "$python" -m venv "$place"; } >/dev/null 2>&1 &&
      "$place/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt click msgspec rich >/dev/null 2>&1; then
      found+=("$PWD/$place/bin/python")
      continue 2
    fi
  done
  echo "other Pythons: no $version; its test will skip" >&2
done
(IFS=:; echo "${found[*]-}")
