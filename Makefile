# Everything a fresh clone needs: `make demo` and `make test` set themselves up.
# `make` alone prints what each target does.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Every process that a test starts would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	@touch $(READY)

setup: $(READY) ## make a virtual environment with everything in it

check: setup ## lint, types and layer rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

PYTEST := $(BIN)/pytest --quiet --numprocesses 2 --dist loadfile

test: SHARD ?= next
test: check ## everything CI runs: checks, all tests but the slow ones, one shard of those
	$(PYTEST)
	$(PYTEST) -m slow --shard=$(SHARD)

# Of a test with parameters the first, of a property a few cases: all functions, less of each.
test-quick: setup ## while you work: no Spark, no Kafka, no PostgreSQL, fewer cases
	$(PYTEST) -m "not slow and not spark and not kafka and not postgres" \
		--variants=1 --hypothesis-profile=few

test-slow: setup ## the slow tests: all, or one shard of them (SHARD=3/89)
	$(BIN)/pytest --quiet -m slow $(if $(SHARD),--shard=$(SHARD))

net: setup ## 100 thousand random queries against PostgreSQL, for hours
	$(BIN)/pytest --quiet -m slow tests/net

bench: setup ## print the benchmark tables (kept in docs/performance.md)
	$(BIN)/python -m benchmarks

docs: setup ## build the documentation as a site, in build/site
	$(BIN)/mkdocs build --strict --quiet
	@echo build/site/index.html

demo: setup ## a bank on a real Kafka: killed again and again, every number verified
	$(BIN)/reclock demo

clean: ## remove the virtual environment, caches and local state
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist

.PHONY: help setup check test test-quick test-slow net bench docs demo clean
