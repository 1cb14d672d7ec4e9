# Everything a person types here needs only python3 and java; the rest goes into .venv: for demo,
# live and docs what these run, for all else the tools of development as well.
# Variables: PYTHON (interpreter for .venv), COUNT, KEEP and DEMO (demo), RATE and MINUTES (live),
# DOCS_PORT (docs), DASHBOARD_PORT (dashboard), WORKERS (test), TABLE, TOPIC, KEY and DOMAIN (new-captured),
# STREAM, TOPIC, CSV, KEY and DOMAIN (new-stream), SPARK (cluster-archive).

PYTHON ?= python3
DOCS_PORT ?= 8080
DASHBOARD_PORT ?= 8501

# A Spark or a Python of another project must not leak into this one.
unexport SPARK_HOME PYTHONPATH PYTHONHOME

# Tests start hundreds of programs: what Python compiles is kept.
unexport PYTHONDONTWRITEBYTECODE

# Paths are relative everywhere: make cannot handle a checkout whose path has a blank.
BIN := .venv/bin
WITH_VENV := PATH="$$PWD/$(BIN):$$PATH"
# Scripts of a virtual environment hold its absolute path: a moved checkout needs a new one.
MOVED := $(shell [ ! -f .venv/.place ] || [ "$$(cat .venv/.place)" = "$$(pwd -P)" ] || echo moved)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON_FIX := Millrace needs Python 3.11 or newer: install one and name it, like `make PYTHON=python3.12 install`
JAVA_FIX := Millrace needs a JDK 17 or 21: install one and put its `java` on PATH (or set JAVA_HOME)

# Two programs at work keep two cores busy: a test waits for its services most of the time.
WORKERS ?= 2
IN_WORKERS := -n '$(WORKERS)' --dist loadfile --no-loadscope-reorder

