# Two commands for a newcomer: `make demo` and `make test`. Both create .venv from this folder alone.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := .venv-peers
EMULATORS := .venv-emulators
MODELS = $(CACHE)/models
EMULATED := tests/support/emulators/requirements.txt
ADK := .venv-adk
AIRFLOW := .venv-airflow
NOTEBOOKS := .venv-notebooks
NOTEBOOKS_NEED := tests/support/notebooks/requirements.txt
GO_MODULE := tests/support/emulators/go
GO_PROGRAM := github.com/goccy/bigquery-emulator
GO_VERSION = $(shell sed -n 's|.*$(GO_PROGRAM) \(v[0-9.]*\).*|\1|p' $(GO_MODULE)/go.mod)
CACHE = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rankbeam
GO_EMULATOR = $(CACHE)/bigquery-emulator-$(GO_VERSION)
AXE_VERSION := 4.14.1
AXE = $(CACHE)/axe
FLINK_VERSION := 1.19.3
FLINK := $(CACHE)/flink-$(FLINK_VERSION)
JOB_SERVER := $(FLINK)/job-server-2.62.0.jar
PRISM_PROGRAM := github.com/apache/beam/sdks/v2/go/cmd/prism
PRISM := $(CACHE)/prism-v2.77.0

# uv installs in seconds what takes pip minutes, from a cache that all clones of a user share. It is used where it is
# installed; if it fails, because only pip is configured for a mirror, pip follows. Compiling all modules would take pip as
# long as installing them (76 s without, 169 s with it), and Python compiles those that it imports anyway.
UV := $(shell command -v uv)
install = $(if $(UV),"$(UV)" pip install --quiet --python "$(1)" $(2) 2>/dev/null || )"$(1)" -m pip install --quiet --disable-pip-version-check --no-compile $(2)

CAMPAIGN_SEED := $(or $(CAMPAIGN_SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))

# An oracle of the tests. They use only its evaluation, so its dependencies, such as PyTorch, are not installed.
BEIR := beir>=2.2

.DEFAULT_GOAL := help
.PHONY: help environments demo test campaign check benchmark pace intervals simulate races mutants notebooks flink flink-test adk-test airflow-test docs deploy-files picture format clean go-emulator axe flink-jars prism models
# A failed installation must not look complete, and two pips must not share one environment (make -j demo test).
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## show the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP)-demo ## evaluate the bundled example and show its leaderboard
	@"$(BIN)/rankbeam" evaluate examples/helpdesk/answers.yaml --output out/helpdesk
	@if "$(BIN)/rankbeam" validate examples/helpdesk/dense.yaml >/dev/null 2>&1; then \
		"$(BIN)/rankbeam" evaluate examples/helpdesk/dense.yaml --output out/helpdesk-dense; \
	fi

test: environments ## run all tests but long ones and campaigns: some minutes
	@"$(BIN)/python" -m pytest -n auto -m "not (campaign or long)"

# Long tests in their order, then campaigns, then laws: where time runs out, whole runs have been tried.
campaign: environments ## run the tests that take long, and all laws with five times the examples, new ones each time
	@echo "The seed is $(CAMPAIGN_SEED); CAMPAIGN_SEED=$(CAMPAIGN_SEED) make campaign tries the same examples again"
	@"$(BIN)/python" -m pytest -n auto --dist=load --maxschedchunk=1 -m "long or campaign or hypothesis" --hypothesis-profile=campaign --hypothesis-seed=$(CAMPAIGN_SEED) tests

check: $(STAMP)-dev ## linters, types, import floors and plain English
	@"$(BIN)/ruff" check .
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/mypy"
	@"$(BIN)/lint-imports"
	@"$(BIN)/python" tests/support/english.py

benchmark: $(STAMP)-demo $(PEERS)/.installed ## measure rankbeam beside other tools (BENCHMARK="--sizes S,L")
	@PEERS_PYTHON="$(PEERS)/bin/python" "$(BIN)/python" tests/benchmarks/run.py $(BENCHMARK)

pace: $(STAMP)-dev ## measure how much of a quota remote calls use (PACE="--only http --calls 500")
	@"$(BIN)/python" tests/benchmarks/calls.py $(PACE)

