# Two commands for a newcomer: `make demo` and `make test`. Both create .venv from this folder alone.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := .venv-peers

# An oracle of the tests. Only its evaluation is used; with its dependencies it would bring PyTorch.
BEIR := beir>=2.2

.DEFAULT_GOAL := help
.PHONY: help demo test check benchmark pace format clean
# Half an environment must not look like a whole one, and two pips must not share one (make -j demo test).
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## show the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP)-demo ## evaluate the bundled example and show its leaderboard
	@"$(BIN)/rankbeam" evaluate examples/helpdesk/experiment.yaml --output out/helpdesk

test: $(STAMP)-dev ## run all tests
	@"$(BIN)/python" -m pytest -n auto

check: $(STAMP)-dev ## linters, types and import floors
	@"$(BIN)/ruff" check .
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/mypy"
	@"$(BIN)/lint-imports"

benchmark: $(STAMP)-demo $(PEERS)/.installed ## measure rankbeam beside other tools (BENCHMARK="--sizes S,L")
	@PEERS_PYTHON="$(PEERS)/bin/python" "$(BIN)/python" tests/benchmarks/run.py $(BENCHMARK)

pace: $(STAMP)-dev ## measure how much of a quota remote calls use (PACE="--only http --calls 500")
	@"$(BIN)/python" tests/benchmarks/calls.py $(PACE)

format: $(STAMP)-dev ## put the code into its standard form
	@"$(BIN)/ruff" check --fix-only --quiet .
	@"$(BIN)/ruff" format .

clean: ## remove the environment and everything that was made
	rm -rf $(VENV) $(PEERS) out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# The environment is made again when pyproject.toml changes, and not otherwise: offline runs need nothing.
$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) is not installed; name another Python 3.11 or newer: make PYTHON=python3" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)

$(STAMP)-demo: pyproject.toml | $(BIN)/python
	@echo "Installing rankbeam into $(VENV) (once, about a minute)"
	@"$(BIN)/python" -m pip install --quiet --editable .
	@touch $@

$(STAMP)-dev: pyproject.toml | $(BIN)/python
	@echo "Installing rankbeam and its development tools into $(VENV) (once, about two minutes)"
	@"$(BIN)/python" -m pip install --quiet --editable ".[dev]"
	@"$(BIN)/python" -m pip install --quiet --no-deps "$(BEIR)"
	@touch $@ $(STAMP)-demo

# The tools have an environment of their own: Beam imports pandas where it is installed, and starts the later for it.
$(PEERS)/.installed: pyproject.toml
	@echo "Installing the tools that rankbeam is measured against into $(PEERS) (once, about two minutes)"
	@"$(PYTHON)" -m venv $(PEERS)
	@"$(PEERS)/bin/python" -m pip install --quiet --editable ".[benchmark]"
	@"$(PEERS)/bin/python" -m pip install --quiet --no-deps "$(BEIR)"
	@touch $@
