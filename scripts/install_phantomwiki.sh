#!/bin/sh
# Installs PhantomWiki's generator into a Python environment: scripts/install_phantomwiki.sh [PYTHON]
# The wheel asks for Python 3.12 but runs on 3.11; its declared dependencies drag in far more than generating needs.
set -eu
python="${1:-python3}"

if ! command -v swipl > /dev/null; then
    echo "SWI-Prolog is missing. Debian and Ubuntu: apt-get install swi-prolog-nox. macOS: brew install swi-prolog." >&2
    exit 1
fi
"$python" -m pip install --no-deps --ignore-requires-python phantom-wiki==1.0.3
"$python" -m pip install networkx nltk numpy pandas pydot pyswip tabulate termcolor tqdm
"$("$python" -c 'import sys; from pathlib import Path; print(Path(sys.executable).parent)')/pw-generate" --help > /dev/null
echo "pw-generate works. Next: see kbgym import phantomwiki --help"