intervals: $(STAMP)-dev ## measure what intervals and comparisons cost (INTERVALS="--queries 100000")
	@"$(BIN)/python" tests/benchmarks/intervals.py $(INTERVALS)

simulate: $(STAMP)-dev ## count how often intervals hold the true mean (SIMULATE="--queries 50 --only RR")
	@"$(BIN)/python" tests/benchmarks/simulate.py $(SIMULATE)

races: $(STAMP)-dev ## count how often a race keeps the best configuration (RACES="--repetitions 100 --only binary")
	@"$(BIN)/python" tests/benchmarks/races.py $(RACES)

mutants: environments ## count how many mutants the tests kill (MUTANTS="--each 20 transforms/kernels")
	@"$(BIN)/python" tests/benchmarks/mutants.py $(MUTANTS)

notebooks: $(STAMP)-dev $(NOTEBOOKS)/.installed ## run the tests of notebooks in Jupyter, without pandas, with pandas 2 and with pandas 3
	@"$(BIN)/python" -m pytest -n 0 tests/endtoend/test_notebooks.py

flink: $(STAMP)-dev flink-jars ## run the demo on a Flink cluster of this machine: JobManager, two TaskManagers, workers
	@cd tests && "../$(BIN)/python" -m support.flink

flink-test: $(STAMP)-dev flink-jars prism ## run the tests on a Flink cluster and on Prism, which campaign runs once these are fetched
	@CAMPAIGN_SHARE=1 "$(BIN)/python" -m pytest -n 0 -m campaign tests/endtoend/test_engines.py \
		tests/endtoend/test_flink.py tests/endtoend/test_prism.py

adk-test: $(STAMP)-dev $(ADK)/.installed ## let google-adk's own loader read an exported benchmark, which campaign does once this was run
	@"$(BIN)/python" -m pytest -n 0 -m campaign tests/endtoend/test_goldens_adk.py

airflow-test: $(STAMP)-dev $(AIRFLOW)/.installed ## let Airflow run the nightly DAG, which campaign does once this was run
	@"$(BIN)/python" -m pytest -n 0 -m campaign tests/endtoend/test_airflow.py

docs: $(STAMP)-dev ## build the site of docs/ in out/site; a broken link or anchor is an error
	@"$(BIN)/properdocs" build --quiet --strict --config-file mkdocs.yml

deploy-files: $(STAMP)-dev ## write what deploy/ has of the tables: Terraform's schemas and alerts, DuckDB's views, Looker's columns
	@"$(BIN)/python" tests/support/deploy_files.py

picture: $(STAMP)-dev demo ## take the picture of the report for the README, with Chromium
	@"$(BIN)/python" tests/support/picture.py out/helpdesk/report.html docs/report.webp

format: $(STAMP)-dev ## put the code into its standard form
	@"$(BIN)/ruff" check --fix-only --quiet .
	@"$(BIN)/ruff" format .

clean: ## remove the environments and all generated files
	rm -rf $(VENV) $(PEERS) $(EMULATORS) $(ADK) $(AIRFLOW) $(NOTEBOOKS) out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Where a container sets it, every process of the tests would compile all modules, and rewrite all tests, for itself.
export PYTHONDONTWRITEBYTECODE :=

# The tests need three environments, a program in Go and small models. Each waits for the network most of its time, so all
# are installed at once. Each has its own make, so that two pips never share an environment.
environments:
	@$(MAKE) --silent go-emulator & $(MAKE) --silent axe & $(MAKE) --silent models & $(MAKE) --silent $(EMULATORS)/.installed & $(MAKE) --silent $(NOTEBOOKS)/.installed & $(MAKE) --silent $(STAMP)-dev; \
		status=$$?; wait; exit $$status

# The environment is updated only when pyproject.toml changes; all other runs work offline. `activate` comes last into it,
# by venv as by uv: one without it was interrupted.
$(BIN)/activate:
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) is not installed; name another Python 3.11 or newer: make PYTHON=python3" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)

$(STAMP)-demo: pyproject.toml | $(BIN)/activate
	@echo "Installing rankbeam into $(VENV) (once, about a minute)"
	@$(call install,$(BIN)/python,--editable .)
	@touch $@

