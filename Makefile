# Everything a newcomer needs; `make` prints this list.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder -q
# What breaks first when something breaks; all that is not slow would take several minutes.
QUICK := decisions settings architecture telemetry tasks reference test_vault.py $(addprefix roles/,router orchestrator worker task_worker)
# Under fire, one after the other: what waits for a processor looks like what is dead.
ALONE := $(BIN)/python -m pytest -q tests/chaos tests/machines tests/scenarios/tasks

.DEFAULT_GOAL := help
.PHONY: help setup servers demo test test-fast test-full chaos check bench bench-quick docs release-check lock clean

help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

setup: $(READY) ## Make .venv with everything in it

$(READY): requirements/dev.lock pyproject.toml
	@bash scripts/make-venv $(VENV)
	@touch $@

servers: ## Install MariaDB, PgBouncer, nginx and Chromium for the tests, where that is possible and needed
	@bash scripts/install-servers

demo: setup ## Run the product's main job on a throwaway database; ends by itself
	@$(BIN)/tidings demo

test: setup servers ## All tests on PostgreSQL and MariaDB, but those that need a million rows
	@$(PYTEST) -m "not full and not alone"
	@$(ALONE) -m "alone and not full"

test-fast: setup servers ## The rules, and the roles at work on both engines, in under a minute
	@$(PYTEST) -n 2 -m "not full and not slow" $(addprefix tests/,$(QUICK))

test-full: setup servers ## All tests, also those that need minutes or millions of rows
	@$(PYTEST) -m "not alone"
	@$(ALONE) -m "alone"

TIER ?= commit
SEED ?= 1
chaos: setup servers ## Real processes under fire on both engines, judged by a checker of its own: TIER=commit SEED=1
	@$(BIN)/python -m tests.chaos --engine postgresql --tier $(TIER) --seed $(SEED)
	@$(BIN)/python -m tests.chaos --engine mariadb --tier $(TIER) --seed $(SEED)

check: setup ## Lint, format, types, spelling, generated docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/codespell $(filter-out README.zh-Hant.md,$(wildcard *.md)) docs src tests bench examples scripts
	@$(BIN)/python -m tidings.reference --check docs/reference

bench: setup servers ## Measure everything on both engines, with limits and peers; takes more than an hour. ONLY="deliver growth"
	@$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY))

bench-quick: setup servers ## Two minutes: fail if something got slower than its target, by ratios in one run
	@$(BIN)/python -m bench.quick

docs: setup ## Make the generated pages of docs/reference anew, and the site, with a strict check of links
	@$(BIN)/python -m tidings.reference docs/reference
	@$(BIN)/python -m mkdocs --quiet build --strict --clean && echo "The site is in site/."

release-check: setup ## Build sdist and wheel; on each Python at hand install them into an empty environment and run the demo
	@$(BIN)/python scripts/release-check

lock: setup ## Make requirements/dev.lock anew from pyproject.toml
	@$(BIN)/pip install -q uv
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	    pyproject.toml --group dev -o requirements/dev.lock

clean: ## Remove what was made here
	@rm -rf $(VENV) dist build site pictures .mypy_cache .ruff_cache .hypothesis
