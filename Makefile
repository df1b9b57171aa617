# Every target sets up what it needs in .venv; nothing has to be installed by hand but Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready
DOCS_READY := $(VENV)/.docs-ready
# Two workers begin at the two halves of the tests, and who is done takes over from the other. Bytecode is kept even
# where the environment forbids it: the tests start many programs.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist worksteal --durations 25

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-lowest mutants lint audit fuzz bench docs constraints clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@echo "Setting up kinfolk and its tools in $(VENV) (once; about a minute) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kinfolk needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,assistant,postgresql,text,audio]'
	@touch $@

$(BENCH_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,assistant,postgresql,text,audio,bench]'
	@touch $@

$(DOCS_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,assistant,postgresql,text,audio,docs]'
	@touch $@

demo: $(READY) ## Fit the sharing models to a made-up team of 21 people; prints tables, writes a picture
	$(BIN)/kinfolk demo

test: $(READY) ## Run the tests (under ten minutes on two cores)
	$(BIN)/kinfolk warm-up
	$(PYTEST) -m "not slow"

test-slow: $(READY) ## Run the long statistical checks as well
	$(BIN)/kinfolk warm-up
	$(PYTEST) --timeout 3600

test-lowest: ## Run the tests of the library with the oldest versions of its dependencies that are allowed
	$(PYTHON) -m venv .venv-lowest
	($(PYTHON) scripts/lowest.py duckdb; echo pandas==2.2.2; grep -E '^(pytest|hypothesis|mpmath)' constraints.txt) > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-lowest/constraints.txt \
		--editable '.[duckdb]' pandas hypothesis mpmath pytest pytest-timeout pytest-xdist
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-lowest/kernels .venv-lowest/bin/python -m pytest -n 2 --dist worksteal -m "not slow" \
		-o filterwarnings= --ignore tests/assistant --ignore src/kinfolk_assistant

mutants: $(READY) ## Change small things in the code and see whether a test notices (hours; goes on where it stopped)
	$(BIN)/python -m scripts.mutants cover .mutants
	$(BIN)/python -m scripts.mutants run .mutants
	$(BIN)/python -m scripts.mutants report .mutants

lint: $(READY) ## Check style, types and the direction of imports
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: ## Ask for known vulnerabilities of all versions in constraints.txt; ends with an error where there is one, or nobody answers
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.venv-audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --strict --progress-spinner off

FUZZ_EXECUTIONS ?= 20000
fuzz: ## Fuzz all that reads other people's files, FUZZ_EXECUTIONS each; inputs and findings are kept in .fuzz
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[assistant,audio]'
	.venv-fuzz/bin/python -m pip install --quiet --disable-pip-version-check atheris || echo "atheris does not install here: seeds are changed at random"
	for target in load bif icalendar csv parquet sound; do .venv-fuzz/bin/python -m scripts.fuzz $$target $(FUZZ_EXECUTIONS) || exit 1; done

bench: $(BENCH_READY) ## Compare speed with named peers (bench/RESULTS.md), and ten minutes of few rows a task (bench/FEWSHOT.md)
	$(BIN)/python -m bench
	$(BIN)/python -m bench fewshot --minutes 10

docs: $(DOCS_READY) ## Build the documentation in docs/_build/html; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean: ## Remove what the other targets made
	rm -rf $(VENV) .venv-lowest .venv-audit .venv-fuzz .mutants docs/_build docs/api docs/pictures .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