$(STAMP)-dev: pyproject.toml | $(BIN)/activate
	@echo "Installing rankbeam and its development tools into $(VENV) (once, about two minutes)"
	@$(call install,$(BIN)/python,--editable ".[dev]")
	@$(call install,$(BIN)/python,--no-deps "$(BEIR)")
	@touch $@ $(STAMP)-demo

# The other tools have an environment of their own: Beam imports pandas where it is installed, and then starts slower.
$(PEERS)/.installed: pyproject.toml
	@echo "Installing the tools that rankbeam is measured against into $(PEERS) (once, about two minutes)"
	@"$(PYTHON)" -m venv $(PEERS)
	@$(call install,$(PEERS)/bin/python,--editable ".[benchmark]")
	@$(call install,$(PEERS)/bin/python,--no-deps "$(BEIR)")
	@touch $@

$(ADK)/.installed: tests/support/adk/requirements.txt
	@echo "Installing google-adk into $(ADK) (once, about a minute)"
	@"$(PYTHON)" -m venv $(ADK)
	@$(call install,$(ADK)/bin/python,--requirement $<)
	@touch $@

$(AIRFLOW)/.installed: tests/support/airflow/requirements.txt
	@echo "Installing Airflow into $(AIRFLOW) (once, some minutes)"
	@"$(PYTHON)" -m venv $(AIRFLOW)
	@$(call install,$(AIRFLOW)/bin/python,--requirement $<)
	@touch $@

# Emulators need other versions of packages than rankbeam. Without them `make test` skips the tests that need them, with
# the reason; in CI those tests fail. DuckDB's extensions come from PyPI here, and DuckDB looks for them below HOME.
$(EMULATORS)/.installed: $(EMULATED) $(wildcard $(GO_MODULE)/go.sum)
	@echo "Installing emulators of Google's services into $(EMULATORS) (once, about a minute)"
	@rm -rf $(EMULATORS) && mkdir $(EMULATORS)
	@{ "$(PYTHON)" -m venv $(EMULATORS) \
		&& { $(call install,$(EMULATORS)/bin/python,--requirement $(EMULATED)); } \
		&& HOME="$(CURDIR)/$(EMULATORS)" "$(EMULATORS)/bin/python" -c \
			'import duckdb_extensions as d; d.import_extension("spatial"); d.import_extension("avro")'; \
	} >$(EMULATORS)/install.log 2>&1 && touch $@ \
		|| { echo "The emulators could not be installed; the tests that need them will not run:"; tail -1 $(EMULATORS)/install.log; } >&2

# Jupyter's kernel and two versions of pandas, beside .venv: rankbeam must work without them, so .venv has none of them.
$(NOTEBOOKS)/.installed: $(NOTEBOOKS_NEED)
	@echo "Installing Jupyter's kernel into $(NOTEBOOKS) (once, some seconds)"
	@rm -rf $(NOTEBOOKS) && mkdir $(NOTEBOOKS)
	@{ "$(PYTHON)" -m venv $(NOTEBOOKS) \
		&& { $(call install,$(NOTEBOOKS)/bin/python,--requirement $<); } \
		&& { $(call install,$(NOTEBOOKS)/bin/python,--no-deps --target $(NOTEBOOKS)/pandas2 --requirement $(dir $<)pandas2.txt); } \
		&& { $(call install,$(NOTEBOOKS)/bin/python,--no-deps --target $(NOTEBOOKS)/pandas3 --requirement $(dir $<)pandas3.txt); } \
	} >$(NOTEBOOKS)/install.log 2>&1 && touch $@ \
		|| { echo "It could not be installed; the tests that need it will not run:"; tail -1 $(NOTEBOOKS)/install.log; } >&2

# Another emulator of BigQuery, which parses SQL as BigQuery does. It is built once per machine, if Go is installed.
go-emulator:
	@if [ -x "$(GO_EMULATOR)" ] || ! command -v go >/dev/null; then exit 0; fi; \
		echo "Building $(GO_PROGRAM) into $(GO_EMULATOR) (once, some minutes)"; \
		mkdir -p "$$(dirname "$(GO_EMULATOR)")" \
		&& CGO_ENABLED=0 go build -C $(GO_MODULE) -o "$(GO_EMULATOR).part" $(GO_PROGRAM)/cmd/bigquery-emulator \
		&& mv "$(GO_EMULATOR).part" "$(GO_EMULATOR)" \
		|| echo "It could not be built; the tests that need it will be skipped" >&2

