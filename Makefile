# `make demo` and `make test` are all a newcomer needs: both make .venv and install into it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: demo test test-all lint browser bench clean

demo: $(VENV)/.installed  ## run the `digits` experiment, six rules, five seeds, and write its report
	$(BIN)/python examples/demo.py

test: lint browser  ## everything that must hold before a commit
	$(BIN)/python -m pytest -m "not slow"

test-all: lint browser  ## the same, with the long forms
	$(BIN)/python -m pytest

lint: $(VENV)/.installed
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy

# The report and the labelling page are tested in a real browser. Without one those tests are skipped, and this says so.
browser:  ## chromium, where it can be installed
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		if [ "$$(id -u)" = 0 ]; then as=; else as="sudo -n"; fi; \
		echo "installing chromium, to test the pages in a browser"; \
		{ $$as apt-get update -q; $$as apt-get install -qy chromium; } >/dev/null 2>&1 || \
		echo "*** NO BROWSER: chromium could not be installed, so the browser tests are SKIPPED ***"; }

bench: $(VENV)/.benched  ## speed against peers; writes results/acquisition/
	$(BIN)/python benchmarks/acquisition.py

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) --editable ".[dev]"
	touch $@

$(VENV)/.benched: $(VENV)/.installed
	$(PIP) --editable ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