LOCKING := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
# What is not installed beside dbt and Spark: Airflow, other versions of dbt.
APART := deploy/airflow/requirements.in $(wildcard tests/python/platform/locks/*.in)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo live dashboard test test-all test-long test-fast test-dashboard test-platform fault-table render parity lint lint-python lint-dbt format new-captured new-stream cluster-archive docs docs-static bench bench-increments bench-histories bench-cdc bench-dashboard lock clean java moved

help: ## Show this help
	@echo 'Usage: make TARGET [VARIABLE=value]'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' Makefile

install: .venv/.installed ## Make .venv from requirements.lock and point its Spark at the lake
	@echo 'Ready. Activate it with: . .venv/bin/activate'

demo: java .venv/.demo-installed ## Run the whole way once, Kafka to docs (COUNT=n events, KEEP=1 leaves it running, DEMO=tickit: databases)
	@$(WITH_VENV) sandbox demo $(if $(DEMO),'$(DEMO)') $(if $(COUNT),--count '$(COUNT)') $(if $(filter-out 0 no false,$(KEEP)),--keep)

live: java .venv/.demo-installed ## Keep the marts up to date while events come, until Ctrl-C (RATE=n/s, MINUTES=n)
	@$(WITH_VENV) sandbox live $(if $(RATE),--rate '$(RATE)') $(if $(MINUTES),--minutes '$(MINUTES)')

test: java .venv/.installed ## Run the tests of every change: unit, Spark, real services (WORKERS=n)
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) pytest -m 'not nightly and not long and not all_models and not fetches' $(IN_WORKERS)

test-all: java .venv/.installed ## Run these and the nightly tests: random rounds, what rarely changes (WORKERS=n)
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) pytest -m 'not long and not all_models and not fetches' $(IN_WORKERS)

test-long: java .venv/.installed ## Run the tests that take minutes each: many kills, long loads
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) pytest -m long

test-platform: java .venv/.installed ## Run the scheduled jobs with each version of dbt and by Airflow, and a cluster with Spark 4.0 (fetches packages; an hour)
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) pytest -m fetches

test-dashboard: java .venv/.installed .venv/.dashboard-packages ## Open each page of the dashboard in a browser, and compare it with Spark
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) pytest tests/python/unit/dashboard tests/python/stack/test_dashboard.py tests/python/stack/test_dashboard_pages.py tests/python/stack/test_bench_dashboard.py

fault-table: java .venv/.installed ## Kill, cut off and starve streams, and write what came of it into docs/ingest.md
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) python -m tests.python.fault

test-fast: .venv/.installed ## Run the unit tests: no JVM, under a minute
	@$(WITH_VENV) pytest -m unit $(IN_WORKERS) tests/python/unit

render: java .venv/.installed ## Render all SQL for both engines, with no server, and check it
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) pytest -q -m render tests/python/render

parity: java .venv/.installed ## Build all models and analyses on Spark and on the Redshift emulator, and compare every cell
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) pytest -q -m all_models tests/python/parity

lint: .venv/.installed ## Check Python, SQL, YAML and the rules of the dbt project
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-dbt lint-python

lint-python:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/yamllint --strict .

lint-dbt:
	$(BIN)/dbt --quiet --warn-error parse --no-partial-parse
	$(BIN)/dbt-bouncer
	@# Its process pool leaves a semaphore, which Python would report at the end.
	PYTHONWARNINGS='ignore:resource_tracker:UserWarning' $(BIN)/sqlfluff lint
	PYTHONWARNINGS='ignore:resource_tracker:UserWarning' $(BIN)/sqlfluff lint --disregard-sqlfluffignores --config dashboard/queries.sqlfluff dashboard/queries
	$(BIN)/dbt-jobs-as-code validate deploy/dbt-platform/jobs.yml -v deploy/dbt-platform/vars.yml
	@command -v terraform >/dev/null || echo 'terraform is not on PATH: its files are not checked'
	! command -v terraform >/dev/null || terraform fmt -check -diff deploy/dbt-platform/terraform

format: .venv/.installed ## Rewrite Python and SQL in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/sqlfluff fix

new-captured: .venv/.installed ## Write source and models of a captured table (TABLE=source.table, TOPIC=t, KEY=a,b, DOMAIN=d)
	@$(WITH_VENV) spark-ingest new-captured $(if $(TABLE),'$(TABLE)') $(if $(TOPIC),--topic '$(TOPIC)') $(if $(KEY),--key '$(KEY)') $(if $(DOMAIN),--domain '$(DOMAIN)')

cluster-archive: java .venv/.installed ## Pack spark-ingest for a Spark cluster into target/cluster (SPARK=4.0 or 4.1)
	@$(WITH_VENV) python -m sandbox.install.cluster_folder $(if $(SPARK),--spark '$(SPARK)')

new-stream: .venv/.installed ## Write source and model of a stream of events (STREAM=source.table, TOPIC=t, CSV=file, KEY=a, DOMAIN=d)
	@$(WITH_VENV) spark-ingest new-stream $(if $(STREAM),'$(STREAM)') $(if $(TOPIC),--topic '$(TOPIC)') $(if $(CSV),--csv '$(CSV)') $(if $(KEY),--key '$(KEY)') $(if $(DOMAIN),--domain '$(DOMAIN)')

# A lake without bronze has no catalog yet; with the first tables the docs are recreated.
BRONZE := $(wildcard $(or $(SANDBOX_HOME),.sandbox)/lake/warehouse/bronze)
GENERATE_DOCS = $(if $(BRONZE),dbt docs generate,dbt --quiet parse && dbt docs generate --empty-catalog --no-compile)

docs: java .venv/.demo-installed target/catalog.json ## Serve the dbt docs on 127.0.0.1 (DOCS_PORT=8080), made first when missing
	@$(WITH_VENV) dbt docs serve --host 127.0.0.1 --port $(DOCS_PORT) --no-browser

target/catalog.json: $(BRONZE) | java .venv/.demo-installed
	@export $(WITH_VENV); $(GENERATE_DOCS)

dashboard: .venv/.dashboard-packages ## Show the marts in a browser on 127.0.0.1, live, until Ctrl-C (DASHBOARD_PORT=8501)
	@exec $(BIN)/python -m dashboard --port '$(DASHBOARD_PORT)'

docs-static: java .venv/.demo-installed ## Write the dbt docs as one file that needs no server, target/static_index.html
	@export $(WITH_VENV); $(GENERATE_DOCS) --static
	@echo 'Open target/static_index.html in a browser.'

bench: java .venv/.installed ## Measure ingest against its limits and its peers, on a quiet machine (half an hour)
	@$(WITH_VENV) python -m bench.ingest

bench-increments: java .venv/.installed ## Measure an increment on histories of 0.1 to 10 million rows (half an hour)
	@$(WITH_VENV) python -m bench.increments

bench-histories: java .venv/.installed ## Measure an increment of a captured table of 0.1 to 10 million rows (half an hour)
	@$(WITH_VENV) python -m bench.histories

bench-cdc: java .venv/.installed ## Measure the way from a database's commit to live view and current state (a quarter of an hour)
	@$(WITH_VENV) sandbox parts
	@$(WITH_VENV) python -m bench.capture

bench-dashboard: java .venv/.installed .venv/.dashboard-packages ## Measure each page of the dashboard on the lake that is there (a minute)
	@$(WITH_VENV) python -m bench.dashboard

lock: ## Update requirements.lock, and those of other environments (needs uv)
	@command -v uv >/dev/null || { echo 'make lock needs uv on PATH: pipx install uv' >&2; exit 2; }
	$(LOCKING) --all-extras pyproject.toml -o requirements.lock
	@for pins in $(APART:.in=); do $(LOCKING) --quiet "$$pins.in" -o "$$pins.lock" || exit; done

clean: ## Remove .venv and everything made from the sources; stops the sandbox, keeps its data
	@[ ! -x $(BIN)/sandbox ] || $(BIN)/sandbox down || echo 'Could not stop the sandbox; going on.' >&2
	@rm -rf .venv target logs dbt_packages build .pytest_cache .mypy_cache .ruff_cache *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@[ ! -d .sandbox ] || echo 'Kept .sandbox (events and tables); `sandbox reset --yes` removes it.'

# Packages and the project itself, for the demo or with the tools of development: only a changed
# pin or a moved checkout repeats this. Where Java is needed its parts are fetched meanwhile.
LOCKED := requirements.lock pyproject.toml $(if $(MOVED),moved)
WITH_PARTS = $(if $(filter-out $(NO_PARTS),$(MAKECMDGOALS)),--parts)
NO_PARTS := install test-fast lint format new-captured new-stream dashboard docs docs-static .venv/%
define INSTALL
@'$(PYTHON)' -c '$(NEW_ENOUGH)' 2>/dev/null || { echo '$(PYTHON_FIX)' >&2; exit 2; }
@$(if $(MOVED),rm -rf .venv)
@'$(PYTHON)' -I sandbox/install/environment.py
endef

.venv/.demo-packages: $(LOCKED)
	$(INSTALL) demo $(WITH_PARTS)

.venv/.packages: $(LOCKED)
	$(INSTALL) all $(WITH_PARTS)

.venv/.dashboard-packages: $(LOCKED)
	$(INSTALL) dashboard

# The lake's settings with absolute paths, in the Spark of .venv.
SETTINGS := $(wildcard profiles/*) sandbox/install/ivy.xml sandbox/install/ivysettings.xml sandbox/install/parts.py sandbox/install/class_archive.py sandbox/install/spark_conf.py

.venv/.demo-installed: .venv/.demo-packages $(SETTINGS)
	@$(BIN)/python -m sandbox.install.spark_conf
	@touch $@

.venv/.installed: .venv/.packages $(SETTINGS)
	@$(BIN)/python -m sandbox.install.spark_conf
	@touch .venv/.demo-installed $@

java:
	@version="$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')"; \
	case "$$version" in \
	    17 | 21) ;; \
	    *) echo '$(JAVA_FIX); found '"$${version:-none}" >&2; exit 2 ;; \
	esac
