# Everything a newcomer needs; `make` prints this list.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadscope -q

.DEFAULT_GOAL := help
.PHONY: help setup servers demo test test-fast test-full chaos check bench docs lock clean

help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

setup: $(READY) ## Make .venv with everything in it

$(READY): requirements/dev.lock pyproject.toml
	@bash scripts/make-venv $(VENV)
	@touch $@

servers: ## Install MariaDB, nginx and Chromium for the tests, where that is possible and needed
	@bash scripts/install-servers

demo: setup ## Run the product's main job on a throwaway database; ends by itself
	@$(BIN)/tidings demo

test: setup servers ## All tests on PostgreSQL and MariaDB, but those that need a million rows
	@$(PYTEST) -m "not full"

test-fast: setup servers ## The quick tests, in under a minute
	@$(PYTEST) -n 2 -m "not full and not slow" $(addprefix --ignore tests/,scenarios plans faults packaging courier)

test-full: setup servers ## All tests, also those that need minutes or millions of rows
	@$(PYTEST)

TIER ?= commit
SEED ?= 1
chaos: setup servers ## Real processes under fire on both engines, judged by a checker of its own: TIER=commit SEED=1
	@$(BIN)/python -m tests.chaos --engine postgresql --tier $(TIER) --seed $(SEED)
	@$(BIN)/python -m tests.chaos --engine mariadb --tier $(TIER) --seed $(SEED)

check: setup ## Lint, format, types, spelling, generated docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/codespell README.md CHANGELOG.md ARCHITECTURE.md docs src tests bench
	@$(BIN)/python -m tidings.reference --check docs/reference

bench: setup servers ## Measure guards, publishing, routing, sending, whole deliveries, tasks and the console, on both engines
	@$(BIN)/python -m bench.guards
	@$(BIN)/python -m bench.ingest
	@$(BIN)/python -m bench.routing
	@$(BIN)/python -m bench.courier
	@$(BIN)/python -m bench.deliver
	@$(BIN)/python -m bench.noisy
	@$(BIN)/python -m bench.tasks
	@$(BIN)/python -m bench.console

docs: setup ## Make the generated pages of docs/reference anew
	@$(BIN)/python -m tidings.reference docs/reference

lock: setup ## Make requirements/dev.lock anew from pyproject.toml
	@$(BIN)/pip install -q uv
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	    pyproject.toml --group dev -o requirements/dev.lock

clean: ## Remove what was made here
	@rm -rf $(VENV) dist build pictures .mypy_cache .ruff_cache .hypothesis