# axe-core checks whether people can use pages. It is installed once per machine, if there is npm.
axe:
	@if [ -f "$(AXE)/node_modules/axe-core/axe.min.js" ] || ! command -v npm >/dev/null; then exit 0; fi; \
		echo "Installing axe-core into $(AXE) (once)"; \
		mkdir -p "$(AXE)" && npm install --silent --no-audit --no-fund --prefix "$(AXE)" axe-core@$(AXE_VERSION) >&2 \
		|| echo "It could not be installed; the tests that need it will be skipped" >&2

# Flink comes from PyPI, Beam's job server from a Maven registry; both lie in the cache, once per machine.
flink-jars: $(STAMP)-dev
	@if ls "$(FLINK)"/lib/flink-dist-*.jar "$(JOB_SERVER)" >/dev/null 2>&1; then exit 0; fi; \
		command -v java >/dev/null && command -v mvn >/dev/null || { echo "Flink needs Java and Maven" >&2; exit 1; }; \
		echo "Fetching Flink $(FLINK_VERSION) and Beam's job server into $(FLINK) (once, 400 MB, some minutes)"; \
		rm -rf "$(FLINK).part" && mkdir -p "$(FLINK).part/lib" && cd "$(FLINK).part" \
		&& "$(CURDIR)/$(BIN)/python" -m pip download --quiet --no-deps --no-build-isolation --dest . \
			apache-flink-libraries==$(FLINK_VERSION) \
		&& tar xzf apache-flink-libraries-$(FLINK_VERSION).tar.gz --strip-components=3 --directory lib \
			--wildcards '*/deps/lib/*.jar' \
		&& mvn --quiet --batch-mode --file "$(CURDIR)/tests/support/flink/pom.xml" -Dout="$$PWD/build" package \
		&& mv build/flink-job-server-2.62.0.jar "$(notdir $(JOB_SERVER))" && rm -rf build *.tar.gz \
		&& rm -rf "$(FLINK)" && mv "$(FLINK).part" "$(FLINK)"

# Two small embedding models, which jars of LangChain4j hold, once per machine, if Maven is installed (40 MB).
models:
	@command -v mvn >/dev/null || exit 0; mkdir -p "$(MODELS)" && for name in all-minilm-l6-v2-q e5-small-v2-q; do \
		if [ -d "$(MODELS)/$$name" ]; then continue; fi; part="$(MODELS)/.$$name.part"; rm -rf "$$part"; \
		echo "Fetching the model $$name into $(MODELS) (once)"; \
		mvn --quiet --batch-mode dependency:copy -DoutputDirectory="$$part" \
			-Dartifact=dev.langchain4j:langchain4j-embeddings-$$name:0.36.2 >/dev/null 2>&1 \
			&& "$(PYTHON)" -m zipfile -e "$$part"/*.jar "$$part/jar" && mkdir "$$part/model" \
			&& mv "$$part/jar/$$name.onnx" "$$part/model/model.onnx" \
			&& mv "$$part/jar/$$name-tokenizer.json" "$$part/model/tokenizer.json" \
			&& mv "$$part/model" "$(MODELS)/$$name" \
			|| echo "It could not be fetched; the tests that need it will be skipped" >&2; rm -rf "$$part"; \
	done

prism:
	@if [ -x "$(PRISM)" ] || ! command -v go >/dev/null; then exit 0; fi; \
		echo "Building Beam's Prism into $(PRISM) (once, some minutes)"; \
		mkdir -p "$(CACHE)/prism.part" && CGO_ENABLED=0 GOBIN="$(CACHE)/prism.part" go install $(PRISM_PROGRAM)@v2.77.0 \
		&& mv "$(CACHE)/prism.part/prism" "$(PRISM)" && rmdir "$(CACHE)/prism.part" \
		|| echo "It could not be built; the tests that need it will be skipped" >&2
