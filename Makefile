# Each target sets up what it needs: a virtual environment with pinned versions and, where no Java is found, a JDK.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := tools/run
READY := $(VENV)/.ready
BENCH := $(VENV)/.bench

.DEFAULT_GOAL := help
.PHONY: help demo explorer bench-explorer test test-fast test-kafka test-browser check check-page fuzz prove bench-backward bench-overhead bench-live bench-keys bench-reduce clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@tools/find-java >/dev/null 2>&1 || tools/install-java
	@touch $@

$(BENCH): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]' || echo "continuing without psycopg"
	@touch $@

demo: $(READY) ## stream Linear Road reports, then ask why an accident alert was raised
	@$(RUN) python -m clew demo --folder build/demo

explorer: $(READY) ## show the demo store in a browser; it is built if it is not there
	@test -f build/demo/prov/clew.json || $(RUN) python -m clew demo --folder build/demo
	@$(RUN) python -m clew explore build/demo/prov

test: $(READY) ## run all tests
	@$(RUN) python -m pytest -n 2 --dist loadfile

test-fast: $(READY) ## run the tests that need no Spark
	@$(RUN) python -m pytest -n 2 --dist worksteal --no-spark

test-kafka: $(READY) ## run the tests that need Kafka, against a broker of their own
	@$(RUN) tools/test-kafka

test-browser: $(READY) ## drive the explorer's page with Debian's Chromium, and take its pictures
	@$(RUN) tools/test-browser

check: $(READY) ## format, lint, types
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy

check-page: ## check the types of the explorer's page with TypeScript, which Node runs
	@tools/check-page

fuzz: $(READY) ## feed damaged edges, PROV, conditions and stores to what reads them; SECONDS=60 for all together, SEED=1 for the same again
	@PYTHONPATH=tests $(RUN) python -m fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

prove: $(READY) ## prove answers against models, papers and real data; QUICK=1 for a sample
	@$(RUN) python tests/prove.py $(if $(QUICK),--quick)

bench-backward: $(READY) ## how fast one row is traced in a store of a million edges
	@$(RUN) python benchmarks/backward.py $(if $(QUICK),--quick)

bench-overhead: $(READY) ## what provenance costs a running query, in time, CPU and bytes; QUICK=1 for a sample
	@$(RUN) python -m benchmarks.overhead $(if $(QUICK),--quick)

bench-live: $(BENCH) ## what a live graph costs the queries it follows, beside databases that are polled; QUICK=1 for a sample
	@$(RUN) python -m benchmarks.live $(if $(QUICK),--quick)

bench-keys: $(READY) ## what recording keys costs: storage, rate, memory, latency; QUICK=1 for a sample
	@$(RUN) python -m benchmarks.keys $(if $(QUICK),--quick)

bench-reduce: $(READY) ## what is left of the provenance of other systems, how fast, how exact; QUICK=1 for a sample
	@$(RUN) python -m benchmarks.reduce $(if $(QUICK),--quick)

bench-explorer: $(READY) ## how long the explorer takes to answer Why? in a store of five million edges; QUICK=1 for a sample
	@$(RUN) python -m benchmarks.explorer $(if $(QUICK),--quick)

clean: ## remove the environment and what tests left
	rm -rf $(VENV) .mypy_cache .ruff_cache build dist
