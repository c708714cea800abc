# `make demo` and `make test` do all the set-up on a machine with Python 3.11 and make; nothing else is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Small matrices are slowed down by threads of the linear algebra, the more so beside a second test process.
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test lint types unit bench check-wheel clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oco needs Python 3.11 or later")'
	rm -rf $(VENV) build
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/oco check examples/job_scheduling.oco
	$(BIN)/oco run examples/job_scheduling.oco --data examples/data/nyiso_2017-05.csv --out demo
	$(BIN)/oco compile examples/job_scheduling.oco -o demo/job_scheduling_learner.py --force
	@echo "Trace, plots and the standalone learner are in demo/."

test: clean-venv $(VENV)/.installed lint types unit

.PHONY: clean-venv
clean-venv:
	rm -rf $(VENV) build

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy finds the package only where it is installed as files, so the types are checked on a plain installation.
types: $(VENV)/.installed
	rm -rf build $(VENV)/typed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/typed .
	cd $(VENV)/typed && ../bin/mypy --config-file ../../pyproject.toml --cache-dir ../mypy_cache -p oco
	rm -rf build

unit: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/speed/run.py

clean:
	rm -rf $(VENV) build dist demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
