# `make` alone prints what there is. Everything happens in .venv, made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := demo

.DEFAULT_GOAL := help
.PHONY: help env demo test test-all lint types check wheel newest docs docs-serve bench deb release clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(STAMP) ## make the environment: .venv with gscope and the tools of development

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "this needs Python 3.11 or later with venv (on Debian: apt-get install python3-venv)"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP) ## a trace generated on the spot, a library query, the answer as a table
	@mkdir -p $(DEMO)
	$(BIN)/python -m benchmarks.demo_trace $(DEMO)/trace.pcap
	$(BIN)/gscope replay $(DEMO)/trace.pcap -q top_talkers -o table

# Three processes for two cores, as tests of live runs wait for most of their time. Each may have a Spark
# session of its own: more would want more memory than a laptop has.
test: $(STAMP) ## run the tests
	$(BIN)/python -m pytest -n 3 --dist worksteal

test-all: $(STAMP) ## run the tests with the cases of their long form
	$(BIN)/python -m pytest -n 3 --dist worksteal -m 'not bench'

lint: $(STAMP) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## check types
	$(BIN)/mypy

check: lint types test ## what continuous integration runs: lint, types, tests

wheel: $(STAMP) ## install the wheel into an empty environment elsewhere and answer a golden case there
	$(BIN)/python tests/project/wheel_check.py

# What leans on private interfaces of numba and pyspark, in an environment with the newest versions that the bounds allow.
NEWEST := .venv-newest
newest: ## test against the newest versions that pyproject.toml allows
	@test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager -e '.[dev]'
	$(NEWEST)/bin/python -m pip list --outdated --disable-pip-version-check
	$(NEWEST)/bin/python -m pytest -n 3 --dist worksteal tests/project/test_dependencies.py tests/capture tests/engine tests/golden tests/fuzz

docs: $(STAMP) ## build the site of the documentation in build/site, with an error for each broken link
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/mkdocs build --strict

docs-serve: docs ## serve the site at http://127.0.0.1:8000/ and rebuild it on each change
	$(BIN)/mkdocs serve

bench: $(STAMP) ## how to run the benchmarks
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@sed -n '1,40p' benchmarks/README.md

deb: ## build the Debian package for this release of Debian, in build/deb
	packaging/build-deb.sh build/deb

release: $(STAMP) ## check, build and compare the files of a release: make release VERSION=1.2.3
	$(BIN)/python packaging/release.py $(VERSION)

clean: ## remove what was made here
	rm -rf $(VENV) $(NEWEST) $(DEMO) build dist benchmarks/out .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
