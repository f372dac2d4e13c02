# Each command works alone on a fresh clone: it makes the environment, installs, and runs.
PYTHON ?= python3
BIN := .venv/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint docs clean

demo: .venv/installed
	$(BIN)/tacit demo --force

test: .venv/installed-dev lint
	$(BIN)/python -m pytest

lint: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed-dev # into site/, to be read there or with any web server
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable .
	touch $@

.venv/installed-dev: .venv/installed bench/pyproject.toml
	$(BIN)/pip install --quiet --editable ".[all,bench,dev,docs]" --editable bench
	touch $@

clean:
	rm -rf .venv build site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
