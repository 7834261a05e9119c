# Everything a newcomer needs; `make` alone prints the targets.
#
# Set-up happens by itself: a virtual environment in .venv, made once and again when
# pyproject.toml changes. A stamp file says so, hence the second run starts at once.

VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check
# The first interpreter that runs and is new enough; override with PYTHON=/path/to/python3.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v "$$p" && break; done)

ARGS    ?=
SEEDS   ?= 300
MUTANTS ?=
QUICK   ?=
MINUTES ?=
REPEAT  ?=
ONLY    ?=
BARS    ?=
WORKERS ?= 2
MESSAGES ?= 1000000
TIMES ?= 10
STATEMENTS ?= 20000
SCRIPTS ?= 1000

# Tests and scenarios start hundreds of processes: without bytecode each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help start test longer hunt check format sim fuzz differential limits faults bench clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

start: $(VENV)/.runtime ## run a node in the foreground, e.g. ARGS="--store sqlite:data/store.db"; Ctrl-C drains it
	@exec $(VENV)/bin/tenure start $(ARGS)

test: $(VENV)/.dev $(VENV)/.java ## run the tests, e.g. ARGS="tests/unit -k clock"; WORKERS=2 processes
	@$(PY) -m pytest -n $(WORKERS) -m "not longer" $(ARGS)

longer: $(VENV)/.dev $(VENV)/.java ## run the tests that `make test` leaves out, because they take long
	@$(PY) -m pytest -n $(WORKERS) -m longer --ignore tests/faults $(ARGS)  # `make faults` runs those for longer

hunt: $(VENV)/.dev ## run the tests by examples with new ones, TIMES=10 times, e.g. ARGS=tests/unit/catalog
	@for n in $$(seq $(TIMES)); do TENURE_EXAMPLES=hunt $(PY) -m pytest -q -n $(WORKERS) \
		-m hypothesis $(or $(ARGS),tests/unit) || exit 1; done

check: $(VENV)/.dev ## lint, formatting, types, layers: no test is run
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@PYTHONPATH=src $(VENV)/bin/lint-imports

format: $(VENV)/.dev ## format the code and fix what can be fixed
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

sim: $(VENV)/.dev ## simulate by seed: SEEDS=300 or SEEDS=5000..5300, MUTANTS=1
	@$(PY) -m tests.faults --quick --only processes
	@PYTHONHASHSEED=0 $(PY) -m tests.simulation --seeds $(SEEDS) $(if $(MUTANTS),--mutants) $(ARGS)

fuzz: $(VENV)/.dev ## send malformed messages to the wire's state machine: MESSAGES=1000000
	@$(PY) -m tests.fuzz_wire --messages $(MESSAGES) $(ARGS)

differential: $(VENV)/.dev ## compare generated SQL with PostgreSQL: STATEMENTS=20000, SCRIPTS=1000
	@$(PY) -m tests.differential --statements $(STATEMENTS) --scripts $(SCRIPTS) $(ARGS)

limits: $(VENV)/.dev ## call every function with inputs at its limits: QUICK=1, ARGS="--only regexp"
	@$(PY) -m tests.limits $(if $(QUICK),--quick) $(ARGS)

faults: $(VENV)/.dev $(VENV)/.java ## break real processes: QUICK=1, MINUTES=, REPEAT=
	@$(PY) -m tests.faults $(if $(QUICK),--quick) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(REPEAT),--repeat $(REPEAT)) $(ARGS)

bench: $(VENV)/.dev $(VENV)/.java ## measure beside peers: ONLY=store, QUICK=1 (correctness only), BARS=1 (missed bars fail)
	@$(PY) -m bench $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick) $(if $(BARS),--bars) $(ARGS)

clean: ## remove the environment and all caches (never tenure-data)
	rm -rf $(VENV) build dist src/*.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# The development set includes the runtime set, so it refreshes both stamps.
$(VENV)/.dev: pyproject.toml | $(PY)
	@echo "Installing Tenure and what its tests need into $(VENV) ..." >&2
	@$(PIP) -e '.[dev]'
	@touch $(VENV)/.runtime $@

# A node runs without Java: only bulk work needs it, and waits until it is there.
$(VENV)/.runtime: pyproject.toml | $(PY)
	@echo "Installing Tenure into $(VENV) ..." >&2
	@$(PIP) -e .
	@$(find_java) || echo "A node runs without it; large imports, exports and the like wait until it is there." >&2
	@touch $@

$(VENV)/.java: | $(VENV)/.dev
	@$(find_java)
	@touch $@

# Installs a Java only where there is none: one that is there, however unfit, is its owner's. Then says what
# is wrong with the one that Spark would use.
find_java = $(PY) -m tenure.pipeline.java 2>/dev/null || { \
	if [ -z "$$JAVA_HOME" ] && ! command -v java >/dev/null && [ "$$(id -u)" = 0 ] \
			&& command -v apt-get >/dev/null; then \
		echo "Installing Java ..." >&2; \
		apt-get update -qq && { apt-get install -y -qq --no-upgrade openjdk-17-jre-headless >/dev/null 2>&1 \
			|| apt-get install -y -qq --no-upgrade default-jre-headless >/dev/null; }; \
	fi; $(PY) -m tenure.pipeline.java; }

$(PY):
	@test -n "$(PYTHON)" || { \
		echo "Tenure needs Python 3.11 or newer and found none. Install one, or name it: make PYTHON=/path/to/python3" >&2; \
		exit 1; }
	@"$(PYTHON)" -c 'import ensurepip' 2>/dev/null || { \
		package=$$("$(PYTHON)" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing $$package ..." >&2; \
			apt-get update -qq && apt-get install -y -qq "$$package" >/dev/null; \
		else \
			echo "$(PYTHON) cannot make virtual environments: install the package $$package (or python3-venv) first." >&2; \
			exit 1; \
		fi; }
	@echo "Making $(VENV) with $(PYTHON) ..." >&2
	@"$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }
