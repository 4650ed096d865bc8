#!/usr/bin/env bash
# The tests that need other people's frameworks, each in an environment of its own below .venv: verifiers wants an openai
# that Inspect and kbgym's own models do not, and TRL's readers are wanted without torch. The three go side by side. What
# cannot be installed here is named and left out; a test that fails fails this.
set -uf

pip() { "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"; }
try() { # name, tests, what to install, what to install without its dependencies
  place=".venv/research-$1"
  if { [ -x "$place/bin/python" ] || .venv/bin/python -m venv "$place"; } && pip pytest pytest-timeout hypothesis $3 &&
    { [ -z "$4" ] || pip --no-deps $4; }; then
    "$place/bin/python" -m pytest -p no:cacheprovider $2
  else
    echo "research: $1 cannot be installed here; its tests are left out" >&2
  fi
}

try inspect tests/test_inspect.py "-e .[inspect] openai" "" &
running="$!"
try verifiers tests/test_verifiers.py "-e .[verifiers]" "" &
running="$running $!"
try formats tests/test_learning_formats.py "-e . atif datasets jinja2 regex safetensors tokenizers" "trl transformers" &
running="$running $!"
for one in "langchain langchain-core" "llamaindex llama-index-core" "haystack haystack-ai" "dspy dspy"; do
  set -- $one
  try "$1" tests/test_retrievers.py "-e . $2" ""
done &
running="$running $!"
failed=0
for one in $running; do wait "$one" || failed=1; done
exit $failed
