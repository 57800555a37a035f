# `make demo` and `make test` are all a newcomer needs: both make .venv and install into it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: demo test test-all lint bench clean

demo: $(VENV)/.installed  ## run the `digits` experiment: six rules, five seeds
	$(BIN)/python examples/demo.py

test: lint  ## everything that must hold before a commit
	$(BIN)/python -m pytest -m "not slow"

test-all: lint  ## the same, with the long forms
	$(BIN)/python -m pytest

lint: $(VENV)/.installed
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy

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
