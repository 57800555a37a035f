# `make demo` and `make test` are all a newcomer needs: both make .venv and install into it first, the
# demo what the library needs, the tests every extra as well.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK ?= # --constraint requirements-ci.txt: the versions that continuous integration tests
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt $(LOCK)

.PHONY: demo test test-all coverage lint browser bench docs clean

demo: $(VENV)/.installed  ## run the `digits` experiment with the default rule among others, five seeds, and write its report
	$(BIN)/python examples/demo.py

# Two processes: a test keeps one core busy, or waits. Each has its half of the files, so that what a file or
# a folder shares is made once, and takes of the other's rest when it is done.
test: lint browser  ## everything that must hold before a commit
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

test-all: lint browser  ## the same, with the long forms
	$(BIN)/python -m pytest

coverage: $(VENV)/.developed browser  ## which lines and branches the tests of `make test` reach; the pages go into htmlcov/
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal --cov --cov-report term --cov-report html

lint: $(VENV)/.developed
	$(BIN)/ruff check src tests examples benchmarks docs
	$(BIN)/ruff format --check src tests examples benchmarks docs
	$(BIN)/mypy

# The report and the labelling page are tested in a real browser. Without one those tests are skipped, and this says so.
browser:  ## chromium, where it can be installed
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		if [ "$$(id -u)" = 0 ]; then as=; else as="sudo -n"; fi; \
		echo "installing chromium, to test the pages in a browser"; \
		{ $$as apt-get update -q; $$as apt-get install -qy chromium; } >/dev/null 2>&1 || \
		echo "*** NO BROWSER: chromium could not be installed, so the browser tests are SKIPPED ***"; }

docs: $(VENV)/.developed  ## the site, into site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: $(VENV)/.benched  ## speed against peers; writes results/acquisition/ and results/scaling/
	$(BIN)/python benchmarks/acquisition.py
	$(BIN)/python benchmarks/scaling.py

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) --editable .
	touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(PIP) --editable ".[dev]"
	touch $@

$(VENV)/.benched: $(VENV)/.installed
	$(PIP) --editable ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist site htmlcov .coverage* .pytest_cache .mypy_cache .ruff_cache
